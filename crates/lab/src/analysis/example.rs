//! One image on its way through the network: which neurons fire when, and some membrane potentials.
//!
//! The engine stores only spikes. The potentials of a few neurons are recomputed here, in f64, from the
//! weights and the spikes that reached them, with the resets that took place.

use super::{AnalysisError, Analyst};
use crate::data::present::Scratch;
use crate::evaluate::EVALUATION_EPOCH;
use leaklab_engine::neuron::{readout, spiking};
use leaklab_engine::{Input, Layer, LayerKind, Network, Spikes, Trace, infer};
use leaklab_record::tables::{ImageRow, MembraneRow, RasterRow};
use leaklab_record::{Rows, Table};

/// The test image that is shown: the same for every run, so that runs can be compared.
const IMAGE: usize = 0;
/// Neurons of each layer in the raster, evenly spaced.
const RASTER_NEURONS: usize = 48;
/// Neurons of each hidden layer whose membrane is shown.
const MEMBRANES: usize = 2;
/// Those whose rate is nearest to one spike in this many steps are shown: they fire often enough to see
/// spikes, and rarely enough to see leak.
const STEPS_PER_SPIKE: usize = 8;

/// The tables `raster`, `membrane` and `example_image`.
pub(super) fn tables(analyst: &Analyst) -> Result<Vec<Table>, AnalysisError> {
    let split = &analyst.dataset.test;
    let (network, steps) = (&analyst.run.network, analyst.run.config.time_steps);
    let show = |_: usize, input: &mut Input| {
        analyst.presentation.show(split, IMAGE, EVALUATION_EPOCH, &mut Scratch::default(), input);
    };
    let drawn = analyst.pool.install(|| {
        infer(&analyst.packed, steps, 1, &analyst.workspaces, show, |_, trace| {
            (raster(network, trace), membranes(network, trace), trace.class())
        })
    })?;
    let Some((raster, membranes, class)) = drawn.into_iter().next() else { return Ok(Vec::new()) };
    let name = |class: usize| analyst.dataset.class_names.get(class).map_or("?", String::as_str);
    let which = format!(
        "The first test sample, labelled {}, classified as {}.",
        name(split.label(IMAGE)),
        name(class)
    );
    let tables = [
        raster_table(raster, &which).table(),
        membrane_table(membranes, &which).table(),
        image_table(analyst, &which).table(),
    ];
    Ok(tables.into())
}

/// Every spike of the chosen neurons. Neurons are numbered `[channel][row][column]`.
fn raster(network: &Network, trace: &Trace) -> Vec<RasterRow> {
    let mut found = Vec::new();
    let mut layer = |name: &str, neurons: usize, value: &dyn Fn(usize, usize) -> f64| {
        let shown = neurons.min(RASTER_NEURONS);
        for neuron in (0..shown).map(|i| i * neurons / shown.max(1)) {
            let spikes =
                (0..trace.steps()).map(|step| (step, value(neuron, step))).filter(|spike| spike.1 != 0.0);
            found.extend(spikes.map(|(step, value)| RasterRow {
                layer: name.to_owned(),
                neuron: neuron as u64,
                step: step as u64 + 1,
                positive: value > 0.0,
            }));
        }
    };
    let input = trace.input();
    layer("input", input.shape().neurons(), &|neuron, step| input_value(input, neuron, step));
    for (i, hidden) in network.architecture.hidden().iter().enumerate() {
        let (spikes, pixels) = (trace.spikes(i), hidden.output.pixels());
        layer(&hidden.name, hidden.output.neurons(), &|neuron, step| {
            f64::from(u8::from(spikes.get(neuron % pixels, step, neuron / pixels)))
        });
    }
    found
}

fn input_value(input: &Input, neuron: usize, step: usize) -> f64 {
    let shape = input.shape();
    let (channel, pixel) = (neuron / shape.pixels(), neuron % shape.pixels());
    match input {
        Input::Ternary { spikes, .. } => {
            f64::from(u8::from(spikes.get(pixel, step, channel)))
                - f64::from(u8::from(spikes.get(pixel, step, shape.channels + channel)))
        }
        Input::Real { values, .. } => f64::from(values[step * shape.neurons() + neuron]),
    }
}

