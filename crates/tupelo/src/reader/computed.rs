//! What is computed of fields: columns, and which entries to keep.

use std::fmt;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, new_empty_array};
use arrow_schema::{DataType, Field as ArrowField, Schema as ArrowSchema};

use super::decoded::Decoded;
use super::{Ntuple, Read};
use crate::expression::Expression;
use crate::schema::{Field, Kind};
use crate::{Error, Result};

/// A named expression.
#[derive(Debug)]
pub(super) struct Computed {
    pub(super) name: String,
    expression: Expression,
    /// The fields that it names.
    fields: Read,
    /// The aliases that it names.
    aliases: Vec<Arc<Computed>>,
    /// All that is read for it, and for its aliases.
    read_fields: Vec<Field>,
    /// Its type, whatever the values are.
    pub(super) field: ArrowField,
}

impl Computed {
    /// # Errors
    /// Not found for a name that is neither a field nor an alias; invalid argument for types that do not go together.
    pub(super) fn new(name: &str, expression: &Expression, ntuple: &Ntuple, known: &[Arc<Self>]) -> Result<Self> {
        let (mut fields, mut aliases) = (Vec::new(), Vec::new());
        for path in expression.fields() {
            let alias = known.iter().filter(|alias| names(path, &alias.name)).max_by_key(|alias| alias.name.len());
            match alias {
                None => fields.push(globset::escape(path)),
                Some(alias) if aliases.iter().any(|other| Arc::ptr_eq(other, alias)) => {}
                Some(alias) => aliases.push(Arc::clone(alias)),
            }
        }
        let fields = match fields.is_empty() {
            true => Read::new(ntuple.clone(), Arc::default(), None),
            false => {
                let select = ntuple.select(fields);
                select.map_err(|e| e.within(format!("expression '{expression}'")))?
            }
        };
        let mut read_fields = fields.disk_fields().to_vec();
        if let Some(field) = read_fields.iter().find(|field| holds_objects(field)) {
            let what = format!("field '{}' has an object of a ROOT streamer, which is no value", field.name);
            return Err(Error::invalid_argument(what).within(format!("expression '{expression}'")));
        }
        for field in aliases.iter().flat_map(|alias| &alias.read_fields) {
            if !read_fields.contains(field) {
                read_fields.push(field.clone());
            }
        }
        let field = ArrowField::new(name, DataType::Null, true);
        let (name, expression) = (name.to_owned(), expression.clone());
        let mut computed = Self { name, expression, fields, aliases, read_fields, field };
        // Types are told before anything is read.
        (computed.field, _) = computed.column(&mut Decoded::new(ntuple, Vec::new(), false, true))?;
        Ok(computed)
    }

    /// All that is read for it.
    pub(super) fn read_fields(&self) -> &[Field] {
        &self.read_fields
    }

    /// The value for each entry, and its type.
    pub(super) fn column(&self, decoded: &mut Decoded<'_>) -> Result<(ArrowField, ArrayRef)> {
        // Aliases first: they stand before fields of the same name.
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for alias in &self.aliases {
            let array = alias.alias_column(decoded)?;
            // Texts that are not UTF-8 come as bytes.
            fields.push(Arc::new(alias.field.clone().with_data_type(array.data_type().clone())));
            arrays.push(array);
        }
        let seen = self.fields.batch(decoded)?;
        fields.extend(seen.schema().fields().iter().cloned());
        arrays.extend(seen.columns().iter().cloned());
        let options = RecordBatchOptions::new().with_row_count(Some(decoded.len()));
        let batch = RecordBatch::try_new_with_options(Arc::new(ArrowSchema::new(fields)), arrays, &options)?;
        let (field, array) = self.expression.column(&batch)?;
        Ok((field.with_name(&self.name), array))
    }

    /// The value of an alias for each entry: computed once, whoever names it.
    fn alias_column(&self, decoded: &mut Decoded<'_>) -> Result<ArrayRef> {
        if let Some(known) = decoded.aliases.get(&self.name) {
            return Ok(Arc::clone(known));
        }
        let (_, array) = self.column(decoded)?;
        decoded.aliases.insert(self.name.clone(), Arc::clone(&array));
        Ok(array)
    }
}

/// To expressions the bytes of an object would be a text.
fn holds_objects(field: &Field) -> bool {
    matches!(field.kind, Kind::Streamer) || field.children().iter().any(holds_objects)
}

/// Whether a path is that of an alias, or of a member of it.
pub(super) fn names(path: &str, alias: &str) -> bool {
    path.strip_prefix(alias).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Which entries of a batch to keep.
type Keep = dyn Fn(&RecordBatch) -> Result<BooleanArray> + Send + Sync;

/// Entries to keep, decided by some fields before the others are read.
pub(super) enum Cut {
    Function { fields: Read, keep: Box<Keep> },
    Where(Box<Computed>),
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
    pub(super) fn of(computed: Computed) -> Result<Self> {
        computed.expression.truths(&new_empty_array(computed.field.data_type()))?;
        Ok(Self::Where(Box::new(computed)))
    }

    /// All that is read for it.
    pub(super) fn read_fields(&self) -> &[Field] {
        match self {
            Self::Function { fields, .. } => fields.disk_fields(),
            Self::Where(computed) => computed.read_fields(),
        }
    }

    /// Which of the entries to keep, and leaves only these.
    pub(super) fn decide(&self, decoded: &mut Decoded<'_>) -> Result<BooleanArray> {
        let kept = match self {
            Self::Function { fields, keep } => keep(&fields.batch(decoded)?)?,
            Self::Where(computed) => {
                let (_, array) = computed.column(decoded)?;
                computed.expression.truths(&array)?
            }
        };
        if kept.len() != decoded.len() {
            let (answers, entries) = (kept.len(), decoded.len());
            return Err(Error::invalid_argument(format!("a cut gave {answers} answers for {entries} entries")));
        }
        let kept = match kept.nulls() {
            Some(nulls) => BooleanArray::new(kept.values() & nulls.inner(), None),
            None => kept,
        };
        decoded.keep(&kept)?;
        Ok(kept)
    }
}
