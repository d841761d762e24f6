//! Credentials that users keep outside of the program: AWS profiles.

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;

use crate::error::ErrorKind;
use crate::local::read_text;
use crate::net::{Failure, Options, variable};

/// Settings of an AWS profile.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Profile {
    settings: BTreeMap<String, String>,
}

impl Profile {
    /// The profile that options or environment choose, from `~/.aws/config` and `~/.aws/credentials`.
    pub(super) fn load(options: &Options) -> Result<Self, Failure> {
        let option = options.get("profile").map(str::to_owned);
        let chosen = option.or_else(|| variable("AWS_PROFILE")).or_else(|| variable("AWS_DEFAULT_PROFILE"));
        let is_chosen = chosen.is_some();
        let name = chosen.unwrap_or_else(|| "default".to_owned());
        let config = settings_file("AWS_CONFIG_FILE", "config");
        let credentials = settings_file("AWS_SHARED_CREDENTIALS_FILE", "credentials");
        let mut found = section(&config, &format!("profile {name}"));
        if found.is_none() {
            found = section(&config, &name);
        }
        let secrets = section(&credentials, &name);
        if is_chosen && found.is_none() && secrets.is_none() {
            let reason = format!("AWS profile '{name}' not found in ~/.aws/config or ~/.aws/credentials");
            return Err(Failure::lasting(ErrorKind::Denied, reason));
        }
        let mut settings = found.unwrap_or_default();
        settings.extend(secrets.unwrap_or_default());
        Ok(Self { settings })
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }

    /// The settings that only the AWS tools can turn into credentials.
    pub(super) fn unsupported(&self) -> Option<&str> {
        let names = ["credential_process", "sso_session", "sso_start_url", "source_profile"];
        names.into_iter().find(|name| self.settings.contains_key(*name))
    }
}

/// The text of a file in `~/.aws`, or where a variable says.
fn settings_file(variable_name: &str, name: &str) -> String {
    let path = match variable(variable_name) {
        Some(path) => PathBuf::from(path),
        None => match env::home_dir() {
            Some(home) => home.join(".aws").join(name),
            None => return String::new(),
        },
    };
    read_text(&path).unwrap_or_default()
}

/// The settings of one section. Indented lines belong to nested settings, which are not used here.
fn section(text: &str, name: &str) -> Option<BTreeMap<String, String>> {
    let mut found: Option<BTreeMap<String, String>> = None;
    let mut is_inside = false;
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some(title) = trimmed.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            let mut words = title.split_whitespace();
            is_inside = words.by_ref().eq(name.split_whitespace());
            if is_inside {
                found.get_or_insert_default();
            }
            continue;
        }
        let is_plain = !line.starts_with(char::is_whitespace) && !trimmed.starts_with(['#', ';']);
        if let (true, true, Some(found), Some((key, value))) =
            (is_inside, is_plain, &mut found, trimmed.split_once('='))
        {
            found.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_of_settings_files_are_found() {
        let text = "# comment\n[default]\nregion = eu-west-1\ns3 =\n  addressing_style = path\n\n\
                    [profile  lab]\nAWS_ACCESS_KEY_ID=a=b\n;x = 1\n[profile lab]\nregion=here\n";
        let default = section(text, "default").unwrap();
        assert_eq!(default.get("region").map(String::as_str), Some("eu-west-1"));
        assert!(!default.contains_key("addressing_style"));
        let lab = section(text, "profile lab").unwrap();
        let values: Vec<(&str, &str)> = lab.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(values, [("aws_access_key_id", "a=b"), ("region", "here")]);
        assert_eq!(section(text, "lab"), None);
    }

    #[test]
    fn a_chosen_profile_must_exist() {
        let options = Options::new([("profile", "surely-not-there")]).unwrap();
        let failure = Profile::load(&options).err().unwrap();
        assert_eq!(failure.kind, ErrorKind::Denied);
    }
}
