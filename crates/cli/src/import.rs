//! `leaklab import`.

use crate::images::Images;
use crate::output::{self, path_text};
use crate::{Outcome, usage};
use leaklab_engine::{Isa, Packed};
use leaklab_lab::config::{RunConfig, Settings};
use leaklab_lab::evaluate::{Evaluation, evaluate, presentation};
use leaklab_lab::exchange::{self, ImportOptions, Imported, Model, nir};
use leaklab_lab::run::load_dataset;
use leaklab_lab::train::threads;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Read a network of another tool from a NIR graph.
#[derive(clap::Args)]
pub struct Arguments {
    /// The NIR file.
    file: PathBuf,
    /// Write model.safetensors, config.json and a model card into this folder.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Length of a step in seconds; NIR does not specify it.
    #[arg(long, allow_negative_numbers = true)]
    dt: Option<f64>,
    /// The value of r for which an IF node adds its input to the potential unchanged.
    #[arg(long, value_name = "R", default_value_t = ImportOptions::default().if_r)]
    if_r: f64,
    /// Add LeakLab's integrating output if the graph ends in a matrix.
    #[arg(long)]
    integrate_output: bool,
    /// Evaluate the network on the test images of this data set.
    #[arg(long, value_name = "DATASET")]
    evaluate: Option<String>,
    /// Time steps per image of that evaluation, instead of the data set's default.
    #[arg(long, requires = "evaluate", value_parser = clap::value_parser!(u16).range(1..))]
    time_steps: Option<u16>,
    /// Folder with the data sets.
    #[arg(long, value_name = "DIR", requires = "evaluate")]
    data_dir: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(arguments: Arguments) -> Outcome {
    if let Some(dt) = arguments.dt
        && !(dt.is_finite() && dt > 0.0)
    {
        return Err(usage(format!("--dt {dt}: a positive number of seconds is expected")));
    }
    arguments.out.iter().try_for_each(|path| output::folder("--out", path))?;
    if arguments.json {
        [Some(&arguments.file), arguments.out.as_ref()]
            .into_iter()
            .flatten()
            .try_for_each(|path| path_text(path).map(|_| ()))?;
    }
    let graph = nir::read(&arguments.file)?;
    let options = ImportOptions {
        dt: arguments.dt,
        if_r: arguments.if_r,
        integrate_output: arguments.integrate_output,
    };
    let Imported { network, notes } = exchange::import(&graph, &options)?;
    let mut model = Model::bare(network);
    model.figures.notes = notes;
    if let Some(path) = &arguments.out {
        model.write(path)?;
    }
    let evaluated =
        arguments.evaluate.as_ref().map(|dataset| show(&model, dataset, &arguments)).transpose()?;
    if arguments.json {
        println!("{}", object(&model, &arguments, evaluated.as_ref()));
    } else {
        print(&model, &arguments, evaluated.as_ref());
    }
    Ok(())
}

/// Evaluates the network on a data set, with the data set's default settings.
fn show(
    model: &Model,
    dataset: &str,
    arguments: &Arguments,
) -> Result<(RunConfig, Evaluation), Box<dyn std::error::Error>> {
    let mut settings = Settings::default();
    settings.set("dataset", dataset);
    settings.set("network", model.config.network.as_str());
    settings.set("tau", model.network.leak().tau.steps());
    if let Some(steps) = arguments.time_steps {
        settings.set("time_steps", i64::from(steps));
    }
    if let Some(folder) = &arguments.data_dir {
        settings.set("data_dir", path_text(folder)?);
    }
    let config = RunConfig::resolve(settings).map_err(usage)?;
    let dataset = load_dataset(&config)?;
    let pool = threads(None)?;
    let packed = pool.install(|| Packed::new(&model.network, Isa::best()))?;
    let presentation = presentation(&config, &dataset);
    let mut images = Images::new(false);
    let total = dataset.test.len() as u64;
    let evaluation = evaluate(&packed, &config.network, &presentation, &dataset.test, &pool, &mut |done| {
        images.show("evaluating", done as u64, total);
        true
    })?;
    images.clear();
    Ok((config, evaluation.ok_or("the evaluation was stopped")?))
}

fn object(model: &Model, arguments: &Arguments, evaluated: Option<&(RunConfig, Evaluation)>) -> Value {
    let network = &model.network;
    let evaluation = evaluated.map(|(config, evaluation)| {
        json!({
            "dataset": config.dataset,
            "time_steps": config.time_steps,
            "images": evaluation.images,
            "accuracy": evaluation.accuracy(),
            "spike_rate": evaluation.spike_rate,
            "synops": evaluation.synops,
        })
    });
    json!({
        "file": arguments.file,
        "network": network.architecture.to_string(),
        "tau": network.leak().to_string(),
        "v_th": network.v_th(),
        "weights": network.weights.len(),
        "notes": model.figures.notes,
        "out": arguments.out,
        "evaluation": evaluation,
    })
}

fn print(model: &Model, arguments: &Arguments, evaluated: Option<&(RunConfig, Evaluation)>) {
    let network = &model.network;
    println!(
        "{}: {}, tau {}, v_th {}, {} weights",
        arguments.file.display(),
        network.architecture,
        network.leak(),
        network.v_th(),
        network.weights.len()
    );
    for note in &model.figures.notes {
        println!("note: {note}");
    }
    if let Some(path) = &arguments.out {
        println!("{}: model.safetensors, config.json, README.md", path.display());
    }
    if let Some((config, evaluation)) = evaluated {
        println!(
            "accuracy {:.2} % on {} test images of {}, {} steps, spike_rate {:.3} %",
            100.0 * evaluation.accuracy(),
            evaluation.images,
            config.dataset,
            config.time_steps,
            100.0 * evaluation.spike_rate
        );
    }
}
