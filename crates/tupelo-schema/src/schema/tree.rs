//! From the fields of a tree to the field tree.

use tupelo_format::descriptor::FieldId;
use tupelo_format::object::Basic;
use tupelo_format::streamer::ElementKind;
use tupelo_format::streamer::code::NOT_STORED;
use tupelo_format::type_name::{TypeName, normalised};
use tupelo_ttree::ValueLayout;
use tupelo_ttree::fields::{Field as TreeField, FieldKind};
use tupelo_ttree::layout::ObjectLayout;

use super::{Field, Kind, Primitive, Schema};

/// Names of items and of the parts of pairs.
const PARTS: [&str; 2] = ["_0", "_1"];

impl Schema {
    /// The field tree of a tree. The numbers of its top-level fields are their ids.
    pub fn from_tree(fields: &[TreeField]) -> Self {
        let fields = fields.iter().enumerate().map(|(index, tree_field)| {
            let id = u32::try_from(index).map(FieldId::from).ok();
            Field { id, ..field(tree_field) }
        });
        Self { fields: fields.collect() }
    }
}

fn field(field: &TreeField) -> Field {
    let of = match &field.kind {
        FieldKind::Value { layout, .. } => value(&field.name, layout, &field.type_name),
        FieldKind::Record(members) => record(&field.name, &field.type_name, members.iter().map(self::field).collect()),
        FieldKind::Collection { items, .. } => collection(field, items),
    };
    Field { description: field.title.clone(), ..of }
}

fn record(name: &str, type_name: &str, members: Vec<Field>) -> Field {
    Field::new(name, normalised(type_name), Kind::Record(members))
}

/// A collection whose items are split: the members of the items have their values of all items together.
fn collection(field: &TreeField, items: &[TreeField]) -> Field {
    let members: Vec<Field> = items.iter().map(item_member).collect();
    let name = TypeName::parse(&field.type_name);
    let argument = |index: usize| name.as_ref().and_then(|name| name.arguments.get(index).copied()).unwrap_or_default();
    let is_map = |members: &[Field]| matches!(members, [first, second] if [&first.name, &second.name] == PARTS);
    match is_map(&members) {
        true => {
            let pair = format!("std::pair<{},{}>", normalised(argument(0)), normalised(argument(1)));
            let pair = Field::new(PARTS[0], pair, Kind::Tuple(members));
            Field::new(&field.name, normalised(&field.type_name), Kind::Map(Box::new(pair)))
        }
        false => {
            let item = record(PARTS[0], argument(0), members);
            let type_name = if name.is_some_and(|name| !name.arguments.is_empty()) { &field.type_name } else { "" };
            Field::new(&field.name, normalised(type_name), Kind::Collection(Box::new(item)))
        }
    }
}

/// A member of the items: without the list of all items of an entry.
fn item_member(member: &TreeField) -> Field {
    match &member.kind {
        FieldKind::Value { layout: ValueLayout::Rest(item), .. } => value(&member.name, item, &member.type_name),
        FieldKind::Record(members) => {
            record(&member.name, &member.type_name, members.iter().map(item_member).collect())
        }
        _ => field(member),
    }
}

