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
use crate::simd::backward::{ConvWalk, ConvWeights};
use crate::simd::forward::{Append, CodeForward, ConvForward, Dynamics, ROW};
use crate::simd::{Isa, Kernel, Row, Vector, Work, dispatch, vectorise};
use crate::spikes::{Shape, Spikes};
use rayon::prelude::*;

/// Bits of the longest code of a column of three pixels that is looked up rather than walked.
const LONGEST_CODE: usize = 9;

/// Vectors of sixteen output channels in a forward chunk: as many as the registers hold twice, and no more than
/// the layer has.
fn chunk_vectors(isa: Isa, outputs: usize) -> usize {
    let most = if isa == Isa::Avx512 { 4 } else { 2 };
    outputs.div_ceil(16).next_power_of_two().min(most)
}

/// Rows of `d` that are computed at a time: what the nearest cache holds.
const BLOCK_ROWS: usize = 512;

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
    /// Vectors in a forward chunk: 1, 2 or 4.
    vectors: usize,
    /// Forward tiles, `[chunk][block][tap * block size + channel, then a zero row][vectors]`, taps by columns; or,
    /// where the input is coded, `[chunk][column of the kernel][code][vectors]`.
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
    /// Which lanes of a frame's rows fired.
    fired: Vec<u16>,
    derivatives: Vec<Row>,
    codes: Vec<[u16; 2]>,
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
    pub fn new(isa: Isa, image: Shape, output: Shape, weights: &[f32], signed: bool) -> Self {
        let channels = image.channels * if signed { 2 } else { 1 };
        let input = Shape { channels, ..image };
        let vectors = chunk_vectors(isa, output.channels);
        let mut conv = Conv { input, output, signed, vectors, tiles: Vec::new(), walk: Vec::new() };
        let rows = conv.code_bits().map_or(conv.blocks() * conv.tile_rows(), |bits| 3 << bits);
        conv.tiles = vec![Row::ZERO; conv.chunks() * rows * vectors];
        conv.walk = vec![[Row::ZERO; 9]; output.channels.div_ceil(16) * channels];
        conv.pack(weights);
        conv
    }

    /// Forward chunks.
    fn chunks(&self) -> usize {
        self.output.channels.div_ceil(16 * self.vectors)
    }

    /// Image channels: half of the input channels where spikes have a sign.
    fn real_channels(&self) -> usize {
        self.input.channels / if self.signed { 2 } else { 1 }
    }

    /// Bits of the code of a column of three pixels, if the input is looked up by such codes.
    fn code_bits(&self) -> Option<usize> {
        let bits = 3 * self.real_channels();
        (self.signed && bits <= LONGEST_CODE).then_some(bits)
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

    /// Writes the weights to the forward tiles and the backward rows, chunk by chunk.
    fn pack(&mut self, weights: &[f32]) {
        let (size, rows, real) = (self.block_size(), self.tile_rows(), self.real_channels());
        let (vectors, bits, channels) = (self.vectors, self.code_bits(), self.input.channels);
        let tile_len = self.tiles.len() / self.chunks();
        let tiles = self.tiles.par_chunks_mut(tile_len);
        let walks = self.walk.par_chunks_mut(channels * vectors);
        let outs = weights.par_chunks(16 * vectors * real * 9);
        tiles.zip(walks).zip(outs).for_each(|((tiles, walk), weights)| {
            for (out, weights) in weights.chunks_exact(real * 9).enumerate() {
                let (vector, lane) = (out / 16, out % 16);
                for channel in 0..channels {
                    let sign = if channel < real { 1.0 } else { -1.0 };
                    let walk = &mut walk[vector * channels + channel];
                    for (tap, &weight) in weights[channel % real * 9..][..9].iter().enumerate() {
                        walk[8 - tap][lane] = sign * weight;
                        if bits.is_none() {
                            let row = channel / 64 * rows + (tap % 3 * 3 + tap / 3) * size + channel % 64;
                            tiles[row * vectors + vector][lane] = sign * weight;
                        }
                    }
                }
                for column in 0..3 * usize::from(bits.is_some()) {
                    let entries = 1 << bits.unwrap_or(0);
                    for code in 1..entries {
                        // The sum without the highest bit is there already.
                        let top = usize::BITS - 1 - usize::leading_zeros(code);
                        let (row, channel) = (top as usize / real, top as usize % real);
                        let at = |code: usize| (column * entries + code) * vectors + vector;
                        let rest = tiles[at(code ^ 1 << top)][lane];
                        tiles[at(code)][lane] = rest + weights[channel * 9 + 3 * row + column];
                    }
                }
            }
        });
    }

    /// Adds a packed gradient to one in the order `[out, in, 3, 3]`.
    pub fn unpack(&self, packed: &[[Row; 9]], gradient: &mut [f32]) {
        let real = self.real_channels();
        gradient.par_chunks_mut(9 * real).enumerate().for_each(|(out, gradient)| {
            let rows = &packed[out / 16 * self.input.channels..][..self.input.channels];
            for (channel, target) in gradient.chunks_exact_mut(9).enumerate() {
                for (tap, value) in target.iter_mut().enumerate() {
                    *value += rows[channel][8 - tap][out % 16];
                    if self.signed {
                        *value -= rows[channel + real][8 - tap][out % 16];
                    }
                }
            }
        });
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
        match input {
            // Four vectors are a whole word, which is written and not added to.
            ConvInput::Spikes(..) if self.vectors == 4 => {
                out.reshape(self.output.pixels(), steps, self.output.channels);
            }
            _ => out.reset(self.output.pixels(), steps, self.output.channels),
        }
        workspace.squares.clear();
        workspace.squares.resize(steps, Row::ZERO);
        match *input {
            ConvInput::Spikes(spikes, keep) => match self.code_bits() {
                Some(bits) => self.forward_codes(isa, dynamics, spikes, bits, workspace, out),
                None => self.forward_spikes(isa, dynamics, spikes, keep, workspace, out),
            },
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
                workspace
                    .partial
                    .resize((pixels * steps * self.vectors).max(workspace.partial.len()), Row::ZERO);
            }
            let per_pixel = steps * words_per_step;
            let words = &mut out.words_mut()[top * width * per_pixel..][..pixels * per_pixel];
            for chunk in 0..self.chunks() {
                for (block, merged) in workspace.merged[..blocks].iter().enumerate() {
                    let len = self.tile_rows() * self.vectors;
                    by_vectors!(self.vectors, N => {
                        let kernel = ConvForward::<N> {
                            rows: &self.tiles[(chunk * blocks + block) * len..][..len],
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
                    });
                }
            }
        }
    }

    fn forward_codes(
        &self,
        isa: Isa,
        dynamics: Dynamics,
        spikes: &Spikes,
        bits: usize,
        workspace: &mut ConvWorkspace,
        out: &mut Spikes,
    ) {
        let (height, width, steps) = (self.input.height, self.input.width, spikes.steps());
        let words_per_step = out.words_per_step();
        let codes = &mut workspace.codes;
        codes.clear();
        codes.resize((width + 2) * steps, [0; 2]);
        for y in 0..height {
            vectorise(isa, Codes { spikes, y, height, width, real: self.real_channels(), codes });
            let per_row = width * steps * words_per_step;
            let words = &mut out.words_mut()[y * per_row..][..per_row];
            for chunk in 0..self.chunks() {
                let len = (3 << bits) * self.vectors;
                by_vectors!(self.vectors, N => {
                    let kernel = CodeForward::<N> {
                        tables: &self.tiles[chunk * len..][..len],
                        bits,
                        codes,
                        steps,
                        dynamics,
                        squares: &mut workspace.squares,
                        words,
                        words_per_step,
                        chunk,
                    };
                    dispatch(isa, kernel);
                });
            }
        }
    }
}

