//! `leaklab analyse`.

use crate::images::Images;
use crate::interrupt::Interrupt;
use crate::{Outcome, flags, folder, output};
use leaklab_engine::Isa;
use leaklab_lab::analysis::compare::compare_folders;
use leaklab_lab::analysis::mechanism::sentences;
use leaklab_lab::analysis::{Advance, Analysis, Options, analyse, mechanism};
use leaklab_lab::run::{TrainedRun, Weights};
use leaklab_lab::study::{Members, members};
use leaklab_lab::train::threads;
use leaklab_record::tables::WhyRow;
use leaklab_record::{Cell, Column, NoiseKey, Rows, RunFolder, StudyFolder, Table};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Tables with more rows are for figures, and are not printed.
const SHOWN_ROWS: usize = 60;

/// Measure a trained run, or compare several.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Folder of a trained run, or, for `mechanism` and `compare`, of a study.
    #[arg(required = true)]
    run: Option<PathBuf>,
    /// robustness, generalisation, activity, energy, spectrum, example, or all; or mechanism: where
    /// robustness comes from; or, for a study, compare.
    #[arg(required = true)]
    analysis: Vec<String>,
    /// Use this many of the run's test images, class-balanced; if there are fewer, all of them.
    #[arg(long, value_name = "N", value_parser = flags::images, allow_negative_numbers = true)]
    images: Option<usize>,
    /// Noises to test in addition to those in the run's settings, such as deletion/channel,jitter/channel.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    noise: Vec<String>,
    /// Use the weights of the epoch with the highest test accuracy instead of the last ones.
    #[arg(long)]
    best: bool,
    #[command(flatten)]
    leak: flags::LeakFlags,
    /// Folder with the data sets, instead of the one in the run's settings.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Number of threads; results do not depend on it.
    #[arg(long, value_name = "N", value_parser = flags::threads, allow_negative_numbers = true)]
    threads: Option<usize>,
    #[arg(long, value_name = "SET", help = flags::ISA)]
    isa: Option<Isa>,
    /// Print the tables as one JSON list.
    #[arg(long)]
    json: bool,
    /// Print neither progress nor tables.
    #[arg(long)]
    quiet: bool,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Compare several runs (conditions x seeds) and judge the paper's claims.
    Compare(CompareArguments),
}

