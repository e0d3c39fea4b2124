//! Networks that are small enough for Miri, which detects every invalid read and write. Together they reach
//! all code that indexes without a bounds check.
//!
//! ```sh
//! MIRIFLAGS="-Zmiri-tree-borrows -Zmiri-ignore-leaks" \
//!     cargo +nightly miri test -p leaklab-engine --test memory
//! ```
//!
//! Miri does not support the vector instructions, so it runs the portable kernels; the others are the same
//! code, compiled for other registers. The two flags are needed for the thread pool, which outlives the test.

mod dense;

use dense::compare::{Case, Draw, agree};
use leaklab_engine::*;

#[test]
fn tiny_networks_stay_within_bounds() {
    let scratch = Scratch::default();
    let case = Case {
        notation: "",
        tau: 10.0,
        mixed: true,
        v_th: 0.5,
        steps: 3,
        samples: 1,
        rate: 0.7,
        real: false,
        dropout: false,
        bias: 0.3,
    };
    for (number, case) in [
        // Codes of columns, a pool that ignores an odd row, and merged lists of one block.
        Case { notation: "1x3x2-3C3-2C3-2P-2o", ..case },
        // Lists from the first layer on, chunks of one and of two vectors, fully connected layers, and masks.
        Case { notation: "4x1x2-17C3-2C3-3FC-2o", dropout: true, ..case },
        // Two blocks of input channels.
        Case { notation: "65x1x2-1C3-1o", steps: 2, ..case },
    ]
    .into_iter()
    .enumerate()
    {
        agree(&case, &mut Draw::new(300 + number as u32), &scratch);
    }
}
