//! Rules for Rust code: forbidden macros, parts of the standard library that only some rooms may use, and unsafe sites.

use crate::report::Report;
use crate::rust::{Source, Token};
use crate::tree;

/// Macros for unfinished work and for debugging.
const FORBIDDEN_MACROS: &[&str] = &["todo", "unimplemented", "dbg"];

/// Macros that print. Libraries must not print.
const PRINTING_MACROS: &[&str] = &["print", "println", "eprint", "eprintln"];

/// Files that may print: programs, and a destructor that has no other way to report an error.
const MAY_PRINT: &[&str] = &["crates/tupelo-cli/", "xtask/", "bench/", "fuzz/", "crates/tupelo/src/writer/mod.rs"];

/// Files that may have unsafe code, and what for. Every site needs a `// SAFETY:` note (`# Safety` for an unsafe fn).
const UNSAFE_ROOMS: &[(&str, &str)] = &[
    ("crates/tupelo-format/src/encoding/simd/", "SIMD kernels"),
    ("crates/tupelo-pages/src/decode/offsets.rs", "Arrow offsets that are already checked"),
    ("crates/tupelo-storage/src/daos/ffi.rs", "the C functions of libdaos"),
    ("crates/tupelo-storage/src/local/writeback.rs", "a system call that begins to store a file"),
    ("crates/tupelo-cli/src/bin/tupelo.rs", "a variable of the environment, before any thread starts"),
    ("crates/daos-standin/", "the C functions of libdaos, for tests"),
];

/// A module of the standard library that only some rooms may use.
struct Restriction {
    /// Folder in which the rule applies.
    inside: &'static str,
    /// The module.
    module: &'static str,
    /// Folders and files that may use it.
    except: &'static [&'static str],
    /// What to do instead.
    instead: &'static str,
}

/// In the command, a comment `// FS: why` on the same line or the line above permits one use of `std::fs`.
const RESTRICTIONS: &[Restriction] = &[
    Restriction {
        inside: "",
        module: "std::fs",
        except: &["crates/tupelo-storage/src/local", "crates/daos-standin/", "xtask/", "bench/", "fuzz/"],
        instead: "files are opened in tupelo-storage/src/local; the command may with a comment `// FS: why`",
    },
    Restriction { inside: FORMAT, module: "std::fs", except: &[], instead: PURE },
    Restriction { inside: FORMAT, module: "std::net", except: &[], instead: PURE },
    Restriction { inside: FORMAT, module: "std::thread", except: &[], instead: PURE },
    Restriction { inside: FORMAT, module: "std::time", except: &[], instead: PURE },
    Restriction { inside: FORMAT, module: "std::env", except: &[], instead: PURE },
    Restriction { inside: FORMAT, module: "std::process", except: &[], instead: PURE },
];

const FORMAT: &str = "crates/tupelo-format/src/";
const PURE: &str = "tupelo-format has no I/O, no threads and no clock";

/// Functions that convert bytes to integers, and the only files of tupelo-format that may call them.
const BYTES_TO_INTEGERS: &[&str] = &["from_le_bytes", "from_be_bytes", "from_ne_bytes"];
const WIRE: &[&str] = &["crates/tupelo-format/src/wire.rs", "crates/tupelo-format/src/encoding"];

/// Lines above an unsafe site that may hold its note.
const NOTE_LINES: usize = 6;

/// Every file and folder that the lists of this module name must exist.
pub(super) fn lists(files: &[String], report: &mut Report) {
    let restrictions = RESTRICTIONS.iter().flat_map(|rule| rule.except).chain(MAY_PRINT).chain(WIRE);
    for listed in UNSAFE_ROOMS.iter().map(|(room, _)| room).chain(restrictions) {
        if !files.iter().any(|file| file.starts_with(listed)) {
            report.fault("xtask/src/tidy/code.rs", 0, format!("{listed} is listed, but does not exist"));
        }
    }
}

/// Checks one file; `text` is the file as it is.
pub(super) fn check(path: &str, text: &str, source: &Source, report: &mut Report) {
    words(path, &source.tokens, report);
    unsafe_sites(path, text, &source.tokens, report);
    if !tree::is_test(path) {
        product_words(path, &source.product().collect::<Vec<_>>(), report);
        restrictions(path, text, source, report);
    }
}

fn is_in(path: &str, folders: &[&str]) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

fn words(path: &str, all: &[Token], report: &mut Report) {
    for pair in all.windows(3) {
        if FORBIDDEN_MACROS.contains(&pair[0].text.as_str()) && pair[1].text == "!" {
            report.fault(path, pair[0].line, format!("{}! is not allowed: finish the code", pair[0].text));
        }
        if pair[0].text == "#" && pair[1].text == "[" && pair[2].text == "ignore" {
            report.fault(path, pair[0].line, "ignored test: make it run, or remove it");
        }
    }
}

fn product_words(path: &str, product: &[&Token], report: &mut Report) {
    for pair in product.windows(2) {
        let (word, line) = (pair[0].text.as_str(), pair[0].line);
        if pair[1].text == "!" && PRINTING_MACROS.contains(&word) && !is_in(path, MAY_PRINT) {
            report.fault(path, line, format!("{word}! in a library: return the text to the caller instead"));
        }
        if BYTES_TO_INTEGERS.contains(&word) && path.starts_with(FORMAT) && !is_in(path, WIRE) {
            report.fault(path, line, format!("{word} outside wire.rs and encoding/: use wire::Cursor"));
        }
    }
}

