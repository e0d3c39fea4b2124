//! How well a network does on images it was not trained on: SSE of test against train, epoch by epoch.
//!
//! Everything here comes from `metrics.jsonl`; no image is shown again.

use leaklab_record::metrics::Epoch;
use leaklab_record::{Cell, Table};

/// Epochs at the end of training over which the paper averages its SSE (131 to 150).
pub const LAST_EPOCHS: usize = 20;

/// The factor that brings our SSE, a mean over samples, to the size of the paper's, which has no unit: the sum over
/// a batch of 64 of half the squared error.
pub const PAPER_FACTOR: f64 = 32.0;

/// Points at which two curves are compared.
const GRID: usize = 33;

/// How many of a run's last epochs are averaged: the paper's 20, but never more than the second half of a short run.
pub fn last_epochs(epochs: usize) -> usize {
    LAST_EPOCHS.min(epochs.div_ceil(2))
}

/// The tables `generalisation` and `generalisation_summary`.
pub fn tables(epochs: &[Epoch]) -> Vec<Table> {
    vec![per_epoch(epochs), summary(epochs)]
}

fn per_epoch(epochs: &[Epoch]) -> Table {
    let mut table = Table::new(
        "generalisation",
        "Train and test error, epoch by epoch",
        "SSE is the mean over samples of the sum over outputs of (p - onehot)^2; on test images in evaluation, on \
         train images as training runs, with dropout and augmentation on.",
        &[
            ("epoch", "epochs", "Epochs trained."),
            ("train_sse", "", "SSE on the training images during the epoch."),
            ("test_sse", "", "SSE on the test images after the epoch."),
            ("train_accuracy", "fraction", "Accuracy on the training images during the epoch."),
            ("test_accuracy", "fraction", "Accuracy on the test images after the epoch."),
        ],
    );
    for epoch in epochs {
        table.push(vec![
            epoch.epoch.into(),
            finite(epoch.train_sse),
            finite(epoch.test_sse),
            finite(Some(epoch.train_accuracy)),
            finite(epoch.test_accuracy),
        ]);
    }
    if table.rows.iter().any(|row| row.contains(&Cell::Empty)) {
        table.notes.push(
            "A cell is empty where the error was not finite, or where the epoch was not evaluated on test images."
                .into(),
        );
    }
    table
}

fn summary(epochs: &[Epoch]) -> Table {
    let count = last_epochs(epochs.len());
    let last = &epochs[epochs.len() - count..];
    let mut table = Table::new(
        "generalisation_summary",
        "Error at the end of training",
        "Mean over the last epochs: the last 20, or the second half of a run of fewer than 40. The paper gives its SSE \
         without a unit; 32 times the mean over samples (a batch's sum of its loss) fits its table.",
        &[
            ("quantity", "", "What is averaged."),
            ("value", "", "Mean over the last epochs that have a value."),
            ("unit", "", "Unit of the value."),
            ("epochs", "epochs", "How many epochs the mean is over."),
        ],
    );
    type Column = fn(&Epoch) -> Option<f64>;
    let columns: [(&str, Column, &str); 4] = [
        ("train_sse", |e| e.train_sse, "SSE per sample"),
        ("test_sse", |e| e.test_sse, "SSE per sample"),
        ("train_accuracy", |e| Some(e.train_accuracy), "fraction"),
        ("test_accuracy", |e| e.test_accuracy, "fraction"),
    ];
    for (name, column, unit) in columns {
        let values: Vec<f64> = last.iter().filter_map(column).filter(|x| x.is_finite()).collect();
        // One epoch without a number, and the mean would be of the others: a run that diverged would look good.
        let mean = (values.len() == count).then(|| super::statistics::mean(&values)).flatten();
        if mean.is_none() {
            table.notes.push(format!("{name}: not every one of the last {count} epochs has a finite value."));
        }
        table.push(vec![format!("{name}_last").into(), Cell::from(mean), unit.into(), values.len().into()]);
        if name.ends_with("sse") {
            let scaled = mean.map(|x| PAPER_FACTOR * x);
            let row = vec![
                format!("{name}_last_times_32").into(),
                Cell::from(scaled),
                "SSE per 32 samples".into(),
                values.len().into(),
            ];
            table.push(row);
        }
    }
    table
}

fn finite(value: Option<f64>) -> Cell {
    Cell::from(value.filter(|x| x.is_finite()))
}

/// Test SSE as a function of train SSE, from the epochs of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// `(ln train SSE, ln test SSE)` in ascending order of train SSE, each train SSE once.
    points: Vec<(f64, f64)>,
}

impl Curve {
    /// The curve of a run; `None` of fewer than two different train SSEs.
    pub fn new(epochs: &[Epoch]) -> Option<Self> {
        let mut points: Vec<(f64, f64)> = epochs
            .iter()
            .filter_map(|e| e.train_sse.zip(e.test_sse))
            .filter(|&(train, test)| train > 0.0 && test > 0.0 && train.is_finite() && test.is_finite())
            .map(|(train, test)| (train.ln(), test.ln()))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Epochs of equal train SSE count as one, with their mean.
        let mut merged: Vec<(f64, f64)> = Vec::with_capacity(points.len());
        for group in points.chunk_by(|a, b| a.0 == b.0) {
            let mean = group.iter().map(|p| p.1).sum::<f64>() / group.len() as f64;
            merged.push((group[0].0, mean));
        }
        (merged.len() > 1).then_some(Curve { points: merged })
    }

