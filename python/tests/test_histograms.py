"""Histograms, profiles, graphs and efficiencies of files, compared with ROOT and uproot."""

import tracemalloc
from pathlib import Path
from typing import Any

import boost_histogram as bh
import hist
import numpy as np
import pytest
import uproot
from conftest import DATA
from programs import run_root
from uhi.typing.plottable import PlottableHistogram

import tupelo

# Histograms of every type of bins and number of axes, weighted, with variable bins and labels.
WRITE = """
import json, os, sys
from array import array
import ROOT
random = ROOT.TRandom3(1)
file = ROOT.TFile(sys.argv[1], "RECREATE")
made = []
for letter in "CSIFD":
    for n in (1, 2, 3):
        bins = (5, 0.0, 1.0, 4, -1.0, 1.0, 3, 0.0, 3.0)[: 3 * n]
        made.append(getattr(ROOT, f"TH{n}{letter}")(f"h{n}{letter}", f"title {n};x axis;y axis;z axis", *bins))
        for _ in range(60):
            made[-1].Fill(*(random.Uniform(-0.2, 1.2) for _ in range(n)))
weighted = ROOT.TH1D("weighted", "w", 4, array("d", [0.0, 1.0, 1.5, 4.0, 5.0]))
labelled = ROOT.TH1F("labelled", "l", 3, 0, 3)
for number, label in enumerate("abc", 1):
    labelled.GetXaxis().SetBinLabel(number, label)
labelled.Fill("b", 2.0)
weighted2 = ROOT.TH2F("weighted2", "w", 3, 0, 3, 2, array("d", [0.0, 0.25, 1.0]))
for h in (weighted, weighted2):
    h.Sumw2()
    for _ in range(50):
        weights = [random.Uniform(0.5, 2)]
        h.Fill(*(random.Uniform(-0.5, 5.5) for _ in range(h.GetDimension())), *weights)
made += [weighted, labelled, weighted2]
for name, option in (("profile", ""), ("spread", "s"), ("integer", "i"), ("gauss", "g")):
    made.append(ROOT.TProfile(name, "p", 5, 0, 5, option))
made += [ROOT.TProfile("weighted_profile", "p", 5, 0, 5), ROOT.TProfile2D("profile2", "p", 3, 0, 3, 2, 0, 2)]
made += [ROOT.TProfile3D("profile3", "p", 2, 0, 2, 2, 0, 2, 2, 0, 2)]
made[-3].Sumw2()
for profile in made[-7:]:
    for _ in range(100):
        n = profile.GetDimension()
        weights = [random.Uniform(0.5, 2)] if profile.GetName() == "weighted_profile" else []
        profile.Fill(*(random.Uniform(-0.5, 3) for _ in range(n)), random.Gaus(3), *weights)
numbers = [array("d", [random.Uniform() for _ in range(4)]) for _ in range(6)]
graphs = [ROOT.TGraph(4, *numbers[:2]), ROOT.TGraphErrors(4, *numbers[:4]), ROOT.TGraphAsymmErrors(4, *numbers)]
for graph in graphs:
    graph.SetTitle("points")
    graph.Write(graph.ClassName())
total, passed = ROOT.TH1D("total", "", 4, 0, 4), ROOT.TH1D("passed", "", 4, 0, 4)
for number, (all_entries, some) in enumerate([(10, 3), (7, 7), (5, 0), (0, 0)], 1):
    total.SetBinContent(number, all_entries)
    passed.SetBinContent(number, some)
options = ("kFCP", "kFNormal", "kFWilson", "kFAC", "kBJeffrey", "kBUniform", "kFFC")
expected = {}
for option in options:
    efficiency = ROOT.TEfficiency(passed, total)
    efficiency.SetStatisticOption(getattr(ROOT.TEfficiency, option))
    efficiency.Write(option)
    expected[option] = [
        [getattr(efficiency, name)(i) for i in range(1, 5)]
        for name in ("GetEfficiency", "GetEfficiencyErrorLow", "GetEfficiencyErrorUp")
    ]
weighted_events = ROOT.TEfficiency("weighted_events", "", 2, 0, 2)
weighted_events.SetUseWeightedEvents()
weighted_events.FillWeighted(True, 0.5, 0.5)
weighted_events.FillWeighted(False, 1.5, 0.5)
weighted_events.Write()
planes = ROOT.TEfficiency("planes", "", 2, 0, 2, 3, 0, 3)
for n in range(12):
    planes.Fill(n % 4 == 0, n % 2 + 0.5, n % 3 + 0.5)
planes.Write()
cells = {h.GetName(): [[h.GetBinContent(i), h.GetBinError(i)] for i in range(h.GetNcells())] for h in made}
for h in made:
    h.Write()
file.mkdir("dir").cd()
ROOT.TNamed("note", "a text").Write()
ROOT.TObjString("text").Write("text")
file.Close()
print("JSON", json.dumps([expected, cells]), flush=True)
# ROOT may crash when Python deletes what the file owned.
os._exit(0)
"""

