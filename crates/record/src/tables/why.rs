//! Tables of the question where robustness comes from (docs/specification.md, section 7).

use crate::mechanism::{LayerChoice, Part, Place, PriceMeasure, Question, Readout, TimeWindow, Topic};
use crate::noun::{NoiseKey, Stimulus};
use leaklab_engine::Tau;
use leaklab_engine::noise::Colour;

/// Name of the table of statements W1 to W4. Its rows have the type of the rows of the claims' table.
pub const WHY_CLAIMS: &str = "why_claims";

crate::row! {
    /// One part of the accuracy that leak gains.
    pub struct SplitRow in "why_split" {
        /// Time constant of the leak, compared with no leak.
        tau: Tau ["steps"],
        /// Stimulus: clean, or a noise at a severity.
        stimulus: Stimulus [""],
        /// total, or the part that comes from training, the hidden layers or the readout; these three add up
        /// to the total.
        part: Part [""],
        /// Difference of accuracy, mean over seeds.
        mean: f64 ["fraction"],
        /// Lower end of its 95 % interval over seeds and images; empty with one seed.
        low: Option<f64> ["fraction"],
        /// Upper end of the interval.
        high: Option<f64> ["fraction"],
        /// Two-sided p value for the hypothesis of no difference, not corrected for several tests.
        p: Option<f64> [""],
        /// Number of pairs of runs with the same seed.
        seeds: u64 [""],
        /// Test images.
        images: u64 [""],
        /// Number of times that each image was shown.
        presentations: u64 [""],
    }
}

crate::row! {
    /// One part of what leak costs.
    pub struct PriceRow in "why_price" {
        /// Time constant of the leak, compared with no leak.
        tau: Tau ["steps"],
        /// Stimulus: clean, or a noise at a severity.
        stimulus: Stimulus [""],
        /// spike_rate (spikes/neuron/step) or synops (operations/image).
        measure: PriceMeasure [""],
        /// total, or the part that comes from training, the hidden layers or the readout (which costs
        /// nothing).
        part: Part [""],
        /// Change, mean over seeds, in the measure's unit.
        mean: f64 [""],
        /// Lower end of its 95 % interval over seeds; empty with one seed.
        low: Option<f64> [""],
        /// Upper end of the interval.
        high: Option<f64> [""],
        /// Value of the measure for the baseline, run without leak, mean over seeds.
        baseline: f64 [""],
        /// Number of pairs of runs with the same seed.
        seeds: u64 [""],
    }
}

crate::row! {
    /// Weights trained with one leak and run with another.
    pub struct CellRow in "why_cells" {
        /// Time constant in training.
        trained: Tau ["steps"],
        /// Time constant of all hidden layers while the network runs.
        hidden: Tau ["steps"],
        /// How the class is read from the output.
        readout: Readout [""],
        /// Stimulus: clean, or a noise at a severity.
        stimulus: Stimulus [""],
        /// Accuracy, mean over seeds.
        accuracy: f64 ["fraction"],
        /// Lower end of its 95 % interval over seeds and images; empty with one seed.
        low: Option<f64> ["fraction"],
        /// Upper end of the interval.
        high: Option<f64> ["fraction"],
        /// Spike rate of hidden conv and FC layers, mean over seeds.
        spike_rate: f64 ["spikes/neuron/step"],
        /// Synaptic operations per image, mean over seeds.
        synops: f64 ["operations/image"],
        /// Number of runs.
        seeds: u64 [""],
        /// Test images.
        images: u64 [""],
        /// Number of times that each image was shown.
        presentations: u64 [""],
    }
}

crate::row! {
    /// Leak in one hidden layer only, or in all but one; no leak in the readout.
    pub struct LayerLeakRow in "why_layers" {
        /// Time constant of the layers that leak.
        tau: Tau ["steps"],
        /// Stimulus: clean, or a noise at a severity.
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
        /// Spike rate of hidden conv and FC layers, mean over seeds.
        spike_rate: f64 ["spikes/neuron/step"],
        /// Synaptic operations per image, mean over seeds.
        synops: f64 ["operations/image"],
        /// Number of runs.
        seeds: u64 [""],
        /// Test images.
        images: u64 [""],
    }
}

crate::row! {
    /// One readout of networks without leak in their hidden layers.
    pub struct WindowRow in "why_windows" {
        /// Stimulus: clean, or a noise at a severity.
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
        /// Number of runs.
        seeds: u64 [""],
        /// Test images.
        images: u64 [""],
    }
}

crate::row! {
    /// Accuracy from a part of the steps, read as their plain sum.
    pub struct TimeRow in "why_time" {
        /// Time constant of training and of the hidden layers.
        tau: Tau ["steps"],
        /// Stimulus: clean, or a noise at a severity.
        stimulus: Stimulus [""],
        /// up to (all steps from the first to the last) or alone (only a tenth of the steps).
        window: TimeWindow [""],
        /// First step that is read, counted from 1.
        first: u64 ["steps"],
        /// Last step that is read.
        last: u64 ["steps"],
        /// Accuracy, mean over seeds.
        accuracy: f64 ["fraction"],
        /// Lower end of its 95 % interval over seeds and images; empty with one seed.
        low: Option<f64> ["fraction"],
        /// Upper end of the interval.
        high: Option<f64> ["fraction"],
        /// Number of runs.
        seeds: u64 [""],
        /// Test images.
        images: u64 [""],
    }
}

