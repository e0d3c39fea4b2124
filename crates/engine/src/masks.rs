//! Dropout masks: one factor per neuron and sample, the same at all steps.
//!
//! A mask multiplies a hidden layer's output spikes by 0 or by one constant, `1/(1-p)`. It is
//! stored as one bit per neuron and the constant, so that masked spikes are still bits and the
//! constant is a single factor of a whole layer.

use crate::architecture::Architecture;
use crate::philox::{Purpose, Stream};
use crate::simd::{self, Isa, Work};

/// Mask of one hidden conv or fully connected layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Mask {
    /// Which neurons are kept, `[pixel][channel in words of 64]`.
    pub keep: Vec<u64>,
    /// Value of a kept spike.
    pub scale: f32,
}

/// Masks of one sample: one for each hidden conv and fully connected layer, or none without dropout.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Masks(Vec<Mask>);

/// The reason why an array is not a dropout mask.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MaskError {
    /// The number of masks differs from the number of hidden conv and fully connected layers.
    #[error("{found} masks for {expected} hidden conv and fully connected layers; each layer needs one")]
    Count {
        /// Number of masks given.
        found: usize,
        /// Number of masks needed.
        expected: usize,
    },
    /// A mask does not have one entry per neuron.
    #[error("mask {number} has {found} entries; its layer has {expected} neurons")]
    Length {
        /// Number of the mask, counted from 1.
        number: usize,
        /// Number of entries given.
        found: usize,
        /// Number of neurons in the layer.
        expected: usize,
    },
    /// A mask contains different non-zero values, or one that is not finite and at least 1.
    #[error(
        "mask {number} contains {value} at entry {entry}; all entries must be 0 or the same number, 1 or \
         more"
    )]
    Value {
        /// Number of the mask, counted from 1.
        number: usize,
        /// Index of the entry.
        entry: usize,
        /// Its value.
        value: f32,
    },
}

impl Masks {
    /// No dropout.
    pub fn none() -> Self {
        Masks(Vec::new())
    }

    /// Random masks that drop each neuron with probability `p`. They are a pure function of the arguments.
    ///
    /// # Panics
    /// If `p` is not in [0, 1).
    pub fn dropout(p: f32, seed: u64, epoch: u32, sample: u32, architecture: &Architecture) -> Self {
        let mut masks = Masks::none();
        masks.draw(p, seed, epoch, sample, architecture);
        masks
    }

    /// Replaces these masks by those of [`Masks::dropout`], reusing allocations.
    ///
    /// # Panics
    /// If `p` is not in [0, 1).
    pub fn draw(&mut self, p: f32, seed: u64, epoch: u32, sample: u32, architecture: &Architecture) {
        assert!((0.0..1.0).contains(&p), "dropout must be in [0, 1)");
        if p == 0.0 {
            self.0.clear();
            return;
        }
        let stream = Stream::new(seed, Purpose::Dropout, epoch, sample);
        let scale = (1.0 / (1.0 - f64::from(p))) as f32;
        let layers = architecture.hidden().iter().filter(|layer| layer.kind.takes_dropout());
        let mut count = 0;
        for (index, layer) in layers.enumerate() {
            if self.0.len() == index {
                self.0.push(Mask { keep: Vec::new(), scale });
            }
            let mask = &mut self.0[index];
            mask.scale = scale;
            mask.keep.clear();
            mask.keep.resize(layer.output.pixels() * layer.output.channels.div_ceil(64), 0);
            let drawing = Drawing {
                stream,
                layer: index as u32,
                p,
                channels: layer.output.channels,
                keep: &mut mask.keep,
            };
            simd::vectorise(Isa::best(), drawing);
            count += 1;
        }
        self.0.truncate(count);
    }

    /// Masks from arrays `[channel][row][column]`, each of which contains 0 and one number of at least 1, as
    /// `1/(1-p)` is.
    pub fn from_values(masks: &[&[f32]], architecture: &Architecture) -> Result<Self, MaskError> {
        let layers: Vec<_> = architecture.hidden().iter().filter(|l| l.kind.takes_dropout()).collect();
        if layers.len() != masks.len() {
            return Err(MaskError::Count { found: masks.len(), expected: layers.len() });
        }
        let mut out = Vec::new();
        for (i, (layer, values)) in layers.iter().zip(masks).enumerate() {
            let (number, shape) = (i + 1, layer.output);
            if values.len() != shape.neurons() {
                return Err(MaskError::Length { number, found: values.len(), expected: shape.neurons() });
            }
            let scale = values.iter().copied().find(|&x| x != 0.0).unwrap_or(1.0);
            let words = shape.channels.div_ceil(64);
            let mut keep = vec![0; shape.pixels() * words];
            for (entry, &value) in values.iter().enumerate() {
                if value != 0.0 && (value != scale || !(value.is_finite() && value >= 1.0)) {
                    return Err(MaskError::Value { number, entry, value });
                }
                let (channel, pixel) = (entry / shape.pixels(), entry % shape.pixels());
                keep[pixel * words + channel / 64] |= u64::from(value != 0.0) << (channel % 64);
            }
            out.push(Mask { keep, scale });
        }
        Ok(Masks(out))
    }

