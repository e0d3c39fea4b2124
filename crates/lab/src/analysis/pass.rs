//! One pass over the test images under one stimulus, with everything that any analysis needs from it.
//!
//! What a pass measures depends only on its stimulus and the number of the presentation, so analyses share
//! passes. A finished pass is stored in the run's folder with a fingerprint of everything that it depends on:
//! an interrupted analysis continues where it stopped, and nothing is computed twice.

use super::neurobench::{Synapses, updates};
use super::periodogram::Periodogram;
use super::stimulus::{PassKey, has_activity, has_spectrum};
use super::store;
use super::surrogate::Surrogate;
use leaklab_engine::{Input, LayerKind, Network, Trace};
use leaklab_record::{Bits, Reading};
use serde::{Deserialize, Serialize};

/// Version of a stored pass; incremented whenever a measurement changes.
pub const FORMAT: u32 = 3;

/// Rate from which a neuron counts as saturated.
pub const SATURATED: f64 = 0.9;

/// The results of one pass. Numbers that are not finite are `None`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pass {
    /// The stimulus, as [`leaklab_record::Stimulus`] writes it.
    pub stimulus: String,
    /// Number of the presentation, from 1.
    pub presentation: u32,
    /// Which images were classified correctly.
    pub correct: Bits,
    /// Mean over images of the sum over outputs of (p - onehot)^2.
    pub sse: Option<f64>,
    /// Spectra, in the first presentation of stimuli that [`has_spectrum`] accepts.
    pub spectrum: Option<SpectrumPass>,
    /// Activity, in the first presentation of stimuli that [`has_activity`] accepts.
    pub activity: Option<ActivityPass>,
}

/// Spectra of one pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpectrumPass {
    /// Critical frequency of the target output by [`Reading`], for each image; `None` if its signal is
    /// constant.
    pub critical: [Vec<Option<f64>>; 3],
    /// Share of the target output's power at frequency 0 for each image; `None` if its signal is zero.
    pub zero_share: Vec<Option<f64>>,
    /// Mean power density of the input trains, by bin.
    pub input_power: Vec<f64>,
    /// Mean amplitude density of the input trains, for each image.
    pub input_amplitude: Vec<f64>,
    /// Mean power density of each hidden layer's spike trains, by layer and bin.
    pub hidden_power: Vec<Vec<f64>>,
}

/// Activity of one pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActivityPass {
    /// Spikes of each hidden layer, all images.
    pub spikes: Vec<u64>,
    /// Neurons of each hidden layer that never fired.
    pub dead: Vec<u64>,
    /// Neurons of each hidden layer that fired at [`SATURATED`] of all steps or more.
    pub saturated: Vec<u64>,
    /// Synaptic operations of each conv, FC and output layer, all images.
    pub synops: Vec<u64>,
    /// Weighted-input norm of each hidden layer, mean over images; `None` if not finite.
    pub norms: Vec<Option<f64>>,
    /// Spikes of hidden conv and FC layers, for each image.
    pub image_spikes: Vec<u64>,
    /// Synaptic operations, for each image.
    pub image_synops: Vec<u64>,
    /// Effective accumulates by NeuroBench's definition, all images.
    pub effective_acs: u64,
    /// Effective multiply-accumulates by NeuroBench's definition, all images.
    pub effective_macs: u64,
    /// Updates of membrane potentials by NeuroBench's definition, all images.
    pub neuron_updates: u64,
}

/// Measures images and adds the results in the order of the images, so that the sums do not depend on threads
/// and chunks.
pub struct Meter<'a> {
    network: &'a Network,
    steps: usize,
    spectra: Option<Spectra>,
    synapses: Option<Synapses>,
    sums: Pass,
    sse: f64,
    norms: Vec<f64>,
    neuron_spikes: Vec<Vec<u64>>,
}

/// The results of one image.
pub struct Measured {
    correct: bool,
    sse: f64,
    spectrum: Option<ImageSpectrum>,
    activity: Option<ImageActivity>,
}

struct ImageSpectrum {
    critical: [Option<f64>; 3],
    zero_share: Option<f64>,
    input_power: Vec<f64>,
    input_amplitude: f64,
    hidden_power: Vec<Vec<f64>>,
}

struct ImageActivity {
    counts: Vec<Vec<u32>>,
    synops: Vec<u64>,
    norms: Vec<f64>,
    acs: u64,
    macs: u64,
    updates: u64,
}

