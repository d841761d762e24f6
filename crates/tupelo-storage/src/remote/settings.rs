//! The configuration of a store, from variables, profile and options.
//!
//! All of it is checked before `object_store` gets it, which puts it into URLs and headers and panics if they are invalid
//! then. An empty value is as none, as in the tools of AWS.

use std::str::FromStr;
use std::sync::Arc;

use reqwest::Url;

use crate::error::ErrorKind;
use crate::net::{Failure, Options, display_name};

/// The settings of one store by the keys of `object_store`.
pub(super) struct Settings<K> {
    values: Vec<Setting<K>>,
}

pub(super) struct Setting<K> {
    pub(super) key: K,
    pub(super) value: String,
    /// Where the value comes from, for messages: variable and option.
    pub(super) place: String,
}

/// The valid values of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    Any,
    /// A part of a header: visible ASCII.
    Text,
    /// A part of a host name.
    Name,
    /// The URL of a server.
    Url,
}

impl<K: Copy + PartialEq + AsRef<str> + FromStr> Settings<K> {
    /// The settings in variables with a prefix, and in the variable `other` where these have none.
    pub(super) fn of_variables(environment: &[(String, String)], prefix: &str, other: &str) -> Self {
        let mut settings = Self { values: Vec::new() };
        let others = environment.iter().filter(|(name, _)| name == other);
        for (name, value) in others.chain(environment.iter().filter(|(name, _)| name.starts_with(prefix))) {
            let option = name.to_ascii_lowercase();
            if let Ok(key) = option.parse() {
                settings.set(key, value, format!("the variable {name} (option {option})"));
            }
        }
        settings
    }

    /// Adds options, which replace the settings before.
    pub(super) fn add_options(&mut self, options: &Options) {
        for (name, value) in options.settings() {
            if let Ok(key) = name.parse::<K>() {
                self.set(key, value, format!("the option {name} (variable {})", variable_of(&key)));
            }
        }
    }

    /// Sets a value, or removes it if it is empty.
    pub(super) fn set(&mut self, key: K, value: &str, place: String) {
        self.remove(&[key]);
        if !value.is_empty() {
            self.values.push(Setting { key, value: value.to_owned(), place });
        }
    }

    pub(super) fn remove(&mut self, keys: &[K]) {
        self.values.retain(|setting| !keys.contains(&setting.key));
    }

    pub(super) fn find(&self, key: K) -> Option<&Setting<K>> {
        self.values.iter().find(|setting| setting.key == key)
    }

    pub(super) fn has(&self, key: K) -> bool {
        self.find(key).is_some()
    }

    /// The values of some keys, one a line.
    pub(super) fn joined(&self, keys: &[K]) -> Arc<str> {
        let value = |key: &K| self.find(*key).map_or("", |setting| &setting.value);
        keys.iter().map(value).collect::<Vec<_>>().join("\n").into()
    }

    /// The keys and values, which keep the rules.
    pub(super) fn checked(&self, rule: fn(K) -> Rule) -> Result<Vec<(K, &str)>, Failure> {
        let check = |setting: &'_ Setting<K>| match rule(setting.key) {
            Rule::Any => Ok(()),
            Rule::Text => check_text(&setting.place, &setting.value),
            Rule::Name => check_name(&setting.place, &setting.value, ""),
            Rule::Url => check_url(&setting.place, &setting.value),
        };
        self.values.iter().try_for_each(check)?;
        Ok(self.values.iter().map(|setting| (setting.key, setting.value.as_str())).collect())
    }

    /// The setting whose value a failure quotes.
    pub(super) fn quoted_in(&self, failure: &Failure) -> Option<&Setting<K>> {
        let quoted = |quote, value: &str| failure.reason.contains(&format!("{quote}{value}{quote}"));
        self.values.iter().find(|setting| quoted('"', &setting.value) || quoted('\'', &setting.value))
    }

    /// The failure to build a store, with the setting that it quotes or with the name of the store.
    #[cold]
    pub(super) fn unusable(&self, failure: Failure, store: &str) -> Failure {
        match self.quoted_in(&failure) {
            Some(setting) => failure.context(&setting.place),
            None => failure.context(format_args!("the configuration of {store} is invalid")),
        }
    }
}

/// The variable of a key.
fn variable_of<K: AsRef<str>>(key: &K) -> String {
    option_of(key).to_ascii_uppercase()
}

/// The option of a key, by the name that other programs use where `object_store` prefers a synonym.
fn option_of<K: AsRef<str>>(key: &K) -> &str {
    match key.as_ref() {
        "aws_endpoint" => "aws_endpoint_url",
        "azure_storage_sas_key" => "azure_storage_sas_token",
        name => name,
    }
}

/// The option and the variable of a key that is not set.
pub(super) fn names_of<K: AsRef<str>>(key: &K) -> String {
    format!("the option {} (variable {})", option_of(key), variable_of(key))
}

/// Refuses what headers cannot have, such as a line break at the end of a key from a file.
fn check_text(place: &str, text: &str) -> Result<(), Failure> {
    refuse(place, text.chars().find(|c| !c.is_ascii_graphic()))
}

/// Refuses what host names cannot have, except for some more characters.
pub(super) fn check_name(place: &str, name: &str, more: &str) -> Result<(), Failure> {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c) || more.contains(c);
    refuse(place, name.chars().find(|c| !is_valid(*c)))
}

/// The character is not shown: it may belong to a secret.
fn refuse(place: &str, found: Option<char>) -> Result<(), Failure> {
    let what = match found {
        None => return Ok(()),
        Some(' ') => "a space",
        Some('\n' | '\r') => "a line break",
        Some(c) if c.is_control() || c.is_whitespace() => "a control character",
        Some(_) => "a special character",
    };
    Err(invalid(format!("{place} contains {what}, which is not allowed")))
}

fn check_url(place: &str, text: &str) -> Result<(), Failure> {
    check_text(place, text)?;
    // Without a scheme, it is not clear what precedes an @.
    let is_secret = text.contains(['@', '?']);
    let shown = if is_secret { String::new() } else { format!(", not '{}'", display_name(text)) };
    let expected = format!("{place} must be a URL such as https://HOST or http://HOST:PORT{shown}");
    let url = match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => url,
        Err(error) if text.contains("://") => return Err(invalid(format!("{expected}: {error}"))),
        _ => return Err(invalid(expected)),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid(format!("{place} contains a user name or a password: use the options for credentials")));
    }
    // The two parsers differ in what they accept.
    text.parse::<http::Uri>().map(drop).map_err(|error| invalid(format!("{expected}: {error}")))
}

#[cold]
fn invalid(reason: String) -> Failure {
    Failure::lasting(ErrorKind::NotSupported, reason)
}
