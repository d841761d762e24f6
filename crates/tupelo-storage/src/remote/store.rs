//! Objects in S3, GCS and Azure, by the crate `object_store`: it finds credentials, signs requests and parses answers.
//!
//! It uses our HTTP client, and does not retry: [`crate::net`] does.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureAccessKey, AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::list::PaginatedListStore;
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, BackoffConfig, GetOptions, GetRange, ObjectStore, ObjectStoreExt, RetryConfig,
    StaticCredentialProvider,
};

use super::answer::{Answer, Body, ByteRange, Identity, Version};
use super::client::{Connector, Transport, store_failure};
use super::credentials::Profile;
use super::settings::{Rule, Settings, check_name, names_of};
use crate::error::ErrorKind;
use crate::net::{Failure, Options, Redundancy};

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

/// The location of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) vendor: Vendor,
    /// The bucket or container.
    pub(super) bucket: String,
    /// The storage account, where an Azure URL has it.
    account: Option<String>,
    /// The server, where the URL has it.
    endpoint: Option<String>,
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
                let reason = "the URL must not contain credentials: use storage options or the environment";
                return Some(Err(Failure::lasting(ErrorKind::NotSupported, reason)));
            }
            None => (bucket, None),
        };
        if let Err(failure) = check_length(bucket) {
            return Some(Err(failure));
        }
        if bucket.is_empty() {
            return Some(Err(Failure::lasting(ErrorKind::NotSupported, "the URL lacks a bucket")));
        }
        let (bucket, account) = (bucket.to_owned(), account.map(str::to_owned));
        Some(Ok(Self { vendor, bucket, account, endpoint: None, key: key.to_owned() }))
    }

    /// Parses also `s3+https://HOST/BUCKET/KEY` and `s3+http`, as ROOT writes them.
    pub(super) fn parse_with_endpoint(url: &str) -> Option<Result<Self, Failure>> {
        let (scheme, rest) = url.split_once("://")?;
        let protocol = match scheme.to_ascii_lowercase().as_str() {
            "s3+https" => "https",
            "s3+http" => "http",
            _ => return Self::parse(url),
        };
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        if let Err(failure) = check_length(host) {
            return Some(Err(failure));
        }
        let endpoint = Some(format!("{protocol}://{host}"));
        Some(Self::parse(&format!("s3://{path}"))?.map(|address| Self { endpoint, ..address }))
    }

    /// The name of the object as `object_store` has it.
    pub(super) fn path(&self) -> Result<Path, Failure> {
        if self.key.is_empty() || self.key.ends_with('/') {
            return Err(Failure::lasting(ErrorKind::NotSupported, "the URL names a folder, not an object"));
        }
        check_length(&self.key)?;
        let invalid = |_| {
            let reason = "the name of the object contains an empty or relative folder, or a control character";
            Failure::lasting(ErrorKind::NotSupported, reason)
        };
        Path::parse(&self.key).map_err(invalid)
    }
}

/// Maximum number of bytes of the names of objects, buckets and servers, and of tokens that continue a listing. The
/// stores allow 1024 in names of objects; `object_store` panics where a URL has more than 64 KiB.
const MAX_NAME_BYTES: usize = 4 << 10;

/// Refuses a name that is too long for a URL.
pub(super) fn check_length(name: &str) -> Result<(), Failure> {
    if name.len() <= MAX_NAME_BYTES {
        return Ok(());
    }
    let start: String = name.chars().take(40).collect();
    let start = start.escape_debug();
    let reason = format!("a name has {} bytes, limit is {MAX_NAME_BYTES}: {start}…", name.len());
    Err(Failure::lasting(ErrorKind::NotSupported, reason))
}

/// Maximum time that a store is shared by new sources: afterwards, credentials are searched again.
const SHARED_FOR: Duration = Duration::from_secs(60);

/// The variables that ROOT has for the credentials of servers that are named in the URL.
const S3_ACCESS_KEY: &str = "S3_ACCESS_KEY";
const S3_SECRET_KEY: &str = "S3_SECRET_KEY";

