//! Plots as pictures with axes and labels.

use super::{Bars, Grid, Plot, Points, label, limits, numbers, position, share};

/// Size of a picture in pixels.
pub(super) const SIZE: [usize; 2] = [800, 500];
/// Room for labels around the plot: left, right, above and below.
const MARGINS: [f64; 4] = [90.0, 60.0, 60.0, 80.0];
/// Numbers along each axis, and lines across the picture.
const TICKS: u32 = 5;
/// Most bins that are drawn, on each axis.
const MAX_BINS: usize = 200;
/// Letters in a line of the summary.
const MAX_LETTERS: usize = 62;
/// Half the size of a point in pixels.
const POINT: f64 = 2.5;

/// Grey levels.
pub(super) const PAPER: u8 = 255;
const GRID: u8 = 225;
const FILLED: u8 = 150;
pub(super) const INK: u8 = 0;

/// Where a text is, seen from its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// What pictures are drawn on: pixels from the left and from above.
pub(super) trait Surface {
    /// Fills a rectangle between two corners.
    fn fill(&mut self, from: [f64; 2], to: [f64; 2], level: u8);

    /// Writes text whose middle is as high as the place.
    fn write(&mut self, text: &str, place: [f64; 2], anchor: Anchor);
}

/// The texts around a plot.
#[derive(Debug, Default)]
pub(in super::super::super) struct Labels {
    pub(in super::super::super) title: String,
    pub(in super::super::super) axes: [String; 2],
    /// Statistics.
    pub(in super::super::super) summary: String,
}

/// A plot with its ranges on both axes.
struct Frame<S> {
    surface: S,
    ranges: [[f64; 2]; 2],
    /// Whether y is a count on a logarithmic scale.
    log: bool,
}

impl<S: Surface> Frame<S> {
    fn x(&self, value: f64) -> f64 {
        MARGINS[0] + position(value, self.ranges[0]).clamp(0.0, 1.0) * (SIZE[0] as f64 - MARGINS[0] - MARGINS[1])
    }

    fn y(&self, value: f64) -> f64 {
        let range = self.ranges[1];
        let part = if self.log { share(value, range[1], true) } else { position(value, range) };
        self.height(part)
    }

    /// The place of a part of the axis in y.
    fn height(&self, part: f64) -> f64 {
        let part = if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 };
        let base = SIZE[1] as f64 - MARGINS[3];
        base - part * (base - MARGINS[2])
    }

    fn lines_across(&mut self) {
        let right = SIZE[0] as f64 - MARGINS[1];
        for part in (0..=TICKS).map(|tick| f64::from(tick) / f64::from(TICKS)) {
            let y = self.height(part);
            self.surface.fill([MARGINS[0], y], [right, y + 1.0], GRID);
        }
    }

    /// The axes, over the plot.
    fn axes(&mut self, labels: &Labels) {
        let [left, top, base] = [MARGINS[0], MARGINS[2], SIZE[1] as f64 - MARGINS[3]];
        let (right, middle) = (SIZE[0] as f64 - MARGINS[1], (SIZE[0] as f64 + MARGINS[0] - MARGINS[1]) / 2.0);
        let [[x_low, x_high], [y_low, y_high]] = self.ranges;
        let parts: Vec<f64> = (0..=TICKS).map(|tick| f64::from(tick) / f64::from(TICKS)).collect();
        let x_values: Vec<f64> = parts.iter().map(|part| x_low * (1.0 - part) + x_high * part).collect();
        for (part, x_text) in parts.into_iter().zip(numbers(&x_values)) {
            // With logarithms, the count whose bar ends there.
            let value = if self.log { (y_high.ln_1p() * part).exp_m1() } else { y_low + (y_high - y_low) * part };
            let value = if self.log && value.fract() < 1e-9 { value.round() } else { value };
            self.surface.write(&label(value), [left - 8.0, self.height(part)], Anchor::End);
            let x = left + part * (right - left);
            self.surface.fill([x, base], [x + 1.0, base + 6.0], INK);
            self.surface.write(&x_text, [x, base + 16.0], Anchor::Middle);
        }
        self.surface.fill([left, top], [left + 1.0, base], INK);
        self.surface.fill([left, base], [right, base + 1.0], INK);
        self.surface.write(&labels.title, [middle, 18.0], Anchor::Middle);
        self.surface.write(&labels.axes[0], [right, base + 36.0], Anchor::End);
        self.surface.write(&labels.axes[1], [8.0, 38.0], Anchor::Start);
        for (line, text) in wrapped(&labels.summary).iter().enumerate() {
            self.surface.write(text, [middle, base + 56.0 + 16.0 * line as f64], Anchor::Middle);
        }
    }

    fn bars(&mut self, bars: &Bars) {
        let zero = if self.log { self.height(0.0) } else { self.y(0.0) };
        for (edges, value) in bars.edges().windows(2).zip(bars.values()).filter(|(_, value)| value.is_finite()) {
            let [start, end] = [self.x(edges[0]), self.x(edges[1])];
            let y = self.y(value);
            self.surface.fill([start, y.min(zero)], [end, y.max(zero)], FILLED);
            self.surface.fill([start, y], [end, y + 2.0], INK);
        }
    }

    fn shades(&mut self, grid: &Grid, [low, high]: [f64; 2], log: bool) {
        let [across, up] = grid.edges();
        for (line, edges_y) in grid.lines().iter().zip(up.windows(2)) {
            for (value, edges_x) in line.iter().zip(across.windows(2)) {
                let part = share(value - low, high - low, log);
                if part > 0.0 {
                    let corners = ([self.x(edges_x[0]), self.y(edges_y[1])], [self.x(edges_x[1]), self.y(edges_y[0])]);
                    let level = f64::from(BOTTOM_LEVEL) * (1.0 - part);
                    self.surface.fill(corners.0, corners.1, level.round() as u8);
                }
            }
        }
    }

    fn points(&mut self, points: &Points) {
        let [xs, ys] = &points.places;
        for (point, place) in xs.iter().zip(ys).map(|(x, y)| [*x, *y]).enumerate() {
            if !place.iter().all(|it| it.is_finite()) {
                continue;
            }
            let [x, y] = [self.x(place[0]), self.y(place[1])];
            if let Some([low, high]) = points.bounds(0, point) {
                self.surface.fill([self.x(low), y], [self.x(high), y + 1.0], INK);
            }
            if let Some([low, high]) = points.bounds(1, point) {
                self.surface.fill([x, self.y(high)], [x + 1.0, self.y(low)], INK);
            }
            self.surface.fill([x - POINT, y - POINT], [x + POINT, y + POINT], INK);
        }
    }
}

