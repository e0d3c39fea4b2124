//! A contact sheet of recordings.
//!
//! Each recording is drawn twice: its spikes summed over all steps, and a raster of columns against time
//! (from top to bottom), summed over rows. The first polarity (OFF) is red, the second (ON) green.

use super::present::Scratch;
use super::sheet::{Grid, choose, describe};
use super::{Dataset, Presentation, Split};
use image::{Rgb, RgbImage};
use leaklab_engine::{Input, Shape, Spikes};

/// Number of spikes of a place that is drawn in full colour.
const FULL: f32 = 8.0;

/// Draws the first `per_class` recordings of each class of a split.
pub fn draw(dataset: &Dataset, split: &Split, presentation: &Presentation, per_class: usize) -> RgbImage {
    let (shape, steps) = (dataset.shape, presentation.encoding.time_steps);
    let chosen = choose(split, dataset.classes, per_class);
    let mut grid = Grid::new(shape, &titles(dataset, split, presentation), chosen.len(), 2);
    let mut input = Input::silent(shape, steps);
    for (place, &index) in chosen.iter().enumerate() {
        let [x, down] = grid.begin(place, &dataset.class_names[split.label(index)]);
        presentation.show(split, index, 0, &mut Scratch::default(), &mut input);
        let Input::Ternary { spikes, .. } = &input else { continue };
        let frame = added(spikes, shape, shape.height, |pixel, _| pixel / shape.width);
        paint(&mut grid.sheet, x, down, &frame, shape.width, grid.scale);
        let raster = added(spikes, shape, shape.height, |_, step| step * shape.height / steps);
        paint(&mut grid.sheet, x, down + grid.step, &raster, shape.width, grid.scale);
    }
    grid.sheet
}

fn titles(dataset: &Dataset, split: &Split, presentation: &Presentation) -> [String; 2] {
    let noise = presentation.encoding.noise.map_or("clean".to_owned(), describe);
    let spikes = split.recordings().map_or(0, |recordings| recordings.spikes() / recordings.len().max(1));
    let steps = presentation.encoding.time_steps;
    [
        format!("{}: {noise}, {spikes} spikes a recording", dataset.name),
        format!("all {steps} steps; columns, time downwards. red OFF, green ON"),
    ]
}

/// Number of spikes of the first and the last polarity, by column and by a line that depends on pixel and
/// step.
fn added(spikes: &Spikes, shape: Shape, lines: usize, line: impl Fn(usize, usize) -> usize) -> Vec<[f32; 2]> {
    let mut sums = vec![[0.0; 2]; lines * shape.width];
    for pixel in 0..shape.pixels() {
        for step in 0..spikes.steps() {
            for (side, channel) in [0, shape.channels - 1].into_iter().enumerate() {
                if spikes.get(pixel, step, channel) {
                    sums[line(pixel, step) * shape.width + pixel % shape.width][side] += 1.0;
                }
            }
        }
    }
    sums
}

fn paint(sheet: &mut RgbImage, x: u32, y: u32, sums: &[[f32; 2]], width: usize, scale: u32) {
    let byte = |sum: f32| (255.0 * (sum / FULL).min(1.0)).round() as u8;
    for (i, [off, on]) in sums.iter().enumerate() {
        let colour = Rgb([byte(*off), byte(*on), 0]);
        let (left, top) = (x + (i % width) as u32 * scale, y + (i / width) as u32 * scale);
        for dy in 0..scale {
            for dx in 0..scale {
                sheet.put_pixel(left + dx, top + dy, colour);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Limits, Normaliser, load};
    use leaklab_engine::encode::Encoding;

    #[test]
    fn every_class_is_drawn_in_both_colours() {
        let data = load("digits-events", None, &Limits::NONE).unwrap();
        let presentation = Presentation::new(&data, Normaliser::PER_IMAGE, Encoding::clean(100), 1);
        let sheet = draw(&data, &data.test, &presentation, 1);
        let has = |wanted: fn(&Rgb<u8>) -> bool| sheet.pixels().filter(|pixel| wanted(pixel)).count();
        assert!(has(|p| p.0[0] > 100 && p.0[1] == 0) > 500 && has(|p| p.0[1] > 100 && p.0[0] == 0) > 500);
    }
}
