"""Histograms compared with NumPy."""

import os
import sys
from pathlib import Path
from typing import Any

import awkward as ak
import boost_histogram as bh
import hist
import numpy as np
import pyarrow as pa
import pytest

import tupelo
from tupelo import _core
from tupelo.histogram import _columns, _regular

ENTRIES = 3000
DATA = Path(os.environ.get("TUPELO_DATA") or Path(__file__).parents[3] / "shared" / "data")


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    rng = np.random.default_rng(11)
    counts = rng.integers(0, 4, ENTRIES)
    total = int(counts.sum())
    return {
        "x": rng.normal(0, 1, ENTRIES),
        "n": rng.integers(-5, 6, ENTRIES).astype("i4"),
        "w": rng.uniform(0, 2, ENTRIES),
        "flag": rng.integers(0, 2, ENTRIES).astype(bool),
        "jets": ak.zip(
            {
                "pt": ak.unflatten(rng.exponential(30, total).astype("f4"), counts),
                "eta": ak.unflatten(rng.normal(0, 2, total), counts),
            }
        ),
        "hits": ak.unflatten(rng.normal(0, 1, ENTRIES), rng.multinomial(ENTRIES, [1 / ENTRIES] * ENTRIES)),
        "matrix": rng.normal(0, 1, (ENTRIES, 2, 3)),
        "name": [f"kind {i % 3}" for i in range(ENTRIES)],
        "maybe": ak.Array([None if i % 3 == 0 else float(i) for i in range(ENTRIES)]),
        "odd": np.where(np.arange(ENTRIES) % 2, np.nan, np.where(np.arange(ENTRIES) % 4, np.inf, 0.5)),
    }


@pytest.fixture
def ntuple(data: dict[str, Any]) -> tupelo.Ntuple:
    with tupelo.recreate("events.root", cluster_bytes=8000, page_bytes=512) as file:
        file["Events"] = data
    opened = tupelo.open("events.root:Events", metrics=True)
    assert isinstance(opened, tupelo.Ntuple)
    assert opened.num_clusters > 3
    return opened


@pytest.mark.parametrize("step_size", [7, 1000, "1 kB", "100 MB"])
def test_the_same_as_numpy(ntuple: tupelo.Ntuple, data: dict[str, Any], step_size: int | str) -> None:
    histogram = ntuple.hist("x", bins=20, range=(-2, 2), step_size=step_size)
    assert isinstance(histogram, hist.Hist)
    assert isinstance(histogram, bh.Histogram)
    counts, edges = np.histogram(data["x"], 20, (-2, 2))
    np.testing.assert_array_equal(histogram.values(), counts)
    np.testing.assert_allclose(histogram.axes[0].edges, edges, atol=1e-15)
    outside = histogram.values(flow=True)[[0, -1]]
    assert outside.tolist() == [(data["x"] < -2).sum(), (data["x"] >= 2).sum()]
    assert (histogram.axes[0].name, histogram.axes[0].label) == ("x", "x")


@pytest.mark.parametrize("field", ["x", "n", "jets.pt", "matrix", "flag"])
def test_automatic_ranges_contain_all_values(ntuple: tupelo.Ntuple, data: dict[str, Any], field: str) -> None:
    values = data["jets"]["pt"] if field == "jets.pt" else data[field]
    values = np.asarray(ak.flatten(ak.Array(values), axis=None)).astype("f8")
    histogram = ntuple.hist(field, bins=10, step_size=500)
    counts, edges = np.histogram(values, 10)
    np.testing.assert_allclose(histogram.axes[0].edges, edges, rtol=1e-9)
    assert histogram.values(flow=True)[[0, -1]].tolist() == [0, 0]
    assert histogram.sum() == len(values)
    assert histogram.values().tolist() == counts.tolist()


def test_the_default_number_of_bins(ntuple: tupelo.Ntuple) -> None:
    assert len(ntuple.hist("x").axes[0]) == 100


