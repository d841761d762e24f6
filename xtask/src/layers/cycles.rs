//! Import cycles between the modules of a crate.
//!
//! A module and those nested in it may use each other: nested modules are parts of it, and share its private items.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Module;
use crate::report::Report;
use crate::rust::Role;

/// Maximum number of re-exports that are followed from one to the next.
const MAX_RE_EXPORTS: usize = 8;

/// For each module, by index, the modules that it uses and the line of the first use.
type Graph = Vec<BTreeMap<usize, usize>>;

/// Reports one cycle of each group of modules that import each other.
pub(super) fn check(modules: &[Module<'_>], report: &mut Report) {
    let graph = graph(modules);
    let mut reported = BTreeSet::new();
    for start in 0..modules.len() {
        let Some(cycle) = shortest_cycle(&graph, start) else { continue };
        if cycle.iter().any(|index| !reported.insert(*index)) {
            continue;
        }
        let names: Vec<String> = cycle.iter().chain([&start]).map(|&index| title(&modules[index])).collect();
        let what = format!("import cycle: {}", names.join(" → "));
        let line = graph[start][cycle.get(1).unwrap_or(&start)];
        report.fault(modules[start].path, line, what);
    }
}

fn title(module: &Module<'_>) -> String {
    if module.name.is_empty() { "the crate root".to_owned() } else { module.name.join("::") }
}

/// Which module uses which. Re-exports only pass names on, and do not count as uses.
fn graph(modules: &[Module<'_>]) -> Graph {
    let names = Names::new(modules);
    let uses = |module: &Module<'_>| {
        let mut used = BTreeMap::new();
        let paths = module.source.paths.iter().filter(|path| !matches!(path.role, Role::ReExport(_)));
        for path in paths {
            let from: Vec<String> = module.name.iter().chain(&path.modules).cloned().collect();
            let other = names.resolve(&from, &path.segments, 0);
            if let Some(other) = other.filter(|other| !is_nested(module, &modules[*other])) {
                used.entry(other).or_insert(path.line);
            }
        }
        used
    };
    modules.iter().map(uses).collect()
}

/// Whether one module is the other one or nested in it.
fn is_nested(one: &Module<'_>, other: &Module<'_>) -> bool {
    one.name.starts_with(&other.name) || other.name.starts_with(&one.name)
}

/// Finds the module that defines a name.
struct Names<'a> {
    modules: &'a [Module<'a>],
    by_name: BTreeMap<&'a [String], usize>,
}

impl<'a> Names<'a> {
    fn new(modules: &'a [Module<'a>]) -> Self {
        let by_name = modules.iter().enumerate().map(|(index, module)| (module.name.as_slice(), index)).collect();
        Self { modules, by_name }
    }

    /// The module that a path leads to, seen from the module `from`; `None` for other crates.
    fn resolve(&self, from: &[String], path: &[String], depth: usize) -> Option<usize> {
        let mut at = from.to_vec();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => (at, rest) = (Vec::new(), &path[1..]),
            "super" | "self" => {}
            first => {
                at.push(first.to_owned());
                if self.by_name.contains_key(at.as_slice()) {
                    rest = &path[1..];
                } else {
                    at.pop();
                    // A name of this module, or else of another crate.
                    self.import(&at, first)?;
                }
            }
        }
        for segment in rest {
            match segment.as_str() {
                "super" => drop(at.pop()),
                "self" => {}
                name => {
                    at.push(name.to_owned());
                    if !self.by_name.contains_key(at.as_slice()) {
                        at.pop();
                        let imported = self.import(&at, name).filter(|_| depth < MAX_RE_EXPORTS);
                        return match imported {
                            Some(import) => self.resolve(&at, import, depth + 1).or_else(|| self.file_of(&at)),
                            None => self.file_of(&at),
                        };
                    }
                }
            }
        }
        self.file_of(&at)
    }

    /// The path under which a module imports or re-exports a name.
    fn import(&self, module: &[String], name: &str) -> Option<&'a [String]> {
        let module = &self.modules[self.file_of(module)?];
        let import = module.source.paths.iter().find(|path| path.defines() == Some(name))?;
        Some(&import.segments)
    }

    /// The module of the file in which an inline module is.
    fn file_of(&self, module: &[String]) -> Option<usize> {
        (0..=module.len()).rev().find_map(|length| self.by_name.get(&module[..length]).copied())
    }
}

/// A shortest cycle through a module, beginning with it.
fn shortest_cycle(graph: &Graph, start: usize) -> Option<Vec<usize>> {
    let mut before: BTreeMap<usize, usize> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(module) = queue.pop_front() {
        for &next in graph[module].keys() {
            if next == start {
                let mut cycle = vec![module];
                while let Some(&previous) = cycle.last().and_then(|last| before.get(last)) {
                    cycle.push(previous);
                }
                cycle.reverse();
                return Some(cycle);
            }
            before.entry(next).or_insert_with(|| {
                queue.push_back(next);
                module
            });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rust::Source;

    fn faults(files: &[(&str, &str)]) -> Vec<String> {
        let modules: Vec<Module<'_>> = files
            .iter()
            .map(|(name, code)| Module {
                path: name,
                name: name.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect(),
                source: Source::parse(code).unwrap(),
            })
            .collect();
        let mut report = Report::default();
        check(&modules, &mut report);
        report.faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn cycles_are_found_through_all_forms_of_paths() {
        for (a, b) in [
            ("use super::b::B;", "use crate::room::a::A;"),
            ("use crate::room::{b::B};", "fn f() { super::a::f() }"),
            ("use super::B;", "use super::A;"),
            ("mod inline { use super::super::b::B; }", "type T = super::A;"),
        ] {
            let room = "mod a; mod b; pub use a::A; pub use self::b::B;";
            let found = faults(&[("room", room), ("room::a", a), ("room::b", b)]);
            assert_eq!(found, ["room::a:1: import cycle: room::a → room::b → room::a"], "{a} {b}");
        }
    }

    #[test]
    fn longer_cycles_are_reported_once() {
        let found =
            faults(&[("a", "use crate::b::B;"), ("b", "\nuse crate::c::C;"), ("c", "use crate::a::A;"), ("d", "")]);
        assert_eq!(found, ["a:1: import cycle: a → b → c → a"]);
    }

    #[test]
    fn trees_have_no_cycles() {
        assert!(faults(&[("room", "mod a; pub use a::A; pub struct C;"), ("room::a", "use super::C;")]).is_empty());
        let tests = "#[cfg(test)] mod tests { use super::super::b; }";
        assert!(faults(&[("a", tests), ("b", "use crate::a::A; use std::fmt; use a::b::c;")]).is_empty());
    }

    #[test]
    fn nested_modules_may_use_their_parents() {
        assert!(faults(&[("room", "mod a; struct C; fn f() { a::f() }"), ("room::a", "use super::C;")]).is_empty());
    }
}
