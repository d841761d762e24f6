//! A choice of fields and entries.

mod edit;
mod expressions;
mod left_out;

use std::collections::{BTreeSet, HashSet};
use std::ops::{Range, RangeBounds};
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::{DataType, Field as ArrowField, FieldRef, Schema as ArrowSchema, SchemaRef};
use tupelo_pages::plan;
use tupelo_pages::plan::EntrySet;
use tupelo_pages::source::Keep;
use tupelo_schema::evolution::{Selection, binary_type};
use tupelo_schema::expression::Expression;
use tupelo_schema::schema::{Field, Kind, Names, Schema, with_data_type};

use self::edit::Edit;
pub use self::edit::Entries;
use super::computed::{Aliases, ComputedColumn, Cut};
use super::decoded::{DecodedFields, Needed};
use super::explain::Explanation;
use super::sources::zones::{ZoneBounds, widened};
use super::sources::{Cost, EntrySource, Ntuple, Sealed, Tree};
use crate::{Error, Result};

/// Default memory of a batch in bytes: 8 MiB.
pub const DEFAULT_BATCH_BYTES: u64 = 8 << 20;
/// Most entries without values that are read at once: their number costs a file nothing.
const MAX_UNSTORED_ENTRIES: u64 = 1 << 28;

/// Which fields and entries to read, and how.
#[derive(Debug, Clone)]
pub struct Read {
    source: Arc<dyn EntrySource>,
    fields: Selection,
    entries: Range<u64>,
    binary_strings: bool,
    keep: Keep,
    /// The names that expressions may use besides fields.
    aliases: Arc<Aliases>,
    /// Columns after those of the schema.
    computed: Vec<Arc<ComputedColumn>>,
    /// The name of a last column with the numbers of the entries.
    numbers: Option<String>,
    /// The cut that selects entries.
    cut: Option<Arc<Cut>>,
    /// What changes the values of the columns.
    edit: Option<Arc<Edit>>,
    /// Patterns in whose order the columns come.
    order: Vec<String>,
}

impl Ntuple {
    /// Selects fields to read, by dotted paths or globs (`jets.pt`, `Muon_*`); no pattern means all.
    ///
    /// # Errors
    /// Not found, with near names, for a pattern that matches no field.
    pub fn read<S: AsRef<str>>(&self, patterns: impl AsRef<[S]>) -> Result<Read> {
        Read::select(Arc::new(self.clone()), patterns.as_ref())
    }

    /// Selects all fields that are [listed](Schema::listed).
    pub fn read_all(&self) -> Read {
        Read::all(Arc::new(self.clone()))
    }
}

impl Tree {
    /// Selects fields to read, by dotted paths or globs; no pattern means all. See [`Ntuple::read`].
    ///
    /// # Errors
    /// Not found, with near names, for a pattern that matches no field.
    pub fn read<S: AsRef<str>>(&self, patterns: impl AsRef<[S]>) -> Result<Read> {
        Read::select(Arc::new(self.clone()), patterns.as_ref())
    }

    /// Selects all fields.
    pub fn read_all(&self) -> Read {
        Read::all(Arc::new(self.clone()))
    }
}

impl Read {
    /// Fields by dotted paths or globs; no pattern means all that are listed.
    pub(super) fn select<S: AsRef<str>>(source: Arc<dyn EntrySource>, patterns: &[S]) -> Result<Self> {
        let fields = source.schema().select(patterns).map_err(|e| source.context(e))?;
        Ok(Self::new(source, fields))
    }

    /// All fields that are listed.
    pub(super) fn all(source: Arc<dyn EntrySource>) -> Self {
        let fields = source.schema().listed();
        Self::new(source, fields)
    }

    pub(super) fn new(source: Arc<dyn EntrySource>, fields: Selection) -> Self {
        let entries = 0..source.entries();
        let (aliases, computed) = (Arc::default(), Vec::new());
        Self {
            source,
            fields,
            entries,
            binary_strings: false,
            keep: Keep::Nothing,
            aliases,
            computed,
            numbers: None,
            cut: None,
            edit: None,
            order: Vec::new(),
        }
    }

