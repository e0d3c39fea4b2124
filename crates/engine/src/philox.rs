//! Philox4x32-10 (Salmon et al. 2011), the counter-based generator of all random numbers.
//!
//! A number is a pure function of where it is used, so results do not depend on threads, batch layout,
//! interruptions or earlier draws. The packing is defined here and nowhere else:
//!
//! | word | holds |
//! | --- | --- |
//! | key 0, 1 | seed, low and high half |
//! | counter 0 | pixel: the neuron `[channel][row][column]`, or a list's `index / 4` |
//! | counter 1 | `step / 4` |
//! | counter 2 | sample: index in the data set, or index of the tensor |
//! | counter 3 | `epoch << 8 \| purpose` (the epoch's low 24 bits) |
//!
//! Step `s` uses word `s % 4` of a block's four output words; entry `i` of a list uses word `i % 4` of
//! step block 0. An integer consists of two words, so entry `i` of a list of integers has `i / 2` in counter
//! 0. Uniforms are `(word >> 8) * 2^-24`. Normals are computed in pairs by Box-Muller, from words 0 and 1 and
//! from words 2 and 3; the first of a pair is the cosine, the second the sine. Their logarithm, sine and
//! cosine are polynomials in single precision, written with separate multiplications and additions. The
//! numbers are therefore bit-identical on every machine and instruction set, and a loop over lanes can be
//! vectorised.

/// What a random number is used for. Two purposes never share a number. The discriminants must not
/// change, since all results depend on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Purpose {
    /// Initial weights; sample = the parameter's index, list = its entries.
    Initialise = 1,
    /// Order of the samples in an epoch.
    Shuffle = 2,
    /// Random crop and flip.
    Augment = 3,
    /// The Poisson encoder's uniform per neuron and step.
    Encode = 4,
    /// Noise in the input layer.
    Noise = 5,
    /// Dropout masks.
    Dropout = 6,
    /// Class-balanced choice of a subset.
    Subset = 7,
    /// Simulated studies, to which tests apply the rules.
    Simulate = 8,
    /// Choices made by an analysis, such as which neurons to show.
    Analyse = 9,
    /// Inputs of benchmarks and self-tests.
    Benchmark = 10,
}

/// Largest epoch whose numbers are its own: the counter has room for 24 bits. Larger ones have the numbers of
/// their low 24 bits.
pub const LAST_EPOCH: u32 = (1 << 24) - 1;

/// Number of blocks that the bulk functions compute together.
pub const LANES: usize = 16;

/// One word of each of [`LANES`] blocks, with 32 bits in the low half of each lane: two
/// vectors of 512 bits. Philox consists of multiplications of 32 by 32 bits, which read
/// exactly these halves, so lanes are never shuffled.
pub type Lanes = [u64; LANES];

const MULTIPLIER: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

/// The generator itself: four words from a counter and a key.
pub fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..ROUNDS {
        let p0 = u64::from(MULTIPLIER[0]) * u64::from(counter[0]);
        let p1 = u64::from(MULTIPLIER[1]) * u64::from(counter[2]);
        counter = [
            (p1 >> 32) as u32 ^ counter[1] ^ key[0],
            p1 as u32,
            (p0 >> 32) as u32 ^ counter[3] ^ key[1],
            p0 as u32,
        ];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    counter
}

/// All random numbers of one seed, purpose, epoch and sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    key: [u32; 2],
    sample: u32,
    tag: u32,
}

impl Stream {
    /// The stream of a seed, purpose, epoch and sample; of the epoch, the low 24 bits ([`LAST_EPOCH`]).
    pub fn new(seed: u64, purpose: Purpose, epoch: u32, sample: u32) -> Self {
        Stream { key: [seed as u32, (seed >> 32) as u32], sample, tag: epoch << 8 | purpose as u32 }
    }

    /// The four words of a pixel, for the four steps from `4 * step_block` on.
    pub fn block(&self, step_block: u32, pixel: u32) -> [u32; 4] {
        philox([pixel, step_block, self.sample, self.tag], self.key)
    }

    /// The word of a pixel and step.
    pub fn word(&self, step: u32, pixel: u32) -> u32 {
        self.block(step / 4, pixel)[step as usize % 4]
    }

    /// The uniform of a pixel and step, in [0, 1).
    pub fn uniform(&self, step: u32, pixel: u32) -> f32 {
        unit(self.word(step, pixel))
    }

    /// The standard normal of a pixel and step.
    pub fn normal(&self, step: u32, pixel: u32) -> f32 {
        let words = self.block(step / 4, pixel);
        let pair = (step as usize % 4) & 2;
        box_muller(words[pair], words[pair + 1])[step as usize % 2]
    }

