//! Which pages a request needs: known in advance wherever the metadata tell, so that they are fetched together.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use crate::Result;
use crate::schema::{Field, Kind};
use crate::source::{Cluster, Pages, Segment};

/// Columns whose pages are looked at to find out where pages end.
const SAMPLED_COLUMNS: usize = 32;

/// Stands for "as many as there are".
const ALL: u64 = u64::MAX / 2;

/// The parts of clusters that hold a range of entries, as elements of top-level fields.
pub(crate) fn segments(clusters: &[Cluster], entries: &Range<u64>) -> Vec<Segment> {
    clusters
        .iter()
        .filter_map(|cluster| {
            let range = cluster.entry_range();
            let (start, end) = (range.start.max(entries.start), range.end.min(entries.end));
            (start < end).then(|| Segment {
                cluster: *cluster,
                start: start - range.start,
                count: end - start,
                total: Some(cluster.entries),
                per_entry: Some(1),
            })
        })
        .collect()
}

/// Runs of entries, which ascend, as segments.
pub(crate) fn runs_of_entries(clusters: &[Cluster], runs: &[Range<u64>]) -> Vec<Segment> {
    let mut clusters = clusters.iter();
    let mut cluster = clusters.next();
    let mut segments: Vec<Segment> = Vec::new();
    for run in runs {
        let mut next = run.start;
        while let Some(current) = cluster.filter(|_| next < run.end) {
            let range = current.entry_range();
            if next >= range.end {
                cluster = clusters.next();
                continue;
            }
            segments.extend(self::segments(std::slice::from_ref(current), &(next..run.end)));
            next = range.end.min(run.end);
        }
    }
    segments
}

/// The parts of segments that runs (start and end, counted through all of them) choose; runs ascend.
pub(crate) fn parts(segments: &[Segment], runs: &[(usize, usize)]) -> Vec<Segment> {
    let mut parts = Vec::with_capacity(runs.len());
    let mut runs = runs.iter().map(|&(start, end)| (start as u64, end as u64)).peekable();
    let mut before = 0;
    for segment in segments {
        let until = before + segment.count;
        while let Some(&(start, end)) = runs.peek() {
            let (from, to) = (start.max(before), end.min(until));
            if from < to {
                parts.push(Segment { start: segment.start + from - before, count: to - from, ..*segment });
            }
            if end > until {
                break;
            }
            runs.next();
        }
        before = until;
    }
    parts
}

/// Which part of all entries of their clusters is in the segments.
pub(crate) fn share(segments: &[Segment]) -> f64 {
    let clusters = segments.chunk_by(|a, b| a.cluster.number == b.cluster.number);
    let all: u64 = clusters.map(|segments| segments[0].cluster.entries).sum();
    segments.iter().map(|segment| segment.count).sum::<u64>() as f64 / all.max(1) as f64
}

/// Which entry comes at an index in the output of segments of top-level fields.
pub(crate) fn entry(segments: &[Segment], index: u64) -> u64 {
    let mut before = 0;
    for segment in segments {
        if index < before + segment.count {
            return segment.cluster.first_entry + segment.start + index - before;
        }
        before += segment.count;
    }
    index
}

/// The columns and element ranges to fetch for a field before anything of it is decoded. Where a whole cluster is
/// wanted, all columns below the field are wanted whole; of a part of a cluster only the field's own range is known.
pub(crate) fn wanted<'f>(field: &'f Field, segments: &[Segment]) -> Vec<(&'f Field, usize, Segment)> {
    let mut wanted = Vec::new();
    for segment in segments {
        if segment.count == segment.cluster.entries {
            let whole = Segment { start: 0, count: ALL, total: None, per_entry: None, ..*segment };
            wanted.extend(columns(field).into_iter().map(|(field, k)| (field, k, whole)));
        } else {
            principal(field, *segment, &mut wanted);
        }
    }
    wanted
}

/// Columns whose elements follow from the entry range alone.
fn principal<'f>(field: &'f Field, segment: Segment, wanted: &mut Vec<(&'f Field, usize, Segment)>) {
    match &field.kind {
        Kind::Record(fields) | Kind::Tuple(fields) => fields.iter().for_each(|f| principal(f, segment, wanted)),
        Kind::Wrapper(item) => principal(item, segment, wanted),
        Kind::Array { .. } | Kind::Bitset { .. } => {}
        _ => wanted.push((field, 0, segment)),
    }
}

/// The entry behind which reading best ends, so that few pages have to be decoded again by what goes on from there. It is
/// in the window, near its middle, if most columns have a page that ends there; else the first one behind the window where
/// they have, before the limit; else that in the window where at least some have. `place` moves an entry to one before it
/// that will do.
pub(crate) fn good_end(
    pages: &mut Pages<'_>,
    clusters: &[Cluster],
    fields: &[&Field],
    window: &Range<u64>,
    limit: u64,
    place: impl Fn(u64) -> u64,
) -> Result<Option<u64>> {
    let whole = |cluster: &Cluster| Segment {
        cluster: *cluster,
        start: 0,
        count: cluster.entries,
        total: Some(cluster.entries),
        per_entry: Some(1),
    };
    let mut votes: BTreeMap<u64, usize> = BTreeMap::new();
    let mut most = 0;
    for cluster in clusters {
        let mut wanted = Vec::new();
        fields.iter().for_each(|field| principal(field, whole(cluster), &mut wanted));
        wanted.truncate(SAMPLED_COLUMNS);
        most = wanted.len() / 2 + 1;
        for (field, k, _) in wanted {
            let mut ends: Vec<u64> = pages.ends(field, k, cluster)?.into_iter().map(&place).collect();
            ends.dedup();
            for end in ends {
                if (window.start..limit).contains(&end) {
                    *votes.entry(end).or_default() += 1;
                }
            }
        }
        // All that is asked for is known.
        if cluster.entry_range().end >= window.end && votes.values().any(|&votes| votes >= most) {
            break;
        }
    }
    let middle = window.start.midpoint(window.end);
    let near = votes.range(window.clone()).max_by_key(|&(end, votes)| (votes, Reverse(end.abs_diff(middle))));
    let far = || votes.range(window.end..).find(|&(_, &votes)| votes >= most);
    let found = near.filter(|&(_, &votes)| votes >= most).or_else(far).or(near);
    Ok(found.map(|(&end, _)| end))
}

/// Every column of a field and of those below it, with its number among the columns of its field.
pub(crate) fn columns(field: &Field) -> Vec<(&Field, usize)> {
    let mut columns = Vec::new();
    collect(field, &mut columns);
    columns
}

fn collect<'f>(field: &'f Field, columns: &mut Vec<(&'f Field, usize)>) {
    let own = match &field.kind {
        Kind::String | Kind::Streamer => 2,
        Kind::Record(_) | Kind::Tuple(_) | Kind::Wrapper(_) | Kind::Array { .. } => 0,
        _ => 1,
    };
    columns.extend((0..own).map(|k| (field, k)));
    for child in field.children() {
        collect(child, columns);
    }
}
