//! Converts values between Python and the libraries: settings, tables, JSON objects and arrays.

use crate::fault;
use leaklab_lab::memory;
use leaklab_record::{Cell, Table};
use numpy::ndarray::{ArrayD, IxDyn};
use numpy::{Element, IntoPyArray, PyArray1, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyException, PyMemoryError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};

/// A NumPy array of values made in Rust; they are not copied.
pub fn array<'py, T: Element>(py: Python<'py>, shape: &[usize], values: Vec<T>) -> Bound<'py, PyArrayDyn<T>> {
    ArrayD::from_shape_vec(IxDyn(shape), values).expect("values fill the shape").into_pyarray(py)
}

/// The number of bytes of an array.
fn bytes(shape: &[usize], item: usize) -> u64 {
    shape.iter().fold(item as u64, |product, &n| product.saturating_mul(n as u64))
}

/// An empty vector for the values of an array that is made for Python; it is refused if it does not fit into
/// memory.
pub fn room<T>(what: &str, shape: &[usize]) -> PyResult<Vec<T>> {
    let needed = bytes(shape, size_of::<T>());
    memory::check(format!("{what}, {shape:?},"), needed, "request fewer samples at a time").map_err(fault)?;
    let mut values = Vec::new();
    values.try_reserve_exact(shape.iter().product()).map_err(|_| {
        let size = needed as f64 / 1e9;
        PyMemoryError::new_err(format!("{what}, {shape:?}, needs {size:.1} GB, which are not available"))
    })?;
    Ok(values)
}

/// Keys and values of a dict or another mapping.
pub type Pairs<'py> = Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>;

/// The pairs of a mapping.
pub fn pairs<'py>(mapping: &Bound<'py, PyMapping>) -> PyResult<Pairs<'py>> {
    mapping.items()?.iter().map(|pair| pair.extract()).collect()
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
        let range = "a whole number from -2^63 to 2^63-1 is expected";
        let number = value.extract().map_err(|_| fault(format!("{key} is {value}; {range}")))?;
        return Ok(toml::Value::Integer(number));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(toml::Value::Float(value.extract()?));
    }
    if let Ok(text) = value.extract::<String>() {
        return Ok(toml::Value::String(text));
    }
    if let Ok(mapping) = value.cast::<PyMapping>() {
        let pairs = pairs(mapping)?.into_iter().map(|(name, value)| {
            let name = key_name("a setting", &name)?;
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

/// The name of a setting or of a layer, as a key of a mapping.
pub fn key_name(what: &str, key: &Bound<'_, PyAny>) -> PyResult<String> {
    key.extract().map_err(|_| fault(format!("the name of {what} must be a string, and {key} is not")))
}

/// A value as a NumPy array. Masked elements are refused: NumPy would use the values that the mask hides.
fn any_array<'py>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let numpy = value.py().import("numpy")?;
    if value.hasattr("mask")? && numpy.getattr("ma")?.call_method1("is_masked", (value,))?.extract()? {
        return Err(fault(format!("{name}: masked elements must be filled first, as by `.filled(0)`")));
    }
    numpy.call_method1("asarray", (value,)).map_err(|error| unreadable(value.py(), name, error))
}

/// The error for a value that NumPy cannot convert. A lack of memory and Ctrl-C are passed on unchanged.
fn unreadable(py: Python<'_>, name: &str, error: PyErr) -> PyErr {
    if error.is_instance_of::<PyMemoryError>(py) || !error.is_instance_of::<PyException>(py) {
        return error;
    }
    fault(format!("{name} cannot be read as an array of numbers: {}", error.value(py)))
}

/// The shape of an array.
pub fn shape_of(array: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    array.getattr("shape")?.extract()
}

/// The kind of an array's elements, as in NumPy: `b`, `i`, `u`, `f`, `O` and so on.
pub fn kind_of(array: &Bound<'_, PyAny>) -> PyResult<String> {
    array.getattr("dtype")?.getattr("kind")?.extract()
}

/// Whether an array has the type uint8.
pub fn is_bytes(array: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(kind_of(array)? == "u" && array.getattr("itemsize")?.extract::<usize>()? == 1)
}

/// A value as a NumPy array of real numbers. Strings, complex numbers and lists of unequal rows are refused.
pub fn real_array<'py>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let array = any_array(name, value)?;
    if !["b", "i", "u", "f", "O"].contains(&kind_of(&array)?.as_str()) {
        let found = array.getattr("dtype")?;
        return Err(fault(format!("{name} cannot be read as an array of numbers: its type is {found}")));
    }
    Ok(array)
}

/// Refuses to copy an array that does not fit into memory. A view that repeats its elements, as
/// `numpy.broadcast_to` returns, can be far larger than the memory that it takes.
pub fn check_copy(name: &str, array: &Bound<'_, PyAny>, item: usize) -> PyResult<()> {
    let shape = shape_of(array)?;
    let what = format!("a copy of {name}, {shape:?},");
    memory::check(what, bytes(&shape, item), "pass fewer samples at a time").map_err(fault)
}

/// Real numbers of any type as a contiguous array of `T`. It is copied, after a check that the copy fits into
/// memory, unless it is one already. This includes views whose strides are not multiples of the size of an
/// element, such as a field of a packed structured array: rust-numpy cannot represent them.
pub fn numbers<'py, T: Element>(
    name: &str,
    value: &Bound<'py, PyAny>,
) -> PyResult<PyReadonlyArrayDyn<'py, T>> {
    let (py, array) = (value.py(), real_array(name, value)?);
    let flags = array.getattr("flags")?;
    let is_plain = flags.getattr("c_contiguous")?.extract()? && flags.getattr("aligned")?.extract()?;
    let made = match array.cast::<PyArrayDyn<T>>() {
        Ok(ready) if is_plain => ready.clone(),
        _ => {
            check_copy(name, &array, size_of::<T>())?;
            if kind_of(&array)? == "O" {
                check_objects(name, &array)?;
            }
            let arguments = (&array, T::get_dtype(py), ["C_CONTIGUOUS", "ALIGNED"]);
            let copy = py.import("numpy")?.call_method1("require", arguments);
            copy.map_err(|error| unreadable(py, name, error))?.cast_into()?
        }
    };
    made.try_readonly().map_err(|error| fault(format!("{name} cannot be read: {error}")))
}

