//! Weights of few bits: evaluated, and written for hardware.

mod runs;

use runs::{fail, leaklab, succeed, train};
use serde_json::Value;

#[test]
fn rounded_weights_are_evaluated_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    succeed(&mut train(&run, &[]));
    let evaluate = |bits: &[&str]| -> Value {
        let mut command = leaklab(&["evaluate", "--json"]);
        serde_json::from_slice(&succeed(command.args(bits).arg(&run)).stdout).unwrap()
    };
    let exact = evaluate(&[]);
    assert_eq!(exact["weight_bits"], Value::Null);
    for bits in [8u8, 4] {
        let rounded = evaluate(&["--weight-bits", &bits.to_string()]);
        assert_eq!(rounded["weight_bits"], bits);
        assert_eq!(rounded["exact_accuracy"], exact["accuracy"]);
        assert!(rounded["silenced"].is_array());
        // Rounding has an effect: at least one spike differs.
        assert_ne!(rounded["synops"], exact["synops"], "{bits} bits");
    }
    let file = folder.path().join("int8.safetensors");
    succeed(leaklab(&["export", "--weight-bits", "8", "--quantised"]).arg(&file).arg(&run));
    assert!(std::fs::metadata(&file).unwrap().len() > 100);
    fail(leaklab(&["export", "--quantised"]).arg(&file).arg(&run), 2, &["--weight-bits"]);
    fail(leaklab(&["evaluate", "--weight-bits", "3"]).arg(&run), 2, &["8 or 4"]);
}
