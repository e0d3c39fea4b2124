//! NIR export and import, what is refused, and the graph's own equations compared with the engine.

use leaklab_engine::{Architecture, Input, Isa, LayerKind, Leak, Network, Packed, Scratch, Tau, infer};
use leaklab_lab::config::{RunConfig, Settings};
use leaklab_lab::exchange::nir::{self, Array, Graph, Node, Padding};
use leaklab_lab::exchange::{ExportOptions, ImportOptions, Model, Target, export, import};
use leaklab_lab::run::Weights;
use leaklab_lab::train::{self, Control};

fn network(notation: &str, tau: f64, v_th: f32) -> Network {
    let leak = Leak::uniform(Tau::new(tau).unwrap());
    Network::initialised(Architecture::parse(notation).unwrap(), leak, v_th, 5).unwrap()
}

fn python() -> Graph {
    nir::parse(include_bytes!("data/python.nir").to_vec()).unwrap()
}

#[test]
fn nir_to_leaklab_to_nir_is_lossless() {
    for notation in ["1x4x4-12FC-9FC-3o", "2x7x5-6C3-2P-4C3-10FC-4o", "8x8-8C3-10o"] {
        for tau in [0.5, 2.0, 30.0, 33.3, 100.0, 1e6, f64::INFINITY] {
            for (dt, if_r, if_as_lif) in [(1e-4, 1.0, false), (1e-3, 1e3, false), (1e-4, 1.0, true)] {
                let network = network(notation, tau, 0.8);
                let options = ExportOptions { dt, if_r, if_as_lif, ..Default::default() };
                let bytes = nir::to_bytes(&export(&network, &options).unwrap()).unwrap();
                let graph = nir::parse(bytes.clone()).unwrap();
                let back =
                    import(&graph, &ImportOptions { dt: Some(dt), if_r, ..Default::default() }).unwrap();
                assert!(back.notes.is_empty(), "{:?}", back.notes);
                assert_eq!(back.network, network, "{notation} tau {tau} dt {dt}");
                assert_eq!(nir::to_bytes(&export(&back.network, &options).unwrap()).unwrap(), bytes);
            }
        }
    }
}

/// A model states how its input is made: for images, how pixels become spikes; for recordings, how they are
/// divided into steps.
#[test]
fn models_of_recordings_have_no_encoder() {
    let folder = tempfile::tempdir().unwrap();
    let images = ["dataset=digits", "network=1x8x8-4FC-10o"];
    let equal = ["dataset=digits-events", "network=2x16x16-4FC-10o"];
    let timed = ["dataset=digits-events", "network=2x8x8-4FC-10o", "downsample=2", "step_us=5000"];
    let in_images = ["normalise", "encoder"];
    for (name, settings, has, lacks) in [
        ("images", &images[..], &in_images[..], &["step_us", "downsample"][..]),
        ("equal", &equal[..], &["downsample"][..], &["step_us", "normalise", "encoder"][..]),
        ("timed", &timed[..], &["step_us", "downsample"][..], &in_images[..]),
    ] {
        let mut all = Settings::default();
        let small = ["tau=30", "epochs=1", "time_steps=8", "train_limit=20", "test_limit=10"];
        small.iter().chain(settings).for_each(|assignment| all.assign(assignment).unwrap());
        let (run, out) = (folder.path().join(name), folder.path().join(format!("{name}-model")));
        let config = RunConfig::resolve(all).unwrap();
        train::train(&config, &run, &train::Options::default(), &mut |_| Control::Continue).unwrap();
        Model::open(&run, Weights::Last).unwrap().write(&out).unwrap();
        let text = std::fs::read_to_string(out.join("config.json")).unwrap();
        let config: serde_json::Value = serde_json::from_str(&text).unwrap();
        let card = std::fs::read_to_string(out.join("README.md")).unwrap();
        for key in has {
            assert!(
                !config[key].is_null() && card.contains(&format!("| {key} | ")),
                "{name}: {key}: {text}{card}"
            );
        }
        assert!(lacks.iter().all(|key| config[key].is_null()), "{name}: {text}");
        assert_eq!(card.contains("| encoder |"), name == "images", "{card}");
        let shape =
            if name == "images" { "| image | 1 x 8 x 8 (channel," } else { "(polarity, row, column)" };
        assert!(card.contains(shape), "{card}");
        assert_eq!(card.contains("each recording is divided into equal steps"), name == "equal", "{card}");
        assert_eq!(Model::open(&out, Weights::Last).unwrap().config.downsample.is_some(), name != "images");
    }
}

