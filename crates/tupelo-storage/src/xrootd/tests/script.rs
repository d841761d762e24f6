//! What a real server does rarely or never: scripted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::super::*;
use super::fake::{DATA_SERVER, Fake, Peer, WITH_PAGES, code, vector};
use super::{bytes, options};
use crate::adapter::Cache;
use crate::cancel::cancellable;
use crate::laws::{is_cancelled_soon, source_laws};
use crate::{ByteSink, ByteSource, ErrorKind, Storage};

const CONTENT: &[u8] = b"The quick brown fox jumps over the lazy dog";

/// What a server does instead of a response to the request of this stream id.
type Script = fn(&mut Peer, u16) -> Option<()>;

/// Options for servers that fail.
fn impatient() -> Options {
    impatient_with(&[])
}

fn impatient_with(more: &[(&str, &str)]) -> Options {
    let all = [("max_attempts", "3"), ("connect_timeout", "5"), ("stall_timeout", "10")];
    options(&[&all[..], more].concat())
}

/// Options for servers that are silent.
fn impatient_at_silence() -> Options {
    impatient_with(&[("stall_timeout", "0.3")])
}

fn read(fake: &Fake) -> crate::Result<Vec<u8>> {
    read_with(fake, &impatient())
}

fn read_with(fake: &Fake, options: &Options) -> crate::Result<Vec<u8>> {
    open(&fake.url(), options)?.read_range(4..9).map(|bytes| bytes.to_vec())
}

/// A server that does something else in the place of the first response to a kind of request.
fn instead(kind: u16, script: impl Fn(&mut Peer, u16) -> Option<()> + Send + Sync + 'static) -> Fake {
    always(kind, move |peer, stream| if peer.number == 0 { script(peer, stream) } else { None })
}

/// A server that does something else in the place of all responses to a kind of request; where that returns nothing on
/// a later connection, the right response follows.
fn always(kind: u16, script: impl Fn(&mut Peer, u16) -> Option<()> + Send + Sync + 'static) -> Fake {
    Fake::start(move |peer| {
        peer.welcome(DATA_SERVER)?;
        loop {
            let request = peer.request()?;
            if request.code != kind {
                peer.respond(&request, CONTENT)?;
            } else if script(peer, request.stream).is_none() {
                if peer.number == 0 {
                    return None;
                }
                peer.respond(&request, CONTENT)?;
            }
        }
    })
}

#[test]
fn a_file_keeps_the_laws_of_a_source_with_and_without_pages() {
    for flags in [DATA_SERVER, WITH_PAGES] {
        let content = Arc::new(bytes(60_000));
        let expected = Arc::clone(&content);
        let fake = Fake::start(move |peer| peer.serve(flags, &content));
        source_laws(&open(&fake.url(), &impatient()).unwrap(), &expected);
        assert_eq!(fake.count(code::READ) > 0, flags == DATA_SERVER);
    }
}

#[test]
fn redirects_carry_opaque_information_and_a_token() {
    let data = Fake::start(|peer| peer.serve(DATA_SERVER, CONTENT));
    let port = i32::from(data.port);
    let redirector = Fake::start(move |peer| {
        peer.welcome(DATA_SERVER)?;
        let request = peer.request()?;
        peer.redirect(request.stream, port, "127.0.0.1?cap.sym=1&x=2?login-token")
    });
    let source = open(&format!("{}?x=1&y=3", redirector.url()), &impatient()).unwrap();
    assert_eq!(source.read_range(4..9).unwrap(), "quick");
    assert_eq!(data.last(code::OPEN).unwrap().text(), "/folder/x.root?cap.sym=1&x=2&y=3");
    assert_eq!(data.last(code::LOGIN).unwrap().text(), "login-token");
}

