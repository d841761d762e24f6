//! Objects in S3, GCS and Azure, by the crate `object_store`: it finds credentials, signs requests and parses answers.
//!
//! It uses our HTTP client, and does not retry: [`crate::net`] does.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::list::PaginatedListStore;
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{BackoffConfig, GetOptions, GetRange, ObjectStore, RetryConfig, StaticCredentialProvider};

use super::answer::{Answer, Body, Identity, Part};
use super::client::{Connector, Transport, store_failure};
use super::credentials::Profile;
use crate::error::ErrorKind;
use crate::net::{Failure, Options};

/// A store whose objects can be read, listed, and written in parts.
pub(super) trait Store: ObjectStore + MultipartStore + PaginatedListStore {}
impl<S: ObjectStore + MultipartStore + PaginatedListStore> Store for S {}

/// The kinds of stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vendor {
    S3,
    Gcs,
    Azure,
}

/// Where an object is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) vendor: Vendor,
    /// The bucket or container.
    pub(super) bucket: String,
    /// The storage account, where an Azure URL has it.
    account: Option<String>,
    /// The name of the object in the bucket.
    pub(super) key: String,
}

impl Address {
    /// Parses `SCHEME://BUCKET/KEY`; `None` for other schemes.
    pub(super) fn parse(url: &str) -> Option<Result<Self, Failure>> {
        let (scheme, rest) = url.split_once("://")?;
        let vendor = match scheme.to_ascii_lowercase().as_str() {
            "s3" | "s3a" => Vendor::S3,
            "gs" | "gcs" => Vendor::Gcs,
            "az" | "azure" | "abfs" | "abfss" => Vendor::Azure,
            _ => return None,
        };
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        // abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/KEY
        let (bucket, account) = match bucket.split_once('@') {
            Some((bucket, host)) if vendor == Vendor::Azure => (bucket, host.split('.').next()),
            Some(_) => {
                let reason = "credentials do not belong in the URL: use storage options or the environment";
                return Some(Err(Failure::lasting(ErrorKind::NotSupported, reason)));
            }
            None => (bucket, None),
        };
        if bucket.is_empty() {
            return Some(Err(Failure::lasting(ErrorKind::NotSupported, "the URL has no bucket")));
        }
        let (bucket, account) = (bucket.to_owned(), account.map(str::to_owned));
        Some(Ok(Self { vendor, bucket, account, key: key.to_owned() }))
    }

    /// The name of the object as `object_store` has it.
    pub(super) fn path(&self) -> Result<Path, Failure> {
        if self.key.is_empty() || self.key.ends_with('/') {
            return Err(Failure::lasting(ErrorKind::NotSupported, "the URL names a folder, not an object"));
        }
        let invalid = |_| {
            let reason = "the name of the object has an empty or relative folder, or a control character";
            Failure::lasting(ErrorKind::NotSupported, reason)
        };
        Path::parse(&self.key).map_err(invalid)
    }
}

/// Maximum time that a store is shared by new sources: afterwards, credentials are searched again.
const SHARED_FOR: Duration = Duration::from_secs(60);

/// A store and what it was made from.
struct Shared {
    address: Address,
    options: Options,
    environment: Vec<(String, String)>,
    since: Instant,
    store: Arc<dyn Store>,
}

/// The stores of this process, so that many objects in one bucket share credentials from servers.
static STORES: Mutex<(u32, Vec<Shared>)> = Mutex::new((0, Vec::new()));

