//! A study on disk that no network was trained for: every table a real study writes, with smooth made-up numbers, so
//! that the page can be tested without training and with whatever verdicts a test wants.

use leaklab_record::metrics::{self, Epoch};
use leaklab_record::{Cell, RunFolder, Table, manifest};
use std::fs;
use std::path::Path;

/// What a made-up study is like.
pub struct Synthetic {
    /// Name on the page.
    pub name: String,
    /// Data set on the page.
    pub dataset: String,
    /// Membrane time constants, as text.
    pub taus: Vec<&'static str>,
    /// Verdict of every part of every claim, by claim number from 1.
    pub verdicts: [&'static str; 7],
}

impl Default for Synthetic {
    fn default() -> Self {
        Synthetic {
            name: "synthetic".into(),
            dataset: "digits".into(),
            taus: vec!["30", "100", "inf"],
            verdicts: [
                "holds",
                "holds",
                "not enough evidence",
                "holds",
                "holds",
                "does not hold",
                "not enough evidence",
            ],
        }
    }
}

const LAYERS: [(&str, &str); 5] =
    [("conv1", "conv"), ("conv2", "conv"), ("pool1", "pool"), ("conv3", "conv"), ("fc1", "full")];

/// How much leak, from 0 to 1.
fn leak(tau: &str) -> f64 {
    1.0 - (-10.0 / tau.parse::<f64>().unwrap_or(f64::INFINITY)).exp()
}

/// A smooth stand-in for chance, from -1 to 1.
fn wobble(a: f64, b: f64) -> f64 {
    ((a * 12.9898 + b * 78.233).sin() * 43758.5453).fract()
}

fn table(name: &str, columns: &str, rows: Vec<Vec<Cell>>) -> Table {
    let columns: Vec<(&str, &str, &str)> = columns.split_whitespace().map(|c| (c, "", "")).collect();
    let mut table = Table::new(name, name, "Made-up numbers for a test.", &columns);
    rows.into_iter().for_each(|row| table.push(row));
    table
}

impl Synthetic {
    /// Writes the study's folder.
    pub fn write(&self, folder: &Path) {
        let runs = folder.join("runs");
        fs::create_dir_all(&runs).unwrap();
        self.write_settings(folder);
        fs::write(folder.join("command.txt"), format!("leaklab study {}\n", self.name)).unwrap();
        fs::write(folder.join("times.jsonl"), "{\"what\":\"analyses\",\"seconds\":12.5}\n").unwrap();
        for tau in &self.taus {
            for seed in 1..=3 {
                self.write_run(&runs, tau, seed);
            }
        }
        let compare = folder.join("compare");
        fs::create_dir_all(&compare).unwrap();
        self.compare().iter().for_each(|table| table.write(&compare).unwrap());
        let theory = folder.join("theory");
        fs::create_dir_all(&theory).unwrap();
        theory_tables().iter().for_each(|table| table.write(&theory).unwrap());
    }

    /// Writes `study.toml` only: a study that has just begun.
    pub fn write_settings(&self, folder: &Path) {
        let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
        let settings = format!(
            "name = {}\ndataset = {}\nnetwork = \"1x8x8-16C3-32C3-2P-128FC-10o\"\ntau = [{}]\nseeds = [1, 2, 3]\n\
             v_th = 1.0\nepochs = 12\ntime_steps = 30\nschedule = {{ after = [8, 10], times = 0.2 }}\n",
            quoted(&self.name),
            quoted(&self.dataset),
            self.taus.join(", ")
        );
        manifest::write(&folder.join("study.toml"), &settings).unwrap();
    }

