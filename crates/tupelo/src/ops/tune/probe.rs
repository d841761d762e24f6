//! Measures latency and bandwidth of a store.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tupelo_format::store::ObjectFolder;
use tupelo_pages::source::new_names;
use tupelo_storage::{ByteSource, Keys, NewObject, ObjectRange, ObjectSink, Storage, display_name, is_object_uri};

use super::model::{Link, StoreModel};
use crate::{Error, Result};

/// Large objects or ranges, which are transferred at the same time.
const LARGE: usize = 8;
/// Bytes of each: 4 MiB.
const LARGE_BYTES: usize = 4 << 20;
/// Small objects that are written one after the other.
const SMALL: usize = 5;
/// Reads of one byte, one after the other. The first one opens the connection.
const READS: usize = 9;
/// How often all large objects are read.
const REPETITIONS: usize = 3;
/// A file must have this many bytes to be measured: 1 MiB.
const MIN_FILE_BYTES: u64 = 1 << 20;
/// A shorter time is not measured, in seconds.
const MIN_SECONDS: f64 = 1e-6;

/// Measures a store: by objects that are written, read and removed under the URI of an ntuple, which need not exist, or
/// by reading a file. Other names are not touched.
#[derive(Debug)]
pub struct Probe {
    name: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Objects { namespace: Arc<dyn ObjectSink>, keys: Vec<String> },
    File(Arc<dyn ByteSource>),
}

impl Probe {
    /// A probe for the URI of an ntuple in an object store, or for the name of a file.
    ///
    /// # Errors
    /// Unsupported for stores that cannot be written and DAOS containers; storage errors.
    pub fn new(name: &str, storage: &Storage) -> Result<Self> {
        if is_object_uri(name) {
            let (namespace, base) = storage.object_sink(name)?;
            return Self::over(namespace, &base, &display_name(name));
        }
        Ok(Self::over_file(storage.open(name)?))
    }

    /// A probe for the ntuple `base` in any namespace; `name` is for messages.
    ///
    /// # Errors
    /// Unsupported for DAOS containers.
    pub fn over(namespace: Arc<dyn ObjectSink>, base: &str, name: &str) -> Result<Self> {
        if namespace.keys() != Keys::Paths {
            return Err(Error::unsupported("DAOS containers cannot be measured").in_file(name));
        }
        // The name of an attempt, so that `tupelo gc` removes what a killed process leaves.
        let attempt = new_names(1)?.remove(0);
        let folder = format!("{}{attempt}", ObjectFolder::attempts(base));
        let keys = (0..LARGE + SMALL).map(|number| format!("{folder}/{number}")).collect();
        Ok(Self { name: name.to_owned(), kind: Kind::Objects { namespace, keys } })
    }

    /// A probe that reads a file.
    pub fn over_file(source: Arc<dyn ByteSource>) -> Self {
        Self { name: source.to_string(), kind: Kind::File(source) }
    }

    /// Measures. Objects that it writes stay until [`Probe::remove`], also after an error. Writing to a file is not
    /// measured: it is taken for as fast as reading.
    ///
    /// # Errors
    /// Storage errors; invalid argument for a file that is too small.
    pub fn measure(&self) -> Result<StoreModel> {
        match &self.kind {
            Kind::Objects { namespace, keys } => objects(&**namespace, keys),
            Kind::File(source) => file(&**source),
        }
        .map_err(|e| e.in_file(&self.name))
    }

    /// Removes the objects of the measurement.
    ///
    /// # Errors
    /// Storage errors.
    pub fn remove(&self) -> Result<()> {
        match &self.kind {
            Kind::Objects { namespace, keys } => Ok(namespace.delete(keys)?),
            Kind::File(_) => Ok(()),
        }
    }
}

fn objects(namespace: &dyn ObjectSink, keys: &[String]) -> Result<StoreModel> {
    let (large, small) = keys.split_at(LARGE.min(keys.len()));
    let new = |key: &String, bytes: usize| NewObject { key: key.clone(), pieces: vec![noise(bytes)] };
    let put = |objects: &[NewObject]| seconds(|| namespace.put(objects));
    let mut times = Vec::with_capacity(SMALL);
    for key in small {
        times.push(put(&[new(key, 1)])?);
    }
    let put_latency = median(times);
    let all: Vec<NewObject> = large.iter().map(|key| new(key, LARGE_BYTES)).collect();
    let put_seconds = put(&all)?;
    let range = |key: &String, bytes: u64| ObjectRange { key: Arc::from(key.as_str()), range: 0..bytes };
    let get = |ranges: &[ObjectRange]| seconds(|| namespace.get_ranges(ranges));
    let mut times = Vec::with_capacity(READS);
    for key in large.iter().cycle().take(READS) {
        times.push(get(&[range(key, 1)])?);
    }
    let get_latency = median(times);
    let ranges: Vec<ObjectRange> = large.iter().map(|key| range(key, LARGE_BYTES as u64)).collect();
    let get_seconds = smallest(|| get(&ranges))?;
    let bytes = (LARGE * LARGE_BYTES) as u64;
    Ok(StoreModel {
        get: link(get_latency, bytes, get_seconds),
        put: link(put_latency, bytes, put_seconds),
        hints: namespace.hints(),
        is_local: namespace.reads_in_place(),
    })
}

