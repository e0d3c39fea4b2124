//! Random crop and flip of raw pixels, and random shifts of recordings, as functions of
//! (seed, epoch, sample).

use leaklab_engine::Shape;
use leaklab_engine::philox::{Purpose, Stream};

/// Random changes to a training sample before it is presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Augmentation {
    /// Number of black pixels added on each side of the image; a random window of the original size is then
    /// cut out.
    pub crop_padding: usize,
    /// Whether images are mirrored left to right, with a probability of one half.
    pub flip: bool,
    /// Largest number of time steps by which recordings are shifted at random, earlier or later.
    pub shift: usize,
}

/// How one recording is moved in space and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Motion {
    /// Rows by which the window moves down.
    down: isize,
    /// Columns by which it moves right.
    right: isize,
    /// Whether it is mirrored.
    flip: bool,
    /// Steps by which all spikes are delayed; negative if they come earlier.
    later: isize,
}

impl Motion {
    /// The motion of a sample in an epoch: the same window and flip as for an image.
    pub fn new(augmentation: &Augmentation, seed: u64, epoch: u32, sample: u32) -> Self {
        let stream = Stream::new(seed, Purpose::Augment, epoch, sample);
        let within = |index, most: usize| match most {
            0 => 0,
            most => stream.below_at(index, 2 * most as u64 + 1) as isize - most as isize,
        };
        Motion {
            down: within(0, augmentation.crop_padding),
            right: within(1, augmentation.crop_padding),
            flip: augmentation.flip && stream.below_at(2, 2) == 1,
            later: within(3, augmentation.shift),
        }
    }

    /// The new place of a spike; `None` if it leaves the window or the recording.
    pub fn moved(
        &self,
        (step, neuron): (usize, usize),
        shape: Shape,
        steps: usize,
    ) -> Option<(usize, usize)> {
        let Shape { height, width, .. } = shape;
        let (channel, pixel) = (neuron / shape.pixels(), neuron % shape.pixels());
        let y = (pixel / width).checked_add_signed(-self.down).filter(|&y| y < height)?;
        let x = (pixel % width).checked_add_signed(-self.right).filter(|&x| x < width)?;
        let x = if self.flip { width - 1 - x } else { x };
        let step = step.checked_add_signed(self.later).filter(|&step| step < steps)?;
        Some((step, channel * shape.pixels() + y * width + x))
    }
}

impl Augmentation {
    /// No augmentation.
    pub const NONE: Augmentation = Augmentation { crop_padding: 0, flip: false, shift: 0 };
}

