//! The values that objects consist of.

use std::ops::Range;
use std::sync::Arc;

use crate::streamer::{ClassInfo, Element, ElementKind};

/// Any value of C++.
#[derive(Debug, Default, Clone, PartialEq)]
pub enum Value {
    /// A null pointer.
    #[default]
    Null,
    /// `bool`.
    Bool(bool),
    /// Signed integers, characters and enums.
    Int(i64),
    /// Unsigned integers.
    UInt(u64),
    /// Floating-point numbers.
    Float(f64),
    /// `TString`, `std::string`, `char*`.
    Text(String),
    /// The same where it is not UTF-8.
    Bytes(Vec<u8>),
    /// Numbers side by side.
    Numbers(Numbers),
    /// Fixed arrays of more than one dimension: the lengths of all, and the numbers, the last dimension running
    /// fastest.
    Grid(Vec<usize>, Numbers),
    /// Any other sequence.
    List(Vec<Value>),
    /// Pairs of keys and values, in the order in which they are stored.
    Map(Vec<(Value, Value)>),
    /// An object; several pointers may lead to the same.
    Object(Arc<Object>),
    /// A pointer to an object around this place.
    Enclosing,
    /// A pointer to the object of the whole record, as that of a box of statistics to its histogram (`TPaveStats::fParent`).
    Whole,
    /// An object that cannot be read, inside one that can.
    Opaque(Box<Opaque>),
}

/// Numbers of one type.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names are the types")]
pub enum Numbers {
    Bool(Vec<bool>),
    I8(Vec<i8>),
    U8(Vec<u8>),
    I16(Vec<i16>),
    U16(Vec<u16>),
    I32(Vec<i32>),
    U32(Vec<u32>),
    I64(Vec<i64>),
    U64(Vec<u64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

impl Numbers {
    /// Their number.
    pub fn len(&self) -> usize {
        match self {
            Self::Bool(values) => values.len(),
            Self::I8(values) => values.len(),
            Self::U8(values) => values.len(),
            Self::I16(values) => values.len(),
            Self::U16(values) => values.len(),
            Self::I32(values) => values.len(),
            Self::U32(values) => values.len(),
            Self::I64(values) => values.len(),
            Self::U64(values) => values.len(),
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
        }
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Name of their type, as in [`Basic`](super::Basic).
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Bool(_) => "Bool",
            Self::I8(_) => "I8",
            Self::U8(_) => "U8",
            Self::I16(_) => "I16",
            Self::U16(_) => "U16",
            Self::I32(_) => "I32",
            Self::U32(_) => "U32",
            Self::I64(_) => "I64",
            Self::U64(_) => "U64",
            Self::F32(_) => "F32",
            Self::F64(_) => "F64",
        }
    }
}

/// An object of a class.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    pub(super) class: Arc<ClassInfo>,
    pub(super) members: Vec<Value>,
}

/// An object that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opaque {
    /// Its class.
    pub class_name: String,
    /// Its stored bytes, beginning with class version and byte count.
    pub bytes: Vec<u8>,
    /// Why it cannot be read.
    pub reason: String,
}

impl Object {
    /// C++ name of the class.
    pub fn class_name(&self) -> &str {
        &self.class.name
    }

    /// Version of the class.
    pub fn version(&self) -> i32 {
        self.class.version
    }

    /// Names and values of the members of the class itself, in order.
    pub fn members(&self) -> impl Iterator<Item = (&str, &Value)> {
        let elements = self.class.elements.iter().zip(&self.members);
        elements.filter(|(element, _)| !is_base(&element.kind)).map(|(element, value)| (element.name.as_str(), value))
    }

    /// Names of the base classes, and what the object has of them.
    pub fn bases(&self) -> impl Iterator<Item = (&str, &Value)> {
        let elements = self.class.elements.iter().zip(&self.members);
        elements.filter(|(element, _)| is_base(&element.kind)).map(|(element, value)| (element.name.as_str(), value))
    }

    /// A member by name, of the class itself or of a base.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let own = self.members().find(|(member, _)| *member == name).map(|(_, value)| value);
        own.or_else(|| self.bases().find_map(|(_, base)| base.as_object()?.get(name)))
    }

    /// Replaces a member by name, of the class itself or of a base; false if there is none.
    pub fn set(&mut self, name: &str, value: Value) -> bool {
        let is_own = |element: &Element| element.name == name && !is_base(&element.kind);
        let place = self.class.elements.iter().position(is_own);
        if let Some(own) = place.and_then(|place| self.members.get_mut(place)) {
            *own = value;
            return true;
        }
        let bases = self.class.elements.iter().zip(&mut self.members).filter(|(element, _)| is_base(&element.kind));
        for (_, base) in bases {
            if let Value::Object(base) = base
                && base.get(name).is_some()
            {
                return Arc::make_mut(base).set(name, value);
            }
        }
        false
    }
}

fn is_base(kind: &ElementKind) -> bool {
    matches!(kind, ElementKind::Base { .. })
}

impl Value {
    /// The object, if it is one.
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }
}

/// An object of a class that has a layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedObject {
    /// The class.
    pub class_name: String,
    /// Version of the class.
    pub version: i32,
    /// Its bases and members.
    pub members: Vec<TracedMember>,
}

/// A member, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedMember {
    /// Its name; of a base that of the class.
    pub name: String,
    /// ROOT's code of its type.
    pub code: i32,
    /// Its bytes.
    pub bytes: Range<usize>,
}

/// The name of the items of a collection.
pub(super) const ITEM: &str = "[]";

impl TracedObject {
    /// The items of a collection of objects (`TObjArray`).
    pub fn items(&self) -> impl Iterator<Item = &TracedMember> {
        self.members.iter().filter(|member| member.name == ITEM)
    }

    /// A member of the class itself, or a base.
    pub fn member(&self, name: &str) -> Option<&TracedMember> {
        self.members.iter().find(|member| member.name == name)
    }
}
