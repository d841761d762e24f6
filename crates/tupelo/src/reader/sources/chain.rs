//! Several sources, whose entries follow each other.

mod open_parts;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fmt, iter};

use arrow_array::{ArrayRef, new_empty_array, new_null_array};
use arrow_select::concat::concat;
use tupelo_core::pool;
use tupelo_format::checksum::xxh3;
use tupelo_format::compression::Compression;
use tupelo_format::container::Deviation;
use tupelo_format::envelope::ExtraTypeInfo;
use tupelo_format::streamer::StreamerInfos;
use tupelo_pages::plan::EntrySet;
use tupelo_schema::evolution::{Selection, SourceSchema};
use tupelo_schema::schema::{Combination, CombinedSchema, Differing, Field, FieldPolicy, Schema};

use self::open_parts::{OPEN_SOURCES, OpenParts, Opened};
use super::super::explain::Explanation;
use super::super::skipped::Skipped;
use super::zones::ZoneBounds;
use super::{
    Attached, Cost, DecodeOptions, EntrySource, Sealed, Sidecar, add_new, check_unchanged, decode_selection,
    default_values, each_once, type_of, typed, zeros_for,
};
use crate::{Error, ErrorKind, Result};

/// Sources that are read at the same time.
const SOURCES_AT_ONCE: usize = 4;
/// Names of sources that are shown.
const SHOWN_NAMES: usize = 2;

/// Opens the source of a number; `None` leaves it out.
type Open = dyn Fn(usize) -> Result<Option<Arc<dyn EntrySource>>> + Send + Sync;

/// Ntuples or trees of several files, whose entries follow each other: made by [`Table::chain`](crate::Table::chain).
/// Entries are counted through all of them. They are opened once to compare their fields, and again when they are read; few
/// are open at a time. Cheap to clone.
#[derive(Clone)]
pub struct Chain {
    inner: Arc<Inner>,
}

struct Inner {
    open: Box<Open>,
    parts: Vec<ChainPart>,
    /// Parts that are opened while one is read.
    ahead: usize,
    opened: Mutex<OpenParts>,
    known: Known,
}

impl Inner {
    fn open_ones(&self) -> MutexGuard<'_, OpenParts> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_part(&self, index: usize) -> Result<Arc<dyn EntrySource>> {
        let part = &self.parts[index];
        let missing = || Error::not_found("it has no such ntuple any more").in_file(&part.file_name);
        let source = (self.open)(part.number)?.ok_or_else(missing)?;
        check_unchanged(&*source, &part.identity)?;
        Ok(source)
    }
}

/// What the metadata of all files say.
struct Known {
    schema: SourceSchema,
    description: String,
    clusters: u64,
    extra_type_info: Vec<ExtraTypeInfo>,
    warnings: Vec<String>,
    left_out: Vec<Skipped>,
    deviations: Vec<Deviation>,
    differing: Vec<Differing>,
    promoted: Vec<String>,
    policy: FieldPolicy,
}

/// An ntuple or tree of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChainPart {
    /// Its number among those that were given.
    pub number: usize,
    /// Path or URI of its file.
    pub file_name: String,
    /// Path in the file, with the directories.
    pub path: String,
    /// Its entries, counted through the chain.
    pub entries: Range<u64>,
    /// The parts of the source itself, counted from its first entry.
    parts: Vec<Range<u64>>,
    identity: String,
}

/// Items from several files, each with the first of its files and their number.
struct OfFiles<T>(Vec<(T, String, usize)>);

impl<T: PartialEq> OfFiles<T> {
    fn add(&mut self, said: T, file_name: &str) {
        match self.0.iter_mut().find(|(known, ..)| *known == said) {
            Some((.., files)) => *files += 1,
            None => self.0.push((said, file_name.to_owned(), 1)),
        }
    }

    /// Each with the name of the first file and the number of the others.
    fn finish(self) -> impl Iterator<Item = (T, String)> {
        self.0.into_iter().map(|(said, first, files)| match files {
            1 => (said, first),
            _ => (said, format!("{first} and {} more", files - 1)),
        })
    }
}

