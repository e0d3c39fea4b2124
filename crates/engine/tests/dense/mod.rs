//! A naive dense reference implementation of the network: the equations of sections 1 and 2 of the
//! specification, neuron by neuron and step by step, without lists, bits or vectors. It shares only the
//! network's description with the kernels.
//!
//! The weights in the tests are multiples of a power of two, so that the weighted input is exact in float32
//! in any order of summation. The potential is also in float32. A spike that differs is therefore an error,
//! and not an effect of rounding. Gradients are in float64.

pub mod compare;

use leaklab_engine::*;
use rayon::prelude::*;

/// The forward pass of one sample, as the reference implementation computes it.
pub struct Dense {
    /// Input of each layer after dropout, `[layer][step][neuron]`.
    values: Vec<Vec<Vec<f64>>>,
    /// Value of a spike of each hidden neuron, `[layer][neuron]`.
    scales: Vec<Vec<f64>>,
    /// `[hidden layer][step][neuron]`.
    pub spikes: Vec<Vec<Vec<bool>>>,
    /// For each hidden layer, the mean over time of the norm of the weighted input.
    pub norms: Vec<f64>,
    /// Weighted input of the output layer, `[step][class]`.
    pub signal: Vec<f64>,
    pub prediction: Vec<f64>,
    /// What the potential of the output was divided by.
    divisor: f64,
    pub synops: Vec<u64>,
}

/// Membrane decay per step of a layer.
fn lambda(network: &Network, layer: usize) -> f64 {
    let tau = network.leak().of(&network.architecture.layers()[layer]);
    tau.map_or(1.0, |tau| (-1.0 / tau.steps()).exp())
}

/// What the potential of the output is divided by.
fn divisor(network: &Network, steps: usize) -> f64 {
    let lambda = lambda(network, network.architecture.layers().len() - 1);
    match network.readout_divisor() {
        ReadoutDivisor::Steps => steps as f64,
        ReadoutDivisor::Memory => (0..steps).map(|age| lambda.powi(age as i32)).sum(),
    }
}

/// The weights of a layer; empty for a pool.
fn weights<'a>(network: &'a Network, layer: &Layer) -> &'a [f32] {
    layer.parameter.map_or(&[][..], |p| {
        let p = &network.architecture.parameters()[p];
        &network.weights[p.offset..][..p.len]
    })
}

/// The nine taps of a kernel.
fn taps() -> impl Iterator<Item = (usize, usize)> {
    (0..3).flat_map(|ky| (0..3).map(move |kx| (ky, kx)))
}

/// Outputs `out` in a row or column of length `n` whose input `out + tap - 1` is inside of the image.
fn inside(tap: usize, n: usize) -> std::ops::Range<usize> {
    1usize.saturating_sub(tap)..(n + 1 - tap).min(n)
}

/// `(W O)[t]` of every neuron of a layer.
fn weighted_input(layer: &Layer, weights: &[f32], input: &[f64]) -> Vec<f64> {
    let (i, o) = (layer.input, layer.output);
    let mut out = vec![0.0; o.neurons()];
    match layer.kind {
        LayerKind::Full | LayerKind::Output => {
            for (out, row) in out.iter_mut().zip(weights.chunks_exact(i.neurons())) {
                *out = row.iter().zip(input).map(|(&w, x)| f64::from(w) * x).sum();
            }
        }
        LayerKind::Pool => {
            for (n, out) in out.iter_mut().enumerate() {
                *out = pool_inputs(layer, n).iter().map(|&at| 0.25 * input[at]).sum();
            }
        }
        LayerKind::Conv => {
            for (k, kernel) in weights.chunks_exact(9).enumerate() {
                let out = &mut out[k / i.channels * o.pixels()..][..o.pixels()];
                let input = &input[k % i.channels * i.pixels()..][..i.pixels()];
                for (ky, kx) in taps() {
                    let (weight, columns) = (f64::from(kernel[3 * ky + kx]), inside(kx, o.width));
                    for y in inside(ky, o.height) {
                        let out = &mut out[y * o.width..][columns.clone()];
                        let input = &input[(y + ky - 1) * i.width + columns.start + kx - 1..];
                        for (out, x) in out.iter_mut().zip(input) {
                            *out += weight * x;
                        }
                    }
                }
            }
        }
    }
    out
}

/// The four inputs of a pool neuron.
fn pool_inputs(layer: &Layer, neuron: usize) -> [usize; 4] {
    let (i, o) = (layer.input, layer.output);
    let (c, y, x) = (neuron / o.pixels(), neuron % o.pixels() / o.width, neuron % o.width);
    [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(dy, dx)| (c * i.height + 2 * y + dy) * i.width + 2 * x + dx)
}

/// Number of connections from one input neuron to a layer.
fn fan_out(layer: &Layer, neuron: usize) -> u64 {
    let i = layer.input;
    let (y, x) = (neuron % i.pixels() / i.width, neuron % i.width);
    let reached = |at: usize, n: usize| (at.max(1) - 1..n.min(at + 2)).len();
    match layer.kind {
        LayerKind::Conv => (reached(y, i.height) * reached(x, i.width) * layer.output.channels) as u64,
        LayerKind::Pool => 1,
        LayerKind::Full | LayerKind::Output => layer.output.channels as u64,
    }
}

