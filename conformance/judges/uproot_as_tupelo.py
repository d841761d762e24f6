"""A pytest plugin under which uproot's own tests test `tupelo.uproot_compat`: what they import as uproot is that.

Their files are looked for in TUPELO_DATA; a test whose file is not there is skipped.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

import tupelo.uproot_compat

# What files of scikit-hep-testdata are called there.
OTHER_NAMES = {
    "Run2012BC_DoubleMuParked_Muons_1000evts_rntuple_v1-0-0-0.root": "cms_run2012_dimuon_ntuple.root",
    "uproot-physlite-rntuple_v1-0-0-0.root": "atlas_daod_physlite_ntuple.root",
}


def data_path(filename: str, raise_missing: bool = True, cache_dir: object = None) -> str:
    """As `skhep_testdata.data_path`."""
    path = Path(os.environ["TUPELO_DATA"]) / OTHER_NAMES.get(filename, filename)
    if not path.exists():
        pytest.skip(f"no file {filename}", allow_module_level=True)
    return str(path)


def pytest_configure() -> None:
    """Before any test is imported."""
    testdata = ModuleType("skhep_testdata")
    testdata.__spec__ = importlib.machinery.ModuleSpec("skhep_testdata", None)
    testdata.data_path = data_path  # type: ignore[attr-defined]
    sys.modules["skhep_testdata"] = testdata
    sys.modules["uproot"] = tupelo.uproot_compat
