//! A simulated event camera that moves in front of an image, as in N-MNIST: three saccades along a triangle.
//!
//! Every pixel follows the logarithm of the light that falls on it. It produces an event each time this
//! logarithm has changed by the pixel's threshold since the last event: ON (channel 1) if it grew, OFF
//! (channel 0) if it fell. Thresholds differ between pixels, as in real sensors. Everything is a pure
//! function, and the logarithm is computed by basic arithmetic only, so every machine produces the same
//! events.

use super::binning::Event;
use leaklab_engine::Shape;
use leaklab_engine::philox::{Purpose, Stream};

/// A sensor and how it moves.
#[derive(Debug, Clone, PartialEq)]
pub struct Camera {
    /// Rows, columns and the two polarities.
    pub shape: Shape,
    /// Threshold of each pixel, in units of the natural logarithm of light.
    thresholds: Vec<f64>,
}

/// Pixels of the sensor per pixel of the image.
pub const SCALE: f64 = 1.5;
/// Mean threshold.
pub const THRESHOLD: f64 = 0.35;
/// Standard deviation of a pixel's threshold, relative to the mean.
pub const MISMATCH: f64 = 0.1;
/// Light where there is no ink; full ink is 1.
const DARK: f64 = 0.1;
/// Corners of the path, in pixels of the sensor (right, down); three saccades lead from each to the next.
const CORNERS: [[f64; 2]; 3] = [[-1.5, -1.0], [0.0, 2.0], [1.5, -1.0]];
/// Length of one saccade in microseconds.
const SACCADE_US: u64 = 100_000;
/// Microseconds between two samples of the light.
const SAMPLE_US: u64 = 2_000;
/// Length of a recording in microseconds.
pub const LENGTH_US: u64 = 3 * SACCADE_US;

/// Natural logarithm of a number from 1/1024 to 1: `ln x = 2 artanh((y - 1) / (y + 1)) - k ln 2` with
/// `y = 2^k x`, where k is the smallest number for which y is at least one half. Each term of the series is
/// at most a ninth of the one before.
fn ln(mut x: f64) -> f64 {
    let mut doubled = 0.0;
    while x < 0.5 {
        x *= 2.0;
        doubled += 1.0;
    }
    let z = (x - 1.0) / (x + 1.0);
    let (mut power, mut sum) = (z, 0.0);
    for n in 0..16 {
        sum += power / f64::from(2 * n + 1);
        power *= z * z;
    }
    2.0 * sum - doubled * std::f64::consts::LN_2
}

impl Camera {
    /// A sensor of this size; its thresholds depend on `seed`.
    pub fn new(height: usize, width: usize, seed: u64) -> Self {
        let shape = Shape { channels: 2, height, width };
        let stream = Stream::new(seed, Purpose::Initialise, 0, u32::MAX);
        let threshold = |pixel: usize| {
            // At most three standard deviations, so that no threshold is near 0.
            let deviation = f64::from(stream.normal_at(pixel)).clamp(-3.0, 3.0);
            THRESHOLD * (1.0 + MISMATCH * deviation)
        };
        Camera { shape, thresholds: (0..shape.pixels()).map(threshold).collect() }
    }

    /// The threshold of a pixel.
    pub fn threshold(&self, pixel: usize) -> f64 {
        self.thresholds[pixel]
    }

    /// Position of the camera at a time, in pixels of the sensor (right, down). Within a saccade it speeds up
    /// and slows down smoothly.
    pub fn position(time: u64) -> [f64; 2] {
        let saccade = (time / SACCADE_US).min(2) as usize;
        let u = ((time - saccade as u64 * SACCADE_US) as f64 / SACCADE_US as f64).min(1.0);
        let way = u * u * (3.0 - 2.0 * u);
        let (from, to) = (CORNERS[saccade], CORNERS[(saccade + 1) % 3]);
        [0, 1].map(|axis| from[axis] + way * (to[axis] - from[axis]))
    }

    /// The logarithm of the light on every pixel at a time. `image` is ink from 0 to 255 in the middle of the
    /// view. The logarithm is interpolated linearly between the image's pixels, and around the image there is
    /// no ink.
    pub fn light(&self, image: &[u8], side: usize, time: u64) -> Vec<f64> {
        let table: Vec<f64> =
            (0..=255u8).map(|ink| ln(DARK + (1.0 - DARK) * f64::from(ink) / 255.0)).collect();
        self.light_by(&table, image, side, time)
    }

