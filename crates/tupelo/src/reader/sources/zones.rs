//! Zone maps: the bounds of fields in ranges of entries, with which a cut passes over entries without reading them.
//!
//! They are an attribute set of the ntuple, [`ZONE_MAPS_SET`], with the path of the field, its lowest and highest value, whether
//! some value is NaN, the number of nulls, and a digest of where the field is stored in the cluster. Zones whose digest is
//! another one are stale, and not used. Zones of one field are stored together, so that a cut reads the names of all fields, and then
//! only the zones of the fields that it uses.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow_array::builder::{LargeListBuilder, UInt64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, LargeStringArray, RecordBatch, UInt64Array};
use arrow_buffer::BooleanBufferBuilder;
use arrow_schema::{DataType, Field as ArrowField, Schema as ArrowSchema};
use tupelo_format::checksum::xxh3;
use tupelo_format::locator::Locator;
use tupelo_pages::plan::{self, ColumnTable, EntrySet, PageId};
use tupelo_pages::source::{Cluster, MemoryBudget, Metadata, Reservation};
use tupelo_schema::expression::{Bloom, Bounds, Known};
use tupelo_schema::schema::{Field, Schema};

use crate::{Error, Result};

/// Name of the attribute set with the zone maps of an ntuple.
pub const ZONE_MAPS_SET: &str = "zone_maps";
/// Its first field.
pub(crate) const FIELD: &str = "field";
/// What is read of the zones of a field.
pub(crate) const VALUES: [&str; 5] = ["lowest", "highest", "has_nan", "nulls", "digest"];
/// Its last field.
pub(crate) const FILTER: &str = "filter";
/// Memory for each zone: it is kept, and joined with the others when a cut is decided.
const MEMORY_PER_ZONE: u64 = (2 * size_of::<KnownZone>() + size_of::<ZoneBounds>() + size_of::<KnownValues>()) as u64;

