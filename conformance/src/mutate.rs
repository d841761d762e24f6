//! Random damage to files, without and with repaired checksums. The same number gives the same damage.

use bytes::Bytes;
use tupelo_format::container::{FetchedRanges, RecordKind, walk_keys};
use tupelo_format::envelope::EnvelopeType;
use tupelo_format::locator::Locator;

use crate::model::{Model, Stage};

/// A small generator of random numbers (SplitMix64): tests need no better one, and always the same.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Numbers that follow from the seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Any number.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below `end`; 0 where that is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next().checked_rem(end).unwrap_or(0)
    }

    /// One of several.
    pub fn choose<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

/// Numbers at which readers break.
const NUMBERS: [u64; 16] = [
    0,
    1,
    2,
    7,
    0x7f,
    0xff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 40,
    1 << 48,
    1 << 55,
    1 << 62,
    1 << 63,
    i64::MAX as u64,
    u64::MAX,
];

/// Changes a few bytes, or cuts, doubles or moves some.
pub fn bytes(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() as u64) as usize;
        let span = (random.below(24) as usize + 1).min(bytes.len() - at);
        match random.below(8) {
            0 | 1 if span > 0 => bytes[at] ^= 1 << random.below(8),
            2 if span > 0 => bytes[at] = random.next() as u8,
            3 | 4 => {
                let number = *random.choose(&NUMBERS);
                let width = (*random.choose(&[1, 2, 4, 8])).min(span);
                let word = if random.below(2) == 0 { number.to_le_bytes() } else { number.to_be_bytes() };
                bytes[at..at + width].copy_from_slice(&word[..width]);
            }
            5 => drop(bytes.drain(at..at + span)),
            6 => bytes.extend_from_within(at..at + span),
            _ => {
                let piece = bytes[at..at + span].to_vec();
                let to = random.below(bytes.len() as u64 + 1) as usize;
                bytes.splice(to..to, piece);
            }
        }
    }
    if random.below(16) == 0 {
        bytes.truncate(random.below(bytes.len() as u64) as usize);
    }
}

/// Bits of a word in a ROOT file that say that it is a byte count, and all that may be set beside them in one.
const BYTE_COUNT: [u32; 2] = [0x4000_0000, 0xc000_0000];

/// Changes numbers, references, counters and names in an uncompressed record, but no byte count: so the objects that the
/// byte counts enclose are still read. Does nothing if the file has no such record.
pub fn values(file: &mut [u8], random: &mut Random) {
    let mut fetched = FetchedRanges::new(file.len() as u64);
    fetched.provide(0, Bytes::copy_from_slice(file));
    let records = walk_keys(&fetched).unwrap_or_default().into_iter();
    let payloads = records.filter_map(|record| match record.kind {
        RecordKind::Key(key) if key.nbytes == u32::from(key.key_bytes) + key.object_bytes && key.object_bytes >= 16 => {
            let start = record.offset as usize;
            Some(start + usize::from(key.key_bytes)..start + key.nbytes as usize)
        }
        _ => None,
    });
    let payloads: Vec<_> = payloads.collect();
    if payloads.is_empty() {
        return;
    }
    let Some(payload) = file.get_mut(random.choose(&payloads).clone()) else { return };
    for _ in 0..=random.below(6) {
        value(payload, random);
    }
}

