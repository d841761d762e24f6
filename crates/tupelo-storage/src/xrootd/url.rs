//! URLs of files and servers, and how they are shown without credentials.

use std::collections::HashSet;
use std::fmt;

use super::message::{Malformed, Redirect};
use crate::error::ErrorKind;
use crate::net::{Failure, hide_parameters, is_secret};

/// The port of a server whose URL has none.
pub const DEFAULT_PORT: u16 = 1094;

/// Schemes up to this length are shown in errors.
const MAX_SCHEME_BYTES: usize = 16;

/// Maximum length of the parameters of a URL after a redirect, in bytes (16 KiB).
const MAX_OPAQUE_BYTES: usize = 16 << 10;

/// A server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) host: String,
    pub(super) port: u16,
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// A path on a server: `root://user@host:port//path?parameters`. `Display` and `Debug` hide user and credentials.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Url {
    pub(super) server: Server,
    /// Whether all connections must be encrypted: `roots://`.
    pub(super) tls: bool,
    pub(super) user: Option<String>,
    /// Starts with a slash.
    pub(super) path: String,
    /// Opaque information, without the question mark.
    pub(super) opaque: Option<String>,
}

impl Url {
    /// Parses a URL of the schemes `root`, `roots`, `xroot` and `xroots`.
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let unsupported = |reason: &str| Failure::lasting(ErrorKind::NotSupported, reason);
        let (scheme, rest) = text.split_once("://").ok_or_else(|| unsupported("expected a root:// URL"))?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "root" | "xroot" => false,
            "roots" | "xroots" => true,
            other if other.len() <= MAX_SCHEME_BYTES => {
                return Err(unsupported(&format!("{other}:// is not an XRootD scheme")));
            }
            _ => return Err(unsupported("expected a root:// URL")),
        };
        if rest.chars().any(char::is_control) {
            return Err(unsupported("the URL contains a control character"));
        }
        let (rest, opaque) = rest.split_once('?').map_or((rest, None), |(rest, opaque)| (rest, Some(opaque)));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, authority) =
            authority.rsplit_once('@').map_or((None, authority), |(user, authority)| (Some(user), authority));
        // A password has no use in this protocol.
        let user = user.map(|user| user.split(':').next().unwrap_or_default().to_owned());
        let server = Server::parse(authority).ok_or_else(|| unsupported("the URL lacks a valid host and port"))?;
        let path = format!("/{}", path.trim_start_matches('/'));
        let opaque = opaque.filter(|opaque| !opaque.is_empty()).map(str::to_owned);
        Ok(Self { server, tls, user: user.filter(|user| !user.is_empty()), path, opaque })
    }

    /// The path with opaque information, as requests have it.
    pub(super) fn request_path(&self) -> String {
        with_opaque(&self.path, self.opaque.as_deref())
    }

    /// The target of a redirect. Opaque information of this URL goes to the next server, but its credentials only if
    /// `trusted`: both connections are encrypted.
    pub(super) fn redirected(&self, redirect: &Redirect, trusted: bool) -> Result<Self, Failure> {
        let to = if redirect.port >= 0 && !redirect.target.contains("://") {
            let port = u16::try_from(redirect.port).map_err(|_| invalid())?;
            let host = redirect.target.trim_start_matches('[').trim_end_matches(']');
            let server = Server { host: host.to_owned(), port: if port == 0 { DEFAULT_PORT } else { port } };
            Self { server, tls: self.tls, user: self.user.clone(), path: self.path.clone(), opaque: None }
        } else {
            let mut to = Self::parse(&redirect.target).map_err(|error| error.context("the server redirected"))?;
            // A URL without a path keeps the path.
            if to.path == "/" {
                to.path.clone_from(&self.path);
            }
            Self { tls: to.tls || self.tls, user: to.user.or_else(|| self.user.clone()), ..to }
        };
        if !to.server.is_valid() {
            return Err(invalid());
        }
        let kept = |parameter: &&str| to.server == self.server || trusted || !is_secret(parameter);
        let own = self.opaque.iter().flat_map(|opaque| opaque.split('&')).filter(kept);
        // Parameters added by the server come first and take precedence.
        let added: Vec<&str> = redirect.opaque.iter().flat_map(|opaque| opaque.split('&')).collect();
        // Without a set, the parameters of two redirects would be compared each with each.
        let names: HashSet<&str> = added.iter().copied().map(name).collect();
        let own: Vec<&str> = own.filter(|own| !names.contains(name(own))).collect();
        let all: Vec<&str> = added.into_iter().chain(own).filter(|parameter| !parameter.is_empty()).collect();
        let opaque = all.join("&");
        if opaque.len() > MAX_OPAQUE_BYTES {
            return Err(too_long(&to.server, opaque.len()));
        }
        Ok(Self { opaque: (!opaque.is_empty()).then_some(opaque), ..to })
    }
}

