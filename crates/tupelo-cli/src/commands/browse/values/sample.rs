//! Values from arrays.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, UnionArray};
use arrow_schema::DataType;
use arrow_select::filter::filter;
use tupelo::schema::{Field, Kind};

use super::super::super::head::moments::{Moments, Number, each_number};
use crate::failure::Failure;

/// Values of a field in some entries: numbers or texts.
#[derive(Debug, Default)]
pub(super) struct Sample {
    pub(super) numbers: Vec<f64>,
    /// Their mean and standard deviation.
    pub(super) moments: Moments,
    /// Whether the numbers are integers.
    pub(super) is_integer: bool,
    /// How often there is each text.
    pub(super) texts: HashMap<String, u64>,
    /// Missing values, of an optional field.
    pub(super) missing: u64,
    text_bytes: usize,
}

impl Sample {
    /// Memory of the values.
    pub(super) fn bytes(&self) -> u64 {
        (self.numbers.len() * size_of::<f64>() + self.text_bytes) as u64
    }

    /// Adds the values of the field at the end of `steps` below a field, whose strings are binary. `wants_sizes` asks for the
    /// sizes of the collections instead of what is in them.
    pub(super) fn add(
        &mut self,
        field: &Field,
        values: &ArrayRef,
        steps: &[String],
        wants_sizes: bool,
    ) -> Result<(), Failure> {
        let mut values = values.clone();
        if let Some(nulls) = values.nulls().filter(|nulls| nulls.null_count() > 0).cloned() {
            if steps.is_empty() {
                self.missing += nulls.null_count() as u64;
            }
            values = filter(&values, &BooleanArray::new(nulls.into_inner(), None)).map_err(Failure::new)?;
        }
        let is_wanted = steps.is_empty() && wants_sizes;
        match &field.kind {
            Kind::Collection(_) | Kind::Map(_) | Kind::Array { .. } if is_wanted => self.add_sizes(&values),
            Kind::Collection(item) | Kind::Map(item) | Kind::Array { item, .. } => {
                self.add(item, &items(&values), steps, wants_sizes)
            }
            Kind::Wrapper(item) | Kind::Optional(item) => self.add(item, &values, steps, wants_sizes),
            Kind::Record(members) | Kind::Tuple(members) => {
                let Some((name, steps)) = steps.split_first() else { return Ok(()) };
                let place = members.iter().position(|member| member.name == *name);
                let found =
                    place.and_then(|place| members.get(place).zip(values.as_struct_opt()?.columns().get(place)));
                match found {
                    Some((member, values)) => self.add(member, values, steps, wants_sizes),
                    None => Err(Failure::new(format_args!("the values of '{}' lack the member '{name}'", field.name))),
                }
            }
            Kind::Variant(alternatives) => {
                self.add_alternatives(alternatives, &values);
                Ok(())
            }
            Kind::String => {
                values
                    .as_binary::<i64>()
                    .iter()
                    .flatten()
                    .for_each(|text| self.add_text(&String::from_utf8_lossy(text)));
                Ok(())
            }
            Kind::Streamer => {
                self.add_lengths(values.as_binary::<i64>().value_offsets());
                Ok(())
            }
            _ => self.add_values(&values),
        }
    }

    fn add_sizes(&mut self, lists: &ArrayRef) -> Result<(), Failure> {
        self.is_integer = true;
        match lists.data_type() {
            DataType::FixedSizeList(_, size) => (0..lists.len()).for_each(|_| self.add_number(f64::from(*size).into())),
            _ => self.add_lengths(lists.as_list::<i64>().value_offsets()),
        }
        Ok(())
    }

    fn add_lengths(&mut self, offsets: &[i64]) {
        self.is_integer = true;
        offsets.windows(2).for_each(|pair| self.add_number(i128::from(pair[1] - pair[0]).into()));
    }

    fn add_number(&mut self, number: Number) {
        self.numbers.push(number.near);
        self.moments.add(number);
    }

    fn add_alternatives(&mut self, alternatives: &[Field], values: &ArrayRef) {
        let Some(union) = values.as_any().downcast_ref::<UnionArray>() else { return };
        for id in union.type_ids() {
            // The first one is none of them.
            let place = usize::try_from(*id).ok().and_then(|id| id.checked_sub(1));
            let name = place.and_then(|place| alternatives.get(place)).map_or("no value", Field::display_type);
            self.add_text(name);
        }
    }

    /// Adds numbers or truth values.
    fn add_values(&mut self, values: &ArrayRef) -> Result<(), Failure> {
        match values.data_type() {
            DataType::FixedSizeList(..) => return self.add_values(&items(values)),
            DataType::Boolean => {
                let values = values.as_boolean();
                let (all, truths) = (values.len() as u64, values.true_count() as u64);
                for (text, count) in [("true", truths), ("false", all - truths)].into_iter().filter(|it| it.1 > 0) {
                    *self.texts.entry(text.to_owned()).or_default() += count;
                }
                // Not of the texts, but of what was read.
                self.text_bytes += values.len();
            }
            _ => {
                self.is_integer = !values.data_type().is_floating();
                each_number(values, &mut |number| self.add_number(number)).map_err(Failure::new)?;
            }
        }
        Ok(())
    }

    fn add_text(&mut self, text: &str) {
        self.text_bytes += text.len();
        match self.texts.get_mut(text) {
            Some(count) => *count += 1,
            None => {
                self.texts.insert(text.to_owned(), 1);
            }
        }
    }
}

/// The items of all lists.
fn items(lists: &ArrayRef) -> ArrayRef {
    match lists.data_type() {
        DataType::FixedSizeList(_, size) => {
            let list = lists.as_fixed_size_list();
            let length = usize::try_from(*size).unwrap_or_default() * list.len();
            list.values().slice(list.value_offset(0) as usize, length)
        }
        _ => {
            let list = lists.as_list::<i64>();
            let offsets = list.value_offsets();
            let (start, end) = (offsets[0] as usize, offsets[list.len()] as usize);
            list.values().slice(start, end - start)
        }
    }
}
