//! Elements that are left out of containers, and links to the others.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, LargeListArray, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::DataType;
use arrow_select::filter::filter;
use tupelo::reader::Entries;
use tupelo::{Error, Result};

use crate::links::{Moved, has_links, with_moved};
use crate::lists::{from_zero, position};

/// The part of an event that a column is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// A value for each element of a container.
    Elements,
    /// The static variables, each with a value for each element.
    Store,
}

/// Which elements are kept, and what is checked.
#[derive(Debug, Default)]
pub(crate) struct Thinning {
    /// The names of thinned containers, in the order of the masks, and the keys of links to them.
    pub(crate) containers: Vec<(String, Vec<u32>)>,
    /// The columns of these containers, by name.
    pub(crate) columns: HashMap<String, (usize, Part)>,
    /// New variables, by name, with their containers. The number of elements follows the masks in the inputs.
    pub(crate) counted: Vec<(String, String)>,
}

/// Which elements of a container some entries keep.
struct Kept {
    name: String,
    /// The end of the elements of each entry, from 0 on.
    offsets: OffsetBuffer<i64>,
    elements: BooleanArray,
    lengths: Vec<usize>,
}

impl Thinning {
    /// The columns of some entries with the elements that are kept. The inputs are a mask for each thinned container, then a
    /// number of elements for each new variable.
    pub(crate) fn apply(&self, entries: &Entries) -> Result<Vec<ArrayRef>> {
        let (masks, counts) = entries.inputs().split_at(self.containers.len().min(entries.inputs().len()));
        self.check_new(entries, counts)?;
        let kept: Vec<Kept> =
            self.containers.iter().zip(masks).map(|((name, _), mask)| Kept::of(name, mask)).collect::<Result<_>>()?;
        let mut moved = BTreeMap::new();
        for ((_, keys), kept) in self.containers.iter().zip(&kept) {
            keys.iter().for_each(|key| drop(moved.insert(*key, kept.moved())));
        }
        let schema = entries.batch().schema();
        let column = |(array, field): (&ArrayRef, &arrow_schema::FieldRef)| {
            let own = self.columns.get(field.name()).and_then(|(number, part)| Some((kept.get(*number)?, *part)));
            let array = match own {
                None => Arc::clone(array),
                Some((kept, Part::Elements)) => kept.filter(array, field.name(), entries)?,
                Some((kept, Part::Store)) => kept.filter_members(array, field.name(), entries)?,
            };
            match has_links(array.data_type()) && !moved.is_empty() {
                true => with_moved(&array, &moved).map_err(|(entry, what)| {
                    let entry = entries.number(entry);
                    Error::invalid_argument(format!("variable '{}', entry {entry}: {what}", field.name()))
                }),
                false => Ok(array),
            }
        };
        entries.batch().columns().iter().zip(schema.fields()).map(column).collect()
    }

    /// Refuses new variables that have another number of values than their containers have elements.
    fn check_new(&self, entries: &Entries, counts: &[ArrayRef]) -> Result<()> {
        for ((variable, container), count) in self.counted.iter().zip(counts) {
            let Some(array) = entries.batch().column_by_name(variable) else { continue };
            let Some(list) = array.as_list_opt::<i64>() else { return Err(not_for_elements(variable, array)) };
            let counts = arrow_cast::cast(count, &DataType::Int64)?;
            let counts = counts.as_primitive::<Int64Type>().values();
            let lengths = list.offsets().lengths();
            let other = lengths.zip(counts).position(|(own, &count)| usize::try_from(count) != Ok(own));
            if let Some(place) = other {
                let (found, expected) = (list.value_length(place), counts.get(place).copied().unwrap_or(0));
                return Err(Error::invalid_argument(format!(
                    "variable '{variable}', entry {}: found {found} values, but '{container}' has {expected} elements there",
                    entries.number(place)
                )));
            }
        }
        Ok(())
    }
}

#[cold]
fn not_for_elements(variable: &str, array: &ArrayRef) -> Error {
    let found = array.data_type();
    Error::invalid_argument(format!("variable '{variable}': expected a value for each element, not {found}"))
}

impl Kept {
    fn of(name: &str, mask: &ArrayRef) -> Result<Self> {
        let wrong = || {
            let found = mask.data_type();
            Error::invalid_argument(format!("thinning '{name}': expected a boolean for each element, not {found}"))
        };
        let list = mask.as_list_opt::<i64>().ok_or_else(wrong)?;
        let (offsets, items) = from_zero(list);
        let elements = items.as_boolean_opt().ok_or_else(wrong)?;
        // A missing answer keeps nothing.
        let elements = match elements.nulls() {
            Some(nulls) => BooleanArray::new(elements.values() & nulls.inner(), None),
            None => elements.clone(),
        };
        let count = |range: &[i64]| {
            let [start, end] = [range.first(), range.last()].map(|bound| position(bound.copied().unwrap_or(0)));
            elements.slice(start, end - start).true_count()
        };
        let lengths = offsets.windows(2).map(count).collect();
        Ok(Self { name: name.to_owned(), offsets, elements, lengths })
    }

    /// A list with the elements that are kept.
    fn filter(&self, array: &ArrayRef, column: &str, entries: &Entries) -> Result<ArrayRef> {
        let (Some(list), DataType::LargeList(item)) = (array.as_list_opt::<i64>(), array.data_type()) else {
            return Err(not_for_elements(column, array));
        };
        let (offsets, items) = from_zero(list);
        if offsets != self.offsets {
            let differs = offsets.lengths().zip(self.offsets.lengths()).enumerate();
            let differs = { differs }.find(|(_, (own, known))| own != known);
            let (place, (found, expected)) = differs.unwrap_or((0, (offsets.len(), self.offsets.len())));
            return Err(Error::unsupported(format!(
                "container '{}', variable '{column}', entry {}: found {found} values where the mask has {expected}",
                self.name,
                entries.number(place)
            )));
        }
        let items = filter(&items, &self.elements)?;
        let offsets = OffsetBuffer::from_lengths(self.lengths.iter().copied());
        Ok(Arc::new(LargeListArray::try_new(Arc::clone(item), offsets, items, list.nulls().cloned())?))
    }

    /// A store whose variables have the elements that are kept.
    fn filter_members(&self, array: &ArrayRef, column: &str, entries: &Entries) -> Result<ArrayRef> {
        let Some(store) = array.as_struct_opt() else { return Err(not_for_elements(column, array)) };
        let member = |(array, field): (&ArrayRef, &arrow_schema::FieldRef)| {
            let name = format!("{column}.{}", field.name());
            match array.data_type() {
                DataType::LargeList(_) => self.filter(array, &name, entries),
                DataType::Struct(_) if field.name().starts_with(":_") => self.filter_members(array, &name, entries),
                _ => Ok(Arc::clone(array)),
            }
        };
        let columns = store.columns().iter().zip(store.fields()).map(member).collect::<Result<_>>()?;
        let (fields, nulls) = (store.fields().clone(), store.nulls().cloned());
        Ok(Arc::new(StructArray::try_new_with_length(fields, columns, nulls, store.len())?))
    }

    /// Where its elements go.
    fn moved(&self) -> Moved {
        let mut places = Vec::with_capacity(self.elements.len());
        for range in self.offsets.windows(2) {
            let [start, end] = [range.first(), range.last()].map(|bound| position(bound.copied().unwrap_or(0)));
            let mut next = 0;
            for element in start..end {
                let is_kept = self.elements.value(element);
                places.push(is_kept.then_some(next));
                next += u32::from(is_kept);
            }
        }
        Moved { name: self.name.clone(), offsets: self.offsets.clone(), places }
    }
}
