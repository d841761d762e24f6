//! The members of objects, element by element of their layout (`TStreamerInfo::ReadBuffer`).
//!
//! Members are read for several objects at once, as ROOT does for member-wise collections: the first member of all
//! objects, then the second of all objects. A single object is read as a batch of one.

use std::sync::Arc;

use super::cpp::{Basic, Type};
use super::packing::Packing;
use super::reader::Reader;
use super::value::{Numbers, Object, TracedMember, TracedObject, Value};
use crate::streamer::code::{ARRAY, BITS, CHARACTERS, NOT_STORED, POINTER};
use crate::streamer::{ClassInfo, Counter, Element, ElementKind};
use crate::{Error, Result};

impl Reader<'_> {
    /// Members and bases of `count` objects, which may be stored member by member.
    pub(super) fn members(&mut self, info: &ClassInfo, count: usize, is_member_wise: bool) -> Result<Vec<Vec<Value>>> {
        self.spend(count, size_of::<Vec<Value>>() + size_of::<Object>())?;
        self.spend(count, info.elements.len().saturating_mul(size_of::<Value>()))?;
        let mut objects: Vec<_> = (0..count).map(|_| Vec::with_capacity(info.elements.len())).collect();
        let traced = if count == 1 { self.trace(info)? } else { None };
        for element in &info.elements {
            let within = |error: Error| error.within(format_args!("{}::{}", info.name, element.name.escape_debug()));
            let start = self.stream.cursor.position();
            self.element(info, element, &mut objects, is_member_wise).map_err(within)?;
            self.trace_member(traced, &element.name, element.code, start);
        }
        Ok(objects)
    }

    /// Records a member that begins at a position and ends here.
    pub(super) fn trace_member(&mut self, traced: Option<usize>, name: &str, code: i32, start: usize) {
        let bytes = start..self.stream.cursor.position();
        if let Some(object) = traced.and_then(|place| self.traced.as_mut()?.get_mut(place)) {
            object.members.push(TracedMember { name: name.to_owned(), code, bytes });
        }
    }

    /// Begins to record where the members of an object are, before those of objects in it.
    pub(super) fn trace(&mut self, info: &ClassInfo) -> Result<Option<usize>> {
        if self.traced.is_none() {
            return Ok(None);
        }
        let names = info.elements.iter().map(|element| element.name.len()).sum::<usize>();
        self.spend(names + info.name.len(), 1)?;
        self.spend(info.elements.len(), size_of::<TracedMember>())?;
        let Some(objects) = &mut self.traced else { return Ok(None) };
        objects.push(TracedObject {
            class_name: info.name.clone(),
            version: info.version,
            members: Vec::with_capacity(info.elements.len()),
        });
        Ok(Some(objects.len() - 1))
    }

    /// Base classes of objects that are stored member by member have no heads.
    fn bases(&mut self, info: &Arc<ClassInfo>, objects: &mut [Vec<Value>]) -> Result<()> {
        let bases = self.members(info, objects.len(), true)?;
        for (members, base) in objects.iter_mut().zip(bases) {
            members.push(self.object(Arc::clone(info), base));
        }
        Ok(())
    }

    pub(super) fn element(
        &mut self,
        info: &ClassInfo,
        element: &Element,
        objects: &mut [Vec<Value>],
        is_member_wise: bool,
    ) -> Result<()> {
        let length = usize::try_from(element.array_length)
            .map_err(|_| Error::corrupt(format!("array has a negative number of items: {}", element.array_length)))?;
        if element.code == NOT_STORED {
            objects.iter_mut().for_each(|members| members.push(Value::Null));
            return Ok(());
        }
        match &element.kind {
            ElementKind::Base { version } => match self.base_layout(element, *version).filter(|_| is_member_wise) {
                Some(info) => self.bases(&info, objects),
                None => each(objects, |_| self.base(&element.name)),
            },
            ElementKind::Basic => self.basic(element, length, objects),
            ElementKind::BasicPointer(counter) => {
                let Some(basic) = element.code.checked_sub(POINTER).and_then(Basic::from_code) else {
                    return Err(unknown(element));
                };
                let packing = Packing::of(element, basic);
                let is_old_place = info.name == "TBranch" && info.version < 10 && element.name == "fBasketSeek";
                each(objects, |members| {
                    let mark = self.stream.cursor.u8()?;
                    let basic = match mark {
                        2 if is_old_place => Basic::I64,
                        // Whatever the streamer info says: `TBranch::Streamer` wrote them by custom code.
                        _ if is_old_place => Basic::I32,
                        _ => basic,
                    };
                    let count = if mark != 0 { self.count(counter, info, members)? } else { 0 };
                    self.several(length, |this| match count {
                        0 => Ok(Value::Null),
                        _ => Ok(Value::Numbers(this.packed(basic, packing, count)?)),
                    })
                })
            }
            ElementKind::Loop(counter) => self.loop_of(info, element, counter, length, objects),
            ElementKind::Stl { .. } | ElementKind::StlString { .. } => self.stl(element, length, objects),
            ElementKind::Other { class_name, .. } => {
                Err(Error::unsupported(format!("members described by a {class_name} are not supported")))
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
                return each(objects, |_| Ok(Value::UInt(self.stream.object_bits()?.into())));
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
        let packing = Packing::of(element, basic);
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
        let packing = match packing {
            None | Some(Packing::Float) => return self.numbers(basic, count),
            Some(packing) => packing,
        };
        let mut cursor = self.stream.cursor.sub(count.saturating_mul(packing.item_bytes()))?;
        self.spend(count, size_of::<f64>())?;
        Ok(Numbers::F64((0..count).map(|_| packing.read(&mut cursor)).collect::<Result<_>>()?))
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
        let class = element.class_name();
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

    /// [`count_of`]; in bases it is looked for among all their members.
    fn count(&mut self, counter: &Counter, info: &ClassInfo, members: &[Value]) -> Result<usize> {
        if counter.class_name != info.name {
            let bases = members.iter().filter_map(Value::as_object);
            self.work(bases.map(|base| base.members.len()).sum::<usize>() + members.len())?;
        }
        count_of(counter, info, members, || self.counter_place(counter, info))
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
        let class = element.class_name();
        let holds_pointers = element.type_name.contains("**");
        each(objects, |members| {
            let count = self.count(counter, info, members)?;
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

fn unknown(element: &Element) -> Error {
    Error::unsupported(format!(
        "member of type '{}' (code {}) is not supported",
        element.type_name.escape_debug(),
        element.code
    ))
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

/// The value of a counter among the members of an object: in its own class, where it has a place, or in a base.
pub(super) fn count_of(
    counter: &Counter,
    info: &ClassInfo,
    members: &[Value],
    place: impl FnOnce() -> Option<usize>,
) -> Result<usize> {
    let found = match counter.class_name == info.name {
        true => place().and_then(|place| members.get(place)),
        false => members.iter().find_map(|base| base.as_object()?.get(&counter.name)),
    };
    match found {
        Some(&Value::Int(count)) => Ok(usize::try_from(count).unwrap_or(0)),
        Some(&Value::UInt(count)) => Ok(usize::try_from(count).unwrap_or(0)),
        _ => {
            let what = format!("the counter {}::{} is missing", counter.class_name, counter.name);
            Err(Error::unsupported(what))
        }
    }
}

/// The type that a member's name spells.
pub(super) fn type_of(element: &Element) -> Result<Type> {
    Type::parse(&element.type_name)
}
