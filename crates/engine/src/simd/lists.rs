//! Lists of weight rows for the forward kernels.
//!
//! The sum of a list's rows ([`super::forward`]) reads rows by number without a check. No list can lead it
//! astray, because lists are made in this file only: [`Compact`] numbers the channels of a block, each once,
//! [`Merged`] adds the offsets of the nine taps, and both keep the numbers that bound their entries. Their
//! fields are private, and what a kernel needs of its weights follows from [`Merged::rows`].

use super::{Isa, Kernel, Vector, dispatch};
use crate::events::make_room;
use crate::spikes::{Shape, Spikes};
use std::ops::Range;

/// Event lists are padded to a multiple of this with the number of a zero row.
pub(crate) const PAD: usize = 4;

/// Row numbers in event lists are kept times this, half the bytes of a vector: the largest that leaves
/// sixteen bits enough, and an address is one multiplication away.
pub(crate) const ROW: usize = 32;

/// Most entries of lists one after the other: where each starts is kept in 32 bits.
pub(crate) const MOST: usize = u32::MAX as usize;

/// Input channels of a block: as many as sixteen bits can number the rows of.
pub(crate) const BLOCK: usize = 128;

const _: () = assert!(9 * BLOCK * ROW <= u16::MAX as usize, "the zero row comes after those of nine taps");

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

/// Room after the first `end` entries for the selections from some words, which write sixty-four entries each
/// however few they choose.
#[inline(always)]
pub(crate) fn room_for(buffer: &mut Vec<u16>, end: usize, words: usize) -> &mut [u16] {
    let room = end + 64 * (words + 1);
    if buffer.len() < room {
        make_room(buffer, 2 * room);
    }
    buffer
}

/// The sixty-four entries of `buffer` from `at` on.
#[inline(always)]
pub(crate) fn slots(buffer: &mut [u16], at: usize) -> &mut [u16; 64] {
    (&mut buffer[at..at + 64]).try_into().expect("sixty-four entries")
}

/// Where a list starts, as lists keep it.
///
/// # Panics
/// If it is past what 32 bits number; [`crate::Packed::most_steps`] keeps lists from getting there.
#[inline(always)]
pub(crate) fn number(start: usize) -> u32 {
    assert!(start <= MOST, "a list with more entries than 32 bits number");
    start as u32
}

/// Channels that fired, for one block of channels, `[pixel][step]`.
#[derive(Debug, Default)]
pub(crate) struct Compact {
    /// Channels of the block, at most [`BLOCK`]: entries are below as many times [`ROW`].
    size: usize,
    steps: usize,
    /// Lists, and one train of empty ones for what lies outside the image; none while they are being made.
    lists: usize,
    /// Where each list starts, ascending; one more at the end, and perhaps others after it.
    offsets: Vec<u32>,
    /// Channel numbers within the block times [`ROW`], ascending within a list; at least 64 more entries
    /// follow.
    channels: Vec<u16>,
}

impl Compact {
    /// Lists the spikes of some words of channels, at most [`BLOCK`], that `keep` (`[pixel][word]`) lets
    /// through.
    pub fn build(&mut self, isa: Isa, spikes: &Spikes, keep: Option<&[u64]>, block: Range<usize>) {
        dispatch(isa, CompactKernel { lists: self, spikes, keep, block });
    }

    /// Where each list starts, and one more.
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
        assert!(size <= BLOCK, "a block of at most {BLOCK} channels");
        // Whatever stands past the last channel is no spike.
        let valid = |word: usize| !0u64 >> (64 * (word + 1)).saturating_sub(self.spikes.channels()).min(63);
        self.lists.lists = 0;
        let Compact { offsets, channels, .. } = &mut *self.lists;
        let lists = (self.spikes.pixels() + 1) * steps;
        make_room(offsets, lists + 1);
        offsets[0] = 0;
        let mut end = 0;
        for (pixel, train) in self.spikes.words().chunks_exact(words * steps).enumerate() {
            let channels = room_for(channels, end, steps * self.block.len());
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
            number(end); // and those before it are not larger
        }
        offsets[lists - steps + 1..=lists].fill(number(end));
        (self.lists.size, self.lists.steps, self.lists.lists) = (size, steps, lists);
    }
}

