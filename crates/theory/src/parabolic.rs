//! The ratio `G(x) = D_{i w - 1}(x) / D_{i w}(x)` of parabolic cylinder functions and its integral.
//!
//! The paper's formulas contain `D_nu` itself, which overflows or cancels over most of the useful range;
//! everything they need can be computed from `G`. With `psi_nu(x) = e^{x^2/4} D_nu(x)` and `nu = i w`,
//! `psi_nu' = nu psi_{nu-1} = nu G psi_nu`, so `log psi_nu` is an integral of `G`, and
//! `G' = x G - 1 - nu G^2`. Three methods cover the plane:
//!
//! - `x >= 5`: a continued fraction, evaluated backwards from an asymptotic tail, and
//!   Gauss-Legendre quadrature for the integral;
//! - `x < 5`: Taylor steps of `psi'' - x psi' + nu psi = 0` downwards, the direction in which errors decay;
//! - `w >= 10^6`: the asymptotic form alone, exact to rounding for every x.
//!
//! Real and imaginary parts each keep their relative accuracy (the imaginary part of `G` is of order w), so
//! the same code also computes variances and the zero-frequency limit.

use crate::quadrature::RULE;
use num_complex::Complex64;

/// The continued fraction is used above this `x`, and Taylor steps below.
const SPLIT: f64 = 5.0;
/// From this angular frequency on the asymptotic form is exact to rounding.
const LARGE: f64 = 1e6;

/// The values of `G` that determine the first passage from `b` down to `a`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passage {
    /// `integral_a^b G dx`.
    pub integral: Complex64,
    /// `G(a) - G(b)`, never computed by subtraction.
    pub difference: Complex64,
    /// `G(b)`.
    pub at_b: Complex64,
}

/// `G` between `a` and `b = a + width` at angular frequency `w >= 0`.
pub(crate) fn passage(a: f64, b: f64, width: f64, w: f64) -> Passage {
    let zero = Complex64::new(0.0, 0.0);
    let mut sums = Passage { integral: zero, difference: zero, at_b: zero };
    if w >= LARGE {
        sums.at_b = asymptotic(b, Complex64::new(0.0, w)).0;
        panels(a, width, w, &mut sums);
        return sums;
    }
    if b > SPLIT {
        sums.at_b = fraction(b, w).0;
        if a >= SPLIT {
            panels(a, width, w, &mut sums);
            return sums;
        }
        panels(SPLIT, b - SPLIT, w, &mut sums);
        taylor(a, SPLIT - a, w, fraction(SPLIT, w).0, &mut sums);
    } else {
        let mut above = Passage { integral: zero, difference: zero, at_b: zero };
        sums.at_b = taylor(b, SPLIT - b, w, fraction(SPLIT, w).0, &mut above);
        taylor(a, width, w, sums.at_b, &mut sums);
    }
    sums
}

/// Adds integral and difference over `[from, from + width]` by Gauss-Legendre. The nearest
/// singularity of `G` is about `max(x, sqrt w)` away, and panels no wider than three quarters of
/// that converge to rounding with 16 points.
fn panels(from: f64, width: f64, w: f64, sums: &mut Passage) {
    let mut start = 0.0;
    while start < width {
        let room = 0.75 * (from + start).max(w.sqrt());
        let left = width - start;
        let length = if left <= room { left } else { (0.5 * left).min(room) };
        for &(node, weight) in RULE.iter() {
            let x = from + (start + 0.5 * length * (1.0 + node));
            let (g, slope) = if w >= LARGE { asymptotic(x, Complex64::new(0.0, w)) } else { fraction(x, w) };
            sums.integral += g * (0.5 * length * weight);
            sums.difference -= slope * (0.5 * length * weight);
        }
        start += length;
    }
}

