//! A study for programs: its plan and its results, as JSON. Numbers are read from the study's own files, so
//! they are those of the page.

use leaklab_lab::config::{RunConfig, StudyConfig};
use leaklab_lab::study::Plan;
use leaklab_record::tables::{AnswerRow, ClaimRow, WhyRow};
use leaklab_record::{RecordError, Row, Rows, StudyFolder, TableError, metrics};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// The plan.
pub fn plan(plan: &Plan, folder: &StudyFolder) -> Value {
    let base = &plan.config.base;
    let configs = plan.config.runs();
    let runs = configs.iter().zip(&plan.runs).map(|(config, state)| run(config, folder, state.epochs));
    json!({
        "study": plan.config.name,
        "folder": folder.path(),
        "dataset": base.dataset,
        "network": base.network.to_string(),
        "epochs": base.epochs,
        "time_steps": base.time_steps,
        "train_images": plan.train_images,
        "test_images": plan.test_images,
        "validation": plan.config.base.validation,
        "runs": runs.collect::<Vec<_>>(),
        "threads": plan.threads,
        "runs_at_a_time": plan.lanes(),
        "seconds": plan.seconds(),
        "bytes": plan.bytes,
        "omitted_runs": plan.omitted,
    })
}

/// The results.
pub fn done(
    config: &StudyConfig,
    folder: &StudyFolder,
    page: &Path,
    took: Duration,
) -> Result<Value, Box<dyn std::error::Error>> {
    let runs: Result<Vec<Value>, RecordError> =
        config.runs().iter().map(|config| run_of(config, folder)).collect();
    Ok(json!({
        "report": page,
        "study": config.name,
        "folder": folder.path(),
        "runs": runs?,
        "answer": objects::<AnswerRow>(&folder.compare())?.into_iter().next(),
        "claims": objects::<ClaimRow>(&folder.compare())?,
        "why": objects::<WhyRow>(&folder.compare())?,
        "seconds": took.as_secs_f64(),
    }))
}

/// The results of a run.
pub fn run_of(config: &RunConfig, folder: &StudyFolder) -> Result<Value, RecordError> {
    let epochs = metrics::read(&folder.run(&config.key()).metrics())?;
    let last = epochs.last();
    let mut run = run(config, folder, last.map_or(0, |epoch| epoch.epoch));
    run["test_accuracy"] = last.and_then(|epoch| epoch.test_accuracy).into();
    Ok(run)
}

fn run(config: &RunConfig, folder: &StudyFolder, epochs: u64) -> Value {
    json!({
        "run": folder.run(&config.key()).path(),
        "condition": config.condition_name(),
        "tau": config.leak.tau.to_string(),
        "seed": config.seed,
        "epochs": epochs,
    })
}

/// The rows of a table, as a list of objects whose keys are the table's columns.
fn objects<R: Row>(folder: &Path) -> Result<Vec<Value>, TableError> {
    let rows = Rows::<R>::read(folder)?.map_or_else(Vec::new, |table| table.rows);
    let object = |row: &R| {
        let cells =
            R::COLUMNS.iter().zip(row.cells()).map(|(column, cell)| (column.0.to_owned(), json!(cell)));
        Value::Object(cells.collect())
    };
    Ok(rows.iter().map(object).collect())
}
