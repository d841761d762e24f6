//! JSON lines: one object a line.
//!
//! The crate `arrow-json` is not used: it makes 1 of 1.5 where the first lines have integers, and does not say in which
//! line a value is wrong.

mod object;

use std::collections::{HashMap, HashSet};
// FS: a file of another format; the storage of the engine is for ROOT files.
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use serde_json::{Map, Number, Value};

use self::object::{Wrong, object};
use super::lines::{Kinds, MAX_LINE_BYTES, Scalar, Values, batches};
use super::{BATCH_BYTES, Batches, ForeignFile, Limits, Place, in_range, refused};
use crate::failure::Failure;

/// The largest number of entries in a batch.
const MAX_ENTRIES: usize = 1 << 16;
/// Numbers that are not finite, as `tupelo dump` writes them.
const NOT_FINITE: [(&str, f64); 3] = [("NaN", f64::NAN), ("Infinity", f64::INFINITY), ("-Infinity", f64::NEG_INFINITY)];

/// A file of JSON lines.
pub(super) struct JsonFile {
    place: Place,
    schema: SchemaRef,
    names: HashSet<String>,
    inferred: usize,
}

impl JsonFile {
    pub(super) fn open(place: Place, limits: Limits, like: Option<&SchemaRef>) -> Result<Self, Failure> {
        let inferred = limits.inferred;
        if let Some(schema) = like {
            return Ok(Self::new(place, schema.clone(), inferred));
        }
        let mut lines = Lines::new(&place)?;
        let mut shape = Members::default();
        let mut seen = 0;
        while seen < inferred {
            let Some((_, object)) = lines.next()? else { break };
            shape.add(&object);
            seen += 1;
        }
        if seen == 0 {
            return Err(place.failure("expected one JSON object a line, but the file is empty"));
        }
        let fields: Vec<Field> = shape.fields(inferred);
        Ok(Self::new(place, Arc::new(Schema::new(fields)), inferred))
    }

    fn new(place: Place, schema: SchemaRef, inferred: usize) -> Self {
        let names = schema.fields().iter().map(|field| field.name().clone()).collect();
        Self { place, schema, names, inferred }
    }
}

/// What the values of one place in the objects are.
#[derive(Debug, Default)]
struct Shape {
    kinds: Kinds,
    items: Option<Box<Shape>>,
    members: Option<Members>,
}

/// The members of objects, in the order in which they first occurred.
#[derive(Debug, Default)]
struct Members {
    shapes: Vec<(String, Shape)>,
    places: HashMap<String, usize>,
}

impl Members {
    fn add(&mut self, object: &Map<String, Value>) {
        for (name, value) in object {
            let place = match self.places.get(name) {
                Some(&place) => place,
                None => {
                    self.places.insert(name.clone(), self.shapes.len());
                    self.shapes.push((name.clone(), Shape::default()));
                    self.shapes.len() - 1
                }
            };
            if let Some((_, shape)) = self.shapes.get_mut(place) {
                shape.add(value);
            }
        }
    }

    fn fields(&self, inferred: usize) -> Vec<Field> {
        let field = |(name, shape): &(String, Shape)| match shape.data_type() {
            Ok(Some(data_type)) => Field::new(name, data_type, true),
            Ok(None) => {
                let what = format!("it has no value in the first {inferred} lines, so that its type is unknown");
                refused(name, &what)
            }
            Err(reason) => refused(name, &reason),
        };
        self.shapes.iter().map(field).collect()
    }
}

impl Shape {
    fn add(&mut self, value: &Value) {
        match value {
            Value::Null => {}
            Value::Bool(_) => self.kinds.add(Kinds::BOOL),
            Value::String(text) if NOT_FINITE.iter().any(|(known, _)| known == text) => {
                self.kinds.add(Kinds::NOT_FINITE);
            }
            Value::String(_) => self.kinds.add(Kinds::TEXT),
            Value::Number(number) => self.kinds.add(match scalar(number) {
                Scalar::Int(value) => Kinds::of_integer(value.into()),
                Scalar::Uint(value) => Kinds::of_integer(value.into()),
                _ => Kinds::REAL,
            }),
            Value::Array(values) => {
                let items = self.items.get_or_insert_default();
                values.iter().for_each(|value| items.add(value));
            }
            Value::Object(object) => self.members.get_or_insert_default().add(object),
        }
    }

