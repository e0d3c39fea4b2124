//! The theory of one neuron, for arrays.

use crate::convert::{array, numbers};
use crate::forward::unwind_if;
use crate::{fault, interruptible};
use leaklab_lab::memory;
use leaklab_theory::neuron::Shape;
use leaklab_theory::{Complex64, Drive, Model, Neuron, ParameterError, Response};
use numpy::Element;
use numpy::ndarray::IxDyn;
use pyo3::prelude::*;
use rayon::prelude::*;

/// An argument that is a number or an array of numbers, with its name.
type Named<'a, 'py> = (&'static str, &'a Bound<'py, PyAny>);

/// The shape to which all arrays broadcast by NumPy's rules; `None` if they do not.
fn broadcast(shapes: &[&[usize]]) -> Option<Vec<usize>> {
    let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    (0..rank)
        .map(|axis| {
            let sizes =
                shapes.iter().filter_map(|shape| shape.len().checked_sub(rank - axis).map(|i| shape[i]));
            let mut size = 1;
            for n in sizes {
                match (size, n) {
                    (_, 1) => {}
                    (1, n) => size = n,
                    (a, b) if a == b => {}
                    _ => return None,
                }
            }
            Some(size)
        })
        .collect()
}

/// Applies `of` at every point of the broadcast arrays, in parallel; adjacent points with the same drive
/// share a neuron.
fn over<'py, T: Element + Copy + Default + Send>(
    py: Python<'py>,
    given: &[Named<'_, 'py>],
    model: &str,
    (d_bg, tau_r): (f64, f64),
    of: impl Fn(&Neuron, f64) -> Result<T, ParameterError> + Sync,
) -> PyResult<Bound<'py, PyAny>> {
    let model = Model::ALL.into_iter().find(|m| m.name() == model).ok_or_else(|| {
        fault(format!("model '{model}' is not one of {}", Model::ALL.map(Model::name).join(", ")))
    })?;
    let read = |&(name, value): &Named<'_, 'py>| numbers::<f64>(name, value);
    let arrays = given.iter().map(read).collect::<PyResult<Vec<_>>>()?;
    let views: Vec<_> = arrays.iter().map(|array| array.as_array()).collect();
    let shapes: Vec<&[usize]> = views.iter().map(|view| view.shape()).collect();
    let shape =
        broadcast(&shapes).ok_or_else(|| fault(format!("arrays of shapes {shapes:?} do not broadcast")))?;
    let points = shape.iter().fold(1u64, |product, &n| product.saturating_mul(n as u64));
    let bytes = points.saturating_mul((8 * views.len() + size_of::<T>()) as u64);
    memory::check(format!("{points} points"), bytes, "request fewer at a time").map_err(fault)?;
    let columns: Vec<Vec<f64>> = views
        .iter()
        .map(|view| {
            view.broadcast(IxDyn(&shape)).expect("the shape was made for it").iter().copied().collect()
        })
        .collect();
    let count = columns[0].len();
    let mut values = vec![T::default(); count];
    const CHUNK: usize = 64;
    interruptible(py, None, |stopped| {
        values.par_chunks_mut(CHUNK).enumerate().try_for_each(|(chunk, out)| -> Result<(), ParameterError> {
            let mut last: Option<(f64, f64, Neuron)> = None;
            for (i, value) in out.iter_mut().enumerate() {
                unwind_if(stopped);
                let at = chunk * CHUNK + i;
                let (mu, d) = (columns[0][at], columns[1][at]);
                let omega = columns.get(2).map_or(0.0, |column| column[at]);
                let neuron = match &last {
                    Some((m, n, neuron)) if (*m, *n) == (mu, d) => neuron,
                    _ => {
                        let drive = if d_bg == 0.0 {
                            Drive::new(mu, d)?
                        } else {
                            Drive::with_background(mu, d, d_bg)?
                        };
                        let neuron = Neuron::new(model, drive.with_refractory(tau_r)?, Shape::default())?;
                        &last.insert((mu, d, neuron)).2
                    }
                };
                *value = of(neuron, omega)?;
            }
            Ok(())
        })
    })?
    .map_err(|error| fault(in_arguments(&error.to_string())))?;
    let result = array(py, &shape, values);
    if shape.is_empty() { result.call_method0("item") } else { Ok(result.into_any()) }
}

