//! Activity of the network and its cost: spikes, synaptic operations, weighted inputs, NeuroBench's metrics.

use super::neurobench::updates;
use super::pass::ActivityPass;
use super::statistics::{Estimate, mean_interval};
use super::stimulus::PassKey;
use super::{AnalysisError, Analyst, Progress, energy, neurobench};
use leaklab_engine::LayerKind;
use leaklab_record::tables::{ActivityMeasure, ActivityRow, ActivitySummaryRow};
use leaklab_record::{Rows, Stimulus, Table};

/// The tables `activity` and `activity_summary`.
pub(super) fn tables(analyst: &Analyst, progress: &mut Progress) -> Result<Vec<Table>, AnalysisError> {
    let (images, activity) = measured(analyst, progress)?;
    Ok(vec![per_layer(analyst, images, &activity), summary(analyst, images, &activity)])
}

/// The table `energy`.
pub(super) fn energy_tables(analyst: &Analyst, progress: &mut Progress) -> Result<Vec<Table>, AnalysisError> {
    let (images, activity) = measured(analyst, progress)?;
    let synops = activity.synops.iter().sum::<u64>() as f64 / images as f64;
    Ok(vec![energy::table(synops, neurobench::dense_macs(&analyst.run.network) as f64)])
}

fn measured(analyst: &Analyst, progress: &mut Progress) -> Result<(u64, ActivityPass), AnalysisError> {
    let pass = analyst.pass(PassKey::first(Stimulus::Clean), progress)?;
    let images = pass.images();
    let activity = pass.activity.expect("a clean pass measures activity");
    Ok((images, activity))
}

fn per_layer(analyst: &Analyst, images: u64, activity: &ActivityPass) -> Table {
    let mut table = Rows::new(
        "Activity of each layer",
        format!(
            "On {images} clean test samples in evaluation (no dropout). Spike rate: spikes / (neurons * \
             steps). Synaptic operations: non-zero inputs times fan-out, exact at borders, over all steps. \
             Weighted-input norm: time mean of the Euclidean norm over the layer of (W O_in)[t], mean over \
             samples. Dead: fired on no sample. Saturated: fired at 90 % of all steps or more."
        ),
    );
    let steps = analyst.run.config.time_steps as u64;
    let mut synops = activity.synops.iter();
    for (i, layer) in analyst.run.network.architecture.layers().iter().enumerate() {
        let neurons = layer.output.neurons() as u64;
        let share = |n: Option<&u64>| n.map(|&n| n as f64 / neurons as f64);
        let operations = if layer.kind == LayerKind::Pool { None } else { synops.next() };
        table.rows.push(ActivityRow {
            layer: layer.name.clone(),
            kind: layer.kind,
            neurons,
            spike_rate: activity.spikes.get(i).map(|&n| n as f64 / (neurons * steps * images) as f64),
            synops: operations.map(|&n| n as f64 / images as f64),
            weighted_input_norm: activity.norms.get(i).copied().flatten(),
            dead: share(activity.dead.get(i)),
            saturated: share(activity.saturated.get(i)),
        });
    }
    table.table()
}

fn summary(analyst: &Analyst, images: u64, activity: &ActivityPass) -> Table {
    let mut table = Rows::new(
        "Activity of the network, and NeuroBench's complexity metrics",
        format!(
            "Per sample, over {images} clean test samples; intervals are Student's t, 95 %, over samples, if \
             the value varies between samples. The next three are defined as in NeuroBench. Effective \
             operations: non-zero inputs times non-zero weights; accumulates (ACs) at steps whose inputs are \
             all -1, 0 or 1, otherwise multiply-accumulates (MACs). Activation sparsity: share of zeros in \
             the outputs of all spiking layers, including pools. Footprint: bytes of the weights. Neuron \
             operations: 4 for each update of a membrane potential, which is needed where an input arrives \
             and, with leak, at every step at which the potential is not zero; dense if every neuron is \
             updated at every step."
        ),
    );
    let network = &analyst.run.network;
    let hidden = network.architecture.hidden();
    let steps = analyst.run.config.time_steps;
    let spiking = |pools: bool| -> usize {
        let counted = hidden.iter().filter(|layer| pools || layer.kind != LayerKind::Pool);
        counted.map(|layer| layer.output.neurons() * steps).sum()
    };
    let mut push = |quantity: ActivityMeasure, value: f64, interval: Option<Estimate>| {
        let (low, high) = (interval.map(|i| i.low), interval.map(|i| i.high));
        table.rows.push(ActivitySummaryRow { quantity, value, low, high, unit: quantity.unit().to_owned() });
    };
    // There are always conv or FC neurons: the first layer of a network consists of them.
    let sites = spiking(false);
    let rates: Vec<f64> = activity.image_spikes.iter().map(|&n| n as f64 / sites as f64).collect();
    let total = activity.image_spikes.iter().sum::<u64>() as f64 / (images as f64 * sites as f64);
    push(ActivityMeasure::SpikeRate, total, mean_interval(&rates));
    let each: Vec<f64> = activity.image_synops.iter().map(|&n| n as f64).collect();
    let per_image = |total: u64| total as f64 / images as f64;
    push(ActivityMeasure::Synops, per_image(activity.synops.iter().sum()), mean_interval(&each));
    push(ActivityMeasure::EffectiveAcs, per_image(activity.effective_acs), None);
    push(ActivityMeasure::EffectiveMacs, per_image(activity.effective_macs), None);
    let updates = [activity.neuron_updates as f64 / images as f64, updates::dense(network, steps) as f64];
    let measures = [ActivityMeasure::EffectiveNeuronOps, ActivityMeasure::DenseNeuronOps];
    for (measure, updates) in measures.into_iter().zip(updates) {
        push(measure, updates * updates::OPERATIONS as f64, None);
    }
    let dense = neurobench::dense_macs(network);
    push(ActivityMeasure::DenseMacs, dense as f64, None);
    push(ActivityMeasure::DenseSynops, (dense * steps as u64) as f64, None);
    let spikes = activity.spikes.iter().sum::<u64>() as f64;
    let sparsity = 1.0 - spikes / (images as f64 * spiking(true) as f64);
    push(ActivityMeasure::ActivationSparsity, sparsity, None);
    push(ActivityMeasure::Footprint, neurobench::footprint(network) as f64, None);
    table.table()
}
