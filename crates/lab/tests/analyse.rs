//! Analyses of small trained runs: they agree with `evaluate`, do not depend on threads, can be resumed, and
//! report errors clearly.

use leaklab_engine::noise::{Noise, Scenario};
use leaklab_engine::{Isa, LeakChange, Packed, Tau};
use leaklab_lab::analysis::compare::compare_folders;
use leaklab_lab::analysis::{Analysis, AnalysisError, Options, analyse, pass};
use leaklab_lab::config::RunConfig;
use leaklab_lab::evaluate::{Evaluation, evaluate, presentation};
use leaklab_lab::run::{TrainedRun, Weights};
use leaklab_lab::train::{self, Control, threads};
use leaklab_record::tables::{ClaimRow, CriticalSummaryRow, RobustnessRow, Table1Row};
use leaklab_record::{ClaimId, NoiseKey, Row, Rows, Table, Verdict};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SETTINGS: &str = r#"
dataset = "digits"
network = "1x8x8-6C3-2P-12FC-10o"
time_steps = 12
epochs = 2
train_limit = 200
test_limit = 70
batch = 20
evaluate_train_images = 50
presentations = 1
schedule = { after = [], times = 1.0 }
noise = ["gaussian/pixel", "impulse/channel"]
"#;

fn train_run(folder: &Path, tau: &str, seed: u64) -> PathBuf {
    let file = folder.join("settings.toml");
    std::fs::write(&file, SETTINGS).unwrap();
    let config = RunConfig::load(&file, &[format!("tau={tau}"), format!("seed={seed}")]).unwrap();
    let run = folder.join(config.folder_name());
    train::train(&config, &run, &train::Options::default(), &mut |_| Control::Continue).unwrap();
    run
}

fn options(count: usize) -> Options {
    Options::as_trained(Arc::new(threads(Some(count)).unwrap()))
}

fn all(run: &Path, count: usize) -> Vec<Table> {
    analyse(run, &Analysis::ALL, &options(count), &mut |_| true).unwrap()
}

fn find<'a>(tables: &'a [Table], name: &str) -> &'a Table {
    tables.iter().find(|table| table.name == name).unwrap_or_else(|| panic!("no table {name}"))
}

fn rows<R: Row>(tables: &[Table]) -> Vec<R> {
    Rows::from_table(find(tables, R::TABLE)).unwrap().rows
}

fn evaluation(run: &Path, noise: Option<(Noise, Scenario, usize)>) -> Evaluation {
    let run = TrainedRun::open(run, Weights::Last).unwrap();
    let dataset = run.dataset().unwrap();
    let mut show = presentation(&run.config, &dataset);
    if let Some((noise, scenario, severity)) = noise {
        let setting = run.config.severities.setting(noise, scenario, severity).unwrap();
        show.encoding = show.encoding.with_noise(setting);
    }
    let packed = Packed::new(&run.network, Isa::best()).unwrap();
    let architecture = &run.network.architecture;
    let pool = threads(Some(2)).unwrap();
    evaluate(&packed, architecture, &show, &dataset.test, &pool, &mut |_| true).unwrap().unwrap()
}

#[test]
fn agrees_exactly_with_evaluate() {
    let folder = tempfile::tempdir().unwrap();
    let run = train_run(folder.path(), "30", 1);
    let tables = all(&run, 2);
    let robustness = find(&tables, "robustness");
    assert_eq!(robustness.rows.len(), 2 * 9);
    let row = |noise: &str, severity: f64| {
        let found = robustness.rows.iter().find(|row| {
            robustness.cell(row, "noise").text() == Some(noise)
                && robustness.cell(row, "severity").number() == Some(severity)
        });
        let number = |column| robustness.cell(found.unwrap(), column).number().unwrap();
        (number("images"), number("correct"), number("accuracy"), number("sse"))
    };
    let numbers = |e: &Evaluation| (e.images as f64, e.correct as f64, e.accuracy(), e.sse);
    let clean = evaluation(&run, None);
    assert_eq!(row("gaussian", 0.0), numbers(&clean));
    assert_eq!(row("impulse", 0.0), numbers(&clean));
    let noisy = evaluation(&run, Some((Noise::Gaussian, Scenario::Pixel, 7)));
    assert_eq!(row("gaussian", 7.0), numbers(&noisy));
    assert_ne!(clean.sse, noisy.sse);
    let noisy = evaluation(&run, Some((Noise::Impulse, Scenario::Channel, 8)));
    assert_eq!(row("impulse", 8.0), numbers(&noisy));

    let activity = find(&tables, "activity");
    for (row, layer) in activity.rows.iter().zip(&clean.layers) {
        assert_eq!(row[0].text(), Some(layer.name.as_str()));
        assert_eq!(activity.cell(row, "spike_rate").number(), layer.spike_rate);
        assert_eq!(activity.cell(row, "synops").number(), layer.synops);
        assert_eq!(activity.cell(row, "weighted_input_norm").number(), layer.weighted_input_norm);
    }
    let summary = find(&tables, "activity_summary");
    let value = |name: &str| {
        let row = summary.rows.iter().find(|row| row[0].text() == Some(name)).unwrap();
        summary.cell(row, "value").number().unwrap()
    };
    assert_eq!((value("spike_rate"), value("synops")), (clean.spike_rate, clean.synops));
    assert_eq!(value("effective_acs"), clean.synops, "no weight is zero and every input is ternary");
}

