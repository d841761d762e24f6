//! Complete clusters, and those that are stored without decoding.

use std::sync::Arc;

use tupelo_format::envelope::PageInfo;
use tupelo_pages::encode::{
    ColumnWriter, FieldWriter, ListedCluster, ListedColumn, ReadPages, SealedColumn, SealedPage, StoredColumn,
};
use tupelo_pages::sink::PageSink;
use tupelo_schema::schema::Kind;

use crate::{Error, Result};

/// A complete cluster.
#[derive(Debug)]
pub(super) struct FullCluster {
    pub(super) entries: u64,
    pub(super) pages: ClusterPages,
    pub(super) unpacked_bytes: u64,
    /// Checksums included.
    pub(super) stored_bytes: u64,
}

/// The pages of every column that is written.
#[derive(Debug)]
pub(super) enum ClusterPages {
    Stored(Vec<StoredColumn>),
    /// For sinks that [store whole clusters](PageSink::stores_whole_clusters), under a number that only the committer knows.
    Sealed(Vec<SealedColumn>),
}

impl ClusterPages {
    /// The representation in which each column is stored.
    pub(super) fn representations(&self) -> Vec<usize> {
        match self {
            Self::Stored(columns) => columns.iter().map(|column| column.representation).collect(),
            Self::Sealed(columns) => columns.iter().map(|column| column.representation).collect(),
        }
    }
}

/// A sealed cluster that matches the ntuple.
#[derive(Debug)]
pub(crate) struct CheckedCluster {
    entries: u64,
    columns: Vec<CheckedColumn>,
    /// As those of [`Sealed`](crate::reader::Sealed).
    missing: Vec<(usize, u64)>,
}

impl CheckedCluster {
    /// Whether fields are stored in other encodings than those in which entries are written.
    pub(crate) fn has_other_representations(&self) -> bool {
        self.columns.iter().any(|column| column.representation > 0)
    }
}

/// A column of a sealed cluster.
#[derive(Debug)]
struct CheckedColumn {
    listed: ListedColumn,
    /// The place of its writer.
    writer: usize,
    /// Its number among the [representations](FieldWriter::others) of the field.
    representation: usize,
    /// Pages of default values before those of the cluster.
    leading: usize,
}

impl CheckedCluster {
    /// The places of fields, each with the number of entries at the beginning that need default values.
    pub(super) fn missing(&self) -> &[(usize, u64)] {
        &self.missing
    }

    /// Adds pages of default values before those of a writer's column. Returns the place of the column.
    pub(super) fn add_defaults(&mut self, writer: usize, mut defaults: ListedColumn) -> usize {
        let leading = defaults.pages.len();
        if let Some(place) = self.columns.iter().position(|column| column.writer == writer) {
            let column = &mut self.columns[place];
            defaults.pages.append(&mut column.listed.pages);
            (column.listed.pages, column.leading) = (defaults.pages, leading);
            return place;
        }
        self.columns.push(CheckedColumn { listed: defaults, writer, representation: 0, leading: 0 });
        self.columns.len() - 1
    }
}

/// Checks the columns of a sealed cluster, in which fields are `missing`.
pub(super) fn check(
    cluster: ListedCluster,
    missing: Vec<(usize, u64)>,
    fields: &[Option<FieldWriter>],
    writers: &[ColumnWriter],
) -> Result<CheckedCluster> {
    let ListedCluster { entries, columns } = cluster;
    if entries == 0 {
        return Err(Error::invalid_argument("sealed cluster has no entries"));
    }
    let without = |place: usize| missing.iter().find(|(own, _)| *own == place).map_or(0, |(_, entries)| *entries);
    let stored: Vec<(&FieldWriter, u64)> = fields
        .iter()
        .enumerate()
        .filter_map(|(place, field)| field.as_ref().map(|field| (field, entries.saturating_sub(without(place)))))
        .filter(|(_, entries)| *entries > 0)
        .collect();
    let expected: usize = stored.iter().map(|(field, _)| field.all_columns().len()).sum();
    let given = columns.len();
    if given != expected {
        return Err(Error::invalid_argument(format!("sealed cluster has {given} columns, expected {expected}")));
    }
    let mut columns = columns.into_iter();
    let mut checked = Vec::with_capacity(given);
    let mut elements = vec![0; writers.len()];
    for (field, stored_entries) in &stored {
        let first = checked.len();
        check_columns(field, &mut columns, writers, &mut checked)?;
        for CheckedColumn { listed, writer, representation, .. } in &checked[first..] {
            if *stored_entries < entries && *representation > 0 {
                let what = format!("column {writer} begins later, in another representation than its default values");
                return Err(Error::invalid_argument(what));
            }
            if let Some(elements) = elements.get_mut(*writer) {
                *elements = listed.elements();
            }
        }
    }
    check_elements(&stored, &elements)?;
    Ok(CheckedCluster { entries, columns: checked, missing })
}

