//! Loss and gradients of a batch.

use crate::convert::{array, numbers, real_array, shape_of, slice, whole_numbers};
use crate::forward::{Batch, read_spikes};
use crate::network::weight_dict;
use crate::{fault, interruptible, warn};
use leaklab_engine::{
    Gradient, Input, Isa, MaskError, Masks, Network as Engine, Packed, Scratch, Trace, train_batch,
};
use leaklab_lab::health::NO_GRADIENT;
use numpy::PyArrayDyn;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

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
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, this) = (slf.py(), slf.get());
        let arguments = (this.loss, this.prediction.clone_ref(py), this.weights.clone_ref(py));
        (slf.get_type().getattr("_restore")?, arguments).into_pyobject(py)
    }

    /// Restores pickled gradients.
    #[staticmethod]
    fn _restore(loss: f64, prediction: Py<PyArrayDyn<f32>>, weights: Py<PyDict>) -> Self {
        Gradients { loss, prediction, weights }
    }

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
    let x = read_spikes(engine, x)?;
    let batch = Batch::new(engine, &x);
    batch.check_samples()?;
    let labels = whole_numbers("labels", labels)?;
    if labels.len() != batch.samples {
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
    if given.is_empty() {
        return Ok(Vec::new());
    }
    let layers = engine.architecture.hidden().iter().filter(|layer| layer.kind.takes_dropout());
    let mut arrays = Vec::new();
    for (i, (mask, layer)) in given.iter().zip(layers).enumerate() {
        let (name, size) = (format!("masks[{i}]"), layer.output.neurons());
        let mask = real_array(&name, mask)?;
        let shape = shape_of(&mask)?;
        if shape.first() != Some(&samples) || shape[1..].iter().product::<usize>() != size {
            return Err(fault(format!(
                "{name} has shape {shape:?}; {samples} samples of the {size} neurons of {} are expected",
                layer.name
            )));
        }
        arrays.push((numbers::<f32>(&name, &mask)?, size));
    }
    let of_sample = |sample: usize| {
        let rows: Vec<&[f32]> =
            arrays.iter().map(|(values, size)| &slice(values)[sample * size..][..*size]).collect();
        Masks::from_values(&rows, &engine.architecture).map_err(|error| match error {
            MaskError::Value { number, entry, value } => fault(format!(
                "masks[{}] has {value} at element {entry} of sample {sample}; 0 and one number of 1 or more \
                 are expected",
                number - 1
            )),
            MaskError::Count { .. } | MaskError::Length { .. } => fault(error),
        })
    };
    (0..samples).map(of_sample).collect()
}
