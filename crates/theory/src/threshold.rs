//! Any `f(v)`: rate, spectrum and response by integrating the Fokker-Planck equation down from the threshold
//! (Richardson, Phys. Rev. E 76, 021919, 2007).
//!
//! At the threshold the density is 0 and the flux is the rate. Below it, density `P` and flux `J` obey
//! `dP/dv = (F P - J)/D` and `dJ/dv = i omega P` with `F = f(v) + mu`, and the flux through the threshold
//! re-enters at the reset. Solutions are linear in the unknowns (the rate, the response), which the condition
//! `J = 0` at the lower end then determines. Each cell of the grid is solved exactly for its mean `F` and
//! mean `J`, so the strong drift of a spike causes no difficulty. The error is of second order in the width
//! of the cells, and one extrapolation from two grids makes it of fourth order.

use crate::drive::{Drive, ParameterError, check_omega, require};
use crate::response::Response;
use num_complex::Complex64;

/// Smallest and largest number of cells in the coarse grid.
const CELLS: (f64, f64) = (4096.0, 131_072.0);
/// Below this rate the neuron counts as silent.
const SILENT: f64 = 1e-200;

/// Largest relative difference between the results on the two grids. The error of their extrapolation is at
/// least ten times smaller, except on the largest grid.
const AGREE: f64 = 0.05;
/// Smallest `1 - |rho|^2` that is not lost in the rounding errors of the integration.
const ROUNDING: f64 = 1e-11;
/// The limit of the grid, in messages.
const GRID: &str = "with so little noise, or at such a frequency, more than 262144 points are needed";

/// A neuron `dv/dt = f(v) + mu + sqrt(2D) xi` with its own threshold and reset.
#[derive(Debug, Clone)]
pub struct ThresholdIntegration {
    drive: Drive,
    rate: f64,
    log_rate: f64,
    cv: f64,
    gain: f64,
    /// Frequency below which all results have their zero-frequency values to about 1e-6 (with little noise,
    /// to about 1e-2).
    lowest: f64,
    grids: [Grid; 2],
}

/// One cell, solved from its upper end downwards, with `z = -F h/D`: `P` at the lower end is
/// `e^z P + (h/D) phi1 J`, and the mean of `P` over the cell is `phi1 P + (h/D) phi2 J`.
#[derive(Debug, Clone, Copy)]
struct Cell {
    grow: f64,
    phi1: f64,
    phi2: f64,
    /// Mean stationary density.
    density: f64,
}

#[derive(Debug, Clone)]
struct Grid {
    /// Cells, from the threshold downwards.
    cells: Vec<Cell>,
    /// Number of cells above the reset, and the widths above and below it.
    above: usize,
    widths: [f64; 2],
    d: f64,
    rate: f64,
    log_rate: f64,
}

/// Response and characteristic function found on one grid.
struct Solved {
    susceptibility: Complex64,
    rho: Complex64,
}

impl ThresholdIntegration {
    /// Solves the stationary state for the drift `f(v) + mu`.
    pub fn new(
        drive: Drive,
        drift: impl Fn(f64) -> f64,
        threshold: f64,
        reset: f64,
    ) -> Result<Self, ParameterError> {
        require("threshold", threshold, |_| true, "a finite number")?;
        require("reset", reset, |v| v < threshold, "a finite number below the threshold")?;
        let force = |v: f64| drift(v) + drive.mu();
        let bottom = lower_end(&force, drive.d(), threshold, reset)?;
        let cells = ((threshold - bottom) / (0.02 * drive.d().sqrt())).clamp(CELLS.0, CELLS.1) as usize;
        let grids = [cells, 2 * cells].map(|n| Grid::new(&force, &drive, [threshold, reset, bottom], n));
        let rate = extrapolate(grids[0].rate, grids[1].rate);
        let log_rate = extrapolate(grids[0].log_rate, grids[1].log_rate);
        let apart = (grids[0].log_rate - grids[1].log_rate).abs();
        if !(log_rate.is_finite() && apart <= AGREE * log_rate.abs().max(1.0)) {
            return Err(drive.unresolved(None, "rate", GRID));
        }
        let mut neuron =
            ThresholdIntegration { drive, rate, log_rate, cv: 1.0, gain: 0.0, lowest: 0.0, grids };
        if rate > SILENT {
            // A neuron that fires regularly needs a higher frequency, since its spectrum is lost in rounding.
            let slow = [1e-3, 1e-2, 1e-1].map(|low| neuron.evaluate(low * rate.min(1.0)));
            let slow = slow.into_iter().reduce(Result::or).expect("three frequencies")?;
            neuron.lowest = slow.omega;
            neuron.cv = (slow.spectrum / rate).max(0.0).sqrt();
            neuron.gain = slow.susceptibility.re;
        } else {
            neuron.rate = 0.0;
        }
        Ok(neuron)
    }

