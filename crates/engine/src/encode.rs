//! Encodes images as spikes: the signed Poisson encoder (specification, section 3, Algorithm 1 of the
//! paper), and the noise that acts on it.
//!
//! Sixteen pixels and four steps are encoded together, in the layout in which [`crate::philox`] generates its
//! words, so encoding an image of at most 32 channels costs little more than drawing its random numbers.
//! [`mod@reference`] is the reference implementation in plain code, and the tests compare every bit.

mod lanes;
pub mod recording;
pub mod reference;

use crate::noise::{Action, Changed, NoiseSetting, Replaced, Scenario};
use crate::philox::{Purpose, Stream};
use crate::simd::{self, Isa};
use crate::spikes::{Input, Shape, Spikes};
use lanes::{Additive, Draws, Real, Ternary};
use recording::Polarity;
use std::fmt;
use std::str::FromStr;

/// The step whose standard normal is used as `n[0]` of blue noise, the value before the first step. It is the
/// last step that the generator can number, and no presentation reaches it.
const BEFORE_FIRST: u32 = u32::MAX;

/// How a pixel is encoded as spikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Encoder {
    /// With `X` uniform in [0, 1), `sign(x)` if `|x| > X`, else 0.
    #[default]
    Signed,
    /// 1 if `x > X`, else 0: Algorithm 1 as printed. Every pixel below the image's mean is silent.
    Unsigned,
}

/// The error that no encoder has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("encoder '{0}' is not one of signed, unsigned")]
pub struct UnknownEncoder(String);

impl fmt::Display for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Encoder::Signed => "signed",
            Encoder::Unsigned => "unsigned",
        })
    }
}

impl FromStr for Encoder {
    type Err = UnknownEncoder;

    fn from_str(name: &str) -> Result<Self, UnknownEncoder> {
        let found = [Encoder::Signed, Encoder::Unsigned].into_iter().find(|e| e.to_string() == name);
        found.ok_or_else(|| UnknownEncoder(name.to_owned()))
    }
}

/// How images are presented to a network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Encoding {
    /// How a pixel is encoded as spikes.
    pub encoder: Encoder,
    /// Time steps.
    pub time_steps: usize,
    /// Noise, if any.
    pub noise: Option<NoiseSetting>,
    /// Instruction set to use; the spikes do not depend on it.
    pub isa: Isa,
}

impl Encoding {
    /// The signed encoder without noise, on the fastest instruction set.
    pub fn clean(time_steps: usize) -> Self {
        Encoding { encoder: Encoder::Signed, time_steps, noise: None, isa: Isa::best() }
    }

    /// The same encoding with the given noise; `None` means no noise.
    pub fn with_noise(self, noise: Option<NoiseSetting>) -> Self {
        Encoding { noise, ..self }
    }
}

