//! Quantised weights, as neuromorphic hardware stores them: integers, and one scale for each layer.
//!
//! The scale of a layer maps its largest weight to the largest integer: `w` becomes `round(w / scale)` (ties
//! to even). The range is symmetric, and 0 stays 0. Only weights are rounded. Potentials, leak and threshold
//! do not change: on a chip, the same network adds integers and fires above `v_th / scale`.

use super::ExchangeError;
use crate::evaluate::Evaluation;
use crate::health::SILENT;
use ::safetensors::tensor::{Dtype, TensorView};
use leaklab_engine::Network;
use leaklab_record::{RecordError, atomic};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// Number of bits of a weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightBits {
    /// From -7 to 7.
    Four,
    /// From -127 to 127.
    Eight,
}

impl WeightBits {
    /// The number of bits.
    pub fn count(self) -> u8 {
        match self {
            WeightBits::Four => 4,
            WeightBits::Eight => 8,
        }
    }

    /// The largest integer.
    pub fn largest(self) -> i8 {
        match self {
            WeightBits::Four => 7,
            WeightBits::Eight => 127,
        }
    }
}

impl fmt::Display for WeightBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.count().fmt(f)
    }
}

impl FromStr for WeightBits {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [WeightBits::Four, WeightBits::Eight];
        all.into_iter().find(|bits| bits.to_string() == text).ok_or_else(|| "8 or 4 is expected".to_owned())
    }
}

/// The quantised weights of one layer.
#[derive(Debug, Clone, PartialEq)]
pub struct QuantisedLayer {
    /// Name of the layer, such as `conv1`.
    pub name: String,
    /// `[out, in, 3, 3]` or `[out, in]`.
    pub shape: Vec<usize>,
    /// The weight that the integer 1 stands for.
    pub scale: f32,
    /// The integers, last index fastest.
    pub values: Vec<i8>,
}

/// Quantises the weights of a network.
pub fn quantise(network: &Network, bits: WeightBits) -> Vec<QuantisedLayer> {
    let layer = |p: &leaklab_engine::Parameter| {
        let weights = &network.weights[p.offset..p.offset + p.len];
        let largest = weights.iter().fold(0f32, |most, w| most.max(w.abs()));
        let scale = if largest > 0.0 { largest / f32::from(bits.largest()) } else { 1.0 };
        let limit = f32::from(bits.largest());
        let whole = |w: &f32| (w / scale).round_ties_even().clamp(-limit, limit) as i8;
        let values = weights.iter().map(whole).collect();
        QuantisedLayer { name: p.name.clone(), shape: p.shape.clone(), scale, values }
    };
    network.architecture.parameters().iter().map(layer).collect()
}

/// The network with quantised weights: each weight is its integer times the scale of the layer.
pub fn dequantise(network: &Network, layers: &[QuantisedLayer]) -> Network {
    let weight = |layer: &QuantisedLayer| {
        let scale = layer.scale;
        layer.values.iter().map(move |&n| scale * f32::from(n)).collect::<Vec<f32>>()
    };
    let mut rounded = network.clone();
    rounded.weights = layers.iter().flat_map(weight).collect();
    rounded
}

/// Hidden layers that fire with exact weights but are silent with rounded weights.
pub fn silenced(exact: &Evaluation, rounded: &Evaluation) -> Vec<String> {
    let rate = |rate: Option<f64>| rate.unwrap_or(1.0);
    let pairs = exact.layers.iter().zip(&rounded.layers);
    let silent = pairs.filter(|(a, b)| rate(a.spike_rate) >= SILENT && rate(b.spike_rate) < SILENT);
    silent.map(|(layer, _)| layer.name.clone()).collect()
}

/// Writes the layers as safetensors: `conv1` as int8 (also for 4 bits), and `conv1.scale` as float32.
pub fn write(path: &Path, layers: &[QuantisedLayer]) -> Result<(), ExchangeError> {
    let malformed =
        |e: ::safetensors::SafeTensorError| ExchangeError::malformed(path, "safetensors", e.to_string());
    let mut bytes = Vec::new();
    for layer in layers {
        let values: Vec<u8> = layer.values.iter().map(|n| n.to_le_bytes()[0]).collect();
        bytes.push((layer.name.clone(), Dtype::I8, layer.shape.clone(), values));
        bytes.push((
            format!("{}.scale", layer.name),
            Dtype::F32,
            vec![1],
            layer.scale.to_le_bytes().to_vec(),
        ));
    }
    let mut views = Vec::new();
    for (name, kind, shape, values) in &bytes {
        views.push((name.clone(), TensorView::new(*kind, shape.clone(), values).map_err(malformed)?));
    }
    let file = ::safetensors::serialize(views, None).map_err(malformed)?;
    atomic::write(path, &file).map_err(RecordError::io(path, "cannot be written"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use leaklab_engine::{Architecture, Leak, Tau};

    fn network() -> Network {
        let architecture = Architecture::parse("1x4x4-4C3-2P-6FC-3o").unwrap();
        Network::initialised(architecture, Leak::uniform(Tau::new(30.0).unwrap()), 1.0, 3).unwrap()
    }

    #[test]
    fn weights_are_within_half_a_unit() {
        let exact = network();
        for bits in [WeightBits::Four, WeightBits::Eight] {
            let layers = quantise(&exact, bits);
            let rounded = dequantise(&exact, &layers);
            assert_eq!(rounded.weights.len(), exact.weights.len());
            for (layer, p) in layers.iter().zip(exact.architecture.parameters()) {
                let most = layer.values.iter().map(|n| n.unsigned_abs()).max().unwrap();
                assert_eq!(most, bits.largest().unsigned_abs(), "the whole range is used");
                for i in p.offset..p.offset + p.len {
                    let error = (exact.weights[i] - rounded.weights[i]).abs();
                    // Half a unit, and the rounding error of float32 for a number of at most 127 units.
                    assert!(error <= layer.scale * (0.5 + 127.0 * f32::EPSILON), "{bits} bits: {error}");
                }
            }
            assert_eq!(dequantise(&rounded, &quantise(&rounded, bits)), rounded, "once is enough");
        }
    }

    #[test]
    fn a_layer_of_zeros_does_not_change() {
        let mut zero = network();
        zero.weights.fill(0.0);
        let layers = quantise(&zero, WeightBits::Four);
        assert!(layers.iter().all(|layer| layer.scale == 1.0));
        assert_eq!(dequantise(&zero, &layers), zero);
    }

    #[test]
    fn files_contain_integers_and_scales() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.safetensors");
        let layers = quantise(&network(), WeightBits::Eight);
        write(&path, &layers).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let file = ::safetensors::SafeTensors::deserialize(&bytes).unwrap();
        assert_eq!(file.len(), 2 * layers.len());
        for layer in &layers {
            let view = file.tensor(&layer.name).unwrap();
            assert_eq!((view.dtype(), view.shape()), (Dtype::I8, &layer.shape[..]));
            let values: Vec<i8> = view.data().iter().map(|&b| i8::from_le_bytes([b])).collect();
            assert_eq!(values, layer.values);
            let scale = file.tensor(&format!("{}.scale", layer.name)).unwrap();
            assert_eq!(scale.data(), layer.scale.to_le_bytes());
        }
    }
}
