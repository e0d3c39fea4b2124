//! Reads what a comparison needs from run folders, and checks that it belongs together: settings, metrics and
//! tables are those of the run's checkpoint, if it has one, and a run that is marked as complete lacks
//! nothing.

use super::{RunRecord, compare};
use crate::analysis::AnalysisError;
use crate::run::{header_of, read_config};
use leaklab_record::health::{self, Trouble};
use leaklab_record::tables::{
    ActivityRow, ActivitySummaryRow, CorrectnessRow, CriticalSummaryRow, GeneralisationSummaryRow,
    RobustnessRow, RobustnessSummaryRow,
};
use leaklab_record::{Header, RecordError, Row, Rows, RunFolder, Table, TableError, metrics, table};
use std::path::{Path, PathBuf};

/// Tables of every complete run.
const OF_ALL: [&str; 1] = [GeneralisationSummaryRow::TABLE];
/// Tables of every complete run except for probes.
const OF_COMPARED: [&str; 6] = [
    RobustnessRow::TABLE,
    CorrectnessRow::TABLE,
    RobustnessSummaryRow::TABLE,
    ActivityRow::TABLE,
    ActivitySummaryRow::TABLE,
    CriticalSummaryRow::TABLE,
];

/// Reads a run's settings, metrics, notices and tables.
pub fn load(path: &Path) -> Result<RunRecord, AnalysisError> {
    read(&RunFolder::open(path)?)
}

/// Whether a run is marked as complete, and its records are as a comparison needs them. A run that is trained
/// or measured again is not complete until that is done.
pub(crate) fn is_complete(folder: &RunFolder) -> bool {
    folder.complete().is_file() && read(folder).is_ok()
}

pub(crate) fn read(folder: &RunFolder) -> Result<RunRecord, AnalysisError> {
    fn rows<R: Row>(folder: &RunFolder, header: Option<&Header>) -> Result<Vec<R>, TableError> {
        Ok(Rows::of_run(folder, header)?.map_or_else(Vec::new, |table: Rows<R>| table.rows))
    }
    let path = folder.path();
    let name =
        path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
    let config = read_config(folder)?;
    // Before the metrics: while a run is trained, those of an epoch are written first.
    let header = header_of(&config, folder)?;
    let header = header.as_ref();
    let trained = header.map_or(0, |header| header.position.epoch);
    let activity: Option<Rows<ActivityRow>> = Rows::of_run(folder, header)?;
    let origin = activity.as_ref().and_then(|table| table.origin.as_ref());
    let run = RunRecord {
        name,
        config,
        epochs: metrics::read_through(&folder.metrics(), trained)?,
        notices: health::read(&folder.health())?,
        robustness: rows(folder, header)?,
        correctness: rows(folder, header)?,
        robustness_summary: rows(folder, header)?,
        generalisation_summary: rows(folder, header)?,
        activity_images: origin.map(|origin| origin.images),
        activity: activity.map_or_else(Vec::new, |table| table.rows),
        activity_summary: rows(folder, header)?,
        critical_summary: rows(folder, header)?,
    };
    check_complete(&run, folder)?;
    Ok(run)
}

/// Refuses a run that is marked as complete and lacks a file. A run that diverged in its first epoch has
/// nothing to measure.
fn check_complete(run: &RunRecord, folder: &RunFolder) -> Result<(), AnalysisError> {
    let diverged = |trouble| matches!(trouble, Trouble::Diverged | Trouble::NonFinite);
    let nothing = run.epochs.is_empty() && run.notices.iter().any(|notice| diverged(notice.kind));
    if nothing || !folder.complete().is_file() {
        return Ok(());
    }
    let compared: &[&str] = if run.config.probe { &[] } else { &OF_COMPARED };
    let tables = OF_ALL.iter().chain(compared).map(|table| table::file(&folder.analysis(), table));
    let metrics = Some(folder.metrics()).filter(|_| run.epochs.is_empty());
    match metrics.into_iter().chain(tables.filter(|path| !path.exists())).next() {
        Some(path) => Err(AnalysisError::Missing { path }),
        None => Ok(()),
    }
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
