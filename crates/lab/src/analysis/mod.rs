//! Every measurement of the paper, on any trained run.
//!
//! An analysis turns passes over the test images ([`pass`]) into tables in the run's `analysis` folder;
//! `compare` turns the tables of several runs into those of a study. To add an analysis, write a file here
//! and add a variant of [`Analysis`]; compiler errors point to the rest.

pub mod activity;
pub mod claims;
pub mod compare;
pub mod contrast;
pub mod energy;
pub mod example;
pub mod generalisation;
pub mod mechanism;
pub mod neurobench;
pub mod pass;
pub mod periodogram;
pub mod published;
pub mod robustness;
pub mod spectrum;
pub mod statistics;
pub mod stimulus;

mod analyst;
mod store;
mod surrogate;

pub use analyst::{Analyst, Options};

use crate::run::RunError;
use leaklab_engine::noise::NoiseError;
use leaklab_engine::{InputError, NetworkError};
use leaklab_record::tables::*;
use leaklab_record::{RecordError, Row, Table, TableError};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The analyses of a single run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Analysis {
    /// Accuracy against severity of noise.
    Robustness,
    /// Test error against training error.
    Generalisation,
    /// Spikes, synaptic operations, weighted inputs.
    Activity,
    /// Energy by named models.
    Energy,
    /// Spectra and critical frequencies.
    Spectrum,
    /// Raster and membrane traces of one image.
    Example,
}

impl Analysis {
    /// All of them, in the order in which `all` runs them.
    pub const ALL: [Analysis; 6] = [
        Analysis::Generalisation,
        Analysis::Activity,
        Analysis::Energy,
        Analysis::Spectrum,
        Analysis::Robustness,
        Analysis::Example,
    ];

    /// The tables that it writes.
    pub fn tables(self) -> &'static [&'static str] {
        match self {
            Analysis::Robustness => {
                &[RobustnessRow::TABLE, CorrectnessRow::TABLE, RobustnessSummaryRow::TABLE]
            }
            Analysis::Generalisation => &[GeneralisationRow::TABLE, GeneralisationSummaryRow::TABLE],
            Analysis::Activity => &[ActivityRow::TABLE, ActivitySummaryRow::TABLE],
            Analysis::Energy => &[EnergyRow::TABLE],
            Analysis::Spectrum => &[
                InputSpectrumRow::TABLE,
                InputAmplitudeRow::TABLE,
                CriticalRow::TABLE,
                CriticalSummaryRow::TABLE,
                HiddenSpectrumRow::TABLE,
            ],
            Analysis::Example => &[RasterRow::TABLE, MembraneRow::TABLE, ImageRow::TABLE],
        }
    }

    /// The analysis that writes a table of that name.
    pub fn of_table(table: &str) -> Option<Self> {
        Analysis::ALL.into_iter().find(|analysis| analysis.tables().contains(&table))
    }

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Analysis::Robustness => "robustness",
            Analysis::Generalisation => "generalisation",
            Analysis::Activity => "activity",
            Analysis::Energy => "energy",
            Analysis::Spectrum => "spectrum",
            Analysis::Example => "example",
        }
    }
}

impl fmt::Display for Analysis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// There is no analysis of that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "analysis '{0}' is not one of robustness, generalisation, activity, energy, spectrum, example, \
     mechanism, all"
)]
pub struct UnknownAnalysis(pub String);

impl FromStr for Analysis {
    type Err = UnknownAnalysis;

    fn from_str(name: &str) -> Result<Self, UnknownAnalysis> {
        let found = Analysis::ALL.into_iter().find(|analysis| analysis.name() == name);
        found.ok_or_else(|| UnknownAnalysis(name.to_owned()))
    }
}

/// Progress of an analysis, in images shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advance {
    /// The stimulus under which the images are shown.
    pub stimulus: String,
    /// Images shown so far. Stored passes are not counted; stored cells of [`mechanism`] are.
    pub done: u64,
    /// Images to be shown in total.
    pub total: u64,
}

