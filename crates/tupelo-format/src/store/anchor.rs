//! The anchor of an ntuple in an object store.

use serde_json::{Map, Value, json};

use super::ObjectDigest;
use crate::checksum::xxh3;
use crate::container::AnchorLinks;
use crate::locator::{EnvelopeLink, Locator};
use crate::{Error, Result};

/// Anchors with more bytes are not read. ROOT requests 8 KiB.
pub const MAX_ANCHOR_BYTES: u64 = 8 << 10;
/// The version of ROOT's anchor.
const ANCHOR_VERSION: u64 = 0;
/// The only epoch of the format.
const EPOCH: u16 = 1;
/// The version of what [`Extension`] describes.
const LAYOUT_VERSION: u64 = 1;
/// The folder of the objects of ROOT's back end.
const ROOT_TEMPLATE: &str = "${baseurl}/${objid}";
/// The parts of a template before and after the name of an attempt.
const ATTEMPT_TEMPLATE: [&str; 2] = ["${baseurl}.objects/", "/${objid}"];
/// Maximum length of the name of an attempt.
const MAX_ATTEMPT_CHARS: usize = 64;

/// Where the numbered objects of an ntuple are, relative to its anchor. No template leads anywhere else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectFolder {
    /// `BASE/NUMBER`, as ROOT writes them.
    Below,
    /// `BASE.objects/ATTEMPT/NUMBER`: many stores cannot have an object and a folder of the same name, and the objects of
    /// two attempts must not mix.
    Attempt(String),
}

impl ObjectFolder {
    fn read(template: &str) -> Option<Self> {
        if template == ROOT_TEMPLATE {
            return Some(Self::Below);
        }
        let [before, after] = ATTEMPT_TEMPLATE;
        let attempt = template.strip_prefix(before)?.strip_suffix(after)?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let is_name = (1..=MAX_ATTEMPT_CHARS).contains(&attempt.len()) && attempt.chars().all(is_plain);
        is_name.then(|| Self::Attempt(attempt.to_owned()))
    }

    fn template(&self) -> String {
        match self {
            Self::Below => ROOT_TEMPLATE.to_owned(),
            Self::Attempt(attempt) => ATTEMPT_TEMPLATE.join(attempt),
        }
    }

    /// The folder of the objects of an ntuple with the key `base`, with a slash at its end.
    pub fn folder(&self, base: &str) -> String {
        match self {
            Self::Below => format!("{base}/"),
            Self::Attempt(attempt) => format!("{}{attempt}/", Self::attempts(base)),
        }
    }

    /// The folder of all attempts of an ntuple with the key `base`, with a slash at its end.
    pub fn attempts(base: &str) -> String {
        format!("{base}.objects/")
    }
}

/// Tupelo's extension of the anchor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    /// The mapping of pages to objects, as text, for information: locators decide.
    pub mapping: String,
    /// Bytes of all objects.
    pub bytes: u64,
    /// The manifest.
    pub manifest: ObjectLink,
    /// The page lists, if they are few: they can be read with header and footer, and cannot be exchanged.
    pub page_lists: Vec<ObjectLink>,
    /// The anchors of attribute sets by name, if they are few: they cannot be exchanged.
    pub attribute_sets: Vec<(String, ObjectDigest)>,
}

/// An object, such as the one that holds the [`Manifest`](super::Manifest).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectLink {
    /// Number of the object.
    pub object: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// XXH3 of its bytes.
    pub digest: u64,
}

/// The content of an anchor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonAnchor {
    /// The links to header and footer.
    pub links: AnchorLinks,
    /// Where the objects are.
    pub place: ObjectFolder,
    /// The part unknown to ROOT; `None` in anchors that ROOT wrote.
    pub extension: Option<Extension>,
}

impl JsonAnchor {
    /// Reads an anchor.
    ///
    /// # Errors
    /// Corrupt if it is not JSON, lacks a member or does not match its checksum; unsupported for another version of
    /// the anchor, the layout or the format, and for objects in another place than [`ObjectFolder`] describes.
    pub fn read(json: &[u8]) -> Result<Self> {
        read(json).map_err(|error| error.within("anchor"))
    }

