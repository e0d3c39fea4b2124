//! `leaklab bench`.

use crate::{Outcome, flags};
use leaklab_engine::optimiser::Optimiser;
use leaklab_engine::{Architecture, Isa, Leak, Network, Tau};
use leaklab_lab::bench::{self, Report, Settings, Timing};
use leaklab_lab::exchange::{NamedArray, npz, safetensors};
use leaklab_lab::memory;
use std::path::{Path, PathBuf};

/// The paper's CIFAR-10 model.
const CIFAR10: &str = "32x32-64C3-64C3-2P-128C3-128C3-2P-256C3-256C3-256C3-2s-1024FC-10o";

/// Time inference and training on this machine, relative to the machine's ceiling.
#[derive(clap::Args)]
pub struct Arguments {
    /// Network in the paper's notation
    #[arg(default_value = CIFAR10)]
    network: String,
    /// Weights to load (.npz or .safetensors, tensors conv1.. fc1..)
    #[arg(long, conflicts_with = "spike_rate")]
    weights: Option<PathBuf>,
    /// Random weights, scaled layer by layer until every hidden layer fires at this rate [default: 0.05]
    #[arg(long)]
    spike_rate: Option<f64>,
    /// Images to show (.npz with an array `images` [N, C, H, W] of values in [-1, 1]); synthetic images if
    /// not given
    #[arg(long)]
    images: Option<PathBuf>,
    /// Membrane time constant in steps, or inf
    #[arg(long, default_value = "100", value_parser = flags::tau, allow_negative_numbers = true)]
    tau: Tau,
    /// Threshold
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true)]
    v_th: f32,
    /// Time steps
    #[arg(long, default_value_t = 100)]
    time_steps: usize,
    /// Images per mini-batch
    #[arg(long, default_value_t = 64)]
    batch: usize,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = flags::threads, allow_negative_numbers = true)]
    threads: Option<usize>,
    /// Share of neurons dropped in training
    #[arg(long, default_value_t = 0.0)]
    dropout: f32,
    /// Number of measurements of each kind; the median is reported
    #[arg(long, default_value_t = 3)]
    repeats: usize,
    /// Instruction set: avx512, avx2 or portable [default: the fastest]
    #[arg(long)]
    isa: Option<Isa>,
    /// Time inference only
    #[arg(long)]
    no_train: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(arguments: Arguments) -> Outcome {
    let threads =
        arguments.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    for (name, value) in
        [("batch", arguments.batch), ("repeats", arguments.repeats), ("time-steps", arguments.time_steps)]
    {
        if !(1..=65_535).contains(&value) {
            return Err(crate::usage(format!("--{name} is {value}; it must be from 1 to 65535")));
        }
    }
    if !(0.0..1.0).contains(&arguments.dropout) {
        return Err(crate::usage(format!(
            "--dropout is {}; it must be at least 0 and below 1",
            arguments.dropout
        )));
    }
    let architecture = Architecture::parse(&arguments.network).map_err(crate::usage)?;
    let leak = Leak::uniform(arguments.tau);
    let settings = Settings {
        time_steps: arguments.time_steps,
        batch: arguments.batch,
        threads,
        repeats: arguments.repeats,
        isa: arguments.isa.unwrap_or_else(Isa::best),
        dropout: arguments.dropout,
        train: !arguments.no_train,
    };
    if settings.train {
        memory::check_training(
            &architecture,
            Optimiser::SGD,
            settings.time_steps,
            settings.batch,
            settings.threads,
        )?;
    } else {
        memory::check_inference(&architecture, settings.time_steps, settings.batch, settings.threads)?;
    }
    let mut network = Network::initialised(architecture, leak, arguments.v_th, 0).map_err(crate::usage)?;
    match &arguments.weights {
        Some(path) => load_weights(&mut network, path)?,
        None => {
            let rate = arguments.spike_rate.unwrap_or(0.05);
            if !(rate > 0.0 && rate <= 0.5) {
                return Err(crate::usage(format!(
                    "--spike-rate is {rate}; it must be above 0 and at most 0.5"
                )));
            }
            if !arguments.json {
                eprintln!("scaling the weights to a spike rate of {rate} ...");
            }
            bench::calibrate(&mut network, rate, &settings)?;
        }
    }
    let images = match &arguments.images {
        Some(path) => load_images(&network.architecture, path)?,
        None => Vec::new(),
    };
    let report = bench::run(&network, &settings, &images)?;
    if arguments.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        print_report(&report);
    }
    Ok(())
}

