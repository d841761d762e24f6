"""A pytest plugin that runs uproot's own tests against `tupelo.uproot_compat`, which they import as ``uproot``.

uproot's private helper that splits ``FILE:NAME`` is replaced by Tupelo's, and so is the one that chooses how a branch
is interpreted.

Test files are looked up in TUPELO_DATA. Some missing files are replaced by files with the same fields that Tupelo
writes; a test whose file is not available is skipped.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import os
import re
import sys
import tempfile
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import awkward as ak
import numpy as np
import pytest

import tupelo
import tupelo.uproot_compat as compat
from tupelo.uproot_compat._trees import Interpretation

# What files of scikit-hep-testdata are called there.
OTHER_NAMES = {
    "Run2012BC_DoubleMuParked_Muons_1000evts_rntuple_v1-0-0-0.root": "cms_run2012_dimuon_ntuple.root",
    "uproot-physlite-rntuple_v1-0-0-0.root": "atlas_daod_physlite_ntuple.root",
    "ntpl001_staff_rntuple_v1-0-0-0.root": "ntpl001_staff_rntuple_v1-0-1-0.root",
    "nanoAOD_2015_CMS_Open_Data_ttbar.root": "cms_nanoaod_2015_ttbar_tree.root",
    "uproot-issue-123a.root": "atlas_daod_physlite_tree.root",
    # The same trees with another codec.
    "uproot-HZZ.root": "uproot-HZZ-zstd.root",
    "uproot-Zmumu.root": "uproot-Zmumu-zlib.root",
    "uproot-Zmumu-uncompressed.root": "uproot-Zmumu-zlib.root",
}


def integers(bits: int) -> list[int]:
    """The edges of a signed integer."""
    return [0, 1, -1, 2 ** (bits - 2), -(2 ** (bits - 2)), 2 ** (bits - 1) - 1, -(2 ** (bits - 1))]


def vectors(count: int) -> Any:
    """Lorentz vectors."""
    return ak.zip({name: np.arange(count, dtype="f4") for name in ("pt", "eta", "phi", "mass")})


def nested(count: int) -> Any:
    """Records in records."""
    i = np.arange(count, dtype="i4")
    v = ak.values_astype([list(range(n)) for n in range(count)], np.int32)
    inner = ak.zip({"i": i, "v": v}, depth_limit=1)
    return ak.zip({"i": i, "sub_struct": ak.zip({"i": i, "sub_sub_struct": inner}, depth_limit=1)}, depth_limit=1)


# Columns of ntuples called "ntuple".
STAND_INS: dict[str, Any] = {
    "test_int_float_rntuple_v1-0-0-0.root": lambda: {
        "one_integers": np.arange(9, -1, -1, dtype="i4"),
        "two_floats": np.arange(9, -1, -1, dtype="f4"),
    },
    "test_int_5e4_rntuple_v1-0-0-0.root": lambda: {"one_integers": np.arange(50_000, 0, -1, dtype="i4")},
    "test_bit_rntuple_v1-0-0-0.root": lambda: {"one_bit": np.arange(10) % 3 == 0},
    "test_splitint_rntuple_v1-0-1-0.root": lambda: {
        f"int{bits}": np.array(integers(bits), dtype=f"i{bits // 8}") for bits in (16, 32, 64)
    },
    "test_nested_structs_rntuple_v1-0-0-0.root": lambda: {"my_struct": nested(10)},
    "test_int_vfloat_tlv_vtlv_rntuple_v1-0-0-0.root": lambda: {
        "one_integers": np.arange(10, dtype="i4"),
        "two_v_floats": ak.values_astype([[0.5] * n for n in range(10)], np.float32),
        "three_LV": vectors(10),
        "four_v_LVs": ak.unflatten(vectors(20), [2] * 10),
    },
}
THEIRS = ("containers", "interpretation")
"""Modules that Tupelo lacks. They are those of uproot: tests compare values with their classes."""
_MADE: dict[str, str] = {}


def stand_in(filename: str) -> str:
    """Writes one, once."""
    if filename not in _MADE:
        path = Path(tempfile.mkdtemp(prefix="tupelo-stand-in-")) / filename
        with tupelo.recreate(path) as file:
            file["ntuple"] = STAND_INS[filename]()
        _MADE[filename] = str(path)
    return _MADE[filename]


def data_path(filename: str, raise_missing: bool = True, cache_dir: object = None) -> str:
    """As `skhep_testdata.data_path`."""
    folder, name = Path(os.environ["TUPELO_DATA"]), OTHER_NAMES.get(filename, filename)
    # The samples of each version differ in the codec only.
    sample = re.sub(r"^(uproot-sample-[0-9.]+)-\w+\.root$", r"\1-*.root", name)
    found = (path for path in (folder / name, *sorted((folder / "trees").glob(sample))) if path.exists())
    path = next(found, folder / name)
    if filename in STAND_INS and not path.exists():
        return stand_in(filename)
    if not path.exists():
        pytest.skip(f"no file {filename}", allow_module_level=True)
    return str(path)


def divided(place: str | Path) -> tuple[str, str | None]:
    """As ``uproot._util.file_object_path_split``."""
    if isinstance(place, Path):
        return str(place), None
    path, name = tupelo._core.parse_location(place.strip())
    return path, None if name is None else "/".join(part for part in name.strip().split("/") if part)


def pytest_configure() -> None:
    """Before any test is imported."""
    testdata = ModuleType("skhep_testdata")
    testdata.__spec__ = importlib.machinery.ModuleSpec("skhep_testdata", None)
    testdata.data_path = data_path  # type: ignore[attr-defined]
    sys.modules["skhep_testdata"] = testdata
    for name in THEIRS:
        setattr(compat, name, importlib.import_module(f"uproot.{name}"))
    # Tests read branches by what uproot guesses, and look whether it has generated code.
    compat.interpretation.identify.interpretation_of = lambda branch, *how: branch.interpretation
    Interpretation._complete_forth_code = ""  # type: ignore[attr-defined]
    for name in [name for name in sys.modules if name.startswith("uproot.") and name.split(".")[1] not in THEIRS]:
        del sys.modules[name]
    package = compat.__name__
    for name, module in list(sys.modules.items()):
        if name == package or name.startswith(f"{package}."):
            sys.modules["uproot" + name.removeprefix(package)] = module
    compat._util = SimpleNamespace(file_object_path_split=divided)  # type: ignore[attr-defined]
