//! All fields of a reading request, fetched together where the source is far, and decoded as tasks.

use arrow_array::ArrayRef;

use super::{Decoder, Known};
use crate::schema::Field;
use crate::source::{Missing, PageSource, Pages, Request, Segment};
use crate::{ErrorKind, Result, plan, pool};

/// Requests of so many stored bytes put their values past the caches, which could not hold them until they are looked at.
const LARGE_BYTES: u64 = 16 << 20;

/// What decoded values look like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct How {
    /// Whether the source is compressed, which decides what encodings need no mention in the metadata.
    pub(crate) compressed: bool,
    pub(crate) binary_strings: bool,
}

/// The values of fields over the segments, an array a field. `request` gives the memory of one try: what is too much when
/// several threads work at once is tried again with one.
pub(crate) fn fields(
    source: &PageSource,
    request: impl Fn() -> Request,
    fields: &[Field],
    segments: &[Segment],
    how: How,
) -> Result<Vec<ArrayRef>> {
    let attempt = |parallel| {
        let (request, known) = (&request(), &Known::default());
        Batch { source, request, known, fields, segments, how, parallel }.decode()
    };
    match attempt(true) {
        Err(error) if error.kind() == ErrorKind::Limit && pool::threads() > 1 => attempt(false),
        done => done,
    }
}

/// One try.
struct Batch<'a> {
    source: &'a PageSource,
    request: &'a Request,
    known: &'a Known,
    fields: &'a [Field],
    segments: &'a [Segment],
    how: How,
    parallel: bool,
}

impl<'a> Batch<'a> {
    fn decode(&self) -> Result<Vec<ArrayRef>> {
        let mut arrays = Vec::with_capacity(self.fields.len());
        while arrays.len() < self.fields.len() {
            let (decoders, bytes) = self.fetch(&self.fields[arrays.len()..])?;
            let tasks: Vec<_> = decoders.into_iter().zip(&self.fields[arrays.len()..]).collect();
            let bytes = if self.parallel { bytes } else { 0 };
            arrays.extend(pool::map(tasks, bytes, |(mut decoder, field)| decoder.decode(field, self.segments))?);
        }
        Ok(arrays)
    }

    /// Decoders for the first fields, at least one, with what can be fetched for them together; one field may be too large
    /// alone, and is then fetched while it is decoded. Also the stored bytes of their pages, about.
    fn fetch(&self, fields: &[Field]) -> Result<(Vec<Decoder<'a>>, u64)> {
        let (mut decoders, mut missing) = (Vec::new(), Vec::new());
        let (mut fetched, mut touched, room) = (0, 0.0, self.request.room());
        for field in fields {
            let mut decoder = Decoder::new(Pages::new(self.source, self.request), self.known, self.how, self.parallel);
            let pages = decoder.pages.missing(plan::wanted(field, self.segments).into_iter())?;
            let bytes: u64 = pages.iter().map(|page| page.bytes).sum();
            if fetched + bytes > room && !decoders.is_empty() {
                break;
            }
            touched += decoder.pages.known_bytes() as f64;
            decoders.push(decoder);
            if fetched + bytes > room {
                missing.push(Vec::new());
                break;
            }
            fetched += bytes;
            missing.push(pages);
        }
        let touched = (touched * plan::share(self.segments)) as u64;
        let all: Vec<Missing> = missing.iter().flatten().copied().collect();
        let mut bytes = self.source.fetch_pages(&all, self.request)?.into_iter();
        for (decoder, missing) in decoders.iter_mut().zip(&missing) {
            decoder.is_large = touched >= LARGE_BYTES;
            decoder.pages.put(missing, bytes.by_ref().take(missing.len()));
        }
        Ok((decoders, touched))
    }
}
