//! Zone maps: the bounds of fields in ranges of entries, with which a cut passes over entries without reading them.
//!
//! They are an attribute set of the ntuple, [`ZONE_MAPS_SET`], with the path of the field, its lowest and highest value, whether
//! some value is NaN, and a digest of where the field is stored in the cluster. Zones whose digest is another one are stale,
//! and not used.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::builder::{LargeListBuilder, UInt64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, LargeStringArray, RecordBatch, UInt64Array};
use arrow_buffer::BooleanBufferBuilder;
use arrow_schema::{DataType, Field as ArrowField, Schema as ArrowSchema};
use tupelo_format::checksum::xxh3;
use tupelo_format::locator::Locator;

use crate::expression::{Bloom, Bounds, Known};
use crate::plan::{self, ColumnTable, EntrySet, PageId};
use crate::schema::{Field, Schema};
use crate::source::{Cluster, Metadata, Reservation};
use crate::{Error, Result};

/// Name of the attribute set with the zone maps of an ntuple.
pub const ZONE_MAPS_SET: &str = "zone_maps";
/// Its fields.
pub(crate) const COLUMNS: [&str; 6] = ["field", "lowest", "highest", "has_nan", "digest", "filter"];
/// The place of the filters among them.
pub(crate) const FILTER: usize = 5;
/// Memory for each zone: it is kept, and joined with the others when a cut is decided.
const MEMORY_PER_ZONE: u64 =
    (2 * size_of::<KnownZone>() + size_of::<ZoneBounds>() + size_of::<(Bounds, Option<Bloom>)>()) as u64;

/// The bounds of a field in a range of entries.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Zone {
    pub(crate) field: String,
    pub(crate) entries: Range<u64>,
    pub(crate) bounds: Bounds,
    pub(crate) digest: u64,
    /// Without bits, where none was asked for.
    pub(crate) filter: Bloom,
}

impl Zone {
    /// The schema of the attribute set.
    pub(crate) fn schema() -> Result<Schema> {
        Schema::from_arrow(&Self::arrow_schema())
    }

    fn arrow_schema() -> ArrowSchema {
        let words = DataType::LargeList(Arc::new(ArrowField::new_list_field(DataType::UInt64, false)));
        let types =
            [DataType::LargeUtf8, DataType::Float64, DataType::Float64, DataType::Boolean, DataType::UInt64, words];
        ArrowSchema::new(
            COLUMNS.iter().zip(types).map(|(name, of)| ArrowField::new(*name, of, false)).collect::<Vec<_>>(),
        )
    }

    /// The values of the attribute set.
    pub(crate) fn batch(zones: &[Self]) -> Result<RecordBatch> {
        let numbers = |of: fn(&Self) -> f64| Arc::new(Float64Array::from_iter_values(zones.iter().map(of))) as ArrayRef;
        let item = ArrowField::new_list_field(DataType::UInt64, false);
        let mut filters = LargeListBuilder::new(UInt64Builder::new()).with_field(item);
        for zone in zones {
            filters.values().append_slice(&zone.filter.0);
            filters.append(true);
        }
        let columns: Vec<ArrayRef> = vec![
            Arc::new(LargeStringArray::from_iter_values(zones.iter().map(|zone| &zone.field))),
            numbers(|zone| zone.bounds.lowest),
            numbers(|zone| zone.bounds.highest),
            Arc::new(zones.iter().map(|zone| Some(zone.bounds.has_nan)).collect::<BooleanArray>()),
            Arc::new(UInt64Array::from_iter_values(zones.iter().map(|zone| zone.digest))),
            Arc::new(filters.finish()),
        ];
        Ok(RecordBatch::try_new(Arc::new(Self::arrow_schema()), columns)?)
    }
}

/// What zone maps say of some fields in a range of entries.
#[derive(Debug, Clone, PartialEq)]
pub struct ZoneBounds {
    /// The range of entries.
    pub entries: Range<u64>,
    known: Vec<Option<(Bounds, Option<Bloom>)>>,
}

impl ZoneBounds {
    /// The bounds of a field, by its place among those that were asked for; `None` where nothing is known.
    pub fn bounds(&self, place: usize) -> Option<Bounds> {
        self.known(place).map(|(bounds, _)| bounds)
    }

