//! `leaklab study`: plan, progress and page; the work is in `leaklab_lab::study`.

mod array;
mod object;
mod progress;
mod slurm;
mod status;

use crate::interrupt::Interrupt;
use crate::output::{self, path_text};
use crate::{Outcome, flags, stopped, usage};
use leaklab_engine::{Isa, Tau};
use leaklab_lab::config::{ConditionConfig, StudyConfig};
use leaklab_lab::study::{self, Event, Options, Plan, Stage, StudyError};
use leaklab_lab::train::Control;
use leaklab_record::text::counted;
use leaklab_record::{Machine, RecordError, StudyFolder};
use progress::Progress;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Seconds between two reloads of a watched page, and between two writes of it.
const REFRESH_SECONDS: u32 = 5;
/// The study if none is given.
const DEFAULT: &str = "digits";

/// Train every condition and seed, measure, compare, and write the page that answers the question.
#[derive(clap::Args)]
pub struct Arguments {
    /// A study file, or the name of a built-in study: digits, digits-where, digits-further, digits-events,
    /// fashion-mnist, cifar10-small, svhn-small, cifar10, svhn. If not given, the study that --out contains,
    /// or digits.
    #[arg(value_name = "FILE|NAME")]
    study: Option<String>,
    /// Folder of the study; if not given, leaklab-study/NAME. An existing study is continued.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Membrane time constants instead of the study's own conditions, such as 5,10,30,100,300,inf.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = flags::tau,
        allow_negative_numbers = true
    )]
    tau: Vec<Tau>,
    /// Any setting, such as --set epochs=4 (may be repeated).
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Folder with the data sets.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Print the plan and exit.
    #[arg(long)]
    dry_run: bool,
    /// Execute only run K of the plan, counted from 0, without the comparison: one task of a job array.
    #[arg(
        long,
        value_name = "K",
        conflicts_with_all = ["dry_run", "watch", "compare", "status"],
        allow_negative_numbers = true
    )]
    run: Option<usize>,
    /// Compare the runs that are done and write the page; start no run.
    #[arg(long, conflicts_with_all = ["dry_run", "watch", "status"])]
    compare: bool,
    /// Print what is done, running, failed and missing, and how long the rest will take; change nothing.
    #[arg(long, conflicts_with_all = ["dry_run", "watch"])]
    status: bool,
    #[command(flatten)]
    slurm: slurm::Flags,
    /// Keep the page up to date while the study runs; an open page reloads itself.
    #[arg(long)]
    watch: bool,
    /// Number of threads; results do not depend on it.
    #[arg(long, value_name = "N", value_parser = flags::threads, allow_negative_numbers = true)]
    threads: Option<usize>,
    #[arg(long, value_name = "SET", help = flags::ISA)]
    isa: Option<Isa>,
    /// Minutes between checkpoints within an epoch.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10.0,
        value_parser = flags::minutes,
        allow_negative_numbers = true
    )]
    checkpoint_minutes: f64,
    /// Print only the page's path.
    #[arg(long, conflicts_with = "json")]
    quiet: bool,
    /// Print one JSON object at the end: the page's path, the runs, the verdicts; with --dry-run, the plan.
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(arguments: Arguments) -> Outcome {
    let needs_study = arguments.status || arguments.compare || arguments.run.is_some();
    if let (true, None, Some(out)) = (needs_study, &arguments.study, &arguments.out)
        && !StudyFolder::at(out).exists()
    {
        let reason = "there is no study here; correct the folder, or give the study's file or name";
        return Err(usage(format!("{}: {reason}", out.display())));
    }
    // Both become text: in settings, in scripts and in the command that repeats the study.
    for path in [&arguments.out, &arguments.data_dir].into_iter().flatten() {
        path_text(path)?;
    }
    if let Some(out) = &arguments.out {
        output::new_folder("--out", out)?;
    }
    let mut config = StudyConfig::load(&arguments.study(), &assignments(&arguments)?).map_err(usage)?;
    let data_dir = flags::stored(config.base.data_dir.take())?;
    config.conditions.iter_mut().for_each(|condition| condition.run.data_dir.clone_from(&data_dir));
    config.base.data_dir = data_dir;
    let folder = arguments.folder().unwrap_or_else(|| StudyFolder::default_for(&config.name));
    let all = || std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let threads = arguments.threads.unwrap_or_else(all);
    if arguments.status {
        return status::print(&config, &folder, arguments.json);
    }
    if let Some(index) = arguments.run {
        return array::run(&arguments, &config, &folder, index, threads);
    }
    if arguments.compare {
        return array::compare(&arguments, &config, &folder, threads);
    }
    if config.conditions.iter().filter(|condition| !condition.run.probe).count() == 1 {
        eprintln!(
            "warning: this study has one condition, so nothing can be compared; add another, such as --tau \
             30,inf"
        );
    }
    let plan = Plan::make(&config, &folder, threads).map_err(refused)?;
    if arguments.slurm.slurm || arguments.slurm.slurm_script {
        return batch(&arguments, &plan, folder.path());
    }
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
    let options = arguments.options();
    let interrupt = Interrupt::listen("finishing the batch and writing a checkpoint");
    let refresh = arguments.watch.then_some(REFRESH_SECONDS);
    let written = Mutex::new(None::<Instant>);
    // An error in writing the page while the study runs does not stop the study; only the last page must be
    // written.
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
            Event::Run { .. }
            | Event::Waiting { .. }
            | Event::TheoryCurve { .. }
            | Event::Mechanism(_)
            | Event::NoMechanism(_) => {}
        }
        if interrupt.asked() { Control::Stop } else { Control::Continue }
    };
    let outcome = study::run(&plan, &folder, &options, &watcher);
    progress.end();
    match outcome {
        Ok(()) => {}
        Err(error) => {
            // The page shows what is available, without reloading itself, since nothing will follow.
            let _ = leaklab_report::study::write(folder.path(), None);
            return Err(refused(error));
        }
    }
    let page = leaklab_report::study::write(folder.path(), None)?;
    if arguments.json {
        let mut object = object::done(&plan.config, &folder, &page, begun.elapsed())?;
        object["machine"] = serde_json::json!(Machine::here(options.isa));
        println!("{object}");
        return Ok(());
    }
    if !silent {
        println!("Open the page in a browser:");
    }
    println!("{}", page.display());
    Ok(())
}

