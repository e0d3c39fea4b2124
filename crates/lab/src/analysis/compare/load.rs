//! What a comparison needs, read from run folders.

use super::{RunRecord, compare};
use crate::analysis::AnalysisError;
use crate::run::read_config;
use leaklab_record::{RecordError, RunFolder, Table, health, metrics};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Reads a run's settings, metrics, notices and tables.
pub fn load(path: &Path) -> Result<RunRecord, AnalysisError> {
    let folder = RunFolder::open(path)?;
    let config = read_config(&folder)?;
    let mut tables = BTreeMap::new();
    for path in table_files(&folder.analysis())? {
        let table = Table::read(&path)?;
        tables.insert(table.name.clone(), table);
    }
    let name =
        path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
    Ok(RunRecord {
        name,
        tau: config.tau,
        seed: config.seed,
        dataset: config.dataset,
        network: config.network.to_string(),
        classes: config.network.classes(),
        epochs: metrics::read(&folder.metrics())?,
        notices: health::read(&folder.health())?,
        tables,
    })
}

/// The JSON tables in a folder, in order of name; none if there is no folder yet.
fn table_files(folder: &Path) -> Result<Vec<PathBuf>, RecordError> {
    let entries = match std::fs::read_dir(folder) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(RecordError::io(folder, "cannot be read"))?,
    };
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    files.sort();
    Ok(files)
}

/// Compares the runs in folders and writes the tables into `out`.
pub fn compare_folders(runs: &[PathBuf], out: &Path) -> Result<Vec<Table>, AnalysisError> {
    let records = runs.iter().map(|path| load(path)).collect::<Result<Vec<_>, _>>()?;
    let tables = compare(&records)?;
    std::fs::create_dir_all(out).map_err(RecordError::io(out, "cannot be written"))?;
    tables.iter().try_for_each(|table| table.write(out))?;
    Ok(tables)
}
