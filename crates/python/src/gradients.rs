//! Loss and gradients of a batch.

use crate::convert::{array, numbers, whole_numbers};
use crate::forward::Batch;
use crate::network::weight_dict;
use crate::{fault, interruptible, warn};
use leaklab_engine::{Gradient, Input, Isa, Masks, Network as Engine, Packed, Scratch, Trace, train_batch};
use leaklab_lab::health::NO_GRADIENT;
use numpy::{PyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Loss and gradients of a batch.
#[pyclass(frozen, get_all, module = "leaklab")]
pub struct Gradients {
    /// Mean over the samples of half the squared error.
    loss: f64,
    /// float32 [N, classes].
    prediction: Py<PyArrayDyn<f32>>,
    /// A dict of float32 arrays by layer name.
    weights: Py<PyDict>,
}

#[pymethods]
impl Gradients {
    fn __repr__(&self) -> String {
        format!("Gradients(loss={})", self.loss)
    }
}

/// Loss and gradients of a network on `[T, N, C, H, W]`.
pub fn run(
    py: Python<'_>,
    engine: &Engine,
    x: &Bound<'_, PyAny>,
    labels: &Bound<'_, PyAny>,
    gradient: &str,
    masks: Vec<Bound<'_, PyAny>>,
    threads: Option<usize>,
) -> PyResult<Gradients> {
    let mode: Gradient = gradient.parse().map_err(fault)?;
    let x = numbers::<f32>("x", x)?;
    let x = x.as_array();
    let x = x.as_standard_layout();
    let batch = Batch::new(engine, x.shape(), x.as_slice().expect("standard layout is contiguous"))?;
    let labels = whole_numbers("labels", labels)?;
    if labels.len() != batch.samples || labels.is_empty() {
        return Err(fault(format!("{} labels for {} samples of x", labels.len(), batch.samples)));
    }
    let of_sample = |(i, &label): (usize, &i64)| {
        usize::try_from(label).map_err(|_| fault(format!("sample {i}: label {label} is out of range")))
    };
    let labels = labels.iter().enumerate().map(of_sample).collect::<PyResult<Vec<_>>>()?;
    let masks = read_masks(engine, masks, batch.samples)?;
    let mut flat = vec![0.0; engine.weights.len()];
    let results = interruptible(py, threads, |stopped| {
        let packed = Packed::new(engine, Isa::best()).map_err(|e| e.to_string())?;
        let prepare = |sample: usize, input: &mut Input, mask: &mut Masks| {
            batch.show_unless(stopped, sample, input);
            *mask = masks.get(sample).cloned().unwrap_or_else(Masks::none);
            labels[sample]
        };
        let measure =
            |sample: usize, trace: &Trace| (trace.loss(labels[sample]), trace.prediction().to_vec());
        let scratch = Scratch::default();
        train_batch(&packed, batch.steps, batch.samples, mode, &scratch, prepare, measure, &mut flat)
            .map_err(|e| e.to_string())
    })?
    .map_err(fault)?;
    if flat.iter().all(|&g| g == 0.0) {
        warn(py, NO_GRADIENT)?;
    }
    let loss = results.iter().map(|(loss, _)| loss).sum::<f64>() / results.len() as f64;
    let prediction = results.into_iter().flat_map(|(_, prediction)| prediction).collect();
    Ok(Gradients {
        loss,
        prediction: array(py, &[batch.samples, engine.architecture.classes()], prediction).unbind(),
        weights: weight_dict(py, engine, &flat)?.unbind(),
    })
}

/// Dropout masks of every sample; empty if no arrays are given.
fn read_masks(engine: &Engine, given: Vec<Bound<'_, PyAny>>, samples: usize) -> PyResult<Vec<Masks>> {
    let named = given.iter().enumerate().map(|(i, mask)| numbers::<f32>(&format!("masks[{i}]"), mask));
    let arrays = named.collect::<PyResult<Vec<_>>>()?;
    let flat: Vec<Vec<f32>> = arrays.iter().map(|mask| mask.as_array().iter().copied().collect()).collect();
    if arrays.is_empty() {
        return Ok(Vec::new());
    }
    if let Some(i) = arrays.iter().position(|mask| mask.shape().first() != Some(&samples)) {
        let shape = arrays[i].shape();
        return Err(fault(format!(
            "masks[{i}] has shape {shape:?}; its first dimension must be the {samples} samples"
        )));
    }
    (0..samples)
        .map(|sample| {
            let size = |mask: &[f32]| mask.len() / samples;
            let rows: Vec<&[f32]> =
                flat.iter().map(|mask| &mask[sample * size(mask)..][..size(mask)]).collect();
            Masks::from_values(&rows, &engine.architecture).map_err(fault)
        })
        .collect()
}
