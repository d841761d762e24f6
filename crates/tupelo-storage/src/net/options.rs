//! Options of all back ends over a network, by name.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use object_store::ClientConfigKey;
use object_store::aws::AmazonS3ConfigKey;
use object_store::azure::AzureConfigKey;
use object_store::gcp::GoogleConfigKey;

use super::retry::Limits;
use crate::error::{Error, ErrorKind, Result};

/// Our own options.
const COMMON: &[&str] = &["anonymous", "bearer_token", "ca_certificates", "profile"];
/// Options of DAOS containers. Other stores may come to use `redundancy`.
const DAOS: &[&str] = &[
    "daos_library",
    "daos_create",
    "daos_class",
    "daos_metadata_class",
    "daos_objects",
    "daos_requests",
    "redundancy",
];
/// Limits of requests.
const LIMITS: &[&str] = &["max_attempts", "total_timeout", "stall_timeout", "connect_timeout"];

/// Names of `object_store` that users need, for suggestions. It also knows many synonyms.
const SUGGESTED: &[&str] = &[
    "account_key",
    "account_name",
    "aws_access_key_id",
    "aws_endpoint_url",
    "aws_region",
    "aws_secret_access_key",
    "aws_session_token",
    "aws_skip_signature",
    "aws_virtual_hosted_style_request",
    "azure_storage_account_key",
    "azure_storage_account_name",
    "azure_storage_endpoint",
    "azure_storage_sas_token",
    "azure_storage_token",
    "azure_storage_use_emulator",
    "google_application_credentials",
    "google_base_url",
    "google_bearer_token",
    "google_service_account",
    "google_service_account_key",
    "google_skip_signature",
    "request_payer",
];

/// Names that s3fs, boto and other programs have for what we name otherwise, and our names.
const FOREIGN: &[(&str, &str)] = &[
    ("anon", "anonymous"),
    ("connection_string", "azure_storage_account_name and azure_storage_account_key"),
    ("key", "aws_access_key_id"),
    ("profile_name", "profile"),
    ("region_name", "aws_region"),
    ("secret", "aws_secret_access_key"),
    ("verify", "ca_certificates"),
];
/// Options of other programs that contain options.
const NESTED: &[&str] = &["client_kwargs", "config_kwargs", "s3_additional_kwargs", "storage_options"];

/// Options of remote stores and servers: credentials, endpoints, and limits of requests.
///
/// | option | value |
/// |---|---|
/// | `anonymous` | `true`: send no credentials |
/// | `bearer_token` | token for `https`, for XRootD servers with TLS, and for stores that take one |
/// | `ca_certificates` | PEM file of certificate authorities, instead of those of the system |
/// | `profile` | profile of `~/.aws/config` and `~/.aws/credentials`; default `AWS_PROFILE`, `default` |
/// | `daos_library` | path of `libdaos.so`; default `libdaos.so.2`, where the system finds it |
/// | `daos_create` | `true`: writing creates a DAOS container that does not exist |
/// | `daos_class` | object class of what is written to DAOS, such as `RP_2GX`; default by `redundancy` |
/// | `daos_metadata_class` | object class of what describes a data set in DAOS; default `SX` |
/// | `daos_objects` | `cluster` (default) or `page`: whether DAOS has an object for each cluster, or for each page |
/// | `daos_requests` | `batch` (default), `queue` or `blocking`: how values are requested from DAOS |
/// | `redundancy` | `none` (default), `replicate`, `erasure` or `max`: see [`Redundancy`]; for new objects in DAOS, and for those in S3 by their storage class |
/// | `max_attempts`, `total_timeout`, `stall_timeout`, `connect_timeout` | see [`Limits`]; times in seconds |
///
/// All others are those of `object_store`, such as `aws_access_key_id` or `endpoint_url`. One map may have options for
/// several kinds of stores and servers; each takes its own. A store takes an empty value as none. Values are not shown by
/// `Debug`.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Options {
    settings: BTreeMap<String, String>,
}

impl Options {
    /// Options from names and values.
    ///
    /// # Errors
    /// [`ErrorKind::NotSupported`] for an unknown name, which lists similar ones, and for an invalid value of our own
    /// options.
    pub fn new<K: AsRef<str>, V: Into<String>>(settings: impl IntoIterator<Item = (K, V)>) -> Result<Self> {
        let settings = settings.into_iter().map(|(name, value)| (name.as_ref().to_ascii_lowercase(), value.into()));
        let options = Self { settings: settings.collect() };
        if let Some(unknown) = options.settings.keys().find(|name| !is_known(name)) {
            return Err(refused(unknown, suggestion(unknown)));
        }
        options.checked_limits()?;
        options.flag("anonymous")?;
        options.flag("daos_create")?;
        options.checked_redundancy()?;
        options.choice("daos_objects", &["cluster", "page"])?;
        options.choice("daos_requests", &["batch", "queue", "blocking"])?;
        Ok(options)
    }

