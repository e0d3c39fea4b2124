//! The paper's numbers, in one place: Chowdhury, Lee and Roy (2020), Table 1 and section 4.3.
//!
//! They are shown only beside a study of the same data set with the same network; beside any other they would
//! suggest a comparison that means nothing.

/// One published number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Published {
    /// Data set, as the program names it.
    pub dataset: &'static str,
    /// Our name of the quantity.
    pub quantity: &'static str,
    /// The three values for tau = 30, 100 and no leak, in our units.
    pub values: [f64; 3],
}

/// The tau of [`Published::values`], as tables write them.
pub const TAUS: [&str; 3] = ["30", "100", "inf"];

/// The paper's networks by data set.
pub const NETWORKS: [(&str, &str); 2] = [
    ("cifar10", "32x32-64C3-64C3-2P-128C3-128C3-2P-256C3-256C3-256C3-2s-1024FC-10o"),
    ("svhn", "32x32-64C3-64C3-2P-256C3-256C3-256C3-2s-1024FC-10o"),
];

/// Everything published as a number. Accuracy and spike rate are fractions. The paper gives its SSE without a
/// unit; 32 times the mean over samples fits it (see [`super::generalisation`]). It gives the critical frequencies
/// in its text for one data set, not named; the figure beside them is of CIFAR-10.
pub const NUMBERS: [Published; 12] = [
    Published { dataset: "cifar10", quantity: "accuracy", values: [0.8965, 0.9019, 0.903] },
    Published { dataset: "cifar10", quantity: "test_sse_times_32", values: [2.93, 3.45, 3.83] },
    Published { dataset: "cifar10", quantity: "train_sse_times_32", values: [1.88, 1.92, 2.2] },
    Published { dataset: "cifar10", quantity: "spike_rate", values: [0.0945, 0.0526, 0.0494] },
    Published { dataset: "cifar10", quantity: "synops", values: [1.59e9, 7.92e8, 7.18e8] },
    Published { dataset: "cifar10", quantity: "critical_frequency clean", values: [0.255, 0.317, 0.345] },
    Published {
        dataset: "cifar10",
        quantity: "critical_frequency gaussian/pixel/5",
        values: [0.298, 0.33, 0.35],
    },
    Published { dataset: "svhn", quantity: "accuracy", values: [0.9612, 0.9632, 0.9632] },
    Published { dataset: "svhn", quantity: "test_sse_times_32", values: [0.72, 0.75, 0.82] },
    Published { dataset: "svhn", quantity: "train_sse_times_32", values: [1.26, 1.4, 1.6] },
    Published { dataset: "svhn", quantity: "spike_rate", values: [0.1407, 0.1209, 0.1185] },
    Published { dataset: "svhn", quantity: "synops", values: [3.99e9, 3.88e9, 3.79e9] },
];

/// Whether the data set and network are those of the paper. `2P` and `2s` are the same layer, and the three
/// channels of the input may be written or not.
pub fn matches(dataset: &str, network: &str) -> bool {
    let plain = |notation: &str| {
        let notation = notation.replace("2s", "2P");
        notation.strip_prefix("3x").unwrap_or(&notation).to_owned()
    };
    NETWORKS.iter().any(|&(name, paper)| name == dataset && plain(paper) == plain(network))
}

/// The published value of a quantity, if data set, network and tau match the paper's.
pub fn value(dataset: &str, network: &str, quantity: &str, tau: &str) -> Option<f64> {
    if !matches(dataset, network) {
        return None;
    }
    let column = TAUS.iter().position(|&t| t == tau)?;
    let row = NUMBERS.iter().find(|row| row.dataset == dataset && row.quantity == quantity)?;
    Some(row.values[column])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_beside_the_same_network() {
        let (_, cifar10) = NETWORKS[0];
        assert_eq!(value("cifar10", cifar10, "synops", "30"), Some(1.59e9));
        let spelled = format!("3x{}", cifar10.replace("2s", "2P"));
        assert_eq!(value("cifar10", &spelled, "accuracy", "inf"), Some(0.903));
        assert_eq!(value("svhn", cifar10, "accuracy", "inf"), None);
        assert_eq!(value("digits", "1x8x8-16C3-32C3-2P-128FC-10o", "accuracy", "inf"), None);
        assert_eq!(value("cifar10", cifar10, "accuracy", "10"), None);
        assert_eq!(value("cifar10", cifar10, "footprint", "30"), None);
    }
}
