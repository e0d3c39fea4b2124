//! Tables of a study: its conditions and runs, how they compare, and what follows.

use crate::noun::{Differs, NoiseKey, Role, Stimulus};
use crate::quantity::{Quantity, Reading, Unit};
use crate::verdict::{Case, ClaimId, Verdict};
use leaklab_engine::Tau;
use leaklab_engine::noise::{Noise, Scenario};

crate::row! {
    /// One planned run of a study.
    pub struct PlanRow in "plan" {
        /// Folder of the run, in `runs`.
        run: String [""],
        /// Its condition.
        condition: String [""],
        /// Its seed.
        seed: u64 [""],
        /// Number of epochs to train.
        epochs: u64 ["epochs"],
        /// Membrane time constant, if the condition differs from the others only in that.
        tau: Option<Tau> ["steps"],
        /// Role of its condition in the study.
        role: Role [""],
    }
}

crate::row! {
    /// One condition.
    pub struct ConditionRow in "conditions" {
        /// Name of the condition.
        condition: String [""],
        /// Membrane time constant, if it differs from the baseline only in that (and for the baseline
        /// itself).
        tau: Option<Tau> ["steps"],
        /// baseline, compared or probe.
        role: Role [""],
        /// Settings in which it differs from the baseline.
        differs: Differs [""],
        /// Number of runs.
        runs: u64 [""],
        /// 1 if every run learned, 0 if not; empty if that is not known.
        learned: Option<bool> [""],
        /// Why it counts as not learned.
        reason: String [""],
    }
}

crate::row! {
    /// One run.
    pub struct RunRow in "runs" {
        /// Folder of the run.
        run: String [""],
        /// Its condition.
        condition: String [""],
        /// Its seed.
        seed: u64 [""],
        /// Clean test accuracy.
        accuracy: Option<f64> ["fraction"],
        /// One over the number of classes.
        chance: f64 ["fraction"],
        /// 1 if the run learned, 0 if not, empty if that is not known.
        learned: Option<bool> [""],
        /// Why it did not learn.
        reason: String [""],
    }
}

crate::row! {
    /// One cell of the paper's Table 1.
    pub struct Table1Row in "table1" {
        /// Row of the table.
        quantity: Quantity [""],
        /// Factor that scales the mean to the paper's figure.
        factor: f64 [""],
        /// Condition.
        condition: String [""],
        /// Mean over seeds, in `unit`.
        mean: Option<f64> [""],
        /// Standard error of the mean over seeds; empty with one seed.
        standard_error: Option<f64> [""],
        /// Number of runs.
        seeds: u64 [""],
        /// The paper's value, if data set and network are those of the paper.
        paper: Option<f64> [""],
        /// Unit of the row.
        unit: Unit [""],
    }
}

crate::row! {
    /// Accuracy of one condition at one severity of one noise.
    pub struct RobustnessByConditionRow in "robustness_by_condition" {
        /// Kind of noise.
        noise: Noise [""],
        /// Where it enters: pixel (before encoding) or channel (added to the spikes).
        scenario: Scenario [""],
        /// 0 is clean, 8 the strongest.
        severity: u64 [""],
        /// Strength of the noise at this severity.
        level: f64 [""],
        /// Condition.
        condition: String [""],
        /// Mean accuracy over seeds.
        mean: f64 ["fraction"],
        /// Lower end of its 95 % interval over seeds and images; empty with one seed.
        low: Option<f64> ["fraction"],
        /// Upper end of the interval.
        high: Option<f64> ["fraction"],
        /// Number of runs.
        seeds: u64 [""],
    }
}

