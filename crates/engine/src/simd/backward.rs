//! Backward kernels: one walk over an input channel's spikes gives both gradients.
//!
//! For a chunk of sixteen output channels, `d = dLoss/dU` of some steps stands in padded frames. Each input
//! spike loads the nine rows of `d` it reached; each load feeds one multiply-add (with the weights: the
//! gradient of the spike) and one add (into the gradient of the weights). Weights and their gradients of the
//! channel's nine taps stay in registers during the walk.

use super::{Kernel, Part, Row, Vector};

/// One cell (time tile and window) of input events, and the `d` they reached of sixteen output channels.
pub(crate) struct Cell<'a> {
    /// `d` in padded frames: position `p` reached the rows `p + i * stride + j` for `i, j` in 0..3.
    pub frames: &'a [Row],
    /// Frame columns, one more than the image has.
    pub stride: usize,
    /// Where the events of each input channel start, every `every`-th entry; one more at the end.
    pub offsets: &'a [u32],
    /// Entries of `offsets` per channel.
    pub every: usize,
    /// Positions of the events; their rows must be within `frames`, which is checked event by event.
    pub positions: &'a [u16],
}

impl Cell<'_> {
    /// The events of a channel.
    #[inline(always)]
    fn channel(&self, channel: usize) -> std::ops::Range<usize> {
        self.offsets[channel * self.every] as usize..self.offsets[(channel + 1) * self.every] as usize
    }

    /// How positions reach `d`.
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
    /// Where the taps of each row of the kernel start: three addresses that every event adds its position to.
    bases: [&'a [Row]; 3],
    /// Positions below this have all their rows, the last of them `2 * stride + 2` on, within the frames.
    within: usize,
}

impl<'a> Reach<'a> {
    /// The rows of one position.
    ///
    /// # Panics
    /// If some of them are outside.
    #[inline(always)]
    fn at(&self, position: u16) -> impl Fn(usize) -> &'a Row {
        let position = usize::from(position);
        assert!(position < self.within);
        let bases = self.bases;
        move |tap: usize| {
            assert!(tap < 9);
            // SAFETY: both were checked, and only `Cell::reach` makes a `Reach`.
            unsafe { bases[tap / 3].get_unchecked(position + tap % 3) }
        }
    }
}

/// Both gradients of one chunk of sixteen output channels from one cell of input events.
pub(crate) struct ConvWalk<'a> {
    /// The events and `d`.
    pub cell: Cell<'a>,
    /// Weights `[input channel][9 taps, last first]`.
    pub weights: &'a [[Row; 9]],
    /// Their gradients, added to.
    pub gradients: &'a mut [[Row; 9]],
    /// Gradient of each event, added to; or written, if this is the first chunk.
    pub events: &'a mut [f32],
    /// Whether this is the first chunk.
    pub first: bool,
}

/// Products that wait to be summed over their lanes; a power of two.
const RING: usize = 64;
/// Events walked at a time, so that with fifteen left over from before the ring has room.
const PIECE: usize = RING - 16;

impl Kernel for ConvWalk<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let cell = self.cell;
        let reach = cell.reach();
        // The cell's events are consecutive: their products are numbered through, whatever their channel.
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
                        // Two chains: one alone would wait for itself.
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

/// As [`ConvWalk`], where the gradient of the events is not wanted: the first layer.
pub(crate) struct ConvWeights<'a> {
    /// The events and `d`.
    pub cell: Cell<'a>,
    /// Gradients of the weights, `[input channel][9 taps, last first]`, added to.
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

/// Gradient of the input events of a fully connected layer, one chunk of `16 N` outputs.
pub(crate) struct FullInput<'a, const N: usize> {
    /// Weight rows of this chunk, `[row][N]`.
    pub rows: &'a [Row],
    /// `d` of this chunk, `[moment][N]`.
    pub d: &'a [Row],
    /// Where each row's events start; one more at the end.
    pub offsets: &'a [u32],
    /// Which of `d` each event reached.
    pub moments: &'a [u32],
    /// Number of each event within `events`.
    pub numbers: &'a [u32],
    /// Gradient of each event, added to.
    pub events: &'a mut [f32],
}

impl<const N: usize> Kernel for FullInput<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        // Sixteen products wait for their sums over lanes.
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

/// Adds the lanes of each product to the event of that number.
#[inline(always)]
fn add_sums<V: Vector>(products: &[Row; 16], numbers: &[u32], events: &mut [f32]) {
    let mut sums = [0.0; 16];
    lane_sums::<V>(products).store(&mut sums);
    for (&number, sum) in numbers.iter().zip(sums) {
        events[number as usize] += sum;
    }
}

/// Adds the `d` that a row's events reached: the gradient of its weights, of one chunk of `16 N`.
pub(crate) struct FullWeights<'a, const N: usize> {
    /// `d` of this chunk, `[moment][N]`.
    pub d: &'a [Row],
    /// The moments of the row's events.
    pub moments: &'a [u32],
    /// Gradient of the row, added to.
    pub row: &'a mut [Row; N],
}

impl<const N: usize> FullWeights<'_, N> {
    /// The sum, for one row; inlined into a kernel that walks all rows.
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
