//! Several sources side by side: their fields belong to the same entries.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::ArrayRef;
use tupelo_core::error::Remedy;
use tupelo_format::checksum::xxh3;
use tupelo_format::compression::Compression;
use tupelo_format::container::Deviation;
use tupelo_format::descriptor::FieldId;
use tupelo_format::envelope::ExtraTypeInfo;
use tupelo_format::streamer::StreamerInfos;
use tupelo_pages::plan::EntrySet;
use tupelo_schema::evolution::{Selection, SourceSchema};
use tupelo_schema::schema::{Field, Schema};

use super::super::explain::Explanation;
use super::super::skipped::Skipped;
use super::{
    Attached, Cost, DecodeOptions, EntrySource, Sidecar, add_new, decode_selection, each_once, type_of, typed,
};
use crate::{Error, Result};

/// Ntuples, trees or chains whose entries of the same number belong together: made by [`Table::join`](crate::Table::join).
/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct Join {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    sides: Vec<Side>,
    schema: SourceSchema,
    /// Of each field, by its id: the side that it is of, and its index there.
    origins: Vec<(usize, usize)>,
    extra_type_info: Vec<ExtraTypeInfo>,
}

/// A source of a join.
#[derive(Debug)]
struct Side {
    source: Arc<dyn EntrySource>,
    /// What its fields have before their names.
    prefix: String,
}

/// Fields of one side.
struct Chosen {
    side: usize,
    /// Their places among those that were asked for.
    places: Vec<usize>,
    selection: Selection,
}

impl Join {
    /// Joins sources, each with a prefix for the names of its fields, without the fields for which `is_left_out` of the number
    /// of the source and their name is true.
    pub(in crate::reader) fn new(
        sides: Vec<(String, Arc<dyn EntrySource>)>,
        is_left_out: impl Fn(usize, &str) -> bool,
    ) -> Result<Self> {
        let sides: Vec<Side> = sides.into_iter().map(|(prefix, source)| Side { source, prefix }).collect();
        let Some(first) = sides.first() else {
            return Err(Error::invalid_argument("a join needs at least one source"));
        };
        let (mut fields, mut origins, mut known): (Vec<Field>, Vec<_>, HashMap<String, usize>) = Default::default();
        let mut extra_type_info: Vec<ExtraTypeInfo> = Vec::new();
        for (number, side) in sides.iter().enumerate() {
            let source = &side.source;
            if source.entries() != first.source.entries() {
                let (own, expected) = (source.entries(), first.source.entries());
                let what = format!(
                    "has {own} entries, expected {expected} as in {}: entries are joined by their numbers",
                    first.source.file_name()
                );
                return Err(source.context(Error::invalid_argument(what)));
            }
            let fields_of_side = source.schema().schema().fields.iter().enumerate();
            let is_own = |field: &Field| !field.hidden && !is_left_out(number, &field.name);
            for (index, field) in fields_of_side.filter(|(_, field)| is_own(field)) {
                let name = format!("{}{}", side.prefix, field.name);
                if let Some(other) = known.insert(name.clone(), number).and_then(|other| sides.get(other)) {
                    let (path, file) = (other.source.path(), other.source.file_name());
                    let what = format!("field '{name}' is also in '{path}' of {file}");
                    return Err(source.context(Error::invalid_argument(what).with_remedy(Remedy::Prefix)));
                }
                let id = u32::try_from(fields.len()).map(FieldId::from).ok();
                let mut field = Field { id, name, ..field.clone() };
                // What it is projected from has another name here, or is not listed.
                field.store();
                origins.push((number, index));
                fields.push(field);
            }
            add_new(&mut extra_type_info, source.sidecar().extra_type_info().iter().cloned());
        }
        let own = first.source.schema();
        let mut schema = SourceSchema::new(Schema { fields }, own.is_compressed(), own.metadata().clone());
        if sides.iter().any(|side| side.source.schema().is_of_tree()) {
            let named: Vec<(String, SourceSchema)> =
                sides.iter().map(|side| (side.prefix.clone(), side.source.schema().clone())).collect();
            let counted = named.clone();
            let with =
                |prefix: &str, (one, other): (String, String)| (format!("{prefix}{one}"), format!("{prefix}{other}"));
            let names = move || {
                let own = |(prefix, schema): &(String, SourceSchema)| {
                    schema.other_names().into_iter().map(|pair| with(prefix, pair)).collect::<Vec<_>>()
                };
                named.iter().flat_map(own).collect()
            };
            let counters = move || {
                let own = |(prefix, schema): &(String, SourceSchema)| {
                    schema.counters().into_iter().map(|pair| with(prefix, pair)).collect::<Vec<_>>()
                };
                counted.iter().flat_map(own).collect()
            };
            schema = schema.of_branches(names, counters);
        }
        let schema = schema.over(sides.iter().any(|side| side.source.schema().runs_user_code()));
        Ok(Self { inner: Arc::new(Inner { sides, schema, origins, extra_type_info }) })
    }

