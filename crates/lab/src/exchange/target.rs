//! Options for writing a NIR graph for a tool that reads some nodes differently, or not at all.
//!
//! NIR's nodes are defined by equations, but tools interpret them differently. Each target is a set of
//! options with which the graph is equivalent, and the tool's own importer loads and runs it without changes.
//! The behaviour of the tools was found by running them (`tools/nir_roundtrip.py`,
//! `docs/interoperability.md`).

use super::export::DT;
use std::str::FromStr;

/// The tool that a graph is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// NIR's own nodes, with the integrator at the end.
    Generic,
    /// Norse 1.1 (`norse.torch.from_nir`).
    Norse,
    /// snnTorch 1.0 (`snntorch.import_nir.import_from_nir`).
    SnnTorch,
    /// SpikingJelly 2.0 (`spikingjelly.activation_based.nir_exchange.import_from_nir`).
    SpikingJelly,
}

impl Target {
    /// All targets.
    pub const ALL: [Target; 4] = [Target::Generic, Target::Norse, Target::SnnTorch, Target::SpikingJelly];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Target::Generic => "generic",
            Target::Norse => "norse",
            Target::SnnTorch => "snntorch",
            Target::SpikingJelly => "spikingjelly",
        }
    }

    /// How its graphs are written.
    pub fn options(self) -> ExportOptions {
        let generic = ExportOptions {
            dt: DT,
            if_r: 1.0,
            if_as_lif: false,
            integrator: true,
            sum_pool: false,
            fold_r: false,
        };
        match self {
            Target::Generic => generic,
            // Its default step is 1 ms; it ignores r and has no AvgPool2d.
            Target::Norse => {
                ExportOptions { dt: 1e-3, integrator: false, sum_pool: true, fold_r: true, ..generic }
            }
            // It reads IF as a neuron with a decay of 0.9.
            Target::SnnTorch => ExportOptions { if_as_lif: true, integrator: false, ..generic },
            // Its IF adds r I dt in a step.
            Target::SpikingJelly => ExportOptions { if_r: 1.0 / DT, integrator: false, ..generic },
        }
    }

    /// The options of the target, replaced by those that the user gives. If the target's `r` is `1/dt`, it
    /// follows the given `dt`.
    pub fn with(self, dt: Option<f64>, if_r: Option<f64>, if_as_lif: bool) -> ExportOptions {
        let target = self.options();
        let dt = dt.unwrap_or(target.dt);
        let own_r = if target.if_r == 1.0 { 1.0 } else { 1.0 / dt };
        let if_as_lif = if_as_lif || target.if_as_lif;
        ExportOptions { dt, if_r: if_r.unwrap_or(own_r), if_as_lif, ..target }
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Target::ALL.into_iter().find(|target| target.name() == text).ok_or_else(|| {
            let names = Target::ALL.map(Target::name).join(", ");
            format!("there is no target '{text}'; there are {names}")
        })
    }
}

/// Options where tools read NIR differently.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExportOptions {
    /// Length of a step in NIR's seconds.
    pub dt: f64,
    /// `r` of `IF` and `I` nodes: 1 for tools whose step adds `r I`, `1/dt` for tools whose step adds
    /// `r I dt`.
    pub if_r: f64,
    /// Write IF neurons as LIF neurons with a decay of 1, for tools that read `IF` as leaky.
    pub if_as_lif: bool,
    /// End with the integrator of the output layer (`LI` or `I`). Without it the graph ends in the last
    /// matrix, and the caller must integrate its output.
    pub integrator: bool,
    /// Write a pool as a sum, not as a mean, for tools without `AvgPool2d`.
    pub sum_pool: bool,
    /// Multiply `r` of LIF neurons into the weights before them, for tools that ignore it.
    pub fold_r: bool,
}

impl Default for ExportOptions {
    fn default() -> Self {
        Target::Generic.options()
    }
}