def test_constant_and_empty_columns(ntuple: tupelo.Ntuple) -> None:
    with tupelo.recreate("same.root") as file:
        file["Events"] = {"same": np.full(4, 3.0), "big": np.full(4, 1e300), "lists": [[1.0], [], [], []]}
    same = tupelo.open("same.root:Events")
    assert same.hist("same", bins=2).axes[0].edges.tolist() == [2.5, 3.0, 3.5]
    assert same.hist("big", bins=1).values().tolist() == [4]
    assert same.hist("same", bins=1, entry_stop=0).axes[0].edges.tolist()[0] == 0
    assert same.hist("lists", bins=3, entry_start=1).sum(flow=True) == 0


def test_nan_counts_as_overflow_and_not_as_limit(ntuple: tupelo.Ntuple) -> None:
    histogram = ntuple.hist("odd", bins=1)
    assert histogram.axes[0].edges.tolist() == [0.0, 1.0]
    assert histogram.values(flow=True).tolist() == [0, ENTRIES / 4, ENTRIES * 3 / 4]


def test_missing_values_are_skipped(ntuple: tupelo.Ntuple, data: dict[str, Any]) -> None:
    known = np.asarray(ak.drop_none(data["maybe"]))
    assert (
        ntuple.hist("maybe", bins=5, range=(0, 4000)).values().tolist() == np.histogram(known, 5, (0, 4000))[0].tolist()
    )
    both = ntuple.hist("jets.pt", "maybe", bins=[3, 2], range=[(0, 100), (0, ENTRIES)])
    counts = np.asarray(ak.num(data["jets"]))
    assert both.sum(flow=True) == counts[np.arange(ENTRIES) % 3 != 0].sum()
    assert ntuple.hist("x", bins=3, weight="maybe").sum(flow=True).value == known.sum()


def test_several_dimensions(ntuple: tupelo.Ntuple, data: dict[str, Any]) -> None:
    edges = np.array([-2.0, -1.0, 0.5, 2.0])
    histogram = ntuple.hist(
        "jets.pt", "jets.eta", "x", bins=[4, edges, 2], range=[(0, 100), None, (-3, 3)], step_size=99
    )
    counts = np.asarray(ak.num(data["jets"]))
    values = [ak.flatten(data["jets"]["pt"]), ak.flatten(data["jets"]["eta"]), np.repeat(data["x"], counts)]
    expected, _ = np.histogramdd(
        [np.asarray(v) for v in values], [np.linspace(0, 100, 5), edges, np.linspace(-3, 3, 3)]
    )
    np.testing.assert_array_equal(histogram.values(), expected)
    assert [axis.name for axis in histogram.axes] == ["", "", "x"]
    assert [axis.label for axis in histogram.axes] == ["jets.pt", "jets.eta", "x"]


def test_weights(ntuple: tupelo.Ntuple, data: dict[str, Any]) -> None:
    weights = np.repeat(data["w"], np.asarray(ak.num(data["jets"])))
    pt = np.asarray(ak.flatten(data["jets"]["pt"]), dtype="f8")
    histogram = ntuple.hist("jets.pt", bins=10, range=(0, 100), weight="w", step_size=77)
    np.testing.assert_allclose(histogram.values(), np.histogram(pt, 10, (0, 100), weights=weights)[0])
    np.testing.assert_allclose(histogram.variances(), np.histogram(pt, 10, (0, 100), weights=weights**2)[0])
    items = ntuple.hist("jets.pt", bins=10, range=(0, 100), weight="jets.eta")
    eta = np.asarray(ak.flatten(data["jets"]["eta"]))
    np.testing.assert_allclose(items.values(), np.histogram(pt, 10, (0, 100), weights=eta)[0], atol=1e-9)
    assert ntuple.hist("w", bins=3, weight="w").sum().value == pytest.approx(data["w"].sum())


