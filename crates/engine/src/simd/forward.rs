//! Forward kernels: sums of the weight rows that events point at, with the neuron fused in.
//!
//! A row is the weights from one input (and tap) to `N` times sixteen output channels. An event list holds row
//! numbers; the sum of a list is one neuron group's weighted input at one step, and the membrane stays in
//! registers from step to step.

use super::{Kernel, Vector};

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

/// Row number that the event lists are padded with to a multiple of [`PAD`]; its row is zero.
pub(crate) const PAD: usize = 4;

/// Sum of the rows of a list whose length is a multiple of [`PAD`], in four interleaved partial sums.
///
/// # Safety
/// Every entry of `list` times `N` plus `N - 1` is an index of `rows`.
#[inline(always)]
unsafe fn sum_rows<V: Vector, const N: usize>(rows: &[[f32; 16]], list: &[u16]) -> [V; N] {
    let mut sums = [[V::zero(); N]; PAD];
    for four in list.chunks_exact(PAD) {
        let packed = u64::from(four[0])
            | u64::from(four[1]) << 16
            | u64::from(four[2]) << 32
            | u64::from(four[3]) << 48;
        for (i, sum) in sums.iter_mut().enumerate() {
            let row = (packed >> (16 * i)) as u16 as usize * N;
            for n in 0..N {
                debug_assert!(row + n < rows.len());
                // SAFETY: the caller's promise.
                sum[n] = sum[n].add(V::load(unsafe { rows.get_unchecked(row + n) }));
            }
        }
    }
    let mut total = [V::zero(); N];
    for n in 0..N {
        total[n] = sums[0][n].add(sums[1][n]).add(sums[2][n].add(sums[3][n]));
    }
    total
}

/// One chunk of `16 N` output channels over a strip of pixels and one block of input channels.
pub(crate) struct ConvForward<'a, const N: usize> {
    /// Weight rows of this chunk and block; the last is zero.
    pub rows: &'a [[f32; 16]],
    /// Row numbers, all below `rows.len() / N`.
    pub list: &'a [u16],
    /// Where the list of `[pixel][step]` starts; one more at the end.
    pub offsets: &'a [u32],
    /// Time steps.
    pub steps: usize,
    /// Sums of the blocks before, `[pixel][step][N]`; empty if there is one block only.
    pub partial: &'a mut [[f32; 16]],
    /// Whether this is the first block of input channels.
    pub first: bool,
    /// Whether this is the last one, after which the neurons act.
    pub last: bool,
    /// The neuron.
    pub dynamics: Dynamics,
    /// Sums of squared weighted inputs, `[step]`.
    pub squares: &'a mut [[f32; 16]],
    /// The strip's spike words, `[pixel][step][word]`.
    pub words: &'a mut [u64],
    /// Words per pixel and step.
    pub words_per_step: usize,
    /// Number of this chunk.
    pub chunk: usize,
}

impl<const N: usize> Kernel for ConvForward<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let pixels = (self.offsets.len() - 1) / self.steps;
        let rows = self.rows.len() / N;
        let listed = &self.list[..*self.offsets.last().expect("one more offset than lists") as usize];
        debug_assert!(listed.iter().all(|&row| usize::from(row) < rows));
        let Dynamics { scale, lambda, v_th } = self.dynamics;
        let (scale, lambda, v_th) = (V::splat(scale), V::splat(lambda), V::splat(v_th));
        let lane = self.chunk * N;
        for pixel in 0..pixels {
            let mut membrane = [V::zero(); N];
            let offsets = &self.offsets[pixel * self.steps..(pixel + 1) * self.steps + 1];
            for step in 0..self.steps {
                let list = &listed[offsets[step] as usize..offsets[step + 1] as usize];
                // SAFETY: the field's contract, checked above in debug builds: entries are below `rows`.
                let mut z = unsafe { sum_rows::<V, N>(self.rows, list) };
                let at = pixel * self.steps + step;
                if !self.first {
                    for n in 0..N {
                        z[n] = z[n].add(V::load(&self.partial[at * N + n]));
                    }
                }
                if !self.last {
                    for n in 0..N {
                        z[n].store(&mut self.partial[at * N + n]);
                    }
                    continue;
                }
                let mut square = V::load(&self.squares[step]);
                for n in 0..N {
                    let current = z[n].mul(scale);
                    square = current.mul_add(current, square);
                    let potential = membrane[n].add(current);
                    let fired = potential.greater(v_th);
                    membrane[n] = potential.mul(lambda).clear(fired);
                    let group = lane + n;
                    self.words[at * self.words_per_step + group / 4] |=
                        u64::from(fired) << (16 * (group % 4));
                }
                square.store(&mut self.squares[step]);
            }
        }
    }
}

/// One chunk of `16 N` neurons of a fully connected layer.
pub(crate) struct FullForward<'a, const N: usize> {
    /// Weight rows of this chunk.
    pub rows: &'a [[f32; 16]],
    /// Row numbers, all below `rows.len() / N`, `[step]`.
    pub list: &'a [u32],
    /// Where each step's list starts; one more at the end.
    pub offsets: &'a [u32],
    /// Weighted input, `[step][N]`, to be written.
    pub current: &'a mut [[f32; 16]],
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
    pub current: &'a [[f32; 16]],
    /// Vectors of sixteen neurons per step.
    pub vectors: usize,
    /// The neuron (its scale is already in `current`).
    pub dynamics: Dynamics,
    /// Sums of squared weighted inputs, `[step]`.
    pub squares: &'a mut [[f32; 16]],
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
        let (lambda, v_th) = (V::splat(self.dynamics.lambda), V::splat(self.dynamics.v_th));
        for n in 0..self.vectors {
            let mut membrane = V::zero();
            let group = self.first + n;
            for step in 0..self.squares.len() {
                let current = V::load(&self.current[step * self.vectors + n]);
                current.mul_add(current, V::load(&self.squares[step])).store(&mut self.squares[step]);
                let potential = membrane.add(current);
                let fired = potential.greater(v_th);
                membrane = potential.mul(lambda).clear(fired);
                self.words[step * self.words_per_step + group / 4] |= u64::from(fired) << (16 * (group % 4));
            }
        }
    }
}

/// Sums rows of a table that stays in the nearest cache: how fast this machine can add at all, one load per add.
pub(super) struct Ceiling<'a> {
    pub rows: &'a [[f32; 16]],
    pub list: &'a [u16],
}

impl Kernel for Ceiling<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<V: Vector>(self) -> f32 {
        const N: usize = 4;
        let rows = self.rows.len() / N;
        assert!(self.list.iter().all(|&row| usize::from(row) < rows));
        let mut total = V::zero();
        for list in self.list.chunks_exact(8 * PAD) {
            // SAFETY: every entry was checked above.
            let sums = unsafe { sum_rows::<V, N>(self.rows, list) };
            total = total.add(sums[0].add(sums[1]).add(sums[2].add(sums[3])));
        }
        total.sum()
    }
}
