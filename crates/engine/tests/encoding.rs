//! The encoder and the noise agree with the reference implementation and have the documented statistics.
//!
//! All random numbers are seeded, so a test either always passes or always fails. The bounds are 5 standard
//! errors or a chi-squared tail of 1e-6, so that tests would pass with another seed too.

use leaklab_engine::encode::{Encoder, Encoding, encode, reference};
use leaklab_engine::noise::{Colour, Noise, NoiseSetting, SEVERITIES, Scenario};
use leaklab_engine::philox::{Purpose, Stream, shuffle};
use leaklab_engine::{Input, Isa, Shape};
use rayon::prelude::*;

const SHAPE: Shape = Shape { channels: 3, height: 32, width: 32 };

fn image(shape: Shape, seed: u64) -> Vec<f32> {
    let mut x = vec![0.0; shape.neurons()];
    Stream::new(seed, Purpose::Benchmark, 0, 0).uniforms(&mut x);
    x.iter_mut().for_each(|x| *x = 2.0 * *x - 1.0);
    x
}

fn encoded(image: &[f32], shape: Shape, encoding: &Encoding, epoch: u32, sample: u32) -> Input {
    let mut input = Input::silent(shape, 1);
    encode(image, shape, encoding, 1, epoch, sample, &mut input);
    input
}

/// Values `[step][channel][row][column]`.
fn values(input: &Input) -> Vec<f32> {
    match input {
        Input::Real { values, .. } => values.clone(),
        Input::Ternary { shape, spikes } => {
            let mut out = Vec::new();
            for step in 0..spikes.steps() {
                for neuron in 0..shape.neurons() {
                    let (channel, pixel) = (neuron / shape.pixels(), neuron % shape.pixels());
                    let positive = spikes.get(pixel, step, channel);
                    let negative = spikes.get(pixel, step, shape.channels + channel);
                    assert!(!(positive && negative), "both signs at once");
                    out.push(f32::from(u8::from(positive)) - f32::from(u8::from(negative)));
                }
            }
            out
        }
    }
}

fn all_settings() -> impl Iterator<Item = Option<NoiseSetting>> {
    let noisy = SEVERITIES.iter().flat_map(|&(noise, scenario, levels)| {
        [levels[1], levels[7]].map(|level| Some(NoiseSetting::new(noise, scenario, level).unwrap()))
    });
    let coloured = COLOURS.iter().map(|colour| Some(coloured(colour, 0.7)));
    std::iter::once(None).chain(noisy).chain(coloured)
}

const COLOURS: [&str; 6] = ["white", "0.5", "3", "30", "frozen", "blue"];

fn coloured(colour: &str, sigma: f32) -> NoiseSetting {
    NoiseSetting::coloured(colour.parse().unwrap(), sigma).unwrap()
}

/// The cases include odd sizes, more channels than a word holds, used buffers, and
/// every instruction set, noise and encoder.
#[test]
fn equals_the_reference_implementation_everywhere() {
    let shapes = [(1, 1, 1, 1), (3, 5, 7, 13), (1, 8, 8, 20), (6, 4, 4, 6), (33, 3, 6, 5), (3, 16, 16, 8)];
    let mut used = Input::Real { shape: SHAPE, steps: 1, values: vec![f32::NAN; 9] };
    for (channels, height, width, time_steps) in shapes {
        let shape = Shape { channels, height, width };
        let mut image = image(shape, 3);
        image[0] = 1.0;
        *image.last_mut().unwrap() = -1.0;
        if let Some(x) = image.get_mut(5) {
            *x = 0.0;
        }
        for encoder in [Encoder::Signed, Encoder::Unsigned] {
            for noise in all_settings() {
                for isa in Isa::available() {
                    let encoding = Encoding { encoder, time_steps, noise, isa };
                    encode(&image, shape, &encoding, 1 << 33 | 7, 2, 11, &mut used);
                    let expected = reference::encode(&image, shape, &encoding, 1 << 33 | 7, 2, 11);
                    assert!(used == expected, "{shape:?} {encoding:?}");
                }
            }
        }
    }
}

