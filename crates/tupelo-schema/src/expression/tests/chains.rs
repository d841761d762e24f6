//! Long chains, deep nesting and long lists.

use super::*;

/// The value of all entries, which have `run` from 0 to 3.
fn runs(text: &str) -> Vec<bool> {
    let run: ArrayRef = Arc::new(UInt32Array::from(vec![0, 1, 2, 3]));
    let event: ArrayRef = Arc::new(Int64Array::from(vec![10, 11, 12, 13]));
    let batch = RecordBatch::try_from_iter([("run", run), ("event", event)]).unwrap();
    let values = text.parse::<Expression>().and_then(|e| e.evaluate(&batch)).unwrap_or_else(|e| panic!("{e}"));
    values.as_boolean().iter().map(Option::unwrap).collect()
}

/// 3000 terms joined by `or` overflowed the stack.
#[test]
fn long_chains_need_no_stack() {
    // A stack that a recursion over the chain would not fit in.
    let work = || {
        const TERMS: usize = 100_000;
        let chain = |term: &str, operator: &str| vec![term; TERMS].join(operator);
        assert_eq!(runs(&chain("run == 2", " or ")), [false, false, true, false]);
        assert_eq!(runs(&chain("(run == 2)", " | ")), [false, false, true, false]);
        assert_eq!(runs(&chain("run < 3", " and ")), [true, true, true, false]);
        assert_eq!(runs(&chain("(run < 3)", " & ")), [true, true, true, false]);
        assert_eq!(runs(&format!("{} == {}", chain("run", " + "), 3 * TERMS)), [false, false, false, true]);
        assert_eq!(runs(&format!("{} * run == 2", chain("1", " * "))), [false, false, true, false]);
        assert_eq!(runs(&chain("run", " <= ")), [true; 4]);
        let expression: Expression = chain("run == 2", " or ").parse().unwrap();
        assert!(format!("{:?}", expression.clone()).len() > TERMS);
        assert_eq!(expression.fields().collect::<Vec<_>>(), ["run"]);
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(work).unwrap().join().unwrap();
}

/// Each comparison of a chain was computed again for the next, so that nested chains took twice as long a level.
#[test]
fn values_of_nested_chains_are_computed_once() {
    let mut text = "1".to_owned();
    for _ in 0..40 {
        text = format!("0 <= ({text}) * 1 <= 1");
    }
    let steps = text.parse::<Expression>().unwrap().steps.len();
    assert!(steps < 500, "{steps}");
    assert_eq!(shown("0 < run < 3 > 1 != 2"), "true true false false");
    assert_eq!(shown("not 0 < run <= 2 or met > 35 > 20"), "false false true true");
}

#[test]
fn real_nesting_has_a_limit() {
    for (open, close) in [("(", ")"), ("abs(", ")"), ("-", ""), ("not ", ""), ("where(good, ", ", 1)"), ("pt[", "]")] {
        let nested = |depth| format!("{}run{}", open.repeat(depth), close.repeat(depth));
        assert!(nested(60).parse::<Expression>().is_ok(), "{open}");
        let deep = error(&nested(10_000));
        assert!(deep.contains("nested more than 128 deep"), "{deep}");
        assert!(deep.len() < 500, "the message has the whole text");
    }
    assert!(error(&vec!["2"; 10_000].join(" ** ")).contains("nested more than 128 deep"));
}

/// There was no `in`: lists of events were thousands of comparisons.
#[test]
fn in_finds_literals() {
    for (text, wanted) in [
        ("run in [1, 3]", "true false true true"),
        ("run not in [1, 3]", "false true false false"),
        ("not run in (1, 3,)", "false true false false"),
        ("run in []", "false false false false"),
        ("run in [2.0, 2.5]", "false true false false"),
        ("met in [10, 30.0]", "true false true false"),
        ("met not in [10, 30.0]", "false true false true"),
        ("big in [18446744073709551615, 0x8000000000000000]", "false false true true"),
        ("charge in [-1]", "[false, true] [] [false] [false, false, true]"),
        ("pt in [20, +45]", "[false, true] [] [false] [false, true, false]"),
        ("sum(charge) in [1, 0] and good", "true false true true"),
        ("name in ['a', \"it's\"]", "true false false true"),
        ("good in [True]", "true false true true"),
        ("maybe in [1, 2]", "true - false -"),
        ("maybe not in [1, 2]", "false - true -"),
        ("1 in [1, 2]", "true true true true"),
        ("run + 1 in [2] or run in [2]", "true true false false"),
        ("(run, name) in [(1, 'a'), (3, 'b'), (3, 'c')]", "true false true false"),
        ("(run, name) not in [(1, 'a'), (3, 'b'), (3, 'c')]", "false true false true"),
        ("(run, charge) in [[1, -1], [3, 1]]", "[false, true] [] [true] [true, true, false]"),
        ("(run, run, met) in [(1, 1, 10), (2, 1, 10)]", "true false false false"),
        ("where((run, 1) in [(1, 1)], 5, 6)", "5 6 6 6"),
    ] {
        assert_eq!(shown(text), wanted, "{text}");
    }
    // A value of single precision is compared with literals of single precision, as with ==.
    let tenth: ArrayRef = Arc::new(Float32Array::from(vec![0.1, -0.0, f32::NAN]));
    let batch = RecordBatch::try_from_iter([("x", tenth)]).unwrap();
    let values = "x in [0.1, 0]".parse::<Expression>().unwrap().evaluate(&batch).unwrap();
    assert_eq!(values.as_boolean().iter().collect::<Vec<_>>(), [Some(true), Some(true), Some(false)]);
}

#[test]
fn in_names_the_expected_type() {
    for (text, wanted) in [
        ("run in", "expected a list of literals such as [1, 2, 3] after 'in' at the end"),
        ("run in pt", "expected a list of literals such as [1, 2, 3] after 'in' at character 8"),
        ("run in [pt]", "expected a literal (a number, string or boolean) after 'in' at character 9"),
        ("run in [1", "expected ']' at the end"),
        ("run in [1, 'a']", "the list after 'in' contains both strings and numbers; it ends at character 15"),
        ("name in [1]", "'in' expects numbers for this list, not a string"),
        ("run in ['a']", "'in' expects strings for this list, not an integer"),
        ("(run, met) in [1]", "expected a tuple of 2 literals in this list at character 16"),
        ("(run, met) in [(1, 2, 3)]", "expected ')' at character 21"),
        ("(run, met)", "a tuple is allowed only before 'in'; unexpected ',' at character 1"),
        ("(run, met) + 1", "a tuple is allowed only before 'in'; unexpected ',' at character 1"),
        ("-(run, met) in [(1, 1)]", "a tuple is allowed only before 'in'; unexpected ',' at character 2"),
        ("1 < run in [1]", "'in' cannot be chained with another comparison; put it in parentheses, at character 9"),
        (
            "run in [1] == good",
            "'in' cannot be chained with another comparison; put it in parentheses, at character 12",
        ),
        ("in [1]", "expected a value before 'in' at character 1"),
    ] {
        assert_eq!(error(text), wanted, "{text}");
    }
}

#[test]
fn long_lists_are_hashed() {
    let list: Vec<String> = (0..100_000).map(|event| (2 * event).to_string()).collect();
    assert_eq!(runs(&format!("event in [{}]", list.join(", "))), [true, false, true, false]);
    let pairs: Vec<String> = (0..50_000).map(|event| format!("({}, {event})", event % 7)).collect();
    assert_eq!(runs(&format!("(run, event) in [{}]", pairs.join(", "))), [false; 4]);
    assert_eq!(runs(&format!("(run + 3, event) in [{}]", pairs.join(", "))), [true; 4]);
}

/// Defect: integers in a list were rounded to double precision first beside single precision, and then again.
#[test]
fn integers_in_lists_are_rounded_as_in_comparisons() {
    let values = Arc::new(arrow_array::Float32Array::from(vec![18_014_398_509_481_984.0, 3.0])) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("g", values)]).unwrap();
    let mask = |text: &str| text.parse::<Expression>().unwrap().mask(&batch).unwrap();
    for number in ["18014399583223809", "18014398509481984", "9223372036854775809", "3"] {
        assert_eq!(mask(&format!("g in [{number}]")), mask(&format!("g == {number}")), "{number}");
    }
}
