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
    /// Whether references in them count from the start of a key with 64-bit offsets.
    pub(super) is_streamed: bool,
}

impl From<Vec<u8>> for Payload {
    /// A payload without compression.
    fn from(stored: Vec<u8>) -> Self {
        Self { object_bytes: stored.len(), stored, is_streamed: false }
    }
}

impl Payload {
    /// The payload of an object with references, which count from the start of a key of
    /// [`streamed_key_bytes`](super::super::streamed_key_bytes).
    pub fn streamed(self) -> Self {
        Self { is_streamed: true, ..self }
    }

    /// A compressed payload, or the bytes as they are if compression does not make them smaller.
    ///
    /// # Errors
    /// Limit if the codec cannot get the memory that it needs.
    pub fn compressed(object: &[u8], compression: Compression) -> Result<Self> {
        let mut stored = Vec::new();
        compress(compression, object, &mut stored)?;
        Ok(Self { stored, object_bytes: object.len(), is_streamed: false })
    }

    /// The number of bytes without compression, which is never less than what is stored.
    pub fn object_bytes(&self) -> usize {
        self.object_bytes
    }
}
