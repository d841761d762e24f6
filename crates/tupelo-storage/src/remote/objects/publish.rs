//! Writing an object on a condition, which makes others visible.
//!
//! If the answer to a request is lost, the object may be written or not, and a repetition finds it written by another. Only
//! its content says by whom.

use bytes::{Bytes, BytesMut};
use object_store::{ObjectStore, PutMode, PutOptions, PutPayload, UpdateVersion};

use crate::error::ErrorKind;
use crate::net::{Attempts, Failure};
use crate::remote::answer::{ByteRange, Version};
use crate::remote::client::store_failure;
use crate::remote::object::Object;
use crate::remote::source::{HEAD_BYTES, fetch};
use crate::remote::store::StoreObject;

/// Creates an object, or replaces the expected version of it.
pub(super) async fn publish(
    object: StoreObject,
    mut attempts: Attempts,
    bytes: Bytes,
    expected: Option<Version>,
) -> Result<(), Failure> {
    let mode = match &expected {
        None => PutMode::Create,
        Some(Version { etag, generation }) => {
            PutMode::Update(UpdateVersion { e_tag: etag.clone(), version: generation.clone() })
        }
    };
    let (place, mut is_unclear) = (Object::Store(object.clone()), false);
    loop {
        let request = async {
            let options = PutOptions { mode: mode.clone(), attributes: object.attributes()?, ..PutOptions::default() };
            let payload = PutPayload::from_bytes(bytes.clone());
            object.store()?.put_opts(object.path(), payload, options).await.map(drop).map_err(store_failure)
        };
        let Err(failure) = attempts.run(request).await else { return Ok(()) };
        // The total time may have ended an attempt too.
        is_unclear |= matches!(failure.kind, ErrorKind::Timeout | ErrorKind::Unavailable);
        let mut failure = refusal(failure, expected.is_some());
        if is_unclear {
            // If the time is up, it is worth waiting a little more to know.
            let reading = if failure.is_transient { attempts.of_same_call() } else { attempts.anew() };
            match is_written(&place, reading, &bytes).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                // The condition may have failed because an earlier attempt has written the object.
                Err(unknown) if failure.kind == ErrorKind::Changed => {
                    let reason = format!("whether it was written is unknown: {}", unknown.reason);
                    failure = Failure::lasting(ErrorKind::Unavailable, reason);
                }
                Err(_) => {}
            }
        }
        attempts.again(failure, false).await?;
    }
}

/// Whether the object has this content.
async fn is_written(place: &Object, attempts: Attempts, bytes: &Bytes) -> Result<bool, Failure> {
    let len = bytes.len() as u64;
    match fetch(place, attempts, ByteRange::Range(0..len.max(HEAD_BYTES)), None, BytesMut::new()).await {
        Ok(found) => Ok(found.identity.size == len && found.bytes == bytes),
        Err(failure) if failure.kind == ErrorKind::NotFound => Ok(false),
        // It is empty.
        Err(failure) if failure.kind == ErrorKind::OutOfRange => Ok(bytes.is_empty()),
        Err(failure) => Err(failure),
    }
}

/// The failure of a condition that is not met says so.
fn refusal(failure: Failure, is_update: bool) -> Failure {
    let reason = match failure.kind {
        ErrorKind::Changed if failure.is_transient => return failure,
        ErrorKind::Changed if is_update => "another writer has changed it",
        ErrorKind::Changed => "it already exists",
        ErrorKind::NotFound if is_update => "it no longer exists",
        _ => return failure,
    };
    Failure::lasting(ErrorKind::Changed, reason)
}
