//! Ctrl-C: the first asks the work to stop where it can be resumed, the second leaves at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the user has asked to stop.
#[derive(Debug, Clone)]
pub struct Interrupt(Arc<AtomicBool>);

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
        Interrupt(flag)
    }

    /// Whether the user has asked to stop.
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
