//! Tables of the question where robustness comes from (SPEC section 7).

use crate::mechanism::{LayerChoice, Part, Place, PriceMeasure, Question, Readout, TimeWindow, Topic};
use crate::noun::{NoiseKey, Stimulus};
use leaklab_engine::Tau;
use leaklab_engine::noise::Colour;

/// Name of the table of statements W1 to W4, whose rows are those of the table of claims.
pub const WHY_CLAIMS: &str = "why_claims";

crate::row! {
    /// One part of the accuracy that leak gains.
    pub struct SplitRow in "why_split" {
        /// Time constant of the leak, against none.
        tau: Tau ["steps"],
        /// What the images were shown under.
        stimulus: Stimulus [""],
        /// total, or what comes from training, the hidden layers or the readout; the three sum to the total.
        part: Part [""],
        /// Difference of accuracy, mean over seeds.
        mean: f64 ["fraction"],
        /// Lower end of its 95 % interval over seeds and images; empty with one seed.
        low: Option<f64> ["fraction"],
        /// Upper end of the interval.
        high: Option<f64> ["fraction"],
        /// Two-sided p value of no difference, not corrected for several tests.
        p: Option<f64> [""],
        /// Pairs of runs with the same seed.
        seeds: u64 [""],
        /// Test images.
        images: u64 [""],
        /// Times that each image was shown.
        presentations: u64 [""],
    }
}

crate::row! {
    /// One part of what leak costs.
    pub struct PriceRow in "why_price" {
        /// Time constant of the leak, against none.
        tau: Tau ["steps"],
        /// What the images were shown under.
        stimulus: Stimulus [""],
        /// spike_rate (spikes/neuron/step) or synops (operations/image).
        measure: PriceMeasure [""],
        /// total, or what comes from training, the hidden layers or the readout (which costs nothing).
        part: Part [""],
        /// Change, mean over seeds, in the measure's unit.
        mean: f64 [""],
        /// Lower end of its 95 % interval over seeds; empty with one seed.
        low: Option<f64> [""],
        /// Upper end of the interval.
        high: Option<f64> [""],
        /// The measure of the network trained and run without leak, mean over seeds.
        baseline: f64 [""],
        /// Pairs of runs with the same seed.
        seeds: u64 [""],
    }
}

crate::row! {
    /// Weights trained with one leak and run with another.
    pub struct CellRow in "why_cells" {
        /// Time constant of the training.
        trained: Tau ["steps"],
        /// Time constant of all hidden layers while the network runs.
        hidden: Tau ["steps"],
        /// How the class is read from the output.
        readout: Readout [""],
        /// What the images were shown under.
        stimulus: Stimulus [""],
        /// Accuracy, mean over seeds.
        accuracy: f64 ["fraction"],
        /// Lower end of its 95 % interval over seeds and images; empty with one seed.
        low: Option<f64> ["fraction"],
        /// Upper end of the interval.
        high: Option<f64> ["fraction"],
        /// Spikes of hidden conv and FC layers, mean over seeds.
        spike_rate: f64 ["spikes/neuron/step"],
        /// Synaptic operations, mean over seeds.
        synops: f64 ["operations/image"],
        /// Runs.
        seeds: u64 [""],
        /// Test images.
        images: u64 [""],
        /// Times that each image was shown.
        presentations: u64 [""],
    }
}

crate::row! {
    /// Leak in one hidden layer only, or in all but one; no leak in the readout.
    pub struct LayerLeakRow in "why_layers" {
        /// Time constant of the layers that leak.
        tau: Tau ["steps"],
        /// What the images were shown under.
        stimulus: Stimulus [""],
        /// Hidden conv or FC layer.
        layer: String [""],
        /// only (this layer leaks alone) or all but (every other hidden layer leaks).
        choice: LayerChoice [""],
        /// Accuracy minus that without any leak, mean over seeds.
        gain: f64 ["fraction"],
        /// Lower end of its 95 % interval over seeds and images; empty with one seed.
        low: Option<f64> ["fraction"],
        /// Upper end of the interval.
        high: Option<f64> ["fraction"],
        /// Spikes of hidden conv and FC layers, mean over seeds.
        spike_rate: f64 ["spikes/neuron/step"],
        /// Synaptic operations, mean over seeds.
        synops: f64 ["operations/image"],
        /// Runs.
        seeds: u64 [""],
        /// Test images.
        images: u64 [""],
    }
}

crate::row! {
    /// One readout of networks that have no leak in their hidden layers.
    pub struct WindowRow in "why_windows" {
        /// What the images were shown under.
        stimulus: Stimulus [""],
        /// How the class is read from the output.
        readout: Readout [""],
        /// Accuracy, mean over seeds.
        accuracy: f64 ["fraction"],
        /// Accuracy minus that of the plain sum over all steps, mean over seeds.
        gain: f64 ["fraction"],
        /// Lower end of the gain's 95 % interval over seeds and images; empty with one seed.
        low: Option<f64> ["fraction"],
        /// Upper end of the interval.
        high: Option<f64> ["fraction"],
        /// Runs.
        seeds: u64 [""],
        /// Test images.
        images: u64 [""],
    }
}

crate::row! {
    /// Accuracy from a part of the steps, read by their plain sum.
    pub struct TimeRow in "why_time" {
        /// Time constant of training and of the hidden layers.
        tau: Tau ["steps"],
        /// What the images were shown under.
        stimulus: Stimulus [""],
        /// up to (all steps from the first on) or alone (a tenth of the steps).
        window: TimeWindow [""],
        /// First step that counts, from 1.
        first: u64 ["steps"],
        /// Last step that counts.
        last: u64 ["steps"],
        /// Accuracy, mean over seeds.
        accuracy: f64 ["fraction"],
        /// Lower end of its 95 % interval over seeds and images; empty with one seed.
        low: Option<f64> ["fraction"],
        /// Upper end of the interval.
        high: Option<f64> ["fraction"],
        /// Runs.
        seeds: u64 [""],
        /// Test images.
        images: u64 [""],
    }
}

