//! The report as one HTML page without other files.

use serde_json::{Value, json};
use std::collections::HashMap;

use tupelo::ops::inspect::{AttributeSetReport, ColumnReport, Part, Report, Run, Spread};
use tupelo::printable;

use super::{Inspected, explain};
use crate::failure::Failure;
use crate::table::{bytes, count, things};

const PAGE: &str = include_str!("report.html");
const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");
/// How many fields the page lists where scripts do not run.
const LISTED: usize = 20;

/// The page of some reports.
pub(super) fn write(all: &[Inspected]) -> Result<String, Failure> {
    let data = json!({ "tables": all.iter().map(table).collect::<Vec<_>>() });
    let data = serde_json::to_string(&data).map_err(Failure::new)?;
    let title = match all {
        [only] => format!("{}:{}", only.report.file, only.report.name),
        several => things(several.len() as u64, "object"),
    };
    let parts = [
        ("{title}", escape(&title)),
        ("{style}", STYLE.to_owned()),
        ("{plain}", all.iter().map(|it| plain(&it.report)).collect()),
        ("{data}", in_script(&data)),
        ("{script}", SCRIPT.to_owned()),
    ];
    // One pass, so that no name of the file is taken for a place of the template.
    let mut page = String::with_capacity(PAGE.len() + parts.iter().map(|(_, part)| part.len()).sum::<usize>());
    let mut rest = PAGE;
    for (place, part) in &parts {
        if let Some((before, after)) = rest.split_once(place) {
            page += before;
            page += part;
            rest = after;
        }
    }
    Ok(page + rest)
}

/// JSON that cannot end the element around it.
fn in_script(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => text += &format!("\\u{:04x}", u32::from(letter)),
            letter => text.push(letter),
        }
    }
    text
}

/// Text for HTML. Control characters and such that change the direction of text are escaped as in the terminal.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for letter in printable(text).chars() {
        match letter {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// The largest fields, for browsers without scripts.
fn plain(report: &Report) -> String {
    let mut fields: Vec<_> = report.fields.iter().collect();
    fields.sort_by_key(|field| std::cmp::Reverse(field.stored_bytes));
    let caption = format!(
        "{}:{}: {}, {} in {}",
        report.file,
        report.name,
        things(report.entries, "entry"),
        bytes(report.bytes.unpacked_bytes),
        bytes(report.bytes.stored_bytes),
    );
    let mut html = format!("<table><caption>{}</caption><thead><tr>", escape(&caption));
    for head in ["Field", "Type", "Pages", "Unpacked", "Stored"] {
        html += &format!("<th scope=\"col\">{head}</th>");
    }
    html += "</tr></thead><tbody>";
    for field in fields.into_iter().take(LISTED) {
        html += &format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&field.name),
            escape(&field.type_name),
            count(field.pages),
            bytes(field.unpacked_bytes),
            bytes(field.stored_bytes),
        );
    }
    html + "</tbody></table>"
}

/// Texts that occur often, by number.
#[derive(Default)]
struct Texts {
    numbers: HashMap<String, usize>,
    texts: Vec<String>,
}

impl Texts {
    fn number(&mut self, text: &str) -> usize {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        self.numbers.insert(text.to_owned(), self.texts.len());
        self.texts.push(printable(text).into_owned());
        self.texts.len() - 1
    }
}

