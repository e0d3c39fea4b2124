//! `leaklab study`: plan, progress and page; the work is in `leaklab_lab::study`.

mod object;
mod progress;

use crate::interrupt::Interrupt;
use crate::{Outcome, flags, usage};
use leaklab_engine::{Isa, Tau};
use leaklab_lab::config::StudyConfig;
use leaklab_lab::study::{self, Event, Options, Plan, Stage, StudyError};
use leaklab_lab::train::Control;
use leaklab_record::{Machine, StudyFolder};
use progress::Progress;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Seconds after which a page that is watched reads itself again, and at which it is written anew.
const REFRESH_SECONDS: u32 = 5;

/// Train every condition and seed, measure, compare, and write the page that answers the question.
#[derive(clap::Args)]
pub struct Arguments {
    /// A study file, or the name of a built-in study: digits, digits-where, digits-further, digits-events,
    /// fashion-mnist, cifar10-small, cifar10, svhn.
    #[arg(value_name = "FILE|NAME", default_value = "digits")]
    study: String,
    /// Folder of the study; leaklab-study/NAME if not said. A study that is there goes on.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Membrane time constants in place of the study's own conditions, such as 5,10,30,100,300,inf.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = flags::tau, allow_negative_numbers = true)]
    tau: Vec<Tau>,
    /// Any setting, such as --set epochs=4 (may be repeated).
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Folder that holds the data sets.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Print the plan and stop.
    #[arg(long)]
    dry_run: bool,
    /// Keep the page up to date while the study runs; open it, and it refreshes itself.
    #[arg(long)]
    watch: bool,
    /// Threads to use; no result depends on it.
    #[arg(long, value_name = "N", value_parser = flags::threads, allow_negative_numbers = true)]
    threads: Option<usize>,
    #[arg(long, value_name = "SET", help = flags::ISA)]
    isa: Option<Isa>,
    /// Minutes between checkpoints within an epoch.
    #[arg(long, value_name = "N", default_value_t = 10.0, value_parser = flags::minutes, allow_negative_numbers = true)]
    checkpoint_minutes: f64,
    /// Print the page's path only.
    #[arg(long, conflicts_with = "json")]
    quiet: bool,
    /// Print one JSON object at the end: the page's path, the runs, the verdicts; with --dry-run, the plan.
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(arguments: Arguments) -> Outcome {
    let config = StudyConfig::load(&arguments.study, &assignments(&arguments)).map_err(usage)?;
    let name = config.name.replace(['/', '\\'], "-");
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from("leaklab-study").join(name));
    let folder = StudyFolder::at(&out);
    let all = || std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let threads = arguments.threads.unwrap_or_else(all);
    let plan = Plan::make(&config, &folder, threads).map_err(|error| match error {
        StudyError::Other { .. } => usage(error),
        error => error.into(),
    })?;
    match (arguments.json, arguments.dry_run) {
        (true, true) => println!("{}", object::plan(&plan, &folder)),
        (true, false) => {}
        (false, _) if arguments.quiet && !arguments.dry_run => {}
        (false, _) => print_plan(&plan, &folder),
    }
    if arguments.dry_run {
        return Ok(());
    }
    let begun = Instant::now();
    let silent = arguments.quiet || arguments.json;
    let isa = arguments.isa.unwrap_or_else(Isa::best);
    let options =
        Options { command: command(&arguments), checkpoint_minutes: arguments.checkpoint_minutes, isa };
    let interrupt = Interrupt::listen("finishing the batch and writing a checkpoint");
    let refresh = arguments.watch.then_some(REFRESH_SECONDS);
    let written = Mutex::new(None::<Instant>);
    // A page that cannot be written while the study runs is no reason to stop it: the last one must be.
    let write_page = |soon: bool| {
        let mut written = written.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let rested =
            written.is_none_or(|last| last.elapsed() > Duration::from_secs(u64::from(REFRESH_SECONDS)));
        if soon || rested {
            let _ = leaklab_report::study::write(folder.path(), refresh);
            *written = Some(Instant::now());
        }
    };
    let progress = Progress::new(&plan, silent);
    let watcher = |event: &Event| {
        progress.show(event);
        match event {
            Event::Theory => {
                write_page(true);
                if arguments.watch {
                    progress.line(&format!("watch {}", folder.page().display()));
                }
            }
            Event::Compared { .. } => write_page(true),
            Event::Run { stage: Stage::Training(leaklab_lab::train::Event::Epoch(_)), .. }
                if arguments.watch =>
            {
                write_page(false);
            }
            _ => {}
        }
        if interrupt.asked() { Control::Stop } else { Control::Continue }
    };
    let outcome = study::run(&plan, &folder, &options, &watcher);
    progress.end();
    match outcome {
        Ok(()) => {}
        Err(error) => {
            // Whatever is there is shown, without a refresh that would wait for nothing.
            let _ = leaklab_report::study::write(folder.path(), None);
            return Err(error.into());
        }
    }
    let page = leaklab_report::study::write(folder.path(), None)?;
    if arguments.json {
        let mut object = object::done(&plan, &folder, &page, begun.elapsed())?;
        object["machine"] = serde_json::json!(Machine::here(isa));
        println!("{object}");
        return Ok(());
    }
    if !silent {
        println!("Open the page in a browser:");
    }
    println!("{}", page.display());
    Ok(())
}

