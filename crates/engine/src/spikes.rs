//! Spike trains as bits, and the input of a network.
//!
//! Spikes are stored in words of 64 channels for each pixel and step. The forward pass visits only
//! the channels that fired, the backward pass needs nothing but these bits, and a hundred steps of
//! the paper's CIFAR-10 model take 3.4 MB.

use std::fmt;

/// Size of a layer's output or of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Channels; the number of neurons of a fully connected layer.
    pub channels: usize,
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
}

impl Shape {
    /// Rows times columns.
    pub fn pixels(self) -> usize {
        self.height * self.width
    }

    /// Channels times pixels.
    pub fn neurons(self) -> usize {
        self.channels * self.pixels()
    }
}

/// `channels x height x width`, as in `3x32x32`.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { channels, height, width } = self;
        write!(f, "{channels}x{height}x{width}")
    }
}

/// Binary spikes of one layer and one image, `[pixel][step][channel]`, the channels in words of 64.
///
/// Bits past the last channel are always zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spikes {
    pixels: usize,
    steps: usize,
    channels: usize,
    bits: Vec<u64>,
}

impl Spikes {
    /// Silent spike trains.
    pub fn new(pixels: usize, steps: usize, channels: usize) -> Self {
        Spikes { pixels, steps, channels, bits: vec![0; pixels * steps * channels.div_ceil(64)] }
    }

    /// Turns this into silent spike trains of the given size. The allocation is reused if it is large enough.
    pub fn reset(&mut self, pixels: usize, steps: usize, channels: usize) {
        (self.pixels, self.steps, self.channels) = (pixels, steps, channels);
        self.bits.clear();
        self.bits.resize(pixels * steps * channels.div_ceil(64), 0);
    }

    /// Changes the size and leaves the words unspecified, for a caller that writes all of them.
    pub(crate) fn reshape(&mut self, pixels: usize, steps: usize, channels: usize) {
        (self.pixels, self.steps, self.channels) = (pixels, steps, channels);
        self.bits.resize(pixels * steps * channels.div_ceil(64), 0);
    }

    /// Pixels of the layer (1 for a fully connected one).
    pub fn pixels(&self) -> usize {
        self.pixels
    }

    /// Time steps.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Channels.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Words of 64 channels per pixel and step.
    pub fn words_per_step(&self) -> usize {
        self.channels.div_ceil(64)
    }

    /// All words, `[pixel][step][word]`.
    pub fn words(&self) -> &[u64] {
        &self.bits
    }

    /// All words, for writing. The bits past the last channel must stay zero.
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.bits
    }

    /// The words of one pixel and step.
    pub fn at(&self, pixel: usize, step: usize) -> &[u64] {
        let words = self.words_per_step();
        let start = (pixel * self.steps + step) * words;
        &self.bits[start..start + words]
    }

    /// Whether a neuron fired at a step.
    pub fn get(&self, pixel: usize, step: usize, channel: usize) -> bool {
        debug_assert!(channel < self.channels);
        self.at(pixel, step)[channel / 64] >> (channel % 64) & 1 == 1
    }

    /// Makes a neuron fire at a step.
    pub fn set(&mut self, pixel: usize, step: usize, channel: usize) {
        debug_assert!(channel < self.channels);
        let words = self.words_per_step();
        self.bits[(pixel * self.steps + step) * words + channel / 64] |= 1 << (channel % 64);
    }

    /// Number of spikes.
    pub fn count(&self) -> u64 {
        self.bits.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

/// The input of a network: ternary spikes, or real values if noise was added to the spikes.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Spikes of +1 and -1. Channel `c` of the spikes is a positive spike of the image's
    /// channel `c`, and channel `C + c` is a negative one, with `C = shape.channels`. A neuron
    /// has at most one of the two at a step.
    Ternary {
        /// Size of the image.
        shape: Shape,
        /// The spikes, with `2 * shape.channels` channels.
        spikes: Spikes,
    },
    /// Real values, `[step][channel][row][column]`.
    Real {
        /// Size of the image.
        shape: Shape,
        /// Time steps.
        steps: usize,
        /// `steps * shape.neurons()` values.
        values: Vec<f32>,
    },
}

impl Input {
    /// A silent ternary input.
    pub fn silent(shape: Shape, steps: usize) -> Self {
        Input::Ternary { shape, spikes: Spikes::new(shape.pixels(), steps, 2 * shape.channels) }
    }

    /// Creates an input from values `[step][channel][row][column]`: ternary if every
    /// value is -1, 0 or 1, otherwise real.
    ///
    /// # Panics
    /// If `values` does not have `steps * shape.neurons()` entries.
    pub fn from_values(shape: Shape, steps: usize, values: &[f32]) -> Self {
        assert_eq!(
            values.len(),
            steps * shape.neurons(),
            "the values must have the size of the shape and the steps"
        );
        if values.iter().any(|&x| x != 0.0 && x.abs() != 1.0) {
            return Input::Real { shape, steps, values: values.to_vec() };
        }
        let mut spikes = Spikes::new(shape.pixels(), steps, 2 * shape.channels);
        for (i, &x) in values.iter().enumerate().filter(|&(_, &x)| x != 0.0) {
            let (step, neuron) = (i / shape.neurons(), i % shape.neurons());
            let (channel, pixel) = (neuron / shape.pixels(), neuron % shape.pixels());
            spikes.set(pixel, step, if x > 0.0 { channel } else { shape.channels + channel });
        }
        Input::Ternary { shape, spikes }
    }

    /// Size of the image.
    pub fn shape(&self) -> Shape {
        match self {
            Input::Ternary { shape, .. } | Input::Real { shape, .. } => *shape,
        }
    }

    /// Time steps.
    pub fn steps(&self) -> usize {
        match self {
            Input::Ternary { spikes, .. } => spikes.steps(),
            Input::Real { steps, .. } => *steps,
        }
    }
}

#[cfg(test)]
impl Spikes {
    /// Random spikes: each neuron fires with probability `rate` at each step.
    pub(crate) fn random(shape: Shape, steps: usize, rate: f32, seed: u64) -> Self {
        use crate::philox::{Purpose, Stream};
        let mut spikes = Spikes::new(shape.pixels(), steps, shape.channels);
        let stream = Stream::new(seed, Purpose::Benchmark, 0, 0);
        for i in (0..shape.neurons() * steps).filter(|&i| stream.uniform_at(i) < rate) {
            let (pixel, rest) = (i % shape.pixels(), i / shape.pixels());
            spikes.set(pixel, rest % steps, rest / steps);
        }
        spikes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_spikes() {
        let shape = Shape { channels: 2, height: 1, width: 3 };
        let values = [0., 1., -1., 1., 0., 0., /* step 1 */ -1., 0., 0., 0., 0., 1.];
        let Input::Ternary { spikes, .. } = Input::from_values(shape, 2, &values) else {
            panic!("not ternary")
        };
        assert_eq!((spikes.pixels(), spikes.steps(), spikes.channels(), spikes.count()), (3, 2, 4, 5));
        assert!(spikes.get(1, 0, 0) && spikes.get(2, 0, 2) && spikes.get(0, 0, 1));
        assert!(spikes.get(0, 1, 2) && spikes.get(2, 1, 1));
        let noisy = values.map(|x| x + 0.5);
        assert!(matches!(Input::from_values(shape, 2, &noisy), Input::Real { steps: 2, .. }));
    }
}
