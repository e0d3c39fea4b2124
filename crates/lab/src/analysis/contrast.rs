//! Comparison of two conditions in pairs of runs that have the same seed and are shown the same images.
//!
//! Differences vary between seeds and between images. An interval from seeds alone would be too narrow if
//! three pairs happen to agree, and one from images alone would ignore that another training gives another
//! network. Both are therefore included: the variance of a mean over crossed seeds and images is `V_seeds +
//! V_images - V_both` (each is a variance of means, and the last is contained in both others). Each part has
//! its own degrees of freedom `S - 1` and `N - 1` for `S` seeds and `N` images, so the half-width is
//! `sqrt(t(S - 1)^2 V_seeds + t(N - 1)^2 (V_images - V_both))`, and at least `t(N - 1) sqrt(V_images)`. One
//! number of degrees of freedom for the sum, estimated from the same variances (Satterthwaite), would give
//! intervals that are too narrow with few seeds: two of them would cover the true value in 89 % of studies.
//! The p value is the level at which such an interval would just touch 0.

use super::statistics::{CONFIDENCE, Estimate, mean, student_outside, student_quantile};
use std::sync::OnceLock;

/// Fewest pairs of runs from which an interval can be made.
pub const MINIMUM_PAIRS: usize = 2;
/// Power at which numbers of runs are planned.
const POWER: f64 = 0.8;
/// Central share of a distribution that ends, on one side, at the power.
const ONE_SIDED_POWER: f64 = 2.0 * POWER - 1.0;
/// Shares whose quantiles are needed again and again.
const SHARES: [f64; 3] = [CONFIDENCE, POWER, ONE_SIDED_POWER];

/// A mean difference with its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contrast {
    /// Mean over pairs.
    pub mean: f64,
    /// Pairs of runs.
    pub pairs: usize,
    /// Interval and p value; `None` for fewer than two pairs.
    pub worth: Option<Worth>,
}

/// The uncertainty of a mean difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Worth {
    /// The 95 % interval.
    pub interval: Estimate,
    /// Two-sided p value of no difference.
    pub p: f64,
    /// Standard error over seeds.
    pub seed_error: f64,
    /// Standard error over images, where differences of single images are known.
    pub image_error: Option<f64>,
    /// The part of the variance that does not shrink with more seeds: that of the images alone.
    image_variance: f64,
    /// Degrees of freedom of the variance over images.
    image_freedom: f64,
    /// The part of the variance that both contain.
    both: f64,
}

impl Contrast {
    /// The contrast from one difference per seed, of a quantity that is not measured image by image. There is
    /// no interval if all differences are the same (up to rounding): they say nothing about the variation
    /// between seeds.
    pub fn of_seeds(differences: &[f64]) -> Option<Self> {
        let (mean, pairs) = (mean(differences)?, differences.len());
        let (s, squares) = (pairs as f64, differences.iter().map(|x| (x - mean).powi(2)).sum::<f64>());
        let varies = differences.iter().any(|x| (x - mean).abs() > 1e-9 * mean.abs());
        let worth = || Worth::new(mean, squares / ((s - 1.0) * s), s - 1.0, None);
        Some(Contrast { mean, pairs, worth: (pairs >= MINIMUM_PAIRS && varies).then(worth) })
    }

    /// The contrast from the differences of single images, `[seed][image]`; all seeds have the same images.
    /// There is no interval from a single image, because it says nothing about others.
    pub fn crossed(differences: &[Vec<f64>]) -> Option<Self> {
        let (pairs, images) = (differences.len(), differences.first()?.len());
        if images == 0 || differences.iter().any(|row| row.len() != images) {
            return None;
        }
        let (s, n) = (pairs as f64, images as f64);
        let of_seed: Vec<f64> = differences.iter().map(|row| row.iter().sum::<f64>() / n).collect();
        let of_image: Vec<f64> =
            (0..images).map(|i| differences.iter().map(|row| row[i]).sum::<f64>() / s).collect();
        let mean = mean(&of_seed)?;
        if pairs < MINIMUM_PAIRS || images < 2 {
            return Some(Contrast { mean, pairs, worth: None });
        }
        let squares = |values: &[f64]| values.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
        let (seeds, image) = (squares(&of_seed) / ((s - 1.0) * s), squares(&of_image) / ((n - 1.0) * n));
        let mut rest = 0.0;
        for (row, of_seed) in differences.iter().zip(&of_seed) {
            for (x, of_image) in row.iter().zip(&of_image) {
                rest += (x - of_seed - of_image + mean).powi(2);
            }
        }
        let both = rest / ((s - 1.0) * (n - 1.0) * s * n);
        let worth = Worth::new(mean, seeds, s - 1.0, Some((image, n - 1.0, both)));
        Some(Contrast { mean, pairs, worth: Some(worth) })
    }

