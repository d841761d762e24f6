//! The explanation of a refusal by a server, in XML as from S3 and Azure or in JSON as from Google.

use serde_json::Value;

/// Characters of the server's explanation in messages.
const MAX_CHARS: usize = 300;

/// The content of an element of an error document, without what could confuse a terminal.
pub(super) fn element(xml: &str, name: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once('<')?;
    Some(printable(&without_entities(text)))
}

/// The explanation in a JSON document. Token services call it `error_description`.
pub(super) fn json_message(body: &str) -> Option<String> {
    let document: Value = serde_json::from_str(body).ok()?;
    let found =
        ["/error/message", "/message", "/error_description"].into_iter().find_map(|path| document.pointer(path));
    found.and_then(Value::as_str).map(printable)
}

/// Text with the characters that its entities stand for.
fn without_entities(text: &str) -> String {
    let mut pieces = text.split('&');
    let mut found = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.split_once(';').and_then(|(name, rest)| Some((entity(name)?, rest))) {
            Some((c, rest)) => {
                found.push(c);
                found.push_str(rest);
            }
            None => found.extend(["&", piece]),
        }
    }
    found
}

fn entity(name: &str) -> Option<char> {
    let code = match name {
        "quot" => return Some('"'),
        "apos" => return Some('\''),
        "amp" => return Some('&'),
        "lt" => return Some('<'),
        "gt" => return Some('>'),
        name => name.strip_prefix('#')?,
    };
    let code = match code.strip_prefix(['x', 'X']) {
        Some(code) => u32::from_str_radix(code, 16),
        None => code.parse(),
    };
    char::from_u32(code.ok()?)
}

/// One line without control characters, and without the number and the time of the request, which Azure adds.
fn printable(text: &str) -> String {
    let text = text.split("\nRequestId:").next().unwrap_or_default().trim();
    let lines = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c });
    lines.filter(|c| !c.is_control()).take(MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_are_decoded_once() {
        let xml = "<E><Message>&#34;a&quot; &amp;lt; &lt;b&gt; &apos;c&#x27; &odd; &#27;[31m&</Message></E>";
        assert_eq!(element(xml, "Message").unwrap(), "\"a\" &lt; <b> 'c' &odd; [31m&");
        assert_eq!(element(xml, "Code"), None);
        assert_eq!(without_entities("&#xFFFFFFFFF;&#-1;&;"), "&#xFFFFFFFFF;&#-1;&;");
    }

    #[test]
    fn azure_adds_a_number_and_a_time_that_are_not_shown() {
        let xml = "<Error><Message>The blob does\nnot exist.\r\nRequestId:7f-1\nTime:2026-01-01T00:00:00Z</Message>";
        assert_eq!(element(xml, "Message").unwrap(), "The blob does not exist.");
    }

    #[test]
    fn messages_are_found_in_json_only() {
        let google = r#" {"error": {"code": 404, "message" : "No \"object\":\nb\/x\u0021", "errors": []}}"#;
        assert_eq!(json_message(google).unwrap(), "No \"object\": b/x!");
        let token = r#"{"error": "invalid_grant", "error_description": "Token has expired."}"#;
        assert_eq!(json_message(token).unwrap(), "Token has expired.");
        for body in
            ["<p>\"message\": \"x\"</p>", r#"{"message": 3}"#, r#"{"message": "cut"#, r#"{"message": "\u00"#, ""]
        {
            assert_eq!(json_message(body), None, "{body}");
        }
    }
}
