//! Tables of a synthetic comparison.

use super::{Made, Synthetic, table};
use leaklab_record::tables::{
    AnswerCase, AnswerRow, ClaimRow, ConditionRow, ContrastRow, CriticalByConditionRow, EqualTrainSseRow,
    GeneralisationByConditionRow, NormByConditionRow, RobustnessByConditionRow, RunRow, Table1Row,
    TradeoffRow,
};
use leaklab_record::{Case, ClaimId, NoiseKey, Quantity, Reading, RunKey, Scenario, Stimulus, Unit, Verdict};
use std::fs;
use std::path::Path;

/// Accuracy under noise, by leak.
fn accuracy(made: &Made, noise: NoiseKey, severity: u64) -> f64 {
    if !made.learned {
        return 0.1;
    }
    let shift = if noise.scenario == Scenario::Pixel { 0.0 } else { 1.0 };
    let half = 4.0 + 3.0 * made.leak - shift;
    0.1 + 0.86 / (1.0 + (1.1 * (severity as f64 - half)).exp())
}

fn robustness(made: &Made, noise: NoiseKey) -> f64 {
    (1..=8).map(|severity| accuracy(made, noise, severity)).sum::<f64>() / 8.0
}

fn mean_robustness(study: &Synthetic, made: &Made) -> f64 {
    let noises = study.noises.iter();
    noises.map(|&noise| robustness(made, noise)).sum::<f64>() / study.noises.len() as f64
}

/// The stimuli of spectra, and how much each noise raises the power: recordings have one noise, images two.
pub fn stimuli(study: &Synthetic) -> Vec<(Stimulus, f64)> {
    let noises = [study.noises.first(), study.noises.last().filter(|_| !study.recorded)];
    let noisy = noises.into_iter().flatten().zip([1.0, 1.6]);
    let noisy = noisy.map(|(noise, power)| (Stimulus::at(*noise, 5), power));
    std::iter::once((Stimulus::Clean, 0.0)).chain(noisy).collect()
}

pub fn critical(made: &Made, reading: Reading, noise: f64) -> f64 {
    let slope = match reading {
        Reading::Defined => 0.3,
        Reading::Settled => 0.05,
        Reading::Shuffled => 0.01,
    };
    0.345 - slope * made.leak + 0.015 * noise
}

