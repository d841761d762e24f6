//! What `ElementLink`s refer to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, LargeListArray, StructArray, UInt32Array, UInt64Array, new_null_array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field as ArrowField, Fields};
use arrow_select::concat::concat;
use arrow_select::take::take;
use tupelo::Error;

use crate::keys::Keys;
use crate::lists::{Wrong, bytes_of, entries_of_items, fixed_items, from_zero, in_items, position};

/// Members of the class of links.
pub(crate) const KEY: &str = "m_persKey";
pub(crate) const INDEX: &str = "m_persIndex";

/// What becomes of links that cannot be resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dangling {
    /// An error.
    #[default]
    Refused,
    /// Null, as of links without a key.
    Null,
}

/// The elements of a container, entry by entry.
#[derive(Debug, Clone)]
pub(crate) struct Elements {
    pub(crate) name: String,
    pub(crate) offsets: OffsetBuffer<i64>,
}

impl Elements {
    /// The place of an element of an entry among all.
    ///
    /// # Errors
    /// For an index that is too large, as the end of a sentence.
    fn place(&self, entry: usize, index: u32) -> std::result::Result<usize, String> {
        let bound = |at: usize| position(self.offsets.get(at).copied().unwrap_or(0));
        let (start, end) = (bound(entry), bound(entry + 1));
        let place = start.saturating_add(index as usize);
        if place < end { Ok(place) } else { Err(out_of_range(index, &self.name, end - start)) }
    }
}

/// The elements of a container that links may refer to.
#[derive(Debug)]
pub(crate) struct Targets {
    elements: Elements,
    items: ArrayRef,
}

impl Targets {
    pub(crate) fn of(name: &str, lists: &LargeListArray) -> Self {
        let elements = Elements { name: name.to_owned(), offsets: lists.offsets().clone() };
        Self { elements, items: Arc::clone(lists.values()) }
    }
}

/// The links of a variable, with the lists around them.
pub(crate) struct Links {
    /// From the outermost level on.
    levels: Vec<OffsetBuffer<i64>>,
    keys: UInt32Array,
    indices: UInt32Array,
    /// The entry of each link, counted from the first one.
    entries: Vec<usize>,
    first: u64,
}

/// A link that cannot be resolved.
pub(crate) enum Failure {
    Link { entry: u64, link: usize, what: String },
    Other(Error),
}

impl Failure {
    /// The error of a variable.
    #[cold]
    pub(crate) fn of(self, variable: &str) -> Error {
        match self {
            Self::Link { entry, link, what } => Error::invalid_argument(format!(
                "{variable}: entry {entry}, link {link}: {what}; dangling links can be read as null"
            )),
            Self::Other(error) => error,
        }
    }
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

impl Links {
    /// The links in the values of entries from the number `first` on.
    ///
    /// # Errors
    /// What is wrong, as the end of a sentence.
    pub(crate) fn of(values: &ArrayRef, first: u64) -> std::result::Result<Self, String> {
        let mut levels: Vec<OffsetBuffer<i64>> = Vec::new();
        let mut values = Arc::clone(values);
        let mut entries: Vec<usize> = (0..values.len()).collect();
        while let Some(list) = values.as_list_opt::<i64>() {
            let (own, items) = from_zero(list);
            entries = entries_of_items(&entries, &own);
            levels.push(own);
            values = items;
        }
        let (keys, indices) = members(&values).ok_or_else(|| "does not consist of links".to_owned())?;
        Ok(Self { levels, keys, indices, entries, first })
    }

    /// The keys that occur, without that of null links.
    pub(crate) fn keys(&self) -> BTreeSet<u32> {
        self.keys.values().iter().copied().filter(|&key| key != 0).collect()
    }

