//! What could be better in an ntuple or tree, with the reason, from its report.
//!
//! The thresholds are the constants of this module; `source` of an advice says where its fact is from.

use std::collections::HashSet;

use super::report::{Advice, ColumnReport, Level, Report, Sampled, Spread, Store};
use crate::writer::{DEFAULT_CLUSTER_BYTES, DEFAULT_PAGE_BYTES};

/// Below this, before compression, a page costs more to find, check and unpack than to read: pages below 8 KiB are always
/// decoded, even where the same offsets were decoded before (docs/internals/performance.md).
const SMALL_PAGE_BYTES: u64 = 8 << 10;
/// A column has small pages by choice, and not because its clusters are small, where a cluster has at least so many of them.
const MIN_PAGES_PER_CLUSTER: f64 = 2.0;
/// On a server, a column should have this many bytes in each cluster: at a latency of 30 ms, requests of 64 KiB
/// bring 2 MiB/s each. Throughput is level from 16 MiB on (docs/internals/performance.md, studies of object stores).
const SMALL_GROUP_BYTES: u64 = 64 << 10;
/// Clusters are small if they have less than this part of what ROOT and Tupelo write by default.
const SMALL_CLUSTER_PART: u64 = 16;
/// ROOT's default cluster of a tree (`TTree::SetAutoFlush(-30000000)`).
const TREE_CLUSTER_BYTES: u64 = 30_000_000;
/// ROOT's limit of a cluster before compression (`RNTupleWriteOptions::SetMaxUnzippedClusterSize`).
const LARGE_CLUSTER_BYTES: u64 = 1280 << 20;
/// Whole ntuples and trees below this size are read in one request, whatever their pages are.
const SMALL_OBJECT_BYTES: u64 = 8 << 10;
/// Advice on a codec needs this part of all stored bytes.
const CODEC_PART: f64 = 0.1;
/// An uncompressed column is large from this size and this part of all stored bytes on.
const LARGE_COLUMN_BYTES: u64 = 1 << 20;
const LARGE_COLUMN_PART: f64 = 0.05;
/// Columns that compress so well may have only one value.
const CONSTANT_RATIO: f64 = 100.0;
/// … if there are this many bytes of them.
const CONSTANT_BYTES: u64 = 64 << 10;
/// Metadata are large from this part of the pages and this size on.
const METADATA_PART: f64 = 0.1;
const METADATA_BYTES: u64 = 64 << 10;
/// Free space counts from this part of the file and this size on.
const FREE_PART: f64 = 0.05;
const FREE_BYTES: u64 = 64 << 10;
/// Pages are too many for their entries if there are at least so many, and one for each entry.
const MANY_PAGES: u64 = 100;
/// Size from which a tree is worth importing.
const TREE_BYTES: u64 = 1 << 20;
/// How many columns an advice names.
const NAMED: usize = 5;

const PERFORMANCE: &str = "docs/internals/performance.md";

/// All advice on a report, most important first.
pub(super) fn of(report: &Report) -> Vec<Advice> {
    let rules = [
        small_pages,
        small_requests,
        small_clusters,
        large_clusters,
        slow_codec,
        uncompressed,
        nearly_constant,
        many_pages,
        without_checksums,
        free_space,
        large_metadata,
        is_tree,
    ];
    sorted(rules.iter().filter_map(|rule| rule(report)).map(|advice| with_names(advice, report)).collect())
}

/// Commands with the names of the file and the object.
fn with_names(advice: Advice, report: &Report) -> Advice {
    let Report { file, name, .. } = report;
    let parts: Vec<String> =
        advice.how.split("FILE:NAME").map(|part| part.replace("FILE", &quoted_word(file))).collect();
    Advice { how: parts.join(&quoted_word(&format!("{file}:{name}"))), ..advice }
}

