//! `tupelo ls`: the contents of a file, ntuple or tree.

mod folder;
mod trees;
mod xaod;

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};
use tupelo::dataset::find;
use tupelo::ops::inspect::{self, FieldInfo, Sizes, Summary};
use tupelo::ops::{self, FoundNtuple};
use tupelo::reader::{Location, Object};
use tupelo::storage::{Entry, Storage, display_name, is_object_uri, split_container};
use tupelo::{Error, ErrorKind, File, Ntuple, Tree};

use crate::console::Console;
use crate::failure::Failure;
use crate::table::{Table, bytes, count, share, things};
use crate::text::{BOLD, Text};
use trees::{list_branches, tree_line, tree_to_json};

/// C++ class of an ntuple's anchor.
pub(super) const NTUPLE_CLASS: &str = "ROOT::RNTuple";
/// Prefix of the C++ classes of directories.
pub(super) const DIRECTORY_CLASS: &str = "TDirectory";

/// List the objects of files, or the fields of an ntuple or TTree
///
/// For a directory: its ROOT files with their ntuples and trees. For a file or a directory in it: its ntuples with their
/// attribute sets (@NAME), its TTrees, and all other objects. For an ntuple or a tree: its top-level fields with their
/// sizes. Sizes are in powers of 1024 (KiB, MiB, …); --json gives exact bytes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo ls events.root
  tupelo ls 'run*.root'
  tupelo ls .
  tupelo ls events.root:Events
  tupelo ls DAOD_PHYSLITE.root:EventData --xaod
  tupelo ls events.root --json | jq '.ntuples[].entries'")]
pub(crate) struct Args {
    /// Files or directories, or one ntuple, tree or directory in each file as FILE:NAME; FILE may contain wildcards
    #[arg(value_name = "FILE[:NAME]", required = true)]
    inputs: Vec<String>,
    /// Also list the metadata of the ntuples
    #[arg(short, long)]
    long: bool,
    /// Of events of ATLAS, list containers and objects with the sizes of all their variables, in place of fields
    #[arg(long)]
    xaod: bool,
    /// Print one JSON document for each file instead of tables, with metadata
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: super::Reading,
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let mut is_first = true;
    let storage = args.reading.storage()?;
    console.for_each(&find(&args.inputs, storage)?, args.json.then_some("ls"), |location| {
        let mut text = console.text();
        if !std::mem::take(&mut is_first) {
            text.end_line();
        }
        if location.is_remote_folder() {
            return list_folder(location, args, text, console);
        }
        if let Some(directory) = location.local_path().filter(|path| location.object.is_none() && path.is_dir()) {
            return folder::list(directory, args, text, console);
        }
        let opened = args.reading.try_open(location)?;
        // The URL of a folder may lack the slash at the end.
        let is_no_file = |error: &Error| matches!(error.kind(), ErrorKind::MissingFile | ErrorKind::Unsupported);
        if opened.as_ref().is_err_and(is_no_file) && is_folder(location, storage) {
            return list_folder(location, args, text, console);
        }
        let file = console.watch().file(opened.map_err(super::unopened)?);
        let Some(name) = &location.object else {
            return match args.xaod {
                true => Err(Failure::usage("--xaod lists one ntuple or tree; name it, as in FILE:EventData")),
                false => list_objects(&file, None, args, text, console),
            };
        };
        match file.table(Some(name)) {
            Ok(table) if args.xaod => xaod::list(&table, args, text, console),
            Ok(table) => match table.tree() {
                Some(tree) => list_branches(tree, args, text, console),
                None => list_fields(table.ntuple()?, args, text, console),
            },
            Err(_) if is_directory(&file, name) => list_objects(&file, Some(name), args, text, console),
            Err(error) => Err(super::no_ntuple(error, location)),
        }
    })
}

/// Whether a store or an XRootD server has a folder of this name.
fn is_folder(location: &Location, storage: &Storage) -> bool {
    let is_remote = location.local_path().is_none() && location.object.is_none();
    // A file is listed as itself.
    let is_other = |entry: &Entry| entry.url != location.file;
    is_remote && storage.list(&location.file).is_ok_and(|entries| entries.iter().any(is_other))
}

