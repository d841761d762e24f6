//! Values become pages, or leave no trace.

use std::ops::Range;

use arrow_array::types::Int32Type;
use arrow_array::{DictionaryArray, Int32Array, StringArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use tupelo_format::compression::Compression;
use tupelo_format::encoding::{ColumnType, Encoding};
use tupelo_format::locator::Locator;

use super::*;

/// Elements of a page of most columns here.
const PAGE: usize = 16;

fn options(column_type: ColumnType, page_bytes: u64) -> PageOptions {
    let encoding = Encoding::of(column_type).unwrap();
    PageOptions { encoding, compression: "none".parse::<Compression>().unwrap(), has_checksum: true, page_bytes }
}

type MakeValues = fn(Range<usize>) -> Values;

/// An empty column of every kind with pages of [`PAGE`] elements, and the values of a range of elements for it.
fn columns() -> Vec<(ColumnWriter, MakeValues)> {
    let page = PAGE as u64;
    let new = |kind, column_type, page_bytes| ColumnWriter::new(kind, options(column_type, page_bytes));
    vec![
        (new(ColumnKind::Bits, ColumnType::Bit, page / 8), |range| Values::Bits(range.map(|n| n % 3 == 0).collect())),
        (new(ColumnKind::Fixed(2), ColumnType::SplitInt16, page * 2), |range| {
            Values::Fixed(range.flat_map(|n| (n as i16 * 7).to_le_bytes()).collect::<Vec<_>>().into())
        }),
        (new(ColumnKind::Floats, ColumnType::SplitReal32, page * 4), |range| {
            Values::Floats(range.map(|n| n as f32 / 3.0).collect())
        }),
        (new(ColumnKind::Doubles, ColumnType::Real16, page * 2), |range| {
            Values::Doubles(range.map(|n| n as f64 / 3.0).collect())
        }),
        (new(ColumnKind::Indexes, ColumnType::SplitIndex64, page * 8), |range| {
            let end = |n: &usize| (n * n) as i32;
            let offsets: Vec<i32> = (range.start..=range.end).map(|n| end(&n)).collect();
            Values::Lengths(Lengths::Narrow(OffsetBuffer::new(offsets.into())))
        }),
        (new(ColumnKind::Switches(3), ColumnType::Switch, page * 12), |range| {
            Values::Tags(range.map(|n| n as u32 % 4).collect())
        }),
    ]
}

/// The elements and the bytes of all pages, the last of which may be smaller.
fn pages(mut column: ColumnWriter) -> Vec<(u32, Vec<u8>)> {
    column.pack_pending().unwrap();
    column.take_packed().map(|(_, page)| (page.elements, page.bytes)).collect()
}

fn append(column: &mut ColumnWriter, values: Values) {
    column.stage(values).unwrap();
    column.append_staged().unwrap();
}

#[test]
fn discarded_values_leave_no_trace() {
    let kinds = columns().len();
    for kind in 0..kinds {
        let [(mut column, values), (mut expected, _)] = [(); 2].map(|()| columns().swap_remove(kind));
        for range in [0..PAGE - 1, PAGE - 1..PAGE + 1, PAGE + 1..4 * PAGE] {
            column.stage(values(range.start..range.end + 3 * PAGE)).unwrap();
            column.discard_staged();
            assert!(column.stage(Values::Fixed(vec![0_u8; 3].into())).is_err(), "values of another kind");
            append(&mut column, values(range.clone()));
            append(&mut expected, values(range));
        }
        assert_eq!(pages(column), pages(expected), "column {kind}");
    }
}

#[test]
fn pages_do_not_depend_on_how_values_arrive() {
    let entries = 5 * PAGE + 3;
    for kind in 0..columns().len() {
        let (mut whole, values) = columns().swap_remove(kind);
        append(&mut whole, values(0..entries));
        let expected = pages(whole);
        let sizes: Vec<usize> = expected.iter().map(|(elements, _)| *elements as usize).collect();
        assert_eq!(sizes, [PAGE, PAGE, PAGE, PAGE, PAGE, 3], "column {kind}");
        for step in [1, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE, entries] {
            let (mut column, _) = columns().swap_remove(kind);
            for start in (0..entries).step_by(step) {
                append(&mut column, values(start..(start + step).min(entries)));
            }
            assert_eq!(pages(column), expected, "column {kind} in steps of {step}");
        }
    }
}

#[test]
fn clusters_begin_anew() {
    for kind in 0..columns().len() {
        let (mut column, values) = columns().swap_remove(kind);
        let mut clusters = Vec::new();
        for _ in 0..2 {
            append(&mut column, values(0..PAGE + 1));
            column.pack_pending().unwrap();
            let packed: Vec<_> = column.take_packed().collect();
            clusters.push(packed.iter().map(|(_, page)| page.bytes.clone()).collect::<Vec<_>>());
            // Threads finish in any order.
            for (number, page) in packed.into_iter().rev() {
                column.put_sealed(number, page.seal(&column.options()).unwrap());
            }
            let waiting: Vec<_> = column.waiting(0).map(|page| page.bytes[..page.bytes.len() - 8].to_vec()).collect();
            assert_eq!(Some(&waiting), clusters.last());
            column.set_stored(&mut (0..).map(|location| Locator::Object { location, bytes: 0 }));
            let elements: Vec<u32> = column.take_stored().pages.iter().map(|page| page.elements).collect();
            assert_eq!(elements, [PAGE as u32, 1]);
        }
        assert_eq!(clusters[0], clusters[1], "column {kind}");
    }
}

#[test]
fn values_that_a_column_cannot_hold_are_refused() {
    let refused = |kind, column_type, values| {
        let error = ColumnWriter::new(kind, options(column_type, 64)).stage(values).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::InvalidArgument);
        error.to_string()
    };
    let text = refused(ColumnKind::Doubles, ColumnType::SplitReal32, Values::Doubles(vec![1e300].into()));
    assert!(text.contains("too large for the SplitReal32 column"), "{text}");
    let text = refused(ColumnKind::Floats, ColumnType::Real16, Values::Floats(vec![1e6].into()));
    assert!(text.contains("too large for the Real16 column"), "{text}");
    let text = refused(ColumnKind::Switches(1), ColumnType::Switch, Values::Tags(vec![0, 2]));
    assert!(text.contains("do not match a column of type Switch"), "{text}");
    let wide = Lengths::Wide(OffsetBuffer::new(vec![0, 1 << 32].into()));
    let text = refused(ColumnKind::Indexes, ColumnType::SplitIndex32, Values::Lengths(wide));
    assert!(text.contains("index 4294967296 does not fit the SplitIndex32 column"), "{text}");
}

