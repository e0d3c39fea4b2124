//! `leaklab evaluate`.

use crate::images::Images;
use crate::{Outcome, flags, folder, usage};
use leaklab_engine::{Isa, Network, Packed};
use leaklab_lab::evaluate::{Evaluation, evaluate, presentation};
use leaklab_lab::exchange::quantise::{self, WeightBits};
use leaklab_lab::run::{TrainedRun, Weights, keep_training_images};
use leaklab_lab::train::threads;
use leaklab_record::Machine;
use std::path::PathBuf;

/// Measure the accuracy of a trained run on its test set, clean or under noise.
#[derive(clap::Args)]
pub struct Arguments {
    /// The run's folder.
    run: PathBuf,
    #[command(flatten)]
    noise: flags::NoiseFlags,
    /// Use the weights of the epoch with the highest test accuracy instead of the last ones.
    #[arg(long)]
    best: bool,
    /// Round the weights to this many bits, 8 or 4, and report the effect.
    #[arg(long, value_name = "BITS")]
    weight_bits: Option<WeightBits>,
    #[command(flatten)]
    leak: flags::LeakFlags,
    /// Evaluate the training images (without augmentation and dropout) instead of the test images.
    #[arg(long)]
    train: bool,
    /// Use this many images, class-balanced, instead of the number in the run's settings.
    #[arg(long, value_name = "IMAGES", value_parser = flags::images, allow_negative_numbers = true)]
    limit: Option<usize>,
    /// Folder with the data sets, instead of the one in the run's settings.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Number of threads; results do not depend on it.
    #[arg(long, value_name = "N", value_parser = flags::threads, allow_negative_numbers = true)]
    threads: Option<usize>,
    #[arg(long, value_name = "SET", help = flags::ISA)]
    isa: Option<Isa>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(arguments: Arguments) -> Outcome {
    let weights = if arguments.best { Weights::Best } else { Weights::Last };
    folder::check_run(&arguments.run)?;
    let mut run = TrainedRun::open(&arguments.run, weights)?;
    if let Some(notice) = &run.notice {
        eprintln!("warning: {notice}");
    }
    run.change_leak(&arguments.leak.change().map_err(usage)?).map_err(usage)?;
    run.config.data_dir = arguments.data_dir.clone().or(run.config.data_dir);
    let limit = arguments.limit;
    if !arguments.train {
        run.config.test_limit = limit.or(run.config.test_limit);
    }
    let named = arguments.noise.named().map_err(usage)?;
    let noise = match named {
        Some((noise, scenario, severity)) => {
            run.config.severities.setting(noise, scenario, severity).map_err(usage)?
        }
        None => None,
    };
    let mut dataset = run.dataset()?;
    let pool = threads(arguments.threads)?;
    let isa = arguments.isa.unwrap_or_else(Isa::best);
    let presentation = presentation(&run.config, &dataset).with_isa(isa).noisy(noise).map_err(usage)?;
    // Images are removed only after the normalisation is set up as in training, because it may depend on all
    // of them.
    if let Some(limit) = limit.filter(|_| arguments.train) {
        keep_training_images(&mut dataset, limit)?;
    }
    let split = if arguments.train { &dataset.train } else { &dataset.test };
    let mut images = Images::new(false);
    let mut measure = |network: &Network| -> Result<Evaluation, Box<dyn std::error::Error>> {
        let packed = pool.install(|| Packed::new(network, isa))?;
        let evaluation = evaluate(&packed, &run.config.network, &presentation, split, &pool, &mut |done| {
            images.show("evaluating", done as u64, split.len() as u64);
            true
        })?;
        images.clear();
        Ok(evaluation.ok_or("the evaluation was stopped")?)
    };
    let exact = measure(&run.network)?;
    let rounding = match arguments.weight_bits {
        None => None,
        Some(bits) => {
            let rounded = quantise::dequantise(&run.network, &quantise::quantise(&run.network, bits));
            Some((bits, measure(&rounded)?))
        }
    };
    let evaluation = rounding.as_ref().map_or(&exact, |(_, rounded)| rounded);
    let level = noise.map(|setting| setting.level());
    let stimulus = match (named, noise) {
        (Some((noise, scenario, severity)), Some(_)) => format!("{noise}/{scenario}/{severity}"),
        _ => "clean".to_owned(),
    };
    let which = if arguments.train { "train" } else { run.config.tested_on() };
    if arguments.json {
        let mut object = evaluation.object(run.position.epoch, &stimulus);
        object["level"] = level.into();
        object["split"] = which.into();
        object["run"] = arguments.run.display().to_string().into();
        object["tau"] = run.network.leak().to_string().into();
        object["trained_tau"] = run.trained_leak.as_ref().unwrap_or(run.network.leak()).to_string().into();
        object["notices"] = run.notice.iter().cloned().collect::<Vec<_>>().into();
        if let Some((bits, rounded)) = &rounding {
            object["weight_bits"] = bits.count().into();
            object["exact_accuracy"] = exact.accuracy().into();
            object["silenced"] = quantise::silenced(&exact, rounded).into();
        }
        object["machine"] = serde_json::json!(Machine::here(isa));
        println!("{object}");
    } else {
        let level = level.map_or(String::new(), |level| format!(" (level {level})"));
        print(&run, evaluation, which, &format!("{stimulus}{level}"));
        if let Some((bits, rounded)) = &rounding {
            println!("{}", rounding_words(*bits, &exact, rounded));
        }
    }
    Ok(())
}

/// The effect of rounded weights in words.
fn rounding_words(bits: WeightBits, exact: &Evaluation, rounded: &Evaluation) -> String {
    let change = 100.0 * (rounded.accuracy() - exact.accuracy());
    // There is no percentage of 0.
    let synops = if exact.synops > 0.0 {
        format!("and the synaptic operations by {:+.1} %", 100.0 * (rounded.synops / exact.synops - 1.0))
    } else if rounded.synops > 0.0 {
        format!("and the synaptic operations from none to {:.4e} per image", rounded.synops)
    } else {
        "and leaves the network without synaptic operations".to_owned()
    };
    let silence = match &quantise::silenced(exact, rounded)[..] {
        [] => "no layer falls silent".to_owned(),
        [layer] => format!("{layer} falls silent with rounded weights"),
        layers => format!("{} fall silent with rounded weights", layers.join(", ")),
    };
    format!(
        "weights     {bits} bits; with float32 weights the accuracy is {:.2} %, so rounding changes it by \
         {change:+.2} points {synops}\nsilence     {silence}",
        100.0 * exact.accuracy()
    )
}

fn print(run: &TrainedRun, evaluation: &Evaluation, split: &str, stimulus: &str) {
    let interval = evaluation.interval();
    println!("{} after epoch {}, {stimulus}", run.folder.path().display(), run.position.epoch);
    if let Some(trained) = &run.trained_leak {
        println!("trained with tau {trained}, run with tau {}", run.network.leak());
    }
    println!(
        "accuracy    {:.2} % ({:.2} to {:.2} %, 95 % Wilson interval; {} of {} {split} images)",
        100.0 * evaluation.accuracy(),
        100.0 * interval.low,
        100.0 * interval.high,
        evaluation.correct,
        evaluation.images
    );
    println!("sse         {:.4}", evaluation.sse);
    println!("spike_rate  {:.3} %", 100.0 * evaluation.spike_rate);
    println!("synops      {:.4e} per image", evaluation.synops);
}

#[cfg(test)]
mod tests {
    use super::*;
    use leaklab_record::LayerKind;
    use leaklab_record::metrics::LayerEpoch;

