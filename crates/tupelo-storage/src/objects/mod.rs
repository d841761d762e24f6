//! Namespaces of objects: keys to bytes, for data sets that are stored as many objects.
//!
//! A namespace is a directory, a bucket with a prefix, a folder of a web server, or memory. Keys are relative to it; their
//! parts are separated by `/`. An object is written once, by [`ObjectSink::put`], and never overwritten: what is
//! replaced has another key. The exception is the object that makes a data set visible, which is written last, by
//! [`ObjectSink::publish`], with a condition.
//!
//! `laws::object_laws` (feature `testing`) is the contract in code.
//!
//! | module | what it does |
//! |---|---|
//! | [`directory`](ObjectDirectory) | a directory as a namespace |
//! | [`memory`](ObjectMemory) | memory as a namespace, with counts and faults for tests |
//! | `remote` | a bucket, or a folder of a web server, as a namespace |
//! | `container` | a DAOS container as a namespace |
//! | `address` | the URIs of namespaces and of objects in them |
//! | `folder` | the data sets in a folder |
//! | `key` | which keys are refused |
//! | `plan` | which requests read a set of ranges |
//! | `probe` | whether a store honours conditions |

mod address;
mod container;
mod directory;
mod folder;
mod key;
mod memory;
mod plan;
mod probe;
mod remote;
#[cfg(test)]
mod tests;

use std::fmt::{Debug, Display};
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use self::address::{Address, NamespaceAddress};
use self::container::ContainerNamespace;
use self::remote::RemoteNamespace;
use crate::daos::Access;
use crate::error::{Error, ErrorKind, Result};
use crate::net::{Entry, Options, Redundancy};
use crate::source::{Hints, Traffic};

pub use self::address::is_object_uri;
pub(crate) use self::address::object_display_name;
pub use self::address::split_container;
pub use self::container::names_in_container;
pub use self::directory::ObjectDirectory;
pub use self::memory::{ObjectCounts, ObjectMemory};

/// A byte range of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectRange {
    /// The key of the object.
    pub key: Arc<str>,
    /// Bytes of the object.
    pub range: Range<u64>,
}

/// An object to write.
#[derive(Debug, Clone)]
pub struct NewObject {
    /// The key of the object.
    pub key: String,
    /// Its bytes, in pieces that follow each other.
    pub pieces: Vec<Bytes>,
}

/// An object in a listing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectEntry {
    /// The key of the object.
    pub key: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was written, if the store knows.
    pub modified: Option<SystemTime>,
}

/// The version of an object: no other content under its key has the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectVersion {
    pub(crate) etag: Option<String>,
    pub(crate) generation: Option<String>,
}

/// The condition under which [`ObjectSink::publish`] writes a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// There is no object.
    Absent,
    /// The object has this version.
    Version(ObjectVersion),
}

/// The form of the keys of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Keys {
    /// Any text in parts that are separated by `/`. Objects of one folder are listed together.
    #[default]
    Paths,
    /// `CLASS/HI/LO/DKEY/AKEY`: a value in a DAOS container. `CLASS` is the name of an object class, `HI` and `LO` are
    /// the user's bits of the object's id (32 and 64), `DKEY` and `AKEY` are keys of 64 bits; numbers are hexadecimal,
    /// without leading zeros. In a small pool, objects of two classes may be the same object, so `HI` and `LO` must differ
    /// between objects. Only objects that have the first three parts in common are listed together.
    Daos {
        /// The class of objects that are written.
        class: String,
        /// The class of objects that describe others, for reading and writing.
        metadata_class: String,
        /// Whether each page is written to a separate object, not to that of its cluster.
        separate_pages: bool,
    },
}

/// Objects that are read, from any number of threads. `Display` gives the URI of the namespace.
pub trait ObjectSource: Debug + Display + Send + Sync {
    /// The form of keys. The default implementation returns [`Keys::Paths`].
    fn keys(&self) -> Keys {
        Keys::Paths
    }

    /// Tuning parameters of the back end, for ranges of one object, and for the number of concurrent requests.
    fn hints(&self) -> Hints;

