"""What `tupelo merge` makes of ntuples: ROOT and uproot read them like their parts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from panel import WORK, agree, judge, real_ntuples, report, root_error, run, tupelo_dump

import tupelo

FOLDER = WORK / "merged"
NOT_FOR_UPROOT = {
    "test_stl_containers_rntuple_v1-0-0-0.root": "uproot 5.7 counts the elements of variants from the file's start",
}


@pytest.fixture(scope="module")
def merged() -> dict[str, tuple[str, Path]]:
    """Real ntuples, and the files to which their halves are merged."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    made = {}
    for number, (path, name) in enumerate(real_ntuples()):
        uri = f"{path}:{name}"
        count = int(run("count", uri))
        halves = [FOLDER / f"{number}-{half}.root" for half in (1, 2)]
        for half, entries in zip(halves, (f":{count // 2}", f"{count // 2}:"), strict=True):
            run("copy", "-q", uri, "-o", str(half), "--force", "--entries", entries)
        out = FOLDER / f"{number}.root"
        run("merge", "-q", str(out), *map(str, halves), "--force")
        for half in halves:
            half.unlink()
        made[uri] = (name, out)
    if not made:
        pytest.skip("no real files")
    return made


@pytest.mark.parametrize("tool", ["root", "uproot"])
def test_merged_ntuples_are_read_by_others(merged: dict[str, tuple[str, Path]], tool: str, summary: list[str]) -> None:
    """The judge reads the values of the original from its merged halves."""
    if tool == "root" and (error := root_error()):
        pytest.skip(f"ROOT cannot be imported: {error}")
    jobs = [{"file": str(out), "ntuple": name} for name, out in merged.values()]
    dumps = judge(tool, jobs, "merged")
    found = {}
    for uri, dump in zip(merged, dumps, strict=True):
        ours = tupelo_dump(uri, "merged")
        if tool != "uproot" or Path(uri.rpartition(":")[0]).name not in NOT_FOR_UPROOT:
            found[uri] = dump.messages + agree(ours, dump)
    report(found)
    summary.append(f"{len(found)} real ntuples merged from their halves, read by {tool}")


