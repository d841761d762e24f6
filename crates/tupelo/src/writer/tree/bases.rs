//! Schemas of trees with what their source says of classes: bases, and arrays of clones.

use tupelo_format::type_name::normalised;
use tupelo_schema::schema::{Field, Kind, Layouts, Schema, nested};
use tupelo_ttree::write::CLONES;

use super::TreeOptions;

/// The schema with all members in the base classes that have them, as far as the source describes the classes.
pub(super) fn with_bases(schema: &Schema, options: &TreeOptions) -> Schema {
    let whole = |field: &Field| {
        let mut field = field.clone();
        let path = field.name.clone();
        name_clones(&mut field, &path, options);
        nest(&mut field, options);
        field
    };
    Schema { fields: schema.fields.iter().map(whole).collect() }
}

/// States the classes of `TClonesArray`s, and of their items.
fn name_clones(field: &mut Field, path: &str, options: &TreeOptions) {
    match &mut field.kind {
        Kind::Collection(item) => {
            if let Some(class) = options.clones.get(path) {
                CLONES.clone_into(&mut field.type_name);
                name_class(item, class, options);
            }
        }
        Kind::Record(members) => {
            members.iter_mut().for_each(|member| name_clones(member, &format!("{path}.{}", member.name), options));
        }
        _ => {}
    }
}

/// States the class of an item, and those of the members that are split too.
fn name_class(field: &mut Field, class: &str, options: &TreeOptions) {
    class.clone_into(&mut field.type_name);
    let Kind::Record(members) = &mut field.kind else { return };
    for member in members.iter_mut().filter(|member| matches!(member.kind, Kind::Record(_))) {
        if let Some(class) = options.member(class, &member.name).filter(|_| member.type_name.is_empty()) {
            name_class(member, &normalised(&class.type_name), options);
        }
    }
}

/// Puts members into the bases that have them.
fn nest(field: &mut Field, options: &TreeOptions) {
    field.children_mut().iter_mut().for_each(|child| nest(child, options));
    if let Kind::Record(members) = &mut field.kind
        && let Some(class) = options.class(&field.type_name)
        && let Some(whole) = nested(class, members, options)
    {
        *members = whole;
    }
}
