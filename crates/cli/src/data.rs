//! `leaklab data`.

use crate::output::{self, FileKind, path_text};
use crate::{Outcome, flags, usage};
use indicatif::{ProgressBar, ProgressStyle};
use leaklab_engine::encode::{Encoder, Encoding};
use leaklab_engine::noise::Severities;
use leaklab_lab::data::fetch::{self, Event};
use leaklab_lab::data::{
    Binning, DATASETS, DataError, Info, Normalisation, Normaliser, Presentation, Recordings, Source,
    event_sheet, load_complete, location, sheet, table, verify,
};
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// List, fetch, verify and show data sets.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// List the data sets, and where they are or how to get them.
    List {
        /// Folder with the data sets; LEAKLAB_DATA or the cache folder if not given.
        #[arg(long, value_name = "DIR")]
        data_dir: Option<PathBuf>,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Download a data set from its publisher or a mirror.
    Fetch {
        /// Data set, see `leaklab data list`.
        name: String,
        /// Folder to store it in; LEAKLAB_DATA or the cache folder if not given.
        #[arg(long, value_name = "DIR")]
        data_dir: Option<PathBuf>,
        /// Print one JSON object per event.
        #[arg(long)]
        json: bool,
    },
    /// Check that a data set is the published one.
    Verify {
        /// Data set, see `leaklab data list`.
        name: String,
        /// Folder that contains it; LEAKLAB_DATA or the cache folder if not given.
        #[arg(long, value_name = "DIR")]
        data_dir: Option<PathBuf>,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Draw a contact sheet: labelled images as pixels and as the network sees them, or recordings of an
    /// event camera summed over time and as a raster of column against time.
    Show(Show),
}

#[derive(clap::Args)]
struct Show {
    /// Data set, see `leaklab data list`.
    name: String,
    /// The PNG file to write.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    noise: flags::NoiseFlags,
    /// Time steps.
    #[arg(
        long,
        default_value_t = 100,
        value_name = "STEPS",
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    time_steps: u16,
    /// Images of each class.
    #[arg(
        long,
        default_value_t = 2,
        value_name = "IMAGES",
        value_parser = clap::value_parser!(u16).range(1..=100)
    )]
    per_class: u16,
    /// Encoder of images: signed (default), unsigned.
    #[arg(long)]
    encoder: Option<String>,
    /// Normalisation of images: per-image (default), per-channel.
    #[arg(long)]
    normalise: Option<String>,
    /// Microseconds per step of a recording; if not given, each recording is divided into equal steps.
    #[arg(long, value_name = "US", value_parser = clap::value_parser!(u64).range(1..))]
    step_us: Option<u64>,
    /// Merge squares of this many pixels a side of recordings into one pixel.
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u64).range(1..=64))]
    downsample: Option<u64>,
    /// Show training images instead of test images.
    #[arg(long)]
    train: bool,
    /// Seed of all random numbers.
    #[arg(long, default_value_t = 1, allow_negative_numbers = true)]
    seed: u64,
    /// Folder with the data set; LEAKLAB_DATA or the cache folder if not given.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(arguments: Arguments) -> Outcome {
    match arguments.verb {
        Verb::List { data_dir, json } => list(data_dir.as_deref(), json),
        Verb::Fetch { name, data_dir, json } => fetch(find(&name)?, data_dir.as_deref(), json),
        Verb::Verify { name, data_dir, json } => verify(&name, data_dir.as_deref(), json),
        Verb::Show(arguments) => show(&arguments),
    }
}

/// The data set with a name; an unknown name is wrong usage.
fn find(name: &str) -> Result<&'static Info, Box<dyn std::error::Error>> {
    table::find(name).map_err(usage)
}

/// Whether a data set is present, and its place or how to get it.
fn state(info: &Info, folder: &Path) -> (bool, String) {
    match info.source {
        Source::Embedded => (true, "embedded in the program".to_owned()),
        Source::Own => (false, "give its folder with --data-dir".to_owned()),
        Source::ByHand => {
            let places = [folder.join(info.name), folder.to_owned()];
            let there = |place: &&PathBuf| place.join("Train").is_dir() || place.join("Train.zip").is_file();
            match places.iter().find(there) {
                Some(place) => (true, place.display().to_string()),
                None => (false, format!("download it from {}", info.homepage)),
            }
        }
        Source::Files(_) => match info.place(folder) {
            Some(place) => (true, place.display().to_string()),
            None => (false, format!("leaklab data fetch {}", info.name)),
        },
    }
}

