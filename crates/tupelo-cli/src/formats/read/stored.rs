//! How columns of other formats are stored in an ntuple, without loss or, if that is allowed, with it.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, IntervalUnit, TimeUnit, UnionMode};
use tupelo::ops::import::legal;
use tupelo::schema::metadata;

use super::REFUSED;

/// Levels of a type that are converted.
const MAX_DEPTH: usize = 64;
/// Keys of the metadata of Arrow fields that mean what they say.
const OWN_KEYS: &str = "rntuple.";

/// A field that is stored, and what is lost.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) field: Field,
    /// Each with the path in the column and what it becomes.
    pub(crate) losses: Vec<(String, String)>,
}

/// The field for a column, under another name.
///
/// # Errors
/// The path in the column that cannot be stored, why, and what to do.
pub(crate) fn stored(column: &Field, name: &str, may_lose: bool) -> Result<Stored, (String, String)> {
    let mut losses = Vec::new();
    let field = convert(column, name, &Context { path: column.name(), may_lose, depth: 0 }, &mut losses)?;
    Ok(Stored { field, losses })
}

/// Where a field is.
struct Context<'p> {
    path: &'p str,
    may_lose: bool,
    depth: usize,
}

fn convert(
    field: &Field,
    name: &str,
    context: &Context<'_>,
    losses: &mut Vec<(String, String)>,
) -> Result<Field, (String, String)> {
    let refuse = |why: String| Err((context.path.to_owned(), why));
    if context.depth > MAX_DEPTH {
        return refuse(format!("its type is nested deeper than {MAX_DEPTH} levels"));
    }
    if let Some(reason) = field.metadata().get(REFUSED) {
        return refuse(reason.clone());
    }
    let mut own = own_metadata(field);
    if field.metadata().get(metadata::ROLE).is_some_and(|role| role == "streamer") {
        return refuse("objects of ROOT's classes cannot be imported without their file".to_owned());
    }
    let mut lose = |data_type: DataType, what: String, example: &str| match context.may_lose {
        true => {
            own.clear();
            own.insert(metadata::DESCRIPTION.to_owned(), what.clone());
            losses.push((context.path.to_owned(), what));
            Ok(data_type)
        }
        false => {
            let name = context.path;
            Err((
                name.to_owned(),
                format!("{} has no RNTuple type; --allow-loss stores it as {example}", field.data_type()),
            ))
        }
    };
    let below = |item: &Field, name: &str, path: &str, losses: &mut Vec<(String, String)>| {
        convert(item, name, &Context { path, depth: context.depth + 1, ..*context }, losses)
    };
    let data_type = match field.data_type() {
        DataType::Null => return refuse("it has no values, so that its type is unknown".to_owned()),
        DataType::Timestamp(unit, zone) => {
            let zone = zone.as_ref().map_or("without a time zone".to_owned(), |zone| format!("time zone {zone}"));
            let what = format!("time in {} since 1970-01-01, {zone}", unit_name(*unit));
            lose(DataType::Int64, what, "std::int64_t in its unit")?
        }
        DataType::Date32 => lose(DataType::Int32, "days since 1970-01-01".to_owned(), "std::int32_t in days")?,
        DataType::Date64 => {
            lose(DataType::Int64, "milliseconds since 1970-01-01".to_owned(), "std::int64_t in milliseconds")?
        }
        DataType::Time32(unit) => {
            lose(DataType::Int32, format!("time of day in {}", unit_name(*unit)), "std::int32_t in its unit")?
        }
        DataType::Time64(unit) => {
            lose(DataType::Int64, format!("time of day in {}", unit_name(*unit)), "std::int64_t in its unit")?
        }
        DataType::Duration(unit) => {
            lose(DataType::Int64, format!("duration in {}", unit_name(*unit)), "std::int64_t in its unit")?
        }
        DataType::Decimal32(digits, scale)
        | DataType::Decimal64(digits, scale)
        | DataType::Decimal128(digits, scale)
        | DataType::Decimal256(digits, scale) => {
            let what = format!("was a decimal number of {digits} digits, {scale} of them after the point");
            lose(DataType::Float64, what, "double")?
        }
        DataType::Interval(unit) => {
            let unit = match unit {
                IntervalUnit::YearMonth => "months",
                IntervalUnit::DayTime => "days and milliseconds",
                IntervalUnit::MonthDayNano => "months, days and nanoseconds",
            };
            return refuse(format!("intervals of {unit} have no RNTuple type"));
        }
        DataType::FixedSizeBinary(0) => return refuse("binary values of no bytes have no RNTuple type".to_owned()),
        DataType::FixedSizeBinary(size) => {
            own.clear();
            DataType::FixedSizeList(Arc::new(byte()), *size)
        }
        DataType::Dictionary(_, value) => {
            let decoded = Field::new(field.name(), value.as_ref().clone(), field.is_nullable());
            return below(&decoded.with_metadata(own), name, context.path, losses);
        }
        DataType::RunEndEncoded(_, value) => {
            let nullable = field.is_nullable() || value.is_nullable();
            let decoded = Field::new(field.name(), value.data_type().clone(), nullable);
            return below(&decoded.with_metadata(own), name, context.path, losses);
        }
        DataType::List(item) | DataType::LargeList(item) | DataType::ListView(item) | DataType::LargeListView(item) => {
            DataType::LargeList(Arc::new(below(item, "item", context.path, losses)?))
        }
        DataType::FixedSizeList(_, 0) => return refuse("arrays of no items have no RNTuple type".to_owned()),
        DataType::FixedSizeList(item, size) => {
            DataType::FixedSizeList(Arc::new(below(item, "item", context.path, losses)?), *size)
        }
        DataType::Map(entries, is_sorted) => {
            let DataType::Struct(pair) = entries.data_type() else {
                return refuse("the items of the map are not pairs".to_owned());
            };
            let pair: Fields = pair
                .iter()
                .map(|part| below(part, part.name(), &format!("{}.{}", context.path, part.name()), losses))
                .collect::<Result<Vec<_>, _>>()?
                .into();
            let entries =
                Field::new(entries.name(), DataType::Struct(pair), false).with_metadata(own_metadata(entries));
            DataType::Map(Arc::new(entries), *is_sorted)
        }
        DataType::Struct(members) => {
            let member = |member: &FieldRef| {
                let path = format!("{}.{}", context.path, member.name());
                below(member, &legal(member.name(), '_'), &path, losses)
            };
            DataType::Struct(members.iter().map(member).collect::<Result<Vec<_>, _>>()?.into())
        }
        DataType::Union(_, UnionMode::Sparse) => {
            return refuse("sparse unions have no RNTuple type; dense ones have".to_owned());
        }
        DataType::Union(alternatives, UnionMode::Dense) => {
            let mut converted = Vec::new();
            for (id, alternative) in alternatives.iter() {
                let path = format!("{}.{}", context.path, alternative.name());
                let field = match alternative.data_type() {
                    DataType::Null => alternative.as_ref().clone(),
                    _ => below(alternative, alternative.name(), &path, losses)?,
                };
                converted.push((id, Arc::new(field)));
            }
            DataType::Union(converted.into_iter().collect(), UnionMode::Dense)
        }
        other => other.clone(),
    };
    Ok(Field::new(name, data_type, field.is_nullable()).with_metadata(own))
}

