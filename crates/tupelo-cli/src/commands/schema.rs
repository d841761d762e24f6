//! `tupelo schema`: the fields of an ntuple or tree and how they are stored.

use std::collections::HashMap;

use serde_json::{Value, json};
use tupelo::dataset::find;
use tupelo::ops::inspect::{self, ColumnInfo};
use tupelo::schema::{Field, Schema};
use tupelo::{Table, printable};

use crate::console::Console;
use crate::failure::Failure;
use crate::table::{bytes, pad, things, width};
use crate::text::{BOLD, CYAN, DIM, Text};

/// Show the fields of an ntuple or TTree with their C++ types
///
/// The items of collections are called _0, base classes :_0, :_1 and so on.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo schema events.root
  tupelo schema events.root:Events --fields 'Muon_*' --columns
  tupelo schema 'run*.root:Events'")]
pub(crate) struct Args {
    /// Ntuples or trees, each as FILE or FILE:NAME; FILE may contain wildcards
    #[arg(value_name = "FILE[:NAME]", required = true)]
    inputs: Vec<String>,
    #[command(flatten)]
    fields: super::Fields,
    /// Also show columns: type, bits, representation, elements, pages, bytes, codec
    #[arg(long)]
    columns: bool,
    /// Show the Arrow types of the fields instead of the tree
    #[arg(long, conflicts_with_all = ["columns", "json"])]
    arrow: bool,
    /// Read the attribute set of this name linked to the ntuple
    #[arg(long, value_name = "SET")]
    attributes: Option<String>,
    /// Print one JSON document for each ntuple instead of the tree
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: super::Reading,
}

/// Maximum width to which names are padded, in characters.
const MAX_ALIGNED_NAME: usize = 32;

/// Columns by the dotted path of their field.
type Columns = HashMap<String, Vec<ColumnInfo>>;

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let locations = find(&args.inputs, args.reading.storage()?)?;
    let mut is_first = true;
    console.for_each(&locations, args.json.then_some("schema"), |location| {
        let table = args.reading.open(location, args.attributes.as_deref(), console)?;
        if locations.len() > 1 && !args.json {
            let mut head = console.text();
            if !std::mem::take(&mut is_first) {
                head.end_line();
            }
            console.print(head.add(table.file_name()).end_line())?;
        }
        show(args, &table, console)
    })
}

fn show(args: &Args, table: &Table, console: &Console) -> Result<(), Failure> {
    let read = args.fields.read(table, None)?;
    if args.arrow {
        let mut text = console.text();
        for field in read.arrow_schema().fields() {
            text.add(format!("{}: {}", field.name(), field.data_type())).end_line();
        }
        return console.print(&text);
    }
    let mut columns = Columns::new();
    if args.columns {
        for column in inspect::columns(table.ntuple()?)? {
            columns.entry(column.field.clone()).or_default().push(column);
        }
    }
    match args.json {
        true => print_json(table, read.schema(), &columns, console),
        false => print_tree(table, read.schema(), &columns, console),
    }
}

fn print_tree(table: &Table, schema: &Schema, columns: &Columns, console: &Console) -> Result<(), Failure> {
    let mut text = console.text();
    text.styled(BOLD, table.path()).add(format!(": {}", things(table.entries(), "entry")));
    add_description(table.description(), &mut text);
    text.end_line();
    branches(&schema.fields, "", "", columns, &mut text);
    console.print(&text)
}

fn add_description(description: &str, text: &mut Text) {
    if !description.is_empty() {
        text.add("  ").styled(DIM, format!("\"{description}\""));
    }
}

