"""Trees: Tupelo beside ROOT's loops and uproot, with equal answers.

`make bench ROWS=ttree` calls this; `ROWS=ttree-read*` does some rows. ROOT writes the trees: the 26 columns of LHCb's
B→hhh as doubles with each codec, and lists of floats. Each contestant runs in its own process: one call that is not
measured, then several. Exit status 1 if answers differ or a contestant fails, not if a target is missed.
"""

from __future__ import annotations

import argparse
import fnmatch
import functools
import json
import os
import resource
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from .machine import DATA, cores, finish, machine, say
from .rivals import limits
from .rivals.packages import LEVELS
from .tasks import ALL_26, EIGHTEEN

FOLDER = DATA / "trees-data"
CODECS = {"none": (0, 0), "zstd": (5, 5), "lzma": (2, 7), "lz4": (4, 4), "zlib": (1, 1)}
"""ROOT's number of the algorithm, and level."""
ROOT_FACTOR, UPROOT_FACTOR, JAGGED_FACTOR, IMPORT_FACTOR, THREADS_FACTOR = 3.0, 2.0, 5.0, 3.0, 1.8
CODEC_FACTOR = 1 / 1.3
"""Of the time of the bare codec that an import may take."""
CODEC_HEAD_BYTES = 9
JOB_SECONDS = 1200

LOOP = """
#include <TFile.h>
#include <TTree.h>
std::vector<double> loop(const char *path, const char *tree, const std::vector<std::string> &names) {
    std::unique_ptr<TFile> file(TFile::Open(path));
    auto t = file->Get<TTree>(tree);
    t->SetBranchStatus("*", 0);
    std::vector<double> values(names.size()), sums(names.size());
    std::vector<TBranch *> branches;
    for (size_t i = 0; i < names.size(); i++) {
        t->SetBranchStatus(names[i].c_str(), 1);
        t->SetBranchAddress(names[i].c_str(), &values[i]);
    }
    for (Long64_t entry = 0; entry < t->GetEntries(); entry++) {
        t->GetEntry(entry);
        for (size_t i = 0; i < names.size(); i++) sums[i] += values[i];
    }
    return sums;
}
void write_jagged(const char *path, long entries) {
    TFile file(path, "RECREATE", "", 505);
    TTree t("Jagged", "");
    int n; float x[16]; std::vector<float> v; std::vector<std::vector<float>> vv;
    t.Branch("n", &n, "n/I"); t.Branch("x", x, "x[n]/F"); t.Branch("v", &v); t.Branch("vv", &vv);
    unsigned seed = 1;
    auto next = [&] { return (seed = seed * 1664525u + 1013904223u) >> 16; };
    for (long entry = 0; entry < entries; entry++) {
        n = next() % 8; v.clear(); vv.clear();
        for (int i = 0; i < n; i++) { x[i] = next() / 256.f; v.push_back(next() / 256.f); }
        for (int i = next() % 5; i > 0; i--) vv.emplace_back(next() % 5, next() / 256.f);
        t.Fill();
    }
    t.Write();
}
void import_tree(const char *from, const char *tree, const char *to) {
    remove(to);
    auto importer = ROOT::Experimental::RNTupleImporter::Create(from, tree, to);
    importer->SetIsQuiet(true);
    auto options = importer->GetWriteOptions();
    options.SetCompression(505);
    importer->SetWriteOptions(options);
    importer->Import();
}
"""


@functools.cache
def root() -> Any:
    import ROOT

    ROOT.gErrorIgnoreLevel = ROOT.kError
    ROOT.gInterpreter.Declare(LOOP)
    return ROOT


