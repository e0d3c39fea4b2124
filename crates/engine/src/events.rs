//! Spikes as lists, for the backward pass.
//!
//! Spikes are stored as bits, but kernels iterate over events, and need them in two orders. The forward
//! pass needs the channels that fired at each pixel and step, which the convolution merges over the
//! nine taps (`simd::lists`). The backward pass needs the positions and steps at which each channel
//! fired ([`Events`]), so that a channel's weights stay in registers. The gradient of a layer's spikes
//! is an array parallel to its event list.

use crate::simd::lists::{grow_for, number, slots};
use crate::simd::{Isa, Kernel, Vector, dispatch};
use crate::spikes::{Shape, Spikes};
use std::ops::Range;

/// Grows a buffer to at least `len` entries; its contents do not matter.
pub(crate) fn grow_to<T: Copy + Default>(buffer: &mut Vec<T>, len: usize) {
    if buffer.len() < len {
        buffer.resize(len, T::default());
    }
}

/// Layout of a layer's neurons for the backward pass. Time is divided into tiles of a few steps. Each step is
/// a frame with one additional column and row of zeros, so that the nine taps are at constant distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub shape: Shape,
    /// Total number of time steps.
    pub steps: usize,
    /// Number of steps in a tile; the last tile may have fewer.
    pub tile_steps: usize,
    /// Number of parts in which a frame is processed; 1 unless a tile is a single step.
    pub windows: usize,
}

/// Largest number of rows of sixteen floats in the frames of a tile, unless a single step has more. This is
/// 90 KB, which was fastest in measurements.
const TILE_ROWS: usize = 1400;

impl Geometry {
    pub fn new(shape: Shape, steps: usize) -> Self {
        let mut geometry = Geometry { shape, steps, tile_steps: 1, windows: 1 };
        geometry.tile_steps = (TILE_ROWS / geometry.frame()).clamp(1, steps.max(1));
        let half = shape.height / 2 * shape.width;
        let halves = shape.height.is_multiple_of(2) && half.is_multiple_of(64);
        // Sixteen bits can number the positions in half of an image of at most 65,535 pixels, whatever its
        // width, and almost always those in the whole image.
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

    /// Number of blocks of 64 pixels in a window; the last window may have fewer.
    fn blocks_per_window(&self) -> usize {
        self.shape.pixels().div_ceil(64).div_ceil(self.windows)
    }

    /// Position of a window's first pixel. The positions of the window's events are relative to it.
    pub fn origin(&self, window: usize) -> usize {
        self.position(64 * window * self.blocks_per_window())
    }

    /// Number of columns in a frame.
    pub fn stride(&self) -> usize {
        self.shape.width + 1
    }

    /// Number of positions in a frame.
    pub fn frame(&self) -> usize {
        (self.shape.height + 1) * self.stride()
    }

    /// Number of tiles.
    pub fn tiles(&self) -> usize {
        self.steps.div_ceil(self.tile_steps)
    }

    /// Number of steps in a given tile.
    pub fn steps_of(&self, tile: usize) -> usize {
        self.tile_steps.min(self.steps - tile * self.tile_steps)
    }

    /// Number of event lists.
    pub fn lists(&self) -> usize {
        self.list(self.tiles(), 0, 0, 0)
    }

    /// Index of an event list. The lists of all channels in one cell (tile and window) are consecutive.
    pub fn list(&self, tile: usize, window: usize, channel: usize, step: usize) -> usize {
        ((tile * self.windows + window) * self.shape.channels + channel) * self.tile_steps + step
    }
}

/// The positions and steps at which each channel of a layer fired.
#[derive(Debug)]
pub(crate) struct Events {
    pub geometry: Geometry,
    /// Start of each list of [`Geometry::list`], followed by the end of the last
    /// list. Entries after that are unused.
    pub offsets: Vec<u32>,
    /// Position of each event within the tile's frames, relative to its window's
    /// [`Geometry::origin`]; ascending within a list.
    pub positions: Vec<u16>,
    transposed: Vec<u64>,
    /// Distances of a block's 64 pixels from its first pixel, in a frame.
    table: Vec<[u8; 64]>,
    picks: Vec<Pick>,
}

/// A word of 64 pixels that is read for each channel of a tile.
#[derive(Debug, Clone, Copy)]
struct Pick {
    /// Step within the tile.
    step: u32,
    /// Index of the word, relative to the channel's first word in the tile.
    word: u32,
    /// Position of its first pixel, relative to the window's origin.
    offset: u16,
    /// Index of its block of pixels.
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
    /// Lists the spikes of a layer of the given shape, except those that the dropout
    /// mask `keep` (`[pixel][word]`) drops.
    pub fn build(&mut self, isa: Isa, shape: Shape, spikes: &Spikes, keep: Option<&[u64]>) {
        debug_assert_eq!((shape.pixels(), shape.channels), (spikes.pixels(), spikes.channels()));
        self.geometry = Geometry::new(shape, spikes.steps());
        dispatch(isa, EventsKernel { events: self, spikes, keep });
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.offsets.get(self.geometry.lists()).map_or(0, |&n| n as usize)
    }