/// Writes the scripts of a batch system, and submits them if requested.
fn batch(arguments: &Arguments, plan: &Plan, out: &std::path::Path) -> Outcome {
    let absolute = |path: &std::path::Path| -> Result<String, Box<dyn std::error::Error>> {
        path_text(&std::path::absolute(path).map_err(RecordError::io(path, "cannot be found"))?)
    };
    let folder = StudyFolder::at(absolute(out)?);
    // The tasks may begin in any order and on any machine, so every path is absolute.
    let program =
        std::env::current_exe().map_err(|e| format!("this program's own path is not known: {e}"))?;
    let study = arguments.study();
    let path = std::path::Path::new(&study);
    let study = if path.exists() { absolute(path)? } else { study };
    let mut words = vec![path_text(&program)?];
    words.extend(words_of(arguments, &study).into_iter().skip(1));
    words.extend(["--out".to_owned(), path_text(folder.path())?]);
    if let Some(data) = &plan.config.base.data_dir {
        words.extend(["--data-dir".to_owned(), absolute(data)?]);
    }
    words.extend(["--checkpoint-minutes".to_owned(), arguments.checkpoint_minutes.to_string()]);
    let job = slurm::Job { flags: &arguments.slurm, plan, folder: &folder, command: &words };
    let scripts = job.write()?;
    let jobs = if arguments.slurm.slurm { job.submit(&scripts)? } else { Vec::new() };
    let paths: Vec<&PathBuf> = scripts.runs.iter().chain([&scripts.compare]).collect();
    if arguments.json {
        println!("{}", serde_json::json!({ "scripts": paths, "jobs": jobs }));
        return Ok(());
    }
    for (i, path) in paths.iter().enumerate() {
        match jobs.get(i) {
            Some(job) => println!("job {job}: {}", path.display()),
            None => println!("{}", path.display()),
        }
    }
    if arguments.slurm.slurm && !arguments.quiet {
        let out = slurm::quoted(&path_text(folder.path())?);
        println!("Show the progress with: {} --out {out} --status", command(arguments));
    }
    Ok(())
}

/// An error of a study, with its exit code.
pub(crate) fn refused(error: StudyError) -> Box<dyn std::error::Error> {
    match error {
        StudyError::Config(_) | StudyError::Other { .. } | StudyError::NoSuchRun { .. } => usage(error),
        StudyError::Interrupted => stopped(error),
        error => error.into(),
    }
}

impl Arguments {
    /// The study file or the name of a built-in study.
    fn study(&self) -> String {
        let existing = || {
            let file = self.folder()?.study_toml();
            file.is_file().then(|| file.to_string_lossy().into_owned())
        };
        self.study.clone().or_else(existing).unwrap_or_else(|| DEFAULT.to_owned())
    }

    /// The folder that is given. `--status` alone reads the study in the default folder as it was started.
    fn folder(&self) -> Option<StudyFolder> {
        let default = || Some(StudyFolder::default_for(DEFAULT)).filter(StudyFolder::exists);
        let of_status = || if self.status && self.study.is_none() { default() } else { None };
        self.out.clone().map(StudyFolder::at).or_else(of_status)
    }

    fn options(&self) -> Options {
        let isa = self.isa.unwrap_or_else(Isa::best);
        Options { command: command(self), checkpoint_minutes: self.checkpoint_minutes, isa }
    }
}

/// The flags that are settings.
fn assignments(arguments: &Arguments) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let mut all = arguments.settings.clone();
    if !arguments.tau.is_empty() {
        // As numbers with a fraction or an exponent: 1e19 is more than a whole number of TOML can be.
        let taus: Vec<String> = arguments.tau.iter().map(|tau| format!("{:?}", tau.steps())).collect();
        all.push(format!("tau=[{}]", taus.join(", ")));
    }
    if let Some(folder) = &arguments.data_dir {
        all.push(format!("data_dir={}", toml_text(&path_text(&flags::absolute(folder))?)));
    }
    Ok(all)
}