/// A word of a command, in quotes where a shell needs them.
/// ```
/// use tupelo::ops::inspect::quoted_word;
///
/// assert_eq!(quoted_word("a/b.root:Events"), "a/b.root:Events");
/// assert_eq!(quoted_word("two words"), "'two words'");
/// ```
pub fn quoted_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:+=,@%-".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Adds what values say to what metadata say.
pub(super) fn with_sample(known: Vec<Advice>, report: &Report, sampled: &Sampled) -> Vec<Advice> {
    // Values are known now.
    let kept = known.into_iter().filter(|advice| advice.rule != NEARLY_CONSTANT);
    let more = [never_varies(report, sampled), fits_float(report, sampled)].into_iter().flatten();
    sorted(kept.chain(more.map(|advice| with_names(advice, report))).collect())
}

fn sorted(mut all: Vec<Advice>) -> Vec<Advice> {
    all.sort_by_key(|advice| advice.level);
    all
}

fn is_tree_report(report: &Report) -> bool {
    report.format_version.is_empty()
}

/// Pages and baskets by their names.
fn page(report: &Report) -> &'static str {
    if is_tree_report(report) { "basket" } else { "page" }
}

fn column(report: &Report) -> &'static str {
    if is_tree_report(report) { "branch" } else { "column" }
}

fn columns(report: &Report) -> &'static str {
    if is_tree_report(report) { "branches" } else { "columns" }
}

/// A command that writes the object with other sizes.
fn copy(options: &str) -> String {
    format!("tupelo copy FILE:NAME NEW.root {options}")
}

/// Bytes for people: three digits and a unit.
fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1000.0 {
            let digits = if unit == "B" || value >= 100.0 { 0 } else { 1 };
            return format!("{value:.digits$} {unit}");
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}

