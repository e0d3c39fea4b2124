//! The page of a study on recordings of an event camera, which are neither encoded nor made of pixels.

mod synthetic;

use leaklab_record::tables::AdviceRow;
use leaklab_record::{Noise, Readout, Rows, Scenario, Stimulus, Tau};
use leaklab_report::page::Section;
use leaklab_report::study::{page, records::Study};
use std::sync::LazyLock;
use synthetic::Synthetic;

/// A study, and one of its runs read as a study of one run.
fn read(made: &Synthetic) -> [Study; 2] {
    let folder = tempfile::tempdir().unwrap();
    made.write(folder.path());
    let run = folder.path().join("runs/tau-30_seed-1");
    [Study::read(folder.path()).unwrap(), Study::read(&run).unwrap()]
}

// Written and read once.
static IMAGES: LazyLock<[Study; 2]> = LazyLock::new(|| read(&Synthetic::default()));
static EVENTS: LazyLock<[Study; 2]> = LazyLock::new(|| read(&Synthetic::events()));

fn section(study: &Study, id: &str) -> Section {
    page(study).sections.into_iter().find(|section| section.id == id).unwrap_or_else(|| panic!("no {id}"))
}

/// The text of a section, including its captions.
fn words(section: &Section) -> String {
    let captions = section.figures.iter().map(|figure| figure.caption.as_str());
    std::iter::once(section.text.as_str()).chain(captions).chain([section.after.as_str()]).collect()
}

#[test]
fn recordings_are_not_called_encoded() {
    let ([images, _], [events, run]) = (&*IMAGES, &*EVENTS);
    assert!(!images.recorded && events.recorded && run.recorded);
    for (id, of_images, of_events) in [
        ("input", "encoder and noise draw new random numbers", "need not be flat"),
        ("robustness", "on the pixels before they become spikes", "on the spikes of a recording"),
        ("critical-frequency", "Where a curve falls with frequency,", "own spectrum need not be flat"),
        ("example", "encoded in the same input spikes", "The same test recording is shown"),
    ] {
        let [images, events] = [images, events].map(|study| words(&section(study, id)));
        assert!(images.contains(of_images) && !images.contains(of_events), "{id}: {images}");
        assert!(events.contains(of_events) && !events.contains(of_images), "{id}: {events}");
    }
    for id in ["input", "robustness", "tradeoff", "critical-frequency", "example"] {
        let found = section(events, id);
        assert!(!found.heading.contains("image") && !words(&found).contains("image"), "{id}");
    }
    assert!(section(run, "example").heading.starts_with("One recording"));
}

#[test]
fn the_trade_off_names_the_noises_of_the_study() {
    let text = |study: &Study| words(&section(study, "tradeoff"));
    let events = text(&EVENTS[0]);
    let of = "over severities 1 to 8 of background activity, loss of spikes and jitter of spike times.";
    assert!(events.contains(of) && !events.contains("not available yet"), "{events}");
    let mut study = IMAGES[0].clone();
    let of = "of Gaussian noise on pixels, Gaussian noise on spikes, impulse noise on pixels and impulse \
              noise on spikes.";
    assert!(text(&study).contains(of), "{}", text(&study));
    let rows = &mut study.compare.robustness.as_mut().unwrap().rows;
    rows.retain(|row| (row.noise, row.scenario) == (Noise::Impulse, Scenario::Pixel));
    let of = "over severities 1 to 8 of impulse noise on pixels.";
    assert!(text(&study).contains(of), "{}", text(&study));
}

#[test]
fn a_finished_study_without_noise_says_so() {
    let mut study = IMAGES[0].clone();
    (study.compare.robustness, study.compare.tradeoff) = (None, None);
    assert!(words(&section(&study, "tradeoff")).contains("not available yet"));
    study.settings.settings.insert("noise".to_owned(), toml::Value::Array(Vec::new()));
    for id in ["robustness", "tradeoff"] {
        let text = words(&section(&study, id));
        assert!(text.contains("The study tests no noise") && !text.contains("not available yet"), "{text}");
    }
}

