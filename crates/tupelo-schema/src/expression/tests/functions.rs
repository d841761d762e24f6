//! Functions by their names in NumPy and Awkward Array, indexes and slices.

use super::*;

#[test]
fn names_of_modules_stand_in_front_of_functions() {
    for (text, same) in [
        ("np.sqrt(met)", "sqrt(met)"),
        ("numpy.abs(eta)", "abs(eta)"),
        ("np.absolute(eta)", "abs(eta)"),
        ("math.fabs(met)", "abs(met)"),
        ("ak.num(pt)", "len(pt)"),
        ("ak.num(pt, axis=1)", "len(pt)"),
        ("ak.num(jets.parts, axis=1)", "len(jets.parts)"),
        ("ak.num(jets.parts, axis=2)", "count(jets.parts)"),
        ("ak.num(jets.parts, axis=-1)", "count(jets.parts)"),
        ("ak.sum(pt, axis=1)", "sum(pt)"),
        ("ak.sum(pt, axis = -1) > 3", "sum(pt) > 3"),
        ("ak.sum(jets.parts, axis=2)", "sum(jets.parts)"),
        ("ak.any(pt > 3, axis=1)", "any(pt > 3)"),
        ("ak.all(pt > 3, axis=-1)", "all(pt > 3)"),
        ("ak.max(pt, axis=1)", "max(pt)"),
        ("ak.argmin(pt, axis=1)", "argmin(pt)"),
        ("ak.count(jets.parts, axis=-1)", "count(jets.parts)"),
        ("np.where(good, run, 0)", "where(good, run, 0)"),
        ("ak.is_none(maybe)", "is_missing(maybe)"),
        ("np.arcsinh(met)", "asinh(met)"),
        ("np.hypot(met, 3)", "hypot(met, 3)"),
        ("np.power(run, 2)", "run ** 2"),
        ("pow(run, 2)", "run * run"),
        ("np.square(run)", "run ** 2"),
        ("np.logical_and(good, run > 1)", "good and run > 1"),
        ("np.logical_not(good)", "not good"),
        ("np.bitwise_xor(run, 3)", "xor(run, 3)"),
        ("np.deg2rad(180)", "math.pi + 0 * 1"),
        ("np.mod(run, 2)", "run % 2"),
        ("np.greater(pt, 20)", "pt > 20"),
        ("-np.inf < met < np.inf", "isfinite(met)"),
    ] {
        assert_eq!(shown(text), shown(same), "{text}");
    }
    assert_eq!(shown("np.isinf(1 / 0.0)"), "true true true true");
    // A field may be called as a module.
    let batch = RecordBatch::try_from_iter([("np", Arc::clone(events().column_by_name("run").unwrap()))]).unwrap();
    let fields: Vec<String> = "np + np.exp(np)".parse::<Expression>().unwrap().fields().map(str::to_owned).collect();
    assert_eq!(fields, ["np"]);
    assert_eq!("np + 0".parse::<Expression>().unwrap().evaluate(&batch).unwrap().len(), 4);
    assert_eq!("`np`.pi".parse::<Expression>().unwrap().fields().collect::<Vec<_>>(), ["np.pi"]);
}

#[test]
fn an_axis_that_is_not_the_innermost_is_refused() {
    for (text, wanted) in [
        (
            "ak.sum(jets.parts, axis=1)",
            "sum() applies to the innermost lists, which are axis=2 here, not axis=1: write axis=-1, and call it again \
             for the outer lists",
        ),
        ("ak.max(met, axis=1)", "max() takes a collection, not a real number for each entry"),
        ("ak.sum(pt, axis=2)", "axis=2 of sum() does not exist: lists have 1 level, and axis=-1 is the innermost"),
        ("ak.num(pt, axis=-3)", "axis=-3 of num() does not exist: lists have 1 level, and axis=-1 is the innermost"),
        ("num(pt, axis=0)", "num() applies to lists, but axis=0 selects the entries, which are computed one by one"),
        ("len(pt, axis=0)", "len() applies to lists, but axis=0 selects the entries, which are computed one by one"),
        ("ak.sum(pt, axis=0)", "sum() applies to lists, but axis=0 selects the entries, which are computed one by one"),
        (
            "ak.sum(pt, axis=-2)",
            "sum() applies to lists, but axis=-2 selects the entries, which are computed one by one",
        ),
        (
            "ak.sum(pt, axis=None)",
            "axis=None combines all entries, but values are computed entry by entry: write axis=-1, at character 12",
        ),
        ("ak.sum(pt, axis=run)", "an axis must be an integer, at character 12"),
        ("ak.sum(pt, keepdims=True)", "sum() takes only 'axis', not 'keepdims' at character 12"),
        ("np.sqrt(met, axis=1)", "sqrt() takes no keywords, not 'axis' at character 14"),
    ] {
        assert_eq!(error(text), wanted, "{text}");
    }
}

