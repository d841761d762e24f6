//! Making zone maps: the bounds of fields in ranges of entries, stored with the ntuple. Reading with
//! [`Read::with_where`](crate::reader::Read::with_where) passes over entries for which the cut cannot be true.

use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType};
use arrow_schema::DataType;
use tupelo_schema::expression::{Bloom, Bounds};
use tupelo_schema::schema::{Field, escaped};

use crate::reader::Ntuple;
pub use crate::reader::zones::ZONE_MAPS_SET;
use crate::reader::zones::{KnownZone, Zone, Zones, digest, has_bounds, has_integers};
use crate::writer::{AttributeSetWriter, FileWriter, WriteOptions};
use crate::{Error, ErrorKind, Remedy, Result};

/// Default number of entries of a zone.
pub const DEFAULT_ZONE_ENTRIES: u64 = 8192;
/// Memory of zones that are not written yet: 64 MiB.
const MAX_PENDING_BYTES: usize = 64 << 20;
/// A cut reads the pages with zones of its fields: those of a field of some million entries are smaller than the usual page.
const PAGE_BYTES: u64 = 32 << 10;

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ZonesWritten {
    /// Number of fields with zones.
    pub fields: usize,
    /// Number of new zones.
    pub zones: usize,
}

/// Which zone maps are made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ZoneOptions {
    fields: Vec<String>,
    filtered: Vec<String>,
    zone_entries: Option<u64>,
    rebuilds: bool,
}

impl ZoneOptions {
    /// The fields, as dotted paths or globs. By default those with filters, or without any all that are numbers or lists of
    /// numbers.
    #[must_use]
    pub fn with_fields<S: Into<String>>(self, patterns: impl IntoIterator<Item = S>) -> Self {
        Self { fields: patterns.into_iter().map(Into::into).collect(), ..self }
    }

    /// The fields of integers, or lists of them, with Bloom filters too: 10 bits for each different value of a zone. Where a cut
    /// compares with `==` or `in`, about one in a hundred zones without the value is read. By default none.
    #[must_use]
    pub fn with_filters<S: Into<String>>(self, patterns: impl IntoIterator<Item = S>) -> Self {
        Self { filtered: patterns.into_iter().map(Into::into).collect(), ..self }
    }

    /// Number of entries of a zone; by default [`DEFAULT_ZONE_ENTRIES`], or more where there are such zones. The zones of clusters
    /// with larger ones are made once more.
    #[must_use]
    pub fn with_zone_entries(self, zone_entries: u64) -> Self {
        Self { zone_entries: Some(zone_entries), ..self }
    }

    /// Makes all zone maps of the fields again, and drops the others: also where the attribute set cannot be read, is of another
    /// program, or contradicts the values. By default false.
    #[must_use]
    pub fn with_rebuild(self, rebuilds: bool) -> Self {
        Self { rebuilds, ..self }
    }
}

