//! The tables of `tupelo auxbench`.

use tupelo_auxbench::{Benchmark, Compared, Explained, Report, Run, Summary, VariableTimes};

use crate::table::{Table, bytes, count, things};
use crate::text::{BOLD, Text};

/// Lines of the table of variables.
const VARIABLES: usize = 10;

/// All tables.
pub(super) fn print(report: &Report, benchmark: &Benchmark<'_>, mut text: Text) -> Text {
    let (stores, entries) = benchmark.size();
    for percentage in &report.config.percentages {
        let own: Vec<&Summary> = report.summaries.iter().filter(|it| it.percentage == *percentage).collect();
        let variables = things(benchmark.variables(*percentage) as u64, "variable");
        let stores = things(stores as u64, "store");
        text.styled(BOLD, format!("{percentage}%"))
            .add(format!(": {variables} of {stores}, {}", things(entries as u64, "entry")))
            .end_line();
        published(&own).add_to(&mut text);
        loads(&own, report).add_below(&mut text);
        for summary in &own {
            explained(summary, &mut text);
        }
        text.end_line();
    }
    if !report.variables.is_empty() {
        variables(report).add_to(&mut text);
    }
    compared(&report.compared, &mut text);
    text.add(format!("Reading the clock adds {:.0} ns to each load.", report.clock_nanoseconds)).end_line();
    text
}

/// The table with the published columns, in milliseconds.
fn published(own: &[&Summary]) -> Table {
    let mut table =
        Table::new(&["store", ">mean (ms)", ">run 1", ">other runs", ">median", ">95 % interval", ">values"]);
    let ms = |seconds: f64| format!("{:.3}", seconds * 1e3);
    let dash = || "-".to_owned();
    for summary in own {
        table.line([
            summary.store.name().to_owned(),
            ms(summary.mean),
            ms(summary.first),
            summary.others.map_or_else(dash, ms),
            ms(summary.median.median),
            summary.median.interval.map_or_else(dash, |[low, high]| format!("{}..{}", ms(low), ms(high))),
            count(summary.values),
        ]);
    }
    if let [ntuple, tree] = own {
        let times = |of: &Summary| [Some(of.mean), Some(of.first), of.others, Some(of.median.median)];
        let pairs = times(ntuple).into_iter().zip(times(tree)).map(|(ntuple, tree)| Some((ntuple?, tree?)));
        let cells = |show: &dyn Fn((f64, f64)) -> String| pairs.clone().map(|it| it.map_or_else(dash, show)).collect();
        let line = |name: &str, cells: Vec<String>| std::iter::once(name.to_owned()).chain(cells).collect::<Vec<_>>();
        table.line(line("difference", cells(&|(ntuple, tree)| ms(ntuple - tree))));
        table.line(line("ratio", cells(&|(ntuple, tree)| format!("{:.3}", ntuple / tree))));
    }
    table
}

/// Times of single loads, in microseconds.
fn loads(own: &[&Summary], report: &Report) -> Table {
    let mut table =
        Table::new(&["load", ">mean (µs)", ">without named", ">median", ">slowest", ">slowest / median", ">its entry"]);
    let us = |nanoseconds: f64| format!("{:.2}", nanoseconds / 1e3);
    for summary in own {
        let runs = || report.runs.iter().filter(|it| it.store == summary.store && it.percentage == summary.percentage);
        let mean = |of: &dyn Fn(&Run) -> Option<f64>| {
            let values: Vec<f64> = runs().filter_map(of).collect();
            (!values.is_empty()).then(|| us(values.iter().sum::<f64>() / values.len() as f64))
        };
        let slowest = summary.slow.loads.first();
        table.line([
            summary.store.name().to_owned(),
            mean(&|run| Some(run.mean)).unwrap_or_default(),
            mean(&|run| run.mean_without_named).unwrap_or_else(|| "-".to_owned()),
            us(summary.median_load),
            us(slowest.map_or(0.0, |load| load.nanoseconds as f64)),
            format!("{:.0}", summary.slowest_to_median),
            slowest.map_or_else(|| "-".to_owned(), |load| count(load.entry)),
        ]);
    }
    table
}

