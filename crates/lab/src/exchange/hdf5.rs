//! HDF5 as a tree of named values, which is all that NIR needs. Only this file uses `hdf5-pure`.
//!
//! Files are untrusted: everything that is read takes from one budget of bytes, and reading a file with
//! circular links ends at a fixed depth and number of objects.

use crate::data::budget::Budget;
use hdf5_pure::{DType, Dataset, File, FileBuilder, Group, GroupBuilder, VlenStringReadOptions};
use std::collections::BTreeMap;

/// Limit for the depth of the tree; a deeper tree has circular links.
const DEEPEST: usize = 16;
/// Limit for the number of objects of a file; networks have fewer.
const MOST_OBJECTS: usize = 1 << 16;
/// Limit for the bytes of text in one dataset, which has names of nodes.
const LARGEST_TEXT: usize = 1 << 26;

/// One dataset.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Floating-point numbers; written as float32.
    Float(Vec<usize>, Vec<f64>),
    /// Whole numbers; written as int64.
    Integer(Vec<usize>, Vec<i64>),
    /// Strings; written as variable-length UTF-8.
    Text(Vec<usize>, Vec<String>),
    /// Name of a type that no NIR field has.
    Other(String),
}

/// One group: its datasets and its groups, by name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Folder {
    /// The datasets.
    pub values: BTreeMap<String, Value>,
    /// The groups.
    pub folders: BTreeMap<String, Folder>,
}

impl Folder {
    /// Adds a scalar string.
    pub fn text(&mut self, name: &str, text: &str) {
        self.values.insert(name.into(), Value::Text(vec![], vec![text.into()]));
    }

    /// Adds a scalar whole number.
    pub fn integer(&mut self, name: &str, value: i64) {
        self.values.insert(name.into(), Value::Integer(vec![], vec![value]));
    }

    /// Adds a list of whole numbers.
    pub fn integers(&mut self, name: &str, values: Vec<i64>) {
        self.values.insert(name.into(), Value::Integer(vec![values.len()], values));
    }
}

/// Reads the whole tree of a file; the error is one clause that states what is wrong and where.
pub fn read(bytes: Vec<u8>) -> Result<Folder, String> {
    let mut walk = Walk { objects: MOST_OBJECTS, budget: Budget::of_weights(bytes.len()) };
    let file = File::from_bytes(bytes).map_err(|e| e.to_string())?;
    walk.folder(&file.root(), "", DEEPEST)
}

/// How much of a file may still be read.
struct Walk {
    objects: usize,
    budget: Budget,
}

impl Walk {
    fn object(&mut self, path: &str) -> Result<(), String> {
        self.objects = self.objects.checked_sub(1).ok_or_else(|| format!("too many objects at {path}"))?;
        Ok(())
    }

    fn folder(&mut self, group: &Group, path: &str, depth: usize) -> Result<Folder, String> {
        let at = |e: hdf5_pure::Error| format!("group {path}/: {e}");
        let depth = depth.checked_sub(1).ok_or_else(|| format!("group {path}/ is nested too deeply"))?;
        let mut folder = Folder::default();
        for name in group.datasets().map_err(at)? {
            let path = format!("{path}/{name}");
            self.object(&path)?;
            let dataset = group.dataset(&name).map_err(|e| format!("dataset {path}: {e}"))?;
            let value = self.value(&dataset).map_err(|reason| format!("dataset {path}: {reason}"))?;
            folder.values.insert(name, value);
        }
        for name in group.groups().map_err(at)? {
            let path = format!("{path}/{name}");
            self.object(&path)?;
            let inner = group.group(&name).map_err(|e| format!("group {path}: {e}"))?;
            let inner = self.folder(&inner, &path, depth)?;
            folder.folders.insert(name, inner);
        }
        Ok(folder)
    }

