"""hepconvert, which reads with uproot, with Tupelo's engine."""

from pathlib import Path

import awkward as ak
import hepconvert
import numpy as np
import pytest
import uproot

import tupelo.uproot as carried


@pytest.mark.usefixtures("strict_engine")
def test_files_are_converted_and_copied() -> None:
    numbers = np.arange(60)
    lists = ak.Array([[0.5 * n for n in range(number % 4)] for number in numbers])
    with uproot.recreate("in.root") as file:
        tree = file.mktree("Events", {"run": "int64", "pt": "var * float64"})
        for first in range(0, 60, 20):
            tree.extend({"run": numbers[first : first + 20], "pt": lists[first : first + 20]})
    carried.report(clear=True)
    hepconvert.root_to_parquet("in.root", "out.parquet", tree="Events")
    hepconvert.copy_root("out.root", "in.root", drop_branches="pt", progress_bar=False)
    report = carried.report()
    assert report.served > 0
    assert report.passed == {}
    arrays = ak.from_parquet("out.parquet")
    assert ak.array_equal(arrays.run, numbers)
    assert ak.array_equal(arrays.pt, lists)
    assert uproot.open("out.root")["Events"]["run"].array().tolist() == numbers.tolist()
    assert Path("out.parquet").exists()
