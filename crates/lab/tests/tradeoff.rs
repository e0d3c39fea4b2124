//! The trade-off between robustness and operations includes all noises that a study tests.

mod synthetic;

use leaklab_lab::analysis::compare::compare;
use leaklab_record::tables::TradeoffRow;
use leaklab_record::{NoiseKey, Row, Rows};
use synthetic::{Numbers, config, falling, record};

/// The table of two conditions with three seeds each under some noises, with the accuracies of the condition
/// with leak and of that without leak.
fn tradeoff(noises: &[(&str, [[f64; 8]; 2])]) -> Rows<TradeoffRow> {
    let mut runs = Vec::new();
    for (i, tau) in ["30", "inf"].into_iter().enumerate() {
        for seed in 1..=3 {
            let of = |noise: &(&str, [[f64; 8]; 2])| (noise.0.parse::<NoiseKey>().unwrap(), noise.1[i]);
            let noisy = noises.iter().map(of).collect();
            let settings = [format!("tau={tau}"), format!("seed={seed}")];
            let config = config(&settings.each_ref().map(String::as_str));
            runs.push(record(config, &Numbers { noisy, ..Numbers::plain(0.0) }, 1000));
        }
    }
    let tables = compare(&runs, None).unwrap();
    Rows::from_table(tables.iter().find(|table| table.name == TradeoffRow::TABLE).unwrap()).unwrap()
}

#[test]
fn noises_beyond_the_paper_s_count() {
    let [strong, weak] = [falling(0.95, 0.1, 1), falling(0.95, 0.0, 1)];
    let mean = |accuracies: [f64; 8]| accuracies.iter().sum::<f64>() / 8.0;
    // Noises of an event sensor alone.
    let table = tradeoff(&[("background/channel", [strong, weak]), ("deletion/channel", [strong, weak])]);
    let found: Vec<(&str, f64)> =
        table.rows.iter().map(|row| (row.condition.as_str(), row.robustness)).collect();
    let [("tau 30", with), ("tau inf", without)] = found[..] else { panic!("{found:?}") };
    assert!((with - mean(strong)).abs() < 1e-9 && (without - mean(weak)).abs() < 1e-9, "{found:?}");
    assert!(table.definition.contains("(background activity, loss of spikes)"), "{}", table.definition);
    // Together with one of the paper's noises, each counts equally.
    let table = tradeoff(&[("gaussian/pixel", [strong, weak]), ("jitter/channel", [weak, weak])]);
    let expected = 0.5 * (mean(strong) + mean(weak));
    assert!((table.rows[0].robustness - expected).abs() < 1e-9, "{:?}", table.rows[0]);
    assert!(tradeoff(&[]).rows.is_empty());
}
