//! Plots as text and as pictures.

mod bars;
mod font;
mod grid;
mod picture;
mod points;
mod raster;
mod svg;

use std::io::Write;
use std::path::{Path, PathBuf};

use self::bars::numbers;
pub(in super::super) use self::bars::{Bars, number};
pub(super) use self::grid::Grid;
pub(in super::super) use self::picture::Labels;
pub(in super::super) use self::points::Points;
use self::raster::Raster;
use self::svg::Svg;
use crate::console::{Console, Output, Pending, terminal_width};
use crate::failure::Failure;
use crate::inputs::Inputs;
use crate::table::count;
use crate::text::Text;

/// Variables that say which characters the terminal has, the first one that is set (POSIX, environment variables).
const LOCALES: [&str; 3] = ["LC_ALL", "LC_CTYPE", "LANG"];
/// Above this, doubles are not exact.
const MAX_EXACT: f64 = 9e15;

/// What is drawn.
#[derive(Debug)]
pub(in super::super) enum Plot {
    Bars(Bars),
    Grid(Grid),
    Points(Points),
}

impl Plot {
    /// Draws it as text, with a title.
    pub(in super::super) fn add_to(&self, title: &str, log: bool, space: Space, text: &mut Text) {
        match self {
            Self::Bars(bars) => bars.add_to(title, log, space, text),
            Self::Grid(grid) => grid.add_to(title, log, space, text),
            Self::Points(points) => points.add_to(title, space, text),
        }
    }
}

/// The space of a drawing as text.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Space {
    pub(in super::super) letters: Letters,
    /// Characters in a line; `None` where no terminal limits them.
    pub(in super::super) columns: Option<usize>,
    /// Lines below the title; `None` for as many as the drawing takes.
    pub(in super::super) lines: Option<usize>,
}

impl Space {
    /// That of the terminal, which scrolls.
    pub(in super::super) fn of_terminal() -> Self {
        Self { letters: Letters::of_terminal(), columns: terminal_width(), lines: None }
    }
}

/// Draws a plot as PNG.
pub(in super::super) fn to_png(plot: &Plot, labels: &Labels, log: bool) -> Vec<u8> {
    picture::draw(plot, labels, log, Raster::new()).to_png()
}

/// The option for pictures.
#[derive(Debug, clap::Args)]
pub(super) struct Picture {
    /// Write a picture to this PNG or SVG file, replacing an existing one
    #[arg(short, long, value_name = "OUT.png|OUT.svg")]
    output: Option<PathBuf>,
}

impl Picture {
    /// Whether a picture is drawn, not text.
    pub(super) fn is_wanted(&self) -> bool {
        self.output.is_some()
    }

    /// Refuses other formats, and to replace an input.
    pub(super) fn check(&self, inputs: &Inputs) -> Result<(), Failure> {
        let Some(path) = &self.output else { return Ok(()) };
        inputs.check_output(path)?;
        if has_extension(path, "png") || has_extension(path, "svg") {
            return Ok(());
        }
        let refused = Failure::usage(format_args!("{}: pictures can only be written as .png or .svg", path.display()));
        Err(refused.with_hint("omit -o to draw in the terminal"))
    }

    /// Draws in the terminal or as a picture, and prints the summary.
    pub(super) fn draw(
        &self,
        plot: &Plot,
        labels: &Labels,
        log: bool,
        inputs: &Inputs,
        console: &Console,
    ) -> Result<(), Failure> {
        match &self.output {
            None => {
                let mut text = console.text();
                plot.add_to(&labels.title, log, Space::of_terminal(), &mut text);
                console.print(&text)?;
            }
            Some(path) => {
                let picture = match has_extension(path, "svg") {
                    true => picture::draw(plot, labels, log, Svg::new()).finish(),
                    false => to_png(plot, labels, log),
                };
                let (mut output, pending) = Output::open(Some(path), inputs)?;
                output.write_all(&picture).and_then(|()| output.flush())?;
                pending.map_or(Ok(()), Pending::publish)?;
            }
        }
        console.note(&labels.summary);
        Ok(())
    }
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(wanted))
}

/// The letters that a terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Letters {
    Unicode,
    Ascii,
}