    /// The mask of the `index`-th hidden conv or fully connected layer, if there is dropout.
    pub fn get(&self, index: usize) -> Option<&Mask> {
        self.0.get(index)
    }

    /// Whether there is no dropout.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }
}

/// Draws one layer's keep bits: entry `(pixel, channel)` is kept if its uniform random number is at
/// least `p`. This is the number of step `channel % 4` and of pixel `pixel + pixels * (channel / 4)`;
/// each layer has a step block of its own.
struct Drawing<'a> {
    stream: Stream,
    layer: u32,
    p: f32,
    channels: usize,
    keep: &'a mut [u64],
}

impl Work for Drawing<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let words = self.channels.div_ceil(64);
        let pixels = self.keep.len() / words;
        let bound = (f64::from(self.p) * f64::from(1u32 << 24)).ceil() as u64;
        for group in 0..self.channels.div_ceil(4) {
            for first in (0..pixels).step_by(crate::philox::LANES) {
                let lanes = self.stream.lanes(self.layer, (group * pixels + first) as u32);
                let used = crate::philox::LANES.min(pixels - first);
                let mut nibbles = [0u64; crate::philox::LANES];
                for (i, words) in lanes.iter().enumerate() {
                    for (nibble, word) in nibbles.iter_mut().zip(words) {
                        *nibble |= u64::from(word >> 8 >= bound) << i;
                    }
                }
                let valid = !0 >> (64 - (self.channels - 4 * group).min(4));
                for (lane, nibble) in nibbles[..used].iter().enumerate() {
                    self.keep[(first + lane) * words + group / 16] |= (nibble & valid) << (4 * (group % 16));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_the_stated_share_and_depends_on_everything() {
        let net = Architecture::parse("1x17x9-70C3-2P-33FC-4o").unwrap();
        let masks = Masks::dropout(0.2, 1, 2, 3, &net);
        let kept: u32 = masks.get(0).unwrap().keep.iter().map(|w| w.count_ones()).sum();
        let n = f64::from(17 * 9 * 70);
        let deviation = (n * 0.2 * 0.8).sqrt();
        assert!((f64::from(kept) - 0.8 * n).abs() < 5.0 * deviation, "{kept} of {n}");
        assert!(masks.get(0).unwrap().keep.chunks(2).all(|w| w[1] >> 6 == 0), "bits past the last channel");
        assert_eq!(masks.get(1).unwrap().keep.len(), 1);
        assert!(masks.get(2).is_none());
        for other in [(2, 2, 3), (1, 3, 3), (1, 2, 4)] {
            assert_ne!(masks, Masks::dropout(0.2, other.0, other.1, other.2, &net));
        }
        let mut dirty =
            Masks::dropout(0.7, 9, 9, 9, &Architecture::parse("1x20x20-90C3-8FC-8FC-4o").unwrap());
        dirty.draw(0.2, 1, 2, 3, &net);
        assert_eq!(masks, dirty);
        assert!(Masks::dropout(0.0, 1, 2, 3, &net).is_none());
    }

    #[test]
    fn values_are_checked() {
        let net = Architecture::parse("1x1x2-2FC-4o").unwrap();
        assert!(matches!(Masks::from_values(&[], &net), Err(MaskError::Count { .. })));
        assert!(matches!(Masks::from_values(&[&[1.0]], &net), Err(MaskError::Length { .. })));
        assert!(matches!(Masks::from_values(&[&[2.0, 1.0]], &net), Err(MaskError::Value { entry: 1, .. })));
        assert!(matches!(Masks::from_values(&[&[f32::NAN, 0.0]], &net), Err(MaskError::Value { .. })));
        // A pool above would need more than four spikes.
        for small in [0.75, -1.0] {
            let error = Masks::from_values(&[&[0.0, small]], &net).unwrap_err();
            assert_eq!(error, MaskError::Value { number: 1, entry: 1, value: small });
        }
        assert!(Masks::from_values(&[&[0.0, 1.0]], &net).is_ok());
        let masks = Masks::from_values(&[&[0.0, 1.25]], &net).unwrap();
        assert_eq!(masks.get(0).unwrap(), &Mask { keep: vec![2], scale: 1.25 });
    }
}
