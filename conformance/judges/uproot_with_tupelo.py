"""A pytest plugin that runs uproot's own tests, with Tupelo's engine under uproot unless ``TUPELO_UPROOT`` is ``off``.

Test files are looked up in TUPELO_DATA; a test whose file is not available is skipped. The counts of
`tupelo.uproot.report` are written to the file ``TUPELO_UPROOT_REPORT``.
"""

from __future__ import annotations

import importlib.machinery
import json
import os
import sys
import warnings
from pathlib import Path
from types import ModuleType

import pytest

import tupelo.uproot
from tupelo.uproot._report import log

# What files of scikit-hep-testdata are called there.
OTHER_NAMES = {
    "Run2012BC_DoubleMuParked_Muons_1000evts_rntuple_v1-0-0-0.root": "cms_run2012_dimuon_ntuple.root",
    "uproot-physlite-rntuple_v1-0-0-0.root": "atlas_daod_physlite_ntuple.root",
    "ntpl001_staff_rntuple_v1-0-0-0.root": "ntpl001_staff_rntuple_v1-0-1-0.root",
    "nanoAOD_2015_CMS_Open_Data_ttbar.root": "cms_nanoaod_2015_ttbar_tree.root",
    "uproot-issue-123a.root": "atlas_daod_physlite_tree.root",
}
FOLDERS = ("", "uproot", "trees", "wild")
missing: set[str] = set()
"""Files that are not there."""


def data_path(filename: str, raise_missing: bool = True, cache_dir: object = None) -> str:
    """As `skhep_testdata.data_path`."""
    for folder in FOLDERS:
        path = Path(os.environ["TUPELO_DATA"]) / folder / OTHER_NAMES.get(filename, filename)
        if path.exists():
            return str(path)
    missing.add(filename)
    pytest.skip(f"no file {filename}", allow_module_level=True)


@pytest.fixture
def reset_classes() -> None:
    """As in uproot's conftest, which needs packages that are not there."""
    tupelo.uproot.model.reset_classes()


def pytest_configure() -> None:
    """Before any test is imported."""
    testdata = ModuleType("skhep_testdata")
    testdata.__spec__ = importlib.machinery.ModuleSpec("skhep_testdata", None)
    testdata.data_path = data_path  # type: ignore[attr-defined]
    testdata.known_files = []  # type: ignore[attr-defined]
    sys.modules["skhep_testdata"] = testdata
    # Tests that count warnings must not see ours, which only say that uproot did it.
    warnings.simplefilter("ignore", tupelo.uproot.EngineWarning)


def pytest_sessionfinish() -> None:
    """Leaves the counts."""
    if path := os.environ.get("TUPELO_UPROOT_REPORT"):
        counts = {"served": log.served, "passed": dict(log.passed), "missing": sorted(missing)}
        Path(path).write_text(json.dumps(counts, indent=1))
