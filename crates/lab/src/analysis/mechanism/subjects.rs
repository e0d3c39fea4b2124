//! The networks of a study that are analysed, and the runs of them that the tables need.

use super::cell::{Outcome, Shown};
use super::subject::{Subject, everywhere};
use super::{MechanismError, layers};
use crate::analysis::compare::{Comparison, RunRecord, load};
use crate::analysis::statistics::mean;
use crate::analysis::stimulus::SPECTRUM_SEVERITY;
use crate::analysis::{AnalysisError, Analyst, Options, Progress};
use leaklab_engine::noise::HIGHEST_SEVERITY;
use leaklab_engine::{Leak, Tau};
use leaklab_record::{NoiseKey, Stimulus};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The networks: some trained without leak, and for each time constant those trained with it.
pub struct Subjects {
    /// Networks trained without leak, by seed; for a single run, its network, whatever leak it was trained
    /// with.
    pub reference: Vec<Subject>,
    /// Networks trained with leak, from most to least; each has a partner of its seed in `reference`.
    pub leaky: Vec<(Tau, Vec<Subject>)>,
    /// Time constants that are switched on and off, from most to least leak.
    pub taus: Vec<Tau>,
    /// Clean, then each noise at one severity.
    pub stimuli: Vec<Stimulus>,
    /// Number of times that each image is shown.
    pub presentations: u32,
    /// Notes for all tables.
    pub notes: Vec<String>,
}

impl Subjects {
    /// The networks of a study's runs that differ in tau alone and learned.
    pub fn of_study(
        runs: &[PathBuf],
        baseline: Option<&str>,
        options: &Options,
    ) -> Result<Self, AnalysisError> {
        let records = runs.iter().map(|path| load(path)).collect::<Result<Vec<_>, _>>()?;
        let comparison = Comparison::new(&records, baseline)?;
        let path = |run: &RunRecord| records.iter().position(|r| r.name == run.name).map(|i| runs[i].clone());
        let mut without: Vec<&RunRecord> = Vec::new();
        let mut with: Vec<(Tau, Vec<&RunRecord>)> = Vec::new();
        for group in comparison.sweep() {
            match group.row.tau {
                Some(tau) if tau.leaks() => with.push((tau, group.runs.clone())),
                Some(_) => without.clone_from(&group.runs),
                None => {}
            }
        }
        if without.is_empty() {
            return Err(MechanismError::NoBaseline.into());
        }
        // Only runs of the same seed are compared.
        let has = |runs: &[&RunRecord], seed: u64| runs.iter().any(|run| run.config.seed == seed);
        for (_, members) in &mut with {
            members.retain(|run| has(&without, run.config.seed));
        }
        with.retain(|(_, members)| !members.is_empty());
        without.retain(|run| with.iter().any(|(_, members)| has(members, run.config.seed)));
        if with.is_empty() {
            return Err(MechanismError::NoLeak.into());
        }
        let taus: Vec<Tau> = with.iter().map(|(tau, _)| *tau).collect();
        let config = &without[0].config;
        let (stimuli, notes) = stimuli(&without, &config.noise);
        let open = |run: &&RunRecord, trained: Tau| -> Result<Subject, AnalysisError> {
            let path = path(run).expect("every record was read from a path");
            open(&path, trained, &taus, options)
        };
        Ok(Subjects {
            reference: without.iter().map(|run| open(run, Tau::INFINITE)).collect::<Result<_, _>>()?,
            leaky: with
                .iter()
                .map(|(tau, members)| {
                    let members: Result<Vec<_>, _> = members.iter().map(|run| open(run, *tau)).collect();
                    Ok((*tau, members?))
                })
                .collect::<Result<_, AnalysisError>>()?,
            presentations: config.presentations as u32,
            taus,
            stimuli,
            notes,
        })
    }

    /// The network of a single run. Its own time constant is switched on and off; if it was trained without
    /// leak, a time constant equal to the number of time steps is used.
    pub fn of_run(run: &Path, options: &Options) -> Result<Self, AnalysisError> {
        let record = load(run)?;
        let trained = record.config.leak.as_uniform().unwrap_or(record.config.leak.tau);
        let steps = Tau::new(record.config.time_steps as f64).unwrap_or(Tau::INFINITE);
        let taus = vec![if trained.leaks() { trained } else { steps }];
        let (stimuli, mut notes) = stimuli(&[&record], &record.config.noise);
        notes.push(format!(
            "A single network, trained with tau {trained}: the effect of training with leak cannot be \
             determined, and there are no intervals over seeds."
        ));
        let presentations = record.config.presentations as u32;
        let reference = vec![open(run, trained, &taus, options)?];
        Ok(Subjects { reference, leaky: Vec::new(), taus, stimuli, presentations, notes })
    }

    /// Whether recordings are shown instead of encoded images.
    pub fn recorded(&self) -> bool {
        self.reference.iter().any(|subject| subject.presentation.recorded)
    }

    /// The time constant of the strongest leak, which is used for tables with a single time constant.
    pub fn most_leak(&self) -> Tau {
        self.taus[0]
    }

    /// Networks of the same seed, trained without and with leak; for a single run, the network itself, twice.
    pub fn pairs(&self, tau: Tau) -> Vec<(&Subject, &Subject)> {
        let Some((_, leaky)) = self.leaky.iter().find(|(own, _)| *own == tau) else {
            return self.reference.iter().map(|subject| (subject, subject)).collect();
        };
        let partner = |subject: &Subject| leaky.iter().find(|other| other.seed == subject.seed);
        let pair = |subject| partner(subject).map(|other| (subject, other));
        self.reference.iter().filter_map(pair).collect()
    }

