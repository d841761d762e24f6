//! `tupelo verify`: verification and repair of files.

mod salvage;

use std::collections::HashSet;

use serde_json::{Value, json};
use tupelo::dataset::find;
use tupelo::ops::repair::{Repaired, leftovers, may_be_repaired, repair_within};
use tupelo::ops::verify::{Damage, Report, verify, verify_deep};
use tupelo::reader::{Deviation, Location};
use tupelo::storage::{display_name, is_mirror, mirror_members};

use crate::console::Console;
use crate::failure::Failure;
use crate::table::{bytes, count, things};
use crate::text::Text;

/// Verify every checksum and decode every page
///
/// Checks one ntuple or tree or, without a name, the whole content of the file: the anchors, headers, footers, page
/// lists and pages of ntuples, including attribute sets and older cycles, and whether zone maps agree with the values; the baskets of trees, which are decompressed
/// and decoded (only LZ4, zlib and LZMA store checksums; baskets that they could not make smaller are
/// stored without); the records of other objects, which are decompressed. Each
/// damaged place is printed as one line on stdout, and verification continues. A deviation is a rule of the format that
/// the file breaks but ROOT does not check: the file is read as ROOT reads it. Each member of a mirror is verified
/// separately. Exit status: 0 if intact, 1 if damaged or not supported by this version.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo verify events.root && echo intact
  tupelo verify --deep 'run*.root'")]
pub(crate) struct Args {
    /// Files, or one ntuple or tree in each as FILE:NAME; FILE may contain wildcards
    #[arg(value_name = "FILE[:NAME]", required = true)]
    inputs: Vec<String>,
    /// Also check the structure around the pages: in a file, that records are contiguous and do not overlap; in an
    /// object store other than DAOS, that every object matches its digest in the manifest
    #[arg(long)]
    deep: bool,
    /// Exit with status 1 even if only deviations are found
    #[arg(long)]
    strict: bool,
    /// Print one JSON document for each file instead of lines
    #[arg(long)]
    json: bool,
    /// Restore the newest complete state of the file
    ///
    /// Use it after a writer was killed or the machine lost power: the last complete checkpoint becomes readable again.
    /// If FILE does not exist but FILE.tmp-… of a killed writer does, that file is renamed to FILE. Only the header and
    /// the directory records are changed; an intact file is not changed. If FILE is truncated and only the free list
    /// and streamer info are missing, they are rewritten. With --deep, the structure of the result is checked too.
    /// Symbolic links are followed.
    #[arg(long, conflicts_with_all = ["recover", "strict"])]
    repair: bool,
    /// Copy the undamaged parts of an ntuple or tree to a new file
    ///
    /// Clusters whose pages can all be read are copied as they are stored, with attribute sets and metadata; of a tree, the
    /// entries whose baskets can all be read. If at least half of the entries would be lost, the fields or branches with the
    /// most damaged entries are left out instead. Each range of entries that is lost is printed as one line, with the fields or
    /// branches that are damaged there, and each field or branch that is left out. The file is read as with
    /// --recover. Other objects of the file are not copied: a warning names them. Exit status: 0 if nothing is lost, 1 otherwise.
    #[arg(long, value_name = "OUT", conflicts_with_all = ["repair", "strict", "deep"])]
    salvage: Option<String>,
    /// With --salvage, replace OUT if it exists
    #[arg(long, requires = "salvage")]
    force: bool,
    #[command(flatten)]
    reading: super::Reading,
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    // The members of a mirror are verified one by one.
    let mut inputs: Vec<&str> = Vec::with_capacity(args.inputs.len());
    for input in &args.inputs {
        inputs.extend(mirror_members(input).map_err(tupelo::Error::from)?);
    }
    let locations = find(&inputs, args.reading.storage()?)?;
    if let Some(out) = &args.salvage {
        return match locations.as_slice() {
            [location] => salvage::run(args, location, out, console),
            several => Err(Failure::usage(format_args!("--salvage needs one input, found {}", several.len()))),
        };
    }
    let mut without_ntuple = 0;
    console.for_each(&locations, args.json.then_some("verify"), |location| {
        let done = match args.repair {
            true => repair(args, location, console),
            false => check(args, location, locations.len() > 1, console),
        };
        without_ntuple += u64::from(!done.map_err(Failure::without_verify)?);
        Ok(())
    })?;
    for mirror in args.inputs.iter().filter(|input| is_mirror(input)) {
        check_together(args, mirror, console)?;
    }
    if locations.len() > 1 {
        let without = match without_ntuple {
            0 => String::new(),
            1 => "; 1 of them contains no ntuple".to_owned(),
            several => format!("; {} of them contain no ntuple", count(several)),
        };
        console.note(&format!("{}: all intact{without}", things(locations.len() as u64, "file")));
    }
    Ok(())
}