crate::row! {
    /// A quantity of two conditions, compared in pairs of runs with the same seed.
    pub struct ContrastRow in "contrasts" {
        /// The quantity.
        quantity: Quantity [""],
        /// First condition.
        a: String [""],
        /// Second condition.
        b: String [""],
        /// Mean difference a - b, or geometric mean of the ratio a / b if `unit` is ratio.
        mean: f64 [""],
        /// Lower end of its 95 % interval; empty with one pair.
        low: Option<f64> [""],
        /// Upper end of the interval.
        high: Option<f64> [""],
        /// Two-sided p value for the hypothesis of no effect.
        p: Option<f64> [""],
        /// Number of pairs of runs with the same seed.
        pairs: u64 [""],
        /// Standard error over seeds (of the logarithm, for a ratio).
        seed_error: Option<f64> [""],
        /// Standard error over test images, if the quantity is a share of images.
        image_error: Option<f64> [""],
        /// Unit of mean and interval.
        unit: Unit [""],
    }
}

crate::row! {
    /// Errors of one condition after one epoch.
    pub struct GeneralisationByConditionRow in "generalisation_by_condition" {
        /// Condition.
        condition: String [""],
        /// Epochs trained.
        epoch: u64 ["epochs"],
        /// Training SSE in evaluation, mean over seeds.
        train_sse: f64 ["SSE"],
        /// Test SSE, mean over seeds.
        test_sse: f64 ["SSE"],
        /// Number of runs.
        seeds: u64 [""],
    }
}

crate::row! {
    /// Test error of one condition at one training error.
    pub struct EqualTrainSseRow in "equal_train_sse" {
        /// Training error at which runs are compared.
        train_sse: f64 ["SSE"],
        /// Condition.
        condition: String [""],
        /// Mean test error over seeds.
        mean: f64 ["SSE"],
        /// Lower end of its 95 % interval over seeds.
        low: Option<f64> ["SSE"],
        /// Upper end of the interval.
        high: Option<f64> ["SSE"],
        /// Number of runs.
        seeds: u64 [""],
    }
}

crate::row! {
    /// Weighted-input norm of one layer in one condition.
    pub struct NormByConditionRow in "norm_by_condition" {
        /// Hidden conv or FC layer.
        layer: String [""],
        /// Condition.
        condition: String [""],
        /// Mean over seeds.
        mean: f64 ["v_th"],
        /// Lower end of its 95 % interval over seeds.
        low: Option<f64> ["v_th"],
        /// Upper end of the interval.
        high: Option<f64> ["v_th"],
        /// Number of runs.
        seeds: u64 [""],
    }
}

crate::row! {
    /// Critical frequency of one condition by one reading.
    pub struct CriticalByConditionRow in "critical_by_condition" {
        /// Condition.
        condition: String [""],
        /// Stimulus: clean, or a noise at a severity.
        stimulus: Stimulus [""],
        /// How the critical frequency is read: defined, settled or shuffled.
        reading: Reading [""],
        /// Mean over seeds.
        mean: f64 ["cycles/step"],
        /// Lower end of its 95 % interval over seeds.
        low: Option<f64> ["cycles/step"],
        /// Upper end of the interval.
        high: Option<f64> ["cycles/step"],
        /// Number of runs.
        seeds: u64 [""],
        /// The paper's value, if data set and network are those of the paper.
        paper: Option<f64> ["cycles/step"],
    }
}

crate::row! {
    /// Cost and robustness of one condition.
    pub struct TradeoffRow in "tradeoff" {
        /// Condition.
        condition: String [""],
        /// Synaptic operations per image, mean over seeds.
        synops: f64 ["operations/image"],
        /// Half-width of the 95 % interval over seeds of that mean; empty with one seed.
        synops_half: Option<f64> ["operations/image"],
        /// Energy of the synaptic operations at 0.9 pJ each (45 nm CMOS).
        energy: f64 ["J"],
        /// Mean accuracy over all noises of the study and severities 1 to 8, mean over seeds.
        robustness: f64 ["fraction"],
        /// Half-width of the 95 % interval of that mean.
        robustness_half: Option<f64> ["fraction"],
        /// Clean test accuracy, mean over seeds.
        accuracy: Option<f64> ["fraction"],
        /// 1 on the Pareto front, 0 if another condition is at least as good in both and better in one.
        pareto: bool [""],
    }
}

