//! Where robustness comes from: networks built by hand whose gain is known, and small trained ones whose
//! cells must agree with `evaluate` and must not depend on threads and interruptions.

use leaklab_engine::encode::Encoding;
use leaklab_engine::noise::Severities;
use leaklab_engine::{Architecture, Isa, Leak, LeakChange, Network, Packed, Shape, Tau};
use leaklab_lab::analysis::mechanism::subject::{Subject, Work};
use leaklab_lab::analysis::mechanism::subjects::Subjects;
use leaklab_lab::analysis::mechanism::{self, sentences};
use leaklab_lab::analysis::pass::Pass;
use leaklab_lab::analysis::{Advance, Analysis, AnalysisError, Options, analyse};
use leaklab_lab::config::{RunConfig, StudyConfig};
use leaklab_lab::data::{Content, Dataset, Normaliser, Presentation, Split, TEST_SAMPLES};
use leaklab_lab::evaluate::{evaluate, presentation};
use leaklab_lab::run::{TrainedRun, Weights};
use leaklab_lab::train::{self, Control, threads};
use leaklab_record::tables::*;
use leaklab_record::{ClaimId, Part, Place, PriceMeasure, Readout, Row, Rows, Stimulus, Table, Topic};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn tau(steps: f64) -> Tau {
    Tau::new(steps).unwrap()
}

fn rows<R: Row>(tables: &[Table]) -> Vec<R> {
    let table =
        tables.iter().find(|table| table.name == R::TABLE).unwrap_or_else(|| panic!("no {}", R::TABLE));
    Rows::from_table(table).unwrap().rows
}

// Networks built by hand. Images have two pixels, +1 and -1, which fire at every one of three steps; hidden
// neurons receive only the first pixel, so everything they do can be computed by hand. The leak is tau = 10,
// lambda = 0.905.

const STEPS: usize = 3;
const IMAGES: usize = 24;

/// A network whose hidden neurons have one input weight each; `votes[class]` are their output weights for a
/// class.
fn network(hidden: &[f32], votes: [&[f32]; 2]) -> Network {
    let architecture = Architecture::parse(&format!("1x1x2-{}FC-2o", hidden.len())).unwrap();
    let mut network = Network::new(architecture, Leak::uniform(Tau::INFINITE), 1.0).unwrap();
    let first: Vec<f32> = hidden.iter().flat_map(|&weight| [weight, 0.0]).collect();
    network.set_tensor("fc1", &[hidden.len(), 2], &first).unwrap();
    network.set_tensor("fc2", &[2, hidden.len()], &votes.concat()).unwrap();
    network
}

fn subject(network: Network, trained: Tau, seed: u64) -> Subject {
    let shape = Shape { channels: 1, height: 1, width: 2 };
    let test = Split {
        content: Content::Images([255, 0].repeat(IMAGES)),
        labels: vec![1; IMAGES],
        samples: (0..IMAGES as u32).map(|i| TEST_SAMPLES + i).collect(),
    };
    let (name, class_names, train) = (String::new(), Vec::new(), Split::default());
    let dataset = Dataset { name, shape, classes: 2, class_names, train, test: test.clone() };
    let presentation = Presentation::new(&dataset, Normaliser::PER_IMAGE, Encoding::clean(STEPS), seed);
    let work = Work { pool: Arc::new(threads(Some(1)).unwrap()), folder: None };
    Subject::new(network, trained, presentation, test, Severities::default(), &[tau(10.0)], work).unwrap()
}

/// The parts of the gain of networks trained without and with leak, two seeds each.
fn parts(without: &Network, with: &Network) -> [f64; 4] {
    let subjects = Subjects {
        reference: [1, 2].map(|seed| subject(without.clone(), Tau::INFINITE, seed)).into(),
        leaky: vec![(tau(10.0), [1, 2].map(|seed| subject(with.clone(), tau(10.0), seed)).into())],
        taus: vec![tau(10.0)],
        stimuli: vec![Stimulus::Clean],
        presentations: 1,
        notes: Vec::new(),
    };
    let tables = mechanism::tables(&subjects, &mut |_| true).unwrap();
    let split: Vec<SplitRow> = rows(&tables);
    assert!(split.iter().all(|row| row.seeds == 2 && row.images == IMAGES as u64));
    Part::ALL.map(|part| split.iter().find(|row| row.part == part).unwrap().mean)
}

