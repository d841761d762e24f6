//! Credentials in names and messages, which are never shown.

/// The text shown instead of a credential.
const HIDDEN: &str = "***";
/// Parts of the names of parameters that carry credentials.
const SECRET_NAMES: [&str; 8] = ["auth", "token", "pass", "secret", "sig", "key", "cred", "cap."];
/// How the values of credentials start: bearer tokens and JSON web tokens.
const SECRET_VALUES: [&str; 3] = ["bearer", "eyj", "zteos"];
/// Schemes of stores. Names of objects may have a question mark.
const STORES: [&str; 8] = ["s3", "s3a", "gs", "gcs", "az", "azure", "abfs", "abfss"];
/// Schemes of XRootD. Their parameters are a part of the name, except for credentials.
pub(crate) const XROOTD: [&str; 4] = ["root", "roots", "xroot", "xroots"];

/// Whether a parameter of a query string is a credential.
pub(crate) fn is_secret(parameter: &str) -> bool {
    let (name, value) = parameter.split_once('=').unwrap_or(("", parameter));
    let (name, value) = (name.to_ascii_lowercase(), value.to_ascii_lowercase());
    SECRET_NAMES.iter().any(|secret| name.contains(secret)) || SECRET_VALUES.iter().any(|s| value.starts_with(s))
}

/// Parameters without the values of credentials.
pub(crate) fn hide_parameters(parameters: &str) -> String {
    let shown = |parameter: &str| match parameter.split_once('=') {
        Some((name, _)) if is_secret(parameter) => format!("{name}={HIDDEN}"),
        None if is_secret(parameter) => HIDDEN.to_owned(),
        _ => parameter.to_owned(),
    };
    parameters.split('&').map(shown).collect::<Vec<_>>().join("&")
}

/// A URL as a user has typed it, without user name, password and credentials.
///
/// Of URLs for XRootD, parameters are kept, because they may choose the content; those that are credentials are hidden.
/// All others lose query string and fragment: a pre-signed URL is an authorization as a whole.
pub(crate) fn display_name(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let is_one_of = |schemes: &[&str]| schemes.iter().any(|known| scheme.eq_ignore_ascii_case(known));
    let (rest, parameters) = if is_one_of(&STORES) {
        (rest, None)
    } else if is_one_of(&XROOTD) {
        rest.split_once('?').map_or((rest, None), |(rest, parameters)| (rest, Some(parameters)))
    } else {
        (rest.split(['?', '#']).next().unwrap_or_default(), None)
    };
    // Clients ignore more slashes before the host.
    let slashes = if is_one_of(&STORES) { 0 } else { rest.len() - rest.trim_start_matches(['/', '\\']).len() };
    let (slashes, rest) = rest.split_at(slashes);
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    // Text other than a port may be the beginning of a password with a slash, which ends the authority.
    let is_port = |port: &str| port.chars().all(|c| c.is_ascii_digit());
    if !is_one_of(&STORES)
        && path.contains('@')
        && !authority.ends_with(']')
        && authority.rsplit_once(':').is_some_and(|(_, port)| !is_port(port))
    {
        return format!("{scheme}://{slashes}{HIDDEN}@{}", path.rsplit('@').next().unwrap_or_default());
    }
    // Azure has the container before the account: abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/KEY
    let is_container = is_one_of(&STORES[4..]);
    let authority = if is_container { authority } else { authority.rsplit('@').next().unwrap_or_default() };
    match parameters {
        Some(parameters) => format!("{scheme}://{slashes}{authority}{path}?{}", hide_parameters(parameters)),
        None => format!("{scheme}://{slashes}{authority}{path}"),
    }
}

