//! The ranks other than 0: they get settings and weights from rank 0, read the images themselves, and do what
//! rank 0 says until it says leave. They write nothing.

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

/// What rank 0 tells the others of the run.
#[derive(Serialize, Deserialize)]
struct Introduction {
    run: PathBuf,
    settings: String,
}

/// Checks that all ranks would compute the same bits, and counts their threads. Called by every rank, first.
pub(super) fn meet(world: &dyn World, options: &Options, own_threads: usize) -> Result<usize, TrainError> {
    let version = env!("CARGO_PKG_VERSION");
    ranks::check_alike(world, "version", version, "run the same program on all machines")?;
    let isa = options.isa.to_string();
    let remedy = "the last bits depend on it, so choose one that all machines have, by --isa";
    ranks::check_alike(world, "the instruction set", &isa, remedy)?;
    let threads = world.all_gather(vec![own_threads as u32])?;
    Ok(threads.iter().flatten().map(|&threads| threads as usize).sum())
}

/// Rank 0's side: tells the others which run it is and where it stands.
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

/// Works for rank 0 until it says leave. Where `asked` says that this process was asked to stop, rank 0
/// learns it and stops the training.
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
    // The weights that are packed: those of the last batch's beginning, until an evaluation packs them again.
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
                    replica.packed.update(&replica.network)?;
                    packed = true;
                }
                replica.measure(images, from..from + count, &scratch)?;
            }
            Order::Leave => return Ok(()),
        }
    }
}
