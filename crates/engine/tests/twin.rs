//! Every kernel against a naive dense twin: the equations of SPEC sections 1 and 2, one neuron and step at a
//! time, with no lists, no bits and no vectors.
//!
//! Weights are multiples of 1/64, so that sums are exact in any order and a spike that differs is a fault, not
//! rounding.

use leaklab_engine::philox::{Purpose, Stream};
use leaklab_engine::*;

/// What the twin computes of one sample.
struct Twin {
    /// `[hidden layer][step][neuron]`.
    spikes: Vec<Vec<Vec<bool>>>,
    norms: Vec<f64>,
    signal: Vec<f64>,
    prediction: Vec<f64>,
    synops: Vec<u64>,
    gradient: Vec<f64>,
}

/// Connections of a layer: for each output neuron its `(input neuron, weight index)` pairs.
fn connections(layer: &Layer, offset: usize) -> Vec<Vec<(usize, usize)>> {
    let (i, o) = (layer.input, layer.output);
    match layer.kind {
        LayerKind::Full | LayerKind::Output => (0..o.channels)
            .map(|out| (0..i.neurons()).map(|n| (n, offset + out * i.neurons() + n)).collect())
            .collect(),
        LayerKind::Pool => (0..o.neurons())
            .map(|n| {
                let (c, y, x) = (n / o.pixels(), n % o.pixels() / o.width, n % o.width);
                let at = |dy, dx| (c * i.height + 2 * y + dy) * i.width + 2 * x + dx;
                [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(dy, dx)| (at(dy, dx), 0)).to_vec()
            })
            .collect(),
        LayerKind::Conv => (0..o.neurons())
            .map(|n| {
                let (out, y, x) = (n / o.pixels(), n % o.pixels() / o.width, n % o.width);
                let mut found = Vec::new();
                for c in 0..i.channels {
                    for (ky, kx) in (0..3).flat_map(|ky| (0..3).map(move |kx| (ky, kx))) {
                        let (v, u) = (y + ky, x + kx);
                        if (1..=i.height).contains(&v) && (1..=i.width).contains(&u) {
                            let input = (c * i.height + v - 1) * i.width + u - 1;
                            found.push((input, offset + (out * i.channels + c) * 9 + 3 * ky + kx));
                        }
                    }
                }
                found
            })
            .collect(),
    }
}

