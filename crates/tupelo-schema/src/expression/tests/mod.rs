use std::sync::Arc;

use arrow_array::builder::{Float32Builder, Int32Builder, LargeListBuilder};
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, Float32Array, Float64Array, Int32Array, Int64Array,
    LargeBinaryArray, LargeListArray, LargeStringArray, RecordBatch, StructArray, UInt32Array, UInt64Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_cast::display::array_value_to_string;
use arrow_schema::{DataType, Field, Schema, UnionMode};
use arrow_select::concat::concat_batches;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::{BLOCK_ENTRIES, Expression};

mod chains;
mod functions;

fn list<T: Copy>(lists: &[&[T]], items: impl Fn(Vec<T>) -> ArrayRef) -> ArrayRef {
    let offsets = OffsetBuffer::from_lengths(lists.iter().map(|list| list.len()));
    let items = items(lists.concat());
    let field = Field::new("item", items.data_type().clone(), false);
    Arc::new(LargeListArray::new(Arc::new(field), offsets, items, None))
}

/// Four events: muons, jets with constituents, numbers of every kind, and a string.
fn events() -> RecordBatch {
    let pt: ArrayRef = list(&[&[30.0, 20.0], &[], &[50.0], &[5.0, 45.0, 10.0]], |v| Arc::new(Float32Array::from(v)));
    let eta = list(&[&[0.5, -2.5], &[], &[1.0], &[2.0, -1.0, 3.0]], |v| Arc::new(Float32Array::from(v)));
    let charge = list(&[&[1, -1], &[], &[1], &[1, 1, -1]], |v| Arc::new(Int32Array::from(v)));
    let inner = list(&[&[1.0, 2.0], &[3.0], &[], &[4.0], &[5.0, 6.0]], |v| Arc::new(Float64Array::from(v)));
    let jets = StructArray::from(vec![(Arc::new(Field::new("parts", inner.data_type().clone(), false)), inner)]);
    let item = Arc::new(Field::new("item", jets.data_type().clone(), false));
    let jets =
        LargeListArray::new(item, OffsetBuffer::new(ScalarBuffer::from(vec![0, 2, 2, 3, 5])), Arc::new(jets), None);
    let item = Arc::new(Field::new("item", DataType::Int32, false));
    let pair = FixedSizeListArray::new(item, 2, Arc::new(Int32Array::from_iter_values(0..8)), None);
    let columns: [(&str, ArrayRef); 11] = [
        ("pt", pt),
        ("eta", eta),
        ("charge", charge),
        ("jets", Arc::new(jets)),
        ("pair", Arc::new(pair)),
        ("met", Arc::new(Float64Array::from(vec![10.0, f64::NAN, 30.0, 40.0]))),
        ("run", Arc::new(UInt32Array::from(vec![1, 2, 3, 3]))),
        ("big", Arc::new(UInt64Array::from(vec![0, 1, u64::MAX, 1 << 63]))),
        ("good", Arc::new(BooleanArray::from(vec![true, false, true, true]))),
        ("name", Arc::new(LargeStringArray::from(vec!["a", "b", "c", "it's"]))),
        ("maybe", Arc::new(Int32Array::from(vec![Some(1), None, Some(3), None]))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn evaluate(text: &str) -> ArrayRef {
    text.parse::<Expression>().and_then(|e| e.evaluate(&events())).unwrap_or_else(|e| panic!("{e}"))
}

/// The values, as text.
fn shown(text: &str) -> String {
    let array = evaluate(text);
    let shown = |index| match array.is_null(index) {
        true => "-".to_owned(),
        false => array_value_to_string(&array, index).unwrap(),
    };
    (0..array.len()).map(shown).collect::<Vec<_>>().join(" ")
}

fn error(text: &str) -> String {
    let message = text.parse::<Expression>().and_then(|e| e.evaluate(&events())).map(|_| ()).unwrap_err().to_string();
    message.strip_prefix(&format!("expression '{text}': ")).unwrap_or(&message).to_owned()
}

#[test]
fn operators_bind_as_in_python() {
    for (text, value) in [
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("-2 ** 2", "-4"),
        ("2 ** -1", "0.5"),
        ("2 ** 3 ** 2", "512"),
        ("2 ** 2 * 3", "12"),
        ("7 // 2 - -7 // 2", "7"),
        ("-7 % 3", "2"),
        ("7 % -3", "-2"),
        ("-7.5 % 2", "0.5"),
        ("7 / 2", "3.5"),
        ("10 - 4 - 3", "3"),
        ("1 < 2 < 3", "true"),
        ("1 < 3 < 2", "false"),
        ("3 > 2 > 1 == 1", "true"),
        ("not 1 == 2", "true"),
        ("not True or True", "true"),
        ("True or False and False", "true"),
        ("!false && true || false", "true"),
        ("5 & 6 | 8", "12"),
        ("xor(8, 12)", "4"),
        ("True ^ True | False", "false"),
        ("~5", "-6"),
        ("0x10 + 1_000", "1016"),
        ("1e3 + .5", "1000.5"),
        ("+1 - +1", "0"),
        ("'a' < 'b'", "true"),
        ("abs(-3)", "3"),
        ("min(2, 3.5)", "2.0"),
        ("maximum(2, 3)", "3"),
        ("where(1 > 2, 1, 2)", "2"),
    ] {
        assert_eq!(shown(text), [value; 4].join(" "), "{text}");
    }
}

#[test]
fn items_are_computed_one_by_one_and_single_values_are_broadcast() {
    for (text, value) in [
        ("pt * 2", "[60.0, 40.0] [] [100.0] [10.0, 90.0, 20.0]"),
        ("pt > run * 10", "[true, true] [] [true] [false, true, false]"),
        ("pt[abs(eta) < 2.4]", "[30.0] [] [50.0] [5.0, 45.0]"),
        ("sum(pt[abs(eta) < 2.4 and charge > 0])", "30.0 0.0 50.0 50.0"),
        ("len(pt)", "2 0 1 3"),
        ("pt[0]", "30.0 - 50.0 5.0"),
        ("pt[-1]", "20.0 - 50.0 10.0"),
        ("pt[1] > 10", "true - - true"),
        ("pt[argmax(pt)]", "30.0 - 50.0 45.0"),
        ("argmin(pt)", "1 - 0 0"),
        ("max(pt) - min(pt)", "10.0 - 0.0 40.0"),
        ("mean(charge)", "0.0 - 1.0 0.3333333333333333"),
        ("prod(charge)", "-1 1 1 -1"),
        ("any(pt > 40)", "false false true true"),
        ("all(pt > 4)", "true true true true"),
        ("count(pt)", "2 0 1 3"),
        ("jets.parts", "[[1.0, 2.0], [3.0]] [] [[]] [[4.0], [5.0, 6.0]]"),
        ("jets.parts * run", "[[1.0, 2.0], [3.0]] [] [[]] [[12.0], [15.0, 18.0]]"),
        ("sum(jets.parts)", "[3.0, 3.0] [] [0.0] [4.0, 11.0]"),
        ("jets.parts + sum(jets.parts)", "[[4.0, 5.0], [6.0]] [] [[]] [[8.0], [16.0, 17.0]]"),
        ("sum(sum(jets.parts))", "6.0 0.0 0.0 15.0"),
        ("len(jets.parts)", "2 0 1 2"),
        ("count(jets.parts)", "[2, 1] [] [0] [1, 2]"),
        ("jets[0].parts", "[1.0, 2.0] - [] [4.0]"),
        ("jets[count(jets.parts) > 1].parts", "[[1.0, 2.0]] [] [] [[5.0, 6.0]]"),
        ("jets.parts[jets.parts > 2]", "[[], [3.0]] [] [[]] [[4.0], [5.0, 6.0]]"),
        ("pair[1] - pair[0]", "1 1 1 1"),
        ("sum(pair)", "1 5 9 13"),
        ("where(good, run, -1)", "1 -1 3 3"),
        ("where(good, run > 2, not good)", "false true true true"),
        ("where(pt > 25, pt, 0)", "[30.0, 0.0] [] [50.0] [0.0, 45.0, 0.0]"),
        ("hypot(pt, 0)", "[30.0, 20.0] [] [50.0] [5.0, 45.0, 10.0]"),
        ("name == 'c'", "false false true false"),
        ("name == \"it's\" or name < 'b'", "true false false true"),
    ] {
        assert_eq!(shown(text), value, "{text}");
    }
}

#[test]
fn types_are_those_of_numpy_but_integers_have_64_bits() {
    for (text, wanted) in [
        ("pt[0] * 2.5", DataType::Float32),
        ("pt[0] + eta[0]", DataType::Float32),
        ("sqrt(pt[0])", DataType::Float32),
        ("sum(pt)", DataType::Float32),
        ("pt[0] * run", DataType::Float64),
        ("pt[0] * met", DataType::Float64),
        ("run + 1", DataType::Int64),
        ("run + 1.0", DataType::Float64),
        ("run / 2", DataType::Float64),
        ("run // 2", DataType::Int64),
        ("run ** 2", DataType::Int64),
        ("run ** 0.5", DataType::Float64),
        ("good + good", DataType::Int64),
        ("floor(run)", DataType::UInt32),
        ("floor(met)", DataType::Float64),
        ("name", DataType::LargeUtf8),
    ] {
        assert_eq!(evaluate(text).data_type(), &wanted, "{text}");
    }
    // An unsigned number minus a larger one is less than zero.
    assert_eq!(shown("run - 2"), "-1 0 1 1");
    assert_eq!(shown("run - 2 < 0"), "true false false false");
}

#[test]
fn nan_compares_with_nothing_and_nulls_are_not_kept() {
    assert_eq!(shown("met > 5"), "true false true true");
    assert_eq!(shown("met != met"), "false true false false");
    assert_eq!(shown("isnan(met) or !isfinite(met)"), "false true false false");
    assert_eq!(shown("maximum(met, 0)"), "10.0 NaN 30.0 40.0");
    assert_eq!(shown("maybe + 1"), "2 - 4 -");
    assert_eq!(shown("is_missing(maybe)"), "false true false true");
    // What is known decides.
    assert_eq!(shown("maybe > 0 or good"), "true - true true");
    assert_eq!(shown("maybe > 0 and good"), "true false true -");
    assert_eq!(shown("-maybe"), "-1 - -3 -");
    let mask = "maybe > 0".parse::<Expression>().unwrap().mask(&events()).unwrap();
    assert_eq!(mask, BooleanArray::from(vec![Some(true), None, Some(true), None]));
    // Missing items do not count.
    let mut numbers = LargeListBuilder::new(Int32Builder::new());
    for list in [vec![Some(1), None, Some(3)], vec![None], vec![]] {
        numbers.append_value(list);
    }
    let mut reals = LargeListBuilder::new(Float32Builder::new());
    for list in [vec![Some(1.0), None, Some(f32::NAN)], vec![None], vec![]] {
        reals.append_value(list);
    }
    let numbers: ArrayRef = Arc::new(numbers.finish());
    let batch = RecordBatch::try_from_iter([("n", numbers), ("x", Arc::new(reals.finish()))]).unwrap();
    let all = |text: &str| {
        let array = text.parse::<Expression>().unwrap().evaluate(&batch).unwrap();
        let shown = |at| array_value_to_string(&array, at).unwrap();
        (0..3).map(shown).collect::<Vec<_>>().join(" ")
    };
    assert_eq!([all("sum(n)"), all("count(n)"), all("max(n)"), all("mean(n)")], ["4 0 0", "2 0 0", "3  ", "2.0  "]);
    assert_eq!([all("any(n > 2)"), all("all(n > 0)")], ["true false false", "true true true"]);
    assert_eq!([all("max(x)"), all("sum(x)")], ["NaN  ", "NaN 0.0 0.0"]);
    assert_eq!(all("n[n > 1]"), "[3] [] []");
}

#[test]
fn syntax_errors_give_the_position() {
    for (text, wanted) in [
        ("", "expected a value at the end"),
        ("pt >", "expected a value at the end"),
        ("pt > > 2", "expected a value before '>' at character 6"),
        ("pt = 2", "'=' is not an operator; use '==' to compare at character 4"),
        ("pt 2", "unexpected '2' at character 4"),
        ("(pt", "expected ')' at the end"),
        ("pt[1", "expected ']' at the end"),
        ("sum(pt eta)", "expected ',' at character 8"),
        ("pt.", "expected the name of a member at the end"),
        ("µ + 'x", "unterminated string at character 5"),
        ("pt ? 1", "unexpected '?' at character 4"),
        ("1.5.2", "unexpected '.2' at character 4"),
        ("12ab", "'12ab' is not a number at character 1"),
        ("99999999999999999999", "99999999999999999999 does not fit in a 64-bit integer at character 1"),
        ("0x10000000000000000", "'0x10000000000000000' is not a number at character 1"),
        ("and 1", "expected a value before 'and' at character 1"),
    ] {
        assert_eq!(error(text), wanted, "{text}");
    }
    let deep = format!("{}1{}", "(".repeat(10_000), ")".repeat(10_000));
    assert!(error(&deep).contains("nested more than 128 deep"));
    assert!(error(&"-".repeat(10_000)).contains("nested more than 128 deep"));
}

#[test]
fn type_errors_name_the_types() {
    for (text, wanted) in [
        ("met + name", "+ takes numbers, not a string"),
        ("1 < name", "a comparison takes numbers, not a string"),
        ("run > 1 & met", "'1 & met': & takes booleans, not an integer; put comparisons beside & and | in parentheses"),
        ("met and good", "and takes booleans, not a real number; compare it with a number"),
        ("pt + pair", "lists have different lengths, first 0 and 2"),
        ("sum(met)", "sum() takes a collection, not a real number for each entry"),
        ("len(1)", "len() takes a collection, not an integer for each entry"),
        ("met[0]", "a real number for each entry cannot be indexed"),
        ("pt[1.5]", "an index must be an integer or a list of booleans"),
        ("pt[good]", "a mask must be a list of booleans, one for each item; use a cut to select entries"),
        ("pt[pair > 1]", "a mask must have one boolean for each item of a list"),
        ("pt.x", "field 'pt.x': a real number has no member 'x'"),
        ("jets.part", "field 'jets.part': no member named 'part' (available: 'parts')"),
        ("sqrt(met, met)", "sqrt() takes one value, found 2"),
        ("where(good)", "where() takes a boolean and two values, found 1"),
        ("~met", "~ takes booleans and integers, not a real number"),
        ("7 // 0", "integer // by 0 is undefined"),
        ("run + 7 % 0", "'7 % 0': integer % by 0 is undefined"),
        ("run * 9223372036854775807", "2 * 9223372036854775807 is not a 64-bit integer"),
        ("jets + 1", "+ takes numbers, not a record of parts"),
    ] {
        assert_eq!(error(text), wanted, "{text}");
    }
    let starts = |text: &str, wanted: &str| assert!(error(text).starts_with(wanted), "{}", error(text));
    starts("runs", "no field named 'runs' (nearest of 11: 'run', ");
    starts("sqr(met)", "no function named 'sqr' (nearest of ");
    assert!(error("big + 1").contains("18446744073709551615"), "{}", error("big + 1"));
    let cut = |text: &str| text.parse::<Expression>().unwrap().mask(&events()).unwrap_err().to_string();
    assert_eq!(
        cut("pt > 5"),
        "expression 'pt > 5': a cut must be one boolean for each entry, not a list of booleans; reduce the list by \
         any() or all()"
    );
}

#[test]
fn quoted_names_and_slices() {
    let batch = events();
    let weird =
        RecordBatch::try_from_iter([("Aux:pt", batch.column(0).slice(1, 3)), ("a b", batch.column(5).slice(1, 3))]);
    let weird = weird.unwrap();
    let text = "sum(`Aux:pt`) + where(isnan(`a b`), 0, `a b`)";
    let expression: Expression = text.parse().unwrap();
    assert_eq!(expression.fields().collect::<Vec<_>>(), ["Aux:pt", "a b"]);
    assert_eq!(expression.to_string(), text);
    let values = expression.evaluate(&weird).unwrap();
    assert_eq!(values.as_any().downcast_ref::<Float64Array>().unwrap().values(), &[0.0, 80.0, 100.0]);
}

proptest! {
    /// Anything is an expression or an error, and so is what it gives.
    #[test]
    fn no_text_makes_it_panic(text in "[a-z0-9 .,()\\[\\]'`+*/%<>=!&|^~-]{0,24}", any in "\\PC{0,12}") {
        for text in [text, any] {
            if let Ok(expression) = text.parse::<Expression>() {
                let _ = expression.evaluate(&events());
            }
        }
    }

    #[test]
    fn known_words_in_any_order(words in vec(select(WORDS.to_vec()), 1..9)) {
        if let Ok(expression) = words.concat().parse::<Expression>()
            && let Ok(values) = expression.evaluate(&events())
        {
            prop_assert_eq!(values.len(), 4);
        }
    }
}

const WORDS: [&str; 31] = [
    ":",
    " in [1, 2]",
    " not in (",
    "np.",
    "axis=-1",
    "pt",
    "eta",
    "charge",
    "jets.parts",
    "pair",
    "met",
    "run",
    "big",
    "good",
    "name",
    "maybe",
    "1",
    "2.5",
    "(",
    ")",
    "[",
    "]",
    "+",
    "//",
    "%",
    " and ",
    "==",
    "sum(",
    "max(",
    "-",
    ",",
];

/// Whether the items of a list were optional hung on the values of a batch: pieces of one ntuple had several types.
#[test]
fn the_type_does_not_hang_on_the_values() {
    for text in [
        "pt[0]",
        "max(pt)",
        "pt * 2",
        "maybe + 1",
        "is_missing(maybe)",
        "where(good, met, 0)",
        "pt[pt > 20]",
        "jets.parts * 2",
    ] {
        let expression: Expression = text.parse().unwrap();
        let events = events();
        let (field, all) = expression.column(&events).unwrap();
        assert_eq!(field.is_nullable(), ["pt[0]", "max(pt)", "maybe + 1"].contains(&text), "{text}");
        for entry in 0..events.num_rows() {
            let (one, array) = expression.column(&events.slice(entry, 1)).unwrap();
            assert_eq!((&one, array.as_ref()), (&field, all.slice(entry, 1).as_ref()), "{text}");
        }
        assert_eq!(expression.column(&events.slice(0, 0)).unwrap().0, field, "{text}");
    }
}

/// Many entries are computed block by block.
#[test]
fn blocks_make_no_difference() {
    let few = events();
    let numbers: Vec<usize> =
        (0..few.num_columns()).filter(|&column| few.schema().field(column).name() != "name").collect();
    let few = few.project(&numbers).unwrap();
    let many = BLOCK_ENTRIES / 2 + 3;
    let many = concat_batches(&few.schema(), std::iter::repeat_n(&few, many)).unwrap();
    for text in [
        "met",
        "met * run + 1",
        "pt[0]",
        "pt[eta > 0]",
        "jets.parts * 2",
        "pair + run",
        "maybe + 1",
        "1 + 1",
        "any(pt > 20) & good",
    ] {
        let expression: Expression = text.parse().unwrap();
        let (field, blocks) = expression.column(&many).unwrap();
        let (whole_field, whole) = expression.block(&many).unwrap();
        assert_eq!((field, blocks.as_ref()), (whole_field, whole.as_ref()), "{text}");
    }
    let few = missing();
    let copies = BLOCK_ENTRIES / 2 + 3;
    let many_missing = concat_batches(&few.schema(), std::iter::repeat_n(&few, copies)).unwrap();
    for text in ["ov + pt", "vo * 2", "ovv + vo", "sum(ov)", "a3 * 2", "o2 + b2", "vv[1]", "10 // n", "is_missing(ov)"]
    {
        let expression: Expression = text.parse().unwrap();
        let (field, blocks) = expression.column(&many_missing).unwrap();
        let (whole_field, whole) = expression.block(&many_missing).unwrap();
        assert_eq!((field, blocks.as_ref()), (whole_field, whole.as_ref()), "{text}");
    }
    let error = "pt + pair".parse::<Expression>().unwrap().evaluate(&many).unwrap_err();
    assert_eq!(error.to_string(), format!("expression 'pt + pair': {}", self::error("pt + pair")));
}

/// Strings that are not UTF-8 come as bytes, and could not be compared.
#[test]
fn texts_are_compared_whatever_their_bytes_are() {
    let names = LargeBinaryArray::from_vec(vec![b"a", b"\xff", b"b"]);
    let other = LargeStringArray::from(vec!["a", "b", "c"]);
    let columns: [(&str, ArrayRef); 2] = [("name", Arc::new(names)), ("other", Arc::new(other))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    for (text, wanted) in [
        ("name == 'a'", [true, false, false]),
        ("name > 'a'", [false, true, true]),
        ("name != other", [false, true, true]),
        ("other <= name", [true, true, false]),
    ] {
        let booleans = text.parse::<Expression>().and_then(|e| e.mask(&batch)).unwrap();
        assert_eq!(booleans, BooleanArray::from(wanted.to_vec()), "{text}");
    }
    let error = "name + 1".parse::<Expression>().unwrap().evaluate(&batch).unwrap_err().to_string();
    assert_eq!(error, "expression 'name + 1': + takes numbers, not a string");
}

/// `a > 1 & b < 3` was a chain of comparisons through `1 & b`, and kept the wrong entries.
#[test]
fn bits_between_comparisons_ask_for_parentheses() {
    for text in ["run > 1 & run < 3", "run == 1 | run == 3", "1 < (run) & run < 5", "1 < (run) & (run) < 5"] {
        let error = text.parse::<Expression>().unwrap_err().to_string();
        assert!(error.contains("binds more strongly than the comparisons"), "{error}");
    }
    assert_eq!(shown("(run > 1) & (run < 3)"), shown("run == 2"));
    assert_eq!(shown("run & 1 == 1"), shown("run != 2"));
    assert_eq!(shown("0 < (run & 3) < 3"), shown("run < 3"));
}

/// Comparisons of large unsigned integers were errors.
#[test]
fn large_unsigned_integers_compare() {
    assert_eq!(shown("big > 5"), shown("big >= 6"));
    let booleans = |text: &str| evaluate(text).as_boolean().iter().collect::<Vec<_>>();
    assert_eq!(booleans("big > 5"), [Some(false), Some(false), Some(true), Some(true)]);
    assert_eq!(booleans("big > run"), [Some(false), Some(false), Some(true), Some(true)]);
    assert_eq!(booleans("-1 < big"), [Some(true); 4]);
}

/// `1.0 // 0.1` was 10: quotients were rounded before they were made whole.
#[test]
fn quotients_of_reals_are_those_of_python() {
    let a = [1.0, 6.0, 0.7, -7.5, 7.5, -0.0, 1.0, -1.0, 0.0, 5.0, -5.0];
    let b = [0.1, 0.1, 0.1, 2.0, -2.0, 3.0, 0.0, 0.0, 0.0, f64::INFINITY, f64::INFINITY];
    let columns: [(&str, ArrayRef); 4] = [
        ("a", Arc::new(Float64Array::from(a.to_vec()))),
        ("b", Arc::new(Float64Array::from(b.to_vec()))),
        ("c", Arc::new(Float32Array::from(a.map(|x| x as f32).to_vec()))),
        ("d", Arc::new(Float32Array::from(b.map(|x| x as f32).to_vec()))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let all = |text: &str| {
        let array = text.parse::<Expression>().unwrap().evaluate(&batch).unwrap();
        (0..array.len()).map(|at| array_value_to_string(&array, at).unwrap()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(all("a // b"), "9.0 59.0 6.0 -4.0 -4.0 -0.0 inf -inf NaN 0.0 -1.0");
    assert_eq!(all("c // d"), "9.0 59.0 6.0 -4.0 -4.0 -0.0 inf -inf NaN 0.0 -1.0");
    assert_eq!(all("a % b").split(' ').skip(3).collect::<Vec<_>>().join(" "), "0.5 -0.5 0.0 NaN NaN NaN 5.0 inf");
    assert_eq!(all("abs(where(b == 0 or abs(a) == 5, a, (a // b) * b + a % b) - a) < 1e-12"), ["true"; 11].join(" "));
}

/// Integers from 2⁶³ on were not parsed as numbers, so large fields could not be compared.
#[test]
fn large_unsigned_integers_are_written_too() {
    let booleans = |text: &str| evaluate(text).as_boolean().iter().map(Option::unwrap).collect::<Vec<_>>();
    assert_eq!(booleans("big == 18446744073709551615"), [false, false, true, false]);
    assert_eq!(booleans("big == 0xFFFFFFFFFFFFFFFF"), [false, false, true, false]);
    assert_eq!(booleans("9_223_372_036_854_775_808 <= big"), [false, false, true, true]);
    assert_eq!(booleans("run < 0x8000000000000000"), [true; 4]);
    assert_eq!(booleans("met < 18446744073709551615"), [true, false, true, true]);
    assert_eq!(shown("-9223372036854775808 // 2"), ["-4611686018427387904"; 4].join(" "));
    let refused = "can only be compared: integers are computed with 64 bits including the sign";
    assert_eq!(error("run + 9223372036854775808"), format!("9223372036854775808 {refused}"));
    assert_eq!(error("big + 1"), format!("18446744073709551615 {refused}"));
    assert_eq!(shown("pt[18446744073709551615]"), "- - - -");
}

/// "unexpected ':'" did not say what to do.
#[test]
fn names_with_colons_ask_for_backticks() {
    for (text, name, at) in [
        ("AnalysisJetsAuxDyn:pt / 1000", "AnalysisJetsAuxDyn:pt", 1),
        ("sum(AnalysisJetsAuxDyn:pt)", "AnalysisJetsAuxDyn:pt", 5),
        ("pt[Aux:eta:x > 0]", "Aux:eta:x", 4),
    ] {
        let wanted = format!("names with ':' must be in backticks: write `{name}`, at character {at}");
        assert_eq!(error(text), wanted);
    }
    assert_eq!(error("pt[i:j]"), "the bounds of a slice must be integers, at character 4");
    assert_eq!(error("std::max(1, 2)"), "'std::max' is C++; write max, at character 1");
}

/// Messages had Arrow's type of it.
#[test]
fn variants_are_told_in_words() {
    let field = |name: &str, data_type| Arc::new(Field::new(name, data_type, true));
    let types = [
        (0, field("valueless", DataType::Null)),
        (1, field("0", DataType::Int32)),
        (2, field("1", DataType::new_large_list(DataType::Float32, false))),
    ];
    let variant = DataType::Union(types.into_iter().collect(), UnionMode::Dense);
    let told = "a variant of an integer, a list of real numbers";
    assert_eq!(super::value::describe(&variant), told);
}

/// `//` and `%` by zero were errors, also where a guard stood in front of them.
#[test]
fn guards_guard() {
    let n: ArrayRef = Arc::new(Int32Array::from(vec![0, 1, 3, 10, -4]));
    let maybe: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(0), Some(4), Some(-1)]));
    let lists = list(&[&[0, 2], &[], &[0], &[5], &[]], |v| Arc::new(Int32Array::from(v)));
    let low: ArrayRef = Arc::new(Int64Array::from(vec![i64::MIN; 5]));
    let optional = Field::new("maybe", DataType::Int32, true);
    let field = |name: &str, array: &ArrayRef| Field::new(name, array.data_type().clone(), false);
    let fields = [field("n", &n), optional, field("lists", &lists), field("low", &low)];
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), vec![n, maybe, lists, low]).unwrap();
    for (text, wanted, is_nullable) in [
        ("n > 0 and 10 // n > 2", "false true true false false", true),
        ("not n > 0 or 10 % n == 0", "true true false true true", true),
        ("where(n > 0, 10 // n, 0)", "0 10 3 1 0", true),
        ("10 // n", "- 10 3 1 -3", true),
        ("n % (n - 1)", "0 - 1 1 -4", true),
        ("10 // maybe", "10 - - 2 -10", true),
        ("n // 0", "- - - - -", true),
        ("n // 2", "0 0 1 5 -2", false),
        ("10.0 // n", "inf 10.0 3.0 1.0 -3.0", false),
        ("10 // lists", "[, 5] [] [] [2] []", false),
        ("sum(10 // lists)", "5 0 0 2 0", false),
        ("low % -1", "0 0 0 0 0", false),
    ] {
        let expression: Expression = text.parse().unwrap();
        let (field, array) = expression.column(&batch).unwrap();
        let shown = |at| if array.is_null(at) { "-".to_owned() } else { array_value_to_string(&array, at).unwrap() };
        assert_eq!((0..5).map(shown).collect::<Vec<_>>().join(" "), wanted, "{text}");
        assert_eq!(field.is_nullable(), is_nullable, "{text}");
        for entry in 0..5 {
            assert_eq!(expression.column(&batch.slice(entry, 1)).unwrap().0, field, "{text}");
        }
    }
    let kept = "10 // n < 99".parse::<Expression>().unwrap().mask(&batch).unwrap();
    assert_eq!(kept.iter().collect::<Vec<_>>(), [None, Some(true), Some(true), Some(true), Some(true)]);
    let error = "low // -1".parse::<Expression>().unwrap().evaluate(&batch).unwrap_err().to_string();
    assert!(error.ends_with("is not a 64-bit integer"), "{error}");
}

/// Four entries with lists, items and records that may be missing, and arrays of a fixed length.
fn missing() -> RecordBatch {
    // What is missing holds something too: it must not be seen.
    fn lists(lengths: &[usize], items: ArrayRef, nulls: Option<Vec<bool>>, items_may_miss: bool) -> ArrayRef {
        let field = Arc::new(Field::new("item", items.data_type().clone(), items_may_miss));
        let offsets = OffsetBuffer::from_lengths(lengths.iter().copied());
        Arc::new(LargeListArray::new(field, offsets, items, nulls.map(NullBuffer::from)))
    }
    fn fixed(len: i32, items: ArrayRef, nulls: Option<Vec<bool>>) -> ArrayRef {
        let field = Arc::new(Field::new("item", items.data_type().clone(), false));
        Arc::new(FixedSizeListArray::new(field, len, items, nulls.map(NullBuffer::from)))
    }
    fn record(member: ArrayRef, nulls: Vec<bool>) -> ArrayRef {
        let fields = vec![Field::new("x", member.data_type().clone(), false)];
        Arc::new(StructArray::new(fields.into(), vec![member], Some(nulls.into())))
    }
    let reals = |values: &[f64]| -> ArrayRef { Arc::new(Float64Array::from(values.to_vec())) };
    let integers = |values: &[i32]| -> ArrayRef { Arc::new(Int32Array::from(values.to_vec())) };
    let first = Some(vec![false, true, true, true]);
    let last = Some(vec![true, true, true, false]);
    let oi: ArrayRef = Arc::new(Int32Array::from(vec![None, Some(1), None, Some(3)]));
    let pt = lists(&[2, 2, 0, 1], integers(&[1, 2, 3, 4, 5]), None, false);
    let inner = lists(&[1, 2, 1, 0, 1], integers(&[1, 2, 3, 4, 5]), None, false);
    let inner_missing =
        lists(&[1, 2, 1, 0, 1], integers(&[1, 2, 3, 4, 5]), Some(vec![true, false, true, true, true]), false);
    let jets = record(Arc::clone(&inner), vec![true, true, false, true, true]);
    let columns = [
        ("n", false, integers(&[0, 1, 2, 3])),
        ("pt", false, Arc::clone(&pt)),
        ("ov", true, lists(&[1, 2, 0, 1], reals(&[9.0, 1.0, 2.0, 3.0]), first.clone(), false)),
        ("ow", true, lists(&[2, 2, 0, 0], integers(&[7, 8, 1, 2]), last.clone(), false)),
        ("oi", false, lists(&[1, 2, 0, 1], oi, None, true)),
        ("vv", false, lists(&[2, 0, 1, 2], Arc::clone(&inner), None, false)),
        ("vo", false, lists(&[2, 0, 1, 2], inner_missing, None, true)),
        ("ovv", true, lists(&[2, 0, 1, 2], inner, first.clone(), false)),
        ("rec", true, record(pt, vec![true, false, true, true])),
        ("jets", false, lists(&[2, 0, 1, 2], jets, None, true)),
        ("a3", false, fixed(3, integers(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]), None)),
        ("b2", false, fixed(2, integers(&[1, 2, 3, 4, 5, 6, 7, 8]), None)),
        ("o2", true, fixed(2, integers(&[1, 2, 3, 4, 5, 6, 7, 8]), first)),
    ];
    let (fields, arrays): (Vec<_>, Vec<_>) = columns
        .into_iter()
        .map(|(name, is_optional, array)| (Field::new(name, array.data_type().clone(), is_optional), array))
        .unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

/// Lists that were missing were empty: `len(ov) == 0` and `not any(ov > 1)` kept them.
#[test]
fn missing_lists_stay_missing() {
    let batch = missing();
    for (text, wanted, is_nullable) in [
        ("ov", "- [1.0, 2.0] [] [3.0]", true),
        ("ov + 1", "- [2.0, 3.0] [] [4.0]", true),
        ("-ov", "- [-1.0, -2.0] [] [-3.0]", true),
        ("sqrt(ov * ov)", "- [1.0, 2.0] [] [3.0]", true),
        ("len(ov)", "- 2 0 1", true),
        ("sum(ov)", "- 3.0 0.0 3.0", true),
        ("max(ov)", "- 2.0 - 3.0", true),
        ("count(ov)", "- 2 0 1", true),
        ("any(ov > 1)", "- true false true", true),
        ("all(ov > 1)", "- false true true", true),
        ("not any(ov > 1)", "- false true false", true),
        ("len(ov) == 0", "- false true false", true),
        ("is_missing(ov)", "true false false false", false),
        ("is_missing(ov + n)", "true false false false", false),
        ("is_missing(oi)", "[true] [false, true] [] [false]", false),
        ("is_missing(pt)", "[false, false] [false, false] [] [false]", false),
        ("is_missing(n)", "false false false false", false),
        ("is_missing(sum(ov))", "true false false false", false),
        ("is_missing(ov) or any(ov > 1)", "true true false true", true),
        ("where(pt > 3, pt, ov)", "- [1.0, 4.0] [] [5.0]", true),
        ("where(is_missing(ov), -1, sum(ov))", "-1.0 3.0 0.0 3.0", true),
        ("ov[0]", "- 1.0 - 3.0", true),
        ("ov[ov > 1]", "- [2.0] [] [3.0]", true),
        ("ov[n]", "- 2.0 - -", true),
        ("n + ov", "- [2.0, 3.0] [] [6.0]", true),
        // A list and a null list do not count as lists of different lengths.
        ("ov + pt", "- [4.0, 6.0] [] [8.0]", true),
        ("pt * ow", "[7, 16] [3, 8] [] -", true),
        ("ov + ow", "- [2.0, 4.0] [] -", true),
        ("pt[ov > 1]", "- [4] [] [5]", true),
        ("ow[pt > 1]", "[8] [1, 2] [] -", true),
        ("vv[5]", "- - - -", true),
        ("vv[1]", "[2, 3] - - [5]", true),
        ("is_missing(vv[1])", "false true true false", false),
        ("len(vv[1])", "2 - - 1", true),
        ("vo", "[[1], ] [] [[4]] [[], [5]]", false),
        ("vo * 2", "[[2], ] [] [[8]] [[], [10]]", false),
        ("vo + vv", "[[2], ] [] [[8]] [[], [10]]", false),
        ("vv[vo > 1]", "[[], ] [] [[4]] [[], [5]]", false),
        ("sum(vo)", "[1, ] [] [4] [0, 5]", false),
        ("sum(sum(vo))", "1 0 4 5", false),
        ("is_missing(vo)", "[false, true] [] [false] [false, false]", false),
        ("vo[1]", "- - - [5]", true),
        ("ovv + 1", "- [] [[5]] [[], [6]]", true),
        ("ovv + vo", "- [] [[8]] [[], [10]]", true),
        ("ovv * sum(vv)", "- [] [[16]] [[], [25]]", true),
        ("len(ovv)", "- 0 1 2", true),
        ("count(ovv)", "- [] [1] [0, 1]", true),
        ("rec.x", "[1, 2] - [] [5]", true),
        ("sum(rec.x)", "3 - 0 5", true),
        ("rec.x + pt", "[2, 4] - [] [10]", true),
        ("jets.x", "[[1], [2, 3]] [] [] [[], [5]]", false),
        ("count(jets.x)", "[1, 2] [] [] [0, 1]", false),
        ("o2 + 1", "- [4, 5] [6, 7] [8, 9]", true),
        ("o2 + b2", "- [6, 8] [10, 12] [14, 16]", true),
        ("sum(o2)", "- 7 11 15", true),
    ] {
        let expression: Expression = text.parse().unwrap();
        let (field, array) = expression.column(&batch).unwrap_or_else(|e| panic!("{e}"));
        let shown = |at| if array.is_null(at) { "-".to_owned() } else { array_value_to_string(&array, at).unwrap() };
        let shown = (0..4).map(shown).collect::<Vec<_>>().join(" ");
        assert_eq!(shown, wanted, "{text}");
        assert_eq!(field.is_nullable(), is_nullable, "{text}");
        for (from, len) in [(0, 1), (1, 1), (2, 1), (3, 1), (1, 2), (0, 0)] {
            let (one, some) = expression.column(&batch.slice(from, len)).unwrap();
            assert_eq!((&one, some.as_ref()), (&field, array.slice(from, len).as_ref()), "{text}");
        }
    }
    let kept = "len(ov) == 0".parse::<Expression>().unwrap().mask(&batch).unwrap();
    assert_eq!(kept.iter().collect::<Vec<_>>(), [None, Some(false), Some(true), Some(false)]);
    let error = "ov + a3".parse::<Expression>().unwrap().evaluate(&batch).unwrap_err().to_string();
    assert_eq!(error, "expression 'ov + a3': lists have different lengths, first 2 and 3");
}

/// `a3 * 2` was a list of any length.
#[test]
fn arrays_of_a_fixed_length_keep_it() {
    let batch = missing();
    let fixed_len = |text: &str| match text.parse::<Expression>().unwrap().evaluate(&batch).unwrap().data_type() {
        DataType::FixedSizeList(_, len) => Some(*len),
        _ => None,
    };
    for text in ["a3", "a3 * 2", "a3 + a3 / n", "a3 > 2", "where(n > 1, a3, 0)", "sqrt(-a3)"] {
        assert_eq!(fixed_len(text), Some(3), "{text}");
    }
    for text in ["a3[a3 > 2]", "b2 + o2", "o2 + 1", "a3[a3 > 0] + a3"] {
        assert_eq!(fixed_len(text), None, "{text}");
    }
}

const MISSING_WORDS: [&str; 29] = [
    "n",
    "pt",
    "ov",
    "ow",
    "oi",
    "vv",
    "vo",
    "ovv",
    "rec.x",
    "jets.x",
    "a3",
    "b2",
    "o2",
    "1",
    "(",
    ")",
    "[",
    "]",
    "+",
    "//",
    ">",
    "sum(",
    "len(",
    "count(",
    "any(",
    "is_missing(",
    "where(",
    ",",
    "-",
];

proptest! {
    /// What is computed at once is what is computed one by one, and of the same type.
    #[test]
    fn entries_do_not_hang_on_each_other(words in vec(select(MISSING_WORDS.to_vec()), 1..8)) {
        let batch = missing();
        if let Ok(expression) = words.concat().parse::<Expression>()
            && let Ok((field, all)) = expression.column(&batch)
        {
            for entry in 0..4 {
                let (one, array) = expression.column(&batch.slice(entry, 1)).unwrap();
                let slice = all.slice(entry, 1);
                prop_assert_eq!((&one, array.as_ref()), (&field, slice.as_ref()));
            }
        }
    }
}