READ = """
import sys, json
import ROOT
file = ROOT.TFile(sys.argv[1])
found = {}
for key in file.GetListOfKeys():
    h = key.ReadObj()
    axes = [h.GetXaxis(), h.GetYaxis(), h.GetZaxis()][: h.GetDimension()]
    found[key.GetName()] = {
        "class": h.ClassName(), "name": h.GetName(), "title": h.GetTitle(), "entries": h.GetEntries(),
        "cells": [[h.GetBinContent(i), h.GetBinError(i)] for i in range(h.GetNcells())],
        "edges": [[a.GetBinLowEdge(i) for i in range(1, a.GetNbins() + 2)] for a in axes],
        "labels": [[a.GetBinLabel(i) for i in range(1, a.GetNbins() + 1)] for a in axes],
        "titles": [a.GetTitle() for a in axes],
        "weights": h.GetSumOfWeights(), "mean": [h.GetMean(i + 1) for i in range(len(axes))],
        "rms": [h.GetRMS(i + 1) for i in range(len(axes))],
        "integral": h.Integral(),
    }
print("JSON", json.dumps(found))
"""


@pytest.fixture(scope="module")
def written_by_root(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, Any]:
    path = tmp_path_factory.mktemp("root") / "histograms.root"
    efficiencies, cells = run_root(WRITE, path)
    return path, efficiencies, cells


def flat(values: np.ndarray) -> list[float]:
    """Bins in the order of ROOT."""
    return values.T.reshape(-1).tolist()


BIN_ERRORS = """
import sys, json, os
import ROOT
ROOT.TH1.SetDefaultSumw2(False)
file = ROOT.TFile(sys.argv[1], "RECREATE")
made = []
for dimension in 1, 2, 3:
    for letter in "CSIFD":
        made.append(getattr(ROOT, f"TH{dimension}{letter}")(f"h{dimension}{letter}", "", *(3, 0.0, 3.0) * dimension))
        for cell in range(made[-1].GetNcells()):
            made[-1].SetBinContent(cell, (cell * 7 % 5 - 2) * (1.5 if letter in "FD" else 1))
    letter = "" if dimension == 1 else f"{dimension}D"
    for option in "", "s", "i", "g":
        for weights in (1,), (1, 2.5), (1, -3):
            name = f"p{dimension}{option}{len(made)}"
            made.append(getattr(ROOT, f"TProfile{letter}")(name, "", *(4, 0.0, 4.0) * dimension, option))
            for number, weight in enumerate(weights * 3):
                place = [number % 2 + 0.5] * dimension
                made[-1].Fill(*place, number * number - 1.5, weight)
cells = {h.GetName(): [[h.GetBinContent(i), h.GetBinError(i)] for i in range(h.GetNcells())] for h in made}
for h in made:
    h.Write()
file.Close()
print("JSON", json.dumps([cells]), flush=True)
os._exit(0)
"""


def test_bin_errors_are_those_of_root(tmp_path: Path) -> None:
    """Regression: negative bins without sums of squared weights had negative variances, empty bins of profiles NaN."""
    (cells,) = run_root(BIN_ERRORS, tmp_path / "h.root")
    file = tupelo.open(tmp_path / "h.root")
    assert isinstance(file, tupelo.File)
    assert len(cells) == 15 + 36
    for name, expected in cells.items():
        ours = file[name]
        assert isinstance(ours, tupelo.Histogram)
        found = zip(flat(ours.values(True)), flat(ours.errors(True)), strict=True)
        for (value, error), (their_value, their_error) in zip(found, expected, strict=True):
            assert value == their_value, name
            assert error == pytest.approx(their_error, nan_ok=True), name
        assert np.isnan(ours.variances(True)).tolist() == np.isnan(ours.errors(True)).tolist()
    with tupelo.recreate(tmp_path / "again.root") as again:
        again["h"] = file["h1D"]
    written = tupelo.open(tmp_path / "again.root")
    assert isinstance(written, tupelo.File)
    assert not written["h"].is_weighted


