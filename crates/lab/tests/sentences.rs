//! Sentences on where robustness comes from: gains and losses, silent layers, the paper's explanation.

use leaklab_engine::Tau;
use leaklab_lab::analysis::mechanism::sentences;
use leaklab_record::tables::{ClaimRow, LayerLeakRow, ResponseRow, SplitRow};
use leaklab_record::{Case, ClaimId, LayerChoice, Part, Stimulus, Unit, Verdict};

fn tau(steps: f64) -> Tau {
    Tau::new(steps).unwrap()
}

/// A loss is given in points lost, without a sign, and its parts as changes; what may be chance is called a
/// change.
#[test]
fn gains_and_losses_in_parts() {
    let stimulus = Stimulus::at("gaussian/pixel".parse().unwrap(), 5);
    let row = |part: Part, mean: f64| SplitRow {
        tau: tau(30.0),
        stimulus,
        part,
        mean,
        low: Some(mean - 0.02),
        high: Some(mean + 0.02),
        p: None,
        seeds: 3,
        images: 100,
        presentations: 1,
    };
    let sentence = |[total, hidden, readout]: [f64; 3]| {
        let rows = [row(Part::Total, total), row(Part::Hidden, hidden), row(Part::Readout, readout)];
        assert_eq!(sentences::of_gain(&rows[1], &rows), None, "a part has no sentence of its own");
        sentences::of_gain(&rows[0], &rows).unwrap().sentence
    };
    assert_eq!(
        sentence([-0.4, -0.5, 0.1]),
        "Tau 30 loses 40.0 [38.0, 42.0] points under Gaussian noise on pixels (severity 5): +10.0 [8.0, \
         12.0] by the readout, \u{2212}50.0 [\u{2212}52.0, \u{2212}48.0] by the hidden layers."
    );
    let gain = sentence([0.4, 0.5, -0.1]);
    assert!(gain.starts_with("Tau 30 gains 40.0 [38.0, 42.0] points"), "{gain}");
    assert!(gain.contains(": +50.0 [48.0, 52.0] by the hidden layers, \u{2212}10.0 ["), "{gain}");
    let chance = sentence([-0.01, -0.01, 0.0]);
    assert!(chance.contains("changes accuracy") && chance.contains("by \u{2212}1.0 ["), "{chance}");
}

/// The layer that matters most is named together with what the others do, which may be the opposite.
#[test]
fn layers_that_gain_are_not_hidden_by_one_that_loses() {
    let noise = "gaussian/pixel".parse().unwrap();
    let stimulus = Stimulus::at(noise, 5);
    let row = |layer: &str, choice: LayerChoice, gain: f64| LayerLeakRow {
        tau: tau(30.0),
        stimulus,
        layer: layer.to_owned(),
        choice,
        gain,
        low: None,
        high: None,
        spike_rate: 0.1,
        synops: 1.0,
        seeds: 2,
        images: 100,
    };
    let rows = [
        row("conv1", LayerChoice::Only, -0.12),
        row("fc1", LayerChoice::Only, 0.06),
        row("conv1", LayerChoice::AllBut, 0.07),
        row("fc1", LayerChoice::AllBut, -0.11),
    ];
    assert_eq!(
        sentences::of_layers(&rows, noise, stimulus).unwrap().sentence,
        "Of 2 hidden layers, leak in conv1 alone changes accuracy under Gaussian noise on pixels most: by \
         \u{2212}12.0 points; leak in all others changes it by +7.0."
    );
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
