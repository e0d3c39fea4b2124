//! Intervals of means over a few seeds and of fractions of a few hundred images.
//!
//! Three seeds give two degrees of freedom, for which a normal quantile would make an interval less than half
//! as wide as it must be. Student's t is therefore computed from the regularised incomplete beta function.
//! Functions that have no result (one seed, no images) return `None`; a table then has an empty cell.

/// Confidence level of every interval in the tables.
pub const CONFIDENCE: f64 = 0.95;

/// A value with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The value.
    pub mean: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Estimate {
    /// The estimate on another scale; `scale` must be increasing.
    pub fn map(self, scale: impl Fn(f64) -> f64) -> Self {
        Estimate { mean: scale(self.mean), low: scale(self.low), high: scale(self.high) }
    }
}

/// `ln(Gamma(x))` for `x > 0` (Lanczos, g = 7, nine terms; relative error below 1e-14).
pub fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        let pi = std::f64::consts::PI;
        return (pi / (pi * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let base = x + 7.5;
    let sum = TERMS.iter().enumerate().skip(1).fold(TERMS[0], |sum, (i, term)| sum + term / (x + i as f64));
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * base.ln() - base + sum.ln()
}

/// The regularised incomplete beta function `I_x(a, b)`: the probability that a Beta(a, b) variable is at
/// most `x`. It is computed from a continued fraction by Lentz's method, on the side of the mean where it
/// converges quickly.
pub fn regularised_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - regularised_beta(1.0 - x, b, a);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp() / a;
    let not_zero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let (mut c, mut d) = (1.0, 1.0 / not_zero(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for m in 1..500 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        for term in [even, odd] {
            d = 1.0 / not_zero(1.0 + term * d);
            c = not_zero(1.0 + term / c);
            fraction *= d * c;
        }
        if (d * c - 1.0).abs() < 1e-15 {
            break;
        }
    }
    front * fraction
}

/// The value that a Student t variable with `freedom` degrees of freedom stays within (two-sided) with the
/// given probability: 4.303 for 2 degrees at 95 %.
///
/// # Panics
/// If `freedom` is not positive or `probability` not strictly between 0 and 1.
pub fn student_quantile(probability: f64, freedom: f64) -> f64 {
    assert!(freedom > 0.0 && probability > 0.0 && probability < 1.0, "no such quantile");
    // P(|t| > q) = I_y(freedom/2, 1/2) with y = freedom / (freedom + q^2); bisection in y, which is monotone.
    let outside = 1.0 - probability;
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle == low || middle == high {
            break; // no number lies between them
        }
        if regularised_beta(middle, 0.5 * freedom, 0.5) < outside {
            low = middle;
        } else {
            high = middle;
        }
    }
    let y = 0.5 * (low + high);
    (freedom * (1.0 - y) / y).sqrt()
}

/// Mean; `None` if there are no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Standard error of the mean from the sample's own spread; `None` for fewer than two values.
pub fn standard_error(values: &[f64]) -> Option<f64> {
    let (n, mean) = (values.len(), mean(values)?);
    if n < 2 {
        return None;
    }
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    Some((squares / ((n - 1) as f64 * n as f64)).sqrt())
}

/// Student's t interval of a mean; `None` for fewer than two values.
pub fn mean_interval(values: &[f64]) -> Option<Estimate> {
    let (mean, error) = (mean(values)?, standard_error(values)?);
    let half = student_quantile(CONFIDENCE, (values.len() - 1) as f64) * error;
    Some(Estimate { mean, low: mean - half, high: mean + half })
}

/// Probability that a Student t variable with `freedom` degrees of freedom lies further from 0 than `t`, on
/// either side.
pub fn student_outside(t: f64, freedom: f64) -> f64 {
    regularised_beta(freedom / (freedom + t * t), 0.5 * freedom, 0.5)
}

