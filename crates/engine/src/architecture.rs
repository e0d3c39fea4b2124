//! The paper's network notation, `32x32-64C3-2P-...-1024FC-10o`, as a validated list of layers.
//!
//! Everything that follows from the notation (shapes, names, the position of each layer's weights in the flat
//! array) is computed here once, so that no other code computes a size.

use crate::spikes::Shape;
use std::fmt;

/// What a layer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LayerKind {
    /// 3x3 convolution, stride 1, zero padding 1, of spiking neurons.
    Conv,
    /// 2x2 average pooling by spiking neurons without leak.
    Pool,
    /// Fully connected spiking neurons.
    Full,
    /// Fully connected neurons that leak and never fire; always the last layer.
    Output,
}

impl LayerKind {
    const ALL: [LayerKind; 4] = [LayerKind::Conv, LayerKind::Pool, LayerKind::Full, LayerKind::Output];

    /// Name in files and tables.
    pub fn name(self) -> &'static str {
        match self {
            LayerKind::Conv => "conv",
            LayerKind::Pool => "pool",
            LayerKind::Full => "full",
            LayerKind::Output => "output",
        }
    }

    /// Whether dropout acts on the layer's output: true for hidden convolutions and fully connected layers.
    pub fn takes_dropout(self) -> bool {
        match self {
            LayerKind::Conv | LayerKind::Full => true,
            LayerKind::Pool | LayerKind::Output => false,
        }
    }
}

impl fmt::Display for LayerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl std::str::FromStr for LayerKind {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        LayerKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or(())
    }
}

/// One layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// What it does.
    pub kind: LayerKind,
    /// `conv1`, `pool1`, `fc1`; the output layer is the last `fc`.
    pub name: String,
    /// Size of the input.
    pub input: Shape,
    /// Size of the output; one pixel for a fully connected layer.
    pub output: Shape,
    /// Index of its weights in [`Architecture::parameters`]; `None` for a pool.
    pub parameter: Option<usize>,
}

impl Layer {
    /// Multiply-adds of one step if every input were non-zero, exact at the borders.
    pub fn dense_operations(&self) -> u64 {
        match self.kind {
            LayerKind::Conv => {
                let taps = |n: usize| (3 * n - 2) as u64;
                let fan = (self.input.channels * self.output.channels) as u64;
                taps(self.input.height) * taps(self.input.width) * fan
            }
            LayerKind::Pool => 0,
            LayerKind::Full | LayerKind::Output => (self.input.neurons() * self.output.channels) as u64,
        }
    }
}

/// Weights of one layer within the flat array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The layer's name.
    pub name: String,
    /// `[out, in, 3, 3]` or `[out, in]`.
    pub shape: Vec<usize>,
    /// First element in the flat array.
    pub offset: usize,
    /// Number of elements.
    pub len: usize,
    /// Inputs of one neuron.
    pub fan_in: usize,
}

/// A network's layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Architecture {
    input: Shape,
    layers: Vec<Layer>,
    parameters: Vec<Parameter>,
}

/// The reason why a notation is not a network, with the position of the invalid token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("network '{notation}': token {number} '{token}' (character {character}): {reason}")]
pub struct NotationError {
    /// The whole notation.
    pub notation: String,
    /// Number of the token, counted from 1.
    pub number: usize,
    /// Text of the token.
    pub token: String,
    /// Position of its first character, counted from 1.
    pub character: usize,
    /// What is wrong and what would be right.
    pub reason: String,
}

/// Largest number of channels, rows, columns or neurons in a token, and of pixels in an image: the positions
/// in half of an image must fit into sixteen bits (`events.rs`).
const LARGEST: usize = 65_535;
/// Largest number of values in an image (64 MB of f32).
const MOST_VALUES: usize = 1 << 24;
/// Largest number of weights in a network (8 GB of f32).
const MOST_WEIGHTS: usize = 1 << 31;

impl Architecture {
    /// Parses the network notation (specification, section 1): `HxW` or `CxHxW`, then `nC3`, `2P`
    /// (or `2s`) and `nFC`, and finally `no`.
    pub fn parse(notation: &str) -> Result<Self, NotationError> {
        let mut character = 1;
        let mut tokens = Vec::new();
        for (i, token) in notation.split('-').enumerate() {
            tokens.push((i + 1, token, character));
            character += token.chars().count() + 1;
        }
        let fault = |(number, token, character): (usize, &str, usize), reason: &str| NotationError {
            notation: notation.to_owned(),
            number,
            token: token.to_owned(),
            character,
            reason: reason.to_owned(),
        };
        let first = tokens[0];
        let input = parse_input(first.1).map_err(|reason| fault(first, &reason))?;
        let mut built = Architecture { input, layers: Vec::new(), parameters: Vec::new() };
        for &token in &tokens[1..] {
            built.append(token.1).map_err(|reason| fault(token, &reason))?;
        }
        match built.layers.last() {
            Some(layer) if layer.kind == LayerKind::Output => Ok(built),
            _ => Err(fault(
                *tokens.last().expect("split returns at least one token"),
                "the network must end in an output layer such as 10o",
            )),
        }
    }

