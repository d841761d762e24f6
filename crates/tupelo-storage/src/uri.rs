//! Objects of all back ends, by path or URL.
//!
//! | name | back end |
//! |---|---|
//! | a path, `file:PATH`, `file:///PATH` | [`local`](crate::local) |
//! | `http:`, `https:`, `s3:`, `s3a:`, `gs:`, `gcs:`, `az:`, `azure:`, `abfs:`, `abfss:` | [`remote`] |
//! | `root:`, `roots:`, `xroot:`, `xroots:` | [`xrootd`] |

use std::path::Path;
use std::sync::Arc;

use crate::adapter::Cache;
use crate::error::{Error, ErrorKind, Result};
use crate::local::{FileSink, FileSource};
use crate::net::{self, Entry, Options};
use crate::remote;
use crate::sink::ByteSink;
use crate::source::ByteSource;
use crate::xrootd::{self, is_xrootd};

/// The path of a local file; `None` for a URL of another scheme than `file`.
pub fn local_path(name: &str) -> Option<&Path> {
    let path = name.strip_prefix("file://").or_else(|| name.strip_prefix("file:")).unwrap_or(name);
    (path.len() < name.len() || scheme(name).is_none()).then(|| Path::new(path))
}

/// The scheme of `SCHEME://…`, in the case in which it is written.
fn scheme(name: &str) -> Option<&str> {
    let (scheme, _) = name.split_once("://")?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c));
    is_scheme.then_some(scheme)
}

/// A name without what may be secret: user name, password, and query string. Of a URL for XRootD, the parameters that are
/// not credentials are kept.
pub fn display_name(name: &str) -> String {
    match local_path(name) {
        Some(_) => name.to_owned(),
        None => net::display_name(name),
    }
}

/// Where objects come from and go to: options of remote stores, and a cache.
#[derive(Debug, Clone, Default)]
pub struct Storage {
    options: Options,
    cache: Option<Cache>,
}

impl Storage {
    /// All back ends with these options, without a cache.
    pub fn new(options: Options) -> Self {
        Self { options, cache: None }
    }

    /// Keeps ranges of remote objects in a cache.
    #[must_use]
    pub fn with_cache(mut self, cache: Cache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Opens an object.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], [`ErrorKind::Denied`], [`ErrorKind::NotSupported`] for unknown schemes and for what is
    /// not an object, and errors of system, network and servers.
    pub fn open(&self, name: &str) -> Result<Arc<dyn ByteSource>> {
        match (local_path(name), &self.cache) {
            (Some(path), _) => Ok(Arc::new(FileSource::open(path)?)),
            (None, _) if !is_xrootd(name) && !remote::is_remote(name) => Err(unknown_scheme("open", name)),
            (None, Some(cache)) => cache.open_object(name, &self.options),
            (None, None) if is_xrootd(name) => Ok(Arc::new(xrootd::open(name, &self.options)?)),
            (None, None) => remote::open(name, &self.options),
        }
    }

    /// Creates an object, or replaces an existing one at commit.
    ///
    /// # Errors
    /// As [`Storage::open`].
    pub fn create(&self, name: &str) -> Result<Box<dyn ByteSink>> {
        match local_path(name) {
            Some(path) => Ok(Box::new(FileSink::create(path)?)),
            None if is_xrootd(name) => Ok(Box::new(xrootd::create(name, &self.options)?)),
            None if remote::is_remote(name) => remote::create(name, &self.options),
            None => Err(unknown_scheme("create", name)),
        }
    }

    /// The objects and folders in a folder of a store or server, in order of their names; for the URL of an object, the
    /// object.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if there is neither; [`ErrorKind::NotSupported`] for local paths and for `http` and
    /// `https`, which have no listings; errors of network and servers.
    pub fn list(&self, name: &str) -> Result<Vec<Entry>> {
        match local_path(name) {
            None if is_xrootd(name) => xrootd::list(name, &self.options),
            None if !remote::is_remote(name) => Err(unknown_scheme("list", name)),
            _ => remote::list(name, &self.options),
        }
    }
}

#[cold]
fn unknown_scheme(action: &'static str, name: &str) -> Error {
    let reason = "its scheme is not supported; supported are http, https, s3, gs, az, abfs, root and roots";
    Error::new(ErrorKind::NotSupported, action, display_name(name), reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_distinguished_from_urls() {
        for (name, path) in [("a.root", "a.root"), ("C:/a.root", "C:/a.root"), ("file:///tmp/a", "/tmp/a")] {
            assert_eq!(local_path(name), Some(Path::new(path)), "{name}");
        }
        for path in ["dir/a://b", "://a", "1a://b", "file:a"] {
            assert!(local_path(path).is_some(), "{path}");
        }
        for url in ["https://host/a.root", "s3://bucket/key", "root://eos//a.root", "x-y+z.1://a"] {
            assert!(local_path(url).is_none(), "{url}");
        }
        assert!(is_xrootd("ROOTS://host//a") && !is_xrootd("https://host/a"));
    }

    #[test]
    fn unknown_schemes_are_errors() {
        let error = Storage::default().open("x-y+z.1://user:secret@a/b").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSupported);
        assert!(error.to_string().starts_with("cannot open x-y+z.1://a/b: its scheme is not supported"), "{error}");
    }
}
