//! Draws the state of the screen.

#[cfg(test)]
mod tests;

use anstyle::{AnsiColor, Color as AnsiColorOf, Effects};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Widget as _};
use tupelo::printable;

use super::super::head::drawing::Letters;
use super::app::{App, Focus};
use super::contents::Content;
use super::outline::{self, INDENT};
use super::panel;
use crate::table::{bytes, count, cut, cut_middle, pad, things, width};
use crate::text::{BOLD, CYAN, DIM, Text};

/// Narrower windows have the panel below the outline.
const MIN_BESIDE: u16 = 76;
/// Fewest and most characters of an outline beside the panel.
const BESIDE: [u16; 2] = [36, 80];
/// Lower windows without space beside the outline have one of both.
const MIN_BELOW: u16 = 20;
/// Characters of a size with the space before it.
const SIZE: usize = 10;
/// Fewest characters of a type.
const MIN_TYPE: usize = 11;

/// Characters of a line of help, and of the names of keys in it.
const HELP_COLUMNS: usize = 64;
const KEY: usize = 14;

/// The keys and what they do.
const KEYS: [(&str, &str); 13] = [
    ("Up Down j k", "go to the line above or below"),
    ("PgUp PgDn", "go up or down by a window"),
    ("Home End g G", "go to the first or last line"),
    ("Right l", "open, or go to what is below"),
    ("Left h", "close, or go to what it is in"),
    ("Enter", "open or close; without members, go to the panel"),
    ("Tab", "go to the panel, where these keys scroll, and back"),
    ("/", "show only names with a text, or that match a pattern: Muon_*, *.pt, {run,event}, dir/*"),
    ("s", "order of siblings: as stored, by size, by name"),
    ("r", "read what is selected again"),
    ("?", "show this help; another key hides it"),
    ("Esc", "leave the panel, then the filter, then quit"),
    ("q Ctrl-C", "quit"),
];

/// Places on the screen; those that are not shown are empty.
#[derive(Debug, PartialEq, Eq)]
struct Places {
    title: Rect,
    outline: Rect,
    /// A line between outline and panel.
    between: Rect,
    panel: Rect,
    footer: Rect,
}

impl Places {
    fn of(area: Rect, focus: Focus) -> Self {
        let rows = |y: u16, height: u16| Rect { y: area.y + y, height, ..area }.intersection(area);
        let (title, footer) = (u16::from(area.height > 3), u16::from(area.height > 2));
        let body = rows(title, area.height.saturating_sub(title + footer));
        let part = |x: u16, y: u16, width: u16, height: u16| {
            Rect { x: body.x + x, y: body.y + y, width, height }.intersection(body)
        };
        let (outline, between, panel) = if body.width >= MIN_BESIDE {
            let left = (body.width / 2).clamp(BESIDE[0], BESIDE[1]) - 2;
            let panel = part(left + 3, 0, body.width - left - 3, body.height);
            (part(0, 0, left, body.height), part(left + 1, 0, 1, body.height), panel)
        } else if body.height >= MIN_BELOW {
            let above = body.height * 2 / 5;
            let panel = part(0, above + 1, body.width, body.height - above - 1);
            (part(0, 0, body.width, above), part(0, above, body.width, 1), panel)
        } else if focus == Focus::Panel {
            (Rect::ZERO, Rect::ZERO, body)
        } else {
            (body, Rect::ZERO, Rect::ZERO)
        };
        Self {
            title: rows(0, title),
            outline,
            between,
            panel,
            footer: rows(area.height.saturating_sub(footer), footer),
        }
    }
}

/// Makes the state fit a screen of this size, and draws it.
pub(super) fn draw(frame: &mut Frame<'_>, app: &mut App) {
    let area = frame.area();
    let places = Places::of(area, app.focus);
    let top = app.outline.fit(usize::from(places.outline.height));
    let panel = panel::text(app, usize::from(places.panel.width), usize::from(places.panel.height));
    app.panel_lines = [panel.height(), usize::from(places.panel.height)];
    app.scroll = app.scroll.min(panel.height().saturating_sub(usize::from(places.panel.height)));
    let buffer = frame.buffer_mut();
    title(buffer, places.title, app);
    lines(buffer, places.outline, app, top);
    between(buffer, places.between, app.letters);
    text(buffer, places.panel, &panel, app.scroll, if app.focus == Focus::Panel { "" } else { ", Tab" });
    let cursor = footer(buffer, places.footer, app);
    if app.focus == Focus::Help {
        help(buffer, area, app);
    }
    if let Some(cursor) = cursor {
        frame.set_cursor_position(cursor);
    }
}

