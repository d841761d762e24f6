//! Every error that `tupelo-format` can make is made by some test here: each place of its code that makes one, by the
//! file that raises it or by a call that does. A new place fails until something raises it.

mod objects;
mod stores;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use conformance::bad::{self, Base};
use conformance::model::Model;
use conformance::mutate::{self, Random};
use conformance::{outcome, samples, summary};
use tupelo_format::compression::{self, Algorithm, Compression};
use tupelo_format::container::{self, Chunks, FetchedRanges, Interrupt, Key};
use tupelo_format::descriptor::{ColumnId, Descriptor, FieldId};
use tupelo_format::encoding::{self, ColumnType, Encoding};
use tupelo_format::envelope::{self, AttributeSetRecord, EnvelopeType, Footer, Header, PageList};
use tupelo_format::error::census;
use tupelo_format::locator::Locator;
use tupelo_format::wire::{Buffer, Cursor, Memory};
use tupelo_format::{Error, open};
use twox_hash::XxHash64;

/// Random damage that is tried, besides the files that are listed.
const CASES: u64 = 3000;
/// How a line of product code makes an error.
const MAKERS: [&str; 3] = ["Error::corrupt(", "Error::limit(", "Error::unsupported("];

/// Rooms of writing, which are judged where they are (`container/tests.rs`, `object/tests.rs`, `streamer/edit.rs`).
const WRITING: [&str; 5] =
    ["container/layout/", "object/make.rs", "object/write.rs", "streamer/edit.rs", "streamer/info/write.rs"];

/// Places that no bytes reach, each by a part of its line, with the reason.
const UNREACHABLE: &[(&str, &str, &str)] = &[
    ("compression/zstd.rs", "Decompressor::new()", "no memory for a context"),
    ("compression/zstd.rs", "let failed", "no memory for a context"),
    ("compression/zlib.rs", "let failed", "libdeflate has room for its bound"),
    ("compression/lz4.rs", "let failed", "blocks are below 2 GiB"),
    ("compression/lz4.rs", "block exceeds 2 GiB", "blocks are below 16 MiB"),
    ("compression/lzma.rs", "let failed", "no memory for an encoder"),
    ("compression/lzma.rs", "LzmaError::Mem =>", "no memory for a decoder"),
    ("encoding/encode.rs", "page of {elements} elements is too large", "no slice has 2^64 bits"),
    ("descriptor/validate.rs", "in header and footer exceed", "ten million fields need two gigabytes"),
    ("container/key.rs", "payload exceeds 4 GiB", "baskets are below 256 MiB"),
    ("container/recover.rs", "more than 2^32 keys", "they need 100 gigabytes"),
    ("container/key.rs", "which cannot be stored at byte", "writing, judged in container/tests.rs"),
    ("container/key.rs", "need a key of {length} bytes", "writing, judged in container/tests.rs"),
    ("envelope/page_list.rs", "page list exceeds 4 GiB", "envelopes are below 256 MiB"),
];

fn sources(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        match entry.is_dir() {
            true => sources(&entry, all),
            false if entry.extension().is_some_and(|ending| ending == "rs") && !entry.ends_with("tests.rs") => {
                all.push(entry)
            }
            false => {}
        }
    }
}

/// File (from `src` on), line and text of every place that makes an error.
fn places() -> Vec<(String, u32, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/tupelo-format/src");
    let mut files = Vec::new();
    sources(&folder, &mut files);
    let mut places = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).expect("a source file");
        let name = path.strip_prefix(&folder).expect("below src").to_string_lossy().into_owned();
        // Inline tests stand last.
        let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for (index, line) in product.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if MAKERS.iter().any(|maker| code.contains(maker)) {
                places.push((name.clone(), index as u32 + 1, line.trim().to_owned()));
            }
        }
    }
    places
}

fn raised() -> BTreeSet<(String, u32)> {
    let name = |file: &str| file.rsplit_once("tupelo-format/src/").map_or(file, |(_, name)| name).to_owned();
    census::raised().into_iter().map(|(file, line)| (name(file), line)).collect()
}

