//! Objects as ROOT's streamers write them, for records of files: the inverse of [`read_behind_key`](super::read_behind_key).

use super::classes::array_item;
use super::cpp::{self, Basic};
use super::members::count_of;
use super::packing::Packing;
use super::value::{Numbers, Object, Value};
use crate::streamer::code::{ARRAY, BITS, CHARACTERS, NOT_STORED, POINTER};
use crate::streamer::{Element, ElementKind, StreamerInfos, Streaming, WHOLE_OBJECT, class_checksum};
use crate::{Error, Result};

impl Object {
    /// The bytes of a record with the object. They may follow a key of any length: they have no references.
    ///
    /// # Errors
    /// Unsupported, with class and member, for values that do not have the type of their member, objects that could not be
    /// read, and members that are not written here: containers of the standard library other than those of numbers and of
    /// pairs of numbers and empty ones, arrays of objects without a counter, and the short forms of `Double32_t` and `Float16_t`.
    pub fn write(&self) -> Result<Vec<u8>> {
        let mut out = Streaming::without_references();
        class(&mut out, self)?;
        Ok(out.buffer.into_vec())
    }

    /// The layouts of the classes of the object and of all objects in it, for the streamer info of the file.
    pub fn layouts(&self) -> StreamerInfos {
        let mut infos = StreamerInfos::default();
        add_layouts(self, &mut infos);
        infos
    }
}

impl Value {
    /// Streams a pointer to an object; null where the value is none.
    ///
    /// # Errors
    /// As [`Object::write`]; for other values.
    pub fn write_pointer(&self, out: &mut Streaming) -> Result<()> {
        pointer(out, self)
    }
}

fn add_layouts(object: &Object, infos: &mut StreamerInfos) {
    // Bases and parts first, as in ROOT's own lists nothing depends on the order.
    object.members.iter().for_each(|value| add_layouts_of(value, infos));
    // Those that are known here have no checksum, and ROOT needs none of them.
    if object.class.checksum != 0 {
        infos.push((*object.class).clone());
    }
}

fn add_layouts_of(value: &Value, infos: &mut StreamerInfos) {
    match value {
        Value::Object(object) => add_layouts(object, infos),
        Value::List(list) => list.iter().for_each(|item| add_layouts_of(item, infos)),
        _ => {}
    }
}

/// An object where it stands.
fn class(out: &mut Streaming, object: &Object) -> Result<()> {
    let name = object.class_name();
    if let Some(basic) = array_item(name) {
        let Some(Value::Numbers(numbers)) = object.members.get(1) else {
            return Err(mismatch(name, object.get("fArray")));
        };
        let count = i32::try_from(numbers.len());
        out.buffer.i32_be(count.map_err(|_| Error::limit(format!("{name} of {} items is too long", numbers.len())))?);
        return put_numbers(out, basic, numbers);
    }
    let text = |out: &mut Streaming, member: &str| put_text(out, object.get(member));
    match name {
        "TObject" => {
            let number = |member: &str| match object.get(member) {
                Some(&Value::UInt(value)) => u32::try_from(value).map_err(|_| mismatch(member, object.get(member))),
                Some(&Value::Int(value)) => u32::try_from(value).map_err(|_| mismatch(member, object.get(member))),
                other => Err(mismatch(member, other)),
            };
            out.numbered_object(number("fUniqueID")?, number("fBits")?);
            Ok(())
        }
        "TNamed" => out.versioned(1, |out| {
            base(out, object)?;
            text(out, "fName")?;
            text(out, "fTitle")
        }),
        "TObjString" => out.versioned(1, |out| {
            base(out, object)?;
            text(out, "fString")
        }),
        "TList" | "THashList" | "TSortedList" => {
            let Some(Value::List(items)) = object.get("fObjects") else {
                return Err(mismatch(name, object.get("fObjects")));
            };
            out.versioned(5, |out| {
                base(out, object)?;
                text(out, "fName")?;
                out.count(items.len());
                items.iter().try_for_each(|item| {
                    pointer(out, item)?;
                    out.no_option();
                    Ok(())
                })
            })
        }
        "TObjArray" => {
            let (Some(Value::List(items)), Some(lower_bound)) = (object.get("fObjects"), object.get("fLowerBound"))
            else {
                return Err(mismatch(name, object.get("fObjects")));
            };
            out.versioned(3, |out| {
                base(out, object)?;
                text(out, "fName")?;
                out.count(items.len());
                put_number(out, Basic::I32, lower_bound)?;
                items.iter().try_for_each(|item| pointer(out, item))
            })
        }
        "TTreeIndex" => {
            let numbers = |member: &str| match object.get(member) {
                Some(Value::Numbers(numbers @ Numbers::I64(_))) => Ok(numbers),
                other => Err(mismatch(member, other)),
            };
            let values = [numbers("fIndexValues")?, numbers("fIndexValuesMinor")?, numbers("fIndex")?];
            let base = object.members.first().unwrap_or(&Value::Null);
            out.versioned(2, |out| {
                part(out, "TVirtualIndex", base)?;
                text(out, "fMajorName")?;
                text(out, "fMinorName")?;
                out.buffer.i64_be(values[0].len() as i64);
                values.iter().try_for_each(|numbers| put_numbers(out, Basic::I64, numbers))
            })
        }
        "TDatime" => Err(Error::unsupported(format!("writing objects of class {name} is not supported"))),
        _ => {
            // The highest two bits of a version mean something else. ROOT 6.40 gives `TH1L` version 0.
            let is_valid = |version: &u16| *version < 0x4000 && (*version > 0 || object.class.checksum != 0);
            let version = u16::try_from(object.version()).ok().filter(is_valid);
            let version = version.ok_or_else(|| Error::unsupported(format!("class {name} has no valid version")))?;
            out.versioned(version, |out| members(out, object))
        }
    }
}

