//! Verdicts follow their stated rules: synthetic records for which each claim holds, does not hold and is
//! undecided.

mod synthetic;

use leaklab_lab::analysis::compare::{CompareError, RunRecord, compare};
use leaklab_record::health::{self, Notice, Trouble};
use leaklab_record::metrics::LayerEpoch;
use leaklab_record::tables::{
    AnswerCase, AnswerRow, ClaimRow, ConditionRow, ContrastRow, RunRow, TradeoffRow,
};
use leaklab_record::{Case, ClaimId, PAPER_NOISES, Quantity, Role, Verdict};
use synthetic::{IMAGES, Numbers, answer, config, falling, gaining, record, rows, study, wobble};

fn claims(runs: &[RunRecord]) -> Vec<ClaimRow> {
    rows(&compare(runs, None).unwrap())
}

fn of(claims: &[ClaimRow], claim: ClaimId) -> Vec<&ClaimRow> {
    claims.iter().filter(|row| row.claim == claim).collect()
}

#[test]
fn equal_accuracy() {
    let case = |difference: f64, spread: f64| {
        let runs = study(|rank, seed| {
            let accuracy = 0.93 + if rank == 0 { difference + spread * wobble(seed) / 0.004 } else { 0.0 };
            Numbers { accuracy, ..Numbers::plain(0.0) }
        });
        let claims = claims(&runs);
        let row = of(&claims, ClaimId::EqualAccuracy)[0].clone();
        (row.verdict, row.case, row.seeds_needed)
    };
    assert_eq!(case(0.0, 0.0), (Verdict::Holds, Case::AsClaimed, None));
    assert_eq!(case(-0.05, 0.001), (Verdict::DoesNotHold, Case::Different, None));
    let (verdict, case, needed) = case(0.0, 0.03);
    assert_eq!((verdict, case), (Verdict::NotEnoughEvidence, Case::Undecided));
    assert!(needed.is_some_and(|n| n > 4), "{needed:?}");
}

/// With the number of pairs that is reported as needed, equality is found in four of five simulated studies.
#[test]
fn pairs_needed_for_equality_have_their_power() {
    use leaklab_lab::analysis::contrast::Contrast;
    let (margin, spread) = (0.01, 0.012);
    // Uniform numbers from a fixed generator, summed to nearly normal ones.
    let mut state = 1_u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
    // Observed: pairs whose standard deviation is the true one.
    let observed = [spread, -spread, spread, -spread].map(|x| x * (3.0_f64 / 4.0).sqrt());
    let pairs = Contrast::of_seeds(&observed).unwrap().pairs_needed_for_equality(margin).unwrap();
    let studies = 2000;
    let found = (0..studies).filter(|_| {
        let differences: Vec<f64> = (0..pairs).map(|_| spread * normal()).collect();
        let interval = Contrast::of_seeds(&differences).unwrap().interval().unwrap();
        interval.low > -margin && interval.high < margin
    });
    let power = found.count() as f64 / f64::from(studies);
    // Pairs are whole, so the power is a little above 80 %; its standard error is 0.9 %.
    assert!((0.77..0.90).contains(&power), "{pairs} pairs: {power}");
}

#[test]
fn robustness_in_absolute_points_by_noise() {
    for (first, second, verdict, case) in [
        (0.05, 0.02, Verdict::Holds, Case::AsClaimed),
        (-0.05, -0.02, Verdict::DoesNotHold, Case::Opposite),
        (0.0, 0.0, Verdict::DoesNotHold, Case::NoEffect),
        (0.05, 0.09, Verdict::DoesNotHold, Case::NotSteady),
    ] {
        let claims = claims(&gaining(first, second));
        let parts = of(&claims, ClaimId::Robustness);
        assert_eq!(parts.len(), 4);
        for row in parts {
            assert_eq!((row.verdict, row.case), (verdict, case), "{first} {second} {row:?}");
            assert!(row.noise.is_some() && row.p.is_some());
        }
    }
}

