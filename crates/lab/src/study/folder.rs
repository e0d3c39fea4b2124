//! Checks whether a study's folder belongs to the requested study, and writes its first files.

use super::StudyError;
use crate::analysis::compare::default_baseline;
use crate::config::StudyConfig;
use crate::run;
use leaklab_record::tables::PlanRow;
use leaklab_record::{Manifest, RecordError, Role, Rows, RunFolder, StudyFolder, file, manifest};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Settings that may change when a study is continued: conditions and seeds may be added, the mechanism
/// analysis may be switched on or off, and the data sets may be moved.
const MAY_CHANGE: [&str; 6] = ["tau", "condition", "seeds", "baseline", "data_dir", "mechanism"];

/// Refuses a folder whose study differs in anything except conditions, seeds, baseline, mechanism and the
/// place of the data sets, or in which a run was started with other settings than its condition has now, or
/// whose files would be written through a link.
pub fn check(folder: &StudyFolder, config: &StudyConfig) -> Result<(), StudyError> {
    if RunFolder::at(folder.path()).exists() {
        return Err(StudyError::IsRun(folder.path().to_owned()));
    }
    folder.check_links()?;
    if !folder.exists() {
        return Ok(());
    }
    let path = folder.study_toml();
    let there = Manifest::read(&path)?.settings;
    let asked: toml::Table =
        toml::from_str(&config.to_toml()).map_err(|e| RecordError::malformed(&path, "settings file", e))?;
    for key in there.keys().chain(asked.keys()) {
        let (theirs, ours) = (there.get(key), asked.get(key));
        // The digest of the user's own data is not known before they are read. (TOML's infinity equals
        // itself, so tables of numbers can be compared.)
        let not_read = key == "data_sha256" && (ours.is_none() || theirs.is_none());
        if theirs != ours && !not_read && !MAY_CHANGE.contains(&key.as_str()) {
            let words = |value: Option<&toml::Value>| match value {
                Some(value) => format!("{key} = {value}"),
                None => format!("no {key}"),
            };
            let (theirs, ours) = (words(theirs), words(ours));
            return Err(StudyError::Other { path: folder.path().to_owned(), theirs, ours });
        }
    }
    for run in config.runs() {
        let begun = folder.run(&run.key());
        if !begun.exists() {
            continue;
        }
        if let Some((key, theirs, ours)) =
            run::difference(&run::read_config(&begun)?, &run, &["condition", "mechanism"])
        {
            let (path, theirs) = (begun.path().to_owned(), format!("{key} = {theirs}"));
            return Err(StudyError::Changed { path, condition: run.condition_name(), theirs, ours });
        }
    }
    Ok(())
}

/// Refuses a study whose settings are not those of its runs: its `study.toml` was edited. Other folders are
/// not checked.
pub fn check_unedited(folder: &StudyFolder) -> Result<(), StudyError> {
    if RunFolder::at(folder.path()).exists() || !folder.exists() {
        return Ok(());
    }
    check(folder, &StudyConfig::of_folder(folder)?)
}

/// Runs to be compared, and the baseline, if a study sets it.
#[derive(Debug, Clone, Default)]
pub struct Members {
    /// Folders of the runs.
    pub runs: Vec<PathBuf>,
    /// The baseline of the study.
    pub baseline: Option<String>,
}

/// The runs in the given folders, each of which is that of a run or of a study. A study contributes the runs
/// of its plan that were started and, if it is given alone, its baseline. A folder with `runs` but without a
/// study file contributes all of these.
pub fn members(given: &[PathBuf]) -> Result<Members, StudyError> {
    let mut members = Members::default();
    for path in given {
        let study = StudyFolder::at(path);
        if RunFolder::at(path).exists() || !study.runs().is_dir() {
            members.runs.push(path.clone());
            continue;
        }
        // The comparison is written to the study's folder unless another is given.
        file::check_folder(&study.compare())?;
        let folders: Vec<RunFolder> = if study.exists() {
            let config = StudyConfig::of_folder(&study)?;
            members.baseline = config.baseline.clone().filter(|_| given.len() == 1);
            config.runs().into_iter().map(|run| study.run(&run.key())).collect()
        } else {
            file::entries(&study.runs())?.into_iter().map(|(path, _)| RunFolder::at(path)).collect()
        };
        let begun = folders.iter().filter(|folder| folder.exists());
        let mut runs: Vec<PathBuf> = begun.map(|run| run.path().to_owned()).collect();
        // The order of a study's own comparison.
        runs.sort();
        members.runs.append(&mut runs);
    }
    Ok(members)
}

/// Names of the runs in a study's folder that do not belong to this study.
pub fn omitted(folder: &StudyFolder, config: &StudyConfig) -> Result<Vec<String>, RecordError> {
    let ours: BTreeSet<String> = config.runs().iter().map(|run| run.folder_name()).collect();
    let entries = file::entries(&folder.runs())?.into_iter().map(|(path, _)| path);
    let runs = entries.filter(|path| RunFolder::at(path).exists());
    let name = |path: PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut names: Vec<String> = runs.map(name).collect();
    names.retain(|name| !ours.contains(name));
    names.sort();
    Ok(names)
}

/// The digest of the user's own data that the study in a folder was started with, if there is one.
pub fn pinned(folder: &StudyFolder) -> Result<Option<String>, RecordError> {
    if !folder.exists() {
        return Ok(None);
    }
    let settings = Manifest::read(&folder.study_toml())?.settings;
    Ok(settings.get("data_sha256").and_then(|digest| digest.as_str()).map(str::to_owned))
}

/// Creates the folder and writes the settings and the table of runs. If a study is resumed with the same
/// settings, the command of its start is preserved.
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

/// The table of the study's runs.
fn plan(config: &StudyConfig) -> Rows<PlanRow> {
    let mut table = Rows::new("The runs of this study", "Each condition with each of its seeds.");
    let conditions: Vec<_> = config.conditions.iter().map(|c| (c.name.as_str(), &c.run)).collect();
    let default = conditions.get(default_baseline(&conditions)).map(|(name, _)| *name);
    let named = config.baseline.as_deref().or(default);
    for run in config.runs() {
        let key = run.key();
        let condition = config.conditions.iter().find(|condition| condition.name == key.condition);
        let alone = condition.is_some_and(|c| c.differs.iter().all(|(name, _)| name == "tau"));
        let tau = run.leak.as_uniform().filter(|_| alone);
        let role = match (run.probe, named == Some(key.condition.as_str())) {
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
