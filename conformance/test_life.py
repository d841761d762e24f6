"""ROOT and uproot read extended ntuples, and Tupelo extends those of ROOT and uproot.

Expected values are computed here, in the canonical form of judges/compare.py.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pyarrow as pa
import pytest
import uproot
from cases import CASES, Case
from panel import WORK, Dump, Entry, agree, hidden_fields, judge, real_ntuples, report, root_error, tupelo_dump

import tupelo
from tupelo._to_arrow.tables import to_table

FOLDER = WORK / "life"
LIMIT = 2_000_000


@pytest.fixture(scope="session")
def judges(summary: list[str]) -> list[str]:
    """The available judges."""
    if error := root_error():
        summary.append(f"growing ntuples were not read by ROOT: it cannot be imported ({error})")
        return ["uproot"]
    return ["root", "uproot"]


def lines(rows: Iterable[Any], name: str) -> Path:
    """Expected values as a file."""
    path = FOLDER / f"{name}.jsonl"
    with path.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)
    return path


def place(name: str) -> Path:
    """A file that is not there."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.root"
    path.unlink(missing_ok=True)
    return path


def judged(judges: list[str], files: dict[str, Path], rows: dict[str, list[Any]], ntuple: str = "n") -> None:
    """Every file has the expected values in Tupelo and all judges, and ROOT prints no message."""
    names = list(files)
    expected = {name: lines(rows[name], name) for name in names}
    found = {f"{name}, Tupelo": agree(tupelo_dump(f"{files[name]}:{ntuple}", "life"), expected[name]) for name in names}
    for tool in judges:
        dumps = judge(tool, [{"file": str(files[name]), "ntuple": ntuple} for name in names], f"life-{names[0]}")
        for name, dump in zip(names, dumps, strict=True):
            found[f"{name}, {tool}"] = dump.messages + agree(expected[name], dump)
            assert all(accepted(tool, line) for line in dump.omitted), dump.omitted
    report(found)


def accepted(tool: str, line: str) -> bool:
    """Whether a judge may skip a field."""
    return tool == "uproot" and line.split(" ")[0] in NOT_FOR_UPROOT


# Late fields of every type.


def member(name: str, kind: Any, **metadata: str) -> Any:
    """A field that only Arrow can declare."""
    entries = {f"rntuple.{key.replace('_', '/')}": text for key, text in metadata.items()}
    return pa.field(name, kind, False, metadata=entries)


def variant(*alternatives: Any) -> Any:
    """A dense union."""
    return pa.dense_union([pa.field(f"_{i}", kind, False) for i, kind in enumerate(alternatives)])


def union(tags: list[int], *children: Any) -> Any:
    """Values of a variant."""
    offsets = [tags[:i].count(tag) for i, tag in enumerate(tags)]
    fields = [f"_{i}" for i in range(len(children))]
    return pa.UnionArray.from_dense(pa.array(tags, pa.int8()), pa.array(offsets, pa.int32()), list(children), fields)


