//! Layers: which crates and rooms may use which.
//!
//! A *room* is a top-level module of a crate. A crate may depend only on the members listed for it, and a room may use
//! only the rooms before it in the list of its crate. Inside a room, modules must not import each other in a cycle; in
//! a crate without a list, the same holds for all its modules.
//!
//! `lib.rs` may re-export from every room: a name that a room takes from the crate's root counts as taken from the room
//! that defines it. Tests may use everything.

mod cycles;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crate::report::Report;
use crate::rust::{RustPath, Source};
use crate::tree;

/// Maximum number of modules in one folder.
const MAX_MODULES: usize = 14;

/// This file, which findings about the lists name.
const LISTS: &str = "xtask/src/layers.rs";

/// A member of the workspace.
struct Crate {
    /// Package name.
    name: &'static str,
    /// Folder of the package.
    path: &'static str,
    /// Members that it may depend on.
    uses: &'static [&'static str],
    /// Its rooms, each using only those before it; empty where no order is set.
    rooms: &'static [&'static str],
}

/// All members, in dependency order.
const CRATES: &[Crate] = &[
    Crate {
        name: "tupelo-format",
        path: "crates/tupelo-format",
        uses: &[],
        rooms: &[
            "error",
            "type_name",
            "wire",
            "checksum",
            "compression",
            "encoding",
            "locator",
            "envelope",
            "descriptor",
            "streamer",
            "object",
            "container",
            "store",
            "open",
        ],
    },
    Crate {
        name: "daos-standin",
        path: "crates/daos-standin",
        uses: &[],
        rooms: &[
            "abi", "error", "name", "control", "class", "log", "store", "handle", "event", "work", "buffer", "pool",
            "object", "value",
        ],
    },
    Crate {
        name: "tupelo-storage",
        path: "crates/tupelo-storage",
        uses: &[],
        rooms: &[
            "cancel", "error", "range", "source", "sink", "local", "net", "remote", "xrootd", "daos", "objects",
            "adapter", "uri", "laws",
        ],
    },
    Crate {
        name: "tupelo-ttree",
        path: "crates/tupelo-ttree",
        uses: &["tupelo-format"],
        rooms: &["streamer", "basket", "tree", "classes", "layout", "references", "fields", "column", "write", "moved"],
    },
    Crate {
        name: "tupelo-core",
        path: "crates/tupelo-core",
        uses: &["tupelo-format", "tupelo-storage"],
        rooms: &["error", "pool"],
    },
    Crate {
        name: "tupelo-schema",
        path: "crates/tupelo-schema",
        uses: &["tupelo-format", "tupelo-ttree", "tupelo-core"],
        rooms: &["expression", "schema", "evolution"],
    },
    Crate {
        name: "tupelo-pages",
        path: "crates/tupelo-pages",
        uses: &["tupelo-format", "tupelo-storage", "tupelo-ttree", "tupelo-core", "tupelo-schema"],
        rooms: &["source", "sink", "plan", "decode", "encode"],
    },
    Crate {
        name: "tupelo",
        path: "crates/tupelo",
        uses: &["tupelo-format", "tupelo-storage", "tupelo-ttree", "tupelo-core", "tupelo-schema", "tupelo-pages"],
        rooms: &["schema", "reader", "writer", "dataset", "ops"],
    },
    Crate {
        name: "tupelo-xaod",
        path: "crates/tupelo-xaod",
        uses: &["tupelo"],
        rooms: &["files", "stores", "keys", "lists", "links", "linked", "event", "entries", "thinning", "derivation"],
    },
    Crate {
        name: "tupelo-auxbench",
        path: "crates/tupelo-auxbench",
        uses: &["tupelo", "tupelo-xaod"],
        rooms: &["config", "random", "statistics", "digest", "choose", "run", "compare", "report"],
    },
    Crate {
        name: "tupelo-cli",
        path: "crates/tupelo-cli",
        uses: &["tupelo", "tupelo-xaod", "tupelo-auxbench"],
        rooms: &[
            "json",
            "failure",
            "interrupt",
            "text",
            "table",
            "inputs",
            "console",
            "parse",
            "formats",
            "help",
            "commands",
        ],
    },
    Crate { name: "tupelo-python", path: "python", uses: &["tupelo", "tupelo-xaod", "tupelo-cli"], rooms: &[] },
    Crate {
        name: "conformance",
        path: "conformance",
        uses: &["tupelo-format", "tupelo-storage", "tupelo"],
        rooms: &[],
    },
    Crate { name: "tupelo-bench", path: "bench", uses: &["tupelo-format", "tupelo-storage", "tupelo"], rooms: &[] },
    Crate { name: "xtask", path: "xtask", uses: &[], rooms: &[] },
];

