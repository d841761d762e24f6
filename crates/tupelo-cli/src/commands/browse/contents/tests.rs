//! Objects in their directories, and fields with the sizes of their columns.

use super::super::testing::{app, app_of, events, find, real_tables};
use super::*;

fn object(path: &str, class_name: &str, is_newest: bool) -> Object {
    let (path, class_name) = (path.to_owned(), class_name.to_owned());
    Object { path, class_name, title: String::new(), cycle: 1, is_newest, bytes: 7 }
}

#[test]
fn objects_are_in_their_directories() {
    let listed = [
        ("a", "TDirectoryFile", true),
        ("a/h", "TH1D", true),
        ("a/b", "TDirectory", true),
        ("a/b/Events", "ROOT::RNTuple", true),
        ("a/h", "TH1D", false),
        ("ab", "TTree", true),
    ];
    let objects: Vec<Object> = listed.iter().map(|(path, class, newest)| object(path, class, *newest)).collect();
    let shown = |objects: Vec<Object>, below: &str| {
        let mut outline = Outline::new();
        add_objects(&mut outline, newest(objects), below);
        (0..4).for_each(|place| {
            outline.select(place);
            outline.open();
        });
        let name = |line: &super::super::outline::Line| {
            let label = &outline.node(line.node).label;
            format!("{}{} {}", " ".repeat(line.depth), label.name, label.bytes.unwrap_or(0))
        };
        outline.lines().iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(shown(objects.clone(), ""), ["a/ 0", " h 7", " b/ 0", "  Events 0", "ab 0"]);
    assert_eq!(shown(objects[1..5].to_vec(), "a/"), ["h 7", "b/ 0", " Events 0"]);
    assert_eq!(newest(objects).iter().map(|listed| listed.older).collect::<Vec<_>>(), [0, 1, 0, 0, 0]);
}

#[test]
fn fields_have_the_sizes_of_all_their_columns() {
    let folder = tempfile::tempdir().unwrap();
    let app = app(&events(&folder));
    let field = |path: &str| app.outline.node(find(&app, path)).content.field().unwrap();
    let columns = |path: &str| {
        let FieldNode { columns, opened, .. } = field(path);
        columns.iter().map(|place| opened.report.columns[*place].path.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(columns("x"), ["x"]);
    assert_eq!(columns("name"), ["name", "name"]);
    assert_eq!((columns("jets"), columns("jets.pt")), (vec!["jets"], vec!["jets._0.pt"]));
    assert_eq!(columns("jets.hits"), ["jets._0.hits", "jets._0.hits._0"]);
    assert_eq!(field("jets.hits").steps, ["jets", "hits"]);
    let own: u64 =
        field("jets").columns.iter().map(|place| field("jets").opened.report.columns[*place].stored_bytes).sum();
    assert_eq!(field("jets").stored_bytes, own + field("jets.pt").stored_bytes + field("jets.hits").stored_bytes);
    let kinds = ["x", "name", "good", "jets", "jets.hits", "few"].map(|path| field(path).values);
    assert_eq!(kinds[..3], [Values::Numbers, Values::Texts, Values::Texts]);
    assert_eq!(kinds[3..], [Values::Sizes, Values::Numbers, Values::Numbers]);
}

/// Every column belongs to a node below its top-level field. The files are those of experiments, too.
#[test]
fn sizes_in_real_files_are_those_of_the_report() {
    for (file, name) in real_tables() {
        let app = app_of(&file, &name);
        for (id, node) in app.outline.nodes() {
            let Some((field, [top])) = node.content.field().map(|field| (field, &field.steps[..])) else { continue };
            let expected = field.opened.report.fields.iter().find(|expected| expected.name == *top).unwrap();
            let found = (field.pages, field.stored_bytes, field.unpacked_bytes);
            let expected = (expected.pages, expected.stored_bytes, expected.unpacked_bytes);
            assert_eq!(found, expected, "{}:{name} {top} {id:?}", file.name());
        }
    }
}
