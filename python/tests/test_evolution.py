"""Schema evolution and read rules."""

import pickle
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tupelo


@pytest.fixture
def ntuple(tmp_path: Path) -> tupelo.Ntuple:
    """Numbers, lists, and points of the class Point in lists."""
    members = [pa.field("x", pa.float32(), False), pa.field("n", pa.int32(), False)]
    point = pa.field("item", pa.struct(members), False, metadata={"rntuple.type": "Point", "rntuple.version": "2"})
    fields = [
        pa.field("i", pa.int32(), False),
        pa.field("maybe", pa.float32(), True),
        pa.field("points", pa.large_list(point), False, metadata={"rntuple.type": "std::vector<Point>"}),
    ]
    with tupelo.recreate(tmp_path / "points.root") as file:
        events = file.mkrntuple("Events", pa.schema(fields))
        points = [[{"x": 0.5, "n": 1}, {"x": 1.5, "n": 300}], [], [{"x": 2.5, "n": 3}]]
        events.extend({"i": [1, 2, 300], "maybe": [1.5, None, 3.5], "points": points})
    opened = tupelo.open(f"{tmp_path / 'points.root'}:Events")
    assert isinstance(opened, tupelo.Ntuple)
    return opened


def test_a_schema_of_cpp_types(ntuple: tupelo.Ntuple) -> None:
    arrays = ntuple.arrays(schema={"maybe": "std::vector<double>", "i": "std::optional<long>"})
    assert arrays.fields == ["maybe", "i"]
    assert str(arrays.type) == "3 * {maybe: var * float64, i: ?int64}"
    assert arrays.tolist()[1] == {"maybe": [], "i": 2}
    assert ntuple.arrays(schema={"i": "std::uint16_t"}, entry_start=-1, library="np")["i"].dtype == np.uint16
    assert ntuple.arrays(schema={"i": np.int64}, library="np")["i"].dtype == np.int64


def test_a_schema_of_arrow(ntuple: tupelo.Ntuple) -> None:
    item = pa.field("item", pa.struct([pa.field("n", pa.int64(), False), pa.field("new", pa.bool_(), False)]), False)
    schema = pa.schema([pa.field("points", pa.large_list(item), False)])
    table = ntuple.arrays(schema=schema, library="arrow")
    assert table.column("points").to_pylist()[0] == [{"n": 1, "new": False}, {"n": 300, "new": False}]
    pieces = list(ntuple.iterate(schema=schema, step_size=1))
    assert ak.concatenate(pieces).tolist() == ntuple.arrays(schema=schema).tolist()


def test_unsupported_conversions_are_reported(ntuple: tupelo.Ntuple) -> None:
    with pytest.raises(tupelo.InvalidArgumentError, match=r"entry 2: field 'i', read as 'std::int8_t': the value 300"):
        ntuple.arrays(schema={"i": "std::int8_t"})
    with pytest.raises(tupelo.InvalidArgumentError, match="'std::int32_t' on disk cannot be read as 'float'"):
        ntuple.iterate(schema={"i": "float"})
    with pytest.raises(tupelo.NotFoundError, match="'maybe'"):
        ntuple.arrays(schema={"mabe": "float"})
    with pytest.raises(tupelo.InvalidArgumentError, match="a schema selects the fields"):
        ntuple.arrays("i", schema={"i": "long"})
    with pytest.raises(tupelo.InvalidArgumentError, match="a mapping of names to types"):
        ntuple.arrays(schema=["i"])  # type: ignore[arg-type]


def double(n: Any) -> Any:
    """A function that can be pickled."""
    return pc.multiply(n, 2)