fn list(data_dir: Option<&Path>, json: bool) -> Outcome {
    let folder = location::folder(data_dir)?;
    let rows = DATASETS.iter().map(|info| (info, state(info, &folder)));
    if json {
        let folder = path_text(&folder)?;
        let rows: Vec<Value> = rows
            .map(|(info, (here, place))| {
                json!({
                    "name": info.name, "title": info.title, "channels": info.shape.channels,
                    "height": info.shape.height, "width": info.shape.width, "classes": info.class_names,
                    "train": info.train, "test": info.test, "licence": info.licence,
                    "homepage": info.homepage,
                    "download_bytes": info.files().iter().map(|file| file.size).sum::<u64>(),
                    "present": here, "place": place,
                })
            })
            .collect();
        println!("{}", json!({ "folder": folder, "datasets": rows }));
        return Ok(());
    }
    println!(
        "{:13}  {:7}  {:7}  {:14}  {:8}  {:24}  where",
        "name", "size", "classes", "train + test", "fetch", "licence"
    );
    for (info, (_, place)) in rows {
        // Recordings and arrays of the user have the size that their file states.
        let size = if info.shape.pixels() == 1 { "any".into() } else { info.shape.to_string() };
        let bytes = info.files().iter().map(|file| file.size).sum::<u64>();
        let (classes, images) = match info.train {
            0 => ("any".to_owned(), "any".to_owned()),
            _ => (info.class_names.len().to_string(), format!("{} + {}", info.train, info.test)),
        };
        let fetch = if bytes > 0 { format!("{} MB", (bytes + 500_000) / 1_000_000) } else { "-".to_owned() };
        println!(
            "{:13}  {size:7}  {classes:7}  {images:14}  {fetch:8}  {:24}  {place}",
            info.name, info.licence
        );
    }
    println!(
        "\nData sets are searched for in {} (use --data-dir or {} to change this).",
        folder.display(),
        location::VARIABLE
    );
    Ok(())
}

fn fetch(info: &Info, data_dir: Option<&Path>, json: bool) -> Outcome {
    match info.source {
        Source::Files(_) => {}
        Source::Embedded => {
            match json {
                true => println!("{}", json!({ "event": "embedded", "name": info.name })),
                false => println!("{} is embedded in the program; there is nothing to fetch.", info.name),
            }
            return Ok(());
        }
        Source::Own => {
            return Err(usage(format!(
                "'{}' is your own data, so there is nothing to fetch; give its folder with --data-dir when \
                 you use it",
                info.name
            )));
        }
        Source::ByHand => {
            return Err(usage(format!(
                "'{}' cannot be downloaded by a program; get Train.zip and Test.zip from {} and give their \
                 folder with --data-dir",
                info.name, info.homepage
            )));
        }
    }
    let folder = location::folder(data_dir)?;
    if json {
        path_text(&folder)?;
    }
    let mut bar: Option<ProgressBar> = None;
    let terminal = std::io::stderr().is_terminal();
    let mut last_tenth = 0;
    let mut size_now = 1;
    fetch::fetch(info, &folder, &mut |event| {
        if json {
            if let Some(object) = object(&event) {
                println!("{object}");
            }
            return;
        }
        match event {
            Event::Present { path } => println!("{}: already present", path.display()),
            Event::Start { address, have, size } => {
                let from = if have > 0 { format!(", resumed at byte {have}") } else { String::new() };
                println!("{address} ({size} bytes{from})");
                (size_now, last_tenth) = (size.max(1), 10 * have / size.max(1));
                bar = terminal.then(|| {
                    let style = "{bar:40} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
                    let style = ProgressStyle::with_template(style).unwrap_or(ProgressStyle::default_bar());
                    ProgressBar::new(size).with_style(style).with_position(have)
                });
            }
            Event::Progress { have } => match &bar {
                Some(bar) => bar.set_position(have),
                None if 10 * have / size_now > last_tenth => {
                    last_tenth = 10 * have / size_now;
                    println!("  {}0 %", last_tenth);
                }
                None => {}
            },
            Event::Skipped { address, reason } => {
                bar.take().inspect(ProgressBar::abandon);
                eprintln!("warning: {address} skipped: {reason}");
            }
            Event::Unpack { path } => println!("unpacking to {}", path.display()),
            Event::Done { path } => {
                bar.take().inspect(ProgressBar::finish_and_clear);
                println!("{}: complete", path.display());
            }
        }
    })?;
    Ok(())
}

/// An event as JSON; `None` for progress.
fn object(event: &Event) -> Option<Value> {
    Some(match event {
        Event::Present { path } => json!({ "event": "present", "path": path }),
        Event::Start { address, have, size } => {
            json!({ "event": "start", "address": address, "have": have, "size": size })
        }
        Event::Progress { .. } => return None,
        Event::Skipped { address, reason } => {
            json!({ "event": "skipped", "address": address, "reason": reason })
        }
        Event::Unpack { path } => json!({ "event": "unpack", "path": path }),
        Event::Done { path } => json!({ "event": "done", "path": path }),
    })
}

