"""uproot's own tests of RNTuples and trees, run with `tupelo.uproot_compat`.

They are fetched with uproot's source and are not part of the project. Tests that cannot pass are listed with the
reason; all others must pass.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest
from panel import JUDGES, PROJECT, WORK

VERSION = "5.7.7"
"""The version to which the lists below apply."""

# Reasons for excluded tests. Public operations that read entries must not be excluded.
FORMAT = "it looks at the bytes of the format: header, footer, page lists, column records"
PRIVATE = "it tests a private function of uproot"
REMOTE = "it divides the names of remote files, which are not read"
TREES = "it tests what only trees have"
LIMIT = "it wants what uproot cannot do to be refused, and Tupelo does it"
CONTAINERS = "it compares with uproot's classes of containers and objects, which are arrays, lists or `tupelo.Instance`"
DASK = "it makes Dask arrays of NumPy, or asks for uproot's way to open files and to report errors"
ARGUMENTS = "arguments have other effects, which the documentation lists"
FILES = "it counts entries of files that are not in the real files"
HISTOGRAMS = "histograms are `tupelo.Histogram`, without uproot's classes and members"
INTERPRETATION = "it uses uproot's interpretations, or parts of the format: leaves, baskets, members, streamers"
NETWORK = "it needs a network"
WRITING = "it writes other objects, continues or deletes trees, or looks at what uproot would write"
NTUPLES = {
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

TREES = {
    ARGUMENTS: [
        "test_0022_number_of_branches::test_branchname",
        "test_0022_number_of_branches::test_tuple_branchname",
        "test_0022_number_of_branches::test_compute",
        "test_0182_complain_about_missing_files",
        "test_0412_write_multidimensional_numpy_to_ttree::test_2dim_interface_2",
        "test_0498_create_leaf_branch_in_extend",
        "test_1393_TTree_virtual_arrays::test_ttree_virtual_arrays_with_log",
        "test_1393_TTree_virtual_arrays::test_ttree_virtual_arrays_single_branch",
        "test_1631_path_with_storage_options",
        "test_1698_cascadetree_counter_collisions",
    ],
    CONTAINERS: [
        "test_0023_ttree_versions",
        "test_0029_more_string_types::test_parse_typename",
        "test_0029_more_string_types::test_map_string_string_in_object",
        "test_0031_test_stl_containers",
        "test_0034_generic_objects_in_ttrees::test_gohep_nosplit_file",
        "test_0034_generic_objects_in_ttrees::test_general_awkward_form",
        "test_0034_generic_objects_in_ttrees::test_map_string_TVector3",
        "test_0384_move_behavior_of_and_fix_383",
        "test_0407_read_TDatime",
        "test_0912_fix_pandas_and_double_nested_vectors_issue_885",
        "test_1181_support_for_stl_list::test_read_free_floating_list",
        "test_1282_add_known_forth_for_atlas::test_consistent_library_np_vector_vector_elementlink",
    ],
    DASK: [
        "test_0578_dask_for_numpy",
        "test_0603_dask_delayed_open",
        "test_0876_uproot_dask_blind_steps",
        "test_1058_dask_awkward_report",
        "test_1063_dask_distributed",
        "test_1120_check_decompression_executor_pass_for_dask",
        "test_1254_test_threadpool_executor_for_dask",
    ],
    FILES: [
        "test_0044_concatenate_function",
    ],
    HISTOGRAMS: [
        "test_0349_write_TObjString::test_serialization",
        "test_0351_write_TList",
        "test_0352_write_THashList",
        "test_0405_write_a_histogram",
        "test_0412_write_multidimensional_numpy_to_ttree",
        "test_0420_pyroot_uproot_interoperability::test_write_pyroot_TH1F",
        "test_0422_hist_integration",
        "test_0580_round_trip_for_no_flow_histograms",
        "test_0965_inverted_axes_variances_hist_888",
        "test_1609_tprofiles::test_tprofile_pyroot_comparison",
        "test_1609_tprofiles::test_tprofile_strcategory",
        "test_1609_tprofiles::test_tprofile_stats",
        "test_1609_tprofiles::test_tprofile_pyroot_stats",
        "test_1657_fix_ttree_writing_bugs::test_histogram_regular_edge_detection",
    ],
    INTERPRETATION: [
        "test_0014_all_ttree_versions",
        "test_0016_interpretations::test_basket_data",
        "test_0016_interpretations::test_compressed",
        "test_0018_array_fetching_interface",
        "test_0022_number_of_branches::test_interpretation",
        "test_0320_start_working_on_ROOT_writing",
        "test_0341_manipulate_streamer_info",
        "test_0406_write_a_ttree::test_2_branches",
        "test_0414_write_jagged_arrays::test_awkward_jagged_data_1",
        "test_0414_write_jagged_arrays::test_awkward_jagged_data_2",
        "test_0414_write_jagged_arrays::test_awkward_jagged_data_3",
        "test_0439_check_awkward_before_numpy",
        "test_0472_tstreamerinfo_for_ttree",
        "test_0487_implement_asdtypeinplace",
        "test_0519_remove_memmap_copy",
        "test_0840_support_tleafG",
        "test_1182_add_support_for_bitset",
        "test_1207_fix_title_of_TBranch_with_counter",
        "test_1282_add_known_forth_for_atlas::test_pickup_vector_vector_elementlink",
        "test_1477_custom_interpretation",
        "test_1610_read_TMatrixTSym_from_ttree",
        "test_1648_interpretation_dtype_byteorder::test_interpretation_dtype_and_byteorder",
        "test_1657_fix_ttree_writing_bugs::test_string_branch_flen_per_branch",
    ],
    LIMIT: [
        "test_0087_memberwise_splitting_not_implemented_messages",
        "test_0438_TClonesArray_is_not_AsGrouped",
    ],
    NETWORK: [
        "test_0038_memberwise_serialization",
        "test_0066_fix_http_fallback_freeze",
        "test_0088_read_with_http",
        "test_0220_contiguous_byte_ranges_in_http",
        "test_0692_fsspec_writing::test_fsspec_writing_http",
        "test_0692_fsspec_writing::test_write_append_fsspec_xrootd",
        "test_1154_classof_using_relative_path",
    ],
    PRIVATE: [
        "test_0322_writablefile_infrastructure",
        "test_1657_fix_ttree_writing_bugs::test_recarray_to_dict_nested_struct",
        "test_1660_interpretation_misc_fixes",
        "test_0017_multi_basket_multi_branch_fetch",
        "test_0099_read_from_file_object",
        "test_0173_empty_and_multiprocessing_bugs::test_multiprocessing",
        "test_0302_pickle",
        "test_0418_read_TTable",
        "test_0692_fsspec_reading",
        "test_1649_avoid_full_basket_reads",
        "test_1657_fix_ttree_writing_bugs::test_compress_incompressible_block_no_corruption",
        "test_1657_fix_ttree_writing_bugs::test_compress_still_compresses_compressible_data",
        "test_1697_recreate_truncates",
    ],
    WRITING: [
        "test_0329_update_existing_root_files",
        "test_0344_writabledirectory_can_read",
        "test_0345_bulk_copy_method",
        "test_0349_write_TObjString::test_recreate",
        "test_0349_write_TObjString::test_update",
        "test_0406_write_a_ttree::test_baskets_beyond_capacity",
        "test_0412_write_multidimensional_numpy_to_ttree::test_pandas",
        "test_0414_write_jagged_arrays::test_awkward_record_data",
        "test_0414_write_jagged_arrays::test_awkward_record_pandas",
        "test_0414_write_jagged_arrays::test_awkward_jagged_record_2",
        "test_0416_writing_compressed_data::test_multicompression_1",
        "test_0416_writing_compressed_data::test_multicompression_2",
        "test_0416_writing_compressed_data::test_multicompression_1_deflate",
        "test_0416_writing_compressed_data::test_multicompression_2_deflate",
        "test_0420_pyroot_uproot_interoperability::test_from_pyroot",
        "test_0420_pyroot_uproot_interoperability::test_write_pyroot_TObjString",
        "test_0420_pyroot_uproot_interoperability::test_write_pyroot_TLorentzVector",
        "test_0420_pyroot_uproot_interoperability::test_convert_to_pyroot",
        "test_0692_fsspec_writing",
        "test_0870_writing_arrays_of_type_unknown_fix_822",
        "test_0940_feat_add_TLeafC_string_support::test_mutating_fLen",
        "test_1127_fix_allow_colon_in_key_names",
        "test_1128_TGraph_writing",
        "test_1212_dont_let_update_mess_up_file_version",
        "test_1465_ignorecase_extension",
        "test_1657_fix_ttree_writing_bugs::test_tgraph_default_y_range_uses_y",
        "test_1690_ttree_inplace",
    ],
}
"""Tests, or modules of which not all tests pass, by the reason."""


class Suite(NamedTuple):
    """Some of uproot's tests."""

    name: str
    pattern: str
    """What is in the name or text of its modules, and in none of the suites before."""
    excluded: dict[str, str]
    """Reasons by test or module."""
    fewest: int
    """Minimum number of passing tests if the real files exist."""