/// `G` and `G'` for `x > 0` by the continued fraction `1/(x + (1-nu)/(x + (2-nu)/(x + ...)))`.
fn fraction(x: f64, w: f64) -> (Complex64, Complex64) {
    let terms = fraction_terms(x, w);
    let (g, slope) = asymptotic(x, Complex64::new(-(terms as f64), w));
    let mut value = g.inv();
    let mut derivative = -slope * value * value;
    for k in (1..=terms).rev() {
        let inverse = value.inv();
        let partial = Complex64::new(k as f64, -w) * inverse;
        derivative = 1.0 - partial * inverse * derivative;
        value = x + partial;
    }
    let g = value.inv();
    (g, -derivative * g * g)
}

/// Number of terms after which the tail's error is below rounding. A term `k - nu` reduces the
/// error by `exp(-2 Re asinh(x / 2 sqrt(k - nu)))`, so `N` terms reduce it by
/// `exp(-2 x Re(sqrt(N - nu) - sqrt(-nu)))`. The error of the asymptotic tail itself is about
/// the third power of `1/(x^2/4 + N - nu)`.
fn fraction_terms(x: f64, w: f64) -> usize {
    let wanted = (34.0 - 2.0 * (0.25 * x * x + w).ln()).max(2.0);
    let root = (0.5 * w).sqrt() + wanted / (2.0 * x);
    let terms = root * root - 0.25 * (w / root) * (w / root);
    terms as usize + 8
}

/// `G` and `G'` for large `|x^2 - 4 nu|`. With `nu G = x/2 + q` the equation of `G` is `q' + q^2 = Q`,
/// `Q = x^2/4 - nu - 1/2`; the expansion `q = -sqrt(Q) + q1 + q2 + ..` has
/// `q1 = -x/(8Q)` and `q2 = -1/(16 Q^{3/2}) + 5 x^2/(128 Q^{5/2})`.
fn asymptotic(x: f64, nu: Complex64) -> (Complex64, Complex64) {
    let big = 0.25 * x * x - 0.5 - nu;
    let root = big.sqrt();
    let inverse = big.inv();
    let (i1, i2) = (inverse, inverse * inverse);
    let odd = i1 * root.inv();
    // x/2 - sqrt(Q) = (nu + 1/2) / (x/2 + sqrt(Q)) where that does not cancel, that is for x > 0.
    let (lead, lead_slope) = if x > 0.0 {
        let sum = (0.5 * x + root).inv();
        let lead = (nu + 0.5) * sum;
        (lead, -lead * 0.5 * root.inv())
    } else {
        (0.5 * x - root, (root - 0.5 * x) * 0.5 * root.inv())
    };
    let q1 = -0.125 * x * i1;
    let q1_slope = -0.125 * i1 + 0.0625 * x * x * i2;
    let q2 = odd * (-0.0625 + 0.0390625 * x * x * i1);
    let q2_slope = odd * i1 * x * (0.125 - 0.048828125 * x * x * i1);
    ((lead + (q1 + q2)) / nu, (lead_slope + (q1_slope + q2_slope)) / nu)
}

/// Takes Taylor steps from `a + width`, where `G` is `g`, down to `a`. Adds
/// integral and difference, and returns `G(a)`.
fn taylor(a: f64, width: f64, w: f64, mut g: Complex64, sums: &mut Passage) -> Complex64 {
    let mut left = width;
    while left > 0.0 {
        let x = a + left;
        let reach = 2.0 / (1.0 + x.abs() + w.sqrt());
        let step = if left <= reach { left } else { (0.5 * left).min(reach) };
        let (integral, change) = taylor_step(x, -step, w, g);
        sums.integral -= integral;
        sums.difference += change;
        g += change;
        left -= step;
    }
    g
}

