//! Recordings of an event camera as input of a network, and the noises
//! of an event sensor, which act on spikes.
//!
//! A recording needs no encoder: it is the input itself. Its polarities are channels, and all its spikes are
//! positive, so the kernels for encoded images can read it. The noises in this file act on spikes as bits,
//! and therefore also on encoded images, where the two signs stand for the two polarities.

use crate::noise::{Action, Changed, NoiseSetting};
use crate::philox::{Purpose, Stream};
use crate::spikes::{Input, Shape, Spikes};

/// What distinguishes the two polarities of a pixel's spikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Polarity {
    /// The sign: encoded images, whose spikes have `2 * channels` bits.
    Sign,
    /// The channel: recordings, which use only the first `channels` bits. The first
    /// channel is the opposite of the last.
    Channel,
}

/// Writes one presentation of a recording to `input`. The recording contains the `(step, neuron)` of each
/// spike, with neurons numbered as `[channel][row][column]`.
///
/// The result is a pure function of the other arguments: `input` is overwritten. Noise of level 0 changes
/// nothing. Noises that do not act on events ([`crate::noise::Noise::acts_on_events`]) change nothing either;
/// they are refused where settings are read.
///
/// # Panics
/// If a spike is outside of the steps or the shape.
pub fn play(
    recording: impl Iterator<Item = (usize, usize)>,
    shape: Shape,
    steps: usize,
    noise: Option<NoiseSetting>,
    (seed, epoch, sample): (u64, u32, u32),
    input: &mut Input,
) {
    let spikes = super::ternary(input, shape, steps);
    for (step, neuron) in recording {
        assert!(step < steps && neuron < shape.neurons(), "a spike must be within the steps and the shape");
        spikes.set(neuron % shape.pixels(), step, neuron / shape.pixels());
    }
    if let Some(setting) = noise.filter(|setting| setting.level() > 0.0) {
        let stream = Stream::new(seed, Purpose::Noise, epoch, sample);
        match setting.noise().action() {
            Action::Change(change) => {
                disturb(spikes, shape, Polarity::Channel, change, setting.level(), seed, stream);
            }
            Action::Add(_) | Action::Replace(_) => {}
        }
    }
}

/// Applies the noise of an event sensor to spikes.
pub(super) fn disturb(
    spikes: &mut Spikes,
    shape: Shape,
    polarity: Polarity,
    change: Changed,
    level: f32,
    seed: u64,
    noise: Stream,
) {
    match change {
        Changed::Jitter => move_spikes(spikes, shape, noise, level),
        Changed::Deletion => each_spike(spikes, shape, |step, neuron, bit| {
            (noise.uniform(step, neuron) >= level).then_some(bit)
        }),
        Changed::PolarityFlip => each_spike(spikes, shape, |step, neuron, bit| {
            let flips = noise.uniform(step, neuron) < level;
            Some(if flips { opposite(bit, shape, polarity) } else { bit })
        }),
        Changed::Background => add_background(spikes, shape, polarity, level, noise),
        Changed::HotPixel => heat_pixels(spikes, shape, polarity, level, seed),
    }
}

/// The bit of the opposite polarity.
fn opposite(bit: usize, shape: Shape, polarity: Polarity) -> usize {
    let channels = shape.channels;
    match polarity {
        Polarity::Sign => (bit + channels) % (2 * channels),
        Polarity::Channel => channels - 1 - bit,
    }
}

/// Replaces the bit of every spike by the result of `change` for its step,
/// neuron and bit; `None` removes the spike.
fn each_spike(spikes: &mut Spikes, shape: Shape, change: impl Fn(u32, u32, usize) -> Option<usize>) {
    let (steps, words) = (spikes.steps(), spikes.words_per_step());
    let mut before = vec![0; words];
    for pixel in 0..shape.pixels() {
        for step in 0..steps {
            let now = &mut spikes.words_mut()[(pixel * steps + step) * words..][..words];
            if now.iter().all(|&word| word == 0) {
                continue;
            }
            before.copy_from_slice(now);
            now.fill(0);
            for (word, &bits) in before.iter().enumerate() {
                let mut left = bits;
                while left != 0 {
                    let bit = 64 * word + left.trailing_zeros() as usize;
                    left &= left - 1;
                    let neuron = (bit % shape.channels * shape.pixels() + pixel) as u32;
                    if let Some(to) = change(step as u32, neuron, bit) {
                        now[to / 64] |= 1 << (to % 64);
                    }
                }
            }
        }
    }
}

/// Makes silent neurons fire with probability `level`.
fn add_background(spikes: &mut Spikes, shape: Shape, polarity: Polarity, level: f32, noise: Stream) {
    for neuron in 0..shape.neurons() {
        let (channel, pixel) = (neuron / shape.pixels(), neuron % shape.pixels());
        for step in 0..spikes.steps() {
            let u = noise.uniform(step as u32, neuron as u32);
            if u >= level {
                continue;
            }
            match polarity {
                Polarity::Channel => spikes.set(pixel, step, channel),
                Polarity::Sign => {
                    let fired = [channel, shape.channels + channel].map(|bit| spikes.get(pixel, step, bit));
                    if fired == [false; 2] {
                        let negative = if u < 0.5 * level { 0 } else { shape.channels };
                        spikes.set(pixel, step, negative + channel);
                    }
                }
            }
        }
    }
}

/// For a hot pixel, whether it fires in the first polarity; `None` for other pixels. Hot pixels are a
/// property of the device: they depend on the seed, and not on the image or the epoch.
pub(super) fn hot(seed: u64, pixel: u32, level: f32) -> Option<bool> {
    let u = Stream::new(seed, Purpose::Noise, 0, u32::MAX).uniform(0, pixel);
    (u < level).then_some(u < 0.5 * level)
}

/// Makes the hot pixels fire at every step.
fn heat_pixels(spikes: &mut Spikes, shape: Shape, polarity: Polarity, level: f32, seed: u64) {
    for pixel in 0..shape.pixels() {
        let Some(first) = hot(seed, pixel as u32, level) else { continue };
        for step in 0..spikes.steps() {
            match polarity {
                Polarity::Channel => spikes.set(pixel, step, if first { 0 } else { shape.channels - 1 }),
                Polarity::Sign => {
                    let words = spikes.words_per_step();
                    let start = (pixel * spikes.steps() + step) * words;
                    spikes.words_mut()[start..start + words].fill(0);
                    for channel in 0..shape.channels {
                        spikes.set(pixel, step, if first { channel } else { shape.channels + channel });
                    }
                }
            }
        }
    }
}

/// Moves every spike in time by a rounded normal number of steps, with standard deviation `level`.
fn move_spikes(spikes: &mut Spikes, shape: Shape, noise: Stream, level: f32) {
    let (steps, words) = (spikes.steps(), spikes.words_per_step());
    let mut before = Vec::new();
    for pixel in 0..shape.pixels() {
        let train = &mut spikes.words_mut()[pixel * steps * words..][..steps * words];
        before.clear();
        before.extend_from_slice(train);
        train.fill(0);
        for step in 0..steps {
            for (word, &bits) in before[step * words..][..words].iter().enumerate() {
                let mut left = bits;
                while left != 0 {
                    let bit = left.trailing_zeros() as usize;
                    left &= left - 1;
                    let channel = (64 * word + bit) % shape.channels;
                    let neuron = (channel * shape.pixels() + pixel) as u32;
                    let to = step as f32 + (level * noise.normal(step as u32, neuron)).round();
                    if to >= 0.0 && to < steps as f32 {
                        train[to as usize * words + word] |= 1 << bit;
                    }
                }
            }
        }
    }
}
