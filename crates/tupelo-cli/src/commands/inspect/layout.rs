//! `tupelo layout`: the records of a file.

use serde_json::{Value, json};
use tupelo::ops::layout::{ByteMap, Content, DaosPages, Region, layout};

use crate::console::Console;
use crate::failure::Failure;
use crate::inputs::one;
use crate::table::{Cell, Table, bytes};
use crate::text::{DIM, RED};

/// List all records of a file with their offsets and sizes
///
/// Lists keys with class and name, gaps, and for ntuples the envelopes and the pages of each column in each cluster.
/// Offsets and sizes are in bytes; the sizes add up to the size of the file. For an ntuple in an object store, lists
/// the regions of each object; the summary shows the mapping or, in DAOS, the object class.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo layout events.root
  tupelo layout events.root | less")]
pub(crate) struct Args {
    /// File, or URI of an ntuple in an object store
    #[arg(value_name = "FILE")]
    input: String,
    /// Print one JSON document instead of the table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: super::super::Reading,
}

/// Kinds of content in the summary.
const KINDS: [&str; 7] = ["pages", "metadata", "keys", "objects", "header", "free", "unaccounted"];

fn kind(content: &Content) -> &'static str {
    match content {
        Content::Pages { .. } => KINDS[0],
        Content::Envelope { .. } | Content::ChunkTable { .. } => KINDS[1],
        Content::BlobKey => KINDS[2],
        Content::Record { .. } => KINDS[3],
        Content::FileHeader => KINDS[4],
        Content::Gap => KINDS[5],
        _ => KINDS[6],
    }
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let location = one(&args.input, args.reading.storage()?)?;
    if let Some(object) = location.object {
        return Err(Failure::usage(format_args!("layout needs a whole file: remove ':{object}'")));
    }
    let file = args.reading.open_file(&location, console)?;
    let layout = layout(&file)?;
    for remark in &layout.remarks {
        console.warn(&format!("{}: {remark}", file.name()));
    }
    if args.json {
        return console.print_json(
            "layout",
            json!({
                "file": file.name(),
                "bytes": layout.size,
                "shared_bytes": layout.shared_bytes,
                "mapping": layout.mapping.map(|mapping| mapping.to_string()),
                "daos": layout.daos.as_ref().map(|daos| json!({ "class": daos.class, "objects": daos_objects(daos) })),
                "remarks": layout.remarks.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "regions": layout.regions.iter().map(to_json).collect::<Vec<_>>(),
            }),
        );
    }
    let has_objects = layout.regions.iter().any(|region| region.object.is_some());
    let columns = ["OBJECT", ">OFFSET", ">BYTES", "WHAT", "OF"];
    let mut table = Table::new(&columns[usize::from(!has_objects)..]);
    for region in &layout.regions {
        let (what, of) = describe(&region.content);
        let what = match region.content {
            Content::Unaccounted => Cell::styled(RED, &what),
            Content::Gap => Cell::styled(DIM, &what),
            _ => what.into(),
        };
        let object = has_objects.then(|| region.object.as_deref().unwrap_or_default().into());
        let place = [region.offset.to_string().into(), region.bytes.to_string().into(), what, of.into()];
        table.line(object.into_iter().chain(place));
    }
    let mut text = console.text();
    table.add_to(&mut text);
    console.print(&text)?;
    console.note(&totals(&layout));
    Ok(())
}

fn totals(layout: &ByteMap) -> String {
    let part = |name: &&'static str| {
        let regions = layout.regions.iter().filter(|region| kind(&region.content) == *name);
        (*name, regions.map(|region| region.bytes).sum::<u64>())
    };
    let parts = KINDS.iter().map(part).filter(|(_, size)| *size > 0);
    let parts: Vec<_> = parts.map(|(name, size)| format!("{name} {}", bytes(size))).collect();
    let mut text = format!("{}: {}", bytes(layout.size), parts.join(", "));
    if layout.shared_bytes > 0 {
        text += &format!("; columns share {} of the pages", bytes(layout.shared_bytes));
    }
    if let Some(mapping) = layout.mapping {
        text += &format!("; mapping {mapping}");
    }
    if let Some(daos) = &layout.daos {
        text += &format!("; object class {}, one object per {}", daos.class, daos_objects(daos));
    }
    text
}

/// The value of the storage option `daos_objects`.
fn daos_objects(daos: &DaosPages) -> &'static str {
    if daos.separate { "page" } else { "cluster" }
}

fn describe(content: &Content) -> (String, String) {
    let plain = |what: &str| (what.to_owned(), String::new());
    match content {
        Content::FileHeader => plain("file header"),
        Content::Record { class_name, name, cycle, .. } => (format!("record {class_name}"), format!("{name};{cycle}")),
        Content::BlobKey => plain("key RBlob"),
        Content::Gap => plain("free"),
        Content::Envelope { ntuple, envelope, cluster_group: None } => ((*envelope).to_owned(), ntuple.to_string()),
        Content::Envelope { ntuple, envelope, cluster_group: Some(group) } => {
            ((*envelope).to_owned(), format!("{ntuple}, cluster group {group}"))
        }
        Content::Pages { ntuple, field, column, cluster, first_page, pages } => {
            let what = match (first_page, pages) {
                (0, 1) => "1 page".to_owned(),
                (0, pages) => format!("{pages} pages"),
                (first, 1) => format!("page {first}"),
                (first, pages) => format!("pages {first} to {}", first + pages - 1),
            };
            (what, format!("{ntuple}, cluster {cluster}, column {column}, {field}"))
        }
        Content::ChunkTable { ntuple } => ("chunk table".to_owned(), ntuple.to_string()),
        _ => plain("unaccounted"),
    }
}

fn to_json(region: &Region) -> Value {
    let mut value = json!({ "offset": region.offset, "bytes": region.bytes });
    if let Some(object) = &region.object {
        value["object"] = json!(**object);
    }
    let more = match &region.content {
        Content::FileHeader => json!({ "what": "file header" }),
        Content::Record { class_name, name, cycle, key_bytes } => {
            json!({ "what": "record", "class": class_name, "name": name, "cycle": cycle, "key_bytes": key_bytes })
        }
        Content::BlobKey => json!({ "what": "blob key" }),
        Content::Gap => json!({ "what": "free" }),
        Content::Envelope { ntuple, envelope, cluster_group } => {
            json!({ "what": envelope, "ntuple": **ntuple, "cluster_group": cluster_group })
        }
        Content::Pages { ntuple, field, column, cluster, first_page, pages } => json!({
            "what": "pages", "ntuple": **ntuple, "field": **field, "column": column,
            "cluster": cluster, "first_page": first_page, "pages": pages,
        }),
        Content::ChunkTable { ntuple } => json!({ "what": "chunk table", "ntuple": **ntuple }),
        _ => json!({ "what": "unaccounted" }),
    };
    if let (Some(value), Value::Object(mut more)) = (value.as_object_mut(), more) {
        value.append(&mut more);
    }
    value
}
