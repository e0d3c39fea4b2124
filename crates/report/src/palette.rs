//! Colours. One membrane time constant has one colour everywhere on the page: the paper's blue, red and green for
//! tau 30, 100 and infinity, as colour-blind-safe equivalents (Okabe and Ito). A specification names a colour by its
//! token (`@blue`); the page's script puts in the shade of the theme, so that both themes have enough contrast.

/// Token, shade on white, shade on dark.
pub const COLOURS: [(&str, &str, &str); 9] = [
    ("@blue", "#0072b2", "#58b0ee"),
    ("@vermilion", "#d55e00", "#ff8a4c"),
    ("@green", "#00866a", "#35c9a2"),
    ("@purple", "#a8508a", "#e19ac6"),
    ("@amber", "#b07a00", "#eebb44"),
    ("@sky", "#3a8fbf", "#8fd3f5"),
    ("@slate", "#5c6370", "#a4acb9"),
    ("@brown", "#8a5a44", "#d0a48e"),
    ("@rule", "#9aa1ad", "#6f7887"),
];

/// The colour token of a membrane time constant; `position` is its rank in the study and decides the colour of
/// values the paper does not use.
pub fn tau(tau: &str, position: usize) -> &'static str {
    match tau {
        "30" => "@blue",
        "100" => "@vermilion",
        "inf" => "@green",
        _ => ["@purple", "@amber", "@sky", "@brown", "@slate"][position % 5],
    }
}

/// The mark's shape of a membrane time constant, a second sign beside the colour.
pub fn shape(tau: &str, position: usize) -> &'static str {
    match tau {
        "30" => "circle",
        "100" => "square",
        "inf" => "triangle-up",
        _ => ["diamond", "cross", "triangle-down", "triangle-right", "triangle-left"][position % 5],
    }
}

/// A membrane time constant as a reader writes it.
pub fn tau_label(tau: &str) -> String {
    match tau {
        "inf" => "τ = ∞ (no leak)".to_owned(),
        _ => format!("τ = {tau}"),
    }
}