#[test]
fn tables_do_not_depend_on_threads() {
    let folder = tempfile::tempdir().unwrap();
    let run = train_run(folder.path(), "inf", 1);
    let mut texts = Vec::new();
    for count in [1, 2, 3] {
        let _ = std::fs::remove_dir_all(run.join("analysis"));
        texts.push(all(&run, count).iter().map(Table::to_json).collect::<Vec<_>>());
    }
    assert_eq!(texts[0], texts[1]);
    assert_eq!(texts[0], texts[2]);
}

#[test]
fn continues_where_it_was_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let run = train_run(folder.path(), "100", 2);
    let undisturbed = all(&run, 2);
    std::fs::remove_dir_all(run.join("analysis")).unwrap();

    // 17 passes of 70 images; stopped within the sixth.
    let stopped = analyse(&run, &[Analysis::Robustness], &options(2), &mut |advance| {
        assert_eq!(advance.total, 17 * 70);
        advance.done < 5 * 70 + 10
    });
    let message = stopped.unwrap_err().to_string();
    assert!(message.contains("the same command continues"), "{message}");
    assert!(!run.join("analysis/robustness.json").exists());
    let mut last = (0, 0);
    let again = analyse(&run, &[Analysis::Robustness], &options(2), &mut |advance| {
        last = (advance.done, advance.total);
        true
    })
    .unwrap();
    assert_eq!(last, (12 * 70, 12 * 70), "five passes were stored");
    assert_eq!(again[0], *find(&undisturbed, "robustness"));

    // Damaged passes, passes of another stimulus and passes of an old version are made again.
    let passes = run.join("analysis/passes");
    let text = std::fs::read_to_string(passes.join("gaussian_pixel_2.json")).unwrap();
    std::fs::write(passes.join("gaussian_pixel_2.json"), &text[..text.len() / 2]).unwrap();
    std::fs::write(passes.join("gaussian_pixel_3.json"), &text).unwrap();
    let clean = std::fs::read_to_string(passes.join("clean.json")).unwrap();
    let old = clean.replace(&format!("\"format\":{}", pass::FORMAT), "\"format\":0");
    assert_ne!(clean, old);
    std::fs::write(passes.join("clean.json"), old).unwrap();
    let mut total = 0;
    let repaired = analyse(&run, &Analysis::ALL, &options(2), &mut |advance| {
        total = advance.total;
        true
    })
    .unwrap();
    assert_eq!(total, 3 * 70);
    assert_eq!(repaired, undisturbed);
    // Nothing is left to do.
    analyse(&run, &Analysis::ALL, &options(2), &mut |_| panic!("an image was shown again")).unwrap();
}

#[test]
fn a_limit_takes_part_of_the_images() {
    let folder = tempfile::tempdir().unwrap();
    let run = train_run(folder.path(), "30", 3);
    let limited = Options { images: Some(40), ..options(2) };
    let tables = analyse(&run, &[Analysis::Robustness], &limited, &mut |_| true).unwrap();
    assert!(tables[0].rows.iter().all(|row| tables[0].cell(row, "images").number() == Some(40.0)));
    let tables = analyse(&run, &[Analysis::Robustness], &options(2), &mut |_| true).unwrap();
    assert!(tables[0].rows.iter().all(|row| tables[0].cell(row, "images").number() == Some(70.0)));
}

