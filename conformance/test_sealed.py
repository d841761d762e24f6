"""ROOT and uproot read an ntuple whose clusters were appended as sealed pages, without decoding.

A unit test of the writer makes it, because only the engine can append sealed pages.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from panel import PROJECT, WORK, agree, judge, report, root_error, tupelo_dump

FOLDER = WORK / "sealed"
TEST = "writer::tests::sealed_clusters_are_copied_without_decoding"


@pytest.fixture(scope="module")
def files(summary: list[str]) -> dict[str, Path]:
    """The ntuple whose clusters are copied, and the copy."""
    cargo = shutil.which("cargo")
    if cargo is None:
        summary.append("sealed clusters were not read by others: there is no cargo to write them")
        pytest.skip("no cargo")
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    # Without `-p`, the build of the Rust tests is reused.
    command = [cargo, "test", "--quiet", "--locked", "--lib", TEST, "--", "--exact"]
    environment = os.environ | {"TUPELO_SEALED": str(FOLDER)}
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return {name: FOLDER / f"{name}.root" for name in ("original", "copy")}


@pytest.mark.parametrize("tool", ["root", "uproot"])
def test_sealed_clusters_are_read_by_others(files: dict[str, Path], tool: str, summary: list[str]) -> None:
    """The copy has the values of the original, in Tupelo and in the judge."""
    if tool == "root" and (error := root_error()):
        summary.append(f"sealed clusters were not read by ROOT: it cannot be imported ({error})")
        pytest.skip("ROOT cannot be imported")
    ours = tupelo_dump(f"{files['original']}:events", "sealed")
    dumps = judge(tool, [{"file": str(path), "ntuple": "events"} for path in files.values()], "sealed")
    found = {name: dump.messages + agree(ours, dump) for name, dump in zip(files, dumps, strict=True)}
    found["copy, Tupelo"] = agree(ours, tupelo_dump(f"{files['copy']}:events", "sealed"))
    assert not any(dump.omitted for dump in dumps)
    report(found)
