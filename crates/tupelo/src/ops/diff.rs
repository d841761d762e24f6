//! What differs between two ntuples, trees, or chains of them.

mod attached;
mod imports;
mod objects;
mod values;

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_cast::{can_cast_types, cast};
use tupelo_format::object::Value;
use tupelo_schema::schema::{Field, Schema};

use self::imports::like_imported;
pub use self::values::Tolerance;
pub(super) use self::values::first_difference;
use super::Progress;
use super::import::relabelled;
use crate::reader::Read;
use crate::{Error, Result};

/// Memory of the entries that are compared at once, in bytes: 16 MiB of each side.
const BATCH_BYTES: u64 = 16 << 20;

/// How two sources differ.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Difference {
    /// The fields that differ, in the order of the first source.
    pub fields: Vec<FieldDifference>,
    /// The metadata of an application that differ, by key.
    pub metadata: Vec<MetadataDifference>,
    /// The aliases of trees that differ, by name: their expressions.
    pub aliases: Vec<MetadataDifference>,
    /// The user information of trees that differs, by name.
    pub user_info: Vec<UserInfoDifference>,
    /// The attribute sets that differ, by name.
    pub attributes: Vec<AttributeSetDifference>,
    /// The numbers of selected entries, if they differ.
    pub entries: Option<(u64, u64)>,
    /// Number of entries that were compared.
    pub compared: u64,
}

/// How an attribute set differs.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AttributeSetDifference {
    /// Its name.
    pub name: String,
    /// What differs.
    pub kind: AttributeSetDifferenceKind,
}

/// What differs of an attribute set.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum AttributeSetDifferenceKind {
    /// Only the first source has it.
    OnlyFirst,
    /// Only the second source has it.
    OnlySecond,
    /// What a comparison of the two sets as ntuples finds. `_rangeStart` and `_rangeLen` are fields: the first entry of each
    /// range, counted from the first selected one, and the number of its entries.
    Content {
        /// What differs.
        difference: Box<Difference>,
        /// The fields of both sets.
        schemas: [Schema; 2],
    },
}

/// How the user information of trees differs.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct UserInfoDifference {
    /// The name of the objects; that of their class if they have none.
    pub name: String,
    /// All objects of that name in both trees.
    pub values: [Vec<Value>; 2],
}

/// How a value of the metadata differs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetadataDifference {
    /// Its key.
    pub key: String,
    /// Its value in both sources, if they have one.
    pub values: [Option<String>; 2],
}

/// How a top-level field differs.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FieldDifference {
    /// Its name.
    pub name: String,
    /// What differs.
    pub kind: FieldDifferenceKind,
}

/// What differs of a field.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum FieldDifferenceKind {
    /// Only the first source has it.
    OnlyFirst,
    /// Only the second source has it.
    OnlySecond,
    /// The C++ types. Values are compared if they can be converted.
    Types(String, String),
    /// The first entry with other values, counted from the first selected one, and the values of that entry: arrays of length 1.
    Values {
        /// The number of the entry.
        entry: u64,
        /// Its values in both sources.
        values: [ArrayRef; 2],
    },
}

impl Difference {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
            && self.metadata.is_empty()
            && self.aliases.is_empty()
            && self.user_info.is_empty()
            && self.attributes.is_empty()
            && self.entries.is_none()
    }
}

/// Compares what two reads select, entry by entry: names and types of fields, metadata, attribute sets, aliases and user
/// information of trees, numbers of entries, and values. Of each field, the first difference is given. What attribute sets
/// say of the selected entries is compared as separate ntuples, but not where entries are matched by keys. Fields are matched
/// by name; fields of other types are compared as those of the first source where Arrow converts them. Types of a tree and of
/// an ntuple are the same if an import makes one from the other. `None` if `progress`, which receives the number of entries
/// that are compared, cancels it.
/// ```no_run
/// use std::ops::ControlFlow;
/// use tupelo::ops::diff::{Tolerance, diff};
///
/// let one = tupelo::open("one.root:Events").open()?.read_all();
/// let other = tupelo::open("other.root:Events").open()?.read_all();
/// let found = diff(&one, &other, Tolerance::default(), &mut |_| ControlFlow::Continue(()))?;
/// assert!(found.is_some_and(|found| found.is_empty()));
/// # Ok::<(), tupelo::Error>(())
/// ```
///
/// # Errors
/// Those of reading.
pub fn diff(
    first: &Read,
    second: &Read,
    tolerance: Tolerance,
    progress: &mut Progress<'_>,
) -> Result<Option<Difference>> {
    let (ours, theirs) = (first.schema_with_computed()?, second.schema_with_computed()?);
    let ([first, second], same) = like_imported([first, second])?;
    let (fields, both) = compare_schemas(&ours, &theirs, &same);
    let mut found = Difference { fields, ..Difference::default() };
    attached::compare([&first, &second], tolerance, &mut found)?;
    if first.count() != second.count() {
        found.entries = Some((first.count(), second.count()));
    }
    match compare([&first, &second], both, tolerance, &mut found, progress)? {
        ControlFlow::Continue(()) => Ok(Some(found)),
        ControlFlow::Break(()) => Ok(None),
    }
}

