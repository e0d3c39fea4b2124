//! The work of a study: runs spread over lanes, each trained and then measured; after each, the comparison
//! anew.

use super::plan::Plan;
use super::{StudyError, begin, check};
use crate::analysis::compare::{CompareError, compare_folders};
use crate::analysis::{self, Advance, Analysis, AnalysisError, mechanism};
use crate::config::RunConfig;
use crate::run::Weights;
use crate::theory_tables;
use crate::train::{self, Control};
use leaklab_engine::{Isa, LeakChange};
use leaklab_record::{RecordError, StudyFolder};
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
    /// Instruction set of the kernels (see [`train::Options::isa`]).
    pub isa: Isa,
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
    /// The question where robustness comes from has come this far.
    Mechanism(&'a Advance),
    /// The runs do not allow that question.
    NoMechanism(&'a mechanism::MechanismError),
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
    check(folder, &plan.config)?;
    begin(folder, &plan.config, &options.command)?;
    let study = Work {
        folder,
        options,
        watcher,
        stopped: AtomicBool::new(false),
        finished: Mutex::new(Vec::new()),
        times: Mutex::new(()),
        baseline: plan.config.baseline.clone(),
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
    study.compare()?;
    if plan.mechanism_images > 0 {
        study.mechanism(plan)?;
    }
    Ok(())
}

struct Work<'a> {
    folder: &'a StudyFolder,
    options: &'a Options,
    watcher: &'a Watcher<'a>,
    /// A lane failed or the watcher wants to stop: the others finish their batch.
    stopped: AtomicBool,
    finished: Mutex<Vec<PathBuf>>,
    times: Mutex<()>,
    baseline: Option<String>,
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
        let folder = self.folder.run(&config.key());
        let name = config.folder_name();
        let tell = |stage: Stage| self.tell(&Event::Run { index, name: &name, stage });
        let options = train::Options {
            threads: Some(threads),
            checkpoint_minutes: self.options.checkpoint_minutes,
            stop_on_divergence: false,
            data_dir: config.data_dir.clone(),
            isa: self.options.isa,
            initial: None,
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
        let options = as_trained(data_dir, pool, self.options.isa);
        let mut report = |advance: &Advance| tell(Stage::Analysing(advance)) == Control::Continue;
        // A probe is asked whether it learned, and nothing else.
        let analyses: &[Analysis] = if config.probe { &[Analysis::Generalisation] } else { &Analysis::ALL };
        match analysis::analyse(folder.path(), analyses, &options, &mut report) {
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
        if finished.is_empty() {
            return Ok(());
        }
        match compare_folders(&finished, self.baseline.as_deref(), &self.folder.compare()) {
            Ok(_) => {
                self.tell(&Event::Compared { runs: finished.len() });
                Ok(())
            }
            // No run of the baseline is finished yet: there is nothing to compare with.
            Err(AnalysisError::Compare(CompareError::NoBaseline { .. })) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Asks where robustness comes from, on all threads; a study whose runs do not allow the question goes
    /// without.
    fn mechanism(&self, plan: &Plan) -> Result<(), StudyError> {
        let begun = Instant::now();
        let pool = Arc::new(train::threads(Some(plan.threads))?);
        let options = as_trained(plan.config.base.data_dir.clone(), pool, self.options.isa);
        let runs = self.finished.lock().expect("no lane panics with the list").clone();
        let out = self.folder.compare();
        let mut report = |advance: &Advance| self.tell(&Event::Mechanism(advance)) == Control::Continue;
        match mechanism::study(&runs, self.baseline.as_deref(), &out, &options, &mut report) {
            Ok(_) => {}
            Err(AnalysisError::Interrupted) => return Err(StudyError::Interrupted),
            Err(AnalysisError::Mechanism(error)) => {
                self.tell(&Event::NoMechanism(&error));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        self.spent("mechanism", begun)?;
        self.tell(&Event::Compared { runs: runs.len() });
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
            leaklab_record::atomic::write(&mark, b"").map_err(RecordError::io(&mark, "cannot be written"))?;
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

/// Options of analyses of runs as they were trained.
fn as_trained(data_dir: Option<PathBuf>, pool: Arc<rayon::ThreadPool>, isa: Isa) -> analysis::Options {
    analysis::Options {
        images: None,
        noise: Vec::new(),
        weights: Weights::Last,
        leak: LeakChange::default(),
        data_dir,
        pool,
        isa,
    }
}
