//! Answers to questions about a neuron, as tables: the theory, and the estimates of the simulation.

use super::neuron::Question;
use crate::usage;
use leaklab_record::{Cell, Table};
use leaklab_theory::estimate::Estimate;
use leaklab_theory::information::lower_bound;
use leaklab_theory::simulate::{MOST_STEPS, Settings, simulate};
use std::error::Error;

type Answer = Result<Table, Box<dyn Error>>;

/// Units of a question's answers.
struct Units {
    frequency: &'static str,
    rate: &'static str,
    per_mean: &'static str,
    cross: &'static str,
    bits: &'static str,
}

const DIMENSIONLESS: Units =
    Units { frequency: "1/tau", rate: "1/tau", per_mean: "1/tau per mu", cross: "1/tau", bits: "bit/tau" };
const PHYSICAL: Units = Units { frequency: "Hz", rate: "Hz", per_mean: "Hz/A", cross: "A", bits: "bit/s" };

impl Question {
    fn units(&self) -> &'static Units {
        if self.physical { &PHYSICAL } else { &DIMENSIONLESS }
    }

    /// Name and description of the frequency column.
    fn axis(&self) -> (&'static str, &'static str, &'static str) {
        if self.physical {
            ("frequency", "Hz", "Frequency.")
        } else {
            ("omega", "1/tau", "Angular frequency.")
        }
    }

    fn omega(&self, frequency: f64) -> f64 {
        if self.physical { self.scale.omega(frequency) } else { frequency }
    }

    fn frequency(&self, omega: f64) -> f64 {
        if self.physical { self.scale.frequency(omega) } else { omega }
    }

    /// The stimulus' `s` is a current in physical units and a change of `mu` otherwise.
    fn stimulus(&self) -> f64 {
        if self.physical { self.scale.drive_per_current.recip() } else { 1.0 }
    }

    fn per_mean(&self) -> f64 {
        if self.physical { self.scale.per_current() } else { 1.0 }
    }

    /// The simulation at the Welch frequencies nearest to the requested ones, if it is requested.
    fn estimate(&self, omegas: &[f64]) -> Result<Option<Estimate>, Box<dyn Error>> {
        let Some(segments) = self.segments else { return Ok(None) };
        let above = omegas.iter().copied().filter(|&w| w > 0.0);
        let (lowest, highest) = above.fold((f64::INFINITY, 0f64), |(a, b), w| (a.min(w), b.max(w)));
        let lowest = if lowest.is_finite() { lowest } else { self.neuron.rate() };
        let settings =
            Settings::plan(&self.neuron, lowest, highest.max(self.neuron.rate()), segments, self.seed);
        let steps = settings.steps(&self.neuron);
        if steps.is_nan() || steps > MOST_STEPS {
            return Err(usage(format!(
                "the simulation would take {steps:.1e} steps, and at most {MOST_STEPS:.0e} are reasonable; \
                 give lower frequencies, less noise or fewer --segments, or omit --simulate"
            )));
        }
        Ok(Some(simulate(&self.neuron, omegas, &settings).map_err(usage)?))
    }

    /// What a reader must know about the simulation.
    fn note(&self, estimate: &Estimate) -> String {
        let (unit, name) = if self.physical { (self.scale.time, "s") } else { (1.0, "tau") };
        format!(
            "Simulation: seed {}, {:.0} independent Hann segments, {:.3e} {name} in total.",
            self.seed,
            estimate.segments,
            estimate.time * unit
        )
    }
}

const ROWS: &str = "Rows are at the frequencies of the simulation that are nearest to the requested ones.";

/// Appends a row. A number that double precision cannot represent becomes an empty cell.
fn push(table: &mut Table, row: Vec<Cell>) {
    const BEYOND: &str = "A cell is empty if its number is beyond double precision.";
    let finite = |cell: &Cell| !matches!(cell, Cell::Number(x) if !x.is_finite());
    if !row.iter().all(finite) && !table.notes.iter().any(|note| note == BEYOND) {
        table.notes.push(BEYOND.to_owned());
    }
    table.push(row.into_iter().map(|cell| if finite(&cell) { cell } else { Cell::Empty }).collect());
}