def test_many_histograms_in_one_pass(ntuple: tupelo.Ntuple, data: dict[str, Any]) -> None:
    """Each as if it was filled alone; what several need is read once."""
    jets = data["jets"]
    requests: dict[str, Any] = {
        "x": "x",
        "map": {"expressions": ["x", "w"], "range": [(-3, 3), (-3, 3)]},
        "some": {"expressions": "jets.pt", "cut": "len(jets.pt) > 1", "bins": 20, "range": (0, 100)},
        "weighted": {"expressions": ("jets.pt",), "weight": "w", "cut": "n > 0", "bins": [0, 10, 50]},
        "profile": {"expressions": "x", "sample": "w", "cut": "flag", "bins": 4, "range": (-2, 2)},
        "weighted profile": {"expressions": "x", "sample": "n", "weight": "w", "bins": 3, "range": (-1, 1)},
    }
    before = ntuple.metrics.unpacked_bytes
    found = ntuple.hist(requests, bins=30, range=(-3, 3), cut="n > -4", step_size=500)
    assert list(found) == list(requests)
    chosen = data["n"] > -4
    several = chosen & (np.asarray(ak.num(jets)) > 1)
    x, w, n = (data[name][chosen] for name in ("x", "w", "n"))
    assert np.array_equal(found["x"].values(), np.histogram(x, 30, (-3, 3))[0])
    assert np.array_equal(found["map"].values(), np.histogram2d(x, w, 30, [(-3, 3)] * 2)[0])
    assert np.array_equal(
        found["some"].values(), np.histogram(np.asarray(ak.flatten(jets.pt[several])), 20, (0, 100))[0]
    )
    positive = data["n"] > 0
    weights = np.asarray(ak.flatten(ak.broadcast_arrays(data["w"], jets.pt)[0][positive]))
    expected = np.histogram(np.asarray(ak.flatten(jets.pt[positive])), [0, 10, 50], weights=weights)[0]
    assert np.allclose(found["weighted"].values(), expected)
    flag = data["flag"][chosen]
    for low, mean, variance in zip(
        range(-2, 2), found["profile"].values(), found["profile"].view().variance, strict=True
    ):
        inside = w[flag & (x >= low) & (x < low + 1)]
        assert np.allclose((mean, variance), (inside.mean(), inside.var(ddof=1)))
    inside = (x >= -1) & (x < -1 / 3)
    assert np.isclose(found["weighted profile"].values()[0], np.average(n[inside], weights=w[inside]))
    together = ntuple.metrics.unpacked_bytes - before
    for name, request in requests.items():
        alone = ntuple.hist({name: request}, bins=30, range=(-3, 3), cut="n > -4", step_size=500)[name]
        assert np.allclose(alone.view(flow=True).tolist(), found[name].view(flow=True).tolist(), equal_nan=True)
    assert ntuple.metrics.unpacked_bytes - before - together > 2 * together
    measured = ntuple.hist({"a": "x", "b": {"expressions": "x", "cut": "x < 0"}}, bins=5)
    assert measured["a"].axes[0].edges[-1] == data["x"].max()
    assert np.isclose(measured["b"].axes[0].edges[-1], data["x"][data["x"] < 0].max())
    assert measured["b"].sum(flow=True) == (data["x"] < 0).sum()


@pytest.mark.parametrize(
    ("requests", "message"),
    [
        ({"a": {"bins": 3}}, r"histogram 'a': 'expressions' is missing"),
        ({"a": {"expressions": "x", "colour": 1}}, r"histogram 'a': unknown key 'colour'; expected bins, cut"),
        ({"a": []}, "histogram 'a': a histogram needs at least one expression"),
        ({"a": {"expressions": "x", "cut": "n"}}, "the cut 'n' has the type int32; expected one boolean"),
        ({"a": {"expressions": "jets.pt", "cut": "jets.pt > 1"}}, "expected one boolean for each entry"),
        ({}, "no histogram is named"),
        ({1: "x"}, "expected names of histograms as strings, not 1"),
    ],
)
def test_invalid_requests_are_rejected(ntuple: tupelo.Ntuple, requests: Any, message: str) -> None:
    with pytest.raises(tupelo.InvalidArgumentError, match=message):
        ntuple.hist(requests)