/// `integral_x^{x+h} G` and `G(x+h) - G(x)`. With `psi(x+h)/psi(x) = 1 + nu S`, `S = sum t_k`, the terms obey
/// `(k+1)(k+2) t_{k+2} = x h (k+1) t_{k+1} + (k - nu) h^2 t_k`.
fn taylor_step(x: f64, h: f64, w: f64, g: Complex64) -> (Complex64, Complex64) {
    let mut before = g * h;
    let mut term = (x * g - 1.0) * (0.5 * h * h);
    let mut sum = before + term;
    let mut slope = 2.0 * term;
    let mut k = 1.0;
    loop {
        let fed = Complex64::new(k * before.re + w * before.im, k * before.im - w * before.re);
        let next = (term * (x * h * (k + 1.0)) + fed * (h * h)) / ((k + 1.0) * (k + 2.0));
        (before, term) = (term, next);
        sum += term;
        slope += term * (k + 2.0);
        k += 1.0;
        let small = 1e-18 * sum.l1_norm();
        if (term.l1_norm() * k <= small && before.l1_norm() * k <= small) || k > 200.0 {
            break;
        }
    }
    let nu = Complex64::new(0.0, w);
    let grown = nu * sum;
    let change = (slope / h - grown * g) / (1.0 + grown);
    (sum * log1p_over(grown), change)
}

/// `log(1 + z) / z`.
fn log1p_over(z: Complex64) -> Complex64 {
    if z.l1_norm() < 1e-3 {
        let mut series = Complex64::new(1.0 / 8.0, 0.0);
        for k in (1..8).rev() {
            series = 1.0 / f64::from(k) - z * series;
        }
        return series;
    }
    let (x, y) = (z.re, z.im);
    Complex64::new(0.5 * (2.0 * x + x * x + y * y).ln_1p(), y.atan2(1.0 + x)) / z
}

#[cfg(test)]
mod tests {
    use super::*;

    fn far(x: Complex64, y: Complex64) -> f64 {
        (x - y).norm() / y.norm()
    }

    #[test]
    fn fraction_has_enough_terms() {
        for w in [0.0, 1e-3, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5] {
            for x in [5.0, 6.0, 8.0, 15.0, 50.0, 500.0] {
                let (g, slope) = fraction(x, w);
                let deep = 4 * fraction_terms(x, w) + 200;
                let (mut value, mut derivative) = (Complex64::new(x, 0.0), Complex64::new(1.0, 0.0));
                for k in (1..=deep).rev() {
                    let inverse = value.inv();
                    let partial = Complex64::new(k as f64, -w) * inverse;
                    derivative = 1.0 - partial * inverse * derivative;
                    value = x + partial;
                }
                assert!(far(g, value.inv()) < 2e-15, "G at x {x}, w {w}: {}", far(g, value.inv()));
                let exact = -derivative / (value * value);
                assert!(far(slope, exact) < 2e-14, "G' at x {x}, w {w}: {}", far(slope, exact));
            }
        }
    }

    #[test]
    fn the_three_methods_agree_where_they_meet() {
        for w in [0.3, 30.0, 3e3] {
            let mut sums = passage(4.0, 6.0, 2.0, w);
            let lower = taylor(4.0, 2.0, w, fraction(6.0, w).0, &mut sums);
            assert!(far(lower, passage(3.0, 4.0, 1.0, w).at_b) < 1e-14, "w {w}");
        }
        for x in [-20.0, -1.0, 0.5, 4.0, 7.0, 300.0] {
            let exact = passage(x, x + 0.25, 0.25, 0.999 * LARGE);
            let (g, _) = asymptotic(x + 0.25, Complex64::new(0.0, 0.999 * LARGE));
            assert!(far(g, exact.at_b) < 3e-14, "x {x}: {}", far(g, exact.at_b));
        }
    }

    #[test]
    fn zero_frequency_is_the_scaled_complementary_error_function() {
        // sqrt(pi/2) erfcx(x / sqrt 2) at x = 0 and x = 2, and e^{x^2/2} sqrt(2 pi) (1 - Phi(x)) at x = -3.
        for (x, exact) in
            [(0.0, 1.2533141373155003), (2.0, 0.421_369_229_288_054_5), (-3.0, 225.334_896_220_349_12)]
        {
            let g = passage(x - 1.0, x, 1.0, 0.0).at_b;
            assert!((g.re / exact - 1.0).abs() < 2e-14 && g.im == 0.0, "x {x}: {g}");
        }
    }
}
