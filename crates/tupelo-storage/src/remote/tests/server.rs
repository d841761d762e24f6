//! An HTTP server in this process, which misbehaves on request.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use twox_hash::XxHash3_64;

/// A request as the server saw it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    /// Path and query string.
    pub(crate) target: String,
    /// Names in lower case.
    pub(crate) headers: HashMap<String, String>,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// When all objects were changed.
const MODIFIED: &str = "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n";

/// What the server does instead of answering correctly.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// Answers with this status, these header lines and this body.
    Status(u16, String, String),
    /// Closes the connection without an answer.
    Close,
    /// Does what is requested by a `PUT`, and closes the connection without an answer.
    Lost,
    /// Never answers.
    Silence,
    /// Sends this many bytes of the body, then closes the connection.
    Cut(usize),
    /// Sends this many bytes of the body, then nothing.
    Stall(usize),
    /// Sends a byte now and then.
    Drip,
    /// Sends this `Content-Range` instead of the right one.
    ContentRange(String),
    /// Announces and sends another body.
    Body(Vec<u8>),
    /// Answers without looking at the `Range`.
    Whole,
    /// The same, without saying how many bytes follow.
    WholeUntilClosed,
}

/// Bytes and ETag of an object.
type Stored = (Arc<Vec<u8>>, String);
type Decide = dyn Fn(&Seen, usize) -> Option<Fault> + Send + Sync;

struct State {
    objects: Mutex<HashMap<String, Stored>>,
    seen: Mutex<Vec<Seen>>,
    decide: Mutex<Box<Decide>>,
    is_stopped: AtomicBool,
    /// Bytes of bodies.
    received: AtomicUsize,
}

/// A server on a free port of 127.0.0.1, until it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    state: Arc<State>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            objects: Mutex::default(),
            seen: Mutex::default(),
            decide: Mutex::new(Box::new(|_, _| None)),
            is_stopped: AtomicBool::new(false),
            received: AtomicUsize::new(0),
        });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for connection in listener.incoming() {
                if shared.is_stopped.load(Ordering::Relaxed) {
                    return;
                }
                let shared = Arc::clone(&shared);
                thread::spawn(move || serve(&shared, &connection.unwrap()));
            }
        });
        Self { address, state }
    }

    /// A server with one object, `/x`.
    pub(crate) fn with(bytes: impl Into<Vec<u8>>) -> Self {
        let server = Self::start();
        server.put("/x", bytes, "\"v1\"");
        server
    }

    pub(crate) fn put(&self, path: &str, bytes: impl Into<Vec<u8>>, etag: &str) {
        let object = (Arc::new(bytes.into()), etag.to_owned());
        self.state.objects.lock().unwrap().insert(path.to_owned(), object);
    }

    /// Chooses the fault of each request, from the request and the number of requests before it.
    pub(crate) fn fault(&self, decide: impl Fn(&Seen, usize) -> Option<Fault> + Send + Sync + 'static) {
        *self.state.decide.lock().unwrap() = Box::new(decide);
    }

    pub(crate) fn object(&self, path: &str) -> Option<Vec<u8>> {
        self.state.objects.lock().unwrap().get(path).map(|(bytes, _)| bytes.to_vec())
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// How many bytes were uploaded.
    pub(crate) fn received(&self) -> usize {
        self.state.received.load(Ordering::Relaxed)
    }

    /// The requests since the last call.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.state.seen.lock().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.state.is_stopped.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts connections.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(state: &State, mut connection: &TcpStream) {
    connection.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(connection);
    while let Some(seen) = read_head(&mut reader) {
        let count = {
            let mut all = state.seen.lock().unwrap();
            all.push(seen.clone());
            all.len() - 1
        };
        let fault = (state.decide.lock().unwrap())(&seen, count);
        // As the front servers of storage sites do, which do not want the body.
        let is_early = seen.header("expect").is_some() && matches!(fault, Some(Fault::Status(..)));
        if seen.header("expect").is_some() && !is_early {
            connection.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
        }
        let len = seen.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut body = vec![0; if is_early { 0 } else { len }];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        state.received.fetch_add(body.len(), Ordering::Relaxed);
        if answer(state, connection, &seen, body, fault).is_none() || is_early {
            let _ = connection.shutdown(std::net::Shutdown::Both);
            return;
        }
    }
}

fn read_head(reader: &mut impl BufRead) -> Option<Seen> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    Some(Seen { method, target, headers })
}

