//! Inference and training with many images, on the threads of the current rayon pool.
//!
//! Images are processed in groups of a fixed size, and every sum over images has a fixed order, so results
//! do not depend on the number of threads.

use crate::masks::Masks;
use crate::network::first_not_finite;
use crate::packed::{Gradient, GroupGradient, Packed, PackedLayer, Workspace};
use crate::simd::Row;
use crate::spikes::{Input, Shape};
use crate::trace::Trace;
use rayon::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of images in a group. They share each read of the fully connected weights.
pub const GROUP: usize = 4;
/// Number of groups whose gradients are held in memory and summed together.
pub const WAVE: usize = 16;

/// Buffers that are reused between calls. Their contents have no effect on any result.
#[derive(Debug, Default)]
pub struct Scratch {
    workspaces: Pool<Workspace>,
    pub(crate) gradients: Pool<GroupGradient>,
}

#[derive(Debug, Default)]
pub(crate) struct Pool<T>(Mutex<Vec<T>>);

impl<T: Default> Pool<T> {
    pub(crate) fn items(&self) -> MutexGuard<'_, Vec<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> T {
        self.items().pop().unwrap_or_default()
    }

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let mut item = self.take();
        let result = work(&mut item);
        self.items().push(item);
        result
    }
}

/// The reason why a sample cannot be run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum InputError {
    /// The size of the image differs from that of the network's input.
    #[error("sample {sample}: the input is {found:?}; the network takes {expected:?}")]
    Shape {
        /// Index of the sample in the call.
        sample: usize,
        /// Size of the image.
        found: Shape,
        /// Size of the network's input.
        expected: Shape,
    },
    /// The input does not have the requested number of steps, or the number is out of range.
    #[error("sample {sample}: {}", steps_message(*found, *expected))]
    Steps {
        /// Index of the sample in the call.
        sample: usize,
        /// Number of steps of the input.
        found: usize,
        /// Requested number of steps.
        expected: usize,
    },
    /// The network is too large for this number of steps.
    #[error(
        "sample {sample}: {steps} time steps are too many for layer '{layer}', whose spikes could not be \
         numbered with 32 bits; at most {most} are allowed for this network"
    )]
    TooManySteps {
        /// Index of the sample in the call.
        sample: usize,
        /// Number of steps of the input.
        steps: usize,
        /// The layer that limits the number of steps.
        layer: String,
        /// Largest number of steps that it allows.
        most: usize,
    },
    /// The number of spikes or values does not match the shape of the input.
    #[error(
        "sample {sample}: the number of spikes or values does not match the shape of the input, {shape:?}"
    )]
    Inconsistent {
        /// Index of the sample in the call.
        sample: usize,
        /// Shape of the input.
        shape: Shape,
    },
    /// An input value is NaN or infinite.
    #[error("sample {sample}: the input holds {value} at element {element}; inputs must be finite")]
    NonFinite {
        /// Index of the sample in the call.
        sample: usize,
        /// Flat index, `[step][channel][row][column]`.
        element: usize,
        /// The value.
        value: f32,
    },
    /// The label is not one of the classes.
    #[error("sample {sample}: label {label} is out of range; the network has classes 0 to {}", classes - 1)]
    Label {
        /// Index of the sample in the call.
        sample: usize,
        /// Its label.
        label: usize,
        /// Number of classes.
        classes: usize,
    },
}

/// What is wrong with the number of steps of an input.
fn steps_message(found: usize, expected: usize) -> String {
    match found == expected {
        true => format!("the input has {found} time steps; the number must be from 1 to 65535"),
        false => format!("the input has {found} time steps, but {expected} were requested"),
    }
}

/// Runs `samples` images for `steps` steps each and returns the results
/// of `measure` for their traces, in order.
///
/// `prepare(i, input)` writes sample `i` to `input`, which may contain an earlier sample.
pub fn infer<R: Send>(
    packed: &Packed,
    steps: usize,
    samples: usize,
    scratch: &Scratch,
    prepare: impl Fn(usize, &mut Input) + Sync,
    measure: impl Fn(usize, &Trace) -> R + Sync,
) -> Result<Vec<R>, InputError> {
    let groups: Result<Vec<Vec<R>>, InputError> = (0..samples.div_ceil(GROUP))
        .into_par_iter()
        .map(|group| {
            let range = group * GROUP..samples.min((group + 1) * GROUP);
            scratch.workspaces.with(|workspace| {
                for (slot, sample) in range.clone().enumerate() {
                    let trace = slot_trace(packed, workspace, slot, steps);
                    trace.masks = Masks::none();
                    prepare(sample, &mut trace.input);
                    check_input(packed, sample, &trace.input, steps)?;
                }
                packed.forward(workspace, range.len());
                Ok(range.zip(&workspace.traces).map(|(sample, trace)| measure(sample, trace)).collect())
            })
        })
        .collect();
    Ok(groups?.into_iter().flatten().collect())
}