/// Wilson's score interval of a fraction, `successes` of `trials`; `None` for no trials. Successes may be a
/// mean over several presentations of the same trials.
///
/// It stays within [0, 1] and has the right coverage near 0 and 1 too, where the accuracies of good networks
/// are.
pub fn wilson(successes: f64, trials: u64) -> Option<Estimate> {
    // Normal quantile of the two-sided 95 % interval.
    const Z: f64 = 1.959_963_984_540_054;
    if trials == 0 || !(0.0..=trials as f64).contains(&successes) {
        return None;
    }
    let n = trials as f64;
    let mean = successes / n;
    let denominator = 1.0 + Z * Z / n;
    let centre = (mean + Z * Z / (2.0 * n)) / denominator;
    let half = Z * (mean * (1.0 - mean) / n + Z * Z / (4.0 * n * n)).sqrt() / denominator;
    // At the ends the formula gives 0 and 1 up to rounding; the mean must lie inside.
    let low = if successes == 0.0 { 0.0 } else { (centre - half).clamp(0.0, mean) };
    let high = if successes == n { 1.0 } else { (centre + half).clamp(mean, 1.0) };
    Some(Estimate { mean, low, high })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gamma_of_known_arguments() {
        // Gamma(1/2) = sqrt(pi), Gamma(5) = 24, Gamma(0.1) = 9.513507698668731...
        for (x, gamma) in [(0.5, std::f64::consts::PI.sqrt()), (5.0, 24.0), (0.1, 9.513_507_698_668_732)] {
            assert!((ln_gamma(x).exp() / gamma - 1.0).abs() < 1e-13, "{x}");
        }
        // Stirling's series at 1000 to 1/(1260 x^5).
        let x: f64 = 1000.0;
        let stirling = (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + 1.0 / (12.0 * x)
            - 1.0 / (360.0 * x.powi(3));
        assert!((ln_gamma(x) / stirling - 1.0).abs() < 1e-14);
    }

    #[test]
    fn beta_in_closed_form() {
        for x in [0.01, 0.3, 0.5, 0.77, 0.999] {
            assert!((regularised_beta(x, 1.0, 3.0) - (1.0 - (1.0 - x).powi(3))).abs() < 1e-14);
            assert!((regularised_beta(x, 4.0, 1.0) - x.powi(4)).abs() < 1e-14);
            let arcsine = 2.0 / std::f64::consts::PI * x.sqrt().asin();
            assert!((regularised_beta(x, 0.5, 0.5) - arcsine).abs() < 1e-13);
            // Binomial tail: I_x(k, n-k+1) = P(at least k of n).
            let tail: f64 = (3..=5)
                .map(|k| [0.0, 0.0, 0.0, 10.0, 5.0, 1.0][k] * x.powi(k as i32) * (1.0 - x).powi(5 - k as i32))
                .sum();
            assert!((regularised_beta(x, 3.0, 3.0) - tail).abs() < 1e-14);
        }
        assert_eq!((regularised_beta(0.0, 2.0, 2.0), regularised_beta(1.0, 2.0, 2.0)), (0.0, 1.0));
    }

    #[test]
    fn student_quantiles_as_tabulated() {
        let table = [(1.0, 12.7062), (2.0, 4.30265), (4.0, 2.77645), (9.0, 2.26216), (30.0, 2.04227)];
        for (freedom, quantile) in table {
            let ours = student_quantile(0.95, freedom);
            assert!((ours / quantile - 1.0).abs() < 1e-5, "{freedom}: {ours}");
        }
        // One degree of freedom is a Cauchy variable, two have a closed form too.
        let cauchy = (std::f64::consts::FRAC_PI_2 * 0.9).tan();
        assert!((student_quantile(0.9, 1.0) / cauchy - 1.0).abs() < 1e-12);
        let two = 0.9 * (2.0_f64 / (1.0 - 0.81)).sqrt();
        assert!((student_quantile(0.9, 2.0) / two - 1.0).abs() < 1e-12);
        assert!((student_quantile(0.95, 1e7) - 1.959_964).abs() < 1e-5);
    }

    #[test]
    fn intervals_of_means() {
        let interval = mean_interval(&[1.0, 2.0, 3.0]).unwrap();
        // Standard error 1/sqrt(3), quantile 4.30265.
        assert!((interval.mean - 2.0).abs() < 1e-15 && (interval.high - 2.0 - 2.484_14).abs() < 1e-4);
        assert!((interval.low + interval.high - 4.0).abs() < 1e-12);
        assert_eq!(mean_interval(&[1.0]), None);
        assert_eq!(mean(&[]), None);
        let constant = mean_interval(&[0.5; 4]).unwrap();
        assert_eq!((constant.low, constant.high), (0.5, 0.5));
    }

    #[test]
    fn tails_and_quantiles_agree() {
        for freedom in [1.0, 2.5, 5.0, 40.0] {
            for probability in [0.5, 0.9, 0.95, 0.999] {
                let outside = student_outside(student_quantile(probability, freedom), freedom);
                assert!((outside + probability - 1.0).abs() < 1e-10, "{freedom} {probability} {outside}");
            }
        }
        assert_eq!(student_outside(0.0, 3.0), 1.0);
    }

    #[test]
    fn wilson_as_published() {
        // Newcombe (1998), table I, method 3: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
        for (successes, trials, low, high) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let interval = wilson(f64::from(successes), trials).unwrap();
            assert!((interval.low - low).abs() < 6e-5 && (interval.high - high).abs() < 6e-5, "{interval:?}");
        }
        let all = wilson(7.0, 7).unwrap();
        assert_eq!((all.mean, all.high), (1.0, 1.0));
        assert_eq!((wilson(0.0, 0), wilson(3.0, 2)), (None, None));
    }
}
