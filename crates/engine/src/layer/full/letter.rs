//! A group's record as numbers that another process can read: the events, which every output needs, and `d`
//! of the outputs that the other process sums.

use super::{Full, FullRecord, RowEvents};
use crate::simd::Row;
use std::ops::Range;

impl Full {
    /// Writes what the gradient of some chunks needs of a record; nothing if there are none.
    pub fn write_record(&self, record: &FullRecord, chunks: Range<usize>, letter: &mut Vec<u32>) {
        if chunks.is_empty() {
            return;
        }
        let len = record.images * record.steps * self.vectors;
        let d = &record.d[chunks.start * len..chunks.end * len];
        let RowEvents { offsets, moments, .. } = &record.rows;
        let sizes = [record.images, record.steps, offsets.len(), offsets.last().map_or(0, |&n| n as usize)];
        letter.extend(sizes.map(|size| size as u32));
        letter.extend_from_slice(offsets);
        letter.extend_from_slice(&moments[..sizes[3]]);
        letter.extend(d.iter().flat_map(|row| row.0.map(f32::to_bits)));
        letter.extend(record.real.iter().map(|values| values.len() as u32));
        letter.extend(record.real.iter().flatten().map(|value| value.to_bits()));
    }

    /// Reads what [`Full::write_record`] wrote, from the letter's beginning, which is taken away. The
    /// record's first chunk is the first of `chunks`.
    pub fn read_record(&self, chunks: Range<usize>, letter: &mut &[u32]) -> FullRecord {
        if chunks.is_empty() {
            return FullRecord::default();
        }
        let sizes = take(letter, 4);
        let [images, steps, offsets, moments] = std::array::from_fn(|i| sizes[i] as usize);
        let rows = RowEvents {
            offsets: take(letter, offsets).to_vec(),
            moments: take(letter, moments).to_vec(),
            numbers: Vec::new(),
        };
        let d = take(letter, 16 * chunks.len() * images * steps * self.vectors).as_chunks::<16>().0;
        let d = d.iter().map(|lanes| Row(lanes.map(f32::from_bits))).collect();
        let lengths = take(letter, images).to_vec();
        let values = |len: u32| take(letter, len as usize).iter().map(|&bits| f32::from_bits(bits)).collect();
        let real = lengths.into_iter().map(values).collect();
        FullRecord { rows, d, images, steps, real }
    }
}

/// Takes the first `count` numbers of a letter away.
pub(crate) fn take<'a>(letter: &mut &'a [u32], count: usize) -> &'a [u32] {
    let (first, rest) = letter.split_at(count);
    *letter = rest;
    first
}
