//! Connections: from a host name to a server that accepts requests.

mod auth;
mod channel;

use std::sync::Arc;
use std::time::Duration;

use rustls_native_certs::{load_certs_from_paths, load_native_certs};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto, pki_types::CertificateDer, pki_types::ServerName};

pub(super) use channel::{Reply, Room};

use super::message::{
    HANDSHAKE, Header, Login, MAX_CONTROL_BYTES, ProtocolInfo, Request, ServerError, Status, Tls, flags,
};
use super::url::Server;
use crate::error::ErrorKind;
use crate::net::{Failure, Options, authorities};
use auth::{Identity, user_name};
use channel::{Channel, Streams};

/// The folder in which grid sites keep the certificates of their authorities, unless `X509_CERT_DIR` names another one.
const GRID_CERTIFICATES: &str = "/etc/grid-security/certificates";
/// The length of the answer to the handshake itself, before that to `kXR_protocol`.
const HANDSHAKE_ANSWER_BYTES: u32 = 8;

/// What a connection needs besides the name of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Terms {
    /// Whether it must be encrypted.
    pub(super) tls: bool,
    /// Whether the server may see a token.
    pub(super) is_trusted: bool,
    pub(super) user: Option<String>,
    /// A token of a redirect for the login.
    pub(super) login_token: Option<String>,
}

/// A server that accepts requests.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) channel: Channel,
    pub(super) server: Server,
    pub(super) is_encrypted: bool,
    /// Whether the server has pages with checksums.
    pub(super) has_pages: bool,
    /// Whether it may see a token, and so may those that it redirects to over TLS.
    pub(super) is_trusted: bool,
}

impl Connection {
    /// Connects within the timeout of the options.
    pub(super) async fn open(server: &Server, terms: &Terms, options: &Options) -> Result<Self, Failure> {
        let opening = async {
            let first = Self::attempt(server, terms, options).await?;
            match first {
                Attempt::Ready(connection) => Ok(connection),
                Attempt::NeedsTls => {
                    let terms = Terms { tls: true, ..terms.clone() };
                    match Self::attempt(server, &terms, options).await? {
                        Attempt::Ready(connection) => Ok(connection),
                        Attempt::NeedsTls => {
                            Err(Failure::lasting(ErrorKind::Denied, "the server does not support TLS"))
                        }
                    }
                }
            }
        };
        let time = options.limits().connect;
        let late = || Failure::transient(ErrorKind::Timeout, format!("cannot connect within {time:?}"));
        let connection = timeout(time, opening).await.unwrap_or_else(|_| Err(late()));
        connection.map_err(|failure| failure.context(format_args!("server {server}")))
    }

    async fn attempt(server: &Server, terms: &Terms, options: &Options) -> Result<Attempt, Failure> {
        let mut stream = dial(server, options.limits().connect).await?;
        let tls = if terms.tls { Tls::Want } else { Tls::Able };
        let mut first = HANDSHAKE.to_vec();
        first.append(&mut Request::Protocol { tls }.encode(0)?);
        let mut info = protocol(&mut stream, &first, true).await?;
        let demanded = info.flags & flags::NEED_TLS != 0;
        if demanded && info.flags & (flags::GOTO_TLS | flags::HAVE_TLS) == flags::HAVE_TLS {
            info = protocol(&mut stream, &Request::Protocol { tls: Tls::Want }.encode(0)?, false).await?;
        }
        let is_encrypted = info.flags & flags::GOTO_TLS != 0;
        if terms.tls && !is_encrypted {
            return Err(Failure::lasting(
                ErrorKind::Denied,
                "the server does not support TLS, which the URL or the token requires",
            ));
        }
        let streams: Streams = if is_encrypted {
            let config = tls_config(options)?;
            let name = ServerName::try_from(server.host.clone())
                .map_err(|_| Failure::lasting(ErrorKind::Denied, "no certificate can have this host name"))?;
            // A certificate that is refused now will be refused again.
            let refused = |error: std::io::Error| match error.kind() {
                std::io::ErrorKind::InvalidData => Failure::lasting(ErrorKind::Denied, format!("TLS: {error}")),
                _ => Failure::from(error).context("TLS"),
            };
            let stream = TlsConnector::from(config).connect(name, stream).await.map_err(refused)?;
            let (reader, writer) = tokio::io::split(stream);
            (Box::new(reader), Box::new(writer))
        } else {
            let (reader, writer) = stream.into_split();
            (Box::new(reader), Box::new(writer))
        };
        let connection = Self {
            channel: Channel::new(streams, options.limits().stall),
            server: server.clone(),
            is_encrypted,
            has_pages: info.flags & flags::PAGES != 0,
            is_trusted: terms.is_trusted,
        };
        let has_tls = info.flags & flags::HAVE_TLS != 0;
        connection.log_in(terms, options, has_tls).await
    }

