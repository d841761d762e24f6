//! What the file of a tree says of classes.

use std::mem::discriminant;

use tupelo_format::object::Basic;
use tupelo_format::streamer::code::{ARRAY, CHARACTERS, NOT_STORED};
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

/// Whether ROOT reads all members of a class into one with another description: it converts numbers and containers, but
/// neither texts nor arrays behind pointers.
pub(super) fn is_convertible(from: &ClassInfo, to: &ClassInfo) -> bool {
    from.elements.iter().all(|member| {
        let Some(other) = stored(to).find(|other| other.name == member.name) else { return true };
        let is_text = |kind: &ElementKind| matches!(kind, ElementKind::String | ElementKind::StlString { .. });
        let is_pointer = |kind: &ElementKind| matches!(kind, ElementKind::BasicPointer(_) | ElementKind::Loop(_));
        let is_plain = |kind: &ElementKind| *kind == ElementKind::Basic || is_text(kind) || is_pointer(kind);
        let is_same = discriminant(&member.kind) == discriminant(&other.kind);
        let has_same_letters = (member.code == CHARACTERS) == (other.code == CHARACTERS);
        has_same_letters && (is_same || !is_plain(&member.kind) && !is_plain(&other.kind))
    })
}

fn stored(info: &ClassInfo) -> impl Iterator<Item = &Element> {
    info.elements.iter().filter(|element| element.code != NOT_STORED)
}

/// Whether numbers, or arrays of them, with these codes take the same bytes.
fn same_numbers(a: i32, b: i32) -> bool {
    let basic = |code: i32| Basic::from_code(code % ARRAY).filter(|it| !matches!(it, Basic::Double32 | Basic::Float16));
    a / ARRAY == b / ARRAY && (a == b || basic(a).is_some_and(|it| Some(it) == basic(b)))
}
