//! `tupelo verify --salvage`: what is whole of a damaged ntuple or tree, in a new file.

use serde_json::json;
use tupelo::ops::copy::{Lost, salvage, salvage_tree};
use tupelo::reader::{File, Location};
use tupelo::storage::display_name;
use tupelo::{FileWriter, WriteOptions};

use super::super::copy::target::summarise;
use super::Args;
use crate::console::Console;
use crate::failure::Failure;
use crate::inputs::Inputs;
use crate::interrupt::{Interrupt, abort};
use crate::table::things;

/// Objects that a message names.
const MAX_NAMED: usize = 20;

pub(super) fn run(args: &Args, location: &Location, out: &str, console: &Console) -> Result<(), Failure> {
    let to = Location::parse(out);
    let (shown, name) = (display_name(&to.file), to.ntuple_name());
    if Inputs::of(std::slice::from_ref(location)).contain(&to) {
        return Err(Failure::usage(format_args!("{shown} is both input and output")).with_hint("write to another file"));
    }
    if !args.force && to.local_path().is_some_and(std::path::Path::exists) {
        return Err(Failure::usage(format_args!("{shown} exists")).with_hint("--force replaces it"));
    }
    let file = args.reading.open_file(location, console)?.recovered()?;
    console.warn_of_deviations(&file.name(), file.deviations());
    let table = file.table(location.object.as_deref())?;
    let interrupt = Interrupt::watch()?;
    let writer = FileWriter::create_at(&to.file, args.reading.storage()?)?;
    let path = name.unwrap_or(table.path());
    let (kind, mut progress, saved);
    match table.tree() {
        Some(tree) => {
            progress = console.progress("salvage", None, "B");
            (kind, saved) = ("tree", salvage_tree(tree, &writer, path, &mut progress.until(&interrupt)));
        }
        None => {
            let (ntuple, options) = (table.ntuple()?, WriteOptions::default());
            progress = console.progress("salvage", Some(ntuple.entries()), "entries");
            (kind, saved) = ("ntuple", salvage(ntuple, &writer, path, options, &mut progress.until(&interrupt)));
        }
    }
    let saved = match saved {
        Ok(Some(saved)) => saved,
        Ok(None) => return Err(abort(writer, interrupt.failure())),
        Err(error) => return Err(abort(writer, error.into())),
    };
    writer.finish()?;
    progress.finish();
    let lost: u64 = saved.lost.iter().map(|lost| lost.entries.end - lost.entries.start).sum();
    if args.json {
        let lost_of = |lost: &Lost| {
            let field = |it: &tupelo::reader::Skipped| json!({ "name": it.name, "reason": it.reason });
            let fields: Vec<_> = lost.fields.iter().map(field).collect();
            let reason = Some(&lost.reason).filter(|reason| !reason.is_empty());
            json!({ "first": lost.entries.start, "end": lost.entries.end, "fields": fields, "reason": reason })
        };
        let losses: Vec<_> = saved.lost.iter().map(lost_of).collect();
        let document = json!({
            "file": file.name(), kind: table.path(), "output": shown, "entries": saved.written.entries,
            "lost_entries": lost, "lost": losses,
        });
        console.print_json("verify", document)?;
    } else {
        let mut text = console.text();
        saved.lost.iter().for_each(|lost| line(lost, &mut text));
        console.print(&text)?;
    }
    summarise(path, &saved.written, console);
    if location.object.is_none() {
        warn_others(&file, table.path(), console);
    }
    match (saved.lost.is_empty(), lost) {
        (true, _) => Ok(()),
        (false, 0) => Err(Failure::new(format_args!("{shown} has all entries, but not all that belongs to them"))),
        (false, lost) => Err(Failure::new(format_args!("{shown} was written without {}", things(lost, "entry")))),
    }
}

/// Names the other objects of the file. Damaged directories list none.
fn warn_others(file: &File, saved: &str, console: &Console) {
    let objects = file.objects().unwrap_or_default();
    let others: Vec<String> = objects
        .iter()
        .filter(|object| object.is_newest && object.path != saved)
        .map(|object| format!("'{}' ({})", object.path, object.class_name))
        .collect();
    if !others.is_empty() {
        let shown = others.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = match others.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        console.warn(&format!("{}: not salvaged: {shown}{more}", file.name()));
        console.note(
            "`tupelo verify FILE:NAME --salvage OUT` saves another ntuple or tree, and `tupelo copy` what is intact",
        );
    }
}

fn line(lost: &Lost, text: &mut crate::text::Text) {
    let entries = match lost.entries.is_empty() {
        true => String::new(),
        false => format!("entries {}:{}: ", lost.entries.start, lost.entries.end),
    };
    let fields: Vec<String> = lost.fields.iter().map(|it| format!("field '{}': {}", it.name, it.reason)).collect();
    let reason = if lost.reason.is_empty() { fields.join("; ") } else { lost.reason.clone() };
    text.add(format!("lost: {entries}{reason}")).end_line();
}