impl Chain {
    /// Combines `count` sources. `at_once` of them are opened at the same time.
    pub(in crate::reader) fn new(
        count: usize,
        at_once: usize,
        policy: FieldPolicy,
        open: impl Fn(usize) -> Result<Option<Arc<dyn EntrySource>>> + Send + Sync + 'static,
    ) -> Result<Self> {
        let mut combination = Combination::new(policy);
        let (mut parts, mut first): (Vec<ChainPart>, Option<Arc<dyn EntrySource>>) = (Vec::new(), None);
        let (mut clusters, mut warnings, mut left_out) = (0, OfFiles(Vec::new()), OfFiles(Vec::new()));
        let (mut extra_type_info, mut deviations): (Vec<ExtraTypeInfo>, Vec<Deviation>) = (Vec::new(), Vec::new());
        let mut counters: Vec<(String, String)> = Vec::new();
        let mut add = |number: usize, source: Arc<dyn EntrySource>| {
            let (file_name, path) = (source.file_name(), source.path().to_owned());
            let known = combination.num_fields();
            combination.add(source.schema().schema(), &file_name);
            // Fields of the first source have their counters from it.
            if first.is_some() && source.schema().is_of_tree() && combination.num_fields() > known {
                let late: HashSet<&str> = combination.names_from(known).collect();
                let own = source.schema().counters().into_iter();
                counters.extend(own.filter(|(list, _)| late.contains(list.as_str())));
            }
            clusters += source.clusters();
            source.sidecar().left_out().into_iter().for_each(|skipped| left_out.add(skipped, &file_name));
            source.sidecar().warnings().into_iter().for_each(|warning| warnings.add(warning, &file_name));
            add_new(&mut deviations, source.sidecar().deviations());
            add_new(&mut extra_type_info, source.sidecar().extra_type_info().iter().cloned());
            let start = parts.last().map_or(0, |last| last.entries.end);
            let end = start.checked_add(source.entries()).ok_or_else(|| Error::limit("over 2^64 entries"))?;
            let (entries, own, identity) = (start..end, source.parts(), source.identity()?);
            parts.push(ChainPart { number, file_name, path, entries, parts: own, identity });
            first.get_or_insert(source);
            Ok(())
        };
        let opened = |number: usize| Ok(open(number)?.map(|source| (number, source)));
        let mut added = |opened: Option<(usize, _)>| opened.map_or(Ok(()), |(number, source)| add(number, source));
        match at_once {
            0 | 1 => (0..count).try_for_each(|number| added(opened(number)?))?,
            _ => pool::each_waiting((0..count).collect(), at_once, opened, added)?,
        }
        let first = first.ok_or_else(no_ntuples)?;
        let CombinedSchema { schema, partial, differing, promoted } = combination.finish();
        let own = first.schema();
        let schema = SourceSchema::new(schema, own.is_compressed(), own.metadata().clone()).like(own, partial);
        let schema = schema.with_counters(counters);
        let description = first.sidecar().description().to_owned();
        let (open, opened) = (Box::new(open), Mutex::default());
        // One file at a time leaves none to open ahead.
        let ahead = at_once.min(OPEN_SOURCES) / 2;
        let warnings = warnings.finish().map(|(warning, files)| format!("{warning} (in {files})")).collect();
        let told = |(it, files): (Skipped, String)| Skipped { reason: format!("{} (in {files})", it.reason), ..it };
        let left_out = left_out.finish().map(told).collect();
        let known = Known {
            schema,
            description,
            clusters,
            extra_type_info,
            warnings,
            left_out,
            deviations,
            differing,
            promoted,
            policy,
        };
        let inner = Inner { open, parts, ahead, opened, known };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The ntuples and trees, in order.
    pub fn parts(&self) -> &[ChainPart] {
        &self.inner.parts
    }

    /// The index of the part that holds an entry.
    pub fn part_of(&self, entry: u64) -> usize {
        self.parts().partition_point(|part| part.entries.end <= entry)
    }

    /// The fields whose numbers have a narrower type in some files, which are read in the wider type: one sentence each.
    pub fn promoted(&self) -> &[String] {
        &self.inner.known.promoted
    }

    /// The fields that are left out because files differ.
    pub(in crate::reader) fn differing(&self) -> &[Differing] {
        &self.inner.known.differing
    }

    /// A part, opened again if it is not open any more. Parts behind it are then opened too, if that takes time.
    fn source(&self, index: usize) -> Result<Arc<dyn EntrySource>> {
        let inner = &self.inner;
        let known = inner.open_ones().take(index);
        let source = match known {
            Some(Opened::Now(source)) => return Ok(source),
            Some(Opened::Later(opening)) if !pool::is_in_pool() => {
                opening.wait().unwrap_or_else(|| inner.open_part(index))
            }
            _ => {
                inner.open_ones().put(index, Opened::Elsewhere);
                inner.open_part(index)
            }
        }?;
        let behind = index + 1..self.parts().len().min(index + 1 + inner.ahead);
        for next in behind.filter(|next| !inner.open_ones().has(*next)).collect::<Vec<_>>() {
            let shared = Arc::clone(inner);
            let Some(opening) = pool::spawn_waiting(move || shared.open_part(next)) else { break };
            inner.open_ones().put(next, Opened::Later(opening));
        }
        inner.open_ones().put(index, Opened::Now(Arc::clone(&source)));
        Ok(source)
    }

    /// The parts that have some of the entries: index and own entries of each.
    fn parts_of(&self, entries: &EntrySet) -> Vec<(usize, EntrySet)> {
        let first = self.parts().partition_point(|part| part.entries.end <= entries.span().start);
        let parts = self.parts().iter().enumerate().skip(first);
        let parts = parts.take_while(|(_, part)| part.entries.start < entries.span().end);
        let own = |(index, part): (usize, &ChainPart)| {
            let within = entries.within(&part.entries);
            let start = part.entries.start;
            (index, within.ranges().iter().map(|range| range.start - start..range.end - start).collect())
        };
        parts.map(own).filter(|(_, own): &(usize, EntrySet)| !own.is_empty()).collect()
    }

    /// Adds the counters of lists that a part lacks, where it counts other lists with them. Returns the places of such lists,
    /// each with that of its counter.
    fn add_counters<'f>(&'f self, own: &SourceSchema, wanted: &mut Vec<&'f Field>) -> HashMap<usize, usize> {
        let known = &self.inner.known;
        let mut places = HashMap::new();
        if known.policy != FieldPolicy::Defaults {
            return places;
        }
        let names: HashSet<&str> = own.schema().fields.iter().map(|field| field.name.as_str()).collect();
        let numbered = wanted.iter().enumerate().map(|(place, field)| (place, field.name.as_str()));
        let lacking: Vec<(usize, &str)> = numbered.filter(|(_, name)| !names.contains(name)).collect();
        if lacking.is_empty() {
            return places;
        }
        let counters: HashMap<String, String> = known.schema.counters().into_iter().collect();
        let counting: HashSet<String> = own.counters().into_iter().map(|(_, counter)| counter).collect();
        for (list_place, list) in lacking {
            let Some(counter) = counters.get(list).filter(|counter| counting.contains(*counter)) else { continue };
            let place = wanted.iter().position(|field| field.name == *counter).or_else(|| {
                wanted.push(known.schema.schema().fields.iter().find(|field| field.name == *counter)?);
                Some(wanted.len() - 1)
            });
            places.extend(place.map(|place| (list_place, place)));
        }
        places
    }

