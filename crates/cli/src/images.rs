//! Progress over the images that are shown to a network: a bar on a terminal, otherwise a line every few
//! seconds. Both go to standard error, since standard output is for results.

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Seconds between two lines without a terminal.
const LINE_SECONDS: u64 = 20;

/// How many images have been shown.
pub struct Images {
    bar: Option<ProgressBar>,
    quiet: bool,
    begun: Instant,
    printed: Instant,
}

impl Images {
    /// Progress before the first image.
    pub fn new(quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let style = ProgressStyle::with_template("{msg:24} {bar:30} {pos}/{len} images, {eta} to go")
                .expect("the template is valid");
            ProgressBar::new(0).with_style(style)
        });
        Images { bar, quiet, begun: Instant::now(), printed: Instant::now() }
    }

    /// Shows the number of images that are done, and the current task.
    pub fn show(&mut self, what: &str, done: u64, total: u64) {
        if let Some(bar) = &self.bar {
            bar.set_length(total);
            bar.set_message(what.to_owned());
            bar.set_position(done);
        } else if !self.quiet && done > 0 && self.printed.elapsed() > Duration::from_secs(LINE_SECONDS) {
            self.printed = Instant::now();
            let left = total.saturating_sub(done) as f64 / done as f64;
            let to_go = HumanDuration(self.begun.elapsed().mul_f64(left));
            eprintln!("{what}: {done} of {total} images, {to_go} to go");
        }
    }

    /// Removes the bar.
    pub fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
