//! Verdicts on claims, and the cases that lead to them.

/// Verdict on a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The evidence supports it.
    Holds,
    /// The evidence excludes it.
    DoesNotHold,
    /// The evidence allows both.
    NotEnoughEvidence,
}

/// The case of the rule that leads to a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Case {
    /// The whole interval lies on the claimed side, and an effect of interest is possible.
    AsClaimed,
    /// The whole interval lies on the claimed side, below the smallest effect of interest.
    Small,
    /// The whole interval lies on the other side.
    Opposite,
    /// The interval includes no effect and excludes an effect of interest.
    NoEffect,
    /// Most and least leak may differ as claimed, but a step between two conditions goes the other way.
    NotSteady,
    /// What should be equal differs by more than the smallest effect of interest.
    Different,
    /// The interval lies on the claimed side, but may be chance among several tests.
    Corrected,
    /// The interval includes both no effect and an effect of interest.
    Undecided,
    /// There is no interval.
    NoInterval,
}

impl Verdict {
    /// All of them.
    pub const ALL: [Verdict; 3] = [Verdict::Holds, Verdict::DoesNotHold, Verdict::NotEnoughEvidence];

    fn name(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::DoesNotHold => "does not hold",
            Verdict::NotEnoughEvidence => "not enough evidence",
        }
    }
}

impl Case {
    /// All of them.
    pub const ALL: [Case; 9] = [
        Case::AsClaimed,
        Case::Small,
        Case::Opposite,
        Case::NoEffect,
        Case::NotSteady,
        Case::Different,
        Case::Corrected,
        Case::Undecided,
        Case::NoInterval,
    ];

    fn name(self) -> &'static str {
        match self {
            Case::AsClaimed => "as claimed",
            Case::Small => "as claimed, but small",
            Case::Opposite => "the opposite",
            Case::NoEffect => "no such effect",
            Case::NotSteady => "not steady",
            Case::Different => "different",
            Case::Corrected => "may be chance among several tests",
            Case::Undecided => "undecided",
            Case::NoInterval => "no interval",
        }
    }

    /// The verdict.
    pub fn verdict(self) -> Verdict {
        match self {
            Case::AsClaimed | Case::Small => Verdict::Holds,
            Case::Opposite | Case::NoEffect | Case::NotSteady | Case::Different => Verdict::DoesNotHold,
            Case::Corrected | Case::Undecided | Case::NoInterval => Verdict::NotEnoughEvidence,
        }
    }
}

/// Which claim a verdict is about: the paper's seven, and the four on what causes robustness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ClaimId {
    /// Equal accuracy without noise.
    EqualAccuracy,
    /// Higher accuracy under noise with more leak.
    Robustness,
    /// Better generalisation with leak.
    Generalisation,
    /// More spikes and operations with more leak.
    Price,
    /// Larger weighted input with more leak.
    WeightedInput,
    /// The critical frequency falls with leak and rises with noise.
    CriticalFrequency,
    /// Training diverges for small tau.
    Divergence,
    /// W1: leak in the hidden layers adds accuracy while the network runs.
    FromHidden,
    /// W2: training with leak adds accuracy.
    FromTraining,
    /// W3: leak in the readout adds accuracy.
    FromReadout,
    /// W4: the gain vanishes as noise becomes slow, more than in the control.
    SlowNoise,
}

impl ClaimId {
    /// All of them, in the order in which they are shown.
    pub const ALL: [ClaimId; 11] = [
        ClaimId::EqualAccuracy,
        ClaimId::Robustness,
        ClaimId::Generalisation,
        ClaimId::Price,
        ClaimId::WeightedInput,
        ClaimId::CriticalFrequency,
        ClaimId::Divergence,
        ClaimId::FromHidden,
        ClaimId::FromTraining,
        ClaimId::FromReadout,
        ClaimId::SlowNoise,
    ];

    fn name(self) -> &'static str {
        match self {
            ClaimId::EqualAccuracy => "1",
            ClaimId::Robustness => "2",
            ClaimId::Generalisation => "3",
            ClaimId::Price => "4",
            ClaimId::WeightedInput => "5",
            ClaimId::CriticalFrequency => "6",
            ClaimId::Divergence => "7",
            ClaimId::FromHidden => "W1",
            ClaimId::FromTraining => "W2",
            ClaimId::FromReadout => "W3",
            ClaimId::SlowNoise => "W4",
        }
    }
}

/// Implements `Display` and `FromStr` for an enum with a list `ALL` and a private function `name`.
macro_rules! named {
    ($($type:ident),*) => {
        $(
            impl std::fmt::Display for $type {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.pad(self.name())
                }
            }

            impl std::str::FromStr for $type {
                type Err = ();

                fn from_str(name: &str) -> Result<Self, ()> {
                    $type::ALL.into_iter().find(|value| value.name() == name).ok_or(())
                }
            }
        )*
    };
}

pub(crate) use named;

named!(Verdict, Case, ClaimId);

crate::text_field! {
    Verdict: "holds, does not hold or not enough evidence",
    Case: "a case of a claim's rule",
    ClaimId: "the number of a claim, 1 to 7 or W1 to W4",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for case in Case::ALL {
            assert_eq!(case.to_string().parse(), Ok(case));
            assert_eq!(case.verdict().to_string().parse(), Ok(case.verdict()));
        }
        for claim in ClaimId::ALL {
            assert_eq!(claim.to_string().parse(), Ok(claim));
        }
    }
}
