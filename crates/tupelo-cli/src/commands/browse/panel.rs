//! What the panel says of the selected node.

use std::collections::BTreeMap;

use tupelo::ops::inspect::{ColumnReport, Report};

use super::super::head::drawing::{Labels, Letters, Plot, Space, named_bars};
use super::super::inspect::text::{Words, level, page_sizes, summary};
use super::super::ls::note;
use super::app::{App, Known};
use super::contents::{Content, FieldNode, Listed, Opened, State};
use super::outline::NodeId;
use super::values::Values;
use crate::failure::Failure;
use crate::table::{Table, bytes, count, cut, cut_middle, ratio, share, things};
use crate::text::{BOLD, CYAN, DIM, RED, Text, YELLOW, wrapped};

/// Fewest and most lines of a plot.
const PLOT_LINES: [usize; 2] = [8, 30];
/// Most columns and fields that are listed.
const LISTED: usize = 10;
/// Characters of a line of columns besides the name of the column, and the fewest of that.
const COLUMNS: usize = 41;
const MIN_COLUMN: usize = 8;
/// Characters of what a plot says of its bins.
const REMARK: usize = 25;

/// Writes the text.
struct Writer<'a> {
    text: Text,
    letters: Letters,
    /// Characters in a line, and lines of the window.
    width: usize,
    height: usize,
    app: &'a App,
}

/// The text for a window of `width` characters and `height` lines; it may have more lines.
pub(super) fn text(app: &App, width: usize, height: usize) -> Text {
    let mut writer = Writer { text: Text::new(app.has_color), letters: app.letters, width, height, app };
    if let Some(id) = app.outline.selected() {
        writer.node(id);
    }
    writer.text
}

