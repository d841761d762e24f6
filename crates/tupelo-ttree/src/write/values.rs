//! How values of forms are stored in a tree, and which of them ROOT could not read.

use tupelo_format::{Error, Result};

use super::form::{FlatMember, Form, is_base};
use super::{Encoding, Record};

/// Version that ROOT gives to containers, in front of their values (that of `TStreamerInfo`).
const CONTAINER_HEAD: u16 = 9;
/// Set in this version if the members of items are stored together (`TBufferFile::kStreamedMemberWise`).
const MEMBER_WISE: u16 = 1 << 14;

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
    })
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

/// Fixed arrays are those of numbers.
///
/// # Errors
/// Unsupported for others.
pub fn check_fixed(form: &Form) -> Result<()> {
    match form {
        Form::Fixed(..) if form.numbers().is_none() => Err(no_form(form)),
        _ => Ok(()),
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
    let column = |it: &FlatMember<'_>| {
        let own = member(it.form)?;
        let values = if has_common_head(it.form) { Encoding::Together(Box::new(own)) } else { own };
        Ok(it.path.iter().rev().fold(values, |below, &place| Encoding::Column(place, Box::new(below))))
    };
    let members = item.flat_members().iter().map(column).collect::<Result<_>>()?;
    let (version, checksum) = item.identity();
    Ok(Encoding::ItemClass(version, checksum, Box::new(Encoding::MemberWise(members))))
}

#[cold]
pub(super) fn no_form(form: &Form) -> Error {
    match form {
        Form::Fixed(..) => Error::unsupported("fixed arrays of anything but numbers are not supported in trees"),
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