    /// The contrast on another scale, such as from logarithms to ratios. Standard errors stay as they are.
    pub fn scaled(self, scale: impl Fn(f64) -> f64) -> Self {
        let worth = self.worth.map(|worth| Worth { interval: worth.interval.map(&scale), ..worth });
        Contrast { mean: scale(self.mean), worth, ..self }
    }

    /// The interval, if there is one.
    pub fn interval(&self) -> Option<Estimate> {
        self.worth.map(|worth| worth.interval)
    }

    /// Pairs of runs that are needed to find a true effect of size `effect` with a power of 80 %, given the
    /// observed variance; `None` if no number suffices because there are too few test images.
    pub fn pairs_needed(&self, effect: f64) -> Option<u64> {
        // The interval must exclude 0 on one side.
        self.pairs_for(effect, ONE_SIDED_POWER)
    }

    /// If there is no difference, the pairs of runs that are needed for an interval within `margin` of 0 on
    /// both sides, with a power of 80 %.
    pub fn pairs_needed_for_equality(&self, margin: f64) -> Option<u64> {
        self.pairs_for(margin, POWER)
    }

    /// Pairs of runs that are needed so that the half-width of the interval plus the largest deviation of the
    /// mean from its true value, in the central share `central` of studies, is at most `room`.
    fn pairs_for(&self, room: f64, central: f64) -> Option<u64> {
        const MOST: u64 = 10_000;
        let worth = self.worth?;
        let of_one_pair = worth.seed_error.powi(2) * self.pairs as f64;
        let half = |share: f64, pairs: u64| {
            let seeds = (of_one_pair / pairs as f64, (pairs - 1) as f64);
            let both = worth.both * self.pairs as f64 / pairs as f64;
            half_width(share, seeds, worth.image_variance, both, worth.image_freedom)
        };
        let enough = |pairs: u64| half(CONFIDENCE, pairs) + half(central, pairs) <= room;
        if !enough(MOST) {
            return None;
        }
        // The pairs at hand did not suffice.
        let (mut low, mut high) = (self.pairs as u64 + 1, MOST);
        while low < high {
            let middle = low.midpoint(high);
            if enough(middle) { high = middle } else { low = middle + 1 }
        }
        Some(low)
    }
}

/// Half-width of the interval that contains the central `share`, from the variance over seeds with its
/// degrees of freedom, the variance over images alone, the part that both contain, and the images' degrees of
/// freedom.
fn half_width(share: f64, seeds: (f64, f64), alone: f64, both: f64, image_freedom: f64) -> f64 {
    let squared = |variance: f64, freedom: f64| match variance > 0.0 {
        true => quantile(share, freedom as usize).powi(2) * variance,
        false => 0.0,
    };
    let together = squared(seeds.0, seeds.1) + squared(alone, image_freedom);
    together.max(squared(alone + both, image_freedom)).sqrt()
}

/// Student's quantile of the central `share`. A study needs it thousands of times for a few numbers of
/// degrees of freedom, so each is computed once.
fn quantile(share: f64, freedom: usize) -> f64 {
    type Row = [OnceLock<f64>; 4096];
    static QUANTILES: [Row; SHARES.len()] = [const { [const { OnceLock::new() }; 4096] }; SHARES.len()];
    let compute = || student_quantile(share, freedom as f64);
    let row = SHARES.iter().position(|&known| known == share).map(|i| &QUANTILES[i]);
    row.and_then(|row| row.get(freedom)).map_or_else(compute, |quantile| *quantile.get_or_init(compute))
}

/// The level `p` at which the interval of a mean would just touch 0: the half-width of the interval that
/// contains the central share `1 - p` is `|mean|`.
fn touching(mean: f64, seeds: (f64, f64), alone: f64, both: f64, image_freedom: f64) -> f64 {
    let of = |variance: f64, freedom: f64| match (variance > 0.0, mean == 0.0) {
        (true, _) => student_outside(mean / variance.sqrt(), freedom),
        (false, true) => 1.0,
        (false, false) => 0.0,
    };
    let together = match (seeds.0 > 0.0, alone > 0.0) {
        (true, true) => touching_both(mean, seeds, (alone, image_freedom)),
        (true, false) => of(seeds.0, seeds.1),
        (false, _) => of(alone, image_freedom),
    };
    // The wider of two intervals touches 0 at the larger level.
    together.max(of(alone + both, image_freedom))
}

