//! `tupelo rm`: removes ntuples from object stores.

use tupelo::dataset::matching_files;
use tupelo::ops::gc::Collector;

use super::stored_uris;
use crate::console::Console;
use crate::failure::Failure;
use crate::table::{bytes, things};

/// Remove ntuples from object stores
///
/// Removes the anchor first, so that the ntuple is not visible any more, and then its objects. Readers that have it open fail
/// from then on. Objects of other attempts to write it are left to `tupelo gc`. ROOT files are removed like other files.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo rm --dry-run 'ntpl+file:test-*'
  tupelo rm ntpl+file:events")]
pub(crate) struct Args {
    /// The ntuples: ntpl+s3://BUCKET/PREFIX, ntpl+file:///DIRECTORY/NAME, daos://POOL/CONTAINER:NAME; of
    /// ntpl+mirror:URI,URI each member. They may have wildcards, except in DAOS and mirrors
    #[arg(value_name = "URI", required = true)]
    uris: Vec<String>,
    /// Print what would be removed, and remove nothing
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
