//! Entries of several sources that have the same keys.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use tupelo_schema::schema::{Field, Kind, escaped};

use super::super::read::Read;
use super::super::sources::{EntrySource, Matched, NO_ENTRY};
use crate::{Error, Remedy, Result};

/// Bytes of keys that are read together.
const BATCH_BYTES: u64 = 64 << 20;

/// What becomes of entries of the first table of a join whose keys another table lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_enums, reason = "a table can do nothing else with them")]
pub enum Unmatched {
    /// They are an error.
    #[default]
    Error,
    /// The fields of the other table are null for them, which makes these optional.
    Null,
    /// They are left out.
    Drop,
}

/// The values of the keys of all entries, entry by entry.
struct Keys {
    values: Vec<u64>,
    /// Number of keys.
    width: usize,
    /// For each key whether its type has values above 2^63.
    is_large: Vec<bool>,
}

impl Keys {
    fn read(source: &Arc<dyn EntrySource>, keys: &[String]) -> Result<Self> {
        let read = || {
            let mut columns = keys.iter().map(|key| column(source, key)).collect::<Result<Vec<_>>>()?;
            let is_large = columns.iter().map(|(_, is_large)| *is_large).collect();
            if let [(only, _)] = columns.as_mut_slice() {
                return Ok(Self { values: std::mem::take(only), width: 1, is_large });
            }
            let entries = columns.first().map_or(0, |(values, _)| values.len());
            let mut values = Vec::new();
            values
                .try_reserve_exact(entries * columns.len())
                .map_err(|_| Error::limit("the keys exceed the memory"))?;
            for entry in 0..entries {
                values.extend(columns.iter().filter_map(|(values, _)| values.get(entry)));
            }
            Ok(Self { values, width: columns.len(), is_large })
        };
        // Reading has named the source already.
        read().map_err(|error: Error| if error.file().is_some() { error } else { source.context(error) })
    }

    fn iter(&self) -> impl Iterator<Item = &[u64]> {
        self.values.chunks_exact(self.width)
    }

    fn get(&self, entry: u64) -> Option<&[u64]> {
        let start = usize::try_from(entry).ok()?.checked_mul(self.width)?;
        self.values.get(start..start + self.width)
    }

    /// The entry of each key. Keys must differ.
    fn entries(&self, names: &[String]) -> Result<HashMap<&[u64], u64>> {
        let mut entries = HashMap::new();
        let count = self.values.len() / self.width.max(1);
        entries.try_reserve(count).map_err(|_| Error::limit("the keys exceed the memory"))?;
        for (entry, key) in (0..).zip(self.iter()) {
            if let Some(other) = entries.insert(key, entry) {
                let what = format!("entries {other} and {entry} have the same {}", told(names, key, &self.is_large));
                return Err(Error::invalid_argument(what));
            }
        }
        Ok(entries)
    }

    /// Whether each key is greater than the one before.
    fn ascends(&self) -> bool {
        self.iter().zip(self.iter().skip(1)).all(|(one, next)| one < next)
    }
}

/// `run = 3, event = 17`.
fn told(names: &[String], key: &[u64], is_large: &[bool]) -> String {
    let value = |value: u64, is_large: bool| match is_large {
        true => value.to_string(),
        false => value.cast_signed().to_string(),
    };
    let named = names.iter().zip(key).zip(is_large);
    named.map(|((name, &key), &is_large)| format!("{name} = {}", value(key, is_large))).collect::<Vec<_>>().join(", ")
}

/// The values of one key, and whether its type has values above 2^63.
fn column(source: &Arc<dyn EntrySource>, key: &str) -> Result<(Vec<u64>, bool)> {
    let read = Read::select(Arc::clone(source), &[escaped(key)])?;
    let entries = usize::try_from(source.entries()).unwrap_or(usize::MAX);
    let (mut values, mut is_large) = (Vec::new(), false);
    values.try_reserve_exact(entries).map_err(|_| Error::limit("the keys exceed the memory"))?;
    for batch in read.clone().batches_of_bytes(BATCH_BYTES)? {
        let batch = batch?;
        let mut array = ArrayRef::clone(batch.column(0));
        // A member of a record.
        while let Some([member]) = array.as_struct_opt().map(|record| record.columns()) {
            array = ArrayRef::clone(member);
        }
        if array.null_count() > 0 {
            return Err(Error::invalid_argument(format!("key '{key}' has missing values")));
        }
        macro_rules! add {
            ($type:ty, $convert:expr) => {
                values.extend(array.as_primitive::<$type>().values().iter().map($convert))
            };
        }
        match array.data_type() {
            DataType::Boolean => values.extend(array.as_boolean().values().iter().map(u64::from)),
            DataType::Int8 => add!(Int8Type, |value| i64::from(*value).cast_unsigned()),
            DataType::Int16 => add!(Int16Type, |value| i64::from(*value).cast_unsigned()),
            DataType::Int32 => add!(Int32Type, |value| i64::from(*value).cast_unsigned()),
            DataType::Int64 => add!(Int64Type, |value| value.cast_unsigned()),
            DataType::UInt8 => add!(UInt8Type, |value| u64::from(*value)),
            DataType::UInt16 => add!(UInt16Type, |value| u64::from(*value)),
            DataType::UInt32 => add!(UInt32Type, |value| u64::from(*value)),
            DataType::UInt64 => {
                is_large = true;
                add!(UInt64Type, |value| *value);
            }
            _ => {
                let mut field = read.schema().fields.first();
                while let Some(Field { kind: Kind::Record(members), .. }) = field {
                    field = members.first();
                }
                let type_name = field.map_or("another", Field::display_type);
                let what = format!("key '{key}' has type {type_name}, expected an integer");
                return Err(Error::invalid_argument(what));
            }
        }
    }
    Ok((values, is_large))
}

