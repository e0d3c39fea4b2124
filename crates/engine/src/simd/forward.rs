//! Forward kernels: they sum the weight rows that events point to, and update the neurons in the same loop.
//!
//! A row contains the weights from one input (and tap) to `16 N` output channels. An event list contains row
//! numbers. The sum of the rows of a list is the weighted input of `16 N` neurons at one step, and their
//! membrane potentials stay in registers from step to step.

use super::lists::{Merged, PAD, ROW};
use super::{Kernel, Row, Vector};
use crate::neuron::spiking::{Dynamics, Neurons};

/// The sum of the rows of a list whose length is a multiple of [`PAD`], as two interleaved partial sums.
///
/// # Safety
/// Every entry of `list` is `ROW` times some `r` such that `r * N + N - 1` is an index of `rows`.
#[inline(always)]
unsafe fn sum_rows<V: Vector, const N: usize>(rows: &[Row], list: &[u16]) -> [V; N] {
    let base: *const u8 = rows.as_ptr().cast();
    let (mut even, mut odd) = ([V::zero(); N], [V::zero(); N]);
    // Four entries are read with one load, because loads limit the speed of this loop.
    for four in list.as_chunks::<PAD>().0 {
        // SAFETY: four entries are eight bytes.
        let packed = unsafe { four.as_ptr().cast::<u64>().read_unaligned() };
        let entries: [usize; PAD] = std::array::from_fn(|i| (packed >> (16 * i)) as u16 as usize);
        for (i, entry) in entries.into_iter().enumerate() {
            let sums = if i % 2 == 0 { &mut even } else { &mut odd };
            debug_assert!((entry / ROW + 1) * N <= rows.len());
            for n in 0..N {
                // SAFETY: the caller guarantees that the row exists; `2 * ROW`
                // is the size of a vector in bytes.
                let row = unsafe { &*base.add(entry * (2 * N) + 2 * ROW * n).cast::<Row>() };
                sums[n] = sums[n].add(V::load(row));
            }
        }
    }
    std::array::from_fn(|n| even[n].add(odd[n]))
}

/// The output of the neurons of a strip of pixels, one chunk of their channels at a time.
pub(crate) struct Outlet<'a> {
    /// The parameters of the neurons.
    pub dynamics: Dynamics,
    /// Sums of squared weighted inputs, `[step]`.
    pub squares: &'a mut [Row],
    /// The strip's spike words, `[pixel][step][word]`; the first chunk of a word writes all of it.
    pub words: &'a mut [u64],
    /// Words per pixel and step.
    pub words_per_step: usize,
    /// Number of the chunk.
    pub chunk: usize,
}

impl Outlet<'_> {
    /// The sum of squares and the spike word of a pixel, step by step.
    #[inline(always)]
    fn pixel<const N: usize>(&mut self, pixel: usize) -> impl Iterator<Item = (&mut Row, &mut u64)> {
        let per_pixel = self.squares.len() * self.words_per_step;
        let words = &mut self.words[pixel * per_pixel..][..per_pixel][self.chunk * N / 4..];
        self.squares.iter_mut().zip(words.iter_mut().step_by(self.words_per_step))
    }

    /// The bit of the chunk's first channel in its word.
    #[inline(always)]
    fn shift<const N: usize>(&self) -> usize {
        16 * (self.chunk * N % 4)
    }
}

/// Writes a chunk's spikes to their word, from bit `shift` on.
#[inline(always)]
fn write_spikes(word: &mut u64, spikes: u64, shift: usize) {
    *word = if shift == 0 { spikes } else { *word | spikes << shift };
}

/// Runs one chunk of `16 N` output channels over a strip of pixels, for one block of input channels.
pub(crate) struct ConvForward<'a, 'b, const N: usize> {
    /// Weight rows of this chunk and block, `[row][N]`, as many as [`Merged::rows`]; the last is zero.
    pub rows: &'a [Row],
    /// The rows to add for each `[pixel][step]`.
    pub lists: &'a Merged,
    /// Sums of the previous blocks, `[pixel][step][N]`; not used if there is only one block.
    pub partial: &'a mut [Row],
    /// Whether this is the first block of input channels.
    pub first: bool,
    /// Whether this is the last block, after which the neurons are updated.
    pub last: bool,
    /// Where the results are written.
    pub out: &'a mut Outlet<'b>,
}