BITS = [int(i % 3 == 0) for i in range(70)]
INTS = pa.large_list(member("item", pa.int32()))
SMALL = pa.struct([member("x", pa.float32())])
POINT = {"x": "float", "n": "std::vector<int>"}
POINTS = [{"x": 0.5, "n": [1]}, {"x": 1.5, "n": []}, {"x": -2.5, "n": [2, 3]}]
# Declaration, three values to write, the values read if they differ, and the value of entries before the field was
# added.
TYPES: dict[str, tuple[Any, Any, list[Any] | None, Any]] = {
    "bool": ("bool", [True, False, True], None, False),
    "byte": ("std::byte", [1, 200, 0], None, 0),
    "i8": ("std::int8_t", [-1, 127, -128], None, 0),
    "u8": ("std::uint8_t", [1, 255, 0], None, 0),
    "i16": ("std::int16_t", [-1, 32767, -32768], None, 0),
    "u16": ("std::uint16_t", [1, 65535, 0], None, 0),
    "i32": ("int", [-1, 2**31 - 1, -(2**31)], None, 0),
    "u32": ("unsigned", [1, 2**32 - 1, 0], None, 0),
    "i64": ("long", [-1, 2**63 - 1, -(2**63)], None, 0),
    "u64": ("std::uint64_t", [1, 2**64 - 1, 0], None, 0),
    "f32": ("float", [0.5, -1.25, 1e30], None, 0.0),
    "f64": ("double", [0.1, -1e300, 5e-324], None, 0.0),
    "d32": ("Double32_t", [0.5, -1.25, 3.0], None, 0.0),
    "half": (member("", pa.float32(), encoding="Real16"), [0.5, -1.25, 3.0], None, 0.0),
    "trunc": (member("", pa.float32(), encoding="Real32Trunc(16)"), [0.5, -1.25, 3.0], None, 0.0),
    "quant": (member("", pa.float32(), encoding="Real32Quant(8,0,255)"), [5.0, 7.0, 255.0], None, 0.0),
    "string": ("std::string", ["one", "", "drei µ"], None, ""),
    "vector": ("std::vector<int>", [[1], [], [2, 3]], None, []),
    "bools": ("std::vector<bool>", [[True], [], [False, True]], None, []),
    "nested": ("std::vector<std::vector<float>>", [[[0.5], []], [], [[1.5, 2.5]]], None, []),
    "strings": ("std::vector<std::string>", [["a", ""], [], ["b"]], None, []),
    "rvec": ("ROOT::VecOps::RVec<double>", [[0.5], [], [1.5, 2.5]], None, []),
    "set": ("std::set<int>", [[1, 2], [], [3]], None, []),
    "map": ("std::map<std::string,int>", [[("a", 1), ("b", 2)], [], [("c", 3)]], None, []),
    "array": ("std::array<float,3>", [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]], None, [0.0] * 3),
    "arrays": ("std::array<std::array<int,2>,2>", [[[1, 2], [3, 4]]] * 3, None, [[0, 0], [0, 0]]),
    "lists": ("std::array<std::vector<int>,2>", [[[1], []], [[], []], [[2, 3], [4]]], None, [[], []]),
    "texts": ("std::array<std::string,2>", [["a", ""], ["", ""], ["b", "cc"]], None, ["", ""]),
    "bits": ("std::bitset<70>", [[bit == 1 for bit in BITS]] * 3, [BITS] * 3, [0] * 70),
    "optional": ("std::optional<int>", [1, None, 3], None, None),
    "maybe": ("std::optional<std::vector<int>>", [[1], None, []], None, None),
    "pair": ("std::pair<int,float>", [(1, 0.5), (2, 1.5), (3, 2.5)], [[1, 0.5], [2, 1.5], [3, 2.5]], [0, 0.0]),
    "tuple": ("std::tuple<int,std::string>", [(1, "a"), (2, ""), (3, "c")], [[1, "a"], [2, ""], [3, "c"]], [0, ""]),
    "variant": (
        variant(pa.int32(), pa.string()),
        union([0, 1, 0], pa.array([1, 3], pa.int32()), pa.array(["two"])),
        [1, "two", 3],
        None,
    ),
    "atomic": (member("", pa.int32(), type="std::atomic<std::int32_t>", type_0="std::int32_t"), [1, 2, 3], None, 0),
    "enum": (member("", pa.int32(), type="Hue", type_0="std::int32_t"), [1, 2, 3], None, 0),
    "class": (tupelo.record("Point", POINT, version=2), POINTS, None, {"x": 0.0, "n": []}),
    "record": (pa.struct([member("x", pa.float32()), member("n", INTS)]), POINTS, None, {"x": 0.0, "n": []}),
    "classes": (pa.large_list(tupelo.record("Point", POINT)), [POINTS, [], POINTS[:1]], None, []),
    "records": (pa.large_list(member("item", SMALL)), [[{"x": 0.5}], [], [{"x": 1.5}] * 2], None, []),
}  # fmt: skip
# Fields that uproot 5.7 skips (it reports them) or shows differently.
NOT_FOR_UPROOT: dict[str, str] = {}


def columns(names: Iterable[str]) -> dict[str, Any]:
    """Data of some types."""
    return {name: TYPES[name][1] for name in names}


def late(name: str, entry: int) -> Any:
    """The value in an entry; the first entries have none."""
    _, given, read, nothing = TYPES[name]
    if entry < 0:
        return nothing
    value = (read or given)[entry]
    return [list(pair) for pair in value] if name == "map" else value


