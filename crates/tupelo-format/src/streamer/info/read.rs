//! From bytes to layouts (`TList::Streamer`, `TStreamerInfo::Streamer`, `TStreamerElement::Streamer` and its heirs).

use super::{ClassInfo, Counter, Element, ElementKind, HAS_RANGE, StreamerInfos};
use crate::streamer::streamed::{Pointer, Streamed};
use crate::type_name::fundamental;
use crate::{Error, Result};

/// Name of the list of rules in the list of layouts.
pub(super) const RULES: &str = "listOfRules";

impl StreamerInfos {
    /// Reads a streamed `TList` of `TStreamerInfo`: the payload of a file's record after a key of `key_bytes`, or, if
    /// that is 0, the extra type information of an ntuple (which starts with the class name of the list).
    ///
    /// # Errors
    /// Corrupt if lengths contradict each other or the bytes are truncated, unsupported for lists older than ROOT 3.
    pub fn read(bytes: &[u8], key_bytes: u16) -> Result<Self> {
        let mut stream = Streamed::new(bytes, key_bytes.into());
        // The byte count is followed by the version of the list or, if the class is named, by a class reference.
        if bytes.get(4..8) == Some(&[0xff; 4]) {
            match stream.pointer()? {
                Pointer::Object { class_name: "TList", .. } => {}
                other => {
                    return Err(Error::unsupported(format!("expected a list of class layouts, found {other:?}")));
                }
            }
        }
        let mut infos = Self::default();
        list(&mut stream, |stream, class_name, end| {
            match class_name {
                "TStreamerInfo" => {
                    infos.push(class_info(stream)?);
                }
                "TList" => rules(stream, &mut infos.rules)?,
                _ => {}
            }
            stream.skip_to(end)
        })?;
        Ok(infos)
    }
}

fn text(stream: &mut Streamed<'_>) -> Result<String> {
    Ok(String::from_utf8_lossy(stream.cursor.text_be()?).into_owned())
}

/// Reads a `TList` and returns its name. Calls `each` with the class name and the end of every object.
fn list<'a>(
    stream: &mut Streamed<'a>,
    mut each: impl FnMut(&mut Streamed<'a>, &str, usize) -> Result<()>,
) -> Result<String> {
    let version = stream.version()?;
    if !(4..=5).contains(&version.number) {
        return Err(Error::unsupported(format!("version {} of the list is not supported", version.number)));
    }
    stream.object()?;
    let name = text(stream)?;
    for _ in 0..stream.count()? {
        // A referenced object is already in the list.
        if let Pointer::Object { class_name, end, .. } = stream.pointer()? {
            each(stream, class_name, end)?;
        }
        stream.option(version.number)?;
    }
    version.end.map_or(Ok(()), |end| stream.skip_to(end))?;
    Ok(name)
}

fn rules(stream: &mut Streamed<'_>, rules: &mut Vec<Vec<u8>>) -> Result<()> {
    let mut found = Vec::new();
    let name = list(stream, |stream, class_name, end| {
        if class_name == "TObjString" {
            stream.version()?;
            stream.object()?;
            found.push(stream.cursor.text_be()?.to_vec());
        }
        stream.skip_to(end)
    })?;
    if name == RULES {
        rules.append(&mut found);
    }
    Ok(())
}

/// Bits, name and title of a `TNamed`.
fn named(stream: &mut Streamed<'_>) -> Result<(u32, String, Vec<u8>)> {
    let version = stream.version()?;
    let (_, bits) = stream.object()?;
    let named = (bits, text(stream)?, stream.cursor.text_be()?.to_vec());
    stream.check_end(version.end)?;
    Ok(named)
}

fn class_info(stream: &mut Streamed<'_>) -> Result<ClassInfo> {
    let version = stream.version()?;
    let (bits, name, title) = named(stream)?;
    let within = |error: Error| error.within(format_args!("class '{}'", name.escape_debug()));
    let checksum = stream.cursor.u32_be()?;
    let class_version = stream.cursor.i32_be()?;
    let elements = match stream.pointer()? {
        Pointer::Null => Vec::new(),
        Pointer::Object { class_name: "TObjArray", end, .. } => {
            let elements = elements(stream).map_err(within)?;
            stream.check_end(Some(end)).map_err(within)?;
            elements
        }
        other => return Err(within(Error::unsupported(format!("expected an array of members, found {other:?}")))),
    };
    version.end.map_or(Ok(()), |end| stream.skip_to(end))?;
    Ok(ClassInfo { name, title, bits, version: class_version, checksum, elements })
}

