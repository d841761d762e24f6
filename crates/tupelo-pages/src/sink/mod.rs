//! The storage of an ntuple that is being written: sealed pages, envelopes and anchors, independent of the container.

mod attempt;
mod file;
mod mapping;
#[cfg(any(test, feature = "testing"))]
mod memory;
mod null;
mod objects;
mod paths;
mod sizes;
mod uploads;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use tupelo_format::compression::Compression;
use tupelo_format::container::AnchorLinks;
use tupelo_format::envelope::{EnvelopeType, PageInfo};
use tupelo_format::locator::Locator;
use tupelo_format::object::Object;
use tupelo_format::streamer::StreamerInfos;

pub use self::attempt::attempt_of_record;
pub use self::file::{FileSink, MAX_KEY_BYTES, datime};
pub use self::mapping::Mapping;
#[cfg(any(test, feature = "testing"))]
pub use self::memory::MemorySink;
pub use self::null::NullSink;
pub use self::objects::ObjectSink;
pub use self::sizes::{format_bytes, parse_bytes};
use crate::{Error, Result};

/// The bytes of a sealed page: compressed, and followed by its checksum if it has one.
#[derive(Debug, Clone, Copy)]
pub struct PageBytes<'a> {
    /// The bytes of the page as they are stored.
    pub(crate) bytes: &'a Bytes,
    /// Bytes of the checksum among `bytes`; locators do not count them.
    pub(crate) checksum_bytes: usize,
    /// The pages of a column have the same number.
    pub(crate) column: u32,
}

impl PageBytes<'_> {
    /// Bytes of the page without its checksum.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.bytes.len().saturating_sub(self.checksum_bytes) as u64
    }
}

/// What a [`PageSink`] has stored.
#[derive(Debug, Clone, Copy)]
pub enum Stored {
    /// A header, page list or footer.
    Envelope(Locator),
    /// All pages of one call of [`PageSink::put_pages`], given by the first and the last of them.
    Pages(PageInfo, PageInfo),
    /// The anchor of an attribute set.
    Anchor(Locator),
}

/// Stores one ntuple and its attribute sets. Readers see what was published once a checkpoint, or the end of the file,
/// has made it durable.
pub trait PageSink: fmt::Debug + Send + Sync {
    /// The name of the target, for messages.
    fn name(&self) -> &str;

    /// Returns an error once nothing can be written any more.
    fn check_open(&self) -> Result<()>;

    /// Bytes stored so far, including those of other ntuples. The difference of two positions is what was stored between.
    fn position(&self) -> Result<u64>;

    /// Begins an ntuple; `cycle` is the cycle of an existing one that is continued.
    fn begin(&self, path: &str, title: &str, cycle: Option<u16>) -> Result<()>;

    /// The sink of an attribute set, whose pages and envelopes are stored before its anchor.
    fn attribute_set(self: Arc<Self>) -> Arc<dyn PageSink>;

    /// Whether each call of [`PageSink::put_pages`] must have all pages of a cluster, and its number.
    fn stores_whole_clusters(&self) -> bool {
        false
    }

    /// Whether columns may list the same page.
    fn shares_pages(&self) -> bool {
        true
    }

    /// Stores pages of one cluster, ordered by column, and returns the locator of each. The number of the cluster matters
    /// only where [`stores_whole_clusters`](PageSink::stores_whole_clusters).
    fn put_pages(&self, cluster: u64, pages: &[PageBytes<'_>]) -> Result<Vec<Locator>>;

    /// Stores a compressed envelope and returns its locator.
    fn put_envelope(&self, kind: EnvelopeType, envelope: &[u8]) -> Result<Locator>;

    /// Stores the anchor of an attribute set, for the footer of its ntuple; returns its locator and its length.
    fn put_anchor(&self, name: &str, links: &AnchorLinks) -> Result<(Locator, u32)>;

    /// Makes the path of an ntuple refer to these envelopes from the next checkpoint on.
    fn publish(&self, path: &str, title: &str, links: &AnchorLinks) -> Result<()>;

    /// Marks what was stored as unused once the next state is complete.
    fn release(&self, stored: Stored);

    /// Makes everything published so far readable and durable.
    fn checkpoint(&self) -> Result<()>;

    /// Whether there are checkpoints before the end.
    fn has_checkpoints(&self) -> bool {
        true
    }

    /// Ends an ntuple.
    fn end(&self, path: &str);

    /// Abandons an ntuple. A new one is removed, including the state of its last checkpoint; a continued one keeps that
    /// state.
    fn abandon(&self, path: &str) -> Result<()>;

    /// Notes that the caller receives the error that prevents the file from being finished; it is not reported again.
    fn reported(&self);
}

/// A file or a place in a store, shared by the writers of its ntuples. Nothing is visible before
/// [`commit`](Target::commit), or a checkpoint of an existing file.
pub trait Target: PageSink {
    /// Refuses a path at which a new ntuple would shadow another object, or could not be found.
    fn check_free(&self, path: &str) -> Result<()>;

    /// The same target for one ntuple, which can be [abandoned](PageSink::abandon).
    fn for_ntuple(&self) -> Arc<dyn PageSink>;

    /// The file, for objects other than ntuples.
    fn file(&self) -> Result<&FileSink>;

    /// Adds layouts of classes beside the ntuples.
    fn add_streamer_info(&self, infos: &StreamerInfos) -> Result<()>;

    /// Stores an object beside the ntuples, with the layouts of its classes.
    fn put_object(&self, path: &str, title: &str, object: &Object, compression: Compression) -> Result<()>;

    /// Makes everything visible under the target's name.
    fn commit(&self) -> Result<()>;

    /// Removes what is not visible; returns where the last checkpoint is kept, if not under the target's name.
    fn abort(&self) -> Result<Option<String>>;

    /// Aborts a target whose writer was dropped; returns a warning, if one is needed.
    fn forget(&self) -> Option<String>;
}

/// Checks that this is the process that began to write. In a forked child, what a writer knows may be outdated, and the
/// thread that holds its lock may not exist.
fn check_process(owner: u32, what: &str) -> Result<()> {
    let here = std::process::id();
    match owner == here {
        true => Ok(()),
        false => Err(Error::invalid_argument(format!(
            "process {here} cannot use a {what} opened for writing by process {owner}; open its own {what} in each \
             process"
        ))),
    }
}

/// The last part of an object's path: its name without directories.
pub fn name_of(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}