    /// Firing rate; 0 where it is below 1e-200, see [`ThresholdIntegration::log_rate`].
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Natural logarithm of the rate.
    pub fn log_rate(&self) -> f64 {
        self.log_rate
    }

    /// Coefficient of variation of the interspike interval.
    pub fn cv(&self) -> f64 {
        self.cv
    }

    /// Slope of the rate, `dr0/dmu`.
    pub fn gain(&self) -> f64 {
        self.gain
    }

    /// Spectra at angular frequency `omega >= 0`.
    pub fn response(&self, omega: f64) -> Result<Response, ParameterError> {
        check_omega(omega)?;
        if self.rate == 0.0 {
            return Ok(Response::silent(omega));
        }
        if omega < self.lowest {
            return Ok(self.evaluate(self.lowest)?.lowered_to(omega));
        }
        self.evaluate(omega)
    }

    fn evaluate(&self, omega: f64) -> Result<Response, ParameterError> {
        let delay = Complex64::from_polar(1.0, omega * self.drive.tau_r());
        let [coarse, fine] = [&self.grids[0], &self.grids[1]].map(|grid| {
            let solved = grid.solve(omega, delay);
            let rho = solved.rho;
            let one_minus_square = 1.0 - rho.norm_sqr();
            let relative = one_minus_square / (1.0 - rho * delay).norm_sqr();
            (solved.susceptibility, grid.rate * relative, one_minus_square)
        });
        let apart = f64::max((fine.0 - coarse.0).norm() / fine.0.norm(), (1.0 - coarse.1 / fine.1).abs());
        if !(apart <= AGREE && fine.2 > ROUNDING && coarse.2 > ROUNDING) {
            return Err(self.drive.unresolved(Some(omega), "response", GRID));
        }
        let susceptibility = fine.0 + (fine.0 - coarse.0) / 3.0;
        let spectrum = extrapolate(coarse.1, fine.1);
        let coherence = 2.0 * self.drive.d_st() * susceptibility.norm() * (susceptibility.norm() / spectrum);
        let response = Response {
            omega,
            spectrum,
            cross_spectrum: susceptibility * (2.0 * self.drive.d_st()),
            susceptibility,
            coherence: coherence.clamp(0.0, 1.0),
        };
        response.checked(&self.drive, GRID)
    }
}

/// Combines results on two grids, one twice as fine, whose errors are of second order,
/// into one whose error is of fourth order.
fn extrapolate(coarse: f64, fine: f64) -> f64 {
    fine + (fine - coarse) / 3.0
}

/// Finds a potential so far below the reset that the density there is `e^{-45}` of its largest value below
/// the reset: the integral of `F/D` in between exceeds 45.
fn lower_end(force: &impl Fn(f64) -> f64, d: f64, threshold: f64, reset: f64) -> Result<f64, ParameterError> {
    let mut v = reset;
    let mut exponent = 0.0;
    let mut step = (1e-3 * (threshold - reset)).min(0.05 * d.sqrt());
    for _ in 0..200_000 {
        v -= step;
        exponent = f64::max(0.0, exponent + force(v + 0.5 * step) / d * step);
        if exponent > 45.0 {
            return Ok(v);
        }
        step *= 1.001;
    }
    Err(ParameterError::Unbounded)
}

impl Grid {
    /// Computes the grid and its stationary state. The flux is 1 from threshold to reset and 0 below, and the
    /// integral of the density is `1/r0 - tau_r`.
    fn new(force: &impl Fn(f64) -> f64, drive: &Drive, ends: [f64; 3], n: usize) -> Self {
        let [threshold, reset, bottom] = ends;
        let d = drive.d();
        let share = (threshold - reset) / (threshold - bottom);
        let above = ((n as f64 * share).round() as usize).clamp(n / 8, n - n / 8);
        let widths = [(threshold - reset) / above as f64, (reset - bottom) / (n - above) as f64];
        let mut cells: Vec<Cell> = (0..n)
            .map(|i| {
                let (top, h, k) =
                    if i < above { (threshold, widths[0], i) } else { (reset, widths[1], i - above) };
                let z = -force(top - (k as f64 + 0.5) * h) * h / d;
                let (phi1, phi2) = phi(z);
                Cell { grow: z.exp(), phi1, phi2, density: 0.0 }
            })
            .collect();

        // Density and integral may exceed the largest number, so both are stored as multiples of e^{scale}.
        let (mut density, mut integral, mut scale) = (0.0, 0.0, 0.0f64);
        for (i, cell) in cells.iter_mut().enumerate() {
            let h = widths[usize::from(i >= above)];
            let flux = if i < above { (-scale).exp() } else { 0.0 };
            let mean = cell.phi1 * density + h / d * cell.phi2 * flux;
            density = cell.grow * density + h / d * cell.phi1 * flux;
            integral += mean * h;
            cell.density = mean * scale.exp();
            if density > 1e100 {
                density *= 1e-100;
                integral *= 1e-100;
                scale += 1e100f64.ln();
            }
        }
        let log_rate = -(integral.ln() + scale + (drive.tau_r() / integral * (-scale).exp()).ln_1p());
        let rate = log_rate.exp();
        for cell in &mut cells {
            cell.density *= rate;
        }
        Grid { cells, above, widths, d, rate, log_rate }
    }