/// Runs one sample densely. `masks` are per hidden conv and fully connected layer, or empty.
fn twin(
    network: &Network,
    input: &[f32],
    steps: usize,
    label: usize,
    mode: Gradient,
    masks: &[Vec<f32>],
) -> Twin {
    let layers = network.architecture.layers();
    let (lambda, v_th) = (network.neuron.lambda(), network.neuron.v_th);
    let decay = if mode == Gradient::Exact { lambda } else { 1.0 };
    let wiring: Vec<_> = layers
        .iter()
        .map(|l| connections(l, l.parameter.map_or(0, |p| network.architecture.parameters()[p].offset)))
        .collect();
    let pixels = input.len() / steps;
    // `values[layer][step][neuron]`: what goes into each layer, masked.
    let mut values = vec![(0..steps).map(|t| input[t * pixels..][..pixels].to_vec()).collect::<Vec<_>>()];
    let mut result = Twin {
        spikes: Vec::new(),
        norms: Vec::new(),
        signal: Vec::new(),
        prediction: Vec::new(),
        synops: Vec::new(),
        gradient: vec![0.0; network.weights.len()],
    };
    let mut scales: Vec<Vec<f32>> = Vec::new();
    let mut mask = masks.iter();
    for (layer, wires) in layers.iter().zip(&wiring) {
        let inputs = values.last().unwrap();
        let weight = |index: usize| if layer.kind == LayerKind::Pool { 0.25 } else { network.weights[index] };
        let mut potential = vec![0.0f32; wires.len()];
        let (mut fired, mut out) = (Vec::new(), Vec::new());
        let (mut norm, mut synops) = (0.0, 0);
        let scale = match layer.kind {
            LayerKind::Conv | LayerKind::Full => mask.next().cloned(),
            _ => None,
        };
        let scale = scale.unwrap_or_else(|| vec![1.0; wires.len()]);
        for step in inputs {
            let mut square = 0.0;
            let mut spikes = vec![false; wires.len()];
            for (n, wires) in wires.iter().enumerate() {
                let z: f64 = wires.iter().map(|&(i, w)| f64::from(weight(w)) * f64::from(step[i])).sum();
                synops += wires.iter().filter(|&&(i, _)| step[i] != 0.0).count() as u64;
                square += z * z;
                match layer.kind {
                    LayerKind::Output => {
                        potential[n] = lambda as f32 * potential[n] + z as f32;
                        result.signal.push(z);
                    }
                    LayerKind::Pool => {
                        potential[n] += z as f32;
                        spikes[n] = potential[n] > 0.75;
                    }
                    _ => {
                        potential[n] += z as f32;
                        spikes[n] = potential[n] > v_th;
                        if !spikes[n] {
                            potential[n] *= lambda as f32;
                        }
                    }
                }
                if spikes[n] {
                    potential[n] = 0.0;
                }
            }
            norm += square.sqrt() / steps as f64;
            out.push(spikes.iter().zip(&scale).map(|(&s, &m)| if s { m } else { 0.0 }).collect::<Vec<f32>>());
            fired.push(spikes);
        }
        if layer.kind != LayerKind::Pool {
            result.synops.push(synops);
        }
        if layer.kind == LayerKind::Output {
            result.prediction = potential.iter().map(|&u| f64::from(u) / steps as f64).collect();
        } else {
            result.norms.push(norm);
            result.spikes.push(fired);
            values.push(out);
            scales.push(scale);
        }
    }
    // Backward: `upstream[step][neuron]` is the loss derivative of a layer's unmasked spikes.
    let mut upstream: Vec<Vec<f64>> = Vec::new();
    for (index, (layer, wires)) in layers.iter().zip(&wiring).enumerate().rev() {
        let mut d = vec![vec![0.0f64; wires.len()]; steps];
        for n in 0..wires.len() {
            let fired = |t: usize| layer.kind != LayerKind::Output && result.spikes[index][t][n];
            let gamma = (0..steps).filter(|&t| fired(t)).count() as f64;
            let f: f64 = (0..steps).filter(|&t| fired(t)).map(|t| lambda.powi((steps - 1 - t) as i32)).sum();
            let derivative = match layer.kind {
                LayerKind::Pool => 1.0,
                _ => (1.0 + lambda.ln() * f / gamma) / f64::from(v_th),
            };
            let carry = if layer.kind == LayerKind::Pool { 1.0 } else { decay };
            let mut later = 0.0;
            for t in (0..steps).rev() {
                later = if layer.kind == LayerKind::Output {
                    let error = result.prediction[n] - f64::from(u8::from(n == label));
                    error / steps as f64 * decay.powi((steps - 1 - t) as i32)
                } else if fired(t) {
                    derivative * upstream[t][n]
                } else {
                    carry * later
                };
                d[t][n] = later;
            }
        }
        let inputs = &values[index];
        let mut below = vec![vec![0.0f64; layer.input.neurons()]; steps];
        for t in 0..steps {
            for (n, wires) in wires.iter().enumerate() {
                for &(i, w) in wires {
                    let weight =
                        if layer.kind == LayerKind::Pool { 0.25 } else { f64::from(network.weights[w]) };
                    if layer.kind != LayerKind::Pool {
                        result.gradient[w] += d[t][n] * f64::from(inputs[t][i]);
                    }
                    let scale = if index > 0 { f64::from(scales[index - 1][i]) } else { 1.0 };
                    below[t][i] += weight * d[t][n] * scale;
                }
            }
        }
        upstream = below;
    }
    result
}

/// Numbers of one random case.
struct Draw(Stream, usize);

impl Draw {
    fn uniform(&mut self) -> f32 {
        self.1 += 1;
        self.0.uniform_at(self.1)
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[(self.uniform() * choices.len() as f32) as usize]
    }
}

const NETWORKS: [&str; 13] = [
    "1x1x1-1FC-1o",
    "2x1x9-5C3-7C3-3o",
    "1x9x1-17C3-4FC-2o",
    "6x6-5C3-2P-7FC-3o",
    "5x5-33C3-16C3-2P-12C3-5o",
    "4x4x4-20C3-65C3-2P-33FC-17FC-20o",
    "1x2x3-3FC-70FC-3o",
    "7x3x5-130C3-9C3-2s-4o",
    "2x7x5-64C3-2P-6C3-10o",
    "2x4x5-100C3-70C3-2P-3o",
    "1x8x8-16C3-32C3-2P-40FC-10o",
    "3x10x4-6C3-6C3-6C3-2P-2P-3o",
    "40x3x3-8C3-3o",
];

