//! The paper's Fig. 2 as tables: the coherence of one neuron on the paper's axis, on a common axis, and for
//! input that is mostly noise, with simulations for comparison.
//!
//! The parameters reproduce the paper's figure: I = 1.5, D_I = 0.1, C = V = 1 and leak resistances of 1, 3
//! and 10^4. Everything is in units of these, so a frequency is in cycles per unit of time.

use leaklab_record::tables::CoherenceRow;
use leaklab_record::{Rows, Table};
use leaklab_theory::neuron::Shape;
use leaklab_theory::simulate::{Settings, simulate};
use leaklab_theory::units::{Membrane, Scale};
use leaklab_theory::{Model, Neuron};
use std::path::Path;

/// How much to simulate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Simulation {
    /// Welch segments per curve: the 95 % intervals narrow with the square root of their number.
    pub segments: usize,
    /// Seed.
    pub seed: u64,
}

impl Default for Simulation {
    fn default() -> Self {
        Simulation { segments: 600, seed: 1 }
    }
}

/// Number of points of a theoretical curve and of a simulated one.
const POINTS: (usize, usize) = (201, 22);

/// One curve of a panel.
struct Curve {
    name: &'static str,
    neuron: Neuron,
    scale: Scale,
    /// Lowest angular frequency that is simulated. A neuron whose time constant is thousands of interspike
    /// intervals is costly to simulate, and its estimate is precise, since its coherence is near 1.
    lowest: f64,
    /// Limit for the number of segments, for the same reason.
    most_segments: usize,
}

/// The input of a panel's neurons.
#[derive(Clone, Copy)]
struct Input {
    current: f64,
    noise: f64,
}

const SIGNAL: Input = Input { current: 1.5, noise: 0.1 };
const NOISE: Input = Input { current: 1.0, noise: 1.0 };

/// The tables `fig2_own`, `fig2_physical` and `fig2_noise_driven`, each followed by `NAME_simulation` if
/// `simulation` is given.
pub fn tables(simulation: Option<Simulation>) -> Vec<Table> {
    tables_while(simulation, &mut || true).expect("nothing asked to stop")
}

/// [`tables`] that asks before each curve whether to continue; `None` if not.
pub fn tables_while(simulation: Option<Simulation>, go_on: &mut dyn FnMut() -> bool) -> Option<Vec<Table>> {
    let own = panel(
        "fig2_own",
        "Each neuron on its own axis, as in the paper",
        "Coherence between stimulus and spike train against angular frequency times the neuron's own time \
         constant tau = RC, at I = 1.5, D_I = 0.1, C = V = 1.",
        "The frequency axis is dimensionless: angular frequency times the membrane time constant.",
        [0.02, 100.0],
        simulation.map(|s| ([0.2, 100.0], s)),
        &[leaky(1.0, SIGNAL), leaky(3.0, SIGNAL), nearly_perfect(SIGNAL)],
        |_, frequency| frequency,
        go_on,
    )?;
    let cycles = "Physical frequency in cycles per unit of time, on one axis for all curves.";
    let range = [0.01, 10.0];
    let on_one_axis = |scale: &Scale, frequency: f64| scale.omega(frequency);
    let physical = panel(
        "fig2_physical",
        "The same neurons on one axis",
        &format!(
            "Coherence against physical frequency, the same input and membranes (I = 1.5, D_I = 0.1, \
             C = V = 1). The membrane with R = 10^4 is not drawn: it differs from the neuron without leak by \
             at most {}.",
            power_of_ten(largest_difference(range))
        ),
        cycles,
        range,
        simulation.map(|s| (range, s)),
        &[leaky(1.0, SIGNAL), leaky(3.0, SIGNAL), perfect(SIGNAL)],
        on_one_axis,
        go_on,
    )?;
    let (leaky_wins, at) = best_of_leak(range);
    let noise_driven = panel(
        "fig2_noise_driven",
        "Input that is mostly noise",
        &format!(
            "Coherence against physical frequency at I = 1, D_I = 1, C = V = 1. At {at:.2} cycles per unit \
             of time the leaky neuron with R = 1 has {leaky_wins:.2} times the coherence of the neuron \
             without leak."
        ),
        cycles,
        range,
        simulation.map(|s| (range, s)),
        &[leaky(1.0, NOISE), leaky(3.0, NOISE), perfect(NOISE)],
        on_one_axis,
        go_on,
    )?;
    Some([own, physical, noise_driven].concat())
}