def test_given_axes(ntuple: tupelo.Ntuple, data: dict[str, Any]) -> None:
    logarithmic = hist.axis.Regular(5, 1, 100, transform=hist.axis.transform.log, name="pt", label="$p_T$")
    histogram = ntuple.hist("jets.pt", bins=logarithmic)
    assert histogram.axes[0] == logarithmic
    pt = np.asarray(ak.flatten(data["jets"]["pt"]), dtype="f8")
    assert histogram.sum() == ((pt >= 1) & (pt < 100)).sum()
    names = ntuple.hist("name", "n", bins=[bh.axis.StrCategory([], growth=True), bh.axis.Integer(-5, 6)])
    assert names.values().sum(axis=1).tolist() == [ENTRIES / 3] * 3
    assert names.values().sum(axis=0).tolist() == np.bincount(data["n"] + 5).tolist()


def test_values_for_a_single_axis_may_be_in_lists(ntuple: tupelo.Ntuple) -> None:
    expected = ntuple.hist("x", bins=5, range=(-1, 1))
    for bins in (5, [5]):
        assert ntuple.hist("x", bins=bins, range=[(-1, 1)]) == expected
    axis = bh.axis.Regular(5, -1, 1)
    assert ntuple.hist("x", bins=[axis]) == ntuple.hist("x", bins=axis)


def test_entries_by_range(ntuple: tupelo.Ntuple, data: dict[str, Any]) -> None:
    histogram = ntuple.hist("x", bins=8, range=(-2, 2), entry_start=-100, entry_stop=2990)
    assert histogram.values().tolist() == np.histogram(data["x"][-100:2990], 8, (-2, 2))[0].tolist()


def test_the_same_expression_on_two_axes(ntuple: tupelo.Ntuple) -> None:
    histogram = ntuple.hist("x", "x", bins=3, range=[(-2, 2)] * 2)
    assert [axis.name for axis in histogram.axes] == ["x", ""]
    assert np.count_nonzero(histogram.values() - np.diag(np.diag(histogram.values()))) == 0
    with tupelo.recreate("weight.root") as file:
        file["Events"] = {"weight": [1.0]}
    assert tupelo.open("weight.root:Events").hist("weight").axes[0].label == "weight"


def test_only_requested_fields_are_read(ntuple: tupelo.Ntuple) -> None:
    ntuple.hist("x", bins=5, range=(0, 1))
    assert ntuple.metrics is not None
    assert ntuple.metrics.unpacked_bytes == 8 * ENTRIES
    ntuple.hist("x", bins=5)
    assert ntuple.metrics.unpacked_bytes == 3 * 8 * ENTRIES


def test_expressions_are_axes(ntuple: tupelo.Ntuple, data: dict[str, Any]) -> None:
    doubled = ntuple.hist("2 * jets.pt", bins=10, range=(0, 200), cut="x > 0 and len(jets.pt) > 1", step_size=100)
    kept = data["jets"]["pt"][(data["x"] > 0) & (ak.num(data["jets"]) > 1)]
    values = 2 * np.asarray(ak.flatten(kept), dtype="f8")
    assert doubled.values().tolist() == np.histogram(values, 10, (0, 200))[0].tolist()
    assert doubled.axes[0].label == "2 * jets.pt"
    assert ntuple.hist("x", bins=4, cut="x > 1").axes[0].edges[0] == data["x"][data["x"] > 1].min()
    assert ntuple.hist("x", bins=4, cut="x > 1000").sum(flow=True) == 0


def test_aliases_and_weights_are_expressions(ntuple: tupelo.Ntuple, data: dict[str, Any]) -> None:
    histogram = ntuple.hist(
        "square", "n", bins=[4, 11], range=[(0, 4), (-5.5, 5.5)], weight="w * w", aliases={"square": "x**2"}
    )
    edges = [np.linspace(0, 4, 5), np.linspace(-5.5, 5.5, 12)]
    expected, _ = np.histogramdd([data["x"] ** 2, data["n"]], edges, weights=data["w"] ** 2)
    np.testing.assert_allclose(histogram.values(), expected)
    assert histogram.axes[0].name == "square"


