//! Containers of the standard library (`TGenCollectionStreamer.cxx`; `kSTL` in `TStreamerInfoReadBuffer.cxx`).

use std::sync::Arc;

use super::cpp::{self, Basic, Type};
use super::members::{each, type_of};
use super::reader::{Reader, pair};
use super::value::Value;
use crate::container::{ClassInfo, Element, ElementKind};
use crate::{Error, Result};

/// Since this version of `TStreamerInfo` the class version of the items stands in front of them.
const MEMBER_WISE_SINCE: u16 = 8;

impl Reader<'_> {
    /// A member that is a container or a `std::string`: all objects' values have one head.
    pub(super) fn stl(&mut self, element: &Element, length: usize, objects: &mut [Vec<Value>]) -> Result<()> {
        if element.type_name.ends_with('*') {
            return Err(Error::unsupported(format!("pointer to a container, {}", element.type_name.escape_debug())));
        }
        let of = self.item_hint(type_of(element)?, &element.kind);
        let version = self.stream.version()?;
        match version.is_member_wise {
            true => {
                if version.number < MEMBER_WISE_SINCE {
                    return Err(Error::unsupported("members of a collection side by side, as before ROOT 5.24"));
                }
                let info = self.item_layout(&of, &element.type_name)?;
                each(objects, |_| self.several(length, |this| this.member_wise(&of, &info)))?;
            }
            false => each(objects, |_| self.several(length, |this| this.item(&of)))?,
        }
        self.stream.check_end(version.end)
    }

    /// Enums are named by their own type; only the element says that they are integers.
    fn item_hint(&mut self, of: Type, kind: &ElementKind) -> Type {
        match (&of, kind) {
            (Type::Sequence(item), ElementKind::Stl { item: code, .. }) => match (&**item, Basic::from_code(*code)) {
                (Type::Class(name), Some(basic)) if !self.knows(name) => Type::Sequence(Box::new(Type::Basic(basic))),
                _ => of,
            },
            _ => of,
        }
    }

    /// Layout of the items of a container that is stored member by member: their version follows.
    fn item_layout(&mut self, of: &Type, type_name: &str) -> Result<Arc<ClassInfo>> {
        match (of, cpp::pair(type_name)) {
            (Type::Map(..), Some(types)) => {
                if self.stream.cursor.u16_be()? == 0 {
                    self.stream.cursor.take(4)?;
                }
                pair(types)
            }
            (Type::Sequence(item), _) => match &**item {
                Type::Class(name) => {
                    let number = self.stream.cursor.u16_be()?;
                    let version = crate::container::Version { number, is_member_wise: false, end: None };
                    self.layout(name, &version)
                }
                _ => Err(no_members(type_name)),
            },
            _ => Err(no_members(type_name)),
        }
    }

    /// A container whose items' members follow one after the other.
    fn member_wise(&mut self, of: &Type, info: &Arc<ClassInfo>) -> Result<Value> {
        let count = self.length()?;
        // The members of nothing are not even begun.
        let objects = if count == 0 { Vec::new() } else { self.members(info, count)? };
        if let Type::Map(..) = of {
            let pair = |members: Vec<Value>| {
                let mut members = members.into_iter();
                Some((members.next()?, members.next()?))
            };
            return Ok(Value::Map(objects.into_iter().filter_map(pair).collect()));
        }
        let mut list = self.list(count)?;
        for members in objects {
            let object = self.object(Arc::clone(info), members);
            list.push(object);
        }
        Ok(Value::List(list))
    }

    fn length(&mut self) -> Result<usize> {
        let at = self.stream.cursor.offset();
        let count = self.stream.cursor.i32_be()?;
        usize::try_from(count).map_err(|_| Error::corrupt(format!("container of {count} items")).at(at))
    }

    /// A container without a head, object by object.
    pub(super) fn container(&mut self, of: &Type) -> Result<Value> {
        let count = self.length()?;
        match of {
            Type::Bits => Ok(Value::Numbers(self.numbers(Basic::Bool, count)?)),
            Type::Sequence(item) => match &**item {
                Type::Basic(basic) => Ok(Value::Numbers(self.numbers(*basic, count)?)),
                item => {
                    let mut list = self.list(count)?;
                    for _ in 0..count {
                        list.push(self.item(item)?);
                    }
                    Ok(Value::List(list))
                }
            },
            Type::Map(key, value) => {
                self.spend(count, size_of::<(Value, Value)>())?;
                let mut map = Vec::with_capacity(count);
                for _ in 0..count {
                    map.push((self.item(key)?, self.item(value)?));
                }
                Ok(Value::Map(map))
            }
            _ => Err(Error::unsupported("container of an unknown kind")),
        }
    }
}

fn no_members(type_name: &str) -> Error {
    Error::corrupt(format!("'{}' member by member, but its items have none", type_name.escape_debug()))
}
