//! Objects that are made of values by name, to be written.

use std::collections::HashMap;
use std::sync::Arc;

use super::MAX_DEPTH;
use super::classes::{array_item, special_layout};
use super::value::{Numbers, Object, Value};
use crate::streamer::code::{CHARACTERS, NOT_STORED};
use crate::streamer::{ClassInfo, Element, ElementKind, StreamerInfos};
use crate::{Error, Result};

impl Object {
    /// An object of a class with the values of its members and of those of its bases. Members without a value are 0 or
    /// empty, pointers null. A `TArray` may be given as its numbers.
    ///
    /// # Errors
    /// Unsupported if `infos` does not have the class or one of its bases, for values of members that the class does not
    /// have, and for members without a value whose type has no empty value here.
    pub fn new(class_name: &str, mut members: HashMap<String, Value>, infos: &StreamerInfos) -> Result<Self> {
        let class = layout(class_name, None, infos)?;
        let made = Maker { infos, depth: 0 }.object(class, &mut members)?;
        match members.keys().min() {
            None => Ok(made),
            Some(name) => Err(Error::unsupported(format!("class {class_name} has no member '{name}'"))),
        }
    }
}

/// The layout of a class: of a version, or the newest.
fn layout(name: &str, version: Option<i32>, infos: &StreamerInfos) -> Result<Arc<ClassInfo>> {
    if let Some(special) = special_layout(name) {
        return Ok(Arc::new(special));
    }
    let found = match version {
        Some(version) => infos.find(name, version),
        None => infos.newest(name),
    };
    found.cloned().ok_or_else(|| Error::unsupported(format!("the layout of class {name} is unknown")))
}

struct Maker<'a> {
    infos: &'a StreamerInfos,
    depth: u32,
}

impl Maker<'_> {
    fn object(&mut self, class: Arc<ClassInfo>, members: &mut HashMap<String, Value>) -> Result<Object> {
        if self.depth > MAX_DEPTH {
            return Err(Error::limit(format!("parts of class {} are nested more than {MAX_DEPTH} deep", class.name)));
        }
        if array_item(&class.name).is_some() {
            members.remove("fN");
            let numbers = members.remove("fArray").unwrap_or(Value::Numbers(Numbers::F64(Vec::new())));
            return Ok(array(class, numbers));
        }
        self.depth += 1;
        let mut values = Vec::with_capacity(class.elements.len());
        for element in &class.elements {
            values.push(match (&element.kind, members.remove(&element.name)) {
                (ElementKind::Base { version }, None) if element.code != NOT_STORED => {
                    let base = layout(&element.name, Some(*version), self.infos)?;
                    Value::Object(Arc::new(self.object(base, members)?))
                }
                (_, Some(numbers @ Value::Numbers(_))) if array_item(element.class_name()).is_some() => {
                    let class = layout(element.class_name(), None, self.infos)?;
                    Value::Object(Arc::new(array(class, numbers)))
                }
                (_, Some(value)) => value,
                (_, None) => self.empty(element).map_err(|e| e.within(format!("{}::{}", class.name, element.name)))?,
            });
        }
        self.depth -= 1;
        Ok(Object { class, members: values })
    }

    /// The value of a member that has none.
    fn empty(&mut self, element: &Element) -> Result<Value> {
        Ok(match (&element.kind, element.code) {
            (_, NOT_STORED | CHARACTERS) | (ElementKind::BasicPointer(_), _) => Value::Null,
            // Members of classes that ROOT streams by custom code.
            (ElementKind::Basic, 0) => match element.name.as_str() {
                "fName" | "fTitle" | "fString" => Value::Text(String::new()),
                "fObjects" => Value::List(Vec::new()),
                _ => Value::Int(0),
            },
            (ElementKind::Basic, 1..=19) => Value::Int(0),
            (ElementKind::String, 65) => Value::Text(String::new()),
            (_, 64 | 69 | 70) if element.array_length <= 1 => Value::Null,
            (_, 61..=63 | 66..=68) if element.array_length <= 1 => {
                let class = layout(element.class_name(), None, self.infos)?;
                Value::Object(Arc::new(self.object(class, &mut HashMap::new())?))
            }
            _ => {
                let what = format!("member of type '{}' needs a value", element.type_name.escape_debug());
                return Err(Error::unsupported(what));
            }
        })
    }
}

/// A `TArray`.
fn array(class: Arc<ClassInfo>, numbers: Value) -> Object {
    let length = match &numbers {
        Value::Numbers(numbers) => numbers.len(),
        _ => 0,
    };
    Object { class, members: vec![Value::Int(i64::try_from(length).unwrap_or(i64::MAX)), numbers] }
}