impl Letters {
    /// Unicode, unless the locale says otherwise.
    pub(in super::super) fn of_terminal() -> Self {
        let set = LOCALES.iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
        set.map_or(Self::Unicode, |locale| Self::of_locale(&locale))
    }

    fn of_locale(locale: &str) -> Self {
        let locale = locale.to_ascii_lowercase();
        if locale.contains("utf-8") || locale.contains("utf8") { Self::Unicode } else { Self::Ascii }
    }

    /// The line between labels and values.
    pub(in super::super) fn axis(self) -> &'static str {
        if self == Self::Unicode { "│" } else { "|" }
    }
}

/// Named values as bars.
pub(in super::super) fn named_bars(names: Vec<String>, values: Vec<f64>) -> Bars {
    let edges = (0..=values.len()).map(|edge| edge as f64).collect();
    Bars::new(edges, values, None).with_names(names)
}

/// The part of the highest value that a value takes.
fn share(value: f64, most: f64, log: bool) -> f64 {
    let scaled = |value: f64| if log { value.max(0.0).ln_1p() } else { value.max(0.0) };
    let most = scaled(most);
    let share = if most > 0.0 { scaled(value) / most } else { 0.0 };
    if share.is_finite() { share.min(1.0) } else { 0.0 }
}

/// Where a value is between two limits: 0 at the first, 1 at the second.
fn position(value: f64, [low, high]: [f64; 2]) -> f64 {
    // The width of the largest numbers overflows.
    let scale = if (high - low).is_finite() { 1.0 } else { 0.5 };
    (value * scale - low * scale) / (high * scale - low * scale)
}

/// A count with thousands, or a number with few digits.
fn label(value: f64) -> String {
    let is_count = value.fract() == 0.0 && (0.0..MAX_EXACT).contains(&value);
    if is_count { count(value as u64) } else { number(value) }
}

/// The smallest and largest finite value; those of an empty list are 0 and 1.
fn limits(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let finite = values.filter(|value| value.is_finite());
    let [low, high] = finite.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], it| [low.min(it), high.max(it)]);
    if low > high { [0.0, 1.0] } else { [low, high] }
}

/// The same, apart from each other.
fn range(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let [low, high] = limits(values);
    if low < high && (high - low).is_finite() {
        return [low, high];
    }
    let half = (low.abs() * f64::EPSILON * 1024.0).max(0.5);
    [low - half, low + half]
}

/// Neighbouring items in at most `most` groups: their limits.
fn groups(count: usize, most: usize) -> Vec<std::ops::Range<usize>> {
    let size = count.div_ceil(most.max(1)).max(1);
    (0..count.div_ceil(size)).map(|group| group * size..((group + 1) * size).min(count)).collect()
}

/// The edges of groups of bins.
fn grouped_edges(edges: &[f64], groups: &[std::ops::Range<usize>]) -> Vec<f64> {
    let ends = groups.iter().filter_map(|group| edges.get(group.end).copied());
    edges.first().copied().into_iter().chain(ends).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_follow_the_locale() {
        for (locale, letters) in [
            ("de_DE.UTF-8", Letters::Unicode),
            ("C.utf8", Letters::Unicode),
            ("C", Letters::Ascii),
            ("POSIX", Letters::Ascii),
        ] {
            assert_eq!(Letters::of_locale(locale), letters, "{locale}");
        }
    }

    #[test]
    fn shares_and_ranges_are_finite() {
        assert_eq!((share(5.0, 10.0, false), share(0.0, 0.0, true), share(f64::NAN, 1.0, false)), (0.5, 0.0, 0.0));
        assert_eq!((share(-1.0, 1.0, false), share(1.0, 1.0, true)), (0.0, 1.0));
        assert_eq!(range([3.0, f64::NAN, 3.0].into_iter()), [2.5, 3.5]);
        assert_eq!(limits([].into_iter()), [0.0, 1.0]);
        assert_eq!(groups(5, 2), [0..3, 3..5]);
        assert_eq!(groups(3, 10), [0..1, 1..2, 2..3]);
        assert_eq!(grouped_edges(&[0.0, 1.0, 2.0, 4.0], &groups(3, 2)), [0.0, 2.0, 4.0]);
    }
}
