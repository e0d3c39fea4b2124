//! One epoch: its batches, its evaluation, its lines in the records.

use super::event::Batch;
use super::session::Session;
use super::{Control, Event, Outcome, TrainError};
use crate::data::{Split, present};
use crate::evaluate::{self, Evaluation};
use leaklab_engine::{first_not_finite, philox, train_batch};
use leaklab_record::metrics::{self, Epoch};
use std::time::Instant;

/// What one training sample gave.
struct Scored {
    correct: bool,
    sse: f64,
    /// Spikes of each hidden layer, where asked for.
    spikes: Vec<u64>,
}

impl Session {
    /// Trains the rest of an epoch and records it. Returns how the run ended, if it did.
    pub(super) fn epoch(
        &mut self,
        report: &mut dyn FnMut(Event) -> Control,
    ) -> Result<Option<Outcome>, TrainError> {
        let (epoch, batches) = (self.position.epoch + 1, self.batches());
        let order = philox::shuffle(self.config.seed, epoch as u32, self.dataset.train.len());
        let (started, first) = (Instant::now(), self.position.samples);
        let rate = |samples: u64| (samples - first) as f64 / started.elapsed().as_secs_f64().max(1e-9);
        while self.position.batch < batches {
            let from = self.position.batch as usize * self.config.batch;
            let samples = &order[from..(from + self.config.batch).min(order.len())];
            if let Some(outcome) = self.batch(epoch, samples, report)? {
                return Ok(Some(outcome));
            }
            let position = &self.position;
            let images_per_second = rate(position.samples);
            let rest = (self.config.epochs - position.epoch) * order.len() as u64 - position.samples;
            let event = Batch {
                epoch,
                epochs: self.config.epochs,
                batch: position.batch,
                batches,
                sse: position.squared_error / position.samples as f64,
                accuracy: position.correct as f64 / position.samples as f64,
                images_per_second,
                seconds_to_go: rest as f64 / images_per_second,
            };
            if report(Event::Batch(&event)) == Control::Stop {
                self.save(report)?;
                return Ok(Some(Outcome::Interrupted));
            }
            if self.last_save.elapsed().as_secs_f64() > 60.0 * self.options.checkpoint_minutes {
                self.save(report)?;
            }
        }
        let images_per_second = if self.position.samples > first { rate(self.position.samples) } else { 0.0 };
        let (mut tested, mut fitted) = (None, None);
        if self.config.evaluates(epoch) {
            self.packed.update(&self.network)?;
            tested = self.evaluate(&self.dataset.test, report)?;
            if tested.is_some() && !self.fitted.is_empty() {
                fitted = self.evaluate(&self.fitted, report)?;
            }
            if tested.is_none() || (fitted.is_none() && !self.fitted.is_empty()) {
                self.save(report)?;
                return Ok(Some(Outcome::Interrupted));
            }
        }
        self.finish(tested, fitted, started.elapsed().as_secs_f64(), images_per_second, report)?;
        Ok(None)
    }

    /// One update of the weights. Returns how the run ended, if it did.
    fn batch(
        &mut self,
        epoch: u64,
        samples: &[u32],
        report: &mut dyn FnMut(Event) -> Control,
    ) -> Result<Option<Outcome>, TrainError> {
        let (config, split, presentation) = (&self.config, &self.dataset.train, &self.training);
        let (packed, network) = (&mut self.packed, &self.network);
        let hidden = config.network.hidden();
        let counted = if self.position.batch == 0 { hidden.len() } else { 0 };
        let scored = self.pool.install(|| -> Result<_, TrainError> {
            packed.update(network)?;
            let scored = train_batch(
                packed,
                config.time_steps,
                samples.len(),
                config.gradient,
                &self.scratch,
                |i, input, masks| {
                    let index = samples[i] as usize;
                    presentation.show(split, index, epoch as u32, &mut present::Scratch::default(), input);
                    masks.draw(
                        config.dropout,
                        config.seed,
                        epoch as u32,
                        split.sample(index),
                        &config.network,
                    );
                    split.label(index)
                },
                |i, trace| {
                    let label = split.label(samples[i] as usize);
                    let spikes = (0..counted).map(|layer| trace.spikes(layer).count()).collect();
                    Scored { correct: trace.class() == label, sse: trace.sse(label), spikes }
                },
                &mut self.gradients,
            )?;
            Ok(scored)
        })?;
        let sum: f64 = scored.iter().map(|sample| sample.sse).sum();
        if !sum.is_finite() || first_not_finite(&self.gradients).is_some() {
            return self.non_finite(epoch, report);
        }
        let mean = sum / samples.len() as f64;
        let first = self.position.updates == 0;
        let mut notices = self.health.batch(epoch, first, mean);
        if first {
            self.position.first_squared_error = mean;
        }
        if counted > 0 {
            let sites = |layer: &leaklab_engine::Layer| {
                (layer.output.neurons() * config.time_steps * samples.len()) as f64
            };
            let count = |layer: usize| scored.iter().map(|sample| sample.spikes[layer]).sum::<u64>() as f64;
            let rates: Vec<f64> =
                hidden.iter().enumerate().map(|(i, layer)| count(i) / sites(layer)).collect();
            notices.extend(self.health.layers(epoch, &config.network, &rates));
            notices.extend(self.health.gradient(epoch, &self.gradients));
        }
        let learning_rate = config.learning_rate_of(epoch) as f32;
        config.optimiser().step(&mut self.network.weights, &self.gradients, &mut self.state, learning_rate);
        if first_not_finite(&self.network.weights).is_some() {
            return self.non_finite(epoch, report);
        }
        let position = &mut self.position;
        position.batch += 1;
        position.updates += 1;
        position.samples += samples.len() as u64;
        position.correct += scored.iter().filter(|sample| sample.correct).count() as u64;
        position.squared_error += sum;
        self.notice(notices, report)?;
        if self.options.stop_on_divergence && self.health.has_exploded() {
            self.save(report)?;
            return Ok(Some(Outcome::Diverged));
        }
        Ok(None)
    }

