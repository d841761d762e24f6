//! An object store as a sink: one ntuple, whose objects are written under a name of their own and become visible with the
//! anchor.

mod checks;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;
use tupelo_format::checksum::xxh3;
use tupelo_format::compression::Compression;
use tupelo_format::container::AnchorLinks;
use tupelo_format::envelope::EnvelopeType;
use tupelo_format::locator::Locator;
use tupelo_format::object::Object;
use tupelo_format::store::daos::{FOOTER_AKEY, HEADER_AKEY};
use tupelo_format::store::{Extension, JsonAnchor, MAX_ANCHOR_BYTES, Manifest, ObjectDigest, ObjectFolder, ObjectLink};
use tupelo_format::streamer::StreamerInfos;
use tupelo_storage::{Condition, ErrorKind, NewObject, ObjectRange, ObjectSink as Namespace, ObjectSource};

use self::checks::{check_base, check_metadata_class, check_name, not_an_ntuple};
use super::attempt::{Attempt, Kind, put_new};
use super::mapping::Mapping;
use super::uploads::Uploads;
use super::{FileSink, PageBytes, PageSink, Stored, Target, check_process};
use crate::source::{Blob, CLONES, ObjectKeys, StoreAnchor, anchor_key, clone_key, write_daos};
use crate::{Error, Result};

/// Maximum number of page lists in an anchor, which then has about 3 KiB.
const MAX_LISTED: usize = 32;
/// The names of the attribute sets in an anchor have at most this number of bytes.
const MAX_NAME_BYTES: usize = 1 << 10;

/// One ntuple that is being written to a store, or one of its attribute sets.
#[derive(Debug, Clone)]
pub struct ObjectSink {
    inner: Arc<Inner>,
    keys: ObjectKeys,
    is_set: bool,
}

#[derive(Debug)]
struct Inner {
    namespace: Arc<dyn Namespace>,
    /// The URI of the ntuple, for messages.
    name: String,
    /// The name of the ntuple in the namespace.
    base: String,
    attempt: Attempt,
    mapping: Mapping,
    condition: Condition,
    uploads: Uploads,
    state: Mutex<State>,
    /// The process that writes. A forked child must not.
    process: u32,
}

#[derive(Debug, Default)]
struct State {
    /// Number of the next object.
    next: u64,
    /// Keys of objects in a folder in addition to the numbers.
    named: Vec<String>,
    /// Numbers of the page lists.
    page_lists: Vec<u64>,
    /// Header and footer, where they are written with the anchor.
    head: [Bytes; 2],
    stored_bytes: u64,
    ntuple: Progress,
    published: Option<AnchorLinks>,
    /// When the record of the attempt was sealed.
    sealed: Option<SystemTime>,
    /// Why nothing more may be written.
    closed: Option<String>,
    is_reported: bool,
}

/// The state of the ntuple.
#[derive(Debug, Default, PartialEq, Eq)]
enum Progress {
    #[default]
    None,
    Open(String),
    Finished,
    Abandoned,
}

impl ObjectSink {
    /// Begins an ntuple whose anchor has the key `base`. An existing one is replaced, or, if `is_exclusive`, refused.
    /// `attempt` is the name of the attempt.
    pub fn create(
        namespace: Arc<dyn Namespace>,
        (base, attempt): (&str, &str),
        name: &str,
        mapping: Mapping,
        is_exclusive: bool,
    ) -> Result<Self> {
        check_base(base, name)?;
        let keys = namespace.keys();
        let mapping = mapping.resolve_in(&keys, namespace.reads_in_place(), namespace.hints().max_request_bytes);
        let mapping = mapping.map_err(|e| e.in_file(name))?;
        let (condition, visible) = match namespace.state(&anchor_key(&keys, base), MAX_ANCHOR_BYTES) {
            Ok((condition, None)) => {
                check_metadata_class(&*namespace, base).map_err(|e| e.in_file(name))?;
                (condition, None)
            }
            Ok(_) if is_exclusive => {
                return Err(Error::from(tupelo_storage::Error::new(
                    ErrorKind::Changed,
                    "create",
                    name,
                    "it already exists",
                )));
            }
            Ok((condition, Some(bytes))) => match StoreAnchor::read(&bytes, &keys, base) {
                Ok(anchor) => {
                    check_name(&namespace, base, name)?;
                    (condition, anchor.attempt)
                }
                Err(error) => return Err(not_an_ntuple(name, &error.to_string())),
            },
            Err(error) if error.kind() == ErrorKind::NotSupported => {
                return Err(not_an_ntuple(name, &error.to_string()));
            }
            Err(error) => return Err(error.into()),
        };
        let is_caged = mapping.needs_whole_clusters();
        let attempt = Attempt::begin(&*namespace, base, is_caged, attempt, visible.as_deref());
        let attempt = attempt.map_err(|e| e.in_file(name))?;
        if let Kind::Folder { folder, .. } = &attempt.kind
            && is_exclusive
            && !namespace.honours_conditions(&format!("{folder}probe"))?
        {
            let why = "the store ignores the conditions If-None-Match and If-Match, so two writers could replace each \
                       other's ntuple";
            return Err(Error::unsupported(why).in_file(name));
        }
        let uploads = Uploads::new(Arc::clone(&namespace));
        let (name, base, process) = (name.to_owned(), base.to_owned(), std::process::id());
        let state = Mutex::new(State { next: attempt.numbers.first, ..State::default() });
        let keys = attempt.keys.clone();
        let inner = Inner { namespace, name, base, attempt, mapping, condition, uploads, state, process };
        Ok(Self { inner: Arc::new(inner), keys, is_set: false })
    }

