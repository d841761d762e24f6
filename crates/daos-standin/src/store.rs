//! Pools and containers: what is stored, in memory and in the files of `DAOS_STANDIN_DIR`.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use crate::abi::ObjectId;
use crate::control::{self, PoolSpec};
use crate::error::{DER_BUSY, DER_EXIST, DER_IO, DER_NO_HDL, DER_NONEXIST, Outcome};
use crate::log::{Change, Log};
use crate::name::{Name, Uuid, uuid_of};

/// Ending of the files of containers; the rest of the name is the label.
const ENDING: &str = ".cont";

/// Values by akey. A value is shared with the fetches that copy it.
pub(crate) type Akeys = BTreeMap<Vec<u8>, Arc<Vec<u8>>>;
/// Akeys by dkey, none of them empty.
pub(crate) type Object = BTreeMap<Vec<u8>, Akeys>;

/// Containers of a pool by label.
type Containers = BTreeMap<String, Arc<Container>>;

/// Directory and name of a pool.
type PoolKey = (Option<PathBuf>, String);

/// The containers of all pools.
static POOLS: LazyLock<Mutex<HashMap<PoolKey, Arc<Mutex<Containers>>>>> = LazyLock::new(Mutex::default);

/// A pool.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) spec: PoolSpec,
    pub(crate) uuid: Uuid,
    /// Where the files of the containers are; `None`: in memory.
    folder: Option<PathBuf>,
    containers: Arc<Mutex<Containers>>,
}

/// A container.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) uuid: Uuid,
    label: String,
    /// The property `DAOS_PROP_CO_LAYOUT_TYPE`.
    pub(crate) layout: u64,
    /// Number of the file, to recognise a container that another process destroyed and created again.
    inode: u64,
    /// Handles of this process.
    pub(crate) handles: AtomicU32,
    is_destroyed: AtomicBool,
    state: Mutex<State>,
}

/// What is in a container.
#[derive(Debug, Default)]
struct State {
    contents: Contents,
    log: Option<Log>,
}

/// Objects and object numbers.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) objects: BTreeMap<ObjectId, Object>,
    /// The last object number that was handed out.
    pub(crate) last_oid: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// I/O errors of the files, as DAOS would report them.
fn failed(error: io::Error) -> i32 {
    match error.kind() {
        io::ErrorKind::AlreadyExists => DER_EXIST,
        io::ErrorKind::NotFound => DER_NONEXIST,
        _ => DER_IO,
    }
}

/// The pool of a name.
pub(crate) fn connect(name: &Name) -> Outcome<Pool> {
    let spec = control::pools().into_iter().find(|spec| name.is(&spec.name, &uuid_of(&spec.name)));
    let spec = spec.ok_or(DER_NONEXIST)?;
    let directory = control::directory();
    let folder = directory.as_ref().map(|directory| directory.join(&spec.name));
    let containers = lock(&POOLS).entry((directory, spec.name.clone())).or_default().clone();
    Ok(Pool { uuid: uuid_of(&spec.name), spec, folder, containers })
}

impl Pool {
    /// The containers, after a look at the files.
    fn containers(&self) -> Outcome<MutexGuard<'_, Containers>> {
        let mut containers = lock(&self.containers);
        if let Some(folder) = &self.folder {
            let mut found = Containers::new();
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let path = entry.map_err(failed)?.path();
                let Some(label) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(ENDING)) else {
                    continue;
                };
                // The file can be destroyed by another process meanwhile.
                let Ok(log) = Log::open(&path) else { continue };
                let inode = log.inode().map_err(failed)?;
                let known = containers.get(label).filter(|known| known.inode == inode);
                let container = known.map_or_else(|| Container::load(log), |known| Ok(known.clone()))?;
                found.insert(label.to_owned(), container);
            }
            for (label, old) in containers.iter() {
                if found.get(label).is_none_or(|new| !Arc::ptr_eq(old, new)) {
                    old.is_destroyed.store(true, Ordering::Relaxed);
                }
            }
            *containers = found;
        }
        Ok(containers)
    }

    /// A new container.
    pub(crate) fn create(&self, label: &str, layout: u64) -> Outcome<Uuid> {
        let mut containers = self.containers()?;
        if containers.contains_key(label) {
            return Err(DER_EXIST);
        }
        // Unlike that of a pool, the UUID is another one when the container is created again.
        let uuid = uuid_of(&format!("{}/{label}/{}/{:?}", self.spec.name, std::process::id(), SystemTime::now()));
        let created = Change::Created { uuid, label: label.to_owned(), layout };
        let container = match &self.folder {
            Some(folder) => {
                let log = Log::create(&folder.join(format!("{label}{ENDING}")), &created).map_err(failed)?;
                Container::load(log)?
            }
            None => Arc::new(Container::new(uuid, label.to_owned(), layout, 0, State::default())),
        };
        containers.insert(label.to_owned(), container);
        Ok(uuid)
    }

    /// An existing container.
    pub(crate) fn find(&self, name: &Name) -> Outcome<Arc<Container>> {
        let containers = self.containers()?;
        let found = containers.iter().find(|(label, container)| name.is(label, &container.uuid));
        Ok(found.ok_or(DER_NONEXIST)?.1.clone())
    }

    /// Removes a container; by force even when it is open in this process.
    pub(crate) fn destroy(&self, name: &Name, is_forced: bool) -> Outcome {
        let container = self.find(name)?;
        if !is_forced && container.handles.load(Ordering::Relaxed) > 0 {
            return Err(DER_BUSY);
        }
        let mut containers = lock(&self.containers);
        if let Some(folder) = &self.folder {
            fs::remove_file(folder.join(format!("{}{ENDING}", container.label))).map_err(failed)?;
        }
        container.is_destroyed.store(true, Ordering::Relaxed);
        containers.remove(&container.label);
        Ok(())
    }
}

