//! How many images this analysis shows, computed from a study's settings before anything is trained.

use super::{colours, response};
use crate::config::StudyConfig;
use leaklab_engine::{LayerKind, Tau};

/// Images that are shown if every run learns; 0 if the study has no pair with and without leak. `images` is
/// the number of test images that analyses use.
pub fn planned_images(config: &StudyConfig, images: u64) -> u64 {
    let base = &config.base;
    let tau_alone = config.conditions.iter().filter(|condition| {
        !condition.run.probe && condition.differs.iter().all(|(key, _)| key == "tau" || key == "seeds")
    });
    let taus: Vec<Tau> = tau_alone.filter_map(|condition| condition.run.leak.as_uniform()).collect();
    let leaky = taus.iter().filter(|tau| tau.leaks()).count() as u64;
    if leaky == 0 || leaky == taus.len() as u64 {
        return 0;
    }
    let noises = base.noise.len() as u64;
    let hidden = base.network.hidden().iter().filter(|layer| layer.kind != LayerKind::Pool).count() as u64;
    // With one layer, leak in it alone is leak everywhere; with two, leak in one alone is leak in all but the
    // other.
    let layers = match hidden {
        0 | 1 => 0,
        2 => 2,
        n => 2 * n,
    };
    let runs = (1 + noises) * (1 + 3 * leaky) + noises.max(1) * layers;
    let panel = runs * images * base.presentations;
    let steps = base.time_steps as u64;
    // Recordings are not encoded, so what the encoder makes is omitted.
    let encoded = match base.has_events() {
        true => 0,
        false => colours::images_of(images, true) + response::images_of(images, steps),
    };
    config.seeds.len() as u64 * (panel + encoded)
}
