//! Makes the wanted fields from the stored ones: ROOT's automatic schema evolution, and read rules.

mod relabel;
mod resolve;
mod rules;
mod selection;
mod source_schema;
mod transform;

pub(crate) use relabel::{binary_type, relabel};
pub use rules::ReadRule;
pub(crate) use selection::Selection;
pub(crate) use source_schema::SourceSchema;