/// The store of an address.
pub(super) fn store(address: &Address, options: &Options) -> Result<Arc<dyn Store>, Failure> {
    let names = ["AWS_", "GOOGLE_", "AZURE_", "HOME"];
    let variables = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let mut environment: Vec<(String, String)> = variables
        .filter(|(name, _)| names.iter().any(|prefix| name.starts_with(prefix)))
        .map(|(name, value)| (name, value.to_string_lossy().into_owned()))
        .collect();
    environment.sort();
    let address = Address { key: String::new(), ..address.clone() };
    let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if stores.0 != process {
        // Dropping them could wait for a lock that a thread of the parent holds.
        std::mem::forget(std::mem::replace(&mut *stores, (process, Vec::new())));
    }
    stores.1.retain(|shared| shared.since.elapsed() < SHARED_FOR);
    let same =
        |shared: &&Shared| shared.address == address && shared.options == *options && shared.environment == environment;
    if let Some(shared) = stores.1.iter().find(same) {
        return Ok(Arc::clone(&shared.store));
    }
    let store = match address.vendor {
        Vendor::S3 => s3(&address, options)?,
        Vendor::Gcs => gcs(&address, options)?,
        Vendor::Azure => azure(&address, options)?,
    };
    let since = Instant::now();
    stores.1.push(Shared { address, options: options.clone(), environment, since, store: Arc::clone(&store) });
    Ok(store)
}

fn no_retries() -> RetryConfig {
    RetryConfig { backoff: BackoffConfig::default(), max_retries: 0, retry_timeout: Duration::ZERO }
}

/// S3 by options, then environment, then profile, then instance metadata.
fn s3(address: &Address, options: &Options) -> Result<Arc<dyn Store>, Failure> {
    use AmazonS3ConfigKey::{AccessKeyId, Endpoint, Region, SecretAccessKey, Token};
    let mut builder = AmazonS3Builder::from_env();
    let is_set = |builder: &AmazonS3Builder, key| builder.get_config_value(&key).is_some();
    let own: Vec<(AmazonS3ConfigKey, &str)> =
        options.settings().filter_map(|(name, value)| Some((name.parse().ok()?, value))).collect();
    let has_own_key = own.iter().any(|(key, _)| *key == AccessKeyId);
    let profile = if options.is_anonymous() { Profile::default() } else { Profile::load(options)? };
    if !has_own_key && (options.get("profile").is_some() || !is_set(&builder, AccessKeyId)) {
        if let Some(key) = profile.get("aws_access_key_id") {
            builder = builder
                .with_config(AccessKeyId, key)
                .with_config(SecretAccessKey, profile.get("aws_secret_access_key").unwrap_or_default())
                .with_config(Token, profile.get("aws_session_token").unwrap_or_default());
        } else if let Some(unsupported) = profile.unsupported() {
            let reason = format!(
                "the AWS profile uses {unsupported}, which only the AWS tools support; export its credentials with \
                 `aws configure export-credentials --format env`"
            );
            return Err(Failure::lasting(ErrorKind::Denied, reason));
        }
    }
    for (name, key) in [("region", Region), ("endpoint_url", Endpoint)] {
        if let Some(value) = profile.get(name).filter(|_| !is_set(&builder, key)) {
            builder = builder.with_config(key, value);
        }
    }
    builder = own.into_iter().fold(builder, |builder, (key, value)| builder.with_config(key, value));
    if options.is_anonymous() {
        builder = builder.with_skip_signature(true);
    }
    let builder = builder.with_bucket_name(&address.bucket).with_allow_http(true).with_retry(no_retries());
    Ok(Arc::new(builder.with_http_connector(Connector(Transport::new(options))).build().map_err(store_failure)?))
}

