//! The published results: their tables and pages follow from the records that are published with them.

use leaklab_record::tables::ClaimRow;
use leaklab_record::{Case, ClaimId, Rows, StudyFolder, Verdict};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of results, which a packaged crate does not contain.
fn folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(std::env::var_os("CI").is_none(), "no {}, and CI skips nothing", folder.display());
    eprintln!("SKIPPED: published results: no {}", folder.display());
    None
}

fn results() -> Vec<PathBuf> {
    let Some(folder) = folder() else { return Vec::new() };
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut studies: Vec<PathBuf> = entries.filter(|path| path.join("records.tar.gz").is_file()).collect();
    studies.sort();
    studies
}

/// Unpacks the records of a study.
fn unpack(study: &Path, into: &Path) -> PathBuf {
    let done = Command::new("tar")
        .arg("-xzf")
        .arg(study.join("records.tar.gz"))
        .arg("-C")
        .arg(into)
        .status()
        .unwrap();
    assert!(done.success());
    into.join(study.file_name().unwrap())
}

fn leaklab(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leaklab"));
    command.args(arguments);
    command
}

fn succeed(command: &mut Command) {
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// The text and tables of a page, without its figures, scripts and styles.
fn words(page: &str) -> String {
    let mut text = String::new();
    let mut rest = page;
    while let Some(start) = ["<script", "<style", "<svg"].iter().filter_map(|tag| rest.find(tag)).min() {
        let tag = if rest[start..].starts_with("<script") {
            "</script>"
        } else if rest[start..].starts_with("<style") {
            "</style>"
        } else {
            "</svg>"
        };
        text.push_str(&rest[..start]);
        rest = rest[start..].find(tag).map_or("", |end| &rest[start + end + tag.len()..]);
    }
    text + rest
}

#[test]
fn published_tables_follow_from_the_published_records() {
    assert!(folder().is_none() || !results().is_empty());
    for study in results() {
        let work = tempfile::tempdir().unwrap();
        let folder = unpack(&study, work.path());
        let out = work.path().join("compared");
        succeed(leaklab(&["analyse", "compare"]).arg(&folder).arg("--out").arg(&out));
        let mut tables = 0;
        for made in fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()) {
            let name = made.file_name().unwrap().to_owned();
            if made.extension().is_none_or(|ending| ending != "csv") {
                continue;
            }
            let published = fs::read_to_string(study.join("tables").join(&name)).unwrap();
            assert_eq!(fs::read_to_string(&made).unwrap(), published, "{study:?} {name:?}");
            tables += 1;
        }
        assert!(tables >= 10, "{study:?}: {tables}");
    }
}

/// Controls whose pages are not published, for their size; `leaklab report` makes them from the records.
const WITHOUT_PAGE: [&str; 3] = ["fashion-mnist-exact", "fashion-mnist-low-rate", "fashion-mnist-where"];

fn with_page() -> impl Iterator<Item = PathBuf> {
    results().into_iter().filter(|study| !WITHOUT_PAGE.iter().any(|name| study.ends_with(name)))
}

#[test]
fn published_pages_follow_from_the_published_records() {
    for study in with_page() {
        let work = tempfile::tempdir().unwrap();
        let folder = unpack(&study, work.path());
        let page = work.path().join("page.html");
        succeed(leaklab(&["report"]).arg(&folder).arg("--out").arg(&page));
        let (made, published) =
            [page, study.join("report.html")].map(|path| words(&fs::read_to_string(path).unwrap())).into();
        let differs = made.lines().zip(published.lines()).find(|(made, published)| made != published);
        assert!(
            made == published,
            "{study:?}: the page differs: {differs:?}; write it again with leaklab report"
        );
    }
}

