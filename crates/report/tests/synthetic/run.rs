//! Files of a synthetic run.

use super::compare::{critical, stimuli};
use super::{EPOCHS, Made, STEPS, Synthetic, table, wobble};
use leaklab_record::metrics::{self, Epoch};
use leaklab_record::tables::{
    ActivityRow, CriticalRow, CriticalSummaryRow, EnergyRow, HiddenSpectrumRow, ImageRow, InputAmplitudeRow,
    InputSpectrumRow, MembraneRow, RasterRow,
};
use leaklab_record::{LayerKind, Reading, RunFolder, Stimulus, manifest};
use std::fs;
use std::path::Path;

const LAYERS: [(&str, LayerKind); 5] = [
    ("conv1", LayerKind::Conv),
    ("conv2", LayerKind::Conv),
    ("pool1", LayerKind::Pool),
    ("conv3", LayerKind::Conv),
    ("fc1", LayerKind::Full),
];

pub fn write(study: &Synthetic, made: &Made, seed: u64, run: &RunFolder) {
    fs::create_dir_all(run.analysis()).unwrap();
    let name = toml::Value::String(made.name.clone());
    let tau = made
        .tau
        .map_or_else(|| "30.0".to_owned(), |tau| if tau.leaks() { format!("{tau}.0") } else { "inf".into() });
    let settings = format!(
        "condition = {name}\ndataset = \"digits\"\ntau = {tau}\nseed = {seed}\nepochs = {EPOCHS}\n\
         v_th = 1.0\ntime_steps = {STEPS}\n{}\n",
        study.input()
    );
    manifest::write(&run.run_toml(), &settings).unwrap();
    for epoch in 1..=EPOCHS {
        metrics::append(&run.metrics(), &line(made, seed, epoch)).unwrap();
    }
    let folder = run.analysis();
    spectra(&stimuli(study), made, &folder);
    activity(made, seed, &folder);
    example(study, made, &folder);
}

fn line(made: &Made, seed: u64, epoch: u64) -> Epoch {
    let progress = if made.learned { 1.0 - (-(epoch as f64) / 3.0).exp() } else { 0.0 };
    let accuracy = 0.1 + 0.86 * progress + 0.008 * wobble(epoch as f64, seed as f64 + made.leak);
    Epoch {
        format: metrics::FORMAT,
        epoch,
        learning_rate: 0.5,
        train_accuracy: (accuracy + 0.015).min(1.0),
        train_sse: Some(0.9 - 0.75 * progress),
        train_accuracy_evaluated: Some((accuracy + 0.02).min(1.0)),
        train_sse_evaluated: Some(0.9 - 0.78 * progress),
        test_accuracy: Some(accuracy),
        test_sse: Some(0.9 - 0.7 * progress),
        spike_rate: Some(0.05 + 0.04 * made.leak),
        synops: Some(1e6),
        layers: Vec::new(),
        seconds: 1.0,
        images_per_second: 1400.0,
    }
}

fn spectra(stimuli: &[(Stimulus, f64)], made: &Made, folder: &Path) {
    let frequencies = || (1..=STEPS / 2).map(|k| k as f64 / STEPS as f64);
    let input = stimuli.iter().flat_map(|&(stimulus, noise)| {
        frequencies().map(move |frequency| {
            let power = 0.3 + 0.2 * noise + 0.004 * wobble(frequency, noise);
            InputSpectrumRow { stimulus, frequency, power }
        })
    });
    table(folder, "Input spectrum", input);
    let amplitude = stimuli.iter().flat_map(|&(stimulus, noise)| {
        (0..24).map(move |k| {
            let amplitude = 0.3 + 0.02 * f64::from(k);
            let curve = 8.0 * (-((amplitude - 0.45 - 0.1 * noise) / 0.06).powi(2)).exp();
            let density = curve * (1.0 + 0.1 * wobble(amplitude, 1.0));
            InputAmplitudeRow { stimulus, amplitude, density, curve }
        })
    });
    table(folder, "Input amplitude", amplitude);
    let bins = stimuli.iter().flat_map(|&(stimulus, noise)| {
        let centre = critical(made, Reading::Defined, noise);
        frequencies().map(move |frequency| {
            let images = (90.0 * (-((frequency - centre) / 0.06).powi(2)).exp()).round() as u64;
            CriticalRow { stimulus, frequency, images }
        })
    });
    table(folder, "Critical frequency", bins);
    let summary = Reading::ALL.into_iter().flat_map(|reading| {
        stimuli.iter().map(move |&(stimulus, noise)| {
            let mean = critical(made, reading, noise);
            CriticalSummaryRow {
                stimulus,
                reading,
                mean: Some(mean),
                low: Some(mean - 0.01),
                high: Some(mean + 0.01),
                images: 350,
                left_out: 5,
                white_noise: Some(0.3495),
                zero_share: (reading == Reading::Defined).then_some(0.9 - 0.3 * made.leak),
            }
        })
    });
    table(folder, "Critical frequency, means", summary);
    let hidden = LAYERS.iter().flat_map(|(layer, _)| {
        frequencies().map(move |frequency| HiddenSpectrumRow {
            stimulus: Stimulus::Clean,
            layer: (*layer).to_owned(),
            frequency,
            power: 0.3 / (1.0 + 4.0 * made.leak * frequency),
        })
    });
    table(folder, "Spectrum of hidden layers", hidden);
}

