//! Spikes as lists, for the backward pass.
//!
//! Bits say who fired; kernels want to walk events. Two orders are needed. Forward, the channels that fired
//! at each pixel and step, merged over the nine taps by the convolution (`simd::lists`). Backward, the
//! positions and steps at which each channel fired ([`Events`]), so that a channel's weights stay in
//! registers; the gradient of a layer's spikes is an array parallel to its event list.

use crate::simd::lists::{number, room_for, slots};
use crate::simd::{Isa, Kernel, Vector, dispatch};
use crate::spikes::{Shape, Spikes};
use std::ops::Range;

/// Makes a buffer at least so long; what it holds does not matter.
pub(crate) fn make_room<T: Copy + Default>(buffer: &mut Vec<T>, len: usize) {
    if buffer.len() < len {
        buffer.resize(len, T::default());
    }
}

/// How a layer's neurons are laid out for the backward pass: time in tiles of a few steps, each step a frame
/// with one zero column and one zero row, so that the nine taps are constant distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub shape: Shape,
    /// Time steps in all.
    pub steps: usize,
    /// Steps in a tile (fewer in the last).
    pub tile_steps: usize,
    /// Parts that a frame is walked in; 1 unless a tile is one step.
    pub windows: usize,
}

/// Rows of sixteen floats that a tile's frames should fill at most, if one step allows: 90 KB, which measured
/// best.
const TILE_ROWS: usize = 1400;

impl Geometry {
    pub fn new(shape: Shape, steps: usize) -> Self {
        let mut geometry = Geometry { shape, steps, tile_steps: 1, windows: 1 };
        geometry.tile_steps = (TILE_ROWS / geometry.frame()).clamp(1, steps.max(1));
        let half = shape.height / 2 * shape.width;
        let halves = shape.height.is_multiple_of(2) && half.is_multiple_of(64);
        // Sixteen bits number the positions of half an image of at most 65,535 pixels, whatever its width,
        // and nearly always those of the whole.
        let numbered = geometry.position(shape.pixels().max(1) - 1) <= usize::from(u16::MAX);
        if geometry.frame() > TILE_ROWS && (halves || !numbered) {
            geometry.windows = 2;
        }
        geometry
    }

    /// Position of a pixel within a frame.
    pub fn position(&self, pixel: usize) -> usize {
        let width = self.shape.width.max(1);
        pixel / width * self.stride() + pixel % width
    }

    /// Blocks of 64 pixels in a window; the last may have fewer.
    fn blocks_per_window(&self) -> usize {
        self.shape.pixels().div_ceil(64).div_ceil(self.windows)
    }

    /// Position of a window's first pixel, from which the positions of its events are counted.
    pub fn origin(&self, window: usize) -> usize {
        self.position(64 * window * self.blocks_per_window())
    }

    /// Frame columns.
    pub fn stride(&self) -> usize {
        self.shape.width + 1
    }

    /// Positions of one frame.
    pub fn frame(&self) -> usize {
        (self.shape.height + 1) * self.stride()
    }

    /// Number of tiles.
    pub fn tiles(&self) -> usize {
        self.steps.div_ceil(self.tile_steps)
    }

    /// Steps of a tile that exist.
    pub fn steps_of(&self, tile: usize) -> usize {
        self.tile_steps.min(self.steps - tile * self.tile_steps)
    }

    /// Number of event lists.
    pub fn lists(&self) -> usize {
        self.list(self.tiles(), 0, 0, 0)
    }

    /// Index of an event list: every channel's lists of one cell (tile and window) are consecutive.
    pub fn list(&self, tile: usize, window: usize, channel: usize, step: usize) -> usize {
        ((tile * self.windows + window) * self.shape.channels + channel) * self.tile_steps + step
    }
}

/// Where and when each channel of a layer fired.
#[derive(Debug)]
pub(crate) struct Events {
    pub geometry: Geometry,
    /// Where each list of [`Geometry::list`] starts; one more at the end, and perhaps others after it.
    pub offsets: Vec<u32>,
    /// Position within the tile's frames of each event, counted from its window's [`Geometry::origin`];
    /// ascending within a list.
    pub positions: Vec<u16>,
    transposed: Vec<u64>,
    /// How much further than a block's first pixel its 64 pixels are in a frame.
    table: Vec<[u8; 64]>,
    picks: Vec<Pick>,
}

/// A word of 64 pixels, to be picked for each channel of a tile.
#[derive(Debug, Clone, Copy)]
struct Pick {
    /// Step within the tile.
    step: u32,
    /// Where the word is, counted from the channel's first of the tile.
    word: u32,
    /// Position of its first pixel, counted from the window's origin.
    offset: u16,
    /// Its block of pixels.
    block: u16,
}

impl Default for Events {
    fn default() -> Self {
        let geometry = Geometry::new(Shape { channels: 0, height: 0, width: 0 }, 0);
        Events {
            geometry,
            offsets: Vec::new(),
            positions: Vec::new(),
            transposed: Vec::new(),
            table: Vec::new(),
            picks: Vec::new(),
        }
    }
}