/// Even if three pairs agree exactly, the interval includes the uncertainty of few images.
#[test]
fn images_are_a_floor_of_every_interval() {
    let few = |gain: f64| {
        let mut runs = Vec::new();
        for (tau, gain) in [("30", gain), ("inf", 0.0)] {
            for seed in 1..=3 {
                let config = config(&[&format!("tau={tau}"), &format!("seed={seed}")]);
                runs.push(record(config, &Numbers::plain(gain), 50));
            }
        }
        rows::<ContrastRow>(&compare(&runs, None).unwrap())
    };
    let rows = few(0.06);
    let find = |quantity: Quantity| rows.iter().find(|row| row.quantity == quantity).unwrap();
    let row = find(Quantity::Robustness(PAPER_NOISES[0]));
    assert_eq!(row.seed_error, Some(0.0));
    assert!(row.image_error.unwrap() > 0.005, "{row:?}");
    assert!(row.high.unwrap() - row.low.unwrap() > 3.9 * row.image_error.unwrap(), "{row:?}");
}

#[test]
fn one_noise_among_many_needs_more_evidence() {
    // One noise of four has an effect that its own interval finds, and Holm's correction over four does not.
    let runs = |noises: usize| {
        study(|rank, seed| {
            let mut numbers = Numbers::plain(0.0);
            numbers.noisy.truncate(noises);
            let luck = if rank == 0 { 0.0117 + 2.2 * wobble(seed) } else { 0.0 };
            numbers.noisy[0].1 = falling(0.95, luck.max(-0.05), 1);
            numbers
        })
    };
    let first = |noises: usize| {
        let claims = claims(&runs(noises));
        (of(&claims, ClaimId::Robustness)[0].case, of(&claims, ClaimId::Robustness)[0].p.unwrap())
    };
    let (alone, among) = (first(1), first(4));
    assert!(among.1 > 2.0 * alone.1 || among.1 == 1.0, "{alone:?} {among:?}");
    assert_eq!((alone.0, among.0), (Case::AsClaimed, Case::Corrected), "{alone:?} {among:?}");
}

/// Runs stuck at chance are named, count in claim 7 only, and are never called robust.
#[test]
fn a_dead_condition_is_not_robust() {
    let mut runs = gaining(0.02, 0.01);
    for seed in 1..=3 {
        let config = config(&["tau=5", &format!("seed={seed}")]);
        let dead = Numbers {
            accuracy: 0.1,
            noisy: PAPER_NOISES.map(|noise| (noise, [0.1; 8])).to_vec(),
            spike_rate: 0.001,
            ..Numbers::plain(0.0)
        };
        runs.push(record(config, &dead, IMAGES));
    }
    let tables = compare(&runs, None).unwrap();
    let conditions: Vec<ConditionRow> = rows(&tables);
    let dead = conditions.iter().find(|row| row.condition == "tau 5").unwrap();
    assert_eq!((dead.learned, dead.role), (Some(false), Role::Compared));
    assert!(
        dead.reason.contains("3 of 3 runs did not learn") && dead.reason.contains("10.0 %"),
        "{}",
        dead.reason
    );
    let claims: Vec<ClaimRow> = rows(&tables);
    for row in &claims {
        assert!(!row.quantity.contains("tau 5"), "{row:?}");
    }
    let divergence = of(&claims, ClaimId::Divergence);
    assert_eq!(divergence.len(), 1);
    assert!(divergence[0].statement.contains("tau 5"), "{}", divergence[0].statement);
    assert_eq!(divergence[0].ours, Some(1.0));
    let tradeoff: Vec<TradeoffRow> = rows(&tables);
    assert!(tradeoff.iter().all(|row| row.condition != "tau 5") && tradeoff.len() == 3);
    let answer: Vec<AnswerRow> = rows(&tables);
    assert!(answer[0].sentence.contains("tau 9 gains"), "{}", answer[0].sentence);
    assert!(answer[0].sentence.contains("not every run learned: tau 5"), "{}", answer[0].sentence);
    let notes = &tables.iter().find(|table| table.name == "claims").unwrap().notes;
    assert!(notes.iter().any(|note| note.contains("tau 5 is excluded")), "{notes:?}");
}

