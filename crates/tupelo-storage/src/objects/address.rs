//! The URIs of data sets that are stored as many objects: `ntpl+SCHEME:…/NAME` and `daos://…`, as ROOT writes them.
//!
//! | URI | namespace | key |
//! |---|---|---|
//! | `ntpl+file:DIRECTORY/NAME`, `ntpl+file:///DIRECTORY/NAME` | the directory | `NAME` |
//! | `ntpl+s3://BUCKET/PREFIX/NAME`, with `gs`, `az` and their synonyms | the bucket with `PREFIX/` | `NAME` |
//! | `ntpl+s3+https://HOST/BUCKET/PREFIX/NAME`, with `s3+http` | the same on this server | `NAME` |
//! | `ntpl+https://HOST/PREFIX/NAME`, with `http` | the folder of the web server | `NAME`, decoded |
//! | `daos://POOL/CONTAINER:NAME` | the DAOS container | `NAME` |
//!
//! `POOL` and `CONTAINER` are labels or UUIDs, and `NAME` follows the last colon. What has this name in the container are
//! objects whose keys are numbers, so the key itself is not one of an object.

use std::path::{self, PathBuf};

use object_store::path::Path as ObjectPath;

use super::key;
use crate::daos::DaosPlace;
use crate::error::{Error, ErrorKind, Result};
use crate::net;

/// Prefix of the schemes.
const PREFIX: &str = "ntpl+";

/// Prefix of the URIs of containers.
const DAOS: &str = "daos://";

/// Whether a name is the URI of a data set that is stored as many objects: its scheme begins with `ntpl+`, or is `daos`.
pub fn is_object_uri(name: &str) -> bool {
    inner(name).is_some() || is_in_container(name)
}

/// Splits the URI of a DAOS container, or of something in it, into the URI of the container and the name in it; `None`
/// for other names.
pub fn split_container(uri: &str) -> Option<(&str, Option<&str>)> {
    if !is_in_container(uri) {
        return None;
    }
    match uri.rsplit_once(':') {
        Some((container, name)) if !name.contains('/') => Some((container, Some(name))),
        _ => Some((uri, None)),
    }
}

fn is_in_container(name: &str) -> bool {
    starts_with(name, DAOS)
}

/// The URI without this prefix.
fn inner(name: &str) -> Option<&str> {
    let start = name.get(..PREFIX.len()).filter(|start| start.eq_ignore_ascii_case(PREFIX))?;
    let rest = &name[start.len()..];
    let (scheme, _) = rest.split_once(':')?;
    let is_scheme = !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c));
    is_scheme.then_some(rest)
}

/// The URI without what may be secret: user name, password, query string and fragment.
pub(crate) fn object_display_name(uri: &str) -> String {
    let shown = uri.split(['?', '#']).next().unwrap_or_default();
    match inner(shown) {
        Some(rest) if !is_file(rest) => format!("{}{}", &shown[..PREFIX.len()], net::display_name(rest)),
        None if is_in_container(shown) => net::display_name(shown),
        _ => shown.to_owned(),
    }
}

/// Whether the scheme after the prefix is `file`.
fn is_file(rest: &str) -> bool {
    rest.split_once(':').is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("file"))
}

/// The location of the objects of a data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) place: NamespaceAddress,
    /// The URI of the namespace, which precedes keys in messages.
    pub(super) base: String,
    /// The key that the URI ends with.
    pub(super) key: String,
}

/// A namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NamespaceAddress {
    Directory(PathBuf),
    /// The URL of a folder, which ends with a slash.
    Server(String),
    /// A DAOS container.
    Container(DaosPlace),
}

impl Address {
    /// Parses the URI of a data set. Slashes at its end are dropped.
    pub(super) fn parse(uri: &str, action: &'static str) -> Result<Self> {
        let refused = |reason| refused(uri, action, reason);
        if is_in_container(uri) {
            return Self::in_container(uri).map_err(refused);
        }
        let rest = checked(uri, action)?.trim_end_matches('/');
        let no_name = || refused("the URI does not end with the name of a data set");
        let start = uri.len() - uri.trim_end_matches('/').len();
        let base_of = |name: &str| uri[..uri.len() - start - name.len()].to_owned();
        if is_file(rest) {
            let path = file_path(rest);
            let name = path.rsplit(path::is_separator).next().unwrap_or(path);
            if !key::is_valid(name) {
                return Err(no_name());
            }
            let directory = &path[..path.len() - name.len()];
            return Ok(Self {
                place: NamespaceAddress::Directory(directory.into()),
                base: base_of(name),
                key: name.to_owned(),
            });
        }
        let Some((folder, name)) = rest.split_once("://").and_then(|(_, rest)| rest.rsplit_once('/')) else {
            return Err(no_name());
        };
        let key = match is_web(rest) {
            true => ObjectPath::from_url_path(name).map_err(|_| no_name())?.to_string(),
            false => name.to_owned(),
        };
        // A slash may have been encoded.
        if folder.is_empty() || !key::is_valid(&key) || key.contains('/') {
            return Err(no_name());
        }
        let url = rest[..rest.len() - name.len()].to_owned();
        Ok(Self { place: NamespaceAddress::Server(url), base: base_of(name), key })
    }

