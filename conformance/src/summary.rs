//! What a test covered, said once more at the end of `make test`; and where the real files are.

use std::path::{Path, PathBuf};

/// Prints a line, and leaves it for the summary where `TUPELO_SUMMARY` names a folder.
///
/// # Panics
/// If the line cannot be written there.
pub fn note(name: &str, line: &str) {
    println!("{name}: {line}");
    if let Some(folder) = std::env::var_os("TUPELO_SUMMARY") {
        let folder = PathBuf::from(folder);
        std::fs::create_dir_all(&folder).expect("the folder of the summary");
        std::fs::write(folder.join(format!("{name}.txt")), format!("{line}\n")).expect("a line of the summary");
    }
}

/// The real files: those of `TUPELO_DATA`, or else of `../shared/data` beside the project; none in a lone clone.
pub fn real_files() -> Vec<PathBuf> {
    root_files("")
}

/// Files that once broke something, beside the real ones; those whose names begin so.
pub fn hostile_files(prefix: &str) -> Vec<PathBuf> {
    let named = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix));
    root_files("hostile").into_iter().filter(named).collect()
}

fn root_files(below: &str) -> Vec<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let folder = std::env::var_os("TUPELO_DATA").filter(|folder| !folder.is_empty()).map_or(beside, PathBuf::from);
    let entries = std::fs::read_dir(folder.join(below)).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|ending| ending == "root")).collect();
    files.sort();
    files
}
