//! A trained run that is ready to be measured: its network, its test images and its stored passes.

use super::pass::{FORMAT, Frame, Meter, Pass};
use super::stimulus::{PassKey, setting};
use super::{Analysis, AnalysisError, Progress, robustness, spectrum, store};
use crate::config::{Binds, KEYS};
use crate::data::Presentation;
use crate::data::present::Scratch;
use crate::data::{Dataset, Split};
use crate::evaluate::presentation;
use crate::run::{RunError, TrainedRun, Weights, load_dataset};
use leaklab_engine::{Isa, LeakChange, Packed, Scratch as Workspaces, infer};
use leaklab_record::metrics::{self, Epoch};
use leaklab_record::{NoiseKey, Origin, RunFolder, Stimulus, file};
use rayon::ThreadPool;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Images shown between two reports of progress. No result depends on it.
const CHUNK: usize = 64;

/// How to analyse.
#[derive(Debug, Clone)]
pub struct Options {
    /// Number of test images to use, class-balanced; that of the run's settings if `None`.
    pub images: Option<usize>,
    /// Noises to test in addition to those of the run's settings.
    pub noise: Vec<NoiseKey>,
    /// Which weights of the run.
    pub weights: Weights,
    /// Changes to the leak that the network was trained with.
    pub leak: LeakChange,
    /// Folder of the data sets; that of the run's settings if `None`.
    pub data_dir: Option<PathBuf>,
    /// The thread pool.
    pub pool: Arc<ThreadPool>,
    /// Instruction set of the kernels. Spikes and predictions do not depend on it; norms of weighted inputs
    /// may differ in the last digits.
    pub isa: Isa,
}

impl Options {
    /// A run as it was trained: its last weights, its own leak, and the images and noises of its settings.
    pub fn as_trained(pool: Arc<ThreadPool>) -> Self {
        Options {
            images: None,
            noise: Vec::new(),
            weights: Weights::Last,
            leak: LeakChange::default(),
            data_dir: None,
            pool,
            isa: Isa::best(),
        }
    }
}

/// A trained run that is ready to be measured.
pub struct Analyst {
    /// The run.
    pub run: TrainedRun,
    /// Its data set, with the test images that are used.
    pub dataset: Dataset,
    /// Lines of its `metrics.jsonl`.
    pub epochs: Vec<Epoch>,
    pub(super) presentation: Presentation,
    pub(super) packed: Packed,
    pub(super) pool: Arc<ThreadPool>,
    pub(super) workspaces: Workspaces,
    weights: Weights,
    fingerprint: Sha256,
}

impl Analyst {
    /// Opens a run and its data set.
    pub fn open(path: &Path, options: &Options) -> Result<Self, AnalysisError> {
        let mut run = TrainedRun::open(path, options.weights)?;
        run.change_leak(&options.leak)?;
        for noise in &options.noise {
            if !run.config.noise.contains(noise) {
                run.config.noise.push(*noise);
            }
        }
        if run.position.epoch == 0 {
            return Err(AnalysisError::NoEpoch { path: path.to_owned() });
        }
        let epochs = metrics::read_through(&run.folder.metrics(), run.position.epoch)?;
        let mut config = run.config.clone();
        config.data_dir = options.data_dir.clone().or(config.data_dir);
        let limit = options.images.or(config.analysis_images);
        config.test_limit = match (config.test_limit, limit) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let dataset = load_dataset(&config)?;
        if dataset.test.is_empty() {
            return Err(AnalysisError::NoImages(dataset.name));
        }
        let presentation = presentation(&config, &dataset).with_isa(options.isa);
        let packed = options.pool.install(|| Packed::new(&run.network, options.isa))?;
        let fingerprint = fingerprint(&run, &dataset.test);
        let pool = options.pool.clone();
        let (workspaces, weights) = (Workspaces::default(), options.weights);
        Ok(Analyst { run, dataset, epochs, presentation, packed, pool, workspaces, weights, fingerprint })
    }

    /// Folder of the tables; see [`TrainedRun::analysis_folder`].
    pub fn folder(&self) -> PathBuf {
        self.run.analysis_folder()
    }

    /// The passes an analysis needs.
    pub fn passes(&self, analysis: Analysis) -> Vec<PassKey> {
        let config = &self.run.config;
        let first = |stimuli: Vec<Stimulus>| stimuli.into_iter().map(PassKey::first).collect();
        match analysis {
            Analysis::Robustness => {
                let stimuli = robustness::stimuli(&config.noise).into_iter();
                let each = |stimulus| {
                    (1..=config.presentations as u32)
                        .map(move |presentation| PassKey { stimulus, presentation })
                };
                stimuli.flat_map(each).collect()
            }
            Analysis::Spectrum => first(spectrum::stimuli(&config.noise)),
            Analysis::Activity | Analysis::Energy => first(vec![Stimulus::Clean]),
            Analysis::Generalisation | Analysis::Example => Vec::new(),
        }
    }