    /// Login and authentication.
    async fn log_in(self, terms: &Terms, options: &Options, has_tls: bool) -> Result<Attempt, Failure> {
        let user = terms.user.clone().unwrap_or_else(user_name);
        let token = terms.login_token.clone().unwrap_or_default();
        let login = Request::Login { user: user.clone(), process: std::process::id(), parameters: token };
        let Reply::Done(body) = self.channel.call(&login, Room::control()).await? else {
            return Err(unexpected(&login));
        };
        let protocols = Login::parse(&body)?.protocols;
        if protocols.is_empty() {
            return Ok(Attempt::Ready(self));
        }
        let identity = Identity { options, user: &user, is_encrypted: self.is_encrypted, is_trusted: self.is_trusted };
        let mut refused = None;
        for (protocol, _) in &protocols {
            let Some(credentials) = identity.credentials(protocol)? else { continue };
            let request = Request::Auth { protocol: protocol.clone(), credentials };
            match self.channel.call(&request, Room::control()).await {
                Ok(Reply::Done(_)) => return Ok(Attempt::Ready(self)),
                Ok(_) => return Err(unexpected(&request)),
                Err(failure) if failure.kind == ErrorKind::Denied => refused = Some(failure),
                Err(failure) => return Err(failure),
            }
        }
        let token_is_offered = protocols.iter().any(|(name, _)| name == "ztn");
        if token_is_offered && has_tls && !self.is_encrypted {
            return Ok(Attempt::NeedsTls);
        }
        Err(identity.unusable(&self.server, &protocols, refused))
    }
}

/// A connection, or why another one is needed.
enum Attempt {
    Ready(Connection),
    /// Tokens are accepted, but only sent over TLS.
    NeedsTls,
}

#[cold]
fn unexpected(request: &Request) -> Failure {
    Failure::lasting(ErrorKind::NotSupported, format!("the server sent an unexpected response to {request:?}"))
}

/// Connects to the first address of a host that accepts.
async fn dial(Server { host, port }: &Server, time: Duration) -> Result<TcpStream, Failure> {
    let unknown = |error: std::io::Error| Failure::lasting(ErrorKind::NotFound, format!("unknown host: {error}"));
    let addresses: Vec<_> = lookup_host((host.as_str(), *port)).await.map_err(unknown)?.collect();
    let each = time / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
    let mut failure = Failure::lasting(ErrorKind::NotFound, "the host name resolves to no address");
    for address in addresses {
        match timeout(each, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Requests are small, and wait for nothing.
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Ok(Err(error)) => failure = Failure::from(error),
            Err(_) => failure = Failure::transient(ErrorKind::Timeout, format!("cannot connect within {each:?}")),
        }
    }
    Err(failure)
}

/// The exchange before the connection may become encrypted, so without reading ahead.
async fn protocol(stream: &mut TcpStream, request: &[u8], is_first: bool) -> Result<ProtocolInfo, Failure> {
    stream.write_all(request).await?;
    if is_first {
        let answer = read_header(stream).await?;
        if answer.len != HANDSHAKE_ANSWER_BYTES {
            return Err(Failure::lasting(ErrorKind::NotSupported, "not an XRootD server"));
        }
        read_body(stream, answer).await?;
    }
    let header = read_header(stream).await?;
    let body = read_body(stream, header).await?;
    match header.status {
        Status::Ok => Ok(ProtocolInfo::parse(&body)?),
        Status::Error => Err(ServerError::parse(&body)?.into()),
        _ => Err(unexpected(&Request::Protocol { tls: Tls::Able })),
    }
}

async fn read_header(stream: &mut TcpStream) -> Result<Header, Failure> {
    let mut header = [0; Header::BYTES];
    stream.read_exact(&mut header).await?;
    // Other servers answer in their own protocol, or not at all.
    let header = Header::parse(header).ok().filter(|header| header.stream == 0);
    header.ok_or_else(|| Failure::lasting(ErrorKind::NotSupported, "not an XRootD server"))
}

async fn read_body(stream: &mut TcpStream, header: Header) -> Result<Vec<u8>, Failure> {
    let len = header.len as usize;
    if len > MAX_CONTROL_BYTES {
        return Err(Failure::lasting(ErrorKind::NotSupported, "not an XRootD server"));
    }
    let mut body = vec![0; len];
    stream.read_exact(&mut body).await?;
    Ok(body)
}

/// The TLS set-up of a connection.
fn tls_config(options: &Options) -> Result<Arc<ClientConfig>, Failure> {
    let found = match options.authorities() {
        Some(file) => authorities(file)?,
        None => system_authorities(),
    };
    let mut roots = RootCertStore::empty();
    let (usable, _) = roots.add_parsable_certificates(found);
    if usable == 0 {
        let reason = "found no certificate authorities for TLS; set the option ca_certificates to a file";
        return Err(Failure::lasting(ErrorKind::Denied, reason));
    }
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::lasting(ErrorKind::Other, error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// The authorities of the system and those of the grid.
fn system_authorities() -> Vec<CertificateDer<'static>> {
    let mut found = load_native_certs().certs;
    let folder = std::env::var("X509_CERT_DIR").unwrap_or_else(|_| GRID_CERTIFICATES.to_owned());
    // Most machines have no such folder.
    found.append(&mut load_certs_from_paths(None, Some(folder.as_ref())).certs);
    found
}