/// What differs of the names and types of fields, and the names of the fields that both have. The types of some are the `same`.
fn compare_schemas(ours: &Schema, theirs: &Schema, same: &HashSet<String>) -> (Vec<FieldDifference>, Vec<String>) {
    let by_name: HashMap<&str, &Field> = theirs.fields.iter().map(|field| (field.name.as_str(), field)).collect();
    let (mut found, mut both) = (Vec::new(), Vec::new());
    for field in &ours.fields {
        let difference = |kind| FieldDifference { name: field.name.clone(), kind };
        let Some(other) = by_name.get(field.name.as_str()) else {
            found.push(difference(FieldDifferenceKind::OnlyFirst));
            continue;
        };
        let names = [field, other].map(|field| field.display_type().to_owned());
        if names[0] != names[1] && !same.contains(&field.name) {
            let [own, other] = names;
            found.push(difference(FieldDifferenceKind::Types(own, other)));
        }
        both.push(field.name.clone());
    }
    let own: HashSet<&str> = ours.fields.iter().map(|field| field.name.as_str()).collect();
    for field in theirs.fields.iter().filter(|field| !own.contains(field.name.as_str())) {
        found.push(FieldDifference { name: field.name.clone(), kind: FieldDifferenceKind::OnlySecond });
    }
    (found, both)
}

/// Compares the values of the fields that both have.
fn compare(
    reads: [&Read; 2],
    mut names: Vec<String>,
    tolerance: Tolerance,
    found: &mut Difference,
    progress: &mut Progress<'_>,
) -> Result<ControlFlow<()>> {
    let [first, second] = reads;
    let count = first.count().min(second.count());
    let (start, other_start) = (first.range().start, second.range().start);
    let mut done = 0;
    while done < count && !names.is_empty() {
        let left = |read: &Read, start: u64| {
            let fields = read.schema().fields.iter().filter(|field| names.contains(&field.name)).cloned().collect();
            let read = read.clone().with_schema(&Schema { fields })?.with_binary_strings(true);
            Ok::<_, Error>(read.entries(start + done..start + count))
        };
        let mut differing = Vec::new();
        let other = left(second, other_start)?;
        let mut batches = left(first, start)?.batches_of_bytes(BATCH_BYTES)?;
        while differing.is_empty()
            && let Some(batch) = batches.next()
        {
            let batch = batch?;
            let count = batch.num_rows() as u64;
            let range = other_start + done..other_start + done + count;
            let others = other.clone().entries(range).to_batch()?;
            for name in &names {
                let columns = [&batch, &others].map(|batch| batch.column_by_name(name).cloned());
                let [Some(own), Some(other)] = columns else { continue };
                let kind = match compare_column(&own, &other, tolerance)? {
                    Compared::Equal => continue,
                    Compared::Different(entry, values) => FieldDifferenceKind::Values { entry: done + entry, values },
                    Compared::Unlike => {
                        let [own, other] = [first, second].map(|read| type_of(read, name));
                        FieldDifferenceKind::Types(own, other)
                    }
                };
                if matches!(kind, FieldDifferenceKind::Values { .. }) || found.fields.iter().all(|it| it.name != *name)
                {
                    found.fields.push(FieldDifference { name: name.clone(), kind });
                }
                differing.push(name.clone());
            }
            done += count;
            found.compared = done;
            if progress(done).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        // Fields that differ already are not read any further.
        names.retain(|name| !differing.contains(name));
    }
    found.compared = count;
    Ok(ControlFlow::Continue(()))
}

/// The type of a field that was read.
fn type_of(read: &Read, name: &str) -> String {
    let field = read.schema().fields.iter().find(|field| field.name == name);
    field.map(|field| field.display_type().to_owned()).unwrap_or_default()
}

/// How two columns compare.
enum Compared {
    Equal,
    /// The first entry in which they differ, and its values.
    Different(u64, [ArrayRef; 2]),
    /// Their types cannot be compared.
    Unlike,
}

fn compare_column(own: &ArrayRef, other: &ArrayRef, tolerance: Tolerance) -> Result<Compared> {
    let is_castable = can_cast_types(other.data_type(), own.data_type());
    let [first, second] = match own.data_type() == other.data_type() {
        true => [Arc::clone(own), Arc::clone(other)],
        false if is_castable => [Arc::clone(own), cast(other, own.data_type())?],
        // One of them may have members in the bases of classes.
        false => match (relabelled(own, other.data_type()), relabelled(other, own.data_type())) {
            (Ok(own), _) => [own, Arc::clone(other)],
            (_, Ok(other)) => [Arc::clone(own), other],
            _ => return Ok(Compared::Unlike),
        },
    };
    Ok(match first_difference(&first, &second, tolerance) {
        Some(entry) => Compared::Different(entry as u64, [own.slice(entry, 1), other.slice(entry, 1)]),
        None => Compared::Equal,
    })
}
