//! An object store as a sink: one ntuple, whose objects are written under a name of their own and become visible with the
//! anchor.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tupelo_format::checksum::xxh3;
use tupelo_format::container::AnchorLinks;
use tupelo_format::locator::Locator;
use tupelo_format::store::{Extension, JsonAnchor, MAX_ANCHOR_BYTES, Manifest, ManifestLink, ObjectDigest, Place};
use tupelo_format::streamer::StreamerInfos;
use tupelo_storage::{Condition, ErrorKind, NewObject, ObjectRange, ObjectSink as Namespace};

use super::mapping::Mapping;
use super::uploads::Uploads;
use super::{PageBytes, PageSink, Stored, Target, check_process};
use crate::source::clone_key;
use crate::{Error, Result};

/// One ntuple that is being written to a store.
#[derive(Debug, Clone)]
pub(crate) struct ObjectSink(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    namespace: Arc<dyn Namespace>,
    /// The URI of the ntuple, for messages.
    name: String,
    /// The key of the anchor.
    base: String,
    place: Place,
    /// The folder of the objects.
    folder: String,
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
    /// Keys of anchors of attribute sets.
    named: Vec<String>,
    stored_bytes: u64,
    ntuple: Progress,
    published: Option<AnchorLinks>,
    /// Why nothing more may be written.
    closed: Option<String>,
    is_reported: bool,
}

/// What became of the ntuple.
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
    pub(crate) fn create(
        namespace: Arc<dyn Namespace>,
        base: &str,
        name: &str,
        mapping: Mapping,
        is_exclusive: bool,
    ) -> Result<Self> {
        check_base(base, name)?;
        let condition = match namespace.state(base, MAX_ANCHOR_BYTES) {
            Ok((condition, None)) => condition,
            Ok(_) if is_exclusive => {
                return Err(Error::from(tupelo_storage::Error::new(
                    ErrorKind::Changed,
                    "create",
                    name,
                    "it exists already",
                )));
            }
            Ok((condition, Some(bytes))) => match JsonAnchor::read(&bytes) {
                Ok(_) => condition,
                Err(error) => return Err(not_an_ntuple(name, &error.to_string())),
            },
            Err(error) if error.kind() == ErrorKind::NotSupported => {
                return Err(not_an_ntuple(name, &error.to_string()));
            }
            Err(error) => return Err(error.into()),
        };
        let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S");
        // `ops::gc` knows the form.
        let attempt = format!("{now}-{}", &uuid::Uuid::new_v4().simple().to_string()[..12]);
        let place = Place::Attempt(attempt);
        let folder = place.folder(base);
        if is_exclusive && !namespace.honours_conditions(&format!("{folder}probe"))? {
            let why = "the store ignores the conditions If-None-Match and If-Match, so that two writers could replace \
                       each other's ntuple";
            return Err(Error::unsupported(why).within(name));
        }
        let mapping = mapping.resolve(namespace.reads_in_place(), namespace.hints().max_request_bytes);
        let uploads = Uploads::new(Arc::clone(&namespace));
        let (name, base, state) = (name.to_owned(), base.to_owned(), Mutex::default());
        let process = std::process::id();
        Ok(Self(Arc::new(Inner { namespace, name, base, place, folder, mapping, condition, uploads, state, process })))
    }

    /// Locks the state, in the process that began the ntuple only.
    fn lock(&self) -> Result<MutexGuard<'_, State>> {
        check_process(self.0.process, "ntuple")?;
        Ok(self.0.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn open(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.lock()?;
        match &state.closed {
            Some(why) => Err(Error::invalid_argument(format!("{why}, so nothing more can be written"))),
            None => Ok(state),
        }
    }

    /// Reserves numbers for objects; returns the first one.
    fn number(&self, objects: usize, bytes: u64) -> Result<u64> {
        let mut state = self.open()?;
        let first = state.next;
        state.next += objects as u64;
        state.stored_bytes += bytes;
        Ok(first)
    }

    fn key(&self, number: u64) -> String {
        format!("{}{number}", self.0.folder)
    }

    /// Sizes and digests of all objects.
    fn manifest(&self, state: &State) -> Result<Manifest> {
        let mut manifest = Manifest { numbered: vec![ObjectDigest::default(); state.next as usize], named: Vec::new() };
        for (key, digest) in self.0.uploads.finish()? {
            let name = key.strip_prefix(&self.0.folder).unwrap_or(&key);
            match name.parse().ok().and_then(|number: usize| manifest.numbered.get_mut(number)) {
                Some(object) => *object = digest,
                None => manifest.named.push((name.to_owned(), digest)),
            }
        }
        manifest.named.sort();
        Ok(manifest)
    }

    /// Writes the manifest, and waits until all objects are durable. Returns the anchor.
    fn complete(&self, state: &mut State, links: AnchorLinks) -> Result<Bytes> {
        let inner = &*self.0;
        let manifest = Bytes::from(self.manifest(state)?.write());
        let link = ManifestLink { object: state.next, bytes: manifest.len() as u64, digest: xxh3(&manifest) };
        state.next += 1;
        let bytes = state.stored_bytes + link.bytes;
        inner.namespace.put(&[NewObject { key: self.key(link.object), pieces: vec![manifest] }])?;
        inner.namespace.flush()?;
        // A writer that pauses for long may have lost its objects to a collection.
        let first = ObjectRange { key: self.key(0).into(), range: 0..1 };
        inner.namespace.get_ranges(&[first]).map_err(|error| match error.is_not_found() {
            true => Error::invalid_argument("objects of the ntuple were removed while it was written; write it again"),
            false => error.into(),
        })?;
        let extension = Some(Extension { mapping: inner.mapping.to_string(), bytes, manifest: link });
        let anchor = JsonAnchor { links, place: inner.place.clone(), extension };
        Ok(Bytes::from(anchor.write()?))
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
        self.0.uploads.stop();
        let numbered = (0..std::mem::take(&mut state.next)).map(|number| self.key(number));
        let keys: Vec<String> = numbered.chain(std::mem::take(&mut state.named)).collect();
        Ok(self.0.namespace.delete(&keys)?)
    }
}

