//! The built-in studies. The table of data sets (`data/table.rs`) names the one that supplies the defaults of
//! a data set.

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RunConfig;
    use crate::data::DATASETS;

    #[test]
    fn every_data_set_names_a_study_of_its_kind_of_data() {
        for info in DATASETS {
            assert!(builtin_text(info.defaults).is_some(), "{}: there is no {}", info.name, info.defaults);
            let mut settings = crate::config::Settings::default();
            settings.assign(&format!("dataset={}", info.name)).unwrap();
            settings.assign("tau=30").unwrap();
            let run = RunConfig::resolve(settings).unwrap();
            assert_eq!(run.dataset, info.name);
        }
    }
}
