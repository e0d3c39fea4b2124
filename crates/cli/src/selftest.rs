//! `leaklab selftest`.

use crate::Outcome;
use leaklab_engine::Isa;
use leaklab_lab::golden::{Case, EMBEDDED};
use leaklab_record::file;
use std::path::PathBuf;

/// Check the engine on this CPU against reference values, with each instruction set that the CPU supports.
#[derive(clap::Args)]
pub struct Arguments {
    /// Reference cases (.safetensors) to check instead of the embedded ones
    files: Vec<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(arguments: Arguments) -> Outcome {
    let mut cases = Vec::new();
    if arguments.files.is_empty() {
        for (name, bytes) in EMBEDDED {
            cases.push(Case::parse(name, bytes)?);
        }
    }
    for path in &arguments.files {
        let name = path.display().to_string();
        let bytes = file::read(path, file::LARGEST_TEXT).map_err(|e| format!("{name}: {e}"))?;
        cases.push(Case::parse(&name, &bytes)?);
    }
    let mut failures = 0;
    let mut rows = Vec::new();
    for isa in Isa::available() {
        for case in &cases {
            let agreement = case.check(isa)?;
            let faults = agreement.faults();
            failures += usize::from(!faults.is_empty());
            if arguments.json {
                rows.push(serde_json::json!({
                    "case": case.name(), "isa": isa.to_string(), "passed": faults.is_empty(),
                    "faults": faults, "prediction": agreement.prediction, "loss": agreement.loss,
                    "gradient": agreement.gradient, "weighted_input_norm": agreement.norm,
                }));
                continue;
            }
            let verdict =
                if faults.is_empty() { "ok".to_owned() } else { format!("WRONG: {}", faults.join("; ")) };
            println!(
                "{isa:<9} {:<24} prediction {:.0e}  gradient {:.0e}  norm {:.0e}  {verdict}",
                case.name(),
                agreement.prediction,
                agreement.gradient,
                agreement.norm
            );
        }
    }
    let checked = cases.len() * Isa::available().len();
    if arguments.json {
        println!(
            "{}",
            serde_json::json!({ "used": Isa::best().to_string(), "checks": rows, "failed": failures })
        );
    } else {
        println!("this CPU runs with {}; {} of {checked} checks passed", Isa::best(), checked - failures);
    }
    if failures > 0 {
        return Err(
            format!("{failures} of {checked} checks failed: do not trust results of this machine").into()
        );
    }
    Ok(())
}
