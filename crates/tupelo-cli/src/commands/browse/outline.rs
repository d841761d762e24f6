//! Nodes that open and close, as lines, with a selected one, a filter and an order. It knows neither files nor terminals.

mod filter;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;

pub(super) use self::filter::Filter;
use crate::table::{cut, width};

/// Characters by which a level is further to the right, and those before a name.
pub(super) const INDENT: usize = 2;
/// Longer names do not make the column of names wider, in characters.
const MAX_NAME: usize = 60;

/// Number of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct NodeId(usize);

/// What is shown of a node. Names are those of the file, not escaped.
#[derive(Debug, Clone, Default)]
pub(super) struct Label {
    pub(super) name: String,
    /// The name with those above it, for filters.
    pub(super) path: String,
    /// What joins the names of a path.
    pub(super) separator: char,
    pub(super) type_name: String,
    /// Stored bytes, if they are known.
    pub(super) bytes: Option<u64>,
}

/// A node and what it stands for.
#[derive(Debug)]
pub(super) struct Node<T> {
    pub(super) label: Label,
    pub(super) content: T,
    pub(super) parent: Option<NodeId>,
    pub(super) children: Vec<NodeId>,
    /// Whether its children come once it is open.
    pub(super) is_unread: bool,
    is_open: bool,
}

/// The order of siblings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Stored,
    /// The largest first, those of unknown size last.
    Size,
    Name,
}

impl Order {
    /// The one after it.
    pub(super) fn next(self) -> Self {
        match self {
            Self::Stored => Self::Size,
            Self::Size => Self::Name,
            Self::Name => Self::Stored,
        }
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Size => "size",
            Self::Name => "name",
        }
    }
}

/// A node that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) node: NodeId,
    pub(super) depth: usize,
    /// Whether what is below it follows.
    pub(super) is_open: bool,
    /// Whether a filter keeps it open.
    is_kept: bool,
}

/// Why a filter shows a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Not,
    /// Something below it matches.
    Above,
    Match,
}

/// All nodes, and the lines of those that are shown.
#[derive(Debug)]
pub(super) struct Outline<T> {
    nodes: Vec<Node<T>>,
    roots: Vec<NodeId>,
    lines: Vec<Line>,
    /// The widest name with the spaces before it, in characters.
    widest: usize,
    /// Place of the selected line.
    selected: usize,
    /// First line of the window.
    top: usize,
    /// Lines of the window.
    height: usize,
    order: Order,
    filter: Option<Filter>,
}

impl<T> Outline<T> {
    /// Without nodes.
    pub(super) fn new() -> Self {
        Self {
            nodes: Vec::new(),
            roots: Vec::new(),
            lines: Vec::new(),
            widest: 0,
            selected: 0,
            top: 0,
            height: 1,
            order: Order::Stored,
            filter: None,
        }
    }

    /// Adds a node as the last one below another. It is shown after the next [`Outline::update`].
    pub(super) fn add(&mut self, parent: Option<NodeId>, label: Label, content: T) -> NodeId {
        let id = NodeId(self.nodes.len());
        self.nodes.push(Node { label, content, parent, children: Vec::new(), is_unread: false, is_open: false });
        match parent.and_then(|parent| self.nodes.get_mut(parent.0)) {
            Some(parent) => parent.children.push(id),
            None => self.roots.push(id),
        }
        id
    }

    pub(super) fn node(&self, id: NodeId) -> &Node<T> {
        &self.nodes[id.0]
    }

    pub(super) fn node_mut(&mut self, id: NodeId) -> &mut Node<T> {
        &mut self.nodes[id.0]
    }

    /// The nodes that are below no other one, in stored order.
    pub(super) fn roots(&self) -> &[NodeId] {
        &self.roots
    }

    /// All nodes, parents first.
    pub(super) fn nodes(&self) -> impl DoubleEndedIterator<Item = (NodeId, &Node<T>)> {
        self.nodes.iter().enumerate().map(|(place, node)| (NodeId(place), node))
    }

    /// A node and all that are below it, parents first.
    pub(super) fn below(&self, id: NodeId) -> Vec<NodeId> {
        let (mut found, mut next) = (Vec::new(), vec![id]);
        while let Some(id) = next.pop() {
            found.push(id);
            next.extend(self.node(id).children.iter().rev());
        }
        found
    }

    pub(super) fn lines(&self) -> &[Line] {
        &self.lines
    }

    pub(super) fn widest(&self) -> usize {
        self.widest
    }

    /// Place of the selected line.
    pub(super) fn place(&self) -> usize {
        self.selected
    }

    pub(super) fn order(&self) -> Order {
        self.order
    }

    pub(super) fn filter(&self) -> Option<&Filter> {
        self.filter.as_ref()
    }

