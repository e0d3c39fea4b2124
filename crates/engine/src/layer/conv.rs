//! 3x3 convolution of spiking neurons.
//!
//! Forward, the events of a pixel's nine neighbours are merged into one list per pixel and step, for blocks of 64
//! input channels; the lists of a strip of rows serve all output channels, and a tile of weights (one block,
//! one chunk of outputs) stays in the nearest cache while the strip is walked. Backward, see `simd::backward`.
//!
//! The first layer's ternary input comes as twice the channels, and its weights as `[W, -W]`: a spike of -1 is
//! an event like any other.

use super::{spike_derivatives, total_squares};
use crate::events::{Compact, Events, Geometry};
use crate::simd::backward::ConvWalk;
use crate::simd::forward::{Append, ConvForward, Dynamics, ROW};
use crate::simd::{Isa, Kernel, Row, Vector, Work, dispatch, vectorise};
use crate::spikes::{Shape, Spikes};

/// Vectors of sixteen output channels that one forward chunk holds.
const N: usize = 2;

/// Pixels that a strip of rows should hold: enough to use a tile of weights many times.
const STRIP: usize = 32;

/// A packed convolution.
#[derive(Debug, Clone)]
pub(crate) struct Conv {
    /// Size of the input; twice the image's channels in the first layer.
    input: Shape,
    output: Shape,
    /// Whether the second half of the input channels are negative spikes.
    signed: bool,
    /// Forward tiles, `[chunk][block][tap * block size + channel, then a zero row][N]`, taps by columns.
    tiles: Vec<Row>,
    /// `[chunk of 16][input channel][9 taps, last first]`.
    walk: Vec<[Row; 9]>,
}

/// Buffers of a convolution; their content between calls does not matter.
#[derive(Debug, Default)]
pub(crate) struct ConvWorkspace {
    compact: Vec<Compact>,
    merged: Vec<Merged>,
    partial: Vec<Row>,
    squares: Vec<Row>,
    frames: Vec<Row>,
    derivatives: Vec<f32>,
}

/// Row numbers (times [`ROW`]) of each `[pixel of the strip][step]`, padded.
#[derive(Debug, Default)]
struct Merged {
    list: Vec<u16>,
    offsets: Vec<u32>,
    /// One output row's columns: the events of the three input rows, `[column][step]`.
    columns: Vec<u16>,
    column_offsets: Vec<u32>,
}

/// What comes into a convolution.
pub(crate) enum ConvInput<'a> {
    /// Spikes, of which `keep` lets some through.
    Spikes(&'a Spikes, Option<&'a [u64]>),
    /// Real values `[step][channel][row][column]`.
    Real(&'a [f32], usize),
}

impl Conv {
    /// Packs weights `[out, in, 3, 3]`.
    pub fn new(image: Shape, output: Shape, weights: &[f32], signed: bool) -> Self {
        let channels = image.channels * if signed { 2 } else { 1 };
        let input = Shape { channels, ..image };
        let mut conv = Conv { input, output, signed, tiles: Vec::new(), walk: Vec::new() };
        let (blocks, size) = (conv.blocks(), conv.block_size());
        conv.tiles = vec![Row::ZERO; output.channels.div_ceil(16 * N) * blocks * (9 * size + 1) * N];
        conv.walk = vec![[Row::ZERO; 9]; output.channels.div_ceil(16) * channels];
        conv.pack(weights);
        conv
    }

    fn blocks(&self) -> usize {
        self.input.channels.div_ceil(64)
    }

    fn block_size(&self) -> usize {
        self.input.channels.min(64)
    }

    /// Rows of one forward tile.
    fn tile_rows(&self) -> usize {
        9 * self.block_size() + 1
    }

    /// Entries of the packed gradient.
    pub fn gradient_len(&self) -> usize {
        self.walk.len()
    }

