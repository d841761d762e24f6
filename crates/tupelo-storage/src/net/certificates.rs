//! Authorities of certificates that the user names, and what failures of TLS mean.

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use rustls::pki_types::CertificateDer;
use rustls::{CertificateError, InvalidMessage};
use rustls_native_certs::load_certs_from_paths;

use super::failure::Failure;
use super::token::variable;
use crate::error::ErrorKind;

/// The settings that name authorities.
const NAMED: &str = "set the option ca_certificates or the variable SSL_CERT_FILE to a PEM file of authorities";

/// The authorities in a file in the format PEM.
///
/// # Errors
/// [`ErrorKind::Denied`] if there are none.
pub(crate) fn authorities(file: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let found = load_certs_from_paths(Some(file), None);
    if found.certs.is_empty() {
        let why = found.errors.first().map_or_else(String::new, |error| format!(": {error}"));
        let reason = format!("no certificate authorities for TLS were found in {}{why}", file.display());
        return Err(Failure::lasting(ErrorKind::Denied, reason));
    }
    Ok(found.certs)
}

impl Failure {
    /// The meaning of a permanent TLS failure; `None` for other errors.
    pub(crate) fn of_tls(error: &(dyn StdError + 'static)) -> Option<Self> {
        let (kind, reason) = match tls_error(error)? {
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
                (ErrorKind::NotSupported, "the server does not support TLS; use http://".to_owned())
            }
            rustls::Error::InvalidCertificate(why) => (ErrorKind::Denied, refused(why, missing(&variable))),
            // Of the verifier, where it finds none.
            rustls::Error::General(text) if text.contains("No CA certificates") => {
                (ErrorKind::Denied, with_missing("no certificate authorities for TLS were found", missing(&variable)))
            }
            _ => return None,
        };
        Some(Self::lasting(kind, reason))
    }
}

/// The error of TLS in a chain.
fn tls_error<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // The source of such an error is not what it wraps, but the source of that.
        if let Some(inner) = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            return tls_error(inner);
        }
        next = error.source();
    }
    None
}

/// Why a certificate was refused.
fn refused(why: &CertificateError, missing: Option<String>) -> String {
    let certificate = "the certificate of the server";
    match why {
        // A bad signature is that of another authority with the name of a known one.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            with_missing(&format!("{certificate} is not signed by a known authority"), missing)
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("{certificate} has expired, or the clock of this computer is wrong")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("{certificate} is not valid yet, or the clock of this computer is wrong")
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let names: Vec<&str> = presented.iter().map(|name| plain_name(name)).collect();
            let names = if names.is_empty() { "no names".to_owned() } else { names.join(", ") };
            format!("{certificate} is for {names}, not for {}", expected.to_str())
        }
        CertificateError::Other(other) if format!("{:?}", other.0) == "CaUsedAsEndEntity" => {
            format!("{certificate} is a CA certificate (CA:TRUE); the server needs a certificate with CA:FALSE")
        }
        CertificateError::Other(other) => format!("{certificate} is invalid: {}", words(&format!("{:?}", other.0))),
        why => format!("{certificate} is invalid: {}", words(&why.to_string())),
    }
}

/// The name in `DnsName("name")`.
fn plain_name(name: &str) -> &str {
    name.split(['(', ')']).nth(1).unwrap_or(name).trim_matches('"')
}

/// The words in the name of a Rust variant; other text as it is.
fn words(name: &str) -> String {
    if !name.chars().all(char::is_alphanumeric) {
        return name.to_owned();
    }
    let mut words = String::new();
    for c in name.chars() {
        let space = if c.is_uppercase() && !words.is_empty() { " " } else { "" };
        let _ = write!(words, "{space}{}", c.to_lowercase());
    }
    words
}

fn with_missing(reason: &str, missing: Option<String>) -> String {
    match missing {
        Some(missing) => format!("{reason}; {missing}"),
        None => format!("{reason}; {NAMED}"),
    }
}

/// The missing file or folder named by the variables for authorities. A folder may be a list of folders.
fn missing(variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let first = |name: &str, mut paths: Vec<PathBuf>| {
        paths.retain(|path| !path.exists());
        paths.first().map(|path| format!("the file in {name} does not exist: {}", path.display()))
    };
    let file = variable("SSL_CERT_FILE").map(|file| vec![PathBuf::from(file)]);
    let folders = variable("SSL_CERT_DIR").map(|folders| std::env::split_paths(&folders).collect());
    first("SSL_CERT_FILE", file.unwrap_or_default()).or_else(|| first("SSL_CERT_DIR", folders.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::OtherError;
    use rustls::pki_types::ServerName;

    use super::*;

    #[derive(Debug)]
    struct CaUsedAsEndEntity;

    impl std::fmt::Display for CaUsedAsEndEntity {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("odd")
        }
    }

    impl StdError for CaUsedAsEndEntity {}

    #[test]
    fn certificates_are_refused_in_plain_words() {
        let expected = ServerName::try_from("a.example").unwrap();
        let presented = vec!["DnsName(\"b.example\")".to_owned(), "IpAddress(10.0.0.1)".to_owned()];
        for (why, text) in [
            (
                CertificateError::UnknownIssuer,
                "is not signed by a known authority; set the option ca_certificates or the variable SSL_CERT_FILE to a \
                 PEM file of authorities",
            ),
            (CertificateError::Expired, "has expired, or the clock of this computer is wrong"),
            (
                CertificateError::Other(OtherError(Arc::new(CaUsedAsEndEntity))),
                "is a CA certificate (CA:TRUE); the server needs a certificate with CA:FALSE",
            ),
            (
                CertificateError::NotValidForNameContext { expected, presented },
                "is for b.example, 10.0.0.1, not for a.example",
            ),
            (CertificateError::InvalidPurpose, "is invalid: invalid purpose"),
        ] {
            assert_eq!(refused(&why, None), format!("the certificate of the server {text}"));
        }
    }

    #[test]
    fn a_file_of_authorities_that_does_not_exist_is_named() {
        let set = |name: &str| (name == "SSL_CERT_FILE").then(|| "/nope.pem".to_owned());
        let text = refused(&CertificateError::UnknownIssuer, missing(&set));
        assert_eq!(
            text,
            "the certificate of the server is not signed by a known authority; the file in SSL_CERT_FILE does not \
             exist: /nope.pem"
        );
        assert_eq!(missing(&|_| Some("/".to_owned())), None);
        assert_eq!(missing(&|_| None), None);
    }

    #[test]
    fn errors_of_tls_are_found_where_they_are_wrapped() {
        let plain = rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType);
        let wrapped = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, plain));
        let failure = Failure::of_tls(&wrapped).unwrap();
        assert_eq!(
            (failure.reason.as_str(), failure.is_transient),
            ("the server does not support TLS; use http://", false)
        );
        assert_eq!(Failure::of_tls(&io::Error::other("reset")), None);
    }
}