    /// The selected node; `None` if no line is shown.
    pub(super) fn selected(&self) -> Option<NodeId> {
        self.lines.get(self.selected).map(|line| line.node)
    }

    /// Makes the lines again, after nodes were added, opened or closed. The selected node stays selected; if it is hidden, what
    /// it is in is selected.
    pub(super) fn update(&mut self) {
        let selected = self.selected();
        let shown = self.filter.as_ref().map(|filter| self.shown(filter));
        self.lines.clear();
        let mut next: Vec<(NodeId, usize, bool)> =
            self.sorted(&self.roots).into_iter().rev().map(|id| (id, 0, shown.is_none())).collect();
        let mut widest = 0;
        // Below a match all nodes are shown.
        while let Some((id, depth, is_inside)) = next.pop() {
            let node = self.node(id);
            let why = if is_inside { Shown::Match } else { shown.as_ref().map_or(Shown::Match, |it| it[id.0]) };
            let is_open = match why {
                Shown::Not => continue,
                Shown::Above => true,
                Shown::Match => node.is_open && (node.is_unread || !node.children.is_empty()),
            };
            widest = widest.max(depth * INDENT + width(&cut(&node.label.name, MAX_NAME)));
            let line = Line { node: id, depth, is_open, is_kept: why == Shown::Above };
            if is_open {
                let children = self.sorted(&node.children).into_iter().rev();
                next.extend(children.map(|child| (child, depth + 1, why == Shown::Match)));
            }
            self.lines.push(line);
        }
        self.widest = widest;
        let place = |id: NodeId| self.lines.iter().position(|line| line.node == id);
        let mut wanted = selected;
        while let Some(id) = wanted {
            if let Some(place) = place(id) {
                self.selected = place;
                break;
            }
            wanted = self.node(id).parent;
        }
        self.select(self.selected);
    }

    /// Why the filter shows each node.
    fn shown(&self, filter: &Filter) -> Vec<Shown> {
        let mut shown = vec![Shown::Not; self.nodes.len()];
        // Children follow their parents.
        for (id, node) in self.nodes().rev() {
            if filter.is_match(&node.label) {
                shown[id.0] = Shown::Match;
            }
            if let (true, Some(parent)) = (shown[id.0] != Shown::Not, node.parent) {
                shown[parent.0] = Shown::Above;
            }
        }
        shown
    }

    fn sorted(&self, siblings: &[NodeId]) -> Vec<NodeId> {
        let mut siblings = siblings.to_vec();
        match self.order {
            Order::Stored => {}
            Order::Size => siblings.sort_by_key(|id| Reverse(self.node(*id).label.bytes)),
            Order::Name => siblings.sort_by_cached_key(|id| self.node(*id).label.name.to_lowercase()),
        }
        siblings
    }

    /// Selects the line of a place, or the last one.
    pub(super) fn select(&mut self, place: usize) {
        self.selected = place.min(self.lines.len().saturating_sub(1));
    }

    /// Sets the lines of the window, which then has the selected one, and returns the first one in it.
    pub(super) fn fit(&mut self, height: usize) -> usize {
        self.height = height.max(1);
        let lowest = (self.selected + 1).saturating_sub(self.height);
        let last = self.lines.len().saturating_sub(self.height);
        self.top = self.top.clamp(lowest, self.selected.max(lowest)).min(last.max(lowest));
        self.top
    }

    /// Lines of the window.
    pub(super) fn height(&self) -> usize {
        self.height
    }

    /// Opens the selected node, or goes to what is below it; whether something opened.
    pub(super) fn open(&mut self) -> bool {
        let Some(line) = self.lines.get(self.selected).copied() else { return false };
        if line.is_open {
            let is_below = self.lines.get(self.selected + 1).is_some_and(|next| next.depth > line.depth);
            self.selected += usize::from(is_below);
            return false;
        }
        let node = self.node(line.node);
        let can_open = node.is_unread || !node.children.is_empty();
        if can_open {
            self.set_open(line.node, true);
        }
        can_open
    }

    /// Closes the selected node, or goes to the one that it is in.
    pub(super) fn close(&mut self) {
        let Some(line) = self.lines.get(self.selected).copied() else { return };
        if line.is_open && !line.is_kept {
            self.set_open(line.node, false);
        } else if let Some(place) = self.lines[..self.selected].iter().rposition(|other| other.depth < line.depth) {
            self.selected = place;
        }
    }

    /// Opens or closes a node.
    pub(super) fn set_open(&mut self, id: NodeId, is_open: bool) {
        self.node_mut(id).is_open = is_open;
        self.update();
    }

    pub(super) fn set_order(&mut self, order: Order) {
        self.order = order;
        self.update();
    }

    /// Shows only what a filter matches, what is below that, and the way to it.
    pub(super) fn set_filter(&mut self, filter: Option<Filter>) {
        self.filter = filter;
        self.update();
    }
}