    /// The end of a run in which something is not a number any more. The last checkpoint is from before and
    /// stays.
    fn non_finite(
        &mut self,
        epoch: u64,
        report: &mut dyn FnMut(Event) -> Control,
    ) -> Result<Option<Outcome>, TrainError> {
        let notices = self.health.non_finite(epoch);
        self.notice(notices, report)?;
        Ok(Some(Outcome::Diverged))
    }

    /// The images of a split in evaluation; `None` if the watcher asked to stop.
    fn evaluate(
        &self,
        split: &Split,
        report: &mut dyn FnMut(Event) -> Control,
    ) -> Result<Option<Evaluation>, TrainError> {
        let total = split.len();
        let mut progress =
            |done| report(Event::Evaluated { done, total }) == Control::Continue || done == total;
        let evaluation = evaluate::evaluate(
            &self.packed,
            &self.config.network,
            &self.testing,
            split,
            &self.pool,
            &mut progress,
        )?;
        Ok(evaluation)
    }

    /// Writes what an epoch gave, and last the checkpoint that completes it.
    fn finish(
        &mut self,
        evaluation: Option<Evaluation>,
        fitted: Option<Evaluation>,
        seconds: f64,
        images_per_second: f64,
        report: &mut dyn FnMut(Event) -> Control,
    ) -> Result<(), TrainError> {
        self.written(self.lock.check())?;
        let position = &mut self.position;
        let samples = position.samples as f64;
        let finite = |x: f64| Some(x).filter(|x| x.is_finite());
        let now = Epoch {
            format: metrics::FORMAT,
            epoch: position.epoch + 1,
            learning_rate: self.config.learning_rate_of(position.epoch + 1),
            train_accuracy: position.correct as f64 / samples,
            train_sse: finite(position.squared_error / samples),
            train_accuracy_evaluated: fitted.as_ref().map(Evaluation::accuracy),
            train_sse_evaluated: fitted.as_ref().and_then(|e| finite(e.sse)),
            test_accuracy: evaluation.as_ref().map(Evaluation::accuracy),
            test_sse: evaluation.as_ref().and_then(|e| finite(e.sse)),
            spike_rate: evaluation.as_ref().map(|e| e.spike_rate),
            synops: evaluation.as_ref().map(|e| e.synops),
            layers: evaluation.map(|e| e.layers).unwrap_or_default(),
            seconds,
            images_per_second,
        };
        let better =
            now.test_accuracy.is_some_and(|a| position.best_epoch == 0 || a > position.best_accuracy);
        position.epoch += 1;
        (position.batch, position.samples, position.correct, position.squared_error) = (0, 0, 0, 0.0);
        if better {
            position.best_epoch = now.epoch;
            position.best_accuracy = now.test_accuracy.unwrap_or_default();
        }
        let result = metrics::append(&self.folder.metrics(), &now);
        self.written(result)?;
        let result = self.events.scalars(now.epoch, &scalars(&now));
        self.written(result)?;
        let mut notices = self.health.epoch(&self.config.network, self.last.as_ref(), &now);
        if let Some(accuracy) = now.test_accuracy {
            let best = (self.position.best_epoch, self.position.best_accuracy);
            let classes = self.config.network.classes();
            notices.extend(self.health.accuracy(now.epoch, classes, best, accuracy));
        }
        self.notice(notices, report)?;
        if better {
            let result = self.checkpoint(false).write(&self.folder.best());
            self.written(result)?;
        }
        self.save(report)?;
        self.write_log(&describe(&now))?;
        report(Event::Epoch(&now));
        self.last = Some(now);
        Ok(())
    }
}

/// An epoch in one line.
fn describe(epoch: &Epoch) -> String {
    let number = |x: Option<f64>, scale: f64| x.map_or("-".to_owned(), |x| format!("{:.4}", scale * x));
    format!(
        "epoch {}: train accuracy {} sse {}, test accuracy {} sse {}, {:.1} images/s",
        epoch.epoch,
        number(Some(epoch.train_accuracy), 1.0),
        number(epoch.train_sse, 1.0),
        number(epoch.test_accuracy, 1.0),
        number(epoch.test_sse, 1.0),
        epoch.images_per_second
    )
}

/// An epoch's figures for TensorBoard.
fn scalars(epoch: &Epoch) -> Vec<(String, f64)> {
    let mut out = vec![
        ("train/accuracy".to_owned(), epoch.train_accuracy),
        ("learning_rate".to_owned(), epoch.learning_rate),
        ("images_per_second".to_owned(), epoch.images_per_second),
    ];
    let mut add = |tag: String, x: Option<f64>| out.extend(x.map(|x| (tag, x)));
    add("train/sse".into(), epoch.train_sse);
    add("train/accuracy_evaluated".into(), epoch.train_accuracy_evaluated);
    add("train/sse_evaluated".into(), epoch.train_sse_evaluated);
    add("test/accuracy".into(), epoch.test_accuracy);
    add("test/sse".into(), epoch.test_sse);
    add("spike_rate/all".into(), epoch.spike_rate);
    add("synops/all".into(), epoch.synops);
    for layer in &epoch.layers {
        add(format!("spike_rate/{}", layer.name), layer.spike_rate);
        add(format!("synops/{}", layer.name), layer.synops);
        add(format!("weighted_input_norm/{}", layer.name), layer.weighted_input_norm);
    }
    out
}
