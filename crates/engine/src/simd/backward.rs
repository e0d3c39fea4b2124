//! Backward kernels: one walk over an input channel's spikes gives both gradients.
//!
//! For a chunk of sixteen output channels, `d = dLoss/dU` of some steps stands in padded frames. Each input spike
//! loads the nine rows of `d` it reached; each load feeds one multiply-add (with the weights: the gradient of
//! the spike) and one add (into the gradient of the weights). Weights and their gradients of the channel's
//! nine taps stay in registers during the walk.

use super::{Kernel, Row, Vector};

/// One chunk of sixteen output channels against one cell (time tile and window) of input events.
pub(crate) struct ConvWalk<'a> {
    /// Weights `[input channel][9 taps, last first]`.
    pub weights: &'a [[Row; 9]],
    /// Their gradients, added to.
    pub gradients: &'a mut [[Row; 9]],
    /// `d` in padded frames: position `p` reached the rows `p + i * stride + j` for `i, j` in 0..3.
    pub frames: &'a [Row],
    /// Frame columns, one more than the image has.
    pub stride: usize,
    /// Where the events of each input channel start, every `every`-th entry; one more at the end.
    pub offsets: &'a [u32],
    /// Entries of `offsets` per channel.
    pub every: usize,
    /// Positions of the events, all such that their rows are within `frames`.
    pub positions: &'a [u16],
    /// Gradient of each event, added to; empty if not wanted (the first layer).
    pub events: &'a mut [f32],
}

impl Kernel for ConvWalk<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let stride = self.stride;
        let within = self.frames.len().saturating_sub(2 * stride + 2);
        let taps: [usize; 9] = std::array::from_fn(|j| j / 3 * stride + j % 3);
        for (channel, (weights, gradients)) in self.weights.iter().zip(self.gradients.iter_mut()).enumerate()
        {
            let start = self.offsets[channel * self.every] as usize;
            let end = self.offsets[(channel + 1) * self.every] as usize;
            if start == end {
                continue;
            }
            let positions = &self.positions[start..end];
            let mut sums: [V; 9] = std::array::from_fn(|j| V::load(&gradients[j]));
            if self.events.is_empty() {
                for &position in positions {
                    let p = usize::from(position);
                    assert!(p < within);
                    for j in 0..9 {
                        sums[j] = sums[j].add(V::load(&self.frames[p + taps[j]]));
                    }
                }
            } else {
                let weights: [V; 9] = std::array::from_fn(|j| V::load(&weights[j]));
                let mut visit = |position: u16| {
                    let p = usize::from(position);
                    assert!(p < within);
                    // Two chains: one alone would wait for itself.
                    let mut products = [V::zero(); 2];
                    for j in 0..9 {
                        // SAFETY: `p` is below `within`, and `taps` go at most `2 * stride + 2` further.
                        let d = V::load(unsafe { self.frames.get_unchecked(p + taps[j]) });
                        products[j % 2] = d.mul_add(weights[j], products[j % 2]);
                        sums[j] = sums[j].add(d);
                    }
                    products[0].add(products[1])
                };
                // Sixteen events at a time, so that their sums over lanes are shared work.
                let (full, rest) = positions.as_chunks::<16>();
                let (events, last) = self.events[start..end].as_chunks_mut::<16>();
                for (positions, events) in full.iter().zip(events) {
                    let mut folds = [V::zero(); 4];
                    for (fold, positions) in folds.iter_mut().zip(positions.as_chunks::<4>().0) {
                        *fold = V::fold(positions.map(&mut visit));
                    }
                    V::load(events).add(V::finish(folds)).store(events);
                }
                if !rest.is_empty() {
                    let mut folds = [V::zero(); 4];
                    for (fold, positions) in folds.iter_mut().zip(rest.chunks(4)) {
                        let mut products = [V::zero(); 4];
                        for (product, &position) in products.iter_mut().zip(positions) {
                            *product = visit(position);
                        }
                        *fold = V::fold(products);
                    }
                    let mut sums = [0.0; 16];
                    V::finish(folds).store(&mut sums);
                    last.iter_mut().zip(sums).for_each(|(event, sum)| *event += sum);
                }
            }
            for j in 0..9 {
                sums[j].store(&mut gradients[j]);
            }
        }
    }
}

/// Gradient of the input events of a fully connected layer, one chunk of `16 N` outputs.
pub(crate) struct FullInput<'a, const N: usize> {
    /// Weight rows of this chunk, `[row][N]`.
    pub rows: &'a [Row],
    /// `d` of this chunk, `[step][N]`.
    pub d: &'a [Row],
    /// Where each row's events start; one more at the end.
    pub offsets: &'a [u32],
    /// Step of each event.
    pub steps: &'a [u16],
    /// Number of each event within `events`.
    pub numbers: &'a [u32],
    /// Gradient of each event, added to.
    pub events: &'a mut [f32],
}

impl<const N: usize> Kernel for FullInput<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        for row in 0..self.offsets.len() - 1 {
            let (start, end) = (self.offsets[row] as usize, self.offsets[row + 1] as usize);
            if start == end {
                continue;
            }
            let weights: [V; N] = std::array::from_fn(|n| V::load(&self.rows[row * N + n]));
            for (&step, &number) in self.steps[start..end].iter().zip(&self.numbers[start..end]) {
                let d = &self.d[usize::from(step) * N..][..N];
                let mut product = weights[0].mul(V::load(&d[0]));
                for n in 1..N {
                    product = weights[n].mul_add(V::load(&d[n]), product);
                }
                self.events[number as usize] += product.sum();
            }
        }
    }
}

/// Adds, for each row, the `d` of its events' steps: the weights' gradient of one sample and chunk of `16 N`.
pub(crate) struct FullWeights<'a, const N: usize> {
    /// `d` of this chunk, `[step][N]`.
    pub d: &'a [Row],
    /// Steps of the row's events.
    pub steps: &'a [u16],
    /// Gradient of the row, added to.
    pub row: &'a mut [Row; N],
}

impl<const N: usize> FullWeights<'_, N> {
    /// The sum, for one row; inlined into a kernel that walks all rows.
    #[inline(always)]
    pub(crate) fn add<V: Vector>(self) {
        let mut sums: [V; N] = std::array::from_fn(|n| V::load(&self.row[n]));
        for &step in self.steps {
            let d = &self.d[usize::from(step) * N..][..N];
            for n in 0..N {
                sums[n] = sums[n].add(V::load(&d[n]));
            }
        }
        for n in 0..N {
            sums[n].store(&mut self.row[n]);
        }
    }
}
