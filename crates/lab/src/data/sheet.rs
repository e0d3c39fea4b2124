//! A contact sheet: images of every class, as pixels and as the network sees them.
//!
//! Each image is drawn three times: its pixels, the spikes of one step, and the mean spikes over all steps.
//! Black is -1, grey 0 and white +1, per colour. The second row shows what noise does in one step, the third
//! row what remains of it when all steps are averaged.

use super::present::Scratch;
use super::{DataError, Dataset, Presentation, Split, lettering};
use image::{Rgb, RgbImage};
use leaklab_engine::noise::NoiseSetting;
use leaklab_engine::{Input, Shape};

const MARGIN: u32 = 8;
const GAP: u32 = 4;
const PAPER: Rgb<u8> = Rgb([24, 26, 32]);
const INK: Rgb<u8> = Rgb([235, 235, 235]);
const FAINT: Rgb<u8> = Rgb([150, 155, 165]);
/// Cells in a line of the sheet.
const COLUMNS: usize = 10;

/// A sheet with its titles, and below them a cell for each image, which has its class and one or more
/// pictures below each other.
pub(super) struct Grid {
    pub sheet: RgbImage,
    /// Side, in pixels of the sheet, of a pixel of an image.
    pub scale: u32,
    /// Distance between the tops of two pictures of a cell.
    pub step: u32,
    cell: [u32; 2],
    top: u32,
}

impl Grid {
    /// An empty sheet for `images` images with `pictures` pictures each.
    pub fn new(shape: Shape, titles: &[String], images: usize, pictures: u32) -> Self {
        let scale = (96 / shape.width.max(shape.height)).max(1) as u32;
        let (width, step) = (shape.width as u32 * scale, shape.height as u32 * scale + GAP);
        let cell = [width.max(lettering::ADVANCE * 10) + GAP, pictures * step + lettering::HEIGHT + 3 * GAP];
        let columns = COLUMNS.min(images.max(1)) as u32;
        let lines = images.div_ceil(COLUMNS) as u32;
        let top = MARGIN + titles.len() as u32 * (lettering::HEIGHT + GAP) + GAP;
        let title_width = titles.iter().map(|title| title.len() as u32 * lettering::ADVANCE).max();
        let sheet_width = 2 * MARGIN + (columns * cell[0]).max(title_width.unwrap_or(0));
        let mut sheet = RgbImage::from_pixel(sheet_width, top + lines * cell[1] + MARGIN, PAPER);
        for (i, title) in titles.iter().enumerate() {
            let colour = if i == 0 { INK } else { FAINT };
            write(&mut sheet, MARGIN, MARGIN + i as u32 * (lettering::HEIGHT + GAP), title, colour);
        }
        Grid { sheet, scale, step, cell, top }
    }

    /// Writes the class of an image into its cell, and returns the place of its first picture.
    pub fn begin(&mut self, place: usize, class: &str) -> [u32; 2] {
        let x = MARGIN + (place % COLUMNS) as u32 * self.cell[0];
        let y = self.top + (place / COLUMNS) as u32 * self.cell[1];
        let name: String = class.chars().take(self.cell[0] as usize / 6).collect();
        write(&mut self.sheet, x, y, &name, INK);
        [x, y + lettering::HEIGHT + GAP]
    }
}

/// Draws the first `per_class` images of each class of a split.
pub fn draw(dataset: &Dataset, split: &Split, presentation: &Presentation, per_class: usize) -> RgbImage {
    let shape = dataset.shape;
    let chosen = choose(split, dataset.classes, per_class);
    let mut grid = Grid::new(shape, &titles(dataset, presentation), chosen.len(), 3);
    let mut input = Input::silent(shape, presentation.encoding.time_steps);
    for (place, &index) in chosen.iter().enumerate() {
        let [x, mut down] = grid.begin(place, &dataset.class_names[split.label(index)]);
        let pixels: Vec<f32> = split.image(index).iter().map(|&p| f32::from(p) / 127.5 - 1.0).collect();
        presentation.show(split, index, 0, &mut Scratch::default(), &mut input);
        let [step, mean] = pictures(&input);
        for picture in [&pixels, &step, &mean] {
            paint(&mut grid.sheet, x, down, picture, shape, grid.scale);
            down += grid.step;
        }
    }
    grid.sheet
}

/// The sheet as a PNG file.
pub fn png(sheet: &RgbImage) -> Result<Vec<u8>, DataError> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let written = sheet.write_to(&mut bytes, image::ImageFormat::Png);
    written.map_err(|error| DataError::Request(format!("the sheet cannot be encoded as PNG: {error}")))?;
    Ok(bytes.into_inner())
}

/// The first `per_class` images of each class: first one image of every class, then the next of every class.
pub(super) fn choose(split: &Split, classes: usize, per_class: usize) -> Vec<usize> {
    let mut of_class = vec![Vec::new(); classes];
    for index in 0..split.len() {
        let members = &mut of_class[split.label(index)];
        if members.len() < per_class {
            members.push(index);
        }
    }
    let rounds = (0..per_class).flat_map(|round| of_class.iter().filter_map(move |m| m.get(round)));
    rounds.copied().collect()
}

