//! Envelopes, frames, strings, feature flags, compression of envelopes.

use tupelo_format::container::ANCHOR_BYTES;
use tupelo_format::envelope::AttributeSetRecord;
use tupelo_format::envelope::EnvelopeType::{self, Footer, Header, PageList};
use tupelo_format::locator::Locator;

use super::{Bad, flat, set};
use crate::model::{Model, Stage, zstd};

/// Where the list of fields begins in the payload of the samples' header: behind flags and three strings.
const FIELDS: usize = 8 + (4 + 1) + 4 + (4 + 6);
/// Where the record of the first field begins.
const FIELD: usize = FIELDS + 12;
/// Where its name begins: behind the size of the frame, versions, parent, role and flags.
const FIELD_NAME: usize = FIELD + 24;
/// Where the list of cluster groups begins in the payload of a footer without schema extension: behind flags, the
/// header's checksum and a record frame of four empty lists.
const GROUPS: usize = 8 + 8 + 8 + 4 * 12;
/// Where the list of cluster summaries begins in the payload of a page list.
const SUMMARIES: usize = 8;
/// Where the list of clusters begins there: behind two summaries. In it the lists of columns and of pages.
const CLUSTERS: usize = SUMMARIES + 12 + 2 * 24;

fn payload(model: &mut Model, kind: EnvelopeType, position: usize, new: &'static [u8]) {
    model.edit_bytes(Stage::Payload(kind), move |bytes| set(bytes, position, new));
}

fn number(model: &mut Model, kind: EnvelopeType, position: usize, new: i64) {
    model.edit_bytes(Stage::Payload(kind), move |bytes| set(bytes, position, &new.to_le_bytes()));
}

fn envelope(model: &mut Model, kind: EnvelopeType, edit: fn(&mut Vec<u8>)) {
    model.edit_bytes(Stage::Envelope(kind), edit);
}

fn stored(model: &mut Model, kind: EnvelopeType, edit: fn(&mut Vec<u8>)) {
    model.edit_bytes(Stage::Stored(kind), edit);
}

/// Type and length word.
fn declared(model: &mut Model, kind: EnvelopeType, length: fn(u64) -> u64) {
    model.edit_bytes(Stage::Envelope(kind), move |bytes| {
        let word = length(bytes.len() as u64) << 16 | kind as u64;
        set(bytes, 0, &word.to_le_bytes());
    });
}

fn flip_last(bytes: &mut [u8]) {
    if let Some(last) = bytes.last_mut() {
        *last ^= 1;
    }
}