/// A store and what it was made from.
struct Shared {
    address: Address,
    options: Options,
    environment: Vec<(String, String)>,
    since: Instant,
    built: Built,
}

#[derive(Clone)]
struct Built {
    store: Arc<dyn Store>,
    /// The server and account, where they are not those of the vendor.
    place: Arc<str>,
}

/// The stores of this process, so that many objects in one bucket share credentials from servers.
static STORES: Mutex<(u32, Vec<Shared>)> = Mutex::new((0, Vec::new()));

/// The variables that stores are configured with. One that is empty is as one that is not set.
fn environment() -> Vec<(String, String)> {
    let names =
        ["AWS_", S3_ACCESS_KEY, S3_SECRET_KEY, "GOOGLE_", "AZURE_", "HOME", "SERVICE_ACCOUNT", "IDENTITY_ENDPOINT"];
    let variables = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let mut environment: Vec<(String, String)> = variables
        .filter(|(name, value)| !value.is_empty() && names.iter().any(|prefix| name.starts_with(prefix)))
        .map(|(name, value)| (name, value.to_string_lossy().into_owned()))
        .collect();
    environment.sort();
    environment
}

/// The store of an address.
pub(super) fn store(address: &Address, options: &Options) -> Result<Arc<dyn Store>, Failure> {
    shared(address, options).map(|built| built.store)
}

fn shared(address: &Address, options: &Options) -> Result<Built, Failure> {
    let environment = environment();
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
        return Ok(shared.built.clone());
    }
    let built = build(&address, options, &environment)?;
    let since = Instant::now();
    stores.1.push(Shared { address, options: options.clone(), environment, since, built: built.clone() });
    Ok(built)
}

fn build(address: &Address, options: &Options, environment: &[(String, String)]) -> Result<Built, Failure> {
    // Some stores have a colon in the names of buckets, Azure has `$web`.
    check_bucket(address, ":$")?;
    match address.vendor {
        Vendor::S3 => s3(address, options, environment),
        Vendor::Gcs => gcs(address, options, environment),
        Vendor::Azure => azure(address, options, environment),
    }
}

fn check_bucket(address: &Address, more: &str) -> Result<(), Failure> {
    check_name(&format!("the bucket name '{}'", address.bucket.escape_debug()), &address.bucket, more)
}

fn no_retries() -> RetryConfig {
    RetryConfig { backoff: BackoffConfig::default(), max_retries: 0, retry_timeout: Duration::ZERO }
}

fn s3(address: &Address, options: &Options, environment: &[(String, String)]) -> Result<Built, Failure> {
    let settings = s3_settings(address, options, environment)?;
    let values = settings.checked(|key| {
        use AmazonS3ConfigKey as Key;
        match key {
            Key::AccessKeyId | Key::SecretAccessKey | Key::Token | Key::RoleArn | Key::RoleSessionName => Rule::Text,
            Key::Region | Key::DefaultRegion => Rule::Name,
            Key::Endpoint | Key::S3Endpoint | Key::StsEndpoint => Rule::Url,
            Key::MetadataEndpoint | Key::ContainerCredentialsFullUri => Rule::Url,
            _ => Rule::Any,
        }
    })?;
    if settings.has(AmazonS3ConfigKey::VirtualHostedStyleRequest) || settings.has(AmazonS3ConfigKey::S3Express) {
        // The bucket becomes a part of the host name.
        check_bucket(address, "")?;
    }
    let start = AmazonS3Builder::new();
    let mut builder = values.into_iter().fold(start, |builder, (key, value)| builder.with_config(key, value));
    if options.is_anonymous() {
        builder = builder.with_skip_signature(true);
    }
    let builder = builder.with_bucket_name(&address.bucket).with_allow_http(true).with_retry(no_retries());
    let built = builder.with_http_connector(Connector(Transport::new(options))).build();
    let store = Arc::new(built.map_err(|error| settings.unusable(store_failure(error), "S3"))?);
    let endpoints = [AmazonS3ConfigKey::Endpoint, AmazonS3ConfigKey::S3Endpoint];
    Ok(Built { store, place: settings.joined(&endpoints) })
}