#[test]
fn the_picture_of_a_recording_counts_both_polarities() {
    let mut study = EVENTS[1].clone();
    let image = study.runs[0].tables.image.as_mut().unwrap();
    image.rows.truncate(2);
    let second = image.rows[1].clone();
    image.rows.push(leaklab_record::tables::ImageRow { channel: 1, pixel: 0, ..second });
    (image.rows[0].pixel, image.rows[1].pixel) = (1, 3);
    let text = words(&section(&study, "example"));
    // The pixel with most spikes is white, although its second polarity is silent.
    assert!(text.contains("fill=\"rgb(85 85 85)\"") && text.contains("fill=\"rgb(255 255 255)\""), "{text}");
}

fn advice(stimulus: Stimulus) -> AdviceRow {
    AdviceRow {
        stimulus,
        budget: None,
        trained: Tau::INFINITE,
        hidden: Tau::INFINITE,
        readout: Readout::PLAIN,
        chosen_accuracy: 0.8,
        accuracy: 0.8,
        low: None,
        high: None,
        gain: 0.0,
        gain_low: None,
        gain_high: None,
        baseline_readout: None,
        gain_over_readout: None,
        gain_over_readout_low: None,
        gain_over_readout_high: None,
        synops: 3.3e6,
        synops_ratio: 1.5,
        spike_rate: 0.1,
        candidates: 8,
        seeds: 1,
        images: 100,
    }
}

#[test]
fn advice_has_the_gain_over_the_best_readout_without_leak() {
    let shown = |row: AdviceRow| {
        let mut study = IMAGES[0].clone();
        let mut table = Rows::new("Advice", "");
        table.rows.push(row);
        study.compare.why.advice = Some(table);
        words(&section(&study, "tradeoff"))
    };
    let row = advice(Stimulus::at("gaussian/pixel".parse().unwrap(), 5));
    assert!(!shown(row.clone()).contains("Small print"), "a table of an earlier version has no such gain");
    let text = shown(AdviceRow {
        baseline_readout: Some(Readout::Window { first: 51, last: 100 }),
        gain_over_readout: Some(0.031),
        gain_over_readout_low: Some(-0.004),
        gain_over_readout_high: Some(0.066),
        ..row
    });
    assert!(text.contains("+3.1 [−0.4, +6.6] over steps 51 to 100 only"), "{text}");
    assert!(text.contains("Small print in a cell is the gain over"), "{text}");
}

#[test]
fn advice_suggests_a_noise_that_recordings_can_have() {
    let command = |study: &Study, stimulus: Stimulus| {
        let mut study = study.clone();
        let mut table = Rows::new("Advice", "");
        table.rows.push(advice(stimulus));
        study.compare.why.advice = Some(table);
        let text = words(&section(&study, "tradeoff"));
        let rest = &text[text.find("leaklab advise STUDY").expect("a command")..];
        let options = rest[..rest.find("</code>").unwrap()].split("<span class=\"option\">");
        // No option is broken at the end of a line.
        options.map(|option| option.replace("</span>", "")).collect::<String>()
    };
    let jitter = Stimulus::at("jitter/channel".parse().unwrap(), 3);
    for (study, stimulus, expected) in [
        // Networks without leak need 2.2 million operations, so this budget can be met.
        (&EVENTS[0], jitter, "--noise jitter/channel --severity 3 --synops-budget 2200000"),
        (&EVENTS[0], Stimulus::Clean, "--noise background/channel --severity 5"),
        (&IMAGES[0], Stimulus::Clean, "--noise gaussian/pixel --severity 5"),
    ] {
        let command = command(study, stimulus);
        assert_eq!(command, format!("leaklab advise STUDY {expected}"));
    }
}
