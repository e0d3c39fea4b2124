//! Folders that are given in place of a run's folder: the message says what they are and what to give.

use crate::{Outcome, usage};
use leaklab_record::{RunFolder, StudyFolder};
use std::path::Path;

/// Refuses the folder of a study or of an exported model. Other folders that are not runs are refused when
/// they are opened.
pub fn check_run(path: &Path) -> Outcome {
    if RunFolder::at(path).exists() {
        return Ok(());
    }
    let (study, shown) = (StudyFolder::at(path), path.display());
    if study.exists() {
        let runs = study.runs();
        return Err(usage(format!(
            "{shown}: this is a study; give the folder of one of its runs, which are in {}",
            runs.display()
        )));
    }
    if ["model.safetensors", "config.json"].iter().all(|name| path.join(name).is_file()) {
        return Err(usage(format!(
            "{shown}: this is an exported model, not a run: it does not name its test images; write it with \
             `leaklab export {shown} --nir net.nir` and give the data set with `leaklab import net.nir \
             --evaluate NAME`, or use leaklab.evaluate in Python"
        )));
    }
    Ok(())
}
