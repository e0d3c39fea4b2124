//! Part of a data set, class-balanced and chosen by seed.

use super::{Content, DataError, Dataset, Split};
use leaklab_engine::philox::{Purpose, Stream, permutation};

/// How many images to keep.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Limits {
    /// Training images; all where it is `None`.
    pub train: Option<usize>,
    /// Test images; all where it is `None`.
    pub test: Option<usize>,
    /// Share of the training images that is held out and takes the place of the test images; 0 for none.
    pub validation: f32,
    /// Which images: the same seed gives the same ones, and a smaller limit a part of a larger one.
    pub seed: u64,
}

impl Limits {
    /// Keeps everything.
    pub const NONE: Limits = Limits { train: None, test: None, validation: 0.0, seed: 0 };

    /// Leaves images out.
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
                        "a {which} limit of 0 leaves no image; 1 is the least"
                    )));
                }
                Some(limit) if limit >= split.len() => {}
                Some(limit) => *split = balanced(split, classes, limit, self.seed),
            }
        }
        Ok(())
    }
}

/// Puts a share of the training images in place of the test images, which are then not looked at.
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

/// `limit` images, from every class as many, in their old order. The classes take turns, each in an order of
/// its own; one that has no more is passed over.
pub(crate) fn balanced(split: &Split, classes: usize, limit: usize, seed: u64) -> Split {
    pick(split, &choose(split, classes, limit, seed))
}

/// Indices of a balanced part, ascending.
fn choose(split: &Split, classes: usize, limit: usize, seed: u64) -> Vec<usize> {
    let mut of_class = vec![Vec::new(); classes];
    split.labels.iter().enumerate().for_each(|(i, &label)| of_class[usize::from(label)].push(i));
    for (class, members) in of_class.iter_mut().enumerate() {
        let first = members.first().map_or(0, |&i| split.samples[i]);
        // A split's first sample tells train from test, and the class is below 256.
        let stream = Stream::new(seed, Purpose::Subset, class as u32, first >> 31);
        *members = permutation(stream, members.len()).into_iter().map(|i| members[i as usize]).collect();
    }
    let rounds = of_class.iter().map(Vec::len).max().unwrap_or(0);
    let turns = (0..rounds).flat_map(|round| of_class.iter().filter_map(move |members| members.get(round)));
    let mut chosen: Vec<usize> = turns.take(limit).copied().collect();
    chosen.sort_unstable();
    chosen
}

/// The images of some indices.
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