#[test]
fn weights_that_outgrow_the_threshold_are_named() {
    let runs = |norm: f64| {
        study(|rank, _| Numbers { norm: if rank == 0 { norm } else { 5.0 }, ..Numbers::plain(0.0) })
    };
    let texts = |norm: f64| {
        let tables = compare(&runs(norm), None).unwrap();
        let answer: Vec<AnswerRow> = rows(&tables);
        let notes = tables.iter().find(|table| table.name == "claims").unwrap().notes.join(" ");
        (answer[0].sentence.clone(), notes)
    };
    let (answer, notes) = texts(1e5);
    assert!(answer.contains("With tau 9, training drove the weights far beyond the threshold"), "{answer}");
    assert!(notes.contains("Condition tau 9: weights have outgrown the threshold. In fc1,"), "{notes}");
    let (answer, notes) = texts(5.0);
    assert!(!answer.contains("threshold") && !notes.contains("outgrown"), "{answer} {notes}");
    // The threshold is that of the condition.
    let mut high = runs(1e5);
    high.iter_mut().filter(|run| run.config.leak.to_string() == "9").for_each(|run| run.config.v_th = 1e6);
    let tables = compare(&high, None).unwrap();
    let notes = tables.iter().find(|table| table.name == "claims").unwrap().notes.join(" ");
    assert!(!notes.contains("outgrown"), "{notes}");
}

#[test]
fn a_better_fit_is_not_better_generalisation() {
    let runs = |test: f64, train: f64| {
        study(|rank, seed| {
            // Runs of one seed resemble each other, but not exactly.
            let scale = |last: f64, own: f64| {
                [last, 0.5 * (1.0 + last), 1.0][rank] * (1.0 + (1.0 + own * rank as f64) * wobble(seed))
            };
            Numbers {
                test_sse: 0.2 * scale(test, 0.1),
                train_sse: 0.1 * scale(train, 0.05),
                ..Numbers::plain(0.0)
            }
        })
    };
    let verdict = |runs: &[RunRecord], part: &str| {
        let claims = claims(runs);
        let found = claims.iter().find(|row| row.claim == ClaimId::Generalisation && row.part == part);
        found.unwrap_or_else(|| panic!("{part}")).verdict
    };
    // Both errors fall by the same factor: a better fit, and the gap falls with it; at equal training error,
    // the test error does not.
    let fit = runs(0.7, 0.7);
    assert_eq!(verdict(&fit, "test SSE"), Verdict::Holds);
    assert_eq!(verdict(&fit, "training SSE"), Verdict::Holds);
    assert_eq!(verdict(&fit, "equal training SSE"), Verdict::DoesNotHold);
    // The test error falls alone: better generalisation by every measure but the fit.
    let better = runs(0.7, 1.0);
    assert_eq!(verdict(&better, "test SSE"), Verdict::Holds);
    assert_eq!(verdict(&better, "training SSE"), Verdict::DoesNotHold);
    assert_eq!(verdict(&better, "gap"), Verdict::Holds);
    assert_eq!(verdict(&better, "equal training SSE"), Verdict::Holds);
}

