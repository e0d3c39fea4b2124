//! The forward pass of a convolution: event lists are merged over the nine taps, and one kernel sums the
//! weight rows of each list and updates the neurons.

use super::super::total_squares;
use super::{Conv, ConvWorkspace};
use crate::events::grow_to;
use crate::neuron::spiking::{Dynamics, Neurons};
use crate::simd::forward::{CodeForward, ConvForward, Outlet};
use crate::simd::lists::{BLOCK, Compact, MOST, Merged, PAD};
use crate::simd::{Isa, Kernel, Row, Vector, Work, dispatch, vectorise};
use crate::spikes::{Shape, Spikes};

/// Number of pixels that a strip of rows should have, enough to reuse a tile of weights many times.
const STRIP: usize = 32;

/// The input of a convolution.
pub(crate) enum ConvInput<'a> {
    /// Spikes, and the dropout mask on them, if any.
    Spikes(&'a Spikes, Option<&'a [u64]>),
    /// Real values `[step][channel][row][column]`, and the number of steps.
    Real(&'a [f32], usize),
}

impl Conv {
    /// Runs all steps of the layer. Writes the spikes to `out` and the sums of
    /// squared weighted inputs to `squares`.
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
            // The first chunk of a word writes the whole word.
            ConvInput::Spikes(..) => out.reshape(self.output.pixels(), steps, self.output.channels),
            ConvInput::Real(..) => out.reset(self.output.pixels(), steps, self.output.channels),
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

    /// Number of rows of pixels whose lists are built together.
    fn strip_rows(&self) -> usize {
        (STRIP / self.output.width).max(1)
    }

    /// Largest number of steps for which 32 bits can number the entries of a
    /// strip's lists, whichever neurons fire.
    pub fn most_steps(&self) -> usize {
        let Shape { height, width, .. } = self.input;
        let longest = height.min(3) * width.min(3) * self.block_size() + PAD;
        match self.code_bits() {
            Some(_) => usize::MAX,
            None => MOST / (self.strip_rows().min(height) * width * longest),
        }
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
            let words = BLOCK / 64;
            compact.build(isa, spikes, keep, block * words..spikes.words_per_step().min((block + 1) * words));
        }
        let strip = self.strip_rows();
        let words_per_step = out.words_per_step();
        for top in (0..self.output.height).step_by(strip) {
            let rows = top..self.output.height.min(top + strip);
            let pixels = rows.len() * width;
            for (compact, merged) in workspace.compact.iter().zip(&mut workspace.merged).take(blocks) {
                merged.build(isa, compact, self.input, self.block_size(), rows.clone());
            }
            if blocks > 1 {
                grow_to(&mut workspace.partial, pixels * steps * self.vectors);
            }
            let per_pixel = steps * words_per_step;
            let words = &mut out.words_mut()[top * width * per_pixel..][..pixels * per_pixel];
            let squares = &mut workspace.squares;
            let mut outlet = Outlet { dynamics, squares, words, words_per_step, chunk: 0 };
            for chunk in 0..self.chunks() {
                outlet.chunk = chunk;
                for (block, merged) in workspace.merged[..blocks].iter().enumerate() {
                    let len = self.tile_rows() * self.vectors;
                    by_vectors!(self.vectors, N => {
                        let kernel = ConvForward::<N> {
                            rows: &self.tiles[(chunk * blocks + block) * len..][..len],
                            lists: merged,
                            partial: &mut workspace.partial,
                            first: block == 0,
                            last: block + 1 == blocks,
                            out: &mut outlet,
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
            let squares = &mut workspace.squares;
            let mut outlet = Outlet { dynamics, squares, words, words_per_step, chunk: 0 };
            for chunk in 0..self.chunks() {
                outlet.chunk = chunk;
                let len = (3 << bits) * self.vectors;
                let tables = &self.tiles[chunk * len..][..len];
                by_vectors!(self.vectors, N => {
                    dispatch(isa, CodeForward::<N> { tables, codes, out: &mut outlet });
                });
            }
        }
    }
}

/// Computes the codes of the columns of three pixels around row `y`, one for each sign. Bit
/// `row * channels + channel` is set if the channel fired.
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

/// The first layer for real-valued input, which is dense. Products and sums are rounded separately, as in
/// every forward pass, so that the spikes are the same in every instruction set.
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
        let words = self.out.words_per_step();
        for chunk in 0..self.conv.output.channels.div_ceil(16) {
            let weights = &self.conv.walk[chunk * channels..][..real];
            for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
                let mut neurons = Neurons::<V, 1>::at_rest(self.dynamics);
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
                    let spikes = neurons.step([current], &mut self.squares[step]);
                    let at = ((y * width + x) * self.steps + step) * words + chunk / 4;
                    self.out.words_mut()[at] |= spikes << (16 * (chunk % 4));
                }
            }
        }
    }
}
