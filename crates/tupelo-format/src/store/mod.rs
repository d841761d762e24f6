//! The contents of an object store besides pages and envelopes: an anchor in JSON, and a manifest of the objects; in a
//! DAOS container, an anchor in binary.
//!
//! The anchor is that of ROOT's back end for S3 (`RPageStorageS3.cxx`), with a member `tupelo` that ROOT ignores. The
//! layout is described in `docs/internals/object-layout.md`.

mod anchor;
pub mod daos;
mod manifest;

pub use anchor::{Extension, JsonAnchor, MAX_ANCHOR_BYTES, ObjectFolder, ObjectLink};
pub use manifest::{Manifest, ObjectDigest};