    /// The type of all values; `None` if there are none.
    fn data_type(&self) -> Result<Option<DataType>, String> {
        let differ = || "its values are of different kinds, which have no common type".to_owned();
        match (&self.items, &self.members, self.kinds.is_empty()) {
            (None, None, true) => Ok(None),
            (None, None, false) => self.kinds.data_type().map(Some).ok_or_else(differ),
            (Some(items), None, true) => match items.data_type()? {
                Some(item) => Ok(Some(DataType::LargeList(Arc::new(Field::new("item", item, true))))),
                None => Err("its lists are all empty, so that the type of their items is unknown".to_owned()),
            },
            (None, Some(members), true) => {
                let field = |(name, shape): &(String, Shape)| match shape.data_type() {
                    Ok(Some(data_type)) => Ok(Field::new(name, data_type, true)),
                    Ok(None) => Err(format!("its member '{name}' has no value, so that its type is unknown")),
                    Err(reason) => Err(format!("member '{name}': {reason}")),
                };
                let fields = members.shapes.iter().map(field).collect::<Result<Vec<_>, _>>()?;
                Ok(Some(DataType::Struct(fields.into())))
            }
            _ => Err(differ()),
        }
    }
}

fn scalar(number: &Number) -> Scalar<'static> {
    match (number.as_i64(), number.as_u64()) {
        (Some(value), _) => Scalar::Int(value),
        (None, Some(value)) => Scalar::Uint(value),
        (None, None) => Scalar::Real(number.as_f64().unwrap_or(f64::NAN)),
    }
}

/// The length of a line and the object on it.
type Line = (usize, Map<String, Value>);

/// The lines of a file.
struct Lines<'f> {
    place: &'f Place,
    input: BufReader<File>,
    text: Vec<u8>,
    line: u64,
}

impl<'f> Lines<'f> {
    fn new(place: &'f Place) -> Result<Self, Failure> {
        let input = BufReader::with_capacity(1 << 18, place.rewound()?);
        Ok(Self { place, input, text: Vec::new(), line: 0 })
    }

    /// The next object; `None` at the end of the file. Empty lines are skipped.
    fn next(&mut self) -> Result<Option<Line>, Failure> {
        loop {
            self.text.clear();
            let most = (MAX_LINE_BYTES + 1) as u64;
            let read = std::io::Read::take(&mut self.input, most).read_until(b'\n', &mut self.text);
            let read = read.map_err(|error| self.place.failure(format_args!("cannot be read: {error}")))?;
            self.line += 1;
            let line = self.line;
            if read == 0 {
                return Ok(None);
            }
            if read > MAX_LINE_BYTES {
                let most = MAX_LINE_BYTES >> 20;
                return Err(self.place.failure(format_args!("line {line}: it has more than {most} MiB")));
            }
            if self.text.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            return match object(&self.text) {
                Ok(object) => Ok(Some((read, object))),
                Err(Wrong::Text(what)) => {
                    let failure = self.place.failure(format_args!("line {line}: expected one JSON object: {what}"));
                    Err(match self.text.trim_ascii_start().starts_with(b"[") {
                        true => failure.with_hint("`jq -c '.[]' IN > OUT` makes lines of a JSON array"),
                        false => failure,
                    })
                }
                Err(Wrong::Large(integer)) => {
                    let what = format_args!("line {line}: the integer {integer} does not fit in 64 bits");
                    Err(self.place.failure(what).with_hint("in quotes it is text, with a decimal point a double"))
                }
                Err(Wrong::Repeated(key)) => {
                    let key = key.escape_debug();
                    let what = format_args!("line {line}: expected keys that are different, found '{key}' twice");
                    Err(self.place.failure(what).with_hint("`jq -c . IN > OUT` keeps the last value of each key"))
                }
            };
        }
    }
}

