//! `leaklab export`.

use crate::output::{self, FileKind};
use crate::{Outcome, flags};
use leaklab_lab::exchange::quantise::{self, WeightBits};
use leaklab_lab::exchange::{self, Model, Target, nir, npz};
use leaklab_lab::run::Weights;
use std::path::PathBuf;

/// Write a trained network for other tools.
#[derive(clap::Args)]
#[command(
    group = clap::ArgGroup::new("format")
        .required(true)
        .multiple(true)
        .args(["nir", "safetensors", "npz", "quantised"])
)]
pub struct Arguments {
    /// A run's folder, or a folder written by `export --safetensors` or `import`.
    run: PathBuf,
    /// Write a NIR graph to this file, as Python's nir 1.0.8 reads it.
    #[arg(long, value_name = "FILE")]
    nir: Option<PathBuf>,
    /// Write model.safetensors, config.json and a model card into this folder.
    #[arg(long, value_name = "FOLDER")]
    safetensors: Option<PathBuf>,
    /// Write the weights to this file as NumPy arrays.
    #[arg(long, value_name = "FILE")]
    npz: Option<PathBuf>,
    /// Write the weights as integers of few bits, with a scale for each layer, to this safetensors file.
    #[arg(long, value_name = "FILE", requires = "weight_bits")]
    quantised: Option<PathBuf>,
    /// Bits of an integer: 8 or 4. `leaklab evaluate --weight-bits` reports their effect.
    #[arg(long, value_name = "BITS", requires = "quantised")]
    weight_bits: Option<WeightBits>,
    /// Use the weights of the epoch with the highest test accuracy instead of the last ones.
    #[arg(long)]
    best: bool,
    /// NIR: the tool that will load and run the file: generic, norse, snntorch or spikingjelly.
    #[arg(long, value_name = "TOOL", default_value = Target::Generic.name(), requires = "nir")]
    target: Target,
    /// NIR: length of a step in seconds [default: 0.0001, for Norse 0.001].
    #[arg(long, requires = "nir", value_parser = flags::positive, allow_negative_numbers = true)]
    dt: Option<f64>,
    /// NIR: r of IF nodes; 1 for tools that add r I in a step, 1/dt for tools that add r I dt [default: what
    /// the target expects].
    #[arg(
        long,
        value_name = "R",
        requires = "nir",
        value_parser = flags::positive,
        allow_negative_numbers = true
    )]
    if_r: Option<f64>,
    /// NIR: write neurons without leak as LIF nodes whose decay is 1, for tools that read IF as leaky.
    #[arg(long, requires = "nir")]
    if_as_lif: bool,
}

/// Runs the subcommand.
pub fn run(arguments: Arguments) -> Outcome {
    for (flag, path, kind) in [
        ("--nir", &arguments.nir, FileKind::Nir),
        ("--npz", &arguments.npz, FileKind::Npz),
        ("--quantised", &arguments.quantised, FileKind::Safetensors),
    ] {
        path.iter().try_for_each(|path| output::file(flag, path, kind))?;
    }
    arguments.safetensors.iter().try_for_each(|path| output::folder("--safetensors", path))?;
    let weights = Weights::of(arguments.best);
    let model = Model::open(&arguments.run, weights)?;
    if let Some(notice) = &model.notice {
        eprintln!("warning: {notice}");
    }
    if let Some(path) = &arguments.nir {
        let options = arguments.target.with(arguments.dt, arguments.if_r, arguments.if_as_lif);
        let graph = exchange::export(&model.network, &options)?;
        nir::write(path, &graph)?;
        println!("{}: {} nodes, dt {}", path.display(), graph.nodes.len(), options.dt);
        if !options.integrator {
            let decay = model.network.leak().readout().lambda();
            println!(
                "the graph ends in the last matrix: start with U = 0 and set U = {decay} U + output in every \
                 step"
            );
        }
    }
    if let Some(path) = &arguments.npz {
        npz::write(path, &model.tensors())?;
        println!("{}: {} arrays", path.display(), model.tensors().len());
    }
    if let (Some(path), Some(bits)) = (&arguments.quantised, arguments.weight_bits) {
        let layers = quantise::quantise(&model.network, bits);
        quantise::write(path, &layers)?;
        println!("{}: {} layers of {bits} bits, each with its scale", path.display(), layers.len());
    }
    if let Some(path) = &arguments.safetensors {
        model.write(path)?;
        println!("{}: model.safetensors, config.json, README.md", path.display());
    }
    Ok(())
}
