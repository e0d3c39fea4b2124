//! The neuron in NIR: `tau dv/dt = -v + r I`, integrated by Euler steps of `dt`. The decay per step is
//! `1 - dt/tau`, and an input of 1 adds `r dt/tau`.

/// `1 - lambda` of an IF neuron that is written as a LIF neuron. In float32 its decay is exactly 1, and as a
/// power of two it scales inputs without rounding.
pub const NO_LEAK: f64 = 1.0 / (1u64 << 40) as f64;

/// NIR's `tau` (in the unit of `dt`) and `r`, both in float32, for a time constant in steps. `None` if
/// float32 cannot represent them without changing the decay by more than its own rounding.
pub fn constants(steps: f64, dt: f64) -> Option<(f64, f64)> {
    let tau = f64::from(seconds(steps, dt));
    let lambda = |steps: f64| (-1.0 / steps).exp();
    let back = self::steps(tau, dt).filter(|back| back.is_finite());
    let kept = back.is_some_and(|back| (lambda(back) - lambda(steps)).abs() <= 2f64.powi(-24));
    (tau.is_normal() && kept).then(|| (tau, f64::from((1.0 / -(-1.0 / steps).exp_m1()) as f32)))
}

/// NIR's `tau`, `dt/(1 - exp(-1/steps))`, in float32 as in NIR files.
fn seconds(steps: f64, dt: f64) -> f32 {
    (dt / -(-1.0 / steps).exp_m1()) as f32
}

/// The time constant in steps for NIR's `tau`; infinity for [`NO_LEAK`], and `None` if no potential would
/// remain after a step. Of all numbers that have the same `tau` in float32, it is the one with the fewest
/// decimal digits, so that 30 is read back as 30.
pub fn steps(tau: f64, dt: f64) -> Option<f64> {
    let lost = dt / tau;
    if !(lost > 0.0 && lost < 1.0) {
        return None;
    }
    if lost <= NO_LEAK * (1.0 + 1e-6) {
        return Some(f64::INFINITY);
    }
    let exact = -1.0 / (-lost).ln_1p();
    let shortest = (0..17).find_map(|digits| {
        let rounded: f64 = format!("{exact:.digits$e}").parse().ok()?;
        (seconds(rounded, dt) == tau as f32).then_some(rounded)
    });
    shortest.or(Some(exact))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_constants_come_back() {
        for dt in [1e-4, 1e-3, 1.0] {
            for tau in [0.1, 0.5, 1.0, 2.5, 10.0, 30.0, 33.3, 100.0, 123.456, 1e4, 1e9] {
                assert_eq!(steps(f64::from(seconds(tau, dt)), dt), Some(tau), "tau {tau} at dt {dt}");
                assert!(constants(tau, dt).is_some(), "tau {tau} at dt {dt}");
            }
        }
        assert_eq!(steps(1e-4 / NO_LEAK, 1e-4), Some(f64::INFINITY));
    }

    #[test]
    fn what_float32_cannot_hold_is_refused() {
        for tau in [0.01, 2e12, 1e60, f64::MAX] {
            assert_eq!(constants(tau, 1e-4), None, "{tau}");
        }
        assert_eq!((steps(1e-4, 1e-4), steps(-1.0, 1e-4)), (None, None));
    }
}