/// The name of a parameter.
fn name(parameter: &str) -> &str {
    parameter.split('=').next().unwrap_or_default()
}

impl Server {
    /// Parses `host`, `host:port`, `[address]` or `[address]:port`.
    fn parse(text: &str) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']')?;
                (host, rest.strip_prefix(':').or_else(|| rest.is_empty().then_some(""))?)
            }
            None => text.split_once(':').unwrap_or((text, "")),
        };
        let port = if port.is_empty() { DEFAULT_PORT } else { port.parse().ok().filter(|&port| port != 0)? };
        let server = Self { host: host.to_owned(), port };
        server.is_valid().then_some(server)
    }

    fn is_valid(&self) -> bool {
        let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '%');
        !self.host.is_empty() && self.host.len() <= 255 && self.host.chars().all(valid)
    }
}

/// A path with opaque information.
pub(super) fn with_opaque(path: &str, opaque: Option<&str>) -> String {
    match opaque {
        Some(opaque) => format!("{path}?{opaque}"),
        None => path.to_owned(),
    }
}

#[cold]
fn invalid() -> Failure {
    Malformed("the server redirected to an invalid host".to_owned()).into()
}

#[cold]
fn too_long(server: &Server, len: usize) -> Failure {
    let reason = format!("the redirect to {server} has parameters of {len} bytes, limit is {MAX_OPAQUE_BYTES}");
    Malformed(reason).into()
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "roots" } else { "root" };
        // Two slashes: an absolute path.
        write!(f, "{scheme}://{}/{}", self.server, self.path)?;
        match &self.opaque {
            Some(opaque) => write!(f, "?{}", hide_parameters(opaque)),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Url({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redirect(target: &str, port: i32, opaque: Option<&str>) -> Redirect {
        Redirect { target: target.to_owned(), port, opaque: opaque.map(str::to_owned), token: None }
    }

    #[test]
    fn urls_are_parsed_as_users_write_them() {
        for (text, shown) in [
            ("root://host//data/x.root", "root://host:1094//data/x.root"),
            ("root://host/data/x.root", "root://host:1094//data/x.root"),
            ("XROOTS://user@host:2000///x", "roots://host:2000//x"),
            ("root://[::1]:1095//x?a=1?b", "root://[::1]:1095//x?a=1?b"),
            ("xroot://host", "root://host:1094//"),
            ("root://host//x?", "root://host:1094//x"),
        ] {
            assert_eq!(Url::parse(text).unwrap().to_string(), shown);
        }
        let url = Url::parse("root://me:secret@host//a b?authz=x").unwrap();
        assert_eq!((url.user.as_deref(), url.request_path().as_str()), (Some("me"), "/a b?authz=x"));
        assert_eq!(format!("{url:?}"), "Url(root://host:1094//a b?authz=***)");
    }

    #[test]
    fn redirects_keep_path_parameters_and_encryption() {
        let url = Url::parse("roots://host//x?a=1&authz=t").unwrap();
        let to = url.redirected(&redirect("other", 0, Some("a=2&b=3")), true).unwrap();
        assert_eq!(to.request_path(), "/x?a=2&b=3&authz=t");
        assert_eq!(to.to_string(), "roots://other:1094//x?a=2&b=3&authz=***");
        let to = url.redirected(&redirect("root://other:5//y", -1, None), false).unwrap();
        assert_eq!((to.request_path().as_str(), to.tls), ("/y?a=1", true));
        let to = url.redirected(&redirect("root://other", -1, None), false).unwrap();
        assert_eq!(to.request_path(), "/x?a=1");
        let to = url.redirected(&redirect("[::1]", 7, None), false).unwrap();
        assert_eq!(to.server.to_string(), "[::1]:7");
        // The same server has seen the credentials.
        let to = url.redirected(&redirect("host", 1094, None), false).unwrap();
        assert_eq!(to.request_path(), "/x?a=1&authz=t");
    }

    /// Found by an attack: two redirects with 32 000 parameters each took 45 s, which no timeout ended.
    #[test]
    fn parameters_of_redirects_are_bounded() {
        let url = Url::parse("root://host//x?a=1&b=2").unwrap();
        let error = url.redirected(&redirect("other", 0, Some(&["c"; 32_000].join("&"))), false).unwrap_err();
        let expected = "the redirect to other:1094 has parameters of 64007 bytes, limit is 16384";
        assert_eq!(error.reason, expected);
        let most = "b&".repeat(MAX_OPAQUE_BYTES / 2 - 2);
        let to = url.redirected(&redirect("other", 0, Some(&most)), false).unwrap();
        assert_eq!(to.request_path(), format!("/x?{most}a=1"));
        assert!(to.redirected(&redirect("other", 0, Some("long=parameter")), false).is_err());
    }
}
