"""Lower bounds for readers and writers, and Tupelo's engine without Python, with the command ``tupelo-bench``."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from .packages import LEVELS, Missing, setting

BINARY = "TUPELO_BENCH"
"""Environment variable with the path of the command."""


def command(*arguments: object) -> dict[str, Any]:
    """The report of ``tupelo-bench`` for one mode."""
    binary = os.environ[BINARY]
    modes = subprocess.run([binary], check=True, capture_output=True, text=True).stdout.splitlines()
    if arguments[0] not in [line.split()[0] for line in modes]:
        raise Missing(f"this tupelo-bench has no mode {arguments[0]}: is it built from this commit?")
    done = subprocess.run([binary, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"tupelo-bench {arguments[0]}: {done.stderr.strip()}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


class Native:
    """The engine, called from Rust; ``mode`` selects one of several implementations."""

    suffix = "root"
    package = "tupelo"

    def __init__(self, threads: int, mode: str = "cut") -> None:
        self.mode = mode
        self.version = version("tupelo")

    def report(self, job: Any) -> dict[str, Any]:
        """The outcome of a job."""
        more, columns = job.more, ",".join(job.columns)
        arguments: dict[str, list[object]] = {
            "read": ["read", job.path, job.ntuple, columns],
            "analysis": ["analysis", job.path, job.ntuple],
            "cut": [self.mode, job.path, job.ntuple, columns, more.get("by"), more.get("value")],
            "random": ["random", job.path, job.ntuple, columns, ",".join(map(str, more.get("entries", [])))],
            "write": ["dry-run", job.source, job.ntuple, columns, setting(job.codec)],
        }
        return command(*arguments[job.kind], job.repeat)


class Program:
    """The command ``tupelo copy``, which reads what it writes."""

    suffix = "root"
    package = "tupelo"

    def __init__(self, threads: int) -> None:
        self.version = version("tupelo")

    def write(self, job: Any) -> Callable[[], object]:
        program = Path(os.environ[BINARY]).with_name("tupelo")
        fields = ["--fields", ",".join(job.columns), "--compression", setting(job.codec)]
        copy = [str(program), "copy", "--quiet", *fields, f"{job.source}:{job.ntuple}", job.path]
        return lambda: subprocess.run(copy, check=True, capture_output=True)


class Limit:
    """The codec alone on the same pages into one buffer, memcpy of the columns, or write(2) of the same bytes."""

    suffix = "root"

    def __init__(self, threads: int, what: str) -> None:
        self.what = what
        self.package = "numpy" if what == "memcpy" else "uproot"
        self.version = version(self.package)

    def codec(self, job: Any) -> dict[str, Any]:
        """Times of the codec alone: decompression for reads, compression for writes."""
        path = Path(job.source if job.kind == "write" else job.path)
        lines = [" ".join(map(str, page)) for page in pages(path, job.ntuple, job.columns, job.start, job.stop)]
        listed = Path(job.result).with_suffix(".pages")
        listed.write_text("".join(f"{line}\n" for line in lines))
        if job.kind == "write":
            return command("compress", path, listed, job.codec, LEVELS[job.codec], job.repeat)
        return command("decompress", path, listed, job.codec, job.repeat)

    def memcpy(self, answer_bytes: int) -> Callable[[], object]:
        source, target = np.ones(answer_bytes, np.uint8), np.zeros(answer_bytes, np.uint8)
        return lambda: np.copyto(target, source)

    def write(self, job: Any) -> Callable[[], object]:
        contents = np.memmap(job.source, np.uint8, "r")
        listed = pages(Path(job.source), job.ntuple, job.columns, None, None)
        whole = np.concatenate([contents[begin : begin + stored] for begin, stored, _ in listed])

        def write() -> None:
            with open(job.path, "wb", buffering=0) as file:
                for begin in range(0, len(whole), 4 << 20):
                    file.write(whole[begin : begin + (4 << 20)].data)

        return write


def pages(
    path: Path, ntuple: str, columns: list[str], start: int | None, stop: int | None
) -> Iterator[tuple[int, int, int]]:
    """Offset, compressed and uncompressed size of the codec's data in each page.

    Only pages that the entries need; ranges apply to flat columns only.
    """
    import uproot

    with uproot.open(path) as file:
        tuple_ = file[ntuple]
        fields, records = tuple_.field_records, tuple_.column_records
        clusters, cluster_columns = tuple_.cluster_summaries, [list(pages) for pages in tuple_.page_link_list]
    contents = np.memmap(path, np.uint8, "r")
    for summary, links in zip(clusters, cluster_columns, strict=True):
        for record, link in zip(records, links, strict=True):
            top = record.field_id
            while fields[top].parent_field_id != top:
                top = fields[top].parent_field_id
            if fields[top].field_name not in columns:
                continue
            first = summary.num_first_entry
            for page in link.pages:
                end = first + page.num_elements
                if (start is None or end > start) and (stop is None or first < stop):
                    size = (page.num_elements * record.nbits + 7) // 8
                    begin, stored = page.locator.offset, page.locator.num_bytes
                    if stored != size:  # ROOT's block: 9 bytes of header, for lz4 also 8 of checksum
                        head = 17 if contents[begin : begin + 2].tobytes() == b"L4" else 9
                        begin, stored = begin + head, stored - head
                    yield begin, stored, size
                first = end
