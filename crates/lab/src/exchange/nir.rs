//! A graph of NIR (Neuromorphic Intermediate Representation), and its file in the layout of Python's `nir`
//! 1.0.8: `/version`, and under `/node` the graph's `type`, `edges` and `nodes`, each node a group of
//! datasets.
//!
//! `nir` passes the datasets of a node to its constructor by name, so a file must not contain any other
//! datasets. Of node types that LeakLab does not use, only the name is stored, so that an import can name the
//! node without a counterpart.

use super::ExchangeError;
use super::hdf5::{self, Folder, Value};
use crate::data::budget::{self, LARGEST_FILE};
use leaklab_record::{RecordError, atomic};
use std::collections::BTreeMap;
use std::path::Path;

/// The version of `nir` whose layout is used.
pub const VERSION: &str = "1.0.8";

/// A parameter: its shape and row-major values. NIR's arrays are float32 or float64; LeakLab writes float32.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// Size of each dimension.
    pub shape: Vec<usize>,
    /// The values, last index fastest.
    pub values: Vec<f64>,
}

impl Array {
    /// An array in which all values are equal.
    pub fn full(shape: &[usize], value: f64) -> Self {
        Array { shape: shape.to_vec(), values: vec![value; shape.iter().product()] }
    }

    /// The value of all elements, if they are equal and there is at least one.
    pub fn uniform(&self) -> Option<f64> {
        let first = *self.values.first()?;
        self.values.iter().all(|&x| x == first).then_some(first)
    }
}

/// Zero padding of a convolution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Padding {
    /// Rows and columns added on each side.
    Size([usize; 2]),
    /// The word `same` or `valid`.
    Word(String),
}

/// One node of a graph. Shapes have no batch dimension.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// The input of the graph.
    Input {
        /// Shape of the data.
        shape: Vec<usize>,
    },
    /// The output of the graph.
    Output {
        /// Shape of the data.
        shape: Vec<usize>,
    },
    /// A two-dimensional convolution (cross-correlation) with bias.
    Conv2d {
        /// Height and width of the input, if stated.
        input_shape: Option<[usize; 2]>,
        /// `[out, in, height, width]`.
        weight: Array,
        /// Step between output pixels.
        stride: [usize; 2],
        /// Zeros around the input.
        padding: Padding,
        /// Step between kernel taps.
        dilation: [usize; 2],
        /// Number of groups of channels.
        groups: usize,
        /// `[out]`.
        bias: Array,
    },
    /// A matrix `[out, in]`.
    Linear {
        /// The matrix.
        weight: Array,
    },
    /// A matrix and a bias.
    Affine {
        /// `[out, in]`.
        weight: Array,
        /// `[out]`.
        bias: Array,
    },
    /// Pooling over rectangles.
    Pool2d {
        /// Whether the mean of a rectangle is taken, and not its sum.
        average: bool,
        /// Height and width of a rectangle.
        kernel_size: [usize; 2],
        /// Step between rectangles.
        stride: [usize; 2],
        /// Zeros around the input.
        padding: [usize; 2],
    },
    /// Merges the dimensions `start_dim..=end_dim` into one.
    Flatten {
        /// Shape of the input, if stated.
        input_type: Option<Vec<usize>>,
        /// First dimension.
        start_dim: i64,
        /// Last dimension, counted from the end if negative.
        end_dim: i64,
    },
    /// Integrate and fire: `v' = r I`; if `v > v_threshold`, a spike and `v = v_reset`.
    If {
        /// Resistance.
        r: Array,
        /// Threshold.
        v_threshold: Array,
        /// Potential after a spike.
        v_reset: Array,
    },
    /// Leaky integrate and fire: `tau v' = v_leak - v + r I`; if `v > v_threshold`, a spike and
    /// `v = v_reset`.
    Lif {
        /// Time constant.
        tau: Array,
        /// Resistance.
        r: Array,
        /// Potential at rest.
        v_leak: Array,
        /// Threshold.
        v_threshold: Array,
        /// Potential after a spike.
        v_reset: Array,
    },
    /// A leaky integrator that never fires: `tau v' = v_leak - v + r I`.
    Li {
        /// Time constant.
        tau: Array,
        /// Resistance.
        r: Array,
        /// Potential at rest.
        v_leak: Array,
    },
    /// An integrator that never fires: `v' = r I`.
    I {
        /// Resistance.
        r: Array,
    },
    /// The type of a node that LeakLab does not read.
    Other(String),
}

