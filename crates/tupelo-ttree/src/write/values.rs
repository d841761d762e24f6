//! How values of forms are stored in a tree, and which of them ROOT could not read.

use tupelo_format::{Error, Result};

use super::form::{CLONES, FlatMember, Form, is_base};
use super::{Encoding, Record};

/// Version that ROOT gives to containers, in front of their values (that of `TStreamerInfo`).
const CONTAINER_HEAD: u16 = 9;
/// Set in this version if the members of items are stored together (`TBufferFile::kStreamedMemberWise`).
const MEMBER_WISE: u16 = 1 << 14;

/// Version of `TClonesArray`, and its bit that says that members are stored for all items together (`kBypassStreamer`).
pub(super) const CLONES_VERSION: u16 = 4;
const IS_MEMBER_WISE: u32 = 1 << 12;
/// ROOT's code of a pointer that may be null (`kObjectP`). One that may not is stored as the object itself (`kObjectp`).
const POINTER: i32 = 64;

/// How a member of an object is stored.
pub(super) fn member(form: &Form) -> Result<Encoding> {
    let head = |version, body| Ok(Encoding::Headed(version, None, Box::new(body)));
    match form {
        Form::Text | Form::List(_) => head(CONTAINER_HEAD, value(form)?),
        Form::Container(it) if it.class().is_none() => match it.pair() {
            // As ROOT stores all of them where they have a head.
            Some(pair) => head(CONTAINER_HEAD | MEMBER_WISE, member_wise(pair)?),
            None => head(CONTAINER_HEAD, value(form)?),
        },
        form => value(form),
    }
}

/// How values are stored: numbers, and items of containers.
pub(super) fn value(form: &Form) -> Result<Encoding> {
    Ok(match form {
        Form::Number(basic) => Encoding::Number(*basic),
        Form::Text | Form::RootText => Encoding::Text,
        Form::Fixed(size, item) => {
            check_fixed(form)?;
            Encoding::Fixed(*size, Box::new(value(item)?))
        }
        Form::List(item) => match **item {
            // There is no class for them.
            Form::Fixed(..) => {
                return Err(Error::unsupported(
                    "vectors of fixed arrays are not supported in trees; write counted arrays instead",
                ));
            }
            Form::Record(ref record) if !record.is_known && record.has_text() => return Err(text_in_items()),
            _ => Encoding::Counted(Box::new(value(item)?)),
        },
        Form::Container(it) => match (it.class(), it.pair(), &it.item) {
            // Neither pairs nor their parts have heads in a map.
            (None, Some(pair), _) => {
                let parts = pair.members.iter().map(|(_, part)| value(part)).collect::<Result<_>>()?;
                Encoding::Counted(Box::new(Encoding::Members(parts)))
            }
            (None, None, item) => Encoding::Counted(Box::new(value(item)?)),
            // As an item too, it is streamed by its class.
            (Some(_), _, Form::Record(item)) if !item.has_root_object() => {
                Encoding::Headed(CONTAINER_HEAD | MEMBER_WISE, None, Box::new(member_wise(item)?))
            }
            (Some(_), _, item) => {
                Encoding::Headed(CONTAINER_HEAD, None, Box::new(Encoding::Counted(Box::new(value(item)?))))
            }
        },
        Form::Record(record) => headed(record, members(record)?),
        Form::ObjectBits => Encoding::ObjectBits,
        Form::Pointed(pointed) => Encoding::Flagged(Box::new(Encoding::Number(pointed.item))),
        Form::Clones(clones) => match clones.code {
            POINTER => Encoding::Pointer(CLONES, Box::new(whole_clones(&clones.item)?)),
            _ => whole_clones(&clones.item)?,
        },
    })
}

/// A `TClonesArray` with the members of its items one after the other, each for all items.
pub(super) fn whole_clones(item: &Record) -> Result<Encoding> {
    let mut head = Vec::new();
    let mut put_text = |text: &str| {
        let length = u8::try_from(text.len()).ok().filter(|length| *length < u8::MAX);
        let length = length.ok_or_else(|| Error::limit(format!("the name of class {text} is too long")))?;
        head.push(length);
        head.extend_from_slice(text.as_bytes());
        Ok::<_, Error>(())
    };
    put_text(&format!("{}s", item.class_name))?;
    put_text(&format!("{};{}", item.class_name, item.version))?;
    let object = [&1_u16.to_be_bytes()[..], &[0; 4], &IS_MEMBER_WISE.to_be_bytes()].concat();
    let mut members = Vec::new();
    add_clones_members(item, &[], &mut members)?;
    let body = Encoding::Prefixed([object, head].concat(), Box::new(Encoding::Clones(members)));
    Ok(Encoding::Headed(CLONES_VERSION, None, Box::new(body)))
}

