"""Expressions, cuts and aliases, compared with Awkward."""

import re
from typing import Any

import awkward as ak
import numpy as np
import pyarrow as pa
import pytest

import tupelo

ENTRIES = 5000


@pytest.fixture
def ntuple() -> tupelo.Ntuple:
    random = np.random.default_rng(7)
    counts = random.poisson(2.0, ENTRIES)
    jagged = {
        "pt": random.exponential(20, counts.sum()).astype(np.float32),
        "eta": random.normal(0, 2, counts.sum()).astype(np.float32),
        "charge": random.choice([-1, 1], counts.sum()).astype(np.int32),
    }
    muons = {name: ak.unflatten(values, counts) for name, values in jagged.items()}
    with tupelo.recreate("f.root") as file:
        columns = {
            "met": random.exponential(30, ENTRIES),
            "run": np.repeat(np.arange(50), ENTRIES // 50).astype(np.uint32),
            "trigger": random.random(ENTRIES) < 0.3,
            "muons": ak.zip(muons),
            **{f"Muon_{name}": values for name, values in muons.items()},
        }
        # Several clusters of several pages.
        parts = [{name: values[i : i + 1000] for name, values in columns.items()} for i in range(0, ENTRIES, 1000)]
        with file.mkrntuple("Events", parts[0], cluster_bytes=60_000, page_bytes=4_000) as writer:
            for part in parts[1:]:
                writer.extend(part)
    return tupelo.open("f.root:Events")


EXPRESSIONS = {
    "met * 2 + run": lambda a: a.met * 2 + a.run,
    "sqrt(met) / (run + 1)": lambda a: np.sqrt(a.met) / (a.run + 1),
    "Muon_pt * cosh(Muon_eta)": lambda a: a.Muon_pt * np.cosh(a.Muon_eta),
    "Muon_pt + met": lambda a: a.Muon_pt + a.met,
    "sum(Muon_charge)": lambda a: ak.sum(a.Muon_charge, axis=1),
    "max(Muon_pt)": lambda a: ak.max(a.Muon_pt, axis=1),
    "len(Muon_pt)": lambda a: ak.num(a.Muon_pt),
    "any(Muon_pt > 40) or trigger": lambda a: ak.any(a.Muon_pt > 40, axis=1) | a.trigger,
    "all(abs(Muon_eta) < 2.4) & ~trigger": lambda a: ak.all(abs(a.Muon_eta) < 2.4, axis=1) & ~a.trigger,
    "Muon_pt[abs(Muon_eta) < 2.4]": lambda a: a.Muon_pt[abs(a.Muon_eta) < 2.4],
    "Muon_pt[0]": lambda a: ak.firsts(a.Muon_pt),
    "muons.pt * muons.charge": lambda a: a.muons.pt * a.muons.charge,
    "where(trigger, met, -met)": lambda a: ak.where(a.trigger, a.met, -a.met),
    "10 < met < 20": lambda a: (a.met > 10) & (a.met < 20),
    "run // 7 % 3": lambda a: a.run // 7 % 3,
    "np.sqrt(met) + np.abs(met - 30)": lambda a: np.sqrt(a.met) + np.abs(a.met - 30),
    "np.arcsinh(met)": lambda a: np.arcsinh(a.met),
    "np.hypot(Muon_pt, met)": lambda a: np.hypot(a.Muon_pt, a.met),
    "Muon_pt ** 2": lambda a: a.Muon_pt**2,
    "np.where(trigger, met, 0)": lambda a: np.where(a.trigger, a.met, 0),
    "ak.num(Muon_pt)": lambda a: ak.num(a.Muon_pt),
    "ak.sum(Muon_pt, axis=1)": lambda a: ak.sum(a.Muon_pt, axis=1),
    "ak.sum(muons.pt, axis=-1)": lambda a: ak.sum(a.muons.pt, axis=-1),
    "ak.any(Muon_pt > 40, axis=1)": lambda a: ak.any(a.Muon_pt > 40, axis=1),
    "ak.all(Muon_pt > 4, axis=-1)": lambda a: ak.all(a.Muon_pt > 4, axis=-1),
    "ak.max(Muon_pt, axis=1)": lambda a: ak.max(a.Muon_pt, axis=1),
    "ak.min(Muon_eta, axis=-1)": lambda a: ak.min(a.Muon_eta, axis=-1),
    "ak.argmax(Muon_pt, axis=1)": lambda a: ak.argmax(a.Muon_pt, axis=1),
    "ak.mean(Muon_pt, axis=1)": lambda a: ak.nan_to_none(ak.mean(a.Muon_pt, axis=1)),
    "Muon_pt[:, :1]": lambda a: a.Muon_pt[:, :1],
    "Muon_pt[:, 1:]": lambda a: a.Muon_pt[:, 1:],
    "Muon_pt[:, ::-1]": lambda a: a.Muon_pt[:, ::-1],
    "Muon_pt[:, -2:]": lambda a: a.Muon_pt[:, -2:],
    "sum(Muon_pt[:, :2])": lambda a: ak.sum(a.Muon_pt[:, :2], axis=1),
    "run in [3, 5, 7]": lambda a: np.isin(a.run, [3, 5, 7]),
    "Muon_charge not in [-1]": lambda a: a.Muon_charge != -1,
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions_match_awkward(ntuple: tupelo.Ntuple, text: str) -> None:
    computed = ntuple.arrays(text)
    assert computed.fields == [text]
    expected = EXPRESSIONS[text](ntuple.arrays())
    got, want = ak.to_list(computed[text]), ak.to_list(expected)
    assert ak.almost_equal(ak.Array(got), ak.Array(want), rtol=1e-6)
    # Batches have the same values, and all have the same type.
    pieces = list(ntuple.iterate([text], step_size=777))
    assert len({str(piece.type).partition("*")[2] for piece in pieces}) == 1
    assert ak.to_list(ak.concatenate(pieces)[text]) == got


# fmt: off
ONE = [
    "abs", "absolute", "fabs", "negative", "positive", "sign", "square", "sqrt", "cbrt", "reciprocal", "exp",
    "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos", "arctan",
    "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "deg2rad", "radians", "rad2deg", "degrees",
    "floor", "ceil", "trunc", "fix", "rint", "isnan", "isinf", "isfinite", "signbit",
]
TWO = [
    "arctan2", "hypot", "copysign", "logaddexp", "fmod", "minimum", "maximum", "add", "subtract", "multiply",
    "divide", "true_divide", "floor_divide", "remainder", "mod", "power", "equal", "not_equal", "less",
    "less_equal", "greater", "greater_equal",
]
# fmt: on


@pytest.mark.parametrize("name", ONE + TWO)
def test_functions_match_numpy(name: str) -> None:
    values = np.array([-2.5, -1.0, -0.5, -0.0, 0.0, 0.3, 0.5, 1.0, 1.5, 2.5, 700.0, np.inf, -np.inf, np.nan])
    one, two = (grid.ravel() for grid in np.meshgrid(values, values))
    with tupelo.recreate("names.root") as file:
        file["n"] = {"x": one, "y": two}
    ntuple = tupelo.open("names.root:n")
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(one) if name in ONE else getattr(np, name)(one, two)
    arguments = "x" if name in ONE else "x, y"
    got = ntuple.arrays([f"np.{name}({arguments})"], library="np")[f"np.{name}({arguments})"]
    np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-300)


def test_lists_of_events_are_looked_up() -> None:
    """Regression: thousands of comparisons joined by `or` overflowed the stack of the interpreter."""
    rng = np.random.default_rng(1)
    run, event = rng.integers(0, 50, 20_000), rng.integers(0, 100_000, 20_000)
    with tupelo.recreate("events.root") as file:
        file["n"] = {"run": run.astype("u4"), "event": event}
    ntuple = tupelo.open("events.root:n")
    wanted = rng.choice(100_000, 30_000, replace=False).tolist()
    assert ntuple.arrays("event", f"event in {wanted}").event.tolist() == event[np.isin(event, wanted)].tolist()
    out = ntuple.arrays("event", f"event not in {wanted}").event.tolist()
    assert out == event[~np.isin(event, wanted)].tolist()
    pairs = list(zip(run[::7].tolist(), event[::7].tolist(), strict=True))
    mask = [pair in set(pairs) for pair in zip(run.tolist(), event.tolist(), strict=True)]
    assert ntuple.arrays("event", f"(run, event) in {pairs}").event.tolist() == event[mask].tolist()
    chain = " or ".join(f"event == {number}" for number in wanted[:3000])
    assert ntuple.arrays("event", chain).event.tolist() == event[np.isin(event, wanted[:3000])].tolist()


def test_thousands_of_nested_aliases() -> None:
    """Regression: they were computed recursively, repeatedly for each dependent alias."""
    with tupelo.recreate("chain.root") as file:
        file["n"] = {"x": [1, 2, 3]}
    ntuple = tupelo.open("chain.root:n")
    aliases = {f"a{i}": f"a{i - 1} + 1" if i else "x" for i in range(5000)}
    wanted = [4999 + x for x in [1, 2, 3]]
    assert ntuple.arrays(["a4999"], aliases=aliases).a4999.tolist() == wanted
    backwards = dict(reversed(aliases.items()))
    assert ntuple.arrays(["a4999"], "a4999 > 5000", aliases=backwards).a4999.tolist() == wanted[1:]
    with pytest.raises(tupelo.InvalidArgumentError, match="alias 'a0': it depends on itself"):
        ntuple.arrays(["a4999"], aliases=aliases | {"a0": "a4999"})


def test_long_and_deep_expressions() -> None:
    with tupelo.recreate("deep.root") as file:
        file["n"] = {"x": [1, 2, 3]}
    ntuple = tupelo.open("deep.root:n")
    assert ntuple.arrays(["x"], " or ".join(["x == 2"] * 20_000)).x.tolist() == [2]
    for text in ["(" * 5000 + "x" + ")" * 5000, "-" * 5000 + "x", "abs(" * 5000 + "x" + ")" * 5000]:
        with pytest.raises(tupelo.LimitError, match="nested more than 128 deep"):
            ntuple.arrays([text])


def test_caret_is_rejected() -> None:
    with tupelo.recreate("caret.root") as file:
        file["n"] = {"x": [1, 2, 3]}
    with pytest.raises(tupelo.InvalidArgumentError, match=re.escape("write ** for powers and xor(a, b)")):
        tupelo.open("caret.root:n").arrays("x^2")


CUTS = {
    "run == 7": lambda a: a.run == 7,
    "met > 150": lambda a: a.met > 150,
    "any(Muon_pt > 60) and met > 20": lambda a: ak.any(a.Muon_pt > 60, axis=1) & (a.met > 20),
    "Muon_pt[0] > 30": lambda a: ak.fill_none(ak.firsts(a.Muon_pt) > 30, False),
    "met < 0": lambda a: a.met < 0,
    "met >= 0": lambda a: a.met >= 0,
}


@pytest.mark.parametrize("cut", CUTS)
def test_a_cut_is_a_mask(ntuple: tupelo.Ntuple, cut: str) -> None:
    everything = ntuple.arrays()
    mask = CUTS[cut](everything)
    assert ntuple.arrays(cut=cut).tolist() == everything[mask].tolist()
    assert ntuple.arrays(["met", "run * 2"], cut).met.tolist() == everything.met[mask].tolist()
    assert ntuple.arrays("muons.pt", cut).muons.pt.tolist() == everything.muons.pt[mask].tolist()
    pieces = list(ntuple.iterate("run", cut, step_size=600, report=True))
    assert [(report.start, report.stop) for _, report in pieces] == [
        (start, min(start + 600, ENTRIES)) for start in range(0, ENTRIES, 600)
    ]
    for piece, report in pieces:
        assert (
            piece.run.tolist() == everything.run[report.start : report.stop][mask[report.start : report.stop]].tolist()
        )
    frame = ntuple.arrays(["met"], cut, library="pd")
    assert frame.index.tolist() == np.flatnonzero(mask).tolist()
    assert [
        number for piece in ntuple.iterate("met", cut, library="pd") for number in piece.index
    ] == frame.index.tolist()
    some = ntuple.arrays("met", cut, entry_start=1234, entry_stop=-99, library="np")["met"]
    assert some.tolist() == everything.met[1234:-99][mask[1234:-99]].tolist()


def test_aliases_in_any_order(ntuple: tupelo.Ntuple) -> None:
    a = ntuple.arrays()
    aliases = {"scaled": "factor * met", "factor": "run + 1", "run": "`Muon_charge`[0]", "run.odd": "met"}
    got = ntuple.arrays(["scaled", "run.odd", "factor", "scaled - factor"], "scaled > 60", aliases=aliases)
    factor = ak.firsts(a.Muon_charge) + 1
    mask = ak.fill_none(factor * a.met > 60, False)
    assert got.fields == ["scaled", "run.odd", "factor", "scaled - factor"]
    assert got.scaled.tolist() == (factor * a.met)[mask].tolist()
    assert got["run.odd"].tolist() == a.met[mask].tolist()
    assert got["scaled - factor"].tolist() == (factor * a.met - factor)[mask].tolist()


def test_globs_and_products() -> None:
    with tupelo.recreate("g.root") as file:
        file["n"] = {"x": [1, 2], "y": [3, 4], "xy": [5, 6], "a[0]": [7, 8], "a": [[9], [10]]}
    ntuple = tupelo.open("g.root:n")
    assert ntuple.arrays("x*y").fields == ["x*y"]
    assert ntuple.arrays("x*").fields == ["x", "xy"]
    assert ntuple.arrays("a[0]").tolist() == [{"a[0]": 7}, {"a[0]": 8}]
    assert ntuple.arrays("a[-1]").tolist() == [{"a[-1]": 9}, {"a[-1]": 10}]
    assert ntuple.arrays(["x*", "x + y"]).fields == ["x", "xy", "x + y"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("x *", "expected a value at the end"),
        ("x[0", "expected ']' at the end"),
        ("abs(x", "expected ')' at the end"),
        ("x[1, 0]", "the first of several indexes selects entries: write [:, …], at character 3"),
        ("x[1:y]", "the bounds of a slice must be integers, at character 5"),
        ("x ? 1 : 2", "unexpected '?' at character 3"),
        ("sum(y*)", "expected a value before ')' at character 7"),
    ],
)
def test_invalid_expressions_are_not_missing_fields(text: str, error: str) -> None:
    """Regression: those with glob characters were reported as missing fields."""
    with tupelo.recreate("b.root") as file:
        file["n"] = {"x": [1], "y": [[2]]}
    ntuple = tupelo.open("b.root:n")
    with pytest.raises(tupelo.InvalidArgumentError, match=re.escape(f"expression '{text}': {error}")):
        ntuple.arrays(text)
    for glob in ("q*", "x[0-9]q", "{a,b}*", "Aux:p*"):
        with pytest.raises(tupelo.NotFoundError, match=re.escape(f"no field named '{glob}'")):
            ntuple.arrays(glob)


