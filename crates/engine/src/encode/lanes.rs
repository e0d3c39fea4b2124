//! The encoder's inner loops: sixteen pixels and four steps at a time.

use super::BEFORE_FIRST;
use crate::noise::{Added, Colour, NoiseSetting};
use crate::philox::{LANES, Stream, normal_lanes, unit};
use crate::simd::Work;
use crate::spikes::{Shape, Spikes};

/// Number of channels whose thresholds are computed once and used for all steps.
const CHANNELS: usize = 4;

/// The random number streams of a presentation.
#[derive(Clone, Copy)]
pub(super) struct Draws {
    pub encode: Stream,
    pub noise: Stream,
}

/// A noise that adds a number to a neuron's value.
#[derive(Clone, Copy)]
pub(super) struct Additive {
    pub added: Added,
    pub setting: NoiseSetting,
}

/// A row of sixteen pixels of one channel; pixels past the end of the image are 0.
#[inline(always)]
fn row(image: &[f32], shape: Shape, channel: usize, first: usize) -> [f32; LANES] {
    let plane = &image[channel * shape.pixels()..][..shape.pixels()];
    let mut x = [0.0; LANES];
    let part = &plane[first..plane.len().min(first + LANES)];
    x[..part.len()].copy_from_slice(part);
    x
}

/// All bits set if `a < b`, otherwise none, for numbers of less than 63 bits. This arithmetic is vectorised,
/// while a condition would become a branch.
#[inline(always)]
fn below(a: u64, b: u64) -> u64 {
    (a.wrapping_sub(b) as i64 >> 63) as u64
}

/// Converts four steps of independent standard normals to noise of the given colour and standard
/// deviation. `last` holds the noise of the previous step (for blue noise, its standard normal). In the
/// first block of steps its contents have no effect.
#[inline(always)]
fn colour(
    setting: NoiseSetting,
    stream: Stream,
    step_block: u32,
    neuron: u32,
    n: &[[f32; LANES]; 4],
    last: &mut [f32; LANES],
) -> [[f32; LANES]; 4] {
    let level = setting.level();
    let mut out = [[0.0; LANES]; 4];
    match setting.colour() {
        Colour::White => {
            for step in 0..4 {
                for lane in 0..LANES {
                    out[step][lane] = level * n[step][lane];
                }
            }
        }
        Colour::Correlated(time) => {
            let [rho, fresh] = Colour::recursion(time);
            for step in 0..4 {
                // The very first step has no predecessor.
                let (rho, fresh) = if step_block == 0 && step == 0 { (0.0, 1.0) } else { (rho, fresh) };
                for lane in 0..LANES {
                    out[step][lane] = rho * last[lane] + level * fresh * n[step][lane];
                }
                *last = out[step];
            }
        }
        Colour::Frozen => {
            if step_block == 0 {
                for lane in 0..LANES {
                    last[lane] = level * n[0][lane];
                }
            }
            out = [*last; 4];
        }
        Colour::Blue => {
            if step_block == 0 {
                *last = normal_lanes(&stream.lanes(BEFORE_FIRST / 4, neuron))[BEFORE_FIRST as usize % 4];
            }
            let scale = level * std::f32::consts::FRAC_1_SQRT_2;
            for step in 0..4 {
                for lane in 0..LANES {
                    out[step][lane] = scale * (n[step][lane] - last[lane]);
                }
                *last = n[step];
            }
        }
    }
    out
}

/// The values that noise adds to sixteen neurons at four steps. `last` is the state of these neurons'
/// coloured noise, which is passed from one block of steps to the next.
#[inline(always)]
fn additive(
    Additive { added, setting }: Additive,
    stream: Stream,
    step_block: u32,
    neuron: u32,
    last: &mut [f32; LANES],
) -> [[f32; LANES]; 4] {
    let words = stream.lanes(step_block, neuron);
    match added {
        Added::Gaussian => colour(setting, stream, step_block, neuron, &normal_lanes(&words), last),
        Added::Impulse => {
            let (probability, size) = setting.impulse();
            let mut out = [[0.0; LANES]; 4];
            for step in 0..4 {
                for lane in 0..LANES {
                    let u = unit(words[step][lane] as u32);
                    let impulse = if u < 0.5 * probability { size } else { -size };
                    out[step][lane] = if u < probability { impulse } else { 0.0 };
                }
            }
            out
        }
    }
}