impl Node {
    /// The name of its type in NIR.
    pub fn kind(&self) -> &str {
        match self {
            Node::Input { .. } => "Input",
            Node::Output { .. } => "Output",
            Node::Conv2d { .. } => "Conv2d",
            Node::Linear { .. } => "Linear",
            Node::Affine { .. } => "Affine",
            Node::Pool2d { average: true, .. } => "AvgPool2d",
            Node::Pool2d { average: false, .. } => "SumPool2d",
            Node::Flatten { .. } => "Flatten",
            Node::If { .. } => "IF",
            Node::Lif { .. } => "LIF",
            Node::Li { .. } => "LI",
            Node::I { .. } => "I",
            Node::Other(kind) => kind,
        }
    }
}

/// Nodes by name, and edges from one to another.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Graph {
    /// The nodes.
    pub nodes: BTreeMap<String, Node>,
    /// The edges, as (from, to).
    pub edges: Vec<(String, String)>,
}

/// Reads a graph from a file of Python's `nir` or of LeakLab.
pub fn read(path: &Path) -> Result<Graph, ExchangeError> {
    let bytes = budget::read_file(path, LARGEST_FILE).map_err(RecordError::io(path, "cannot be read"))?;
    parse(bytes).map_err(|reason| ExchangeError::malformed(path, "NIR", reason))
}

/// Writes a graph atomically, in the layout of Python's `nir` 1.0.8.
pub fn write(path: &Path, graph: &Graph) -> Result<(), ExchangeError> {
    let bytes = to_bytes(graph).map_err(|reason| ExchangeError::malformed(path, "NIR", reason))?;
    atomic::write(path, &bytes).map_err(RecordError::io(path, "cannot be written"))?;
    Ok(())
}

/// The graph in the bytes of a file; the error is one clause that states what is wrong and where.
pub fn parse(bytes: Vec<u8>) -> Result<Graph, String> {
    // Names in a damaged file may contain any character; the error must be one printable line.
    from_bytes(bytes).map_err(|reason| reason.replace(char::is_control, "?"))
}

fn from_bytes(bytes: Vec<u8>) -> Result<Graph, String> {
    let root = hdf5::read(bytes)?;
    let graph = root.folders.get("node").ok_or("it has no group 'node'")?;
    let kind = Fields { folder: graph, name: "node" }.text("type")?;
    if kind != "NIRGraph" {
        return Err(format!("its top node is a {kind}; a NIRGraph is expected"));
    }
    let nodes = graph.folders.get("nodes").ok_or("it has no group 'node/nodes'")?;
    let nodes = nodes
        .folders
        .iter()
        .map(|(name, folder)| Ok((name.clone(), Fields { folder, name }.node()?)))
        .collect::<Result<_, String>>()?;
    let edges = match graph.values.get("edges") {
        Some(Value::Text(shape, names)) if matches!(shape[..], [_, 2]) => {
            names.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
        }
        Some(_) => return Err("'node/edges' is not a list of pairs of names".into()),
        None => return Err("it has no 'node/edges'".into()),
    };
    Ok(Graph { nodes, edges })
}

/// The datasets of one node.
struct Fields<'a> {
    folder: &'a Folder,
    name: &'a str,
}

