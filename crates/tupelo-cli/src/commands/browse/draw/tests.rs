//! Screens of several sizes.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::super::contents::{Listed, add_objects};
use super::super::outline::{Label, Outline};
use super::super::reader::{Answer, Task};
use super::super::testing::{app, events, find};
use super::super::values;
use super::*;

/// The lines of the screen.
fn screen(app: &mut App, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, app)).unwrap();
    let cells: Vec<&str> = terminal.backend().buffer().content().iter().map(|cell| cell.symbol()).collect();
    cells.chunks(usize::from(width)).map(|line| line.concat().trim_end().to_owned()).collect()
}

fn press(app: &mut App, codes: &[KeyCode]) {
    codes.iter().for_each(|code| {
        app.press(KeyEvent::from(*code));
    });
}

/// Reads what the panel shows.
fn read(app: &mut App, path: &str) {
    let id = find(app, path);
    let Some(Task::Values(wanted)) = app.task(id) else { panic!("{path} has values") };
    app.take(id, Answer::Plot(values::plot(&wanted, |_, _| ())));
}

#[test]
fn outline_and_panel_are_beside_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let mut app = app(&events(&folder));
    press(&mut app, &[KeyCode::Char('j')]);
    assert!(screen(&mut app, 100, 30).iter().any(|line| line.contains("│ reading …")));
    app.take(find(&app, "x"), Answer::Progress(10, 1000));
    assert!(screen(&mut app, 100, 30).iter().any(|line| line.contains("│ reading: 10 of 1 000 entries …")));
    read(&mut app, "x");
    let lines = screen(&mut app, 100, 30);
    assert_eq!(lines.len(), 30);
    assert!(lines[0].starts_with(" events.root ") && lines[0].ends_with(" 2/6"), "{}", lines[0]);
    let left: Vec<&str> = lines[1..8].iter().filter_map(|line| Some(line.split_once('│')?.0.trim_end())).collect();
    assert!(left[0].starts_with(" ▾ Events") && left[0].ends_with("KiB"), "{}", left[0]);
    assert!(left[1].starts_with(">    x") && left[1].contains(" float "), "{}", left[1]);
    assert!(left[4].starts_with("   ▸ jets") && left[6].is_empty(), "{left:?}");
    let panel: Vec<&str> = lines[1..29].iter().filter_map(|line| Some(line.split_once('│')?.1.trim_start())).collect();
    assert_eq!(panel[..2], ["x", "float"]);
    assert!(panel[3].starts_with("Stored    ") && panel[3].contains(" in 1 page, "), "{}", panel[3]);
    assert!(panel[4].contains(", ratio "), "{}", panel[4]);
    assert_eq!(panel[5], "Codec     zstd:5");
    assert_eq!(panel[7], "COLUMN  STORED AS      STORED  RATIO  PAGES");
    assert!(panel[8].starts_with("x       SplitReal32  ") && panel[8].ends_with("      1"), "{panel:?}");
    assert_eq!(panel[10], "Values in all 1 000 entries");
    assert!(panel[11].starts_with("0 │ 84 █"), "{}", panel[11]);
    assert_eq!(lines[29], "? help   q quit   Tab panel   / filter   s order: stored");
}

#[test]
fn narrow_windows_have_one_above_the_other_or_one_of_both() {
    let folder = tempfile::tempdir().unwrap();
    let mut app = app(&events(&folder));
    press(&mut app, &[KeyCode::Char('j')]);
    read(&mut app, "x");
    let lines = screen(&mut app, 40, 30);
    assert!(lines.iter().any(|line| line.starts_with("────")) && lines.iter().any(|line| line.starts_with("Stored")));
    let lines = screen(&mut app, 40, 12);
    assert!(lines[2].starts_with(">    x") && !lines.iter().any(|line| line.starts_with("Stored")), "{lines:?}");
    press(&mut app, &[KeyCode::Tab]);
    let lines = screen(&mut app, 40, 12);
    assert!(lines[1] == "x" && lines[4].starts_with("Stored") && lines[10].ends_with(" lines more"), "{lines:?}");
    assert_eq!(lines[11], "Tab back   arrows scroll   ? help");
    press(&mut app, &[KeyCode::End]);
    let lines = screen(&mut app, 40, 12);
    assert!(lines[10].starts_with("1 000 values, mean") || lines[10].contains("deviation"), "{lines:?}");
}

#[test]
fn every_size_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let mut app = app(&events(&folder));
    press(&mut app, &[KeyCode::Char('j')]);
    read(&mut app, "x");
    for keys in [&[][..], &[KeyCode::Tab], &[KeyCode::Char('?')], &[KeyCode::Char('x'), KeyCode::Char('/')]] {
        press(&mut app, keys);
        for width in 1..=100 {
            for height in [1, 2, 3, 4, 5, 12, 22, 40] {
                assert_eq!(screen(&mut app, width, height).len(), usize::from(height));
            }
        }
    }
    let lines = screen(&mut app, 20, 5);
    assert!(lines[0].starts_with(" events.root") && lines[2].starts_with(">    x"), "{lines:?}");
    assert!(lines[4].starts_with('/'), "{lines:?}");
}

