"""uproot's own tests of RNTuples, run with `tupelo.uproot_compat`.

They are fetched with uproot's source and are not part of the project. Tests that cannot pass are listed with the
reason; all others must pass.
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
"""The version to which the lists below apply."""
FEWEST = 180
"""Minimum number of passing tests if the real files exist."""

# Reasons for excluded tests. Public operations on ntuples must not be excluded.
FORMAT = "it looks at the bytes of the format: header, footer, page lists, column records"
PRIVATE = "it tests a private function of uproot"
REMOTE = "it divides the names of remote files, which are not read"
TREES = "it tests what only trees have"
LIMIT = "it wants what uproot cannot do to be refused, and Tupelo does it"
CANNOT = {
    "test_0013_rntuple_anchor::test": FORMAT,
    "test_0630_rntuple_basics::test_flat": FORMAT,
    "test_0705_rntuple_writing_metadata::test_header": FORMAT,
    "test_0976_path_object_split::test_url_split[input_value3-expected_output3]": PRIVATE,
    "test_0976_path_object_split::test_url_split[s3://bucket/path/to/file.root:-expected_output8]": REMOTE,
    "test_0976_path_object_split::test_url_split[s3://bucket/path/to/file.root:-expected_output12]": REMOTE,
    "test_0976_path_object_split::test_url_split[input_value16-expected_output16]": REMOTE,
    "test_0976_path_object_split::test_url_split[input_value17-expected_output17]": REMOTE,
    "test_0976_path_object_split::test_url_split[input_value18-expected_output18]": REMOTE,
    "test_0976_path_object_split::test_url_split[zip://uproot-issue121.root:Events/MET_pt::file:///some/weird/path:with:"
    "colons/file.root-expected_output19]": REMOTE,
    "test_0976_path_object_split::test_url_split[http://xcacheserver:8762//https://originserver:4212/path/file.root.1:"
    "CollectionTree-expected_output22]": REMOTE,
    "test_1159_rntuple_cluster_groups::test_multiple_cluster_groups": FORMAT,
    "test_1191_rntuple_fixes::test_schema_extension": FORMAT,
    "test_1191_rntuple_fixes::test_multiple_page_delta_encoding": PRIVATE,
    "test_1347_rntuple_floats_suppressed_cols::test_multiple_representations": FORMAT,
    "test_1406_improved_rntuple_methods::test_getitem": FORMAT,
    "test_1510_rntuple_v1010::test_rntuple_v1010_footer_parsing": FORMAT,
    "test_1510_rntuple_v1010::test_rntuple_v1000_backward_compatibility": FORMAT,
    "test_1604_write_tuple_dtypes::test_unsupported_numpy_dtypes": TREES,
    "test_1604_write_tuple_dtypes::test_type_specification_to_awkward_form": PRIVATE,
    "test_1652_rntuple_model_fixes": PRIVATE,
    "test_1656_entry_range_arithmetic::test_basket_selection_no_extra_basket_on_boundary": TREES,
    "test_1656_entry_range_arithmetic::test_concatenate_allow_missing_keeps_offsets": TREES,
    "test_1687_rntuple_update::test_add_fields_rejects_root_written_column_encoding": LIMIT,
    "test_1687_rntuple_update::test_ntuple_access_variant_field_raises_clearly": LIMIT,
    "test_1687_rntuple_update::test_ntuple_add_fields_encoding_error_checked_before_field_resolution": PRIVATE,
    "test_1687_rntuple_update::test_ntuple_add_subfield_typed_parent": LIMIT,
    "test_1687_rntuple_update::test_ntuple_extend_root_written_raises": LIMIT,
    "test_1687_rntuple_update::test_ntuple_multiple_add_fields_same_session": PRIVATE,
    "test_1687_rntuple_update::test_ntuple_root_written_add_fields_raises": LIMIT,
    "test_1687_rntuple_update::test_ntuple_update_root_written_file_opens": LIMIT,
    "test_1700_rntuple_extend_flushing": PRIVATE,
    "test_1720_rntuple_nested_fields::test_leaf_paths_are_spelled_like_rntuple_keys": PRIVATE,
}


def say(line: str, summary: list[str]) -> None:
    """Reports the coverage at the end of the run."""
    summary.append(line)
    if folder := os.environ.get("TUPELO_SUMMARY"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / "uproot-own-tests.txt").write_text(line + "\n")


def fetched() -> tuple[Path | None, str]:
    """The directory of uproot's tests, or the reason if they are missing."""
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
    return (folder / "tests", "") if modules(folder / "tests") else (None, "uproot's source has no tests of RNTuples")


def modules(folder: Path) -> list[str]:
    """The tests of RNTuples, selected by name or content."""
    return sorted(
        path.name for path in folder.glob("test_*.py") if "rntuple" in (path.name + path.read_text("utf-8")).lower()
    )


def test_uproot_own_tests(summary: list[str], tmp_path: Path) -> None:
    folder, why = fetched()
    if folder is None:
        say(f"uproot's own tests did not run: {why}", summary)
        pytest.skip(why)
    names = modules(folder)
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
        [sys.executable, "-m", "pytest", *options, f"--junit-xml={report}", *names],
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
    text = f"{len(passed)} of uproot {VERSION}'s own tests of RNTuples pass on Tupelo in {len(names)} modules"
    say(f"{text}; {len(failed)} cannot, {len(skipped)} have no file or no package", summary)
