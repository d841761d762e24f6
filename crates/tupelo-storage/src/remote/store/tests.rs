//! Tests of the stores that options and the environment give.

use super::*;

#[test]
fn redundancy_is_a_storage_class_of_s3() {
    let class = |vendor, level: &str| {
        let options = Options::new([("redundancy", level)]).unwrap();
        storage_class(vendor, &options).map_err(|failure| failure.kind)
    };
    assert_eq!(class(Vendor::S3, "none"), Ok(Some("ONEZONE_IA")));
    for level in ["replicate", "erasure", "max"] {
        assert_eq!(class(Vendor::S3, level), Ok(Some("STANDARD")), "{level}");
    }
    assert_eq!(class(Vendor::Azure, "none"), Err(ErrorKind::NotSupported));
    assert_eq!(storage_class(Vendor::Gcs, &Options::default()).unwrap(), None);
}

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
fn invalid_object_names_are_refused() {
    for url in ["s3:///x", "s3://user:secret@b/x"] {
        let failure = Address::parse(url).unwrap().unwrap_err();
        assert!(!failure.reason.contains("secret"), "{failure}");
    }
    for url in ["s3://b", "s3://b/", "s3://b/a/", "s3://b/a//x", "s3://b/../x"] {
        assert_eq!(parse(url).path().unwrap_err().kind, ErrorKind::NotSupported, "{url}");
    }
}
/// Why a store cannot be built.
fn refused(url: &str, options: &[(&str, &str)], environment: &[(&str, &str)]) -> String {
    let options = Options::new(options.iter().copied()).unwrap();
    let environment: Vec<(String, String)> =
        environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let Err(failure) = build(&parse(url), &options, &environment) else { panic!("the settings are valid") };
    failure.reason
}

#[test]
fn endpoints_are_urls_with_a_host() {
    let expected = "must be a URL such as https://HOST or http://HOST:PORT";
    for (value, end) in [
        ("127.0.0.1:47103", ", not '127.0.0.1:47103'"),
        ("localhost:47103", ", not 'localhost:47103'"),
        ("http://127.0.0.1:471033", ", not 'http://127.0.0.1:471033': invalid port number"),
        ("http://", ", not 'http://': empty host"),
        ("ftp://host", ", not 'ftp://host'"),
        ("user:hidden@host:80", ""),
    ] {
        let reason = refused("s3://b/x", &[], &[("AWS_ENDPOINT_URL", value)]);
        assert_eq!(reason, format!("the variable AWS_ENDPOINT_URL (option aws_endpoint_url) {expected}{end}"));
    }
    let reason = refused("gs://b/x", &[("google_base_url", "127.0.0.1:47104")], &[]);
    let place = "the option google_base_url (variable GOOGLE_BASE_URL)";
    assert_eq!(reason, format!("{place} {expected}, not '127.0.0.1:47104'"));
    let account = ("account_name", "a");
    let reason = refused("az://b/x", &[account, ("azure_storage_endpoint", "127.0.0.1:1/a")], &[]);
    let place = "the option azure_storage_endpoint (variable AZURE_STORAGE_ENDPOINT)";
    assert_eq!(reason, format!("{place} {expected}, not '127.0.0.1:1/a'"));
    let reason = refused("s3://b/x", &[("endpoint", "http://127.0.0.1:1 ")], &[]);
    assert_eq!(reason, "the option endpoint (variable AWS_ENDPOINT_URL) contains a space, which is not allowed");
    let reason = refused("s3://b/x", &[("aws_endpoint_url", "http://ann:hidden@host")], &[]);
    assert!(reason.ends_with("contains a user name or a password: use the options for credentials"), "{reason}");
}

#[test]
fn invalid_headers_and_hosts_are_refused_without_showing_them() {
    let key = [("AWS_ACCESS_KEY_ID", "hidden\r"), ("AWS_SECRET_ACCESS_KEY", "s")];
    assert_eq!(
        refused("s3://b/x", &[], &key),
        "the variable AWS_ACCESS_KEY_ID (option aws_access_key_id) contains a line break, which is not allowed"
    );
    assert_eq!(
        refused("s3://b/x", &[("token", "hidden\n")], &[]),
        "the option token (variable AWS_SESSION_TOKEN) contains a line break, which is not allowed"
    );
    assert_eq!(
        refused("s3://b/x", &[], &[("AWS_REGION", "eu<west")]),
        "the variable AWS_REGION (option aws_region) contains a special character, which is not allowed"
    );
    assert_eq!(
        refused("s3://tenant:b/x", &[("virtual_hosted_style_request", "true")], &[]),
        "the bucket name 'tenant:b' contains a special character, which is not allowed"
    );
    for vendor in ["s3", "gs", "az"] {
        assert_eq!(
            refused(&format!("{vendor}://b kt/x"), &[], &[]),
            "the bucket name 'b kt' contains a space, which is not allowed"
        );
    }
}

