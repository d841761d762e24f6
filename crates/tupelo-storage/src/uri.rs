//! Objects of all back ends, by path or URL.
//!
//! | name | back end |
//! |---|---|
//! | a path, `file:PATH`, `file:///PATH` | [`local`](crate::local) |
//! | `http:`, `https:`, `s3:`, `s3a:`, `gs:`, `gcs:`, `az:`, `azure:`, `abfs:`, `abfss:` | [`remote`] |
//! | `root:`, `roots:`, `xroot:`, `xroots:` | [`xrootd`] |
//!
//! Data sets that are stored as many objects have `ntpl+` before the scheme, or are in DAOS: see
//! [`Storage::object_source`].

use std::path::Path;
use std::sync::Arc;

use crate::adapter::Cache;
use crate::error::{Error, ErrorKind, Result};
use crate::local::{FileSink, FileSource};
use crate::net::{self, Entry, Options};
use crate::objects::{self, ObjectSink, ObjectSource};
use crate::remote;
use crate::sink::ByteSink;
use crate::source::ByteSource;
use crate::xrootd::{self, is_xrootd};

pub use crate::objects::{is_object_uri, split_container};

/// The path of a local file; `None` for a URL of another scheme than `file`, and for what [`is_object_uri`].
pub fn local_path(name: &str) -> Option<&Path> {
    if is_object_uri(name) {
        return None;
    }
    let path = name.strip_prefix("file://").or_else(|| name.strip_prefix("file:")).unwrap_or(name);
    (path.len() < name.len() || scheme(name).is_none()).then(|| Path::new(path))
}

/// Prefix of the URI of a data set in several stores.
const MIRROR: &str = "ntpl+mirror:";
/// Members of a mirror.
const MAX_MEMBERS: usize = 16;

/// The URIs of the members of a mirror, between commas.
fn members(uri: &str) -> Option<impl Iterator<Item = &str>> {
    let start = uri.get(..MIRROR.len()).filter(|start| start.eq_ignore_ascii_case(MIRROR))?;
    Some(uri[start.len()..].split(','))
}

/// Whether a name is the URI of a data set in several stores.
pub fn is_mirror(name: &str) -> bool {
    members(name).is_some()
}

/// The URIs of the members of `ntpl+mirror:URI,URI`; for any other name, that name.
///
/// # Errors
/// [`ErrorKind::NotSupported`] for a mirror with fewer than 2 or more than 16 members, one twice, or one that is not the URI of
/// a data set.
pub fn mirror_members(uri: &str) -> Result<Vec<&str>> {
    let Some(members) = members(uri) else { return Ok(vec![uri]) };
    let members: Vec<&str> = members.collect();
    let refused = |reason: String| Error::new(ErrorKind::NotSupported, "use", display_name(uri), reason);
    let form = "a mirror is ntpl+mirror:URI,URI without spaces, where each URI begins with ntpl+ or daos://";
    match members.len() {
        0 | 1 => return Err(refused(format!("expected at least two members, found one; {form}"))),
        2..=MAX_MEMBERS => {}
        many => return Err(refused(format!("it has {many} members, limit is {MAX_MEMBERS}"))),
    }
    for (at, member) in members.iter().enumerate() {
        let shown = display_name(member);
        if !is_object_uri(member) || member.trim() != *member || shown.contains(['*', '?', '[', '{']) {
            return Err(refused(format!("'{shown}' is not a valid member; {form}, and contains no wildcards")));
        }
        if members.get(..at).is_some_and(|before| before.contains(member)) {
            return Err(refused(format!("it lists the member {shown} twice")));
        }
        objects::check_uri(member)?;
    }
    Ok(members)
}

/// Refuses a mirror, which is several data sets.
fn check_single(uri: &str, action: &'static str) -> Result<()> {
    match members(uri) {
        None => Ok(()),
        Some(_) => {
            let reason = "a mirror consists of several data sets; use one of its members";
            Err(Error::new(ErrorKind::NotSupported, action, display_name(uri), reason))
        }
    }
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
        _ if is_object_uri(name) => match members(name) {
            Some(members) => {
                format!("{MIRROR}{}", members.map(objects::object_display_name).collect::<Vec<_>>().join(","))
            }
            None => objects::object_display_name(name),
        },
        Some(_) => name.to_owned(),
        None => net::display_name(name),
    }
}