    /// Entry `index` of the stream's list of uniforms, in [0, 1).
    pub fn uniform_at(&self, index: usize) -> f32 {
        self.uniform(index as u32 % 4, list_pixel(index))
    }

    /// Entry `index` of the stream's list of standard normals.
    pub fn normal_at(&self, index: usize) -> f32 {
        self.normal(index as u32 % 4, list_pixel(index))
    }

    /// Entry `index` of the stream's list of integers below `bound`. Each entry uses half a block; the bias
    /// of the multiply-and-shift is below `bound * 2^-64`.
    ///
    /// # Panics
    /// If `bound` is 0.
    pub fn below_at(&self, index: usize, bound: u64) -> u64 {
        assert!(bound > 0, "no integer is below 0");
        let words = self.block(0, list_pixel(2 * index));
        let pair = 2 * (index % 2);
        let wide = u64::from(words[pair]) | u64::from(words[pair + 1]) << 32;
        ((u128::from(wide) * u128::from(bound)) >> 64) as u64
    }

    /// Writes the list of uniforms, from its start.
    pub fn uniforms(&self, out: &mut [f32]) {
        self.list(out, |words| words.map(|lane| lane.map(|word| unit(word as u32))));
    }

    /// Writes the list of standard normals, from its start.
    pub fn normals(&self, out: &mut [f32]) {
        self.list(out, normal_lanes);
    }

    /// Writes the list of the numbers that `numbers` computes from the words.
    fn list(&self, out: &mut [f32], numbers: impl Fn(&[Lanes; 4]) -> [[f32; LANES]; 4]) {
        for (group, chunk) in out.chunks_mut(4 * LANES).enumerate() {
            let numbers = numbers(&self.lanes(0, (group * LANES) as u32));
            for (i, value) in chunk.iter_mut().enumerate() {
                *value = numbers[i % 4][i / 4];
            }
        }
    }

    /// The blocks of pixels `first_pixel .. first_pixel + LANES`: `[word][lane]`, equal to [`Stream::block`].
    #[inline(always)]
    pub fn lanes(&self, step_block: u32, first_pixel: u32) -> [Lanes; 4] {
        let mut c: [Lanes; 4] = [
            std::array::from_fn(|lane| u64::from(first_pixel.wrapping_add(lane as u32))),
            [u64::from(step_block); LANES],
            [u64::from(self.sample); LANES],
            [u64::from(self.tag); LANES],
        ];
        let mut key = self.key;
        for _ in 0..ROUNDS {
            // The high halves contain meaningless bits until the end; the multiplication does not read them.
            let mut next = [[0; LANES]; 4];
            for lane in 0..LANES {
                let p0 = u64::from(MULTIPLIER[0]) * (c[0][lane] & 0xFFFF_FFFF);
                let p1 = u64::from(MULTIPLIER[1]) * (c[2][lane] & 0xFFFF_FFFF);
                next[0][lane] = (p1 >> 32) ^ c[1][lane] ^ u64::from(key[0]);
                next[1][lane] = p1;
                next[2][lane] = (p0 >> 32) ^ c[3][lane] ^ u64::from(key[1]);
                next[3][lane] = p0;
            }
            c = next;
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        }
        c.map(|word| word.map(|x| x & 0xFFFF_FFFF))
    }
}

/// Counter 0 of a list's entry.
fn list_pixel(index: usize) -> u32 {
    u32::try_from(index / 4).expect("a list of random numbers has at most 2^34 entries")
}

/// The uniform of a word, in [0, 1).
#[inline(always)]
pub fn unit(word: u32) -> f32 {
    (word >> 8) as f32 * (1.0 / 16_777_216.0)
}

/// Standard normals of four words in each lane, equal to [`Stream::normal`].
#[inline(always)]
pub fn normal_lanes(words: &[Lanes; 4]) -> [[f32; LANES]; 4] {
    let [a, b] = pair_lanes(&words[0], &words[1]);
    let [c, d] = pair_lanes(&words[2], &words[3]);
    [a, b, c, d]
}

#[inline(always)]
fn pair_lanes(radius: &Lanes, angle: &Lanes) -> [[f32; LANES]; 2] {
    let mut out = [[0.0; LANES]; 2];
    for lane in 0..LANES {
        let [cosine, sine] = box_muller(radius[lane] as u32, angle[lane] as u32);
        out[0][lane] = cosine;
        out[1][lane] = sine;
    }
    out
}

