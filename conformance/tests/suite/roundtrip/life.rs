//! An ntuple that grows in any way, in any order, is at every checkpoint what a model of it says.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{Field, Schema as ArrowSchema};
use conformance::mutate::Random;
use conformance::{memory, summary};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tupelo::schema::Schema;
use tupelo::writer::AttributeSetWriter;
use tupelo::{FileWriter, Ntuple, NtupleWriter, WriteOptions};
use tupelo_storage::{MemoryFile, MemorySink};

use super::types::{Number, Type, Value};
use super::{any_type, compressions};

/// Enough for half a minute at most on two cores.
const CASES: u32 = 600;
const SET: &str = "notes";

#[derive(Debug, Clone)]
enum Step {
    Write(u64),
    Flush,
    /// Another context writes.
    Context(u64),
    AddFields(Vec<Type>),
    /// To the untyped record that the number chooses.
    AddMember(u64, Type),
    /// Of the field that the number chooses.
    Project(u64),
    Note,
    Metadata,
    Checkpoint,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let entries = prop_oneof![9 => 0u64..20, 1 => 200u64..400];
    let new = || {
        any_type().prop_map(|mut item| {
            item.give_names(false);
            item
        })
    };
    prop_oneof![
        6 => entries.clone().prop_map(Step::Write),
        2 => Just(Step::Flush),
        2 => entries.prop_map(Step::Context),
        3 => prop::collection::vec(new(), 1..3).prop_map(Step::AddFields),
        3 => (any::<u64>(), new()).prop_map(|(record, member)| Step::AddMember(record, member)),
        1 => any::<u64>().prop_map(Step::Project),
        1 => Just(Step::Note),
        1 => Just(Step::Metadata),
        2 => Just(Step::Checkpoint),
        3 => Just(Step::Reopen),
    ]
}

#[derive(Debug, Clone)]
struct Case {
    steps: Vec<Step>,
    seed: u64,
    options: WriteOptions,
}

fn case() -> impl Strategy<Value = Case> {
    let sizes = (prop::sample::select(vec![16u64, 64, 1 << 16]), prop::sample::select(vec![300u64, 5_000, 1 << 20]));
    let checkpoints = prop::sample::select(vec![0u64, 0, 1, 3]);
    let options = (sizes, compressions(), checkpoints).prop_map(|((page, cluster), compression, checkpoints)| {
        WriteOptions::default()
            .with_page_bytes(page)
            .with_cluster_bytes(cluster)
            .with_compression(compression)
            .with_checkpoint_clusters(checkpoints)
    });
    (prop::collection::vec(step(), 1..16), any::<u64>(), options).prop_map(|(steps, seed, options)| Case {
        steps,
        seed,
        options,
    })
}

/// The value of a field that was not written.
fn nothing(item: &Type) -> Value {
    match item {
        Type::Number(_) | Type::Lossy(_) | Type::Wrapper { .. } => Value::Bits(0),
        Type::String { .. } => Value::Text(String::new()),
        Type::List { .. } | Type::Map { .. } => Value::Many(Vec::new()),
        Type::Array(size, item) => Value::Many(vec![nothing(item); *size as usize]),
        Type::Bitset(size) => Value::Many(vec![Value::Bits(0); *size as usize]),
        Type::Struct { members: items, .. } | Type::Tuple(items) => Value::Many(items.iter().map(nothing).collect()),
        Type::Optional { .. } | Type::Variant { .. } => Value::Null,
    }
}

#[derive(Debug, Clone)]
struct ModelField {
    item: Type,
    /// Empty where the field is projected.
    values: Vec<Value>,
    projected_from: Option<usize>,
}

/// What the ntuple must be.
#[derive(Debug, Default)]
struct Model {
    fields: Vec<ModelField>,
    entries: usize,
    notes: Vec<(Range<u64>, String)>,
    metadata: usize,
}

impl Model {
    fn name(number: usize) -> String {
        format!("f{number}")
    }

    fn schema(&self, numbers: Range<usize>) -> Schema {
        let fields: Vec<Field> = numbers.map(|number| self.fields[number].item.field(&Self::name(number))).collect();
        Schema::from_arrow(&ArrowSchema::new(fields)).expect("a schema")
    }

    fn add(&mut self, item: Type) {
        let values = vec![nothing(&item); self.entries];
        self.fields.push(ModelField { item, values, projected_from: None });
    }

