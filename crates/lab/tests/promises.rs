//! Error rates of the rules: thousands of simulated studies with known effects, judged by the real
//! comparison.
//!
//! A simulated study is a latent-variable model: an image has a difficulty, a training (condition x seed) has
//! a skill, each pair of training and image has an affinity, and each presentation adds randomness. All enter
//! the logit of a correct answer. The intervals of a study must cover the variation between trainings and
//! that between images.

mod synthetic;

use leaklab_lab::analysis::compare::{Comparison, RunRecord};
use leaklab_lab::analysis::{claims, contrast::Contrast};
use leaklab_lab::config::RunConfig;
use leaklab_record::tables::{CorrectnessRow, RobustnessSummaryRow};
use leaklab_record::{Bits, ClaimId, PAPER_NOISES, Quantity, Stimulus, Verdict};
use rayon::prelude::*;
use synthetic::config;

/// A small generator: studies are many, and their numbers need not be reproducible beyond this test.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn uniform(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 24) as f32
    }

    fn normal(&mut self) -> f32 {
        // Twelve uniforms are near enough to normal for latent variables.
        (0..12).map(|_| self.uniform()).sum::<f32>() - 6.0
    }
}

/// Parameters of a simulated study.
#[derive(Clone, Copy)]
struct Model {
    seeds: usize,
    images: usize,
    /// Standard deviation of a training's skill, shared by all noises, in logits.
    skill: f32,
    /// Standard deviation of the part of its skill for one noise.
    skill_by_noise: f32,
    /// Standard deviation of a training's affinity to an image.
    affinity: f32,
    /// Effect of leak, in logits.
    effect: f32,
}

/// Trainings differ by some two points of accuracy, images by far more.
const TYPICAL: Model =
    Model { seeds: 6, images: 355, skill: 0.08, skill_by_noise: 0.05, affinity: 0.7, effect: 0.0 };

const DIFFICULTY: f32 = 1.6;