/// The bounds of a field in a range of entries.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Zone {
    pub(crate) field: String,
    pub(crate) entries: Range<u64>,
    pub(crate) bounds: Bounds,
    pub(crate) nulls: u64,
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
        let values = [DataType::Float64, DataType::Float64, DataType::Boolean, DataType::UInt64, DataType::UInt64];
        let values = VALUES.into_iter().zip(values);
        let all = [(FIELD, DataType::LargeUtf8)].into_iter().chain(values).chain([(FILTER, words)]);
        ArrowSchema::new(all.map(|(name, of)| ArrowField::new(name, of, false)).collect::<Vec<_>>())
    }

    /// Its memory.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Self>() + self.field.len() + size_of_val(self.filter.words())
    }

    /// The values of the attribute set.
    pub(crate) fn batch(zones: &[Self]) -> Result<RecordBatch> {
        let numbers = |of: fn(&Self) -> f64| Arc::new(Float64Array::from_iter_values(zones.iter().map(of))) as ArrayRef;
        let integers = |of: fn(&Self) -> u64| Arc::new(UInt64Array::from_iter_values(zones.iter().map(of))) as ArrayRef;
        let item = ArrowField::new_list_field(DataType::UInt64, false);
        let mut filters = LargeListBuilder::new(UInt64Builder::new()).with_field(item);
        for zone in zones {
            filters.values().append_slice(zone.filter.words());
            filters.append(true);
        }
        let columns: Vec<ArrayRef> = vec![
            Arc::new(LargeStringArray::from_iter_values(zones.iter().map(|zone| &zone.field))),
            numbers(|zone| zone.bounds.lowest),
            numbers(|zone| zone.bounds.highest),
            Arc::new(zones.iter().map(|zone| Some(zone.bounds.has_nan)).collect::<BooleanArray>()),
            integers(|zone| zone.nulls),
            integers(|zone| zone.digest),
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
    known: Vec<Option<KnownValues>>,
}

/// What a zone map says of the values of a field.
#[derive(Debug, Clone, PartialEq)]
struct KnownValues {
    bounds: Bounds,
    nulls: u64,
    filter: Option<Bloom>,
}

impl ZoneBounds {
    /// The bounds of a field, by its place among those that were asked for; `None` where nothing is known.
    pub fn bounds(&self, place: usize) -> Option<Bounds> {
        self.values(place).map(|known| known.bounds)
    }

    /// At most this many values of a field are null, those of items included; `None` where nothing is known.
    pub fn nulls(&self, place: usize) -> Option<u64> {
        self.values(place).map(|known| known.nulls)
    }

    pub(crate) fn known(&self, place: usize) -> Option<Known<'_>> {
        let KnownValues { bounds, nulls, filter } = self.values(place)?;
        Some(Known { bounds: *bounds, has_nulls: *nulls > 0, filter: filter.as_ref() })
    }

    fn values(&self, place: usize) -> Option<&KnownValues> {
        self.known.get(place)?.as_ref()
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

/// The zone maps of an ntuple. The zones of a field are read when they are needed.
#[derive(Debug, Default)]
pub(crate) struct Zones {
    /// All of its entries, if they are few: ranges and values.
    pub(crate) values: Option<(Vec<Range<u64>>, RecordBatch)>,
    /// The entries of the attribute set with zones of each field.
    rows: HashMap<String, Vec<Range<u64>>>,
    fields: Mutex<HashMap<String, Arc<FieldZones>>>,
    _memory: Vec<Reservation>,
}

/// Collects the entries of the attribute set with zones of each field.
pub(crate) struct Rows<'n> {
    by_field: HashMap<&'n str, Vec<Range<u64>>>,
    next: u64,
    memory: Vec<Reservation>,
}

impl<'n> Rows<'n> {
    /// None yet, of an ntuple with these fields.
    pub(crate) fn of(schema: &'n Schema) -> Self {
        let by_field = schema.fields.iter().map(|field| (field.name.as_str(), Vec::new())).collect();
        Self { by_field, next: 0, memory: Vec::new() }
    }

    /// Adds the next entries of the attribute set, by the names of their fields.
    ///
    /// # Errors
    /// Unsupported for a set with other fields; limit if they need more memory than the file may take.
    pub(crate) fn add(&mut self, names: &dyn Array, budget: &MemoryBudget) -> Result<()> {
        let names = names.as_string_opt::<i64>().ok_or_else(of_another_program)?;
        let (mut place, mut runs) = (0, 0);
        while place < names.len() {
            let name = names.value(place);
            let count = (place..names.len()).take_while(|&other| names.value(other) == name).count();
            let run = self.next..self.next + count as u64;
            (place, self.next) = (place + count, run.end);
            // The ntuple may lack the field.
            let Some(known) = self.by_field.get_mut(name) else { continue };
            match known.last_mut().filter(|last| last.end == run.start) {
                Some(last) => last.end = run.end,
                None => known.push(run),
            }
            runs += 1;
        }
        self.memory.push(budget.reserve(2 * runs * size_of::<Range<u64>>() as u64, "zone maps")?);
        Ok(())
    }

    /// What is known, with all entries of the attribute set if they are few.
    pub(crate) fn finish(self, values: Option<(Vec<Range<u64>>, RecordBatch)>) -> Zones {
        let known = self.by_field.into_iter().filter(|(_, rows)| !rows.is_empty());
        let rows = known.map(|(name, rows)| (name.to_owned(), rows)).collect();
        Zones { values, rows, fields: Mutex::default(), _memory: self.memory }
    }
}

impl Zones {
    /// The entries of the attribute set with zones of a field.
    pub(crate) fn rows(&self, field: &str) -> &[Range<u64>] {
        self.rows.get(field).map_or(&[], Vec::as_slice)
    }

    /// The zones of a field. `read` reads them.
    ///
    /// # Errors
    /// Those of `read`, once: nothing is known of the field then.
    pub(crate) fn of_field(&self, field: &str, read: &dyn Fn() -> Result<FieldZones>) -> Result<Arc<FieldZones>> {
        if self.rows(field).is_empty() {
            return Ok(Arc::default());
        }
        let known = || self.fields.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(zones) = known().get(field) {
            return Ok(Arc::clone(zones));
        }
        let (zones, error) = match read() {
            Ok(zones) => (Arc::new(zones), None),
            Err(error) => (Arc::default(), Some(error)),
        };
        known().insert(field.to_owned(), Arc::clone(&zones));
        error.map_or(Ok(zones), Err)
    }
}

/// The zones of a field that are not stale, in the order of their entries. Their filters are read when they are needed.
#[derive(Debug, Default)]
pub(crate) struct FieldZones {
    zones: Vec<KnownZone>,
    filters: OnceLock<Filters>,
    _memory: Vec<Reservation>,
}

/// A zone of one field.
#[derive(Debug, Clone)]
pub(crate) struct KnownZone {
    pub(crate) entries: Range<u64>,
    pub(crate) bounds: Bounds,
    pub(crate) nulls: u64,
    /// Its entry in the attribute set.
    row: u64,
}

/// The filters of the zones of a field, in their order, and their memory; none for those that could not be read.
pub(crate) type Filters = (Arc<[Bloom]>, Option<Reservation>);

impl FieldZones {
    /// The zones in a cluster with these entries.
    pub(crate) fn within(&self, entries: &Range<u64>) -> &[KnownZone] {
        &self.zones[self.places(entries)]
    }

    /// Their places among all zones.
    pub(crate) fn places(&self, entries: &Range<u64>) -> Range<usize> {
        let before = |at: u64| self.zones.partition_point(|zone| zone.entries.start < at);
        before(entries.start)..before(entries.end)
    }

    /// Whether a cluster has zones for all its entries.
    pub(crate) fn cover(&self, entries: &Range<u64>) -> bool {
        let end = self.within(entries).iter().try_fold(entries.start, |next, KnownZone { entries, .. }| {
            (entries.start <= next).then_some(next.max(entries.end))
        });
        end.is_some_and(|end| end >= entries.end)
    }

    /// The filters of all zones. `read` gets their entries in the attribute set.
    ///
    /// # Errors
    /// Those of `read`, once: the filters then have no bits.
    pub(crate) fn filters(&self, read: &dyn Fn(&[u64]) -> Result<Filters>) -> Result<Arc<[Bloom]>> {
        let mut failed = None;
        let (filters, _) = self.filters.get_or_init(|| {
            let rows: Vec<u64> = self.zones.iter().map(|zone| zone.row).collect();
            if rows.is_empty() {
                return (Arc::default(), None);
            }
            read(&rows).unwrap_or_else(|error| {
                failed = Some(error);
                // They are not read again, and any value may be in them.
                (rows.iter().map(|_| Bloom::default()).collect(), None)
            })
        });
        failed.map_or(Ok(Arc::clone(filters)), Err)
    }
}

/// Ranges of entries with the bounds of fields, whose zones and filters are given.
pub(crate) fn bounds(fields: &[(Arc<FieldZones>, Arc<[Bloom]>)], entries: &Range<u64>) -> Vec<ZoneBounds> {
    let mut ends = vec![entries.start];
    let own = fields.iter().map(|(field, filters)| {
        let zones = &field.zones;
        let first = zones.partition_point(|zone| zone.entries.end <= entries.start);
        let count = zones[first..].partition_point(|zone| zone.entries.start < entries.end);
        let both = zones[first..first + count].iter().flat_map(|zone| [zone.entries.start, zone.entries.end]);
        ends.extend(both.map(|at| at.clamp(entries.start, entries.end)));
        (zones, first, filters)
    });
    let mut own: Vec<_> = own.collect();
    ends.push(entries.end);
    ends.sort_unstable();
    ends.dedup();
    let known = |range: Range<u64>| {
        let of_field = |(zones, next, filters): &mut (&Vec<KnownZone>, usize, &Arc<[Bloom]>)| {
            *next += zones[*next..].iter().take_while(|zone| zone.entries.end <= range.start).count();
            let zone = zones.get(*next)?;
            let is_known = zone.entries.start <= range.start && range.end <= zone.entries.end;
            let filter = filters.get(*next).filter(|filter| !filter.words().is_empty());
            is_known.then(|| KnownValues { bounds: zone.bounds, nulls: zone.nulls, filter: filter.cloned() })
        };
        ZoneBounds { known: own.iter_mut().map(of_field).collect(), entries: range }
    };
    ends.windows(2).map(|ends| ends[0]..ends[1]).map(known).collect()
}

/// Collects the zones of a field that are not stale.
pub(crate) struct Fresh<'n> {
    source: &'n Metadata,
    field: &'n Field,
    clusters: Vec<Cluster>,
    /// By the first entry of their cluster.
    found: BTreeMap<u64, Vec<KnownZone>>,
    digests: HashMap<u64, Option<u64>>,
    memory: Vec<Reservation>,
}

