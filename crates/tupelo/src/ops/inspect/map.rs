//! Where the pages are.

use std::collections::BTreeMap;

use serde::Serialize;

use tupelo_pages::source::Blob;

/// Most runs of pages in a map: beyond this, neighbouring pages of a column are one run, and beyond it again several
/// neighbouring runs.
pub const MAX_RUNS: usize = 20_000;

/// Pages that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Run {
    /// Number of the object or other file among those of the report; absent for the file itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<u32>,
    /// First byte.
    pub offset: u64,
    /// From the first byte to the last one.
    pub span_bytes: u64,
    /// Bytes of the pages: fewer than `span_bytes` where something else is between them.
    pub bytes: u64,
    /// Number of the column, or of the first of several.
    pub column: u32,
    /// 1 if all its pages are of one column; else how often the column changes in it, and 1.
    pub columns: u32,
    /// Number of the cluster, or of the first of several.
    pub cluster: u64,
    /// Number of the first page in column and cluster.
    pub first_page: u64,
    /// Number of pages.
    pub pages: u64,
}

/// Metadata: an envelope of an ntuple, or the record of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Part {
    /// Number of the object, as in [`Run`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<u32>,
    /// First byte.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
    /// What it is.
    pub what: String,
}

/// A page, with its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    blob: Blob,
    run: Run,
    last_column: u32,
}

/// The map, and the names of the objects in it.
pub(super) struct Found {
    pub(super) map: Vec<Run>,
    pub(super) parts: Vec<Part>,
    pub(super) objects: Vec<String>,
}

/// Pages in any order.
#[derive(Debug, Default)]
pub(super) struct Map {
    pieces: Vec<Piece>,
    parts: Vec<(Blob, Part)>,
}

impl Map {
    pub(super) fn add(&mut self, blob: Blob, offset: u64, bytes: u64, column: u32, cluster: u64, page: u64) {
        let (span_bytes, object) = (bytes, None);
        let run = Run { object, offset, span_bytes, bytes, column, columns: 1, cluster, first_page: page, pages: 1 };
        self.pieces.push(Piece { blob, run, last_column: column });
    }

    pub(super) fn add_part(&mut self, blob: Blob, offset: u64, bytes: u64, what: String) {
        self.parts.push((blob, Part { object: None, offset, bytes, what }));
    }

    /// The runs by place, at most `most`, the metadata, and the names of the objects that they number. `name` names an object; `None` is
    /// the file itself.
    pub(super) fn finish(mut self, most: usize, name: impl Fn(Blob) -> Option<String>) -> Found {
        self.pieces.sort_by_key(|piece| (piece.blob, piece.run.offset, piece.run.bytes));
        if self.pieces.len() > most {
            self.combine(|before, next| {
                let (run, next) = (&before.run, &next.run);
                (run.column, run.cluster, run.first_page + run.pages) == (next.column, next.cluster, next.first_page)
                    && run.offset + run.span_bytes == next.offset
            });
        }
        if self.pieces.len() > most {
            let together = self.pieces.len().div_ceil(most.max(1)) as u64;
            let mut number: u64 = 0;
            // Objects that have a page each are as numerous as pages.
            self.combine(|_, _| {
                number += 1;
                !number.is_multiple_of(together)
            });
        }
        let mut numbers: BTreeMap<Blob, u32> = BTreeMap::new();
        let mut objects = Vec::new();
        let mut number = |blob: Blob| {
            let name = name(blob)?;
            Some(*numbers.entry(blob).or_insert_with(|| {
                objects.push(name);
                (objects.len() - 1) as u32
            }))
        };
        let mut map = Vec::with_capacity(self.pieces.len());
        for Piece { blob, run, .. } in self.pieces {
            map.push(Run { object: number(blob), ..run });
        }
        let place = |(blob, part): (Blob, Part)| Part { object: number(blob), ..part };
        let parts = self.parts.into_iter().map(place).collect();
        Found { map, parts, objects }
    }

    /// Joins each piece with the one before it where both belong together.
    fn combine(&mut self, mut together: impl FnMut(&Piece, &Piece) -> bool) {
        let mut combined: Vec<Piece> = Vec::new();
        for piece in self.pieces.drain(..) {
            match combined.last_mut() {
                Some(before) if together(before, &piece) => {
                    let (run, next) = (&mut before.run, &piece.run);
                    let is_same_blob = before.blob == piece.blob;
                    run.columns = run.columns.saturating_add(u32::from(before.last_column != next.column));
                    before.last_column = piece.last_column;
                    run.span_bytes = match is_same_blob {
                        true => (next.offset + next.span_bytes).saturating_sub(run.offset).max(run.span_bytes),
                        false => run.span_bytes + next.span_bytes,
                    };
                    run.bytes += next.bytes;
                    run.pages += next.pages;
                }
                _ => combined.push(piece),
            }
        }
        self.pieces = combined;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two columns in three clusters, of two pages each, with a gap before each cluster.
    fn map() -> Map {
        let mut map = Map::default();
        for cluster in 0..3 {
            for (column, page) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                let place = cluster * 100 + u64::from(column) * 40 + page * 20;
                map.add(Blob::numbered(0), 7 + place, 20, column, cluster, page);
            }
        }
        map
    }

    #[test]
    fn pages_are_combined_only_beyond_the_limit() {
        let sum =
            |runs: &[Run]| (runs.iter().map(|run| run.bytes).sum::<u64>(), runs.iter().map(|run| run.pages).sum());
        for (most, count, span) in [(12, 12, 20), (11, 6, 40), (5, 3, 80), (2, 2, 140), (1, 1, 280)] {
            let Found { map: runs, objects, .. } = map().finish(most, |_| None);
            assert_eq!((runs.len(), sum(&runs), objects.len()), (count, (240, 12u64), 0), "{most}");
            assert_eq!((runs[0].offset, runs[0].span_bytes, runs[0].object), (7, span, None), "{most}");
        }
    }

    #[test]
    fn objects_are_numbered() {
        let mut map = Map::default();
        for number in [3, 1, 3, 0] {
            map.add(Blob::numbered(number), number * 10, 10, 0, 0, 0);
        }
        map.add_part(Blob::numbered(7), 0, 5, "footer".to_owned());
        map.add_part(Blob::numbered(1), 30, 5, "header".to_owned());
        let found = map.finish(100, |blob| (blob.number > 0).then(|| blob.number.to_string()));
        assert_eq!(found.map.iter().map(|run| run.object).collect::<Vec<_>>(), [None, Some(0), Some(1), Some(1)]);
        assert_eq!(found.parts.iter().map(|part| part.object).collect::<Vec<_>>(), [Some(2), Some(0)]);
        assert_eq!(found.objects, ["1", "3", "7"]);
    }
}
