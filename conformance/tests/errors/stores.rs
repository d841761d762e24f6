//! Anchors and manifests of ntuples in object stores.

use serde_json::{Value, json};
use tupelo_format::checksum::xxh3;
use tupelo_format::container::AnchorLinks;
use tupelo_format::locator::{EnvelopeLink, Locator};
use tupelo_format::store::daos::{ANCHOR_BYTES, DaosAnchor, DaosExtension, FOOTER_AKEY, HEADER_AKEY};
use tupelo_format::store::{Extension, JsonAnchor, Manifest, ObjectDigest, ObjectFolder, ObjectLink};
use tupelo_format::wire::Memory;

fn anchor() -> JsonAnchor {
    let link = |location| EnvelopeLink { length: 100, locator: Locator::Object { location, bytes: 50 } };
    let manifest = ObjectLink { object: 7, bytes: 40, digest: 5 };
    JsonAnchor {
        links: AnchorLinks { version: [1, 0, 2, 0], header: link(0), footer: link(6) },
        place: ObjectFolder::Attempt("a".to_owned()),
        extension: Some(Extension {
            mapping: "page".to_owned(),
            bytes: 1000,
            manifest,
            page_lists: vec![manifest],
            attribute_sets: vec![("a".to_owned(), ObjectDigest { bytes: 300, digest: 6 })],
        }),
    }
}

/// The error of an anchor in which a member is another, and whose checksum is right.
fn changed(path: &str, value: Value) -> String {
    let text = anchor().write().expect("objects only");
    let mut json: Value = serde_json::from_str(&text).expect("JSON");
    json.as_object_mut().expect("an object").remove("checksum");
    *json.pointer_mut(path).expect("a member") = value;
    json.sort_all_objects();
    json["checksum"] = json!(xxh3(json.to_string().as_bytes()));
    JsonAnchor::read(json.to_string().as_bytes()).expect_err("it is damaged").to_string()
}

#[test]
pub(super) fn what_anchors_of_stores_refuse() {
    let error = |text: &[u8]| JsonAnchor::read(text).expect_err("it is damaged").to_string();
    assert!(error(b"no JSON").contains("expected a JSON object"));
    let text = anchor().write().expect("objects only").replace("\"lenHeader\": 100", "\"lenHeader\": 101");
    assert!(error(text.as_bytes()).contains("checksum mismatch"));
    for (path, value, expected) in [
        ("/anchorVersion", json!(1), "version 1 of the anchor is not supported"),
        ("/formatVersionPatch", json!(65536), "formatVersionPatch 65536"),
        ("/formatVersionEpoch", json!(2), "format version with unknown epoch 2"),
        ("/urlTemplate", json!(7), "urlTemplate is missing or not a string"),
        ("/urlTemplate", json!("${baseurl}/../${objid}"), "is not a folder of the ntuple"),
        ("/tupelo", json!([]), "member tupelo is not a JSON object"),
        ("/tupelo/layoutVersion", json!(2), "version 2 of Tupelo's object layout is not supported"),
        ("/tupelo/pageLists", json!([[1, 2]]), "expected three numbers for a page list"),
        ("/tupelo/attributeSets", json!({ "a": [1] }), "expected two numbers for an attribute set"),
        (
            "/headerOffset",
            json!(1_u64 << 32),
            "cannot locate 50 bytes at offset 4294967296 of object 0: numbers exceed 32 bits",
        ),
        ("/lenFooter", json!("100"), "member lenFooter is missing or not a number"),
    ] {
        let found = changed(path, value);
        assert!(found.starts_with("anchor: ") && found.contains(expected), "{path}: {found}");
    }
    let mut in_file = anchor();
    in_file.links.header.locator = Locator::File { offset: 1, bytes: 2 };
    assert!(in_file.write().expect_err("no object").to_string().contains("in the anchor of an object store"));
    let none = Manifest::read(&[0; 24], &Memory::unlimited()).expect_err("no manifest");
    assert!(none.to_string().contains("not a manifest: wrong magic number"), "{none}");
}

#[test]
pub(super) fn what_anchors_of_containers_refuse() {
    let link = |location| EnvelopeLink { length: 100, locator: Locator::Object { location, bytes: 50 } };
    let anchor = DaosAnchor {
        links: AnchorLinks { version: [1, 0, 2, 0], header: link(HEADER_AKEY), footer: link(FOOTER_AKEY) },
        class: "SX".to_owned(),
        extension: Some(DaosExtension {
            bytes: 1000,
            attempt: 1,
            separate_pages: false,
            header_digest: 2,
            footer_digest: 3,
        }),
    };
    let bytes = anchor.write().expect("it is small");
    for (at, byte, is_signed, expected) in [
        (0, 2, false, "version 2 of the anchor is not supported"),
        (8, 2, false, "format version with unknown epoch 2"),
        (36, b'/', false, "'/X' is not the name of an object class"),
        (20, 0, false, "checksum mismatch"),
        (52, 0, false, "the word TUPELO is damaged"),
        (72, 2, true, "unknown flags (0000000200000000)"),
    ] {
        let mut changed = bytes.clone();
        changed[at] = byte;
        if is_signed {
            let digest = xxh3(&changed[..ANCHOR_BYTES - 8]).to_le_bytes();
            changed[ANCHOR_BYTES - 8..].copy_from_slice(&digest);
        }
        let found = DaosAnchor::read(&changed).expect_err("it is damaged").to_string();
        assert!(found.starts_with("anchor: ") && found.contains(expected), "byte {at}: {found}");
    }
    let mut large = anchor.clone();
    large.links.footer.length = 1 << 32;
    assert!(large.write().expect_err("too large").to_string().contains("envelope of 4294967296 bytes exceeds 4 GiB"));
    let long = DaosAnchor { class: "A_LONG_OBJECT_CLASS".to_owned(), ..anchor };
    assert!(long.write().expect_err("too long").to_string().contains("is longer than"));
}
