//! Ctrl-C: the first asks the work to stop where it can be resumed, the second leaves at once. A request to
//! terminate does the same, and so do `SIGUSR1` and `SIGUSR2`, by which batch systems announce that a job's
//! time is nearly over; these may come as often as they like.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the user or a batch system has asked to stop.
#[derive(Debug, Clone)]
pub struct Interrupt {
    by_user: Arc<AtomicBool>,
    by_system: Arc<AtomicBool>,
}

impl Interrupt {
    /// Listens to Ctrl-C, and to a request to terminate, from now on. Where the system does not allow that,
    /// Ctrl-C ends the program as usual, and loses nothing older than the last checkpoint.
    ///
    /// `doing` tells the user what is done about it.
    pub fn listen(doing: &'static str) -> Self {
        let flag = Arc::new(AtomicBool::new(false));
        let asked = flag.clone();
        let _ = ctrlc::set_handler(move || {
            if asked.swap(true, Ordering::SeqCst) {
                eprintln!("\nleaklab: left at once; what was on disk is safe");
                std::process::exit(1);
            }
            eprintln!("\nleaklab: {doing}; once more to leave at once");
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
