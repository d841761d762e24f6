//! Columns that are computed, and the names that expressions may use.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::Field as ArrowField;
use tupelo_schema::expression::Expression;

use super::super::computed::ComputedColumn;
use super::Read;
use crate::{Error, Result};

impl Read {
    /// A column of an expression. A field alone is none: its values may be missing in some files.
    pub(super) fn compute(&self, name: &str, expression: &Expression) -> Result<ComputedColumn> {
        let is_field = expression.fields().any(|field| field == expression.to_string());
        self.compute_of(name, expression, is_field)
    }

    pub(super) fn compute_of(
        &self,
        name: &str,
        expression: &Expression,
        may_be_missing: bool,
    ) -> Result<ComputedColumn> {
        let computed = ComputedColumn::new(name, expression, &*self.source, &self.aliases);
        let is_missing = computed.as_ref().is_err_and(Error::is_not_found);
        let named = expression.fields().filter(|_| is_missing).map(str::to_owned);
        let read = computed.iter().filter(|_| !may_be_missing).flat_map(ComputedColumn::read_fields);
        for path in read.map(|field| field.name.clone()).chain(named).collect::<Vec<_>>() {
            let top = path.split('.').next().unwrap_or_default();
            if let Some(file) = self.source.schema().lacking(top) {
                let what = format!(
                    "{file} has no field '{path}' of '{expression}': missing fields are null where they are read, and not \
                     within expressions or a cut; leave out the files that lack it"
                );
                return Err(self.context(Error::not_found(what)));
            }
        }
        computed.map_err(|e| self.context(e))
    }

    /// Names for expressions, which later calls of [`Read::with_computed`] and [`Read::with_where`] may use like
    /// fields; they take precedence over fields of the same name. They may refer to each other, in any order.
    ///
    /// # Errors
    /// Invalid argument for circular aliases, and for two of the same name; those of [`Read::with_computed`].
    pub fn with_aliases(mut self, aliases: impl IntoIterator<Item = (String, Expression)>) -> Result<Self> {
        let added = Arc::make_mut(&mut self.aliases).add(aliases.into_iter().collect(), &*self.source);
        added.map_err(|e| self.context(e))?;
        Ok(self)
    }

    /// Another column, computed for each entry that is kept; such columns come after those of the fields.
    /// ```no_run
    /// let ntuple = tupelo::open("events.root:Events").open()?;
    /// let batch = ntuple.read(["run"])?.with_computed("ht", &"sum(Jet_pt)".parse()?)?.to_batch()?;
    /// # Ok::<(), tupelo::Error>(())
    /// ```
    ///
    /// # Errors
    /// Not found, with near names, for names that are neither fields nor aliases, and type errors of
    /// [`Expression::evaluate`]. Reading then returns the others.
    pub fn with_computed(mut self, name: &str, expression: &Expression) -> Result<Self> {
        self.computed.push(Arc::new(self.compute(name, expression)?));
        Ok(self)
    }

    /// Another column as with [`Read::with_computed`], whose name later expressions may use, as an alias.
    /// ```no_run
    /// let ntuple = tupelo::open("events.root:Events").open()?;
    /// let read = ntuple.read_all().with_defined("ht", &"sum(Jet_pt)".parse()?)?.with_where(&"ht > 500".parse()?)?;
    /// # Ok::<(), tupelo::Error>(())
    /// ```
    ///
    /// # Errors
    /// Invalid argument for the name of an existing field or alias; those of [`Read::with_computed`].
    pub fn with_defined(self, name: &str, expression: &Expression) -> Result<Self> {
        self.source.schema().check_new(name).map_err(|e| self.context(e))?;
        self.with_aliases([(name.to_owned(), expression.clone())])?.with_alias_column(name)
    }

    /// Values for all entries of the ntuple, which later expressions and [`Read::with_computed`] may use by the name of
    /// the field, as an alias. Only the values of the entries that are read are used.
    /// ```no_run
    /// # use std::sync::Arc;
    /// use arrow_array::Float32Array;
    /// use arrow_schema::{DataType, Field};
    ///
    /// let ntuple = tupelo::open("events.root:Events").open()?;
    /// let score = Arc::new(Float32Array::from(vec![0.5; ntuple.entries() as usize]));
    /// let read = ntuple.read_all().with_values(Field::new("score", DataType::Float32, false), score)?;
    /// let batch = read.with_computed("score", &"score".parse()?)?.to_batch()?;
    /// # Ok::<(), tupelo::Error>(())
    /// ```
    ///
    /// # Errors
    /// Invalid argument for the name of an existing field or alias, and if the number of values differs from that of
    /// entries.
    pub fn with_values(mut self, field: ArrowField, values: ArrayRef) -> Result<Self> {
        self.source.schema().check_new(field.name()).map_err(|e| self.context(e))?;
        let given = Arc::make_mut(&mut self.aliases).give(field, values, self.source.entries());
        given.map_err(|e| self.context(e))?;
        Ok(self)
    }

    fn with_alias_column(mut self, name: &str) -> Result<Self> {
        let computed = ComputedColumn::of_alias(name, &self.aliases)?;
        self.computed.push(Arc::new(computed));
        Ok(self)
    }
}
