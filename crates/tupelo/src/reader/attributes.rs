//! Attribute sets: attributes of ranges of entries (format specification, "Linked Attribute Sets").

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{ArrayRef, BooleanArray, RecordBatch, StructArray, UInt64Array};
use tupelo_schema::expression::Bloom;
use tupelo_schema::schema::{Field, Kind, Schema};

use super::explain::explain;
use super::read::Read;
use super::sources::zones::{
    self, FIELD, FILTER, FieldZones, Fresh, Rows, VALUES, ZONE_MAPS_SET, Zone, ZoneBounds, Zones,
};
use super::sources::{METADATA_SET, Ntuple};
use crate::{Error, ErrorKind, Result};

/// The fields of [`METADATA_SET`]. A set of that name with other fields belongs to another program.
pub(crate) fn metadata_schema() -> Schema {
    let text = |name: &str| Field::new(name, "std::string", Kind::String);
    Schema { fields: vec![text("key"), text("value")] }
}

/// Field of a set with the first entry of the range.
pub(crate) const RANGE_START: &str = "_rangeStart";
/// Field with the number of entries of the range.
pub(crate) const RANGE_LENGTH: &str = "_rangeLen";
/// Field with the attributes of the range.
pub(crate) const USER_DATA: &str = "_userData";

/// The end of the path of the column with the bits of filters.
const FILTER_WORDS: &str = ".filter._0";
/// Zones that are read together.
const BATCH_ROWS: u64 = 1 << 16;
/// Bytes of zones that are all read with one request, whatever their fields, once decompressed: 1 MiB.
const MAX_SMALL_BYTES: u64 = 1 << 20;

/// Entries of an attribute set: ranges of entries of the ntuple, and their attributes.
#[derive(Debug, Clone)]
pub struct Attributes {
    ranges: Vec<Range<u64>>,
    values: RecordBatch,
}

impl Attributes {
    /// The columns to be read for [`of`](Self::of), with these attributes only.
    pub(crate) fn columns(attributes: &[&str]) -> Vec<String> {
        let ranges = [RANGE_START, RANGE_LENGTH].map(str::to_owned);
        ranges.into_iter().chain(Self::data(attributes)).collect()
    }

    /// The columns of these attributes, without their ranges.
    fn data(attributes: &[&str]) -> Vec<String> {
        attributes.iter().map(|name| format!("{USER_DATA}.{name}")).collect()
    }

