//! Ntuples that are stored as objects.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tupelo_core::error::Remedy;
use tupelo_format::checksum::{CHECKSUM_BYTES, xxh3};
use tupelo_format::container::AnchorLinks;
use tupelo_format::descriptor::AttributeSet;
use tupelo_format::envelope::{EnvelopeType, PageInfo};
use tupelo_format::locator::{EnvelopeLink, Locator};
use tupelo_format::open;
use tupelo_format::store::{MAX_ANCHOR_BYTES, Manifest, ObjectLink};
use tupelo_format::streamer::StreamerInfos;
use tupelo_storage::adapter::{MeteredObjects, RecentObjects};
use tupelo_storage::{
    ErrorKind, Hints, Keys, ObjectRange, ObjectSource, Storage, display_name, mirror_members, names_in_container,
};

use super::anchor::{StoreAnchor, daos_keys};
use super::attempt::without_store;
use super::keys::{Blob, MAX_RECORD_BYTES, ObjectKeys};
use super::{BlobRange, Counters, MAX_PAGE_BYTES, PageStore, RECENT_BUDGET_PART, Session, size_limit};
use crate::{Error, Result};

/// The folder of attribute sets among the objects of an ntuple, as in ROOT.
pub const CLONES: &str = "_clone/";
/// A manifest takes at most this part of the memory budget.
const MANIFEST_BUDGET_PART: u64 = 4;
/// Page lists are read with header and footer if all together have at most this number of bytes and part of the memory.
const MAX_EARLY_BYTES: u64 = 4 << 20;
const EARLY_BUDGET_PART: u64 = 8;

/// An ntuple in a store.
#[derive(Debug, Clone)]
pub struct Objects {
    namespace: Arc<dyn ObjectSource>,
    /// The URI of the ntuple.
    name: String,
    /// The name of the ntuple in the namespace.
    base: Arc<str>,
    /// The anchor as it is stored.
    stored: Bytes,
    anchor: Arc<StoreAnchor>,
    /// Header, footer, and the page lists that the anchor names, once they are read.
    envelopes: Arc<OnceLock<Vec<Bytes>>>,
    /// What the attempts have in common that wrote the ntuple to the stores of a mirror, once it is known; see
    /// [`Objects::attempt`].
    attempt: Arc<OnceLock<Option<String>>>,
    others: Members,
    /// The stores of the mirror before this one that could not be read, and why.
    skipped: Arc<[String]>,
    session: Session,
}

/// The stores of a mirror that are read if no earlier one answers.
#[derive(Debug, Clone, Default)]
struct Members {
    uris: Vec<String>,
    storage: Storage,
}

/// Whether another store of a mirror may help: this one cannot be reached or refuses access, or its objects are missing
/// or damaged.
pub fn may_be_elsewhere(error: &Error) -> bool {
    match error.storage_kind() {
        Some(kind) => kind != ErrorKind::Cancelled,
        // A damaged name of a codec looks like one that is not supported.
        None => error.is_not_found() || error.is_corrupt() || error.kind() == crate::ErrorKind::Unsupported,
    }
}

/// The error of a store of a mirror, after which the next one failed too.
#[cold]
pub fn and_next(error: Error, next: &Error) -> Error {
    error.with_note(&format!("the next store of the mirror: {next}"))
}

impl Members {
    /// Opens the ntuple in the first store that answers.
    fn open(&self, name: &str, session: &Session) -> Result<Objects> {
        let mut failed: Option<Error> = None;
        let mut skipped = Vec::new();
        for (at, uri) in self.uris.iter().enumerate() {
            match self.open_at(at, uri, name, session) {
                Ok(objects) => return Ok(Objects { skipped: skipped.into(), ..objects }),
                Err(error) if self.uris.len() > 1 && may_be_elsewhere(&error) => {
                    skipped.push(format!("{} was skipped: {error}", display_name(uri)));
                    failed = Some(match failed {
                        Some(first) => and_next(first, &error),
                        None => error,
                    });
                }
                Err(error) => return Err(error),
            }
        }
        Err(failed.unwrap_or_else(|| Error::invalid_argument("no other store contains the ntuple")))
    }