/// Codes of the columns of three pixels around row `y`: bit `row * channels + channel` of each sign.
struct Codes<'a> {
    spikes: &'a Spikes,
    y: usize,
    height: usize,
    width: usize,
    real: usize,
    codes: &'a mut [[u16; 2]],
}

impl Work for Codes<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let steps = self.spikes.steps();
        let mask = (1u64 << self.real) - 1;
        for x in 0..self.width {
            let codes = &mut self.codes[(x + 1) * steps..][..steps];
            codes.fill([0; 2]);
            for row in 0..3 {
                let v = self.y + row;
                if (1..=self.height).contains(&v) {
                    let train = &self.spikes.words()[((v - 1) * self.width + x) * steps..][..steps];
                    let shift = row * self.real;
                    for (code, &word) in codes.iter_mut().zip(train) {
                        code[0] |= ((word & mask) << shift) as u16;
                        code[1] |= ((word >> self.real & mask) << shift) as u16;
                    }
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
            // The neighbours at -1, 0 and 1, those outside as number `end`, and the offset of their weight rows.
            let around = |at: usize, end: usize, taps: usize| {
                [0, 1, 2].map(|tap| ((at + tap).wrapping_sub(1).min(end), (tap * taps * size * ROW) as u16))
            };
            let rows = around(y, height, 1);
            for x in 0..width {
                let outside = height * width;
                let first = |v: usize| if v == height { outside } else { v * width + x };
                Append {
                    source: &self.compact.channels,
                    starts: &self.compact.offsets,
                    target: columns,
                    ends: column_offsets,
                    neighbours: rows.map(|(v, offset)| (first(v) * steps, offset)),
                    steps,
                    longest: 3 * size,
                }
                .append::<V>(None);
            }
            // What lies outside is empty.
            let end = *column_offsets.last().expect("it holds at least the start");
            column_offsets.resize(column_offsets.len() + steps, end);
            for x in 0..width {
                Append {
                    source: columns,
                    starts: column_offsets,
                    target: list,
                    ends: offsets,
                    neighbours: around(x, width, 3).map(|(u, offset)| (u * steps, offset)),
                    steps,
                    longest: 9 * size,
                }
                .append::<V>(Some((9 * size * ROW) as u16));
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
        let real = self.conv.real_channels();
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
                            let offsets = &events.offsets[first..first + channels * every + 1];
                            let positions = &events.positions;
                            if target.is_empty() {
                                dispatch(
                                    isa,
                                    ConvWeights { gradients, frames, stride, offsets, every, positions },
                                );
                            } else {
                                let events = &mut **target;
                                dispatch(
                                    isa,
                                    ConvWalk {
                                        weights,
                                        gradients,
                                        frames,
                                        stride,
                                        offsets,
                                        every,
                                        positions,
                                        events,
                                        first: chunk == 0,
                                    },
                                );
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
