//! The field tree of the user: the meaning of the fields of an ntuple, independent of the location of their bytes.
//!
//! A [`Schema`] is made from a descriptor when reading ([`Schema::from_descriptor`]) and from an Arrow schema when
//! writing ([`Schema::from_arrow`]); both go to Arrow by [`Schema::to_arrow`]. The structure of the fields decides;
//! C++ type names only tell apart what is stored alike (pair and record, map and vector, optional and vector).
//!
//! # Reading as another schema
//! [`Read::with_schema`](crate::reader::Read::with_schema) follows ROOT's automatic schema evolution
//! (`tree/ntuple/doc/SchemaEvolution.md`, and what ROOT 6.40 does where that is not the same).
#![doc = include_str!("../../tupelo-schema/src/evolution/evolution.md")]

pub use tupelo_schema::schema::{
    Field, FieldPolicy, Glob, Kind, Primitive, Schema, depth, escaped, metadata, standard_type_name, tighten,
};
