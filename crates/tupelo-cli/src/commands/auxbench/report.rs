//! The report of `tupelo auxbench`: Markdown, and plots of the time of each load.

use std::fmt::Write as _;
// FS: the files of the report.
use std::fs;
use std::path::Path;

use tupelo_auxbench::{Benchmark, Load, Open, Report, Run, Store, VariableTimes};

use super::super::head::drawing::{Labels, Plot, Points, to_png};
use super::{identities, machine, tables};
use crate::failure::Failure;
use crate::table::{count, things};
use crate::text::Text;

/// The file of the text.
const REPORT: &str = "report.md";
/// The slowest load of a variable in the published RAuxStore, divided by the median one.
const PUBLISHED_SLOWEST: f64 = 1000.0;

/// The loads of the last run of each store and percentage.
#[derive(Debug, Default)]
pub(super) struct LastRuns(Vec<(Store, f64, Vec<Load>)>);

impl LastRuns {
    pub(super) fn keep(&mut self, run: &Run, loads: &[Load]) {
        self.0.push((run.store, run.percentage, loads.to_vec()));
    }

    /// Draws the time of each load over its entry.
    pub(super) fn draw(&self, folder: &Path) -> Result<(), Failure> {
        for (store, percentage, loads) in &self.0 {
            let entries = loads.iter().map(|load| load.entry as f64).collect();
            let times = loads.iter().map(|load| load.nanoseconds as f64 / 1e3).collect();
            let plot = Plot::Points(Points { places: [entries, times], ..Points::default() });
            let decoded = loads.iter().filter(|load| !load.decoded.is_empty()).count();
            let labels = Labels {
                title: format!("{}, {percentage} % of the variables", store.name()),
                axes: ["entry".to_owned(), "microseconds".to_owned()],
                summary: format!("{}, {} decoded entries", things(loads.len() as u64, "load"), count(decoded as u64)),
            };
            write_file(&folder.join(plot_name(*store, *percentage)), &to_png(&plot, &labels, false))?;
        }
        Ok(())
    }
}

fn plot_name(store: Store, percentage: f64) -> String {
    format!("{}_{percentage}.png", store.name())
}

fn write_file(path: &Path, content: &[u8]) -> Result<(), Failure> {
    fs::write(path, content).map_err(|error| Failure::new(format_args!("cannot write {}: {error}", path.display())))
}

/// Writes the text. Its plots were drawn before.
pub(super) fn write(
    folder: &Path,
    about: &str,
    report: &Report,
    benchmark: &Benchmark<'_>,
    open: &Open<'_>,
) -> Result<(), Failure> {
    let config = &report.config;
    let mut text = format!("# Benchmark of auxiliary stores: {about}\n\n## Results\n\n```text\n");
    text += &tables::print(report, benchmark, Text::new(false)).to_ansi();
    text += "```\n\n## The time of each load\n\n";
    for summary in &report.summaries {
        let (store, percentage) = (summary.store, summary.percentage);
        let name = plot_name(store, percentage);
        if folder.join(&name).exists() {
            _ = writeln!(text, "![{}, {percentage} %, last run]({name})\n", store.name());
        }
    }
    text += "## Beside the published results\n\n";
    published(report, &mut text);
    text += "\n## Machine, files and configuration\n\n";
    for (name, value) in machine() {
        _ = writeln!(text, "- {name}: {value}");
    }
    for (store, identity) in identities(config, open)? {
        _ = writeln!(text, "- {store}: {identity}");
    }
    for warning in &report.warnings {
        _ = writeln!(text, "- {warning}");
    }
    let config = serde_json::to_string_pretty(config).map_err(|error| Failure::new(error.to_string()))?;
    _ = write!(text, "\n```json\n{config}\n```\n");
    write_file(&folder.join(REPORT), text.as_bytes())
}

/// What is known of the published results, with what was found here.
fn published(report: &Report, text: &mut String) {
    *text += "- Values that are loaded. Published: RAuxStore loaded 200 000 instead of 1.1 million values in a process that had \
              not opened the tree before. Here this cannot happen: the stores were opened in both orders, with the same \
              variables.\n";
    let ratio = |it: &VariableTimes| it.slowest.nanoseconds as f64 / it.median.max(1.0);
    let own = report.variables.iter().filter(|it| it.store == Store::Ntuple);
    let worst = own.max_by(|one, other| ratio(one).total_cmp(&ratio(other)));
    let here = match worst {
        Some(it) => format!("Here it is at most {:.0}, that of {} in entry {}", ratio(it), it.name, it.slowest.entry),
        None => "Here it was not measured, as variableTimes is false".to_owned(),
    };
    _ = writeln!(
        text,
        "- The slowest load of a variable in RAuxStore divided by the median one. Published: about {PUBLISHED_SLOWEST}. {here}."
    );
}