#[test]
fn credentials_do_not_follow_a_redirect_without_tls() {
    let data = Fake::start(|peer| peer.serve(DATA_SERVER, CONTENT));
    let port = i32::from(data.port);
    let redirector = Fake::start(move |peer| {
        peer.welcome(DATA_SERVER)?;
        let request = peer.request()?;
        peer.redirect(request.stream, -1, &format!("root://localhost:{port}//other"))
    });
    open(&format!("{}?authz=Bearer%20secret&y=3", redirector.url()), &impatient()).unwrap();
    assert_eq!(redirector.last(code::OPEN).unwrap().text(), "/folder/x.root?authz=Bearer%20secret&y=3");
    assert_eq!(data.last(code::OPEN).unwrap().text(), "/other?y=3");
}

#[test]
fn redirects_end() {
    let fake = Fake::start(|peer| {
        peer.welcome(DATA_SERVER)?;
        let request = peer.request()?;
        peer.redirect(request.stream, i32::from(peer.port()), "127.0.0.1")
    });
    let error = open(&fake.url(), &impatient()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("more than 16 redirects"), "{error}");

    for (port, target) in
        [(-1, "https://example.org/x"), (1094, "exa mple"), (70_000, "example.org"), (-1, "example.org")]
    {
        let fake = Fake::start(move |peer| {
            peer.welcome(DATA_SERVER)?;
            let request = peer.request()?;
            peer.redirect(request.stream, port, target)
        });
        let error = open(&fake.url(), &impatient()).unwrap_err();
        assert!(error.to_string().contains("the server redirected"), "{error}");
    }
}

#[test]
fn another_server_is_requested_when_one_fails() {
    let good = Fake::start(|peer| peer.serve(DATA_SERVER, CONTENT));
    // It has the file, but closes the connection when that is read first.
    let bad = always(code::READ, |_, _| None);
    let ports = [i32::from(bad.port), i32::from(good.port)];
    let redirector = Fake::start(move |peer| {
        peer.welcome(DATA_SERVER)?;
        let request = peer.request()?;
        let tried = request.text().contains("tried=localhost");
        peer.redirect(request.stream, ports[usize::from(tried)], if tried { "127.0.0.1" } else { "localhost" })
    });
    let source = open(&redirector.url(), &impatient()).unwrap();
    assert_eq!(source.read_range(4..9).unwrap(), "quick");
}

#[test]
fn waits_are_kept_and_end() {
    let fake = Fake::start(|peer| {
        peer.welcome(DATA_SERVER)?;
        for _ in 0..3 {
            let request = peer.request()?;
            peer.wait(request.stream, code::WAIT, 0)?;
        }
        loop {
            let request = peer.request()?;
            peer.respond(&request, CONTENT)?;
        }
    });
    assert_eq!(read(&fake).unwrap(), b"quick");

    let fake = always(code::OPEN, |peer, stream| peer.wait(stream, code::WAIT, 1000));
    let error = open(&fake.url(), &impatient_with(&[("total_timeout", "0.3")])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.to_string().ends_with("no complete answer within 0.3 s"), "{error}");
}

#[test]
fn responses_may_come_later_and_between_messages() {
    let fake = instead(code::READ, |peer, stream| {
        // A message, then the response later than the timeout of a request, as an asynchronous one.
        peer.reply(0, code::ATTN, &[&5002_u32.to_be_bytes()[..], &[0; 4], &[0; 8], b"hello"].concat())?;
        peer.wait(stream, code::WAITRESP, 10)?;
        std::thread::sleep(Duration::from_millis(600));
        let header = [&stream.to_be_bytes()[..], &code::OK.to_be_bytes(), &5_u32.to_be_bytes()].concat();
        peer.reply(0, code::ATTN, &[&5008_u32.to_be_bytes()[..], &[0; 4], &header, b"quick"].concat())
    });
    assert_eq!(read_with(&fake, &impatient_at_silence()).unwrap(), b"quick");
    assert_eq!(fake.count(code::READ), 1);
}

