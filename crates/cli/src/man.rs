//! `leaklab man`: manual pages in roff, generated from the definitions of the program's flags.

use crate::Outcome;
use clap::CommandFactory;
use clap_mangen::Man;
use leaklab_record::atomic;
use std::path::PathBuf;

/// Print the manual page, or write one for every command: `leaklab man | man -l -`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The page of this command; if not given, that of the whole program.
    command: Option<String>,
    /// Write leaklab.1, leaklab-study.1 and so on into this folder.
    #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
    out: Option<PathBuf>,
}

/// Runs the subcommand.
pub fn run(arguments: Arguments) -> Outcome {
    let mut program = crate::Arguments::command().disable_help_subcommand(true);
    program.build();
    if let Some(folder) = &arguments.out {
        crate::output::folder("--out", folder)?;
        std::fs::create_dir_all(folder)
            .map_err(|e| format!("{} cannot be created: {e}", folder.display()))?;
        let mut pages = Vec::new();
        collect(&program, &mut pages);
        for (name, command) in &pages {
            let path = folder.join(format!("{name}.1"));
            atomic::write(&path, &page(command)?)
                .map_err(|e| format!("{} cannot be written: {e}", path.display()))?;
        }
        println!("{}: {} pages", folder.display(), pages.len());
        return Ok(());
    }
    let command = match &arguments.command {
        None => &program,
        Some(name) => program.find_subcommand(name).ok_or_else(|| {
            let names: Vec<&str> = program.get_subcommands().map(|c| c.get_name()).collect();
            crate::usage(format!("there is no command '{name}'; the commands are {}", names.join(", ")))
        })?,
    };
    print!("{}", String::from_utf8(page(command)?)?);
    Ok(())
}

/// The command and all its subcommands, each with the name of its page: `leaklab-theory-rate`.
fn collect<'a>(command: &'a clap::Command, pages: &mut Vec<(String, &'a clap::Command)>) {
    let name = command.get_display_name().unwrap_or(command.get_name());
    pages.push((name.to_owned(), command));
    for below in command.get_subcommands() {
        collect(below, pages);
    }
}

fn page(command: &clap::Command) -> std::io::Result<Vec<u8>> {
    let mut roff = Vec::new();
    Man::new(command.clone()).manual("LeakLab").render(&mut roff)?;
    Ok(roff)
}
