//! Opening an ntuple without I/O. Functions over a ROOT file take the bytes fetched so far and either finish or return the
//! byte ranges that they need next; the caller fetches them and calls again. [`descriptor`] and [`page_list`] parse the
//! stored bytes of envelopes, wherever these come from.
//!
//! A file with the usual layout opens with one request (head and tail, [`first_guess`]) and at most two more.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use bytes::Bytes;

use crate::compression;
use crate::container::{self, Anchor, AnchorLinks, Attempt, FetchedRanges, Interrupt, Object};
use crate::descriptor::{AttributeSet, ClusterGroup, Descriptor};
use crate::envelope::{EnvelopeType, Footer, Header, MIN_ENVELOPE_BYTES, PageList};
use crate::locator::{EnvelopeLink, Locator};
use crate::wire::Memory;
use crate::{Error, Result};

/// Class name of the anchor in a ROOT file.
pub const ANCHOR_CLASS: &str = "ROOT::RNTuple";
/// Class name of the anchor before format 1.0.
pub const PRE_RELEASE_CLASS: &str = "ROOT::Experimental::RNTuple";
/// First bytes to fetch of a file: its header, the top directory and usually the ntuple's header.
pub const HEAD_BYTES: u64 = 16 << 10;
/// Last bytes to fetch of a file: usually key list, anchor, footer and the last page list.
pub const TAIL_BYTES: u64 = 64 << 10;
/// Larger envelopes are refused: 256 MiB describe some ten million fields or pages.
pub const MAX_ENVELOPE_BYTES: u64 = 256 << 20;
/// Maximum uncompressed size of all page lists of an ntuple, as a multiple of the file size. Sizes of up to
/// [`MAX_ENVELOPE_BYTES`] are always accepted.
pub const MAX_LIST_EXPANSION: u64 = 1024;
/// Larger anchors are refused: they have 78 bytes today and may only grow by appending.
pub const MAX_ANCHOR_BYTES: u64 = 64 << 10;
/// Memory of a field in the descriptor beyond its record, its name not counted, in bytes.
const FIELD_MEMORY: u64 = 1024;
/// Memory of a column or an alias column in the descriptor beyond its record, in bytes.
const COLUMN_MEMORY: u64 = 320;
/// Memory of a cluster group, an attribute set or extra type information in the descriptor beyond its record, in bytes.
const GROUP_MEMORY: u64 = 512;
/// Memory of a cluster beyond its list of columns, in bytes: its summary, and its part of a reading request.
const CLUSTER_MEMORY: u64 = 320;

/// The ranges to fetch before anything is known but the size of the file, in bytes.
pub fn first_guess(size: u64) -> Vec<Range<u64>> {
    let head = 0..HEAD_BYTES.min(size);
    let tail = size.saturating_sub(TAIL_BYTES).max(head.end)..size;
    vec![head, tail]
}

/// The ntuples that the file's directories list, newest cycle of each name only, in file order.
pub fn ntuples(fetched: &FetchedRanges) -> Attempt<Vec<Object>> {
    Ok(newest_ntuples(container::list_objects(fetched)?.into_iter()))
}

/// The ntuples among objects, newest cycle of each name only.
pub fn newest_ntuples(objects: impl Iterator<Item = Object>) -> Vec<Object> {
    let mut objects: Vec<Object> = objects.filter(|object| object.key.class_name == ANCHOR_CLASS).collect();
    let mut newest: HashMap<String, u16> = HashMap::new();
    for object in &objects {
        let cycle = newest.entry(object.path.clone()).or_default();
        *cycle = object.key.cycle.max(*cycle);
    }
    objects.retain(|object| newest.get(&object.path) == Some(&object.key.cycle));
    objects
}

/// The anchor that an object of class [`ANCHOR_CLASS`] holds.
pub fn anchor(fetched: &FetchedRanges, object: &Object) -> Attempt<Anchor> {
    if object.key.class_name != ANCHOR_CLASS {
        let what = format!("'{}' is a {}, not an RNTuple", object.path, object.key.class_name);
        return Err(Interrupt::Failed(Error::unsupported(what)));
    }
    check_anchor_size(object.key.stored_bytes().max(object.key.object_bytes.into()), object.key.seek_key)?;
    let payload = container::object_bytes(fetched, &object.key)?;
    let anchor = Anchor::read(&payload, object.key.seek_key).map_err(|e| e.within("anchor"))?;
    anchor.validate(fetched.size()).map_err(|e| e.within("anchor"))?;
    Ok(anchor)
}