/// Two independent standard normals, `sqrt(-2 ln u) * (cos a, sin a)` with `u = 1 - unit(radius)`, which is
/// never 0, and `a = 2 pi unit(angle)`. None is larger than 5.77 in magnitude.
#[inline(always)]
fn box_muller(radius: u32, angle: u32) -> [f32; 2] {
    let u = (0x100_0000 - (radius >> 8)) as f32 * (1.0 / 16_777_216.0);
    let r = (-2.0 * ln(u)).max(0.0).sqrt();
    let [cosine, sine] = cos_sin(angle >> 8);
    [r * cosine, r * sine]
}

/// Natural logarithm of a normal number, with an error of at most 1.2e-7 times the larger of 1 and the
/// magnitude of the result. It is a polynomial about 1, after the power of two has been factored out.
#[inline(always)]
fn ln(x: f32) -> f32 {
    let exponent = (x.to_bits() as i32).wrapping_sub(0x3F35_04F3) >> 23;
    let m = f32::from_bits((x.to_bits() as i32).wrapping_sub(exponent << 23) as u32) - 1.0;
    let e = exponent as f32;
    let mut p = 7.037_683_6e-2;
    for c in [
        -0.115_146_1,
        0.116_769_99,
        -0.124_201_41,
        0.142_493_23,
        -0.166_680_58,
        0.200_007_15,
        -0.249_999_94,
        0.333_333_3,
    ] {
        p = p * m + c;
    }
    let square = m * m;
    // ln 2 is split into two parts. The larger one has few digits, so its product with the exponent is exact.
    let low = p * m * square + e * -2.121_944_4e-4 - 0.5 * square;
    m + low + e * 0.693_359_4
}

/// Cosine and sine of `turn * 2^-24` turns. The nearest quarter turn is split off exactly, with integers.
#[inline(always)]
fn cos_sin(turn: u32) -> [f32; 2] {
    let quarter = (turn + (1 << 21)) >> 22;
    let x = (turn as i32 - (quarter << 22) as i32) as f32 * (std::f32::consts::TAU / 16_777_216.0);
    let z = x * x;
    let sine = ((-1.951_529_6e-4 * z + 8.332_161e-3) * z - 0.166_666_55) * z * x + x;
    let cosine = ((2.443_315_7e-5 * z - 1.388_731_6e-3) * z + 4.166_664_6e-2) * z * z - 0.5 * z + 1.0;
    let (c, s) = if quarter & 1 == 0 { (cosine, sine) } else { (sine, cosine) };
    let flip = |value: f32, negative: u32| f32::from_bits(value.to_bits() ^ (negative << 31));
    [flip(c, (quarter + 1) >> 1 & 1), flip(s, quarter >> 1 & 1)]
}

/// The order of the samples in an epoch: a permutation of `0..n` by the Fisher-Yates algorithm.
///
/// # Panics
/// If `n` does not fit in 32 bits.
pub fn shuffle(seed: u64, epoch: u32, n: usize) -> Vec<u32> {
    permutation(Stream::new(seed, Purpose::Shuffle, epoch, 0), n)
}