#[test]
fn responses_in_parts_are_joined() {
    let fake = Fake::start(|peer| {
        peer.welcome(DATA_SERVER)?;
        loop {
            let request = peer.request()?;
            let body = match request.code {
                code::READ => {
                    let (offset, len) = request.range();
                    CONTENT[offset..offset + len].to_vec()
                }
                code::READV => vector(&request, CONTENT),
                _ => {
                    peer.respond(&request, CONTENT)?;
                    continue;
                }
            };
            for part in body.chunks(3) {
                peer.reply(request.stream, code::OKSOFAR, part)?;
            }
            peer.reply(request.stream, code::OK, b"")?;
        }
    });
    assert_eq!(read(&fake).unwrap(), b"quick");
    let source = open(&fake.url(), &impatient()).unwrap();
    assert_eq!(source.read_range(0..CONTENT.len() as u64).unwrap(), CONTENT);
}

#[test]
fn lies_about_lengths_are_errors_or_are_retried() {
    let long = u32::to_be_bytes(i32::MAX as u32);
    let lies: [(&str, Script); 6] = [
        ("too many bytes", |peer, stream| peer.reply(stream, code::OK, b"quick and more")),
        ("bytes after the end", |peer, stream| {
            peer.reply(stream, code::OK, b"quick")?;
            peer.reply(stream, code::OK, b"brown")
        }),
        ("another request", |peer, stream| peer.reply(stream.wrapping_add(1), code::OK, b"quick")),
        ("pages that were not requested", |peer, stream| peer.pages(stream, 4, b"quick", 0)),
        ("an unknown kind", |peer, stream| peer.reply(stream, 1, b"quick")),
        ("a long error", |peer, stream| peer.reply(stream, code::ERROR, &[b'x'; 100_000])),
    ];
    for (what, lie) in lies {
        assert_eq!(read(&instead(code::READ, lie)).unwrap(), b"quick", "{what}, once");
        if what != "bytes after the end" {
            let error = read(&always(code::READ, lie)).unwrap_err();
            assert!(error.to_string().contains("3 attempts in"), "{what}: {error}");
        }
    }
    for len in [long, [0xff; 4]] {
        let lie = move |peer: &mut Peer, stream: u16| {
            peer.send(&[&stream.to_be_bytes()[..], &[0, 0], &len].concat())?;
            peer.send(b"quick")
        };
        assert_eq!(read(&instead(code::READ, lie)).unwrap(), b"quick");
    }
    let short = read(&always(code::READ, |peer, stream| peer.reply(stream, code::OK, b"qui"))).unwrap_err();
    assert_eq!(short.kind(), ErrorKind::Changed);
    assert!(short.to_string().contains("only 3 of 5 bytes at 4"), "{short}");
}

#[test]
fn vectors_with_other_chunks_are_errors() {
    let content: Arc<Vec<u8>> = Arc::new(bytes(1 << 20));
    for at in [0, 7, 15] {
        let content = Arc::clone(&content);
        let fake = Fake::start(move |peer| {
            peer.welcome(DATA_SERVER)?;
            loop {
                let request = peer.request()?;
                if request.code != code::READV {
                    peer.respond(&request, &content)?;
                    continue;
                }
                let mut body = vector(&request, &content);
                body[at] ^= 1;
                peer.reply(request.stream, code::OK, &body)?;
            }
        });
        let source = open(&fake.url(), &impatient()).unwrap();
        let error = source.read_ranges(&[0..10, 500_000..500_010]).unwrap_err();
        assert!(error.to_string().contains("the server sent another"), "{error}");
    }
}

#[test]
fn damaged_pages_are_read_again() {
    let content: Arc<Vec<u8>> = Arc::new(bytes(50_000));
    for repairs in [true, false] {
        let expected = Arc::clone(&content);
        let content = Arc::clone(&content);
        let fake = Fake::start(move |peer| {
            peer.welcome(WITH_PAGES)?;
            loop {
                let request = peer.request()?;
                if request.code != code::PGREAD {
                    peer.respond(&request, &content)?;
                    continue;
                }
                let (offset, len) = request.range();
                // The retries have a flag.
                let damage = u8::from(!repairs || request.payload.is_empty());
                peer.pages(request.stream, offset, &content[offset..offset + len], damage)?;
            }
        });
        let source = open(&fake.url(), &impatient_with(&[("max_attempts", "2")])).unwrap();
        let found = source.read_range(1000..10_000);
        if repairs {
            assert_eq!(found.unwrap(), expected[1000..10_000]);
            // The range, and each of its three pages.
            assert_eq!(fake.count(code::PGREAD), 4);
        } else {
            let error = found.unwrap_err();
            assert!(error.to_string().contains("the page at 1000 has a wrong checksum"), "{error}");
        }
    }
}

