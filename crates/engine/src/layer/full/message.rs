//! Encodes a group's record as a message to another process: the events, which all outputs need, and `d` of
//! the outputs that the other process sums.

use super::{Full, FullRecord, RowEvents};
use crate::simd::Row;
use std::ops::Range;

impl Full {
    /// Writes the part of a record that the gradient of some chunks needs; nothing if there are no chunks.
    pub fn write_record(&self, record: &FullRecord, chunks: Range<usize>, message: &mut Vec<u32>) {
        if chunks.is_empty() {
            return;
        }
        let len = record.images * record.steps * self.vectors;
        let d = &record.d[chunks.start * len..chunks.end * len];
        let RowEvents { offsets, moments, .. } = &record.rows;
        let sizes = [record.images, record.steps, offsets.len(), offsets.last().map_or(0, |&n| n as usize)];
        message.extend(sizes.map(|size| size as u32));
        message.extend_from_slice(offsets);
        message.extend_from_slice(&moments[..sizes[3]]);
        message.extend(d.iter().flat_map(|row| row.0.map(f32::to_bits)));
        message.extend(record.real.iter().map(|values| values.len() as u32));
        message.extend(record.real.iter().flatten().map(|value| value.to_bits()));
    }

    /// Reads what [`Full::write_record`] wrote from the start of a message, and advances the message past it.
    /// The record's first chunk is the first of `chunks`.
    pub fn read_record(&self, chunks: Range<usize>, message: &mut &[u32]) -> FullRecord {
        if chunks.is_empty() {
            return FullRecord::default();
        }
        let sizes = take(message, 4);
        let [images, steps, offsets, moments] = std::array::from_fn(|i| sizes[i] as usize);
        let rows = RowEvents {
            offsets: take(message, offsets).to_vec(),
            moments: take(message, moments).to_vec(),
            numbers: Vec::new(),
        };
        let d = take(message, 16 * chunks.len() * images * steps * self.vectors).as_chunks::<16>().0;
        let d = d.iter().map(|lanes| Row(lanes.map(f32::from_bits))).collect();
        let lengths = take(message, images).to_vec();
        let values =
            |len: u32| take(message, len as usize).iter().map(|&bits| f32::from_bits(bits)).collect();
        let real = lengths.into_iter().map(values).collect();
        FullRecord { rows, d, images, steps, real }
    }
}

/// Returns the first `count` numbers of a message, and advances the message past them.
pub(crate) fn take<'a>(message: &mut &'a [u32], count: usize) -> &'a [u32] {
    let (first, rest) = message.split_at(count);
    *message = rest;
    first
}
