//! A lock on a folder that several machines may share, held by one process at a time.
//!
//! The file `lock` states which process holds the lock. It is created with all its content in one step (a
//! hard link, which succeeds for one process only, even over NFS). Its modification time is the holder's
//! heartbeat, set by the file system's clock. A lock is broken only when its holder is known to have ended:
//!
//! - a holder on this machine, when it is no longer in the process table (a later process with the same id
//!   does not count) and the operating system's lock on the open file, which ends with its process, is free;
//! - a holder on another machine, when its heartbeat, which it renews every [`BEAT`], is older than
//!   [`STALE`].
//!
//! Before a process replaces a lock, it takes a lock on the replacement by these same rules. This lock is
//! named after the one that is replaced (`lock.TOKEN`). So two processes that find the same dead holder
//! cannot both replace its lock, and if one dies while it does, another can take over from it.
//!
//! A process that is halted for longer than [`STALE`] may find, when it continues, that its lock was broken.
//! [`Lock::check`] reports this, and the holder of a lock calls it before it writes: a checkpoint, a line of
//! the records, or a set of tables that runs share. (The tables and passes of a run depend on its weights and
//! settings only, so it does not matter which process writes them.)

mod content;

pub use content::{Content, Holder, Token};

use crate::atomic;
use crate::error::RecordError;
use crate::file;
use crate::process::Life;
use std::fs::{self, File, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

/// Time between two heartbeats.
pub const BEAT: Duration = Duration::from_secs(10);
/// Age of the last heartbeat at which a holder on another machine counts as dead.
pub const STALE: Duration = Duration::from_secs(120);
/// Number of attempts to take a lock while other processes interfere. Each time one of them succeeds, so this
/// number is reached only on a file system that breaks its guarantees.
const TRIES: usize = 100;

/// A lock that is held. It is released when this value is dropped or the process ends.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    content: Content,
    /// Ends the heartbeat when dropped.
    beating: Option<Sender<()>>,
    heart: Option<JoinHandle<()>>,
}

/// Why a lock could not be taken.
#[derive(Debug)]
pub enum Refused {
    /// Another process holds it.
    Held(Box<Holder>),
    /// The system refused.
    Io(io::Error),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Refused::Io(error)
    }
}

impl Lock {
    /// Takes the lock at a path, if nobody holds it or its holder is known to have ended.
    pub fn take(path: &Path) -> Result<Self, Refused> {
        Self::take_with(path, thread::Builder::new().name("heartbeat".into()))
    }

