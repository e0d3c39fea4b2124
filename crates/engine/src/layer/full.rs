//! Fully connected layers, hidden and output.
//!
//! A row holds the weights from one input to a chunk of outputs. The rows of a chunk are about as large as
//! the L2 cache, so the images of a group share each read of them: the outer loop is over chunks, the inner
//! loop over images. The gradient of the weights is summed once for the whole batch, chunk by chunk, with
//! each row in registers, so no reduction between threads is needed.

pub(crate) mod message;

use super::total_squares;
use crate::events::Events;
use crate::layer::conv::Upstream;
use crate::neuron::readout;
use crate::neuron::spiking::{Dynamics, spike_derivatives, spread};
use crate::simd::backward::{FullInput, FullWeights};
use crate::simd::forward::{Fire, FullForward};
use crate::simd::lists::number;
use crate::simd::{Isa, Kernel, Row, Vector, dispatch};
use crate::spikes::{Shape, Spikes};
use rayon::prelude::*;

/// Number of floats in a cache line.
const LINE: usize = 16;

/// A packed fully connected layer.
#[derive(Debug, Clone)]
pub(crate) struct Full {
    /// Size of the input; twice the image's channels if it is the first layer.
    input: Shape,
    outputs: usize,
    signed: bool,
    /// Vectors of sixteen outputs in a chunk: 1, 2 or 4.
    vectors: usize,
    /// `[chunk][row = pixel * channels + channel][vectors]`.
    rows: Vec<Row>,
}

/// The rows that have an event at each step.
#[derive(Debug, Default)]
pub(crate) struct StepRows {
    offsets: Vec<u32>,
    rows: Vec<u32>,
}

/// The steps at which each row has an event, in all images of a group.
#[derive(Debug, Default)]
pub(crate) struct RowEvents {
    /// Start of each row's events, followed by the end of the last row's.
    offsets: Vec<u32>,
    /// `image * steps + step` of each event.
    moments: Vec<u32>,
    /// Number of each event, counted over the [`Events`] of all images.
    numbers: Vec<u32>,
}