    /// The elements that the links refer to, in the lists of the links.
    pub(crate) fn resolve(
        &self,
        targets: &BTreeMap<u32, Targets>,
        variables: &[String],
        keys: &Keys,
        (dangling, budget): (Dangling, u64),
    ) -> std::result::Result<ArrayRef, Failure> {
        let mut bytes = 0_u64;
        let mut starts = BTreeMap::new();
        let mut total = 0_u64;
        for (key, target) in targets {
            starts.insert(*key, total);
            total += target.items.len() as u64;
        }
        let mut places: Vec<Option<u64>> = Vec::with_capacity(self.keys.len());
        let links = self.keys.values().iter().zip(self.indices.values()).zip(&self.entries);
        let (mut entry_before, mut number) = (usize::MAX, 0);
        for ((&key, &index), &entry) in links {
            number = if entry == entry_before { number + 1 } else { 0 };
            entry_before = entry;
            let found = match (key, targets.get(&key)) {
                (0, _) => Ok(None),
                (_, Some(target)) => target.elements.place(entry, index).map(|place| {
                    bytes = bytes.saturating_add(bytes_of(&target.items, place..place + 1));
                    starts.get(&key).map(|start| start + place as u64)
                }),
                (_, None) => Err(match keys.name(key) {
                    Some(name) => format!("its container '{name}' is not in the event"),
                    None => format!("its key {key} is not in the metadata of the file"),
                }),
            };
            if bytes > budget {
                let what = format!(
                    "the elements that links refer to take over {budget} bytes, the memory budget; choose fewer variables or \
                     entries"
                );
                return Err(Failure::Other(Error::limit(what)));
            }
            places.push(match (found, dangling) {
                (Ok(place), _) => place,
                (Err(_), Dangling::Null) => None,
                (Err(what), Dangling::Refused) => {
                    return Err(Failure::Link { entry: self.first + entry as u64, link: number, what });
                }
            });
        }
        let items: Vec<&dyn Array> = targets.values().map(|target| target.items.as_ref()).collect();
        let elements = match items.as_slice() {
            // Without an element, the types of variables are unknown.
            [] => {
                let unknown = variables.iter().map(|name| ArrowField::new(name, DataType::Null, true));
                let data_type = if variables.is_empty() { DataType::Null } else { DataType::Struct(unknown.collect()) };
                new_null_array(&data_type, places.len())
            }
            items => take(&concat(items).map_err(|_| differing(targets))?, &UInt64Array::from(places), None)?,
        };
        self.in_lists(elements)
    }

    fn in_lists(&self, elements: ArrayRef) -> std::result::Result<ArrayRef, Failure> {
        let mut values = elements;
        for offsets in self.levels.iter().rev() {
            let item = Arc::new(ArrowField::new("item", values.data_type().clone(), true));
            values = Arc::new(LargeListArray::try_new(item, offsets.clone(), values, None)?);
        }
        Ok(values)
    }
}

/// The keys and indices of links, which may be in a base class.
fn members(links: &ArrayRef) -> Option<(UInt32Array, UInt32Array)> {
    let record: &StructArray = links.as_struct_opt()?;
    let numbers = |name: &str| Some(record.column_by_name(name)?.as_primitive_opt::<UInt32Type>()?.clone());
    match numbers(KEY).zip(numbers(INDEX)) {
        Some(found) => Some(found),
        None if record.num_columns() == 1 => members(record.column(0)),
        None => None,
    }
}

/// Where the elements of a container go if others are left out.
#[derive(Debug)]
pub(crate) struct Moved {
    pub(crate) elements: Elements,
    /// The new index of each element in its entry; `None` if it is left out.
    pub(crate) places: Vec<Option<u32>>,
}

/// Whether there are links in values of a type.
pub(crate) fn has_links(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(fields) => is_link(fields) || fields.iter().any(|field| has_links(field.data_type())),
        DataType::LargeList(item) | DataType::FixedSizeList(item, _) => has_links(item.data_type()),
        _ => false,
    }
}

fn is_link(fields: &Fields) -> bool {
    let is_number = |name: &str| fields.find(name).is_some_and(|(_, field)| *field.data_type() == DataType::UInt32);
    is_number(KEY) && is_number(INDEX)
}

/// Values whose links refer to the new places of elements: those to elements that are left out are null links.
///
/// # Errors
/// For a link whose index is too large, the place of its entry, and what is wrong.
pub(crate) fn with_moved(values: &ArrayRef, moved: &BTreeMap<u32, Moved>) -> std::result::Result<ArrayRef, Wrong> {
    let entries: Vec<usize> = (0..values.len()).collect();
    moved_in(values, &entries, moved)
}

