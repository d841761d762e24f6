//! Credentials in URLs and messages, which are never shown.

/// What is shown instead of a credential.
const HIDDEN: &str = "***";
/// Parts of the names of parameters that carry credentials.
const SECRET_NAMES: [&str; 8] = ["auth", "token", "pass", "secret", "sig", "key", "cred", "cap."];
/// How the values of credentials start: bearer tokens and JSON web tokens.
const SECRET_VALUES: [&str; 3] = ["bearer", "eyj", "zteos"];

/// A path with opaque information.
pub(super) fn with_opaque(path: &str, opaque: Option<&str>) -> String {
    match opaque {
        Some(opaque) => format!("{path}?{opaque}"),
        None => path.to_owned(),
    }
}

/// Whether a parameter of opaque information is a credential.
pub(super) fn is_secret(parameter: &str) -> bool {
    let (name, value) = parameter.split_once('=').unwrap_or(("", parameter));
    let (name, value) = (name.to_ascii_lowercase(), value.to_ascii_lowercase());
    SECRET_NAMES.iter().any(|secret| name.contains(secret)) || SECRET_VALUES.iter().any(|s| value.starts_with(s))
}

/// Parameters without the values of credentials.
pub(super) fn hide_parameters(opaque: &str) -> String {
    let shown = |parameter: &str| match parameter.split_once('=') {
        Some((name, _)) if is_secret(parameter) => format!("{name}={HIDDEN}"),
        None if is_secret(parameter) => HIDDEN.to_owned(),
        _ => parameter.to_owned(),
    };
    opaque.split('&').map(shown).collect::<Vec<_>>().join("&")
}

/// Anything a user has typed as a URL, without user and credentials.
pub(crate) fn hide(text: &str) -> String {
    let (rest, opaque) = text.split_once('?').map_or((text, None), |(rest, opaque)| (rest, Some(opaque)));
    let rest = match rest.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            format!("{scheme}://{}{path}", authority.rsplit('@').next().unwrap_or_default())
        }
        None => rest.to_owned(),
    };
    with_opaque(&rest, opaque.map(hide_parameters).as_deref())
}

/// A message of a server without the credentials that it may repeat.
pub(super) fn hide_in_message(message: &str) -> String {
    let hide_word = |word: &str| {
        let (before, rest) = word.split_at(word.find(['?', '&']).map_or(0, |at| at + 1));
        let lower = rest.to_ascii_lowercase();
        if rest.contains('=') {
            format!("{before}{}", hide_parameters(rest))
        } else if SECRET_VALUES[1..].iter().any(|start| lower.contains(start)) {
            format!("{before}{HIDDEN}")
        } else {
            word.to_owned()
        }
    };
    message.split(' ').map(hide_word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_hidden_wherever_they_are() {
        for (shown, hidden) in [
            ("root://h//x?authz=Bearer%20abc&svc=1", "root://h//x?authz=***&svc=1"),
            ("root://user:pw@h:1//x", "root://h:1//x"),
            ("root://h//x?a=Bearer%20abc", "root://h//x?a=***"),
            ("root://h//x?xrd.wantprot=unix", "root://h//x?xrd.wantprot=unix"),
            ("root://h//x?access_token=y&eyJhbGciOi", "root://h//x?access_token=***&***"),
            ("/data/x@y/z", "/data/x@y/z"),
        ] {
            assert_eq!(hide(shown), hidden);
        }
        assert_eq!(
            hide_in_message("the key of eyJhb.eyJz.s is unknown; /x?authz=Bearer eyJhb.eyJz.s"),
            "the key of *** is unknown; /x?authz=*** ***"
        );
    }
}