def test_the_same_expression_twice(ntuple: tupelo.Ntuple) -> None:
    """Regression: it raised an error of PyArrow."""
    for text, aliases in (("met + 1", {}), ("twice", {"twice": "met * 2"})):
        got = ntuple.arrays([text, "met", text], entry_stop=5, aliases=aliases)
        assert got.fields == [text, "met"]
        assert ntuple.stream([text, text], aliases=aliases).schema.names == [text]
        assert ntuple.take([3], [text, text], aliases=aliases).fields == [text]


def test_strings_that_are_not_utf8() -> None:
    """Regression: expressions over them raised errors."""
    with tupelo.recreate("u.root") as file:
        texts = pa.array([b"a", b"\xff", b"b"])
        file.mkrntuple("n", {"s": "std::string", "x": "int"}).extend({"s": texts, "x": [1, 2, 3]})
    ntuple = tupelo.open("u.root:n")
    assert ntuple.arrays("x", "s != 'a'")["x"].tolist() == [2, 3]
    assert ntuple.arrays(["is_b", "same"], aliases={"is_b": "s == 'b'", "same": "s"}).tolist() == [
        {"is_b": False, "same": b"a"},
        {"is_b": False, "same": b"\xff"},
        {"is_b": True, "same": b"b"},
    ]
    assert [piece["x"].tolist() for piece in ntuple.iterate("x", "s > 'a'", step_size=1)] == [[], [2], [3]]
    with pytest.raises(tupelo.UnsupportedError, match="not UTF-8"):
        list(ntuple.iterate("same", aliases={"same": "s"}))


