//! Opening an ntuple without I/O. Every function takes the bytes fetched so far and either finishes or returns the byte
//! ranges that it needs next; the caller fetches them and calls again.
//!
//! A file with the usual layout opens with one request (head and tail, [`first_guess`]) and at most two more.

use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;

use crate::compression;
use crate::container::{self, Anchor, Attempt, FetchedRanges, Interrupt, Object};
use crate::descriptor::{AttributeSet, ClusterGroup, Descriptor};
use crate::envelope::{Footer, Header, MIN_ENVELOPE_BYTES, PageList};
use crate::locator::EnvelopeLink;
use crate::wire::Memory;
use crate::{Error, Result};

/// Class name of the anchor in a ROOT file.
pub const ANCHOR_CLASS: &str = "ROOT::RNTuple";
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
        _ => Err(Error::limit(format!("anchor of {bytes} bytes, at most {MAX_ANCHOR_BYTES} are read")).at(offset)),
    }
}

/// Header and footer, joined and checked.
pub fn descriptor(fetched: &FetchedRanges, anchor: &Anchor) -> Attempt<Descriptor> {
    let (header, checksum, footer) = envelopes(fetched, anchor)?;
    for schema in [&header.schema, &footer.extension] {
        let names = schema.fields.iter().map(|field| field.name.len() as u64).sum::<u64>();
        let count = |count: usize, bytes: u64| (count as u64).saturating_mul(bytes);
        let fields = count(schema.fields.len(), FIELD_MEMORY).saturating_add(names);
        let columns = count(schema.columns.len() + schema.alias_columns.len(), COLUMN_MEMORY);
        let others = count(schema.extra_type_info.len(), GROUP_MEMORY);
        fetched.memory().take(fields.saturating_add(columns).saturating_add(others), "schema")?;
    }
    let groups = footer.cluster_groups.len() + footer.attribute_sets.len();
    fetched.memory().take((groups as u64).saturating_mul(GROUP_MEMORY), "cluster groups")?;
    // A schema begins in the header, wherever it ends.
    let descriptor = Descriptor::with_footer_at(header, checksum, footer, anchor.seek_footer);
    let descriptor = descriptor.map_err(|e| e.at(anchor.seek_header))?;
    check_page_lists(&descriptor, fetched.size()).map_err(|e| e.within("footer").at(anchor.seek_footer))?;
    Ok(descriptor)
}

/// Limits the total size of the page lists, because a list shared by many cluster groups is read once per group.
/// Unreadable lists are not counted: they are an error only when their entries are read.
fn check_page_lists(descriptor: &Descriptor, file_size: u64) -> Result<()> {
    let (mut stored, mut unpacked) = (0u64, 0u64);
    for EnvelopeLink { length, locator } in descriptor.cluster_groups().iter().map(|group| group.page_list) {
        let Ok((offset, bytes)) = locator.in_file() else { continue };
        let is_inside = offset.checked_add(bytes).is_some_and(|end| end <= file_size);
        if is_inside && check_envelope_size("page list", bytes, length, offset).is_ok() {
            stored = stored.saturating_add(bytes);
            unpacked = unpacked.saturating_add(length);
        }
    }
    if stored > file_size {
        let what = format!("page lists of {stored} bytes in a file of {file_size} bytes: they overlap");
        return Err(Error::corrupt(what));
    }
    let most = file_size.saturating_mul(MAX_LIST_EXPANSION).max(MAX_ENVELOPE_BYTES);
    match unpacked <= most {
        true => Ok(()),
        false => Err(Error::limit(format!("page lists of {unpacked} bytes, at most {most} are read"))),
    }
}