/// The smallest gap of interest is a share of an SSE. That of a baseline that did not learn is of another size.
#[test]
fn a_baseline_that_did_not_learn_does_not_scale_the_gap() {
    let learned = |rank: usize, seed: usize| Numbers {
        test_sse: 0.2 - 0.01 * (1 - rank) as f64 + 0.1 * (1 + rank) as f64 * wobble(seed),
        ..Numbers::plain(wobble(seed))
    };
    let dead = Numbers {
        accuracy: 0.1,
        noisy: PAPER_NOISES.map(|noise| (noise, [0.1; 8])).to_vec(),
        test_sse: 5.0,
        train_sse: 5.0,
        ..Numbers::plain(0.0)
    };
    let runs = study(|rank, seed| if rank == 2 { dead.clone() } else { learned(rank, seed) });
    let found = claims(&runs);
    let gap = of(&found, ClaimId::Generalisation).into_iter().find(|row| row.part == "gap").unwrap();
    // The wobbles of the four seeds add up to 0.
    assert!((gap.smallest - 0.02 * 0.2).abs() < 1e-12, "{}", gap.smallest);
    assert!(gap.rule.contains("2 % of the test SSE of tau 30"), "{}", gap.rule);
    // A gain of 0.01 is more than 2 % of 0.2, and would be less than 2 % of 5.
    assert_eq!((gap.verdict, gap.case), (Verdict::Holds, Case::AsClaimed));
}

/// There are several reasons why test SSE cannot be compared at equal training SSE.
#[test]
fn the_reason_for_no_equal_training_sse_is_the_true_one() {
    // Runs whose training SSEs overlap only for the first `overlapping` seeds.
    let runs = |overlapping: usize| {
        study(|rank, seed| Numbers {
            train_sse: if rank == 0 && seed >= overlapping { 1e-4 } else { 0.1 },
            test_sse: 0.2 + 0.01 * wobble(seed) * rank as f64,
            ..Numbers::plain(0.0)
        })
    };
    let reason = |runs: &[RunRecord]| {
        let found = claims(runs);
        let rows = of(&found, ClaimId::Generalisation);
        rows.into_iter().find(|row| row.part == "equal training SSE").unwrap().reason.clone()
    };
    let none = "In no pair of runs do the training SSEs of the last epochs overlap.";
    assert_eq!(reason(&runs(0)), none);
    let one = "The training SSEs of the last epochs overlap in 1 of 4 pairs of runs, and an interval needs at \
               least 2.";
    assert_eq!(reason(&runs(1)), one);
    let mut short = runs(4);
    short.iter_mut().for_each(|run| run.epochs.truncate(1));
    let few = "In no pair of runs do both have two last epochs with different training SSEs.";
    assert_eq!(reason(&short), few);
    let mut unmeasured = runs(4);
    for run in &mut unmeasured {
        run.epochs.iter_mut().for_each(|epoch| epoch.train_sse_evaluated = None);
        run.generalisation_summary[0].train_sse = None;
    }
    assert_eq!(reason(&unmeasured), "No pair of runs that learned has measured it.");
    // A step that contradicts the claim decides, though the extremes have no interval.
    let contrary = study(|rank, seed| Numbers {
        train_sse: [1e-4, 0.1, 0.1][rank],
        test_sse: [0.2, 0.4 + 0.01 * wobble(seed), 0.2][rank],
        ..Numbers::plain(0.0)
    });
    assert!(reason(&contrary).starts_with("Between tau 30 and tau inf it goes the other way"));
}

#[test]
fn the_price_and_every_layer() {
    let runs = study(|rank, seed| Numbers {
        spike_rate: [0.2, 0.15, 0.1][rank] * (1.0 + (1.0 + 0.1 * rank as f64) * wobble(seed)),
        norm: [9.0, 7.0, 5.0][rank] * (1.0 + (1.0 + 0.1 * rank as f64) * wobble(seed)),
        ..Numbers::plain(0.0)
    });
    let claims = claims(&runs);
    assert!(of(&claims, ClaimId::Price).iter().all(|row| row.verdict == Verdict::Holds));
    let layers: Vec<&str> = of(&claims, ClaimId::WeightedInput).iter().map(|row| row.part.as_str()).collect();
    assert_eq!(layers, ["conv1", "fc1"]);
    assert!(of(&claims, ClaimId::WeightedInput).iter().all(|row| row.verdict == Verdict::Holds));
}

