//! Imports a NIR graph as a network, if it is equivalent to one of LeakLab's networks.
//!
//! The graph must be a chain of LeakLab's layers: a convolution or matrix followed by a neuron, a pool
//! followed by its neuron, and a matrix followed by an integrator at the end. Gains (`r dt/tau`) and
//! thresholds that differ from layer to layer are folded into the weights, which changes no spike. Anything
//! else is refused with a message that names the node.

mod chain;
mod layers;
mod membrane;

use super::ExchangeError;
use super::nir::Graph;
use layers::Reader;
use leaklab_engine::{Architecture, Network};

/// What is needed for the import and is not stated in a graph.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ImportOptions {
    /// Length of a step in NIR's seconds; 1e-4 if not given, but then every gain must be 1.
    pub dt: Option<f64>,
    /// The `r` of `IF` and `I` nodes that means a gain of 1.
    pub if_r: f64,
    /// Add LeakLab's integrating output if a graph ends in a matrix.
    pub integrate_output: bool,
}

impl Default for ImportOptions {
    fn default() -> Self {
        ImportOptions { dt: None, if_r: 1.0, integrate_output: false }
    }
}

/// An imported network.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The network.
    pub network: Network,
    /// What had to be changed, one sentence each; empty if nothing was changed.
    pub notes: Vec<String>,
}

/// Converts a graph to a network. The error names the node that has no counterpart.
pub fn import(graph: &Graph, options: &ImportOptions) -> Result<Imported, ExchangeError> {
    let mut reader = Reader::new(options, chain::chain(graph)?)?;
    while !reader.layer()? {}
    let unmapped = |e: &dyn std::fmt::Display| ExchangeError::Unmapped(e.to_string());
    let architecture = Architecture::parse(&reader.notation).map_err(|e| unmapped(&e))?;
    let leak = reader.leak.of_network(&architecture).map_err(|e| unmapped(&e))?;
    let v_th = reader.v_th.unwrap_or(1.0) as f32;
    let mut network = Network::new(architecture, leak, v_th).map_err(|e| unmapped(&e))?;
    network.weights = reader.weights;
    network.check().map_err(|e| unmapped(&e))?;
    Ok(Imported { network, notes: reader.notes })
}

fn unmapped(node: &str, reason: String) -> ExchangeError {
    ExchangeError::Unmapped(format!("node '{node}' has no counterpart in LeakLab: {reason}"))
}