impl<'a> Meter<'a> {
    /// For images shown for `steps` steps; `seed` is that of the run.
    pub fn new(network: &'a Network, steps: usize, key: PassKey, seed: u64) -> Self {
        let first = key.presentation == 1;
        let hidden = network.architecture.hidden().len();
        let bins = steps / 2;
        let spectrum = (first && has_spectrum(key.stimulus)).then(|| SpectrumPass {
            critical: Default::default(),
            zero_share: Vec::new(),
            input_power: vec![0.0; bins],
            input_amplitude: Vec::new(),
            hidden_power: vec![vec![0.0; bins]; hidden],
        });
        let activity = (first && has_activity(key.stimulus)).then(|| ActivityPass {
            spikes: vec![0; hidden],
            dead: vec![0; hidden],
            saturated: vec![0; hidden],
            synops: vec![0; network.architecture.parameters().len()],
            norms: vec![None; hidden],
            image_spikes: Vec::new(),
            image_synops: Vec::new(),
            effective_acs: 0,
            effective_macs: 0,
            neuron_updates: 0,
        });
        let neurons = network.architecture.hidden().iter().map(|layer| vec![0; layer.output.neurons()]);
        Meter {
            network,
            steps,
            spectra: spectrum.as_ref().map(|_| Spectra::new(network, steps, seed)),
            synapses: activity.as_ref().map(|_| Synapses::new(network)),
            neuron_spikes: if activity.is_some() { neurons.collect() } else { Vec::new() },
            sums: Pass {
                stimulus: key.stimulus.to_string(),
                presentation: key.presentation,
                correct: Bits::default(),
                sse: None,
                spectrum,
                activity,
            },
            sse: 0.0,
            norms: vec![0.0; hidden],
        }
    }

    /// Measures one image; called from any thread.
    pub fn measure(&self, trace: &Trace, label: usize, sample: u32) -> Measured {
        let hidden = self.network.architecture.hidden().len();
        Measured {
            correct: trace.class() == label && trace.prediction().iter().all(|p| p.is_finite()),
            sse: trace.sse(label),
            spectrum: self.spectra.as_ref().map(|spectra| spectra.image(trace, label, sample)),
            activity: self.synapses.as_ref().map(|synapses| {
                let operations = synapses.operations(trace);
                ImageActivity {
                    counts: (0..hidden).map(|layer| trace.spike_counts(layer)).collect(),
                    synops: trace.synops(),
                    norms: trace.weighted_input_norms(),
                    acs: operations.acs,
                    macs: operations.macs,
                    updates: updates::count(self.network, trace),
                }
            }),
        }
    }

    /// Adds the next image.
    pub fn add(&mut self, image: Measured) {
        self.sums.correct.push(image.correct);
        self.sse += image.sse;
        if let Some((sums, image)) = self.sums.spectrum.as_mut().zip(image.spectrum) {
            sums.critical.iter_mut().zip(image.critical).for_each(|(all, one)| all.push(one));
            sums.zero_share.push(image.zero_share);
            sums.input_amplitude.push(image.input_amplitude);
            add_all(&mut sums.input_power, &image.input_power);
            sums.hidden_power.iter_mut().zip(&image.hidden_power).for_each(|(sum, p)| add_all(sum, p));
        }
        if let Some((sums, image)) = self.sums.activity.as_mut().zip(image.activity) {
            let mut counted = 0;
            for (layer, counts) in image.counts.iter().enumerate() {
                let spikes: u64 = counts.iter().map(|&n| u64::from(n)).sum();
                sums.spikes[layer] += spikes;
                if self.network.architecture.hidden()[layer].kind != LayerKind::Pool {
                    counted += spikes;
                }
                self.neuron_spikes[layer].iter_mut().zip(counts).for_each(|(sum, &n)| *sum += u64::from(n));
            }
            sums.image_spikes.push(counted);
            sums.image_synops.push(image.synops.iter().sum());
            sums.synops.iter_mut().zip(&image.synops).for_each(|(sum, n)| *sum += n);
            add_all(&mut self.norms, &image.norms);
            sums.effective_acs += image.acs;
            sums.effective_macs += image.macs;
            sums.neuron_updates += image.updates;
        }
    }

