//! A study on disk for which no network was trained: every table of a real study, as typed rows with smooth
//! synthetic numbers. The page can thus be tested without training and with any verdicts.

// Each test file and the example use their own part of it.
#![allow(dead_code)]

mod compare;
mod run;
mod theory;

use leaklab_record::noun::tau_condition;
use leaklab_record::tables::PlanRow;
use leaklab_record::{Case, NoiseKey, PAPER_NOISES, Role, Row, Rows, RunKey, StudyFolder, Tau, manifest};
use std::fs;
use std::path::Path;

/// Steps of a synthetic presentation.
const STEPS: u64 = 100;
/// Epochs of a synthetic run.
const EPOCHS: u64 = 12;

/// A synthetic study.
#[derive(Clone)]
pub struct Synthetic {
    /// Name on the page.
    pub name: String,
    /// Data set on the page.
    pub dataset: String,
    /// The conditions.
    pub conditions: Vec<Made>,
    /// Seeds from 1.
    pub seeds: u64,
    /// Case of every part of each of the paper's claims.
    pub cases: [Case; 7],
    /// The noises that are tested.
    pub noises: Vec<NoiseKey>,
    /// Whether the networks are shown recordings of an event camera.
    pub recorded: bool,
}

/// A synthetic condition.
#[derive(Clone)]
pub struct Made {
    /// Name.
    pub name: String,
    /// Membrane time constant, if the condition differs only in that.
    pub tau: Option<Tau>,
    /// Role in the study.
    pub role: Role,
    /// Settings in which it differs.
    pub differs: String,
    /// Amount of leak, from 0 to 1, which determines its numbers.
    pub leak: f64,
    /// Whether its networks learned.
    pub learned: bool,
}

impl Made {
    /// A condition that differs in tau alone.
    pub fn tau(steps: f64) -> Self {
        let tau = Tau::new(steps).unwrap();
        Made {
            name: tau_condition(tau),
            tau: Some(tau),
            role: if tau.leaks() { Role::Compared } else { Role::Baseline },
            differs: if tau.leaks() { format!("tau = {tau}") } else { String::new() },
            leak: 1.0 - (-10.0 / steps).exp(),
            learned: true,
        }
    }

    /// A condition with a given name.
    pub fn named(name: &str, differs: &str, leak: f64) -> Self {
        let (name, differs) = (name.to_owned(), differs.to_owned());
        Made { name, tau: None, role: Role::Compared, differs, leak, learned: true }
    }

    /// The same condition, but stuck at chance.
    pub fn dead(self) -> Self {
        Made { learned: false, ..self }
    }

    /// The same condition as a probe, which counts only in claim 7.
    pub fn probe(self) -> Self {
        Made { role: Role::Probe, ..self }
    }

    /// Why it counts as not learned.
    pub fn reason(&self) -> String {
        let text = "clean accuracy 10.0 % where half of the best condition's excess over chance is 53.1 %";
        if self.learned { String::new() } else { text.to_owned() }
    }
}

impl Default for Synthetic {
    fn default() -> Self {
        Synthetic::sweep(&[30.0, 100.0, f64::INFINITY])
    }
}

impl Synthetic {
    /// A sweep over tau, with two probes.
    pub fn sweep(taus: &[f64]) -> Self {
        let mut conditions: Vec<Made> = taus.iter().map(|&steps| Made::tau(steps)).collect();
        conditions.extend([Made::tau(2.0).dead().probe(), Made::tau(3.0).probe()]);
        Synthetic {
            name: "synthetic".into(),
            dataset: "digits".into(),
            conditions,
            seeds: 3,
            cases: [
                Case::AsClaimed,
                Case::AsClaimed,
                Case::Undecided,
                Case::AsClaimed,
                Case::AsClaimed,
                Case::NoEffect,
                Case::AsClaimed,
            ],
            noises: PAPER_NOISES.to_vec(),
            recorded: false,
        }
    }

    /// A sweep on recordings of an event camera, with noises of its sensor.
    pub fn events() -> Self {
        let noises = ["background/channel", "deletion/channel", "jitter/channel"];
        let noises = noises.map(|noise| noise.parse().unwrap()).to_vec();
        Synthetic { dataset: "digits-events".into(), noises, recorded: true, ..Synthetic::default() }
    }

