//! The objects of a folder: of a store, which are read and written, or of a web server, which are read.

mod publish;

use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::{ListResult, ObjectMeta, ObjectStore, PutOptions, PutPayload};

use self::publish::publish;
use super::answer::{ByteRange, Version};
use super::client::store_failure;
use super::http::HttpObject;
use super::list::{self, pages};
use super::object::Object;
use super::source::{FailedRange, HEAD_BYTES, REMOTE_HINTS, fetch, fetch_all};
use super::store::{Address, StoreObject, Vendor, store};
use super::upload::{PART_BYTES, UploadSink};
use crate::error::{Error, ErrorKind, Result};
use crate::net::{Attempts, Entry, Failure, Limits, Options, run};
use crate::sink::ByteSink;
use crate::source::Traffic;

/// Size from which on an object is uploaded in parts: 64 MiB.
const UPLOAD_BYTES: u64 = 64 << 20;
/// Requests of such an upload besides those of its parts: to begin and to complete it.
const UPLOAD_REQUESTS: u64 = 2;
/// More than any object has. Some servers ignore ranges beyond it.
const MAX_BYTES: u64 = i64::MAX as u64;
/// Objects that are removed by one call: S3 takes a thousand in one request.
const REMOVED_AT_ONCE: usize = 1000;

/// Requests that write an object of a store. Large objects are uploaded in parts.
pub fn put_requests(bytes: u64) -> u64 {
    match bytes > UPLOAD_BYTES {
        true => bytes.div_ceil(PART_BYTES as u64) + UPLOAD_REQUESTS,
        false => 1,
    }
}

/// The objects of a folder on a server.
#[derive(Debug)]
pub(crate) struct RemoteObjects {
    folder: Folder,
    /// The URI of the folder; with a key at its end it is that of the object.
    base: String,
    options: Options,
    limits: Limits,
    traffic: Arc<Traffic>,
}

#[derive(Debug)]
enum Folder {
    /// The key is empty or ends with a slash.
    Store(Address),
    Http(Box<HttpObject>),
}

/// A range of an object.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) key: Arc<str>,
    pub(crate) range: Range<u64>,
}

/// An object in a listing.
#[derive(Debug)]
pub(crate) struct ListedObject {
    pub(crate) key: String,
    pub(crate) bytes: u64,
    pub(crate) modified: Option<SystemTime>,
}

impl RemoteObjects {
    /// The objects of the folder `url`, which ends with a slash. `base` is its URI for messages.
    pub(crate) fn new(url: &str, base: String, options: &Options) -> std::result::Result<Self, Failure> {
        let folder = match address(url)? {
            Some(address) => {
                // Errors of options are found now.
                store(&address, options)?;
                Folder::Store(address)
            }
            None => Folder::Http(Box::new(HttpObject::new(url, options)?)),
        };
        let (limits, traffic) = (options.limits(), Arc::default());
        Ok(Self { folder, base, options: options.clone(), limits, traffic })
    }

    /// The URI of the folder.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// The requests to the server so far.
    pub(crate) fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    /// Whether this is a folder of a web server.
    pub(crate) fn is_web(&self) -> bool {
        matches!(self.folder, Folder::Http(_))
    }

    /// Reads a whole object of at most `max_bytes`, and its version.
    pub(crate) fn get(&self, key: &str, max_bytes: u64) -> Result<(Bytes, Version)> {
        let failed = |failure: Failure| self.failed("read", key, failure);
        let object = self.object(key).map_err(failed)?;
        let attempts = self.attempts(max_bytes);
        run(get(object, attempts, max_bytes)).map_err(failed)
    }

    /// Reads ranges that are not empty, in the given order.
    pub(crate) fn get_ranges(&self, wanted: Vec<Wanted>) -> Result<Vec<Bytes>> {
        let mut ranges: Vec<(Arc<Object>, Range<u64>)> = Vec::with_capacity(wanted.len());
        let mut last: Option<&str> = None;
        for Wanted { key, range } in &wanted {
            if range.end > MAX_BYTES {
                let action = format!("read bytes {}..{} of", range.start, range.end);
                let reason = "the range exceeds the largest possible object";
                return Err(self.failed(&action, key, Failure::lasting(ErrorKind::OutOfRange, reason)));
            }
            // Ranges of one object follow each other.
            let same = ranges.last().filter(|_| last == Some(key)).map(|(object, _)| Arc::clone(object));
            let object = match same {
                Some(object) => object,
                None => Arc::new(self.object(key).map_err(|failure| self.failed("read", key, failure))?),
            };
            ranges.push((object, range.clone()));
            last = Some(key);
        }
        let fetched = fetch_all(ranges, None, self.limits, Arc::clone(&self.traffic));
        let fetched = fetched.map_err(|failure| self.failed("read", "", failure))?;
        fetched.map_err(|FailedRange { place, range, failure }| {
            let key = wanted.get(place).map_or("", |wanted| &wanted.key);
            self.failed(&format!("read bytes {}..{} of", range.start, range.end), key, failure)
        })
    }

