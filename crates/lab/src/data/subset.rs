//! Class-balanced parts of a data set, chosen by seed.

use super::{Content, DataError, Dataset, Split};
use leaklab_engine::philox::{Purpose, Stream, permutation};

/// How many images are used.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Limits {
    /// Number of training images; all if `None`.
    pub train: Option<usize>,
    /// Number of test images; all if `None`.
    pub test: Option<usize>,
    /// Fraction of the training images that is held out and replaces the test images; 0 for none.
    pub validation: f32,
    /// Seed that selects the images. With the same seed, the images of a smaller limit are a subset of those
    /// of a larger one.
    pub seed: u64,
}

impl Limits {
    /// All images.
    pub const NONE: Limits = Limits { train: None, test: None, validation: 0.0, seed: 0 };

    /// Reduces a data set to the selected images.
    pub fn apply(&self, dataset: &mut Dataset) -> Result<(), DataError> {
        let classes = dataset.classes;
        if self.validation > 0.0 {
            hold_out(dataset, self.validation, self.seed)?;
        }
        for (which, limit, split) in
            [("train", self.train, &mut dataset.train), ("test", self.test, &mut dataset.test)]
        {
            match limit {
                None => {}
                Some(0) => {
                    return Err(DataError::Request(format!(
                        "a {which} limit of 0 leaves no image; a number of 1 or more is expected"
                    )));
                }
                Some(limit) if limit >= split.len() => {}
                Some(limit) => *split = balanced(split, classes, limit, self.seed),
            }
        }
        Ok(())
    }
}

/// Replaces the test images by a fraction of the training images; the test images are then not used.
fn hold_out(dataset: &mut Dataset, share: f32, seed: u64) -> Result<(), DataError> {
    let train = &dataset.train;
    let held = (f64::from(share) * train.len() as f64).round() as usize;
    if held == 0 || held >= train.len() {
        return Err(DataError::Request(format!(
            "validation = {share} of {} training images leaves none to train on or none to validate with",
            train.len()
        )));
    }
    let chosen = choose(train, dataset.classes, held, seed);
    let rest: Vec<usize> = (0..train.len()).filter(|i| chosen.binary_search(i).is_err()).collect();
    (dataset.test, dataset.train) = (pick(train, &chosen), pick(train, &rest));
    Ok(())
}

/// `limit` images, equally many of every class, in their original order. They are chosen from the classes in
/// turn, in a random order within each class; a class without further images is skipped.
pub(crate) fn balanced(split: &Split, classes: usize, limit: usize, seed: u64) -> Split {
    pick(split, &choose(split, classes, limit, seed))
}

/// Indices of a balanced subset, ascending.
fn choose(split: &Split, classes: usize, limit: usize, seed: u64) -> Vec<usize> {
    let mut of_class = vec![Vec::new(); classes];
    split.labels.iter().enumerate().for_each(|(i, &label)| of_class[usize::from(label)].push(i));
    for (class, members) in of_class.iter_mut().enumerate() {
        let first = members.first().map_or(0, |&i| split.samples[i]);
        // The top bit of a sample number distinguishes test from training images.
        let stream = Stream::new(seed, Purpose::Subset, class as u32, first >> 31);
        *members = permutation(stream, members.len()).into_iter().map(|i| members[i as usize]).collect();
    }
    let rounds = of_class.iter().map(Vec::len).max().unwrap_or(0);
    let turns = (0..rounds).flat_map(|round| of_class.iter().filter_map(move |members| members.get(round)));
    let mut chosen: Vec<usize> = turns.take(limit).copied().collect();
    chosen.sort_unstable();
    chosen
}

/// The images with these indices.
fn pick(split: &Split, chosen: &[usize]) -> Split {
    let content = match &split.content {
        Content::Images(_) => Content::Images(chosen.iter().flat_map(|&i| split.image(i)).copied().collect()),
        Content::Events(recordings) => Content::Events(recordings.pick(chosen)),
    };
    Split {
        content,
        labels: chosen.iter().map(|&i| split.labels[i]).collect(),
        samples: chosen.iter().map(|&i| split.samples[i]).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Split {
        let labels: Vec<u8> = (0..100).map(|i| if i < 3 { 2 } else { (i % 2) as u8 }).collect();
        Split::new((0..200).map(|i| (i / 2) as u8).collect(), labels, 0)
    }

    #[test]
    fn what_is_held_out_is_not_trained_on() {
        let (train, test) = (example(), Split::default());
        let shape = leaklab_engine::Shape { channels: 1, height: 1, width: 2 };
        let (name, class_names) = (String::new(), Vec::new());
        let mut dataset = Dataset { name, shape, classes: 3, class_names, train, test };
        Limits { validation: 0.2, ..Limits::NONE }.apply(&mut dataset).unwrap();
        assert_eq!((dataset.train.len(), dataset.test.len()), (80, 20));
        assert!(dataset.test.samples.iter().all(|sample| !dataset.train.samples.contains(sample)));
        assert_eq!(dataset.test.class_counts(3), [9, 8, 3]);
        let refused = Limits { validation: 0.001, ..Limits::NONE }.apply(&mut dataset).unwrap_err();
        assert!(refused.to_string().contains("none to validate with"), "{refused}");
    }

    #[test]
    fn balanced_nested_and_by_seed() {
        let split = example();
        let part = balanced(&split, 3, 20, 1);
        assert_eq!(part.class_counts(3), [9, 8, 3]);
        for i in 0..part.len() {
            let sample = part.sample(i) as usize;
            assert_eq!((part.image(i), part.labels[i]), (split.image(sample), split.labels[sample]));
        }
        assert!(part.samples.is_sorted());
        let smaller = balanced(&split, 3, 10, 1);
        assert!(smaller.samples.iter().all(|sample| part.samples.contains(sample)));
        assert_ne!(part.samples, balanced(&split, 3, 20, 2).samples);
    }
}
