//! A NIR graph as a network, if it is one of ours in all but name.
//!
//! The graph must be a chain of LeakLab's layers: a convolution or matrix followed by a neuron, a pool
//! followed by its neuron, and a matrix followed by an integrator at the end. Gains (`r dt/tau`) and
//! thresholds that differ from layer to layer are folded into the weights, which changes no spike. Anything
//! else is refused with the node's name.

mod chain;
mod layers;
mod membrane;

use super::ExchangeError;
use super::nir::Graph;
use layers::Reader;
use leaklab_engine::{Architecture, Network};

/// What a graph does not say about itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ImportOptions {
    /// Length of a step in NIR's seconds; 1e-4 if not given, but then every gain must come out as 1.
    pub dt: Option<f64>,
    /// The `r` of `IF` and `I` nodes that adds an input to the potential as it is.
    pub if_r: f64,
    /// Put LeakLab's integrating output where a graph ends in a matrix.
    pub integrate_output: bool,
}

impl Default for ImportOptions {
    fn default() -> Self {
        ImportOptions { dt: None, if_r: 1.0, integrate_output: false }
    }
}

/// A network that came in.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The network.
    pub network: Network,
    /// What had to be changed to make it one, a sentence each; empty if nothing.
    pub notes: Vec<String>,
}

/// Maps a graph onto a network, or names the node that has no counterpart.
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
