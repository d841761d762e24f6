"""The code in the documentation runs with the documented output, and links are valid."""

import doctest
import importlib
import importlib.util
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tupelo

ROOT = Path(__file__).parents[2]
RUN_PAGE = Path(__file__).with_name("run_page.py")

NAMES = [module.name for module in pkgutil.walk_packages(tupelo.__path__, "tupelo.")]
# The engine is not under uproot in most tests.
MODULES = ["tupelo", *(name for name in NAMES if not name.startswith("tupelo.uproot."))]

ENGINES = {"tupelo.ray": "ray", "tupelo.spark": "pyspark"}
"""Modules that need what `make test-engines` installs."""


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    options = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    engine = ENGINES.get(name)
    if engine and importlib.util.find_spec(engine) is None:
        with pytest.raises(ImportError, match=f"{name} needs {engine}.*pip install"):
            importlib.import_module(name)
        return
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=options)
    assert failed == 0


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_on_pages(page: Path, generator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page are one program with the documented output."""
    monkeypatch.setenv("MPLBACKEND", "agg")
    (tmp_path / "demo").mkdir()
    if page.stem == "README":
        subprocess.run([generator, "nanoaod", "--quiet", "--events", "20000", "events.root"], check=True)
    run(RUN_PAGE, page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_on_pages_are_valid(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        assert link.startswith("https://") or (page.parent / link).exists(), link


def test_the_readme_has_a_place_for_the_table_of_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    report, tasks = importlib.import_module("bench.report"), importlib.import_module("bench.tasks")
    rows = [
        report.Row(name, 1, contestant, [seconds], 1, 1, 1)
        for name in report.README_TASKS
        for contestant, seconds in {"Tupelo": 0.5, "ROOT views": 3.0, "ROOT bulk": 2.0, "uproot": 4.0}.items()
    ]
    table = report.readme_table(rows, tasks.TASKS)
    assert table.count("| 0.500 s | 2.000 s | 4.000 s | – |") == len(report.README_TASKS)
    text = report.between_markers((ROOT / "README.md").read_text(encoding="utf-8"), "bench", table)
    assert f"<!-- bench: begin -->\n{table}\n<!-- bench: end -->" in text
    assert report.between_markers(text, "bench", table) == text


@pytest.mark.parametrize("folder", ["docs", "docs/guide", "docs/internals", "docs/decisions", "docs/reference"])
def test_every_page_is_listed(folder: str) -> None:
    listed = (ROOT / folder / "README.md").read_text(encoding="utf-8")
    pages = [path.name for path in (ROOT / folder).glob("*.md") if path.name != "README.md"]
    assert [name for name in pages if f"]({name})" not in listed] == []


def test_the_reference_has_every_public_name() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "reference").glob("*.md")))
    listed = re.findall(r"^\.\. auto(?:class|exception|function):: tupelo\.(\w+)$", pages, re.MULTILINE)
    assert sorted(listed) == sorted(name for name in tupelo.__all__ if name != "__version__")
    modules = re.findall(r"^\.\. automodule:: tupelo\.(\w+)$", pages, re.MULTILINE)
    found = {module.name for module in pkgutil.iter_modules(tupelo.__path__) if not module.name.startswith("_")}
    # Those that dir lists only name again what is on the pages.
    assert sorted(modules) == sorted(found.difference(dir(tupelo)))


def test_the_block_that_starts_processes_works_as_a_script() -> None:
    """Regression: without a guard, spawned processes started processes, which is an error."""
    page = ROOT / "docs" / "guide" / "dask.md"
    run(RUN_PAGE, page)
    *_, last = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    Path("script.py").write_text(f"import tupelo\n\n{last}", encoding="utf-8")
    run("script.py")


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ("```python\nprint(1)\n```\n", "line 1: printed"),
        ("```python\nx = 1\n```\n\n```python\nprint(x)\n```\n\n```text\n2\n```\n", "line 5: printed\n1\n\nand not\n2"),
        ("```python\n1 / 0\n```\n", "ZeroDivisionError"),
        ("```sh\nexit 3\n```\n", "exit status 3"),
        ("```sh\necho a\n```\n\n```text\nb\n```\n", "line 1: printed\na\n\nand not\nb"),
        ("```python\nprint(1, 2)\n```\n\n```text\n1 ...\n```\n\n```sh\ntupelo --version\n```\n", None),
    ],
)
def test_wrong_pages_are_detected(page: str, fault: str | None) -> None:
    Path("page.md").write_text(page)
    done = subprocess.run([sys.executable, RUN_PAGE, "page.md"], capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (fault is None)
    assert (fault or "") in done.stderr


def run(*command: object) -> str:
    done = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