#[test]
fn leak_by_layer_is_exported_and_imported() {
    let mut leak = Leak::uniform(Tau::new(50.0).unwrap());
    leak.layer_tau.insert("conv2".into(), Tau::new(5.0).unwrap());
    leak.layer_tau.insert("fc1".into(), Tau::INFINITE);
    leak.readout_tau = Some(Tau::new(12.5).unwrap());
    let network = network("2x7x5-6C3-2P-4C3-10FC-4o", 50.0, 0.8).with_leak(leak).unwrap();
    for if_as_lif in [false, true] {
        let options = ExportOptions { if_as_lif, ..Default::default() };
        let graph = nir::parse(nir::to_bytes(&export(&network, &options).unwrap()).unwrap()).unwrap();
        let back = import(&graph, &ImportOptions::default()).unwrap();
        assert_eq!((back.network.leak(), back.notes.len()), (network.leak(), 0));
        assert_eq!(back.network, network);
    }
}

#[test]
fn a_graph_of_pythons_nir_is_imported_exactly() {
    let graph = python();
    let imported = import(&graph, &ImportOptions::default()).unwrap();
    assert_eq!(imported.network.architecture.to_string(), "1x4x4-2C3-2P-5FC-3o");
    assert_eq!(*imported.network.leak(), Leak::uniform(Tau::new(30.0).unwrap()));
    assert_eq!(imported.network.v_th(), 1.0);
    assert!(imported.notes.is_empty(), "{:?}", imported.notes);
    for (node, tensor) in [("c", "conv1"), ("a", "fc1"), ("o", "fc2")] {
        let (Node::Conv2d { weight, .. } | Node::Linear { weight } | Node::Affine { weight, .. }) =
            &graph.nodes[node]
        else {
            panic!("{node} has no weights");
        };
        let ours: Vec<f64> = imported.network.tensor(tensor).unwrap().iter().map(|&w| f64::from(w)).collect();
        assert_eq!(ours, weight.values);
    }
    let out = export(&imported.network, &ExportOptions::default()).unwrap();
    // Its pool has the threshold 0.75, ours is written with 0.875, which means the same.
    for (theirs, ours) in [("c.lif", "conv1_lif"), ("a.lif", "fc1_lif"), ("o.li", "fc2_li")] {
        assert_eq!(graph.nodes[theirs], out.nodes[ours]);
    }
}

/// Changes one node of the Python graph and returns the refusal.
fn refusal(node: &str, change: impl FnOnce(&mut Node)) -> String {
    let mut graph = python();
    change(graph.nodes.get_mut(node).unwrap());
    import(&graph, &ImportOptions::default()).unwrap_err().to_string()
}

#[test]
fn what_has_no_counterpart_is_named() {
    let uneven = |array: &mut Array| array.values[0] += 0.5;
    for (node, word, message) in [
        (
            "c",
            "stride",
            refusal("c", |n| {
                if let Node::Conv2d { stride, .. } = n {
                    *stride = [2, 2]
                }
            }),
        ),
        (
            "c",
            "padding",
            refusal("c", |n| {
                if let Node::Conv2d { padding, .. } = n {
                    *padding = Padding::Word("valid".into())
                }
            }),
        ),
        (
            "c",
            "bias",
            refusal("c", |n| {
                if let Node::Conv2d { bias, .. } = n {
                    bias.values[1] = 0.1
                }
            }),
        ),
        (
            "a",
            "bias",
            refusal("a", |n| {
                if let Node::Affine { bias, .. } = n {
                    bias.values[1] = 0.1
                }
            }),
        ),
        (
            "c.lif",
            "v_reset",
            refusal("c.lif", |n| {
                if let Node::Lif { v_reset, .. } = n {
                    v_reset.values.fill(-1.0)
                }
            }),
        ),
        (
            "c.lif",
            "differs",
            refusal("c.lif", |n| {
                if let Node::Lif { v_threshold, .. } = n {
                    uneven(v_threshold)
                }
            }),
        ),
        (
            "a.lif",
            "--dt",
            refusal("a.lif", |n| {
                if let Node::Lif { r, .. } = n {
                    r.values.fill(1.0)
                }
            }),
        ),
        (
            "p.if",
            "0.75",
            refusal("p.if", |n| {
                if let Node::If { v_threshold, .. } = n {
                    v_threshold.values.fill(1.0)
                }
            }),
        ),
        (
            "p.if",
            "--if-r",
            refusal("p.if", |n| {
                if let Node::If { r, .. } = n {
                    r.values.fill(1e4)
                }
            }),
        ),
        (
            "p",
            "2x2",
            refusal("p", |n| {
                if let Node::Pool2d { kernel_size, .. } = n {
                    *kernel_size = [3, 3]
                }
            }),
        ),
        (
            "flat",
            "batch",
            refusal("flat", |n| {
                if let Node::Flatten { start_dim, .. } = n {
                    *start_dim = 1
                }
            }),
        ),
        (
            "o.li",
            "spikes at the output",
            refusal("o.li", |n| {
                let full = |value| Array::full(&[3], value);
                *n = Node::If { r: full(1.0), v_threshold: full(1.0), v_reset: full(0.0) };
            }),
        ),
        ("c.lif", "CubaLIF", refusal("c.lif", |n| *n = Node::Other("CubaLIF".into()))),
        ("a", "Delay", refusal("a", |n| *n = Node::Other("Delay".into()))),
    ] {
        assert!(message.contains(&format!("'{node}'")) && message.contains(word), "{message}");
    }
}

