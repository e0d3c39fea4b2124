//! The ranks other than 0: they receive settings and weights from rank 0, read the images themselves, and
//! follow the orders of rank 0 until it sends [`Order::Leave`]. They write nothing.

use super::ranks::{self, Order, Ranks, World};
use super::replica::Replica;
use super::session::optimiser_state;
use super::{Options, TrainError, check_memory, threads};
use crate::config::{RunConfig, Settings};
use crate::run::{self, RunError, network_of};
use leaklab_engine::Scratch;
use leaklab_record::{Checkpoint, RunFolder};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What rank 0 sends to the others about the run.
#[derive(Serialize, Deserialize)]
struct Introduction {
    run: PathBuf,
    settings: String,
}

/// Checks that all ranks would compute bit-identical results, and counts their threads. Every rank calls it
/// first.
pub(super) fn meet(world: &dyn World, options: &Options, own_threads: usize) -> Result<usize, TrainError> {
    let version = env!("CARGO_PKG_VERSION");
    ranks::check_alike(world, "version", version, "run the same program on all machines")?;
    let isa = options.isa.to_string();
    let remedy = "the last bits depend on it, so choose one that all machines have, with --isa";
    ranks::check_alike(world, "the instruction set", &isa, remedy)?;
    let threads = world.all_gather(vec![own_threads as u32])?;
    Ok(threads.iter().flatten().map(|&threads| threads as usize).sum())
}

/// Rank 0's side: sends the run and its current state to the others.
pub(super) fn introduce(
    world: &dyn World,
    replica: &Replica,
    folder: &RunFolder,
    checkpoint: &Checkpoint,
) -> Result<(), TrainError> {
    let introduction = Introduction { run: folder.path().to_owned(), settings: replica.config.to_toml() };
    ranks::tell(world, Some(&introduction))?;
    world.broadcast(checkpoint.to_bytes())?;
    Ok(())
}

/// Works for rank 0 until it sends the order to leave. If `asked` returns that this process was asked to
/// stop, rank 0 receives this and stops the training.
pub fn work(options: &Options, asked: &dyn Fn() -> bool) -> Result<(), TrainError> {
    let Ranks::World(world) = &options.ranks else { return Ok(()) };
    let pool = threads(options.threads)?;
    let all_threads = meet(&**world, options, pool.current_num_threads())?;
    let Introduction { run, settings } = ranks::tell(&**world, None)?;
    let bytes = world.broadcast(Vec::new())?;
    let folder = RunFolder::at(&run);
    let path = folder.run_toml();
    let settings = Settings::from_toml(&settings, &path).map_err(RunError::from)?;
    let config = run::with_own_data(RunConfig::resolve(settings).map_err(RunError::from)?, &folder);
    check_memory(&config, &pool)?;
    let dataset = run::load_dataset(&config)?;
    let checkpoint = Checkpoint::from_bytes(bytes, &folder.checkpoint())?;
    if checkpoint.header.data != dataset.train.digest() {
        return Err(RunError::OtherData { path: run, dataset: dataset.name }.into());
    }
    let network = network_of(&config, &checkpoint, &run)?;
    let state = optimiser_state(&config, &checkpoint, &network);
    let mut replica = Replica::new(config, dataset, pool, network, state, options.isa, &options.ranks)?;
    replica.threads = all_threads;
    drop(checkpoint);
    let scratch = Scratch::default();
    // Whether the packed weights are current: a batch packs them before its update, so the next evaluation
    // packs them again.
    let mut packed = false;
    loop {
        match ranks::tell(&**world, None)? {
            Order::Train { epoch, batch } => {
                replica.asked = asked();
                replica.batch(epoch, batch)?;
                replica.step(epoch);
                packed = false;
            }
            Order::Evaluate { images, from, count } => {
                if !packed {
                    replica.pack()?;
                    packed = true;
                }
                replica.measure(images, from..from + count, &scratch)?;
            }
            Order::Leave => return Ok(()),
        }
    }
}