    pub(crate) fn known(&self, place: usize) -> Option<Known<'_>> {
        self.known.get(place)?.as_ref().map(|(bounds, filter)| (*bounds, filter.as_ref()))
    }

    /// Whether something is known.
    pub(crate) fn is_known(&self) -> bool {
        self.known.iter().any(Option::is_some)
    }

    /// Nothing is known of fields in a range.
    pub(crate) fn unknown(fields: &[&str], entries: &Range<u64>) -> Self {
        Self { entries: entries.clone(), known: vec![None; fields.len()] }
    }
}

/// The zones of an ntuple that are not stale, by field, in the order of their entries. Their filters are read when they are
/// needed.
#[derive(Debug, Default)]
pub(crate) struct Zones {
    by_field: HashMap<String, Vec<KnownZone>>,
    filters: Mutex<HashMap<String, Filters>>,
    _memory: Vec<Reservation>,
}

/// A zone of one field.
#[derive(Debug, Clone)]
pub(crate) struct KnownZone {
    pub(crate) entries: Range<u64>,
    pub(crate) bounds: Bounds,
    /// Its entry in the attribute set.
    row: u64,
}

/// The filters of the zones of a field, in their order, and their memory; none for those that could not be read.
pub(crate) type Filters = (Arc<[Bloom]>, Option<Reservation>);

impl Zones {
    /// The zones of a field in a cluster with these entries.
    pub(crate) fn of_field(&self, field: &str, entries: &Range<u64>) -> &[KnownZone] {
        &self.all(field)[self.places(field, entries)]
    }

    /// Their places among all zones of the field.
    pub(crate) fn places(&self, field: &str, entries: &Range<u64>) -> Range<usize> {
        let zones = self.all(field);
        let [first, end] = [entries.start, entries.end].map(|at| zones.partition_point(|zone| zone.entries.start < at));
        first..end
    }

    fn all(&self, field: &str) -> &[KnownZone] {
        self.by_field.get(field).map_or(&[][..], Vec::as_slice)
    }

    /// The filters of all zones of a field. `read` gets the entries of the zones in the attribute set.
    ///
    /// # Errors
    /// Those of `read`, once: the filters then have no bits.
    pub(crate) fn filters(&self, field: &str, read: &dyn Fn(&[u64]) -> Result<Filters>) -> Result<Arc<[Bloom]>> {
        let known = || self.filters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, _)) = known().get(field) {
            return Ok(Arc::clone(known));
        }
        let rows: Vec<u64> = self.all(field).iter().map(|zone| zone.row).collect();
        if rows.is_empty() {
            return Ok(Arc::default());
        }
        let (found, error) = match read(&rows) {
            Ok(found) => (found, None),
            // They are not read again, and any value may be in them.
            Err(error) => ((rows.iter().map(|_| Bloom::default()).collect(), None), Some(error)),
        };
        let filters = Arc::clone(&found.0);
        known().insert(field.to_owned(), found);
        error.map_or(Ok(filters), Err)
    }

    /// Whether a cluster has zones of a field for all its entries.
    pub(crate) fn cover(&self, field: &str, entries: &Range<u64>) -> bool {
        let end = self.of_field(field, entries).iter().try_fold(entries.start, |next, KnownZone { entries, .. }| {
            (entries.start <= next).then_some(next.max(entries.end))
        });
        end.is_some_and(|end| end >= entries.end)
    }

    /// Ranges of entries with the bounds of fields, and with their filters.
    pub(crate) fn bounds(
        &self,
        fields: &[&str],
        entries: &Range<u64>,
        filters: &dyn Fn(&str) -> Arc<[Bloom]>,
    ) -> Vec<ZoneBounds> {
        let mut ends = vec![entries.start];
        let own = fields.iter().map(|name| {
            let zones = self.all(name);
            let first = zones.partition_point(|zone| zone.entries.end <= entries.start);
            let count = zones[first..].partition_point(|zone| zone.entries.start < entries.end);
            let both = zones[first..first + count].iter().flat_map(|zone| [zone.entries.start, zone.entries.end]);
            ends.extend(both.map(|at| at.clamp(entries.start, entries.end)));
            (zones, first, filters(name))
        });
        let mut own: Vec<_> = own.collect();
        ends.push(entries.end);
        ends.sort_unstable();
        ends.dedup();
        let known = |range: Range<u64>| {
            let of_field = |(zones, next, filters): &mut (&[KnownZone], usize, Arc<[Bloom]>)| {
                *next += zones[*next..].iter().take_while(|zone| zone.entries.end <= range.start).count();
                let zone = zones.get(*next)?;
                let is_known = zone.entries.start <= range.start && range.end <= zone.entries.end;
                let filter = filters.get(*next).filter(|filter| !filter.0.is_empty());
                is_known.then(|| (zone.bounds, filter.cloned()))
            };
            ZoneBounds { known: own.iter_mut().map(of_field).collect(), entries: range }
        };
        ends.windows(2).map(|ends| ends[0]..ends[1]).map(known).collect()
    }
}