/// Adds zone maps to an ntuple of a file that is updated. Clusters whose zones are there, and not stale, are left as they are.
/// `progress` gets the number of entries that are done, and may end the work: the result is then `None`, and the file can only
/// be dropped.
/// ```no_run
/// use std::ops::ControlFlow;
/// use tupelo::ops::index::zones::{ZoneOptions, write_zones};
///
/// let file = tupelo::update("events.root")?;
/// let options = ZoneOptions::default().with_fields(["run", "MET_*"]).with_filters(["event"]);
/// write_zones(&file, "Events", &options, &mut |_| ControlFlow::Continue(()))?;
/// file.finish()?;
/// # Ok::<(), tupelo::Error>(())
/// ```
///
/// # Errors
/// Not found for a pattern that matches no field; invalid argument for one that matches no field with numbers, or integers for
/// filters and for zones of no entries; unsupported for a set of the same name with other fields, and those of reading it, if it is
/// not rebuilt; those of reading the fields and of [`FileWriter::append`].
pub fn write_zones(
    file: &FileWriter,
    path: &str,
    options: &ZoneOptions,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Option<ZonesWritten>> {
    let ntuple = file.updated()?.0.ntuple(Some(path))?;
    let known = if options.rebuilds { Zones::default() } else { ntuple.read_zones().map_err(unreadable)? };
    let fields = chosen(&ntuple, options)?;
    if fields.is_empty() {
        return Ok(Some(ZonesWritten::default()));
    }
    let mut writer = file.append(path, WriteOptions::default().with_page_bytes(PAGE_BYTES))?;
    let mut set = match options.rebuilds {
        true => writer.replace_attribute_set(ZONE_MAPS_SET, &Zone::schema()?)?,
        false => writer.attribute_set(ZONE_MAPS_SET, &Zone::schema()?)?,
    };
    let mut written = ZonesWritten { fields: fields.len(), zones: 0 };
    let (mut pending, mut pending_bytes) = (Vec::new(), 0);
    let source = ntuple.source();
    for cluster in source.clusters(0..ntuple.entries()).map_err(|e| ntuple.context(e))? {
        let range = cluster.entry_range();
        let mut missing: HashMap<&str, Missing> = HashMap::new();
        for (field, has_filter) in &fields {
            let is_fine = |zone: &KnownZone| {
                options.zone_entries.is_none_or(|most| zone.entries.end - zone.entries.start <= most)
            };
            let zones = match options.rebuilds {
                true => Arc::default(),
                false => ntuple.field_zones(&known, &field.name).map_err(unreadable)?,
            };
            let own = zones.within(&range);
            let is_known = zones.cover(&range) && own.iter().all(is_fine);
            if is_known && !has_filter {
                continue;
            }
            let filters = match own.is_empty() {
                true => Arc::default(),
                false => ntuple.zone_filters(&zones).map_err(unreadable)?,
            };
            let mut own = filters.get(zones.places(&range)).unwrap_or_default().iter();
            if is_known && own.clone().all(|filter| !filter.words().is_empty()) {
                continue;
            }
            // Zones that are made once more keep filters.
            let has_filter = *has_filter || own.any(|filter| !filter.words().is_empty());
            let missing_zone = |digest| (field.name.as_str(), Missing { digest, has_filter });
            missing.extend(digest(source, field, &cluster)?.map(missing_zone));
        }
        let made = zones(&ntuple, &missing, &range, options.zone_entries.unwrap_or(DEFAULT_ZONE_ENTRIES))?;
        written.zones += made.len();
        pending_bytes += made.iter().map(Zone::memory).sum::<usize>();
        pending.extend(made);
        if pending_bytes > MAX_PENDING_BYTES {
            write_together(&mut set, &mut pending)?;
            pending_bytes = 0;
        }
        if progress(range.end).is_break() {
            return Ok(None);
        }
    }
    write_together(&mut set, &mut pending)?;
    writer.finish()?;
    Ok(Some(written))
}

/// What can be done about zone maps that are damaged or of another layout.
#[cold]
fn unreadable(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Corrupt | ErrorKind::CutOff | ErrorKind::Unsupported => error.with_remedy(Remedy::RebuildZoneMaps),
        _ => error,
    }
}

/// Writes zones, those of one field together: only these are read for a cut.
fn write_together(set: &mut AttributeSetWriter, zones: &mut Vec<Zone>) -> Result<()> {
    zones.sort_by(|a, b| a.field.cmp(&b.field));
    let ranges: Vec<Range<u64>> = zones.iter().map(|zone| zone.entries.clone()).collect();
    set.write(&ranges, &Zone::batch(zones)?)?;
    zones.clear();
    Ok(())
}

/// The fields that get zones, and whether they get filters too.
fn chosen(ntuple: &Ntuple, options: &ZoneOptions) -> Result<Vec<(Field, bool)>> {
    let filtered = matching(ntuple, &options.filtered, has_integers, "an integer or a list of integers")?;
    let mut fields =
        matching(ntuple, &options.fields, has_bounds, "a number or a list of numbers, so that it has no bounds")?;
    if options.fields.is_empty() && options.filtered.is_empty() {
        fields = top_level(ntuple, &["*"], has_bounds)?;
    }
    let others = fields.into_iter().filter(|field| filtered.iter().all(|other| other.name != field.name));
    let others: Vec<(Field, bool)> = others.map(|field| (field, false)).collect();
    Ok(others.into_iter().chain(filtered.into_iter().map(|field| (field, true))).collect())
}

