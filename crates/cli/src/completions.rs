//! `leaklab completions`: a shell's completions, from the definitions that the program parses its flags with.

use crate::Outcome;
use clap::CommandFactory;
use clap_complete::Shell;

/// Print completions for a shell: `leaklab completions bash > ~/.local/share/bash-completion/completions/leaklab`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs the subcommand.
pub fn run(arguments: Arguments) -> Outcome {
    // To memory first: the generator panics where it cannot write, and a closed pipe is no reason to.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::Arguments::command(), "leaklab", &mut script);
    print!("{}", String::from_utf8(script)?);
    Ok(())
}