    /// The values of a part in the types of the chain.
    fn decode_part(
        &self,
        index: usize,
        fields: &[Field],
        entries: &EntrySet,
        options: DecodeOptions<'_>,
    ) -> Result<Vec<ArrayRef>> {
        let source = self.source(index)?;
        let decode = || {
            let mut wanted: Vec<&Field> = fields.iter().collect();
            let counters = self.add_counters(source.schema(), &mut wanted);
            let (places, selection) = own_fields(&*source, wanted)?;
            let arrays = decode_selection(&*source, &selection, entries, options)?;
            let by_place: HashMap<usize, ArrayRef> = places.into_iter().zip(arrays).collect();
            let array = |(place, field): (usize, &Field)| {
                let data_type = type_of(field, &self.inner.known.schema, options.binary_strings);
                if let Some(array) = by_place.get(&place) {
                    return typed(array, &data_type);
                }
                if self.inner.known.policy != FieldPolicy::Defaults {
                    return Ok(new_null_array(&data_type, entries.len() as usize));
                }
                let zeros = match counters.get(&place).and_then(|counter| by_place.get(counter)) {
                    Some(counts) => zeros_for(&data_type, counts).map_err(|e| e.in_field(&field.name))?,
                    None => None,
                };
                let default = || default_values(&data_type, field.is_nullable(), entries.len() as usize);
                Ok(zeros.unwrap_or_else(default))
            };
            fields.iter().enumerate().map(array).collect::<Result<Vec<_>>>()
        };
        decode().map_err(|e| source.context(e))
    }
}

