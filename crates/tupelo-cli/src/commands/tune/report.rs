//! A recommendation as text.

use tupelo::ops::cost::Container;
use tupelo::ops::tune::{Candidate, Link, PageSettings, StoreModel, Trial};
use tupelo::writer::format_bytes;

use super::cost::{dollars, times};
use super::{By, Found, Goal};
use crate::console::Console;
use crate::failure::Failure;
use crate::table::{Cell, Table, bytes, count, things};
use crate::text::BOLD;

pub(super) fn print(found: &Found<'_>, goal: &Goal<'_>, console: &Console) -> Result<(), Failure> {
    let Found { chosen, new, present_best, .. } = *found;
    let entries = found.table.entries();
    let mut text = console.text();
    compared(&goal.summary(found.candidates, present_best), chosen, goal).add_to(&mut text);
    text.end_line().add("Recommended: ").add(sentence(chosen)).end_line();
    if let Some(new) = new.filter(|new| !std::ptr::eq(*new, chosen)) {
        text.add("Best of the new pages: ").add(sentence(new)).end_line();
    }
    text.add("An entry: ").add(entry_sizes(chosen, entries)).end_line();
    text.add(&found.command).end_line();
    console.print(&text)?;
    notes(found, goal, console);
    if let Some(present) = present_best.filter(|present| !std::ptr::eq(*present, chosen)) {
        let (old, new) = (goal.value(present), goal.value(chosen));
        let what = match goal.args.by {
            By::Time => "time",
            By::Cpu => "CPU time",
            By::Money => "money",
            By::Size => "size",
        };
        console.note(&format!("{what} of the existing pages: {:.2} times as much", old / new.max(f64::MIN_POSITIVE)));
        console.note(&format!("an entry of the existing pages: {}", entry_sizes(present, entries)));
    }
    Ok(())
}

/// The codec of a candidate; `as it is` for the existing pages.
pub(super) fn codec(candidate: &Candidate) -> String {
    candidate.layout.map_or_else(|| "as it is".to_owned(), |layout| layout.compression.to_string())
}

/// Bytes of an entry before and after compression, and with metadata.
pub(super) fn entry_bytes(candidate: &Candidate, entries: u64) -> [f64; 3] {
    let all = [candidate.sizes.unpacked_bytes, candidate.sizes.stored_bytes, candidate.cost.bytes];
    all.map(|bytes| bytes as f64 / entries.max(1) as f64)
}

fn entry_sizes(candidate: &Candidate, entries: u64) -> String {
    let [unpacked, stored, with_metadata] = entry_bytes(candidate, entries);
    format!("{unpacked:.1} B before compression, {stored:.1} B stored, {with_metadata:.1} B with metadata")
}

fn compared(lines: &[&Candidate], chosen: &Candidate, goal: &Goal<'_>) -> Table {
    let has_files = lines.iter().any(|line| line.cost.container.mapping().is_none());
    let heads = [
        "CODEC",
        ">PAGES",
        ">CLUSTERS",
        if has_files { "INTO" } else { "MAPPING" },
        ">SIZE",
        ">WRITE",
        ">READ",
        ">READ REQUESTS",
        ">TAKE",
        ">SUM CPU",
        ">SUM TIME",
        ">SUM $",
    ];
    let mut table = Table::new(&heads);
    for candidate in lines {
        let container = candidate.cost.container;
        let or_dash =
            |of: &dyn Fn(&PageSettings) -> String| candidate.layout.as_ref().map_or_else(|| "-".to_owned(), of);
        let clusters = |layout: &PageSettings| match container {
            Container::Tree => things(layout.cluster_entries, "entry"),
            _ => format_bytes(layout.cluster_bytes),
        };
        let cells = [
            codec(candidate),
            or_dash(&|layout| format_bytes(layout.page_bytes)),
            or_dash(&clusters),
            container.to_string(),
            bytes(candidate.cost.bytes),
            time(candidate.write.seconds()),
            time(candidate.read.seconds()),
            count(candidate.cost.read_requests),
            candidate.take.phase.map_or_else(|| "-".to_owned(), |phase| time(phase.seconds())),
            time(candidate.core_seconds(goal.usage)),
            time(candidate.seconds(goal.usage)),
            dollars(goal.dollars(candidate)[2]),
        ];
        let is_chosen = std::ptr::eq(*candidate, chosen);
        table.line(cells.map(|cell| if is_chosen { Cell::styled(BOLD, &cell) } else { Cell::from(cell) }));
    }
    table
}