/// The level `p` with `t(a)^2 V(a) + t(b)^2 V(b) = mean^2`, where `t` are Student's quantiles for `p` with
/// the degrees of freedom of two variances. `mean^2` is divided between them by an angle, until both
/// quantiles have the same level: the root of an increasing function, by false position (the Illinois
/// variant, which halves the value at an end that stays).
fn touching_both(mean: f64, a: (f64, f64), b: (f64, f64)) -> f64 {
    let level = |share: f64, (variance, freedom): (f64, f64)| {
        student_outside(mean * share / variance.sqrt(), freedom).max(f64::MIN_POSITIVE)
    };
    let difference = |angle: f64| level(angle.cos(), a).ln() - level(angle.sin(), b).ln();
    let [low, high] = [0.0, std::f64::consts::FRAC_PI_2];
    let (mut low, mut high) = ((low, difference(low)), (high, difference(high)));
    let mut angle = low.0;
    // Both values are 0 if the mean is 0.
    while low.1 < 0.0 && high.1 > 0.0 && high.0 - low.0 > 1e-15 {
        angle = (low.0 * high.1 - high.0 * low.1) / (high.1 - low.1);
        let value = difference(angle);
        if value.abs() < 1e-12 {
            break;
        }
        if value < 0.0 {
            (low, high.1) = ((angle, value), 0.5 * high.1);
        } else {
            (high, low.1) = ((angle, value), 0.5 * low.1);
        }
    }
    level(angle.cos(), a)
}

impl Worth {
    /// From the variance over seeds and its degrees of freedom. `images` contains the variance over images,
    /// its degrees of freedom, and the part of the variance that both contain.
    fn new(mean: f64, seeds: f64, freedom: f64, images: Option<(f64, f64, f64)>) -> Self {
        let (image, image_freedom, both) = images.unwrap_or((0.0, freedom, 0.0));
        let (alone, both) = ((image - both).max(0.0), both.min(image));
        let half = half_width(CONFIDENCE, (seeds, freedom), alone, both, image_freedom);
        // If no image was answered differently, the variance over images is 0. That still allows for a
        // difference in the answers to other images: "the rule of three".
        let half =
            if images.is_some() && image == 0.0 { half.max(3.0 / (image_freedom + 1.0)) } else { half };
        Worth {
            interval: Estimate { mean, low: mean - half, high: mean + half },
            p: touching(mean, (seeds, freedom), alone, both, image_freedom),
            seed_error: seeds.sqrt(),
            image_error: images.map(|_| image.sqrt()),
            image_variance: alone,
            image_freedom,
            both,
        }
    }
}

