//! `leaklab train`.

use crate::interrupt::Interrupt;
use crate::output::{self, path_text};
use crate::progress::{Progress, Style};
use crate::{Outcome, STOPPED, exit_code, flags, usage};
use leaklab_engine::{Isa, Place, Tau};
use leaklab_lab::config::{ConfigError, RunConfig, Settings, tested_on};
use leaklab_lab::train::{self, Control, Launch, Options, Ranks, Summary};
use leaklab_record::Machine;
use leaklab_record::text::counted;
use std::path::PathBuf;

/// Train a network, or resume a run that was stopped.
#[derive(clap::Args)]
pub struct Arguments {
    /// File with the run's settings, or the name of a built-in study; keys that it does not set have the
    /// defaults of the data set.
    #[arg(conflicts_with = "resume")]
    file: Option<PathBuf>,
    /// Data set, see `leaklab data list`.
    #[arg(long, value_name = "NAME", conflicts_with = "resume")]
    dataset: Option<String>,
    /// Membrane time constant in time steps; `inf` for no leak.
    #[arg(
        long,
        value_name = "STEPS",
        conflicts_with = "resume",
        value_parser = flags::tau,
        allow_negative_numbers = true
    )]
    tau: Option<Tau>,
    /// Time constants of single hidden layers, such as conv1=5,fc1=inf.
    #[arg(
        long,
        value_name = "LAYER=STEPS",
        value_delimiter = ',',
        value_parser = flags::layer_tau,
        conflicts_with = "resume"
    )]
    layer_tau: Vec<String>,
    /// Time constant of the output layer, if it differs.
    #[arg(
        long,
        value_name = "STEPS",
        conflicts_with = "resume",
        value_parser = flags::tau,
        allow_negative_numbers = true
    )]
    readout_tau: Option<Tau>,
    /// Seed of all random numbers.
    #[arg(long, conflicts_with = "resume", value_parser = flags::seed, allow_negative_numbers = true)]
    seed: Option<i64>,
    /// Any setting, such as --set epochs=4 (may be repeated).
    #[arg(long = "set", value_name = "KEY=VALUE", conflicts_with = "resume")]
    settings: Vec<String>,
    /// Hold out this share of the training images, chosen by seed, and report the accuracy on them, so that
    /// settings can be chosen without the test images.
    #[arg(
        long,
        value_name = "SHARE",
        num_args = 0..=1,
        default_missing_value = "0.1",
        conflicts_with = "resume",
        value_parser = flags::share
    )]
    select: Option<String>,
    /// Folder with the data sets, or the folder or file of your own data set.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Folder of the new run; if not given, runs/DATASET_tau-TAU_seed-SEED.
    #[arg(long, value_name = "RUN", conflicts_with = "resume")]
    out: Option<PathBuf>,
    /// Resume this run.
    #[arg(long, value_name = "RUN")]
    resume: Option<PathBuf>,
    /// Number of threads, of each process if `mpirun` started several; results do not depend on it.
    #[arg(long, value_name = "N", value_parser = flags::threads, allow_negative_numbers = true)]
    threads: Option<usize>,
    #[arg(long, value_name = "SET", help = flags::ISA)]
    isa: Option<Isa>,
    /// Minutes between checkpoints within an epoch.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10.0,
        value_parser = flags::minutes,
        allow_negative_numbers = true
    )]
    checkpoint_minutes: f64,
    /// Stop when the loss diverges or the layers fall silent.
    #[arg(long)]
    stop_on_divergence: bool,
    /// Print only warnings.
    #[arg(long, conflicts_with = "json")]
    quiet: bool,
    /// Print one JSON object per event.
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand: alone, or as one of the processes that `mpirun` started.
pub fn run(arguments: Arguments) -> Outcome {
    let launch = Launch::find()?;
    let (ranks, processes) = (&launch.ranks, launch.processes);
    let Place { rank, ranks: together } = ranks.place();
    if processes != together {
        eprintln!(
            "leaklab: this is one of {processes} processes that were started together, but it trains alone, \
             because this program was built without MPI (build it with cargo build --release --features mpi)"
        );
    }
    let outcome = match rank {
        0 => lead(&arguments, ranks),
        _ => follow(&arguments, ranks),
    };
    match outcome {
        // The other ranks wait for this process, and must be ended with it.
        Err(error) if together > 1 && exit_code(&*error) != STOPPED => {
            eprintln!("leaklab: rank {rank} of {together}: {error}");
            ranks.abort(exit_code(&*error).into())
        }
        outcome => outcome,
    }
}

fn options(arguments: &Arguments, ranks: &Ranks) -> Options {
    Options {
        // A rank uses one core by default, because several ranks may be on one machine.
        threads: arguments.threads.or((ranks.place().ranks > 1).then_some(1)),
        checkpoint_minutes: arguments.checkpoint_minutes,
        stop_on_divergence: arguments.stop_on_divergence,
        data_dir: arguments.data_dir.clone(),
        isa: arguments.isa.unwrap_or_else(Isa::best),
        initial: None,
        ranks: ranks.clone(),
    }
}