/// By options, then environment, then profile.
fn s3_settings(
    address: &Address,
    options: &Options,
    environment: &[(String, String)],
) -> Result<Settings<AmazonS3ConfigKey>, Failure> {
    use AmazonS3ConfigKey::{AccessKeyId, SecretAccessKey, Token};
    let mut settings = Settings::of_variables(environment, "AWS_", "");
    if !options.is_anonymous() {
        add_profile(&mut settings, options)?;
    }
    settings.add_options(options);
    if let Some(endpoint) = &address.endpoint {
        add_endpoint(&mut settings, endpoint, environment);
    }
    if options.is_anonymous() {
        settings.remove(&[AccessKeyId, SecretAccessKey, Token]);
    }
    for (one, other) in [(AccessKeyId, SecretAccessKey), (SecretAccessKey, AccessKeyId)] {
        if let (Some(found), false) = (settings.find(one), settings.has(other)) {
            let reason = format!("{} is set, but {} is not", found.place, names_of(&other));
            return Err(Failure::lasting(ErrorKind::Denied, reason));
        }
    }
    Ok(settings)
}

/// Sets the server named in the URL, which has the bucket in the path, and the key of ROOT's variables unless another
/// is set.
fn add_endpoint(settings: &mut Settings<AmazonS3ConfigKey>, endpoint: &str, environment: &[(String, String)]) {
    use AmazonS3ConfigKey::{AccessKeyId, Endpoint, S3Endpoint, S3Express, SecretAccessKey, VirtualHostedStyleRequest};
    settings.remove(&[S3Endpoint, S3Express, VirtualHostedStyleRequest]);
    settings.set(Endpoint, endpoint, "the server in the URL".to_owned());
    if settings.has(AccessKeyId) || settings.has(SecretAccessKey) {
        return;
    }
    for (key, name) in [(AccessKeyId, S3_ACCESS_KEY), (SecretAccessKey, S3_SECRET_KEY)] {
        if let Some((_, value)) = environment.iter().find(|(other, _)| other == name) {
            settings.set(key, value, format!("the variable {name}"));
        }
    }
}

/// Adds settings of the profile that no variable sets; its key also if options name the profile.
fn add_profile(settings: &mut Settings<AmazonS3ConfigKey>, options: &Options) -> Result<(), Failure> {
    use AmazonS3ConfigKey::{AccessKeyId, DefaultRegion, Endpoint, Region, SecretAccessKey, Token};
    let profile = Profile::load(options)?;
    let add = |settings: &mut Settings<_>, key, name| {
        settings.set(key, profile.get(name).unwrap_or_default(), format!("{name} of the AWS profile"));
    };
    let own = |(name, value): (&str, &str)| {
        !value.is_empty() && name.parse().is_ok_and(|key: AmazonS3ConfigKey| key == AccessKeyId)
    };
    let has_own_key = options.settings().any(own);
    if !has_own_key && (options.get("profile").is_some() || !settings.has(AccessKeyId)) {
        if profile.get("aws_access_key_id").is_some() {
            add(settings, AccessKeyId, "aws_access_key_id");
            add(settings, SecretAccessKey, "aws_secret_access_key");
            add(settings, Token, "aws_session_token");
        } else if let Some(unsupported) = profile.unsupported() {
            let reason = format!(
                "the AWS profile uses {unsupported}, which only the AWS tools support; export its credentials with \
                 `aws configure export-credentials --format env`"
            );
            return Err(Failure::lasting(ErrorKind::Denied, reason));
        }
    }
    if !settings.has(Region) && !settings.has(DefaultRegion) {
        add(settings, Region, "region");
    }
    if !settings.has(Endpoint) {
        add(settings, Endpoint, "endpoint_url");
    }
    Ok(())
}

