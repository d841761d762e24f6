//! Compares every checksum and decodes every page, to the end, whatever damage is found.

mod compared;
mod objects;
mod trees;

use std::collections::HashSet;
use std::fmt;

use tupelo_format::container::{self, Deviation};
use tupelo_format::descriptor::ColumnId;
use tupelo_format::envelope::{ColumnPages, PageInfo};
use tupelo_format::locator::Locator;
use tupelo_pages::decode::{ValueOptions, decode};
use tupelo_pages::plan::{Continuity, Segment};
use tupelo_pages::source::{BlobRange, Cluster, Metadata, checked};
use tupelo_schema::schema::Field;

use self::compared::Compared;
pub(super) use self::trees::check_tree;
use super::each_ntuple;
use super::index::zones::contradiction;
use super::layout::layout;
use crate::reader::{File, Ntuple};
use crate::{Error, ErrorKind, Result};

/// Sealed pages that are fetched at once, in bytes.
const FETCH_BYTES: u64 = 16 << 20;

/// Most bytes of text in the listed damages of a file, about 100 000 of them. Those beyond are only counted.
const MAX_LISTED_BYTES: usize = 16 << 20;

/// A damaged place, located as precisely as possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The ntuple; after `@` the attribute set. Empty for trees, other objects, and the file around them.
    pub ntuple: String,
    /// The tree; empty for all else.
    pub tree: String,
    /// Any other object that the directories list; empty for all else.
    pub object: String,
    /// Dotted path of the field, items of collections being called `_0`; of a branch its name, after those of its parents
    /// and slashes.
    pub field: Option<String>,
    /// Number of the column in the file.
    pub column: Option<u32>,
    /// Name of the column's type.
    pub column_type: Option<&'static str>,
    /// Number of the cluster.
    pub cluster: Option<u64>,
    /// Number of the page in column and cluster.
    pub page: Option<u64>,
    /// Number of the basket in the branch.
    pub basket: Option<u64>,
    /// Offset of the page or basket in the file, in bytes.
    pub offset: Option<u64>,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, name) in [("ntuple", &self.ntuple), ("tree", &self.tree), ("object", &self.object)] {
            if !name.is_empty() {
                write!(f, "{kind} '{name}': ")?;
            }
        }
        if let Some(field) = &self.field {
            write!(f, "{} '{field}': ", if self.tree.is_empty() { "field" } else { "branch" })?;
        }
        let column = self.column.map(|column| match self.column_type {
            Some(name) => format!("column {column} ({name})"),
            None => format!("column {column}"),
        });
        let cluster = self.cluster.map(|cluster| format!("cluster {cluster}"));
        let numbered = |kind: &str, number: Option<u64>| {
            number.map(|number| match self.offset {
                Some(offset) => format!("{kind} {number} (at offset {offset})"),
                None => format!("{kind} {number}"),
            })
        };
        let (page, basket) = (numbered("page", self.page), numbered("basket", self.basket));
        let place: Vec<_> = [column, cluster, page, basket].into_iter().flatten().collect();
        if !place.is_empty() {
            write!(f, "{}: ", place.join(", "))?;
        }
        f.write_str(&self.what)
    }
}

/// What was checked and what was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Ntuples, attribute sets included.
    pub ntuples: u64,
    /// Pages.
    pub pages: u64,
    /// Pages among them that have no checksum, so that only their structure could be checked.
    pub pages_without_checksum: u64,
    /// Trees: of each the newest cycle.
    pub trees: u64,
    /// Baskets of these trees.
    pub baskets: u64,
    /// Other objects that the directories list, and older cycles of trees: their records were decompressed.
    pub objects: u64,
    /// Stored bytes of the pages and baskets.
    pub bytes: u64,
    /// Number of places that are damaged.
    pub num_damages: u64,
    /// These places, in the order of the file's directories. A file can claim any number of them: the list ends after
    /// 16 MiB of text, shared with `unsupported`.
    pub damages: Vec<Damage>,
    /// Number of places that could not be checked.
    pub num_unsupported: u64,
    /// These places: what may be intact but uses something that this version does not know, or needs more memory than
    /// the file's budget has.
    pub unsupported: Vec<Damage>,
    /// Rules of the format that the file breaks and ROOT does not check. What they are about is read as ROOT reads it.
    pub deviations: Vec<Deviation>,
    /// Warnings of the ntuples: fields whose pages were compared but not decoded.
    pub warnings: Vec<String>,
    listed_bytes: usize,
}

