//! Reference implementation of the encoder in plain code, one neuron and step at a time. The
//! tests compare [`super::encode`] with it.

use super::recording::hot;
use super::{BEFORE_FIRST, Encoder, Encoding, salt_and_pepper_value, stuck_value};
use crate::noise::{Colour, Noise, NoiseSetting, Scenario};
use crate::philox::{Purpose, Stream};
use crate::spikes::{Input, Shape};

/// Computes the same input as [`super::encode`], slowly.
pub fn encode(image: &[f32], shape: Shape, encoding: &Encoding, seed: u64, epoch: u32, sample: u32) -> Input {
    let steps = encoding.time_steps;
    let mut values = vec![0.0; steps * shape.neurons()];
    let uniforms = Stream::new(seed, Purpose::Encode, epoch, sample);
    let noise = Stream::new(seed, Purpose::Noise, epoch, sample);
    let setting = encoding.noise.filter(|s| s.level() > 0.0);
    let mut real = false;
    for at in 0..values.len() {
        let (step, neuron) = ((at / shape.neurons()) as u32, (at % shape.neurons()) as u32);
        let pixel = neuron % shape.pixels() as u32;
        let mut x = image[neuron as usize];
        // The number added to the neuron's value or to its spike, whether the spike is lost, and the
        // number of steps by which it is delayed.
        let (mut xi, mut lost, mut late) = (None, false, 0.0);
        // A false spike where there is none, a spike that replaces whatever there
        // is, and whether the sign is flipped.
        let (mut false_spike, mut always, mut flipped) = (0.0, None, false);
        if let Some(s) = setting {
            match s.noise() {
                Noise::Gaussian => xi = Some(gaussian(s, noise, step, neuron)),
                Noise::Impulse => {
                    xi = Some(match noise.uniform(step, neuron) {
                        u if u < 0.5 * s.impulse().0 => s.impulse().1,
                        u if u < s.impulse().0 => -s.impulse().1,
                        _ => 0.0,
                    });
                }
                Noise::Deletion => lost = noise.uniform(step, neuron) < s.level(),
                Noise::Jitter => late = (s.level() * noise.normal(step, neuron)).round(),
                Noise::StuckPixel => x = stuck_value(seed, pixel, s.level()).unwrap_or(x),
                Noise::SaltAndPepper => x = salt_and_pepper_value(noise, pixel, s.level()).unwrap_or(x),
                Noise::Background => {
                    false_spike = match noise.uniform(step, neuron) {
                        u if u < 0.5 * s.level() => 1.0,
                        u if u < s.level() => -1.0,
                        _ => 0.0,
                    };
                }
                Noise::HotPixel => {
                    always = hot(seed, pixel, s.level()).map(|first| if first { 1.0 } else { -1.0 });
                }
                Noise::PolarityFlip => flipped = noise.uniform(step, neuron) < s.level(),
            }
        }
        let (before, after) = match setting.map_or(Scenario::Pixel, |s| s.scenario()) {
            Scenario::Pixel => (xi, None),
            Scenario::Channel => (None, xi),
        };
        x += before.unwrap_or(0.0);
        real |= after.is_some();
        let threshold = uniforms.uniform(step, neuron);
        let fires = match encoding.encoder {
            Encoder::Signed => x.abs() > threshold,
            Encoder::Unsigned => x > threshold,
        };
        let mut spike = if fires && !lost { x.signum() } else { 0.0 };
        spike = if spike == 0.0 { false_spike } else { spike };
        spike = if flipped { -spike } else { spike };
        spike = always.unwrap_or(spike);
        let to = step as f32 + late;
        if spike != 0.0 && to >= 0.0 && to < steps as f32 {
            values[to as usize * shape.neurons() + neuron as usize] = spike;
        }
        values[at] += after.unwrap_or(0.0);
    }
    if real { Input::Real { shape, steps, values } } else { Input::from_values(shape, steps, &values) }
}

/// Gaussian noise of any colour at one step, computed from its definition with the
/// standard normals of all steps up to this one.
fn gaussian(setting: NoiseSetting, noise: Stream, step: u32, neuron: u32) -> f32 {
    let (sigma, n) = (setting.level(), |step: u32| noise.normal(step, neuron));
    match setting.colour() {
        Colour::White => sigma * n(step),
        Colour::Correlated(time) => {
            let [rho, fresh] = Colour::recursion(time);
            (1..=step).fold(sigma * n(0), |xi, t| rho * xi + sigma * fresh * n(t))
        }
        Colour::Frozen => sigma * n(0),
        Colour::Blue => {
            let before = n(step.checked_sub(1).unwrap_or(BEFORE_FIRST));
            sigma * std::f32::consts::FRAC_1_SQRT_2 * (n(step) - before)
        }
    }
}

/// The values that Gaussian noise of any colour adds to one neuron, step by
/// step. Tests of its statistics use them.
pub fn gaussian_train(
    setting: NoiseSetting,
    steps: usize,
    seed: u64,
    epoch: u32,
    sample: u32,
    neuron: u32,
) -> Vec<f32> {
    let noise = Stream::new(seed, Purpose::Noise, epoch, sample);
    (0..steps as u32).map(|step| gaussian(setting, noise, step, neuron)).collect()
}