def test_one_field_and_one_expression_of_a_collection(ntuple: tupelo.Ntuple, data: dict[str, Any]) -> None:
    histogram = ntuple.hist("jets.pt", "abs(jets.eta)", bins=[2, 3], range=[(0, 50), (0, 3)])
    values = [np.asarray(ak.flatten(v), dtype="f8") for v in (data["jets"]["pt"], abs(data["jets"]["eta"]))]
    expected, _ = np.histogramdd(values, [np.linspace(0, 50, 3), np.linspace(0, 3, 4)])
    np.testing.assert_array_equal(histogram.values(), expected)


@pytest.mark.parametrize(
    ("expressions", "options", "text"),
    [
        ([], {}, "a histogram needs at least one expression"),
        ([3], {}, "expected expressions as strings, not 3"),
        ([["x", "n"]], {}, r"expected expressions as strings, .*; pass them separately: hist\('x', 'y'\)"),
        (["x"], {"bins": 0}, "the axis of 'x' needs at least one bin, not 0"),
        (["x"], {"bins": True}, "the axis of 'x' needs at least one bin, not True"),
        (["x"], {"bins": [1, 1]}, "bins of 'x': expected a number, increasing edges, or an axis"),
        (["x"], {"bins": "many"}, "bins of 'x': expected .*, not 'many'"),
        (["x"], {"range": (1, 1)}, "range of 'x': expected \\(lower edge, upper edge\\)"),
        (["x"], {"range": (0, np.inf)}, "range of 'x': expected"),
        (["x"], {"range": 5}, "range of 'x': expected .*, not 5"),
        (["x", "n"], {"range": (0, 1)}, "range of 'x': expected .*, for several axes a list of such pairs, not 0"),
        (["x", "n"], {"bins": [1, 2, 3]}, "got bins for 3 axes, expected 2"),
        (["jets.pt", "hits"], {"range": [(0, 1)] * 2}, "'jets.pt' and 'hits' have different numbers of items"),
        (["x"], {"range": (0, 1), "weight": "name"}, "'name' has the type string; expected numbers"),
        (["jets"], {"range": (0, 1)}, r"'jets' has the type \{pt: float32, eta: float64\}; expected numbers"),
        (["jets.*"], {"range": (0, 1)}, "selects several fields"),
        (["x"], {"progress": 3}, "expected progress as True, None, a function"),
    ],
)
def test_invalid_arguments_are_rejected(
    ntuple: tupelo.Ntuple, expressions: list[Any], options: dict[str, Any], text: str
) -> None:
    with pytest.raises(tupelo.InvalidArgumentError, match=text):
        ntuple.hist(*expressions, **options)


@pytest.mark.parametrize("values", [[np.finfo("f8").max] * 2, [-np.finfo("f8").max, 6.0, np.finfo("f8").max]])
def test_values_that_are_too_far_apart_need_a_range(values: list[float]) -> None:
    with tupelo.recreate("far.root") as file:
        file["Events"] = {"x": values}
    events = tupelo.open("far.root:Events")
    with pytest.raises(
        tupelo.InvalidArgumentError, match=r"range of 'x': the values from .* need limits; give a range"
    ):
        events.hist("x")
    assert events.hist("x", range=(0, 10), bins=2).values().tolist() == [0, float(6.0 in values)]


def test_all_histograms_together_are_limited(ntuple: tupelo.Ntuple) -> None:
    many = {str(number): {"expressions": "x", "bins": 10**8, "range": (0, 1)} for number in range(2)}
    with pytest.raises(tupelo.LimitError, match="histograms with 200000004 bins exceed the limit"):
        ntuple.hist(many)


@pytest.mark.parametrize("axis", [bh.axis.Boolean(), bh.axis.Integer(0, 5), bh.axis.StrCategory(["a"])])
def test_axes_that_do_not_take_the_values_are_refused(ntuple: tupelo.Ntuple, axis: Any) -> None:
    with pytest.raises(tupelo.InvalidArgumentError, match="the histogram of 'x' does not take the values: "):
        ntuple.hist("x", bins=axis)


def test_unknown_fields_are_reported(ntuple: tupelo.Ntuple) -> None:
    with pytest.raises(tupelo.NotFoundError, match=r"jets\.pz"):
        ntuple.hist("jets.pz")


