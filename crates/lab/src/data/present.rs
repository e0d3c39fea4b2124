//! One image on its way to the network: augmented, normalised, encoded.

use super::{Augmentation, Dataset, Normaliser, Split, augment};
use leaklab_engine::encode::{Encoding, encode};
use leaklab_engine::{Input, Isa, Shape};

/// How the images of a data set are shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Presentation {
    /// Size of an image.
    pub shape: Shape,
    /// Crop and flip; [`Augmentation::NONE`] outside training.
    pub augmentation: Augmentation,
    /// Normalisation with its constants.
    pub normaliser: Normaliser,
    /// Encoder, time steps and noise.
    pub encoding: Encoding,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// Room for one image between the stages; any number of images can use it, one after the other.
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    pixels: Vec<u8>,
    numbers: Vec<f32>,
}

impl Presentation {
    /// The same, encoded with an instruction set; the spikes are the same with each.
    pub fn with_isa(mut self, isa: Isa) -> Self {
        self.encoding.isa = isa;
        self
    }

    /// A data set's images, normalised by `normaliser` and encoded, without augmentation.
    pub fn new(dataset: &Dataset, normaliser: Normaliser, encoding: Encoding, seed: u64) -> Self {
        Presentation { shape: dataset.shape, augmentation: Augmentation::NONE, normaliser, encoding, seed }
    }

    /// The normalised pixels that are encoded, `[channel][row][column]`.
    pub fn pixels<'a>(&self, split: &Split, index: usize, epoch: u32, scratch: &'a mut Scratch) -> &'a [f32] {
        let (image, sample) = (split.image(index), split.sample(index));
        scratch.pixels.resize(image.len(), 0);
        scratch.numbers.resize(image.len(), 0.0);
        augment(image, self.shape, &self.augmentation, self.seed, epoch, sample, &mut scratch.pixels);
        self.normaliser.apply(&scratch.pixels, self.shape, &mut scratch.numbers);
        &scratch.numbers
    }

    /// Shows image `index` of a split: a pure function of it, the presentation and the epoch.
    pub fn show(&self, split: &Split, index: usize, epoch: u32, scratch: &mut Scratch, input: &mut Input) {
        let pixels = self.pixels(split, index, epoch, scratch);
        encode(pixels, self.shape, &self.encoding, self.seed, epoch, split.sample(index), input);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Limits, load};

    #[test]
    fn a_limit_does_not_change_an_images_spikes() {
        let all = load("digits", None, &Limits::NONE).unwrap();
        let part = load("digits", None, &Limits { train: Some(30), test: Some(20), seed: 5, ..Limits::NONE })
            .unwrap();
        let mut presentation = Presentation::new(&all, Normaliser::PER_IMAGE, Encoding::clean(10), 1);
        presentation.augmentation = Augmentation { crop_padding: 1, flip: false };
        let (mut a, mut b) = (Input::silent(all.shape, 1), Input::silent(all.shape, 1));
        let mut scratch = Scratch::default();
        for i in 0..part.test.len() {
            let same = all.test.samples.iter().position(|&s| s == part.test.sample(i)).unwrap();
            presentation.show(&part.test, i, 3, &mut Scratch::default(), &mut a);
            presentation.show(&all.test, same, 3, &mut scratch, &mut b);
            assert!(a == b && part.test.label(i) == all.test.label(same));
        }
    }
}
