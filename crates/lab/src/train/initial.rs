//! The weights that a training starts from.

use super::TrainError;
use crate::calibrate::{rates, scale_to_rates};
use crate::config::{InitialScale, RunConfig};
use crate::data::Presentation;
use crate::data::Split;
use crate::data::present::Scratch;
use crate::evaluate::Inputs;
use leaklab_engine::{Input, Leak, Network, Packed, Tau};

/// Number of training images on which the rates are measured.
const IMAGES: usize = 64;

/// The network of a run before its first update; `training` shows the training images.
pub(super) fn network(
    config: &RunConfig,
    training: &Presentation,
    images: &Split,
) -> Result<Network, TrainError> {
    let mut network = config.initial_network()?;
    match config.initial {
        InitialScale::FanIn => {}
        InitialScale::Rate => {
            let show = |i: usize, input: &mut Input| {
                training.show(images, i, 0, &mut Scratch::default(), input);
            };
            let shown = Inputs { count: IMAGES.min(images.len()), steps: config.time_steps, show };
            let isa = training.encoding.isa;
            let without = network.clone().with_leak(Leak::uniform(Tau::INFINITE))?;
            let wanted = rates(&Packed::new(&without, isa)?, &shown)?;
            scale_to_rates(&mut network, &wanted, &shown, isa)?;
        }
    }
    Ok(network)
}

#[cfg(test)]
mod tests {
    use super::super::{Control, Initial, Options, train};
    use super::*;
    use crate::config::Settings;
    use crate::data::{Limits, load};
    use crate::evaluate;
    use leaklab_engine::Isa;

    fn config(settings: &[&str]) -> RunConfig {
        let mut all = Settings::default();
        let common = ["dataset=digits", "tau=2", "seed=3", "time_steps=20"];
        common.iter().chain(settings).for_each(|text| all.assign(text).unwrap());
        RunConfig::resolve(all).unwrap()
    }

    #[test]
    fn given_weights_are_not_also_scaled() {
        let config = config(&["initial=rate", "epochs=1"]);
        let weights = vec![0.1; config.network.parameter_count()];
        let options = Options { initial: Some(Initial { weights }), ..Options::default() };
        let folder = tempfile::tempdir().unwrap();
        let refused = train(&config, &folder.path().join("run"), &options, &mut |_| Control::Stop);
        assert!(matches!(refused, Err(TrainError::Scaled)), "{refused:?}");
    }

    #[test]
    fn layers_fire_as_without_leak() {
        let dataset = load("digits", None, &Limits::NONE).unwrap();
        let rates_of = |config: &RunConfig| {
            let training = evaluate::presentation(config, &dataset);
            let network = network(config, &training, &dataset.train).unwrap();
            let show = |i: usize, input: &mut Input| {
                training.show(&dataset.train, i, 0, &mut Scratch::default(), input);
            };
            let shown = Inputs { count: IMAGES, steps: config.time_steps, show };
            rates(&Packed::new(&network, Isa::best()).unwrap(), &shown).unwrap()
        };
        let without = rates_of(&config(&["tau=inf"]));
        let plain = rates_of(&config(&[]));
        let scaled = rates_of(&config(&["initial=rate"]));
        for (i, (&without, (&plain, &scaled))) in without.iter().zip(plain.iter().zip(&scaled)).enumerate() {
            assert!((scaled / without - 1.0).abs() < 0.03, "layer {i}: {scaled} for {without}");
            assert!(plain < 0.9 * without, "layer {i}: leak changes the rate: {plain}, {without}");
        }
    }
}
