//! Measurements of the reference networks, compared with the golden files: synaptic operations, norms, spike
//! counts, NeuroBench's metrics and membrane potentials.

use leaklab_engine::{
    Architecture, Input, Isa, Layer, LayerKind, Leak, Network, Packed, Scratch, Tau, infer,
};
use leaklab_lab::analysis::example::potential;
use leaklab_lab::analysis::neurobench::{Synapses, dense_macs, footprint, updates};
use leaklab_lab::analysis::pass::{ActivityPass, Meter, Pass};
use leaklab_lab::analysis::stimulus::PassKey;
use leaklab_lab::golden::EMBEDDED;
use leaklab_record::Stimulus;
use safetensors::{Dtype, SafeTensors};

/// Every case without dropout, which applies only to training.
const CASES: [&str; 7] =
    ["if_conv", "lif_conv", "lif_conv_exact", "lif_fc", "lif_noisy_input", "lif_threshold", "three_channels"];

struct Golden {
    name: String,
    network: Network,
    steps: usize,
    inputs: Vec<Vec<f32>>,
    labels: Vec<usize>,
    settings: serde_json::Value,
    arrays: Vec<(String, Vec<usize>, Vec<f32>)>,
}

impl Golden {
    fn load(name: &str) -> Self {
        let bytes = EMBEDDED.iter().find(|case| case.0 == name).unwrap().1;
        let (_, header) = SafeTensors::read_metadata(bytes).unwrap();
        let text = &header.metadata().as_ref().unwrap()["golden"];
        let settings: serde_json::Value = serde_json::from_str(text).unwrap();
        let tensors = SafeTensors::deserialize(bytes).unwrap();
        let arrays: Vec<(String, Vec<usize>, Vec<f32>)> = tensors
            .iter()
            .map(|(key, tensor)| {
                let chunks = |size: usize| tensor.data().chunks_exact(size);
                let values = match tensor.dtype() {
                    Dtype::F32 => chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect(),
                    Dtype::F64 => {
                        chunks(8).map(|b| f64::from_le_bytes(b.try_into().unwrap()) as f32).collect()
                    }
                    Dtype::I64 => {
                        chunks(8).map(|b| i64::from_le_bytes(b.try_into().unwrap()) as f32).collect()
                    }
                    other => panic!("{key}: {other:?}"),
                };
                (key.to_owned(), tensor.shape().to_vec(), values)
            })
            .collect();
        let tau = settings["tau"].as_f64().unwrap_or(f64::INFINITY);
        let (leak, v_th) = (Leak::uniform(Tau::new(tau).unwrap()), settings["v_th"].as_f64().unwrap() as f32);
        let architecture = Architecture::parse(settings["network"].as_str().unwrap()).unwrap();
        let mut network = Network::new(architecture, leak, v_th).unwrap();
        for (key, shape, values) in &arrays {
            if let Some(tensor) = key.strip_prefix("weight.") {
                network.set_tensor(tensor, shape, values).unwrap();
            }
        }
        let find = |key: &str| arrays.iter().find(|array| array.0 == key).unwrap().clone();
        let (_, shape, values) = find("input");
        let (steps, images) = (shape[0], shape[1]);
        let size: usize = shape[2..].iter().product();
        let inputs = (0..images)
            .map(|n| (0..steps).flat_map(|t| values[(t * images + n) * size..][..size].to_vec()).collect())
            .collect();
        let labels = find("labels").2.iter().map(|&label| label as usize).collect();
        Golden { name: name.to_owned(), network, steps, inputs, labels, settings, arrays }
    }

    fn array(&self, key: &str) -> &[f32] {
        &self.arrays.iter().find(|array| array.0 == key).unwrap_or_else(|| panic!("{key}")).2
    }

    fn show(&self, image: usize, input: &mut Input) {
        *input = Input::from_values(self.network.architecture.input(), self.steps, &self.inputs[image]);
    }

    fn pass(&self) -> Pass {
        let packed = Packed::new(&self.network, Isa::best()).unwrap();
        let mut meter = Meter::new(&self.network, self.steps, PassKey::first(Stimulus::Clean), 1);
        let measured = infer(
            &packed,
            self.steps,
            self.inputs.len(),
            &Scratch::default(),
            |i, input| self.show(i, input),
            |i, trace| meter.measure(trace, self.labels[i], i as u32),
        )
        .unwrap();
        measured.into_iter().for_each(|image| meter.add(image));
        meter.finish()
    }

