//! The state of the screen, and what keys and answers change in it. Nothing here reads or draws.

#[cfg(test)]
mod tests;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::super::head::drawing::{Labels, Letters, Plot};
use super::super::head::show::is_drawable;
use super::contents::{Content, Listed, State, add_fields};
use super::outline::{Filter, NodeId, Outline};
use super::reader::{Answer, Task};
use super::values::{Values, Wanted};
use crate::failure::Failure;

/// Most fields of a collection that are tried for its sizes.
const MAX_TRIED: usize = 4;
/// Most plots that are kept for nodes that are selected again.
const MAX_KEPT: usize = 64;

/// What was read of a node besides metadata.
#[derive(Debug)]
pub(super) enum Known {
    /// Entries that were read, and of how many.
    Reading(u64, u64),
    Plot(Plot, Labels),
    Failed(Failure),
}

/// The part of the screen that keys act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Focus {
    Outline,
    Panel,
    /// The line in which a filter is written.
    Filter,
    Help,
}

/// Whether to go on after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Continue,
    Quit,
}

/// The state of the screen.
#[derive(Debug)]
pub(super) struct App {
    /// The name of the file, for the title.
    pub(super) title: String,
    pub(super) letters: Letters,
    pub(super) has_color: bool,
    pub(super) outline: Outline<Content>,
    pub(super) focus: Focus,
    /// First line of the panel that is shown.
    pub(super) scroll: usize,
    /// First line of the help that is shown.
    pub(super) help: usize,
    /// Lines of the panel, and of its window.
    pub(super) panel_lines: [usize; 2],
    /// What was read, the oldest first.
    known: Vec<(NodeId, Known)>,
    /// Ntuples and trees that were opened before their metadata are read.
    opening: Vec<NodeId>,
    /// The node that the panel shows.
    shown: Option<NodeId>,
}

impl App {
    pub(super) fn new(title: String, outline: Outline<Content>, letters: Letters, has_color: bool) -> Self {
        let shown = outline.selected();
        Self {
            title,
            letters,
            has_color,
            outline,
            focus: Focus::Outline,
            scroll: 0,
            help: 0,
            panel_lines: [0, 1],
            known: Vec::new(),
            opening: Vec::new(),
            shown,
        }
    }

    /// What was read of a node.
    pub(super) fn known(&self, id: NodeId) -> Option<&Known> {
        self.known.iter().find(|(node, _)| *node == id).map(|(_, known)| known)
    }

    /// The nodes for which something must be read: the selected one first.
    pub(super) fn wanted(&self) -> Vec<NodeId> {
        let selected = self.outline.selected().filter(|id| self.lacks(*id));
        let mut wanted: Vec<NodeId> = selected.into_iter().collect();
        wanted.extend(self.opening.iter().filter(|id| Some(**id) != selected));
        wanted
    }

    /// Whether something that the panel shows of a node must be read.
    fn lacks(&self, id: NodeId) -> bool {
        match &self.outline.node(id).content {
            Content::Table(_, state) => matches!(state, State::Unread),
            _ => self.task(id).is_some() && !matches!(self.known(id), Some(Known::Plot(..) | Known::Failed(_))),
        }
    }

    /// How to read it.
    pub(super) fn task(&self, id: NodeId) -> Option<Task> {
        let node = self.outline.node(id);
        match &node.content {
            Content::Table(listed, _) => Some(Task::Table(listed.object.name())),
            Content::Object(Listed { object, .. }) => {
                is_drawable(&object.class_name).then(|| Task::Object(object.clone()))
            }
            Content::Field(field) if field.unreadable.is_some() || field.values == Values::Members => None,
            Content::Field(field) => {
                let own = || vec![node.label.path.clone()];
                let paths = if field.values == Values::Sizes { self.smallest(id) } else { own() };
                Some(Task::Values(Wanted {
                    table: field.opened.table.clone(),
                    values: field.values,
                    paths: if paths.is_empty() { own() } else { paths },
                    steps: field.steps.clone(),
                }))
            }
            Content::Directory(_) => None,
        }
    }

    /// The paths of some fields below a node, that with the fewest bytes first.
    fn smallest(&self, id: NodeId) -> Vec<String> {
        let below = self.outline.below(id).into_iter().map(|id| self.outline.node(id));
        let leaves = below.filter(|node| node.children.is_empty());
        let sized = leaves.filter_map(|node| match &node.content {
            Content::Field(field) if field.pages > 0 => Some((field.unpacked_bytes, &node.label.path)),
            _ => None,
        });
        let mut sized: Vec<(u64, &String)> = sized.collect();
        sized.sort_by_key(|(bytes, _)| *bytes);
        sized.into_iter().take(MAX_TRIED).map(|(_, path)| path.clone()).collect()
    }

    /// Takes what was read of a node.
    pub(super) fn take(&mut self, id: NodeId, answer: Answer) {
        let failed = match answer {
            Answer::Progress(read, of) => return self.know(id, Known::Reading(read, of)),
            Answer::Plot(Ok((plot, labels))) => return self.know(id, Known::Plot(plot, labels)),
            Answer::Table(Ok(opened)) => {
                self.opening.retain(|opening| *opening != id);
                return add_fields(&mut self.outline, id, &opened);
            }
            Answer::Table(Err(failed)) | Answer::Plot(Err(failed)) => failed,
        };
        match &mut self.outline.node_mut(id).content {
            Content::Table(_, state) => {
                *state = State::Failed(failed);
                self.opening.retain(|opening| *opening != id);
                self.outline.set_open(id, false);
            }
            _ => self.know(id, Known::Failed(failed)),
        }
    }