/// A message with the names of Python's arguments.
fn in_arguments(message: &str) -> String {
    [("D_st = ", "d = "), ("D_bg = ", "d_bg = "), ("D = ", "d = ")]
        .iter()
        .fold(message.to_owned(), |text, (from, to)| text.replace(from, to))
}

fn response<T>(
    of: impl Fn(Response) -> T + Sync,
) -> impl Fn(&Neuron, f64) -> Result<T, ParameterError> + Sync {
    move |neuron, omega| Ok(of(neuron.response(omega)?))
}

/// Firing rate in units of the inverse membrane time constant.
///
/// The neuron is ``dv/dt = f(v) + mu + sqrt(2 d) xi`` with threshold 1 and reset 0 and time in membrane time
/// constants; ``model`` is "lif", "if", "eif" or "qif". Arrays are broadcast; if all arguments are numbers,
/// the result is a number.
#[pyfunction]
#[pyo3(signature = (mu, d, model="lif", *, tau_r=0.0))]
pub fn rate<'py>(
    py: Python<'py>,
    mu: &Bound<'py, PyAny>,
    d: &Bound<'py, PyAny>,
    model: &str,
    tau_r: f64,
) -> PyResult<Bound<'py, PyAny>> {
    over(py, &[("mu", mu), ("d", d)], model, (0.0, tau_r), |neuron, _| Ok(neuron.rate()))
}

/// Natural logarithm of the firing rate, finite where the rate itself underflows.
#[pyfunction]
#[pyo3(signature = (mu, d, model="lif", *, tau_r=0.0))]
pub fn log_rate<'py>(
    py: Python<'py>,
    mu: &Bound<'py, PyAny>,
    d: &Bound<'py, PyAny>,
    model: &str,
    tau_r: f64,
) -> PyResult<Bound<'py, PyAny>> {
    over(py, &[("mu", mu), ("d", d)], model, (0.0, tau_r), |neuron, _| Ok(neuron.log_rate()))
}

/// Coherence between spike train and stimulus at angular frequency ``omega``, from 0 to 1.
///
/// ``d`` is the intensity of the stimulus, and ``d_bg`` that of background noise, which is not part of the
/// stimulus.
#[pyfunction]
#[pyo3(signature = (mu, d, omega, model="lif", *, d_bg=0.0, tau_r=0.0))]
pub fn coherence<'py>(
    py: Python<'py>,
    mu: &Bound<'py, PyAny>,
    d: &Bound<'py, PyAny>,
    omega: &Bound<'py, PyAny>,
    model: &str,
    d_bg: f64,
    tau_r: f64,
) -> PyResult<Bound<'py, PyAny>> {
    over(py, &[("mu", mu), ("d", d), ("omega", omega)], model, (d_bg, tau_r), response(|r| r.coherence))
}

/// Power spectrum of the spike train, two-sided, at angular frequency ``omega``.
#[pyfunction]
#[pyo3(signature = (mu, d, omega, model="lif", *, d_bg=0.0, tau_r=0.0))]
pub fn power_spectrum<'py>(
    py: Python<'py>,
    mu: &Bound<'py, PyAny>,
    d: &Bound<'py, PyAny>,
    omega: &Bound<'py, PyAny>,
    model: &str,
    d_bg: f64,
    tau_r: f64,
) -> PyResult<Bound<'py, PyAny>> {
    over(py, &[("mu", mu), ("d", d), ("omega", omega)], model, (d_bg, tau_r), response(|r| r.spectrum))
}

/// Cross-spectrum of spike train and stimulus, complex, Fourier sign ``e^{+i omega t}``.
#[pyfunction]
#[pyo3(signature = (mu, d, omega, model="lif", *, d_bg=0.0, tau_r=0.0))]
pub fn cross_spectrum<'py>(
    py: Python<'py>,
    mu: &Bound<'py, PyAny>,
    d: &Bound<'py, PyAny>,
    omega: &Bound<'py, PyAny>,
    model: &str,
    d_bg: f64,
    tau_r: f64,
) -> PyResult<Bound<'py, PyAny>> {
    let of = response(|r| Complex64::new(r.cross_spectrum.re, r.cross_spectrum.im));
    over(py, &[("mu", mu), ("d", d), ("omega", omega)], model, (d_bg, tau_r), of)
}
