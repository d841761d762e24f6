//! Zone maps: the bounds of fields in ranges of entries, with which a cut passes over entries without reading them.
//!
//! They are an attribute set of the ntuple, [`ZONE_MAPS_SET`], with the path of the field, its lowest and highest value, whether
//! some value is NaN, and a digest of where the field is stored in the cluster. Zones whose digest is another one are stale,
//! and not used.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, LargeStringArray, RecordBatch, UInt64Array};
use arrow_buffer::BooleanBufferBuilder;
use arrow_schema::{DataType, Field as ArrowField, Schema as ArrowSchema};
use tupelo_format::checksum::xxh3;
use tupelo_format::locator::Locator;

use crate::expression::{Bounds, Expression};
use crate::plan::{self, ColumnTable, EntrySet, PageId};
use crate::schema::{Field, Schema};
use crate::source::{Cluster, Metadata};
use crate::{Error, Result};

/// Name of the attribute set with the zone maps of an ntuple.
pub const ZONE_MAPS_SET: &str = "zone_maps";
/// Its fields.
const COLUMNS: [&str; 5] = ["field", "lowest", "highest", "has_nan", "digest"];

/// The bounds of a field in a range of entries.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Zone {
    pub(crate) field: String,
    pub(crate) entries: Range<u64>,
    pub(crate) bounds: Bounds,
    pub(crate) digest: u64,
}

impl Zone {
    /// The schema of the attribute set.
    pub(crate) fn schema() -> Result<Schema> {
        Schema::from_arrow(&Self::arrow_schema())
    }

    fn arrow_schema() -> ArrowSchema {
        let types = [DataType::LargeUtf8, DataType::Float64, DataType::Float64, DataType::Boolean, DataType::UInt64];
        ArrowSchema::new(
            COLUMNS.iter().zip(types).map(|(name, of)| ArrowField::new(*name, of, false)).collect::<Vec<_>>(),
        )
    }

    /// The values of the attribute set.
    pub(crate) fn batch(zones: &[Self]) -> Result<RecordBatch> {
        let numbers = |of: fn(&Self) -> f64| Arc::new(Float64Array::from_iter_values(zones.iter().map(of))) as ArrayRef;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(LargeStringArray::from_iter_values(zones.iter().map(|zone| &zone.field))),
            numbers(|zone| zone.bounds.lowest),
            numbers(|zone| zone.bounds.highest),
            Arc::new(zones.iter().map(|zone| Some(zone.bounds.has_nan)).collect::<BooleanArray>()),
            Arc::new(UInt64Array::from_iter_values(zones.iter().map(|zone| zone.digest))),
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
        let zone = |(place, entries): (usize, &Range<u64>)| Self {
            field: fields.value(place).to_owned(),
            entries: entries.clone(),
            bounds: Bounds {
                lowest: lowest.value(place),
                highest: highest.value(place),
                has_nan: has_nan.value(place),
            },
            digest: digests.value(place),
        };
        Ok(ranges.iter().enumerate().map(zone).collect())
    }
}

/// The zones of an ntuple that are not stale, by field, in the order of their entries.
#[derive(Debug, Default)]
pub(crate) struct Zones(HashMap<String, Vec<(Range<u64>, Bounds)>>);

impl Zones {
    /// Those of an ntuple with these fields that are not stale.
    pub(crate) fn fresh(source: &Metadata, schema: &Schema, zones: &[Zone]) -> Result<Self> {
        let mut found: HashMap<String, Vec<(Range<u64>, Bounds)>> = HashMap::new();
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
            if known == Some(zone.digest) {
                found.entry(zone.field.clone()).or_default().push((zone.entries.clone(), zone.bounds));
            }
        }
        found.values_mut().for_each(|zones| zones.sort_by_key(|(entries, _)| entries.start));
        Ok(Self(found))
    }

    /// Whether a cluster has fresh zones of a field for all its entries.
    pub(crate) fn cover(&self, field: &str, entries: &Range<u64>) -> bool {
        let mut next = entries.start;
        for (zone, _) in self.0.get(field).into_iter().flatten() {
            if zone.start <= next && next < zone.end {
                next = zone.end;
            }
        }
        next >= entries.end
    }

    /// The entries of a range for which a cut may be true. `is_field` tells which of its names are fields.
    pub(crate) fn possible(&self, cut: &Expression, is_field: &dyn Fn(&str) -> bool, entries: &Range<u64>) -> EntrySet {
        let used: HashMap<&str, &[(Range<u64>, Bounds)]> = cut
            .fields()
            .filter(|name| is_field(name))
            .filter_map(|name| Some((name, self.0.get(name)?.as_slice())))
            .collect();
        if used.is_empty() {
            return entries.clone().into();
        }
        let overlapping = |zones: &'_ [(Range<u64>, Bounds)]| {
            let first = zones.partition_point(|(zone, _)| zone.end <= entries.start);
            let last = zones.partition_point(|(zone, _)| zone.start < entries.end);
            first..last.max(first)
        };
        let mut ends: BTreeSet<u64> = [entries.start, entries.end].into();
        for zones in used.values() {
            let own = zones.get(overlapping(zones)).unwrap_or_default();
            ends.extend(
                own.iter().flat_map(|(zone, _)| [zone.start, zone.end]).map(|at| at.clamp(entries.start, entries.end)),
            );
        }
        let bounds = |name: &str, range: &Range<u64>| {
            let zones = used.get(name)?;
            let place = zones.partition_point(|(zone, _)| zone.end <= range.start);
            let (zone, bounds) = zones.get(place)?;
            (zone.start <= range.start && range.end <= zone.end).then_some(*bounds)
        };
        let ranges = ends.iter().zip(ends.iter().skip(1)).map(|(start, end)| *start..*end);
        ranges.filter(|range| cut.may_be_true(&|name| bounds(name, range))).collect()
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
    match data_type {
        DataType::LargeList(item) => has_bounds(item.data_type()),
        DataType::FixedSizeList(item, _) => has_bounds(item.data_type()),
        other => other.is_integer() || matches!(other, DataType::Float32 | DataType::Float64),
    }
}
