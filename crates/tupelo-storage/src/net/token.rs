//! WLCG bearer token discovery, as all tools of WLCG have it.
//!
//! The order is that of <https://doi.org/10.5281/zenodo.3937438>: the environment variable `BEARER_TOKEN`, the file that
//! `BEARER_TOKEN_FILE` names, the file `bt_u` and the user id in `XDG_RUNTIME_DIR`, and that in `/tmp`.

use std::env;

use super::failure::Failure;
use crate::error::{Error, ErrorKind, Result};
use crate::local::FileSource;
use crate::source::ByteSource;

/// Maximum size of a token (60 KiB): XRootD sends its length in 16 bits.
const MAX_TOKEN_BYTES: u64 = 60 << 10;

/// The bearer token of this user; `None` if there is none.
///
/// # Errors
/// Files that cannot be read: a missing one only if the user named it.
pub(crate) fn bearer_token() -> Result<Option<String>, Failure> {
    discover(&variable, user_id())
}

/// An environment variable that is set and not empty.
pub(crate) fn variable(name: &str) -> Option<String> {
    env::var(name).ok().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

fn discover(variable: &dyn Fn(&str) -> Option<String>, user_id: Option<u32>) -> Result<Option<String>, Failure> {
    if let Some(token) = variable("BEARER_TOKEN") {
        return Ok(Some(token));
    }
    let failed = |error: Error| Failure::lasting(error.kind(), error.to_string());
    if let Some(path) = variable("BEARER_TOKEN_FILE") {
        // The user has named this file: that it is missing must not be silent.
        return read(&path).map_err(|error| failed(error).context("BEARER_TOKEN_FILE"));
    }
    let Some(user_id) = user_id else { return Ok(None) };
    let directories = variable("XDG_RUNTIME_DIR").into_iter().chain(["/tmp".to_owned()]);
    for path in directories.map(|directory| format!("{directory}/bt_u{user_id}")) {
        match read(&path) {
            Ok(Some(token)) => return Ok(Some(token)),
            Ok(None) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(None)
}

fn read(path: &str) -> Result<Option<String>> {
    let file = FileSource::open(path)?;
    let size = file.size()?;
    if size > MAX_TOKEN_BYTES {
        let reason = format!("it has {size} bytes; a token has at most {MAX_TOKEN_BYTES}");
        return Err(Error::new(ErrorKind::NotSupported, "read the token in", path, reason));
    }
    let token = String::from_utf8_lossy(&file.read_range(0..size)?).trim().to_owned();
    Ok((!token.is_empty()).then_some(token))
}

#[cfg(unix)]
fn user_id() -> Option<u32> {
    Some(rustix::process::geteuid().as_raw())
}

#[cfg(not(unix))]
fn user_id() -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn tokens_are_found_in_the_order_of_wlcg() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        fs::write(path("file"), " from-file\n").unwrap();
        fs::write(path("bt_u4294967295"), "from-runtime").unwrap();
        let mut variables = vec![("XDG_RUNTIME_DIR", path(""))];
        let found = |variables: &[(&str, String)]| {
            let set = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
            discover(&set, Some(u32::MAX))
        };
        assert_eq!(found(&[]).unwrap(), None);
        assert_eq!(found(&variables).unwrap().as_deref(), Some("from-runtime"));
        variables.push(("BEARER_TOKEN_FILE", path("file")));
        assert_eq!(found(&variables).unwrap().as_deref(), Some("from-file"));
        variables.push(("BEARER_TOKEN", "from-variable".to_owned()));
        assert_eq!(found(&variables).unwrap().as_deref(), Some("from-variable"));
        variables.pop();

        let missing = found(&[("BEARER_TOKEN_FILE", path("missing"))]).unwrap_err();
        assert_eq!(missing.kind, ErrorKind::NotFound);
        assert!(missing.reason.starts_with("BEARER_TOKEN_FILE: cannot open"), "{missing:?}");
        fs::write(path("file"), vec![b'x'; 100_000]).unwrap();
        assert_eq!(found(&variables).unwrap_err().kind, ErrorKind::NotSupported);
    }
}
