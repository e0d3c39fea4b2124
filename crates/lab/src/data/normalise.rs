//! Converts raw pixels to the numbers in [-1, 1] that the encoder needs.

use super::{DataError, Dataset};
use leaklab_engine::Shape;
use std::fmt;
use std::str::FromStr;

/// How pixels are normalised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Normalisation {
    /// The paper's method: subtract the image's own mean over all channels, then divide by the largest
    /// magnitude; a constant image becomes 0.
    #[default]
    PerImage,
    /// `(x - mean) / std` per channel, clamped to [-1, 1]. CIFAR-10 uses the constants of Lee et al. 2020,
    /// whose `std` is about twice the standard deviation. Other data sets use the mean of the training split
    /// and twice its standard deviation.
    PerChannel,
}

impl fmt::Display for Normalisation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Normalisation::PerImage => "per-image",
            Normalisation::PerChannel => "per-channel",
        })
    }
}

impl FromStr for Normalisation {
    type Err = DataError;

    fn from_str(name: &str) -> Result<Self, DataError> {
        let found =
            [Normalisation::PerImage, Normalisation::PerChannel].into_iter().find(|n| n.to_string() == name);
        found.ok_or_else(|| {
            DataError::Request(format!("normalise '{name}' is not one of per-image, per-channel"))
        })
    }
}

/// A normalisation with its constants.
#[derive(Debug, Clone, PartialEq)]
pub struct Normaliser {
    /// `mean` and `std` of each channel as fractions of white; empty for per-image.
    channels: Vec<[f32; 2]>,
}

/// The constants of Lee et al. 2020.
const CIFAR10: [[f32; 2]; 3] = [[0.4914, 0.557], [0.4822, 0.549], [0.4465, 0.5534]];

impl Normaliser {
    /// The paper's normalisation, which needs no constants.
    pub const PER_IMAGE: Normaliser = Normaliser { channels: Vec::new() };

    /// The normaliser of a data set.
    pub fn new(normalisation: Normalisation, dataset: &Dataset) -> Self {
        match normalisation {
            Normalisation::PerImage => Normaliser::PER_IMAGE,
            Normalisation::PerChannel if dataset.name == "cifar10" => {
                Normaliser { channels: CIFAR10.to_vec() }
            }
            Normalisation::PerChannel => Normaliser { channels: statistics(dataset) },
        }
    }

    /// Writes the normalised `image` to `out`; both are `[channel][row][column]`.
    ///
    /// # Panics
    /// If one of them does not have the size of `shape`, or the normaliser has another number of channels.
    pub fn apply(&self, image: &[u8], shape: Shape, out: &mut [f32]) {
        assert_eq!((image.len(), out.len()), (shape.neurons(), shape.neurons()), "an image of another size");
        if !self.channels.is_empty() {
            assert_eq!(self.channels.len(), shape.channels, "an image of other channels");
            for (i, &[mean, std]) in self.channels.iter().enumerate() {
                let plane = i * shape.pixels()..(i + 1) * shape.pixels();
                for (x, &pixel) in out[plane.clone()].iter_mut().zip(&image[plane]) {
                    *x = ((f32::from(pixel) / 255.0 - mean) / std).clamp(-1.0, 1.0);
                }
            }
            return;
        }
        // The sum of bytes is exact, and so is the mean of a constant image.
        let sum: u64 = image.iter().map(|&pixel| u64::from(pixel)).sum();
        let mean = (sum as f64 / image.len() as f64) as f32;
        let (low, high) = image.iter().fold((u8::MAX, 0), |(low, high), &x| (x.min(low), x.max(high)));
        let largest = (f32::from(high) - mean).max(mean - f32::from(low));
        for (x, &pixel) in out.iter_mut().zip(image) {
            *x = if low == high { 0.0 } else { (f32::from(pixel) - mean) / largest };
        }
    }
}

/// Mean and twice the standard deviation of each channel of the training split.
fn statistics(dataset: &Dataset) -> Vec<[f32; 2]> {
    let shape = dataset.shape;
    let mut sums = vec![[0u64; 2]; shape.channels];
    for (i, plane) in dataset.train.pixels().chunks_exact(shape.pixels()).enumerate() {
        for &x in plane {
            sums[i % shape.channels][0] += u64::from(x);
            sums[i % shape.channels][1] += u64::from(x) * u64::from(x);
        }
    }
    let n = (dataset.train.len() * shape.pixels()) as f64;
    sums.iter()
        .map(|&[sum, square]| {
            let mean = sum as f64 / n;
            let std = (square as f64 / n - mean * mean).max(0.0).sqrt();
            [(mean / 255.0) as f32, if std > 0.0 { (2.0 * std / 255.0) as f32 } else { 1.0 }]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Limits, load};

    const SHAPE: Shape = Shape { channels: 3, height: 1, width: 2 };

    #[test]
    fn per_image_is_that_of_the_paper() {
        let mut out = [f32::NAN; 6];
        Normaliser::PER_IMAGE.apply(&[0, 0, 30, 30, 60, 240], SHAPE, &mut out);
        assert_eq!(out, [-60., -60., -30., -30., 0., 180.].map(|x| x / 180.0));
        for constant in [0, 7, 255] {
            Normaliser::PER_IMAGE.apply(&[constant; 6], SHAPE, &mut out);
            assert_eq!(out, [0.0; 6]);
        }
        Normaliser::PER_IMAGE.apply(&[255, 255, 255, 255, 255, 0], SHAPE, &mut out);
        assert_eq!(out[5], -1.0);
    }

    #[test]
    fn per_channel_takes_the_published_constants() {
        let mut out = [0.0; 6];
        Normaliser { channels: CIFAR10.to_vec() }.apply(&[0, 255, 0, 255, 0, 255], SHAPE, &mut out);
        let expected =
            [-0.4914 / 0.557, 0.5086 / 0.557, -0.4822 / 0.549, 0.5178 / 0.549, -0.4465 / 0.5534, 1.0];
        for (x, y) in out.iter().zip(expected) {
            assert!((x - y).abs() < 1e-6, "{x} {y}");
        }
    }

    #[test]
    fn per_channel_measures_other_data_sets() {
        let digits = load("digits", None, &Limits::NONE).unwrap();
        let normaliser = Normaliser::new(Normalisation::PerChannel, &digits);
        let mut out = [0.0; 64];
        let (mut sum, mut square) = (0.0, 0.0);
        for i in 0..digits.train.len() {
            normaliser.apply(digits.train.image(i), digits.shape, &mut out);
            sum += out.iter().map(|&x| f64::from(x)).sum::<f64>();
            square += out.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>();
        }
        let n = (64 * digits.train.len()) as f64;
        // All digit pixels are within two standard deviations of the mean, so nothing is clamped.
        assert!((sum / n).abs() < 1e-5 && (square / n - 0.25).abs() < 1e-5, "{} {}", sum / n, square / n);
    }
}
