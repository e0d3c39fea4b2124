//! Several ranks train with bit-identical results to one process, and refuse what would change them.

use super::ranks::threads::world;
use super::{Control, Event, Options, Outcome, Ranks, Summary, TrainError, resume, train, work};
use crate::config::{RunConfig, Settings};
use leaklab_engine::Isa;
use leaklab_record::RunFolder;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn config() -> RunConfig {
    let text = r#"
        dataset = "digits"
        network = "1x8x8-8C3-2P-24FC-10o"
        tau = 30
        epochs = 2
        batch = 72
        train_limit = 200
        test_limit = 70
        evaluate_train_images = 30
        time_steps = 8
    "#;
    RunConfig::resolve(Settings::from_toml(text, Path::new("run.toml")).unwrap()).unwrap()
}

/// What must not depend on the ranks: weights, and metrics without times.
fn results(run: &Path) -> (Vec<u8>, Vec<u8>, Vec<String>) {
    let folder = RunFolder::at(run);
    let metrics = std::fs::read_to_string(folder.metrics()).unwrap();
    let metrics = metrics.lines().map(|line| {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        let times = ["seconds", "images_per_second"].map(|key| line.as_object_mut().unwrap().remove(key));
        assert!(times.iter().all(Option::is_some), "{line}");
        line.to_string()
    });
    let read = |path: std::path::PathBuf| std::fs::read(path).unwrap();
    (read(folder.checkpoint()), read(folder.best()), metrics.collect())
}

/// Runs a world of ranks, each with `threads` threads; rank 0 runs `lead`.
fn together<R: Send>(
    ranks: usize,
    threads: usize,
    asked: &(dyn Fn(usize) -> bool + Sync),
    lead: impl FnOnce(&Options) -> R + Send,
) -> R {
    let options = |ranks: Ranks| Options { threads: Some(threads), ranks, ..Options::default() };
    let mut world = world(ranks).into_iter();
    let first = options(world.next().unwrap());
    std::thread::scope(|scope| {
        let leader = scope.spawn(move || lead(&first));
        for (rank, ranks) in world.enumerate() {
            scope.spawn(move || work(&options(ranks), &|| asked(rank + 1)).unwrap());
        }
        leader.join().unwrap()
    })
}

fn go_on(_: Event) -> Control {
    Control::Continue
}

#[test]
fn ranks_and_threads_do_not_change_a_bit() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str| folder.path().join(name);
    let alone = train(&config(), &run("alone"), &Options::default(), &mut go_on).unwrap();
    assert_eq!(alone.outcome, Outcome::Finished);
    for (ranks, threads) in [(1, 1), (2, 1), (3, 2), (5, 4)] {
        let out = run(&format!("{ranks}x{threads}"));
        together(ranks, threads, &|_| false, |options| train(&config(), &out, options, &mut go_on)).unwrap();
        assert!(results(&out) == results(&run("alone")), "{ranks} ranks with {threads} threads");
    }
    let log = std::fs::read_to_string(RunFolder::at(run("5x4")).log()).unwrap();
    assert!(log.contains("5 processes with 20 threads in all") && log.contains("% waiting"), "{log}");
}

#[test]
fn a_run_is_resumed_with_other_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, parts) = (folder.path().join("whole"), folder.path().join("parts"));
    train(&config(), &whole, &Options::default(), &mut go_on).unwrap();
    // Stopped by the watcher of rank 0 in the middle of an epoch, and by a signal to another rank in the
    // next.
    let mut batches = 0;
    let mut stop = |event: Event| {
        batches += u32::from(matches!(event, Event::Batch(_)));
        if batches == 2 { Control::Stop } else { Control::Continue }
    };
    let stopped = train(&config(), &parts, &Options::default(), &mut stop).unwrap();
    assert_eq!((stopped.outcome, stopped.epochs), (Outcome::Interrupted, 0));
    let signal = AtomicBool::new(false);
    let stopped: Summary = together(3, 1, &|rank| rank == 2 && signal.load(Ordering::SeqCst), |options| {
        resume(&parts, options, &mut |event| {
            signal.fetch_or(matches!(event, Event::Epoch(_)), Ordering::SeqCst);
            Control::Continue
        })
        .unwrap()
    });
    assert_eq!((stopped.outcome, stopped.epochs), (Outcome::Interrupted, 1));
    together(2, 2, &|_| false, |options| resume(&parts, options, &mut go_on)).unwrap();
    assert!(results(&parts) == results(&whole));
}