/// Loss derivatives of a layer's input values, given `d` of its neurons.
fn pull_back(layer: &Layer, weights: &[f32], d: &[f64]) -> Vec<f64> {
    let (i, o) = (layer.input, layer.output);
    let mut below = vec![0.0; i.neurons()];
    match layer.kind {
        LayerKind::Full | LayerKind::Output => {
            for (d, row) in d.iter().zip(weights.chunks_exact(i.neurons())) {
                below.iter_mut().zip(row).for_each(|(below, &w)| *below += d * f64::from(w));
            }
        }
        LayerKind::Pool => {
            for (n, d) in d.iter().enumerate() {
                pool_inputs(layer, n).into_iter().for_each(|at| below[at] += 0.25 * d);
            }
        }
        LayerKind::Conv => {
            for (k, kernel) in weights.chunks_exact(9).enumerate() {
                let d = &d[k / i.channels * o.pixels()..][..o.pixels()];
                let below = &mut below[k % i.channels * i.pixels()..][..i.pixels()];
                for (ky, kx) in taps() {
                    let (weight, columns) = (f64::from(kernel[3 * ky + kx]), inside(kx, o.width));
                    for y in inside(ky, o.height) {
                        let d = &d[y * o.width..][columns.clone()];
                        let below = &mut below[(y + ky - 1) * i.width + columns.start + kx - 1..];
                        for (below, d) in below.iter_mut().zip(d) {
                            *below += weight * d;
                        }
                    }
                }
            }
        }
    }
    below
}

/// Adds the gradient of the weights of one output channel, given `d` and the input values at every step.
fn add_weight_gradient(layer: &Layer, out: usize, d: &[Vec<f64>], inputs: &[Vec<f64>], gradient: &mut [f64]) {
    let (i, o) = (layer.input, layer.output);
    for (d, inputs) in d.iter().zip(inputs) {
        for (n, &value) in inputs.iter().enumerate().filter(|&(_, &value)| value != 0.0) {
            match layer.kind {
                LayerKind::Full | LayerKind::Output => gradient[n] += d[out] * value,
                LayerKind::Pool => unreachable!("a pool has no weights"),
                LayerKind::Conv => {
                    let (c, v, u) = (n / i.pixels(), n % i.pixels() / i.width, n % i.width);
                    for (ky, kx) in taps() {
                        let (y, x) = (v + 1, u + 1);
                        if (ky..ky + o.height).contains(&y) && (kx..kx + o.width).contains(&x) {
                            let at = (out * o.height + y - ky) * o.width + x - kx;
                            gradient[9 * c + 3 * ky + kx] += d[at] * value;
                        }
                    }
                }
            }
        }
    }
}

/// Runs one sample. `masks` contains one mask for each hidden conv and fully connected layer, or is empty.
pub fn forward(network: &Network, input: &[f32], steps: usize, masks: &[Vec<f32>]) -> Dense {
    let neurons = network.architecture.input().neurons();
    let shown = input.chunks_exact(neurons).map(|step| step.iter().map(|&x| f64::from(x)).collect());
    let mut dense = Dense {
        values: vec![shown.collect()],
        scales: Vec::new(),
        spikes: Vec::new(),
        norms: Vec::new(),
        signal: Vec::new(),
        prediction: Vec::new(),
        synops: Vec::new(),
        divisor: 0.0,
    };
    let mut masks = masks.iter();
    for (index, layer) in network.architecture.layers().iter().enumerate() {
        let (lambda, v_th) = (lambda(network, index) as f32, network.v_th());
        let inputs = &dense.values[index];
        let currents: Vec<Vec<f64>> =
            inputs.par_iter().map(|x| weighted_input(layer, weights(network, layer), x)).collect();
        let connected = |(n, &x): (usize, &f64)| if x == 0.0 { 0 } else { fan_out(layer, n) };
        let synops = inputs.iter().flat_map(|step| step.iter().enumerate().map(connected)).sum();
        let mut potential = vec![0.0f32; layer.output.neurons()];
        let mut fire = |threshold: f32, lambda: f32| -> Vec<Vec<bool>> {
            let step = |z: &Vec<f64>| {
                let neurons = potential.iter_mut().zip(z);
                let fired = neurons.map(|(u, &z)| {
                    *u += z as f32;
                    let fired = *u > threshold;
                    *u = if fired { 0.0 } else { *u * lambda };
                    fired
                });
                fired.collect()
            };
            currents.iter().map(step).collect()
        };
        let ones = || vec![1.0; layer.output.neurons()];
        let (spikes, scale) = match layer.kind {
            LayerKind::Conv | LayerKind::Full => {
                let mask = masks.next().map(|mask| mask.iter().map(|&m| f64::from(m)).collect());
                (fire(v_th, lambda), mask.unwrap_or_else(ones))
            }
            LayerKind::Pool => (fire(0.75, 1.0), ones()),
            LayerKind::Output => {
                for z in &currents {
                    potential.iter_mut().zip(z).for_each(|(u, &z)| *u = lambda * *u + z as f32);
                }
                dense.divisor = divisor(network, steps);
                dense.prediction = potential.iter().map(|&u| f64::from(u) / dense.divisor).collect();
                dense.signal = currents.concat();
                dense.synops.push(synops);
                break;
            }
        };
        if layer.parameter.is_some() {
            dense.synops.push(synops);
        }
        let norm = |z: &Vec<f64>| z.iter().map(|z| z * z).sum::<f64>().sqrt();
        dense.norms.push(currents.iter().map(norm).sum::<f64>() / steps as f64);
        let counted = |step: &Vec<bool>| {
            step.iter().zip(&scale).map(|(&fired, &m)| if fired { m } else { 0.0 }).collect()
        };
        dense.values.push(spikes.iter().map(counted).collect());
        dense.spikes.push(spikes);
        dense.scales.push(scale);
    }
    dense
}