#[test]
fn each_reading_of_the_critical_frequency_has_a_verdict() {
    // It falls with leak as defined, rises if settled, and does not change if shuffled.
    let runs = study(|rank, seed| {
        let x = [1.0, 0.5, 0.0][rank];
        let luck = 0.1 * (1.0 + x) * wobble(seed);
        Numbers {
            critical: [0.3 - 0.05 * x, 0.3 + 0.05 * x, 0.3].map(|value| value + luck),
            critical_noisy: 0.33,
            ..Numbers::plain(0.0)
        }
    });
    let tables = compare(&runs, None).unwrap();
    let claims: Vec<ClaimRow> = rows(&tables);
    let verdict = |part: &str| {
        let found = claims.iter().find(|row| row.claim == ClaimId::CriticalFrequency && row.part == part);
        found.unwrap_or_else(|| panic!("{part}")).verdict
    };
    assert_eq!(verdict("leak, clean, defined"), Verdict::Holds);
    assert_eq!(verdict("leak, clean, settled"), Verdict::DoesNotHold);
    assert_eq!(verdict("leak, clean, shuffled"), Verdict::DoesNotHold);
    assert_eq!(verdict("noise, gaussian/pixel/5, tau inf"), Verdict::Holds);
    let notes = &tables.iter().find(|table| table.name == "claims").unwrap().notes;
    assert!(notes.iter().any(|note| note.contains("sign depends on the reading")), "{notes:?}");
}

/// A cause is named only if the intervals support it.
#[test]
fn no_cause_is_named_for_chance() {
    let note = |defined: f64, shuffled: f64, spread: f64| {
        let runs = study(|rank, seed| {
            let x = [1.0, 0.5, 0.0][rank];
            let luck = if rank == 0 { spread * wobble(seed) } else { 0.1 * x * wobble(seed) };
            let critical =
                [0.3 + defined * x, 0.3 + defined * x, 0.3 + shuffled * x].map(|value| value + luck);
            Numbers { critical, ..Numbers::plain(0.0) }
        });
        let tables = compare(&runs, None).unwrap();
        let notes = tables.into_iter().find(|table| table.name == "claims").unwrap().notes;
        notes.into_iter().find(|note| note.starts_with("Claim 6")).unwrap()
    };
    for (defined, shuffled, spread, words) in [
        (0.0, 0.0, 1.0, "may be chance"),
        (-0.05, 0.0, 0.1, "Less than half of it is present in shuffled"),
        (-0.05, -0.04, 0.1, "Most of it is also present in shuffled"),
        (-0.05, -0.02, 5.0, "not known well enough"),
        (-0.05, -0.03, 5.0, "not known well enough"),
    ] {
        let note = note(defined, shuffled, spread);
        assert!(note.contains(words), "{words}: {note}");
    }
}

/// Accuracy alone does not show that a run learned.
#[test]
fn a_run_that_diverged_or_has_a_constant_output_did_not_learn() {
    let learned = |runs: &[RunRecord]| -> Vec<(Option<bool>, String)> {
        let rows = rows::<RunRow>(&compare(runs, None).unwrap());
        rows.into_iter()
            .filter(|row| row.learned == Some(false))
            .map(|row| (row.learned, row.reason))
            .collect()
    };
    let all = gaining(0.02, 0.01);
    assert_eq!(learned(&all), []);
    // It stopped with a number that is not finite, before its last epoch.
    let mut stopped = all.clone();
    let epochs = stopped[0].config.epochs;
    stopped[0].epochs.pop();
    let not_finite = |run: &mut RunRecord, kind| {
        let message = "the loss is not a finite number any more".to_owned();
        let notice = Notice {
            format: health::FORMAT,
            epoch: epochs,
            kind,
            layers: Vec::new(),
            message,
            advice: String::new(),
        };
        run.notices.push(notice);
    };
    assert_eq!(learned(&stopped), [], "a run that was only trained for fewer epochs");
    not_finite(&mut stopped[0], Trouble::NonFinite);
    let found = learned(&stopped);
    assert!(matches!(&found[..], [(_, reason)] if reason.contains("not a finite number")), "{found:?}");
    // It diverged for a while and recovered.
    let mut recovered = all.clone();
    not_finite(&mut recovered[0], Trouble::Diverged);
    assert_eq!(learned(&recovered), []);
    // Its last hidden layer is silent; the output layer has no spikes in any run.
    let layer = |name: &str, spike_rate| LayerEpoch {
        name: name.to_owned(),
        kind: leaklab_engine::LayerKind::Full,
        spike_rate,
        synops: None,
        weighted_input_norm: None,
    };
    let mut silent = all;
    for (run, rate) in [(0, 0.0), (1, 1e-6)] {
        let layers = vec![layer("fc1", Some(0.1)), layer("fc2", Some(rate)), layer("fc3", None)];
        silent[run].epochs.last_mut().unwrap().layers = layers;
    }
    let found = learned(&silent);
    assert!(matches!(&found[..], [(_, reason)] if reason.contains("fc2 never fires")), "{found:?}");
}

