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
pub struct SourceSchema {
    stored: Arc<Schema>,
    /// Whether the source is compressed, which decides the default encodings.
    compressed: bool,
    metadata: Arc<HashMap<String, String>>,
    branches: Option<Branches>,
    /// Whether sources behind this one have rules.
    has_rules_below: bool,
    /// Fields that some sources behind this one lack, each with the name of one of these.
    partial: Arc<HashMap<String, String>>,
    presented: Arc<Presented>,
}

/// What the branches of a tree say of fields that are made from them.
#[derive(Clone)]
struct Branches {
    /// Other names of fields, each with the dotted path that it stands for where no field has the name.
    names: Arc<dyn Fn() -> HashMap<String, String> + Send + Sync>,
    counters: Arc<dyn Fn() -> Vec<(String, String)> + Send + Sync>,
}

impl fmt::Debug for Branches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Branches")
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
    pub fn new(stored: Schema, compressed: bool, metadata: HashMap<String, String>) -> Self {
        let stored = Arc::new(stored);
        let all = Selection { schema: Arc::clone(&stored), evolved: None };
        let presented = Presented { rules: Vec::new(), recipes: Vec::new(), all, names: OnceLock::new() };
        let (metadata, presented) = (Arc::new(metadata), Arc::new(presented));
        Self {
            stored,
            compressed,
            metadata,
            branches: None,
            has_rules_below: false,
            partial: Arc::default(),
            presented,
        }
    }

    /// The same for the fields of a tree. `names` makes other names of fields, each with the dotted path that it stands for
    /// where no field has the name, when a field is first looked up; `counters` what [`SourceSchema::counters`] gives.
    pub fn of_branches(
        self,
        names: impl Fn() -> HashMap<String, String> + Send + Sync + 'static,
        counters: impl Fn() -> Vec<(String, String)> + Send + Sync + 'static,
    ) -> Self {
        Self { branches: Some(Branches { names: Arc::new(names), counters: Arc::new(counters) }), ..self }
    }

    /// The same for a combination of sources like `other`; `partial` are fields that some of them lack, each with the name of
    /// one of these.
    pub fn like(self, other: &Self, partial: HashMap<String, String>) -> Self {
        let (branches, has_rules_below) = (other.branches.clone(), other.runs_user_code());
        Self { branches, has_rules_below, partial: partial.into(), ..self }
    }

    /// The same with the counters of fields that the first source lacks.
    pub fn with_counters(mut self, late: Vec<(String, String)>) -> Self {
        if let Some(branches) = self.branches.as_mut().filter(|_| !late.is_empty()) {
            let first = Arc::clone(&branches.counters);
            branches.counters = Arc::new(move || first().into_iter().chain(late.iter().cloned()).collect());
        }
        self
    }

    /// The same fields, read from other sources; `has_rules_below` says whether any of these has rules.
    pub fn over(self, has_rules_below: bool) -> Self {
        Self { has_rules_below, ..self }
    }

    /// The name of a source behind this one that lacks a field. The values of the field are null there, if it is not left out.
    pub fn lacking(&self, field: &str) -> Option<&str> {
        self.partial.get(field).map(String::as_str)
    }

    /// Whether the fields are made from the branches of a tree: an ntuple has other types for some.
    pub fn is_of_tree(&self) -> bool {
        self.branches.is_some()
    }

    /// Lists, each with the field that has the numbers of their items: names of both.
    pub fn counters(&self) -> Vec<(String, String)> {
        match &self.branches {
            Some(branches) => (branches.counters)(),
            None => self.schema().projected_counters(),
        }
    }

    /// Other names of fields, each with the dotted path that it stands for.
    pub fn other_names(&self) -> HashMap<String, String> {
        self.branches.as_ref().map(|branches| (branches.names)()).unwrap_or_default()
    }

    /// The dotted path of a field by any of its names.
    pub fn path_of(&self, name: &str) -> Option<&str> {
        self.names().find(name).map(|(path, _)| path.as_str())
    }

    /// The same with more rules; see `tupelo::Ntuple::with_rules`.
    pub fn with_rules(&self, more: impl IntoIterator<Item = ReadRule>) -> Result<Self> {
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
    pub fn schema(&self) -> &Schema {
        &self.presented.all.schema
    }

    /// Whether the fields are stored compressed.
    pub fn is_compressed(&self) -> bool {
        self.compressed
    }

    /// The metadata of the Arrow schemas of all batches.
    pub fn metadata(&self) -> &HashMap<String, String> {
        &self.metadata
    }

    /// The Arrow schema of some of the fields.
    pub fn to_arrow(&self, schema: &Schema) -> ArrowSchema {
        schema.to_arrow(self.compressed).with_metadata(HashMap::clone(&self.metadata))
    }

    /// A schema with only those encodings that the writer chose, not those that follow from compression.
    pub fn explicit_encodings(&self, schema: &Schema) -> Schema {
        let mut schema = schema.clone();
        schema.fields.iter_mut().for_each(|field| forget_defaults(field, self.compressed));
        schema
    }

    /// All fields that are [listed](Schema::listed).
    pub fn listed(&self) -> Selection {
        let all = &self.presented.all;
        // With rules, hidden fields are computed too.
        match all.schema.fields.iter().any(|field| field.hidden) && all.evolved.is_none() {
            true => Selection { schema: Arc::new(all.schema.listed()), evolved: None },
            false => all.clone(),
        }
    }

    /// The fields that dotted paths or globs name; no pattern means all that are listed.
    pub fn select<S: AsRef<str>>(&self, patterns: &[S]) -> Result<Selection> {
        match patterns.is_empty() {
            true => Ok(self.listed()),
            false => self.selection(self.schema().select_by(self.names(), patterns)?, self.has_rules()),
        }
    }

    /// A selection without the fields that dotted paths or globs name.
    pub fn exclude<S: AsRef<str>>(&self, selection: &Selection, patterns: &[S]) -> Result<Selection> {
        let (unwanted, _) = self.schema().matching(self.names(), patterns)?;
        self.selection(selection.schema.without(&unwanted), selection.is_evolved())
    }

    /// The fields as another schema.
    pub fn read_as(&self, wanted: &Schema) -> Result<Selection> {
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
    pub fn evolve(
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

    /// A selection of fields of the schema, or of parts of them.
    pub fn choose(&self, schema: Schema) -> Result<Selection> {
        self.selection(schema, self.has_rules())
    }

    fn has_rules(&self) -> bool {
        !self.presented.rules.is_empty()
    }

    /// Whether reading may call functions of the user's, who may not expect to be called by another thread.
    pub fn runs_user_code(&self) -> bool {
        self.has_rules() || self.has_rules_below
    }

    fn names(&self) -> &Names {
        self.presented.names.get_or_init(|| Names::of(self.schema()).with_others(self.other_names()))
    }

    /// Refuses the name of a field.
    pub fn check_new(&self, name: &str) -> Result<()> {
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