    /// Notes that belong to every table of the run.
    pub(super) fn notes(&self) -> Vec<String> {
        let (done, planned) = (self.run.position.epoch, self.run.config.epochs);
        let mut notes: Vec<String> = self.run.notice.iter().cloned().collect();
        if self.weights == Weights::Best {
            notes.push(format!("Weights of epoch {done}, which had the highest test accuracy."));
        } else if done < planned {
            notes.push(format!("The run has been trained for {done} of {planned} epochs."));
        }
        if let Some(trained) = &self.run.trained_leak {
            notes.push(format!("Trained with tau {trained}, run with tau {}.", self.run.network.leak()));
        }
        notes
    }

    /// What its tables are measured with.
    pub(super) fn origin(&self) -> Origin {
        let (epoch, checkpoint) = (self.run.position.epoch, self.run.checksum.clone());
        Origin { epoch, checkpoint, images: self.dataset.test.len() as u64 }
    }

    /// Fingerprint of everything that a pass depends on.
    fn fingerprint(&self, key: PassKey) -> Result<String, AnalysisError> {
        let mut hash = self.fingerprint.clone();
        let level =
            setting(key.stimulus, &self.run.config.severities)?.map_or(0.0, |setting| setting.level());
        let epoch = key.epoch(self.run.config.presentation_seed);
        hash.update(format!("{} {epoch} {level}", key.stimulus));
        Ok(store::hexadecimal(hash))
    }

    fn path(&self, key: PassKey) -> PathBuf {
        RunFolder::passes(&self.folder()).join(key.file_name())
    }

    /// The stored pass, if there is one and it is still valid.
    pub fn kept(&self, key: PassKey) -> Option<Pass> {
        let text = file::read_to_string(&self.path(key)).ok()?;
        let (network, steps) = (&self.run.network, self.run.config.time_steps);
        let frame = Frame { network, steps, key, images: self.dataset.test.len() };
        Pass::of_text(&text, &self.fingerprint(key).ok()?, &frame)
    }

    /// Returns the stored pass, or measures and stores it.
    pub fn pass(&self, key: PassKey, progress: &mut Progress) -> Result<Pass, AnalysisError> {
        if let Some(pass) = self.kept(key) {
            return Ok(pass);
        }
        let pass = self.measure(key, progress)?;
        store::write(&self.path(key), FORMAT, self.fingerprint(key)?, &pass)?;
        Ok(pass)
    }

    /// Measures every test image.
    fn measure(&self, key: PassKey, progress: &mut Progress) -> Result<Pass, AnalysisError> {
        let split = &self.dataset.test;
        let config = &self.run.config;
        let noise = setting(key.stimulus, &config.severities)?;
        let presentation = self.presentation.clone().noisy(noise).map_err(RunError::from)?;
        let name = key.stimulus.to_string();
        let mut meter = Meter::new(&self.run.network, config.time_steps, key, config.seed);
        progress.advance(&name, 0)?;
        for start in (0..split.len()).step_by(CHUNK) {
            let count = CHUNK.min(split.len() - start);
            let measured = self.pool.install(|| {
                infer(
                    &self.packed,
                    config.time_steps,
                    count,
                    &self.workspaces,
                    |i, input| {
                        presentation.show(
                            split,
                            start + i,
                            key.epoch(config.presentation_seed),
                            &mut Scratch::default(),
                            input,
                        );
                    },
                    |i, trace| meter.measure(trace, split.label(start + i), split.sample(start + i)),
                )
            })?;
            measured.into_iter().for_each(|image| meter.add(image));
            progress.advance(&name, count as u64)?;
        }
        Ok(meter.finish())
    }
}

/// Fingerprint of the weights, neurons, encoding and images.
fn fingerprint(run: &TrainedRun, test: &Split) -> Sha256 {
    let mut hash = Sha256::new();
    let config = &run.config;
    hash.update(format!(
        "{FORMAT} {} {} {:?} {}\n",
        env!("CARGO_PKG_VERSION"),
        config.network,
        run.network.neurons(),
        config.seed
    ));
    // All settings that trained weights depend on, including any that are added to `KEYS` later.
    for key in KEYS.iter().filter(|key| key.binds == Binds::Weights) {
        hash.update(format!("{} = {}\n", key.name, key.text(config).unwrap_or_default()));
    }
    let bytes: Vec<u8> = run.network.weights.iter().flat_map(|weight| weight.to_le_bytes()).collect();
    hash.update(&bytes);
    hash.update(test.digest());
    hash
}