fn text<T: std::fmt::Debug>(outcome: Result<T, Error>) -> String {
    outcome.expect_err("an error").to_string()
}

fn failed<T: std::fmt::Debug>(attempt: Result<T, Interrupt>) -> String {
    match attempt {
        Err(Interrupt::Failed(error)) => error.to_string(),
        other => panic!("no error but {other:?}"),
    }
}

/// The whole file is there.
fn fetched(file: &[u8]) -> FetchedRanges {
    let mut fetched = FetchedRanges::new(file.len() as u64);
    fetched.provide(0, Bytes::copy_from_slice(file));
    fetched
}

/// One block: tag, sizes, payload.
fn block(tag: &[u8; 3], payload: &[u8], unpacked: usize) -> Vec<u8> {
    let size = |size: usize| [size as u8, (size >> 8) as u8, (size >> 16) as u8];
    [&tag[..], &size(payload.len()), &size(unpacked), payload].concat()
}

fn crc32(bytes: &[u8]) -> u32 {
    let bit = |crc: u32, _| crc >> 1 ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), bit))
}

#[test]
fn codecs_refuse_invalid_blocks() {
    let data = b"tupelo ".repeat(400);
    let packed = |algorithm| {
        let mut packed = Vec::new();
        compression::compress(Compression::new(algorithm, 5).expect("a level"), &data, &mut packed).expect("a block");
        packed[9..].to_vec()
    };
    let unpack = |tag, payload: &[u8], bytes: usize| {
        text(compression::decompress(&block(tag, payload, bytes), bytes as u64, 1 << 20))
    };
    let (less, more) = (data.len() - 1, data.len() + 1);
    let zlib = packed(Algorithm::Zlib);
    assert_eq!(unpack(b"ZL\x08", &zlib, more), format!("zlib: block has {} bytes, expected {more}", data.len()));
    assert_eq!(unpack(b"ZL\x08", &zlib, less), format!("zlib: block has more than {less} bytes"));
    let lz4 = packed(Algorithm::Lz4);
    assert_eq!(unpack(b"L4\x01", &lz4, more), format!("lz4: block has {} bytes, expected {more}", data.len()));
    let garbage = [&XxHash64::oneshot(0, &[0xff; 40]).to_be_bytes()[..], &[0xff; 40]].concat();
    assert_eq!(unpack(b"L4\x01", &garbage, 60), "lz4: damaged block");
    let lzma = packed(Algorithm::Lzma);
    assert_eq!(unpack(b"XZ\x00", &lzma, less), format!("lzma: stream does not end within {less} bytes"));
    let [have, want] = [data.len(), more].map(|bytes| format!("{bytes} from {}", lzma.len()));
    assert_eq!(
        unpack(b"XZ\x00", &lzma, more),
        format!("lzma: block has {} bytes from {}, expected {want}", data.len(), lzma.len()),
        "{have}"
    );
    // The block header follows the 12-byte stream header and ends with its own checksum.
    let with = |position: usize, value: u8| {
        let mut stream = lzma.clone();
        stream[12 + position] = value;
        let end = 12 + (usize::from(stream[12]) + 1) * 4 - 4;
        let checksum = crc32(&stream[12..end]).to_le_bytes();
        stream[end..end + 4].copy_from_slice(&checksum);
        unpack(b"XZ\x00", &stream, data.len())
    };
    // A dictionary of 4 GiB; an unknown filter.
    assert_eq!(with(4, 40), "lzma: stream needs more than 71303168 bytes of memory");
    assert!(with(2, 0x22).starts_with("lzma: "), "{}", with(2, 0x22));
    assert_eq!(text(compression::decompress(b"abc", 100, 50)), "100 uncompressed bytes exceed the limit of 50");
    assert_eq!(text(compression::decompress_into(b"abc", &mut [0; 2])), "3 stored bytes for 2 uncompressed bytes");
    for (wrong, why) in [("brotli", "unknown compression \"brotli\""), ("zstd:x", "\"x\" is not a level")] {
        assert!(text(wrong.parse::<Compression>()).starts_with(why), "{wrong}");
    }
    assert_eq!(text(Compression::new(Algorithm::Zstd, 10)), "zstd level 10 is out of range: levels are 1 to 9");
    assert_eq!(text(Compression::from_setting(305)), "unknown compression setting 305");
}