#[test]
fn letters_follow_the_terminal_and_names_are_escaped() {
    let folder = tempfile::tempdir().unwrap();
    let mut app = app(&events(&folder));
    app.letters = Letters::Ascii;
    let hostile = Label { name: "a\x1b]0;x\x07\nb\u{202e}".to_owned(), ..Label::default() };
    let object = app.outline.node(find(&app, "Events")).content.listed().unwrap().clone();
    app.outline.add(None, Label { path: hostile.name.clone(), ..hostile }, Content::Directory(object));
    app.outline.update();
    press(&mut app, &[KeyCode::End]);
    let lines = screen(&mut app, 100, 30);
    assert!(
        lines[1].starts_with(" - Events") && lines[5].starts_with("   + jets") && lines[1].contains('|'),
        "{lines:?}"
    );
    let panel = r"| a\u{1b}]0;x\u{7}\nb\u{202e}";
    assert!(lines[7].starts_with(r">  a\u{1b}") && lines[1].contains(panel), "{lines:?}");
    // Of others, only the mark of texts that are cut.
    let is_plain = |letter: char| letter == '…' || letter.is_ascii() && !letter.is_control();
    assert!(lines.iter().all(|line| line.chars().all(is_plain)), "{lines:?}");
}

#[test]
fn the_selected_line_is_reversed_and_colours_are_an_addition() {
    let folder = tempfile::tempdir().unwrap();
    let mut app = app(&events(&folder));
    let styles = |app: &mut App| {
        let mut terminal = Terminal::new(TestBackend::new(100, 30)).unwrap();
        terminal.draw(|frame| draw(frame, app)).unwrap();
        let cells = terminal.backend().buffer().content().to_vec();
        (cells[100].modifier, cells[200].modifier, cells.iter().any(|cell| cell.fg != Color::Reset))
    };
    assert_eq!(styles(&mut app), (Modifier::REVERSED, Modifier::empty(), false));
    app.has_color = true;
    assert_eq!(styles(&mut app), (Modifier::REVERSED, Modifier::empty(), true));
}

#[test]
fn without_lines_the_reason_is_shown() {
    let mut outline = Outline::new();
    add_objects(&mut outline, Vec::new(), "");
    let mut empty = App::new("x.root".to_owned(), outline, Letters::Unicode, false);
    assert_eq!(screen(&mut empty, 80, 10)[1].split('│').next().unwrap().trim(), "The file has no objects.");
    let folder = tempfile::tempdir().unwrap();
    let mut app = app(&events(&folder));
    press(&mut app, &['/', 'z', 'z'].map(KeyCode::Char));
    let lines = screen(&mut app, 120, 10);
    assert!(lines[1].starts_with("Nothing that was opened matches 'zz'."), "{}", lines[1]);
    assert!(lines[9].starts_with("/zz   Enter keeps it   Esc shows all") && lines[0].ends_with(" 0/0"), "{lines:?}");
}

#[test]
fn the_help_lists_all_keys() {
    let folder = tempfile::tempdir().unwrap();
    let mut app = app(&events(&folder));
    press(&mut app, &[KeyCode::Char('?')]);
    let text = screen(&mut app, 100, 30).join("\n");
    let is_listed = |(key, what): &(&str, &str)| text.contains(key) && text.contains(what.get(..20).unwrap_or(what));
    assert!(text.contains(" Keys ") && KEYS.iter().all(is_listed), "{text}");
    press(&mut app, &[KeyCode::End]);
    let lines = screen(&mut app, 30, 8);
    assert!(lines[0] == " Keys" && lines[7].trim_start() == "q Ctrl-C      quit", "{lines:?}");
}

/// Only the lines of the window are drawn.
#[test]
fn many_fields_are_drawn_quickly() {
    let mut outline = Outline::new();
    let folder = tempfile::tempdir().unwrap();
    let object = Listed { object: events(&folder).objects().unwrap().remove(0), older: 0 };
    for number in 0..10_000 {
        let label = Label { name: format!("field_{number}"), ..Label::default() };
        outline.add(None, label, Content::Directory(object.clone()));
    }
    outline.update();
    let mut app = App::new("x.root".to_owned(), outline, Letters::Unicode, false);
    let mut terminal = Terminal::new(TestBackend::new(100, 30)).unwrap();
    terminal.draw(|frame| draw(frame, &mut app)).unwrap();
    let began = std::time::Instant::now();
    for _ in 0..100 {
        press(&mut app, &[KeyCode::PageDown]);
        terminal.draw(|frame| draw(frame, &mut app)).unwrap();
    }
    // Far less than a millisecond each; machines with many tests are slow.
    assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(app.outline.place(), 2700);
}