def test_histograms_of_root_are_those_of_uproot(written_by_root: tuple[Path, Any, Any]) -> None:
    path, _, cells = written_by_root
    file = tupelo.open(path)
    assert isinstance(file, tupelo.File)
    assert file.keys() == []
    assert "h1D" in file
    assert "dir" not in file
    with uproot.open(path) as judge:
        for name, bins in cells.items():
            ours, theirs = file[name], judge[name]
            assert isinstance(ours, tupelo.Histogram)
            assert isinstance(ours, PlottableHistogram)
            assert (ours.name, ours.title, ours.class_name) == (name, theirs.title, theirs.classname)
            assert flat(ours.values(flow=True)) == [content for content, _ in bins], name
            assert flat(ours.errors(flow=True)) == pytest.approx([error for _, error in bins]), name
            for flow in (False, True):
                if name in ("profile3",):
                    continue
                assert np.array_equal(np.nan_to_num(ours.values(flow)), theirs.values(flow)), name
                if name not in ("spread", "integer", "gauss"):
                    assert np.nan_to_num(ours.variances(flow)) == pytest.approx(theirs.variances(flow)), name
                    assert np.nan_to_num(ours.errors(flow)) == pytest.approx(theirs.errors(flow)), name
                if ours.kind == "MEAN" or not ours.is_weighted:
                    # Of weighted histograms they are effective entries, as UHI has it.
                    assert ours.counts(flow) == pytest.approx(theirs.counts(flow)), name
                if ours.kind == "COUNT":
                    for one, other in zip(ours.to_numpy(flow), theirs.to_numpy(flow), strict=True):
                        assert np.array_equal(one, other), name
            for number, axis in enumerate(ours.axes):
                assert np.allclose(axis.edges, theirs.axes[number].edges(), rtol=1e-15), name
                assert not axis.traits.discrete or list(axis) == list(theirs.axes[number])
                assert axis.title == theirs.axes[number].all_members["fTitle"]
            converted = ours.to_hist()
            assert isinstance(converted, hist.Hist)
            assert np.array_equal(np.nan_to_num(converted.values()), np.nan_to_num(ours.values())), name
    assert list(file["labelled"].axes[0]) == ["a", "b", "c"]
    assert file["labelled"].num_entries == 1


def test_graphs_are_those_of_uproot(written_by_root: tuple[Path, Any, Any]) -> None:
    path, _, _ = written_by_root
    file = tupelo.open(path)
    assert isinstance(file, tupelo.File)
    with uproot.open(path) as judge:
        for name in ("TGraph", "TGraphErrors", "TGraphAsymmErrors"):
            ours, theirs = file[name], judge[name]
            assert isinstance(ours, tupelo.Graph)
            assert repr(ours) == f"<tupelo.Graph '{ours.name}': {name}, 4 points>"
            assert (len(ours), ours.title) == (4, "points")
            for axis, member in {"x": "fX", "y": "fY", 0: "fX", -1: "fY"}.items():
                assert np.array_equal(ours.values(axis), theirs.member(member))
            assert np.array_equal(ours.values(), (theirs.member("fX"), theirs.member("fY")))
        errors = judge["TGraphErrors"].member("fEX"), judge["TGraphErrors"].member("fEY")
        assert np.array_equal(file["TGraphErrors"].errors("high"), errors)
        for which in ("low", "high", "mean", "diff"):
            errors = judge["TGraphAsymmErrors"].errors(which)
            assert np.array_equal(file["TGraphAsymmErrors"].errors(which), errors)
    assert file["TGraph"].errors(axis="x").tolist() == [0, 0, 0, 0]
    with pytest.raises(tupelo.InvalidArgumentError, match="'x', 'y' or 'both', not 'z'"):
        file["TGraph"].values("z")
    with pytest.raises(tupelo.InvalidArgumentError, match="not 'up'"):
        file["TGraph"].errors("up")


