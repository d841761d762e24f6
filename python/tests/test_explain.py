"""`explain`: what a read would do, before it does it."""

import json
import subprocess
from dataclasses import asdict

import numpy as np
import pytest
from builds import built

import tupelo


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same events in two ntuples and a tree."""
    folder = tmp_path_factory.mktemp("explain")
    for number in 1, 2:
        entries = np.arange(20_000) + 20_000 * number
        columns = {"run": entries // 5000, "x": np.sqrt(entries), "lists": [[0.5] * (n % 4) for n in range(20_000)]}
        with tupelo.recreate(folder / f"run{number}.root") as file:
            file.mkrntuple("Events", columns, page_bytes=8192, zone_maps=["run"])
            file.mktree("tree", {"run": "int64", "x": "float64"}).extend({name: columns[name] for name in ("run", "x")})
    return folder


def by_command(where, fields, cut=None):
    arguments = [] if cut is None else ["--cut", cut]
    command = [str(built("tupelo")), "explain", where, "--fields", ",".join(fields), *arguments]
    document = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True).stdout
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    known = json.loads(document)
    return {key: known[key] for key in known.keys() - {"document", "version", "file", "name"}}, text


@pytest.mark.parametrize("where", ["run1.root:Events", "run1.root:tree", "run*.root:Events"])
@pytest.mark.parametrize("cut", [None, "run == 5"])
def test_the_command_says_the_same(folder, where, cut):
    where = f"{folder}/{where}"
    explanation = tupelo.open(where).explain(["x"], cut)
    document, text = by_command(where, ["x"], cut)
    own = asdict(explanation)
    assert own.pop("text") == str(explanation) == text
    own["columns"] = list(own["columns"])
    assert {key: own[key] for key in document} == document
    assert (explanation.ruled_out > 0) == (cut is not None and "tree" not in where)


def test_a_read_does_what_is_explained(folder):
    events = tupelo.open(f"{folder}/run1.root:Events", metrics=True)
    for options in {}, {"entry_start": 3000, "entry_stop": 9000}, {"filter_name": "x"}:
        explanation = events.explain(**options)
        before = events.metrics
        events.arrays(**options)
        after = events.metrics
        assert explanation.pages >= after.pages - before.pages > 0
        assert explanation.stored_bytes >= after.page_bytes - before.page_bytes
    assert explanation.stored_bytes == after.page_bytes - before.page_bytes
    again = tupelo.open(f"{folder}/run1.root:Events", metrics=True)
    before = again.metrics.page_bytes
    assert len(again.arrays("run", "run == 5")) == 5000
    explained = again.explain("run", "run == 5")
    assert again.metrics.page_bytes - before == explained.zone_map_bytes + explained.stored_bytes
    assert explained.ruled_out == 20_000 - 2 * 8192


def test_joins_and_computed_columns_are_explained(folder):
    joined = tupelo.join({"": f"{folder}/run1.root:Events", "o_": f"{folder}/run2.root:Events"})
    explanation = joined.explain(["x + o_x"])
    assert [(column.field, column.is_cut) for column in explanation.columns] == [("x", False), ("o_x", False)]
    assert explanation.unpacked_bytes == 2 * 8 * 20_000
    events = tupelo.open(f"{folder}/run1.root:Events")
    assert [column.field for column in events.explain("double", aliases={"double": "2 * x"}).columns] == ["x"]
    with pytest.raises(tupelo.NotFoundError, match="no field named 'y'"):
        events.explain("y")