    /// Parses the URI of a data set in a container. An error is the reason.
    fn in_container(uri: &str) -> Result<Self, &'static str> {
        if uri.contains(['?', '#']) {
            return Err("the URI of a data set must not contain a query string or fragment");
        }
        let rest = &uri[DAOS.len()..];
        if rest.contains('@') {
            return Err("the URI must not contain a user name or password: DAOS identifies users by its agent");
        }
        let form = "expected daos://POOL/CONTAINER:NAME, with labels or UUIDs of pool and container";
        let (pool, rest) = rest.split_once('/').ok_or(form)?;
        let (container, name) = rest.rsplit_once(':').ok_or(form)?;
        let place = DaosPlace::new(pool, container).ok_or(form)?;
        if !key::is_valid(name) || name.contains('/') {
            return Err(form);
        }
        let base = uri[..uri.len() - name.len()].to_owned();
        Ok(Self { place: NamespaceAddress::Container(place), base, key: name.to_owned() })
    }
}

/// The place of a folder, whose URI may end without a slash, and its URI with one; or a container.
pub(super) fn folder(uri: &str, action: &'static str) -> Result<(NamespaceAddress, String)> {
    if is_in_container(uri) {
        let of_container = Address::in_container(&format!("{}:x", uri.trim_end_matches(['/', ':'])));
        let Address { place, base, .. } = of_container.map_err(|reason| refused(uri, action, reason))?;
        return Ok((place, base));
    }
    let rest = checked(uri, action)?;
    let end = if uri.ends_with([':', '/']) { "" } else { "/" };
    let place = match is_file(rest) {
        true => NamespaceAddress::Directory(file_path(rest).into()),
        false => NamespaceAddress::Server(format!("{rest}{end}")),
    };
    Ok((place, format!("{uri}{end}")))
}

#[cold]
fn refused(uri: &str, action: &'static str, reason: &'static str) -> Error {
    Error::new(ErrorKind::NotSupported, action, object_display_name(uri), reason)
}

/// The URI without its prefix, if it has no user name, query string and fragment.
fn checked<'a>(uri: &'a str, action: &'static str) -> Result<&'a str> {
    let refused = |reason| refused(uri, action, reason);
    let rest = inner(uri).ok_or_else(|| refused("expected the URI of a data set, which begins with ntpl+"))?;
    if uri.contains(['?', '#']) {
        return Err(refused("the URI of a data set must not contain a query string or fragment"));
    }
    let authority = rest.split_once("://").and_then(|(_, rest)| rest.split('/').next()).unwrap_or_default();
    // Azure has the container before the account; what else is wrong with these URIs is found later.
    let may_have_at = is_file(rest) || ["az", "abfs"].iter().any(|scheme| starts_with(rest, scheme));
    if authority.contains('@') && !may_have_at {
        let reason = "the URI must not contain a user name or password: use storage options or the environment";
        return Err(refused(reason));
    }
    Ok(rest)
}

/// The path after `file:`.
fn file_path(rest: &str) -> &str {
    let (_, path) = rest.split_once(':').unwrap_or(("", rest));
    path.strip_prefix("//").unwrap_or(path)
}

/// Whether a URL is one of a web server.
fn is_web(rest: &str) -> bool {
    starts_with(rest, "http:") || starts_with(rest, "https:")
}