/// The version of containers of the standard library and of arrays of objects with a counter: that of `TStreamerInfo`.
const CONTAINER_VERSION: u16 = 9;

/// The `TObject` of a class that ROOT streams by custom code.
fn base(out: &mut Streaming, object: &Object) -> Result<()> {
    match object.members.first() {
        Some(Value::Object(base)) => class(out, base),
        other => Err(mismatch("TObject", other)),
    }
}

fn members(out: &mut Streaming, object: &Object) -> Result<()> {
    for (element, value) in object.class.elements.iter().zip(&object.members) {
        let within =
            |error: Error| error.within(format_args!("{}::{}", object.class_name(), element.name.escape_debug()));
        member(out, object, element, value).map_err(within)?;
    }
    Ok(())
}

fn member(out: &mut Streaming, object: &Object, element: &Element, value: &Value) -> Result<()> {
    let is_single = element.array_length <= 1;
    match (&element.kind, element.code) {
        (_, NOT_STORED) => Ok(()),
        (ElementKind::Base { .. }, _) => part(out, &element.name, value),
        (ElementKind::Basic, CHARACTERS) => {
            let bytes = if *value == Value::Null { Some(&[][..]) } else { bytes_of(Some(value)) };
            let bytes = bytes.ok_or_else(|| mismatch("char*", Some(value)))?;
            out.count(bytes.len());
            out.buffer.put(bytes);
            Ok(())
        }
        (ElementKind::Basic, BITS) => put_number(out, Basic::U32, value),
        (ElementKind::Basic, code @ 21..=39) => match (basic_of(element, code - ARRAY)?, value) {
            (basic, Value::Numbers(numbers) | Value::Grid(_, numbers))
                if i32::try_from(numbers.len()).is_ok_and(|length| length == element.array_length) =>
            {
                put_numbers(out, basic, numbers)
            }
            _ => Err(mismatch(&element.type_name, Some(value))),
        },
        (ElementKind::Basic, code) => put_number(out, basic_of(element, code)?, value),
        (ElementKind::BasicPointer(counter), code) if is_single => {
            let basic = basic_of(element, code - POINTER)?;
            let count = count_of(counter, &object.class, &object.members, || object.class.position(&counter.name))?;
            match value {
                Value::Null if count == 0 => out.buffer.u8(0),
                Value::Numbers(numbers) if numbers.len() == count => {
                    out.buffer.u8(1);
                    put_numbers(out, basic, numbers)?;
                }
                _ => return Err(mismatch(&format!("{} of {count} items", element.type_name), Some(value))),
            }
            Ok(())
        }
        (ElementKind::String, 65) => put_text(out, Some(value)),
        (ElementKind::Stl { item, .. }, _) if is_single => match (value, Basic::from_code(*item)) {
            (Value::List(items), _) if items.is_empty() => out.versioned(CONTAINER_VERSION, |out| {
                out.count(0);
                Ok(())
            }),
            (Value::Numbers(numbers), Some(basic)) => out.versioned(CONTAINER_VERSION, |out| {
                out.count(numbers.len());
                put_numbers(out, basic, numbers)
            }),
            (Value::List(items), _) => pairs(out, element, items),
            _ => Err(not_written(element)),
        },
        (ElementKind::Loop(counter), _) if is_single && !element.type_name.contains("**") => {
            let count = count_of(counter, &object.class, &object.members, || object.class.position(&counter.name))?;
            let Value::List(items) = value else { return Err(mismatch(&element.type_name, Some(value))) };
            if items.len() != count {
                return Err(mismatch(&format!("{} of {count} items", element.type_name), Some(value)));
            }
            out.versioned(CONTAINER_VERSION, |out| {
                items.iter().try_for_each(|item| match element.class_name() {
                    "TString" => put_text(out, Some(item)),
                    name => part(out, name, item),
                })
            })
        }
        (_, 61..=63 | 66..=68) if is_single => part(out, element.class_name(), value),
        (_, 64 | 69 | 70) if is_single => pointer(out, value),
        _ => Err(not_written(element)),
    }
}

