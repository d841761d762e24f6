//! Entries of a source in the order of other entries.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, UInt64Array};
use arrow_select::take::take;
use bytemuck::cast_slice;
use tupelo_format::checksum::xxh3;
use tupelo_format::container::Deviation;
use tupelo_format::descriptor::FieldId;
use tupelo_format::envelope::ExtraTypeInfo;
use tupelo_format::streamer::StreamerInfos;
use tupelo_pages::plan::EntrySet;
use tupelo_schema::evolution::{Selection, SourceSchema};
use tupelo_schema::schema::{Field, Schema};

use super::super::explain::Explanation;
use super::super::skipped::Skipped;
use super::{Attached, Cost, DecodeOptions, EntrySource, Sidecar, decode_selection, each_once, type_of, typed};
use crate::{Error, Result};

/// An entry without a counterpart, whose values are null.
pub(in crate::reader) const NO_ENTRY: u64 = u64::MAX;

/// A source whose entries were matched with those of another one.
#[derive(Debug, Clone)]
pub(in crate::reader) struct Matched {
    source: Arc<dyn EntrySource>,
    /// The entry of the source for each entry, or [`NO_ENTRY`].
    places: Arc<[u64]>,
    has_nulls: bool,
    schema: SourceSchema,
}

impl Matched {
    pub(in crate::reader) fn new(source: Arc<dyn EntrySource>, places: Vec<u64>) -> Self {
        let has_nulls = places.contains(&NO_ENTRY);
        let own = source.schema();
        let field = |(id, field): (u32, &Field)| {
            let mut field = field.clone();
            if has_nulls {
                field.store();
            }
            let field = if has_nulls && field.takes_nulls() { field.optional() } else { field };
            Field { id: Some(FieldId::from(id)), ..field }
        };
        let fields = (0..).zip(&own.schema().fields).map(field).collect();
        let schema = SourceSchema::new(Schema { fields }, own.is_compressed(), own.metadata().clone());
        let lacking = match has_nulls {
            true => own.schema().fields.iter().map(|field| (field.name.clone(), source.file_name())).collect(),
            false => Default::default(),
        };
        let schema = schema.like(own, lacking);
        Self { source, places: places.into(), has_nulls, schema }
    }

    /// The fields of the source that fields of this one are.
    fn chosen<'f>(&self, fields: impl IntoIterator<Item = &'f Field>) -> Result<Selection> {
        let own = &self.source.schema().schema().fields;
        let stored = |field: &Field| {
            let stored = field.id.and_then(|id| own.get(id.index()));
            let chosen = stored.and_then(|stored| field.restricted(stored));
            chosen.ok_or_else(|| Error::corrupt(format!("field '{}' is not one of the matched source", field.name)))
        };
        let fields = fields.into_iter().map(stored).collect::<Result<_>>()?;
        self.source.schema().choose(Schema { fields })
    }

    /// The entries of the source for entries of this one, in their order, and the set of them.
    fn wanted(&self, entries: &EntrySet) -> (Vec<u64>, EntrySet) {
        let slices = entries
            .ranges()
            .iter()
            .filter_map(|range| self.places.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?));
        let wanted: Vec<u64> = slices.flatten().copied().collect();
        let mut sorted: Vec<u64> = wanted.iter().copied().filter(|place| *place != NO_ENTRY).collect();
        if !sorted.is_sorted() {
            sorted.sort_unstable();
        }
        sorted.dedup();
        let set = sorted.into_iter().map(|place| place..place + 1).collect();
        (wanted, set)
    }
}

/// The places among the entries of a set; null for entries without a counterpart.
fn places_in(set: &EntrySet, wanted: &[u64]) -> UInt64Array {
    let mut before = Vec::with_capacity(set.ranges().len());
    let mut sum = 0;
    for range in set.ranges() {
        before.push(sum);
        sum += range.end - range.start;
    }
    let place = |entry: &u64| {
        let index = set.ranges().partition_point(|range| range.end <= *entry);
        let (range, before) = set.ranges().get(index).zip(before.get(index)).filter(|_| *entry != NO_ENTRY)?;
        Some(before + entry.checked_sub(range.start)?)
    };
    wanted.iter().map(place).collect()
}

