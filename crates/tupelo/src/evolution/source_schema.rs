//! The fields of a source of entries, as they are stored and as read rules present them.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use arrow_array::ArrayRef;
use arrow_schema::Schema as ArrowSchema;

use super::ReadRule;
use super::resolve::{Evolution, Recipe};
use super::rules;
use super::selection::{EvolvedFields, Selection};
use super::transform::Transformer;
use crate::schema::arrow::default_column_type;
use crate::schema::{Field, Names, Schema};
use crate::{Error, Result};

/// The fields of a source: cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct SourceSchema {
    stored: Arc<Schema>,
    /// Whether the source is compressed, which decides the default encodings.
    compressed: bool,
    metadata: Arc<HashMap<String, String>>,
    others: Option<OtherNames>,
    presented: Arc<Presented>,
}

/// Creates alternative names of fields, with the paths that they stand for.
#[derive(Clone)]
struct OtherNames(Arc<dyn Fn() -> HashMap<String, String> + Send + Sync>);

impl fmt::Debug for OtherNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OtherNames")
    }
}

/// The fields with those that rules compute.
#[derive(Debug)]
struct Presented {
    rules: Vec<ReadRule>,
    recipes: Vec<Recipe>,
    /// All fields. Without rules, these are the stored ones.
    all: Selection,
    /// Created when a field is first looked up by name.
    names: OnceLock<Names>,
}

impl SourceSchema {
    /// `metadata` is that of the Arrow schemas of all batches.
    pub(crate) fn new(stored: Schema, compressed: bool, metadata: HashMap<String, String>) -> Self {
        let stored = Arc::new(stored);
        let all = Selection { schema: Arc::clone(&stored), evolved: None };
        let presented = Presented { rules: Vec::new(), recipes: Vec::new(), all, names: OnceLock::new() };
        let (metadata, presented) = (Arc::new(metadata), Arc::new(presented));
        Self { stored, compressed, metadata, others: None, presented }
    }

    /// The same with other names of fields, each with the dotted path that it stands for where no field has the name. They
    /// are made when a field is first looked up.
    pub(crate) fn with_other_names(self, names: impl Fn() -> HashMap<String, String> + Send + Sync + 'static) -> Self {
        Self { others: Some(OtherNames(Arc::new(names))), ..self }
    }

    /// The dotted path of a field by any of its names.
    pub(crate) fn path_of(&self, name: &str) -> Option<&str> {
        self.names().find(name).map(|(path, _)| path.as_str())
    }

    /// The same with more rules; see [`Ntuple::with_rules`](crate::Ntuple::with_rules).
    pub(crate) fn with_rules(&self, more: impl IntoIterator<Item = ReadRule>) -> Result<Self> {
        let mut rules = self.presented.rules.clone();
        rules.extend(more);
        let recipes = rules::recipes(&rules, &self.stored)?;
        let evolution = Evolution { recipes: &recipes, compressed: self.compressed };
        let fields = self.stored.fields.iter().map(|field| evolution.shape(field));
        let schema = Schema { fields: fields.collect::<Result<_>>()? };
        let evolved = EvolvedFields::new(&self.stored, &evolution, &schema)?;
        let all = Selection { schema: Arc::new(schema), evolved: Some(Arc::new(evolved)) };
        let presented = Arc::new(Presented { rules, recipes, all, names: OnceLock::new() });
        Ok(Self { presented, ..self.clone() })
    }

    /// The fields, including those that rules compute.
    pub(crate) fn schema(&self) -> &Schema {
        &self.presented.all.schema
    }

    pub(crate) fn is_compressed(&self) -> bool {
        self.compressed
    }

    /// The metadata of the Arrow schemas of all batches.
    pub(crate) fn metadata(&self) -> &HashMap<String, String> {
        &self.metadata
    }

    /// The Arrow schema of some of the fields.
    pub(crate) fn to_arrow(&self, schema: &Schema) -> ArrowSchema {
        schema.to_arrow(self.compressed).with_metadata(HashMap::clone(&self.metadata))
    }

