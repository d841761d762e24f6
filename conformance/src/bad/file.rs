//! The ROOT file and the anchor.

use super::{Bad, find, flat, replace, set};
use crate::model::{Model, Stage, seal_anchor};

/// The class of the anchor, as a key writes it.
const CLASS: &[u8] = b"\x0dROOT::RNTuple";
/// Bytes of a key in front of its class name.
const KEY_HEAD: usize = 26;

fn file(model: &mut Model, edit: fn(&mut Vec<u8>)) {
    model.edit_bytes(Stage::File, edit);
}

/// Where the key of the ntuple begins in the key list of the top directory.
fn listed(file: &[u8]) -> usize {
    find(file, CLASS, 1) - KEY_HEAD
}

fn listed_key(model: &mut Model, offset: usize, new: &'static [u8]) {
    model.edit_bytes(Stage::File, move |file| {
        let key = listed(file);
        set(file, key + offset, new);
    });
}

fn key_count(model: &mut Model, count: u32) {
    model.edit_bytes(Stage::File, move |file| {
        let key = listed(file);
        set(file, key - 4, &count.to_be_bytes());
    });
}

fn anchor_bytes(model: &mut Model, edit: fn(&mut Vec<u8>)) {
    model.edit_bytes(Stage::Anchor, edit);
}