#[test]
fn encodings_refuse_invalid_pages() {
    let of = |column_type| Encoding::of(column_type).expect("one width");
    let quantised = Encoding::new(ColumnType::Real32Quant, 8, Some((0.0, 1.0))).expect("an encoding");
    let mut out = Vec::new();
    let wrong_size = encoding::decode_index(&of(ColumnType::Index32), &[0; 3], &mut [0]);
    assert_eq!(text(wrong_size), "page of 3 bytes does not match 1 elements of Index32 with 32 bits");
    assert_eq!(
        text(encoding::decode_index(&of(ColumnType::Int8), &[0], &mut [0])),
        "Int8 column cannot be read or written as indexes"
    );
    let within = encoding::decode_fixed(&of(ColumnType::Int32), &[0; 4], &mut [0; 5]);
    assert_eq!(text(within), "page of 4 bytes does not fit a buffer of 5 bytes");
    assert_eq!(
        text(encoding::decode_bits(&[0], 4, 5, &mut [0; 4], 0)),
        "5 bits from bit 4 of 1 bytes do not fit at bit 0 of 4 bytes"
    );
    assert_eq!(
        text(encoding::decode_switch(&[0; 13], &mut [0], &mut [0])),
        "Switch page of 13 bytes does not match 1 indexes and 1 tags"
    );
    assert_eq!(text(encoding::encode_bits(&[0], 4, 5, &mut out)), "expected 5 bits from bit 4, bitmap has 1 bytes");
    assert_eq!(
        text(encoding::encode_f32(&quantised, &[2.0], &mut out)),
        "value 2 is outside the range [0, 1] of the Real32Quant column"
    );
    assert_eq!(
        text(encoding::encode_f64(&of(ColumnType::SplitReal16), &[1.0, 1e5], &mut out)),
        "value 100000.0 is too large for the SplitReal16 column: the largest value is 65504.0"
    );
    assert_eq!(
        text(encoding::encode_index(&of(ColumnType::Index32), &[1 << 32], &mut out)),
        "index 4294967296 does not fit the Index32 column"
    );
    assert_eq!(text(encoding::encode_switch(&[1], &[], &mut out)), "found 1 indexes, but 0 tags");
}

fn footer_with(set: AttributeSetRecord) -> Result<Footer, Error> {
    Footer::read(&Footer { attribute_sets: vec![set], ..Footer::default() }.write())
}

#[test]
fn envelopes_and_schemas_refuse_invalid_records() {
    // Type and length are right; there is no room for a checksum.
    assert_eq!(
        text(envelope::unwrap(&(12u64 << 16 | 1).to_le_bytes().repeat(2)[..12], EnvelopeType::Header).map(drop)),
        "header: envelope of 12 bytes is too short"
    );
    let set = AttributeSetRecord {
        schema_major: 1,
        schema_minor: 0,
        anchor_length: 78,
        anchor: Locator::File { offset: 500, bytes: 78 },
        name: String::new(),
    };
    assert!(text(footer_with(set)).starts_with("footer: attribute set 0: attribute set has an empty name"));
    // Summaries of one cluster, pages of none.
    let mut list = Buffer::new();
    list.u64_le(7);
    list.i64_le(-36);
    list.u32_le(1);
    [24, 0, 0].into_iter().for_each(|word| list.u64_le(word));
    list.i64_le(-12);
    list.u32_le(0);
    let (list, _) = envelope::wrap(EnvelopeType::PageList, list.as_slice());
    assert_eq!(text(PageList::read(list.into(), 7)), "page list: found 1 cluster summaries, but pages of 0 clusters");
    let memory = Memory::new(10);
    let strings = [6, 0, 0, 0, b't', b'u', b'p', b'e', b'l', b'o'].repeat(2);
    let mut cursor = Cursor::new(&strings, 0).within(&memory);
    assert_eq!(cursor.string_le().as_deref(), Ok("tupelo"));
    assert!(text(cursor.string_le()).starts_with("records: needs 6 bytes of memory, 4 of 10 left"));

    let Model { header, .. } = samples::flat();
    let (bytes, checksum) = header.write();
    let footer = || Footer { header_checksum: checksum, ..Footer::default() };
    let descriptor =
        Descriptor::new(Header::read(&bytes).expect("a header").0, checksum, footer()).expect("a descriptor");
    assert_eq!(text(descriptor.field(FieldId::from(9)).map(drop)), "field 9 does not exist");
    assert_eq!(text(descriptor.column(ColumnId::from(9)).map(drop)), "column 9 does not exist");
}

