//! Numbers for a reader: only significant digits, true minus signs, powers of ten.

use leaklab_record::text;

/// A fraction as percent with `digits` decimals.
pub fn percent(x: f64, digits: usize) -> String {
    minus(format!("{:.digits$}\u{a0}%", 100.0 * x))
}

/// A difference with `digits` decimals and its sign.
pub fn signed(x: f64, digits: usize) -> String {
    minus(format!("{x:+.digits$}"))
}

/// Three or four significant digits; very large and very small numbers with a power of ten.
pub fn plain(x: f64) -> String {
    if x == 0.0 {
        return "0".to_owned();
    }
    let magnitude = x.abs().log10().floor() as i32;
    if !(-4..6).contains(&magnitude) {
        return minus(text::scientific(x));
    }
    let digits = (3 - magnitude).clamp(0, 6) as usize;
    let text = format!("{x:.digits$}");
    minus(if magnitude >= 4 { thousands(&text) } else { text })
}

/// A ratio: three decimals near 1, four significant digits if it is large.
pub fn ratio(x: f64) -> String {
    if x.abs() < 10.0 { minus(format!("{x:.3}")) } else { plain(x) }
}

/// Like [`plain`], without zeros at the end: for constants.
pub fn short(x: f64) -> String {
    let text = plain(x);
    if text.contains('.') && !text.contains('×') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A mean with its error: the error with two digits, the mean with as many decimals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithError {
    /// The mean.
    pub mean: String,
    /// The error, which follows `±`.
    pub error: String,
    /// The power of ten by which both are multiplied, as ` × 10⁶`; empty for none.
    pub power: String,
}

/// The exponent of the power of ten with which numbers up to this one are written; 0 for none.
pub fn exponent(largest: f64) -> i32 {
    let magnitude = if largest == 0.0 { 0 } else { largest.abs().log10().floor() as i32 };
    if (-4..6).contains(&magnitude) { 0 } else { magnitude }
}

/// A mean with its error for a reader: `0.1058 ± 0.0011`, or `(1.980 ± 0.021) × 10⁶`.
pub fn with_error(mean: f64, error: f64, exponent: i32) -> WithError {
    if !(error > 0.0 && error.is_finite()) {
        return WithError { mean: plain(mean), error: plain(error), power: String::new() };
    }
    let scale = 10f64.powi(exponent);
    let digits = (1 - (error / scale).log10().floor() as i32).clamp(0, 6) as usize;
    WithError {
        mean: minus(format!("{:.digits$}", mean / scale)),
        error: format!("{:.digits$}", error / scale),
        power: if exponent == 0 { String::new() } else { format!(" ×\u{a0}10{}", superscript(exponent)) },
    }
}

/// A time in the largest unit that suits it.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{seconds:.1} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        3600..86400 => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
        _ => format!("{} days {} h", whole / 86400, whole % 86400 / 3600),
    }
}

fn minus(text: String) -> String {
    text.replace('-', "−")
}

fn thousands(digits: &str) -> String {
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) && digits.as_bytes()[i - 1] != b'-' {
            out.push('\u{202f}');
        }
        out.push(c);
    }
    out
}

/// A whole number in superscript digits.
pub fn superscript(n: i32) -> String {
    text::superscript(&n.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_that_mean_something() {
        assert_eq!(plain(1.59e9), "1.59 × 10⁹");
        assert_eq!(plain(-7.18e-10), "−7.18 × 10⁻¹⁰");
        assert_eq!(plain(9.996e9), "1.00 × 10¹⁰");
        assert_eq!(plain(0.2553), "0.2553");
        assert_eq!(plain(-2.9312), "−2.931");
        assert_eq!(plain(123456.0), "123\u{202f}456");
        assert_eq!(plain(-12345.6), "−12\u{202f}346");
        assert_eq!(ratio(1.0625), "1.062");
        assert_eq!(ratio(10621.725), "10\u{202f}622");
        assert_eq!(short(23.6), "23.6");
        assert_eq!(short(26.0), "26");
        let parts = |mean, error| {
            let WithError { mean, error, power } = with_error(mean, error, exponent(mean));
            [mean, error, power]
        };
        assert_eq!(parts(0.10581, 0.00106), ["0.1058", "0.0011", ""]);
        assert_eq!(parts(1.98e6, 2.1e4), ["1.980", "0.021", " ×\u{a0}10⁶"]);
        let WithError { mean, error, .. } = with_error(930_532.0, 9_862.0, exponent(1.08e6));
        assert_eq!((mean, error), ("0.9305".into(), "0.0099".into()));
        assert_eq!(percent(0.8965, 2), "89.65\u{a0}%");
        assert_eq!((signed(-1.23, 1), signed(0.01683, 4)), ("−1.2".into(), "+0.0168".into()));
        assert_eq!(duration(3725.0), "1 h 2 min");
        assert_eq!(duration(59.96), "1 min 0 s");
    }
}
