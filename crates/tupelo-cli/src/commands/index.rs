//! `tupelo index`: manifests for planning distributed reads.

use std::io::Write;
use std::path::PathBuf;

use tupelo::dataset::find;
use tupelo::ops::index::Manifest;
use tupelo::storage::{display_name, local_path};

use crate::console::{Console, Output, Pending};
use crate::failure::Failure;
use crate::inputs::Inputs;

/// Write a manifest of ntuples and trees, so that reads can be planned without opening the files
///
/// Writes one JSON document with the size and identity of each file, its clusters with first entry, number of entries
/// and stored bytes, its fields with their sizes, and the distinct schemas. In Python, tupelo.partitions and
/// tupelo.dask accept it as manifest=. No page is read. If files cannot be read, an error lists them and no manifest is
/// written; with --skip-errors, the manifest lists them under "left_out".
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo index run*.root > manifest.json
  tupelo index -o manifest.json a.root:Events b.root:Events
  tupelo index run*.root | jq '[.files[].entries] | add'")]
pub(crate) struct Args {
    /// Ntuples and trees, each as FILE or FILE:NAME; FILE may contain wildcards
    #[arg(value_name = "FILE[:NAME]", required = true)]
    inputs: Vec<String>,
    /// Output file, replaced if it exists, or - for stdout [default: -]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    skipping: super::Skipping,
    #[command(flatten)]
    reading: super::Reading,
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let locations = find(&args.inputs, args.reading.storage()?)?;
    let is_secret = |file: &str| local_path(file).is_none() && display_name(file) != file;
    if let Some(location) = locations.iter().find(|location| is_secret(&location.file)) {
        let refused =
            Failure::usage(format_args!("{location}: a manifest cannot store user names, passwords or query strings"));
        return Err(refused.with_hint("pass credentials with --storage-option or in the environment"));
    }
    let mut progress = console.progress("index", locations.len() as u64, "files");
    let mut manifest = Manifest::new();
    for (done, location) in (1..).zip(&locations) {
        let added = args.reading.open(location, None, console).and_then(|table| Ok(manifest.add(&table)?));
        args.skipping.note(location, locations.len(), added)?;
        progress.set(done);
    }
    progress.finish();
    args.skipping.finish(locations.len(), console)?;
    for (location, error) in args.skipping.left_out() {
        manifest.leave_out(&location, &error)?;
    }
    let text = manifest.to_json()? + "\n";
    let (mut output, pending) = Output::open(args.output.as_deref(), &Inputs::of(&locations))?;
    output.write_all(text.as_bytes()).and_then(|()| output.flush())?;
    pending.map_or(Ok(()), Pending::publish)
}