/// Spikes (1, 0 or -1) of sixteen neurons at four steps: each value is
/// compared with its uniform random number.
#[inline(always)]
fn fire(values: &[[f32; LANES]; 4], uniforms: &[[u64; LANES]; 4], unsigned: bool) -> [[f32; LANES]; 4] {
    let mut out = [[0.0; LANES]; 4];
    let negative = if unsigned { 0.0 } else { -1.0 };
    for step in 0..4 {
        for lane in 0..LANES {
            let x = values[step][lane];
            let spike = if x > 0.0 { 1.0 } else { negative };
            out[step][lane] = if x.abs() > unit(uniforms[step][lane] as u32) { spike } else { 0.0 };
        }
    }
    out
}

/// Generates spikes of +1 and -1: clean, with noise on the pixels, or with deletion of spikes.
///
/// Spikes are written word by word. An image of more than 32 channels has several words per step, and the
/// random numbers of all channels are drawn again for each of them: the same numbers, since a number is a
/// function of its place, but more work.
pub(super) struct Ternary<'a> {
    pub image: &'a [f32],
    pub shape: Shape,
    pub steps: usize,
    pub unsigned: bool,
    pub pixel_noise: Option<Additive>,
    pub deletion: f32,
    pub draws: Draws,
    pub spikes: &'a mut Spikes,
}

impl Work for Ternary<'_> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        for word in 0..self.spikes.words_per_step() {
            for first_pixel in (0..self.shape.pixels()).step_by(LANES) {
                for first_channel in (0..self.shape.channels).step_by(CHANNELS) {
                    match self.pixel_noise {
                        None => self.clean(word, first_pixel, first_channel),
                        Some(noise) => self.noisy(noise, word, first_pixel, first_channel),
                    }
                }
            }
        }
    }
}

