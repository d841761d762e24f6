//! What is read and drawn of fields.

use super::super::contents::Content;
use super::super::reader::Task;
use super::super::testing::{ENTRIES, app, app_of, events, find, real_tables};
use super::*;
use crate::commands::head::drawing::{Letters, Space};
use crate::text::Text;

/// The lines of a plot, without bars.
fn lines(plot: &Plot) -> Vec<String> {
    let mut text = Text::new(false);
    plot.add_to("", false, Space { letters: Letters::Ascii, columns: Some(40), lines: Some(12) }, &mut text);
    text.to_ansi().lines().skip(1).map(|line| line.trim_end_matches('#').trim().replace("| ", "")).collect()
}

/// The lines, title and statistics of a field.
fn plotted(path: &str) -> (Vec<String>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let app = app(&events(&folder));
    let Some(Task::Values(wanted)) = app.task(find(&app, path)) else { panic!("{path} has values") };
    let mut seen = Vec::new();
    let (plot, labels) = super::plot(&wanted, |read, of| seen.push((read, of))).unwrap();
    let all = ENTRIES as u64;
    assert!(seen.first() == Some(&(0, all)) && seen.last() == Some(&(all, all)), "{seen:?}");
    (lines(&plot), labels.title, labels.summary)
}

#[test]
fn numbers_are_counted_in_bins() {
    let (lines, title, summary) = plotted("x");
    assert_eq!(title, "Values in all 1 000 entries");
    assert_eq!(summary, "1 000 values, mean 249.75, standard deviation 144.34");
    assert_eq!((lines.len(), lines[0].as_str(), lines.last().unwrap().as_str()), (11, "0 100", "499.5 |"));
}

#[test]
fn items_of_all_lists_count() {
    let (_, title, summary) = plotted("jets.hits");
    assert_eq!(title, "Values in all 1 000 entries");
    assert!(summary.starts_with("1 998 values, mean 998.5,"), "{summary}");
    assert!(plotted("jets.pt").2.starts_with("999 values, mean 499,"));
}

#[test]
fn collections_of_records_have_sizes() {
    let (lines, title, summary) = plotted("jets");
    assert_eq!(title, "Sizes of the collections in all 1 000 entries");
    assert_eq!(lines, ["0 334", "1 333", "2 333", "3 |"]);
    assert!(summary.starts_with("1 000 values, mean 0.999,"), "{summary}");
}

#[test]
fn texts_and_truth_values_are_counted() {
    let (lines, title, summary) = plotted("name");
    assert_eq!(title, "Most frequent values in all 1 000 entries");
    assert_eq!(
        (lines, summary.as_str()),
        (vec!["even 500".to_owned(), r"odd\u{1b} 500".to_owned()], "1 000 values, 2 different")
    );
    assert_eq!(plotted("good").0, ["false 750", "true 250"]);
}

#[test]
fn missing_values_are_counted_too() {
    let (lines, _, summary) = plotted("few");
    assert_eq!(lines[..2], ["0 10", "1 10"]);
    assert!(summary.ends_with(", 900 missing"), "{summary}");
}

/// Of a collection, the field with the fewest bytes is read.
#[test]
fn sizes_are_read_with_the_smallest_field() {
    let folder = tempfile::tempdir().unwrap();
    let app = app(&events(&folder));
    let Some(Task::Values(wanted)) = app.task(find(&app, "jets")) else { panic!("jets have sizes") };
    assert_eq!((wanted.paths.join(" "), wanted.steps.join(" ")), ("jets.pt jets.hits".to_owned(), "jets".to_owned()));
    // If it cannot be read, another one is.
    let other = Wanted { paths: vec!["none".to_owned(), "jets.hits".to_owned()], ..wanted.clone() };
    let summary = |wanted: &Wanted| super::plot(wanted, |_, _| ()).map(|(_, labels)| labels.summary);
    assert_eq!(summary(&other).unwrap(), summary(&wanted).unwrap());
    let none = Wanted { paths: vec!["none".to_owned(), "no.ne".to_owned()], ..wanted };
    assert!(summary(&none).unwrap_err().message.unwrap().contains("'none'"));
    let table = find(&app, "Events");
    assert!(matches!(app.outline.node(table).content, Content::Table(..)));
    assert!(matches!(app.task(table), Some(Task::Table(name)) if name == "Events"));
}

#[test]
fn values_far_away_are_outside() {
    let mut values: Vec<f64> = (0..1000).map(|value| f64::from(value) / 1000.0).collect();
    assert_eq!(limits(&values, false), (BINS, (0.0, 0.999), true));
    values.extend([-999.0, 1e30, f64::NAN, f64::INFINITY]);
    let (_, (low, high), _) = limits(&values, false);
    assert!((-1.1..0.0).contains(&low) && (1.0..2.1).contains(&high), "{low} {high}");
    // Few values are all shown, and so are those that hardly differ.
    assert_eq!(limits(&[0.0, 1.0, 1e6], false).1, (0.0, 1e6));
    assert_eq!(limits(&[7.0; 500], false), (1, (6.5, 7.5), false));
}

#[test]
fn bins_have_the_same_number_of_integers() {
    let integers = |count: u32| (0..count).map(f64::from).collect::<Vec<_>>();
    assert_eq!(limits(&integers(5), true), (5, (0.0, 5.0), false));
    assert_eq!(limits(&integers(100), true), (108, (0.0, 108.0), false));
    // 1000 in bins of 9, whose number has many divisors.
    assert_eq!(limits(&integers(1000), true), (120, (0.0, 1080.0), false));
    assert_eq!(limits(&[3.0, 3.0], true), (1, (3.0, 4.0), false));
    let (bins, (low, high), _) = limits(&[0.0, 1.8e19], true);
    assert!(bins <= BINS && low <= 0.0 && high >= 1.8e19);
    let (_, (low, high), _) = limits(&[1.76e18; 3], true);
    assert!(low < 1.76e18 && high > 1.76e18);
}

#[test]
fn few_texts_of_many_are_shown() {
    let texts = (0..100).map(|number| (number.to_string(), number + 1)).collect();
    let (plot, summary) = most_frequent(texts);
    assert_eq!(summary, "5 050 values, 100 different; the 20 most frequent are shown");
    assert_eq!((lines(&plot).len(), lines(&plot)[0].as_str()), (MAX_TEXTS, "99 100"));
    let (plot, summary) = draw(Sample::default());
    assert_eq!((lines(&plot).len(), summary.as_str()), (0, "no values"));
}

/// Values of every kind of field are drawn, as far as the engine reads them.
#[test]
fn values_in_real_files_are_drawn() {
    let mut failed = Vec::new();
    for (file, name) in real_tables() {
        let app = app_of(&file, &name);
        for (id, node) in app.outline.nodes() {
            let Some(Task::Values(wanted)) = app.task(id) else { continue };
            let failure = super::plot(&wanted, |_, _| ()).err().and_then(|failure| failure.message);
            // What the writer did not store.
            let is_unknown = |message: &String| !node.children.is_empty() || !message.contains("its entries are empty");
            failed.extend(failure.filter(is_unknown));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
