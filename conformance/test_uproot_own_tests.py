"""uproot's own tests of RNTuples, with `tupelo.uproot_compat` in its place.

They are fetched with uproot's source and never kept in the project. Those that cannot pass are listed with the reason;
all others must.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
from panel import JUDGES, PROJECT, WORK

VERSION = "5.7.7"
"""The lists below are those of this version."""
FEWEST = 110
"""So many must pass where the real files are there."""

INSIDE = "it looks inside of uproot"
SAME = "files must have the same fields"
WORKS = "it wants what ROOT has written to be refused, and Tupelo goes on with it"
NO_TYPE = "records without a C++ type stand in optionals, variants or fixed-size arrays"
CANNOT = {
    "test_0013_rntuple_anchor::test": INSIDE,
    "test_0630_rntuple_basics::test_flat": INSIDE,
    "test_0705_rntuple_writing_metadata::test_header": INSIDE,
    "test_1159_rntuple_cluster_groups::test_multiple_cluster_groups": INSIDE,
    "test_1191_rntuple_fixes::test_schema_extension": INSIDE,
    "test_1191_rntuple_fixes::test_multiple_page_delta_encoding": INSIDE,
    "test_1250_rntuple_improvements::test_iterate": "steps in bytes count what is handed out",
    "test_1347_rntuple_floats_suppressed_cols::test_multiple_representations": INSIDE,
    "test_1406_improved_rntuple_methods::test_getitem": INSIDE,
    "test_1492_rntuple_hidden_keys::test_struct_with_union": NO_TYPE,
    "test_1496_rntuple_write_index_arrays::test_writing_and_reading": NO_TYPE,
    "test_1510_rntuple_v1010::test_rntuple_v1010_footer_parsing": INSIDE,
    "test_1510_rntuple_v1010::test_rntuple_v1000_backward_compatibility": INSIDE,
    "test_1599_mktree_mkrntuple_with_subdir::test_mktree_repeated_same_subdir": "it writes trees",
    "test_1652_rntuple_model_fixes": INSIDE,
    "test_1687_rntuple_update::test_add_fields_rejects_root_written_column_encoding": WORKS,
    "test_1687_rntuple_update::test_ntuple_add_fields_encoding_error_checked_before_field_resolution": INSIDE,
    "test_1687_rntuple_update::test_ntuple_add_subfield_typed_parent": WORKS,
    "test_1687_rntuple_update::test_ntuple_extend_root_written_raises": WORKS,
    "test_1687_rntuple_update::test_ntuple_root_written_add_fields_raises": WORKS,
    "test_1687_rntuple_update::test_ntuple_update_root_written_file_opens": WORKS,
    "test_1687_rntuple_update::test_ntuple_multiple_add_fields_same_session": INSIDE,
    "test_1687_rntuple_update::test_ntuple_add_subfield_to_variant": NO_TYPE,
    "test_1687_rntuple_update::test_ntuple_access_variant_field_raises_clearly": NO_TYPE,
    "test_1687_rntuple_update::test_ntuple_add_subfield_ambiguous_name_raises": "paths from the top are not ambiguous",
    "test_1700_rntuple_extend_flushing": INSIDE,
    "test_1720_rntuple_nested_fields::test_dask_reads_nested_rntuple_fields": "it wants whole records; less is read",
    "test_1720_rntuple_nested_fields::test_leaf_paths_are_spelled_like_rntuple_keys": INSIDE,
    "test_1736_rntuple_filter_subfields::test_dask_reads_common_subfields": SAME,
    "test_1736_rntuple_filter_subfields::test_dask_selects_fields_by_full_path[True]": SAME,
    "test_1737_rntuple_array_subfields::test_nested_std_arrays": NO_TYPE,
}


def say(line: str, summary: list[str]) -> None:
    """Says at the end of the run what this covered."""
    summary.append(line)
    if folder := os.environ.get("TUPELO_SUMMARY"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / "uproot-own-tests.txt").write_text(line + "\n")


def fetched() -> tuple[Path | None, str]:
    """The folder of uproot's tests, or why they are not there."""
    folder = WORK / f"uproot-{VERSION}"
    if not (folder / "tests").is_dir():
        WORK.mkdir(parents=True, exist_ok=True)
        command = [
            "download",
            "--quiet",
            "--no-deps",
            "--no-binary",
            "uproot",
            f"uproot=={VERSION}",
            "--dest",
            str(WORK),
        ]
        done = subprocess.run([sys.executable, "-m", "pip", *command], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return None, (done.stderr.strip().splitlines() or ["pip ends without a word"])[-1]
        with tarfile.open(WORK / f"uproot-{VERSION}.tar.gz") as archive:
            archive.extractall(WORK, filter="data")
    modules = list((folder / "tests").glob("test_*rntuple*.py"))
    return (folder / "tests", "") if modules else (None, "uproot's source has no tests of RNTuples")


def test_uproots_own_tests(summary: list[str], tmp_path: Path) -> None:
    folder, why = fetched()
    if folder is None:
        say(f"uproot's own tests did not run: {why}", summary)
        pytest.skip(why)
    modules = sorted(path.name for path in folder.glob("test_*rntuple*.py"))
    data = os.environ.get("TUPELO_DATA") or str(PROJECT.parent / "shared" / "data")
    python_path = [str(JUDGES), *filter(None, [os.environ.get("PYTHONPATH")])]
    options = [
        "-c",
        os.devnull,
        "--rootdir=.",
        "--noconftest",
        "-p",
        "uproot_as_tupelo",
        "-p",
        "no:cacheprovider",
        "-q",
    ]
    report = tmp_path / "report.xml"
    options += ["--tb=line", "--continue-on-collection-errors", f"--basetemp={tmp_path / 'run'}"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, f"--junit-xml={report}", *modules],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(python_path), "TUPELO_DATA": data},
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.exists(), done.stdout + done.stderr
    results: dict[str, set[str]] = {"passed": set(), "failed": set(), "skipped": set()}
    for case in ElementTree.parse(report).iter("testcase"):
        name = "::".join(part for part in (case.get("classname"), case.get("name")) if part)
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        results[outcome].add(name)
    passed, failed, skipped = results.values()
    unexpected = failed - CANNOT.keys()
    assert not unexpected, f"{sorted(unexpected)}\n{done.stdout}"
    assert not (passed & CANNOT.keys()), f"listed, but they pass: {sorted(passed & CANNOT.keys())}"
    assert not (CANNOT.keys() - failed - skipped), "listed, but not there"
    if Path(data).is_dir():
        assert len(passed) >= FEWEST, f"only {len(passed)} passed:\n{done.stdout}"
    text = f"{len(passed)} of uproot {VERSION}'s own tests of RNTuples pass on Tupelo in {len(modules)} modules"
    say(f"{text}; {len(failed)} cannot, {len(skipped)} have no file or no package", summary)