    /// Adds a member to one of the untyped records; gives its path and the new member's name.
    fn add_member(&mut self, choice: u64, member: &Type) -> Option<(String, String)> {
        fn grow(item: &mut Type, values: Vec<&mut Value>, choice: u64, member: &Type) -> Option<(String, usize)> {
            let Type::Struct { name: None, members } = item else { return None };
            // Sometimes into a record of the record.
            let count = members.len() as u64;
            let inner = (choice.is_multiple_of(2) && count > 0).then_some((choice / 2 % count.max(1)) as usize);
            let inner = inner.filter(|&inner| matches!(members[inner], Type::Struct { name: None, .. }));
            match inner {
                Some(inner) => {
                    let below = values.into_iter().map(|value| match value {
                        Value::Many(values) => &mut values[inner],
                        other => panic!("{other:?} is not a record"),
                    });
                    let (path, number) = grow(&mut members[inner], below.collect(), choice / 2 / count, member)?;
                    Some((format!(".m{inner}{path}"), number))
                }
                None => {
                    members.push(member.clone());
                    for value in values {
                        match value {
                            Value::Many(values) => values.push(nothing(member)),
                            other => panic!("{other:?} is not a record"),
                        }
                    }
                    Some((String::new(), members.len() - 1))
                }
            }
        }
        let is_record = |field: &ModelField| {
            matches!(field.item, Type::Struct { name: None, .. }) && field.projected_from.is_none()
        };
        let records: Vec<usize> = (0..self.fields.len()).filter(|&i| is_record(&self.fields[i])).collect();
        let number = records[(choice % records.len() as u64) as usize];
        // A projected field has the members that its source had.
        if self.fields.iter().any(|field| field.projected_from == Some(number)) {
            return None;
        }
        let field = &mut self.fields[number];
        let (path, member) = grow(&mut field.item, field.values.iter_mut().collect(), choice / 7, member)?;
        Some((Self::name(number) + &path, format!("m{member}")))
    }

    /// New entries, as a batch of all fields that are stored.
    fn entries(&mut self, count: u64, random: &mut Random) -> RecordBatch {
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for (number, field) in self.fields.iter_mut().enumerate().filter(|(_, field)| field.projected_from.is_none()) {
            let values: Vec<Value> = (0..count).map(|_| field.item.value(random)).collect();
            fields.push(field.item.field(&Self::name(number)));
            arrays.push(field.item.array(&values));
            field.values.extend(values);
        }
        self.entries += count as usize;
        RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), arrays).expect("a batch")
    }

    fn check(&self, ntuple: &Ntuple) {
        let all = ntuple.read_all().to_batch().expect("all data");
        assert_eq!(ntuple.entries() as usize, self.entries);
        assert_eq!(ntuple.schema().fields.len(), self.fields.len());
        for ((number, field), column) in self.fields.iter().enumerate().zip(all.columns()) {
            let name = Self::name(number);
            let read = ntuple.schema().fields.iter().find(|read| read.name == name).expect("the field");
            field.item.check(read);
            column.to_data().validate_full().expect("a valid array");
            let values = &self.fields[field.projected_from.unwrap_or(number)].values;
            for (i, value) in values.iter().enumerate() {
                assert_eq!(field.item.at(column, i), *value, "entry {i} of '{name}' ({})", field.item.name());
            }
        }
        if !self.notes.is_empty() {
            let rows = ntuple.attributes(SET).expect("notes");
            let texts = rows.values().column(0).as_string::<i64>();
            let read: Vec<_> = rows.ranges().iter().cloned().zip(texts.iter().flatten().map(str::to_owned)).collect();
            assert_eq!(read, self.notes);
        }
        let metadata = ntuple.metadata().expect("metadata");
        assert_eq!(metadata.len(), self.metadata);
        assert!((0..self.metadata).all(|number| metadata[&format!("key {number}")] == number.to_string()));
    }
}

fn note(text: &str) -> RecordBatch {
    RecordBatch::try_from_iter([("note", Arc::new(StringArray::from(vec![text])) as ArrayRef)]).expect("a note")
}

/// An open file, the ntuple that is being written to it, and what is meant to be in it.
struct Life {
    target: MemoryFile,
    file: FileWriter,
    ntuple: NtupleWriter,
    notes: Option<AttributeSetWriter>,
    is_update: bool,
    model: Model,
    random: Random,
}

