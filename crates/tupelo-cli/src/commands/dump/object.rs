//! A single object of a file as JSON.

use std::io::Write;
use std::path::Path;

use tupelo::File;
use tupelo::ops::is_entries;
use tupelo::reader::{Location, Object};

use super::Args;
use crate::console::{Console, Output, Pending};
use crate::failure::Failure;
use crate::formats::Format;
use crate::inputs::Inputs;
use crate::json::objects::to_json;
use crate::table::bytes;

/// The object that the only location names, if it has no entries.
pub(super) fn find(args: &Args, locations: &[Location]) -> Result<Option<(File, Object)>, Failure> {
    let [location @ Location { object: Some(name), .. }] = locations else { return Ok(None) };
    let Ok(file) = args.files.sources.reading.try_open(location)? else { return Ok(None) };
    let found = file.listed(name).ok().flatten().filter(has_no_entries);
    Ok(found.map(|object| (file, object)))
}

/// Whether an object is neither an ntuple, a tree nor a directory.
pub(in super::super) fn has_no_entries(object: &Object) -> bool {
    !is_entries(&object.class_name) && !object.class_name.starts_with("TDirectory")
}

/// Writes the object as one document.
pub(super) fn dump(
    args: &Args,
    (file, object): &(File, Object),
    (target, inputs): (Option<&Path>, &Inputs),
    format: Format,
    console: &Console,
) -> Result<(), Failure> {
    if let Some(option) = refused(args, format) {
        let what =
            format_args!("{}: '{}' is a {}; {option} is for entries", file.name(), object.path, object.class_name);
        return Err(Failure::usage(what).with_hint("without this option, the object is one JSON document"));
    }
    let budget = args.files.sources.reading.memory_budget.0;
    let value = file.object(&object.name())?;
    let Ok(mut text) = to_json(&value, budget) else {
        let what = format_args!("{}: '{}' takes more than {} as JSON", file.name(), object.path, bytes(budget));
        return Err(Failure::new(what).with_hint("--memory-budget SIZE allows more, for example 4GiB"));
    };
    text.bytes.push(b'\n');
    let (mut output, pending) = Output::open(target, inputs)?;
    output.write_all(&text.bytes).and_then(|()| output.flush())?;
    pending.map_or(Ok(()), Pending::publish)?;
    if text.odd_strings > 0 {
        console.warn(&format!("{} strings are not UTF-8 and were written as {{\"base64\": …}}", text.odd_strings));
    }
    Ok(())
}

/// An option that has no meaning for an object.
fn refused(args: &Args, format: Format) -> Option<&'static str> {
    let sources = &args.files.sources;
    let given = [
        (!args.choice.fields.is_empty(), "a choice of fields"),
        (!args.choice.range.is_whole(), "--entries"),
        (!args.condition.define.is_empty(), "--define"),
        (args.condition.has_cut(), "--cut"),
        (sources.union, "--union"),
        (sources.attributes.is_some(), "--attributes"),
        (args.binary_strings, "--binary-strings"),
        (!matches!(format, Format::Jsonl), "another format than JSON"),
    ];
    given.iter().find(|(is_given, _)| *is_given).map(|(_, option)| *option)
}