/// Encodes one presentation of a normalised image, `[channel][row][column]` in [-1, 1].
///
/// The result is a pure function of the other arguments: `input` is overwritten, and only its allocation is
/// reused. The result is real-valued for Gaussian and impulse noise on the spikes, and ternary otherwise.
/// Noise of level 0 gives exactly the clean spikes.
///
/// # Panics
/// If `image` does not have the size of `shape`.
pub fn encode(
    image: &[f32],
    shape: Shape,
    encoding: &Encoding,
    seed: u64,
    epoch: u32,
    sample: u32,
    input: &mut Input,
) {
    assert_eq!(image.len(), shape.neurons(), "the image must have the size of the shape");
    let steps = encoding.time_steps;
    let draws = Draws {
        encode: Stream::new(seed, Purpose::Encode, epoch, sample),
        noise: Stream::new(seed, Purpose::Noise, epoch, sample),
    };
    let mut replaced = Vec::new();
    let mut replace = |value: &dyn Fn(u32) -> Option<f32>| {
        replaced.extend_from_slice(image);
        replace_pixels(&mut replaced, shape, value);
    };
    // What the noise changes: the image, a neuron's value before or after encoding, or the spikes.
    let (mut pixel_noise, mut channel_noise, mut deletion, mut changed) = (None, None, 0.0, None);
    if let Some(setting) = encoding.noise.filter(|setting| setting.level() > 0.0) {
        let level = setting.level();
        match setting.noise().action() {
            Action::Add(added) => match setting.scenario() {
                Scenario::Pixel => pixel_noise = Some(Additive { added, setting }),
                Scenario::Channel => channel_noise = Some(Additive { added, setting }),
            },
            Action::Replace(Replaced::Stuck) => replace(&|pixel| stuck_value(seed, pixel, level)),
            Action::Replace(Replaced::SaltAndPepper) => {
                replace(&|pixel| salt_and_pepper_value(draws.noise, pixel, level));
            }
            // Spikes are deleted most cheaply while they are generated.
            Action::Change(Changed::Deletion) => deletion = level,
            Action::Change(change) => changed = Some((change, level)),
        }
    }
    let image = if replaced.is_empty() { image } else { &replaced };
    let unsigned = match encoding.encoder {
        Encoder::Signed => false,
        Encoder::Unsigned => true,
    };
    if let Some(noise) = channel_noise {
        let values = real(input, shape, steps);
        simd::vectorise(encoding.isa, Real { image, shape, steps, unsigned, noise, draws, values });
        return;
    }
    let spikes = ternary(input, shape, steps);
    simd::vectorise(
        encoding.isa,
        Ternary { image, shape, steps, unsigned, pixel_noise, deletion, draws, spikes },
    );
    if let Some((change, level)) = changed {
        recording::disturb(spikes, shape, Polarity::Sign, change, level, seed, draws.noise);
    }
}

/// Turns `input` into a silent ternary input, and returns its spikes.
fn ternary(input: &mut Input, shape: Shape, steps: usize) -> &mut Spikes {
    if !matches!(input, Input::Ternary { .. }) {
        *input = Input::Ternary { shape, spikes: Spikes::default() };
    }
    let Input::Ternary { shape: of, spikes } = input else { unreachable!("made ternary above") };
    *of = shape;
    spikes.reset(shape.pixels(), steps, 2 * shape.channels);
    spikes
}

/// Turns `input` into a real-valued input of the right size, and returns its values.
/// The caller must overwrite all of them.
fn real(input: &mut Input, shape: Shape, steps: usize) -> &mut [f32] {
    if !matches!(input, Input::Real { .. }) {
        *input = Input::Real { shape, steps, values: Vec::new() };
    }
    let Input::Real { shape: of, steps: for_steps, values } = input else { unreachable!("made real above") };
    (*of, *for_steps) = (shape, steps);
    values.resize(steps * shape.neurons(), 0.0);
    values
}

/// Sets all channels of the pixels for which `value` returns a value.
fn replace_pixels(image: &mut [f32], shape: Shape, value: impl Fn(u32) -> Option<f32>) {
    for pixel in 0..shape.pixels() {
        if let Some(value) = value(pixel as u32) {
            image.iter_mut().skip(pixel).step_by(shape.pixels()).for_each(|x| *x = value);
        }
    }
}

/// The value of a broken pixel; `None` if the pixel works. Broken pixels are a property of the device: they
/// depend on the seed, and not on the image or the epoch.
fn stuck_value(seed: u64, pixel: u32, level: f32) -> Option<f32> {
    let u = Stream::new(seed, Purpose::Noise, 0, u32::MAX).uniform(0, pixel);
    (u < level).then_some(match u / level {
        part if part < 0.25 => 1.0,
        part if part < 0.5 => -1.0,
        _ => 0.0,
    })
}

/// The value with which salt-and-pepper noise replaces a pixel; `None` if the pixel is unchanged.
fn salt_and_pepper_value(noise: Stream, pixel: u32, level: f32) -> Option<f32> {
    let u = noise.uniform(0, pixel);
    (u < level).then_some(if u < 0.5 * level { 1.0 } else { -1.0 })
}