fn verify(name: &str, data_dir: Option<&Path>, json: bool) -> Outcome {
    let info = find(name)?;
    let folder = match (info.source, data_dir) {
        (Source::Own, None) => return Err(usage(format!("give the folder of '{name}' with --data-dir"))),
        (Source::Own, Some(folder)) => folder.to_owned(),
        _ => location::folder(data_dir)?,
    };
    let (dataset, findings) = verify::verify(info, name, &folder)?;
    let wrong = findings.iter().filter(|finding| finding.right() == Some(false)).count();
    let (train, test) =
        (dataset.train.class_counts(dataset.classes), dataset.test.class_counts(dataset.classes));
    let means = dataset.train.channel_means(dataset.shape);
    let events = [&dataset.train, &dataset.test].map(|split| split.recordings().map(Recordings::events));
    if json {
        let rows: Vec<Value> = findings
            .iter()
            .map(|f| json!({ "what": f.what, "found": f.found, "expected": f.expected, "right": f.right() }))
            .collect();
        let classes = &dataset.class_names;
        // Unknown if nothing could be compared.
        let compared = findings.iter().any(|finding| finding.expected.is_some());
        let right = compared.then_some(wrong == 0);
        println!(
            "{}",
            json!({ "name": name, "right": right, "findings": rows, "classes": classes,
            "train_counts": train, "test_counts": test, "train_channel_means": means,
            "train_events": events[0], "test_events": events[1] })
        );
    } else {
        for finding in &findings {
            let verdict = match &finding.expected {
                None => "(nothing published to compare with)".to_owned(),
                Some(expected) if *expected == finding.found => "right".to_owned(),
                Some(expected) => format!("WRONG, it should be {expected}"),
            };
            println!("{}: {} {verdict}", finding.what, finding.found);
        }
        println!("images per class: train {train:?}, test {test:?}");
        match events {
            [Some(train), Some(test)] => println!("events: train {train}, test {test}"),
            _ => println!("channel means of the training images: {means:.8?}"),
        }
    }
    match wrong {
        0 => Ok(()),
        _ => Err(format!("data set '{name}' in {} is not the published one", folder.display()).into()),
    }
}

fn show(arguments: &Show) -> Outcome {
    let events = find(&arguments.name)?.has_events();
    output::file("--out", &arguments.out, FileKind::Png)?;
    if arguments.json {
        path_text(&arguments.out)?;
    }
    let of_images = arguments.encoder.is_some() || arguments.normalise.is_some();
    let of_events = arguments.step_us.is_some() || arguments.downsample.is_some();
    if (events && of_images) || (!events && of_events) {
        return Err(usage(
            "--encoder and --normalise are for images, --step-us and --downsample for recordings of events",
        ));
    }
    let encoder: Encoder = arguments.encoder.as_deref().unwrap_or("signed").parse().map_err(usage)?;
    let normalisation = arguments.normalise.as_deref().unwrap_or("per-image");
    let normalisation: Normalisation = normalisation.parse().map_err(|error: DataError| usage(error))?;
    let encoding = Encoding { encoder, ..Encoding::clean(arguments.time_steps.into()) };
    let noise = match arguments.noise.named().map_err(usage)? {
        Some((noise, scenario, severity)) => {
            Severities::default().setting(noise, scenario, severity).map_err(usage)?
        }
        None => None,
    };
    let binning = Binning {
        time_steps: arguments.time_steps.into(),
        step_us: arguments.step_us,
        downsample: arguments.downsample.unwrap_or(1) as usize,
    };
    let dataset = load_complete(&arguments.name, arguments.data_dir.as_deref(), &binning)?;
    let normaliser = Normaliser::new(normalisation, &dataset);
    let presentation = Presentation::new(&dataset, normaliser, encoding, arguments.seed);
    let presentation = presentation.noisy(noise).map_err(usage)?;
    let split = if arguments.train { &dataset.train } else { &dataset.test };
    let draw = if events { event_sheet::draw } else { sheet::draw };
    let sheet = draw(&dataset, split, &presentation, arguments.per_class.into());
    let bytes = sheet::png(&sheet)?;
    leaklab_record::atomic::write(&arguments.out, &bytes)
        .map_err(|e| format!("{}: {e}", arguments.out.display()))?;
    if arguments.json {
        println!("{}", json!({ "out": arguments.out, "width": sheet.width(), "height": sheet.height() }));
    } else {
        println!("{}: {}x{} pixels", arguments.out.display(), sheet.width(), sheet.height());
    }
    Ok(())
}
