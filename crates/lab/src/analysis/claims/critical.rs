//! Claim 6: the critical frequency falls with leak, by three readings, and rises with noise.

use super::super::compare::Comparison;
use super::super::contrast::MINIMUM_PAIRS;
use super::super::published;
use super::super::statistics::Estimate;
use super::super::stimulus::SPECTRUM_SEVERITY;
use super::trend::{Trend, extremes, trend};
use super::{ABOVE, BELOW, blank, published_values, reason, shift, with_contrast};
use leaklab_record::tables::ClaimRow;
use leaklab_record::{Case, ClaimId, PAPER_NOISES, Quantity, Reading, Stimulus, Unit};

/// The stimuli of claim 6: clean, and Gaussian noise on the pixels as in the paper's Fig. 4, or, if the runs
/// were not tested with it, the first noise that they were tested with.
fn stimuli(comparison: &Comparison) -> Vec<Stimulus> {
    let found: Vec<Stimulus> = comparison
        .quantities()
        .iter()
        .filter_map(|quantity| {
            let Quantity::CriticalFrequency(Reading::Defined, stimulus) = quantity else { return None };
            Some(*stimulus)
        })
        .collect();
    let paper = Stimulus::at(PAPER_NOISES[0], SPECTRUM_SEVERITY);
    let noisy = found.iter().find(|&&s| s == paper).or_else(|| found.iter().find(|&&s| s != Stimulus::Clean));
    found.iter().copied().filter(|s| *s == Stimulus::Clean || Some(s) == noisy).collect()
}

/// Judges whether the critical frequency falls with leak and rises with noise.
pub(super) fn judge(comparison: &Comparison) -> Vec<ClaimRow> {
    let mut rows = Vec::new();
    for stimulus in stimuli(comparison) {
        for reading in Reading::ALL {
            let quantity = Quantity::CriticalFrequency(reading, stimulus);
            let paper = match reading {
                Reading::Defined => {
                    published_values(comparison, &quantity).unwrap_or_else(|| "falls with leak".into())
                }
                Reading::Settled | Reading::Shuffled => "not measured".into(),
            };
            rows.push(trend(
                comparison,
                Trend {
                    claim: ClaimId::CriticalFrequency,
                    part: format!("leak, {stimulus}, {reading}"),
                    statement: format!(
                        "The critical frequency of the target output, {}, falls with leak ({}).",
                        reading.words(),
                        stimulus.words()
                    ),
                    paper,
                    quantity,
                    side: shift(BELOW),
                },
            ));
        }
        if stimulus != Stimulus::Clean {
            let names = comparison.sweep().into_iter().map(|group| group.row.condition.as_str());
            rows.extend(names.filter_map(|condition| rises_with_noise(comparison, stimulus, condition)));
        }
    }
    rows
}

/// Judges whether noise raises the critical frequency of a condition.
fn rises_with_noise(comparison: &Comparison, stimulus: Stimulus, condition: &str) -> Option<ClaimRow> {
    let contrast = comparison.estimate(&Quantity::CriticalRise(stimulus), condition)?;
    let config = &comparison.run().config;
    let tau = comparison.group(condition).and_then(|group| group.row.tau);
    let paper = |stimulus: Stimulus| {
        let quantity = Quantity::CriticalFrequency(Reading::Defined, stimulus);
        published::value(&config.dataset, &config.network.to_string(), &quantity, tau).map(|value| value.0)
    };
    let side = shift(ABOVE);
    let case = side.case(contrast.interval());
    let part = format!("noise, {stimulus}, {condition}");
    let statement =
        format!("With {condition}, the critical frequency rises with noise ({}).", stimulus.words());
    let mut row =
        with_contrast(blank(ClaimId::CriticalFrequency, &part, &statement, Unit::Frequency), Some(&contrast));
    row.noise = if let Stimulus::Noisy(noise, _) = stimulus { Some(noise) } else { None };
    row.paper = match (paper(Stimulus::Clean), paper(stimulus)) {
        (Some(clean), Some(noisy)) => format!("{clean} clean, {noisy} at severity {SPECTRUM_SEVERITY}"),
        _ => "rises for every tau".into(),
    };
    row.smallest = side.smallest;
    (row.case, row.verdict) = (case, case.verdict());
    row.reason = reason(&side, case, Some(&contrast));
    if case == Case::Undecided {
        row.seeds_needed = contrast.pairs_needed(side.smallest);
    }
    row.quantity = format!("{}, {condition}", Quantity::CriticalRise(stimulus).words());
    row.rule = format!(
        "Paired difference noisy minus clean by seed, 95 % interval; the smallest effect of interest is {}. \
         Holds: the whole interval lies {}. Does not hold: otherwise, if the interval rules out a \
         rise of interest. Not enough evidence: the interval includes both no effect and one of interest, or \
         there are fewer than {MINIMUM_PAIRS} seeds.",
        side.words,
        side.place()
    );
    Some(row)
}

/// A note on what shifts the critical frequency, from its three readings.
pub(super) fn note(comparison: &Comparison) -> Option<String> {
    let (a, b) = extremes(comparison)?;
    let of = |reading: Reading| {
        let quantity = Quantity::CriticalFrequency(reading, Stimulus::Clean);
        let contrast = comparison.contrast(&quantity, a, b)?;
        Some((contrast.mean, contrast.interval()?))
    };
    let [defined, settled, shuffled] = Reading::ALL.map(of);
    let ((defined, interval), (settled, later), (shuffled, surrogate)) = (defined?, settled?, shuffled?);
    let share = Quantity::ZeroFrequencyShare(Stimulus::Clean);
    let share = comparison.contrast(&share, a, b).map_or(String::new(), |contrast| {
        format!(" The share of power at frequency 0 differs by {:+.1} points.", 100.0 * contrast.mean)
    });
    let towards = |x: f64| x * defined.signum();
    // The smallest and the largest value that an interval allows, in the direction of the effect.
    let range = |of: Estimate| {
        let ends = [towards(of.low), towards(of.high)];
        (ends[0].min(ends[1]), ends[0].max(ends[1]))
    };
    let half = 0.5 * defined.abs();
    let cause = if interval.low <= 0.0 && interval.high >= 0.0 {
        "That may be chance, so no cause is named."
    } else if range(later).1 < 0.0 {
        "Its sign depends on the reading, so it does not show filtering."
    } else if range(surrogate).0 >= half {
        "Most of it is also present in shuffled spike trains, which have no temporal structure: it comes \
         from spike counts and weights, not from filtering in time."
    } else if range(surrogate).1 < half {
        "Less than half of it is present in shuffled spike trains, so most of it comes from the order of \
         spikes in time."
    } else {
        "How much of it is present in shuffled spike trains is not known well enough to name a cause."
    };
    Some(format!(
        "Claim 6, {a} compared with {b}, clean: the critical frequency differs by {defined:+.4} cycles/step \
         as defined, {settled:+.4} without the first 20 % of steps, {shuffled:+.4} for shuffled spike \
         trains. {cause}{share}"
    ))
}
