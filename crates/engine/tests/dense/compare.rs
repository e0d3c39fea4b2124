//! Runs a network in the engine, on every instruction set and in both gradient modes, and compares all
//! of it with the reference implementation.

use super::{Dense, forward};
use leaklab_engine::philox::{Purpose, Stream};
use leaklab_engine::*;

/// The random numbers of one case.
pub struct Draw(Stream, usize);

impl Draw {
    pub fn new(case: u32) -> Self {
        Draw(Stream::new(11, Purpose::Benchmark, 0, case), 0)
    }

    pub fn uniform(&mut self) -> f32 {
        self.1 += 1;
        self.0.uniform_at(self.1)
    }

    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[(self.uniform() * choices.len() as f32) as usize]
    }
}

/// A network and its input.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub notation: &'static str,
    pub tau: f64,
    /// Whether some layers and the readout have a time constant of their own.
    pub mixed: bool,
    pub v_th: f32,
    pub steps: usize,
    pub samples: usize,
    /// Fraction of the input values that are not zero.
    pub rate: f32,
    /// Whether some samples have real-valued input.
    pub real: bool,
    pub dropout: bool,
    /// Mean of the weights, in half widths of their distribution.
    pub bias: f32,
}

/// Largest relative error of one rounding in float32: half a unit in the last place of 1.
const ROUNDING: f64 = 1.0 / (1 << 24) as f64;

/// A network of the case with weights that are multiples of 1/256.
fn network(case: &Case, draw: &mut Draw) -> Network {
    let architecture = Architecture::parse(case.notation).unwrap();
    let mut leak = Leak::uniform(Tau::new(case.tau).unwrap());
    if case.mixed {
        for layer in architecture.hidden().iter().filter(|layer| layer.kind.takes_dropout()) {
            if let Some(tau) = draw.pick(&[None, None, Some(3.0), Some(f64::INFINITY)]) {
                leak.layer_tau.insert(layer.name.clone(), Tau::new(tau).unwrap());
            }
        }
        leak.readout_tau = draw.pick(&[None, Some(Tau::INFINITE), Some(Tau::new(8.0).unwrap())]);
    }
    // Cases with a leak that differs by layer also use both divisors.
    let divisor = if case.mixed { draw.pick(&ReadoutDivisor::ALL) } else { ReadoutDivisor::Steps };
    let network = Network::new(architecture, leak, case.v_th).unwrap();
    let mut network = network.with_readout_divisor(divisor);
    for parameter in network.architecture.parameters().to_vec() {
        let size = 512.0 / (parameter.fan_in as f32).sqrt();
        for w in &mut network.weights[parameter.offset..][..parameter.len] {
            *w = ((2.0 * draw.uniform() - 1.0 + case.bias) * size).round() / 256.0;
        }
    }
    network
}

/// An input, `[step][channel][row][column]`: values -1, 0 and 1, or multiples of 1/8.
fn input(case: &Case, len: usize, draw: &mut Draw) -> Vec<f32> {
    // One group may contain images of both kinds.
    let real = case.real && draw.uniform() < 0.7;
    let value = |draw: &mut Draw| match (draw.uniform() < case.rate, real) {
        (false, _) => 0.0,
        (true, false) => draw.pick(&[1.0, -1.0]),
        (true, true) => (16.0 * draw.uniform() - 6.0).round() / 8.0,
    };
    (0..len).map(|_| value(draw)).collect()
}

/// Masks of a sample, if the case has dropout.
fn masks(case: &Case, architecture: &Architecture, draw: &mut Draw) -> Vec<Vec<f32>> {
    let layers = architecture.hidden().iter().filter(|layer| case.dropout && layer.kind.takes_dropout());
    layers.map(|l| (0..l.output.neurons()).map(|_| draw.pick(&[0.0, 2.0, 2.0])).collect()).collect()
}