    /// The anchor as JSON with indentation, its checksum included.
    ///
    /// # Errors
    /// Unsupported for envelopes that are not objects.
    pub fn write(&self) -> Result<String> {
        let mut members = Map::new();
        members.insert("anchorVersion".to_owned(), json!(ANCHOR_VERSION));
        for (name, part) in VERSION_MEMBERS.into_iter().zip(self.links.version) {
            members.insert(name.to_owned(), json!(part));
        }
        members.insert("urlTemplate".to_owned(), json!(self.place.template()));
        for (names, link) in [(HEADER_MEMBERS, self.links.header), (FOOTER_MEMBERS, self.links.footer)] {
            let (object, offset, bytes) = match link.locator {
                Locator::Object { location, bytes } => (location, 0, bytes),
                Locator::ObjectRange { object, offset, bytes } => (object.into(), offset.into(), bytes),
                other => {
                    return Err(Error::unsupported(format!(
                        "found {other} in the anchor of an object store, expected an object"
                    )));
                }
            };
            for (name, number) in names.into_iter().zip([object, offset, bytes, link.length]) {
                members.insert(name.to_owned(), json!(number));
            }
        }
        if let Some(Extension { mapping, bytes, manifest, page_lists, attribute_sets }) = &self.extension {
            let sets: Map<String, Value> =
                attribute_sets.iter().map(|(name, it)| (name.clone(), json!([it.bytes, it.digest]))).collect();
            let lists: Vec<_> = page_lists.iter().map(|it| json!([it.object, it.bytes, it.digest])).collect();
            let extension = json!({
                "layoutVersion": LAYOUT_VERSION,
                "mapping": mapping,
                "bytes": bytes,
                "manifestObjId": manifest.object,
                "manifestBytes": manifest.bytes,
                "manifestXXH3": manifest.digest,
                "pageLists": lists,
                "attributeSets": sets,
            });
            members.insert("tupelo".to_owned(), extension);
        }
        let checksum = checksum(&members);
        members.insert("checksum".to_owned(), json!(checksum));
        Ok(format!("{:#}", sorted(members)))
    }
}

const VERSION_MEMBERS: [&str; 4] =
    ["formatVersionEpoch", "formatVersionMajor", "formatVersionMinor", "formatVersionPatch"];
const HEADER_MEMBERS: [&str; 4] = ["headerObjId", "headerOffset", "nBytesHeader", "lenHeader"];
const FOOTER_MEMBERS: [&str; 4] = ["footerObjId", "footerOffset", "nBytesFooter", "lenFooter"];

fn read(json: &[u8]) -> Result<JsonAnchor> {
    let Ok(Value::Object(mut members)) = serde_json::from_slice(json) else {
        return Err(Error::corrupt("expected a JSON object"));
    };
    match number(&members, "anchorVersion")? {
        ANCHOR_VERSION => {}
        other => return Err(Error::unsupported(format!("version {other} of the anchor is not supported"))),
    }
    let stored = number(&members, "checksum")?;
    members.shift_remove("checksum");
    let computed = checksum(&members);
    if stored != computed {
        return Err(Error::corrupt(format!("checksum mismatch (stored {stored:016x}, computed {computed:016x})")));
    }
    let mut version = [0; 4];
    for (part, name) in version.iter_mut().zip(VERSION_MEMBERS) {
        let value = number(&members, name)?;
        *part = u16::try_from(value).map_err(|_| Error::corrupt(format!("invalid {name} {value}")))?;
    }
    if version[0] != EPOCH {
        return Err(Error::unsupported(format!("format version with unknown epoch {}", version[0])));
    }
    let template = match members.get("urlTemplate") {
        Some(Value::String(template)) => template,
        _ => return Err(Error::corrupt("urlTemplate is missing or not a string")),
    };
    let place = ObjectFolder::read(template).ok_or_else(|| {
        let shown: String = template.chars().take(200).collect();
        Error::unsupported(format!("urlTemplate '{}' is not a folder of the ntuple", shown.escape_debug()))
    })?;
    let links =
        AnchorLinks { version, header: link(&members, HEADER_MEMBERS)?, footer: link(&members, FOOTER_MEMBERS)? };
    let extension = members.get("tupelo").map(extension).transpose()?;
    Ok(JsonAnchor { links, place, extension })
}