    /// Locks the state, in the process that began the ntuple only.
    fn lock(&self) -> Result<MutexGuard<'_, State>> {
        check_process(self.inner.process, "ntuple")?;
        Ok(self.inner.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn open(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.lock()?;
        match &state.closed {
            Some(why) => Err(Error::invalid_argument(format!("{why}; nothing more can be written"))),
            None => Ok(state),
        }
    }

    /// Reserves numbers for objects; returns the first one.
    fn number(&self, objects: usize, bytes: u64) -> Result<u64> {
        let mut state = self.open()?;
        let (first, end) = (state.next, state.next.saturating_add(objects as u64));
        if end > self.inner.attempt.numbers.end {
            return Err(Error::limit("too many objects; choose a mapping with larger objects"));
        }
        state.next = end;
        state.stored_bytes += bytes;
        Ok(first)
    }

    fn is_in_container(&self) -> bool {
        matches!(self.inner.attempt.kind, Kind::Numbers { .. })
    }

    /// The sink of an attribute set.
    fn of_set(&self) -> Self {
        let keys = match &self.keys {
            ObjectKeys::Daos(keys) => ObjectKeys::Daos(keys.of_set()),
            keys => keys.clone(),
        };
        Self { inner: Arc::clone(&self.inner), keys, is_set: true }
    }

    /// Sizes and digests of all objects in a folder.
    fn manifest(&self, state: &State, folder: &str) -> Result<Manifest> {
        let mut manifest = Manifest { numbered: vec![ObjectDigest::default(); state.next as usize], named: Vec::new() };
        for (key, digest) in self.inner.uploads.finish()? {
            let name = key.strip_prefix(folder).unwrap_or(&key);
            match name.parse().ok().and_then(|number: usize| manifest.numbered.get_mut(number)) {
                Some(object) => *object = digest,
                None => manifest.named.push((name.to_owned(), digest)),
            }
        }
        manifest.named.sort();
        Ok(manifest)
    }

    /// Waits until all objects are durable. Returns those that make them visible, the anchor last.
    fn complete(&self, state: &mut State, links: AnchorLinks) -> Result<(Vec<NewObject>, Bytes)> {
        let inner = &*self.inner;
        let (others, anchor) = match &inner.attempt.kind {
            Kind::Folder { place, folder } => {
                let manifest = self.manifest(state, folder)?;
                let (page_lists, attribute_sets) = (page_lists(state, &manifest), attribute_sets(&manifest));
                let manifest = Bytes::from(manifest.write());
                let link = ObjectLink { object: state.next, bytes: manifest.len() as u64, digest: xxh3(&manifest) };
                state.next += 1;
                let bytes = state.stored_bytes + link.bytes;
                let key = inner.attempt.keys.key(Blob::numbered(link.object));
                inner.namespace.put(&[NewObject { key, pieces: vec![manifest] }])?;
                let mapping = inner.mapping.to_string();
                let extension = Some(Extension { mapping, bytes, manifest: link, page_lists, attribute_sets });
                let anchor = JsonAnchor { links, place: place.clone(), extension }.write()?;
                (Vec::new(), Bytes::from(anchor))
            }
            Kind::Numbers { keys, attempt } => {
                inner.uploads.wait()?;
                let head = std::mem::take(&mut state.head);
                let own = (state.stored_bytes, *attempt);
                let anchor = write_daos(links, keys, own, head.each_ref().map(|bytes| &bytes[..]))?;
                let [header, footer] = head;
                let object = |key, bytes| NewObject { key, pieces: vec![bytes] };
                (vec![object(keys.header(), header), object(keys.footer(), footer)], anchor.into())
            }
        };
        inner.namespace.flush()?;
        // The last steps before the ntuple becomes visible: from now on, a collection leaves the objects alone for a while.
        let sealing = SystemTime::now();
        if !inner.attempt.record.seal(&*inner.namespace)? {
            return Err(collected());
        }
        state.sealed = Some(sealing);
        match &inner.attempt.kind {
            // A collection that is complete has removed its record with the objects.
            Kind::Folder { .. } => {
                let key = inner.attempt.keys.key(Blob::numbered(0)).into();
                let first = inner.namespace.get_ranges(&[ObjectRange { key, range: 0..1 }]);
                first.map_err(|error| if error.is_not_found() { collected() } else { error.into() })?;
            }
            Kind::Numbers { keys, .. } => {
                put_new(&*inner.namespace, &keys.name_record(), inner.base.clone())?;
            }
        }
        Ok((others, anchor))
    }

    /// Fails if a writer that was suspended after it sealed its record has lost its objects to a collection.
    fn check_kept(&self, state: &State) -> Result<()> {
        let Some(sealed) = state.sealed else { return Ok(()) };
        let is_kept = self.inner.attempt.record.is_kept(&*self.inner.namespace, sealed)?;
        if is_kept { Ok(()) } else { Err(collected()) }
    }

    /// Removes the objects after an error that is returned.
    #[cold]
    fn removed_after(&self, state: &mut State, error: Error) -> Error {
        state.is_reported = true;
        match self.remove(state, "the ntuple could not be finished") {
            Ok(()) => error,
            Err(_) => error.with_note("its objects could not be removed; `tupelo gc` removes them"),
        }
    }

    /// Removes the objects of an ntuple that is not visible.
    fn remove(&self, state: &mut State, why: &str) -> Result<()> {
        state.closed.get_or_insert_with(|| why.to_owned());
        let (sent, is_complete) = self.inner.uploads.stop();
        let mut keys = std::mem::take(&mut state.named);
        let numbers = self.inner.attempt.numbers.first..state.next;
        let record = &self.inner.attempt.record;
        match &self.inner.attempt.kind {
            Kind::Folder { .. } => {
                keys.extend(numbers.map(|number| self.inner.attempt.keys.key(Blob::numbered(number))));
                keys.push(record.key.clone());
            }
            // Values that it did not write are those of another attempt, which may have its number after a collection.
            Kind::Numbers { .. } => {
                if !record.is_there(&*self.inner.namespace)? {
                    return Ok(());
                }
                keys.extend(sent);
                // Last, since it tells others that these objects exist. It stays if there may be more.
                keys.extend(is_complete.then(|| record.key.clone()));
            }
        }
        state.next = self.inner.attempt.numbers.first;
        Ok(self.inner.namespace.delete(&keys)?)
    }
}

#[cold]
fn collected() -> Error {
    let what = "`tupelo gc` removed objects of the ntuple while it was written; write it again, and run gc with an \
                --older-than";
    Error::invalid_argument(format!("{what} longer than the longest write"))
}

/// The page lists for the anchor, unless they are too many for it.
fn page_lists(state: &State, manifest: &Manifest) -> Vec<ObjectLink> {
    let link = |&object: &u64| {
        let ObjectDigest { bytes, digest } = *manifest.numbered.get(object as usize)?;
        Some(ObjectLink { object, bytes, digest })
    };
    match state.page_lists.len() {
        0..=MAX_LISTED => state.page_lists.iter().filter_map(link).collect(),
        _ => Vec::new(),
    }
}

/// The anchors of attribute sets for the anchor, unless they are too many for it.
fn attribute_sets(manifest: &Manifest) -> Vec<(String, ObjectDigest)> {
    let sets = manifest.named.iter().filter_map(|(name, it)| Some((name.strip_prefix(CLONES)?.to_owned(), *it)));
    let sets: Vec<_> = sets.collect();
    let chars: usize = sets.iter().map(|(name, _)| name.len()).sum();
    if sets.len() <= MAX_LISTED && chars <= MAX_NAME_BYTES { sets } else { Vec::new() }
}

impl PageSink for ObjectSink {
    fn name(&self) -> &str {
        &self.inner.name
    }

