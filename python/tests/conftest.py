"""Location of the real files, and the summary of how many were covered."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from builds import built
from http_server import Server

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("TUPELO_DATA") or ROOT.parent / "shared" / "data")


def real_ntuples() -> list[tuple[Path, str]]:
    """Every RNTuple of every real file, as listed by uproot."""
    import uproot

    found = []
    for path in sorted(DATA.glob("*ntuple*.root")):
        with uproot.open(path) as file:
            classes = file.classnames(cycle=False)
            found += [(path, name) for name, class_name in classes.items() if class_name == "ROOT::RNTuple"]
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrizes tests with `real_ntuple`; without real files there is nothing to run or to skip."""
    if "real_ntuple" in metafunc.fixturenames:
        found = real_ntuples()
        metafunc.parametrize("real_ntuple", found, ids=[f"{path.stem}-{name}" for path, name in found])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """An empty list of parameters does not count as a skipped test."""
    items[:] = [item for item in items if "NOTSET" not in item.name]


def pytest_collection_finish() -> None:
    """Takes Tupelo's engine from under uproot, where importing the tests put it: uproot is the judge of most tests."""
    if (carried := sys.modules.get("tupelo.uproot")) is not None:
        carried.uninstall()


@pytest.fixture
def server(files: Path) -> Iterator[Server]:
    """A web server of the ``files`` of a module."""
    server = Server(files)
    yield server
    server.close()


@pytest.fixture
def strict_engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Puts Tupelo's engine under uproot for one test. Errors of Tupelo are raised."""
    import tupelo.uproot as carried
    from tupelo.uproot import _engine

    monkeypatch.setenv("TUPELO_UPROOT", "strict")
    carried.install()
    carried.report(clear=True)
    _engine._warned.clear()
    yield
    carried.uninstall()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    ran = terminalreporter.stats.get("passed", []) + terminalreporter.stats.get("failed", [])

    def files(module: str) -> int:
        tests = [report.nodeid.partition("[")[2] for report in ran if module in report.nodeid]
        return sum(any(test.startswith(f"{path.stem}-") for test in tests) for path in DATA.glob("*.root"))

    text = (
        f"{files('test_real_files.py')} real files read by the Python package, "
        f"{files('test_uproot_verbs.py')} compared verb by verb with uproot"
    )
    terminalreporter.write_line(text)
    if folder := os.environ.get("TUPELO_SUMMARY"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / "python-package.txt").write_text(text + "\n")


@pytest.fixture(scope="session")
def command() -> str:
    """The command `tupelo`."""
    return str(built("tupelo"))


@pytest.fixture(scope="session")
def generator() -> str:
    """The program `tupelo-generate`."""
    return str(built("tupelo-generate"))


@pytest.fixture(scope="session")
def demo_file(generator: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small version of the file that `make demo` writes, with the same first entries."""
    path = tmp_path_factory.mktemp("demo") / "b2hhh.root"
    subprocess.run([generator, "b2hhh", "--quiet", "--events", "10000", "--seed", "1", path], check=True)
    return path


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
