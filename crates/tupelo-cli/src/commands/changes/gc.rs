//! `tupelo gc`: removes objects that no ntuple uses.

use std::path::Path;

use serde_json::{Value, json};
use tupelo::dataset::matching_objects;
use tupelo::ops::gc::{Attempt, Collector, DeadFile, DeadFiles, Leftovers, dead_files, remove_dead};
use tupelo::storage::{Storage, is_object_uri, local_path, mirror_members};

use crate::console::Console;
use crate::failure::Failure;
use crate::parse::Age;
use crate::table::{Table, bytes, count, things};

/// Remove what killed writers have left: objects of no ntuple in an object store, temporary files in a directory
///
/// Killed writers and replaced ntuples leave such objects behind. Objects of the visible ntuple are never removed.
/// Write attempts whose newest object is younger than --older-than are kept, because their writers may still be
/// running; in DAOS, the age counts from the start of the writer. Objects that a writer is about to make visible are
/// always kept for 10 minutes. Readers that still have a replaced ntuple open can no longer read it.
///
/// In a local directory, the files OUT.tmp-…-tupelo of writers that are not running are removed, those in folders below it not. Files
/// with entries of a checkpoint are kept while OUT does not exist: `tupelo verify --repair OUT` restores them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo gc --dry-run ntpl+file:events
  tupelo gc --older-than 1h ntpl+file:events
  tupelo gc --dry-run results/")]
pub(crate) struct Args {
    /// URIs of the ntuples, which need not exist: ntpl+s3://BUCKET/PREFIX, ntpl+file:///DIRECTORY/NAME,
    /// daos://POOL/CONTAINER:NAME; for ntpl+mirror:URI,URI, every member. URIs may contain wildcards, except in DAOS
    /// and mirrors. Or local directories
    #[arg(value_name = "URI", required = true)]
    uris: Vec<String>,
    /// Print the objects and files that would be removed, without removing them
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Keep write attempts and temporary files younger than this age, a number followed by s, m, h or d [default: 1d]
    #[arg(long, value_name = "AGE", default_value = DEFAULT_AGE_TEXT, hide_default_value = true)]
    older_than: Age,
    /// Print one JSON document instead of the table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: super::super::Remote,
}

/// The default of the engine as text for clap; a test compares the two.
const DEFAULT_AGE_TEXT: &str = "1d";

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let storage = args.remote.storage()?;
    let is_folder = |name: &&String| local_path(name).is_some_and(Path::is_dir);
    let (folders, uris): (Vec<String>, Vec<String>) = args.uris.iter().cloned().partition(|name| is_folder(&name));
    let uris = [folders, stored_uris(&uris, storage, matching_objects)?].concat();
    console.for_each(&uris, args.json.then_some("gc"), |uri| {
        if let Some(folder) = local_path(uri).filter(|_| is_folder(&uri)) {
            return clean(args, uri, folder, console);
        }
        let collector = Collector::new(uri, storage)?;
        let Leftovers { mut orphans, young, mut publishing, unreadable, temporary } =
            collector.find(args.older_than.0)?;
        unreadable.iter().for_each(|what| console.warn(&format!("{uri}: {what}")));
        if !args.json && !orphans.is_empty() {
            let mut text = console.text();
            table(&orphans).add_to(&mut text);
            console.print(&text)?;
        }
        if !args.dry_run {
            let mut removed = Vec::with_capacity(orphans.len());
            for orphan in orphans {
                match collector.remove(&orphan)? {
                    true => removed.push(orphan),
                    false => publishing += 1,
                }
            }
            orphans = removed;
            collector.remove_temporary(&temporary)?;
        }
        let (objects, size) = orphans.iter().fold((0, 0), |(n, size), it| (n + it.objects, size + it.bytes));
        let done = if args.dry_run { "would be removed" } else { "removed" };
        let mut others = String::new();
        let files = temporary.iter().filter(|key| !key.ends_with('/')).count();
        if files > 0 {
            others += &format!(", and {} of killed writers", things(files as u64, "temporary file"));
        }
        for (number, why) in [(young, "younger than --older-than"), (publishing, "that may become visible")] {
            if number > 0 {
                others += &format!("; {} {why} kept", things(number, "attempt"));
            }
        }
        console.note(&format!("{uri}: {} with {} {done}{others}", things(objects, "object"), bytes(size)));
        if args.json {
            let (orphans, removed) = (to_json(&orphans), !args.dry_run);
            console.print_json(
                "gc",
                json!({
                    "file": uri, "removed": removed, "orphans": orphans, "young": young, "publishing": publishing,
                    "unreadable": unreadable, "temporary": temporary,
                }),
            )?;
        }
        Ok(())
    })
}

