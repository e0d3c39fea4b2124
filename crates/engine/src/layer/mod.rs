//! The layers: each file holds a layer's forward and backward pass side by side.

/// Calls a generic kernel with the layer's number of vectors.
macro_rules! by_vectors {
    ($vectors:expr, $n:ident => $body:expr) => {
        match $vectors {
            1 => {
                const $n: usize = 1;
                $body
            }
            2 => {
                const $n: usize = 2;
                $body
            }
            _ => {
                const $n: usize = 4;
                $body
            }
        }
    };
}
pub(crate) mod conv;
pub(crate) mod full;
pub(crate) mod pool;

use crate::events::Geometry;
use crate::layer::conv::Upstream;
use crate::simd::{Isa, Kernel, Row, Vector, dispatch};
use crate::spikes::Spikes;

/// Sums the lanes of each step's squares, in double precision.
fn total_squares(lanes: &[Row], out: &mut Vec<f64>) {
    out.clear();
    out.extend(lanes.iter().map(|lanes| lanes.iter().map(|&x| f64::from(x)).sum::<f64>()));
}

/// Spike derivative of every neuron of a layer that fired (SPEC section 2), times `scale`:
/// `1/(v_th + eps) = (1 + ln(lambda) F/gamma) / v_th`, with `gamma` its spikes and
/// `F = sum over its spike times t_k of lambda^(T - t_k)` (Eqn. 5 and Lee et al. 2020).
///
/// `out` is `[chunk of 16 channels][position in a frame]`; what stands at neurons that did not fire is not used.
fn spike_derivatives(isa: Isa, up: &Upstream, out: &mut Vec<Row>) {
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
