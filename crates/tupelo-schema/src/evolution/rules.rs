//! Read rules: members of records that are computed from what is on disk, wherever a record of a type stands.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, make_array};
use arrow_cast::cast;
use arrow_schema::{DataType, FieldRef};

use super::relabel::relabel;
use super::resolve::{Recipe, normalised};
use crate::schema::{Field, Kind, Schema, arrow, with_data_type, with_inner_fields};
use crate::{Error, Result};

/// The function of a rule: from the arrays of its sources, all of the same length, and that length, to the arrays of
/// its targets.
type Function = dyn Fn(&[ArrayRef], usize) -> Result<Vec<ArrayRef>> + Send + Sync;

/// How members of a class are computed when it is read, as ROOT's I/O customisation rules (`#pragma read`).
///
/// A rule holds for all records of a class, however deep they stand in collections, and of the versions or the checksum
/// that it names. Its function is called once for all records of a field in a batch: it gets an array for each source member,
/// found in the record or in its base classes, and gives an array for each target. A target that has the name of a
/// member on disk takes its place.
///
/// Rules are not transitive, as in ROOT: what they get is what is on disk, not what another rule made of it; and they
/// know the class by its name on disk.
/// ```
/// use std::sync::{Arc, OnceLock};
/// use arrow_array::{ArrayRef, Float64Array, cast::AsArray, types::Float32Type};
/// use arrow_schema::{DataType, Field};
/// use tupelo::reader::ReadRule;
///
/// let px = Field::new("px", DataType::Float64, false);
/// let rule = ReadRule::new("Polar")
///     .with_versions(1..=2)
///     .with_sources(["r", "phi"])
///     .with_target(tupelo::schema::Field::try_from(&px)?)
///     .with_function(|sources, _| {
///         let (r, phi) = (sources[0].as_primitive::<Float32Type>(), sources[1].as_primitive::<Float32Type>());
///         let px = r.values().iter().zip(phi.values()).map(|(r, phi)| f64::from(r * phi.cos()));
///         Ok(vec![Arc::new(Float64Array::from_iter_values(px)) as ArrayRef])
///     });
/// # drop(rule);
/// # Ok::<(), tupelo::Error>(())
/// ```
#[derive(Clone)]
pub struct ReadRule {
    recipe: Recipe,
    function: Option<Arc<Function>>,
}

impl ReadRule {
    /// A rule for a C++ class of any version. Without a function and targets, it is not complete.
    pub fn new(type_name: &str) -> Self {
        let recipe = Recipe {
            type_name: normalised(type_name),
            versions: None,
            checksum: None,
            sources: Vec::new(),
            targets: Vec::new(),
            hides_sources: false,
        };
        Self { recipe, function: None }
    }

    /// Only for these versions of the class, and for the checksum if one is set too.
    #[must_use]
    pub fn with_versions(mut self, versions: RangeInclusive<u32>) -> Self {
        self.recipe.versions = Some(versions);
        self
    }

    /// Only for the class with this ROOT checksum, and for the versions if some are set too.
    #[must_use]
    pub fn with_checksum(mut self, checksum: u32) -> Self {
        self.recipe.checksum = Some(checksum);
        self
    }

    /// The members that the function gets, in that order.
    #[must_use]
    pub fn with_sources<S: Into<String>>(mut self, members: impl IntoIterator<Item = S>) -> Self {
        self.recipe.sources.extend(members.into_iter().map(Into::into));
        self
    }

    /// One more member that the function computes. `Field::try_from` makes a field of an Arrow field.
    #[must_use]
    pub fn with_target(mut self, field: Field) -> Self {
        self.recipe.targets.push(field);
        self
    }

    /// Whether the sources disappear from the schema.
    #[must_use]
    pub fn with_hidden_sources(mut self, hidden: bool) -> Self {
        self.recipe.hides_sources = hidden;
        self
    }

    /// The function: from the arrays of the sources and their length to one array for each target, of the same length
    /// and of the target's Arrow type. It may be called without any records, and from several threads.
    #[must_use]
    pub fn with_function(
        mut self,
        function: impl Fn(&[ArrayRef], usize) -> Result<Vec<ArrayRef>> + Send + Sync + 'static,
    ) -> Self {
        self.function = Some(Arc::new(function));
        self
    }

    /// Computes the targets for `count` records.
    pub(super) fn call(&self, sources: &[ArrayRef], count: usize, compressed: bool) -> Result<Vec<ArrayRef>> {
        let outputs = || {
            let function = self.function.as_ref().ok_or_else(|| Error::invalid_argument("it lacks a function"))?;
            let outputs = function(sources, count)?;
            let targets = &self.recipe.targets;
            if outputs.len() != targets.len() {
                let what = format!("its function returned {} arrays for {} targets", outputs.len(), targets.len());
                return Err(Error::invalid_argument(what));
            }
            targets.iter().zip(outputs).map(|(target, output)| fit(target, output, count, compressed)).collect()
        };
        outputs().map_err(|e| self.named(e))
    }