#[test]
fn slices_take_items_of_lists() {
    for (text, wanted) in [
        ("pt[:, :1]", "[30.0] [] [50.0] [5.0]"),
        ("pt[:, 1:]", "[20.0] [] [] [45.0, 10.0]"),
        ("pt[:, -2:]", "[30.0, 20.0] [] [50.0] [45.0, 10.0]"),
        ("pt[:, ::-1]", "[20.0, 30.0] [] [50.0] [10.0, 45.0, 5.0]"),
        ("pt[:2]", "[30.0, 20.0] [] [50.0] [5.0, 45.0]"),
        ("pt[:, 0]", "30.0 - 50.0 5.0"),
        ("pt[:, -1]", "20.0 - 50.0 10.0"),
        ("pt[:, argmax(pt)]", "30.0 - 50.0 45.0"),
        ("pt[:, pt > 20]", "[30.0] [] [50.0] [45.0]"),
        ("pt[:, :]", "[30.0, 20.0] [] [50.0] [5.0, 45.0, 10.0]"),
        ("sum(pt[:, :1]) + len(eta[1:3])", "31.0 0.0 50.0 7.0"),
        ("jets.parts[:, 0, 0]", "1.0 - - 4.0"),
        ("jets.parts[:, :, :1]", "[[1.0], [3.0]] [] [[]] [[4.0], [5.0]]"),
        ("jets.parts[:, :1, 0]", "[1.0] [] [] [4.0]"),
        ("jets[:, :1].parts", "[[1.0, 2.0]] [] [[]] [[4.0]]"),
        ("pair[:, ::-1]", "[1, 0] [3, 2] [5, 4] [7, 6]"),
    ] {
        assert_eq!(shown(text), wanted, "{text}");
    }
    for (text, wanted) in [
        ("pt[0, 1]", "the first of several indexes selects entries: write [:, …], at character 4"),
        ("pt[:1, 0]", "the first of several indexes selects entries: write [:, …], at character 4"),
        ("met[:1]", "a real number for each entry cannot be indexed"),
        ("pt[:, 0, 0]", "a real number for each entry cannot be indexed"),
        ("pt[::0]", "the step of a slice must not be 0, at character 7"),
        ("pt[:met]", "the bounds of a slice must be integers, at character 5"),
        ("jets.parts[:, :, run]", "an index beside slices and other indexes must be an integer, at character 18"),
        ("pt[]", "expected a value before ']' at character 4"),
    ] {
        assert_eq!(error(text), wanted, "{text}");
    }
}

/// `x ^ 2`, which is a power in TTree formulas, was 2 with other bits.
#[test]
fn carets_between_numbers_are_refused_with_alternatives() {
    let asks = "^ takes only booleans: write ** for powers and xor(a, b) for bits of integers";
    for text in ["run ^ 2", "pt ^ 2", "2 ^ met", "good ^ 2"] {
        assert_eq!(error(text), asks, "{text}");
    }
    assert_eq!(shown("good ^ (run > 1)"), "true true false false");
    assert_eq!(shown("xor(run, 2)"), "3 0 1 1");
    assert_eq!(shown("xor(good, run > 1)"), "true true false false");
}

