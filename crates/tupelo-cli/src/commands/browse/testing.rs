//! A file and a screen for tests.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float32Array, Int32Array, LargeListArray, RecordBatch, StringArray, StructArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{Field, Fields};
use tempfile::TempDir;
use tupelo::schema::Schema;
use tupelo::{File, WriteOptions};

use super::super::head::drawing::Letters;
use super::app::App;
use super::contents::{Listed, Opened, add_fields, add_objects};
use super::outline::{NodeId, Outline};

/// Entries of the ntuple.
pub(super) const ENTRIES: usize = 1000;

fn list(item: &str, offsets: Vec<i64>, items: ArrayRef) -> ArrayRef {
    let field = Arc::new(Field::new(item, items.data_type().clone(), false));
    Arc::new(LargeListArray::new(field, OffsetBuffer::new(offsets.into()), items, None))
}

/// A file with the ntuple `Events`: half numbers `x`, `name` of two texts, `good`, `jets` of the numbers 0, 1 or 2 with `pt` and
/// twice as many `hits`, and `few`, which every tenth entry has.
pub(super) fn events(folder: &TempDir) -> File {
    let path = folder.path().join("events.root");
    let numbers = |count: usize| 0..count as i32;
    let mut offsets = vec![0];
    offsets.extend(numbers(ENTRIES).scan(0, |end, entry| {
        *end += i64::from(entry % 3);
        Some(*end)
    }));
    let jets = offsets[ENTRIES] as usize;
    let pt: ArrayRef = Arc::new(Float32Array::from_iter_values(numbers(jets).map(|jet| jet as f32)));
    let hits: ArrayRef = Arc::new(Int32Array::from_iter_values(numbers(2 * jets)));
    let hits = list("item", (0..=jets as i64).map(|jet| 2 * jet).collect(), hits);
    let member = |name: &str, values: &ArrayRef| Field::new(name, values.data_type().clone(), false);
    let members = Fields::from(vec![member("pt", &pt), member("hits", &hits)]);
    let records: ArrayRef = Arc::new(StructArray::new(members, vec![pt, hits], None));
    let columns: [(&str, ArrayRef); 5] = [
        ("x", Arc::new(Float32Array::from_iter_values(numbers(ENTRIES).map(|entry| entry as f32 / 2.0)))),
        (
            "name",
            Arc::new(StringArray::from_iter_values(numbers(ENTRIES).map(|it| ["even", "odd\x1b"][it as usize % 2]))),
        ),
        ("good", Arc::new(BooleanArray::from_iter(numbers(ENTRIES).map(|entry| Some(entry % 4 == 0))))),
        ("jets", list("item", offsets, records)),
        (
            "few",
            Arc::new(Int32Array::from_iter(numbers(ENTRIES).map(|entry| (entry % 10 == 0).then_some(entry / 100)))),
        ),
    ];
    let fields = columns.iter().map(|(name, it)| Field::new(*name, it.data_type().clone(), *name == "few"));
    let schema = arrow_schema::Schema::new(fields.collect::<Vec<_>>());
    let batch = RecordBatch::try_new(Arc::new(schema), columns.map(|(_, values)| values).to_vec()).unwrap();
    let file = tupelo::create(&path).unwrap();
    let schema = Schema::from_arrow(&batch.schema()).unwrap();
    let mut ntuple = file.ntuple("Events", &schema, WriteOptions::default()).unwrap();
    ntuple.write(&batch).unwrap();
    ntuple.finish().unwrap();
    file.finish().unwrap();
    tupelo::open(path.to_str().unwrap()).open_file().unwrap()
}

/// The screen of the ntuple `Events` of a file.
pub(super) fn app(file: &File) -> App {
    app_of(file, "Events")
}

/// The screen of an ntuple or tree, which is open.
pub(super) fn app_of(file: &File, name: &str) -> App {
    let mut outline = Outline::new();
    let object = file.listed(name).unwrap().unwrap();
    add_objects(&mut outline, vec![Listed { object, older: 0 }], "");
    let only = outline.roots()[0];
    add_fields(&mut outline, only, &Arc::new(Opened::read(file, name).unwrap()));
    outline.set_open(only, true);
    App::new("events.root".to_owned(), outline, Letters::Unicode, false)
}

/// The node of a path.
pub(super) fn find(app: &App, path: &str) -> NodeId {
    app.outline.nodes().find(|(_, node)| node.label.path == path).unwrap().0
}

/// The ntuples and trees of the real files, if these exist, each in its open file.
pub(super) fn real_tables() -> impl Iterator<Item = (File, String)> {
    let given = std::env::var_os("TUPELO_DATA").filter(|path| !path.is_empty()).map(PathBuf::from);
    let folder = given.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"));
    // FS: the names of real files.
    let listed = [folder.clone(), folder.join("trees")].into_iter().filter_map(|folder| std::fs::read_dir(folder).ok());
    let paths =
        listed.flatten().map(|entry| entry.unwrap().path()).filter(|path| path.extension() == Some("root".as_ref()));
    paths.flat_map(|path| {
        let file = tupelo::open(path.to_str().unwrap()).open_file().unwrap();
        let names = file.table_names().unwrap();
        // Some of other kinds cannot be opened, for a reason that the panel shows.
        let names = names.into_iter().filter(|name| file.table(Some(name)).is_ok()).collect::<Vec<_>>();
        names.into_iter().map(move |name| (file.clone(), name))
    })
}