impl Container {
    fn new(uuid: Uuid, label: String, layout: u64, inode: u64, state: State) -> Self {
        let (handles, is_destroyed) = (AtomicU32::new(0), AtomicBool::new(false));
        Self { uuid, label, layout, inode, handles, is_destroyed, state: Mutex::new(state) }
    }

    /// The container of a file.
    fn load(mut log: Log) -> Outcome<Arc<Self>> {
        let inode = log.inode().map_err(failed)?;
        let (mut contents, mut created) = (Contents::default(), None);
        log.replay(|change| match change {
            Change::Created { uuid, label, layout } => created = Some((uuid, label, layout)),
            change => contents.apply(change),
        })
        .map_err(failed)?;
        let (uuid, label, layout) = created.ok_or(DER_IO)?;
        Ok(Arc::new(Self::new(uuid, label, layout, inode, State { contents, log: Some(log) })))
    }

    /// Looks at the contents.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&Contents) -> T) -> Outcome<T> {
        self.locked(|state| Ok(look(&state.contents)))
    }

    /// Makes a change that is computed from the contents.
    pub(crate) fn change(&self, compute: impl FnOnce(&Contents) -> Outcome<Change>) -> Outcome {
        self.locked(|state| {
            let change = compute(&state.contents)?;
            if let Some(log) = &mut state.log {
                log.append(&change).map_err(failed)?;
            }
            state.contents.apply(change);
            Ok(())
        })
    }

    /// Calls with the contents of now, which no other process changes meanwhile.
    fn locked<T>(&self, work: impl FnOnce(&mut State) -> Outcome<T>) -> Outcome<T> {
        let mut state = lock(&self.state);
        if self.is_destroyed.load(Ordering::Relaxed) {
            return Err(DER_NO_HDL);
        }
        if let Some(log) = &state.log {
            log.lock().map_err(failed)?;
        }
        let result = state.catch_up().and_then(|()| work(&mut state));
        if let Some(log) = &state.log {
            log.unlock().map_err(failed)?;
        }
        result
    }
}

impl State {
    /// Applies what other processes wrote.
    fn catch_up(&mut self) -> Outcome {
        let Self { contents, log } = self;
        let Some(log) = log else { return Ok(()) };
        log.replay(|change| contents.apply(change)).map_err(failed)
    }
}

impl Contents {
    /// The akeys of a dkey.
    pub(crate) fn akeys(&self, id: ObjectId, dkey: &[u8]) -> Option<&Akeys> {
        self.objects.get(&id)?.get(dkey)
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Created { .. } => {}
            Change::LastOid(last) => self.last_oid = last,
            Change::Update { id, dkey, values } => {
                let akeys = self.objects.entry(id).or_default().entry(dkey.clone()).or_default();
                for (akey, value) in values {
                    if value.is_empty() {
                        akeys.remove(&akey);
                    } else {
                        akeys.insert(akey, Arc::new(value));
                    }
                }
                self.forget_empty(id, &dkey);
            }
            Change::Punch { id } => {
                self.objects.remove(&id);
            }
            Change::PunchDkey { id, dkey } => {
                if let Some(object) = self.objects.get_mut(&id) {
                    object.remove(&dkey);
                }
                self.forget_empty(id, &dkey);
            }
            Change::PunchAkeys { id, dkey, akeys } => {
                if let Some(found) = self.objects.get_mut(&id).and_then(|object| object.get_mut(&dkey)) {
                    akeys.iter().for_each(|akey| drop(found.remove(akey)));
                }
                self.forget_empty(id, &dkey);
            }
        }
    }

    /// What has no values does not exist.
    fn forget_empty(&mut self, id: ObjectId, dkey: &[u8]) {
        let Some(object) = self.objects.get_mut(&id) else { return };
        if object.get(dkey).is_some_and(BTreeMap::is_empty) {
            object.remove(dkey);
        }
        if object.is_empty() {
            self.objects.remove(&id);
        }
    }
}
