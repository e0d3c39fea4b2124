//! Compares every kernel with the dense reference implementation in many small random cases. Other tests
//! check that results do not depend on threads, and that invalid samples are refused.

mod dense;

use dense::compare::{Case, Draw, agree};
use leaklab_engine::philox::{Purpose, Stream};
use leaklab_engine::*;

const NETWORKS: [&str; 13] = [
    "1x1x1-1FC-1o",
    "2x1x9-5C3-7C3-3o",
    "1x9x1-17C3-4FC-2o",
    "6x6-5C3-2P-7FC-3o",
    "5x5-33C3-16C3-2P-12C3-5o",
    "4x4x4-20C3-65C3-2P-33FC-17FC-20o",
    "1x2x3-3FC-70FC-3o",
    "7x3x5-130C3-9C3-2s-4o",
    "2x7x5-64C3-2P-6C3-10o",
    "2x4x5-100C3-70C3-2P-3o",
    "1x8x8-16C3-32C3-2P-40FC-10o",
    "3x10x4-6C3-6C3-6C3-2P-2P-3o",
    "40x3x3-8C3-3o",
];

#[test]
fn networks_agree_with_the_dense_reference_implementation() {
    let scratch = Scratch::default(); // shared by all cases, so that each finds used buffers
    for number in 0..65 {
        let mut draw = Draw::new(number);
        let case = Case {
            notation: NETWORKS[number as usize % NETWORKS.len()],
            tau: draw.pick(&[f64::INFINITY, 30.0, 5.0, 100.0]),
            mixed: draw.pick(&[false, true]),
            v_th: draw.pick(&[1.0, 0.5]),
            steps: draw.pick(&[1, 2, 7, 20, 33]),
            samples: draw.pick(&[1, 3, 5]),
            rate: draw.pick(&[0.0, 0.1, 0.5, 1.0]),
            real: draw.pick(&[false, false, true]),
            dropout: draw.pick(&[false, true]),
            bias: 0.2,
        };
        agree(&case, &mut draw, &scratch);
    }
}

/// Ten training steps have bit-identical results on 1, 2 and 3 threads, and with weights that
/// are packed in place or into a new copy.
#[test]
fn results_do_not_depend_on_threads() {
    let architecture = Architecture::parse("2x9x9-20C3-17C3-2P-40FC-5o").unwrap();
    let start = Network::initialised(architecture, Leak::uniform(Tau::new(20.0).unwrap()), 1.0, 5).unwrap();
    let shape = start.architecture.input();
    let (steps, samples) = (12, 75);
    let train = |threads: usize, in_place: bool| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut network = start.clone();
            let mut state = Optimiser::SGD.start(network.weights.len());
            let mut gradient = vec![0.0; network.weights.len()];
            let scratch = Scratch::default();
            let mut predictions = Vec::new();
            let mut packed = Packed::new(&network, Isa::best()).unwrap();
            for epoch in 0..10 {
                if in_place {
                    packed.update(&network).unwrap();
                } else {
                    packed = Packed::new(&network, Isa::best()).unwrap();
                }
                let prepare = |i: usize, input: &mut Input, masks: &mut Masks| {
                    let image: Vec<f32> = {
                        let stream = Stream::new(3, Purpose::Benchmark, 0, i as u32);
                        (0..shape.neurons()).map(|p| 2.0 * stream.uniform_at(p) - 1.0).collect()
                    };
                    let encoding = encode::Encoding::clean(steps);
                    encode::encode(&image, shape, &encoding, 3, epoch, i as u32, input);
                    masks.draw(0.2, 3, epoch, i as u32, &start.architecture);
                    i % 5
                };
                let mode = Gradient::StraightThrough;
                let measure = |_: usize, trace: &Trace| trace.prediction().to_vec();
                predictions =
                    train_batch(&packed, steps, samples, mode, &scratch, prepare, measure, &mut gradient)
                        .unwrap();
                Optimiser::SGD.step(&mut network.weights, &gradient, &mut state, 0.1);
            }
            (network.weights, predictions)
        })
    };
    let one = train(1, false);
    assert_ne!(one.0, start.weights);
    assert!(one == train(1, true), "packing in place differs from packing a new copy");
    assert!(one == train(2, true), "2 threads differ from 1");
    assert!(one == train(3, true), "3 threads differ from 1");
}