/// `1 page`, `2 pages`.
fn things(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn percent(part: u64, of: u64) -> String {
    format!("{:.0} %", part as f64 * 100.0 / of.max(1) as f64)
}

/// The largest columns by the names that commands take.
fn names(mut columns: Vec<&ColumnReport>) -> String {
    columns.sort_by_key(|column| std::cmp::Reverse(column.unpacked_bytes));
    let mut seen = HashSet::new();
    let selector = |path: &str| path.split('.').filter(|part| *part != "_0").collect::<Vec<_>>().join(".");
    let paths = columns.iter().map(|column| selector(&column.path));
    // A field may have several columns.
    let paths: Vec<String> = paths.filter(|path| seen.insert(path.clone())).collect();
    let more = paths.len().saturating_sub(NAMED);
    let named = paths[..paths.len().min(NAMED)].join(", ");
    if more > 0 { format!("{named} and {more} more") } else { named }
}

/// Bytes before compression of the page in the middle, if all pages of a column have the same size.
fn median_page(report: &Report) -> u64 {
    let own = |column: &ColumnReport| column.pages - column.shared_pages;
    let columns = report.columns.iter().filter(|column| own(column) > 0);
    let mut sizes: Vec<(u64, u64)> = columns.map(|column| (column.unpacked_bytes / own(column), own(column))).collect();
    sizes.sort_unstable();
    let mut seen = 0;
    for (bytes, pages) in sizes {
        seen += pages;
        if seen * 2 >= report.pages {
            return bytes;
        }
    }
    0
}

/// Columns that have pages, in each cluster.
fn groups(report: &Report) -> u64 {
    let columns = report.columns.iter().filter(|column| column.page_bytes.is_some()).count() as u64;
    columns.saturating_mul(report.clusters.count).max(1)
}

fn small_pages(report: &Report) -> Option<Advice> {
    let (median, per_group) = (median_page(report), report.pages as f64 / groups(report) as f64);
    let is_small = report.bytes.stored_bytes < SMALL_OBJECT_BYTES;
    if is_small || median >= SMALL_PAGE_BYTES || per_group < MIN_PAGES_PER_CLUSTER {
        return None;
    }
    let (page, column) = (page(report), column(report));
    Some(Advice {
        rule: "small-pages",
        level: if report.store == Store::Remote { Level::High } else { Level::Medium },
        what: format!(
            "Half of the {} {page}s have at most {} before compression; a {column} has {per_group:.0} in each cluster.",
            report.pages,
            size(median)
        ),
        why: format!(
            "Each {page} has a place in the metadata and is found, checked and unpacked separately; small ones also compress less."
        ),
        how: match is_tree_report(report) {
            true => copy("--basket-bytes 256KiB"),
            false => {
                copy(&format!("--page-bytes {} --compression zstd:5", size(DEFAULT_PAGE_BYTES).replace(".0 ", "")))
            }
        },
        source: PERFORMANCE,
    })
}

fn small_requests(report: &Report) -> Option<Advice> {
    let bytes = report.bytes.stored_bytes / groups(report);
    let is_small = report.bytes.stored_bytes < SMALL_OBJECT_BYTES;
    if report.store == Store::Local || report.clusters.count < 2 || bytes >= SMALL_GROUP_BYTES || is_small {
        return None;
    }
    let columns = columns(report);
    Some(Advice {
        rule: "small-requests",
        level: Level::High,
        what: format!("A cluster has {} of a {} on average, and the file is on a server.", size(bytes), column(report)),
        why: format!(
            "Reading a few {columns} takes one request for each in each cluster. At a latency of 30 ms, requests of {} bring at most {} per second each.",
            size(SMALL_GROUP_BYTES),
            size(SMALL_GROUP_BYTES * 1000 / 30),
        ),
        how: larger_clusters(report),
        source: PERFORMANCE,
    })
}

fn larger_clusters(report: &Report) -> String {
    match is_tree_report(report) {
        true => copy("--auto-flush N, with the entries of a cluster of 30 MB"),
        false => copy("--cluster-bytes 128MiB"),
    }
}

fn small_clusters(report: &Report) -> Option<Advice> {
    let normal = if is_tree_report(report) { TREE_CLUSTER_BYTES } else { DEFAULT_CLUSTER_BYTES };
    let Spread { median, .. } = report.clusters.stored_bytes?;
    if report.clusters.count < 2 || median >= normal / SMALL_CLUSTER_PART || report.pages == 0 {
        return None;
    }
    Some(Advice {
        rule: "small-clusters",
        level: if report.bytes.stored_bytes >= normal { Level::Medium } else { Level::Low },
        what: format!("The {} clusters have {} (median).", report.clusters.count, size(median)),
        why: format!(
            "Every {} begins another {} in each cluster. The default of ROOT is {}.",
            column(report),
            page(report),
            if is_tree_report(report) { "30 MB".to_owned() } else { size(DEFAULT_CLUSTER_BYTES) },
        ),
        how: larger_clusters(report),
        source: "ROOT, RNTupleWriteOptions and TTree::SetAutoFlush",
    })
}

fn large_clusters(report: &Report) -> Option<Advice> {
    let Spread { largest, .. } = report.clusters.unpacked_bytes?;
    (largest > LARGE_CLUSTER_BYTES).then(|| Advice {
        rule: "large-clusters",
        level: Level::Medium,
        what: format!("The largest cluster has {} before compression.", size(largest)),
        why: format!(
            "Programs that read whole clusters need the memory for one, and threads share the work by clusters. ROOT's limit is {}.",
            size(LARGE_CLUSTER_BYTES)
        ),
        how: match is_tree_report(report) {
            true => copy("--auto-flush N, with fewer entries"),
            false => copy("--cluster-bytes 128MiB"),
        },
        source: "ROOT, RNTupleWriteOptions::SetMaxUnzippedClusterSize",
    })
}

fn slow_codec(report: &Report) -> Option<Advice> {
    let stored = report.bytes.stored_bytes;
    let lzma = report.codecs.iter().filter(|codec| codec.name.starts_with("lzma"));
    let bytes: u64 = lzma.map(|codec| codec.stored_bytes).sum();
    if bytes == 0 || (bytes as f64) < stored as f64 * CODEC_PART {
        return None;
    }
    Some(Advice {
        rule: "slow-codec",
        level: if bytes * 2 >= stored { Level::High } else { Level::Medium },
        what: format!("{} of the stored bytes are compressed with LZMA.", percent(bytes, stored)),
        why: "Unpacking LZMA takes about ten times as long as zstd, for a few percent of the space.".to_owned(),
        how: copy("--compression zstd:5"),
        source: PERFORMANCE,
    })
}

fn uncompressed(report: &Report) -> Option<Advice> {
    let stored = report.bytes.stored_bytes;
    let is_large = |column: &&ColumnReport| {
        column.codec == "none"
            && column.stored_bytes >= LARGE_COLUMN_BYTES
            && column.stored_bytes as f64 >= stored as f64 * LARGE_COLUMN_PART
    };
    let found: Vec<&ColumnReport> = report.columns.iter().filter(is_large).collect();
    let bytes: u64 = found.iter().map(|column| column.stored_bytes).sum();
    (!found.is_empty()).then(|| Advice {
        rule: "uncompressed",
        level: if bytes * 2 >= stored { Level::Medium } else { Level::Low },
        what: format!(
            "{} ({}) {} stored without compression: {}.",
            things(found.len() as u64, column(report), columns(report)),
            size(bytes),
            if found.len() == 1 { "is" } else { "are" },
            names(found),
        ),
        why: "Uncompressed pages are fastest to read from a local disk, but take more space, and more time over a network.".to_owned(),
        how: copy("--compression lz4:4"),
        source: PERFORMANCE,
    })
}

/// Rule of [`nearly_constant`].
const NEARLY_CONSTANT: &str = "nearly-constant";

fn nearly_constant(report: &Report) -> Option<Advice> {
    let is_empty = |column: &&ColumnReport| {
        column.ratio() >= CONSTANT_RATIO
            && column.unpacked_bytes >= CONSTANT_BYTES
            // Lists of the same length.
            && !column.column_type.contains("Index")
    };
    let found: Vec<&ColumnReport> = report.columns.iter().filter(is_empty).collect();
    let bytes: u64 = found.iter().map(|column| column.unpacked_bytes).sum();
    (!found.is_empty()).then(|| Advice {
        rule: NEARLY_CONSTANT,
        level: Level::Low,
        what: format!(
            "{} {} to less than 1 % of {}: {}.",
            things(found.len() as u64, column(report), columns(report)),
            if found.len() == 1 { "compresses" } else { "compress" },
            size(bytes),
            names(found),
        ),
        why: "Such values repeat, or follow from each other. They take little space, but time to unpack.".to_owned(),
        how: "tupelo inspect FILE:NAME --read looks at values; leave out what is not needed with tupelo copy --exclude"
            .to_owned(),
        source: "sizes in the metadata",
    })
}

fn many_pages(report: &Report) -> Option<Advice> {
    if report.pages < MANY_PAGES || report.pages < report.entries || report.entries == 0 {
        return None;
    }
    let (page, per_entry) = (page(report), report.pages as f64 / report.entries as f64);
    Some(Advice {
        rule: "many-pages",
        level: Level::Medium,
        what: format!(
            "{} {page}s for {}: {per_entry:.1} for each.",
            report.pages,
            things(report.entries, "entry", "entries")
        ),
        why: format!(
            "A {page} should have hundreds of entries or more: here finding {page}s takes longer than reading them."
        ),
        how: match report.clusters.count {
            0 | 1 => "tupelo merge NEW.root FILE OTHER.root joins files with few entries".to_owned(),
            _ => larger_clusters(report),
        },
        source: PERFORMANCE,
    })
}

fn without_checksums(report: &Report) -> Option<Advice> {
    let pages = report.pages_without_checksum.filter(|&pages| pages > 0)?;
    Some(Advice {
        rule: "no-checksums",
        level: Level::Low,
        what: format!("{} of {} pages have no checksum.", pages, report.pages),
        why: "Damage in such a page is not noticed where it still unpacks. Checksums take about 0.1 % of the space."
            .to_owned(),
        how: copy("--compression zstd:5"),
        source: "ROOT, tree/ntuple/doc/Tuning.md",
    })
}

fn free_space(report: &Report) -> Option<Advice> {
    let (free, all) = (report.bytes.free_bytes?, report.bytes.file_bytes?);
    (free >= FREE_BYTES && free as f64 >= all as f64 * FREE_PART).then(|| Advice {
        rule: "free-space",
        level: if free * 2 >= all { Level::Medium } else { Level::Low },
        what: format!("{} of the file ({}) are free.", size(free), percent(free, all)),
        why: "Removed and replaced objects leave space that only later additions use.".to_owned(),
        how: "tupelo repack FILE".to_owned(),
        source: "the free list of the file",
    })
}

fn large_metadata(report: &Report) -> Option<Advice> {
    let (metadata, pages) = (report.bytes.metadata_bytes, report.bytes.stored_bytes);
    (metadata >= METADATA_BYTES && metadata as f64 >= pages as f64 * METADATA_PART).then(|| Advice {
        rule: "large-metadata",
        level: if metadata >= pages { Level::Medium } else { Level::Low },
        what: format!("The metadata have {}, the {}s {}.", size(metadata), page(report), size(pages)),
        why: "Every program that opens the file reads and keeps them, however few fields it needs.".to_owned(),
        how: match report.clusters.count {
            0 | 1 => "tupelo merge NEW.root FILE OTHER.root, so that more entries share the description of the fields"
                .to_owned(),
            _ => larger_clusters(report),
        },
        source: PERFORMANCE,
    })
}

fn is_tree(report: &Report) -> Option<Advice> {
    (is_tree_report(report) && report.bytes.stored_bytes >= TREE_BYTES).then(|| Advice {
        rule: "tree",
        level: Level::Low,
        what: format!("The object is a {}.", report.class),
        why: "In published comparisons, the same entries take 10 to 50 % less space as an RNTuple, where their values \
              compress at all, and are read several times faster."
            .to_owned(),
        how: "tupelo import FILE:NAME NEW.root".to_owned(),
        source: "root.cern/blog/rntuple-binary-format (2024)",
    })
}

/// The columns of the leaves that a sample names.
fn sampled<'r>(report: &'r Report, paths: &[String]) -> Vec<&'r ColumnReport> {
    let paths: HashSet<&str> = paths.iter().map(String::as_str).collect();
    report.columns.iter().filter(|column| paths.contains(column.path.as_str())).collect()
}