    fn value(&mut self, dataset: &Dataset) -> Result<Value, String> {
        let text = |e: hdf5_pure::Error| e.to_string();
        let shape = dataset.shape().map_err(text)?;
        let count = shape.iter().try_fold(1u64, |product, &n| product.checked_mul(n));
        let width = dataset.element_size().map_err(text)?.max(1);
        // A chunk may be larger than the dataset, and is decompressed completely.
        let chunk = dataset.chunk_shape().map_err(text)?.unwrap_or_default();
        let chunk = chunk.iter().try_fold(width, |product, &n| product.checked_mul(n));
        // The values as in the file, and with eight bytes each.
        let size = count.and_then(|n| n.checked_mul(width + 8)).and_then(|size| size.checked_add(chunk?));
        self.budget
            .take(size.unwrap_or(u64::MAX))
            .map_err(|exceeded| format!("shape {shape:?}: {exceeded}"))?;
        let count = count.unwrap_or(0) as usize;
        let shape: Vec<usize> = shape.iter().map(|&n| n as usize).collect();
        let value = match dataset.dtype().map_err(text)? {
            DType::F32 | DType::F64 => Value::Float(shape, dataset.read_f64().map_err(text)?),
            DType::I8
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::U8
            | DType::U16
            | DType::U32
            | DType::U64 => Value::Integer(shape, dataset.read_i64().map_err(text)?),
            DType::VariableLengthString => {
                let limits = VlenStringReadOptions::new()
                    .with_max_elements(MOST_OBJECTS)
                    .with_max_payload_bytes(LARGEST_TEXT);
                Value::Text(shape, dataset.read_vlen_strings(limits).map_err(text)?)
            }
            DType::String => Value::Text(shape, dataset.read_string().map_err(text)?),
            other => return Ok(Value::Other(other.to_string())),
        };
        let found = match &value {
            Value::Float(_, values) => values.len(),
            Value::Integer(_, values) => values.len(),
            Value::Text(_, values) => values.len(),
            Value::Other(_) => count,
        };
        if found == count {
            Ok(value)
        } else {
            Err(format!("it has {found} values; its shape needs {count}"))
        }
    }
}

/// The bytes of a file with this tree.
pub fn write(root: &Folder) -> Result<Vec<u8>, String> {
    let mut file = FileBuilder::new();
    for (name, value) in &root.values {
        stage(file.create_dataset(name), value);
    }
    for (name, folder) in &root.folders {
        let mut group = file.create_group(name);
        fill(&mut group, folder);
        file.add_group(group.finish());
    }
    file.finish().map_err(|e| e.to_string())
}

fn fill(group: &mut GroupBuilder, folder: &Folder) {
    for (name, value) in &folder.values {
        stage(group.create_dataset(name), value);
    }
    for (name, inner) in &folder.folders {
        let mut child = group.create_group(name);
        fill(&mut child, inner);
        group.add_group(child.finish());
    }
}

fn stage(dataset: &mut hdf5_pure::DatasetBuilder, value: &Value) {
    let dimensions = |shape: &[usize]| shape.iter().map(|&n| n as u64).collect::<Vec<_>>();
    match value {
        Value::Float(shape, values) => {
            let values: Vec<f32> = values.iter().map(|&x| x as f32).collect();
            dataset.with_f32_data(&values).with_shape(&dimensions(shape));
            // Neuron parameters are one number repeated for every neuron of a layer, and compress well.
            if !shape.is_empty() && !values.is_empty() {
                dataset.with_deflate(4);
            }
        }
        Value::Integer(shape, values) => {
            dataset.with_i64_data(values).with_shape(&dimensions(shape));
        }
        Value::Text(shape, values) => {
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            dataset.with_vlen_strings(&values).with_shape(&dimensions(shape));
        }
        Value::Other(_) => unreachable!("no writer makes a value of an unknown type"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Folder {
        let mut root = Folder::default();
        root.text("version", "1.0.8");
        let mut node = Folder::default();
        node.integer("groups", 1);
        node.integers("stride", vec![1, -1]);
        node.values.insert("weight".into(), Value::Float(vec![2, 3], vec![0.0, 1.5, -2.0, 3.0, 4.0, 5.0]));
        node.values.insert("scalar".into(), Value::Float(vec![], vec![0.25]));
        let edges = ["input", "fc1", "fc1", "output"].map(String::from).to_vec();
        node.values.insert("edges".into(), Value::Text(vec![2, 2], edges));
        root.folders.insert("node".into(), node);
        root
    }

    #[test]
    fn survives_bytes() {
        assert_eq!(read(write(&example()).unwrap()).unwrap(), example());
    }

    #[test]
    fn a_shape_beyond_the_file_is_refused() {
        let mut bytes = write(&example()).unwrap();
        // The dataspace of `weight`: two dimensions, 2 and 3, as 8-byte numbers.
        let needle: Vec<u8> = [2u64, 3].iter().flat_map(|n| n.to_le_bytes()).collect();
        let mut found = false;
        while let Some(at) = bytes.windows(16).position(|w| w == needle) {
            bytes[at..at + 8].copy_from_slice(&(1u64 << 40).to_le_bytes());
            found = true;
        }
        assert!(found);
        assert!(read(bytes).is_err());
    }
}
