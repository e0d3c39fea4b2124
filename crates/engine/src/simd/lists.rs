//! Lists of weight rows for the forward kernels.
//!
//! The sum of a list's rows ([`super::forward`]) reads rows by number without a bounds check. This is sound
//! because lists are built only in this file: [`Compact`] lists the channels of a block, each at most once,
//! [`Merged`] adds the offsets of the nine taps, and both store the bounds of their entries. Their fields are
//! private, and [`Merged::rows`] states how many weight rows a kernel needs.

use super::{Isa, Kernel, Vector, dispatch};
use crate::events::grow_to;
use crate::spikes::{Shape, Spikes};
use std::ops::Range;

/// The lengths of event lists are padded to a multiple of this, with the number of a zero row.
pub(crate) const PAD: usize = 4;

/// Row numbers in event lists are stored multiplied by this, half the size of a vector in bytes. It is the
/// largest factor for which sixteen bits are enough, and an address is then a single multiplication.
pub(crate) const ROW: usize = 32;

/// Largest total number of entries in consecutive lists, since the start of each is stored in 32 bits.
pub(crate) const MOST: usize = u32::MAX as usize;

/// Number of input channels in a block, so few that sixteen bits can number their rows.
pub(crate) const BLOCK: usize = 128;

const _: () = assert!(
    9 * BLOCK * ROW <= u16::MAX as usize,
    "sixteen bits must number the rows of nine taps and a zero row"
);

/// `0, 1, .. 63`.
const CHANNELS: [u8; 64] = {
    let mut table = [0; 64];
    let mut i = 0;
    while i < 64 {
        table[i] = i as u8;
        i += 1;
    }
    table
};

/// Grows a buffer so that the selections from some words can be written after its first `end` entries. Each
/// selection writes sixty-four entries, however few it selects.
#[inline(always)]
pub(crate) fn grow_for(buffer: &mut Vec<u16>, end: usize, words: usize) -> &mut [u16] {
    let needed = end + 64 * (words + 1);
    if buffer.len() < needed {
        grow_to(buffer, 2 * needed);
    }
    buffer
}

/// The sixty-four entries of `buffer` from `at` on.
#[inline(always)]
pub(crate) fn slots(buffer: &mut [u16], at: usize) -> &mut [u16; 64] {
    (&mut buffer[at..at + 64]).try_into().expect("sixty-four entries")
}

/// The start of a list, as lists store it.
///
/// # Panics
/// If it does not fit into 32 bits; [`crate::Packed::most_steps`] prevents this.
#[inline(always)]
pub(crate) fn number(start: usize) -> u32 {
    assert!(start <= MOST, "the lists have more entries than 32 bits can number");
    start as u32
}

/// Lists of the channels that fired, for one block of channels, `[pixel][step]`.
#[derive(Debug, Default)]
pub(crate) struct Compact {
    /// Number of channels in the block, at most [`BLOCK`]; entries are below `size` times [`ROW`].
    size: usize,
    steps: usize,
    /// Number of lists, including one train of empty lists for pixels outside of the
    /// image; 0 while they are being built.
    lists: usize,
    /// Start of each list, ascending, followed by the end of the last list. Entries after that are unused.
    offsets: Vec<u32>,
    /// Channel numbers within the block times [`ROW`], ascending within a
    /// list; at least 64 unused entries follow.
    channels: Vec<u16>,
}

impl Compact {
    /// Lists the spikes of some words of channels, at most [`BLOCK`], except those that the dropout
    /// mask `keep` (`[pixel][word]`) drops.
    pub fn build(&mut self, isa: Isa, spikes: &Spikes, keep: Option<&[u64]>, block: Range<usize>) {
        dispatch(isa, CompactKernel { lists: self, spikes, keep, block });
    }

    /// Start of each list, followed by the end of the last.
    fn offsets(&self) -> &[u32] {
        &self.offsets[..=self.lists]
    }
}

struct CompactKernel<'a> {
    lists: &'a mut Compact,
    spikes: &'a Spikes,
    keep: Option<&'a [u64]>,
    block: Range<usize>,
}

impl Kernel for CompactKernel<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        const SHIFT: u32 = ROW.ilog2();
        let (words, steps) = (self.spikes.words_per_step(), self.spikes.steps());
        let size = self.spikes.channels().min(64 * self.block.end) - 64 * self.block.start;
        assert!(size <= BLOCK, "a block has at most {BLOCK} channels");
        // Bits past the last channel are not spikes.
        let valid = |word: usize| !0u64 >> (64 * (word + 1)).saturating_sub(self.spikes.channels()).min(63);
        self.lists.lists = 0;
        let Compact { offsets, channels, .. } = &mut *self.lists;
        let lists = (self.spikes.pixels() + 1) * steps;
        grow_to(offsets, lists + 1);
        offsets[0] = 0;
        let mut end = 0;
        for (pixel, train) in self.spikes.words().chunks_exact(words * steps).enumerate() {
            let channels = grow_for(channels, end, steps * self.block.len());
            let starts = &mut offsets[pixel * steps + 1..][..steps];
            for (start, at) in starts.iter_mut().zip(train.chunks_exact(words)) {
                for (i, word) in self.block.clone().enumerate() {
                    let keep = self.keep.map_or(!0, |keep| keep[pixel * words + word]);
                    let kept = at[word] & keep & valid(word);
                    let offset = (64 * i * ROW) as u16;
                    end += V::select::<SHIFT>(&CHANNELS, kept, offset, slots(channels, end));
                }
                *start = end as u32;
            }
            number(end); // checks the largest start; those before it are not larger
        }
        offsets[lists - steps + 1..=lists].fill(number(end));
        (self.lists.size, self.lists.steps, self.lists.lists) = (size, steps, lists);
    }
}