impl<'n> Fresh<'n> {
    /// None yet, of a field of an ntuple.
    pub(crate) fn of(source: &'n Metadata, field: &'n Field) -> Result<Self> {
        let clusters = source.clusters(0..source.descriptor().entries())?;
        let (found, digests) = (BTreeMap::new(), HashMap::new());
        Ok(Self { source, field, clusters, found, digests, memory: Vec::new() })
    }

    /// Adds entries of the attribute set, in their order.
    ///
    /// # Errors
    /// Unsupported for a set with other fields; limit if they need more memory than the file may take; those of page lists.
    pub(crate) fn add(&mut self, rows: &[u64], ranges: &[Range<u64>], values: &RecordBatch) -> Result<()> {
        let budget = self.source.session().budget();
        self.memory.push(budget.reserve(ranges.len() as u64 * MEMORY_PER_ZONE, "zone maps")?);
        let [lowest, highest, has_nan, nulls, digests] = VALUES.map(|name| values.column_by_name(name));
        let [lowest, highest] = [lowest, highest].map(|array| array?.as_primitive_opt::<Float64Type>());
        let (lowest, highest) = lowest.zip(highest).ok_or_else(of_another_program)?;
        let has_nan = has_nan.and_then(|array| array.as_boolean_opt()).ok_or_else(of_another_program)?;
        let [nulls, digests] = [nulls, digests].map(|array| array?.as_primitive_opt::<UInt64Type>());
        let (nulls, digests) = nulls.zip(digests).ok_or_else(of_another_program)?;
        for (place, (&row, entries)) in rows.iter().zip(ranges).enumerate() {
            let bounds =
                Bounds { lowest: lowest.value(place), highest: highest.value(place), has_nan: has_nan.value(place) };
            let zone = KnownZone { entries: entries.clone(), bounds, nulls: nulls.value(place), row };
            self.add_zone(zone, digests.value(place))?;
        }
        Ok(())
    }

