//! 2x2 average pooling by spiking neurons without leak.
//!
//! The membrane potential is a multiple of a quarter of a spike, so it is stored as a count of spikes. The
//! neuron fires when its potential exceeds 0.75, that is after a fixed number of spikes, and is then reset to
//! zero. The counts of 64 channels are held in the bits of a few words and are updated together.

use crate::events::Events;
use crate::simd::{Isa, Work, vectorise};
use crate::spikes::{Shape, Spikes};

/// Threshold: a pool neuron fires if its potential is above this value.
const THRESHOLD: f64 = 0.75;

/// Number of spikes after which a pool neuron fires, if each spike adds `scale / 4`: the smallest `n` with
/// `n * scale / 4 > 0.75`, which is 4 without dropout and at most 4, as `scale >= 1`.
fn spikes_to_fire(scale: f32) -> u32 {
    (1..4).find(|&n| f64::from(n) * f64::from(scale) * 0.25 > THRESHOLD).unwrap_or(4)
}

/// Runs all steps of a pool. Writes the spikes to `out` and the sums of squared inputs to `squares`.
#[allow(clippy::too_many_arguments)]
pub(crate) fn forward(
    isa: Isa,
    input: Shape,
    output: Shape,
    spikes: &Spikes,
    keep: Option<&[u64]>,
    scale: f32,
    out: &mut Spikes,
    squares: &mut Vec<f64>,
) {
    out.reshape(output.pixels(), spikes.steps(), output.channels);
    let mut weighted = vec![0u64; spikes.steps()];
    let needed = spikes_to_fire(scale);
    vectorise(isa, Count { input, output, spikes, keep, needed, weighted: &mut weighted, out });
    let quarter = f64::from(scale) * 0.25;
    squares.clear();
    squares.extend(weighted.iter().map(|&n| n as f64 * quarter * quarter));
}

struct Count<'a> {
    input: Shape,
    output: Shape,
    spikes: &'a Spikes,
    keep: Option<&'a [u64]>,
    /// Number of spikes after which a neuron fires.
    needed: u32,
    /// Sum of the squared counts of each step, to which the kernel adds.
    weighted: &'a mut [u64],
    out: &'a mut Spikes,
}

impl Work for Count<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Count { input, output, spikes, keep, needed, weighted, out } = self;
        let (steps, words) = (spikes.steps(), spikes.words_per_step());
        for y in 0..output.height {
            for x in 0..output.width {
                let corner = 2 * y * input.width + 2 * x;
                let pixels = [corner, corner + 1, corner + input.width, corner + input.width + 1];
                for word in 0..words {
                    let keep = pixels.map(|p| keep.map_or(!0, |keep| keep[p * words + word]));
                    let (mut ones, mut twos) = (0u64, 0u64);
                    for step in 0..steps {
                        let [a, b, c, d] = [0, 1, 2, 3]
                            .map(|i| spikes.words()[(pixels[i] * steps + step) * words + word] & keep[i]);
                        // The number of input spikes in this step, in binary: `one + 2 two + 4 four`.
                        let (ab, cd) = (a ^ b, c ^ d);
                        let (one, carry) = (ab ^ cd, ab & cd);
                        let (both_ab, both_cd) = (a & b, c & d);
                        let (two, four) = (both_ab ^ both_cd ^ carry, both_ab & both_cd);
                        weighted[step] += u64::from((one & !two).count_ones())
                            + 4 * u64::from((two & !one).count_ones())
                            + 9 * u64::from((one & two).count_ones())
                            + 16 * u64::from(four.count_ones());
                        // It is added to the count. At most three spikes remain from earlier
                        // steps, so the sum is below eight.
                        let carry_ones = ones & one;
                        let sum_ones = ones ^ one;
                        let sum_twos = twos ^ two ^ carry_ones;
                        let sum_fours = four | (twos & two) | (carry_ones & (twos ^ two));
                        let fired = match needed {
                            4 => sum_fours,
                            3 => sum_fours | (sum_twos & sum_ones),
                            2 => sum_fours | sum_twos,
                            _ => sum_fours | sum_twos | sum_ones,
                        };
                        (ones, twos) = (sum_ones & !fired, sum_twos & !fired);
                        out.words_mut()[((y * output.width + x) * steps + step) * words + word] = fired;
                    }
                }
            }
        }
    }
}

