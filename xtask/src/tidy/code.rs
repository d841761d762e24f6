//! Rules for Rust code: forbidden words, doors that only named rooms may use, and the census of unsafe sites.

use crate::report::Report;
use crate::rust::{Source, Token, paths, tokens};
use crate::tree;

/// Macros that leave work undone or talk by accident.
const FORBIDDEN_MACROS: &[&str] = &["todo", "unimplemented", "dbg"];

/// Macros that write to a terminal: the product's libraries are silent.
const TALKING_MACROS: &[&str] = &["print", "println", "eprint", "eprintln"];

/// Where talking is the job; and the destructor of a file that was forgotten, which has no other way.
const MAY_TALK: &[&str] = &["crates/tupelo-cli/", "xtask/", "bench/", "fuzz/", "crates/tupelo/src/sink/file.rs"];

/// Where `unsafe` may stand at all, and for what. Every site needs a `// SAFETY:` note (`# Safety` for an unsafe fn).
const UNSAFE_ROOMS: &[(&str, &str)] = &[
    ("crates/tupelo-format/src/encoding/simd/", "SIMD kernels"),
    ("crates/tupelo/src/decode/offsets.rs", "Arrow offsets that were checked"),
    ("crates/tupelo-storage/src/local/mmap.rs", "memory-mapped files"),
    ("crates/tupelo-storage/src/local/io_uring.rs", "io_uring"),
    ("crates/tupelo-storage/src/daos/ffi.rs", "libdaos, loaded at run time"),
    ("capi/src/", "the C interface"),
];

/// A part of the standard library that only some rooms may use.
struct Door {
    /// Where the rule holds.
    inside: &'static str,
    /// What is used: a path of the standard library.
    what: &'static str,
    /// Who may.
    except: &'static [&'static str],
    /// What to do instead.
    instead: &'static str,
}

/// The doors. A comment `// FS: why` on the same line or the line above opens `std::fs` for one site of the command.
const DOORS: &[Door] = &[
    Door {
        inside: "",
        what: "std::fs",
        except: &["crates/tupelo-storage/src/local", "xtask/", "bench/", "fuzz/"],
        instead: "files are opened in tupelo-storage/src/local; the command may with a comment `// FS: why`",
    },
    Door { inside: FORMAT, what: "std::fs", except: &[], instead: NO_WORLD },
    Door { inside: FORMAT, what: "std::net", except: &[], instead: NO_WORLD },
    Door { inside: FORMAT, what: "std::thread", except: &[], instead: NO_WORLD },
    Door { inside: FORMAT, what: "std::time", except: &[], instead: NO_WORLD },
    Door { inside: FORMAT, what: "std::env", except: &[], instead: NO_WORLD },
    Door { inside: FORMAT, what: "std::process", except: &[], instead: NO_WORLD },
];

const FORMAT: &str = "crates/tupelo-format/src/";
const NO_WORLD: &str = "tupelo-format knows no I/O, no threads and no clock";

/// Functions that make integers of bytes, and the only places of tupelo-format that may.
const BYTES_TO_INTEGERS: &[&str] = &["from_le_bytes", "from_be_bytes", "from_ne_bytes"];
const WIRE: &[&str] = &["crates/tupelo-format/src/wire.rs", "crates/tupelo-format/src/encoding"];

/// Lines above an unsafe site in which its note is looked for.
const NOTE_LINES: usize = 6;

/// Checks one file; `text` is the file as it is.
pub(super) fn check(path: &str, text: &str, source: &Source, report: &mut Report) {
    let all = tokens(&source.code);
    words(path, &all, report);
    unsafe_sites(path, text, &all, report);
    if !tree::is_test(path) {
        product_words(path, &tokens(&source.product), report);
        doors(path, text, source, report);
    }
}

fn opened(path: &str, rooms: &[&str]) -> bool {
    rooms.iter().any(|room| path.starts_with(room))
}

