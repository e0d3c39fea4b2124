//! Sentences on where robustness comes from: gains and losses, silent layers, the paper's explanation.

use leaklab_engine::Tau;
use leaklab_lab::analysis::contrast::Contrast;
use leaklab_lab::analysis::mechanism::sentences;
use leaklab_lab::analysis::mechanism::split::Split;
use leaklab_record::tables::{ClaimRow, ResponseRow};
use leaklab_record::{Case, ClaimId, Part, Stimulus, Unit, Verdict};

fn tau(steps: f64) -> Tau {
    Tau::new(steps).unwrap()
}

/// A loss is given in points lost, without a sign; what may be chance is called a change.
#[test]
fn losses_have_no_minus() {
    let noise = "gaussian/pixel".parse().unwrap();
    let stimulus = Stimulus::at(noise, 5);
    // Of 100 images, `more` more are classified correctly with leak; if it is negative, fewer are.
    let contrast = |more: i32| {
        let image = |i: i32| if i < more.abs() { f64::from(more.signum()) } else { 0.0 };
        Contrast::crossed(&vec![(0..100).map(image).collect::<Vec<f64>>(); 3]).unwrap()
    };
    let sentence = |[total, hidden, readout]: [i32; 3]| {
        let parts = [(Part::Total, total), (Part::Hidden, hidden), (Part::Readout, readout)];
        let parts = parts.map(|(part, more)| (part, contrast(more))).into();
        sentences::of_gain(&Split { tau: tau(30.0), stimulus, parts, images: 100 }).unwrap().sentence
    };
    let loss = sentence([-40, -50, 10]);
    assert!(loss.starts_with("Of the 40.0 [3"), "{loss}");
    assert!(loss.contains("points that tau 30 loses under Gaussian noise on pixels (severity 5), 50.0 ["));
    assert!(loss.contains("come from the hidden layers, \u{2212}10.0 ["), "{loss}");
    let gain = sentence([40, 50, -10]);
    assert_eq!(gain, loss.replace("loses", "gains"), "the same numbers, with the opposite sign");
    let chance = sentence([-1, -1, 0]);
    assert!(chance.contains("changes accuracy") && chance.contains("by \u{2212}1.0 ["), "{chance}");
}

/// A layer that leak silences has no response.
#[test]
fn a_silent_layer_is_called_silent() {
    let row = |hidden: Tau, layer: &str, frequency: f64, gain: f64| ResponseRow {
        hidden,
        layer: layer.to_owned(),
        frequency,
        gain,
        theory: None,
        low: None,
        high: None,
        rate: 0.1,
        seeds: 2,
        images: 100,
    };
    let both = |hidden: Tau, layer: &str, fast: f64| {
        [row(hidden, layer, 0.1, 0.8), row(hidden, layer, 0.5, 0.8 * fast)]
    };
    let row_of_response = |rows: &[[ResponseRow; 2]]| sentences::of_response(&rows.concat(), tau(30.0));
    let (leak, none) = (tau(30.0), Tau::INFINITE);
    let all =
        [both(leak, "conv1", 1.0), both(leak, "fc1", 0.5), both(none, "conv1", 1.0), both(none, "fc1", 0.7)];
    let sentence = row_of_response(&all).unwrap().sentence;
    assert!(sentence.contains("is 50 % of that to the slowest (0.1) with tau 30"), "{sentence}");
    assert!(sentence.ends_with("and 70 % without leak."), "{sentence}");
    let [conv1, _, rest @ ..] = all.clone();
    let silenced: Vec<_> = std::iter::once(conv1).chain(rest).collect();
    let row = row_of_response(&silenced).unwrap();
    assert!(row.sentence.starts_with("With tau 30 in the hidden layers, fc1 is silent,"), "{}", row.sentence);
    assert_eq!(row.tau, Some(leak));
    let sentence = row_of_response(&[both(leak, "fc1", 0.5)]).unwrap().sentence;
    assert!(sentence.starts_with("Without leak in the hidden layers, fc1 is silent,"), "{sentence}");
    // One frequency is neither slow nor fast.
    let one = [leak, none].map(|hidden| row_of(&all, hidden));
    assert_eq!(sentences::of_response(&one, leak), None);
    assert_eq!(sentences::of_response(&[], leak), None);
}

fn row_of(all: &[[ResponseRow; 2]], hidden: Tau) -> ResponseRow {
    all.iter().flatten().find(|row| row.hidden == hidden).unwrap().clone()
}

/// The sentence on the paper's explanation, for every pair of verdicts that decides it.
#[test]
fn the_explanation_follows_from_w1_and_w4() {
    use Verdict::{DoesNotHold, Holds, NotEnoughEvidence};
    let row = |claim: ClaimId, part: &str, verdict: Verdict| ClaimRow {
        claim,
        part: part.to_owned(),
        noise: None,
        statement: String::new(),
        paper: String::new(),
        ours: None,
        low: None,
        high: None,
        p: None,
        smallest: 0.01,
        verdict,
        case: Case::NoInterval,
        reason: String::new(),
        rule: String::new(),
        quantity: String::new(),
        unit: Unit::Fraction,
        seeds: 3,
        seeds_needed: None,
    };
    for (hidden, slow, says) in [
        ([Holds, Holds], Holds, "the explanation stands"),
        ([Holds, NotEnoughEvidence], Holds, "not settled"),
        ([Holds, Holds], DoesNotHold, "does not stand"),
        ([Holds, Holds], NotEnoughEvidence, "not settled"),
        ([DoesNotHold, NotEnoughEvidence], Holds, "does not stand"),
        ([DoesNotHold, Holds], Holds, "not settled"),
        ([NotEnoughEvidence, NotEnoughEvidence], NotEnoughEvidence, "not settled"),
    ] {
        let mut claims: Vec<ClaimRow> = hidden.map(|v| row(ClaimId::FromHidden, "noise", v)).into();
        claims.push(row(ClaimId::SlowNoise, "", slow));
        claims.push(row(ClaimId::SlowNoise, "fall", Holds));
        let sentence = sentences::explanation(&claims).unwrap().sentence;
        assert!(sentence.contains(says), "{hidden:?} {slow}: {sentence}");
    }
    // If there is only one noise, its verdict is given instead of counts.
    let one = [row(ClaimId::FromHidden, "noise", DoesNotHold), row(ClaimId::SlowNoise, "", Holds)];
    let sentence = sentences::explanation(&one).unwrap().sentence;
    assert!(sentence.contains("Here, W1 does not hold, and W4 holds: the"), "{sentence}");
    assert_eq!(sentences::explanation(&[]), None);
}