/// Collects the zones that are not stale.
pub(crate) struct Fresh<'n> {
    source: &'n Metadata,
    fields: HashMap<&'n str, &'n Field>,
    clusters: Vec<Cluster>,
    /// By the first entry of their cluster.
    found: HashMap<&'n str, BTreeMap<u64, Vec<KnownZone>>>,
    digests: HashMap<(&'n str, u64), Option<u64>>,
    next_row: u64,
    memory: Vec<Reservation>,
}

impl<'n> Fresh<'n> {
    /// None yet, of an ntuple with these fields.
    pub(crate) fn of(source: &'n Metadata, schema: &'n Schema) -> Result<Self> {
        let fields = schema.fields.iter().map(|field| (field.name.as_str(), field)).collect();
        let clusters = source.clusters(0..source.descriptor().entries())?;
        let (found, digests) = (HashMap::new(), HashMap::new());
        Ok(Self { source, fields, clusters, found, digests, next_row: 0, memory: Vec::new() })
    }

    /// Adds the next zones of the attribute set.
    ///
    /// # Errors
    /// Unsupported for a set with other fields; limit if they need more memory than the file may take; those of page lists.
    pub(crate) fn add(&mut self, ranges: &[Range<u64>], values: &RecordBatch) -> Result<()> {
        let budget = self.source.session().budget();
        self.memory.push(budget.reserve(ranges.len() as u64 * MEMORY_PER_ZONE, "zone maps")?);
        let column = |place: usize| values.column_by_name(COLUMNS[place]).ok_or_else(of_another_program);
        let names = column(0)?.as_string_opt::<i64>().ok_or_else(of_another_program)?;
        let [lowest, highest] = [column(1)?, column(2)?].map(|array| array.as_primitive_opt::<Float64Type>());
        let (lowest, highest) = lowest.zip(highest).ok_or_else(of_another_program)?;
        let has_nan = column(3)?.as_boolean_opt().ok_or_else(of_another_program)?;
        let digests = column(4)?.as_primitive_opt::<UInt64Type>().ok_or_else(of_another_program)?;
        for (place, entries) in ranges.iter().enumerate() {
            let bounds =
                Bounds { lowest: lowest.value(place), highest: highest.value(place), has_nan: has_nan.value(place) };
            let zone = KnownZone { entries: entries.clone(), bounds, row: self.next_row };
            self.next_row += 1;
            self.add_zone(names.value(place), zone, digests.value(place))?;
        }
        Ok(())
    }