/// The error where no source is left.
pub(in crate::reader) fn no_ntuples() -> Error {
    Error::not_found("no ntuples to read: the list of files is empty, or no file has one")
}

/// The fields of a source for combined fields, each once and without those that the source lacks.
fn fields_once(source: &dyn EntrySource, fields: &[&Field]) -> Result<Selection> {
    own_fields(source, each_once(fields)).map(|(_, selection)| selection)
}

/// The fields of a source for combined fields, and the places of these. A field that the source lacks is not among them.
fn own_fields<'f>(
    source: &dyn EntrySource,
    fields: impl IntoIterator<Item = &'f Field>,
) -> Result<(Vec<usize>, Selection)> {
    let by_name: HashMap<&str, &Field> =
        source.schema().schema().fields.iter().map(|field| (field.name.as_str(), field)).collect();
    let (mut places, mut own) = (Vec::new(), Vec::new());
    for (place, field) in fields.into_iter().enumerate() {
        let Some(stored) = by_name.get(field.name.as_str()) else { continue };
        let changed = || Error::new(ErrorKind::Changed, format!("field '{}' has changed", field.name));
        places.push(place);
        own.push(field.restricted(stored).ok_or_else(changed)?);
    }
    Ok((places, source.schema().choose(Schema { fields: own })?))
}

impl EntrySource for Chain {
    fn schema(&self) -> &SourceSchema {
        &self.inner.known.schema
    }

    fn entries(&self) -> u64 {
        self.parts().last().map_or(0, |last| last.entries.end)
    }

    fn clusters(&self) -> u64 {
        self.inner.known.clusters
    }

    fn parts(&self) -> Vec<Range<u64>> {
        let own = |part: &ChainPart| {
            let start = part.entries.start;
            part.parts.iter().map(|own| own.start + start..own.end + start).collect::<Vec<_>>()
        };
        self.parts().iter().flat_map(own).collect()
    }

    /// The path of the first one: mostly, all have the same.
    fn path(&self) -> &str {
        self.parts().first().map_or("", |first| &first.path)
    }

    fn file_name(&self) -> String {
        let names: Vec<&str> = self.parts().iter().take(SHOWN_NAMES).map(|part| part.file_name.as_str()).collect();
        match self.parts().len() - names.len() {
            0 => names.join(", "),
            more => format!("{} and {more} more", names.join(", ")),
        }
    }

    /// Errors of parts name the part only.
    fn context(&self, error: Error) -> Error {
        error.or_in_file(self.file_name())
    }

    fn identity(&self) -> Result<String> {
        let parts = self.parts().iter().flat_map(|part| [part.file_name.as_str(), "\0", &part.identity, "\0"]);
        Ok(format!("{:016x}", xxh3(parts.collect::<String>().as_bytes())))
    }

