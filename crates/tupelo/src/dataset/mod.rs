//! The ntuples of many files, read one after the other as one sequence of entries.

mod chain;
mod fields;
mod find;

pub use chain::{Chain, ChainBatches};
pub use fields::{CommonFields, FieldPolicy, UnionFields, add_missing_columns};
pub use find::{find, matching_files, matching_objects};