    fn add_zone(&mut self, name: &str, zone: KnownZone, stated: u64) -> Result<()> {
        let (entries, bounds) = (&zone.entries, &zone.bounds);
        let place = self.clusters.partition_point(|cluster| cluster.entry_range().end <= entries.start);
        let (Some(cluster), Some((&name, field))) = (self.clusters.get(place), self.fields.get_key_value(name)) else {
            return Ok(());
        };
        let range = cluster.entry_range();
        let is_within = range.start <= entries.start && entries.end <= range.end && !entries.is_empty();
        if !is_within || bounds.lowest.is_nan() || bounds.highest.is_nan() {
            return Ok(());
        }
        let known = match self.digests.entry((name, cluster.number)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => *new.insert(digest(self.source, field, cluster)?),
        };
        if known == Some(stated) {
            let own = self.found.entry(name).or_default().entry(range.start).or_default();
            if own.last().is_some_and(|last| last.entries.end > entries.start) {
                // They were made once more: the last ones count.
                own.clear();
            }
            own.push(zone);
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Zones {
        let joined = |by_cluster: BTreeMap<u64, Vec<KnownZone>>| {
            by_cluster.into_values().reduce(|mut all, more| {
                all.extend(more);
                all
            })
        };
        let by_field = self.found.into_iter().map(|(name, zones)| (name.to_owned(), joined(zones).unwrap_or_default()));
        Zones { by_field: by_field.collect(), filters: Mutex::default(), _memory: self.memory }
    }
}

/// The filters of zones that were read from their attribute set.
///
/// # Errors
/// Unsupported for a set with other fields.
pub(crate) fn filters(values: &RecordBatch) -> Result<Arc<[Bloom]>> {
    let lists = values.column_by_name(COLUMNS[FILTER]).and_then(|array| array.as_list_opt::<i64>());
    let lists = lists.ok_or_else(of_another_program)?;
    let words = lists.values().as_primitive_opt::<UInt64Type>().ok_or_else(of_another_program)?.values();
    let ends = lists.value_offsets().windows(2);
    Ok(ends.map(|ends| Bloom(words.slice(ends[0] as usize, (ends[1] - ends[0]) as usize))).collect())
}

#[cold]
fn of_another_program() -> Error {
    Error::unsupported("its zone maps are of another program")
}

/// A number that changes when the values of a field in a cluster are stored elsewhere, or otherwise.
pub(crate) fn digest(source: &Metadata, field: &Field, cluster: &Cluster) -> Result<Option<u64>> {
    let memory = source.request_memory();
    let (mut table, mut bytes) = (ColumnTable::new(source, &memory), Vec::new());
    let mut add = |number: u64| bytes.extend_from_slice(&number.to_le_bytes());
    for column in plan::columns(field) {
        let Some((index, _)) = table.stored(column.field, column.k, cluster)? else { return Ok(None) };
        let stored = table.column(PageId { column: index, page: 0 });
        [stored.id.index() as u64, cluster.entry_range().start, cluster.entry_range().end]
            .into_iter()
            .for_each(&mut add);
        for page in &stored.info.pages {
            let place = match page.locator {
                Locator::File { offset, .. } => [0, offset],
                Locator::Object { location, .. } => [1, location],
                Locator::ObjectRange { object, offset, .. } => [2 + u64::from(object), offset.into()],
                _ => return Ok(None),
            };
            [u64::from(page.elements), page.locator.stored_bytes(), place[0], place[1]].into_iter().for_each(&mut add);
        }
    }
    Ok(Some(xxh3(&bytes)))
}

/// The answers for entries that may be kept as answers for all of a range.
pub(in crate::reader) fn widened(kept: BooleanArray, possible: &EntrySet, entries: &Range<u64>) -> BooleanArray {
    if possible.as_range().as_ref() == Some(entries) {
        return kept;
    }
    let mut all = BooleanBufferBuilder::new((entries.end - entries.start) as usize);
    let (mut next, mut place) = (entries.start, 0);
    for range in possible.ranges() {
        all.append_n((range.start - next) as usize, false);
        let count = (range.end - range.start) as usize;
        all.append_buffer(&kept.values().slice(place, count));
        (next, place) = (range.end, place + count);
    }
    all.append_n((entries.end - next) as usize, false);
    BooleanArray::new(all.finish(), None)
}

/// The type of the values that zones are made of: numbers, or lists of them.
pub(crate) fn has_bounds(data_type: &DataType) -> bool {
    let item = item_type(data_type);
    item.is_integer() || matches!(item, DataType::Float32 | DataType::Float64)
}

/// The type of the values that filters are made of: integers, or lists of them.
pub(crate) fn has_integers(data_type: &DataType) -> bool {
    item_type(data_type).is_integer()
}

/// The type of the items of lists, of lists of lists too.
fn item_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::LargeList(item) | DataType::FixedSizeList(item, _) => item_type(item.data_type()),
        other => other,
    }
}