    /// The range of `ln train SSE`.
    pub fn range(&self) -> (f64, f64) {
        (self.points[0].0, self.points[self.points.len() - 1].0)
    }

    /// `ln test SSE` at a `ln train SSE` within the range, by linear interpolation between logarithms.
    pub fn at(&self, train: f64) -> f64 {
        let after = self.points.partition_point(|p| p.0 < train).clamp(1, self.points.len() - 1);
        let (a, b) = (self.points[after - 1], self.points[after]);
        let position = ((train - a.0) / (b.0 - a.0)).clamp(0.0, 1.0);
        a.1 + position * (b.1 - a.1)
    }
}

/// Train SSEs (their logarithms, equally spaced) that all curves reach; `None` if there is no common range.
pub fn common_grid<'a>(curves: impl IntoIterator<Item = &'a Curve>) -> Option<Vec<f64>> {
    let (low, high) = curves
        .into_iter()
        .map(Curve::range)
        .fold((f64::NEG_INFINITY, f64::INFINITY), |(low, high), (a, b)| (low.max(a), high.min(b)));
    let usable = low.is_finite() && high.is_finite() && low < high;
    usable.then(|| (0..GRID).map(|i| low + (high - low) * i as f64 / (GRID - 1) as f64).collect())
}

/// Test SSE of `a` over that of `b` at equal train SSE: the geometric mean over the range of train SSE that both
/// reach, equally spaced in its logarithm as in the paper's Fig. 5d,e. Given as a logarithm.
pub fn log_ratio_at_equal_train_sse(a: &Curve, b: &Curve) -> Option<f64> {
    let grid = common_grid([a, b])?;
    Some(grid.iter().map(|&x| a.at(x) - b.at(x)).sum::<f64>() / grid.len() as f64)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An epoch with nothing but its errors.
    pub(crate) fn epoch(number: u64, train_sse: f64, test_sse: f64) -> Epoch {
        Epoch {
            format: 1,
            epoch: number,
            learning_rate: 0.1,
            train_accuracy: 0.5,
            train_sse: Some(train_sse),
            test_accuracy: Some(0.5),
            test_sse: Some(test_sse),
            spike_rate: None,
            synops: None,
            layers: Vec::new(),
            seconds: 1.0,
            images_per_second: 1.0,
        }
    }

    #[test]
    fn the_last_epochs_are_averaged() {
        assert_eq!([1, 2, 25, 40, 150].map(last_epochs), [1, 1, 13, 20, 20]);
        let epochs: Vec<_> = (1..=150).map(|e| epoch(e, e as f64, 2.0)).collect();
        let table = &tables(&epochs)[1];
        let find = |name: &str| {
            let row = table.rows.iter().find(|row| row[0].text() == Some(name)).unwrap();
            (row[1].number(), row[3].number().unwrap())
        };
        assert_eq!(find("train_sse_last"), (Some(140.5), 20.0));
        assert_eq!(find("test_sse_last_times_32"), (Some(64.0), 20.0));
    }

    #[test]
    fn a_lost_run_has_no_mean() {
        let mut epochs: Vec<_> = (1..=4).map(|e| epoch(e, 0.5, 0.6)).collect();
        epochs[3].train_sse = None;
        epochs[3].test_sse = Some(f64::INFINITY);
        let tables = tables(&epochs);
        assert_eq!(tables[0].rows[3][1..3], [Cell::Empty, Cell::Empty]);
        assert_eq!(tables[1].rows[0][1], Cell::Empty);
        assert!(tables[1].notes.iter().any(|note| note.starts_with("train_sse")));
        assert!(super::tables(&[]).iter().all(|t| t.name.starts_with("generalisation")));
    }

    #[test]
    fn interpolates_at_equal_train_sse() {
        // test = 2 train for one, test = 3 train for the other, at other points and in another order.
        let a: Vec<_> = [0.9, 0.5, 0.7, 0.1, 0.1].iter().map(|&x| epoch(1, x, 2.0 * x)).collect();
        let b: Vec<_> = [1.2, 0.3, 0.2].iter().map(|&x| epoch(1, x, 3.0 * x)).collect();
        let (a, b) = (Curve::new(&a).unwrap(), Curve::new(&b).unwrap());
        let ratio = log_ratio_at_equal_train_sse(&a, &b).unwrap().exp();
        assert!((ratio - 2.0 / 3.0).abs() < 1e-12, "{ratio}");
        let grid = common_grid([&a, &b]).unwrap();
        assert!((grid[0].exp() - 0.2).abs() < 1e-12 && (grid[GRID - 1].exp() - 0.9).abs() < 1e-12);
    }

    #[test]
    fn curves_that_do_not_overlap_are_not_compared() {
        let a = Curve::new(&[epoch(1, 0.9, 1.0), epoch(2, 0.8, 1.0)]).unwrap();
        let b = Curve::new(&[epoch(1, 0.3, 1.0), epoch(2, 0.2, 1.0)]).unwrap();
        assert_eq!(log_ratio_at_equal_train_sse(&a, &b), None);
        assert_eq!(Curve::new(&[epoch(1, 0.9, 1.0), epoch(2, 0.9, 2.0)]), None);
    }
}