    fn append(&mut self, token: &str) -> Result<(), String> {
        let (kind, size) = parse_layer(token)?;
        let input = self.layers.last().map_or(self.input, |layer| layer.output);
        let last = self.layers.last().map(|layer| layer.kind);
        if last == Some(LayerKind::Output) {
            return Err("nothing may follow the output layer".to_owned());
        }
        let flat = last == Some(LayerKind::Full);
        let output = match kind {
            LayerKind::Conv if flat => {
                return Err("a convolution cannot follow a fully connected layer".to_owned());
            }
            LayerKind::Pool if flat => return Err("a pool cannot follow a fully connected layer".to_owned()),
            LayerKind::Pool if last.is_none() => {
                return Err("the layer after the input must be a convolution or fully connected".to_owned());
            }
            LayerKind::Pool if input.height < 2 || input.width < 2 => {
                return Err(format!(
                    "nothing left to pool: the image is {}x{} here, and a pool needs at least 2x2",
                    input.height, input.width
                ));
            }
            LayerKind::Conv => Shape { channels: size, ..input },
            LayerKind::Pool => {
                Shape { channels: input.channels, height: input.height / 2, width: input.width / 2 }
            }
            LayerKind::Output if last.is_none() => {
                return Err("the output layer needs a hidden layer before it".to_owned());
            }
            LayerKind::Full | LayerKind::Output => Shape { channels: size, height: 1, width: 1 },
        };
        let prefix = match kind {
            LayerKind::Conv => "conv",
            LayerKind::Pool => "pool",
            LayerKind::Full | LayerKind::Output => "fc",
        };
        let number = 1 + self.layers.iter().filter(|layer| layer.name.starts_with(prefix)).count();
        let name = format!("{prefix}{number}");
        let shape = match kind {
            LayerKind::Conv => Some(vec![size, input.channels, 3, 3]),
            LayerKind::Pool => None,
            LayerKind::Full | LayerKind::Output => Some(vec![size, input.neurons()]),
        };
        let parameter = shape.is_some().then_some(self.parameters.len());
        if let Some(shape) = shape {
            let offset = self.parameter_count();
            let len = shape.iter().try_fold(1usize, |n, &m| n.checked_mul(m)).unwrap_or(usize::MAX);
            if len.saturating_add(offset) > MOST_WEIGHTS {
                return Err(format!("the network would have more than {MOST_WEIGHTS} weights"));
            }
            let fan_in = shape[1..].iter().product();
            self.parameters.push(Parameter { name: name.clone(), shape, offset, len, fan_in });
        }
        self.layers.push(Layer { kind, name, input, output, parameter });
        Ok(())
    }

    /// Size of the image.
    pub fn input(&self) -> Shape {
        self.input
    }

    /// All layers, the output layer last.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// All layers except the output layer.
    pub fn hidden(&self) -> &[Layer] {
        &self.layers[..self.layers.len() - 1]
    }

    /// Position of each layer's weights in the flat array.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Number of weights.
    pub fn parameter_count(&self) -> usize {
        self.parameters.last().map_or(0, |p| p.offset + p.len)
    }

    /// Number of outputs.
    pub fn classes(&self) -> usize {
        self.layers.last().map_or(0, |layer| layer.output.channels)
    }

    /// Largest number of neurons in a hidden layer.
    pub fn largest_layer(&self) -> usize {
        self.hidden().iter().map(|layer| layer.output.neurons()).max().unwrap_or(0)
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { channels, height, width } = self.input;
        if channels == 3 {
            write!(f, "{height}x{width}")?;
        } else {
            write!(f, "{channels}x{height}x{width}")?;
        }
        for layer in &self.layers {
            match layer.kind {
                LayerKind::Conv => write!(f, "-{}C3", layer.output.channels)?,
                LayerKind::Pool => write!(f, "-2P")?,
                LayerKind::Full => write!(f, "-{}FC", layer.output.channels)?,
                LayerKind::Output => write!(f, "-{}o", layer.output.channels)?,
            }
        }
        Ok(())
    }
}

fn parse_size(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(n) if (1..=LARGEST).contains(&n) && text.bytes().all(|b| b.is_ascii_digit()) => Ok(n),
        _ => Err(format!("'{text}' is not a whole number from 1 to {LARGEST}")),
    }
}