fn file(source: &dyn ByteSource) -> Result<StoreModel> {
    let size = source.size()?;
    if size < MIN_FILE_BYTES {
        return Err(Error::invalid_argument(format!(
            "a file of {size} bytes is too small to measure a store; use at least 1 MiB"
        )));
    }
    // The beginning and the end of a file may have been read when it was opened.
    let part = size / (LARGE as u64 + 2);
    let starts = (1..=LARGE as u64).map(|number| number * part);
    let ranges: Vec<Range<u64>> = starts.map(|start| start..start + part.min(LARGE_BYTES as u64)).collect();
    let mut times = Vec::with_capacity(READS);
    for range in ranges.iter().cycle().take(READS) {
        times.push(seconds(|| source.read_range(range.start..range.start + 1))?);
    }
    let latency = median(times);
    let best = smallest(|| seconds(|| source.read_ranges(&ranges)))?;
    let bytes = ranges.iter().map(|range| range.end - range.start).sum();
    let both = link(latency, bytes, best);
    Ok(StoreModel { get: both, put: both, hints: source.hints(), is_local: source.reads_in_place(&(0..size)) })
}

/// The time of a transfer is one latency and the bytes.
fn link(latency_seconds: f64, bytes: u64, seconds: f64) -> Link {
    let transfer = (seconds - latency_seconds).max(seconds / 2.0).max(MIN_SECONDS);
    Link { latency_seconds, bytes_per_second: bytes as f64 / transfer }
}

fn seconds<T>(work: impl FnOnce() -> tupelo_storage::Result<T>) -> Result<f64> {
    let began = Instant::now();
    let done = work()?;
    let time = began.elapsed();
    drop(done);
    Ok(time.as_secs_f64())
}

fn smallest(mut time: impl FnMut() -> Result<f64>) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..REPETITIONS {
        best = best.min(time()?);
    }
    Ok(best)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Bytes that no server or network compresses.
fn noise(bytes: usize) -> Bytes {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut noise: Vec<u8> = std::iter::repeat_with(&mut next).take(bytes.div_ceil(8)).flatten().collect();
    noise.truncate(bytes);
    noise.into()
}

#[cfg(test)]
mod tests {
    use tupelo_storage::{MemorySource, ObjectMemory, ObjectSource};

    use super::*;

    fn probe(memory: &ObjectMemory) -> Probe {
        Probe::over(Arc::new(memory.clone()), "events", "memory:events").unwrap()
    }

    #[test]
    fn objects_are_written_read_and_removed() {
        let memory = ObjectMemory::new();
        let probe = probe(&memory);
        let store = probe.measure().unwrap();
        assert!(store.get.latency_seconds > 0.0 && store.get.bytes_per_second > 0.0);
        assert!(store.put.bytes_per_second.is_finite() && store.is_local);
        let listed = memory.list("").unwrap();
        assert_eq!(listed.len(), LARGE + SMALL);
        assert!(listed.iter().all(|entry| entry.key.starts_with("events.objects/2")));
        probe.remove().unwrap();
        assert!(memory.list("").unwrap().is_empty());
    }

    #[test]
    fn objects_are_removed_after_errors() {
        for (fails_to_write, after) in [(true, 0), (true, 7), (false, 0), (false, 12)] {
            let memory = ObjectMemory::new();
            if fails_to_write {
                memory.fail_put(after);
            } else {
                memory.fail_get(after);
            }
            let probe = probe(&memory);
            let error = probe.measure().unwrap_err().to_string();
            assert!(error.contains("memory:events") && error.contains("on request of a test"), "{error}");
            probe.remove().unwrap();
            assert!(memory.list("").unwrap().is_empty());
        }
    }

    #[test]
    fn files_are_read() {
        let probe = Probe::over_file(Arc::new(MemorySource::new(vec![0; 3 << 20])));
        let store = probe.measure().unwrap();
        assert!(store.get == store.put && store.get.bytes_per_second > 0.0);
        probe.remove().unwrap();
        let small = Probe::over_file(Arc::new(MemorySource::new(vec![0; 1000]))).measure().unwrap_err();
        assert!(small.to_string().contains("too small to measure"), "{small}");
    }

    #[test]
    fn a_transfer_is_a_latency_and_its_bytes() {
        assert_eq!(link(0.25, 1000, 0.75).bytes_per_second, 2000.0);
        // A latency that was slower than the transfer says little about it.
        assert_eq!(link(2.0, 1000, 1.0).bytes_per_second, 2000.0);
        assert_ne!(noise(64)[..8], noise(64)[8..16]);
        assert_eq!(noise(13).len(), 13);
    }
}
