//! Keys and answers.

use super::super::outline::Label;
use super::super::testing::{app, events, find};
use super::*;

fn press(app: &mut App, codes: &[KeyCode]) -> Flow {
    codes.iter().map(|code| app.press(KeyEvent::from(*code))).last().unwrap_or(Flow::Continue)
}

fn write(app: &mut App, text: &str) -> Flow {
    press(app, &text.chars().map(KeyCode::Char).collect::<Vec<_>>())
}

fn selected(app: &App) -> &str {
    app.outline.selected().map_or("", |id| app.outline.node(id).label.path.as_str())
}

fn fresh() -> (tempfile::TempDir, App) {
    let folder = tempfile::tempdir().unwrap();
    let app = app(&events(&folder));
    (folder, app)
}

#[test]
fn keys_move_the_selection() {
    let (_folder, mut app) = fresh();
    app.outline.fit(3);
    assert_eq!(selected(&app), "Events");
    write(&mut app, "jj");
    assert_eq!(selected(&app), "name");
    press(&mut app, &[KeyCode::Up, KeyCode::PageDown]);
    assert_eq!(selected(&app), "good");
    press(&mut app, &[KeyCode::End]);
    assert_eq!(selected(&app), "few");
    press(&mut app, &[KeyCode::Home, KeyCode::Down, KeyCode::Down, KeyCode::Down, KeyCode::Down, KeyCode::Right]);
    assert_eq!((selected(&app), app.outline.lines().len()), ("jets", 8));
    press(&mut app, &[KeyCode::Char('l'), KeyCode::Char('j'), KeyCode::Char('h')]);
    assert_eq!(selected(&app), "jets");
    press(&mut app, &[KeyCode::Enter]);
    assert_eq!(app.outline.lines().len(), 6);
    write(&mut app, "k");
    press(&mut app, &[KeyCode::Enter]);
    assert_eq!((selected(&app), app.focus), ("good", Focus::Panel));
}

#[test]
fn each_level_is_left_by_escape() {
    let (_folder, mut app) = fresh();
    write(&mut app, "/pt");
    assert_eq!((app.focus, app.outline.lines().len()), (Focus::Filter, 3));
    // Letters of commands are text here.
    write(&mut app, "q");
    press(&mut app, &[KeyCode::Backspace, KeyCode::Enter, KeyCode::Tab]);
    assert_eq!((app.focus, app.outline.lines().len()), (Focus::Panel, 3));
    press(&mut app, &[KeyCode::Esc]);
    assert_eq!((app.focus, app.outline.lines().len()), (Focus::Outline, 3));
    write(&mut app, "?");
    write(&mut app, "jj");
    assert_eq!((app.focus, app.help), (Focus::Help, 2));
    // Other keys hide the help.
    assert_eq!(write(&mut app, "q"), Flow::Continue);
    assert_eq!(press(&mut app, &[KeyCode::Esc]), Flow::Continue);
    assert_eq!((app.outline.filter().is_none(), app.outline.lines().len()), (true, 6));
    write(&mut app, "/x");
    press(&mut app, &[KeyCode::Esc]);
    assert_eq!((app.focus, app.outline.filter().is_none()), (Focus::Outline, true));
    assert_eq!(press(&mut app, &[KeyCode::Esc]), Flow::Quit);
    assert_eq!(write(&mut app, "q"), Flow::Quit);
    write(&mut app, "/");
    assert_eq!(app.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Flow::Quit);
}

#[test]
fn the_panel_scrolls_by_the_same_keys() {
    let (_folder, mut app) = fresh();
    app.panel_lines = [50, 20];
    press(&mut app, &[KeyCode::Tab, KeyCode::Down, KeyCode::Down]);
    assert_eq!((app.scroll, selected(&app)), (2, "Events"));
    press(&mut app, &[KeyCode::PageDown, KeyCode::PageDown]);
    assert_eq!(app.scroll, 30);
    press(&mut app, &[KeyCode::Home, KeyCode::End, KeyCode::Tab, KeyCode::Down]);
    assert_eq!((app.scroll, selected(&app)), (0, "x"), "another node begins at its first line");
}

#[test]
fn what_is_selected_is_read_once() {
    let (_folder, mut app) = fresh();
    assert!(app.wanted().is_empty(), "the ntuple is read");
    write(&mut app, "j");
    let x = find(&app, "x");
    assert_eq!(app.wanted(), [x]);
    app.take(x, Answer::Progress(1, 2));
    assert_eq!(app.wanted(), [x]);
    app.take(x, Answer::Plot(Err(Failure::new("lost"))));
    assert!(app.wanted().is_empty() && matches!(app.known(x), Some(Known::Failed(_))));
    write(&mut app, "r");
    assert_eq!(app.wanted(), [x]);
    // The oldest of many is forgotten.
    let listed = app.outline.node(find(&app, "Events")).content.listed().unwrap().clone();
    app.know(x, Known::Reading(0, 1));
    for _ in 0..MAX_KEPT {
        let id = app.outline.add(None, Label::default(), Content::Directory(listed.clone()));
        app.know(id, Known::Reading(0, 1));
    }
    assert_eq!((app.known.len(), app.known(x).is_none()), (MAX_KEPT, true));
}

#[test]
fn ntuples_are_read_when_they_are_opened() {
    let (_folder, mut app) = fresh();
    let table = find(&app, "Events");
    let Content::Table(_, state) = &mut app.outline.node_mut(table).content else { panic!("an ntuple") };
    let State::Read(opened) = std::mem::replace(state, State::Unread) else { panic!("it is read") };
    app.outline.node_mut(table).children.clear();
    app.outline.node_mut(table).is_unread = true;
    app.outline.set_open(table, false);
    assert_eq!(app.wanted(), [table], "its sums are shown");
    press(&mut app, &[KeyCode::Enter]);
    assert_eq!(app.wanted(), [table]);
    app.take(table, Answer::Table(Err(Failure::new("damaged"))));
    assert!(app.wanted().is_empty() && !app.outline.lines()[0].is_open);
    // Opening it again reads it again.
    press(&mut app, &[KeyCode::Right]);
    assert_eq!(app.wanted(), [table]);
    app.take(table, Answer::Table(Ok(opened)));
    assert_eq!((app.wanted().len(), app.outline.lines().len()), (0, 6));
}