fn activity(made: &Made, seed: u64, folder: &Path) {
    let layers = LAYERS.iter().enumerate().map(|(i, (layer, kind))| {
        let rate = (0.12 - 0.018 * i as f64) * (1.0 + 2.0 * made.leak);
        ActivityRow {
            layer: (*layer).to_owned(),
            kind: *kind,
            neurons: 512,
            spike_rate: Some(rate * (1.0 + 0.02 * wobble(seed as f64, i as f64))),
            synops: (*kind != LayerKind::Pool).then_some(1e5),
            weighted_input_norm: Some(4.0),
            dead: Some(0.02),
            saturated: Some(0.0),
        }
    });
    table(folder, "Activity", layers);
    let models = [("45 nm CMOS", "accumulate", 0.9, Some(2e-6)), ("Loihi", "synaptic operation", 23.6, None)];
    let energy = models.map(|(model, operation, energy_per_operation, dense)| EnergyRow {
        model: model.to_owned(),
        operation: operation.to_owned(),
        energy_per_operation,
        spiking: energy_per_operation * 1e-12 * (1.1e6 + 3.1e6 * made.leak),
        dense,
    });
    table(folder, "Energy", energy);
}

fn example(study: &Synthetic, made: &Made, folder: &Path) {
    let mut raster = Vec::new();
    let mut membrane = Vec::new();
    let layers =
        [("input", 0.55), ("conv1", 0.9), ("conv2", 0.93), ("pool1", 0.92), ("conv3", 0.95), ("fc1", 0.94)];
    for (i, (layer, rarity)) in layers.iter().enumerate() {
        for neuron in 0..60 {
            for step in 1..=STEPS {
                let chance = wobble((neuron * 31 + step * 7) as f64 + made.leak, i as f64);
                if chance.abs() > rarity - 0.1 * made.leak {
                    let positive = *layer != "input" || chance > 0.0 || study.recorded;
                    raster.push(RasterRow { layer: (*layer).to_owned(), neuron, step, positive });
                }
            }
        }
        if i == 0 || *layer == "pool1" {
            continue;
        }
        let mut potential = 0.0;
        for step in 1..=STEPS {
            potential += 0.12 * (0.6 + wobble(step as f64 + 7.0 * made.leak, i as f64));
            let fired = potential > 1.0;
            membrane.push(MembraneRow { layer: (*layer).to_owned(), neuron: 17, step, potential, fired });
            potential = if fired { 0.0 } else { potential * (1.0 - made.leak / 3.0) };
        }
    }
    for neuron in 0..10 {
        let mut potential = 0.0;
        for step in 1..=STEPS {
            potential = potential * (1.0 - made.leak / 10.0)
                + 0.2 * wobble(step as f64, neuron as f64)
                + if neuron == 3 { 0.3 } else { 0.0 };
            membrane.push(MembraneRow { layer: "fc2".to_owned(), neuron, step, potential, fired: false });
        }
    }
    table(folder, "Spikes of one image", raster);
    table(folder, "Membrane potentials", membrane);
    let image = (0..64u64).map(|i| {
        let pixel = (255.0 * (-((i % 8) as f64 - 3.5).powi(2) / 6.0).exp()) as u64;
        ImageRow { channel: 0, row: i / 8, column: i % 8, pixel }
    });
    table(folder, "The image", image);
}
