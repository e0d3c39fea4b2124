//! The encoder for arrays of images.

use crate::convert::{array, numbers, real_array, whole_numbers};
use crate::noise::noise_setting;
use crate::{arguments, fault, without_gil};
use leaklab_engine::encode::{Encoder, Encoding, encode as encode_image};
use leaklab_engine::{Input, Isa, Shape};
use leaklab_lab::data::Normaliser;
use leaklab_lab::memory;
use numpy::{PyArrayDyn, PyReadonlyArrayDyn};
use pyo3::prelude::*;
use rayon::prelude::*;

/// Encodes images as spikes, float32 ``[T, N, C, H, W]``.
///
/// ``images`` are uint8 ``[N, C, H, W]``, each of which is normalised (its mean is subtracted, then it is
/// divided by the largest magnitude), or floats in [-1, 1], which are not normalised. Every random number is
/// a function of ``seed``, ``epoch`` and the image's number in ``samples`` (0 to N-1 if not given), so a
/// presentation can be repeated. ``noise`` (``leaklab.Noise`` lists the names) acts in a ``scenario``, pixel
/// or channel (the first one of the noise if not given), at a ``severity`` from 0 to 8, or at a ``level`` on
/// its own scale.
#[pyfunction]
#[pyo3(signature = (images, time_steps, seed, *, encoder="signed", noise=None, scenario=None,
    severity=None, level=None, epoch=0, samples=None))]
#[allow(clippy::too_many_arguments)]
pub fn encode<'py>(
    py: Python<'py>,
    images: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = arguments::time_steps)] time_steps: usize,
    #[pyo3(from_py_with = arguments::seed)] seed: u64,
    encoder: &str,
    noise: Option<&str>,
    scenario: Option<&str>,
    #[pyo3(from_py_with = arguments::severity)] severity: Option<usize>,
    level: Option<f32>,
    #[pyo3(from_py_with = arguments::epoch)] epoch: u32,
    samples: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
    let encoder: Encoder = encoder.parse().map_err(fault)?;
    let noise = noise_setting(noise, scenario, severity, level)?;
    let (dimensions, pixels) = normalised("images", images, &Normaliser::PER_IMAGE)?;
    let &[count, channels, height, width] = &dimensions[..] else {
        return Err(fault(format!("images have shape {dimensions:?}; [N, C, H, W] is expected")));
    };
    let shape = Shape { channels, height, width };
    if shape.neurons() == 0 {
        return Err(fault(format!("images have shape {dimensions:?}; they have no pixels")));
    }
    let samples: Vec<u32> = match samples {
        Some(samples) => whole_numbers("samples", &samples)?
            .into_iter()
            .map(|n| {
                u32::try_from(n)
                    .map_err(|_| fault(format!("sample number {n} is not one of 0 to 4294967295")))
            })
            .collect::<PyResult<_>>()?,
        None => (0..count as u32).collect(),
    };
    if samples.len() != count {
        return Err(fault(format!("{} sample numbers for {count} images", samples.len())));
    }
    let encoding = Encoding { encoder, time_steps, noise, isa: Isa::best() };
    let size = shape.neurons();
    // The spikes are in memory twice: ordered by image and ordered by step.
    let needed =
        [time_steps, count, size].iter().fold(2 * 4u64, |product, &n| product.saturating_mul(n as u64));
    let what = format!("{time_steps} steps of {count} images of {size} values");
    memory::check(what, needed, "encode fewer images or steps at a time").map_err(fault)?;
    let mut values = vec![0f32; time_steps * count * size];
    without_gil(py, None, || {
        let shown: Vec<Vec<f32>> = (0..count)
            .into_par_iter()
            .map(|i| {
                let mut input = Input::silent(shape, time_steps);
                encode_image(
                    &pixels[i * size..][..size],
                    shape,
                    &encoding,
                    seed,
                    epoch,
                    samples[i],
                    &mut input,
                );
                spread(&input)
            })
            .collect();
        for (i, image) in shown.iter().enumerate() {
            for (step, row) in image.chunks_exact(size).enumerate() {
                values[(step * count + i) * size..][..size].copy_from_slice(row);
            }
        }
    })?;
    Ok(array(py, &[time_steps, count, channels, height, width], values))
}

/// Shape and values in [-1, 1] of images: bytes are normalised, floats are not. An image of bytes must have
/// the normaliser's number of channels.
pub fn normalised(
    name: &str,
    images: &Bound<'_, PyAny>,
    normaliser: &Normaliser,
) -> PyResult<(Vec<usize>, Vec<f32>)> {
    let images = &real_array(name, images)?;
    if let Ok(bytes) = images.extract::<PyReadonlyArrayDyn<'_, u8>>() {
        let view = bytes.as_array();
        let dimensions = view.shape().to_vec();
        let bytes: Vec<u8> = view.iter().copied().collect();
        let mut values = vec![0f32; bytes.len()];
        if let [_, channels, height, width] = dimensions[..] {
            let shape = Shape { channels, height, width };
            let size = shape.neurons().max(1);
            for (image, out) in bytes.chunks_exact(size).zip(values.chunks_exact_mut(size)) {
                normaliser.apply(image, shape, out);
            }
        }
        return Ok((dimensions, values));
    }
    let floats = numbers::<f32>(name, images)?;
    let view = floats.as_array();
    let values: Vec<f32> = view.iter().copied().collect();
    match values.iter().position(|x| !(-1.0..=1.0).contains(x)) {
        Some(at) => Err(fault(format!(
            "element {at} of {name} is {}; pixels are of type uint8, or numbers in [-1, 1]",
            values[at]
        ))),
        None => Ok((view.shape().to_vec(), values)),
    }
}

/// The values of an input, `[step][channel][row][column]`.
pub fn spread(input: &Input) -> Vec<f32> {
    match input {
        Input::Real { values, .. } => values.clone(),
        Input::Ternary { shape, spikes } => {
            let (pixels, size) = (shape.pixels(), shape.neurons());
            let mut values = vec![0f32; spikes.steps() * size];
            for step in 0..spikes.steps() {
                for pixel in 0..pixels {
                    for (word, &bits) in spikes.at(pixel, step).iter().enumerate() {
                        let mut bits = bits;
                        while bits != 0 {
                            let channel = 64 * word + bits.trailing_zeros() as usize;
                            let (channel, value) = if channel < shape.channels {
                                (channel, 1.0)
                            } else {
                                (channel - shape.channels, -1.0)
                            };
                            values[step * size + channel * pixels + pixel] = value;
                            bits &= bits - 1;
                        }
                    }
                }
            }
            values
        }
    }
}
