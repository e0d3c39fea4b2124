//! Detects problems of a training run: what is checked at every batch, at the first batch of each epoch and
//! after each epoch, and the messages.
//!
//! In the paper, training fails below tau = 30, because activity dies out layer by layer. This is detected
//! here.

use leaklab_engine::architecture::Layer;
use leaklab_engine::{Architecture, LayerKind, Leak};
use leaklab_record::health::{FORMAT, Notice, Trouble};
use leaklab_record::metrics::Epoch;
use leaklab_record::noun::list;

/// Below this many spikes per neuron and step a layer is silent: neurons of a working network fire about a
/// hundred times as often.
pub const SILENT: f64 = 5e-4;
/// Above this many spikes per neuron and step a layer is saturated.
pub const SATURATED: f64 = 0.9;
/// A layer is overdriven if the root mean square of a neuron's weighted input in one step is this many times
/// the threshold. The threshold then hardly matters: a neuron fires whenever its potential is positive, and
/// nothing limits the size of the weights any more. In networks that train well the ratio is about 1.
pub const OVERDRIVEN: f64 = 10.0;
/// Training has diverged if the squared error of a batch exceeds that of the run's first batch by this
/// factor, or that of a network whose outputs are all 0 (which is 1), whichever is larger.
pub const DIVERGED: f64 = 4.0;

/// Accuracy has collapsed if the excess of the test accuracy over chance is at most this fraction of that of
/// the best epoch.
pub const COLLAPSED: f64 = 0.5;
/// Only a network that was at least this far above chance can collapse.
pub const LEARNED: f64 = 0.2;

/// The message for a gradient of exactly zero, in notices and warnings.
pub const NO_GRADIENT: &str = "the gradient of every weight is exactly zero, so nothing can be learnt: no \
                               hidden neuron comes close to its threshold";

/// The problems detected so far; the same problem is not reported twice in a row.
#[derive(Debug, Clone)]
pub struct Health {
    notices: Vec<Notice>,
    first_sse: f64,
    leak: Leak,
    v_th: f64,
}

impl Health {
    /// The health of a run from its records: its notices, and the mean squared error of its first batch (0 if
    /// there has been none yet).
    pub fn new(leak: Leak, v_th: f64, notices: Vec<Notice>, first_sse: f64) -> Self {
        Health { notices, first_sse: first_sse.max(1.0), leak, v_th }
    }

    /// All notices so far.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// Whether the loss has diverged or is not a finite number.
    pub fn has_exploded(&self) -> bool {
        self.notices.iter().any(|notice| matches!(notice.kind, Trouble::Diverged | Trouble::NonFinite))
    }

    fn notice(
        &mut self,
        epoch: u64,
        kind: Trouble,
        layers: Vec<String>,
        message: String,
        advice: &str,
    ) -> Vec<Notice> {
        if self.notices.iter().rev().find(|n| n.kind == kind).is_some_and(|last| last.layers == layers) {
            return Vec::new();
        }
        let notice = Notice { format: FORMAT, epoch, kind, layers, message, advice: advice.to_owned() };
        self.notices.push(notice.clone());
        vec![notice]
    }

    /// Checks the spike rates of the hidden layers, including pools.
    pub fn layers(&mut self, epoch: u64, architecture: &Architecture, rates: &[f64]) -> Vec<Notice> {
        let hidden = architecture.hidden();
        let named = |accept: &dyn Fn(f64) -> bool| -> Vec<(String, f64)> {
            let layers = hidden.iter().zip(rates).filter(|(_, rate)| accept(**rate));
            layers.map(|(layer, &rate)| (layer.name.clone(), rate)).collect()
        };
        let mut found = Vec::new();
        let silent = named(&|rate| rate < SILENT);
        if !silent.is_empty() {
            let (names, list) = describe(&silent);
            let leak = if self.leak.tau.leaks() {
                format!(" (tau = {}: the membrane forgets before it reaches the threshold)", self.leak)
            } else {
                String::new()
            };
            let message = if silent.len() > 1 {
                format!("activity dies out from layer to layer: {list} hardly fire{leak}")
            } else {
                format!("activity dies out: {list} hardly fires{leak}")
            };
            let advice = "try a larger tau, a lower v_th, fewer layers, or a lower learning_rate if it began \
                          during training";
            found.extend(self.notice(epoch, Trouble::Silent, names, message, advice));
        }
        let saturated: Vec<(String, f64)> = named(&|rate| rate > SATURATED)
            .into_iter()
            .filter(|(name, _)| hidden.iter().any(|l| &l.name == name && l.kind != LayerKind::Pool))
            .collect();
        if !saturated.is_empty() {
            let (names, list) = describe(&saturated);
            let message = format!(
                "saturated: in {list} nearly every neuron fires at every step and carries no information"
            );
            let advice = "try a lower learning_rate, a higher v_th or more weight_decay";
            found.extend(self.notice(epoch, Trouble::Saturated, names, message, advice));
        }
        found
    }

