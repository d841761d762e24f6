//! A bucket, or a folder of a web server, as a namespace.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::plan::Requests;
use super::{Condition, NewObject, ObjectEntry, ObjectRange, ObjectSink, ObjectSource, ObjectVersion, key, probe};
use crate::error::{Error, ErrorKind, Result};
use crate::net::Options;
use crate::remote::{REMOTE_HINTS, RemoteObjects, Version, Wanted};
use crate::source::{Hints, Traffic};

/// Objects on a server. [`put`](ObjectSink::put) overwrites what has the same key: finding out would cost a request, or
/// needs conditions, which not all stores have.
#[derive(Debug)]
pub(super) struct RemoteNamespace {
    objects: RemoteObjects,
}

impl RemoteNamespace {
    /// The namespace of the folder `url`; `base` is its URI, and errors name the object `key` in it.
    pub(super) fn open(url: &str, base: String, options: &Options, action: &'static str, key: &str) -> Result<Self> {
        let uri = format!("{base}{key}");
        let objects = RemoteObjects::new(url, base, options).map_err(|failure| failure.into_error(action, uri))?;
        Ok(Self { objects })
    }

    /// Refuses web servers.
    pub(super) fn check_writable(&self, action: &'static str, key: &str) -> Result<()> {
        if self.objects.is_web() {
            let uri = format!("{self}{key}");
            return Err(Error::new(ErrorKind::NotSupported, action, uri, "web servers are read-only"));
        }
        Ok(())
    }
}

impl fmt::Display for RemoteNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.objects.base())
    }
}

impl ObjectSource for RemoteNamespace {
    fn hints(&self) -> Hints {
        REMOTE_HINTS
    }

    fn traffic(&self) -> Option<Arc<Traffic>> {
        Some(Arc::clone(self.objects.traffic()))
    }

    fn get(&self, key: &str, max_bytes: u64) -> Result<(Bytes, ObjectVersion)> {
        key::check(key, self, "read")?;
        let (bytes, Version { etag, generation }) = self.objects.get(key, max_bytes)?;
        Ok((bytes, ObjectVersion { etag, generation }))
    }

    fn get_ranges(&self, ranges: &[ObjectRange]) -> Result<Vec<Bytes>> {
        let requests = Requests::plan(ranges, &REMOTE_HINTS, self.objects.base())?;
        let wanted = requests.all().map(|(key, range)| Wanted { key: Arc::clone(key), range: range.clone() });
        requests.cut(self.objects.get_ranges(wanted.collect())?, self.objects.base())
    }

    fn list(&self, prefix: &str) -> Result<Vec<ObjectEntry>> {
        key::check_prefix(prefix, self)?;
        let found = self.objects.list(prefix)?.into_iter();
        let mut found: Vec<ObjectEntry> = found
            .map(|object| ObjectEntry { key: object.key, bytes: object.bytes, modified: object.modified })
            .collect();
        found.sort();
        Ok(found)
    }
}

impl ObjectSink for RemoteNamespace {
    fn put(&self, objects: &[NewObject]) -> Result<()> {
        for object in objects {
            self.check_writable("write", &object.key)?;
            key::check(&object.key, self, "write")?;
        }
        self.objects.put(objects.iter().map(|object| (object.key.clone(), object.pieces.clone())).collect())
    }

    /// Objects are durable when they are written.
    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn publish(&self, key: &str, bytes: Bytes, condition: &Condition) -> Result<()> {
        self.check_writable("write", key)?;
        key::check(key, self, "write")?;
        let expected = match condition {
            Condition::Absent => None,
            Condition::Version(ObjectVersion { etag, generation }) => {
                Some(Version { etag: etag.clone(), generation: generation.clone() })
            }
        };
        self.objects.publish(key, bytes, expected)
    }

    fn honours_conditions(&self, probe: &str) -> Result<bool> {
        self.check_writable("write", probe)?;
        probe::honours_conditions(self, probe)
    }

    fn delete(&self, keys: &[String]) -> Result<()> {
        for key in keys {
            self.check_writable("remove", key)?;
            key::check(key, self, "remove")?;
        }
        self.objects.delete(keys)
    }
}