/// The recommendation in words.
fn sentence(chosen: &Candidate) -> String {
    let (container, clusters) = (chosen.cost.container, things(chosen.clusters, "cluster"));
    let into = match container {
        Container::Objects(mapping) => format!("mapping {mapping}"),
        Container::File => "an ntuple in a file".to_owned(),
        Container::Tree => "a tree in a file".to_owned(),
    };
    let layout = match (chosen.layout, container) {
        (None, Container::Tree) => "the existing baskets".to_owned(),
        (None, _) => "the existing pages".to_owned(),
        (Some(PageSettings { compression, page_bytes, cluster_entries, .. }), Container::Tree) => {
            let (baskets, entries) = (format_bytes(page_bytes), things(cluster_entries, "entry"));
            format!("{compression}, baskets of {baskets}, clusters of {entries}")
        }
        (Some(PageSettings { compression, page_bytes, cluster_bytes, .. }), _) => {
            let (pages, clusters) = (format_bytes(page_bytes), format_bytes(cluster_bytes));
            format!("{compression}, pages of {pages}, clusters of {clusters}")
        }
    };
    let limits = (chosen.write.limit(), chosen.read.limit());
    format!("{layout}, {into}; {clusters}; writing is limited by {}, reading by {}.", limits.0, limits.1)
}

/// What was measured and assumed.
fn notes(found: &Found<'_>, goal: &Goal<'_>, console: &Console) {
    let Found { measured, speed, cores, date, .. } = found;
    let Goal { args, store, price, usage } = goal;
    console.note(&format!(
        "sample: {} of {}, {} before compression; times are for {}",
        count(measured.sample_entries()),
        things(found.table.entries(), "entry"),
        bytes(measured.trials().first().map_or(0, Trial::unpacked_bytes)),
        things(*cores as u64, "core")
    ));
    let StoreModel { get, put, .. } = speed.store;
    let link = |link: Link| format!("{}, {}/s", time(link.latency_seconds), bytes(link.bytes_per_second as u64));
    let links = if get == put { link(get) } else { format!("read {}; write {}", link(get), link(put)) };
    console.note(&match (speed.origin, speed.source.as_str()) {
        ("assumed", source) => {
            let given = match (&args.latency, &args.bandwidth) {
                (Some(_), _) => "latency given, bandwidth ",
                (_, Some(_)) => "bandwidth given, latency ",
                _ => "",
            };
            format!("{store}: {links}; {given}assumed, from {source}")
        }
        ("measured", source) => format!("{source}: {links}; measured"),
        (origin, _) => format!("{store}: {links}; {origin}"),
    });
    let writes = if usage.writes == 1 { String::new() } else { times(usage.writes, "write") + ", " };
    let months = if args.months == 1.0 { "one month".to_owned() } else { format!("{} months", args.months) };
    let reads = times(usage.reads, "read");
    console.note(&format!("{store}, {writes}{reads}, {months}; prices of {date}, {}", price.source));
}

/// A time with three digits: `1.20 ms`, `45.1 s`, `2.50 h`.
fn time(seconds: f64) -> String {
    let (value, unit) = match seconds {
        _ if seconds < 0.000_999_5 => (seconds * 1e6, "µs"),
        _ if seconds < 0.999_5 => (seconds * 1e3, "ms"),
        _ if seconds < 119.95 => (seconds, "s"),
        _ if seconds < 7197.0 => (seconds / 60.0, "min"),
        _ => (seconds / 3600.0, "h"),
    };
    let digits = match value {
        _ if value >= 99.95 => 0,
        _ if value >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let times = [0.0, 12.3e-6, 0.0301, 0.9999, 9.999, 100.0, 600.0, 7200.0, 1e6];
        let expected = ["0.00 µs", "12.3 µs", "30.1 ms", "1.00 s", "10.0 s", "100 s", "10.0 min", "2.00 h", "278 h"];
        assert_eq!(times.map(time), expected);
    }
}
