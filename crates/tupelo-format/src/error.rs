//! The errors of bytes.

use std::borrow::Cow;
use std::fmt;

/// The ways in which bytes can be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The bytes contradict the format, their own checksum or themselves.
    Corrupt,
    /// The bytes end before the file does.
    CutOff,
    /// The bytes are of another format.
    OtherFormat,
    /// The bytes are (or may be) legal, but use something that this version does not know.
    Unsupported,
    /// The bytes exceed a limit of this version: nesting, names, sizes.
    Limit,
    /// The bytes need more memory than the caller allows.
    Memory,
}

/// Why bytes were refused, and where in the file (or envelope) the reason lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    what: Cow<'static, str>,
    offset: Option<u64>,
    /// Where the envelope lies from whose start `offset` counts.
    envelope: Option<u64>,
}

/// The result of everything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Bytes that contradict the format; `what` is one sentence without a full stop.
    #[cold]
    #[cfg_attr(feature = "census", track_caller)]
    pub fn corrupt(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Corrupt, what.into())
    }

    /// A file without its end.
    #[cold]
    #[cfg_attr(feature = "census", track_caller)]
    pub fn cut_off(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::CutOff, what.into())
    }

    /// Bytes of another format.
    #[cold]
    #[cfg_attr(feature = "census", track_caller)]
    pub fn other_format(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::OtherFormat, what.into())
    }

    /// Bytes that use something unknown to this version.
    #[cold]
    #[cfg_attr(feature = "census", track_caller)]
    pub fn unsupported(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Unsupported, what.into())
    }

    /// Bytes that exceed a limit.
    #[cold]
    #[cfg_attr(feature = "census", track_caller)]
    pub fn limit(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Limit, what.into())
    }

    /// Bytes that need more memory than the caller allows.
    #[cold]
    #[cfg_attr(feature = "census", track_caller)]
    pub fn memory(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Memory, what.into())
    }

    #[cfg_attr(feature = "census", track_caller)]
    fn new(kind: ErrorKind, what: Cow<'static, str>) -> Self {
        #[cfg(feature = "census")]
        census::note(std::panic::Location::caller());
        Self { kind, what, offset: None, envelope: None }
    }

    /// The same error at a byte offset, unless it has one already.
    #[must_use]
    pub fn at(mut self, offset: u64) -> Self {
        self.offset.get_or_insert(offset);
        self
    }

    /// The same error in the envelope that lies at an offset of the file, from whose start offsets were counted so far.
    #[must_use]
    pub fn in_envelope(mut self, envelope: u64) -> Self {
        match self.offset {
            Some(_) => self.envelope = self.envelope.or(Some(envelope)),
            None => self.offset = Some(envelope),
        }
        self
    }

    /// The same error, prefixed with the name of what was being read: `header: field 3: …`.
    #[must_use]
    pub fn within(mut self, outer: impl fmt::Display) -> Self {
        self.what = format!("{outer}: {}", self.what).into();
        self
    }

    /// In which way the bytes were refused.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What was wrong, without the offset.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Where: in bytes from the start of the file, or of the [`Error::envelope`] if there is one.
    pub fn offset(&self) -> Option<u64> {
        self.offset
    }

    /// Where the envelope lies, stored and perhaps compressed, in which [`Error::offset`] counts.
    pub fn envelope(&self) -> Option<u64> {
        self.envelope
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match (self.offset, self.envelope) {
            (Some(offset), None) => write!(f, " (at byte {offset})"),
            (Some(offset), Some(envelope)) => write!(f, " (at byte {offset} of the envelope at byte {envelope})"),
            (None, _) => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

/// Records the source locations that created an error, so that the tests can check that each of them is covered.
#[cfg(feature = "census")]
pub mod census {
    use std::collections::BTreeSet;
    use std::panic::Location;
    use std::sync::{Mutex, PoisonError};

    static RAISED: Mutex<BTreeSet<(&'static str, u32)>> = Mutex::new(BTreeSet::new());

    pub(super) fn note(place: &'static Location<'static>) {
        RAISED.lock().unwrap_or_else(PoisonError::into_inner).insert((place.file(), place.line()));
    }

    /// File, as passed to the compiler, and line of every location.
    pub fn raised() -> Vec<(&'static str, u32)> {
        RAISED.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_offset_counts() {
        let error = Error::corrupt("wrong").at(3).at(7).within("page list");
        assert_eq!(error.to_string(), "page list: wrong (at byte 3)");
        assert_eq!((error.kind(), error.what(), error.offset()), (ErrorKind::Corrupt, "page list: wrong", Some(3)));
        let inside = error.in_envelope(500).in_envelope(9);
        assert_eq!(inside.to_string(), "page list: wrong (at byte 3 of the envelope at byte 500)");
        assert_eq!((inside.offset(), inside.envelope()), (Some(3), Some(500)));
        assert_eq!(Error::limit("wrong").in_envelope(500).to_string(), "wrong (at byte 500)");
        assert_eq!(Error::unsupported("wrong").to_string(), "wrong");
    }
}
