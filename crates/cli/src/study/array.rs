//! One task of a study that a batch system distributes over machines: a single run (`--run K`), or the
//! comparison when all are done (`--compare`).

use super::{Arguments, object, refused};
use crate::Outcome;
use crate::images::Images;
use crate::interrupt::Interrupt;
use crate::progress::{Progress, Style};
use leaklab_lab::config::StudyConfig;
use leaklab_lab::study::{self, Event, Stage};
use leaklab_lab::train::Control;
use leaklab_record::StudyFolder;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Seconds between two lines while this process waits for another one.
const LINE_SECONDS: u64 = 20;

/// Shows the events of a single run, or of a comparison.
struct Shown {
    quiet: bool,
    training: Progress,
    images: Images,
    /// When a line about waiting was printed last.
    waited: Option<Instant>,
}

impl Shown {
    fn new(arguments: &Arguments) -> Mutex<Self> {
        let quiet = arguments.quiet || arguments.json;
        let training = Progress::new(Style::choose(quiet, false));
        Mutex::new(Shown { quiet, training, images: Images::new(quiet), waited: None })
    }

    fn show(&mut self, event: &Event) {
        match event {
            Event::Run { stage: Stage::Training(event), .. } => self.training.show(event),
            Event::Run { stage: Stage::Analysing(advance), .. } | Event::Mechanism(advance) => {
                self.images.show(&advance.stimulus, advance.done, advance.total);
            }
            Event::Waiting { what, holder } => {
                let due = self.waited.is_none_or(|last| last.elapsed() > Duration::from_secs(LINE_SECONDS));
                if due && !self.quiet {
                    println!("waiting for {what}: {holder}");
                    self.waited = Some(Instant::now());
                }
            }
            Event::NoMechanism(error) => {
                eprintln!("warning: where robustness comes from is not measured: {error}");
            }
            Event::Run { stage: Stage::Trained(_) | Stage::Analysed, .. }
            | Event::TheoryCurve { .. }
            | Event::Theory
            | Event::Compared { .. } => {}
        }
    }
}

/// Executes one run.
pub fn run(
    arguments: &Arguments,
    config: &StudyConfig,
    folder: &StudyFolder,
    index: usize,
    threads: usize,
) -> Outcome {
    let shown = Shown::new(arguments);
    let interrupt = Interrupt::listen("finishing the batch and writing a checkpoint");
    let watcher = |event: &Event| {
        shown.lock().unwrap_or_else(std::sync::PoisonError::into_inner).show(event);
        if interrupt.asked() { Control::Stop } else { Control::Continue }
    };
    study::run_one(config, folder, index, threads, &arguments.options(), &watcher).map_err(refused)?;
    let run = &config.runs()[index];
    if arguments.json {
        println!("{}", object::run_of(run, folder)?);
    } else {
        println!("{}", folder.run(&run.key()).path().display());
    }
    Ok(())
}

/// Compares the runs that are done and writes the page.
pub fn compare(arguments: &Arguments, config: &StudyConfig, folder: &StudyFolder, threads: usize) -> Outcome {
    let begun = Instant::now();
    let shown = Shown::new(arguments);
    let interrupt = Interrupt::listen("finishing the current images; finished passes are stored");
    let watcher = |event: &Event| {
        shown.lock().unwrap_or_else(std::sync::PoisonError::into_inner).show(event);
        if interrupt.asked() { Control::Stop } else { Control::Continue }
    };
    let missing = study::compare(config, folder, threads, &arguments.options(), &watcher).map_err(refused)?;
    let page = leaklab_report::study::write(folder.path(), None)?;
    if arguments.json {
        println!("{}", object::done(config, folder, &page, begun.elapsed())?);
    } else {
        println!("{}", page.display());
    }
    if missing.is_empty() {
        return Ok(());
    }
    let (count, all) = (missing.len(), config.runs().len());
    Err(format!("{count} of {all} runs are not done, and not compared: {}", missing.join(", ")).into())
}