/// Regression: the pieces of a batch fitted one by one, but not all in one cluster, and the writer was poisoned.
#[test]
fn clusters_end_before_short_indexes_overflow() {
    let half = || Values::Lengths(Lengths::Wide(OffsetBuffer::new(vec![0, 1 << 31].into())));
    let mut short = ColumnWriter::new(ColumnKind::Indexes, options(ColumnType::SplitIndex32, 64));
    assert!(!short.is_index_full());
    append(&mut short, half());
    assert!(short.is_index_full());
    assert!(short.stage(half()).is_err());
    short.pack_pending().unwrap();
    let numbered: Vec<_> = short.take_packed().collect();
    for (number, page) in numbered {
        let page = page.seal(&short.options()).unwrap();
        short.put_sealed(number, page);
    }
    short.set_stored(&mut (0..).map(|location| Locator::Object { location, bytes: 0 }));
    short.take_stored();
    assert!(!short.is_index_full());
    append(&mut short, half());
    let mut long = ColumnWriter::new(ColumnKind::Indexes, options(ColumnType::SplitIndex64, 64));
    append(&mut long, half());
    append(&mut long, half());
    assert!(!long.is_index_full());
}

#[test]
fn lengths_of_slices_are_relative() {
    let offsets = OffsetBuffer::new(vec![0, 3, 3, 10, 11].into()).slice(1, 2);
    let nulls = NullBuffer::new(BooleanBuffer::from(vec![true, false, true, true])).slice(1, 3);
    let all = [Lengths::Narrow(offsets), Lengths::Valid(nulls), Lengths::Ones(2), Lengths::Ones(0)];
    let found: Vec<_> = all.iter().map(|lengths| (lengths.items(), lengths.max(), lengths.ends(100))).collect();
    let expected = [(7, 7, vec![100, 107]), (2, 1, vec![100, 101, 102]), (2, 1, vec![101, 102]), (0, 1, vec![])];
    assert_eq!(found, expected);
}

/// Nulls in a dictionary, to which valid keys refer, were written as empty strings.
#[test]
fn nulls_in_a_dictionary_are_nulls() {
    let values = Arc::new(StringArray::from(vec![Some("a"), None]));
    let array: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::new(Int32Array::from(vec![0, 1, 0]), values));
    let column = |kind, column_type| ColumnWriter::new(kind, options(column_type, 64));
    let text = |column| FieldWriter {
        path: "text".to_owned(),
        kind: Kind::String,
        column,
        others: Vec::new(),
        children: Vec::new(),
    };
    let mut columns =
        [column(ColumnKind::Indexes, ColumnType::Index64), column(ColumnKind::Fixed(1), ColumnType::Char)];
    let error = text(0).stage(&array, &mut columns).unwrap_err();
    assert!(error.to_string().contains("1 nulls in a field that is not optional"), "{error}");

    let field = Field::new("_0", "std::string", Kind::String);
    let kind = Kind::Optional(Box::new(field));
    let optional =
        FieldWriter { path: "text".to_owned(), kind, column: 0, others: Vec::new(), children: vec![text(1)] };
    let mut columns = [
        column(ColumnKind::Indexes, ColumnType::Index64),
        column(ColumnKind::Indexes, ColumnType::Index64),
        column(ColumnKind::Fixed(1), ColumnType::Char),
    ];
    optional.stage(&array, &mut columns).unwrap();
    let pages: Vec<_> = columns
        .map(|mut column| {
            column.append_staged().unwrap();
            pages(column)
        })
        .into();
    let ends = |ends: [u64; 3]| ends.iter().flat_map(|end| end.to_le_bytes()).collect::<Vec<u8>>();
    assert_eq!(pages[0], [(3, ends([1, 1, 2]))]);
    assert_eq!(pages[2], [(2, b"aa".to_vec())]);
}