/// Holm's correction. If all hypotheses with a corrected p value of at most 5 % are rejected, the probability
/// of any false rejection in the family is at most 5 %.
pub fn holm(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut corrected = vec![0.0; values.len()];
    let mut largest: f64 = 0.0;
    for (rank, &i) in order.iter().enumerate() {
        largest = largest.max((values.len() - rank) as f64 * values[i]).min(1.0);
        corrected[i] = largest;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_alone_are_students_t() {
        let contrast = Contrast::of_seeds(&[1.0, 2.0, 3.0]).unwrap();
        let interval = contrast.interval().unwrap();
        // Standard error 1/sqrt(3), quantile 4.30265.
        assert!((interval.mean - 2.0).abs() < 1e-15 && (interval.high - 2.0 - 2.484_14).abs() < 1e-4);
        assert_eq!(Contrast::of_seeds(&[1.0]).unwrap().worth, None);
        assert_eq!(Contrast::of_seeds(&[0.1, 0.1 + 1e-17, 0.3 - 0.2]).unwrap().worth, None);
        assert_eq!(Contrast::of_seeds(&[]), None);
    }

    #[test]
    fn images_are_a_floor() {
        // Three seeds that agree exactly on the mean, on images that differ: +1 on half of them, 0 on the
        // rest.
        let row: Vec<f64> = (0..100).map(|i| f64::from(i % 2)).collect();
        let contrast = Contrast::crossed(&[row.clone(), row.clone(), row]).unwrap();
        let worth = contrast.worth.unwrap();
        assert_eq!(worth.seed_error, 0.0);
        let floor = (0.25 / 99.0_f64).sqrt();
        assert!((worth.image_error.unwrap() - floor).abs() < 1e-12);
        let half = 0.5 * (worth.interval.high - worth.interval.low);
        assert!(half > 1.95 * floor && half < 2.0 * floor, "{half} {floor}");
        // No number of seeds compensates for too few images.
        assert_eq!(contrast.pairs_needed(0.01), None);
        assert_eq!(contrast.pairs_needed(0.5), Some(4), "more than there are");
    }

    #[test]
    fn variances_of_crossed_means_add_up() {
        // Seed effects -1, 0, 1 and image effects -2, 0, 2 without interaction.
        let rows: Vec<Vec<f64>> =
            [-1.0, 0.0, 1.0].iter().map(|s| [-2.0, 0.0, 2.0].iter().map(|i| 5.0 + s + i).collect()).collect();
        let worth = Contrast::crossed(&rows).unwrap().worth.unwrap();
        assert!((worth.seed_error.powi(2) - 1.0 / 3.0).abs() < 1e-12);
        assert!((worth.image_error.unwrap().powi(2) - 4.0 / 3.0).abs() < 1e-12);
        // Both have two degrees of freedom.
        let error = (5.0_f64 / 3.0).sqrt();
        let half = 0.5 * (worth.interval.high - worth.interval.low);
        assert!((half / error - student_quantile(0.95, 2.0)).abs() < 1e-9);
    }

    #[test]
    fn interval_and_p_value_agree() {
        // A mean at the very end of its interval has p = 5 %, however the variance is divided.
        // Few seeds with many images, and fewer images than seeds.
        for (of_seeds, of_images) in [(3.0, 354.0), (11.0, 2.0)] {
            for (seeds, image, both) in [(1.0, 0.0, 0.0), (1.0, 3.0, 0.1), (0.01, 2.0, 0.0), (0.0, 1.0, 0.9)]
            {
                let at = |mean: f64| Worth::new(mean, seeds, of_seeds, Some((image, of_images, both)));
                let half = at(0.0).interval.high;
                assert!((at(half).p - 0.05).abs() < 1e-9, "{}", at(half).p);
                assert!(at(1.01 * half).p < 0.05 && at(0.99 * half).p > 0.05);
                // At every other level as well, where Holm's correction uses it.
                for level in [0.3, 0.05 / 4.0, 0.05 / 32.0, 1e-7] {
                    let both = f64::min(both, image);
                    let half =
                        half_width(1.0 - level, (seeds, of_seeds), (image - both).max(0.0), both, of_images);
                    assert!((at(half).p / level - 1.0).abs() < 1e-6, "{level}: {}", at(half).p);
                }
                // Never narrower than the seeds alone or the images alone allow.
                for (variance, freedom) in [(seeds, of_seeds), (image, of_images)] {
                    assert!(half >= student_quantile(0.95, freedom) * f64::sqrt(variance) - 1e-12);
                }
            }
        }
    }

    #[test]
    fn two_seeds_are_not_significant_at_small_levels() {
        // Two seeds whose gains of 7 and 7.2 points happen to agree, on 1,000 images.
        let row = |gain: usize| (0..1000).map(|i| f64::from(u8::from(i < gain))).collect::<Vec<_>>();
        let worth = Contrast::crossed(&[row(70), row(72)]).unwrap().worth.unwrap();
        // Student's t with the degrees of freedom of the images would give 1e-16.
        let t = 0.071 / (worth.seed_error.powi(2) + worth.image_error.unwrap().powi(2)).sqrt();
        assert!(student_outside(t, 999.0) < 1e-15 && worth.p > 1e-4, "{}", worth.p);
        assert!(worth.p < 0.05 && worth.interval.low > 0.0);
    }

    #[test]
    fn images_without_a_difference_leave_room_for_one() {
        let contrast = Contrast::crossed(&[vec![0.0; 300], vec![0.0; 300]]).unwrap();
        let worth = contrast.worth.unwrap();
        assert_eq!((worth.interval.low, worth.interval.high, worth.p), (-0.01, 0.01, 1.0));
    }

    #[test]
    fn a_single_image_gives_no_interval() {
        let contrast = Contrast::crossed(&[vec![0.0], vec![0.0]]).unwrap();
        assert_eq!((contrast.mean, contrast.pairs, contrast.worth), (0.0, 2, None));
    }

    #[test]
    fn more_seeds_for_smaller_effects() {
        let contrast = Contrast::of_seeds(&[0.01, 0.03, -0.01, 0.02]).unwrap();
        // Standard deviation 0.0171: n = ((t + t') 0.0171 / 0.02)^2 is solved by 8 pairs.
        assert_eq!(contrast.pairs_needed(0.02), Some(8));
        assert!(contrast.pairs_needed(0.01).unwrap() > 20);
    }

    #[test]
    fn holms_correction_by_hand() {
        assert_eq!(holm(&[0.01, 0.04, 0.03]), [0.03, 0.06, 0.06]);
        assert_eq!(holm(&[0.5, 0.9]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }
}