    /// Reads the data as another schema than the one on disk: ROOT's schema evolution, whose rules are described
    /// [here](crate::schema#reading-as-another-schema). It replaces the selection of fields. Its top-level fields are
    /// found by name, and so are the members of records; what it leaves out is not read, and members that are not on
    /// disk are zero, empty or null. Names, order, types, nullability and metadata of what is read are those of the
    /// schema.
    ///
    /// Values that do not fit their new type are errors when they are read, of the kind
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument), with field and entry.
    /// ```no_run
    /// use arrow_schema::{DataType, Field, Schema};
    ///
    /// let wanted = Schema::new(vec![Field::new("pt", DataType::Float64, false)]);
    /// let wanted = tupelo::schema::Schema::from_arrow(&wanted)?;
    /// let batch = tupelo::open("events.root:Events").open()?.read_all().with_schema(&wanted)?.to_batch()?;
    /// # Ok::<(), tupelo::Error>(())
    /// ```
    ///
    /// # Errors
    /// Not found, with near names, for a missing top-level field; invalid argument, with field, types and rule, for one
    /// that cannot be read as the wanted type.
    pub fn with_schema(mut self, wanted: &Schema) -> Result<Self> {
        self.fields = self.source.schema().read_as(wanted).map_err(|e| self.context(e))?;
        Ok(self)
    }

    /// The same request for other fields, by dotted paths or globs, instead of those selected before. The cut, computed
    /// columns and the range of entries stay.
    ///
    /// # Errors
    /// Not found, with near names, for a pattern that matches no field.
    pub fn with_fields<S: AsRef<str>>(mut self, patterns: impl AsRef<[S]>) -> Result<Self> {
        self.fields = self.source.schema().select(patterns.as_ref()).map_err(|e| self.context(e))?;
        Ok(self)
    }

    /// The same without the fields that dotted paths or globs name, and without all fields below them. A record without
    /// remaining members is removed, too. Fields that are not chosen anyway may be named.
    /// ```no_run
    /// let ntuple = tupelo::open("events.root:Events").open()?;
    /// let batch = ntuple.read(["Muon_*"])?.without(["Muon_genPart*"])?.to_batch()?;
    /// # Ok::<(), tupelo::Error>(())
    /// ```
    ///
    /// # Errors
    /// Not found, with near names, for a pattern that fits no field of the ntuple.
    pub fn without<S: AsRef<str>>(mut self, patterns: impl AsRef<[S]>) -> Result<Self> {
        if !patterns.as_ref().is_empty() {
            let fields = self.source.schema().exclude(&self.fields, patterns.as_ref());
            self.fields = fields.map_err(|e| self.context(e))?;
        }
        Ok(self)
    }

    /// The chosen fields, without what is computed.
    pub fn schema(&self) -> &Schema {
        &self.fields.schema
    }

    /// The Arrow schema of the batches.
    pub fn arrow_schema(&self) -> SchemaRef {
        let schema = self.source.schema().to_arrow(&self.fields.schema);
        let field = |field: &FieldRef| match self.binary_strings {
            true => with_data_type(field, binary_type(field.data_type())),
            false => Arc::clone(field),
        };
        let mut fields: Vec<_> = schema.fields().iter().map(field).collect();
        fields.extend(self.computed.iter().map(|computed| Arc::new(computed.field().clone())));
        self.reorder(&mut fields);
        fields.extend(self.numbers.iter().map(|name| Arc::new(ArrowField::new(name, DataType::UInt64, false))));
        ArrowSchema::new(fields).with_metadata(schema.metadata().clone()).into()
    }

    /// Restricts reading to a range of entries. A range that extends past the end of the ntuple is truncated.
    #[must_use]
    pub fn entries(mut self, range: impl RangeBounds<u64>) -> Self {
        self.entries = plan::truncated(range, self.source.entries());
        self
    }

    /// Strings as `LargeBinary` instead of `LargeUtf8`, for data that is not UTF-8. Without this, a column whose
    /// strings are not UTF-8 is returned as `LargeBinary` by [`Read::to_batch`], and is an error in a stream of
    /// batches, whose schema is fixed in advance.
    #[must_use]
    pub fn with_binary_strings(mut self, binary: bool) -> Self {
        self.binary_strings = binary;
        self
    }

    /// Keeps decompressed pages and baskets that are used in part, for later requests that say the same, in at most half of
    /// the memory budget. It pays for requests for few entries each, many of them in the same pages.
    #[must_use]
    pub fn with_kept_pages(mut self) -> Self {
        self.keep = Keep::Parts;
        self
    }

    /// Only the selected entries for which `cut` is true; null counts as false. It replaces an earlier cut. It gets the
    /// fields that the patterns choose, which need not be among those that are read, in batches of any size. Those
    /// fields are read first; of the others, pages that hold no entry to keep are neither read nor decoded, unless two
    /// such entries are within 1024 of each other.
    /// ```no_run
    /// use arrow_array::{BooleanArray, cast::AsArray, types::Float32Type};
    ///
    /// let ntuple = tupelo::open("events.root:Events").open()?;
    /// let hard = ntuple.read(["Muon_*"])?.with_cut(["MET_pt"], |batch| {
    ///     let met = batch.column(0).as_primitive::<Float32Type>();
    ///     Ok(BooleanArray::from_unary(met, |met| met > 200.0))
    /// })?;
    /// let batch = hard.to_batch()?;
    /// # Ok::<(), tupelo::Error>(())
    /// ```
    ///
    /// # Errors
    /// Not found, with near names, for a pattern that fits no field. Reading then returns the errors of `cut`, and
    /// invalid argument if its result differs in length from the batch.
    pub fn with_cut<S: AsRef<str>>(
        mut self,
        patterns: impl AsRef<[S]>,
        cut: impl Fn(&RecordBatch) -> Result<BooleanArray> + Send + Sync + 'static,
    ) -> Result<Self> {
        let fields = self.source.schema().select(patterns.as_ref()).map_err(|e| self.context(e))?;
        let binary_strings = self.binary_strings;
        self.cut = Some(Arc::new(Cut::Function { fields, binary_strings, keep: Box::new(cut) }));
        Ok(self)
    }

    /// Only the entries for which an expression is true: as [`Read::with_cut`], with the fields and aliases that it
    /// names.
    /// ```no_run
    /// let ntuple = tupelo::open("events.root:Events").open()?;
    /// let dimuons = ntuple.read(["Muon_*"])?.with_where(&"len(Muon_pt) == 2 and sum(Muon_charge) == 0".parse()?)?;
    /// # Ok::<(), tupelo::Error>(())
    /// ```
    ///
    /// # Errors
    /// Not found, with near names, for names that are neither fields nor aliases, and type errors of
    /// [`Expression::mask`]. Reading then returns the others.
    pub fn with_where(mut self, expression: &Expression) -> Result<Self> {
        let cut = Cut::of(self.compute_of("", expression, false)?).map_err(|e| self.context(e))?;
        self.cut = Some(Arc::new(cut));
        Ok(self)
    }

    /// The chosen fields, followed by the computed columns.
    ///
    /// # Errors
    /// Unsupported for computed columns without a C++ type.
    pub fn schema_with_computed(&self) -> Result<Schema> {
        let fields: Vec<ArrowField> = self.computed.iter().map(|computed| computed.field().clone()).collect();
        let mut schema = Schema::clone(&self.fields.schema);
        schema.fields.extend(Schema::from_arrow(&ArrowSchema::new(fields))?.fields);
        self.reorder(&mut schema.fields);
        Ok(schema)
    }

    /// The same with the columns in the order in which patterns name them. Those that one pattern matches, and those that
    /// none matches, which come last, stay in the order of the fields, computed columns behind them.
    #[must_use]
    pub fn in_order_of(mut self, patterns: &[String]) -> Self {
        self.order = patterns.to_vec();
        self
    }

    /// Puts what there is of each column in the order of the columns.
    fn reorder<T>(&self, columns: &mut Vec<T>) {
        if self.order.is_empty() {
            return;
        }
        let computed = self.computed.iter().map(|it| Field::new(it.field().name(), "", Kind::String));
        let schema = Schema { fields: self.fields.schema.fields.iter().cloned().chain(computed).collect() };
        let names = Names::of(&schema);
        let mut ranks = vec![self.order.len(); columns.len()];
        for (rank, pattern) in self.order.iter().enumerate().rev() {
            // Patterns may match fields that are not read.
            let Ok((_, places)) = schema.matching(&names, &[pattern]) else { continue };
            for place in places {
                if let Some(own) = ranks.get_mut(place) {
                    *own = rank;
                }
            }
        }
        // The sort is stable.
        let mut ranked: Vec<(usize, T)> = ranks.into_iter().zip(columns.drain(..)).collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        columns.extend(ranked.into_iter().map(|(_, column)| column));
    }

    /// Another column, the last one, with the number of each entry in the ntuple as `UInt64`.
    #[must_use]
    pub fn with_entry_numbers(mut self, name: &str) -> Self {
        self.numbers = Some(name.to_owned());
        self
    }

    /// Only the computed columns, without any of the fields.
    #[must_use]
    pub fn without_fields(mut self) -> Self {
        self.fields = Selection::default();
        self
    }

    /// The same with the hidden sources of projected fields, so that these can be written as projected fields. A source
    /// is left out if some of its projected fields are not chosen.
    pub(crate) fn with_projected_sources(mut self) -> Self {
        if self.fields.is_evolved() {
            return self;
        }
        let all = &self.source.schema().schema().fields;
        let is_chosen = |field: &Field| self.fields.schema.fields.contains(field);
        let needs = |field: &Field, hidden: &Field| {
            let is_source = |path: &String| path.split('.').next() == Some(&hidden.name);
            field.projected_from.as_ref().is_some_and(is_source)
        };
        let is_shown = |hidden: &&Field| {
            let mut shown = all.iter().filter(|field| needs(field, hidden)).peekable();
            hidden.hidden && !is_chosen(hidden) && shown.peek().is_some() && shown.all(is_chosen)
        };
        let mut fields: Vec<Field> = all.iter().filter(is_shown).cloned().collect();
        if !fields.is_empty() {
            fields.extend(self.fields.schema.fields.iter().cloned());
            self.fields.schema = Arc::new(Schema { fields });
        }
        self
    }

    /// The cluster that begins with the first of the entries, as it is stored; see [`EntrySource::sealed`]. `order` are the
    /// places of the fields whose pages come one after the other.
    pub(crate) fn sealed(&self, order: &[usize], entries: &Range<u64>) -> Result<Sealed> {
        if self.computes() || self.fields.is_evolved() || !self.order.is_empty() {
            return Ok(Sealed::none(entries.end));
        }
        let fields: Vec<Field> = order.iter().filter_map(|&place| self.stored_fields().get(place).cloned()).collect();
        self.source.sealed(&fields, entries).map_err(|e| self.context(e))
    }

    /// The source of the entries.
    pub(crate) fn source(&self) -> &Arc<dyn EntrySource> {
        &self.source
    }

    /// Adds the names of the source to an error.
    pub(crate) fn context(&self, error: Error) -> Error {
        self.source.context(error)
    }

    /// Whether a cut selects entries.
    pub(crate) fn has_cut(&self) -> bool {
        self.cut.is_some()
    }

    /// The chosen entries, before a cut.
    pub fn range(&self) -> Range<u64> {
        self.entries.clone()
    }

    /// Whether a cut or rule calls a function of the user's, who may not expect to be called by another thread.
    pub(super) fn calls_back(&self) -> bool {
        let runs_user_code = self.fields.is_evolved() || self.source.schema().runs_user_code();
        matches!(self.cut.as_deref(), Some(Cut::Function { .. })) || runs_user_code
    }

    /// Number of chosen entries, before a cut.
    pub fn count(&self) -> u64 {
        self.entries.end - self.entries.start
    }

    /// The whole selection, in one batch.
    ///
    /// # Errors
    /// Corrupt, with field, column, cluster, page and offset, if data is damaged; storage errors.
    pub fn to_batch(&self) -> Result<RecordBatch> {
        // Entries without values are only a number in a batch, unless values are made for them.
        if self.computes() || self.numbers.is_some() {
            self.check_stored()?;
        }
        self.decode_columns(&self.entries, None).map(|(batch, _)| batch).map_err(|e| self.context(e))
    }

    /// Average memory of an entry while it is read, including the fields of a cut, in bytes, estimated from the first
    /// clusters.
    ///
    /// # Errors
    /// Corrupt where the page lists are damaged.
    pub fn bytes_per_entry(&self) -> Result<f64> {
        Ok(self.cost()?.bytes_per_entry)
    }

    /// What reading the first entries costs.
    pub(super) fn cost(&self) -> Result<Cost> {
        let mut cost = self.source.cost(&self.read_fields(), &self.entries).map_err(|e| self.context(e))?;
        if self.numbers.is_some() {
            cost.bytes_per_entry += size_of::<u64>() as f64;
        }
        Ok(cost)
    }

    /// What reading would do: which pages it reads of each column, how many bytes these are, and in how many requests. No
    /// page is read for it, except the zone maps of the fields of a cut.
    /// ```no_run
    /// let ntuple = tupelo::open("events.root:Events").open()?;
    /// println!("{}", ntuple.read(["Muon_*"])?.entries(0..10_000).explain()?);
    /// # Ok::<(), tupelo::Error>(())
    /// ```
    ///
    /// # Errors
    /// Corrupt where page lists are damaged; storage errors.
    pub fn explain(&self) -> Result<Explanation> {
        let explain = || {
            let (cut, others) = self.fields_in_order();
            let possible = self.possible(&self.entries);
            let explained = self.source.explain(&cut, &others, &possible)?;
            let ruled_out = self.count() - possible.len();
            let zone_map_bytes = self.bounded_cut().map_or(0, |(cut, names)| {
                // Those that cannot be read are not used.
                self.source.stored_zone_bytes(&names, &self.entries, &cut.filtered_fields()).unwrap_or_default()
            });
            Ok(Explanation { ruled_out, zone_map_bytes, ..explained })
        };
        explain().map_err(|e| self.context(e))
    }

    /// The fields that are read to decide the cut, and the others, each once.
    pub(crate) fn fields_in_order(&self) -> (Vec<Field>, Vec<Field>) {
        let mut seen = HashSet::new();
        let mut new = |fields: Vec<&Field>| -> Vec<Field> {
            fields.into_iter().filter(|field| seen.insert(field.id)).cloned().collect()
        };
        (new(self.cut_fields()), new(self.read_fields()))
    }

    /// The fields read to decide the cut, some perhaps twice.
    fn cut_fields(&self) -> Vec<&Field> {
        self.cut.iter().flat_map(|cut| cut.read_fields()).collect()
    }

    pub(super) fn stored_fields(&self) -> &[Field] {
        self.fields.stored_fields()
    }

    /// All fields read, some perhaps twice.
    pub(super) fn read_fields(&self) -> Vec<&Field> {
        let inputs = self.edit.iter().flat_map(|edit| edit.inputs());
        let computed = self.computed.iter().map(|it| &**it).chain(inputs).flat_map(ComputedColumn::read_fields);
        self.stored_fields().iter().chain(computed).chain(self.cut_fields()).collect()
    }

    /// Refuses very many entries for which the file stores nothing.
    pub(super) fn check_stored(&self) -> Result<()> {
        let count = self.entries.end - self.entries.start;
        if count <= MAX_UNSTORED_ENTRIES || self.read_fields().into_iter().any(Field::has_values) {
            return Ok(());
        }
        let what = format!(
            "{count} entries, but none of the fields stores values; without values, at most {MAX_UNSTORED_ENTRIES} \
             entries can be read at once: read fewer, or select other fields"
        );
        Err(self.context(Error::limit(what)))
    }

    /// Whether more is read than is returned.
    pub(super) fn computes(&self) -> bool {
        self.cut.is_some() || !self.computed.is_empty() || self.edit.is_some()
    }

    /// The best end of a chunk of batches: see [`plan::batch_end`].
    pub(super) fn batch_end(&self, window: &Range<u64>, limit: u64, place: &dyn Fn(u64) -> u64) -> Result<Option<u64>> {
        self.source.batch_end(&self.read_fields(), window, limit, place)
    }

    /// Keeps pages that extend beyond one request for the next, in a stream of requests for one range after another.
    pub(super) fn keeping_stream_pages(mut self) -> Self {
        if let Keep::Nothing = self.keep {
            self.keep = Keep::Stream(Arc::default());
        }
        self
    }

    /// Begins the next request of a stream.
    pub(super) fn begin_request(&self) {
        if let Keep::Stream(pages) = &self.keep {
            pages.begin_request();
        }
    }

    pub(super) fn decoded(&self, entries: EntrySet, shares: Option<u64>) -> DecodedFields<'_> {
        DecodedFields::new(&*self.source, entries, shares, self.computes()).keeping(&self.keep)
    }

    /// The entries that the cut keeps, and which they are; with `shares`, values stay within one of this many shares of
    /// the memory budget.
    pub(super) fn decode_columns(
        &self,
        entries: &Range<u64>,
        shares: Option<u64>,
    ) -> Result<(RecordBatch, Option<BooleanArray>)> {
        let possible = self.possible(entries);
        let mut decoded = self.decoded(possible.clone(), shares);
        let kept = self.cut.as_ref().map(|cut| cut.decide(&mut decoded, &self.needed_after_cut())).transpose()?;
        let kept = kept.map(|kept| widened(kept, &possible, entries));
        Ok((self.batch(&mut decoded)?, kept))
    }

    /// What zone maps say of top-level fields: ranges of the entries of this read, one after the other. Nothing is known of the
    /// values that rules of evolution change.
    /// ```no_run
    /// let ntuple = tupelo::open("events.root:Events").open()?;
    /// for zone in ntuple.read_all().zones(&["run"]) {
    ///     println!("{:?}: {:?}", zone.entries, zone.bounds(0));
    /// }
    /// # Ok::<(), tupelo::Error>(())
    /// ```
    pub fn zones(&self, fields: &[&str]) -> Vec<ZoneBounds> {
        self.source.zones(fields, &self.entries, &BTreeSet::new())
    }

    /// The entries of a range for which the cut may be true, according to zone maps.
    fn possible(&self, entries: &Range<u64>) -> EntrySet {
        let Some((cut, names)) = self.bounded_cut() else { return entries.clone().into() };
        let may_be_true = |zone: &ZoneBounds| {
            let known = |name: &str| zone.known(names.iter().position(|known| *known == name)?);
            !zone.is_known() || cut.may_be_true(&known)
        };
        self.source
            .zones(&names, entries, &cut.filtered_fields())
            .into_iter()
            .filter(may_be_true)
            .map(|zone| zone.entries)
            .collect()
    }

    /// The expression of the cut, and the fields that it names.
    fn bounded_cut(&self) -> Option<(&Expression, Vec<&str>)> {
        let (cut, is_field) = self.cut.as_ref()?.expression()?;
        Some((cut, cut.fields().filter(|name| is_field(name)).collect()))
    }

    /// Arguments of [`Read::batch`].
    fn needed_after_cut(&self) -> Needed<'_> {
        let mut needed = Needed::default();
        needed.fields.extend(self.stored_fields().iter().map(|field| field.id));
        self.computed.iter().for_each(|computed| computed.add_needed(&mut needed));
        self.edit.iter().flat_map(|edit| edit.inputs()).for_each(|input| input.add_needed(&mut needed));
        needed
    }

    /// Columns of decoded entries, which are cut already.
    pub(super) fn batch(&self, decoded: &mut DecodedFields<'_>) -> Result<RecordBatch> {
        let (fields, arrays) = decoded.columns(&self.fields, self.binary_strings)?;
        let mut columns: Vec<(ArrowField, ArrayRef)> = fields.into_iter().zip(arrays).collect();
        for computed in &self.computed {
            columns.push(computed.column(decoded)?);
        }
        self.reorder(&mut columns);
        let (mut fields, mut arrays): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        if let Some(edit) = &self.edit {
            arrays = edit.apply(decoded, &fields, arrays)?;
        }
        if let Some(name) = &self.numbers {
            fields.push(ArrowField::new(name, DataType::UInt64, false));
            arrays.push(decoded.numbers()?);
        }
        decoded.batch(fields, arrays)
    }
}