/// Pairs of numbers, member by member as ROOT stores them.
fn pairs(out: &mut Streaming, element: &Element, items: &[Value]) -> Result<()> {
    let pairs: Vec<&Object> = items.iter().filter_map(Value::as_object).collect();
    let class = pairs.first().map(|first| &first.class).filter(|class| {
        let is_number = |member: &Element| matches!(member.kind, ElementKind::Basic);
        let is_like_first = |pair: &&Object| pair.class == **class && pair.members.len() == class.elements.len();
        let is_whole = pairs.len() == items.len() && pairs.iter().all(is_like_first);
        is_whole && cpp::pair(&class.name).is_some() && class.elements.iter().all(is_number)
    });
    let class = class.ok_or_else(|| not_written(element))?;
    out.member_wise(CONTAINER_VERSION, |out| {
        // The version of a class without one, and its checksum, which not every file has.
        out.buffer.u16_be(0);
        out.buffer.u32_be(class_checksum(&class.name, &class.elements));
        out.count(pairs.len());
        for (place, number) in class.elements.iter().enumerate() {
            for pair in &pairs {
                member(out, pair, number, pair.members.get(place).unwrap_or(&Value::Null))?;
            }
        }
        Ok(())
    })
}

fn not_written(element: &Element) -> Error {
    Error::unsupported(format!("writing members of type '{}' is not supported", element.type_name.escape_debug()))
}

/// A base, or a member that is an object.
fn part(out: &mut Streaming, name: &str, value: &Value) -> Result<()> {
    match value {
        Value::Object(object) if object.class_name() == name => class(out, object),
        other => Err(mismatch(name, Some(other))),
    }
}

/// An object behind a pointer. An object that several pointers lead to is written for each.
fn pointer(out: &mut Streaming, value: &Value) -> Result<()> {
    match value {
        Value::Null => {
            out.buffer.u32_be(0);
            Ok(())
        }
        Value::Whole => {
            out.reference(WHOLE_OBJECT);
            Ok(())
        }
        Value::Object(object) => out.pointer(object.class_name(), |out| class(out, object)),
        other => Err(mismatch("pointer", Some(other))),
    }
}

fn basic_of(element: &Element, code: i32) -> Result<Basic> {
    let basic = Basic::from_code(code).filter(|basic| match Packing::of(element, *basic) {
        None | Some(Packing::Float) => true,
        Some(_) => false,
    });
    basic.ok_or_else(|| {
        let what =
            format!("writing members of type '{}' (code {code}) is not supported", element.type_name.escape_debug());
        Error::unsupported(what)
    })
}

