//! A trained network that can be run with any leak, on any stimulus, and read by any readout.
//!
//! One run of the hidden layers gives every readout, because the readout is a function of the recorded output
//! signal. A finished run is stored with a fingerprint of everything that it depends on, so analyses share
//! runs, and an interrupted analysis continues.

use super::cell::{Cell, CellKey, Outcome, Shown};
use super::readout;
use crate::analysis::stimulus::{PassKey, setting};
use crate::analysis::{AnalysisError, Analyst, Progress, store};
use crate::data::present::Scratch;
use crate::data::subset::balanced;
use crate::data::{Presentation, Split};
use crate::run::{RunError, SUBSET_SEED};
use leaklab_engine::noise::{NoiseSetting, Severities};
use leaklab_engine::{
    InputError, LayerKind, Leak, Network, Packed, Scratch as Workspaces, Tau, Trace, infer,
};
use leaklab_record::noun::slug;
use leaklab_record::{Bits, Readout, Stimulus};
use rayon::ThreadPool;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Version of a stored cell; incremented whenever a measurement changes.
const FORMAT: u32 = 1;
/// Images shown between two reports of progress. No result depends on it.
const CHUNK: usize = 64;
/// Test images of the small part that bisections and responses use.
pub const PART: usize = 150;

/// A network ready to be run in many ways.
pub struct Subject {
    /// Seed of its run.
    pub seed: u64,
    /// The leak it was trained with.
    pub trained: Tau,
    /// The network.
    pub network: Network,
    /// How images are shown, without noise.
    pub presentation: Presentation,
    /// The test images.
    pub split: Split,
    /// The small part of them.
    pub part: Split,
    packed: Packed,
    readouts: Vec<Readout>,
    severities: Severities,
    /// Selects the input spikes of the presentations.
    presentation_seed: u64,
    work: Work,
    workspaces: Workspaces,
    /// Digests of all images and of the part.
    digests: [String; 2],
    fingerprint: Sha256,
}

/// The threads that run a network, and the folder of its results.
#[derive(Debug, Clone)]
pub struct Work {
    /// The thread pool.
    pub pool: Arc<ThreadPool>,
    /// Folder in which runs are stored; `None` if they are not stored.
    pub folder: Option<PathBuf>,
}

impl Subject {
    /// A network, the way in which images are shown to it, and the images it is tested with. Readouts with
    /// the time constants `taus` are measured.
    pub fn new(
        network: Network,
        trained: Tau,
        presentation: Presentation,
        split: Split,
        severities: Severities,
        taus: &[Tau],
        work: Work,
    ) -> Result<Self, AnalysisError> {
        let packed = work.pool.install(|| Packed::new(&network, presentation.encoding.isa))?;
        let steps = presentation.encoding.time_steps as u64;
        let readouts = readout::all(taus, steps);
        let part = balanced(&split, network.architecture.classes(), PART.min(split.len()), SUBSET_SEED);
        let mut fingerprint = Sha256::new();
        fingerprint.update(format!(
            "{FORMAT} {} {} {:?} {} {:?} {:?} {} {:?}\n",
            env!("CARGO_PKG_VERSION"),
            network.architecture,
            network.neurons(),
            steps,
            presentation.normaliser,
            presentation.encoding.encoder,
            presentation.seed,
            readouts
        ));
        let bytes: Vec<u8> = network.weights.iter().flat_map(|weight| weight.to_le_bytes()).collect();
        fingerprint.update(&bytes);
        let seed = presentation.seed;
        let digests = [split.digest(), part.digest()];
        Ok(Subject {
            seed,
            trained,
            network,
            presentation,
            split,
            part,
            packed,
            readouts,
            severities,
            presentation_seed: 0,
            work,
            workspaces: Workspaces::default(),
            digests,
            fingerprint,
        })
    }

    /// The network of an opened run; results are stored in the run's folder.
    pub fn of_run(analyst: Analyst, trained: Tau, taus: &[Tau]) -> Result<Self, AnalysisError> {
        let folder = analyst.run.folder.cells();
        let Analyst { run, dataset, presentation, pool, .. } = analyst;
        let severities = run.config.severities.clone();
        let work = Work { pool, folder: Some(folder) };
        let mut subject =
            Self::new(run.network, trained, presentation, dataset.test, severities, taus, work)?;
        subject.presentation_seed = run.config.presentation_seed;
        Ok(subject)
    }

