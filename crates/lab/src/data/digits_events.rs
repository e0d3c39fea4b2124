//! `digits-events`: the embedded digits, recorded by a simulated moving event camera ([`super::camera`]).
//!
//! The recordings are computed from the embedded images when the data set is loaded, so event data can be
//! used and tested offline. The split and the sample numbers are those of `digits`.

use super::binning::Binning;
use super::camera::{Camera, LENGTH_US};
use super::{Content, DataError, Dataset, Info, Recordings, Split, digits, own_pool, table};
use rayon::prelude::*;
use std::path::Path;

/// Seed of the sensor's thresholds. All recordings use the same sensor.
const SENSOR: u64 = 0;
/// Side of an embedded digit.
const SIDE: usize = 8;

/// Records the digits; `_folder` is not used.
pub(super) fn load(info: &Info, folder: &Path, name: &str, binning: &Binning) -> Result<Dataset, DataError> {
    let digits = digits::load(table::find("digits")?, folder, name)?;
    let shape = binning.shape(info.shape).map_err(DataError::Request)?;
    let camera = Camera::new(info.shape.height, info.shape.width, SENSOR);
    // All recordings last as long as the camera moves.
    let binning = Binning {
        step_us: binning.step_us.or(Some(LENGTH_US.div_ceil(binning.time_steps as u64))),
        ..*binning
    };
    let pool = own_pool()?;
    let split = |split: Split| -> Result<Split, DataError> {
        let record = |index| camera.record(split.image(index), SIDE);
        let seen: Vec<_> = pool.install(|| (0..split.len()).into_par_iter().map(record).collect());
        let mut made = Recordings::new(binning.time_steps, shape).map_err(DataError::Request)?;
        seen.iter().for_each(|events| binning.add(events, Some(0), shape, &mut made));
        Ok(Split { content: Content::Events(made), ..split })
    };
    Ok(Dataset { shape, ..info.dataset(split(digits.train)?, split(digits.test)?) })
}