    fn add_zone(&mut self, zone: KnownZone, stated: u64) -> Result<()> {
        let (entries, bounds) = (&zone.entries, &zone.bounds);
        let place = self.clusters.partition_point(|cluster| cluster.entry_range().end <= entries.start);
        let Some(cluster) = self.clusters.get(place) else { return Ok(()) };
        let range = cluster.entry_range();
        let is_within = range.start <= entries.start && entries.end <= range.end && !entries.is_empty();
        if !is_within || bounds.lowest.is_nan() || bounds.highest.is_nan() {
            return Ok(());
        }
        let known = match self.digests.get(&cluster.number) {
            Some(known) => *known,
            None => {
                let found = digest(self.source, self.field, cluster)?;
                self.digests.insert(cluster.number, found);
                found
            }
        };
        if known == Some(stated) {
            let own = self.found.entry(range.start).or_default();
            if own.last().is_some_and(|last| last.entries.end > entries.start) {
                // They were made once more: the last ones count.
                own.clear();
            }
            own.push(zone);
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> FieldZones {
        let zones = self.found.into_values().flatten().collect();
        FieldZones { zones, filters: OnceLock::new(), _memory: self.memory }
    }
}

/// The filters of zones, which were read from their attribute set.
///
/// # Errors
/// Unsupported for a set with other fields.
pub(crate) fn filters(lists: &ArrayRef) -> Result<Arc<[Bloom]>> {
    let lists = lists.as_list_opt::<i64>().ok_or_else(of_another_program)?;
    let words = lists.values().as_primitive_opt::<UInt64Type>().ok_or_else(of_another_program)?.values();
    let ends = lists.value_offsets().windows(2);
    Ok(ends.map(|ends| Bloom::from_words(words.slice(ends[0] as usize, (ends[1] - ends[0]) as usize))).collect())
}

#[cold]
pub(crate) fn of_another_program() -> Error {
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