impl Writer<'_> {
    fn node(&mut self, id: NodeId) {
        let node = self.app.outline.node(id);
        self.text.wrap_styled(BOLD, &node.label.path, self.width);
        if let Some(listed) = node.content.listed() {
            self.listed(listed);
        }
        match &node.content {
            Content::Directory(_) => self.directory(id),
            Content::Table(_, State::Unread) => self.dim("reading …"),
            Content::Table(_, State::Failed(failure)) => self.failure(failure),
            Content::Table(_, State::Read(opened)) => self.table(opened),
            Content::Object(Listed { object, .. }) => {
                self.text.end_line();
                self.named("Record", &bytes(object.bytes));
                match self.app.task(id) {
                    Some(_) => self.known(id),
                    None => {
                        let other = "Objects of this class are not drawn; `tupelo dump` prints it as JSON.";
                        self.text.end_line().wrap(other, self.width);
                    }
                }
            }
            Content::Field(field) => self.field(id, field),
        }
    }

    /// Class and title of an object.
    fn listed(&mut self, Listed { object, older }: &Listed) {
        self.text.wrap(&object.class_name, self.width);
        if !object.title.is_empty() && !object.path.ends_with(&object.title) {
            self.text.wrap(&object.title, self.width);
        }
        if *older > 0 {
            let cycles = things(*older as u64, "older cycle");
            self.text.wrap(format!("{cycles}; `tupelo ls` lists these"), self.width);
        }
    }

    /// A line with its name.
    fn named(&mut self, name: &str, what: &str) {
        self.text.styled(BOLD, format!("{name:<10}")).wrap(what, self.width);
    }

    fn dim(&mut self, text: &str) {
        self.text.end_line().styled(DIM, text).end_line();
    }

    fn failure(&mut self, failure: &Failure) {
        let message = failure.message.as_deref().unwrap_or("it cannot be read");
        self.text.end_line().styled(RED, "error:").add(" ").wrap(message, self.width);
        if let Some(hint) = &failure.hint {
            self.text.styled(CYAN, "hint:").add("  ").wrap(hint, self.width);
        }
        self.dim("The key r reads it again.");
    }

    fn directory(&mut self, id: NodeId) {
        let mut classes: BTreeMap<&str, u64> = BTreeMap::new();
        let below = self.app.outline.below(id).into_iter().skip(1);
        for listed in below.filter_map(|id| self.app.outline.node(id).content.listed()) {
            *classes.entry(&listed.object.class_name).or_default() += 1;
        }
        let mut table = Table::new(&["CLASS", ">OBJECTS"]);
        classes.into_iter().for_each(|(class, objects)| table.line([class.to_owned(), count(objects)]));
        table.add_below(&mut self.text);
    }

    fn table(&mut self, opened: &Opened) {
        let (report, words) = (&opened.report, Words::of(&opened.report));
        let fields = things(report.fields.len() as u64, "field");
        self.text.wrap(format!("{} in {fields}", things(report.entries, "entry")), self.width).end_line();
        for (name, what) in summary(report, &words) {
            self.named(&name, &what);
        }
        for warning in opened.warnings.iter().take(LISTED) {
            self.text.end_line().styled(YELLOW, "warning:").add(" ").wrap(warning, self.width);
        }
        if let Some(more @ 1..) = opened.warnings.len().checked_sub(LISTED) {
            self.text.add(format!("and {}", things(more as u64, "more warning"))).end_line();
        }
        self.advice(report);
        let mut fields: Vec<_> = report.fields.iter().filter(|field| field.stored_bytes > 0).collect();
        fields.sort_by_key(|field| std::cmp::Reverse(field.stored_bytes));
        let fields = fields.into_iter().take(LISTED).map(|field| (field.name.clone(), field.stored_bytes));
        self.sizes("Stored bytes of the largest fields", fields.unzip());
        let mut table = Table::new(&["CODEC", words.pages, ">STORED", ">RATIO"]);
        for group in &report.codecs {
            let sizes = (bytes(group.stored_bytes), ratio(group.unpacked_bytes, group.stored_bytes));
            table.line([group.name.clone(), count(group.pages), sizes.0, sizes.1]);
        }
        table.add_below(&mut self.text);
        if let Some((title, bars)) = page_sizes(report, &words) {
            let space = self.space(None);
            bars.add_to(&title, false, space, self.text.end_line());
        }
    }

    fn advice(&mut self, report: &Report) {
        self.text.end_line().styled(BOLD, "Advice").end_line();
        if report.advice.is_empty() {
            self.text.wrap("none: sizes and codecs are good", self.width);
        }
        for advice in &report.advice {
            let (level, style) = level(advice.level);
            self.text.styled(style, format!("{level:<6}")).add("  ").wrap(&advice.what, self.width);
            self.text.add(" ".repeat(8)).wrap(&advice.why, self.width);
            self.text.add(" ".repeat(8)).wrap(&advice.how, self.width);
        }
    }

    fn field(&mut self, id: NodeId, field: &FieldNode) {
        let (report, label) = (&field.opened.report, &self.app.outline.node(id).label);
        if !label.type_name.is_empty() {
            self.text.wrap(&label.type_name, self.width);
        }
        if !field.description.is_empty() {
            self.text.wrap(&field.description, self.width);
        }
        let note = note(field.unreadable.as_deref(), field.projected_from.as_deref());
        if !note.is_empty() {
            self.text.wrap_styled(YELLOW, note, self.width);
        }
        self.text.end_line();
        let words = Words::of(report);
        if field.projected_from.is_none() {
            let (stored, pages) = (bytes(field.stored_bytes), things(field.pages, words.page));
            let of_all = share(field.stored_bytes, report.bytes.stored_bytes);
            self.named("Stored", &format!("{stored} in {pages}, {of_all} of all"));
            let unpacked = bytes(field.unpacked_bytes);
            self.named("Unpacked", &format!("{unpacked}, ratio {}", ratio(field.unpacked_bytes, field.stored_bytes)));
        }
        self.columns(id, field, &words);
        match field.values {
            _ if field.unreadable.is_some() => {}
            Values::Members => {
                let children = self.app.outline.node(id).children.iter().map(|child| self.app.outline.node(*child));
                let sizes = children.map(|child| (child.label.name.clone(), child.label.bytes.unwrap_or(0)));
                self.sizes("Stored bytes of the members", sizes.unzip());
            }
            _ => self.known(id),
        }
    }

    /// The columns of a field and of all below it, or the largest of them.
    fn columns(&mut self, id: NodeId, field: &FieldNode, words: &Words) {
        let below = self.app.outline.below(id).into_iter().map(|id| self.app.outline.node(id));
        let report = &field.opened.report;
        let mut columns: Vec<&ColumnReport> = below
            .filter_map(|node| node.content.field())
            .flat_map(|field| &field.columns)
            .filter_map(|place| report.columns.get(*place))
            .collect();
        let mut codecs: Vec<&str> = columns.iter().map(|it| it.codec.as_str()).filter(|it| !it.is_empty()).collect();
        codecs.sort_unstable();
        codecs.dedup();
        // Nearly always, all have the same one.
        if let [codec] = codecs[..] {
            self.named("Codec", codec);
        }
        let more = columns.len().saturating_sub(LISTED);
        if more > 0 {
            columns.sort_by_key(|column| std::cmp::Reverse(column.stored_bytes));
            columns.truncate(LISTED);
        }
        // Those that a narrow panel lacks are last.
        let heads = [words.head, "STORED AS", ">STORED", ">RATIO", words.pages, "CODEC"];
        let (is_narrow, has_codec) = (self.width < COLUMNS + MIN_COLUMN, codecs.len() > 1);
        let shown = 4 + usize::from(!is_narrow) + usize::from(!is_narrow && has_codec);
        let mut table = Table::new(&heads[..shown]);
        for column in columns {
            let path = column.path.strip_prefix(&field.column_path).unwrap_or(&column.path).trim_start_matches('.');
            let name = if path.is_empty() { &self.app.outline.node(id).label.name } else { path };
            let stored = match column.shared_pages {
                shared if shared > 0 && column.stored_bytes == 0 => "shared".to_owned(),
                _ => bytes(column.stored_bytes),
            };
            // The others have the bits of their name.
            let has_bits = column.bits > 0 && column.column_type.starts_with("Real32");
            let bits = if has_bits { format!(" {}", column.bits) } else { String::new() };
            let cells = [
                cut_middle(name, self.width.saturating_sub(COLUMNS).max(MIN_COLUMN)),
                format!("{}{bits}", column.column_type),
                stored,
                format!("{:.2}", column.ratio()),
                count(column.pages),
                column.codec.clone(),
            ];
            table.line(cells.into_iter().take(shown));
        }
        table.add_below(&mut self.text);
        if more > 0 {
            self.text.add(format!("and {} smaller", count(more as u64))).end_line();
        }
    }

    /// The plot of a node, or why there is none.
    fn known(&mut self, id: NodeId) {
        match self.app.known(id) {
            None => self.dim("reading …"),
            Some(Known::Reading(read, of)) => {
                let text = format!("reading: {} of {} …", count(*read), things(*of, "entry"));
                self.dim(&text);
            }
            Some(Known::Failed(failure)) => self.failure(failure),
            Some(Known::Plot(plot, labels)) => {
                self.text.end_line();
                let [fewest, most] = PLOT_LINES;
                let below = wrapped(&labels.summary, self.width).len();
                let lines = self.height.saturating_sub(self.text.height() + 1 + below).clamp(fewest, most);
                let (space, is_field) = (self.space(Some(lines)), self.app.outline.node(id).content.field().is_some());
                match plot {
                    // Bins are of interest only where the file has them.
                    Plot::Bars(bars) if is_field => {
                        bars.fitting(lines).0.add_to(&cut(&labels.title, self.width), false, space, &mut self.text);
                    }
                    // The title of an object is above.
                    plot => plot.add_to(&axes(plot, labels, self.width), false, space, &mut self.text),
                }
                self.text.wrap(&labels.summary, self.width);
            }
        }
    }

    /// Bars of bytes.
    fn sizes(&mut self, title: &str, (names, sizes): (Vec<String>, Vec<u64>)) {
        if !names.is_empty() {
            let bars = named_bars(names, sizes.into_iter().map(|size| size as f64).collect());
            let space = self.space(None);
            Plot::Bars(bars).add_to(title, false, space, self.text.end_line());
        }
    }

    /// The space of a plot.
    fn space(&self, lines: Option<usize>) -> Space {
        Space { letters: self.letters, columns: Some(self.width), lines }
    }
}

/// What the axes of a plot are, with space for a remark after it.
fn axes(plot: &Plot, labels: &Labels, width: usize) -> String {
    let what = if matches!(plot, Plot::Points(_)) { "Points" } else { "Bins" };
    let titles: Vec<&str> = labels.axes.iter().map(String::as_str).filter(|title| !title.is_empty()).collect();
    let title = if titles.is_empty() { what.to_owned() } else { format!("{what} of {}", titles.join(", ")) };
    cut(&title, width.saturating_sub(REMARK).max(what.len()))
}
