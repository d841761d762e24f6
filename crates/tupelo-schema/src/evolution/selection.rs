//! What to read of a source.

use std::collections::HashMap;
use std::sync::Arc;

use super::resolve::{Evolution, Evolved, Transform};
use crate::schema::{Field, Schema};
use crate::{Error, Result};

/// A choice of fields, and what must be read for them.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// The fields.
    pub schema: Arc<Schema>,
    /// Set if the fields are not simply a part of the stored fields.
    pub(super) evolved: Option<Arc<EvolvedFields>>,
}

/// The top-level fields to read, and what to make of each.
#[derive(Debug, Default)]
pub(super) struct EvolvedFields {
    pub(super) stored: Vec<Field>,
    pub(super) transforms: Vec<Transform>,
}

impl Selection {
    /// The top-level fields to read, as they are stored.
    pub fn stored_fields(&self) -> &[Field] {
        self.evolved.as_ref().map_or(&self.schema.fields, |evolved| &evolved.stored)
    }

    /// Whether values are transformed after they were read.
    pub fn is_evolved(&self) -> bool {
        self.evolved.is_some()
    }
}

impl EvolvedFields {
    /// The parts of a stored schema that must be read for a wanted one.
    pub(super) fn new(stored: &Schema, evolution: &Evolution<'_>, wanted: &Schema) -> Result<Self> {
        let mut by_name: HashMap<&str, &Field> =
            stored.fields.iter().map(|field| (field.name.as_str(), field)).collect();
        let mut fields = Self::default();
        for field in &wanted.fields {
            let Some(found) = by_name.remove(field.name.as_str()) else {
                if fields.stored.iter().any(|other| other.name == field.name) {
                    let what = format!("two of the wanted fields have the name '{}'", field.name);
                    return Err(Error::invalid_argument(what));
                }
                return Err(Error::no_such(
                    "field",
                    &field.name,
                    stored.fields.iter().map(|known| known.name.as_str()),
                ));
            };
            let Evolved { source, transform } = evolution.evolve(found, field)?;
            fields.stored.push(source);
            fields.transforms.push(transform);
        }
        Ok(fields)
    }
}