#[test]
fn claim_7_is_judged_from_probes_by_gradient() {
    let with_probes = |failing: bool| {
        let mut runs = gaining(0.02, 0.01);
        for gradient in ["straight-through", "exact"] {
            for seed in 1..=4 {
                let config = config(&[
                    "tau=1.5",
                    "probe=true",
                    &format!("condition=probe {gradient}"),
                    &format!("gradient={gradient}"),
                    &format!("seed={seed}"),
                ]);
                let accuracy = if failing && gradient == "straight-through" { 0.12 } else { 0.9 };
                runs.push(record(config, &Numbers { accuracy, ..Numbers::plain(0.3) }, IMAGES));
            }
        }
        runs
    };
    let claims = claims(&with_probes(true));
    let found: Vec<(&str, Verdict)> =
        of(&claims, ClaimId::Divergence).iter().map(|row| (row.part.as_str(), row.verdict)).collect();
    assert_eq!(
        found,
        [("straight-through gradient", Verdict::Holds), ("exact gradient", Verdict::DoesNotHold)]
    );
    // One of four fails: more runs with a small tau would settle it, at the same share of failures.
    let mut one_failure = with_probes(false);
    let exact = one_failure.len() - 4;
    let failed = one_failure[exact].config.clone();
    one_failure[exact] = record(failed, &Numbers { accuracy: 0.12, ..Numbers::plain(0.3) }, IMAGES);
    let undecided = self::claims(&one_failure);
    let row = of(&undecided, ClaimId::Divergence)[1];
    assert_eq!((row.verdict, row.seeds), (Verdict::NotEnoughEvidence, 4));
    assert!(row.seeds_needed.is_some_and(|runs| (5..=40).contains(&runs)), "{row:?}");
    // Probes do not count in any other claim, however robust they are.
    for row in claims.iter().filter(|row| row.claim != ClaimId::Divergence) {
        assert!(!row.quantity.contains("probe"), "{row:?}");
    }
    assert_eq!(answer(&with_probes(false)).case, AnswerCase::DoseResponse);
    // Conditions whose weights compensate for the leak count on neither side, whether they learn or not.
    let mut scaled = with_probes(true);
    for seed in 1..=4 {
        let settings = ["tau=1.5", "initial=rate", "condition=scaled", &format!("seed={seed}")];
        scaled.push(record(config(&settings), &Numbers { accuracy: 0.1, ..Numbers::plain(0.0) }, IMAGES));
    }
    let with_scaled = self::claims(&scaled);
    let shares =
        |claims: &[ClaimRow]| of(claims, ClaimId::Divergence).iter().map(|row| row.ours).collect::<Vec<_>>();
    assert_eq!(shares(&with_scaled), shares(&claims));
    let without = self::claims(&gaining(0.02, 0.01)[4..]);
    assert!(of(&without, ClaimId::Divergence)[0].reason.contains("no tau below 9"), "{without:?}");
}