    fn decode(&self, fields: &[Field], entries: &EntrySet, options: DecodeOptions<'_>) -> Result<Vec<ArrayRef>> {
        let parts = self.parts_of(entries);
        let decode = |options: DecodeOptions<'_>| -> Result<Vec<Vec<ArrayRef>>> {
            let decode = |(index, own): &(usize, EntrySet)| self.decode_part(*index, fields, own, options);
            if parts.len() < 2 || pool::is_in_pool() || self.inner.known.schema.runs_user_code() {
                return parts.iter().map(decode).collect();
            }
            let mut decoded = Vec::with_capacity(parts.len());
            pool::each_waiting(parts.iter().collect(), SOURCES_AT_ONCE, decode, |arrays| {
                decoded.push(arrays);
                Ok(())
            })?;
            Ok(decoded)
        };
        let mut decoded = decode(options)?;
        let differ = |arrays: &Vec<ArrayRef>| {
            arrays.iter().zip(&decoded[0]).any(|(array, first)| array.data_type() != first.data_type())
        };
        // Strings that are not UTF-8 in some part are bytes in all of them.
        if decoded.iter().skip(1).any(differ) {
            decoded = decode(DecodeOptions { binary_strings: true, ..options })?;
        }
        match decoded.len() {
            0 => Ok(fields
                .iter()
                .map(|it| new_empty_array(&type_of(it, &self.inner.known.schema, options.binary_strings)))
                .collect()),
            1 => Ok(decoded.swap_remove(0)),
            _ => {
                let mut columns: Vec<Vec<ArrayRef>> = iter::repeat_with(Vec::new).take(fields.len()).collect();
                for arrays in decoded {
                    columns.iter_mut().zip(arrays).for_each(|(column, array)| column.push(array));
                }
                let bytes = columns.iter().flatten().map(|array| array.get_array_memory_size() as u64).sum();
                pool::map(columns, bytes, |column| Ok(concat(&column.iter().map(AsRef::as_ref).collect::<Vec<_>>())?))
            }
        }
    }

    /// That of the first part with entries of the range.
    fn cost(&self, fields: &[&Field], entries: &Range<u64>) -> Result<Cost> {
        let Some((index, own)) = self.parts_of(&entries.clone().into()).into_iter().next() else {
            return Ok(Cost::default());
        };
        let source = self.source(index)?;
        let selection = fields_once(&*source, fields)?;
        source.cost(&selection.stored_fields().iter().collect::<Vec<_>>(), &own.span())
    }

    /// The end of a part in the window, or where the part ends best that the window is in.
    fn batch_end(
        &self,
        fields: &[&Field],
        window: &Range<u64>,
        limit: u64,
        place: &dyn Fn(u64) -> u64,
    ) -> Result<Option<u64>> {
        let index = self.part_of(window.start);
        let Some(part) = self.parts().get(index) else { return Ok(None) };
        let ends = self.parts()[index..].iter().map(|part| part.entries.end).take_while(|&end| end < window.end);
        let middle = window.start.midpoint(window.end);
        let ends = ends.map(place).filter(|end| window.contains(end));
        if let Some(end) = ends.min_by_key(|end| end.abs_diff(middle)) {
            return Ok(Some(end));
        }
        let Range { start, end } = part.entries;
        let source = self.source(index)?;
        let selection = fields_once(&*source, fields)?;
        let own = |entry: u64| entry.clamp(start, end) - start;
        let found = source.batch_end(
            &selection.stored_fields().iter().collect::<Vec<_>>(),
            &(own(window.start)..own(window.end)),
            own(limit),
            &|entry| place(entry + start).saturating_sub(start),
        )?;
        Ok(found.map(|entry| entry + start).or(Some(end).filter(|&end| end < limit)))
    }

    fn zones(&self, fields: &[&str], entries: &Range<u64>, filtered: &BTreeSet<&str>) -> Vec<ZoneBounds> {
        let of_part = |(index, own): (usize, EntrySet)| {
            let start = self.parts().get(index).map_or(0, |part| part.entries.start);
            // A file that cannot be opened is an error where its entries are read.
            let mut zones = match self.source(index) {
                Ok(source) => source.zones(fields, &own.span(), filtered),
                Err(_) => vec![ZoneBounds::unknown(fields, &own.span())],
            };
            zones.iter_mut().for_each(|zone| zone.entries = zone.entries.start + start..zone.entries.end + start);
            zones
        };
        self.parts_of(&entries.clone().into()).into_iter().flat_map(of_part).collect()
    }

    fn stored_zone_bytes(&self, fields: &[&str], entries: &Range<u64>, filtered: &BTreeSet<&str>) -> Result<u64> {
        let of_part =
            |(index, own): (usize, EntrySet)| self.source(index)?.stored_zone_bytes(fields, &own.span(), filtered);
        self.parts_of(&entries.clone().into()).into_iter().map(of_part).sum()
    }

    fn explain(&self, cut: &[Field], others: &[Field], entries: &EntrySet) -> Result<Explanation> {
        let mut whole = Explanation { entries: entries.len(), ..Explanation::default() };
        let mut places: HashMap<(String, &str, bool), usize> = HashMap::new();
        for (index, own) in self.parts_of(entries) {
            let source = self.source(index)?;
            let stored = |fields: &[Field]| own_fields(&*source, fields).map(|(_, selection)| selection);
            let (cut, others) = (stored(cut)?, stored(others)?);
            let part = source.explain(cut.stored_fields(), others.stored_fields(), &own)?;
            whole.clusters += part.clusters;
            whole.requests += part.requests;
            for column in part.columns {
                // A field may have several columns, which differ in type.
                let key = (column.field.clone(), column.column_type, column.is_cut);
                match places.get(&key) {
                    Some(&place) => whole.columns[place].add(&column),
                    None => {
                        places.insert(key, whole.columns.len());
                        whole.columns.push(column);
                    }
                }
            }
        }
        Ok(whole)
    }

    fn sealed(&self, fields: &[Field], entries: &Range<u64>) -> Result<Sealed> {
        let index = self.part_of(entries.start);
        let Some(part) = self.parts().get(index) else { return Ok(Sealed::none(entries.end)) };
        let (start, end) = (part.entries.start, part.entries.end.min(entries.end));
        let source = self.source(index)?;
        let (places, selection) = own_fields(&*source, fields)?;
        let own = selection.stored_fields();
        let has_defaults = places.len() == fields.len() || self.inner.known.policy == FieldPolicy::Defaults;
        let is_same = places.iter().zip(own).all(|(place, own)| fields[*place].is_stored_like(own));
        if !is_same || !has_defaults || selection.is_evolved() {
            return Ok(Sealed::none(end));
        }
        let found = source.sealed(own, &(entries.start - start..end - start)).map_err(|e| source.context(e))?;
        let entries = found.cluster.as_ref().map_or(0, |(cluster, _)| cluster.entries);
        let own = found.missing.iter().filter_map(|(own, entries)| Some((*places.get(*own)?, *entries)));
        let lacking = (0..fields.len()).filter(|place| places.binary_search(place).is_err());
        let missing = own.chain(lacking.map(|place| (place, entries))).collect();
        Ok(Sealed { end: found.end + start, missing, ..found })
    }

    fn sidecar(&self) -> &dyn Sidecar {
        self
    }

    fn unreadable(&self, fields: &[Field], entries: Range<u64>) -> Result<Vec<(String, Error)>> {
        let mut known = HashSet::new();
        let mut found = Vec::new();
        for (index, own) in self.parts_of(&entries.into()) {
            let source = self.source(index)?;
            let (_, selection) = own_fields(&*source, fields)?;
            let unreadable = source.unreadable(selection.stored_fields(), own.span())?.into_iter();
            found.extend(unreadable.filter(|(path, _)| known.insert(path.clone())));
        }
        Ok(found)
    }
}