/// Probability of a correct answer.
fn logistic(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// The logit at a severity from 0 to 8: from nearly all correct to nearly chance.
fn level(severity: usize) -> f32 {
    4.0 - 0.75 * severity as f32
}

/// The records of one study, with and without leak.
fn study(model: &Model, configs: &[RunConfig], number: u64) -> Vec<RunRecord> {
    let mut random = Random(number.wrapping_mul(0x1234_5678_9ABC_DEF1));
    let difficulty: Vec<f32> = (0..model.images).map(|_| DIFFICULTY * random.normal()).collect();
    let mut runs = Vec::with_capacity(configs.len());
    for config in configs {
        let effect = if config.leak.tau.leaks() { model.effect } else { 0.0 };
        let skill = model.skill * random.normal();
        let affinity: Vec<f32> = (0..model.images).map(|_| model.affinity * random.normal()).collect();
        let mut run = RunRecord::new(config.clone());
        let mut show = |stimulus: Stimulus, logit: f32, random: &mut Random| -> f64 {
            let answers = difficulty.iter().zip(&affinity);
            let correct: Bits = answers.map(|(d, a)| random.uniform() < logistic(logit + d + a)).collect();
            let share = correct.count() as f64 / model.images as f64;
            run.correctness.push(CorrectnessRow { stimulus, presentation: 1, correct });
            share
        };
        show(Stimulus::Clean, level(0) + skill, &mut random);
        let mut summaries = Vec::new();
        for noise in PAPER_NOISES {
            let own = model.skill_by_noise * random.normal();
            let shares = (1..=8).map(|severity| {
                show(Stimulus::at(noise, severity), level(severity) + skill + own + effect, &mut random)
            });
            let robustness = shares.sum::<f64>() / 8.0;
            let (noise, scenario) = (noise.noise, noise.scenario);
            let row =
                RobustnessSummaryRow { noise, scenario, robustness, relative: None, half_severity: None };
            summaries.push(row);
        }
        run.robustness_summary = summaries;
        runs.push(run);
    }
    runs
}

/// The true difference in robustness, over all images and trainings.
fn truth(model: &Model) -> f64 {
    let mut random = Random(7);
    let spread =
        (DIFFICULTY.powi(2) + model.affinity.powi(2) + model.skill.powi(2) + model.skill_by_noise.powi(2))
            .sqrt();
    let draws = 400_000;
    let mut sum = 0.0;
    for i in 0..draws {
        let (severity, x) = (1 + i % 8, spread * random.normal());
        let gain = logistic(level(severity) + model.effect + x) - logistic(level(severity) + x);
        sum += f64::from(gain);
    }
    sum / draws as f64
}

/// Of many studies, the shares in which some noise "holds", in which an interval covers the truth, and in
/// which the claim holds for the first noise.
fn error_rates(model: Model, studies: u64) -> (f64, f64, f64) {
    let mut configs = Vec::new();
    for tau in ["9", "inf"] {
        for seed in 1..=model.seeds {
            configs.push(config(&[&format!("tau={tau}"), &format!("seed={seed}")]));
        }
    }
    let truth = truth(&model);
    let judged: Vec<(bool, f64, bool)> = (0..studies)
        .into_par_iter()
        .map(|number| {
            let runs = study(&model, &configs, number + 1);
            let comparison = Comparison::new(&runs, None).unwrap();
            let (claims, _) = claims::judge(&comparison);
            let parts: Vec<_> = claims.rows.iter().filter(|row| row.claim == ClaimId::Robustness).collect();
            assert_eq!(parts.len(), 4);
            let holds = |verdict: Verdict| verdict == Verdict::Holds;
            let covered = PAPER_NOISES.iter().filter(|&&noise| {
                let contrast = comparison.contrast(&Quantity::Robustness(noise), "tau 9", "tau inf");
                let interval = contrast.as_ref().and_then(Contrast::interval).expect("there are pairs");
                (interval.low..=interval.high).contains(&truth)
            });
            let covered = covered.count() as f64 / 4.0;
            (parts.iter().any(|row| holds(row.verdict)), covered, holds(parts[0].verdict))
        })
        .collect();
    let share = |count: f64| count / studies as f64;
    (
        share(judged.iter().filter(|study| study.0).count() as f64),
        share(judged.iter().map(|study| study.1).sum()),
        share(judged.iter().filter(|study| study.2).count() as f64),
    )
}

const STUDIES: u64 = 2000;

/// Tolerance of a share of [`STUDIES`] studies: three standard errors of a share near 5 %.
fn slack() -> f64 {
    3.0 * (0.05 * 0.95 / STUDIES as f64).sqrt()
}

#[test]
fn without_an_effect_claim_2_seldom_holds_and_intervals_cover() {
    for (name, model) in [
        ("the default study's seeds and images", TYPICAL),
        ("two seeds", Model { seeds: 2, ..TYPICAL }),
        ("three seeds", Model { seeds: 3, ..TYPICAL }),
        ("twelve seeds", Model { seeds: 12, images: 200, ..TYPICAL }),
        (
            "few images, hardly any variance of seeds",
            Model { images: 60, skill: 0.0, skill_by_noise: 0.0, ..TYPICAL },
        ),
        ("trainings that differ a lot", Model { skill: 0.3, skill_by_noise: 0.15, ..TYPICAL }),
    ] {
        let (holds, covers, _) = error_rates(model, STUDIES);
        println!(
            "{name}: claim 2 holds for some noise in {:.1} %, intervals cover in {:.1} %",
            100.0 * holds,
            100.0 * covers
        );
        assert!(holds <= 0.05 + slack(), "{name}: {holds}");
        assert!(covers >= 0.95 - slack(), "{name}: {covers}");
    }
}

#[test]
fn with_an_effect_of_two_points_it_is_found() {
    let model = Model { effect: 0.17, ..TYPICAL };
    let truth = truth(&model);
    assert!((truth - 0.02).abs() < 0.002, "the effect is {truth}");
    for seeds in [3, 6, 12] {
        let (_, covers, power) = error_rates(Model { seeds, ..model }, STUDIES);
        println!(
            "{seeds} seeds, effect of {:.2} points: holds in {:.1} %, intervals cover in {:.1} %",
            100.0 * truth,
            100.0 * power,
            100.0 * covers
        );
        assert!(covers >= 0.95 - slack(), "{seeds}: {covers}");
    }
}
