//! Generalisation: SSE of test images against SSE of training images, epoch by epoch.
//!
//! Both are measured in evaluation. The running training SSE lags behind while the network learns quickly,
//! and dropout and augmentation make it a different quantity.
//!
//! Everything here comes from `metrics.jsonl`; no image is shown again.

use super::statistics::mean;
use leaklab_record::metrics::Epoch;
use leaklab_record::tables::{GeneralisationRow, GeneralisationSummaryRow};
use leaklab_record::{Rows, Table};

/// Epochs at the end of training over which the paper averages its SSE (131 to 150).
pub const LAST_EPOCHS: u64 = 20;

/// Factor from our SSE, a mean over samples, to the scale of the paper's, which has no unit: the sum over a
/// batch of 64 of half the squared error.
pub const PAPER_FACTOR: f64 = 32.0;

/// Points at which two curves are compared.
const GRID: usize = 33;

/// First epoch of the mean at the end of training: the last 20 epochs as in the paper, but none before the
/// last reduction of the learning rate, after `last_drop` epochs.
pub fn first_of_last(epochs: u64, last_drop: u64) -> u64 {
    let drop = if last_drop < epochs { last_drop } else { 0 };
    // A run whose learning rate is never reduced counts as settled in its second half.
    let settled = if drop == 0 { epochs / 2 } else { drop };
    1 + settled.max(epochs.saturating_sub(LAST_EPOCHS))
}

/// The tables `generalisation` and `generalisation_summary`.
pub fn tables(epochs: &[Epoch], last_drop: u64) -> Vec<Table> {
    vec![per_epoch(epochs).table(), summary(epochs, last_drop).table()]
}

fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|x| x.is_finite())
}

fn per_epoch(epochs: &[Epoch]) -> Rows<GeneralisationRow> {
    let mut table = Rows::new(
        "Train and test error, epoch by epoch",
        "SSE is the mean over samples of the sum over outputs of (p - onehot)^2. Test and training SSE are \
         measured in evaluation after the epoch, the latter on a fixed part of the training samples; the \
         running training SSE is measured while the epoch runs, with dropout and augmentation on, and lags \
         behind in early epochs.",
    );
    table.rows.extend(epochs.iter().map(|epoch| GeneralisationRow {
        epoch: epoch.epoch,
        learning_rate: epoch.learning_rate,
        running_train_sse: finite(epoch.train_sse),
        train_sse: finite(epoch.train_sse_evaluated),
        test_sse: finite(epoch.test_sse),
        running_train_accuracy: finite(Some(epoch.train_accuracy)),
        test_accuracy: finite(epoch.test_accuracy),
    }));
    let empty = |row: &GeneralisationRow| row.train_sse.is_none() || row.test_sse.is_none();
    if table.rows.iter().any(empty) {
        table.note("A cell is empty where the error was not finite, or where the epoch was not evaluated.");
    }
    table
}

fn summary(epochs: &[Epoch], last_drop: u64) -> Rows<GeneralisationSummaryRow> {
    let mut table = Rows::new(
        "Error at the end of training",
        "Mean over the last 20 epochs, but over none before the last reduction of the learning rate (or \
         before half of the training, if it is never reduced). The paper gives its SSE without a unit; 32 \
         times the mean over samples (the sum of its loss over a batch) fits its table.",
    );
    let last_epoch = epochs.last().map_or(0, |epoch| epoch.epoch);
    let first_epoch = first_of_last(last_epoch, last_drop);
    let last: Vec<&Epoch> = epochs.iter().filter(|epoch| epoch.epoch >= first_epoch).collect();
    // If an evaluated epoch has no finite value, there is no mean: that of the others would make a diverged
    // run look good.
    let over = |column: fn(&Epoch) -> Option<f64>| {
        let evaluated: Vec<&&Epoch> = last.iter().filter(|epoch| epoch.test_accuracy.is_some()).collect();
        let values: Vec<f64> = evaluated.iter().filter_map(|epoch| finite(column(epoch))).collect();
        if values.len() == evaluated.len() { mean(&values) } else { None }
    };
    let row = GeneralisationSummaryRow {
        first_epoch,
        last_epoch,
        test_sse: over(|epoch| epoch.test_sse),
        train_sse: over(|epoch| epoch.train_sse_evaluated),
        running_train_sse: over(|epoch| epoch.train_sse),
        test_accuracy: over(|epoch| epoch.test_accuracy),
    };
    if row.test_sse.is_none() || row.train_sse.is_none() {
        table.note("A cell is empty where not every one of these epochs has a finite value.");
    }
    table.rows.push(row);
    table
}

/// Test SSE as a function of training SSE, both in evaluation, from the last epochs of one run, which begin
/// with [`first_of_last`].
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// `(ln train SSE, ln test SSE)` in ascending order of train SSE, each train SSE once.
    points: Vec<(f64, f64)>,
}

