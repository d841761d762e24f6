//! What the file of a tree says of classes.

use tupelo_format::streamer::code::NOT_STORED;
use tupelo_format::streamer::{ClassInfo, Element, ElementKind};
use tupelo_format::type_name::normalised;

/// What a source says of a class.
#[derive(Debug, Clone)]
pub(super) struct DescribedClass {
    pub(super) version: i32,
    pub(super) checksum: u32,
    /// The types of base classes and the names of stored members, and whether they are bases.
    pub(super) members: Vec<(String, bool)>,
}

impl DescribedClass {
    pub(super) fn of(info: &ClassInfo) -> Self {
        let stored = info.elements.iter().filter(|element| element.code != NOT_STORED);
        let member = |element: &Element| match element.kind {
            ElementKind::Base { .. } => (normalised(&element.name), true),
            _ => (element.name.clone(), false),
        };
        Self { version: info.version, checksum: info.checksum, members: stored.map(member).collect() }
    }
}