    fn write_run(&self, runs: &Path, tau: &str, seed: u64) {
        let run = RunFolder::at(runs.join(format!("tau-{tau}_seed-{seed}")));
        fs::create_dir_all(run.analysis()).unwrap();
        let float = if tau == "inf" { tau.to_owned() } else { format!("{tau}.0") };
        manifest::write(&run.run_toml(), &format!("tau = {float}\nseed = {seed}\nepochs = 12\n")).unwrap();
        let leak = leak(tau);
        for epoch in 1..=12u64 {
            let progress = 1.0 - (-(epoch as f64) / 3.0).exp();
            let accuracy = 0.1 + 0.86 * progress + 0.008 * wobble(epoch as f64, seed as f64 + leak);
            let line = Epoch {
                format: metrics::FORMAT,
                epoch,
                learning_rate: 0.5,
                train_accuracy: (accuracy + 0.015).min(1.0),
                train_sse: Some(0.9 - 0.78 * progress),
                test_accuracy: Some(accuracy),
                test_sse: Some(0.9 - 0.7 * progress),
                spike_rate: Some(0.05 + 0.04 * leak),
                synops: Some(1e6),
                layers: Vec::new(),
                seconds: 1.0,
                images_per_second: 1400.0,
            };
            metrics::append(&run.metrics(), &line).unwrap();
        }
        run_tables(tau, seed).iter().for_each(|table| table.write(&run.analysis()).unwrap());
    }

    fn compare(&self) -> Vec<Table> {
        let mut tables = vec![self.claims()];
        let each = |f: &dyn Fn(&str) -> Vec<Vec<Cell>>| self.taus.iter().flat_map(|tau| f(tau)).collect();
        let mut rows = Vec::new();
        for (quantity, base, slope, unit) in [
            ("accuracy", 0.962, 0.004, "fraction"),
            ("test_sse", 0.12, -0.05, "SSE"),
            ("test_sse_times_32", 3.8, -1.6, "SSE"),
            ("train_sse", 0.07, -0.02, "SSE"),
            ("train_sse_times_32", 2.2, -0.64, "SSE"),
            ("spike_rate", 0.05, 0.16, "fraction"),
            ("synops", 1.1e6, 3.1e6, "operations/image"),
        ] {
            for tau in &self.taus {
                let mean: f64 = base + slope * leak(tau);
                rows.push(vec![
                    quantity.into(),
                    (*tau).into(),
                    mean.into(),
                    (mean * 0.01).into(),
                    3usize.into(),
                    Cell::Empty,
                    unit.into(),
                ]);
            }
        }
        tables.push(table("table1", "quantity tau mean standard_error seeds paper unit", rows));
        let mut rows = Vec::new();
        for (noise, scenario) in
            [("gaussian", "pixel"), ("gaussian", "channel"), ("impulse", "pixel"), ("impulse", "channel")]
        {
            for severity in 0..=8usize {
                for tau in &self.taus {
                    let half = 4.0 + 7.0 * leak(tau) - if scenario == "pixel" { 0.0 } else { 1.0 };
                    let mean = 0.1 + 0.86 / (1.0 + (1.1 * (severity as f64 - half)).exp());
                    let (low, high) = ((mean - 0.025).max(0.0), (mean + 0.025).min(1.0));
                    rows.push(vec![
                        noise.into(),
                        scenario.into(),
                        severity.into(),
                        (severity as f64 * 0.15).into(),
                        (*tau).into(),
                        mean.into(),
                        low.into(),
                        high.into(),
                        3usize.into(),
                    ]);
                }
            }
        }
        tables.push(table(
            "robustness_by_tau",
            "noise scenario severity level tau mean low high seeds",
            rows,
        ));
        let rows = each(&|tau| {
            (1..=12usize)
                .map(|epoch| {
                    let train: f64 = 0.9 * (-(epoch as f64) / 4.0).exp() + 0.03;
                    vec![
                        tau.into(),
                        epoch.into(),
                        train.into(),
                        (train.powf(0.8) * (1.0 - 0.4 * leak(tau))).into(),
                        3usize.into(),
                    ]
                })
                .collect()
        });
        tables.push(table("generalisation_by_tau", "tau epoch train_sse test_sse seeds", rows));
        let rows = each(&|tau| {
            let hidden = LAYERS.iter().filter(|(_, kind)| *kind != "pool").enumerate();
            hidden
                .map(|(i, (layer, _))| {
                    let mean = (4.0 + i as f64) * (1.0 + 1.4 * leak(tau));
                    vec![
                        (*layer).into(),
                        tau.into(),
                        mean.into(),
                        (mean * 0.95).into(),
                        (mean * 1.05).into(),
                        3usize.into(),
                    ]
                })
                .collect()
        });
        tables.push(table("norm_by_tau", "layer tau mean low high seeds", rows));
        let rows = each(&|tau| {
            [("clean", 0.0), ("gaussian/pixel/5", 0.02)]
                .map(|(condition, shift)| {
                    let mean = 0.345 - 0.3 * leak(tau) + shift;
                    vec![
                        tau.into(),
                        condition.into(),
                        mean.into(),
                        (mean - 0.004).into(),
                        (mean + 0.004).into(),
                        3usize.into(),
                        Cell::Empty,
                    ]
                })
                .into()
        });
        tables.push(table("critical_by_tau", "tau condition mean low high seeds paper", rows));
        let rows = each(&|tau| {
            let synops = 1.1e6 + 3.1e6 * leak(tau);
            vec![vec![
                tau.into(),
                synops.into(),
                (0.02 * synops).into(),
                (synops * 0.9e-12).into(),
                (0.55 + 0.9 * leak(tau)).into(),
                0.012.into(),
                0.962.into(),
                1usize.into(),
            ]]
        });
        tables.push(table(
            "tradeoff",
            "tau synops synops_error energy robustness robustness_error accuracy pareto",
            rows,
        ));
        tables
    }