/// The flags that are settings.
fn assignments(arguments: &Arguments) -> Vec<String> {
    let mut all = arguments.settings.clone();
    if !arguments.tau.is_empty() {
        all.push(format!("tau=[{}]", taus(&arguments.tau).join(", ")));
    }
    if let Some(folder) = &arguments.data_dir {
        all.push(format!("data_dir={}", toml_text(&folder.to_string_lossy())));
    }
    all
}

/// Membrane time constants as text.
fn taus(values: &[Tau]) -> Vec<String> {
    values.iter().map(Tau::to_string).collect()
}

/// Text as a TOML string.
fn toml_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The command that does the same study: everything that decides its results.
fn command(arguments: &Arguments) -> String {
    let mut words = vec!["leaklab".to_owned(), "study".to_owned(), arguments.study.clone()];
    if !arguments.tau.is_empty() {
        words.extend(["--tau".to_owned(), taus(&arguments.tau).join(",")]);
    }
    if let Some(isa) = arguments.isa {
        words.extend(["--isa".to_owned(), isa.to_string()]);
    }
    for setting in &arguments.settings {
        words.extend(["--set".to_owned(), setting.clone()]);
    }
    let plain = |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || "-_=.,/:+@".contains(c));
    let quoted = words
        .iter()
        .map(|word| if plain(word) { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) });
    quoted.collect::<Vec<_>>().join(" ")
}

fn print_plan(plan: &Plan, folder: &StudyFolder) {
    let config = &plan.config;
    let base = &config.base;
    let seeds: Vec<String> = config.seeds.iter().map(u64::to_string).collect();
    let trained = plan.runs.iter().filter(|run| run.epochs >= run.planned).count();
    let begun = plan.runs.iter().filter(|run| run.epochs > 0).count() - trained;
    println!(
        "Study {}: {} runs: {}; seeds {}",
        config.name,
        plan.runs.len(),
        config.conditions.iter().map(|condition| condition.name.as_str()).collect::<Vec<_>>().join(", "),
        seeds.join(", ")
    );
    println!(
        "  each    {} epoch{} of {} images of {}, {} test images, {} time steps",
        base.epochs,
        if base.epochs == 1 { "" } else { "s" },
        plan.train_images,
        base.dataset,
        plan.test_images,
        base.time_steps
    );
    println!("  network {}", base.network);
    if trained + begun > 0 {
        println!("  so far  {trained} runs trained, {begun} begun");
    }
    let at_a_time = match plan.lanes() {
        1 => String::new(),
        lanes => format!(", {lanes} runs at a time"),
    };
    println!(
        "  time    about {} on {} thread{}{at_a_time} (from a short measurement)",
        progress::duration(plan.seconds()),
        plan.threads,
        if plan.threads == 1 { "" } else { "s" }
    );
    println!("  disk    about {} MB in {}", (plan.bytes / 1_000_000).max(1), folder.path().display());
}