/// A message of a server or of a library, without the credentials that it may repeat.
pub(crate) fn hide_in_message(message: &str) -> String {
    // None of these can be in a URL.
    let is_end = |c: char| c.is_whitespace() || "\"`<>".contains(c);
    let mut is_credential = false;
    let hide = |word: &str| {
        let end = word.trim_end_matches(is_end);
        let shown = match is_credential && !end.is_empty() {
            true => format!("{HIDDEN}{}", &word[end.len()..]),
            false => hide_in_word(word),
        };
        // What follows the name of an authorization scheme.
        is_credential =
            ["basic", "bearer"].contains(&end.to_ascii_lowercase().as_str()) || is_credential && end.is_empty();
        shown
    };
    message.split_inclusive(is_end).map(hide).collect()
}

/// `word` may have its separator at the end.
fn hide_in_word(word: &str) -> String {
    let end = word.trim_end_matches(|c: char| c.is_whitespace() || "\"`<>'()[],.;:".contains(c));
    let (word, after) = word.split_at(end.len());
    let start =
        word.find("://").map(|at| word[..at].rfind(|c: char| !c.is_ascii_alphanumeric()).map_or(0, |at| at + 1));
    if let Some(start) = start {
        return format!("{}{}{after}", &word[..start], display_name(&word[start..]));
    }
    let (before, rest) = word.split_at(word.find(['?', '&']).map_or(0, |at| at + 1));
    let lower = rest.to_ascii_lowercase();
    if rest.contains('=') {
        format!("{before}{}{after}", hide_parameters(rest))
    } else if SECRET_VALUES[1..].iter().any(|start| lower.contains(start)) {
        format!("{before}{HIDDEN}{after}")
    } else {
        format!("{word}{after}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_credentials() {
        for (name, shown) in [
            ("https://ann:pass@host:80/a%20b/x.root?X-Amz-Signature=1#2", "https://host:80/a%20b/x.root"),
            ("HTTPS://host?a=/b@c", "HTTPS://host"),
            ("davs://ann@host/x?sig=1", "davs://host/x"),
            ("s3://key:secret@box/a?b/x", "s3://box/a?b/x"),
            ("abfss://box@account.dfs.core.windows.net/x", "abfss://box@account.dfs.core.windows.net/x"),
            ("root://h//x?authz=Bearer%20abc&svc=1", "root://h//x?authz=***&svc=1"),
            ("root://user:pw@h:1//x", "root://h:1//x"),
            ("root://h//x?a=Bearer%20abc", "root://h//x?a=***"),
            ("root://h//x?xrd.wantprot=unix", "root://h//x?xrd.wantprot=unix"),
            ("root://h//x?access_token=y&eyJhbGciOi", "root://h//x?access_token=***&***"),
            ("http:///ann:pass@h/x", "http:///h/x"),
            ("root:////ann:pass@h//x", "root:////h//x"),
            ("http://ann:pa/ss@h/x", "http://***@h/x"),
            ("http://h:80/x@y", "http://h:80/x@y"),
            ("http://[::1]:80/x@y", "http://[::1]:80/x@y"),
            ("/data/x@y/z", "/data/x@y/z"),
            ("x.root", "x.root"),
        ] {
            assert_eq!(display_name(name), shown);
        }
    }

    #[test]
    fn messages_have_no_credentials() {
        for (message, shown) in [
            (
                "the key of eyJhb.eyJz.s is unknown; /x?authz=Bearer eyJhb.eyJz.s",
                "the key of *** is unknown; /x?authz=*** ***",
            ),
            (
                "error for url (https://h/a?sig=s&t=1) and \"http://ann:pass@h/b?x=1\"? yes",
                "error for url (https://h/a) and \"http://h/b\"? yes",
            ),
            (
                "Unable to open /x?authz=eyJ&y=1; token eyJs is refused",
                "Unable to open /x?authz=***&y=1; token *** is refused",
            ),
            (
                "<a>https://h/a?sig=s</a>\n(see root://h//x?authz=t&y=1)",
                "<a>https://h/a</a>\n(see root://h//x?authz=***&y=1)",
            ),
            ("what? nothing: a=b", "what? nothing: a=b"),
            ("auth Basic  YW5uOlNF failed; Bearer macaroon is bad", "auth Basic  *** failed; Bearer *** is bad"),
        ] {
            assert_eq!(hide_in_message(message), shown);
        }
    }
}