    /// Leak in the hidden layers or not, in the readout or not.
    pub fn two_by_two() -> Self {
        let conditions = vec![
            Made::tau(f64::INFINITY),
            Made::named("leaky hidden layers", "tau = 30, readout_tau = inf", 0.2),
            Made::named("leaky readout", "readout_tau = 30", 0.1),
            Made::tau(30.0),
        ];
        Synthetic { conditions, ..Synthetic::default() }
    }

    /// A sweep in which the condition with most leak did not learn.
    pub fn with_dead() -> Self {
        let conditions = vec![
            Made::tau(5.0).dead(),
            Made::tau(30.0),
            Made::tau(100.0),
            Made::tau(f64::INFINITY),
            Made::tau(3.0).dead().probe(),
        ];
        Synthetic { conditions, ..Synthetic::default() }
    }

    /// The condition with which the others are compared.
    pub fn baseline(&self) -> &Made {
        self.conditions.iter().find(|made| made.role == Role::Baseline).unwrap()
    }

    /// Conditions that are compared, including the baseline.
    fn compared(&self) -> impl Iterator<Item = &Made> {
        self.conditions.iter().filter(|made| made.role != Role::Probe)
    }

    /// Writes the study's folder.
    pub fn write(&self, path: &Path) {
        self.begin(path);
        let folder = StudyFolder::at(path);
        fs::write(folder.command(), format!("leaklab study {}\n", self.name)).unwrap();
        fs::write(folder.times(), "{\"what\":\"analyses\",\"seconds\":12.5}\n").unwrap();
        for made in &self.conditions {
            for seed in 1..=self.seeds {
                let key = RunKey { condition: made.name.clone(), seed };
                run::write(self, made, seed, &folder.run(&key));
            }
        }
        compare::write(self, &folder.compare());
        theory::write(&folder.theory());
    }

    /// Writes the files of a study that has just begun: settings and plan.
    pub fn begin(&self, path: &Path) {
        fs::create_dir_all(path).unwrap();
        self.write_settings(path);
        let mut plan = Rows::new("Planned runs", "Every planned run of the study.");
        for made in &self.conditions {
            plan.rows.extend((1..=self.seeds).map(|seed| PlanRow {
                run: RunKey { condition: made.name.clone(), seed }.folder_name(),
                condition: made.name.clone(),
                seed,
                epochs: EPOCHS,
                tau: made.tau,
                role: made.role,
            }));
        }
        plan.write(path).unwrap();
    }

    /// The settings of the networks' input, as the lab writes them.
    fn input(&self) -> &'static str {
        if self.recorded { "downsample = 1" } else { "encoder = \"signed\"" }
    }

    /// Writes `study.toml` only.
    pub fn write_settings(&self, path: &Path) {
        let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
        let seeds: Vec<String> = (1..=self.seeds).map(|seed| seed.to_string()).collect();
        let settings = format!(
            "name = {}\ndataset = {}\nnetwork = \"1x8x8-16C3-32C3-2P-128FC-10o\"\nseeds = [{}]\nv_th = \
             1.0\nepochs = {EPOCHS}\ntime_steps = {STEPS}\nschedule = {{ after = [8, 10], times = 0.2 \
             }}\n{}\n",
            quoted(&self.name),
            quoted(&self.dataset),
            seeds.join(", "),
            self.input()
        );
        let conditions = self.conditions.iter().filter(|made| made.tau.is_none()).map(|made| {
            format!("\n[[condition]]\nname = {}\n{}\n", quoted(&made.name), made.differs.replace(", ", "\n"))
        });
        let settings = settings + &conditions.collect::<String>();
        manifest::write(&StudyFolder::at(path).study_toml(), &settings).unwrap();
    }
}

/// A deterministic substitute for random numbers, from -1 to 1.
fn wobble(a: f64, b: f64) -> f64 {
    ((a * 12.9898 + b * 78.233).sin() * 43758.5453).fract()
}

/// Writes rows as a table.
fn table<R: Row>(folder: &Path, title: &str, rows: impl IntoIterator<Item = R>) {
    let mut table = Rows::new(title, "Synthetic numbers for a test.");
    table.rows.extend(rows);
    table.write(folder).unwrap();
}