/// Parts between commas, in as few lines as they fit.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in text.split_inclusive(", ") {
        match lines.last_mut() {
            Some(line) if line.chars().count() + part.trim_end().chars().count() <= MAX_LETTERS => *line += part,
            _ => lines.push(part.to_owned()),
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

/// The grey level of the lowest value with a shade.
const BOTTOM_LEVEL: u8 = 235;

/// Draws a plot with axes and labels.
pub(super) fn draw<S: Surface>(plot: &Plot, labels: &Labels, log: bool, surface: S) -> S {
    let ends = |edges: &[f64]| [edges.first().copied().unwrap_or(0.0), edges.last().copied().unwrap_or(1.0)];
    let mut frame = match plot {
        Plot::Bars(bars) => {
            let [low, high] = limits(bars.values().into_iter().chain([0.0]));
            let low = if log { 0.0 } else { low };
            Frame { surface, ranges: [ends(bars.edges()), [low, if high > low { high } else { low + 1.0 }]], log }
        }
        Plot::Grid(grid) => {
            let [x, y] = grid.edges();
            Frame { surface, ranges: [ends(x), ends(y)], log: false }
        }
        Plot::Points(points) => Frame { surface, ranges: [points.range(0), points.range(1)], log: false },
    };
    frame.lines_across();
    match plot {
        Plot::Bars(bars) => frame.bars(bars),
        Plot::Grid(grid) => {
            let grid = grid.combined([MAX_BINS; 2]);
            let [low, high] = limits(grid.lines().into_iter().flatten());
            frame.shades(&grid, [low.min(0.0), high], log);
        }
        Plot::Points(points) => frame.points(points),
    }
    frame.axes(labels);
    frame.surface
}

#[cfg(test)]
mod tests {
    use super::super::raster::Raster;
    use super::*;

    /// The corners of what is filled with a level.
    #[derive(Default)]
    struct Filled(Vec<([f64; 2], [f64; 2], u8)>);

    impl Surface for Filled {
        fn fill(&mut self, from: [f64; 2], to: [f64; 2], level: u8) {
            self.0.push((from, to, level));
        }

        fn write(&mut self, _: &str, _: [f64; 2], _: Anchor) {}
    }

    #[test]
    fn bins_are_true_to_scale() {
        let bars = Bars::new(vec![0.0, 1.0, 4.0], vec![2.0, -1.0], None);
        let drawn = draw(&Plot::Bars(bars), &Labels::default(), false, Filled::default()).0;
        let filled: Vec<_> = drawn.iter().filter(|(.., level)| *level == FILLED).collect();
        let wide = |place: usize| filled[place].1[0] - filled[place].0[0];
        assert!((wide(1) / wide(0) - 3.0).abs() < 1e-9, "{filled:?}");
        // Both begin at zero, and the higher one is twice as high.
        let high = |place: usize| filled[place].1[1] - filled[place].0[1];
        assert!((high(0) / high(1) - 2.0).abs() < 1e-9 && filled[0].1[1] == filled[1].0[1], "{filled:?}");
    }

    #[test]
    fn long_summaries_are_wrapped() {
        assert_eq!(wrapped("1 entry, mean 2"), ["1 entry, mean 2"]);
        let long = "x".repeat(50);
        assert_eq!(wrapped(&format!("{long}, mean 2, {long}")), [format!("{long}, mean 2,"), long]);
    }

    #[test]
    fn scales_differ() {
        let plot = |log| {
            let bars = Bars::new(vec![0.0, 1.0, 2.0], vec![1.0, 9.0], None);
            draw(&Plot::Bars(bars), &Labels::default(), log, Raster::new()).to_png()
        };
        assert_ne!(plot(true), plot(false));
    }

    #[test]
    fn empty_plots_are_drawn() {
        for plot in [
            Plot::Bars(Bars::new(vec![0.0, 1.0], vec![f64::NAN], None)),
            Plot::Grid(Grid::new([vec![0.0, 1.0], vec![0.0, 1.0]], vec![0.0], None)),
            Plot::Points(Points::default()),
        ] {
            let drawn = draw(&plot, &Labels::default(), true, Filled::default()).0;
            let places = drawn.iter().flat_map(|(from, to, _)| from.iter().chain(to));
            assert!(places.into_iter().all(|place| place.is_finite()), "{plot:?}");
        }
    }
}
