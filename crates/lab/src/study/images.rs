//! Whether runs that are marked as complete were measured with as many test images as their study prescribes:
//! the tables of a run may have been made again with others since.

use crate::analysis::Analysis;
use crate::analysis::compare::read;
use crate::config::RunConfig;
use crate::run::load_dataset;
use leaklab_record::RunFolder;

/// The test images that a study can use.
#[derive(Debug, Clone, Copy)]
pub(super) struct TestImages {
    /// Their number; `None` if the data set cannot be read on this machine.
    pub count: Option<u64>,
}

impl TestImages {
    /// Those of a run's data set.
    pub fn of(config: &RunConfig) -> Self {
        TestImages { count: load_dataset(config).ok().map(|dataset| dataset.test.len() as u64) }
    }

    /// Whether a run is marked as complete, and its records are as the study needs them.
    pub fn is_done(self, run: &RunConfig, folder: &RunFolder) -> bool {
        folder.complete().is_file() && self.flaw(run, folder).is_none()
    }

    /// Why a run that is marked as complete cannot be compared.
    pub fn flaw(self, run: &RunConfig, folder: &RunFolder) -> Option<String> {
        let record = match read(folder) {
            Ok(record) => record,
            Err(error) => return Some(error.to_string()),
        };
        let most = run.analysis_images.map(|n| n as u64);
        let planned = self.count.map(|count| most.map_or(count, |most| most.min(count)));
        Analysis::ALL.into_iter().find_map(|analysis| {
            let images = record.images(analysis)?;
            // Without the data, it is not known whether they are fewer than the study prescribes.
            let other = planned.map_or(most.is_some_and(|most| images > most), |planned| images != planned);
            let prescribed = planned.or(most).unwrap_or_default();
            other.then(|| {
                format!(
                    "{analysis} was measured with {images} test samples, and the study prescribes \
                     {prescribed}; `leaklab study --out` with its folder measures it again"
                )
            })
        })
    }
}
