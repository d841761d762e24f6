//! Values computed from fields: columns, and the entries to keep.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, new_empty_array};
use arrow_schema::{DataType, Field as ArrowField};
use tupelo_pages::plan::EntrySet;
use tupelo_schema::evolution::Selection;
use tupelo_schema::expression::{Expression, booleans, shorten};
use tupelo_schema::schema::{Field, Kind};

use super::decoded::{DecodedFields, Needed};
use super::sources::EntrySource;
use crate::{Error, Result};

/// A named value for each entry.
#[derive(Debug)]
struct Named {
    name: String,
    source: Source,
    /// The aliases that its expression names, by their places.
    aliases: Vec<usize>,
    /// Its type, independent of the values.
    field: ArrowField,
}

/// The origin of values.
#[derive(Debug)]
enum Source {
    /// An expression, and the fields that it names.
    Expression(Box<(Expression, Selection)>),
    /// The same as the only alias that is named.
    Alias,
    /// Values for all entries of the ntuple.
    Given(ArrayRef),
}

/// Names that expressions may use, each after those that its own expression uses, so nothing recurses over them.
#[derive(Debug, Clone, Default)]
pub(super) struct Aliases {
    list: Vec<Arc<Named>>,
    places: HashMap<String, usize>,
}

/// A column that is computed.
#[derive(Debug)]
pub(super) struct ComputedColumn {
    named: Named,
    known: Arc<Aliases>,
    /// The places of all aliases that it needs, also for others, in ascending order.
    needed: Vec<usize>,
    /// All fields read for it and for its aliases.
    read_fields: Vec<Field>,
}

impl Named {
    /// # Errors
    /// Not found for a name that is neither a field nor an alias; invalid argument for types that do not go together.
    fn new(name: &str, expression: &Expression, source: &dyn EntrySource, known: &Aliases) -> Result<Self> {
        let (mut fields, mut aliases) = (Vec::new(), Vec::new());
        for path in expression.fields() {
            match place(&known.places, path) {
                None => fields.push(globset::escape(path)),
                Some(alias) if aliases.contains(&alias) => {}
                Some(alias) => aliases.push(alias),
            }
        }
        let within = |e: Error| e.within(format!("expression '{}'", shorten(&expression.to_string())));
        let fields = match fields.is_empty() {
            true => Selection::default(),
            false => source.schema().select(&fields).map_err(within)?,
        };
        if let Some(field) = fields.stored_fields().iter().find(|field| holds_objects(field)) {
            let what = format!("field '{}' stores objects of a ROOT streamer, not values", field.name);
            return Err(within(Error::invalid_argument(what)));
        }
        if let ([alias], true) = (&aliases[..], expression.is_name()) {
            let alias = &known.list[*alias];
            if expression.fields().eq([alias.name.as_str()]) {
                // Not evaluated, to preserve the complete type.
                let field = alias.field.clone().with_name(name);
                return Ok(Self { name: name.to_owned(), source: Source::Alias, aliases, field });
            }
        }
        let field = ArrowField::new(name, DataType::Null, true);
        let values = Source::Expression(Box::new((expression.clone(), fields)));
        let mut named = Self { name: name.to_owned(), source: values, aliases, field };
        // Evaluate on empty arrays to find the type before any data is read.
        let empty = |alias: &Named| new_empty_array(alias.field.data_type());
        let decoded = &mut DecodedFields::new(source, EntrySet::default(), None, true);
        (named.field, _) = named.column(known, decoded, |alias, _| Some(empty(alias)))?;
        Ok(named)
    }