    fn open_at(&self, at: usize, uri: &str, name: &str, session: &Session) -> Result<Objects> {
        let (namespace, base) = self.storage.object_source(uri)?;
        let namespace = match session.counters().meter() {
            Some(meter) => Arc::new(MeteredObjects::new(namespace, meter)),
            None => namespace,
        };
        let others = self.uris.get(at + 1..).unwrap_or_default().to_vec();
        let others = Self { uris: others, storage: self.storage.clone() };
        let objects = Objects { others, session: session.clone(), ..Objects::open(namespace, &base, name)? };
        if objects.has_next() {
            // It cannot be read once the store no longer answers.
            objects.attempt()?;
        }
        Ok(objects)
    }
}

impl Objects {
    /// Opens the ntuple with this URI; in a mirror, that of the first store that answers.
    pub fn of_uri(uri: &str, name: &str, storage: &Storage) -> Result<Self> {
        let uris = mirror_members(uri)?.into_iter().map(str::to_owned).collect();
        Members { uris, storage: storage.clone() }.open(name, &Session::default())
    }

    /// The stores of the mirror before this one that could not be read, and why.
    pub fn skipped(&self) -> &[String] {
        &self.skipped
    }

    /// Whether a mirror has another store after this one.
    pub fn has_next(&self) -> bool {
        !self.others.uris.is_empty()
    }

    /// The same ntuple in the next store of a mirror that answers.
    pub fn next(&self) -> Result<Self> {
        self.others.open(&self.name, &self.session)
    }

    /// Whether this and another ntuple were written at once, to several stores. Their pages are then the same.
    pub fn is_copy_of(&self, other: &Self) -> Result<bool> {
        Ok(self.attempt()?.is_some() && self.attempt()? == other.attempt()?)
    }

    /// Whether this attempt, or one for another store of the same mirror, has written the ntuple.
    pub fn is_of_attempt(&self, name: &str) -> Result<bool> {
        Ok(self.attempt()?.is_some() && self.attempt()? == without_store(name))
    }

    /// What the attempts have in common that wrote the ntuple to the stores of a mirror. `None` for an ntuple that Tupelo
    /// did not write.
    fn attempt(&self) -> Result<Option<&str>> {
        if let Some(known) = self.attempt.get() {
            return Ok(known.as_deref());
        }
        let attempt = match (&self.anchor.keys, self.anchor.attempt.as_deref()) {
            (ObjectKeys::Numbered { .. }, attempt) => attempt.and_then(without_store).map(str::to_owned),
            (ObjectKeys::Daos(keys), Some(number)) => {
                let number: u32 = number.parse().map_err(|_| Error::corrupt("its attempt lacks a number"))?;
                match self.namespace.get(&keys.attempt(number), MAX_RECORD_BYTES) {
                    Ok((record, _)) => {
                        let record = String::from_utf8_lossy(&record);
                        keys.of_record(&record).and_then(|(name, _)| without_store(name).map(str::to_owned))
                    }
                    Err(error) if error.is_not_found() => None,
                    Err(error) => return Err(error.into()),
                }
            }
            (ObjectKeys::Daos(_), None) => None,
        };
        Ok(self.attempt.get_or_init(|| attempt).as_deref())
    }

    /// Opens the ntuple `base`.
    pub fn open(namespace: Arc<dyn ObjectSource>, base: &str, name: &str) -> Result<Self> {
        let keys = namespace.keys();
        let stored = match namespace.get(&anchor_key(&keys, base), MAX_ANCHOR_BYTES) {
            Ok((stored, _)) => stored,
            Err(error) if error.is_not_found() && matches!(keys, Keys::Daos { .. }) => {
                // Those that Tupelo wrote.
                let known = names_in_container(&*namespace).unwrap_or_default();
                return Err(Error::no_such("ntuple", base, known.iter().map(String::as_str)));
            }
            Err(error) if error.is_not_found() && base.contains(':') => {
                return Err(Error::from(error).with_note("the URI of an object store must not end with :NAME"));
            }
            Err(error) => return Err(error.into()),
        };
        let anchor = Arc::new(StoreAnchor::read(&stored, &keys, base)?);
        let (name, base) = (name.to_owned(), base.into());
        Ok(Self {
            namespace,
            name,
            base,
            stored,
            anchor,
            envelopes: Arc::default(),
            attempt: Arc::default(),
            others: Members::default(),
            skipped: Arc::default(),
            session: Session::default(),
        })
    }

