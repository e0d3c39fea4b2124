//! NeuroBench's neuron operations: the cost of the neurons themselves, in addition to that of their synapses.
//!
//! NeuroBench counts an update of a neuron at every step at which its membrane potential changes, and always
//! at the first step. An update of a leaky neuron counts as [`OPERATIONS`]. A potential changes when a spike
//! arrives and, in a neuron with leak, at every step at which it is not zero. Leak can therefore have a cost
//! that synaptic operations do not show: a neuron without leak is idle between its inputs, a leaky one is
//! not.
//!
//! Which potentials change follows from the spikes alone: an input moves a potential away from zero, and a
//! spike resets it to zero. Potentials that stay equal because weighted inputs cancel exactly are counted as
//! changed.

use leaklab_engine::{Input, Layer, LayerKind, Network, Spikes, Trace};

/// Operations of one update of a leaky neuron that is reset to zero, by NeuroBench's table.
pub const OPERATIONS: u64 = 4;

/// Updates of all spiking neurons for one image, pools included.
pub fn count(network: &Network, trace: &Trace) -> u64 {
    let hidden = network.architecture.hidden().iter().enumerate();
    let updates = hidden.map(|(index, layer)| {
        let leaks = network.neuron(index).is_some_and(|neuron| neuron.tau.leaks());
        let fired = trace.spikes(index);
        match layer.kind {
            LayerKind::Conv | LayerKind::Full | LayerKind::Output => {
                let reached = reached(layer, &active(trace, index, layer));
                let every = |pixel: usize, step: usize, _: usize| {
                    if reached[pixel * trace.steps() + step] { !0 } else { 0 }
                };
                of_layer(fired, leaks, every)
            }
            LayerKind::Pool => {
                let (input, width) = (trace.spikes(index - 1), layer.input.width);
                let any = |pixel: usize, step: usize, word: usize| {
                    let columns = layer.output.width;
                    let corner = 2 * (pixel / columns) * width + 2 * (pixel % columns);
                    let pixels = [corner, corner + 1, corner + width, corner + width + 1];
                    pixels.iter().fold(0, |all, &pixel| all | input.at(pixel, step)[word])
                };
                of_layer(fired, leaks, any)
            }
        }
    });
    updates.sum()
}

/// Updates of all spiking neurons if each were updated at every step.
pub fn dense(network: &Network, steps: usize) -> u64 {
    let neurons: usize = network.architecture.hidden().iter().map(|layer| layer.output.neurons()).sum();
    (neurons * steps) as u64
}

/// Whether any input in a pixel is not zero, `[pixel][step]`.
fn active(trace: &Trace, index: usize, layer: &Layer) -> Vec<bool> {
    let (pixels, steps) = (layer.input.pixels(), trace.steps());
    let any = |spikes: &Spikes, pixel: usize, step: usize| spikes.at(pixel, step).iter().any(|&w| w != 0);
    let of_spikes = |spikes: &Spikes| {
        // The input of a fully connected layer is the output of a layer of pixels, or one pixel.
        let sites = (0..spikes.pixels()).flat_map(|pixel| (0..steps).map(move |step| (pixel, step)));
        sites.map(|(pixel, step)| any(spikes, pixel, step)).collect()
    };
    match (index, trace.input()) {
        (0, Input::Ternary { spikes, .. }) => of_spikes(spikes),
        (0, Input::Real { shape, values, .. }) => {
            let mut found = vec![false; pixels * steps];
            for (step, values) in values.chunks_exact(shape.neurons()).enumerate() {
                for (neuron, &x) in values.iter().enumerate() {
                    found[neuron % pixels * steps + step] |= x != 0.0;
                }
            }
            found
        }
        (_, Input::Ternary { .. } | Input::Real { .. }) => of_spikes(trace.spikes(index - 1)),
    }
}

/// Whether an input reaches the neurons of a pixel, `[pixel][step]`: from the 3x3 pixels around it in a
/// convolution, from anywhere in a fully connected layer.
fn reached(layer: &Layer, active: &[bool]) -> Vec<bool> {
    let (height, width) = (layer.input.height, layer.input.width);
    let steps = active.len() / (height * width);
    let mut out = vec![false; layer.output.pixels() * steps];
    for pixel in 0..height * width {
        let (row, column) = (pixel / width, pixel % width);
        for step in (0..steps).filter(|step| active[pixel * steps + step]) {
            if layer.kind == LayerKind::Conv {
                for r in row.saturating_sub(1)..(row + 2).min(height) {
                    for c in column.saturating_sub(1)..(column + 2).min(width) {
                        out[(r * width + c) * steps + step] = true;
                    }
                }
            } else {
                out[step] = true;
            }
        }
    }
    out
}

/// Updates of one layer, 64 channels at a time: `reached(pixel, step, word)` has a bit for each neuron that
/// an input reaches.
fn of_layer(fired: &Spikes, leaks: bool, reached: impl Fn(usize, usize, usize) -> u64) -> u64 {
    let mut updates = 0;
    for word in 0..fired.words_per_step() {
        let channels = (fired.channels() - 64 * word).min(64);
        let own = !0 >> (64 - channels);
        for pixel in 0..fired.pixels() {
            let mut zero = own;
            for step in 0..fired.steps() {
                let input = reached(pixel, step, word) & own;
                let after = fired.at(pixel, step)[word] | (zero & !input);
                let busy = if leaks { own } else { input };
                let changed = if step == 0 { own } else { busy & !(zero & after) };
                updates += u64::from(changed.count_ones());
                zero = after;
            }
        }
    }
    updates
}