    /// Whether a read costs little more than copying its bytes; see
    /// [`ByteSource::reads_in_place`](crate::ByteSource::reads_in_place). The default implementation returns false.
    fn reads_in_place(&self) -> bool {
        false
    }

    /// Counts of the requests to the server; `None` without a server.
    fn traffic(&self) -> Option<Arc<Traffic>> {
        None
    }

    /// Reads a whole object of at most `max_bytes`, and its version.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`];
    /// [`ErrorKind::NotSupported`] for a larger object; errors of the back end.
    fn get(&self, key: &str, max_bytes: u64) -> Result<(Bytes, ObjectVersion)>;

    /// Reads ranges of objects, in any order, overlapping or not, with concurrent requests. Near ranges of one object are
    /// merged, by the [`hints`](Self::hints). The results are in the order of the ranges. An empty range needs no
    /// request.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; [`ErrorKind::OutOfRange`]
    /// for bytes beyond the end of an object; errors of the back end.
    fn get_ranges(&self, ranges: &[ObjectRange]) -> Result<Vec<Bytes>>;

    /// Reads consecutive bytes of an object from `start` into buffers of the caller, one after the other.
    ///
    /// The default implementation copies the result of [`get_ranges`](Self::get_ranges).
    ///
    /// # Errors
    /// As [`get_ranges`](Self::get_ranges); the buffers then hold unspecified bytes.
    fn get_into(&self, key: &Arc<str>, start: u64, pieces: &mut [&mut [u8]]) -> Result<()> {
        let end = start.saturating_add(pieces.iter().map(|piece| piece.len() as u64).sum());
        let bytes = self.get_ranges(&[ObjectRange { key: Arc::clone(key), range: start..end }])?;
        let mut rest = bytes.first().map(|bytes| &bytes[..]).unwrap_or_default();
        for piece in pieces {
            let (mine, others) = rest.split_at(piece.len());
            piece.copy_from_slice(mine);
            rest = others;
        }
        Ok(())
    }

    /// The objects whose keys begin with `prefix`, in all folders, in order of their keys.
    ///
    /// # Errors
    /// [`ErrorKind::NotSupported`] if listing is not supported; errors of the back end.
    fn list(&self, prefix: &str) -> Result<Vec<ObjectEntry>>;
}

/// Objects that are written, from any number of threads.
pub trait ObjectSink: ObjectSource {
    /// Writes new objects, with concurrent requests. After an error some of them may exist.
    ///
    /// # Errors
    /// [`ErrorKind::Changed`] if an object exists already, where the store can tell without
    /// another request; errors of the back end.
    fn put(&self, objects: &[NewObject]) -> Result<()>;

    /// Makes all objects that were put durable.
    ///
    /// # Errors
    /// Errors of the back end.
    fn flush(&self) -> Result<()>;

    /// The state of a key before something is written, as the condition for [`publish`](Self::publish), and the object of
    /// at most `max_bytes`, if there is one.
    ///
    /// # Errors
    /// As [`ObjectSource::get`], but for an object that does not exist.
    fn state(&self, key: &str, max_bytes: u64) -> Result<(Condition, Option<Bytes>)> {
        match self.get(key, max_bytes) {
            Ok((bytes, version)) => Ok((Condition::Version(version), Some(bytes))),
            Err(error) if error.is_not_found() => Ok((Condition::Absent, None)),
            Err(error) => Err(error),
        }
    }

    /// Writes the object that makes others visible, if the condition is met. Readers see the old object or the new one. A
    /// request whose result is unknown is not taken for a failure or a success: the object is read back and compared.
    ///
    /// # Errors
    /// [`ErrorKind::Changed`] if the condition is not met, and nothing was written; errors of the back end, after which the
    /// object may be visible or not.
    fn publish(&self, key: &str, bytes: Bytes, condition: &Condition) -> Result<()>;

