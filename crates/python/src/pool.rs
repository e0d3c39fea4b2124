//! The threads that calls without `threads=` share, in a process that may have been forked.
//!
//! `fork`, the way in which Python's multiprocessing starts workers on Linux, copies the memory of a process
//! but not its threads. Work handed to the parent's pool in the child would wait for ever; so the pool
//! belongs to a process, and a child makes its own.

use crate::fault;
use pyo3::prelude::*;
use rayon::ThreadPool;
use std::sync::{Arc, Mutex, PoisonError};

/// The pool and the process whose threads it has. Locked with the GIL held, and a fork holds the GIL too: a
/// child never finds it locked.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// The pool of this process, made if need be.
pub fn of_this_process(_py: Python<'_>) -> PyResult<Arc<ThreadPool>> {
    let mut kept = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    match &*kept {
        Some((owner, pool)) if *owner == process => return Ok(pool.clone()),
        _ => {}
    }
    let pool = Arc::new(leaklab_lab::train::threads(None).map_err(fault)?);
    // The parent's pool is left alone: to take it down, one would have to wake threads that are not here.
    std::mem::forget(kept.replace((process, pool.clone())));
    Ok(pool)
}