fn elements(stream: &mut Streamed<'_>) -> Result<Vec<Element>> {
    let version = stream.version()?;
    if version.number < 3 {
        return Err(Error::unsupported(format!("version {} of the array is not supported", version.number)));
    }
    stream.object()?;
    let _name = stream.cursor.text_be()?;
    let count = stream.count()?;
    let _lower_bound = stream.cursor.i32_be()?;
    let mut elements = Vec::new();
    for _ in 0..count {
        match stream.pointer()? {
            Pointer::Null => {}
            Pointer::Object { class_name, end, .. } => {
                elements.push(element(stream, class_name, end)?);
                stream.skip_to(end)?;
            }
            // Nothing that ROOT writes shares members among classes.
            Pointer::Reference(_) => return Err(Error::unsupported("members described elsewhere are not supported")),
        }
    }
    stream.check_end(version.end)?;
    Ok(elements)
}

fn element(stream: &mut Streamed<'_>, class_name: &str, end: usize) -> Result<Element> {
    let outer = stream.version()?;
    let is_stl_string = class_name == "TStreamerSTLstring";
    if is_stl_string {
        // It derives from TStreamerSTL, which has a head of its own.
        stream.version()?;
    }
    let mut element = base(stream)?;
    let stream = &mut *stream;
    element.kind = match class_name {
        // Before version 3 the current version of the class was meant, for which ROOT writes 0.
        "TStreamerBase" if outer.number < 3 => ElementKind::Base { version: 0 },
        "TStreamerBase" => ElementKind::Base { version: stream.cursor.i32_be()? },
        "TStreamerBasicType" => ElementKind::Basic,
        "TStreamerBasicPointer" => ElementKind::BasicPointer(counter(stream)?),
        "TStreamerLoop" => ElementKind::Loop(counter(stream)?),
        "TStreamerObject" => ElementKind::Object,
        "TStreamerObjectAny" => ElementKind::ObjectAny,
        "TStreamerObjectPointer" => ElementKind::ObjectPointer,
        "TStreamerObjectAnyPointer" => ElementKind::ObjectAnyPointer,
        "TStreamerString" => ElementKind::String,
        "TStreamerSTL" | "TStreamerSTLstring" => {
            let (container, item) = (stream.cursor.i32_be()?, stream.cursor.i32_be()?);
            match is_stl_string {
                true => ElementKind::StlString { container, item },
                false => ElementKind::Stl { container, item },
            }
        }
        _ => {
            let rest = stream.bytes(stream.cursor.position(), end).to_vec();
            ElementKind::Other { class_name: class_name.to_owned(), version: outer.number, rest }
        }
    };
    Ok(element)
}

/// The part that all elements have.
fn base(stream: &mut Streamed<'_>) -> Result<Element> {
    let version = stream.version()?;
    let (mut bits, name, title) = named(stream)?;
    let mut code = stream.cursor.i32_be()?;
    let size = stream.cursor.i32_be()?;
    let array_length = stream.cursor.i32_be()?;
    let array_dimensions = stream.cursor.i32_be()?;
    let mut max_index = [0; 5];
    let stored = match version.number {
        1 => stream.cursor.i32_be()?,
        _ => max_index.len() as i32,
    };
    if usize::try_from(stored).map_or(true, |stored| stored > max_index.len()) {
        return Err(Error::corrupt(format!(
            "member '{}' has an invalid number of dimensions: {stored}",
            name.escape_debug()
        )));
    }
    for index in max_index.iter_mut().take(stored.unsigned_abs() as usize) {
        *index = stream.cursor.i32_be()?;
    }
    let type_name = text(stream)?;
    if code == 11 && fundamental(&type_name) == Some("bool") {
        // ROOT once called it an unsigned char.
        code = 18;
    }
    if version.number == 3 {
        // Minimum and maximum, which the title also contains, and the factor that follows from them.
        stream.cursor.take(16)?;
        if stream.cursor.f64_be()? > 0.0 {
            bits |= HAS_RANGE;
        }
    }
    version.end.map_or(Ok(()), |end| stream.skip_to(end))?;
    let kind = ElementKind::Basic;
    Ok(Element { name, title, bits, code, size, array_length, array_dimensions, max_index, type_name, kind })
}

fn counter(stream: &mut Streamed<'_>) -> Result<Counter> {
    Ok(Counter { version: stream.cursor.i32_be()?, name: text(stream)?, class_name: text(stream)? })
}
