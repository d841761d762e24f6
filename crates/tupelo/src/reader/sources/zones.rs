//! Zone maps: the bounds of fields in ranges of entries, with which a cut passes over entries without reading them.
//!
//! They are an attribute set of the ntuple, [`ZONE_MAPS_SET`], with the path of the field, its lowest and highest value, whether
//! some value is NaN, and a digest of where the field is stored in the cluster. Zones whose digest is another one are stale,
//! and not used.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

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
use crate::source::{Cluster, Metadata};
use crate::{Error, Result};

/// Name of the attribute set with the zone maps of an ntuple.
pub const ZONE_MAPS_SET: &str = "zone_maps";
/// Its fields.
const COLUMNS: [&str; 6] = ["field", "lowest", "highest", "has_nan", "digest", "filter"];

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

    /// The zones of an attribute set, stale ones included.
    ///
    /// # Errors
    /// Unsupported for a set with other fields.
    pub(crate) fn parse(ranges: &[Range<u64>], values: &RecordBatch) -> Result<Vec<Self>> {
        let wrong = || Error::unsupported("its zone maps are of another program");
        let column = |place: usize| values.column_by_name(COLUMNS[place]).ok_or_else(wrong);
        let fields = column(0)?.as_string_opt::<i64>().ok_or_else(wrong)?;
        let [lowest, highest] = [column(1)?, column(2)?].map(|array| array.as_primitive_opt::<Float64Type>());
        let (lowest, highest) = lowest.zip(highest).ok_or_else(wrong)?;
        let has_nan = column(3)?.as_boolean_opt().ok_or_else(wrong)?;
        let digests = column(4)?.as_primitive_opt::<UInt64Type>().ok_or_else(wrong)?;
        let filters = column(5)?.as_list_opt::<i64>().ok_or_else(wrong)?;
        let words = filters.values().as_primitive_opt::<UInt64Type>().ok_or_else(wrong)?;
        let filter = |place: usize| {
            let [start, end] = [0, 1].map(|next| filters.value_offsets()[place + next] as usize);
            Bloom(words.values()[start..end].to_vec())
        };
        let zone = |(place, entries): (usize, &Range<u64>)| Self {
            field: fields.value(place).to_owned(),
            entries: entries.clone(),
            bounds: Bounds {
                lowest: lowest.value(place),
                highest: highest.value(place),
                has_nan: has_nan.value(place),
            },
            digest: digests.value(place),
            filter: filter(place),
        };
        Ok(ranges.iter().enumerate().map(zone).collect())
    }
}

/// What zone maps say of some fields in a range of entries.
#[derive(Debug, Clone, PartialEq)]
pub struct ZoneBounds {
    /// The range of entries.
    pub entries: Range<u64>,
    known: Vec<Option<(Bounds, Arc<Bloom>)>>,
}

impl ZoneBounds {
    /// The bounds of a field, by its place among those that were asked for; `None` where nothing is known.
    pub fn bounds(&self, place: usize) -> Option<Bounds> {
        self.known(place).map(|(bounds, _)| bounds)
    }

    pub(crate) fn known(&self, place: usize) -> Option<Known<'_>> {
        self.known.get(place)?.as_ref().map(|(bounds, filter)| (*bounds, Some(&**filter)))
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

/// The zones of an ntuple that are not stale, by field, in the order of their entries.
#[derive(Debug, Default)]
pub(crate) struct Zones(HashMap<String, Vec<KnownZone>>);

/// A zone of one field.
pub(crate) type KnownZone = (Range<u64>, (Bounds, Arc<Bloom>));

impl Zones {
    /// Those of an ntuple with these fields that are not stale.
    pub(crate) fn fresh(source: &Metadata, schema: &Schema, zones: &[Zone]) -> Result<Self> {
        let mut found: BTreeMap<(&str, u64), Vec<KnownZone>> = BTreeMap::new();
        let fields: HashMap<&str, &Field> = schema.fields.iter().map(|field| (field.name.as_str(), field)).collect();
        let mut digests: HashMap<(&str, u64), Option<u64>> = HashMap::new();
        let clusters = source.clusters(0..source.descriptor().entries())?;
        for zone in zones {
            let place = clusters.partition_point(|cluster| cluster.entry_range().end <= zone.entries.start);
            let (Some(cluster), Some(field)) = (clusters.get(place), fields.get(zone.field.as_str())) else { continue };
            let range = cluster.entry_range();
            let is_within =
                range.start <= zone.entries.start && zone.entries.end <= range.end && !zone.entries.is_empty();
            if !is_within || zone.bounds.lowest.is_nan() || zone.bounds.highest.is_nan() {
                continue;
            }
            let known = match digests.entry((&zone.field, cluster.number)) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => *new.insert(digest(source, field, cluster)?),
            };
            if known != Some(zone.digest) {
                continue;
            }
            let own = found.entry((&zone.field, range.start)).or_default();
            if own.last().is_some_and(|(last, _)| last.end > zone.entries.start) {
                // They were made once more: the last ones count.
                own.clear();
            }
            own.push((zone.entries.clone(), (zone.bounds, Arc::new(zone.filter.clone()))));
        }
        let mut by_field: HashMap<String, Vec<KnownZone>> = HashMap::new();
        for ((field, _), zones) in found {
            by_field.entry(field.to_owned()).or_default().extend(zones);
        }
        Ok(Self(by_field))
    }

    /// Whether a cluster has fresh zones of a field for all its entries, with filters where they are wanted.
    pub(crate) fn cover(&self, field: &str, entries: &Range<u64>, with_filters: bool) -> bool {
        let mut next = entries.start;
        for (zone, (_, filter)) in self.0.get(field).into_iter().flatten() {
            if zone.start <= next && next < zone.end && !(with_filters && filter.0.is_empty()) {
                next = zone.end;
            }
        }
        next >= entries.end
    }

    /// The zones of a field in a cluster with these entries, and what they say.
    pub(crate) fn of_field(&self, field: &str, entries: &Range<u64>) -> &[KnownZone] {
        let all = self.0.get(field).map_or(&[][..], Vec::as_slice);
        let [first, end] = [entries.start, entries.end].map(|at| all.partition_point(|(zone, _)| zone.start < at));
        &all[first..end]
    }

    /// Ranges of entries with the bounds of fields.
    pub(crate) fn bounds(&self, fields: &[&str], entries: &Range<u64>) -> Vec<ZoneBounds> {
        let zones_of = |name: &&str| self.0.get(*name).map_or(&[][..], Vec::as_slice);
        let zones: Vec<&[KnownZone]> = fields.iter().map(zones_of).collect();
        let mut ends: BTreeSet<u64> = [entries.start, entries.end].into();
        for own in &zones {
            let first = own.partition_point(|(zone, _)| zone.end <= entries.start);
            let within = own[first..].iter().take_while(|(zone, _)| zone.start < entries.end);
            let both = within.flat_map(|(zone, _)| [zone.start, zone.end]);
            ends.extend(both.map(|at| at.clamp(entries.start, entries.end)));
        }
        let ranges = ends.iter().zip(ends.iter().skip(1)).map(|(start, end)| *start..*end);
        let known = |range: Range<u64>| {
            let of_field = |own: &&[KnownZone]| {
                let (zone, known) = own.get(own.partition_point(|(zone, _)| zone.end <= range.start))?;
                (zone.start <= range.start && range.end <= zone.end).then(|| known.clone())
            };
            ZoneBounds { known: zones.iter().map(of_field).collect(), entries: range }
        };
        ranges.map(known).collect()
    }
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