/// One neuron fires at step 2 and votes for class 0, another at step 3 and votes for class 1 with a slightly
/// smaller weight: the plain sum predicts 0, a leaky readout predicts 1. Leak does not change when the
/// neurons fire (0.6 + 0.543 > 1, 0.4 + 0.362 + 0.328 > 1).
#[test]
fn a_gain_of_the_readout_alone() {
    let network = network(&[0.6, 0.4], [&[1.0, 0.0], &[0.0, 0.95]]);
    assert_eq!(parts(&network, &network), [1.0, 0.0, 0.0, 1.0]);
}

/// A neuron that reaches the threshold at step 3 without leak (1.05) and not with it (0.953) votes for class
/// 0; one that fires at every step votes for class 1 with a smaller weight.
#[test]
fn a_gain_of_the_hidden_layers_alone() {
    let network = network(&[0.35, 2.0], [&[1.0, 0.0], &[0.0, 0.1]]);
    assert_eq!(parts(&network, &network), [1.0, 0.0, 1.0, 0.0]);
}

/// A neuron that fires at every step whatever the leak, and output weights that training has changed to the
/// right class.
#[test]
fn a_gain_of_training_alone() {
    let without = network(&[2.0], [&[1.0], &[0.0]]);
    let with = network(&[2.0], [&[0.0], &[1.0]]);
    assert_eq!(parts(&without, &with), [1.0, 1.0, 0.0, 0.0]);
    // With the networks exchanged, it is a loss, in the same place.
    assert_eq!(parts(&with, &without), [-1.0, -1.0, 0.0, 0.0]);
}

// Small trained networks.

const STUDY: &str = r#"
dataset = "digits"
network = "1x8x8-6C3-2P-12FC-10o"
tau = [10, inf]
time_steps = 12
epochs = 8
train_limit = 800
test_limit = 60
batch = 20
learning_rate = 0.7
schedule = { after = [], times = 1.0 }
noise = ["gaussian/pixel", "impulse/channel"]
seeds = [1, 2]
optimiser = "sgd"
presentations = 1
"#;

fn options(count: usize) -> Options {
    Options::as_trained(Arc::new(threads(Some(count)).unwrap()))
}

fn config(folder: &Path) -> StudyConfig {
    let file = folder.join("study.toml");
    std::fs::write(&file, STUDY).unwrap();
    StudyConfig::load(&file.to_string_lossy(), &[]).unwrap()
}

/// Trains every run of the small study and measures its robustness.
fn trained(folder: &Path) -> Vec<PathBuf> {
    let one = |config: RunConfig| {
        let run = folder.join(config.folder_name());
        train::train(&config, &run, &train::Options::default(), &mut |_| Control::Continue).unwrap();
        analyse(&run, &[Analysis::Robustness], &options(2), &mut |_| true).unwrap();
        run
    };
    config(folder).runs().into_iter().map(one).collect()
}

/// The tables of a study, and the number of progress reports.
fn study(runs: &[PathBuf], folder: &Path, count: usize) -> (Vec<Table>, usize) {
    let mut reports = 0;
    let tables = mechanism::study(runs, None, &folder.join("compare"), &options(count), &mut |_| {
        reports += 1;
        true
    });
    (tables.unwrap(), reports)
}

/// Everything about one small study, so that it is trained once.
#[test]
fn cells_of_trained_networks() {
    let folder = tempfile::tempdir().unwrap();
    let runs = trained(folder.path());
    let mut last = Advance { stimulus: String::new(), done: 0, total: 0 };
    let out = folder.path().join("compare");
    let tables = mechanism::study(&runs, None, &out, &options(2), &mut |advance| {
        last = advance.clone();
        true
    })
    .unwrap();
    // The number of images planned from the settings equals the number shown.
    let images = 60;
    assert_eq!(
        (last.done, last.total),
        (last.total, mechanism::planned_images(&config(folder.path()), images))
    );
    equal_to_evaluate(&runs, &tables);
    parts_are_whole_numbers(&tables);
    readouts_equal_runs(&runs);
    sentences_agree_with_tables(&tables);
    advice_is_measured(&runs, &tables);
    resumes(&runs, folder.path(), &tables);
}

