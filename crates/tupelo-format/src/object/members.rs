//! The members of objects, element by element of their layout (`TStreamerInfo::ReadBuffer`).
//!
//! Members are read for several objects at once, as ROOT does for member-wise collections: the first member of all
//! objects, then the second of all objects. A single object is read as a batch of one.

use super::cpp::{Basic, Type};
use super::reader::Reader;
use super::value::{Numbers, Object, Value};
use crate::streamer::{ClassInfo, Counter, Element, ElementKind};
use crate::{Error, Result};

/// Added to a type's code for fixed arrays …
const ARRAY: i32 = 20;
/// … and for pointers to numbers.
const POINTER: i32 = 40;
const CHARACTERS: i32 = 7;
const BITS: i32 = 15;
/// Code of bases and members that are not stored.
const NOT_STORED: i32 = -1;
/// Bits of a `TObject` that is referred to from elsewhere: the number of a process id follows.
const IS_REFERENCED: u32 = 1 << 4;

/// How `Double32_t` and `Float16_t` are stored.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Packing {
    Float,
    /// Integers of 32 bits, to be divided by the factor and added to the minimum.
    Scaled {
        factor: f64,
        minimum: f64,
    },
    /// Exponent in 8 bits, then sign and so many bits of the mantissa in 16.
    Truncated {
        bits: u32,
    },
}

