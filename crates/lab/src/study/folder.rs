//! Whether a study's folder belongs to the study that was asked for, and its first files.

use super::StudyError;
use crate::config::StudyConfig;
use leaklab_record::tables::PlanRow;
use leaklab_record::{Manifest, RecordError, Role, Rows, StudyFolder, file, manifest};

/// What a study may change while it goes on: conditions and seeds may be added, the question why asked or
/// not, and the data sets may move.
const MAY_CHANGE: [&str; 6] = ["tau", "condition", "seeds", "baseline", "data_dir", "mechanism"];

/// Refuses a folder whose study differs in anything but conditions, seeds, baseline, mechanism and the place of the data sets.
pub fn check(folder: &StudyFolder, config: &StudyConfig) -> Result<(), StudyError> {
    if !folder.exists() {
        return Ok(());
    }
    let path = folder.study_toml();
    let there = Manifest::read(&path)?.settings;
    let asked: toml::Table =
        toml::from_str(&config.to_toml()).map_err(|e| RecordError::malformed(&path, "settings file", e))?;
    for key in there.keys().chain(asked.keys()) {
        let (theirs, ours) = (there.get(key), asked.get(key));
        // TOML's infinity equals itself, so tables of numbers compare as they should.
        // The digest of own data is written once they are read.
        let not_read = key == "data_sha256" && ours.is_none();
        if theirs != ours && !not_read && !MAY_CHANGE.contains(&key.as_str()) {
            let say = |value: Option<&toml::Value>| match value {
                Some(value) => format!("{key} = {value}"),
                None => format!("no {key}"),
            };
            let (theirs, ours) = (say(theirs), say(ours));
            return Err(StudyError::Other { path: folder.path().to_owned(), theirs, ours });
        }
    }
    Ok(())
}

/// Makes the folder, writes the settings and the table of runs. The command is kept only the first time: a
/// resumed study is the same study.
pub fn begin(folder: &StudyFolder, config: &StudyConfig, command: &str) -> Result<(), StudyError> {
    let text = config.to_toml();
    let unchanged = file::read_to_string(&folder.study_toml()).is_ok_and(|there| there.ends_with(&text));
    if !unchanged || !folder.command().is_file() {
        let file = folder.command();
        leaklab_record::atomic::write(&file, format!("{command}\n").as_bytes())
            .map_err(RecordError::io(&file, "cannot be written"))?;
        manifest::write(&folder.study_toml(), &text)?;
    }
    plan(config).write(folder.path())?;
    Ok(())
}

/// The runs that the study is to have.
fn plan(config: &StudyConfig) -> Rows<PlanRow> {
    let mut table = Rows::new("The runs of this study", "Each condition with each of its seeds.");
    let least = config.least_leak();
    for run in config.runs() {
        let key = run.key();
        let condition = config.conditions.iter().find(|condition| condition.name == key.condition);
        let alone = condition.is_some_and(|c| c.differs.iter().all(|(name, _)| name == "tau"));
        let tau = run.leak.as_uniform().filter(|_| alone);
        let baseline = match &config.baseline {
            Some(name) => *name == key.condition,
            None => tau.is_some() && tau == least,
        };
        let role = match (run.probe, baseline) {
            (true, _) => Role::Probe,
            (false, true) => Role::Baseline,
            (false, false) => Role::Compared,
        };
        let run_name = key.folder_name();
        let (condition, seed, epochs) = (key.condition, key.seed, run.epochs);
        table.rows.push(PlanRow { run: run_name, condition, seed, epochs, tau, role });
    }
    table
}