/// Runs a case and compares spikes, measurements and gradients with those of the reference implementation.
/// Returns the fraction of neurons and steps of each hidden layer that fired.
pub fn agree(case: &Case, draw: &mut Draw, scratch: &Scratch) -> Vec<f64> {
    let network = network(case, draw);
    let (shape, steps, samples) = (network.architecture.input(), case.steps, case.samples);
    let inputs: Vec<Vec<f32>> = (0..samples).map(|_| input(case, steps * shape.neurons(), draw)).collect();
    let masks: Vec<Vec<Vec<f32>>> = (0..samples).map(|_| masks(case, &network.architecture, draw)).collect();
    let labels: Vec<usize> = (0..samples).map(|i| i % network.architecture.classes()).collect();
    let references: Vec<Dense> =
        (0..samples).map(|i| forward(&network, &inputs[i], steps, &masks[i])).collect();
    for mode in [Gradient::StraightThrough, Gradient::Exact] {
        let mut mean = vec![0.0; network.weights.len()];
        for (reference, &label) in references.iter().zip(&labels) {
            let gradient = reference.gradient(&network, label, mode);
            mean.iter_mut().zip(gradient).for_each(|(mean, g)| *mean += g / samples as f64);
        }
        for isa in Isa::available() {
            let packed = Packed::new(&network, isa).unwrap();
            let mut gradient = vec![f32::NAN; network.weights.len()];
            let prepare = |i: usize, input: &mut Input, sample_masks: &mut Masks| {
                *input = Input::from_values(shape, steps, &inputs[i]);
                let views: Vec<&[f32]> = masks[i].iter().map(Vec::as_slice).collect();
                *sample_masks = match case.dropout {
                    true => Masks::from_values(&views, &network.architecture).unwrap(),
                    false => Masks::none(),
                };
                labels[i]
            };
            let measure = |_: usize, trace: &Trace| trace.clone();
            let traces =
                train_batch(&packed, steps, samples, mode, scratch, prepare, measure, &mut gradient).unwrap();
            let name = format!("{case:?} {isa} {mode}");
            for (trace, reference) in traces.iter().zip(&references) {
                same_forward(&name, trace, reference);
            }
            same_gradient(&name, &network, &references, &gradient, &mean);
        }
    }
    let share = |layer: usize| {
        let fired = references.iter().flat_map(|reference| &reference.spikes[layer]).flatten();
        let (fired, all) = fired.fold((0, 0), |(fired, all), &spike| (fired + usize::from(spike), all + 1));
        fired as f64 / all as f64
    };
    (0..network.architecture.hidden().len()).map(share).collect()
}

fn same_forward(name: &str, trace: &Trace, reference: &Dense) {
    for (layer, expected) in reference.spikes.iter().enumerate() {
        let spikes = trace.spikes(layer);
        for (t, expected) in expected.iter().enumerate() {
            for (n, &expected) in expected.iter().enumerate() {
                let (channel, pixel) = (n / spikes.pixels(), n % spikes.pixels());
                let found = spikes.get(pixel, t, channel);
                assert_eq!(found, expected, "{name}: layer {layer} step {t} neuron {n}");
            }
        }
    }
    assert_eq!(trace.synops(), reference.synops, "{name}");
    for (layer, (found, expected)) in trace.weighted_input_norms().iter().zip(&reference.norms).enumerate() {
        // Positive numbers are added in float32, as many in each lane as it has neurons. Each addition
        // changes the sum by at most one rounding, and the square root halves the relative error, which
        // leaves the same amount for the errors of squaring.
        let spikes = trace.spikes(layer);
        let added = spikes.pixels() * spikes.channels().div_ceil(16);
        let bound = ROUNDING * (added + 4) as f64 * expected;
        assert!((found - expected).abs() <= bound, "{name}: norm of layer {layer} {found} {expected}");
    }
    // Sums of multiples of 1/2048 that are far below 2^13 are exact.
    let signal: Vec<f64> = trace.signal().iter().map(|&z| f64::from(z)).collect();
    assert_eq!(signal, reference.signal, "{name}");
    for (&found, &expected) in trace.prediction().iter().zip(&reference.prediction) {
        // The reference implementation has the same float32 potential; dividing it rounds once. The two sums
        // of powers of lambda may differ by their roundings in double precision.
        assert!(
            (f64::from(found) - expected).abs() <= (1.0 + 1e-6) * ROUNDING * expected.abs(),
            "{name}: {found} {expected}"
        );
    }
}

/// Compares every tensor's gradient, within the errors that rounding can cause.
///
/// An entry is a sum of sums, in float32. Each addition or product has a relative error of at most
/// [`ROUNDING`], of random sign, and intermediate sums have the size of the final ones. After `n` roundings,
/// the standard deviation of the error is at most `ROUNDING * sqrt(n)` times the size of the entries. Six
/// standard deviations are allowed, relative to the tensor's largest entry.
fn same_gradient(name: &str, network: &Network, references: &[Dense], found: &[f32], expected: &[f64]) {
    let roundings: Vec<Vec<f64>> = references.iter().map(|reference| reference.roundings(network)).collect();
    for (number, parameter) in network.architecture.parameters().iter().enumerate() {
        let range = parameter.offset..parameter.offset + parameter.len;
        let count: f64 = roundings.iter().map(|roundings| roundings[number]).sum();
        let largest = expected[range.clone()].iter().fold(0.0f64, |m, x| m.max(x.abs()));
        let bound = 6.0 * ROUNDING * count.sqrt() * largest;
        for i in range {
            let difference = (f64::from(found[i]) - expected[i]).abs();
            assert!(
                difference <= bound,
                "{name}: gradient of {} at {} is {}, not {} (bound {bound:e})",
                parameter.name,
                i - parameter.offset,
                found[i],
                expected[i]
            );
        }
    }
}