fn in_entries(sampled: &Sampled) -> String {
    match sampled.entries == sampled.of {
        true => format!("in all {}", things(sampled.entries, "entry", "entries")),
        false => format!("in a sample of {} of {} entries", sampled.entries, sampled.of),
    }
}

/// A sentence about the leaves at `paths`, whose values in a sample are `what`, and their stored bytes; `None` without leaves.
fn in_sample(report: &Report, sample: &Sampled, paths: &[String], kind: &str, what: &str) -> Option<(String, u64)> {
    let found = sampled(report, paths);
    let bytes: u64 = found.iter().map(|column| column.stored_bytes).sum();
    (!paths.is_empty()).then(|| {
        let (fields, entries) = (things(paths.len() as u64, "field", "fields"), in_entries(sample));
        let has = if paths.len() == 1 { "has" } else { "have" };
        (format!("{fields}{kind} ({}) {has} only {what} {entries}: {}.", size(bytes), names(found)), bytes)
    })
}

fn never_varies(report: &Report, sample: &Sampled) -> Option<Advice> {
    let (what, _) = in_sample(report, sample, &sample.constant, "", "one value")?;
    Some(Advice {
        rule: "never-varies",
        level: Level::Low,
        what,
        why: "A value that is always the same could be metadata of the file.".to_owned(),
        how: "tupelo copy FILE:NAME NEW.root --exclude FIELDS".to_owned(),
        source: "values that were read",
    })
}

fn fits_float(report: &Report, sample: &Sampled) -> Option<Advice> {
    let what = "values that are exact as float";
    let (what, bytes) = in_sample(report, sample, &sample.fits_float, " of doubles", what)?;
    Some(Advice {
        rule: "fits-float",
        level: if bytes * 5 >= report.bytes.stored_bytes { Level::Medium } else { Level::Low },
        what,
        why: "As float, each value takes half of the memory, and less time to unpack.".to_owned(),
        how: "write the fields as float, or as double with encodings={'FIELD': 'SplitReal32'} in Python".to_owned(),
        source: "values that were read",
    })
}