/// Draws a line of an area, if there is such a line.
fn put(buffer: &mut Buffer, area: Rect, y: usize, line: &Line<'_>) {
    if y < usize::from(area.height) {
        buffer.set_line(area.x, area.y + y as u16, line, area.width);
    }
}

fn title(buffer: &mut Buffer, area: Rect, app: &App) {
    let all = usize::from(area.width);
    let place = if app.outline.lines().is_empty() { 0 } else { app.outline.place() as u64 + 1 };
    let right = format!(" {}/{} ", count(place), count(app.outline.lines().len() as u64));
    let free = all.saturating_sub(width(&right) + 1);
    put(buffer, area, 0, &Line::raw(format!(" {}{right}", pad(&cut_start(&app.title, free), free, false))));
    buffer.set_style(area, Modifier::REVERSED);
}

/// Escaped text, whose end is kept.
fn cut_start(text: &str, to: usize) -> String {
    let text = printable(text);
    match width(&text).checked_sub(to) {
        None | Some(0) => text.into_owned(),
        Some(more) => ['…'].into_iter().chain(text.chars().skip(more + 1)).take(to).collect(),
    }
}

fn between(buffer: &mut Buffer, area: Rect, letters: Letters) {
    let (vertical, horizontal) = if letters == Letters::Unicode { ("│", "─") } else { ("|", "-") };
    let letter = if area.height > 1 { vertical } else { horizontal };
    area.positions().for_each(|place| {
        if let Some(cell) = buffer.cell_mut(place) {
            cell.set_symbol(letter);
        }
    });
}

/// The lines of the outline from the place `top` on.
fn lines(buffer: &mut Buffer, area: Rect, app: &App, top: usize) {
    if app.outline.lines().is_empty() {
        let mut empty = Text::new(false);
        let what = match app.outline.filter() {
            Some(filter) => format!("Nothing that was opened matches '{}'. Esc shows all.", filter.text()),
            None => "The file has no objects.".to_owned(),
        };
        empty.wrap(what, usize::from(area.width));
        return text(buffer, area, &empty, 0, "");
    }
    let columns = Columns::of(app, usize::from(area.width));
    let window = app.outline.lines().iter().enumerate().skip(top).take(usize::from(area.height));
    for (y, (place, line)) in window.enumerate() {
        let is_selected = place == app.outline.place();
        put(buffer, area, y, &columns.line(app, line, is_selected));
        if is_selected && app.focus != Focus::Panel {
            buffer.set_style(Rect { y: area.y + y as u16, height: 1, ..area }, Modifier::REVERSED);
        }
    }
}

/// Characters of the columns of the outline, after the mark of the selected line.
struct Columns {
    name: usize,
    /// 0 if types do not fit.
    type_name: usize,
    /// 0 if sizes do not fit.
    size: usize,
}

impl Columns {
    fn of(app: &App, all: usize) -> Self {
        let wanted = app.outline.widest() + INDENT;
        let free = all.saturating_sub(1);
        let size = if free >= 2 * SIZE { SIZE } else { 0 };
        let free = free - size;
        let name = wanted.min(free.saturating_sub(MIN_TYPE + 1).max(free / 2));
        match free.saturating_sub(name + 1) {
            type_name if type_name >= MIN_TYPE => Self { name, type_name, size },
            _ => Self { name: free, type_name: 0, size },
        }
    }

    fn line(&self, app: &App, line: &outline::Line, is_selected: bool) -> Line<'static> {
        let node = app.outline.node(line.node);
        let can_open = node.is_unread || !node.children.is_empty();
        let mark = match (line.is_open, can_open, app.letters) {
            (_, false, _) => "  ",
            (true, _, Letters::Unicode) => "▾ ",
            (false, _, Letters::Unicode) => "▸ ",
            (true, _, Letters::Ascii) => "- ",
            (false, _, Letters::Ascii) => "+ ",
        };
        let indent = (line.depth * INDENT).min(self.name / 2);
        let name = cut_middle(&node.label.name, self.name.saturating_sub(indent + INDENT));
        let name = pad(&format!("{}{mark}{name}", " ".repeat(indent)), self.name, false);
        let selected = if is_selected { ">" } else { " " };
        let is_table = !matches!(node.content, Content::Field(_) | Content::Object(_));
        let name_style = if is_table && app.has_color { style(BOLD) } else { Style::new() };
        let mut spans = vec![Span::raw(selected), Span::styled(name, name_style)];
        if self.type_name > 0 {
            let short = node.label.type_name.replace("std::", "").replace("ROOT::VecOps::", "");
            let shown = pad(&cut(&short, self.type_name), self.type_name, false);
            spans.push(Span::styled(format!(" {shown}"), if app.has_color { style(DIM) } else { Style::new() }));
        }
        if self.size > 0 {
            spans.push(Span::raw(pad(&node.label.bytes.map_or_else(String::new, bytes), self.size, true)));
        }
        Line::from(spans)
    }
}