impl Fields<'_> {
    fn wrong(&self, field: &str, expected: &str) -> String {
        match self.folder.values.get(field) {
            None => format!("node '{}' has no '{field}'", self.name),
            Some(Value::Other(kind)) => {
                format!("node '{}': '{field}' has type {kind}, not {expected}", self.name)
            }
            Some(_) => format!("node '{}': '{field}' is not {expected}", self.name),
        }
    }

    fn text(&self, field: &str) -> Result<String, String> {
        match self.folder.values.get(field) {
            Some(Value::Text(_, values)) if values.len() == 1 => Ok(values[0].clone()),
            _ => Err(self.wrong(field, "a string")),
        }
    }

    fn array(&self, field: &str) -> Result<Array, String> {
        let (shape, values) = match self.folder.values.get(field) {
            Some(Value::Float(shape, values)) => (shape, values.clone()),
            Some(Value::Integer(shape, values)) => (shape, values.iter().map(|&n| n as f64).collect()),
            _ => return Err(self.wrong(field, "an array of numbers")),
        };
        if values.iter().any(|x| !x.is_finite()) {
            return Err(format!("node '{}': '{field}' contains a number that is not finite", self.name));
        }
        Ok(Array { shape: shape.clone(), values })
    }

    /// The array, or zeros in the shape of `like` if the file does not have it.
    fn array_or_zero(&self, field: &str, like: &Array) -> Result<Array, String> {
        if self.folder.values.contains_key(field) {
            self.array(field)
        } else {
            Ok(Array::full(&like.shape, 0.0))
        }
    }

    fn integers(&self, field: &str) -> Result<&[i64], String> {
        match self.folder.values.get(field) {
            Some(Value::Integer(_, values)) => Ok(values),
            _ => Err(self.wrong(field, "whole numbers")),
        }
    }

    fn integer(&self, field: &str) -> Result<i64, String> {
        match self.integers(field)? {
            &[n] => Ok(n),
            _ => Err(self.wrong(field, "one whole number")),
        }
    }

    fn shape(&self, field: &str) -> Result<Vec<usize>, String> {
        let sizes = self.integers(field)?.iter().map(|&n| usize::try_from(n).ok()).collect::<Option<_>>();
        sizes.ok_or_else(|| self.wrong(field, "a shape"))
    }

    /// Two sizes; a single size is used for both.
    fn pair(&self, field: &str) -> Result<[usize; 2], String> {
        match self.shape(field)?[..] {
            [n] => Ok([n, n]),
            [rows, columns] => Ok([rows, columns]),
            _ => Err(self.wrong(field, "a pair of sizes")),
        }
    }

    fn given(&self, field: &str) -> bool {
        self.folder.values.contains_key(field)
    }

    fn node(&self) -> Result<Node, String> {
        let kind = self.text("type")?;
        let pool = |average| -> Result<Node, String> {
            Ok(Node::Pool2d {
                average,
                kernel_size: self.pair("kernel_size")?,
                stride: self.pair("stride")?,
                padding: self.pair("padding")?,
            })
        };
        Ok(match kind.as_str() {
            "Input" => Node::Input { shape: self.shape("shape")? },
            "Output" => Node::Output { shape: self.shape("shape")? },
            "Conv2d" => Node::Conv2d {
                input_shape: if self.given("input_shape") { Some(self.pair("input_shape")?) } else { None },
                weight: self.array("weight")?,
                stride: self.pair("stride")?,
                padding: match self.text("padding") {
                    Ok(word) => Padding::Word(word),
                    Err(_) => Padding::Size(self.pair("padding")?),
                },
                dilation: self.pair("dilation")?,
                groups: self.shape("groups")?.first().copied().unwrap_or(0),
                bias: self.array("bias")?,
            },
            "Linear" => Node::Linear { weight: self.array("weight")? },
            "Affine" => Node::Affine { weight: self.array("weight")?, bias: self.array("bias")? },
            "AvgPool2d" => pool(true)?,
            "SumPool2d" => pool(false)?,
            "Flatten" => Node::Flatten {
                input_type: if self.given("input_type") { Some(self.shape("input_type")?) } else { None },
                start_dim: self.integer("start_dim")?,
                end_dim: self.integer("end_dim")?,
            },
            "IF" => {
                let v_threshold = self.array("v_threshold")?;
                Node::If {
                    r: self.array("r")?,
                    v_reset: self.array_or_zero("v_reset", &v_threshold)?,
                    v_threshold,
                }
            }
            "LIF" => {
                let v_threshold = self.array("v_threshold")?;
                Node::Lif {
                    tau: self.array("tau")?,
                    r: self.array("r")?,
                    v_leak: self.array("v_leak")?,
                    v_reset: self.array_or_zero("v_reset", &v_threshold)?,
                    v_threshold,
                }
            }
            "LI" => Node::Li { tau: self.array("tau")?, r: self.array("r")?, v_leak: self.array("v_leak")? },
            "I" => Node::I { r: self.array("r")? },
            _ => Node::Other(kind),
        })
    }
}

