//! The report as text.

use anstyle::Style;
use tupelo::ops::inspect::{AttributeSetReport, ColumnReport, FieldReport, Group, Level, Report, Spread, Store};

use super::super::head::drawing::{Bars, Space, named_bars};
use super::super::ls::note;
use super::Inspected;
use crate::table::{Table, bytes, count, ratio, share, things};
use crate::text::{BOLD, CYAN, RED, Text, YELLOW};

/// How many fields and columns are listed.
const LISTED: usize = 20;

pub(super) fn add(inspected: &Inspected, all: bool, text: &mut Text) {
    let report = &inspected.report;
    let words = Words::of(report);
    add_summary(report, &words, text);
    if let Some(query) = &inspected.query {
        let (pages, stored) = (things(query.pages(), words.page), bytes(query.stored_bytes()));
        let bound = if query.columns.iter().any(|column| column.is_upper_bound) { "at most " } else { "" };
        text.styled(BOLD, "Query     ").add(format!(
            "{}: {bound}{stored} ({} unpacked) in {pages}, {}",
            things(query.entries, "entry"),
            bytes(query.unpacked_bytes()),
            things(query.requests, "request"),
        ));
        text.end_line();
    }
    let most = if all { usize::MAX } else { LISTED };
    add_fields(report, &words, most, text);
    add_columns(report, &words, most, text);
    add_groups("TYPE", &report.column_types, &words, text);
    add_groups("CODEC", &report.codecs, &words, text);
    if let Some((title, bars)) = page_sizes(report, &words) {
        bars.add_to(&title, false, Space::of_terminal(), text.end_line());
    }
    add_advice(report, text);
}

/// The numbers of pages by their stored bytes, with a title; `None` without pages.
pub(in super::super) fn page_sizes(report: &Report, words: &Words) -> Option<(String, Bars)> {
    let names = report.page_sizes.iter().map(|bin| bytes(bin.from_bytes)).collect();
    let values = report.page_sizes.iter().map(|bin| bin.pages as f64).collect();
    let title = format!("{}s by stored size, from", capital(words.page));
    (!report.page_sizes.is_empty()).then(|| (title, named_bars(names, values)))
}

/// What parts are called.
pub(in super::super) struct Words {
    pub(in super::super) page: &'static str,
    pub(in super::super) column: &'static str,
    pub(in super::super) pages: &'static str,
    columns: &'static str,
    pub(in super::super) head: &'static str,
}

