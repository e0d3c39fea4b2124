//! Random crop and flip of raw pixels, as functions of (seed, epoch, sample).

use leaklab_engine::Shape;
use leaklab_engine::philox::{Purpose, Stream};

/// What is done to a training image before it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Augmentation {
    /// Pixels of black put around the image before an image-sized window is cut out of it at random.
    pub crop_padding: usize,
    /// Whether every second image, at random, is mirrored left to right.
    pub flip: bool,
    /// Recordings begin up to so many time steps earlier or later, at random.
    pub shift: usize,
}

/// How one recording is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Motion {
    /// Rows and columns by which the view moves, and whether it is mirrored.
    down: isize,
    right: isize,
    flip: bool,
    /// Steps by which everything comes later.
    later: isize,
}

impl Motion {
    /// The motion of a sample in an epoch: the same window and mirror as an image would get.
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

    /// Where a spike goes; none if it leaves the view or the recording.
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
    /// Leaves images as they are.
    pub const NONE: Augmentation = Augmentation { crop_padding: 0, flip: false, shift: 0 };
}

/// Writes the augmented `image` to `out`, `[channel][row][column]` both.
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
    // Columns of the source that are inside the image, and where they go.
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

    /// What a window at (down, right) of the padded image shows, pixel by pixel.
    fn twin(image: &[u8], down: isize, right: isize, flip: bool) -> Vec<u8> {
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
                    windows.entry(twin(&image(), down, right, flip)).or_insert([0.0, 0.0])[0] += 1.0;
                }
            }
        }
        let (draws, mut out) = (57_800, vec![99; 70]);
        for sample in 0..draws {
            augment(&image(), SHAPE, &augmentation, 3, sample % 7, sample, &mut out);
            windows.get_mut(&out).expect("a window of the padded image")[1] += 1.0;
        }
        // 578 windows, of which all-black ones coincide: chi-squared, tail 1e-6 of 420 degrees at most.
        let expected = f64::from(draws) / 578.0;
        let chi: f64 = windows
            .values()
            .map(|[n, found]| (found - n * expected) * (found - n * expected) / (n * expected))
            .sum();
        assert!(windows.len() < 421 && chi < 570.0, "{chi} of {}", windows.len());
    }

    /// A recording whose spikes are an image's pixels moves as the image does.
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
