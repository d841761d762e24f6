"""ROOT and uproot read an ntuple whose clusters were appended as sealed pages, without decoding.

A unit test of the writer, `sealed_clusters_are_copied_without_decoding`, makes it, because only the engine can append
sealed pages.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from panel import WORK, agree, judge, report, root_error, tupelo_dump

FOLDER = WORK / "sealed"
"""Where `make test-rust` lets that test write."""


@pytest.fixture(scope="module")
def files(summary: list[str]) -> dict[str, Path]:
    """The ntuple whose clusters are copied, and the copy."""
    files = {name: FOLDER / f"{name}.root" for name in ("original", "copy")}
    if not all(path.exists() for path in files.values()):
        summary.append("sealed clusters were not read by others: make test-rust writes them")
        pytest.skip("make test-rust writes the files")
    return files


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