/// Header with its checksum and footer, as they are stored.
pub fn envelopes(fetched: &FetchedRanges, anchor: &Anchor) -> Attempt<(Header, u64, Footer)> {
    check_envelope_size("header", anchor.nbytes_header, anchor.len_header, anchor.seek_header)?;
    check_envelope_size("footer", anchor.nbytes_footer, anchor.len_footer, anchor.seek_footer)?;
    // Request both together: one request instead of two.
    let header = stored(fetched, anchor.seek_header, anchor.nbytes_header, anchor, "header");
    let footer = stored(fetched, anchor.seek_footer, anchor.nbytes_footer, anchor, "footer");
    let (header, footer) = both(header, footer)?;
    let header = envelope(fetched, &header, anchor.len_header, "header", anchor.seek_header)?;
    let (header, checksum) =
        Header::read_within(&header, fetched.memory()).map_err(|e| e.in_envelope(anchor.seek_header))?;
    let footer = envelope(fetched, &footer, anchor.len_footer, "footer", anchor.seek_footer)?;
    let footer = Footer::read_within(&footer, fetched.memory()).map_err(|e| e.in_envelope(anchor.seek_footer))?;
    Ok((header, checksum, footer))
}

/// The page lists that links lead to, as they are stored; what is missing of all is requested together.
pub fn stored_page_lists<'l>(
    fetched: &FetchedRanges,
    anchor: &Anchor,
    links: impl Iterator<Item = &'l EnvelopeLink>,
) -> Attempt<Vec<Bytes>> {
    let one = |&EnvelopeLink { length, locator }: &EnvelopeLink| {
        let (offset, nbytes) = locator.in_file().map_err(|e| e.within("page list"))?;
        check_envelope_size("page list", nbytes, length, offset)?;
        stored(fetched, offset, nbytes, anchor, "page list")
    };
    container::together(links.map(one))
}

/// The page list of a cluster group from its stored bytes.
///
/// # Errors
/// Corrupt where it is damaged or contradicts the descriptor, limit where it takes more than `memory`.
pub fn page_list(stored: &[u8], descriptor: &Descriptor, group: &ClusterGroup, memory: &Memory) -> Result<PageList> {
    let EnvelopeLink { length, locator } = group.page_list;
    let offset = locator.offset();
    let bytes = compression::decompress_within(stored, length, MAX_ENVELOPE_BYTES, memory)
        .map_err(|e| e.within("page list").at(offset))?;
    let list =
        PageList::read_within(bytes.into(), descriptor.header_checksum(), memory).map_err(|e| e.in_envelope(offset))?;
    memory.take((list.clusters().len() as u64).saturating_mul(CLUSTER_MEMORY), "clusters")?;
    descriptor.check_page_list(group, &list).map_err(|e| e.at(offset))?;
    Ok(list)
}

fn stored(fetched: &FetchedRanges, offset: u64, nbytes: u64, anchor: &Anchor, name: &str) -> Attempt<Bytes> {
    container::payload(fetched, offset, nbytes, anchor.max_key_size).map_err(|interrupt| match interrupt {
        Interrupt::Failed(error) => Interrupt::Failed(error.within(name)),
        need => need,
    })
}

/// Before it is fetched: what is stored may not be more than what comes of it.
fn check_envelope_size(name: &str, stored: u64, length: u64, offset: u64) -> Result<()> {
    if length < MIN_ENVELOPE_BYTES || stored > length {
        let what = format!("{name}: an envelope of {length} bytes cannot have {stored} bytes on disk");
        return Err(Error::corrupt(what).at(offset));
    }
    match length {
        ..=MAX_ENVELOPE_BYTES => Ok(()),
        _ => {
            let what = format!("{name}: envelope of {length} bytes, at most {MAX_ENVELOPE_BYTES} are read");
            Err(Error::limit(what).at(offset))
        }
    }
}

fn envelope(fetched: &FetchedRanges, stored: &[u8], length: u64, name: &str, offset: u64) -> Result<Vec<u8>> {
    compression::decompress_within(stored, length, MAX_ENVELOPE_BYTES, fetched.memory())
        .map_err(|e| e.within(name).at(offset))
}

/// Combines two attempts so that the missing ranges of both are requested together.
fn both<A, B>(first: Attempt<A>, second: Attempt<B>) -> Attempt<(A, B)> {
    match (first, second) {
        (Ok(a), Ok(b)) => Ok((a, b)),
        (Err(Interrupt::Missing(mut first)), Err(Interrupt::Missing(second))) => {
            first.extend(second);
            Err(Interrupt::Missing(first))
        }
        (Err(interrupt), _) | (_, Err(interrupt)) => Err(interrupt),
    }
}