    fn know(&mut self, id: NodeId, known: Known) {
        self.known.retain(|(node, _)| *node != id);
        if self.known.len() >= MAX_KEPT {
            self.known.remove(0);
        }
        self.known.push((id, known));
    }

    /// Acts on a key.
    pub(super) fn press(&mut self, key: KeyEvent) -> Flow {
        let is_modified = key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Flow::Quit;
        }
        let flow = match self.focus {
            Focus::Help => {
                match moved(key.code, self.help, 1) {
                    Some(line) => self.help = line,
                    None => (self.focus, self.help) = (Focus::Outline, 0),
                }
                Flow::Continue
            }
            Focus::Filter => {
                self.edit_filter(key.code);
                Flow::Continue
            }
            Focus::Outline | Focus::Panel if is_modified => Flow::Continue,
            Focus::Outline | Focus::Panel => self.command(key.code),
        };
        if self.outline.selected() != self.shown {
            self.shown = self.outline.selected();
            self.scroll = 0;
        }
        flow
    }

    fn command(&mut self, code: KeyCode) -> Flow {
        match (code, self.focus) {
            (KeyCode::Char('q'), _) => return Flow::Quit,
            (KeyCode::Esc, Focus::Panel) => self.focus = Focus::Outline,
            // What the key leaves is the innermost.
            (KeyCode::Esc, _) if self.outline.filter().is_some() => self.outline.set_filter(None),
            (KeyCode::Esc, _) => return Flow::Quit,
            (KeyCode::Char('?') | KeyCode::F(1), _) => self.focus = Focus::Help,
            (KeyCode::Char('/'), _) => self.focus = Focus::Filter,
            (KeyCode::Char('s'), _) => self.outline.set_order(self.outline.order().next()),
            (KeyCode::Char('r'), _) => self.read_again(),
            (KeyCode::Tab | KeyCode::BackTab, Focus::Panel) => self.focus = Focus::Outline,
            (KeyCode::Tab | KeyCode::BackTab, _) => self.focus = Focus::Panel,
            (KeyCode::Left | KeyCode::Char('h') | KeyCode::Enter, Focus::Panel) => self.focus = Focus::Outline,
            (code, Focus::Panel) => {
                let [lines, height] = self.panel_lines;
                self.scroll = moved(code, self.scroll, height).unwrap_or(self.scroll).min(lines.saturating_sub(height));
            }
            (KeyCode::Left | KeyCode::Char('h'), _) => self.outline.close(),
            (KeyCode::Right | KeyCode::Char('l'), _) => self.open(),
            (KeyCode::Enter, _) => self.enter(),
            (code, _) => {
                if let Some(place) = moved(code, self.outline.place(), self.outline.height()) {
                    self.outline.select(place);
                }
            }
        }
        Flow::Continue
    }

    /// Opens or closes the selected node, or goes to the panel if it has nothing below it.
    fn enter(&mut self) {
        let Some(line) = self.outline.lines().get(self.outline.place()).copied() else { return };
        let node = self.outline.node(line.node);
        match (line.is_open, node.is_unread || !node.children.is_empty()) {
            (true, _) => self.outline.close(),
            (false, true) => self.open(),
            (false, false) => self.focus = Focus::Panel,
        }
    }

    fn open(&mut self) {
        let Some(id) = self.outline.selected() else { return };
        if !self.outline.open() {
            return;
        }
        if let Content::Table(_, state) = &mut self.outline.node_mut(id).content
            && !matches!(state, State::Read(_))
        {
            *state = State::Unread;
            self.opening.push(id);
        }
    }

    /// Forgets what was read of the selected node, or why it could not be read.
    fn read_again(&mut self) {
        let Some(id) = self.outline.selected() else { return };
        self.known.retain(|(node, _)| *node != id);
        if let Content::Table(_, state @ State::Failed(_)) = &mut self.outline.node_mut(id).content {
            *state = State::Unread;
        }
    }

    fn edit_filter(&mut self, code: KeyCode) {
        let mut text = self.outline.filter().map_or_else(String::new, |filter| filter.text().to_owned());
        match code {
            KeyCode::Char(letter) => text.push(letter),
            KeyCode::Backspace => {
                text.pop();
            }
            KeyCode::Esc => {
                text.clear();
                self.focus = Focus::Outline;
            }
            KeyCode::Enter | KeyCode::Down | KeyCode::Up | KeyCode::Tab => {
                self.focus = Focus::Outline;
                return;
            }
            _ => return,
        }
        self.outline.set_filter(Filter::new(&text));
    }
}

/// The place to which a key moves in a window of `height` lines; `None` for other keys.
fn moved(code: KeyCode, place: usize, height: usize) -> Option<usize> {
    // A line stays in sight.
    let page = height.saturating_sub(1).max(1);
    Some(match code {
        KeyCode::Up | KeyCode::Char('k') => place.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => place.saturating_add(1),
        KeyCode::PageUp => place.saturating_sub(page),
        KeyCode::PageDown => place.saturating_add(page),
        KeyCode::Home | KeyCode::Char('g') => 0,
        KeyCode::End | KeyCode::Char('G') => usize::MAX,
        _ => return None,
    })
}
