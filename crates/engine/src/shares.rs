//! A mini-batch that several processes share, with results that are bit-identical to those
//! of [`train_batch`](crate::train_batch).
//!
//! Sums of floating-point numbers depend on their order, so processes cannot simply add up their own partial
//! sums. Each process runs some groups of images and owns some weights of each layer. It sends to every owner
//! what its groups contribute to the gradient of the owner's weights. The owner adds up the contributions in
//! the order of the groups and sends the sums to all processes. Each number is thus sent twice, as in an
//! ordinary reduction. The caller transfers the messages: the engine does no input or output.

use crate::batch::{GROUP, InputError, Scratch, WAVE, train_group};
use crate::layer::conv::Conv;
use crate::layer::full::Full;
use crate::layer::full::message::take;
use crate::masks::Masks;
use crate::packed::{Gradient, GroupGradient, Packed, PackedLayer};
use crate::simd::Row;
use crate::spikes::Input;
use crate::trace::Trace;
use rayon::prelude::*;
use std::ops::Range;

/// Number of values in an entry of a convolution's packed gradient.
const ENTRY: usize = 9 * 16;

/// One of several processes that train together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Its number, counted from 0.
    pub rank: usize,
    /// Number of processes.
    pub ranks: usize,
}

impl Place {
    /// This process's share of `count` items, a consecutive range. The sizes of shares differ by at most one.
    pub fn share(self, count: usize) -> Range<usize> {
        count * self.rank / self.ranks..count * (self.rank + 1) / self.ranks
    }

    /// This process's share of `count` samples, in whole groups.
    pub fn samples(self, count: usize) -> Range<usize> {
        let groups = self.share(count.div_ceil(GROUP));
        count.min(groups.start * GROUP)..count.min(groups.end * GROUP)
    }

    fn all(self) -> impl Iterator<Item = Place> {
        (0..self.ranks).map(move |rank| Place { rank, ..self })
    }
}

/// A mini-batch that several processes share. In each of its rounds every process calls [`run`](Self::run),
/// [`sum`](Self::sum) and [`add`](Self::add), and transfers the messages in between.
#[derive(Debug, Clone, Copy)]
pub struct SharedBatch<'a> {
    /// The network, the same in all processes.
    pub packed: &'a Packed,
    /// Time steps of a sample.
    pub steps: usize,
    /// Samples of the whole batch.
    pub samples: usize,
    /// The gradient mode.
    pub mode: Gradient,
    /// Which process this is.
    pub place: Place,
    /// Total number of threads of all processes, which determines how
    /// many groups are run before the next sum.
    pub threads: usize,
}

