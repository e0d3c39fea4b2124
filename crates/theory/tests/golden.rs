//! Compares the theory with reference values of 30 digits from an independent
//! program, each row within its tolerance.

use leaklab_theory::{Complex64, Drive, Integrator, Lif, Response};
use serde_json::Value;

const REFERENCE: &str = include_str!("coherence.json");

fn rows(table: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(REFERENCE).unwrap();
    all[table].as_array().unwrap().clone()
}

/// A number, or a number written as text because it has more digits than a double.
fn number(row: &Value, key: &str) -> f64 {
    match &row[key] {
        Value::String(text) => text.parse().unwrap(),
        other => other.as_f64().unwrap_or_else(|| panic!("{key} in {row}")),
    }
}

/// Compares and returns the largest error in units of the row's tolerance.
fn compare(row: &Value, pairs: &[(&str, Complex64, Complex64)]) -> f64 {
    let tolerance = row.get("rtol").and_then(Value::as_f64).unwrap_or(1e-12);
    let mut worst = 0f64;
    for (name, ours, reference) in pairs {
        let error = (ours - reference).norm() / reference.norm();
        assert!(error <= tolerance, "{name} = {ours}, reference {reference}, error {error:e} in {row}");
        worst = worst.max(error / tolerance);
    }
    worst
}

fn real(x: f64) -> Complex64 {
    Complex64::new(x, 0.0)
}

fn compare_response(row: &Value, rate: f64, ours: Response) -> f64 {
    let cross = Complex64::new(number(row, "Sxs_re"), number(row, "Sxs_im"));
    compare(
        row,
        &[
            ("rate", real(rate), real(number(row, "r0"))),
            ("S_xx", real(ours.spectrum), real(number(row, "Sxx"))),
            ("S_xs", ours.cross_spectrum, cross),
            ("coherence", real(ours.coherence), real(number(row, "coherence"))),
        ],
    )
}

#[test]
fn lif() {
    let rows = rows("lif");
    assert_eq!(rows.len(), 42);
    for row in rows {
        let neuron = Lif::new(Drive::new(number(&row, "mu"), number(&row, "D")).unwrap());
        let worst = compare_response(&row, neuron.rate(), neuron.response(number(&row, "omega")).unwrap());
        println!("{:5.2} of the tolerance: mu {} D {} omega {}", worst, row["mu"], row["D"], row["omega"]);
    }
}

#[test]
fn lif_at_zero_frequency() {
    let rows = rows("lif_zero_freq");
    assert_eq!(rows.len(), 18);
    for row in rows {
        let neuron = Lif::new(Drive::new(number(&row, "mu"), number(&row, "D")).unwrap());
        let still = neuron.response(0.0).unwrap();
        let d = number(&row, "D");
        let gain = number(&row, "dr0_dmu");
        let worst = compare(
            &row,
            &[
                ("rate", real(neuron.rate()), real(number(&row, "r0"))),
                ("CV", real(neuron.cv()), real(number(&row, "CV"))),
                ("gain", real(neuron.gain()), real(gain)),
                ("susceptibility", still.susceptibility, real(gain)),
                ("S_xs", still.cross_spectrum, real(2.0 * d * gain)),
                ("S_xx", real(still.spectrum), real(number(&row, "r0") * number(&row, "CV").powi(2))),
                ("coherence", real(still.coherence), real(number(&row, "coherence0"))),
            ],
        );
        println!("{:5.2} of the tolerance: mu {} D {}", worst, row["mu"], row["D"]);
    }
}

#[test]
fn integrator() {
    let rows = rows("pif");
    assert_eq!(rows.len(), 11);
    for row in rows {
        let neuron = Integrator::new(Drive::new(number(&row, "mu"), number(&row, "D")).unwrap()).unwrap();
        let worst = compare_response(&row, neuron.rate(), neuron.response(number(&row, "omega")).unwrap());
        println!("{:5.2} of the tolerance: mu {} D {} omega {}", worst, row["mu"], row["D"], row["omega"]);
    }
}