crate::row! {
    /// What leak in one place gains under Gaussian noise of one colour, all colours equally hard.
    pub struct ColourRow in "why_colours" {
        /// white, frozen, blue or the correlation time in steps.
        colour: Colour [""],
        /// Standard deviation at which the network without leak has lost half of its excess over chance.
        sigma: f64 [""],
        /// Time constant of the leak.
        tau: Tau ["steps"],
        /// Where leak acts: hidden, readout, both, all (training too), or control (no leak; the readout skips
        /// its first 20 % of steps).
        place: Place [""],
        /// Accuracy without leak under this noise, mean over seeds.
        baseline: f64 ["fraction"],
        /// Accuracy minus that without leak, mean over seeds.
        gain: f64 ["fraction"],
        /// Lower end of the gain's 95 % interval over seeds and images; empty with one seed.
        low: Option<f64> ["fraction"],
        /// Upper end of the interval.
        high: Option<f64> ["fraction"],
        /// Runs.
        seeds: u64 [""],
        /// Test images.
        images: u64 [""],
    }
}

crate::row! {
    /// How a hidden layer's population rate follows a modulation of its input.
    pub struct ResponseRow in "why_response" {
        /// Time constant of all hidden layers while the network runs.
        hidden: Tau ["steps"],
        /// Hidden layer, pools included.
        layer: String [""],
        /// Frequency of the modulation.
        frequency: f64 ["cycles/step"],
        /// Relative modulation of the layer's rate over that of the input probability, mean over seeds.
        gain: f64 [""],
        /// Lower end of its 95 % interval over seeds; empty with one seed.
        low: Option<f64> [""],
        /// Upper end of the interval.
        high: Option<f64> [""],
        /// What the theory of one neuron predicts; empty where a layer on the way is silent.
        theory: Option<f64> [""],
        /// Mean rate of the layer without modulation.
        rate: f64 ["spikes/neuron/step"],
        /// Runs.
        seeds: u64 [""],
        /// Images.
        images: u64 [""],
    }
}

crate::row! {
    /// Two conditions that differ in one thing beside leak.
    pub struct FurtherRow in "further" {
        /// What they differ in.
        question: Question [""],
        /// The one condition.
        a: String [""],
        /// The other.
        b: String [""],
        /// The noise under which they are compared, over severities 1 to 8; empty without noise.
        noise: Option<NoiseKey> [""],
        /// Accuracy of the one minus that of the other, mean over seeds.
        mean: f64 ["fraction"],
        /// Lower end of its 95 % interval over seeds and images; empty with one pair.
        low: Option<f64> ["fraction"],
        /// Upper end of the interval.
        high: Option<f64> ["fraction"],
        /// Two-sided p value of no difference, by Holm's correction over the rows of this pair.
        p: Option<f64> [""],
        /// Pairs of runs with the same seed.
        seeds: u64 [""],
        /// 1 if every run of the one learned, 0 if not.
        a_learned: Option<bool> [""],
        /// The same of the other.
        b_learned: Option<bool> [""],
        /// What that says, as a sentence.
        sentence: String [""],
    }
}

crate::row! {
    /// One sentence about the cause, made by rule from the other tables.
    pub struct WhyRow in "why" {
        /// What it is about.
        topic: Topic [""],
        /// The noise that it is about, if it is about one.
        noise: Option<NoiseKey> [""],
        /// The time constant that it is about, if it is about one.
        tau: Option<Tau> ["steps"],
        /// The sentence.
        sentence: String [""],
    }
}

crate::row! {
    /// The most robust way to run a trained network, of those measured.
    pub struct AdviceRow in "advice" {
        /// What the images were shown under.
        stimulus: Stimulus [""],
        /// Most synaptic operations per image that were allowed; empty for any number.
        budget: Option<f64> ["operations/image"],
        /// Time constant of the training.
        trained: Tau ["steps"],
        /// Time constant of all hidden layers while the network runs.
        hidden: Tau ["steps"],
        /// How the class is read from the output.
        readout: Readout [""],
        /// Accuracy on the half of the images on which it was chosen, mean over seeds: a little flattering.
        chosen_accuracy: f64 ["fraction"],
        /// Accuracy on the other half, mean over seeds.
        accuracy: f64 ["fraction"],
        /// Lower end of its 95 % interval over seeds and images; empty with one seed.
        low: Option<f64> ["fraction"],
        /// Upper end of the interval.
        high: Option<f64> ["fraction"],
        /// Accuracy on the other half minus that of the network trained and run without leak.
        gain: f64 ["fraction"],
        /// Lower end of the gain's 95 % interval.
        gain_low: Option<f64> ["fraction"],
        /// Upper end of the interval.
        gain_high: Option<f64> ["fraction"],
        /// Synaptic operations, mean over seeds.
        synops: f64 ["operations/image"],
        /// Synaptic operations over those of the network trained and run without leak.
        synops_ratio: f64 ["ratio"],
        /// Spikes of hidden conv and FC layers, mean over seeds.
        spike_rate: f64 ["spikes/neuron/step"],
        /// Ways of running that were compared within the budget.
        candidates: u64 [""],
        /// Runs.
        seeds: u64 [""],
        /// Images in each half, the smaller of the two.
        images: u64 [""],
    }
}
