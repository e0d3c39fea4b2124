//! Progress of a study: one bar for all the work on a terminal, otherwise a line every few seconds.

use indicatif::{ProgressBar, ProgressStyle};
use leaklab_lab::config::tested_on;
use leaklab_lab::study::{Event, Plan, RunState, Stage};
use leaklab_lab::train;
use leaklab_record::text::counted;
use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Seconds between two lines without a terminal.
const LINE_SECONDS: u64 = 20;

/// Shows a study's events; several runs may report at the same time.
pub struct Progress {
    /// For each run: planned epochs, and planned processor seconds of an epoch and of the analyses.
    planned: Vec<(u64, f64, f64)>,
    mechanism_seconds: f64,
    total: f64,
    begun: Instant,
    quiet: bool,
    state: Mutex<State>,
}

struct State {
    /// For each run: trained epochs, with the fraction of the current one, and the finished fraction of its
    /// analyses.
    runs: Vec<(f64, f64)>,
    /// Finished fraction of the analysis where robustness comes from.
    mechanism: f64,
    /// Planned seconds of the work that was done before this process.
    before: f64,
    bar: Option<ProgressBar>,
    printed: Instant,
}

impl Progress {
    /// Progress at the beginning: what the plan found to be done already.
    pub fn new(plan: &Plan, quiet: bool) -> Self {
        let analysed = |run: &RunState| if run.complete { 1.0 } else { 0.0 };
        let runs: Vec<(f64, f64)> = plan.runs.iter().map(|run| (run.epochs as f64, analysed(run))).collect();
        let planned: Vec<(u64, f64, f64)> = plan
            .runs
            .iter()
            .map(|run| (run.planned, plan.epoch_seconds(run), plan.analysis_seconds(run)))
            .collect();
        let before = done_of(&runs, &planned);
        let to_do = plan.runs.iter().map(|run| plan.run_seconds(run)).sum::<f64>() + plan.mechanism_seconds();
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let style = ProgressStyle::with_template("{bar:32} {percent:>3} % {msg}");
            let bar = ProgressBar::new(1000);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Progress {
            planned,
            mechanism_seconds: plan.mechanism_seconds(),
            total: before + to_do,
            begun: Instant::now(),
            quiet,
            state: Mutex::new(State { runs, mechanism: 0.0, before, bar, printed: Instant::now() }),
        }
    }

    /// Shows an event.
    pub fn show(&self, event: &Event) {
        let mut state = self.state();
        let (index, name, stage) = match event {
            Event::Run { index, name, stage } => (index, name, stage),
            Event::Mechanism(advance) => {
                state.mechanism = advance.done as f64 / advance.total.max(1) as f64;
                return self
                    .advance(&mut state, &format!("where robustness comes from: {}", advance.stimulus));
            }
            Event::NoMechanism(error) => {
                return self
                    .print(&mut state, &format!("where robustness comes from is not measured: {error}"));
            }
            Event::Waiting { what, holder } => {
                return self.advance(&mut state, &format!("waiting for {what}: {holder}"));
            }
            Event::TheoryCurve { curve: 0 } => return self.print(&mut state, "computing the theory"),
            Event::TheoryCurve { .. } | Event::Theory | Event::Compared { .. } => return,
        };
        match stage {
            Stage::Training(train::Event::Started { epoch, batch, batches, .. }) => {
                // The plan counts whole epochs; a run that was stopped within one resumes there.
                let resumed = *epoch as f64 + *batch as f64 / (*batches).max(1) as f64;
                state.before += (resumed - state.runs[*index].0) * self.planned[*index].1;
                state.runs[*index].0 = resumed;
            }
            Stage::Training(train::Event::Batch(batch)) => {
                state.runs[*index].0 =
                    (batch.epoch - 1) as f64 + batch.batch as f64 / batch.batches.max(1) as f64;
            }
            Stage::Training(train::Event::Epoch(epoch)) => state.runs[*index].0 = epoch.epoch as f64,
            Stage::Training(train::Event::Notice(text)) => warn(&state, &format!("{name}: {text}")),
            Stage::Training(train::Event::Health(notice)) => {
                warn(
                    &state,
                    &format!("{name}, epoch {}: {}; {}", notice.epoch, notice.message, notice.advice),
                );
            }
            Stage::Training(_) => {}
            Stage::Trained(summary) => {
                state.runs[*index].0 = self.planned[*index].0 as f64;
                let last = summary.last.as_ref().and_then(|last| last.test_accuracy);
                let which = tested_on(summary.validation);
                let accuracy =
                    last.map_or(String::new(), |a| format!(", {which} accuracy {:.2} %", 100.0 * a));
                let epochs = counted(summary.epochs, "epoch");
                self.print(&mut state, &format!("{name}: {epochs} trained{accuracy}"));
            }
            Stage::Analysing(advance) => {
                state.runs[*index].1 = advance.done as f64 / advance.total.max(1) as f64;
            }
            Stage::Analysed => state.runs[*index] = (self.planned[*index].0 as f64, 1.0),
        }
        self.advance(&mut state, &format!("{name}: {}", doing(stage)));
    }

