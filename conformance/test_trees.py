"""Every branch of the real trees, compared with uproot, and the generated table of docs/internals/trees.md.

The real files are in ../shared/data next to the project and missing in most clones. Set TUPELO_UPDATE=1 to write the
table again.
"""

from __future__ import annotations

import collections
import json
import os
import subprocess
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uproot
from branches import equal, read_by_uproot
from panel import REAL_DATA as DATA
from panel import TUPELO, WORK, agree, judge, report, root_error, tupelo_dump
from panel import tupelo as command

import tupelo

TABLE = Path(__file__).parents[1] / "docs" / "internals" / "trees.md"
TREES = ("TTree", "TNtuple", "TNtupleD")
NOT_FOR_UPROOT = {
    ("atlas_daod_physlite_ntuple.root", "MetaData"): "takes more than 20 GB of memory for 3775 branches",
}
"""Trees that are only read, with the reason why uproot is no judge."""
BITS = "the bits of referenced objects take six bytes, and uproot reads four"
REFERENCES = "uproot shows TRef and TRefArray in another form"
NESTED = "uproot adds a dimension to fixed arrays of objects, and reads their texts and arrays in collections as bytes"
NOT_LIKE_UPROOT = {
    "mrzimu+uproot-custom__tests_data_test_cstyle_array.root": NESTED,
    "mrzimu+uproot-custom__tests_data_test_stl_array.root": NESTED,
    "mrzimu+uproot-custom__tests_data_test_stl_seq_with_obj.root": NESTED,
    "root-project+roottest__root_tree_selectorreader_trees_TreeVectorClass0.root": "uproot misreads a base",
    "scikit-hep+scikit-hep-testdata__src_skhep_testdata_data_uproot-issue-643.root": "uproot names the parts of pairs",
    "scikit-hep+scikit-hep-testdata__src_skhep_testdata_data_uproot-issue513.root": f"{BITS}; {REFERENCES}",
    "scikit-hep-testdata__uproot-issue-513.root": "uproot misreads vectors whose class has no version",
    "clones_with_trefs.root": f"{BITS}; {REFERENCES}",
    "fbits_referenced.root": BITS,
}
"""Files in which branches differ from those of uproot; `test_written.py` compares them with ROOT, imported."""