/// The error for an ntuple whose anchor has the class [`PRE_RELEASE_CLASS`], with its format version.
pub fn pre_release(fetched: &FetchedRanges, object: &Object) -> Attempt<Error> {
    check_anchor_size(object.key.stored_bytes().max(object.key.object_bytes.into()), object.key.seek_key)?;
    let payload = container::object_bytes(fetched, &object.key)?;
    let version = match Anchor::pre_release_version(&payload, object.key.seek_key).map_err(|e| e.within("anchor"))? {
        Some([epoch, major, minor, patch]) => format!("the pre-release format {epoch}.{major}.{minor}.{patch}"),
        None => "a pre-release format without a version, from ROOT 6.28 or earlier".to_owned(),
    };
    Ok(Error::unsupported(format!(
        "it has {version}; neither this version nor ROOT 6.34 and later reads formats before 1.0: convert it with the \
         ROOT version that wrote it"
    )))
}

/// The anchor of an attribute set, which no directory lists.
pub fn attribute_set_anchor(fetched: &FetchedRanges, set: &AttributeSet) -> Attempt<Anchor> {
    let (offset, bytes) = set.anchor.in_file().map_err(|e| e.within("anchor"))?;
    check_anchor_size(bytes.max(set.anchor_length.into()), offset)?;
    let stored = fetched.get(offset, bytes)?;
    let payload = compression::decompress(&stored, u64::from(set.anchor_length), MAX_ANCHOR_BYTES)
        .map_err(|e| e.within("anchor").at(offset))?;
    let anchor = Anchor::read(&payload, offset).map_err(|e| e.within("anchor"))?;
    anchor.validate(fetched.size()).map_err(|e| e.within("anchor"))?;
    Ok(anchor)
}

fn check_anchor_size(bytes: u64, offset: u64) -> Result<()> {
    match bytes {
        ..=MAX_ANCHOR_BYTES => Ok(()),
        _ => Err(Error::limit(format!("anchor of {bytes} bytes exceeds the limit of {MAX_ANCHOR_BYTES}")).at(offset)),
    }
}

/// Stored bytes of envelopes in a ROOT file. The missing ranges of all are requested together.
pub fn stored_envelopes(
    fetched: &FetchedRanges,
    envelopes: impl Iterator<Item = (EnvelopeType, EnvelopeLink)>,
    max_key_size: u64,
) -> Attempt<Vec<Bytes>> {
    let one = |(kind, link): (EnvelopeType, EnvelopeLink)| {
        let (offset, nbytes) = link.locator.in_file().map_err(|e| e.within(kind.name()))?;
        check_envelope_size(kind, &link)?;
        container::payload(fetched, offset, nbytes, max_key_size).map_err(|interrupt| match interrupt {
            Interrupt::Failed(error) => Interrupt::Failed(error.within(kind.name())),
            missing => missing,
        })
    };
    container::together(envelopes.map(one))
}

/// Header and footer, joined and checked. `size` is the total stored size in bytes.
///
/// # Errors
/// Corrupt if they are damaged or contradict each other, limit if they take more than `memory`.
pub fn descriptor(stored: [&[u8]; 2], links: &AnchorLinks, size: u64, memory: &Memory) -> Result<Descriptor> {
    let (header, checksum, footer) = envelopes(stored, links, memory)?;
    for schema in [&header.schema, &footer.extension] {
        let names = schema.fields.iter().map(|field| field.name.len() as u64).sum::<u64>();
        let count = |count: usize, bytes: u64| (count as u64).saturating_mul(bytes);
        let fields = count(schema.fields.len(), FIELD_MEMORY).saturating_add(names);
        let columns = count(schema.columns.len() + schema.alias_columns.len(), COLUMN_MEMORY);
        let others = count(schema.extra_type_info.len(), GROUP_MEMORY);
        memory.take(fields.saturating_add(columns).saturating_add(others), "schema")?;
    }
    let groups = footer.cluster_groups.len() + footer.attribute_sets.len();
    memory.take((groups as u64).saturating_mul(GROUP_MEMORY), "cluster groups")?;
    // A schema begins in the header, wherever it ends.
    let footer_offset = links.footer.locator.offset();
    let descriptor = Descriptor::with_footer_at(header, checksum, footer, footer_offset);
    let descriptor = descriptor.map_err(|e| e.at(links.header.locator.offset()))?;
    check_page_lists(&descriptor, size).map_err(|e| e.within("footer").at(footer_offset))?;
    Ok(descriptor)
}