/// The bytes of a file with this graph.
pub fn to_bytes(graph: &Graph) -> Result<Vec<u8>, String> {
    let mut nodes = Folder::default();
    for (name, node) in &graph.nodes {
        nodes.folders.insert(name.clone(), node_folder(name, node)?);
    }
    let names = graph.edges.iter().flat_map(|(from, to)| [from.clone(), to.clone()]).collect();
    let mut top = Folder::default();
    top.text("type", "NIRGraph");
    top.values.insert("edges".into(), Value::Text(vec![graph.edges.len(), 2], names));
    top.folders.insert("nodes".into(), nodes);
    let mut root = Folder::default();
    root.text("version", VERSION);
    root.folders.insert("node".into(), top);
    hdf5::write(&root)
}

fn node_folder(name: &str, node: &Node) -> Result<Folder, String> {
    let mut folder = Folder::default();
    let row = |sizes: &[usize]| sizes.iter().map(|&n| n as i64).collect::<Vec<_>>();
    let mut arrays: Vec<(&str, &Array)> = Vec::new();
    match node {
        Node::Input { shape } => {
            folder.integers("shape", row(shape));
        }
        Node::Output { shape } => {
            folder.integers("shape", row(shape));
        }
        Node::Conv2d { input_shape, weight, stride, padding, dilation, groups, bias } => {
            if let Some(shape) = input_shape {
                folder.integers("input_shape", row(shape));
            }
            folder.integers("stride", row(stride));
            folder.integers("dilation", row(dilation));
            folder.integer("groups", *groups as i64);
            match padding {
                Padding::Size(size) => folder.integers("padding", row(size)),
                Padding::Word(word) => folder.text("padding", word),
            }
            arrays.extend([("weight", weight), ("bias", bias)]);
        }
        Node::Linear { weight } => {
            arrays.push(("weight", weight));
        }
        Node::Affine { weight, bias } => {
            arrays.extend([("weight", weight), ("bias", bias)]);
        }
        Node::Pool2d { average: _, kernel_size, stride, padding } => {
            folder.integers("kernel_size", row(kernel_size));
            folder.integers("stride", row(stride));
            folder.integers("padding", row(padding));
        }
        Node::Flatten { input_type, start_dim, end_dim } => {
            if let Some(shape) = input_type {
                folder.integers("input_type", row(shape));
            }
            folder.integer("start_dim", *start_dim);
            folder.integer("end_dim", *end_dim);
        }
        Node::If { r, v_threshold, v_reset } => {
            arrays.extend([("r", r), ("v_threshold", v_threshold), ("v_reset", v_reset)]);
        }
        Node::Lif { tau, r, v_leak, v_threshold, v_reset } => {
            arrays.extend([("tau", tau), ("r", r), ("v_leak", v_leak)]);
            arrays.extend([("v_threshold", v_threshold), ("v_reset", v_reset)]);
        }
        Node::Li { tau, r, v_leak } => {
            arrays.extend([("tau", tau), ("r", r), ("v_leak", v_leak)]);
        }
        Node::I { r } => {
            arrays.push(("r", r));
        }
        Node::Other(kind) => return Err(format!("node '{name}' is a {kind}, which LeakLab does not write")),
    }
    folder.text("type", node.kind());
    for (field, array) in arrays {
        folder.values.insert(field.into(), Value::Float(array.shape.clone(), array.values.clone()));
    }
    Ok(folder)
}
