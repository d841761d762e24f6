//! A server that follows a script, to do what a real one does rarely or never.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::super::message::PAGE_BYTES;

/// Codes of requests and responses, as in the specification.
pub(super) mod code {
    pub(crate) const AUTH: u16 = 3000;
    pub(crate) const QUERY: u16 = 3001;
    pub(crate) const CLOSE: u16 = 3003;
    pub(crate) const LOGIN: u16 = 3007;
    pub(crate) const OPEN: u16 = 3010;
    pub(crate) const LIST: u16 = 3004;
    pub(crate) const RENAME: u16 = 3009;
    pub(crate) const READ: u16 = 3013;
    pub(crate) const REMOVE: u16 = 3014;
    pub(crate) const SYNC: u16 = 3016;
    pub(crate) const STAT: u16 = 3017;
    pub(crate) const WRITE: u16 = 3019;
    pub(crate) const READV: u16 = 3025;
    pub(crate) const PGREAD: u16 = 3030;

    pub(crate) const OK: u16 = 0;
    pub(crate) const OKSOFAR: u16 = 4000;
    pub(crate) const ATTN: u16 = 4001;
    pub(crate) const ERROR: u16 = 4003;
    pub(crate) const REDIRECT: u16 = 4004;
    pub(crate) const WAIT: u16 = 4005;
    pub(crate) const WAITRESP: u16 = 4006;
    pub(crate) const STATUS: u16 = 4007;
}

/// Protocol flags of a data server, and of one that has pages with checksums.
pub(super) const DATA_SERVER: u32 = 1;
pub(super) const WITH_PAGES: u32 = 1 | 0x0020_0000;

const HANDLE: [u8; 4] = [9, 8, 7, 6];
/// When a file was modified, unless a script says otherwise.
pub(super) const TIME: usize = 1_700_000_000;

/// A request that was received.
#[derive(Debug, Clone)]
pub(super) struct Received {
    pub(super) stream: u16,
    pub(super) code: u16,
    pub(super) body: [u8; 16],
    pub(super) payload: Vec<u8>,
}

impl Received {
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.payload).into_owned()
    }

    /// Offset and length of a read.
    pub(super) fn range(&self) -> (usize, usize) {
        let offset = u64::from_be_bytes(self.body[4..12].try_into().unwrap());
        (offset as usize, u32::from_be_bytes(self.body[12..16].try_into().unwrap()) as usize)
    }
}

/// One connection to the server.
pub(super) struct Peer {
    stream: TcpStream,
    /// How many connections were made before this one.
    pub(super) number: usize,
    /// All bytes that the server has sent.
    sent: Arc<AtomicUsize>,
    /// Bytes that may still be sent before the connection is cut.
    left: usize,
    requests: Arc<Mutex<Vec<Received>>>,
    flags: u32,
    /// Size and time of the file that was opened last.
    stat: (usize, usize),
}

pub(super) struct Fake {
    pub(super) port: u16,
    /// All requests so far.
    pub(super) requests: Arc<Mutex<Vec<Received>>>,
    /// Number of bytes that it has sent so far.
    pub(super) sent: Arc<AtomicUsize>,
}

impl Fake {
    /// Starts a server that gives each connection to the script.
    pub(super) fn start(script: impl Fn(&mut Peer) -> Option<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let sent = Arc::new(AtomicUsize::new(0));
        let total = Arc::clone(&sent);
        let (log, script, count) = (Arc::clone(&requests), Arc::new(script), AtomicUsize::new(0));
        // It ends with the process: the tests of one binary are few.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let number = count.fetch_add(1, Ordering::Relaxed);
                let stream = stream.unwrap();
                stream.set_nodelay(true).unwrap();
                let mut peer = Peer {
                    stream,
                    number,
                    left: usize::MAX,
                    sent: Arc::clone(&total),
                    requests: Arc::clone(&log),
                    flags: DATA_SERVER,
                    stat: (0, 0),
                };
                let script = Arc::clone(&script);
                std::thread::spawn(move || script(&mut peer));
            }
        });
        Self { port, requests, sent }
    }

    pub(super) fn url(&self) -> String {
        format!("root://127.0.0.1:{}//folder/x.root", self.port)
    }

    /// How many requests of a kind were received.
    pub(super) fn count(&self, code: u16) -> usize {
        self.requests.lock().unwrap().iter().filter(|request| request.code == code).count()
    }

    /// The last request of a kind.
    pub(super) fn last(&self, code: u16) -> Option<Received> {
        self.requests.lock().unwrap().iter().rev().find(|request| request.code == code).cloned()
    }
}

