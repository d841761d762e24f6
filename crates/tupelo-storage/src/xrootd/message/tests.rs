use bytes::BytesMut;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const HANDLE: Handle = Handle([1, 2, 3, 4]);

/// The pages of a range with their checksums, as a server sends them.
fn wire(offset: u64, bytes: &[u8]) -> Vec<u8> {
    let first = ((PAGE_BYTES - offset % PAGE_BYTES) as usize).min(bytes.len());
    let (first, rest) = bytes.split_at(first);
    let pages = [first].into_iter().chain(rest.chunks(PAGE_BYTES as usize)).filter(|page| !page.is_empty());
    pages.flat_map(|page| [&crc32c::crc32c(page).to_be_bytes()[..], page].concat()).collect()
}

/// A status body with a right checksum.
fn status(stream: StreamId, request: u8, part: u8, len: i32, offset: u64) -> [u8; PageStatus::BYTES] {
    let rest =
        [&stream.to_be_bytes()[..], &[request, part, 0, 0, 0, 0], &len.to_be_bytes(), &offset.to_be_bytes()].concat();
    [&crc32c::crc32c(&rest).to_be_bytes()[..], &rest].concat().try_into().unwrap()
}

fn error<T: fmt::Debug>(result: Result<T, Malformed>) -> String {
    result.unwrap_err().to_string()
}