/// The value that a layer's input neuron had at a step: the network's input, or a spike of the previous
/// layer.
fn input_of(trace: &Trace, layer: usize, shape_pixels: usize, neuron: usize, step: usize) -> f64 {
    if layer == 0 {
        return input_value(trace.input(), neuron, step);
    }
    let fired = trace.spikes(layer - 1).get(neuron % shape_pixels, step, neuron / shape_pixels);
    f64::from(u8::from(fired))
}

/// The synapses of one neuron of a conv or fully connected layer: `(input neuron, weight)`.
fn synapses(network: &Network, layer: &Layer, neuron: usize) -> Vec<(usize, f64)> {
    let weights = network.tensor(&layer.name).unwrap_or_default();
    let input = layer.input;
    if layer.kind != LayerKind::Conv {
        let row = &weights[neuron * input.neurons()..][..input.neurons()];
        return row.iter().enumerate().map(|(i, &w)| (i, f64::from(w))).collect();
    }
    let (channel, pixel) = (neuron / layer.output.pixels(), neuron % layer.output.pixels());
    let (row, column) = (pixel / input.width, pixel % input.width);
    let mut found = Vec::new();
    for from in 0..input.channels {
        for tap in 0..9 {
            // Cross-correlation with zero padding 1: tap (i, j) reads (row + i - 1, column + j - 1).
            let (r, c) = ((row + tap / 3).wrapping_sub(1), (column + tap % 3).wrapping_sub(1));
            if r < input.height && c < input.width {
                let weight = weights[(channel * input.channels + from) * 9 + tap];
                found.push((from * input.pixels() + r * input.width + c, f64::from(weight)));
            }
        }
    }
    found
}

/// The potential of a neuron at every step, after its input and before the threshold is applied.
///
/// The equations are in `leaklab_engine::neuron`: `spiking::replay` for hidden layers, `readout::replay` for
/// the output.
pub fn potential(network: &Network, trace: &Trace, layer: usize, neuron: usize) -> Vec<f64> {
    let shape = &network.architecture.layers()[layer];
    let Some(constants) = network.neuron(layer) else { return Vec::new() };
    let synapses = synapses(network, shape, neuron);
    let pixels = shape.output.pixels();
    let weighted = (0..trace.steps()).map(|step| {
        let of = |&(from, weight): &(usize, f64)| {
            weight * input_of(trace, layer, shape.input.pixels(), from, step)
        };
        synapses.iter().map(of).sum::<f64>()
    });
    match shape.kind {
        LayerKind::Output => readout::replay(constants.tau, weighted),
        LayerKind::Conv | LayerKind::Full | LayerKind::Pool => {
            let fired = (0..trace.steps())
                .map(|step| trace.spikes(layer).get(neuron % pixels, step, neuron / pixels));
            spiking::replay(constants, weighted.zip(fired))
        }
    }
}

/// The potentials of all neurons of a layer, `[step][neuron]`: [`potential`] for each, computed together from
/// the inputs that are not zero. `each_step` is called before each step; it may unwind to stop the work.
pub fn potentials(network: &Network, trace: &Trace, layer: usize, each_step: impl Fn()) -> Vec<f64> {
    let shape = &network.architecture.layers()[layer];
    let Some(constants) = network.neuron(layer) else { return Vec::new() };
    let (neurons, pixels, steps) = (shape.output.neurons(), shape.output.pixels(), trace.steps());
    let mut values = vec![0.0; steps * neurons];
    let weights = by_input(network, shape);
    let (mut inputs, mut sums) = (Vec::new(), vec![0.0; neurons]);
    for (step, weighted) in values.chunks_exact_mut(neurons).enumerate() {
        each_step();
        inputs.clear();
        if layer == 0 {
            let all = (0..shape.input.neurons()).map(|from| (from, input_value(trace.input(), from, step)));
            inputs.extend(all.filter(|input| input.1 != 0.0));
        } else {
            add_spikes(trace.spikes(layer - 1), shape.input.pixels(), step, &mut inputs);
        }
        sums.fill(0.0);
        add_weighted(&weights, shape, &inputs, &mut sums);
        for (i, sum) in sums.iter().enumerate() {
            weighted[i % shape.output.channels * pixels + i / shape.output.channels] = *sum;
        }
    }
    for neuron in 0..neurons {
        let weighted = (0..steps).map(|step| values[step * neurons + neuron]);
        let replayed = match shape.kind {
            LayerKind::Output => readout::replay(constants.tau, weighted),
            LayerKind::Conv | LayerKind::Full | LayerKind::Pool => {
                let spikes = trace.spikes(layer);
                let fired = (0..steps).map(|step| spikes.get(neuron % pixels, step, neuron / pixels));
                spiking::replay(constants, weighted.zip(fired))
            }
        };
        for (step, potential) in replayed.into_iter().enumerate() {
            values[step * neurons + neuron] = potential;
        }
    }
    values
}