/// One image's input to the layer in the forward pass.
pub(crate) enum FullSource<'a> {
    /// Rows with an event at each step, and the value of a spike.
    Spikes(&'a StepRows, f32),
    /// Real values `[step][channel][row][column]`, and the number of steps.
    Real(&'a [f32], usize),
}

/// What a group of images records for the gradient of the weights.
#[derive(Debug, Default)]
pub(crate) struct FullRecord {
    rows: RowEvents,
    /// `d`, `[chunk][image][step][vectors]`.
    d: Vec<Row>,
    images: usize,
    steps: usize,
    /// Real-valued input of each image, `[step][channel][row][column]`; empty if the input was spikes.
    real: Vec<Vec<f32>>,
}

impl StepRows {
    /// Lists the spikes, except those that the dropout mask `keep` drops.
    pub fn build(&mut self, spikes: &Spikes, keep: Option<&[u64]>) {
        let (words, steps, channels) = (spikes.words_per_step(), spikes.steps(), spikes.channels());
        self.offsets.clear();
        self.offsets.push(0);
        self.rows.clear();
        for step in 0..steps {
            for pixel in 0..spikes.pixels() {
                for (word, &bits) in spikes.at(pixel, step).iter().enumerate() {
                    let mut bits = bits & keep.map_or(!0, |keep| keep[pixel * words + word]);
                    while bits != 0 {
                        self.rows.push((pixel * channels + 64 * word) as u32 + bits.trailing_zeros());
                        bits &= bits - 1;
                    }
                }
            }
            self.offsets.push(number(self.rows.len()));
        }
    }
}

impl RowEvents {
    /// Sorts the events of a group of images, each of `steps` steps, by row.
    fn build(&mut self, images: &[Option<&Events>], steps: usize, rows: usize) {
        // The step within its tile and the pixel of every position; the same in all images.
        let geometry = images.iter().flatten().map(|events| events.geometry).next();
        let places: Vec<(usize, usize)> = geometry.map_or(Vec::new(), |g| {
            let (stride, frame) = (g.stride(), g.frame());
            let place = |position: usize| {
                let (step, within) = (position / frame, position % frame);
                (step, within / stride * g.shape.width + within % stride)
            };
            (0..g.tile_steps * frame).map(place).collect()
        });
        let each = |visit: &mut dyn FnMut(usize, usize, usize)| {
            let mut before = 0;
            for (image, events) in images.iter().enumerate() {
                let Some(events) = events else { continue };
                let (g, channels) = (events.geometry, events.geometry.shape.channels);
                for (tile, window) in (0..g.tiles()).flat_map(|tile| (0..g.windows).map(move |w| (tile, w))) {
                    let places = &places[g.origin(window)..];
                    for channel in 0..channels {
                        for event in events.range(tile, window, channel, 0..g.tile_steps) {
                            let (step, pixel) = places[usize::from(events.positions[event])];
                            let moment = image * steps + tile * g.tile_steps + step;
                            visit(pixel * channels + channel, moment, before + event);
                        }
                    }
                }
                before += events.len();
            }
        };
        number(images.iter().flatten().map(|events| events.len()).sum()); // checks that the numbers below fit
        self.offsets.clear();
        self.offsets.resize(rows + 2, 0);
        each(&mut |row, _, _| self.offsets[row + 2] += 1);
        for i in 2..self.offsets.len() {
            self.offsets[i] += self.offsets[i - 1];
        }
        let count = self.offsets[rows + 1] as usize;
        self.moments.resize(count, 0);
        self.numbers.resize(count, 0);
        each(&mut |row, moment, number| {
            let at = self.offsets[row + 1] as usize;
            self.offsets[row + 1] += 1;
            self.moments[at] = moment as u32;
            self.numbers[at] = number as u32;
        });
        self.offsets.pop();
    }
}

impl Full {
    /// Packs weights `[out, in]`, with inputs in the order channel, row, column.
    pub fn new(image: Shape, outputs: usize, weights: &[f32], signed: bool) -> Self {
        let input = Shape { channels: image.channels * if signed { 2 } else { 1 }, ..image };
        let vectors = match outputs {
            ..=16 => 1,
            17..=32 => 2,
            _ => 4,
        };
        let mut full = Full { input, outputs, signed, vectors, rows: Vec::new() };
        full.rows = vec![Row::ZERO; full.chunks() * input.neurons() * vectors];
        full.pack(weights);
        full
    }

    /// Writes weights `[out, in]` to the rows.
    pub fn pack(&mut self, weights: &[f32]) {
        let Full { input, vectors, signed, .. } = *self;
        let (pixels, real) = (input.pixels(), self.real_channels());
        let fan_in = real * pixels;
        let chunks = self.rows.par_chunks_mut(input.neurons() * vectors);
        chunks.zip(weights.par_chunks(16 * vectors * fan_in)).for_each(|(rows, weights)| {
            // Inputs are processed one cache line at a time, so that whole lines are read and written.
            let mut lines = [[0.0; LINE]; 64];
            for first in (0..fan_in).step_by(LINE) {
                let count = LINE.min(fan_in - first);
                for (line, weights) in lines.iter_mut().zip(weights.chunks_exact(fan_in)) {
                    line[..count].copy_from_slice(&weights[first..first + count]);
                }
                for i in 0..count {
                    let (channel, pixel) = ((first + i) / pixels, (first + i) % pixels);
                    for (vector, lines) in lines.as_chunks::<16>().0[..vectors].iter().enumerate() {
                        let row = lines.map(|line| line[i]);
                        let at = |channel: usize| (pixel * input.channels + channel) * vectors + vector;
                        rows[at(channel)] = Row(row);
                        if signed {
                            rows[at(channel + real)] = Row(row.map(|weight| -weight));
                        }
                    }
                }
            }
        });
    }

    /// Number of image channels: half of the input channels if spikes have a sign.
    fn real_channels(&self) -> usize {
        self.input.channels / if self.signed { 2 } else { 1 }
    }

    fn chunks(&self) -> usize {
        self.outputs.div_ceil(16 * self.vectors)
    }

    fn chunk_rows(&self, chunk: usize) -> &[Row] {
        let len = self.input.neurons() * self.vectors;
        &self.rows[chunk * len..][..len]
    }

    /// Computes the weighted inputs of a group of images, `[chunk][step][vectors]` for each.
    pub fn currents(&self, isa: Isa, group: &[FullSource], currents: &mut [Vec<Row>]) {
        for chunk in 0..self.chunks() {
            let rows = self.chunk_rows(chunk);
            for (source, current) in group.iter().zip(currents.iter_mut()) {
                let steps = match source {
                    FullSource::Spikes(lists, _) => lists.offsets.len() - 1,
                    FullSource::Real(_, steps) => *steps,
                };
                let len = steps * self.vectors;
                current.resize(self.chunks() * len, Row::ZERO);
                let current = &mut current[chunk * len..][..len];
                match *source {
                    FullSource::Spikes(lists, scale) => by_vectors!(self.vectors, N => {
                        let kernel = FullForward::<N> {
                            rows,
                            list: &lists.rows,
                            offsets: &lists.offsets,
                            current,
                            scale,
                        };
                        dispatch(isa, kernel);
                    }),
                    FullSource::Real(values, _) => by_vectors!(self.vectors, N => {
                        dispatch(isa, RealForward::<N> { input: self.input, rows, values, current });
                    }),
                }
            }
        }
    }

    /// Runs the hidden neurons of one image, given their weighted input.
    pub fn fire(
        &self,
        isa: Isa,
        dynamics: Dynamics,
        steps: usize,
        current: &[Row],
        out: &mut Spikes,
        squares: &mut Vec<f64>,
    ) {
        out.reset(1, steps, self.outputs);
        let words_per_step = out.words_per_step();
        let mut lanes = vec![Row::ZERO; steps];
        for (chunk, current) in current.chunks_exact(steps * self.vectors).enumerate() {
            // The last vectors of a chunk may be past the layer's last output, where weights
            // are zero, but not past its last word.
            let first = chunk * self.vectors;
            assert!(
                first + self.vectors <= 4 * words_per_step,
                "a chunk must be whole words, or the layer a single word"
            );
            let kernel = Fire {
                current,
                vectors: self.vectors,
                dynamics,
                squares: &mut lanes,
                words: out.words_mut(),
                words_per_step,
                first,
            };
            dispatch(isa, kernel);
        }
        total_squares(&lanes, squares);
    }

    /// Writes the output layer's signal of one image, `[step][class]`, given its weighted input.
    pub fn signal(&self, steps: usize, current: &[Row], signal: &mut Vec<f32>) {
        signal.clear();
        for step in 0..steps {
            signal.extend((0..self.outputs).map(|out| {
                let (chunk, lane) = (out / (16 * self.vectors), out % (16 * self.vectors));
                current[(chunk * steps + step) * self.vectors + lane / 16][lane % 16]
            }));
        }
    }

    /// Starts a group's record: the input events of each image or its real values, and `d` set to zero.
    pub fn start_record(
        &self,
        events: &[Option<&Events>],
        real: &[&[f32]],
        steps: usize,
        record: &mut FullRecord,
    ) {
        record.rows.build(events, steps, self.input.neurons());
        record.real.clear();
        record.real.extend(real.iter().map(|values| values.to_vec()));
        (record.images, record.steps) = (events.len(), steps);
        record.d.clear();
        record.d.resize(self.chunks() * events.len() * steps * self.vectors, Row::ZERO);
    }

    fn d_at<'a>(&self, record: &'a mut FullRecord, image: usize, step: usize, out: usize) -> &'a mut f32 {
        let (chunk, lane) = (out / (16 * self.vectors), out % (16 * self.vectors));
        let moment = (chunk * record.images + image) * record.steps + step;
        &mut record.d[moment * self.vectors + lane / 16][lane % 16]
    }

    /// Writes `d` of the output layer: `scale * error` at the last step, which decays backward in time.
    pub fn output_d(&self, error: &[f32], scale: f32, decay: f32, image: usize, record: &mut FullRecord) {
        for (out, &error) in error.iter().enumerate() {
            let steps = record.steps;
            readout::backward(scale * error, decay, steps, |step, d| {
                *self.d_at(record, image, step, out) = d
            });
        }
    }

    /// Writes `d` of a hidden layer, given the loss derivatives of its events.
    pub fn hidden_d(
        &self,
        isa: Isa,
        up: &Upstream,
        derivatives: &mut Vec<Row>,
        image: usize,
        record: &mut FullRecord,
    ) {
        spike_derivatives(isa, up, derivatives);
        let g = up.events.geometry;
        for out in 0..self.outputs {
            let derivative = derivatives[out / 16 * g.frame()][out % 16];
            // `d` of a spike extends back to the step after the previous spike.
            // After the last spike, `d` stays zero.
            let mut first = 0;
            for tile in 0..g.tiles() {
                for event in up.events.range(tile, 0, out, 0..g.tile_steps) {
                    let fired = tile * g.tile_steps + usize::from(up.events.positions[event]) / g.frame();
                    let d = derivative * up.gradient[event];
                    spread(d, up.decay, first, fired, |step, d| *self.d_at(record, image, step, out) = d);
                    first = fired + 1;
                }
            }
        }
    }

    /// Adds the loss derivatives of a group's input events, numbered over all its images, to `events`.
    pub fn input_gradients(&self, isa: Isa, record: &FullRecord, events: &mut [f32]) {
        for chunk in 0..self.chunks() {
            by_vectors!(self.vectors, N => {
                let kernel = FullInput::<N> {
                    rows: self.chunk_rows(chunk),
                    d: self.chunk_d(record, chunk),
                    offsets: &record.rows.offsets,
                    moments: &record.rows.moments,
                    numbers: &record.rows.numbers,
                    events,
                };
                dispatch(isa, kernel);
            });
        }
    }

    /// `d` of one chunk, `[image][step][vectors]`.
    fn chunk_d<'a>(&self, record: &'a FullRecord, chunk: usize) -> &'a [Row] {
        let len = record.images * record.steps * self.vectors;
        &record.d[chunk * len..][..len]
    }

    /// Adds the gradient of one chunk's weights over a batch, `[out in chunk][in]` as in the flat array.
    pub fn weight_gradient(&self, isa: Isa, chunk: usize, records: &[&FullRecord], gradient: &mut [f32]) {
        by_vectors!(self.vectors, N => {
            dispatch(isa, WeightGradient::<N> { full: self, chunk, records, gradient });
        });
    }

    /// Number of inputs of an output.
    pub fn fan_in(&self) -> usize {
        self.real_channels() * self.input.pixels()
    }

    /// Number of outputs.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Number of chunks for [`Full::weight_gradient`], and the number of
    /// outputs in each chunk except the last.
    pub fn gradient_chunks(&self) -> (usize, usize) {
        (self.chunks(), 16 * self.vectors)
    }
}