    /// Name of the ntuple's place, for errors.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Budget, deviations and counters of this store.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The folder of numbered objects.
    pub fn folder(&self) -> Option<&str> {
        match &self.anchor.keys {
            ObjectKeys::Numbered { folder } => Some(folder),
            ObjectKeys::Daos(_) => None,
        }
    }

    /// The objects.
    pub fn namespace(&self) -> &Arc<dyn ObjectSource> {
        &self.namespace
    }

    /// The anchor.
    pub fn anchor(&self) -> &StoreAnchor {
        &self.anchor
    }

    /// The name of the ntuple in the namespace.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Bytes of the anchor.
    pub fn anchor_bytes(&self) -> u64 {
        self.stored.len() as u64
    }

    /// Bytes of all objects, if the anchor says so.
    pub fn size(&self) -> Option<u64> {
        self.anchor.bytes
    }

    /// The same with another limit of memory.
    pub fn with_memory_budget(self, bytes: u64) -> Self {
        Self { session: self.session.with_memory_budget(bytes), ..self }
    }

    /// The same with a limit on the work for metadata, by the size of the ntuple.
    pub fn with_work_limit(self) -> Self {
        let session = self.session.clone().with_work_limit(size_limit(self.size()));
        Self { session, ..self }
    }

    /// The same ntuple for an operation that reads the same pages several times; see
    /// [`File::with_recent_reads`](super::File::with_recent_reads).
    pub fn with_recent_reads(self) -> Self {
        if self.namespace.reads_in_place() {
            return self;
        }
        let max_bytes = self.session.budget().limit_bytes() / RECENT_BUDGET_PART;
        Self { namespace: Arc::new(RecentObjects::new(self.namespace, max_bytes)), ..self }
    }

    /// Enables read statistics.
    pub fn with_metrics(self) -> Self {
        let (counters, meter) = Counters::metered();
        let session = self.session.with_counters(counters);
        Self { namespace: Arc::new(MeteredObjects::new(self.namespace, &meter)), session, ..self }
    }

    /// Reads the manifest; `None` for an ntuple that has none.
    pub fn manifest(&self) -> Result<Option<Manifest>> {
        let Some(ObjectLink { object, bytes, digest }) = self.anchor.manifest else { return Ok(None) };
        let read = || {
            // Its records take the same memory again, and the names of objects in messages more.
            let left = self.session.budget().left() / MANIFEST_BUDGET_PART;
            if bytes > left {
                let refused = Error::limit(format!("needs {bytes} bytes of memory, {left} left"));
                return Err(refused.with_remedy(Remedy::MemoryBudget));
            }
            let (stored, _) =
                self.namespace.get(&self.anchor.keys.key(Blob::numbered(object)), bytes).map_err(missing)?;
            if (stored.len() as u64, xxh3(&stored)) != (bytes, digest) {
                return Err(Error::corrupt("it does not match the anchor"));
            }
            self.session.parse(|memory| Manifest::read(&stored, memory)).map(|(manifest, _)| manifest)
        };
        read().map(Some).map_err(|error| error.within("manifest"))
    }

    /// The store of the ntuple.
    pub fn store(&self) -> ObjectStore {
        ObjectStore { objects: self.clone() }
    }
}

/// The key of the anchor of the ntuple `base`.
pub fn anchor_key(keys: &Keys, base: &str) -> String {
    daos_keys(keys, base).map_or_else(|| base.to_owned(), |keys| keys.anchor())
}

/// The key of the anchor of an attribute set, in the folder of the objects.
pub(crate) fn clone_key(name: &str) -> Result<String> {
    let is_part = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\\']);
    match is_part && !name.contains(char::is_control) {
        true => Ok(format!("{CLONES}{name}")),
        false => Err(Error::corrupt(format!("attribute sets cannot have the name '{}'", name.escape_debug()))),
    }
}

/// An object that an anchor or a page list names must exist.
#[cold]
pub fn missing(error: tupelo_storage::Error) -> Error {
    match error.is_not_found() {
        true => Error::corrupt(format!("an object of the ntuple is missing: {error}")).caused_by(error),
        false => error.into(),
    }
}