def write_late(path: Path, *, flush: bool, members: bool, reopen: bool) -> list[Any]:
    """Writes two entries without the fields and three with them, and returns the expected values."""
    file = tupelo.recreate(path)
    events = file.mkrntuple("n", {"id": "int", "rec": np.dtype([("a", "i4")])})
    events.extend({"id": [0, 1], "rec": [{"a": 10}, {"a": 11}]})
    if flush:
        events.flush_cluster()
    if reopen:
        file.close()
        file = tupelo.update(path)
        events = file["n"]
    names = list(TYPES)
    declared = {name: declared for name, (declared, *_) in TYPES.items()}
    rows: list[Any] = [{"id": i, "rec": {"a": 10 + i}} for i in range(5)]
    if members:
        events.add_members("rec", declared)
        table = to_table(columns(names), events.arrow_schema.field("rec").type)
        data = [pa.array([12, 13, 14], pa.int32()), *(column.combine_chunks() for column in table.columns)]
        record = pa.StructArray.from_arrays(data, names=["a", *names])
        events.extend({"id": [2, 3, 4], "rec": record})
    else:
        events.add_fields(declared)
        events.extend({"id": [2, 3, 4], "rec": [{"a": 12}, {"a": 13}, {"a": 14}], **columns(names)})
    file.close()
    for entry, row in enumerate(rows):
        (row["rec"] if members else row).update({name: late(name, entry - 2) for name in names})
    return rows


def test_late_fields(judges: list[str]) -> None:
    """Fields of every type, added within a cluster, between clusters and to a finished ntuple."""
    files, rows = {}, {}
    for flush, reopen in ((False, False), (True, False), (False, True)):
        name = f"late-{'reopened' if reopen else 'flushed' if flush else 'within'}"
        files[name] = place(name)
        rows[name] = write_late(files[name], flush=flush, members=False, reopen=reopen)
    judged(judges, files, rows)


def test_late_members(judges: list[str]) -> None:
    """The same as members of an untyped record."""
    files, rows = {}, {}
    for reopen in (False, True):
        name = f"members-{'reopened' if reopen else 'within'}"
        files[name] = place(name)
        rows[name] = write_late(files[name], flush=False, members=True, reopen=reopen)
    judged(judges, files, rows)


# Projections.


def test_projections(judges: list[str]) -> None:
    """Projected fields of every kind, initial and late."""
    path = place("projections")
    jet = {"pt": "float", "hits": "std::vector<int>"}
    values = [[{"pt": 0.5, "hits": [1, 2]}], [], [{"pt": 1.5, "hits": []}, {"pt": 2.5, "hits": [3]}]]
    projections: dict[str, Any] = {
        "b": "a",
        "n_jets": "#jets",
        "n_small": ("#jets", "ROOT::RNTupleCardinality<std::uint32_t>"),
        "jet_pt": "jets.pt",
        "jet_hits": "jets.hits",
        "rvec": ("jets.pt", "ROOT::VecOps::RVec<float>"),
        "n_hits": "#jets.hits",
        "text": "s",
        "set": ("l", "std::set<std::int32_t>"),
        "same": "l",
        "member": "r.x",
        "option": "o",
    }
    declared = {
        "a": "double",
        "jets": pa.large_list(tupelo.record("Jet", jet)),
        "s": "std::string",
        "l": "std::vector<int>",
        "r": np.dtype([("x", "i4")]),
        "o": "std::optional<float>",
    }
    data = {
        "a": [0.1, 0.2, 0.3],
        "jets": values,
        "s": ["x", "", "yy"],
        "l": [[1], [2, 3], []],
        "r": [{"x": 7}, {"x": 8}, {"x": 9}],
        "o": [0.5, None, 1.5],
    }
    with tupelo.recreate(path) as file:
        events = file.mkrntuple("n", declared, projections=projections)
        events.extend(data)
        events.flush_cluster()
        events.extend(data)
    with tupelo.update(path) as file:
        file["n"].add_fields(projections={"late": "a", "late_pt": "jets.pt"})
        file["n"].extend(data)
    rows = []
    for i in range(9):
        jets, row = values[i % 3], {name: column[i % 3] for name, column in data.items()}
        pt = [jet["pt"] for jet in jets]
        row |= {"b": row["a"], "n_jets": len(jets), "n_small": len(jets), "jet_pt": pt}
        row |= {"jet_hits": [jet["hits"] for jet in jets], "rvec": pt, "n_hits": [len(jet["hits"]) for jet in jets]}
        row |= {"text": row["s"], "set": row["l"], "same": row["l"], "member": row["r"]["x"], "option": row["o"]}
        rows.append(row | {"late": row["a"], "late_pt": pt})
    judged(judges, {"projections": path}, {"projections": rows})


