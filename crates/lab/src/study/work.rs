//! The work of a study: runs are distributed over lanes, and each is trained and then measured. After each
//! run, the comparison is written again.
//!
//! Several processes, on one machine or many, may work on one study. Its folder is all that they share: a run
//! belongs to the process that holds the lock on its folder, and the process that holds the lock on the
//! study's folder writes the shared results. A process that finds nothing to do waits for the others, and
//! takes over the run of a process that dies.

use super::folder::pinned;
use super::images::TestImages;
use super::plan::Plan;
use super::{StudyError, begin, check};
use crate::analysis::compare::CompareError;
use crate::analysis::{self, Advance, Analysis, AnalysisError, mechanism};
use crate::config::{RunConfig, StudyConfig};
use crate::train::{self, Control};
use leaklab_engine::Isa;
use leaklab_record::lock::Holder;
use leaklab_record::{RecordError, RunFolder, RunLock, StudyFolder, atomic};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Time between two checks of what other processes do.
const LOOK: Duration = Duration::from_millis(500);

/// Options that do not change a study's results.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The command line, for the page.
    pub command: String,
    /// Minutes between checkpoints within an epoch.
    pub checkpoint_minutes: f64,
    /// Instruction set of the kernels (see [`train::Options::isa`]).
    pub isa: Isa,
}

