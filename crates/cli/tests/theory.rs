//! `leaklab theory`, run as a user would run it.

use serde_json::Value;
use std::process::{Command, Output};

fn leaklab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_leaklab")).arg("theory").args(arguments).output().unwrap()
}

/// Runs a command line (split at spaces) and returns what it printed.
fn print(command: &str) -> String {
    let output = leaklab(&command.split(' ').collect::<Vec<_>>());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// The table that a command prints as JSON, by the names of its columns.
fn table(command: &str) -> impl Fn(&str) -> Vec<f64> + use<> {
    let value: Value = serde_json::from_str(&print(&format!("{command} --json"))).unwrap();
    assert_eq!(value["format"], 1);
    move |name| {
        let columns = value["columns"].as_array().unwrap();
        let place = columns.iter().position(|c| c["name"] == name).unwrap_or_else(|| panic!("column {name}"));
        value["rows"].as_array().unwrap().iter().map(|row| row[place].as_f64().unwrap()).collect()
    }
}

/// Runs a command that must be refused with one sentence and exit code 2.
fn refused(command: &str, words: &str) {
    let output = leaklab(&command.split(' ').collect::<Vec<_>>());
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{command}: {message}");
    assert!(message.contains(words), "{command}: {message}");
    assert!(output.stdout.is_empty(), "{command}");
}

#[test]
fn rate_of_the_reference() {
    let column = table("rate --mu 1.5 --d 0.1");
    assert!((column("rate")[0] - 1.021_035_354_9).abs() < 1e-9);
    assert!((column("cv")[0] - 0.443_474_579_8).abs() < 1e-9);
    assert!((column("gain")[0] - 0.974_301_560_5).abs() < 1e-9);
    assert!((table("rate --model if --mu 1.5 --d 0.1 --tau-r 0.5")("rate")[0] - 1.5 / 1.75).abs() < 1e-12);
    // Far below the threshold the answer is still defined.
    let silent = table("rate --mu -50 --d 0.1");
    assert_eq!(silent("rate"), [0.0]);
    assert!(silent("log_rate")[0] < -1e4);
}

#[test]
fn coherence_of_the_reference_as_json_csv_and_words() {
    let command = "coherence --mu 1.5 --d 0.1 --omega 0.5,1e5";
    let column = table(command);
    assert_eq!(column("omega"), [0.5, 1e5]);
    assert!((column("coherence")[0] - 0.932_444_849_4).abs() < 1e-9);
    let csv = print(&format!("{command} --csv"));
    assert!(csv.starts_with("omega,coherence\n0.5,0.9324448494"), "{csv}");
    let words = print(command);
    assert!(words.contains("LIF neuron, mu = 1.5, D = 0.1") && words.contains("0.932445"), "{words}");
}

#[test]
fn every_model_and_command_prints_valid_json() {
    for model in ["lif", "if", "eif", "qif"] {
        let neuron = format!("--model {model} --mu 1.2 --d-st 0.1 --d-bg 0.1 --tau-r 0.1");
        assert!(table(&format!("rate {neuron}"))("rate")[0] > 0.1);
        let spectrum = table(&format!("spectrum {neuron} --omega 0:10:3"));
        assert_eq!(spectrum("omega"), [0.0, 5.0, 10.0]);
        assert!(spectrum("spectrum").iter().all(|&s| s > 0.0));
        let coherence = table(&format!("coherence {neuron} --omega 0.1:10:4:log"))("coherence");
        assert!(
            coherence.iter().all(|c| (0.0..0.5).contains(c)),
            "half the noise is background: {coherence:?}"
        );
        let information = table(&format!("information {neuron} --cutoff 5,50"))("information");
        assert!(information[0] > 0.0 && information[1] > information[0]);
    }
}

#[test]
fn physical_units_are_the_same_neuron() {
    let physical = "--physical R=1e8,C=2e-10,I=3e-10,D_I=1e-23,V=0.02";
    // mu = 1.5, D = 1.25e-2, tau = 20 ms.
    let hertz = table(&format!("coherence {physical} --frequency 10"))("coherence")[0];
    let omega = 2.0 * std::f64::consts::PI * 10.0 * 0.02;
    let plain = table(&format!("coherence --mu 1.5 --d 0.0125 --omega {omega}"))("coherence")[0];
    assert!((hertz / plain - 1.0).abs() < 1e-9, "{hertz} {plain}");
    let rates =
        [format!("rate {physical}"), "rate --mu 1.5 --d 0.0125".to_owned()].map(|c| table(&c)("rate")[0]);
    assert!((rates[0] * 0.02 / rates[1] - 1.0).abs() < 1e-9, "{rates:?}");
    // The gain in hertz per ampere predicts the rate at a slightly larger current.
    let gain = table(&format!("rate {physical}"))("gain")[0];
    let more = table(&format!("rate {}", physical.replace(",I=3e-10", ",I=3.0001e-10")))("rate")[0];
    assert!(((more - rates[0]) / 1e-14 / gain - 1.0).abs() < 1e-3, "{gain}");
    assert!(table("rate --model if --physical C=1,I=1.5,D_I=0.1,V=1")("rate") == [1.5]);
}

#[test]
fn simulation_stands_beside_the_theory() {
    let column = table("coherence --mu 1.5 --d 0.1 --omega 1:20:8:log --simulate --segments 100 --seed 3");
    let (theory, low, high) = (column("coherence"), column("low"), column("high"));
    let inside = (0..theory.len()).filter(|&i| low[i] <= theory[i] && theory[i] <= high[i]).count();
    assert!(theory.len() == 8 && inside >= 6, "{inside} of 8 in their 95 % interval");
    let rate = table("rate --model if --mu 1.5 --d 0.1 --simulate --segments 64");
    assert!((rate("rate_simulated")[0] - 1.5).abs() < 5.0 * rate("rate_error")[0]);
    let spectrum = table("spectrum --model if --mu 1.5 --d 0.1 --omega 2,5 --simulate --segments 64");
    assert_eq!(spectrum("spectrum_simulated").len(), 2);
    let bits = table("information --mu 1.5 --d 0.1 --cutoff 10 --simulate --segments 64");
    assert!((bits("simulated")[0] / bits("information")[0] - 1.0).abs() < 0.15);
    let again = "coherence --mu 1.5 --d 0.1 --omega 3 --simulate --segments 16 --seed 9 --csv";
    assert_eq!(print(again), print(again));
}

#[test]
fn wrong_parameters_get_one_sentence() {
    refused("rate --mu 1 --d 0", "D = 0 cannot be used: it must be a finite number above 0");
    refused("rate --mu 1 --d -1", "D = -1 cannot be used");
    refused("rate --mu nan --d 1", "mu = NaN cannot be used");
    refused("rate --mu 1 --d-st 0.1 --d-bg -1", "D_bg = -1 cannot be used");
    refused("rate --mu 1 --d 0.1 --tau-r -1", "tau_r = -1 cannot be used");
    refused("rate --model if --mu -1 --d 0.1", "no stationary rate");
    refused("rate --model eif --mu 1 --d 0.1 --delta 0", "delta = 0 cannot be used");
    refused("rate --model eif --mu 1 --d 0.1 --reset 5", "reset = 5 cannot be used");
    refused("rate --mu 1 --d 0.1 --reset 0.5", "--threshold and --reset are for eif and qif");
    refused("rate --model hh --mu 1 --d 1", "possible values: lif, if, eif, qif");
    refused("rate --d 1", "--mu");
    refused("coherence --mu 1 --d 1", "--omega");
    refused("coherence --mu 1 --d 1 --omega 2:1:10", "the range is empty");
    refused("coherence --mu 1 --d 1 --omega 1:2:0", "whole number from 1");
    refused("coherence --mu 1 --d 1 --omega x", "\"x\" is not a frequency");
    refused("information --mu 1 --d 1 --cutoff 0", "cutoff = 0 cannot be used");
    refused("information --mu 1 --d 1", "--cutoff");
    refused(
        "rate --physical R=inf,C=1,I=1,D_I=1,V=1",
        "mu = inf, which no neuron can have; R must be finite",
    );
    refused("rate --physical R=1,C=1,I=1,D_I=1,V=0", "V = 0 cannot be used");
    refused("rate --physical R=1,C=1,I=1,D_I=1", "V is missing");
    refused("rate --physical R=1,C=1,I=1,D_I=1,V=1,Q=2", "no value \"Q\"");
    refused("rate --physical R=1,C=1,I=one,D_I=1,V=1", "I = \"one\" is not a number");
    refused("rate --physical R=1,R=1,C=1,I=1,D_I=1,V=1", "R is given twice");
    refused("rate --model qif --physical R=1,C=1,I=1,D_I=1,V=1", "qif has no leak resistance");
    refused("rate --mu -9 --d 0.1 --simulate", "omit --simulate");
    refused("figure --out x.html --segments 1", "at least 2");
}

#[test]
fn the_figure_is_one_file_that_says_what_holds() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("coherence.html");
    let tables = folder.path().join("tables");
    let arguments =
        ["figure", "--segments", "16", "--out", file.to_str().unwrap(), "--tables", tables.to_str().unwrap()];
    let output = leaklab(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(&file).unwrap();
    assert!(page.contains("That holds on one axis only") && page.contains("LIF, R = 1"));
    for name in ["fig2_own", "fig2_physical_simulation", "fig2_noise_driven"] {
        let csv = std::fs::read_to_string(tables.join(format!("{name}.csv"))).unwrap();
        assert!(csv.starts_with("curve,frequency,coherence") && csv.lines().count() > 50, "{name}");
    }
    let unwritable = leaklab(&["figure", "--segments", "0", "--out", "/nonexistent/folder/x.html"]);
    assert_eq!(unwritable.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&unwritable.stderr).contains("the page cannot be written"));
}
