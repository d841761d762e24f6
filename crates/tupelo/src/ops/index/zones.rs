//! Making zone maps: the bounds of fields in ranges of entries, stored with the ntuple. Reading with
//! [`Read::with_where`](crate::reader::Read::with_where) passes over entries for which the cut cannot be true.

use std::collections::HashMap;
use std::ops::{ControlFlow, Range};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrowPrimitiveType};
use arrow_schema::DataType;

use crate::expression::Bounds;
use crate::reader::Ntuple;
pub use crate::reader::zones::ZONE_MAPS_SET;
use crate::reader::zones::{Zone, digest, has_bounds};
use crate::schema::{Field, escaped};
use crate::writer::{FileWriter, WriteOptions};
use crate::{Error, Result};

/// Default number of entries of a zone.
pub const DEFAULT_ZONE_ENTRIES: u64 = 8192;

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ZonesWritten {
    /// Number of fields with zones.
    pub fields: usize,
    /// Number of new zones.
    pub zones: usize,
}

/// Adds zone maps to an ntuple of a file that is updated: of all fields that the patterns choose and that are numbers or lists
/// of numbers. Clusters whose zones are there, and not stale, are left as they are. `progress` gets the number of entries
/// that are done, and may end the work: the result is then `None`, and the file can only be dropped.
/// ```no_run
/// use std::ops::ControlFlow;
/// use tupelo::ops::index::zones::{DEFAULT_ZONE_ENTRIES, write_zones};
///
/// let file = tupelo::update("events.root")?;
/// write_zones(&file, "Events", &["run", "MET_*"], DEFAULT_ZONE_ENTRIES, &mut |_| ControlFlow::Continue(()))?;
/// file.finish()?;
/// # Ok::<(), tupelo::Error>(())
/// ```
///
/// # Errors
/// Not found for a pattern that matches no field; invalid argument for one that matches no field with numbers, for zones of no
/// entries and for a set of the same name with other fields; those of reading and of [`FileWriter::append`].
pub fn write_zones<S: AsRef<str>>(
    file: &FileWriter,
    path: &str,
    patterns: &[S],
    zone_entries: u64,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Option<ZonesWritten>> {
    let ntuple = file.updated()?.0.ntuple(Some(path))?;
    let known = ntuple.read_zones()?;
    for pattern in patterns {
        let types = ntuple.read([pattern])?.arrow_schema();
        if !types.fields().iter().any(|field| has_bounds(field.data_type())) {
            let what = format!("'{}' is not a number or a list of numbers, so that it has no bounds", pattern.as_ref());
            return Err(ntuple.context(Error::invalid_argument(what)));
        }
    }
    let all = ntuple.read(patterns)?;
    let types = all.arrow_schema();
    let chosen = all.schema().fields.iter().zip(types.fields()).filter(|(_, of)| has_bounds(of.data_type()));
    let fields: Vec<&Field> = chosen.map(|(field, _)| field).collect();
    if fields.is_empty() {
        return Err(ntuple.context(Error::invalid_argument("none of the fields has numbers")));
    }
    let mut writer = file.append(path, WriteOptions::default())?;
    let mut set = writer.attribute_set(ZONE_MAPS_SET, &Zone::schema()?)?;
    let mut written = ZonesWritten { fields: fields.len(), zones: 0 };
    let source = ntuple.source();
    for cluster in source.clusters(0..ntuple.entries())? {
        let range = cluster.entry_range();
        let mut digests: Vec<(&Field, u64)> = Vec::new();
        for field in fields.iter().copied().filter(|field| !known.cover(&field.name, &range)) {
            digests.extend(digest(source, field, &cluster)?.map(|digest| (field, digest)));
        }
        let zones = zones(&ntuple, &digests, &range, zone_entries)?;
        let ranges: Vec<Range<u64>> = zones.iter().map(|zone| zone.entries.clone()).collect();
        set.write(&ranges, &Zone::batch(&zones)?)?;
        written.zones += zones.len();
        if progress(range.end).is_break() {
            return Ok(None);
        }
    }
    writer.finish()?;
    Ok(Some(written))
}

/// The zones of a range of fields, which have these digests.
fn zones(ntuple: &Ntuple, fields: &[(&Field, u64)], range: &Range<u64>, zone_entries: u64) -> Result<Vec<Zone>> {
    let mut found = Vec::new();
    if fields.is_empty() {
        return Ok(found);
    }
    let names: Vec<String> = fields.iter().map(|(field, _)| escaped(&field.name)).collect();
    let digests: HashMap<&str, u64> = fields.iter().map(|(field, digest)| (field.name.as_str(), *digest)).collect();
    let mut start = range.start;
    for batch in ntuple.read(&names)?.entries(range.clone()).batches(zone_entries)? {
        let batch = batch?;
        let entries = start..start + batch.num_rows() as u64;
        start = entries.end;
        for (field, array) in batch.schema_ref().fields().iter().zip(batch.columns()) {
            let Some(&digest) = digests.get(field.name().as_str()) else { continue };
            let bounds = bounds(array, Bounds::NONE);
            found.push(Zone { field: field.name().clone(), entries: entries.clone(), bounds, digest });
        }
    }
    Ok(found)
}

/// The bounds of the numbers of an array.
fn bounds(array: &dyn Array, known: Bounds) -> Bounds {
    fn reals<T: ArrowPrimitiveType>(array: &dyn Array, known: Bounds) -> Bounds
    where
        f64: From<T::Native>,
    {
        array.as_primitive::<T>().iter().flatten().fold(known, |known, value| known.with(value.into()))
    }
    fn integers<T: ArrowPrimitiveType>(array: &dyn Array, known: Bounds) -> Bounds
    where
        i128: From<T::Native>,
    {
        let values = || array.as_primitive::<T>().iter().flatten().map(i128::from);
        match values().min().zip(values().max()) {
            Some((low, high)) => known.with_integer(low).with_integer(high),
            None => known,
        }
    }
    match array.data_type() {
        DataType::Float32 => reals::<Float32Type>(array, known),
        DataType::Float64 => reals::<Float64Type>(array, known),
        DataType::Int8 => integers::<Int8Type>(array, known),
        DataType::Int16 => integers::<Int16Type>(array, known),
        DataType::Int32 => integers::<Int32Type>(array, known),
        DataType::Int64 => integers::<Int64Type>(array, known),
        DataType::UInt8 => integers::<UInt8Type>(array, known),
        DataType::UInt16 => integers::<UInt16Type>(array, known),
        DataType::UInt32 => integers::<UInt32Type>(array, known),
        DataType::UInt64 => integers::<UInt64Type>(array, known),
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            let [start, end] = [list.offsets().first(), list.offsets().last()].map(|it| *it.unwrap_or(&0) as usize);
            bounds(&list.values().slice(start, end - start), known)
        }
        DataType::FixedSizeList(_, width) => {
            let list = array.as_fixed_size_list();
            bounds(&list.values().slice(list.value_offset(0) as usize, list.len() * *width as usize), known)
        }
        _ => Bounds { lowest: f64::NEG_INFINITY, highest: f64::INFINITY, has_nan: true },
    }
}