/// Stage of a run.
#[derive(Debug)]
pub enum Stage<'a> {
    /// Something happened in training.
    Training(&'a train::Event<'a>),
    /// Training has ended.
    Trained(&'a train::Summary),
    /// Progress of an analysis.
    Analysing(&'a Advance),
    /// All analyses are done, here or by another process.
    Analysed,
}

/// An event. Events of several runs may arrive at the same time, from several threads.
#[derive(Debug)]
pub enum Event<'a> {
    /// Something happened to a run.
    Run {
        /// Its index in the plan.
        index: usize,
        /// Name of its folder.
        name: &'a str,
        /// What happened.
        stage: Stage<'a>,
    },
    /// Another process is working on something that this one needs.
    Waiting {
        /// What it is, such as the name of a run.
        what: &'a str,
        /// The other process.
        holder: &'a Holder,
    },
    /// A curve of the theory is computed next.
    TheoryCurve {
        /// Its number, from 0.
        curve: usize,
    },
    /// The theory's tables are written.
    Theory,
    /// Progress of the mechanism analysis.
    Mechanism(&'a Advance),
    /// The runs do not allow the mechanism analysis.
    NoMechanism(&'a mechanism::MechanismError),
    /// The comparison's tables were written.
    Compared {
        /// Runs in the comparison.
        runs: usize,
    },
}

/// Receives events, and returns whether to continue.
pub type Watcher<'a> = dyn Fn(&Event) -> Control + Sync + 'a;

/// Does the remaining work of a study, together with any other process that does the same.
pub fn run(
    plan: &Plan,
    folder: &StudyFolder,
    options: &Options,
    watcher: &Watcher,
) -> Result<(), StudyError> {
    let work = Work::begin(&plan.config, folder, options, watcher)?;
    work.theory()?;
    let mut runs: VecDeque<Turn> = work.turns().into();
    let lanes = plan.lanes();
    // Full rounds first, with one run per lane; the remaining runs share the threads.
    let rest = runs.split_off(runs.len() - runs.len() % lanes);
    let mut elsewhere = Vec::new();
    for queue in [runs, rest] {
        let lanes = lanes.min(queue.len());
        if lanes > 0 {
            elsewhere.extend(work.lanes(queue, lanes, (plan.threads / lanes).max(1))?);
        }
    }
    work.wait_for(elsewhere, plan.threads)?;
    work.conclude(plan.threads)
}

/// Does one run of a study, counted from 0 in the order of the plan, without the comparison. It is an error
/// if another process is working on the run, unless that process turns out to be dead.
pub fn run_one(
    config: &StudyConfig,
    folder: &StudyFolder,
    index: usize,
    threads: usize,
    options: &Options,
    watcher: &Watcher,
) -> Result<(), StudyError> {
    let runs = config.runs().len();
    if index >= runs {
        return Err(StudyError::NoSuchRun { index, last: runs - 1 });
    }
    let config = &with_digest(config, folder)?;
    let work = Work::begin(config, folder, options, watcher)?;
    let turn = work.turns().swap_remove(index);
    let lock = work.claim_patiently(&turn)?;
    let analyses = work.one(&turn, lock, threads)?;
    let _study = work.lock()?;
    work.spent("analyses", analyses)
}

/// Compares the runs that are complete, adds the mechanism analysis if all are, and returns the names of
/// those that are not, with the reason if a run is marked as complete.
pub fn compare(
    config: &StudyConfig,
    folder: &StudyFolder,
    threads: usize,
    options: &Options,
    watcher: &Watcher,
) -> Result<Vec<String>, StudyError> {
    let config = &with_digest(config, folder)?;
    let work = Work::begin(config, folder, options, watcher)?;
    work.theory()?;
    let images = TestImages::of(&config.base);
    let missing: Vec<String> = work.turns().into_iter().filter_map(|turn| incomplete(turn, images)).collect();
    if missing.is_empty() {
        work.conclude(threads)?;
    } else {
        work.compare(None, Some(images))?;
    }
    Ok(missing)
}

/// The name of a run that cannot be compared.
fn incomplete(turn: Turn, images: TestImages) -> Option<String> {
    if !turn.folder.complete().is_file() {
        return Some(turn.name);
    }
    let flaw = images.flaw(&turn.config, &turn.folder)?;
    Some(format!("{} ({flaw})", turn.name))
}

/// A study with the digest of the data that its folder was started with.
fn with_digest(config: &StudyConfig, folder: &StudyFolder) -> Result<StudyConfig, StudyError> {
    let mut config = config.clone();
    if config.base.data_sha256.is_none() {
        config.pin(pinned(folder)?);
    }
    Ok(config)
}

/// A run and its index in the plan.
struct Turn {
    index: usize,
    name: String,
    config: RunConfig,
    folder: RunFolder,
    /// Whether it was complete when this process began. Such a run is checked again, because its tables may
    /// have been changed since.
    before: bool,
}

pub(super) struct Work<'a> {
    pub(super) config: &'a StudyConfig,
    pub(super) folder: &'a StudyFolder,
    options: &'a Options,
    watcher: &'a Watcher<'a>,
    /// Whether a lane failed or the watcher asked to stop: the others then finish their batch.
    stopped: AtomicBool,
}

impl<'a> Work<'a> {
    /// Creates the folder and the study's first files.
    fn begin(
        config: &'a StudyConfig,
        folder: &'a StudyFolder,
        options: &'a Options,
        watcher: &'a Watcher<'a>,
    ) -> Result<Self, StudyError> {
        let work = Work { config, folder, options, watcher, stopped: AtomicBool::new(false) };
        let _lock = work.lock()?;
        check(folder, config)?;
        begin(folder, config, &options.command)?;
        Ok(work)
    }

    /// The runs in the order of the plan.
    fn turns(&self) -> Vec<Turn> {
        let turn = |(index, config): (usize, RunConfig)| {
            let folder = self.folder.run(&config.key());
            let before = folder.complete().is_file();
            Turn { index, name: config.folder_name(), config, folder, before }
        };
        self.config.runs().into_iter().enumerate().map(turn).collect()
    }

    /// Options of analyses of runs as they were trained.
    pub(super) fn analysis_options(
        &self,
        data_dir: Option<PathBuf>,
        pool: Arc<rayon::ThreadPool>,
    ) -> analysis::Options {
        analysis::Options { data_dir, isa: self.options.isa, ..analysis::Options::as_trained(pool) }
    }

    pub(super) fn tell(&self, event: &Event) -> Control {
        let control = (self.watcher)(event);
        if control == Control::Stop {
            self.stopped.store(true, Ordering::SeqCst);
        }
        if self.stopped.load(Ordering::SeqCst) { Control::Stop } else { Control::Continue }
    }

    /// Reports that another process is working on something, and pauses.
    fn pause(&self, what: &str, holder: &Holder) -> Result<(), StudyError> {
        if self.tell(&Event::Waiting { what, holder }) == Control::Stop {
            return Err(StudyError::Interrupted);
        }
        std::thread::sleep(LOOK);
        Ok(())
    }

    /// Takes the lock for writing the shared results. Others hold it for seconds at most, except during the
    /// mechanism analysis.
    pub(super) fn lock(&self) -> Result<RunLock, StudyError> {
        loop {
            match self.folder.lock() {
                Err(RecordError::Locked { holder, .. }) => self.pause("the comparison", &holder)?,
                other => return Ok(other?),
            }
        }
    }

    /// Does the runs of a queue, several at a time. Returns those that other processes are working on.
    fn lanes(&self, queue: VecDeque<Turn>, lanes: usize, threads: usize) -> Result<Vec<Turn>, StudyError> {
        let queue = Mutex::new(queue);
        let elsewhere = Mutex::new(Vec::new());
        let failure: Mutex<Option<StudyError>> = Mutex::new(None);
        std::thread::scope(|scope| {
            for _ in 0..lanes {
                scope.spawn(|| {
                    loop {
                        let next = queue.lock().expect("no lane panics while it holds the queue").pop_front();
                        let Some(turn) = next else { break };
                        if self.stopped.load(Ordering::SeqCst) {
                            break;
                        }
                        match self.take(&turn, threads) {
                            Ok(None) => {}
                            Ok(Some(_)) => {
                                elsewhere.lock().expect("no lane panics while it holds the list").push(turn);
                            }
                            Err(error) => {
                                self.stopped.store(true, Ordering::SeqCst);
                                let mut failure =
                                    failure.lock().expect("no lane panics while it holds the failure");
                                // The error itself is more useful than the interruption of the others that it
                                // caused.
                                if failure.is_none() || matches!(*failure, Some(StudyError::Interrupted)) {
                                    *failure = Some(error);
                                }
                            }
                        }
                    }
                });
            }
        });
        match failure.into_inner().expect("the lanes have ended") {
            Some(error) => Err(error),
            None if self.stopped.load(Ordering::SeqCst) => Err(StudyError::Interrupted),
            None => Ok(elsewhere.into_inner().expect("the lanes have ended")),
        }
    }

    /// Waits until the runs that other processes are working on are done, and does those whose process dies.
    fn wait_for(&self, mut runs: Vec<Turn>, threads: usize) -> Result<(), StudyError> {
        runs.sort_by_key(|turn| turn.index);
        while !runs.is_empty() {
            let mut still = Vec::new();
            let mut worker = None;
            for turn in runs {
                if let Some(holder) = self.take(&turn, threads)? {
                    worker.get_or_insert((turn.name.clone(), holder));
                    still.push(turn);
                }
            }
            if let Some((name, holder)) = worker {
                self.pause(&name, &holder)?;
            }
            runs = still;
        }
        Ok(())
    }

    /// Does a run, unless another process is working on it; that process is then returned.
    fn take(&self, turn: &Turn, threads: usize) -> Result<Option<Holder>, StudyError> {
        let done_elsewhere = || turn.folder.complete().is_file() && !turn.before;
        let mut lock = None;
        if !done_elsewhere() {
            match turn.folder.lock() {
                Ok(taken) => lock = Some(taken),
                Err(RecordError::Locked { holder, .. }) => return Ok(Some(*holder)),
                Err(error) => return Err(error.into()),
            }
        }
        // It may have been completed just before the lock was taken.
        match lock.filter(|_| !done_elsewhere()) {
            Some(lock) => {
                let analyses = self.one(turn, lock, threads)?;
                match self.compare(Some(analyses), None) {
                    // A run whose turn is still to come was measured with other images since it was complete.
                    Err(StudyError::Analysis(AnalysisError::Compare(CompareError::Images { .. }))) => {}
                    other => other?,
                }
            }
            None => {
                self.tell(&Event::Run { index: turn.index, name: &turn.name, stage: Stage::Analysed });
            }
        }
        Ok(None)
    }

    /// Takes the lock on a run. If its holder is on another machine and may have died with it, as for a job
    /// that was requeued, waits for its heartbeat.
    fn claim_patiently(&self, turn: &Turn) -> Result<RunLock, StudyError> {
        let mut seen = None;
        loop {
            match turn.folder.lock() {
                Ok(lock) => return Ok(lock),
                Err(RecordError::Locked { holder, .. })
                    if holder.process.as_ref().is_none_or(|process| !process.is_here())
                        && seen.is_none_or(|beat| beat == holder.beat) =>
                {
                    seen = Some(holder.beat);
                    self.pause(&turn.name, &holder)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Trains and measures one run and records the outcome. Returns the time that its analyses took.
    fn one(&self, turn: &Turn, lock: RunLock, threads: usize) -> Result<Duration, StudyError> {
        let failure = turn.folder.failure();
        if failure.is_file() {
            std::fs::remove_file(&failure).map_err(RecordError::io(&failure, "cannot be removed"))?;
        }
        let lock = Arc::new(lock);
        let outcome = self.train_and_measure(turn, &lock, threads);
        match &outcome {
            Err(StudyError::Interrupted) => {}
            // The process that took the run over records its outcome.
            Err(_) if lock.check().is_err() => {}
            Err(error) => {
                // If this cannot be written either, the caller still receives the error.
                let _ = atomic::write(&failure, format!("{error}\n").as_bytes());
            }
            Ok(_) => {
                let mark = turn.folder.complete();
                lock.check()?;
                atomic::write(&mark, b"").map_err(RecordError::io(&mark, "cannot be written"))?;
                self.tell(&Event::Run { index: turn.index, name: &turn.name, stage: Stage::Analysed });
            }
        }
        outcome
    }

    fn train_and_measure(
        &self,
        turn: &Turn,
        lock: &Arc<RunLock>,
        threads: usize,
    ) -> Result<Duration, StudyError> {
        let Turn { index, name, config, folder, .. } = turn;
        let tell = |stage: Stage| self.tell(&Event::Run { index: *index, name, stage });
        let options = train::Options {
            threads: Some(threads),
            checkpoint_minutes: self.options.checkpoint_minutes,
            stop_on_divergence: false,
            data_dir: config.data_dir.clone(),
            isa: self.options.isa,
            initial: None,
            ranks: train::Ranks::Alone,
        };
        let mut report = |event: train::Event| tell(Stage::Training(&event));
        let summary = train::go_on(config, folder, lock, &options, &mut report)?;
        if summary.outcome == train::Outcome::Interrupted || tell(Stage::Trained(&summary)) == Control::Stop {
            return Err(StudyError::Interrupted);
        }
        let begun = Instant::now();
        let pool = Arc::new(train::threads(Some(threads))?);
        let options = self.analysis_options(config.data_dir.clone(), pool);
        let mut report = |advance: &Advance| tell(Stage::Analysing(advance)) == Control::Continue;
        // A probe is only analysed to see whether it learned.
        let analyses: &[Analysis] = if config.probe { &[Analysis::Generalisation] } else { &Analysis::ALL };
        match analysis::analyse(folder.path(), analyses, &options, &mut report) {
            Ok(_) => {}
            Err(AnalysisError::Interrupted) => return Err(StudyError::Interrupted),
            // A run that diverged in its first epoch has nothing to measure; the comparison reports it.
            Err(AnalysisError::NoEpoch { .. }) if summary.outcome == train::Outcome::Diverged => {}
            Err(error) => return Err(error.into()),
        }
        Ok(begun.elapsed())
    }
}