    fn claims(&self) -> Table {
        let parts = [
            ("1", 1, "fraction"),
            ("2 gaussian/pixel", 2, "fraction of clean accuracy"),
            ("2 gaussian/channel", 2, "fraction of clean accuracy"),
            ("2 impulse/pixel", 2, "fraction of clean accuracy"),
            ("2 impulse/channel", 2, "fraction of clean accuracy"),
            ("3 test_sse", 3, "ratio"),
            ("3 equal train_sse", 3, "ratio"),
            ("4 spike_rate", 4, "ratio"),
            ("4 synops", 4, "ratio"),
            ("5", 5, "ratio"),
            ("6 leak clean", 6, "cycles/step"),
            ("6 gaussian/pixel/5 tau 30", 6, "cycles/step"),
            ("7", 7, "fraction"),
        ];
        let rows = parts.iter().map(|&(claim, number, unit)| {
            vec![
                claim.into(),
                format!("What claim {claim} states.").into(),
                "the paper's finding".into(),
                0.123.into(),
                0.1.into(),
                0.15.into(),
                0.02.into(),
                self.verdicts[number - 1].into(),
                case(self.verdicts[number - 1]).into(),
                "Where the interval lies.".into(),
                "Holds: the interval lies above 0. Does not hold: an effect is excluded.".into(),
                format!("difference of something, tau {} minus inf", self.taus[0]).into(),
                unit.into(),
                3usize.into(),
            ]
        });
        table(
            "claims",
            "claim statement paper ours low high smallest verdict case reason rule quantity unit seeds",
            rows.collect(),
        )
    }
}

/// A case that goes with a verdict.
fn case(verdict: &str) -> &'static str {
    match verdict {
        "holds" => "as claimed",
        "does not hold" => "no such effect",
        _ => "undecided",
    }
}

