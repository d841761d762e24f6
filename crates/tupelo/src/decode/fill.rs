//! Runs of pages into their places in the output.

use tupelo_format::encoding::Encoding;

use super::Decoder;
use crate::pool;
use crate::schema::Field;
use crate::source::{Pages, Segment, Touch};
use crate::{Error, Result};

/// Decodes a whole page to values as they lie in memory.
pub(super) type Decode = fn(&Encoding, &[u8], &mut [u8]) -> tupelo_format::Result<()>;

impl Decoder<'_> {
    /// Decodes all elements of the segments, of `width` bytes each, into `out`. What is not stored, because the column was
    /// added later, becomes zero.
    pub(super) fn fill(
        &mut self,
        field: &Field,
        k: usize,
        segments: &[Segment],
        width: usize,
        out: &mut [u8],
        decode: Decode,
    ) -> Result<()> {
        let touches = self.pages.touches(field, k, segments)?;
        self.fill_touches(field, &touches, width, out, decode)
    }

    /// The same where the parts of pages are known that hold the elements.
    pub(super) fn fill_touches(
        &mut self,
        field: &Field,
        touches: &[Touch],
        width: usize,
        out: &mut [u8],
        decode: Decode,
    ) -> Result<()> {
        let mut slots = Slots { rest: out, at: 0, width };
        let parallel = self.parallel;
        self.rounds(field, touches, |pages, runs| {
            let taken: usize = runs.iter().copied().flatten().map(|touch| touch.take).sum();
            let places = runs.iter().map(|run| slots.of(run)).collect::<Result<Vec<_>>>()?;
            let bytes = if parallel { (taken * width) as u64 } else { 0 };
            pool::map(runs.into_iter().zip(places).collect(), bytes, |(run, out)| {
                if pages.read_plain(field, run, width, out)? {
                    return Ok(());
                }
                let (mut rest, mut spare) = (out, Vec::<u64>::new());
                pages.unseal(field, run, |touches, encoding, elements, packed| {
                    let taken: usize = touches.iter().map(|touch| touch.take * width).sum();
                    let mut mine = rest.split_off_mut(..taken).ok_or_else(|| Error::corrupt("pages overlap"))?;
                    if let [touch] = touches
                        && touch.take == elements
                    {
                        return Ok(decode(encoding, packed, mine)?);
                    }
                    let mut is_decoded = false;
                    for touch in touches {
                        let (to, others) = mine.split_at_mut(touch.take * width);
                        mine = others;
                        let wanted = touch.skip..touch.skip + touch.take;
                        if let Some(part) = encoding.part(packed, elements, wanted.clone()) {
                            decode(encoding, &part, to)?;
                            continue;
                        }
                        if !is_decoded {
                            spare.resize((elements * width).div_ceil(size_of::<u64>()), 0);
                            decode(encoding, packed, &mut bytemuck::cast_slice_mut(&mut spare)[..elements * width])?;
                            is_decoded = true;
                        }
                        to.copy_from_slice(&bytemuck::cast_slice(&spare)[wanted.start * width..wanted.end * width]);
                    }
                    Ok(())
                })
            })?;
            Ok(())
        })?;
        slots.end();
        Ok(())
    }

    /// Shows all parts of pages that hold elements of the segments, in order: what is wanted of a page, its encoding, the
    /// number of its elements, and the page.
    pub(super) fn visit(
        &mut self,
        field: &Field,
        k: usize,
        segments: &[Segment],
        mut visit: impl FnMut(&Touch, &Encoding, usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let touches = self.pages.touches(field, k, segments)?;
        self.rounds(field, &touches, |pages, runs| {
            runs.into_iter().try_for_each(|run| {
                pages.unseal(field, run, |touches, encoding, elements, packed| {
                    touches.iter().try_for_each(|touch| visit(touch, encoding, elements, packed))
                })
            })
        })
    }

    /// Gives all runs of these pages to `work`, in order, as many at once as there is room for.
    fn rounds(
        &mut self,
        field: &Field,
        touches: &[Touch],
        mut work: impl FnMut(&Pages<'_>, Vec<&[Touch]>) -> Result<()>,
    ) -> Result<()> {
        let mut rest = touches;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(self.pages.provide(field, rest)?.max(1));
            work(&self.pages, self.pages.runs(now))?;
            self.pages.release(now);
            rest = later;
        }
        Ok(())
    }
}

/// The output, cut into the places of runs.
struct Slots<'o> {
    rest: &'o mut [u8],
    /// Elements that were cut off.
    at: usize,
    width: usize,
}

impl<'o> Slots<'o> {
    /// The place of consecutive touches, whose elements follow each other unless some between them are not stored: a run
    /// is in one cluster, where those are the first.
    fn of(&mut self, run: &[Touch]) -> Result<&'o mut [u8]> {
        let (Some(first), taken) = (run.first(), run.iter().map(|touch| touch.take).sum::<usize>()) else {
            return Ok(&mut []);
        };
        let misfit = || Error::corrupt("elements overlap");
        let gap = first.to.checked_sub(self.at).ok_or_else(misfit)?;
        self.rest.split_off_mut(..gap * self.width).ok_or_else(misfit)?.fill(0);
        self.at = first.to + taken;
        self.rest.split_off_mut(..taken * self.width).ok_or_else(misfit)
    }

    fn end(self) {
        self.rest.fill(0);
    }
}
