//! Every setting in one table. Its rows are used to read and write settings, to compare them with those that
//! weights were trained with, and to make the reference table of the manual and the JSON Schema for editors.
//! A new setting is one row here and one field of [`RunConfig`].

use super::kind::{Kind, choice, fraction, in_single, list, number, positive, tau, text, whole};
use super::run::{InitialScale, OptimiserKind, RunConfig};
use crate::data::Normalisation;
use leaklab_engine::encode::Encoder;
use leaklab_engine::noise::{Levels, SEVERITIES};
use leaklab_engine::{Architecture, Gradient, ReadoutDivisor};
use leaklab_record::{NoiseKey, manifest, number_text};
use std::path::PathBuf;
use toml::Value;

/// The group of a setting, which is its heading in files and in the manual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// The study: its name, conditions and seeds.
    Study,
    /// The data, and how they become input spikes.
    Data,
    /// The network and its neurons.
    Network,
    /// The training of the weights.
    Training,
    /// The measurements after training.
    Measurement,
}

impl Group {
    /// All groups, in their order in files.
    pub const ALL: [Group; 5] =
        [Group::Study, Group::Data, Group::Network, Group::Training, Group::Measurement];

    /// Heading of the group.
    pub fn name(self) -> &'static str {
        match self {
            Group::Study => "study",
            Group::Data => "data",
            Group::Network => "network",
            Group::Training => "training",
            Group::Measurement => "measurement",
        }
    }
}

/// What a change of the setting in `run.toml` means for trained weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binds {
    /// The weights no longer match the settings: every command that opens the run refuses it.
    Weights,
    /// The rest of the training changes: `train --resume` reports it.
    Course,
    /// Nothing: the weights do not depend on it.
    Nothing,
}

/// One setting.
pub struct Key {
    /// Its name; a member of a table is written after it, separated by a dot.
    pub name: &'static str,
    /// Its group.
    pub group: Group,
    /// The values that it accepts.
    pub kind: Kind,
    /// One line for the manual.
    pub help: &'static str,
    /// How trained weights depend on it.
    pub binds: Binds,
    /// Sets the value in a run; `member` is the part of the key after the dot, for tables.
    pub(super) set: fn(&mut RunConfig, member: &str, value: &Value) -> Result<(), String>,
    /// The value in a run's file; a table has a value for each member. If there is none, nothing is written.
    pub(super) get: fn(&RunConfig) -> Option<Value>,
}

impl Key {
    /// The value in a run's file, as text; `None` if the key is not written.
    pub fn text(&self, run: &RunConfig) -> Option<String> {
        (self.get)(run).map(|value| match value {
            Value::Float(x) => number_text(x),
            other => other.to_string(),
        })
    }
}

/// A setting that belongs to a study and not to a single run.
const fn of_study(name: &'static str, kind: Kind, help: &'static str) -> Key {
    Key { name, group: Group::Study, kind, help, binds: Binds::Nothing, set: |_, _, _| Ok(()), get: |_| None }
}