/// The objects of one ntuple, or of one of its attribute sets.
#[derive(Debug)]
pub struct ObjectStore {
    objects: Objects,
}

impl ObjectStore {
    fn keys(&self) -> &ObjectKeys {
        &self.objects.anchor.keys
    }

    fn key(&self, blob: Blob) -> Arc<str> {
        self.keys().key(blob).into()
    }

    fn get_envelopes(&self, envelopes: &[(EnvelopeType, EnvelopeLink)]) -> Result<Vec<Bytes>> {
        let (mut ranges, mut bytes) = (Vec::with_capacity(envelopes.len()), 0u64);
        for (kind, link) in envelopes {
            open::check_envelope_size(*kind, link)?;
            let range = self.envelope_range(link).map_err(|e| e.within(kind.name()))?;
            bytes = bytes.saturating_add(range.bytes());
            ranges.push(ObjectRange { key: self.key(range.blob), range: range.start..range.end });
        }
        let left = self.objects.session.budget().left();
        if bytes > left {
            let what = format!("metadata of {bytes} stored bytes exceeds the {left} bytes of memory left");
            return Err(Error::limit(what).with_remedy(Remedy::MemoryBudget));
        }
        // Small page lists come with the head: that saves a round trip.
        let listed = &self.objects.anchor.page_lists;
        let listed_bytes = listed.iter().fold(bytes, |sum, list| sum.saturating_add(list.bytes));
        if is_head(envelopes) && listed_bytes <= MAX_EARLY_BYTES.min(left / EARLY_BUDGET_PART) {
            ranges.extend(
                listed.iter().map(|list| ObjectRange {
                    key: self.key(self.keys().of_envelope(list.object)),
                    range: 0..list.bytes,
                }),
            );
        }
        self.objects.namespace.get_ranges(&ranges).map_err(missing)
    }

    /// A page list of those that the anchor names: the link, and the bytes if they were read already.
    fn listed(&self, link: &EnvelopeLink) -> Option<(ObjectLink, Option<Bytes>)> {
        let Locator::Object { location, bytes } = link.locator else { return None };
        let lists = &self.objects.anchor.page_lists;
        let at = lists.iter().position(|list| (list.object, list.bytes) == (location, bytes))?;
        let early = self.objects.envelopes.get().and_then(|known| known.get(2 + at)).cloned();
        Some((*lists.get(at)?, early))
    }
}

/// Whether header and footer are requested.
fn is_head(envelopes: &[(EnvelopeType, EnvelopeLink)]) -> bool {
    matches!(envelopes, [(EnvelopeType::Header, _), (EnvelopeType::Footer, _)])
}

/// The number of the object, and the offset in it, to which a locator leads.
fn object(locator: &Locator) -> Result<(u64, u64)> {
    match *locator {
        Locator::Object { location, .. } => Ok((location, 0)),
        Locator::ObjectRange { object, offset, .. } | Locator::Cage { object, offset, .. } => {
            Ok((object.into(), offset.into()))
        }
        other => Err(Error::unsupported(format!("found {other} in an object store"))),
    }
}

impl PageStore for ObjectStore {
    fn name(&self) -> String {
        self.objects.name.clone()
    }

    fn size(&self) -> Option<u64> {
        self.objects.size()
    }

    fn hints(&self) -> Hints {
        self.objects.namespace.hints()
    }

    fn max_blob_bytes(&self) -> u64 {
        0
    }

    fn anchor(&self) -> &AnchorLinks {
        &self.objects.anchor.links
    }

    fn check_name(&self, found: &str) -> Result<()> {
        let base = &*self.objects.base;
        match self.keys() {
            ObjectKeys::Daos(_) if found != base => {
                let what =
                    format!("the container lacks ntuple '{base}', but has '{found}', whose name has the same hash");
                Err(Error::not_found(what).in_file(&self.objects.name))
            }
            _ => Ok(()),
        }
    }

    /// Of what the attempt has in common with those that wrote copies, or of the anchor.
    fn identity(&self) -> Result<u64> {
        let attempt = self.objects.attempt()?;
        Ok(xxh3(attempt.map_or(&self.objects.stored[..], str::as_bytes)))
    }