def test_rules_compute_members(ntuple: tupelo.Ntuple) -> None:
    rule = tupelo.ReadRule("Point", ["n"], {"twice": "int"}, double, hide_sources=True)
    ruled = ntuple.with_rules([rule])
    assert ruled.keys() == ["i", "maybe", "points", "points.x", "points.twice"]
    assert ntuple.keys() == ["i", "maybe", "points", "points.x", "points.n"]
    assert ruled["points.twice"].array().tolist() == [[2, 600], [], [6]]
    assert ruled.arrays("points", entry_start=2).tolist() == [{"points": [{"x": 2.5, "twice": 6}]}]
    assert pickle.loads(pickle.dumps(ruled))["points.twice"].array().tolist() == [[2, 600], [], [6]]
    again = ruled.with_rules([tupelo.ReadRule("Point", ["x"], {"y": "float"}, lambda x: x.to_numpy() + 1)])
    assert again["points.y"].array().tolist() == [[1.5, 2.5], [], [3.5]]
    assert again["points.twice"].array().tolist() == [[2, 600], [], [6]]


@pytest.mark.parametrize(
    ("options", "holds"),
    [
        ({"versions": 2}, True),
        ({"versions": range(1, 2)}, False),
        ({"versions": range(1, 3)}, True),
        ({"checksum": 1}, False),
    ],
)
def test_rules_are_for_versions(ntuple: tupelo.Ntuple, options: dict[str, Any], holds: bool) -> None:
    rule = tupelo.ReadRule("Point", ["n"], {"twice": "int"}, double, **options)
    assert ("points.twice" in ntuple.with_rules([rule])) == holds


def test_functions_return_arrays_tuples_or_dicts(ntuple: tupelo.Ntuple) -> None:
    targets = {"a": "int", "b": "std::string"}

    def texts(n: Any) -> Any:
        return pc.cast(n, pa.string())

    for function in (
        lambda n: (n, texts(n)),
        lambda n: {"b": pa.chunked_array([texts(n)]), "a": n.to_numpy()},
    ):
        arrays = ntuple.with_rules([tupelo.ReadRule("Point", ["n"], targets, function)]).arrays("points")
        assert arrays.points.b.tolist() == [["1", "300"], [], ["3"]]
        assert arrays.points.a.tolist() == arrays.points.n.tolist()


def test_errors_of_functions_name_the_rule(ntuple: tupelo.Ntuple) -> None:
    """Regression: the error named neither the rule nor the ntuple."""
    never = KeyError("never")

    def fail(n: Any) -> Any:
        raise never

    ruled = ntuple.with_rules(tupelo.ReadRule("Point", ["n"], {"a": "int"}, fail, versions=range(1, 4)))
    said = (
        r"points\.root: ntuple 'Events': .*read rule for 'Point', versions 1 to 3: its function for 'a' raised KeyError"
    )
    for read in (lambda: ruled.arrays("points"), lambda: ruled["points.a"].array(), lambda: list(ruled.iterate())):
        with pytest.raises(tupelo.InvalidArgumentError, match=said) as caught:
            read()
        assert caught.value.__cause__ is never


def test_functions_can_be_interrupted(ntuple: tupelo.Ntuple) -> None:
    def interrupt(n: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ntuple.with_rules(tupelo.ReadRule("Point", ["n"], {"a": "int"}, interrupt)).arrays()


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda n: {"b": n}, r"returned \['b'\] for the targets \['a'\]"),
        (lambda n: (n, n), "returned 2 arrays for 1 targets"),
        (lambda n: 3, "returned a int for 'a', .* to an array: it is a single value of type int"),
        (lambda n: n.to_numpy().astype(complex), "returned a ndarray for 'a', .* values of type complex128"),
        (
            lambda n: np.ones((len(n), 2)),
            r"'a': values of the Arrow type fixed_size_list<item: double>\[2\] do not fit",
        ),
        (lambda n: pc.multiply(n, 2**40), "'a': .* not in range"),
        (lambda n: pc.cast(n, pa.string()), "values of the Arrow type string do not fit the declared type int32"),
        (lambda n: n[1:], "its function returned, for 'a', 2 values for 3 records"),
    ],
)
def test_invalid_results_of_functions(ntuple: tupelo.Ntuple, function: Any, text: str) -> None:
    """Regression: an array with two dimensions raised an error of PyArrow."""
    ruled = ntuple.with_rules([tupelo.ReadRule("Point", ["n"], {"a": "int"}, function, versions=2)])
    with pytest.raises(tupelo.InvalidArgumentError, match=f"'Events': .*read rule for 'Point', version 2: .*{text}"):
        ruled.arrays("points")