fn words(path: &str, all: &[Token<'_>], report: &mut Report) {
    for pair in all.windows(3) {
        if FORBIDDEN_MACROS.contains(&pair[0].text) && pair[1].text == "!" {
            report.fault(path, pair[0].line, format!("{}! stays out of the house", pair[0].text));
        }
        if pair[0].text == "#" && pair[1].text == "[" && pair[2].text == "ignore" {
            report.fault(path, pair[0].line, "an ignored test guards nothing: make it run, or remove it");
        }
    }
}

fn product_words(path: &str, product: &[Token<'_>], report: &mut Report) {
    for pair in product.windows(2) {
        let (word, line) = (pair[0].text, pair[0].line);
        if pair[1].text == "!" && TALKING_MACROS.contains(&word) && !opened(path, MAY_TALK) {
            report.fault(path, line, format!("{word}! in a library: return it, and let the faces talk"));
        }
        if BYTES_TO_INTEGERS.contains(&word) && path.starts_with(FORMAT) && !opened(path, WIRE) {
            report.fault(path, line, format!("{word} outside wire.rs and encoding/: use wire::Cursor"));
        }
    }
}

fn doors(path: &str, text: &str, source: &Source, report: &mut Report) {
    let lines: Vec<&str> = text.lines().collect();
    for used in paths(&source.product, &["std"]) {
        let name = used.segments.join("::");
        let reasoned = lines[used.line.saturating_sub(2)..used.line].iter().any(|line| line.contains("// FS: "));
        for door in DOORS.iter().filter(|door| path.starts_with(door.inside) && !opened(path, door.except)) {
            let through = name == door.what || name.starts_with(&format!("{}::", door.what));
            let waived = reasoned && door.what == "std::fs" && path.starts_with("crates/tupelo-cli/");
            if through && !waived {
                report.fault(path, used.line, format!("{name}: {}", door.instead));
                break;
            }
        }
    }
}

fn unsafe_sites(path: &str, text: &str, all: &[Token<'_>], report: &mut Report) {
    let lines: Vec<&str> = text.lines().collect();
    for site in all.iter().filter(|token| token.text == "unsafe") {
        if !UNSAFE_ROOMS.iter().any(|(room, _)| path.starts_with(room)) {
            report.fault(path, site.line, "unsafe outside the rooms that xtask/src/tidy/code.rs lists");
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
    const ENGINE_FILE: &str = "crates/tupelo/src/plan.rs";
    const CLI_FILE: &str = "crates/tupelo-cli/src/dump.rs";

    fn faults(path: &str, text: &str) -> Vec<usize> {
        let mut report = Report::default();
        check(path, text, &Source::parse(text), &mut report);
        report.faults.iter().map(|fault| fault.line).collect()
    }

    #[test]
    fn forbidden_words_are_found_in_tests_too() {
        assert_eq!(faults(ENGINE_FILE, "fn f() { todo!() }\n#[cfg(test)]\nmod t {\n #[ignore = \"slow\"]\n}"), [1, 4]);
        assert!(faults(ENGINE_FILE, "// todo!()\nconst A: &str = \"dbg!(1)\"; fn todo() {}").is_empty());
    }

    #[test]
    fn libraries_are_silent() {
        assert_eq!(faults(ENGINE_FILE, "fn f() {\n println!(); }"), [2]);
        assert!(faults(CLI_FILE, "fn f() { println!(); }").is_empty());
        assert!(faults(ENGINE_FILE, "#[cfg(test)]\nmod t { fn f() { println!(); } }").is_empty());
    }

    #[test]
    fn doors_are_shut() {
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
    fn bytes_become_integers_in_one_place() {
        let text = "fn f(b: [u8; 4]) -> u32 { u32::from_le_bytes(b) }";
        assert!(faults(WIRE_FILE, text).is_empty());
        assert!(faults("crates/tupelo-format/src/encoding/split.rs", text).is_empty());
        assert_eq!(faults("crates/tupelo-format/src/locator.rs", text), [1]);
    }

    #[test]
    fn unsafe_needs_a_room_and_a_note() {
        let room = "crates/tupelo-format/src/encoding/simd/x86.rs";
        assert!(faults(room, "// SAFETY: the caller checked.\nlet a = unsafe { f() };").is_empty());
        assert!(faults(room, "/// # Safety\n/// Needs AVX2.\npub unsafe fn f() {}").is_empty());
        assert_eq!(faults(room, "let a = unsafe { f() };"), [1]);
        assert_eq!(faults(ENGINE_FILE, "// SAFETY: none\nunsafe { f() }"), [2]);
        assert!(faults(ENGINE_FILE, "#![deny(unsafe_code)] // unsafe").is_empty());
    }
}