/// Whether a folder has all tables that [`tables`] returns with a simulation, and all can be read.
pub fn are_readable(folder: &Path) -> bool {
    let readable = |name: &str| matches!(Rows::<CoherenceRow>::read_named(folder, name), Ok(Some(_)));
    ["fig2_own", "fig2_physical", "fig2_noise_driven"]
        .iter()
        .all(|name| readable(name) && readable(&format!("{name}_simulation")))
}

fn membrane(resistance: f64, input: Input) -> Membrane {
    Membrane {
        resistance,
        capacitance: 1.0,
        current: input.current,
        current_noise: input.noise,
        background_noise: 0.0,
        gap: 1.0,
    }
}

fn leaky_neuron(resistance: f64, input: Input) -> (Neuron, Scale) {
    let (drive, scale) = membrane(resistance, input).leaky().expect("the figure's membranes are sound");
    (Neuron::new(Model::Lif, drive, Shape::default()).expect("a LIF neuron has a stationary state"), scale)
}

fn leaky(resistance: f64, input: Input) -> Curve {
    let name = if resistance == 1.0 { "LIF, R = 1 (more leak)" } else { "LIF, R = 3 (less leak)" };
    let (neuron, scale) = leaky_neuron(resistance, input);
    Curve { name, neuron, scale, lowest: 0.0, most_segments: usize::MAX }
}

fn nearly_perfect(input: Input) -> Curve {
    let (neuron, scale) = leaky_neuron(1e4, input);
    Curve { name: "LIF, R = 10⁴ (nearly no leak)", neuron, scale, lowest: 1.25, most_segments: 16 }
}

fn perfect(input: Input) -> Curve {
    let (drive, scale) = membrane(f64::INFINITY, input).perfect().expect("the figure's membranes are sound");
    let neuron = Neuron::new(Model::If, drive, Shape::default()).expect("the figure's input is positive");
    Curve { name: "IF (no leak)", neuron, scale, lowest: 0.0, most_segments: usize::MAX }
}

fn coherence(curve: &Curve, omega: f64) -> f64 {
    curve.neuron.response(omega).expect("the figure's frequencies are positive").coherence
}

/// Largest difference in coherence between the membrane with R = 10^4 and the neuron without leak, over a
/// range of physical frequencies.
fn largest_difference(range: [f64; 2]) -> f64 {
    let (nearly, limit) = (nearly_perfect(SIGNAL), perfect(SIGNAL));
    logarithmic(range, POINTS.0)
        .map(|f| (coherence(&nearly, nearly.scale.omega(f)) - coherence(&limit, limit.scale.omega(f))).abs())
        .fold(0.0, f64::max)
}

/// The largest ratio of the leaky neuron's coherence to that of the neuron without leak, and its frequency.
fn best_of_leak(range: [f64; 2]) -> (f64, f64) {
    let (leak, none) = (leaky(1.0, NOISE), perfect(NOISE));
    logarithmic(range, POINTS.0)
        .map(|f| (coherence(&leak, leak.scale.omega(f)) / coherence(&none, none.scale.omega(f)), f))
        .fold((0.0, 0.0), |best, next| if next.0 > best.0 { next } else { best })
}

/// `n` frequencies on a logarithmic scale.
fn logarithmic([from, to]: [f64; 2], n: usize) -> impl Iterator<Item = f64> {
    (0..n).map(move |k| from * (to / from).powf(k as f64 / (n - 1) as f64))
}

/// A small number as `9.9 x 10^-6`.
fn power_of_ten(x: f64) -> String {
    format!("{x:.1e}").replace('e', " x 10^")
}

