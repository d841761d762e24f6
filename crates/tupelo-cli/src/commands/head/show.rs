//! `tupelo show`: a histogram or graph of a file, as text or as a picture.

mod stored;

use tupelo::dataset::find;
use tupelo::ops::{is_entries, other_objects};
use tupelo::reader::{Location, Object};
use tupelo::storage::display_name;
use tupelo::{File, object::Value};

pub(in super::super) use self::stored::is_drawable;
use self::stored::plot;
use super::drawing::{Labels, Picture, Plot};
use crate::console::Console;
use crate::failure::Failure;
use crate::inputs::Inputs;
use crate::table::cut;

/// Most lines of bars in the terminal, and most bars of a picture.
const MAX_BINS: [usize; 2] = [200, 2000];
/// Most objects that an error lists.
const MAX_LISTED: usize = 10;
/// Maximum length of names and classes in it, in characters.
const MAX_NAME: usize = 60;

/// Draw a histogram, profile, graph or efficiency of a file
///
/// One dimension is drawn as bars, two as shades, and graphs as points. Without OBJECT, the file must have a single
/// object that can be drawn. The bins of a profile are means, those of an efficiency the part of the entries that
/// passed. Many bins are combined. A picture has the errors of graphs, and bins true to scale.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo show plots.root:mass
  tupelo show plots.root:dir/mass -o mass.svg
  tupelo show plots.root:pt --log -o pt.png")]
pub(crate) struct Args {
    /// The object, as FILE:OBJECT; TH1, TH2, TProfile, TGraph with or without errors, or TEfficiency
    #[arg(value_name = "FILE[:OBJECT]")]
    input: String,
    /// Use a logarithmic scale for the values of bins
    #[arg(long)]
    log: bool,
    #[command(flatten)]
    picture: Picture,
    #[command(flatten)]
    reading: super::super::Reading,
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let locations = find([&args.input], args.reading.storage()?)?;
    let [location] = locations.as_slice() else {
        let several = Failure::usage(format_args!("{} files match, expected a single one", locations.len()));
        return Err(several.with_hint("draw the objects one by one; `tupelo merge` sums histograms"));
    };
    let inputs = Inputs::of(&locations);
    args.picture.check(&inputs)?;
    let file = args.reading.open_file(location, console)?;
    let object = chosen(&file, location)?;
    let Some((plot, mut labels)) = drawn(&file, &object)? else {
        return Err(refused(&object, location));
    };
    let plot = match plot {
        Plot::Bars(bars) => {
            let (bars, size) = bars.combined(MAX_BINS[usize::from(args.picture.is_wanted())]);
            if size > 1 {
                labels.title += &format!(" ({size} bins in each bar)");
            }
            Plot::Bars(bars)
        }
        other => other,
    };
    if args.log && matches!(plot, Plot::Points(_)) {
        let refused =
            Failure::usage(format_args!("--log is for the bins of histograms, found a {}", object.class_name));
        return Err(refused.with_hint("omit --log"));
    }
    args.picture.draw(&plot, &labels, args.log, &inputs, console)
}

/// What is drawn of an object, with its texts; `None` if it is not one of its class.
pub(in super::super) fn drawn(file: &File, object: &Object) -> Result<Option<(Plot, Labels)>, Failure> {
    let Value::Object(value) = file.object(&object.name())? else { return Ok(None) };
    let place = |what: String| Failure::new(format_args!("{}: object '{}': {what}", file.name(), object.path));
    plot(&value).map(Some).map_err(place)
}

/// The object that is named, or the only one that can be drawn.
fn chosen(file: &File, location: &Location) -> Result<Object, Failure> {
    if let Some(name) = &location.object {
        return match file.listed(name)? {
            Some(object) if is_drawable(&object.class_name) => Ok(object),
            Some(object) => Err(refused(&object, location)),
            // The error of the engine has near names.
            None => match file.object(name) {
                Err(error) => Err(super::super::no_ntuple(error, location)),
                Ok(_) => Err(Failure::new(format_args!("{location} changed while it was read"))),
            },
        };
    }
    let mut objects = other_objects(file)?;
    objects.retain(|object| is_drawable(&object.class_name));
    let name = display_name(&location.file);
    match objects.len() {
        0 => {
            let none = Failure::usage(format_args!("{name} contains no histogram or graph that can be drawn"));
            Err(none.with_hint(format!("`tupelo ls {name}` lists its contents")))
        }
        1 => Ok(objects.remove(0)),
        several => {
            let shown = objects.iter().take(MAX_LISTED);
            let shown = shown.map(|it| format!("'{}' ({})", cut(&it.path, MAX_NAME), cut(&it.class_name, MAX_NAME)));
            let more = if several > MAX_LISTED { ", …" } else { "" };
            let list = shown.collect::<Vec<_>>().join(", ");
            let what = format_args!("{name} contains {several} objects that can be drawn: {list}{more}");
            Err(Failure::usage(what).with_hint("specify one as FILE:OBJECT"))
        }
    }
}

fn refused(object: &Object, location: &Location) -> Failure {
    let (file, path) = (display_name(&location.file), &object.path);
    let what = Failure::usage(format_args!("{file}: '{path}' is a {}, which cannot be drawn", object.class_name));
    what.with_hint(match &object.class_name {
        class if is_entries(class) => format!("`tupelo hist {file}:{path} EXPRESSION` draws its entries"),
        class if class.starts_with("TDirectory") => format!("`tupelo ls {file}:{path}` lists its contents"),
        _ => format!("`tupelo dump {file}:{path}` prints it as JSON"),
    })
}
