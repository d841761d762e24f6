//! The containers of ATLAS's events, with the sizes of all their fields.

use std::collections::HashMap;

use serde_json::{Value, json};
use tupelo::Table as Events;
use tupelo::ops::inspect;
use tupelo_xaod::{Container, Origin, Stores};

use super::Args;
use crate::console::Console;
use crate::failure::Failure;
use crate::table::{Table, bytes, count, ratio, share, things};
use crate::text::{BOLD, Text};

/// Unpacked and stored bytes.
type Bytes = [u64; 2];

/// Lists the containers and objects of an ntuple or tree.
pub(super) fn list(events: &Events, args: &Args, mut text: Text, console: &Console) -> Result<(), Failure> {
    console.warn_of(events);
    let sizes = sizes(events)?;
    let stores = Stores::of(events.schema());
    if stores.containers().is_empty() {
        return Err(Failure::new(format_args!("{}: '{}' has no auxiliary store", events.file_name(), events.path()))
            .with_hint("without --xaod, its fields are listed"));
    }
    let of = |container: &Container| sum(container.fields().iter().filter_map(|field| sizes.get(field)));
    let all = sum(sizes.values());
    if args.json {
        let containers: Vec<Value> = stores.containers().iter().map(|it| to_json(it, of(it))).collect();
        let value = json!({
            "file": events.file_name(), "name": events.path(), "entries": events.entries(), "containers": containers,
        });
        return console.print_json("ls", value);
    }
    let known = format!("{} containers and objects", count(stores.containers().len() as u64));
    text.styled(BOLD, events.path()).add(format!(
        ": {}, {known}, {} in {}",
        things(events.entries(), "entry"),
        bytes(all[0]),
        bytes(all[1])
    ));
    text.end_line();
    let mut table =
        Table::new(&["CONTAINER", "CLASS", ">STATIC", ">DYNAMIC", ">UNPACKED", ">STORED", ">RATIO", ">SHARE"]);
    let line = |name: &str, class: &str, variables: [String; 2], [unpacked, stored]: Bytes| {
        let [is_static, is_dynamic] = variables;
        [
            name.to_owned(),
            class.to_owned(),
            is_static,
            is_dynamic,
            bytes(unpacked),
            bytes(stored),
            ratio(unpacked, stored),
            share(stored, all[1]),
        ]
    };
    let mut rest = all;
    for container in stores.containers() {
        let class = if container.class_name().is_empty() { container.store_class() } else { container.class_name() };
        let origins = [Origin::Static, Origin::Dynamic]
            .map(|origin| count(container.variables().iter().filter(|it| it.origin() == origin).count() as u64));
        let own = of(container);
        rest = [rest[0].saturating_sub(own[0]), rest[1].saturating_sub(own[1])];
        table.line(line(container.name(), class, origins, own));
    }
    if rest != [0, 0] {
        table.line(line("(other fields)", "", [String::new(), String::new()], rest));
    }
    table.add_to(text.end_line());
    console.print(&text)
}

/// The sizes of top-level fields.
fn sizes(events: &Events) -> Result<HashMap<String, Bytes>, Failure> {
    Ok(match events.tree() {
        Some(tree) => {
            let fields = tree.schema().fields.iter().zip(tree.sizes());
            fields.map(|(field, sizes)| (field.name.clone(), [sizes.unpacked_bytes, sizes.stored_bytes])).collect()
        }
        None => {
            let fields = inspect::fields(events.ntuple()?)?.into_iter();
            fields.map(|field| (field.name, [field.sizes.unpacked_bytes, field.sizes.stored_bytes])).collect()
        }
    })
}

fn sum<'s>(sizes: impl Iterator<Item = &'s Bytes>) -> Bytes {
    sizes.fold([0, 0], |sum, own| [sum[0].saturating_add(own[0]), sum[1].saturating_add(own[1])])
}

fn to_json(container: &Container, [unpacked, stored]: Bytes) -> Value {
    let variables: Vec<Value> = container
        .variables()
        .iter()
        .map(|it| {
            let is_static = it.origin() == Origin::Static;
            json!({ "name": it.name(), "path": it.path(), "type": it.type_name(), "static": is_static, "id": it.id() })
        })
        .collect();
    json!({
        "name": container.name(),
        "class": container.class_name(),
        "store_class": container.store_class(),
        "object": container.is_object(),
        "unpacked_bytes": unpacked,
        "stored_bytes": stored,
        "variables": variables,
    })
}
