//! The encoder in plain sentences, one neuron and step at a time: what [`super::encode`] is tested against.

use super::{Encoder, Encoding, salt_and_pepper_value, stuck_value};
use crate::noise::{Noise, Scenario};
use crate::philox::{Purpose, Stream};
use crate::spikes::{Input, Shape};

/// The same input as [`super::encode`] gives, slowly.
pub fn encode(image: &[f32], shape: Shape, encoding: &Encoding, seed: u64, epoch: u32, sample: u32) -> Input {
    let steps = encoding.time_steps;
    let mut values = vec![0.0; steps * shape.neurons()];
    let uniforms = Stream::new(seed, Purpose::Encode, epoch, sample);
    let noise = Stream::new(seed, Purpose::Noise, epoch, sample);
    let setting = encoding.noise.filter(|s| s.level() > 0.0);
    let mut moved = Vec::new();
    for (at, value) in values.iter_mut().enumerate() {
        let (step, neuron) = ((at / shape.neurons()) as u32, (at % shape.neurons()) as u32);
        let pixel = neuron % shape.pixels() as u32;
        let mut x = image[neuron as usize];
        let xi = setting.map_or(0.0, |s| match s.noise() {
            Noise::Gaussian => s.level() * noise.normal(step, neuron),
            Noise::Impulse => match noise.uniform(step, neuron) {
                u if u < 0.5 * s.impulse().0 => s.impulse().1,
                u if u < s.impulse().0 => -s.impulse().1,
                _ => 0.0,
            },
            _ => 0.0,
        });
        if let Some(s) = setting {
            match (s.noise(), s.scenario()) {
                (Noise::StuckPixel, _) => x = stuck_value(seed, pixel, s.level()).unwrap_or(x),
                (Noise::SaltAndPepper, _) => x = salt_and_pepper_value(noise, pixel, s.level()).unwrap_or(x),
                (_, Scenario::Pixel) => x += xi,
                _ => {}
            }
        }
        let threshold = uniforms.uniform(step, neuron);
        let spike = match encoding.encoder {
            Encoder::Signed if x.abs() > threshold => x.signum(),
            Encoder::Unsigned if x > threshold => 1.0,
            _ => 0.0,
        };
        match setting.map(|s| (s.noise(), s.scenario(), s.level())) {
            Some((Noise::Deletion, _, level)) if noise.uniform(step, neuron) < level => {}
            Some((Noise::Jitter, ..)) => {}
            Some((Noise::Gaussian | Noise::Impulse, Scenario::Channel, _)) => *value = spike + xi,
            _ => *value = spike,
        }
        if let Some(s) = setting.filter(|s| s.noise() == Noise::Jitter && spike != 0.0) {
            let to = step as f32 + (s.level() * noise.normal(step, neuron)).round();
            if to >= 0.0 && to < steps as f32 {
                moved.push((to as usize * shape.neurons() + neuron as usize, spike));
            }
        }
    }
    for (at, spike) in moved {
        values[at] = spike;
    }
    if setting.is_some_and(|s| {
        s.scenario() == Scenario::Channel && matches!(s.noise(), Noise::Gaussian | Noise::Impulse)
    }) {
        return Input::Real { shape, steps, values };
    }
    Input::from_values(shape, steps, &values)
}
