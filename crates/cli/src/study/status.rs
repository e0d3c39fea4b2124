//! `leaklab study --status`: what is done, running, failed and missing.

use super::progress::duration;
use super::refused;
use crate::Outcome;
use leaklab_lab::config::StudyConfig;
use leaklab_lab::study::{RunStatus, State, StateKind, Status};
use leaklab_record::StudyFolder;
use serde_json::{Value, json};

/// Prints the status of a study.
pub fn print(config: &StudyConfig, folder: &StudyFolder, as_json: bool) -> Outcome {
    let status = Status::read(config, folder).map_err(refused)?;
    if as_json {
        println!("{}", object(config, folder, &status));
        return Ok(());
    }
    let counts: Vec<String> = StateKind::ALL
        .into_iter()
        .map(|kind| (status.count(kind), kind))
        .filter(|(count, _)| *count > 0)
        .map(|(count, kind)| format!("{count} {}", kind.word()))
        .collect();
    println!(
        "Study {} in {}: {} of {} runs",
        config.name,
        folder.path().display(),
        counts.join(", "),
        status.runs.len()
    );
    let width = status.runs.iter().map(|run| run.name.len()).max().unwrap_or(0);
    for (index, run) in status.runs.iter().enumerate() {
        let epochs = format!("{}/{} epochs", run.epochs, run.planned);
        let more = details(run);
        println!("  {index:>3} {:width$}  {:7}  {epochs}{more}", run.name, run.state.kind().word());
    }
    let running = status.count(StateKind::Running);
    match status.seconds_to_go {
        Some(seconds) if seconds > 0.0 => {
            let pace = match running {
                0 => "one run at a time, and none is running".to_owned(),
                1 => "one run at a time, as now".to_owned(),
                n => format!("{n} runs at a time, as now"),
            };
            println!("  about {} to go, {pace}", duration(seconds));
        }
        Some(_) => println!("  all runs are done"),
        None => println!(
            "  time to go: unknown until a run has trained an epoch; --dry-run measures and estimates it"
        ),
    }
    if folder.page().is_file() {
        println!("  page: {}", folder.page().display());
    }
    Ok(())
}

/// Details of a run's state.
fn details(run: &RunStatus) -> String {
    let to_go = match run.seconds_to_go {
        Some(seconds) if seconds > 0.0 => format!(", about {} to go", duration(seconds)),
        _ => String::new(),
    };
    match &run.state {
        State::Running(holder) => format!("{to_go}; {holder}"),
        State::Failed(reason) => format!("; {reason}"),
        State::Stopped => format!("{to_go}; no process works on it"),
        State::Done | State::Missing => String::new(),
    }
}

fn object(config: &StudyConfig, folder: &StudyFolder, status: &Status) -> Value {
    let count = |kind: StateKind| (kind.word().to_owned(), status.count(kind).into());
    let counts: serde_json::Map<String, Value> = StateKind::ALL.into_iter().map(count).collect();
    let run = |(index, run): (usize, &RunStatus)| {
        let mut value = json!({
            "index": index,
            "name": run.name,
            "run": folder.runs().join(&run.name),
            "state": run.state.kind().word(),
            "epochs": run.epochs,
            "planned": run.planned,
            "seconds_to_go": run.seconds_to_go,
        });
        match &run.state {
            State::Running(holder) => {
                value["host"] = holder.process.as_ref().map(|process| process.host.as_str()).into();
                value["pid"] = holder.process.as_ref().map(|process| process.pid).into();
                value["seconds_since_heartbeat"] = holder.age.as_secs_f64().into();
            }
            State::Failed(reason) => value["reason"] = reason.as_str().into(),
            State::Done | State::Stopped | State::Missing => {}
        }
        value
    };
    json!({
        "study": config.name,
        "folder": folder.path(),
        "counts": counts,
        "runs": status.runs.iter().enumerate().map(run).collect::<Vec<_>>(),
        "seconds_to_go": status.seconds_to_go,
    })
}
