//! Ctrl-C: the first one requests a stop at a point where the work can be resumed, the second one exits
//! immediately. A termination signal does the same. `SIGUSR1` and `SIGUSR2`, with which batch systems
//! announce that a job's time is nearly over, request a stop too, however often they arrive.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A signal that follows the first one within this time is the same Ctrl-C: a program that started this one
/// may pass it on, although the terminal has already sent it to both.
const SAME: Duration = Duration::from_millis(500);

/// From now on, a file that would exceed the limit of the shell (`ulimit -f`) is an error of writing, as a
/// full disk is. Otherwise, its signal would end the program without a message.
pub fn outlive_file_limit() {
    #[cfg(unix)]
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

/// Whether the user or a batch system has asked to stop.
#[derive(Debug, Clone)]
pub struct Interrupt {
    by_user: Arc<AtomicBool>,
    by_system: Arc<AtomicBool>,
}

impl Interrupt {
    /// Handles Ctrl-C and termination signals from now on. If the system does not allow that, Ctrl-C ends the
    /// program as usual, and nothing older than the last checkpoint is lost.
    ///
    /// `doing` is the message that tells the user what the program does in response.
    pub fn listen(doing: &'static str) -> Self {
        let flag = Arc::new(AtomicBool::new(false));
        let asked = flag.clone();
        let first = OnceLock::<Instant>::new();
        on_signal(move || {
            if asked.swap(true, Ordering::SeqCst) {
                if first.get_or_init(Instant::now).elapsed() < SAME {
                    return;
                }
                eprintln!("\nleaklab: exited immediately; what was on disk is safe");
                std::process::exit(1);
            }
            first.get_or_init(Instant::now);
            eprintln!("\nleaklab: {doing}; press Ctrl-C again to exit immediately");
        });
        let by_system = Arc::new(AtomicBool::new(false));
        #[cfg(unix)]
        for signal in [signal_hook::consts::SIGUSR1, signal_hook::consts::SIGUSR2] {
            let _ = signal_hook::flag::register(signal, by_system.clone());
        }
        Interrupt { by_user: flag, by_system }
    }

    /// Whether the user or a batch system has asked to stop.
    pub fn asked(&self) -> bool {
        self.by_user.load(Ordering::SeqCst) || self.by_system.load(Ordering::SeqCst)
    }
}

/// Calls `respond` at every Ctrl-C and termination signal. A hangup that is ignored when the program starts,
/// as with `nohup`, stays ignored.
#[cfg(unix)]
fn on_signal(respond: impl Fn() + Send + 'static) {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = vec![SIGINT, SIGTERM];
    if !is_ignored(SIGHUP) {
        signals.push(SIGHUP);
    }
    if let Ok(mut signals) = signal_hook::iterator::Signals::new(signals) {
        std::thread::spawn(move || signals.forever().for_each(|_| respond()));
    }
}

/// Calls `respond` at every Ctrl-C and when the console is closed.
#[cfg(not(unix))]
fn on_signal(respond: impl FnMut() + Send + 'static) {
    let _ = ctrlc::set_handler(respond);
}

/// Whether a signal is ignored. Only Linux reports this in a file; on other systems, it is taken as not
/// ignored.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}