impl ForeignFile for JsonFile {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn batches(&self, columns: &[usize], range: Range<u64>) -> Result<Batches<'_>, Failure> {
        let mut lines = Lines::new(&self.place)?;
        let schema = Arc::new(self.schema.project(columns).map_err(|error| self.place.failure(error))?);
        let own = Arc::clone(&schema);
        let batches = batches(&self.place, schema, move |columns| self.fill(&mut lines, &own, columns));
        Ok(in_range(batches, 0, range))
    }
}

impl JsonFile {
    /// Adds the entries of a batch; returns their number.
    fn fill(&self, lines: &mut Lines<'_>, schema: &Schema, columns: &mut [Values]) -> Result<usize, Failure> {
        let (mut count, mut bytes) = (0, 0u64);
        while count < MAX_ENTRIES && bytes < BATCH_BYTES {
            let Some((length, object)) = lines.next()? else { break };
            (count, bytes) = (count + 1, bytes + length as u64);
            self.push(columns, schema, &object).map_err(|what| {
                let hint = format!(
                    "the types are those of the first {} lines; --infer-rows N looks at more, --exclude FIELDS leaves \
                     columns out",
                    self.inferred
                );
                self.place.failure(format_args!("line {}, {what}", lines.line)).with_hint(hint)
            })?;
        }
        Ok(count)
    }

    /// Adds an object to the columns.
    fn push(&self, columns: &mut [Values], schema: &Schema, object: &Map<String, Value>) -> Result<(), String> {
        if let Some(unknown) = object.keys().find(|name| !self.names.contains(*name)) {
            return Err(format!("column '{}': no line before has it", unknown.escape_debug()));
        }
        for (values, field) in columns.iter_mut().zip(schema.fields()) {
            let name = field.name();
            push(values, object.get(name).unwrap_or(&Value::Null))
                .map_err(|what| format!("column '{}': {what}", name.escape_debug()))?;
        }
        Ok(())
    }
}

/// Adds a value; the error says what it is instead.
fn push(values: &mut Values, value: &Value) -> Result<(), String> {
    let kind = values.kind();
    let fits = match (value, &mut *values) {
        (Value::Null, values) => {
            values.push_null();
            true
        }
        (Value::Array(given), Values::List { ends, nulls, items, .. }) => {
            given.iter().try_for_each(|value| push(items, value))?;
            ends.push(items.count() as i64);
            nulls.append_non_null();
            true
        }
        (Value::Object(object), Values::Record { members, fields, nulls }) => {
            let known = fields.iter().filter(|field| object.contains_key(field.name())).count();
            if let Some(unknown) = object.keys().find(|name| known < object.len() && fields.find(name).is_none()) {
                return Err(format!("no object before has the member '{}'", unknown.escape_debug()));
            }
            for (values, field) in members.iter_mut().zip(fields.iter()) {
                push(values, object.get(field.name()).unwrap_or(&Value::Null))?;
            }
            nulls.append_non_null();
            true
        }
        (Value::Bool(value), values) => values.push(Scalar::Bool(*value)),
        (Value::Number(number), values) => values.push(scalar(number)),
        (Value::String(text), values @ Values::Real(_)) => match NOT_FINITE.iter().find(|(known, _)| known == text) {
            Some((_, value)) => values.push(Scalar::Real(*value)),
            None => false,
        },
        (Value::String(text), values) => values.push(Scalar::Text(text)),
        _ => false,
    };
    match fits {
        true => Ok(()),
        false => {
            let found = match value {
                Value::Null => "null".to_owned(),
                Value::Bool(value) => value.to_string(),
                Value::Number(number) => number.to_string(),
                Value::String(_) => "a string".to_owned(),
                Value::Array(_) => "a list".to_owned(),
                Value::Object(_) => "an object".to_owned(),
            };
            Err(format!("expected {kind}, found {found}"))
        }
    }
}