impl Reader<'_> {
    /// Members and bases of `count` objects.
    pub(super) fn members(&mut self, info: &ClassInfo, count: usize) -> Result<Vec<Vec<Value>>> {
        self.spend(count, size_of::<Vec<Value>>() + size_of::<Object>())?;
        self.spend(count, info.elements.len().saturating_mul(size_of::<Value>()))?;
        let mut objects: Vec<_> = (0..count).map(|_| Vec::with_capacity(info.elements.len())).collect();
        for element in &info.elements {
            let within = |error: Error| error.within(format_args!("{}::{}", info.name, element.name.escape_debug()));
            self.element(info, element, &mut objects).map_err(within)?;
        }
        Ok(objects)
    }

    fn element(&mut self, info: &ClassInfo, element: &Element, objects: &mut [Vec<Value>]) -> Result<()> {
        let length = usize::try_from(element.array_length)
            .map_err(|_| Error::corrupt(format!("array of {} items", element.array_length)))?;
        if element.code == NOT_STORED {
            objects.iter_mut().for_each(|members| members.push(Value::Null));
            return Ok(());
        }
        match &element.kind {
            ElementKind::Base { .. } => each(objects, |_| self.class(&element.name)),
            ElementKind::Basic => self.basic(element, length, objects),
            ElementKind::BasicPointer(counter) => {
                let Some(basic) = element.code.checked_sub(POINTER).and_then(Basic::from_code) else {
                    return Err(unknown(element));
                };
                let packing = packing(element, basic);
                each(objects, |members| {
                    let is_there = self.stream.cursor.u8()? != 0;
                    let count = if is_there { count_of(counter, info, members)? } else { 0 };
                    self.several(length, |this| match count {
                        0 => Ok(Value::Null),
                        _ => Ok(Value::Numbers(this.packed(basic, packing, count)?)),
                    })
                })
            }
            ElementKind::Loop(counter) => self.loop_of(info, element, counter, length, objects),
            ElementKind::Stl { .. } | ElementKind::StlString { .. } => self.stl(element, length, objects),
            ElementKind::Other { class_name, .. } => {
                Err(Error::unsupported(format!("member that is described by a {class_name}")))
            }
            _ => self.class_member(element, length, objects),
        }
    }

    fn basic(&mut self, element: &Element, length: usize, objects: &mut [Vec<Value>]) -> Result<()> {
        match element.code {
            CHARACTERS => {
                return each(objects, |_| match usize::try_from(self.stream.cursor.i32_be()?) {
                    Ok(0) | Err(_) => Ok(Value::Null),
                    Ok(length) => {
                        let bytes = self.stream.cursor.take(length)?;
                        self.text_of(bytes)
                    }
                });
            }
            BITS => {
                return each(objects, |_| {
                    let bits = self.stream.cursor.u32_be()?;
                    if bits & IS_REFERENCED != 0 {
                        self.stream.cursor.u16_be()?;
                    }
                    Ok(Value::UInt(bits.into()))
                });
            }
            _ => {}
        }
        let (code, is_array) = match element.code {
            code @ 21..=39 => (code - ARRAY, true),
            code => (code, false),
        };
        let Some(basic) = Basic::from_code(code) else {
            return Err(unknown(element));
        };
        let packing = packing(element, basic);
        each(objects, |_| match (is_array, basic) {
            (true, _) => {
                let numbers = self.packed(basic, packing, length)?;
                Ok(shaped(element, length, numbers))
            }
            (false, Basic::Double32 | Basic::Float16) => match self.packed(basic, packing, 1)? {
                Numbers::F64(numbers) => Ok(Value::Float(numbers.first().copied().unwrap_or_default())),
                _ => Err(unknown(element)),
            },
            (false, _) => self.number(basic),
        })
    }

    /// Numbers, with the shorter forms of `Double32_t` and `Float16_t`; these two come as doubles.
    fn packed(&mut self, basic: Basic, packing: Option<Packing>, count: usize) -> Result<Numbers> {
        let item_bytes = match packing {
            None | Some(Packing::Float) => return self.numbers(basic, count),
            Some(Packing::Scaled { .. }) => 4_usize,
            Some(Packing::Truncated { .. }) => 3,
        };
        let bytes = count.saturating_mul(item_bytes);
        let mut cursor = self.stream.cursor.sub(bytes)?;
        self.spend(count, size_of::<f64>())?;
        let mut read = || match packing {
            Some(Packing::Scaled { factor, minimum }) => Ok(f64::from(cursor.u32_be()?) / factor + minimum),
            Some(Packing::Truncated { bits }) => {
                let exponent = u32::from(cursor.u8()?);
                let mantissa = u32::from(cursor.u16_be()?);
                let shown = mantissa & ((1 << (bits + 1)) - 1);
                let value = f32::from_bits(exponent << 23 | shown << (23 - bits) & 0x007f_ffff);
                let is_negative = mantissa & 1 << (bits + 1) != 0;
                Ok(f64::from(if is_negative { -value } else { value }))
            }
            _ => cursor.f32_be().map(f64::from),
        };
        Ok(Numbers::F64((0..count).map(|_| read()).collect::<Result<_>>()?))
    }

    /// One value, or as many as an array has.
    pub(super) fn several(&mut self, length: usize, mut read: impl FnMut(&mut Self) -> Result<Value>) -> Result<Value> {
        if length <= 1 {
            return read(self);
        }
        let mut list = self.list(length)?;
        for _ in 0..length {
            list.push(read(self)?);
        }
        Ok(Value::List(list))
    }

    /// Objects by value and behind pointers, and `TString`.
    fn class_member(&mut self, element: &Element, length: usize, objects: &mut [Vec<Value>]) -> Result<()> {
        let class = class_name(&element.type_name);
        let code = element.code;
        match if (81..=90).contains(&code) { code - ARRAY } else { code } {
            // By value, and pointers that are never null.
            61 | 62 | 63 | 66..=68 if code != 86 && code != 87 => {
                each(objects, |_| self.several(length, |this| this.class(class)))
            }
            // Pointers.
            64 | 69 | 70 => each(objects, |_| self.several(length, Self::pointer)),
            65 => {
                // Arrays of strings have a head of their own.
                let version = if code == 85 { Some(self.stream.version()?) } else { None };
                each(objects, |_| self.several(length, Self::text))?;
                self.stream.check_end(version.and_then(|version| version.end))
            }
            _ => Err(unknown(element)),
        }
    }

    /// Pointers to as many objects as a counter says.
    fn loop_of(
        &mut self,
        info: &ClassInfo,
        element: &Element,
        counter: &Counter,
        length: usize,
        objects: &mut [Vec<Value>],
    ) -> Result<()> {
        let version = self.stream.version()?;
        let class = class_name(&element.type_name);
        let holds_pointers = element.type_name.contains("**");
        each(objects, |members| {
            let count = count_of(counter, info, members)?;
            self.several(length, |this| {
                let mut list = this.list(count)?;
                for _ in 0..count {
                    list.push(if holds_pointers { this.pointer()? } else { this.class(class)? });
                }
                Ok(Value::List(list))
            })
        })?;
        self.stream.check_end(version.end)
    }
}

