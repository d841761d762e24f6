//! Pages: places, sizes, checksums, and what indexes and switches point to.

use tupelo_format::checksum::xxh3;
use tupelo_format::envelope::EnvelopeType;
use tupelo_format::locator::Locator;

use super::{Bad, find, flat, nested, set, store};
use crate::model::{Column, Model, Page, Stage, zstd};

fn locate(model: &mut Model, locator: Locator) {
    model.page(0, 0, 1).locator = Some(locator);
}

/// A marked locator, whose bytes in the page list are then changed.
fn locator_bytes(model: &mut Model, new: &'static [u8]) {
    locate(model, Locator::File { offset: 0x1234_5678, bytes: 8 });
    model.edit_bytes(Stage::Payload(EnvelopeType::PageList), move |list| {
        let position = find(list, &[8, 0, 0, 0, 0x78, 0x56, 0x34, 0x12], 0);
        set(list, position, new);
    });
}

fn elements(model: &mut Model, elements: u32) {
    model.page(0, 0, 1).elements = elements;
}

/// Switch elements: index and tag.
fn switch(model: &mut Model, values: &[(u64, u32)]) {
    let page = model.page(0, 6, 0);
    page.elements = values.len() as u32;
    page.stored =
        values.iter().flat_map(|(index, tag)| [&index.to_le_bytes()[..], &tag.to_le_bytes()].concat()).collect();
}

/// A page of `v`'s floats that is compressed.
fn compressed(model: &mut Model, edit: fn(&mut Vec<u8>)) {
    let page = model.page(0, 1, 0);
    // Numbers that compress: one byte a float.
    page.stored = zstd(&[0x3f; 28]);
    assert!(page.stored.len() < 28);
    edit(&mut page.stored);
}

fn suppressed() -> Column {
    Column { pages: Vec::new(), first_element: None, compression: 0 }
}