    /// The same without credentials, those of the environment included.
    #[must_use]
    pub(crate) fn without_credentials(mut self) -> Self {
        self.settings.remove("bearer_token");
        self.settings.insert("anonymous".to_owned(), "true".to_owned());
        self
    }

    /// The value of an option.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }

    /// A file of certificate authorities, instead of those of the system.
    pub(crate) fn authorities(&self) -> Option<&Path> {
        self.get("ca_certificates").map(Path::new)
    }

    /// All options, by name.
    pub(crate) fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether requests have no credentials.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.flag("anonymous").unwrap_or_default()
    }

    /// Whether writing creates a DAOS container that does not exist.
    pub(crate) fn creates_containers(&self) -> bool {
        self.flag("daos_create").unwrap_or_default()
    }

    /// Redundancy of written data against the loss of servers, if chosen.
    pub(crate) fn redundancy(&self) -> Option<Redundancy> {
        self.checked_redundancy().unwrap_or_default()
    }

    fn checked_redundancy(&self) -> Result<Option<Redundancy>> {
        let names = Redundancy::NAMES.map(|(name, _)| name);
        let chosen = self.choice("redundancy", &names)?;
        Ok(chosen
            .and_then(|chosen| Redundancy::NAMES.iter().find(|(name, _)| *name == chosen))
            .map(|(_, found)| *found))
    }

    /// The value of an option that has one of some names.
    fn choice(&self, name: &str, names: &[&str]) -> Result<Option<&str>> {
        match self.get(name).filter(|text| !text.is_empty()) {
            Some(text) if !names.contains(&text) => {
                Err(refused(name, format!("it must be one of: {}", names.join(", "))))
            }
            text => Ok(text),
        }
    }

    /// The limits of requests.
    pub fn limits(&self) -> Limits {
        self.checked_limits().unwrap_or_default()
    }

    fn checked_limits(&self) -> Result<Limits> {
        let default = Limits::default();
        let attempts = match self.get("max_attempts") {
            None => default.attempts,
            Some(text) => text
                .parse()
                .ok()
                .filter(|attempts| *attempts > 0)
                .ok_or_else(|| refused("max_attempts", "it must be a positive number".to_owned()))?,
        };
        Ok(Limits {
            attempts,
            total: self.seconds("total_timeout", default.total)?,
            stall: self.seconds("stall_timeout", default.stall)?,
            connect: self.seconds("connect_timeout", default.connect)?,
        })
    }

    fn seconds(&self, name: &str, default: Duration) -> Result<Duration> {
        let Some(text) = self.get(name) else { return Ok(default) };
        // object_store takes `5s` too.
        let seconds = text.trim().trim_end_matches('s').parse::<f64>().ok();
        let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        time.filter(|time| !time.is_zero())
            .ok_or_else(|| refused(name, "it must be a positive number of seconds".to_owned()))
    }

    fn flag(&self, name: &str) -> Result<bool> {
        match self.get(name).map(str::to_ascii_lowercase).as_deref() {
            Some("true" | "1" | "yes" | "on") => Ok(true),
            None | Some("false" | "0" | "no" | "off") => Ok(false),
            Some(_) => Err(refused(name, "it must be true or false".to_owned())),
        }
    }
}

/// Redundancy of written data against the loss of servers: the values of the option `redundancy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redundancy {
    /// `none`: it does not.
    None,
    /// `replicate`: there are two copies.
    Replicate,
    /// `erasure`: there are parts and parity parts of large values; this takes less space than copies.
    Erasure,
    /// `max`: there are as many copies as the store can hold, at most three.
    Max,
}

