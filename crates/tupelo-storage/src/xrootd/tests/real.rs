//! Reading from the `xrootd` server.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::super::*;
use super::fake::{DATA_SERVER, Fake};
use super::server::Server;
use super::{bytes, options, quick};
use crate::laws::source_laws;
use crate::{ByteSource, ErrorKind};

/// Certificates of an authority, which is made for the test, and of a server. Gives the lines of configuration.
pub(super) fn certify(folder: &Path) -> String {
    let mut authority = rcgen::CertificateParams::new([]).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = rcgen::CertifiedIssuer::self_signed(authority, rcgen::KeyPair::generate().unwrap()).unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
    let certificate = rcgen::CertificateParams::new(names).unwrap().signed_by(&key, &authority).unwrap();
    fs::write(folder.join("ca.pem"), authority.pem()).unwrap();
    fs::write(folder.join("cert.pem"), certificate.pem()).unwrap();
    fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
    fs::set_permissions(folder.join("key.pem"), fs::Permissions::from_mode(0o600)).unwrap();
    format!("xrd.tls {0}/cert.pem {0}/key.pem\nxrd.tlsca certfile {0}/ca.pem\n", folder.display())
}

fn certified(server: &Server) -> Options {
    certified_with(server, &[])
}

fn certified_with(server: &Server, more: &[(&str, &str)]) -> Options {
    let file = server.folder().join("ca.pem");
    options(&[&[("ca_certificates", file.to_str().unwrap())], more].concat())
}

#[test]
fn files_keep_the_laws_of_a_source() {
    let Some(server) = Server::start() else { return };
    for len in [0, 1, 300_000] {
        let expected = bytes(len);
        let url = server.put(&format!("folder/x{len}.root"), &expected);
        let source = open(&url, &quick()).unwrap();
        assert_eq!(source.to_string(), url);
        source_laws(&source, &expected);
    }
}

#[test]
fn ranges_larger_than_any_request_are_read() {
    let Some(server) = Server::start() else { return };
    let expected = bytes(30 << 20);
    let source = open(&server.put("x", &expected), &quick()).unwrap();
    let size = expected.len() as u64;
    for range in [0..size, 1..size, 4097..9 << 20] {
        let found = source.read_range(range.clone()).unwrap();
        assert!(found == expected[range.start as usize..range.end as usize], "{range:?}");
    }
    let traffic = source.traffic().unwrap();
    let (requests, transferred) = (traffic.requests(), traffic.bytes());
    // More chunks than one request has, each too far from the next one to be merged.
    let ranges: Vec<_> = (0..200).map(|i| i * 150_000..i * 150_000 + 10).chain(std::iter::once(0..5 << 20)).collect();
    let found = source.read_ranges(&ranges).unwrap();
    assert!(
        ranges.iter().zip(&found).all(|(range, bytes)| *bytes == expected[range.start as usize..range.end as usize])
    );
    // Each read has a check.
    assert!((2..=4).contains(&(traffic.requests() - requests)), "{} requests", traffic.requests() - requests);
    assert!(traffic.bytes() - transferred >= 5 << 20);
    assert_eq!(traffic.retries(), 0);
}

#[test]
fn opening_anything_but_a_file_is_an_error_with_a_reason() {
    let Some(server) = Server::start() else { return };
    server.put("folder/x", b"x");
    let missing = open(&server.url("folder/y"), &quick()).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(missing.to_string().contains("No such file") || missing.to_string().contains("no such file"), "{missing}");
    let directory = open(&server.url("folder"), &quick()).unwrap_err();
    assert_eq!(directory.kind(), ErrorKind::NotSupported, "{directory}");
}

#[test]
fn a_server_that_comes_back_is_found_again() {
    let Some(mut server) = Server::start() else { return };
    let expected = bytes(1 << 20);
    let source = open(&server.put("x", &expected), &quick()).unwrap();
    server.kill();
    server.restart();
    assert_eq!(source.read_range(5..1000).unwrap(), expected[5..1000]);
    server.kill();
    let error = source.read_range(5..1000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("6 attempts in"), "{error}");
}

#[test]
fn a_replaced_file_is_an_error() {
    let Some(mut server) = Server::start() else { return };
    let url = server.put("x", &bytes(1000));
    let (source, other) = (open(&url, &quick()).unwrap(), open(&url, &quick()).unwrap());
    server.kill();
    server.put("x", &bytes(1001));
    server.restart();
    let error = source.read_range(0..10).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed);
    assert!(error.to_string().ends_with("its size changed from 1000 to 1001 bytes"), "{error}");
    // The same size at another time.
    server.kill();
    server.put("x", &bytes(1000));
    let file = fs::File::options().write(true).open(server.path("x")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
    server.restart();
    let error = other.read_range(0..10).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed);
    assert!(error.to_string().ends_with("it was modified after it was opened"), "{error}");
}