/// Warns if the members of a mirror are not copies of one ntuple.
fn check_together(args: &Args, mirror: &str, console: &Console) -> Result<(), Failure> {
    let mut identities = HashSet::new();
    for member in mirror_members(mirror).map_err(tupelo::Error::from)? {
        let location = Location { file: member.to_owned(), object: None };
        identities.insert(args.reading.open_file(&location, console)?.ntuple(None)?.identity()?);
    }
    if identities.len() > 1 {
        let warning = "its members were not written together, so reads cannot fail over between them; `tupelo copy \
                       --force MEMBER -o MIRROR` writes all of them again";
        console.warn(&format!("{}: {warning}", display_name(mirror)));
    }
    Ok(())
}

/// Repairs a file; returns whether it has an ntuple.
fn repair(args: &Args, location: &Location, console: &Console) -> Result<bool, Failure> {
    if let Some(name) = &location.object {
        return Err(Failure::usage(format_args!("--repair needs a whole file: remove ':{name}'")));
    }
    let Some(path) = location.local_path() else {
        return Err(Failure::usage(format_args!("{location}: only local files can be repaired")));
    };
    let mut repaired = repair_within(path, args.reading.memory_budget.0)?;
    if args.deep {
        let file = args.reading.open_file(location, console)?;
        repaired.report = verify_deep(&file, &mut |_| {})?;
    }
    report(args, console, &repaired)?;
    Ok(repaired.report.ntuples > 0)
}

/// Verifies a file or an ntuple; returns whether there is an ntuple.
fn check(args: &Args, location: &Location, is_one_of_many: bool, console: &Console) -> Result<bool, Failure> {
    let Location { file: path, object: name } = location;
    let file = args.reading.open_file(location, console)?;
    let mut progress = console.progress("verify", file.size(), "B");
    let mut report = match (args.deep, name) {
        (true, Some(name)) => return Err(Failure::new(format_args!("--deep needs a whole file, found ':{name}'"))),
        (true, None) => verify_deep(&file, &mut |done| progress.set(done))?,
        (false, name) => verify(&file, name.as_deref(), &mut |done| progress.set(done))
            .map_err(|error| super::no_ntuple(error, location))?,
    };
    progress.finish();
    if report.ntuples + report.trees == 0 && report.is_intact() {
        // Probably the wrong file.
        report.warnings.push("the file contains no ntuple and no tree".to_owned());
    }
    for warning in &report.warnings {
        console.warn(&format!("{}: {warning}", file.name()));
    }
    if args.json {
        console.print_json("verify", to_json(&file.name(), &report))?;
    } else {
        let mut text = console.text();
        list(&mut text, &file.name(), &report);
        console.print(&text)?;
    }
    let places = match report.baskets {
        0 => things(report.pages, "page"),
        baskets if report.pages == 0 => things(baskets, "basket"),
        baskets => format!("{}, {}", things(report.pages, "page"), things(baskets, "basket")),
    };
    let mut summary =
        format!("{places}, {} verified in {:.2} s", bytes(report.bytes), progress.elapsed().as_secs_f64());
    if report.pages_without_checksum > 0 {
        summary += &format!("; {} without checksum", things(report.pages_without_checksum, "page"));
    }
    if is_one_of_many {
        summary = format!("{}: {summary}", file.name());
    }
    console.note(&summary);
    for left in leftovers(path) {
        let advice = match may_be_repaired(&left) {
            true => format!("`tupelo verify --repair {}` recovers it", left.display()),
            false => "it contains no checkpoint: delete it if no writer is running".to_owned(),
        };
        let left = left.display();
        console.note(&format!("{left} belongs to an interrupted or running writer; {advice}"));
    }
    let (damages, unsupported) = (report.num_damages, report.num_unsupported);
    if damages > 0 {
        return Err(Failure::new(format_args!("{}: found damage in {}", file.name(), things(damages, "place"))));
    }
    if unsupported > 0 {
        let unchecked = things(unsupported, "place");
        return Err(Failure::new(format_args!(
            "{}: no damage found, but {unchecked} could not be checked",
            file.name()
        )));
    }
    let deviations = report.deviations.len() as u64;
    if args.strict && deviations > 0 {
        let found = things(deviations, "deviation");
        return Err(Failure::new(format_args!("{}: no damage found, but {found} from the format", file.name())));
    }
    Ok(report.ntuples + report.trees > 0)
}