#[test]
fn networks_agree_with_the_dense_twin() {
    let scratch = Scratch::default(); // one for all: the next case finds it dirty
    for case in 0..65 {
        let mut draw = Draw(Stream::new(11, Purpose::Benchmark, 0, case), 0);
        let notation = NETWORKS[case as usize % NETWORKS.len()];
        let architecture = Architecture::parse(notation).unwrap();
        let tau = draw.pick(&[f64::INFINITY, 30.0, 5.0, 100.0]);
        let v_th = draw.pick(&[1.0, 0.5]);
        let mut network = Network::new(architecture, Neuron::new(tau, v_th).unwrap());
        for parameter in network.architecture.parameters().to_vec() {
            let size = 128.0 / (parameter.fan_in as f32).sqrt();
            for w in &mut network.weights[parameter.offset..][..parameter.len] {
                *w = ((2.0 * draw.uniform() - 0.8) * size).round() / 64.0;
            }
        }
        let steps = draw.pick(&[1, 2, 7, 20, 33]);
        let samples = draw.pick(&[1, 3, 5]);
        let mode = draw.pick(&[Gradient::StraightThrough, Gradient::Exact]);
        let (rate, real) = (draw.pick(&[0.0, 0.1, 0.5, 1.0]), draw.pick(&[false, false, true]));
        let shape = network.architecture.input();
        let inputs: Vec<Vec<f32>> = (0..samples)
            .map(|_| {
                // Images of either kind may meet in one group.
                let real = real && draw.uniform() < 0.7;
                let value = |draw: &mut Draw| match (draw.uniform() < rate, real) {
                    (false, _) => 0.0,
                    (true, false) => draw.pick(&[1.0, -1.0]),
                    (true, true) => (16.0 * draw.uniform() - 6.0).round() / 8.0,
                };
                (0..steps * shape.neurons()).map(|_| value(&mut draw)).collect()
            })
            .collect();
        let hidden: Vec<usize> = network
            .architecture
            .hidden()
            .iter()
            .filter(|l| l.kind != LayerKind::Pool)
            .map(|l| l.output.neurons())
            .collect();
        let dropout = draw.pick(&[false, true]);
        let masks: Vec<Vec<Vec<f32>>> = (0..samples)
            .map(|_| {
                let mask = |draw: &mut Draw, n: usize| (0..n).map(|_| draw.pick(&[0.0, 2.0, 2.0])).collect();
                hidden
                    .iter()
                    .map(|&n| mask(&mut draw, n))
                    .take(if dropout { usize::MAX } else { 0 })
                    .collect()
            })
            .collect();
        let labels: Vec<usize> = (0..samples).map(|i| i % network.architecture.classes()).collect();
        let twins: Vec<Twin> =
            (0..samples).map(|i| twin(&network, &inputs[i], steps, labels[i], mode, &masks[i])).collect();
        for isa in Isa::available() {
            let packed = Packed::new(&network, isa).unwrap();
            let mut gradient = vec![f32::NAN; network.weights.len()];
            let prepare = |i: usize, input: &mut Input, sample_masks: &mut Masks| {
                *input = Input::from_values(shape, steps, &inputs[i]);
                let views: Vec<&[f32]> = masks[i].iter().map(Vec::as_slice).collect();
                *sample_masks = match dropout {
                    true => Masks::from_values(&views, &network.architecture).unwrap(),
                    false => Masks::none(),
                };
                labels[i]
            };
            let measure = |_: usize, trace: &Trace| trace.clone();
            let traces =
                train_batch(&packed, steps, samples, mode, &scratch, prepare, measure, &mut gradient)
                    .unwrap();
            let name =
                format!("case {case}: {notation} {isa} tau {tau} T {steps} real {real} dropout {dropout}");
            for (trace, twin) in traces.iter().zip(&twins) {
                for (layer, expected) in twin.spikes.iter().enumerate() {
                    let spikes = trace.spikes(layer);
                    for (t, expected) in expected.iter().enumerate() {
                        for (n, &expected) in expected.iter().enumerate() {
                            let (channel, pixel) = (n / spikes.pixels(), n % spikes.pixels());
                            assert_eq!(
                                spikes.get(pixel, t, channel),
                                expected,
                                "{name}: layer {layer} step {t}"
                            );
                        }
                    }
                }
                assert_eq!(trace.synops(), twin.synops, "{name}");
                for (found, expected) in trace.weighted_input_norms().iter().zip(&twin.norms) {
                    assert!(
                        (found - expected).abs() <= 1e-5 * (1.0 + expected),
                        "{name}: {found} {expected}"
                    );
                }
                close(&name, "signal", trace.signal(), &twin.signal);
                close(&name, "prediction", trace.prediction(), &twin.prediction);
            }
            let mean: Vec<f64> = (0..network.weights.len())
                .map(|w| twins.iter().map(|t| t.gradient[w]).sum::<f64>() / samples as f64)
                .collect();
            close(&name, "gradient", &gradient, &mean);
        }
    }
}

