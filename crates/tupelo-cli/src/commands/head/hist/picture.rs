//! Histograms as pictures in PNG.

use libdeflater::{CompressionLvl, Compressor, crc32};

use super::Histogram;
use super::bars::{number, share};
use super::font::{GLYPH_HEIGHT, GLYPH_WIDTH, glyph};
use crate::table::count;

/// Size of a picture in pixels.
const SIZE: [usize; 2] = [800, 500];
/// Room for labels around the bins: left, right, above and below.
const MARGINS: [usize; 4] = [90, 60, 50, 60];
/// Pixels for each dot of a letter.
const SCALE: usize = 2;
/// Numbers along the horizontal axis and lines across the picture.
const TICKS: usize = 5;

/// Grey levels.
const PAPER: u8 = 255;
const GRID: u8 = 225;
const FILLED: u8 = 150;
const INK: u8 = 0;

/// A picture in grey levels.
struct Canvas {
    pixels: Vec<u8>,
}

impl Canvas {
    fn new() -> Self {
        Self { pixels: vec![PAPER; SIZE[0] * SIZE[1]] }
    }

    /// Fills a rectangle, as far as it is in the picture.
    fn fill(&mut self, [x, y]: [usize; 2], [width, height]: [usize; 2], level: u8) {
        for line in y..(y + height).min(SIZE[1]) {
            let (start, end) = (x.min(SIZE[0]), (x + width).min(SIZE[0]));
            self.pixels[line * SIZE[0]..][start..end].fill(level);
        }
    }

    /// Writes text from a place on; characters without a glyph are question marks.
    fn write(&mut self, text: &str, [x, y]: [usize; 2]) {
        for (place, letter) in text.chars().enumerate() {
            let left = x + place * (GLYPH_WIDTH + 1) * SCALE;
            for (column, dots) in glyph(letter).iter().enumerate() {
                for row in (0..GLYPH_HEIGHT).filter(|row| dots >> row & 1 == 1) {
                    self.fill([left + column * SCALE, y + row * SCALE], [SCALE; 2], INK);
                }
            }
        }
    }

    /// The same with the whole text left of the place, or around it.
    fn write_before(&mut self, text: &str, [x, y]: [usize; 2], is_centred: bool) {
        let width = text.chars().count() * (GLYPH_WIDTH + 1) * SCALE;
        self.write(text, [x.saturating_sub(if is_centred { width / 2 } else { width }), y]);
    }

    fn to_png(&self) -> Vec<u8> {
        let mut lines = Vec::with_capacity(self.pixels.len() + SIZE[1]);
        for line in self.pixels.chunks(SIZE[0]) {
            // No filter.
            lines.push(0);
            lines.extend_from_slice(line);
        }
        let mut compressor = Compressor::new(CompressionLvl::default());
        let mut packed = vec![0; compressor.zlib_compress_bound(lines.len())];
        // The bound holds for all data.
        let length = compressor.zlib_compress(&lines, &mut packed).unwrap_or(0);
        let mut header = SIZE.map(|pixels| (pixels as u32).to_be_bytes()).concat();
        // Eight bits of grey, the usual compression and filters, not interlaced.
        header.extend([8, 0, 0, 0, 0]);
        let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
        for (name, data) in [(b"IHDR", &header[..]), (b"IDAT", &packed[..length]), (b"IEND", &[])] {
            let chunk = [&name[..], data].concat();
            png.extend((data.len() as u32).to_be_bytes());
            png.extend_from_slice(&chunk);
            png.extend(crc32(&chunk).to_be_bytes());
        }
        png
    }
}

/// Draws the bins of a histogram with axes and a title.
pub(super) fn draw(histogram: &Histogram, title: &str, log: bool) -> Vec<u8> {
    let [left, right, top, bottom] = MARGINS;
    let (wide, high) = (SIZE[0] - left - right, SIZE[1] - top - bottom);
    let base = top + high;
    let most = histogram.counts.iter().copied().max().unwrap_or(0).max(1);
    let mut canvas = Canvas::new();
    for tick in 0..=TICKS {
        let part = tick as f64 / TICKS as f64;
        // With logarithms, the count whose bar ends there.
        let counted = if log { (most as f64 + 1.0).powf(part) - 1.0 } else { part * most as f64 };
        let y = base - (part * high as f64).round() as usize;
        canvas.fill([left, y], [wide, 1], GRID);
        let label = if counted.fract() == 0.0 { count(counted as u64) } else { number(counted) };
        canvas.write_before(&label, [left - 8, y - GLYPH_HEIGHT * SCALE / 2], false);
        let x = left + (part * wide as f64).round() as usize;
        canvas.fill([x, base], [1, 6], INK);
        let edge = number(histogram.low + (histogram.high - histogram.low) * part);
        canvas.write_before(&edge, [x, base + 12], true);
    }
    let bins = histogram.counts.len();
    for (bin, counted) in histogram.counts.iter().enumerate() {
        let (start, end) = (left + bin * wide / bins, left + (bin + 1) * wide / bins);
        let height = (share(*counted, most, log) * high as f64).round() as usize;
        canvas.fill([start, base - height], [end - start, height], FILLED);
        canvas.fill([start, base - height], [end - start, 2], INK);
    }
    canvas.fill([left, top], [1, high], INK);
    canvas.fill([left, base], [wide, 1], INK);
    canvas.write_before(title, [left + wide / 2, 18], true);
    canvas.write_before(&histogram.summary(), [left + wide / 2, base + 36], true);
    canvas.to_png()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_the_chunks_of_a_png() {
        let mut histogram = Histogram::new(3, (0.0, 3.0), false);
        [0.5, 1.5, 1.5].into_iter().for_each(|value| histogram.fill(value));
        let png = draw(&histogram, "Muon_pt", false);
        assert!(png.starts_with(b"\x89PNG\r\n\x1a\n") && png.ends_with(b"IEND\xae\x42\x60\x82"));
        assert_eq!(png[16..24], [0, 0, 3, 32, 0, 0, 1, 244]);
        assert_ne!(draw(&histogram, "Muon_pt", true), png);
    }

    #[test]
    fn pixels_outside_the_picture_are_not_drawn() {
        let mut canvas = Canvas::new();
        canvas.fill([SIZE[0] - 1, SIZE[1] - 1], [10, 10], INK);
        canvas.write_before(&"x".repeat(1000), [0, 0], true);
        assert_eq!(canvas.pixels.last(), Some(&INK));
    }
}