impl Events {
    /// Lists the spikes of a layer of the given shape that `keep` (`[pixel][word]`) lets through.
    pub fn build(&mut self, isa: Isa, shape: Shape, spikes: &Spikes, keep: Option<&[u64]>) {
        debug_assert_eq!((shape.pixels(), shape.channels), (spikes.pixels(), spikes.channels()));
        self.geometry = Geometry::new(shape, spikes.steps());
        dispatch(isa, EventsKernel { events: self, spikes, keep });
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.offsets.get(self.geometry.lists()).map_or(0, |&n| n as usize)
    }

    /// The events of a channel in some steps of a tile.
    pub fn range(&self, tile: usize, window: usize, channel: usize, steps: Range<usize>) -> Range<usize> {
        let list = self.geometry.list(tile, window, channel, 0);
        self.offsets[list + steps.start] as usize..self.offsets[list + steps.end] as usize
    }
}

struct EventsKernel<'a> {
    events: &'a mut Events,
    spikes: &'a Spikes,
    keep: Option<&'a [u64]>,
}

impl Kernel for EventsKernel<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let Events { geometry, offsets, positions, transposed, table, picks } = self.events;
        let (words, pixels) = (self.spikes.words_per_step(), self.spikes.pixels());
        make_room(offsets, geometry.lists() + 1);
        if pixels == 1 {
            make_room(positions, geometry.lists() + 1);
            return list_one_pixel(geometry, self.spikes, self.keep, offsets, positions);
        }
        let blocks = pixels.div_ceil(64);
        let channels = geometry.shape.channels;
        table.clear();
        table.extend((0..blocks).map(|block| {
            // At most 127 further, since a row is followed by one zero column.
            let further =
                |i: usize| (geometry.position(64 * block + i) - geometry.position(64 * block)) as u8;
            std::array::from_fn(further)
        }));
        let (tiles, tile_steps, windows) = (geometry.tiles(), geometry.tile_steps, geometry.windows);
        transpose_all::<V>(self.spikes, self.keep, transposed);
        let (frame, per_window) = (geometry.frame(), geometry.blocks_per_window());
        // All of these fit: at most 65,535 pixels are 1,024 blocks, and several steps share a tile only where
        // their frames together have at most `TILE_ROWS` positions.
        let narrow = |n: usize| u16::try_from(n).expect("sixteen bits number a window's positions");
        picks.clear();
        for (window, step) in (0..windows).flat_map(|window| (0..tile_steps).map(move |step| (window, step)))
        {
            let origin = geometry.origin(window);
            picks.extend((window * per_window..blocks.min((window + 1) * per_window)).map(|block| Pick {
                step: step as u32,
                word: u32::try_from((step * words * blocks + block) * 64).expect("words of a tile"),
                offset: narrow(step * frame + geometry.position(64 * block) - origin),
                block: narrow(block),
            }));
        }
        // Plain slices: a vector's address and length would be read again for every event.
        let offsets = offsets.as_mut_slice();
        let (transposed, table) = (transposed.as_slice(), table.as_slice());
        let (mut end, mut list) = (0, 0);
        offsets[0] = 0;
        for tile in 0..tiles {
            let steps = geometry.steps_of(tile);
            for picks in picks.chunks(tile_steps * per_window) {
                let per_step = picks.len() / tile_steps;
                for channel in 0..channels {
                    let first = (tile * tile_steps * words + channel / 64) * blocks * 64 + channel % 64;
                    let ends = &mut offsets[list + 1..][..tile_steps];
                    let positions = room_for(positions, end, picks.len());
                    for pick in &picks[..steps * per_step] {
                        let bits = transposed[first + pick.word as usize];
                        let table = &table[usize::from(pick.block)];
                        end += V::select::<0>(table, bits, pick.offset, slots(positions, end));
                        ends[pick.step as usize] = end as u32;
                    }
                    // The ends before it are not larger.
                    ends[steps..].fill(number(end));
                    list += tile_steps;
                }
            }
        }
    }
}

/// The events of a fully connected layer, which has one position: nothing to transpose.
#[inline(always)]
fn list_one_pixel(
    geometry: &Geometry,
    spikes: &Spikes,
    keep: Option<&[u64]>,
    offsets: &mut [u32],
    positions: &mut [u16],
) {
    let (words, mut end, mut list) = (spikes.words_per_step(), 0, 0);
    offsets[0] = 0;
    for tile in 0..geometry.tiles() {
        for channel in 0..geometry.shape.channels {
            let (word, bit) = (channel / 64, channel % 64);
            let kept = keep.map_or(1, |keep| keep[word] >> bit & 1);
            for step in 0..geometry.tile_steps {
                let at = tile * geometry.tile_steps + step;
                let fired = if at < geometry.steps { spikes.words()[at * words + word] >> bit } else { 0 };
                // Written whether or not it fired: a branch would often be foreseen wrongly.
                positions[end] = (step * geometry.frame()) as u16;
                end += (fired & kept) as usize;
                list += 1;
                offsets[list] = end as u32;
            }
        }
    }
}