/// Rate, its logarithm, coefficient of variation, gain.
pub fn rate(question: &Question) -> Answer {
    let units = question.units();
    let neuron = &question.neuron;
    let mut columns = vec![
        ("rate", units.rate, "Firing rate r0."),
        ("log_rate", "", "Natural logarithm of the rate, finite even if the rate underflows to 0."),
        ("cv", "", "Coefficient of variation of the interspike interval."),
        ("gain", units.per_mean, "Slope of the rate against the mean input."),
    ];
    let mut row: Vec<Cell> = vec![
        question.scale.rate(neuron.rate()).into(),
        (neuron.log_rate() - question.scale.time.ln()).into(),
        neuron.cv().into(),
        (neuron.gain() * question.per_mean()).into(),
    ];
    let estimate = question.estimate(&[])?;
    if let Some(estimate) = &estimate {
        columns.extend([
            ("rate_simulated", units.rate, "Rate of the simulation."),
            ("rate_error", units.rate, "Its standard error."),
            ("cv_simulated", "", "Coefficient of variation in the simulation."),
        ]);
        row.push(question.scale.rate(estimate.rate).into());
        row.push(estimate.rate_error.map(|x| question.scale.rate(x)).into());
        row.push(estimate.cv.into());
    }
    let mut table = Table::new("rate", "Firing rate", &format!("{}.", question.words), &columns);
    push(&mut table, row);
    table.notes.extend(estimate.map(|estimate| question.note(&estimate)));
    Ok(table)
}

/// Power spectrum, cross-spectrum and susceptibility.
pub fn spectrum(question: &Question, frequencies: &[f64]) -> Answer {
    let units = question.units();
    let mut columns = vec![
        question.axis(),
        ("spectrum", units.rate, "Power spectrum S_xx of the spike train, two-sided."),
        ("cross_spectrum_re", units.cross, "Real part of S_xs (Fourier sign e^{+i omega t})."),
        ("cross_spectrum_im", units.cross, "Imaginary part of S_xs."),
        ("gain", units.per_mean, "Magnitude of the susceptibility S_xs/S_ss."),
        ("phase", "rad", "Phase of the susceptibility, positive when the rate lags."),
    ];
    let omegas: Vec<f64> = frequencies.iter().map(|&f| question.omega(f)).collect();
    let estimate = question.estimate(&omegas)?;
    if estimate.is_some() {
        columns.extend([
            ("spectrum_simulated", units.rate, "Power spectrum of the simulation."),
            ("spectrum_error", units.rate, "Its standard error."),
            ("cross_simulated_re", units.cross, "Real part of the simulation's cross-spectrum."),
            ("cross_simulated_im", units.cross, "Imaginary part of the simulation's cross-spectrum."),
        ]);
    }
    let definition = format!("{}.", question.words);
    let mut table = Table::new("spectrum", "Spectra of the spike train", &definition, &columns);
    // S_xs has the unit of rate times stimulus times time: the scales of rate and time cancel.
    let stimulus = question.stimulus();
    let row = |omega: f64| -> Result<Vec<Cell>, Box<dyn Error>> {
        let response = question.neuron.response(omega).map_err(usage)?;
        Ok(vec![
            question.frequency(omega).into(),
            question.scale.rate(response.spectrum).into(),
            (response.cross_spectrum.re * stimulus).into(),
            (response.cross_spectrum.im * stimulus).into(),
            (response.gain() * question.per_mean()).into(),
            response.phase().into(),
        ])
    };
    match estimate {
        None => {
            for &omega in &omegas {
                push(&mut table, row(omega)?);
            }
        }
        Some(estimate) => {
            for point in &estimate.points {
                let mut cells = row(point.omega)?;
                cells.push(question.scale.rate(point.spectrum).into());
                cells.push(question.scale.rate(point.spectrum_error).into());
                cells.push((point.cross_spectrum.re * stimulus).into());
                cells.push((point.cross_spectrum.im * stimulus).into());
                push(&mut table, cells);
            }
            table.notes.extend([question.note(&estimate), ROWS.to_owned()]);
        }
    }
    Ok(table)
}

