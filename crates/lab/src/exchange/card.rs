//! The model card: what a user should know about a network, with the results of the run that trained it.

use super::ExchangeError;
use super::model::Config;
use crate::run::TrainedRun;
use leaklab_engine::{Network, ReadoutDivisor};
use leaklab_record::Rows;
use leaklab_record::metrics::{self, Epoch};
use leaklab_record::tables::RobustnessSummaryRow;
use std::fmt::Write;

/// Measurements of a network by its run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Figures {
    /// The metrics of the epoch of the weights, if they were recorded.
    pub epoch: Option<Epoch>,
    /// The run's seed.
    pub seed: Option<u64>,
    /// Name of the images that accuracy was measured with: the test or the validation images.
    pub tested_on: &'static str,
    /// Robustness by noise, if the run was analysed with these weights.
    pub robustness: Vec<RobustnessSummaryRow>,
    /// What was changed on import, one sentence each.
    pub notes: Vec<String>,
}

impl Figures {
    /// The figures of a run.
    pub fn of(run: &TrainedRun) -> Result<Self, ExchangeError> {
        let epochs = metrics::read(&run.folder.metrics()).map_err(crate::run::RunError::from)?;
        let epoch = epochs.into_iter().find(|epoch| epoch.epoch == run.position.epoch);
        let table: Option<Rows<RobustnessSummaryRow>> = Rows::read(&run.analysis_folder())?;
        let table = table.filter(|table| match &table.origin {
            Some(origin) => origin.checkpoint == run.checksum,
            None => true,
        });
        let robustness = table.map_or_else(Vec::new, |table| table.rows);
        let (seed, tested_on) = (Some(run.config.seed), run.config.tested_on());
        Ok(Figures { epoch, seed, tested_on, robustness, notes: Vec::new() })
    }
}

/// The text of the card.
pub fn text(config: &Config, network: &Network, figures: &Figures) -> String {
    let mut card = String::from("---\nlibrary_name: leaklab\npipeline_tag: image-classification\n");
    if let Some(dataset) = &config.dataset {
        let _ = writeln!(card, "datasets:\n- {dataset}");
    }
    card.push_str("metrics:\n- accuracy\ntags:\n- spiking-neural-network\n- neuromorphic\n---\n\n");
    let neuron = match network.leak().as_uniform() {
        Some(tau) if !tau.leaks() => "integrate-and-fire neurons without leak (tau = inf)".to_owned(),
        Some(tau) => format!("leaky integrate-and-fire neurons, tau = {tau} steps"),
        None => {
            format!("integrate-and-fire neurons whose leak differs by layer, tau = {} steps", network.leak())
        }
    };
    let _ = write!(
        card,
        "# `{}`\n\nA spiking network of {neuron}, threshold {}, {} weights, no biases. Hidden layers pass \
         binary spikes; each 2x2 pool is a neuron that fires above 0.75; the output integrates and never \
         fires, and its potential after the last step{} is the prediction.\n\n",
        config.network,
        config.v_th,
        network.weights.len(),
        match network.readout_divisor() {
            ReadoutDivisor::Steps => ", divided by the number of steps,",
            ReadoutDivisor::Memory => ", divided by the sum of the weights that leak gives to the steps,",
        }
    );
    card.push_str("## What it expects\n\n| | |\n| --- | --- |\n");
    let shape = network.architecture.input();
    let (sample, first) =
        if config.downsample.is_some() { ("recording", "polarity") } else { ("image", "channel") };
    let _ = writeln!(
        card,
        "| {sample} | {} x {} x {} ({first}, row, column) |",
        shape.channels, shape.height, shape.width
    );
    let steps = config.time_steps.map(|n| n.to_string());
    let downsample = config.downsample.map(|n| n.to_string());
    let equal =
        || downsample.as_ref().map(|_| "not set: each recording is divided into equal steps".to_owned());
    let step_us = config.step_us.map(|n| n.to_string()).or_else(equal);
    for (name, value) in [
        ("time_steps", &steps),
        ("dataset", &config.dataset),
        ("normalise", &config.normalise),
        ("encoder", &config.encoder),
        ("step_us", &step_us),
        ("downsample", &downsample),
    ] {
        if let Some(value) = value {
            let _ = writeln!(card, "| {name} | {value} |");
        }
    }
    if let Some(epoch) = &figures.epoch {
        epoch_figures(&mut card, epoch, figures);
    }
    if !figures.robustness.is_empty() {
        card.push_str(
            "\n## Under noise\n\nMean accuracy over severities 1 to 8.\n\n| noise | scenario | accuracy |\n\
             | --- | --- | --- |\n",
        );
        for row in &figures.robustness {
            let _ = writeln!(card, "| {} | {} | {:.2} % |", row.noise, row.scenario, 100.0 * row.robustness);
        }
    }
    if !figures.notes.is_empty() {
        card.push_str("\n## Changed on import\n\n");
        for note in &figures.notes {
            let _ = writeln!(card, "- {note}");
        }
    }
    card.push_str(
        "\n## Use\n\n```python\nimport leaklab\n\nnetwork = leaklab.Network.load(\".\")\n\
         out = network.forward(spikes)  # float32 [T, N, C, H, W]\nout.prediction.argmax(axis=1)\n```\n",
    );
    card
}

fn epoch_figures(card: &mut String, epoch: &Epoch, figures: &Figures) {
    let _ = write!(card, "\n## Figures\n\nAfter epoch {}", epoch.epoch);
    if let Some(seed) = figures.seed {
        let _ = write!(card, ", seed {seed}");
    }
    let _ = write!(
        card,
        ", on the {} set unless stated otherwise.\n\n| figure | value |\n| --- | --- |\n",
        figures.tested_on
    );
    let percent = |x: Option<f64>| x.map(|x| format!("{:.2} %", 100.0 * x));
    let plain = |x: Option<f64>| x.map(|x| format!("{x:.4}"));
    for (name, value) in [
        ("accuracy", percent(epoch.test_accuracy)),
        ("sse", plain(epoch.test_sse)),
        ("train accuracy, dropout and augmentation on", percent(Some(epoch.train_accuracy))),
        ("train sse, dropout and augmentation on", plain(epoch.train_sse)),
        ("spike_rate of hidden conv and FC layers", percent(epoch.spike_rate)),
        ("synops per image", epoch.synops.map(|x| format!("{x:.4e}"))),
    ] {
        if let Some(value) = value {
            let _ = writeln!(card, "| {name} | {value} |");
        }
    }
    if !epoch.layers.is_empty() {
        card.push_str(
            "\n| layer | kind | spike_rate | synops | weighted_input_norm |\n\
             | --- | --- | --- | --- | --- |\n",
        );
        for layer in &epoch.layers {
            let cell = |text: Option<String>| text.unwrap_or_default();
            let _ = writeln!(
                card,
                "| {} | {} | {} | {} | {} |",
                layer.name,
                layer.kind,
                cell(percent(layer.spike_rate)),
                cell(layer.synops.map(|x| format!("{x:.4e}"))),
                cell(plain(layer.weighted_input_norm))
            );
        }
    }
}
