//! Synthetic runs: records with chosen numbers, for which the results of the rules are known.
#![allow(dead_code)] // each test uses a part

use leaklab_engine::philox::{Purpose, Stream};
use leaklab_lab::analysis::compare::{RunRecord, compare};
use leaklab_lab::config::{RunConfig, Settings};
use leaklab_record::metrics::Epoch;
use leaklab_record::tables::*;
use leaklab_record::{Bits, NoiseKey, PAPER_NOISES, Reading, Row, Rows, Stimulus, Table};

/// Test images of [`study`].
pub const IMAGES: usize = 1000;

/// A sequence of random numbers.
pub struct Draw(Stream, usize);

impl Draw {
    pub fn new(seed: u64, sample: u32) -> Self {
        Draw(Stream::new(seed, Purpose::Simulate, 0, sample), 0)
    }

    pub fn uniform(&mut self) -> f64 {
        self.1 += 1;
        f64::from(self.0.uniform_at(self.1))
    }

    pub fn normal(&mut self) -> f64 {
        self.1 += 1;
        f64::from(self.0.normal_at(self.1))
    }
}

/// A run's settings.
pub fn config(assignments: &[&str]) -> RunConfig {
    let mut settings = Settings::default();
    for assignment in ["dataset=digits", "noise=[]", "time_steps=30"].iter().chain(assignments) {
        settings.assign(assignment).unwrap();
    }
    RunConfig::resolve(settings).unwrap()
}

/// The numbers of one run.
#[derive(Clone)]
pub struct Numbers {
    /// Clean accuracy.
    pub accuracy: f64,
    /// Accuracy at each severity of each noise.
    pub noisy: Vec<(NoiseKey, [f64; 8])>,
    /// Test SSE at the end.
    pub test_sse: f64,
    /// Training SSE at the end.
    pub train_sse: f64,
    pub spike_rate: f64,
    pub norm: f64,
    /// Critical frequency, clean, by reading.
    pub critical: [f64; 3],
    /// Critical frequency, as defined, at severity 5.
    pub critical_noisy: f64,
}

/// Accuracies that fall linearly from `clean` to chance, plus `gain` at severities of `from` and above.
pub fn falling(clean: f64, gain: f64, from: usize) -> [f64; 8] {
    std::array::from_fn(|i| {
        let severity = i + 1;
        let plain = clean + (0.1 - clean) * severity as f64 / 8.0;
        (plain + if severity >= from { gain } else { 0.0 }).clamp(0.0, 1.0)
    })
}

impl Numbers {
    /// A network that learned, and whose accuracy under each of the paper's noises is `gain` above that of
    /// `plain(0.0)`.
    pub fn plain(gain: f64) -> Self {
        Numbers {
            accuracy: 0.95,
            noisy: PAPER_NOISES.map(|noise| (noise, falling(0.95, gain, 1))).to_vec(),
            test_sse: 0.2,
            train_sse: 0.1,
            spike_rate: 0.1,
            norm: 5.0,
            critical: [0.3; 3],
            critical_noisy: 0.32,
        }
    }
}

/// Bits of `images` images, of which the easiest are correct: the same ones in every run, so that a
/// difference of accuracies is a difference on as many images.
pub fn easiest(accuracy: f64, images: usize) -> Bits {
    let count = (accuracy * images as f64).round() as usize;
    (0..images).map(|i| i < count).collect()
}