/// A report as short arrays, whose items `report.js` names.
fn table(inspected: &Inspected) -> Value {
    let report = &inspected.report;
    let shown = |text: &str| printable(text).into_owned();
    let mut texts = Texts::default();
    let fields: Vec<Value> = report
        .fields
        .iter()
        .map(|field| {
            let mut row = json!([
                shown(&field.name),
                texts.number(&field.type_name),
                field.columns,
                field.pages,
                field.stored_bytes,
                field.unpacked_bytes,
            ]);
            let note = match (&field.unreadable, &field.projected_from) {
                (Some(reason), _) => format!("unreadable: {reason}"),
                (None, Some(source)) => format!("projected from {source}"),
                (None, None) => return row,
            };
            if let Some(row) = row.as_array_mut() {
                row.push(json!(shown(&note)));
            }
            row
        })
        .collect();
    let columns: Vec<Value> = report.columns.iter().map(|it| column(it, &mut texts)).collect();
    let cluster = |it: &tupelo::ops::inspect::ClusterReport| {
        json!([it.first_entry, it.entries, it.stored_bytes, it.unpacked_bytes, it.clusters])
    };
    json!({
        "file": shown(&report.file),
        "name": shown(&report.name),
        "class": shown(&report.class),
        "description": shown(&report.description),
        "writer": shown(&report.writer),
        "format": report.format_version,
        "store": report.store,
        "entries": report.entries,
        "pages": report.pages,
        "bytes": report.bytes,
        "entry": [report.entry_bytes, report.entry_bytes_with_metadata],
        "fields": fields,
        "columns": columns,
        "texts": texts.texts,
        "types": report.column_types,
        "codecs": report.codecs,
        "sizes": report.page_sizes.iter().map(|it| json!([it.from_bytes, it.pages, it.stored_bytes])).collect::<Vec<_>>(),
        "clusters": {
            "count": report.clusters.count,
            "entries": report.clusters.entries,
            "stored": report.clusters.stored_bytes,
            "list": report.clusters.list.iter().map(cluster).collect::<Vec<_>>(),
        },
        "sets": report.attribute_sets.iter().map(set).collect::<Vec<_>>(),
        "objects": report.objects.iter().map(|it| shown(it)).collect::<Vec<_>>(),
        "map": map(&report.map),
        "parts": report.parts.iter().map(part).collect::<Vec<_>>(),
        "advice": report.advice,
        "query": inspected.query.as_ref().map(explain::to_json),
    })
}

fn set(set: &AttributeSetReport) -> Value {
    let reason = set.unreadable.as_deref().map(printable);
    json!([printable(&set.name), set.entries, set.stored_bytes, set.metadata_bytes, reason])
}

fn part(part: &Part) -> Value {
    match part.object {
        None => json!([part.offset, part.bytes, part.what]),
        Some(object) => json!([part.offset, part.bytes, part.what, object]),
    }
}

fn column(column: &ColumnReport, texts: &mut Texts) -> Value {
    let mut row = json!([
        printable(&column.path),
        texts.number(&column.field_type),
        texts.number(&column.column_type),
        column.bits,
        texts.number(&column.codec),
        column.pages,
        column.elements,
        column.stored_bytes,
        column.unpacked_bytes,
    ]);
    // A single page says its size already.
    if let (Some(Spread { smallest, median, largest }), Some(row), 2..) =
        (column.page_bytes, row.as_array_mut(), column.pages)
    {
        row.extend([smallest, median, largest].map(Value::from));
    }
    row
}

/// Runs as differences: the bytes since the end of the run before, the span, column, cluster, first page and, unless they are
/// what they are for one page, the number of pages, of columns, the bytes and the object.
fn map(runs: &[Run]) -> Vec<Value> {
    let (mut end, mut object) = (0, None);
    let row = |run: &Run| {
        let start = if run.object == object { end } else { 0 };
        (end, object) = (run.offset + run.span_bytes, run.object);
        let gap = run.offset as i128 - start as i128;
        let gap = i64::try_from(gap).unwrap_or_default();
        let mut row =
            vec![json!(gap), json!(run.span_bytes), json!(run.column), json!(run.cluster), json!(run.first_page)];
        if (run.pages, run.columns, run.bytes, run.object) != (1, 1, run.span_bytes, None) {
            row.extend([json!(run.pages), json!(run.columns), json!(run.bytes), json!(run.object)]);
        }
        Value::Array(row)
    };
    runs.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_end_the_script() {
        let json = in_script("\"</script><img src=x onerror=1>&\u{2028}\"");
        assert_eq!(json, r#""\u003c/script\u003e\u003cimg src=x onerror=1\u003e\u0026\u2028""#);
        let back: String = serde_json::from_str(&json).unwrap();
        assert_eq!(back, "</script><img src=x onerror=1>&\u{2028}");
        assert_eq!(escape("<b a='\"'>\u{202e}&"), "&lt;b a=&#39;&quot;&#39;&gt;\\u{202e}&amp;");
    }

    #[test]
    fn the_template_has_each_place_once_in_order() {
        let places = ["{title}", "{style}", "{plain}", "{data}", "{script}"].map(|place| {
            assert_eq!(PAGE.matches(place).count(), 1, "{place}");
            PAGE.find(place)
        });
        assert!(places.is_sorted());
    }
}
