//! The folder in which data sets are stored: `--data-dir`, else `LEAKLAB_DATA`, else the platform's cache
//! folder.

use super::DataError;
use leaklab_record::{RunFolder, StudyFolder};
use std::path::{Path, PathBuf};

/// Name of the environment variable that sets the folder.
pub const VARIABLE: &str = "LEAKLAB_DATA";

/// The folder of data sets: `given`, or that of the environment variable, or the platform's default.
pub fn folder(given: Option<&Path>) -> Result<PathBuf, DataError> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    choose(given, variable).ok_or_else(|| {
        DataError::Request(format!(
            "there is no home folder in which data sets can be stored: give --data-dir or set {VARIABLE}"
        ))
    })
}

/// Name of the file with `npz` and `events` data: `wine.npz` for `npz:wine`, else `data.npz`; `None` for
/// other data sets.
pub fn file_name(dataset: &str) -> Option<String> {
    let (kind, name) = dataset.split_once(':').unwrap_or((dataset, "data"));
    ["npz", "events"].contains(&kind).then(|| format!("{name}.npz"))
}

/// Path of the user's own data: the given file or folder or, for `npz:NAME`, `NAME.npz` in the folder of data
/// sets.
pub(super) fn own(dataset: &str, given: Option<&Path>) -> Result<PathBuf, DataError> {
    let file = file_name(dataset);
    match (given, file) {
        (Some(path), Some(file)) if path.is_dir() => Ok(path.join(file)),
        (Some(path), _) => Ok(path.to_owned()),
        (None, Some(file)) if dataset.contains(':') => Ok(folder(None)?.join(file)),
        (None, _) => Err(DataError::Request(format!(
            "data set '{dataset}' is your own: give its path with --data-dir"
        ))),
    }
}

/// The data file in the folder of a run or of its study, if there is one.
pub fn beside(dataset: &str, run: &RunFolder) -> Option<PathBuf> {
    let file = file_name(dataset)?;
    let study = run.path().parent().and_then(Path::parent);
    let study = study.filter(|folder| StudyFolder::at(*folder).exists());
    [Some(run.path()), study]
        .into_iter()
        .flatten()
        .map(|folder| folder.join(&file))
        .find(|path| path.is_file())
}

/// Chooses the folder; the environment is an argument.
fn choose(given: Option<&Path>, variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let cache = || {
        if cfg!(windows) {
            variable("LOCALAPPDATA")
        } else if cfg!(target_os = "macos") {
            variable("HOME").map(|home| home.join("Library/Caches"))
        } else {
            let absolute = variable("XDG_CACHE_HOME").filter(|path| path.is_absolute());
            absolute.or_else(|| variable("HOME").map(|home| home.join(".cache")))
        }
    };
    given
        .map(Path::to_owned)
        .or_else(|| variable(VARIABLE))
        .or_else(|| cache().map(|cache| cache.join("leaklab").join("data")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_argument_overrides_the_environment() {
        let all = |name: &str| Some(PathBuf::from("/").join(name));
        assert_eq!(choose(Some(Path::new("here")), all), Some("here".into()));
        assert_eq!(choose(None, all), Some("/LEAKLAB_DATA".into()));
        assert_eq!(choose(None, |_| None), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_default_on_linux_is_the_cache_folder() {
        let home = |name: &str| (name == "HOME").then(|| "/home/ada".into());
        assert_eq!(choose(None, home), Some("/home/ada/.cache/leaklab/data".into()));
        let both = |name: &str| match name {
            "HOME" => Some("/home/ada".into()),
            "XDG_CACHE_HOME" => Some("/fast".into()),
            _ => None,
        };
        assert_eq!(choose(None, both), Some("/fast/leaklab/data".into()));
    }
}
