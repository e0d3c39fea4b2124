//! The built-in studies, and which of them supplies the defaults of a data set.

/// Name and text of each built-in study.
pub const BUILTIN: [(&str, &str); 9] = [
    ("digits", include_str!("../../studies/digits.toml")),
    ("digits-where", include_str!("../../studies/digits-where.toml")),
    ("digits-further", include_str!("../../studies/digits-further.toml")),
    ("digits-events", include_str!("../../studies/digits-events.toml")),
    ("fashion-mnist", include_str!("../../studies/fashion-mnist.toml")),
    ("cifar10-small", include_str!("../../studies/cifar10-small.toml")),
    ("svhn-small", include_str!("../../studies/svhn-small.toml")),
    ("cifar10", include_str!("../../studies/cifar10.toml")),
    ("svhn", include_str!("../../studies/svhn.toml")),
];

/// The text of a built-in study.
pub fn builtin_text(name: &str) -> Option<&'static str> {
    BUILTIN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The built-in study that supplies the keys that a file with this data set does not set. For CIFAR-10 and
/// SVHN it is the small one: the paper's protocol takes days and should be requested by name.
pub(super) fn default_study(dataset: &str) -> &'static str {
    match dataset {
        "digits" => "digits",
        own if own == "npz" || own.starts_with("npz:") => "digits",
        "digits-events" | "n-mnist" => "digits-events",
        own if own == "events" || own.starts_with("events:") => "digits-events",
        "mnist" | "fashion-mnist" => "fashion-mnist",
        "svhn" => "svhn-small",
        _ => "cifar10-small",
    }
}