    /// Entries that were read from an attribute set.
    ///
    /// # Errors
    /// Corrupt if they lack the fields of an attribute set.
    pub(crate) fn of(set: &Ntuple, read: &RecordBatch) -> Result<Self> {
        let misfit = || set.context(Error::corrupt("it lacks the fields of an attribute set"));
        let number = |field: &str| {
            let column = read.column_by_name(field).and_then(|column| column.as_primitive_opt::<UInt64Type>());
            column.ok_or_else(misfit)
        };
        let (starts, lengths) = (number(RANGE_START)?, number(RANGE_LENGTH)?);
        let data = read.column_by_name(USER_DATA).and_then(|column| column.as_struct_opt()).ok_or_else(misfit)?;
        let range = |(&start, &length): (&u64, &u64)| {
            let end = start.checked_add(length);
            Ok(start..end.ok_or_else(|| {
                set.context(Error::corrupt(format!("{length} entries from entry {start} are too many")))
            })?)
        };
        let ranges = starts.values().iter().zip(lengths.values()).map(range).collect::<Result<_>>()?;
        let (fields, columns, _) = StructArray::into_parts(data.clone());
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(read.num_rows()));
        let schema = arrow_schema::Schema::new(fields);
        Ok(Self { ranges, values: RecordBatch::try_new_with_options(schema.into(), columns, &options)? })
    }

    /// The range of entries that each attribute entry refers to.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }

    /// The attributes of each range, with one column per field of the set.
    pub fn values(&self) -> &RecordBatch {
        &self.values
    }

    /// The attributes whose range contains an entry.
    ///
    /// # Errors
    /// Errors of the Arrow filter kernel, which do not occur for a set that was read from a file.
    pub fn of_entry(&self, entry: u64) -> Result<Self> {
        self.filter(|range| range.contains(&entry))
    }

    /// The attributes whose range contains all entries of `entries`.
    ///
    /// # Errors
    /// As [`Attributes::of_entry`].
    pub fn containing(&self, entries: Range<u64>) -> Result<Self> {
        self.filter(|range| range.start <= entries.start && entries.end <= range.end)
    }

    /// The attributes whose range overlaps `entries`.
    ///
    /// # Errors
    /// As [`Attributes::of_entry`].
    pub fn overlapping(&self, entries: Range<u64>) -> Result<Self> {
        self.filter(|range| range.start.max(entries.start) < range.end.min(entries.end))
    }

    /// The attributes whose range lies within `entries`.
    ///
    /// # Errors
    /// As [`Attributes::of_entry`].
    pub fn within(&self, entries: Range<u64>) -> Result<Self> {
        self.filter(|range| entries.start <= range.start && range.end <= entries.end)
    }

    /// The attributes with their ranges mapped by `place`, which returns the new number of an entry. Attributes whose
    /// range becomes empty are dropped.
    pub(crate) fn moved(&self, place: impl Fn(u64) -> u64) -> Result<Self> {
        let moved = |range: &Range<u64>| place(range.start)..place(range.end);
        let mut left = self.filter(|range| !moved(range).is_empty())?;
        left.ranges.iter_mut().for_each(|range| *range = moved(range));
        Ok(left)
    }

    /// Some of the entries with these ranges and values, by their places.
    fn taken(ranges: &[Range<u64>], values: &RecordBatch, places: &[u64]) -> Result<Self> {
        let ranges = places.iter().filter_map(|&place| ranges.get(place as usize).cloned()).collect();
        let values = arrow_select::take::take_record_batch(values, &UInt64Array::from(places.to_vec()))?;
        Ok(Self { ranges, values })
    }

    /// The key-value pairs of a set whose only columns are `key` and `value`.
    fn pairs(&self) -> Option<BTreeMap<String, String>> {
        let text = |field: &str| self.values.column_by_name(field)?.as_string_opt::<i64>();
        let pairs = text("key")?.iter().flatten().zip(text("value")?.iter().flatten());
        Some(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    }

    fn filter(&self, keep: impl Fn(&Range<u64>) -> bool) -> Result<Self> {
        let kept: BooleanArray = self.ranges.iter().map(|range| Some(keep(range))).collect();
        let ranges = self.ranges.iter().filter(|range| keep(range)).cloned().collect();
        Ok(Self { ranges, values: arrow_select::filter::filter_record_batch(&self.values, &kept)? })
    }
}

impl Ntuple {
    /// All entries of an attribute set, in the order in which they were written.
    ///
    /// # Errors
    /// Not found, with near names; corrupt if it cannot be read or lacks the fields of an attribute set.
    pub fn attributes(&self, name: &str) -> Result<Attributes> {
        self.attribute_set(name)?.all_attributes(false)
    }

    /// All entries of this ntuple, which is an attribute set.
    pub(crate) fn all_attributes(&self, binary_strings: bool) -> Result<Attributes> {
        Attributes::of(self, &self.read_all().with_binary_strings(binary_strings).to_batch()?)
    }

    /// The metadata of the application that wrote the ntuple ([`METADATA_SET`]); empty if there is none.
    ///
    /// # Errors
    /// Corrupt if the metadata cannot be read; unsupported if the set has fields other than the `std::string` fields
    /// `key` and `value`: such a set belongs to another program and can be read with [`Ntuple::attributes`].
    pub fn metadata(&self) -> Result<BTreeMap<String, String>> {
        match self.metadata_set()? {
            None => Ok(BTreeMap::new()),
            Some(set) if set.is_metadata() => Ok(set.all_attributes(false)?.pairs().unwrap_or_default()),
            Some(_) => Err(self.context(Error::unsupported(format!(
                "attribute set '{METADATA_SET}' is of another program: its fields are not the strings 'key' and \
                 'value'; read it as an attribute set"
            )))),
        }
    }

    /// The metadata, if the set has exactly the fields of [`metadata_schema`], unique keys, and ranges that cover all
    /// entries. `None` for a set that another program uses differently.
    pub(crate) fn own_metadata(&self) -> Result<Option<BTreeMap<String, String>>> {
        let set = match self.metadata_set() {
            Ok(None) => return Ok(Some(BTreeMap::new())),
            Ok(Some(set)) if set.is_metadata() => set,
            Ok(Some(_)) => return Ok(None),
            // A set that this version does not support belongs to another program.
            Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(None),
            Err(error) => return Err(error),
        };
        let read = set.all_attributes(false)?;
        let speaks_of_all = read.ranges.iter().all(|range| *range == (0..self.entries()));
        Ok(read.pairs().filter(|pairs| speaks_of_all && pairs.len() == read.ranges.len()))
    }

