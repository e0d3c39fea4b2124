//! Backward kernels: a single walk over an input channel's spikes computes both gradients.
//!
//! For a chunk of sixteen output channels, `d = dLoss/dU` of some steps is stored in padded frames. Each
//! input spike loads the nine rows of `d` that it reached. Each row is used in one multiply-add (with the
//! weights, for the gradient of the spike) and in one addition (to the gradient of the weights). The weights
//! of the channel's nine taps and their gradients stay in registers during the walk.

use super::{Kernel, Part, Row, Vector};

/// One cell (time tile and window) of input events, and `d` of the sixteen output channels that they reached.
pub(crate) struct Cell<'a> {
    /// `d` in padded frames: position `p` reached the rows `p + i * stride + j` for `i, j` in 0..3.
    pub frames: &'a [Row],
    /// Number of columns in a frame, one more than in the image.
    pub stride: usize,
    /// Every `every`-th entry is the start of an input channel's events; the
    /// last such entry is the end of them all.
    pub offsets: &'a [u32],
    /// Number of entries of `offsets` per channel.
    pub every: usize,
    /// Positions of the events; their rows must be within `frames`, which is checked for each event.
    pub positions: &'a [u16],
}

impl Cell<'_> {
    /// The events of a channel.
    #[inline(always)]
    fn channel(&self, channel: usize) -> std::ops::Range<usize> {
        self.offsets[channel * self.every] as usize..self.offsets[(channel + 1) * self.every] as usize
    }

    /// Finds the rows of `d` that positions reach.
    #[inline(always)]
    fn reach(&self) -> Reach<'_> {
        Reach {
            bases: std::array::from_fn(|i| self.frames.get(self.stride.saturating_mul(i)..).unwrap_or(&[])),
            within: self.frames.len().saturating_sub(self.stride.saturating_mul(2).saturating_add(2)),
        }
    }
}

/// The rows of `d` that the nine taps of a position reach.
struct Reach<'a> {
    /// Start of the taps of each row of the kernel: three addresses to which every event adds its position.
    bases: [&'a [Row]; 3],
    /// All rows of a position below this are within the frames; its last
    /// row is at `position + 2 * stride + 2`.
    within: usize,
}

impl<'a> Reach<'a> {
    /// The rows of one position.
    ///
    /// # Panics
    /// If some of the rows are outside of the frames.
    #[inline(always)]
    fn at(&self, position: u16) -> impl Fn(usize) -> &'a Row {
        let position = usize::from(position);
        assert!(position < self.within);
        let bases = self.bases;
        move |tap: usize| {
            assert!(tap < 9);
            // SAFETY: position and tap were checked, and only `Cell::reach` creates a `Reach`.
            unsafe { bases[tap / 3].get_unchecked(position + tap % 3) }
        }
    }
}

/// Computes both gradients for one chunk of sixteen output channels and one cell of input events.
pub(crate) struct ConvWalk<'a> {
    /// The events and `d`.
    pub cell: Cell<'a>,
    /// Weights `[input channel][9 taps, last first]`.
    pub weights: &'a [[Row; 9]],
    /// Gradients of the weights, to which the kernel adds.
    pub gradients: &'a mut [[Row; 9]],
    /// Gradient of each event. The first chunk writes it, and the others add to it.
    pub events: &'a mut [f32],
    /// Whether this is the first chunk.
    pub first: bool,
}

/// Number of products that can wait to be summed over their lanes; a power of two.
const RING: usize = 64;
/// Number of events processed at a time. They fit into the ring together with up to fifteen earlier products.
const PIECE: usize = RING - 16;

impl Kernel for ConvWalk<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let cell = self.cell;
        let reach = cell.reach();
        // The cell's events are consecutive, so their products are numbered continuously over all channels.
        let base = cell.offsets[0] as usize;
        let mut ring = [Row::ZERO; RING];
        let mut finished = base;
        for (channel, (weights, gradients)) in self.weights.iter().zip(self.gradients.iter_mut()).enumerate()
        {
            let std::ops::Range { start, end } = cell.channel(channel);
            for piece in (start..end).step_by(PIECE) {
                let positions = &cell.positions[piece..end.min(piece + PIECE)];
                for part in 0..16 / V::Part::LANES {
                    let at = part * V::Part::LANES;
                    let mut sums: [V::Part; 9] = std::array::from_fn(|j| V::Part::load(&gradients[j], at));
                    let weights: [V::Part; 9] = std::array::from_fn(|j| V::Part::load(&weights[j], at));
                    for (number, &position) in positions.iter().enumerate() {
                        let reached = reach.at(position);
                        // Two chains of additions, because the latency of a
                        // single chain would limit the loop.
                        let mut products = [V::Part::zero(); 2];
                        for j in 0..9 {
                            let d = V::Part::load(reached(j), at);
                            products[j % 2] = d.mul_add(weights[j], products[j % 2]);
                            sums[j] = sums[j].add(d);
                        }
                        let slot = (piece - base + number) % RING;
                        products[0].add(products[1]).store(&mut ring[slot], at);
                    }
                    for j in 0..9 {
                        sums[j].store(&mut gradients[j], at);
                    }
                }
                let walked = piece + positions.len();
                while finished + 16 <= walked {
                    let block: &[Row; 16] =
                        ring[(finished - base) % RING..][..16].try_into().expect("sixteen products");
                    let events: &mut [f32; 16] =
                        (&mut self.events[finished..finished + 16]).try_into().expect("sixteen events");
                    let sums = lane_sums::<V>(block);
                    if self.first { sums } else { sums.add(V::load(events)) }.store(events);
                    finished += 16;
                }
            }
        }
        let end = cell.offsets[self.weights.len() * cell.every] as usize;
        let block: &[Row; 16] = ring[(finished - base) % RING..][..16].try_into().expect("sixteen products");
        let mut sums = [0.0; 16];
        lane_sums::<V>(block).store(&mut sums);
        for (event, sum) in self.events[finished..end].iter_mut().zip(sums) {
            *event = if self.first { sum } else { sum + *event };
        }
    }
}

