//! `leaklab theory`: the equations of one neuron as a command, for scripts and for people.
//!
//! Every command except for `figure` prints one table, which explains itself in each format: text, JSON, CSV.

mod figure;
mod frequencies;
mod measure;
mod neuron;

use crate::Outcome;
use clap::{Args, Subcommand};
use leaklab_record::{Cell, Table};
use std::path::PathBuf;

/// The theory of one neuron: rate, spectra, coherence, information.
#[derive(Args)]
#[command(after_help = "Examples:
  leaklab theory rate --mu 1.5 --d 0.1
  leaklab theory coherence --model if --mu 1.5 --d 0.1 --omega 0.01:100:200:log --csv
  leaklab theory coherence --physical R=1e8,C=2e-10,I=3e-10,D_I=1e-23,V=0.02 --frequency 1,10,100
  leaklab theory spectrum --model eif --mu 1 --d 0.1 --omega 0.5:20:40 --simulate
  leaklab theory figure --out coherence.html")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Firing rate, its logarithm, coefficient of variation and gain.
    Rate(RateArguments),
    /// Power spectrum, cross-spectrum and susceptibility (gain and phase).
    Spectrum(CurveArguments),
    /// Coherence between stimulus and spike train.
    Coherence(CurveArguments),
    /// Lower bound of the information rate, up to a cutoff frequency.
    Information(InformationArguments),
    /// The paper's Fig. 2 on both axes, theory and simulation, as one HTML file.
    Figure(FigureArguments),
}

#[derive(Args)]
struct RateArguments {
    #[command(flatten)]
    neuron: neuron::NeuronArguments,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
struct CurveArguments {
    #[command(flatten)]
    neuron: neuron::NeuronArguments,
    /// Angular frequencies in units of 1/tau: a list 0.1,1,10 or START:STOP:N, evenly spaced, or
    /// START:STOP:N:log
    #[arg(long, value_name = "LIST|RANGE", conflicts_with = "physical", allow_negative_numbers = true)]
    omega: Option<String>,
    /// Frequencies in hertz, written as for --omega; requires --physical
    #[arg(long, value_name = "LIST|RANGE", requires = "physical", allow_negative_numbers = true)]
    frequency: Option<String>,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
struct InformationArguments {
    #[command(flatten)]
    neuron: neuron::NeuronArguments,
    /// Cutoff frequencies: angular, in units of 1/tau, or hertz with --physical; written as for --omega.
    /// There is no default: for white noise the information grows with the cutoff without limit
    #[arg(long, value_name = "LIST|RANGE", allow_negative_numbers = true)]
    cutoff: String,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
struct FigureArguments {
    /// The HTML file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Also write the figure's tables (JSON and CSV) into this folder
    #[arg(long, value_name = "FOLDER")]
    tables: Option<PathBuf>,
    /// Welch segments of each simulated curve; 0 for no simulation
    #[arg(
        long,
        default_value_t = 600,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(..=1_000_000)
    )]
    segments: u32,
    /// Seed of the simulation
    #[arg(long, default_value_t = 1, allow_negative_numbers = true)]
    seed: u64,
}

#[derive(Args)]
struct Output {
    /// Print the table as JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print the table as comma-separated values
    #[arg(long)]
    csv: bool,
}

/// Runs the subcommand.
pub fn run(arguments: Arguments) -> Outcome {
    let (table, output) = match arguments.command {
        Command::Rate(a) => (measure::rate(&a.neuron.build()?)?, a.output),
        Command::Spectrum(a) => (measure::spectrum(&a.neuron.build()?, &a.frequencies()?)?, a.output),
        Command::Coherence(a) => (measure::coherence(&a.neuron.build()?, &a.frequencies()?)?, a.output),
        Command::Information(a) => {
            let cutoffs = frequencies::parse("--cutoff", &a.cutoff)?;
            (measure::information(&a.neuron.build()?, &cutoffs)?, a.output)
        }
        Command::Figure(a) => return figure::write(&a),
    };
    if output.json {
        println!("{}", table.to_json());
    } else if output.csv {
        print!("{}", table.to_csv());
    } else {
        print!("{}", plain(&table));
    }
    Ok(())
}

impl CurveArguments {
    fn frequencies(&self) -> Result<Vec<f64>, Box<dyn std::error::Error>> {
        match (&self.omega, &self.frequency) {
            // clap does not enforce `requires` of a flag that conflicts with another one that is given.
            (_, Some(_)) if !self.neuron.is_physical() => Err(crate::usage(
                "--frequency is in hertz and requires --physical; give the frequencies with --omega",
            )),
            (Some(text), _) => frequencies::parse("--omega", text),
            (None, Some(text)) => frequencies::parse("--frequency", text),
            (None, None) if self.neuron.is_physical() => {
                Err(crate::usage("give the frequencies in hertz, such as --frequency 1,10,100"))
            }
            (None, None) => Err(crate::usage("give the frequencies, such as --omega 0.01:100:200:log")),
        }
    }
}

/// A table as text: title, definition, columns with their names and units, and notes.
fn plain(table: &Table) -> String {
    let text = |cell: &Cell| match cell {
        Cell::Empty => "-".to_owned(),
        Cell::Integer(n) => n.to_string(),
        Cell::Number(x) if *x == 0.0 || (1e-3..1e6).contains(&x.abs()) => format!("{x:.6}"),
        Cell::Number(x) => format!("{x:.6e}"),
        Cell::Text(s) => s.clone(),
    };
    let mut lines: Vec<Vec<String>> = vec![
        table.columns.iter().map(|c| c.name.clone()).collect(),
        table.columns.iter().map(|c| c.unit.clone()).collect(),
    ];
    lines.extend(table.rows.iter().map(|row| row.iter().map(text).collect()));
    if lines[1].iter().all(String::is_empty) {
        lines.remove(1);
    }
    let widths: Vec<usize> = (0..table.columns.len())
        .map(|i| lines.iter().map(|line| line[i].chars().count()).max().unwrap_or(0))
        .collect();
    let mut out = format!("{}\n{}\n\n", table.title, table.definition);
    for line in &lines {
        let cells: Vec<String> =
            line.iter().zip(&widths).map(|(cell, &width)| format!("{cell:>width$}")).collect();
        out.push_str(cells.join("  ").trim_end());
        out.push('\n');
    }
    for note in &table.notes {
        out.push_str(&format!("\n{note}\n"));
    }
    out
}
