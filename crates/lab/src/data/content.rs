//! The content of a split: images as bytes, or recordings of an event camera as sorted lists of spikes.
//!
//! A recording is stored as one number per spike. With 4,000 events in 100 steps of 34x34 pixels this takes
//! 16 kB; bits would take 29 kB and floats 925 kB.

use leaklab_engine::Shape;
use sha2::{Digest, Sha256};

/// What is presented to a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Pixels, `[image][channel][row][column]`.
    Images(Vec<u8>),
    /// Recordings.
    Events(Recordings),
}

impl Default for Content {
    fn default() -> Self {
        Content::Images(Vec::new())
    }
}

impl Content {
    /// Adds the content to a hash.
    pub(super) fn hash(&self, hash: &mut Sha256) {
        match self {
            Content::Images(pixels) => hash.update(pixels),
            Content::Events(recordings) => {
                hash.update((recordings.steps as u64).to_le_bytes());
                for recording in recordings.iter() {
                    hash.update((recording.len() as u64).to_le_bytes());
                    let bytes: Vec<u8> = recording.iter().flat_map(|spike| spike.to_le_bytes()).collect();
                    hash.update(&bytes);
                }
            }
        }
    }
}

/// Recordings of an event camera, divided into time steps.
///
/// A spike is the number `step * neurons + neuron`, with `neuron` numbered `[polarity][row][column]`. The
/// numbers of a recording are strictly increasing: a pixel has at most one spike per polarity and step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recordings {
    steps: usize,
    neurons: usize,
    /// Index at which each recording begins in `spikes`, and at which the last one ends.
    starts: Vec<usize>,
    spikes: Vec<u32>,
    /// Number of events that were read; events with the same pixel, polarity and step are one spike.
    events: u64,
}

impl Recordings {
    /// An empty list of recordings with `steps` steps and pixels and polarities of that shape. If there are
    /// too many to number the spikes, the error is a message.
    pub fn new(steps: usize, shape: Shape) -> Result<Self, String> {
        let neurons = shape.neurons();
        match steps.checked_mul(neurons).filter(|&sites| sites > 0 && u32::try_from(sites).is_ok()) {
            Some(_) => Ok(Recordings { steps, neurons, starts: vec![0], ..Recordings::default() }),
            None => Err(format!(
                "{steps} steps of {neurons} pixels and polarities are more than 2^32 possible spikes; reduce \
                 time_steps or increase downsample"
            )),
        }
    }

    /// Adds a recording: `(step, neuron)` of each event, in any order.
    pub fn push(&mut self, events: impl Iterator<Item = (usize, usize)>) {
        let start = self.spikes.len();
        for (step, neuron) in events {
            debug_assert!(step < self.steps && neuron < self.neurons);
            self.spikes.push((step * self.neurons + neuron) as u32);
            self.events += 1;
        }
        self.spikes[start..].sort_unstable();
        let mut end = start;
        for i in start..self.spikes.len() {
            if end == start || self.spikes[end - 1] != self.spikes[i] {
                self.spikes[end] = self.spikes[i];
                end += 1;
            }
        }
        self.spikes.truncate(end);
        self.starts.push(end);
    }

    /// Number of recordings.
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Time steps of every recording.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Number of events that were read.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Number of spikes that these events became.
    pub fn spikes(&self) -> usize {
        self.spikes.len()
    }

    /// Size of the recordings in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(self.spikes.as_slice()) + size_of_val(self.starts.as_slice())
    }

    /// The spikes of a recording, each as `(step, neuron)`, in temporal order.
    pub fn recording(&self, index: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.slice(index).iter().map(|&spike| (spike as usize / self.neurons, spike as usize % self.neurons))
    }

    fn slice(&self, index: usize) -> &[u32] {
        &self.spikes[self.starts[index]..self.starts[index + 1]]
    }

    fn iter(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.len()).map(|index| self.slice(index))
    }

    /// The recordings with these indices.
    pub(super) fn pick(&self, chosen: &[usize]) -> Self {
        let mut picked =
            Recordings { steps: self.steps, neurons: self.neurons, starts: vec![0], ..Recordings::default() };
        for &index in chosen {
            picked.spikes.extend_from_slice(self.slice(index));
            picked.starts.push(picked.spikes.len());
        }
        picked.events = picked.spikes.len() as u64;
        picked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { channels: 2, height: 2, width: 3 };

    #[test]
    fn sorted_without_repetition_and_picked() {
        let mut all = Recordings::new(4, SHAPE).unwrap();
        all.push([(3, 11), (0, 5), (3, 11), (1, 0)].into_iter());
        all.push(std::iter::empty());
        all.push([(2, 7)].into_iter());
        assert_eq!((all.len(), all.events(), all.spikes()), (3, 5, 4));
        assert_eq!(all.recording(0).collect::<Vec<_>>(), [(0, 5), (1, 0), (3, 11)]);
        let picked = all.pick(&[2, 0]);
        assert_eq!((picked.len(), picked.spikes()), (2, 4));
        assert_eq!(picked.recording(0).collect::<Vec<_>>(), [(2, 7)]);
        assert_eq!(picked.recording(1).count(), 3);
        assert!(Recordings::new(65_535, Shape { channels: 2, height: 255, width: 257 }).is_err());
    }
}
