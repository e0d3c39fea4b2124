//! One step of a simulated membrane.
//!
//! The linear neurons advance by the exact Ornstein-Uhlenbeck (or Wiener) step, jointly with the stimulus
//! of that step. A crossing of the threshold inside a step is drawn from the Brownian bridge between its
//! ends. In the coordinate `(v - mu) e^t`, the membrane is a Wiener process and the threshold is nearly a
//! straight line over one step, so the only error of the crossing probability
//! `exp(-(1-v0)(1-v1)/(D sinh dt))` is due to the line's curvature. Without the bridge the rate would be
//! 2 % too low even at `dt = 1e-3`. The reset subtracts a value that decays like the membrane potential, so
//! the noise after a spike is that of the actual stimulus.

use crate::drive::Drive;
use crate::neuron::{Drift, Neuron};
use crate::philox::{Purpose, Stream};

/// State of one simulated membrane.
pub(crate) struct Membrane {
    v: f64,
    /// Number of steps taken.
    step: u64,
    /// Time within the next step at which the refractory time ends; 0 or less if it has ended.
    held: f64,
    /// Time since the last spike at the start of the next step, if there was a spike.
    since: Option<f64>,
    /// Number of interspike intervals, their sum and the sum of their squares.
    pub(crate) intervals: (f64, f64, f64),
    stream: Stream,
}

impl Membrane {
    /// A membrane at its reset.
    pub(crate) fn new(stream: Stream, reset: f64) -> Self {
        Membrane { v: reset, step: 0, held: 0.0, since: None, intervals: (0.0, 0.0, 0.0), stream }
    }

    /// Restarts the counting of intervals.
    pub(crate) fn forget_intervals(&mut self) {
        self.intervals = (0.0, 0.0, 0.0);
        self.since = None;
    }

    /// Records a spike at the time `at` after the start of the step.
    fn spike(&mut self, at: f64) {
        if let Some(since) = self.since {
            let interval = since + at;
            self.intervals.0 += 1.0;
            self.intervals.1 += interval;
            self.intervals.2 += interval * interval;
        }
        self.since = Some(-at);
    }
}

/// Steps of a given model, with constants that are computed once.
pub(crate) struct Stepper {
    drift: Drift,
    drive: Drive,
    threshold: f64,
    pub(crate) reset: f64,
    dt: f64,
    decay: f64,
    /// Stimulus `s` of a step per unit normal: `sqrt(2 D_st / dt)`.
    stimulus: f64,
    /// Membrane noise per unit of the stimulus' normal, and per unit of an independent normal.
    shared: f64,
    rest: f64,
    /// Half the variance of the membrane's noise, in the coordinate where it is a Wiener process.
    bridge: f64,
}

impl Stepper {
    /// Computes the constants of a step `dt`, which must not be longer than
    /// the refractory time, if there is one.
    pub(crate) fn new(model: &Neuron, dt: f64) -> Self {
        let drive = *model.drive();
        let (d_st, d_bg) = (drive.d_st(), drive.d_bg());
        let leaky = matches!(model.drift(), Drift::Leak);
        let decay = if leaky { (-dt).exp() } else { 1.0 };
        // The mean over a step of the decay until its end, and the variance of
        // white noise weighted by this decay.
        let weight = if leaky { -(-dt).exp_m1() / dt } else { 1.0 };
        let variance = if leaky { -0.5 * (-2.0 * dt).exp_m1() } else { dt };
        let unshared = (variance - weight * weight * dt).max(0.0);
        Stepper {
            drift: model.drift(),
            drive,
            threshold: model.threshold(),
            reset: model.reset(),
            dt,
            decay,
            stimulus: (2.0 * d_st / dt).sqrt(),
            shared: (2.0 * d_st * dt).sqrt() * weight,
            rest: (2.0 * d_st * unshared + 2.0 * d_bg * variance).sqrt(),
            bridge: drive.d() * if leaky { dt.sinh() } else { dt },
        }
    }

    /// Advances by one step; returns the stimulus, averaged over the step, and the number of spikes in it.
    #[inline]
    pub(crate) fn advance(&self, membrane: &mut Membrane) -> (f64, f64) {
        let draw = membrane.stream.draw(membrane.step, Purpose::Noise);
        let stimulus = self.stimulus * draw.normal;
        let noise = self.shared * draw.normal + self.rest * draw.second;
        let spikes = if membrane.held > 0.0 {
            self.wait(membrane, draw.normal);
            0.0
        } else {
            match self.drift {
                Drift::None | Drift::Leak => self.linear(membrane, noise, draw.uniform),
                Drift::Exponential { .. } | Drift::Quadratic => self.nonlinear(membrane, noise, draw.uniform),
            }
        };
        membrane.step += 1;
        membrane.since = membrane.since.map(|since| since + self.dt);
        (stimulus, spikes)
    }

    fn linear(&self, membrane: &mut Membrane, noise: f64, uniform: f64) -> f64 {
        let mu = self.drive.mu();
        let before = membrane.v;
        let after = match self.drift {
            Drift::None => before + mu * self.dt + noise,
            // Other drifts have a step of their own, see `advance`.
            Drift::Leak | Drift::Exponential { .. } | Drift::Quadratic => {
                mu + (before - mu) * self.decay + noise
            }
        };
        membrane.v = after;
        let product = (1.0 - before) * (1.0 - after);
        if after < 1.0 && (product > 40.0 * self.bridge || uniform >= (-product / self.bridge).exp()) {
            return 0.0;
        }
        let at = self.crossing(membrane, 1.0 - before, (after - 1.0).abs());
        let unit = if matches!(self.drift, Drift::None) { 1.0 } else { (at - self.dt).exp() };
        self.fire(membrane, at, after - unit);
        1.0
    }

