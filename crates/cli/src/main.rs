//! The `leaklab` program: flags, progress, exit codes. Each subcommand has its own file; the work is in the
//! libraries.
#![forbid(unsafe_code)]

// Declared first, so that all other modules use its macros.
#[macro_use]
mod output;

mod advise;
mod analyse;
mod bench;
mod completions;
mod data;
mod evaluate;
mod export;
mod flags;
mod folder;
mod images;
mod import;
mod interrupt;
mod man;
mod network;
mod progress;
mod report;
mod schema;
mod selftest;
mod study;
mod theory;
mod train;

use clap::{Parser, Subcommand};
use leaklab_lab::analysis::AnalysisError;
use std::io::ErrorKind;
use std::process::ExitCode;

/// Train spiking neural networks with and without leak, and find out what leak does.
#[derive(Parser)]
#[command(name = "leaklab", version, propagate_version = true, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Study(study::Arguments),
    Report(report::Arguments),
    Train(train::Arguments),
    Evaluate(evaluate::Arguments),
    Analyse(analyse::Arguments),
    Advise(advise::Arguments),
    Data(data::Arguments),
    Theory(theory::Arguments),
    Network(network::Arguments),
    Export(export::Arguments),
    Import(import::Arguments),
    Bench(bench::Arguments),
    Selftest(selftest::Arguments),
    Schema(schema::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

/// What a subcommand returns. The error's text is one clear sentence for the user.
pub(crate) type Outcome = Result<(), Box<dyn std::error::Error>>;

/// An error in the request, not in the work: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Usage(String);

/// Work that was stopped and that the same command continues: exit code 75, `EX_TEMPFAIL` of `sysexits.h`, by
/// which batch scripts recognise a job to be queued again.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Stopped(String);

/// Exit code of work that was stopped and that the same command continues.
pub(crate) const STOPPED: u8 = 75;

/// An error of work that was stopped and that the same command continues.
pub(crate) fn stopped(sentence: impl std::fmt::Display) -> Box<dyn std::error::Error> {
    Box::new(Stopped(sentence.to_string()))
}

/// An error of wrong usage.
pub(crate) fn usage(sentence: impl std::fmt::Display) -> Box<dyn std::error::Error> {
    Box::new(Usage(sentence.to_string()))
}

/// The exit code of an error.
pub(crate) fn exit_code(error: &(dyn std::error::Error + 'static)) -> u8 {
    match () {
        () if error.is::<Usage>() => 2,
        () if error.is::<Stopped>() => STOPPED,
        () if matches!(error.downcast_ref(), Some(AnalysisError::Interrupted)) => STOPPED,
        () => 1,
    }
}

fn main() -> ExitCode {
    interrupt::outlive_file_limit();
    let outcome = match Arguments::parse().command {
        Command::Study(arguments) => study::run(arguments),
        Command::Report(arguments) => report::run(arguments),
        Command::Train(arguments) => train::run(arguments),
        Command::Evaluate(arguments) => evaluate::run(arguments),
        Command::Analyse(arguments) => analyse::run(arguments),
        Command::Advise(arguments) => advise::run(arguments),
        Command::Data(arguments) => data::run(arguments),
        Command::Theory(arguments) => theory::run(arguments),
        Command::Network(arguments) => network::run(arguments),
        Command::Export(arguments) => export::run(arguments),
        Command::Import(arguments) => import::run(arguments),
        Command::Bench(arguments) => bench::run(arguments),
        Command::Selftest(arguments) => selftest::run(arguments),
        Command::Schema(arguments) => schema::run(arguments),
        Command::Completions(arguments) => completions::run(arguments),
        Command::Man(arguments) => man::run(arguments),
    };
    match outcome {
        Ok(()) => match output::lost() {
            None => ExitCode::SUCCESS,
            Some(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::FAILURE,
            Some(error) => {
                eprintln!(
                    "leaklab: standard output cannot be written: {error}; the work was completed anyway"
                );
                ExitCode::FAILURE
            }
        },
        Err(error) => {
            eprintln!("leaklab: {error}");
            ExitCode::from(exit_code(&*error))
        }
    }
}