    fn pack(&mut self, weights: &[f32]) {
        let (blocks, size, rows) = (self.blocks(), self.block_size(), self.tile_rows());
        let real = self.input.channels / if self.signed { 2 } else { 1 };
        for out in 0..self.output.channels {
            for channel in 0..self.input.channels {
                let sign = if channel < real { 1.0 } else { -1.0 };
                let source = &weights[(out * real + channel % real) * 9..][..9];
                let walk = &mut self.walk[out / 16 * self.input.channels + channel];
                let tile = (out / (16 * N) * blocks + channel / 64) * rows;
                for (tap, &weight) in source.iter().enumerate() {
                    walk[8 - tap][out % 16] = sign * weight;
                    let row = tile + (tap % 3 * 3 + tap / 3) * size + channel % 64;
                    self.tiles[row * N + out / 16 % N][out % 16] = sign * weight;
                }
            }
        }
    }

    /// Adds a packed gradient to one in the order `[out, in, 3, 3]`.
    pub fn unpack(&self, packed: &[[Row; 9]], gradient: &mut [f32]) {
        let real = self.input.channels / if self.signed { 2 } else { 1 };
        for (index, target) in gradient.chunks_exact_mut(9).enumerate() {
            let (out, channel) = (index / real, index % real);
            let row = out / 16 * self.input.channels + channel;
            for (tap, value) in target.iter_mut().enumerate() {
                *value += packed[row][8 - tap][out % 16];
                if self.signed {
                    *value -= packed[row + real][8 - tap][out % 16];
                }
            }
        }
    }

    /// All steps of the layer: spikes to `out`, sums of squared weighted inputs to `squares`.
    pub fn forward(
        &self,
        isa: Isa,
        dynamics: Dynamics,
        input: &ConvInput,
        workspace: &mut ConvWorkspace,
        out: &mut Spikes,
        squares: &mut Vec<f64>,
    ) {
        let steps = match input {
            ConvInput::Spikes(spikes, _) => spikes.steps(),
            ConvInput::Real(_, steps) => *steps,
        };
        out.reset(self.output.pixels(), steps, self.output.channels);
        workspace.squares.clear();
        workspace.squares.resize(steps, Row::ZERO);
        match *input {
            ConvInput::Spikes(spikes, keep) => {
                self.forward_spikes(isa, dynamics, spikes, keep, workspace, out)
            }
            ConvInput::Real(values, steps) => {
                let squares = &mut workspace.squares;
                dispatch(isa, RealForward { conv: self, dynamics, values, steps, squares, out });
            }
        }
        total_squares(&workspace.squares, squares);
    }

    fn forward_spikes(
        &self,
        isa: Isa,
        dynamics: Dynamics,
        spikes: &Spikes,
        keep: Option<&[u64]>,
        workspace: &mut ConvWorkspace,
        out: &mut Spikes,
    ) {
        let (blocks, steps, width) = (self.blocks(), spikes.steps(), self.output.width);
        workspace.compact.resize_with(blocks.max(workspace.compact.len()), Compact::default);
        workspace.merged.resize_with(blocks.max(workspace.merged.len()), Merged::default);
        for (block, compact) in workspace.compact[..blocks].iter_mut().enumerate() {
            compact.build(isa, spikes, keep, block);
        }
        let strip = (STRIP / width).max(1);
        let words_per_step = out.words_per_step();
        for top in (0..self.output.height).step_by(strip) {
            let rows = top..self.output.height.min(top + strip);
            let pixels = rows.len() * width;
            for (compact, merged) in workspace.compact.iter().zip(&mut workspace.merged).take(blocks) {
                let (shape, size) = (self.input, self.block_size());
                dispatch(isa, Merge { compact, merged, shape, steps, size, rows: rows.clone() });
            }
            if blocks > 1 {
                workspace.partial.resize((pixels * steps * N).max(workspace.partial.len()), Row::ZERO);
            }
            let per_pixel = steps * words_per_step;
            let words = &mut out.words_mut()[top * width * per_pixel..][..pixels * per_pixel];
            for chunk in 0..self.output.channels.div_ceil(16 * N) {
                for (block, merged) in workspace.merged[..blocks].iter().enumerate() {
                    let tile = (chunk * blocks + block) * self.tile_rows() * N;
                    let kernel = ConvForward::<N> {
                        rows: &self.tiles[tile..tile + self.tile_rows() * N],
                        list: &merged.list,
                        offsets: &merged.offsets,
                        steps,
                        partial: &mut workspace.partial,
                        first: block == 0,
                        last: block + 1 == blocks,
                        dynamics,
                        squares: &mut workspace.squares,
                        words,
                        words_per_step,
                        chunk,
                    };
                    dispatch(isa, kernel);
                }
            }
        }
    }
}

