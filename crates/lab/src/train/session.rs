//! The work of one process on a run, from the last good checkpoint (or none) to the next.

use super::ranks::{Order, Ranks};
use super::replica::{Replica, Times, presentations};
use super::{Control, Event, Options, Outcome, Summary, TrainError};
use super::{epoch::scalars, initial, worker};
use crate::config::{Binds, RunConfig};
use crate::data::Dataset;
use crate::health::Health;
use crate::run::{self, RunError, network_of};
use leaklab_engine::Network;
use leaklab_engine::optimiser::{Optimiser, State};
use leaklab_record::events::{Events, Scalars};
use leaklab_record::health::Notice;
use leaklab_record::log::Log;
use leaklab_record::metrics::{self, Epoch};
use leaklab_record::{
    Checkpoint, Header, Machine, Position, RecordError, RunFolder, RunLock, Tensor, checkpoint, health,
    machine,
};
use rayon::ThreadPool;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A run being trained.
pub(super) struct Session {
    pub(super) replica: Replica,
    pub(super) folder: RunFolder,
    pub(super) lock: Arc<RunLock>,
    pub(super) options: Options,
    pub(super) position: Position,
    pub(super) health: Health,
    pub(super) last: Option<Epoch>,
    pub(super) events: Events,
    pub(super) log: Log,
    pub(super) last_save: Instant,
    /// Position of the last checkpoint: epoch and batch.
    saved: Option<(u64, u64)>,
    /// Weights and optimiser before the last update; read only if that update fails.
    pub(super) before: (Vec<f32>, leaklab_engine::optimiser::State),
    /// Digest of the training images.
    data: String,
    /// Notices for the user, reported before training continues.
    notices: Vec<String>,
}

impl Session {
    /// Opens a run whose `run.toml` is in place, and truncates its records to its checkpoint.
    pub(super) fn open(
        config: RunConfig,
        folder: RunFolder,
        lock: Arc<RunLock>,
        dataset: Dataset,
        pool: ThreadPool,
        options: &Options,
    ) -> Result<Self, TrainError> {
        let data = dataset.train.digest();
        let mut notices = Vec::new();
        let (network, state, position, saved) = match checkpoint::recover(&folder, &lock)? {
            Some(found) => {
                notices.extend(found.instead_of.as_ref().map(run::previous_used));
                let header = &found.checkpoint.header;
                let changed = run::changes(&config, header, Binds::Course);
                if !changed.is_empty() {
                    notices.push(format!(
                        "run.toml was changed since the last checkpoint ({}); the rest of the run follows \
                         the new settings",
                        changed.join("; ")
                    ));
                }
                // A position within an epoch counts batches.
                let other_batch = header.settings.get("batch") != config.bound().get("batch");
                if header.position.batch > 0 && other_batch {
                    return Err(RunError::Mismatch {
                        path: folder.path().to_owned(),
                        reason: format!(
                            "an epoch that was begun with another batch cannot be continued ({})",
                            changed.join("; ")
                        ),
                    }
                    .into());
                }
                if header.data != data {
                    return Err(RunError::OtherData {
                        path: folder.path().to_owned(),
                        dataset: dataset.name,
                    }
                    .into());
                }
                let network = network_of(&config, &found.checkpoint, folder.path())?;
                let state = optimiser_state(&config, &found.checkpoint, &network);
                let position = header.position.clone();
                let saved = Some((position.epoch, position.batch));
                (network, state, position, saved)
            }
            None => {
                // A run that was killed before its first checkpoint may have the metrics of one epoch.
                let recorded = metrics::read(&folder.metrics())?.len();
                if recorded > 1 {
                    return Err(RunError::NoCheckpoint { path: folder.path().to_owned(), recorded }.into());
                }
                let (training, _) = presentations(&config, &dataset, options.isa);
                let initial = || initial::network(&config, &training, &dataset.train);
                let mut network = pool.install(initial)?;
                if let Some(initial) = &options.initial {
                    network.weights.clone_from(&initial.weights);
                }
                let state = config.optimiser().start(network.weights.len());
                (network, state, Position { seed: config.seed, ..Position::default() }, None)
            }
        };
        lock.check()?;
        let mut epochs = metrics::cut_after(&folder.metrics(), position.epoch)?;
        let scalars: Vec<Scalars> = epochs.iter().map(scalars).collect();
        let (events, damage) = Events::open(&folder.events(), &scalars)?;
        notices.extend(damage.map(|damage| format!("{damage}; it is written again from metrics.jsonl")));
        let last = epochs.pop();
        health::cut_after(&folder.health(), position.epoch + u64::from(position.batch > 0))?;
        let noticed = health::read(&folder.health())?;
        let counts = dataset.train.class_counts(dataset.classes);
        notices.extend(unlearnable(&counts, &dataset.class_names));
        let mut replica = Replica::new(config, dataset, pool, network, state, options.isa, &options.ranks)?;
        if let Ranks::World(world) = &options.ranks {
            replica.threads = worker::meet(&**world, options, replica.threads)?;
        }
        Ok(Session {
            health: Health::new(
                replica.config.leak.clone(),
                f64::from(replica.config.v_th),
                noticed,
                position.first_squared_error,
            ),
            events,
            log: Log::open(&folder.log())?,
            options: options.clone(),
            last_save: Instant::now(),
            replica,
            folder,
            lock,
            position,
            last,
            saved,
            before: Default::default(),
            data,
            notices,
        })
    }

