//! Tables of a single run's analyses.

use crate::bits::Bits;
use crate::noun::Stimulus;
use crate::quantity::Reading;
use leaklab_engine::LayerKind;
use leaklab_engine::noise::{Noise, Scenario};
use std::fmt;
use std::str::FromStr;

crate::row! {
    /// Accuracy at one severity of one noise.
    pub struct RobustnessRow in "robustness" {
        /// Kind of noise.
        noise: Noise [""],
        /// Where it enters: pixel (before encoding) or channel (added to the spikes).
        scenario: Scenario [""],
        /// 0 is clean, 8 the strongest.
        severity: u64 [""],
        /// Strength: a standard deviation, probability or fraction, depending on the noise.
        level: f64 [""],
        /// Test images.
        images: u64 [""],
        /// Number of times that each image was shown, with new input spikes each time.
        presentations: u64 [""],
        /// Presentations classified correctly.
        correct: u64 [""],
        /// Share of presentations classified correctly.
        accuracy: f64 ["fraction"],
        /// Lower end of its 95 % interval over images (Wilson).
        accuracy_low: f64 ["fraction"],
        /// Upper end of the interval.
        accuracy_high: f64 ["fraction"],
        /// Mean over images of the sum over outputs of (p - onehot)^2; empty if not finite.
        sse: Option<f64> ["SSE"],
    }
}

crate::row! {
    /// Which images were classified correctly in one presentation.
    pub struct CorrectnessRow in "correctness" {
        /// Stimulus: clean, or a noise at a severity.
        stimulus: Stimulus [""],
        /// Number of the presentation, from 1; each has new input spikes.
        presentation: u64 [""],
        /// One bit for each test image, the first image first: 1 where it was classified correctly.
        correct: Bits [""],
    }
}

crate::row! {
    /// Summary of the robustness to one noise.
    pub struct RobustnessSummaryRow in "robustness_summary" {
        /// Kind of noise.
        noise: Noise [""],
        /// Where it enters: pixel or channel.
        scenario: Scenario [""],
        /// Mean accuracy over severities 1 to 8.
        robustness: f64 ["fraction"],
        /// Mean excess over chance at severities 1 to 8, relative to the excess without noise; empty if the
        /// clean accuracy is not above chance.
        relative: Option<f64> ["fraction of clean"],
        /// Severity at which accuracy has lost half of its excess over chance, interpolated linearly between
        /// severities; empty if this is not reached, or if the clean accuracy is not above chance.
        half_severity: Option<f64> ["severity"],
    }
}

crate::row! {
    /// Errors after one epoch.
    pub struct GeneralisationRow in "generalisation" {
        /// Epochs trained.
        epoch: u64 ["epochs"],
        /// Learning rate of the epoch.
        learning_rate: f64 [""],
        /// SSE on the training images during the epoch, with dropout and augmentation.
        running_train_sse: Option<f64> ["SSE"],
        /// SSE on a fixed part of the training images after the epoch, in evaluation.
        train_sse: Option<f64> ["SSE"],
        /// SSE on the test images after the epoch.
        test_sse: Option<f64> ["SSE"],
        /// Accuracy on the training images during the epoch.
        running_train_accuracy: Option<f64> ["fraction"],
        /// Accuracy on the test images after the epoch.
        test_accuracy: Option<f64> ["fraction"],
    }
}

crate::row! {
    /// Errors at the end of training.
    pub struct GeneralisationSummaryRow in "generalisation_summary" {
        /// First epoch of the mean.
        first_epoch: u64 ["epochs"],
        /// Last epoch of the mean.
        last_epoch: u64 ["epochs"],
        /// SSE on the test images.
        test_sse: Option<f64> ["SSE"],
        /// SSE on a fixed part of the training images, in evaluation.
        train_sse: Option<f64> ["SSE"],
        /// SSE on the training images during training.
        running_train_sse: Option<f64> ["SSE"],
        /// Accuracy on the test images.
        test_accuracy: Option<f64> ["fraction"],
    }
}

