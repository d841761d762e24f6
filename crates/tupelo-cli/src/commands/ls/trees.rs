//! Trees in the lists of files, and their fields.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tupelo::reader::{Object, TREE_CLASSES, TreeSizes};
use tupelo::schema::Field;
use tupelo::storage::display_name;
use tupelo::{Compression, File, Tree};

use super::Args;
use crate::console::Console;
use crate::failure::Failure;
use crate::table::{Table, bytes, count, ratio, share, things};
use crate::text::{BOLD, Text};

/// Opens the trees among objects; those that cannot be read stay there.
pub(super) fn take(file: &File, objects: &mut Vec<Object>, console: &Console) -> Vec<(String, Tree)> {
    let mut trees = Vec::new();
    objects.retain(|object| {
        if !TREE_CLASSES.contains(&object.class_name.as_str()) {
            return true;
        }
        match file.table(Some(&object.name())).map(|table| table.tree().cloned()) {
            Ok(Some(tree)) => {
                trees.push((object.name(), tree));
                false
            }
            Ok(None) => true,
            Err(error) => {
                console.warn(&error.to_string());
                true
            }
        }
    });
    trees
}

/// Unpacked and stored bytes of a tree, their ratio and codec.
fn tree_sizes<'s>(sizes: impl IntoIterator<Item = &'s TreeSizes>) -> [String; 4] {
    let mut all = (0, 0, BTreeSet::new());
    for sizes in sizes {
        all.0 = u64::saturating_add(all.0, sizes.unpacked_bytes);
        all.1 = u64::saturating_add(all.1, sizes.stored_bytes);
        all.2.extend(sizes.compression.iter().copied());
    }
    let (unpacked, stored, compression) = all;
    let name =
        |setting: &u32| Compression::from_setting(*setting).map_or_else(|_| setting.to_string(), |it| it.to_string());
    let codec: Vec<String> = compression.iter().map(name).collect();
    [bytes(unpacked), bytes(stored), ratio(unpacked, stored), codec.join(", ")]
}

pub(super) fn tree_line(name: &str, tree: &Tree) -> Vec<String> {
    let mut line =
        vec![name.to_owned(), count(tree.entries()), count(tree.schema().fields.len() as u64), count(tree.clusters())];
    line.extend(tree_sizes(&tree.sizes()));
    line
}

pub(super) fn tree_to_json((name, tree): &(String, Tree)) -> Value {
    let sizes = tree.sizes();
    json!({
        "name": name,
        "class": tree.metadata().class_name,
        "description": tree.description(),
        "entries": tree.entries(),
        "fields": tree.schema().fields.len(),
        "clusters": tree.clusters(),
        "baskets": sizes.iter().map(|sizes| sizes.baskets).sum::<u64>(),
        "stored_bytes": sizes.iter().map(|sizes| sizes.stored_bytes).sum::<u64>(),
        "unpacked_bytes": sizes.iter().map(|sizes| sizes.unpacked_bytes).sum::<u64>(),
    })
}

/// Lists the fields of a tree, and what it has besides.
pub(super) fn list_branches(tree: &Tree, args: &Args, mut text: Text, console: &Console) -> Result<(), Failure> {
    console.warn_of(&tree.clone().into());
    let sizes = tree.sizes();
    let metadata = tree.metadata();
    if args.json {
        let mut value = tree_to_json(&(tree.path().to_owned(), tree.clone()));
        value["file"] = json!(tree.file_name());
        let field = |(field, sizes): (&Field, &TreeSizes)| {
            json!({
                "name": field.name,
                "type": field.display_type(),
                "branches": sizes.branches,
                "baskets": sizes.baskets,
                "stored_bytes": sizes.stored_bytes,
                "unpacked_bytes": sizes.unpacked_bytes,
            })
        };
        value["fields"] = tree.schema().fields.iter().zip(&sizes).map(field).collect();
        value["unreadable"] =
            tree.refused().map(|(path, reason)| json!({ "branch": path, "reason": reason })).collect();
        let friend = |[alias, file, name]: &[String; 3]| json!([alias, display_name(file), name]);
        value["friends"] = metadata.friends.iter().map(friend).collect();
        value["index"] = json!(metadata.index);
        value["aliases"] = json!(metadata.aliases.iter().cloned().collect::<BTreeMap<_, _>>());
        return console.print_json("ls", value);
    }
    let [unpacked, stored, _, codec] = tree_sizes(&sizes);
    text.styled(BOLD, tree.path())
        .add(format!(": {}, {unpacked} in {stored} ({codec})", things(tree.entries(), "entry"),));
    text.end_line();
    let all: u64 = sizes.iter().map(|sizes| sizes.stored_bytes).sum();
    let mut table = Table::new(&["FIELD", "TYPE", ">BRANCHES", ">BASKETS", ">UNPACKED", ">STORED", ">RATIO", ">SHARE"]);
    for (field, sizes) in tree.schema().fields.iter().zip(&sizes) {
        let [unpacked, stored, ratio, _] = tree_sizes([sizes]);
        table.line([
            field.name.clone(),
            field.display_type().to_owned(),
            count(sizes.branches),
            count(sizes.baskets),
            unpacked,
            stored,
            ratio,
            share(sizes.stored_bytes, all),
        ]);
    }
    table.add_to(text.end_line());
    let mut table = Table::new(&["FRIEND", "TREE", "FILE"]);
    for [alias, file, name] in &metadata.friends {
        table.line([alias, name, &display_name(file)].map(String::as_str));
    }
    table.add_below(&mut text);
    if let Some([major, minor]) = &metadata.index {
        let mut table = Table::new(&["INDEX", ""]);
        table.line([major, minor].map(String::as_str));
        table.add_below(&mut text);
    }
    let mut table = Table::new(&["ALIAS", "EXPRESSION"]);
    for (name, expression) in &metadata.aliases {
        table.line([name, expression].map(String::as_str));
    }
    table.add_below(&mut text);
    console.print(&text)
}