/// Members that only tests of a crate may depend on. Examples in the documentation of the crates of the engine use the crate that
/// users depend on.
const USED_BY_TESTS: &[(&str, &str)] = &[
    ("tupelo-storage", "daos-standin"),
    ("tupelo-core", "tupelo"),
    ("tupelo-schema", "tupelo"),
    ("tupelo-pages", "tupelo"),
];

/// A file of a crate.
struct Module<'a> {
    /// Path of the file from the root of the workspace.
    path: &'a str,
    /// Module path, empty for the root of the crate.
    name: Vec<String>,
    source: Source,
}

/// Checks the dependencies of crates, then the imports of rooms.
pub(crate) fn check(root: &Path) -> io::Result<Report> {
    let mut report = Report::default();
    members(&tree::read(root, "Cargo.toml")?, &mut report);
    let files = tree::files(root)?;
    for member in CRATES {
        let manifest = format!("{}/Cargo.toml", member.path);
        if !files.contains(&manifest) {
            report.fault(LISTS, 0, format!("crate `{}` is listed, but {manifest} does not exist", member.name));
            continue;
        }
        report.files += 1;
        dependencies(member, &manifest, &tree::read(root, &manifest)?, &mut report);
        let src = format!("{}/src/", member.path);
        let paths: Vec<&str> =
            files.iter().map(String::as_str).filter(|path| path.starts_with(&src) && path.ends_with(".rs")).collect();
        crowding(&paths, &mut report);
        let mut modules = Vec::new();
        for path in paths {
            let Some(name) = module_of(&path[src.len()..]) else { continue };
            match Source::parse(&tree::read(root, path)?) {
                Ok(source) => modules.push(Module { path, name, source }),
                Err(error) => report.fault(path, error.span().start().line, format!("cannot parse: {error}")),
            }
        }
        report.files += modules.len();
        rooms(member, &modules, &mut report);
        cycles::check(&modules, &mut report);
    }
    Ok(report)
}

/// Every member of the workspace must be listed.
fn members(manifest: &str, report: &mut Report) {
    let mut inside = false;
    for (index, line) in manifest.lines().enumerate() {
        inside = inside && !line.starts_with(']') || line.starts_with("members");
        if !inside {
            continue;
        }
        for path in line.split('"').skip(1).step_by(2) {
            if !CRATES.iter().any(|member| member.path == path) {
                report.fault("Cargo.toml", index + 1, format!("member `{path}` is not listed: add it to {LISTS}"));
            }
        }
    }
}

/// Dependencies of a crate on other members, in every kind of dependency section.
fn dependencies(member: &Crate, path: &str, manifest: &str, report: &mut Report) {
    let (mut inside, mut is_test) = (false, false);
    for (index, line) in manifest.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            inside = section.ends_with("dependencies");
            is_test = section.contains("dev-dependencies");
            if let Some((head, name)) = section.rsplit_once('.')
                && head.ends_with("dependencies")
            {
                dependency(member, path, index + 1, name, is_test, report);
            }
        } else if inside && let Some((key, value)) = line.split_once('=') {
            let key = key.split('.').next().unwrap_or_default().trim().trim_matches('"');
            let renamed = value.split_once("package").and_then(|(_, rest)| rest.split('"').nth(1));
            dependency(member, path, index + 1, renamed.unwrap_or(key), is_test, report);
        }
    }
}

fn dependency(member: &Crate, path: &str, line: usize, name: &str, is_test: bool, report: &mut Report) {
    // With a feature for tests, a crate may be its own development dependency.
    let is_allowed =
        name == member.name || member.uses.contains(&name) || is_test && USED_BY_TESTS.contains(&(member.name, name));
    if !is_allowed && CRATES.iter().any(|other| other.name == name) {
        let allowed = if member.uses.is_empty() { "no other member".to_owned() } else { member.uses.join(", ") };
        report.fault(path, line, format!("{} may not depend on {name}; it may use {allowed}", member.name));
    }
}

/// More than a dozen modules in one folder suggest that some belong together.
fn crowding(paths: &[&str], report: &mut Report) {
    let mut folders: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for path in paths {
        let mut rest = *path;
        while let Some((folder, name)) = rest.rsplit_once('/') {
            let name = name.trim_end_matches(".rs");
            let list = folders.entry(folder).or_default();
            if !matches!(name, "lib" | "main" | "mod" | "tests") && !list.contains(&name) {
                list.push(name);
            }
            rest = folder;
            if folder.ends_with("/src") {
                break;
            }
        }
    }
    for (folder, names) in folders {
        if names.len() > MAX_MODULES {
            report.fault(folder, 0, format!("{} modules in one folder; the maximum is {MAX_MODULES}", names.len()));
        }
    }
}