/// The members of a class and its bases, but `TObject` as one value.
fn add_clones_members(class: &Record, path: &[usize], found: &mut Vec<Encoding>) -> Result<()> {
    for (place, (name, form)) in class.members.iter().enumerate() {
        let path = [path, &[place]].concat();
        match form {
            Form::Record(base) if is_base(name) && !base.is_root_object() => add_clones_members(base, &path, found)?,
            form => found.push(in_records(&path, together(form)?)),
        }
    }
    Ok(())
}

/// The values of a member for several objects.
pub(super) fn together(form: &Form) -> Result<Encoding> {
    let own = member(form)?;
    Ok(if has_common_head(form) { Encoding::Together(Box::new(own)) } else { own })
}

/// The values of a member of records.
fn in_records(path: &[usize], values: Encoding) -> Encoding {
    path.iter().rev().fold(values, |below, &place| Encoding::Column(place, Box::new(below)))
}

impl Record {
    fn has_text(&self) -> bool {
        self.members.iter().any(|(_, member)| match member {
            Form::Text | Form::RootText => !self.is_pair(),
            Form::Record(record) => record.has_text(),
            _ => false,
        })
    }
}

/// ROOT without the class moves the items of a vector byte by byte, and ends with a crash where they have texts.
#[cold]
pub fn text_in_items() -> Error {
    Error::unsupported("ROOT cannot read strings in a vector of objects without their class; leave them out")
}

/// Fixed arrays are those of numbers, and of objects whose class readers know.
///
/// # Errors
/// Unsupported for others.
pub fn check_fixed(form: &Form) -> Result<()> {
    match form.dimensions() {
        (sizes, item) if sizes.is_empty() || matches!(item, Form::Number(_)) => Ok(()),
        (_, Form::Record(record)) if record.is_known => Ok(()),
        _ => Err(no_form(form)),
    }
}

pub(super) fn members(record: &Record) -> Result<Encoding> {
    let encode = |(name, form): &(String, Form)| {
        check_member(name)?;
        member(form).map_err(|error| error.within(format_args!("member '{name}'")))
    };
    Ok(Encoding::Members(record.members.iter().map(encode).collect::<Result<_>>()?))
}

/// An object with its head.
fn headed(record: &Record, body: Encoding) -> Encoding {
    if record.is_root_object() {
        return Encoding::Versioned(1, Box::new(body));
    }
    let (version, checksum) = record.identity();
    Encoding::Headed(version, checksum, Box::new(body))
}

impl Record {
    /// The version that objects state. Classes without one are identified by their checksums.
    fn identity(&self) -> (u16, Option<u32>) {
        match u16::try_from(self.version) {
            Ok(version @ 2..) => (version, None),
            _ => (0, Some(self.checksum())),
        }
    }
}

/// Whether the values of several objects have one head, where members are stored for all items together. ROOT loops over texts
/// and containers behind it (`kSTL`), but each object is streamed by its class (`kAny`, `kObject`), with its own head.
fn has_common_head(form: &Form) -> bool {
    match form {
        Form::Text | Form::List(_) => true,
        Form::Container(container) => container.class().is_none(),
        _ => false,
    }
}

/// Lists of objects whose members are stored for all items together, behind the head of the container.
fn member_wise(item: &Record) -> Result<Encoding> {
    let column = |it: &FlatMember<'_>| Ok(in_records(&it.path, together(it.form)?));
    let members = item.flat_members().iter().map(column).collect::<Result<_>>()?;
    let (version, checksum) = item.identity();
    Ok(Encoding::ItemClass(version, checksum, Box::new(Encoding::MemberWise(members))))
}

#[cold]
pub(super) fn no_form(form: &Form) -> Error {
    match form {
        Form::Fixed(_, item) => {
            let what = item.type_name();
            Error::unsupported(format!("fixed arrays of type {what} are not supported in trees"))
        }
        form => Error::unsupported(format!("values of type {} are not supported", form.type_name())),
    }
}

/// Names of branches: what ROOT would take for something else is refused.
pub(super) fn check_name(name: &str) -> Result<()> {
    match name.chars().find(|c| matches!(c, '[' | ']' | '/') || c.is_control() || c.is_whitespace()) {
        Some(letter) => {
            Err(Error::unsupported(format!("the name of a branch must not contain '{}'", letter.escape_default())))
        }
        None if name.is_empty() => Err(Error::unsupported("the name of a branch must not be empty")),
        None => Ok(()),
    }
}

/// Names of members are those of C++, or of base classes.
///
/// # Errors
/// Unsupported for others.
pub fn check_member(name: &str) -> Result<()> {
    let name = if is_base(name) { name.trim_start_matches(':') } else { name };
    let is_legal = !name.starts_with(|c: char| c.is_ascii_digit()) && !name.is_empty();
    match is_legal && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        true => Ok(()),
        false => Err(Error::unsupported(format!("'{name}' is not a valid name for a member of a class"))),
    }
}