/// Removes the temporary files in a directory.
fn clean(args: &Args, name: &str, folder: &Path, console: &Console) -> Result<(), Failure> {
    let DeadFiles { mut files, young, restorable, .. } = dead_files(folder, args.older_than.0)?;
    let mut running = 0;
    if !args.dry_run {
        let mut removed = Vec::with_capacity(files.len());
        for file in files {
            match remove_dead(&file.path).map_err(tupelo::Error::from)? {
                true => removed.push(file),
                false => running += 1,
            }
        }
        files = removed;
    }
    let paths = |files: &[DeadFile]| files.iter().map(|file| file.path.display().to_string()).collect::<Vec<_>>();
    let (found, kept) = (paths(&files), paths(&restorable));
    if args.json {
        return console.print_json(
            "gc",
            json!({
                "file": name, "removed": !args.dry_run, "orphans": [], "young": young, "publishing": running,
                "unreadable": [], "temporary": found, "restorable": kept,
            }),
        );
    }
    if !found.is_empty() {
        let mut text = console.text();
        let mut table = Table::new(&["FILE", ">SIZE"]);
        files.iter().zip(&found).for_each(|(file, path)| table.line([path.clone(), bytes(file.bytes)]));
        table.add_to(&mut text);
        console.print(&text)?;
    }
    for (file, path) in restorable.iter().zip(&kept) {
        let target = file.target.display();
        console.note(&format!("{path} is kept: `tupelo verify --repair {target}` restores its entries"));
    }
    let done = if args.dry_run { "would be removed" } else { "removed" };
    let size = files.iter().map(|file| file.bytes).sum();
    let mut others = String::new();
    for (number, why) in [(young, "younger than --older-than"), (running, "of a running writer")] {
        if number > 0 {
            others += &format!("; {} {why} kept", things(number, "file"));
        }
    }
    let count = things(files.len() as u64, "temporary file");
    console.note(&format!("{name}: {count} of killed writers with {} {done}{others}", bytes(size)));
    Ok(())
}

/// The URIs of ntuples that arguments name; `matching` gives those of a pattern.
pub(super) fn stored_uris(
    arguments: &[String],
    storage: &Storage,
    matching: impl Fn(&str, &Storage) -> tupelo::Result<Option<Vec<String>>>,
) -> Result<Vec<String>, Failure> {
    let mut uris = Vec::with_capacity(arguments.len());
    for uri in arguments {
        if !is_object_uri(uri) {
            let wrong = Failure::usage(format_args!("{uri} is not in an object store"));
            return Err(wrong.with_hint("expected ntpl+s3://BUCKET/PREFIX or daos://POOL/CONTAINER:NAME"));
        }
        if uri.ends_with('/') {
            let folder = Failure::usage(format_args!("{uri} is a folder, not an ntuple"));
            return Err(folder.with_hint(format!("{uri}* selects all ntuples in it")));
        }
        match matching(uri, storage)? {
            Some(found) if found.is_empty() => return Err(Failure::new(format_args!("no ntuple matches '{uri}'"))),
            Some(found) => uris.extend(found),
            None => uris.extend(mirror_members(uri).map_err(tupelo::Error::from)?.into_iter().map(str::to_owned)),
        }
    }
    Ok(uris)
}

fn table(orphans: &[Attempt]) -> Table {
    let mut table = Table::new(&["ATTEMPT", ">OBJECTS", ">SIZE"]);
    for orphan in orphans {
        table.line([orphan.attempt.clone(), count(orphan.objects), bytes(orphan.bytes)]);
    }
    table
}

fn to_json(orphans: &[Attempt]) -> Value {
    let one = |it: &Attempt| json!({ "attempt": it.attempt, "objects": it.objects, "bytes": it.bytes });
    orphans.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use tupelo::ops::gc::DEFAULT_AGE;

    use super::*;

    #[test]
    fn the_default_matches_the_engine() {
        assert_eq!(DEFAULT_AGE_TEXT.parse(), Ok(Age(DEFAULT_AGE)));
    }
}
