//! `show`: histograms and graphs as text and as pictures.

use std::fs;

use super::objects::{others, plots};
use super::{Place, command, data, summarise, tupelo};

#[test]
fn bins_are_bars_in_the_terminal() {
    let place = Place::new();
    let file = plots(&place, &["mass"]);
    let run = tupelo(&["show", &file]);
    assert!(run.stderr.contains("10 entries, mean 2, standard deviation 1, 1 below\n"), "{}", run.stderr);
    let (bar, full) = ("█".repeat(25), "█".repeat(50));
    assert_eq!(run.ok(), format!("mass: mass < 4\n0 │ 3 {bar}\n1 │ 6 {full}\n4 │\n"));
    let logarithmic = tupelo(&["show", &format!("{file}:mass"), "--log"]).ok();
    assert!(logarithmic.starts_with("mass: mass < 4 (logarithmic)\n"), "{logarithmic}");
    let plain = command(&["show", &file]).env("LC_ALL", "C").output().expect("the command starts");
    let expected = format!("mass: mass < 4\n0 | 3 {}\n1 | 6 {}\n4 |\n", "#".repeat(25), "#".repeat(50));
    assert_eq!(String::from_utf8_lossy(&plain.stdout), expected);
}

#[test]
fn pictures_are_true_to_scale() {
    let place = Place::new();
    let file = plots(&place, &["mass"]);
    let (png, svg) = (place.path("mass.png"), place.path("mass.svg"));
    for picture in [&png, &svg] {
        assert_eq!(tupelo(&["show", &file, "-o", picture]).ok(), "");
    }
    assert!(fs::read(&png).expect("a picture").starts_with(b"\x89PNG\r\n\x1a\n"));
    let text = fs::read_to_string(&svg).expect("a picture");
    assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n") && text.contains(">mass: mass &lt; 4<"), "{text}");
    let widths: Vec<f64> = text
        .lines()
        .filter(|line| line.contains("fill=\"#969696\""))
        .filter_map(|line| line.split("width=\"").nth(1)?.split('"').next()?.parse().ok())
        .collect();
    assert!(matches!(widths[..], [narrow, wide] if (wide / narrow - 3.0).abs() < 0.01), "{widths:?}");
    // The same for entries.
    let hist = place.path("x.svg");
    tupelo(&["hist", &file, "x", "-o", &hist]).ok();
    assert!(fs::read_to_string(&hist).expect("a picture").contains(">x</text>"));
}

#[test]
fn what_cannot_be_drawn_is_explained() {
    let place = Place::new();
    let file = plots(&place, &["mass", "other"]);
    let several = tupelo(&["show", &file]).fails(2);
    for part in ["2 objects that can be drawn: 'mass' (TH1D), 'other' (TH1D)", "FILE:OBJECT"] {
        assert!(several.contains(part), "{several}");
    }
    let entries = tupelo(&["show", &format!("{file}:Events")]).fails(2);
    assert!(entries.contains("`tupelo hist ") && entries.contains("cannot be drawn"), "{entries}");
    let near = tupelo(&["show", &format!("{file}:mas")]).fails(1);
    assert!(near.contains("'mass'"), "{near}");
    let format = tupelo(&["show", &format!("{file}:mass"), "-o", &place.path("x.pdf")]).fails(2);
    assert!(format.contains("only be written as .png or .svg"), "{format}");
    let none = tupelo(&["show", &place.b2hhh()]).fails(2);
    assert!(none.contains("no histogram or graph") && none.contains("`tupelo ls "), "{none}");
}

#[test]
fn objects_of_real_files_are_drawn() {
    let (place, mut drawn, mut refused) = (Place::new(), 0, 0);
    let pictures = ["x.png", "x.svg"].map(|name| place.path(name));
    for (file, path, class) in others() {
        let named = format!("{file}:{path}");
        let run = tupelo(&["show", &named]);
        assert!(!run.stderr.contains("panicked"), "{named}: {}", run.stderr);
        match run.status {
            Some(0) => {
                assert!(run.stdout.lines().count() > 2 && run.stdout.lines().count() < 250, "{named}");
                for picture in &pictures {
                    tupelo(&["show", &named, "-o", picture]).ok();
                }
                let plain = command(&["show", &named]).env("LC_ALL", "C").output().expect("the command starts");
                let drawing = plain.stdout.splitn(2, |byte| *byte == b'\n').nth(1).unwrap_or_default().to_vec();
                assert!(drawing.is_ascii(), "{named}");
                drawn += 1;
            }
            Some(2) => {
                let hint = run.stderr.contains("`tupelo dump ") || run.stderr.contains("`tupelo hist ");
                assert!(run.stderr.contains(&class) && hint, "{named}: {}", run.stderr);
            }
            _ => refused += 1,
        }
    }
    assert!(data().is_none() || drawn > 5, "{drawn} drawn, {refused} refused");
    summarise("command-shown", &format!("command: {drawn} objects of real files drawn, {refused} refused as damaged"));
}

/// A real histogram with names of bins.
#[test]
fn named_bins_are_shown_by_name() {
    let file = data().map(|folder| folder.join("uproot/uproot-issue33.root")).filter(|file| file.exists());
    let Some(file) = file else { return };
    let drawn = tupelo(&["show", &format!("{}:cutflow", file.display())]).ok();
    let lines: Vec<&str> = drawn.lines().collect();
    assert_eq!(lines.len(), 8, "{drawn}");
    assert!(lines[1].trim_start().starts_with("Dijet │ 39 551 "), "{drawn}");
    assert!(lines[7].trim_start().starts_with("IsoPionTrackVeto │ 26 751 "), "{drawn}");
}

/// Their bins are empty.
#[test]
fn values_in_a_buffer_are_not_drawn_as_nothing() {
    let file = data().map(|folder| folder.join("reports/root400_branches.root")).filter(|file| file.exists());
    let Some(file) = file else { return };
    let error = tupelo(&["show", &format!("{}:htime", file.display())]).fails(1);
    assert!(error.contains("object 'htime': its values are in a buffer"), "{error}");
}