/// Row numbers (times [`ROW`]) of the events around each `[pixel of a strip][step]`, padded.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    /// Rows that the entries number.
    rows: usize,
    /// What a kernel sums.
    lists: Lists,
    /// One output row's columns: the events of the three input rows, `[column][step]`.
    columns: Lists,
}

/// Lists of numbers, one after the other.
#[derive(Debug, Default)]
struct Lists {
    /// At least [`WIDE`] more entries follow the last list.
    entries: Vec<u16>,
    /// Where each list starts, ascending; one more at the end.
    starts: Vec<u32>,
}

impl Merged {
    /// Merges the lists of each output pixel of some rows. `size` is how many rows of weights each tap has;
    /// it is at least the channels of `compact`.
    pub fn build(&mut self, isa: Isa, compact: &Compact, image: Shape, size: usize, rows: Range<usize>) {
        dispatch(isa, Merge { compact, merged: self, image, size, rows });
    }

    /// How many rows the entries number: a kernel's weights must have as many.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// All entries, each below [`Merged::rows`] times [`ROW`] and a multiple of it, as far as lists go.
    pub(super) fn entries(&self) -> &[u16] {
        &self.lists.entries
    }

    /// Where the list of each `[pixel][step]` starts, ascending; one more at the end.
    pub(super) fn starts(&self) -> &[u32] {
        &self.lists.starts
    }
}

/// Merges the lists of each output pixel's neighbours, first down the columns, then across: every column
/// serves three pixels.
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
        assert!(compact.size <= size && size <= BLOCK, "as many rows as channels, at most {BLOCK}");
        let steps = compact.steps;
        // Lists that are being made number nothing yet.
        merged.lists.clear();
        merged.rows = 9 * size + 1;
        for y in self.rows {
            // The neighbours at -1, 0 and 1, those outside as number `end`, and the offset of their weight
            // rows.
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
            // What lies outside is empty.
            let Lists { entries, starts } = &mut merged.columns;
            starts.resize(starts.len() + steps, starts[starts.len() - 1]);
            for x in 0..width {
                let neighbours = around(x, width, 3).map(|(u, offset)| (u * steps, offset));
                merged.lists.append::<V>(entries, starts, neighbours, steps, Some((9 * size * ROW) as u16));
            }
        }
    }
}

/// Entries copied at a time.
const WIDE: usize = 16;

impl Lists {
    /// No list.
    fn clear(&mut self) {
        self.starts.clear();
        self.starts.push(0);
    }

    /// Appends `steps` lists: step by step the lists of three neighbours, one after the other, each entry
    /// plus its neighbour's offset; padded with `padding` to a multiple of [`PAD`] if it is given.
    ///
    /// The neighbours are given by the first of their lists (one per step, consecutive) among those that
    /// `starts` delimits in `source`, ascending, one more at the end.
    #[inline(always)]
    fn append<V: Vector>(
        &mut self,
        source: &[u16],
        starts: &[u32],
        neighbours: [(usize, u16); 3],
        steps: usize,
        padding: Option<u16>,
    ) {
        let mut end = *self.starts.last().expect("it holds at least the start") as usize;
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
                // Once even if there is nothing to copy: a branch that is always taken is predicted.
                loop {
                    // SAFETY: `starts` ascends, here and in every list of this file, to its last entry, after
                    // which
                    // `source` has `WIDE` more. What is copied adds up to `copied`, so that `to` is at most
                    // `most`, and `target` has `2 * WIDE` more.
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

    /// The rows that a pixel's list should number at a step: the channels that fired at each tap, taps by
    /// columns.
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

    /// Small enough for Miri, which sees reads and writes out of bounds that go unnoticed otherwise.
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
                // Bits that should not be there name no row.
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
