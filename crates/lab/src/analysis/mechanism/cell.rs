//! One run of the hidden layers over the test images, and the result of every readout.

use super::subject::Subject;
use leaklab_engine::noise::Colour;
use leaklab_engine::{LayerKind, Leak, Network};
use leaklab_record::{Bits, Readout, Stimulus};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The stimulus or noise under which images are shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shown {
    /// Clean, or one of the study's noises.
    Stimulus(Stimulus),
    /// Gaussian noise on pixels, with its colour and standard deviation.
    Coloured(Colour, f32),
}

/// One run of the hidden layers over the test images.
#[derive(Debug, Clone, PartialEq)]
pub struct CellKey {
    /// Leak of the hidden layers; that of the readout does not matter.
    pub hidden: Leak,
    /// The stimulus or noise under which the images are shown.
    pub shown: Shown,
    /// Number of the presentation, from 1.
    pub presentation: u32,
    /// Whether only a small class-balanced part of the images is shown.
    pub part: bool,
}

/// The result of one run of the hidden layers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Which images each readout classified correctly, by the readout's name.
    pub(super) correct: BTreeMap<String, Bits>,
    /// Spikes of hidden conv and FC layers, all images.
    pub(super) spikes: u64,
    /// Synaptic operations of all layers, all images.
    pub(super) synops: u64,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shown::Stimulus(stimulus) => f.pad(&stimulus.to_string()),
            Shown::Coloured(colour, level) => f.pad(&format!("{colour} sigma {level}")),
        }
    }
}

/// All presentations of one run of the hidden layers.
pub struct Outcome {
    cells: Vec<Cell>,
    images: usize,
    /// Spikes per neuron and step of hidden conv and FC layers.
    pub spike_rate: f64,
    /// Synaptic operations per image.
    pub synops: f64,
}

impl Outcome {
    pub(super) fn new(subject: &Subject, cells: Vec<Cell>) -> Self {
        let images = subject.split.len();
        let shown = (images * cells.len()) as f64;
        let layers = subject.network.architecture.hidden().iter().filter(|l| l.kind != LayerKind::Pool);
        let neurons: usize = layers.map(|layer| layer.output.neurons()).sum();
        let sites = (neurons as u64 * subject.steps()) as f64 * shown;
        let spikes: u64 = cells.iter().map(|cell| cell.spikes).sum();
        let synops: u64 = cells.iter().map(|cell| cell.synops).sum();
        let spike_rate = if sites > 0.0 { spikes as f64 / sites } else { 0.0 };
        Outcome { images, spike_rate, synops: synops as f64 / shown, cells }
    }

    /// One presentation with these answers by readout, which costs `synops`.
    #[cfg(test)]
    pub(super) fn of(answers: &[(Readout, &[bool])], synops: f64) -> Self {
        let bits = |answers: &[bool]| answers.iter().copied().collect::<Bits>();
        let correct = answers.iter().map(|(readout, own)| (readout.to_string(), bits(own))).collect();
        let cells = vec![Cell { correct, spikes: 0, synops: 0 }];
        Outcome { cells, images: answers[0].1.len(), spike_rate: 0.0, synops }
    }

    /// In how many presentations each image was classified correctly.
    ///
    /// # Panics
    /// If the readout was not measured.
    pub fn counts(&self, readout: Readout) -> Vec<i64> {
        let mut counts = vec![0; self.images];
        for cell in &self.cells {
            let correct = cell.correct(readout);
            counts.iter_mut().zip(correct.iter()).for_each(|(sum, bit)| *sum += i64::from(bit));
        }
        counts
    }

    /// The share of presentations in which each image was classified correctly.
    pub fn shares(&self, readout: Readout) -> Vec<f64> {
        let n = self.cells.len() as f64;
        self.counts(readout).into_iter().map(|count| count as f64 / n).collect()
    }
}

impl Cell {
    /// Whether every readout has one bit for each image, and the counts are possible: tables rely on both.
    pub(super) fn fits(&self, network: &Network, readouts: &[Readout], images: usize, steps: u64) -> bool {
        let measured = |readout: &Readout| {
            self.correct.get(&readout.to_string()).is_some_and(|correct| correct.len() == images)
        };
        let times = |per_step: u64| per_step.saturating_mul(steps).saturating_mul(images as u64);
        let hidden = network.architecture.hidden().iter().filter(|layer| layer.kind != LayerKind::Pool);
        let neurons = hidden.map(|layer| layer.output.neurons() as u64).sum();
        let operations = network.architecture.layers().iter().map(|layer| layer.dense_operations()).sum();
        readouts.iter().all(measured) && self.spikes <= times(neurons) && self.synops <= times(operations)
    }

    /// Which images a readout classified correctly.
    ///
    /// # Panics
    /// If the readout was not measured.
    pub fn correct(&self, readout: Readout) -> &Bits {
        self.correct.get(&readout.to_string()).expect("every readout of the list was measured")
    }

    /// Share of images that a readout classified correctly.
    pub fn accuracy(&self, readout: Readout) -> f64 {
        let correct = self.correct(readout);
        correct.count() as f64 / correct.len().max(1) as f64
    }
}
