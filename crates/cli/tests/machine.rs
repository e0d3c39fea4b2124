//! The origin of results: `--isa`, and what runs and JSON output state about the machine.

mod runs;

use runs::{fail, leaklab, results, resume, succeed, train};
use serde_json::Value;
use std::path::Path;

fn machines(run: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("machines.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn evaluate(run: &Path, isa: &[&str]) -> Value {
    let mut command = leaklab(&["evaluate", "--json"]);
    serde_json::from_slice(&succeed(command.args(isa).arg(run)).stdout).unwrap()
}

#[test]
fn a_run_says_what_it_was_trained_by() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    succeed(train(&run, &["epochs=1"]).args(["--isa", "portable"]));
    let trained = machines(&run);
    assert_eq!(trained.len(), 1);
    assert_eq!(trained[0]["isa"], "portable");
    assert_eq!(trained[0]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(trained[0]["after_epoch"], 0);
    assert!(!trained[0]["cpu"].as_str().unwrap().is_empty());

    // The forward pass gives bit-identical spikes and predictions with each instruction set. Norms are sums
    // of squares in float32. Portable code rounds each square before it is added, and the other sets do not:
    // a layer has 256 neurons, so the norms agree within 256 roundings.
    let mut portable = evaluate(&run, &["--isa", "portable"]);
    let mut fastest = evaluate(&run, &[]);
    assert_eq!(portable["machine"]["isa"], "portable");
    let norms = [&mut portable, &mut fastest].map(|evaluation| {
        evaluation["machine"] = Value::Null;
        let layers = evaluation["layers"].as_array_mut().unwrap();
        let take = |layer: &mut Value| layer["weighted_input_norm"].take().as_f64();
        layers.iter_mut().filter_map(take).collect::<Vec<f64>>()
    });
    assert_eq!(portable, fastest);
    assert_eq!(norms[0].len(), 3);
    for (a, b) in norms[0].iter().zip(&norms[1]) {
        assert!((a - b).abs() <= 256.0 * f64::from(f32::EPSILON) * b, "{a} {b}");
    }
}

/// The weights do not depend on which of the two sets is used, because both have fused multiply-adds and make
/// sums over lanes in the same order. Norms, which are sums over more than a register, may differ.
#[cfg(target_arch = "x86_64")]
#[test]
fn avx2_and_avx512_train_the_same_bits() {
    let needed = [
        is_x86_feature_detected!("avx2"),
        is_x86_feature_detected!("fma"),
        is_x86_feature_detected!("bmi1"),
        is_x86_feature_detected!("bmi2"),
        is_x86_feature_detected!("popcnt"),
        is_x86_feature_detected!("avx512f"),
        is_x86_feature_detected!("avx512bw"),
        is_x86_feature_detected!("avx512dq"),
        is_x86_feature_detected!("avx512vl"),
    ];
    if needed.contains(&false) {
        eprintln!("SKIPPED: AVX2 and AVX-512 train the same bits: this CPU does not have both");
        return;
    }
    let networks: [&[&str]; 3] = [
        &["network=1x8x8-20C3-12C3-2P-40FC-10o"],
        &["network=1x8x8-36C3-2P-70FC-33FC-10o", "optimiser=adam", "learning_rate=0.002", "dropout=0.2"],
        &["network=1x8x8-5C3-17C3-10o", "gradient=exact", "tau=5", "encoder=unsigned", "weight_decay=0.001"],
    ];
    let folder = tempfile::tempdir().unwrap();
    for (i, settings) in networks.into_iter().enumerate() {
        let [avx2, avx512] = ["avx2", "avx512"].map(|isa| {
            let run = folder.path().join(format!("{isa}-{i}"));
            succeed(train(&run, settings).args(["--isa", isa, "--set", "epochs=2"]));
            assert_eq!(machines(&run)[0]["isa"], isa);
            let (last, best, mut metrics, _) = results(&run);
            for layer in metrics.iter_mut().flat_map(|epoch| epoch["layers"].as_array_mut().unwrap()) {
                layer["weighted_input_norm"].take();
            }
            (last, best, metrics)
        });
        assert!(avx2.0 == avx512.0 && avx2.1 == avx512.1, "{settings:?}: the weights differ");
        assert_eq!(avx2.2, avx512.2, "{settings:?}");
    }
}

#[test]
fn a_run_that_was_moved_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    succeed(&mut train(&run, &["epochs=1"]));
    // As if another processor had trained the first epoch.
    let path = run.join("machines.jsonl");
    let text = std::fs::read_to_string(&path).unwrap().replace("\"cpu\":\"", "\"cpu\":\"another ");
    std::fs::write(&path, text).unwrap();
    // Another machine has nothing to do until the run has more epochs.
    succeed(&mut resume(&run));
    assert_eq!(machines(&run).len(), 1);
    let settings = std::fs::read_to_string(run.join("run.toml")).unwrap();
    std::fs::write(run.join("run.toml"), settings.replace("\nepochs = 1\n", "\nepochs = 2\n")).unwrap();
    succeed(&mut resume(&run));
    let trained = machines(&run);
    assert_eq!(trained.len(), 2, "{trained:?}");
    assert_eq!(trained[1]["after_epoch"], 1);
    succeed(&mut resume(&run));
    assert_eq!(machines(&run).len(), 2);
}

#[test]
fn an_unknown_instruction_set_is_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    fail(train(&run, &[]).args(["--isa", "mmx"]), 2, &["'mmx'", "portable"]);
    for command in ["evaluate", "analyse", "study"] {
        fail(&mut leaklab(&[command, "x", "--isa", "mmx"]), 2, &["'mmx'", "portable"]);
    }
}