def test_only_pages_with_selected_entries_are_read() -> None:
    with tupelo.recreate("p.root") as file:
        columns = {"key": np.arange(100_000), "value": np.random.default_rng(1).random(100_000)}
        file.mkrntuple("n", columns, page_bytes=8_000, compression="none").close()

    def read(**how: Any) -> int:
        with tupelo.open("p.root", metrics=True) as opened:
            ntuple = opened["n"]
            ntuple.arrays("value", **how)
            assert ntuple.metrics is not None
            return ntuple.metrics.page_bytes

    whole = read()
    keys = read(cut="key < 0")
    assert read(cut="key == 50_000") - keys < whole / 50


def test_take_computes_expressions(ntuple: tupelo.Ntuple) -> None:
    got = ntuple.take([4, 2, -1], ["met * k"], aliases={"k": "run + 1"}, library="np")["met * k"]
    a = ntuple.arrays(["met", "run"], library="np")
    assert got.tolist() == [a["met"][i] * (a["run"][i] + 1) for i in (4, 2, -1)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_quotients_and_remainders_match_numpy(dtype: type[np.floating[Any]]) -> None:
    """Regression: `1.0 // 0.1` was 10."""
    random = np.random.default_rng(11)
    whole = random.integers(-60, 60, 4000) / 10
    divisors = random.choice([0.1, -0.1, 0.3, 2.0, -2.5, 7.0], 4000)
    odd = np.array(np.meshgrid(*2 * [[0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan]])).reshape(2, -1)
    x = np.concatenate([whole, random.normal(0, 1e3, 1000), odd[0]]).astype(dtype)
    y = np.concatenate([divisors, random.normal(0, 1, 1000), odd[1]]).astype(dtype)
    with tupelo.recreate("q.root") as file:
        file["n"] = {"x": x, "y": y}
    got = tupelo.open("q.root:n").arrays(["x // y", "x % y"], library="np")
    with np.errstate(all="ignore"):
        expected = {"x // y": x // y, "x % y": x % y}
    for text, want in expected.items():
        assert got[text].dtype == dtype
        np.testing.assert_array_equal(got[text], want, strict=True)
        known = ~np.isnan(want)
        assert (np.signbit(got[text]) == np.signbit(want))[known].all()
    if dtype is np.float64:
        finite = np.isfinite(x) & np.isfinite(y) & (y != 0)
        pairs = zip(x[finite].tolist(), y[finite].tolist(), strict=True)
        computed = zip(got["x // y"][finite].tolist(), got["x % y"][finite].tolist(), strict=True)
        assert [divmod(a, b) for a, b in pairs] == list(computed)


def test_cuts_drop_missing_lists() -> None:
    """Regression: they were treated as empty lists, and `len(ov) == 0` selected them."""
    lists: list[list[float] | None] = [None, [1.0, 2.0], [], [3.0]]
    with tupelo.recreate("o.root") as file:
        types = {"ov": "std::optional<std::vector<double>>", "n": "int", "a3": "std::array<int,3>"}
        file.mkrntuple("n", types).extend({"ov": pa.array(lists), "n": [0, 1, 2, 3], "a3": np.arange(12).reshape(4, 3)})
    ntuple = tupelo.open("o.root:n")
    for text, want in {
        "ov * 2": [None, [2.0, 4.0], [], [6.0]],
        "len(ov)": [None, 2, 0, 1],
        "sum(ov)": [None, 3.0, 0.0, 3.0],
        "is_missing(ov)": [True, False, False, False],
        "any(ov > 1)": [None, True, False, True],
        "ov + n": [None, [2.0, 3.0], [], [6.0]],
        "10 // n": [None, 10, 5, 3],
        "n > 0 and 10 // n > 4": [False, True, True, False],
    }.items():
        assert ntuple.arrays(text)[text].tolist() == want
        assert [value for piece in ntuple.iterate(text, step_size=1) for value in piece[text].tolist()] == want
    for cut, kept in {
        "len(ov) == 0": [2],
        "not any(ov > 1)": [2],
        "is_missing(ov)": [0],
        "10 // n > 4": [1, 2],
        "n == 0 or 10 // n == 3": [0, 3],
    }.items():
        assert ntuple.arrays("n", cut)["n"].tolist() == kept
    assert str(ntuple.arrays("a3 * 2")["a3 * 2"].type) == "4 * 3 * int64"


def test_names_with_colons_need_backticks() -> None:
    """Regression: `unexpected ':'` gave no hint."""
    with tupelo.recreate("c.root") as file:
        file["n"] = {
            "Aux:pt": [1000.0, 2000.0],
            "key": np.array([1, 2**64 - 1], np.uint64),
        }
    ntuple = tupelo.open("c.root:n")
    with pytest.raises(
        tupelo.InvalidArgumentError,
        match=re.escape("must be in backticks: write `Aux:pt`"),
    ):
        ntuple.arrays("Aux:pt / 1000")
    assert ntuple.arrays("`Aux:pt` / 1000")["`Aux:pt` / 1000"].tolist() == [1, 2]
    assert ntuple.arrays("Aux:pt", "key == 18446744073709551615")["Aux:pt"].tolist() == [2000]