def test_efficiencies_have_the_errors_of_root(written_by_root: tuple[Path, Any, Any]) -> None:
    path, efficiencies, _ = written_by_root
    names = {"kFCP": "Clopper-Pearson", "kFAC": "Agresti-Coull", "kBJeffrey": "Bayesian with Jeffreys prior"}
    for option, (values, low, high) in efficiencies.items():
        ours = tupelo.open(f"{path}:{option}")
        assert isinstance(ours, tupelo.Efficiency)
        assert ours.statistic == names.get(option, ours.statistic)
        assert ours.values().tolist() == pytest.approx(values), option
        assert (ours.passed.values().tolist(), ours.total.values().tolist()) == ([3, 7, 0, 0], [10, 7, 5, 0])
        assert ours.axes == ours.total.axes
        if option == "kFFC":
            with pytest.raises(tupelo.UnsupportedError, match="errors of the statistic 'Feldman-Cousins'"):
                ours.errors()
            continue
        assert ours.errors()[0].tolist() == pytest.approx(low, abs=1e-12), option
        assert ours.errors()[1].tolist() == pytest.approx(high, abs=1e-12), option
        assert ours.errors(flow=True)[0].shape == (6,)
    weighted, planes = tupelo.open(f"{path}:weighted_events"), tupelo.open(f"{path}:planes")
    assert isinstance(weighted, tupelo.Efficiency)
    assert isinstance(planes, tupelo.Efficiency)
    assert (weighted.is_weighted, weighted.values().tolist()) == (True, [0.25, 0])
    with pytest.raises(
        tupelo.UnsupportedError, match="'weighted_events': errors of weighted entries are not supported"
    ):
        weighted.errors()
    assert repr(planes) == "<tupelo.Efficiency 'planes': 2 x 3 bins, Clopper-Pearson>"
    assert planes.values().tolist() == [[0.5, 0.5, 0.5], [0, 0, 0]]


def test_objects_of_other_classes(written_by_root: tuple[Path, Any, Any]) -> None:
    path, _, _ = written_by_root
    file = tupelo.open(path)
    assert isinstance(file, tupelo.File)
    named = file["dir/note"]
    assert isinstance(named, tupelo.Instance)
    assert (named.class_name, named["fTitle"]) == ("TNamed", "a text")
    assert file["dir/text;1"] == "text"
    with pytest.raises(tupelo.NotFoundError, match=r"no object named 'h1X' .*'h1[A-Z]'"):
        file["h1X"]
    with pytest.raises(tupelo.InvalidArgumentError, match="'dir' is a directory"):
        file["dir"]
    with pytest.raises(tupelo.UnsupportedError, match="'h1D' is a TH1D, neither an RNTuple nor a tree"):
        next(tupelo.iterate(f"{path}:h1D"))


def examples() -> dict[str, Any]:
    """Histograms of other libraries."""
    x, y, z = np.random.default_rng(2).normal(1, 1, (3, 200))
    return {
        "double": hist.new.Reg(4, 0, 2, label="x [GeV]").Double().fill(x),
        "weight": hist.new.Reg(4, 0, 2).Var([0, 0.5, 3]).Weight().fill(x, y, weight=z * z),
        "int64": hist.new.Reg(4, 0, 2).Int64().fill(x),
        "three": hist.new.Reg(3, 0, 2).Reg(2, 0, 2).Reg(2, -1, 3).Double().fill(x, y, z),
        "category": hist.new.StrCat(["a", "b c", "d"], label="kind").Double().fill(["a", "d", "d", "e"]),
        "growing": hist.new.StrCat([], growth=True).Int64().fill(["p", "q", "p"]),
        "integers": hist.new.Int(-1, 4).Double().fill([-2, -1, 0, 3, 9]),
        "numbers": hist.new.IntCat([1, 5, 9]).Double().fill([1, 9, 9]),
        "no flow": hist.Hist(hist.axis.Regular(3, 0, 3, underflow=False, overflow=False)).fill([0.5, 7, 1]),
        "overflow": hist.Hist(hist.axis.Regular(3, 0, 3, underflow=False)).fill([0.5, 7, 1]),
        "mean": hist.new.Reg(4, 0, 2).Mean().fill(x, sample=y),
        "weighted mean": hist.new.Reg(4, 0, 2).WeightedMean().fill(x, sample=y, weight=z * z),
        "mean2": hist.new.Reg(4, 0, 2).Reg(2, 0, 1).Mean().fill(x, y, sample=z),
        "boost": bh.Histogram(bh.axis.Variable([0, 1, 3]), storage=bh.storage.Double()).fill(x),
        "numpy": np.histogram(x, bins=5),
        "numpy floats": np.histogram(x, bins=[0, 1, 5], weights=y.astype(np.float32)),
        "numpy2": np.histogram2d(x, y, bins=(3, [0, 1, 5])),
        "numpydd": np.histogramdd((x, y, z), bins=3),
        "dir/below": hist.new.Reg(4, 0, 2).Double().fill(x),
    }


