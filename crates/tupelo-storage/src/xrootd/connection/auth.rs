//! Authentication: which protocol a server accepts that this client has credentials for.

use super::super::failure::Failure;
use super::super::options::Options;
use super::super::url::Server;
use crate::error::ErrorKind;
use crate::local::FileSource;
use crate::source::ByteSource;

/// Maximum size of a token (60 KiB): its length has 16 bits.
const MAX_TOKEN_BYTES: u64 = 60 << 10;

/// Authentication protocols that an error names.
const MAX_SHOWN_PROTOCOLS: usize = 8;

/// What this client can prove to one server.
pub(super) struct Identity<'a> {
    pub(super) options: &'a Options,
    /// Name of the user.
    pub(super) user: &'a str,
    /// Whether the connection is encrypted.
    pub(super) is_encrypted: bool,
    /// Whether this server may see the token: the URL names it, or a server to which that applied, over TLS.
    pub(super) is_trusted: bool,
}

impl Identity<'_> {
    /// The credentials for a protocol of the server; none if this client has none.
    pub(super) fn credentials(&self, protocol: &str) -> Result<Option<Vec<u8>>, Failure> {
        match protocol {
            "host" => Ok(Some(b"host\0".to_vec())),
            "unix" => Ok(Some(format!("unix\0{}\0", self.user).into_bytes())),
            "ztn" if self.is_encrypted && self.is_trusted => Ok(self.token()?.map(|token| token_message(&token))),
            _ => Ok(None),
        }
    }

    /// The token of the options or of the environment.
    fn token(&self) -> Result<Option<String>, Failure> {
        match &self.options.token {
            Some(token) => check_token(token.trim().to_owned()),
            None => discover(&|name| std::env::var(name).ok(), user_id()),
        }
    }

    /// Why none of the protocols that the server accepts was usable.
    pub(super) fn unusable(
        &self,
        server: &Server,
        protocols: &[(String, String)],
        refused: Option<Failure>,
    ) -> Failure {
        let names: Vec<&str> = protocols.iter().map(|(name, _)| name.as_str()).take(MAX_SHOWN_PROTOCOLS).collect();
        let accepts = format!("the server {server} accepts only the authentication {}", names.join(", "));
        let mut reason = match refused {
            Some(refused) => format!("{accepts}, and refused it: {}", refused.reason),
            None => accepts,
        };
        if names.contains(&"ztn") {
            reason += match () {
                () if !self.is_encrypted => "; it has no TLS, without which no token is sent",
                () if !self.is_trusted => "; the redirect to it was not encrypted, so the token is not sent",
                () => "; set BEARER_TOKEN or BEARER_TOKEN_FILE to a valid token",
            };
        } else {
            reason += "; this client has host, unix and tokens (ztn): use a server that accepts tokens, or ";
            reason += &format!("https://{} if it has that", server.host);
        }
        Failure::new(ErrorKind::Denied, reason)
    }
}

/// Refuses a token that the protocol cannot carry.
fn check_token(token: String) -> Result<Option<String>, Failure> {
    if token.len() as u64 > MAX_TOKEN_BYTES {
        return Err(Failure::new(ErrorKind::NotSupported, format!("the token has {} bytes", token.len())));
    }
    Ok((!token.is_empty()).then_some(token))
}

/// The token in the environment, as the WLCG bearer token discovery finds it.
fn discover(variable: &dyn Fn(&str) -> Option<String>, user_id: Option<u32>) -> Result<Option<String>, Failure> {
    let set = |name| variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    if let Some(token) = set("BEARER_TOKEN") {
        return check_token(token);
    }
    if let Some(path) = set("BEARER_TOKEN_FILE") {
        // The user has named this file: that it is missing must not be silent.
        return read_token(&path).map_err(|error| Failure::new(error.kind(), format!("BEARER_TOKEN_FILE: {error}")));
    }
    let Some(user_id) = user_id else { return Ok(None) };
    let directories = set("XDG_RUNTIME_DIR").into_iter().chain(["/tmp".to_owned()]);
    for path in directories.map(|directory| format!("{directory}/bt_u{user_id}")) {
        match read_token(&path) {
            Ok(Some(token)) => return Ok(Some(token)),
            Ok(None) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(Failure::new(error.kind(), error.to_string())),
        }
    }
    Ok(None)
}

fn read_token(path: &str) -> crate::Result<Option<String>> {
    let file = FileSource::open(path)?;
    let size = file.size()?;
    if size > MAX_TOKEN_BYTES {
        return Err(crate::Error::new(
            ErrorKind::NotSupported,
            "read the token in",
            path,
            format!("it has {size} bytes"),
        ));
    }
    let token = String::from_utf8_lossy(&file.read_range(0..size)?).trim().to_owned();
    Ok((!token.is_empty()).then_some(token))
}

#[cfg(unix)]
fn user_id() -> Option<u32> {
    Some(rustix::process::geteuid().as_raw())
}

#[cfg(not(unix))]
fn user_id() -> Option<u32> {
    None
}

/// The name of the user of this process; servers with the authentication `unix` believe it.
pub(super) fn user_name() -> String {
    let variable = |name| std::env::var(name).ok();
    let name = variable("LOGNAME").or_else(|| variable("USER")).or_else(|| variable("USERNAME")).unwrap_or_default();
    let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let name: String = name.chars().filter(plain).take(64).collect();
    if name.is_empty() { "unknown".to_owned() } else { name }
}

/// What `ztn` sends: its name, version 0, the operation `T`, and the token with its length and a zero byte.
fn token_message(token: &str) -> Vec<u8> {
    let len = u16::try_from(token.len() + 1).unwrap_or(u16::MAX);
    [b"ztn\0\0T\0\0", &len.to_be_bytes()[..], token.as_bytes(), b"\0"].concat()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn tokens_are_found_in_the_order_of_wlcg() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        fs::write(path("file"), " from-file\n").unwrap();
        fs::write(path("bt_u4294967295"), "from-runtime").unwrap();
        let mut variables = vec![("XDG_RUNTIME_DIR", path(""))];
        let found = |variables: &[(&str, String)]| {
            let variable =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
            discover(&variable, Some(u32::MAX))
        };
        assert_eq!(found(&[]).unwrap(), None);
        assert_eq!(found(&variables).unwrap().as_deref(), Some("from-runtime"));
        variables.push(("BEARER_TOKEN_FILE", path("file")));
        assert_eq!(found(&variables).unwrap().as_deref(), Some("from-file"));
        variables.push(("BEARER_TOKEN", " from-variable ".to_owned()));
        assert_eq!(found(&variables).unwrap().as_deref(), Some("from-variable"));
        variables[2].1 = " ".to_owned();
        assert_eq!(found(&variables).unwrap().as_deref(), Some("from-file"));

        let missing = found(&[("BEARER_TOKEN_FILE", path("missing"))]).unwrap_err();
        assert_eq!(missing.kind, ErrorKind::NotFound);
        assert!(missing.reason.starts_with("BEARER_TOKEN_FILE: cannot open"), "{missing:?}");
        fs::write(path("file"), vec![b'x'; 100_000]).unwrap();
        assert_eq!(found(&variables).unwrap_err().kind, ErrorKind::NotSupported);
    }

    #[test]
    fn tokens_have_the_layout_of_ztn() {
        assert_eq!(token_message("abc"), b"ztn\0\0T\0\0\0\x04abc\0");
    }
}
