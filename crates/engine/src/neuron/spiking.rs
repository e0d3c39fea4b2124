//! The integrate-and-fire neuron of conv and fully connected layers: its update step, its spike derivative,
//! its backward recursion in time, and its replay from recorded spikes.
//!
//! Step `t`: `U += (W O_in)[t]`; if `U > v_th` (strictly), `O = 1` and `U = 0`; else `O = 0` and
//! `U = lambda U`. The potential after a spike does not depend on the potential before it.

use super::Neuron;
use crate::events::Geometry;
use crate::layer::conv::Upstream;
use crate::simd::{Isa, Kernel, Row, Vector, dispatch};
use crate::spikes::Spikes;

/// The parameters of the spiking neuron that the kernels use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dynamics {
    /// Value of an input spike: the dropout scale of the previous layer.
    pub scale: f32,
    /// Membrane decay per step.
    pub lambda: f32,
    /// Threshold.
    pub v_th: f32,
}

impl Dynamics {
    /// The parameters of a layer's neurons, whose input spikes have the value `scale`.
    pub(crate) fn of(neuron: Neuron, scale: f32) -> Self {
        // The fields are named one by one, so that a new parameter of the neuron must be considered here.
        let Neuron { tau, v_th } = neuron;
        Dynamics { scale, lambda: tau.lambda() as f32, v_th }
    }
}

/// The state of `16 N` neurons, held in registers from step to step.
pub(crate) struct Neurons<V, const N: usize> {
    membrane: [V; N],
    lambda: V,
    v_th: V,
}

impl<V: Vector, const N: usize> Neurons<V, N> {
    /// Neurons with a potential of 0.
    #[inline(always)]
    pub(crate) fn at_rest(dynamics: Dynamics) -> Self {
        let (lambda, v_th) = (V::splat(dynamics.lambda), V::splat(dynamics.v_th));
        Neurons { membrane: [V::zero(); N], lambda, v_th }
    }

    /// Performs one step and returns a bit for each neuron, which is set if it fires. Adds the
    /// squared weighted inputs to `square`.
    #[inline(always)]
    pub(crate) fn step(&mut self, current: [V; N], square: &mut Row) -> u64 {
        let mut sum = V::load(square);
        let mut spikes = 0;
        for n in 0..N {
            sum = current[n].mul_add(current[n], sum);
            let potential = self.membrane[n].add(current[n]);
            let fired = potential.greater(self.v_th);
            self.membrane[n] = potential.mul(self.lambda).clear(fired);
            spikes |= u64::from(fired) << (16 * n);
        }
        sum.store(square);
        spikes
    }
}

/// Computes the spike derivative of every neuron of a layer that fired (specification, section 2), times
/// `scale`: `1/(v_th + eps) = (1 + ln(lambda) F/gamma) / v_th`, where `gamma` is the number of its spikes and
/// `F = sum over its spike times t_k of lambda^(T - t_k)` (Eqn. 5 and Lee et al. 2020).
///
/// `out` is `[chunk of 16 channels][position in a frame]`; the entries of
/// neurons that did not fire are not used.
pub(crate) fn spike_derivatives(isa: Isa, up: &Upstream, out: &mut Vec<Row>) {
    let geometry = up.events.geometry;
    let base = up.scale / up.v_th;
    out.resize(geometry.frame() * geometry.shape.channels.div_ceil(16), Row::ZERO);
    if up.lambda == 1.0 {
        out.fill(Row([base; 16]));
        return;
    }
    let last = geometry.steps as i32 - 1;
    let powers: Vec<f32> = (0..=last).map(|t| up.lambda.powi(last - t) as f32).collect();
    let slope = up.lambda.ln() as f32;
    dispatch(isa, Derivatives { geometry, spikes: up.spikes, powers: &powers, base, slope, out });
}

struct Derivatives<'a> {
    geometry: Geometry,
    spikes: &'a Spikes,
    powers: &'a [f32],
    base: f32,
    slope: f32,
    out: &'a mut [Row],
}

impl Kernel for Derivatives<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let (frame, stride, width) =
            (self.geometry.frame(), self.geometry.stride(), self.geometry.shape.width);
        let words = self.spikes.words_per_step();
        let chunks = self.geometry.shape.channels.div_ceil(16);
        let (one, base, slope) = (V::splat(1.0), V::splat(self.base), V::splat(self.slope));
        for (pixel, train) in self.spikes.words().chunks_exact(words * self.powers.len()).enumerate() {
            let position = pixel / width * stride + pixel % width;
            for word in 0..words {
                let (mut gamma, mut f) = ([V::zero(); 4], [V::zero(); 4]);
                for (at, &power) in train[word..].iter().step_by(words).zip(self.powers) {
                    let power = V::splat(power);
                    for n in 0..4 {
                        let fired = (at >> (16 * n)) as u16;
                        gamma[n] = gamma[n].add_where(fired, one);
                        f[n] = f[n].add_where(fired, power);
                    }
                }
                for n in 0..4.min(chunks - 4 * word) {
                    let factor = slope.mul(f[n].div(gamma[n])).add(one).mul(base);
                    factor.store(&mut self.out[(4 * word + n) * frame + position]);
                }
            }
        }
    }
}

/// Multiplies `d` of a step by the decay, to obtain `d` of the previous step for neurons that did not fire.
pub(crate) struct Fade<'a> {
    /// `d` of some steps.
    pub frames: &'a mut [Row],
    /// Number of rows in a frame.
    pub frame: usize,
    /// Index of the following step's frame.
    pub from: usize,
    /// Index of the step's own frame, which may be the same.
    pub to: usize,
    /// Derivative of the decay that the gradient uses.
    pub decay: f32,
}

impl Kernel for Fade<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let Fade { frames, frame, from, to, decay } = self;
        if from == to && decay == 1.0 {
            return;
        }
        let factor = V::splat(decay);
        let (from, to) = (from * frame, to * frame);
        assert!(from.max(to) + frame <= frames.len());
        for i in 0..frame {
            let d = V::load(&frames[from + i]).mul(factor);
            d.store(&mut frames[to + i]);
        }
    }
}

/// Writes `d` of one neuron between two of its spikes, backward in time: `d` at the later spike, multiplied
/// by the decay at each earlier step, down to the step after the previous spike.
#[inline(always)]
pub(crate) fn spread(mut d: f32, decay: f32, first: usize, fired: usize, mut write: impl FnMut(usize, f32)) {
    for step in (first..=fired).rev() {
        write(step, d);
        d *= decay;
    }
}

/// The potential of a hidden neuron at every step, after its input and before the threshold is applied, in
/// double precision, computed from its weighted input and its recorded spikes.
pub fn replay(neuron: Neuron, weighted: impl IntoIterator<Item = (f64, bool)>) -> Vec<f64> {
    // The fields are named one by one, so that a new parameter of the neuron must be considered here.
    let Neuron { tau, v_th: _ } = neuron;
    let (lambda, mut u) = (tau.lambda(), 0.0);
    let step = |(input, fired): (f64, bool)| {
        u += input;
        let recorded = u;
        u = if fired { 0.0 } else { lambda * u };
        recorded
    };
    weighted.into_iter().map(step).collect()
}