impl Case {
    fn check(&self) {
        let mut model = Model::default();
        // There is always a record that can get members.
        model.add(Type::Struct { name: None, members: vec![Type::Bitset(3)] });
        let target = MemoryFile::new();
        let file = FileWriter::create_in(Box::new(MemorySink::create(&target)), "life.root").expect("a file");
        let ntuple = file.ntuple(memory::NAME, &model.schema(0..1), self.options.clone()).expect("an ntuple");
        let random = Random::new(self.seed);
        let mut life = Life { target, file, ntuple, notes: None, is_update: false, model, random };
        for step in &self.steps {
            life = life.step(step, &self.options);
        }
        life = life.step(&Step::Reopen, &self.options);
        drop(life.file.abort());
    }
}

impl Life {
    fn step(mut self, step: &Step, options: &WriteOptions) -> Self {
        let Self { ntuple, model, random, notes, .. } = &mut self;
        match step {
            Step::Write(count) => ntuple.write(&model.entries(*count, random)).expect("entries"),
            Step::Flush => ntuple.flush_cluster().expect("a cluster"),
            Step::Context(count) => {
                let mut context = ntuple.fill_context().expect("a context");
                context.write(&model.entries(*count, random)).expect("entries");
                context.finish().expect("a context");
            }
            Step::AddFields(types) => {
                let first = model.fields.len();
                types.iter().for_each(|item| model.add(item.clone()));
                ntuple.add_fields(&model.schema(first..model.fields.len())).expect("fields");
            }
            Step::AddMember(choice, member) => {
                if let Some((path, name)) = model.add_member(*choice, member) {
                    let schema = Schema::from_arrow(&ArrowSchema::new(vec![member.field(&name)])).expect("a schema");
                    ntuple.add_members(&path, &schema).expect("members");
                }
            }
            Step::Project(choice) => {
                let source = (choice % model.fields.len() as u64) as usize;
                let (name, of) = (Model::name(model.fields.len()), Model::name(source));
                // Fixed arrays, variants and projected fields cannot be projected.
                if let Ok(field) = ntuple.schema().projection(&name, &of, None) {
                    ntuple.add_fields(&Schema { fields: vec![field] }).expect("a projected field");
                    let item = model.fields[source].item.clone();
                    model.fields.push(ModelField { item, values: Vec::new(), projected_from: Some(source) });
                }
            }
            Step::Note => {
                let schema = Schema::from_arrow(&note("").schema()).expect("a schema");
                let set = match notes {
                    Some(set) => set,
                    none => none.insert(ntuple.attribute_set(SET, &schema).expect("a set")),
                };
                let (start, text) = (random.below(100), format!("note {}", model.notes.len()));
                let range = start..start + random.below(100);
                set.write(std::slice::from_ref(&range), &note(&text)).expect("a note");
                model.notes.push((range, text));
            }
            Step::Metadata => {
                ntuple.set_metadata(&format!("key {}", model.metadata), &model.metadata.to_string()).expect("a pair");
                model.metadata += 1;
            }
            Step::Checkpoint => {
                ntuple.checkpoint().expect("a checkpoint");
                if self.is_update {
                    self.read();
                }
            }
            Step::Reopen => return self.reopen(options),
        }
        self
    }

    fn reopen(mut self, options: &WriteOptions) -> Self {
        self.ntuple.finish().expect("an ntuple");
        self.file.finish().expect("a file");
        let source = Arc::new(self.target.source().expect("what was written"));
        let sink = MemorySink::update(&self.target).expect("what was written");
        self.file = FileWriter::update_in(Box::new(sink), source).expect("the file");
        self.ntuple = self.file.append(memory::NAME, options.clone()).expect("the ntuple");
        (self.notes, self.is_update) = (None, true);
        self.read();
        self
    }

    /// What readers find is what the model says.
    fn read(&self) {
        let bytes = self.target.bytes().expect("a file");
        self.model.check(&memory::ntuple(&bytes).expect("an ntuple"));
    }
}

#[test]
fn growth_matches_a_model() {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 2000, ..Config::default() };
    TestRunner::new(config)
        .run(&case(), |case| {
            case.check();
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
    summary::note("life", &format!("{cases} generated ntuples grew as a model of them says, read at each checkpoint"));
}

/// Pages were listed in the order of writers, which of an ntuple that is continued is that of the fields' tree: members
/// that were added late got the pages of columns that stood before theirs.
#[test]
fn late_members_keep_their_pages_when_an_ntuple_is_continued() {
    let number = |number| Type::Number(number);
    let steps = vec![
        Step::AddFields(vec![number(Number::U64)]),
        Step::AddMember(1, number(Number::U8)),
        Step::Write(5),
        Step::Reopen,
        Step::Write(7),
        Step::Reopen,
    ];
    Case { steps, seed: 1, options: WriteOptions::default() }.check();
}