pub(super) const BAD: &[Bad] = &[
    flat("01-empty", |m| file(m, |f| f.clear())),
    flat("01-fifty-bytes", |m| file(m, |f| f.truncate(50))),
    flat("01-fifty-six-bytes", |m| file(m, |f| f.truncate(56))),
    flat("01-header-and-nothing-else", |m| file(m, |f| f.truncate(100))),
    flat("01-magic", |m| file(m, |f| f[0] = b'b')),
    flat("02-begin-0", |m| file(m, |f| set(f, 8, &0u32.to_be_bytes()))),
    flat("02-begin-behind-the-end", |m| file(m, |f| set(f, 8, &(1u32 << 31).to_be_bytes()))),
    flat("02-begin-elsewhere", |m| file(m, |f| set(f, 8, &200u32.to_be_bytes()))),
    flat("02-free-list-nowhere", |m| file(m, |f| set(f, 16, &u32::MAX.to_be_bytes()))),
    flat("02-free-list-of-4-gib", |m| file(m, |f| set(f, 20, &u32::MAX.to_be_bytes()))),
    flat("02-version-max", |m| file(m, |f| set(f, 4, &u32::MAX.to_be_bytes()))),
    flat("02-version-0", |m| file(m, |f| set(f, 4, &[0; 4]))),
    flat("02-name-length", |m| file(m, |f| set(f, 28, &u32::MAX.to_be_bytes()))),
    flat("03-end-behind-the-end", |m| file(m, |f| set(f, 12, &(1u32 << 30).to_be_bytes()))),
    flat("03-end-0", |m| file(m, |f| set(f, 12, &[0; 4]))),
    flat("03-longer-than-it-says", |m| file(m, |f| f.extend_from_slice(b"more"))),
    flat("03-truncated", |m| file(m, |f| f.truncate(f.len() / 2))),
    flat("04-keys-0", |m| key_count(m, 0)),
    flat("04-keys-2", |m| key_count(m, 2)),
    flat("04-keys-2-31-minus-1", |m| key_count(m, i32::MAX as u32)),
    flat("04-keys-negative", |m| key_count(m, u32::MAX)),
    flat("05-key-nbytes-0", |m| listed_key(m, 0, &[0, 0, 0, 0])),
    flat("05-key-nbytes-negative", |m| listed_key(m, 0, &[0xff, 0xff, 0xff, 0x80])),
    flat("05-key-nbytes-only-the-key", |m| listed_key(m, 0, &[0, 0, 0, 43])),
    flat("05-key-object-negative", |m| listed_key(m, 6, &[0x80, 0, 0, 0])),
    flat("05-key-object-1-more", |m| {
        file(m, |f| {
            let key = listed(f);
            f[key + 9] += 1;
        });
    }),
    flat("05-key-nbytes-huge", |m| listed_key(m, 0, &[0x7f, 0xff, 0xff, 0xff])),
    flat("05-key-object-huge", |m| listed_key(m, 6, &[0x7f, 0xff, 0xff, 0xff])),
    flat("05-key-object-0", |m| listed_key(m, 6, &[0, 0, 0, 0])),
    flat("05-key-length-0", |m| listed_key(m, 14, &[0, 0])),
    flat("05-key-longer-than-its-record", |m| listed_key(m, 14, &[0xff, 0xff])),
    flat("05-key-at-0", |m| listed_key(m, 18, &[0, 0, 0, 0])),
    flat("05-key-behind-the-end", |m| listed_key(m, 18, &[0x7f, 0, 0, 0])),
    // The key list then contains the top directory as a directory of its own.
    flat("06-directory-in-itself", |m| {
        file(m, |f| {
            let key = listed(f);
            let (key_bytes, name_bytes) = (43, u32::from_be_bytes([f[28], f[29], f[30], f[31]]));
            set(f, key + 18, &(100 + name_bytes - key_bytes).to_be_bytes());
            set(f, key + KEY_HEAD, b"\x0aTDirectory\x04self\x00");
        });
    }),
    flat("06-key-list-is-the-anchor", |m| {
        file(m, |f| {
            // The last word of the top directory's record in 32-bit layout: where its key list lies.
            let record = 100 + u32::from_be_bytes([f[28], f[29], f[30], f[31]]) as usize;
            let anchor = (find(f, CLASS, 0) - KEY_HEAD) as u32;
            set(f, record + 26, &anchor.to_be_bytes());
        });
    }),
    flat("06-key-is-the-key-list", |m| {
        file(m, |f| {
            let record = 100 + u32::from_be_bytes([f[28], f[29], f[30], f[31]]) as usize;
            let list: [u8; 4] = f[record + 26..record + 30].try_into().expect("four bytes");
            let key = listed(f);
            set(f, key + 18, &list);
        });
    }),
    flat("06-key-list-is-itself-a-directory", |m| {
        file(m, |f| {
            let record = 100 + u32::from_be_bytes([f[28], f[29], f[30], f[31]]) as usize;
            let list: [u8; 4] = f[record + 26..record + 30].try_into().expect("four bytes");
            let key = listed(f);
            set(f, key + 18, &list);
            set(f, key + KEY_HEAD, b"\x0aTDirectory\x04self\x00");
        });
    }),
    flat("07-class-name-length", |m| {
        file(m, |f| {
            let key = listed(f);
            set(f, key + KEY_HEAD, &[0xff, 0x7f, 0xff, 0xff, 0xff]);
        });
    }),
    flat("07-zero-in-the-name", |m| {
        file(m, |f| {
            let key = listed(f);
            set(f, key + KEY_HEAD + CLASS.len(), b"\x01\x00");
        });
    }),
    flat("08-no-anchor", |m| file(m, |f| replace(f, CLASS, 1, b"\x0dROOT::RNThing"))),
    flat("09-anchor-checksum", |m| anchor_bytes(m, |a| a[20] ^= 1)),
    flat("09-anchor-byte-count", |m| anchor_bytes(m, |a| a[3] += 1)),
    flat("09-anchor-version-1", |m| anchor_bytes(m, |a| a[5] = 1)),
    flat("09-anchor-of-the-future", |m| {
        anchor_bytes(m, |a| {
            a[3] += 4;
            a[5] = 3;
            a.splice(70..70, [1, 2, 3, 4]);
            seal_anchor(a);
        });
    }),
    flat("09-anchor-too-short", |m| anchor_bytes(m, |a| a.truncate(40))),
    flat("10-epoch-0", |m| m.version[0] = 0),
    flat("10-epoch-2", |m| m.version[0] = 2),
    flat("10-version-1-99-0-0", |m| m.version[1] = 99),
    flat("11-header-at-0", |m| m.edit_anchor(|a| a.seek_header = 0)),
    flat("11-header-at-2-63", |m| m.edit_anchor(|a| a.seek_header = 1 << 63)),
    flat("11-footer-at-0", |m| m.edit_anchor(|a| a.seek_footer = 0)),
    flat("11-footer-at-max", |m| m.edit_anchor(|a| a.seek_footer = u64::MAX)),
    flat("11-footer-behind-the-end", |m| m.edit_anchor(|a| a.seek_footer = 1 << 20)),
    flat("11-header-at-max", |m| m.edit_anchor(|a| a.seek_header = u64::MAX)),
    flat("11-footer-is-the-header", |m| {
        m.edit_anchor(|a| {
            (a.seek_footer, a.nbytes_footer, a.len_footer) = (a.seek_header, a.nbytes_header, a.len_header);
        });
    }),
    flat("12-header-nbytes-4", |m| m.edit_anchor(|a| a.nbytes_header = 4)),
    flat("12-header-nbytes-0", |m| m.edit_anchor(|a| a.nbytes_header = 0)),
    flat("12-header-len-0", |m| m.edit_anchor(|a| a.len_header = 0)),
    flat("12-footer-nbytes-and-len-4", |m| m.edit_anchor(|a| (a.nbytes_footer, a.len_footer) = (4, 4))),
    flat("12-footer-len-0", |m| m.edit_anchor(|a| a.len_footer = 0)),
    flat("13-header-len-6-gib", |m| m.edit_anchor(|a| a.len_header = 6 << 30)),
    flat("13-header-len-256-mib", |m| m.edit_anchor(|a| a.len_header = 256 << 20)),
    flat("13-footer-len-2-62", |m| m.edit_anchor(|a| a.len_footer = 1 << 62)),
    flat("13-header-nbytes-1-more-than-the-file", |m| {
        m.edit_anchor(|a| (a.nbytes_header, a.len_header) = (1 << 12, 1 << 12));
    }),
    flat("13-footer-nbytes-1-tib", |m| m.edit_anchor(|a| (a.nbytes_footer, a.len_footer) = (1 << 40, 1 << 40))),
    flat("14-header-sizes-max", |m| m.edit_anchor(|a| (a.nbytes_header, a.len_header) = (u64::MAX, u64::MAX))),
    flat("14-header-sizes-2-63", |m| m.edit_anchor(|a| (a.nbytes_header, a.len_header) = (1 << 63, 1 << 63))),
    flat("14-footer-sizes-max", |m| m.edit_anchor(|a| (a.nbytes_footer, a.len_footer) = (u64::MAX, u64::MAX))),
    flat("14-header-sizes-max-in-chunks", |m| {
        m.edit_anchor(|a| (a.nbytes_header, a.len_header, a.max_key_size) = (u64::MAX, u64::MAX, 64));
    }),
    flat("15-footer-len-below-nbytes", |m| m.edit_anchor(|a| a.len_footer = a.nbytes_footer - 1)),
    flat("15-header-len-below-nbytes", |m| m.edit_anchor(|a| a.len_header -= 1)),
    flat("16-max-key-0", |m| m.edit_anchor(|a| a.max_key_size = 0)),
    flat("16-max-key-1", |m| m.edit_anchor(|a| a.max_key_size = 1)),
    flat("16-max-key-16", |m| m.edit_anchor(|a| a.max_key_size = 16)),
    flat("16-max-key-64", |m| m.edit_anchor(|a| a.max_key_size = 64)),
    flat("16-max-key-100", |m| m.edit_anchor(|a| a.max_key_size = 100)),
];