/// Merges the lists of each output pixel's neighbours, first down the columns, then across: every column
/// serves three pixels.
struct Merge<'a> {
    compact: &'a Compact,
    merged: &'a mut Merged,
    shape: Shape,
    steps: usize,
    /// Channels of a block.
    size: usize,
    rows: std::ops::Range<usize>,
}

impl Kernel for Merge<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let Merged { list, offsets, columns, column_offsets } = self.merged;
        let (height, width, steps, size) = (self.shape.height, self.shape.width, self.steps, self.size);
        offsets.clear();
        offsets.push(0);
        for y in self.rows {
            column_offsets.clear();
            column_offsets.push(0);
            // The neighbours at -1, 0 and 1 that exist, and the offset of their weight rows.
            let around = |at: usize, end: usize, taps: usize| {
                let mut found = [(0, 0u16); 3];
                let mut count = 0;
                for (tap, v) in (at..at + 3).enumerate().filter(|&(_, v)| (1..=end).contains(&v)) {
                    found[count] = (v - 1, (tap * taps * size * ROW) as u16);
                    count += 1;
                }
                (found, count)
            };
            let (rows, count) = around(y, height, 1);
            for x in 0..width {
                let neighbours = rows.map(|(v, offset)| ((v * width + x) * steps, offset));
                Append {
                    source: &self.compact.channels,
                    starts: &self.compact.offsets,
                    target: columns,
                    ends: column_offsets,
                    neighbours: &neighbours[..count],
                    steps,
                    longest: 3 * size,
                    padding: None,
                }
                .append::<V>();
            }
            for x in 0..width {
                let (columns_around, count) = around(x, width, 3);
                let neighbours = columns_around.map(|(u, offset)| (u * steps, offset));
                Append {
                    source: columns,
                    starts: column_offsets,
                    target: list,
                    ends: offsets,
                    neighbours: &neighbours[..count],
                    steps,
                    longest: 9 * size,
                    padding: Some((9 * size * ROW) as u16),
                }
                .append::<V>();
            }
        }
    }
}

/// The first layer on real values: dense. Products and sums are separate, as in every forward pass, so that the
/// spikes are the same in every instruction set.
struct RealForward<'a> {
    conv: &'a Conv,
    dynamics: Dynamics,
    values: &'a [f32],
    steps: usize,
    squares: &'a mut [Row],
    out: &'a mut Spikes,
}

impl Kernel for RealForward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let (shape, channels) = (self.conv.input, self.conv.input.channels);
        let (height, width) = (shape.height, shape.width);
        let real = channels / if self.conv.signed { 2 } else { 1 };
        let (lambda, v_th) = (V::splat(self.dynamics.lambda), V::splat(self.dynamics.v_th));
        let words = self.out.words_per_step();
        for chunk in 0..self.conv.output.channels.div_ceil(16) {
            let weights = &self.conv.walk[chunk * channels..][..real];
            for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
                let mut membrane = V::zero();
                for step in 0..self.steps {
                    let mut current = V::zero();
                    for (channel, taps) in weights.iter().enumerate() {
                        let plane =
                            &self.values[(step * real + channel) * height * width..][..height * width];
                        for v in y.max(1) - 1..height.min(y + 2) {
                            for u in x.max(1) - 1..width.min(x + 2) {
                                let tap = (v + 1 - y) * 3 + u + 1 - x;
                                let product = V::load(&taps[8 - tap]).mul(V::splat(plane[v * width + u]));
                                current = current.add(product);
                            }
                        }
                    }
                    let square = V::load(&self.squares[step]);
                    current.mul_add(current, square).store(&mut self.squares[step]);
                    let potential = membrane.add(current);
                    let fired = potential.greater(v_th);
                    membrane = potential.mul(lambda).clear(fired);
                    let at = ((y * width + x) * self.steps + step) * words + chunk / 4;
                    self.out.words_mut()[at] |= u64::from(fired) << (16 * (chunk % 4));
                }
            }
        }
    }
}

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
    /// The layer's own events (those its mask lets through).
    pub events: &'a Events,
    /// Loss derivative of each of them.
    pub gradient: &'a [f32],
}