# Extending ntuples of other programs.


def twice(source: Path, name: str, label: str) -> tuple[Path, list[str]] | str:
    """A copy of a file with all entries appended once more, or the reason if that is unsupported."""
    path = place(label)
    shutil.copy(source, path)
    path.chmod(0o644)
    original = tupelo.open({str(source): name})
    assert isinstance(original, tupelo.Ntuple)
    try:
        with tupelo.update(path) as file:
            events = file[name]
            stored = events.arrow_schema.names
            for batch in original.iterate(
                [*hidden_fields(f"{source}:{name}"), "*"], library="arrow", binary_strings=True
            ):
                events.extend(batch.select(stored))
    except tupelo.UnsupportedError as error:
        return str(error)
    lines = tupelo_dump(f"{source}:{name}", "life-original").read_text(encoding="utf-8").splitlines()
    return path, lines * 2


def extended(jobs: list[Entry], label: str, judges: list[str], library: str | None) -> list[str]:
    """Every entry exists twice in all readers; returns the files that could not be extended."""
    refused, made = [], []
    for number, job in enumerate(jobs):
        result = twice(Path(job["file"]), job["ntuple"], f"{label}-{number}")
        if isinstance(result, str):
            refused.append(f"{job['case']}: {result}")
        else:
            path, expected = result
            wanted = FOLDER / f"{label}-{number}.jsonl"
            wanted.write_text("".join(f"{line}\n" for line in expected), encoding="utf-8")
            made.append((job, path, wanted))
    found: dict[str, list[str]] = {}
    for tool in [tool for tool in judges if tool == "root"]:
        dumps = judge(tool, [{"file": str(path), "ntuple": job["ntuple"]} for job, path, _ in made], label, library)
        for (job, _, wanted), dump in zip(made, dumps, strict=True):
            found[f"{job['case']}, {tool}"] = dump.messages + agree(wanted, dump, job.get("unordered", False))
    for job, path, wanted in made:
        found[f"{job['case']}, Tupelo"] = agree(tupelo_dump(f"{path}:{job['ntuple']}", "life"), wanted)
    report(found)
    return refused


def test_files_of_root_can_be_extended(manifest: Entry, summary: list[str]) -> None:
    """All entries of every ntuple of ROOT are appended once more."""
    few = {case.name for case in CASES if is_small(case)}
    jobs = [
        entry
        for entry in manifest["cases"]
        if not entry["refused"] and entry["case"].split("@")[0].split(".")[0] in few and ";" not in entry["ntuple"]
    ]
    refused = extended(jobs, "grown-root", ["root"], manifest["library"])
    summary.append(f"{len(jobs) - len(refused)} ntuples of ROOT's were added to; {len(refused)} cannot be")
    summary.extend(f"cannot be added to: {line[:160]}" for line in refused)
    assert all("blobs are split at 1024 bytes" in line for line in refused), refused


def is_small(case: Case) -> bool:
    """Whether a case is fast and has columns: tables without columns have no entries in Python."""
    return not any(name in case.name for name in ("big", "many_pages", "no_fields"))


def test_real_files_can_be_extended(judges: list[str], summary: list[str]) -> None:
    """All entries of every small real ntuple are appended once more."""
    jobs = [{"case": f"{path.name}:{name}", "file": str(path), "ntuple": name} for path, name in real_ntuples()]
    jobs = [job for job in jobs if Path(job["file"]).stat().st_size < LIMIT]
    refused = extended(jobs, "grown-real", judges, None)
    summary.append(f"{len(jobs) - len(refused)} ntuples of real files were added to")
    summary.extend(f"cannot be added to: {line[:160]}" for line in refused)