    /// Time steps.
    pub fn steps(&self) -> u64 {
        self.presentation.encoding.time_steps as u64
    }

    /// The images that a run shows.
    pub fn images(&self, part: bool) -> &Split {
        if part { &self.part } else { &self.split }
    }

    /// Digest of the small part of the images.
    pub(super) fn part_digest(&self) -> &str {
        &self.digests[1]
    }

    /// Names of the hidden layers that can leak.
    pub fn leaking_layers(&self) -> Vec<&str> {
        let layers = self.network.architecture.hidden().iter();
        layers.filter(|layer| layer.kind != LayerKind::Pool).map(|layer| layer.name.as_str()).collect()
    }

    /// A leak in the hidden layers that `leaks` accepts by name, with the time constant `tau`; the other
    /// layers have none. The same layers always give the same `Leak`.
    pub fn leak_where(&self, tau: Tau, leaks: impl Fn(&str) -> bool) -> Leak {
        let layers = self.leaking_layers();
        if layers.iter().all(|name| leaks(name)) {
            return everywhere(tau);
        }
        let own = layers.iter().filter(|name| leaks(name)).map(|&name| (name.to_owned(), tau));
        Leak { layer_tau: own.collect(), ..Leak::uniform(Tau::INFINITE) }
    }

    fn noise(&self, shown: Shown) -> Result<Option<NoiseSetting>, AnalysisError> {
        match shown {
            Shown::Stimulus(stimulus) => Ok(setting(stimulus, &self.severities)?),
            Shown::Coloured(colour, level) => Ok(Some(NoiseSetting::coloured(colour, level)?)),
        }
    }

    /// Where a run is stored, and its fingerprint.
    fn place(&self, key: &CellKey) -> Result<Option<(PathBuf, String)>, AnalysisError> {
        let level = self.noise(key.shown)?.map_or(0.0, NoiseSetting::level);
        let shown = key.shown.to_string();
        let Some(folder) = &self.work.folder else { return Ok(None) };
        let mut hash = self.fingerprint.clone();
        let images = &self.digests[usize::from(key.part)];
        hash.update(format!("{} | {shown} {level} | {} | {images}", key.hidden, self.epoch(key)));
        let part = if key.part { "_part" } else { "" };
        let file =
            format!("{}_{}_{}{part}.json", slug(&key.hidden.to_string()), slug(&shown), key.presentation);
        Ok(Some((folder.join(file), store::hexadecimal(hash))))
    }

    /// Returns what is stored in a file, if it fits, or makes and stores it, with a fingerprint of the
    /// network and of `depends`; and whether it was stored already.
    pub(super) fn load_or_make<T: Serialize + DeserializeOwned>(
        &self,
        file: &str,
        depends: &str,
        fits: impl FnOnce(&T) -> bool,
        make: impl FnOnce() -> Result<T, AnalysisError>,
    ) -> Result<(T, bool), AnalysisError> {
        let mut hash = self.fingerprint.clone();
        hash.update(depends);
        let place = self.work.folder.as_ref().map(|folder| (folder.join(file), store::hexadecimal(hash)));
        load_or_make(place, fits, make)
    }

    /// Returns the stored run, or makes and stores it. Progress counts its images in both cases.
    pub fn cell(&self, key: &CellKey, progress: &mut Progress) -> Result<Cell, AnalysisError> {
        let fits =
            |cell: &Cell| cell.fits(&self.network, &self.readouts, self.images(key.part).len(), self.steps());
        let (cell, stored) = load_or_make(self.place(key)?, fits, || self.measure(key, progress))?;
        if stored {
            progress.advance(&key.shown.to_string(), self.images(key.part).len() as u64)?;
        }
        Ok(cell)
    }

    /// Several presentations of one run.
    pub fn outcome(
        &self,
        hidden: &Leak,
        shown: Shown,
        presentations: u32,
        progress: &mut Progress,
    ) -> Result<Outcome, AnalysisError> {
        let key = |presentation| CellKey { hidden: hidden.clone(), shown, presentation, part: false };
        let cells = (1..=presentations).map(|n| self.cell(&key(n), progress));
        Ok(Outcome::new(self, cells.collect::<Result<_, _>>()?))
    }