/// Coherence.
pub fn coherence(question: &Question, frequencies: &[f64]) -> Answer {
    let mut columns =
        vec![question.axis(), ("coherence", "", "Coherence of stimulus and spike train, 0 to 1.")];
    let omegas: Vec<f64> = frequencies.iter().map(|&f| question.omega(f)).collect();
    let estimate = question.estimate(&omegas)?;
    if estimate.is_some() {
        columns.extend([
            ("simulated", "", "Coherence estimated from the simulation, bias removed."),
            ("low", "", "Lower end of its 95 % interval."),
            ("high", "", "Upper end of its 95 % interval."),
        ]);
    }
    let definition = format!("{}.", question.words);
    let mut table = Table::new("coherence", "Coherence of stimulus and spike train", &definition, &columns);
    let row = |omega: f64| -> Result<Vec<Cell>, Box<dyn Error>> {
        let response = question.neuron.response(omega).map_err(usage)?;
        Ok(vec![question.frequency(omega).into(), response.coherence.into()])
    };
    match estimate {
        None => {
            for &omega in &omegas {
                push(&mut table, row(omega)?);
            }
        }
        Some(estimate) => {
            for point in &estimate.points {
                let mut cells = row(point.omega)?;
                cells.extend([point.coherence.into(), point.low.into(), point.high.into()]);
                push(&mut table, cells);
            }
            table.notes.extend([question.note(&estimate), ROWS.to_owned()]);
        }
    }
    Ok(table)
}

/// Lower bound of the information rate, up to each cutoff.
pub fn information(question: &Question, cutoffs: &[f64]) -> Answer {
    let units = question.units();
    let mut columns = vec![
        ("cutoff", units.frequency, "Highest frequency of the stimulus that is included."),
        ("information", units.bits, "Lower bound of the information rate."),
        ("per_spike", "bit", "Lower bound of the information per spike."),
    ];
    if question.segments.is_some() {
        columns.push(("simulated", units.bits, "Lower bound from the simulation's coherence."));
    }
    let mut table = Table::new(
        "information",
        "Information rate, lower bound",
        &format!("-integral of log2(1 - C) over the frequencies from 0 to the cutoff; {}.", question.words),
        &columns,
    );
    for &cutoff in cutoffs {
        let omega = question.omega(cutoff);
        let bits = lower_bound(&question.neuron, omega).map_err(usage)?;
        let rate = question.neuron.rate();
        let mut row: Vec<Cell> = vec![
            cutoff.into(),
            question.scale.rate(bits).into(),
            if rate > 0.0 { (bits / rate).into() } else { Cell::Empty },
        ];
        if question.segments.is_some() {
            row.push(question.scale.rate(simulated_information(question, omega)?).into());
        }
        push(&mut table, row);
    }
    if question.neuron.rate() == 0.0 {
        table.notes.push("The rate underflows to 0, so there is no information per spike.".to_owned());
    }
    Ok(table)
}

/// The integral over 400 bins of a simulation by the trapezoidal rule. The coherence is taken as constant
/// below the first bin.
fn simulated_information(question: &Question, cutoff: f64) -> Result<f64, Box<dyn Error>> {
    let omegas: Vec<f64> = (1..=400).map(|k| cutoff * f64::from(k) / 400.0).collect();
    let estimate = question.estimate(&omegas)?.ok_or_else(|| usage("--simulate is needed"))?;
    let density = |c: f64| -(1.0 - c).max(1e-12).log2();
    let points = &estimate.points;
    let mut sum = points[0].omega * density(points[0].coherence);
    for pair in points.windows(2) {
        sum +=
            0.5 * (pair[1].omega - pair[0].omega) * (density(pair[0].coherence) + density(pair[1].coherence));
    }
    Ok(sum / std::f64::consts::TAU)
}
