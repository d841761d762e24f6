//! What is read where something else is wanted than what is on disk.

mod rules;
mod transform;

use std::collections::HashMap;

use arrow_array::ArrayRef;

use super::Ntuple;
use crate::schema::evolution::{Evolved, Rules, Transform};
use crate::schema::{Field, Schema};
use crate::{Error, Result};
pub use rules::ReadRule;
pub(in crate::reader) use rules::Rules as ReadRules;
use transform::Transformer;
pub(crate) use transform::binary_type;

/// The top-level fields to read, and what to make of each.
#[derive(Debug, Default)]
pub(in crate::reader) struct EvolvedFields {
    pub(in crate::reader) fields: Vec<Field>,
    transforms: Vec<Transform>,
}

impl EvolvedFields {
    /// What must be read of a schema on disk to give a wanted one.
    pub(in crate::reader) fn of(disk: &Schema, rules: &Rules<'_>, wanted: &Schema) -> Result<Self> {
        let mut by_name: HashMap<&str, &Field> = disk.fields.iter().map(|field| (field.name.as_str(), field)).collect();
        let mut sources = Self::default();
        for field in &wanted.fields {
            let Some(found) = by_name.remove(field.name.as_str()) else {
                if sources.fields.iter().any(|other| other.name == field.name) {
                    let what = format!("two of the wanted fields are called '{}'", field.name);
                    return Err(Error::invalid_argument(what));
                }
                return Err(Error::no_such("field", &field.name, disk.fields.iter().map(|disk| disk.name.as_str())));
            };
            let Evolved { source, transform } = rules.evolve(found, field)?;
            sources.fields.push(source);
            sources.transforms.push(transform);
        }
        Ok(sources)
    }

    /// Makes of an array of a field of [`EvolvedFields::fields`] what is wanted; `number` gives the number of an entry.
    pub(in crate::reader) fn evolve(
        &self,
        ntuple: &Ntuple,
        field: usize,
        array: ArrayRef,
        binary_strings: bool,
        number: impl Fn(usize) -> u64,
    ) -> Result<ArrayRef> {
        let (rules, compressed) = (ntuple.rules(), ntuple.is_compressed());
        let transformer = Transformer { rules, compressed, binary_strings };
        transformer.apply(&self.transforms[field], array).map_err(|fault| match fault.element {
            Some(element) => fault.error.within(format!("entry {}", number(element))),
            None => fault.error.within(format!("field '{}'", self.fields[field].name)),
        })
    }
}
