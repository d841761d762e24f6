//! From fields to what a tree can hold.

use std::collections::HashMap;

use tupelo_format::object::Basic;
use tupelo_ttree::write::{Field as TreeField, Form, Record};

use crate::schema::{Field, Kind, Primitive, Schema};
use crate::{Error, Result};

/// The fields of a tree for those of a schema, with counters by the names of lists. Lists that are projected from a
/// collection are counted by the field with its size, if there is one.
pub(super) fn fields(schema: &Schema, counters: &HashMap<String, String>) -> Result<Vec<TreeField>> {
    let projected: HashMap<String, String> = schema.projected_counters().into_iter().collect();
    let field = |field: &Field| {
        let form = form(field, &field.name).map_err(|error| error.in_field(&field.name))?;
        let counter = counters.get(&field.name).or_else(|| projected.get(&field.name)).cloned();
        let counter = counter.or_else(|| usual_counter(schema, field));
        Ok(TreeField { name: field.name.clone(), form, title: field.description.clone(), counter })
    };
    schema.fields.iter().map(field).collect()
}

/// The integer field with the name that the counter of a list would get: `nx` of `x`.
fn usual_counter(schema: &Schema, list: &Field) -> Option<String> {
    let name = matches!(list.kind, Kind::Collection(_)).then(|| format!("n{}", list.name))?;
    let is_integer = |field: &Field| match &field.kind {
        Kind::Cardinality { .. } => true,
        Kind::Primitive(primitive) => {
            !matches!(primitive, Primitive::Bool | Primitive::Byte | Primitive::Float | Primitive::Double)
        }
        _ => false,
    };
    schema.fields.iter().any(|field| field.name == name && is_integer(field)).then_some(name)
}

fn form(field: &Field, path: &str) -> Result<Form> {
    let inner = |item: &Field| form(item, path);
    Ok(match &field.kind {
        Kind::Primitive(primitive) => Form::Number(basic(*primitive)),
        Kind::Cardinality { wide } => Form::Number(if *wide { Basic::U64 } else { Basic::U32 }),
        Kind::String => Form::Text,
        Kind::Bitset { size } => Form::Fixed(count(*size)?, Box::new(Form::Number(Basic::Bool))),
        Kind::Array { size, item } => Form::Fixed(count(*size)?, Box::new(inner(item)?)),
        Kind::Wrapper(item) => inner(item)?,
        Kind::Collection(item) => Form::List(Box::new(inner(item)?)),
        Kind::Record(members) => {
            let member = |member: &Field| {
                let form = form(member, &format!("{path}_{}", member.name));
                Ok((member.name.clone(), form.map_err(|error| error.within(format!("member '{}'", member.name)))?))
            };
            let class_name = match field.type_name.as_str() {
                name if name.is_empty() || is_of_root(name) => format!("{path}_record"),
                name => name.to_owned(),
            };
            Form::Record(Record { class_name, members: members.iter().map(member).collect::<Result<_>>()? })
        }
        Kind::Streamer => return Err(no_branch("an object that is stored as the bytes of a ROOT streamer")),
        Kind::Map(_) => return Err(no_branch("a map")),
        Kind::Optional(_) => return Err(no_branch("an optional value")),
        Kind::Tuple(_) => return Err(no_branch("a pair or tuple")),
        Kind::Variant(_) => return Err(no_branch("a variant")),
    })
}

/// Whether ROOT may know a class itself, with other members or another version than those that are written.
fn is_of_root(class_name: &str) -> bool {
    let is_prefixed =
        class_name.strip_prefix('T').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
    is_prefixed || class_name.contains('<') || ["std::", "ROOT::"].iter().any(|space| class_name.starts_with(space))
}

/// The paths of the members of a field, or of the field itself, that have no branch in a tree, and why.
pub(super) fn without_branch(field: &Field, path: &str, found: &mut Vec<(String, Error)>) {
    let mut inner = field;
    while let Kind::Array { item, .. } | Kind::Wrapper(item) | Kind::Collection(item) = &inner.kind {
        inner = item;
    }
    match &inner.kind {
        Kind::Record(members) => {
            members.iter().for_each(|member| without_branch(member, &format!("{path}.{}", member.name), found));
        }
        _ => found.extend(form(field, path).err().map(|error| (path.to_owned(), error))),
    }
}

fn basic(primitive: Primitive) -> Basic {
    match primitive {
        Primitive::Bool => Basic::Bool,
        Primitive::Char | Primitive::Int8 => Basic::I8,
        Primitive::Byte | Primitive::UInt8 => Basic::U8,
        Primitive::Int16 => Basic::I16,
        Primitive::UInt16 => Basic::U16,
        Primitive::Int32 => Basic::I32,
        Primitive::UInt32 => Basic::U32,
        Primitive::Int64 => Basic::I64,
        Primitive::UInt64 => Basic::U64,
        Primitive::Float => Basic::F32,
        Primitive::Double => Basic::F64,
    }
}

fn count(size: u64) -> Result<usize> {
    i32::try_from(size)
        .ok()
        .and_then(|size| usize::try_from(size).ok())
        .ok_or_else(|| Error::limit(format!("{size} items")))
}

#[cold]
fn no_branch(what: &str) -> Error {
    Error::unsupported(format!("{what} has no branch in a tree; leave the field out"))
}