    /// Like [`take`](Self::take), with the thread of the heartbeat.
    fn take_with(path: &Path, heart: thread::Builder) -> Result<Self, Refused> {
        let (content, file) = claim(path)?;
        // Built before the thread: if that cannot be started, the lock is dropped, and so released.
        let mut lock = Lock { path: path.to_owned(), content, beating: None, heart: None };
        remove_guards(path);
        let (beating, ends) = mpsc::channel::<()>();
        let (at, mine) = (path.to_owned(), lock.content.clone());
        lock.beating = Some(beating);
        lock.heart = Some(heart.spawn(move || {
            while ends.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                // A heartbeat that fails is missed; the next one may succeed.
                if is_at(&at, &mine).unwrap_or(true) {
                    let _ = beat(&file, &mine);
                } else {
                    break;
                }
            }
        })?);
        Ok(lock)
    }

    /// Fails if the lock was broken because this process was halted for longer than [`STALE`].
    pub fn check(&self) -> Result<(), RecordError> {
        match is_at(&self.path, &self.content) {
            Ok(true) => Ok(()),
            Ok(false) => Err(RecordError::LockLost { path: self.path.clone() }),
            Err(source) => Err(RecordError::Io { path: self.path.clone(), action: "cannot be read", source }),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        drop(self.beating.take());
        if let Some(heart) = self.heart.take() {
            let _ = heart.join();
        }
        if is_at(&self.path, &self.content).unwrap_or(false) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The holder of the lock at a path, if any. The lock is not changed.
pub fn holder(path: &Path) -> io::Result<Option<Holder>> {
    // If nothing can be written here, this machine's clock is used instead of the file system's.
    let now = atomic::create(path).and_then(|(partial, file)| {
        let now = file.metadata().and_then(|found| found.modified());
        let _ = fs::remove_file(partial);
        now
    });
    Ok(look(path, now.unwrap_or_else(|_| SystemTime::now()))?.map(|(_, holder)| holder))
}

/// Takes the lock at a path for this process.
fn claim(path: &Path) -> Result<(Content, File), Refused> {
    for _ in 0..TRIES {
        // Created again in each attempt: its modification time is the current time of the file system's
        // clock.
        let (partial, file) = atomic::create(path)?;
        let content = Content::new();
        let written = beat(&file, &content).and_then(|()| file.metadata()?.modified());
        let outcome = written.map_err(Refused::Io).and_then(|now| place(path, &partial, &content, now));
        if !matches!(outcome, Ok(Placed::Renamed)) {
            let _ = fs::remove_file(&partial);
        }
        match outcome? {
            Placed::Linked | Placed::Renamed => return Ok((content, file)),
            Placed::Copied(file) => return Ok((content, file)),
            Placed::Disturbed => {}
        }
    }
    Err(Refused::Io(io::Error::other("other processes keep taking and releasing it; try again")))
}

/// Result of an attempt.
enum Placed {
    /// There was no lock. The new one also has its temporary name, which is no longer needed.
    Linked,
    /// There was no lock. The new one is this file.
    Copied(File),
    /// The new lock replaced that of a dead holder.
    Renamed,
    /// Another process was faster; try again.
    Disturbed,
}

fn place(path: &Path, partial: &Path, content: &Content, now: SystemTime) -> Result<Placed, Refused> {
    match link(partial, path) {
        Ok(()) => return Ok(Placed::Linked),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        // A file system without hard links: the new lock is copied into a file that only one process can
        // create.
        Err(e) if matches!(e.kind(), io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied) => {
            match File::options().write(true).create_new(true).open(path) {
                Ok(file) => {
                    // If this fails, other evidence decides (see `look`).
                    let _ = file.try_lock();
                    beat(&file, content)?;
                    return Ok(Placed::Copied(file));
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e.into()),
            }
        }
        Err(e) => return Err(e.into()),
    }
    file::check_place(path)?;
    let Some((old, holder)) = look(path, now)? else { return Ok(Placed::Disturbed) };
    if !holder.stale {
        return Err(Refused::Held(Box::new(holder)));
    }
    // Only the holder of the lock on the replacement may replace this lock.
    let token_of = |content: &Option<Content>| content.as_ref().map_or(Token::NONE, |content| content.token);
    let token = token_of(&old);
    let guard_path = path.with_file_name(format!("{}.{token}", name_of(path)));
    let (guard, _file) = match claim(&guard_path) {
        Ok(taken) => taken,
        Err(Refused::Held(_)) => {
            // Another process is replacing it at this moment.
            thread::sleep(Duration::from_millis(20));
            return Ok(Placed::Disturbed);
        }
        Err(error) => return Err(error),
    };
    let replaced = match look(path, now) {
        Ok(Some((still, holder))) if holder.stale && token_of(&still) == token => {
            fs::rename(partial, path).map(|()| Placed::Renamed)
        }
        Ok(_) => Ok(Placed::Disturbed),
        Err(error) => Err(error),
    };
    if is_at(&guard_path, &guard).unwrap_or(false) {
        let _ = fs::remove_file(&guard_path);
    }
    Ok(replaced?)
}

/// Removes locks on the replacement of earlier locks, left by processes that died during it. Their tokens are
/// not that of the current lock, so they protect nothing.
fn remove_guards(path: &Path) {
    let start = format!("{}.", name_of(path));
    let Some(Ok(entries)) = path.parent().map(fs::read_dir) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let token = name.to_str().and_then(|name| name.strip_prefix(&start));
        if token.is_some_and(atomic::is_unique) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Creates a hard link; fails if `to` exists. Over NFS, the reply to a successful request may get lost, and
/// the repeated request then fails. The file's number of links therefore decides.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    let outcome = fs::hard_link(from, to);
    #[cfg(unix)]
    if outcome.is_err() {
        use std::os::unix::fs::MetadataExt;
        if fs::metadata(from).is_ok_and(|found| found.nlink() == 2) {
            return Ok(());
        }
    }
    outcome
}

/// Content and holder of the lock at a path, if it exists.
fn look(path: &Path, now: SystemTime) -> io::Result<Option<(Option<Content>, Holder)>> {
    // Opening a file requests its current state from an NFS server; reading its modification time alone may
    // not.
    let file = match file::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let content = Content::read(&file)?;
    let beat = file.metadata()?.modified()?;
    // A heartbeat far in the future is as dead as one far in the past: the file came with that date.
    let age = now.duration_since(beat).unwrap_or_else(|future| future.duration());
    // Shared, so that two processes that check at the same time do not mistake each other for the holder.
    let free = match file.try_lock_shared() {
        Ok(()) => Some(true),
        Err(TryLockError::WouldBlock) => Some(false),
        Err(TryLockError::Error(_)) => None,
    };
    let process = content.as_ref().map(|content| content.process.clone());
    let stale = match &process {
        Some(process) if process.is_here() => match (process.life(), free) {
            (Life::Alive, _) | (_, Some(false)) => false,
            (Life::Dead, _) | (Life::Unknown, Some(true)) => true,
            (Life::Unknown, None) => age > STALE,
        },
        Some(_) => age > STALE,
        None => age > STALE && free != Some(false),
    };
    Ok(Some((content, Holder { process, beat, age, stale })))
}

/// Whether the lock at a path is this one.
fn is_at(path: &Path, content: &Content) -> io::Result<bool> {
    match file::open(path) {
        Ok(file) => Ok(Content::read(&file)?.is_some_and(|found| found == *content)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// Writes a lock's content again: a reader sees the same bytes, and the file system sets a new modification
/// time.
fn beat(mut file: &File, content: &Content) -> io::Result<()> {
    let text = serde_json::to_string(content).map_err(io::Error::other)? + "\n";
    file.seek(SeekFrom::Start(0))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Process;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Writes a lock of a process whose last heartbeat was `age` ago.
    fn leave(path: &Path, process: Process, age: Duration) {
        let content = Content { token: Token::random(), process };
        let file = File::create(path).unwrap();
        beat(&file, &content).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn held(path: &Path) -> Holder {
        match Lock::take(path) {
            Err(Refused::Held(holder)) => *holder,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_at_a_time_among_many_that_come_and_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let (inside, taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    while taken.load(Ordering::SeqCst) < 60 {
                        match Lock::take(&path) {
                            Ok(lock) => {
                                assert_eq!(
                                    inside.fetch_add(1, Ordering::SeqCst),
                                    0,
                                    "two threads hold the lock"
                                );
                                lock.check().unwrap();
                                taken.fetch_add(1, Ordering::SeqCst);
                                inside.fetch_sub(1, Ordering::SeqCst);
                            }
                            Err(Refused::Held(holder)) => assert!(!holder.stale),
                            Err(Refused::Io(error)) => panic!("{error}"),
                        }
                    }
                });
            }
        });
        assert_eq!(names(folder.path()), Vec::<String>::new(), "files are left over");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_dead_holder_is_succeeded_by_exactly_one() {
        for round in 0..20 {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("lock");
            leave(&path, Process::ended(), Duration::ZERO);
            if round % 2 == 1 {
                // A process that was about to replace it died too.
                let token = Content::parse(&fs::read(&path).unwrap()).unwrap().token;
                leave(&folder.path().join(format!("lock.{token}")), Process::ended(), Duration::ZERO);
            }
            let start = std::sync::Barrier::new(8);
            let locks: Vec<Lock> = std::thread::scope(|scope| {
                let take = || {
                    start.wait();
                    Lock::take(&path)
                };
                let threads: Vec<_> = (0..8).map(|_| scope.spawn(take)).collect();
                threads.into_iter().filter_map(|thread| thread.join().unwrap().ok()).collect()
            });
            assert_eq!(locks.len(), 1, "round {round}");
            locks[0].check().unwrap();
            drop(locks);
            assert!(!path.exists());
        }
    }

    #[test]
    fn a_holder_elsewhere_is_alive_as_long_as_its_heart_beats() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        for age in [Duration::ZERO, STALE / 2, STALE - BEAT] {
            leave(&path, Process::elsewhere(), age);
            let holder = held(&path);
            assert!(holder.process.is_some() && holder.age.abs_diff(age) < BEAT, "{holder}");
        }
        // A lock with a date in the future, from an archive or a wrong clock, does not last until then.
        leave(&path, Process::elsewhere(), Duration::ZERO);
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::now() + 1000 * STALE).unwrap();
        drop(Lock::take(&path).unwrap());
        leave(&path, Process::elsewhere(), STALE + BEAT);
        let lock = Lock::take(&path).unwrap();
        lock.check().unwrap();
        // Now the other process continues, or a third one takes over: either is detected.
        leave(&path, Process::elsewhere(), Duration::ZERO);
        assert!(matches!(lock.check(), Err(RecordError::LockLost { .. })));
        drop(lock);
        assert!(path.exists(), "the lock of another process was removed");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_live_holder_here_keeps_its_lock_however_old_its_heartbeat() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        leave(&path, Process::this(), 100 * STALE);
        assert!(!held(&path).stale);
        let found = holder(&path).unwrap().unwrap();
        assert!(!found.stale && found.age > 99 * STALE);
        // A lock that cannot be read counts as abandoned after a while.
        fs::write(&path, "").unwrap();
        held(&path);
        File::options().write(true).open(&path).unwrap().set_modified(SystemTime::now() - 2 * STALE).unwrap();
        Lock::take(&path).unwrap();
        assert!(holder(&path).unwrap().is_none());
    }

    #[test]
    fn a_long_file_in_place_of_a_lock_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let lock = Lock::take(&path).unwrap();
        lock.check().unwrap();
        // More than may be read of any text file: reading it would fail in another way, or take its memory.
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(file::LARGEST_TEXT + 1).unwrap();
        assert!(matches!(lock.check(), Err(RecordError::LockLost { .. })), "{:?}", lock.check());
        assert!(holder(&path).unwrap().unwrap().process.is_none());
        drop(lock);
        assert!(path.exists(), "a file that is not this lock was removed");
    }

    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    #[test]
    fn a_lock_without_a_heartbeat_is_released() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        // No system has room for such a stack.
        let refused = Lock::take_with(&path, thread::Builder::new().stack_size(1 << 52));
        assert!(matches!(refused, Err(Refused::Io(_))), "{refused:?}");
        assert_eq!(names(folder.path()), Vec::<String>::new(), "files are left over");
    }

    #[test]
    fn a_heartbeat_changes_the_time_and_not_a_byte() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let (content, file) = claim(&path).unwrap();
        let before = fs::read(&path).unwrap();
        file.set_modified(SystemTime::now() - 10 * STALE).unwrap();
        beat(&file, &content).unwrap();
        assert_eq!(fs::read(&path).unwrap(), before);
        assert!(fs::metadata(&path).unwrap().modified().unwrap().elapsed().unwrap() < BEAT);
    }
}