proptest! {
    #[test]
    fn no_bytes_make_a_parser_panic(bytes in vec(any::<u8>(), 0..200), len: u32, stream: u16) {
        let _ = Login::parse(&bytes);
        let _ = ProtocolInfo::parse(&bytes);
        let _ = ServerError::parse(&bytes).map(|error| error.to_string());
        let _ = Redirect::parse(&bytes);
        let _ = Stat::parse(&bytes);
        let _ = Opened::parse(&bytes);
        let _ = parse_wait(&bytes);
        let _ = parse_listing(&bytes);
        let _ = ReadLimits::parse(&bytes);
        if let Some(bytes) = bytes.first_chunk() {
            let _ = Header::parse(*bytes);
        }
        if let Some(bytes) = bytes.first_chunk() {
            let _ = AsyncHeader::parse(*bytes, len);
        }
        if let Some(bytes) = bytes.first_chunk() {
            let _ = PageStatus::parse(*bytes, stream);
        }
        let chunks = [Chunk { offset: 1, len: 20 }, Chunk { offset: 50, len: len % 100 }];
        let _ = parse_vector(bytes.clone().into(), HANDLE, &chunks);
        let mut pages = PageBuffer::new(Chunk { offset: 4000, len: 200 }, BytesMut::new());
        let _ = pages.add(4000 + u64::from(len % 300), &bytes);
        let _ = pages.add(u64::from(stream), &bytes);
        pages.take_damaged();
        let _ = pages.finish();
    }

    #[test]
    fn pages_come_back_in_any_order(
        offset in 0_u64..20_000,
        bytes in vec(any::<u8>(), 1..20_000),
        cut in 0_u64..6,
        last_first: bool,
    ) {
        let chunk = Chunk { offset, len: bytes.len() as u32 };
        // Parts end at pages.
        let middle = ((offset / PAGE_BYTES + cut) * PAGE_BYTES).clamp(offset, offset + bytes.len() as u64);
        let (front, back) = bytes.split_at((middle - offset) as usize);
        let mut parts = [(offset, wire(offset, front)), (middle, wire(middle, back))];
        if last_first {
            parts.reverse();
        }
        let mut buffer = PageBuffer::new(chunk, BytesMut::new());
        for (at, wire) in &parts {
            buffer.add(*at, wire).unwrap();
        }
        prop_assert_eq!(buffer.received_bytes(), bytes.len() as u64);
        prop_assert!(buffer.take_damaged().is_empty());
        prop_assert_eq!(buffer.finish(), Some(BytesMut::from(&bytes[..])));
    }

    #[test]
    fn each_damaged_page_is_found_and_read_again(bytes in vec(any::<u8>(), 1..20_000), at: prop::sample::Index, offset in 0_u64..9000) {
        let at = at.index(bytes.len());
        let mut damaged = wire(offset, &bytes);
        // Not in a checksum: those of pages before it come first.
        let pages_before = (offset + at as u64) / PAGE_BYTES - offset / PAGE_BYTES + 1;
        damaged[at + 4 * pages_before as usize] ^= 0x10;
        let mut buffer = PageBuffer::new(Chunk { offset, len: bytes.len() as u32 }, BytesMut::new());
        buffer.add(offset, &damaged).unwrap();
        let pages = buffer.take_damaged();
        prop_assert_eq!(pages.len(), 1);
        let page = pages[0].clone();
        prop_assert!(page.contains(&(offset + at as u64)) && page.end - page.start <= PAGE_BYTES);
        let good = &bytes[(page.start - offset) as usize..(page.end - offset) as usize];
        buffer.add(page.start, &wire(page.start, good)).unwrap();
        prop_assert_eq!(buffer.finish(), Some(BytesMut::from(&bytes[..])));
    }

    #[test]
    fn vectors_come_back(parts in vec((0..1_u64 << 40, vec(any::<u8>(), 0..50)), 0..20)) {
        let chunks: Vec<_> = parts.iter().map(|(offset, data)| Chunk { offset: *offset, len: data.len() as u32 }).collect();
        let one = |(offset, data): &(u64, Vec<u8>)| {
            [&HANDLE.0[..], &(data.len() as u32).to_be_bytes(), &offset.to_be_bytes(), data].concat()
        };
        let body: Vec<u8> = parts.iter().flat_map(one).collect();
        prop_assert_eq!(body.len(), vector_response_bytes(&chunks));
        let answers = parse_vector(body.into(), HANDLE, &chunks).unwrap();
        prop_assert!(answers.iter().zip(&parts).all(|(answer, (_, data))| answer == data));
    }

    #[test]
    fn headers_come_back(stream: u16, kind in 0_u16..8, len in 0..=i32::MAX) {
        let code = if kind == 0 { 0 } else { 3999 + kind };
        let bytes = [&stream.to_be_bytes()[..], &code.to_be_bytes(), &len.to_be_bytes()].concat();
        let header = Header::parse(bytes.try_into().unwrap()).unwrap();
        prop_assert_eq!((header.stream, header.len), (stream, len as u32));
    }

    #[test]
    fn requests_have_their_fields_at_the_published_places(stream: u16, offset in 0..=i64::MAX as u64, len in 0..=i32::MAX as u32) {
        let chunk = Chunk { offset, len };
        let read = Request::Read { handle: HANDLE, chunk }.encode(stream).unwrap();
        let expected = [
            &stream.to_be_bytes()[..],
            &3013_u16.to_be_bytes(),
            &HANDLE.0,
            &offset.to_be_bytes(),
            &len.to_be_bytes(),
            &[0; 4],
        ].concat();
        prop_assert_eq!(read, expected);

        let vector = Request::ReadVector { handle: HANDLE, chunks: vec![chunk, chunk] }.encode(stream).unwrap();
        let item = [&HANDLE.0[..], &len.to_be_bytes(), &offset.to_be_bytes()].concat();
        prop_assert_eq!(&vector[20..24], 32_i32.to_be_bytes());
        prop_assert_eq!(&vector[24..], [item.clone(), item].concat());
    }
}

#[test]
fn requests_that_the_protocol_cannot_express_are_errors() {
    let far = Request::Read { handle: HANDLE, chunk: Chunk { offset: 1 << 63, len: 1 } };
    assert_eq!(error(far.encode(1)), "offset 9223372036854775808 exceeds the limit of the protocol");
    let long = Request::Read { handle: HANDLE, chunk: Chunk { offset: 0, len: u32::MAX } };
    assert_eq!(error(long.encode(1)), "length 4294967295 exceeds the limit of the protocol");
    let line = Request::Stat { path: "/x\n/y".to_owned() };
    assert_eq!(error(line.encode(1)), "the path contains a control character");
}

