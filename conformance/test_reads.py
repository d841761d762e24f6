"""Tupelo reads files of ROOT, and ROOT reads copies of Tupelo.

The files of root_writers/ are written once into target/conformance/; the real files are in ../shared/data next to the
project and missing in most clones. Every dump is compared with the expected values and with the judges.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cases import CASES, Case
from panel import WORK, Dump, Entry, agree, judge, real_ntuples, report, root_error, tupelo, tupelo_dump

# Cases for which uproot 5.7 is not a judge, with the reason.
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
    """Copies every ntuple with Tupelo and dumps the copies with ROOT."""
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
    """Whether Tupelo can write everything in the file; streamed classes are read-only."""
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
    """The items of the manifest of one case."""
    stem = case.name.replace("/", "_")
    entries = [entry for entry in manifest["cases"] if Path(entry["file"]).name.split(".")[0] == stem]
    if not entries:
        pytest.skip("not written here, see the end of the run")
    return entries


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
    """ROOT and Tupelo read the attribute sets of ROOT."""
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
    """Tupelo reads files of ROOT."""
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
    """ROOT reads Tupelo's copy with equal values and without messages."""
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
    """Calls check(uri, number) for every real ntuple and fails with its findings."""
    report({f"{path.name}:{name}": check(f"{path}:{name}", i) for i, (path, name) in enumerate(real_ntuples())})


def test_real_judges(real_dumps: dict[str, list[Dump]]) -> None:
    """uproot and ROOT agree on the real files."""
    if "root" in real_dumps:
        over_real(lambda _, i: agree(real_dumps["root"][i].path, real_dumps["uproot"][i]))


def test_real_dump(real_dumps: dict[str, list[Dump]]) -> None:
    """Tupelo reads the real files like uproot and ROOT."""

    def check(uri: str, number: int) -> list[str]:
        ours = tupelo_dump(uri, "real")
        return [f"{tool}: {line}" for tool, dumps in real_dumps.items() for line in agree(ours, dumps[number])]

    over_real(check)


def test_real_copy(real_dumps: dict[str, list[Dump]]) -> None:
    """ROOT reads Tupelo's copies of the real files with equal values and without messages."""
    if "root" not in real_dumps:
        pytest.skip("ROOT cannot be imported")
    entries = [{"case": f"{path}:{name}", "file": str(path), "ntuple": name} for path, name in real_ntuples()]
    copied = copies(entries, "real", None)
    over_real(lambda uri, i: copied[uri].messages + agree(real_dumps["root"][i].path, copied[uri]))
