//! Completions and manual pages, which the program generates from its own definitions, as a shell uses them.

mod runs;

use runs::{fail, leaklab, succeed};
use std::process::Command;

/// The subcommands, as `leaklab --help` lists them.
fn subcommands() -> Vec<String> {
    let help = String::from_utf8(succeed(&mut leaklab(&["--help"])).stdout).unwrap();
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap().to_owned();
    let indented = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let names = list.lines().filter(indented).map(|line| line.split_whitespace().next().unwrap().to_owned());
    names.filter(|name| name != "help").collect()
}

fn printed(arguments: &[&str]) -> String {
    String::from_utf8(succeed(&mut leaklab(arguments)).stdout).unwrap()
}

#[test]
fn every_shell_knows_every_command() {
    assert!(subcommands().len() >= 16, "{:?}", subcommands());
    for shell in ["bash", "zsh", "fish"] {
        let script = printed(&["completions", shell]);
        for name in subcommands() {
            assert!(script.contains(&name), "{shell} does not know {name}");
        }
    }
    fail(&mut leaklab(&["completions", "csh"]), 2, &["csh", "bash", "zsh", "fish"]);
}

#[test]
fn bash_completes_with_the_script() {
    if Command::new("bash").arg("--version").output().is_err() {
        eprintln!("skipped: there is no bash");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("leaklab");
    std::fs::write(&script, printed(&["completions", "bash"])).unwrap();
    for (words, expected) in [("st", "study"), ("export --safet", "--safetensors")] {
        let last = words.split(' ').next_back().unwrap();
        let program = format!(
            "source {}; COMP_WORDS=(leaklab {words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _leaklab leaklab {last} leaklab; echo ${{COMPREPLY[@]}}",
            script.display()
        );
        let output = Command::new("bash").args(["-c", &program]).output().unwrap();
        let replies = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        assert_eq!(replies, expected, "{words}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn there_is_a_manual_page_for_every_command() {
    let page = printed(&["man"]);
    assert!(page.contains(".TH leaklab 1"), "{page}");
    let folder = tempfile::tempdir().unwrap();
    succeed(leaklab(&["man", "--out"]).arg(folder.path()));
    assert_eq!(std::fs::read_to_string(folder.path().join("leaklab.1")).unwrap(), page);
    for name in subcommands() {
        assert!(page.contains(&format!("leaklab\\-{name}(1)")), "{name} is not named in {page}");
        let own = std::fs::read_to_string(folder.path().join(format!("leaklab-{name}.1"))).unwrap();
        assert_eq!(own, printed(&["man", &name]));
    }
    assert!(printed(&["man", "evaluate"]).contains("\\-\\-severity"));
    assert!(folder.path().join("leaklab-theory-rate.1").is_file());
    fail(&mut leaklab(&["man", "studdy"]), 2, &["'studdy'", "study"]);
}