    /// The finished pass.
    pub fn finish(mut self) -> Pass {
        let images = self.sums.images().max(1) as f64;
        self.sums.sse = Some(self.sse / images).filter(|sse| sse.is_finite());
        if let Some(spectrum) = &mut self.sums.spectrum {
            spectrum.input_power.iter_mut().for_each(|p| *p /= images);
            spectrum.hidden_power.iter_mut().flatten().for_each(|p| *p /= images);
        }
        if let Some(activity) = &mut self.sums.activity {
            activity.norms =
                self.norms.iter().map(|sum| Some(sum / images).filter(|x| x.is_finite())).collect();
            let most = SATURATED * images * self.steps as f64;
            for (layer, counts) in self.neuron_spikes.iter().enumerate() {
                activity.dead[layer] = counts.iter().filter(|&&n| n == 0).count() as u64;
                activity.saturated[layer] = counts.iter().filter(|&&n| n as f64 >= most).count() as u64;
            }
        }
        self.sums
    }
}

fn add_all(sums: &mut [f64], values: &[f64]) {
    sums.iter_mut().zip(values).for_each(|(sum, x)| *sum += x);
}

/// What a stored pass must agree with.
pub struct Frame<'a> {
    /// The network that was run.
    pub network: &'a Network,
    /// Number of steps.
    pub steps: usize,
    /// The stimulus and the number of the presentation.
    pub key: PassKey,
    /// Number of images.
    pub images: usize,
}

impl Pass {
    /// Reads a stored pass from the text of its file. Returns `None` if it has another fingerprint, was
    /// changed, or does not fit the network, the stimulus and the images of the frame.
    pub fn of_text(text: &str, fingerprint: &str, frame: &Frame) -> Option<Self> {
        store::parse::<Pass>(text, FORMAT, fingerprint).filter(|pass| pass.fits(frame))
    }

    /// The text of the file of a stored pass.
    pub fn to_text(&self, fingerprint: String) -> String {
        store::text(FORMAT, fingerprint, self)
    }

    /// Whether every list has the length, and every number the range, that the tables rely on.
    fn fits(&self, frame: &Frame) -> bool {
        let (key, images) = (frame.key, frame.images);
        let first = key.presentation == 1;
        self.stimulus == key.stimulus.to_string()
            && self.presentation == key.presentation
            && self.correct.len() == images
            && self.sse.is_none_or(is_sound)
            && self.spectrum.is_some() == (first && has_spectrum(key.stimulus))
            && self.activity.is_some() == (first && has_activity(key.stimulus))
            && self.spectrum.as_ref().is_none_or(|spectrum| spectrum.fits(frame))
            && self.activity.as_ref().is_none_or(|activity| activity.fits(frame))
    }

    /// Images shown.
    pub fn images(&self) -> u64 {
        self.correct.len() as u64
    }

    /// Share of them classified correctly.
    pub fn accuracy(&self) -> f64 {
        self.correct.count() as f64 / self.images().max(1) as f64
    }
}

/// Whether a number can be a mean of squares or of absolute values.
fn is_sound(x: f64) -> bool {
    x.is_finite() && x >= 0.0
}

impl SpectrumPass {
    fn fits(&self, frame: &Frame) -> bool {
        let (images, bins) = (frame.images, frame.steps / 2);
        let share = |x: &Option<f64>, most: f64| x.is_none_or(|x| (0.0..=most).contains(&x));
        self.critical.iter().all(|values| values.len() == images && values.iter().all(|x| share(x, 0.5)))
            && self.zero_share.len() == images
            && self.zero_share.iter().all(|x| share(x, 1.0 + 1e-9))
            && self.input_amplitude.len() == images
            && self.input_power.len() == bins
            && self.input_amplitude.iter().chain(&self.input_power).all(|&x| is_sound(x))
            && self.hidden_power.len() == frame.network.architecture.hidden().len()
            && self.hidden_power.iter().all(|power| power.len() == bins)
            && self.hidden_power.iter().flatten().all(|&x| is_sound(x))
    }
}