/// The lines of a file of JSON.
fn lines(path: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The records of all epochs of a run, without times.
fn epochs(run: &Path) -> Vec<serde_json::Value> {
    let mut epochs = lines(&run.join("metrics.jsonl"));
    for epoch in &mut epochs {
        for time in ["seconds", "images_per_second"] {
            epoch.as_object_mut().unwrap().remove(time).unwrap();
        }
    }
    epochs
}

/// Its numbers and its weights are the same with AVX2 and AVX-512. Portable code has no fused multiply-adds,
/// so that the networks differ slightly. `tools/repeat_run.py` does this with any run of any study.
#[test]
fn a_published_run_can_be_repeated() {
    let Some(folder) = folder() else { return };
    let work = tempfile::tempdir().unwrap();
    let published = unpack(&folder.join("digits"), work.path()).join("runs/tau-100_seed-1");
    let again = work.path().join("again");
    succeed(leaklab(&["train", "--quiet"]).arg(published.join("run.toml")).arg("--out").arg(&again));
    let (made, expected) = (epochs(&again), epochs(&published));
    if lines(&again.join("machines.jsonl"))[0]["isa"] == "portable" {
        assert_eq!(made.len(), expected.len());
        for (made, expected) in made.iter().zip(&expected) {
            let differs =
                made["test_accuracy"].as_f64().unwrap() - expected["test_accuracy"].as_f64().unwrap();
            assert!(differs.abs() < 0.02, "{made} {expected}");
        }
        return;
    }
    assert_eq!(made, expected);
    let exported = work.path().join("exported");
    succeed(leaklab(&["export"]).arg(&again).arg("--safetensors").arg(&exported));
    let [made, expected] = [exported, folder.join("networks/digits-tau-100")]
        .map(|model| fs::read(model.join("model.safetensors")).unwrap());
    assert!(made == expected, "the weights are not those of networks/digits-tau-100");
}

#[test]
fn what_is_published_is_small() {
    fn size(path: &Path) -> u64 {
        let inside = || fs::read_dir(path).unwrap().map(|entry| size(&entry.unwrap().path())).sum();
        if path.is_dir() { inside() } else { path.metadata().unwrap().len() }
    }
    let Some(folder) = folder() else { return };
    assert!(size(&folder) < 25_000_000, "{}", size(&folder));
    for study in with_page() {
        assert!(size(&study.join("report.html")) < 3_000_000, "{study:?}");
    }
}

/// The result for a claim: the verdict, and our value with its interval.
fn cell(row: &ClaimRow) -> String {
    let (times, digits, unit) = row.unit.in_text();
    let verdict = match row.case {
        // The interval is that of most and least leak, and does not explain this verdict.
        Case::NotSteady => format!("{} (not steady)", row.verdict),
        _ => row.verdict.to_string(),
    };
    let number = |value: f64| {
        let text = format!("{:.digits$}", times * value);
        let zero = text.chars().all(|c| matches!(c, '-' | '0' | '.'));
        if zero { text.replace('-', "") } else { text.replace('-', "−") }
    };
    match (row.ours, row.low, row.high) {
        (Some(ours), Some(low), Some(high)) => {
            format!("{verdict}: {} [{}, {}]{unit}", number(ours), number(low), number(high))
        }
        _ => verdict,
    }
}

/// Claims whose parts differ between studies, and share one row: claim 5 has one for each layer, and the part
/// of claim 6 on noise one for each tau.
fn shared(row: &ClaimRow) -> Option<&'static str> {
    match row.claim {
        ClaimId::WeightedInput => Some("A layer receives a larger weighted input with more leak."),
        ClaimId::CriticalFrequency if row.part.starts_with("noise") => {
            Some("The critical frequency rises with noise, for each tau.")
        }
        _ => None,
    }
}

/// Claims that have a separate row in the summary.
fn is_shown(row: &ClaimRow) -> bool {
    match row.claim {
        ClaimId::WeightedInput => false,
        ClaimId::CriticalFrequency => row.part.starts_with("leak") && row.part.ends_with("defined"),
        ClaimId::SlowNoise => row.part.is_empty(),
        _ => true,
    }
}