/// The weighted inputs of one image with real values, for one chunk: `[step][vectors]`.
struct RealForward<'a, const N: usize> {
    input: Shape,
    rows: &'a [Row],
    values: &'a [f32],
    current: &'a mut [Row],
}

impl<const N: usize> Kernel for RealForward<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let (pixels, channels) = (self.input.pixels(), self.input.channels);
        let steps = self.current.len() / N;
        let images = self.values.chunks_exact(self.values.len() / steps);
        for (current, image) in self.current.chunks_exact_mut(N).zip(images) {
            let mut sums = [V::zero(); N];
            for (channel, values) in image.chunks_exact(pixels).enumerate() {
                for (pixel, &value) in values.iter().enumerate() {
                    let weights = &self.rows[(pixel * channels + channel) * N..][..N];
                    for n in 0..N {
                        // Not fused, so that all instruction sets give the same bits.
                        sums[n] = sums[n].add(V::load(&weights[n]).mul(V::splat(value)));
                    }
                }
            }
            for n in 0..N {
                sums[n].store(&mut current[n]);
            }
        }
    }
}

struct WeightGradient<'a, const N: usize> {
    full: &'a Full,
    chunk: usize,
    records: &'a [&'a FullRecord],
    gradient: &'a mut [f32],
}

impl<const N: usize> Kernel for WeightGradient<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let full = self.full;
        let pixels = full.input.pixels();
        let real = full.real_channels();
        let fan_in = real * pixels;
        // Inputs are processed one cache line at a time, so that whole lines of the gradient are written.
        let mut line = [[Row::ZERO; N]; LINE];
        for first in (0..fan_in).step_by(LINE) {
            let count = LINE.min(fan_in - first);
            for (i, line) in line[..count].iter_mut().enumerate() {
                *line = self.input_gradient::<V>((first + i) % pixels, (first + i) / pixels);
            }
            for (out, gradient) in self.gradient.chunks_exact_mut(fan_in).enumerate() {
                for (gradient, line) in gradient[first..first + count].iter_mut().zip(&line) {
                    *gradient += line[out / 16][out % 16];
                }
            }
        }
    }
}