pub fn write(study: &Synthetic, folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let seeds = study.seeds;
    let compared: Vec<&Made> = study.compared().collect();
    let learned: Vec<&Made> = compared.iter().copied().filter(|made| made.learned).collect();
    claims(study, folder);
    conditions(study, folder);
    table1(study, folder);
    contrasts(study, &learned, folder);
    let mut rows = Vec::new();
    for &noise in &study.noises {
        for severity in 0..=8u64 {
            for made in &compared {
                let mean = accuracy(made, noise, severity);
                rows.push(RobustnessByConditionRow {
                    noise: noise.noise,
                    scenario: noise.scenario,
                    severity,
                    level: 0.15 * severity as f64,
                    condition: made.name.clone(),
                    mean,
                    low: Some((mean - 0.025).max(0.0)),
                    high: Some((mean + 0.025).min(1.0)),
                    seeds,
                });
            }
        }
    }
    table(folder, "Accuracy under noise", rows);
    let epochs = compared.iter().flat_map(|made| {
        (1..=super::EPOCHS).map(move |epoch| {
            let train_sse = 0.9 * (-(epoch as f64) / 4.0).exp() + 0.03;
            let test_sse = train_sse.powf(0.8) * (1.0 - 0.4 * made.leak);
            GeneralisationByConditionRow { condition: made.name.clone(), epoch, train_sse, test_sse, seeds }
        })
    });
    table(folder, "Errors epoch by epoch", epochs);
    let equal = learned.iter().flat_map(|made| {
        (1..=10).map(move |k| {
            let train_sse = 0.04 * 1.3f64.powi(k);
            let mean = train_sse.powf(0.8) * (1.0 - 0.4 * made.leak);
            let (low, high) = (Some(0.96 * mean), Some(1.04 * mean));
            EqualTrainSseRow { train_sse, condition: made.name.clone(), mean, low, high, seeds }
        })
    });
    table(folder, "Test error at equal training error", equal);
    let norms = compared.iter().flat_map(|made| {
        ["conv1", "conv2", "conv3", "fc1"].iter().enumerate().map(move |(i, layer)| {
            let mean = (4.0 + i as f64) * (1.0 + 1.4 * made.leak);
            let (low, high) = (Some(0.95 * mean), Some(1.05 * mean));
            let (layer, condition) = ((*layer).to_owned(), made.name.clone());
            NormByConditionRow { layer, condition, mean, low, high, seeds }
        })
    });
    table(folder, "Weighted-input norm", norms);
    let mut rows = Vec::new();
    for made in &compared {
        for reading in Reading::ALL {
            for (stimulus, noise) in stimuli(study) {
                let mean = critical(made, reading, noise);
                rows.push(CriticalByConditionRow {
                    condition: made.name.clone(),
                    stimulus,
                    reading,
                    mean,
                    low: Some(mean - 0.006),
                    high: Some(mean + 0.006),
                    seeds,
                    paper: None,
                });
            }
        }
    }
    table(folder, "Critical frequency", rows);
    // A condition that did not learn is on the front here, to test that the page ignores it.
    let points = compared.iter().map(|made| {
        let synops = 1.1e6 + 3.1e6 * made.leak;
        TradeoffRow {
            condition: made.name.clone(),
            synops,
            synops_half: Some(0.04 * synops),
            energy: synops * 0.9e-12,
            robustness: mean_robustness(study, made),
            robustness_half: Some(0.012),
            accuracy: Some(if made.learned { 0.962 } else { 0.1 }),
            pareto: true,
        }
    });
    table(folder, "Robustness against work", points);
}

fn conditions(study: &Synthetic, folder: &Path) {
    let rows = study.conditions.iter().map(|made| ConditionRow {
        condition: made.name.clone(),
        tau: made.tau,
        role: made.role,
        differs: made.differs.parse().unwrap(),
        runs: study.seeds,
        learned: Some(made.learned),
        reason: made.reason(),
    });
    table(folder, "Conditions", rows);
    let rows = study.conditions.iter().flat_map(|made| {
        (1..=study.seeds).map(|seed| RunRow {
            run: RunKey { condition: made.name.clone(), seed }.folder_name(),
            condition: made.name.clone(),
            seed,
            accuracy: Some(if made.learned { 0.96 + 0.003 * seed as f64 } else { 0.1 }),
            chance: 0.1,
            learned: Some(made.learned),
            reason: made.reason(),
        })
    });
    table(folder, "Runs", rows);
}

fn table1(study: &Synthetic, folder: &Path) {
    let mut rows = Vec::new();
    for (quantity, factor, base, slope) in [
        (Quantity::Accuracy, 1.0, 0.962, 0.004),
        (Quantity::TestSse, 1.0, 0.12, -0.05),
        (Quantity::TestSse, 32.0, 0.12, -0.05),
        (Quantity::TrainSse, 1.0, 0.07, -0.02),
        (Quantity::RunningTrainSse, 32.0, 0.09, -0.03),
        (Quantity::SpikeRate, 1.0, 0.05, 0.16),
        (Quantity::Synops, 1.0, 1.1e6, 3.1e6),
    ] {
        for made in study.compared() {
            let mean =
                if !made.learned && quantity == Quantity::Accuracy { 0.1 } else { base + slope * made.leak };
            rows.push(Table1Row {
                quantity: quantity.clone(),
                factor,
                condition: made.name.clone(),
                mean: Some(mean),
                standard_error: Some(0.01 * mean),
                seeds: study.seeds,
                paper: None,
                unit: quantity.unit(),
            });
        }
    }
    table(folder, "Table 1", rows);
}