    fn metadata_set(&self) -> Result<Option<Self>> {
        let is_there = self.attribute_sets().any(|set| set == METADATA_SET);
        is_there.then(|| self.attribute_set(METADATA_SET)).transpose()
    }

    /// Whether this set has the fields of metadata and no others, those included that this version cannot read.
    fn is_metadata(&self) -> bool {
        self.warnings().is_empty() && self.has_user_data(&metadata_schema())
    }

    /// The fields of what this attribute set says, with only those encodings that its writer chose.
    ///
    /// # Errors
    /// Corrupt if it has no such fields.
    pub(crate) fn user_schema(&self) -> Result<Schema> {
        let schema = self.explicit_encodings(self.schema());
        match schema.fields.into_iter().find(|field| field.name == USER_DATA).map(|field| field.kind) {
            Some(Kind::Record(fields)) => Ok(Schema { fields }),
            _ => Err(self.context(Error::corrupt("it lacks the fields of an attribute set"))),
        }
    }

    /// Whether this is an attribute set with values of a schema.
    pub(crate) fn has_user_data(&self, schema: &Schema) -> bool {
        let data = self.schema().fields.iter().find(|field| field.name == USER_DATA);
        data.is_some_and(|data| matches!(&data.kind, Kind::Record(fields) if alike(fields, &schema.fields)))
    }
}

/// Zone maps.
impl Ntuple {
    /// Which zone maps there are.
    ///
    /// # Errors
    /// Unsupported for a set of another program; limit if they need more memory than the file may take; those of reading.
    pub(crate) fn read_zones(&self) -> Result<Zones> {
        let Some(set) = self.zones_set()? else { return Ok(Zones::default()) };
        let (all, mut rows) = (all_zones(&set)?, Rows::of(self.schema()));
        let is_small = all.explain()?.unpacked_bytes() <= MAX_SMALL_BYTES;
        let mut values = None;
        if is_small {
            let batch = all.to_batch()?;
            rows.add(attribute(&batch, FIELD)?, self.source().session().budget())?;
            let Attributes { ranges, values: read } = Attributes::of(&set, &batch)?;
            values = Some((ranges, read));
        } else {
            for batch in set.read(Attributes::data(&[FIELD]))?.batches(BATCH_ROWS)? {
                rows.add(attribute(&batch?, FIELD)?, self.source().session().budget())?;
            }
        }
        Ok(rows.finish(values))
    }

    /// The attribute set with zone maps, if there is one.
    fn zones_set(&self) -> Result<Option<Self>> {
        if !self.attribute_sets().any(|set| set == ZONE_MAPS_SET) {
            return Ok(None);
        }
        let open = || {
            let set = self.attribute_set(ZONE_MAPS_SET)?;
            if set.has_zones() { Ok(set) } else { Err(self.context(zones::of_another_program())) }
        };
        self.zone_maps_set(open).map(Some)
    }

    /// Whether this attribute set has the fields of zone maps. Another program may have a set with this name.
    pub(super) fn has_zones(&self) -> bool {
        Zone::schema().is_ok_and(|zones| self.has_user_data(&zones))
    }

    /// The zones of a field that are not stale.
    ///
    /// # Errors
    /// As [`read_zones`](Self::read_zones), once: nothing is known of the field then.
    pub(crate) fn field_zones(&self, zones: &Zones, field: &str) -> Result<Arc<FieldZones>> {
        zones.of_field(field, &|| {
            let own = self.schema().fields.iter().find(|own| own.name == field);
            let (Some(field), Some(set)) = (own, self.zones_set()?) else { return Ok(FieldZones::default()) };
            let mut fresh = Fresh::of(self.source(), field)?;
            let mut rows = zones.rows(&field.name).iter().cloned().flatten();
            loop {
                let part: Vec<u64> = rows.by_ref().take(BATCH_ROWS as usize).collect();
                if part.is_empty() {
                    return Ok(fresh.finish());
                }
                let values = match &zones.values {
                    Some((ranges, values)) => Attributes::taken(ranges, values, &part)?,
                    None => Attributes::of(&set, &set.read(Attributes::columns(&VALUES))?.take(&part)?)?,
                };
                fresh.add(&part, values.ranges(), values.values())?;
            }
        })
    }