pub(super) const BAD: &[Bad] = &[
    flat("59-page-in-an-object", |m| locate(m, Locator::Object { location: 7, bytes: 8 })),
    flat("59-page-in-part-of-an-object", |m| locate(m, Locator::ObjectRange { object: 7, offset: 0, bytes: 8 })),
    flat("59-page-locator-unknown", |m| locate(m, Locator::Unknown { kind: 0x55 })),
    flat("59-page-locator-of-0-bytes", |m| locator_bytes(m, &[0, 0, 0, 0x81])),
    flat("59-page-locator-of-65535-bytes", |m| locator_bytes(m, &[0xff, 0xff, 0, 0x81])),
    flat("59-page-locator-too-short", |m| locator_bytes(m, &[12, 0, 0, 0x81])),
    flat("65-page-of-0-elements", |m| elements(m, 0)),
    flat("65-page-of-1-element-less", |m| elements(m, 1)),
    flat("65-page-of-1-element-more", |m| elements(m, 3)),
    flat("65-page-of-2-31-minus-1-elements", |m| elements(m, i32::MAX as u32)),
    flat("65-page-of-2-31-elements", |m| elements(m, 1 << 31)),
    flat("65-page-of-elements-moved", |m| {
        m.page(0, 0, 0).elements = 3;
        m.page(0, 0, 1).elements = 3;
    }),
    flat("65-page-of-nothing-between", |m| {
        let nothing = Page { elements: 0, stored: Vec::new(), checksum: Some(None), locator: None, digest: None };
        m.column(0, 0).pages.insert(1, nothing);
    }),
    flat("66-page-behind-the-end", |m| locate(m, Locator::File { offset: 1 << 20, bytes: 8 })),
    flat("66-page-at-2-63", |m| locate(m, Locator::File { offset: 1 << 63, bytes: 8 })),
    flat("66-page-at-max", |m| locate(m, Locator::File { offset: u64::MAX, bytes: 8 })),
    flat("66-page-stored-0", |m| locate(m, Locator::File { offset: 300, bytes: 0 })),
    flat("66-page-stored-1", |m| locate(m, Locator::File { offset: 300, bytes: 1 })),
    flat("66-page-stored-1-tib", |m| locate(m, Locator::File { offset: 300, bytes: 1 << 40 })),
    flat("66-page-stored-max", |m| locate(m, Locator::File { offset: 300, bytes: u64::MAX })),
    flat("66-page-stored-2-31-minus-1", |m| locate(m, Locator::File { offset: 300, bytes: (1 << 31) - 1 })),
    flat("66-page-stored-2-31", |m| locate(m, Locator::File { offset: 300, bytes: 1 << 31 })),
    flat("66-page-without-room-for-its-checksum", |m| locate(m, Locator::File { offset: 908, bytes: 8 })),
    flat("66-page-elsewhere", |m| locate(m, Locator::File { offset: 120, bytes: 8 })),
    flat("67-first-element-wrong", |m| m.column(1, 0).first_element = Some(1000)),
    flat("67-suppressed-with-pages", |m| m.column(0, 0).first_element = None),
    flat("67-suppressed-alone", |m| *m.column(0, 0) = suppressed()),
    flat("67-all-suppressed", |m| {
        for (cluster, column) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            *m.column(cluster, column) = suppressed();
        }
    }),
    flat("67-first-element-2-62", |m| m.column(0, 0).first_element = Some(1 << 62)),
    nested("67-suppressed-in-a-collection", |m| *m.column(0, 1) = suppressed()),
    flat("68-page-checksum", |m| m.page(0, 0, 0).checksum = Some(Some(7))),
    flat("68-page-without-checksum", |m| m.page(0, 0, 0).checksum = None),
    // Nothing in the format says which page this is: the checksum is that of its bytes.
    flat("68-pages-swapped", swap),
    flat("68-pages-swapped-with-digests", |m| {
        digest(m);
        swap(m);
    }),
    flat("68-pages-swapped-with-digests-and-no-checksums", |m| {
        digest(m);
        swap(m);
        m.page(0, 0, 0).checksum = None;
        m.page(1, 0, 0).checksum = None;
    }),
    flat("68-pages-with-digests", digest),
    nested("69-index-decreasing", |m| store(m.page(0, 0, 0), &[2, 1, 3, 6, 7])),
    nested("69-index-too-far", |m| store(m.page(0, 0, 0), &[2, 2, 3, 6, 8])),
    nested("69-index-too-short", |m| store(m.page(0, 0, 0), &[2, 2, 3, 6, 6])),
    nested("69-index-2-40", |m| store(m.page(0, 0, 0), &[2, 2, 3, 6, 1 << 40])),
    nested("69-index-2-62", |m| store(m.page(0, 0, 0), &[1 << 62; 5])),
    nested("69-index-max", |m| store(m.page(0, 0, 0), &[0, 0, 0, 0, u64::MAX])),
    nested("69-index-10-9-each", |m| store(m.page(0, 0, 0), &[1, 2, 3, 4, 5].map(|i| i * 1_000_000_000))),
    nested("69-index-2-32", |m| store(m.page(0, 0, 0), &[2, 2, 3, 6, 1 << 32])),
    nested("69-index-2-63", |m| store(m.page(0, 0, 0), &[1, 2, 3, 4, 1 << 63])),
    nested("69-index-all-0", |m| store(m.page(0, 0, 0), &[0; 5])),
    nested("69-index-10-18-each", |m| store(m.page(0, 0, 0), &[1, 2, 3, 4, 5].map(|i| i * 1_000_000_000_000_000_000))),
    nested("69-string-index-decreasing", |m| store(m.page(0, 2, 0), &[6, 5, 11, 13, 16])),
    nested("69-string-index-too-far", |m| store(m.page(0, 2, 0), &[6, 6, 11, 13, 1000])),
    nested("69-string-is-not-utf-8", |m| m.page(0, 3, 0).stored[0] = 0xff),
    nested("69-string-cut-inside-a-character", |m| store(m.page(0, 2, 0), &[6, 6, 12, 13, 16])),
    nested("70-optional-of-2", |m| store(m.page(0, 4, 0), &[2, 2, 3, 3, 3])),
    nested("70-optional-of-2-62", |m| store(m.page(0, 4, 0), &[0, 0, 0, 0, 1 << 62])),
    nested("70-tag-3", |m| switch(m, &[(0, 1), (0, 2), (1, 2), (1, 3), (2, 2)])),
    nested("70-tag-max", |m| switch(m, &[(0, 1), (0, 2), (1, 2), (1, u32::MAX), (2, 2)])),
    nested("70-tag-0", |m| switch(m, &[(0, 1), (0, 2), (1, 2), (1, 1), (7, 0)])),
    nested("70-alternative-too-far", |m| switch(m, &[(0, 1), (0, 2), (1, 2), (2, 1), (2, 2)])),
    nested("70-alternative-again", |m| switch(m, &[(0, 1), (0, 2), (0, 2), (1, 1), (1, 2)])),
    nested("70-alternative-backwards", |m| switch(m, &[(1, 1), (0, 2), (1, 2), (0, 1), (2, 2)])),
    nested("70-alternative-at-max", |m| switch(m, &[(u64::MAX, 1), (0, 2), (1, 2), (0, 2), (2, 2)])),
    nested("70-alternative-all-the-same", |m| switch(m, &[(0, 1), (1, 1), (2, 1), (3, 1), (4, 1)])),
    nested("71-page-compressed", |m| compressed(m, |_| {})),
    nested("71-page-block-tag", |m| compressed(m, |p| p[0] = b'?')),
    nested("71-page-block-old-tag", |m| compressed(m, |p| set(p, 0, b"CS\x08"))),
    nested("71-page-block-tag-zlib", |m| compressed(m, |p| set(p, 0, b"ZL\x08"))),
    nested("71-page-block-tag-lzma", |m| compressed(m, |p| set(p, 0, b"XZ\x00"))),
    nested("71-page-block-tag-lz4", |m| compressed(m, |p| set(p, 0, b"L4\x01"))),
    nested("71-page-block-tag-lz4-version-2", |m| compressed(m, |p| set(p, 0, b"L4\x02"))),
    nested("71-page-block-stored-0", |m| compressed(m, |p| set(p, 3, &[0; 3]))),
    nested("71-page-block-stored-max", |m| compressed(m, |p| set(p, 3, &[0xff; 3]))),
    nested("71-page-block-unpacked-0", |m| compressed(m, |p| set(p, 6, &[0; 3]))),
    nested("71-page-block-lz4-of-nothing", |m| {
        compressed(m, |p| {
            set(p, 0, b"L4\x01");
            set(p, 3, &[7, 0, 0]);
            p.truncate(9 + 7);
        })
    }),
    nested("71-page-block-stored-more", |m| compressed(m, |p| p[3] += 1)),
    nested("71-page-block-stored-less", |m| compressed(m, |p| p[3] -= 1)),
    nested("71-page-block-unpacked-max", |m| compressed(m, |p| set(p, 6, &[0xff; 3]))),
    nested("71-page-block-unpacked-less", |m| compressed(m, |p| p[6] -= 1)),
    nested("71-page-block-header-cut", |m| compressed(m, |p| p.truncate(5))),
    nested("71-page-block-cut", |m| compressed(m, |p| p.truncate(p.len() - 2))),
    nested("71-page-block-damaged", |m| compressed(m, |p| p[9] ^= 0xff)),
    nested("71-page-block-twice", |m| compressed(m, |p| p.extend_from_within(..))),
    // As many floats as half a gibibyte holds, in twenty bytes; and in as many as zstd would need.
    nested("72-page-of-half-a-gibibyte", |m| m.page(0, 1, 0).elements = 1 << 27),
    nested("72-page-of-more-than-a-gibibyte", |m| m.page(0, 1, 0).elements = (1 << 28) + 1),
    nested("72-page-is-a-bomb", |m| {
        let page = m.page(0, 1, 0);
        page.elements = 16_000_000 / 4;
        page.stored = zstd(&vec![0; 16_000_000]);
    }),
    nested("72-page-is-a-bomb-that-fits", |m| {
        let page = m.page(0, 1, 0);
        page.elements = 16_000_000 / 4;
        page.stored = zstd(&vec![0; 16_000_000]);
        store(m.page(0, 0, 0), &[1, 2, 3, 4, 4_000_000]);
    }),
];

/// Exchanges the first pages of a column in two clusters.
fn swap(m: &mut Model) {
    let (a, b) = (m.page(0, 0, 0).stored.clone(), m.page(1, 0, 0).stored.clone());
    m.page(0, 0, 0).stored = b;
    m.page(1, 0, 0).stored = a;
}

/// Lets the page list say which pages it means.
fn digest(m: &mut Model) {
    for cluster in 0..2 {
        let page = m.page(cluster, 0, 0);
        page.digest = Some(xxh3(&page.stored));
    }
}