    /// Writes objects from pieces, and replaces those that exist.
    pub(crate) fn put(&self, objects: Vec<(String, Vec<Bytes>)>) -> Result<()> {
        let (mut small, mut large) = (Vec::new(), Vec::new());
        for (key, pieces) in objects {
            let object = self.store_object(&key).map_err(|failure| self.failed("write", &key, failure))?;
            let len = pieces.iter().map(|piece| piece.len() as u64).sum();
            if len <= UPLOAD_BYTES { &mut small } else { &mut large }.push((key, object, pieces, len));
        }
        let (limits, traffic) = (self.limits, Arc::clone(&self.traffic));
        let put = run(async move {
            let one = |(key, object, pieces, len): (String, StoreObject, Vec<Bytes>, u64)| {
                let attempts = Attempts::new(&limits.for_bytes(len)).counted_in(&traffic);
                let traffic = &traffic;
                async move {
                    let (object, pieces) = (&object, &pieces);
                    let put = attempts.repeat(move || async move {
                        let payload: PutPayload = pieces.iter().cloned().collect();
                        let options = PutOptions::from(object.attributes()?);
                        object.store()?.put_opts(object.path(), payload, options).await.map(drop).map_err(store_failure)
                    });
                    put.await.inspect(|()| traffic.add_put(len)).map_err(|failure| (key, failure))
                }
            };
            let all = stream::iter(small).map(one).buffer_unordered(REMOTE_HINTS.concurrency);
            Ok(all.try_collect::<Vec<()>>().await)
        });
        let put = put.map_err(|failure| self.failed("write", "", failure))?;
        put.map_err(|(key, failure)| self.failed("write", &key, failure))?;
        large.into_iter().try_for_each(|(key, object, pieces, len)| {
            let sink = UploadSink::new(object, format!("{}{key}", self.base), self.limits, PART_BYTES);
            let mut sink = Box::new(sink.counted_in(&self.traffic));
            pieces.iter().try_for_each(|piece| sink.append(piece))?;
            sink.commit()?;
            self.traffic.add_put(len);
            Ok(())
        })
    }

    /// Creates an object, or replaces the expected version of it.
    pub(crate) fn publish(&self, key: &str, bytes: Bytes, expected: Option<Version>) -> Result<()> {
        let failed = |failure: Failure| self.failed("write", key, failure);
        let object = self.store_object(key).map_err(failed)?;
        let len = bytes.len() as u64;
        run(publish(object, self.attempts(len), bytes, expected)).map_err(failed)?;
        self.traffic.add_put(len);
        Ok(())
    }

    /// Removes objects; missing ones are not an error.
    pub(crate) fn delete(&self, keys: &[String]) -> Result<()> {
        for keys in keys.chunks(REMOVED_AT_ONCE) {
            let objects = keys.iter().map(|key| self.store_object(key).map_err(|f| self.failed("remove", key, f)));
            let objects = objects.collect::<Result<Vec<_>>>()?;
            let Some(first) = objects.first().cloned() else { continue };
            let (paths, attempts) =
                (objects.iter().map(|object| object.path().clone()).collect::<Vec<_>>(), self.attempts(0));
            let removed = run(attempts.repeat(move || {
                let (object, paths) = (first.clone(), paths.clone());
                async move {
                    let paths = stream::iter(paths.into_iter().map(Ok)).boxed();
                    let mut removed = object.store()?.delete_stream(paths);
                    while let Some(removed) = removed.next().await {
                        match removed.map_err(store_failure) {
                            Err(failure) if failure.kind != ErrorKind::NotFound => return Err(failure),
                            _ => {}
                        }
                    }
                    Ok(())
                }
            }));
            // Of several, it is not known which one it was.
            removed.map_err(|failure| match keys {
                [key] => self.failed("remove", key, failure),
                _ => self.failed("remove objects of", "", failure),
            })?;
        }
        Ok(())
    }

