//! Evaluates a network on a set of images, clean or with noise: accuracy, error and activity of its layers.

use crate::analysis::statistics::{self, Estimate};
use crate::data::present;
use crate::data::{Dataset, Presentation, Split};
use leaklab_engine::{Architecture, Input, InputError, LayerKind, Packed, Scratch, Trace, infer};
use leaklab_record::metrics::LayerEpoch;
use rayon::ThreadPool;
use std::ops::Range;

/// The epoch with which evaluations encode images. Training epochs are counted from 1, so an evaluation never
/// uses input spikes of the training, and all evaluations of an image with the same seed use the same spikes.
pub const EVALUATION_EPOCH: u32 = 0;

/// Images between two reports of progress.
const CHUNK: usize = 256;

/// What was measured on a set of images.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// Number of images.
    pub images: u64,
    /// Number of images classified correctly.
    pub correct: u64,
    /// Mean over images of the sum over outputs of (p - onehot)^2.
    pub sse: f64,
    /// Spikes / (neurons * steps) over hidden conv and FC layers.
    pub spike_rate: f64,
    /// Synaptic operations per image over all layers.
    pub synops: f64,
    /// Measurements of each layer.
    pub layers: Vec<LayerEpoch>,
}

impl Evaluation {
    /// Fraction of images classified correctly.
    pub fn accuracy(&self) -> f64 {
        self.correct as f64 / self.images as f64
    }

    /// The accuracy with its 95 % interval (Wilson).
    pub fn interval(&self) -> Estimate {
        let nothing = Estimate { mean: 0.0, low: 0.0, high: 1.0 };
        statistics::wilson(self.correct as f64, self.images).unwrap_or(nothing)
    }

    /// The evaluation as JSON, for `--json` and for Python's dict.
    pub fn object(&self, epoch: u64, stimulus: &str) -> serde_json::Value {
        let interval = self.interval();
        serde_json::json!({
            "epoch": epoch,
            "stimulus": stimulus,
            "images": self.images,
            "correct": self.correct,
            "accuracy": self.accuracy(),
            "accuracy_low": interval.low,
            "accuracy_high": interval.high,
            "sse": Some(self.sse).filter(|x| x.is_finite()),
            "spike_rate": self.spike_rate,
            "synops": self.synops,
            "layers": self.layers,
        })
    }
}

/// The measurements of one image.
pub(crate) struct Measured {
    correct: bool,
    sse: f64,
    spikes: Vec<u64>,
    synops: Vec<u64>,
    norms: Vec<f64>,
}

impl Measured {
    fn of(trace: &Trace, label: usize, hidden: usize) -> Self {
        Measured {
            correct: trace.class() == label && trace.prediction().iter().all(|p| p.is_finite()),
            sse: trace.sse(label),
            spikes: (0..hidden).map(|layer| trace.spikes(layer).count()).collect(),
            synops: trace.synops(),
            norms: trace.weighted_input_norms(),
        }
    }

    /// The number of values of each kind: spikes, synaptic operations, norms.
    fn sizes(architecture: &Architecture) -> [usize; 3] {
        let hidden = architecture.hidden().len();
        [hidden, architecture.parameters().len(), hidden]
    }

    /// The length of [`Measured::numbers`].
    pub(crate) fn numbers_of(architecture: &Architecture) -> usize {
        2 + Self::sizes(architecture).iter().sum::<usize>()
    }

    /// The measurements as numbers that can be sent to another process.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let mut numbers = vec![u64::from(self.correct), self.sse.to_bits()];
        numbers.extend(self.spikes.iter().chain(&self.synops));
        numbers.extend(self.norms.iter().map(|norm| norm.to_bits()));
        numbers
    }

    /// The inverse of [`Measured::numbers`].
    pub(crate) fn from_numbers(architecture: &Architecture, numbers: &[u64]) -> Self {
        let [spikes, synops, _] = Self::sizes(architecture);
        let (first, rest) = numbers.split_at(2);
        let (spikes, rest) = rest.split_at(spikes);
        let (synops, norms) = rest.split_at(synops);
        Measured {
            correct: first[0] != 0,
            sse: f64::from_bits(first[1]),
            spikes: spikes.to_vec(),
            synops: synops.to_vec(),
            norms: norms.iter().map(|&bits| f64::from_bits(bits)).collect(),
        }
    }
}

/// Measures images of a split, in order.
pub(crate) fn measure(
    packed: &Packed,
    presentation: &Presentation,
    split: &Split,
    images: Range<usize>,
    pool: &ThreadPool,
    scratch: &Scratch,
) -> Result<Vec<Measured>, InputError> {
    let hidden = packed.architecture().hidden().len();
    let show = |i: usize, input: &mut Input| {
        presentation.show(split, images.start + i, EVALUATION_EPOCH, &mut present::Scratch::default(), input);
    };
    let measure = |i: usize, trace: &Trace| Measured::of(trace, split.label(images.start + i), hidden);
    let steps = presentation.encoding.time_steps;
    pool.install(|| infer(packed, steps, images.len(), scratch, show, measure))
}