#[test]
fn severity_zero_is_exactly_clean() {
    let image = image(SHAPE, 1);
    let clean = encoded(&image, SHAPE, &Encoding::clean(20), 3, 4);
    for (noise, scenario, _) in SEVERITIES {
        let none = NoiseSetting::new(noise, scenario, 0.0).unwrap();
        assert!(
            encoded(&image, SHAPE, &Encoding::clean(20).with_noise(Some(none)), 3, 4) == clean,
            "{noise}"
        );
    }
}

/// The spikes do not depend on the order, the number of threads or the buffer in which they are generated.
#[test]
fn spikes_depend_on_nothing_else() {
    for setting in ["white", "3", "frozen", "blue"].map(|colour| coloured(colour, 0.3)) {
        depend_on_nothing_else(setting);
    }
}

fn depend_on_nothing_else(setting: NoiseSetting) {
    let encoding = Encoding::clean(12).with_noise(Some(setting));
    let images: Vec<Vec<f32>> = (0..40).map(|i| image(SHAPE, i)).collect();
    let one = |sample: u32| encoded(&images[sample as usize], SHAPE, &encoding, 1, sample);
    let in_order: Vec<Input> = (0..40).map(one).collect();
    for threads in [1, 2, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        for batch in [1, 7, 40] {
            let order = shuffle(threads as u64, batch as u32, 40);
            let found: Vec<(u32, Input)> = pool.install(|| {
                order
                    .par_chunks(batch)
                    .flat_map_iter(|chunk| {
                        let mut input = Input::silent(SHAPE, 3);
                        chunk.iter().map(move |&sample| (sample, one_into(&mut input, &encoding, sample)))
                    })
                    .collect()
            });
            assert!(found.iter().all(|(sample, input)| *input == in_order[*sample as usize]));
        }
    }

    fn one_into(input: &mut Input, encoding: &Encoding, sample: u32) -> Input {
        encode(&image(SHAPE, sample.into()), SHAPE, encoding, 1, 1, sample, input);
        input.clone()
    }
}

/// Chi-squared limit for a tail of 1e-6, by the approximation of Wilson and Hilferty.
fn limit(degrees: f64) -> f64 {
    let h = 2.0 / (9.0 * degrees);
    degrees * (1.0 - h + 4.753 * h.sqrt()).powi(3)
}

/// For every pixel value `x`, the number of spikes is binomial with
/// `p = |x|`, and all spikes have the sign of `x`.
#[test]
fn rate_and_sign() {
    let (time_steps, shape) = (2000, Shape { channels: 1, height: 8, width: 32 });
    let image: Vec<f32> = (0..256).map(|i| (i as f32 - 127.5) / 128.0).collect();
    for encoder in [Encoder::Signed, Encoder::Unsigned] {
        let encoding = Encoding { encoder, ..Encoding::clean(time_steps) };
        let spikes = values(&encoded(&image, shape, &encoding, 0, 0));
        let mut chi = 0.0;
        let mut degrees = 0.0;
        for (pixel, &x) in image.iter().enumerate() {
            let train: Vec<f32> = spikes.iter().skip(pixel).step_by(256).copied().collect();
            let sum: f32 = train.iter().sum();
            if encoder == Encoder::Unsigned && x < 0.0 {
                assert_eq!(sum, 0.0);
                continue;
            }
            assert!(train.iter().all(|&spike| spike == 0.0 || spike == x.signum()));
            let (p, n) = (f64::from(x.abs()), time_steps as f64);
            chi += (f64::from(sum.abs()) - n * p).powi(2) / (n * p * (1.0 - p));
            degrees += 1.0;
        }
        assert!(chi < limit(degrees), "{encoder}: chi-squared {chi} of {degrees} degrees");
        assert!(chi > degrees - 5.0 * (2.0 * degrees).sqrt(), "{encoder}: too regular, {chi}");
    }
}

