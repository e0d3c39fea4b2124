//! Reference cases: complete networks with all values that they must produce, computed by an independent
//! program in double precision. Thirteen of them are embedded, so that the engine can be checked on any
//! machine with `leaklab selftest`.

use leaklab_engine::{
    Architecture, Gradient, Input, InputError, Isa, Leak, Masks, Network, Packed, Scratch, Tau, Trace, infer,
    train_batch,
};
use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Embeds the cases of these names.
macro_rules! embedded {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_bytes!(concat!("../assets/golden/", $name, ".safetensors")) as &[u8])),*]
    };
}

/// The embedded cases, by name.
pub const EMBEDDED: [(&str, &[u8]); 13] = embedded![
    "if_conv",
    "lif_conv",
    "lif_conv_exact",
    "lif_dropout",
    "lif_fc",
    "lif_noisy_input",
    "lif_threshold",
    "odd_pool_dropout_exact",
    "three_channels",
    "leak_by_layer",
    "leak_by_layer_exact",
    "leak_hidden_only",
    "leak_readout_only",
];

/// Largest relative differences allowed for a correct float32 engine.
const PREDICTION: f64 = 1e-5;
const LOSS: f64 = 1e-5;
const GRADIENT: f64 = 1e-4;
const NORM: f64 = 1e-4;

/// Why a file is not a reference case, or could not be run.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {reason}")]
pub struct GoldenError {
    name: String,
    reason: String,
}

/// Settings in the file's header.
#[derive(Debug, Deserialize)]
struct Settings {
    network: String,
    time_steps: usize,
    tau: Steps,
    #[serde(default)]
    layer_tau: BTreeMap<String, Steps>,
    readout_tau: Option<Steps>,
    v_th: f32,
    gradient: String,
    loss: f64,
    synops_per_image: Option<Vec<f64>>,
}

/// A time constant in JSON: a number or "inf".
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Steps {
    Number(f64),
    Word(String),
}

impl Steps {
    fn tau(&self) -> Result<Tau, String> {
        match self {
            Steps::Number(steps) => Tau::new(*steps),
            Steps::Word(word) => word.parse(),
        }
        .map_err(|e| e.to_string())
    }
}

impl Settings {
    fn leak(&self) -> Result<Leak, String> {
        let layers = self.layer_tau.iter().map(|(name, steps)| Ok((name.clone(), steps.tau()?)));
        Ok(Leak {
            tau: self.tau.tau()?,
            layer_tau: layers.collect::<Result<_, String>>()?,
            readout_tau: self.readout_tau.as_ref().map(Steps::tau).transpose()?,
        })
    }
}

/// A network, its input and its expected results.
pub struct Case {
    name: String,
    settings: Settings,
    network: Network,
    mode: Gradient,
    labels: Vec<usize>,
    input: Vec<f32>,
    masks: Vec<Masks>,
    prediction: Vec<f64>,
    spike_counts: Vec<Vec<f64>>,
    norms: Vec<Vec<f64>>,
    gradients: Vec<(String, Vec<f64>)>,
}

/// Largest differences of each kind, as compared with the tolerances.
#[derive(Debug, Clone, Copy, Default)]
pub struct Agreement {
    /// Difference of the predictions, relative to the largest prediction.
    pub prediction: f64,
    /// Relative difference of the loss.
    pub loss: f64,
    /// Difference of the gradients, relative to the largest entry of the tensor.
    pub gradient: f64,
    /// Difference of the weighted-input norms, relative to the largest norm.
    pub norm: f64,
    /// Number of neurons whose spike count differs.
    pub wrong_spike_counts: usize,
    /// Number of layers whose synaptic operations differ.
    pub wrong_synops: usize,
}

impl Agreement {
    /// Messages about differences beyond the tolerances; empty if there are none.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.wrong_spike_counts > 0 {
            faults.push(format!("{} neurons have wrong spike counts", self.wrong_spike_counts));
        }
        if self.wrong_synops > 0 {
            faults.push(format!("{} layers have wrong synops", self.wrong_synops));
        }
        for (what, value, bound) in [
            ("prediction", self.prediction, PREDICTION),
            ("loss", self.loss, LOSS),
            ("gradient", self.gradient, GRADIENT),
            ("weighted_input_norm", self.norm, NORM),
        ] {
            if value > bound || value.is_nan() {
                faults.push(format!("{what} differs by {value:.1e}; {bound:.0e} is allowed"));
            }
        }
        faults
    }
}