fn contrasts(study: &Synthetic, learned: &[&Made], folder: &Path) {
    let baseline = study.baseline();
    let mut rows = Vec::new();
    for made in learned.iter().filter(|made| made.name != baseline.name) {
        let mut add = |quantity: Quantity, mean: f64, half: f64| {
            rows.push(ContrastRow {
                unit: quantity.contrast_unit(),
                quantity,
                a: made.name.clone(),
                b: baseline.name.clone(),
                mean,
                low: Some(mean - half),
                high: Some(mean + half),
                p: Some(0.01),
                pairs: study.seeds,
                seed_error: Some(half / 4.0),
                image_error: Some(half / 5.0),
            });
        };
        add(Quantity::Accuracy, 0.002 * made.leak, 0.008);
        for &noise in &study.noises {
            add(Quantity::Robustness(noise), robustness(made, noise) - robustness(baseline, noise), 0.009);
            for severity in 1..=8 {
                let difference = accuracy(made, noise, severity) - accuracy(baseline, noise, severity);
                add(Quantity::AccuracyUnder(noise, severity as usize), difference, 0.012);
            }
        }
        for reading in Reading::ALL {
            let difference = critical(made, reading, 0.0) - critical(baseline, reading, 0.0);
            add(Quantity::CriticalFrequency(reading, Stimulus::Clean), difference, 0.008);
        }
    }
    table(folder, "Paired comparisons", rows);
}

fn claims(study: &Synthetic, folder: &Path) {
    let sentence = "Yes: the more leak, the more accurate under noise, for all 4 noises tested (tau 30 \
                    against inf: +1.6 to +5.6 percentage points).";
    let answer = AnswerRow { case: AnswerCase::DoseResponse, sentence: sentence.to_owned() };
    table(folder, "Answer", [answer]);
    let noisy = study.noises.iter();
    let noisy = noisy.map(|&noise| (ClaimId::Robustness, noise.to_string(), Some(noise), Unit::Fraction));
    let part = |claim, part: &str, unit| (claim, part.to_owned(), None, unit);
    let mut parts = vec![part(ClaimId::EqualAccuracy, "", Unit::Fraction)];
    parts.extend(noisy);
    parts.extend([
        part(ClaimId::Generalisation, "test SSE", Unit::Ratio),
        part(ClaimId::Generalisation, "at equal training SSE", Unit::Ratio),
        part(ClaimId::Price, "spikes", Unit::Ratio),
        part(ClaimId::Price, "synaptic operations", Unit::Ratio),
        part(ClaimId::WeightedInput, "conv1", Unit::Ratio),
        part(ClaimId::WeightedInput, "fc1", Unit::Ratio),
        part(ClaimId::CriticalFrequency, "falls with leak", Unit::Frequency),
        part(ClaimId::CriticalFrequency, "rises with noise", Unit::Frequency),
        part(ClaimId::Divergence, "", Unit::Fraction),
        // Beyond the paper: not among its claims.
        part(ClaimId::FromHidden, "", Unit::Fraction),
    ]);
    let rows = parts.into_iter().map(|(claim, part, noise, unit)| {
        let place = ClaimId::ALL.iter().position(|id| *id == claim).unwrap();
        let case = study.cases.get(place).copied().unwrap_or(Case::AsClaimed);
        ClaimRow {
            claim,
            statement: format!(
                "What claim {claim} states of {}.",
                if part.is_empty() { "tau" } else { &part }
            ),
            part,
            noise,
            paper: "the paper's finding".to_owned(),
            ours: Some(0.123),
            low: Some(0.1),
            high: Some(0.15),
            p: noise.map(|_| 0.012),
            smallest: 0.01,
            verdict: case.verdict(),
            case,
            reason: "The interval lies above 0 by 3 %.".to_owned(),
            rule: "Holds: the interval lies above 0. Does not hold: an effect is excluded.".to_owned(),
            quantity: "difference of something, tau 30 minus tau inf".to_owned(),
            unit,
            seeds: study.seeds,
            seeds_needed: (case.verdict() == Verdict::NotEnoughEvidence).then_some(14),
        }
    });
    table(folder, "Claims", rows);
}