CLASSES = {
    "weight": "TH2D",
    "int64": "TH1I",
    "three": "TH3D",
    "growing": "TH1I",
    "mean": "TProfile",
    "weighted mean": "TProfile",
    "mean2": "TProfile2D",
    "numpy": "TH1I",
    "numpy floats": "TH1F",
    "numpy2": "TH2D",
    "numpydd": "TH3D",
}


def contents(data: Any) -> tuple[Any, Any]:
    """Values and variances inside the axes."""
    if isinstance(data, tuple):
        return data[0], data[0]
    return data.values(), data.variances()


def test_histograms_are_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "a.root"
    with tupelo.recreate(path) as file:
        for name, data in examples().items():
            file[name] = data
        file["Events"] = {"x": [1, 2]}
    assert not list(tmp_path.glob("*.tmp*"))
    file = tupelo.open(path)
    assert isinstance(file, tupelo.File)
    assert file.keys() == ["Events"]
    with uproot.open(path) as judge:
        for name, data in examples().items():
            ours, theirs = file[name], judge[name]
            assert ours.class_name == CLASSES.get(name, "TH1D"), name
            assert theirs.classname == ours.class_name
            values, variances = contents(data)
            for read in (ours, theirs):
                assert np.nan_to_num(read.values()) == pytest.approx(np.nan_to_num(values)), name
            filled = ours.counts() > 1
            assert ours.variances()[filled] == pytest.approx(variances[filled]) or "mean" in name, name
            assert np.nan_to_num(ours.variances()) == pytest.approx(theirs.variances()), name
            assert np.array_equal(np.nan_to_num(ours.values(True)), theirs.values(flow=True)), name
            if not isinstance(data, tuple):
                for axis, other in zip(ours.axes, data.axes, strict=True):
                    if not other.traits.discrete:
                        assert axis.edges == pytest.approx(other.edges, rel=1e-15), name
    assert (file["double"].axes[0].title, file["dir/below"].name) == ("x [GeV]", "below")
    assert list(file["category"].axes[0]) == ["a", "b c", "d"]
    assert list(file["numbers"].axes[0]) == ["1", "5", "9"]
    assert file["category"].values(flow=True).tolist() == [0, 1, 0, 2, 1]
    assert file["integers"].axes[0].edges.tolist() == [-1, 0, 1, 2, 3, 4]
    assert file["overflow"].values(flow=True).tolist() == [0, 1, 1, 0, 1]
    assert file["weight"].is_weighted


def test_root_reads_what_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.root"
    with tupelo.recreate(path) as file:
        for name, data in examples().items():
            if "/" not in name:
                file[name] = data
    found = run_root(READ, path)
    read = tupelo.open(path)
    assert isinstance(read, tupelo.File)
    for name, root in found.items():
        ours = read[name]
        assert (root["class"], root["name"], root["title"]) == (ours.class_name, name, ours.title)
        assert flat(ours.values(flow=True)) == [content for content, _ in root["cells"]], name
        assert flat(ours.errors(flow=True)) == pytest.approx([error for _, error in root["cells"]]), name
        assert root["entries"] == pytest.approx(ours.num_entries)
        for axis, edges, labels, title in zip(ours.axes, root["edges"], root["labels"], root["titles"], strict=True):
            assert edges == pytest.approx(axis.edges.tolist(), rel=1e-15)
            assert labels == ([label or "" for label in axis.labels] or [""] * len(axis))
            assert title == axis.title
        weights = ours.values() if ours.kind == "COUNT" else np.asarray(ours.to_boost().view(flow=False)["value"] * 0)
        if ours.kind == "COUNT":
            assert root["integral"] == pytest.approx(weights.sum())
            assert root["weights"] == pytest.approx(weights.sum())
            for number, axis in enumerate(ours.axes):
                sums = weights.sum(axis=tuple(n for n in range(weights.ndim) if n != number))
                centres = (axis.edges[1:] + axis.edges[:-1]) / 2
                mean = np.average(centres, weights=sums)
                assert root["mean"][number] == pytest.approx(mean), name
                spread = np.sqrt(np.average(centres**2, weights=sums) - mean**2)
                assert root["rms"][number] == pytest.approx(spread, abs=1e-7), name
    assert set(found) == {name for name in examples() if "/" not in name}
    assert found["weight"]["entries"] != found["double"]["entries"]