    /// The range of a channel's events in some steps of a tile.
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
        grow_to(offsets, geometry.lists() + 1);
        if pixels == 1 {
            grow_to(positions, geometry.lists() + 1);
            return list_one_pixel(geometry, self.spikes, self.keep, offsets, positions);
        }
        let blocks = pixels.div_ceil(64);
        let channels = geometry.shape.channels;
        table.clear();
        table.extend((0..blocks).map(|block| {
            // The distance is at most 127, since each row is followed by one zero column.
            let distance =
                |i: usize| (geometry.position(64 * block + i) - geometry.position(64 * block)) as u8;
            std::array::from_fn(distance)
        }));
        let (tiles, tile_steps, windows) = (geometry.tiles(), geometry.tile_steps, geometry.windows);
        transpose_all::<V>(self.spikes, self.keep, transposed);
        let (frame, per_window) = (geometry.frame(), geometry.blocks_per_window());
        // All of these numbers fit: 65,535 pixels are 1,024 blocks, and several steps share a tile only if
        // their frames together have at most `TILE_ROWS` positions.
        let narrow = |n: usize| u16::try_from(n).expect("sixteen bits can number a window's positions");
        picks.clear();
        for (window, step) in (0..windows).flat_map(|window| (0..tile_steps).map(move |step| (window, step)))
        {
            let origin = geometry.origin(window);
            picks.extend((window * per_window..blocks.min((window + 1) * per_window)).map(|block| Pick {
                step: step as u32,
                word: u32::try_from((step * words * blocks + block) * 64).expect("32 bits are enough"),
                offset: narrow(step * frame + geometry.position(64 * block) - origin),
                block: narrow(block),
            }));
        }
        // Slices, because the address and length of a `Vec` would be read again for every event.
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
                    let positions = grow_for(positions, end, picks.len());
                    for pick in &picks[..steps * per_step] {
                        let bits = transposed[first + pick.word as usize];
                        let table = &table[usize::from(pick.block)];
                        end += V::select::<0>(table, bits, pick.offset, slots(positions, end));
                        ends[pick.step as usize] = end as u32;
                    }
                    // `number` checks the largest end; those before it are not larger.
                    ends[steps..].fill(number(end));
                    list += tile_steps;
                }
            }
        }
    }
}

/// Lists the events of a fully connected layer. It has a single position, so nothing is transposed.
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
                // Written whether or not the neuron fired, because a branch would often be mispredicted.
                positions[end] = (step * geometry.frame()) as u16;
                end += (fired & kept) as usize;
                list += 1;
                offsets[list] = end as u32;
            }
        }
    }
}

/// Number of steps whose squares of 64x64 bits are collected before the first is
/// transposed. Their words are adjacent in memory.
const STEPS_AT_ONCE: usize = 4;

/// Transposes `[pixel][step][word of 64 channels]` to
/// `[step][word][block of 64 pixels][channel]`, where each pixel is a bit.
#[inline(always)]
fn transpose_all<V: Vector>(spikes: &Spikes, keep: Option<&[u64]>, out: &mut Vec<u64>) {
    let (words, steps, pixels) = (spikes.words_per_step(), spikes.steps(), spikes.pixels());
    let blocks = pixels.div_ceil(64);
    grow_to(out, steps * words * 64 * blocks);
    let mut squares = [[0u64; 64]; STEPS_AT_ONCE];
    for (block, trains) in spikes.words().chunks(64 * steps * words).enumerate() {
        let count = trains.len() / (steps * words);
        for word in 0..words {
            for first in (0..steps).step_by(STEPS_AT_ONCE) {
                let at_once = STEPS_AT_ONCE.min(steps - first);
                for (i, train) in trains.chunks_exact(steps * words).enumerate() {
                    let kept = keep.map_or(!0, |keep| keep[(64 * block + i) * words + word]);
                    for (s, square) in squares[..at_once].iter_mut().enumerate() {
                        square[i] = train[(first + s) * words + word] & kept;
                    }
                }
                for (s, square) in squares[..at_once].iter_mut().enumerate() {
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