/// The permutation of `0..n` that a stream's list of integers defines.
///
/// # Panics
/// If `n` does not fit in 32 bits.
pub fn permutation(stream: Stream, n: usize) -> Vec<u32> {
    let end = u32::try_from(n).expect("a permutation of at most 2^32 - 1 entries");
    let mut order: Vec<u32> = (0..end).collect();
    for i in (1..n).rev() {
        order.swap(i, stream.below_at(i, i as u64 + 1) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers, published with the Random123 library.
    #[test]
    fn known_answers() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([!0; 4], [!0; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        assert_eq!(
            philox([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn packing_is_as_documented() {
        let stream = Stream::new(0x1122_3344_5566_7788, Purpose::Encode, 7, 9);
        assert_eq!(stream.word(6, 5), philox([5, 1, 9, 7 << 8 | 4], [0x5566_7788, 0x1122_3344])[2]);
        assert_eq!(stream.uniform_at(23), unit(philox([5, 0, 9, 7 << 8 | 4], [0x5566_7788, 0x1122_3344])[3]));
    }

    #[test]
    fn lanes_equal_blocks() {
        for (seed, epoch, sample, step, pixel) in
            [(0, 0, 0, 0, 0), (!0, 3, !0, !0, !0 - 3), (1 << 40 | 5, 150, 49_999, 24, 3056)]
        {
            let stream = Stream::new(seed, Purpose::Noise, epoch, sample);
            let lanes = stream.lanes(step, pixel);
            let normals = normal_lanes(&lanes);
            for lane in 0..LANES {
                let at = pixel.wrapping_add(lane as u32);
                assert_eq!(lanes.map(|word| word[lane] as u32), stream.block(step, at));
                for word in 0..4 {
                    let normal = stream.normal(step.wrapping_mul(4).wrapping_add(word), at);
                    if step < 1 << 30 {
                        assert_eq!(normals[word as usize][lane].to_bits(), normal.to_bits());
                    }
                }
            }
        }
    }

    #[test]
    fn lists_equal_single_entries() {
        let stream = Stream::new(5, Purpose::Initialise, 0, 2);
        for n in [0, 1, 63, 64, 65, 1000] {
            let (mut uniforms, mut normals) = (vec![f32::NAN; n], vec![f32::NAN; n]);
            stream.uniforms(&mut uniforms);
            stream.normals(&mut normals);
            for i in 0..n {
                assert_eq!(uniforms[i], stream.uniform_at(i));
                assert_eq!(normals[i], stream.normal_at(i));
            }
        }
    }

    /// The bits are fixed: a change of a polynomial or of the packing would change every published result.
    #[test]
    fn normals_keep_their_bits() {
        let stream = Stream::new(1, Purpose::Noise, 2, 3);
        let found: Vec<u32> = (0..4).map(|i| stream.normal_at(i).to_bits()).collect();
        assert_eq!(found, NORMAL_BITS, "{found:#x?}");
    }
    const NORMAL_BITS: [u32; 4] = [0xbd38_1b5f, 0x3e94_33ca, 0xbf96_8e1e, 0x3f54_5702];

    #[test]
    fn polynomials_are_accurate() {
        for word in (0..1u32 << 24).step_by(97).chain((1 << 24) - 2000..1 << 24) {
            let u = (0x100_0000 - word) as f32 / 16_777_216.0;
            let exact = f64::from(u).ln();
            assert!((f64::from(ln(u)) - exact).abs() <= 1.2e-7 * exact.abs().max(1.0), "ln {u}");
            let (s, c) = (f64::from(word) / 16_777_216.0 * std::f64::consts::TAU).sin_cos();
            let [cosine, sine] = cos_sin(word).map(f64::from);
            assert!((cosine - c).abs() < 1.5e-7 && (sine - s).abs() < 1.5e-7, "turn {word}");
        }
        assert_eq!(ln(1.0), 0.0);
    }

    /// Mean, variance, kurtosis and the tail beyond 3 of a million normals, each within 5 standard errors.
    #[test]
    fn normals_are_normal() {
        let mut z = vec![0.0; 1_000_000];
        Stream::new(3, Purpose::Noise, 0, 0).normals(&mut z);
        let n = z.len() as f64;
        let moment = |k: i32| z.iter().map(|&x| f64::from(x).powi(k)).sum::<f64>() / n;
        // Standard errors: the variance of z^k is m(2k) - m(k)^2 with moments 1, 3, 15, 105, 945, ...
        assert!(moment(1).abs() < 5.0 * (1.0 / n).sqrt());
        assert!((moment(2) - 1.0).abs() < 5.0 * (2.0 / n).sqrt());
        assert!(moment(3).abs() < 5.0 * (15.0 / n).sqrt());
        assert!((moment(4) - 3.0).abs() < 5.0 * (96.0 / n).sqrt());
        let tail = z.iter().filter(|x| x.abs() > 3.0).count() as f64;
        assert!((tail - 2699.8).abs() < 5.0 * 2699.8f64.sqrt(), "{tail}");
        let neighbours = z.windows(2).map(|w| f64::from(w[0] * w[1])).sum::<f64>() / n;
        assert!(neighbours.abs() < 5.0 / n.sqrt());
    }

    #[test]
    fn shuffles_are_permutations_of_seed_and_epoch() {
        let order = shuffle(1, 4, 1000);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert!(sorted.iter().enumerate().all(|(i, &x)| i == x as usize));
        assert_eq!(order, shuffle(1, 4, 1000));
        assert_ne!(order, shuffle(1, 5, 1000));
        assert_ne!(order, shuffle(2, 4, 1000));
        assert_eq!((shuffle(1, 1, 0), shuffle(1, 1, 1)), (vec![], vec![0]));
    }

    /// All 24 orders of four are equally likely: chi-squared, 23 degrees of freedom, limit at 1e-6.
    #[test]
    fn shuffles_are_fair() {
        let mut counts = std::collections::BTreeMap::new();
        for epoch in 0..24_000 {
            *counts.entry(shuffle(9, epoch, 4)).or_insert(0) += 1;
        }
        let chi: f64 = counts.values().map(|&n: &i32| f64::from(n - 1000).powi(2) / 1000.0).sum();
        assert!(counts.len() == 24 && chi < 71.0, "{chi}");
    }
}
