//! Reads values and their sizes.
//!
//! A single value has no ranges on the server: it is fetched as a whole, once, and ranges of it are slices. Its size is
//! either guessed, from ranges that begin at 0, or queried.

use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;

use super::code;
use super::connection::{Deadline, Stop};
use super::container::DaosContainer;
use super::ffi::Values;
use super::key::DaosKey;
use crate::error::{Error, ErrorKind, Result};

/// Maximum size of a value that is read: 1 GiB. Sizes come from a server, and pages are much smaller.
pub(crate) const MAX_VALUE_BYTES: u64 = 1 << 30;
/// Attempts to fetch a value that becomes larger meanwhile: 5.
const ATTEMPTS: usize = 5;

/// A value to read.
#[derive(Debug, Clone)]
struct Wanted {
    key: DaosKey,
    /// Size of the value, as far as it is known. A guess may be wrong.
    bytes: Option<u64>,
}

impl DaosContainer {
    /// Reads ranges of values. The results are in the order of the ranges. An empty range needs no request.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for an absent value; [`ErrorKind::OutOfRange`] for bytes beyond the end of a value;
    /// [`ErrorKind::NotSupported`] for values that are larger than [`MAX_VALUE_BYTES`]; errors of DAOS.
    pub(crate) fn get_ranges(&self, ranges: &[(DaosKey, Range<u64>)]) -> Result<Vec<Bytes>> {
        let mut places: HashMap<&DaosKey, usize> = HashMap::new();
        let mut wanted: Vec<Wanted> = Vec::new();
        for (key, range) in ranges {
            if range.start > range.end {
                return Err(Error::out_of_range(range, self.uri(key), 0));
            }
            if range.is_empty() {
                continue;
            }
            // The end of a value is known from ranges that begin at 0, unless one does not.
            let guess = Some(range.end).filter(|end| range.start == 0 && *end <= MAX_VALUE_BYTES);
            match places.get(key) {
                None => {
                    places.insert(key, wanted.len());
                    wanted.push(Wanted { key: key.clone(), bytes: guess });
                }
                Some(at) => {
                    let known = &mut wanted[*at].bytes;
                    *known = known.zip(guess).map(|(a, b)| a.max(b));
                }
            }
        }
        let values = self.values(&wanted, MAX_VALUE_BYTES)?;
        let cut = |(key, range): &(DaosKey, Range<u64>)| match places.get(key) {
            Some(at) if !range.is_empty() => {
                let value = &values[*at];
                if range.end > value.len() as u64 {
                    return Err(Error::out_of_range(range, self.uri(key), value.len() as u64));
                }
                // The casts are lossless: the range is in memory.
                Ok(value.slice(range.start as usize..range.end as usize))
            }
            _ => Ok(Bytes::new()),
        };
        ranges.iter().map(cut).collect()
    }

    /// Reads a whole value of at most `max_bytes`.
    ///
    /// # Errors
    /// As [`get_ranges`](Self::get_ranges); [`ErrorKind::NotSupported`] for a larger value.
    pub(crate) fn get(&self, key: &DaosKey, max_bytes: u64) -> Result<Bytes> {
        let wanted = Wanted { key: key.clone(), bytes: None };
        let values = self.values(&[wanted], max_bytes.min(MAX_VALUE_BYTES))?;
        Ok(values.into_iter().next().unwrap_or_default())
    }

    /// Sizes of values; absent values have 0.
    ///
    /// # Errors
    /// Errors of DAOS.
    pub(crate) fn sizes(&self, keys: &[DaosKey]) -> Result<Vec<u64>> {
        self.sizes_until(&keys.iter().collect::<Vec<_>>(), &self.deadline())
    }

    pub(super) fn sizes_until(&self, keys: &[&DaosKey], deadline: &Deadline) -> Result<Vec<u64>> {
        let groups = self.requests().group(keys.iter().map(|key| (*key, 0)));
        let make = |group: &super::plan::Group, object| {
            Values::sizes(object, group.dkey, group.members.iter().map(|at| keys[*at].akey).collect())
        };
        let mut sizes = vec![0; keys.len()];
        for (group, result, call) in self.run("read", groups, |at| keys[at], make, deadline)? {
            let first = keys[group.members[0]];
            result.map_err(|number| Stop::Failed(number).into_error("read", self.uri(first)))?;
            for (at, bytes) in group.members.iter().zip(call.stored_bytes()) {
                sizes[*at] = bytes;
            }
        }
        Ok(sizes)
    }