#[test]
fn tree_formulas_and_methods_are_refused_with_alternatives() {
    for (text, wanted) in [
        ("Sum$(pt) > 3", "'Sum$' exists only in TTree formulas; write sum(x) for Sum$(x), at character 1"),
        ("Length$(pt)", "'Length$' exists only in TTree formulas; write len(x) for Length$(x), at character 1"),
        (
            "Entry$ > 3",
            "'Entry$' exists only in TTree formulas; use functions of NumPy and Awkward Array, at character 1",
        ),
        ("TMath::Abs(met)", "'TMath::Abs' is C++; write abs, at character 1"),
        ("1 + TMath::Pi()", "'TMath::Pi' is C++; write np.pi, at character 5"),
        ("TMath::Power(met, 2)", "'TMath::Power' is C++; write power, at character 1"),
        ("pt.size() > 2", "'pt.size' is not a function; write len(pt), at character 1"),
        ("pt.sum()", "'pt.sum' is not a function; write sum(pt), at character 1"),
        ("pt.foo()", "'pt.foo' is not a function; available modules: np, numpy, ak, awkward, math, at character 1"),
    ] {
        assert_eq!(error(text), wanted, "{text}");
    }
    // These mean here what they mean there.
    assert_eq!(shown("!(met > 20) && run > 0 || !good"), shown("not (met > 20) and run > 0 or not good"));
}

/// The reference page has a line for each function, with the value of its example.
#[test]
fn the_reference_page_is_made_from_the_table() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/expressions.md");
    let text = std::fs::read_to_string(page).unwrap();
    let (begin, end) = ("<!-- functions: begin -->\n", "<!-- functions: end -->\n");
    let (front, rest) = text.split_once(begin).unwrap();
    let (_, back) = rest.split_once(end).unwrap();
    let mut made = String::from("| function | what it is | example | value |\n|---|---|---|---|\n");
    for function in super::super::table::FUNCTIONS {
        let names: Vec<String> =
            std::iter::once(&function.name).chain(function.aliases).map(|name| format!("`{name}`")).collect();
        let example = function.example;
        let expression: Expression = example.parse().unwrap_or_else(|e| panic!("{e}"));
        let value = expression.evaluate(&sample()).unwrap_or_else(|e| panic!("{e}"));
        let value = match value.is_null(0) {
            true => "missing".to_owned(),
            false => array_value_to_string(&value, 0).unwrap(),
        };
        // A bar ends a cell, in code too.
        let what = function.what.replace('|', "\\|");
        let line = format!("| {} | {what} | `{example}` | {value} |\n", names.join(" "));
        made.push_str(&line);
    }
    let made = format!("{front}{begin}{made}{end}{back}");
    if std::env::var_os("TUPELO_UPDATE_DOCS").is_some() {
        std::fs::write(page, &made).unwrap();
    }
    assert!(
        made == text || std::env::var_os("TUPELO_UPDATE_DOCS").is_some(),
        "docs/guide/expressions.md is not that of the table of functions: run this test with TUPELO_UPDATE_DOCS=1"
    );
    for name in ["np.sqrt", "xor", "axis=-1", "(run, event) in", "`in`"] {
        assert!(text.contains(name), "the page does not speak of {name}");
    }
}

/// The entry of the examples of the reference page.
fn sample() -> RecordBatch {
    let pt = list(&[&[40.0, 25.0, 10.0]], |v| Arc::new(Float64Array::from(v)));
    let eta = list(&[&[0.5, -2.5, 1.0]], |v| Arc::new(Float64Array::from(v)));
    let inner = list(&[&[1, 2], &[3]], |v| Arc::new(Int64Array::from(v)));
    let item = Arc::new(Field::new("item", inner.data_type().clone(), false));
    let hits = LargeListArray::new(item, OffsetBuffer::from_lengths([2]), inner, None);
    let columns: [(&str, ArrayRef); 7] = [
        ("pt", pt),
        ("eta", eta),
        ("hits", Arc::new(hits)),
        ("met", Arc::new(Float64Array::from(vec![30.0]))),
        ("n", Arc::new(Int64Array::from(vec![3]))),
        ("trigger", Arc::new(BooleanArray::from(vec![true]))),
        ("maybe", Arc::new(Int32Array::from(vec![None]))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}
