//! The ROOT files of a local directory.

use std::ffi::OsString;
use std::fs; // FS: the names of a directory, and the first bytes of its files.
use std::io::Read;
use std::path::Path;

use serde_json::{Value, json};
use tupelo::reader::{Location, TREE_CLASSES};

use super::{Args, NTUPLE_CLASS};
use crate::console::Console;
use crate::failure::Failure;
use crate::table::{Table, bytes, count, things};
use crate::text::Text;

/// How a ROOT file begins.
const MAGIC: &[u8; 4] = b"root";

/// Whether a file is one of ROOT: by its first bytes, or by its name if it is too short for them.
fn is_root_file(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut start));
    let is_short = read.is_ok() && start.len() < MAGIC.len();
    start == MAGIC || (is_short || read.is_err()) && path.extension().is_some_and(|extension| extension == "root")
}

/// Lists the ROOT files of a directory with their ntuples and trees, and its directories.
pub(super) fn list(path: &Path, args: &Args, mut text: Text, console: &Console) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::new(format_args!("cannot list {}: {error}", path.display()));
    let mut names: Vec<OsString> = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        names.push(entry.map_err(failed)?.file_name());
    }
    names.retain(|name| !name.as_encoded_bytes().starts_with(b"."));
    names.sort();
    let mut table = Table::new(&["FILE", ">SIZE", "NTUPLE OR TREE", ">ENTRIES"]);
    let (mut documents, mut files, mut failures) = (Vec::new(), 0, 0);
    for name in names {
        let (inside, is_unicode) = (path.join(&name), name.to_str().is_some());
        let name = name.to_string_lossy().into_owned();
        let Ok(metadata) = inside.metadata() else { continue };
        if metadata.is_dir() {
            documents.push(json!({ "path": inside.display().to_string(), "directory": true }));
            table.line([format!("{name}/")]);
            continue;
        }
        if !metadata.is_file() || !is_root_file(&inside) {
            continue;
        }
        files += 1;
        let mut document = json!({ "path": inside.display().to_string(), "bytes": metadata.len() });
        let cells = |what: &str, entries: Option<u64>| {
            [name.clone(), bytes(metadata.len()), what.to_owned(), entries.map_or_else(String::new, count)]
        };
        let contents = match is_unicode {
            true => contents(&inside, args),
            false => Err(Failure::new(format_args!("{}: its name is not UTF-8; rename the file", inside.display()))),
        };
        match contents {
            Ok(contents) => {
                let object = |(path, entries): &(String, Option<u64>)| json!({ "name": path, "entries": entries });
                document["objects"] = contents.iter().map(object).collect::<Value>();
                contents.iter().for_each(|(path, entries)| table.line(cells(path, *entries)));
                if contents.is_empty() {
                    table.line(cells("", None));
                }
            }
            Err(failure) => {
                failures += 1;
                document["error"] = json!(failure.message);
                table.line(cells("unreadable", None));
                console.fail(&failure);
            }
        }
        documents.push(document);
    }
    if args.json {
        console.print_json("ls", json!({ "folder": path.display().to_string(), "entries": documents }))?;
    } else {
        text.add(format!("{}, {}", path.display(), things(files, "ROOT file"))).end_line();
        table.add_below(&mut text);
        console.print(&text)?;
    }
    if failures > 0 { Err(Failure::reported()) } else { Ok(()) }
}

/// The newest ntuples and trees of a file, with their numbers of entries; that of an unreadable one is `None`.
fn contents(path: &Path, args: &Args) -> Result<Vec<(String, Option<u64>)>, Failure> {
    let location = Location { file: path.display().to_string(), object: None };
    let file = args.reading.open_uncounted(&location)?;
    let has_entries = |class: &str| class == NTUPLE_CLASS || TREE_CLASSES.contains(&class);
    let mut objects = file.objects()?;
    objects.retain(|object| object.is_newest && has_entries(&object.class_name));
    let entries = |name: &str| file.table(Some(name)).ok().map(|table| table.entries());
    Ok(objects.into_iter().map(|object| (object.path.clone(), entries(&object.path))).collect())
}
