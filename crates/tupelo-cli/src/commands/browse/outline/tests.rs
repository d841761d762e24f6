//! Lines, selection, filters and orders.

use super::*;

/// Adds a node whose path has dots; its size is the length of its name.
fn add(outline: &mut Outline<()>, parent: Option<NodeId>, name: &str) -> NodeId {
    let path = parent.map_or(name.to_owned(), |parent| format!("{}.{name}", outline.node(parent).label.path));
    let bytes = Some(name.len() as u64);
    outline.add(parent, Label { name: name.to_owned(), path, separator: '.', bytes, ..Label::default() }, ())
}

/// `Events` with `run`, `jets` (`pt`, `eta`) and `Jet_ids`, and an empty `Runs`.
fn events() -> (Outline<()>, [NodeId; 3]) {
    let mut outline = Outline::new();
    let events = add(&mut outline, None, "Events");
    add(&mut outline, Some(events), "run");
    let jets = add(&mut outline, Some(events), "jets");
    add(&mut outline, Some(jets), "pt");
    add(&mut outline, Some(jets), "eta");
    add(&mut outline, Some(events), "Jet_ids");
    let runs = add(&mut outline, None, "Runs");
    outline.update();
    (outline, [events, jets, runs])
}

fn names(outline: &Outline<()>) -> Vec<String> {
    let name = |line: &Line| format!("{}{}", " ".repeat(line.depth), outline.node(line.node).label.name);
    outline.lines().iter().map(name).collect()
}

fn selected(outline: &Outline<()>) -> &str {
    outline.selected().map_or("", |id| &outline.node(id).label.name)
}

fn filtered(outline: &mut Outline<()>, text: &str) -> Vec<String> {
    outline.set_filter(Filter::new(text));
    names(outline)
}

#[test]
fn nodes_open_and_close() {
    let (mut outline, [events, jets, _]) = events();
    assert_eq!(names(&outline), ["Events", "Runs"]);
    assert!(outline.open());
    assert_eq!(names(&outline), ["Events", " run", " jets", " Jet_ids", "Runs"]);
    assert!(!outline.open());
    assert_eq!(selected(&outline), "run");
    assert!(!outline.open(), "a node without children does not open");
    outline.select(2);
    assert!(outline.open());
    assert_eq!(names(&outline)[2..5], [" jets", "  pt", "  eta"]);
    outline.select(4);
    outline.close();
    assert_eq!(selected(&outline), "jets");
    outline.close();
    assert_eq!((selected(&outline), outline.lines().len()), ("jets", 5));
    outline.set_open(jets, true);
    outline.select(4);
    // What is selected is hidden: its place is taken by what has it.
    outline.set_open(events, false);
    assert_eq!((selected(&outline), outline.place()), ("Events", 0));
    // What was open below is open again.
    outline.set_open(events, true);
    assert_eq!(outline.lines().len(), 7);
}

#[test]
fn nodes_open_before_they_are_read() {
    let (mut outline, [_, _, runs]) = events();
    outline.node_mut(runs).is_unread = true;
    outline.select(1);
    assert!(outline.open());
    assert!(outline.lines()[1].is_open);
    outline.node_mut(runs).is_unread = false;
    add(&mut outline, Some(runs), "number");
    outline.update();
    assert_eq!(names(&outline), ["Events", "Runs", " number"]);
    assert_eq!(selected(&outline), "Runs");
}

#[test]
fn filters_show_matches_and_the_way_to_them() {
    let (mut outline, [events, ..]) = events();
    outline.set_open(events, true);
    // Names in any case; matches are closed as before, and what is below them comes with them.
    assert_eq!(filtered(&mut outline, "jet"), ["Events", " jets", " Jet_ids"]);
    outline.select(1);
    outline.open();
    assert_eq!(names(&outline), ["Events", " jets", "  pt", "  eta", " Jet_ids"]);
    outline.close();
    assert_eq!(names(&outline), ["Events", " jets", " Jet_ids"]);
    // Nodes above matches cannot be closed, but left.
    outline.select(2);
    outline.close();
    assert_eq!(selected(&outline), "Events");
    outline.close();
    assert_eq!(names(&outline), ["Events", " jets", " Jet_ids"]);
    // Closed nodes are searched as well.
    assert_eq!(filtered(&mut outline, "eta"), ["Events", " jets", "  eta"]);
    assert_eq!(filtered(&mut outline, "jets.e"), ["Events", " jets", "  eta"]);
    assert_eq!(filtered(&mut outline, "*.pt"), ["Events", " jets", "  pt"]);
    assert_eq!(filtered(&mut outline, "Jet_*"), ["Events", " Jet_ids"]);
    assert_eq!(filtered(&mut outline, "{run,Runs}"), ["Events", " run", "Runs"]);
    // An incomplete pattern is a text, which nothing has here.
    assert!(filtered(&mut outline, "[j").is_empty());
    assert_eq!((outline.selected(), outline.open()), (None, false));
    outline.close();
    assert_eq!(filtered(&mut outline, "").len(), 5);
}

#[test]
fn paths_of_objects_have_slashes() {
    let mut outline = Outline::new();
    let label = |name: &str, path: &str| Label {
        name: name.to_owned(),
        path: path.to_owned(),
        separator: '/',
        ..Label::default()
    };
    let folder = outline.add(None, label("dir", "dir"), ());
    outline.add(Some(folder), label("m.pt", "dir/m.pt"), ());
    assert_eq!(filtered(&mut outline, "dir/*"), ["dir", " m.pt"]);
    assert_eq!(filtered(&mut outline, "m.p"), ["dir", " m.pt"]);
    assert_eq!(filtered(&mut outline, "d*t"), [""; 0]);
}

#[test]
fn siblings_are_ordered() {
    let (mut outline, [events, ..]) = events();
    outline.set_open(events, true);
    outline.select(2);
    let unknown = add(&mut outline, Some(events), "unknown");
    outline.node_mut(unknown).label.bytes = None;
    outline.set_order(Order::Size);
    assert_eq!(names(&outline), ["Events", " Jet_ids", " jets", " run", " unknown", "Runs"]);
    assert_eq!(selected(&outline), "jets");
    outline.set_order(Order::Size.next());
    assert_eq!(names(&outline), ["Events", " Jet_ids", " jets", " run", " unknown", "Runs"]);
    outline.set_order(Order::Name.next());
    assert_eq!(names(&outline)[1..4], [" run", " jets", " Jet_ids"]);
}

#[test]
fn the_window_follows_the_selection() {
    let mut outline = Outline::new();
    (0..100).for_each(|number| {
        add(&mut outline, None, &number.to_string());
    });
    outline.update();
    assert_eq!(outline.fit(10), 0);
    outline.select(15);
    assert_eq!(outline.fit(10), 6);
    outline.select(10);
    assert_eq!(outline.fit(10), 6);
    outline.select(3);
    assert_eq!(outline.fit(10), 3);
    outline.select(1000);
    assert_eq!((outline.place(), outline.fit(10)), (99, 90));
    // A larger window has no empty lines at its end as long as there are lines above it.
    assert_eq!((outline.fit(30), outline.fit(0), outline.fit(200)), (70, 99, 0));
    assert_eq!(outline.widest(), 2);
}
