//! `leaklab network`.

use crate::Outcome;
use leaklab_engine::{Architecture, Layer, LayerKind, Shape};
use serde_json::{Value, json};

/// Print a network as a table: layers, shapes, neurons, weights, dense multiply-adds.
#[derive(clap::Args)]
pub struct Arguments {
    /// Network in the paper's notation, such as 32x32-64C3-2P-10o
    network: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(arguments: Arguments) -> Outcome {
    let network = Architecture::parse(&arguments.network).map_err(|error| {
        let caret =
            format!("{}{}", " ".repeat(error.character - 1), "^".repeat(error.token.chars().count().max(1)));
        crate::usage(format!("{error}\n    {}\n    {caret}", error.notation))
    })?;
    if arguments.json {
        println!("{}", to_json(&network));
    } else {
        print_table(&network);
    }
    Ok(())
}

fn weights(network: &Architecture, layer: &Layer) -> usize {
    layer.parameter.map_or(0, |p| network.parameters()[p].len)
}

/// Synapses that one input spike reaches, away from the borders.
fn fan_out(layer: &Layer) -> usize {
    match layer.kind {
        LayerKind::Conv => 9 * layer.output.channels,
        LayerKind::Pool => 0,
        LayerKind::Full | LayerKind::Output => layer.output.channels,
    }
}

fn kind(layer: &Layer) -> &'static str {
    match layer.kind {
        LayerKind::Conv => "conv",
        LayerKind::Pool => "pool",
        LayerKind::Full => "fc",
        LayerKind::Output => "output",
    }
}

fn to_json(network: &Architecture) -> Value {
    let shape = |s: Shape| json!([s.channels, s.height, s.width]);
    let layer = |layer: &Layer| {
        json!({
            "layer": layer.name,
            "kind": kind(layer),
            "shape": shape(layer.output),
            "neurons": layer.output.neurons(),
            "weights": weights(network, layer),
            "fan_out": fan_out(layer),
            "dense_multiply_adds": layer.dense_operations(),
        })
    };
    json!({
        "network": network.to_string(),
        "input": shape(network.input()),
        "layers": network.layers().iter().map(layer).collect::<Vec<_>>(),
        "weights": network.parameter_count(),
        "dense_multiply_adds": network.layers().iter().map(Layer::dense_operations).sum::<u64>(),
    })
}

fn print_table(network: &Architecture) {
    println!(
        "{:<8}{:<8}{:>14}{:>10}{:>12}{:>10}{:>22}",
        "layer", "kind", "shape", "neurons", "weights", "synapses", "dense multiply-adds"
    );
    let input = network.input();
    println!(
        "{:<8}{:<8}{:>14}{:>10}{:>12}{:>10}{:>22}",
        "input",
        "",
        input.to_string(),
        input.neurons(),
        "",
        "",
        ""
    );
    for layer in network.layers() {
        println!(
            "{:<8}{:<8}{:>14}{:>10}{:>12}{:>10}{:>22}",
            layer.name,
            kind(layer),
            layer.output.to_string(),
            layer.output.neurons(),
            weights(network, layer),
            fan_out(layer),
            layer.dense_operations()
        );
    }
    let neurons: usize = network.layers().iter().map(|layer| layer.output.neurons()).sum();
    let dense: u64 = network.layers().iter().map(Layer::dense_operations).sum();
    println!(
        "{:<8}{:<8}{:>14}{neurons:>10}{:>12}{:>10}{dense:>22}",
        "total",
        "",
        "",
        network.parameter_count(),
        ""
    );
    println!(
        "\nSynapses are those that one input spike of the layer reaches, away from the borders; a pool has \
         none, since\nit counts spikes without weights. Multiply-adds are those of one time step if every \
         input were non-zero,\nexact at the borders."
    );
}