fn read_arrays(path: &Path) -> Result<Vec<NamedArray>, Box<dyn std::error::Error>> {
    match path.extension().and_then(|e| e.to_str()) {
        Some("npz") => Ok(npz::read(path)?),
        Some("safetensors") => Ok(safetensors::read(path)?),
        _ => {
            Err(crate::usage(format!("{}: weights are read from .npz or .safetensors files", path.display())))
        }
    }
}

fn load_weights(network: &mut Network, path: &Path) -> Outcome {
    let arrays = read_arrays(path)?;
    let tensors =
        arrays.iter().map(|(name, shape, values)| (name.as_str(), shape.as_slice(), values.as_slice()));
    network.set_tensors(tensors).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(())
}

fn load_images(
    architecture: &Architecture,
    path: &Path,
) -> Result<Vec<Vec<f32>>, Box<dyn std::error::Error>> {
    let shape = architecture.input();
    let Some((_, found, values)) = npz::read_array(path, "images")? else {
        return Err(format!("{}: no array named 'images'", path.display()).into());
    };
    if found.len() != 4 || found[1..] != [shape.channels, shape.height, shape.width] || found[0] == 0 {
        let expected = format!("[N, {}, {}, {}]", shape.channels, shape.height, shape.width);
        return Err(format!(
            "{}: 'images' has shape {found:?}; the network needs {expected}",
            path.display()
        )
        .into());
    }
    if let Some(element) = values.iter().position(|x| !x.is_finite()) {
        return Err(format!(
            "{}: 'images' contains {} at element {element}",
            path.display(),
            values[element]
        )
        .into());
    }
    Ok(values.chunks_exact(shape.neurons()).map(<[f32]>::to_vec).collect())
}

fn print_report(report: &Report) {
    println!("network      {}", report.network);
    println!("neuron       tau {}, {} time steps", report.tau, report.time_steps);
    let processor = report.processor.as_deref().unwrap_or("unknown processor");
    println!(
        "machine      {processor}, {} on {} threads, batch {}",
        report.isa, report.threads, report.batch
    );
    let rates: Vec<String> =
        report.spike_rate.iter().map(|l| format!("{} {:.1}%", l.layer, 100.0 * l.spike_rate)).collect();
    println!("spike rate   {}", rates.join("  "));
    println!("synops       {:.4e} per image", report.synops_per_image);
    println!(
        "ceiling      {:.1} G operations/s (one load from the L1 cache each)",
        report.ceiling_operations_per_second / 1e9
    );
    println!("encoding     {:.3} ms per image on one thread", 1e3 * report.encode_seconds_per_image);
    if let Some(bytes) = report.peak_rss_bytes {
        println!("peak memory  {:.0} MiB", bytes as f64 / f64::from(1 << 20));
    }
    println!();
    println!("           ms/image  (range)            G operations/s  of ceiling");
    let line = |name: &str, timing: &Timing| {
        let [low, high] = timing.seconds_per_image_range.map(|s| 1e3 * s);
        println!(
            "{name:<9} {:>9.3}  ({low:.3} - {high:.3})  {:>12.1}  {:>9.0} %",
            1e3 * timing.seconds_per_image,
            timing.operations_per_second / 1e9,
            100.0 * timing.fraction_of_ceiling
        );
    };
    line("inference", &report.infer);
    if let Some(train) = &report.train {
        line("training", train);
    }
}
