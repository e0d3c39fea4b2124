//! The conditions of a study as the page shows them: their order, names and colours.

use super::typeset;
use crate::palette::{Look, looks};
use leaklab_record::noun::{Differs, tau_condition};
use leaklab_record::tables::{ConditionRow, PlanRow};
use leaklab_record::{Role, Tau};

/// Settings of leak.
const LEAK: [&str; 3] = ["tau", "layer_tau", "readout_tau"];

/// A condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// Name in the tables.
    pub name: String,
    /// Membrane time constant, if the condition differs only in that.
    pub tau: Option<Tau>,
    /// Role in the study.
    pub role: Role,
    /// Settings in which it differs from the baseline.
    pub differs: Differs,
    /// Whether it learned, if that is known.
    pub learned: Option<bool>,
    /// Why it counts as not learned.
    pub reason: String,
    /// How it is drawn.
    pub look: Look,
}

impl Condition {
    /// A condition about which nothing else is known.
    pub fn new(name: &str, tau: Option<Tau>, role: Role) -> Self {
        let look = Look { colour: "@rule", shape: "circle" };
        let (differs, reason) = (Differs::default(), String::new());
        Condition { name: name.to_owned(), tau, role, differs, learned: None, reason, look }
    }

    /// The name for a reader: the one that the study gives, or `τ = 30` or `no leak` if it gives none.
    pub fn title(&self) -> String {
        match self.tau {
            Some(tau) if self.name == tau_condition(tau) && tau.leaks() => format!("τ = {tau}"),
            Some(tau) if self.name == tau_condition(tau) => "no leak".to_owned(),
            // A name may begin with its time constant: `tau inf, readout 30`.
            _ if self.name.starts_with("tau ") => typeset::plain(&self.name),
            _ => self.name.clone(),
        }
    }

    /// The settings other than leak in which it differs from the baseline, such as `time_steps = 100`.
    pub fn beyond_leak(&self) -> Vec<String> {
        let others = self.differs.0.iter().filter(|(key, _)| !LEAK.contains(&key.as_str()));
        others.map(|(key, value)| format!("{key} = {value}")).collect()
    }

    /// The title, and whether it did not learn.
    pub fn label(&self) -> String {
        if self.failed() { format!("{} (did not learn)", self.title()) } else { self.title() }
    }

    /// Whether it is known that it did not learn.
    pub fn failed(&self) -> bool {
        self.learned == Some(false)
    }
}

impl From<&ConditionRow> for Condition {
    fn from(row: &ConditionRow) -> Self {
        Condition {
            differs: row.differs.clone(),
            learned: row.learned,
            reason: row.reason.clone(),
            ..Condition::new(&row.condition, row.tau, row.role)
        }
    }
}

impl From<&PlanRow> for Condition {
    fn from(row: &PlanRow) -> Self {
        Condition::new(&row.condition, row.tau, row.role)
    }
}

/// Each condition once, as it occurs first: those with a tau from most to least leak, then the others in
/// order of appearance, then probes.
pub fn arranged(found: impl IntoIterator<Item = Condition>) -> Vec<Condition> {
    let mut conditions: Vec<Condition> = Vec::new();
    for condition in found {
        if !conditions.iter().any(|known| known.name == condition.name) {
            conditions.push(condition);
        }
    }
    // The sort is stable, so conditions without a tau keep their order.
    conditions.sort_by_key(|c| (c.role == Role::Probe, c.tau.is_none(), c.tau));
    let looks = looks(conditions.iter().map(|c| (c.tau, !c.failed())));
    conditions.iter_mut().zip(looks).for_each(|(condition, look)| condition.look = look);
    conditions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_leak_first_then_others_then_probes() {
        let condition = |name: &str, tau: Option<f64>, role| {
            Condition::new(name, tau.map(|steps| Tau::new(steps).unwrap()), role)
        };
        let found = arranged([
            condition("tau 2 (probe)", Some(2.0), Role::Probe),
            condition("zebra", None, Role::Compared),
            condition("tau inf", Some(f64::INFINITY), Role::Baseline),
            condition("apple", None, Role::Compared),
            condition("tau 30", Some(30.0), Role::Compared),
            condition("zebra", Some(1.0), Role::Probe),
        ]);
        let names: Vec<String> = found.iter().map(Condition::label).collect();
        assert_eq!(names, ["τ = 30", "no leak", "zebra", "apple", "τ 2 (probe)"]);
        assert_eq!(found[0].look.colour, "@blue");
        let dead = Condition { learned: Some(false), ..found[0].clone() };
        assert_eq!(dead.label(), "τ = 30 (did not learn)");
        assert_eq!(arranged([dead])[0].look.colour, "@unlearned");
        let partly = condition("tau inf, readout 30", None, Role::Compared);
        assert_eq!(partly.title(), "τ ∞, readout 30");
        let named = condition("without leak", Some(f64::INFINITY), Role::Compared);
        assert_eq!(named.title(), "without leak");
    }

    #[test]
    fn settings_beyond_leak() {
        for (differs, beyond) in [
            ("", &[][..]),
            ("tau = 30, layer_tau = { conv1 = 5, fc1 = inf }, readout_tau = inf", &[]),
            ("tau = 100, schedule.after = [1, 2], epochs = 2", &["schedule.after = [1, 2]", "epochs = 2"]),
        ] {
            let condition = Condition {
                differs: differs.parse().unwrap(),
                ..Condition::new("other", None, Role::Compared)
            };
            assert_eq!(condition.beyond_leak(), beyond);
        }
    }
}
