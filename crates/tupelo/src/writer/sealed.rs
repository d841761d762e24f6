//! Complete clusters, and those that are stored without decoding.

use std::sync::Arc;

use tupelo_format::envelope::PageInfo;

use crate::encode::{
    ColumnWriter, FieldWriter, ListedCluster, ListedColumn, ReadPages, SealedColumn, SealedPage, StoredColumn,
};
use crate::schema::Kind;
use crate::sink::PageSink;
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

/// A sealed cluster that matches the ntuple.
#[derive(Debug)]
pub(crate) struct CheckedCluster {
    entries: u64,
    columns: Vec<ListedColumn>,
    /// For each column the place of its writer.
    places: Vec<usize>,
    lacking: Vec<usize>,
}

impl CheckedCluster {
    pub(super) fn entries(&self) -> u64 {
        self.entries
    }

    /// The places of the fields without columns in it.
    pub(super) fn lacking(&self) -> &[usize] {
        &self.lacking
    }

    /// Adds a column of a field that it lacks; `place` is that of its writer. Returns the place of the column.
    pub(super) fn add(&mut self, column: ListedColumn, place: usize) -> usize {
        self.columns.push(column);
        self.places.push(place);
        self.columns.len() - 1
    }
}

/// Checks the columns of a sealed cluster, which has none of the fields at the places `lacking`.
pub(super) fn check(
    cluster: ListedCluster,
    lacking: Vec<usize>,
    fields: &[Option<FieldWriter>],
    writers: &[ColumnWriter],
) -> Result<CheckedCluster> {
    let ListedCluster { entries, columns } = cluster;
    if entries == 0 {
        return Err(Error::invalid_argument("sealed cluster has no entries"));
    }
    let mut places = Vec::with_capacity(writers.len());
    let stored: Vec<&FieldWriter> = fields
        .iter()
        .enumerate()
        .filter_map(|(place, field)| field.as_ref().filter(|_| !lacking.contains(&place)))
        .collect();
    stored.iter().for_each(|field| add_columns(field, &mut places));
    if columns.len() != places.len() {
        let (given, expected) = (columns.len(), places.len());
        return Err(Error::invalid_argument(format!("sealed cluster has {given} columns, expected {expected}")));
    }
    let mut elements = vec![0; writers.len()];
    for (place, column) in places.iter().zip(&columns) {
        let checked = writers.get(*place).map_or(Ok(()), |writer| column.check(&writer.options().encoding));
        checked.map_err(|error| error.within(format!("column {place}")))?;
        if let Some(elements) = elements.get_mut(*place) {
            *elements = column.elements();
        }
    }
    check_elements(&stored, &elements, entries)?;
    Ok(CheckedCluster { entries, columns, places, lacking })
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
            cluster.columns.iter().map(|column| column.pages.iter().map(|_| None).collect()).collect()
        }
        let pages = match sink.stores_whole_clusters() {
            true => TakenPages::Sealed(none(&cluster)),
            false => TakenPages::Stored(none(&cluster)),
        };
        Self { sink, cluster, pages }
    }

    /// Stores pages, or keeps them if the sink stores whole clusters.
    pub(super) fn put(&mut self, read: ReadPages) -> Result<()> {
        fn slot<T>(taken: &mut [Vec<Option<T>>], (column, page): (usize, usize)) -> Result<&mut Option<T>> {
            let slot = taken.get_mut(column).and_then(|pages| pages.get_mut(page));
            slot.ok_or_else(|| Error::invalid_argument(format!("page {page} of column {column} is not in the cluster")))
        }
        match &mut self.pages {
            TakenPages::Sealed(taken) => {
                read.into_iter().try_for_each(|(place, page)| slot(taken, place).map(|slot| *slot = Some(page)))
            }
            TakenPages::Stored(taken) => {
                let bytes: Vec<_> = read.iter().map(|((column, _), page)| page.as_stored(*column as u32)).collect();
                let locators = self.sink.put_pages(0, &bytes)?;
                let mut stored = read.iter().zip(locators);
                stored.try_for_each(|((place, page), locator)| {
                    slot(taken, *place).map(|slot| *slot = Some(page.stored_at(locator)))
                })
            }
        }
    }

    /// The cluster with its columns in the order of their writers.
    pub(super) fn finish(self) -> Result<FullCluster> {
        /// Each column with the place of its writer, ordered by it.
        fn placed<T>(
            cluster: &CheckedCluster,
            taken: Vec<Vec<Option<T>>>,
        ) -> Result<impl Iterator<Item = (u32, Vec<T>)>> {
            let columns = taken.into_iter().zip(&cluster.columns).zip(&cluster.places);
            let columns = columns.map(|((pages, column), place)| {
                let pages: Option<Vec<T>> = pages.into_iter().collect();
                let pages = pages.ok_or_else(|| Error::invalid_argument("a page of the cluster is missing"))?;
                Ok((*place, (column.compression, pages)))
            });
            let mut columns: Vec<(usize, (u32, Vec<T>))> = columns.collect::<Result<_>>()?;
            columns.sort_by_key(|(place, _)| *place);
            Ok(columns.into_iter().map(|(_, column)| column))
        }
        let Self { cluster, pages, .. } = self;
        let unpacked_bytes = cluster.columns.iter().map(ListedColumn::unpacked_bytes).sum();
        let stored_bytes = cluster.columns.iter().map(ListedColumn::stored_bytes).sum();
        let pages = match pages {
            TakenPages::Stored(taken) => {
                let columns = placed(&cluster, taken)?;
                ClusterPages::Stored(columns.map(|(compression, pages)| StoredColumn { pages, compression }).collect())
            }
            TakenPages::Sealed(taken) => {
                let columns = placed(&cluster, taken)?;
                ClusterPages::Sealed(columns.map(|(compression, pages)| SealedColumn { compression, pages }).collect())
            }
        };
        Ok(FullCluster { entries: cluster.entries, pages, unpacked_bytes, stored_bytes })
    }
}

/// Adds the columns of a field before those of its subfields.
fn add_columns(field: &FieldWriter, places: &mut Vec<usize>) {
    places.extend(field.column..field.column + field.columns());
    field.children.iter().for_each(|child| add_columns(child, places));
}

/// Checks that the numbers of elements of all columns agree with each other and with the number of entries, as far as that is
/// known without decoding.
fn check_elements(fields: &[&FieldWriter], elements: &[u64], entries: u64) -> Result<()> {
    for field in fields {
        let values = values(field, elements).map_err(|e| e.within(format!("field '{}'", field.path)))?;
        if let Some(values) = values.filter(|values| *values != entries) {
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
