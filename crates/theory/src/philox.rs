//! Random numbers as pure functions of where they are used: Philox4x32-10 (Salmon et al. 2011), so that a
//! simulation gives the same path for any number of threads.

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// The four words of one counter and key.
#[inline]
pub(crate) fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for round in 0..10 {
        if round > 0 {
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        }
        let first = u64::from(MULTIPLIERS[0]) * u64::from(counter[0]);
        let second = u64::from(MULTIPLIERS[1]) * u64::from(counter[2]);
        counter = [
            (second >> 32) as u32 ^ counter[1] ^ key[0],
            second as u32,
            (first >> 32) as u32 ^ counter[3] ^ key[1],
            first as u32,
        ];
    }
    counter
}

/// What a draw is used for. Two purposes never share a counter.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    /// Input noise of a step.
    Noise = 0,
    /// Time of a threshold crossing within a step.
    Crossing = 1,
    /// Noise after the end of a refractory time within a step.
    Release = 2,
    /// Length of a block's start-up.
    Start = 3,
}

/// The random numbers of one block of a simulation.
#[derive(Clone, Copy)]
pub(crate) struct Stream {
    key: [u32; 2],
    block: u32,
}

/// Two independent standard normals and a uniform number in (0, 1).
pub(crate) struct Draw {
    pub normal: f64,
    pub second: f64,
    pub uniform: f64,
}

impl Stream {
    pub(crate) fn new(seed: u64, block: u32) -> Self {
        Stream { key: [seed as u32, (seed >> 32) as u32], block }
    }

    /// The draw of a step. The counter consists of the low half of the step, its high half and the purpose,
    /// the block, and 0. Normals are computed by Box-Muller, with 53 bits for the radius.
    #[inline]
    pub(crate) fn draw(&self, step: u64, purpose: Purpose) -> Draw {
        let high = (step >> 32) as u32 | (purpose as u32) << 28;
        let words = philox([step as u32, high, self.block, 0], self.key);
        let long = u64::from(words[0]) << 21 | u64::from(words[1] >> 11);
        let radius = (-2.0 * ((long + 1) as f64 * 2f64.powi(-53)).ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * f64::from(words[2]) * 2f64.powi(-32)).sin_cos();
        Draw {
            normal: radius * cos,
            second: radius * sin,
            uniform: (f64::from(words[3]) + 0.5) * 2f64.powi(-32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers of the Random123 distribution.
    #[test]
    fn known_answers() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn normals_have_their_moments() {
        let stream = Stream::new(7, 3);
        let n = 200_000;
        let mut sums = [0.0; 4];
        for step in 0..n {
            let draw = stream.draw(step, Purpose::Noise);
            sums[0] += draw.normal;
            sums[1] += draw.normal * draw.normal;
            sums[2] += draw.normal * draw.second;
            sums[3] += draw.uniform;
        }
        // Five standard errors of each mean: 1, sqrt 2, 1 and 1/sqrt 12 over sqrt n.
        for (sum, (mean, deviation)) in
            sums.iter().zip([(0.0, 1.0), (1.0, 1.4143), (0.0, 1.0), (0.5, 0.2887)])
        {
            let error = (sum / n as f64 - mean).abs();
            assert!(error < 5.0 * deviation / (n as f64).sqrt(), "{sum} {mean}");
        }
    }
}
