//! The opening sentence: synthetic studies for each of its cases.

mod synthetic;

use leaklab_lab::analysis::compare::{RunRecord, compare};
use leaklab_record::PAPER_NOISES;
use leaklab_record::tables::{AnswerCase, AnswerRow, ConditionRow};
use synthetic::{IMAGES, Numbers, answer, config, falling, gaining, record, rows, study, wobble};

#[test]
fn every_opening_sentence() {
    let found_in = |runs: &[RunRecord]| {
        let AnswerRow { case, sentence } = answer(runs);
        println!("{case}: {sentence}");
        (case, sentence)
    };
    let expect = |runs: &[RunRecord], case: AnswerCase, words: &[&str]| {
        let (found, sentence) = found_in(runs);
        assert_eq!(found, case, "{sentence}");
        for word in words {
            assert!(sentence.contains(word), "{word}: {sentence}");
        }
    };
    expect(
        &gaining(0.05, 0.02),
        AnswerCase::DoseResponse,
        &["Yes: the more leak", "all 4 kinds", "tau 9 gains", "no leak"],
    );
    expect(
        &gaining(0.05, -0.004),
        AnswerCase::OnlyExtremes,
        &["between the extremes", "tau 9 is more accurate than no leak"],
    );
    expect(&gaining(-0.05, -0.02), AnswerCase::Against, &["No, the opposite", "less accurate"]);
    expect(&gaining(0.0, 0.0), AnswerCase::NoEffect, &["No:", "not more accurate"]);
    let middle = gaining(0.0, 0.05);
    expect(
        &middle,
        AnswerCase::NoEffect,
        &[
            "No:",
            "In between, tau 30 compared with no leak is more accurate under all 4 kinds of noise, by 5.0 \
             points",
        ],
    );
    expect(
        &gaining(0.05, 0.09),
        AnswerCase::NotSteady,
        &[
            "Not steadily",
            "tau 9 compared with no leak: +5.0 points",
            "In between, tau 30 compared with no leak",
        ],
    );
    let partly = study(|rank, seed| {
        let mut numbers = Numbers::plain([0.05, 0.02, 0.0][rank] + wobble(seed));
        numbers.noisy[1].1 = falling(0.95, [0.05, 0.09, 0.0][rank] + wobble(seed), 1);
        numbers
    });
    expect(
        &partly,
        AnswerCase::Mixed,
        &[
            "more accurate under Gaussian noise on pixels, impulse noise on pixels and impulse noise on \
             spikes;",
            "does not change steadily with leak under Gaussian noise on spikes.",
        ],
    );
    let strong = study(|rank, seed| {
        let gain = [0.08, 0.04, 0.0][rank] + wobble(seed);
        Numbers {
            noisy: PAPER_NOISES.map(|noise| (noise, falling(0.95, gain, 5))).to_vec(),
            ..Numbers::plain(0.0)
        }
    });
    expect(&strong, AnswerCase::OnlyStrongNoise, &["no severity from 1 to 4 shows it by itself"]);
    let many = |gain: f64, spread: f64| {
        let mut runs = Vec::new();
        for (tau, gain) in [("9", gain), ("inf", 0.0)] {
            for seed in 0..4 {
                let numbers = Numbers::plain(gain + spread * wobble(seed) * f64::from(u8::from(tau == "9")));
                let config = config(&[&format!("tau={tau}"), &format!("seed={}", seed + 1)]);
                runs.push(record(config, &numbers, 40_000));
            }
        }
        runs
    };
    expect(&many(0.005, 0.0), AnswerCase::BelowInterest, &["Hardly", "less than one percentage point"]);
    expect(
        &many(0.0, 12.0),
        AnswerCase::Undecided,
        &["cannot tell whether tau 9 is more accurate than no leak", "too wide"],
    );
    let mixed = study(|rank, seed| {
        let mut numbers = Numbers::plain([0.05, 0.02, 0.0][rank] + wobble(seed));
        let fallen = -[0.05, 0.02, 0.0][rank];
        numbers.noisy[1].1 = falling(0.95, fallen + wobble(seed), 1);
        numbers.noisy[2].1 = falling(0.95, wobble(seed), 1);
        numbers
    });
    expect(
        &mixed,
        AnswerCase::Mixed,
        &[
            "In part",
            "more accurate under Gaussian noise on pixels and impulse noise on spikes;",
            "less accurate under Gaussian noise on spikes;",
            "a gain of one percentage point is ruled out under impulse noise on pixels.",
        ],
    );
    let nothing = study(|_, _| Numbers { accuracy: 0.1, ..Numbers::plain(0.0) });
    expect(&nothing, AnswerCase::NothingLearned, &["fewer than two conditions"]);
    let reasons: Vec<ConditionRow> = rows(&compare(&nothing, None).unwrap());
    assert!(
        reasons.iter().all(|row| row.reason.contains("not even the best condition's accuracy")),
        "{reasons:?}"
    );
    // No condition is called better than a baseline that did not learn.
    let mut dead = study(|rank, _| Numbers { accuracy: [0.9, 0.9, 0.1][rank], ..Numbers::plain(0.0) });
    for seed in 1..=4 {
        let settings = ["tau=inf", "readout_tau=9", "condition=leaky readout", &format!("seed={seed}")];
        dead.push(record(config(&settings), &Numbers::plain(0.3), IMAGES));
    }
    assert!(!found_in(&dead).1.contains("In addition"));
    let clean = study(|_, _| Numbers { noisy: Vec::new(), ..Numbers::plain(0.0) });
    expect(&clean, AnswerCase::NotMeasured, &["not measured"]);
}
