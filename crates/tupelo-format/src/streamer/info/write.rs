//! From layouts to bytes, in the versions that ROOT 6 writes.

use super::read::RULES;
use super::{ClassInfo, Counter, Element, ElementKind, StreamerInfos};
use crate::streamer::streamed::Streaming;

impl StreamerInfos {
    /// Returns the payload of a file's streamer info record, to be stored after a key of `key_bytes`.
    pub fn write(&self, key_bytes: u16) -> Vec<u8> {
        let mut out = Streaming::new(key_bytes);
        list(&mut out, "", self.classes.len() + usize::from(!self.rules.is_empty()), |out| {
            for info in &self.classes {
                out.pointer("TStreamerInfo", |out| class_info(out, info));
                out.no_option();
            }
            if !self.rules.is_empty() {
                out.pointer("TList", |out| rules(out, &self.rules));
                out.no_option();
            }
        });
        out.buffer.into_vec()
    }
}

fn list(out: &mut Streaming, name: &str, length: usize, content: impl FnOnce(&mut Streaming)) {
    out.versioned(5, |out| {
        out.object(0);
        out.buffer.string_be(name);
        out.count(length);
        content(out);
    });
}

fn rules(out: &mut Streaming, rules: &[Vec<u8>]) {
    list(out, RULES, rules.len(), |out| {
        for rule in rules {
            out.pointer("TObjString", |out| {
                out.versioned(1, |out| {
                    out.object(0);
                    out.buffer.text_be(rule);
                });
            });
            out.no_option();
        }
    });
}

fn class_info(out: &mut Streaming, info: &ClassInfo) {
    out.versioned(10, |out| {
        out.named(info.bits, &info.name, &info.title);
        out.buffer.u32_be(info.checksum);
        out.buffer.i32_be(info.version);
        out.pointer("TObjArray", |out| {
            out.versioned(3, |out| {
                out.object(0);
                out.buffer.string_be("");
                out.count(info.elements.len());
                out.buffer.i32_be(0);
                for element in &info.elements {
                    let (class_name, version) = class_of(&element.kind);
                    out.pointer(class_name, |out| out.versioned(version, |out| self::element(out, element)));
                }
            });
        });
    });
}

/// Class of an element, and the version in which it is written.
fn class_of(kind: &ElementKind) -> (&str, u16) {
    match kind {
        ElementKind::Base { .. } => ("TStreamerBase", 3),
        ElementKind::Basic => ("TStreamerBasicType", 2),
        ElementKind::BasicPointer(_) => ("TStreamerBasicPointer", 2),
        ElementKind::Loop(_) => ("TStreamerLoop", 2),
        ElementKind::Object => ("TStreamerObject", 2),
        ElementKind::ObjectAny => ("TStreamerObjectAny", 2),
        ElementKind::ObjectPointer => ("TStreamerObjectPointer", 2),
        ElementKind::ObjectAnyPointer => ("TStreamerObjectAnyPointer", 1),
        ElementKind::String => ("TStreamerString", 2),
        ElementKind::Stl { .. } => ("TStreamerSTL", 3),
        ElementKind::StlString { .. } => ("TStreamerSTLstring", 2),
        ElementKind::Other { class_name, version, .. } => (class_name, *version),
    }
}

fn element(out: &mut Streaming, element: &Element) {
    match &element.kind {
        ElementKind::StlString { container, item } => out.versioned(3, |out| stl(out, element, *container, *item)),
        ElementKind::Stl { container, item } => stl(out, element, *container, *item),
        kind => {
            base(out, element);
            match kind {
                ElementKind::Base { version } => out.buffer.i32_be(*version),
                ElementKind::BasicPointer(counter) | ElementKind::Loop(counter) => self::counter(out, counter),
                ElementKind::Other { rest, .. } => out.buffer.put(rest),
                _ => {}
            }
        }
    }
}

fn stl(out: &mut Streaming, element: &Element, container: i32, item: i32) {
    base(out, element);
    out.buffer.i32_be(container);
    out.buffer.i32_be(item);
}

fn base(out: &mut Streaming, element: &Element) {
    out.versioned(4, |out| {
        out.named(element.bits, &element.name, &element.title);
        out.buffer.i32_be(element.code);
        out.buffer.i32_be(element.size);
        out.buffer.i32_be(element.array_length);
        out.buffer.i32_be(element.array_dimensions);
        for index in element.max_index {
            out.buffer.i32_be(index);
        }
        out.buffer.string_be(&element.type_name);
    });
}

fn counter(out: &mut Streaming, counter: &Counter) {
    out.buffer.i32_be(counter.version);
    out.buffer.string_be(&counter.name);
    out.buffer.string_be(&counter.class_name);
}