/// Chi-squared of the 2x2 tables "first fired, second fired" for many pairs of neurons and steps with
/// rate 1/2, with one degree of freedom each.
fn independence(pairs: impl Iterator<Item = Vec<(bool, bool)>>) -> (f64, f64) {
    pairs.fold((0.0, 0.0), |(chi, degrees), pairs| {
        let mut table = [0.0f64; 4];
        pairs.iter().for_each(|&(a, b)| table[2 * usize::from(a) + usize::from(b)] += 1.0);
        let expected = pairs.len() as f64 / 4.0;
        let dependent = table[0] - table[1] - table[2] + table[3];
        (chi + dependent * dependent / (4.0 * expected), degrees + 1.0)
    })
}

#[test]
fn independent_between_steps_pixels_and_samples() {
    let (steps, pixels, samples) = (64, 256, 40);
    let shape = Shape { channels: 1, height: 16, width: 16 };
    let image = vec![0.5; pixels];
    for epochs in [false, true] {
        let fired: Vec<Vec<f32>> = (0..samples)
            .map(|i| if epochs { (i, 0) } else { (0, i) })
            .map(|(epoch, sample)| values(&encoded(&image, shape, &Encoding::clean(steps), epoch, sample)))
            .collect();
        let at = |sample: usize, step: usize, pixel: usize| fired[sample][step * pixels + pixel] != 0.0;
        let all = |f: &dyn Fn(usize, usize, usize) -> (bool, bool), last: [usize; 3]| -> Vec<(bool, bool)> {
            let mut pairs = Vec::new();
            for a in 0..last[0] {
                for b in 0..last[1] {
                    (0..last[2]).for_each(|c| pairs.push(f(a, b, c)));
                }
            }
            pairs
        };
        let (all_samples, p) = (samples as usize, pixels);
        let steps_apart =
            (1..32).map(|d| all(&|s, t, i| (at(s, t, i), at(s, t + d, i)), [all_samples, steps - d, p]));
        let pixels_apart =
            (1..128).map(|d| all(&|s, t, i| (at(s, t, i), at(s, t, i + d)), [all_samples, steps, p - d]));
        let samples_apart =
            (1..20).map(|d| all(&|s, t, i| (at(s, t, i), at(s + d, t, i)), [all_samples - d, steps, p]));
        for (name, (chi, degrees)) in [
            ("steps", independence(steps_apart)),
            ("pixels", independence(pixels_apart)),
            ("samples", independence(samples_apart)),
        ] {
            assert!(chi < limit(degrees), "{name}: chi-squared {chi} of {degrees} degrees");
        }
    }
}

/// The noise that is added to the spikes has the right mean and variance, and does not depend on the spikes.
#[test]
fn added_noise_has_its_mean_and_variance() {
    let image = image(SHAPE, 8);
    let clean = values(&encoded(&image, SHAPE, &Encoding::clean(100), 0, 5));
    let n = clean.len() as f64;
    for (noise, level, variance, fourth) in [
        (Noise::Gaussian, 0.7f32, 0.49, 3.0 * 0.49 * 0.49),
        (Noise::Impulse, 0.3, 0.3, 0.3),
        (Noise::Impulse, 1.0, 1.0, 1.0),
        (Noise::Impulse, 2.5, 6.25, 39.0625),
    ] {
        let setting = NoiseSetting::new(noise, Scenario::Channel, level).unwrap();
        let noisy = values(&encoded(&image, SHAPE, &Encoding::clean(100).with_noise(Some(setting)), 0, 5));
        let xi: Vec<f64> = noisy.iter().zip(&clean).map(|(a, b)| f64::from(a - b)).collect();
        let mean = xi.iter().sum::<f64>() / n;
        let square = xi.iter().map(|x| x * x).sum::<f64>() / n;
        let with_spikes = xi.iter().zip(&clean).map(|(x, s)| x * f64::from(*s)).sum::<f64>() / n;
        assert!(mean.abs() < 5.0 * (variance / n).sqrt(), "{noise} mean {mean}");
        // A spike of 1 plus noise is rounded to single precision, by at most 2^-24 of its size.
        let error = 5.0 * ((fourth - variance * variance).max(0.0) / n).sqrt() + 1e-6;
        assert!((square - variance).abs() < error, "{noise} variance {square}");
        assert!(with_spikes.abs() < 5.0 * (variance / n).sqrt(), "{noise} and spikes {with_spikes}");
        let steps = xi.iter().zip(&xi[SHAPE.neurons()..]).map(|(a, b)| a * b).sum::<f64>() / n;
        assert!(steps.abs() < 5.0 * variance / n.sqrt(), "{noise} from step to step {steps}");
    }
}