impl Report {
    /// Whether everything was checked and nothing is damaged.
    pub fn is_intact(&self) -> bool {
        self.num_damages == 0 && self.num_unsupported == 0
    }

    fn add(&mut self, damage: Damage, kind: ErrorKind) {
        let (number, list) = match kind {
            ErrorKind::Unsupported | ErrorKind::Limit => (&mut self.num_unsupported, &mut self.unsupported),
            _ => (&mut self.num_damages, &mut self.damages),
        };
        *number += 1;
        let Damage { ntuple, tree, object, field, what, .. } = &damage;
        let texts = [ntuple, tree, object, what].into_iter().chain(field);
        self.listed_bytes += texts.map(String::len).sum::<usize>();
        // The first one is listed, however long.
        if list.is_empty() || self.listed_bytes <= MAX_LISTED_BYTES {
            list.push(damage);
        }
    }
}

/// Checks one ntuple or tree, or all that a file holds. Of ntuples, older cycles and attribute sets included: the
/// checksums of anchor, header, footer, page lists and pages, that everything decodes, and that zone maps agree with the
/// values. Of trees: that baskets can be decompressed, have the entries that the branch says, and decode. Of other
/// objects: that their records can be decompressed. For a file, also checks that a writer can update it: that it has the
/// length given in its header, and that directories, free list and streamer info can be read. `progress` receives the
/// stored bytes of the pages and baskets that are done, at most the size of the file unless columns share pages.
///
/// # Errors
/// Not found if the file lacks the name; corrupt if the ntuples cannot be reached; storage errors.
/// Damage of the ntuples themselves is not an error but part of the report.
pub fn verify(file: &File, name: Option<&str>, progress: &mut dyn FnMut(u64)) -> Result<Report> {
    check(file, name, false, progress).map_err(|error| error.or_in_file(file.name()))
}

fn check(file: &File, name: Option<&str>, is_deep: bool, progress: &mut dyn FnMut(u64)) -> Result<Report> {
    // Pages are compared here, one by one; the decoder need not do it again, nor fetch them from a server again.
    let file = file.clone().with_page_checksums(false).with_recent_reads();
    let mut report = Report::default();
    let mut add = |error: Error| report.add(Damage::whole("", error.to_string()), error.kind());
    match file.stored_objects().filter(|_| name.is_none()) {
        Some(stored) => {
            // Damage that prevents opening the ntuple is found below.
            let groups =
                file.ntuple(None).map(|ntuple| ntuple.descriptor().cluster_groups().to_vec()).unwrap_or_default();
            let page_lists: Vec<_> = groups.iter().map(|group| group.page_list.locator).collect();
            objects::check(stored, &page_lists, is_deep, &mut add)?;
        }
        None if name.is_none() => around(&file)?.into_iter().for_each(add),
        None => {}
    }
    let mut compared = Compared::of_file(file.size().unwrap_or(u64::MAX));
    // The baskets of trees and other objects; what stores hold is one ntuple.
    let is_object = file.stored_objects().is_none() && trees::check(&file, name, &mut report, progress)?;
    if name.is_some() && is_object {
        report.deviations = file.deviations();
        return Ok(report);
    }
    let before = report.bytes;
    let progress = &mut |done| progress(before + done);
    each_ntuple(&file, name, &mut |found| {
        report.ntuples += 1;
        match &found.ntuple {
            Ok(ntuple) => {
                let (name, continuity) = (found.name.as_str(), Continuity::default());
                let mut check =
                    Check { name, ntuple, report: &mut report, compared: &mut compared, progress, continuity };
                ntuple.source().session().counters().elapsed(|| check.run());
            }
            Err(error) => report.add(Damage::whole(&found.name, error.reason()), error.kind()),
        }
        Ok(())
    })?;
    report.deviations = file.deviations();
    if let Err(error) = file.check_saved() {
        report.add(Damage::whole("", error.reason()), error.kind());
    }
    Ok(report)
}

/// As [`verify`], and the file around the ntuples: that its records follow each other without a break from the first
/// byte to the last, and that no byte belongs to two records. Of an ntuple in an object store: that each object has the
/// digest of the manifest.
///
/// # Errors
/// As [`verify`].
pub fn verify_deep(file: &File, progress: &mut dyn FnMut(u64)) -> Result<Report> {
    let mut report = check(file, None, true, progress).map_err(|error| error.or_in_file(file.name()))?;
    if file.stored_objects().is_some() {
        return Ok(report);
    }
    for remark in layout(file)?.remarks {
        // What is wrong within an ntuple was found above, with its place.
        if remark.ntuple.is_none() {
            report.add(Damage::whole("", remark.what), ErrorKind::Corrupt);
        }
    }
    Ok(report)
}

