//! Times the encoder on one core: `cargo run --release -p leaklab-engine --example encoding_speed`. For each
//! noise and instruction set, it prints the time of the fastest of 100 presentations of a 3x32x32 image with
//! 100 steps.

use leaklab_engine::encode::{Encoding, encode};
use leaklab_engine::noise::{SEVERITIES, Severities};
use leaklab_engine::philox::{Purpose, Stream};
use leaklab_engine::{Input, Isa, Shape};
use std::time::Instant;

fn main() {
    let shape = Shape { channels: 3, height: 32, width: 32 };
    let mut image = vec![0.0; shape.neurons()];
    Stream::new(1, Purpose::Benchmark, 0, 0).uniforms(&mut image);
    image.iter_mut().for_each(|x| *x = 2.0 * *x - 1.0);
    let mut input = Input::silent(shape, 100);
    for isa in Isa::available() {
        let clean = Encoding { isa, ..Encoding::clean(100) };
        let noisy = SEVERITIES.iter().map(|&(noise, scenario, _)| {
            let setting =
                Severities::default().setting(noise, scenario, 5).expect("severity 5 is in the table");
            (format!("{noise}/{scenario}/5"), clean.with_noise(setting))
        });
        for (name, encoding) in std::iter::once(("clean".to_owned(), clean)).chain(noisy) {
            let fastest = (0..100)
                .map(|sample| {
                    let start = Instant::now();
                    encode(&image, shape, &encoding, 1, 0, sample, &mut input);
                    start.elapsed()
                })
                .min();
            println!("{isa:>9} {name:24} {:8.3} ms", fastest.unwrap_or_default().as_secs_f64() * 1e3);
        }
    }
}