#[test]
fn other_noises_can_be_tested_later() {
    let folder = tempfile::tempdir().unwrap();
    let run = train_run(folder.path(), "30", 5);
    let device = ["deletion/channel", "gaussian/pixel"].map(|name| name.parse::<NoiseKey>().unwrap());
    let more = Options { noise: device.into(), ..options(2) };
    let tables = analyse(&run, &[Analysis::Robustness], &more, &mut |_| true).unwrap();
    assert_eq!(tables[0].rows.len(), 3 * 9, "gaussian/pixel is not tested twice");
    let row =
        tables[0].rows.iter().find(|row| row[0].text() == Some("deletion") && row[2].number() == Some(8.0));
    let noisy = evaluation(&run, Some((Noise::Deletion, Scenario::Channel, 8)));
    assert_eq!(tables[0].cell(row.unwrap(), "sse").number(), Some(noisy.sse));
}

/// Trained weights run with another leak give the same numbers as an evaluation with it, in a separate
/// folder.
#[test]
fn another_leak_has_separate_tables() {
    let folder = tempfile::tempdir().unwrap();
    let run = train_run(folder.path(), "inf", 6);
    let own = all(&run, 2);
    let change = LeakChange { tau: Some(Tau::new(5.0).unwrap()), ..LeakChange::default() };
    let options = Options { leak: change.clone(), ..options(2) };
    let tables = analyse(&run, &[Analysis::Robustness], &options, &mut |_| true).unwrap();
    assert!(tables[0].notes.iter().any(|note| note == "Trained with tau inf, run with tau 5."));
    assert_ne!(rows::<RobustnessRow>(&tables)[0].sse, rows::<RobustnessRow>(&own)[0].sse);
    assert!(run.join("analysis/tau-5/robustness.json").is_file());
    assert_eq!(Table::read(&run.join("analysis/robustness.json")).unwrap(), *find(&own, "robustness"));

    let mut trained = TrainedRun::open(&run, Weights::Last).unwrap();
    trained.change_leak(&change).unwrap();
    let dataset = trained.dataset().unwrap();
    let packed = Packed::new(&trained.network, Isa::best()).unwrap();
    let show = presentation(&trained.config, &dataset);
    let pool = threads(Some(2)).unwrap();
    let architecture = &trained.network.architecture;
    let clean = evaluate(&packed, architecture, &show, &dataset.test, &pool, &mut |_| true).unwrap().unwrap();
    assert_eq!(rows::<RobustnessRow>(&tables)[0].sse, Some(clean.sse));
}

/// The tables of the best epoch's weights do not replace those that comparisons read.
#[test]
fn the_best_epoch_has_separate_tables() {
    let folder = tempfile::tempdir().unwrap();
    let run = train_run(folder.path(), "inf", 6);
    let own = all(&run, 2);
    let options = Options { weights: Weights::Best, ..options(2) };
    let tables = analyse(&run, &[Analysis::Robustness], &options, &mut |_| true).unwrap();
    assert_eq!(
        Table::read(&run.join("analysis/best/robustness.json")).unwrap(),
        *find(&tables, "robustness")
    );
    assert_eq!(Table::read(&run.join("analysis/robustness.json")).unwrap(), *find(&own, "robustness"));
}

/// Several presentations are averaged, and each draws new spikes.
#[test]
fn presentations_draw_new_spikes() {
    let folder = tempfile::tempdir().unwrap();
    let run = train_run(folder.path(), "30", 7);
    let settings = std::fs::read_to_string(run.join("run.toml")).unwrap();
    let once = analyse(&run, &[Analysis::Robustness], &options(2), &mut |_| true).unwrap();
    std::fs::write(run.join("run.toml"), settings.replace("presentations = 1", "presentations = 3")).unwrap();
    let thrice = analyse(&run, &[Analysis::Robustness], &options(2), &mut |_| true).unwrap();
    let bits = |tables: &[Table], n: u64| {
        let all = rows::<leaklab_record::tables::CorrectnessRow>(tables);
        let of: Vec<_> = all.into_iter().filter(|row| row.presentation == n).map(|row| row.correct).collect();
        of
    };
    assert_eq!(bits(&once, 1), bits(&thrice, 1));
    assert_ne!(bits(&thrice, 1), bits(&thrice, 2));
    assert_ne!(bits(&thrice, 2), bits(&thrice, 3));
    let row = &rows::<RobustnessRow>(&thrice)[5];
    assert_eq!((row.images, row.presentations), (70, 3));
    let shown = row.images * row.presentations;
    assert!((row.accuracy - row.correct as f64 / shown as f64).abs() < 1e-12);
}

