//! `leaklab report`.

use crate::Outcome;
use crate::output::FileKind;
use crate::study::refused;
use leaklab_lab::study::check_unedited;
use leaklab_record::StudyFolder;
use leaklab_report::study::records::Study;
use std::path::PathBuf;

/// Write the page of a study, finished or not, or of a single run.
#[derive(clap::Args)]
pub struct Arguments {
    /// Folder of the study or run.
    folder: PathBuf,
    /// The page's file; report.html in the folder if not given.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Runs the subcommand.
pub fn run(arguments: Arguments) -> Outcome {
    // The page of a folder may be written again, also from a copy of the folder.
    arguments.out.iter().try_for_each(|out| FileKind::Page.check_ending("--out", out))?;
    let out = arguments.out.unwrap_or_else(|| arguments.folder.join("report.html"));
    // First what the page itself refuses, because it names the file.
    let study = Study::read(&arguments.folder)?;
    check_unedited(&StudyFolder::at(&arguments.folder)).map_err(refused)?;
    leaklab_report::study::write_page(&study, &out, None)?;
    println!("{}", out.display());
    Ok(())
}