def trees() -> list[tuple[Path, str]]:
    """The newest cycle of each tree in the real files."""
    found = []
    folders = [DATA, *(DATA / folder for folder in ("trees", "wild", "reports"))]
    for path in (path for folder in folders for path in sorted(folder.glob("*.root"))):
        with uproot.open(path, handler=uproot.MemmapSource) as file:
            classes = file.classnames(cycle=False)
            found += [(path, name) for name, class_name in classes.items() if class_name in TREES]
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Without real files there is nothing to run or to skip."""
    if "real_tree" in metafunc.fixturenames:
        found = trees()
        metafunc.parametrize("real_tree", found, ids=[f"{path.stem}-{name}" for path, name in found])


def path_of(branch: Any, tree: Any) -> str:
    names = [branch.name]
    while (branch := branch.parent) is not tree:
        names.append(branch.name)
    return "/".join(reversed(names))


def compare(path: Path, name: str) -> tuple[collections.Counter[str], list[str]]:
    """Counts of branches by outcome, and what is wrong."""
    counts: collections.Counter[str] = collections.Counter()
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = tupelo.open(path)[name]
    assert isinstance(ours, tupelo.Tree)
    fields = ours.branches
    counts["refused"] = len(ours.unreadable)
    NOT_READ[path.name, name] = [f"| `{where}` | {reason} |" for where, reason in ours.unreadable.items()]
    with uproot.open(path, handler=uproot.MemmapSource) as file:
        try:
            theirs = None if (path.name, name) in NOT_FOR_UPROOT else file[name]
        except ValueError as error:
            # The codec of ROOT 2 and 3.
            if "unsupported compression algorithm: b'CS'" not in str(error):
                raise
            theirs = None
        if theirs is None:
            for where, field in fields.items():
                try:
                    ours.arrays([field], library="arrow")
                    counts["read"] += 1
                except tupelo.Error as error:
                    counts["failed"] += 1
                    NOT_READ[path.name, name].append(f"| `{where}` | {str(error).rpartition(': ')[2]} |")
            counts["not by uproot"] = counts["read"]
            return counts, wrong
        assert ours.num_entries == theirs.num_entries
        seen = set()
        for branch in theirs.itervalues(recursive=True):
            where = path_of(branch, theirs)
            if len(branch.branches) > 0 or where not in fields or where in seen:
                continue
            seen.add(where)
            expected = read_by_uproot(branch)
            try:
                found = ours[fields[where]].array()
            except tupelo.Error as error:
                counts["failed"] += 1
                NOT_READ[path.name, name].append(f"| `{where}` | {str(error).rpartition(': ')[2]} |")
                if expected is not None:
                    wrong.append(f"{where}: {error}")
                continue
            counts["read"] += 1
            is_object = ours[fields[where]].kind == "streamer"
            counts["objects"] += is_object
            if is_object:
                found = np.array([*ours[fields[where]].objects(), None], dtype=object)[:-1]
            if expected is None:
                counts["not by uproot"] += 1
            elif equal(found, expected):
                counts["equal"] += 1
            elif path.name in NOT_LIKE_UPROOT:
                counts["other"] += 1
            else:
                wrong.append(f"{where}: {branch.typename}: {str(found)[:80]} is not {str(expected)[:80]}")
    return counts, wrong


ROWS: dict[tuple[str, str], str] = {}
NOT_READ: dict[tuple[str, str], list[str]] = {}


def test_branches_are_those_of_uproot(real_tree: tuple[Path, str]) -> None:
    path, name = real_tree
    counts, wrong = compare(path, name)
    assert not wrong, "\n".join(wrong)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        entries = tupelo.open(path)[name].num_entries
    columns = ("read", "equal", "other", "not by uproot", "objects", "refused", "failed")
    cells = [counts[key] or "" for key in columns]
    shown = [f"`{path.name}`", f"`{name}`", entries, *cells]
    ROWS[path.name, name] = "| " + " | ".join(str(cell) for cell in shown) + " |"


def not_read() -> list[str]:
    """A line for each branch that is refused, or whose bytes end before its values do."""
    return [f"| `{file}` | `{tree}` {line}" for (file, tree), lines in NOT_READ.items() for line in lines]


def test_the_table_is_up_to_date() -> None:
    """It has a row for each real tree; what a row says is checked where the file is at hand."""
    text = TABLE.read_text()
    head, _, rest = text.partition("<!-- generated by conformance/test_trees.py -->\n")
    _, end, tail = rest.partition("<!-- end -->\n")
    assert end, "the table has no end"
    if os.environ.get("TUPELO_UPDATE") and ROWS:
        lines = [
            "| file | tree | entries | read | equal to uproot | other | not by uproot | objects | refused | failed |",
            "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
            *ROWS.values(),
            "",
            "| file | tree | branch | why it is not read |",
            "| --- | --- | --- | --- |",
            *not_read(),
        ]
        mark = "<!-- generated by conformance/test_trees.py -->\n"
        TABLE.write_text(head + mark + "\n".join(lines) + "\n" + end + tail)
        return
    missing = [row for row in [*ROWS.values(), *not_read()] if row not in rest]
    assert not missing, "\n".join(missing)


IMPORTED = (
    ("trees/uproot-HZZ-zstd.root", "events"),
    ("trees/uproot-stl_containers.root", "tree"),
    ("trees/uproot-issue-214.root", "E"),
    ("cms_nanoaod_2015_ttbar_tree.root", "Events"),
    ("atlas_daod_physlite_tree.root", "CollectionTree"),
)


def test_sizes_count_baskets_in_the_record_of_the_tree() -> None:
    """`ls` adds baskets that were never flushed, and their share of the compressed record, to those in the file."""
    path = DATA / "cms_nanoaod_2015_ttbar_tree.root"
    if not path.exists():
        pytest.skip(f"no {path.name}")
    done = subprocess.run([str(TUPELO), "ls", "--json", f"{path}:Events"], check=True, capture_output=True, text=True)
    listed = json.loads(done.stdout)
    fields = {field["name"]: field for field in listed["fields"]}
    with uproot.open(path) as file:
        record, tree = file.key("Events").fNbytes, file["Events"]
        written, values = 0, 0
        for branch in tree.branches:
            field = fields[branch.name]
            stored = branch.member("fZipBytes")
            own = branch.array(library="np")
            own = sum(item.nbytes for item in own) if own.dtype == object else own.nbytes
            assert field["baskets"] == branch.num_baskets, branch.name
            assert field["stored_bytes"] > stored, branch.name
            assert field["unpacked_bytes"] > own, branch.name
            written, values = written + stored, values + own
    for number in ("stored_bytes", "unpacked_bytes", "baskets"):
        assert sum(field[number] for field in fields.values()) == listed[number]
    assert written < listed["stored_bytes"] < written + record
    # Keys and the positions of entries come on top.
    assert values < listed["unpacked_bytes"] < 3 * values


def test_root_reads_imported_trees(summary: list[str]) -> None:
    """Tupelo finds the ntuple equal to the tree, and ROOT reads the same from the ntuple."""
    files = [(DATA / file, tree) for file, tree in IMPORTED if (DATA / file).exists()]
    if root_error() and files:
        summary.append(f"imported trees were not judged by ROOT: ROOT cannot be imported ({root_error()})")
    folder = WORK / "imports"
    folder.mkdir(parents=True, exist_ok=True)
    jobs = []
    for path, tree in files:
        out = folder / path.name
        done = command("import", f"{path}:{tree}", "-o", str(out), "--force", "--skip-unreadable", "--validate", "full")
        assert done.returncode == 0, done.stderr
        jobs.append({"file": str(out), "ntuple": tree})
    if jobs and not root_error():
        dumps = judge("root", jobs, "imports")
        ours = [tupelo_dump(f"{job['file']}:{job['ntuple']}", "imported") for job in jobs]
        report({job["file"]: agree(mine, dump) for job, mine, dump in zip(jobs, ours, dumps, strict=True)})