def test_files_of_uproot_can_be_extended(judges: list[str]) -> None:
    """Entries and fields are added to ntuples of uproot."""
    path = place("uproot")
    data = {"i": np.array([1, 2, 3]), "f": np.array([0.5, 1.5, 2.5], "f4"), "v": ak.Array([[1.5], [], [2.5, 3.5]])}
    data["s"] = ak.Array(["a", "", "ccc"])
    data["r"] = ak.Array([[{"x": 1, "y": [1]}], [], [{"x": 2, "y": []}]])
    with uproot.recreate(path) as theirs:
        theirs.mkrntuple("n", data)
    with tupelo.update(path) as file:
        file["n"].extend(data)
        file["n"].add_fields({"late": "std::vector<int>"})
        file["n"].extend({**data, "late": [[1], [2], [3]]})
    rows = []
    for i in range(9):
        # uproot orders fields by name.
        row = {name: ak.to_list(data[name])[i % 3] for name in sorted(data)}
        rows.append(row | {"late": [i - 5] if i > 5 else []})
    judged(judges, {"uproot": path}, {"uproot": rows})


def test_repeated_appends(judges: list[str]) -> None:
    """Entries, fields and attributes in five updates of one file."""
    path = place("appends")
    with tupelo.recreate(path) as file:
        file["n"] = {"i": [0]}
    rows: list[dict[str, Any]] = [{"i": 0}]
    for number in range(1, 6):
        with tupelo.update(path) as file:
            events = file["n"]
            events.add_fields({f"f{number}": "std::vector<int>"})
            more = {f"f{k}": [[number] * k, [k]] for k in range(1, number + 1)}
            events.extend({"i": [10 * number, 10 * number + 1], **more})
            events.attribute_set("a", {"number": "int"}).add(0, len(rows), number=number)
            rows += [{"i": 10 * number + i, **{name: v[i] for name, v in more.items()}} for i in range(2)]
    rows = [{"i": row["i"], **{f"f{k}": row.get(f"f{k}", []) for k in range(1, 6)}} for row in rows]
    judged(judges, {"appends": path}, {"appends": rows})
    ntuple = tupelo.open(f"{path}:n")
    assert isinstance(ntuple, tupelo.Ntuple)
    assert ntuple.attributes("a").arrays()["number"].tolist() == [1, 2, 3, 4, 5]


# Attribute sets and metadata.


def rows_of(dump: Dump) -> list[Any]:
    """Lines of a dump."""
    assert not dump.error, dump.error
    assert not dump.messages, dump.messages
    return [json.loads(line) for line in dump.path.read_text(encoding="utf-8").splitlines()]


def test_attribute_sets_for_root(judges: list[str]) -> None:
    """ROOT finds the same attributes for every entry, and the metadata as another set."""
    path = place("attributes")
    ranges = [(0, 4), (2, 8), (8, 8), (9, 20), (0, 10)]
    with tupelo.recreate(path) as file:
        events = file.mkrntuple("n", {"i": np.arange(10)})
        rows = events.attribute_set("runs", {"row": "int", "tags": "std::vector<std::string>"})
        rows.extend(ranges[:2], {"row": [0, 1], "tags": [["a"], []]})
        events.metadata["generator"] = "pythia"
        events.checkpoint()
        rows.extend(ranges[2:], {"row": [2, 3, 4], "tags": [["b", "c"], [], ["d"]]})
    with tupelo.update(path) as file:
        file["n"].extend({"i": [10]})
        file["n"].metadata["tune"] = "CP5"
    ntuple = tupelo.open(f"{path}:n")
    assert isinstance(ntuple, tupelo.Ntuple)
    ours = ntuple.attributes("runs")
    assert ours.ranges.tolist() == [list(pair) for pair in ranges]
    if "root" not in judges:
        pytest.skip("ROOT cannot be imported")
    job = {"file": str(path), "ntuple": "n"}
    sets = [job | {"attributes": "runs"}, job | {"attributes": "metadata"}, job | {"attributes_by_entry": "runs"}]
    runs, metadata, by_entry = (rows_of(dump) for dump in judge("root", sets, "life-attributes"))
    # ROOT returns them in the order of their ranges.
    runs.sort(key=lambda row: row["_userData"]["row"])
    assert [(row["_rangeStart"], row["_rangeStart"] + row["_rangeLen"]) for row in runs] == ranges
    assert [row["_userData"] for row in runs] == ours.arrays().tolist()
    expected = [{"key": "generator", "value": "pythia"}, {"key": "tune", "value": "CP5"}]
    assert sorted((row["_userData"] for row in metadata), key=lambda pair: pair["key"]) == expected
    assert {(row["_rangeStart"], row["_rangeLen"]) for row in metadata} == {(0, 11)}
    assert [sorted(rows) for rows in by_entry] == [ours.of_entry(entry).arrays()["row"].tolist() for entry in range(11)]