#[derive(clap::Args)]
struct CompareArguments {
    /// Folders of analysed runs, or of a study.
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// Folder for the tables; if not given, `compare` next to the runs' folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Name of the baseline, with which the other conditions are compared; if not given, the condition with
    /// the least leak.
    #[arg(long, value_name = "CONDITION")]
    baseline: Option<String>,
    /// Print the tables as one JSON list.
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(arguments: Arguments) -> Outcome {
    match (arguments.command, arguments.run) {
        (Some(Command::Compare(arguments)), _) => run_compare(arguments),
        (None, Some(run)) if arguments.analysis == ["compare"] => {
            let of_runs = [
                ("--images", arguments.images.is_some()),
                ("--noise", !arguments.noise.is_empty()),
                ("--best", arguments.best),
                ("--tau", !arguments.leak.change().map_err(crate::usage)?.is_empty()),
            ];
            if let Some((flag, _)) = of_runs.iter().find(|(_, given)| *given) {
                let reason =
                    "compare reads the tables of analysed runs; give this flag when a run is analysed";
                return Err(crate::usage(format!("{flag}: {reason}")));
            }
            let (runs, json) = (vec![run], arguments.json);
            run_compare(CompareArguments { runs, out: None, baseline: None, json })
        }
        (None, Some(run)) => {
            if let Some(name) = run.to_str().filter(|name| is_analysis(name) && !run.exists()) {
                let folder = arguments.analysis.join(" ");
                return Err(crate::usage(format!(
                    "{name} is an analysis, but the folder comes first: leaklab analyse {folder} {name}"
                )));
            }
            let mut analyses = Vec::new();
            let mut why = false;
            for name in &arguments.analysis {
                match name.as_str() {
                    "all" => analyses.extend(Analysis::ALL),
                    "mechanism" => why = true,
                    name => analyses.push(name.parse::<Analysis>().map_err(crate::usage)?),
                }
            }
            let options = Options {
                images: arguments.images,
                noise: noises(&arguments.noise)?,
                data_dir: arguments.data_dir,
                weights: Weights::of(arguments.best),
                leak: arguments.leak.change().map_err(crate::usage)?,
                pool: Arc::new(threads(arguments.threads)?),
                isa: arguments.isa.unwrap_or_else(Isa::best),
            };
            let is_study = !RunFolder::at(&run).exists() && StudyFolder::at(&run).exists();
            if is_study && !analyses.is_empty() {
                let only =
                    "a study as a whole has mechanism and compare only; give the folder of one of its runs";
                return Err(crate::usage(format!("{}: {only}", run.display())));
            }
            if why && !arguments.leak.change().map_err(crate::usage)?.is_empty() {
                return Err(crate::usage(
                    "mechanism tries every leak itself; omit --tau, --layer-tau and --readout-tau",
                ));
            }
            let study = StudyFolder::at(&run);
            let folder = if is_study {
                study.compare()
            } else {
                folder::check_run(&run)?;
                let mut opened = TrainedRun::open(&run, options.weights)?;
                if let Some(notice) = &opened.notice {
                    eprintln!("warning: {notice}");
                }
                opened.change_leak(&options.leak)?;
                opened.analysis_folder()
            };
            let mut images = Images::new(arguments.quiet);
            let interrupt = Interrupt::listen("finishing the current images; finished passes are stored");
            let mut report = |advance: &Advance| {
                images.show(&advance.stimulus, advance.done, advance.total);
                !interrupt.asked()
            };
            let mut work = || -> Result<Vec<Table>, Box<dyn std::error::Error>> {
                let mut tables = Vec::new();
                if !analyses.is_empty() {
                    tables.extend(analyse(&run, &analyses, &options, &mut report)?);
                }
                if why && is_study {
                    let Members { runs, baseline } = members(std::slice::from_ref(&run))?;
                    let _lock = study.lock()?;
                    tables.extend(mechanism::study(
                        &runs,
                        baseline.as_deref(),
                        &folder,
                        &options,
                        &mut report,
                    )?);
                } else if why {
                    tables.extend(mechanism::run(&run, &options, &mut report)?);
                }
                Ok(tables)
            };
            let tables = work();
            images.clear();
            print(&tables?, arguments.json, arguments.quiet, &folder)
        }
        (None, None) => Err(crate::usage("give a run folder and an analysis")),
    }
}

/// Whether a word names an analysis.
fn is_analysis(word: &str) -> bool {
    ["all", "mechanism"].contains(&word) || word.parse::<Analysis>().is_ok()
}

/// The noises that `--noise` names.
fn noises(names: &[String]) -> Result<Vec<NoiseKey>, Box<dyn std::error::Error>> {
    let refused = |name: &String, e: String| crate::usage(format!("--noise {name}: {e}"));
    names.iter().map(|name| name.parse().map_err(|e| refused(name, e))).collect()
}

fn run_compare(arguments: CompareArguments) -> Outcome {
    let Members { runs, baseline } = members(&arguments.runs)?;
    let out = match arguments.out {
        Some(out) => {
            // Tables in a study's folder are shown on its page, so they must be those of the study.
            let own = match arguments.runs.as_slice() {
                [folder] if StudyFolder::at(folder).exists() => Some(StudyFolder::at(folder).compare()),
                _ => None,
            };
            if own.is_none_or(|own| output::resolved(&own) != output::resolved(&out)) {
                output::folder("--out", &out)?;
            }
            out
        }
        None => match arguments.runs.as_slice() {
            // STUDY/runs/RUN has its tables in STUDY/compare. A part of a study's runs must not replace them.
            [folder] if !RunFolder::at(folder).exists() => StudyFolder::at(folder).compare(),
            _ => {
                return Err(crate::usage(
                    "give the folder for the tables with --out DIR, or the folder of a whole study instead \
                     of its runs",
                ));
            }
        },
    };
    let baseline = arguments.baseline.or(baseline);
    let mut tables = compare_folders(&runs, baseline.as_deref(), &out)?;
    if let [folder] = &arguments.runs[..] {
        tables.extend(sentences::renew(&StudyFolder::at(folder).compare(), &out)?.map(|table| table.table()));
    }
    print(&tables, arguments.json, false, &out)
}

fn print(tables: &[Table], json: bool, quiet: bool, folder: &Path) -> Outcome {
    if json {
        let texts: Vec<String> = tables.iter().map(Table::to_json).collect();
        println!("[{}]", texts.join(",\n"));
    } else if !quiet {
        for table in tables {
            println!("{}", text(table));
        }
        println!("Tables written to {}", folder.display());
    }
    Ok(())
}

/// A table for the screen: title, aligned columns, notes. Long text is shortened; the files contain all of
/// it.
fn text(table: &Table) -> String {
    const WIDEST: usize = 44;
    let shorten = |s: String| {
        if s.chars().count() <= WIDEST { s } else { s.chars().take(WIDEST - 1).chain(['…']).collect() }
    };
    let cell = |cell: &Cell| match cell {
        Cell::Empty => "-".to_owned(),
        Cell::Integer(n) => n.to_string(),
        Cell::Number(x) => number(*x),
        Cell::Text(s) => shorten(s.clone()),
    };
    // A claim's rule is a paragraph and its reason a sentence; they are in the files and on the page.
    let shown = |i: &usize| !["rule", "reason"].contains(&table.columns[*i].name.as_str());
    let columns: Vec<usize> = (0..table.columns.len()).filter(shown).collect();
    let mut out = format!("{} ({})\n", table.title, table.name);
    if let Ok(sentences) = Rows::<WhyRow>::from_table(table) {
        sentences.rows.iter().for_each(|row| out.push_str(&format!("  {}\n", row.sentence)));
    } else if table.rows.len() > SHOWN_ROWS {
        out.push_str(&format!("  {} rows in {}.csv\n", table.rows.len(), table.name));
    } else {
        let mut lines: Vec<Vec<String>> = vec![columns.iter().map(|&i| heading(&table.columns[i])).collect()];
        lines.extend(table.rows.iter().map(|row| columns.iter().map(|&i| cell(&row[i])).collect()));
        let widths: Vec<usize> = (0..columns.len())
            .map(|i| lines.iter().map(|line| line[i].chars().count()).max().unwrap_or(0))
            .collect();
        for line in &lines {
            let padded: Vec<String> =
                line.iter().zip(&widths).map(|(s, &width)| format!("{s:<width$}")).collect();
            out.push_str(&format!("  {}\n", padded.join("  ").trim_end()));
        }
    }
    for note in &table.notes {
        out.push_str(&format!("  {note}\n"));
    }
    out
}

/// The name of a column and its unit.
fn heading(column: &Column) -> String {
    match column.unit.as_str() {
        "" => column.name.clone(),
        unit => format!("{} ({unit})", column.name),
    }
}

fn number(x: f64) -> String {
    let size = x.abs();
    if x == 0.0 || (1e-3..1e5).contains(&size) {
        let digits = if size >= 1000.0 { 1 } else { 4 };
        let text = format!("{x:.digits$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    } else {
        format!("{x:.3e}")
    }
}
