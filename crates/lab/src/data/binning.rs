//! Assigns events to time steps and to input pixels: the length of a step, and which pixels of the sensor
//! are merged into one pixel of the network's input.

use super::content::Recordings;
use leaklab_engine::Shape;

/// One event of a camera.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Time in microseconds.
    pub time: u64,
    /// Column.
    pub x: usize,
    /// Row.
    pub y: usize,
    /// Polarity: channel of the network's input.
    pub polarity: usize,
}

/// How recordings are divided into time steps and pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binning {
    /// Time steps of every recording.
    pub time_steps: usize,
    /// Length of a step in microseconds; events after the last step are discarded. If not given, every
    /// recording is divided into equal steps, from its first event to its last.
    pub step_us: Option<u64>,
    /// Side, in pixels, of the squares that are merged into one pixel, which gets all their events.
    pub downsample: usize,
}

impl Default for Binning {
    fn default() -> Self {
        Binning { time_steps: 100, step_us: None, downsample: 1 }
    }
}

impl Binning {
    /// Size of the network's input for a sensor of this size; rows and columns that do not fill a square are
    /// omitted. If no pixel remains, the error is a message.
    pub fn shape(&self, sensor: Shape) -> Result<Shape, String> {
        let (height, width) = (sensor.height / self.downsample.max(1), sensor.width / self.downsample.max(1));
        if height == 0 || width == 0 {
            return Err(format!(
                "downsample = {} leaves no pixel of a sensor of {}x{}",
                self.downsample, sensor.height, sensor.width
            ));
        }
        Ok(Shape { channels: sensor.channels, height, width })
    }

    /// Step of an event of a recording that begins at `first` and has its last event at `last`; `None` if
    /// the event comes after the last step.
    fn step(&self, time: u64, first: u64, last: u64) -> Option<usize> {
        let since = time - first;
        let step = match self.step_us {
            Some(length) => since / length.max(1),
            None => {
                let span = u128::from(last - first) + 1;
                (u128::from(since) * self.time_steps as u128 / span) as u64
            }
        };
        usize::try_from(step).ok().filter(|&step| step < self.time_steps)
    }

    /// Adds a recording. If `step_us` is given, step 0 begins at the time `begin`, or at the first event if
    /// `begin` is `None`. Times must not decrease.
    pub(super) fn add(&self, events: &[Event], begin: Option<u64>, shape: Shape, to: &mut Recordings) {
        let (Some(first), Some(last)) = (events.first(), events.last()) else {
            to.push(std::iter::empty());
            return;
        };
        let first = begin.filter(|_| self.step_us.is_some()).unwrap_or(first.time);
        self.place(events, first, last.time, shape, to);
    }

    /// Adds a recording that is already divided into `frames`; the time of an event is its frame.
    pub(super) fn add_frames(&self, events: &[Event], frames: usize, shape: Shape, to: &mut Recordings) {
        let equal = Binning { step_us: None, ..*self };
        equal.place(events, 0, frames.max(1) as u64 - 1, shape, to);
    }

    fn place(&self, events: &[Event], first: u64, last: u64, shape: Shape, to: &mut Recordings) {
        let placed = events.iter().filter_map(|event| {
            let (x, y) = (event.x / self.downsample, event.y / self.downsample);
            let inside = x < shape.width && y < shape.height;
            let step = self.step(event.time, first, last).filter(|_| inside)?;
            Some((step, event.polarity * shape.pixels() + y * shape.width + x))
        });
        to.push(placed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENSOR: Shape = Shape { channels: 2, height: 5, width: 4 };

    fn event(time: u64, x: usize, y: usize, polarity: usize) -> Event {
        Event { time, x, y, polarity }
    }

    #[test]
    fn equal_steps_and_steps_of_a_given_length() {
        let events = [event(10, 0, 0, 0), event(14, 1, 0, 1), event(15, 3, 4, 0), event(19, 3, 3, 1)];
        let bin = |binning: Binning, begin| {
            let shape = binning.shape(SENSOR).unwrap();
            let mut made = Recordings::new(binning.time_steps, shape).unwrap();
            binning.add(&events, begin, shape, &mut made);
            made.recording(0).collect::<Vec<_>>()
        };
        // Ten microseconds in two steps: 10 to 14, 15 to 19.
        let equal = Binning { time_steps: 2, ..Binning::default() };
        assert_eq!(bin(equal, None), [(0, 0), (0, 21), (1, 19), (1, 35)]);
        // Steps of 4 us from the first event. If step 0 begins at 0, the first event is in step 2.
        let fixed = Binning { time_steps: 3, step_us: Some(4), ..Binning::default() };
        assert_eq!(bin(fixed, None), [(0, 0), (1, 19), (1, 21), (2, 35)]);
        assert_eq!(bin(Binning { time_steps: 4, ..fixed }, Some(0)), [(2, 0), (3, 19), (3, 21)]);
        // Squares of 2x2 pixels: the fifth row is omitted, and two events in the same square and step are
        // one spike.
        let half = Binning { time_steps: 1, downsample: 2, ..Binning::default() };
        assert_eq!(half.shape(SENSOR).unwrap(), Shape { channels: 2, height: 2, width: 2 });
        assert_eq!(bin(half, None), [(0, 0), (0, 4), (0, 7)]);
        assert!(Binning { downsample: 6, ..half }.shape(SENSOR).is_err());
    }
}