    /// Checks the weighted input of the hidden conv and FC layers against the threshold.
    fn weighted_inputs(&mut self, architecture: &Architecture, now: &Epoch) -> Vec<Notice> {
        let mut overdriven = Vec::new();
        for (layer, measured) in architecture.hidden().iter().zip(&now.layers) {
            let Some(norm) = measured.weighted_input_norm.filter(|_| layer.kind != LayerKind::Pool) else {
                continue;
            };
            let ratio = drive(layer, norm, self.v_th);
            if ratio > OVERDRIVEN {
                overdriven.push((layer.name.clone(), format!("{ratio:.0} in {}", layer.name)));
            }
        }
        if overdriven.is_empty() {
            return Vec::new();
        }
        let (names, texts): (Vec<String>, Vec<String>) = overdriven.into_iter().unzip();
        let message = format!(
            "weights have outgrown the threshold: a neuron's weighted input in one step exceeds it by a \
             factor of {}, so the threshold hardly matters and neurons fire whenever their potential is \
             positive",
            list(&texts)
        );
        let advice = if self.leak.readout().leaks() {
            "try readout_tau = inf in training (a leaky readout needs larger inputs for the same prediction), \
             a larger tau, a lower learning_rate or more weight_decay"
        } else {
            "try a lower learning_rate or more weight_decay, or a larger tau if the leak is strong"
        };
        self.notice(now.epoch, Trouble::Overdriven, names, message, advice)
    }

    /// Checks the mean squared error of one batch: whether it is finite, and whether training has diverged.
    pub fn batch(&mut self, epoch: u64, first_of_run: bool, sse: f64) -> Vec<Notice> {
        if !sse.is_finite() {
            return self.non_finite(epoch);
        }
        if first_of_run {
            self.first_sse = sse.max(1.0);
            return Vec::new();
        }
        if sse <= DIVERGED * self.first_sse {
            return Vec::new();
        }
        let message = format!(
            "training has diverged: the squared error of a batch is {sse:.3e}; a network whose outputs are \
             all 0 has 1"
        );
        let advice = "try a tenth of the learning_rate, or a larger tau if the leak is strong";
        self.notice(epoch, Trouble::Diverged, Vec::new(), message, advice)
    }

    /// Checks the gradient of a batch.
    pub fn gradient(&mut self, epoch: u64, gradients: &[f32]) -> Vec<Notice> {
        if gradients.iter().any(|&g| g != 0.0) {
            return Vec::new();
        }
        let advice = "try a lower v_th, a larger tau, or another seed of the initial weights";
        self.notice(epoch, Trouble::NoGradient, Vec::new(), NO_GRADIENT.to_owned(), advice)
    }

    /// Compares the test accuracy of an epoch with the best one so far.
    pub fn accuracy(&mut self, epoch: u64, classes: usize, best: (u64, f64), now: f64) -> Vec<Notice> {
        let chance = 1.0 / classes as f64;
        let (had, has) = (best.1 - chance, now - chance);
        if had < LEARNED || has > COLLAPSED * had {
            return Vec::new();
        }
        let message = format!(
            "accuracy has collapsed: {:.1} % after epoch {}, {:.1} % now; the weights of that epoch are \
             stored",
            100.0 * best.1,
            best.0,
            100.0 * now
        );
        let advice =
            "use these with --best, and try a lower learning_rate or a schedule that lowers it earlier";
        self.notice(epoch, Trouble::Collapsed, Vec::new(), message, advice)
    }

    /// The loss, a gradient or a weight is no longer a finite number.
    pub fn non_finite(&mut self, epoch: u64) -> Vec<Notice> {
        let message =
            "training has diverged: the loss, a gradient or a weight is not a finite number any more"
                .to_owned();
        let advice = "try a tenth of the learning_rate; the last stored weights are those before this update";
        self.notice(epoch, Trouble::NonFinite, Vec::new(), message, advice)
    }

    /// Checks the metrics of an epoch, given those of the epoch before.
    pub fn epoch(&mut self, architecture: &Architecture, before: Option<&Epoch>, now: &Epoch) -> Vec<Notice> {
        let mut found = Vec::new();
        if !now.layers.is_empty() {
            let rates: Vec<f64> = now.layers.iter().filter_map(|layer| layer.spike_rate).collect();
            found.extend(self.layers(now.epoch, architecture, &rates));
            found.extend(self.weighted_inputs(architecture, now));
        }
        // A twentieth of the way from guessing to 100 %.
        let guess = 1.0 / architecture.classes().max(1) as f64;
        let chance = guess + 0.05 * (1.0 - guess);
        if let Some(before) = before
            && before.train_accuracy < chance
            && now.train_accuracy < chance
        {
            let message = format!(
                "nothing is being learnt: accuracy stays at {:.1} %, as with guessing among {} classes",
                100.0 * now.train_accuracy,
                architecture.classes()
            );
            let advice = "try another learning_rate (ten times larger, then ten times smaller), more \
                          time_steps or a larger tau";
            found.extend(self.notice(now.epoch, Trouble::Chance, Vec::new(), message, advice));
        }
        found
    }
}