/// The table of a panel and that of its simulation. `omega` converts a frequency on the axis to the angular
/// frequency of the neuron.
fn panel(
    name: &str,
    title: &str,
    definition: &str,
    axis: &str,
    range: [f64; 2],
    simulation: Option<([f64; 2], Simulation)>,
    curves: &[Curve],
    omega: impl Fn(&Scale, f64) -> f64,
    go_on: &mut dyn FnMut() -> bool,
) -> Option<Vec<Table>> {
    let definition = format!("{definition} {axis}");
    let mut theory = Rows::new(title, &definition);
    for curve in curves {
        theory.rows.extend(logarithmic(range, POINTS.0).map(|frequency| CoherenceRow {
            curve: curve.name.to_owned(),
            frequency,
            coherence: coherence(curve, omega(&curve.scale, frequency)),
            low: None,
            high: None,
        }));
    }
    let Some((range, simulation)) = simulation else { return Some(vec![theory.table_named(name)]) };

    let mut simulated = Rows::new(
        format!("{title}: simulation"),
        format!(
            "{definition} Simulated with exact steps and Brownian-bridge crossings, {} Hann segments \
             overlapping by half, bias removed.",
            simulation.segments
        ),
    );
    for (number, curve) in curves.iter().enumerate() {
        if !go_on() {
            return None;
        }
        let unit = omega(&curve.scale, 1.0);
        let range = [(range[0] * unit).max(curve.lowest), range[1] * unit];
        let omegas: Vec<f64> = logarithmic(range, POINTS.1).collect();
        let segments = simulation.segments.min(curve.most_segments);
        // Each curve has its own seed, so the curves of a panel are independent.
        let seed = simulation.seed.wrapping_mul(64).wrapping_add(number as u64);
        let settings = Settings::plan(&curve.neuron, omegas[0], omegas[POINTS.1 - 1], segments, seed);
        let estimate = simulate(&curve.neuron, &omegas, &settings).expect("planned settings are sound");
        // The bin nearest to an end of the axis may lie just outside it.
        for point in estimate.points.iter().filter(|p| (range[0]..=range[1]).contains(&p.omega)) {
            simulated.rows.push(CoherenceRow {
                curve: curve.name.to_owned(),
                frequency: point.omega / unit,
                coherence: point.coherence,
                low: Some(point.low),
                high: Some(point.high),
            });
        }
        if segments < simulation.segments {
            simulated.note(format!("{}: {segments} segments.", curve.name));
        }
    }
    Some(vec![theory.table_named(name), simulated.table_named(&format!("{name}_simulation"))])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(table: &Table, curve: &str, frequency: f64) -> f64 {
        let rows = table.rows.iter().filter(|row| row[0].text().is_some_and(|name| name.starts_with(curve)));
        let distance = |x: f64| (x / frequency).ln().abs();
        rows.map(|row| (row[1].number().unwrap(), row[2].number().unwrap()))
            .min_by(|a, b| distance(a.0).total_cmp(&distance(b.0)))
            .unwrap()
            .1
    }

    #[test]
    fn the_tables_support_the_statements() {
        let tables = tables(None);
        let names: Vec<&str> = tables.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["fig2_own", "fig2_physical", "fig2_noise_driven"]);
        // On its own axis, the nearly perfect integrator is flat at 1, and the leaky ones fall.
        assert!(at(&tables[0], "LIF, R = 10⁴", 100.0) > 0.999);
        assert!(at(&tables[0], "LIF, R = 1 ", 100.0) < 0.03);
        // On one axis all fall, with nearly the same tail 2 r0/omega; leak lowers the plateau.
        let tail = at(&tables[1], "IF", 10.0) / at(&tables[1], "LIF, R = 1 ", 10.0);
        assert!((1.0..1.5).contains(&tail), "{tail}");
        assert!(at(&tables[1], "IF", 10.0) < 0.04);
        assert!(at(&tables[1], "LIF, R = 1 ", 0.01) < at(&tables[1], "IF", 0.01));
        // If the input is mostly noise, the leaky neuron can have the higher coherence.
        assert!(at(&tables[2], "LIF, R = 1 ", 1.0) > at(&tables[2], "IF", 1.0));
    }

    #[test]
    fn simulation_lies_on_the_curves() {
        let tables = tables(Some(Simulation { segments: 64, seed: 5 }));
        assert_eq!(tables.len(), 6);
        for pair in tables.chunks(2) {
            assert_eq!(pair[1].name, format!("{}_simulation", pair[0].name));
            assert!(pair[1].rows.len() >= 50, "{}", pair[1].rows.len());
            for row in &pair[1].rows {
                let name = row[0].text().unwrap();
                let [low, high] = [3, 4].map(|i| row[i].number().unwrap());
                let exact = at(&pair[0], name, row[1].number().unwrap());
                // Twice the half-width of a 95 % interval is four standard errors; 0.02 is for the curve's
                // grid.
                let (centre, half) = (0.5 * (low + high), 0.5 * (high - low));
                assert!((exact - centre).abs() < 2.2 * half + 0.02, "{name} {row:?} {exact}");
            }
        }
    }
}