/// An item of binary values of a fixed size.
fn byte() -> Field {
    let entries = [(metadata::TYPE.to_owned(), "std::byte".to_owned())];
    Field::new("item", DataType::UInt8, false).with_metadata(entries.into())
}

fn unit_name(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "seconds",
        TimeUnit::Millisecond => "milliseconds",
        TimeUnit::Microsecond => "microseconds",
        TimeUnit::Nanosecond => "nanoseconds",
    }
}

/// What `tupelo dump` says of a field that is stored: no other field has its values.
fn own_metadata(field: &Field) -> std::collections::HashMap<String, String> {
    let entries = field.metadata().iter();
    let mut own: std::collections::HashMap<String, String> = entries
        .filter(|(key, _)| key.starts_with(OWN_KEYS) && !key.starts_with(metadata::PROJECTED))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if own.get(metadata::TYPE).is_some_and(|name| name.starts_with("ROOT::RNTupleCardinality")) {
        own.remove(metadata::TYPE);
        own.remove(metadata::ENCODING);
    }
    own
}

/// The field with nulls where one of two fields of the same type has them.
pub(crate) fn either(one: &Field, other: &Field) -> Field {
    let is_nullable = one.is_nullable() || other.is_nullable();
    let (first, second) = (one.data_type(), other.data_type());
    one.clone().with_data_type(either_type(first, second)).with_nullable(is_nullable)
}