/// Checks the rooms of a crate against its list.
fn rooms(member: &Crate, modules: &[Module<'_>], report: &mut Report) {
    let Some(lib) = modules.iter().find(|module| module.name.is_empty()).filter(|_| !member.rooms.is_empty()) else {
        return;
    };
    declared(member, lib.path, &lib.source, report);
    for room in member.rooms {
        if !modules.iter().any(|module| module.name == [*room]) {
            report.fault(LISTS, 0, format!("room `{room}` of {} is listed, but does not exist", member.name));
        }
    }
    let re_exports = re_exports(&lib.source, member.rooms);
    for module in modules.iter().filter(|module| !module.name.is_empty()) {
        uses(member, module, &re_exports, report);
    }
}

/// Every module that `lib.rs` declares must be a room of the list.
fn declared(member: &Crate, path: &str, lib: &Source, report: &mut Report) {
    for (name, line) in &lib.modules {
        if !member.rooms.contains(&name.as_str()) {
            let what = format!("room `{name}` is not in the list of {}: add it to {LISTS}", member.name);
            report.fault(path, *line, what);
        }
    }
}

/// Names that `lib.rs` shows at the root of the crate, and the room that defines each.
fn re_exports(lib: &Source, rooms: &[&'static str]) -> BTreeMap<String, &'static str> {
    let mut found = BTreeMap::new();
    for path in &lib.paths {
        let mut own = path.segments.iter().skip_while(|segment| matches!(segment.as_str(), "crate" | "self"));
        let room = own.next().and_then(|name| rooms.iter().find(|room| *room == name));
        if let (Some(room), Some(name)) = (room, path.defines()) {
            found.insert(name.to_owned(), *room);
        }
    }
    found
}

/// The module path of a file under `src`; `None` for programs and tests.
fn module_of(path: &str) -> Option<Vec<String>> {
    let path = path.trim_end_matches(".rs").trim_end_matches("/mod");
    match path {
        "lib" | "main" => Some(Vec::new()),
        _ if path.starts_with("bin/") || path.split('/').any(|part| part == "tests") => None,
        _ => Some(path.split('/').map(str::to_owned).collect()),
    }
}

/// What one module takes from other rooms of its crate.
fn uses(member: &Crate, module: &Module<'_>, re_exports: &BTreeMap<String, &'static str>, report: &mut Report) {
    let place = |name: &str| member.rooms.iter().position(|room| *room == name);
    let room = &module.name[0];
    let Some(here) = place(room) else {
        return report.fault(module.path, 0, format!("room `{room}` is not in the list of {}", member.name));
    };
    let relative = |path: &&RustPath| matches!(path.segments[0].as_str(), "crate" | "super");
    for used in module.source.paths.iter().filter(relative) {
        let Some(name) = first_below_root(&module.name, used) else { continue };
        let found = place(&name).map_or_else(|| re_exports.get(&name).copied(), |place| Some(member.rooms[place]));
        let Some(other) = found.filter(|other| place(other) > Some(here)) else { continue };
        let by_name = if other == name { String::new() } else { format!(" (as `{name}`)") };
        report.fault(
            module.path,
            used.line,
            format!("room `{room}` uses `{other}`{by_name}, a later room of the list"),
        );
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

    const EXAMPLE: Crate =
        Crate { name: "example", path: "example", uses: &["tupelo"], rooms: &["error", "wire", "open"] };

    fn parse(code: &str) -> Source {
        Source::parse(code).unwrap()
    }

    fn faults(module: &[&str], code: &str) -> Vec<String> {
        let re_exports = BTreeMap::from([("Error".to_owned(), "error"), ("Step".to_owned(), "open")]);
        let name: Vec<String> = module.iter().map(|&name| name.to_owned()).collect();
        let mut report = Report::default();
        uses(&EXAMPLE, &Module { path: "x.rs", name, source: parse(code) }, &re_exports, &mut report);
        report.faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rooms_may_use_earlier_rooms() {
        assert!(faults(&["wire"], "use crate::error::Error;\nuse crate::Error;\nuse crate::wire::x;").is_empty());
        assert!(faults(&["open", "a"], "use super::b; use super::super::wire::Cursor;").is_empty());
        assert!(faults(&["wire"], "#[cfg(test)]\nmod tests { use crate::open::Step; }").is_empty());
        assert!(faults(&["wire"], "// crate::open::Step\n").is_empty());
    }

    #[test]
    fn rooms_may_not_use_later_rooms() {
        let below = "room `wire` uses `open`, a later room of the list";
        assert_eq!(faults(&["wire"], "\nuse crate::{Error, open::Step};"), [format!("x.rs:2: {below}")]);
        assert_eq!(faults(&["wire", "a"], "fn f() { super::super::open::x() }"), [format!("x.rs:1: {below}")]);
        assert_eq!(faults(&["wire"], "mod a { use super::super::open; }"), [format!("x.rs:1: {below}")]);
        assert_eq!(
            faults(&["error"], "type A = crate::Step;"),
            ["x.rs:1: room `error` uses `open` (as `Step`), a later room of the list"]
        );
    }

    #[test]
    fn rooms_must_be_listed() {
        assert_eq!(faults(&["cellar"], ""), ["x.rs: room `cellar` is not in the list of example"]);
        let mut report = Report::default();
        declared(&EXAMPLE, "lib.rs", &parse("pub mod wire;\nmod cellar;\n#[cfg(test)]\nmod tests;"), &mut report);
        assert_eq!(report.faults.len(), 1);
        assert_eq!(report.faults[0].line, 2);
    }

    #[test]
    fn listed_rooms_must_exist() {
        let module = |name: &[&str], code: &str| Module {
            path: "x.rs",
            name: name.iter().map(|&name| name.to_owned()).collect(),
            source: parse(code),
        };
        let mut report = Report::default();
        rooms(&EXAMPLE, &[module(&[], "mod error;"), module(&["error"], ""), module(&["wire"], "")], &mut report);
        let found: Vec<String> = report.faults.iter().map(ToString::to_string).collect();
        assert_eq!(found, ["xtask/src/layers.rs: room `open` of example is listed, but does not exist"]);
    }

    #[test]
    fn re_exports_lead_to_their_rooms() {
        let found =
            re_exports(&parse("pub use error::{Error, Kind as ErrorKind};\npub use crate::open::Step;"), EXAMPLE.rooms);
        let pairs: Vec<(&str, &str)> = found.iter().map(|(name, room)| (name.as_str(), *room)).collect();
        assert_eq!(pairs, [("Error", "error"), ("ErrorKind", "error"), ("Step", "open")]);
    }

    #[test]
    fn crates_may_use_only_listed_members() {
        let manifest = "[dependencies]\nbytes = \"1\" # tupelo-storage = 1\ntupelo.workspace = true\n\
            a = { package = \"tupelo-format\", path = \"x\" }\n[dev-dependencies.tupelo-storage]\npath = \"y\"\n";
        let mut report = Report::default();
        dependencies(&EXAMPLE, "Cargo.toml", manifest, &mut report);
        let lines: Vec<usize> = report.faults.iter().map(|fault| fault.line).collect();
        assert_eq!(lines, [4, 5]);
    }

    #[test]
    fn some_members_are_for_tests_only() {
        let storage = CRATES.iter().find(|member| member.name == "tupelo-storage").unwrap();
        let manifest =
            "[dev-dependencies]\ndaos-standin.workspace = true\n[dependencies]\ndaos-standin.workspace = true\n";
        let mut report = Report::default();
        dependencies(storage, "Cargo.toml", manifest, &mut report);
        let lines: Vec<usize> = report.faults.iter().map(|fault| fault.line).collect();
        assert_eq!(lines, [4]);
    }

    #[test]
    fn members_must_be_listed() {
        let mut report = Report::default();
        members("members = [\n  \"xtask\",\n  \"shed\",\n]\nexclude = [\"fuzz\"]\n", &mut report);
        assert_eq!(report.faults.len(), 1);
        assert_eq!(report.faults[0].line, 3);
    }

    #[test]
    fn crates_are_listed_in_dependency_order() {
        for (index, member) in CRATES.iter().enumerate() {
            for name in member.uses {
                assert!(CRATES[..index].iter().any(|above| above.name == *name), "{} uses {name}", member.name);
            }
        }
    }

    #[test]
    fn crowded_folders_are_found() {
        let many: Vec<String> = (0..=MAX_MODULES).map(|n| format!("c/src/a/r{n}.rs")).collect();
        let mut report = Report::default();
        crowding(&many.iter().map(String::as_str).collect::<Vec<_>>(), &mut report);
        assert_eq!(report.faults.len(), 1);
        assert_eq!(report.faults[0].path, "c/src/a");
    }
}
