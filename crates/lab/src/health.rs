//! Is a run going anywhere? What is looked at after an epoch (and at the first batch of each), and the words
//! for it.
//!
//! The paper sees training fail below tau = 30, activity dying out layer by layer: this is where that is
//! noticed.

use leaklab_engine::{Architecture, LayerKind, Leak};
use leaklab_record::health::{FORMAT, Notice, Trouble};
use leaklab_record::metrics::Epoch;

/// Below this many spikes per neuron and step a layer is silent: a neuron of a network at work fires some
/// hundred times as often.
pub const SILENT: f64 = 5e-4;
/// Above this many spikes per neuron and step a layer is saturated.
pub const SATURATED: f64 = 0.9;
/// A loss this many times that of a network that says nothing (p = 0, squared error 1), or of the run's first
/// batch if that was larger, has diverged.
pub const DIVERGED: f64 = 4.0;

/// A test accuracy whose excess over chance is this share of the best epoch's, or less, has collapsed.
pub const COLLAPSED: f64 = 0.5;
/// Only a network that was at least this far above chance can collapse.
pub const LEARNED: f64 = 0.2;

/// What a gradient of exactly zero means, for notices and warnings.
pub const NO_GRADIENT: &str = "the gradient of every weight is exactly zero, so nothing can be learnt: no \
                               hidden neuron comes near its threshold";

/// What has been noticed so far; nothing is said twice in a row.
#[derive(Debug, Clone)]
pub struct Health {
    notices: Vec<Notice>,
    first_sse: f64,
    leak: Leak,
}

impl Health {
    /// A run's health from what was recorded before: its notices, and the mean squared error of its first
    /// batch (0 if it has yet to come).
    pub fn new(leak: Leak, notices: Vec<Notice>, first_sse: f64) -> Self {
        Health { notices, first_sse: first_sse.max(1.0), leak }
    }

    /// Everything noticed so far.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// Whether the loss went far up or was lost.
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

    /// Looks at the spike rates of the hidden layers, pools included.
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
                format!("activity dies out on its way through the network: {list} hardly fire{leak}")
            } else {
                format!("activity dies out: {list} hardly fires{leak}")
            };
            let advice = "try a larger tau, a lower v_th, fewer layers, or a lower learning_rate if it set in during training";
            found.extend(self.notice(epoch, Trouble::Silent, names, message, advice));
        }
        let saturated: Vec<(String, f64)> = named(&|rate| rate > SATURATED)
            .into_iter()
            .filter(|(name, _)| hidden.iter().any(|l| &l.name == name && l.kind != LayerKind::Pool))
            .collect();
        if !saturated.is_empty() {
            let (names, list) = describe(&saturated);
            let message =
                format!("saturated: in {list} nearly every neuron fires at every step and says nothing");
            let advice = "try a lower learning_rate, a higher v_th or more weight_decay";
            found.extend(self.notice(epoch, Trouble::Saturated, names, message, advice));
        }
        found
    }

    /// Looks at the mean squared error of one batch: non-finite is the end, far too large is divergence.
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
            "training has diverged: the squared error of a batch is {sse:.3e}, and a network that says nothing has 1"
        );
        let advice = "try a tenth of the learning_rate, or a larger tau if the leak is strong";
        self.notice(epoch, Trouble::Diverged, Vec::new(), message, advice)
    }

    /// Looks at a batch's gradient.
    pub fn gradient(&mut self, epoch: u64, gradients: &[f32]) -> Vec<Notice> {
        if gradients.iter().any(|&g| g != 0.0) {
            return Vec::new();
        }
        let advice = "try a lower v_th, a larger tau, or another seed of the initial weights";
        self.notice(epoch, Trouble::NoGradient, Vec::new(), NO_GRADIENT.to_owned(), advice)
    }

    /// Looks at an epoch's test accuracy beside the best one so far.
    pub fn accuracy(&mut self, epoch: u64, classes: usize, best: (u64, f64), now: f64) -> Vec<Notice> {
        let chance = 1.0 / classes as f64;
        let (had, has) = (best.1 - chance, now - chance);
        if had < LEARNED || has > COLLAPSED * had {
            return Vec::new();
        }
        let message = format!(
            "accuracy has collapsed: {:.1} % after epoch {}, {:.1} % now; the weights of that epoch are kept",
            100.0 * best.1,
            best.0,
            100.0 * now
        );
        let advice =
            "take these with --best, and try a lower learning_rate or a schedule that lowers it earlier";
        self.notice(epoch, Trouble::Collapsed, Vec::new(), message, advice)
    }

    /// The loss, a gradient or a weight is not a number any more.
    pub fn non_finite(&mut self, epoch: u64) -> Vec<Notice> {
        let message =
            "training has diverged: the loss, a gradient or a weight is not a finite number any more"
                .to_owned();
        let advice = "try a tenth of the learning_rate; the last weights kept are those before this update";
        self.notice(epoch, Trouble::NonFinite, Vec::new(), message, advice)
    }

    /// Looks at an epoch's figures, given those before it.
    pub fn epoch(&mut self, architecture: &Architecture, before: Option<&Epoch>, now: &Epoch) -> Vec<Notice> {
        let mut found = Vec::new();
        if !now.layers.is_empty() {
            let rates: Vec<f64> = now.layers.iter().filter_map(|layer| layer.spike_rate).collect();
            found.extend(self.layers(now.epoch, architecture, &rates));
        }
        // A twentieth of the way from guessing to no error at all.
        let guess = 1.0 / architecture.classes().max(1) as f64;
        let chance = guess + 0.05 * (1.0 - guess);
        if let Some(before) = before
            && before.train_accuracy < chance
            && now.train_accuracy < chance
        {
            let message = format!(
                "nothing is being learnt: accuracy stays at {:.1} %, where guessing among {} classes would be",
                100.0 * now.train_accuracy,
                architecture.classes()
            );
            let advice = "try another learning_rate (ten times more, then ten times less), more time_steps, a larger tau";
            found.extend(self.notice(now.epoch, Trouble::Chance, Vec::new(), message, advice));
        }
        found
    }
}

