//! Which requests read a set of ranges of many objects.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::ObjectRange;
use crate::error::{Error, ErrorKind, Result};
use crate::range::{self, Plan};
use crate::source::Hints;

/// The merged requests for ranges of objects, and the place of each range in their results.
#[derive(Debug)]
pub(super) struct Requests {
    /// The objects, in order of first use, and the requests for each.
    objects: Vec<(Wanted, Plan)>,
    /// Number of ranges.
    len: usize,
}

/// The requested ranges of an object.
#[derive(Debug)]
struct Wanted {
    key: Arc<str>,
    /// Which of all ranges these are.
    places: Vec<usize>,
    ranges: Vec<Range<u64>>,
}

impl Requests {
    /// Plans requests; `base` is the URI of the namespace for messages.
    pub(super) fn plan(ranges: &[ObjectRange], hints: &Hints, base: &str) -> Result<Self> {
        let mut found: HashMap<&str, usize> = HashMap::new();
        let mut objects: Vec<Wanted> = Vec::new();
        for (place, ObjectRange { key, range }) in ranges.iter().enumerate() {
            super::key::check(key, base, "read")?;
            if range.start > range.end {
                return Err(Error::out_of_range(range, format_args!("{base}{key}"), 0));
            }
            let at = *found.entry(key).or_insert_with(|| {
                objects.push(Wanted { key: Arc::clone(key), places: Vec::new(), ranges: Vec::new() });
                objects.len() - 1
            });
            let object = &mut objects[at];
            object.places.push(place);
            object.ranges.push(range.clone());
        }
        let plan = |object: Wanted| {
            let plan = range::coalesce(&object.ranges, hints.gap_bytes, hints.max_request_bytes);
            (object, plan)
        };
        Ok(Self { objects: objects.into_iter().map(plan).collect(), len: ranges.len() })
    }

    /// The requests, all non-empty; those of one object follow each other.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Arc<str>, &Range<u64>)> {
        self.objects.iter().flat_map(|(object, plan)| plan.requests().iter().map(move |request| (&object.key, request)))
    }

    /// The bytes of each range, from the results of [`all`](Self::all), which must be exact.
    pub(super) fn cut(&self, results: Vec<Bytes>, base: &str) -> Result<Vec<Bytes>> {
        let mut results = results.into_iter();
        let mut cut = vec![Bytes::new(); self.len];
        for (Wanted { key, places, .. }, plan) in &self.objects {
            let answers: Vec<Bytes> = results.by_ref().take(plan.requests().len()).collect();
            let is_exact = answers.len() == plan.requests().len()
                && answers
                    .iter()
                    .zip(plan.requests())
                    .all(|(got, wanted)| got.len() as u64 == wanted.end - wanted.start);
            if !is_exact {
                let reason = "the back end returned a different number of bytes than requested";
                return Err(Error::new(ErrorKind::Other, "read", format_args!("{base}{key}"), reason));
            }
            for (place, bytes) in places.iter().zip(plan.cut(&answers)) {
                cut[*place] = bytes;
            }
        }
        Ok(cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(key: &str, range: Range<u64>) -> ObjectRange {
        ObjectRange { key: key.into(), range }
    }

    #[test]
    fn near_ranges_of_one_object_are_one_request() {
        let hints = Hints { gap_bytes: 5, max_request_bytes: 100, concurrency: 1 };
        let ranges = [range("b", 10..20), range("a", 0..3), range("b", 0..6), range("a", 50..60), range("c", 7..7)];
        let requests = Requests::plan(&ranges, &hints, "x:").unwrap();
        let all: Vec<(&str, Range<u64>)> = requests.all().map(|(key, range)| (&**key, range.clone())).collect();
        assert_eq!(all, [("b", 0..20), ("a", 0..3), ("a", 50..60)]);
        let numbers: Bytes = (0..100).collect();
        let results: Vec<Bytes> = all.iter().map(|(_, r)| numbers.slice(r.start as usize..r.end as usize)).collect();
        let cut = requests.cut(results.clone(), "x:").unwrap();
        for (range, bytes) in ranges.iter().zip(&cut) {
            assert_eq!(bytes, &numbers[range.range.start as usize..range.range.end as usize]);
        }
        let short = results.iter().map(|bytes| bytes.slice(1..)).collect();
        assert_eq!(requests.cut(short, "x:").unwrap_err().kind(), ErrorKind::Other);
    }

    #[test]
    #[expect(clippy::reversed_empty_ranges, reason = "a reversed range is refused")]
    fn reversed_ranges_and_hostile_keys_are_errors() {
        let hints = Hints { gap_bytes: 0, max_request_bytes: 1, concurrency: 1 };
        for bad in [range("a", 2..1), range("../a", 0..1)] {
            assert!(Requests::plan(&[bad], &hints, "x:").is_err());
        }
    }
}