    /// Whole values, each fetched once.
    fn values(&self, wanted: &[Wanted], max_bytes: u64) -> Result<Vec<Bytes>> {
        let deadline = self.deadline();
        let mut values = vec![Bytes::new(); wanted.len()];
        let mut sizes: Vec<Option<u64>> = wanted.iter().map(|wanted| wanted.bytes).collect();
        let mut missing: Vec<usize> = (0..wanted.len()).collect();
        for _ in 0..ATTEMPTS {
            self.find_sizes(wanted, &missing, &mut sizes, max_bytes, &deadline)?;
            missing = self.fetch(wanted, &missing, &mut sizes, &mut values, &deadline)?;
            if missing.is_empty() {
                return Ok(values);
            }
        }
        let uri = self.uri(&wanted[missing[0]].key);
        Err(Error::new(ErrorKind::Changed, "read", uri, "the value keeps changing while it is read"))
    }

    /// Queries the sizes that are not known.
    fn find_sizes(
        &self,
        wanted: &[Wanted],
        missing: &[usize],
        sizes: &mut [Option<u64>],
        max_bytes: u64,
        deadline: &Deadline,
    ) -> Result<()> {
        let unknown: Vec<usize> = missing.iter().copied().filter(|at| sizes[*at].is_none()).collect();
        let keys: Vec<&DaosKey> = unknown.iter().map(|at| &wanted[*at].key).collect();
        for (at, bytes) in unknown.into_iter().zip(self.sizes_until(&keys, deadline)?) {
            let uri = || self.uri(&wanted[at].key);
            if bytes == 0 {
                return Err(Error::new(ErrorKind::NotFound, "read", uri(), "the value does not exist"));
            }
            if bytes > max_bytes {
                let reason = format!("expected at most {max_bytes} bytes, found {bytes}");
                return Err(Error::new(ErrorKind::NotSupported, "read", uri(), reason));
            }
            sizes[at] = Some(bytes);
        }
        Ok(())
    }

    /// Fetches values whose sizes are known or guessed. Returns those of calls that found a larger value or none: their
    /// sizes are unknown then.
    fn fetch(
        &self,
        wanted: &[Wanted],
        missing: &[usize],
        sizes: &mut [Option<u64>],
        values: &mut [Bytes],
        deadline: &Deadline,
    ) -> Result<Vec<usize>> {
        let expected: Vec<u64> = missing.iter().map(|at| sizes[*at].unwrap_or_default()).collect();
        let key = |member: usize| &wanted[missing[member]].key;
        let groups = self.requests().group(expected.iter().enumerate().map(|(member, bytes)| (key(member), *bytes)));
        let make = |group: &super::plan::Group, object| {
            // The casts are lossless: sizes are at most 1 GiB.
            let values: Vec<_> =
                group.members.iter().map(|member| (key(*member).akey, expected[*member] as usize)).collect();
            Values::fetch(object, group.dkey, &values)
        };
        let deadline = &deadline.for_bytes(expected.iter().sum());
        let mut again = Vec::new();
        for (group, result, call) in self.run("read", groups, key, make, deadline)? {
            match result {
                Ok(()) => {
                    for (member, bytes) in group.members.iter().zip(call.fetched()) {
                        self.traffic().add_bytes(bytes.len() as u64);
                        values[missing[*member]] = bytes.into();
                    }
                }
                // Which of the values it is, their sizes say.
                Err(code::TOO_SHORT | code::ABSENT) => {
                    for member in group.members {
                        sizes[missing[member]] = None;
                        again.push(missing[member]);
                    }
                }
                Err(number) => {
                    return Err(Stop::Failed(number).into_error("read", self.uri(key(group.members[0]))));
                }
            }
        }
        Ok(again)
    }
}