impl Sidecar for Chain {
    fn description(&self) -> &str {
        &self.inner.known.description
    }

    fn left_out(&self) -> Vec<Skipped> {
        self.inner.known.left_out.clone()
    }

    fn deviations(&self) -> Vec<Deviation> {
        self.inner.known.deviations.clone()
    }

    fn warnings(&self) -> Vec<String> {
        self.inner.known.warnings.clone()
    }

    fn compression(&self) -> Result<Option<Compression>> {
        self.source(0)?.sidecar().compression()
    }

    fn extra_type_info(&self) -> &[ExtraTypeInfo] {
        &self.inner.known.extra_type_info
    }

    fn streamer_infos(&self) -> Result<StreamerInfos> {
        let mut infos = StreamerInfos::default();
        for index in 0..self.parts().len() {
            infos.merge(&self.source(index)?.sidecar().streamer_infos()?);
        }
        Ok(infos)
    }

    fn classes(&self) -> Result<StreamerInfos> {
        self.source(0)?.sidecar().classes()
    }

    fn attached(&self, part: usize) -> Result<Attached> {
        let mut before = 0;
        for (index, it) in self.parts().iter().enumerate() {
            if part - before < it.parts.len() {
                return self.source(index)?.sidecar().attached(part - before);
            }
            before += it.parts.len();
        }
        Ok(Attached::default())
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain")
            .field("parts", &self.parts())
            .field("differing", &self.differing())
            .finish_non_exhaustive()
    }
}
