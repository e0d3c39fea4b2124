//! The paper's numbers, in one place: Chowdhury, Lee and Roy (2020), Table 1 and section 4.3.
//!
//! They are shown only with a study of the same data set and the same network; with any other they would
//! suggest a meaningless comparison.

use super::generalisation::PAPER_FACTOR;
use super::stimulus::SPECTRUM_SEVERITY;
use leaklab_engine::Tau;
use leaklab_record::{PAPER_NOISES, Quantity, Reading, Stimulus};

/// The paper's numbers for tau = 30, 100 and no leak.
type Three = [f64; 3];

/// The time constants of the paper's numbers.
pub fn taus() -> [Tau; 3] {
    [30.0, 100.0, f64::INFINITY].map(|steps| Tau::new(steps).expect("the paper's time constants"))
}

/// The paper's networks by data set.
pub const NETWORKS: [(&str, &str); 2] = [
    ("cifar10", "32x32-64C3-64C3-2P-128C3-128C3-2P-256C3-256C3-256C3-2s-1024FC-10o"),
    ("svhn", "32x32-64C3-64C3-2P-256C3-256C3-256C3-2s-1024FC-10o"),
];

/// A data set's published numbers. Accuracy and spike rate are fractions. The paper gives its SSE without a
/// unit; 32 times the mean over samples fits it (see [`super::generalisation`]), so those are returned with
/// that factor. Its text gives critical frequencies for one data set without naming it; the figure next to
/// them is of CIFAR-10.
fn numbers(dataset: &str, quantity: &Quantity) -> Option<(Three, f64)> {
    let noisy = Stimulus::at(PAPER_NOISES[0], SPECTRUM_SEVERITY);
    let cifar10 = dataset == "cifar10";
    let pick = |ours: Three, svhn: Three| if cifar10 { ours } else { svhn };
    match quantity {
        Quantity::Accuracy => Some((pick([0.8965, 0.9019, 0.903], [0.9612, 0.9632, 0.9632]), 1.0)),
        Quantity::TestSse => Some((pick([2.93, 3.45, 3.83], [0.72, 0.75, 0.82]), PAPER_FACTOR)),
        Quantity::RunningTrainSse => Some((pick([1.88, 1.92, 2.2], [1.26, 1.4, 1.6]), PAPER_FACTOR)),
        Quantity::SpikeRate => Some((pick([0.0945, 0.0526, 0.0494], [0.1407, 0.1209, 0.1185]), 1.0)),
        Quantity::Synops => Some((pick([1.59e9, 7.92e8, 7.18e8], [3.99e9, 3.88e9, 3.79e9]), 1.0)),
        Quantity::CriticalFrequency(Reading::Defined, Stimulus::Clean) if cifar10 => {
            Some(([0.255, 0.317, 0.345], 1.0))
        }
        Quantity::CriticalFrequency(Reading::Defined, stimulus) if cifar10 && *stimulus == noisy => {
            Some(([0.298, 0.33, 0.35], 1.0))
        }
        Quantity::AccuracyUnder(..)
        | Quantity::Robustness(_)
        | Quantity::RelativeRobustness(_)
        | Quantity::TrainSse
        | Quantity::SseGap
        | Quantity::TestSseAtEqualTrainSse
        | Quantity::WeightedInputNorm(_)
        | Quantity::CriticalFrequency(..)
        | Quantity::CriticalRise(_)
        | Quantity::ZeroFrequencyShare(_) => None,
    }
}

/// Whether the data set and network are those of the paper. `2P` and `2s` are the same layer, and the three
/// channels of the input may be written or not.
pub fn matches(dataset: &str, network: &str) -> bool {
    let plain = |notation: &str| {
        let notation = notation.replace("2s", "2P");
        notation.strip_prefix("3x").unwrap_or(&notation).to_owned()
    };
    NETWORKS.iter().any(|&(name, paper)| name == dataset && plain(paper) == plain(network))
}

/// The published value of a quantity and the factor that makes ours comparable, if data set, network and tau
/// match the paper's.
pub fn value(dataset: &str, network: &str, quantity: &Quantity, tau: Option<Tau>) -> Option<(f64, f64)> {
    if !matches(dataset, network) {
        return None;
    }
    let column = taus().iter().position(|&known| Some(known) == tau)?;
    let (values, factor) = numbers(dataset, quantity)?;
    Some((values[column], factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_for_the_same_network() {
        let (_, cifar10) = NETWORKS[0];
        let [first, _, none] = taus().map(Some);
        assert_eq!(value("cifar10", cifar10, &Quantity::Synops, first), Some((1.59e9, 1.0)));
        let spelled = format!("3x{}", cifar10.replace("2s", "2P"));
        assert_eq!(value("cifar10", &spelled, &Quantity::Accuracy, none), Some((0.903, 1.0)));
        assert_eq!(value("cifar10", &spelled, &Quantity::TestSse, first), Some((2.93, 32.0)));
        assert_eq!(value("svhn", cifar10, &Quantity::Accuracy, none), None);
        assert_eq!(value("digits", "1x8x8-16C3-32C3-2P-128FC-10o", &Quantity::Accuracy, none), None);
        assert_eq!(value("cifar10", cifar10, &Quantity::Accuracy, Some(Tau::new(10.0).unwrap())), None);
        assert_eq!(value("cifar10", cifar10, &Quantity::SseGap, first), None);
    }
}