    /// As [`publish`](Self::publish), with other objects, which may exist: readers see all old ones or all new ones. The
    /// default implementation accepts no others.
    ///
    /// # Errors
    /// As [`publish`](Self::publish); [`ErrorKind::NotSupported`] where the store cannot write several objects at once.
    fn publish_with(&self, others: &[NewObject], key: &str, bytes: Bytes, condition: &Condition) -> Result<()> {
        match others.is_empty() {
            true => self.publish(key, bytes, condition),
            false => {
                let reason = "the store cannot publish several objects at once";
                Err(Error::new(ErrorKind::NotSupported, "write", format_args!("{self}{key}"), reason))
            }
        }
    }

    /// Whether the store honours the conditions of [`publish`](Self::publish), found out by writing a probe under a key
    /// that no other writer uses, and removing it.
    ///
    /// # Errors
    /// Errors of the back end.
    fn honours_conditions(&self, probe: &str) -> Result<bool>;

    /// Removes objects, with concurrent requests. Missing objects are not an error.
    ///
    /// # Errors
    /// Errors of the back end.
    fn delete(&self, keys: &[String]) -> Result<()>;

    /// What killed writers of an object, and of the objects in `folder`, have left that is not an object: temporary files
    /// that no process writes, and empty folders, whose keys end with a slash. The default implementation returns none,
    /// because most stores have neither.
    ///
    /// # Errors
    /// Errors of the back end.
    fn remains(&self, object: &str, folder: &str) -> Result<Vec<ObjectEntry>> {
        let _ = (object, folder);
        Ok(Vec::new())
    }

    /// Removes [`remains`](Self::remains), if they still exist. The default implementation does nothing.
    ///
    /// # Errors
    /// Errors of the back end.
    fn remove_remains(&self, keys: &[String]) -> Result<()> {
        let _ = keys;
        Ok(())
    }
}

macro_rules! forward_objects {
    ($($pointer:ty),*) => {$(
        impl<S: ObjectSource + ?Sized> ObjectSource for $pointer {
            fn keys(&self) -> Keys {
                (**self).keys()
            }
            fn hints(&self) -> Hints {
                (**self).hints()
            }
            fn reads_in_place(&self) -> bool {
                (**self).reads_in_place()
            }
            fn traffic(&self) -> Option<Arc<Traffic>> {
                (**self).traffic()
            }
            fn get(&self, key: &str, max_bytes: u64) -> Result<(Bytes, ObjectVersion)> {
                (**self).get(key, max_bytes)
            }
            fn get_ranges(&self, ranges: &[ObjectRange]) -> Result<Vec<Bytes>> {
                (**self).get_ranges(ranges)
            }
            fn get_into(&self, key: &Arc<str>, start: u64, pieces: &mut [&mut [u8]]) -> Result<()> {
                (**self).get_into(key, start, pieces)
            }
            fn list(&self, prefix: &str) -> Result<Vec<ObjectEntry>> {
                (**self).list(prefix)
            }
        }

        impl<S: ObjectSink + ?Sized> ObjectSink for $pointer {
            fn put(&self, objects: &[NewObject]) -> Result<()> {
                (**self).put(objects)
            }
            fn flush(&self) -> Result<()> {
                (**self).flush()
            }
            fn state(&self, key: &str, max_bytes: u64) -> Result<(Condition, Option<Bytes>)> {
                (**self).state(key, max_bytes)
            }
            fn publish(&self, key: &str, bytes: Bytes, condition: &Condition) -> Result<()> {
                (**self).publish(key, bytes, condition)
            }
            fn publish_with(
                &self,
                others: &[NewObject],
                key: &str,
                bytes: Bytes,
                condition: &Condition,
            ) -> Result<()> {
                (**self).publish_with(others, key, bytes, condition)
            }
            fn honours_conditions(&self, probe: &str) -> Result<bool> {
                (**self).honours_conditions(probe)
            }
            fn delete(&self, keys: &[String]) -> Result<()> {
                (**self).delete(keys)
            }
            fn remains(&self, object: &str, folder: &str) -> Result<Vec<ObjectEntry>> {
                (**self).remains(object, folder)
            }
            fn remove_remains(&self, keys: &[String]) -> Result<()> {
                (**self).remove_remains(keys)
            }
        }
    )*};
}
forward_objects!(&S, Box<S>, Arc<S>);