    fn activity(&self) -> ActivityPass {
        self.pass().activity.unwrap()
    }
}

#[test]
fn operations_norms_and_spikes_equal_the_golden_files() {
    for name in CASES {
        let golden = Golden::load(name);
        let (pass, images) = (golden.pass(), golden.inputs.len() as f64);
        let activity = pass.activity.unwrap();
        // The relative error of a layer's weighted input: both programs round a sum once for each input, by at
        // most half a unit in the last place of single precision. The four inputs of a pool have no weights.
        let rounding = |layer: &Layer| {
            let shape = layer.parameter.map(|index| &golden.network.architecture.parameters()[index].shape);
            let inputs = shape.map_or(4, |shape| shape[1..].iter().product());
            inputs as f64 * f64::from(f32::EPSILON)
        };
        let expected = golden.settings["synops_per_image"].as_array().unwrap();
        assert_eq!(expected.len(), activity.synops.len(), "{name}");
        for (ours, golden) in activity.synops.iter().zip(expected) {
            // The file holds the batch mean; times the number of images it is a whole number.
            assert_eq!((golden.as_f64().unwrap() * images).round(), *ours as f64, "{name}");
        }
        assert_eq!(activity.image_synops.iter().sum::<u64>(), activity.synops.iter().sum::<u64>());
        let mut counted = 0;
        for (i, layer) in golden.network.architecture.hidden().iter().enumerate() {
            let counts = golden.array(&format!("spike_count.{}", i + 1));
            let spikes: u64 = counts.iter().map(|&n| n as u64).sum();
            assert_eq!(activity.spikes[i], spikes, "{name} {}", layer.name);
            if layer.kind != LayerKind::Pool {
                counted += spikes;
            }
            let per_neuron: Vec<f32> = (0..layer.output.neurons())
                .map(|neuron| counts.iter().skip(neuron).step_by(layer.output.neurons()).sum())
                .collect();
            let dead = per_neuron.iter().filter(|&&n| n == 0.0).count() as u64;
            assert_eq!(activity.dead[i], dead, "{name} {}", layer.name);
            let norms = golden.array(&format!("weighted_input_norm.{}", i + 1));
            let mean = norms.iter().map(|&x| f64::from(x)).sum::<f64>() / images;
            let (difference, tolerance) = ((activity.norms[i].unwrap() / mean - 1.0).abs(), rounding(layer));
            assert!(difference <= tolerance, "{name} {}: {difference} above {tolerance}", layer.name);
        }
        assert_eq!(activity.image_spikes.iter().sum::<u64>(), counted, "{name}");
        let loss = golden.settings["loss"].as_f64().unwrap();
        // A square has twice the relative error of its root.
        let output = golden.network.architecture.layers().last().unwrap();
        let (difference, tolerance) =
            ((pass.sse.unwrap() / (2.0 * loss) - 1.0).abs(), 2.0 * rounding(output));
        assert!(difference <= tolerance, "{name}: {difference} above {tolerance}");
    }
}

