//! Digests of values, which are the same over ntuples and trees.

use std::hash::Hasher;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use tupelo::{Error, Result};
use twox_hash::XxHash3_64;

/// A running digest.
#[derive(Default, Clone)]
pub(crate) struct Digest {
    hasher: XxHash3_64,
}

impl Digest {
    pub(crate) fn finish(&self) -> u64 {
        self.hasher.finish()
    }

    /// Adds some values with the lengths of their lists.
    pub(crate) fn add(&mut self, array: &dyn Array) -> Result<()> {
        // Trees have the members of base classes beside others, ntuples in records of their own.
        if !matches!(array.data_type(), DataType::Struct(_)) {
            self.hasher.write_u64(array.len() as u64);
        }
        match array.data_type() {
            DataType::Boolean => {
                let bits = array.as_boolean().values();
                bits.iter().for_each(|bit| self.hasher.write_u8(bit.into()));
            }
            DataType::Int8 => self.numbers::<Int8Type>(array),
            DataType::Int16 => self.numbers::<Int16Type>(array),
            DataType::Int32 => self.numbers::<Int32Type>(array),
            DataType::Int64 => self.numbers::<Int64Type>(array),
            DataType::UInt8 => self.numbers::<UInt8Type>(array),
            DataType::UInt16 => self.numbers::<UInt16Type>(array),
            DataType::UInt32 => self.numbers::<UInt32Type>(array),
            DataType::UInt64 => self.numbers::<UInt64Type>(array),
            DataType::Float32 => self.numbers::<Float32Type>(array),
            DataType::Float64 => self.numbers::<Float64Type>(array),
            DataType::LargeUtf8 => array.as_string::<i64>().iter().for_each(|text| self.bytes(text.map(str::as_bytes))),
            DataType::LargeBinary => array.as_binary::<i64>().iter().for_each(|bytes| self.bytes(bytes)),
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                list.offsets().lengths().for_each(|length| self.hasher.write_u64(length as u64));
                let [start, end] = [list.offsets().first(), list.offsets().last()].map(|it| *it.unwrap_or(&0) as usize);
                self.add(&list.values().slice(start, end - start))?;
            }
            DataType::FixedSizeList(_, width) => {
                let list = array.as_fixed_size_list();
                let (start, count) = (list.value_offset(0) as usize, list.len() * *width as usize);
                self.add(&list.values().slice(start, count))?;
            }
            DataType::Struct(_) => {
                array.as_struct().columns().iter().try_for_each(|column: &ArrayRef| self.add(column))?
            }
            other => return Err(Error::unsupported(format!("values of type {other} are not compared"))),
        }
        Ok(())
    }

    fn numbers<T: ArrowPrimitiveType>(&mut self, array: &dyn Array) {
        // Values are little-endian where this is compared: within one process.
        self.hasher.write(array.as_primitive::<T>().values().inner().as_slice());
    }

    fn bytes(&mut self, bytes: Option<&[u8]>) {
        let bytes = bytes.unwrap_or_default();
        self.hasher.write_u64(bytes.len() as u64);
        self.hasher.write(bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::{Float32Builder, LargeListBuilder};
    use arrow_array::{BooleanArray, LargeStringArray};

    use super::*;

    fn digest(array: &dyn Array) -> u64 {
        let mut digest = Digest::default();
        digest.add(array).unwrap();
        digest.finish()
    }

    #[test]
    fn slices_have_the_digests_of_their_values() {
        let lists = |parts: &[&[f32]]| {
            let mut lists = LargeListBuilder::new(Float32Builder::new());
            for part in parts {
                lists.values().append_slice(part);
                lists.append(true);
            }
            lists.finish()
        };
        let all = lists(&[&[9.0], &[1.0, 2.0], &[], &[3.0]]);
        assert_eq!(digest(&all.slice(1, 3)), digest(&lists(&[&[1.0, 2.0], &[], &[3.0]])));
        // The same numbers in other lists.
        assert_ne!(digest(&all.slice(1, 3)), digest(&lists(&[&[1.0], &[2.0], &[3.0]])));
        let texts = |texts: &[&str]| LargeStringArray::from(texts.to_vec());
        assert_ne!(digest(&texts(&["ab", "c"])), digest(&texts(&["a", "bc"])));
        assert_eq!(digest(&texts(&["x", "a", "bc"]).slice(1, 2)), digest(&texts(&["a", "bc"])));
        let bits = Arc::new(BooleanArray::from(vec![true, false, true]));
        assert_eq!(digest(&bits.slice(1, 2)), digest(&BooleanArray::from(vec![false, true])));
    }
}