def test_histograms_of_root_are_written_back(written_by_root: tuple[Path, Any, Any], tmp_path: Path) -> None:
    source, _, cells = written_by_root
    path = tmp_path / "back.root"
    before = tupelo.open(source)
    assert isinstance(before, tupelo.File)
    with tupelo.recreate(path) as file, uproot.open(source) as judge:
        for name in cells:
            file[name] = before[name]
            if before[name].kind == "COUNT":
                file[f"uproot {name}"] = judge[name]
    after = tupelo.open(path)
    assert isinstance(after, tupelo.File)
    found = run_root(READ, path)
    for name, bins in cells.items():
        one, other = before[name], after[name]
        assert one.class_name == other.class_name
        assert (one.title, one.num_entries, one.axes) == (other.title, other.num_entries, other.axes)
        assert np.array_equal(one.values(True), other.values(True), equal_nan=True)
        assert np.array_equal(one.variances(True), other.variances(True), equal_nan=True)
        assert [content for content, _ in found[name]["cells"]] == [content for content, _ in bins]
        assert [error for _, error in found[name]["cells"]] == pytest.approx([error for _, error in bins])
        for member in ("fTsumw", "fTsumwx2", "fLineColor", "fMaximum", "fBits"):
            assert one.members[member] == other.members[member]
        if one.kind == "COUNT":
            copied = after[f"uproot {name}"]
            assert (copied.class_name, copied.title) == (one.class_name, one.title)
            assert np.array_equal(copied.values(True), one.values(True))
            assert copied.axes == one.axes
            assert [axis.title for axis in copied.axes] == [axis.title for axis in one.axes]


def test_an_update_adds_histograms(tmp_path: Path) -> None:
    path = tmp_path / "a.root"
    with uproot.recreate(path) as other:
        other["theirs"] = np.histogram([1.0, 2.0], bins=2)
    before = path.read_bytes()
    counts = np.array([1, 2, 3], dtype=np.int32), np.array([0.0, 1.0, 2.0, 3.0])

    def interrupted() -> None:
        with tupelo.update(path) as file:
            file["ours"] = counts
            raise RuntimeError

    with pytest.raises(RuntimeError):
        interrupted()
    assert path.read_bytes() == before
    with tupelo.update(path) as file:
        file["ours"] = counts
        file["ours"] = (counts[0] * 2, counts[1])
        assert path.read_bytes() == before
    file = tupelo.open(path)
    assert isinstance(file, tupelo.File)
    assert file["ours"].values().tolist() == [2, 4, 6]
    assert file["ours;1"].values().tolist() == [1, 2, 3]
    assert file["theirs"].values().tolist() == [1, 1]
    with uproot.open(path) as judge:
        assert judge["ours"].values().tolist() == [2, 4, 6]
        assert judge["theirs"].values().tolist() == [1, 1]


