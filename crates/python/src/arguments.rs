//! Arguments that are checked when they are read, so that the error message names them.
//!
//! Python's own errors for negative and too large numbers name neither the argument nor what is expected.

use crate::convert::{key_name, pairs};
use crate::fault;
use leaklab_engine::noise::HIGHEST_SEVERITY;
use leaklab_engine::philox::LAST_EPOCH;
use leaklab_lab::train::MOST_THREADS;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::PyMapping;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Limit for the number of steps, which the engine counts in 16 bits.
pub const MOST_STEPS: usize = u16::MAX as usize;

/// A whole number within a range. For other types the error is Python's own `TypeError`.
fn whole<T>(name: &str, value: &Bound<'_, PyAny>, range: RangeInclusive<T>) -> PyResult<T>
where
    T: TryFrom<i128> + Into<u64> + PartialOrd + Copy,
{
    let number = match value.extract::<i128>() {
        Ok(number) => Some(number),
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => None,
        Err(error) => return Err(error),
    };
    let found = number.and_then(|number| T::try_from(number).ok()).filter(|number| range.contains(number));
    found.ok_or_else(|| {
        let (least, most): (u64, u64) = ((*range.start()).into(), (*range.end()).into());
        // An upper limit that is only that of the type is not mentioned unless it is exceeded.
        let expected = match number {
            Some(number) if number < i128::from(least) && most >= u64::from(u32::MAX) => {
                format!("a whole number of {least} or more")
            }
            _ => format!("a whole number from {least} to {most}"),
        };
        fault(format!("{name} is {value}; {expected} is expected"))
    })
}

/// [`whole`] for an argument that may be `None`, as a `usize`.
fn count(name: &str, value: &Bound<'_, PyAny>, least: u64, most: u64) -> PyResult<Option<usize>> {
    match value.is_none() {
        true => Ok(None),
        false => whole(name, value, least..=most).map(|number| Some(number as usize)),
    }
}

/// `out`, the folder for results, or `None`.
pub fn out(value: &Bound<'_, PyAny>) -> PyResult<Option<PathBuf>> {
    if value.is_none() { Ok(None) } else { named_folder("out", value).map(Some) }
}

/// `folder`, to which something is written.
pub fn folder(value: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    named_folder("folder", value)
}

/// A folder to which something is written. An empty path is refused, and so is a file.
fn named_folder(name: &str, value: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    let path: PathBuf = value.extract()?;
    if path.as_os_str().is_empty() {
        return Err(fault(format!("{name} is empty; the path of a folder is expected")));
    }
    if path.exists() && !path.is_dir() {
        return Err(fault(format!("{name} is {}, which is not a folder; choose another", path.display())));
    }
    Ok(path)
}

/// `layer_tau`, a mapping from layers to time constants, or `None`.
pub fn layer_tau(value: &Bound<'_, PyAny>) -> PyResult<Option<BTreeMap<String, f64>>> {
    if value.is_none() {
        return Ok(None);
    }
    let pairs = pairs(value.cast::<PyMapping>()?)?;
    pairs
        .into_iter()
        .map(|(name, tau)| Ok((key_name("a layer", &name)?, tau.extract()?)))
        .collect::<PyResult<_>>()
        .map(Some)
}

/// `seed`.
pub fn seed(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    whole("seed", value, 0..=u64::MAX)
}

/// `seed`, or `None`.
pub fn optional_seed(value: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    if value.is_none() { Ok(None) } else { seed(value).map(Some) }
}

/// `epoch`. Larger ones would have the random numbers of smaller ones.
pub fn epoch(value: &Bound<'_, PyAny>) -> PyResult<u32> {
    whole("epoch", value, 0..=LAST_EPOCH)
}

/// `time_steps`.
pub fn time_steps(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    whole("time_steps", value, 1..=MOST_STEPS as u64).map(|steps| steps as usize)
}

/// `time_steps`, or `None`.
pub fn optional_time_steps(value: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    if value.is_none() { Ok(None) } else { time_steps(value).map(Some) }
}

/// `threads`, or `None`.
pub fn threads(value: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    count("threads", value, 1, MOST_THREADS as u64)
}

/// `severity`, 0 for no noise, or `None`.
pub fn severity(value: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    count("severity", value, 0, HIGHEST_SEVERITY as u64)
}

/// `severity` of a noise, or `None`.
pub fn noise_severity(value: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    count("severity", value, 1, HIGHEST_SEVERITY as u64)
}

/// `limit`, or `None`.
pub fn limit(value: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    count("limit", value, 1, u64::MAX)
}

/// `train_limit`, or `None`.
pub fn train_limit(value: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    count("train_limit", value, 1, u64::MAX)
}

/// `test_limit`, or `None`.
pub fn test_limit(value: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    count("test_limit", value, 1, u64::MAX)
}

/// `images`, or `None`.
pub fn images(value: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    count("images", value, 1, u64::MAX)
}

/// `step_us`, or `None`.
pub fn step_us(value: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    Ok(count("step_us", value, 1, u64::MAX)?.map(|us| us as u64))
}

/// `downsample`, or `None`.
pub fn downsample(value: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    count("downsample", value, 1, u64::from(u16::MAX))
}

/// `callback`, or `None`. If it cannot be called, it is refused before any work is done.
pub fn callback(value: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
    if value.is_none() {
        return Ok(None);
    }
    if !value.is_callable() {
        let kind = value.get_type();
        return Err(fault(format!("callback is of type {}; a function is expected", kind.name()?)));
    }
    Ok(Some(value.clone().unbind()))
}

/// A list of names; a single name may be given without a list.
pub fn names(value: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    match value.extract::<String>() {
        Ok(name) => Ok(vec![name]),
        Err(_) => value.try_iter()?.map(|name| name?.extract()).collect(),
    }
}