impl<const N: usize> Kernel for ConvForward<'_, '_, N> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        assert!(
            self.lists.rows() <= self.rows.len() / N,
            "there must be as many weight rows as the lists number"
        );
        match (self.first, self.last) {
            (true, true) => self.sweep::<V, true, true>(),
            (true, false) => self.sweep::<V, true, false>(),
            (false, true) => self.sweep::<V, false, true>(),
            (false, false) => self.sweep::<V, false, false>(),
        }
    }
}

impl<const N: usize> ConvForward<'_, '_, N> {
    #[inline(always)]
    fn sweep<V: Vector, const FIRST: bool, const LAST: bool>(self) {
        let Outlet { dynamics, ref squares, .. } = *self.out;
        let (scale, steps, shift) = (V::splat(dynamics.scale), squares.len(), self.out.shift::<N>());
        let (entries, starts) = (self.lists.entries(), self.lists.starts());
        let pixels = (starts.len() - 1) / steps;
        for pixel in 0..pixels {
            let mut neurons = Neurons::<V, N>::at_rest(dynamics);
            let starts = &starts[pixel * steps..(pixel + 1) * steps + 1];
            let mut at = pixel * steps * N;
            for (ends, (square, word)) in starts.windows(2).zip(self.out.pixel::<N>(pixel)) {
                let list = &entries[ends[0] as usize..ends[1] as usize];
                // SAFETY: `Merged` guarantees that its entries number its rows, and
                // `run` checked that these rows exist.
                let mut z = unsafe { sum_rows::<V, N>(self.rows, list) };
                if !FIRST {
                    for (z, partial) in z.iter_mut().zip(&self.partial[at..at + N]) {
                        *z = z.add(V::load(partial));
                    }
                }
                if !LAST {
                    for (z, partial) in z.iter().zip(&mut self.partial[at..at + N]) {
                        z.store(partial);
                    }
                    at += N;
                    continue;
                }
                at += N;
                let current = z.map(|z| z.mul(scale));
                write_spikes(word, neurons.step(current, square), shift);
            }
        }
    }
}

/// Computes the weighted input of one chunk of `16 N` neurons of a fully connected layer.
pub(crate) struct FullForward<'a, const N: usize> {
    /// Weight rows of this chunk.
    pub rows: &'a [Row],
    /// Row numbers, all below `rows.len() / N`, `[step]`.
    pub list: &'a [u32],
    /// Start of each step's list, followed by the end of the last.
    pub offsets: &'a [u32],
    /// Weighted input, `[step][N]`, which the kernel writes.
    pub current: &'a mut [Row],
    /// Value of an input spike.
    pub scale: f32,
}

impl<const N: usize> Kernel for FullForward<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let scale = V::splat(self.scale);
        for step in 0..self.offsets.len() - 1 {
            let list = &self.list[self.offsets[step] as usize..self.offsets[step + 1] as usize];
            let mut even = [V::zero(); N];
            let mut odd = [V::zero(); N];
            let pairs = list.chunks_exact(2);
            let rest = pairs.remainder();
            for pair in pairs {
                let (a, b) = (pair[0] as usize * N, pair[1] as usize * N);
                let (a, b) = (&self.rows[a..a + N], &self.rows[b..b + N]);
                for n in 0..N {
                    even[n] = even[n].add(V::load(&a[n]));
                    odd[n] = odd[n].add(V::load(&b[n]));
                }
            }
            for &row in rest {
                for n in 0..N {
                    even[n] = even[n].add(V::load(&self.rows[row as usize * N + n]));
                }
            }
            for n in 0..N {
                even[n].add(odd[n]).mul(scale).store(&mut self.current[step * N + n]);
            }
        }
    }
}