    fn check_open(&self) -> Result<()> {
        self.open().map(drop)
    }

    fn position(&self) -> Result<u64> {
        Ok(self.open()?.stored_bytes)
    }

    fn begin(&self, path: &str, _: &str, cycle: Option<u16>) -> Result<()> {
        if cycle.is_some() {
            return Err(Error::unsupported("cannot continue an ntuple in an object store; write a new one"));
        }
        let mut state = self.open()?;
        match state.ntuple {
            Progress::None => {
                state.ntuple = Progress::Open(path.to_owned());
                Ok(())
            }
            _ => {
                Err(Error::invalid_argument("the URI of an object store names one ntuple; write others to other URIs"))
            }
        }
    }

    fn attribute_set(self: Arc<Self>) -> Arc<dyn PageSink> {
        Arc::new(self.of_set())
    }

    fn stores_whole_clusters(&self) -> bool {
        self.is_in_container() || self.inner.mapping.needs_whole_clusters()
    }

    /// In a DAOS container, the number of the column is a part of the key.
    fn shares_pages(&self) -> bool {
        !self.is_in_container()
    }

    fn put_pages(&self, cluster: u64, pages: &[PageBytes<'_>]) -> Result<Vec<Locator>> {
        let groups = self.inner.mapping.objects(pages.iter().map(|page| (page.column, page.bytes.len() as u64)));
        let bytes = pages.iter().map(|page| page.bytes.len() as u64).sum();
        let first = self.number(groups.len(), bytes)?;
        let (mut objects, mut locators) = (Vec::with_capacity(groups.len()), Vec::with_capacity(pages.len()));
        for (number, group) in (first..).zip(groups) {
            let group = pages.get(group).unwrap_or_default();
            match group {
                [page] => locators.push(Locator::Object { location: number, bytes: page.stored_bytes() }),
                several => {
                    let mut offset = 0u32;
                    for page in several {
                        let too_many = |_| Error::limit("more than 2^32 objects; choose another mapping");
                        let object = u32::try_from(number).map_err(too_many)?;
                        let bytes = page.stored_bytes();
                        locators.push(match self.is_in_container() {
                            true => Locator::Cage { object, offset, bytes },
                            false => Locator::ObjectRange { object, offset, bytes },
                        });
                        // The lossless cast: an object with several pages has at most 1 GiB.
                        offset += page.bytes.len() as u32;
                    }
                }
            }
            let column = group.first().map_or(0, |page| page.column);
            let key = self.keys.key(self.keys.of_page(cluster, column, number)?);
            objects.push(NewObject { key, pieces: group.iter().map(|page| page.bytes.clone()).collect() });
        }
        self.inner.uploads.put(objects)?;
        Ok(locators)
    }

    fn put_envelope(&self, kind: EnvelopeType, envelope: &[u8]) -> Result<Locator> {
        let bytes = envelope.len() as u64;
        let head = match kind {
            EnvelopeType::Header => Some((HEADER_AKEY, 0)),
            EnvelopeType::Footer => Some((FOOTER_AKEY, 1)),
            EnvelopeType::PageList => None,
        };
        let stored = Bytes::copy_from_slice(envelope);
        if let Some((location, part)) = head.filter(|_| self.is_in_container() && !self.is_set) {
            let mut state = self.open()?;
            state.stored_bytes += bytes;
            state.head[part] = stored;
            return Ok(Locator::Object { location, bytes });
        }
        let location = self.number(1, bytes)?;
        if kind == EnvelopeType::PageList && !self.is_set {
            self.open()?.page_lists.push(location);
        }
        let key = self.keys.key(self.keys.of_envelope(location));
        self.inner.uploads.put(vec![NewObject { key, pieces: vec![stored] }])?;
        Ok(Locator::Object { location, bytes })
    }

    /// In a folder, the anchor of an attribute set is found by the name of the set.
    fn put_anchor(&self, name: &str, links: &AnchorLinks) -> Result<(Locator, u32)> {
        let place = match &self.inner.attempt.kind {
            Kind::Folder { place, .. } => place.clone(),
            Kind::Numbers { .. } => ObjectFolder::Below,
        };
        let anchor = JsonAnchor { links: *links, place, extension: None };
        let stored = Bytes::from(anchor.write()?);
        let bytes = stored.len() as u64;
        let (location, key) = match &self.inner.attempt.kind {
            Kind::Folder { folder, .. } => {
                let mut state = self.open()?;
                let key = format!("{folder}{}", clone_key(name)?);
                if state.named.contains(&key) {
                    return Err(Error::unsupported(format!(
                        "attribute set '{name}' cannot be written twice to an object store"
                    )));
                }
                state.named.push(key.clone());
                state.stored_bytes += bytes;
                (0, key)
            }
            Kind::Numbers { .. } => {
                let (location, set) = (self.number(1, bytes)?, self.of_set());
                (location, set.keys.key(set.keys.of_envelope(location)))
            }
        };
        self.inner.uploads.put(vec![NewObject { key, pieces: vec![stored] }])?;
        // The cast is lossless: anchors are small.
        Ok((Locator::Object { location, bytes }, bytes as u32))
    }

    fn publish(&self, _: &str, _: &str, links: &AnchorLinks) -> Result<()> {
        self.open()?.published = Some(*links);
        Ok(())
    }

    /// Objects are not removed while the ntuple is written.
    fn release(&self, _: Stored) {}

    fn has_checkpoints(&self) -> bool {
        false
    }

    fn checkpoint(&self) -> Result<()> {
        Err(Error::unsupported(
            "checkpoints are supported only in local files; remote files appear when they are complete",
        ))
    }

    fn end(&self, _: &str) {
        if let Ok(mut state) = self.lock() {
            state.ntuple = Progress::Finished;
        }
    }

    fn abandon(&self, _: &str) -> Result<()> {
        self.lock()?.ntuple = Progress::Abandoned;
        Ok(())
    }

    fn reported(&self) {
        if let Ok(mut state) = self.lock() {
            state.is_reported = true;
        }
    }
}

impl Target for ObjectSink {
    fn check_free(&self, path: &str) -> Result<()> {
        if path.contains('/') {
            let what = format!("'{path}': object stores have no directories; use a name without slashes");
            return Err(Error::invalid_argument(what));
        }
        let base = &self.inner.base;
        if self.is_in_container() && path != base {
            let what = format!("'{path}': the ntuple in a DAOS container must have the name in its URI, '{base}'");
            return Err(Error::invalid_argument(what));
        }
        Ok(())
    }

