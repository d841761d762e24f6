//! Record and list frames.

use crate::wire::{Buffer, Cursor};
use crate::{Error, Result};

/// Size word of a record frame.
const RECORD_HEAD_BYTES: u64 = 8;
/// Size word and item count of a list frame.
const LIST_HEAD_BYTES: u64 = 12;

/// Enters a record frame: a cursor over its payload; `cursor` continues after the frame.
pub(super) fn record<'a>(cursor: &mut Cursor<'a>) -> Result<Cursor<'a>> {
    let start = cursor.offset();
    let size = cursor.i64_le()?;
    if size < 0 {
        return Err(Error::corrupt("expected a record frame, found a list frame").at(start));
    }
    payload(cursor, size.unsigned_abs(), RECORD_HEAD_BYTES, start)
}

/// Enters a list frame: a cursor over its payload and the number of items.
pub(super) fn list<'a>(cursor: &mut Cursor<'a>) -> Result<(Cursor<'a>, usize)> {
    let start = cursor.offset();
    let size = cursor.i64_le()?;
    if size >= 0 {
        return Err(Error::corrupt("expected a list frame, found a record frame").at(start));
    }
    let items = cursor.u32_le()? as usize;
    Ok((payload(cursor, size.unsigned_abs(), LIST_HEAD_BYTES, start)?, items))
}

fn payload<'a>(cursor: &mut Cursor<'a>, size: u64, head_bytes: u64, start: u64) -> Result<Cursor<'a>> {
    let wrong = |why| Error::corrupt(format!("frame of {size} bytes {why}")).at(start);
    let bytes = size.checked_sub(head_bytes).ok_or_else(|| wrong("is smaller than its header"))?;
    match usize::try_from(bytes) {
        Ok(bytes) if bytes <= cursor.remaining() => cursor.sub(bytes),
        _ => Err(wrong("extends past the enclosing frame or envelope")),
    }
}

/// Reads a list of items that take at least `item_bytes` each; more than `most` are refused.
pub(super) fn read_list<'a, T>(
    cursor: &mut Cursor<'a>,
    what: &str,
    item_bytes: usize,
    most: usize,
    mut read: impl FnMut(&mut Cursor<'a>) -> Result<T>,
) -> Result<Vec<T>> {
    let within = |e: Error| e.within(format_args!("list of {what}s"));
    let (mut payload, count) = list(cursor).map_err(within)?;
    if count > most {
        return Err(within(Error::limit(format!("{count} items exceed the limit of {most}"))).at(payload.offset()));
    }
    let mut items = payload.reserve(count, item_bytes).map_err(within)?;
    for index in 0..count {
        items.push(read(&mut payload).map_err(|e| e.within(format_args!("{what} {index}")))?);
    }
    Ok(items)
}

/// Writes a record frame around what `write` puts into the buffer.
pub(super) fn write_record(buffer: &mut Buffer, write: impl FnOnce(&mut Buffer)) {
    let start = buffer.len();
    buffer.i64_le(0);
    write(buffer);
    let size = (buffer.len() - start) as i64;
    buffer.patch(start, &size.to_le_bytes());
}

/// Writes a list frame with `items` items around what `write` puts into the buffer.
pub(super) fn write_list(buffer: &mut Buffer, items: usize, write: impl FnOnce(&mut Buffer)) {
    let start = buffer.len();
    buffer.i64_le(0);
    buffer.u32_le(u32::try_from(items).unwrap_or(u32::MAX));
    write(buffer);
    let size = (buffer.len() - start) as i64;
    buffer.patch(start, &(-size).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(size: i64, rest: &[u8]) -> Vec<u8> {
        [&size.to_le_bytes(), rest].concat()
    }

    #[test]
    fn frames_are_skipped_by_their_size() {
        let mut buffer = Buffer::new();
        write_record(&mut buffer, |b| b.put(b"known and unknown"));
        write_list(&mut buffer, 2, |b| b.put(&[1, 2, 0xff]));
        let mut cursor = Cursor::new(buffer.as_slice(), 0);
        assert_eq!(record(&mut cursor).unwrap().take(5).unwrap(), b"known");
        assert_eq!(read_list(&mut cursor, "byte", 1, 2, |c| c.u8()), Ok(vec![1, 2]));
        assert_eq!(cursor.remaining(), 0);
    }

    #[test]
    fn sizes_that_lie_are_refused() {
        let (small, large) = ("is smaller than its header", "extends past the enclosing frame or envelope");
        let records = [(0, small), (4, small), (7, small), (17, large), (i64::MAX, large)];
        for (size, why) in records {
            let error = record(&mut Cursor::new(&bytes(size, &[0; 8]), 5)).unwrap_err();
            assert_eq!(error.to_string(), format!("frame of {size} bytes {why} (at byte 5)"));
        }
        for (size, why) in [(-1, small), (-11, small), (-21, large), (i64::MIN + 1, large), (i64::MIN, large)] {
            let error = list(&mut Cursor::new(&bytes(size, &[0; 12]), 5)).unwrap_err();
            assert_eq!(error.to_string(), format!("frame of {} bytes {why} (at byte 5)", size.unsigned_abs()));
        }
        for size in [-1, -8, i64::MIN] {
            let error = record(&mut Cursor::new(&bytes(size, &[0; 8]), 0)).unwrap_err();
            assert_eq!(error.what(), "expected a record frame, found a list frame");
        }
        for size in [0, 8, i64::MAX] {
            let error = list(&mut Cursor::new(&bytes(size, &[0; 12]), 0)).unwrap_err();
            assert_eq!(error.what(), "expected a list frame, found a record frame");
        }
        // As large as what contains them, and as small as they get.
        for (size, remaining) in [(16, 8), (8, 0)] {
            assert_eq!(record(&mut Cursor::new(&bytes(size, &[0; 8]), 0)).unwrap().remaining(), remaining);
        }
        for (size, remaining) in [(-20, 8), (-12, 0)] {
            let whole = bytes(size, &[0; 12]);
            let (payload, items) = list(&mut Cursor::new(&whole, 0)).unwrap();
            assert_eq!((payload.remaining(), items), (remaining, 0));
        }
    }

    #[test]
    fn an_item_count_allocates_nothing() {
        let many = bytes(-12, &u32::MAX.to_le_bytes());
        assert!(read_list(&mut Cursor::new(&many, 0), "byte", 1, usize::MAX, |c| c.u8()).is_err());
        assert_eq!(
            read_list(&mut Cursor::new(&many, 0), "byte", 1, 3, |c| c.u8()).unwrap_err().to_string(),
            "list of bytes: 4294967295 items exceed the limit of 3 (at byte 12)"
        );
    }
}