/// Runs the neurons of one chunk of a fully connected layer, given their weighted input.
pub(crate) struct Fire<'a> {
    /// Weighted input, `[step][vectors]`.
    pub current: &'a [Row],
    /// Vectors of sixteen neurons per step.
    pub vectors: usize,
    /// The parameters of the neurons; their scale is already contained in `current`.
    pub dynamics: Dynamics,
    /// Sums of squared weighted inputs, `[step]`.
    pub squares: &'a mut [Row],
    /// Spike words, `[step][word]`.
    pub words: &'a mut [u64],
    /// Words per step.
    pub words_per_step: usize,
    /// Number of the first vector within the layer.
    pub first: usize,
}

impl Kernel for Fire<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        for n in 0..self.vectors {
            let mut neurons = Neurons::<V, 1>::at_rest(self.dynamics);
            let group = self.first + n;
            for (step, square) in self.squares.iter_mut().enumerate() {
                let spikes = neurons.step([V::load(&self.current[step * self.vectors + n])], square);
                self.words[step * self.words_per_step + group / 4] |= spikes << (16 * (group % 4));
            }
        }
    }
}

/// Sums rows of a table that stays in the L1 cache, to measure how fast this
/// machine can add with one load per addition.
pub(super) struct Ceiling<'a> {
    pub rows: &'a [Row],
    pub list: &'a [u16],
    pub repeats: usize,
}

impl Kernel for Ceiling<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<V: Vector>(self) -> f32 {
        const N: usize = 4;
        let rows = self.rows.len() / N;
        assert!(
            self.list.iter().all(|&entry| usize::from(entry) / ROW < rows && usize::from(entry) % ROW == 0)
        );
        let mut total = V::zero();
        for _ in 0..self.repeats {
            // SAFETY: every entry was checked above.
            let sums = unsafe { sum_rows::<V, N>(self.rows, std::hint::black_box(self.list)) };
            total = total.add(sums[0].add(sums[1]).add(sums[2].add(sums[3])));
        }
        total.sum()
    }
}

/// Runs one chunk of `16 N` output channels of the first layer over a strip of pixels. Each column of three
/// pixels has one code for each sign, and the sum of its weights is looked up.
pub(crate) struct CodeForward<'a, 'b, const N: usize> {
    /// Tables of this chunk, `[column of the kernel][code][N]`; the number of codes is a power of two.
    pub tables: &'a [Row],
    /// Codes of positive and negative spikes, `[column of the image, with one empty at each end][step]`.
    pub codes: &'a [[u16; 2]],
    /// Where the results are written.
    pub out: &'a mut Outlet<'b>,
}

impl<const N: usize> Kernel for CodeForward<'_, '_, N> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let (steps, shift) = (self.out.squares.len(), self.out.shift::<N>());
        let columns = self.codes.len() / steps;
        let entries = self.tables.len() / (3 * N);
        assert!(entries.is_power_of_two(), "the number of codes must be a power of two");
        for x in 0..columns - 2 {
            let trains: [&[[u16; 2]]; 3] = std::array::from_fn(|k| &self.codes[(x + k) * steps..][..steps]);
            let mut neurons = Neurons::<V, N>::at_rest(self.out.dynamics);
            for (step, (square, word)) in self.out.pixel::<N>(x).enumerate() {
                let mut signed = [[V::zero(); N]; 2];
                for (k, train) in trains.iter().enumerate() {
                    for (sign, sums) in signed.iter_mut().enumerate() {
                        let at = (k * entries + (usize::from(train[step][sign]) & (entries - 1))) * N;
                        for n in 0..N {
                            // SAFETY: `k` is below 3, the masked code is below `entries`, and
                            // there are `3 * entries * N` rows.
                            sums[n] = sums[n].add(V::load(unsafe { self.tables.get_unchecked(at + n) }));
                        }
                    }
                }
                let current = std::array::from_fn(|n| signed[0][n].sub(signed[1][n]));
                write_spikes(word, neurons.step(current, square), shift);
            }
        }
    }
}