/// With noise, a pixel of 0 fires with probability `E min(|xi|, 1)`, equally often with either sign.
#[test]
fn pixel_noise_fires_as_often_as_it_should() {
    let image = vec![0.0; SHAPE.neurons()];
    // E min(|xi|, 1) for N(0, s^2): s sqrt(2/pi) (1 - exp(-1/(2 s^2))) + P(|xi| > 1); s = 0.5: P = 0.0455003.
    let gaussian = 0.5 * (2.0 / std::f64::consts::PI).sqrt() * (1.0 - (-2.0f64).exp()) + 0.045_500_264;
    for (noise, level, rate) in [(Noise::Gaussian, 0.5, gaussian), (Noise::Impulse, 0.2, 0.2)] {
        let setting = NoiseSetting::new(noise, Scenario::Pixel, level).unwrap();
        let spikes = values(&encoded(&image, SHAPE, &Encoding::clean(100).with_noise(Some(setting)), 0, 0));
        let n = spikes.len() as f64;
        let fired = spikes.iter().filter(|&&s| s != 0.0).count() as f64;
        let sum: f32 = spikes.iter().sum();
        assert!((fired / n - rate).abs() < 5.0 * (rate * (1.0 - rate) / n).sqrt(), "{noise} {}", fired / n);
        assert!(f64::from(sum).abs() < 5.0 * (n * rate).sqrt(), "{noise} {sum}");
    }
}

#[test]
fn device_noises_have_the_documented_effects() {
    let image = image(SHAPE, 2);
    let spikes = |noise, scenario, level, sample| {
        let setting = NoiseSetting::new(noise, scenario, level).unwrap();
        values(&encoded(&image, SHAPE, &Encoding::clean(100).with_noise(Some(setting)), 0, sample))
    };
    let clean = values(&encoded(&image, SHAPE, &Encoding::clean(100), 0, 0));
    let count = |values: &[f32]| values.iter().filter(|&&s| s != 0.0).count() as f64;

    let kept = spikes(Noise::Deletion, Scenario::Channel, 0.3, 0);
    assert!(kept.iter().zip(&clean).all(|(k, c)| k == c || *k == 0.0));
    let n = count(&clean);
    assert!((count(&kept) - 0.7 * n).abs() < 5.0 * (0.21 * n).sqrt());

    let moved = spikes(Noise::Jitter, Scenario::Channel, 2.0, 0);
    assert!(count(&moved) < n && moved != clean);
    for neuron in 0..SHAPE.neurons() {
        let of = |values: &[f32]| values.iter().skip(neuron).step_by(SHAPE.neurons()).sum::<f32>();
        assert!(of(&moved).abs() <= of(&clean).abs() && of(&moved) * of(&clean) >= 0.0);
    }

    // Of the 1,024 pixels some change, all channels of a pixel together.
    // Those with a constant value are counted.
    let fixed = |values: &[f32], pixel: usize, value: f32| {
        (0..3).all(|c| values.iter().skip(c * 1024 + pixel).step_by(3072).all(|&s| s == value))
    };
    let fraction = |values: &[f32], value| (0..1024).filter(|&p| fixed(values, p, value)).count() as f64;
    let near = |found: f64, p: f64| (found - 1024.0 * p).abs() < 5.0 * (1024.0 * p * (1.0 - p)).sqrt();
    let salted = spikes(Noise::SaltAndPepper, Scenario::Pixel, 0.4, 0);
    assert!(near(fraction(&salted, 1.0), 0.2) && near(fraction(&salted, -1.0), 0.2));
    let stuck = spikes(Noise::StuckPixel, Scenario::Pixel, 0.4, 0);
    assert!(near(fraction(&stuck, 1.0), 0.1) && near(fraction(&stuck, -1.0), 0.1));
    assert!(near(fraction(&stuck, 0.0), 0.2));

    let places = |values: &[f32]| (0..1024).filter(|&p| fixed(values, p, 1.0)).collect::<Vec<_>>();
    assert_eq!(
        places(&stuck),
        places(&spikes(Noise::StuckPixel, Scenario::Pixel, 0.4, 9)),
        "the same device for every image"
    );
    assert_ne!(places(&salted), places(&spikes(Noise::SaltAndPepper, Scenario::Pixel, 0.4, 9)));
}