/// The lines of a text from the place `top` on. If these are too many, the last line of the area says so, with a hint.
fn text(buffer: &mut Buffer, area: Rect, text: &Text, top: usize, hint: &str) {
    let (lines, height) = (text.lines(), usize::from(area.height));
    let is_longer = lines.len() > top + height && height > 1;
    let shown = height - usize::from(is_longer);
    for (y, parts) in lines.iter().skip(top).take(shown).enumerate() {
        let spans = parts.iter().map(|(own, part)| Span::styled(*part, style(*own)));
        put(buffer, area, y, &spans.collect());
    }
    if is_longer {
        let mark = format!("{} more{hint}", things((lines.len() - top - shown) as u64, "line"));
        put(buffer, area, shown, &Line::raw(pad(&mark, usize::from(area.width), true)));
    }
}

/// What keys do here, or the filter that is written, with the place of the cursor.
fn footer(buffer: &mut Buffer, area: Rect, app: &App) -> Option<Position> {
    let all = usize::from(area.width);
    let filter = app.outline.filter().map_or("", |filter| filter.text());
    if app.focus == Focus::Filter {
        let shown = cut_start(filter, all.saturating_sub(2));
        let end = width(&shown) + 1;
        let hints = hints(&["Enter keeps it", "Esc shows all"], all.saturating_sub(end + 2));
        put(buffer, area, 0, &Line::raw(format!("/{shown}   {hints}")));
        return Some(Position { x: area.x + (end as u16).min(area.width.saturating_sub(1)), y: area.y });
    }
    let order = format!("s order: {}", app.outline.order().name());
    let own = match (app.focus, filter.is_empty()) {
        (Focus::Panel, _) => hints(&["Tab back", "arrows scroll", "? help", "q quit"], all),
        (_, true) => hints(&["? help", "q quit", "Tab panel", "/ filter", &order], all),
        (_, false) => hints(&[&format!("/{}", cut(filter, all / 2)), "Esc shows all", "? help", "q quit", &order], all),
    };
    put(buffer, area, 0, &Line::raw(own));
    if app.has_color {
        buffer.set_style(area, style(CYAN));
    }
    None
}

/// As many texts as fit a width.
fn hints(texts: &[&str], all: usize) -> String {
    texts.iter().fold(String::new(), |line, text| {
        let longer = if line.is_empty() { (*text).to_owned() } else { format!("{line}   {text}") };
        if width(&longer) <= all { longer } else { line }
    })
}

/// The keys, in the middle of the screen; in a small one they scroll.
fn help(buffer: &mut Buffer, area: Rect, app: &mut App) {
    let mut keys = Text::new(app.has_color);
    let columns = usize::from(area.width).min(HELP_COLUMNS);
    for (key, what) in KEYS {
        keys.add(" ").styled(BOLD, pad(key, KEY, false)).wrap(what, columns);
    }
    let [across, down] = [columns, keys.height() + 1].map(|size| u16::try_from(size).unwrap_or(u16::MAX));
    let place = area.centered(across.into(), down.into());
    Clear.render(place, buffer);
    let below = Rect { y: place.y + 1, height: place.height.saturating_sub(1), ..place }.intersection(place);
    app.help = app.help.min(keys.height().saturating_sub(usize::from(below.height)));
    text(buffer, below, &keys, app.help, "");
    put(buffer, place, 0, &Line::raw(" Keys"));
    buffer.set_style(Rect { height: 1, ..place }.intersection(place), Modifier::REVERSED);
}

/// A style of the command as one of the terminal.
fn style(own: anstyle::Style) -> Style {
    let effects = own.get_effects();
    let modifiers = [(Effects::BOLD, Modifier::BOLD), (Effects::DIMMED, Modifier::DIM)];
    let style = modifiers.iter().filter(|(effect, _)| effects.contains(*effect));
    let style = style.fold(Style::new(), |style, (_, modifier)| style.add_modifier(*modifier));
    match own.get_fg_color() {
        Some(AnsiColorOf::Ansi(AnsiColor::Red)) => style.fg(Color::Red),
        Some(AnsiColorOf::Ansi(AnsiColor::Yellow)) => style.fg(Color::Yellow),
        Some(AnsiColorOf::Ansi(AnsiColor::Cyan)) => style.fg(Color::Cyan),
        _ => style,
    }
}