/// What the slow loads have in common, and runs that depart from the others.
fn explained(summary: &Summary, text: &mut Text) {
    let slow = &summary.slow;
    let name = summary.store.name();
    if !summary.outliers.is_empty() {
        let runs: Vec<String> = summary.outliers.iter().map(usize::to_string).collect();
        text.add(format!("{name}: runs that depart from the median: {}", runs.join(", "))).end_line();
    }
    let all = things(slow.loads.len() as u64, "load");
    text.add(format!("{name}: in {} of the slowest {all} entries were decoded", slow.decoded)).end_line();
    if let Some(Explained { load, stores, pages, unpacked_bytes, fields, .. }) = &slow.explained {
        let entries = load.decoded_entries().unwrap_or_default();
        let fields: Vec<String> = fields.iter().map(|(name, size)| format!("{name} {}", bytes(*size))).collect();
        let of = match &stores[..] {
            [store] => store.clone(),
            all => things(all.len() as u64, "store"),
        };
        let pages = format!("{} with {}", things(*pages, "page"), bytes(*unpacked_bytes));
        let what = format!("entries {}..{} of {of}, {pages}", entries.start, entries.end);
        text.add(format!("  entry {} decoded {what}, most of them {}", load.entry, fields.join(", "))).end_line();
    }
    let last = slow.clusters.iter().flatten().max().map_or(0, |last| last + 1);
    for cluster in 0..last {
        let own =
            || slow.loads.iter().zip(&slow.clusters).filter(|(_, it)| **it == Some(cluster)).map(|(load, _)| load);
        let times = || own().map(|load| load.nanoseconds as f64 / 1e3);
        let (low, high) = times().fold((f64::MAX, 0.0_f64), |(low, high), time| (low.min(time), high.max(time)));
        let entries: Vec<String> = own().take(8).map(|load| load.entry.to_string()).collect();
        let more = if own().count() > 8 { ", …" } else { "" };
        let loads = things(own().count() as u64, "load");
        text.add(format!("  {loads} of {low:.0} to {high:.0} µs: entries {}{more}", entries.join(", "))).end_line();
    }
}

/// The variables with the greatest ratio of their slowest load to their median one.
fn variables(report: &Report) -> Table {
    let mut table =
        Table::new(&["variable", "store", ">median (ns)", ">slowest", ">slowest / median", ">its entry", "type"]);
    let ratio = |it: &VariableTimes| it.slowest.nanoseconds as f64 / it.median.max(1.0);
    let mut worst: Vec<&VariableTimes> = report.variables.iter().collect();
    worst.sort_by(|a, b| ratio(b).total_cmp(&ratio(a)));
    for it in worst.into_iter().take(VARIABLES) {
        table.line([
            it.name.clone(),
            it.store.name().to_owned(),
            format!("{:.0}", it.median),
            count(it.slowest.nanoseconds),
            format!("{:.0}", ratio(it)),
            count(it.slowest.entry),
            it.type_name.clone(),
        ]);
    }
    table
}

fn compared(compared: &Compared, text: &mut Text) {
    let variables = things(compared.variables as u64, "variable");
    let values = count(compared.values);
    let line = match (compared.digests.len(), compared.differing.len()) {
        (1, _) => format!("{variables} with {values} values, digest {}", compared.digests[0].1),
        (_, 0) => format!("{variables} with {values} values are the same over ntuple and tree"),
        (_, differing) => format!("{differing} of {variables} differ between ntuple and tree"),
    };
    text.add(line).end_line();
    for name in &compared.not_compared {
        text.add(format!("not compared: {name}")).end_line();
    }
}
