//! Events to time steps: how long a step is, and which pixels of the sensor make one of the network's.

use super::content::Recordings;
use leaklab_engine::Shape;

/// One event of a camera.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Microseconds.
    pub time: u64,
    /// Column.
    pub x: usize,
    /// Row.
    pub y: usize,
    /// Polarity: channel of the network's input.
    pub polarity: usize,
}

/// How recordings are cut into time steps and pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binning {
    /// Time steps of every recording.
    pub time_steps: usize,
    /// Microseconds of a step; events after the last step are left out. If not given, every recording is cut
    /// into equal parts, from its first event to its last.
    pub step_us: Option<u64>,
    /// Squares of so many pixels a side become one pixel: its events are those of all of them together.
    pub downsample: usize,
}

impl Default for Binning {
    fn default() -> Self {
        Binning { time_steps: 100, step_us: None, downsample: 1 }
    }
}

impl Binning {
    /// Size of the network's input for a sensor of some size; rows and columns that do not fill a square are
    /// left out. Refused in words if nothing is left.
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

    /// Step of an event of a recording that begins at `first` and has its last event at `last`; none if it
    /// comes after the last step.
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

    /// Adds a recording. `begin` is the time at which step 0 begins where `step_us` is given; the first event
    /// if it is not said. Times must not run backwards.
    pub(super) fn add(&self, events: &[Event], begin: Option<u64>, shape: Shape, to: &mut Recordings) {
        let (Some(first), Some(last)) = (events.first(), events.last()) else {
            to.push(std::iter::empty());
            return;
        };
        let first = begin.filter(|_| self.step_us.is_some()).unwrap_or(first.time);
        self.place(events, first, last.time, shape, to);
    }

    /// Adds a recording that is cut into `frames` already; the time of an event is its frame.
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
    fn equal_parts_and_steps_of_a_length() {
        let events = [event(10, 0, 0, 0), event(14, 1, 0, 1), event(15, 3, 4, 0), event(19, 3, 3, 1)];
        let bin = |binning: Binning, begin| {
            let shape = binning.shape(SENSOR).unwrap();
            let mut made = Recordings::new(binning.time_steps, shape).unwrap();
            binning.add(&events, begin, shape, &mut made);
            made.recording(0).collect::<Vec<_>>()
        };
        // Ten microseconds in two parts: 10 to 14, 15 to 19.
        let equal = Binning { time_steps: 2, ..Binning::default() };
        assert_eq!(bin(equal, None), [(0, 0), (0, 21), (1, 19), (1, 35)]);
        // Steps of 4 from the first event; from 0 the recording begins in step 2.
        let fixed = Binning { time_steps: 3, step_us: Some(4), ..Binning::default() };
        assert_eq!(bin(fixed, None), [(0, 0), (1, 19), (1, 21), (2, 35)]);
        assert_eq!(bin(Binning { time_steps: 4, ..fixed }, Some(0)), [(2, 0), (3, 19), (3, 21)]);
        // Squares of two: the fifth row is left out, and two events of a square and step are one spike.
        let half = Binning { time_steps: 1, downsample: 2, ..Binning::default() };
        assert_eq!(half.shape(SENSOR).unwrap(), Shape { channels: 2, height: 2, width: 2 });
        assert_eq!(bin(half, None), [(0, 0), (0, 4), (0, 7)]);
        assert!(Binning { downsample: 6, ..half }.shape(SENSOR).is_err());
    }
}
