//! One epoch: its batches, its evaluation and its records.

use super::event::Batch;
use super::ranks::{Images, Order};
use super::session::Session;
use super::{Control, Event, Outcome, TrainError};
use crate::evaluate::{self, Evaluation};
use leaklab_engine::{Scratch, first_not_finite};
use leaklab_record::events::Scalars;
use leaklab_record::metrics::{self, Epoch};
use std::ops::Range;
use std::time::Instant;

impl Session {
    /// Trains the rest of an epoch and records it. Returns how the run ended, if it did.
    pub(super) fn epoch(
        &mut self,
        report: &mut dyn FnMut(Event) -> Control,
    ) -> Result<Option<Outcome>, TrainError> {
        let (epoch, batches) = (self.position.epoch + 1, self.replica.batches());
        let images = self.replica.dataset.train.len() as u64;
        let (started, first) = (Instant::now(), self.position.samples);
        let rate = |samples: u64| (samples - first) as f64 / started.elapsed().as_secs_f64().max(1e-9);
        while self.position.batch < batches {
            if let Some(outcome) = self.batch(epoch, report)? {
                return Ok(Some(outcome));
            }
            let position = &self.position;
            let images_per_second = rate(position.samples);
            let rest = (self.replica.config.epochs - position.epoch) * images - position.samples;
            let event = Batch {
                epoch,
                epochs: self.replica.config.epochs,
                batch: position.batch,
                batches,
                sse: position.squared_error / position.samples as f64,
                accuracy: position.correct as f64 / position.samples as f64,
                images_per_second,
                seconds_to_go: rest as f64 / images_per_second,
            };
            if report(Event::Batch(&event)) == Control::Stop || self.replica.asked {
                self.save(report)?;
                return Ok(Some(Outcome::Interrupted));
            }
            if self.last_save.elapsed().as_secs_f64() > 60.0 * self.options.checkpoint_minutes {
                self.save(report)?;
            }
        }
        let images_per_second = if self.position.samples > first { rate(self.position.samples) } else { 0.0 };
        let (mut tested, mut fitted) = (None, None);
        if self.replica.config.evaluates(epoch) {
            self.replica.pack()?;
            tested = self.evaluate(Images::Test, report)?;
            if tested.is_some() && !self.replica.fitted.is_empty() {
                fitted = self.evaluate(Images::Fitted, report)?;
            }
            if tested.is_none() || (fitted.is_none() && !self.replica.fitted.is_empty()) {
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
        report: &mut dyn FnMut(Event) -> Control,
    ) -> Result<Option<Outcome>, TrainError> {
        let batch = self.position.batch;
        self.replica.tell(Order::Train { epoch, batch })?;
        let scored = self.replica.batch(epoch, batch)?;
        let (config, gradients) = (&self.replica.config, &self.replica.gradients);
        let sum: f64 = scored.iter().map(|sample| sample.sse).sum();
        if !sum.is_finite() || first_not_finite(gradients).is_some() {
            return self.non_finite(epoch, report);
        }
        let mean = sum / scored.len() as f64;
        let first = self.position.updates == 0;
        let mut notices = self.health.batch(epoch, first, mean);
        if first {
            self.position.first_squared_error = mean;
        }
        if batch == 0 {
            let hidden = config.network.hidden();
            let sites = |layer: &leaklab_engine::Layer| {
                (layer.output.neurons() * config.time_steps * scored.len()) as f64
            };
            let count = |layer: usize| scored.iter().map(|sample| sample.spikes[layer]).sum::<u64>() as f64;
            let rates: Vec<f64> =
                hidden.iter().enumerate().map(|(i, layer)| count(i) / sites(layer)).collect();
            notices.extend(self.health.layers(epoch, &config.network, &rates));
            notices.extend(self.health.gradient(epoch, gradients));
        }
        self.before.0.clone_from(&self.replica.network.weights);
        self.before.1.clone_from(&self.replica.state);
        self.replica.step(epoch);
        if first_not_finite(&self.replica.network.weights).is_some() {
            std::mem::swap(&mut self.before.0, &mut self.replica.network.weights);
            std::mem::swap(&mut self.before.1, &mut self.replica.state);
            return self.non_finite(epoch, report);
        }
        let position = &mut self.position;
        position.batch += 1;
        position.updates += 1;
        position.samples += scored.len() as u64;
        position.correct += scored.iter().filter(|sample| sample.correct).count() as u64;
        position.squared_error += sum;
        self.notice(notices, report)?;
        if self.options.stop_on_divergence && self.health.has_exploded() {
            self.save(report)?;
            return Ok(Some(Outcome::Diverged));
        }
        Ok(None)
    }

    /// Ends a run in which a value is no longer finite. Its last weights are those before the failed update,
    /// independent of when the last checkpoint was written.
    fn non_finite(
        &mut self,
        epoch: u64,
        report: &mut dyn FnMut(Event) -> Control,
    ) -> Result<Option<Outcome>, TrainError> {
        let notices = self.health.non_finite(epoch);
        self.notice(notices, report)?;
        self.save(report)?;
        Ok(Some(Outcome::Diverged))
    }

    /// Evaluates images; `None` if the watcher asked to stop.
    fn evaluate(
        &self,
        images: Images,
        report: &mut dyn FnMut(Event) -> Control,
    ) -> Result<Option<Evaluation>, TrainError> {
        let (config, total) = (&self.replica.config, self.replica.images(images).len());
        let mut progress =
            |done| report(Event::Evaluated { done, total }) == Control::Continue || done == total;
        let scratch = Scratch::default();
        let measure = |range: Range<usize>| {
            self.replica.tell(Order::Evaluate { images, from: range.start, count: range.len() })?;
            self.replica.measure(images, range, &scratch)
        };
        evaluate::evaluate_measured(&config.network, total, config.time_steps, measure, &mut progress)
    }

    /// Writes the results of an epoch, and then the checkpoint that completes it.
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
            learning_rate: self.replica.config.learning_rate_of(position.epoch + 1),
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
        let result = self.events.append(now.epoch, &scalars(&now));
        self.written(result)?;
        let mut notices = self.health.epoch(&self.replica.config.network, self.last.as_ref(), &now);
        if let Some(accuracy) = now.test_accuracy {
            let best = (self.position.best_epoch, self.position.best_accuracy);
            let classes = self.replica.config.network.classes();
            notices.extend(self.health.accuracy(now.epoch, classes, best, accuracy));
        }
        self.notice(notices, report)?;
        if better {
            let best = self.checkpoint(false);
            let result = self.lock.check().and_then(|()| best.write(&self.folder.best()));
            self.written(result)?;
        }
        self.save(report)?;
        self.write_log(&describe(&now))?;
        self.log_communication(now.epoch)?;
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
pub(super) fn scalars(epoch: &Epoch) -> Scalars {
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
