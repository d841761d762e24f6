//! `tupelo explain`: what a read would do.

use serde_json::{Value, json};
use tupelo::dataset::find;
use tupelo::reader::{ExplainedColumn, Explanation};

use crate::console::Console;
use crate::failure::Failure;

/// Show which pages a read needs, without reading them
///
/// Lists pages, stored and decompressed bytes, and requests for each column, computed from the metadata. A number after
/// ≤ is an upper bound: the pages to read then depend on the cut or on the lengths of collections. Entries that zone maps
/// rule out, which `tupelo index --zone-maps` makes, are counted, and the bytes of these zone maps, which are read. Of several
/// files, the numbers are sums.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo explain events.root --fields 'Muon_*' --entries :10000
  tupelo explain events.root --fields MET_pt --cut 'len(Muon_pt) == 2'
  tupelo explain 'run*.root:Events' --fields MET_pt --cut 'run == 355404'")]
pub(crate) struct Args {
    #[command(flatten)]
    files: super::super::Files,
    #[command(flatten)]
    fields: super::super::Fields,
    #[command(flatten)]
    range: super::super::EntryRange,
    #[command(flatten)]
    condition: super::super::Condition,
    /// Print one JSON document instead of the table
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let sources = &args.files.sources;
    let locations = find(&args.files.inputs, sources.reading.storage()?)?;
    let table = sources.table(&locations, console)?;
    let (read, _) = sources.read(&table, &args.fields, &args.condition, (&args.range, None), console)?;
    let explanation = read.explain()?;
    if !args.json {
        return console.print_data(&explanation.to_string());
    }
    let mut value = json!({ "file": table.file_name(), "name": table.path() });
    if let (Some(value), Value::Object(mut explained)) = (value.as_object_mut(), to_json(&explanation)) {
        value.append(&mut explained);
    }
    console.print_json("explain", value)
}

/// What a read would do, for a document.
pub(super) fn to_json(explanation: &Explanation) -> Value {
    json!({
        "entries": explanation.entries,
        "ruled_out": explanation.ruled_out,
        "zone_map_bytes": explanation.zone_map_bytes,
        "clusters": explanation.clusters,
        "pages": explanation.pages(),
        "stored_bytes": explanation.stored_bytes(),
        "unpacked_bytes": explanation.unpacked_bytes(),
        "requests": explanation.requests,
        "columns": explanation.columns.iter().map(column).collect::<Vec<_>>(),
    })
}

fn column(column: &ExplainedColumn) -> Value {
    json!({
        "field": column.field,
        "type": column.column_type,
        "is_cut": column.is_cut,
        "is_upper_bound": column.is_upper_bound,
        "pages": column.pages,
        "stored_bytes": column.stored_bytes,
        "unpacked_bytes": column.unpacked_bytes,
        "requests": column.requests,
    })
}
