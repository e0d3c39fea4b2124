//! Standard output and standard error of the whole program.
//!
//! The macros here replace those of the standard library, which panic if a line cannot be written: a full
//! disk or a closed pipe must not end a training run. The first error is stored, later output is discarded,
//! and the program reports the error when its work is done ([`lost`]). Control characters in untrusted names
//! are shown, not interpreted.

use leaklab_record::text;
use std::fmt::Arguments;
use std::io::{self, Write};
use std::sync::OnceLock;

/// Why standard output can no longer be written.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Prints to standard output.
macro_rules! print {
    ($($text:tt)*) => { $crate::output::print(format_args!($($text)*), "") };
}

/// Prints a line to standard output.
macro_rules! println {
    () => { $crate::output::print(format_args!(""), "\n") };
    ($($text:tt)*) => { $crate::output::print(format_args!($($text)*), "\n") };
}

/// Prints a line to standard error.
macro_rules! eprintln {
    ($($text:tt)*) => { $crate::output::complain(format_args!($($text)*)) };
}

/// Prints to standard output, unless that has failed before.
pub fn print(arguments: Arguments, end: &str) {
    if LOST.get().is_some() {
        return;
    }
    let line = format!("{arguments}{end}");
    if let Err(error) = io::stdout().write_all(text::for_terminal(&line).as_bytes()) {
        let _ = LOST.set(error);
    }
}

/// Prints a line to standard error. An error is ignored.
pub fn complain(arguments: Arguments) {
    let line = format!("{arguments}\n");
    let _ = io::stderr().write_all(text::for_terminal(&line).as_bytes());
}

/// Why some of the output was lost, if any was. A reader that needs no more, such as `head`, closes the pipe;
/// this need not be reported.
pub fn lost() -> Option<&'static io::Error> {
    if let Err(error) = io::stdout().flush() {
        let _ = LOST.set(error);
    }
    LOST.get()
}