/// Names of layers, and a list of them with their rates.
fn describe(layers: &[(String, f64)]) -> (Vec<String>, String) {
    let texts: Vec<String> =
        layers.iter().map(|(name, rate)| format!("{name} ({:.3} % of steps)", 100.0 * rate)).collect();
    let list = match texts.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => texts.concat(),
    };
    (layers.iter().map(|(name, _)| name.clone()).collect(), list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use leaklab_engine::Tau;

    fn health() -> Health {
        Health::new(Leak::uniform(Tau::INFINITE), Vec::new(), 0.0)
    }

    #[test]
    fn a_collapse_is_told_once() {
        let mut health = health();
        assert!(health.accuracy(2, 10, (1, 0.81), 0.5).is_empty());
        let notices = health.accuracy(3, 10, (1, 0.81), 0.285);
        assert_eq!(notices[0].kind, Trouble::Collapsed);
        assert!(notices[0].message.contains("81.0 % after epoch 1, 28.5 % now"), "{}", notices[0].message);
        assert!(health.accuracy(4, 10, (1, 0.81), 0.2).is_empty(), "told already");
        // What never learned cannot collapse.
        assert!(health.accuracy(5, 10, (1, 0.25), 0.1).is_empty());
    }

    /// 70 % of two classes is far from guessing.
    #[test]
    fn guessing_depends_on_the_number_of_classes() {
        let epoch = |number: u64, train_accuracy: f64| Epoch {
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
        };
        let two = Architecture::parse("1x1x4-8FC-2o").unwrap();
        let kinds = |first: f64, second: f64| {
            let notices = health().epoch(&two, Some(&epoch(1, first)), &epoch(2, second));
            notices.into_iter().map(|notice| notice.kind).collect::<Vec<_>>()
        };
        assert_eq!(kinds(0.6, 0.7), []);
        assert_eq!(kinds(0.51, 0.5), [Trouble::Chance]);
    }

    #[test]
    fn only_a_gradient_of_zeros_is_none() {
        assert!(health().gradient(1, &[0.0, 1e-30]).is_empty());
        assert_eq!(health().gradient(1, &[0.0, -0.0])[0].kind, Trouble::NoGradient);
    }
}
