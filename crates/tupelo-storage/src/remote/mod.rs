//! Objects on HTTP servers and in S3, GCS and Azure.
//!
//! # Reading
//! [`open`] costs one round trip of two parallel requests: for the last 64 KiB, whose answer says how large the object
//! is and which version it has, and for the first 16 KiB. Both are kept, because files are opened by their two ends.
//! Azure has no requests for the end of an object: there, one request for the first 64 KiB opens it.
//!
//! Reads merge near ranges and split large ones ([`REMOTE_HINTS`]), have several requests in flight, and continue
//! truncated answers at the byte that was reached. No request asks for several ranges: S3 does not support that.
//!
//! # Writing
//! [`create`] uploads parts of [`PART_BYTES`], a few at a time. The first part is held back, so that the header of a
//! file can be patched until the end. HTTP servers get the whole object by one `PUT`, from a temporary file.
//!
//! # Credentials
//! | store | where they come from, in this order |
//! |---|---|
//! | HTTP | option `bearer_token`; user name and password in the URL; WLCG token discovery, for `https` |
//! | S3 | options `aws_…`; `AWS_…` variables; the profile of `~/.aws`; web identity, container and instance metadata |
//! | GCS | options `google_…`; `GOOGLE_…` variables; application default credentials; instance metadata |
//! | Azure | options `azure_…`; `AZURE_…` variables; managed identity |
//!
//! `anonymous=true` sends none. Proxies (`HTTPS_PROXY`) come from the environment, and so do certificates
//! (`SSL_CERT_FILE`, `SSL_CERT_DIR`) unless the option `ca_certificates` names a file. Names in messages have no user name,
//! password and query string.

mod answer;
mod client;
mod credentials;
mod explanation;
mod http;
mod list;
mod object;
mod objects;
mod put;
mod settings;
mod source;
mod store;
#[cfg(test)]
mod tests;
mod upload;

use std::sync::Arc;

use self::http::HttpObject;
use self::object::Object;
use self::put::PutSink;
use self::store::{Address, StoreObject};
use self::upload::UploadSink;
use crate::error::{ErrorKind, Result};
use crate::net::{Entry, Failure, Options, display_name};
use crate::sink::ByteSink;
use crate::source::ByteSource;

pub(crate) use self::answer::Version;
pub use self::http::MAX_WHOLE_BYTES;
pub use self::objects::put_requests;
pub(crate) use self::objects::{RemoteObjects, Wanted, list_folder};
pub use self::source::{HEAD_BYTES, REMOTE_HINTS, RemoteSource, TAIL_BYTES};
pub use self::upload::PART_BYTES;

/// Whether [`open`] supports the scheme of a name: `http`, `https`, `s3`, `s3a`, `gs`, `gcs`, `az`, `azure`, `abfs` or
/// `abfss`.
pub fn is_remote(name: &str) -> bool {
    is_http(name) || Address::parse(name).is_some()
}

/// Opens an object.
///
/// # Errors
/// [`ErrorKind::NotFound`], [`ErrorKind::Denied`], [`ErrorKind::NotSupported`] for URLs that name no object and servers
/// that cannot send parts of a large one, and [`ErrorKind::Timeout`] or [`ErrorKind::Unavailable`] after the last
/// attempt.
pub fn open(url: &str, options: &Options) -> Result<Arc<dyn ByteSource>> {
    Ok(Arc::new(open_source(url, options, true)?))
}

/// As [`open`], without the first bytes of the object unless `with_head`.
pub(crate) fn open_source(url: &str, options: &Options, with_head: bool) -> Result<RemoteSource> {
    let name = display_name(url);
    let object = object(url, options).map_err(|failure| failure.into_error("open", &name))?;
    RemoteSource::open(object, name, &options.limits(), with_head)
}

/// Creates an object, or replaces an existing one at commit.
///
/// # Errors
/// [`ErrorKind::NotSupported`] for URLs that name no object; errors of the store come later.
pub fn create(url: &str, options: &Options) -> Result<Box<dyn ByteSink>> {
    let name = display_name(url);
    match object(url, options).map_err(|failure| failure.into_error("create", &name))? {
        Object::Store(object) => Ok(Box::new(UploadSink::new(object, name, options.limits(), PART_BYTES))),
        Object::Http(object) => Ok(Box::new(PutSink::new(*object, name)?)),
    }
}

/// The objects and folders in a folder of a store, in order of their names; for the URL of an object, the object.
///
/// # Errors
/// [`ErrorKind::NotFound`] if there is neither, [`ErrorKind::NotSupported`] for `http` and `https`, which have no
/// listings, and errors of the store.
pub fn list(url: &str, options: &Options) -> Result<Vec<Entry>> {
    let name = display_name(url);
    let listed = match Address::parse(url) {
        Some(Ok(address)) => {
            let base = url.strip_suffix(&address.key).unwrap_or(url).trim_end_matches('/');
            list::list(&address, base, options)
        }
        Some(Err(failure)) => Err(failure),
        None => Err(list::no_listings()),
    };
    listed.map_err(|failure| failure.into_error("list", &name))
}

fn object(url: &str, options: &Options) -> std::result::Result<Object, Failure> {
    match Address::parse(url) {
        Some(address) => Ok(Object::Store(StoreObject::new(address?, options)?)),
        None if is_http(url) => Ok(Object::Http(Box::new(HttpObject::new(url, options)?))),
        None => Err(Failure::lasting(ErrorKind::NotSupported, "its scheme is not supported")),
    }
}

fn is_http(url: &str) -> bool {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("http" | "https"))
}
