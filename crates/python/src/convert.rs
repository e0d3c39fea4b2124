//! Converts values between Python and the libraries: settings, tables, JSON objects and arrays.

use crate::fault;
use leaklab_record::{Cell, Table};
use numpy::ndarray::{ArrayD, IxDyn};
use numpy::{AllowTypeChange, Element, IntoPyArray, PyArray1, PyArrayDyn, PyArrayLikeDyn};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};

/// A NumPy array of values made in Rust; they are not copied.
pub fn array<'py, T: Element>(py: Python<'py>, shape: &[usize], values: Vec<T>) -> Bound<'py, PyArrayDyn<T>> {
    ArrayD::from_shape_vec(IxDyn(shape), values).expect("values fill the shape").into_pyarray(py)
}

/// Limit for the nesting of settings, which is exceeded by a list that contains itself.
const DEEPEST: usize = 8;
/// Limit for the number of values of a setting.
const MOST_VALUES: usize = 100_000;

/// A Python value as a setting: numbers (including NumPy's), strings, booleans, lists and dicts.
pub fn setting(key: &str, value: &Bound<'_, PyAny>) -> PyResult<toml::Value> {
    nested_setting(key, value, DEEPEST)
}

fn nested_setting(key: &str, value: &Bound<'_, PyAny>, deeper: usize) -> PyResult<toml::Value> {
    let Some(deeper) = deeper.checked_sub(1) else {
        return Err(fault(format!("{key} is nested more than {DEEPEST} levels deep, or contains itself")));
    };
    if value.is_instance_of::<PyBool>() {
        return Ok(toml::Value::Boolean(value.extract()?));
    }
    if value.is_instance_of::<PyInt>() {
        let number = value.extract().map_err(|_| fault(format!("{key} is {value}, beyond 64 bits")))?;
        return Ok(toml::Value::Integer(number));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(toml::Value::Float(value.extract()?));
    }
    if let Ok(text) = value.extract::<String>() {
        return Ok(toml::Value::String(text));
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        let pairs = dict.iter().map(|(name, value)| {
            let name = key_name(&name)?;
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
            Err(fault(format!("{key} is a {kind}; a number, a string, a bool or a list is expected")))
        }
    }
}

/// The name of a setting.
pub fn key_name(key: &Bound<'_, PyAny>) -> PyResult<String> {
    key.extract().map_err(|_| fault(format!("the name of a setting must be a string, and {key} is not")))
}

/// A value as a NumPy array. Masked elements are refused: NumPy would use the values that the mask hides.
fn any_array<'py>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let numpy = value.py().import("numpy")?;
    if value.hasattr("mask")? && numpy.getattr("ma")?.call_method1("is_masked", (value,))?.extract()? {
        return Err(fault(format!("{name}: masked elements must be filled first, as by `.filled(0)`")));
    }
    numpy.call_method1("asarray", (value,)).map_err(|error| {
        let reason = error.value(value.py());
        fault(format!("{name} cannot be read as an array of numbers: {reason}"))
    })
}

/// A value as a NumPy array of real numbers. Strings, complex numbers and lists of unequal rows are refused.
pub fn real_array<'py>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let array = any_array(name, value)?;
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    if !["b", "i", "u", "f", "O"].contains(&kind.as_str()) {
        let found = array.getattr("dtype")?;
        return Err(fault(format!("{name} cannot be read as an array of numbers: its type is {found}")));
    }
    Ok(array)
}

/// Real numbers of any type as an array; those of the type `T` are not copied.
pub fn numbers<'py, T>(
    name: &str,
    value: &Bound<'py, PyAny>,
) -> PyResult<PyArrayLikeDyn<'py, T, AllowTypeChange>>
where
    T: Element,
    for<'a> PyArrayLikeDyn<'py, T, AllowTypeChange>: FromPyObject<'a, 'py>,
{
    let array = real_array(name, value)?;
    let refused =
        || fault(format!("{name} cannot be read as an array of numbers: its objects are not numbers"));
    array.extract().map_err(|_| refused())
}

/// A list of whole numbers, from a list or an array of any integer type. Other numbers are refused, not
/// rounded.
pub fn whole_numbers(what: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let array = any_array(what, value)?;
    let shape: Vec<usize> = array.getattr("shape")?.extract()?;
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    if shape.len() != 1 || !(["i", "u"].contains(&kind.as_str()) || shape == [0]) {
        let found = array.getattr("dtype")?;
        return Err(fault(format!(
            "{what} are {found} of shape {shape:?}; a list of whole numbers is expected"
        )));
    }
    array.call_method0("tolist")?.extract().map_err(|_| fault(format!("{what} are beyond 64 bits")))
}

/// A JSON value as a Python value.
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

/// The number in a cell. In a column with a unit, text is parsed as a number: time constants are stored as
/// text, since they may be `inf`.
fn quantity(cell: &Cell, unit: &str) -> Option<f64> {
    match cell {
        Cell::Text(text) if !unit.is_empty() => text.parse().ok(),
        Cell::Text(_) | Cell::Integer(_) | Cell::Number(_) | Cell::Empty => cell.number(),
    }
}

/// A cell as a Python value.
pub fn value<'py>(py: Python<'py>, cell: &Cell, unit: &str) -> PyResult<Bound<'py, PyAny>> {
    match (cell, quantity(cell, unit)) {
        (Cell::Empty, _) => Ok(py.None().into_bound(py)),
        (Cell::Integer(n), _) => n.into_bound_py_any(py),
        (Cell::Number(_) | Cell::Text(_), Some(x)) => x.into_bound_py_any(py),
        (Cell::Number(x), None) => x.into_bound_py_any(py),
        (Cell::Text(text), None) => text.into_bound_py_any(py),
    }
}

/// A table as a dict of arrays, one per column: int64 if all values are whole numbers, float64 (with NaN for
/// empty cells) if all are numbers, otherwise strings.
pub fn columns<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (index, column) in table.columns.iter().enumerate() {
        let cells: Vec<&Cell> = table.rows.iter().map(|row| &row[index]).collect();
        let whole = |cell: &&Cell| if let Cell::Integer(n) = **cell { Some(n) } else { None };
        let number = |cell: &&Cell| match quantity(cell, &column.unit) {
            None if **cell == Cell::Empty => Some(f64::NAN),
            number => number,
        };
        let all_whole = cells.iter().map(whole).collect::<Option<Vec<i64>>>().filter(|all| !all.is_empty());
        let values = if let Some(values) = all_whole {
            PyArray1::from_vec(py, values).into_any()
        } else if let Some(values) = cells.iter().map(number).collect::<Option<Vec<f64>>>() {
            PyArray1::from_vec(py, values).into_any()
        } else {
            let text = |cell: &&Cell| match cell {
                Cell::Text(text) => PyString::new(py, text).into_any(),
                Cell::Integer(n) => PyString::new(py, &n.to_string()).into_any(),
                Cell::Number(x) => PyString::new(py, &x.to_string()).into_any(),
                Cell::Empty => py.None().into_bound(py),
            };
            let items: Vec<Bound<'py, PyAny>> = cells.iter().map(text).collect();
            py.import("numpy")?.call_method1("array", (items, "object"))?
        };
        dict.set_item(&column.name, values)?;
    }
    Ok(dict)
}
