//! Makes the wanted fields from the stored ones: ROOT's automatic schema evolution, and read rules.

mod relabel;
mod resolve;
mod rules;
mod selection;
mod source_schema;
mod transform;

pub use relabel::{binary_type, relabel};
pub use rules::ReadRule;
pub use selection::Selection;
pub use source_schema::SourceSchema;