/// Refuses names that would be mistaken for something else.
fn check_base(base: &str, name: &str) -> Result<()> {
    if name.contains(".objects/") {
        let what = "objects of another ntuple are in this folder; choose another one";
        return Err(Error::invalid_argument(what).within(name));
    }
    match base.rsplit_once(':') {
        None => Ok(()),
        Some((uri, _)) => {
            let what = "the URI of an object store names one ntuple, and takes no :NAME after it";
            Err(Error::invalid_argument(format!("{what}; write to {uri} instead of {base}")).within(name))
        }
    }
}

#[cold]
fn not_an_ntuple(name: &str, why: &str) -> Error {
    let what = "something that is not an ntuple exists under this name, and is not replaced";
    Error::invalid_argument(format!("{what} ({why})")).within(name)
}

impl PageSink for ObjectSink {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn check_open(&self) -> Result<()> {
        self.open().map(drop)
    }

    fn position(&self) -> Result<u64> {
        Ok(self.open()?.stored_bytes)
    }

    fn begin(&self, path: &str, _: &str, cycle: Option<u16>) -> Result<()> {
        if cycle.is_some() {
            return Err(Error::unsupported("an ntuple in an object store cannot be continued; write a new one"));
        }
        if path.contains('/') {
            let what = format!("'{path}': there are no directories in an object store; give the ntuple a plain name");
            return Err(Error::invalid_argument(what));
        }
        let mut state = self.open()?;
        match state.ntuple {
            Progress::None => {
                state.ntuple = Progress::Open(path.to_owned());
                Ok(())
            }
            _ => Err(Error::invalid_argument("a URI of an object store names one ntuple; write others to other URIs")),
        }
    }

    fn stores_whole_clusters(&self) -> bool {
        self.0.mapping.needs_whole_clusters()
    }

    fn put_pages(&self, pages: &[PageBytes<'_>]) -> Result<Vec<Locator>> {
        let groups = self.0.mapping.objects(pages.iter().map(|page| (page.column, page.bytes.len() as u64)));
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
                        locators.push(Locator::ObjectRange { object, offset, bytes: page.stored_bytes() });
                        // The lossless cast: an object with several pages has at most 1 GiB.
                        offset += page.bytes.len() as u32;
                    }
                }
            }
            let pieces = group.iter().map(|page| page.bytes.clone()).collect();
            objects.push(NewObject { key: self.key(number), pieces });
        }
        self.0.uploads.put(objects)?;
        Ok(locators)
    }

    fn put_envelope(&self, envelope: &[u8]) -> Result<Locator> {
        let bytes = envelope.len() as u64;
        let location = self.number(1, bytes)?;
        let pieces = vec![Bytes::copy_from_slice(envelope)];
        self.0.uploads.put(vec![NewObject { key: self.key(location), pieces }])?;
        Ok(Locator::Object { location, bytes })
    }

    /// The anchor of an attribute set is found by the name of the set; its objects are among those of the ntuple.
    fn put_anchor(&self, name: &str, links: &AnchorLinks) -> Result<(Locator, u32)> {
        let anchor = JsonAnchor { links: *links, place: self.0.place.clone(), extension: None };
        let bytes = Bytes::from(anchor.write()?);
        let length = bytes.len() as u32;
        let key = format!("{}{}", self.0.folder, clone_key(name)?);
        let mut state = self.open()?;
        if state.named.contains(&key) {
            return Err(Error::unsupported(format!(
                "attribute set '{name}' cannot be written twice to an object store"
            )));
        }
        state.named.push(key.clone());
        state.stored_bytes += u64::from(length);
        drop(state);
        self.0.uploads.put(vec![NewObject { key, pieces: vec![bytes] }])?;
        Ok((Locator::Object { location: 0, bytes: length.into() }, length))
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
        Err(Error::unsupported("an ntuple in an object store has no checkpoints: it is visible once complete"))
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
    fn check_free(&self, _: &str) -> Result<()> {
        Ok(())
    }

    fn for_ntuple(&self) -> Arc<dyn PageSink> {
        Arc::new(self.clone())
    }

    /// Without a file around it, the footer of the ntuple describes the classes that its fields need.
    fn add_streamer_info(&self, _: &StreamerInfos) -> Result<()> {
        self.check_open()
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
                return Err(Error::invalid_argument(format!("{why}, so nothing is stored")));
            }
        };
        let anchor = match self.complete(&mut state, links) {
            Ok(anchor) => anchor,
            Err(error) => return Err(self.removed_after(&mut state, error)),
        };
        state.closed = Some("the ntuple is finished".to_owned());
        match self.0.namespace.publish(&self.0.base, anchor, &self.0.condition) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::Changed => Err(self.removed_after(&mut state, error.into())),
            // It is not certain that the anchor is not visible.
            Err(error) => {
                let kept = format!("objects may be left beside {}; `tupelo gc` removes them", self.0.name);
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
        let name = &self.0.name;
        match self.abort() {
            Ok(_) if is_reported => None,
            Ok(_) => Some(format!("{name} was not finished")),
            Err(error) => Some(format!("{name} was not finished, and its objects could not be removed: {error}")),
        }
    }
}