/// The fields of patterns that have a suitable type; each pattern must have one.
fn matching(ntuple: &Ntuple, patterns: &[String], suits: fn(&DataType) -> bool, what: &str) -> Result<Vec<Field>> {
    for pattern in patterns {
        if top_level(ntuple, &[pattern], suits)?.is_empty() {
            let is_below = pattern.contains('.') && !ntuple.schema().fields.iter().any(|field| field.name == *pattern);
            let told = match is_below {
                true => format!("'{pattern}' is a subfield: only fields of the top level have zone maps"),
                false => format!("'{pattern}' is not {what}"),
            };
            return Err(ntuple.context(Error::invalid_argument(told)));
        }
    }
    if patterns.is_empty() { Ok(Vec::new()) } else { top_level(ntuple, patterns, suits) }
}

/// The selected fields that have a suitable type.
fn top_level<S: AsRef<str>>(ntuple: &Ntuple, patterns: &[S], suits: fn(&DataType) -> bool) -> Result<Vec<Field>> {
    let read = ntuple.read(patterns)?;
    let types = read.arrow_schema();
    let all = read.schema().fields.iter().zip(types.fields());
    Ok(all.filter(|(_, of)| suits(of.data_type())).map(|(field, _)| field.clone()).collect())
}

/// What zones that a field lacks in a cluster will have.
struct Missing {
    digest: u64,
    has_filter: bool,
}

/// The zones of a range, of fields by name.
fn zones(
    ntuple: &Ntuple,
    missing: &HashMap<&str, Missing>,
    range: &Range<u64>,
    zone_entries: u64,
) -> Result<Vec<Zone>> {
    let mut found = Vec::new();
    if missing.is_empty() {
        return Ok(found);
    }
    let names: Vec<String> = missing.keys().map(|name| escaped(name)).collect();
    let mut start = range.start;
    for batch in ntuple.read(&names)?.entries(range.clone()).batches(zone_entries)? {
        let batch = batch?;
        let entries = start..start + batch.num_rows() as u64;
        start = entries.end;
        for (field, array) in batch.schema_ref().fields().iter().zip(batch.columns()) {
            let Some(Missing { digest, has_filter }) = missing.get(field.name().as_str()) else { continue };
            let (field, items) = (field.name().clone(), items(array));
            let mut integers = Vec::new();
            let is_filtered = *has_filter && each_integer(&items, |value| integers.push(value));
            let filter = if is_filtered { Bloom::of(integers) } else { Bloom::default() };
            let (entries, bounds, digest) = (entries.clone(), bounds(&items), *digest);
            found.push(Zone { field, entries, bounds, nulls: nulls(array), digest, filter });
        }
    }
    Ok(found)
}

