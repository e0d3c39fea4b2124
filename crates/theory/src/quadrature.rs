//! Integration of smooth functions by Gauss-Legendre panels, which are fixed where their width is known
//! beforehand, and adaptive where it is not.

use std::sync::LazyLock;

/// Number of points of the rule, which is exact for polynomials up to degree 31.
pub(crate) const POINTS: usize = 16;

/// Nodes in (-1, 1) and weights of the 16-point Gauss-Legendre rule.
pub(crate) static RULE: LazyLock<[(f64, f64); POINTS]> = LazyLock::new(|| {
    let n = POINTS as f64;
    std::array::from_fn(|i| {
        let mut x = (std::f64::consts::PI * (i as f64 + 0.75) / (n + 0.5)).cos();
        for _ in 0..6 {
            let (p, slope) = legendre(x);
            x -= p / slope;
        }
        let (_, slope) = legendre(x);
        (x, 2.0 / ((1.0 - x * x) * slope * slope))
    })
});

/// Legendre polynomial of degree [`POINTS`] and its derivative.
fn legendre(x: f64) -> (f64, f64) {
    let (mut before, mut p) = (1.0, x);
    for k in 2..=POINTS {
        let k = k as f64;
        (before, p) = (p, ((2.0 * k - 1.0) * x * p - (k - 1.0) * before) / k);
    }
    (p, POINTS as f64 * (x * p - before) / (x * x - 1.0))
}

/// `integral_from^to f` by one panel.
fn panel(f: &mut impl FnMut(f64) -> f64, from: f64, to: f64) -> f64 {
    let (centre, half) = (0.5 * (from + to), 0.5 * (to - from));
    half * RULE.iter().map(|&(x, weight)| weight * f(centre + half * x)).sum::<f64>()
}

/// `integral_from^to f`, by halving panels until two halves agree with the whole panel within `tolerance` of
/// the result found so far. Halving ends after 40 levels, which is enough to come within rounding of a
/// logarithmic singularity at an end point. End points are never evaluated.
pub(crate) fn adaptive(mut f: impl FnMut(f64) -> f64, from: f64, to: f64, tolerance: f64) -> f64 {
    fn refine(
        f: &mut impl FnMut(f64) -> f64,
        from: f64,
        to: f64,
        whole: f64,
        tolerance: f64,
        scale: f64,
        level: u32,
    ) -> f64 {
        let middle = 0.5 * (from + to);
        let (left, right) = (panel(f, from, middle), panel(f, middle, to));
        let scale = scale.max((left + right).abs());
        if level == 0 || (left + right - whole).abs() <= tolerance * scale {
            return left + right;
        }
        refine(f, from, middle, left, tolerance, scale, level - 1)
            + refine(f, middle, to, right, tolerance, scale, level - 1)
    }
    let whole = panel(&mut f, from, to);
    refine(&mut f, from, to, whole, tolerance, whole.abs(), 40)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_is_exact_for_its_degree() {
        for degree in 0..32 {
            let ours: f64 = RULE.iter().map(|(x, w)| w * x.powi(degree)).sum();
            let exact = if degree % 2 == 1 { 0.0 } else { 2.0 / f64::from(degree + 1) };
            assert!((ours - exact).abs() < 1e-14, "degree {degree}: {ours}");
        }
    }

    #[test]
    fn adapts_to_a_peak_and_to_a_logarithm() {
        let peak = adaptive(|x| 1e-3 / ((x - 0.3).powi(2) + 1e-6), 0.0, 1.0, 1e-12);
        let exact = (0.7f64 / 1e-3).atan() + (0.3f64 / 1e-3).atan();
        assert!((peak / exact - 1.0).abs() < 1e-10, "{peak} {exact}");
        let logarithm = adaptive(|x| -x.ln(), 0.0, 1.0, 1e-12);
        assert!((logarithm - 1.0).abs() < 1e-10, "{logarithm}");
    }
}