crate::row! {
    /// The verdict on a claim, or on a part of one.
    pub struct ClaimRow in "claims" {
        /// Number of the claim.
        claim: ClaimId [""],
        /// Which part of it, such as a noise or a layer; empty if it has only one.
        part: String [""],
        /// The noise that this part refers to.
        noise: Option<NoiseKey> [""],
        /// What is claimed.
        statement: String [""],
        /// What the paper found; with numbers only if data set and network are those of the paper.
        paper: String [""],
        /// Our value of `quantity`, in `unit`.
        ours: Option<f64> [""],
        /// Lower end of its 95 % interval; empty with too few seeds.
        low: Option<f64> [""],
        /// Upper end of the interval.
        high: Option<f64> [""],
        /// Two-sided p value, with Holm's correction if several noises are tested.
        p: Option<f64> [""],
        /// Smallest effect of interest, in `unit`.
        smallest: f64 [""],
        /// holds, does not hold, or not enough evidence.
        verdict: Verdict [""],
        /// Which case of the rule applies.
        case: Case [""],
        /// The case in a sentence.
        reason: String [""],
        /// How the verdict follows from our value.
        rule: String [""],
        /// What `ours` is.
        quantity: String [""],
        /// Unit of `ours`.
        unit: Unit [""],
        /// Pairs of runs from which the value follows (runs with the small tau for claim 7).
        seeds: u64 [""],
        /// Pairs of runs that would decide an undecided claim with a power of 80 %, estimated from the
        /// observed variance (for claim 7, runs with the small tau, if the same share of them fails); empty
        /// if the claim is decided or no number of seeds would be enough.
        seeds_needed: Option<u64> [""],
    }
}

crate::row! {
    /// The answer to "does leak make a spiking network robust?".
    pub struct AnswerRow in "answer" {
        /// Which case of the rule applies.
        case: AnswerCase [""],
        /// The answer in one or two sentences.
        sentence: String [""],
    }
}

/// Cases of the page's opening sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AnswerCase {
    /// Fewer than two conditions that differ in tau alone have learned.
    NothingLearned,
    /// No accuracy under noise was measured, or in too few runs.
    NotMeasured,
    /// For every noise an effect of interest is excluded.
    NoEffect,
    /// An effect in the claimed direction, smaller than the smallest effect of interest.
    BelowInterest,
    /// An effect that shows at strong noise only.
    OnlyStrongNoise,
    /// An effect between most and least leak, not between neighbours.
    OnlyExtremes,
    /// Between two neighbouring tau, more leak makes networks less robust.
    NotSteady,
    /// The more leak, the more robust.
    DoseResponse,
    /// Leak makes networks less robust.
    Against,
    /// Some noises in one direction, others in the opposite direction or undecided.
    Mixed,
    /// The runs allow both answers.
    Undecided,
}

impl AnswerCase {
    /// All of them.
    pub const ALL: [AnswerCase; 11] = [
        AnswerCase::NothingLearned,
        AnswerCase::NotMeasured,
        AnswerCase::NoEffect,
        AnswerCase::BelowInterest,
        AnswerCase::OnlyStrongNoise,
        AnswerCase::OnlyExtremes,
        AnswerCase::NotSteady,
        AnswerCase::DoseResponse,
        AnswerCase::Against,
        AnswerCase::Mixed,
        AnswerCase::Undecided,
    ];

    fn name(self) -> &'static str {
        match self {
            AnswerCase::NothingLearned => "nothing learned",
            AnswerCase::NotMeasured => "not measured",
            AnswerCase::NoEffect => "no effect",
            AnswerCase::BelowInterest => "below interest",
            AnswerCase::OnlyStrongNoise => "only strong noise",
            AnswerCase::OnlyExtremes => "only extremes",
            AnswerCase::NotSteady => "not steady",
            AnswerCase::DoseResponse => "dose-response",
            AnswerCase::Against => "against",
            AnswerCase::Mixed => "mixed",
            AnswerCase::Undecided => "undecided",
        }
    }
}

impl std::fmt::Display for AnswerCase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl std::str::FromStr for AnswerCase {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        AnswerCase::ALL.into_iter().find(|case| case.name() == name).ok_or(())
    }
}

crate::text_field! { AnswerCase: "a case of the opening sentence" }
