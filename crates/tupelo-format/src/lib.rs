//! The RNTuple binary format and the ROOT file that carries it, as pure functions between bytes and records.
//!
//! Nothing in this crate performs I/O, starts a thread or reads a clock, and nothing in it panics on any input:
//! every function that meets untrusted bytes returns a [`Error`] which says what was wrong and where.
//!
//! # Rooms
//! A room uses only rooms listed before it.
//!
//! | room | what it is |
//! |---|---|
//! | [`error`] | [`Error`]: corrupt, unsupported or over a limit; what and at which offset |
//! | [`type_name`] | C++ type names: templates, fundamental types and all their spellings |
//! | [`wire`] | the only place where bytes become integers |
//! | [`checksum`] | XXH3-64 |
//! | [`compression`] | ROOT's block framing over zlib, lzma, lz4 and zstd |
//! | [`encoding`] | column elements to values and back: one page at a time |
//! | [`locator`] | where a page or an envelope lies |
//! | [`envelope`] | header, footer and page list, as the format lists them |
//! | [`descriptor`] | the validated, immutable view of one ntuple |
//! | [`streamer`] | what ROOT's streamers write: framing, and layouts of classes |
//! | [`object`] | what ROOT's streamers wrote, as values |
//! | [`container`] | the ROOT file: keys, directories, free list, streamer info, anchor |
//! | [`store`] | objects in a store: anchor, manifest |
//! | [`open`] | opening without I/O: which bytes are needed next, until the descriptor is there |
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod checksum;
pub mod compression;
pub mod container;
pub mod descriptor;
pub mod encoding;
pub mod envelope;
pub mod error;
pub mod locator;
pub mod object;
pub mod open;
pub mod store;
pub mod streamer;
pub mod type_name;
pub mod wire;

pub use error::{Error, ErrorKind, Result};