/// Attribute sets with these names and places of anchors.
fn sets(model: &mut Model, sets: [(&'static str, u64); 2]) {
    let record = |(name, offset): (&str, u64)| AttributeSetRecord {
        schema_major: 1,
        schema_minor: 0,
        anchor_length: ANCHOR_BYTES as u32,
        anchor: Locator::File { offset, bytes: ANCHOR_BYTES as u64 },
        name: name.to_owned(),
    };
    model.edit_footer(move |footer| footer.attribute_sets = sets.map(record).to_vec());
}

pub(super) const BAD: &[Bad] = &[
    flat("17-header-type", |m| envelope(m, Header, |e| e[0] = 9)),
    flat("17-footer-type", |m| envelope(m, Footer, |e| e[0] = 1)),
    flat("17-page-list-type", |m| envelope(m, PageList, |e| e[0] = 2)),
    flat("18-header-says-0-bytes", |m| declared(m, Header, |_| 0)),
    flat("18-header-says-8-bytes", |m| declared(m, Header, |_| 8)),
    flat("18-footer-says-16-bytes", |m| declared(m, Footer, |_| 16)),
    flat("18-page-list-says-2-48-bytes", |m| declared(m, PageList, |_| (1 << 48) - 1)),
    flat("18-header-says-1-more", |m| declared(m, Header, |length| length + 1)),
    flat("18-page-list-says-1-less", |m| declared(m, PageList, |length| length - 1)),
    flat("18-header-of-12-bytes", |m| envelope(m, Header, |e| e.truncate(12))),
    flat("19-header-checksum", |m| envelope(m, Header, |e| flip_last(e))),
    flat("19-footer-checksum", |m| envelope(m, Footer, |e| flip_last(e))),
    flat("20-page-list-checksum", |m| envelope(m, PageList, |e| flip_last(e))),
    flat("20-page-list-of-another-header", |m| payload(m, PageList, 0, b"another!")),
    flat("20-footer-of-another-header", |m| m.edit_footer(|footer| footer.header_checksum ^= 1)),
    flat("21-header-flag-1", |m| payload(m, Header, 0, &[2])),
    flat("21-footer-flag-9", |m| payload(m, Footer, 1, &[2])),
    flat("21-header-flag-0", |m| payload(m, Header, 0, &[1])),
    flat("21-footer-flag-62", |m| payload(m, Footer, 7, &[0x40])),
    flat("22-endless-flags", |m| {
        m.edit_bytes(Stage::Payload(Header), |p| {
            p.splice(0..0, [0, 0, 0, 0, 0, 0, 0, 0x80].repeat(100));
        });
    }),
    flat("22-flag-128", |m| {
        m.edit_bytes(Stage::Payload(Header), |p| {
            p.splice(0..0, [0, 0, 0, 0, 0, 0, 0, 0x80].repeat(2));
            p[16] = 1;
        });
    }),
    flat("23-name-longer-than-the-header", |m| payload(m, Header, 8, &[0xe8, 3, 0, 0])),
    flat("23-name-of-4-gib", |m| payload(m, Header, 8, &[0xff; 4])),
    flat("23-field-name-of-2-gib", |m| payload(m, Header, FIELD_NAME, &[0, 0, 0, 0x80])),
    flat("24-field-name-is-not-utf-8", |m| payload(m, Header, FIELD_NAME + 4, &[0xff])),
    flat("26-fields-max", |m| payload(m, Header, FIELDS + 8, &[0xff; 4])),
    flat("26-fields-10-8", |m| payload(m, Header, FIELDS + 8, &[0, 0xe1, 0xf5, 5])),
    flat("26-fields-10-million-and-1", |m| payload(m, Header, FIELDS + 8, &[0x81, 0x96, 0x98, 0])),
    flat("26-extension-fields-max", |m| payload(m, Footer, 8 + 8 + 8 + 8, &[0xff; 4])),
    flat("26-extension-columns-max", |m| payload(m, Footer, 8 + 8 + 8 + 12 + 8, &[0xff; 4])),
    flat("26-extension-aliases-max", |m| payload(m, Footer, 8 + 8 + 8 + 24 + 8, &[0xff; 4])),
    flat("26-extension-types-max", |m| payload(m, Footer, 8 + 8 + 8 + 36 + 8, &[0xff; 4])),
    flat("26-clusters-max", |m| payload(m, PageList, CLUSTERS + 8, &[0xff; 4])),
    flat("26-columns-of-a-cluster-max", |m| payload(m, PageList, CLUSTERS + 12 + 8, &[0xff; 4])),
    flat("26-pages-max", |m| payload(m, PageList, CLUSTERS + 24 + 8, &[0xff; 4])),
    flat("26-pages-10-8", |m| payload(m, PageList, CLUSTERS + 24 + 8, &[0, 0xe1, 0xf5, 5])),
    flat("26-pages-one-more", |m| payload(m, PageList, CLUSTERS + 24 + 8, &[3])),
    flat("26-pages-one-less", |m| payload(m, PageList, CLUSTERS + 24 + 8, &[1])),
    flat("26-fields-one-more", |m| payload(m, Header, FIELDS + 8, &[3])),
    flat("26-fields-one-less", |m| payload(m, Header, FIELDS + 8, &[1])),
    flat("26-summaries-max", |m| payload(m, PageList, SUMMARIES + 8, &[0xff; 4])),
    flat("27-list-0", |m| number(m, Header, FIELDS, 0)),
    flat("27-list-sign", |m| number(m, Header, FIELDS, 120)),
    flat("27-list-min", |m| number(m, Header, FIELDS, i64::MIN)),
    flat("27-list-huge", |m| number(m, Header, FIELDS, -(1 << 62))),
    flat("27-record-4", |m| number(m, Header, FIELD, 4)),
    flat("27-record-huge", |m| number(m, Header, FIELD, 1 << 62)),
    flat("27-record-sign", |m| number(m, Header, FIELD, -50)),
    flat("27-record-too-small", |m| number(m, Header, FIELD, 20)),
    flat("27-extension-0", |m| number(m, Footer, 16, 0)),
    flat("27-extension-4", |m| number(m, Footer, 16, 4)),
    flat("27-extension-sign", |m| number(m, Footer, 16, -100)),
    flat("27-clusters-sign", |m| number(m, PageList, CLUSTERS, 200)),
    flat("27-clusters-past-the-end", |m| number(m, PageList, CLUSTERS, -10_000)),
    flat("27-columns-min", |m| number(m, PageList, CLUSTERS + 12, i64::MIN)),
    flat("27-columns-too-small", |m| number(m, PageList, CLUSTERS + 12, -30)),
    flat("27-pages-11", |m| number(m, PageList, CLUSTERS + 24, -11)),
    flat("27-pages-without-an-offset", |m| number(m, PageList, CLUSTERS + 24, -(12 + 2 * 16 + 4))),
    flat("27-pages-huge", |m| number(m, PageList, CLUSTERS + 24, -(1 << 62))),
    flat("27-extension-past-the-end", |m| number(m, Footer, 16, 1000)),
    flat("27-summaries-past-the-end", |m| number(m, PageList, SUMMARIES, -10_000)),
    flat("52-footer-longer", |m| m.edit_bytes(Stage::Payload(Footer), |p| p.extend_from_slice(&[7; 20]))),
    flat("52-header-longer", |m| m.edit_bytes(Stage::Payload(Header), |p| p.extend_from_slice(&[7; 3]))),
    flat("53-groups-list-past-the-end", |m| number(m, Footer, GROUPS, -1000)),
    flat("53-groups-max", |m| payload(m, Footer, GROUPS + 8, &[0xff; 4])),
    flat("53-groups-10-8", |m| payload(m, Footer, GROUPS + 8, &[0, 0xe1, 0xf5, 5])),
    flat("53-groups-one-less", |m| payload(m, Footer, GROUPS + 8, &[0])),
    flat("53-groups-list-0", |m| number(m, Footer, GROUPS, 0)),
    flat("53-groups-list-11", |m| number(m, Footer, GROUPS, -11)),
    flat("53-groups-list-min", |m| number(m, Footer, GROUPS, i64::MIN)),
    flat("53-group-record-sign", |m| number(m, Footer, GROUPS + 12, -48)),
    flat("53-attribute-sets-max", |m| payload(m, Footer, GROUPS + 12 + 48 + 8, &[0xff; 4])),
    flat("53-attribute-sets-of-one-name", |m| sets(m, [("s", 300), ("s", 400)])),
    flat("53-attribute-sets-of-one-anchor", |m| sets(m, [("s", 300), ("t", 300)])),
    flat("53-attribute-sets-with-anchors-that-overlap", |m| sets(m, [("s", 377), ("t", 300)])),
    flat("53-groups-one-more", |m| payload(m, Footer, GROUPS + 8, &[2])),
    flat("53-no-groups", |m| m.edit_footer(|footer| footer.cluster_groups.clear())),
    flat("71-header-compressed", |m| stored(m, Header, |e| *e = zstd(e))),
    flat("71-header-block-tag", |m| {
        stored(m, Header, |e| {
            *e = zstd(e);
            set(e, 0, b"??");
        });
    }),
    flat("71-header-block-too-large", |m| {
        stored(m, Header, |e| {
            *e = zstd(e);
            e[6] += 1;
        });
    }),
    flat("71-header-block-too-small", |m| {
        stored(m, Header, |e| {
            *e = zstd(e);
            e[6] -= 1;
        });
    }),
    flat("71-header-block-empty", |m| {
        stored(m, Header, |e| {
            *e = zstd(e);
            set(e, 6, &[0; 3]);
        });
    }),
    flat("71-header-block-truncated", |m| {
        stored(m, Header, |e| {
            *e = zstd(e);
            e.truncate(e.len() - 1);
        });
    }),
    flat("71-header-block-and-more", |m| {
        stored(m, Header, |e| {
            *e = zstd(e);
            e.push(0);
        });
    }),
    flat("71-header-block-damaged", |m| {
        stored(m, Header, |e| {
            *e = zstd(e);
            e[12] ^= 0xff;
        });
    }),
    flat("72-footer-is-a-bomb", |m| {
        stored(m, Footer, |e| *e = zstd(&vec![0; 16_000_000]));
        m.edit_anchor(|a| a.len_footer = 16_000_000);
    }),
    flat("72-page-list-is-a-bomb", |m| {
        stored(m, PageList, |e| *e = zstd(&vec![0; 16_000_000]));
        m.edit_footer(|f| f.cluster_groups[0].page_list.length = 16_000_000);
    }),
    // 16 MiB of zeros in a block of some 500 bytes; sixteen of them are as much as an envelope may have.
    flat("72-header-is-a-bomb", |m| {
        stored(m, Header, |e| *e = zstd(&vec![0; 16_000_000]));
        m.edit_anchor(|a| a.len_header = 16_000_000);
    }),
    flat("72-header-is-a-bigger-bomb", |m| {
        stored(m, Header, |e| *e = zstd(&vec![0; 16_000_000]));
        m.edit_anchor(|a| a.len_header = 255 << 20);
    }),
];
