//! Times inference and training of the paper's CIFAR-10 model at about 5 % activity, on one thread:
//! `cargo bench -p leaklab-engine`. This benchmark needs only the engine, which is convenient for work on the
//! kernels; `leaklab bench` measures any network.

use leaklab_engine::encode::{Encoding, encode};
use leaklab_engine::philox::{Purpose, Stream};
use leaklab_engine::simd::add_random_rows;
use leaklab_engine::*;
use std::time::Instant;

const CIFAR10: &str = "32x32-64C3-64C3-2P-128C3-128C3-2P-256C3-256C3-256C3-2s-1024FC-10o";
/// Factors for the initial weights, with which every hidden layer has an activity of about 5 %.
const SCALES: [f32; 9] = [0.227, 1.114, 1.766, 1.379, 1.633, 1.492, 1.596, 1.561, 1.0];
const STEPS: usize = 100;
const BATCH: usize = 8;

fn main() {
    let isa = std::env::args().find_map(|argument| argument.parse::<Isa>().ok()).unwrap_or_else(Isa::best);
    let architecture = Architecture::parse(CIFAR10).expect("a valid network");
    let leak = Leak::uniform(Tau::new(100.0).expect("a valid time constant"));
    let mut network = Network::initialised(architecture, leak, 1.0, 0).expect("a valid network");
    for (parameter, scale) in network.architecture.parameters().iter().zip(SCALES) {
        network.weights[parameter.offset..][..parameter.len].iter_mut().for_each(|w| *w *= scale);
    }
    let shape = network.architecture.input();
    let images: Vec<Vec<f32>> = (0..BATCH)
        .map(|i| {
            let stream = Stream::new(0, Purpose::Benchmark, 0, i as u32);
            let smooth = |p: usize| (stream.uniform_at(1) * 9.0 + p as f32 / 97.0).sin();
            (0..shape.neurons()).map(|p| 0.6 * smooth(p) + 0.4 * (2.0 * stream.uniform_at(p) - 1.0)).collect()
        })
        .collect();
    let show = |i: usize, input: &mut Input| {
        encode(&images[i], shape, &Encoding::clean(STEPS), 0, 0, i as u32, input);
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread");
    pool.install(|| {
        let packed = Packed::new(&network, isa).expect("finite weights");
        let scratch = Scratch::default();
        let synops = infer(&packed, STEPS, BATCH, &scratch, show, |_, t| t.synops()).expect("valid input");
        let all = synops.iter().flatten().sum::<u64>() as f64 / BATCH as f64;
        let first = synops.iter().map(|s| s[0]).sum::<u64>() as f64 / BATCH as f64;
        let start = Instant::now();
        let (additions, sum) = add_random_rows(isa, 4000);
        let ceiling = additions as f64 / start.elapsed().as_secs_f64() / 1e9;
        println!("{isa}: {all:.3e} synops per image, ceiling {ceiling:.1} G/s ({sum:.0})");
        let mut gradients = vec![0.0; network.weights.len()];
        for _ in 0..3 {
            let start = Instant::now();
            infer(&packed, STEPS, BATCH, &scratch, show, |_, t| t.class()).expect("valid input");
            let forward = start.elapsed().as_secs_f64() / BATCH as f64;
            let start = Instant::now();
            let prepare = |i: usize, input: &mut Input, _: &mut Masks| {
                show(i, input);
                i % 10
            };
            let mode = Gradient::StraightThrough;
            train_batch(&packed, STEPS, BATCH, mode, &scratch, prepare, |_, t| t.class(), &mut gradients)
                .expect("valid input");
            let both = start.elapsed().as_secs_f64() / BATCH as f64;
            let backward = both - forward;
            println!(
                "forward {:.1} ms ({:.1} G/s)  backward {:.1} ms ({:.1} G/s)",
                1e3 * forward,
                all / forward / 1e9,
                1e3 * backward,
                (2.0 * all - first) / backward / 1e9
            );
        }
    });
}