    /// Fires a spike at the time `at` after the start of the step. Without refractory time the membrane
    /// continues from `v`; otherwise it is held at the reset, and the result is true.
    fn fire(&self, membrane: &mut Membrane, at: f64, v: f64) -> bool {
        membrane.spike(at);
        let held = self.drive.tau_r() > 0.0;
        membrane.v = if held { self.reset } else { v };
        membrane.held = self.drive.tau_r() - (self.dt - at);
        held
    }

    /// Time of the first crossing within a step, given that there is one. In the coordinate where the
    /// membrane is a Wiener process of total variance `S`, let `d0` and `d1` be the distances to the
    /// threshold at the two ends. Then `s / (S - s)` has the inverse Gaussian distribution with mean `d0/d1`
    /// and shape `d0^2/S`, which is drawn by the method of Michael, Schucany and Haas.
    fn crossing(&self, membrane: &Membrane, before: f64, after: f64) -> f64 {
        let draw = membrane.stream.draw(membrane.step, Purpose::Crossing);
        if before <= 0.0 {
            return 0.0;
        }
        let leaky = matches!(self.drift, Drift::Leak);
        let stretched = after.max(1e-300) / self.decay;
        let total = 2.0 * self.bridge / self.decay;
        let (mean, shape) = (before / stretched, before * before / total);
        let y = draw.normal * draw.normal;
        // The smaller root of the defining quadratic, in a form without cancellation for a large mean.
        let half = 0.5 * mean * y / shape;
        let small = mean / (1.0 + half + (half * (2.0 + half)).sqrt());
        let ratio = if draw.uniform * (mean + small) <= mean { small } else { mean * (mean / small) };
        let s = if ratio.is_finite() { total * (ratio / (1.0 + ratio)) } else { total };
        let at = if leaky { 0.5 * (s / self.drive.d()).ln_1p() } else { s / (2.0 * self.drive.d()) };
        at.clamp(0.0, self.dt)
    }

    /// Takes a step that begins within the refractory time.
    fn wait(&self, membrane: &mut Membrane, normal: f64) {
        if membrane.held >= self.dt {
            membrane.held -= self.dt;
            return;
        }
        let left = self.dt - membrane.held;
        membrane.held = 0.0;
        self.release(membrane, left, normal * self.dt.sqrt());
    }

    /// Advances through the last `left` of a step, after the refractory time, given the stimulus' Wiener
    /// increment of the whole step. The part of the increment in `left` is normal with mean
    /// `increment left/dt` and variance `left (1 - left/dt)`.
    fn release(&self, membrane: &mut Membrane, left: f64, increment: f64) {
        let draw = membrane.stream.draw(membrane.step, Purpose::Release);
        let share = left / self.dt;
        let part = increment * share + draw.normal * (left * (1.0 - share)).max(0.0).sqrt();
        let input = (2.0 * self.drive.d_st()).sqrt() * part
            + (2.0 * self.drive.d_bg() * left).sqrt() * draw.second
            + (self.drift.value(self.reset) + self.drive.mu()) * left;
        membrane.v = self.reset + input;
    }

    /// Applies half a step of drift, the noise of the step, and another half step of drift, which is of
    /// second order in the step. The drift is integrated by Runge-Kutta with as many substeps as its slope
    /// requires, since it diverges at a spike.
    fn nonlinear(&self, membrane: &mut Membrane, noise: f64, uniform: f64) -> f64 {
        let half = 0.5 * self.dt;
        let mut spikes = self.fall(membrane, 0.0);
        if membrane.held > 0.0 {
            return spikes;
        }
        let before = membrane.v;
        membrane.v += noise;
        let product = (self.threshold - before) * (self.threshold - membrane.v);
        if membrane.v >= self.threshold
            || (product < 40.0 * self.bridge && uniform < (-product / self.bridge).exp())
        {
            spikes += 1.0;
            if self.fire(membrane, half, self.reset) {
                return spikes;
            }
        }
        spikes + self.fall(membrane, half)
    }

    /// Integrates `dv/dt = f(v) + mu` for half a step, from the time `offset` within
    /// the step; returns the number of spikes.
    fn fall(&self, membrane: &mut Membrane, offset: f64) -> f64 {
        let rate = |v: f64| self.drift.value(v) + self.drive.mu();
        let end = offset + 0.5 * self.dt;
        let mut now = offset;
        let mut spikes = 0.0;
        while now < end {
            let v = membrane.v;
            let h = (end - now).min(0.25 / (self.drift.slope(v).abs() + 1e-9));
            let k1 = rate(v);
            let k2 = rate(v + 0.5 * h * k1);
            let k3 = rate(v + 0.5 * h * k2);
            let k4 = rate(v + h * k3);
            let next = v + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4);
            if next < self.threshold {
                membrane.v = next;
                now += h;
                continue;
            }
            now += h * ((self.threshold - v) / (next - v)).clamp(0.0, 1.0);
            spikes += 1.0;
            if self.fire(membrane, now.min(self.dt), self.reset) {
                break;
            }
        }
        spikes
    }
}