fn gcs(address: &Address, options: &Options) -> Result<Arc<dyn Store>, Failure> {
    let mut builder = GoogleCloudStorageBuilder::from_env();
    for (name, value) in options.settings() {
        if let Ok(key) = name.parse::<GoogleConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    if options.is_anonymous() {
        // object_store searches credentials for writing anyway, unless it is given some.
        let none = StaticCredentialProvider::new(GcpCredential { bearer: String::new() });
        builder = builder.with_skip_signature(true).with_credentials(Arc::new(none));
    }
    let builder = builder.with_bucket_name(&address.bucket).with_retry(no_retries());
    Ok(Arc::new(builder.with_http_connector(Connector(Transport::new(options))).build().map_err(store_failure)?))
}

fn azure(address: &Address, options: &Options) -> Result<Arc<dyn Store>, Failure> {
    let mut builder = MicrosoftAzureBuilder::from_env();
    for (name, value) in options.settings() {
        if let Ok(key) = name.parse::<AzureConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    if options.is_anonymous() {
        builder = builder.with_skip_signature(true);
    }
    if let Some(account) = &address.account {
        builder = builder.with_account(account);
    }
    let builder = builder.with_container_name(&address.bucket).with_allow_http(true).with_retry(no_retries());
    Ok(Arc::new(builder.with_http_connector(Connector(Transport::new(options))).build().map_err(store_failure)?))
}

/// An object in a store.
#[derive(Clone)]
pub(super) struct StoreObject {
    address: Address,
    options: Options,
    path: Path,
}

impl fmt::Debug for StoreObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreObject({:?} {}/{})", self.address.vendor, self.address.bucket, self.path)
    }
}

impl StoreObject {
    pub(super) fn new(address: Address, options: &Options) -> Result<Self, Failure> {
        let path = address.path()?;
        // Errors of options are found now.
        store(&address, options)?;
        Ok(Self { address, options: options.clone(), path })
    }

    /// The store of this process.
    pub(super) fn store(&self) -> Result<Arc<dyn Store>, Failure> {
        store(&self.address, &self.options)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Azure has no ranges that count from the end.
    pub(super) fn has_last_part(&self) -> bool {
        self.address.vendor != Vendor::Azure
    }

    /// Requests a part, of the pinned version if there is one.
    pub(super) async fn get(&self, part: &Part, pinned: Option<&Identity>) -> Result<Answer, Failure> {
        let range = match part {
            Part::Range(Range { start, end }) => GetRange::Bounded(*start..*end),
            Part::Last(len) => GetRange::Suffix(*len),
        };
        let if_match = pinned.and_then(Identity::strong_etag).map(str::to_owned);
        let options = GetOptions { range: Some(range), if_match, ..GetOptions::default() };
        let result = self.store()?.get_opts(&self.path, options).await.map_err(store_failure)?;
        let identity = Identity {
            size: result.meta.size,
            etag: result.meta.e_tag.clone(),
            modified: Some(result.meta.last_modified.to_rfc3339()),
        };
        let range = result.range.clone();
        Ok(Answer { range, identity, body: Body::Store(result.into_stream()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Address {
        Address::parse(url).unwrap().unwrap()
    }

    #[test]
    fn the_schemes_that_users_write_are_known() {
        for (url, vendor) in [
            ("s3://b/a/x.root", Vendor::S3),
            ("S3A://b/a/x.root", Vendor::S3),
            ("gs://b/a/x.root", Vendor::Gcs),
            ("gcs://b/a/x.root", Vendor::Gcs),
            ("az://b/a/x.root", Vendor::Azure),
            ("abfs://b/a/x.root", Vendor::Azure),
        ] {
            let address = parse(url);
            assert_eq!((address.vendor, address.bucket.as_str()), (vendor, "b"));
            assert_eq!(address.path().unwrap().as_ref(), "a/x.root");
        }
        let address = parse("abfss://box@account.dfs.core.windows.net/x.root");
        assert_eq!((address.bucket.as_str(), address.account.as_deref()), ("box", Some("account")));
        assert!(Address::parse("https://b/x").is_none());
        assert!(Address::parse("x.root").is_none());
    }

    #[test]
    fn names_that_are_no_objects_are_refused() {
        for url in ["s3:///x", "s3://user:secret@b/x"] {
            let failure = Address::parse(url).unwrap().unwrap_err();
            assert!(!failure.reason.contains("secret"), "{failure}");
        }
        for url in ["s3://b", "s3://b/", "s3://b/a/", "s3://b/a//x", "s3://b/../x"] {
            assert_eq!(parse(url).path().unwrap_err().kind, ErrorKind::NotSupported, "{url}");
        }
    }
}