/// Reports progress to a function that returns whether to continue.
pub struct Progress<'a> {
    report: &'a mut dyn FnMut(&Advance) -> bool,
    advance: Advance,
}

impl<'a> Progress<'a> {
    fn new(report: &'a mut dyn FnMut(&Advance) -> bool, total: u64) -> Self {
        Progress { report, advance: Advance { stimulus: String::new(), done: 0, total } }
    }

    fn advance(&mut self, stimulus: &str, images: u64) -> Result<(), AnalysisError> {
        self.advance.stimulus.clear();
        self.advance.stimulus.push_str(stimulus);
        self.advance.done += images;
        if (self.report)(&self.advance) { Ok(()) } else { Err(AnalysisError::Interrupted) }
    }
}

/// Why an analysis could not be done.
#[derive(Debug, thiserror::Error)]
pub enum AnalysisError {
    /// The run or its data set cannot be used.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A file of the run cannot be read or written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A table cannot be read or written.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The weights cannot be used.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// An image cannot be shown.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A noise of the settings does not exist.
    #[error(transparent)]
    Noise(#[from] NoiseError),
    /// The runs cannot be compared.
    #[error(transparent)]
    Compare(#[from] compare::CompareError),
    /// The runs do not allow an analysis of where robustness comes from.
    #[error(transparent)]
    Mechanism(#[from] mechanism::MechanismError),
    /// The run has no finished epoch.
    #[error(
        "{}: no epoch has been finished, so there is nothing to analyse; continue the training with \
         `leaklab train --resume {}`",
        path.display(), path.display()
    )]
    NoEpoch {
        /// The run.
        path: PathBuf,
    },
    /// A run is marked as complete, and a file that every complete run has is missing.
    #[error(
        "{}: missing, although the run is marked as complete; put it back, or run the study again, which \
         makes missing tables again",
        path.display()
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The data set has no test images.
    #[error("data set {0} has no test samples to analyse")]
    NoImages(String),
    /// The caller asked to stop.
    #[error("stopped; finished work is stored, and the same command continues from there")]
    Interrupted,
}

/// Runs analyses of a run, in the given order, and writes their tables to its `analysis` folder. `report`
/// receives the number of images shown and returns whether to continue.
pub fn analyse(
    run: &Path,
    analyses: &[Analysis],
    options: &Options,
    report: &mut dyn FnMut(&Advance) -> bool,
) -> Result<Vec<Table>, AnalysisError> {
    let analyst = Analyst::open(run, options)?;
    let mut wanted = Vec::new();
    for analysis in analyses {
        for pass in analyst.passes(*analysis) {
            if !wanted.contains(&pass) {
                wanted.push(pass);
            }
        }
    }
    let missing = wanted.iter().filter(|&&pass| analyst.kept(pass).is_none()).count();
    let mut progress = Progress::new(report, (missing * analyst.dataset.test.len()) as u64);
    let folder = analyst.folder();
    std::fs::create_dir_all(&folder).map_err(RecordError::io(&folder, "cannot be written"))?;
    let mut tables = Vec::new();
    for analysis in analyses {
        let mut made = match analysis {
            Analysis::Robustness => robustness::tables(&analyst, &mut progress)?,
            Analysis::Generalisation => {
                generalisation::tables(&analyst.epochs, analyst.run.config.last_drop())
            }
            Analysis::Activity => activity::tables(&analyst, &mut progress)?,
            Analysis::Energy => activity::energy_tables(&analyst, &mut progress)?,
            Analysis::Spectrum => spectrum::tables(&analyst, &mut progress)?,
            Analysis::Example => example::tables(&analyst)?,
        };
        for table in &mut made {
            table.notes.extend(analyst.notes());
            table.origin = Some(analyst.origin());
            table.write(&folder)?;
        }
        tables.append(&mut made);
    }
    Ok(tables)
}