fn bytes_of(value: Option<&Value>) -> Option<&[u8]> {
    match value? {
        Value::Text(text) => Some(text.as_bytes()),
        Value::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

fn put_text(out: &mut Streaming, value: Option<&Value>) -> Result<()> {
    out.buffer.text_be(bytes_of(value).ok_or_else(|| mismatch("TString", value))?);
    Ok(())
}

fn put_number(out: &mut Streaming, basic: Basic, value: &Value) -> Result<()> {
    let integer = match *value {
        Value::Bool(value) => Some(i128::from(value)),
        Value::Int(value) => Some(i128::from(value)),
        Value::UInt(value) => Some(i128::from(value)),
        _ => None,
    };
    let float = match *value {
        Value::Float(value) => Some(value),
        _ => integer.map(|value| value as f64),
    };
    let wrong = || mismatch(&format!("{basic:?}"), Some(value));
    macro_rules! put {
        ($type:ty) => {{
            let number = integer.and_then(|value| <$type>::try_from(value).ok());
            out.buffer.put(&number.ok_or_else(wrong)?.to_be_bytes());
        }};
    }
    match basic {
        Basic::Bool => out.buffer.u8(u8::from(integer.ok_or_else(wrong)? != 0)),
        Basic::I8 => put!(i8),
        Basic::U8 => put!(u8),
        Basic::I16 => put!(i16),
        Basic::U16 => put!(u16),
        Basic::I32 => put!(i32),
        Basic::U32 => put!(u32),
        Basic::I64 => put!(i64),
        Basic::U64 => put!(u64),
        Basic::F32 | Basic::Double32 | Basic::Float16 => out.buffer.f32_be(float.ok_or_else(wrong)? as f32),
        Basic::F64 => out.buffer.f64_be(float.ok_or_else(wrong)?),
    }
    Ok(())
}

fn put_numbers(out: &mut Streaming, basic: Basic, numbers: &Numbers) -> Result<()> {
    macro_rules! put {
        ($values:expr) => {
            $values.iter().for_each(|value| out.buffer.put(&value.to_be_bytes()))
        };
    }
    match (basic, numbers) {
        (_, numbers) if numbers.is_empty() => {}
        (Basic::Bool, Numbers::Bool(values)) => values.iter().for_each(|&value| out.buffer.u8(value.into())),
        (Basic::I8, Numbers::I8(values)) => put!(values),
        (Basic::U8, Numbers::U8(values)) => put!(values),
        (Basic::I16, Numbers::I16(values)) => put!(values),
        (Basic::U16, Numbers::U16(values)) => put!(values),
        (Basic::I32, Numbers::I32(values)) => put!(values),
        (Basic::U32, Numbers::U32(values)) => put!(values),
        (Basic::I64, Numbers::I64(values)) => put!(values),
        (Basic::U64, Numbers::U64(values)) => put!(values),
        (Basic::F32, Numbers::F32(values)) => put!(values),
        (Basic::F64, Numbers::F64(values)) => put!(values),
        (Basic::Double32, Numbers::F64(values)) => values.iter().for_each(|&value| out.buffer.f32_be(value as f32)),
        _ => return Err(Error::unsupported(format!("expected {basic:?}, found {}", numbers.type_name()))),
    }
    Ok(())
}

#[cold]
fn mismatch(expected: &str, value: Option<&Value>) -> Error {
    let found = match value {
        None => "nothing".to_owned(),
        Some(Value::Null | Value::Enclosing | Value::Whole) => "a pointer".to_owned(),
        Some(Value::Bool(value)) => value.to_string(),
        Some(Value::Int(value)) => value.to_string(),
        Some(Value::UInt(value)) => value.to_string(),
        Some(Value::Float(value)) => value.to_string(),
        Some(Value::Text(_) | Value::Bytes(_)) => "a string".to_owned(),
        Some(Value::Numbers(numbers) | Value::Grid(_, numbers)) => {
            format!("{} numbers of type {}", numbers.len(), numbers.type_name())
        }
        Some(Value::List(_)) => "a list".to_owned(),
        Some(Value::Map(_)) => "a map".to_owned(),
        Some(Value::Object(object)) => format!("an object of class {}", object.class_name()),
        Some(Value::Opaque(opaque)) => {
            format!("an object of class {} that could not be read ({})", opaque.class_name, opaque.reason)
        }
    };
    Error::unsupported(format!("expected {expected}, found {found}"))
}