/// Padded lists of the row numbers (times [`ROW`]) of the events around each `[pixel of a strip][step]`.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    /// Number of rows that entries can number.
    rows: usize,
    /// The lists that a kernel sums.
    lists: Lists,
    /// The lists of the columns of one output row: the events of three input rows, `[column][step]`.
    columns: Lists,
}

/// Consecutive lists of numbers.
#[derive(Debug, Default)]
struct Lists {
    /// The entries of all lists; at least [`WIDE`] unused entries follow the last list.
    entries: Vec<u16>,
    /// Start of each list, ascending, followed by the end of the last.
    starts: Vec<u32>,
}

impl Merged {
    /// Merges the lists of each output pixel of some rows. `size` is the number of weight rows for each tap,
    /// which is at least the number of channels of `compact`.
    pub fn build(&mut self, isa: Isa, compact: &Compact, image: Shape, size: usize, rows: Range<usize>) {
        dispatch(isa, Merge { compact, merged: self, image, size, rows });
    }

    /// Number of rows that entries can number. A kernel's weights must have at least as many.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// All entries. Within lists, each is a multiple of [`ROW`] and below [`Merged::rows`] times [`ROW`].
    pub(super) fn entries(&self) -> &[u16] {
        &self.lists.entries
    }

    /// Start of the list of each `[pixel][step]`, ascending, followed by the end of the last.
    pub(super) fn starts(&self) -> &[u32] {
        &self.lists.starts
    }
}

/// Merges the lists of each output pixel's neighbours, first within columns, then across columns:
/// every column is used for three pixels.
struct Merge<'a> {
    compact: &'a Compact,
    merged: &'a mut Merged,
    image: Shape,
    size: usize,
    rows: Range<usize>,
}

impl Kernel for Merge<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let Merge { compact, merged, image: Shape { height, width, .. }, size, .. } = self;
        assert!(
            compact.size <= size && size <= BLOCK,
            "there must be as many rows as channels, at most {BLOCK}"
        );
        let steps = compact.steps;
        // While lists are being built, there are none to read.
        merged.lists.clear();
        merged.rows = 9 * size + 1;
        for y in self.rows {
            // The neighbours at -1, 0 and 1 (`end` for those outside of the image),
            // and the offsets of their weight rows.
            let around = |at: usize, end: usize, taps: usize| {
                [0, 1, 2].map(|tap| ((at + tap).wrapping_sub(1).min(end), (tap * taps * size * ROW) as u16))
            };
            let rows = around(y, height, 1);
            merged.columns.clear();
            for x in 0..width {
                let outside = height * width;
                let first = |v: usize| if v == height { outside } else { v * width + x };
                let neighbours = rows.map(|(v, offset)| (first(v) * steps, offset));
                merged.columns.append::<V>(&compact.channels, compact.offsets(), neighbours, steps, None);
            }
            // Columns outside of the image are empty.
            let Lists { entries, starts } = &mut merged.columns;
            starts.resize(starts.len() + steps, starts[starts.len() - 1]);
            for x in 0..width {
                let neighbours = around(x, width, 3).map(|(u, offset)| (u * steps, offset));
                merged.lists.append::<V>(entries, starts, neighbours, steps, Some((9 * size * ROW) as u16));
            }
        }
    }
}

/// Number of entries copied at a time.
const WIDE: usize = 16;

impl Lists {
    /// Removes all lists.
    fn clear(&mut self) {
        self.starts.clear();
        self.starts.push(0);
    }