fn moved_in(
    values: &ArrayRef,
    entries: &[usize],
    moved: &BTreeMap<u32, Moved>,
) -> std::result::Result<ArrayRef, Wrong> {
    let built =
        |result: std::result::Result<ArrayRef, arrow_schema::ArrowError>| result.map_err(|e| (0, e.to_string()));
    match values.data_type() {
        data_type if !has_links(data_type) => Ok(Arc::clone(values)),
        DataType::Struct(fields) => {
            let record = values.as_struct();
            let columns: Vec<ArrayRef> = match is_link(fields) {
                true => moved_links(record, entries, moved)?,
                false => record.columns().iter().map(|it| moved_in(it, entries, moved)).collect::<Result<_, _>>()?,
            };
            let array = StructArray::try_new(fields.clone(), columns, record.nulls().cloned());
            built(array.map(|array| Arc::new(array) as ArrayRef))
        }
        DataType::LargeList(_) => in_items(values, entries, &|items, entries| moved_in(items, entries, moved)),
        DataType::FixedSizeList(item, width) => {
            let list = values.as_fixed_size_list();
            let (size, items) = fixed_items(list);
            let of_items = entries.iter().flat_map(|&entry| std::iter::repeat_n(entry, size));
            let items = moved_in(&items, &of_items.collect::<Vec<_>>(), moved)?;
            let array = FixedSizeListArray::try_new(Arc::clone(item), *width, items, list.nulls().cloned());
            built(array.map(|array| Arc::new(array) as ArrayRef))
        }
        _ => Ok(Arc::clone(values)),
    }
}

/// The members of links with the new places.
fn moved_links(
    links: &StructArray,
    entries: &[usize],
    moved: &BTreeMap<u32, Moved>,
) -> std::result::Result<Vec<ArrayRef>, Wrong> {
    let numbers = |name: &str| links.column_by_name(name).and_then(|column| column.as_primitive_opt::<UInt32Type>());
    let (Some(keys), Some(indices)) = (numbers(KEY), numbers(INDEX)) else { return Ok(links.columns().to_vec()) };
    let (mut new_keys, mut new_indices) = (keys.values().to_vec(), indices.values().to_vec());
    for (place, &entry) in entries.iter().enumerate() {
        let Some((key, index)) = new_keys.get_mut(place).zip(new_indices.get_mut(place)) else { continue };
        let Some(target) = moved.get(key) else { continue };
        match target.place(entry, *index) {
            Ok(Some(new)) => *index = new,
            Ok(None) => (*key, *index) = (0, 0),
            Err(what) => return Err((entry, what)),
        }
    }
    let mut new = BTreeMap::from([(KEY, new_keys), (INDEX, new_indices)]);
    let column = |(column, field): (&ArrayRef, &arrow_schema::FieldRef)| match new.remove(field.name().as_str()) {
        Some(numbers) => Arc::new(UInt32Array::new(numbers.into(), column.nulls().cloned())) as ArrayRef,
        None => Arc::clone(column),
    };
    Ok(links.columns().iter().zip(links.fields()).map(column).collect())
}

impl Moved {
    /// The new index of an element; `None` if it is left out.
    ///
    /// # Errors
    /// For an index that is too large, as the end of a sentence.
    pub(crate) fn place(&self, entry: usize, index: u32) -> std::result::Result<Option<u32>, String> {
        let place = self.elements.place(entry, index)?;
        Ok(self.places.get(place).copied().flatten())
    }
}

/// The keys of links to whole containers, which may be in a base class.
pub(crate) fn key_numbers(links: &ArrayRef) -> Option<UInt32Array> {
    let record: &StructArray = links.as_struct_opt()?;
    let own = record.column_by_name(KEY).and_then(|column| column.as_primitive_opt::<UInt32Type>());
    own.cloned().or_else(|| record.columns().iter().find_map(key_numbers))
}

#[cold]
fn out_of_range(index: u32, container: &str, count: usize) -> String {
    format!("its index is {index}, but '{container}' has {count} elements there")
}