/// Checks the columns of a field, which come before those of its subfields.
fn check_columns(
    field: &FieldWriter,
    columns: &mut impl Iterator<Item = ListedColumn>,
    writers: &[ColumnWriter],
    checked: &mut Vec<CheckedColumn>,
) -> Result<()> {
    let mut representation = 0;
    for writer in field.column..field.column + field.columns() {
        let (Some(listed), Some(own)) = (columns.next(), writers.get(writer)) else { break };
        let mut encoding = &own.options().encoding;
        if writer == field.column
            && let Some(other) = field.others.iter().position(|other| *other == listed.encoding)
        {
            (representation, encoding) = (other + 1, &field.others[other]);
        }
        listed.check(encoding).map_err(|error| error.within(format!("column {writer}")))?;
        checked.push(CheckedColumn { listed, writer, representation, leading: 0 });
    }
    field.children.iter().try_for_each(|child| check_columns(child, columns, writers, checked))
}

/// Takes the pages of a checked cluster, piece by piece, in any order.
#[derive(Debug)]
pub(super) struct ClusterFiller {
    sink: Arc<dyn PageSink>,
    cluster: CheckedCluster,
    pages: TakenPages,
}

/// The pages of each column of the cluster, as far as they were taken.
#[derive(Debug)]
enum TakenPages {
    Stored(Vec<Vec<Option<PageInfo>>>),
    /// For sinks that [store whole clusters](PageSink::stores_whole_clusters).
    Sealed(Vec<Vec<Option<SealedPage>>>),
}

impl ClusterFiller {
    pub(super) fn new(sink: Arc<dyn PageSink>, cluster: CheckedCluster) -> Self {
        fn none<T>(cluster: &CheckedCluster) -> Vec<Vec<Option<T>>> {
            cluster.columns.iter().map(|column| column.listed.pages.iter().map(|_| None).collect()).collect()
        }
        let pages = match sink.stores_whole_clusters() {
            true => TakenPages::Sealed(none(&cluster)),
            false => TakenPages::Stored(none(&cluster)),
        };
        Self { sink, cluster, pages }
    }

    /// Stores pages of the cluster, or keeps them if the sink stores whole clusters.
    pub(super) fn put(&mut self, mut read: ReadPages) -> Result<()> {
        for ((column, page), _) in &mut read {
            *page += self.cluster.columns.get(*column).map_or(0, |column| column.leading);
        }
        self.put_defaults(read)
    }

    /// The same for pages of default values.
    pub(super) fn put_defaults(&mut self, pages: ReadPages) -> Result<()> {
        fn slot<T>(taken: &mut [Vec<Option<T>>], (column, page): (usize, usize)) -> Result<&mut Option<T>> {
            let slot = taken.get_mut(column).and_then(|pages| pages.get_mut(page));
            slot.ok_or_else(|| Error::invalid_argument(format!("page {page} of column {column} is not in the cluster")))
        }
        match &mut self.pages {
            TakenPages::Sealed(taken) => {
                pages.into_iter().try_for_each(|(place, page)| slot(taken, place).map(|slot| *slot = Some(page)))
            }
            TakenPages::Stored(taken) => {
                let bytes: Vec<_> = pages.iter().map(|((column, _), page)| page.as_stored(*column as u32)).collect();
                let locators = self.sink.put_pages(0, &bytes)?;
                let mut stored = pages.iter().zip(locators);
                stored.try_for_each(|((place, page), locator)| {
                    slot(taken, *place).map(|slot| *slot = Some(page.stored_at(locator)))
                })
            }
        }
    }