fn restrictions(path: &str, text: &str, source: &Source, report: &mut Report) {
    let lines: Vec<&str> = text.lines().collect();
    for used in source.paths.iter().filter(|path| path.segments[0] == "std") {
        let name = used.segments.join("::");
        let has_reason = lines[used.line.saturating_sub(2)..used.line].iter().any(|line| line.contains("// FS: "));
        let applies = |rule: &&Restriction| path.starts_with(rule.inside) && !is_in(path, rule.except);
        for rule in RESTRICTIONS.iter().filter(applies) {
            let is_used = name == rule.module || name.starts_with(&format!("{}::", rule.module));
            let is_permitted = has_reason && rule.module == "std::fs" && path.starts_with("crates/tupelo-cli/");
            if is_used && !is_permitted {
                report.fault(path, used.line, format!("{name}: {}", rule.instead));
                break;
            }
        }
    }
}

fn unsafe_sites(path: &str, text: &str, all: &[Token], report: &mut Report) {
    let lines: Vec<&str> = text.lines().collect();
    for site in all.iter().filter(|token| token.text == "unsafe") {
        if !UNSAFE_ROOMS.iter().any(|(room, _)| path.starts_with(room)) {
            report.fault(path, site.line, "unsafe code outside the files that xtask/src/tidy/code.rs lists");
        }
        let above = &lines[site.line.saturating_sub(NOTE_LINES + 1)..site.line];
        if !above.iter().any(|line| line.contains("// SAFETY: ") || line.contains("/// # Safety")) {
            report.fault(path, site.line, "unsafe without `// SAFETY: why this is sound` above it");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIRE_FILE: &str = "crates/tupelo-format/src/wire.rs";
    const ENGINE_FILE: &str = "crates/tupelo-pages/src/plan.rs";
    const CLI_FILE: &str = "crates/tupelo-cli/src/dump.rs";

    fn faults(path: &str, text: &str) -> Vec<usize> {
        let mut report = Report::default();
        check(path, text, &Source::parse(text).unwrap(), &mut report);
        report.faults.iter().map(|fault| fault.line).collect()
    }

    #[test]
    fn forbidden_macros_are_found_in_tests_too() {
        assert_eq!(
            faults(ENGINE_FILE, "fn f() { todo!() }\n#[cfg(test)]\nmod t {\n #[ignore = \"slow\"]\nfn g() {}\n}"),
            [1, 4]
        );
        assert!(faults(ENGINE_FILE, "// todo!()\nconst A: &str = \"dbg!(1)\"; fn todo() {}").is_empty());
    }

    #[test]
    fn listed_files_must_exist() {
        let mut report = Report::default();
        lists(&["xtask/src/main.rs".to_owned()], &mut report);
        let missing = |path: &str| report.faults.iter().any(|fault| fault.what.starts_with(path));
        assert!(missing("crates/tupelo-pages/src/decode/offsets.rs is listed") && !missing("xtask/ is listed"));
    }

    #[test]
    fn libraries_do_not_print() {
        assert_eq!(faults(ENGINE_FILE, "fn f() {\n println!(); }"), [2]);
        assert!(faults(CLI_FILE, "fn f() { println!(); }").is_empty());
        assert!(faults(ENGINE_FILE, "#[cfg(test)]\nmod t { fn f() { println!(); } }").is_empty());
    }

    #[test]
    fn restrictions_are_enforced() {
        assert_eq!(faults(ENGINE_FILE, "use std::{io,\n fs::File};"), [2]);
        assert_eq!(faults(WIRE_FILE, "use std::time::Instant;\nfn f() { std::thread::spawn(g); }"), [1, 2]);
        assert!(faults(ENGINE_FILE, "use std::time::Instant;").is_empty());
        assert!(faults("crates/tupelo-storage/src/local/file.rs", "use std::fs::File;").is_empty());
        assert!(faults("conformance/tests/bad.rs", "use std::fs;").is_empty());
        assert_eq!(faults(CLI_FILE, "use std::fs;"), [1]);
        assert!(faults(CLI_FILE, "// FS: the user names the output file.\nuse std::fs::File;").is_empty());
        assert_eq!(faults(ENGINE_FILE, "// FS: because\nuse std::fs::File;"), [2]);
    }

    #[test]
    fn integers_are_read_in_one_place() {
        let text = "fn f(b: [u8; 4]) -> u32 { u32::from_le_bytes(b) }";
        assert!(faults(WIRE_FILE, text).is_empty());
        assert!(faults("crates/tupelo-format/src/encoding/split.rs", text).is_empty());
        assert_eq!(faults("crates/tupelo-format/src/locator.rs", text), [1]);
    }

    #[test]
    fn unsafe_code_is_listed_and_has_a_note() {
        let room = "crates/tupelo-format/src/encoding/simd/x86.rs";
        assert!(faults(room, "// SAFETY: the caller checked.\nconst A: u8 = unsafe { f() };").is_empty());
        assert!(faults(room, "/// # Safety\n/// Needs AVX2.\npub unsafe fn f() {}").is_empty());
        assert_eq!(faults(room, "const A: u8 = unsafe { f() };"), [1]);
        assert_eq!(faults(ENGINE_FILE, "// SAFETY: none\nunsafe fn f() {}"), [2]);
        assert!(faults(ENGINE_FILE, "#![deny(unsafe_code)] // unsafe").is_empty());
    }
}
