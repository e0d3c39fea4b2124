//! Forward kernels: sums of the weight rows that events point at, with the neuron fused in.
//!
//! A row is the weights from one input (and tap) to `N` times sixteen output channels. An event list holds row
//! numbers; the sum of a list is one neuron group's weighted input at one step, and the membrane stays in
//! registers from step to step.

use super::{Kernel, Row, Vector};

/// The spiking neuron as the kernels need it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dynamics {
    /// What an input spike counts (the dropout scale of the layer before).
    pub scale: f32,
    /// Membrane decay per step.
    pub lambda: f32,
    /// Threshold.
    pub v_th: f32,
}

/// Event lists are padded to a multiple of this with the number of a zero row.
pub(crate) const PAD: usize = 4;

/// Row numbers in event lists are kept times this, half the bytes of a vector: the largest that leaves sixteen bits
/// enough, and an address is one multiplication away.
pub(crate) const ROW: usize = 32;

/// Sum of the rows of a list whose length is a multiple of [`PAD`], in two interleaved partial sums.
///
/// # Safety
/// Every entry of `list` is `ROW` times some `r` such that `r * N + N - 1` is an index of `rows`.
#[inline(always)]
unsafe fn sum_rows<V: Vector, const N: usize>(rows: &[Row], list: &[u16]) -> [V; N] {
    let base: *const u8 = rows.as_ptr().cast();
    let (mut even, mut odd) = ([V::zero(); N], [V::zero(); N]);
    // One load for four entries: loads are what limits this loop.
    for four in list.as_chunks::<PAD>().0 {
        // SAFETY: four entries are eight bytes.
        let packed = unsafe { four.as_ptr().cast::<u64>().read_unaligned() };
        let entries: [usize; PAD] = std::array::from_fn(|i| (packed >> (16 * i)) as u16 as usize);
        for (i, entry) in entries.into_iter().enumerate() {
            let sums = if i % 2 == 0 { &mut even } else { &mut odd };
            debug_assert!((entry / ROW + 1) * N <= rows.len());
            for n in 0..N {
                // SAFETY: the caller's promise; `2 * ROW` is the size of a vector.
                let row = unsafe { &*base.add(entry * (2 * N) + 2 * ROW * n).cast::<Row>() };
                sums[n] = sums[n].add(V::load(row));
            }
        }
    }
    std::array::from_fn(|n| even[n].add(odd[n]))
}

/// `16 N` neurons from step to step, in registers.
pub(crate) struct Neurons<V, const N: usize> {
    membrane: [V; N],
    lambda: V,
    v_th: V,
}

impl<V: Vector, const N: usize> Neurons<V, N> {
    /// Neurons without charge.
    #[inline(always)]
    pub(crate) fn at_rest(dynamics: Dynamics) -> Self {
        let (lambda, v_th) = (V::splat(dynamics.lambda), V::splat(dynamics.v_th));
        Neurons { membrane: [V::zero(); N], lambda, v_th }
    }

    /// One step: who fires, a bit each; the squared weighted inputs are added to `square`.
    #[inline(always)]
    pub(crate) fn step(&mut self, current: [V; N], square: &mut Row) -> u64 {
        let mut sum = V::load(square);
        let mut spikes = 0;
        for n in 0..N {
            sum = current[n].mul_add(current[n], sum);
            let potential = self.membrane[n].add(current[n]);
            let fired = potential.greater(self.v_th);
            self.membrane[n] = potential.mul(self.lambda).clear(fired);
            spikes |= u64::from(fired) << (16 * n);
        }
        sum.store(square);
        spikes
    }
}