impl ActivityPass {
    fn fits(&self, frame: &Frame) -> bool {
        let (hidden, images) = (frame.network.architecture.hidden(), frame.images);
        let per_neuron = (frame.steps * images) as u64;
        let neurons: Vec<u64> = hidden.iter().map(|layer| layer.output.neurons() as u64).collect();
        let within = |counts: &[u64], times: u64| {
            counts.len() == neurons.len() && counts.iter().zip(&neurons).all(|(&n, &most)| n <= most * times)
        };
        let operations = frame.network.architecture.layers().iter().map(|layer| layer.dense_operations());
        let operations = operations.sum::<u64>().saturating_mul(frame.steps as u64);
        let most = neurons.iter().sum::<u64>() * frame.steps as u64;
        within(&self.spikes, per_neuron)
            && within(&self.dead, 1)
            && within(&self.saturated, 1)
            && self.synops.len() == frame.network.architecture.parameters().len()
            && self.synops.iter().all(|&n| n <= operations.saturating_mul(images as u64))
            && self.norms.len() == hidden.len()
            && self.norms.iter().flatten().all(|&x| is_sound(x))
            && self.image_spikes.len() == images
            && self.image_spikes.iter().all(|&n| n <= most)
            && self.image_synops.len() == images
            && self.image_synops.iter().all(|&n| n <= operations)
            && self.neuron_updates <= per_neuron * neurons.iter().sum::<u64>()
    }
}

/// What the spectra of an image need.
struct Spectra {
    hidden: usize,
    whole: Periodogram,
    /// Steps that the settled reading omits.
    skipped: usize,
    settled: Periodogram,
    surrogate: Surrogate,
}

impl Spectra {
    fn new(network: &Network, steps: usize, seed: u64) -> Self {
        let skipped = steps / 5;
        Spectra {
            hidden: network.architecture.hidden().len(),
            whole: Periodogram::new(steps),
            skipped,
            settled: Periodogram::new(steps - skipped),
            surrogate: Surrogate::new(network, seed),
        }
    }

    fn image(&self, trace: &Trace, label: usize, sample: u32) -> ImageSpectrum {
        let (hidden, periodogram) = (self.hidden, &self.whole);
        let classes = trace.prediction().len();
        let signal: Vec<f64> =
            trace.signal().iter().skip(label).step_by(classes).map(|&x| f64::from(x)).collect();
        let critical = Reading::ALL.map(|reading| match reading {
            Reading::Defined => self.whole.critical_frequency(&signal),
            Reading::Settled => self.settled.critical_frequency(&signal[self.skipped..]),
            Reading::Shuffled => self.whole.critical_frequency(&self.surrogate.signal(trace, label, sample)),
        });
        let (sum, squares) = (signal.iter().sum::<f64>(), signal.iter().map(|x| x * x).sum::<f64>());
        let zero_share = Some(sum * sum / (signal.len() as f64 * squares)).filter(|share| share.is_finite());
        let (input_power, input_amplitude) = input_spectrum(trace.input(), periodogram);
        let hidden_power = (0..hidden)
            .map(|layer| {
                let spikes = trace.spikes(layer);
                let mut power = vec![0.0; periodogram.bins()];
                periodogram.add_layer(spikes, &mut power);
                let neurons = (spikes.pixels() * spikes.channels()) as f64;
                power.iter_mut().for_each(|p| *p /= neurons);
                power
            })
            .collect();
        ImageSpectrum { critical, zero_share, input_power, input_amplitude, hidden_power }
    }
}

/// Mean over an image's input trains of the power density by bin, and of the amplitude density over all bins.
pub fn input_spectrum(input: &Input, periodogram: &Periodogram) -> (Vec<f64>, f64) {
    let (shape, steps) = (input.shape(), input.steps());
    let mut sum = vec![0.0; periodogram.bins()];
    let mut amplitude = 0.0;
    let mut train = vec![0.0; steps];
    for channel in 0..shape.channels {
        for pixel in 0..shape.pixels() {
            for (step, x) in train.iter_mut().enumerate() {
                *x = match input {
                    Input::Ternary { spikes, .. } => {
                        f64::from(u8::from(spikes.get(pixel, step, channel)))
                            - f64::from(u8::from(spikes.get(pixel, step, shape.channels + channel)))
                    }
                    Input::Real { values, .. } => {
                        f64::from(values[step * shape.neurons() + channel * shape.pixels() + pixel])
                    }
                };
            }
            for (total, power) in sum.iter_mut().zip(periodogram.power(&train)) {
                *total += power;
                amplitude += power.sqrt();
            }
        }
    }
    let trains = shape.neurons() as f64;
    sum.iter_mut().for_each(|p| *p /= trains);
    (sum, amplitude / (trains * periodogram.bins().max(1) as f64))
}
