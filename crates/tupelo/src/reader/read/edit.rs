//! Values that a function makes of those of the columns.

use std::fmt;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::Field as ArrowField;
use tupelo_schema::expression::Expression;

use super::super::computed::ComputedColumn;
use super::super::decoded::DecodedFields;
use super::Read;
use crate::{Error, Result};

/// Entries whose values are changed.
#[derive(Debug)]
pub struct Entries {
    batch: RecordBatch,
    inputs: Vec<ArrayRef>,
    numbers: ArrayRef,
}

impl Entries {
    /// The columns, computed ones included.
    pub fn batch(&self) -> &RecordBatch {
        &self.batch
    }

    /// The values of the inputs.
    pub fn inputs(&self) -> &[ArrayRef] {
        &self.inputs
    }

    /// The number in the ntuple of the entry at a place in the batch.
    pub fn number(&self, place: usize) -> u64 {
        let numbers = self.numbers.as_any().downcast_ref::<UInt64Array>();
        numbers.and_then(|numbers| numbers.values().get(place).copied()).unwrap_or(place as u64)
    }
}

/// What makes values of values.
type Apply = dyn Fn(&Entries) -> Result<Vec<ArrayRef>> + Send + Sync;

/// A change of values.
pub(super) struct Edit {
    inputs: Vec<ComputedColumn>,
    apply: Box<Apply>,
}

impl fmt::Debug for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Edit").field("inputs", &self.inputs).finish_non_exhaustive()
    }
}

impl Edit {
    /// What is read beside the columns.
    pub(super) fn inputs(&self) -> &[ComputedColumn] {
        &self.inputs
    }

    /// The columns after the change, of the same types.
    pub(super) fn apply(
        &self,
        decoded: &mut DecodedFields<'_>,
        fields: &[ArrowField],
        arrays: Vec<ArrayRef>,
    ) -> Result<Vec<ArrayRef>> {
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for input in &self.inputs {
            inputs.push(input.column(decoded)?.1);
        }
        let batch = decoded.batch(fields.to_vec(), arrays)?;
        let edited = (self.apply)(&Entries { batch, inputs, numbers: decoded.numbers()? })?;
        if let Some(array) = edited.iter().find(|array| array.len() != decoded.len()) {
            let (found, expected) = (array.len(), decoded.len());
            return Err(Error::invalid_argument(format!("the edit returned {found} entries, expected {expected}")));
        }
        if !edited.iter().map(|array| array.data_type()).eq(fields.iter().map(ArrowField::data_type)) {
            return Err(Error::invalid_argument("the edit returned columns of other types than it got"));
        }
        Ok(edited)
    }
}

impl Read {
    /// Values that `edit` makes of those of the columns: it gets the columns of some entries, computed ones included, and the
    /// values of `inputs` for these entries, and returns other values for the same columns.
    /// ```no_run
    /// use arrow_array::cast::AsArray;
    /// use arrow_select::zip::zip;
    ///
    /// let ntuple = tupelo::open("events.root:Events").open()?;
    /// let inputs = ["run < 300".parse()?, "MET_pt_corrected".parse()?];
    /// let read = ntuple.read(["MET_pt"])?.with_edit(&inputs, |entries| {
    ///     let [is_early, corrected] = entries.inputs() else { unreachable!() };
    ///     Ok(vec![zip(is_early.as_boolean(), corrected, entries.batch().column(0))?])
    /// })?;
    /// # Ok::<(), tupelo::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Read::with_computed`]. Reading then returns those of `edit`, and invalid argument if it returns columns of
    /// other types or another number of entries.
    pub fn with_edit(
        mut self,
        inputs: &[Expression],
        edit: impl Fn(&Entries) -> Result<Vec<ArrayRef>> + Send + Sync + 'static,
    ) -> Result<Self> {
        let inputs = inputs.iter().map(|input| self.compute("", input)).collect::<Result<_>>()?;
        self.edit = Some(Arc::new(Edit { inputs, apply: Box::new(edit) }));
        Ok(self)
    }
}