#[test]
fn ranks_with_different_instruction_sets_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = world(2).into_iter();
    let mut options = || Options { threads: Some(1), ranks: world.next().unwrap(), ..Options::default() };
    let (first, second) = (options(), Options { isa: Isa::Portable, ..options() });
    if first.isa == second.isa {
        return; // a CPU with no other set
    }
    let (lead, follow) = std::thread::scope(|scope| {
        let lead = scope.spawn(|| train(&config(), &folder.path().join("run"), &first, &mut go_on));
        let follow = scope.spawn(|| work(&second, &|| false));
        (lead.join().unwrap().unwrap_err(), follow.join().unwrap().unwrap_err())
    });
    for error in [lead, follow] {
        assert!(matches!(error, TrainError::Ranks(_)), "{error}");
        let expected = format!("rank 1 has the instruction set portable, and rank 0 has {}", first.isa);
        assert!(error.to_string().starts_with(&expected), "{error}");
    }
}

/// As after a halt of minutes, during which another process broke the lock and took it.
#[test]
fn nothing_is_written_without_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let (options, theirs) = (Options { threads: Some(1), ..Options::default() }, "another process");
    // The threshold is so high that every layer is silent, which is noticed in the first batch.
    let silent = RunConfig { v_th: 1e6, ..config() };
    type Moment = fn(&Event) -> bool;
    let moments: [(&str, RunConfig, Moment); 2] = [
        ("before-a-notice", silent, |event| matches!(event, Event::Checkpoint { epoch: 0, batch: 0 })),
        ("at-the-end", config(), |event| matches!(event, Event::Epoch(epoch) if epoch.epoch == 2)),
    ];
    for (name, config, is_moment) in moments {
        let run = RunFolder::at(folder.path().join(name));
        let read = || [run.log(), run.health()].map(|path| std::fs::read(path).unwrap_or_default());
        let mut before = None;
        let outcome = train(&config, run.path(), &options, &mut |event| {
            if is_moment(&event) {
                std::fs::write(run.path().join("lock"), theirs).unwrap();
                before = Some(read());
            }
            Control::Continue
        });
        let message = outcome.map(|summary| summary.outcome).unwrap_err().to_string();
        assert!(message.contains("another one took over its work"), "{name}: {message}");
        assert!(before == Some(read()), "{name}: something was written");
        assert_eq!(std::fs::read_to_string(run.path().join("lock")).unwrap(), theirs);
    }
}

/// A position within an epoch counts batches, so their size cannot change there.
#[test]
fn an_epoch_is_finished_with_the_batch_that_it_was_begun_with() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let options = Options { threads: Some(1), ..Options::default() };
    let mut stop =
        |event: Event| if matches!(event, Event::Batch(_)) { Control::Stop } else { Control::Continue };
    assert_eq!(train(&config(), &run, &options, &mut stop).unwrap().outcome, Outcome::Interrupted);
    let file = RunFolder::at(&run).run_toml();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("batch = 72", "batch = 20")).unwrap();
    let error = resume(&run, &options, &mut go_on).unwrap_err().to_string();
    assert!(error.contains("begun with another batch") && error.contains("batch = 72, not 20"), "{error}");
    std::fs::write(&file, text).unwrap();
    assert_eq!(resume(&run, &options, &mut go_on).unwrap().outcome, Outcome::Finished);
}