/// How zones contradict the values of their field, for the first one that does. `start` is the entry of the first value.
pub(in crate::ops) fn contradiction(
    zones: &[KnownZone],
    filters: &[Bloom],
    start: u64,
    values: &ArrayRef,
) -> Option<String> {
    zones.iter().zip(filters).find_map(|(KnownZone { entries, bounds: given, nulls: stated, .. }, filter)| {
        let values = values.slice((entries.start - start) as usize, (entries.end - entries.start) as usize);
        let (values, nulls) = (items(&values), nulls(&values));
        let told = |what: &str| format!("the zone map of entries {} to {} {what}", entries.start, entries.end - 1);
        let found = bounds(&values);
        let mut is_filtered = true;
        let is_integer = each_integer(&values, |value| is_filtered &= filter.may_contain(value));
        let is_bounded = given.lowest <= found.lowest && found.highest <= given.highest;
        let what = match () {
            () if !has_bounds(values.data_type()) => "has bounds, but the values are not numbers".to_owned(),
            () if !is_bounded => {
                let [given, found] = [given, &found].map(|bounds| format!("{} to {}", bounds.lowest, bounds.highest));
                format!("has the bounds {given}, but the values are {found}")
            }
            () if found.has_nan && !given.has_nan => "says that no value is NaN, but one is".to_owned(),
            () if nulls > *stated => format!("counts {stated} nulls, but {nulls} of the values are null"),
            () if !is_integer && !filter.words().is_empty() => {
                "has a filter, but the values are not integers".to_owned()
            }
            () if !is_filtered => "has a filter without some of the values".to_owned(),
            () if nulls < *stated => {
                return Some(told(&format!("counts {stated} nulls, but only {nulls} of the values are null")));
            }
            () => return None,
        };
        Some(told(&what) + "; cuts that use it leave out entries")
    })
}

/// The items of lists, of lists of lists too.
fn items(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::LargeList(_) | DataType::FixedSizeList(..) => items(&items_of_list(array)),
        _ => Arc::clone(array),
    }
}

/// The items of a list.
fn items_of_list(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::FixedSizeList(_, width) => {
            let list = array.as_fixed_size_list();
            list.values().slice(list.value_offset(0) as usize, list.len() * *width as usize)
        }
        _ => {
            let list = array.as_list::<i64>();
            let [start, end] = [list.offsets().first(), list.offsets().last()].map(|at| *at.unwrap_or(&0) as usize);
            list.values().slice(start, end - start)
        }
    }
}

/// The number of null values, of lists and of their items.
fn nulls(array: &ArrayRef) -> u64 {
    let own = array.null_count() as u64;
    match array.data_type() {
        DataType::LargeList(_) | DataType::FixedSizeList(..) => own + nulls(&items_of_list(array)),
        _ => own,
    }
}

/// The bounds of numbers.
fn bounds(array: &ArrayRef) -> Bounds {
    fn reals<T: ArrowPrimitiveType>(array: &ArrayRef) -> Bounds
    where
        f64: From<T::Native>,
    {
        array.as_primitive::<T>().iter().flatten().fold(Bounds::NONE, |known, value| known.with(value.into()))
    }
    match array.data_type() {
        DataType::Float32 => reals::<Float32Type>(array),
        DataType::Float64 => reals::<Float64Type>(array),
        _ => {
            let mut ends: Option<[i128; 2]> = None;
            let is_integer = each_integer(array, |value| {
                let [lowest, highest] = ends.unwrap_or([value; 2]);
                ends = Some([lowest.min(value), highest.max(value)]);
            });
            match is_integer {
                true => ends.into_iter().flatten().fold(Bounds::NONE, Bounds::with_integer),
                false => Bounds { lowest: f64::NEG_INFINITY, highest: f64::INFINITY, has_nan: true },
            }
        }
    }
}

/// Calls a function with each value of an array of integers. False for an array of anything else.
fn each_integer(array: &ArrayRef, mut each: impl FnMut(i128)) -> bool {
    fn of<T: ArrowPrimitiveType>(array: &ArrayRef, each: &mut impl FnMut(i128))
    where
        i128: From<T::Native>,
    {
        array.as_primitive::<T>().iter().flatten().for_each(|value| each(value.into()));
    }
    match array.data_type() {
        DataType::Int8 => of::<Int8Type>(array, &mut each),
        DataType::Int16 => of::<Int16Type>(array, &mut each),
        DataType::Int32 => of::<Int32Type>(array, &mut each),
        DataType::Int64 => of::<Int64Type>(array, &mut each),
        DataType::UInt8 => of::<UInt8Type>(array, &mut each),
        DataType::UInt16 => of::<UInt16Type>(array, &mut each),
        DataType::UInt32 => of::<UInt32Type>(array, &mut each),
        DataType::UInt64 => of::<UInt64Type>(array, &mut each),
        _ => return false,
    }
    true
}