#[test]
fn graphs_that_are_no_chains_are_named() {
    let with_edge = |from: &str, to: &str| {
        let mut graph = python();
        graph.edges.push((from.into(), to.into()));
        import(&graph, &ImportOptions::default()).unwrap_err().to_string()
    };
    assert!(with_edge("a.lif", "a").contains("node 'a'"), "recurrence");
    assert!(with_edge("c", "a").contains("'c' has no counterpart in LeakLab: it has several outputs"));
    let mut graph = python();
    graph.edges.retain(|(from, _)| from != "p");
    assert!(import(&graph, &ImportOptions::default()).unwrap_err().to_string().contains("node 'p'"));
    graph.edges.push(("p".into(), "nowhere".into()));
    assert!(import(&graph, &ImportOptions::default()).unwrap_err().to_string().contains("'nowhere'"));
}

#[test]
fn gains_and_thresholds_are_folded_into_the_weights() {
    let mut graph = python();
    for (name, threshold) in [("c.lif", 1.0), ("a.lif", 2.0)] {
        let Some(Node::Lif { r, v_threshold, .. }) = graph.nodes.get_mut(name) else { panic!() };
        r.values.fill(1.0);
        v_threshold.values.fill(threshold);
    }
    let options = ImportOptions { dt: Some(1e-4), ..Default::default() };
    let imported = import(&graph, &options).unwrap();
    let plain = import(&python(), &options).unwrap().network;
    let gain = 1.0 - (-1.0f64 / 30.0).exp();
    for (tensor, scale) in [("conv1", gain), ("fc1", gain / 2.0), ("fc2", 1.0)] {
        for (&ours, &theirs) in
            imported.network.tensor(tensor).unwrap().iter().zip(plain.tensor(tensor).unwrap())
        {
            assert!(
                (f64::from(ours) - scale * f64::from(theirs)).abs() <= 3e-7 * f64::from(theirs.abs()),
                "{tensor}"
            );
        }
    }
    assert_eq!(imported.notes.len(), 2, "{:?}", imported.notes);
}

#[test]
fn every_target_is_read_back() {
    let network = network("2x7x5-6C3-2P-4C3-10FC-4o", 30.0, 0.8);
    for target in Target::ALL {
        let options = target.options();
        let graph = nir::parse(nir::to_bytes(&export(&network, &options).unwrap()).unwrap()).unwrap();
        let ends_in = graph.edges.iter().find(|(_, to)| to == "output").unwrap().0.as_str();
        assert_eq!(ends_in, if target == Target::Generic { "fc2_li" } else { "fc2" }, "{target:?}");
        let back = ImportOptions { dt: Some(options.dt), if_r: options.if_r, integrate_output: true };
        let back = import(&graph, &back).unwrap().network;
        assert_eq!(back.leak(), network.leak(), "{target:?}");
        let exact = back.weights == network.weights;
        // Norse's weights carry r and are divided by it again: each product is within half a unit in the last
        // place of float32, and r and tau are rounded too.
        let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 4.0 * f32::EPSILON / 2.0 * b.abs();
        assert!(exact || (target == Target::Norse && back.weights.iter().zip(&network.weights).all(near)));
        assert_eq!(exact, target != Target::Norse, "{target:?}");
        assert_eq!(target.name().parse::<Target>(), Ok(target));
    }
    assert!("brian".parse::<Target>().unwrap_err().contains("'brian'; there are generic, norse"));
}

