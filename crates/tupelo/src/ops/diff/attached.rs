//! What differs of what belongs to all entries: metadata, attribute sets, aliases and user information.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use arrow_array::{ArrayRef, UInt64Array};
use arrow_select::concat::concat;
use tupelo_format::object::Value;
use tupelo_schema::schema::Schema;

use super::objects::is_same;
use super::{
    AttributeSetDifference, AttributeSetDifferenceKind, Compared, Difference, FieldDifference, FieldDifferenceKind,
    MetadataDifference, Tolerance, UserInfoDifference, compare_column, compare_schemas,
};
use crate::reader::{Attributes, Ntuple, RANGE_LENGTH, RANGE_START, Read};
use crate::{Error, Result};

/// Adds what differs of the sources of two reads.
pub(super) fn compare(reads: [&Read; 2], tolerance: Tolerance, found: &mut Difference) -> Result<()> {
    let [first, second] = reads.map(Attachments::of);
    let (first, second) = (first?, second?);
    found.metadata = differences(&first.metadata, &second.metadata);
    found.aliases = differences(&first.aliases, &second.aliases);
    for name in union(&first.user_info, &second.user_info) {
        let values = [&first, &second].map(|it| it.user_info.get(name).cloned().unwrap_or_default());
        let [own, other] = &values;
        if own.len() != other.len() || !own.iter().zip(other).all(|(own, other)| is_same(own, other)) {
            found.user_info.push(UserInfoDifference { name: name.clone(), values });
        }
    }
    for name in union(&first.sets, &second.sets) {
        let kind = match (first.sets.get(name), second.sets.get(name)) {
            (Some(_), None) => AttributeSetDifferenceKind::OnlyFirst,
            (None, Some(_)) => AttributeSetDifferenceKind::OnlySecond,
            (Some(own), Some(other)) => {
                let difference = compare_sets(own, other, tolerance)?;
                if difference.is_empty() {
                    continue;
                }
                let schemas = [own.schema.clone(), other.schema.clone()];
                AttributeSetDifferenceKind::Content { difference: Box::new(difference), schemas }
            }
            (None, None) => continue,
        };
        found.attributes.push(AttributeSetDifference { name: name.clone(), kind });
    }
    Ok(())
}

fn union<'a, T>(first: &'a BTreeMap<String, T>, second: &'a BTreeMap<String, T>) -> BTreeSet<&'a String> {
    first.keys().chain(second.keys()).collect()
}