    fn check(&self) -> Result<()> {
        let wrong = |what: &str| Err(self.named(Error::invalid_argument(what)));
        match (&self.function, self.recipe.targets.as_slice(), self.recipe.type_name.as_str()) {
            (_, _, "") => wrong("it lacks the name of a class"),
            (_, [], _) => wrong("it lacks targets; specify at least one"),
            (None, ..) => wrong("it lacks a function"),
            _ => Ok(()),
        }
    }

    fn check_class(&self, classes: &BTreeSet<String>) -> Result<()> {
        match classes.contains(&self.recipe.type_name) {
            true => Ok(()),
            false => {
                let known = classes.iter().map(String::as_str);
                Err(self.named(Error::no_such("class on disk", &self.recipe.type_name, known)))
            }
        }
    }

    #[cold]
    fn named(&self, error: Error) -> Error {
        error.within(&self.recipe)
    }
}

impl fmt::Debug for ReadRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadRule").field("recipe", &self.recipe).finish_non_exhaustive()
    }
}

/// The recipes of rules, after all checks that a stored schema allows.
///
/// # Errors
/// Not found, with near names, for a class that is not stored; invalid argument for incomplete rules.
pub(super) fn recipes(rules: &[ReadRule], stored: &Schema) -> Result<Vec<Recipe>> {
    rules.iter().try_for_each(ReadRule::check)?;
    let classes = classes(stored);
    rules.iter().try_for_each(|rule| rule.check_class(&classes))?;
    Ok(rules.iter().map(|rule| rule.recipe.clone()).collect())
}

/// The normalised names of the classes whose records stand anywhere in a schema.
fn classes(schema: &Schema) -> BTreeSet<String> {
    let mut classes = BTreeSet::new();
    let mut left: Vec<&Field> = schema.fields.iter().collect();
    while let Some(field) = left.pop() {
        left.extend(field.children());
        if matches!(field.kind, Kind::Record(_)) && !field.type_name.is_empty() {
            classes.insert(normalised(&field.type_name));
        }
    }
    classes
}

/// The output of a function, in exactly the Arrow type that its target reads as.
fn fit(target: &Field, array: ArrayRef, count: usize, compressed: bool) -> Result<ArrayRef> {
    let wrong =
        |what: String| Err(Error::invalid_argument(format!("its function returned, for '{}', {what}", target.name)));
    if array.len() != count {
        return wrong(format!("{} values for {count} records", array.len()));
    }
    let wanted = arrow::data_type(target, compressed);
    if !is_alike(array.data_type(), &wanted) {
        return wrong(format!("values of Arrow type {}, expected {wanted}", array.data_type()));
    }
    let plain = widest(array.data_type());
    let array = if &plain == array.data_type() { array } else { cast::cast(&array, &plain)? };
    let missing = array.logical_null_count();
    if missing > 0 && !arrow::to_arrow(target, compressed).is_nullable() {
        return wrong(format!("{missing} nulls, which its type '{}' does not allow", target.display_type()));
    }
    match relabel(&array.to_data(), &wanted) {
        Ok(data) => Ok(make_array(data)),
        Err(error) => wrong(format!("values that do not fit its type '{}': {error}", target.display_type())),
    }
}

/// Whether two Arrow types hold the same values: names, nullability, metadata and the width of offsets do not count.
fn is_alike(one: &DataType, other: &DataType) -> bool {
    match (one, other) {
        (DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8, DataType::LargeUtf8) => true,
        (DataType::Binary | DataType::BinaryView | DataType::LargeBinary, DataType::LargeBinary) => true,
        (DataType::List(a) | DataType::LargeList(a), DataType::LargeList(b)) => is_alike(a.data_type(), b.data_type()),
        (DataType::FixedSizeList(a, size), DataType::FixedSizeList(b, wanted)) => {
            size == wanted && is_alike(a.data_type(), b.data_type())
        }
        (DataType::Struct(a), DataType::Struct(b)) => {
            a.len() == b.len()
                && a.iter().zip(b).all(|(a, b)| a.name() == b.name() && is_alike(a.data_type(), b.data_type()))
        }
        (DataType::Union(a, mode), DataType::Union(b, wanted)) => {
            let alike = a.iter().zip(b.iter()).all(|((i, a), (j, b))| i == j && is_alike(a.data_type(), b.data_type()));
            mode == wanted && a.len() == b.len() && alike
        }
        _ => one == other,
    }
}

/// The same type with offsets of 64 bits.
fn widest(data_type: &DataType) -> DataType {
    let wide = |field: &FieldRef| with_data_type(field, widest(field.data_type()));
    match data_type {
        DataType::Utf8 | DataType::Utf8View => DataType::LargeUtf8,
        DataType::Binary | DataType::BinaryView => DataType::LargeBinary,
        DataType::List(item) | DataType::LargeList(item) => DataType::LargeList(wide(item)),
        DataType::FixedSizeList(..) | DataType::Struct(_) => with_inner_fields(data_type, wide),
        other => other.clone(),
    }
}