impl Curve {
    /// The curve of a run; `None` if its last epochs have fewer than two different training SSEs.
    pub fn new(epochs: &[Epoch], last_drop: u64) -> Option<Self> {
        let first = first_of_last(epochs.last()?.epoch, last_drop);
        let mut points: Vec<(f64, f64)> = epochs
            .iter()
            .filter(|epoch| epoch.epoch >= first)
            .filter_map(|epoch| Some((epoch.train_sse_evaluated?, epoch.test_sse?)))
            .filter(|&(train, test)| train > 0.0 && test > 0.0 && train.is_finite() && test.is_finite())
            .map(|(train, test)| (train.ln(), test.ln()))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Epochs of equal training SSE count as one, with their mean.
        let mut merged: Vec<(f64, f64)> = Vec::with_capacity(points.len());
        for group in points.chunk_by(|a, b| a.0 == b.0) {
            let mean = group.iter().map(|p| p.1).sum::<f64>() / group.len() as f64;
            merged.push((group[0].0, mean));
        }
        (merged.len() > 1).then_some(Curve { points: merged })
    }

    /// The range of `ln train SSE`.
    fn range(&self) -> (f64, f64) {
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

/// Training SSEs (their logarithms, equally spaced) at which curves are compared: those that all of them have
/// in their last epochs. `None` if there are none.
pub fn settled_grid(curves: &[&Curve]) -> Option<Vec<f64>> {
    let low = curves.iter().map(|curve| curve.range().0).fold(f64::NEG_INFINITY, f64::max);
    let high = curves.iter().map(|curve| curve.range().1).fold(f64::INFINITY, f64::min);
    if !(low.is_finite() && low <= high) {
        return None;
    }
    Some((0..GRID).map(|i| low + (high - low) * i as f64 / (GRID - 1) as f64).collect())
}

/// Test SSE of `a` over that of `b` at equal training SSE: the geometric mean over [`settled_grid`], as a
/// logarithm.
pub fn log_ratio_at_equal_train_sse(a: &Curve, b: &Curve) -> Option<f64> {
    let grid = settled_grid(&[a, b])?;
    Some(grid.iter().map(|&x| a.at(x) - b.at(x)).sum::<f64>() / grid.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An epoch with nothing but its errors.
    fn epoch(number: u64, train_sse: f64, test_sse: f64) -> Epoch {
        Epoch {
            format: 1,
            epoch: number,
            learning_rate: 0.1,
            train_accuracy: 0.5,
            train_sse: Some(2.0 * train_sse),
            train_accuracy_evaluated: Some(0.5),
            train_sse_evaluated: Some(train_sse),
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
    fn the_last_epochs_begin_after_the_last_drop() {
        let first = [(1, 0), (2, 0), (12, 10), (12, 0), (150, 100), (150, 145), (30, 40)];
        assert_eq!(first.map(|(epochs, drop)| first_of_last(epochs, drop)), [1, 2, 11, 7, 131, 146, 16]);
        let epochs: Vec<_> = (1..=150).map(|e| epoch(e, e as f64, 2.0)).collect();
        let row = &summary(&epochs, 100).rows[0];
        assert_eq!((row.first_epoch, row.last_epoch), (131, 150));
        assert_eq!(
            (row.train_sse, row.running_train_sse, row.test_sse),
            (Some(140.5), Some(281.0), Some(2.0))
        );
    }

    #[test]
    fn a_diverged_run_has_no_mean() {
        let mut epochs: Vec<_> = (1..=4).map(|e| epoch(e, 0.5, 0.6)).collect();
        epochs[3].train_sse_evaluated = None;
        epochs[3].test_sse = Some(f64::INFINITY);
        assert_eq!(per_epoch(&epochs).rows[3].test_sse, None);
        let summary = summary(&epochs, 0);
        assert_eq!((summary.rows[0].test_sse, summary.rows[0].train_sse), (None, None));
        assert_eq!(summary.notes.len(), 1);
        assert!(tables(&[], 0).iter().all(|t| t.name.starts_with("generalisation")));
    }

    #[test]
    fn early_epochs_do_not_count_at_equal_train_sse() {
        // After settling, test SSE = 2 * training SSE for one and 3 * training SSE for the other; early
        // epochs show the opposite.
        let run = |factor: f64, early: f64| {
            let points = [0.9, 0.8, 0.4, 0.3, 0.2].into_iter().enumerate();
            let epochs: Vec<_> = points
                .map(|(i, x)| epoch(i as u64 + 1, x, if x > 0.5 { early } else { factor } * x))
                .collect();
            Curve::new(&epochs, 2).unwrap()
        };
        let (a, b) = (run(2.0, 5.0), run(3.0, 1.0));
        let ratio = log_ratio_at_equal_train_sse(&a, &b).unwrap().exp();
        assert!((ratio - 2.0 / 3.0).abs() < 1e-12, "{ratio}");
        let grid = settled_grid(&[&a, &b]).unwrap();
        assert!((grid[0].exp() - 0.2).abs() < 1e-12 && (grid[GRID - 1].exp() - 0.4).abs() < 1e-12);
    }

    #[test]
    fn curves_that_do_not_meet_are_not_compared() {
        let run = |train: [f64; 4]| {
            let epochs: Vec<_> =
                train.iter().enumerate().map(|(i, &x)| epoch(i as u64 + 1, x, 1.0)).collect();
            Curve::new(&epochs, 2)
        };
        // The second run had the training SSE of the first one's last epochs, but at a higher learning rate.
        let (a, b) = (run([1.2, 1.0, 0.9, 0.8]).unwrap(), run([0.9, 0.8, 0.3, 0.2]).unwrap());
        assert_eq!(log_ratio_at_equal_train_sse(&a, &b), None);
        assert_eq!(run([0.9, 0.8, 0.7, 0.7]), None);
    }
}
