//! `tupelo rm`: removes objects from ROOT files, and ntuples from object stores.

use tupelo::OpenOptions;
use tupelo::dataset::{find, matching_files};
use tupelo::ops::gc::Collector;
use tupelo::ops::objects;
use tupelo::reader::Location;
use tupelo::storage::{Storage, is_object_uri};

use super::gc::stored_uris;
use super::{Named, by_file, update};
use crate::console::Console;
use crate::failure::Failure;
use crate::table::{bytes, things};

/// Remove objects from ROOT files, or ntuples from object stores
///
/// NAME is an ntuple, a tree, a histogram or any other object, with all its cycles, or one cycle as NAME;CYCLE; it may
/// have wildcards, where * stands for any characters but /. A directory must be empty unless --recursive is given.
/// Pages and baskets that only removed objects use become free space in the file, which ROOT fills again; `tupelo
/// repack` makes the file smaller. A killed command leaves the file as it was, or without the objects.
///
/// Of an ntuple in an object store, the anchor is removed first, which makes it invisible, and then its objects.
/// Readers that have the ntuple open fail from then on. `tupelo gc` removes the objects of other attempts to write it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo rm events.root:Events 'events.root:histograms/old_*'
  tupelo rm -r events.root:calibration
  tupelo rm 'events.root:Events;1'
  tupelo rm --dry-run 'ntpl+file:test-*'")]
pub(crate) struct Args {
    /// Objects as FILE:NAME; or URIs of ntuples: ntpl+s3://BUCKET/PREFIX, ntpl+file:///DIRECTORY/NAME,
    /// daos://POOL/CONTAINER:NAME; for ntpl+mirror:URI,URI, every member. FILE, NAME and URIs may contain wildcards,
    /// except in DAOS and mirrors
    #[arg(value_name = "FILE:NAME|URI", required = true)]
    names: Vec<String>,
    /// Remove directories with everything in them
    #[arg(short, long)]
    recursive: bool,
    /// Print what would be removed, without removing it
    #[arg(short = 'n', long)]
    dry_run: bool,
    #[command(flatten)]
    remote: super::super::Remote,
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let storage = args.remote.storage()?;
    let (uris, names): (Vec<String>, Vec<String>) = args.names.iter().cloned().partition(|name| is_object_uri(name));
    let uris = stored_uris(&uris, storage, matching_files)?;
    let locations: Vec<Location> = find(&names, storage)?;
    let files = by_file(locations, "`rm FILE` of the shell removes a file")?;
    console.for_each(&files, None, |named| remove(args, named, storage, console))?;
    console.for_each(&uris, None, |uri| {
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

fn remove(args: &Args, named: &Named, storage: &Storage, console: &Console) -> Result<(), Failure> {
    let Named { file, names } = named;
    let (removed, done) = match args.dry_run {
        true => {
            let opened = OpenOptions::at(file.clone()).with_storage(storage.clone()).open_file()?;
            (objects::find(&opened, names, args.recursive)?, "would be removed")
        }
        false => {
            let remove = |file: &tupelo::FileWriter| Ok(objects::remove(file, names, args.recursive)?);
            (update(file, remove)?, "removed")
        }
    };
    if args.dry_run {
        removed.objects.iter().for_each(|object| console.note(&format!("{file}:{};{}", object.path, object.cycle)));
    }
    if let Some(kept) = &removed.kept {
        console.warn(&format!("{file}: pages and baskets of removed objects may stay in use: {kept}"));
    }
    let count = things(removed.objects.len() as u64, "object");
    console.note(&format!("{file}: {count} {done}, {} of space", bytes(removed.bytes)));
    Ok(())
}