#[test]
fn servers_in_the_url_have_the_keys_of_root() {
    use AmazonS3ConfigKey::{AccessKeyId, Endpoint, SecretAccessKey, VirtualHostedStyleRequest};
    let address = |url| Address::parse_with_endpoint(url).unwrap().unwrap();
    let here = address("S3+https://host:80/box/a/x");
    assert_eq!((here.bucket.as_str(), here.key.as_str()), ("box", "a/x"));
    let of = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let options = [("endpoint", "http://other"), ("virtual_hosted_style_request", "true")];
    let options = Options::new(options).unwrap();
    let root = [("S3_ACCESS_KEY", "root"), ("S3_SECRET_KEY", "root-secret")];
    let aws = [("AWS_ACCESS_KEY_ID", "aws"), ("AWS_SECRET_ACCESS_KEY", "aws-secret")];
    let value = |settings: &Settings<_>, key| settings.find(key).map(|setting| setting.value.clone());
    let settings = s3_settings(&here, &options, &of(&root)).unwrap();
    assert_eq!(value(&settings, Endpoint).as_deref(), Some("https://host:80"));
    assert!(!settings.has(VirtualHostedStyleRequest));
    assert_eq!(value(&settings, AccessKeyId).as_deref(), Some("root"));
    assert_eq!(value(&settings, SecretAccessKey).as_deref(), Some("root-secret"));
    let settings = s3_settings(&here, &options, &of(&[root, aws].concat())).unwrap();
    assert_eq!(value(&settings, AccessKeyId).as_deref(), Some("aws"));
    let settings = s3_settings(&address("s3://box/x"), &options, &of(&root)).unwrap();
    assert!(!settings.has(AccessKeyId), "other servers do not get them");
    assert_eq!(value(&settings, Endpoint).as_deref(), Some("http://other"));
}

#[test]
fn keys_that_are_missing_or_damaged_are_named() {
    let set = "the variable AWS_ACCESS_KEY_ID (option aws_access_key_id) is set";
    let missing = "the option aws_secret_access_key (variable AWS_SECRET_ACCESS_KEY) is not";
    assert_eq!(
        refused("s3://b/x", &[], &[("AWS_ACCESS_KEY_ID", "k"), ("AWS_SECRET_ACCESS_KEY", "")]),
        format!("{set}, but {missing}")
    );
    assert_eq!(
        refused("az://b/x", &[], &[]),
        "the option azure_storage_account_name (variable AZURE_STORAGE_ACCOUNT_NAME) is not set"
    );
    assert_eq!(
        refused("az://b/x", &[("account_name", "a"), ("account_key", "hidden")], &[]),
        "the option account_key (variable AZURE_STORAGE_ACCOUNT_KEY) is not an account key: expected base64"
    );
    let reason = refused("az://b/x", &[("account_name", "a"), ("sas_token", "hidden")], &[]);
    assert!(reason.starts_with("the option sas_token (variable AZURE_STORAGE_SAS_TOKEN): "), "{reason}");
    let reason = refused("s3://b/x", &[("skip_signature", "maybe")], &[]);
    assert!(reason.starts_with("the option skip_signature (variable AWS_SKIP_SIGNATURE): "), "{reason}");
}

#[test]
fn files_of_google_credentials_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key.json");
    let path = file.to_str().unwrap();
    for (content, why) in [
        (None, "No such file or directory (os error 2)"),
        (Some("key"), "expected value at line 1 column 1"),
        (Some("\"hidden\""), "it is not a JSON key"),
    ] {
        if let Some(content) = content {
            std::fs::write(&file, content).unwrap();
        }
        for name in ["GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT", "SERVICE_ACCOUNT"] {
            let place = format!("the variable {name} (option {})", name.to_ascii_lowercase());
            let reason = refused("gs://b/x", &[], &[(name, path)]);
            assert_eq!(reason, format!("the file in {place} is not usable: {path}: {why}"));
        }
    }
    let key = ("google_service_account_key", "hidden");
    let place = "the option google_service_account_key (variable GOOGLE_SERVICE_ACCOUNT_KEY)";
    assert_eq!(refused("gs://b/x", &[key], &[]), format!("{place} is not a service account key in JSON"));
    let reason = refused("gs://b/x", &[key, ("service_account", path)], &[]);
    assert!(reason.starts_with("both the option service_account ("), "{reason}");
}

#[test]
fn empty_values_are_as_none() {
    let environment = ["AWS_ENDPOINT_URL", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN"];
    let environment = environment.map(|name| (name.to_owned(), String::new()));
    let options = Options::new([("aws_secret_access_key", ""), ("anonymous", "1")]).unwrap();
    build(&parse("s3://b/x"), &options, &environment).unwrap();
}

#[test]
fn anonymous_access_needs_no_valid_keys() {
    let environment = [("AWS_ACCESS_KEY_ID".to_owned(), "k\r".to_owned())];
    let options = Options::new([("anonymous", "1"), ("skip_signature", "false")]).unwrap();
    build(&parse("s3://b/x"), &options, &environment).unwrap();
}