    /// Number of sources.
    pub fn sides(&self) -> usize {
        self.inner.sides.len()
    }

    /// The fields of each side that are among some fields of the join.
    fn chosen<'f>(&self, fields: impl IntoIterator<Item = &'f Field>) -> Result<Vec<Chosen>> {
        let mut by_side: Vec<(Vec<usize>, Vec<Field>)> = Vec::new();
        by_side.resize_with(self.inner.sides.len(), Default::default);
        for (place, field) in fields.into_iter().enumerate() {
            let origin = field.id.and_then(|id| self.inner.origins.get(id.index()));
            let missing = || Error::corrupt(format!("field '{}' is not one of a join", field.name));
            let &(side, index) = origin.ok_or_else(missing)?;
            let stored = self.inner.sides[side].source.schema().schema().fields.get(index);
            let own = stored.and_then(|stored| field.restricted(stored)).ok_or_else(missing)?;
            let (places, fields) = &mut by_side[side];
            places.push(place);
            fields.push(own);
        }
        let sides = by_side.into_iter().enumerate().filter(|(_, (places, _))| !places.is_empty());
        let chosen = sides.map(|(side, (places, fields))| {
            let selection = self.inner.sides[side].source.schema().choose(Schema { fields })?;
            Ok(Chosen { side, places, selection })
        });
        chosen.collect()
    }

    /// The same, each field once, with the sources.
    fn chosen_once(&self, fields: &[&Field]) -> Result<Vec<(&Side, Selection)>> {
        let chosen = self.chosen(each_once(fields))?.into_iter();
        Ok(chosen.map(|it| (&self.inner.sides[it.side], it.selection)).collect())
    }

    fn first(&self) -> &dyn EntrySource {
        &*self.inner.sides[0].source
    }

    /// What all sides say, each once.
    fn all<T: PartialEq>(&self, of: impl Fn(&Side) -> Vec<T>) -> Vec<T> {
        let mut all = Vec::new();
        add_new(&mut all, self.inner.sides.iter().flat_map(of));
        all
    }
}

impl EntrySource for Join {
    fn schema(&self) -> &SourceSchema {
        &self.inner.schema
    }

    fn entries(&self) -> u64 {
        self.first().entries()
    }

    fn clusters(&self) -> u64 {
        self.inner.sides.iter().map(|side| side.source.clusters()).max().unwrap_or(0)
    }

    fn parts(&self) -> Vec<Range<u64>> {
        self.first().parts()
    }

    fn file_name(&self) -> String {
        let names: Vec<String> = self.inner.sides.iter().map(|side| side.source.file_name()).collect();
        names.join(" + ")
    }

    fn path(&self) -> &str {
        self.first().path()
    }

    /// Errors of sides name the side only.
    fn context(&self, error: Error) -> Error {
        error.or_in_file(self.file_name())
    }

    fn identity(&self) -> Result<String> {
        let mut text = String::new();
        for side in &self.inner.sides {
            text += &format!("{}\0{}\0{}\0", side.prefix, side.source.file_name(), side.source.identity()?);
        }
        Ok(format!("{:016x}", xxh3(text.as_bytes())))
    }

    fn decode(&self, fields: &[Field], entries: &EntrySet, options: DecodeOptions<'_>) -> Result<Vec<ArrayRef>> {
        let mut columns: Vec<Option<ArrayRef>> = vec![None; fields.len()];
        for Chosen { side, places, selection } in self.chosen(fields)? {
            let source = &self.inner.sides[side].source;
            let arrays = decode_selection(&**source, &selection, entries, options).map_err(|e| source.context(e))?;
            for (place, array) in places.into_iter().zip(arrays) {
                // Projected fields, and encodings that follow from the codec, have other metadata there.
                let data_type = type_of(&fields[place], &self.inner.schema, options.binary_strings);
                columns[place] = Some(typed(&array, &data_type)?);
            }
        }
        let missing = || Error::corrupt("a field of a join has no values");
        columns.into_iter().map(|column| column.ok_or_else(missing)).collect()
    }

    /// That of all sides; judged by the entries of the side with the smallest clusters.
    fn cost(&self, fields: &[&Field], entries: &Range<u64>) -> Result<Cost> {
        let mut all = Cost { entries: entries.end.saturating_sub(entries.start), bytes_per_entry: 0.0 };
        for (side, selection) in self.chosen_once(fields)? {
            let stored: Vec<&Field> = selection.stored_fields().iter().collect();
            let own = side.source.cost(&stored, entries)?;
            all.entries = all.entries.min(own.entries);
            all.bytes_per_entry += own.bytes_per_entry;
        }
        Ok(all)
    }