    /// The epoch that a presentation's input spikes are drawn with.
    fn epoch(&self, key: &CellKey) -> u32 {
        let key = PassKey { stimulus: Stimulus::Clean, presentation: key.presentation };
        key.epoch(self.presentation_seed)
    }

    fn measure(&self, key: &CellKey, progress: &mut Progress) -> Result<Cell, AnalysisError> {
        let split = self.images(key.part);
        let presentation = self.presentation.clone().noisy(self.noise(key.shown)?).map_err(RunError::from)?;
        // Input spikes depend on the number of the presentation, and not on the stimulus.
        let epoch = self.epoch(key);
        let classes = self.network.architecture.classes();
        let mut cell = Cell { correct: BTreeMap::new(), spikes: 0, synops: 0 };
        let mut correct = vec![Bits::default(); self.readouts.len()];
        let show = |i: usize, input: &mut leaklab_engine::Input| {
            presentation.show(split, i, epoch, &mut Scratch::default(), input);
        };
        let measure = |i: usize, trace: &Trace| {
            let label = split.label(i);
            let divisor = self.network.readout_divisor();
            let read =
                |&readout: &Readout| readout::is_correct(readout, divisor, trace.signal(), classes, label);
            let correct: Vec<bool> = self.readouts.iter().map(read).collect();
            (correct, self.hidden_spikes(trace), trace.synops().iter().sum::<u64>())
        };
        self.run(
            &key.hidden,
            split.len(),
            show,
            measure,
            |image| {
                for (all, one) in correct.iter_mut().zip(image.0) {
                    all.push(one);
                }
                cell.spikes += image.1;
                cell.synops += image.2;
            },
            &key.shown.to_string(),
            progress,
        )?;
        cell.correct = self.readouts.iter().map(Readout::to_string).zip(correct).collect();
        Ok(cell)
    }

    /// Runs the network with a leak over `count` images and passes the result of `measure` for each to `add`,
    /// in order.
    #[allow(clippy::too_many_arguments)] // showing, measuring and reporting are independent
    pub(super) fn run<R: Send>(
        &self,
        hidden: &Leak,
        count: usize,
        show: impl Fn(usize, &mut leaklab_engine::Input) + Sync,
        measure: impl Fn(usize, &Trace) -> R + Sync,
        mut add: impl FnMut(R),
        what: &str,
        progress: &mut Progress,
    ) -> Result<(), AnalysisError> {
        let mut packed = self.packed.clone();
        packed.set_leak(&self.network.clone().with_leak(hidden.clone())?);
        let steps = self.presentation.encoding.time_steps;
        progress.advance(what, 0)?;
        for start in (0..count).step_by(CHUNK) {
            let now = CHUNK.min(count - start);
            let measured: Result<Vec<R>, InputError> = self.work.pool.install(|| {
                let show = |i: usize, input: &mut leaklab_engine::Input| show(start + i, input);
                infer(&packed, steps, now, &self.workspaces, show, |i, trace| measure(start + i, trace))
            });
            measured?.into_iter().for_each(&mut add);
            progress.advance(what, now as u64)?;
        }
        Ok(())
    }

    /// Spikes of the hidden conv and FC layers.
    fn hidden_spikes(&self, trace: &Trace) -> u64 {
        let layers = self.network.architecture.hidden().iter().enumerate();
        layers.filter(|(_, layer)| layer.kind != LayerKind::Pool).map(|(i, _)| trace.spikes(i).count()).sum()
    }
}

/// The same leak in all hidden layers, none in the readout.
pub fn everywhere(tau: Tau) -> Leak {
    Leak::split(tau, Tau::INFINITE)
}

/// Returns what is stored at a place, if it fits, or makes and stores it; and whether it was stored already.
fn load_or_make<T: Serialize + DeserializeOwned>(
    place: Option<(PathBuf, String)>,
    fits: impl FnOnce(&T) -> bool,
    make: impl FnOnce() -> Result<T, AnalysisError>,
) -> Result<(T, bool), AnalysisError> {
    if let Some((path, fingerprint)) = &place
        && let Some(stored) = store::read(path, FORMAT, fingerprint).filter(fits)
    {
        return Ok((stored, true));
    }
    let made = make()?;
    if let Some((path, fingerprint)) = place {
        store::write(&path, FORMAT, fingerprint, &made)?;
    }
    Ok((made, false))
}