/// A file of 32-bit directories: each holds keys of these classes, names and places.
struct Directories {
    file: Vec<u8>,
}

impl Directories {
    fn new() -> Self {
        Self { file: vec![0; 100] }
    }

    fn key(class: &str, name: &str, at: usize, payload: usize) -> Vec<u8> {
        let key_bytes = 26 + 3 + class.len() + name.len() + if name.len() > 254 { 4 } else { 0 };
        let mut key = Buffer::new();
        key.u32_be((key_bytes + payload) as u32);
        key.u16_be(4);
        key.u32_be(payload as u32);
        key.u32_be(0);
        key.u16_be(key_bytes as u16);
        key.u16_be(1);
        key.u32_be(at as u32);
        key.u32_be(100);
        [class, name, ""].into_iter().for_each(|text| key.string_be(text));
        key.into_vec()
    }

    /// A list of keys at the end of the file; gives its place.
    fn list(&mut self, keys: &[Vec<u8>]) -> usize {
        let at = self.file.len();
        let payload = [&(keys.len() as u32).to_be_bytes()[..], &keys.concat()].concat();
        self.file.extend(Self::key("TList", "", at, payload.len()));
        self.file.extend(payload);
        at
    }

    /// A directory's record at the end of the file; gives the place of its key and the key that lists it.
    fn directory(&mut self, class: &str, name: &str, list: usize) -> (usize, Vec<u8>) {
        let at = self.file.len();
        let mut record = Buffer::new();
        // What a file has in front of the record of its top directory: two empty strings.
        if class == "TFile" {
            record.put(&[0, 0]);
        }
        record.u16_be(5);
        [0, 0, 0, 0, at as u32, 0, list as u32].into_iter().for_each(|word| record.u32_be(word));
        let key = Self::key(class, name, at, record.len());
        self.file.extend(&key);
        self.file.extend(record.as_slice());
        (at, key)
    }

    /// The file whose top directory has this list.
    fn finish(mut self, list: usize) -> Vec<u8> {
        let (top, _) = self.directory("TFile", "f", list);
        let mut head = Buffer::new();
        head.put(b"root");
        head.u32_be(64000);
        head.u32_be(top as u32);
        head.u32_be(self.file.len() as u32);
        self.file[..head.len()].copy_from_slice(head.as_slice());
        self.file
    }
}

/// Directories `depth` deep, all of one name.
fn nested_directories(depth: usize, name: &str) -> Vec<u8> {
    let mut file = Directories::new();
    let mut list = 0;
    for _ in 0..depth {
        let (_, key) = file.directory("TDirectory", name, list);
        list = file.list(&[key]);
    }
    file.finish(list)
}

