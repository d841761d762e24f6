//! Pictures in SVG.

use tupelo::printable;

use super::picture::{Anchor, SIZE, Surface};

/// Size of letters in pixels.
const FONT_SIZE: u32 = 15;

/// A picture of rectangles and text.
pub(super) struct Svg {
    text: String,
}

impl Svg {
    pub(super) fn new() -> Self {
        let [width, height] = SIZE;
        let head = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"monospace\" font-size=\"{FONT_SIZE}\" shape-rendering=\"crispEdges\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
        );
        Self { text: head }
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.text += "</svg>\n";
        self.text.into_bytes()
    }
}

/// A place with hundredths of a pixel.
fn place(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Text without characters that XML forbids or that begin elements.
fn escaped(text: &str) -> String {
    printable(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

impl Surface for Svg {
    fn fill(&mut self, [left, top]: [f64; 2], [right, bottom]: [f64; 2], level: u8) {
        let [x, y, width, height] = [left, top, right - left, bottom - top];
        if width > 0.0 && height > 0.0 {
            let [x, y, width, height] = [x, y, width, height].map(place);
            self.text += &format!("<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" ");
            self.text += &format!("fill=\"#{level:02x}{level:02x}{level:02x}\"/>\n");
        }
    }

    fn write(&mut self, text: &str, [x, y]: [f64; 2], anchor: Anchor) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        // The base line of letters is below their middle.
        let [x, y] = [x, y + f64::from(FONT_SIZE) / 3.0].map(place);
        self.text += &format!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{}</text>\n", escaped(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        let mut svg = Svg::new();
        svg.write("a<b & \u{1b}", [1.0, 2.0], Anchor::End);
        svg.fill([1.0, 2.0], [1.0, 3.0], 0);
        svg.fill([1.0, 2.0], [2.5, 3.125], 255);
        let text = String::from_utf8(svg.finish()).expect("UTF-8");
        assert!(text.contains("text-anchor=\"end\">a&lt;b &amp; \\u{1b}</text>"), "{text}");
        assert_eq!(text.matches("<rect").count(), 2);
        assert!(text.contains("width=\"1.5\" height=\"1.12\" fill=\"#ffffff\""), "{text}");
    }
}