    /// Trains until the end, or until the watcher or the run's health stops it.
    pub(super) fn run(mut self, report: &mut dyn FnMut(Event) -> Control) -> Result<Summary, TrainError> {
        let (epoch, batch) = (self.position.epoch, self.position.batch);
        if let Ranks::World(world) = &self.options.ranks {
            worker::introduce(&**world, &self.replica, &self.folder, &self.checkpoint(true))?;
        }
        let batches = self.replica.batches();
        let started = Event::Started {
            images: self.replica.dataset.train.len(),
            test_images: self.replica.dataset.test.len(),
            validation: self.replica.config.validation > 0.0,
            batches,
            epochs: self.replica.config.epochs,
            epoch,
            batch,
            threads: self.replica.threads,
        };
        for notice in std::mem::take(&mut self.notices) {
            self.write_log(&notice)?;
            report(Event::Notice(&notice));
        }
        // A finished run is not changed.
        let finished = self.saved.is_some() && epoch >= self.replica.config.epochs;
        if !finished {
            let version = env!("CARGO_PKG_VERSION");
            let epochs = self.replica.config.epochs;
            self.write_log(&format!(
                "leaklab {version}: {epoch} epochs and {batch} batches done, {epochs} epochs in all"
            ))?;
            let (ranks, threads) = (self.replica.ranks.place().ranks, self.replica.threads);
            if ranks > 1 {
                self.write_log(&format!("{ranks} processes with {threads} threads in all"))?;
            }
            self.lock.check()?;
            machine::note(&self.folder.machines(), &Machine::here(self.options.isa), epoch)?;
        }
        let mut stop = report(started) == Control::Stop;
        if self.saved.is_none() {
            // Shows, before any work is done, that there is space for a checkpoint.
            self.save(report)?;
        }
        let mut outcome = Outcome::Finished;
        while self.position.epoch < self.replica.config.epochs {
            if stop {
                outcome = Outcome::Interrupted;
                break;
            }
            match self.epoch(report)? {
                None => {}
                Some(end) => {
                    outcome = end;
                    break;
                }
            }
            stop = self.options.stop_on_divergence && self.dying();
            if stop {
                outcome = Outcome::Diverged;
                break;
            }
        }
        self.replica.tell(Order::Leave)?;
        let word = match outcome {
            Outcome::Finished => "finished",
            Outcome::Interrupted => "stopped, can be resumed",
            Outcome::Diverged => "stopped, diverged",
        };
        if !finished {
            self.write_log(word)?;
        }
        Ok(Summary {
            run: self.folder.path().to_owned(),
            outcome,
            epochs: self.position.epoch,
            last: self.last,
            best_epoch: self.position.best_epoch,
            best_accuracy: self.position.best_accuracy,
            notices: self.health.notices().to_vec(),
            validation: self.replica.config.validation,
        })
    }

    fn dying(&self) -> bool {
        let silent = |rate: Option<f64>| rate.is_some_and(|rate| rate < crate::health::SILENT);
        let now = self.last.as_ref().is_some_and(|last| last.layers.iter().any(|l| silent(l.spike_rate)));
        now || self.health.has_exploded()
    }

    /// Writes a checkpoint of the current state.
    pub(super) fn save(&mut self, report: &mut dyn FnMut(Event) -> Control) -> Result<(), TrainError> {
        let checkpoint = self.checkpoint(true);
        let result = checkpoint.save(&self.folder, &self.lock);
        self.written(result)?;
        let (epoch, batch) = (self.position.epoch, self.position.batch);
        self.saved = Some((epoch, batch));
        self.last_save = Instant::now();
        report(Event::Checkpoint { epoch, batch });
        Ok(())
    }

