//! Pictures of grey pixels in PNG.

use libdeflater::{CompressionLvl, Compressor, crc32};

use super::font::{GLYPH_HEIGHT, GLYPH_WIDTH, glyph};
use super::picture::{Anchor, INK, PAPER, SIZE, Surface};

/// Pixels for each dot of a letter.
const SCALE: usize = 2;

/// A picture in grey levels.
pub(super) struct Raster {
    pixels: Vec<u8>,
}

impl Raster {
    pub(super) fn new() -> Self {
        Self { pixels: vec![PAPER; SIZE[0] * SIZE[1]] }
    }

    /// Fills a rectangle, as far as it is in the picture.
    fn fill_pixels(&mut self, [x, y]: [usize; 2], [width, height]: [usize; 2], level: u8) {
        for line in y..(y + height).min(SIZE[1]) {
            let (start, end) = (x.min(SIZE[0]), (x + width).min(SIZE[0]));
            self.pixels[line * SIZE[0]..][start..end].fill(level);
        }
    }

    pub(super) fn to_png(&self) -> Vec<u8> {
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

/// The nearest pixel; those left of the picture and above it are at its edge.
fn pixel(place: f64) -> usize {
    place.round().max(0.0) as usize
}

impl Surface for Raster {
    fn fill(&mut self, from: [f64; 2], to: [f64; 2], level: u8) {
        let ([left, top], [right, bottom]) = (from.map(pixel), to.map(pixel));
        self.fill_pixels([left, top], [right.saturating_sub(left), bottom.saturating_sub(top)], level);
    }

    /// Characters without a glyph are question marks.
    fn write(&mut self, text: &str, [x, y]: [f64; 2], anchor: Anchor) {
        let (letters, width) = (text.chars(), (GLYPH_WIDTH + 1) * SCALE);
        let all = letters.clone().count().saturating_mul(width);
        let before = match anchor {
            Anchor::Start => 0,
            Anchor::Middle => all / 2,
            Anchor::End => all,
        };
        let (x, y) = (pixel(x).saturating_sub(before), pixel(y).saturating_sub(GLYPH_HEIGHT * SCALE / 2));
        for (place, letter) in letters.enumerate().take(SIZE[0] / width + 1) {
            for (column, dots) in glyph(letter).iter().enumerate() {
                for row in (0..GLYPH_HEIGHT).filter(|row| dots >> row & 1 == 1) {
                    self.fill_pixels([x + place * width + column * SCALE, y + row * SCALE], [SCALE; 2], INK);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_the_chunks_of_a_png() {
        let png = Raster::new().to_png();
        assert!(png.starts_with(b"\x89PNG\r\n\x1a\n") && png.ends_with(b"IEND\xae\x42\x60\x82"));
        assert_eq!(png[16..24], [0, 0, 3, 32, 0, 0, 1, 244]);
    }

    #[test]
    fn pixels_outside_the_picture_are_not_drawn() {
        let mut raster = Raster::new();
        raster.fill([SIZE[0] as f64 - 1.0, SIZE[1] as f64 - 1.0], [1e9, 1e9], INK);
        raster.write(&"x".repeat(1000), [0.0, 0.0], Anchor::Middle);
        raster.fill([f64::NAN, f64::NEG_INFINITY], [f64::NAN, 3.0], INK);
        assert_eq!(raster.pixels.last(), Some(&INK));
    }
}