/// Adds the spikes of a step as inputs of the next layer, in the order of the neurons.
fn add_spikes(spikes: &Spikes, pixels: usize, step: usize, inputs: &mut Vec<(usize, f64)>) {
    for pixel in 0..pixels {
        for (word, &bits) in spikes.at(pixel, step).iter().enumerate() {
            let mut bits = bits;
            while bits != 0 {
                inputs.push(((64 * word + bits.trailing_zeros() as usize) * pixels + pixel, 1.0));
                bits &= bits - 1;
            }
        }
    }
    inputs.sort_unstable_by_key(|input| input.0);
}

/// The weights of a layer, `[input channel][tap][output channel]`; the channels of a fully connected layer's
/// input are its input neurons, and it has one tap.
fn by_input(network: &Network, layer: &Layer) -> Vec<f64> {
    let weights = network.tensor(&layer.name).unwrap_or_default();
    let outputs = layer.output.channels;
    let row = weights.len() / outputs;
    (0..weights.len()).map(|i| f64::from(weights[i % outputs * row + i / outputs])).collect()
}

/// Adds the weighted inputs of a step to the neurons of a layer, `[pixel][channel]`. Each neuron's inputs are
/// added in the order of [`synapses`].
fn add_weighted(weights: &[f64], layer: &Layer, inputs: &[(usize, f64)], sums: &mut [f64]) {
    let (input, outputs) = (layer.input, layer.output.channels);
    let mut add = |pixel: usize, column: usize, value: f64| {
        let column = &weights[column * outputs..][..outputs];
        let sums = &mut sums[pixel * outputs..][..outputs];
        sums.iter_mut().zip(column).for_each(|(sum, weight)| *sum += weight * value);
    };
    for &(from, value) in inputs {
        if layer.kind != LayerKind::Conv {
            add(0, from, value);
            continue;
        }
        let (channel, pixel) = (from / input.pixels(), from % input.pixels());
        let (row, column) = (pixel / input.width, pixel % input.width);
        for tap in 0..9 {
            // Tap (i, j) of the neuron at (row - i + 1, column - j + 1) reads this input.
            let (r, c) = ((row + 1).wrapping_sub(tap / 3), (column + 1).wrapping_sub(tap % 3));
            if r < input.height && c < input.width {
                add(r * input.width + c, channel * 9 + tap, value);
            }
        }
    }
}

/// The potentials of a few neurons of each conv and FC layer, and of every output.
fn membranes(network: &Network, trace: &Trace) -> Vec<MembraneRow> {
    let mut found = Vec::new();
    for (i, layer) in network.architecture.layers().iter().enumerate() {
        let neurons: Vec<usize> = match layer.kind {
            LayerKind::Pool => continue,
            LayerKind::Output => (0..layer.output.neurons()).collect(),
            LayerKind::Conv | LayerKind::Full => {
                let wanted = (trace.steps() / STEPS_PER_SPIKE).max(1) as u32;
                let counts = trace.spike_counts(i).into_iter().enumerate();
                let mut order: Vec<(u32, usize)> =
                    counts.map(|(neuron, n)| (n.abs_diff(wanted), neuron)).collect();
                order.sort_unstable();
                order.into_iter().take(MEMBRANES).map(|(_, neuron)| neuron).collect()
            }
        };
        let pixels = layer.output.pixels();
        for neuron in neurons {
            let potentials = potential(network, trace, i, neuron).into_iter().enumerate();
            found.extend(potentials.filter(|(_, u)| u.is_finite()).map(|(step, potential)| MembraneRow {
                layer: layer.name.clone(),
                neuron: neuron as u64,
                step: step as u64 + 1,
                potential,
                fired: layer.kind != LayerKind::Output
                    && trace.spikes(i).get(neuron % pixels, step, neuron / pixels),
            }));
        }
    }
    found
}

