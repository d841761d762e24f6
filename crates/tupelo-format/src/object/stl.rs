//! Containers of the standard library (`TGenCollectionStreamer.cxx`; `kSTL` in `TStreamerInfoReadBuffer.cxx`).

use std::sync::Arc;

use super::cpp::{self, Basic, Type};
use super::members::{each, type_of};
use super::reader::Reader;
use super::value::Value;
use crate::streamer::{ClassInfo, Element, ElementKind, Version};
use crate::{Error, Result};

/// Since this version of `TStreamerInfo` the class version of the items precedes them.
const MEMBER_WISE_SINCE: u16 = 8;

impl Reader<'_> {
    /// A member that is a container or a `std::string`: all objects' values have one head.
    pub(super) fn stl(&mut self, element: &Element, length: usize, objects: &mut [Vec<Value>]) -> Result<()> {
        if element.type_name.ends_with('*') {
            return Err(Error::unsupported(format!(
                "pointers to containers are not supported: {}",
                element.type_name.escape_debug()
            )));
        }
        self.work(element.type_name.len())?;
        let of = self.item_hint(type_of(element)?, &element.kind);
        let start = self.stream.cursor.position();
        let version = self.stream.version()?;
        let layout = match version.is_member_wise {
            true => Some(self.item_layout(&of, &element.type_name, version.number)),
            false => None,
        };
        let read = |this: &mut Self| {
            this.several(length, |this| match &layout {
                Some(layout) => this.member_wise(&of, layout),
                None => this.item(&of),
            })
        };
        // The value of one object says how long it is, those of several do so together.
        if let (Some(end), [members]) = (version.end, &mut *objects) {
            let value = self.contained(&element.type_name, start, end, |this| {
                let value = read(this)?;
                this.stream.check_end(Some(end))?;
                Ok(value)
            })?;
            members.push(value);
            return Ok(());
        }
        each(objects, |_| read(self))?;
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
    fn item_layout(&mut self, of: &Type, type_name: &str, writer: u16) -> Result<Arc<ClassInfo>> {
        if writer < MEMBER_WISE_SINCE {
            return Err(Error::unsupported("member-wise collections from before ROOT 5.24 are not supported"));
        }
        let number = self.stream.cursor.u16_be()?;
        // Classes without a version have a checksum instead, known or not.
        let behind = self.stream.cursor.position() + if number == 0 { 4 } else { 0 };
        let version = Version { number, is_member_wise: true, end: None };
        let layout = match (of, cpp::pair(type_name)) {
            (Type::Map(..), Some(types)) => self.pair(types, type_name),
            (Type::Sequence(item), _) => match &**item {
                Type::Class(name) => self.layout(name, &version),
                _ => Err(no_members(type_name)),
            },
            _ => Err(no_members(type_name)),
        };
        self.stream.go_to(behind)?;
        layout
    }

    /// A container whose items' members follow one after the other.
    fn member_wise(&mut self, of: &Type, layout: &Result<Arc<ClassInfo>>) -> Result<Value> {
        let count = self.length()?;
        if count == 0 {
            // Nothing has no members, and needs no layout.
            return Ok(if let Type::Map(..) = of { Value::Map(Vec::new()) } else { Value::List(Vec::new()) });
        }
        let info = layout.as_ref().map_err(Error::clone)?;
        let objects = self.members(info, count, true)?;
        if let Type::Map(..) = of {
            let pair = |members: Vec<Value>| {
                let mut members = members.into_iter();
                Some((members.next()?, members.next()?))
            };
            return Ok(Value::Map(objects.into_iter().filter_map(pair).collect()));
        }
        let mut list = self.list(count)?;
        for members in objects {
            list.push(self.object(Arc::clone(info), members));
        }
        Ok(Value::List(list))
    }

    fn length(&mut self) -> Result<usize> {
        let at = self.stream.cursor.offset();
        let count = self.stream.cursor.i32_be()?;
        usize::try_from(count)
            .map_err(|_| Error::corrupt(format!("container has a negative number of items: {count}")).at(at))
    }

    /// A `std::bitset`.
    pub(super) fn bits(&mut self) -> Result<Value> {
        let count = self.length()?;
        Ok(Value::Numbers(self.numbers(Basic::Bool, count)?))
    }

    /// A container without a head, object by object.
    pub(super) fn sequence(&mut self, item: &Type) -> Result<Value> {
        let count = self.length()?;
        if let Type::Basic(basic) = item {
            return Ok(Value::Numbers(self.numbers(*basic, count)?));
        }
        let mut list = self.list(count)?;
        for _ in 0..count {
            list.push(self.item(item)?);
        }
        Ok(Value::List(list))
    }

    /// The same for pairs.
    pub(super) fn map(&mut self, key: &Type, value: &Type) -> Result<Value> {
        let count = self.length()?;
        self.spend(count, size_of::<(Value, Value)>())?;
        let mut map = Vec::with_capacity(count);
        for _ in 0..count {
            map.push((self.item(key)?, self.item(value)?));
        }
        Ok(Value::Map(map))
    }
}

fn no_members(type_name: &str) -> Error {
    Error::corrupt(format!("'{}' is stored member-wise, but its items have no members", type_name.escape_debug()))
}
