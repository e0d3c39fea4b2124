//! The colour of Gaussian noise on pixels: how its values at different steps are correlated
//! (specification, section 3).
//!
//! Let `n[t]` be independent standard normals of a pixel, and `rho = exp(-1/c)`. Noise with correlation time
//! `c` is `xi[1] = sigma n[1]` and `xi[t] = rho xi[t-1] + sigma sqrt(1 - rho^2) n[t]`; blue noise is
//! `xi[t] = sigma (n[t] - n[t-1]) / sqrt(2)`. All have the standard deviation sigma at every step, so noises
//! of different colours differ only in their correlation in time.

use super::NoiseError;
use std::fmt;
use std::str::FromStr;

/// How the values of Gaussian noise at different steps are correlated.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Colour {
    /// Independent from step to step: a correlation time of 0.
    #[default]
    White,
    /// Correlated with a correlation time `c`: the correlation at a distance of `d` steps is `exp(-d/c)`.
    Correlated(CorrelationTime),
    /// One value for the whole presentation: an infinite correlation time.
    Frozen,
    /// The difference of neighbouring white values, which is weak at low frequencies.
    Blue,
}

/// A correlation time in steps: a positive, finite number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CorrelationTime(f32);

impl CorrelationTime {
    /// Returns the correlation time, if `steps` is positive and finite.
    pub fn new(steps: f32) -> Option<Self> {
        (steps > 0.0 && steps.is_finite()).then_some(CorrelationTime(steps))
    }

    /// The number of steps.
    pub fn steps(self) -> f32 {
        self.0
    }
}

impl Colour {
    /// The colour with a given correlation time: 0 is white, infinity is frozen.
    pub fn of_correlation_time(steps: f32) -> Result<Self, NoiseError> {
        match steps {
            0.0 => Ok(Colour::White),
            f32::INFINITY => Ok(Colour::Frozen),
            steps => CorrelationTime::new(steps)
                .map(Colour::Correlated)
                .ok_or_else(|| NoiseError::UnknownColour(steps.to_string())),
        }
    }

    /// The factors of the recursion: `rho` for the noise of the previous step, and `sqrt(1 - rho^2)` for the
    /// new standard normal, in units of sigma.
    pub(crate) fn recursion(time: CorrelationTime) -> [f32; 2] {
        let rho = (-1.0 / f64::from(time.0)).exp();
        [rho as f32, (1.0 - rho * rho).sqrt() as f32]
    }

    /// The expected correlation of the noise at two steps whose distance is `distance`.
    pub fn correlation(self, distance: usize) -> f64 {
        match (self, distance) {
            (_, 0) | (Colour::Frozen, _) => 1.0,
            (Colour::White, _) => 0.0,
            (Colour::Correlated(time), d) => (-(d as f64) / f64::from(time.0)).exp(),
            (Colour::Blue, 1) => -0.5,
            (Colour::Blue, _) => 0.0,
        }
    }

    /// Wording within a sentence: `white noise`.
    pub fn words(self) -> String {
        match self {
            Colour::White => "white noise".to_owned(),
            Colour::Correlated(time) => format!("noise with a correlation time of {} steps", time.0),
            Colour::Frozen => "frozen noise".to_owned(),
            Colour::Blue => "blue noise".to_owned(),
        }
    }
}

/// `white`, `3` (the correlation time in steps), `frozen` or `blue`.
impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Colour::White => f.pad("white"),
            Colour::Correlated(time) => f.pad(&time.0.to_string()),
            Colour::Frozen => f.pad("frozen"),
            Colour::Blue => f.pad("blue"),
        }
    }
}

impl FromStr for Colour {
    type Err = NoiseError;

    fn from_str(text: &str) -> Result<Self, NoiseError> {
        match text {
            "white" => Ok(Colour::White),
            "frozen" => Ok(Colour::Frozen),
            "blue" => Ok(Colour::Blue),
            text => {
                let time = text.parse().ok().and_then(CorrelationTime::new);
                time.map(Colour::Correlated).ok_or_else(|| NoiseError::UnknownColour(text.to_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for text in ["white", "0.5", "3", "30", "frozen", "blue"] {
            assert_eq!(text.parse::<Colour>().unwrap().to_string(), text);
        }
        for text in ["0", "-1", "inf", "NaN", "pink", ""] {
            let message = text.parse::<Colour>().unwrap_err().to_string();
            assert!(message.contains("white, frozen, blue"), "{message}");
        }
        assert_eq!(Colour::of_correlation_time(0.0), Ok(Colour::White));
        assert_eq!(Colour::of_correlation_time(f32::INFINITY), Ok(Colour::Frozen));
        assert!(Colour::of_correlation_time(f32::NAN).is_err());
    }

    #[test]
    fn the_recursion_keeps_the_variance() {
        for steps in [0.1, 1.0, 3.0, 30.0, 1e6] {
            let [rho, fresh] = Colour::recursion(CorrelationTime::new(steps).unwrap()).map(f64::from);
            assert!((rho * rho + fresh * fresh - 1.0).abs() < 2.0 * f64::from(f32::EPSILON), "{steps}");
        }
    }
}
