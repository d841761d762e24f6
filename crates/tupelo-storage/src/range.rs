//! Planning of requests for byte ranges: near ranges are merged, large ones are split. No I/O.

use std::ops::Range;

use bytes::Bytes;

/// The requests that fetch a set of ranges, and the place of each range in their results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    requests: Vec<Range<u64>>,
    cuts: Vec<Cut>,
}

/// Where one of the original ranges lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    /// Which request covers it.
    request: usize,
    /// Its offset in the result of that request, in bytes.
    start: u64,
    /// Its length in bytes; zero needs no request.
    len: u64,
}

impl Plan {
    /// The requests, by ascending start; none is empty.
    pub fn requests(&self) -> &[Range<u64>] {
        &self.requests
    }

    /// Total number of bytes of the requests.
    pub fn request_bytes(&self) -> u64 {
        self.requests.iter().map(|request| request.end - request.start).sum()
    }

    /// The bytes of each original range, in the original order, without copying.
    ///
    /// A slice keeps the result of the whole request in memory.
    ///
    /// # Panics
    /// If `answers` are not the answers to [`requests`](Self::requests), each of its exact length.
    pub fn cut(&self, answers: &[Bytes]) -> Vec<Bytes> {
        assert_eq!(answers.len(), self.requests.len(), "one result for each request");
        let one = |cut: &Cut| match cut.len {
            0 => Bytes::new(),
            // The casts are lossless: a result of that length is in memory.
            len => answers[cut.request].slice(cut.start as usize..(cut.start + len) as usize),
        };
        self.cuts.iter().map(one).collect()
    }
}

/// Merges ranges that lie at most `gap_bytes` apart, as long as the result stays within `max_request_bytes`.
///
/// The ranges may come in any order, overlap and repeat. Empty ones (and those that end before they start) need no
/// request. A single range longer than `max_request_bytes` is one request: [`split`] it first where that matters.
pub fn coalesce(ranges: &[Range<u64>], gap_bytes: u64, max_request_bytes: u64) -> Plan {
    let mut order: Vec<usize> = (0..ranges.len()).filter(|&i| !ranges[i].is_empty()).collect();
    order.sort_by_key(|&i| (ranges[i].start, ranges[i].end));
    let mut requests: Vec<Range<u64>> = Vec::new();
    let mut cuts = vec![Cut { request: 0, start: 0, len: 0 }; ranges.len()];
    for i in order {
        let range = &ranges[i];
        let joined = requests.last_mut().and_then(|last| {
            let end = last.end.max(range.end);
            let near = range.start <= last.end.saturating_add(gap_bytes);
            let fits = range.end <= last.end || end - last.start <= max_request_bytes;
            (near && fits).then(|| last.end = end)
        });
        if joined.is_none() {
            requests.push(range.clone());
        }
        let request = requests.len() - 1;
        cuts[i] = Cut { request, start: range.start - requests[request].start, len: range.end - range.start };
    }
    Plan { requests, cuts }
}

/// Cuts a range into consecutive pieces of `max_bytes`; the last one may be shorter. An empty range has no pieces.
///
/// # Panics
/// If `max_bytes` is zero.
pub fn split(range: Range<u64>, max_bytes: u64) -> impl Iterator<Item = Range<u64>> {
    assert!(max_bytes > 0, "pieces of zero bytes never cover a range");
    let mut start = range.start;
    std::iter::from_fn(move || {
        let piece = start..range.end.min(start.saturating_add(max_bytes));
        start = piece.end;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn merges_near_ranges_and_keeps_far_ones_apart() {
        let plan = coalesce(&[100..110, 0..10, 14..20, 105..120], 4, 1000);
        assert_eq!(plan.requests(), [0..20, 100..120]);
        assert_eq!(plan.request_bytes(), 40);
        assert_eq!(coalesce(&[0..10, 15..20], 4, 1000).requests(), [0..10, 15..20]);
    }

    #[test]
    fn never_grows_a_request_beyond_the_maximum() {
        assert_eq!(coalesce(&[0..10, 10..20, 20..30], 0, 20).requests(), [0..20, 20..30]);
        assert_eq!(coalesce(&[0..100, 40..50, 99..101], 0, 20).requests(), [0..100, 99..101]);
    }

    #[test]
    fn works_at_the_end_of_the_number_line() {
        let plan = coalesce(&[u64::MAX - 1..u64::MAX, 0..1], u64::MAX, u64::MAX);
        assert_eq!(plan.requests(), std::slice::from_ref(&(0..u64::MAX)));
        assert_eq!(
            split(u64::MAX - 3..u64::MAX, 2).collect::<Vec<_>>(),
            [u64::MAX - 3..u64::MAX - 1, u64::MAX - 1..u64::MAX]
        );
    }

    fn ranges() -> impl Strategy<Value = Vec<Range<u64>>> {
        prop::collection::vec((0_u64..900, 0_u64..60).prop_map(|(start, len)| start..start + len), 0..40)
    }

    proptest! {
        #[test]
        fn cutting_the_answers_gives_the_original_ranges(
            ranges in ranges(), gap in 0_u64..50, max in 1_u64..300,
        ) {
            let whole: Bytes = (0..1000).map(|i| (i * 31 % 251) as u8).collect();
            let at = |range: &Range<u64>| whole.slice(range.start as usize..range.end as usize);
            let plan = coalesce(&ranges, gap, max);
            let answers: Vec<Bytes> = plan.requests().iter().map(at).collect();
            let expected: Vec<Bytes> = ranges.iter().map(at).collect();
            prop_assert_eq!(plan.cut(&answers), expected);
        }

        #[test]
        fn requests_are_ordered_bounded_and_stable(ranges in ranges(), gap in 0_u64..50, max in 1_u64..300) {
            let plan = coalesce(&ranges, gap, max);
            let longest = ranges.iter().map(|r| r.end - r.start).max().unwrap_or(0);
            for request in plan.requests() {
                prop_assert!(!request.is_empty());
                prop_assert!(request.end - request.start <= max.max(longest));
                prop_assert!(ranges.iter().any(|r| r.start == request.start));
                prop_assert!(ranges.iter().any(|r| r.end == request.end));
            }
            for pair in plan.requests().windows(2) {
                prop_assert!(pair[0].start <= pair[1].start && pair[0].end < pair[1].end);
                let near = pair[1].start <= pair[0].end + gap;
                prop_assert!(!near || pair[1].end - pair[0].start > max, "{:?} should be one", pair);
            }
            let again = coalesce(plan.requests(), gap, max);
            prop_assert_eq!(again.requests(), plan.requests());
        }

        #[test]
        fn pieces_cover_the_range_in_order(start in 0_u64..1000, len in 0_u64..1000, max in 1_u64..300) {
            let mut next = start;
            for piece in split(start..start + len, max) {
                prop_assert_eq!(piece.start, next);
                prop_assert!(!piece.is_empty() && piece.end - piece.start <= max);
                next = piece.end;
            }
            prop_assert_eq!(next, start + len);
        }
    }
}