def test_attribute_sets_of_root(manifest: Entry) -> None:
    """Tupelo finds the same attributes as ROOT in sets of ROOT."""
    jobs = [
        {"file": entry["file"], "ntuple": entry["ntuple"], "attributes_by_entry": name}
        for entry in manifest["cases"]
        for name in entry["attributes"]
    ]
    assert jobs
    for job, dump in zip(jobs, judge("root", jobs, "life-of-root", manifest["library"]), strict=True):
        ntuple = tupelo.open({job["file"]: job["ntuple"]})
        assert isinstance(ntuple, tupelo.Ntuple)
        ours = ntuple.attributes(job["attributes_by_entry"])
        numbers = {tuple(pair): i for i, pair in enumerate(ours.ranges.tolist())}
        assert len(numbers) == len(ours), "ranges tell rows apart"
        found = [
            sorted(numbers[tuple(pair)] for pair in ours.of_entry(entry).ranges.tolist())
            for entry in range(ntuple.num_entries)
        ]
        assert [sorted(rows) for rows in rows_of(dump)] == found, job


# Checkpoints and threads.


def test_checkpoints(judges: list[str]) -> None:
    """The temporary file, or the updated file, is complete after every checkpoint."""
    files: dict[str, Path] = {}
    rows: dict[str, list[Any]] = {}

    def grow(file: tupelo.WritableFile, label: str, where: Callable[[], Path], first: int) -> None:
        events = file["n"] if first else file.mkrntuple("n", {"i": "int"})
        for number in range(first, first + 3):
            events.add_fields({f"f{number}": "std::string"})
            texts = {f"f{k}": [str(k)] * 2 for k in range(number + 1)}
            events.extend({"i": [2 * number, 2 * number + 1], **texts})
            events.metadata["last"] = str(number)
            events.checkpoint()
            # The copy does not contain this.
            events.extend({"i": [-1] * 100, **{name: ["?"] * 100 for name in texts}})
            name = f"{label}-{number}"
            files[name] = place(name)
            shutil.copy(where(), files[name])
            rows[name] = []
            for entry in range(2 * (number + 1) + 100 * number):
                real = entry // 102
                is_real = entry % 102 < 2
                row: dict[str, Any] = {"i": 2 * real + entry % 102 if is_real else -1}
                text = {f"f{k}": (str(k) if is_real else "?") if k <= real else "" for k in range(number + 1)}
                rows[name].append(row | text)

    new = place("checkpoints")
    with tupelo.recreate(new) as file:
        grow(file, "checkpoint", lambda: next(FOLDER.glob("checkpoints.root.tmp-*")), 0)
    with tupelo.update(new) as file:
        grow(file, "update", lambda: new, 3)
    judged(judges, files, rows)


def test_four_threads(judges: list[str]) -> None:
    """Clusters filled by four threads form one ntuple for all readers."""
    path = place("threads")
    chunk = 2_000

    def fill(first: int) -> None:
        with events.fill_context() as context:
            for start in range(first, first + 5 * chunk, chunk):
                numbers = np.arange(start, start + chunk)
                context.extend({"i": numbers, "v": ak.unflatten(np.repeat(numbers, 2), 2), "s": numbers.astype("U")})

    with tupelo.recreate(path, cluster_bytes="20 kB", page_bytes="1 kB", checkpoint_clusters=3) as file:
        events = file.mkrntuple("n", {"i": "std::int64_t", "v": "std::vector<int>", "s": "std::string"})
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(fill, range(0, 20 * chunk, 5 * chunk)))
    ntuple = tupelo.open(f"{path}:n")
    assert isinstance(ntuple, tupelo.Ntuple)
    order = ntuple["i"].array().tolist()
    assert sorted(order) == list(range(20 * chunk))
    assert ntuple.num_clusters >= 8
    judged(judges, {"threads": path}, {"threads": [{"i": i, "v": [i, i], "s": str(i)} for i in order]})