fn run_tables(tau: &str, seed: u64) -> Vec<Table> {
    let leak = leak(tau);
    let conditions = [("clean", 0.0), ("gaussian/pixel/5", 1.0)];
    let mut spectrum = Vec::new();
    let mut amplitude = Vec::new();
    let mut critical = Vec::new();
    for (condition, noise) in conditions {
        for k in 1..=15usize {
            let frequency = k as f64 / 30.0;
            let power = 0.3 + 0.2 * noise + 0.004 * wobble(frequency, noise);
            spectrum.push(vec![condition.into(), frequency.into(), power.into()]);
            let centre = 0.345 - 0.3 * leak + 0.02 * noise;
            let images = (300.0 * (-((frequency - centre) / 0.06).powi(2)).exp()).round();
            critical.push(vec![condition.into(), frequency.into(), (images as usize).into()]);
        }
        for k in 0..24usize {
            let x = 0.3 + k as f64 * 0.02;
            let density = 8.0 * (-((x - 0.45 - 0.15 * noise) / 0.06).powi(2)).exp();
            amplitude.push(vec![
                condition.into(),
                x.into(),
                (density * (1.0 + 0.1 * wobble(x, 1.0))).into(),
                density.into(),
            ]);
        }
    }
    let activity = LAYERS.iter().enumerate().map(|(i, (layer, kind))| {
        let rate =
            (0.12 - 0.018 * i as f64) * (1.0 + 2.0 * leak) * (1.0 + 0.02 * wobble(seed as f64, i as f64));
        vec![
            (*layer).into(),
            (*kind).into(),
            512usize.into(),
            rate.into(),
            1e5.into(),
            4.0.into(),
            0.02.into(),
            0.0.into(),
        ]
    });
    let energy = [
        ("45 nm CMOS", "accumulate", 0.9, Cell::from(2e-6)),
        ("Loihi", "synaptic operation", 23.6, Cell::Empty),
    ]
    .map(|(model, operation, cost, dense)| {
        let spiking = cost * 1e-12 * (1.1e6 + 3.1e6 * leak);
        vec![model.into(), operation.into(), cost.into(), spiking.into(), dense]
    });
    let mut raster = Vec::new();
    let mut membrane = Vec::new();
    for (i, (layer, _)) in LAYERS.iter().enumerate() {
        for neuron in 0..60usize {
            for step in 1..=30usize {
                if wobble((neuron * 31 + step * 7) as f64 + leak, i as f64) > 0.86 - 0.5 * leak {
                    raster.push(vec![(*layer).into(), neuron.into(), step.into()]);
                }
            }
        }
        let mut potential = 0.0;
        for step in 1..=30usize {
            potential = potential * (1.0 - leak / 3.0) + 0.16 * (1.0 + wobble(step as f64, i as f64));
            membrane.push(vec![(*layer).into(), 3usize.into(), step.into(), potential.into()]);
            if potential > 1.0 {
                potential = 0.0;
            }
        }
    }
    let hidden = LAYERS.iter().flat_map(|(layer, _)| {
        (1..=15usize).map(move |k| {
            let frequency = k as f64 / 30.0;
            vec![
                "clean".into(),
                (*layer).into(),
                frequency.into(),
                (0.3 / (1.0 + 4.0 * leak * frequency)).into(),
            ]
        })
    });
    let image = (0..64usize).map(|i| {
        let value = 255.0 * (-((i % 8) as f64 - 3.5).powi(2) / 6.0).exp();
        vec![0usize.into(), (i / 8).into(), (i % 8).into(), (value as usize).into()]
    });
    vec![
        table("hidden_spectrum", "condition layer frequency power", hidden.collect()),
        table("example_image", "channel row column pixel", image.collect()),
        table("input_spectrum", "condition frequency power", spectrum),
        table("input_amplitude", "condition amplitude density curve", amplitude),
        table("critical_frequency", "condition frequency images", critical),
        table(
            "activity",
            "layer kind neurons spike_rate synops weighted_input_norm dead saturated",
            activity.collect(),
        ),
        table("energy", "model operation energy_per_operation spiking dense", energy.into()),
        table("raster", "layer neuron step", raster),
        table("membrane", "layer neuron step potential", membrane),
    ]
}

fn theory_tables() -> Vec<Table> {
    let mut tables = Vec::new();
    for (name, own) in [("fig2_own", true), ("fig2_physical", false), ("fig2_noise_driven", false)] {
        let mut theory = Vec::new();
        let mut simulation = Vec::new();
        for (curve, corner) in [("LIF, R = 1", 1.0), ("LIF, R = 3", 3.0), ("IF (no leak)", 1e4)] {
            for k in 0..=60 {
                let frequency = 10f64.powf(-2.0 + k as f64 / 15.0);
                let corner: f64 = if own { corner } else { 1.5 };
                let coherence = (1.0 - 0.3 / corner.min(3.0)) / (1.0 + frequency / corner);
                theory.push(vec![curve.into(), frequency.into(), coherence.into()]);
                if k % 6 == 3 {
                    simulation.push(vec![
                        curve.into(),
                        frequency.into(),
                        coherence.into(),
                        (coherence - 0.03).max(0.0).into(),
                        (coherence + 0.03).min(1.0).into(),
                    ]);
                }
            }
        }
        tables.push(table(name, "curve frequency coherence", theory));
        tables.push(table(&format!("{name}_simulation"), "curve frequency coherence low high", simulation));
    }
    tables
}
