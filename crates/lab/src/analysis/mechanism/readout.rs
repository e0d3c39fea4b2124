//! All the readouts of one run of the hidden layers, from the output layer's recorded signal.

use leaklab_engine::neuron::readout;
use leaklab_engine::{ReadoutDivisor, Tau};
use leaklab_record::{Readout, TimeWindow};

/// Shares of the steps that a readout skips at the start, in percent.
pub const SKIPPED: [u64; 4] = [10, 20, 30, 50];
/// Shares of the steps at the end that a readout uses alone, in percent.
pub const LAST: [u64; 2] = [10, 20];
/// Share of the steps that the control skips, in percent.
pub const CONTROL: u64 = 20;
/// Number of windows into which time is divided.
const TENTHS: u64 = 10;

/// The readout that skips a share of the steps, in percent; at least one step is left.
pub fn skip(percent: u64, steps: u64) -> Readout {
    let skipped = (percent * steps + 50) / 100;
    Readout::Window { first: skipped.min(steps - 1) + 1, last: steps }
}

/// The readout that uses only a share of the steps at the end, in percent; at least one step.
pub fn last(percent: u64, steps: u64) -> Readout {
    let taken = ((percent * steps + 50) / 100).max(1);
    Readout::Window { first: steps - taken + 1, last: steps }
}

/// The windows of accuracy over time, in order: up to each tenth of the steps, and each tenth alone.
pub fn over_time(steps: u64) -> Vec<(TimeWindow, Readout)> {
    let end = |tenth: u64| (tenth * steps) / TENTHS;
    let mut windows = Vec::new();
    for tenth in (1..=TENTHS).filter(|&tenth| end(tenth) > end(tenth - 1)) {
        windows.push((TimeWindow::UpTo, Readout::Window { first: 1, last: end(tenth) }));
    }
    for tenth in (1..=TENTHS).filter(|&tenth| end(tenth) > end(tenth - 1)) {
        let window = Readout::Window { first: end(tenth - 1) + 1, last: end(tenth) };
        windows.push((TimeWindow::Alone, window));
    }
    windows
}

/// The time constants of the readouts: no leak, those of the study, and a tenth, a third and all of the
/// steps.
pub fn time_constants(taus: &[Tau], steps: u64) -> Vec<Tau> {
    let of_steps = [10.0, 3.0, 1.0].map(|part| (steps as f64 / part).max(1.0).round());
    let own = of_steps.iter().filter_map(|&steps| Tau::new(steps).ok());
    let mut all: Vec<Tau> = taus.iter().copied().chain(own).chain([Tau::INFINITE]).collect();
    all.sort();
    all.dedup();
    all
}

/// The readouts that are compared with the plain sum: leaky, reversed, without their first steps, their last
/// steps alone.
pub fn compared(taus: &[Tau], steps: u64) -> Vec<Readout> {
    let taus = time_constants(taus, steps);
    let mut all: Vec<Readout> = taus.iter().map(|&tau| Readout::Leaky(tau)).collect();
    all.extend(taus.iter().filter(|tau| tau.leaks()).map(|&tau| Readout::Reversed(tau)));
    all.extend(SKIPPED.iter().map(|&percent| skip(percent, steps)));
    all.extend(LAST.iter().map(|&percent| last(percent, steps)));
    let mut seen = Vec::new();
    all.retain(|readout| {
        let new = !seen.contains(readout);
        seen.push(*readout);
        new
    });
    all
}

/// Every readout that is measured for every run.
pub fn all(taus: &[Tau], steps: u64) -> Vec<Readout> {
    let mut all = compared(taus, steps);
    for (_, window) in over_time(steps) {
        if !all.contains(&window) {
            all.push(window);
        }
    }
    all
}

/// Whether a readout of a signal `[step][class]` predicts the label with finite predictions.
pub fn is_correct(
    readout: Readout,
    divisor: ReadoutDivisor,
    signal: &[f32],
    classes: usize,
    label: usize,
) -> bool {
    let prediction = match readout {
        Readout::Leaky(tau) => readout::predict(signal, classes, tau, divisor),
        Readout::Reversed(tau) => {
            let reversed: Vec<f32> = signal.chunks_exact(classes).rev().flatten().copied().collect();
            readout::predict(&reversed, classes, tau, divisor)
        }
        Readout::Window { first, last } => {
            let steps = (first as usize - 1) * classes..last as usize * classes;
            readout::predict(&signal[steps], classes, Tau::INFINITE, divisor)
        }
    };
    readout::class(&prediction) == label && prediction.iter().all(|p| p.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_by_hand() {
        let window = |first, last| Readout::Window { first, last };
        assert_eq!(
            SKIPPED.map(|p| skip(p, 30)),
            [window(4, 30), window(7, 30), window(10, 30), window(16, 30)]
        );
        assert_eq!(last(10, 30), window(28, 30));
        assert_eq!((skip(50, 1), last(10, 1)), (window(1, 1), window(1, 1)));
        let time = over_time(30);
        assert_eq!(
            (time.len(), time[0], time[19]),
            (20, (TimeWindow::UpTo, window(1, 3)), (TimeWindow::Alone, window(28, 30)))
        );
        // With fewer steps than windows, the empty windows are omitted.
        assert_eq!(over_time(3).len(), 6);
        let taus = [Tau::new(30.0).unwrap(), Tau::new(100.0).unwrap()];
        let names: Vec<String> = time_constants(&taus, 30).iter().map(Tau::to_string).collect();
        assert_eq!(names, ["3", "10", "30", "100", "inf"]);
    }

    #[test]
    fn each_readout_weights_steps_as_defined() {
        // Class 0 early, class 1 late and weaker.
        let signal = [1.0, 0.0, 0.0, 0.0, 0.0, 0.9];
        let divisor = ReadoutDivisor::Steps;
        let reads = |readout| is_correct(readout, divisor, &signal, 2, 0);
        let tau = Tau::new(5.0).unwrap();
        assert!(reads(Readout::PLAIN) && reads(Readout::Reversed(tau)));
        assert!(!reads(Readout::Leaky(tau)) && !reads(Readout::Window { first: 2, last: 3 }));
        assert!(!is_correct(Readout::PLAIN, divisor, &[f32::NAN, 0.0], 2, 0));
    }
}