/// With h = r = w a cell equals an evaluation, including spikes and operations.
fn equal_to_evaluate(runs: &[PathBuf], tables: &[Table]) {
    let cells: Vec<CellRow> = rows(tables);
    for trained in [tau(10.0), Tau::INFINITE] {
        let stimuli: Vec<Stimulus> = {
            let mut all: Vec<Stimulus> = cells.iter().map(|row| row.stimulus).collect();
            all.dedup();
            all
        };
        for stimulus in stimuli {
            let (mut accuracies, mut rates, mut synops) = (Vec::new(), Vec::new(), Vec::new());
            for run in runs {
                let run = TrainedRun::open(run, Weights::Last).unwrap();
                if run.config.leak.as_uniform() != Some(trained) {
                    continue;
                }
                let dataset = run.dataset().unwrap();
                let mut show = presentation(&run.config, &dataset);
                if let Stimulus::Noisy(key, severity) = stimulus {
                    let noise = run.config.severities.setting(key.noise, key.scenario, severity).unwrap();
                    show.encoding = show.encoding.with_noise(noise);
                }
                let packed = Packed::new(&run.network, Isa::best()).unwrap();
                let pool = threads(Some(2)).unwrap();
                let found =
                    evaluate(&packed, &run.network.architecture, &show, &dataset.test, &pool, &mut |_| true);
                let found = found.unwrap().unwrap();
                accuracies.push(found.accuracy());
                rates.push(found.spike_rate);
                synops.push(found.synops);
            }
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
            let row = cells.iter().find(|row| {
                (row.trained, row.hidden, row.readout, row.stimulus)
                    == (trained, trained, Readout::Leaky(trained), stimulus)
            });
            let row = row.unwrap();
            assert_eq!(row.seeds, 2);
            // Means of the same numbers, added in another order, differ at most by rounding.
            let same = |a: f64, b: f64| (a - b).abs() <= 4.0 * f64::EPSILON * b.abs();
            assert!(same(row.accuracy, mean(&accuracies)), "{trained} {stimulus}");
            assert!(
                same(row.spike_rate, mean(&rates)) && same(row.synops, mean(&synops)),
                "{trained} {stimulus}"
            );
        }
    }
    // Leak must change something somewhere, or the test would show nothing.
    let split: Vec<SplitRow> = rows(tables);
    for part in [Part::Training, Part::Hidden, Part::Readout] {
        assert!(split.iter().any(|row| row.part == part && row.mean != 0.0), "{part}");
    }
}

/// Parts are sixths of correct answers: in that unit they are whole numbers, and sum to the gain exactly.
fn parts_are_whole_numbers(tables: &[Table]) {
    let split: Vec<SplitRow> = rows(tables);
    let cells: Vec<CellRow> = rows(tables);
    for four in split.chunks_exact(4) {
        assert_eq!([0, 1, 2, 3].map(|i| four[i].part), Part::ALL);
        let unit = (6 * four[0].images * four[0].seeds * four[0].presentations) as f64;
        let whole = |x: f64| {
            let rounded = (x * unit).round();
            assert!((x * unit - rounded).abs() < 1e-6, "{} is not a number of sixths", x);
            rounded as i64
        };
        let numbers: Vec<i64> = four.iter().map(|row| whole(row.mean)).collect();
        assert_eq!(numbers[0], numbers[1] + numbers[2] + numbers[3]);
        let accuracy = |tau: Tau| {
            let found = cells.iter().find(|row| {
                (row.trained, row.hidden, row.readout, row.stimulus)
                    == (tau, tau, Readout::Leaky(tau), four[0].stimulus)
            });
            whole(found.unwrap().accuracy)
        };
        assert_eq!(numbers[0], accuracy(four[0].tau) - accuracy(Tau::INFINITE));
    }
    let prices: Vec<PriceRow> = rows(tables);
    for four in prices.chunks_exact(4) {
        let [total, training, hidden, readout] = [0, 1, 2, 3].map(|i| four[i].mean);
        assert!((total - training - hidden - readout).abs() <= 1e-12 * four[0].baseline.max(total.abs()));
        assert_eq!(readout, 0.0, "a readout costs nothing");
    }
    assert!(prices.iter().any(|row| row.measure == PriceMeasure::Synops && row.mean != 0.0));
}

