//! Finds the servers that tests start. `make servers` installs them; a test whose server is missing does not run.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::{env, fs, io};

/// The program of a server, or `None` and a line that says which tests do not run.
pub(crate) fn server(program: &str, tests: &str) -> Option<PathBuf> {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/servers");
    let path = env::var_os("PATH").unwrap_or_default();
    // Debian's servers are in /usr/sbin, which is in the PATH of root only.
    let folders = [installed.join("bin")].into_iter().chain(env::split_paths(&path)).chain(["/usr/sbin".into()]);
    let found = folders.map(|folder| folder.join(program)).find(|program| program.is_file());
    report(program, tests, found.is_some());
    found
}

/// Says once whether there is what tests need: in the summary of `make test`, and if it is missing also on stderr.
pub(crate) fn report(needed: &str, tests: &str, is_found: bool) {
    static REPORTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if !REPORTED.lock().unwrap().insert(needed.to_owned()) {
        return;
    }
    let line = if is_found {
        format!("the tests of {tests} ran")
    } else {
        let line = format!("not installed (make servers), so the tests of {tests} did not run");
        // `eprintln!` would be shown only for tests that fail.
        writeln!(io::stderr(), "{needed}: {line}").unwrap();
        line
    };
    if let Some(folder) = env::var_os("TUPELO_SUMMARY") {
        let file = Path::new(&folder).join(format!("{needed}.txt"));
        fs::create_dir_all(&folder).and_then(|()| fs::write(file, format!("{line}\n"))).expect("a summary");
    }
}