fn differences(own: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> Vec<MetadataDifference> {
    let differing = union(own, other).into_iter().filter(|&key| own.get(key) != other.get(key));
    let difference = |key: &String| {
        let values = [own.get(key).cloned(), other.get(key).cloned()];
        MetadataDifference { key: key.clone(), values }
    };
    differing.map(difference).collect()
}

/// What the files of a source say of the selected entries.
#[derive(Default)]
struct Attachments {
    /// Of several files, the first value of each key; aliases and user information likewise.
    metadata: BTreeMap<String, String>,
    aliases: BTreeMap<String, String>,
    user_info: BTreeMap<String, Vec<Value>>,
    /// The entries of the attribute sets of all files.
    sets: BTreeMap<String, Set>,
}

/// The entries of an attribute set as columns.
struct Set {
    schema: Schema,
    /// One array of each file for each field.
    columns: Vec<Vec<ArrayRef>>,
    entries: u64,
}

impl Attachments {
    fn of(read: &Read) -> Result<Self> {
        let (source, chosen) = (read.source(), read.range());
        let mut all = Self::default();
        let parts = source.parts();
        for (number, part) in parts.iter().enumerate() {
            let attached = source.sidecar().attached(number)?;
            for (key, value) in attached.metadata {
                all.metadata.entry(key).or_insert(value);
            }
            let tree = attached.tree;
            let weight = (tree.weight != 1.0).then(|| ("weight".to_owned(), tree.weight.to_string()));
            let index = tree.index.map(|[major, minor]| ("index".to_owned(), format!("{major}, {minor}")));
            let friend = |[alias, file, tree]: [String; 3]| (format!("friend {alias}"), format!("{file}:{tree}"));
            for (key, value) in tree.friends.into_iter().map(friend).chain(weight).chain(index) {
                all.metadata.entry(key).or_insert(value);
            }
            for (name, expression) in tree.aliases {
                all.aliases.entry(name).or_insert(expression);
            }
            let mut objects: BTreeMap<String, Vec<Value>> = BTreeMap::new();
            for object in tree.user_info {
                objects.entry(name_of(&object)).or_default().push(object);
            }
            for (name, objects) in objects {
                all.user_info.entry(name).or_insert(objects);
            }
            // As in a copy: attributes of entries that are not selected are not compared.
            let moves = parts.len() > 1 || chosen != *part;
            let place = |bound: u64| (part.start.saturating_add(bound)).clamp(chosen.start, chosen.end) - chosen.start;
            for (name, set) in attached.sets {
                let mut attributes = set.all_attributes(true)?;
                if moves {
                    attributes = attributes.moved(place)?;
                }
                let added = || add(&mut all.sets, name, &set, &attributes);
                added().map_err(|error| set.context(error))?;
            }
        }
        Ok(all)
    }
}

/// Adds the entries of the set of a file.
fn add(sets: &mut BTreeMap<String, Set>, name: String, ntuple: &Ntuple, attributes: &Attributes) -> Result<()> {
    if let Some(dropped) = ntuple.descriptor().dropped().first() {
        return Err(Error::unsupported(format!(
            "cannot compare the attribute set: its field '{}' cannot be read: {}",
            dropped.field, dropped.reason
        )));
    }
    let ranges = attributes.ranges();
    let starts: UInt64Array = ranges.iter().map(|range| Some(range.start)).collect();
    let lengths: UInt64Array = ranges.iter().map(|range| Some(range.end - range.start)).collect();
    let own = [Arc::new(starts) as ArrayRef, Arc::new(lengths)];
    let columns: Vec<ArrayRef> = own.into_iter().chain(attributes.values().columns().iter().cloned()).collect();
    let schema = || {
        let range = |name: &str| ntuple.schema().fields.iter().find(|field| field.name == name).cloned();
        let mut schema = ntuple.user_schema()?;
        schema.fields = [RANGE_START, RANGE_LENGTH].into_iter().filter_map(range).chain(schema.fields).collect();
        Ok::<_, Error>(schema)
    };
    let set = match sets.entry(name) {
        std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
        std::collections::btree_map::Entry::Vacant(place) => {
            place.insert(Set { schema: schema()?, columns: vec![Vec::new(); columns.len()], entries: 0 })
        }
    };
    if set.columns.len() != columns.len() || !compare_schemas(&set.schema, &schema()?, &HashSet::new()).0.is_empty() {
        return Err(Error::unsupported(
            "cannot compare the attribute set: its fields differ from those in another file of the chain",
        ));
    }
    set.columns.iter_mut().zip(columns).for_each(|(column, array)| column.push(array));
    set.entries += ranges.len() as u64;
    Ok(())
}

/// Compares two attribute sets as ntuples are compared.
fn compare_sets(own: &Set, other: &Set, tolerance: Tolerance) -> Result<Difference> {
    let (fields, both) = compare_schemas(&own.schema, &other.schema, &HashSet::new());
    let count = own.entries.min(other.entries);
    let entries = (own.entries != other.entries).then_some((own.entries, other.entries));
    let mut found = Difference { fields, entries, compared: count, ..Difference::default() };
    for name in both {
        let [Some(one), Some(another)] = [own.column(&name)?, other.column(&name)?] else { continue };
        let first = |array: ArrayRef| array.slice(0, usize::try_from(count).unwrap_or(usize::MAX).min(array.len()));
        // Other types are named already.
        if let Compared::Different(entry, values) = compare_column(&first(one), &first(another), tolerance)? {
            found.fields.push(FieldDifference { name, kind: FieldDifferenceKind::Values { entry, values } });
        }
    }
    Ok(found)
}

impl Set {
    fn column(&self, name: &str) -> Result<Option<ArrayRef>> {
        let place = self.schema.fields.iter().position(|field| field.name == name);
        let Some(arrays) = place.and_then(|place| self.columns.get(place)) else { return Ok(None) };
        let arrays: Vec<_> = arrays.iter().map(|array| &**array).collect();
        Ok(Some(concat(&arrays)?))
    }
}

/// The name of an object, or that of its class.
fn name_of(value: &Value) -> String {
    let named = |object: &tupelo_format::object::Object| match object.get("fName") {
        Some(Value::Text(name)) if !name.is_empty() => name.clone(),
        _ => object.class_name().to_owned(),
    };
    match value {
        Value::Opaque(opaque) => opaque.class_name.clone(),
        other => other.as_object().map(named).unwrap_or_default(),
    }
}