def test_functions_may_return_anything_writable(ntuple: tupelo.Ntuple) -> None:
    for function in (
        lambda n: np.stack([n.to_numpy(), -n.to_numpy()], axis=1),
        lambda n: ak.Array([[i, -i] for i in n.to_pylist()]),
    ):
        ruled = ntuple.with_rules(tupelo.ReadRule("Point", ["n"], {"a": ("f4", 2)}, function))
        assert ruled["points.a"].array().tolist() == [[[1, -1], [300, -300]], [], [[3, -3]]]


def test_invalid_rules_are_rejected(ntuple: tupelo.Ntuple) -> None:
    def refused(*rules: Any, error: type[Exception] = tupelo.InvalidArgumentError, match: str) -> None:
        with pytest.raises(error, match=match):
            ntuple.with_rules(rules)

    refused(tupelo.ReadRule("Point", ["m"], {"a": "int"}, double), error=tupelo.NotFoundError, match="'n'")
    refused(tupelo.ReadRule("Point", "n", {"a": "int"}, double), match="a list of names")
    refused(tupelo.ReadRule("Point", ["n"], {"a": "nonsense"}, double), match="'nonsense'")
    refused(tupelo.ReadRule("Point", ["n"], {}, double), match="lacks targets")
    for versions in (range(0), -1, range(1, 2**33), "1"):
        rule = tupelo.ReadRule("Point", ["n"], {"a": "int"}, double, versions=versions)  # type: ignore[arg-type]
        refused(rule, match="a number or a range")
    refused(
        tupelo.ReadRule("Point", ["n"], {"a": "int"}, double, checksum=-1), match="expected the checksum as a number"
    )
    refused(tupelo.ReadRule("Point", ["n"], ["a"], double), match="expected targets to be a mapping")  # type: ignore[arg-type]
    for rules in (3, "Point", double):
        with pytest.raises(tupelo.InvalidArgumentError, match="expected rules of the class ReadRule, not"):
            ntuple.with_rules(rules)  # type: ignore[arg-type]
    refused(tupelo.ReadRule("Point", ["n"], {"a": "int"}, 3), match="expected a function")  # type: ignore[arg-type]
    refused("Point", match="of the class ReadRule")


def test_rules_for_unknown_classes_are_rejected(ntuple: tupelo.Ntuple) -> None:
    """Regression: such rules were ignored, which hid misspelled class names."""
    rule = tupelo.ReadRule("Piont", ["n"], {"twice": "int"}, double, versions=2)
    said = r"ntuple 'Events': read rule for 'Piont', version 2: no class on disk named 'Piont' \(available: 'Point'\)"
    with pytest.raises(tupelo.NotFoundError, match=said):
        ntuple.with_rules(rule)


def test_an_empty_schema_is_rejected(ntuple: tupelo.Ntuple) -> None:
    """Regression: it returned empty entries."""
    for schema in ({}, pa.schema([])):
        for read in (ntuple.arrays, ntuple.iterate):
            with pytest.raises(tupelo.InvalidArgumentError, match="the schema is empty"):
                read(schema=schema)


def test_pointers_and_atomics_have_type_names(tmp_path: Path) -> None:
    path = tmp_path / "kinds.root"
    types = {"p": "std::unique_ptr<float>", "a": "std::atomic<int>", "o": "std::optional<std::atomic<int>>"}
    with tupelo.recreate(path) as file:
        file.mkrntuple("n", types).extend({"p": [1.5, None], "a": [1, 2], "o": [None, 3]})
    opened = tupelo.open(f"{path}:n")
    assert isinstance(opened, tupelo.Ntuple)
    assert list(opened.typenames().values()) == [name.replace("int", "std::int32_t") for name in types.values()]
    assert opened.arrays().tolist() == [{"p": 1.5, "a": 1, "o": None}, {"p": None, "a": 2, "o": 3}]
