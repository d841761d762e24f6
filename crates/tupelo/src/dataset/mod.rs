//! The ntuples of many files: which files, and which fields of them.

mod fields;
mod find;

pub use fields::{CommonFields, UnionFields};
pub use find::{find, matching_files, matching_objects, opened_at_once};

pub use tupelo_schema::schema::FieldPolicy;