/// Checks a URI without opening anything.
///
/// # Errors
/// [`ErrorKind::NotSupported`] for URIs of other schemes, those that name no object, and those with a name after a colon
/// where there is one data set.
pub(crate) fn check_uri(uri: &str) -> Result<()> {
    let Address { place, key, .. } = Address::parse(uri, "use")?;
    if !matches!(place, NamespaceAddress::Container(_)) && key.contains(':') {
        let reason = "the URI of an object store must not end with :NAME";
        return Err(Error::new(ErrorKind::NotSupported, "use", object_display_name(uri), reason));
    }
    Ok(())
}

/// The namespace of a URI, and the key in it that the URI ends with.
///
/// # Errors
/// [`ErrorKind::NotSupported`] for URIs of other schemes and those that name no object.
pub(crate) fn source(uri: &str, options: &Options) -> Result<(Arc<dyn ObjectSource>, String)> {
    let Address { place, base, key } = Address::parse(uri, "open")?;
    match place {
        NamespaceAddress::Directory(path) => Ok((Arc::new(ObjectDirectory::named(&path, base)?), key)),
        NamespaceAddress::Server(url) => Ok((Arc::new(RemoteNamespace::open(&url, base, options, "open", &key)?), key)),
        NamespaceAddress::Container(place) => {
            Ok((Arc::new(ContainerNamespace::open(&place, &base, options, Access::Read, "open", &key)?), key))
        }
    }
}

/// What fails, in errors of [`sink`].
pub(crate) const WRITE_ACTION: &str = "write to";

/// As [`source`], for writing.
///
/// # Errors
/// As [`source`]; [`ErrorKind::NotFound`] if the directory of a local object does not exist, and
/// [`ErrorKind::NotSupported`] for web servers.
pub(crate) fn sink(uri: &str, options: &Options) -> Result<(Arc<dyn ObjectSink>, String)> {
    let Address { place, base, key } = Address::parse(uri, WRITE_ACTION)?;
    match place {
        NamespaceAddress::Directory(path) => {
            if options.redundancy().is_some_and(|level| level != Redundancy::None) {
                let reason =
                    "the storage option redundancy must be none for a directory, which stores each object once";
                return Err(Error::new(ErrorKind::NotSupported, WRITE_ACTION, uri, reason));
            }
            let directory = ObjectDirectory::named(&path, base)?;
            directory.check_exists(WRITE_ACTION, &key)?;
            Ok((Arc::new(directory), key))
        }
        NamespaceAddress::Server(url) => {
            let namespace = RemoteNamespace::open(&url, base, options, WRITE_ACTION, &key)?;
            namespace.check_writable(WRITE_ACTION, &key)?;
            Ok((Arc::new(namespace), key))
        }
        NamespaceAddress::Container(place) => {
            Ok((Arc::new(ContainerNamespace::open(&place, &base, options, Access::Write, WRITE_ACTION, &key)?), key))
        }
    }
}

/// The data sets and folders in a folder, and the names of objects without a data set.
///
/// # Errors
/// [`ErrorKind::NotFound`] if the folder does not exist; [`ErrorKind::NotSupported`] for web servers.
pub(crate) fn list_with_unfinished(uri: &str, options: &Options) -> Result<Vec<Entry>> {
    folder::list(uri, options, true)
}

/// The data sets and folders in a folder; for the URI of a data set, the data set.
///
/// # Errors
/// [`ErrorKind::NotFound`] if there is neither; [`ErrorKind::NotSupported`] for web servers, which have no listings.
pub(crate) fn list(uri: &str, options: &Options) -> Result<Vec<Entry>> {
    match folder::list(uri, options, false) {
        Err(error) if error.is_not_found() && !uri.ends_with('/') => {}
        Ok(found) if found.is_empty() && !uri.ends_with('/') => {}
        listed => return listed,
    }
    let missing = || Error::new(ErrorKind::NotFound, "list", object_display_name(uri), "no such data set or folder");
    let Ok(Address { base, .. }) = Address::parse(uri, "list") else { return Err(missing()) };
    let mut beside = folder::list(&base, options, false)?;
    beside.retain(|entry| entry.url == uri);
    if beside.is_empty() { Err(missing()) } else { Ok(beside) }
}
