//! Any bytes as the responses of an XRootD server.
#![no_main]

use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use tupelo_storage::xrootd::message::{
    AsyncHeader, Chunk, Handle, Header, Login, Opened, PageBuffer, PageStatus, ProtocolInfo, ReadLimits, Redirect,
    ServerError, Stat, parse_listing, parse_vector, parse_wait, vector_response_bytes,
};

/// Bytes of a range at most.
const MAX_RANGE_BYTES: u32 = 1 << 16;

fuzz_target!(|bytes: &[u8]| {
    let Some((&[a, b, c, d], body)) = bytes.split_first_chunk() else { return };
    let _bodies = (Login::parse(body), ProtocolInfo::parse(body), ServerError::parse(body), Redirect::parse(body));
    let _more = (Stat::parse(body), Opened::parse(body), parse_wait(body), parse_listing(body), ReadLimits::parse(body));
    if let Some(header) = body.first_chunk() {
        let _header = Header::parse(*header);
    }
    if let Some(header) = body.first_chunk() {
        let _header = AsyncHeader::parse(*header, u32::from_be_bytes([a, b, c, d]));
    }
    if let Some(status) = body.first_chunk() {
        let _status = PageStatus::parse(*status, u16::from_be_bytes([a, b]));
    }

    // A vector of three chunks, the last one as large as the body allows.
    let chunk = |offset: u8, len: usize| Chunk { offset: offset.into(), len: len as u32 };
    let mut chunks = vec![chunk(a, b.into()), chunk(c, 0)];
    chunks.push(chunk(d, body.len().saturating_sub(vector_response_bytes(&chunks) + 16)));
    if let Ok(answers) = parse_vector(Bytes::copy_from_slice(body), Handle([a, b, c, d]), &chunks) {
        assert!(answers.iter().zip(&chunks).all(|(answer, chunk)| answer.len() == chunk.len as usize));
    }

    // Pages of a range, in two parts; what the first pass finds damaged is sent again.
    let range = Chunk { offset: u64::from(a) << 8, len: u32::from_be_bytes([0, b, c, d]) % MAX_RANGE_BYTES };
    let mut pages = PageBuffer::new(range, BytesMut::new());
    let (front, back) = body.split_at(body.len().min(usize::from(b) << 4));
    let _front = pages.add(range.offset + u64::from(c), front);
    let _back = pages.add(range.offset, back);
    for page in pages.take_damaged() {
        let _again = pages.add(page.start, front);
    }
    assert!(pages.received_bytes() <= range.len.into());
    if let Some(whole) = pages.finish() {
        assert_eq!(whole.len(), range.len as usize);
    }
});