/// The work of the ranks other than 0.
fn follow(arguments: &Arguments, ranks: &Ranks) -> Outcome {
    let interrupt = Interrupt::listen("rank 0 will finish the batch and write a checkpoint");
    Ok(train::work(&options(arguments, ranks), &|| interrupt.asked())?)
}

/// The work of rank 0, or of the only process.
fn lead(arguments: &Arguments, ranks: &Ranks) -> Outcome {
    let options = options(arguments, ranks);
    let style = Style::choose(arguments.quiet, arguments.json);
    let mut progress = Progress::new(style);
    let interrupt = Interrupt::listen("finishing the batch and writing a checkpoint");
    let mut report = |event: train::Event| {
        progress.show(&event);
        if interrupt.asked() { Control::Stop } else { Control::Continue }
    };
    let summary = match &arguments.resume {
        Some(run) => train::resume(run, &options, &mut report)?,
        None => {
            flags::one_for_each_layer(&arguments.layer_tau).map_err(usage)?;
            let data_dir = arguments.data_dir.as_deref().map(flags::absolute);
            let data_dir = data_dir.map(|folder| path_text(&folder)).transpose()?;
            let mut config = config(arguments, data_dir.as_deref()).map_err(refused)?;
            config.data_dir = flags::stored(config.data_dir)?;
            let out = arguments.out.clone().unwrap_or_else(|| config.default_folder());
            output::new_folder("--out", &out)?;
            train::train(&config, &out, &options, &mut report)?
        }
    };
    conclude(&summary, style, options.isa)
}

/// An error in the settings. This subcommand has its own flag for the data set.
fn refused(error: ConfigError) -> Box<dyn std::error::Error> {
    match error {
        ConfigError::Missing { key: "dataset", .. } => usage(
            "dataset is missing: add --dataset digits, or set it in the file; `leaklab data list` shows all",
        ),
        error => usage(error),
    }
}

/// The settings given by the arguments.
fn config(arguments: &Arguments, data_dir: Option<&str>) -> Result<RunConfig, ConfigError> {
    let mut settings = arguments.file.as_deref().map_or_else(|| Ok(Settings::default()), Settings::open)?;
    for assignment in &arguments.settings {
        settings.assign(assignment)?;
    }
    if let Some(dataset) = &arguments.dataset {
        settings.set("dataset", dataset.as_str());
    }
    if let Some(share) = &arguments.select {
        settings.assign(&format!("validation={share}"))?;
    }
    if let Some(tau) = arguments.tau {
        settings.set("tau", tau.steps());
    }
    for assignment in &arguments.layer_tau {
        settings.assign(&format!("layer_tau.{assignment}"))?;
    }
    if let Some(tau) = arguments.readout_tau {
        settings.set("readout_tau", tau.steps());
    }
    if let Some(seed) = arguments.seed {
        settings.set("seed", seed);
    }
    if let Some(folder) = data_dir {
        settings.set("data_dir", folder);
    }
    RunConfig::resolve(settings)
}

/// Prints the last line. An error if the run did not finish.
fn conclude(summary: &Summary, style: Style, isa: Isa) -> Outcome {
    let run = summary.run.display();
    let word = match summary.outcome {
        train::Outcome::Finished => "finished",
        train::Outcome::Interrupted => "interrupted",
        train::Outcome::Diverged => "diverged",
    };
    if style == Style::Json {
        let notices = &summary.notices;
        let value = serde_json::json!({
            "event": word, "run": run.to_string(), "epochs": summary.epochs, "last": summary.last,
            "best_epoch": summary.best_epoch, "best_accuracy": summary.best_accuracy, "health": notices,
            "validation": summary.validation, "machine": Machine::here(isa),
        });
        println!("{value}");
    }
    match summary.outcome {
        train::Outcome::Finished => {
            if matches!(style, Style::Bar | Style::Plain) {
                let which = tested_on(summary.validation);
                let accuracy = summary.last.as_ref().and_then(|last| last.test_accuracy);
                let accuracy =
                    accuracy.map_or(String::new(), |a| format!(", {which} accuracy {:.2} %", 100.0 * a));
                println!("{run}: {}{accuracy}", counted(summary.epochs, "epoch"));
            }
            Ok(())
        }
        train::Outcome::Interrupted => {
            let remedy = format!("continue with `leaklab train --resume {run}`");
            Err(crate::stopped(format!("stopped after epoch {}; {remedy}", summary.epochs)))
        }
        train::Outcome::Diverged => {
            let reason = summary.notices.last().map_or("the run diverged", |notice| &notice.message);
            Err(format!("{run}: stopped after epoch {}: {reason}", summary.epochs).into())
        }
    }
}