    /// The type and the values; `value` returns the values of aliases.
    fn column(
        &self,
        known: &Aliases,
        decoded: &mut DecodedFields<'_>,
        value: impl Fn(&Named, &DecodedFields<'_>) -> Option<ArrayRef>,
    ) -> Result<(ArrowField, ArrayRef)> {
        // Aliases first: they stand before fields of the same name.
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for alias in self.aliases.iter().map(|&alias| &known.list[alias]) {
            let Some(array) = value(alias, decoded) else {
                return Err(Error::invalid_argument(format!("alias '{}' was not computed", alias.name)));
            };
            // Strings that are not UTF-8 are returned as bytes.
            fields.push(Arc::new(alias.field.clone().with_data_type(array.data_type().clone())));
            arrays.push(array);
        }
        let (expression, (own_fields, own_arrays)) = match &self.source {
            Source::Given(values) => return Ok((self.field.clone(), decoded.of_all(values)?)),
            Source::Alias => {
                let array = arrays.swap_remove(0);
                return Ok((self.field.clone().with_data_type(array.data_type().clone()), array));
            }
            Source::Expression(expression) => (&expression.0, decoded.columns(&expression.1, false)?),
        };
        fields.extend(own_fields.into_iter().map(Arc::new));
        arrays.extend(own_arrays);
        let batch = decoded.batch(fields, arrays)?;
        let (field, array) = expression.column(&batch)?;
        Ok((field.with_name(&self.name), array))
    }

    /// The fields of its expression.
    fn read_fields(&self) -> &[Field] {
        match &self.source {
            Source::Expression(expression) => expression.1.stored_fields(),
            Source::Alias | Source::Given(_) => &[],
        }
    }

    /// The value for each entry, where those of the aliases are there.
    fn known_column(&self, known: &Aliases, decoded: &mut DecodedFields<'_>) -> Result<(ArrowField, ArrayRef)> {
        self.column(known, decoded, |alias, decoded| decoded.aliases.get(&alias.name).map(Arc::clone))
    }
}

impl Aliases {
    /// Adds aliases, which may refer to each other in any order.
    ///
    /// # Errors
    /// Invalid argument for circular aliases, and for two of the same name; those of expressions.
    pub(super) fn add(&mut self, aliases: Vec<(String, Expression)>, source: &dyn EntrySource) -> Result<()> {
        let fails = |name: &str, what: &str| Err(Error::invalid_argument(what).within(format!("alias '{name}'")));
        let mut open = HashMap::new();
        for (index, (name, _)) in aliases.iter().enumerate() {
            if open.insert(name.clone(), index).is_some() || self.places.contains_key(name) {
                return fails(name, "the name is already in use");
            }
        }
        // The aliases that depend on each, and the number that each depends on.
        let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); aliases.len()];
        let mut counts = vec![0; aliases.len()];
        for (index, (_, expression)) in aliases.iter().enumerate() {
            let needed: BTreeSet<usize> = expression.fields().filter_map(|path| place(&open, path)).collect();
            counts[index] = needed.len();
            needed.into_iter().for_each(|other| waiting[other].push(index));
        }
        let mut ready: BTreeSet<usize> = (0..aliases.len()).filter(|&index| counts[index] == 0).collect();
        while let Some(index) = ready.pop_first() {
            let (name, expression) = &aliases[index];
            let named = Named::new(name, expression, source, self).map_err(|e| e.within(format!("alias '{name}'")))?;
            self.places.insert(name.clone(), self.list.len());
            self.list.push(Arc::new(named));
            for &other in &waiting[index] {
                counts[other] -= 1;
                if counts[other] == 0 {
                    ready.insert(other);
                }
            }
        }
        match counts.iter().position(|&count| count > 0) {
            Some(index) => fails(&aliases[index].0, "it depends on itself"),
            None => Ok(()),
        }
    }

    /// Adds values for all entries of the ntuple.
    ///
    /// # Errors
    /// Invalid argument for a name already in use, and if the number of values differs from that of entries.
    pub(super) fn give(&mut self, field: ArrowField, values: ArrayRef, entries: u64) -> Result<()> {
        let name = field.name().clone();
        let within = |e: Error| e.within(format!("column '{name}'"));
        if self.places.contains_key(&name) {
            return Err(within(Error::invalid_argument("the name is already in use")));
        }
        if values.len() as u64 != entries {
            let values = values.len();
            let what = format!("found {values} values for {entries} entries; pass one value for each entry");
            return Err(within(Error::invalid_argument(what)));
        }
        self.places.insert(name.clone(), self.list.len());
        let source = Source::Given(values);
        self.list.push(Arc::new(Named { name, source, aliases: Vec::new(), field }));
        Ok(())
    }

    /// The places of these and of all that they need, in ascending order.
    fn closure(&self, aliases: &[usize]) -> Vec<usize> {
        let mut is_needed = vec![false; self.list.len()];
        aliases.iter().for_each(|&alias| is_needed[alias] = true);
        for place in (0..self.list.len()).rev().filter(|_| !aliases.is_empty()) {
            if is_needed[place] {
                self.list[place].aliases.iter().for_each(|&alias| is_needed[alias] = true);
            }
        }
        (0..self.list.len()).filter(|&place| is_needed[place]).collect()
    }
}

/// The place of what a path is, or is a member of; the longest name of several.
fn place(places: &HashMap<String, usize>, path: &str) -> Option<usize> {
    let ends = std::iter::once(path.len()).chain(path.rmatch_indices('.').map(|(at, _)| at));
    ends.filter_map(|end| places.get(&path[..end]).copied()).next()
}

impl ComputedColumn {
    /// # Errors
    /// Not found for a name that is neither a field nor an alias; invalid argument for types that do not go together.
    pub(super) fn new(
        name: &str,
        expression: &Expression,
        source: &dyn EntrySource,
        known: &Arc<Aliases>,
    ) -> Result<Self> {
        Ok(Self::of(Named::new(name, expression, source, known)?, Arc::clone(known)))
    }

