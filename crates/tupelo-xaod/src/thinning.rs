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

use crate::linked::{index_of, item_bounds, key_of, plain_numbers, with_index, with_plain_numbers};
use crate::links::{Elements, Moved, has_links, key_numbers, with_moved};
use crate::lists::{Wrong, first_differing, from_zero, in_items, list_of, ranges};

/// The part of an event that a column is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// A value for each element of a container.
    Elements,
    /// The static variables, each with a value for each element.
    Store,
    /// The ends of lists, one for each element, whose items are in the column with this name.
    Ends(String),
    /// The items of the lists that end where the column with this name says.
    Items(String),
}

/// Which elements are kept, and what is checked.
#[derive(Debug, Default)]
pub(crate) struct Thinning {
    /// The names of thinned containers, in the order of the masks, and the keys of links to them.
    pub(crate) containers: Vec<(String, Vec<u32>)>,
    /// The columns of these containers, by name.
    pub(crate) columns: HashMap<String, (usize, Part)>,
    /// Packed links, by name, with the columns that list their containers.
    pub(crate) packed: HashMap<String, String>,
    /// New variables, by name, with their containers. The number of elements follows the masks in the inputs.
    pub(crate) counted: Vec<(String, String)>,
}

/// Which elements of a container some entries keep.
struct Kept {
    /// All of them, from 0 on.
    elements: Elements,
    mask: BooleanArray,
    /// How many are kept in each entry.
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
            let wrong = |(place, what): Wrong| {
                let entry = entries.number(place);
                Error::invalid_argument(format!("variable '{}', entry {entry}: {what}", field.name()))
            };
            let other = |name: &String| {
                let found = entries.batch().column_by_name(name);
                found.ok_or_else(|| wrong((0, format!("'{name}', which belongs to it, is left out"))))
            };
            let array = match self.packed.get(field.name()) {
                Some(linked) => with_moved_packed(array, other(linked)?, &moved).map_err(wrong)?,
                None if has_links(array.data_type()) => with_moved(array, &moved).map_err(wrong)?,
                None => Arc::clone(array),
            };
            let own = self.columns.get(field.name()).and_then(|(number, part)| Some((kept.get(*number)?, part)));
            match own {
                None => Ok(array),
                Some((kept, Part::Elements)) => kept.filter(&array, field.name(), entries),
                Some((kept, Part::Store)) => kept.filter_members(&array, field.name(), entries),
                Some((kept, Part::Ends(items))) => {
                    let ends = kept.ends(&array, other(items)?).map_err(wrong)?;
                    kept.filter(&ends, field.name(), entries)
                }
                Some((kept, Part::Items(ends))) => kept.items(&array, other(ends)?).map_err(wrong),
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

/// Lists of elements, their offsets, the elements, and the bounds of the items of each.
type Jagged = (LargeListArray, OffsetBuffer<i64>, ArrayRef, Vec<(usize, usize)>);

#[cold]
fn no_lists() -> Wrong {
    (0, "it has no ends of lists".to_owned())
}

/// Packed links to the new places of elements: those to elements that are left out are null links.
fn with_moved_packed(
    values: &ArrayRef,
    containers: &ArrayRef,
    moved: &BTreeMap<u32, Moved>,
) -> std::result::Result<ArrayRef, Wrong> {
    let unlisted = || (0, "its containers are not listed".to_owned());
    let (ends, others) = containers.as_list_opt::<i64>().map(from_zero).ok_or_else(unlisted)?;
    let keys = key_numbers(&others).ok_or_else(unlisted)?;
    let packed = |values: &ArrayRef, entries: &[usize]| {
        let numbers = plain_numbers(values).ok_or_else(|| (0, "it does not consist of packed links".to_owned()))?;
        let new = numbers.values().iter().zip(entries).map(|(&packed, &entry)| {
            match moved.get(&key_of(packed, entry, &ends, &keys)?) {
                Some(target) => {
                    let index = target.place(entry, index_of(packed)).map_err(|what| (entry, what))?;
                    Ok(with_index(packed, index))
                }
                None => Ok(packed),
            }
        });
        Ok(with_plain_numbers(values, new.collect::<std::result::Result<_, Wrong>>()?))
    };
    in_items(values, &(0..values.len()).collect::<Vec<_>>(), &packed)
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
        let mask = items.as_boolean_opt().ok_or_else(wrong)?;
        // A missing answer keeps nothing.
        let mask = match mask.nulls() {
            Some(nulls) => BooleanArray::new(mask.values() & nulls.inner(), None),
            None => mask.clone(),
        };
        let lengths = ranges(&offsets).map(|range| mask.slice(range.start, range.len()).true_count()).collect();
        Ok(Self { elements: Elements { name: name.to_owned(), offsets }, mask, lengths })
    }

    /// A list with the elements that are kept.
    fn filter(&self, array: &ArrayRef, column: &str, entries: &Entries) -> Result<ArrayRef> {
        let (Some(list), DataType::LargeList(item)) = (array.as_list_opt::<i64>(), array.data_type()) else {
            return Err(not_for_elements(column, array));
        };
        let (offsets, items) = from_zero(list);
        let known = &self.elements.offsets;
        if offsets != *known {
            let differing = first_differing(&offsets, known);
            let (place, (found, expected)) = differing.unwrap_or((0, (offsets.len(), known.len())));
            return Err(Error::unsupported(format!(
                "container '{}', variable '{column}', entry {}: found {found} values where the mask has {expected}",
                self.elements.name,
                entries.number(place)
            )));
        }
        let items = filter(&items, &self.mask)?;
        let offsets = OffsetBuffer::from_lengths(self.lengths.iter().copied());
        Ok(Arc::new(LargeListArray::try_new(Arc::clone(item), offsets, items, list.nulls().cloned())?))
    }

    /// The ends of the lists of the elements that are kept, in those of all elements.
    fn ends(&self, ends: &ArrayRef, items: &ArrayRef) -> std::result::Result<ArrayRef, Wrong> {
        let (list, offsets, elements, bounds) = self.jagged(ends, items)?;
        let DataType::LargeList(item) = ends.data_type() else { return Err(no_lists()) };
        let mut numbers = vec![0; elements.len()];
        for range in ranges(&offsets) {
            let mut sum = 0;
            for element in range.filter(|&element| self.is_kept(element)) {
                let (begin, end) = bounds.get(element).copied().unwrap_or((0, 0));
                sum += end - begin;
                if let Some(number) = numbers.get_mut(element) {
                    *number = u32::try_from(sum).unwrap_or(u32::MAX);
                }
            }
        }
        let elements = with_plain_numbers(&elements, numbers);
        list_of(item, offsets, elements, list.nulls())
    }

    /// The items of the lists of the elements that are kept.
    fn items(&self, items: &ArrayRef, ends: &ArrayRef) -> std::result::Result<ArrayRef, Wrong> {
        let (_, offsets, _, bounds) = self.jagged(ends, items)?;
        let (Some(list), DataType::LargeList(item)) = (items.as_list_opt::<i64>(), items.data_type()) else {
            return Err(no_lists());
        };
        let (_, values) = from_zero(list);
        let mut mask = vec![false; values.len()];
        let mut lengths = Vec::with_capacity(list.len());
        for range in ranges(&offsets) {
            let mut count = 0;
            for element in range.filter(|&element| self.is_kept(element)) {
                let (begin, end) = bounds.get(element).copied().unwrap_or((0, 0));
                mask.get_mut(begin..end).into_iter().flatten().for_each(|it| *it = true);
                count += end - begin;
            }
            lengths.push(count);
        }
        let values = filter(&values, &BooleanArray::from(mask)).map_err(|error| (0, error.to_string()))?;
        list_of(item, OffsetBuffer::from_lengths(lengths), values, list.nulls())
    }

    /// Lists of elements with the bounds of their items.
    fn jagged(&self, ends: &ArrayRef, items: &ArrayRef) -> std::result::Result<Jagged, Wrong> {
        let (Some(list), Some(others)) = (ends.as_list_opt::<i64>(), items.as_list_opt::<i64>()) else {
            return Err(no_lists());
        };
        let (offsets, elements) = from_zero(list);
        if offsets != self.elements.offsets {
            return Err((0, format!("it has another number of values than '{}' has elements", self.elements.name)));
        }
        let numbers = plain_numbers(&elements).ok_or_else(no_lists)?;
        let bounds = item_bounds(&offsets, &numbers, &from_zero(others).0)?;
        Ok((list.clone(), offsets, elements, bounds))
    }

    fn is_kept(&self, element: usize) -> bool {
        element < self.mask.len() && self.mask.value(element)
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
        let mut places = Vec::with_capacity(self.mask.len());
        for range in ranges(&self.elements.offsets) {
            let mut next = 0;
            for element in range {
                let is_kept = self.is_kept(element);
                places.push(is_kept.then_some(next));
                next += u32::from(is_kept);
            }
        }
        Moved { elements: self.elements.clone(), places }
    }
}
