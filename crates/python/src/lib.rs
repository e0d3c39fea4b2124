//! LeakLab for Python: the commands of the program as functions, with NumPy arrays.
//!
//! The GIL is released during computations. Arrays made in Rust are passed to Python without a copy; input
//! arrays are not copied if they are float32 and contiguous. Error messages are those of the program. The
//! `leaklab` package re-exports everything from here and adds type stubs.
#![deny(unsafe_code)]

mod advise;
mod analyse;
mod arguments;
mod convert;
mod dataset;
mod encode;
mod evaluate;
mod forward;
mod gradients;
mod network;
mod noise;
mod pool;
mod study;
mod theory;
mod train;
mod words;

use pyo3::exceptions::{PyUserWarning, PyValueError};
use pyo3::prelude::*;
use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

pyo3::create_exception!(
    leaklab,
    LeakLabError,
    PyValueError,
    "The request cannot be met; the message states what is wrong, where, and what is expected."
);

/// An error of any of the libraries as a Python exception, with a message for Python users.
fn fault(error: impl std::fmt::Display) -> PyErr {
    LeakLabError::new_err(words::in_python(&error.to_string()))
}

/// Issues a Python warning, which the user may silence or turn into an error.
fn warn(py: Python<'_>, message: &str) -> PyResult<()> {
    let text = CString::new(words::in_python(message)).map_err(fault)?;
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)
}

/// Runs `work` on `threads` threads, or on as many as the machine has, without the GIL. Ctrl-C and other
/// signals are handled meanwhile (see [`polling_signals`]).
fn interruptible<R: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    work: impl FnOnce(&AtomicBool) -> R + Send,
) -> PyResult<R> {
    let pool = match threads {
        None => pool::of_this_process(py)?,
        Some(_) => Arc::new(leaklab_lab::train::threads(threads).map_err(fault)?),
    };
    polling_signals(py, |stopped| pool.install(|| work(stopped)))
}

/// Time between two checks for a signal.
const SIGNALS: Duration = Duration::from_millis(100);

/// Runs `work` in a separate thread, without the GIL, and checks for signals meanwhile. Python handles
/// signals in its main thread only, so the calling thread must not do the work. After Ctrl-C the flag is set,
/// which `work` should read often; once it has ended, its result is discarded and `KeyboardInterrupt` is
/// returned. `work` may unwind to end sooner.
fn polling_signals<R: Send>(py: Python<'_>, work: impl FnOnce(&AtomicBool) -> R + Send) -> PyResult<R> {
    let stopped = AtomicBool::new(false);
    let mut interrupted = None;
    let result = py.detach(|| {
        let (done, finished) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let _done = done; // dropped when the work ends, however it ends
                work(&stopped)
            });
            while finished.recv_timeout(SIGNALS) == Err(RecvTimeoutError::Timeout) {
                if interrupted.is_none() {
                    interrupted = Python::attach(|py| py.check_signals()).err();
                    stopped.store(interrupted.is_some(), Ordering::Relaxed);
                }
            }
            worker.join()
        })
    });
    match (interrupted, result) {
        (Some(interrupted), _) => Err(interrupted),
        (None, Ok(result)) => Ok(result),
        (None, Err(panic)) => std::panic::resume_unwind(panic),
    }
}

/// Runs work that cannot be stopped and changes nothing on disk. Ctrl-C does not wait for its end: the thread
/// continues, and its result is discarded.
fn abandonable<R: Send + 'static>(py: Python<'_>, work: impl FnOnce() -> R + Send + 'static) -> PyResult<R> {
    py.detach(|| {
        let (done, finished) = std::sync::mpsc::channel();
        let worker = std::thread::spawn(move || {
            // After Ctrl-C, nobody receives the result.
            let _ = done.send(work());
        });
        loop {
            match finished.recv_timeout(SIGNALS) {
                Ok(result) => return Ok(result),
                Err(RecvTimeoutError::Timeout) => Python::attach(|py| py.check_signals())?,
                Err(RecvTimeoutError::Disconnected) => match worker.join() {
                    Ok(()) => unreachable!("a thread that ends well has sent its result"),
                    Err(panic) => std::panic::resume_unwind(panic),
                },
            }
        }
    })
}

#[pymodule]
mod _leaklab {
    #[pymodule_export]
    use super::LeakLabError;
    #[pymodule_export]
    use super::advise::advise;
    #[pymodule_export]
    use super::analyse::{analyse, compare, report, tables};
    #[pymodule_export]
    use super::dataset::{Dataset, load_dataset};
    #[pymodule_export]
    use super::encode::encode;
    #[pymodule_export]
    use super::evaluate::evaluate;
    #[pymodule_export]
    use super::forward::{Forward, Layer};
    #[pymodule_export]
    use super::gradients::Gradients;
    #[pymodule_export]
    use super::network::Network;
    #[pymodule_export]
    use super::study::study;
    #[pymodule_export]
    use super::theory::{coherence, cross_spectrum, log_rate, power_spectrum, rate};
    #[pymodule_export]
    use super::train::{resume, train};

    use leaklab_engine::noise::Noise;
    use pyo3::prelude::*;
    use pyo3::types::PyTuple;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("NOISES", PyTuple::new(module.py(), Noise::ALL.map(Noise::name))?)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
