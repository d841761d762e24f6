//! Which keys are refused. They come from files that may be hostile, and become paths and URLs.

use std::fmt::Display;

use crate::error::{Error, ErrorKind, Result};

/// Refuses a key that could lead out of a namespace, or that some stores do not take.
pub(super) fn check(key: &str, base: impl Display, action: &'static str) -> Result<()> {
    if is_valid(key) {
        return Ok(());
    }
    Err(refused(key, base, action, "the key contains an empty or relative part, or a forbidden character"))
}

/// The error that refuses a key.
#[cold]
pub(super) fn refused(key: &str, base: impl Display, action: &'static str, reason: &'static str) -> Error {
    let shown: String = key.escape_debug().take(MAX_SHOWN_CHARS).collect();
    Error::new(ErrorKind::NotSupported, action, format!("{base}{shown}"), reason)
}

/// Refuses a prefix whose folder could lead out of a namespace.
pub(super) fn check_prefix(prefix: &str, base: impl Display) -> Result<()> {
    match prefix.rsplit_once('/') {
        Some((folder, _)) => check(folder, base, "list"),
        None => Ok(()),
    }
}

/// Characters of a refused key in messages.
const MAX_SHOWN_CHARS: usize = 200;

/// Whether a key has no empty, `.` and `..` parts and no control characters.
pub(super) fn is_valid(key: &str) -> bool {
    // Where these separate folders or name drives.
    let is_foreign = cfg!(windows) && key.contains(['\\', ':']);
    let is_part = |part: &str| !matches!(part, "" | "." | "..");
    key.split('/').all(is_part) && !key.contains(char::is_control) && !is_foreign
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stay_inside_their_namespace() {
        for good in ["a", "a/b c/d%20é.0", "...", ".a", "a..b", "~"] {
            assert!(is_valid(good), "{good}");
        }
        for bad in ["", "/", "/a", "a/", "a//b", ".", "..", "a/./b", "a/../b", "../a", "a/..", "a\0b", "a\nb"] {
            assert!(!is_valid(bad), "{bad:?}");
            assert_eq!(check(bad, "base:", "read").unwrap_err().kind(), ErrorKind::NotSupported);
        }
        assert!(
            check("a/\u{1b}[31m", "base:", "read").unwrap_err().to_string().starts_with("cannot read base:a/\\u{1b}[")
        );
        for good in ["", "a", "a/", "a/.", "a/b.o"] {
            check_prefix(good, "base:").unwrap();
        }
        for bad in ["/", "../", "a//", "../x", "a/../x"] {
            assert!(check_prefix(bad, "base:").is_err(), "{bad}");
        }
    }
}
