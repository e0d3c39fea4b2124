//! Writes settings as TOML text with every key set. This is the content of `run.toml` and `study.toml`, and
//! can be read back.

use super::keys::{Group, KEYS};
use super::{RunConfig, StudyConfig};
use std::fmt::Write;
use toml::Value;

impl RunConfig {
    /// The settings as TOML text, without the `format` line. Equal settings give equal text.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        write_run(&mut text, self, &[]);
        text
    }
}

impl StudyConfig {
    /// The settings as TOML text, without the `format` line. Equal settings give equal text.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        line(&mut text, "name", &Value::String(self.name.clone()));
        let whole = |n: &u64| Value::Integer(*n as i64);
        line(&mut text, "seeds", &Value::Array(self.seeds.iter().map(whole).collect()));
        if let Some(baseline) = &self.baseline {
            line(&mut text, "baseline", &Value::String(baseline.clone()));
        }
        // Conditions that set only `tau` have a short form; they come first.
        let plain = self.conditions.iter().take_while(|condition| condition.is_plain());
        let taus: Vec<Value> = plain.map(|condition| Value::Float(condition.run.leak.tau.steps())).collect();
        let named = &self.conditions[taus.len()..];
        write_run(&mut text, &self.base, &["seed", "condition", "probe", "tau"]);
        // If every condition sets its own `tau`, the shared value is not a setting of the study.
        let all_set_tau = named.iter().all(|condition| condition.differs.iter().any(|(key, _)| key == "tau"));
        if !taus.is_empty() {
            line(&mut text, "tau", &Value::Array(taus));
        } else if !all_set_tau {
            line(&mut text, "tau", &Value::Float(self.base.leak.tau.steps()));
        }
        for condition in named {
            let _ = writeln!(text, "\n[[condition]]");
            line(&mut text, "name", &Value::String(condition.name.clone()));
            if condition.run.probe {
                line(&mut text, "probe", &Value::Boolean(true));
            }
            if let Some(seeds) = &condition.own_seeds {
                line(&mut text, "seeds", &Value::Array(seeds.iter().map(whole).collect()));
            }
            for (key, value) in &condition.differs {
                line(&mut text, key, value);
            }
        }
        text
    }
}

/// Writes every setting of a run, except the named ones, under the headings of their groups.
fn write_run(text: &mut String, run: &RunConfig, except: &[&str]) {
    for group in Group::ALL {
        let mut lines = String::new();
        for key in KEYS.iter().filter(|key| key.group == group && !except.contains(&key.name)) {
            match (key.get)(run) {
                None => {}
                Some(Value::Table(members)) => {
                    for (member, value) in members {
                        line(&mut lines, &format!("{}.{member}", key.name), &value);
                    }
                }
                Some(value) => line(&mut lines, key.name, &value),
            }
        }
        if !lines.is_empty() {
            let _ = write!(text, "\n# {}\n{lines}", group.name());
        }
    }
}

/// Writes `key = value`. The part of the key after its first dot is quoted if TOML requires it.
fn line(text: &mut String, key: &str, value: &Value) {
    let plain = |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let _ = match key.split_once('.') {
        Some((name, member)) if !plain(member) => {
            writeln!(text, "{name}.{} = {value}", Value::String(member.to_owned()))
        }
        _ => writeln!(text, "{key} = {value}"),
    };
}
