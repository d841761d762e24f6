"""`tupelo import` of files that other libraries write."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from panel import TUPELO, root_error
from root_programs import root

import tupelo


@pytest.mark.parametrize(("version", "dictionary"), [("1.0", False), ("2.0", False), ("1.0", True)])
def test_checksums_of_parquet_pages(tmp_path: Path, version: str, dictionary: bool) -> None:
    """Regression: wrong values were imported where the checksum of a page does not match."""
    source, out = tmp_path / "x.parquet", tmp_path / "x.root"
    table = pa.table({"x": np.arange(10_000) % 1000})
    options = {"data_page_version": version, "use_dictionary": dictionary, "compression": "none"}
    pq.write_table(table, source, write_page_checksum=True, **options)
    command = [str(TUPELO), "import", str(source), "-o", str(out), "--force"]
    subprocess.run(command, check=True, capture_output=True)
    content = bytearray(source.read_bytes())
    content[5000] ^= 0x10
    source.write_bytes(content)
    out.unlink()
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 1
    assert "x.parquet: the Parquet file is damaged: a page does not match its checksum" in run.stderr
    assert not out.exists()


EXTRAS = """
import sys, ROOT
with ROOT.TFile(sys.argv[1], "recreate") as file:
    tree = ROOT.TTree("t", "")
    number = ROOT.std.vector("int")()
    tree.Branch("x", number)
    tree.Fill()
    tree.SetAlias("twice", "x * 2")
    tree.SetWeight(2.5)
    tree.BuildIndex("1", "2")
    note = ROOT.TNamed("note", "text")
    ROOT.SetOwnership(note, False)
    tree.GetUserInfo().Add(note)
    file.WriteObject(tree, "t")
"""


def test_what_ntuples_cannot_hold_of_a_tree_is_named(tmp_path: Path) -> None:
    """Regression: aliases, user information, index and weight were lost without a warning."""
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    source, out, report = tmp_path / "x.root", tmp_path / "out.root", tmp_path / "report.json"
    root(EXTRAS, source)
    extras = ["alias 'twice'", "index of '1' and '2'", "user information 'note'", "weight 2.5"]
    command = [str(TUPELO), "import", str(source), "-o", str(out), "--report", str(report), "--force"]
    for options, status in ([], 1), (["--skip-unreadable"], 0):
        run = subprocess.run([*command, *options], capture_output=True, text=True)
        assert run.returncode == status
        assert [what for what in extras if f"'t': {what} is left out: ntuples have none" in run.stderr] == extras
        assert json.loads(report.read_text())[0]["not_kept"] == extras
    with pytest.warns(tupelo.TupeloWarning) as warned:
        imported = tupelo.import_trees(source, tmp_path / "python.root")
    assert [what for what in extras if any(f"{what} is left out" in str(one.message) for one in warned)] == extras
    assert list(imported.skipped) == extras
    with pytest.warns(tupelo.TupeloWarning) as warned:
        tupelo.open(f"{source}:t").copy(tmp_path / "copied.root")
    assert [what for what in extras if any(f"{what} is left out" in str(one.message) for one in warned)] == extras


def imported(source: Path, *options: str) -> tuple[int, str, list[dict[str, Any]]]:
    """Exit status and messages of `tupelo import`, and the entries."""
    out = source.with_suffix(".root")
    out.unlink(missing_ok=True)
    command = [str(TUPELO), "import", str(source), "-o", f"{out}:n", *options]
    run = subprocess.run(command, capture_output=True, text=True)
    return run.returncode, run.stderr, tupelo.open(f"{out}:n").arrays().tolist() if out.exists() else []


def test_other_delimiters(tmp_path: Path) -> None:
    """Defect: values between semicolons became one text."""
    source, tabs = tmp_path / "x.csv", tmp_path / "x.tsv"
    source.write_text('a;b\n1;"x;y"\n2;z\n')
    expected = [{"a": 1, "b": "x;y"}, {"a": 2, "b": "z"}]
    status, said, _ = imported(source)
    assert (status, "--delimiter ';' separates the columns" in said) == (1, True), said
    assert imported(source, "--delimiter", ";")[::2] == (0, expected)
    assert imported(source, "--delimiter", ",")[0] == 0
    tabs.write_text("a\tb\n1\tx;y\n2\tz\n")
    assert imported(tabs)[::2] == (0, expected)
    assert imported(tabs, "--delimiter", "\\t")[::2] == (0, expected)
    assert imported(tabs, "--delimiter", "ab")[0] == 2


def test_padding_of_numpy_records(tmp_path: Path) -> None:
    """Defects: padding at the end was a column that cannot be imported; integers beyond 64 bits were rounded."""
    dtype = np.dtype([("a", "i1"), ("b", "f8"), ("c", "i1")], align=True)
    assert dtype.itemsize == 24
    np.save(tmp_path / "x.npy", np.array([(1, 2.5, 3), (4, 5.5, 6)], dtype))
    assert imported(tmp_path / "x.npy")[::2] == (0, [{"a": 1, "b": 2.5, "c": 3}, {"a": 4, "b": 5.5, "c": 6}])
    (tmp_path / "x.jsonl").write_text('{"a": 1}\n{"a": 18446744073709551616}\n')
    status, said, _ = imported(tmp_path / "x.jsonl")
    assert (status, "line 2: the integer 18446744073709551616 does not fit in 64 bits" in said) == (1, True), said


NAMES = """
import sys, ROOT
with ROOT.TFile(sys.argv[1], "recreate") as file:
    histogram = ROOT.TH1D("h", "", 1, 0, 1)
    for name in ("a;2", "z"):
        file.WriteTObject(histogram, name)
"""


def test_names_that_end_like_cycles(tmp_path: Path) -> None:
    """Defect: one such object kept all others from being merged."""
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    source, out = tmp_path / "x.root", tmp_path / "out.root"
    root(NAMES, source)
    subprocess.run([str(TUPELO), "merge", str(out), str(source), str(source)], check=True, capture_output=True)
    listed = json.loads(subprocess.run([str(TUPELO), "ls", "--json", str(out)], check=True, capture_output=True).stdout)
    assert sorted(one["path"] for one in listed["objects"]) == ["a;2", "z"]
    # Defect: files without entries were refused, whatever was asked for.
    copied = [str(TUPELO), "copy", str(source), "-o", str(out), "--force", "--objects=z"]
    subprocess.run(copied, check=True, capture_output=True)
    listed = json.loads(subprocess.run([str(TUPELO), "ls", "--json", str(out)], check=True, capture_output=True).stdout)
    assert [one["path"] for one in listed["objects"]] == ["z"]
    none = subprocess.run([*copied[:-1], "--objects=x*"], capture_output=True, text=True)
    assert (none.returncode, "no object named 'x*'" in none.stderr) == (1, True), none.stderr