fn parse_input(token: &str) -> Result<Shape, String> {
    let sizes = token.split('x').map(parse_size).collect::<Result<Vec<_>, _>>();
    let shape = match (sizes.as_deref(), token.matches('x').count()) {
        (Ok(&[height, width]), _) => Shape { channels: 3, height, width },
        (Ok(&[channels, height, width]), _) => Shape { channels, height, width },
        (Err(reason), 1 | 2) => return Err(reason.clone()),
        _ => return Err("the first token must be the input, HxW (3 channels) or CxHxW".to_owned()),
    };
    if shape.pixels() > LARGEST {
        let pixels = shape.pixels();
        return Err(format!(
            "the image is too large: it has {pixels} pixels, and at most {LARGEST} are allowed"
        ));
    }
    if shape.neurons() > MOST_VALUES {
        let values = shape.neurons();
        return Err(format!(
            "the image is too large: it has {values} values, and at most {MOST_VALUES} are allowed"
        ));
    }
    Ok(shape)
}

fn parse_layer(token: &str) -> Result<(LayerKind, usize), String> {
    const EXPECTED: &str = "not a layer; expected nC3, 2P or 2s, nFC, or no (the output layer, last)";
    let kinds = [("C3", LayerKind::Conv), ("FC", LayerKind::Full), ("o", LayerKind::Output)];
    if let Some(size) = token.strip_suffix(['P', 's']) {
        return if size == "2" {
            Ok((LayerKind::Pool, 2))
        } else {
            Err("pooling is 2x2: write 2P or 2s".to_owned())
        };
    }
    for (ending, kind) in kinds {
        if let Some(size) = token.strip_suffix(ending) {
            return if size.is_empty() { Err(EXPECTED.to_owned()) } else { Ok((kind, parse_size(size)?)) };
        }
    }
    match token.split_once('C') {
        Some((size, kernel)) if parse_size(size).is_ok() && parse_size(kernel).is_ok() => {
            Err(format!("convolutions are 3x3: write {size}C3"))
        }
        _ => Err(EXPECTED.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CIFAR10: &str = "32x32-64C3-64C3-2P-128C3-128C3-2P-256C3-256C3-256C3-2s-1024FC-10o";

    #[test]
    fn the_papers_model() {
        let net = Architecture::parse(CIFAR10).unwrap();
        assert_eq!(net.to_string(), CIFAR10.replace("2s", "2P"));
        assert_eq!(net.layers().len(), 12);
        assert_eq!(net.layers()[9].output, Shape { channels: 256, height: 4, width: 4 });
        let names: Vec<&str> = net.parameters().iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["conv1", "conv2", "conv3", "conv4", "conv5", "conv6", "conv7", "fc1", "fc2"]);
        assert_eq!(net.parameters()[7].shape, [1024, 4096]);
        assert_eq!(net.parameter_count(), 5_938_880);
        assert_eq!(net.classes(), 10);
    }

    #[test]
    fn odd_sizes_drop_the_last_row_and_column() {
        let net = Architecture::parse("1x7x5-6C3-2s-10FC-4o").unwrap();
        assert_eq!(net.layers()[1].output, Shape { channels: 6, height: 3, width: 2 });
    }

    #[test]
    fn errors_point_at_the_token() {
        for (notation, number, character, word) in [
            ("", 1, 1, "first token"),
            ("32-10o", 1, 1, "first token"),
            ("32xy-8C3-10o", 1, 1, "'y'"),
            ("32x32-64X3-10o", 2, 7, "not a layer"),
            ("32x32-64C5-10o", 2, 7, "3x3"),
            ("32x32-8C3-3P-10o", 3, 11, "2x2"),
            ("32x32-0C3-10o", 2, 7, "'0'"),
            ("32x32-8C3--10o", 3, 11, "not a layer"),
            ("32x32-8C3", 2, 7, "end in an output"),
            ("32x32-8C3-10o-8FC", 4, 15, "nothing may follow"),
            ("32x32-2P-10o", 2, 7, "after the input"),
            ("32x32-10o", 2, 7, "hidden layer"),
            ("32x32-8FC-8C3-10o", 3, 11, "convolution cannot"),
            ("1x2x2-8C3-2P-2P-10o", 4, 14, "nothing left"),
            ("1x9x9-65535FC-65535FC-65535FC-3o", 3, 15, "weights"),
            ("99999999999999999999x1-3FC-2o", 1, 1, "whole number"),
            ("1x256x256-3FC-2o", 1, 1, "65536 pixels"),
            ("258x256x255-3FC-2o", 1, 1, "16842240 values"),
        ] {
            let error = Architecture::parse(notation).unwrap_err();
            assert_eq!((error.number, error.character), (number, character), "{error}");
            assert!(error.to_string().contains(word), "{error}");
        }
    }
}