fn gcs(address: &Address, options: &Options, environment: &[(String, String)]) -> Result<Built, Failure> {
    let mut settings = Settings::of_variables(environment, "GOOGLE_", "SERVICE_ACCOUNT");
    settings.add_options(options);
    let values = settings.checked(|key| match key {
        GoogleConfigKey::BearerToken => Rule::Text,
        GoogleConfigKey::BaseUrl => Rule::Url,
        _ => Rule::Any,
    })?;
    let start = GoogleCloudStorageBuilder::new();
    let mut builder = values.into_iter().fold(start, |builder, (key, value)| builder.with_config(key, value));
    if options.is_anonymous() {
        // object_store searches credentials for writing anyway, unless it is given some.
        let none = StaticCredentialProvider::new(GcpCredential { bearer: String::new() });
        builder = builder.with_skip_signature(true).with_credentials(Arc::new(none));
    }
    let builder = builder.with_bucket_name(&address.bucket).with_retry(no_retries());
    let built = builder.with_http_connector(Connector(Transport::new(options))).build();
    let store = Arc::new(built.map_err(|error| gcs_failure(&settings, store_failure(error)))?);
    Ok(Built { store, place: settings.joined(&[GoogleConfigKey::BaseUrl]) })
}

/// Which key or file of credentials is not usable.
#[cold]
fn gcs_failure(settings: &Settings<GoogleConfigKey>, failure: Failure) -> Failure {
    use GoogleConfigKey::{ApplicationCredentials, ServiceAccount, ServiceAccountKey};
    let denied = |reason: String| Failure::lasting(ErrorKind::Denied, reason);
    let credentials = [ServiceAccount, ServiceAccountKey, ApplicationCredentials];
    match credentials.map(|key| settings.find(key).filter(|_| settings.quoted_in(&failure).is_none())) {
        [Some(file), Some(key), _] => denied(format!("both {} and {} are set: set only one", file.place, key.place)),
        [None, Some(key), _] => denied(format!("{} is not a service account key in JSON", key.place)),
        [Some(file), ..] | [.., Some(file)] => {
            // The reader of JSON quotes values, which may be secret.
            let why = if failure.reason.contains('"') { "it is not a JSON key" } else { &failure.reason };
            denied(format!("the file in {} is not usable: {}: {why}", file.place, file.value))
        }
        [None, None, None] => settings.unusable(failure, "Google Cloud Storage"),
    }
}

fn azure(address: &Address, options: &Options, environment: &[(String, String)]) -> Result<Built, Failure> {
    use AzureConfigKey as Key;
    let mut settings = Settings::of_variables(environment, "AZURE_", "IDENTITY_ENDPOINT");
    settings.add_options(options);
    if let Some(account) = &address.account {
        settings.set(Key::AccountName, account, "the account in the URL".to_owned());
    }
    let values = settings.checked(|key| match key {
        Key::AccessKey | Key::SasKey | Key::Token | Key::ClientId | Key::ClientSecret | Key::AuthorityId => Rule::Text,
        Key::AccountName => Rule::Name,
        Key::Endpoint | Key::AuthorityHost | Key::MsiEndpoint | Key::FabricTokenServiceUrl => Rule::Url,
        _ => Rule::Any,
    })?;
    if let Some(key) = settings.find(Key::AccessKey).filter(|key| AzureAccessKey::try_new(&key.value).is_err()) {
        let reason = format!("{} is not an account key: expected base64", key.place);
        return Err(Failure::lasting(ErrorKind::Denied, reason));
    }
    let start = MicrosoftAzureBuilder::new();
    let mut builder = values.into_iter().fold(start, |builder, (key, value)| builder.with_config(key, value));
    if options.is_anonymous() {
        builder = builder.with_skip_signature(true);
    }
    let builder = builder.with_container_name(&address.bucket).with_allow_http(true).with_retry(no_retries());
    let built = builder.with_http_connector(Connector(Transport::new(options))).build();
    let store = Arc::new(built.map_err(|error| azure_failure(&settings, store_failure(error)))?);
    Ok(Built { store, place: settings.joined(&[Key::AccountName, Key::Endpoint]) })
}