/// Membrane time constants as text.
fn taus(values: &[Tau]) -> Vec<String> {
    values.iter().map(Tau::to_string).collect()
}

/// Text as a TOML string.
fn toml_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The command that reproduces the study: everything that determines its results. A study that is continued
/// from its own folder is reproduced by the command that started it, with the new flags.
fn command(arguments: &Arguments) -> String {
    let study = arguments.study();
    let words = started(arguments, &study).unwrap_or_else(|| words_of(arguments, &study));
    words.iter().map(|word| slurm::quoted(word)).collect::<Vec<_>>().join(" ")
}

/// The words of the stored command with those of the new flags, if the study is that of the folder itself.
fn started(arguments: &Arguments, study: &str) -> Option<Vec<String>> {
    let folder = arguments.folder()?;
    if output::resolved(study.as_ref()) != output::resolved(&folder.study_toml()) {
        return None;
    }
    let text = leaklab_record::file::read_to_string(&folder.command()).ok()?;
    let mut words = slurm::words(text.trim());
    if !words.starts_with(&["leaklab".to_owned(), "study".to_owned()]) {
        return None;
    }
    let new = words_of(arguments, study).split_off(3);
    // These may be given only once; the flag --tau replaces the setting, whichever comes last.
    let sets_tau = arguments.settings.iter().any(|text| text.trim_start().starts_with("tau="));
    for (flag, again) in
        [("--tau", sets_tau || !arguments.tau.is_empty()), ("--isa", arguments.isa.is_some())]
    {
        if let (true, Some(i)) = (again, words.iter().position(|word| word == flag)) {
            words.drain(i..(i + 2).min(words.len()));
        }
    }
    words.extend(new);
    Some(words)
}

/// The words of this command, with another name for the study file.
fn words_of(arguments: &Arguments, study: &str) -> Vec<String> {
    let mut words = vec!["leaklab".to_owned(), "study".to_owned(), study.to_owned()];
    if !arguments.tau.is_empty() {
        words.extend(["--tau".to_owned(), taus(&arguments.tau).join(",")]);
    }
    if let Some(isa) = arguments.isa {
        words.extend(["--isa".to_owned(), isa.to_string()]);
    }
    for setting in &arguments.settings {
        words.extend(["--set".to_owned(), setting.clone()]);
    }
    words
}

/// Numbers that conditions may differ in, such as `10 epochs` or `2 to 3 epochs`.
fn range(numbers: impl Iterator<Item = u64> + Clone, noun: &str) -> String {
    let (least, greatest) = (numbers.clone().min().unwrap_or(0), numbers.max().unwrap_or(0));
    let most = counted(greatest, noun);
    if least == greatest { most } else { format!("{least} to {most}") }
}

/// Such as `seeds 1, 2, 3`.
fn seeds(seeds: &[u64]) -> String {
    let list: Vec<String> = seeds.iter().map(u64::to_string).collect();
    format!("{} {}", if list.len() == 1 { "seed" } else { "seeds" }, list.join(", "))
}

fn print_plan(plan: &Plan, folder: &StudyFolder) {
    let config = &plan.config;
    let base = &config.base;
    let name = |condition: &ConditionConfig| match &condition.own_seeds {
        Some(own) => format!("{} ({})", condition.name, seeds(own)),
        None => condition.name.clone(),
    };
    let trained = plan.runs.iter().filter(|run| run.epochs >= run.planned).count();
    let begun = plan.runs.iter().filter(|run| run.epochs > 0).count() - trained;
    println!(
        "Study {}: {}: {}; {}",
        config.name,
        counted(plan.runs.len() as u64, "run"),
        config.conditions.iter().map(name).collect::<Vec<_>>().join("; "),
        seeds(&config.seeds)
    );
    let conditions = || config.conditions.iter().map(|condition| &condition.run);
    println!(
        "  each    {} of {} images of {}, {} {} images, {}",
        range(conditions().map(|run| run.epochs), "epoch"),
        plan.train_images,
        base.dataset,
        plan.test_images,
        base.tested_on(),
        range(conditions().map(|run| run.time_steps as u64), "time step")
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
        "  time    about {} on {}{at_a_time}, if the machine does nothing else (estimated from a short \
         training run)",
        progress::duration(plan.seconds()),
        counted(plan.threads as u64, "thread")
    );
    if plan.threads > plan.most_threads() {
        println!(
            "  threads a training run with batch {} can use {}, each for a group of four images; with a \
             larger batch it can use more",
            base.batch,
            plan.most_threads()
        );
    }
    if !plan.omitted.is_empty() {
        println!(
            "  other   the folder also contains {} of other conditions or seeds, which {} not compared: {}",
            counted(plan.omitted.len() as u64, "run"),
            if plan.omitted.len() == 1 { "is" } else { "are" },
            plan.omitted.join(", ")
        );
    }
    println!("  disk    about {} MB in {}", (plan.bytes / 1_000_000).max(1), folder.path().display());
}