/// Limits the total size of the page lists, because a list shared by many cluster groups is read once per group.
/// Unreadable lists are not counted: they are an error only when their entries are read.
fn check_page_lists(descriptor: &Descriptor, size: u64) -> Result<()> {
    let (mut stored, mut unpacked) = (0u64, 0u64);
    // An object store is as large as its writer said.
    let mut objects = HashSet::new();
    let mut bytes_of_objects = 0u64;
    for link in descriptor.cluster_groups().iter().map(|group| group.page_list) {
        let bytes = link.locator.stored_bytes();
        let is_readable = match link.locator {
            Locator::File { offset, .. } => offset.checked_add(bytes).is_some_and(|end| end <= size),
            Locator::Unknown { .. } => false,
            _ => true,
        };
        if is_readable && check_envelope_size(EnvelopeType::PageList, &link).is_ok() {
            stored = stored.saturating_add(bytes);
            unpacked = unpacked.saturating_add(link.length);
            if !matches!(link.locator, Locator::File { .. }) && objects.insert(link.locator) {
                bytes_of_objects = bytes_of_objects.saturating_add(bytes);
            }
        }
    }
    let (place, size) = match objects.is_empty() {
        true => ("a file", size),
        false => ("objects", size.min(bytes_of_objects)),
    };
    if stored > size {
        let what = format!("page lists of {stored} bytes in {place} of {size} bytes overlap");
        return Err(Error::corrupt(what));
    }
    let most = size.saturating_mul(MAX_LIST_EXPANSION).max(MAX_ENVELOPE_BYTES);
    match unpacked <= most {
        true => Ok(()),
        false => Err(Error::limit(format!("page lists of {unpacked} bytes exceed the limit of {most}"))),
    }
}

/// Header with its checksum and footer, from their stored bytes.
///
/// # Errors
/// As [`descriptor`].
pub fn envelopes(stored: [&[u8]; 2], links: &AnchorLinks, memory: &Memory) -> Result<(Header, u64, Footer)> {
    let [header, footer] = stored;
    let header = envelope(header, EnvelopeType::Header, &links.header, memory)?;
    let at = links.header.locator.offset();
    let (header, checksum) = Header::read_within(&header, memory).map_err(|e| e.in_envelope(at))?;
    let footer = envelope(footer, EnvelopeType::Footer, &links.footer, memory)?;
    let footer = Footer::read_within(&footer, memory).map_err(|e| e.in_envelope(links.footer.locator.offset()))?;
    Ok((header, checksum, footer))
}

/// The page list of a cluster group from its stored bytes.
///
/// # Errors
/// Corrupt if it is damaged or contradicts the descriptor, limit if it takes more than `memory`.
pub fn page_list(stored: &[u8], descriptor: &Descriptor, group: &ClusterGroup, memory: &Memory) -> Result<PageList> {
    let offset = group.page_list.locator.offset();
    let bytes = envelope(stored, EnvelopeType::PageList, &group.page_list, memory)?;
    let list =
        PageList::read_within(bytes.into(), descriptor.header_checksum(), memory).map_err(|e| e.in_envelope(offset))?;
    memory.take((list.clusters().len() as u64).saturating_mul(CLUSTER_MEMORY), "clusters")?;
    descriptor.check_page_list(group, &list).map_err(|e| e.at(offset))?;
    Ok(list)
}

/// Checks the size of an envelope before it is fetched: compression does not make it larger.
///
/// # Errors
/// Corrupt for sizes that contradict each other, limit for an envelope that is too large.
pub fn check_envelope_size(kind: EnvelopeType, link: &EnvelopeLink) -> Result<()> {
    let (name, length) = (kind.name(), link.length);
    let (stored, offset) = (link.locator.stored_bytes(), link.locator.offset());
    if length < MIN_ENVELOPE_BYTES || stored > length {
        let what = format!("{name}: envelope has invalid sizes: {stored} bytes on disk, {length} bytes uncompressed");
        return Err(Error::corrupt(what).at(offset));
    }
    match length {
        ..=MAX_ENVELOPE_BYTES => Ok(()),
        _ => {
            let what = format!("{name}: envelope of {length} bytes exceeds the limit of {MAX_ENVELOPE_BYTES}");
            Err(Error::limit(what).at(offset))
        }
    }
}

fn envelope(stored: &[u8], kind: EnvelopeType, link: &EnvelopeLink, memory: &Memory) -> Result<Vec<u8>> {
    compression::decompress_within(stored, link.length, MAX_ENVELOPE_BYTES, memory)
        .map_err(|e| e.within(kind.name()).at(link.locator.offset()))
}
