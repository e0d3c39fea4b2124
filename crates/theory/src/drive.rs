//! The input of one neuron. It is checked once, so that every formula of this crate can rely on it.

/// A number as a user would write it: with an exponent if it would have many zeros.
fn short(value: f64) -> String {
    let many_zeros = value != 0.0 && value.is_finite() && !(1e-6..1e15).contains(&value.abs());
    if many_zeros { format!("{value:e}") } else { value.to_string() }
}

/// The reason why a parameter was refused. The message states its name, its value and what would be right.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ParameterError {
    /// A number outside its range.
    #[error("{name} = {} cannot be used: it must be {expected}", short(*value))]
    Range {
        /// The parameter as users write it.
        name: &'static str,
        /// The given value.
        value: f64,
        /// What would be right.
        expected: &'static str,
    },
    /// The mean input of the neuron without leak is not positive, so it has no stationary firing rate.
    #[error(
        "with mu = {mu} the IF neuron has no stationary rate: without leak the mean input must be positive, \
         or use the model lif"
    )]
    NoDrift {
        /// The mean input.
        mu: f64,
    },
    /// The membrane has no lower bound, so there is no stationary state.
    #[error("the drift f(v) + mu is not positive far below the reset, so the neuron has no stationary state")]
    Unbounded,
    /// The numbers at a point exceed what double precision or the grid can represent.
    #[error("at mu = {mu:?}, D = {d:?}{} the {what} of the neuron cannot be computed: {limit}",
        omega.map_or(String::new(), |omega| format!(" and omega = {omega:?}")))]
    Unresolved {
        /// The mean input.
        mu: f64,
        /// The noise intensity.
        d: f64,
        /// The angular frequency, if the quantity has one.
        omega: Option<f64>,
        /// The quantity.
        what: &'static str,
        /// The limit that the point exceeds.
        limit: &'static str,
    },
    /// Physical values whose dimensionless mean is not finite, or whose noise is not finite and above 0.
    #[error("{given} give {name} = {value}, which no neuron can have; {hint}")]
    NotFinite {
        /// The physical values, as text.
        given: String,
        /// `mu` or `D`.
        name: &'static str,
        /// The resulting value.
        value: f64,
        /// What would be right.
        hint: &'static str,
    },
}

/// Refuses a number that is not finite, or for which `right` returns false.
pub(crate) fn require(
    name: &'static str,
    value: f64,
    right: impl Fn(f64) -> bool,
    expected: &'static str,
) -> Result<f64, ParameterError> {
    if value.is_finite() && right(value) {
        Ok(value)
    } else {
        Err(ParameterError::Range { name, value, expected })
    }
}

/// Largest magnitude of `mu`, `D`, `tau_r` and `omega`, and of `1/D`. Beyond it, squares and differences of
/// these numbers lose all digits in double precision.
pub(crate) const LARGEST: f64 = 1e12;

/// The range of the noise intensity, in messages.
const INTENSITY: &str = "a finite number above 0, from 1e-12 to 1e12";

fn is_intensity(d: f64) -> bool {
    (LARGEST.recip()..=LARGEST).contains(&d)
}

/// Mean and noise of the input, and the refractory time: `mu`, `D_st`, `D_bg` and `tau_r` of the paper.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drive {
    mu: f64,
    d_st: f64,
    d_bg: f64,
    tau_r: f64,
}

impl Drive {
    /// A drive whose noise is entirely stimulus (`D = D_st`), without refractory time, as in the paper.
    pub fn new(mu: f64, d: f64) -> Result<Self, ParameterError> {
        Ok(Drive {
            mu: require("mu", mu, |mu| mu.abs() <= LARGEST, "a number from -1e12 to 1e12")?,
            d_st: require("D", d, is_intensity, INTENSITY)?,
            d_bg: 0.0,
            tau_r: 0.0,
        })
    }

    /// A drive whose noise is a stimulus of intensity `d_st` and an unobserved background of intensity
    /// `d_bg`.
    pub fn with_background(mu: f64, d_st: f64, d_bg: f64) -> Result<Self, ParameterError> {
        Ok(Drive {
            d_st: require("D_st", d_st, is_intensity, INTENSITY)?,
            d_bg: require("D_bg", d_bg, |d| (0.0..=LARGEST).contains(&d), "a number from 0 to 1e12")?,
            ..Drive::new(mu, 1.0)?
        })
    }

    /// The same drive with a refractory time after each spike, in units of the membrane time constant.
    pub fn with_refractory(self, tau_r: f64) -> Result<Self, ParameterError> {
        Ok(Drive {
            tau_r: require("tau_r", tau_r, |t| (0.0..=LARGEST).contains(&t), "a number from 0 to 1e12")?,
            ..self
        })
    }

    /// Mean input.
    pub fn mu(&self) -> f64 {
        self.mu
    }
    /// Total noise intensity `D = D_st + D_bg`.
    pub fn d(&self) -> f64 {
        self.d_st + self.d_bg
    }
    /// Intensity of the stimulus.
    pub fn d_st(&self) -> f64 {
        self.d_st
    }
    /// Intensity of the background noise.
    pub fn d_bg(&self) -> f64 {
        self.d_bg
    }
    /// Refractory time.
    pub fn tau_r(&self) -> f64 {
        self.tau_r
    }
    /// The error for a quantity that cannot be computed for this drive.
    pub(crate) fn unresolved(
        &self,
        omega: Option<f64>,
        what: &'static str,
        limit: &'static str,
    ) -> ParameterError {
        ParameterError::Unresolved { mu: self.mu, d: self.d(), omega, what, limit }
    }
    /// The stimulus' share of the noise, `D_st / D`.
    pub fn share(&self) -> f64 {
        self.d_st / self.d()
    }
}

/// Refuses an angular frequency that is negative or not finite.
pub(crate) fn check_omega(omega: f64) -> Result<f64, ParameterError> {
    require("omega", omega, |w| (0.0..=LARGEST).contains(&w), "a number from 0 to 1e12")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_no_formula_can_use() {
        let not_finite = [(f64::NAN, 0.1), (f64::INFINITY, 0.1), (1.0, f64::NAN)];
        for (mu, d) in not_finite.into_iter().chain([(1.0, 0.0), (1.0, -1.0), (1e300, 0.1), (1.0, 1e-13)]) {
            assert!(Drive::new(mu, d).is_err(), "mu {mu}, D {d}");
        }
        assert!(Drive::with_background(1.0, 0.0, 0.1).is_err());
        assert!(Drive::with_background(1.0, 0.1, -0.1).is_err());
        assert!(Drive::new(1.0, 0.1).unwrap().with_refractory(-1.0).is_err());
        let message = Drive::new(1.5, -0.25).unwrap_err().to_string();
        assert_eq!(
            message,
            "D = -0.25 cannot be used: it must be a finite number above 0, from 1e-12 to 1e12"
        );
    }

    #[test]
    fn noise_is_stimulus_and_background() {
        let drive = Drive::with_background(1.5, 0.3, 0.1).unwrap().with_refractory(0.2).unwrap();
        assert_eq!((drive.d(), drive.tau_r()), (0.4, 0.2));
        assert!((drive.share() - 0.75).abs() < 1e-15);
    }
}