/// Presents every image of `split` to the network. `progress` is called with the number of images done, and
/// returns whether to continue; if not, the result is `None`. Sums are computed in the order of the images,
/// whatever the number of threads.
pub fn evaluate(
    packed: &Packed,
    architecture: &Architecture,
    presentation: &Presentation,
    split: &Split,
    pool: &ThreadPool,
    progress: &mut dyn FnMut(usize) -> bool,
) -> Result<Option<Evaluation>, InputError> {
    let show = |i: usize, input: &mut Input| {
        presentation.show(split, i, EVALUATION_EPOCH, &mut present::Scratch::default(), input);
    };
    let inputs = Inputs { count: split.len(), steps: presentation.encoding.time_steps, show };
    evaluate_inputs(packed, architecture, &inputs, |i| split.label(i), pool, progress)
}

/// A sequence of inputs for a network.
pub struct Inputs<S> {
    /// Number of inputs.
    pub count: usize,
    /// Time steps of each input.
    pub steps: usize,
    /// Writes the input with an index.
    pub show: S,
}

/// [`evaluate`] for any inputs; `label` returns the class of an index.
pub fn evaluate_inputs(
    packed: &Packed,
    architecture: &Architecture,
    inputs: &Inputs<impl Fn(usize, &mut Input) + Sync>,
    label: impl Fn(usize) -> usize + Sync,
    pool: &ThreadPool,
    progress: &mut dyn FnMut(usize) -> bool,
) -> Result<Option<Evaluation>, InputError> {
    let (hidden, scratch) = (architecture.hidden().len(), Scratch::default());
    let measure = |range: Range<usize>| {
        pool.install(|| {
            let show = |i: usize, input: &mut Input| (inputs.show)(range.start + i, input);
            let measure = |i: usize, trace: &Trace| Measured::of(trace, label(range.start + i), hidden);
            infer(packed, inputs.steps, range.len(), &scratch, show, measure)
        })
    };
    evaluate_measured(architecture, inputs.count, inputs.steps, measure, progress)
}

/// [`evaluate`] for images that are measured elsewhere; `measure` returns the measurements of a range, in
/// order.
pub(crate) fn evaluate_measured<E>(
    architecture: &Architecture,
    count: usize,
    steps: usize,
    mut measure: impl FnMut(Range<usize>) -> Result<Vec<Measured>, E>,
    progress: &mut dyn FnMut(usize) -> bool,
) -> Result<Option<Evaluation>, E> {
    let mut sums = Sums::new(architecture);
    for start in (0..count).step_by(CHUNK) {
        let range = start..count.min(start + CHUNK);
        let end = range.end;
        measure(range)?.iter().for_each(|image| sums.add(image));
        if !progress(end) {
            return Ok(None);
        }
    }
    Ok(Some(sums.finish(architecture, steps)))
}

/// How a run presents a data set outside training: its normalisation, encoder and seed, no augmentation, no
/// noise.
pub fn presentation(config: &crate::config::RunConfig, dataset: &Dataset) -> Presentation {
    use crate::data::Normaliser;
    use leaklab_engine::{Isa, encode::Encoding};
    let encoding =
        Encoding { encoder: config.encoder, time_steps: config.time_steps, noise: None, isa: Isa::best() };
    Presentation::new(dataset, Normaliser::new(config.normalise, dataset), encoding, config.seed)
}

struct Sums {
    images: u64,
    correct: u64,
    sse: f64,
    spikes: Vec<u64>,
    synops: Vec<u64>,
    norms: Vec<f64>,
}

impl Sums {
    fn new(architecture: &Architecture) -> Self {
        let hidden = architecture.hidden().len();
        let weighted = architecture.parameters().len();
        Sums {
            images: 0,
            correct: 0,
            sse: 0.0,
            spikes: vec![0; hidden],
            synops: vec![0; weighted],
            norms: vec![0.0; hidden],
        }
    }

    fn add(&mut self, image: &Measured) {
        self.images += 1;
        self.correct += u64::from(image.correct);
        self.sse += image.sse;
        self.spikes.iter_mut().zip(&image.spikes).for_each(|(sum, n)| *sum += n);
        self.synops.iter_mut().zip(&image.synops).for_each(|(sum, n)| *sum += n);
        self.norms.iter_mut().zip(&image.norms).for_each(|(sum, x)| *sum += x);
    }

    fn finish(self, architecture: &Architecture, steps: usize) -> Evaluation {
        let images = self.images.max(1) as f64;
        let (mut layers, mut weighted) = (Vec::new(), self.synops.iter());
        let (mut spikes, mut sites) = (0, 0.0);
        for (i, layer) in architecture.layers().iter().enumerate() {
            let neuron_steps = (layer.output.neurons() * steps) as f64 * images;
            let synops = match layer.kind {
                LayerKind::Pool => None,
                LayerKind::Conv | LayerKind::Full | LayerKind::Output => {
                    weighted.next().map(|&n| n as f64 / images)
                }
            };
            if matches!(layer.kind, LayerKind::Conv | LayerKind::Full) {
                spikes += self.spikes[i];
                sites += neuron_steps;
            }
            layers.push(LayerEpoch {
                name: layer.name.clone(),
                kind: layer.kind,
                spike_rate: self.spikes.get(i).map(|&n| n as f64 / neuron_steps),
                synops,
                weighted_input_norm: self.norms.get(i).map(|sum| sum / images),
            });
        }
        Evaluation {
            images: self.images,
            correct: self.correct,
            sse: self.sse / images,
            spike_rate: if sites > 0.0 { spikes as f64 / sites } else { 0.0 },
            synops: self.synops.iter().sum::<u64>() as f64 / images,
            layers,
        }
    }
}