fn starts_with(text: &str, start: &str) -> bool {
    text.get(..start.len()).is_some_and(|text| text.eq_ignore_ascii_case(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_split_into_namespace_and_key() {
        for (uri, place, base, key) in [
            ("ntpl+file:///data/dir/events", "/data/dir/", "ntpl+file:///data/dir/", "events"),
            ("ntpl+file:///events//", "/", "ntpl+file:///", "events"),
            ("NTPL+File:rel/my events", "rel/", "NTPL+File:rel/", "my events"),
            ("ntpl+file:events", "", "ntpl+file:", "events"),
            ("ntpl+file:/data/a@b/x.y", "/data/a@b/", "ntpl+file:/data/a@b/", "x.y"),
        ] {
            let expected =
                Address { place: NamespaceAddress::Directory(place.into()), base: base.into(), key: key.into() };
            assert_eq!(Address::parse(uri, "open").unwrap(), expected, "{uri}");
        }
        for (uri, url, key) in [
            ("ntpl+s3://bucket/a/b/events", "s3://bucket/a/b/", "events"),
            ("ntpl+s3://bucket/events/", "s3://bucket/", "events"),
            ("ntpl+gs://bucket/a%20b", "gs://bucket/", "a%20b"),
            ("ntpl+abfss://box@account.dfs.core.windows.net/x", "abfss://box@account.dfs.core.windows.net/", "x"),
            ("ntpl+s3+https://host:80/bucket/a/x", "s3+https://host:80/bucket/a/", "x"),
            ("ntpl+https://host/a%20b/c%20d", "https://host/a%20b/", "c d"),
            ("ntpl+http://host/c d", "http://host/", "c d"),
        ] {
            let address = Address::parse(uri, "open").unwrap();
            assert_eq!((address.place, address.key.as_str()), (NamespaceAddress::Server(url.into()), key), "{uri}");
            assert_eq!(address.base, format!("ntpl+{url}"));
        }
    }

    #[test]
    fn the_name_in_a_container_follows_the_last_colon() {
        for (uri, pool, container, base, key) in [
            ("daos://tank/box:Events", "tank", "box", "daos://tank/box:", "Events"),
            ("DAOS://a:b/c:d:my events", "a:b", "c:d", "DAOS://a:b/c:d:", "my events"),
            (
                "daos://01234567-89ab-cdef-0123-456789abcdef/box.1:é",
                "01234567-89ab-cdef-0123-456789abcdef",
                "box.1",
                "daos://01234567-89ab-cdef-0123-456789abcdef/box.1:",
                "é",
            ),
        ] {
            let place = NamespaceAddress::Container(DaosPlace::new(pool, container).unwrap());
            let expected = Address { place, base: base.into(), key: key.into() };
            assert_eq!(Address::parse(uri, "open").unwrap(), expected, "{uri}");
        }
        for uri in [
            "daos://tank/box",
            "daos://tank/box:",
            "daos://tank",
            "daos:///box:x",
            "daos://tank/:x",
            "daos://tank/a/b:x",
            "daos://tank/box:a/b",
            "daos://tank/b x:a",
        ] {
            let error = Address::parse(uri, "open").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotSupported);
            assert!(error.to_string().contains("expected daos://POOL/CONTAINER:NAME"), "{error}");
        }
        for uri in ["daos://tank/box:x?hidden", "daos://ann:hidden@tank/box:x", "daos://tank/box:x#hidden"] {
            let error = Address::parse(uri, "open").unwrap_err();
            assert!(error.to_string().contains("must not contain"), "{error}");
            assert!(!error.to_string().contains("hidden"), "{error}");
        }
        let box_of_tank = NamespaceAddress::Container(DaosPlace::new("tank", "box").unwrap());
        for uri in ["daos://tank/box", "daos://tank/box/", "daos://tank/box:"] {
            assert_eq!(folder(uri, "list").unwrap().0, box_of_tank);
        }
    }

    #[test]
    fn invalid_data_set_uris_are_refused_without_showing_secrets() {
        for uri in [
            "ntpl+file:",
            "ntpl+file:///",
            "ntpl+file:///data/..",
            "ntpl+s3://bucket",
            "ntpl+s3://bucket/",
            "ntpl+s3:///x",
            "ntpl+s3:x",
            "ntpl+https://host",
            "ntpl+https://host/a%2Fb",
            "ntpl+https://host/%2e%2e",
            "ntpl+https://host/x?hidden=1",
            "ntpl+https://host/x#hidden",
            "ntpl+https://ann:hidden@host/x",
            "ntpl+s3+https://ann:hidden@host/bucket/x",
            "ntpl+s3://ann:hidden@bucket/x",
            "ntpl+file:///a/x?hidden",
            "events",
            "ntpl+",
        ] {
            let error = Address::parse(uri, "open").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
            assert!(!error.to_string().contains("hidden"), "{error}");
        }
    }

    #[test]
    fn folders_end_with_a_slash() {
        for (uri, place, shown) in [
            ("ntpl+file:", NamespaceAddress::Directory("".into()), "ntpl+file:"),
            ("ntpl+file:a", NamespaceAddress::Directory("a".into()), "ntpl+file:a/"),
            ("ntpl+s3://box", NamespaceAddress::Server("s3://box/".into()), "ntpl+s3://box/"),
            ("ntpl+s3://box/a/", NamespaceAddress::Server("s3://box/a/".into()), "ntpl+s3://box/a/"),
        ] {
            assert_eq!(folder(uri, "list").unwrap(), (place, shown.to_owned()), "{uri}");
        }
    }

    #[test]
    fn schemes_begin_with_the_prefix() {
        for uri in ["ntpl+file:x", "daos://p/c", "Daos://", "NTPL+S3://b/x", "ntpl+s3+https://h/b/x", "ntpl+unknown:x"]
        {
            assert!(is_object_uri(uri), "{uri}");
        }
        for name in
            ["ntpl+x", "ntpl+:x", "ntpl+a b:c", "ntpl", "s3://b/ntpl+x", "x/ntpl+file:y", "ntplé", "daos:x", "daos", ""]
        {
            assert!(!is_object_uri(name), "{name}");
        }
    }
}