    /// A schema with only those encodings that the writer chose, not those that follow from compression.
    pub(crate) fn explicit_encodings(&self, schema: &Schema) -> Schema {
        let mut schema = schema.clone();
        schema.fields.iter_mut().for_each(|field| forget_defaults(field, self.compressed));
        schema
    }

    /// All fields that are [listed](Schema::listed).
    pub(crate) fn listed(&self) -> Selection {
        let all = &self.presented.all;
        // With rules, hidden fields are computed too.
        match all.schema.fields.iter().any(|field| field.hidden) && all.evolved.is_none() {
            true => Selection { schema: Arc::new(all.schema.listed()), evolved: None },
            false => all.clone(),
        }
    }

    /// The fields that dotted paths or globs name; no pattern means all that are listed.
    pub(crate) fn select<S: AsRef<str>>(&self, patterns: &[S]) -> Result<Selection> {
        match patterns.is_empty() {
            true => Ok(self.listed()),
            false => self.selection(self.schema().select_by(self.names(), patterns)?, self.has_rules()),
        }
    }

    /// A selection without the fields that dotted paths or globs name.
    pub(crate) fn exclude<S: AsRef<str>>(&self, selection: &Selection, patterns: &[S]) -> Result<Selection> {
        let (unwanted, _) = self.schema().matching(self.names(), patterns)?;
        self.selection(selection.schema.without(&unwanted), selection.is_evolved())
    }

    /// The fields as another schema.
    pub(crate) fn read_as(&self, wanted: &Schema) -> Result<Selection> {
        self.selection(wanted.clone(), true)
    }

    fn selection(&self, schema: Schema, evolves: bool) -> Result<Selection> {
        let evolution = Evolution { recipes: &self.presented.recipes, compressed: self.compressed };
        let evolved = match evolves {
            true => Some(Arc::new(EvolvedFields::new(&self.stored, &evolution, &schema)?)),
            false => None,
        };
        Ok(Selection { schema: Arc::new(schema), evolved })
    }

    /// Makes the values of a selection from arrays of its stored fields; `number` returns the number of an entry.
    pub(crate) fn evolve(
        &self,
        selection: &Selection,
        mut arrays: Vec<ArrayRef>,
        binary_strings: bool,
        number: impl Fn(usize) -> u64,
    ) -> Result<Vec<ArrayRef>> {
        let Some(evolved) = &selection.evolved else { return Ok(arrays) };
        let (rules, compressed) = (&self.presented.rules[..], self.compressed);
        let transformer = Transformer { rules, compressed, binary_strings };
        for (index, (array, transform)) in arrays.iter_mut().zip(&evolved.transforms).enumerate() {
            *array = transformer.apply(transform, ArrayRef::clone(array)).map_err(|fault| match fault.element {
                Some(element) => fault.error.within(format!("entry {}", number(element))),
                None => fault.error.within(format!("field '{}'", evolved.stored[index].name)),
            })?;
        }
        Ok(arrays)
    }

    fn has_rules(&self) -> bool {
        !self.presented.rules.is_empty()
    }

    fn names(&self) -> &Names {
        self.presented.names.get_or_init(|| {
            let others = self.others.as_ref().map(|others| (others.0)());
            Names::of(self.schema()).with_others(others.unwrap_or_default())
        })
    }

    /// Refuses the name of a field.
    pub(crate) fn check_new(&self, name: &str) -> Result<()> {
        if !self.schema().fields.iter().any(|field| field.name == name) {
            return Ok(());
        }
        let what = format!("field '{name}' already exists; use another name for the new column");
        Err(Error::invalid_argument(what))
    }
}

fn forget_defaults(field: &mut Field, compressed: bool) {
    let default = default_column_type(field, compressed);
    field.encoding = field.encoding.filter(|encoding| Some(encoding.column_type()) != default);
    field.children_mut().iter_mut().for_each(|child| forget_defaults(child, compressed));
}