impl Words {
    pub(in super::super) fn of(report: &Report) -> Self {
        match report.format_version.is_empty() {
            true => Self { page: "basket", column: "branch", pages: ">BASKETS", columns: ">BRANCHES", head: "BRANCH" },
            false => Self { page: "page", column: "column", pages: ">PAGES", columns: ">COLUMNS", head: "COLUMN" },
        }
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn spread(spread: Option<Spread>, show: impl Fn(u64) -> String) -> String {
    match spread {
        None => String::new(),
        Some(Spread { smallest, largest, .. }) if smallest == largest => show(smallest),
        Some(Spread { smallest, median, largest }) => {
            format!("{} to {}, median {}", show(smallest), show(largest), show(median))
        }
    }
}

fn add_summary(report: &Report, words: &Words, text: &mut Text) {
    text.styled(BOLD, format!("{}:{}", report.file, report.name)).add(format!(
        "  {}, {} in {}, {}",
        report.class,
        things(report.entries, "entry"),
        things(report.fields.len() as u64, "field"),
        plural(report.columns.len() as u64, words.column),
    ));
    text.end_line();
    for (name, what) in summary(report, words) {
        text.styled(BOLD, format!("{name:<10}")).add(what).end_line();
    }
}

/// The sums, each with its name.
pub(in super::super) fn summary(report: &Report, words: &Words) -> Vec<(String, String)> {
    let sums = &report.bytes;
    let mut pages = format!(
        "{}: {} stored, {} unpacked, ratio {:.2}",
        things(report.pages, words.page),
        bytes(sums.stored_bytes),
        bytes(sums.unpacked_bytes),
        report.ratio
    );
    let shared: u64 = report.columns.iter().map(|column| column.shared_pages).sum();
    if shared > 0 {
        pages += &format!("; {} more are pages of other columns", count(shared));
    }
    let parts = [
        ("header", sums.header_bytes),
        ("footer", sums.footer_bytes),
        ("page lists", sums.page_list_bytes),
        ("record", sums.record_bytes),
        ("anchor", sums.other_metadata_bytes),
    ];
    let parts: Vec<_> =
        parts.iter().filter(|(_, size)| *size > 0).map(|(name, size)| format!("{name} {}", bytes(*size))).collect();
    let metadata = format!("{} ({})", bytes(sums.metadata_bytes), parts.join(", "));
    let entry = format!("{:.1} B stored, {:.1} B with metadata", report.entry_bytes, report.entry_bytes_with_metadata);
    let mut lines = vec![(format!("{}s", capital(words.page)), pages), ("Metadata".to_owned(), metadata)];
    if report.entries > 0 {
        lines.push(("An entry".to_owned(), entry));
    }
    let clusters = &report.clusters;
    if clusters.count > 0 {
        let what = format!(
            "{}; entries: {}; stored: {}",
            count(clusters.count),
            spread(clusters.entries, count),
            spread(clusters.stored_bytes, bytes)
        );
        lines.push(("Clusters".to_owned(), what));
    }
    lines.extend(report.attribute_sets.iter().map(attribute_set));
    let mut file = sums.file_bytes.map_or_else(String::new, bytes);
    if let Some(free) = sums.free_bytes.filter(|&free| free > 0) {
        file += &format!(", {} of it free", bytes(free));
    }
    if report.store == Store::Remote {
        file += ", on a server";
    }
    if !file.is_empty() {
        lines.push(("File".to_owned(), file.trim_start_matches(", ").to_owned()));
    }
    lines
}

fn attribute_set(set: &AttributeSetReport) -> (String, String) {
    let what = match &set.unreadable {
        Some(reason) => format!("unreadable: {reason}"),
        None => format!(
            "{}, {} stored, metadata {}",
            things(set.entries, "entry"),
            bytes(set.stored_bytes),
            bytes(set.metadata_bytes)
        ),
    };
    // Printed one after the other, they are one phrase.
    ("Attribute".to_owned(), format!("set {}: {what}", set.name))
}

fn plural(number: u64, one: &str) -> String {
    match (number, one) {
        (1, _) => format!("1 {one}"),
        (_, "branch") => format!("{} branches", count(number)),
        _ => things(number, one),
    }
}

/// The largest items, and the number of the others.
fn largest<T>(items: &[T], most: usize, stored: impl Fn(&T) -> u64) -> (Vec<&T>, usize) {
    let mut sorted: Vec<&T> = items.iter().collect();
    sorted.sort_by_key(|item| std::cmp::Reverse(stored(item)));
    let more = sorted.len().saturating_sub(most);
    sorted.truncate(most);
    (sorted, more)
}

fn add_table(table: &Table, more: usize, text: &mut Text) {
    table.add_below(text);
    if more > 0 {
        text.add(format!("and {} smaller (--all lists them)", count(more as u64))).end_line();
    }
}

fn add_fields(report: &Report, words: &Words, most: usize, text: &mut Text) {
    let (fields, more) = largest(&report.fields, most, |field: &FieldReport| field.stored_bytes);
    let mut table =
        Table::new(&["FIELD", "TYPE", words.columns, words.pages, ">UNPACKED", ">STORED", ">RATIO", ">SHARE", ""]);
    for field in fields {
        table.line([
            field.name.clone(),
            field.type_name.clone(),
            count(field.columns),
            count(field.pages),
            bytes(field.unpacked_bytes),
            bytes(field.stored_bytes),
            ratio(field.unpacked_bytes, field.stored_bytes),
            share(field.stored_bytes, report.bytes.stored_bytes),
            note(field.unreadable.as_deref(), field.projected_from.as_deref()),
        ]);
    }
    add_table(&table, more, text);
}

fn add_columns(report: &Report, words: &Words, most: usize, text: &mut Text) {
    let (columns, more) = largest(&report.columns, most, |column: &ColumnReport| column.stored_bytes);
    let mut table = Table::new(&[
        words.head,
        "STORED AS",
        ">BITS",
        "CODEC",
        words.pages,
        ">ELEMENTS",
        ">UNPACKED",
        ">STORED",
        ">RATIO",
        ">SMALLEST",
        ">MEDIAN",
        ">LARGEST",
    ]);
    for column in columns {
        let size = |of: fn(&Spread) -> u64| column.page_bytes.as_ref().map_or_else(String::new, |it| bytes(of(it)));
        table.line([
            column.path.clone(),
            column.column_type.clone(),
            if column.bits == 0 { String::new() } else { column.bits.to_string() },
            column.codec.clone(),
            count(column.pages),
            count(column.elements),
            bytes(column.unpacked_bytes),
            bytes(column.stored_bytes),
            format!("{:.2}", column.ratio()),
            size(|it| it.smallest),
            size(|it| it.median),
            size(|it| it.largest),
        ]);
    }
    add_table(&table, more, text);
}

fn add_groups(head: &'static str, groups: &[Group], words: &Words, text: &mut Text) {
    let mut table = Table::new(&[head, words.columns, words.pages, ">UNPACKED", ">STORED", ">RATIO"]);
    for group in groups {
        table.line([
            group.name.clone(),
            count(group.columns),
            count(group.pages),
            bytes(group.unpacked_bytes),
            bytes(group.stored_bytes),
            ratio(group.unpacked_bytes, group.stored_bytes),
        ]);
    }
    add_table(&table, 0, text);
}

fn add_advice(report: &Report, text: &mut Text) {
    text.end_line().styled(BOLD, "Advice").end_line();
    if report.advice.is_empty() {
        text.add("none: sizes and codecs are good").end_line();
    }
    for advice in &report.advice {
        let (level, style) = level(advice.level);
        text.styled(style, format!("{level:<6}")).add("  ").add(&advice.what).end_line();
        text.add("        ").add(format!("{} [{}]", advice.why, advice.source)).end_line();
        text.add("        ").add(&advice.how).end_line();
    }
}

/// The name of a level and its style.
pub(in super::super) fn level(level: Level) -> (&'static str, Style) {
    match level {
        Level::High => ("high", RED),
        Level::Medium => ("medium", YELLOW),
        _ => ("low", CYAN),
    }
}