/// Why a writer cannot update the file, if it is damaged or the update exceeds the memory budget. A file that was never
/// closed is not damaged: it has no free list, which readers do not need.
pub(super) fn around(file: &File) -> Result<Option<Error>> {
    let file = file.root_file()?;
    let header = file.attempt(container::read_header)?;
    let is_closed = header.seek_free != 0 || header.end > file.size();
    let error = file.attempt_with_directories(|fetched| container::FileLayout::update(fetched, 0)).err();
    let is_meant = |error: &Error| is_closed && (error.is_corrupt() || error.kind() == ErrorKind::Limit);
    Ok(error.filter(is_meant))
}

impl Damage {
    fn whole(ntuple: &str, what: String) -> Self {
        let (field, column, column_type, cluster) = (None, None, None, None);
        let (ntuple, tree, object) = (ntuple.to_owned(), String::new(), String::new());
        Self { ntuple, tree, object, field, column, column_type, cluster, page: None, basket: None, offset: None, what }
    }
}

/// The check of one ntuple.
struct Check<'a> {
    name: &'a str,
    ntuple: &'a Ntuple,
    report: &'a mut Report,
    compared: &'a mut Compared,
    progress: &'a mut dyn FnMut(u64),
    continuity: Continuity,
}

/// A page and where it belongs.
struct ListedPage {
    column: ColumnId,
    page: usize,
    info: PageInfo,
    range: BlobRange,
}