SUITES = [
    Suite("RNTuples", "rntuple", NTUPLES, 180),
    Suite(
        "trees",
        r"uproot\.(open|iterate|concatenate|dask|num_entries)\b|mktree",
        {test: reason for reason, tests in TREES.items() for test in tests},
        275,
    ),
]


def say(name: str, line: str, summary: list[str]) -> None:
    """Reports the coverage at the end of the run."""
    summary.append(line)
    if folder := os.environ.get("TUPELO_SUMMARY"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / f"uproot-own-tests-{name.lower()}.txt").write_text(line + "\n")


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
        # tarfile's filters came with Python 3.11.4.
        shutil.unpack_archive(WORK / f"uproot-{VERSION}.tar.gz", WORK)
    return folder / "tests", ""


def modules(folder: Path, suite: Suite) -> list[str]:
    """The modules of a suite."""
    texts = {path.name: path.name + path.read_text("utf-8") for path in folder.glob("test_*.py")}
    for one in SUITES[: SUITES.index(suite)]:
        texts = {name: text for name, text in texts.items() if not re.search(one.pattern, text, re.IGNORECASE)}
    return sorted(name for name, text in texts.items() if re.search(suite.pattern, text, re.IGNORECASE))


def names_of(test: str) -> set[str]:
    """A test, without its parameters, and its module."""
    return {test, test.partition("[")[0], test.partition("::")[0]}


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_uproot_own_tests(suite: Suite, summary: list[str], tmp_path: Path) -> None:
    folder, why = fetched()
    names = modules(folder, suite) if folder else []
    if not names:
        say(suite.name, f"uproot's own tests of {suite.name} did not run: {why or 'its source has none'}", summary)
        pytest.skip(why)
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
    unexpected = {test for test in failed if names_of(test).isdisjoint(suite.excluded)}
    assert not unexpected, f"{sorted(unexpected)}\n{done.stdout}"
    excluded = set().union(*map(names_of, failed | skipped))
    useless = {test for test, reason in suite.excluded.items() if test not in excluded and reason != NETWORK}
    assert not useless, f"listed, but they pass or are not there: {sorted(useless)}"
    if Path(data).is_dir():
        assert len(passed) >= suite.fewest, f"only {len(passed)} passed:\n{done.stdout}"
    text = f"{len(passed)} of uproot {VERSION}'s own tests of {suite.name} pass on Tupelo in {len(names)} modules"
    say(suite.name, f"{text}; {len(failed)} cannot, {len(skipped)} have no file or no package", summary)
