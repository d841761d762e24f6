//! How values of forms are stored in a tree, and which of them ROOT could not read.

use tupelo_format::{Error, Result};

use super::form::{Form, is_base};
use super::{Encoding, Record};

/// Version that ROOT gives to containers, in front of their values (that of `TStreamerInfo`).
const CONTAINER_HEAD: u16 = 9;

/// How a member of an object is stored.
pub(super) fn member(form: &Form) -> Result<Encoding> {
    Ok(match form {
        Form::Text | Form::List(_) => Encoding::Headed(CONTAINER_HEAD, None, Box::new(value(form)?)),
        form => value(form)?,
    })
}

/// How values are stored: numbers, and items of containers.
pub(super) fn value(form: &Form) -> Result<Encoding> {
    Ok(match form {
        Form::Number(basic) => Encoding::Number(*basic),
        Form::Text => Encoding::Text,
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
            Form::Record(ref record) if record.has_text() => return Err(text_in_items()),
            _ => Encoding::Counted(Box::new(value(item)?)),
        },
        Form::Record(record) => headed(record, members(record)?),
    })
}

impl Record {
    fn has_text(&self) -> bool {
        self.members.iter().any(|(_, member)| match member {
            Form::Text => true,
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
    if record.is_flat {
        return flat_members(record, &mut 0);
    }
    let encode = |(name, form): &(String, Form)| {
        check_member(name)?;
        member(form).map_err(|error| error.within(format_args!("member '{name}'")))
    };
    Ok(Encoding::Members(record.members.iter().map(encode).collect::<Result<_>>()?))
}

/// A base class whose members are in the columns from the next one on.
pub(super) fn flat_base(base: &Record, next: &mut usize) -> Result<Encoding> {
    let body = flat_members(base, next)?;
    Ok(headed(base, body))
}

/// Members whose values are in the columns from the next one on.
fn flat_members(record: &Record, next: &mut usize) -> Result<Encoding> {
    let mut encode = |(name, form): &(String, Form)| match form {
        Form::Record(base) if is_base(name) => flat_base(base, next),
        form => {
            check_member(name)?;
            let column = *next;
            *next += 1;
            let encoding = member(form).map_err(|error| error.within(format_args!("member '{name}'")))?;
            Ok(Encoding::Column(column, Box::new(encoding)))
        }
    };
    Ok(Encoding::Sequence(record.members.iter().map(&mut encode).collect::<Result<_>>()?))
}

/// An object with its head.
fn headed(record: &Record, body: Encoding) -> Encoding {
    // Classes without a version are identified by their checksums.
    let (version, checksum) = match u16::try_from(record.version) {
        Ok(version @ 2..) => (version, None),
        _ => (0, Some(record.checksum())),
    };
    Encoding::Headed(version, checksum, Box::new(body))
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