#[test]
fn containers_refuse_invalid_records() {
    assert_eq!(container::list_objects(&fetched(&nested_directories(63, "d"))).map(|all| all.len()), Ok(63));
    let deep = nested_directories(64, "d");
    assert_eq!(failed(container::list_objects(&fetched(&deep))), "directories are nested more than 64 deep");
    let long = nested_directories(20, &"d".repeat(250));
    assert_eq!(failed(container::list_objects(&fetched(&long))), "path of 4266 bytes exceeds the limit of 4096");
    // Directories that share one list of many keys: each would list it again.
    let mut file = Directories::new();
    let other = Directories::key("TH1D", &"h".repeat(2000), 100, 0);
    let shared = file.list(&[other.clone(), other]);
    let keys: Vec<_> = (0..4).map(|number| file.directory("TDirectory", &format!("d{number}"), shared).1).collect();
    let top = file.list(&keys);
    assert!(failed(container::list_objects(&fetched(&file.finish(top)))).starts_with("key lists overlap"));

    let mut file = Directories::new();
    let list = file.list(&[Directories::key("TH1D", "h", 100, 10)]);
    let file = file.finish(list);
    let found = container::find_object(&fetched(&file), "h").expect("a file").expect("an object");
    assert_eq!(failed(open::anchor(&fetched(&file), &found)), "'h' is a TH1D, not an RNTuple");
    let Ok(pre_release) = open::pre_release(&fetched(&file), &found) else { panic!("no payload") };
    assert!(pre_release.to_string().contains("reads formats before 1.0"), "{pre_release}");
    let size = (1u64 << 30) + 100;
    let key = Key { nbytes: 1 << 30, object_bytes: (1 << 30) + 1, key_bytes: 30, seek_key: 60, ..found.key };
    assert!(failed(container::object_bytes(&FetchedRanges::new(size), &key)).starts_with("'h' has 1073741825 bytes"));
    assert_eq!(text(container::blob_key(100, 1 << 31, 0)), "blob of 2147483648 bytes exceeds the limit of 2147483605");

    // Chunks: the payload has more bytes than the file.
    assert!(Chunks::split(100, 1001, 1000).expect("a table").is_some());
    let chunks = container::payload(&FetchedRanges::new(1000), 100, 1001, 1000);
    assert_eq!(failed(chunks), "expected 1001 bytes in a file of 1000 bytes (at byte 100)");
}

/// What a free list says is only read by those who write and by those who walk.
#[test]
fn free_lists_refuse_invalid_segments() {
    let file = nested_directories(1, "d");
    let at = file.len();
    let mut list = Buffer::new();
    list.u16_be(1);
    list.u32_be(7);
    list.u32_be(9);
    let file = [&file[..], &Directories::key("TFile", "f", at, list.len()), list.as_slice()].concat();
    let mut file = file;
    let end = (file.len() as u32).to_be_bytes();
    file[12..16].copy_from_slice(&end);
    file[16..20].copy_from_slice(&(at as u32).to_be_bytes());
    assert!(
        failed(container::FileLayout::update(&fetched(&file), 0).map(drop))
            .starts_with("invalid free segment from byte 7 to 9")
    );
    file[16..20].fill(0);
    assert!(failed(container::FileLayout::update(&fetched(&file), 0).map(drop)).contains("it has no free list"));
}

/// A file with a gap of `bytes` zeros after its first record, known only to a free list of these segments; where
/// the gap is, `gap` says to each. Gives what the walk over all records finds: gaps, and names of classes.
fn walk(bytes: usize, version: u16, segments: impl Fn(u32) -> Vec<[u32; 2]>) -> Result<Vec<String>, Interrupt> {
    let mut file = Directories::new().finish(0);
    let begin = u32::from_be_bytes([file[8], file[9], file[10], file[11]]);
    assert_eq!(begin, 100);
    let gap = file.len() as u32;
    file.resize(file.len() + bytes, 0);
    let mut list = Buffer::new();
    for [first, last] in segments(gap) {
        list.u16_be(version);
        list.u32_be(first);
        list.u32_be(last);
    }
    let at = file.len();
    file.extend(Directories::key("TFree", "", at, list.len()));
    file.extend(list.as_slice());
    let end = (file.len() as u32).to_be_bytes();
    file[12..16].copy_from_slice(&end);
    file[16..20].copy_from_slice(&(at as u32).to_be_bytes());
    let records = container::walk_keys(&fetched(&file))?;
    let kind = |record: container::Record| match record.kind {
        container::RecordKind::Gap => format!("{} bytes at {}", record.nbytes, record.offset),
        container::RecordKind::Key(key) => key.class_name,
    };
    Ok(records.into_iter().map(kind).collect())
}

