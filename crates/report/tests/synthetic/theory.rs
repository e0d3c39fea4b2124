//! Tables of a synthetic theory.

use leaklab_record::Rows;
use leaklab_record::tables::CoherenceRow;
use std::fs;
use std::path::Path;

pub fn write(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    for (name, own) in [("fig2_own", true), ("fig2_physical", false), ("fig2_noise_driven", false)] {
        let definition = "Synthetic coherence at I = 1.5, D_I = 0.1, C = V = 1, tau = RC.";
        let mut theory = Rows::new("Coherence", definition);
        let mut simulation = Rows::new("Coherence, simulated", definition);
        for (curve, corner) in [("LIF, R = 1", 1.0), ("LIF, R = 3", 3.0), ("IF (R = 10^4)", 1e4)] {
            for k in 0..=60 {
                let frequency = 10f64.powf(-2.0 + f64::from(k) / 15.0);
                let corner: f64 = if own { corner } else { 1.5 };
                let coherence = (1.0 - 0.3 / corner.min(3.0)) / (1.0 + frequency / corner);
                let row =
                    CoherenceRow { curve: curve.to_owned(), frequency, coherence, low: None, high: None };
                if k % 6 == 3 {
                    let (low, high) = ((coherence - 0.03).max(0.0), (coherence + 0.03).min(1.0));
                    simulation.rows.push(CoherenceRow { low: Some(low), high: Some(high), ..row.clone() });
                }
                theory.rows.push(row);
            }
        }
        for (name, rows) in [(name.to_owned(), theory), (format!("{name}_simulation"), simulation)] {
            let mut table = rows.table();
            table.name = name;
            table.write(folder).unwrap();
        }
    }
}
