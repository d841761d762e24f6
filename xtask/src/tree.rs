//! The files of the project.

use std::fs;
use std::io;
use std::path::Path;

/// Folders of generated files, which are skipped.
const GENERATED: &[&str] = &["target", "corpus", "artifacts", "demo", "__pycache__", "node_modules"];

/// Every file below `root` as a sorted path from it, with `/`; hidden folders other than `.ci` and `.cargo` are left
/// out.
pub(crate) fn files(root: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    walk(root, "", &mut found)?;
    found.sort();
    Ok(found)
}

fn walk(folder: &Path, prefix: &str, found: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type()?;
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
        if kind.is_file() {
            found.push(path);
        } else if kind.is_dir() && !is_skipped(&name) {
            walk(&entry.path(), &path, found)?;
        }
    }
    Ok(())
}

fn is_skipped(name: &str) -> bool {
    GENERATED.contains(&name) || name.starts_with('.') && !matches!(name, ".ci" | ".cargo")
}

/// The text of a file; bytes that are not UTF-8 are replaced.
pub(crate) fn read(root: &Path, path: &str) -> io::Result<String> {
    let bytes = fs::read(root.join(path)).map_err(|e| io::Error::new(e.kind(), format!("{path}: {e}")))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether a file belongs to tests, benchmarks or examples.
pub(crate) fn is_test(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    path.starts_with("conformance/")
        || path.split('/').any(|part| matches!(part, "tests" | "benches" | "examples"))
        || matches!(name, "tests.rs" | "conftest.py")
        || name.starts_with("test_") && name.ends_with(".py")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_recognised() {
        for path in ["conformance/src/lib.rs", "crates/x/tests/a.rs", "crates/x/src/wire/tests.rs", "python/tests/b.py"]
        {
            assert!(is_test(path), "{path}");
        }
        for path in ["crates/x/src/wire.rs", "python/python/tupelo/__init__.py", "crates/x/src/contests.rs"] {
            assert!(!is_test(path), "{path}");
        }
    }

    #[test]
    fn generated_folders_are_skipped() {
        assert!(is_skipped("target") && is_skipped(".venv") && is_skipped(".git"));
        assert!(!is_skipped(".ci") && !is_skipped("src"));
    }
}
