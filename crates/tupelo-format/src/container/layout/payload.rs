//! The payload of an object's record.

use crate::Result;
use crate::compression::{Compression, compress};

/// The payload of an object's record, compressed or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// The bytes to store.
    pub(super) stored: Vec<u8>,
    /// Their number without compression.
    pub(super) object_bytes: usize,
    /// Bytes of the key from whose start references in them count; `None` without references.
    pub(super) key_bytes: Option<u16>,
}

impl From<Vec<u8>> for Payload {
    /// A payload without compression.
    fn from(stored: Vec<u8>) -> Self {
        Self { object_bytes: stored.len(), stored, key_bytes: None }
    }
}

impl Payload {
    /// The payload of an object with references, which count from the start of a key of this many bytes.
    pub fn behind_key(self, key_bytes: u16) -> Self {
        Self { key_bytes: Some(key_bytes), ..self }
    }

    /// A compressed payload, or the bytes as they are if compression does not make them smaller.
    ///
    /// # Errors
    /// Limit if the codec cannot get the memory that it needs.
    pub fn compressed(object: &[u8], compression: Compression) -> Result<Self> {
        let mut stored = Vec::new();
        compress(compression, object, &mut stored)?;
        Ok(Self { stored, object_bytes: object.len(), key_bytes: None })
    }

    /// The number of bytes without compression, which is never less than what is stored.
    pub fn object_bytes(&self) -> usize {
        self.object_bytes
    }
}