    /// The values of an alias.
    pub(super) fn of_alias(name: &str, known: &Arc<Aliases>) -> Result<Self> {
        let Some(&alias) = known.places.get(name) else {
            return Err(Error::no_such("alias", name, known.places.keys().map(String::as_str)));
        };
        let field = known.list[alias].field.clone();
        let named = Named { name: name.to_owned(), source: Source::Alias, aliases: vec![alias], field };
        Ok(Self::of(named, Arc::clone(known)))
    }

    fn of(named: Named, known: Arc<Aliases>) -> Self {
        let needed = known.closure(&named.aliases);
        let mut read_fields = named.read_fields().to_vec();
        for field in needed.iter().flat_map(|&alias| known.list[alias].read_fields()) {
            if !read_fields.contains(field) {
                read_fields.push(field.clone());
            }
        }
        Self { named, known, needed, read_fields }
    }

    /// Its values as which entries to keep.
    fn booleans(&self, values: &ArrayRef) -> Result<BooleanArray> {
        match &self.named.source {
            Source::Expression(expression) => expression.0.booleans(values),
            Source::Alias | Source::Given(_) => booleans(values, &self.known.list[self.needed[0]].name),
        }
    }

    /// Its type, independent of the values.
    pub(super) fn field(&self) -> &ArrowField {
        &self.named.field
    }

    /// All fields read for it.
    pub(super) fn read_fields(&self) -> &[Field] {
        &self.read_fields
    }

    /// Adds what its values are computed from.
    pub(super) fn add_needed<'r>(&'r self, needed: &mut Needed<'r>) {
        needed.fields.extend(self.read_fields.iter().map(|field| field.id));
        needed.aliases.extend(self.needed.iter().map(|&alias| self.known.list[alias].name.as_str()));
    }

    /// The type and the values. Each alias is computed once, even if several expressions use it.
    pub(super) fn column(&self, decoded: &mut DecodedFields<'_>) -> Result<(ArrowField, ArrayRef)> {
        for alias in self.needed.iter().map(|&alias| &self.known.list[alias]) {
            if !decoded.aliases.contains_key(&alias.name) {
                let (_, array) = alias.known_column(&self.known, decoded)?;
                decoded.aliases.insert(alias.name.clone(), array);
            }
        }
        self.named.known_column(&self.known, decoded)
    }
}

/// Expressions would treat the bytes of an object as a string.
fn holds_objects(field: &Field) -> bool {
    matches!(field.kind, Kind::Streamer) || field.children().iter().any(holds_objects)
}

/// Which entries of a batch to keep.
type Keep = dyn Fn(&RecordBatch) -> Result<BooleanArray> + Send + Sync;

/// Entries to keep, decided by some fields before the others are read.
pub(super) enum Cut {
    Function { fields: Selection, binary_strings: bool, keep: Box<Keep> },
    Where(Box<ComputedColumn>),
}

impl fmt::Debug for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Function { fields, .. } => f.debug_struct("Cut").field("fields", fields).finish_non_exhaustive(),
            Self::Where(computed) => computed.fmt(f),
        }
    }
}

impl Cut {
    /// By an expression.
    pub(super) fn of(computed: ComputedColumn) -> Result<Self> {
        computed.booleans(&new_empty_array(computed.field().data_type()))?;
        Ok(Self::Where(Box::new(computed)))
    }

    /// Its expression, and which of the names in it are fields.
    pub(super) fn expression(&self) -> Option<(&Expression, impl Fn(&str) -> bool)> {
        let Self::Where(computed) = self else { return None };
        let Source::Expression(of) = &computed.named.source else { return None };
        let aliases = &computed.known.places;
        Some((&of.0, |name: &str| place(aliases, name).is_none()))
    }

    /// All fields read for it.
    pub(super) fn read_fields(&self) -> &[Field] {
        match self {
            Self::Function { fields, .. } => fields.stored_fields(),
            Self::Where(computed) => computed.read_fields(),
        }
    }

    /// Which of the entries to keep, and leaves only these, with the values of them that are still needed.
    pub(super) fn decide(&self, decoded: &mut DecodedFields<'_>, needed: &Needed<'_>) -> Result<BooleanArray> {
        let kept = match self {
            Self::Function { fields, binary_strings, keep } => {
                let (fields, arrays) = decoded.columns(fields, *binary_strings)?;
                keep(&decoded.batch(fields, arrays)?)?
            }
            Self::Where(computed) => {
                let (_, array) = computed.column(decoded)?;
                computed.booleans(&array)?
            }
        };
        if kept.len() != decoded.len() {
            let (answers, entries) = (kept.len(), decoded.len());
            return Err(Error::invalid_argument(format!("the cut gave {answers} values for {entries} entries")));
        }
        let kept = match kept.nulls() {
            Some(nulls) => BooleanArray::new(kept.values() & nulls.inner(), None),
            None => kept,
        };
        decoded.keep(&kept, needed)?;
        Ok(kept)
    }
}