crate::row! {
    /// Gain from leak in one place under Gaussian noise of one colour; noises of all colours are equally
    /// hard.
    pub struct ColourRow in "why_colours" {
        /// white, frozen, blue or the correlation time in steps.
        colour: Colour [""],
        /// Standard deviation at which the baseline, run without leak, has lost half of its excess over
        /// chance.
        sigma: f64 [""],
        /// Time constant of the leak.
        tau: Tau ["steps"],
        /// Where leak acts: hidden, readout, both, all (training too), or control (no leak; the readout skips
        /// its first 20 % of steps).
        place: Place [""],
        /// Accuracy of the baseline, run without leak, under this noise, mean over seeds.
        baseline: f64 ["fraction"],
        /// Accuracy minus that of the baseline, mean over seeds.
        gain: f64 ["fraction"],
        /// Lower end of the gain's 95 % interval over seeds and images; empty with one seed.
        low: Option<f64> ["fraction"],
        /// Upper end of the interval.
        high: Option<f64> ["fraction"],
        /// Number of runs.
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
        /// Relative modulation of the layer's rate divided by that of the input probability, mean over seeds.
        gain: f64 [""],
        /// Lower end of its 95 % interval over seeds; empty with one seed.
        low: Option<f64> [""],
        /// Upper end of the interval.
        high: Option<f64> [""],
        /// Prediction of the theory of one neuron; empty if this layer or one before it is silent.
        theory: Option<f64> [""],
        /// Mean rate of the layer without modulation.
        rate: f64 ["spikes/neuron/step"],
        /// Number of runs.
        seeds: u64 [""],
        /// Images.
        images: u64 [""],
    }
}

crate::row! {
    /// Two conditions that differ in one respect other than leak.
    pub struct FurtherRow in "further" {
        /// The question, which names the difference.
        question: Question [""],
        /// First condition.
        a: String [""],
        /// Second condition.
        b: String [""],
        /// The noise under which they are compared, as a mean over severities 1 to 8; empty for no noise.
        noise: Option<NoiseKey> [""],
        /// Accuracy of `a` minus that of `b`, mean over seeds.
        mean: f64 ["fraction"],
        /// Lower end of its 95 % interval over seeds and images; empty with one pair.
        low: Option<f64> ["fraction"],
        /// Upper end of the interval.
        high: Option<f64> ["fraction"],
        /// Two-sided p value for the hypothesis of no difference, with Holm's correction over the rows of
        /// this pair.
        p: Option<f64> [""],
        /// Number of pairs of runs with the same seed.
        seeds: u64 [""],
        /// 1 if every run of `a` learned, 0 if not.
        a_learned: Option<bool> [""],
        /// 1 if every run of `b` learned, 0 if not.
        b_learned: Option<bool> [""],
        /// The result in a sentence.
        sentence: String [""],
    }
}

crate::row! {
    /// One sentence about the cause, generated by rule from the other tables.
    pub struct WhyRow in "why" {
        /// Topic of the sentence.
        topic: Topic [""],
        /// The noise that it refers to, if any.
        noise: Option<NoiseKey> [""],
        /// The time constant that it refers to, if any.
        tau: Option<Tau> ["steps"],
        /// The sentence.
        sentence: String [""],
    }
}

crate::row! {
    /// The most robust of the measured ways to run a trained network.
    pub struct AdviceRow in "advice" added [
        baseline_readout, gain_over_readout, gain_over_readout_low, gain_over_readout_high,
    ] {
        /// Stimulus: clean, or a noise at a severity.
        stimulus: Stimulus [""],
        /// Largest permitted number of synaptic operations per image; empty if it is not limited.
        budget: Option<f64> ["operations/image"],
        /// Time constant in training.
        trained: Tau ["steps"],
        /// Time constant of all hidden layers while the network runs.
        hidden: Tau ["steps"],
        /// How the class is read from the output.
        readout: Readout [""],
        /// Accuracy on the half of the images on which it was chosen, mean over seeds; the choice biases it
        /// upwards a little.
        chosen_accuracy: f64 ["fraction"],
        /// Accuracy on the other half, mean over seeds.
        accuracy: f64 ["fraction"],
        /// Lower end of its 95 % interval over seeds and images; empty with one seed.
        low: Option<f64> ["fraction"],
        /// Upper end of the interval.
        high: Option<f64> ["fraction"],
        /// Accuracy on the other half minus that of the baseline, run without leak and read by a plain sum.
        gain: f64 ["fraction"],
        /// Lower end of the gain's 95 % interval.
        gain_low: Option<f64> ["fraction"],
        /// Upper end of the interval.
        gain_high: Option<f64> ["fraction"],
        /// The readout with which the baseline, run without leak, is the most accurate on the half of the
        /// images on which it was chosen; empty in tables of earlier versions, as are the next three columns.
        baseline_readout: Option<Readout> [""],
        /// Accuracy on the other half minus that of the baseline, run without leak and read by this readout.
        gain_over_readout: Option<f64> ["fraction"],
        /// Lower end of its 95 % interval.
        gain_over_readout_low: Option<f64> ["fraction"],
        /// Upper end of the interval.
        gain_over_readout_high: Option<f64> ["fraction"],
        /// Synaptic operations per image, mean over seeds.
        synops: f64 ["operations/image"],
        /// Synaptic operations divided by those of the baseline, run without leak.
        synops_ratio: f64 ["ratio"],
        /// Spike rate of hidden conv and FC layers, mean over seeds.
        spike_rate: f64 ["spikes/neuron/step"],
        /// Number of ways to run the network that were compared within the budget.
        candidates: u64 [""],
        /// Number of runs.
        seeds: u64 [""],
        /// Number of images in the smaller of the two halves.
        images: u64 [""],
    }
}

impl AdviceRow {
    /// The readout that is best for the baseline and the gain over it, unless that readout is the plain sum,
    /// over which the gain is given in any case.
    pub fn over_readout(&self) -> Option<(Readout, f64)> {
        let other = self.baseline_readout.filter(|readout| *readout != Readout::PLAIN);
        other.zip(self.gain_over_readout)
    }
}