#[test]
fn files_on_a_server_share_a_connection() {
    let fake = Fake::start(|peer| {
        if peer.number == 0 {
            peer.cut_after(20_000);
        }
        peer.serve(DATA_SERVER, CONTENT)
    });
    let sources: Vec<_> = (0..20).map(|_| open(&fake.url(), &impatient()).unwrap()).collect();
    assert_eq!((fake.count(code::OPEN), fake.count(code::LOGIN)), (20, 1));
    std::thread::scope(|scope| {
        for source in &sources {
            scope.spawn(|| assert_eq!(source.read_range(4..9).unwrap(), "quick"));
        }
    });
    assert_eq!(fake.count(code::LOGIN), 1);

    // Other users and other options have their own.
    let user = fake.url().replace("127.0.0.1", "user@127.0.0.1");
    open(&user, &impatient()).unwrap();
    open(&fake.url(), &impatient_with(&[("bearer_token", "t")])).unwrap();
    assert_eq!(fake.count(code::LOGIN), 3);

    // Files are closed when they are dropped.
    drop(sources);
    let until = Instant::now() + Duration::from_secs(10);
    while fake.count(code::CLOSE) < 22 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(fake.count(code::CLOSE), 22);

    // The connection is lost.
    let source = open(&fake.url(), &impatient()).unwrap();
    for _ in 0..5000 {
        assert_eq!(source.read_range(4..9).unwrap(), "quick");
    }
    assert_eq!(fake.count(code::LOGIN), 4);
}

#[test]
fn failed_attempts_to_connect_are_shared_too() {
    let fake = Fake::start(|peer| {
        std::thread::sleep(Duration::from_millis(300));
        peer.greet(DATA_SERVER)?;
        peer.log_in("&P=gsi,x")
    });
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| assert_eq!(open(&fake.url(), &impatient()).unwrap_err().kind(), ErrorKind::Denied));
        }
    });
    assert!(fake.count(code::LOGIN) <= 3, "{}", fake.count(code::LOGIN));
}

#[test]
fn a_connection_that_is_cut_at_any_byte_is_replaced() {
    for flags in [DATA_SERVER, WITH_PAGES] {
        let check = |cut: usize| {
            let fake = Fake::start(move |peer| {
                if peer.number == 0 {
                    peer.cut_after(cut);
                }
                peer.serve(flags, CONTENT)
            });
            let source = open(&fake.url(), &impatient()).unwrap();
            assert_eq!(source.read_range(4..9).unwrap(), "quick", "cut after {cut} bytes");
            // Before the file is closed, which has a response too.
            (fake.sent.load(Ordering::Relaxed), fake.count(code::LOGIN))
        };
        let (all, _) = check(usize::MAX);
        let next = AtomicUsize::new(0);
        // They mostly wait before their retries.
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    while let Some(cut) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&cut| cut < all) {
                        assert_eq!(check(cut).1, if cut < 32 { 1 } else { 2 }, "cut after {cut} bytes");
                    }
                });
            }
        });
    }
}

#[test]
fn a_connection_that_is_cut_often_is_replaced_each_time() {
    let content = Arc::new(bytes(4 << 20));
    let expected = Arc::clone(&content);
    let fake = Fake::start(move |peer| {
        if peer.number < 20 {
            peer.cut_after(300_000);
        }
        peer.serve(DATA_SERVER, &content)
    });
    let source = open(&fake.url(), &Options::default()).unwrap();
    for (i, chunk) in expected.chunks(100_000).enumerate() {
        let start = i as u64 * 100_000;
        assert!(source.read_range(start..start + chunk.len() as u64).unwrap() == chunk, "{i}");
    }
}