fn extension(value: &Value) -> Result<Extension> {
    let Value::Object(members) = value else { return Err(Error::corrupt("member tupelo is not a JSON object")) };
    match number(members, "layoutVersion")? {
        LAYOUT_VERSION => {}
        other => return Err(Error::unsupported(format!("version {other} of Tupelo's object layout is not supported"))),
    }
    let manifest = ObjectLink {
        object: number(members, "manifestObjId")?,
        bytes: number(members, "manifestBytes")?,
        digest: number(members, "manifestXXH3")?,
    };
    let mapping = members.get("mapping").and_then(Value::as_str).unwrap_or_default().to_owned();
    let bytes = number(members, "bytes")?;
    let page_lists = members.get("pageLists").and_then(Value::as_array).into_iter().flatten();
    let page_lists = page_lists.map(object_link).collect::<Result<_>>()?;
    let sets = members.get("attributeSets").and_then(Value::as_object).into_iter().flatten();
    let attribute_sets = sets.map(|(name, value)| Ok((name.clone(), object_digest(value)?))).collect::<Result<_>>()?;
    Ok(Extension { mapping, bytes, manifest, page_lists, attribute_sets })
}

/// Number, bytes and digest of an object.
fn object_link(value: &Value) -> Result<ObjectLink> {
    let numbers: Option<Vec<u64>> = value.as_array().and_then(|list| list.iter().map(Value::as_u64).collect());
    match numbers.as_deref() {
        Some(&[object, bytes, digest]) => Ok(ObjectLink { object, bytes, digest }),
        _ => Err(Error::corrupt("expected three numbers for a page list")),
    }
}

/// Bytes and digest of an object.
fn object_digest(value: &Value) -> Result<ObjectDigest> {
    let numbers: Option<Vec<u64>> = value.as_array().and_then(|list| list.iter().map(Value::as_u64).collect());
    match numbers.as_deref() {
        Some(&[bytes, digest]) => Ok(ObjectDigest { bytes, digest }),
        _ => Err(Error::corrupt("expected two numbers for an attribute set")),
    }
}

fn link(members: &Map<String, Value>, names: [&str; 4]) -> Result<EnvelopeLink> {
    let [object, offset, bytes, length] = names.map(|name| number(members, name));
    let (object, offset, bytes) = (object?, offset?, bytes?);
    let locator = match offset {
        0 => Locator::Object { location: object, bytes },
        _ => match (u32::try_from(object), u32::try_from(offset)) {
            (Ok(object), Ok(offset)) => Locator::ObjectRange { object, offset, bytes },
            _ => {
                return Err(Error::unsupported(format!(
                    "cannot locate {bytes} bytes at offset {offset} of object {object}: numbers exceed 32 bits"
                )));
            }
        },
    };
    Ok(EnvelopeLink { length: length?, locator })
}

fn number(members: &Map<String, Value>, name: &str) -> Result<u64> {
    let value = members.get(name).and_then(Value::as_u64);
    value.ok_or_else(|| Error::corrupt(format!("member {name} is missing or not a number")))
}

/// Of the compact form with sorted members, as ROOT computes it.
fn checksum(members: &Map<String, Value>) -> u64 {
    xxh3(sorted(members.clone()).to_string().as_bytes())
}