    fn envelopes(&self, envelopes: &[(EnvelopeType, EnvelopeLink)]) -> Result<Vec<Bytes>> {
        if is_head(envelopes) {
            let known = match self.objects.envelopes.get() {
                Some(known) => known,
                None => {
                    let read = self.get_envelopes(envelopes)?;
                    if let [header, footer, ..] = read.as_slice() {
                        self.objects.anchor.check_head([header, footer])?;
                    }
                    self.objects.envelopes.get_or_init(|| read)
                }
            };
            return Ok(known.iter().take(envelopes.len()).cloned().collect());
        }
        let known: Vec<_> = envelopes.iter().map(|(_, link)| self.listed(link)).collect();
        let early = known.iter().map(|known| known.as_ref().and_then(|(_, bytes)| bytes.clone()));
        let read = match early.collect::<Option<Vec<Bytes>>>() {
            Some(early) => early,
            None => self.get_envelopes(envelopes)?,
        };
        for ((stored, known), (kind, _)) in read.iter().zip(known).zip(envelopes) {
            let is_named = match known {
                Some((link, _)) => xxh3(stored) == link.digest,
                // The anchor names all page lists or none.
                None => *kind != EnvelopeType::PageList || self.objects.anchor.page_lists.is_empty(),
            };
            if !is_named {
                return Err(Error::corrupt("it does not match the anchor").within("page list"));
            }
        }
        Ok(read)
    }

    fn attribute_set(&self, set: &AttributeSet) -> Result<Box<dyn PageStore>> {
        let base = match self.keys() {
            ObjectKeys::Numbered { folder } => format!("{folder}{}", clone_key(&set.name)?),
            keys => keys.key(keys.of_envelope(object(&set.anchor)?.0)),
        };
        let (stored, _) = self.objects.namespace.get(&base, MAX_ANCHOR_BYTES).map_err(missing)?;
        self.objects.anchor.check_set(&set.name, &stored)?;
        let anchor = StoreAnchor::of_set(&stored, &self.objects.anchor, &base)?;
        let (base, anchor) = (base.into(), Arc::new(anchor));
        let objects = Objects { stored, base, anchor, envelopes: Arc::default(), ..self.objects.clone() };
        Ok(Box::new(Self { objects }))
    }

    /// The ntuple is not in a file; its footer describes the classes.
    fn streamer_infos(&self) -> Result<StreamerInfos> {
        Ok(StreamerInfos::default())
    }

    fn envelope_range(&self, link: &EnvelopeLink) -> Result<BlobRange> {
        let (number, start) = object(&link.locator)?;
        let blob = self.keys().of_envelope(number);
        Ok(BlobRange { blob, start, end: start.saturating_add(link.locator.stored_bytes()) })
    }

    fn page_range(&self, cluster: u64, column: u32, page: &PageInfo) -> Result<BlobRange> {
        let (number, start) = object(&page.locator)?;
        let blob = self.keys().of_page(cluster, column, number)?;
        let bytes = page.locator.stored_bytes();
        if bytes > MAX_PAGE_BYTES {
            return Err(Error::limit(format!("page of {bytes} stored bytes exceeds the limit of {MAX_PAGE_BYTES}")));
        }
        let checksum = if page.has_checksum { CHECKSUM_BYTES as u64 } else { 0 };
        // No overflow: the offset has 32 bits.
        Ok(BlobRange { blob, start, end: start + bytes + checksum })
    }

    fn is_read_in_place(&self, _: &BlobRange) -> bool {
        self.objects.namespace.reads_in_place()
    }

    fn fetch(&self, ranges: &[BlobRange]) -> Result<Vec<Bytes>> {
        let mut last = None;
        let mut key = |blob: Blob| match &last {
            Some((known, key)) if *known == blob => Arc::clone(key),
            _ => {
                let key = self.key(blob);
                last = Some((blob, Arc::clone(&key)));
                key
            }
        };
        let ranges = ranges.iter().map(|it| ObjectRange { key: key(it.blob), range: it.start..it.end });
        self.objects.namespace.get_ranges(&ranges.collect::<Vec<_>>()).map_err(missing)
    }

    fn read_into(&self, blob: Blob, start: u64, pieces: &mut [&mut [u8]]) -> Result<()> {
        self.objects.namespace.get_into(&self.key(blob), start, pieces).map_err(missing)
    }
}
