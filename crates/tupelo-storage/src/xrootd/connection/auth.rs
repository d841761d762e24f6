//! Authentication: which protocol a server accepts that this client has credentials for.

use super::super::url::Server;
use crate::error::ErrorKind;
use crate::net::{Failure, Options, bearer_token};

/// Maximum size of a token (60 KiB): its length has 16 bits.
const MAX_TOKEN_BYTES: usize = 60 << 10;

/// Authentication protocols that an error names.
const MAX_SHOWN_PROTOCOLS: usize = 8;

/// The credentials of this client for one server.
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
        let token = match self.options.get("bearer_token") {
            _ if self.options.is_anonymous() => None,
            Some(token) => Some(token.trim().to_owned()),
            None => bearer_token()?,
        };
        match token {
            Some(token) if token.len() > MAX_TOKEN_BYTES => {
                let reason = format!("the token has {} bytes, limit is {MAX_TOKEN_BYTES}", token.len());
                Err(Failure::lasting(ErrorKind::NotSupported, reason))
            }
            token => Ok(token.filter(|token| !token.is_empty())),
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
        let accepts = format!("the server {server} accepts only {} authentication", names.join(", "));
        let mut reason = match refused {
            Some(refused) => format!("{accepts}, and rejected it: {}", refused.reason),
            None => accepts,
        };
        if names.contains(&"ztn") {
            reason += match () {
                () if !self.is_encrypted => "; it does not support TLS, which is required to send a token",
                () if !self.is_trusted => "; the redirect to it was not encrypted, so the token was not sent",
                () => "; set BEARER_TOKEN, BEARER_TOKEN_FILE or the option bearer_token to a valid token",
            };
        } else {
            reason += "; supported are host, unix and tokens (ztn): use a server that accepts tokens, or ";
            reason += &format!("https://{} if available", server.host);
        }
        Failure::lasting(ErrorKind::Denied, reason)
    }
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
    use super::*;

    #[test]
    fn tokens_have_the_layout_of_ztn() {
        assert_eq!(token_message("abc"), b"ztn\0\0T\0\0\0\x04abc\0");
    }
}