impl Ternary<'_> {
    /// The bits of a channel's positive and negative spikes in word number
    /// `word`; 0 for a bit in another word.
    #[inline(always)]
    fn bits(&self, word: usize, channel: usize) -> [u64; 2] {
        [channel, self.shape.channels + channel].map(|bit| u64::from(bit / 64 == word) << (bit % 64))
    }

    /// Generates spikes without noise on the pixels. For an integer k, `|x| > k * 2^-24` is equivalent to
    /// `k < ceil(|x| * 2^24)`. Both sides are exact in single precision, so integers can be compared.
    #[inline(always)]
    fn clean(&mut self, word: usize, first_pixel: usize, first_channel: usize) {
        let channels = CHANNELS.min(self.shape.channels - first_channel);
        let mut limits = [[0u64; LANES]; CHANNELS];
        let mut bits = [[0u64; LANES]; CHANNELS];
        for c in 0..channels {
            let x = row(self.image, self.shape, first_channel + c, first_pixel);
            let [positive, negative] = self.bits(word, first_channel + c);
            for lane in 0..LANES {
                limits[c][lane] = u64::from((x[lane].abs() * 16_777_216.0).ceil() as u32);
                bits[c][lane] = if x[lane] > 0.0 {
                    positive
                } else if self.unsigned {
                    0
                } else {
                    negative
                };
            }
        }
        let lost = u64::from((self.deletion * 16_777_216.0).ceil() as u32);
        for step_block in 0..self.steps.div_ceil(4) {
            let mut fired = [[0u64; LANES]; 4];
            for c in 0..channels {
                let neuron = (first_channel + c) * self.shape.pixels() + first_pixel;
                let words = self.draws.encode.lanes(step_block as u32, neuron as u32);
                for step in 0..4 {
                    for lane in 0..LANES {
                        fired[step][lane] |= bits[c][lane] & below(words[step][lane] >> 8, limits[c][lane]);
                    }
                }
                if lost > 0 {
                    let words = self.draws.noise.lanes(step_block as u32, neuron as u32);
                    for step in 0..4 {
                        for lane in 0..LANES {
                            fired[step][lane] &= !(bits[c][lane] & below(words[step][lane] >> 8, lost));
                        }
                    }
                }
            }
            self.store(word, first_pixel, step_block, &fired);
        }
    }

    #[inline(always)]
    fn noisy(&mut self, noise: Additive, word: usize, first_pixel: usize, first_channel: usize) {
        let channels = CHANNELS.min(self.shape.channels - first_channel);
        let mut last = [[0.0; LANES]; CHANNELS];
        for step_block in 0..self.steps.div_ceil(4) {
            let mut fired = [[0u64; LANES]; 4];
            for (channel, last) in (first_channel..first_channel + channels).zip(&mut last) {
                let x = row(self.image, self.shape, channel, first_pixel);
                let neuron = (channel * self.shape.pixels() + first_pixel) as u32;
                let mut values = additive(noise, self.draws.noise, step_block as u32, neuron, last);
                for step in 0..4 {
                    for lane in 0..LANES {
                        values[step][lane] += x[lane];
                    }
                }
                let uniforms = self.draws.encode.lanes(step_block as u32, neuron);
                let spikes = fire(&values, &uniforms, self.unsigned);
                let [positive, negative] = self.bits(word, channel);
                for step in 0..4 {
                    for lane in 0..LANES {
                        let spike = spikes[step][lane];
                        fired[step][lane] |= if spike > 0.0 { positive } else { 0 };
                        fired[step][lane] |= if spike < 0.0 { negative } else { 0 };
                    }
                }
            }
            self.store(word, first_pixel, step_block, &fired);
        }
    }

    #[inline(always)]
    fn store(&mut self, word: usize, first_pixel: usize, step_block: usize, fired: &[[u64; LANES]; 4]) {
        let words_per_step = self.spikes.words_per_step();
        let stride = self.steps * words_per_step;
        let pixels = LANES.min(self.shape.pixels() - first_pixel);
        let steps = (self.steps - 4 * step_block).min(4);
        let words = &mut self.spikes.words_mut()[first_pixel * stride..][..pixels * stride];
        for (lane, train) in words.chunks_exact_mut(stride).enumerate() {
            for step in 0..steps {
                train[(4 * step_block + step) * words_per_step + word] |= fired[step][lane];
            }
        }
    }
}

/// Generates spikes and adds noise to them.
pub(super) struct Real<'a> {
    pub image: &'a [f32],
    pub shape: Shape,
    pub steps: usize,
    pub unsigned: bool,
    pub noise: Additive,
    pub draws: Draws,
    pub values: &'a mut [f32],
}

impl Work for Real<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let pixels = self.shape.pixels();
        for channel in 0..self.shape.channels {
            for first in (0..pixels).step_by(LANES) {
                let x = [row(self.image, self.shape, channel, first); 4];
                let neuron = channel * pixels + first;
                let count = LANES.min(pixels - first);
                let mut last = [0.0; LANES];
                for step_block in 0..self.steps.div_ceil(4) {
                    let uniforms = self.draws.encode.lanes(step_block as u32, neuron as u32);
                    let mut values = fire(&x, &uniforms, self.unsigned);
                    let noise =
                        additive(self.noise, self.draws.noise, step_block as u32, neuron as u32, &mut last);
                    for step in 0..(self.steps - 4 * step_block).min(4) {
                        for lane in 0..LANES {
                            values[step][lane] += noise[step][lane];
                        }
                        let at = (4 * step_block + step) * self.shape.neurons() + neuron;
                        self.values[at..at + count].copy_from_slice(&values[step][..count]);
                    }
                }
            }
        }
    }
}