/// Lists a folder of a store or of an XRootD server.
fn list_folder(location: &Location, args: &Args, mut text: Text, console: &Console) -> Result<(), Failure> {
    let entries = args.reading.storage()?.list(&location.file).map_err(tupelo::Error::from)?;
    // An ntuple has the size of its anchor here: the other objects are not listed.
    let (size, size_key) = match is_object_uri(&location.file) {
        true => (">ANCHOR", "anchor_bytes"),
        false => (">SIZE", "bytes"),
    };
    if args.json {
        let entry = |entry: &Entry| json!({ "url": display_name(&entry.url), size_key: entry.size });
        let entries: Value = entries.iter().map(entry).collect();
        return console.print_json("ls", json!({ "folder": location.to_string(), "entries": entries }));
    }
    let mut table = Table::new(&["NAME", size]);
    for entry in &entries {
        let url = display_name(&entry.url);
        let (folder, slash) = url.strip_suffix('/').map_or((url.as_str(), ""), |folder| (folder, "/"));
        let in_container = split_container(folder).and_then(|(_, name)| name);
        let last = in_container.unwrap_or_else(|| folder.rsplit('/').next().unwrap_or(folder));
        table.line([format!("{last}{slash}"), entry.size.map_or_else(String::new, bytes)]);
    }
    text.add(format!("{location}, {}", things(entries.len() as u64, "entry"))).end_line();
    table.add_below(&mut text);
    console.print(&text)
}

fn is_directory(file: &File, name: &str) -> bool {
    let name = name.trim_end_matches('/');
    // Opening an ntuple in damaged directories reports the damage.
    let objects = file.objects().unwrap_or_default();
    objects.iter().any(|object| object.path == name && object.class_name.starts_with(DIRECTORY_CLASS))
}

/// An ntuple or attribute set to list.
struct Listed {
    /// Path in the file, or name of the attribute set.
    name: String,
    cycle: Option<u16>,
    /// `None` if it cannot be read; the error was printed.
    details: Option<Details>,
    /// Empty for an attribute set.
    metadata: BTreeMap<String, String>,
    sets: Vec<Listed>,
}

/// The contents of a file or directory.
struct Contents {
    ntuples: Vec<Listed>,
    trees: Vec<(String, Tree)>,
    others: Vec<Object>,
}

/// Properties of an ntuple.
struct Details {
    description: String,
    format_version: String,
    writer: String,
    summary: Summary,
}

fn list_objects(
    file: &File,
    directory: Option<&str>,
    args: &Args,
    text: Text,
    console: &Console,
) -> Result<(), Failure> {
    let below = directory.map(|directory| format!("{}/", directory.trim_end_matches('/')));
    let is_below = |path: &str| below.as_ref().is_none_or(|below| path.starts_with(below));
    let objects = file.objects();
    // The deviations may be the reason.
    console.warn_of_deviations(&file.name(), file.deviations());
    let mut others = objects?;
    others.retain(|object| object.class_name != NTUPLE_CLASS && is_below(&object.path));
    let trees = trees::take(file, &mut others, console);
    let mut failed = false;
    let mut listed: Vec<Listed> = Vec::new();
    ops::each_ntuple(file, None, &mut |found| {
        if !is_below(&found.name) {
            return Ok(());
        }
        let is_set = found.set.is_some();
        let described = describe(found, &mut failed, console);
        match listed.last_mut() {
            // Attribute sets follow their ntuple.
            Some(ntuple) if is_set => ntuple.sets.push(described),
            _ => listed.push(described),
        }
        Ok(())
    })?;
    if args.json {
        let mut value = json!({ "file": file.name(), "bytes": file.size() });
        if let Some(directory) = directory {
            value["directory"] = json!(directory);
        }
        value["ntuples"] = listed.iter().map(to_json).collect();
        value["trees"] = trees.iter().map(tree_to_json).collect();
        value["objects"] = others.iter().map(object_to_json).collect();
        value["deviations"] = file.deviations().iter().map(super::verify::deviation_to_json).collect();
        console.print_json("ls", value)?;
    } else {
        print_objects(file, directory, &Contents { ntuples: listed, trees, others }, args.long, text, console)?;
    }
    if failed { Err(Failure::reported()) } else { Ok(()) }
}

