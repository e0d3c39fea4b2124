//! The layers. Each module contains the forward and the backward pass of one kind of layer.

/// Calls a generic kernel with the layer's number of vectors.
macro_rules! by_vectors {
    ($vectors:expr, $n:ident => $body:expr) => {
        match $vectors {
            1 => {
                const $n: usize = 1;
                $body
            }
            2 => {
                const $n: usize = 2;
                $body
            }
            _ => {
                const $n: usize = 4;
                $body
            }
        }
    };
}
pub(crate) mod conv;
pub(crate) mod full;
pub(crate) mod pool;

use crate::simd::Row;

/// Sums the lanes of each step's squares, in double precision.
fn total_squares(lanes: &[Row], out: &mut Vec<f64>) {
    out.clear();
    out.extend(lanes.iter().map(|lanes| lanes.iter().map(|&x| f64::from(x)).sum::<f64>()));
}
