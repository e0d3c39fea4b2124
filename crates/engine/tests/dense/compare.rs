//! Runs a network in the engine, on every instruction set and in both gradient modes, and compares all of it
//! with the twin.

use super::{Dense, forward};
use leaklab_engine::philox::{Purpose, Stream};
use leaklab_engine::*;

/// Numbers of one random case.
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

/// A network, and what it is shown.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub notation: &'static str,
    pub tau: f64,
    /// Whether some layers and the readout have a time constant of their own.
    pub mixed: bool,
    pub v_th: f32,
    pub steps: usize,
    pub samples: usize,
    /// Share of the input values that are not zero.
    pub rate: f32,
    /// Whether some samples have real input.
    pub real: bool,
    pub dropout: bool,
    /// How far the weights' mean is above zero, in half widths of their distribution.
    pub bias: f32,
}

/// Half a unit in the last place of 1 in float32: what one rounding may change, relatively.
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
    let mut network = Network::new(architecture, leak, case.v_th).unwrap();
    for parameter in network.architecture.parameters().to_vec() {
        let size = 512.0 / (parameter.fan_in as f32).sqrt();
        for w in &mut network.weights[parameter.offset..][..parameter.len] {
            *w = ((2.0 * draw.uniform() - 1.0 + case.bias) * size).round() / 256.0;
        }
    }
    network
}

/// An input, `[step][channel][row][column]`: -1, 0 and 1, or multiples of 1/8.
fn input(case: &Case, len: usize, draw: &mut Draw) -> Vec<f32> {
    // Images of either kind may meet in one group.
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

/// Runs a case and compares spikes, measurements and gradients with the twin's. Returns the share of neurons
/// and steps of each hidden layer that fired.
pub fn agree(case: &Case, draw: &mut Draw, scratch: &Scratch) -> Vec<f64> {
    let network = network(case, draw);
    let (shape, steps, samples) = (network.architecture.input(), case.steps, case.samples);
    let inputs: Vec<Vec<f32>> = (0..samples).map(|_| input(case, steps * shape.neurons(), draw)).collect();
    let masks: Vec<Vec<Vec<f32>>> = (0..samples).map(|_| masks(case, &network.architecture, draw)).collect();
    let labels: Vec<usize> = (0..samples).map(|i| i % network.architecture.classes()).collect();
    let twins: Vec<Dense> = (0..samples).map(|i| forward(&network, &inputs[i], steps, &masks[i])).collect();
    for mode in [Gradient::StraightThrough, Gradient::Exact] {
        let mut mean = vec![0.0; network.weights.len()];
        for (twin, &label) in twins.iter().zip(&labels) {
            let gradient = twin.gradient(&network, label, mode);
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
            traces.iter().zip(&twins).for_each(|(trace, twin)| same_forward(&name, trace, twin));
            same_gradient(&name, &network, &twins, &gradient, &mean);
        }
    }
    let share = |layer: usize| {
        let fired = twins.iter().flat_map(|twin| &twin.spikes[layer]).flatten();
        let (fired, all) = fired.fold((0, 0), |(fired, all), &spike| (fired + usize::from(spike), all + 1));
        fired as f64 / all as f64
    };
    (0..network.architecture.hidden().len()).map(share).collect()
}

fn same_forward(name: &str, trace: &Trace, twin: &Dense) {
    for (layer, expected) in twin.spikes.iter().enumerate() {
        let spikes = trace.spikes(layer);
        for (t, expected) in expected.iter().enumerate() {
            for (n, &expected) in expected.iter().enumerate() {
                let (channel, pixel) = (n / spikes.pixels(), n % spikes.pixels());
                let found = spikes.get(pixel, t, channel);
                assert_eq!(found, expected, "{name}: layer {layer} step {t} neuron {n}");
            }
        }
    }
    assert_eq!(trace.synops(), twin.synops, "{name}");
    for (layer, (found, expected)) in trace.weighted_input_norms().iter().zip(&twin.norms).enumerate() {
        // Positive numbers are added in float32, in each lane as many as it has neurons: each addition
        // changes the sum by at most a rounding of it, and the root halves that, which leaves as much again
        // for squaring.
        let spikes = trace.spikes(layer);
        let added = spikes.pixels() * spikes.channels().div_ceil(16);
        let bound = ROUNDING * (added + 4) as f64 * expected;
        assert!((found - expected).abs() <= bound, "{name}: norm of layer {layer} {found} {expected}");
    }
    // Sums of multiples of 1/2048 far below 2^13: exact.
    let signal: Vec<f64> = trace.signal().iter().map(|&z| f64::from(z)).collect();
    assert_eq!(signal, twin.signal, "{name}");
    for (&found, &expected) in trace.prediction().iter().zip(&twin.prediction) {
        // The twin's potential is the same float32; dividing it by T rounds once.
        assert!(
            (f64::from(found) - expected).abs() <= ROUNDING * expected.abs(),
            "{name}: {found} {expected}"
        );
    }
}

/// Every tensor's gradient, within what rounding can do to it.
///
/// An entry is a sum of sums, in float32. Each addition or product changes its result by at most [`ROUNDING`]
/// of it, up or down as chance has it, and intermediate sums have the size of the final ones: with `n`
/// roundings on the way the error's standard deviation is at most `ROUNDING * sqrt(n)` of the entries' size.
/// Six of these are allowed, relative to the tensor's largest entry.
fn same_gradient(name: &str, network: &Network, twins: &[Dense], found: &[f32], expected: &[f64]) {
    let roundings: Vec<Vec<f64>> = twins.iter().map(|twin| twin.roundings(network)).collect();
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