#[test]
fn bad_samples_are_named() {
    let architecture = Architecture::parse("1x2x2-3FC-2o").unwrap();
    let mut network =
        Network::initialised(architecture, Leak::uniform(Tau::new(20.0).unwrap()), 1.0, 5).unwrap();
    let mut packed = Packed::new(&network, Isa::best()).unwrap();
    let shape = network.architecture.input();
    let run = |label: usize, steps: usize, values: Vec<f32>, shape: Shape| {
        let mut gradient = vec![0.0; network.weights.len()];
        let prepare = |_: usize, input: &mut Input, _: &mut Masks| {
            *input = Input::from_values(shape, values.len() / shape.neurons(), &values);
            label
        };
        let mode = Gradient::StraightThrough;
        let outcome =
            train_batch(&packed, steps, 1, mode, &Scratch::default(), prepare, |_, _| (), &mut gradient);
        outcome.err().map(|e| e.to_string())
    };
    assert_eq!(run(1, 2, vec![1.0; 8], shape), None);
    assert!(run(2, 2, vec![1.0; 8], shape).unwrap().contains("sample 0: label 2 is out of range"));
    assert!(run(0, 3, vec![1.0; 8], shape).unwrap().contains("2 time steps"));
    let flat = Shape { channels: 1, height: 1, width: 4 };
    assert!(run(0, 2, vec![1.0; 8], flat).unwrap().contains("the network takes"));
    let mut values = vec![0.5; 8];
    values[5] = f32::NAN;
    assert!(run(0, 2, values, shape).unwrap().contains("NaN at element 5"));
    network.weights[13] = f32::INFINITY;
    assert!(Packed::new(&network, Isa::best()).unwrap_err().to_string().contains("'fc2'"));
    assert!(packed.update(&network).unwrap_err().to_string().contains("'fc2'"));
}

/// The starts of lists are stored in 32 bits, so samples whose lists could become longer are refused.
#[test]
fn samples_too_long_for_a_network_are_refused() {
    let packed = |notation: &str| {
        let architecture = Architecture::parse(notation).unwrap();
        let network = Network::new(architecture, Leak::uniform(Tau::new(20.0).unwrap()), 1.0).unwrap();
        Packed::new(&network, Isa::best()).unwrap()
    };
    // The limits are four images of 65,535 neurons, a row of 65,535 pixels with three taps of 128 channels
    // and up to four entries of padding, and an image of 255x255 pixels with 128 channels.
    let most = u32::MAX as usize;
    assert_eq!(packed("1x1x1-65535FC-1o").most_steps(), (most / (4 * 65_535), "fc2"));
    assert_eq!(packed("1x1x65535-128C3-1C3-1o").most_steps(), (most / (65_535 * (3 * 128 + 4)), "conv2"));
    assert_eq!(packed("1x255x255-128C3-2P-1o").most_steps(), (most / (255 * 255 * 128), "pool1"));
    let cifar10 = packed("32x32-64C3-64C3-2P-128C3-128C3-2P-256C3-256C3-256C3-2s-1024FC-10o");
    assert_eq!(cifar10.most_steps().0, 65_535);
    let shape = Shape { channels: 1, height: 1, width: 1 };
    let run = |steps: usize| {
        let show = |_: usize, input: &mut Input| *input = Input::silent(shape, steps);
        infer(&packed("1x1x1-65535FC-1o"), steps, 1, &Scratch::default(), show, |_, _| ())
    };
    assert_eq!(run(2), Ok(vec![()]));
    let message = run(16_385).unwrap_err().to_string();
    assert!(message.contains("16385 time steps") && message.contains("'fc2'"), "{message}");
    assert!(message.contains("at most 16384"), "{message}");
}

/// The fields of an input are public, so it can be inconsistent. It must then be refused with an error.
#[test]
fn inputs_that_contradict_themselves_are_refused() {
    let architecture = Architecture::parse("4x3x3-5C3-2o").unwrap();
    let network = Network::initialised(architecture, Leak::uniform(Tau::new(20.0).unwrap()), 1.0, 5).unwrap();
    let packed = Packed::new(&network, Isa::best()).unwrap();
    let shape = network.architecture.input();
    let run = |input: Input| {
        infer(&packed, 2, 1, &Scratch::default(), |_, shown| *shown = input.clone(), |_, trace| trace.class())
    };
    assert!(run(Input::silent(shape, 2)).is_ok());
    for input in [
        Input::Ternary { shape, spikes: Spikes::new(9, 2, 4) },
        Input::Ternary { shape, spikes: Spikes::new(8, 2, 8) },
        Input::Real { shape, steps: 2, values: vec![0.0; 71] },
    ] {
        assert!(run(input).unwrap_err().to_string().contains("does not match the shape of the input"));
    }
}
