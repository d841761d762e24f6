//! `tupelo verify`: is anything damaged?

use serde_json::{Value, json};
use tupelo::ops::verify::{Damage, Report, verify, verify_deep};
use tupelo::reader::Location;

use crate::console::Console;
use crate::failure::Failure;
use crate::table::{bytes, things};

/// Compare every checksum and decode every page
///
/// Checks the anchors, headers, footers, page lists and pages of one ntuple or, without a name, of all that the file
/// holds, attribute sets and older cycles included. Each damage is one line on standard output, and the check goes on
/// to the end. Exit status: 0 intact, 1 damaged or not checkable by this version.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  tupelo verify events.root && echo intact")]
pub(crate) struct Args {
    /// The file, or one ntuple in it as FILE:NAME
    #[arg(value_name = "FILE[:NAME]")]
    input: String,
    /// Check also the file around the ntuples: that its records follow each other without a break, and that no byte
    /// belongs to two things
    #[arg(long)]
    deep: bool,
    /// One JSON document instead of lines
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let name = Location::parse(&args.input).object;
    let file = tupelo::open(&args.input).open_file()?;
    let mut progress = console.progress("verify", file.size(), "B");
    let report = match (args.deep, name) {
        (true, Some(name)) => return Err(Failure::new(format_args!("--deep checks a whole file, not only '{name}'"))),
        (true, None) => verify_deep(&file, &mut |done| progress.set(done))?,
        (false, name) => verify(&file, name.as_deref(), &mut |done| progress.set(done))?,
    };
    progress.finish();
    for warning in &report.warnings {
        console.warn(&format!("{}: {warning}", file.name()));
    }
    if args.json {
        console.print_json(&to_json(&file.name(), &report))?;
    } else {
        let all = report.damages.iter().chain(&report.unsupported);
        let lines: String = all.map(|damage| format!("{}: {damage}\n", file.name())).collect();
        console.print(&lines)?;
    }
    let mut summary = format!(
        "{}, {} verified in {:.2} s",
        things(report.pages, "page"),
        bytes(report.bytes),
        progress.elapsed().as_secs_f64()
    );
    if report.pages_without_checksum > 0 {
        summary += &format!("; {} without checksum", things(report.pages_without_checksum, "page"));
    }
    if report.ntuples == 0 {
        summary += "; the file holds no ntuple";
    }
    console.note(&summary);
    let (damages, unsupported) = (report.damages.len() as u64, report.unsupported.len() as u64);
    if damages > 0 {
        return Err(Failure::new(format_args!("{}: damage in {}", file.name(), things(damages, "place"))));
    }
    if unsupported > 0 {
        let unchecked = things(unsupported, "place");
        return Err(Failure::new(format_args!(
            "{}: no damage found, but {unchecked} could not be checked",
            file.name()
        )));
    }
    Ok(())
}

fn to_json(file: &str, report: &Report) -> Value {
    let damage = |damage: &Damage| {
        json!({
            "ntuple": damage.ntuple,
            "field": damage.field,
            "column": damage.column,
            "column_type": damage.column_type,
            "cluster": damage.cluster,
            "page": damage.page,
            "offset": damage.offset,
            "what": damage.what,
        })
    };
    json!({
        "file": file,
        "intact": report.damages.is_empty() && report.unsupported.is_empty(),
        "ntuples": report.ntuples,
        "pages": report.pages,
        "pages_without_checksum": report.pages_without_checksum,
        "bytes": report.bytes,
        "damages": report.damages.iter().map(damage).collect::<Vec<_>>(),
        "unsupported": report.unsupported.iter().map(damage).collect::<Vec<_>>(),
        "warnings": report.warnings,
    })
}