/// Access to objects: options of remote stores, and a cache.
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

    /// The same without credentials, for servers that someone else chose.
    #[must_use]
    pub fn without_credentials(&self) -> Self {
        Self { options: self.options.clone().without_credentials(), cache: self.cache.clone() }
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

    /// The namespace of a data set that is stored as many objects, for reading, and the name of the data set in it, with
    /// which its keys begin. It is not kept in the cache.
    ///
    /// | URI | namespace |
    /// |---|---|
    /// | `ntpl+file:DIRECTORY/NAME`, `ntpl+file:///DIRECTORY/NAME` | the directory |
    /// | `ntpl+s3://BUCKET/PREFIX/NAME`, with `gs`, `az` and their synonyms | the bucket with `PREFIX/` |
    /// | `ntpl+s3+https://HOST/BUCKET/PREFIX/NAME`, with `s3+http` | the same on this server |
    /// | `ntpl+https://HOST/PREFIX/NAME`, with `http` | the folder of the web server, for reading only |
    /// | `daos://POOL/CONTAINER:NAME` | the DAOS container; see [`Keys::Daos`](crate::Keys::Daos) for its keys |
    ///
    /// On a server that the URI names, the credentials may also be in the variables `S3_ACCESS_KEY` and `S3_SECRET_KEY`, as
    /// for ROOT. Errors of the namespace may come when it is read.
    ///
    /// # Errors
    /// [`ErrorKind::NotSupported`] for other URIs, for those without a name, and for those with user name, password, query
    /// string or fragment; errors of options and credentials.
    pub fn object_source(&self, uri: &str) -> Result<(Arc<dyn ObjectSource>, String)> {
        check_single(uri, "open")?;
        objects::source(uri, &self.options)
    }

    /// As [`object_source`](Self::object_source), for writing.
    ///
    /// # Errors
    /// As [`object_source`](Self::object_source); [`ErrorKind::NotFound`] if the directory or container does not exist,
    /// and [`ErrorKind::NotSupported`] for web servers and for object classes that a DAOS pool cannot hold.
    pub fn object_sink(&self, uri: &str) -> Result<(Arc<dyn ObjectSink>, String)> {
        check_single(uri, objects::WRITE_ACTION)?;
        objects::sink(uri, &self.options)
    }

    /// The objects and folders in a folder of a store or server, in order of their names; for the URL of an object, the
    /// object. For URIs with `ntpl+`, also of directories, the data sets and folders: a data set `NAME` is an object
    /// `NAME` and a folder `NAME.objects/`, and has the size of that object.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if there is neither; [`ErrorKind::NotSupported`] for local paths and for `http` and
    /// `https`, which have no listings; errors of network and servers.
    pub fn list(&self, name: &str) -> Result<Vec<Entry>> {
        match local_path(name) {
            _ if is_object_uri(name) => objects::list(name, &self.options),
            None if is_xrootd(name) => xrootd::list(name, &self.options),
            None if !remote::is_remote(name) => Err(unknown_scheme("list", name)),
            _ => remote::list(name, &self.options),
        }
    }

    /// As [`list`](Self::list) for a folder of URIs with `ntpl+`, with the names of objects without a data set, whose
    /// writers have not finished or were killed. They have no size.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub fn list_with_unfinished(&self, uri: &str) -> Result<Vec<Entry>> {
        objects::list_with_unfinished(uri, &self.options)
    }
}

#[cold]
fn unknown_scheme(action: &'static str, name: &str) -> Error {
    let reason = match is_object_uri(name) {
        true => "expected a single object, found a data set of many objects",
        false => "its scheme is not supported; supported schemes are http, https, s3, gs, az, abfs, root and roots",
    };
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
    fn data_sets_can_be_in_several_places() {
        let uri = "ntpl+mirror:ntpl+file:a,ntpl+s3://bucket/c,daos://p/c:x";
        assert_eq!(mirror_members(uri).unwrap(), ["ntpl+file:a", "ntpl+s3://bucket/c", "daos://p/c:x"]);
        assert_eq!(mirror_members("ntpl+file:a,ntpl+file:b").unwrap(), ["ntpl+file:a,ntpl+file:b"]);
        assert!(is_mirror(uri) && !is_mirror("ntpl+file:a"));
        for (uri, reason) in [
            ("ntpl+mirror:", "expected at least two members"),
            ("ntpl+mirror:ntpl+file:a", "expected at least two members"),
            ("ntpl+mirror:ntpl+file:a,b", "'b' is not a valid member"),
            ("ntpl+mirror:ntpl+file:a, ntpl+file:b", "without spaces"),
            ("ntpl+mirror:ntpl+file:a ,ntpl+file:b", "without spaces"),
            ("ntpl+mirror:ntpl+file:a*,ntpl+file:b", "no wildcards"),
            ("ntpl+mirror:ntpl+file:a,ntpl+file:b,ntpl+file:a", "the member ntpl+file:a twice"),
            ("ntpl+mirror:ntpl+file:a,daos://pool/container", "daos://POOL/CONTAINER:NAME"),
            ("ntpl+mirror:ntpl+file:a,ntpl+mirror:ntpl+file:b", "cannot use"),
            ("ntpl+mirror:ntpl+file:a,ntpl+file:b:Events", "must not end with :NAME"),
        ] {
            let error = mirror_members(uri).unwrap_err();
            assert!(error.to_string().contains(reason), "{uri}: {error}");
        }
        let many: Vec<String> = (0..17).map(|number| format!("ntpl+file:{number}")).collect();
        let error = mirror_members(&format!("{MIRROR}{}", many.join(","))).unwrap_err().to_string();
        assert!(error.contains("it has 17 members, limit is 16"), "{error}");
        assert_eq!(
            display_name("ntpl+mirror:ntpl+file:a,ntpl+s3://user:hidden@bucket/c?d"),
            "ntpl+mirror:ntpl+file:a,ntpl+s3://bucket/c"
        );
        let error = Storage::default().object_source(uri).unwrap_err();
        assert!(error.to_string().contains("use one of its members"), "{error}");
        assert!(Storage::default().object_sink(uri).is_err());
    }

    #[test]
    fn unknown_schemes_are_errors() {
        let error = Storage::default().open("x-y+z.1://user:secret@a/b").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSupported);
        assert!(error.to_string().starts_with("cannot open x-y+z.1://a/b: its scheme is not supported"), "{error}");
    }
}
