//! Labels and UUIDs.

use twox_hash::XxHash64;

use crate::abi::LABEL_MAX_LEN;
use crate::error::{DER_INVAL, Outcome};

/// A UUID in the order of its text.
pub(crate) type Uuid = [u8; 16];

/// How a caller names a pool or a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Name {
    Label(String),
    Uuid(Uuid),
}

impl Name {
    /// A label, or else a UUID.
    pub(crate) fn parse(text: &str) -> Outcome<Self> {
        match (is_label(text), parse_uuid(text)) {
            (true, _) => Ok(Self::Label(text.to_owned())),
            (false, Some(uuid)) => Ok(Self::Uuid(uuid)),
            (false, None) => Err(DER_INVAL),
        }
    }

    /// Whether this names what has the label and the UUID.
    pub(crate) fn is(&self, label: &str, uuid: &Uuid) -> bool {
        match self {
            Self::Label(wanted) => wanted == label,
            Self::Uuid(wanted) => wanted == uuid,
        }
    }
}

/// `daos_label_is_valid`: 1 to 127 of `A-Z a-z 0-9 . _ : -`, and not a UUID.
pub(crate) fn is_label(text: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    (1..=LABEL_MAX_LEN).contains(&text.len()) && text.bytes().all(is_known) && parse_uuid(text).is_none()
}

/// The UUID of a text such as `01234567-89ab-cdef-0123-456789abcdef`.
fn parse_uuid(text: &str) -> Option<Uuid> {
    let is_dash = |index| matches!(index, 8 | 13 | 18 | 23);
    if text.len() != 36 || text.bytes().enumerate().any(|(index, byte)| is_dash(index) != (byte == b'-')) {
        return None;
    }
    let digits: Option<Vec<u8>> =
        text.chars().filter(|&c| c != '-').map(|c| u8::try_from(c.to_digit(16)?).ok()).collect();
    let bytes: Vec<u8> = digits?.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    bytes.try_into().ok()
}

/// The UUID that is computed from a text: always the same.
pub(crate) fn uuid_of(text: &str) -> Uuid {
    let halves = [XxHash64::oneshot(1, text.as_bytes()), XxHash64::oneshot(2, text.as_bytes())];
    let mut uuid = [0; 16];
    uuid[..8].copy_from_slice(&halves[0].to_be_bytes());
    uuid[8..].copy_from_slice(&halves[1].to_be_bytes());
    // Version 8, "custom", of RFC 9562.
    uuid[6] = uuid[6] & 0x0f | 0x80;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}