#[test]
fn neurobench_counts_the_same() {
    let record: serde_json::Value = serde_json::from_str(include_str!("neurobench.json")).unwrap();
    let rows = record["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * CASES.len());
    for row in rows {
        let mut golden = Golden::load(row["case"].as_str().unwrap());
        if row["zeroed"].as_bool().unwrap() {
            for parameter in golden.network.architecture.parameters().to_vec() {
                golden.network.weights[parameter.offset..][..parameter.len]
                    .iter_mut()
                    .step_by(5)
                    .for_each(|w| *w = 0.0);
            }
        }
        let activity = golden.activity();
        let images = golden.inputs.len() as f64;
        let sites: usize =
            golden.network.architecture.hidden().iter().map(|l| l.output.neurons() * golden.steps).sum();
        let ours = [
            ("effective_acs", activity.effective_acs as f64 / images),
            ("effective_macs", activity.effective_macs as f64 / images),
            ("dense", (dense_macs(&golden.network) * golden.steps as u64) as f64),
            (
                "activation_sparsity",
                1.0 - activity.spikes.iter().sum::<u64>() as f64 / (images * sites as f64),
            ),
            ("footprint", footprint(&golden.network) as f64),
            (
                "dense_neuron_ops",
                (updates::OPERATIONS * updates::dense(&golden.network, golden.steps)) as f64,
            ),
        ];
        for (key, ours) in ours {
            let theirs = row[key].as_f64().unwrap();
            // Counts are exact; means over images may differ in the last bits.
            assert!((ours - theirs).abs() <= 1e-12 * theirs.abs().max(1.0), "{row}: {key} {ours}");
        }
        // NeuroBench compares potentials, so it does not count a spike that meets a weight of zero.
        let ours = (updates::OPERATIONS * activity.neuron_updates) as f64 / images;
        let theirs = row["effective_neuron_ops"].as_f64().unwrap();
        if row["zeroed"].as_bool().unwrap() {
            assert!(theirs <= ours && ours <= row["dense_neuron_ops"].as_f64().unwrap(), "{row}: {ours}");
        } else {
            assert!((ours - theirs).abs() <= 1e-12 * theirs, "{row}: {ours}");
        }
    }
}

#[test]
fn without_zero_weights_effective_operations_are_the_synops() {
    for name in CASES {
        let golden = Golden::load(name);
        assert!(golden.network.weights.iter().all(|&w| w != 0.0));
        let activity = golden.activity();
        let synops: u64 = activity.synops.iter().sum();
        assert_eq!(activity.effective_acs + activity.effective_macs, synops, "{name}");
    }
}

#[test]
fn membranes_cross_the_threshold_where_neurons_fire() {
    for name in CASES {
        let golden = Golden::load(name);
        let packed = Packed::new(&golden.network, Isa::best()).unwrap();
        let v_th = f64::from(golden.network.v_th());
        let checked = infer(
            &packed,
            golden.steps,
            1,
            &Scratch::default(),
            |i, input| golden.show(i, input),
            |_, trace| {
                let mut checked = 0;
                for (i, layer) in golden.network.architecture.layers().iter().enumerate() {
                    for neuron in 0..layer.output.neurons() {
                        let pixels = layer.output.pixels();
                        match layer.kind {
                            LayerKind::Pool => {}
                            LayerKind::Conv | LayerKind::Full => {
                                let potentials = potential(&golden.network, trace, i, neuron);
                                for (step, u) in potentials.iter().enumerate() {
                                    let fired = trace.spikes(i).get(neuron % pixels, step, neuron / pixels);
                                    assert_eq!(*u > v_th, fired, "{name} {} {neuron} {step}", layer.name);
                                    checked += 1;
                                }
                            }
                            LayerKind::Output => {
                                let last = *potential(&golden.network, trace, i, neuron).last().unwrap();
                                let prediction = f64::from(trace.prediction()[neuron]);
                                let error = (last / golden.steps as f64 - prediction).abs();
                                assert!(error < 1e-5 * prediction.abs().max(1.0), "{name} {neuron}");
                            }
                        }
                    }
                }
                checked
            },
        )
        .unwrap();
        assert!(checked[0] > 0, "{}", golden.name);
    }
}

#[test]
fn zero_weights_cost_nothing() {
    let mut golden = Golden::load("lif_fc");
    let all = Synapses::new(&golden.network);
    let fc3 = golden.network.architecture.parameters()[2].clone();
    golden.network.weights[fc3.offset..][..fc3.len].fill(0.0);
    let without = Synapses::new(&golden.network);
    let packed = Packed::new(&golden.network, Isa::best()).unwrap();
    let counts = infer(
        &packed,
        golden.steps,
        1,
        &Scratch::default(),
        |i, input| golden.show(i, input),
        |_, trace| (all.operations(trace).acs - without.operations(trace).acs, trace.synops()[2]),
    )
    .unwrap();
    assert_eq!(counts[0].0, counts[0].1);
}

#[test]
fn a_network_that_overflows_is_measured_without_infinities() {
    let mut golden = Golden::load("lif_conv");
    // The weights are finite, but their sums overflow f32.
    golden.network.weights.iter_mut().for_each(|w| *w = w.signum() * 3e38);
    let pass = golden.pass();
    assert_eq!((pass.images(), pass.sse), (golden.inputs.len() as u64, None));
    let activity = pass.activity.as_ref().unwrap();
    assert!(activity.norms.contains(&None));
    // What is stored on disk can be read back unchanged: nothing in it is infinite or NaN.
    let text = serde_json::to_string(&pass).unwrap();
    assert_eq!(serde_json::from_str::<Pass>(&text).unwrap(), pass);
}