#[test]
fn silence_is_a_timeout() {
    let accepts = Fake::start(|_| {
        std::thread::sleep(Duration::from_secs(60));
        None
    });
    let error = open(&accepts.url(), &impatient_with(&[("connect_timeout", "0.2")])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.to_string().contains("cannot connect within 200ms"), "{error}");

    // Nothing, and the first bytes of a response.
    for sent in [&b""[..], b"\0", b"\0\x04\0\0\0\0\0\x05qu"] {
        let fake = always(code::READ, move |peer, _| {
            peer.send(sent)?;
            std::thread::sleep(Duration::from_secs(60));
            None
        });
        let error = read_with(&fake, &impatient_at_silence()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert!(error.to_string().contains("the server did not answer for 300ms (3 attempts in"), "{error}");
    }
    let always_silent = always(code::READ, |_, _| {
        std::thread::sleep(Duration::from_secs(60));
        None
    });
    let options = options(&[("stall_timeout", "0.3"), ("max_attempts", "100"), ("total_timeout", "1")]);
    let error = open(&always_silent.url(), &options).unwrap().read_range(0..1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.to_string().contains("the server did not answer for 300ms ("), "{error}");
    let once = instead(code::READ, |_, _| {
        std::thread::sleep(Duration::from_secs(1));
        None
    });
    assert_eq!(read_with(&once, &impatient_at_silence()).unwrap(), b"quick");
}

#[test]
fn a_request_that_waits_is_cancelled() {
    let silent = |_: &mut Peer| {
        std::thread::sleep(Duration::from_secs(60));
        None
    };
    let accepts = Fake::start(silent);
    is_cancelled_soon(|| open(&accepts.url(), &impatient()));
    is_cancelled_soon(|| list(&accepts.url(), &impatient()));
    is_cancelled_soon(|| create(&accepts.url(), &impatient()));

    // It answers the sixth read.
    let reads = AtomicUsize::new(0);
    let fake = Fake::start(move |peer| {
        peer.welcome(DATA_SERVER)?;
        loop {
            let request = peer.request()?;
            if request.code != code::READ || reads.fetch_add(1, Ordering::Relaxed) >= 5 {
                peer.respond(&request, CONTENT)?;
            }
        }
    });
    let source = open(&fake.url(), &impatient()).unwrap();
    is_cancelled_soon(|| source.read_range(4..9));
    while fake.count(code::READ) < 5 {
        let _ = cancellable(|| true, || source.read_range(4..9));
    }
    assert_eq!(source.read_range(4..9).unwrap(), "quick");
    assert_eq!(fake.count(code::LOGIN), 1, "the connection is still used");
}

#[test]
fn a_file_that_is_opened_after_its_caller_was_cancelled_is_closed() {
    let fake = always(code::OPEN, |peer, stream| {
        std::thread::sleep(Duration::from_millis(300));
        peer.opened(stream, CONTENT.len(), 1)
    });
    let requests = Arc::clone(&fake.requests);
    let is_sent = move || requests.lock().unwrap().iter().any(|request| request.code == code::OPEN);
    let error = cancellable(is_sent, || open(&fake.url(), &impatient())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    let until = Instant::now() + Duration::from_secs(10);
    while fake.count(code::CLOSE) < 1 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!((fake.count(code::OPEN), fake.count(code::CLOSE)), (1, 1));
}

#[test]
fn a_server_that_sends_without_end_is_left() {
    // Empty parts, slowly and fast; messages.
    let endless: [Script; 3] = [
        |peer, stream| loop {
            std::thread::sleep(Duration::from_millis(100));
            peer.reply(stream, code::OKSOFAR, b"")?;
        },
        |peer, stream| loop {
            peer.reply(stream, code::OKSOFAR, b"")?;
        },
        |peer, _| loop {
            peer.reply(0, code::ATTN, &[&5002_u32.to_be_bytes()[..], &[0; 12]].concat())?;
        },
    ];
    for script in endless {
        let fake = always(code::READ, script);
        let source = open(&fake.url(), &impatient_with(&[("stall_timeout", "0.3"), ("total_timeout", "1")])).unwrap();
        assert_eq!(source.read_range(4..9).unwrap_err().kind(), ErrorKind::Timeout);
    }
}

/// Found by an attack: listings and uploads had the time of their largest size, also where no byte was transferred.
#[test]
fn a_request_without_bytes_has_the_total_time_only() {
    // Far more than a loaded machine takes for half a second.
    let brief = || options(&[("total_timeout", "0.5"), ("stall_timeout", "600")]);
    let is_late = |what: &str, action: &dyn Fn() -> crate::Result<()>| {
        let before = Instant::now();
        let error = action().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout, "{what}: {error}");
        assert!(before.elapsed() < Duration::from_secs(60), "{what}: {:?}", before.elapsed());
    };
    let waits: Script = |peer, stream| peer.wait(stream, code::WAIT, 36_000);
    let talks: Script = |peer, _| loop {
        peer.reply(0, code::ATTN, &[&5002_u32.to_be_bytes()[..], &[0; 12]].concat())?;
        std::thread::sleep(Duration::from_millis(100));
    };
    for script in [waits, talks] {
        let fake = always(code::LIST, script);
        is_late("list", &|| list(&fake.url(), &brief()).map(|_| ()));
    }
    for kind in [code::WRITE, code::SYNC, code::CLOSE, code::RENAME] {
        let fake = always(kind, waits);
        let upload = || {
            let mut sink = Box::new(create(&fake.url(), &brief())?);
            sink.append(b"some bytes")?;
            sink.commit()
        };
        is_late(&format!("request {kind}"), &upload);
    }
}

/// Found by an attack: the sum of a time and this one made a panic.
#[test]
fn timeouts_may_be_longer_than_clocks_count() {
    let fake = Fake::start(|peer| peer.serve(WITH_PAGES, CONTENT));
    for name in ["stall_timeout", "connect_timeout", "total_timeout"] {
        assert_eq!(read_with(&fake, &options(&[(name, "1e19")])).unwrap(), b"quick", "{name}");
    }
}

#[test]
fn servers_that_demand_other_credentials_are_errors_with_the_alternatives() {
    let fake = Fake::start(|peer| {
        peer.greet(DATA_SERVER)?;
        peer.log_in("&P=gsi,v:10600,c:ssl,ca:5168735f.0&P=krb5,x")
    });
    let error = open(&fake.url(), &impatient()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    let expected = format!(
        "cannot open {}: server 127.0.0.1:{port}: the server 127.0.0.1:{port} accepts only gsi, krb5 authentication; \
         supported are host, unix and tokens (ztn): use a server that accepts tokens, or https://127.0.0.1 if \
         available",
        fake.url(),
        port = fake.port
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!(fake.count(code::AUTH), 0);
}

#[test]
fn a_token_is_not_sent_without_tls() {
    let fake = Fake::start(|peer| {
        peer.greet(DATA_SERVER)?;
        peer.log_in("&P=ztn,0:4096:")?;
        peer.request().map(|_| ())
    });
    let error = open(&fake.url(), &impatient_with(&[("bearer_token", "eyJ0.eyJ1.s")])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.to_string().contains("it does not support TLS, which is required to send a token"), "{error}");
    assert_eq!(fake.count(code::AUTH), 0);
}

#[test]
fn an_authentication_that_is_refused_is_followed_by_the_next_one() {
    let fake = Fake::start(|peer| {
        peer.greet(DATA_SERVER)?;
        peer.log_in("&P=gsi,x&P=unix&P=host")?;
        let request = peer.request()?;
        assert!(request.payload.starts_with(b"unix\0"));
        peer.error(request.stream, 3030, "unknown user")?;
        let request = peer.request()?;
        assert_eq!(request.payload, b"host\0");
        peer.reply(request.stream, code::OK, b"")?;
        loop {
            let request = peer.request()?;
            peer.respond(&request, CONTENT)?;
        }
    });
    assert_eq!(read(&fake).unwrap(), b"quick");
}

#[test]
fn no_credentials_are_shown() {
    let fake = always(code::OPEN, |peer, stream| {
        peer.error(stream, 3010, "Unable to open /x?authz=Bearer%20eyJsecret&y=1; token eyJsecret is refused")
    });
    let url = fake.url().replace("127.0.0.1", "user:password@127.0.0.1") + "?authz=Bearer%20eyJsecret&y=1";
    let error = open(&url, &impatient()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    let expected =
        format!("cannot open {}?authz=***&y=1: Unable to open /x?authz=***&y=1; token *** is refused", fake.url());
    assert_eq!(error.to_string(), expected);

    let fake = Fake::start(|peer| peer.serve(DATA_SERVER, CONTENT));
    let url = fake.url().replace("127.0.0.1", "user:password@127.0.0.1") + "?authz=Bearer%20eyJsecret";
    let source = open(&url, &impatient_with(&[("bearer_token", "eyJsecret")])).unwrap();
    for shown in [format!("{source}"), format!("{source:?}")] {
        assert!(!shown.contains("secret") && !shown.contains("password"), "{shown}");
    }
}

#[test]
fn other_servers_and_other_urls_are_errors() {
    let fake = Fake::start(|peer| peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n"));
    let error = open(&fake.url(), &impatient()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSupported);
    assert!(error.to_string().ends_with("not an XRootD server"), "{error}");
    for (url, reason) in [
        ("root://", "the URL lacks a valid host and port"),
        ("root://:1094//x", "the URL lacks a valid host and port"),
        ("root://host:0//x", "the URL lacks a valid host and port"),
        ("root://ho st//x", "the URL lacks a valid host and port"),
        ("root://host//x\ny", "the URL contains a control character"),
        ("https://user:secret@host/x?token=y", "https:// is not an XRootD scheme"),
        ("x.root", "expected a root:// URL"),
    ] {
        let error = open(url, &impatient()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSupported);
        assert!(error.to_string().ends_with(reason), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    let error = open("root://no-such-host.invalid//x", &impatient()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

#[test]
fn a_cached_file_is_read_once() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(directory.path(), Cache::DEFAULT_BYTES).unwrap();
    let changed = Arc::new(AtomicUsize::new(0));
    let times = Arc::clone(&changed);
    let fake = Fake::start(move |peer| {
        peer.welcome(DATA_SERVER)?;
        loop {
            let request = peer.request()?;
            let time = 1_700_000_000 + times.load(Ordering::Relaxed);
            match request.code {
                code::OPEN => peer.opened(request.stream, CONTENT.len(), time)?,
                _ => peer.respond(&request, CONTENT)?,
            }
        }
    });
    for (change, expected) in [(0, 1), (0, 1), (1, 2), (1, 2)] {
        changed.store(change, Ordering::Relaxed);
        let url = format!("{}?authz=t", fake.url());
        let source = Storage::new(impatient()).with_cache(cache.clone()).open(&url).unwrap();
        assert_eq!(source.read_range(4..9).unwrap(), "quick");
        assert_eq!(fake.count(code::READ), expected);
    }
}

#[test]
fn requests_are_few() {
    let content = Arc::new(bytes(35 << 20));
    let fake = Fake::start(move |peer| peer.serve(WITH_PAGES, &content));
    let source = open(&fake.url(), &Options::default()).unwrap();
    assert_eq!((fake.count(code::OPEN), fake.count(code::QUERY)), (1, 1));
    // 75 pages, too far apart to be merged: 16 MiB in each vector.
    let ranges: Vec<_> = (0..75).map(|i| i * 480_000..i * 480_000 + 300_000).collect();
    source.read_ranges(&ranges).unwrap();
    assert_eq!(fake.count(code::READV), 2);
    assert_eq!(fake.count(code::PGREAD), 0);
    // A range that is larger than a chunk: parts of 16 MiB.
    source.read_range(0..35 << 20).unwrap();
    assert_eq!(fake.count(code::PGREAD), 3);
    // A check of each read, and nothing else.
    assert_eq!(fake.count(code::STAT), 5);
    assert_eq!(source.traffic().unwrap().requests(), 6);
    assert_eq!(fake.count(code::LOGIN), 1);
}
