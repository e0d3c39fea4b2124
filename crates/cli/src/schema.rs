//! `leaklab schema`: the settings for editors and for the manual, from the program's own table of settings.

use crate::Outcome;
use leaklab_lab::config;

/// Print a JSON Schema of study and run files, for editors that complete and check TOML.
#[derive(clap::Args)]
pub struct Arguments {
    /// Print the manual's table of settings instead of the schema.
    #[arg(long)]
    markdown: bool,
}

/// Runs the subcommand.
pub fn run(arguments: Arguments) -> Outcome {
    if arguments.markdown {
        print!("{}", config::reference());
    } else {
        println!("{:#}", config::schema());
    }
    Ok(())
}