    /// The cluster with its columns in the order of their writers.
    pub(super) fn finish(self) -> Result<FullCluster> {
        /// Each column with its pages, in the order of the writers.
        fn placed<T>(
            columns: &[CheckedColumn],
            taken: Vec<Vec<Option<T>>>,
        ) -> Result<impl Iterator<Item = (&CheckedColumn, Vec<T>)>> {
            let columns = columns.iter().zip(taken).map(|(column, pages)| {
                let pages: Option<Vec<T>> = pages.into_iter().collect();
                let pages = pages.ok_or_else(|| Error::invalid_argument("a page of the cluster is missing"))?;
                Ok((column, pages))
            });
            let mut columns: Vec<(&CheckedColumn, Vec<T>)> = columns.collect::<Result<_>>()?;
            columns.sort_by_key(|(column, _)| column.writer);
            Ok(columns.into_iter())
        }
        let CheckedCluster { entries, columns, .. } = self.cluster;
        let unpacked_bytes = columns.iter().map(|column| column.listed.unpacked_bytes()).sum();
        let stored_bytes = columns.iter().map(|column| column.listed.stored_bytes()).sum();
        let pages = match self.pages {
            TakenPages::Stored(taken) => {
                let stored = placed(&columns, taken)?.map(|(column, pages)| StoredColumn {
                    pages,
                    compression: column.listed.compression,
                    representation: column.representation,
                });
                ClusterPages::Stored(stored.collect())
            }
            TakenPages::Sealed(taken) => {
                let sealed = placed(&columns, taken)?.map(|(column, pages)| SealedColumn {
                    pages,
                    compression: column.listed.compression,
                    representation: column.representation,
                });
                ClusterPages::Sealed(sealed.collect())
            }
        };
        Ok(FullCluster { entries, pages, unpacked_bytes, stored_bytes })
    }
}

/// Checks that the numbers of elements of all columns of fields agree with each other and with the number of their entries, as
/// far as that is known without decoding.
fn check_elements(fields: &[(&FieldWriter, u64)], elements: &[u64]) -> Result<()> {
    for (field, entries) in fields {
        let values = values(field, elements).map_err(|e| e.within(format!("field '{}'", field.path)))?;
        if let Some(values) = values.filter(|values| values != entries) {
            let what = format!("found {values} values in column {} for {entries} entries", field.column);
            return Err(Error::invalid_argument(what).within(format!("field '{}'", field.path)));
        }
    }
    Ok(())
}

/// The number of values of a field; `None` where its columns do not tell.
fn values(field: &FieldWriter, elements: &[u64]) -> Result<Option<u64>> {
    let children = field.children.iter().map(|child| values(child, elements)).collect::<Result<Vec<_>>>()?;
    let first = field.column;
    let own = || elements.get(first).copied();
    let fail = |what: String| Err(Error::invalid_argument(format!("subfields from column {first} on: {what}")));
    let divide = |elements: u64, size: u64| match elements.checked_rem(size) {
        Some(0) => Ok(Some(elements / size)),
        None if elements == 0 => Ok(None),
        _ => fail(format!("{elements} elements are not a multiple of size {size}")),
    };
    match &field.kind {
        Kind::Bitset { size } => own().map_or(Ok(None), |elements| divide(elements, *size)),
        Kind::Array { size, .. } => children.first().copied().flatten().map_or(Ok(None), |items| divide(items, *size)),
        Kind::Wrapper(_) => Ok(children.first().copied().flatten()),
        Kind::Record(_) | Kind::Tuple(_) => {
            let mut known = children.into_iter().flatten();
            let Some(values) = known.next() else { return Ok(None) };
            match known.find(|other| *other != values) {
                Some(other) => fail(format!("members of one record have {values} and {other} values")),
                None => Ok(Some(values)),
            }
        }
        Kind::Optional(_) | Kind::Variant(_) => {
            let (own, inner) = (own(), children.into_iter().flatten().fold(0, u64::saturating_add));
            match own.filter(|own| inner > *own) {
                Some(own) => fail(format!("found {inner} values, expected at most {own}")),
                None => Ok(own),
            }
        }
        _ => Ok(own()),
    }
}
