//! The work of a study: runs spread over lanes, each trained and then measured; after each, the comparison anew.

use super::plan::Plan;
use super::{StudyError, StudyFolder};
use crate::analysis::compare::compare_folders;
use crate::analysis::{self, Advance, Analysis, AnalysisError};
use crate::config::RunConfig;
use crate::run::Weights;
use crate::theory_tables;
use crate::train::{self, Control};
use leaklab_record::RecordError;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// What does not change a study's results.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The command that was given, for the page.
    pub command: String,
    /// Minutes between checkpoints within an epoch.
    pub checkpoint_minutes: f64,
}

/// What a run is being put through.
#[derive(Debug)]
pub enum Stage<'a> {
    /// Something happened in training.
    Training(&'a train::Event<'a>),
    /// Training has ended.
    Trained(&'a train::Summary),
    /// An analysis has come this far.
    Analysing(&'a Advance),
    /// All analyses are done.
    Analysed,
}

/// Something that happened. Events of several runs may come at once, from several threads.
#[derive(Debug)]
pub enum Event<'a> {
    /// Something happened to a run.
    Run {
        /// Its place in the plan.
        index: usize,
        /// Name of its folder.
        name: &'a str,
        /// What happened.
        stage: Stage<'a>,
    },
    /// The theory's tables are written.
    Theory,
    /// The comparison's tables are written anew.
    Compared {
        /// Runs in the comparison.
        runs: usize,
    },
}

/// Who is told what happens, and answers whether to go on.
pub type Watcher<'a> = dyn Fn(&Event) -> Control + Sync + 'a;

/// Does what a study still needs.
pub fn run(
    plan: &Plan,
    folder: &StudyFolder,
    options: &Options,
    watcher: &Watcher,
) -> Result<(), StudyError> {
    let _lock = folder.lock()?;
    folder.check(&plan.config)?;
    folder.begin(&plan.config, &options.command)?;
    let study = Work {
        folder,
        options,
        watcher,
        stopped: AtomicBool::new(false),
        finished: Mutex::new(Vec::new()),
        times: Mutex::new(()),
    };
    study.theory()?;
    let mut runs: VecDeque<(usize, RunConfig)> = plan.config.runs().into_iter().enumerate().collect();
    let lanes = plan.lanes();
    // Full rounds first, one run per lane; what is left over shares the threads.
    let rest = runs.split_off(runs.len() - runs.len() % lanes);
    for queue in [runs, rest] {
        let lanes = lanes.min(queue.len());
        if lanes > 0 {
            study.lanes(queue, lanes, (plan.threads / lanes).max(1))?;
        }
    }
    study.compare()
}

struct Work<'a> {
    folder: &'a StudyFolder,
    options: &'a Options,
    watcher: &'a Watcher<'a>,
    /// A lane failed or the watcher wants to stop: the others finish their batch.
    stopped: AtomicBool,
    finished: Mutex<Vec<PathBuf>>,
    times: Mutex<()>,
}