@pytest.fixture(scope="module")
def mixed() -> dict[str, tuple[str, Path]]:
    """Real ntuples, and files to which each is merged with one that is stored in another way, and itself again."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    made = {}
    for number, (path, name) in enumerate(real_ntuples()):
        uri = f"{path}:{name}"
        codecs = stored(uri)
        # Only pages that are compressed are encoded for it, too.
        other, out = FOLDER / f"{number}-other.root", FOLDER / f"{number}-mixed.root"
        codec = "zstd" if codecs == {"none"} else "none"
        run("copy", "-q", uri, "-o", str(other), "--force", "--compression", codec)
        run("merge", "-q", str(out), uri, str(other), uri, "--force")
        run("verify", "-q", str(out))
        # All pages stay as they are.
        assert stored(f"{out}:{name}") == codecs | stored(f"{other}:{name}"), uri
        made[uri] = (name, out)
    if not made:
        pytest.skip("no real files")
    return made


def stored(uri: str) -> set[str]:
    """The codecs of the pages of an ntuple."""
    found = re.findall(r'"codec": "([^"]*)"', run("ls", "--json", uri))
    return {codec for codecs in found for codec in codecs.split(", ") if codec}


@pytest.mark.parametrize("tool", ["root", "uproot"])
def test_other_representations_are_read_by_others(
    mixed: dict[str, tuple[str, Path]], tool: str, summary: list[str]
) -> None:
    """The judge reads the entries of the original three times, with pages of two codecs and encodings."""
    if tool == "root" and (error := root_error()):
        pytest.skip(f"ROOT cannot be imported: {error}")
    dumps = judge(tool, [{"file": str(out), "ntuple": name} for name, out in mixed.values()], "mixed")
    found = {}
    for uri, dump in zip(mixed, dumps, strict=True):
        one = tupelo_dump(uri, "mixed")
        thrice = one.with_suffix(".thrice")
        thrice.write_bytes(one.read_bytes() * 3)
        if tool != "uproot" or Path(uri.rpartition(":")[0]).name not in NOT_FOR_UPROOT:
            found[uri] = dump.messages + agree(thrice, dump)
    report(found)
    summary.append(f"{len(found)} real ntuples merged with pages that are stored in two ways, read by {tool}")


def test_rounded_encodings_are_not_mixed(tmp_path: Path, summary: list[str]) -> None:
    """Defect: ROOT took the bits and the range of one encoding for those of all, and aborted or read other values."""
    encodings = [
        None,
        "Real32Trunc(14)",
        "Real32Trunc(20)",
        "Real32Quant(16,-10,10)",
        "Real32Quant(16,-20,20)",
        "Real16",
    ]
    files = []
    for number, encoding in enumerate(encodings):
        file = tmp_path / f"{number}.root"
        with tupelo.recreate(file) as out:
            ntuple = out.mkrntuple("n", {"x": "float"}, encodings={"x": encoding} if encoding else {})
            ntuple.extend({"x": [number + 0.1, -0.7, 3.14159]})
        files.append(file)
    pairs = [(one, other) for one in files for other in files]
    merged, expected = [], []
    for number, (one, other) in enumerate(pairs):
        out = tmp_path / f"merged{number}.root"
        run("merge", "-q", str(out), str(one), str(other))
        merged.append({"file": str(out), "ntuple": "n"})
        expected.append(
            [x for file in (one, other) for x in tupelo.open(f"{file}:n")["x"].array(library="np").tolist()]
        )
        assert tupelo.open(f"{out}:n")["x"].array(library="np").tolist() == expected[-1], (one, other)
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    found = {}
    for one, dump in zip(merged, judge("root", merged, "rounded"), strict=True):
        found[one["file"]] = dump.messages + agree(tupelo_dump(f"{one['file']}:n", "rounded"), dump)
    report(found)
    summary.append(f"{len(found)} pairs of encodings of floating-point numbers merged, read by root")


PROMOTED = {
    "number": ("std::int32_t", "std::uint32_t", [-1, 2], [2**32 - 1, 0]),
    "small": ("std::int8_t", "std::uint16_t", [-128, 127], [0, 65535]),
    "flag": ("bool", "std::int32_t", [True, False], [-5, 7]),
    "bit": ("bool", "std::uint8_t", [True, False], [0, 255]),
    "letter": ("char", "std::int8_t", [65, -1], [-128, 127]),
    "letters": ("std::vector<char>", "std::vector<std::uint16_t>", [[65], []], [[65535, 1], [7]]),
    "flags": ("std::vector<bool>", "std::vector<std::int64_t>", [[True], [False, True]], [[-(2**40), 2], []]),
    "float": ("float", "double", [0.5, -2.0], [0.1, 1e300]),
    "list": ("std::vector<std::int32_t>", "std::vector<std::uint32_t>", [[-1], []], [[2**31, 1], [7]]),
    "lists": (
        "std::vector<std::vector<std::int32_t>>",
        "std::vector<std::vector<std::int64_t>>",
        [[[1, 2], [-3]], []],
        [[[2**40]], [[], [4]]],
    ),
    "array": ("std::array<std::int16_t,2>", "std::array<std::uint16_t,2>", [[-1, 2], [3, 4]], [[65535, 1], [5, 6]]),
    "pair": (
        "std::pair<std::int32_t,float>",
        "std::pair<std::int64_t,float>",
        [(-1, 1.5), (2, 2.5)],
        [(2**40, 0.5)] * 2,
    ),
    "maybe": ("std::optional<std::int32_t>", "std::optional<std::int64_t>", [None, 7], [2**40, None]),
    "maybe_here": ("std::int32_t", "std::optional<std::int32_t>", [1, -2], [None, 3]),
    "set": ("std::set<std::int32_t>", "std::vector<std::int32_t>", [[1, 3], [2]], [[3, 3, 1], [2]]),
    "multiset": ("std::set<std::int32_t>", "std::multiset<std::int32_t>", [[1], []], [[2, 2], [1]]),
    "map": (
        "std::map<std::int32_t,std::int32_t>",
        "std::vector<std::pair<std::int32_t,std::int32_t>>",
        [[(1, 4)], []],
        [[(1, 3), (1, 2)], [(0, 0)]],
    ),
    "maybe_items": (
        "std::set<std::int32_t>",
        "std::vector<std::optional<std::int32_t>>",
        [[1], []],
        [[None, 2, 2], [1]],
    ),
}
"""Types of numbers and collections in two files, and their values."""


@pytest.mark.parametrize("tool", ["root", "uproot"])
def test_promoted_numbers_are_read_by_others(tool: str, tmp_path: Path, summary: list[str]) -> None:
    """Defects: a vector of vectors kept the narrower type in its name, a number that is optional only in a later file
    its name, at which ROOT aborted, and a set before a vector its type, in which ROOT lost what the vector has twice.
    """
    if tool == "root" and (error := root_error()):
        pytest.skip(f"ROOT cannot be imported: {error}")
    files = [tmp_path / "one.root", tmp_path / "other.root"]
    for number, path in enumerate(files):
        with tupelo.recreate(path) as out:
            ntuple = out.mkrntuple("n", {name: types[number] for name, types in PROMOTED.items()})
            ntuple.extend({name: types[2 + number] for name, types in PROMOTED.items()})
    orders = {"up": files, "down": files[::-1]}
    jobs = []
    for name, order in orders.items():
        out = tmp_path / f"{name}.root"
        run("merge", "-q", str(out), *map(str, order), "--mode", "union")
        jobs.append({"file": str(out), "ntuple": "n"})
        read = tupelo.open(f"{out}:n").arrays(library="ak").to_list()
        parts = [entry for path in order for entry in tupelo.open(f"{path}:n").arrays(library="ak").to_list()]
        assert read == parts
    found = {}
    for job, dump in zip(jobs, judge(tool, jobs, "promoted"), strict=True):
        found[job["file"]] = dump.messages + agree(tupelo_dump(f"{job['file']}:n", "promoted"), dump)
    report(found)
    summary.append(f"{len(PROMOTED)} types of numbers and collections merged to wider ones, read by {tool}")


@pytest.fixture(scope="module")
def widened() -> dict[str, tuple[str, Path]]:
    """Real ntuples, and files with the first half of their fields to which the others were added."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    made = {}
    for number, (path, name) in enumerate(real_ntuples()):
        uri = f"{path}:{name}"
        fields = list(tupelo.open(path)[name].keys(recursive=False))
        if len(fields) < 2:
            continue
        out = FOLDER / f"{number}-wide.root"
        run("copy", "-q", uri, "-o", str(out), "--force", "--fields", ",".join(fields[: len(fields) // 2]))
        if len(tupelo.open(out)[name].keys(recursive=False)) != len(fields) // 2:
            # The counters of lists came along; projected fields become stored ones, in another order.
            continue
        others = ",".join(fields[len(fields) // 2 :])
        run("append", "-q", f"{out}:{name}", uri, "--as-fields", "--fields", others)
        run("verify", "-q", str(out))
        made[uri] = (name, out)
    if not made:
        pytest.skip("no real files")
    return made


@pytest.mark.parametrize("tool", ["root", "uproot"])
def test_late_fields_are_read_by_others(widened: dict[str, tuple[str, Path]], tool: str, summary: list[str]) -> None:
    """The judge reads the values of the original, in which all fields were written together."""
    if tool == "root" and (error := root_error()):
        pytest.skip(f"ROOT cannot be imported: {error}")
    dumps = judge(tool, [{"file": str(out), "ntuple": name} for name, out in widened.values()], "widened")
    found = {}
    for uri, dump in zip(widened, dumps, strict=True):
        ours = tupelo_dump(uri, "widened")
        if tool != "uproot" or Path(uri.rpartition(":")[0]).name not in NOT_FOR_UPROOT:
            found[uri] = dump.messages + agree(ours, dump)
    report(found)
    summary.append(f"{len(found)} real ntuples whose fields were added in two steps, read by {tool}")