fn describe(found: FoundNtuple, failed: &mut bool, console: &Console) -> Listed {
    let details = found.ntuple.and_then(|ntuple| {
        console.warn_of(&ntuple.clone().into());
        let summary = inspect::summary(&ntuple)?;
        let (description, writer) = (ntuple.description().to_owned(), ntuple.writer().to_owned());
        let format_version = ntuple.format_version().to_string();
        Ok((pairs(&ntuple), Details { description, format_version, writer, summary }))
    });
    let details = details.map_err(|error| {
        *failed = true;
        console.fail(&Failure::from(error));
    });
    let (metadata, details) = details.map_or((BTreeMap::new(), None), |(metadata, details)| (metadata, Some(details)));
    let cycle = found.object.map(|object| object.cycle);
    Listed { name: found.set.unwrap_or(found.name), cycle, details, metadata, sets: Vec::new() }
}

/// The metadata of an ntuple, empty if they are damaged or of another program. Their attribute set is listed anyway.
fn pairs(ntuple: &Ntuple) -> BTreeMap<String, String> {
    ntuple.metadata().unwrap_or_default()
}

fn sizes_to_json(sizes: &Sizes) -> Value {
    json!({
        "elements": sizes.elements,
        "pages": sizes.pages,
        "stored_bytes": sizes.stored_bytes,
        "unpacked_bytes": sizes.unpacked_bytes,
        "codec": sizes.codec(),
    })
}

fn to_json(listed: &Listed) -> Value {
    let mut value = json!({ "name": listed.name });
    if let Some(cycle) = listed.cycle {
        value["cycle"] = json!(cycle);
    }
    if let Some(Details { description, format_version, writer, summary }) = &listed.details {
        value["description"] = json!(description);
        value["entries"] = json!(summary.entries);
        value["fields"] = json!(summary.fields);
        value["columns"] = json!(summary.columns);
        value["clusters"] = json!(summary.clusters);
        value["cluster_groups"] = json!(summary.cluster_groups);
        value["pages"] = json!(summary.sizes.pages);
        value["stored_bytes"] = json!(summary.sizes.stored_bytes);
        value["unpacked_bytes"] = json!(summary.sizes.unpacked_bytes);
        value["metadata_bytes"] = json!(summary.metadata_bytes);
        value["codec"] = json!(summary.sizes.codec());
        value["format_version"] = json!(format_version);
        value["writer"] = json!(writer);
    }
    if !listed.metadata.is_empty() {
        value["metadata"] = json!(listed.metadata);
    }
    if !listed.sets.is_empty() {
        value["attribute_sets"] = listed.sets.iter().map(to_json).collect();
    }
    value
}

fn object_to_json(object: &Object) -> Value {
    json!({
        "path": object.path,
        "class": object.class_name,
        "title": object.title,
        "cycle": object.cycle,
        "bytes": object.bytes,
    })
}

fn print_objects(
    file: &File,
    directory: Option<&str>,
    contents: &Contents,
    long: bool,
    mut text: Text,
    console: &Console,
) -> Result<(), Failure> {
    let Contents { ntuples, trees, others } = contents;
    match directory {
        Some(directory) => text.add(format!("{}:{directory}", file.name())).end_line(),
        None => {
            let size = file.size().map_or_else(String::new, |size| format!(", {}", bytes(size)));
            text.add(format!("{}{size}", file.name())).end_line()
        }
    };
    let mut table = Table::new(&[
        "NTUPLE",
        ">ENTRIES",
        ">FIELDS",
        ">CLUSTERS",
        ">UNPACKED",
        ">STORED",
        ">RATIO",
        "CODEC",
        "FORMAT",
        "WRITER",
    ]);
    for ntuple in ntuples {
        ntuple_lines(ntuple, "", &mut table);
    }
    table.add_below(&mut text);
    if long {
        let mut table = Table::new(&["NTUPLE", "METADATA", "VALUE"]);
        for ntuple in ntuples {
            for (key, value) in &ntuple.metadata {
                table.line([&ntuple.name, key, value].map(String::as_str));
            }
        }
        table.add_below(&mut text);
    }
    let mut table =
        Table::new(&["TREE", ">ENTRIES", ">FIELDS", ">CLUSTERS", ">UNPACKED", ">STORED", ">RATIO", "CODEC"]);
    for (name, tree) in trees {
        table.line(tree_line(name, tree));
    }
    table.add_below(&mut text);
    let cycles = others.iter().fold(HashMap::<&str, usize>::new(), |mut cycles, object| {
        *cycles.entry(&object.path).or_default() += 1;
        cycles
    });
    let mut table = Table::new(&["OBJECT", "CLASS", ">RECORD", "TITLE"]);
    for object in others {
        let path = match cycles.get(object.path.as_str()) {
            Some(2..) => format!("{};{}", object.path, object.cycle),
            _ => object.path.clone(),
        };
        table.line([path, object.class_name.clone(), bytes(object.bytes), object.title.clone()]);
    }
    table.add_below(&mut text);
    console.print(&text)
}

