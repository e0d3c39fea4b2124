//! Progress of training: a bar on a terminal, otherwise plain lines, JSON lines for programs, or nothing.

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use leaklab_lab::train::{Batch, Event};
use leaklab_record::metrics::Epoch;
use leaklab_record::text::counted;
use serde_json::json;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Seconds between two plain lines within an epoch.
const PLAIN_SECONDS: u64 = 30;

/// How to show progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A bar, and one line per epoch.
    Bar,
    /// One line per epoch, and further lines within long epochs.
    Plain,
    /// One JSON object per event on standard output.
    Json,
    /// Warnings only.
    Quiet,
}

impl Style {
    /// The style for these flags on this terminal.
    pub fn choose(quiet: bool, json: bool) -> Self {
        match (json, quiet, std::io::stderr().is_terminal()) {
            (true, _, _) => Style::Json,
            (_, true, _) => Style::Quiet,
            (_, _, true) => Style::Bar,
            _ => Style::Plain,
        }
    }
}

/// Shows one run's events.
pub struct Progress {
    style: Style,
    bar: Option<ProgressBar>,
    printed: Instant,
    /// What the images of the evaluation are called.
    split: &'static str,
}

impl Progress {
    /// Progress before the first event.
    pub fn new(style: Style) -> Self {
        Progress { style, bar: None, printed: Instant::now(), split: "test" }
    }

    /// Shows an event.
    pub fn show(&mut self, event: &Event) {
        if self.style == Style::Json {
            self.show_json(event);
            return;
        }
        match event {
            Event::Started { images, test_images, validation, epochs, epoch, batch, threads, .. } => {
                self.split = if *validation { "validation" } else { "test" };
                let from = match (epoch, batch) {
                    (0, 0) => String::new(),
                    (_, 0) => format!(", continued after epoch {epoch}"),
                    _ => format!(", continued in epoch {} after batch {batch}", epoch + 1),
                };
                self.line(&format!(
                    "{images} training and {test_images} {} images, {}, {}{from}",
                    self.split,
                    counted(*epochs, "epoch"),
                    counted(*threads as u64, "thread")
                ));
            }
            Event::Notice(text) => self.warn(text),
            Event::Health(notice) => {
                self.warn(&format!("epoch {}: {}; {}", notice.epoch, notice.message, notice.advice));
            }
            Event::Batch(batch) => self.batch(batch),
            Event::Evaluated { done, total } => {
                if let Some(bar) = &self.bar {
                    bar.set_message(format!("{} images: {done}/{total}", self.split));
                }
            }
            Event::Epoch(epoch) => {
                if let Some(bar) = self.bar.take() {
                    bar.finish_and_clear();
                }
                self.line(&epoch_line(epoch, self.split));
            }
            Event::Checkpoint { .. } => {}
        }
    }

    fn batch(&mut self, batch: &Batch) {
        let to_go = HumanDuration(Duration::from_secs_f64(batch.seconds_to_go.clamp(0.0, 1e9)));
        let state = format!(
            "sse {:.3}, accuracy {:.1} %, {:.1} images/s, {to_go} to go",
            batch.sse,
            100.0 * batch.accuracy,
            batch.images_per_second
        );
        match self.style {
            Style::Bar => {
                let bar = self.bar.get_or_insert_with(|| {
                    let style = ProgressStyle::with_template("{prefix} {bar:24} {pos}/{len} {msg}");
                    let bar = ProgressBar::new(batch.batches);
                    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
                    bar.set_prefix(format!("epoch {}/{}", batch.epoch, batch.epochs));
                    bar
                });
                bar.set_position(batch.batch);
                bar.set_message(state);
            }
            Style::Plain if self.printed.elapsed() > Duration::from_secs(PLAIN_SECONDS) => {
                let (epoch, epochs) = (batch.epoch, batch.epochs);
                self.line(&format!(
                    "epoch {epoch}/{epochs}, batch {}/{}: {state}",
                    batch.batch, batch.batches
                ));
            }
            Style::Plain | Style::Json | Style::Quiet => {}
        }
    }

    fn show_json(&mut self, event: &Event) {
        let value = match event {
            Event::Started { images, test_images, validation, batches, epochs, epoch, batch, threads } => {
                json!({
                    "event": "started", "images": images, "test_images": test_images,
                    "validation": validation, "batches": batches, "epochs": epochs,
                    "epoch": epoch, "batch": batch, "threads": threads,
                })
            }
            Event::Notice(text) => json!({"event": "notice", "message": text}),
            Event::Health(notice) => json!({"event": "health", "notice": notice}),
            Event::Epoch(epoch) => json!({"event": "epoch", "metrics": epoch}),
            Event::Checkpoint { epoch, batch } => {
                json!({"event": "checkpoint", "epoch": epoch, "batch": batch})
            }
            Event::Batch(batch) if self.printed.elapsed() > Duration::from_secs(1) => json!({
                "event": "batch", "epoch": batch.epoch, "batch": batch.batch, "batches": batch.batches,
                "sse": batch.sse, "accuracy": batch.accuracy, "images_per_second": batch.images_per_second,
                "seconds_to_go": batch.seconds_to_go,
            }),
            Event::Batch(_) | Event::Evaluated { .. } => return,
        };
        self.printed = Instant::now();
        println!("{value}");
    }

    fn line(&mut self, text: &str) {
        self.printed = Instant::now();
        match (&self.bar, self.style) {
            (_, Style::Quiet | Style::Json) => {}
            (Some(bar), _) => bar.suspend(|| println!("{text}")),
            (None, _) => println!("{text}"),
        }
    }

    fn warn(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("warning: {text}")),
            None => eprintln!("warning: {text}"),
        }
    }
}

/// An epoch in one line.
fn epoch_line(epoch: &Epoch, split: &str) -> String {
    let number = |x: Option<f64>| x.map_or("-".to_owned(), |x| format!("{x:.3}"));
    let percent = |x: Option<f64>| x.map_or("-".to_owned(), |x| format!("{:.2} %", 100.0 * x));
    format!(
        "epoch {:>3}: train {} sse {}, {split} {} sse {}, spikes {}, {:.1} s, {:.1} images/s",
        epoch.epoch,
        percent(Some(epoch.train_accuracy)),
        number(epoch.train_sse),
        percent(epoch.test_accuracy),
        number(epoch.test_sse),
        percent(epoch.spike_rate),
        epoch.seconds,
        epoch.images_per_second
    )
}