    /// The objects whose keys begin with a prefix, in no particular order.
    pub(crate) fn list(&self, prefix: &str) -> Result<Vec<ListedObject>> {
        let failed = |failure: Failure| self.failed("list", prefix, failure);
        let Folder::Store(address) = &self.folder else { return Err(failed(list::no_listings())) };
        let store = store(address, &self.options).map_err(failed)?;
        let (folder, prefix) = (address.key.clone(), format!("{}{prefix}", address.key));
        // For Azure, object_store leaves out an object whose key is the prefix.
        let shorter = prefix.strip_suffix(|c| c != '/').filter(|_| address.vendor == Vendor::Azure);
        let (asked, call) = (shorter.unwrap_or(&prefix).to_owned(), self.attempts(0));
        let listed = run(async move {
            let mut found = Vec::new();
            let add = |page: ListResult| {
                let wanted = page.objects.iter().filter(|object| object.location.as_ref().starts_with(&prefix));
                found.extend(wanted.filter_map(|object| listed(object, &folder)));
            };
            pages(&store, call, &asked, None, add).await?;
            Ok(found)
        });
        listed.map_err(failed)
    }

    fn attempts(&self, bytes: u64) -> Attempts {
        Attempts::new(&self.limits.for_bytes(bytes)).counted_in(&self.traffic)
    }

    fn object(&self, key: &str) -> std::result::Result<Object, Failure> {
        match &self.folder {
            Folder::Store(_) => self.store_object(key).map(Object::Store),
            Folder::Http(folder) => folder.with_key(key).map(Box::new).map(Object::Http),
        }
    }

    fn store_object(&self, key: &str) -> std::result::Result<StoreObject, Failure> {
        match &self.folder {
            Folder::Store(address) => StoreObject::in_folder(address, key, &self.options),
            Folder::Http(_) => Err(Failure::lasting(ErrorKind::NotSupported, "web servers can only be read")),
        }
    }

    #[cold]
    fn failed(&self, action: &str, key: &str, failure: Failure) -> Error {
        failure.into_error(action, format_args!("{}{key}", self.base))
    }
}

/// An object in a listing of a folder.
fn listed(object: &ObjectMeta, folder: &str) -> Option<ListedObject> {
    // Some tools create an empty object whose key is that of the folder.
    let key = object.location.as_ref().strip_prefix(folder).filter(|key| !key.is_empty())?;
    // The epoch stands for a time that the store does not send.
    let modified = Some(object.last_modified).filter(|time| time.timestamp() != 0);
    Some(ListedObject { key: key.to_owned(), bytes: object.size, modified: modified.map(SystemTime::from) })
}

/// The address of a folder in a store; `None` on a web server.
fn address(url: &str) -> std::result::Result<Option<Address>, Failure> {
    match Address::parse_with_endpoint(url).transpose()? {
        // An object in it would have another name in the store.
        Some(address) if format!("/{}", address.key).contains("//") => {
            Err(Failure::lasting(ErrorKind::NotSupported, "the URL contains a folder with an empty name"))
        }
        Some(address) => Ok(Some(address)),
        None if super::is_http(url) => Ok(None),
        None => Err(Failure::lasting(ErrorKind::NotSupported, "its scheme is not supported")),
    }
}

/// The objects and folders in the folder `url`, which ends with a slash. `base` is its URI, with which the entries begin.
///
/// # Errors
/// As [`list`](super::list).
pub(crate) fn list_folder(url: &str, base: &str, options: &Options) -> Result<Vec<Entry>> {
    let listed = address(url).and_then(|address| {
        let address = address.ok_or_else(list::no_listings)?;
        let bucket = base.strip_suffix(&address.key).unwrap_or(base).trim_end_matches('/');
        list::list(&address, bucket, options)
    });
    listed.map_err(|failure| failure.into_error("list", base))
}

/// Gets a whole object by one request, unless it breaks or the object is empty.
async fn get(object: Object, attempts: Attempts, max_bytes: u64) -> std::result::Result<(Bytes, Version), Failure> {
    let of_empty = attempts.of_same_call();
    let fetched = fetch(&object, attempts, ByteRange::Range(0..max_bytes.max(HEAD_BYTES)), None, BytesMut::new()).await;
    let fetched = match fetched {
        // There are no ranges of an empty object.
        Err(failure) if failure.kind == ErrorKind::OutOfRange => {
            let empty = of_empty.repeat(|| object.empty_version());
            return match empty.await? {
                Some(version) => Ok((Bytes::new(), version)),
                None => Err(failure),
            };
        }
        fetched => fetched?,
    };
    let size = fetched.identity.size;
    if size > max_bytes {
        let reason = format!("expected at most {max_bytes} bytes, found {size}");
        return Err(Failure::lasting(ErrorKind::NotSupported, reason));
    }
    let version = Version { etag: fetched.identity.etag, generation: fetched.identity.generation };
    Ok((fetched.bytes.freeze(), version))
}
