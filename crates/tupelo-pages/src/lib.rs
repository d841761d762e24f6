//! Where pages of ntuples and baskets of trees are stored, and how they become Arrow arrays and back.
//!
//! # Rooms
//! A room uses only the rooms above it in this list.
//!
//! | room | contents |
//! |---|---|
//! | [`source`] | ROOT files, object stores, metadata of ntuples, page storage |
//! | [`sink`] | destinations of pages and envelopes: the traits, ROOT files, object stores |
//! | [`plan`] | which pages a request reads |
//! | [`decode`] | fetches sealed pages and decodes them to Arrow arrays |
//! | [`encode`] | encodes Arrow arrays to sealed pages |

pub mod decode;
pub mod encode;
pub mod plan;
pub mod sink;
pub mod source;

pub use tupelo_core::{Error, ErrorKind, Result};
