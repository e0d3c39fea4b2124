//! `leaklab advise`.

use crate::images::Images;
use crate::interrupt::Interrupt;
use crate::study::refused;
use crate::{Outcome, flags, usage};
use leaklab_engine::noise::{HIGHEST_SEVERITY, NoiseError};
use leaklab_engine::{Isa, LeakChange};
use leaklab_lab::analysis::{Advance, Options, mechanism};
use leaklab_lab::run::Weights;
use leaklab_lab::study::{Members, check_unedited, members};
use leaklab_lab::train::threads;
use leaklab_record::tables::AdviceRow;
use leaklab_record::text::counted;
use leaklab_record::{NoiseKey, Row, StudyFolder};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::Arc;

/// Find the most robust network of a study, and the leak to run it with, within a budget.
#[derive(clap::Args)]
pub struct Arguments {
    /// Folder of a study.
    study: PathBuf,
    /// The noise to be robust against, such as gaussian/pixel, or gaussian with --scenario pixel.
    #[arg(long, value_name = "NOISE")]
    noise: String,
    /// Where the noise acts: on the `pixel` before encoding, or in the `channel` after encoding.
    #[arg(long)]
    scenario: Option<String>,
    /// Its severity, 1 to 8; if not given, the one at which the network without leak has lost half of its
    /// excess over chance.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    severity: Option<String>,
    /// Largest number of synaptic operations per image; not limited if not given.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    synops_budget: Option<String>,
    /// Name of a condition: the networks that differ from it in tau alone are considered, and compared with
    /// the one of them that has no leak. If not given, the study's baseline.
    #[arg(long, value_name = "CONDITION")]
    baseline: Option<String>,
    /// Folder with the data sets, instead of the one in the runs' settings.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Number of threads; results do not depend on it.
    #[arg(long, value_name = "N", value_parser = flags::threads, allow_negative_numbers = true)]
    threads: Option<usize>,
    /// Print the advice as one JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(arguments: Arguments) -> Outcome {
    let noise = noise(&arguments.noise, arguments.scenario.as_deref())?;
    let severity = arguments.severity.as_deref().map(severity).transpose()?;
    let budget = arguments.synops_budget.as_deref().map(budget).transpose()?;
    if !StudyFolder::at(&arguments.study).exists() {
        let reason = "not the folder of a study; `leaklab study` makes one";
        return Err(format!("{}: {reason}", arguments.study.display()).into());
    }
    check_unedited(&StudyFolder::at(&arguments.study)).map_err(refused)?;
    let Members { runs, baseline } = members(std::slice::from_ref(&arguments.study))?;
    let baseline = arguments.baseline.or(baseline);
    let options = Options {
        images: None,
        noise: Vec::new(),
        weights: Weights::Last,
        leak: LeakChange::default(),
        data_dir: arguments.data_dir,
        pool: Arc::new(threads(arguments.threads)?),
        isa: Isa::best(),
    };
    let mut images = Images::new(arguments.json);
    let interrupt = Interrupt::listen("finishing the current images; finished runs are stored");
    let advice = mechanism::advise(
        &runs,
        baseline.as_deref(),
        &options,
        (noise, severity),
        budget,
        &mut |advance: &Advance| {
            images.show(&advance.stimulus, advance.done, advance.total);
            !interrupt.asked()
        },
    );
    images.clear();
    let advice = advice?;
    if arguments.json {
        println!("{}", object(&advice))
    } else {
        println!("{}", text(&advice))
    }
    Ok(())
}

/// A noise and its scenario, which are given together or separately.
fn noise(name: &str, scenario: Option<&str>) -> Result<NoiseKey, Box<dyn std::error::Error>> {
    let key = match scenario {
        Some(scenario) if !name.contains('/') => format!("{name}/{scenario}"),
        Some(scenario) if !name.ends_with(&format!("/{scenario}")) => {
            return Err(usage(NoiseError::TwoScenarios(name.to_owned(), scenario.to_owned())));
        }
        Some(_) | None => name.to_owned(),
    };
    key.parse().map_err(|e| usage(format!("--noise {key}: {e}")))
}

fn severity(text: &str) -> Result<usize, Box<dyn std::error::Error>> {
    let found = text.parse().ok().filter(|severity| (1..=HIGHEST_SEVERITY).contains(severity));
    found.ok_or_else(|| {
        usage(format!("--severity {text}: a whole number from 1 to {HIGHEST_SEVERITY} is expected"))
    })
}

fn budget(text: &str) -> Result<f64, Box<dyn std::error::Error>> {
    let found = text.parse().ok().filter(|budget: &f64| budget.is_finite() && *budget > 0.0);
    let expected = "a number of synaptic operations per image above 0 is expected";
    found.ok_or_else(|| usage(format!("--synops-budget {text}: {expected}")))
}

/// The row as a JSON object.
fn object(advice: &AdviceRow) -> Value {
    let names = AdviceRow::COLUMNS.iter().map(|column| column.0.to_owned());
    let values = advice.cells().into_iter().map(|cell| serde_json::to_value(cell).unwrap_or_default());
    Value::Object(names.zip(values).collect::<Map<String, Value>>())
}

fn text(advice: &AdviceRow) -> String {
    let percent = |x: f64| format!("{:.1} %", 100.0 * x);
    let leak = |tau: leaklab_engine::Tau| {
        if tau.leaks() { format!("tau {tau}") } else { "no leak".to_owned() }
    };
    let interval = |low: Option<f64>, high: Option<f64>| match low.zip(high) {
        Some((low, high)) => format!(" [{:.1}, {:.1}]", 100.0 * low, 100.0 * high),
        None => String::new(),
    };
    let over_readout = advice.over_readout().map_or_else(String::new, |(readout, gain)| {
        format!(
            "\n             {:+.1} points{} compared with the same networks, read with {}, their best \
             readout",
            100.0 * gain,
            interval(advice.gain_over_readout_low, advice.gain_over_readout_high),
            readout.words(),
        )
    });
    let budget = advice.budget.map_or(String::new(), |n| format!(", at most {n:.0} operations per image"));
    format!(
        "Under {}{budget}, the most robust of {} measured ways to train and run the network:\n  \
         train with {}, run with {} in the hidden layers, read with {}\n  \
         accuracy   {}{} on images that were not used for the choice ({} on those that were)\n  \
         gain       {:+.1} points{} compared with networks trained and run without leak, read with a plain \
         sum{}\n  \
         price      {:.0} synaptic operations per image, {:.2} times as many as without leak\n  \
         from       {}, {} images in each half",
        advice.stimulus.words(),
        advice.candidates,
        leak(advice.trained),
        leak(advice.hidden),
        advice.readout.words(),
        percent(advice.accuracy),
        interval(advice.low, advice.high),
        percent(advice.chosen_accuracy),
        100.0 * advice.gain,
        interval(advice.gain_low, advice.gain_high),
        over_readout,
        advice.synops,
        advice.synops_ratio,
        counted(advice.seeds, "seed"),
        advice.images,
    )
}