#[test]
fn conditions_outside_the_sweep_are_compared_with_the_baseline() {
    let mut runs = Vec::new();
    for (name, settings) in [
        ("none", vec!["tau=inf"]),
        ("both", vec!["tau=9"]),
        ("readout", vec!["tau=inf", "readout_tau=9"]),
        ("hidden", vec!["tau=9", "readout_tau=inf"]),
    ] {
        for seed in 0..4 {
            let mut all = settings.clone();
            let (seed_text, name_text) = (format!("seed={}", seed + 1), format!("condition={name}"));
            all.extend([seed_text.as_str(), name_text.as_str()]);
            let gain = if name == "readout" { 0.05 } else { 0.0 };
            runs.push(record(config(&all), &Numbers::plain(gain + wobble(seed)), IMAGES));
        }
    }
    let tables = compare(&runs, None).unwrap();
    let answer: AnswerRow = rows(&tables).remove(0);
    let expected =
        "In addition, readout compared with no leak is more accurate under all 4 kinds of noise, by ";
    assert!(answer.sentence.contains(expected) && !answer.sentence.contains("hidden"), "{}", answer.sentence);
    let conditions: Vec<ConditionRow> = rows(&tables);
    let found: Vec<(&str, Option<String>, Role)> = conditions
        .iter()
        .map(|row| (row.condition.as_str(), row.tau.map(|tau| tau.to_string()), row.role))
        .collect();
    assert_eq!(
        found,
        [
            ("both", Some("9".into()), Role::Compared),
            ("none", Some("inf".into()), Role::Baseline),
            ("readout", None, Role::Compared),
            ("hidden", None, Role::Compared),
        ]
    );
    assert_eq!(conditions[2].differs.to_string(), "readout_tau = 9");
    let contrasts: Vec<ContrastRow> = rows(&tables);
    assert!(contrasts.iter().any(|row| row.a == "readout" && row.b == "none"));
    let named = compare(&runs, Some("hidden")).unwrap();
    let conditions: Vec<ConditionRow> = rows(&named);
    assert!(conditions.iter().any(|row| row.condition == "hidden" && row.role == Role::Baseline));
}

#[test]
fn runs_that_cannot_be_compared() {
    assert_eq!(compare(&[], None), Err(CompareError::NoRuns));
    let run = |assignments: &[&str]| record(config(assignments), &Numbers::plain(0.0), 10);
    let twice = compare(&[run(&["tau=30"]), run(&["tau=30"])], None).unwrap_err().to_string();
    assert!(twice.contains("'tau 30' with seed 1"), "{twice}");
    let mixed = [run(&["tau=30"]), run(&["tau=inf", "network=1x8x8-8C3-10o"])];
    let mixed = compare(&mixed, None).unwrap_err().to_string();
    assert!(mixed.contains("differ in network"), "{mixed}");
    let unlike = [run(&["tau=30", "seed=1"]), run(&["tau=30", "seed=2", "dropout=0.25"])];
    let unlike = compare(&unlike, None).unwrap_err().to_string();
    assert!(unlike.contains("both 'tau 30' but differ in dropout (0, 0.25)"), "{unlike}");
    let levels = "severity.gaussian/pixel=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]";
    let levels = compare(&[run(&["tau=30"]), run(&["tau=inf", levels])], None).unwrap_err().to_string();
    assert!(levels.contains("differ in severity") && levels.contains("measured alike"), "{levels}");
    let fewer = [run(&["tau=30"]), record(config(&["tau=inf"]), &Numbers::plain(0.0), 7)];
    let fewer = compare(&fewer, None).unwrap_err().to_string();
    assert!(fewer.contains("with 10 test samples") && fewer.contains("with 7"), "{fewer}");
    let missing = compare(&[run(&["tau=30"])], Some("none")).unwrap_err().to_string();
    assert!(missing.contains("'none'") && missing.contains("tau 30"), "{missing}");
}
