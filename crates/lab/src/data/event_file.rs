//! `events`: the user's own recordings, as NumPy arrays in an `.npz` file.
//!
//! Recordings are given as lists or as a dense array. Lists are `train_t` (microseconds), `train_x`,
//! `train_y` and `train_p` (polarity, 0 or 1, or -1 and 1) of the events of all recordings in sequence,
//! `train_offsets` (where each recording begins, and where the last one ends), and `sensor`
//! (`[height, width]`; if not given, the largest coordinates determine it). The dense array is
//! `train_events`, `[N, T, C, H, W]`, in which every value except 0 is a spike. Both forms need
//! `train_labels` and the same arrays with `test_`, and `class_names` if the classes have names.

use super::arrays::{CLASSES, MOST_CLASSES};
use super::binning::{Binning, Event};
use super::budget::{Budget, Exceeded};
use super::npy::{self, Array, Arrays};
use super::npz::class_names;
use super::{Content, DataError, Dataset, Flaw, Info, Recordings, Split, TEST_SAMPLES};
use leaklab_engine::Shape;
use std::io::{Read, Seek};
use std::path::Path;

/// Largest height or width of a sensor.
const LARGEST_SIDE: i64 = 65_535;
const PARTS: [&str; 2] = ["train", "test"];
const ENDINGS: [&str; 7] = ["t", "x", "y", "p", "offsets", "events", "labels"];

fn is_wanted(name: &str) -> Result<bool, String> {
    let of_parts = PARTS.iter().flat_map(|part| ENDINGS.map(|ending| format!("{part}_{ending}")));
    npy::is_among(name, of_parts.chain(["sensor", CLASSES].map(str::to_owned)))
}

/// Loads the file.
pub(super) fn load(_info: &Info, path: &Path, name: &str, binning: &Binning) -> Result<Dataset, DataError> {
    let arrays = npy::read(name, path, is_wanted)?;
    of_arrays(name, &arrays, binning).map_err(|flaw| flaw.of(path))
}

/// Reads the data set of an archive of `length` bytes.
pub fn read(reader: impl Read + Seek, length: u64, binning: &Binning) -> Result<Dataset, Flaw> {
    of_arrays("events", &npy::read_from(reader, length, is_wanted)?, binning)
}

fn of_arrays(name: &str, arrays: &Arrays, binning: &Binning) -> Result<Dataset, Flaw> {
    let mut budget = arrays.budget.clone();
    let needed =
        |name: String| arrays.find(&name).ok_or_else(|| Flaw::new(0, format!("it has no array {name}")));
    let parts = PARTS.map(|part| Given::find(part, &needed));
    let [train, test] = parts;
    let (train, test) = (train?, test?);
    let sensor = sensor(&[&train, &test], arrays.find("sensor"))?;
    let refused = |reason: String| Flaw::new(0, reason);
    let shape = binning.shape(sensor).map_err(refused)?;
    let mut labels = Vec::new();
    for part in [&train, &test] {
        labels.push(read_labels(part.labels, part.count())?);
    }
    let largest = labels.iter().flatten().max().map_or(0, |&label| usize::from(label));
    let class_names =
        class_names(arrays)?.unwrap_or_else(|| (0..=largest.max(1)).map(|class| class.to_string()).collect());
    if class_names.len() <= largest || class_names.len() > MOST_CLASSES {
        let reason = format!("{} names for labels up to {largest}", class_names.len());
        return Err(arrays.find(CLASSES).map_or(Flaw::new(0, reason.clone()), |array| array.flaw(reason)));
    }
    let mut split = |part: &Given, first: u32| -> Result<Split, Flaw> {
        let mut made = Recordings::new(binning.time_steps, shape).map_err(refused)?;
        part.bin(sensor, binning, shape, &mut made, &mut budget)?;
        Ok(Split::of(Content::Events(made), labels.remove(0), first))
    };
    let (train, test) = (split(&train, 0)?, split(&test, TEST_SAMPLES)?);
    let classes = class_names.len();
    Ok(Dataset { name: name.to_owned(), shape, classes, class_names, train, test })
}

