//! `tupelo browse`: the fields and objects of a file in the terminal.

mod app;
mod contents;
mod draw;
mod outline;
mod panel;
mod reader;
mod screen;
#[cfg(test)]
mod testing;
mod values;

use std::io::{self, IsTerminal};
use std::sync::Arc;

use tupelo::File;
use tupelo::reader::Location;
use tupelo::storage::{display_name, is_object_uri};

use self::app::App;
use self::contents::{Content, Listed, Opened, add_fields, add_objects, newest};
use self::outline::Outline;
use self::reader::Reader;
use super::head::drawing::Letters;
use super::ls::DIRECTORY_CLASS;
use crate::console::Console;
use crate::failure::Failure;
use crate::inputs::one;

/// Browse fields, sizes and values in the terminal
///
/// On the left are the objects of the file and the fields of its ntuples and trees, with types and stored bytes; on the right is
/// what `tupelo inspect` says of the selected one, and a plot of its values or of the histogram or graph. A plot reads at
/// most the first 100 000 entries or 32 MiB, and says how many. The key ? lists all keys.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo browse events.root
  tupelo browse events.root:Events
  tupelo browse https://example.org/plots.root")]
pub(crate) struct Args {
    /// A file, or an ntuple, tree, directory, histogram or graph in it
    #[arg(value_name = "FILE[:NAME]")]
    input: String,
    #[command(flatten)]
    reading: super::Reading,
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    check_terminal(&args.input)?;
    let location = one(&args.input, args.reading.storage()?)?;
    let file = args.reading.open_file(&location, console)?;
    let outline = contents(&file, &location)?;
    let title = display_name(&location.file);
    let mut app = App::new(title, outline, Letters::of_terminal(), console.has_color());
    screen::run(&mut app, &mut Reader::new(file))
}

/// Refuses to run without a terminal that moves its cursor.
fn check_terminal(input: &str) -> Result<(), Failure> {
    let missing = match (io::stdin().is_terminal(), io::stdout().is_terminal()) {
        (false, _) => "stdin is not a terminal",
        (_, false) => "stdout is not a terminal",
        _ if std::env::var_os("TERM").is_some_and(|term| term == "dumb") => "this terminal (TERM=dumb) cannot draw",
        _ => return Ok(()),
    };
    let (refused, input) =
        (Failure::usage(format_args!("browse needs a terminal, and {missing}")), display_name(input));
    Err(refused.with_hint(format!("`tupelo inspect {input}` prints sizes, and `tupelo ls {input}` the contents")))
}

/// The chosen objects of a file. A single one is open.
fn contents(file: &File, location: &Location) -> Result<Outline<Content>, Failure> {
    let mut outline = Outline::new();
    let (objects, below) = chosen(file, location)?;
    add_objects(&mut outline, objects, &below);
    if let [only] = *outline.roots() {
        if let Content::Table(listed, _) = &outline.node(only).content {
            let opened = Opened::read(file, &listed.object.name())?;
            add_fields(&mut outline, only, &Arc::new(opened));
        }
        outline.set_open(only, true);
    }
    Ok(outline)
}

/// The objects that a location names, and the directory that these are in, with a slash, if it is the one that is named.
fn chosen(file: &File, location: &Location) -> Result<(Vec<Listed>, String), Failure> {
    let missing = |error| super::no_ntuple(error, location);
    let Some(name) = &location.object else { return Ok((newest(file.objects()?), String::new())) };
    if is_object_uri(&location.file) {
        file.table(Some(name)).map_err(missing)?;
        return Ok((newest(file.objects()?), String::new()));
    }
    match file.listed(name.trim_end_matches('/'))? {
        None => Err(file.object(name).map_or_else(missing, |_| Failure::new(format_args!("{location} changed")))),
        Some(object) if object.class_name.starts_with(DIRECTORY_CLASS) => {
            let below = format!("{}/", object.path);
            let mut objects = file.objects()?;
            objects.retain(|object| object.path.starts_with(&below));
            Ok((newest(objects), below))
        }
        Some(object) => Ok((vec![Listed { object, older: 0 }], String::new())),
    }
}