crate::row! {
    /// Activity of one layer.
    pub struct ActivityRow in "activity" {
        /// Name of the layer.
        layer: String [""],
        /// conv, pool, full or output.
        kind: LayerKind [""],
        /// Neurons of the layer.
        neurons: u64 [""],
        /// Spikes / (neurons * steps); empty for the output layer, which never fires.
        spike_rate: Option<f64> ["spikes/neuron/step"],
        /// Synaptic operations; empty for pools, which have no weights.
        synops: Option<f64> ["operations/image"],
        /// Norm of the weighted input, mean over time; empty for the output layer.
        weighted_input_norm: Option<f64> ["v_th"],
        /// Share of neurons that never fired.
        dead: Option<f64> ["fraction"],
        /// Share of neurons that nearly always fired.
        saturated: Option<f64> ["fraction"],
    }
}

/// What a row of the activity summary measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ActivityMeasure {
    /// Spikes per neuron and step of hidden conv and FC layers.
    SpikeRate,
    /// Synaptic operations per image.
    Synops,
    /// NeuroBench's effective accumulates.
    EffectiveAcs,
    /// NeuroBench's effective multiply-accumulates.
    EffectiveMacs,
    /// NeuroBench's effective neuron operations: updates of membrane potentials that change.
    EffectiveNeuronOps,
    /// NeuroBench's dense neuron operations: every neuron at every step.
    DenseNeuronOps,
    /// Multiply-accumulates of one pass of a dense network of the same shape.
    DenseMacs,
    /// Operations per image if no input were zero.
    DenseSynops,
    /// NeuroBench's share of zeros in the outputs of all spiking layers.
    ActivationSparsity,
    /// Bytes of the weights.
    Footprint,
}

impl ActivityMeasure {
    const ALL: [ActivityMeasure; 10] = [
        ActivityMeasure::SpikeRate,
        ActivityMeasure::Synops,
        ActivityMeasure::EffectiveAcs,
        ActivityMeasure::EffectiveMacs,
        ActivityMeasure::EffectiveNeuronOps,
        ActivityMeasure::DenseNeuronOps,
        ActivityMeasure::DenseMacs,
        ActivityMeasure::DenseSynops,
        ActivityMeasure::ActivationSparsity,
        ActivityMeasure::Footprint,
    ];

    fn name(self) -> &'static str {
        match self {
            ActivityMeasure::SpikeRate => "spike_rate",
            ActivityMeasure::Synops => "synops",
            ActivityMeasure::EffectiveAcs => "effective_acs",
            ActivityMeasure::EffectiveMacs => "effective_macs",
            ActivityMeasure::EffectiveNeuronOps => "effective_neuron_ops",
            ActivityMeasure::DenseNeuronOps => "dense_neuron_ops",
            ActivityMeasure::DenseMacs => "dense_macs",
            ActivityMeasure::DenseSynops => "dense_synops",
            ActivityMeasure::ActivationSparsity => "activation_sparsity",
            ActivityMeasure::Footprint => "footprint",
        }
    }

    /// Unit of its value.
    pub fn unit(self) -> &'static str {
        match self {
            ActivityMeasure::SpikeRate => "spikes/neuron/step",
            ActivityMeasure::Synops
            | ActivityMeasure::EffectiveAcs
            | ActivityMeasure::EffectiveMacs
            | ActivityMeasure::EffectiveNeuronOps => "operations/image",
            ActivityMeasure::DenseNeuronOps => "operations/image if every neuron were updated at every step",
            ActivityMeasure::DenseMacs => "operations of one pass of a dense network",
            ActivityMeasure::DenseSynops => "operations/image if no input were zero",
            ActivityMeasure::ActivationSparsity => "fraction",
            ActivityMeasure::Footprint => "bytes",
        }
    }
}

impl fmt::Display for ActivityMeasure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ActivityMeasure {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        ActivityMeasure::ALL.into_iter().find(|measure| measure.name() == name).ok_or(())
    }
}

crate::text_field! { ActivityMeasure: "the name of a measure of activity" }

crate::row! {
    /// One measure of the whole network's activity.
    pub struct ActivitySummaryRow in "activity_summary" {
        /// What is measured.
        quantity: ActivityMeasure [""],
        /// Value, in `unit`.
        value: f64 [""],
        /// Lower end of its 95 % interval over images; empty if the value does not vary between images.
        low: Option<f64> [""],
        /// Upper end of the interval.
        high: Option<f64> [""],
        /// Unit of value and interval.
        unit: String [""],
    }
}