fn numbers(tensors: &SafeTensors, name: &str) -> Result<Vec<f64>, String> {
    let tensor = tensors.tensor(name).map_err(|e| format!("tensor '{name}': {e}"))?;
    let bytes = tensor.data();
    match tensor.dtype() {
        Dtype::F64 => Ok(bytes.as_chunks().0.iter().map(|&b| f64::from_le_bytes(b)).collect()),
        Dtype::F32 => Ok(bytes.as_chunks().0.iter().map(|&b| f64::from(f32::from_le_bytes(b))).collect()),
        Dtype::I64 => Ok(bytes.as_chunks().0.iter().map(|&b| i64::from_le_bytes(b) as f64).collect()),
        other => Err(format!("tensor '{name}' has type {other:?}; expected F64, F32 or I64")),
    }
}

/// Largest difference relative to the largest expected value.
fn difference(found: impl IntoIterator<Item = f64>, expected: &[f64]) -> f64 {
    let largest = expected.iter().fold(f64::MIN_POSITIVE, |m, x| m.max(x.abs()));
    let worst = |worst: f64, (found, expected): (f64, &f64)| {
        let difference = (found - expected).abs() / largest;
        if difference.is_nan() { f64::INFINITY } else { worst.max(difference) }
    };
    found.into_iter().zip(expected).fold(0.0, worst)
}