fn raster_table(rows: Vec<RasterRow>, which: &str) -> Rows<RasterRow> {
    let definition = format!(
        "Each row is a spike, for at most {RASTER_NEURONS} neurons of each layer, evenly spaced. {which}"
    );
    Rows { rows, ..Rows::new("Spikes of one sample", definition) }
}

fn membrane_table(rows: Vec<MembraneRow>, which: &str) -> Rows<MembraneRow> {
    let definition = format!(
        "Potential after the step's input and before the threshold is applied, of {MEMBRANES} neurons of \
         each layer (those whose rate is nearest to one spike in {STEPS_PER_SPIKE} steps), and of every \
         output neuron. {which}"
    );
    Rows { rows, ..Rows::new("Membrane potentials of one sample", definition) }
}

fn image_table(analyst: &Analyst, which: &str) -> Rows<ImageRow> {
    let (shape, split) = (analyst.dataset.shape, &analyst.dataset.test);
    let (what, pixels) = match split.recordings() {
        None => ("Pixels as stored, 0 to 255.", split.image(IMAGE).to_vec()),
        Some(recordings) => {
            let mut counts = vec![0u8; shape.neurons()];
            for (_, neuron) in recordings.recording(IMAGE) {
                counts[neuron] = counts[neuron].saturating_add(1);
            }
            ("Spikes of each pixel and polarity in the recording, at most 255.", counts)
        }
    };
    let mut table = Rows::new("The example sample", format!("{what} {which}"));
    for (i, &pixel) in pixels.iter().enumerate() {
        let (channel, place) = (i / shape.pixels(), i % shape.pixels());
        let [channel, row, column] = [channel, place / shape.width, place % shape.width].map(|n| n as u64);
        table.rows.push(ImageRow { channel, row, column, pixel: u64::from(pixel) });
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use leaklab_engine::{Architecture, Isa, Leak, Packed, Scratch, Tau};

    #[test]
    fn the_potentials_of_a_layer_are_those_of_its_neurons() {
        let architecture = Architecture::parse("2x5x4-70C3-3C3-2P-6FC-3o").unwrap();
        let leak = Leak::uniform(Tau::new(7.0).unwrap());
        let network = Network::initialised(architecture, leak, 0.3, 5).unwrap();
        let packed = Packed::new(&network, Isa::best()).unwrap();
        let steps = 9;
        // Ternary spikes, then real values.
        for spread in [1.0, 0.7] {
            let value = |i: usize| ((i * i + 3 * i) % 7 % 3) as f32 * spread - spread;
            let values: Vec<f32> = (0..steps * 40).map(value).collect();
            let show = |_: usize, input: &mut Input| {
                *input = Input::from_values(network.architecture.input(), steps, &values);
            };
            infer(&packed, steps, 1, &Scratch::default(), show, |_, trace| {
                for (i, layer) in network.architecture.layers().iter().enumerate() {
                    let (neurons, together) = (layer.output.neurons(), potentials(&network, trace, i, || ()));
                    if layer.kind == LayerKind::Pool {
                        continue;
                    }
                    assert!(together.iter().any(|u| *u != 0.0), "{}", layer.name);
                    for neuron in 0..neurons {
                        let one: Vec<f64> = together.iter().copied().skip(neuron).step_by(neurons).collect();
                        assert_eq!(one, potential(&network, trace, i, neuron), "{} {neuron}", layer.name);
                    }
                }
            })
            .unwrap();
        }
    }
}