/// Where the neurons of a strip of pixels leave what they did, one chunk of their channels at a time.
pub(crate) struct Outlet<'a> {
    /// The neuron.
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
    /// A pixel's sum of squares and spike word, step by step.
    #[inline(always)]
    fn pixel<const N: usize>(&mut self, pixel: usize) -> impl Iterator<Item = (&mut Row, &mut u64)> {
        let per_pixel = self.squares.len() * self.words_per_step;
        let words = &mut self.words[pixel * per_pixel..][..per_pixel][self.chunk * N / 4..];
        self.squares.iter_mut().zip(words.iter_mut().step_by(self.words_per_step))
    }

    /// How far up in its word the chunk's first channel is.
    #[inline(always)]
    fn shift<const N: usize>(&self) -> usize {
        16 * (self.chunk * N % 4)
    }
}

/// Writes a chunk's spikes, `shift` bits up in their word.
#[inline(always)]
fn write_spikes(word: &mut u64, spikes: u64, shift: usize) {
    *word = if shift == 0 { spikes } else { *word | spikes << shift };
}

/// One chunk of `16 N` output channels over a strip of pixels and one block of input channels.
pub(crate) struct ConvForward<'a, 'b, const N: usize> {
    /// Weight rows of this chunk and block; the last is zero.
    pub rows: &'a [Row],
    /// Row numbers times [`ROW`], all below `rows.len() / N`.
    pub list: &'a [u16],
    /// Where the list of `[pixel][step]` starts; one more at the end.
    pub offsets: &'a [u32],
    /// Sums of the blocks before, `[pixel][step][N]`; empty if there is one block only.
    pub partial: &'a mut [Row],
    /// Whether this is the first block of input channels.
    pub first: bool,
    /// Whether this is the last one, after which the neurons act.
    pub last: bool,
    /// Where it goes.
    pub out: &'a mut Outlet<'b>,
}

impl<const N: usize> Kernel for ConvForward<'_, '_, N> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let listed = *self.offsets.last().expect("one more offset than lists") as usize;
        let rows = self.rows.len() / N;
        debug_assert!(self.list[..listed].iter().all(|&entry| usize::from(entry) / ROW < rows));
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
        let pixels = (self.offsets.len() - 1) / steps;
        for pixel in 0..pixels {
            let mut neurons = Neurons::<V, N>::at_rest(dynamics);
            let offsets = &self.offsets[pixel * steps..(pixel + 1) * steps + 1];
            let mut at = pixel * steps * N;
            for (ends, (square, word)) in offsets.windows(2).zip(self.out.pixel::<N>(pixel)) {
                let list = &self.list[ends[0] as usize..ends[1] as usize];
                // SAFETY: the field's contract, checked in debug builds by `run`.
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

/// One chunk of `16 N` neurons of a fully connected layer.
pub(crate) struct FullForward<'a, const N: usize> {
    /// Weight rows of this chunk.
    pub rows: &'a [Row],
    /// Row numbers, all below `rows.len() / N`, `[step]`.
    pub list: &'a [u32],
    /// Where each step's list starts; one more at the end.
    pub offsets: &'a [u32],
    /// Weighted input, `[step][N]`, to be written.
    pub current: &'a mut [Row],
    /// What an input spike counts.
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

/// The neurons of one chunk of a fully connected layer, from their weighted input.
pub(crate) struct Fire<'a> {
    /// Weighted input, `[step][vectors]`.
    pub current: &'a [Row],
    /// Vectors of sixteen neurons per step.
    pub vectors: usize,
    /// The neuron (its scale is already in `current`).
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

/// Sums rows of a table that stays in the nearest cache: how fast this machine can add at all, one load per add.
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

/// Concatenates, step by step, the lists of three neighbours, each entry plus its neighbour's offset: how the
/// convolution merges events.
pub(crate) struct Append<'a> {
    /// What the lists are taken from; at least sixteen entries follow the last of them.
    pub source: &'a [u16],
    /// Where each list of `source` starts, ascending; one more at the end.
    pub starts: &'a [u32],
    /// The merged lists; grown as needed.
    pub target: &'a mut Vec<u16>,
    /// Where each merged list starts; one more at the end. Appended to.
    pub ends: &'a mut Vec<u32>,
    /// For each neighbour the first of its lists (one per step, consecutive) and the offset of its entries.
    pub neighbours: [(usize, u16); 3],
    /// Lists to make.
    pub steps: usize,
    /// Longest a merged list can be.
    pub longest: usize,
}

impl Append<'_> {
    /// Makes the lists, padded with `padding` to a multiple of [`PAD`] if it is given; inlined into a kernel that
    /// calls it for every pixel.
    #[inline(always)]
    pub(crate) fn append<V: Vector>(self, padding: Option<u16>) {
        const WIDE: usize = 16;
        let mut end = *self.ends.last().expect("it holds at least the start") as usize;
        let room = end + self.steps * (self.longest + PAD) + 2 * WIDE;
        if self.target.len() < room {
            self.target.resize(2 * room, 0);
        }
        let trains = self.neighbours.map(|(first, offset)| (&self.starts[first..][..self.steps + 1], offset));
        assert!(self.starts.last().is_some_and(|&n| n as usize + WIDE <= self.source.len()));
        debug_assert!(self.starts.is_sorted());
        let (source, target) = (self.source.as_ptr(), self.target.as_mut_ptr());
        self.ends.reserve(self.steps);
        for step in 0..self.steps {
            for (starts, offset) in trains {
                let (mut from, stop) = (starts[step] as usize, starts[step + 1] as usize);
                let mut to = end;
                end += stop - from;
                // Once even if there is nothing to copy: a branch that is always taken is foreseen.
                loop {
                    debug_assert!(from + WIDE <= self.source.len() && to + WIDE <= self.target.len());
                    // SAFETY: `starts` ascends to its last entry, after which `source` has `WIDE` more; `to` is
                    // within the room made above, since a merged list is at most `longest`.
                    unsafe {
                        let source = &*source.add(from).cast::<[u16; WIDE]>();
                        V::shift(source, offset, &mut *target.add(to).cast::<[u16; WIDE]>());
                    }
                    from += WIDE;
                    to += WIDE;
                    if from >= stop {
                        break;
                    }
                }
            }
            if let Some(padding) = padding {
                for i in 0..PAD {
                    // SAFETY: as above.
                    unsafe { *target.add(end + i) = padding };
                }
                end = end.next_multiple_of(PAD);
            }
            self.ends.push(end as u32);
        }
    }
}

