//! What a read would do, without doing it.

use std::collections::HashSet;
use std::fmt;

use tupelo_core::error::printable;
use tupelo_pages::plan::{self, ColumnTable, EntrySet, ReadPlan};
use tupelo_pages::source::{BlobRange, Metadata};
use tupelo_schema::schema::Field;

use crate::Result;

/// Maximum width of an aligned column, in characters. Longer names only shift the rest of their line: they would widen every
/// line, and the standard library panics where it pads to more than 65 535.
const MAX_ALIGNED: usize = 120;

/// What a read would do: the pages, bytes and requests of each column. Made by [`Read::explain`](super::Read::explain)
/// from metadata alone.
///
/// Its `Display` is a table.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// Entries of the range, before a cut, without those that zone maps rule out.
    pub entries: u64,
    /// Entries for which the cut cannot be true, according to zone maps.
    pub ruled_out: u64,
    /// Stored bytes of the zone maps that say so, which are read once for an open file; they are not counted below.
    pub zone_map_bytes: u64,
    /// Clusters that hold them.
    pub clusters: u64,
    /// The columns, those of the cut first, then in the order of the fields.
    pub columns: Vec<ExplainedColumn>,
    /// Requests for the pages of all columns if they are fetched together, adjacent ranges merged as the storage
    /// prefers it. There are more if more than 16 MiB are fetched, which is done in batches, and for a local file,
    /// where each thread reads the pages that it decodes, at most 256 KiB at once.
    pub requests: u64,
}

/// The read of one column.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedColumn {
    /// Dotted path of the field, items of collections being called `_0`.
    pub field: String,
    /// Column type, in the words of the specification; that of the first cluster.
    pub column_type: &'static str,
    /// Whether it is read to decide the cut.
    pub is_cut: bool,
    /// Whether fewer pages may be read: which ones depends on the cut, or on offsets of collections.
    pub is_upper_bound: bool,
    /// Pages.
    pub pages: u64,
    /// Stored bytes of the pages, checksums included.
    pub stored_bytes: u64,
    /// Bytes of the pages once decompressed.
    pub unpacked_bytes: u64,
    /// Requests if only this column were read.
    pub requests: u64,
}

impl ExplainedColumn {
    /// Adds what is read of the same column elsewhere.
    pub(super) fn add(&mut self, other: &Self) {
        self.is_upper_bound |= other.is_upper_bound;
        self.pages += other.pages;
        self.stored_bytes += other.stored_bytes;
        self.unpacked_bytes += other.unpacked_bytes;
        self.requests += other.requests;
    }
}

impl Explanation {
    /// The sum over all columns.
    fn sum(&self, of: impl Fn(&ExplainedColumn) -> u64) -> u64 {
        self.columns.iter().map(of).fold(0, u64::saturating_add)
    }

    /// Pages of all columns.
    pub fn pages(&self) -> u64 {
        self.sum(|column| column.pages)
    }

    /// Stored bytes of the pages of all columns, checksums included.
    pub fn stored_bytes(&self) -> u64 {
        self.sum(|column| column.stored_bytes)
    }

    /// Bytes of the pages of all columns once decompressed.
    pub fn unpacked_bytes(&self) -> u64 {
        self.sum(|column| column.unpacked_bytes)
    }
}