fn titles(dataset: &Dataset, presentation: &Presentation) -> [String; 2] {
    let steps = presentation.encoding.time_steps;
    let noise = match presentation.encoding.noise {
        None => "clean".to_owned(),
        Some(setting) => describe(setting),
    };
    [
        format!("{}: {noise}", dataset.name),
        format!("pixels; spikes of one step; mean of {steps} steps. black -1, grey 0, white +1"),
    ]
}

pub(super) fn describe(setting: NoiseSetting) -> String {
    format!(
        "{}/{}, {} {}",
        setting.noise(),
        setting.scenario(),
        setting.noise().level_name(),
        setting.level()
    )
}

/// The values of the first step, and the mean over all steps, `[channel][row][column]`.
fn pictures(input: &Input) -> [Vec<f32>; 2] {
    let (shape, steps) = (input.shape(), input.steps());
    let mut first = vec![0.0; shape.neurons()];
    let mut mean = vec![0.0; shape.neurons()];
    let mut add = |step: usize, neuron: usize, value: f32| {
        mean[neuron] += value / steps as f32;
        if step == 0 {
            first[neuron] = value;
        }
    };
    match input {
        Input::Real { values, .. } => {
            for (i, &value) in values.iter().enumerate() {
                add(i / shape.neurons(), i % shape.neurons(), value);
            }
        }
        Input::Ternary { spikes, .. } => {
            for pixel in 0..shape.pixels() {
                for step in 0..steps {
                    for channel in 0..shape.channels {
                        let neuron = channel * shape.pixels() + pixel;
                        if spikes.get(pixel, step, channel) {
                            add(step, neuron, 1.0);
                        } else if spikes.get(pixel, step, shape.channels + channel) {
                            add(step, neuron, -1.0);
                        }
                    }
                }
            }
        }
    }
    [first, mean]
}

/// Paints values from -1 to 1; three channels are drawn in colour, otherwise the first channel in grey.
fn paint(sheet: &mut RgbImage, x: u32, y: u32, values: &[f32], shape: Shape, scale: u32) {
    let byte = |value: f32| ((value + 1.0) * 127.5).round().clamp(0.0, 255.0) as u8;
    for pixel in 0..shape.pixels() {
        let colour = [0, 1, 2].map(|c| {
            let channel = if shape.channels == 3 { c } else { 0 };
            byte(values[channel * shape.pixels() + pixel])
        });
        let (row, column) = ((pixel / shape.width) as u32, (pixel % shape.width) as u32);
        for dy in 0..scale {
            for dx in 0..scale {
                sheet.put_pixel(x + column * scale + dx, y + row * scale + dy, Rgb(colour));
            }
        }
    }
}

pub(super) fn write(sheet: &mut RgbImage, x: u32, y: u32, text: &str, colour: Rgb<u8>) {
    for (i, letter) in text.chars().enumerate() {
        for (row, bits) in lettering::rows(letter).into_iter().enumerate() {
            for column in (0..5).filter(|column| bits >> (4 - column) & 1 == 1) {
                let (x, y) = (x + i as u32 * lettering::ADVANCE + column, y + row as u32);
                if let Some(pixel) = sheet.get_pixel_mut_checked(x, y) {
                    *pixel = colour;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Limits, Normaliser, load};
    use leaklab_engine::encode::Encoding;
    use leaklab_engine::noise::{Noise, Scenario};

    #[test]
    fn shows_pixels_and_spikes_of_every_class() {
        let digits = load("digits", None, &Limits::NONE).unwrap();
        let mut presentation = Presentation::new(&digits, Normaliser::PER_IMAGE, Encoding::clean(100), 1);
        let clean = draw(&digits, &digits.test, &presentation, 2);
        let setting = NoiseSetting::new(Noise::Gaussian, Scenario::Channel, 1.0).unwrap();
        presentation.encoding = presentation.encoding.with_noise(Some(setting));
        let noisy = draw(&digits, &digits.test, &presentation, 2);
        assert_eq!(clean.dimensions(), noisy.dimensions());
        // The first picture starts below two lines of titles and one label, and shows the digit's pixels.
        let (x, y) = (MARGIN, MARGIN + 3 * (lettering::HEIGHT + GAP) + GAP);
        let first = choose(&digits.test, 10, 2)[0];
        for pixel in 0..64u32 {
            let at = clean.get_pixel(x + pixel % 8 * 12 + 5, y + pixel / 8 * 12 + 5).0;
            assert_eq!(at, [digits.test.image(first)[pixel as usize]; 3]);
        }
        // The spikes of one step are black, grey or white without noise; with noise there are other greys.
        let greys = |sheet: &RgbImage| {
            let step = (0..64u32).map(|p| sheet.get_pixel(x + p % 8 * 12, y + 100 + p / 8 * 12).0[0]);
            step.filter(|grey| ![0, 128, 255].contains(grey)).count()
        };
        assert_eq!(greys(&clean), 0);
        assert!(greys(&noisy) > 20);
    }
}