    /// Whether there are networks trained with leak.
    pub fn trained_with_leak(&self) -> bool {
        !self.leaky.is_empty()
    }

    /// Every run of the hidden layers under the study's stimuli that the tables need, each once.
    fn needs<'a>(&'a self) -> Vec<(&'a Subject, Leak, Stimulus)> {
        let mut all: Vec<(&'a Subject, Leak, Stimulus)> = Vec::new();
        let mut need = |subject: &'a Subject, leak: Leak, stimulus: Stimulus| {
            let known = |(s, l, st): &(&Subject, Leak, Stimulus)| {
                std::ptr::eq(*s, subject) && *l == leak && *st == stimulus
            };
            if !all.iter().any(known) {
                all.push((subject, leak, stimulus));
            }
        };
        let without = everywhere(Tau::INFINITE);
        for &stimulus in &self.stimuli {
            for subject in &self.reference {
                need(subject, without.clone(), stimulus);
                self.taus.iter().for_each(|&tau| need(subject, everywhere(tau), stimulus));
                if layers::stimuli(self).contains(&stimulus) {
                    layers::leaks(subject, self.most_leak())
                        .into_iter()
                        .for_each(|(_, _, leak)| need(subject, leak, stimulus));
                }
            }
            for (tau, members) in &self.leaky {
                for subject in members {
                    need(subject, without.clone(), stimulus);
                    need(subject, everywhere(*tau), stimulus);
                }
            }
        }
        all
    }

    /// Images that [`Panel::measure`] shows.
    pub fn panel_images(&self) -> u64 {
        let images = |(subject, ..): &(&Subject, Leak, Stimulus)| subject.split.len() as u64;
        self.needs().iter().map(images).sum::<u64>() * u64::from(self.presentations)
    }
}

fn open(run: &Path, trained: Tau, taus: &[Tau], options: &Options) -> Result<Subject, AnalysisError> {
    let mut analyst = Analyst::open(run, options)?;
    // Many networks are open at once, and none of them needs training images.
    analyst.dataset.train = Default::default();
    Subject::of_run(analyst, trained, taus)
}

/// Clean, and each noise at the severity at which the loss of the reference networks is closest to half of
/// their excess over chance.
fn stimuli(without: &[&RunRecord], noises: &[NoiseKey]) -> (Vec<Stimulus>, Vec<String>) {
    let (mut stimuli, mut notes) = (vec![Stimulus::Clean], Vec::new());
    let chance = without.first().map_or(0.0, |run| 1.0 / run.config.network.classes().max(1) as f64);
    for &noise in noises {
        let accuracies: Option<Vec<f64>> = (0..=HIGHEST_SEVERITY as u64)
            .map(|severity| {
                let rows = without.iter().flat_map(|run| &run.robustness);
                let here = rows.filter(|row| {
                    (row.noise, row.scenario, row.severity) == (noise.noise, noise.scenario, severity)
                });
                mean(&here.map(|row| row.accuracy).collect::<Vec<_>>())
            })
            .collect();
        let severity = accuracies.map_or_else(
            || {
                notes.push(format!(
                    "{noise}: accuracy against severity was not measured, so severity {SPECTRUM_SEVERITY} \
                     was used."
                ));
                SPECTRUM_SEVERITY
            },
            |accuracies| half_lost(&accuracies, chance),
        );
        stimuli.push(Stimulus::at(noise, severity));
    }
    (stimuli, notes)
}

/// The severity, from 1 on, at which the remaining excess of accuracy over chance is nearest to half; the
/// lowest of equals. `accuracies` begins with the clean one.
fn half_lost(accuracies: &[f64], chance: f64) -> usize {
    let half = 0.5 * (accuracies[0] + chance);
    let distance = |severity: &usize| (accuracies[*severity] - half).abs();
    (1..accuracies.len()).min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(1)
}

/// Runs of the hidden layers under the study's stimuli, by network, leak and stimulus.
pub struct Panel {
    outcomes: HashMap<(Tau, u64, Leak, Stimulus), Outcome>,
}

impl Panel {
    /// Makes every run that the tables need.
    pub fn measure(subjects: &Subjects, progress: &mut Progress) -> Result<Self, AnalysisError> {
        let mut outcomes = HashMap::new();
        for (subject, leak, stimulus) in subjects.needs() {
            let shown = Shown::Stimulus(stimulus);
            let outcome = subject.outcome(&leak, shown, subjects.presentations, progress)?;
            outcomes.insert((subject.trained, subject.seed, leak, stimulus), outcome);
        }
        Ok(Panel { outcomes })
    }

    /// The outcome of a run.
    ///
    /// # Panics
    /// If the run was not made.
    pub fn get(&self, subject: &Subject, leak: &Leak, stimulus: Stimulus) -> &Outcome {
        let key = (subject.trained, subject.seed, leak.clone(), stimulus);
        self.outcomes.get(&key).expect("every run that a table needs was made")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_severity_at_half_of_the_excess() {
        // Half of the excess over 0.1 is at 0.5.
        assert_eq!(half_lost(&[0.9, 0.8, 0.56, 0.45, 0.2], 0.1), 3);
        assert_eq!(half_lost(&[0.9, 0.88, 0.86], 0.1), 2);
        assert_eq!(half_lost(&[0.1, 0.1, 0.1], 0.1), 1);
    }
}
