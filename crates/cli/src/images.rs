//! Progress over images that are shown to a network: a bar on a terminal, a line now and then elsewhere. Both
//! are on standard error, since standard output is for results.

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Seconds between two lines where there is no terminal.
const LINE_SECONDS: u64 = 20;

/// How many images have been shown.
pub struct Images {
    bar: Option<ProgressBar>,
    quiet: bool,
    begun: Instant,
    said: Instant,
}

impl Images {
    /// Nothing shown yet.
    pub fn new(quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let style = ProgressStyle::with_template("{msg:24} {bar:30} {pos}/{len} images, {eta} to go")
                .expect("a template of indicatif's own words");
            ProgressBar::new(0).with_style(style)
        });
        Images { bar, quiet, begun: Instant::now(), said: Instant::now() }
    }

    /// So many of them, with a word on what is under way.
    pub fn show(&mut self, what: &str, done: u64, total: u64) {
        if let Some(bar) = &self.bar {
            bar.set_length(total);
            bar.set_message(what.to_owned());
            bar.set_position(done);
        } else if !self.quiet && done > 0 && self.said.elapsed() > Duration::from_secs(LINE_SECONDS) {
            self.said = Instant::now();
            let left = total.saturating_sub(done) as f64 / done as f64;
            let to_go = HumanDuration(self.begun.elapsed().mul_f64(left));
            eprintln!("{what}: {done} of {total} images, {to_go} to go");
        }
    }

    /// Takes the bar away.
    pub fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