fn sorted(members: Map<String, Value>) -> Value {
    let mut value = Value::Object(members);
    value.sort_all_objects();
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchor() -> JsonAnchor {
        let link = |location, bytes, length| EnvelopeLink { length, locator: Locator::Object { location, bytes } };
        let manifest = ObjectLink { object: 9, bytes: 160, digest: u64::MAX };
        let page_lists = vec![ObjectLink { object: 7, bytes: 100, digest: 3 }];
        JsonAnchor {
            links: AnchorLinks { version: [1, 0, 2, 0], header: link(0, 10, 20), footer: link(8, 30, 60) },
            place: ObjectFolder::Attempt("20260101T120000-00ff".to_owned()),
            extension: Some(Extension {
                mapping: "cage:1MiB".to_owned(),
                bytes: 1 << 40,
                manifest,
                page_lists,
                attribute_sets: vec![("a \"set\"".to_owned(), ObjectDigest { bytes: 300, digest: 1 << 63 })],
            }),
        }
    }

    #[test]
    fn written_records_are_read_back() {
        let json = anchor().write().unwrap();
        assert_eq!(JsonAnchor::read(json.as_bytes()), Ok(anchor()));
        assert!(json.len() < MAX_ANCHOR_BYTES as usize && json.starts_with("{\n  \"anchorVersion\": 0,\n"), "{json}");
        let mut other = anchor();
        other.links.header.locator = Locator::ObjectRange { object: 3, offset: 7, bytes: 10 };
        assert_eq!(JsonAnchor::read(other.write().unwrap().as_bytes()), Ok(other.clone()));
        other.links.footer.locator = Locator::File { offset: 3, bytes: 4 };
        assert!(other.write().is_err());
    }

    /// The members, their order and the checksum of `RNTupleAnchorS3::ToJSON`.
    #[test]
    fn anchors_of_root_are_read() {
        let compact = "{\"anchorVersion\":0,\"footerObjId\":5,\"footerOffset\":0,\"formatVersionEpoch\":1,\
            \"formatVersionMajor\":0,\"formatVersionMinor\":2,\"formatVersionPatch\":0,\"headerObjId\":0,\
            \"headerOffset\":0,\"lenFooter\":100,\"lenHeader\":200,\"nBytesFooter\":50,\"nBytesHeader\":60,\
            \"urlTemplate\":\"${baseurl}/${objid}\"}";
        let checksum = xxh3(compact.as_bytes());
        let json = compact.replacen('{', &format!("{{ \"checksum\" : {checksum},\n"), 1);
        let anchor = JsonAnchor::read(json.as_bytes()).unwrap();
        assert_eq!((&anchor.place, &anchor.extension), (&ObjectFolder::Below, &None));
        assert_eq!(
            anchor.links.footer,
            EnvelopeLink { length: 100, locator: Locator::Object { location: 5, bytes: 50 } }
        );
        assert_eq!(JsonAnchor::read(anchor.write().unwrap().as_bytes()), Ok(anchor));
    }

    #[test]
    fn damaged_anchors_are_errors() {
        let json = anchor().write().unwrap();
        let error = |json: &str| JsonAnchor::read(json.as_bytes()).unwrap_err().to_string();
        assert_eq!(error(""), "anchor: expected a JSON object");
        assert_eq!(error("[1]"), "anchor: expected a JSON object");
        assert_eq!(error("{}"), "anchor: member anchorVersion is missing or not a number");
        assert!(
            error(&json.replace("\"lenHeader\": 20", "\"lenHeader\": 21")).starts_with("anchor: checksum mismatch")
        );
        assert_eq!(
            error(&json.replace("Version\": 0,", "Version\": 7,")),
            "anchor: version 7 of the anchor is not supported"
        );
        for (from, to, expected) in [
            ("\"formatVersionEpoch\": 1", "\"formatVersionEpoch\": 2", "format version with unknown epoch 2"),
            ("\"formatVersionMinor\": 2", "\"formatVersionMinor\": 70000", "invalid formatVersionMinor 70000"),
            ("\"lenFooter\": 60", "\"lenFooter\": -1", "member lenFooter is missing or not a number"),
            ("\"layoutVersion\": 1", "\"layoutVersion\": 2", "version 2 of Tupelo's object layout is not supported"),
            (
                "\"footerOffset\": 0",
                "\"footerOffset\": 4294967296",
                "cannot locate 30 bytes at offset 4294967296 of object 8: numbers exceed 32 bits",
            ),
            (
                "${baseurl}.objects/2",
                "${baseurl}.objects/../2",
                "urlTemplate '${baseurl}.objects/../20260101T120000-00ff/${objid}' is not a folder of the ntuple",
            ),
            (
                "${baseurl}.objects/",
                "https://host/",
                "urlTemplate 'https://host/20260101T120000-00ff/${objid}' is not a folder of the ntuple",
            ),
            ("urlTemplate", "URLTemplate", "urlTemplate is missing or not a string"),
            ("      100,\n", "", "expected three numbers for a page list"),
        ] {
            let changed = json.replace(from, to);
            let Ok(Value::Object(mut members)) = serde_json::from_str(&changed) else { panic!("{changed}") };
            members.shift_remove("checksum");
            members.insert("checksum".to_owned(), json!(checksum(&members)));
            assert_eq!(error(&Value::Object(members).to_string()), format!("anchor: {expected}"));
        }
    }

    #[test]
    fn objects_lie_in_a_folder_beside_the_anchor() {
        assert_eq!(ObjectFolder::Below.folder("a/events"), "a/events/");
        assert_eq!(ObjectFolder::Attempt("x-1".to_owned()).folder("a/events"), "a/events.objects/x-1/");
        let long = format!("${{baseurl}}.objects/{}/${{objid}}", "a".repeat(65));
        assert_eq!(ObjectFolder::read(&long), None);
        assert_eq!(ObjectFolder::read("${baseurl}.objects//${objid}"), None);
    }
}