#[test]
fn an_open_file_is_named_by_its_handle() {
    let stat = Request::StatOpen { handle: HANDLE }.encode(0x0102).unwrap();
    assert_eq!(stat, [&[1, 2, 0x0b, 0xc9][..], &[0; 12], &HANDLE.0, &[0; 4]].concat());
}

#[test]
fn requests_do_not_show_their_credentials() {
    let open = Request::Open { path: "/x?authz=secret".to_owned(), options: 0, mode: 0 };
    assert_eq!(format!("{open:?}"), "kXR_open");
    let open = open.encode(0x0102).unwrap();
    assert_eq!(&open[..4], [1, 2, 0x0b, 0xc2]);
    assert_eq!(&open[24..], b"/x?authz=secret");
}

#[test]
fn responses_of_real_servers_are_read() {
    let login = [&[7; 16][..], b"&P=ztn,0:4096:&P=gsi,v:10600,c:ssl,ca:5168735f.0&P=unix\0"].concat();
    let protocols = Login::parse(&login).unwrap().protocols;
    let names: Vec<_> = protocols.iter().map(|(name, parameters)| (name.as_str(), parameters.as_str())).collect();
    assert_eq!(names, [("ztn", "0:4096:"), ("gsi", "v:10600,c:ssl,ca:5168735f.0"), ("unix", "")]);
    assert_eq!(Login::parse(&[7; 16]).unwrap().protocols, []);
    assert_eq!(Login::parse(b"").unwrap().protocols, []);

    let opened = Opened::parse(b"\0\0\0\0\0\0\0\0\0\0\0\x0033554498 300000 51 1763826365 1 2 0644 a b\0").unwrap();
    let stat = Stat { size_bytes: 300_000, flags: 51, modified: 1_763_826_365 };
    assert_eq!(opened, Opened { handle: Handle([0; 4]), stat: Some(stat) });

    let redirect = Redirect::parse(b"\0\0\x04\x46eos.example.org?cap.sym=x&mgm.id=1?token\0").unwrap();
    assert_eq!((redirect.target.as_str(), redirect.port), ("eos.example.org", 1094));
    assert_eq!((redirect.opaque.as_deref(), redirect.token.as_deref()), (Some("cap.sym=x&mgm.id=1"), Some("token")));
    assert_eq!(format!("{redirect:?}"), "Redirect(eos.example.org:1094)");

    let listing = b".\n0 0 0 0\nx.root\n1 23 16 1700000000\nfolder\n2 4096 19 1700000001\0";
    let entries = parse_listing(listing).unwrap();
    assert_eq!(entries[0].name, "x.root");
    assert_eq!(entries[0].stat.map(|stat| stat.size_bytes), Some(23));
    assert!(entries[1].stat.is_some_and(|stat| stat.is_directory()));
    let names_only = Listed { name: "x.root".to_owned(), stat: None };
    assert_eq!(parse_listing(b"x.root\0").unwrap(), [names_only]);

    assert_eq!(ReadLimits::parse(b"512\n1000000\n"), ReadLimits { chunks: 512, chunk_bytes: 1_000_000 });
    assert_eq!(ReadLimits::parse(b"readv_iov_max\nreadv_ior_max\n"), ReadLimits::default());
    assert_eq!(ReadLimits::parse(b"0\n-1\n"), ReadLimits::default());
}

