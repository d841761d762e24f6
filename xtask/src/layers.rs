//! One rule: a room may use only rooms that stand above it in its list, and the two roots do not know each other.
//!
//! A *room* is a top-level module of a crate. The lists below are the floor plan; a crate or a room that is not in them
//! is a fault, one that is listed and not there yet is not. `lib.rs` may re-export from every room: a name that a room
//! takes from the crate's root counts as taken from the room where it lives. Tests may use everything.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crate::report::Report;
use crate::rust::{RustPath, Source, Token, paths, tokens};
use crate::tree;

/// Entries that one folder of modules may have.
const MAX_ROOMS: usize = 12;

/// One member of the workspace.
struct Crate {
    /// Its package name.
    name: &'static str,
    /// Its folder.
    path: &'static str,
    /// Members that it may depend on.
    uses: &'static [&'static str],
    /// Its rooms, each using only those before it; empty where no order is set.
    rooms: &'static [&'static str],
}

/// The floor plan, in dependency order.
const CRATES: &[Crate] = &[
    Crate {
        name: "tupelo-format",
        path: "crates/tupelo-format",
        uses: &[],
        rooms: &[
            "error",
            "wire",
            "checksum",
            "compression",
            "encoding",
            "locator",
            "envelope",
            "descriptor",
            "container",
            "object",
            "open",
        ],
    },
    Crate {
        name: "tupelo-storage",
        path: "crates/tupelo-storage",
        uses: &[],
        rooms: &["error", "range", "source", "sink", "local", "adapter", "laws"],
    },
    Crate {
        name: "tupelo",
        path: "crates/tupelo",
        uses: &["tupelo-format", "tupelo-storage"],
        rooms: &[
            "error",
            "pool",
            "expression",
            "schema",
            "source",
            "sink",
            "plan",
            "decode",
            "encode",
            "reader",
            "writer",
            "ops",
        ],
    },
    Crate { name: "tupelo-cli", path: "crates/tupelo-cli", uses: &["tupelo"], rooms: &[] },
    Crate { name: "tupelo-python", path: "python", uses: &["tupelo", "tupelo-cli"], rooms: &[] },
    Crate {
        name: "conformance",
        path: "conformance",
        uses: &["tupelo-format", "tupelo-storage", "tupelo"],
        rooms: &[],
    },
    Crate { name: "tupelo-bench", path: "bench", uses: &["tupelo-format", "tupelo-storage", "tupelo"], rooms: &[] },
    Crate { name: "xtask", path: "xtask", uses: &[], rooms: &[] },
];

/// Checks crates against the floor plan, then rooms.
pub(crate) fn check(root: &Path) -> io::Result<Report> {
    let mut report = Report::default();
    members(&tree::read(root, "Cargo.toml")?, &mut report);
    let files = tree::files(root)?;
    for member in CRATES {
        let manifest = format!("{}/Cargo.toml", member.path);
        if !files.contains(&manifest) {
            continue;
        }
        report.files += 1;
        edges(member, &manifest, &tree::read(root, &manifest)?, &mut report);
        let src = format!("{}/src/", member.path);
        let mine: Vec<&str> =
            files.iter().map(String::as_str).filter(|path| path.starts_with(&src) && path.ends_with(".rs")).collect();
        crowding(&mine, &mut report);
        if member.rooms.is_empty() {
            continue;
        }
        let lib = Source::parse(&tree::read(root, &format!("{src}lib.rs"))?);
        declared(member, &format!("{src}lib.rs"), &lib, &mut report);
        let shown = re_exports(&lib.product, member.rooms);
        for path in mine {
            report.files += 1;
            let Some(module) = module_of(&path[src.len()..]) else { continue };
            let source = Source::parse(&tree::read(root, path)?);
            uses(member, path, &module, &source, &shown, &mut report);
        }
    }
    Ok(report)
}

/// Every member of the workspace must stand in the floor plan.
fn members(manifest: &str, report: &mut Report) {
    let mut inside = false;
    for (index, line) in manifest.lines().enumerate() {
        inside = inside && !line.starts_with(']') || line.starts_with("members");
        if !inside {
            continue;
        }
        for path in line.split('"').skip(1).step_by(2) {
            if !CRATES.iter().any(|member| member.path == path) {
                let what = format!("member `{path}` is not in the floor plan: give it a place in xtask/src/layers.rs");
                report.fault("Cargo.toml", index + 1, what);
            }
        }
    }
}