/// A readout of the recorded signal equals, image by image, a run with that `readout_tau`.
fn readouts_equal_runs(runs: &[PathBuf]) {
    let run = runs.iter().find(|run| run.ends_with("tau-inf_seed-1")).unwrap();
    let readout = tau(10.0);
    let leak = LeakChange { readout_tau: Some(readout), ..LeakChange::default() };
    let options = Options { leak, ..options(2) };
    analyse(run, &[Analysis::Activity], &options, &mut |_| true).unwrap();
    let text =
        |path: PathBuf| std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let analysis = run.join("analysis");
    let pass: serde_json::Value =
        serde_json::from_str(&text(analysis.join("tau-inf-readout-10/passes/clean.json"))).unwrap();
    let pass: Pass = serde_json::from_value(pass["content"].clone()).unwrap();
    let cell: serde_json::Value =
        serde_json::from_str(&text(analysis.join("cells/inf_clean_1.json"))).unwrap();
    let of = |readout: &str| cell["content"]["correct"][readout].as_str().unwrap().to_owned();
    assert_eq!(of("tau 10"), pass.correct.to_string());
    assert_ne!(of("tau 1"), of("tau inf"), "some readout changes some answer");
}

/// The numbers of a sentence are those of its table.
fn sentences_agree_with_tables(tables: &[Table]) {
    let split: Vec<SplitRow> = rows(tables);
    let sentences: Vec<WhyRow> = rows(tables);
    let gains: Vec<&WhyRow> = sentences.iter().filter(|row| row.topic == Topic::Gain).collect();
    assert_eq!(gains.len(), 2, "one for each noise");
    let points = |x: f64| format!("{:.1}", 100.0 * x).replace("-0.0", "0.0").replace('-', "\u{2212}");
    for row in gains {
        let of = |part: Part| {
            let own = |other: &&SplitRow| {
                matches!(other.stimulus, Stimulus::Noisy(noise, _) if Some(noise) == row.noise)
                    && other.part == part
            };
            let found = split.iter().find(own).unwrap();
            let (mean, low, high) = (found.mean, found.low.unwrap(), found.high.unwrap());
            // A total loss is given as points lost.
            let lost = part == Part::Total && row.sentence.contains(" loses ");
            let [mean, low, high] = if lost { [-mean, -high, -low] } else { [mean, low, high] };
            format!("{} [{}, {}]", points(mean), points(low), points(high))
        };
        for part in Part::ALL {
            assert!(row.sentence.contains(&of(part)), "{part}: {} not in: {}", of(part), row.sentence);
        }
        let by_readout = format!("{} by the readout", of(Part::Readout));
        assert!(row.sentence.contains(&by_readout), "{}", row.sentence);
    }
    let claims = tables.iter().find(|table| table.name == WHY_CLAIMS).unwrap();
    let claims: Vec<ClaimRow> = Rows::from_table(claims).unwrap().rows;
    let count = |claim: ClaimId| claims.iter().filter(|row| row.claim == claim).count();
    let of =
        [ClaimId::FromHidden, ClaimId::FromTraining, ClaimId::FromReadout, ClaimId::SlowNoise].map(count);
    assert_eq!(of, [2, 2, 2, 4]);
    assert_eq!(sentences[0].topic, Topic::Explanation);
    assert_eq!(sentences::explanation(&claims).unwrap(), sentences[0]);
    let colours: Vec<ColourRow> = rows(tables);
    assert_eq!(colours.len(), 7 * Place::ALL.len());
}

/// Advice is a cell that was measured, within the budget, and not better than what it was chosen by.
fn advice_is_measured(runs: &[PathBuf], tables: &[Table]) {
    let cells: Vec<CellRow> = rows(tables);
    let noise = "gaussian/pixel".parse().unwrap();
    let advise = |severity: Option<usize>, budget: Option<f64>| {
        mechanism::advise(runs, None, &options(2), (noise, severity), budget, &mut |_| true)
    };
    let free = advise(None, None).unwrap();
    let table: Vec<AdviceRow> = rows(tables);
    assert_eq!(table[0], free, "the table has the same advice");
    let cell = cells
        .iter()
        .find(|row| (row.trained, row.hidden, row.stimulus) == (free.trained, free.hidden, free.stimulus));
    assert!((cell.unwrap().synops - free.synops).abs() < 1e-9 * free.synops);
    assert_eq!(free.images, 30);
    over_the_best_readout_of_the_baseline(&free);
    let cheap: Vec<f64> =
        cells.iter().filter(|row| row.stimulus == free.stimulus).map(|row| row.synops).collect();
    let (least, most) = cheap.iter().fold((f64::MAX, 0.0_f64), |(a, b), &x| (a.min(x), b.max(x)));
    let within = advise(None, Some(0.5 * (least + most))).unwrap();
    assert!(within.synops <= 0.5 * (least + most) && within.candidates < free.candidates);
    assert!(within.chosen_accuracy <= free.chosen_accuracy);
    let refused = advise(None, Some(1.0)).unwrap_err().to_string();
    assert!(refused.contains("at most 1 synaptic") && refused.contains("cheapest"), "{refused}");
    assert_eq!(advise(Some(8), None).unwrap().stimulus, Stimulus::at(noise, 8));
}

