//! The backward pass: `d` of a chunk of outputs in frames, a tile of steps at a time, walked by the input's events.

use super::super::spike_derivatives;
use super::{Conv, ConvWorkspace};
use crate::events::{Events, Geometry};
use crate::simd::backward::{Cell, ConvWalk, ConvWeights};
use crate::simd::{Isa, Kernel, Row, Vector, dispatch};
use crate::spikes::Spikes;

/// Rows of `d` that are computed at a time: what the nearest cache holds.
const BLOCK_ROWS: usize = 512;

/// What the backward pass of a layer is given.
pub(crate) struct Upstream<'a> {
    /// Membrane decay per step of the forward pass, in full precision.
    pub lambda: f64,
    /// Threshold.
    pub v_th: f32,
    /// What the gradient takes the decay as (1 or lambda).
    pub decay: f32,
    /// What an input spike counts.
    pub scale: f32,
    /// The layer's own spikes.
    pub spikes: &'a Spikes,
    /// Those its mask lets through, as events.
    pub events: &'a Events,
    /// Loss derivative of each of them.
    pub gradient: &'a [f32],
}

/// The input of a convolution, as its backward pass needs it.
pub(crate) enum ConvEvents<'a> {
    /// Events, and where the derivative of each is written (nowhere in the first layer).
    Events(&'a Events, &'a mut [f32]),
    /// Real values `[step][channel][row][column]`.
    Real(&'a [f32]),
}

impl Conv {
    /// Adds the weights' gradient to `gradients` (packed) and writes the input events'.
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
        workspace.fired.resize(geometry.tile_steps * frame, 0);
        for chunk in 0..self.output.channels.div_ceil(16) {
            frames[margin..][..frame].fill(Row::ZERO); // the step after the last
            let gradients = &mut gradients[chunk * channels..][..channels];
            let weights = &self.walk[chunk * channels..][..channels];
            let derivatives = &workspace.derivatives[chunk * frame..][..frame];
            for tile in (0..geometry.tiles()).rev() {
                // The tile after left the `d` of its first step in the first frame.
                let (mut steps, block) = (geometry.steps_of(tile), (BLOCK_ROWS / frame).max(1));
                let mut rest = &mut frames[margin..][..steps * frame];
                rest.copy_within(..frame, (steps - 1) * frame);
                let mut later = None;
                while steps > 0 {
                    let first = steps.saturating_sub(block);
                    let (before, block) = rest.split_at_mut(first * frame);
                    let fired = &mut workspace.fired[..block.len()];
                    scatter(up, block, fired, chunk, tile, first..steps);
                    dispatch(isa, Carry { frames: block, fired, later, derivatives, decay: up.decay });
                    (rest, later, steps) = (before, Some(&block[..frame]), first);
                }
                match input {
                    ConvEvents::Events(events, target) => {
                        let geometry = events.geometry;
                        for window in 0..geometry.windows {
                            let first = geometry.list(tile, window, 0, 0);
                            let every = geometry.tile_steps;
                            let cell = Cell {
                                frames,
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

/// Writes the loss derivatives of a chunk's spikes in some steps of a tile to their frames, and to `fired` whose they
/// are, a bit per lane.
fn scatter(
    up: &Upstream,
    frames: &mut [Row],
    fired: &mut [u16],
    chunk: usize,
    tile: usize,
    steps: std::ops::Range<usize>,
) {
    fired.fill(0);
    let (events, geometry) = (up.events, up.events.geometry);
    let origin = steps.start * geometry.frame();
    for lane in 0..16.min(geometry.shape.channels - 16 * chunk) {
        for window in 0..geometry.windows {
            let list = geometry.list(tile, window, 16 * chunk + lane, 0);
            let [start, end] = [steps.start, steps.end].map(|step| events.offsets[list + step] as usize);
            for (&position, &gradient) in events.positions[start..end].iter().zip(&up.gradient[start..end]) {
                let at = usize::from(position) - origin;
                frames[at][lane] = gradient;
                fired[at] |= 1 << lane;
            }
        }
    }
}

/// Computes `d` of a tile's steps, last first: where a neuron fired, its spike derivative times the loss
/// derivative of the spike; where not, the decayed `d` of the step after.
///
/// A neuron's `d` is zero after its last spike, and a dropped neuron's always: neither needs an event.
struct Carry<'a> {
    /// Loss derivatives of the spikes, as [`scatter`] leaves them, to become `d`.
    frames: &'a mut [Row],
    /// Whose derivatives these are.
    fired: &'a [u16],
    /// `d` of the step after; where there is none, it stands in the last frame.
    later: Option<&'a [Row]>,
    /// Spike derivatives, one frame.
    derivatives: &'a [Row],
    decay: f32,
}

impl Kernel for Carry<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let frame = self.derivatives.len();
        let decay = V::splat(self.decay);
        let last = self.frames.len() - frame;
        for (i, derivative) in self.derivatives.iter().enumerate() {
            let derivative = V::load(derivative);
            let mut at = last + i;
            let mut d = V::load(self.later.map_or(&self.frames[at], |later| &later[i]));
            loop {
                let row = &mut self.frames[at];
                d = V::load(row).mul_or(self.fired[at], derivative, d.mul(decay));
                d.store(row);
                if at < frame {
                    break;
                }
                at -= frame;
            }
        }
    }
}

/// Gradient of the first layer's weights on real values.
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