/// Root mean square of a neuron's weighted input in one step, in units of the threshold.
pub fn drive(layer: &Layer, weighted_input_norm: f64, v_th: f64) -> f64 {
    weighted_input_norm / (layer.output.neurons() as f64).sqrt() / v_th
}

/// Names of layers, and a text that lists them with their rates.
fn describe(layers: &[(String, f64)]) -> (Vec<String>, String) {
    let texts: Vec<String> =
        layers.iter().map(|(name, rate)| format!("{name} ({:.3} % of steps)", 100.0 * rate)).collect();
    (layers.iter().map(|(name, _)| name.clone()).collect(), list(&texts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use leaklab_engine::Tau;

    fn health() -> Health {
        Health::new(Leak::uniform(Tau::INFINITE), 1.0, Vec::new(), 0.0)
    }

    #[test]
    fn a_collapse_is_reported_once() {
        let mut health = health();
        assert!(health.accuracy(2, 10, (1, 0.81), 0.5).is_empty());
        let notices = health.accuracy(3, 10, (1, 0.81), 0.285);
        assert_eq!(notices[0].kind, Trouble::Collapsed);
        assert!(notices[0].message.contains("81.0 % after epoch 1, 28.5 % now"), "{}", notices[0].message);
        assert!(health.accuracy(4, 10, (1, 0.81), 0.2).is_empty(), "already reported");
        // A network that never learned cannot collapse.
        assert!(health.accuracy(5, 10, (1, 0.25), 0.1).is_empty());
    }

    /// An epoch with nothing but an accuracy.
    fn plain_epoch(number: u64, train_accuracy: f64) -> Epoch {
        Epoch {
            format: leaklab_record::metrics::FORMAT,
            epoch: number,
            learning_rate: 0.1,
            train_accuracy,
            train_sse: None,
            train_accuracy_evaluated: None,
            train_sse_evaluated: None,
            test_accuracy: None,
            test_sse: None,
            spike_rate: None,
            synops: None,
            layers: Vec::new(),
            seconds: 0.0,
            images_per_second: 0.0,
        }
    }

    /// 70 % of two classes is far from guessing.
    #[test]
    fn guessing_depends_on_the_number_of_classes() {
        let two = Architecture::parse("1x1x4-8FC-2o").unwrap();
        let kinds = |first: f64, second: f64| {
            let notices = health().epoch(&two, Some(&plain_epoch(1, first)), &plain_epoch(2, second));
            notices.into_iter().map(|notice| notice.kind).collect::<Vec<_>>()
        };
        assert_eq!(kinds(0.6, 0.7), []);
        assert_eq!(kinds(0.51, 0.5), [Trouble::Chance]);
    }

    #[test]
    fn weights_that_outgrow_the_threshold_are_reported() {
        use leaklab_record::metrics::LayerEpoch;
        let network = Architecture::parse("1x4x4-4C3-2P-9FC-2o").unwrap();
        let epoch = |conv: f64, full: f64| {
            let norms = [("conv1", Some(conv)), ("pool1", Some(1e9)), ("fc1", Some(full)), ("fc2", None)];
            let layers = norms.map(|(name, weighted_input_norm)| LayerEpoch {
                name: name.to_owned(),
                kind: LayerKind::Conv,
                spike_rate: Some(0.1),
                synops: None,
                weighted_input_norm,
            });
            Epoch { layers: layers.to_vec(), ..plain_epoch(1, 0.9) }
        };
        // 64 neurons of conv1 and 9 of fc1: a norm of 8 and 3 is once the threshold of 1.
        assert!(health().epoch(&network, None, &epoch(79.0, 29.0)).is_empty());
        let notices = health().epoch(&network, None, &epoch(1600.0, 29.0));
        assert_eq!((notices.len(), notices[0].kind), (1, Trouble::Overdriven));
        assert!(notices[0].message.contains("by a factor of 200 in conv1,"), "{}", notices[0].message);
        assert!(!notices[0].advice.contains("readout_tau"), "{}", notices[0].advice);
        let mut leaky = Health::new(Leak::uniform(Tau::new(9.0).unwrap()), 1.0, Vec::new(), 0.0);
        let notices = leaky.epoch(&network, None, &epoch(1600.0, 29.0));
        assert!(notices[0].advice.contains("readout_tau = inf"), "{}", notices[0].advice);
        let mut higher = Health::new(Leak::uniform(Tau::INFINITE), 25.0, Vec::new(), 0.0);
        assert!(higher.epoch(&network, None, &epoch(1600.0, 29.0)).is_empty());
    }

    #[test]
    fn only_a_gradient_of_zeros_is_reported() {
        assert!(health().gradient(1, &[0.0, 1e-30]).is_empty());
        assert_eq!(health().gradient(1, &[0.0, -0.0])[0].kind, Trouble::NoGradient);
    }
}