#[test]
fn pools_may_have_every_threshold_that_means_the_same() {
    let network = network("1x4x4-2C3-2P-3o", 30.0, 1.0);
    for (sum_pool, full) in [(false, 1.0), (true, 4.0)] {
        let mut graph = export(&network, &ExportOptions { sum_pool, ..Default::default() }).unwrap();
        for (threshold, means_the_same) in
            [(0.74, false), (0.75, true), (0.875, true), (0.999, true), (1.0, false), (1.5, false)]
        {
            let Some(Node::If { v_threshold, .. }) = graph.nodes.get_mut("pool1_if") else { panic!() };
            v_threshold.values.fill(full * threshold);
            let back = import(&graph, &ImportOptions::default());
            assert_eq!(back.is_ok(), means_the_same, "{threshold}");
        }
    }
}

#[test]
fn networks_that_nir_cannot_express_are_refused() {
    let mut net = network("1x4x4-12FC-3o", 1e13, 1.0);
    assert!(export(&net, &ExportOptions::default()).unwrap_err().to_string().contains("tau = 1"));
    net = network("1x4x4-12FC-3o", 30.0, 1.0);
    net.weights[3] = f32::NAN;
    assert!(export(&net, &ExportOptions::default()).unwrap_err().to_string().contains("'fc1' hold NaN"));
    net.weights[3] = 0.0;
    assert!(
        export(&net, &ExportOptions { dt: 0.0, ..Default::default() })
            .unwrap_err()
            .to_string()
            .contains("dt is 0")
    );
}

/// One step of a node by NIR's definition, forward Euler with `dt`, in float64.
fn euler(node: &Node, dt: f64, input: &[f64], v: &mut Vec<f64>, shape: &mut Vec<usize>) -> Vec<f64> {
    let mut membrane = |factor: &dyn Fn(usize, f64, f64) -> f64, fires: Option<(&Array, &Array)>| {
        v.resize(input.len(), 0.0);
        (0..input.len())
            .map(|i| {
                v[i] += dt * factor(i, v[i], input[i]);
                match fires {
                    Some((threshold, reset)) if v[i] > threshold.values[i] => {
                        v[i] = reset.values[i];
                        1.0
                    }
                    Some(_) => 0.0,
                    None => v[i],
                }
            })
            .collect()
    };
    match node {
        Node::Input { shape: s } => {
            *shape = s.clone();
            input.to_vec()
        }
        Node::Flatten { .. } | Node::Output { .. } => input.to_vec(),
        Node::Conv2d { weight, .. } => {
            let (outs, ins, h, w) = (weight.shape[0], weight.shape[1], shape[1] as isize, shape[2] as isize);
            let mut out = Vec::new();
            for (o, y, x) in (0..outs).flat_map(|o| (0..h).flat_map(move |y| (0..w).map(move |x| (o, y, x))))
            {
                let mut sum = 0.0;
                for (c, ky, kx) in
                    (0..ins).flat_map(|c| (0..3).flat_map(move |ky| (0..3).map(move |kx| (c, ky, kx))))
                {
                    let (iy, ix) = (y + ky - 1, x + kx - 1);
                    if (0..h).contains(&iy) && (0..w).contains(&ix) {
                        let tap = weight.values[((o * ins + c) * 3 + ky as usize) * 3 + kx as usize];
                        sum += tap * input[(c as isize * h * w + iy * w + ix) as usize];
                    }
                }
                out.push(sum);
            }
            shape[0] = outs;
            out
        }
        Node::Pool2d { .. } => {
            let (c, h, w) = (shape[0], shape[1] / 2, shape[2] / 2);
            let at = |k: usize, y: usize, x: usize| input[(k * shape[1] + y) * shape[2] + x];
            let mean = |k, y, x| {
                (at(k, 2 * y, 2 * x)
                    + at(k, 2 * y, 2 * x + 1)
                    + at(k, 2 * y + 1, 2 * x)
                    + at(k, 2 * y + 1, 2 * x + 1))
                    / 4.0
            };
            let out =
                (0..c).flat_map(|k| (0..h).flat_map(move |y| (0..w).map(move |x| mean(k, y, x)))).collect();
            *shape = vec![c, h, w];
            out
        }
        Node::Linear { weight } => weight
            .values
            .chunks(input.len())
            .map(|row| row.iter().zip(input).map(|(w, x)| w * x).sum())
            .collect(),
        Node::If { r, v_threshold, v_reset } => {
            membrane(&|i, _, x| r.values[i] * x, Some((v_threshold, v_reset)))
        }
        Node::Lif { tau, r, v_leak, v_threshold, v_reset } => membrane(
            &|i, v, x| (v_leak.values[i] - v + r.values[i] * x) / tau.values[i],
            Some((v_threshold, v_reset)),
        ),
        Node::Li { tau, r, v_leak } => {
            membrane(&|i, v, x| (v_leak.values[i] - v + r.values[i] * x) / tau.values[i], None)
        }
        Node::I { r } => membrane(&|i, _, x| r.values[i] * x, None),
        Node::Affine { .. } | Node::Other(_) => unreachable!(),
    }
}