#[test]
fn invalid_responses_are_errors() {
    assert_eq!(error(Header::parse([0, 0, 0, 1, 0, 0, 0, 0])), "the server sent a response of unknown kind 1");
    assert_eq!(
        error(Header::parse([0, 0, 0, 0, 0xff, 0xff, 0xff, 0xfe])),
        "the response header has an invalid length: -2"
    );
    assert_eq!(error(Stat::parse(b"1 -2 3 4")), "the server sent an invalid stat response");
    assert_eq!(error(Stat::parse(b"1 18446744073709551615 3 4")), "the server sent an invalid stat response");
    assert_eq!(error(Redirect::parse(b"\0\0\0\0?x")), "the server redirected without naming a host");
    assert_eq!(error(parse_listing(b"../x\0")), "the server sent an invalid name of a directory entry");
    assert_eq!(error(parse_listing(b".\n0 0 0 0\nx")), "the server sent a directory entry without its size");
    let chunks = [Chunk { offset: 5, len: 1 }];
    let other = [&HANDLE.0[..], &1_u32.to_be_bytes(), &6_u64.to_be_bytes(), b"x"].concat();
    assert_eq!(
        error(parse_vector(other.into(), HANDLE, &chunks)),
        "expected a chunk of 1 bytes at 5, the server sent another"
    );
}

#[test]
fn a_status_response_must_belong_to_its_request() {
    let good = status(7, 30, 1, 100, 4096);
    assert_eq!(PageStatus::parse(good, 7), Ok(PageStatus { offset: 4096, len: 100, last: false }));
    let other = "the server sent a status response to another request";
    assert_eq!(error(PageStatus::parse(good, 8)), other);
    assert_eq!(error(PageStatus::parse(status(7, 29, 0, 1, 0), 7)), other);
    assert_eq!(error(PageStatus::parse(status(7, 30, 2, 1, 0), 7)), other);
    let mut damaged = good;
    damaged[23] ^= 1;
    assert_eq!(error(PageStatus::parse(damaged, 7)), "checksum mismatch in a status response");
}

#[test]
fn pages_that_were_not_requested_are_errors() {
    let mut buffer = PageBuffer::new(Chunk { offset: 4096, len: 4096 }, BytesMut::new());
    for offset in [0, 4095, 8192, u64::MAX] {
        assert!(error(buffer.add(offset, &wire(offset, b"x"))).ends_with("was not requested"), "{offset}");
    }
    buffer.add(4096, &wire(4096, &[1; 4096])).unwrap();
    assert_eq!(error(buffer.add(4100, &wire(4100, b"x"))), "the server sent a page at 4100, which was not requested");
    assert_eq!(error(buffer.add(4096, &[1, 2])), "the server sent a page without its checksum");
}

#[test]
fn messages_of_servers_are_shortened_and_harmless() {
    let long = [&3011_u32.to_be_bytes()[..], &b"x\x1b[31m".repeat(1000)].concat();
    let error = ServerError::parse(&long).unwrap();
    assert_eq!(error.code, 3011);
    assert_eq!(error.message.chars().count(), 501);
    assert!(!error.message.contains('\x1b'));
}

/// Found by fuzzing: a page that was damaged and not requested was counted as missing twice.
#[test]
fn a_damaged_page_that_was_not_requested_is_not_read_again() {
    let mut buffer = PageBuffer::new(Chunk { offset: 0, len: 10 }, BytesMut::new());
    buffer.add(0, &wire(0, b"0123456789")).unwrap();
    assert!(buffer.add(3, b"\0\0\0\0x").is_err());
    assert!(buffer.take_damaged().is_empty());
    assert_eq!(buffer.received_bytes(), 10);
}

#[test]
fn a_server_cannot_make_a_list_of_ranges_long() {
    let mut buffer = PageBuffer::new(Chunk { offset: 0, len: 1 << 20 }, BytesMut::new());
    let apart = (0..1 << 19).try_for_each(|i| buffer.add(2 * i, &wire(2 * i, b"x")));
    assert_eq!(error(apart), "the server sent pages in too many parts");
    let mut buffer = PageBuffer::new(Chunk { offset: 0, len: 1 << 20 }, BytesMut::new());
    let damaged = (0..1 << 20).try_for_each(|i| buffer.add(i, b"\0\0\0\0x"));
    assert_eq!(error(damaged), "the server sent too many pages with wrong checksums");
    assert_eq!(error(parse_listing(&b"a\n".repeat(1 << 21))), "the directory has more than 1048576 entries");
}
