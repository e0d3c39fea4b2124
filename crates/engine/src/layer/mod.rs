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

use crate::events::Events;
use crate::simd::Row;

/// Sums the lanes of each step's squares, in double precision.
fn total_squares(lanes: &[Row], out: &mut Vec<f64>) {
    out.clear();
    out.extend(lanes.iter().map(|lanes| lanes.iter().map(|&x| f64::from(x)).sum::<f64>()));
}

/// Spike derivative of every neuron of a layer that fired (SPEC section 2), times `scale`:
/// `1/(v_th + eps) = (1 + ln(lambda) F/gamma) / v_th`, with `gamma` its spikes and
/// `F = sum over its spike times t_k of lambda^(T - t_k)` (Eqn. 5 and Lee et al. 2020).
///
/// `out` is `[channel][position in a frame]`; what stands at neurons that did not fire is not used.
fn spike_derivatives(events: &Events, lambda: f64, v_th: f32, scale: f32, out: &mut Vec<f32>) {
    let geometry = events.geometry;
    let (frame, channels) = (geometry.frame(), geometry.shape.channels);
    let base = scale / v_th;
    out.clear();
    out.resize(frame * channels, base);
    if lambda == 1.0 {
        return;
    }
    let powers: Vec<f32> =
        (0..geometry.steps).map(|t| lambda.powi((geometry.steps - 1 - t) as i32) as f32).collect();
    let slope = lambda.ln() as f32;
    let mut sums = vec![(0.0f32, 0.0f32); frame];
    for channel in 0..channels {
        sums.fill((0.0, 0.0));
        for tile in 0..geometry.tiles() {
            for window in 0..geometry.windows {
                for step in 0..geometry.steps_of(tile) {
                    let power = powers[tile * geometry.tile_steps + step];
                    let origin = step * frame;
                    for &position in &events.positions[events.range(tile, window, channel, step)] {
                        let sum = &mut sums[usize::from(position) - origin];
                        sum.0 += 1.0;
                        sum.1 += power;
                    }
                }
            }
        }
        for (factor, (gamma, f)) in out[channel * frame..][..frame].iter_mut().zip(&sums) {
            if *gamma > 0.0 {
                *factor = base * (1.0 + slope * f / gamma);
            }
        }
    }
}