impl Case {
    /// Reads a case from the bytes of its file.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, GoldenError> {
        Self::read(name, bytes).map_err(|reason| GoldenError { name: name.to_owned(), reason })
    }

    fn read(name: &str, bytes: &[u8]) -> Result<Self, String> {
        let not_golden = "not a reference case: its header has no entry 'golden'";
        let (_, metadata) =
            SafeTensors::read_metadata(bytes).map_err(|e| format!("not a safetensors file: {e}"))?;
        let header = metadata.metadata().as_ref().and_then(|m| m.get("golden")).ok_or(not_golden)?;
        let settings: Settings = serde_json::from_str(header).map_err(|e| format!("header 'golden': {e}"))?;
        let tensors = SafeTensors::deserialize(bytes).map_err(|e| format!("not a safetensors file: {e}"))?;
        let mode = match settings.gradient.as_str() {
            "straight-through" => Gradient::StraightThrough,
            "exact" => Gradient::Exact,
            other => return Err(format!("gradient is '{other}'; expected straight-through or exact")),
        };
        let architecture = Architecture::parse(&settings.network).map_err(|e| e.to_string())?;
        let leak = settings.leak()?;
        let mut network = Network::new(architecture, leak, settings.v_th).map_err(|e| e.to_string())?;
        let mut gradients = Vec::new();
        for parameter in network.architecture.parameters().to_vec() {
            let weights: Vec<f32> =
                numbers(&tensors, &format!("weight.{}", parameter.name))?.iter().map(|&x| x as f32).collect();
            network.set_tensor(&parameter.name, &parameter.shape, &weights).map_err(|e| e.to_string())?;
            let gradient = numbers(&tensors, &format!("gradient.{}", parameter.name))?;
            gradients.push((parameter.name, gradient));
        }
        let labels: Vec<usize> = numbers(&tensors, "labels")?.iter().map(|&x| x as usize).collect();
        let input: Vec<f32> = numbers(&tensors, "input")?.iter().map(|&x| x as f32).collect();
        if input.len() != settings.time_steps * labels.len() * network.architecture.input().neurons() {
            return Err(
                "the size of tensor 'input' does not fit the network and time_steps of the header".to_owned()
            );
        }
        let (mut spike_counts, mut norms) = (Vec::new(), Vec::new());
        for i in 1..=network.architecture.hidden().len() {
            spike_counts.push(numbers(&tensors, &format!("spike_count.{i}"))?);
            norms.push(numbers(&tensors, &format!("weighted_input_norm.{i}"))?);
        }
        let mut arrays = Vec::new();
        while let Ok(mask) = numbers(&tensors, &format!("mask.{}", arrays.len() + 1)) {
            arrays.push(mask.iter().map(|&x| x as f32).collect::<Vec<_>>());
        }
        let mut masks = Vec::new();
        for sample in 0..labels.len() {
            let of_sample = |array: &'_ Vec<f32>| {
                let len = array.len() / labels.len();
                array[sample * len..][..len].to_vec()
            };
            let owned: Vec<Vec<f32>> = arrays.iter().map(of_sample).collect();
            let views: Vec<&[f32]> = owned.iter().map(Vec::as_slice).collect();
            masks.push(if views.is_empty() {
                Masks::none()
            } else {
                Masks::from_values(&views, &network.architecture).map_err(|e| e.to_string())?
            });
        }
        let prediction = numbers(&tensors, "prediction")?;
        let name = name.to_owned();
        Ok(Case {
            name,
            settings,
            network,
            mode,
            labels,
            input,
            masks,
            prediction,
            spike_counts,
            norms,
            gradients,
        })
    }

    /// Name of the case.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The network of the case.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The input of one sample.
    pub fn sample(&self, sample: usize) -> Input {
        let (shape, steps) = (self.network.architecture.input(), self.settings.time_steps);
        let (n, samples) = (shape.neurons(), self.labels.len());
        let values: Vec<f32> =
            (0..steps).flat_map(|t| &self.input[(t * samples + sample) * n..][..n]).copied().collect();
        Input::from_values(shape, steps, &values)
    }

    /// Runs the case with an instruction set and compares all results.
    pub fn check(&self, isa: Isa) -> Result<Agreement, GoldenError> {
        self.run(isa).map_err(|reason| GoldenError { name: self.name.clone(), reason })
    }

    fn run(&self, isa: Isa) -> Result<Agreement, String> {
        let packed = Packed::new(&self.network, isa).map_err(|e| e.to_string())?;
        let (steps, samples) = (self.settings.time_steps, self.labels.len());
        let mut gradients = vec![0.0; self.network.weights.len()];
        let scratch = Scratch::default();
        let measure = |_: usize, trace: &Trace| trace.clone();
        let prepare = |i: usize, input: &mut Input, masks: &mut Masks| {
            *input = self.sample(i);
            *masks = self.masks[i].clone();
            self.labels[i]
        };
        let describe = |e: InputError| e.to_string();
        let traces =
            train_batch(&packed, steps, samples, self.mode, &scratch, prepare, measure, &mut gradients)
                .map_err(describe)?;
        if self.masks.iter().all(Masks::is_none) {
            let show = |i: usize, input: &mut Input| *input = self.sample(i);
            let again = infer(&packed, steps, samples, &scratch, show, |_, t| t.prediction().to_vec())
                .map_err(describe)?;
            if again.iter().zip(&traces).any(|(again, trace)| again != trace.prediction()) {
                return Err("the predictions of inference and training differ".to_owned());
            }
        }
        let mut found = Agreement {
            prediction: difference(
                traces.iter().flat_map(|t| t.prediction()).map(|&p| f64::from(p)),
                &self.prediction,
            ),
            loss: {
                let loss =
                    traces.iter().zip(&self.labels).map(|(t, &l)| t.loss(l)).sum::<f64>() / samples as f64;
                difference([loss], &[self.settings.loss])
            },
            ..Agreement::default()
        };
        for (layer, expected) in self.spike_counts.iter().enumerate() {
            let counts = traces.iter().flat_map(|t| t.spike_counts(layer));
            found.wrong_spike_counts += counts.zip(expected).filter(|&(n, &m)| f64::from(n) != m).count();
            let norms = traces.iter().map(|t| t.weighted_input_norms()[layer]);
            found.norm = found.norm.max(difference(norms, &self.norms[layer]));
        }
        if let Some(expected) = &self.settings.synops_per_image {
            for (layer, expected) in expected.iter().enumerate() {
                let total: u64 = traces.iter().map(|t| t.synops()[layer]).sum();
                found.wrong_synops +=
                    usize::from((total as f64 / samples as f64 - expected).abs() > 1e-9 * expected);
            }
        }
        for (parameter, (_, expected)) in self.network.architecture.parameters().iter().zip(&self.gradients) {
            let gradient = &gradients[parameter.offset..][..parameter.len];
            found.gradient = found.gradient.max(difference(gradient.iter().map(|&g| f64::from(g)), expected));
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_in_every_instruction_set() {
        for (name, bytes) in EMBEDDED {
            let case = Case::parse(name, bytes).unwrap();
            for isa in Isa::available() {
                let agreement = case.check(isa).unwrap();
                assert!(
                    agreement.faults().is_empty(),
                    "{name} {isa}: {:?} {agreement:?}",
                    agreement.faults()
                );
            }
        }
    }

    #[test]
    fn a_wrong_weight_is_noticed() {
        let (name, bytes) = EMBEDDED[1];
        let mut case = Case::parse(name, bytes).unwrap();
        case.network.weights[3] += 0.01;
        assert!(!case.check(Isa::best()).unwrap().faults().is_empty());
    }

    #[test]
    fn other_files_are_refused() {
        assert!(Case::parse("x", b"hello").is_err());
        let (_, bytes) = EMBEDDED[0];
        assert!(Case::parse("x", &bytes[..bytes.len() / 2]).is_err());
    }
}