/// What reading entries of an ntuple would do: first the fields that a cut needs, then the others.
pub(super) fn explain(source: &Metadata, cut: &[Field], others: &[Field], entries: &EntrySet) -> Result<Explanation> {
    let segments = &plan::segments(&source.clusters(entries.span())?, entries);
    let hints = source.store().hints();
    let memory = source.request_memory();
    let mut table = ColumnTable::new(source, &memory);
    let mut seen = HashSet::new();
    let (mut columns, mut all) = (Vec::new(), Vec::new());
    for (fields, is_cut) in [(cut, true), (others, false)] {
        let plan = ReadPlan::new(&mut table, fields, segments)?;
        for planned in &plan.columns {
            // Every page counts once, whatever fields share it.
            let (pages, is_unresolved) = planned.at_most(&mut table)?;
            let pages: Vec<_> = pages.into_iter().filter(|(id, _)| seen.insert(*id)).collect();
            let Some(&(first, _)) = pages.first() else { continue };
            let ranges: Vec<BlobRange> = pages.iter().map(|(_, range)| *range).collect();
            let unpacked = |&(id, _): &(plan::PageId, BlobRange)| table.column(id).unpacked_bytes(id.page);
            columns.push(ExplainedColumn {
                field: planned.column.path(source.descriptor()),
                column_type: table.column(first).encoding.column_type().name(),
                is_cut,
                is_upper_bound: is_unresolved || !cut.is_empty() && !is_cut,
                pages: pages.len() as u64,
                stored_bytes: ranges.iter().map(BlobRange::bytes).sum(),
                unpacked_bytes: pages.iter().map(unpacked).sum(),
                requests: plan::requests(hints, &ranges),
            });
            all.extend(ranges);
        }
    }
    let clusters = segments.chunk_by(|a, b| a.cluster.number == b.cluster.number).count() as u64;
    let requests = plan::requests(hints, &all);
    Ok(Explanation { entries: entries.len(), clusters, columns, requests, ..Explanation::default() })
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kib = |bytes: u64| format!("{:.1}", bytes as f64 / 1024.0);
        let about = |column: &ExplainedColumn| if column.is_upper_bound { "≤" } else { "" };
        let header = ["FIELD", "TYPE", "STEP", "PAGES", "STORED KiB", "UNPACKED KiB", "REQUESTS"].map(str::to_owned);
        let row = |column: &ExplainedColumn| {
            let at_most = |text: String| format!("{}{text}", about(column));
            [
                printable(&column.field).to_string(),
                column.column_type.to_owned(),
                if column.is_cut { "cut" } else { "read" }.to_owned(),
                at_most(column.pages.to_string()),
                at_most(kib(column.stored_bytes)),
                at_most(kib(column.unpacked_bytes)),
                at_most(column.requests.to_string()),
            ]
        };
        let bound = if self.columns.iter().any(|column| column.is_upper_bound) { "≤" } else { "" };
        let totals = [self.pages().to_string(), kib(self.stored_bytes()), kib(self.unpacked_bytes())];
        let [pages, stored, unpacked] = totals.map(|total| format!("{bound}{total}"));
        let requests = format!("{bound}{}", self.requests);
        let total = ["total".to_owned(), String::new(), String::new(), pages, stored, unpacked, requests];
        let rows: Vec<[String; 7]> = [header].into_iter().chain(self.columns.iter().map(row)).chain([total]).collect();
        let widths = [0, 1, 2, 3, 4, 5, 6].map(|k| {
            let cells = rows.iter().map(|row| row[k].chars().count());
            cells.filter(|&cell| cell <= MAX_ALIGNED).max().unwrap_or(0)
        });
        let (entries, clusters) = (self.entries, self.clusters);
        let plural = |count: u64, one, many| if count == 1 { one } else { many };
        let (entry_noun, cluster_noun) = (plural(entries, "entry", "entries"), plural(clusters, "cluster", "clusters"));
        write!(f, "{entries} {entry_noun} in {clusters} {cluster_noun}")?;
        if self.zone_map_bytes > 0 || self.ruled_out > 0 {
            let (count, noun) = (self.ruled_out, plural(self.ruled_out, "entry", "entries"));
            write!(f, "; zone maps rule out {count} {noun}, and take {} KiB", kib(self.zone_map_bytes))?;
        }
        writeln!(f)?;
        for row in &rows {
            let cell = |(k, text): (usize, &String)| {
                let width = widths[k];
                if k < 3 { format!("{text:<width$}") } else { format!("{text:>width$}") }
            };
            let line = row.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ");
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: the standard library panics where it pads to more than 65 535 characters.
    #[test]
    fn a_long_name_neither_panics_nor_widens_other_lines() {
        let column = |field: &str| ExplainedColumn {
            field: field.to_owned(),
            column_type: "Real64",
            is_cut: false,
            is_upper_bound: false,
            pages: 1,
            stored_bytes: 8,
            unpacked_bytes: 8,
            requests: 1,
        };
        let columns = vec![column(&"x".repeat(70_000)), column("short")];
        let text = Explanation { entries: 1, clusters: 1, columns, requests: 2, ..Explanation::default() }.to_string();
        assert!(text.contains(&"x".repeat(70_000)));
        assert!(text.lines().filter(|line| line.len() > 200).count() == 1, "{}", text.len());
    }
}