impl EntrySource for Matched {
    fn schema(&self) -> &SourceSchema {
        &self.schema
    }

    fn entries(&self) -> u64 {
        self.places.len() as u64
    }

    fn clusters(&self) -> u64 {
        self.source.clusters()
    }

    fn file_name(&self) -> String {
        self.source.file_name()
    }

    fn path(&self) -> &str {
        self.source.path()
    }

    fn context(&self, error: Error) -> Error {
        self.source.context(error)
    }

    fn identity(&self) -> Result<String> {
        Ok(format!("{} {:016x}", self.source.identity()?, xxh3(cast_slice(&self.places))))
    }

    fn decode(&self, fields: &[Field], entries: &EntrySet, options: DecodeOptions<'_>) -> Result<Vec<ArrayRef>> {
        let (wanted, set) = self.wanted(entries);
        let arrays = decode_selection(&*self.source, &self.chosen(fields)?, &set, options)?;
        let is_in_order = wanted.len() as u64 == set.len() && wanted.is_sorted() && !wanted.contains(&NO_ENTRY);
        let places = (!is_in_order).then(|| places_in(&set, &wanted));
        let placed = |(array, field): (ArrayRef, &Field)| {
            let array = places.as_ref().map_or_else(|| Ok(Arc::clone(&array)), |places| take(&array, places, None))?;
            match self.has_nulls {
                true => typed(&array, &type_of(field, &self.schema, options.binary_strings)),
                false => Ok(array),
            }
        };
        arrays.into_iter().zip(fields).map(placed).collect()
    }

    /// That of the source as a whole.
    fn cost(&self, fields: &[&Field], entries: &Range<u64>) -> Result<Cost> {
        let selection = self.chosen(each_once(fields))?;
        let stored: Vec<&Field> = selection.stored_fields().iter().collect();
        let cost = self.source.cost(&stored, &(0..self.source.entries()))?;
        Ok(Cost { entries: cost.entries.min(entries.end.saturating_sub(entries.start)), ..cost })
    }

    fn batch_end(&self, _: &[&Field], _: &Range<u64>, _: u64, _: &dyn Fn(u64) -> u64) -> Result<Option<u64>> {
        Ok(None)
    }

    fn explain(&self, cut: &[Field], others: &[Field], entries: &EntrySet) -> Result<Explanation> {
        let (cut, others) = (self.chosen(cut)?, self.chosen(others)?);
        let (_, set) = self.wanted(entries);
        let explained = self.source.explain(cut.stored_fields(), others.stored_fields(), &set)?;
        Ok(Explanation { entries: entries.len(), ..explained })
    }

    fn sidecar(&self) -> &dyn Sidecar {
        self
    }

    fn unreadable(&self, fields: &[Field], entries: Range<u64>) -> Result<Vec<(String, Error)>> {
        let (_, set) = self.wanted(&entries.into());
        self.source.unreadable(self.chosen(fields)?.stored_fields(), set.span())
    }
}

/// What belongs to the file as a whole; attributes belong to entries in another order.
impl Sidecar for Matched {
    fn description(&self) -> &str {
        self.source.sidecar().description()
    }

    fn left_out(&self) -> Vec<Skipped> {
        self.source.sidecar().left_out()
    }

    fn warnings(&self) -> Vec<String> {
        self.source.sidecar().warnings()
    }

    fn deviations(&self) -> Vec<Deviation> {
        self.source.sidecar().deviations()
    }

    fn extra_type_info(&self) -> &[ExtraTypeInfo] {
        self.source.sidecar().extra_type_info()
    }

    fn streamer_infos(&self) -> Result<StreamerInfos> {
        self.source.sidecar().streamer_infos()
    }

    fn classes(&self) -> Result<StreamerInfos> {
        self.source.sidecar().classes()
    }

    fn attached(&self, _: usize) -> Result<Attached> {
        let mut attached = Attached { streamer_infos: self.streamer_infos()?, ..Attached::default() };
        for part in 0..self.source.parts().len() {
            let own = self.source.sidecar().attached(part)?;
            for (key, value) in own.metadata {
                attached.metadata.entry(key).or_insert(value);
            }
            // These belong to the tree, whatever its entries; those of the first file count.
            if part == 0 {
                attached.tree = own.tree;
            }
        }
        Ok(attached)
    }
}
