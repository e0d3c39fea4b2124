//! Colours. A condition has one colour everywhere on the page. Tau 30, 100 and infinity have the paper's
//! blue, red and green, as colour-blind-safe equivalents (Okabe and Ito). Other conditions get colours in the
//! order in which they are shown, and grey is for networks that did not learn. Layers have separate colours,
//! shades of violet, and so do inputs (clean, noisy), so that no colour means two things. A specification
//! names a colour by its token (`@blue`). The page's script inserts the theme's shade, so that both themes
//! have enough contrast.

use leaklab_record::Tau;

/// Token, shade on white, shade on dark.
pub const COLOURS: [(&str, &str, &str); 28] = [
    ("@blue", "#0072b2", "#58b0ee"),
    ("@vermilion", "#d55e00", "#ff8a4c"),
    ("@green", "#00866a", "#35c9a2"),
    ("@amber", "#b07a00", "#eebb44"),
    ("@sky", "#3a8fbf", "#8fd3f5"),
    ("@brown", "#8a5a44", "#d0a48e"),
    ("@olive", "#66761a", "#b9cc5a"),
    ("@black", "#30343c", "#dfe3ea"),
    ("@navy", "#1f4287", "#a9bdf5"),
    ("@maroon", "#7d2a1e", "#e8a598"),
    ("@unlearned", "#9499a3", "#767e8c"),
    ("@layer0", "#5c6370", "#a4acb9"),
    ("@layer1", "#b096e8", "#8c70cf"),
    ("@layer2", "#d071c4", "#d97fd0"),
    ("@layer3", "#9c2f94", "#f0b3ea"),
    ("@layer4", "#7a4fd8", "#a98fff"),
    ("@layer5", "#45358f", "#d3c9ff"),
    ("@layer6", "#1f164d", "#f4f0ff"),
    ("@clean", "#5c6370", "#a4acb9"),
    ("@noise1", "#b3224d", "#ff7d9c"),
    ("@noise2", "#7a4a9c", "#c99bec"),
    ("@noise3", "#8a6d00", "#dcbf52"),
    ("@noise4", "#2f6f7e", "#79c2d2"),
    ("@negative", "#d32f2f", "#ff6b6b"),
    ("@band", "#eef0ec", "#222833"),
    ("@worse", "#f0a590", "#8a3a24"),
    ("@better", "#93c4ea", "#1d5a8c"),
    ("@rule", "#9aa1ad", "#6f7887"),
];

/// Colours and mark shapes of conditions that are not in the paper.
const OTHERS: [(&str, &str); 7] = [
    ("@amber", "diamond"),
    ("@black", "cross"),
    ("@olive", "triangle-down"),
    ("@brown", "triangle-right"),
    ("@sky", "triangle-left"),
    ("@navy", "wedge"),
    ("@maroon", "arrow"),
];

/// How a condition is drawn: its shape distinguishes it in addition to its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Colour token.
    pub colour: &'static str,
    /// Shape of its marks.
    pub shape: &'static str,
}

/// The looks of conditions in the order in which they are shown. Each condition is given by its time
/// constant, if it has one, and whether it learned.
pub fn looks(conditions: impl IntoIterator<Item = (Option<Tau>, bool)>) -> Vec<Look> {
    // Colours repeat after seven, each time with the next shape.
    let n = OTHERS.len();
    let mut others = (0..).map(|i| (OTHERS[i % n].0, OTHERS[(i + i / n) % n].1));
    let mut look = |tau: Option<Tau>, learned: bool| {
        let paper = tau.and_then(|tau| match tau.steps() {
            30.0 => Some(("@blue", "circle")),
            100.0 => Some(("@vermilion", "square")),
            f64::INFINITY => Some(("@green", "triangle-up")),
            _ => None,
        });
        let (colour, shape) = paper.or_else(|| others.next()).unwrap_or(OTHERS[0]);
        Look { colour: if learned { colour } else { "@unlearned" }, shape }
    };
    conditions.into_iter().map(|(tau, learned)| look(tau, learned)).collect()
}

/// The colour token of a layer, by its position among all layers; position 0 is the input.
pub fn layer(place: usize) -> &'static str {
    const LAYERS: [&str; 6] = ["@layer1", "@layer2", "@layer3", "@layer4", "@layer5", "@layer6"];
    if place == 0 { "@layer0" } else { LAYERS[(place - 1) % LAYERS.len()] }
}

/// The colour token of a stimulus, by its position; position 0 is clean.
pub fn stimulus(place: usize) -> &'static str {
    const NOISES: [&str; 4] = ["@noise1", "@noise2", "@noise3", "@noise4"];
    if place == 0 { "@clean" } else { NOISES[(place - 1) % NOISES.len()] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_is_known_and_no_colour_means_two_things() {
        let known = |token: &str| COLOURS.iter().any(|(name, ..)| *name == token);
        let taus = [3.0, 30.0, 100.0, 300.0, f64::INFINITY].map(|steps| Tau::new(steps).ok());
        let looks = looks(taus.into_iter().chain([None; 40]).map(|tau| (tau, true)));
        let colours: std::collections::BTreeSet<_> = looks[..10].iter().map(|look| look.colour).collect();
        assert_eq!(colours.len(), 10, "a finer sweep has ten conditions");
        let layers: Vec<&str> = (0..9).map(layer).collect();
        for (i, look) in looks.iter().enumerate() {
            assert!(known(look.colour) && !layers.contains(&look.colour), "{look:?}");
            assert!(!looks[..i].contains(look), "{look:?} twice");
        }
        assert!(layers.iter().all(|token| known(token)) && (0..6).all(|place| known(stimulus(place))));
        assert!((1..9).all(|i| layers[i] != layers[i - 1]));
    }
}
