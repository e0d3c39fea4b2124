//! Reads what a comparison needs from run folders.

use super::{RunRecord, compare};
use crate::analysis::AnalysisError;
use crate::run::read_config;
use leaklab_record::{RecordError, Row, Rows, RunFolder, Table, TableError, health, metrics};
use std::path::{Path, PathBuf};

/// Reads a run's settings, metrics, notices and tables.
pub fn load(path: &Path) -> Result<RunRecord, AnalysisError> {
    fn rows<R: Row>(folder: &Path) -> Result<Vec<R>, TableError> {
        Ok(Rows::read(folder)?.map_or_else(Vec::new, |table: Rows<R>| table.rows))
    }
    let folder = RunFolder::open(path)?;
    let analysis = folder.analysis();
    let name =
        path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
    Ok(RunRecord {
        name,
        config: read_config(&folder)?,
        epochs: metrics::read(&folder.metrics())?,
        notices: health::read(&folder.health())?,
        robustness: rows(&analysis)?,
        correctness: rows(&analysis)?,
        robustness_summary: rows(&analysis)?,
        generalisation_summary: rows(&analysis)?,
        activity: rows(&analysis)?,
        activity_summary: rows(&analysis)?,
        critical_summary: rows(&analysis)?,
    })
}

/// Compares the runs in folders and writes the tables to `out`. `baseline` names the condition that others
/// are compared with; if it is not set, the one with the least leak.
pub fn compare_folders(
    runs: &[PathBuf],
    baseline: Option<&str>,
    out: &Path,
) -> Result<Vec<Table>, AnalysisError> {
    let records = runs.iter().map(|path| load(path)).collect::<Result<Vec<_>, _>>()?;
    let tables = compare(&records, baseline)?;
    std::fs::create_dir_all(out).map_err(RecordError::io(out, "cannot be written"))?;
    tables.iter().try_for_each(|table| table.write(out))?;
    Ok(tables)
}