/// Computes the loss derivative of each input event from those of the pool's events. It is `scale / 4` times
/// `d` of the pool neuron. `d` is the loss derivative of the neuron's next spike, since the spike derivative
/// is 1 and nothing decays; it is 0 after the last spike.
pub(crate) fn backward(
    events: &Events,
    gradient: &[f32],
    scale: f32,
    input: &Events,
    input_gradient: &mut [f32],
    d: &mut Vec<f32>,
) {
    let (g, gin) = (events.geometry, input.geometry);
    let (frame, quarter) = (g.frame(), 0.25 * scale);
    // The pooled position for each position in an input tile's frames. An odd last row or column is mapped to
    // the last entry of a frame, which has no neuron, so that `d` stays zero there. For an image of at most
    // 65,535 pixels, the pooled image has at most half as many positions, so sixteen bits can number them.
    let last = u16::try_from(frame - 1).expect("sixteen bits can number a pooled frame's positions");
    let mut pooled = vec![last; gin.frame()];
    for y in 0..2 * g.shape.height {
        for x in 0..2 * g.shape.width {
            pooled[y * gin.stride() + x] = (y / 2 * g.stride() + x / 2) as u16;
        }
    }
    let pooled = pooled.repeat(gin.tile_steps);
    d.resize(frame, 0.0);
    for channel in 0..g.shape.channels {
        d.fill(0.0);
        for step in (0..g.steps).rev() {
            let (tile, within) = (step / g.tile_steps, step % g.tile_steps);
            for window in 0..g.windows {
                let range = events.range(tile, window, channel, within..within + 1);
                let d = &mut d[g.origin(window)..];
                for (&position, &gradient) in events.positions[range.clone()].iter().zip(&gradient[range]) {
                    d[usize::from(position) - within * frame] = gradient;
                }
            }
            let (tile, within) = (step / gin.tile_steps, step % gin.tile_steps);
            for window in 0..gin.windows {
                let range = input.range(tile, window, channel, within..within + 1);
                let positions = &input.positions[range.clone()];
                let pooled = &pooled[gin.origin(window)..];
                for (&position, gradient) in positions.iter().zip(&mut input_gradient[range]) {
                    *gradient = quarter * d[usize::from(pooled[usize::from(position)])];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_three_quarters_do_not_fire() {
        assert_eq!(spikes_to_fire(1.0), 4);
        assert_eq!(spikes_to_fire(1.25), 3);
        assert_eq!(spikes_to_fire(2.0), 2);
        assert_eq!(spikes_to_fire(3.5), 1);
    }

    #[test]
    fn counts_like_a_potential() {
        let (input, output) =
            (Shape { channels: 64, height: 3, width: 2 }, Shape { channels: 64, height: 1, width: 1 });
        let steps = 200;
        let mut spikes = Spikes::new(6, steps, 64);
        let mut state = 1u64;
        for word in spikes.words_mut() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *word = state & state >> 7 & state.rotate_left(23);
        }
        for scale in [1.0f32, 1.25, 2.0, 5.0] {
            let (mut out, mut squares) = (Spikes::default(), Vec::new());
            forward(Isa::best(), input, output, &spikes, None, scale, &mut out, &mut squares);
            for channel in 0..64 {
                let mut potential = 0.0f64;
                for step in 0..steps {
                    let count = (0..4).filter(|&p| spikes.get(p, step, channel)).count();
                    potential += count as f64 * 0.25 * f64::from(scale);
                    let fired = potential > THRESHOLD;
                    assert_eq!(
                        out.get(0, step, channel),
                        fired,
                        "scale {scale} channel {channel} step {step}"
                    );
                    if fired {
                        potential = 0.0;
                    }
                }
            }
        }
    }
}
