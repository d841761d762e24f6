//! `tupelo rm`: removes ntuples from object stores.

use tupelo::dataset::matching_files;
use tupelo::ops::gc::Collector;

use super::stored_uris;
use crate::console::Console;
use crate::failure::Failure;
use crate::table::{bytes, things};

/// Remove ntuples from object stores
///
/// Removes the anchor first, which makes the ntuple invisible, and then its objects. Readers that have the ntuple open
/// fail from then on. `tupelo gc` removes the objects of other attempts to write it. ROOT files are removed like any
/// other files.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo rm --dry-run 'ntpl+file:test-*'
  tupelo rm ntpl+file:events")]
pub(crate) struct Args {
    /// URIs of the ntuples: ntpl+s3://BUCKET/PREFIX, ntpl+file:///DIRECTORY/NAME, daos://POOL/CONTAINER:NAME; for
    /// ntpl+mirror:URI,URI, every member. URIs may contain wildcards, except in DAOS and mirrors
    #[arg(value_name = "URI", required = true)]
    uris: Vec<String>,
    /// Print the ntuples that would be removed, without removing them
    #[arg(short = 'n', long)]
    dry_run: bool,
    #[command(flatten)]
    remote: super::super::Remote,
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let storage = args.remote.storage()?;
    super::super::for_each(&stored_uris(&args.uris, storage, matching_files)?, console, None, |uri| {
        let collector = Collector::new(uri, storage)?;
        let (found, done) = match args.dry_run {
            true => (collector.find_visible()?, "would be removed"),
            false => (collector.remove_visible()?, "removed"),
        };
        let objects = things(found.objects, "object");
        console.note(&format!("{uri}: {done}, with {objects} of {}", bytes(found.bytes)));
        Ok(())
    })
}