def test_without_hist(ntuple: tupelo.Ntuple, data: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hist", None)
    histogram = ntuple.hist("x", "jets.pt", bins=[3, [0, 10, 20]], range=[(-1, 1), None])
    assert type(histogram) is bh.Histogram
    assert [axis.metadata for axis in histogram.axes] == ["x", "jets.pt"]
    monkeypatch.setitem(sys.modules, "boost_histogram", None)
    with pytest.raises(ImportError, match=r"hist\(\) needs boost_histogram.*pip install hist"):
        ntuple.hist("x")


def test_a_range_with_edges_is_rejected(ntuple: tupelo.Ntuple) -> None:
    """Regression: the range was ignored."""
    for bins in ([0, 1, 2], bh.axis.Regular(3, 0, 1)):
        with pytest.raises(tupelo.InvalidArgumentError, match="the axis of 'x' has explicit edges"):
            ntuple.hist("x", bins=bins, range=(0, 100))


def test_a_broken_hist_is_reported(ntuple: tupelo.Ntuple, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: it silently returned another class of histograms."""
    Path("hist.py").write_text("import no_such_module_of_hist\n")
    monkeypatch.delitem(sys.modules, "hist")
    monkeypatch.syspath_prepend(".")
    with pytest.raises(ImportError, match=r"hist, which cannot be loaded \(No module named 'no_such_module_of_hist'"):
        ntuple.hist("x")


def test_progress_covers_both_passes(ntuple: tupelo.Ntuple) -> None:
    told: list[tuple[int, int]] = []
    ntuple.hist("x", bins=3, step_size=1000, progress=lambda done, total: told.append((done, total)))
    assert [done for done, _ in told] == [0, 1000, 2000, 3000, 3000, 4000, 5000, 6000]
    assert {total for _, total in told} == {6000}
    told.clear()
    ntuple.hist("x", bins=3, range=(0, 1), step_size=1000, progress=lambda done, total: told.append((done, total)))
    assert told == [(0, 3000), (1000, 3000), (2000, 3000), (3000, 3000)]


def test_real_muons() -> None:
    path = DATA / "cms_run2012_dimuon_ntuple.root"
    if not path.exists():
        return
    ntuple = tupelo.open(f"{path}:Events")
    pt = ak.flatten(ntuple["Muon_pt"].array())
    histogram = ntuple.hist("Muon_pt", bins=50, range=(0, 100), step_size=100)
    assert histogram.values().tolist() == np.histogram(np.asarray(pt, dtype="f8"), 50, (0, 100))[0].tolist()
    assert "█" in str(histogram)


def random_axis(rng: np.random.Generator) -> bh.axis.Regular:
    """An axis of equal bins."""
    low = rng.normal() * 10.0 ** rng.integers(-3, 4)
    return bh.axis.Regular(int(rng.integers(1, 30)), low, low + 10.0 ** rng.integers(-2, 4) * (rng.random() + 0.1))


def random_values(rng: np.random.Generator, axis: bh.axis.Regular, count: int) -> np.ndarray:
    """Values within and around an axis, on its edges, and special ones, in some type."""
    low, width = axis.edges[0], axis.edges[-1] - axis.edges[0]
    values = rng.uniform(low - width / 2, low + 3 * width / 2, count)
    special = [np.nan, np.inf, -np.inf, 1e300, -1e300, 0.0, -0.0]
    for share, choices in ((0.2, axis.edges), (0.05, special)):
        chosen = rng.random(count) < share
        values[chosen] = rng.choice(choices, chosen.sum())
    kind = rng.choice(["f8", "f4", "i8", "i4", "u2"])
    if kind[0] != "f":
        limits = np.iinfo(kind)
        values = np.nan_to_num(values).clip(max(limits.min, -(2**53)), min(limits.max, 2**53))
    with np.errstate(over="ignore"):
        return values.astype(kind)


@pytest.mark.parametrize("seed", range(4))
def test_own_filling_gives_what_the_library_gives(seed: int) -> None:
    """Every bin to the last bit, with one to three axes, with and without weights, in several batches."""
    rng = np.random.default_rng(seed)
    for trial in range(100):
        axes = [random_axis(rng) for _ in range(rng.integers(1, 4))]
        storage = bh.storage.Weight if trial % 2 else bh.storage.Double
        expected, filled = (bh.Histogram(*axes, storage=storage()) for _ in range(2))
        for _ in range(2):
            count = int(rng.integers(0, 4000))
            values = [random_values(rng, axis, count) for axis in axes]
            weight = rng.normal(size=count) if trial % 2 else None
            expected.fill(*values, weight=weight)
            assert _regular.is_filled_here(axes, values, weight)
            _regular.fill(filled, axes, values, [False] * len(axes), weight)
        assert np.array_equal(expected.view(flow=True), filled.view(flow=True)), (axes, trial)


def test_own_filling_is_for_plain_axes_of_equal_bins() -> None:
    """The library fills all others."""
    regular, values = bh.axis.Regular(4, 0, 1), np.zeros(3)
    others = [
        bh.axis.Regular(4, 1, 2, transform=bh.axis.transform.log),
        bh.axis.Regular(4, 0, 1, circular=True),
        bh.axis.Regular(4, 0, 1, growth=True),
        bh.axis.Regular(4, 0, 1, underflow=False),
        bh.axis.Regular(4, 0, 1, overflow=False),
        bh.axis.Variable([0, 1]),
        bh.axis.Integer(0, 4),
        bh.axis.Regular(_regular.MAX_BINS, 0, 1),
    ]
    assert _regular.is_filled_here([regular], [values], None)
    assert not any(_regular.is_filled_here([axis], [values], None) for axis in others)
    assert not _regular.is_filled_here([regular], [values.astype("f2")], None)
    assert not _regular.is_filled_here([regular], [["a"]], None)
    for sums, given, weights in [
        (np.zeros(5), values, None),
        (np.zeros(6), values.astype("f2"), None),
        (np.zeros(12), values, np.zeros(2)),
        (np.zeros(6), values, values),
    ]:
        axes = [((0.0, 1.0, 4, False), pa.array(given))]
        with pytest.raises(TypeError, match="expected"):
            _core.fill_regular(pa.array(sums), axes, None if weights is None else pa.array(weights))


@pytest.mark.parametrize("first", [0, 3])
def test_lists_of_numbers_are_flattened_as_awkward_does(first: int) -> None:
    """Also those of a batch that begins within its memory, and of entries that a cut keeps."""
    rng = np.random.default_rng(7)
    counts = rng.integers(0, 4, 50)
    items = ak.unflatten(np.arange(counts.sum()), counts)
    other = ak.unflatten(np.arange(counts.sum() + 1), np.append(counts[:-1], counts[-1] + 1))
    columns = {
        "items": items,
        "twice": 2.5 * items,
        "equal": ak.unflatten(np.arange(counts.sum()), counts),
        "missing": ak.mask(items, items % 3 > 0),
        "x": np.arange(50),
        "other": other,
        "few": np.arange(50) % 7 > 2,
        "unknown": ak.mask(np.arange(50) < 40, np.arange(50) % 4 > 0),
    }
    batch = ak.zip(columns, depth_limit=1)[first:]
    flat = _columns.BatchColumns(batch, {})
    for wanted in (
        ["items"],
        ["x"],
        ["items", "twice", "x"],
        ["equal", "items"],
        ["x", "missing"],
        ["missing", "twice"],
    ):
        for cut in (None, "few", "unknown"):
            given = [batch[name] for name in wanted]
            kept = given if cut is None else [column[ak.fill_none(batch[cut], False)] for column in given]
            expected = [ak.to_numpy(column) for column in _columns.flatten_together(kept, wanted)]
            # The second time, all is known.
            for found in (flat.flat(wanted, cut), flat.flat(wanted, cut)):
                assert [ak.to_numpy(one).tolist() for one in found] == [one.tolist() for one in expected]
    # The lists of "other" differ in the last entry only, which "few" leaves out.
    assert len(flat.flat(["other", "items"], "few")[0]) == len(flat.flat(["items"], "few")[0])
    with pytest.raises(tupelo.InvalidArgumentError, match="'other' and 'items' have different numbers of items"):
        flat.flat(["other", "items"], None)