#[test]
fn the_graphs_equations_give_the_engines_spikes() {
    let steps = 30;
    for (tau, if_r, if_as_lif) in
        [(10.0, 1e4, false), (f64::INFINITY, 1e4, false), (f64::INFINITY, 1.0, true)]
    {
        let network = network("2x6x6-6C3-2P-8C3-12FC-4o", tau, 1.0);
        let graph = export(&network, &ExportOptions { if_r, if_as_lif, ..Default::default() }).unwrap();
        let pixels = network.architecture.input().neurons();
        let values: Vec<f32> =
            (0..steps * pixels).map(|i| [0.0, 1.0, 0.0, -1.0, 1.0][(i * i + i / 7) % 5]).collect();
        let mut names = vec!["input".to_owned()];
        while let Some((_, to)) = graph.edges.iter().find(|(from, _)| from == names.last().unwrap()) {
            names.push(to.clone());
        }
        let mut potentials = vec![Vec::new(); names.len()];
        let mut counts = vec![0.0; names.len()];
        let mut last = Vec::new();
        let mut peak = 0.0f64;
        for t in 0..steps {
            let mut x: Vec<f64> =
                values[t * pixels..(t + 1) * pixels].iter().map(|&v| f64::from(v)).collect();
            let mut shape = Vec::new();
            for (i, name) in names.iter().enumerate() {
                x = euler(&graph.nodes[name], 1e-4, &x, &mut potentials[i], &mut shape);
                counts[i] += x.iter().sum::<f64>();
            }
            last = x;
            peak = last.iter().fold(peak, |peak, v| peak.max(v.abs()));
        }
        let packed = Packed::new(&network, Isa::best()).unwrap();
        let show = |_: usize, input: &mut Input| {
            *input = Input::from_values(network.architecture.input(), steps, &values)
        };
        let hidden = network.architecture.layers().len() - 1;
        let measure = |_: usize, trace: &leaklab_engine::Trace| {
            let counts: Vec<u64> = (0..hidden).map(|layer| trace.spikes(layer).count()).collect();
            (counts, trace.prediction().to_vec())
        };
        let (ours, prediction) =
            infer(&packed, steps, 1, &Scratch::default(), show, measure).unwrap().remove(0);
        let theirs: Vec<u64> = names
            .iter()
            .zip(&counts)
            .filter(|(name, _)| matches!(graph.nodes[*name], Node::If { .. } | Node::Lif { .. }))
            .map(|(_, &count)| count as u64)
            .collect();
        assert_eq!(ours, theirs, "tau {tau}");
        assert!(ours.iter().all(|&n| n > 0), "{ours:?}");
        // The engine computes in single precision: at each step it rounds the potential of an output once for
        // each input spike, and for the decay, its product and tau. Each error is at most half a unit in the
        // last place of the largest sum, and the decay lets none grow. Dividing by T divides their sum by the
        // number of steps, and rounds once more.
        let output = network.architecture.parameters().last().unwrap();
        let rows = network.weights[output.offset..][..output.len].chunks(output.shape[1]);
        let within_a_step = rows.map(|row| row.iter().map(|w| f64::from(w.abs())).sum()).fold(0.0, f64::max);
        let roundings = output.shape[1] + 3 + 1;
        let tolerance = roundings as f64 * f64::from(f32::EPSILON / 2.0) * (peak + within_a_step);
        for (p, v) in prediction.iter().zip(&last) {
            let difference = (f64::from(*p) - v / steps as f64).abs();
            assert!(difference <= tolerance, "{p} {v}: {difference} above {tolerance}");
        }
        assert_eq!(network.architecture.layers()[hidden].kind, LayerKind::Output);
    }
}
