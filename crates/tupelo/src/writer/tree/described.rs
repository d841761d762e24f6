//! What the file of a tree says of classes.

use std::mem::discriminant;

use tupelo_format::object::Basic;
use tupelo_format::streamer::code::{ARRAY, NOT_STORED};
use tupelo_format::streamer::{ClassInfo, Element, ElementKind};
use tupelo_format::type_name::normalised;

/// Whether objects of a class are stored as those that a source describes. Names of types may differ in spelling, and an enum
/// is a number.
pub(super) fn is_like(described: &ClassInfo, other: &ClassInfo) -> bool {
    let same = |(a, b): (&Element, &Element)| {
        let is_same_type = match (&a.kind, &b.kind) {
            (ElementKind::Basic, ElementKind::Basic) => same_numbers(a.code, b.code),
            (ElementKind::Base { .. }, ElementKind::Base { .. }) => a.code == b.code,
            _ => discriminant(&a.kind) == discriminant(&b.kind) && normalised(&a.type_name) == normalised(&b.type_name),
        };
        a.name == b.name && is_same_type && a.dimensions() == b.dimensions()
    };
    let count = stored(described).count();
    count == other.elements.len() && stored(described).zip(&other.elements).all(same)
}

fn stored(info: &ClassInfo) -> impl Iterator<Item = &Element> {
    info.elements.iter().filter(|element| element.code != NOT_STORED)
}

/// Whether numbers, or arrays of them, with these codes take the same bytes.
fn same_numbers(a: i32, b: i32) -> bool {
    let basic = |code: i32| Basic::from_code(code % ARRAY).filter(|it| !matches!(it, Basic::Double32 | Basic::Float16));
    a / ARRAY == b / ARRAY && (a == b || basic(a).is_some_and(|it| Some(it) == basic(b)))
}