impl<const N: usize> WeightGradient<'_, N> {
    /// The gradient of one input's weights, summed over all images.
    #[inline(always)]
    fn input_gradient<V: Vector>(&self, pixel: usize, channel: usize) -> [Row; N] {
        let full = self.full;
        let (pixels, channels) = (full.input.pixels(), full.input.channels);
        let real = full.real_channels();
        let fan_in = real * pixels;
        let mut sums = [[Row::ZERO; N]; 2];
        for record in self.records {
            let d = full.chunk_d(record, self.chunk);
            for (sign, sums) in sums.iter_mut().enumerate().take(channels / real) {
                let row = pixel * channels + channel + sign * real;
                let (start, end) = (record.rows.offsets[row] as usize, record.rows.offsets[row + 1] as usize);
                FullWeights { d, moments: &record.rows.moments[start..end], row: sums }.add::<V>();
            }
            for (image, values) in record.real.iter().enumerate().filter(|(_, values)| !values.is_empty()) {
                for step in 0..record.steps {
                    let value = V::splat(values[step * fan_in + channel * pixels + pixel]);
                    let d = &d[(image * record.steps + step) * N..][..N];
                    for n in 0..N {
                        let product = V::load(&d[n]).mul(value);
                        V::load(&sums[0][n]).add(product).store(&mut sums[0][n]);
                    }
                }
            }
        }
        let [mut positive, negative] = sums;
        if full.signed {
            for (positive, negative) in positive.iter_mut().zip(&negative) {
                V::load(positive).sub(V::load(negative)).store(positive);
            }
        }
        positive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sums are in the order of the inputs, so they have the bits of plain code.
    #[test]
    fn real_input_gives_the_same_bits_in_all_instruction_sets() {
        let image = Shape { channels: 2, height: 1, width: 3 };
        let (steps, fan_in) = (2, image.neurons());
        let number = |i: usize| (i as f32 * 0.7).sin();
        let values: Vec<f32> = (0..steps * fan_in).map(|i| number(i + 5)).collect();
        for (outputs, signed) in [(3, true), (20, false), (70, true)] {
            let weights: Vec<f32> = (0..outputs * fan_in).map(number).collect();
            let plain = |step: usize, out: usize| {
                let inputs = &values[step * fan_in..][..fan_in];
                let weights = &weights[out * fan_in..][..fan_in];
                inputs.iter().zip(weights).fold(0.0, |sum: f32, (x, w)| sum + w * x)
            };
            let plain: Vec<f32> = (0..steps * outputs).map(|i| plain(i / outputs, i % outputs)).collect();
            let full = Full::new(image, outputs, &weights, signed);
            for isa in Isa::available() {
                let (mut currents, mut signal) = ([vec![Row([9.0; 16]); 3]], Vec::new());
                full.currents(isa, &[FullSource::Real(&values, steps)], &mut currents);
                full.signal(steps, &currents[0], &mut signal);
                assert!(signal.iter().map(|x| x.to_bits()).eq(plain.iter().map(|x| x.to_bits())), "{isa}");
            }
        }
    }
}