/// Reads one value for each object.
pub(super) fn each(objects: &mut [Vec<Value>], mut read: impl FnMut(&[Value]) -> Result<Value>) -> Result<()> {
    for members in objects {
        let value = read(members)?;
        members.push(value);
    }
    Ok(())
}

/// The class behind a type's pointers.
fn class_name(type_name: &str) -> &str {
    let name = type_name.trim_end_matches(['*', ' ']);
    name.strip_prefix("const ").unwrap_or(name)
}

fn unknown(element: &Element) -> Error {
    Error::unsupported(format!("member of type '{}' (code {})", element.type_name.escape_debug(), element.code))
}

/// A fixed array with its dimensions.
fn shaped(element: &Element, length: usize, numbers: Numbers) -> Value {
    let dimensions: Option<Vec<usize>> = element.dimensions().iter().map(|&n| usize::try_from(n).ok()).collect();
    let dimensions = dimensions.unwrap_or_default();
    let product = dimensions.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
    match dimensions.len() > 1 && product == Some(length) {
        true => Value::Grid(dimensions, numbers),
        false => Value::Numbers(numbers),
    }
}

/// The value of a counter among what was read of an object: in its own class, or in a base.
fn count_of(counter: &Counter, info: &ClassInfo, members: &[Value]) -> Result<usize> {
    let found = match counter.class_name == info.name {
        true => {
            let position = info.elements.iter().position(|element| element.name == counter.name);
            position.and_then(|position| members.get(position))
        }
        false => members.iter().find_map(|base| base.as_object()?.get(&counter.name)),
    };
    match found {
        Some(&Value::Int(count)) => Ok(usize::try_from(count).unwrap_or(0)),
        Some(&Value::UInt(count)) => Ok(usize::try_from(count).unwrap_or(0)),
        _ => {
            let what = format!("the counter {}::{} is not there", counter.class_name, counter.name);
            Err(Error::unsupported(what))
        }
    }
}

/// How the numbers of an element are packed; `None` for all types that have only one way.
fn packing(element: &Element, basic: Basic) -> Option<Packing> {
    let bits_if_truncated = match basic {
        Basic::Double32 => None,
        Basic::Float16 => Some(12),
        _ => return None,
    };
    let range = if element.has_range() { range(&element.title) } else { None };
    let bits = match range {
        Some((minimum, maximum, bits)) if minimum < maximum => {
            let steps = if bits < 32 { f64::from(1_u32 << bits) } else { f64::from(u32::MAX) };
            return Some(Packing::Scaled { factor: steps / (maximum - minimum), minimum });
        }
        Some((_, _, bits)) if bits < 15 => Some(bits),
        _ => bits_if_truncated,
    };
    Some(bits.map_or(Packing::Float, |bits| Packing::Truncated { bits }))
}

/// Parses minimum, maximum and bits of a comment `[min,max,bits]`, which may follow a counter name in brackets
/// (`GetRange` in `TStreamerElement.cxx`).
fn range(title: &[u8]) -> Option<(f64, f64, u32)> {
    let title = std::str::from_utf8(title).ok()?;
    let bracket = |text: &str| {
        let (inside, rest) = text.split_once('[')?.1.split_once(']')?;
        Some((inside.to_owned(), rest.to_owned()))
    };
    let (mut inside, rest) = bracket(title)?;
    if !inside.contains(',') {
        inside = bracket(&rest)?.0;
    }
    let mut parts = inside.split(',');
    let (minimum, maximum) = (bound(parts.next()?), bound(parts.next()?));
    let bits = parts.next().and_then(|bits| bits.trim().parse().ok()).filter(|bits| (2..=32).contains(bits));
    Some((minimum, maximum, bits.unwrap_or(32)))
}

fn bound(text: &str) -> f64 {
    use std::f64::consts::PI;
    let text = text.to_lowercase().replace(' ', "");
    if !text.contains("pi") {
        return text.parse().unwrap_or(0.0);
    }
    let value = match &text {
        text if text.contains("2pi") || text.contains("2*pi") || text.contains("twopi") => 2.0 * PI,
        text if text.contains("pi/2") => PI / 2.0,
        text if text.contains("pi/4") => PI / 4.0,
        _ => PI,
    };
    if text.contains('-') { -value } else { value }
}

/// The type that a member's name spells.
pub(super) fn type_of(element: &Element) -> Result<Type> {
    Type::parse(&element.type_name)
}
