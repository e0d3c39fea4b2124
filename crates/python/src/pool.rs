//! The thread pool for calls without `threads=`, in a process that may have been forked.
//!
//! `fork`, with which Python's multiprocessing starts workers on Linux, copies the memory of a process but
//! not its threads. Work that a child passes to its parent's pool would wait for ever. The pool therefore
//! belongs to one process, and a child creates its own.

use crate::fault;
use pyo3::prelude::*;
use rayon::ThreadPool;
use std::sync::{Arc, Mutex, PoisonError};

/// The pool and its process. It is locked only while the GIL is held. A fork holds the GIL too, so it is
/// never locked in a new child.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// The pool of this process; it is created if there is none.
pub fn of_this_process(_py: Python<'_>) -> PyResult<Arc<ThreadPool>> {
    let mut stored = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    match &*stored {
        Some((owner, pool)) if *owner == process => return Ok(pool.clone()),
        _ => {}
    }
    let pool = Arc::new(leaklab_lab::train::threads(None).map_err(fault)?);
    // The parent's pool is not dropped: dropping it would wait for threads that do not exist here.
    std::mem::forget(stored.replace((process, pool.clone())));
    Ok(pool)
}