impl Work<'_> {
    fn tell(&self, event: &Event) -> Control {
        let control = (self.watcher)(event);
        if control == Control::Stop {
            self.stopped.store(true, Ordering::SeqCst);
        }
        if self.stopped.load(Ordering::SeqCst) { Control::Stop } else { Control::Continue }
    }

    fn lanes(
        &self,
        queue: VecDeque<(usize, RunConfig)>,
        lanes: usize,
        threads: usize,
    ) -> Result<(), StudyError> {
        let queue = Mutex::new(queue);
        let failure: Mutex<Option<StudyError>> = Mutex::new(None);
        std::thread::scope(|scope| {
            for _ in 0..lanes {
                scope.spawn(|| {
                    loop {
                        let next = queue.lock().expect("no lane panics with the queue").pop_front();
                        let Some((index, config)) = next else { break };
                        if self.stopped.load(Ordering::SeqCst) {
                            break;
                        }
                        if let Err(error) = self.one(index, &config, threads) {
                            self.stopped.store(true, Ordering::SeqCst);
                            let mut failure = failure.lock().expect("no lane panics with the failure");
                            // What went wrong is worth more than that the others were stopped for it.
                            if failure.is_none() || matches!(*failure, Some(StudyError::Interrupted)) {
                                *failure = Some(error);
                            }
                        }
                    }
                });
            }
        });
        match failure.into_inner().expect("the lanes have ended") {
            Some(error) => Err(error),
            None if self.stopped.load(Ordering::SeqCst) => Err(StudyError::Interrupted),
            None => Ok(()),
        }
    }

    /// Trains and measures one run, then compares what is there.
    fn one(&self, index: usize, config: &RunConfig, threads: usize) -> Result<(), StudyError> {
        let folder = self.folder.run(config);
        let name = config.folder_name();
        let tell = |stage: Stage| self.tell(&Event::Run { index, name: &name, stage });
        let options = train::Options {
            threads: Some(threads),
            checkpoint_minutes: self.options.checkpoint_minutes,
            stop_on_divergence: false,
            data_dir: config.data_dir.clone(),
        };
        let mut report = |event: train::Event| tell(Stage::Training(&event));
        let summary = if folder.exists() {
            train::resume(folder.path(), &options, &mut report)?
        } else {
            train::train(config, folder.path(), &options, &mut report)?
        };
        if summary.outcome == train::Outcome::Interrupted || tell(Stage::Trained(&summary)) == Control::Stop {
            return Err(StudyError::Interrupted);
        }
        let begun = Instant::now();
        let pool = Arc::new(train::threads(Some(threads))?);
        let data_dir = config.data_dir.clone();
        let options =
            analysis::Options { images: None, noise: Vec::new(), weights: Weights::Last, data_dir, pool };
        let mut report = |advance: &Advance| tell(Stage::Analysing(advance)) == Control::Continue;
        match analysis::analyse(folder.path(), &Analysis::ALL, &options, &mut report) {
            Ok(_) => {}
            Err(AnalysisError::Interrupted) => return Err(StudyError::Interrupted),
            // A run that died before its first epoch has nothing to measure; the comparison says so.
            Err(AnalysisError::NoEpoch { .. }) if summary.outcome == train::Outcome::Diverged => {}
            Err(error) => return Err(error.into()),
        }
        self.spent("analyses", begun)?;
        self.finished.lock().expect("no lane panics with the list").push(folder.path().to_owned());
        self.compare()?;
        tell(Stage::Analysed);
        Ok(())
    }

    /// Writes the comparison of the runs that are finished.
    fn compare(&self) -> Result<(), StudyError> {
        let mut finished = self.finished.lock().expect("no lane panics with the list");
        // The order of finishing must not show in the tables.
        finished.sort();
        if !finished.is_empty() {
            compare_folders(&finished, &self.folder.compare())?;
            self.tell(&Event::Compared { runs: finished.len() });
        }
        Ok(())
    }

    /// Writes the theory's tables, once: they depend on nothing in the study.
    fn theory(&self) -> Result<(), StudyError> {
        let folder = self.folder.theory();
        let begun = Instant::now();
        if !folder.join("complete").is_file() {
            std::fs::create_dir_all(&folder).map_err(RecordError::io(&folder, "cannot be written"))?;
            for table in theory_tables::tables(Some(theory_tables::Simulation::default())) {
                table.write(&folder)?;
            }
            let mark = folder.join("complete");
            std::fs::write(&mark, "").map_err(RecordError::io(&mark, "cannot be written"))?;
            self.spent("theory", begun)?;
        }
        self.tell(&Event::Theory);
        Ok(())
    }

    /// Notes the time of a piece of work, apart from everything that must come out the same.
    fn spent(&self, what: &str, since: Instant) -> Result<(), StudyError> {
        let _one_at_a_time = self.times.lock().expect("no lane panics with the times");
        let line = serde_json::json!({ "what": what, "seconds": since.elapsed().as_secs_f64() });
        leaklab_record::lines::append(&self.folder.times(), &line)?;
        Ok(())
    }
}