impl Dense {
    /// Gradient of the loss, in the order of the network's weights.
    pub fn gradient(&self, network: &Network, label: usize, mode: Gradient) -> Vec<f64> {
        let steps = self.values[0].len();
        let mut gradient = vec![0.0; network.weights.len()];
        // `upstream[step][neuron]` is the loss derivative of a layer's unmasked spikes.
        let mut upstream: Vec<Vec<f64>> = Vec::new();
        for (index, layer) in network.architecture.layers().iter().enumerate().rev() {
            let lambda = lambda(network, index);
            let decay = match mode {
                Gradient::Exact => lambda,
                Gradient::StraightThrough => 1.0,
            };
            let mut d = vec![vec![0.0f64; layer.output.neurons()]; steps];
            for n in 0..layer.output.neurons() {
                let fired = |t: usize| self.spikes[index][t][n];
                let (derivative, carry) = match layer.kind {
                    LayerKind::Pool => (1.0, 1.0),
                    LayerKind::Conv | LayerKind::Full => {
                        let times = (0..steps).filter(|&t| fired(t));
                        let f: f64 = times.clone().map(|t| lambda.powi((steps - 1 - t) as i32)).sum();
                        let factor = 1.0 + lambda.ln() * f / times.count() as f64;
                        (factor / f64::from(network.v_th()), decay)
                    }
                    LayerKind::Output => {
                        let error = self.prediction[n] - f64::from(u8::from(n == label));
                        for t in 0..steps {
                            d[t][n] = error / self.divisor * decay.powi((steps - 1 - t) as i32);
                        }
                        continue;
                    }
                };
                let mut later = 0.0;
                for t in (0..steps).rev() {
                    later = if fired(t) { derivative * upstream[t][n] } else { carry * later };
                    d[t][n] = later;
                }
            }
            if let Some(parameter) = layer.parameter {
                let parameter = &network.architecture.parameters()[parameter];
                let gradient = &mut gradient[parameter.offset..][..parameter.len];
                let rows = gradient.par_chunks_mut(parameter.fan_in).enumerate();
                rows.for_each(|(out, row)| {
                    add_weight_gradient(layer, out, &d, &self.values[index], row);
                });
            }
            if index > 0 {
                let back = |d: &Vec<f64>| {
                    let mut below = pull_back(layer, weights(network, layer), d);
                    below.iter_mut().zip(&self.scales[index - 1]).for_each(|(below, scale)| *below *= scale);
                    below
                };
                upstream = d.par_iter().map(back).collect();
            }
        }
        gradient
    }

    /// Number of additions, with one rounding each, on the way to one entry of each layer's gradient: the
    /// largest number of events of one of its inputs, and for each layer above, a neuron's fan-out and the
    /// operations of its decay and derivative.
    pub fn roundings(&self, network: &Network) -> Vec<f64> {
        let layers = network.architecture.layers();
        let steps = self.values[0].len();
        let mut above = 0;
        let mut roundings = Vec::new();
        for (index, layer) in layers.iter().enumerate().rev() {
            above += 3 * steps;
            let shared = match layer.kind {
                LayerKind::Conv => layer.input.pixels(),
                LayerKind::Pool | LayerKind::Full | LayerKind::Output => 1,
            };
            let mut events = vec![0; layer.input.neurons() / shared];
            for (n, _) in
                self.values[index].iter().flat_map(|step| step.iter().enumerate().filter(|x| *x.1 != 0.0))
            {
                events[n / shared] += 1;
            }
            if layer.parameter.is_some() {
                roundings.push((above + events.iter().max().unwrap()) as f64);
            }
            above += match layer.kind {
                LayerKind::Conv => 9 * layer.output.channels,
                LayerKind::Pool => 1,
                LayerKind::Full | LayerKind::Output => layer.output.channels,
            };
        }
        roundings.reverse();
        roundings
    }
}