    /// The filters of the zones of a field.
    ///
    /// # Errors
    /// As [`read_zones`](Self::read_zones), once: the filters then have no bits.
    pub(crate) fn zone_filters(&self, zones: &FieldZones) -> Result<Arc<[Bloom]>> {
        zones.filters(&|rows| {
            let none = || rows.iter().map(|_| Bloom::default()).collect();
            let Some(set) = self.zones_set()? else { return Ok((none(), None)) };
            let read = set.read(Attributes::data(&[FILTER]))?;
            if !has_filters(&read)? {
                return Ok((none(), None));
            }
            // At most: the words of other fields may be in the same pages.
            let entries = rows.iter().map(|&row| row..row + 1).collect();
            let words = explain(set.source(), &[], read.stored_fields(), &entries)?.unpacked_bytes();
            let bytes = words + (rows.len() * size_of::<Bloom>()) as u64;
            let memory = self.source().session().budget().reserve(bytes, "the filters of zone maps")?;
            Ok((zones::filters(attribute(&read.take(rows)?, FILTER)?)?, Some(memory)))
        })
    }

    /// What zone maps say of fields in a range of entries, with filters of the `filtered` ones.
    pub(super) fn zone_bounds(
        &self,
        fields: &[&str],
        entries: &Range<u64>,
        filtered: &BTreeSet<&str>,
    ) -> Vec<ZoneBounds> {
        let zones = self.zone_maps();
        // Where they cannot be read, more entries are read.
        let of_field = |field: &&str| {
            let own = self.field_zones(zones, field).unwrap_or_default();
            let wants_filters = filtered.contains(field);
            let filters = wants_filters.then(|| self.zone_filters(&own).unwrap_or_default());
            (own, filters.unwrap_or_default())
        };
        zones::bounds(&fields.iter().map(of_field).collect::<Vec<_>>(), entries)
    }

    /// Stored bytes that are read of the zone maps of fields, with filters of the `filtered` ones: once for an open ntuple.
    pub(super) fn stored_bytes_of_zones(&self, fields: &[&str], filtered: &BTreeSet<&str>) -> Result<u64> {
        let zones = self.zone_maps();
        let Ok(Some(set)) = self.zones_set() else { return Ok(0) };
        let filters = set.read(Attributes::data(&[FILTER]))?;
        let (first, values) = match zones.values {
            Some(_) => (all_zones(&set)?, None),
            None => (set.read(Attributes::data(&[FIELD]))?, Some(set.read(Attributes::columns(&VALUES))?)),
        };
        let mut bytes = first.explain()?.stored_bytes();
        let has_filters = has_filters(&filters)?;
        for field in fields {
            let rows = zones.rows(field).iter().cloned().collect();
            let stored = |read: &Read| explain(set.source(), &[], read.stored_fields(), &rows);
            if let Some(values) = &values {
                bytes += stored(values)?.stored_bytes();
            }
            if has_filters && filtered.contains(field) {
                let own = self.zone_filters(&*self.field_zones(zones, field)?)?;
                let has_words = own.iter().any(|filter| !filter.words().is_empty());
                let columns = stored(&filters)?.columns;
                let read = columns.iter().filter(|column| has_words || !column.field.ends_with(FILTER_WORDS));
                bytes += read.map(|column| column.stored_bytes).sum::<u64>();
            }
        }
        Ok(bytes)
    }
}

/// All zones of an attribute set, without filters.
fn all_zones(set: &Ntuple) -> Result<Read> {
    set.read(Attributes::columns(&[&[FIELD], &VALUES[..]].concat()))
}

/// The values of one of the attributes that were read of zone maps.
fn attribute<'b>(batch: &'b RecordBatch, name: &str) -> Result<&'b ArrayRef> {
    let data = batch.column_by_name(USER_DATA).and_then(|column| column.as_struct_opt());
    data.and_then(|data| data.column_by_name(name)).ok_or_else(zones::of_another_program)
}

/// Whether some zone has a filter with bits.
fn has_filters(read: &Read) -> Result<bool> {
    Ok(read.explain()?.columns.iter().any(|column| column.field.ends_with(FILTER_WORDS)))
}

/// Whether fields have the same names and shapes, however they are stored.
fn alike(one: &[Field], other: &[Field]) -> bool {
    let shape = |field: &Field| std::mem::discriminant(&field.kind);
    one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| {
            one.name == other.name
                && one.type_name == other.type_name
                && shape(one) == shape(other)
                && alike(one.children(), other.children())
        })
}
