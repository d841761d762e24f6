//! From fields to what a tree can hold.

use std::collections::HashMap;

use tupelo_format::object::Basic;
use tupelo_ttree::write::{Field as TreeField, Form, Record};

use crate::schema::{Field, Kind, Primitive, Schema};
use crate::{Error, Result};

/// The fields of a tree for those of a schema, with counters by the names of lists. Lists that are projected from a
/// collection are counted by the field with its size, if there is one.
pub(super) fn fields(schema: &Schema, counters: &HashMap<String, String>) -> Result<Vec<TreeField>> {
    let field = |field: &Field| {
        let form = form(field, &field.name).map_err(|error| error.in_field(&field.name))?;
        let counter = counters.get(&field.name).cloned().or_else(|| counter(schema, field));
        Ok(TreeField { name: field.name.clone(), form, counter })
    };
    schema.fields.iter().map(field).collect()
}

/// The name of the field with the size of the collection from which a list is projected.
fn counter(schema: &Schema, list: &Field) -> Option<String> {
    let source = list.projected_from.as_deref().filter(|_| matches!(list.kind, Kind::Collection(_)))?;
    let counts = |field: &&Field| {
        let collection = field.projected_from.as_deref().filter(|_| matches!(field.kind, Kind::Cardinality { .. }));
        let rest = collection.and_then(|collection| source.strip_prefix(collection));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    schema.fields.iter().find(counts).map(|field| field.name.clone())
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
                "" => format!("{path}_record"),
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
