//! What is read where something else is wanted than what is on disk.

use arrow_array::ArrayRef;

use super::Ntuple;
use super::transform::Transformer;
use crate::schema::evolution::{Evolved, Rules, Transform};
use crate::schema::{Field, Schema};
use crate::{Error, Result};

/// The top-level fields to read, and what to make of each.
#[derive(Debug, Default)]
pub(super) struct Sources {
    pub(super) fields: Vec<Field>,
    transforms: Vec<Transform>,
}

impl Sources {
    /// What must be read of a schema on disk to give a wanted one.
    pub(super) fn of(disk: &Schema, rules: &Rules<'_>, wanted: &Schema) -> Result<Self> {
        let disk = &disk.fields;
        let mut sources = Self::default();
        for (index, field) in wanted.fields.iter().enumerate() {
            if wanted.fields[..index].iter().any(|other| other.name == field.name) {
                return Err(Error::invalid_argument(format!("two of the wanted fields are called '{}'", field.name)));
            }
            let Some(found) = disk.iter().find(|disk| disk.name == field.name) else {
                return Err(Error::no_such("field", &field.name, disk.iter().map(|disk| disk.name.as_str())));
            };
            let Evolved { source, transform } = rules.evolve(found, field)?;
            sources.fields.push(source);
            sources.transforms.push(transform);
        }
        Ok(sources)
    }

    /// Makes of an array of a field of [`Sources::fields`] what is wanted; `first` is its first entry.
    pub(super) fn evolve(
        &self,
        ntuple: &Ntuple,
        field: usize,
        array: ArrayRef,
        binary_strings: bool,
        first: u64,
    ) -> Result<ArrayRef> {
        let (rules, compressed) = (ntuple.rules(), ntuple.is_compressed());
        let transformer = Transformer { rules, compressed, binary_strings };
        transformer.apply(&self.transforms[field], array).map_err(|fault| match fault.element {
            Some(element) => fault.error.within(format!("entry {}", first + element as u64)),
            None => fault.error,
        })
    }
}
