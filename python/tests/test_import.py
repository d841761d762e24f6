"""`import tupelo` loads little; the rest is imported on first use."""

import subprocess
import sys
from importlib import import_module
from types import ModuleType

import pytest

import tupelo

HEAVY = {
    "awkward",
    "boost_histogram",
    "dask",
    "duckdb",
    "hist",
    "matplotlib",
    "numpy",
    "pandas",
    "polars",
    "pyarrow",
    "rich",
    "tqdm",
    "uproot",
}
# PyArrow imports pandas, if installed, on the first conversion.
BY_ITSELF = {"numpy", "pyarrow", "pandas"}

PUBLIC = {
    "attributes": {"AttributeSet", "AttributeSetWriter"},
    "columns": {"NtupleWithColumns"},
    "efficiency": {"Efficiency"},
    "errors": {"BY_KIND", "Error", "TupeloWarning"},
    "fields": {"Field"},
    "filling": {"FillContext", "Metadata", "NtupleWriter"},
    "graph": {"Graph"},
    "histogram": {"Axis", "Histogram"},
    "importing": {"ImportReport", "ImportedField", "import_hdf5", "import_trees"},
    "metrics": {"Metrics", "Time"},
    "ntuple": {"Ntuple", "Tree"},
    "reading": {"File", "open"},
    "rules": {"ReadRule"},
    "trees": {"TreeWriter"},
    "writing": {"WritableFile", "abort", "create", "recreate", "update"},
}
"""Names that programs import from modules."""


def loaded_by(program: str) -> set[str]:
    """The heavy packages that a new interpreter has imported after a program."""
    program += f"\nimport sys; print(*(name for name in {sorted(HEAVY)!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_import_loads_no_other_package() -> None:
    """Regression: it imported NumPy and PyArrow, which took 90 % of the time."""
    assert loaded_by("import tupelo") == set()
    assert loaded_by("import tupelo; tupelo.Error, tupelo.TupeloWarning, dir(tupelo), tupelo.__all__") == set()


def test_reading_imports_the_requested_library() -> None:
    with tupelo.recreate("f.root") as file:
        file["Events"] = {"x": [1.5]}
    libraries: dict[str, set[str]] = {"np": set(), "arrow": set(), "pd": set(), "pl": {"polars"}, "ak": {"awkward"}}
    for library, own in libraries.items():
        found = loaded_by(f"import tupelo; tupelo.open('f.root:Events').arrays(library={library!r})")
        assert found - BY_ITSELF == own


def test_writing_imports_the_given_library() -> None:
    program = (
        "import tupelo\nwith tupelo.recreate('f.root') as file: file['Events'] = {'x': [1.5, 2.5], 'y': [[1], []]}"
    )
    assert loaded_by(program) <= BY_ITSELF


@pytest.mark.parametrize("name", tupelo.__all__)
def test_every_name_can_be_imported(name: str) -> None:
    assert name in dir(tupelo)
    value = getattr(tupelo, name)
    assert getattr(tupelo, name) is value
    if name != "__version__":
        assert getattr(import_module(value.__module__), name) is value


def test_the_package_shows_only_its_own_names() -> None:
    shown = set(dir(tupelo)) - set(tupelo.__all__)
    assert all(isinstance(getattr(tupelo, name), ModuleType) for name in shown)
    others = {name for name in vars(tupelo) if not name.startswith("_")} - set(dir(tupelo))
    assert others <= {"uproot", "xaod"}
    for name in sorted(shown):
        module = import_module(f"tupelo.{name}")
        assert module is getattr(tupelo, name)
        assert set(module.__all__ if hasattr(module, "__all__") else vars(module)) >= PUBLIC[name]


def test_unknown_names() -> None:
    with pytest.raises(AttributeError, match="module 'tupelo' has no attribute 'opne'"):
        tupelo.opne  # type: ignore[attr-defined]  # noqa: B018
    assert loaded_by("import tupelo; assert tupelo.writing.recreate is tupelo.recreate") >= {"pyarrow"}
