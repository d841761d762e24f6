//! `tupelo repack`: writes a ROOT file again without the space that nothing uses.

use tupelo::cancellable;
use tupelo::ops::objects::repack;
use tupelo::reader::Location;
use tupelo::storage::display_name;

use crate::console::Console;
use crate::failure::Failure;
use crate::inputs::Inputs;
use crate::interrupt::Interrupt;
use crate::table::{bytes, things};

/// Write a ROOT file again without the space that removed and replaced objects left
///
/// The new file has everything that FILE has, but of each object only the newest cycle. Pages and baskets are copied as
/// they are stored; the checksums of pages are compared, baskets are not read (`tupelo verify` does). FILE is replaced when the new file is complete. If something
/// cannot be kept, the error names it, and nothing is replaced.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo repack events.root
  tupelo repack events.root -o smaller.root")]
pub(crate) struct Args {
    /// The file
    #[arg(value_name = "FILE")]
    file: String,
    /// Write this file, and leave FILE as it is
    #[arg(short, long, value_name = "OUT")]
    output: Option<String>,
    /// Replace OUT if it exists
    #[arg(short, long, requires = "output")]
    force: bool,
    #[command(flatten)]
    reading: super::super::Reading,
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let storage = args.reading.storage()?;
    let from = Location::parse(&args.file);
    let to = args.output.as_deref().map_or_else(|| from.clone(), Location::parse);
    if let Some(name) = from.object.as_deref().or(to.object.as_deref()) {
        let whole = Failure::usage(format_args!("expected a file, found the object '{name}' of one"));
        return Err(whole.with_hint("`tupelo copy IN:NAME OUT` copies one object"));
    }
    let name = display_name(&to.file);
    let Some(path) = to.local_path() else {
        let remote = Failure::usage(format_args!("{name} is not a local file"));
        return Err(remote.with_hint("-o OUT writes a local file, which `tupelo copy --raw` copies to a server"));
    };
    if args.output.is_some() {
        if Inputs::of(std::slice::from_ref(&from)).contain(&to) {
            let both = Failure::usage(format_args!("{name} is both input and output"));
            return Err(both.with_hint("without -o the file is replaced when the new one is complete"));
        }
        if path.exists() && !args.force {
            return Err(Failure::usage(format_args!("{name} exists")).with_hint("--force replaces it"));
        }
    }
    let file = args.reading.open_file(&from, console)?;
    let interrupt = Interrupt::watch()?;
    let watched = interrupt.clone();
    let mut progress = console.progress(&name, file.size(), "B");
    let mut report = progress.until(&interrupt);
    let done = cancellable(move || watched.is_set(), || repack(&file, &to.file, storage, &mut report));
    drop(report);
    progress.finish();
    let done = match done {
        Ok(Some(done)) => done,
        Err(error) if !interrupt.is_set() => return Err(error.into()),
        _ => return Err(interrupt.failure()),
    };
    let older = match done.older_cycles {
        0 => String::new(),
        older => format!(", without {}", things(older, "older cycle")),
    };
    let (before, after) = (bytes(done.bytes_before), bytes(done.bytes_after));
    if done.bytes_after > done.bytes_before {
        console.warn(&format!(
            "{name} is larger now: it had little unused space, and repacking stores baskets separately"
        ));
    }
    console.note(&format!("{name}: {before} before, {after} after: {}{older}", things(done.objects, "object")));
    Ok(())
}