/// `None` ends the connection.
impl Peer {
    /// The connection is cut when this number of bytes was sent.
    pub(super) fn cut_after(&mut self, bytes: usize) {
        self.left = bytes;
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> Option<()> {
        let sent = bytes.len().min(self.left);
        self.stream.write_all(&bytes[..sent]).ok()?;
        self.left -= sent;
        self.sent.fetch_add(sent, Ordering::Relaxed);
        (sent == bytes.len()).then_some(())
    }

    pub(super) fn reply(&mut self, stream: u16, status: u16, body: &[u8]) -> Option<()> {
        self.send(
            &[&stream.to_be_bytes()[..], &status.to_be_bytes(), &(body.len() as u32).to_be_bytes(), body].concat(),
        )
    }

    pub(super) fn error(&mut self, stream: u16, code: u32, message: &str) -> Option<()> {
        self.reply(stream, code::ERROR, &[&code.to_be_bytes()[..], message.as_bytes(), b"\0"].concat())
    }

    pub(super) fn redirect(&mut self, stream: u16, port: i32, target: &str) -> Option<()> {
        self.reply(stream, code::REDIRECT, &[&port.to_be_bytes()[..], target.as_bytes()].concat())
    }

    pub(super) fn wait(&mut self, stream: u16, status: u16, seconds: i32) -> Option<()> {
        self.reply(stream, status, &seconds.to_be_bytes())
    }

    pub(super) fn request(&mut self) -> Option<Received> {
        let mut header = [0; 24];
        self.stream.read_exact(&mut header).ok()?;
        let mut payload = vec![0; u32::from_be_bytes(header[20..].try_into().unwrap()) as usize];
        self.stream.read_exact(&mut payload).ok()?;
        let number = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let body = header[4..20].try_into().unwrap();
        let request = Received { stream: number(0), code: number(2), body, payload };
        self.requests.lock().unwrap().push(request.clone());
        Some(request)
    }

    /// The handshake and `kXR_protocol`.
    pub(super) fn greet(&mut self, flags: u32) -> Option<()> {
        self.flags = flags;
        let mut handshake = [0; 20];
        self.stream.read_exact(&mut handshake).ok()?;
        assert_eq!(handshake[12..], [0, 0, 0, 4, 0, 0, 7, 220]);
        self.reply(0, code::OK, &[0, 0, 5, 17, 0, 0, 0, 1])?;
        let protocol = self.request()?;
        self.reply(protocol.stream, code::OK, &[&0x511_u32.to_be_bytes()[..], &flags.to_be_bytes()].concat())
    }

    /// The login, after which these authentication protocols are demanded.
    pub(super) fn log_in(&mut self, protocols: &str) -> Option<()> {
        let login = self.request()?;
        assert_eq!(login.code, code::LOGIN);
        self.reply(login.stream, code::OK, &[&[7; 16][..], protocols.as_bytes()].concat())
    }

    /// The port of the server.
    pub(super) fn port(&self) -> u16 {
        self.stream.local_addr().unwrap().port()
    }

    /// All until the first request for a file.
    pub(super) fn welcome(&mut self, flags: u32) -> Option<()> {
        self.greet(flags)?;
        self.log_in("")
    }

    /// The response to a request that opens a file.
    pub(super) fn opened(&mut self, stream: u16, size: usize, modified: usize) -> Option<()> {
        self.stat = (size, modified);
        let stat = format!("7 {size} 48 {modified}\0");
        self.reply(stream, code::OK, &[&HANDLE[..], &[0; 8], stat.as_bytes()].concat())
    }

    /// The response to a request for the size and time of the open file.
    pub(super) fn stat(&mut self, stream: u16, size: usize, modified: usize) -> Option<()> {
        self.reply(stream, code::OK, format!("7 {size} 48 {modified}\0").as_bytes())
    }

    /// The right response to a request for a file of this content.
    pub(super) fn respond(&mut self, request: &Received, content: &[u8]) -> Option<()> {
        let stream = request.stream;
        match request.code {
            code::OPEN => self.opened(stream, content.len(), TIME),
            code::STAT => {
                assert_eq!(request.body[12..], HANDLE);
                self.stat(stream, self.stat.0, self.stat.1)
            }
            code::QUERY => self.reply(stream, code::OK, b"1024\n2097136\n\0"),
            code::READ => {
                let (offset, len) = request.range();
                self.reply(stream, code::OK, &content[offset..offset + len])
            }
            code::READV => self.reply(stream, code::OK, &vector(request, content)),
            code::PGREAD => {
                let (offset, len) = request.range();
                self.pages(stream, offset, &content[offset..offset + len], 0)
            }
            code::CLOSE | code::SYNC | code::WRITE | code::REMOVE | code::RENAME => self.reply(stream, code::OK, b""),
            other => panic!("request {other}"),
        }
    }

    /// Pages as the last part of a response; `damage` is added to the bytes after their checksums are made.
    pub(super) fn pages(&mut self, stream: u16, offset: usize, bytes: &[u8], damage: u8) -> Option<()> {
        let mut wire = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let page = PAGE_BYTES as usize;
            let end = bytes.len().min(at + page - (offset + at) % page);
            wire.extend_from_slice(&crc32c::crc32c(&bytes[at..end]).to_be_bytes());
            wire.extend(bytes[at..end].iter().map(|byte| byte.wrapping_add(damage)));
            at = end;
        }
        let rest = [
            &stream.to_be_bytes()[..],
            &[30, 0, 0, 0, 0, 0],
            &(wire.len() as u32).to_be_bytes(),
            &(offset as u64).to_be_bytes(),
        ]
        .concat();
        self.reply(stream, code::STATUS, &[&crc32c::crc32c(&rest).to_be_bytes()[..], &rest].concat())?;
        self.send(&wire)
    }

    /// Serves a file until the client goes.
    pub(super) fn serve(&mut self, flags: u32, content: &[u8]) -> Option<()> {
        self.welcome(flags)?;
        loop {
            let request = self.request()?;
            self.respond(&request, content)?;
        }
    }
}

/// The right response to a vector read.
pub(super) fn vector(request: &Received, content: &[u8]) -> Vec<u8> {
    let one = |item: &[u8]| {
        let len = u32::from_be_bytes(item[4..8].try_into().unwrap()) as usize;
        let offset = u64::from_be_bytes(item[8..16].try_into().unwrap()) as usize;
        [item, &content[offset..offset + len]].concat()
    };
    request.payload.chunks(16).flat_map(one).collect()
}