#[cold]
fn azure_failure(settings: &Settings<AzureConfigKey>, failure: Failure) -> Failure {
    if failure.reason.contains("Account must be specified") {
        let reason = format!("{} is not set", names_of(&AzureConfigKey::AccountName));
        return Failure::lasting(ErrorKind::Denied, reason);
    }
    match settings.find(AzureConfigKey::SasKey).filter(|_| failure.reason.contains("SAS")) {
        Some(key) => failure.context(&key.place),
        None => settings.unusable(failure, "Azure Blob Storage"),
    }
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

    /// The object with this key in the folder `address`, in a store that was made before.
    pub(super) fn in_folder(address: &Address, key: &str, options: &Options) -> Result<Self, Failure> {
        let address = Address { key: format!("{}{key}", address.key), ..address.clone() };
        Ok(Self { path: address.path()?, address, options: options.clone() })
    }

    /// The store of this process.
    pub(super) fn store(&self) -> Result<Arc<dyn Store>, Failure> {
        store(&self.address, &self.options)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The attributes of new objects: the storage class for the redundancy in the options.
    pub(super) fn attributes(&self) -> Result<Attributes, Failure> {
        let class = storage_class(self.address.vendor, &self.options)?;
        Ok(class.map(|class| (Attribute::StorageClass, class)).into_iter().collect())
    }

    /// Azure has no ranges that count from the end.
    pub(super) fn has_last_part(&self) -> bool {
        self.address.vendor != Vendor::Azure
    }

    /// Buckets have equal names on other servers and in other accounts.
    pub(super) fn place(&self) -> String {
        shared(&self.address, &self.options).map_or_else(|_| String::new(), |built| built.place.as_ref().to_owned())
    }

    pub(super) async fn is_empty(&self) -> Result<bool, Failure> {
        Ok(self.empty_version().await?.is_some())
    }

    /// The version of an object that has no bytes; `None` if it has some.
    pub(super) async fn empty_version(&self) -> Result<Option<Version>, Failure> {
        let found = self.store()?.head(&self.path).await.map_err(store_failure)?;
        Ok((found.size == 0).then_some(Version { etag: found.e_tag, generation: found.version }))
    }

    /// Requests a part, of the pinned version if there is one.
    pub(super) async fn get(&self, part: &ByteRange, pinned: Option<&Identity>) -> Result<Answer, Failure> {
        let range = match part {
            ByteRange::Range(Range { start, end }) => GetRange::Bounded(*start..*end),
            ByteRange::Last(len) => GetRange::Suffix(*len),
        };
        let if_match = pinned.and_then(Identity::strong_etag).map(str::to_owned);
        let options = GetOptions { range: Some(range), if_match, ..GetOptions::default() };
        let result = self.store()?.get_opts(&self.path, options).await.map_err(store_failure)?;
        let modified = Some(result.meta.last_modified).filter(|time| time.timestamp() != 0);
        let identity = Identity {
            size: result.meta.size,
            etag: result.meta.e_tag.clone(),
            // The epoch stands for a time that the store does not send.
            modified: modified.map(|time| time.to_rfc3339()),
            modified_at: modified.map(SystemTime::from),
            generation: result.meta.version.clone(),
        };
        let range = result.range.clone();
        Ok(Answer { range, identity, is_whole: false, body: Body::Store(result.into_stream()) })
    }
}

/// The storage class of new objects for a level of redundancy. In S3, all classes are spread over several places, and all
/// but one over several zones.
///
/// # Errors
/// Not supported by other stores, where redundancy is a property of the bucket or account.
fn storage_class(vendor: Vendor, options: &Options) -> Result<Option<&'static str>, Failure> {
    match (vendor, options.redundancy()) {
        (_, None) => Ok(None),
        (Vendor::S3, Some(Redundancy::None)) => Ok(Some("ONEZONE_IA")),
        (Vendor::S3, Some(_)) => Ok(Some("STANDARD")),
        (_, Some(_)) => {
            let reason = "the storage option redundancy is not supported: it is a property of the bucket or account";
            Err(Failure::lasting(ErrorKind::NotSupported, reason))
        }
    }
}

#[cfg(test)]
mod tests;
