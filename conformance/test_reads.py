"""Tupelo reads what ROOT writes, and ROOT reads what Tupelo copies.

The files of root_writers/ are written once into target/conformance/; the real files lie in ../shared/data beside the
project, and are absent from most clones. Every dump is compared with the expected values and with the judges.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import uproot
from cases import CASES, Case
from compare import compare, parse

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
WORK = PROJECT / "target" / "conformance"
REAL_DATA = PROJECT.parent / "shared" / "data"
TUPELO = Path(os.environ.get("TUPELO_BIN", PROJECT / "target" / "release" / "tupelo"))
Entry = dict[str, Any]
# Where uproot 5.7 does not count as a judge, and why.
NOT_FOR_UPROOT = {
    "compression/block_big": "minutes for five million entries",
    "structure/feature_flag": "ignores the flag",
    "structure/small_key": "reads only the first of the chunks of a compressed payload",
    "structure/representations": "mixes up clusters of different representations",
    "structure/many_pages": "counts the elements of variants from the file's start in every cluster",
    "types/fundamental/misc": "reads char as unsigned",
    "types/fundamental/real32quant": "computes quantised doubles as float",
    "types/user/enum": "reads int8 enums as unsigned",
}


@dataclass
class Dump:
    """What a judge said of one ntuple."""

    path: Path
    omitted: list[str]
    messages: list[str]
    error: str | None


@cache
def root_error() -> str | None:
    """Why ROOT cannot be imported; None where it can."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "import ROOT"],
        capture_output=True,
        text=True,
        check=False,
    )
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["it ends without a word"])[-1]


@cache
def real_ntuples() -> list[tuple[Path, str]]:
    """The RNTuples of the real files."""
    found = []
    for path in sorted(REAL_DATA.glob("*.root")):
        with uproot.open(path) as file:
            found += [(path, name) for name, kind in file.classnames(cycle=False).items() if kind == "ROOT::RNTuple"]
    return found


def judge(tool: str, jobs: list[Entry], label: str, library: str | None = None) -> list[Dump]:
    """Let root_dump.py or uproot_dump.py dump many ntuples in one process."""
    folder = WORK / "dumps" / f"{label}.{tool}"
    folder.mkdir(parents=True, exist_ok=True)
    jobs = [{"out": str(folder / f"{number}.jsonl")} | job for number, job in enumerate(jobs)]
    listing = folder / "jobs.json"
    listing.write_text(json.dumps(jobs))
    command = [
        sys.executable,
        str(HERE / "judges" / f"{tool}_dump.py"),
        "--batch",
        str(listing),
    ]
    if library:
        command += ["--library", library]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode == 0:
        reports = json.loads(done.stdout)
        return [Dump(Path(job["out"]), **report) for job, report in zip(jobs, reports, strict=True)]
    if len(jobs) == 1:
        return [
            Dump(
                Path(jobs[0]["out"]),
                [],
                [],
                f"{tool} crashed with status {done.returncode}",
            )
        ]
    half = len(jobs) // 2  # a crash takes the whole batch with it: look for the file at fault
    return [dump for part in (jobs[:half], jobs[half:]) for dump in judge(tool, part, label, library)]


