//! `leaklab completions`: completions for a shell, generated from the definitions of the program's flags.

use crate::Outcome;
use clap::CommandFactory;
use clap_complete::Shell;

/// Print completions for a shell: `leaklab completions bash >
/// ~/.local/share/bash-completion/completions/leaklab`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs the subcommand.
pub fn run(arguments: Arguments) -> Outcome {
    // Written to memory first, because the generator panics if it cannot write, for example to a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::Arguments::command(), "leaklab", &mut script);
    print!("{}", String::from_utf8(script)?);
    Ok(())
}
