//! Valid files of pictures and recordings, which tests damage.

use leaklab_lab::data::npy;

/// A picture of a width.
pub fn picture(width: u32, format: image::ImageFormat) -> Vec<u8> {
    let image = image::RgbImage::from_fn(width, 3 * width / 4, |x, y| {
        image::Rgb([x as u8 * 9, y as u8 * 11, (x * y) as u8])
    });
    let mut bytes = std::io::Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// A recording of N-MNIST with a number of events.
pub fn recording(events: u32) -> Vec<u8> {
    (0..events)
        .flat_map(|i| {
            let [_, high, middle, low] = (700 * i).to_be_bytes();
            [(i % 34) as u8, (i / 12) as u8, high | if i % 3 == 0 { 0x80 } else { 0 }, middle, low]
        })
        .collect()
}

/// An archive of arrays of 32-bit numbers.
fn archive(arrays: &[(String, Vec<usize>, Vec<i32>)]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npz");
    let plain = arrays.iter().map(|(name, shape, values)| {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        (name.as_str(), "<i4", shape.clone(), bytes)
    });
    npy::write(&path, plain.collect()).unwrap();
    std::fs::read(path).unwrap()
}

/// Recordings as lists of events.
pub fn event_lists() -> Vec<u8> {
    event_lists_until(60)
}

/// Lists of 60 events, with offsets that end at `last`.
pub fn event_lists_until(last: i32) -> Vec<u8> {
    let mut arrays = Vec::new();
    for part in ["train", "test"] {
        let row = |name: &str, values: Vec<i32>| (format!("{part}_{name}"), vec![values.len()], values);
        arrays.push(row("t", (0..60).map(|i| i % 20 * 50).collect()));
        arrays.push(row("x", (0..60).map(|i| i % 8).collect()));
        arrays.push(row("y", (0..60).map(|i| i % 6).collect()));
        arrays.push(row("p", (0..60).map(|i| i % 2).collect()));
        arrays.push(row("offsets", vec![0, 20, 40, last]));
        arrays.push(row("labels", vec![0, 1, 0]));
    }
    archive(&arrays)
}

/// Recordings as frames.
pub fn event_frames() -> Vec<u8> {
    let mut arrays = Vec::new();
    for part in ["train", "test"] {
        let frames = (0..2 * 3 * 2 * 2 * 2).map(|i| i % 2).collect();
        arrays.push((format!("{part}_events"), vec![2, 3, 2, 2, 2], frames));
        arrays.push((format!("{part}_labels"), vec![2], vec![0, 1]));
    }
    archive(&arrays)
}
