//! Fields of ntuples as Arrow fields: schemas, their evolution, and expressions over them. It opens no file and reads no page.
//!
//! The crate `tupelo` offers what users need of it.
//!
//! # Rooms
//! A room uses only the rooms above it in this list.
//!
//! | room | contents |
//! |---|---|
//! | [`expression`] | [`Expression`](expression::Expression): expressions over the fields of an entry |
//! | [`schema`] | the field tree: conversion from descriptors, to and from Arrow; projections |
//! | [`evolution`] | fields as they are wanted from fields as they are stored: schema evolution and read rules |

// For a file of tests that the crates above have, too.
#[cfg(test)]
extern crate self as tupelo_schema;

pub mod evolution;
pub mod expression;
pub mod schema;

pub use tupelo_core::{Error, ErrorKind, Result};