#[test]
fn all_tables_have_rows_and_described_columns() {
    let folder = tempfile::tempdir().unwrap();
    let runs: Vec<PathBuf> = [("30", 1), ("inf", 1), ("30", 2), ("inf", 2)]
        .map(|(tau, seed)| train_run(folder.path(), tau, seed))
        .into();
    let mut tables: Vec<Table> = runs.iter().flat_map(|run| all(run, 2)).collect();
    let out = folder.path().join("compare");
    tables.extend(compare_folders(&runs, None, &out).unwrap());
    let names: Vec<&str> = Analysis::ALL.iter().flat_map(|analysis| analysis.tables()).copied().collect();
    let compared = [
        "conditions",
        "runs",
        "table1",
        "robustness_by_condition",
        "generalisation_by_condition",
        "equal_train_sse",
        "norm_by_condition",
        "critical_by_condition",
        "tradeoff",
        "contrasts",
        "claims",
        "answer",
    ];
    for name in names.into_iter().chain(compared) {
        let table = find(&tables, name);
        // After two epochs, small networks need not have a common range of training SSE.
        assert!(!table.rows.is_empty() || name == "equal_train_sse", "{name} is empty");
        for column in &table.columns {
            assert!(!column.description.is_empty(), "{name}.{} has no description", column.name);
        }
    }
    for run in &runs {
        assert_eq!(Table::read(&run.join("analysis/robustness.json")).unwrap().name, "robustness");
    }
    let claims: Vec<ClaimRow> = Rows::read(&out).unwrap().unwrap().rows;
    let impulse = "impulse/channel".parse().ok();
    assert!(claims.iter().any(|row| row.claim == ClaimId::Robustness && row.noise == impulse));
    // T = 12 steps; white noise is well below the Nyquist frequency.
    let white = rows::<CriticalSummaryRow>(&tables);
    assert!(white.iter().all(|row| row.white_noise.is_some_and(|f| f > 0.25 && f < 0.5)));
}

#[test]
fn what_is_wrong_is_said_plainly() {
    let folder = tempfile::tempdir().unwrap();
    let run = train_run(folder.path(), "30", 4);
    let message = |run: &Path| {
        let error: AnalysisError =
            analyse(run, &[Analysis::Activity], &options(1), &mut |_| true).unwrap_err();
        error.to_string()
    };
    let text = message(&folder.path().join("nowhere"));
    assert!(text.contains("nowhere: not a run folder"), "{text}");

    let settings = std::fs::read_to_string(run.join("run.toml")).unwrap();
    std::fs::write(run.join("run.toml"), settings.replace("format = 1", "format = 99")).unwrap();
    let text = message(&run);
    assert!(text.contains("format 99") && text.contains("update leaklab"), "{text}");

    // Settings that belong to the weights cannot be changed afterwards, whichever command opens the run.
    for (key, from, to) in [("dataset", "\"digits\"", "\"mnist\""), ("encoder", "\"signed\"", "\"unsigned\"")]
    {
        let edited = settings.replace(&format!("{key} = {from}"), &format!("{key} = {to}"));
        std::fs::write(run.join("run.toml"), edited).unwrap();
        let text = message(&run);
        assert!(text.contains(&format!("they were trained with {key} = {from}, not {to}")), "{text}");
    }
    let added = settings.replace("v_th = 1.0", "readout_divisor = \"memory\"\nv_th = 1.0");
    std::fs::write(run.join("run.toml"), added).unwrap();
    let text = message(&run);
    let expected = "they were trained with the default readout_divisor, not readout_divisor = \"memory\"";
    assert!(text.contains(expected), "{text}");

    std::fs::write(run.join("run.toml"), &settings).unwrap();
    std::fs::create_dir_all(run.join("analysis")).unwrap();
    std::fs::write(run.join("analysis/activity.json"), "{\"format\":7}").unwrap();
    let text = compare_folders(std::slice::from_ref(&run), None, &folder.path().join("out"))
        .unwrap_err()
        .to_string();
    assert!(text.contains("activity.json") && text.contains("format 7"), "{text}");
    // Analysing again replaces the table, and one run is compared with empty intervals and a note.
    all(&run, 1);
    let tables = compare_folders(std::slice::from_ref(&run), None, &folder.path().join("out")).unwrap();
    assert!(rows::<Table1Row>(&tables).iter().all(|row| row.standard_error.is_none()));
    assert!(find(&tables, "table1").notes.iter().any(|note| note.contains("at least 2 runs")));
    assert!(rows::<ClaimRow>(&tables).iter().all(|row| row.verdict == Verdict::NotEnoughEvidence));

    for file in ["checkpoint.safetensors", "checkpoint.previous.safetensors"] {
        let _ = std::fs::remove_file(run.join(file));
    }
    let text = message(&run);
    assert!(text.contains("nothing has been trained yet"), "{text}");
}