/// The table of all claims and studies, as in the summary.
fn summary() -> String {
    let mut heads = vec!["claim".to_owned(), "statement".to_owned()];
    let mut lines: Vec<(ClaimId, String, Vec<String>)> = Vec::new();
    let order = ["digits", "fashion-mnist", "svhn-small", "cifar10-small"];
    let mut studies = results();
    let place = |study: &PathBuf| order.iter().position(|name| study.ends_with(name)).unwrap_or(order.len());
    studies.retain(|study| place(study) < order.len());
    studies.sort_by_key(place);
    for (number, study) in studies.iter().enumerate() {
        heads.push(study.file_name().unwrap().to_string_lossy().into_owned());
        let work = tempfile::tempdir().unwrap();
        let compare = StudyFolder::at(unpack(study, work.path())).compare();
        let read = |name: &str| Rows::<ClaimRow>::read_named(&compare, name).unwrap().unwrap().rows;
        let rows: Vec<ClaimRow> = read("claims").into_iter().chain(read("why_claims")).collect();
        let mut add = |claim: ClaimId, statement: &str, cell: String| {
            let found = lines.iter().position(|line| line.0 == claim && line.1 == statement);
            let at = found.unwrap_or_else(|| {
                lines.push((claim, statement.to_owned(), vec!["not measured".to_owned(); studies.len()]));
                lines.len() - 1
            });
            lines[at].2[number] = cell;
        };
        for row in rows.iter().filter(|row| is_shown(row)) {
            add(row.claim, row.statement.split(" (tau ").next().unwrap_or_default(), cell(row));
        }
        let mut several: Vec<(ClaimId, &str, Vec<Verdict>)> = Vec::new();
        for (row, statement) in rows.iter().filter_map(|row| shared(row).zip(Some(row)).map(|(s, r)| (r, s)))
        {
            match several.iter_mut().find(|known| known.1 == statement) {
                Some(known) => known.2.push(row.verdict),
                None => several.push((row.claim, statement, vec![row.verdict])),
            }
        }
        for (claim, statement, verdicts) in several {
            let counts = Verdict::ALL.iter().filter_map(|verdict| {
                let count = verdicts.iter().filter(|own| *own == verdict).count();
                (count > 0).then(|| format!("{verdict} in {count} of {}", verdicts.len()))
            });
            add(claim, statement, counts.collect::<Vec<_>>().join(", "));
        }
    }
    lines.sort_by_key(|line| ClaimId::ALL.iter().position(|id| *id == line.0));
    let mut text = format!("| {} |\n|{}\n", heads.join(" | "), " --- |".repeat(heads.len()));
    for (claim, statement, cells) in lines {
        text += &format!("| {claim} | {statement} | {} |\n", cells.join(" | "));
    }
    text
}

#[test]
fn the_summary_agrees_with_the_tables() {
    let Some(folder) = folder() else { return };
    let text = fs::read_to_string(folder.join("README.md")).unwrap();
    let table = summary();
    assert!(text.contains(&table), "docs/results/README.md should contain this table:\n{table}");
}

/// A number as it is printed: its value, and half a unit of its last digit. The zeros at the end of a number
/// with a thousands separator are not counted as digits: 10,600 is between 10,550 and 10,650.
fn printed(text: &str) -> Option<(f64, f64)> {
    let plain = text.replace('−', "-").replace(',', "");
    let digits = match plain.split_once('.') {
        Some((_, decimals)) => -(decimals.len() as i32),
        None if text.contains(',') => (plain.len() - plain.trim_end_matches('0').len()) as i32,
        None => 0,
    };
    Some((plain.parse().ok()?, 0.5 * 10f64.powi(digits)))
}

/// Every "mean [low, high]" of a text, with the line that it ends.
fn intervals(text: &str) -> Vec<(String, [(f64, f64); 3])> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices(" [") {
        let Some((inside, _)) = text[at + 2..].split_once(']') else { continue };
        let mean = text[..at].trim_end_matches(" %").rsplit(char::is_whitespace).next().unwrap_or_default();
        let ends = inside.split_whitespace().collect::<Vec<_>>();
        let [low, high] = ends[..] else { continue };
        if let (Some(mean), Some(low), Some(high)) =
            (printed(mean), low.strip_suffix(',').and_then(printed), printed(high))
        {
            let line = text[..at].lines().last().unwrap_or_default();
            found.push((format!("{line} [{inside}]"), [mean, low, high]));
        }
    }
    found
}