    /// Appends `steps` lists, one for each step. A list consists of the lists of three
    /// neighbours, with the neighbour's offset added to each entry. If `padding` is given, the
    /// list is padded with it to a multiple of [`PAD`].
    ///
    /// A neighbour is given by the number of its first list; its lists, one per step, are consecutive.
    /// `starts` are the starts of the lists in `source`, ascending, followed by the end of the last.
    #[inline(always)]
    fn append<V: Vector>(
        &mut self,
        source: &[u16],
        starts: &[u32],
        neighbours: [(usize, u16); 3],
        steps: usize,
        padding: Option<u16>,
    ) {
        let mut end = *self.starts.last().expect("it contains at least the first start") as usize;
        let trains = neighbours.map(|(first, offset)| (&starts[first..][..steps + 1], offset));
        let copied: usize = trains.iter().map(|(starts, _)| (starts[steps] - starts[0]) as usize).sum();
        let most = end + copied + steps * PAD;
        number(most);
        if self.entries.len() < most + 2 * WIDE {
            self.entries.resize(2 * (most + 2 * WIDE), 0);
        }
        assert!(starts.last().is_some_and(|&n| n as usize + WIDE <= source.len()));
        debug_assert!(trains.iter().all(|(train, _)| train.is_sorted() && train.last() <= starts.last()));
        let (source, target) = (source.as_ptr(), self.entries.as_mut_ptr());
        self.starts.reserve(steps);
        for step in 0..steps {
            for (starts, offset) in trains {
                let (mut from, stop) = (starts[step] as usize, starts[step + 1] as usize);
                let mut to = end;
                end += stop - from;
                // The loop runs once even if there is nothing to copy, so that its branch almost always
                // goes the same way and is predicted.
                loop {
                    // SAFETY: `starts` ascends, as in every list of this file, and `source` has `WIDE`
                    // entries after the last start. The lengths of the copied lists add up to `copied`, so
                    // `to` is at most `most`, and `target` has `2 * WIDE` entries after that.
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
                    // SAFETY: `end` is at most `most`.
                    unsafe { *target.add(end + i) = padding };
                }
                end = end.next_multiple_of(PAD);
            }
            self.starts.push(end as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows that a pixel's list should number at a step: the channels that fired at
    /// each tap, with taps ordered by columns.
    fn expected(
        spikes: &Spikes,
        keep: &[u64],
        shape: Shape,
        size: usize,
        pixel: usize,
        step: usize,
    ) -> Vec<u16> {
        let (y, x) = (pixel / shape.width, pixel % shape.width);
        let mut rows = Vec::new();
        for (tap, (kx, ky)) in (0..3).flat_map(|kx| (0..3).map(move |ky| (kx, ky))).enumerate() {
            let (v, u) = (y + ky, x + kx);
            if !(1..=shape.height).contains(&v) || !(1..=shape.width).contains(&u) {
                continue;
            }
            let at = (v - 1) * shape.width + u - 1;
            let words = spikes.words_per_step();
            for channel in 0..shape.channels {
                let kept = keep[at * words + channel / 64] >> (channel % 64) & 1 == 1;
                if kept && spikes.get(at, step, channel) {
                    rows.push(((tap * size + channel) * ROW) as u16);
                }
            }
        }
        rows.resize(rows.len().next_multiple_of(PAD), (9 * size * ROW) as u16);
        rows
    }

    /// Small enough for Miri, which detects reads and writes out of bounds that would otherwise go unnoticed.
    #[test]
    fn merged_lists_number_the_rows_of_all_neighbours() {
        let (mut compact, mut merged) = (Compact::default(), Merged::default());
        for (number, (channels, height, width, steps, rate)) in
            [(3, 3, 4, 3, 0.3), (70, 2, 2, 2, 1.0), (128, 1, 3, 2, 0.2), (1, 3, 1, 4, 0.0), (5, 1, 1, 5, 0.5)]
                .into_iter()
                .enumerate()
        {
            let shape = Shape { channels, height, width };
            let mut spikes = Spikes::random(shape, steps, rate, number as u64);
            let words = spikes.words_per_step();
            let keep: Vec<u64> =
                (0..shape.pixels() * words).map(|i| !(i as u64).wrapping_mul(0xABCD_EF01_2345)).collect();
            if channels % 64 != 0 {
                // Invalid bits past the last channel must not lead to a row.
                spikes.words_mut().chunks_exact_mut(words).for_each(|at| at[words - 1] |= 1 << 63);
            }
            let size = channels.max(4); // the last block of a layer has fewer channels than the others
            for isa in Isa::available() {
                compact.build(isa, &spikes, Some(&keep), 0..words);
                let rows = height.min(1)..height;
                for rows in [0..rows.start, rows] {
                    merged.build(isa, &compact, shape, size, rows.clone());
                    assert_eq!(merged.rows(), 9 * size + 1);
                    assert_eq!(merged.starts().len(), rows.len() * width * steps + 1);
                    for (i, ends) in merged.starts().windows(2).enumerate() {
                        let list = &merged.entries()[ends[0] as usize..ends[1] as usize];
                        let pixel = rows.start * width + i / steps;
                        let expected = expected(&spikes, &keep, shape, size, pixel, i % steps);
                        assert_eq!(list, expected, "{shape:?} {isa} pixel {pixel} step {}", i % steps);
                    }
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "at most 128 channels")]
    fn refuses_blocks_that_sixteen_bits_cannot_number() {
        Compact::default().build(Isa::Portable, &Spikes::new(1, 1, 129), None, 0..3);
    }

    #[test]
    #[should_panic(expected = "as many rows as channels")]
    fn refuses_fewer_rows_than_channels() {
        let shape = Shape { channels: 8, height: 1, width: 1 };
        let mut compact = Compact::default();
        compact.build(Isa::Portable, &Spikes::new(1, 1, 8), None, 0..1);
        Merged::default().build(Isa::Portable, &compact, shape, 7, 0..1);
    }
}