crate::row! {
    /// Energy of an inference by one hardware model.
    pub struct EnergyRow in "energy" {
        /// Hardware whose published figure is used.
        model: String [""],
        /// What is counted.
        operation: String [""],
        /// Energy of one operation.
        energy_per_operation: f64 ["pJ"],
        /// Energy per image of the spiking network.
        spiking: f64 ["J"],
        /// Energy per image of a dense network of the same shape; empty if the model has no such figure.
        dense: Option<f64> ["J"],
    }
}

crate::row! {
    /// One bin of the input's spectrum.
    pub struct InputSpectrumRow in "input_spectrum" {
        /// Stimulus: clean, or a noise at a severity.
        stimulus: Stimulus [""],
        /// Frequency.
        frequency: f64 ["cycles/step"],
        /// Mean power density.
        power: f64 ["per cycle/step"],
    }
}

crate::row! {
    /// One bin of the histogram of the images' mean amplitudes.
    pub struct InputAmplitudeRow in "input_amplitude" {
        /// Stimulus: clean, or a noise at a severity.
        stimulus: Stimulus [""],
        /// Middle of the histogram's bin.
        amplitude: f64 ["per root (cycle/step)"],
        /// Share of images in the bin, divided by the bin's width.
        density: f64 [""],
        /// Normal density with the same mean and variance.
        curve: f64 [""],
    }
}

crate::row! {
    /// One bin of the distribution of critical frequencies.
    pub struct CriticalRow in "critical_frequency" {
        /// Stimulus: clean, or a noise at a severity.
        stimulus: Stimulus [""],
        /// Critical frequency, as defined.
        frequency: f64 ["cycles/step"],
        /// Test images with this critical frequency.
        images: u64 [""],
    }
}

crate::row! {
    /// Mean critical frequency by one reading.
    pub struct CriticalSummaryRow in "critical_frequency_summary" {
        /// Stimulus: clean, or a noise at a severity.
        stimulus: Stimulus [""],
        /// How it is read: as defined, without the first 20 % of steps, or of shuffled spike trains.
        reading: Reading [""],
        /// Mean over images; empty if every signal is constant.
        mean: Option<f64> ["cycles/step"],
        /// Lower end of its 95 % interval over images.
        low: Option<f64> ["cycles/step"],
        /// Upper end of the interval.
        high: Option<f64> ["cycles/step"],
        /// Number of images in the mean.
        images: u64 [""],
        /// Number of images excluded from the mean because their signal is constant.
        left_out: u64 [""],
        /// Value expected for white noise of the same length, that is, without filtering.
        white_noise: Option<f64> ["cycles/step"],
        /// Share of the signal's power that lies at frequency 0, mean over images (as defined only).
        zero_share: Option<f64> ["fraction"],
    }
}

crate::row! {
    /// One bin of a hidden layer's spectrum.
    pub struct HiddenSpectrumRow in "hidden_spectrum" {
        /// Stimulus: clean, or a noise at a severity.
        stimulus: Stimulus [""],
        /// Hidden layer, pools included.
        layer: String [""],
        /// Frequency.
        frequency: f64 ["cycles/step"],
        /// Mean power density.
        power: f64 ["per cycle/step"],
    }
}

crate::row! {
    /// One spike of the example image.
    pub struct RasterRow in "raster" {
        /// Name of the layer.
        layer: String [""],
        /// Index of the neuron in its layer, by channel, then row, then column.
        neuron: u64 [""],
        /// Time step, counted from 1.
        step: u64 ["steps"],
        /// 1 for a positive spike, 0 for a negative spike (input only).
        positive: bool [""],
    }
}

crate::row! {
    /// One neuron's potential at one step of the example image.
    pub struct MembraneRow in "membrane" {
        /// Name of the layer.
        layer: String [""],
        /// Index of the neuron in its layer, by channel, then row, then column.
        neuron: u64 [""],
        /// Time step, counted from 1.
        step: u64 ["steps"],
        /// Membrane potential after the step's input, before the threshold is applied.
        potential: f64 ["units of weight"],
        /// 1 if the neuron fired and was reset.
        fired: bool [""],
    }
}

crate::row! {
    /// One pixel of the example image.
    pub struct ImageRow in "example_image" {
        /// Colour channel.
        channel: u64 [""],
        /// Row, from the top.
        row: u64 [""],
        /// Column, from the left.
        column: u64 [""],
        /// Pixel value, 0 to 255.
        pixel: u64 [""],
    }
}
