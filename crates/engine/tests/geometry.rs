//! Compares networks with the dense reference implementation for images of the sizes that networks are
//! trained on. The cases include frames that fill a tile alone, frames that are processed in two windows,
//! several tiles of time of which the last is shorter, blocks of input channels and chunks of output channels
//! that are not full, and images so tall that their positions need more than sixteen bits.

mod dense;

use dense::compare::{Case, Draw, agree};
use leaklab_engine::*;

const CASE: Case = Case {
    notation: "",
    tau: f64::INFINITY,
    mixed: false,
    v_th: 1.0 + 1.0 / 512.0, // between two multiples of 1/256, so that no potential is near it
    steps: 8,
    samples: 1,
    rate: 0.2,
    real: false,
    dropout: false,
    bias: 0.06,
};

/// Runs a case. Every hidden layer must fire, but none at almost every neuron and step.
fn check(number: u32, case: Case) {
    let shares = agree(&case, &mut Draw::new(number), &Scratch::default());
    println!("{}: {shares:.3?}", case.notation);
    assert!(shares.iter().all(|share| (0.005..0.85).contains(share)), "{}: {shares:?}", case.notation);
}

#[test]
fn images_of_28x28() {
    // A tile has one step of 28x28 pixels, or six of 14x14, so that eight steps are a tile and a part.
    let notation = "1x28x28-70C3-130C3-2P-20C3-40FC-10o";
    check(100, Case { notation, tau: 20.0, mixed: true, samples: 2, ..CASE });
}

#[test]
fn images_of_32x32() {
    // A tile has four steps of 16x16 pixels, so that thirteen steps are three tiles and a part.
    let notation = "32x32-20C3-2P-70C3-130C3-2P-70C3-10o";
    check(101, Case { notation, steps: 13, dropout: true, ..CASE });
}

#[test]
fn images_of_64x64() {
    // The first two layers have two windows.
    let notation = "2x64x64-70C3-24C3-2P-130C3-2P-2P-33FC-10o";
    check(102, Case { notation, steps: 8, rate: 0.4, tau: 30.0, bias: 0.09, ..CASE });
}

#[test]
fn images_of_40x96() {
    let notation = "40x96-16C3-130C3-2P-70C3-2P-10o";
    check(103, Case { notation, rate: 0.5, bias: 0.09, real: true, samples: 2, ..CASE });
}

#[test]
fn small_images_for_a_long_time() {
    // A tile has 56 steps of 4x4 pixels, or 350 steps of one neuron.
    let notation = "2x9x9-70C3-2P-130C3-2P-70FC-130FC-10o";
    check(104, Case { notation, steps: 400, tau: 100.0, rate: 0.1, bias: 0.04, ..CASE });
}

/// The frames of these images have more positions than sixteen bits can number. In an earlier version, the
/// spikes of such images were right and their gradients wrong.
#[test]
fn images_with_more_positions_than_sixteen_bits_number() {
    for (number, notation) in [
        "1x510x128-4C3-4C3-2P-10o",
        "1x32000x2-3C3-4C3-2P-3o",
        "1x65535x1-2C3-3C3-2o",
        "1x65535x1-5FC-2o",
        "1x128x510-2C3-3C3-2P-3o",
        "1x2x32000-2C3-3C3-2P-3o",
        "1x1x65535-2C3-3C3-2o",
    ]
    .into_iter()
    .enumerate()
    {
        check(
            200 + number as u32,
            Case { notation, steps: 4, rate: 0.9, tau: 10.0, bias: 0.4, v_th: 0.6, ..CASE },
        );
    }
}