/// Noise with the colour white is bit-identical to `gaussian/pixel`, and level 0 of any colour is clean.
#[test]
fn white_is_gaussian_on_pixels() {
    let image = image(SHAPE, 2);
    let plain = NoiseSetting::new(Noise::Gaussian, Scenario::Pixel, 1.6).unwrap();
    assert_eq!(plain, coloured("white", 1.6));
    let show = |setting| encoded(&image, SHAPE, &Encoding::clean(21).with_noise(Some(setting)), 3, 4);
    let clean = encoded(&image, SHAPE, &Encoding::clean(21), 3, 4);
    assert!(show(plain) == show(coloured("white", 1.6)) && show(plain) != clean);
    for colour in COLOURS {
        assert!(show(coloured(colour, 0.0)) == clean, "{colour}");
        assert!(colour == "white" || show(coloured(colour, 1.6)) != show(plain), "{colour}");
    }
}

/// The mean, the variance at every step and the correlation between any two steps agree with the definition.
///
/// Over `m` independent pixels, the mean product of two standard normals with correlation r has the variance
/// `(1 + r^2)/m`, which is at most `2/m`. The bound is five standard errors.
#[test]
fn coloured_noise_has_its_autocorrelation() {
    const STEPS: usize = 12;
    const PIXELS: u32 = 40_000;
    let sigma = 1.7;
    for colour in COLOURS {
        let setting = coloured(colour, sigma);
        let mut products = [[0.0; STEPS]; STEPS];
        let mut sums = [0.0; STEPS];
        for pixel in 0..PIXELS {
            let train = reference::gaussian_train(setting, STEPS, 5, 1, 9, pixel);
            let x: Vec<f64> = train.iter().map(|&x| f64::from(x) / f64::from(sigma)).collect();
            for a in 0..STEPS {
                sums[a] += x[a];
                for b in 0..=a {
                    products[a][b] += x[a] * x[b];
                }
            }
        }
        let m = f64::from(PIXELS);
        let colour: Colour = colour.parse().unwrap();
        for a in 0..STEPS {
            assert!((sums[a] / m).abs() < 5.0 / m.sqrt(), "{colour}: mean at step {a}");
            for b in 0..=a {
                let (found, r) = (products[a][b] / m, colour.correlation(a - b));
                let bound = 5.0 * ((1.0 + r * r) / m).sqrt();
                assert!((found - r).abs() < bound, "{colour}: steps {b} and {a}: {found}, not {r}");
            }
        }
    }
}
