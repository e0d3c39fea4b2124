//! A trained run made ready to be measured: network, test images, kept passes.

use super::condition::Condition;
use super::pass::{FORMAT, Meter, Pass};
use super::{Analysis, AnalysisError, Progress, robustness, spectrum};
use crate::data::Presentation;
use crate::data::present::Scratch;
use crate::data::{Dataset, Split};
use crate::evaluate::{EVALUATION_EPOCH, presentation};
use crate::run::{TrainedRun, Weights, load_dataset};
use leaklab_engine::noise::{Noise, Scenario};
use leaklab_engine::{Isa, Packed, Scratch as Workspaces, infer};
use leaklab_record::metrics::{self, Epoch};
use leaklab_record::{RecordError, atomic};
use rayon::ThreadPool;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Images shown between two reports of progress. No result depends on it.
const CHUNK: usize = 64;

/// How to analyse.
#[derive(Debug, Clone)]
pub struct Options {
    /// Test images to use, class-balanced; what the run's settings say if empty.
    pub images: Option<usize>,
    /// Noises to test besides those of the run's settings.
    pub noise: Vec<(Noise, Scenario)>,
    /// Which weights of the run.
    pub weights: Weights,
    /// Where the data sets are, if not where the run's settings say.
    pub data_dir: Option<PathBuf>,
    /// Threads to work with.
    pub pool: Arc<ThreadPool>,
}

/// A run made ready to be measured.
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
        for noise in &options.noise {
            if !run.config.noise.contains(noise) {
                run.config.noise.push(*noise);
            }
        }
        if run.position.epoch == 0 {
            return Err(AnalysisError::NoEpoch { path: path.to_owned() });
        }
        let epochs = metrics::read(&run.folder.metrics())?;
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
        let presentation = presentation(&config, &dataset);
        let packed = Packed::new(&run.network, Isa::best())?;
        let fingerprint = fingerprint(&run, &dataset.test);
        let pool = options.pool.clone();
        let (workspaces, weights) = (Workspaces::default(), options.weights);
        Ok(Analyst { run, dataset, epochs, presentation, packed, pool, workspaces, weights, fingerprint })
    }

    /// The conditions an analysis needs passes under.
    pub fn conditions(&self, analysis: Analysis) -> Vec<Condition> {
        let noises = &self.run.config.noise;
        match analysis {
            Analysis::Robustness => robustness::conditions(noises),
            Analysis::Spectrum => spectrum::conditions(noises),
            Analysis::Activity | Analysis::Energy => vec![Condition::CLEAN],
            Analysis::Generalisation | Analysis::Example => Vec::new(),
        }
    }

    /// What a reader of any of the run's tables must know.
    pub(super) fn notes(&self) -> Vec<String> {
        let (done, planned) = (self.run.position.epoch, self.run.config.epochs);
        let mut notes: Vec<String> = self.run.notice.iter().cloned().collect();
        if self.weights == Weights::Best {
            notes.push(format!("Weights of epoch {done}, which had the highest test accuracy."));
        } else if done < planned {
            notes.push(format!("The run has been trained for {done} of {planned} epochs."));
        }
        notes
    }

    /// Fingerprint of everything that a pass under a condition depends on.
    fn fingerprint(&self, condition: Condition) -> Result<String, AnalysisError> {
        let mut hash = self.fingerprint.clone();
        let level = condition.setting(&self.run.config.severities)?.map_or(0.0, |setting| setting.level());
        hash.update(format!("{condition} {level}"));
        Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn path(&self, condition: Condition) -> PathBuf {
        self.run.folder.analysis().join("passes").join(condition.file_name())
    }

    /// The pass under a condition, if it was made before and still stands. Anything else in its place (another
    /// version's, other weights', half a file) counts as not made.
    pub fn kept(&self, condition: Condition) -> Option<Pass> {
        let text = std::fs::read_to_string(self.path(condition)).ok()?;
        let pass: Pass = serde_json::from_str(&text).ok()?;
        let fingerprint = self.fingerprint(condition).ok()?;
        (pass.format == FORMAT && pass.fingerprint == fingerprint).then_some(pass)
    }

    /// The pass under a condition: kept, or made now and kept.
    pub fn pass(&self, condition: Condition, progress: &mut Progress) -> Result<Pass, AnalysisError> {
        if let Some(pass) = self.kept(condition) {
            return Ok(pass);
        }
        let pass = self.measure(condition, progress)?;
        let path = self.path(condition);
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(RecordError::io(folder, "cannot be written"))?;
        let text = serde_json::to_string(&pass).map_err(|e| RecordError::malformed(&path, "pass", e))?;
        atomic::write(&path, text.as_bytes()).map_err(RecordError::io(&path, "cannot be written"))?;
        Ok(pass)
    }

    /// Shows every test image under a condition.
    fn measure(&self, condition: Condition, progress: &mut Progress) -> Result<Pass, AnalysisError> {
        let split = &self.dataset.test;
        let steps = self.run.config.time_steps;
        let mut presentation = self.presentation.clone();
        presentation.encoding =
            presentation.encoding.with_noise(condition.setting(&self.run.config.severities)?);
        let name = condition.to_string();
        let mut meter = Meter::new(&self.run.network, steps, condition, self.fingerprint(condition)?);
        progress.advance(&name, 0)?;
        for start in (0..split.len()).step_by(CHUNK) {
            let count = CHUNK.min(split.len() - start);
            let measured = self.pool.install(|| {
                infer(
                    &self.packed,
                    steps,
                    count,
                    &self.workspaces,
                    |i, input| {
                        presentation.show(split, start + i, EVALUATION_EPOCH, &mut Scratch::default(), input);
                    },
                    |i, trace| meter.measure(trace, split.label(start + i)),
                )
            })?;
            measured.into_iter().for_each(|image| meter.add(image));
            progress.advance(&name, count as u64)?;
        }
        Ok(meter.finish())
    }
}

/// Weights, neuron, encoding and images.
fn fingerprint(run: &TrainedRun, test: &Split) -> Sha256 {
    let mut hash = Sha256::new();
    let config = &run.config;
    hash.update(format!(
        "{FORMAT} {} {} {} {} {} {:?} {:?} {}\n",
        env!("CARGO_PKG_VERSION"),
        config.network,
        config.tau,
        config.v_th,
        config.time_steps,
        config.normalise,
        config.encoder,
        config.seed
    ));
    let bytes: Vec<u8> = run.network.weights.iter().flat_map(|weight| weight.to_le_bytes()).collect();
    hash.update(&bytes);
    let samples: Vec<u8> = test.samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
    hash.update(&samples);
    hash.update(&test.labels);
    hash.update(&test.images);
    hash
}
