//! Numbers: widths, packing and the order of bytes.

use arrow_buffer::MutableBuffer;
use tupelo_format::Result;
use tupelo_format::object::{Basic, Packing};

use super::{Entries, each};
use crate::layout::stored_bytes;

/// Bytes of a number in memory.
pub(super) fn memory_bytes(basic: Basic) -> usize {
    match basic {
        Basic::Double32 => 8,
        other => stored_bytes(other),
    }
}

/// Reads numbers in their byte order in files.
pub(super) fn numbers(
    basic: Basic,
    packing: Option<Packing>,
    source: &mut Entries<'_>,
    count: usize,
    out: &mut MutableBuffer,
) -> Result<()> {
    match (basic, packing) {
        (Basic::Double32 | Basic::Float16, packing) => {
            let packing = packing.unwrap_or(Packing::Float);
            let mut cursor = source.stream.cursor.sub(count.saturating_mul(packing.item_bytes()))?;
            out.reserve(count.saturating_mul(memory_bytes(basic)));
            each(count, || {
                let value = packing.read(&mut cursor)?;
                match basic {
                    Basic::Double32 => out.push(value),
                    _ => out.push(value as f32),
                }
                Ok(())
            })
        }
        _ => {
            let width = stored_bytes(basic);
            let bytes = source.stream.cursor.take(count.saturating_mul(width))?;
            let start = out.len();
            out.resize(start.saturating_add(bytes.len()), 0);
            swap(width, bytes, out.get_mut(start..).unwrap_or_default());
            Ok(())
        }
    }
}

/// Copies big-endian numbers of a width in bytes into the byte order of the machine.
pub fn swap(width: usize, from: &[u8], to: &mut [u8]) {
    fn swapped<const N: usize>(from: &[u8], to: &mut [u8]) {
        for (from, to) in from.as_chunks::<N>().0.iter().zip(to.as_chunks_mut::<N>().0) {
            let mut bytes = *from;
            bytes.reverse();
            *to = bytes;
        }
    }
    match width {
        2 => swapped::<2>(from, to),
        4 => swapped::<4>(from, to),
        8 => swapped::<8>(from, to),
        _ => to.iter_mut().zip(from).for_each(|(to, from)| *to = *from),
    }
}

/// The same in place.
pub(super) fn swap_in_place(width: usize, bytes: &mut [u8]) {
    match width {
        2 => bytes.as_chunks_mut::<2>().0.iter_mut().for_each(|chunk| chunk.reverse()),
        4 => bytes.as_chunks_mut::<4>().0.iter_mut().for_each(|chunk| chunk.reverse()),
        8 => bytes.as_chunks_mut::<8>().0.iter_mut().for_each(|chunk| chunk.reverse()),
        _ => {}
    }
}
