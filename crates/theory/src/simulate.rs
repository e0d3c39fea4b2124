//! Simulation of one neuron, to check the equations and to be drawn over their curves.
//!
//! The work is divided into independent blocks: a block is a pure function of the seed and its number, and
//! blocks are added up in order, so the estimate does not depend on the number of threads. `stepper.rs`
//! advances the membrane by one step, and `estimate.rs` estimates the spectra.

use crate::drive::{ParameterError, require};
use crate::estimate::{Estimate, Sums, Welch};
use crate::neuron::{Drift, Neuron};
use crate::philox::{Purpose, Stream};
use crate::stepper::{Membrane, Stepper};
use rayon::prelude::*;

/// Duration and resolution of a simulation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Step, in units of the membrane time constant.
    pub step: f64,
    /// Number of steps in a Welch segment, even; the transform is fastest for products of small primes.
    pub segment: usize,
    /// Number of segments in a block; neighbours overlap by half.
    pub segments: usize,
    /// Number of independent blocks, the units of parallel work.
    pub blocks: usize,
    /// Seed: the same seed gives the same estimate on any number of threads.
    pub seed: u64,
}

impl Settings {
    /// Settings that resolve the neuron and the frequencies from `lowest` to `highest`, with about
    /// `segments` segments in total. The step keeps the membrane's movement per step well below the distance
    /// from reset to threshold; a segment contains two periods of the lowest frequency and is longer than
    /// the memory of a regular spike train.
    pub fn plan(model: &Neuron, lowest: f64, highest: f64, segments: usize, seed: u64) -> Self {
        let drive = model.drive();
        let (rate, cv) = (model.rate(), model.cv());
        let mut step =
            f64::min(0.6 / highest.max(1e-12), 0.01 / drive.d()).min(0.15 / drive.mu().abs().max(1e-12));
        step = match model.drift() {
            Drift::None => step,
            Drift::Leak => step.min(0.02),
            Drift::Exponential { .. } | Drift::Quadratic => step.min(0.005),
        };
        if drive.tau_r() > 0.0 {
            step = step.min(drive.tau_r());
        }
        let memory = (10.0 / (rate * cv * cv).max(1e-3)).min(100.0 / rate.max(1e-3));
        let span = (2.0 * std::f64::consts::TAU / lowest.max(1e-12)).max(memory);
        let segment = (span / step).clamp(256.0, 4_194_304.0) as usize;
        let power = segment.next_power_of_two();
        let segment = if segment <= power / 4 * 3 { power / 4 * 3 } else { power };
        let per_block = (segments / 8).clamp(1, 16);
        Settings { step, segment, segments: per_block, blocks: segments.div_ceil(per_block), seed }
    }

    /// Largest number of steps that a simulation with these settings takes, with the start-up of its blocks.
    pub fn steps(&self, model: &Neuron) -> f64 {
        let measured = (self.segments + 1) as f64 * (self.segment / 2) as f64;
        self.blocks as f64 * (2.0 * start_up(model) / self.step + measured)
    }
}

/// Shortest start-up of a block; the longest is twice as long. All blocks start at the reset, which must be
/// forgotten before measuring. A spike erases the membrane's past, so this takes some intervals, and more of
/// them the more regular they are.
fn start_up(model: &Neuron) -> f64 {
    let regular = (0.2 / (model.cv() * model.cv())).clamp(1.0, 10.0);
    5.0 * regular / model.rate().max(1e-2)
}

/// Largest number of steps that is reasonable to simulate: about four minutes on one core.
pub const MOST_STEPS: f64 = 1e10;

/// Simulates the neuron and estimates its spectra at the Welch frequencies nearest to `omegas`.
pub fn simulate(model: &Neuron, omegas: &[f64], settings: &Settings) -> Result<Estimate, ParameterError> {
    require("step", settings.step, |dt| dt > 0.0, "a finite number above 0")?;
    let tau_r = model.drive().tau_r();
    require("step", settings.step, |dt| tau_r == 0.0 || dt <= tau_r, "no longer than the refractory time")?;
    require(
        "segment",
        settings.segment as f64,
        |n| n >= 16.0 && n % 2.0 == 0.0,
        "an even number, 16 or more",
    )?;
    require("segments", settings.segments as f64, |n| n >= 1.0, "1 or more")?;
    require("blocks", settings.blocks as f64, |n| (1.0..4e9).contains(&n), "1 or more")?;
    let welch = Welch::new(settings, omegas);
    let stepper = Stepper::new(model, settings.step);
    let start = start_up(model);
    let sums: Vec<Sums> = (0..settings.blocks)
        .into_par_iter()
        .map(|block| run(&stepper, &welch, settings, start, block as u32))
        .collect();
    Ok(welch.estimate(model.drive(), settings, &sums))
}

/// Runs one block: a start-up of random length, so that blocks do not start in phase, and then its segments.
fn run(stepper: &Stepper, welch: &Welch, settings: &Settings, start: f64, block: u32) -> Sums {
    let stream = Stream::new(settings.seed, block);
    let random = stream.draw(0, Purpose::Start).uniform;
    let mut membrane = Membrane::new(stream, stepper.reset);
    let start_up = (start * (1.0 + random) / settings.step) as u64;
    for _ in 0..start_up {
        stepper.advance(&mut membrane);
    }
    membrane.forget_intervals();

    let half = settings.segment / 2;
    let mut sums = welch.sums();
    let mut stimulus = vec![0.0; settings.segment];
    let mut spikes = vec![0.0; settings.segment];
    for part in 0..=settings.segments {
        stimulus.copy_within(half.., 0);
        spikes.copy_within(half.., 0);
        for i in half..settings.segment {
            (stimulus[i], spikes[i]) = stepper.advance(&mut membrane);
        }
        sums.spikes += spikes[half..].iter().sum::<f64>();
        if part > 0 {
            welch.add(&stimulus, &spikes, &mut sums);
        }
    }
    sums.time = (settings.segments + 1) as f64 * half as f64 * settings.step;
    (sums.intervals, sums.interval_sum, sums.interval_squares) = membrane.intervals;
    sums
}
