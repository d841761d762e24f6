//! What a new ntuple in an object store must not replace.

use std::sync::Arc;

use tupelo_format::store::MAX_ANCHOR_BYTES;
use tupelo_storage::{Keys, ObjectSink as Namespace, ObjectSource};

use crate::source::{DEFAULT_METADATA_CLASS, Metadata, Objects, anchor_key, with_default_metadata};
use crate::{Error, Result};

/// Refuses an ntuple that exists with the default class of metadata, where another class was chosen: pages of both would have
/// the same keys.
pub(super) fn check_metadata_class(namespace: &dyn Namespace, base: &str) -> Result<()> {
    let Some(other) = with_default_metadata(&namespace.keys()) else { return Ok(()) };
    match namespace.get(&anchor_key(&other, base), MAX_ANCHOR_BYTES) {
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => {
            let what = format!("it already exists with daos_metadata_class={DEFAULT_METADATA_CLASS}");
            Err(Error::invalid_argument(format!("{what}; use this class or another name")))
        }
    }
}

/// Refuses to replace an ntuple with another name, which a DAOS container may have under the same hash.
pub(super) fn check_name(namespace: &Arc<dyn Namespace>, base: &str, name: &str) -> Result<()> {
    let Keys::Daos { .. } = namespace.keys() else { return Ok(()) };
    let source: Arc<dyn ObjectSource> = Arc::clone(namespace) as _;
    let found = Objects::open(source, base, name)
        .and_then(|objects| Metadata::open(objects.session().clone(), Box::new(objects.store()), true));
    match found {
        Ok(metadata) => metadata.store().check_name(metadata.descriptor().name()),
        // What cannot be read may be replaced.
        Err(_) => Ok(()),
    }
}

/// Refuses names that would be mistaken for something else.
pub(super) fn check_base(base: &str, name: &str) -> Result<()> {
    if name.contains(".objects/") {
        let what = "this folder contains the objects of another ntuple; choose another folder";
        return Err(Error::invalid_argument(what).in_file(name));
    }
    if !base.contains(':') {
        return Ok(());
    }
    let uri = name.rsplit_once(':').map_or(name, |(uri, _)| uri);
    let what = "the URI of an object store names one ntuple and must not end with :NAME";
    Err(Error::invalid_argument(format!("{what}; write to {uri} instead")).in_file(name))
}

#[cold]
pub(super) fn not_an_ntuple(name: &str, why: &str) -> Error {
    let what = "an object that is not an ntuple exists under this name and is not replaced";
    Error::invalid_argument(format!("{what} ({why}); delete it first or choose another name")).in_file(name)
}