/// Two sources with the entries whose keys both have side by side. In both, the keys of all entries must differ.
pub(super) fn paired(
    first: &Arc<dyn EntrySource>,
    second: &Arc<dyn EntrySource>,
    names: &[String],
) -> Result<Vec<Arc<dyn EntrySource>>> {
    let own = Keys::read(first, names)?;
    if !own.ascends() {
        own.entries(names).map_err(|error| first.context(error))?;
    }
    matched_with(Arc::clone(first), &own, [Arc::clone(second)], names, Unmatched::Drop)
}

/// The sources of a join, with entries of the same keys side by side.
pub(super) fn matched(
    sources: Vec<Arc<dyn EntrySource>>,
    names: &[String],
    unmatched: Unmatched,
) -> Result<Vec<Arc<dyn EntrySource>>> {
    let mut sources = sources.into_iter();
    let Some(first) = sources.next() else { return Ok(Vec::new()) };
    let own = Keys::read(&first, names)?;
    matched_with(first, &own, sources, names, unmatched)
}

/// The same with the keys of the first source.
fn matched_with(
    first: Arc<dyn EntrySource>,
    own: &Keys,
    sources: impl IntoIterator<Item = Arc<dyn EntrySource>>,
    names: &[String],
    unmatched: Unmatched,
) -> Result<Vec<Arc<dyn EntrySource>>> {
    let mut others = Vec::new();
    for source in sources {
        let keys = Keys::read(&source, names)?;
        let places = places(own, &keys, names).map_err(|error| source.context(error))?;
        let lacking = (0..).zip(&places).find(|(_, place)| **place == NO_ENTRY);
        if let (Unmatched::Error, Some((entry, _))) = (unmatched, lacking) {
            let key = own.get(entry).map_or_else(String::new, |key| told(names, key, &own.is_large));
            let what = format!("has no entry with {key}, which is entry {entry} of {}", first.file_name());
            return Err(source.context(Error::invalid_argument(what).with_remedy(Remedy::Unmatched)));
        }
        others.push((source, places));
    }
    let is_kept = |entry: usize| others.iter().all(|(_, places)| places.get(entry) != Some(&NO_ENTRY));
    let mut all = Vec::with_capacity(others.len() + 1);
    let kept: Option<Vec<u64>> = match unmatched {
        Unmatched::Drop => Some((0..first.entries()).filter(|entry| is_kept(*entry as usize)).collect()),
        _ => None,
    };
    let kept = kept.filter(|kept| (kept.len() as u64) < first.entries());
    let others: Vec<_> = others
        .into_iter()
        .map(|(source, places)| match &kept {
            Some(kept) => (source, kept.iter().filter_map(|entry| places.get(*entry as usize).copied()).collect()),
            None => (source, places),
        })
        .collect();
    all.push(kept.map_or_else(|| Arc::clone(&first), |kept| Arc::new(Matched::new(Arc::clone(&first), kept)) as _));
    for (source, places) in others {
        let is_same =
            places.len() as u64 == source.entries() && (0..).zip(&places).all(|(entry, place)| entry == *place);
        all.push(if is_same { source } else { Arc::new(Matched::new(source, places)) as Arc<dyn EntrySource> });
    }
    Ok(all)
}

/// For each entry the entry of another source with the same keys, or [`NO_ENTRY`].
fn places(own: &Keys, other: &Keys, names: &[String]) -> Result<Vec<u64>> {
    // A number above 2^63 and a negative one have the same bits.
    for (key, name) in names.iter().enumerate() {
        let is_large = |keys: &Keys| keys.is_large.get(key).copied().unwrap_or_default();
        let differ = is_large(own) != is_large(other);
        let exceeds = |keys: &Keys| keys.iter().any(|values| values.get(key).is_some_and(|it| it.cast_signed() < 0));
        if differ && exceeds(own) && exceeds(other) {
            let what = format!("key '{name}' has negative values in one source and values above 2^63 in the other");
            return Err(Error::invalid_argument(what));
        }
    }
    let mut entries = None;
    if !other.ascends() {
        entries = Some(other.entries(names)?);
    }
    let mut places = Vec::new();
    places
        .try_reserve_exact(own.values.len() / own.width.max(1))
        .map_err(|_| Error::limit("the keys exceed the memory"))?;
    let mut next = 0;
    for key in own.iter() {
        // Mostly, both have the same order.
        let place = match other.get(next) == Some(key) {
            true => Some(next),
            false => {
                let entries = match &mut entries {
                    Some(entries) => entries,
                    none => none.insert(other.entries(names)?),
                };
                entries.get(key).copied()
            }
        };
        next = place.map_or(next, |place| place + 1);
        places.push(place.unwrap_or(NO_ENTRY));
    }
    Ok(places)
}