/// Dependencies of one crate on other members, in every kind of dependency section.
fn edges(member: &Crate, path: &str, manifest: &str, report: &mut Report) {
    let mut inside = false;
    for (index, line) in manifest.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            inside = section.ends_with("dependencies");
            if let Some((head, name)) = section.rsplit_once('.')
                && head.ends_with("dependencies")
            {
                edge(member, path, index + 1, name, report);
            }
        } else if inside && let Some((key, value)) = line.split_once('=') {
            let key = key.split('.').next().unwrap_or_default().trim().trim_matches('"');
            let renamed = value.split_once("package").and_then(|(_, rest)| rest.split('"').nth(1));
            edge(member, path, index + 1, renamed.unwrap_or(key), report);
        }
    }
}

fn edge(member: &Crate, path: &str, line: usize, name: &str, report: &mut Report) {
    if CRATES.iter().any(|other| other.name == name) && !member.uses.contains(&name) {
        let allowed = if member.uses.is_empty() { "no other member".to_owned() } else { member.uses.join(", ") };
        report.fault(path, line, format!("{} may not depend on {name}; it may use {allowed}", member.name));
    }
}

/// More than a dozen modules side by side is a sign that some belong together.
fn crowding(paths: &[&str], report: &mut Report) {
    let mut rooms: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for path in paths {
        let mut rest = *path;
        while let Some((folder, name)) = rest.rsplit_once('/') {
            let name = name.trim_end_matches(".rs");
            let list = rooms.entry(folder).or_default();
            if !matches!(name, "lib" | "main" | "mod" | "tests") && !list.contains(&name) {
                list.push(name);
            }
            rest = folder;
            if folder.ends_with("/src") {
                break;
            }
        }
    }
    for (folder, names) in rooms {
        if names.len() > MAX_ROOMS {
            report.fault(folder, 0, format!("{} rooms on one level; {MAX_ROOMS} are the most", names.len()));
        }
    }
}

/// Every module that `lib.rs` declares must be a room of the list.
fn declared(member: &Crate, path: &str, lib: &Source, report: &mut Report) {
    let words = tokens(&lib.product);
    let mut depth = 0_usize;
    for pair in words.windows(2) {
        match pair[0].text {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            "mod" if depth == 0 && !member.rooms.contains(&pair[1].text) => {
                let what = format!(
                    "room `{}` is not in the list of {}: give it a place in xtask/src/layers.rs",
                    pair[1].text, member.name
                );
                report.fault(path, pair[1].line, what);
            }
            _ => {}
        }
    }
}

/// Names that `lib.rs` shows at the crate's root, and the room where each lives.
fn re_exports(lib: &str, rooms: &[&'static str]) -> BTreeMap<String, &'static str> {
    let mut heads = rooms.to_vec();
    heads.extend(["crate", "self"]);
    let words = tokens(lib);
    let mut shown = BTreeMap::new();
    for path in paths(lib, &heads) {
        let own = path.segments.iter().skip_while(|segment| matches!(segment.as_str(), "crate" | "self"));
        let Some(room) = own.clone().next().and_then(|name| rooms.iter().find(|room| *room == name)) else { continue };
        if let Some(name) = own.last() {
            shown.insert(alias(&words, name, path.line).unwrap_or(name).to_owned(), *room);
        }
    }
    shown
}

/// The `B` of `A as B`.
fn alias<'a>(words: &[Token<'a>], name: &str, line: usize) -> Option<&'a str> {
    let named = words.windows(3).find(|three| three[0].text == name && three[0].line == line && three[1].text == "as");
    named.map(|three| three[2].text)
}

/// The module path of a file under `src`; none for the root itself.
fn module_of(path: &str) -> Option<Vec<String>> {
    let path = path.trim_end_matches(".rs").trim_end_matches("/mod");
    let is_root = matches!(path, "lib" | "main") || path.starts_with("bin/") || path.ends_with("tests");
    (!is_root).then(|| path.split('/').map(str::to_owned).collect())
}

/// What the code of one file takes from other rooms of its crate.
fn uses(
    member: &Crate,
    path: &str,
    module: &[String],
    source: &Source,
    shown: &BTreeMap<String, &'static str>,
    report: &mut Report,
) {
    let place = |name: &str| member.rooms.iter().position(|room| *room == name);
    let Some(here) = place(&module[0]) else {
        let what = format!("room `{}` is not in the list of {}", module[0], member.name);
        return report.fault(path, 0, what);
    };
    for used in paths(&source.product, &["crate", "super"]) {
        let Some(name) = first_below_root(module, &used) else { continue };
        let Some(room) = place(&name).map_or_else(|| shown.get(&name).copied(), |place| Some(member.rooms[place]))
        else {
            continue;
        };
        if place(room) > Some(here) {
            let way = if room == name { String::new() } else { format!(" (as `{name}`)") };
            let what = format!("room `{}` uses `{room}`{way}, which stands below it", module[0]);
            report.fault(path, used.line, what);
        }
    }
}

