//! What the program writes: standard output, standard error, and the files that a flag names.
//!
//! The macros here replace those of the standard library, which panic if a line cannot be written: a full
//! disk or a closed pipe must not end a training run. The first error is stored, later output is discarded,
//! and the program reports the error when its work is done ([`lost`]). Control characters in untrusted names
//! are shown, not interpreted.
//!
//! A file that a flag names must have the ending of its kind and must not be one of a run's or a study's own
//! files ([`file()`]), and a folder must not be a run or a study ([`folder`]): a mistyped path would destroy
//! trained weights.

use crate::{Outcome, usage};
use leaklab_record::tables::PlanRow;
use leaklab_record::{Row, RunFolder, StudyFolder, table, text};
use std::fmt::Arguments;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Why standard output can no longer be written.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Prints to standard output.
macro_rules! print {
    ($($text:tt)*) => { $crate::output::print(format_args!($($text)*), "") };
}

/// Prints a line to standard output.
macro_rules! println {
    () => { $crate::output::print(format_args!(""), "\n") };
    ($($text:tt)*) => { $crate::output::print(format_args!($($text)*), "\n") };
}

/// Prints a line to standard error.
macro_rules! eprintln {
    ($($text:tt)*) => { $crate::output::complain(format_args!($($text)*)) };
}

/// Prints to standard output, unless that has failed before.
pub fn print(arguments: Arguments, end: &str) {
    if LOST.get().is_some() {
        return;
    }
    let line = format!("{arguments}{end}");
    if let Err(error) = io::stdout().write_all(text::for_terminal(&line).as_bytes()) {
        let _ = LOST.set(error);
    }
}

/// Prints a line to standard error. An error is ignored.
pub fn complain(arguments: Arguments) {
    let line = format!("{arguments}\n");
    let _ = io::stderr().write_all(text::for_terminal(&line).as_bytes());
}

/// Why some of the output was lost, if any was. A reader that needs no more, such as `head`, closes the pipe;
/// this need not be reported.
pub fn lost() -> Option<&'static io::Error> {
    if let Err(error) = io::stdout().flush() {
        let _ = LOST.set(error);
    }
    LOST.get()
}

/// A kind of file that a flag names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// An image.
    Png,
    /// An HTML page.
    Page,
    /// A NIR graph.
    Nir,
    /// NumPy arrays.
    Npz,
    /// Weights.
    Safetensors,
}

impl FileKind {
    /// Its endings; the first is the one that a message gives.
    fn endings(self) -> &'static [&'static str] {
        match self {
            FileKind::Png => &["png"],
            FileKind::Page => &["html", "htm"],
            FileKind::Nir => &["nir", "h5"],
            FileKind::Npz => &["npz"],
            FileKind::Safetensors => &["safetensors"],
        }
    }

    /// The kind in words.
    fn words(self) -> &'static str {
        match self {
            FileKind::Png => "an image",
            FileKind::Page => "a page",
            FileKind::Nir => "a NIR graph",
            FileKind::Npz => "an archive of NumPy arrays",
            FileKind::Safetensors => "a file of weights",
        }
    }

    /// Refuses a path with another ending.
    pub fn check_ending(self, flag: &str, path: &Path) -> Outcome {
        let is = |ending: &&str| path.extension().is_some_and(|found| found.eq_ignore_ascii_case(ending));
        if self.endings().iter().any(is) {
            return Ok(());
        }
        let endings: Vec<String> = self.endings().iter().map(|ending| format!(".{ending}")).collect();
        Err(usage(format!(
            "{flag} {}: the file will be {}; give a name that ends in {}",
            path.display(),
            self.words(),
            endings.join(" or ")
        )))
    }
}

/// Refuses a file with another ending than its kind has, or that is one of a run's or a study's own files.
pub fn file(flag: &str, path: &Path, kind: FileKind) -> Outcome {
    kind.check_ending(flag, path)?;
    let within = path.parent().unwrap_or(Path::new(""));
    let (run, study) = (RunFolder::at(within), StudyFolder::at(within));
    let mut own: Vec<PathBuf> = Vec::new();
    if run.exists() {
        own.extend([run.checkpoint(), run.previous_checkpoint(), run.best()]);
    }
    if run.exists() || study.exists() {
        own.push(study.page());
    }
    // Some file systems do not distinguish upper and lower case.
    let name = |path: &Path| path.file_name().map(|name| name.to_ascii_lowercase());
    if own.iter().any(|own| name(own) == name(path)) {
        let what = if run.exists() { "run" } else { "study" };
        return Err(usage(format!(
            "{flag} {}: this file belongs to the {what} in its folder; choose another name",
            path.display()
        )));
    }
    Ok(())
}

/// Refuses a folder that contains a run or a study, or that is a part of one.
pub fn folder(flag: &str, path: &Path) -> Outcome {
    let place = resolved(path);
    let what = match () {
        () if RunFolder::at(&place).exists() => "the folder of a run",
        () if StudyFolder::at(&place).exists() => "the folder of a study",
        () => return inner(flag, path),
    };
    Err(not_here(flag, path, what))
}

/// Refuses a folder for a new run or study that is within a run or within a study's own folders.
pub fn new_folder(flag: &str, path: &Path) -> Outcome {
    let place = resolved(path);
    match place.parent() {
        Some(parent) if is_begun(&RunFolder::at(parent)) => Err(not_here(flag, path, "within a run")),
        _ => inner(flag, path),
    }
}

/// Refuses a file, and a folder that belongs to a run or a study, or that is within such a one.
fn inner(flag: &str, path: &Path) -> Outcome {
    if path.is_file() {
        return Err(usage(format!("{flag} {}: this is a file; give a folder", path.display())));
    }
    for folder in resolved(path).ancestors() {
        let Some(parent) = folder.parent() else { break };
        let (run, study) = (RunFolder::at(parent), StudyFolder::at(parent));
        let of_study = [study.runs(), study.compare(), study.theory(), study.slurm()];
        if is_begun(&run) && run.analysis() == folder {
            return Err(not_here(flag, path, "the folder of a run's tables"));
        }
        let begun = study.exists() && table::file(study.path(), PlanRow::TABLE).exists();
        if begun && of_study.iter().any(|own| own == folder) {
            return Err(not_here(flag, path, "a folder of a study"));
        }
    }
    Ok(())
}

/// Whether a folder contains a run that was begun: settings alone may be a file that a user wrote, beside
/// which there may be folders of any name.
fn is_begun(run: &RunFolder) -> bool {
    run.exists() && [run.metrics(), run.checkpoint(), run.log()].iter().any(|file| file.exists())
}

fn not_here(flag: &str, path: &Path, what: &str) -> Box<dyn std::error::Error> {
    usage(format!("{flag} {}: this is {what}; choose another folder", path.display()))
}

/// An absolute path without links and dots, as far as it exists.
pub fn resolved(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let known = |known: &Path| Some(known.canonicalize().ok()?.join(path.strip_prefix(known).ok()?));
    path.ancestors().find_map(known).unwrap_or_else(|| path.clone())
}

/// A path as text, for files that cannot hold any other.
pub fn path_text(path: &Path) -> Result<String, Box<dyn std::error::Error>> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        usage(format!("{}: the path must be text in UTF-8 here; choose another name", path.display()))
    })
}
