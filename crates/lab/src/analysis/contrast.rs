//! Two conditions compared pair by pair: runs with the same seed, shown the same images.
//!
//! Differences vary between seeds and between images. Seeds alone would make an interval narrower than luck
//! where three pairs happen to agree, and images alone would forget that another training gives another
//! network. Both count: the variance of a mean over crossed seeds and images is `V_seeds + V_images - V_both`
//! (each a variance of means, the last one counted in both), and never less than either.

use super::statistics::{CONFIDENCE, Estimate, mean, student_outside, student_quantile};

/// Fewest pairs of runs from which an interval can be made.
pub const MINIMUM_PAIRS: usize = 2;
/// Power at which numbers of runs are planned.
const POWER: f64 = 0.8;

/// A mean difference and what it is worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contrast {
    /// Mean over pairs.
    pub mean: f64,
    /// Pairs of runs.
    pub pairs: usize,
    /// Interval and p value; none of fewer than two pairs.
    pub worth: Option<Worth>,
}

/// What a mean difference is worth.
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
    /// The part of the variance that shrinks neither with more seeds: that of the images alone.
    image_variance: f64,
}

impl Contrast {
    /// From one difference per seed.
    pub fn of_seeds(differences: &[f64]) -> Option<Self> {
        let rows: Vec<Vec<f64>> = differences.iter().map(|&d| vec![d]).collect();
        Self::crossed(&rows)
    }

    /// From the differences of single images, `[seed][image]`; all seeds have the same images. One image per
    /// seed stands for a quantity that has no images.
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
        if pairs < MINIMUM_PAIRS {
            return Some(Contrast { mean, pairs, worth: None });
        }
        let squares = |values: &[f64]| values.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
        let seeds = squares(&of_seed) / ((s - 1.0) * s);
        let worth = if images == 1 {
            Worth::new(mean, seeds, s - 1.0, None)
        } else {
            let image = squares(&of_image) / ((n - 1.0) * n);
            let mut rest = 0.0;
            for (row, of_seed) in differences.iter().zip(&of_seed) {
                for (x, of_image) in row.iter().zip(&of_image) {
                    rest += (x - of_seed - of_image + mean).powi(2);
                }
            }
            let both = rest / ((s - 1.0) * (n - 1.0) * s * n);
            Worth::new(mean, seeds, s - 1.0, Some((image, n - 1.0, both)))
        };
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

    /// Pairs of runs with which a true effect of size `effect` would be found with a power of 80 %, from the
    /// variance observed; `None` where no number would do, because the test images are too few.
    pub fn pairs_needed(&self, effect: f64) -> Option<u64> {
        // One-sided 80 %: the interval must exclude 0 on one side.
        self.pairs_for(effect, 2.0 * POWER - 1.0)
    }

    /// Pairs of runs after which an interval lies within `margin` of 0 on both sides, with a power of 80 %, if
    /// there is no difference.
    pub fn pairs_needed_for_equality(&self, margin: f64) -> Option<u64> {
        self.pairs_for(margin, POWER)
    }

    /// Pairs of runs after which the half-width of the interval, and how far the mean strays from its truth in
    /// the central share `central` of studies, together are at most `room`.
    fn pairs_for(&self, room: f64, central: f64) -> Option<u64> {
        const MOST: u64 = 10_000;
        let worth = self.worth?;
        let of_one_pair = worth.seed_error.powi(2) * self.pairs as f64;
        let enough = |pairs: u64| {
            let freedom = (pairs - 1) as f64;
            let error = (of_one_pair / pairs as f64 + worth.image_variance).sqrt();
            (student_quantile(CONFIDENCE, freedom) + student_quantile(central, freedom)) * error <= room
        };
        if !enough(MOST) {
            return None;
        }
        let (mut low, mut high) = (MINIMUM_PAIRS as u64, MOST);
        while low < high {
            let middle = low.midpoint(high);
            if enough(middle) { high = middle } else { low = middle + 1 }
        }
        Some(low)
    }
}

impl Worth {
    /// From the variance over seeds with its degrees of freedom, and that over images with its own and the
    /// part that both have counted.
    fn new(mean: f64, seeds: f64, freedom: f64, images: Option<(f64, f64, f64)>) -> Self {
        let (image, image_freedom, both) = images.unwrap_or((0.0, 1.0, 0.0));
        let variance = (seeds + image - both).max(seeds).max(image);
        // Satterthwaite's degrees of freedom, never fewer than the seeds alone have.
        let total = seeds.powi(2) / freedom + image.powi(2) / image_freedom;
        let freedom = if total > 0.0 { (variance.powi(2) / total).max(freedom) } else { freedom };
        let error = variance.sqrt();
        let half = student_quantile(CONFIDENCE, freedom) * error;
        let p = match (error > 0.0, mean == 0.0) {
            (true, _) => student_outside(mean / error, freedom),
            (false, true) => 1.0,
            (false, false) => 0.0,
        };
        Worth {
            interval: Estimate { mean, low: mean - half, high: mean + half },
            p,
            seed_error: seeds.sqrt(),
            image_error: images.map(|_| image.sqrt()),
            image_variance: (image - both).max(0.0),
        }
    }
}

/// Holm's correction: p values such that rejecting those of at most 5 % makes an error anywhere in the family
/// with a probability of at most 5 %.
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
        // No number of seeds makes up for too few images.
        assert_eq!(contrast.pairs_needed(0.01), None);
        assert_eq!(contrast.pairs_needed(0.5), Some(3));
    }

    #[test]
    fn variances_of_crossed_means_add_up() {
        // Seed effects -1, 0, 1 and image effects -2, 0, 2 without interaction.
        let rows: Vec<Vec<f64>> =
            [-1.0, 0.0, 1.0].iter().map(|s| [-2.0, 0.0, 2.0].iter().map(|i| 5.0 + s + i).collect()).collect();
        let worth = Contrast::crossed(&rows).unwrap().worth.unwrap();
        assert!((worth.seed_error.powi(2) - 1.0 / 3.0).abs() < 1e-12);
        assert!((worth.image_error.unwrap().powi(2) - 4.0 / 3.0).abs() < 1e-12);
        let error = (5.0_f64 / 3.0).sqrt();
        let half = 0.5 * (worth.interval.high - worth.interval.low);
        let freedom = (25.0 / 9.0) / (1.0 / 18.0 + 16.0 / 18.0);
        assert!((half / error - student_quantile(0.95, freedom)).abs() < 1e-9);
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