/// The first layer, one chunk of `16 N` output channels over a strip of pixels: each column of three pixels is a
/// code of `bits` bits per sign, and the sum of its weights is looked up.
pub(crate) struct CodeForward<'a, 'b, const N: usize> {
    /// Tables of this chunk, `[column of the kernel][code][N]`.
    pub tables: &'a [Row],
    /// Bits of a code.
    pub bits: usize,
    /// Codes of positive and negative spikes, `[column of the image, with one empty at each end][step]`.
    pub codes: &'a [[u16; 2]],
    /// Where it goes.
    pub out: &'a mut Outlet<'b>,
}

impl<const N: usize> Kernel for CodeForward<'_, '_, N> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let (steps, entries, shift) = (self.out.squares.len(), 1 << self.bits, self.out.shift::<N>());
        let columns = self.codes.len() / steps;
        assert!(self.tables.len() == 3 * entries * N);
        for x in 0..columns - 2 {
            let trains: [&[[u16; 2]]; 3] = std::array::from_fn(|k| &self.codes[(x + k) * steps..][..steps]);
            let mut neurons = Neurons::<V, N>::at_rest(self.out.dynamics);
            for (step, (square, word)) in self.out.pixel::<N>(x).enumerate() {
                let mut signed = [[V::zero(); N]; 2];
                for (k, train) in trains.iter().enumerate() {
                    for (sign, sums) in signed.iter_mut().enumerate() {
                        let at = (k * entries + (usize::from(train[step][sign]) & (entries - 1))) * N;
                        for n in 0..N {
                            // SAFETY: the code is masked to below `entries`, and the length was checked above.
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