#[cold]
fn differing(targets: &BTreeMap<u32, Targets>) -> Error {
    let names: Vec<String> = targets.values().map(|target| format!("'{}'", target.elements.name)).collect();
    let what = format!("the variables differ in type between {}; choose others", names.join(", "));
    Error::invalid_argument(what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Int32Array;

    fn record(columns: Vec<(&str, ArrayRef)>) -> ArrayRef {
        let fields: Fields =
            columns.iter().map(|(name, array)| ArrowField::new(*name, array.data_type().clone(), false)).collect();
        Arc::new(StructArray::new(fields, columns.into_iter().map(|(_, array)| array).collect(), None))
    }

    fn lists(items: ArrayRef, lengths: &[usize]) -> LargeListArray {
        let item = Arc::new(ArrowField::new("item", items.data_type().clone(), false));
        LargeListArray::new(item, OffsetBuffer::from_lengths(lengths.iter().copied()), items, None)
    }

    fn links(keys: Vec<u32>, indices: Vec<u32>) -> ArrayRef {
        let base = record(vec![
            (KEY, Arc::new(UInt32Array::from(keys)) as ArrayRef),
            (INDEX, Arc::new(UInt32Array::from(indices)) as ArrayRef),
        ]);
        record(vec![(":_0", base)])
    }

    /// Links of a slice of entries, whose lists do not begin at 0.
    #[test]
    fn links_in_lists_of_lists_are_resolved_in_their_entry() {
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![10, 11, 20, 30, 31]));
        let elements = lists(record(vec![("n", numbers)]), &[2, 1, 2]);
        let targets = BTreeMap::from([(7, Targets::of("T", &elements))]);
        let inner = lists(links(vec![9, 7, 7, 0, 7], vec![9, 1, 0, 0, 1]), &[1, 2, 0, 2]);
        let outer: ArrayRef = Arc::new(lists(Arc::new(inner), &[1, 1, 1, 1]));
        let found = Links::of(&outer.slice(1, 3), 5).unwrap();
        assert_eq!(found.keys(), BTreeSet::from([7]));
        let Ok(resolved) = found.resolve(&targets, &[], &Keys::default(), (Dangling::Refused, u64::MAX)) else {
            panic!()
        };
        let resolved = resolved.as_list::<i64>();
        let inner = resolved.values().as_list::<i64>();
        assert_eq!(inner.offsets().lengths().collect::<Vec<_>>(), [2, 0, 2]);
        let elements = inner.values().as_struct();
        let numbers = elements.column(0).as_primitive::<arrow_array::types::Int32Type>();
        assert_eq!((numbers.value(0), numbers.value(1), numbers.value(3)), (11, 10, 31));
        assert!(elements.is_null(2));
        // The third entry has two elements.
        let wrong: ArrayRef = Arc::new(lists(links(vec![7, 7], vec![1, 2]), &[0, 0, 2]));
        let Err(failure) =
            Links::of(&wrong, 5).unwrap().resolve(&targets, &[], &Keys::default(), (Dangling::Refused, u64::MAX))
        else {
            panic!()
        };
        let text = failure.of("v").to_string();
        assert!(text.contains("v: entry 7, link 1: its index is 2, but 'T' has 2 elements there"), "{text}");
        let number: ArrayRef = Arc::new(Int32Array::from(vec![1]));
        assert_eq!(Links::of(&number, 0).err().unwrap(), "does not consist of links");
    }

    /// Of a slice of entries, whose lists do not begin at 0, in arrays and records.
    #[test]
    fn links_follow_elements() {
        let inner = lists(links(vec![9, 7, 7, 0, 7], vec![9, 1, 0, 0, 1]), &[1, 2, 0, 2]);
        let outer: ArrayRef = Arc::new(lists(Arc::new(inner), &[1, 1, 1, 1]).slice(1, 3));
        // The entries have two, no and two elements.
        let offsets = OffsetBuffer::from_lengths([2, 0, 2]);
        let elements = Elements { name: "T".to_owned(), offsets };
        let moved = |places: Vec<Option<u32>>| BTreeMap::from([(7, Moved { elements: elements.clone(), places })]);
        let found = with_moved(&outer, &moved(vec![None, Some(0), Some(0), None])).unwrap();
        assert_eq!(found.data_type(), outer.data_type());
        let inner = found.as_list::<i64>().values().as_list::<i64>();
        assert_eq!(inner.offsets().lengths().collect::<Vec<_>>(), [2, 0, 2]);
        let (keys, indices) = members(inner.values()).unwrap();
        assert_eq!((keys.values().as_ref(), indices.values().as_ref()), (&[7, 0, 0, 0][..], &[0, 0, 0, 0][..]));
        let one = |key, index| -> ArrayRef { Arc::new(lists(links(vec![key], vec![index]), &[0, 1, 0])) };
        assert_eq!(&with_moved(&one(8, 5), &moved(vec![None; 4])).unwrap(), &one(8, 5));
        let error = with_moved(&one(7, 0), &moved(vec![None; 4])).unwrap_err();
        assert_eq!(error, (1, "its index is 0, but 'T' has 0 elements there".to_owned()));
    }
}