/// Every value with an interval in the tables of all studies.
fn measured() -> Vec<[f64; 3]> {
    let mut found = Vec::new();
    for study in results() {
        let work = tempfile::tempdir().unwrap();
        let compare = StudyFolder::at(unpack(&study, work.path())).compare();
        for table in fs::read_dir(compare).unwrap().map(|entry| entry.unwrap().path()) {
            let table: serde_json::Value = serde_json::from_slice(&fs::read(table).unwrap()).unwrap();
            let columns = table["columns"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap());
            let columns: Vec<&str> = columns.collect();
            for (low, name) in columns.iter().enumerate().filter(|(_, name)| name.ends_with("low")) {
                let prefix = name.strip_suffix("low").unwrap();
                let high = columns.iter().position(|other| *other == format!("{prefix}high")).unwrap();
                for row in table["rows"].as_array().unwrap() {
                    let numbers = [low - 1, low, high].map(|column| row[column].as_f64());
                    if let [Some(mean), Some(low), Some(high)] = numbers {
                        found.push([mean, low, high]);
                    }
                }
            }
        }
    }
    found
}

/// The text gives fractions as points or per cent, ratios as they are or as a change in per cent, and a loss
/// as a positive number where it says that something is lost.
#[test]
fn every_interval_of_the_results_is_in_a_table() {
    let Some(folder) = folder() else { return };
    let text = fs::read_to_string(folder.join("README.md")).unwrap();
    let (given, measured) = (intervals(&text), measured());
    assert!(given.len() > 100, "{}", given.len());
    let scales: [(f64, f64); 4] = [(1.0, 0.0), (100.0, 0.0), (-100.0, 0.0), (100.0, -100.0)];
    for (line, printed) in given {
        let agrees = |row: &[f64; 3]| {
            scales.iter().any(|(times, plus)| {
                let mut scaled = row.map(|value| times * value + plus);
                scaled[1..].sort_by(f64::total_cmp);
                printed.iter().zip(scaled).all(|((value, half), exact)| (value - exact).abs() <= half + 1e-9)
            })
        };
        assert!(measured.iter().any(agrees), "no table has this interval: {line}");
    }
}

/// The table of studies names the machine and the minutes that the records contain.
#[test]
fn machines_and_minutes_are_those_of_the_records() {
    let Some(folder) = folder() else { return };
    let text = fs::read_to_string(folder.join("README.md")).unwrap();
    let rows: Vec<&str> = text.lines().filter(|line| line.ends_with(" minutes |")).collect();
    assert_eq!(rows.len(), 4, "{rows:?}");
    for row in rows {
        let name = row.trim_start_matches("| [").split(']').next().unwrap();
        let work = tempfile::tempdir().unwrap();
        let study = unpack(&folder.join(name), work.path());
        let (mut seconds, mut machines) = (0.0, BTreeSet::new());
        for run in fs::read_dir(study.join("runs")).unwrap().map(|entry| entry.unwrap().path()) {
            let of = |epoch: &serde_json::Value| epoch["seconds"].as_f64().unwrap();
            seconds += lines(&run.join("metrics.jsonl")).iter().map(of).sum::<f64>();
            for machine in lines(&run.join("machines.jsonl")) {
                machines
                    .insert(machine["cpu"].as_str().unwrap().split(['(', ' ']).next().unwrap().to_owned());
            }
        }
        let stated = row.trim_end_matches(" |").rsplit("| ").next().unwrap();
        let minutes = format!("; {:.0} minutes", seconds / 60.0);
        let agrees = machines.iter().all(|machine| stated.contains(machine)) && stated.ends_with(&minutes);
        assert!(agrees, "{name}: {stated}, but the records have {machines:?}{minutes}");
    }
}
