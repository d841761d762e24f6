//! The damaged files of `conformance/bad`: what is wrong with each, by the classes of malformed input that a reader must
//! expect (file format, envelopes, schema, clusters, pages). The number in front of a name is that of its class.
//!
//! `cargo run -p conformance --example make_bad` writes them. Every checksum is right unless the damage is a wrong one:
//! a reader that relied on checksums alone would believe these files.

mod clusters;
mod envelopes;
mod file;
mod pages;
mod schema;

use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::model::{Model, Page};
use crate::{outcome, samples};

/// No damaged file needs more.
pub const MAX_FILE_BYTES: usize = 4 << 10;

/// The ntuple that is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// [`samples::flat`]
    Flat,
    /// [`samples::nested`]
    Nested,
    /// [`samples::counted`]
    Counted,
}

impl Base {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Flat, Self::Nested, Self::Counted];

    /// The undamaged ntuple.
    pub fn model(self) -> Model {
        match self {
            Self::Flat => samples::flat(),
            Self::Nested => samples::nested(),
            Self::Counted => samples::counted(),
        }
    }

    /// The undamaged file.
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn bytes(self) -> Bytes {
        self.model().build().expect("a small file")
    }

    /// What the undamaged file reads as.
    ///
    /// # Panics
    /// If it cannot be read.
    pub fn data(self) -> Vec<outcome::Data> {
        outcome::read(&self.bytes(), "base", true).expect("an undamaged file")
    }
}

/// One damaged file.
#[derive(Debug, Clone, Copy)]
pub struct Bad {
    /// File name without `.root`.
    pub name: &'static str,
    /// What was damaged.
    pub base: Base,
    /// How.
    pub damage: fn(&mut Model),
}

impl Bad {
    /// The damaged file.
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn bytes(&self) -> Bytes {
        let mut model = self.base.model();
        (self.damage)(&mut model);
        model.build().expect("a small file")
    }
}

const fn flat(name: &'static str, damage: fn(&mut Model)) -> Bad {
    Bad { name, base: Base::Flat, damage }
}

const fn nested(name: &'static str, damage: fn(&mut Model)) -> Bad {
    Bad { name, base: Base::Nested, damage }
}

const fn counted(name: &'static str, damage: fn(&mut Model)) -> Bad {
    Bad { name, base: Base::Counted, damage }
}

/// All damaged files, by name.
pub fn all() -> Vec<Bad> {
    let mut all = [file::BAD, envelopes::BAD, schema::BAD, clusters::BAD, pages::BAD].concat();
    all.sort_by_key(|bad| bad.name);
    all
}

/// Whole trees that ROOT wrote without compression, so that damages reach their records.
///
/// # Panics
/// If they cannot be read.
pub fn trees() -> Vec<Bytes> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("bad_trees");
    let files = ["tree.root", "objects.root"].map(|name| std::fs::read(folder.join(name)).expect("a tree").into());
    files.into()
}

/// The folder of the damaged files.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("bad")
}

/// Overwrites bytes.
fn set(bytes: &mut [u8], position: usize, new: &[u8]) {
    bytes[position..position + new.len()].copy_from_slice(new);
}

/// Overwrites the `n`-th occurrence of bytes by others of the same length.
fn replace(bytes: &mut [u8], old: &[u8], n: usize, new: &[u8]) {
    let position = find(bytes, old, n);
    set(bytes, position, new);
}

/// Position of the `n`-th occurrence.
fn find(bytes: &[u8], wanted: &[u8], n: usize) -> usize {
    let mut places = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(wanted));
    places.nth(n).unwrap_or_else(|| panic!("{} is not there {n} times", wanted.escape_ascii()))
}

/// Replaces the elements of a page by 64-bit integers.
fn store(page: &mut Page, values: &[u64]) {
    page.elements = values.len() as u32;
    page.stored = values.iter().flat_map(|value| value.to_le_bytes()).collect();
}