/// The values of an array that [`numbers`] made.
pub fn slice<'a, T: Element>(array: &'a PyReadonlyArrayDyn<'_, T>) -> &'a [T] {
    array.as_slice().expect("the array is contiguous")
}

/// Refuses objects that are not real numbers; NumPy would parse strings.
fn check_objects(name: &str, array: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = array.py();
    let real = PyTuple::new(
        py,
        [
            py.import("numbers")?.getattr("Real")?,
            py.import("decimal")?.getattr("Decimal")?,
            py.import("numpy")?.getattr("bool_")?,
        ],
    )?;
    for (at, item) in array.getattr("flat")?.try_iter()?.enumerate() {
        let item = item?;
        if !item.is_instance(&real)? {
            let shape = PyTuple::new(py, shape_of(array)?)?;
            let place: Vec<usize> =
                py.import("numpy")?.call_method1("unravel_index", (at, shape))?.extract()?;
            let shown: String = item.repr()?.to_string().chars().take(40).collect();
            return Err(fault(format!("{name}{place:?} is {shown}; a real number is expected")));
        }
    }
    Ok(())
}

/// A list of whole numbers, from a list or an array of any integer type. Other numbers are refused, not
/// rounded.
pub fn whole_numbers(what: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let array = any_array(what, value)?;
    let (shape, kind) = (shape_of(&array)?, kind_of(&array)?);
    if shape == [0] {
        return Ok(Vec::new());
    }
    if shape.len() != 1 || !["i", "u"].contains(&kind.as_str()) {
        let found = array.getattr("dtype")?;
        return Err(fault(format!(
            "{what} are {found} of shape {shape:?}; a list of whole numbers is expected"
        )));
    }
    if kind == "u" && array.call_method0("max")?.extract::<u64>()? > i64::MAX as u64 {
        return Err(fault(format!("{what} are beyond 2^63-1")));
    }
    Ok(slice(&numbers::<i64>(what, &array)?).to_vec())
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