#[test]
fn a_truncated_file_is_an_error() {
    let Some(server) = Server::start() else { return };
    let source = open(&server.put("x", &bytes(10 << 20)), &quick()).unwrap();
    fs::File::options().write(true).open(server.path("x")).unwrap().set_len(5000).unwrap();
    let error = source.read_range(0..10 << 20).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed, "{error}");
    let error = source.read_ranges(&[0..10, 1 << 20..(1 << 20) + 10]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed, "{error}");
}

#[test]
fn users_and_hosts_are_authenticated() {
    for protocol in ["unix", "host"] {
        let configuration = format!("xrootd.seclib libXrdSec.so\nsec.protocol {protocol}\n");
        let Some(server) = Server::configured(|_| configuration.clone()) else { return };
        let source = open(&server.put("x", b"content"), &quick()).unwrap();
        assert_eq!(source.read_range(0..7).unwrap(), "content");
    }
}

#[test]
fn encrypted_files_keep_the_laws_of_a_source() {
    for demand in ["none", "login", "session", "all"] {
        let Some(server) = Server::configured(|folder| format!("{}xrootd.tls {demand}\n", certify(folder))) else {
            return;
        };
        let expected = bytes(100_000);
        let url = server.put("x", &expected);
        if demand == "none" {
            assert_eq!(open(&url, &quick()).unwrap().read_range(0..10).unwrap(), expected[..10]);
        } else {
            source_laws(&open(&url, &certified(&server)).unwrap(), &expected);
        }
        let url = url.replace("root://", "roots://");
        source_laws(&open(&url, &certified(&server)).unwrap(), &expected);
    }
}

#[test]
fn servers_with_unknown_certificates_or_without_tls_are_refused() {
    let Some(server) = Server::configured(certify) else { return };
    let url = server.put("x", b"content").replace("root://", "roots://");
    let error = open(&url, &quick()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");

    let Some(plain) = Server::start() else { return };
    let url = plain.put("x", b"content").replace("root://", "roots://");
    let error = open(&url, &quick()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.to_string().contains("the server does not support TLS"), "{error}");
}

/// A server that accepts only tokens, and such a token. None where the server has no plug-in for them.
fn token_server() -> Option<(Server, String)> {
    let token = std::cell::RefCell::new(String::new());
    let configuration = |folder: &Path| {
        let script =
            [Path::new(env!("CARGO_MANIFEST_DIR")), Path::new("src/xrootd/tests/token.py")].iter().collect::<PathBuf>();
        let output = Command::new("python3").arg(script).arg(folder).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        *token.borrow_mut() = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        let issuer = "[Issuer test]\nissuer = https://tokens.example\nbase_path = /\n";
        fs::write(folder.join("tokens.cfg"), issuer).unwrap();
        let library = format!("ofs.authlib libXrdAccSciTokens.so config={}/tokens.cfg", folder.display());
        let security = "xrootd.seclib libXrdSec.so\nsec.protocol ztn\nofs.authorize 1";
        format!("{}xrootd.tls none\n{security}\n{library}\n", certify(folder))
    };
    let server = Server::with_plugin("libXrdAccSciTokens-5.so", configuration)?;
    Some((server, token.into_inner()))
}

#[test]
fn tokens_are_accepted_over_tls_only() {
    let Some((server, token)) = token_server() else { return };
    let url = server.put("x", b"content");
    for url in [url.clone(), url.replace("root://", "roots://")] {
        let source = open(&url, &certified_with(&server, &[("bearer_token", &token)])).unwrap();
        assert_eq!(source.read_range(0..7).unwrap(), "content");
        assert!(!format!("{source:?}").contains(&token));
    }
    let none = open(&url, &certified_with(&server, &[("bearer_token", &token), ("anonymous", "true")])).unwrap_err();
    assert_eq!(none.kind(), ErrorKind::Denied);
    assert!(none.to_string().contains("set BEARER_TOKEN"), "{none}");
    let invalid =
        open(&url, &certified_with(&server, &[("bearer_token", "eyJhIjoxfQ.eyJhIjoxfQ.eyJhIjoxfQ")])).unwrap_err();
    assert_eq!(invalid.kind(), ErrorKind::Denied);
    assert!(!invalid.to_string().contains("eyJ"), "{invalid}");
}

#[test]
fn a_token_does_not_follow_a_redirect_without_tls() {
    let Some((server, token)) = token_server() else { return };
    server.put("x", b"content");
    let port = i32::from(server.port());
    let redirector = Fake::start(move |peer| {
        peer.welcome(DATA_SERVER)?;
        let request = peer.request()?;
        peer.redirect(request.stream, port, "localhost")
    });
    let url = redirector.url().replace("folder/x.root", "x");
    let error = open(&url, &certified_with(&server, &[("bearer_token", &token)])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.to_string().contains("the redirect to it was not encrypted"), "{error}");
}