    fn for_ntuple(&self) -> Arc<dyn PageSink> {
        Arc::new(self.clone())
    }

    fn file(&self) -> Result<&FileSink> {
        let what = "object stores support only ntuples; write trees to a ROOT file";
        Err(Error::unsupported(what))
    }

    /// Without a file around it, the footer of the ntuple describes the classes that its fields need.
    fn add_streamer_info(&self, _: &StreamerInfos) -> Result<()> {
        self.check_open()
    }

    fn put_object(&self, _: &str, _: &str, object: &Object, _: Compression) -> Result<()> {
        let what =
            format!("object stores support only ntuples, found a {}; write it to a ROOT file", object.class_name());
        Err(Error::unsupported(what))
    }

    fn commit(&self) -> Result<()> {
        let mut state = self.open()?;
        let missing = match &state.ntuple {
            Progress::Finished => None,
            Progress::Open(path) => Some(format!("ntuple '{path}' was not finished")),
            Progress::None => Some("no ntuple was written".to_owned()),
            Progress::Abandoned => Some("the ntuple was abandoned".to_owned()),
        };
        let links = match (missing, state.published) {
            (None, Some(links)) => links,
            (missing, _) => {
                let why = missing.unwrap_or_else(|| "the ntuple was not published".to_owned());
                self.remove(&mut state, &why)?;
                return Err(Error::invalid_argument(format!("{why}; nothing was stored")));
            }
        };
        let completed = self.complete(&mut state, links).and_then(|done| self.check_kept(&state).map(|()| done));
        let (others, anchor) = match completed {
            Ok(objects) => objects,
            Err(error) => return Err(self.removed_after(&mut state, error)),
        };
        state.closed = Some("the ntuple is finished".to_owned());
        let Inner { namespace, base, condition, .. } = &*self.inner;
        match namespace.publish_with(&others, &anchor_key(&namespace.keys(), base), anchor, condition) {
            Ok(()) => self.check_kept(&state),
            Err(error) if error.kind() == ErrorKind::Changed => Err(self.removed_after(&mut state, error.into())),
            // It is not certain that the anchor is not visible.
            Err(error) => {
                let kept = format!("objects may remain beside {}; `tupelo gc` removes them", self.inner.name);
                state.is_reported = true;
                Err(Error::from(error).with_note(&kept))
            }
        }
    }

    fn abort(&self) -> Result<Option<String>> {
        let mut state = self.lock()?;
        if state.closed.is_none() {
            self.remove(&mut state, "the ntuple was aborted")?;
        }
        Ok(None)
    }

    fn forget(&self) -> Option<String> {
        // A forked child does not own the ntuple.
        let state = self.lock().ok()?;
        if state.closed.is_some() {
            return None;
        }
        let is_reported = state.is_reported;
        drop(state);
        let name = &self.inner.name;
        match self.abort() {
            Ok(_) if is_reported => None,
            Ok(_) => Some(format!("{name} was not finished")),
            Err(error) => Some(format!("{name} was not finished, and its objects could not be removed: {error}")),
        }
    }
}
