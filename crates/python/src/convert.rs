//! Values between Python and the libraries: settings, tables, JSON objects, arrays.

use crate::fault;
use leaklab_record::{Cell, Table};
use numpy::ndarray::{ArrayD, IxDyn};
use numpy::{Element, IntoPyArray, PyArray1, PyArrayDyn};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};

/// An array that Rust made; NumPy takes it over without a copy.
pub fn array<'py, T: Element>(py: Python<'py>, shape: &[usize], values: Vec<T>) -> Bound<'py, PyArrayDyn<T>> {
    ArrayD::from_shape_vec(IxDyn(shape), values).expect("values fill the shape").into_pyarray(py)
}

/// Settings are flat or nearly so; deeper nesting is a list that contains itself.
const DEEPEST: usize = 8;
/// No setting has more values than this.
const MOST_VALUES: usize = 100_000;

/// A Python value as a setting: numbers (NumPy's too), texts, truth values, lists and dicts.
pub fn setting(key: &str, value: &Bound<'_, PyAny>) -> PyResult<toml::Value> {
    nested_setting(key, value, DEEPEST)
}

fn nested_setting(key: &str, value: &Bound<'_, PyAny>, deeper: usize) -> PyResult<toml::Value> {
    let Some(deeper) = deeper.checked_sub(1) else {
        return Err(fault(format!("{key} is nested more than {DEEPEST} deep, or contains itself")));
    };
    if value.is_instance_of::<PyBool>() {
        return Ok(toml::Value::Boolean(value.extract()?));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(toml::Value::Integer(value.extract()?));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(toml::Value::Float(value.extract()?));
    }
    if let Ok(text) = value.extract::<String>() {
        return Ok(toml::Value::String(text));
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        let pairs = dict.iter().map(|(name, value)| {
            let name: String = name.extract()?;
            let value = nested_setting(&format!("{key}.{name}"), &value, deeper)?;
            Ok((name, value))
        });
        return Ok(toml::Value::Table(pairs.collect::<PyResult<_>>()?));
    }
    if value.hasattr("__fspath__")? {
        return nested_setting(key, &value.call_method0("__fspath__")?, deeper);
    }
    // NumPy's scalars and arrays become Python's numbers and lists.
    if value.hasattr("tolist")? {
        return nested_setting(key, &value.call_method0("tolist")?, deeper);
    }
    match value.try_iter() {
        Ok(items) => {
            let values = items.take(MOST_VALUES + 1).map(|item| nested_setting(key, &item?, deeper));
            let values = values.collect::<PyResult<Vec<_>>>()?;
            if values.len() > MOST_VALUES {
                return Err(fault(format!("{key} has more than {MOST_VALUES} values")));
            }
            Ok(toml::Value::Array(values))
        }
        Err(_) => {
            let kind = value.get_type().name()?;
            Err(fault(format!("{key} is a {kind}; a number, a text, true or false, or a list is expected")))
        }
    }
}

/// A row of whole numbers, from a list or an array of any integer type. Other numbers are refused, not
/// rounded.
pub fn whole_numbers(what: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let array = value.py().import("numpy")?.call_method1("asarray", (value,))?;
    let shape: Vec<usize> = array.getattr("shape")?.extract()?;
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    if shape.len() != 1 || !(["i", "u"].contains(&kind.as_str()) || shape == [0]) {
        let found = array.getattr("dtype")?;
        return Err(fault(format!(
            "{what} are {found} of shape {shape:?}; a row of whole numbers is expected"
        )));
    }
    array.call_method0("tolist")?.extract().map_err(|_| fault(format!("{what} are beyond 64 bits")))
}

/// A JSON value as Python's own.
pub fn object<'py>(py: Python<'py>, value: &serde_json::Value) -> PyResult<Bound<'py, PyAny>> {
    use serde_json::Value;
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(flag) => flag.into_bound_py_any(py),
        Value::Number(n) => match (n.as_u64(), n.as_i64()) {
            (Some(n), _) => n.into_bound_py_any(py),
            (_, Some(n)) => n.into_bound_py_any(py),
            _ => n.as_f64().into_bound_py_any(py),
        },
        Value::String(text) => text.into_bound_py_any(py),
        Value::Array(items) => {
            let items = items.iter().map(|item| object(py, item)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(py, items)?.into_any())
        }
        Value::Object(pairs) => {
            let dict = PyDict::new(py);
            for (name, value) in pairs {
                dict.set_item(name, object(py, value)?)?;
            }
            Ok(dict.into_any())
        }
    }
}

/// A table as a dict of arrays, one per column: int64 where all are whole numbers, float64 (NaN where empty)
/// where all are numbers, else texts.
pub fn columns<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (index, column) in table.columns.iter().enumerate() {
        let cells: Vec<&Cell> = table.rows.iter().map(|row| &row[index]).collect();
        let whole = cells.iter().all(|cell| matches!(cell, Cell::Integer(_)));
        let text = cells.iter().any(|cell| matches!(cell, Cell::Text(_)));
        let values = if text {
            let items: Vec<Bound<'py, PyAny>> = cells
                .iter()
                .map(|cell| match cell {
                    Cell::Text(text) => Ok(PyString::new(py, text).into_any()),
                    Cell::Integer(n) => Ok(PyString::new(py, &n.to_string()).into_any()),
                    Cell::Number(x) => Ok(PyString::new(py, &x.to_string()).into_any()),
                    Cell::Empty => Ok(py.None().into_bound(py)),
                })
                .collect::<PyResult<_>>()?;
            py.import("numpy")?.call_method1("array", (items, "object"))?
        } else if whole && !cells.is_empty() {
            let values =
                cells.iter().filter_map(|cell| if let Cell::Integer(n) = cell { Some(*n) } else { None });
            PyArray1::from_iter(py, values.collect::<Vec<_>>()).into_any()
        } else {
            let values = cells.iter().map(|cell| cell.number().unwrap_or(f64::NAN));
            PyArray1::from_iter(py, values.collect::<Vec<_>>()).into_any()
        };
        dict.set_item(&column.name, values)?;
    }
    Ok(dict)
}