/// The second gain has an interval, and is the first one if the baseline is best read by the plain sum.
fn over_the_best_readout_of_the_baseline(free: &AdviceRow) {
    let (readout, gain) = free.baseline_readout.zip(free.gain_over_readout).unwrap();
    if readout == Readout::PLAIN {
        assert_eq!((gain, free.gain_over_readout_low), (free.gain, free.gain_low));
    }
    let [low, high] = [free.gain_over_readout_low, free.gain_over_readout_high].map(Option::unwrap);
    assert!(low <= gain && gain <= high);
}

/// After an interruption, on other threads and after damage, the tables are bit-identical, and nothing is
/// shown twice.
fn resumes(runs: &[PathBuf], folder: &Path, tables: &[Table]) {
    let texts = |tables: &[Table]| tables.iter().map(Table::to_json).collect::<Vec<_>>();
    let expected = texts(tables);
    // A stored run is reported once; a run that is made is also reported at its start.
    let (again, stored) = study(runs, folder, 1);
    assert_eq!(texts(&again), expected);
    for run in runs {
        std::fs::remove_dir_all(run.join("analysis/cells")).unwrap();
    }
    let mut left = 40;
    let stopped = mechanism::study(runs, None, &folder.join("compare"), &options(1), &mut |_| {
        left -= 1;
        left > 0
    });
    assert!(matches!(stopped, Err(AnalysisError::Interrupted)));
    let files: Vec<PathBuf> =
        std::fs::read_dir(runs[1].join("analysis/cells")).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(!files.is_empty(), "finished work is stored");
    let text = std::fs::read_to_string(&files[0]).unwrap();
    std::fs::write(&files[0], text.replacen("\"spikes\":", "\"spikes\":1", 1)).unwrap();
    let (fresh, made) = study(runs, folder, 3);
    assert_eq!(texts(&fresh), expected);
    assert!(stored < made && made < 3 * stored, "stored runs are not made again: {stored}, {made}");
}

#[test]
fn a_single_run_gives_what_one_network_allows() {
    let folder = tempfile::tempdir().unwrap();
    let run = &trained(folder.path())[0];
    let tables = mechanism::run(run, &options(2), &mut |_| true).unwrap();
    let split: Vec<SplitRow> = rows(&tables);
    let parts: Vec<Part> = split.iter().take(3).map(|row| row.part).collect();
    assert_eq!(parts, [Part::Total, Part::Hidden, Part::Readout], "no other training to compare with");
    assert!(split.iter().all(|row| row.tau == tau(10.0) && row.seeds == 1 && row.low.is_none()));
    assert!(tables.iter().all(|table| table.notes.iter().any(|note| note.contains("single network"))));
    assert!(run.join("analysis/why_split.json").is_file());
    // It was trained with leak, and is its own reference.
    let says = |table: &Table, words: &str| table.definition.contains(words);
    for name in [LayerLeakRow::TABLE, WindowRow::TABLE, ResponseRow::TABLE] {
        let table = tables.iter().find(|table| table.name == name).unwrap();
        assert!(says(table, "Weights trained with tau 10"), "{}", table.definition);
    }
    for name in [SplitRow::TABLE, PriceRow::TABLE, ColourRow::TABLE, AdviceRow::TABLE] {
        let table = tables.iter().find(|table| table.name == name).unwrap();
        assert!(says(table, "trained with tau 10"), "{}", table.definition);
    }
    assert!(!tables.iter().any(|table| says(table, "trained without leak")));
    let sentences: Vec<WhyRow> = rows(&tables);
    let window = sentences.iter().find(|row| row.topic == Topic::Window).unwrap();
    assert!(window.sentence.starts_with("In networks trained with tau 10 and run"), "{}", window.sentence);
    // It may be a gain or a loss.
    assert!(window.sentence.contains("changes accuracy under") && !window.sentence.contains("gains"));
    // A single run is not a study.
    let alone = mechanism::study(std::slice::from_ref(run), None, folder.path(), &options(1), &mut |_| true);
    let message = alone.unwrap_err().to_string();
    assert!(message.contains("without leak (tau = inf)") && message.contains("have learned"), "{message}");
}