impl Redundancy {
    /// All levels, by name.
    pub(crate) const NAMES: [(&'static str, Self); 4] =
        [("none", Self::None), ("replicate", Self::Replicate), ("erasure", Self::Erasure), ("max", Self::Max)];
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Options")?;
        f.debug_set().entries(self.settings.keys()).finish()
    }
}

/// Whether any store uses the option. Options for the HTTP client of `object_store` would have no effect, because it
/// uses ours.
fn is_known(name: &str) -> bool {
    use AmazonS3ConfigKey::{Client, ImdsV1Fallback};
    let is_used = |key: &ClientConfigKey| *key == ClientConfigKey::AllowHttp;
    COMMON.contains(&name)
        || DAOS.contains(&name)
        || LIMITS.contains(&name)
        || match name.parse() {
            Ok(Client(key)) => is_used(&key),
            Ok(ImdsV1Fallback) | Err(_) => false,
            Ok(_) => true,
        }
        || name.parse().is_ok_and(|key: GoogleConfigKey| !matches!(key, GoogleConfigKey::Client(_)))
        || name.parse().is_ok_and(|key: AzureConfigKey| !matches!(key, AzureConfigKey::Client(_)))
}

/// What to use instead of an unknown option.
fn suggestion(unknown: &str) -> String {
    if NESTED.contains(&unknown) {
        return "unknown option; options are not nested: use the full names, such as aws_endpoint_url and aws_region"
            .to_owned();
    }
    match FOREIGN.iter().find(|(name, _)| *name == unknown) {
        Some((_, ours)) => format!("unknown option; use {ours}"),
        None => near(unknown),
    }
}

/// A list of the most similar names.
fn near(unknown: &str) -> String {
    let known = COMMON.iter().chain(DAOS).chain(LIMITS).chain(SUGGESTED);
    let mut scored: Vec<(f64, &str)> =
        known.map(|name| (strsim::jaro_winkler(unknown, name), *name)).filter(|(score, _)| *score > 0.7).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    let names: Vec<&str> = scored.iter().take(3).map(|(_, name)| *name).collect();
    match names.as_slice() {
        [] => "unknown option".to_owned(),
        names => format!("unknown option; similar: {}", names.join(", ")),
    }
}

#[cold]
fn refused(name: &str, reason: String) -> Error {
    Error::new(ErrorKind::NotSupported, "use the storage option", name, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_suggested_names_are_known() {
        for name in SUGGESTED {
            assert!(is_known(name), "{name}");
        }
    }

    #[test]
    fn unknown_names_are_errors_with_similar_ones() {
        let error = Options::new([("aws_acces_key_id", "x")]).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("cannot use the storage option aws_acces_key_id: unknown option; similar: "),
            "{text}"
        );
        assert!(text.contains("aws_access_key_id"), "{text}");
        for unused in ["proxy_url", "allow_invalid_certificates", "aws_imdsv1_fallback", "timeout"] {
            assert!(Options::new([(unused, "true")]).is_err(), "{unused}");
        }
        let error = Options::new([("qqq", "x")]).unwrap_err();
        assert!(error.to_string().ends_with("unknown option"), "{error}");
    }

    #[test]
    fn names_of_other_programs_have_ours_as_suggestion() {
        for (name, ours) in FOREIGN {
            assert!(!is_known(name), "{name}");
            assert!(ours.split(" and ").all(is_known), "{ours}");
            let error = Options::new([(name, "x")]).unwrap_err();
            assert_eq!(error.to_string(), format!("cannot use the storage option {name}: unknown option; use {ours}"));
        }
        let error = Options::new([("client_kwargs", "{'endpoint_url': 'http://h'}")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot use the storage option client_kwargs: unknown option; options are not nested: use the full names, \
             such as aws_endpoint_url and aws_region"
        );
        for known in ["token", "endpoint_url", "region"] {
            assert!(is_known(known), "{known}");
        }
    }

    #[test]
    fn limits_are_numbers() {
        let options = Options::new([("max_attempts", "3"), ("Stall_Timeout", "0.5"), ("total_timeout", "7s")]).unwrap();
        let limits = options.limits();
        assert_eq!((limits.attempts, limits.stall), (3, Duration::from_millis(500)));
        assert_eq!((limits.total, limits.connect), (Duration::from_secs(7), Limits::default().connect));
        for (name, value) in
            [("max_attempts", "0"), ("stall_timeout", "-1"), ("total_timeout", "x"), ("anonymous", "?")]
        {
            assert_eq!(Options::new([(name, value)]).unwrap_err().kind(), ErrorKind::NotSupported, "{name}={value}");
        }
    }

    #[test]
    fn choices_have_names() {
        let options = Options::new([("redundancy", "erasure"), ("daos_create", "yes")]).unwrap();
        assert_eq!(options.redundancy(), Some(Redundancy::Erasure));
        assert!(options.creates_containers());
        assert_eq!(Options::new([("redundancy", "")]).unwrap().redundancy(), None);
        let error = Options::new([("redundancy", "two")]).unwrap_err();
        let expected = "cannot use the storage option redundancy: it must be one of: none, replicate, erasure, max";
        assert_eq!(error.to_string(), expected);
        for (name, value) in [("daos_requests", "Batch"), ("daos_create", "perhaps")] {
            assert!(Options::new([(name, value)]).is_err(), "{name}={value}");
        }
        assert!(Options::new([("daos_clas", "SX")]).unwrap_err().to_string().contains("daos_class"));
    }

    #[test]
    fn values_are_not_shown() {
        let options = Options::new([("aws_secret_access_key", "hidden-value")]).unwrap();
        assert_eq!(format!("{options:?}"), "Options{\"aws_secret_access_key\"}");
    }
}
