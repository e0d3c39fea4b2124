//! From an interval to a verdict, in the same way for every claim that a quantity lies on one side of a
//! reference.
//!
//! Each claim has a smallest effect of interest. An interval that includes "no effect" refutes nothing: a
//! claim does not hold only if the interval rules out an effect of interest, and is undecided if the
//! interval includes both.

use super::super::statistics::Estimate;
use leaklab_record::Case;

/// The claim that a quantity lies on one side of a reference.
#[derive(Debug, Clone, PartialEq)]
pub struct Side {
    /// The value of no effect: 0 for differences, 1 for ratios.
    pub reference: f64,
    /// +1 if the claimed side is above the reference, -1 if it is below.
    pub sign: f64,
    /// Smallest effect of interest, in the quantity's unit.
    pub smallest: f64,
    /// The same in words, such as `2 %`.
    pub words: String,
}

impl Side {
    /// The case of an interval.
    pub fn case(&self, interval: Option<Estimate>) -> Case {
        let Some(Estimate { low, high, .. }) = interval else { return Case::NoInterval };
        // Both ends, measured in the claimed direction.
        let ends = [self.sign * (low - self.reference), self.sign * (high - self.reference)];
        let (worst, best) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        match (worst > 0.0, best < self.smallest) {
            (true, false) => Case::AsClaimed,
            (true, true) => Case::Small,
            (false, true) if best < 0.0 => Case::Opposite,
            (false, true) => Case::NoEffect,
            (false, false) => Case::Undecided,
        }
    }

    /// Whether an interval lies wholly on the other side, by an effect of interest.
    pub fn contradicts(&self, interval: Option<Estimate>) -> bool {
        let reference = self.reference - self.sign * self.smallest;
        let other = Side { reference, sign: -self.sign, ..self.clone() };
        matches!(other.case(interval), Case::AsClaimed | Case::Small)
    }

    /// Where the interval lies if the claim holds, in words.
    pub fn place(&self) -> String {
        format!("{} {}", if self.sign > 0.0 { "above" } else { "below" }, self.reference)
    }

    /// A sentence that states the case.
    pub fn reason(&self, case: Case) -> String {
        let Side { reference, words, .. } = self;
        let (here, there) = if self.sign > 0.0 { ("above", "below") } else { ("below", "above") };
        match case {
            Case::AsClaimed => format!("The whole interval lies {here} {reference}."),
            Case::Small => {
                format!("The whole interval lies {here} {reference}, though by less than {words}.")
            }
            Case::Opposite => {
                format!("The whole interval lies {there} {reference}: the opposite of the claim.")
            }
            Case::NoEffect => {
                format!("The interval includes {reference} and rules out an effect of {words} as claimed.")
            }
            Case::Undecided => {
                format!("The interval includes both {reference} and an effect of {words} as claimed.")
            }
            Case::NotSteady | Case::Different => String::new(),
            Case::Corrected => {
                "The interval lies on the claimed side, but not after Holm's correction for several noises."
                    .to_owned()
            }
            Case::NoInterval => "There is no interval.".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_one_case() {
        let above = Side { reference: 0.0, sign: 1.0, smallest: 1.0, words: "one".into() };
        let below = Side { reference: 1.0, sign: -1.0, smallest: 0.02, words: "2 %".into() };
        let at = |low: f64, high: f64| Some(Estimate { mean: 0.5 * (low + high), low, high });
        for (side, interval, case) in [
            (&above, at(0.5, 2.0), Case::AsClaimed),
            (&above, at(0.1, 0.9), Case::Small),
            (&above, at(-3.0, -0.1), Case::Opposite),
            (&above, at(-0.5, 0.5), Case::NoEffect),
            (&above, at(-9.0, 0.9), Case::NoEffect),
            (&above, at(-0.1, 1.5), Case::Undecided),
            (&above, at(0.0, 0.0), Case::NoEffect),
            (&above, None, Case::NoInterval),
            (&below, at(0.7, 0.99), Case::AsClaimed),
            (&below, at(0.985, 0.995), Case::Small),
            (&below, at(1.1, 1.3), Case::Opposite),
            (&below, at(0.99, 1.3), Case::NoEffect),
            (&below, at(0.9, 1.3), Case::Undecided),
        ] {
            assert_eq!(side.case(interval), case, "{interval:?}");
        }
        assert!(above.contradicts(at(-3.0, -1.5)) && !above.contradicts(at(-3.0, -0.5)));
        assert!(below.contradicts(at(1.03, 1.2)) && !below.contradicts(at(1.01, 1.2)));
        assert!(!above.contradicts(None));
    }
}