/// Sends an answer; `None` if the connection is to be closed.
fn answer(state: &State, mut connection: &TcpStream, seen: &Seen, body: Vec<u8>, fault: Option<Fault>) -> Option<()> {
    if let Some(Fault::Status(code, lines, body)) = &fault {
        let head = format!("HTTP/1.1 {code} Fault\r\n{lines}Content-Length: {}\r\n\r\n{body}", body.len());
        return connection.write_all(head.as_bytes()).ok();
    }
    if let Some(Fault::Close) = &fault {
        return None;
    }
    if let Some(Fault::Silence) = &fault {
        // Until the client closes the connection.
        let _ = connection.read(&mut [0; 1]);
        return None;
    }
    let path = seen.target.split('?').next().unwrap().to_owned();
    if seen.method == "PUT" {
        let mut objects = state.objects.lock().unwrap();
        let old = objects.get(&path).map(|(_, etag)| etag.as_str());
        let is_refused = seen.header("if-none-match").is_some_and(|_| old.is_some())
            || seen.header("if-match").is_some_and(|wanted| old != Some(wanted));
        if is_refused {
            return connection.write_all(b"HTTP/1.1 412 Precondition Failed\r\nContent-Length: 0\r\n\r\n").ok();
        }
        let etag = format!("\"{:016x}\"", XxHash3_64::oneshot(&body));
        let head = format!("HTTP/1.1 201 Created\r\nETag: {etag}\r\nContent-Length: 0\r\n\r\n");
        objects.insert(path, (Arc::new(body), etag));
        if let Some(Fault::Lost) = &fault {
            return None;
        }
        return connection.write_all(head.as_bytes()).ok();
    }
    let Some((bytes, etag)) = state.objects.lock().unwrap().get(&path).cloned() else {
        return connection.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").ok();
    };
    if seen.header("if-match").is_some_and(|wanted| wanted != etag) {
        return connection.write_all(b"HTTP/1.1 412 Precondition Failed\r\nContent-Length: 0\r\n\r\n").ok();
    }
    let size = bytes.len();
    let is_whole = matches!(fault, Some(Fault::Whole | Fault::WholeUntilClosed));
    let range = seen.header("range").filter(|_| !is_whole).map(|text| requested(text, size));
    let (status, part, lines) = match range {
        None => ("200 OK", &bytes[..], String::new()),
        Some(None) => {
            let head = format!(
                "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */{size}\r\nContent-Length: 0\r\n\r\n"
            );
            return connection.write_all(head.as_bytes()).ok();
        }
        Some(Some(range)) => {
            let stated = match &fault {
                Some(Fault::ContentRange(text)) => text.clone(),
                _ => format!("bytes {}-{}/{size}", range.start, range.end - 1),
            };
            ("206 Partial Content", &bytes[range], format!("Content-Range: {stated}\r\n"))
        }
    };
    let part = match &fault {
        Some(Fault::Body(other)) => other,
        _ => part,
    };
    let length = match &fault {
        Some(Fault::WholeUntilClosed) => "Connection: close\r\n".to_owned(),
        _ => format!("Content-Length: {}\r\n", part.len()),
    };
    let head = format!("HTTP/1.1 {status}\r\n{lines}{length}ETag: {etag}\r\n{MODIFIED}\r\n");
    connection.write_all(head.as_bytes()).ok()?;
    if let Some(Fault::Drip) = &fault {
        for byte in part.chunks(1) {
            connection.write_all(byte).ok()?;
            thread::sleep(Duration::from_millis(50));
        }
    }
    let sent = match &fault {
        Some(Fault::Cut(bytes) | Fault::Stall(bytes)) => &part[..part.len().min(*bytes)],
        _ => part,
    };
    connection.write_all(sent).ok()?;
    match &fault {
        Some(Fault::Cut(_) | Fault::WholeUntilClosed) => None,
        Some(Fault::Stall(_)) => {
            // Until the client closes the connection.
            let _ = connection.read(&mut [0; 1]);
            None
        }
        _ => Some(()),
    }
}

/// The bytes of a `Range` header; `None` if there are none.
fn requested(text: &str, size: usize) -> Option<Range<usize>> {
    let text = text.strip_prefix("bytes=").expect("only ranges of bytes are requested");
    assert!(!text.contains(','), "several ranges in one request");
    let (first, last) = text.split_once('-').unwrap();
    let range = match (first, last) {
        ("", last) => size.saturating_sub(last.parse().unwrap())..size,
        (first, "") => first.parse().unwrap()..size,
        (first, last) => first.parse().unwrap()..size.min(last.parse::<usize>().unwrap() + 1),
    };
    (range.start < range.end).then_some(range)
}

/// A proxy on a free port of 127.0.0.1, which closes every third connection after some bytes from the client.
pub(crate) fn cutting_proxy(target: u16, cut_after: usize) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for (count, client) in listener.incoming().enumerate() {
            let client = client.unwrap();
            let Ok(server) = TcpStream::connect(("127.0.0.1", target)) else { return };
            let limit = if count % 3 == 0 { cut_after } else { usize::MAX };
            let (to_client, from_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || forward(&client, &server, limit));
            thread::spawn(move || forward(&from_server, &to_client, usize::MAX));
        }
    });
    port
}

/// Copies bytes until the end, an error or the limit, then closes both.
fn forward(mut from: &TcpStream, mut to: &TcpStream, limit: usize) {
    let mut buffer = [0; 1 << 16];
    let mut passed = 0;
    while let Ok(len @ 1..) = from.read(&mut buffer) {
        passed += len;
        if passed > limit || to.write_all(&buffer[..len]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(std::net::Shutdown::Both);
    let _ = to.shutdown(std::net::Shutdown::Both);
}
