//! Energy of an inference by named models: operations times a published energy per operation.
//!
//! The estimate covers arithmetic only, as is common in the literature: no memory traffic beyond what a
//! chip's figure contains, no membrane updates, no static power. The model is therefore always named with the
//! number.

use leaklab_record::tables::EnergyRow;
use leaklab_record::{Rows, Table};

/// Energy of one operation on some hardware.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Model {
    /// The hardware that is modelled.
    pub name: &'static str,
    /// The operation that a spike causes at each synapse.
    pub operation: &'static str,
    /// Its energy in picojoules.
    pub picojoules: f64,
    /// Energy of a multiply-accumulate of a dense network on the same hardware; `None` if it cannot run one.
    pub dense_picojoules: Option<f64>,
    /// Where the figure comes from.
    pub source: &'static str,
}

/// The models, the first being the one that `tradeoff` uses.
pub const MODELS: [Model; 3] = [
    Model {
        name: "45 nm CMOS",
        operation: "accumulate",
        picojoules: 0.9,
        dense_picojoules: Some(4.6),
        source: "Horowitz (ISSCC 2014): 32-bit floating-point add 0.9 pJ, multiply and add 4.6 pJ",
    },
    Model {
        name: "Loihi",
        operation: "synaptic operation",
        picojoules: 23.6,
        dense_picojoules: None,
        source: "Davies et al. (IEEE Micro 2018): 23.6 pJ per synaptic operation",
    },
    Model {
        name: "TrueNorth",
        operation: "synaptic operation",
        picojoules: 26.0,
        dense_picojoules: None,
        source: "Merolla et al. (Science 2014): 26 pJ per synaptic event",
    },
];

impl Model {
    /// Joules of an inference that costs `synops` synaptic operations.
    pub fn spiking(&self, synops: f64) -> f64 {
        synops * self.picojoules * 1e-12
    }

    /// Joules of one pass of a dense network with `macs` multiply-accumulates.
    pub fn dense(&self, macs: f64) -> Option<f64> {
        self.dense_picojoules.map(|picojoules| macs * picojoules * 1e-12)
    }
}

/// The `energy` table of an inference that costs `synops`, compared with one pass of a dense network of the
/// same shape, which costs `dense_macs` multiply-accumulates.
pub fn table(synops: f64, dense_macs: f64) -> Table {
    let mut table = Rows::new(
        "Energy of an inference, by model",
        "Synaptic operations per sample (all time steps) times the model's energy per operation. For \
         comparison: one pass of a dense, non-spiking network of the same shape, if the model has an energy \
         per multiply-accumulate. Arithmetic only: membrane updates, memory and static power are not \
         included.",
    );
    for model in MODELS {
        table.notes.push(format!("{}: {}.", model.name, model.source));
        table.rows.push(EnergyRow {
            model: model.name.to_owned(),
            operation: model.operation.to_owned(),
            energy_per_operation: model.picojoules,
            spiking: model.spiking(synops),
            dense: model.dense(dense_macs),
        });
    }
    table.notes.push("Loihi and TrueNorth do not run dense networks, so those cells are empty.".into());
    table.table()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_times_energy() {
        let rows = Rows::<EnergyRow>::from_table(&table(1e9, 2e8)).unwrap().rows;
        for (row, joules) in rows.iter().zip([0.9e-3, 23.6e-3, 26e-3]) {
            assert!((row.spiking / joules - 1.0).abs() < 1e-12);
        }
        assert!((rows[0].dense.unwrap() / (2e8 * 4.6e-12) - 1.0).abs() < 1e-12);
        assert_eq!(rows[1].dense, None);
    }
}
