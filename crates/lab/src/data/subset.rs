//! Part of a data set, class-balanced and chosen by seed.

use super::{DataError, Dataset, Split};
use leaklab_engine::philox::{Purpose, Stream, permutation};

/// How many images to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Training images; all where it is `None`.
    pub train: Option<usize>,
    /// Test images; all where it is `None`.
    pub test: Option<usize>,
    /// Which images: the same seed gives the same ones, and a smaller limit a part of a larger one.
    pub seed: u64,
}

impl Limits {
    /// Keeps everything.
    pub const NONE: Limits = Limits { train: None, test: None, seed: 0 };

    /// Leaves images out.
    pub(super) fn apply(&self, dataset: &mut Dataset) -> Result<(), DataError> {
        let classes = dataset.classes;
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

/// `limit` images, from every class as many, in their old order. The classes take turns, each in an order of its
/// own; one that has no more is passed over.
fn balanced(split: &Split, classes: usize, limit: usize, seed: u64) -> Split {
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
    Split {
        images: chosen.iter().flat_map(|&i| split.image(i)).copied().collect(),
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