    /// Integrates three solutions downwards: `out`, with flux 1 leaving at the threshold; `back`, with flux 1
    /// entering at the reset; and `moved`, which a modulation of `mu` drives through the stationary density.
    fn solve(&self, omega: f64, delay: Complex64) -> Solved {
        let zero = Complex64::new(0.0, 0.0);
        let one = Complex64::new(1.0, 0.0);
        // `out`, `back` and `moved` are stored as multiples of 1/scale.
        let mut scale = 1.0;
        let mut out = (zero, one);
        let mut back = (zero, zero);
        let mut moved = (zero, zero);
        for (i, cell) in self.cells.iter().enumerate() {
            if i == self.above {
                back.1 = -one * scale;
            }
            let h = self.widths[usize::from(i >= self.above)];
            let pass = Pass::new(cell, omega, h, self.d);
            pass.through(&mut out, 0.0);
            pass.through(&mut moved, cell.density * scale);
            if i >= self.above {
                pass.through(&mut back, 0.0);
            }
            // Only ratios matter, and the density in a potential well below a barrier can be extremely large.
            // The square of a number is computed when it is divided by, and must not overflow either.
            if out.0.l1_norm().max(out.1.l1_norm()) > 1e100 {
                for z in [&mut out.0, &mut out.1, &mut back.0, &mut back.1, &mut moved.0, &mut moved.1] {
                    *z *= 1e-100;
                }
                scale *= 1e-100;
            }
        }
        let rho = -back.1 / out.1;
        Solved { susceptibility: -moved.1 / (out.1 * (1.0 - rho * delay)), rho }
    }
}

/// One cell at one frequency: `J` falls by `i omega h` times the cell's mean `P`, and the mean of `J`,
/// which drives `P`, is the value half-way.
struct Pass<'a> {
    cell: &'a Cell,
    turn: f64,
    ratio: f64,
    implicit: Complex64,
}

impl<'a> Pass<'a> {
    fn new(cell: &'a Cell, omega: f64, h: f64, d: f64) -> Self {
        let turn = omega * h;
        let ratio = h / d;
        let c = 0.5 * turn * ratio * cell.phi2;
        Pass { cell, turn, ratio, implicit: Complex64::new(1.0, -c) / (1.0 + c * c) }
    }

    /// Integrates `(P, J)` from the cell's upper to its lower end; `source` is the density on
    /// which a modulation of the drift acts.
    #[inline]
    fn through(&self, (p, j): &mut (Complex64, Complex64), source: f64) {
        let Cell { grow, phi1, phi2, .. } = *self.cell;
        let half = Complex64::new(0.0, 0.5 * self.turn);
        let free = *p * phi1 - self.ratio * phi2 * source;
        let mean_j = (*j - half * free) * self.implicit;
        let mean_p = free + mean_j * (self.ratio * phi2);
        *j -= half * 2.0 * mean_p;
        *p = *p * grow + (mean_j - source) * (self.ratio * phi1);
    }
}

/// `phi1 = (e^z - 1)/z` and `phi2 = (phi1 - 1)/z`, by their series near 0.
fn phi(z: f64) -> (f64, f64) {
    if z.abs() < 0.05 {
        let phi2 = 0.5
            + z / 6.0
                * (1.0 + z / 4.0 * (1.0 + z / 5.0 * (1.0 + z / 6.0 * (1.0 + z / 7.0 * (1.0 + z / 8.0)))));
        return (1.0 + z * phi2, phi2);
    }
    let phi1 = z.exp_m1() / z;
    (phi1, (phi1 - 1.0) / z)
}