    /// The current state of the run, with or without the optimiser's state.
    pub(super) fn checkpoint(&self, with_optimiser: bool) -> Checkpoint {
        let parameters = self.replica.config.network.parameters().iter();
        let mut tensors: Vec<Tensor> = parameters
            .map(|p| Tensor {
                name: p.name.clone(),
                shape: p.shape.clone(),
                values: self.replica.network.weights[p.offset..p.offset + p.len].to_vec(),
            })
            .collect();
        let mut position = Position { optimiser_steps: None, ..self.position.clone() };
        if with_optimiser {
            let state = &self.replica.state;
            if !state.moments.is_empty() && state.steps != position.updates {
                position.optimiser_steps = Some(state.steps);
            }
            let moments = moment_names(self.replica.config.optimiser()).iter().zip(&state.moments);
            tensors.extend(moments.map(|(name, values)| Tensor {
                name: (*name).to_owned(),
                shape: vec![values.len()],
                values: values.clone(),
            }));
        }
        let header = Header {
            format: checkpoint::FORMAT,
            checksum: String::new(),
            position,
            settings: self.replica.config.bound(),
            data: self.data.clone(),
        };
        Checkpoint { header, tensors }
    }

    /// Records health notices and reports them to the watcher.
    pub(super) fn notice(
        &mut self,
        notices: Vec<Notice>,
        report: &mut dyn FnMut(Event) -> Control,
    ) -> Result<(), TrainError> {
        for notice in notices {
            let result = self.lock.check().and_then(|()| health::append(&self.folder.health(), &notice));
            self.written(result)?;
            self.write_log(&format!("epoch {}: {}; {}", notice.epoch, notice.message, notice.advice))?;
            report(Event::Health(&notice));
        }
        Ok(())
    }

    pub(super) fn write_log(&mut self, line: &str) -> Result<(), TrainError> {
        let result = self.lock.check().and_then(|()| self.log.line(line));
        self.written(result)
    }

    /// Writes to the log what share of an epoch's time was communication, if several processes share the
    /// work.
    pub(super) fn log_communication(&mut self, epoch: u64) -> Result<(), TrainError> {
        let Times { all, waiting, passing } = std::mem::take(&mut self.replica.times);
        if all.is_zero() {
            return Ok(());
        }
        let share = |time: Duration| 100.0 * time.as_secs_f64() / all.as_secs_f64();
        let (waiting, passing) = (share(waiting), share(passing));
        self.write_log(&format!(
            "epoch {epoch}: {passing:.1} % of the training time was communication, {waiting:.1} % waiting \
             for other processes"
        ))
    }

    /// Adds the state of the run to the error of a failed write.
    pub(super) fn written(&self, result: Result<(), RecordError>) -> Result<(), TrainError> {
        result.map_err(|source| match self.saved {
            None => source.into(),
            Some((epoch, batch)) => TrainError::Write {
                run: self.folder.path().to_owned(),
                position: match batch {
                    0 => format!("epoch {epoch}"),
                    _ => format!("epoch {}, batch {batch}", epoch + 1),
                },
                source,
            },
        })
    }
}

/// A notice of the classes that have no training images, if there are any.
fn unlearnable(counts: &[usize], names: &[String]) -> Option<String> {
    let empty = (0..counts.len()).filter(|&class| counts[class] == 0);
    let named = |class: usize| match names.get(class) {
        Some(name) => format!("{class} ({name})"),
        None => class.to_string(),
    };
    let empty: Vec<String> = empty.map(named).collect();
    match &empty[..] {
        [] => None,
        [class] => Some(format!("class {class} has no training images, so the network cannot learn it")),
        classes => Some(format!(
            "{} classes have no training images, so the network cannot learn them: {}",
            classes.len(),
            classes.join(", ")
        )),
    }
}

/// Names of the tensors of an optimiser's state.
fn moment_names(optimiser: Optimiser) -> &'static [&'static str] {
    match optimiser {
        Optimiser::Sgd { .. } => &["optimiser.velocity"],
        Optimiser::Adam { .. } => &["optimiser.mean", "optimiser.square"],
    }
}

/// The optimiser's state in a checkpoint. If a changed `run.toml` sets another optimiser, the state is the
/// initial one.
pub(super) fn optimiser_state(config: &RunConfig, checkpoint: &Checkpoint, network: &Network) -> State {
    let mut state = config.optimiser().start(network.weights.len());
    for (name, moment) in moment_names(config.optimiser()).iter().zip(&mut state.moments) {
        if let Some(tensor) = checkpoint.tensor(name).filter(|t| t.values.len() == moment.len()) {
            moment.clone_from(&tensor.values);
            let position = &checkpoint.header.position;
            state.steps = position.optimiser_steps.unwrap_or(position.updates);
        }
    }
    state
}

#[cfg(test)]
mod tests {
    use super::unlearnable;

    #[test]
    fn all_empty_classes_are_named() {
        let names = ["cat", "dog", "owl"].map(str::to_owned);
        assert_eq!(unlearnable(&[1, 2, 3], &names), None);
        let one = unlearnable(&[1, 0, 3], &names).unwrap();
        assert!(one.starts_with("class 1 (dog) has no training images"), "{one}");
        let two = unlearnable(&[0, 2, 0], &names).unwrap();
        assert!(two.starts_with("2 classes") && two.ends_with(": 0 (cat), 2 (owl)"), "{two}");
    }
}