/// Float32 sums of at most a few thousand terms: within 1e-4 of the largest.
fn close(name: &str, what: &str, found: &[f32], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{name}: {what}");
    let largest = expected.iter().fold(1e-12f64, |m, x| m.max(x.abs()));
    for (i, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let difference = (f64::from(found) - expected).abs() / largest;
        assert!(difference <= 1e-4, "{name}: {what} {i} is {found}, not {expected}");
    }
}

/// Ten training steps on 1, 2 and 3 threads, packed anew or in place: the same bits.
#[test]
fn results_do_not_depend_on_threads() {
    let architecture = Architecture::parse("2x9x9-20C3-17C3-2P-40FC-5o").unwrap();
    let start = Network::initialised(architecture, Neuron::new(20.0, 1.0).unwrap(), 5);
    let shape = start.architecture.input();
    let (steps, samples) = (12, 75);
    let train = |threads: usize, in_place: bool| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut network = start.clone();
            let mut state = Optimiser::SGD.start(network.weights.len());
            let mut gradient = vec![0.0; network.weights.len()];
            let scratch = Scratch::default();
            let mut predictions = Vec::new();
            let mut packed = Packed::new(&network, Isa::best()).unwrap();
            for epoch in 0..10 {
                if in_place {
                    packed.update(&network).unwrap();
                } else {
                    packed = Packed::new(&network, Isa::best()).unwrap();
                }
                let prepare = |i: usize, input: &mut Input, masks: &mut Masks| {
                    let image: Vec<f32> = {
                        let stream = Stream::new(3, Purpose::Benchmark, 0, i as u32);
                        (0..shape.neurons()).map(|p| 2.0 * stream.uniform_at(p) - 1.0).collect()
                    };
                    let encoding = encode::Encoding::clean(steps);
                    encode::encode(&image, shape, &encoding, 3, epoch, i as u32, input);
                    masks.draw(0.2, 3, epoch, i as u32, &start.architecture);
                    i % 5
                };
                let mode = Gradient::StraightThrough;
                let measure = |_: usize, trace: &Trace| trace.prediction().to_vec();
                predictions =
                    train_batch(&packed, steps, samples, mode, &scratch, prepare, measure, &mut gradient)
                        .unwrap();
                Optimiser::SGD.step(&mut network.weights, &gradient, &mut state, 0.1);
            }
            (network.weights, predictions)
        })
    };
    let one = train(1, false);
    assert_ne!(one.0, start.weights);
    assert!(one == train(1, true), "packed in place differs from packed anew");
    assert!(one == train(2, true), "2 threads differ from 1");
    assert!(one == train(3, true), "3 threads differ from 1");
}

#[test]
fn bad_samples_are_named() {
    let architecture = Architecture::parse("1x2x2-3FC-2o").unwrap();
    let mut network = Network::initialised(architecture, Neuron::new(20.0, 1.0).unwrap(), 5);
    let mut packed = Packed::new(&network, Isa::best()).unwrap();
    let shape = network.architecture.input();
    let run = |label: usize, steps: usize, values: Vec<f32>, shape: Shape| {
        let mut gradient = vec![0.0; network.weights.len()];
        let prepare = |_: usize, input: &mut Input, _: &mut Masks| {
            *input = Input::from_values(shape, values.len() / shape.neurons(), &values);
            label
        };
        let mode = Gradient::StraightThrough;
        let outcome =
            train_batch(&packed, steps, 1, mode, &Scratch::default(), prepare, |_, _| (), &mut gradient);
        outcome.err().map(|e| e.to_string())
    };
    assert_eq!(run(1, 2, vec![1.0; 8], shape), None);
    assert!(run(2, 2, vec![1.0; 8], shape).unwrap().contains("sample 0: label 2 is out of range"));
    assert!(run(0, 3, vec![1.0; 8], shape).unwrap().contains("2 time steps"));
    let flat = Shape { channels: 1, height: 1, width: 4 };
    assert!(run(0, 2, vec![1.0; 8], flat).unwrap().contains("the network takes"));
    let mut values = vec![0.5; 8];
    values[5] = f32::NAN;
    assert!(run(0, 2, values, shape).unwrap().contains("NaN at element 5"));
    network.weights[13] = f32::INFINITY;
    assert!(Packed::new(&network, Isa::best()).unwrap_err().to_string().contains("'fc2'"));
    assert!(packed.update(&network).unwrap_err().to_string().contains("'fc2'"));
}