/// A field of a layout. The type name is empty where the layout says it.
fn value(name: &str, layout: &ValueLayout, type_name: &str) -> Field {
    let normal = normalised(type_name);
    let argument = |index: usize| {
        TypeName::parse(type_name).and_then(|name| name.arguments.get(index).copied()).unwrap_or_default()
    };
    let named =
        |kind: Kind, made: String| Field::new(name, if normal.is_empty() { made } else { normal.clone() }, kind);
    match layout {
        ValueLayout::Number(basic, _) => {
            let (primitive, standard) = primitive(*basic);
            Field::new(name, standard, Kind::Primitive(primitive))
        }
        ValueLayout::Text | ValueLayout::Leaf | ValueLayout::Characters => {
            Field::new(name, "std::string", Kind::String)
        }
        ValueLayout::Opaque => Field::new(name, normal, Kind::Streamer),
        ValueLayout::Headed(body) | ValueLayout::Named { item: body, .. } => value(name, body, type_name),
        ValueLayout::Fixed(size, item) => {
            // ROOT describes members that are arrays by the type of their items.
            let is_array = TypeName::parse(&normal).is_some_and(|name| name.base == "std::array");
            let item = Box::new(value(PARTS[0], item, if is_array { argument(0) } else { type_name }));
            let made = format!("std::array<{},{size}>", item.type_name);
            Field::new(name, made, Kind::Array { size: *size as u64, item })
        }
        ValueLayout::Bits(size) => {
            Field::new(name, format!("std::bitset<{size}>"), Kind::Bitset { size: *size as u64 })
        }
        ValueLayout::Counted(item) => match &**item {
            ValueLayout::Pair(parts) => {
                let parts: Vec<Field> = parts
                    .iter()
                    .enumerate()
                    .zip(PARTS)
                    .map(|((index, part), name)| value(name, part, argument(index)))
                    .collect();
                let types: Vec<&str> = parts.iter().map(|part| part.type_name.as_str()).collect();
                let (pair, map) = (format!("std::pair<{}>", types.join(",")), format!("std::map<{}>", types.join(",")));
                named(Kind::Map(Box::new(Field::new(PARTS[0], pair, Kind::Tuple(parts)))), map)
            }
            item => {
                let item = value(PARTS[0], item, argument(0));
                let made = format!("std::vector<{}>", item.type_name);
                named(Kind::Collection(Box::new(item)), made)
            }
        },
        ValueLayout::Rest(item)
        | ValueLayout::FlaggedRest(item)
        | ValueLayout::Pointed { item, .. }
        | ValueLayout::CountedBy { item, .. }
        | ValueLayout::CountedInBranch { item, .. } => {
            let item = value(PARTS[0], item, "");
            let made = format!("ROOT::VecOps::RVec<{}>", item.type_name);
            Field::new(name, made, Kind::Collection(Box::new(item)))
        }
        ValueLayout::Pair(parts) => {
            let parts = parts.iter().zip(PARTS).map(|(part, name)| value(name, part, "")).collect();
            named(Kind::Tuple(parts), String::new())
        }
        ValueLayout::Members(_) | ValueLayout::Triangle { .. } | ValueLayout::Reference | ValueLayout::RootObject => {
            let class = match layout {
                ValueLayout::Reference => "TRef",
                ValueLayout::RootObject => "TObject",
                _ => type_name,
            };
            let members = layout.members().unwrap_or_default().into_iter();
            record(name, class, members.map(|(name, member)| value(name, member, "")).collect())
        }
        ValueLayout::Object(object) => self::object(name, object),
        ValueLayout::ObjectBits => value(name, &ValueLayout::Number(Basic::U32, None), ""),
    }
}

fn object(name: &str, object: &ObjectLayout) -> Field {
    let class = &object.class;
    // Layouts of classes that are not described have members without elements.
    let mut elements = class.elements.iter().filter(|element| element.code != NOT_STORED);
    let members = object.members.iter().map(|(name, member)| {
        let element = elements.next();
        let type_name = match element.map(|element| (&element.kind, element)) {
            Some((ElementKind::Base { .. }, element)) => element.name.as_str(),
            Some((ElementKind::Basic | ElementKind::BasicPointer(_), _)) | None => "",
            Some((_, element)) => element.type_name.as_str(),
        };
        value(name, member, type_name)
    });
    let members: Vec<Field> = members.collect();
    let kind =
        if class.elements.is_empty() && members.len() == 2 { Kind::Tuple(members) } else { Kind::Record(members) };
    Field { type_version: u32::try_from(class.version).unwrap_or(0), ..Field::new(name, normalised(&class.name), kind) }
}

fn primitive(basic: Basic) -> (Primitive, &'static str) {
    match basic {
        Basic::Bool => (Primitive::Bool, "bool"),
        Basic::I8 => (Primitive::Int8, "std::int8_t"),
        Basic::U8 => (Primitive::UInt8, "std::uint8_t"),
        Basic::I16 => (Primitive::Int16, "std::int16_t"),
        Basic::U16 => (Primitive::UInt16, "std::uint16_t"),
        Basic::I32 => (Primitive::Int32, "std::int32_t"),
        Basic::U32 => (Primitive::UInt32, "std::uint32_t"),
        Basic::I64 => (Primitive::Int64, "std::int64_t"),
        Basic::U64 => (Primitive::UInt64, "std::uint64_t"),
        Basic::F32 | Basic::Float16 => (Primitive::Float, "float"),
        Basic::F64 | Basic::Double32 => (Primitive::Double, "double"),
    }
}