#[test]
fn gaps_are_those_of_the_free_list() {
    const OPEN: [u32; 2] = [1_000_000, 2_000_000_000];
    let found = |bytes: usize, version: u16, open: bool| {
        let list =
            |gap: u32| [vec![[gap, gap + bytes as u32 - 1]], if open { vec![OPEN] } else { Vec::new() }].concat();
        let records = walk(bytes, version, list).expect("a list");
        assert_eq!((records[0].as_str(), records[2].as_str(), records.len()), ("TFile", "TFree", 3));
        assert!(records[1].starts_with(&format!("{bytes} bytes at ")), "{records:?}");
    };
    // The highest version with 32-bit offsets; lists that lack the open segment; a gap of one byte.
    for (bytes, version, open) in [(20, 1, true), (20, 1000, true), (20, 1, false), (1, 1, true)] {
        found(bytes, version, open);
    }
    // A nonsensical list is ignored, and then the gap does not count as a record.
    assert!(walk(20, 1, |_| vec![OPEN]).is_err());
    assert!(walk(20, 1, |gap| vec![[gap + 19, gap], OPEN]).is_err());
    assert!(walk(20, 1, |gap| vec![[99, 99], [gap, gap + 19], OPEN]).is_err());
    // What is free may be the first record: then it is none.
    let first = walk(20, 1, |gap| vec![[100, gap - 1], [gap, gap + 19], OPEN]).expect("a list");
    assert_eq!(first.last().map(String::as_str), Some("TFree"));
    assert!(first[0].contains("bytes at 100"), "{first:?}");
}

#[test]
fn keys_refuse_invalid_lengths() {
    let (mut layout, _) = container::FileLayout::create("f", 0, [0; 16]).expect("a layout");
    assert!(text(layout.add(&"n".repeat(40_000), "C", "", Vec::new())).contains("key of"));
    let lost = container::states(&FetchedRanges::new(1000), &[], 1);
    assert_eq!(failed(lost), "the record of the top directory is lost");
}

#[test]
fn every_error_is_raised() {
    codecs_refuse_invalid_blocks();
    encodings_refuse_invalid_pages();
    envelopes_and_schemas_refuse_invalid_records();
    containers_refuse_invalid_records();
    free_lists_refuse_invalid_segments();
    keys_refuse_invalid_lengths();
    objects::what_objects_refuse();
    objects::what_members_refuse();
    objects::what_streamer_infos_refuse();
    stores::what_anchors_of_stores_refuse();
    stores::what_anchors_of_containers_refuse();
    for bad in bad::all() {
        let _outcome = outcome::handle(&bad.bytes(), true, 64 << 20);
    }
    let seeds = Base::ALL.map(Base::bytes);
    for case in 0..CASES {
        let mut random = Random::new(case);
        let file = mutate::file(random.choose(&seeds).clone(), &mut random);
        let _outcome = outcome::handle(&file, case % 2 == 0, 64 << 20);
    }
    let (places, raised) = (places(), raised());
    let missing: Vec<_> = places
        .iter()
        .filter(|(file, line, _)| !raised.contains(&(file.clone(), *line)))
        .filter(|(file, _, _)| !WRITING.iter().any(|room| file.starts_with(room)))
        .filter(|(file, _, text)| !UNREACHABLE.iter().any(|(at, part, _)| file == at && text.contains(part)))
        .map(|(file, line, text)| format!("{file}:{line}: {text}"))
        .collect();
    let stale: Vec<_> = UNREACHABLE
        .iter()
        .filter(|(at, part, _)| {
            let mut named = places.iter().filter(|(file, _, text)| file == at && text.contains(part));
            named.all(|(file, line, _)| raised.contains(&(file.clone(), *line)))
        })
        .collect();
    assert!(stale.is_empty(), "not there, or raised after all: {stale:?}");
    assert!(missing.is_empty(), "{} places made no error:\n{}", missing.len(), missing.join("\n"));
    summary::note("errors", &format!("{} places of tupelo-format made their error", places.len()));
}