/// Steps whose squares are gathered before the first is transposed: their words are neighbours.
const ABREAST: usize = 4;

/// Turns `[pixel][step][word of 64 channels]` into `[step][word][block of 64 pixels][channel]`, the pixels as
/// bits.
#[inline(always)]
fn transpose_all<V: Vector>(spikes: &Spikes, keep: Option<&[u64]>, out: &mut Vec<u64>) {
    let (words, steps, pixels) = (spikes.words_per_step(), spikes.steps(), spikes.pixels());
    let blocks = pixels.div_ceil(64);
    make_room(out, steps * words * 64 * blocks);
    let mut squares = [[0u64; 64]; ABREAST];
    for (block, trains) in spikes.words().chunks(64 * steps * words).enumerate() {
        let count = trains.len() / (steps * words);
        for word in 0..words {
            for first in (0..steps).step_by(ABREAST) {
                let abreast = ABREAST.min(steps - first);
                for (i, train) in trains.chunks_exact(steps * words).enumerate() {
                    let kept = keep.map_or(!0, |keep| keep[(64 * block + i) * words + word]);
                    for (s, square) in squares[..abreast].iter_mut().enumerate() {
                        square[i] = train[(first + s) * words + word] & kept;
                    }
                }
                for (s, square) in squares[..abreast].iter_mut().enumerate() {
                    let at = (((first + s) * words + word) * blocks + block) * 64;
                    let out: &mut [u64; 64] = (&mut out[at..at + 64]).try_into().expect("sixty-four words");
                    *out = *square;
                    out[count..].fill(0);
                    V::transpose(out);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Transpose([u64; 64]);

    impl Kernel for Transpose {
        type Output = [u64; 64];

        #[inline(always)]
        fn run<V: Vector>(mut self) -> [u64; 64] {
            V::transpose(&mut self.0);
            self.0
        }
    }

    #[test]
    fn transposes_in_every_instruction_set() {
        let square: [u64; 64] = std::array::from_fn(|i| (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        for isa in Isa::available() {
            let transposed = dispatch(isa, Transpose(square));
            for (i, j) in (0..64).flat_map(|i| (0..64).map(move |j| (i, j))) {
                assert_eq!(transposed[j] >> i & 1, square[i] >> j & 1, "{isa}: bit {j} of word {i}");
            }
        }
    }

    #[test]
    fn lists_are_the_spikes_in_every_instruction_set_and_order() {
        let mut events = Events::default();
        for (number, (channels, height, width, steps, rate)) in [
            (5, 3, 4, 7, 0.3),
            (70, 8, 8, 11, 0.1),
            (64, 32, 32, 3, 0.05),
            (3, 1, 9, 5, 1.0),
            (130, 9, 1, 1, 0.5),
            (2, 510, 128, 2, 0.1),
            (1, 32_000, 2, 1, 0.5),
            (1, 65_535, 1, 1, 0.3),
            (1, 1, 65_535, 1, 0.3),
            (1, 1, 1, 100, 0.0),
        ]
        .into_iter()
        .enumerate()
        {
            let shape = Shape { channels, height, width };
            let spikes = Spikes::random(shape, steps, rate, number as u64);
            let words = spikes.words_per_step();
            let keep: Vec<u64> =
                (0..shape.pixels() * words).map(|i| !(i as u64).wrapping_mul(0xABCDEF)).collect();
            for keep in [None, Some(keep.as_slice())] {
                let kept = |pixel: usize, step: usize, channel: usize| {
                    spikes.get(pixel, step, channel)
                        && keep.is_none_or(|k| k[pixel * words + channel / 64] >> (channel % 64) & 1 == 1)
                };
                for isa in Isa::available() {
                    events.build(isa, shape, &spikes, keep);
                    let geometry = events.geometry;
                    let mut found = 0;
                    for tile in 0..geometry.tiles() {
                        for window in 0..geometry.windows {
                            for channel in 0..channels {
                                for step in 0..geometry.tile_steps {
                                    for event in events.range(tile, window, channel, step..step + 1) {
                                        let position = usize::from(events.positions[event])
                                            + geometry.origin(window)
                                            - step * geometry.frame();
                                        let (y, x) =
                                            (position / geometry.stride(), position % geometry.stride());
                                        assert!(x < width && y < height);
                                        assert!(kept(
                                            y * width + x,
                                            tile * geometry.tile_steps + step,
                                            channel
                                        ));
                                        found += 1;
                                    }
                                }
                            }
                        }
                    }
                    let all = (0..shape.pixels()).flat_map(|p| (0..steps).map(move |t| (p, t)));
                    let expected = all
                        .map(|(pixel, step)| (0..channels).filter(|&c| kept(pixel, step, c)).count())
                        .sum();
                    assert_eq!(found, expected, "{shape:?} {isa}");
                    assert_eq!(events.len(), expected);
                }
            }
        }
    }
}