/// The record of a run with these numbers on `images` test images.
pub fn record(config: RunConfig, numbers: &Numbers, images: usize) -> RunRecord {
    let mut run = RunRecord::new(config);
    let (last, n) = (run.config.epochs, numbers);
    for epoch in 1..=last {
        // Errors fall from ten times their last value.
        let scale = 1.0 + 9.0 * (last - epoch) as f64 / (last - 1).max(1) as f64;
        run.epochs.push(Epoch {
            format: 1,
            epoch,
            learning_rate: 0.1,
            train_accuracy: n.accuracy,
            train_sse: Some(1.1 * n.train_sse * scale),
            train_accuracy_evaluated: Some(n.accuracy),
            train_sse_evaluated: Some(n.train_sse * scale),
            test_accuracy: Some(n.accuracy),
            test_sse: Some(n.test_sse * scale),
            spike_rate: Some(n.spike_rate),
            synops: Some(1e6 * n.spike_rate),
            layers: Vec::new(),
            seconds: 1.0,
            images_per_second: 1.0,
        });
    }
    let correct =
        |stimulus, accuracy| CorrectnessRow { stimulus, presentation: 1, correct: easiest(accuracy, images) };
    run.correctness.push(correct(Stimulus::Clean, n.accuracy));
    for (noise, accuracies) in &n.noisy {
        for (i, &accuracy) in accuracies.iter().enumerate() {
            run.correctness.push(correct(Stimulus::at(*noise, i + 1), accuracy));
            run.robustness.push(robustness_row(*noise, i + 1, accuracy, images));
        }
        let robustness = accuracies.iter().sum::<f64>() / 8.0;
        run.robustness_summary.push(RobustnessSummaryRow {
            noise: noise.noise,
            scenario: noise.scenario,
            robustness,
            relative: Some((robustness - 0.1) / (n.accuracy - 0.1)).filter(|_| n.accuracy > 0.1),
            half_severity: None,
        });
    }
    run.generalisation_summary.push(GeneralisationSummaryRow {
        first_epoch: last,
        last_epoch: last,
        test_sse: Some(n.test_sse),
        train_sse: Some(n.train_sse),
        running_train_sse: Some(1.1 * n.train_sse),
        test_accuracy: Some(n.accuracy),
    });
    let summary = |quantity: ActivityMeasure, value| ActivitySummaryRow {
        quantity,
        value,
        low: None,
        high: None,
        unit: quantity.unit().to_owned(),
    };
    run.activity_summary.push(summary(ActivityMeasure::SpikeRate, n.spike_rate));
    run.activity_summary.push(summary(ActivityMeasure::Synops, 1e6 * n.spike_rate));
    for (layer, kind, norm) in
        [("conv1", "conv", n.norm), ("pool1", "pool", 1e9), ("fc1", "full", 2.0 * n.norm)]
    {
        run.activity.push(ActivityRow {
            layer: layer.into(),
            kind: kind.parse().unwrap(),
            neurons: 100,
            spike_rate: Some(n.spike_rate),
            synops: Some(1e6),
            weighted_input_norm: Some(norm),
            dead: Some(0.0),
            saturated: Some(0.0),
        });
    }
    for (stimulus, critical) in
        [(Stimulus::Clean, n.critical), (Stimulus::at(PAPER_NOISES[0], 5), [n.critical_noisy; 3])]
    {
        for (reading, mean) in Reading::ALL.into_iter().zip(critical) {
            run.critical_summary.push(CriticalSummaryRow {
                stimulus,
                reading,
                mean: Some(mean),
                low: None,
                high: None,
                images: images as u64,
                left_out: 0,
                white_noise: Some(0.35),
                zero_share: Some(0.5),
            });
        }
    }
    run
}

pub fn robustness_row(noise: NoiseKey, severity: usize, accuracy: f64, images: usize) -> RobustnessRow {
    RobustnessRow {
        noise: noise.noise,
        scenario: noise.scenario,
        severity: severity as u64,
        level: severity as f64,
        images: images as u64,
        presentations: 1,
        correct: (accuracy * images as f64).round() as u64,
        accuracy,
        accuracy_low: (accuracy - 0.03).max(0.0),
        accuracy_high: (accuracy + 0.03).min(1.0),
        sse: Some(0.5),
    }
}

/// Runs of three tau with four seeds each; the numbers are a function of tau's rank (0: most leak) and the
/// seed's index.
pub fn study(numbers: impl Fn(usize, usize) -> Numbers) -> Vec<RunRecord> {
    let mut runs = Vec::new();
    for (rank, tau) in ["9", "30", "inf"].into_iter().enumerate() {
        for seed in 0..4 {
            let config = config(&[&format!("tau={tau}"), &format!("seed={}", seed + 1)]);
            runs.push(record(config, &numbers(rank, seed), IMAGES));
        }
    }
    runs
}

/// A little spread between seeds, without a trend.
pub fn wobble(seed: usize) -> f64 {
    [0.004, -0.003, 0.001, -0.002][seed]
}

/// A study in which accuracy under noise is higher by these amounts at ranks 0 and 1 than at rank 2.
pub fn gaining(first: f64, second: f64) -> Vec<RunRecord> {
    study(|rank, seed| Numbers::plain([first, second, 0.0][rank] + wobble(seed)))
}

/// The rows of one of the tables of a comparison.
pub fn rows<R: Row>(tables: &[Table]) -> Vec<R> {
    let table = tables.iter().find(|table| table.name == R::TABLE).expect("the comparison makes it");
    Rows::from_table(table).unwrap().rows
}

/// The opening sentence of a comparison.
pub fn answer(runs: &[RunRecord]) -> AnswerRow {
    rows(&compare(runs, None).unwrap()).remove(0)
}