/// Runs a mini-batch forward and backward.
///
/// `prepare(i, input, masks)` writes sample `i` and its dropout masks and returns its label. The gradient of
/// the loss, averaged over the samples, is written to `gradients`, in the order of the network's weights.
///
/// # Panics
/// If `gradients` is not as long as the network's weights.
#[allow(clippy::too_many_arguments)]
pub fn train_batch<R: Send>(
    packed: &Packed,
    steps: usize,
    samples: usize,
    mode: Gradient,
    scratch: &Scratch,
    prepare: impl Fn(usize, &mut Input, &mut Masks) -> usize + Sync,
    measure: impl Fn(usize, &Trace) -> R + Sync,
    gradients: &mut [f32],
) -> Result<Vec<R>, InputError> {
    let architecture = packed.architecture();
    assert_eq!(gradients.len(), architecture.parameter_count(), "one gradient per weight");
    gradients.fill(0.0);
    let mut measured = Vec::with_capacity(samples);
    let run = |group: usize| train_group(packed, steps, samples, group, mode, scratch, &prepare, &measure);
    let groups = samples.div_ceil(GROUP);
    for wave in (0..groups).step_by(WAVE) {
        let wave = wave..groups.min(wave + WAVE);
        let outcome: Result<Vec<(Vec<R>, GroupGradient)>, InputError> =
            wave.into_par_iter().map(run).collect();
        let mut parts = Vec::new();
        for (results, gradient) in outcome? {
            measured.extend(results);
            parts.push(gradient);
        }
        gather(packed, &parts, gradients);
        scratch.gradients.items().append(&mut parts);
    }
    Ok(measured)
}

/// Runs one group of a mini-batch of `samples` forward and backward.
pub(crate) fn train_group<R>(
    packed: &Packed,
    steps: usize,
    samples: usize,
    group: usize,
    mode: Gradient,
    scratch: &Scratch,
    prepare: &impl Fn(usize, &mut Input, &mut Masks) -> usize,
    measure: &impl Fn(usize, &Trace) -> R,
) -> Result<(Vec<R>, GroupGradient), InputError> {
    let classes = packed.architecture().classes();
    let range = group * GROUP..samples.min((group + 1) * GROUP);
    scratch.workspaces.with(|workspace| {
        let mut labels = Vec::with_capacity(GROUP);
        for (slot, sample) in range.clone().enumerate() {
            let trace = slot_trace(packed, workspace, slot, steps);
            let label = prepare(sample, &mut trace.input, &mut trace.masks);
            check_input(packed, sample, &trace.input, steps)?;
            if label >= classes {
                return Err(InputError::Label { sample, label, classes });
            }
            labels.push(label);
        }
        packed.forward(workspace, labels.len());
        let results: Vec<R> = range.zip(&workspace.traces).map(|(i, trace)| measure(i, trace)).collect();
        let mut gradient = scratch.gradients.take();
        packed.backward(workspace, &labels, mode, samples, &mut gradient);
        Ok((results, gradient))
    })
}

/// Returns the trace in a slot of the workspace. Creates it if it is missing or
/// does not fit the network and the steps.
fn slot_trace<'a>(packed: &Packed, workspace: &'a mut Workspace, slot: usize, steps: usize) -> &'a mut Trace {
    if workspace.traces.len() <= slot {
        workspace.traces.push(Trace::new(packed.shared_architecture(), steps));
    }
    let trace = &mut workspace.traces[slot];
    if *trace.architecture != *packed.architecture() || trace.steps() != steps {
        *trace = Trace::new(packed.shared_architecture(), steps);
    }
    trace
}

fn check_input(packed: &Packed, sample: usize, input: &Input, steps: usize) -> Result<(), InputError> {
    let (shape, expected) = (input.shape(), packed.architecture().input());
    if shape != expected {
        return Err(InputError::Shape { sample, found: shape, expected });
    }
    if input.steps() != steps || !(1..=usize::from(u16::MAX)).contains(&steps) {
        return Err(InputError::Steps { sample, found: input.steps(), expected: steps });
    }
    let (most, layer) = packed.most_steps();
    if steps > most {
        return Err(InputError::TooManySteps { sample, steps, layer: layer.to_owned(), most });
    }
    let (consistent, values) = match input {
        Input::Ternary { spikes, .. } => {
            ((spikes.pixels(), spikes.channels()) == (shape.pixels(), 2 * shape.channels), &[][..])
        }
        Input::Real { values, .. } => (values.len() == steps * shape.neurons(), values.as_slice()),
    };
    if !consistent {
        return Err(InputError::Inconsistent { sample, shape });
    }
    match first_not_finite(values) {
        Some(element) => Err(InputError::NonFinite { sample, element, value: values[element] }),
        None => Ok(()),
    }
}

/// Adds the groups' gradients, in order, to the flat gradient.
fn gather(packed: &Packed, parts: &[GroupGradient], gradients: &mut [f32]) {
    let (mut convs, mut fulls) = (0, 0);
    let mut rest = gradients;
    for (layer, info) in packed.layers.iter().zip(packed.architecture().layers()) {
        let Some(parameter) = info.parameter else { continue };
        let (target, after) = rest.split_at_mut(packed.architecture().parameters()[parameter].len);
        rest = after;
        match layer {
            PackedLayer::Conv(conv) => {
                let sources: Vec<&[[Row; 9]]> =
                    parts.iter().map(|part| part.conv[convs].as_slice()).collect();
                let mut total = vec![[Row::ZERO; 9]; conv.gradient_len()];
                total.par_chunks_mut(64).enumerate().for_each(|(i, total)| {
                    for source in &sources {
                        for (to, from) in total.iter_mut().zip(&source[64 * i..]) {
                            for (to, from) in to.iter_mut().zip(from) {
                                for lane in 0..16 {
                                    to[lane] += from[lane];
                                }
                            }
                        }
                    }
                });
                conv.unpack(&total, target);
                convs += 1;
            }
            PackedLayer::Full(full) => {
                let records: Vec<_> = parts.iter().map(|part| &part.full[fulls]).collect();
                let (_, outputs) = full.gradient_chunks();
                let fan_in = target.len() / info.output.channels;
                target.par_chunks_mut(outputs * fan_in).enumerate().for_each(|(chunk, target)| {
                    full.weight_gradient(packed.isa(), chunk, &records, target);
                });
                fulls += 1;
            }
            PackedLayer::Pool => unreachable!("a pool has no parameter"),
        }
    }
}
