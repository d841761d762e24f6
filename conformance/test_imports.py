"""`tupelo import` of files that other libraries write."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from panel import TUPELO, root_error

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
    subprocess.run([sys.executable, "-W", "ignore", "-c", EXTRAS, str(source)], check=True)
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