    fn light_by(&self, table: &[f64], image: &[u8], side: usize, time: u64) -> Vec<f64> {
        let [right, down] = Self::position(time);
        let Shape { height, width, .. } = self.shape;
        // Place in the image of each row or column of the sensor: the pixel before it, and the distance from
        // that pixel.
        let places = |count: usize, moved: f64| -> Vec<(isize, f64)> {
            let centre = 0.5 * (count as f64 - 1.0);
            let place = |i: usize| {
                let at = (i as f64 - centre + moved) / SCALE + 0.5 * (side as f64 - 1.0);
                (at.floor() as isize, at - at.floor())
            };
            (0..count).map(place).collect()
        };
        let ink = |row: isize, column: isize| {
            let inside = (0..side as isize).contains(&row) && (0..side as isize).contains(&column);
            table[usize::from(if inside { image[row as usize * side + column as usize] } else { 0 })]
        };
        let (rows, columns) = (places(height, down), places(width, right));
        let mut light = Vec::with_capacity(height * width);
        for &(row, beyond_row) in &rows {
            for &(column, beyond) in &columns {
                let top = ink(row, column) * (1.0 - beyond) + ink(row, column + 1) * beyond;
                let bottom = ink(row + 1, column) * (1.0 - beyond) + ink(row + 1, column + 1) * beyond;
                light.push(top * (1.0 - beyond_row) + bottom * beyond_row);
            }
        }
        light
    }

    /// The events of a square image, in temporal order.
    pub fn record(&self, image: &[u8], side: usize) -> Vec<Event> {
        let table: Vec<f64> =
            (0..=255u8).map(|ink| ln(DARK + (1.0 - DARK) * f64::from(ink) / 255.0)).collect();
        let mut reference = self.light_by(&table, image, side, 0);
        let mut events = Vec::new();
        for time in (SAMPLE_US..=LENGTH_US).step_by(SAMPLE_US as usize) {
            let light = self.light_by(&table, image, side, time);
            for (pixel, (seen, now)) in reference.iter_mut().zip(light).enumerate() {
                let threshold = self.thresholds[pixel];
                let (x, y) = (pixel % self.shape.width, pixel / self.shape.width);
                while (now - *seen).abs() >= threshold {
                    let brighter = now > *seen;
                    *seen += if brighter { threshold } else { -threshold };
                    events.push(Event { time: time - 1, x, y, polarity: usize::from(brighter) });
                }
            }
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_accurate() {
        for i in 1..=1024 {
            let x = f64::from(i) / 1024.0;
            // After sixteen terms, each at most a ninth of the one before, the error is about 9^-16.
            assert!((ln(x) - x.ln()).abs() < 1e-14 * (1.0 + x.ln().abs()), "{x}");
        }
    }

    #[test]
    fn the_path_is_closed_and_passes_the_corners() {
        assert_eq!(Camera::position(0), Camera::position(LENGTH_US));
        for (i, corner) in CORNERS.iter().enumerate() {
            assert_eq!(Camera::position(i as u64 * SACCADE_US), *corner);
        }
    }

    /// Events follow their definition: the light that is reconstructed from a pixel's events always differs
    /// from the light on it by less than a threshold, and thresholds have the right mean.
    #[test]
    fn events_follow_the_light() {
        let camera = Camera::new(16, 16, 0);
        let image: Vec<u8> = (0..64).map(|i| ((i * 37) % 256) as u8).collect();
        let events = camera.record(&image, 8);
        assert!(events.is_sorted_by_key(|event| event.time) && events.len() > 500, "{}", events.len());
        let begin = camera.light(&image, 8, 0);
        for until in [SACCADE_US, 2 * SACCADE_US, LENGTH_US] {
            let light = camera.light(&image, 8, until);
            let mut reconstructed = begin.clone();
            for event in events.iter().filter(|event| event.time < until) {
                let pixel = event.y * 16 + event.x;
                reconstructed[pixel] +=
                    camera.threshold(pixel) * if event.polarity == 1 { 1.0 } else { -1.0 };
            }
            for (pixel, (found, light)) in reconstructed.iter().zip(&light).enumerate() {
                assert!(
                    (found - light).abs() < camera.threshold(pixel) + 1e-9,
                    "pixel {pixel} at {until} us"
                );
            }
        }
        let mean = (0..256).map(|pixel| camera.threshold(pixel)).sum::<f64>() / 256.0;
        // Five standard errors of the mean.
        assert!((mean - THRESHOLD).abs() < 5.0 * THRESHOLD * MISMATCH / 16.0, "{mean}");
        assert!(camera.record(&[128; 64], 8).iter().all(|e| e.x.min(15 - e.x) < 4 || e.y.min(15 - e.y) < 4));
    }
}
