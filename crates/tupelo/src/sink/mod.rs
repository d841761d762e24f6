//! Where an ntuple that is being written goes: sealed pages, envelopes and anchors, without a word on how they are stored.

mod file;
mod paths;

use std::fmt;

use tupelo_format::envelope::PageInfo;
use tupelo_format::locator::{EnvelopeLink, Locator};

pub(crate) use self::file::{FileSink, MAX_KEY_BYTES, datime};
use crate::Result;

/// A page that is compressed and has its checksum, if any, behind it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SealedPage<'a> {
    pub(crate) bytes: &'a [u8],
    /// Bytes of the checksum among them, which locators do not count.
    pub(crate) checksum_bytes: usize,
}

impl SealedPage<'_> {
    /// Bytes of the page itself.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.bytes.len().saturating_sub(self.checksum_bytes) as u64
    }
}

/// What an anchor says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Links {
    /// Epoch, major, minor and patch version of the format.
    pub(crate) version: [u16; 4],
    pub(crate) header: EnvelopeLink,
    pub(crate) footer: EnvelopeLink,
}

/// Something that a [`PageSink`] stored.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stored {
    Envelope(Locator),
    /// All pages of one call of [`PageSink::put_pages`], by the first and the last of them.
    Pages(PageInfo, PageInfo),
    Anchor(Locator),
}

/// Stores one ntuple and its attribute sets, beside others. Nothing is visible to readers before it is published and then
/// made durable by a checkpoint, or by the end of the whole.
pub(crate) trait PageSink: fmt::Debug + Send + Sync {
    /// What is written to, for messages.
    fn name(&self) -> &str;

    /// Refuses what comes after the end: nothing would become of it.
    fn check_open(&self) -> Result<()>;

    /// Bytes that were stored so far, also of other ntuples: the difference of two is what was stored in between.
    fn position(&self) -> Result<u64>;

    /// Notes that an ntuple begins; `cycle` is that of one that is continued.
    fn begin(&self, path: &str, title: &str, cycle: Option<u16>) -> Result<()>;

    /// Stores pages; gives the place of each.
    fn put_pages(&self, pages: &[SealedPage<'_>]) -> Result<Vec<Locator>>;

    /// Stores an envelope, which is compressed; gives its place.
    fn put_envelope(&self, envelope: &[u8]) -> Result<Locator>;

    /// Stores the anchor of an attribute set, to which the footer of its ntuple will lead; gives its place and its length.
    fn put_anchor(&self, name: &str, links: &Links) -> Result<(Locator, u32)>;

    /// Lets the path of an ntuple lead to these envelopes from the next checkpoint on.
    fn publish(&self, path: &str, title: &str, links: &Links) -> Result<()>;

    /// Says that something is not used any more once the next state is complete.
    fn release(&self, stored: Stored);

    /// Makes what is published so far readable and durable.
    fn checkpoint(&self) -> Result<()>;

    /// Notes that an ntuple is finished.
    fn end(&self, path: &str);

    /// Forgets an ntuple that was begun. One that is new is gone, what a checkpoint had of it included; one that was
    /// continued stays as it was at the last checkpoint.
    fn abandon(&self, path: &str) -> Result<()>;

    /// Records that the caller gets the error that keeps the file from being finished, so that it is not reported again.
    fn reported(&self);
}