/// Changes one of them.
fn value(payload: &mut [u8], random: &mut Random) {
    let width = *random.choose(&[1, 2, 4, 4, 8, 16]);
    let last = (payload.len() - width + 1) as u64;
    let at = random.below(last) as usize;
    let is_count = |start: usize| {
        let word =
            payload.get(start..start + 4).map_or(0, |word| u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
        word & BYTE_COUNT[1] == BYTE_COUNT[0] && (word & !BYTE_COUNT[0]) as usize <= payload.len()
    };
    if (at.saturating_sub(3)..at + width).any(is_count) {
        return;
    }
    let old = &payload[at..at + width];
    let new = match random.below(4) {
        // A number.
        0 => random.choose(&NUMBERS).to_be_bytes()[8 - width.min(8)..].to_vec(),
        1 => {
            let word = old.iter().fold(0u64, |word, &byte| word << 8 | u64::from(byte));
            let near = word.wrapping_add(random.below(7)).wrapping_sub(3);
            near.to_be_bytes()[8 - width.min(8)..].to_vec()
        }
        // Names, references to objects and classes, and counters of other members.
        _ => {
            let from = random.below(last) as usize;
            payload[from..from + width].to_vec()
        }
    };
    payload[at..at + new.len()].copy_from_slice(&new);
}

/// A file with something wrong in it, made from a whole one.
pub fn file(whole: Bytes, random: &mut Random) -> Bytes {
    match (random.below(4), Model::load(&whole)) {
        (1.., Ok(mut model)) => {
            for _ in 0..=random.below(2) {
                record(&mut model, random);
            }
            model.build().unwrap_or(whole)
        }
        _ => {
            let mut file = whole.to_vec();
            bytes(&mut file, random);
            file.into()
        }
    }
}

/// Changes one record, or the bytes of one before checksums are made.
fn record(model: &mut Model, random: &mut Random) {
    let number = *random.choose(&NUMBERS);
    let near = |value: u64, random: &mut Random| value.wrapping_add(random.below(7)).wrapping_sub(3);
    let seed = random.next();
    match random.below(12) {
        kind @ 0..=2 => {
            let kind = [EnvelopeType::Header, EnvelopeType::Footer, EnvelopeType::PageList][kind as usize];
            model.edit_bytes(Stage::Payload(kind), move |payload| bytes(payload, &mut Random::new(seed)));
        }
        3 => model.edit_anchor(move |anchor| {
            let mut random = Random::new(seed);
            let word = match random.below(7) {
                0 => &mut anchor.seek_header,
                1 => &mut anchor.nbytes_header,
                2 => &mut anchor.len_header,
                3 => &mut anchor.seek_footer,
                4 => &mut anchor.nbytes_footer,
                5 => &mut anchor.len_footer,
                _ => &mut anchor.max_key_size,
            };
            *word = if random.below(2) == 0 { near(*word, &mut random) } else { number };
        }),
        4 => model.edit_footer(move |footer| {
            let mut random = Random::new(seed);
            let at = random.below(footer.cluster_groups.len() as u64) as usize;
            let Some(group) = footer.cluster_groups.get_mut(at) else { return };
            match random.below(5) {
                0 => group.min_entry = near(group.min_entry, &mut random),
                1 => group.entry_span = number,
                2 => group.clusters = near(group.clusters.into(), &mut random) as u32,
                3 => group.page_list.length = number,
                _ => group.page_list.locator = locator(group.page_list.locator, &mut random),
            }
        }),
        5 => {
            let fields = &mut model.header.schema.fields;
            let count = fields.len() as u64;
            let Some(field) = fields.get_mut(random.below(count) as usize) else { return };
            match random.below(7) {
                0 => field.parent = random.below(count) as u32,
                1 => field.role = random.below(6) as u16,
                2 => field.array_size = Some(number),
                3 => field.source = Some(random.below(count) as u32),
                4 => field.array_size = None,
                5 => field.type_name = (*random.choose(&TYPES)).to_owned(),
                _ => field.name.push('x'),
            }
        }
        6 => {
            let fields = model.header.schema.fields.len() as u64;
            let columns = &mut model.header.schema.columns;
            let at = random.below(columns.len() as u64) as usize;
            let Some(column) = columns.get_mut(at) else { return };
            match random.below(6) {
                0 => column.column_type = random.below(0x20) as u16,
                1 => column.bits = random.below(70) as u16,
                2 => column.field = random.below(fields) as u32,
                3 => column.representation = random.below(3) as u16,
                4 => column.first_element = Some(near(random.below(20), random) as i64),
                _ => column.range = Some((f64::from_bits(random.next()), f64::from_bits(random.next()))),
            }
        }
        7 => {
            if let Some(cluster) = model.groups.first_mut().and_then(|group| group.clusters.first_mut()) {
                match random.below(3) {
                    0 => cluster.summary.first_entry = number,
                    1 => cluster.summary.entries = near(cluster.summary.entries, random) & ((1 << 56) - 1),
                    _ => cluster.summary.flags = random.next() as u8,
                }
            }
        }
        _ => page(model, random),
    }
}

/// Changes a column of a cluster, or one of its pages.
fn page(model: &mut Model, random: &mut Random) {
    let columns: Vec<_> = model.groups.iter_mut().flat_map(|g| &mut g.clusters).flat_map(|c| &mut c.columns).collect();
    let at = random.below(columns.len() as u64) as usize;
    let Some(column) = columns.into_iter().nth(at) else { return };
    let at = random.below(column.pages.len() as u64) as usize;
    if column.pages.is_empty() || random.below(8) == 0 {
        match random.below(3) {
            0 => column.first_element = None,
            1 => column.first_element = Some(*random.choose(&NUMBERS)),
            _ => drop(column.pages.pop()),
        }
        return;
    }
    let page = &mut column.pages[at];
    match random.below(6) {
        0 => page.elements = *random.choose(&NUMBERS) as u32,
        1 => page.elements = page.elements.wrapping_add(random.below(5) as u32).wrapping_sub(2),
        2 => {
            let place = Locator::File { offset: random.below(2000), bytes: page.stored.len() as u64 };
            page.locator = Some(locator(place, random));
        }
        _ => bytes(&mut page.stored, random),
    }
}

fn locator(old: Locator, random: &mut Random) -> Locator {
    let Locator::File { offset, bytes } = old else { return old };
    let number = *random.choose(&NUMBERS);
    match random.below(6) {
        0 => Locator::File { offset: number, bytes },
        1 => Locator::File { offset, bytes: number },
        2 => Locator::File { offset: offset.wrapping_add(random.below(9)).wrapping_sub(4), bytes },
        3 => Locator::File { offset, bytes: bytes.wrapping_add(random.below(9)).wrapping_sub(4) },
        4 => Locator::Unknown { kind: random.next() as u8 & 0x7f },
        _ => Locator::Object { location: number, bytes },
    }
}

const TYPES: [&str; 10] = [
    "",
    "float",
    "std::string",
    "std::vector<float>",
    "std::map<int,float>",
    "std::optional<int>",
    "std::pair<int,int>",
    "std::bitset<8>",
    "ROOT::RNTupleCardinality<std::uint64_t>",
    "std::variant<int",
];