def prepare(events: int, fresh: bool) -> None:
    """Writes the trees that are missing."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    if fresh:
        for path in FOLDER.glob("*.root"):
            path.unlink()
    random = np.random.default_rng(1)
    wanted = [codec for codec in CODECS if not (FOLDER / f"b2hhh-{events}-{codec}.root").exists()]
    if wanted:
        columns = {name: (random.normal(0, 1e4, events) / 7).astype("f4").astype("f8") for name in ALL_26}
        ours = root()
        frame = ours.RDF.FromNumpy(columns)
        for codec in wanted:
            options = ours.RDF.RSnapshotOptions()
            options.fCompressionAlgorithm, options.fCompressionLevel = CODECS[codec]
            frame.Snapshot("DecayTree", str(FOLDER / f"b2hhh-{events}-{codec}.root"), sorted(ALL_26), options)
    if not (FOLDER / f"jagged-{events}.root").exists():
        root().write_jagged(str(FOLDER / f"jagged-{events}.root"), events)


def checked(values: Any) -> list[float]:
    """The sums that contestants must agree on."""
    return [float(value) for value in values]


def contestant(job: dict[str, Any]) -> Callable[[], Any]:
    """What is measured: it returns columns, or sums."""
    path, tree, columns, who = job["path"], job["tree"], job["columns"], job["who"]
    if who == "ROOT":
        loop = root().loop
        return lambda: checked(loop(path, tree, columns))
    if who == "uproot":
        import uproot

        return lambda: uproot.open(f"{path}:{tree}").arrays(columns, library=job["library"])
    if who == "ROOT import":
        ours = root()
        return lambda: ours.import_tree(path, tree, job["out"])
    if who == "tupelo import":
        command = [
            job["binary"],
            "import",
            f"{path}:{tree}",
            "-o",
            job["out"],
            "--force",
            "--quiet",
            "--validate",
            "none",
        ]
        return lambda: subprocess.run([*command, "--threads", str(job["threads"])], check=True)
    import tupelo

    tupelo.set_threads(job["threads"])
    return lambda: tupelo.open(f"{path}:{tree}").arrays(columns, library=job["library"])


def baskets(path: Path, tree: str) -> Iterator[tuple[int, int, int]]:
    """Offset, compressed and uncompressed size of the codec's data in each basket."""
    import uproot

    contents = np.memmap(path, np.uint8, "r")
    with uproot.open(f"{path}:{tree}") as opened:
        for branch in opened.itervalues():
            for seek in branch.member("fBasketSeek")[: branch.member("fWriteBasket")].tolist():
                record_bytes, _, object_bytes, _, key_bytes = struct.unpack_from(">iHiIH", contents, seek)
                is_packed = record_bytes - key_bytes < object_bytes
                begin = key_bytes + (CODEC_HEAD_BYTES if is_packed else 0)
                yield seek + begin, record_bytes - begin, object_bytes


def codec_alone(job: dict[str, Any]) -> float:
    """Seconds to decompress all baskets of a tree and to compress the pages of the ntuple made of it."""
    tree, made = Path(job["path"]), Path(job["out"])
    lists = {
        "decompress": (tree, baskets(tree, job["tree"]), ()),
        "compress": (made, limits.pages(made, job["tree"], job["columns"], None, None), (LEVELS["zstd"],)),
    }
    seconds = 0.0
    for mode, (path, pieces, level) in lists.items():
        listed = made.with_suffix(f".{mode}")
        listed.write_text("".join(f"{' '.join(map(str, piece))}\n" for piece in pieces))
        report = limits.command(mode, path, listed, "zstd", *level, job["repeat"])
        seconds += statistics.median(report["seconds"])
    return seconds


def answer(job: dict[str, Any], values: Any) -> list[float]:
    if isinstance(values, list):
        return values
    if "import" in job["who"]:
        import tupelo

        table = tupelo.open(f"{job['out']}:{job['tree']}").arrays(job["columns"], library="np")
        return checked(table[name].sum() for name in job["columns"])
    if job["library"] == "np":
        return checked(values[name].sum() for name in job["columns"])
    import awkward as ak

    return checked(ak.sum(values[name], axis=None) for name in job["columns"])