fn read_labels(array: &Array, count: usize) -> Result<Vec<u8>, Flaw> {
    if array.shape != [count] {
        return Err(array.flaw(format!(
            "its shape is {:?}; one label for each of {count} recordings is expected",
            array.shape
        )));
    }
    if array.is_bool() {
        return Err(array.flaw("its type is bool; whole numbers are expected"));
    }
    let label = |i: usize| {
        let label = array.whole(i).and_then(|label| u8::try_from(label).ok());
        label.ok_or_else(|| array.flaw(format!("element {i} is not a label from 0 to 255")))
    };
    (0..count).map(label).collect()
}

/// The arrays of a split.
struct Given<'a> {
    labels: &'a Array,
    form: Form<'a>,
}

enum Form<'a> {
    /// Times, columns, rows, polarities and offsets.
    Lists([&'a Array; 4], &'a Array),
    Dense(&'a Array),
}

impl<'a> Given<'a> {
    fn find(part: &str, needed: &impl Fn(String) -> Result<&'a Array, Flaw>) -> Result<Self, Flaw> {
        let labels = needed(format!("{part}_labels"))?;
        if let Ok(dense) = needed(format!("{part}_events")) {
            if dense.shape.len() != 5 || dense.shape.contains(&0) {
                return Err(
                    dense.flaw(format!("its shape is {:?}; [N, T, C, H, W] is expected", dense.shape))
                );
            }
            return Ok(Given { labels, form: Form::Dense(dense) });
        }
        let column = |name: &str| {
            needed(format!("{part}_{name}")).map_err(|flaw| Flaw {
                reason: format!(
                    "{}; either {part}_events or {part}_t, _x, _y, _p and _offsets are expected",
                    flaw.reason
                ),
                ..flaw
            })
        };
        let lists = [column("t")?, column("x")?, column("y")?, column("p")?];
        for list in lists {
            if list.shape != [lists[0].len()] {
                return Err(list.flaw(format!(
                    "its shape is {:?}; a list of {} values, one for each time, is expected",
                    list.shape,
                    lists[0].len()
                )));
            }
        }
        let offsets = column("offsets")?;
        if offsets.shape.len() != 1 || offsets.len() < 2 {
            let reason = "a list of where each recording begins and where the last one ends is expected";
            return Err(offsets.flaw(reason));
        }
        Ok(Given { labels, form: Form::Lists(lists, offsets) })
    }

    /// Number of recordings.
    fn count(&self) -> usize {
        match &self.form {
            Form::Lists(_, offsets) => offsets.len() - 1,
            Form::Dense(dense) => dense.shape[0],
        }
    }

    /// Divides every recording into steps.
    fn bin(
        &self,
        sensor: Shape,
        binning: &Binning,
        shape: Shape,
        to: &mut Recordings,
        budget: &mut Budget,
    ) -> Result<(), Flaw> {
        let mut events = Vec::new();
        match &self.form {
            Form::Lists(lists, offsets) => {
                let mut begin = 0;
                for recording in 0..=self.count() {
                    let end = offsets.whole(recording).and_then(|end| usize::try_from(end).ok());
                    let end = end.filter(|end| (begin..=lists[0].len()).contains(end));
                    let end = end.ok_or_else(|| {
                        let many = lists[0].len();
                        offsets.flaw(format!(
                            "element {recording} must be at least {begin} and at most {many}, the number of \
                             events"
                        ))
                    })?;
                    if recording > 0 {
                        read_events(lists, begin..end, sensor, &mut events, budget)?;
                        binning.add(&events, None, shape, to);
                    } else if end != 0 {
                        return Err(offsets.flaw("its first element is not 0"));
                    }
                    begin = end;
                }
                if begin != lists[0].len() {
                    let many = lists[0].len();
                    return Err(offsets.flaw(format!(
                        "its last element is {begin}; {many}, the number of events, is expected"
                    )));
                }
            }
            Form::Dense(dense) => {
                let [_, steps, channels, height, width] = dense.shape[..] else { return Ok(()) };
                let size = steps * channels * height * width;
                for recording in 0..self.count() {
                    events.clear();
                    for at in 0..size {
                        let value = dense.real(recording * size + at);
                        let value = value.filter(|value| value.is_finite());
                        let value = value.ok_or_else(|| dense.flaw("finite numbers are expected"))?;
                        if value != 0.0 {
                            let (time, rest) =
                                (at / (channels * height * width), at % (channels * height * width));
                            let (polarity, pixel) = (rest / (height * width), rest % (height * width));
                            let (time, x, y) = (time as u64, pixel % width, pixel / width);
                            let event = Event { time, x, y, polarity };
                            push(&mut events, event, budget).map_err(|exceeded| dense.flaw(exceeded))?;
                        }
                    }
                    binning.add_frames(&events, steps, shape, to);
                }
            }
        }
        Ok(())
    }
}

/// Height, width and polarities of the sensor.
fn sensor(parts: &[&Given], given: Option<&Array>) -> Result<Shape, Flaw> {
    let mut size = Shape { channels: 2, height: 1, width: 1 };
    for (i, part) in parts.iter().enumerate() {
        match &part.form {
            Form::Dense(dense) => {
                let own = Shape { channels: dense.shape[2], height: dense.shape[3], width: dense.shape[4] };
                if i > 0 && own != size {
                    return Err(dense.flaw("its recordings differ in size from the training recordings"));
                }
                if own.height.max(own.width).max(own.channels) as i64 > LARGEST_SIDE {
                    let reason = format!("its shape is {:?}; {LARGEST_SIDE} is the limit", dense.shape);
                    return Err(dense.flaw(reason));
                }
                size = own;
            }
            Form::Lists([_, x, y, _], _) => {
                let largest = |array: &Array| {
                    (0..array.len())
                        .filter_map(|i| array.whole(i))
                        .max()
                        .unwrap_or(0)
                        .clamp(0, LARGEST_SIDE - 1)
                };
                size.width = size.width.max(1 + largest(x) as usize);
                size.height = size.height.max(1 + largest(y) as usize);
            }
        }
    }
    if let Some(given) = given {
        let side = |i: usize| given.whole(i).filter(|side| (1..=LARGEST_SIDE).contains(side));
        let sides = if given.shape == [2] { side(0).zip(side(1)) } else { None };
        let (height, width) = sides.ok_or_else(|| given.flaw("[height, width] is expected"))?;
        (size.height, size.width) = (height as usize, width as usize);
    }
    Ok(size)
}

/// Adds an event to a list that is used for one recording after the other. Its memory, and that of the spike
/// that is stored, is taken from the budget.
fn push(events: &mut Vec<Event>, event: Event, budget: &mut Budget) -> Result<(), Exceeded> {
    budget.take(size_of::<u32>() as u64)?;
    if events.len() == events.capacity() {
        let more = events.len().max(1024);
        budget.take((more * size_of::<Event>()) as u64)?;
        events.reserve_exact(more);
    }
    events.push(event);
    Ok(())
}

/// Events of one recording, checked one by one; they replace those of the list.
fn read_events(
    [t, x, y, p]: &[&Array; 4],
    range: std::ops::Range<usize>,
    sensor: Shape,
    events: &mut Vec<Event>,
    budget: &mut Budget,
) -> Result<(), Flaw> {
    events.clear();
    let mut last = 0;
    for i in range {
        let time = t.whole(i).and_then(|time| u64::try_from(time).ok());
        let time =
            time.ok_or_else(|| t.flaw(format!("element {i} is not a whole number of microseconds from 0")))?;
        if !events.is_empty() && time < last {
            return Err(t.flaw(format!("element {i} is {time} us, before the previous event at {last} us")));
        }
        last = time;
        let place = |array: &Array, side: usize| {
            let place = array.whole(i).and_then(|at| usize::try_from(at).ok()).filter(|&at| at < side);
            place.ok_or_else(|| array.flaw(format!("element {i} is not one of 0 to {}", side - 1)))
        };
        let polarity = match p.whole(i) {
            Some(0 | -1) => 0,
            Some(1) => 1,
            _ => return Err(p.flaw(format!("element {i} is not 0, 1 or -1"))),
        };
        let event = Event { time, x: place(x, sensor.width)?, y: place(y, sensor.height)?, polarity };
        push(events, event, budget).map_err(|exceeded| t.flaw(exceeded))?;
    }
    Ok(())
}
