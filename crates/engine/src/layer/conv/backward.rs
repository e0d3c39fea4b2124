//! The backward pass of a convolution. For each chunk of outputs and each tile of steps, `d = dLoss/dU` is
//! stored in frames, and each input event reads the entries of `d` that it reached.

use super::{Conv, ConvWorkspace};
use crate::events::{Events, Geometry};
use crate::neuron::spiking::{Fade, spike_derivatives};
use crate::simd::backward::{Cell, ConvWalk, ConvWeights};
use crate::simd::{Isa, Kernel, Row, Vector, dispatch};
use crate::spikes::Spikes;

/// The input of a layer's backward pass.
pub(crate) struct Upstream<'a> {
    /// Membrane decay per step of the forward pass, in full precision.
    pub lambda: f64,
    /// Threshold.
    pub v_th: f32,
    /// Derivative of the decay that the gradient uses: 1 or lambda.
    pub decay: f32,
    /// Value of an input spike.
    pub scale: f32,
    /// The layer's own spikes.
    pub spikes: &'a Spikes,
    /// The spikes that its dropout mask keeps, as events.
    pub events: &'a Events,
    /// Loss derivative of each event.
    pub gradient: &'a [f32],
}

/// The input of a convolution, as its backward pass needs it.
pub(crate) enum ConvEvents<'a> {
    /// Events, and the array to which the derivative of each is written; it is empty in the first layer.
    Events(&'a Events, &'a mut [f32]),
    /// Real values `[step][channel][row][column]`.
    Real(&'a [f32]),
}

impl Conv {
    /// Adds the gradient of the weights to `gradients` (packed), and writes the gradient of the input events.
    pub fn backward(
        &self,
        isa: Isa,
        up: &Upstream,
        input: &mut ConvEvents,
        workspace: &mut ConvWorkspace,
        gradients: &mut [[Row; 9]],
    ) {
        let geometry = up.events.geometry;
        spike_derivatives(isa, up, &mut workspace.derivatives);
        let (stride, frame, channels) = (geometry.stride(), geometry.frame(), self.input.channels);
        let margin = stride + 1;
        let frames = &mut workspace.frames;
        frames.clear();
        frames.resize(geometry.tile_steps * frame + 2 * margin, Row::ZERO);
        for chunk in 0..self.output.channels.div_ceil(16) {
            frames[margin..][..frame].fill(Row::ZERO); // the step after the last
            let gradients = &mut gradients[chunk * channels..][..channels];
            let weights = &self.walk[chunk * channels..][..channels];
            let derivatives = &workspace.derivatives[chunk * frame..][..frame];
            for tile in (0..geometry.tiles()).rev() {
                // The tile after this one, which was processed before, left `d` of
                // its first step in the first frame.
                let steps = geometry.steps_of(tile);
                for step in (0..steps).rev() {
                    let later = (step + 1) % steps;
                    let frames = &mut frames[margin..][..steps * frame];
                    dispatch(isa, Fade { frames, frame, from: later, to: step, decay: up.decay });
                    scatter(up, &mut frames[step * frame..][..frame], derivatives, chunk, tile, step);
                }
                match input {
                    ConvEvents::Events(events, target) => {
                        let geometry = events.geometry;
                        for window in 0..geometry.windows {
                            let first = geometry.list(tile, window, 0, 0);
                            let every = geometry.tile_steps;
                            let cell = Cell {
                                frames: &frames[geometry.origin(window)..],
                                stride,
                                offsets: &events.offsets[first..first + channels * every + 1],
                                every,
                                positions: &events.positions,
                            };
                            if target.is_empty() {
                                dispatch(isa, ConvWeights { cell, gradients });
                            } else {
                                let (events, first) = (&mut **target, chunk == 0);
                                dispatch(isa, ConvWalk { cell, weights, gradients, events, first });
                            }
                        }
                    }
                    ConvEvents::Real(values) => {
                        let gradients = &mut gradients[..self.real_channels()];
                        dispatch(isa, RealWalk { geometry, gradients, frames, values, tile });
                    }
                }
            }
        }
    }
}

/// Writes `d` of the neurons of a chunk that fired at a step: the spike derivative times the loss derivative
/// of the spike.
///
/// `d` of a neuron is zero after its last spike, and `d` of a dropped neuron is
/// always zero, so neither needs an event.
fn scatter(up: &Upstream, d: &mut [Row], derivatives: &[Row], chunk: usize, tile: usize, step: usize) {
    let (events, geometry) = (up.events, up.events.geometry);
    for lane in 0..16.min(geometry.shape.channels - 16 * chunk) {
        for window in 0..geometry.windows {
            let d = &mut d[geometry.origin(window)..];
            let derivatives = &derivatives[geometry.origin(window)..];
            let range = events.range(tile, window, 16 * chunk + lane, step..step + 1);
            for (&position, &gradient) in events.positions[range.clone()].iter().zip(&up.gradient[range]) {
                let at = usize::from(position) - step * geometry.frame();
                d[at][lane] = derivatives[at][lane] * gradient;
            }
        }
    }
}

/// Computes the gradient of the first layer's weights for real-valued input.
struct RealWalk<'a> {
    geometry: Geometry,
    gradients: &'a mut [[Row; 9]],
    frames: &'a [Row],
    values: &'a [f32],
    tile: usize,
}

impl Kernel for RealWalk<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let Geometry { shape, tile_steps, .. } = self.geometry;
        let (stride, frame, pixels) = (self.geometry.stride(), self.geometry.frame(), shape.pixels());
        let channels = self.gradients.len();
        for (channel, gradients) in self.gradients.iter_mut().enumerate() {
            let mut sums: [V; 9] = std::array::from_fn(|j| V::load(&gradients[j]));
            for step in 0..self.geometry.steps_of(self.tile) {
                let plane = (self.tile * tile_steps + step) * channels + channel;
                for (pixel, &value) in self.values[plane * pixels..][..pixels].iter().enumerate() {
                    let position = step * frame + pixel / shape.width * stride + pixel % shape.width;
                    let value = V::splat(value);
                    for j in 0..9 {
                        let d = V::load(&self.frames[position + j / 3 * stride + j % 3]);
                        sums[j] = d.mul_add(value, sums[j]);
                    }
                }
            }
            for j in 0..9 {
                sums[j].store(&mut gradients[j]);
            }
        }
    }
}