/// Adds fields and the trees below them. `parent` is their path, which ends in a dot or is empty.
fn branches(fields: &[Field], parent: &str, indent: &str, columns: &Columns, text: &mut Text) {
    // Align the types, except after very long names.
    let names = fields.iter().map(|field| width(&printable(&field.name))).max().unwrap_or(0).min(MAX_ALIGNED_NAME);
    for (index, field) in fields.iter().enumerate() {
        let is_last = index + 1 == fields.len();
        text.add(indent).add(if is_last { "└─ " } else { "├─ " });
        text.add(pad(&printable(&field.name), names, false)).add("  ").styled(CYAN, field.display_type());
        if let Some(source) = &field.projected_from {
            text.add(format!("  = {source} (projected)"));
        }
        if field.soa {
            text.add("  (structure of arrays)");
        }
        add_description(&field.description, text);
        text.end_line();
        let path = format!("{parent}{}", field.name);
        let below = format!("{indent}{}", if is_last { "   " } else { "│  " });
        let bar = if field.children().is_empty() { " " } else { "│" };
        for column in columns.get(&path).into_iter().flatten() {
            text.styled(DIM, format!("{below}{bar}   {}", column_text(column))).end_line();
        }
        branches(field.children(), &(path + "."), &below, columns, text);
    }
}

fn column_text(column: &ColumnInfo) -> String {
    let mut text =
        format!("column {}: {}, {} bits", column.id, column.column_type.unwrap_or("unknown type"), column.bits);
    if let Some((min, max)) = column.range {
        text += &format!(" over {min:?}..{max:?}");
    }
    if column.representation > 0 {
        text += &format!(", representation {}", column.representation);
    }
    if column.in_extension {
        text += &format!(", added late (first element {})", column.first_element);
    }
    let sizes = &column.sizes;
    text += &format!(
        "; {}, {}, {} in {}",
        things(sizes.elements, "element"),
        things(sizes.pages, "page"),
        bytes(sizes.unpacked_bytes),
        bytes(sizes.stored_bytes)
    );
    if sizes.shared_pages > 0 {
        text += &format!(", {} shared with columns above", things(sizes.shared_pages, "page"));
    }
    if !sizes.codec().is_empty() {
        text += &format!(" ({})", sizes.codec());
    }
    text
}

fn print_json(table: &Table, schema: &Schema, columns: &Columns, console: &Console) -> Result<(), Failure> {
    let fields: Vec<_> = schema.fields.iter().map(|field| to_json(field, &field.name, columns)).collect();
    console.print_json(
        "schema",
        json!({
            "file": table.file_name(),
            "name": table.path(),
            "description": table.description(),
            "entries": table.entries(),
            "fields": fields,
        }),
    )
}

fn to_json(field: &Field, path: &str, columns: &Columns) -> Value {
    let mut value = json!({ "name": field.name, "type": field.type_name });
    for (key, text) in [("type_alias", &field.type_alias), ("description", &field.description)] {
        if !text.is_empty() {
            value[key] = json!(text);
        }
    }
    if field.type_version > 0 {
        value["type_version"] = json!(field.type_version);
    }
    if let Some(checksum) = field.checksum {
        value["type_checksum"] = json!(checksum);
    }
    if let Some(source) = &field.projected_from {
        value["projected_from"] = json!(source);
    }
    if field.soa {
        value["soa"] = json!(true);
    }
    if let Some(columns) = columns.get(path) {
        value["columns"] = columns.iter().map(column_to_json).collect();
    }
    if !field.children().is_empty() {
        let child = |child: &Field| to_json(child, &format!("{path}.{}", child.name), columns);
        value["fields"] = field.children().iter().map(child).collect();
    }
    value
}

fn column_to_json(column: &ColumnInfo) -> Value {
    json!({
        "id": column.id,
        "type": column.column_type,
        "bits": column.bits,
        "index": column.index,
        "representation": column.representation,
        "range": column.range.map(|(min, max)| [min, max]),
        "first_element": column.first_element,
        "added_late": column.in_extension,
        "elements": column.sizes.elements,
        "pages": column.sizes.pages,
        "shared_pages": column.sizes.shared_pages,
        "stored_bytes": column.sizes.stored_bytes,
        "unpacked_bytes": column.sizes.unpacked_bytes,
        "codec": column.sizes.codec(),
    })
}