fn either_type(one: &DataType, other: &DataType) -> DataType {
    let both = |one: &FieldRef, other: &FieldRef| Arc::new(either(one, other));
    match (one, other) {
        (DataType::LargeList(one), DataType::LargeList(other)) => DataType::LargeList(both(one, other)),
        (DataType::FixedSizeList(one, size), DataType::FixedSizeList(other, _)) => {
            DataType::FixedSizeList(both(one, other), *size)
        }
        (DataType::Map(one, sorted), DataType::Map(other, _)) => DataType::Map(both(one, other), *sorted),
        (DataType::Struct(one), DataType::Struct(other)) => {
            DataType::Struct(one.iter().zip(other).map(|(one, other)| both(one, other)).collect())
        }
        (DataType::Union(one, mode), DataType::Union(other, _)) => {
            let fields = one.iter().zip(other.iter()).map(|((id, one), (_, other))| (id, both(one, other)));
            DataType::Union(fields.collect(), *mode)
        }
        _ => one.clone(),
    }
}

/// Whether two fields have the same names and types, but for nulls and metadata.
pub(crate) fn same_type(one: &Field, other: &Field) -> bool {
    fn bare(data_type: &DataType) -> DataType {
        let below = |field: &FieldRef| Arc::new(Field::new(field.name(), bare(field.data_type()), true));
        match data_type {
            DataType::LargeList(item) => {
                DataType::LargeList(Arc::new(Field::new("item", bare(item.data_type()), true)))
            }
            DataType::FixedSizeList(item, size) => {
                DataType::FixedSizeList(Arc::new(Field::new("item", bare(item.data_type()), true)), *size)
            }
            DataType::Map(entries, _) => DataType::Map(below(entries), false),
            DataType::Struct(members) => DataType::Struct(members.iter().map(below).collect()),
            DataType::Union(fields, mode) => {
                DataType::Union(fields.iter().map(|(id, field)| (id, below(field))).collect(), *mode)
            }
            DataType::Utf8 | DataType::Utf8View => DataType::LargeUtf8,
            DataType::Binary | DataType::BinaryView => DataType::LargeBinary,
            other => other.clone(),
        }
    }
    one.name() == other.name() && bare(one.data_type()) == bare(other.data_type())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored_type(data_type: DataType, may_lose: bool) -> Result<DataType, String> {
        let stored = stored(&Field::new("x", data_type, true), "x", may_lose);
        stored.map(|stored| stored.field.data_type().clone()).map_err(|(path, why)| format!("{path}: {why}"))
    }

    #[test]
    fn types_without_counterpart_need_permission() {
        let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let refused = stored_type(time.clone(), false).unwrap_err();
        assert!(refused.starts_with("x: Timestamp(") && refused.contains("--allow-loss"), "{refused}");
        let field = stored(&Field::new("t", time, false), "t", true).unwrap();
        assert_eq!(field.field.data_type(), &DataType::Int64);
        let told = "time in microseconds since 1970-01-01, time zone UTC";
        assert_eq!(field.field.metadata()[metadata::DESCRIPTION], told);
        assert_eq!(field.losses, [("t".to_owned(), told.to_owned())]);
        for (data_type, lossy) in [
            (DataType::Date32, DataType::Int32),
            (DataType::Date64, DataType::Int64),
            (DataType::Time32(TimeUnit::Second), DataType::Int32),
            (DataType::Time64(TimeUnit::Nanosecond), DataType::Int64),
            (DataType::Duration(TimeUnit::Second), DataType::Int64),
            (DataType::Decimal128(10, 2), DataType::Float64),
        ] {
            assert!(stored_type(data_type.clone(), false).is_err());
            assert_eq!(stored_type(data_type, true), Ok(lossy));
        }
        for data_type in [DataType::Null, DataType::FixedSizeBinary(0), DataType::Interval(IntervalUnit::DayTime)] {
            assert!(stored_type(data_type, true).is_err());
        }
    }

    #[test]
    fn members_that_cannot_be_stored_are_named() {
        let inner = Field::new("when", DataType::Date32, false);
        let list = DataType::List(Arc::new(Field::new("item", DataType::Struct(vec![inner].into()), false)));
        assert!(stored_type(list, false).unwrap_err().starts_with("x.when: Date32"));
    }

    #[test]
    fn nulls_do_not_make_another_type() {
        let field = |nullable| {
            let item = Field::new("item", DataType::Float32, nullable);
            Field::new("x", DataType::LargeList(Arc::new(item)), !nullable)
        };
        assert!(same_type(&field(true), &field(false)));
        let both = either(&field(true), &field(false));
        let DataType::LargeList(item) = both.data_type() else { panic!("{both}") };
        assert!(both.is_nullable() && item.is_nullable(), "{both}");
        assert!(!same_type(&field(true), &Field::new("x", DataType::Float32, true)));
    }
}