/// The first name below the crate's root that a path leads to: `super::super::x` in `a/b.rs` is `x`.
fn first_below_root(module: &[String], used: &RustPath) -> Option<String> {
    let mut at: Vec<&String> = module.iter().chain(&used.modules).collect();
    let mut rest = used.segments.iter();
    if used.segments[0] == "crate" {
        at.clear();
        rest.next();
    }
    for segment in rest {
        match segment.as_str() {
            "super" => {
                at.pop();
            }
            "self" => {}
            _ => {
                at.push(segment);
                break;
            }
        }
    }
    at.first().map(|name| (*name).clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUSE: Crate = Crate { name: "house", path: "house", uses: &["tupelo"], rooms: &["error", "wire", "open"] };

    fn faults(module: &[&str], code: &str) -> Vec<String> {
        let shown = BTreeMap::from([("Error".to_owned(), "error"), ("Step".to_owned(), "open")]);
        let module: Vec<String> = module.iter().map(|&name| name.to_owned()).collect();
        let mut report = Report::default();
        uses(&HOUSE, "x.rs", &module, &Source::parse(code), &shown, &mut report);
        report.faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_room_uses_what_stands_above_it() {
        assert!(faults(&["wire"], "use crate::error::Error;\nuse crate::Error;\nuse crate::wire::x;").is_empty());
        assert!(faults(&["open", "a"], "use super::b; use super::super::wire::Cursor;").is_empty());
        assert!(faults(&["wire"], "#[cfg(test)]\nmod tests { use crate::open::Step; }").is_empty());
        assert!(faults(&["wire"], "// crate::open::Step\n").is_empty());
    }

    #[test]
    fn a_room_does_not_use_what_stands_below_it() {
        let below = "room `wire` uses `open`, which stands below it";
        assert_eq!(faults(&["wire"], "\nuse crate::{Error, open::Step};"), [format!("x.rs:2: {below}")]);
        assert_eq!(faults(&["wire", "a"], "fn f() { super::super::open::x() }"), [format!("x.rs:1: {below}")]);
        assert_eq!(faults(&["wire"], "mod a { use super::super::open; }"), [format!("x.rs:1: {below}")]);
        assert_eq!(
            faults(&["error"], "type A = crate::Step;"),
            ["x.rs:1: room `error` uses `open` (as `Step`), which stands below it"]
        );
    }

    #[test]
    fn rooms_must_be_listed() {
        assert_eq!(faults(&["cellar"], ""), ["x.rs: room `cellar` is not in the list of house"]);
        let mut report = Report::default();
        declared(&HOUSE, "lib.rs", &Source::parse("pub mod wire;\nmod cellar;\n#[cfg(test)]\nmod tests;"), &mut report);
        assert_eq!(report.faults.len(), 1);
        assert_eq!(report.faults[0].line, 2);
    }

    #[test]
    fn re_exports_lead_to_their_rooms() {
        let shown = re_exports("pub use error::{Error, Kind as ErrorKind};\npub use crate::open::Step;", HOUSE.rooms);
        let pairs: Vec<(&str, &str)> = shown.iter().map(|(name, room)| (name.as_str(), *room)).collect();
        assert_eq!(pairs, [("Error", "error"), ("ErrorKind", "error"), ("Step", "open")]);
    }

    #[test]
    fn crates_depend_upwards() {
        let manifest = "[dependencies]\nbytes = \"1\" # tupelo-storage = 1\ntupelo.workspace = true\n\
            a = { package = \"tupelo-format\", path = \"x\" }\n[dev-dependencies.tupelo-storage]\npath = \"y\"\n";
        let mut report = Report::default();
        edges(&HOUSE, "Cargo.toml", manifest, &mut report);
        let lines: Vec<usize> = report.faults.iter().map(|fault| fault.line).collect();
        assert_eq!(lines, [4, 5]);
    }

    #[test]
    fn members_must_be_listed() {
        let mut report = Report::default();
        members("members = [\n  \"xtask\",\n  \"shed\",\n]\nexclude = [\"fuzz\"]\n", &mut report);
        assert_eq!(report.faults.len(), 1);
        assert_eq!(report.faults[0].line, 3);
    }

    #[test]
    fn the_floor_plan_is_in_order() {
        for (index, member) in CRATES.iter().enumerate() {
            for name in member.uses {
                assert!(CRATES[..index].iter().any(|above| above.name == *name), "{} uses {name}", member.name);
            }
        }
    }

    #[test]
    fn a_dozen_rooms_are_enough() {
        let many: Vec<String> = (0..13).map(|n| format!("c/src/a/r{n}.rs")).collect();
        let mut report = Report::default();
        crowding(&many.iter().map(String::as_str).collect::<Vec<_>>(), &mut report);
        assert_eq!(report.faults.len(), 1);
        assert_eq!(report.faults[0].path, "c/src/a");
    }
}