impl SharedBatch<'_> {
    /// Number of groups that are run before the next sum: enough whole waves to occupy all threads.
    fn round_len(&self) -> usize {
        WAVE * self.threads.div_ceil(WAVE).max(1)
    }

    fn groups(&self, round: usize) -> Range<usize> {
        let groups = self.samples.div_ceil(GROUP);
        groups.min(round * self.round_len())..groups.min((round + 1) * self.round_len())
    }

    fn groups_of(&self, round: usize, place: Place) -> Range<usize> {
        let groups = self.groups(round);
        let share = place.share(groups.len());
        groups.start + share.start..groups.start + share.end
    }

    /// Number of times that messages are exchanged.
    pub fn rounds(&self) -> usize {
        self.samples.div_ceil(GROUP).div_ceil(self.round_len())
    }

    /// The samples that a process runs in a round.
    pub fn samples_of(&self, round: usize, rank: usize) -> Range<usize> {
        let groups = self.groups_of(round, Place { rank, ..self.place });
        self.samples.min(groups.start * GROUP)..self.samples.min(groups.end * GROUP)
    }

    /// Runs this process's samples of a round, as [`train_batch`](crate::train_batch) does. Returns the
    /// results of `measure`, and a message to each process.
    pub fn run<R: Send>(
        &self,
        round: usize,
        scratch: &Scratch,
        prepare: impl Fn(usize, &mut Input, &mut Masks) -> usize + Sync,
        measure: impl Fn(usize, &Trace) -> R + Sync,
    ) -> Result<(Vec<R>, Vec<Vec<u32>>), InputError> {
        let SharedBatch { packed, steps, samples, mode, .. } = *self;
        let run = |group| train_group(packed, steps, samples, group, mode, scratch, &prepare, &measure);
        let groups: Result<Vec<_>, InputError> =
            self.groups_of(round, self.place).into_par_iter().map(run).collect();
        let (results, mut parts): (Vec<Vec<R>>, Vec<GroupGradient>) = groups?.into_iter().unzip();
        let owners: Vec<Place> = self.place.all().collect();
        let messages = owners.into_par_iter().map(|owner| self.message(&parts, owner)).collect();
        scratch.gradients.items().append(&mut parts);
        Ok((results.into_iter().flatten().collect(), messages))
    }

    /// What some groups contribute to the gradient of the weights of `owner`.
    fn message(&self, parts: &[GroupGradient], owner: Place) -> Vec<u32> {
        let mut message = Vec::new();
        for part in parts {
            let (mut convs, mut fulls) = (part.conv.iter(), part.full.iter());
            for layer in &self.packed.layers {
                match layer {
                    PackedLayer::Conv(conv) => {
                        let gradient = convs.next().expect("a gradient for each convolution");
                        let own = &gradient[owner.share(conv.gradient_len())];
                        message.extend(own.iter().flatten().flat_map(|row| row.0.map(f32::to_bits)));
                    }
                    PackedLayer::Full(full) => {
                        let record = fulls.next().expect("a record for each fully connected layer");
                        full.write_record(record, owner.share(full.gradient_chunks().0), &mut message);
                    }
                    PackedLayer::Pool => {}
                }
            }
        }
        message
    }

    /// Adds up the gradients of the weights that this process owns, given one message from each process.
    /// Returns the message to all processes.
    ///
    /// # Panics
    /// If the messages are not those of this round.
    pub fn sum(&self, round: usize, messages: &[Vec<u32>]) -> Vec<u32> {
        let mut groups: Vec<Vec<Contribution>> = Vec::new();
        for (from, message) in self.place.all().zip(messages) {
            let mut rest = message.as_slice();
            for _ in self.groups_of(round, from) {
                groups.push(self.packed.layers.iter().map(|layer| self.read(layer, &mut rest)).collect());
            }
            assert!(rest.is_empty(), "a message must have the length of this round");
        }
        let mut sums = Vec::new();
        for wave in groups.chunks(WAVE) {
            for (i, layer) in self.packed.layers.iter().enumerate() {
                let contributions: Vec<&Contribution> = wave.iter().map(|group| &group[i]).collect();
                match layer {
                    PackedLayer::Conv(conv) => self.sum_conv(conv, &contributions, &mut sums),
                    PackedLayer::Full(full) => self.sum_full(full, &contributions, &mut sums),
                    PackedLayer::Pool => {}
                }
            }
        }
        sums
    }

    /// Reads what one group contributes to one layer.
    fn read<'a>(&self, layer: &PackedLayer, message: &mut &'a [u32]) -> Contribution<'a> {
        match layer {
            PackedLayer::Conv(conv) => {
                let entries = self.place.share(conv.gradient_len()).len();
                Contribution { numbers: take(message, entries * ENTRY), ..Contribution::default() }
            }
            PackedLayer::Full(full) => {
                let record = full.read_record(self.place.share(full.gradient_chunks().0), message);
                Contribution { record, ..Contribution::default() }
            }
            PackedLayer::Pool => Contribution::default(),
        }
    }

    fn sum_conv(&self, conv: &Conv, groups: &[&Contribution], sums: &mut Vec<u32>) {
        let mut total = vec![0.0f32; self.place.share(conv.gradient_len()).len() * ENTRY];
        let chunk = 64 * ENTRY;
        total.par_chunks_mut(chunk).enumerate().for_each(|(i, total)| {
            for group in groups {
                for (to, &from) in total.iter_mut().zip(&group.numbers[chunk * i..]) {
                    *to += f32::from_bits(from);
                }
            }
        });
        sums.extend(total.into_iter().map(f32::to_bits));
    }

    fn sum_full(&self, full: &Full, groups: &[&Contribution], sums: &mut Vec<u32>) {
        let records: Vec<_> = groups.iter().map(|group| &group.record).collect();
        let (fan_in, outputs) = (full.fan_in(), full.gradient_chunks().1);
        let own = self.full_numbers(full, self.place);
        let mut total = vec![0.0f32; own.len()];
        total.par_chunks_mut(outputs * fan_in).enumerate().for_each(|(chunk, total)| {
            full.weight_gradient(self.packed.isa(), chunk, &records, total);
        });
        sums.extend(total.into_iter().map(f32::to_bits));
    }

    /// The numbers of a fully connected layer's gradient that a process owns.
    fn full_numbers(&self, full: &Full, owner: Place) -> Range<usize> {
        let (chunks, outputs) = full.gradient_chunks();
        let share = owner.share(chunks);
        let number = |chunk: usize| (chunk * outputs).min(full.outputs()) * full.fan_in();
        number(share.start)..number(share.end)
    }

    /// Adds a round's sums, given one message from each process, to the gradient of the batch, which is
    /// in the order of the network's weights.
    ///
    /// # Panics
    /// If the messages are not those of this round, or `gradients` is not as long as the network's weights.
    pub fn add(&self, round: usize, messages: &[Vec<u32>], gradients: &mut [f32]) {
        let architecture = self.packed.architecture();
        assert_eq!(gradients.len(), architecture.parameter_count(), "one gradient per weight");
        let mut messages: Vec<&[u32]> = messages.iter().map(Vec::as_slice).collect();
        for _ in self.groups(round).step_by(WAVE) {
            let mut rest = &mut *gradients;
            for (layer, info) in self.packed.layers.iter().zip(architecture.layers()) {
                let Some(parameter) = info.parameter else { continue };
                let (target, after) = rest.split_at_mut(architecture.parameters()[parameter].len);
                rest = after;
                match layer {
                    PackedLayer::Conv(conv) => {
                        let mut total = Vec::with_capacity(conv.gradient_len());
                        for (owner, message) in self.place.all().zip(&mut messages) {
                            let numbers = take(message, owner.share(conv.gradient_len()).len() * ENTRY);
                            let entries = numbers.as_chunks::<16>().0.as_chunks::<9>().0.iter();
                            total
                                .extend(entries.map(|rows| rows.map(|lanes| Row(lanes.map(f32::from_bits)))));
                        }
                        conv.unpack(&total, target);
                    }
                    PackedLayer::Full(full) => {
                        for (owner, message) in self.place.all().zip(&mut messages) {
                            let own = self.full_numbers(full, owner);
                            let numbers = take(message, own.len());
                            for (to, &from) in target[own].iter_mut().zip(numbers) {
                                *to += f32::from_bits(from);
                            }
                        }
                    }
                    PackedLayer::Pool => unreachable!("a pool has no parameter"),
                }
            }
        }
        assert!(
            messages.iter().all(|message| message.is_empty()),
            "a message must have the length of this round"
        );
    }
}

/// What a group contributes to the gradient of one layer.
#[derive(Default)]
struct Contribution<'a> {
    /// The gradient of a convolution.
    numbers: &'a [u32],
    /// The record of a fully connected layer.
    record: crate::layer::full::FullRecord,
}