impl Check<'_> {
    fn source(&self) -> &Metadata {
        self.ntuple.source()
    }

    fn run(&mut self) {
        let warnings = self.ntuple.warnings().iter().map(|warning| format!("ntuple '{}': {warning}", self.name));
        self.report.warnings.extend(warnings);
        for group in 0..self.source().descriptor().cluster_groups().len() {
            match self.source().group_clusters(group) {
                Ok(clusters) => clusters.iter().for_each(|cluster| self.cluster(cluster)),
                Err(error) => {
                    let damage = Damage::whole(self.name, format!("cluster group {group}: {error}"));
                    self.report.add(damage, error.kind());
                }
            }
        }
    }

    fn cluster(&mut self, cluster: &Cluster) {
        let mut damaged = HashSet::new();
        let mut places: Vec<ListedPage> = Vec::new();
        let mut bytes = 0;
        // Columns that were added later are not listed.
        let listed = self.source().listed_columns(cluster).unwrap_or_default();
        for id in (0..listed as u32).map(ColumnId::from) {
            let follow = |listed: Option<ColumnPages>| {
                let Some(listed) = listed else { return Ok(Vec::new()) };
                self.continuity.check(self.ntuple.descriptor(), cluster, id, &listed)?;
                Ok(listed.pages)
            };
            let pages = match self.ntuple.source().column_pages(cluster, id).and_then(follow) {
                Ok(pages) => pages,
                Err(error) => {
                    damaged.insert(id);
                    self.damage(id, cluster, None, &error);
                    continue;
                }
            };
            for (page, info) in pages.into_iter().enumerate() {
                self.report.pages += 1;
                self.report.pages_without_checksum += u64::from(!info.has_checksum);
                let range =
                    self.source().store().page_range(cluster.number, id.index() as u32, &info).and_then(|range| {
                        let _fits = self.source().session().budget().reserve(range.bytes(), "a page")?;
                        Ok(range)
                    });
                match range {
                    Ok(range) => {
                        bytes += range.bytes();
                        places.push(ListedPage { column: id, page, info, range });
                    }
                    Err(error) => {
                        damaged.insert(id);
                        self.damage(id, cluster, Some((page, &info)), &error);
                        continue;
                    }
                }
                if bytes >= FETCH_BYTES {
                    self.pages(cluster, &std::mem::take(&mut places), &mut damaged);
                    bytes = 0;
                }
            }
        }
        self.pages(cluster, &places, &mut damaged);
        self.decode(cluster, &damaged);
    }

    /// Compares the checksums of pages, of those that several columns list once.
    fn pages(&mut self, cluster: &Cluster, places: &[ListedPage], damaged: &mut HashSet<ColumnId>) {
        let mut unknown = Vec::new();
        for place in places {
            match self.compared.outcome(&place.info, place.range) {
                None => unknown.push(place),
                Some(Ok(())) => {}
                Some(Err(error)) => {
                    damaged.insert(place.column);
                    self.damage(place.column, cluster, Some((place.page, &place.info)), &error);
                }
            }
        }
        let ranges: Vec<_> = unknown.iter().map(|place| place.range).collect();
        let store = self.ntuple.source().store();
        let together = store.fetch(&ranges).ok();
        for (index, place) in unknown.iter().enumerate() {
            let sealed = match &together {
                Some(sealed) => Ok(sealed[index].clone()),
                // One of them cannot be read: which one?
                None => store.fetch(&ranges[index..=index]).map(|mut sealed| sealed.pop().unwrap_or_default()),
            };
            let outcome = sealed.and_then(|sealed| {
                self.report.bytes += sealed.len() as u64;
                let outcome = checked(&place.info, &sealed, true).map(drop);
                self.compared.add(&place.info, place.range, &sealed, outcome.is_ok());
                outcome
            });
            if let Err(error) = outcome {
                damaged.insert(place.column);
                self.damage(place.column, cluster, Some((place.page, &place.info)), &error);
            }
        }
        (self.progress)(self.report.bytes);
    }

    /// Decodes all fields whose pages are what was written.
    fn decode(&mut self, cluster: &Cluster, damaged: &HashSet<ColumnId>) {
        if cluster.entries == 0 {
            return;
        }
        let segments = [Segment::of_cluster(cluster)];
        let ntuple = self.ntuple;
        for field in &ntuple.schema().fields {
            if self.uses(field, damaged) {
                continue;
            }
            let options = ValueOptions { compressed: ntuple.is_compressed(), binary_strings: true };
            let source = ntuple.source();
            let decoded = decode(source, &source.request_memory(), std::slice::from_ref(field), &segments, options);
            let damage = |what| Damage { cluster: Some(cluster.number), ..Damage::whole(self.name, what) };
            match decoded {
                Ok(values) => {
                    let range = cluster.entry_range();
                    let zones = ntuple.field_zones(ntuple.zone_maps(), &field.name);
                    let known = zones.and_then(|zones| Ok((ntuple.zone_filters(&zones)?, zones)));
                    let wrong = match known {
                        Ok((filters, zones)) => {
                            let filters = &filters[zones.places(&range)];
                            let contradicts =
                                |values| contradiction(zones.within(&range), filters, range.start, values);
                            values.first().and_then(contradicts).map(|what| (what, ErrorKind::Corrupt))
                        }
                        Err(error) => Some((error.to_string(), error.kind())),
                    };
                    if let Some((what, kind)) = wrong {
                        self.report.add(Damage { field: Some(field.name.clone()), ..damage(what) }, kind);
                    }
                }
                // The text names field, column and page as far as they are known.
                Err(error) => self.report.add(damage(error.to_string()), error.kind()),
            }
        }
    }

    fn uses(&self, field: &Field, columns: &HashSet<ColumnId>) -> bool {
        if columns.is_empty() {
            return false;
        }
        let own = |field: &Field| {
            let field = field.id.and_then(|id| self.source().descriptor().field(id).ok());
            field.is_some_and(|field| field.representations.iter().flatten().any(|id| columns.contains(id)))
        };
        own(field) || field.children().iter().any(|child| self.uses(child, columns))
    }

    fn damage(&mut self, id: ColumnId, cluster: &Cluster, page: Option<(usize, &PageInfo)>, error: &Error) {
        let descriptor = self.source().descriptor();
        let column = descriptor.column(id).ok();
        let damage = Damage {
            field: column.map(|column| descriptor.path(column.field)),
            column: u32::try_from(id.index()).ok(),
            column_type: column.and_then(|column| column.encoding).map(|encoding| encoding.column_type().name()),
            cluster: Some(cluster.number),
            page: page.map(|(page, _)| page as u64),
            offset: page.and_then(|(_, info)| match info.locator {
                Locator::File { offset, .. } => Some(offset),
                _ => None,
            }),
            ..Damage::whole(self.name, error.to_string())
        };
        self.report.add(damage, error.kind());
    }
}

#[cfg(test)]
mod tests {
    use super::{Damage, MAX_LISTED_BYTES, Report};
    use crate::ErrorKind;

    #[test]
    fn damages_are_counted_beyond_the_end_of_the_list() {
        let mut report = Report::default();
        for _ in 0..1000 {
            report.add(Damage::whole("", "x".repeat(MAX_LISTED_BYTES / 100)), ErrorKind::Corrupt);
        }
        report.add(Damage::whole("", "too much memory".to_owned()), ErrorKind::Limit);
        assert_eq!((report.num_damages, report.damages.len()), (1000, 100));
        assert_eq!((report.num_unsupported, report.unsupported.len()), (1, 1));
        assert!(!report.is_intact());
    }
}
