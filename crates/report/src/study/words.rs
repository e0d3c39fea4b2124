//! The words for each claim: a heading, and a sentence for each verdict that all its parts share.

use leaklab_record::ClaimId;

/// The words of one claim.
pub struct Words {
    /// The claim as a heading.
    pub heading: &'static str,
    /// If all its parts hold.
    pub holds: &'static str,
    /// If none of its parts holds.
    pub fails: &'static str,
    /// If none of its parts is decided.
    pub open: &'static str,
}

/// The words of a claim.
pub fn words(claim: ClaimId) -> Words {
    let [heading, holds, fails, open] = match claim {
        ClaimId::EqualAccuracy => [
            "Equal accuracy without noise",
            "Without noise, networks with and without leak are equally accurate within one percentage point.",
            "Without noise, leak changes the accuracy by more than one percentage point.",
            "It is not decided whether leak changes the accuracy without noise by a percentage point.",
        ],
        ClaimId::Robustness => [
            "Robustness: higher accuracy under noise with more leak",
            "Accuracy under noise is higher with more leak, for every noise tested.",
            "Accuracy under noise is not higher with more leak, for any noise tested.",
            "It is not decided whether accuracy under noise is higher with more leak.",
        ],
        ClaimId::Generalisation => [
            "Generalisation: lower test error with leak",
            "The test error is lower with leak, also at equal training error.",
            "The test error is not lower with leak, neither at the end nor at equal training error.",
            "It is not decided whether leak lowers the test error.",
        ],
        ClaimId::Price => [
            "The price: more spikes and synaptic operations with more leak",
            "Leak costs work: with more leak there are more spikes and more synaptic operations.",
            "Leak does not cost work here: spikes and synaptic operations do not grow with it.",
            "It is not decided whether leak costs spikes and synaptic operations.",
        ],
        ClaimId::WeightedInput => [
            "Larger weighted input with more leak, in every hidden layer",
            "Every hidden layer receives a larger weighted input with more leak.",
            "No hidden layer receives a larger weighted input with more leak.",
            "It is not decided whether hidden layers receive a larger weighted input with more leak.",
        ],
        ClaimId::CriticalFrequency => [
            "The output's critical frequency falls with leak and rises with noise",
            "The critical frequency of the output falls with leak and rises with noise.",
            "The critical frequency of the output neither falls with leak nor rises with noise.",
            "It is not decided whether the critical frequency falls with leak and rises with noise.",
        ],
        ClaimId::Divergence => [
            "Training diverges for small τ",
            "Training fails where τ is small.",
            "Training does not fail here where τ is small.",
            "It is not decided whether training fails where τ is small.",
        ],
        ClaimId::FromHidden => [
            "Leak in the hidden layers adds accuracy while the network runs",
            "Leak in the hidden layers, while the network runs, adds accuracy under noise.",
            "Leak in the hidden layers, while the network runs, adds no accuracy under noise.",
            "It is not decided whether leak in the hidden layers, while the network runs, adds accuracy.",
        ],
        ClaimId::FromTraining => [
            "Training with leak adds accuracy",
            "Training with leak finds weights that are more robust.",
            "Training with leak does not find weights that are more robust.",
            "It is not decided whether training with leak finds weights that are more robust.",
        ],
        ClaimId::FromReadout => [
            "Leak in the readout adds accuracy",
            "A leaky readout, which discounts early steps, adds accuracy under noise.",
            "A leaky readout, which discounts early steps, adds no accuracy under noise.",
            "It is not decided whether a leaky readout adds accuracy under noise.",
        ],
        ClaimId::SlowNoise => [
            "The gain vanishes as noise becomes slow, more than in the control",
            "The gain of leak falls as noise becomes slow, more than in the control without leak.",
            "The gain of leak does not fall more, as noise becomes slow, than in the control without leak.",
            "It is not decided whether the gain falls as noise becomes slow, more than in the control.",
        ],
    };
    Words { heading, holds, fails, open }
}