def tupelo(*arguments: str, out: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command; its output goes to `out` or is dropped."""
    if not TUPELO.exists():
        pytest.fail(
            f"{TUPELO} is absent: build it with cargo build --release, or set TUPELO_BIN",
            pytrace=False,
        )
    with open(out or os.devnull, "w", encoding="utf-8") as stdout:
        return subprocess.run([str(TUPELO), *arguments], stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)


def tupelo_dump(uri: str, label: str, *options: str) -> Path:
    """Dump with Tupelo."""
    out = WORK / "dumps" / "tupelo" / (hashlib.sha256(f"{label} {uri}".encode()).hexdigest()[:16] + ".jsonl")
    out.parent.mkdir(parents=True, exist_ok=True)
    done = tupelo("dump", uri, "--format", "jsonl", *options, out=out)
    assert done.returncode == 0, f"tupelo dump {uri}: {done.stderr}"
    return out


def fields_of(path: Path) -> set[str]:
    """Top-level fields of the first entry."""
    with path.open(encoding="utf-8") as lines:
        first = next(lines, None)
    return set(parse(first)) if first else set()


def agree(ours: Path, theirs: Dump | Path, unordered: bool = False) -> list[str]:
    """Differences between a dump and what a judge said; a field may be absent only where the judge says so."""
    path, omitted = (theirs.path, theirs.omitted) if isinstance(theirs, Dump) else (theirs, [])
    if isinstance(theirs, Dump) and theirs.error:
        return [f"the judge failed: {theirs.error}"]
    found = []
    for name in sorted(fields_of(ours) ^ fields_of(path)):
        if not any(line.startswith(f"{name} (") for line in omitted):
            found.append(f"only one side has the field {name}")
    with ours.open(encoding="utf-8") as a, path.open(encoding="utf-8") as b:
        return found + compare(a, b, unordered=unordered)


@pytest.fixture(scope="session")
def manifest(summary: list[str]) -> Entry:
    """Write the files of root_writers/, unless they are there already."""
    if root_error():
        summary.append(f"ROOT cross-checks did not run: ROOT cannot be imported ({root_error()})")
        pytest.skip("ROOT cannot be imported")
    folder = WORK / "root"
    sources = sorted((HERE / "root_writers").glob("*.[hp]*"))
    version = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-c",
            "import ROOT; print(ROOT.gROOT.GetVersion())",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    stamp = hashlib.sha256(version.encode() + b"".join(path.read_bytes() for path in sources)).hexdigest()
    stamp_file = folder / "stamp"
    if not stamp_file.exists() or stamp_file.read_text() != stamp:
        done = subprocess.run(
            [sys.executable, str(HERE / "root_writers" / "write_all.py"), str(folder)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        stamp_file.write_text(stamp)
    result: Entry = json.loads((folder / "manifest.json").read_text())
    summary.append(f"ROOT {result['root']} wrote {len(result['cases'])} ntuples")
    summary.extend(f"not run: {line}" for line in result["not_run"])
    return result


def jobs_of(entries: list[Entry]) -> list[Entry]:
    """Jobs for a judge."""
    return [{"file": entry["file"], "ntuple": entry["ntuple"]} for entry in entries]


@pytest.fixture(scope="session")
def root_dumps(manifest: Entry) -> dict[str, Dump]:
    """ROOT's dumps of the written files, by case."""
    entries = manifest["cases"]
    dumps = judge("root", jobs_of(entries), "cases", manifest["library"])
    return {entry["case"]: dump for entry, dump in zip(entries, dumps, strict=True)}


@pytest.fixture(scope="session")
def uproot_dumps(manifest: Entry) -> dict[str, Dump]:
    """uproot's dumps of the written files, by case."""
    entries = [entry for entry in manifest["cases"] if entry["case"].split("@")[0] not in NOT_FOR_UPROOT]
    dumps = judge("uproot", jobs_of(entries), "cases")
    return {entry["case"]: dump for entry, dump in zip(entries, dumps, strict=True)}


def copies(entries: list[Entry], label: str, library: str | None) -> dict[str, Dump]:
    """Copy every ntuple with Tupelo and let ROOT dump the copies."""
    folder = WORK / "copies" / label
    folder.mkdir(parents=True, exist_ok=True)
    jobs = []
    failed: dict[str, Dump] = {}
    for number, entry in enumerate(entries):
        out = folder / f"{number}.root"
        out.unlink(missing_ok=True)
        done = tupelo("copy", f"{entry['file']}:{entry['ntuple']}", str(out))
        if done.returncode != 0:
            failed[entry["case"]] = Dump(out, [], [], f"tupelo copy: {done.stderr}")
        else:
            jobs.append({"case": entry["case"], "file": str(out), "ntuple": ""})
    dumps = judge("root", jobs, f"copies-{label}", library) if jobs else []
    return failed | {job["case"]: dump for job, dump in zip(jobs, dumps, strict=True)}


def is_copied(entry: Entry) -> bool:
    """Whether Tupelo can write everything in the file: streamed classes it only reads."""
    return not entry["refused"] and "streamer" not in entry["features"]


@pytest.fixture(scope="session")
def case_copies(manifest: Entry) -> dict[str, Dump]:
    """ROOT's dumps of Tupelo's copies of the written files."""
    return copies(
        [entry for entry in manifest["cases"] if is_copied(entry)],
        "cases",
        manifest["library"],
    )


def entries_of(manifest: Entry, case: Case) -> list[Entry]:
    """The entries of the manifest that came from one case."""
    stem = case.name.replace("/", "_")
    entries = [entry for entry in manifest["cases"] if Path(entry["file"]).name.split(".")[0] == stem]
    if not entries:
        pytest.skip("not written here, see the end of the run")
    return entries


def report(differences: dict[str, list[str]]) -> None:
    """Fail with all differences."""
    text = "\n".join(f"{label}: {line}" for label, lines in differences.items() for line in lines[:5])
    if text:
        pytest.fail(text, pytrace=False)


every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@every_case
def test_judges(
    case: Case,
    manifest: Entry,
    root_dumps: dict[str, Dump],
    uproot_dumps: dict[str, Dump],
) -> None:
    """The expected values, ROOT and uproot agree."""
    found = {}
    for entry in entries_of(manifest, case):
        name, by_root = entry["case"], root_dumps[entry["case"]]
        if entry["refused"]:
            assert entry["refused"] in (by_root.error or "")
            continue
        if entry["expected"]:
            found[f"{name}, expected and ROOT"] = agree(Path(entry["expected"]), by_root, entry["unordered"])
        if name in uproot_dumps and not uproot_dumps[name].error:
            found[f"{name}, ROOT and uproot"] = agree(by_root.path, uproot_dumps[name])
    report(found)


def test_attribute_sets(manifest: Entry) -> None:
    """ROOT and Tupelo read the attribute sets that ROOT wrote."""
    jobs, expected = [], []
    for entry in manifest["cases"]:
        for name, path in entry["attributes"].items():
            jobs.append({"file": entry["file"], "ntuple": entry["ntuple"], "attributes": name})
            expected.append(Path(path))
    assert jobs
    dumps = judge("root", jobs, "attributes", manifest["library"])
    found = {f"{path}, ROOT": agree(path, dump) for path, dump in zip(expected, dumps, strict=True)}
    for job, path in zip(jobs, expected, strict=True):
        uri, name = f"{job['file']}:{job['ntuple']}", job["attributes"]
        found[f"{path}, Tupelo"] = agree(tupelo_dump(uri, f"attributes {name}", "--attributes", name), path)
    report(found)


@every_case
def test_dump(case: Case, manifest: Entry, root_dumps: dict[str, Dump]) -> None:
    """Tupelo reads what ROOT wrote."""
    found = {}
    for entry in entries_of(manifest, case):
        uri = f"{entry['file']}:{entry['ntuple']}"
        if entry["refused"]:
            done = tupelo("dump", uri, "--format", "jsonl")
            assert done.returncode != 0
            assert entry["refused"] in done.stderr
            continue
        ours = tupelo_dump(uri, "case")
        if entry["expected"]:
            found[f"{entry['case']}, expected"] = agree(ours, Path(entry["expected"]), entry["unordered"])
        found[f"{entry['case']}, ROOT"] = agree(ours, root_dumps[entry["case"]])
    report(found)


@every_case
def test_copy(
    case: Case,
    manifest: Entry,
    root_dumps: dict[str, Dump],
    case_copies: dict[str, Dump],
) -> None:
    """ROOT reads Tupelo's copy to the same values, without a word."""
    found = {}
    for entry in entries_of(manifest, case):
        if is_copied(entry):
            copied = case_copies[entry["case"]]
            found[entry["case"]] = copied.messages + agree(root_dumps[entry["case"]].path, copied)
    report(found)


@pytest.fixture(scope="session")
def real_dumps(summary: list[str]) -> dict[str, list[Dump]]:
    """The judges' dumps of the real files, in the order of real_ntuples()."""
    jobs = [{"file": str(path), "ntuple": name} for path, name in real_ntuples()]
    files = len({path for path, _ in real_ntuples()})
    summary.append(f"{files} real files with {len(jobs)} RNTuples were covered")
    dumps = {"uproot": judge("uproot", jobs, "real")}
    if not root_error():
        dumps["root"] = judge("root", jobs, "real")
    for tool, results in dumps.items():
        for job, dump in zip(jobs, results, strict=True):
            summary.extend(f"{tool} does not show {Path(job['file']).name} {line[:120]}" for line in dump.omitted)
    return dumps


def over_real(check: Callable[[str, int], list[str]]) -> None:
    """Call check(uri, number) for every real ntuple and fail with what it found."""
    report({f"{path.name}:{name}": check(f"{path}:{name}", i) for i, (path, name) in enumerate(real_ntuples())})


def test_real_judges(real_dumps: dict[str, list[Dump]]) -> None:
    """uproot and ROOT agree on the real files."""
    if "root" in real_dumps:
        over_real(lambda _, i: agree(real_dumps["root"][i].path, real_dumps["uproot"][i]))


def test_real_dump(real_dumps: dict[str, list[Dump]]) -> None:
    """Tupelo reads the real files as uproot and ROOT do."""

    def check(uri: str, number: int) -> list[str]:
        ours = tupelo_dump(uri, "real")
        return [f"{tool}: {line}" for tool, dumps in real_dumps.items() for line in agree(ours, dumps[number])]

    over_real(check)


def test_real_copy(real_dumps: dict[str, list[Dump]]) -> None:
    """ROOT reads Tupelo's copies of the real files to the same values, without a word."""
    if "root" not in real_dumps:
        pytest.skip("ROOT cannot be imported")
    entries = [{"case": f"{path}:{name}", "file": str(path), "ntuple": name} for path, name in real_ntuples()]
    copied = copies(entries, "real", None)
    over_real(lambda uri, i: copied[uri].messages + agree(real_dumps["root"][i].path, copied[uri]))
