//! Presents an image or a recording to the network. An image is augmented, normalised and encoded; a
//! recording is moved and replayed.

use super::augment::Motion;
use super::{Augmentation, DataError, Dataset, Normaliser, Split, augment};
use leaklab_engine::encode::{Encoding, encode, recording};
use leaklab_engine::noise::{Noise, NoiseSetting};
use leaklab_engine::{Input, Isa, Shape};

/// How the images of a data set are presented.
#[derive(Debug, Clone, PartialEq)]
pub struct Presentation {
    /// Size of an image.
    pub shape: Shape,
    /// Whether these are recordings, which are not normalised or encoded.
    pub recorded: bool,
    /// Random crops, flips and shifts; [`Augmentation::NONE`] outside training.
    pub augmentation: Augmentation,
    /// Normalisation with its constants.
    pub normaliser: Normaliser,
    /// Encoder, time steps and noise.
    pub encoding: Encoding,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// Buffers for one image between the stages; they can be used for any number of images in sequence.
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    pixels: Vec<u8>,
    numbers: Vec<f32>,
}

impl Presentation {
    /// The same presentation, encoded with this instruction set; the spikes do not depend on it.
    pub fn with_isa(mut self, isa: Isa) -> Self {
        self.encoding.isa = isa;
        self
    }

    /// A presentation of a data set's images, normalised by `normaliser` and encoded, without augmentation.
    pub fn new(dataset: &Dataset, normaliser: Normaliser, encoding: Encoding, seed: u64) -> Self {
        let (shape, recorded) = (dataset.shape, dataset.has_events());
        Presentation { shape, recorded, augmentation: Augmentation::NONE, normaliser, encoding, seed }
    }

    /// The same presentation with noise, or without if `noise` is `None`. A noise that does not act on these
    /// data is refused.
    pub fn noisy(self, noise: Option<NoiseSetting>) -> Result<Self, DataError> {
        if let Some(setting) = noise.filter(|setting| self.recorded && !setting.noise().acts_on_events()) {
            return Err(DataError::Request(refuse_noise(setting.noise())));
        }
        Ok(Presentation { encoding: self.encoding.with_noise(noise), ..self })
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

    /// Writes the input spikes of image or recording `index` of a split to `input`. They are a pure function
    /// of the image, the presentation and the epoch.
    pub fn show(&self, split: &Split, index: usize, epoch: u32, scratch: &mut Scratch, input: &mut Input) {
        if let Some(recordings) = split.recordings() {
            let sample = split.sample(index);
            let motion = Motion::new(&self.augmentation, self.seed, epoch, sample);
            let steps = self.encoding.time_steps;
            let spikes = recordings.recording(index);
            let moved = spikes.filter_map(|spike| motion.moved(spike, self.shape, steps));
            recording::play(moved, self.shape, steps, self.encoding.noise, (self.seed, epoch, sample), input);
            return;
        }
        let pixels = self.pixels(split, index, epoch, scratch);
        encode(pixels, self.shape, &self.encoding, self.seed, epoch, split.sample(index), input);
    }
}

/// The message for a noise that does not act on event data.
pub fn refuse_noise(noise: Noise) -> String {
    let known: Vec<&str> =
        Noise::ALL.into_iter().filter(|noise| noise.acts_on_events()).map(Noise::name).collect();
    format!(
        "noise '{noise}' acts on what is encoded, and recordings of an event camera are not; use one of {}",
        known.join(", ")
    )
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
        presentation.augmentation = Augmentation { crop_padding: 1, flip: false, shift: 0 };
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