    fn advance(&self, state: &mut State, doing: &str) {
        let elapsed = self.begun.elapsed().as_secs_f64();
        let (fraction, to_go) = self.remaining(state, elapsed);
        let to_go = to_go.map_or(String::new(), |seconds| format!(", about {} to go", duration(seconds)));
        match &state.bar {
            Some(bar) => {
                bar.set_position((1000.0 * fraction) as u64);
                bar.set_message(format!("{doing}{to_go}"));
            }
            None if state.printed.elapsed() > Duration::from_secs(LINE_SECONDS) => {
                self.print(state, &format!("{:.0} % done{to_go}; {doing}", 100.0 * fraction));
            }
            None => {}
        }
    }

    /// The finished fraction of the study, and the seconds that the rest will take at the speed of this
    /// process, which has worked for `elapsed` seconds.
    fn remaining(&self, state: &State, elapsed: f64) -> (f64, Option<f64>) {
        let done = done_of(&state.runs, &self.planned) + state.mechanism * self.mechanism_seconds;
        let fraction = if self.total > 0.0 { (done / self.total).clamp(0.0, 1.0) } else { 1.0 };
        let here = done - state.before;
        let known = here > 0.0 && elapsed > 1.0;
        (fraction, known.then(|| elapsed * (self.total - done).max(0.0) / here))
    }

    /// Prints a line without disturbing the bar.
    pub fn line(&self, text: &str) {
        self.print(&mut self.state(), text);
    }

    fn print(&self, state: &mut State, text: &str) {
        state.printed = Instant::now();
        match &state.bar {
            _ if self.quiet => {}
            Some(bar) => bar.suspend(|| println!("{text}")),
            None => println!("{text}"),
        }
    }

    /// Removes the bar.
    pub fn end(&self) {
        if let Some(bar) = self.state().bar.take() {
            bar.finish_and_clear();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Planned processor seconds of the work that is done.
fn done_of(runs: &[(f64, f64)], planned: &[(u64, f64, f64)]) -> f64 {
    runs.iter().zip(planned).map(|(done, (_, epoch, analyses))| done.0 * epoch + done.1 * analyses).sum()
}

fn warn(state: &State, text: &str) {
    match &state.bar {
        Some(bar) => bar.suspend(|| eprintln!("warning: {text}")),
        None => eprintln!("warning: {text}"),
    }
}

fn doing(stage: &Stage) -> String {
    match stage {
        Stage::Training(train::Event::Batch(batch)) => format!("epoch {} of {}", batch.epoch, batch.epochs),
        Stage::Training(train::Event::Evaluated { .. }) => "evaluating".to_owned(),
        Stage::Training(_) => "training".to_owned(),
        Stage::Trained(_) => "trained".to_owned(),
        Stage::Analysing(advance) => advance.stimulus.clone(),
        Stage::Analysed => "measured".to_owned(),
    }
}

/// A time in words.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{:.0} s", s.max(1.0)),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} days", s / 86400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_of_an_earlier_process_do_not_count_as_speed() {
        let state = State {
            runs: vec![(1.0, 0.0)],
            mechanism: 0.0,
            before: 100.0,
            bar: None,
            printed: Instant::now(),
        };
        let progress = Progress {
            planned: vec![(4, 100.0, 0.0)],
            mechanism_seconds: 0.0,
            total: 400.0,
            begun: Instant::now(),
            quiet: true,
            state: Mutex::new(state),
        };
        let (images, test_images, threads) = (100, 10, 1);
        let (epochs, batches) = (4, 10);
        let started = train::Event::Started {
            images,
            test_images,
            validation: false,
            batches,
            epochs,
            epoch: 1,
            batch: 8,
            threads,
        };
        progress.show(&Event::Run { index: 0, name: "run", stage: Stage::Training(&started) });
        assert_eq!(progress.remaining(&progress.state(), 5.0), (0.45, None));
        // Two more batches, planned for 20 s, have taken 10 s: the other 200 s will take 100.
        progress.state().runs[0].0 = 2.0;
        assert_eq!(progress.remaining(&progress.state(), 10.0), (0.5, Some(100.0)));
    }
}