    /// Where the side ends best that is the largest.
    fn batch_end(
        &self,
        fields: &[&Field],
        window: &Range<u64>,
        limit: u64,
        place: &dyn Fn(u64) -> u64,
    ) -> Result<Option<u64>> {
        let mut largest: Option<(f64, &Side, Selection)> = None;
        for (side, selection) in self.chosen_once(fields)? {
            let stored: Vec<&Field> = selection.stored_fields().iter().collect();
            let bytes = side.source.cost(&stored, window)?.bytes_per_entry;
            if largest.as_ref().is_none_or(|(most, ..)| bytes > *most) {
                largest = Some((bytes, side, selection));
            }
        }
        let Some((_, side, selection)) = largest else { return Ok(None) };
        side.source.batch_end(&selection.stored_fields().iter().collect::<Vec<_>>(), window, limit, place)
    }

    fn explain(&self, cut: &[Field], others: &[Field], entries: &EntrySet) -> Result<Explanation> {
        let mut whole = Explanation { entries: entries.len(), ..Explanation::default() };
        let (cut, others) = (self.chosen(cut)?, self.chosen(others)?);
        for (number, side) in self.inner.sides.iter().enumerate() {
            let own = |chosen: &[Chosen]| {
                let own = chosen.iter().find(|chosen| chosen.side == number);
                own.map_or_else(Vec::new, |chosen| chosen.selection.stored_fields().to_vec())
            };
            let (cut, others) = (own(&cut), own(&others));
            if cut.is_empty() && others.is_empty() {
                continue;
            }
            let part = side.source.explain(&cut, &others, entries)?;
            whole.clusters = whole.clusters.max(part.clusters);
            whole.requests += part.requests;
            whole.columns.extend(part.columns.into_iter().map(|mut column| {
                column.field.insert_str(0, &side.prefix);
                column
            }));
        }
        // Those of the cut come first.
        whole.columns.sort_by_key(|column| !column.is_cut);
        Ok(whole)
    }

    fn sidecar(&self) -> &dyn Sidecar {
        self
    }

    fn unreadable(&self, fields: &[Field], entries: Range<u64>) -> Result<Vec<(String, Error)>> {
        let mut found = Vec::new();
        for Chosen { side, selection, .. } in self.chosen(fields)? {
            let side = &self.inner.sides[side];
            let own = side.source.unreadable(selection.stored_fields(), entries.clone())?.into_iter();
            found.extend(own.map(|(path, error)| (format!("{}{path}", side.prefix), error)));
        }
        Ok(found)
    }
}

/// What files say of entries is that of the first side, and of others whose files have the same entries.
impl Sidecar for Join {
    fn description(&self) -> &str {
        self.first().sidecar().description()
    }

    fn left_out(&self) -> Vec<Skipped> {
        self.all(|side| {
            let own = side.source.sidecar().left_out().into_iter();
            own.map(|it| Skipped { name: format!("{}{}", side.prefix, it.name), ..it }).collect()
        })
    }

    fn warnings(&self) -> Vec<String> {
        let parts = self.parts();
        self.all(|side| {
            let mut warnings = side.source.sidecar().warnings();
            if side.source.parts() != parts {
                let file = side.source.file_name();
                warnings.push(format!(
                    "copies lack the metadata and attribute sets of {file}: the files of the inputs begin at other entries"
                ));
            }
            warnings
        })
    }

    fn deviations(&self) -> Vec<Deviation> {
        self.all(|side| side.source.sidecar().deviations())
    }

    fn compression(&self) -> Result<Option<Compression>> {
        self.first().sidecar().compression()
    }

    fn extra_type_info(&self) -> &[ExtraTypeInfo] {
        &self.inner.extra_type_info
    }

    fn streamer_infos(&self) -> Result<StreamerInfos> {
        let mut infos = StreamerInfos::default();
        for side in &self.inner.sides {
            infos.merge(&side.source.sidecar().streamer_infos()?);
        }
        Ok(infos)
    }

    fn classes(&self) -> Result<StreamerInfos> {
        let mut classes = StreamerInfos::default();
        for side in &self.inner.sides {
            classes.merge(&side.source.sidecar().classes()?);
        }
        Ok(classes)
    }

    fn attached(&self, part: usize) -> Result<Attached> {
        let parts = self.parts();
        let mut all = self.first().sidecar().attached(part)?;
        for side in self.inner.sides.iter().skip(1) {
            if side.source.parts() != parts {
                all.streamer_infos.merge(&side.source.sidecar().streamer_infos()?);
                continue;
            }
            let own = side.source.sidecar().attached(part)?;
            all.streamer_infos.merge(&own.streamer_infos);
            for (key, value) in own.metadata {
                all.metadata.entry(key).or_insert(value);
            }
            let is_new = |(name, _): &(String, _)| !all.sets.iter().any(|(known, _)| known == name);
            let new: Vec<_> = own.sets.into_iter().filter(is_new).collect();
            all.sets.extend(new);
            all.tree.aliases.extend(own.tree.aliases);
            all.tree.user_info.extend(own.tree.user_info);
        }
        // These are joined.
        let is_joined = |alias: &str| self.inner.sides.iter().any(|side| side.prefix.strip_suffix('_') == Some(alias));
        all.tree.friends.retain(|[alias, ..]| !is_joined(alias));
        Ok(all)
    }
}