def test_an_update_without_an_end_reports_histograms(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.root"
    with tupelo.recreate(path) as file:
        file["Events"] = {"x": [1]}
    file = tupelo.update(path)
    file["h"] = np.histogram([1.0])
    del file
    assert "discarded histogram 'h'" in capfd.readouterr().err


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    edges = np.array([0.0, 1.0, 2.0])
    with tupelo.recreate(tmp_path / "a.root") as file:
        with pytest.raises(
            tupelo.UnsupportedError, match="histogram 'h': it has 4 axes; ROOT's histograms have one to"
        ):
            file["h"] = hist.new.Reg(1, 0, 1).Reg(1, 0, 1).Reg(1, 0, 1).Reg(1, 0, 1).Double()
        with pytest.raises(tupelo.InvalidArgumentError, match="axis 0 has no bins"):
            file["h"] = hist.new.StrCat([], growth=True).Double()
        with pytest.raises(tupelo.InvalidArgumentError, match="the edges of its x axis are not increasing"):
            file["h"] = (np.array([1, 2]), np.array([0.0, 2.0, 1.0]))
        with pytest.raises(tupelo.InvalidArgumentError, match="its values have the type complex128"):
            file["h"] = (np.array([1j, 2]), edges)
        with pytest.raises(tupelo.UnsupportedError, match="it has a bin of 9007199254740993"):
            file["h"] = (np.array([1, 2**53 + 1]), edges)
        file["h"] = (np.array([1, 2**40]), edges)
        file["Events"] = {"x": [1]}
        with pytest.raises(tupelo.InvalidArgumentError, match="'Events'"):
            file["Events"] = (np.array([1, 2]), edges)
        with pytest.raises(tupelo.InvalidArgumentError, match="a TH1D of that name; use another name for the object"):
            file["h"] = (np.array([1, 2], dtype=np.int32), edges)
        with pytest.raises(tupelo.InvalidArgumentError, match="'h'"):
            file["h/below"] = (np.array([1, 2]), edges)
    assert tupelo.open(f"{tmp_path}/a.root:h").values().tolist() == [1, 2**40]  # type: ignore[union-attr, call-arg]
    refused = pytest.raises(tupelo.UnsupportedError, match="object stores support only ntuples, found a TH1I")
    with refused, tupelo.recreate(f"ntpl+file:{tmp_path}/store") as store:
        store["h"] = (np.array([1, 2]), edges)


def test_damaged_objects_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.root"
    with tupelo.recreate(path, compression="none") as file:
        file["h"] = (np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 2.0, 5.0]))
    good = path.read_bytes()
    (bins,) = (at for at in range(len(good)) if good[at:].startswith(b"\0\0\0\5" + bytes(8) + b"\x3f\xf0"))
    for bad, expected in [
        (good[: bins + 3] + b"\4" + good[bins + 4 :], "h"),
        (good.replace(b"\0\0\0\4" + bytes(8) + b"\x3f\xf0", b"\0\0\0\0" + bytes(8) + b"\x3f\xf0", 1), "h"),
    ]:
        path.write_bytes(bad)
        with pytest.raises((tupelo.CorruptError, tupelo.UnsupportedError), match=rf"a.root.*{expected}"):
            tupelo.open({path: "h"})
    random = np.random.default_rng(5)
    for _ in range(200):
        bad_bytes = bytearray(good)
        for at in random.integers(100, len(good), 3):
            bad_bytes[at] = random.integers(256)
        path.write_bytes(bad_bytes)
        try:
            read = tupelo.open({path: "h"})
            assert isinstance(read, tupelo.Histogram)
            read.values()
        except tupelo.Error:
            pass


@pytest.mark.parametrize("path", sorted(DATA.glob("trees/*.root")), ids=lambda path: path.stem)
def test_real_histograms_are_those_of_uproot(path: Path, tmp_path: Path) -> None:
    """Geant4 and old versions of ROOT write old versions of the classes."""
    file = tupelo.open(path)
    assert isinstance(file, tupelo.File)
    names = [
        name for name, class_name in file.classnames().items() if class_name.startswith(("TH1", "TH2", "TProfile"))
    ]
    with tupelo.recreate(tmp_path / "copy.root") as copy, uproot.open(path) as judge:
        for name in names:
            ours, theirs = file[name], judge[name]
            assert np.array_equal(np.nan_to_num(ours.values(flow=True)), theirs.values(flow=True)), name
            assert np.nan_to_num(ours.variances(flow=True)) == pytest.approx(theirs.variances(flow=True)), name
            copy[name] = ours
    copied = tupelo.open(tmp_path / "copy.root")
    assert isinstance(copied, tupelo.File)
    for name in names:
        assert np.array_equal(copied[name].values(flow=True), file[name].values(flow=True)), name
        assert copied[name].axes == file[name].axes


def test_bins_that_are_not_stored_take_no_memory() -> None:
    """Regression: the edges of axes were made before their number was compared with the bins."""
    path = DATA / "hostile" / "histogram-bins.root"
    if not path.exists():
        pytest.skip(f"{path.name} is not at hand")
    file = tupelo.open(path)
    tracemalloc.start()
    with pytest.raises(tupelo.CorruptError, match="fArray has 25 items, expected 2500000010"):
        file["h2"]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 << 20