    /// An evaluation of two hidden layers with these spike rates.
    fn evaluation(synops: f64, rates: [f64; 2]) -> Evaluation {
        let layer = |(name, rate): (&str, f64)| LayerEpoch {
            name: name.to_owned(),
            kind: LayerKind::Full,
            spike_rate: Some(rate),
            synops: None,
            weighted_input_norm: None,
        };
        let layers = ["fc1", "fc2"].into_iter().zip(rates).map(layer).collect();
        Evaluation { images: 10, correct: 5, sse: 0.5, spike_rate: rates[0], synops, layers }
    }

    #[test]
    fn rounding_in_words() {
        let exact = evaluation(200.0, [0.1, 0.1]);
        for (rates, words) in [
            ([0.1, 0.1], "silence     no layer falls silent"),
            ([0.1, 0.0], "silence     fc2 falls silent with rounded weights"),
            ([0.0, 0.0], "silence     fc1, fc2 fall silent with rounded weights"),
        ] {
            let text = rounding_words(WeightBits::Four, &exact, &evaluation(100.0, rates));
            assert!(text.ends_with(words) && text.contains("operations by -50.0 %"), "{text}");
        }
        // A network without synaptic operations.
        let none = evaluation(0.0, [0.0, 0.0]);
        for (synops, words) in [
            (0.0, "+0.00 points and leaves the network without synaptic operations\n"),
            (30.0, "+0.00 points and the synaptic operations from none to 3.0000e1 per image\n"),
        ] {
            let text = rounding_words(WeightBits::Eight, &none, &evaluation(synops, [0.0, 0.0]));
            assert!(text.contains(words), "{text}");
        }
    }
}
