//! Settings as TOML text, every key said: what `run.toml` and `study.toml` hold, and what can be read back.

use super::{RunConfig, StudyConfig};
use leaklab_engine::noise::SEVERITIES;
use leaklab_engine::optimiser::Optimiser;
use std::fmt::Write;
use toml::Value;

impl RunConfig {
    /// The settings as TOML text, without the `format` line. Equal settings give equal text.
    pub fn to_toml(&self) -> String {
        self.text(vec![Value::Float(self.tau)], None)
    }

    fn text(&self, tau: Vec<Value>, seeds: Option<Vec<Value>>) -> String {
        let mut out = Text(String::new());
        let whole = |n: u64| Value::Integer(n as i64);
        let text = |value: &dyn std::fmt::Display| Value::String(value.to_string());
        let optional = |n: Option<usize>| n.map(|n| whole(n as u64));

        out.heading("data");
        out.line("dataset", Some(text(&self.dataset)));
        out.line("data_dir", self.data_dir.as_ref().map(|path| text(&path.display())));
        out.line("train_limit", optional(self.train_limit));
        out.line("test_limit", optional(self.test_limit));
        out.line("normalise", Some(text(&self.normalise)));
        out.line("encoder", Some(text(&self.encoder)));
        out.table(
            "augment",
            &[("crop", whole(self.augment.crop_padding as u64)), ("flip", Value::Boolean(self.augment.flip))],
        );

        out.heading("network");
        out.line("network", Some(text(&self.network)));
        let single = seeds.is_none();
        out.line("tau", if single { tau.into_iter().next() } else { Some(Value::Array(tau)) });
        out.line("v_th", Some(short(self.v_th)));
        out.line("time_steps", Some(whole(self.time_steps as u64)));
        out.line("gradient", Some(text(&self.gradient)));
        out.line("dropout", Some(short(self.dropout)));

        out.heading("training");
        let decay = match self.optimiser {
            Optimiser::Sgd { momentum, weight_decay } => {
                out.line("optimiser", Some(text(&"sgd")));
                out.line("momentum", Some(short(momentum)));
                weight_decay
            }
            Optimiser::Adam { beta1, beta2, epsilon, weight_decay } => {
                out.line("optimiser", Some(text(&"adam")));
                out.line("beta1", Some(short(beta1)));
                out.line("beta2", Some(short(beta2)));
                out.line("epsilon", Some(short(epsilon)));
                weight_decay
            }
        };
        out.line("learning_rate", Some(Value::Float(self.learning_rate)));
        let after = self.schedule_after.iter().map(|&epoch| whole(epoch)).collect();
        out.table(
            "schedule",
            &[("after", Value::Array(after)), ("times", Value::Float(self.schedule_times))],
        );
        out.line("weight_decay", Some(short(decay)));
        out.line("epochs", Some(whole(self.epochs)));
        out.line("batch", Some(whole(self.batch as u64)));
        match seeds {
            Some(seeds) => out.line("seeds", Some(Value::Array(seeds))),
            None => out.line("seed", Some(whole(self.seed))),
        }
        out.line("evaluate_every", Some(whole(self.evaluate_every)));

        out.heading("measurement");
        let noise = self.noise.iter().map(|(noise, scenario)| text(&format!("{noise}/{scenario}")));
        out.line("noise", Some(Value::Array(noise.collect())));
        out.line("analysis_images", optional(self.analysis_images));
        for (noise, scenario, default) in SEVERITIES {
            let levels = self.severities.levels(noise, scenario).unwrap_or(default);
            // Levels are said for the noises in use, so that the file is complete, and where they are not the default.
            if self.noise.contains(&(noise, scenario)) || levels != default {
                let levels = levels.iter().map(|&level| short(level)).collect();
                out.line(&format!("severity.\"{noise}/{scenario}\""), Some(Value::Array(levels)));
            }
        }
        out.0
    }
}

impl StudyConfig {
    /// The settings as TOML text, without the `format` line. Equal settings give equal text.
    pub fn to_toml(&self) -> String {
        let taus = self.taus.iter().map(|&tau| Value::Float(tau)).collect();
        let seeds = self.seeds.iter().map(|&seed| Value::Integer(seed as i64)).collect();
        format!("name = {}\n{}", Value::String(self.name.clone()), self.base.text(taus, Some(seeds)))
    }
}

struct Text(String);

impl Text {
    fn heading(&mut self, name: &str) {
        let _ = writeln!(self.0, "\n# {name}");
    }

    fn line(&mut self, key: &str, value: Option<Value>) {
        if let Some(value) = value {
            let _ = writeln!(self.0, "{key} = {value}");
        }
    }

    fn table(&mut self, key: &str, values: &[(&str, Value)]) {
        let inner: Vec<String> = values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        let _ = writeln!(self.0, "{key} = {{ {} }}", inner.join(", "));
    }
}

/// A single-precision number in its own few digits: 0.2 and not 0.20000000298023224.
fn short(x: f32) -> Value {
    Value::Float(x.to_string().parse().unwrap_or(f64::from(x)))
}