/// The sum of the lanes of each of sixteen vectors.
#[inline(always)]
fn lane_sums<V: Vector>(rows: &[Row; 16]) -> V {
    let mut folds = [V::zero(); 4];
    for (fold, [a, b, c, d]) in folds.iter_mut().zip(rows.as_chunks::<4>().0) {
        *fold = V::fold([V::load(a), V::load(b), V::load(c), V::load(d)]);
    }
    V::finish(folds)
}

/// Like [`ConvWalk`], but without the gradient of the events: for the first layer.
pub(crate) struct ConvWeights<'a> {
    /// The events and `d`.
    pub cell: Cell<'a>,
    /// Gradients of the weights, `[input channel][9 taps, last first]`, to which the kernel adds.
    pub gradients: &'a mut [[Row; 9]],
}

impl Kernel for ConvWeights<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let cell = self.cell;
        let reach = cell.reach();
        for (channel, gradients) in self.gradients.iter_mut().enumerate() {
            let positions = &cell.positions[cell.channel(channel)];
            for part in 0..16 / V::Part::LANES {
                let at = part * V::Part::LANES;
                let mut sums: [V::Part; 9] = std::array::from_fn(|j| V::Part::load(&gradients[j], at));
                for &position in positions {
                    let reached = reach.at(position);
                    for j in 0..9 {
                        let d = V::Part::load(reached(j), at);
                        sums[j] = sums[j].add(d);
                    }
                }
                for j in 0..9 {
                    sums[j].store(&mut gradients[j], at);
                }
            }
        }
    }
}

/// Computes the gradient of the input events of a fully connected layer, for one chunk of `16 N` outputs.
pub(crate) struct FullInput<'a, const N: usize> {
    /// Weight rows of this chunk, `[row][N]`.
    pub rows: &'a [Row],
    /// `d` of this chunk, `[moment][N]`.
    pub d: &'a [Row],
    /// Start of each row's events, followed by the end of the last row's.
    pub offsets: &'a [u32],
    /// Index in `d` of the moment (image and step) of each event.
    pub moments: &'a [u32],
    /// Index of each event in `events`.
    pub numbers: &'a [u32],
    /// Gradient of each event, to which the kernel adds.
    pub events: &'a mut [f32],
}

impl<const N: usize> Kernel for FullInput<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        // Up to sixteen products wait to be summed over their lanes.
        let mut products = [Row::ZERO; 16];
        let mut waiting = 0;
        for row in 0..self.offsets.len() - 1 {
            let (start, end) = (self.offsets[row] as usize, self.offsets[row + 1] as usize);
            if start == end {
                continue;
            }
            let weights: [V; N] = std::array::from_fn(|n| V::load(&self.rows[row * N + n]));
            for (number, &moment) in self.moments[start..end].iter().enumerate() {
                let d = &self.d[moment as usize * N..][..N];
                let mut product = weights[0].mul(V::load(&d[0]));
                for n in 1..N {
                    product = weights[n].mul_add(V::load(&d[n]), product);
                }
                product.store(&mut products[waiting]);
                waiting += 1;
                if waiting == 16 {
                    let end = start + number + 1;
                    add_sums::<V>(&products, &self.numbers[end - 16..end], self.events);
                    waiting = 0;
                }
            }
        }
        let end = self.moments.len();
        add_sums::<V>(&products, &self.numbers[end - waiting..], self.events);
    }
}

/// Adds the sum of each product's lanes to the event with its number.
#[inline(always)]
fn add_sums<V: Vector>(products: &[Row; 16], numbers: &[u32], events: &mut [f32]) {
    let mut sums = [0.0; 16];
    lane_sums::<V>(products).store(&mut sums);
    for (&number, sum) in numbers.iter().zip(sums) {
        events[number as usize] += sum;
    }
}

/// Adds up the `d` that a row's events reached: the gradient of the row's
/// weights to one chunk of `16 N` outputs.
pub(crate) struct FullWeights<'a, const N: usize> {
    /// `d` of this chunk, `[moment][N]`.
    pub d: &'a [Row],
    /// The moments of the row's events.
    pub moments: &'a [u32],
    /// Gradient of the row, to which the sum is added.
    pub row: &'a mut [Row; N],
}

impl<const N: usize> FullWeights<'_, N> {
    /// Computes the sum for one row; inlined into a kernel that iterates over all rows.
    #[inline(always)]
    pub(crate) fn add<V: Vector>(self) {
        let mut sums: [V; N] = std::array::from_fn(|n| V::load(&self.row[n]));
        for &moment in self.moments {
            let d = &self.d[moment as usize * N..][..N];
            for n in 0..N {
                sums[n] = sums[n].add(V::load(&d[n]));
            }
        }
        for n in 0..N {
            sums[n].store(&mut self.row[n]);
        }
    }
}