/// Prints the result of a repair.
fn report(args: &Args, console: &Console, repaired: &Repaired) -> Result<(), Failure> {
    let path = repaired.path.display().to_string();
    if args.json {
        let entries = |(path, entries): &(String, u64)| json!({ "ntuple": path, "entries": entries });
        let Value::Object(mut all) = to_json(&path, &repaired.report) else { return Ok(()) };
        all.insert("changed".into(), repaired.is_changed.into());
        all.insert("from".into(), repaired.from.as_ref().map(|from| from.display().to_string()).into());
        all.insert("rewritten".into(), repaired.rewritten.clone().into());
        all.insert("lost_bytes".into(), repaired.lost_bytes.into());
        all.insert("entries".into(), repaired.ntuples.iter().map(entries).collect());
        console.print_json("verify", Value::Object(all))?;
    } else {
        let mut text = console.text();
        for (name, entries) in &repaired.ntuples {
            text.add(format!("{path}: ntuple '{name}': {}", things(*entries, "entry"))).end_line();
        }
        list(&mut text, &path, &repaired.report);
        console.print(&text)?;
    }
    let done = match (&repaired.from, repaired.is_changed) {
        (Some(from), _) => format!("renamed from {}", from.display()),
        (None, true) => "repaired".to_owned(),
        (None, false) => "nothing to repair".to_owned(),
    };
    let done = match repaired.rewritten.as_slice() {
        [] => done,
        parts => format!("{done}; rewritten: {}", parts.join(", ")),
    };
    let lost = match repaired.lost_bytes {
        0 => String::new(),
        lost => format!("; {} at the end cannot be recovered", bytes(lost)),
    };
    console.note(&format!("{path}: {done}{lost}"));
    match repaired.report.num_damages {
        0 => Ok(()),
        1 => Err(Failure::new(format_args!("{path}: 1 damage remains"))),
        damages => Err(Failure::new(format_args!("{path}: {} remain", things(damages, "damage")))),
    }
}

/// Prints one line for each damage and each deviation.
fn list(text: &mut Text, file: &str, report: &Report) {
    for deviation in &report.deviations {
        text.add(format!("{file}: deviation: {deviation}")).end_line();
    }
    for damage in report.damages.iter().chain(&report.unsupported) {
        text.add(format!("{file}: {damage}")).end_line();
    }
    let listed = report.damages.len() + report.unsupported.len();
    let more = report.num_damages + report.num_unsupported - listed as u64;
    if more > 0 {
        text.add(format!("{file}: and {}", things(more, "more place"))).end_line();
    }
}

pub(super) fn deviation_to_json(deviation: &Deviation) -> Value {
    json!({ "rule": deviation.rule.name(), "offset": deviation.offset, "what": deviation.to_string() })
}

fn to_json(file: &str, report: &Report) -> Value {
    let damage = |damage: &Damage| {
        json!({
            "ntuple": damage.ntuple,
            "tree": damage.tree,
            "object": damage.object,
            "field": damage.field,
            "column": damage.column,
            "column_type": damage.column_type,
            "cluster": damage.cluster,
            "page": damage.page,
            "basket": damage.basket,
            "offset": damage.offset,
            "what": damage.what,
        })
    };
    json!({
        "file": file,
        "intact": report.is_intact(),
        "ntuples": report.ntuples,
        "trees": report.trees,
        "objects": report.objects,
        "pages": report.pages,
        "baskets": report.baskets,
        "pages_without_checksum": report.pages_without_checksum,
        "bytes": report.bytes,
        "num_damages": report.num_damages,
        "damages": report.damages.iter().map(damage).collect::<Vec<_>>(),
        "num_unsupported": report.num_unsupported,
        "unsupported": report.unsupported.iter().map(damage).collect::<Vec<_>>(),
        "deviations": report.deviations.iter().map(deviation_to_json).collect::<Vec<_>>(),
        "warnings": report.warnings,
    })
}