/// Writes the augmented `image` to `out`; both are `[channel][row][column]`.
///
/// # Panics
/// If one of them does not have the size of `shape`.
pub fn augment(
    image: &[u8],
    shape: Shape,
    augmentation: &Augmentation,
    seed: u64,
    epoch: u32,
    sample: u32,
    out: &mut [u8],
) {
    assert_eq!((image.len(), out.len()), (shape.neurons(), shape.neurons()), "an image of another size");
    let stream = Stream::new(seed, Purpose::Augment, epoch, sample);
    let padding = augmentation.crop_padding;
    let shift = |index| stream.below_at(index, 2 * padding as u64 + 1) as isize - padding as isize;
    let (down, right) = if padding > 0 { (shift(0), shift(1)) } else { (0, 0) };
    let flip = augmentation.flip && stream.below_at(2, 2) == 1;
    let Shape { height, width, .. } = shape;
    // Columns of the source that are inside the image, and the first column that they are written to.
    let from = right.clamp(0, width as isize) as usize;
    let to = (right + width as isize).clamp(0, width as isize) as usize;
    let start = (-right).clamp(0, width as isize) as usize;
    for (plane, out) in image.chunks_exact(shape.pixels()).zip(out.chunks_exact_mut(shape.pixels())) {
        for (y, row) in out.chunks_exact_mut(width).enumerate() {
            row.fill(0);
            let source = y as isize + down;
            if (0..height as isize).contains(&source) && from < to {
                row[start..start + to - from].copy_from_slice(&plane[source as usize * width..][from..to]);
            }
            if flip {
                row.reverse();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { channels: 2, height: 5, width: 7 };

    fn image() -> Vec<u8> {
        (1..=70).collect()
    }

    /// The window at (down, right) of the padded image, computed pixel by pixel.
    fn reference(image: &[u8], down: isize, right: isize, flip: bool) -> Vec<u8> {
        let mut out = Vec::new();
        for c in 0..2 {
            for y in 0..5isize {
                for x in 0..7isize {
                    let x = if flip { 6 - x } else { x };
                    let (y, x) = (y + down, x + right);
                    let inside = (0..5).contains(&y) && (0..7).contains(&x);
                    out.push(if inside { image[(c * 35 + y * 7 + x) as usize] } else { 0 });
                }
            }
        }
        out
    }

    #[test]
    fn every_window_and_mirror_comes_equally_often() {
        let augmentation = Augmentation { crop_padding: 8, flip: true, shift: 0 };
        let mut windows = std::collections::HashMap::new();
        for down in -8..=8 {
            for right in -8..=8 {
                for flip in [false, true] {
                    windows.entry(reference(&image(), down, right, flip)).or_insert([0.0, 0.0])[0] += 1.0;
                }
            }
        }
        let (draws, mut out) = (57_800, vec![99; 70]);
        for sample in 0..draws {
            augment(&image(), SHAPE, &augmentation, 3, sample % 7, sample, &mut out);
            windows.get_mut(&out).expect("a window of the padded image")[1] += 1.0;
        }
        // There are 578 windows, and all black ones are equal. The limit of chi-squared has a tail
        // probability of 1e-6 with at most 420 degrees of freedom.
        let expected = f64::from(draws) / 578.0;
        let chi: f64 = windows
            .values()
            .map(|[n, found]| (found - n * expected) * (found - n * expected) / (n * expected))
            .sum();
        assert!(windows.len() < 421 && chi < 570.0, "{chi} of {}", windows.len());
    }

    /// A recording whose spikes are the pixels of an image moves in the same way as the image.
    #[test]
    fn recordings_move_as_images_do() {
        let augmentation = Augmentation { crop_padding: 3, flip: true, shift: 2 };
        let mut later = std::collections::BTreeSet::new();
        for sample in 0..200 {
            let mut expected = vec![0; 70];
            augment(&image(), SHAPE, &augmentation, 5, 1, sample, &mut expected);
            let motion = Motion::new(&augmentation, 5, 1, sample);
            let mut found = vec![0; 70];
            for (neuron, &pixel) in image().iter().enumerate() {
                if let Some((step, to)) = motion.moved((4, neuron), SHAPE, 9) {
                    found[to] = pixel;
                    later.insert(step);
                }
            }
            assert_eq!(found, expected);
        }
        assert_eq!(later.into_iter().collect::<Vec<_>>(), [2, 3, 4, 5, 6]);
        let still = Motion::new(&Augmentation::NONE, 5, 1, 7);
        assert_eq!(still.moved((3, 12), SHAPE, 4), Some((3, 12)));
    }

    #[test]
    fn a_function_of_seed_epoch_and_sample() {
        let augmentation = Augmentation { crop_padding: 4, flip: true, shift: 0 };
        let at = |seed, epoch, sample| {
            let mut out = vec![0; 70];
            augment(&image(), SHAPE, &augmentation, seed, epoch, sample, &mut out);
            out
        };
        assert_eq!(at(1, 2, 3), at(1, 2, 3));
        let differ = |f: &dyn Fn(u32) -> Vec<u8>| (0..20).any(|i| f(i) != f(0));
        assert!(differ(&|i| at(i.into(), 2, 3)) && differ(&|i| at(1, i, 3)) && differ(&|i| at(1, 2, i)));
        let mut same = vec![0; 70];
        augment(&image(), SHAPE, &Augmentation::NONE, 1, 2, 3, &mut same);
        assert_eq!(same, image());
    }
}