def work() -> None:
    """Runs one contestant in a separate process."""
    job = json.loads(sys.argv[2])
    if job["who"] == "limit: codec":
        # Its answer is that of the ntuple that Tupelo made before.
        print(json.dumps({"seconds": codec_alone(job), "answer": answer(job | {"who": "tupelo import"}, None)}))
        return
    call = contestant(job)
    times, values = [], None
    for _ in range(job["repeat"] + 1):
        values = None
        begin = time.perf_counter()
        values = call()
        times.append(time.perf_counter() - begin)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    print(json.dumps({"seconds": statistics.median(times[1:]), "answer": answer(job, values), "child_mib": memory}))


def rows(options: argparse.Namespace) -> list[tuple[str, dict[str, Any], list[tuple[str, int]], dict[str, float]]]:
    """Name, job, contestants with threads, and the wanted factors of Tupelo with one thread."""
    flat = {"tree": "DecayTree", "columns": sorted(EIGHTEEN), "library": "np"}
    found = []
    for codec in CODECS:
        path = str(FOLDER / f"b2hhh-{options.events}-{codec}.root")
        who = [("tupelo", 1), ("tupelo", cores()), ("ROOT", 1), ("uproot", 1)]
        wanted = {"ROOT": ROOT_FACTOR, "uproot": UPROOT_FACTOR} if codec in ("zstd", "lzma") else {}
        found.append((f"ttree-read-{codec}", flat | {"path": path}, who, wanted))
    path = str(FOLDER / f"jagged-{options.events}.root")
    for column in ("x", "v", "vv"):
        job = {"path": path, "tree": "Jagged", "columns": [column], "library": "ak"}
        found.append(
            (
                f"ttree-jagged-{column}",
                job,
                [("tupelo", 1), ("tupelo", cores()), ("uproot", 1)],
                {"uproot": JAGGED_FACTOR},
            )
        )
    path = str(FOLDER / f"b2hhh-{options.events}-zstd.root")
    job = flat | {"path": path, "columns": sorted(ALL_26), "out": str(FOLDER / "imported.root")}
    job["binary"] = str(options.binaries / "tupelo")
    who = [("tupelo import", 1), ("tupelo import", cores()), ("limit: codec", 1), ("ROOT import", 1)]
    found.append(("ttree-import", job, who, {"ROOT import": IMPORT_FACTOR, "limit: codec": CODEC_FACTOR}))
    return found


def run(options: argparse.Namespace) -> int:
    prepare(options.events, options.fresh)
    lines = [
        f"# Trees, {datetime.now(UTC):%Y-%m-%d}\n",
        f"{machine()['cpu']}, {cores()} cores. {options.events} events; median of {options.repeat}; warm page cache.\n",
        "| row | who | threads | s | Tupelo, 1 thread, is faster by |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    failed = []
    for name, job, contestants, wanted in rows(options):
        if not any(fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(name, f"{pattern}*") for pattern in options.trees):
            continue
        first: dict[str, Any] = {}
        for who, threads in contestants:
            say(f"{name}: {who}, {threads} threads")
            this = job | {"who": who, "threads": threads, "repeat": options.repeat}
            command = [sys.executable, "-m", "bench.trees", "--job", json.dumps(this)]
            environment = os.environ | {
                "OMP_NUM_THREADS": "1",
                limits.BINARY: str(options.binaries / "tupelo-bench"),
            }
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=JOB_SECONDS, env=environment, check=False
            )
            if done.returncode != 0:
                failed.append(f"{name}: {who}: {done.stderr.strip().splitlines()[-1:]}")
                continue
            found = json.loads(done.stdout.strip().splitlines()[-1])
            first = first or found
            if not np.allclose(found["answer"], first["answer"], rtol=1e-9):
                failed.append(f"{name}: {who} has another answer")
            factor = found["seconds"] / first["seconds"]
            mark = f" (wanted {wanted[who]:.2g})" if who in wanted else ""
            memory = found.get("child_mib", 0)
            mark += f"; {memory} MiB" if memory and "import" in who and "tupelo" in who else ""
            lines.append(f"| {name} | {who} | {threads} | {found['seconds']:.3f} | {factor:.2f}{mark} |")
    return finish("trees.md", lines, failed)


if __name__ == "__main__" and sys.argv[1:2] == ["--job"]:
    work()
