//! The encoder for arrays of images.

use crate::convert::{
    array, check_copy, is_bytes, kind_of, numbers, real_array, room, shape_of, slice, whole_numbers,
};
use crate::forward::unwind_if;
use crate::noise::noise_setting;
use crate::{arguments, fault, interruptible};
use leaklab_engine::encode::{Encoder, Encoding, encode as encode_image};
use leaklab_engine::{Input, Isa, Shape};
use leaklab_lab::data::Normaliser;
use numpy::PyArrayDyn;
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
    let images = &real_array("images", images)?;
    let dimensions = shape_of(images)?;
    let &[count, channels, height, width] = &dimensions[..] else {
        return Err(fault(format!("images have shape {dimensions:?}; [N, C, H, W] is expected")));
    };
    let shape = Shape { channels, height, width };
    if shape.neurons() == 0 {
        return Err(fault(format!("images have shape {dimensions:?}; they have no pixels")));
    }
    let samples = sample_numbers(samples.as_ref(), count, 0)?;
    let (encoding, size) = (Encoding { encoder, time_steps, noise, isa: Isa::best() }, shape.neurons());
    let dimensions = [time_steps, count, channels, height, width];
    let mut values: Vec<f32> = room("the spikes", &dimensions)?;
    let pixels = normalised("images", images, &Normaliser::PER_IMAGE)?;
    interruptible(py, None, |stopped| {
        values.resize(time_steps * count * size, 0.0);
        let spikes_of = |i: usize| {
            unwind_if(stopped);
            let mut input = Input::silent(shape, time_steps);
            let image = &pixels[i * size..][..size];
            encode_image(image, shape, &encoding, seed, epoch, samples[i], &mut input);
            spread(&input)
        };
        // Spikes are computed by image and stored by step; a part of the images at a time, since they are in
        // memory twice.
        for start in (0..count).step_by(PART) {
            let part: Vec<Vec<f32>> =
                (start..count.min(start + PART)).into_par_iter().map(spikes_of).collect();
            for (i, image) in part.iter().enumerate() {
                for (step, row) in image.chunks_exact(size).enumerate() {
                    values[(step * count + start + i) * size..][..size].copy_from_slice(row);
                }
            }
        }
    })?;
    Ok(array(py, &dimensions, values))
}

/// Number of images that are encoded at a time.
const PART: usize = 256;

/// The sample numbers of images, on which their random numbers depend: those given, or consecutive ones from
/// `first` on.
pub fn sample_numbers(given: Option<&Bound<'_, PyAny>>, count: usize, first: u32) -> PyResult<Vec<u32>> {
    let Some(given) = given else { return Ok((0..count as u32).map(|i| first.wrapping_add(i)).collect()) };
    let number = |n: i64| {
        u32::try_from(n).map_err(|_| fault(format!("sample number {n} is not one of 0 to 4294967295")))
    };
    let samples = whole_numbers("samples", given)?.into_iter().map(number).collect::<PyResult<Vec<_>>>()?;
    if samples.len() != count {
        return Err(fault(format!("{} sample numbers for {count} images", samples.len())));
    }
    Ok(samples)
}

/// The pixels of images `[N, C, H, W]`, from -1 to 1: bytes are normalised, floats are not. An image of bytes
/// must have the normaliser's number of channels. Other types are refused, since their scale is not known.
pub fn normalised(name: &str, images: &Bound<'_, PyAny>, normaliser: &Normaliser) -> PyResult<Vec<f32>> {
    check_copy(name, images, 4)?;
    let py = images.py();
    if is_bytes(images)? {
        let &[_, channels, height, width] = &shape_of(images)?[..] else { return Ok(Vec::new()) };
        let (bytes, shape) = (numbers::<u8>(name, images)?, Shape { channels, height, width });
        let (bytes, size) = (slice(&bytes), shape.neurons().max(1));
        return Ok(py.detach(|| {
            let mut values = vec![0f32; bytes.len()];
            for (image, out) in bytes.chunks_exact(size).zip(values.chunks_exact_mut(size)) {
                normaliser.apply(image, shape, out);
            }
            values
        }));
    }
    if kind_of(images)? != "f" {
        let found = images.getattr("dtype")?;
        return Err(fault(format!("{name} has the type {found}; pixels are uint8, or floats in [-1, 1]")));
    }
    let floats = numbers::<f32>(name, images)?;
    let values = slice(&floats);
    match values.iter().position(|x| !(-1.0..=1.0).contains(x)) {
        Some(at) => Err(fault(format!(
            "element {at} of {name} is {}; pixels are of type uint8, or numbers in [-1, 1]",
            values[at]
        ))),
        None => Ok(py.detach(|| values.to_vec())),
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