/// The input of a convolution, as its backward pass needs it.
pub(crate) enum ConvEvents<'a> {
    /// Events, and where the derivative of each goes (nowhere in the first layer).
    Events(&'a Events, &'a mut [f32]),
    /// Real values `[step][channel][row][column]`.
    Real(&'a [f32]),
}

impl Conv {
    /// Adds the weights' gradient to `gradients` (packed) and the input events' to theirs.
    pub fn backward(
        &self,
        isa: Isa,
        up: &Upstream,
        input: &mut ConvEvents,
        workspace: &mut ConvWorkspace,
        gradients: &mut [[Row; 9]],
    ) {
        let geometry = up.events.geometry;
        spike_derivatives(up.events, up.lambda, up.v_th, up.scale, &mut workspace.derivatives);
        let (stride, frame, channels) = (geometry.stride(), geometry.frame(), self.input.channels);
        let margin = stride + 1;
        for chunk in 0..self.output.channels.div_ceil(16) {
            let frames = &mut workspace.frames;
            frames.clear();
            frames.resize(geometry.tile_steps * frame + 2 * margin, Row::ZERO);
            let gradients = &mut gradients[chunk * channels..][..channels];
            let weights = &self.walk[chunk * channels..][..channels];
            for tile in (0..geometry.tiles()).rev() {
                let derivatives = &workspace.derivatives;
                vectorise(isa, FillFrames { up, derivatives, frames: &mut frames[margin..], chunk, tile });
                match input {
                    ConvEvents::Events(events, target) => {
                        let geometry = events.geometry;
                        for window in 0..geometry.windows {
                            let first = geometry.list(tile, window, 0, 0);
                            let every = geometry.tile_steps;
                            let kernel = ConvWalk {
                                weights,
                                gradients,
                                frames,
                                stride,
                                offsets: &events.offsets[first..first + channels * every + 1],
                                every,
                                positions: &events.positions,
                                events: target,
                            };
                            dispatch(isa, kernel);
                        }
                    }
                    ConvEvents::Real(values) => {
                        let planes = channels / if self.signed { 2 } else { 1 };
                        let gradients = &mut gradients[..planes];
                        dispatch(isa, RealWalk { geometry, gradients, frames, values, tile });
                    }
                }
            }
        }
    }
}

/// Computes `d` of a tile's steps, last first: where a neuron fired, its spike derivative times the loss
/// derivative of the spike; where not, the decayed `d` of the step after.
///
/// A neuron's `d` is zero after its last spike, and a dropped neuron's always: neither needs an event.
struct FillFrames<'a> {
    up: &'a Upstream<'a>,
    derivatives: &'a [f32],
    /// The tile's frames, without the margin before the first; the first holds the tile after.
    frames: &'a mut [Row],
    chunk: usize,
    tile: usize,
}

impl Work for FillFrames<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (events, gradient, decay) = (self.up.events, self.up.gradient, self.up.decay);
        let Geometry { shape, tile_steps, windows, .. } = events.geometry;
        let frame = events.geometry.frame();
        let lanes = 16.min(shape.channels - 16 * self.chunk);
        let steps = events.geometry.steps_of(self.tile);
        for step in (0..steps).rev() {
            let (this, later) = self.frames.split_at_mut((step + 1) * frame);
            if step + 1 < steps {
                for (to, from) in this[step * frame..].iter_mut().zip(&later[..frame]) {
                    *to = Row(from.map(|d| d * decay));
                }
            } else if step > 0 {
                let (first, this) = this.split_at_mut(step * frame);
                for (to, from) in this.iter_mut().zip(&first[..frame]) {
                    *to = Row(from.map(|d| d * decay));
                }
            } else if decay != 1.0 {
                this.iter_mut().for_each(|row| *row = Row(row.map(|d| d * decay)));
            }
            let this = &mut this[step * frame..];
            let origin = step * frame;
            debug_assert!(step < tile_steps);
            for lane in 0..lanes {
                let channel = 16 * self.chunk + lane;
                let derivatives = &self.derivatives[channel * frame..][..frame];
                for window in 0..windows {
                    for event in events.range(self.tile, window, channel, step) {
                        let position = usize::from(events.positions[event]) - origin;
                        this[position][lane] = derivatives[position] * gradient[event];
                    }
                }
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