fn ntuple_lines(listed: &Listed, indent: &str, table: &mut Table) {
    let name = format!("{indent}{}", listed.name);
    table.line(match &listed.details {
        None => vec![name, "unreadable".to_owned()],
        Some(Details { format_version, writer, summary, .. }) => vec![
            name,
            count(summary.entries),
            count(summary.fields),
            count(summary.clusters),
            bytes(summary.sizes.unpacked_bytes),
            bytes(summary.sizes.stored_bytes),
            format!("{:.2}", summary.sizes.ratio()),
            summary.sizes.codec(),
            format_version.clone(),
            writer.clone(),
        ],
    });
    for set in &listed.sets {
        ntuple_lines(set, &format!("{indent}  @"), table);
    }
}

fn list_fields(ntuple: &Ntuple, args: &Args, mut text: Text, console: &Console) -> Result<(), Failure> {
    console.warn_of(&ntuple.clone().into());
    let summary = inspect::summary(ntuple)?;
    let fields = inspect::fields(ntuple)?;
    if args.json {
        let mut value = json!({ "file": ntuple.file_name(), "name": ntuple.path(), "entries": summary.entries });
        value["fields"] = fields.iter().map(field_to_json).collect();
        let metadata = pairs(ntuple);
        if !metadata.is_empty() {
            value["metadata"] = json!(metadata);
        }
        return console.print_json("ls", value);
    }
    let sizes = &summary.sizes;
    text.styled(BOLD, ntuple.path()).add(format!(
        ": {}, {} in {} ({})",
        things(summary.entries, "entry"),
        bytes(sizes.unpacked_bytes),
        bytes(sizes.stored_bytes),
        sizes.codec(),
    ));
    text.end_line();
    let mut table = Table::new(&["FIELD", "TYPE", ">COLUMNS", ">UNPACKED", ">STORED", ">RATIO", ">SHARE", ""]);
    for field in &fields {
        let note = note(field.dropped.as_deref(), field.projected_from.as_deref());
        table.line([
            field.name.clone(),
            field.type_name.clone(),
            count(field.columns),
            bytes(field.sizes.unpacked_bytes),
            bytes(field.sizes.stored_bytes),
            format!("{:.2}", field.sizes.ratio()),
            share(field.sizes.stored_bytes, sizes.stored_bytes),
            note,
        ]);
    }
    table.add_to(text.end_line());
    let mut table = Table::new(&["METADATA", "VALUE"]);
    for (key, value) in if args.long { pairs(ntuple) } else { BTreeMap::new() } {
        table.line([key, value]);
    }
    table.add_below(&mut text);
    console.print(&text)
}

/// What the list of fields says of one.
pub(super) fn note(unreadable: Option<&str>, projected_from: Option<&str>) -> String {
    match (unreadable, projected_from) {
        (Some(reason), _) => format!("unreadable: {reason}"),
        (None, Some(source)) => format!("projected from {source}"),
        (None, None) => String::new(),
    }
}

fn field_to_json(field: &FieldInfo) -> Value {
    let mut value = json!({ "name": field.name, "type": field.type_name, "columns": field.columns });
    if let (Some(object), Some(sizes)) = (value.as_object_mut(), sizes_to_json(&field.sizes).as_object_mut()) {
        object.append(sizes);
    }
    if let Some(source) = &field.projected_from {
        value["projected_from"] = json!(source);
    }
    if let Some(reason) = &field.dropped {
        value["unreadable"] = json!(reason);
    }
    value
}
