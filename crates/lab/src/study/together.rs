//! The shared results of a study's runs: the theory's tables, the comparison, and the mechanism analysis
//! (where robustness comes from). They are written by one process at a time, the one that holds the study's
//! lock.

use super::StudyError;
use super::images::TestImages;
use super::work::{Event, Work};
use crate::analysis::compare::{CompareError, compare_folders, is_complete};
use crate::analysis::{Advance, AnalysisError, mechanism};
use crate::theory_tables;
use crate::train::{self, Control};
use leaklab_record::{RecordError, RunLock, atomic, file, lines};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Work<'_> {
    /// The folders of all runs that are marked as complete. They are sorted, because the tables must not
    /// depend on the order in which runs finish.
    fn complete(&self) -> Vec<PathBuf> {
        let folders = self.config.runs().into_iter().map(|run| self.folder.run(&run.key()));
        let complete = folders.filter(|folder| folder.complete().is_file());
        let mut paths: Vec<PathBuf> = complete.map(|folder| folder.path().to_owned()).collect();
        paths.sort();
        paths
    }

    /// Writes the comparison of the runs that are complete so far, and records the time that analyses took.
    /// With `images`, only runs that were measured with as many are compared.
    pub(super) fn compare(
        &self,
        analyses: Option<Duration>,
        images: Option<TestImages>,
    ) -> Result<(), StudyError> {
        let lock = self.lock()?;
        if let Some(analyses) = analyses {
            self.spent("analyses", analyses)?;
        }
        self.remove_mechanism(&lock)?;
        // Another lane may be measuring a run again whose tables were lost.
        let folders = self.config.runs().into_iter().map(|run| (self.folder.run(&run.key()), run));
        let done = folders.filter(|(folder, run)| match images {
            Some(images) => images.is_done(run, folder),
            None => is_complete(folder),
        });
        let mut runs: Vec<PathBuf> = done.map(|(folder, _)| folder.path().to_owned()).collect();
        runs.sort();
        self.write_comparison(&lock, runs.into_iter())
    }

    /// Removes the tables of the mechanism analysis. They describe the runs that were complete when they were
    /// made. The measurements are stored in the runs, so making the tables again is quick.
    fn remove_mechanism(&self, lock: &RunLock) -> Result<(), StudyError> {
        lock.check()?;
        for (path, _) in file::entries(&self.folder.compare())? {
            let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            if mechanism::TABLES.contains(&stem.as_str()) {
                std::fs::remove_file(&path).map_err(RecordError::io(&path, "cannot be removed"))?;
            }
        }
        Ok(())
    }

    fn write_comparison(
        &self,
        lock: &RunLock,
        runs: impl Iterator<Item = PathBuf>,
    ) -> Result<(), StudyError> {
        lock.check()?;
        let runs: Vec<PathBuf> = runs.collect();
        if runs.is_empty() {
            return Ok(());
        }
        match compare_folders(&runs, self.config.baseline.as_deref(), &self.folder.compare()) {
            Ok(_) => {
                self.tell(&Event::Compared { runs: runs.len() });
                Ok(())
            }
            // No run of the baseline is complete yet: there is nothing to compare with.
            Err(AnalysisError::Compare(CompareError::NoBaseline { .. })) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the last comparison, and the mechanism analysis if the study includes it.
    pub(super) fn conclude(&self, threads: usize) -> Result<(), StudyError> {
        let lock = self.lock()?;
        self.write_comparison(&lock, self.complete().into_iter())?;
        if self.config.base.mechanism { self.mechanism(threads, &lock) } else { self.remove_mechanism(&lock) }
    }

    /// Runs the mechanism analysis on all threads. A study whose runs do not allow it has none.
    fn mechanism(&self, threads: usize, lock: &RunLock) -> Result<(), StudyError> {
        let begun = Instant::now();
        let pool = Arc::new(train::threads(Some(threads))?);
        let options = self.analysis_options(self.config.base.data_dir.clone(), pool);
        let (runs, out) = (self.complete(), self.folder.compare());
        // This may take hours, and the tables are written at the end. So the lock is checked again and again.
        let mut lost = None;
        let mut report = |advance: &Advance| {
            lost = lock.check().err();
            lost.is_none() && self.tell(&Event::Mechanism(advance)) == Control::Continue
        };
        match mechanism::study(&runs, self.config.baseline.as_deref(), &out, &options, &mut report) {
            Ok(_) => {}
            Err(AnalysisError::Interrupted) => {
                return Err(lost.map_or(StudyError::Interrupted, StudyError::from));
            }
            Err(AnalysisError::Mechanism(error)) => {
                self.tell(&Event::NoMechanism(&error));
                return self.remove_mechanism(lock);
            }
            Err(error) => return Err(error.into()),
        }
        lock.check()?;
        self.spent("mechanism", begun.elapsed())?;
        self.tell(&Event::Compared { runs: runs.len() });
        Ok(())
    }

    /// Writes the theory's tables, once: they depend on nothing in the study. If one is lost or damaged,
    /// all are written again.
    pub(super) fn theory(&self) -> Result<(), StudyError> {
        let lock = self.lock()?;
        let (folder, mark) = (self.folder.theory(), self.folder.theory_complete());
        let begun = Instant::now();
        if !mark.is_file() || !theory_tables::are_readable(&folder) {
            let mut curve = 0;
            let mut go_on = || {
                curve += 1;
                self.tell(&Event::TheoryCurve { curve: curve - 1 }) == Control::Continue
            };
            let simulation = Some(theory_tables::Simulation::default());
            let tables = theory_tables::tables_while(simulation, &mut go_on);
            let tables = tables.ok_or(StudyError::Interrupted)?;
            lock.check()?;
            std::fs::create_dir_all(&folder).map_err(RecordError::io(&folder, "cannot be written"))?;
            for table in tables {
                table.write(&folder)?;
            }
            atomic::write(&mark, b"").map_err(RecordError::io(&mark, "cannot be written"))?;
            self.spent("theory", begun.elapsed())?;
        }
        self.tell(&Event::Theory);
        Ok(())
    }

    /// Records the time of a piece of work, separately from everything that must be reproducible. The caller
    /// holds the study's lock, because two machines cannot append to one file over NFS.
    pub(super) fn spent(&self, what: &str, time: Duration) -> Result<(), StudyError> {
        let line = serde_json::json!({ "what": what, "seconds": time.as_secs_f64() });
        lines::append(&self.folder.times(), &line)?;
        Ok(())
    }
}