/// All settings, in their order in files.
pub const KEYS: &[Key] = &[
    Key {
        name: "format",
        group: Group::Study,
        kind: Kind::Whole { least: 0, most: u32::MAX as u64 },
        help: "version of the file's format; written by leaklab",
        binds: Binds::Nothing,
        set: |_, _, value| match whole(value)? {
            format if format == u64::from(manifest::FORMAT) => Ok(()),
            _ => Err(format!("this program reads format {}", manifest::FORMAT)),
        },
        get: |_| None,
    },
    of_study("name", Kind::Text, "name of the study, shown on its page"),
    of_study("seeds", Kind::WholeList, "seeds of a study; every condition is trained once with each seed"),
    of_study(
        "baseline",
        Kind::Text,
        "name of the condition that others are compared with; the one with the least leak if not set",
    ),
    Key {
        name: "condition",
        group: Group::Study,
        kind: Kind::Conditions,
        help: "in a study, [[condition]] tables: a name and the settings in which the condition differs; \
               in a run, the name of its condition",
        binds: Binds::Nothing,
        set: |run, _, value| text(value).map(|name| run.condition = Some(name)),
        get: |run| run.condition.clone().map(Value::String),
    },
    Key {
        name: "probe",
        group: Group::Study,
        kind: Kind::Flag,
        help: "the condition is trained only to see whether it learns (claim 7)",
        binds: Binds::Nothing,
        set: |run, _, value| flag(value).map(|probe| run.probe = probe),
        get: |run| run.probe.then_some(Value::Boolean(true)),
    },
    Key {
        name: "dataset",
        group: Group::Data,
        kind: Kind::Text,
        help: "name of a data set, see `leaklab data list`",
        binds: Binds::Weights,
        set: |run, _, value| {
            let name = text(value)?;
            crate::data::table::find(&name).map_err(|e| e.to_string())?;
            run.dataset = name;
            Ok(())
        },
        get: |run| Some(Value::String(run.dataset.clone())),
    },
    Key {
        name: "data_dir",
        group: Group::Data,
        kind: Kind::Text,
        help: "folder that contains the data sets, or the folder or file of your own data",
        binds: Binds::Nothing,
        set: |run, _, value| text(value).map(|path| run.data_dir = Some(PathBuf::from(path))),
        get: |run| run.data_dir.as_ref().map(|path| Value::String(path.display().to_string())),
    },
    Key {
        name: "data_sha256",
        group: Group::Data,
        kind: Kind::Text,
        help: "SHA-256 of the contents of the data set; leaklab writes it into a run and refuses other data",
        binds: Binds::Weights,
        set: |run, _, value| {
            let digest = text(value)?;
            if digest.len() != 64 || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err("64 hexadecimal digits are expected".to_owned());
            }
            run.data_sha256 = Some(digest.to_ascii_lowercase());
            Ok(())
        },
        get: |run| run.data_sha256.clone().map(Value::String),
    },
    Key {
        name: "train_limit",
        group: Group::Data,
        kind: Kind::AT_LEAST_1,
        help: "train on this many images only, class-balanced",
        binds: Binds::Weights,
        set: |run, _, value| whole(value).map(|n| run.train_limit = Some(n as usize)),
        get: |run| run.train_limit.map(count),
    },
    Key {
        name: "test_limit",
        group: Group::Data,
        kind: Kind::AT_LEAST_1,
        help: "evaluate on this many test images only, class-balanced",
        binds: Binds::Nothing,
        set: |run, _, value| whole(value).map(|n| run.test_limit = Some(n as usize)),
        get: |run| run.test_limit.map(count),
    },
    Key {
        name: "validation",
        group: Group::Data,
        kind: Kind::Fraction,
        help: "fraction of the training images that is held out and replaces the test images, to choose \
               settings; 0 for none",
        binds: Binds::Weights,
        set: |run, _, value| fraction(value).map(|x| run.validation = x),
        get: |run| (run.validation > 0.0).then(|| short(run.validation)),
    },
    Key {
        name: "normalise",
        group: Group::Data,
        kind: Kind::Choice(&["per-image", "per-channel"]),
        help: "how pixels become numbers from -1 to 1",
        binds: Binds::Weights,
        set: |run, _, value| choice::<Normalisation>(value).map(|x| run.normalise = x),
        get: |run| (!run.has_events()).then(|| Value::String(run.normalise.to_string())),
    },
    Key {
        name: "encoder",
        group: Group::Data,
        kind: Kind::Choice(&["signed", "unsigned"]),
        help: "whether dark pixels produce negative spikes or no spikes",
        binds: Binds::Weights,
        set: |run, _, value| choice::<Encoder>(value).map(|x| run.encoder = x),
        get: |run| (!run.has_events()).then(|| Value::String(run.encoder.to_string())),
    },
    Key {
        name: "step_us",
        group: Group::Data,
        kind: Kind::Whole { least: 1, most: 1_000_000_000 },
        help: "length of a time step of recordings, in microseconds; if not set, each recording is divided \
               into equal steps",
        binds: Binds::Weights,
        set: |run, _, value| whole(value).map(|n| run.step_us = Some(n)),
        get: |run| run.step_us.filter(|_| run.has_events()).map(|n| count(n as usize)),
    },
    Key {
        name: "downsample",
        group: Group::Data,
        kind: Kind::Whole { least: 1, most: 64 },
        help: "side, in pixels, of the squares of an event camera that are merged into one pixel; 1 merges \
               none",
        binds: Binds::Weights,
        set: |run, _, value| whole(value).map(|n| run.downsample = n as usize),
        get: |run| run.has_events().then(|| count(run.downsample)),
    },
    Key {
        name: "augment.crop",
        group: Group::Data,
        kind: Kind::Whole { least: 0, most: 4096 },
        help: "random crop with this many black pixels of padding, 0 for none",
        binds: Binds::Course,
        set: |run, _, value| whole(value).map(|n| run.augment.crop_padding = n as usize),
        get: |run| Some(count(run.augment.crop_padding)),
    },
    Key {
        name: "augment.flip",
        group: Group::Data,
        kind: Kind::Flag,
        help: "random horizontal flip",
        binds: Binds::Course,
        set: |run, _, value| flag(value).map(|x| run.augment.flip = x),
        get: |run| Some(Value::Boolean(run.augment.flip)),
    },
    Key {
        name: "augment.shift",
        group: Group::Data,
        kind: Kind::Whole { least: 0, most: 65_535 },
        help: "recordings are shifted in time at random, by at most this many steps",
        binds: Binds::Course,
        set: |run, _, value| whole(value).map(|n| run.augment.shift = n as usize),
        get: |run| run.has_events().then(|| count(run.augment.shift)),
    },
    Key {
        name: "network",
        group: Group::Network,
        kind: Kind::Text,
        help: "the network in the paper's notation, such as 1x8x8-16C3-2P-10o",
        binds: Binds::Weights,
        set: |run, _, value| {
            let notation = text(value)?;
            run.network = Architecture::parse(&notation).map_err(|e| {
                // The message shows the notation already, as the value of the key.
                let message = e.to_string();
                message.strip_prefix(&format!("network '{notation}': ")).unwrap_or(&message).to_owned()
            })?;
            Ok(())
        },
        get: |run| Some(Value::String(run.network.to_string())),
    },
    Key {
        name: "tau",
        group: Group::Network,
        kind: Kind::Tau,
        help: "membrane time constant in steps, inf for no leak; in a study, each value of a list is a \
               condition",
        binds: Binds::Weights,
        set: |run, _, value| tau(value).map(|x| run.leak.tau = x),
        get: |run| Some(Value::Float(run.leak.tau.steps())),
    },
    Key {
        name: "layer_tau",
        group: Group::Network,
        kind: Kind::TauByLayer,
        help: "time constants of hidden layers that have their own, such as { conv1 = 5, fc1 = inf }",
        binds: Binds::Weights,
        set: |run, member, value| {
            run.leak.layer_tau.insert(member.to_owned(), tau(value)?);
            Ok(())
        },
        get: |run| {
            let members =
                run.leak.layer_tau.iter().map(|(name, tau)| (name.clone(), Value::Float(tau.steps())));
            Some(Value::Table(members.collect()))
        },
    },
    Key {
        name: "readout_tau",
        group: Group::Network,
        kind: Kind::Tau,
        help: "time constant of the output layer, if it has its own",
        binds: Binds::Weights,
        set: |run, _, value| tau(value).map(|x| run.leak.readout_tau = Some(x)),
        get: |run| run.leak.readout_tau.map(|tau| Value::Float(tau.steps())),
    },
    Key {
        name: "readout_divisor",
        group: Group::Network,
        kind: Kind::Choice(&["steps", "memory"]),
        help: "what the potential of the output after the last step is divided by: the number of steps, or \
               the sum of the weights that leak gives to the steps, which is smaller",
        binds: Binds::Weights,
        set: |run, _, value| choice::<ReadoutDivisor>(value).map(|x| run.readout_divisor = x),
        get: |run| {
            let other = run.readout_divisor != ReadoutDivisor::default();
            other.then(|| Value::String(run.readout_divisor.to_string()))
        },
    },
    Key {
        name: "v_th",
        group: Group::Network,
        kind: Kind::Positive,
        help: "threshold of conv and FC neurons",
        binds: Binds::Weights,
        set: |run, _, value| in_single(value, positive).map(|x| run.v_th = x),
        get: |run| Some(short(run.v_th)),
    },
    Key {
        name: "time_steps",
        group: Group::Network,
        kind: Kind::Whole { least: 1, most: 65_535 },
        help: "steps per image",
        binds: Binds::Weights,
        set: |run, _, value| whole(value).map(|n| run.time_steps = n as usize),
        get: |run| Some(count(run.time_steps)),
    },
    Key {
        name: "gradient",
        group: Group::Network,
        kind: Kind::Choice(&["straight-through", "exact"]),
        help: "whether the backward pass takes the derivative of the membrane's decay as 1 \
               (straight-through) or computes it (exact)",
        binds: Binds::Course,
        set: |run, _, value| choice::<Gradient>(value).map(|x| run.gradient = x),
        get: |run| Some(Value::String(run.gradient.to_string())),
    },
    Key {
        name: "dropout",
        group: Group::Network,
        kind: Kind::Fraction,
        help: "probability that a hidden neuron is dropped in a training sample",
        binds: Binds::Course,
        set: |run, _, value| fraction(value).map(|x| run.dropout = x),
        get: |run| Some(short(run.dropout)),
    },
    Key {
        name: "initial",
        group: Group::Training,
        kind: Kind::Choice(&["fan-in", "rate"]),
        help: "scale of the initial weights: set by the fan-in alone, or such that each hidden layer \
               initially fires as often as without leak",
        binds: Binds::Course,
        set: |run, _, value| choice::<InitialScale>(value).map(|x| run.initial = x),
        get: |run| (run.initial != InitialScale::FanIn).then(|| Value::String(run.initial.to_string())),
    },
    Key {
        name: "optimiser",
        group: Group::Training,
        kind: Kind::Choice(&["sgd", "adam"]),
        help: "rule of the weight update",
        binds: Binds::Course,
        set: |run, _, value| choice::<OptimiserKind>(value).map(|x| run.rule = x),
        get: |run| Some(Value::String(run.rule.to_string())),
    },
    Key {
        name: "momentum",
        group: Group::Training,
        kind: Kind::Fraction,
        help: "momentum of sgd",
        binds: Binds::Course,
        set: |run, _, value| fraction(value).map(|x| run.momentum = x),
        get: |run| (run.rule == OptimiserKind::Sgd).then(|| short(run.momentum)),
    },
    Key {
        name: "beta1",
        group: Group::Training,
        kind: Kind::Fraction,
        help: "decay of adam's first moment",
        binds: Binds::Course,
        set: |run, _, value| fraction(value).map(|x| run.beta1 = x),
        get: |run| (run.rule == OptimiserKind::Adam).then(|| short(run.beta1)),
    },
    Key {
        name: "beta2",
        group: Group::Training,
        kind: Kind::Fraction,
        help: "decay of adam's second moment",
        binds: Binds::Course,
        set: |run, _, value| fraction(value).map(|x| run.beta2 = x),
        get: |run| (run.rule == OptimiserKind::Adam).then(|| short(run.beta2)),
    },
    Key {
        name: "epsilon",
        group: Group::Training,
        kind: Kind::Positive,
        help: "adam's guard against division by zero",
        binds: Binds::Course,
        set: |run, _, value| in_single(value, positive).map(|x| run.epsilon = x),
        get: |run| (run.rule == OptimiserKind::Adam).then(|| short(run.epsilon)),
    },
    Key {
        name: "learning_rate",
        group: Group::Training,
        kind: Kind::Positive,
        help: "learning rate of the first epoch",
        binds: Binds::Course,
        set: |run, _, value| {
            in_single(value, positive)?;
            number(value).map(|x| run.learning_rate = x)
        },
        get: |run| Some(Value::Float(run.learning_rate)),
    },
    Key {
        name: "schedule.after",
        group: Group::Training,
        kind: Kind::WholeList,
        help: "epochs after which the learning rate is lowered",
        binds: Binds::Course,
        set: |run, _, value| {
            run.schedule_after = list(value).iter().map(whole).collect::<Result<_, _>>()?;
            Ok(())
        },
        get: |run| Some(Value::Array(run.schedule_after.iter().map(|&n| count(n as usize)).collect())),
    },
    Key {
        name: "schedule.times",
        group: Group::Training,
        kind: Kind::Positive,
        help: "factor by which the learning rate is multiplied then",
        binds: Binds::Course,
        set: |run, _, value| number(value).map(|x| run.schedule_times = x),
        get: |run| Some(Value::Float(run.schedule_times)),
    },
    Key {
        name: "weight_decay",
        group: Group::Training,
        kind: Kind::NotNegative,
        help: "L2 penalty on the weights",
        binds: Binds::Course,
        set: |run, _, value| in_single(value, |x| x >= 0.0).map(|x| run.weight_decay = x),
        get: |run| Some(short(run.weight_decay)),
    },
    Key {
        name: "epochs",
        group: Group::Training,
        kind: Kind::Whole { least: 1, most: 1_000_000 },
        help: "passes over the training set",
        binds: Binds::Course,
        set: |run, _, value| whole(value).map(|n| run.epochs = n),
        get: |run| Some(count(run.epochs as usize)),
    },
    Key {
        name: "batch",
        group: Group::Training,
        kind: Kind::Whole { least: 1, most: 1 << 24 },
        help: "images per update",
        binds: Binds::Course,
        set: |run, _, value| whole(value).map(|n| run.batch = n as usize),
        get: |run| Some(count(run.batch)),
    },
    Key {
        name: "seed",
        group: Group::Training,
        kind: Kind::Whole { least: 0, most: i64::MAX as u64 },
        help: "seed of every random number of a run",
        binds: Binds::Weights,
        set: |run, _, value| whole(value).map(|n| run.seed = n),
        get: |run| Some(count(run.seed as usize)),
    },
    Key {
        name: "initial_sha256",
        group: Group::Training,
        kind: Kind::Text,
        help: "SHA-256 of the initial weights, if they were given; written by leaklab",
        binds: Binds::Weights,
        set: |run, _, value| text(value).map(|digest| run.initial_sha256 = Some(digest)),
        get: |run| run.initial_sha256.clone().map(Value::String),
    },
    Key {
        name: "evaluate_every",
        group: Group::Training,
        kind: Kind::AT_LEAST_1,
        help: "evaluate the test set each time this many epochs have passed, and after the last epoch",
        binds: Binds::Nothing,
        set: |run, _, value| whole(value).map(|n| run.evaluate_every = n),
        get: |run| Some(count(run.evaluate_every as usize)),
    },
    Key {
        name: "evaluate_train_images",
        group: Group::Training,
        kind: Kind::Whole { least: 0, most: 1 << 32 },
        help: "training images evaluated with the test set (no dropout, no augmentation), the same ones \
               each time; 0 for none",
        binds: Binds::Nothing,
        set: |run, _, value| whole(value).map(|n| run.evaluate_train_images = n as usize),
        get: |run| Some(count(run.evaluate_train_images)),
    },
    Key {
        name: "noise",
        group: Group::Measurement,
        kind: Kind::NoiseList,
        help: "noises that the robustness analysis applies, such as gaussian/pixel",
        binds: Binds::Nothing,
        set: |run, _, value| {
            let all: Vec<NoiseKey> =
                list(value).iter().map(|value| text(value)?.parse()).collect::<Result<_, String>>()?;
            if let Some((_, twice)) = all.iter().enumerate().find(|(i, noise)| all[..*i].contains(noise)) {
                return Err(format!("{twice} is given twice"));
            }
            run.noise = all;
            Ok(())
        },
        get: |run| {
            Some(Value::Array(run.noise.iter().map(|noise| Value::String(noise.to_string())).collect()))
        },
    },
    Key {
        name: "analysis_images",
        group: Group::Measurement,
        kind: Kind::AT_LEAST_1,
        help: "test images that analyses use, class-balanced; all if not set",
        binds: Binds::Nothing,
        set: |run, _, value| whole(value).map(|n| run.analysis_images = Some(n as usize)),
        get: |run| run.analysis_images.map(count),
    },
    Key {
        name: "presentations",
        group: Group::Measurement,
        kind: Kind::Whole { least: 1, most: 1000 },
        help: "how often the robustness analysis presents each test image, with new input spikes each time",
        binds: Binds::Nothing,
        set: |run, _, value| whole(value).map(|n| run.presentations = n),
        get: |run| Some(count(run.presentations as usize)),
    },
    Key {
        name: "presentation_seed",
        group: Group::Measurement,
        kind: Kind::Whole { least: 0, most: 1000 },
        help: "selects other input spikes for the passes of robustness, activity and spectrum, to see how \
               much depends on chance",
        binds: Binds::Nothing,
        set: |run, _, value| whole(value).map(|n| run.presentation_seed = n),
        get: |run| (run.presentation_seed > 0).then(|| count(run.presentation_seed as usize)),
    },
    Key {
        name: "mechanism",
        group: Group::Measurement,
        kind: Kind::Flag,
        help: "whether a study with and without leak measures, after its runs, where robustness comes \
               from; true if not set",
        binds: Binds::Nothing,
        set: |run, _, value| flag(value).map(|asked| run.mechanism = asked),
        get: |run| (!run.mechanism).then_some(Value::Boolean(false)),
    },
    Key {
        name: "severity",
        group: Group::Measurement,
        kind: Kind::LevelsByNoise,
        help: "levels of a noise at severities 1 to 8, in place of the defaults",
        binds: Binds::Nothing,
        set: |run, member, value| {
            let NoiseKey { noise, scenario } = member.parse()?;
            let level = |(i, level): (usize, &Value)| {
                in_single(level, f64::is_finite).map_err(|e| format!("severity {}: {e}", i + 1))
            };
            let levels = list(value).iter().enumerate().map(level).collect::<Result<Vec<_>, _>>()?;
            let levels: Levels = levels.try_into().map_err(|_| Kind::LevelsByNoise.expected())?;
            run.severities.set(noise, scenario, levels).map_err(|e| e.to_string())
        },
        get: |run| {
            let mut members = toml::Table::new();
            for (noise, scenario, default) in SEVERITIES {
                let levels = run.severities.levels(noise, scenario).unwrap_or(default);
                let key = NoiseKey { noise, scenario };
                // Written for the noises in use, so that the file is complete, and wherever they differ from
                // the default.
                if run.noise.contains(&key) || levels != default {
                    members.insert(
                        key.to_string(),
                        Value::Array(levels.iter().map(|&level| short(level)).collect()),
                    );
                }
            }
            Some(Value::Table(members))
        },
    },
];

/// The row of a key and, if the setting is a table, the member that the key names.
pub fn find(key: &str) -> Option<(&'static Key, &str)> {
    let exact = KEYS.iter().find(|row| row.name == key && !row.kind.has_members());
    exact.map(|row| (row, "")).or_else(|| {
        let (name, member) = key.split_once('.')?;
        KEYS.iter().find(|row| row.name == name && row.kind.has_members()).map(|row| (row, member))
    })
}

/// Whether a name is that of a table, whose members are settings.
pub(super) fn is_table(name: &str) -> bool {
    let within = |key: &Key| key.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
    KEYS.iter().any(|key| within(key) || (key.name == name && key.kind.has_members()))
}

fn flag(value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| Kind::Flag.expected())
}

fn count(n: usize) -> Value {
    Value::Integer(n as i64)
}

/// A single-precision number with as many digits as it needs: 0.2 and not 0.20000000298023224.
fn short(x: f32) -> Value {
    Value::Float(x.to_string().parse().unwrap_or(f64::from(x)))
}
