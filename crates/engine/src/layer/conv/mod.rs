//! 3x3 convolution of spiking neurons.
//!
//! In the forward pass, the events of a pixel's 3x3 neighbourhood are merged into one list per pixel and
//! step, for blocks of up to 128 input channels. All output channels use the lists of a strip of rows, and a
//! tile of weights (one block, one chunk of outputs) stays in the L2 cache while the strip is processed. The
//! backward pass is described in `simd::backward`.
//!
//! The first layer's ternary input has twice the image's channels, and its weights are `[W, -W]`, so a
//! spike of -1 is an event like any other.

mod backward;
mod forward;

pub(crate) use backward::{ConvEvents, Upstream};
pub(crate) use forward::ConvInput;

use crate::simd::lists::{BLOCK, Compact, Merged};
use crate::simd::{Isa, Row};
use crate::spikes::Shape;
use rayon::prelude::*;

/// Largest number of bits in the code of a column of three pixels for which
/// sums of weights are looked up in a table.
const LONGEST_CODE: usize = 9;

/// Number of vectors of sixteen output channels in a forward chunk: as many as the registers can hold with
/// two partial sums each, no more than the layer has, and half as many if a block has twice the channels,
/// so that a tile does not become larger.
fn chunk_vectors(isa: Isa, inputs: usize, outputs: usize) -> usize {
    let most = match isa {
        Isa::Avx512 if inputs <= BLOCK / 2 => 4,
        Isa::Avx512 | Isa::Avx2 | Isa::Portable => 2,
    };
    outputs.div_ceil(16).next_power_of_two().min(most)
}

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
    /// Forward tiles, `[chunk][block][tap * block size + channel, then a zero row][vectors]`, with taps
    /// ordered by columns; or, if the input is coded, `[chunk][column of the kernel][code][vectors]`.
    tiles: Vec<Row>,
    /// Weights for the backward pass and for real-valued input,
    /// `[chunk of 16][input channel][9 taps, last first]`.
    walk: Vec<[Row; 9]>,
}

/// Buffers of a convolution; their contents between calls do not matter.
#[derive(Debug, Default)]
pub(crate) struct ConvWorkspace {
    compact: Vec<Compact>,
    merged: Vec<Merged>,
    partial: Vec<Row>,
    squares: Vec<Row>,
    frames: Vec<Row>,
    derivatives: Vec<Row>,
    codes: Vec<[u16; 2]>,
}

impl Conv {
    /// Packs weights `[out, in, 3, 3]`.
    pub fn new(isa: Isa, image: Shape, output: Shape, weights: &[f32], signed: bool) -> Self {
        let channels = image.channels * if signed { 2 } else { 1 };
        let input = Shape { channels, ..image };
        let vectors = chunk_vectors(isa, channels, output.channels);
        let mut conv = Conv { input, output, signed, vectors, tiles: Vec::new(), walk: Vec::new() };
        let rows = conv.code_bits().map_or(conv.blocks() * conv.tile_rows(), |bits| 3 << bits);
        conv.tiles = vec![Row::ZERO; conv.chunks() * rows * vectors];
        conv.walk = vec![[Row::ZERO; 9]; output.channels.div_ceil(16) * channels];
        conv.pack(weights);
        conv
    }

    /// Number of forward chunks.
    fn chunks(&self) -> usize {
        self.output.channels.div_ceil(16 * self.vectors)
    }

    /// Number of image channels: half of the input channels if spikes have a sign.
    fn real_channels(&self) -> usize {
        self.input.channels / if self.signed { 2 } else { 1 }
    }

    /// Number of bits in the code of a column of three pixels, if the layer uses such codes.
    fn code_bits(&self) -> Option<usize> {
        let bits = 3 * self.real_channels();
        (self.signed && bits <= LONGEST_CODE).then_some(bits)
    }

    fn blocks(&self) -> usize {
        self.input.channels.div_ceil(BLOCK)
    }

    fn block_size(&self) -> usize {
        self.input.channels.min(BLOCK)
    }

    /// Number of rows in a forward tile.
    fn tile_rows(&self) -> usize {
        9 * self.block_size() + 1
    }

    /// Number of entries in the packed gradient.
    pub fn gradient_len(&self) -> usize {
        self.walk.len()
    }

    /// Writes weights `[out, in, 3, 3]` to the forward tiles and the backward rows, sixteen outputs at a
    /// time.
    pub fn pack(&mut self, weights: &[f32]) {
        let (size, rows, real) = (self.block_size(), self.tile_rows(), self.real_channels());
        let (vectors, bits, channels) = (self.vectors, self.code_bits(), self.input.channels);
        let tile_len = self.tiles.len() / self.chunks();
        let tiles = self.tiles.par_chunks_mut(tile_len);
        let walks = self.walk.par_chunks_mut(channels * vectors);
        let outs = weights.par_chunks(16 * vectors * real * 9);
        tiles.zip(walks).zip(outs).for_each(|((tiles, walk), weights)| {
            let sixteens = walk.chunks_exact_mut(channels).zip(weights.chunks(16 * real * 9));
            for (vector, (walk, weights)) in sixteens.enumerate() {
                for (channel, tap) in (0..real).flat_map(|channel| (0..9).map(move |tap| (channel, tap))) {
                    let mut row = Row::ZERO;
                    for (lane, weights) in weights.chunks_exact(real * 9).enumerate() {
                        row[lane] = weights[channel * 9 + tap];
                    }
                    let mut set = |channel: usize, row: Row| {
                        walk[channel][8 - tap] = row;
                        if bits.is_none() {
                            let at = (tap % 3 * 3 + tap / 3) * size + channel % BLOCK;
                            tiles[(channel / BLOCK * rows + at) * vectors + vector] = row;
                        }
                    };
                    set(channel, row);
                    if self.signed {
                        set(channel + real, Row(row.map(|weight| -weight)));
                    }
                }
                let Some(bits) = bits else { continue };
                for (column, code) in
                    (0..3).flat_map(|column| (1..1usize << bits).map(move |code| (column, code)))
                {
                    // The sum without the highest bit has already been computed.
                    let top = code.ilog2() as usize;
                    let (row, channel) = (top / real, top % real);
                    let at = |code: usize| ((column << bits) + code) * vectors + vector;
                    let (rest, last) = (tiles[at(code ^ 1 << top)], walk[channel][8 - 3 * row - column]);
                    tiles[at(code)] = Row(std::array::from_fn(|lane| rest[lane] + last[lane]));
                }
            }
        });
    }

    /// Adds a packed gradient to a gradient in the order `[out, in, 3, 3]`.
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
}
