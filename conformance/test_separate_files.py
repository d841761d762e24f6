"""Branches whose baskets are in other files (`TBranch::SetFile`): read as ROOT reads them, and moved into one file."""

from __future__ import annotations

import io
import json
import pickle
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uproot
from http_server import Server
from panel import TUPELO, WORK, root_error
from root_programs import root_without_errors

import tupelo

FOLDER = WORK / "separate_files"
PLACEHOLDER = "other_" + "x" * 180 + ".root"
"""Tests replace this name in an uncompressed file by another one of the same length."""
WRITE = """
import sys, ROOT
from array import array
def write(path, files, compression=101, flush=1000, start=0):
    with ROOT.TFile(path, "RECREATE", "", compression) as file:
        tree = ROOT.TTree("t", "in several files")
        tree.SetAutoFlush(flush)
        n, k, flat, x = array("i", [0]), array("i", [0]), array("d", [0]), array("f", [0] * 8)
        vector, momentum = ROOT.std.vector("float")(), ROOT.TLorentzVector()
        tree.Branch("n", n, "n/I")
        tree.Branch("x", x, "x[n]/F", 1000)
        tree.Branch("v", vector)
        tree.Branch("p", momentum, 4000, 99)
        tree.Branch("flat", flat, "flat/D", 1000)
        tree.Branch("k", k, "k/I", 1000)
        for name, other in files.items():
            tree.GetBranch(name).SetFile(other)
        for entry in range(start, start + 2500):
            n[0], flat[0], k[0] = entry % 5, entry / 7, 3 * entry
            for item in range(n[0]):
                x[item] = entry + item / 8
            vector.clear()
            for item in range(entry % 3):
                vector.push_back(entry * 0.5 + item)
            momentum.SetPxPyPzE(entry, entry + 1, entry + 2, entry + 3)
            tree.Fill()
        tree.Write()
some = {"x": "other.root", "v": "other.root", "p": "third.root", "k": "third.root"}
write("main.root", some)
write("more.root", {name: f"more_{other}" for name, other in some.items()}, start=2500)
write("counter.root", {"n": "counter_n.root", "flat": "counter_n.root"})
write("open.root", {name: f"open_{other}" for name, other in some.items()}, flush=0)
write("raw.root", {"k": sys.argv[1]}, compression=0)
"""
READ = """
import sys, json, ROOT
file = ROOT.TFile(sys.argv[1])
tree = file.Get("t")
print("[")
for entry in range(tree.GetEntries()):
    assert tree.GetEntry(entry) > 0
    p = tree.p
    found = [tree.n, list(tree.x), list(tree.v), [p.X(), p.Y(), p.Z(), p.E()], tree.flat, tree.k]
    print("," if entry else "", json.dumps(found))
names = [branch.GetFileName() for branch in tree.GetListOfBranches()]
names += [branch.GetFileName() for branch in tree.GetBranch("p").GetListOfBranches()]
print("]", file=sys.stdout, flush=True)
print(json.dumps(names))
"""


def read_by_root(path: Path) -> tuple[list[Any], set[str]]:
    """The entries, and the names of other files."""
    text, _, names = root_without_errors(READ, path.name, folder=path.parent).rstrip().rpartition("\n")
    return json.loads(text), set(json.loads(names))


def run(*arguments: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [str(TUPELO), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)


def done(*arguments: str | Path, folder: Path | None = None) -> str:
    found = run(*arguments, folder=folder)
    assert found.returncode == 0, found.stderr
    return found.stdout


def entries(tree: Any) -> list[Any]:
    """The entries that Tupelo reads, in the form of `READ`."""
    momentum = [("fP", "fX"), ("fP", "fY"), ("fP", "fZ")]
    return [
        [row["n"], row["x"], row["v"], [*(row["p"][a][b] for a, b in momentum), row["p"]["fE"]], row["flat"], row["k"]]
        for row in tree.arrays().tolist()
    ]


@pytest.fixture(scope="module")
def written() -> Path:
    """The folder with the files."""
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    root_without_errors(WRITE, PLACEHOLDER, folder=FOLDER)
    return FOLDER


@pytest.fixture
def server(written: Path) -> Iterator[Server]:
    """A web server of the files."""
    server = Server(written)
    yield server
    server.close()


def renamed(written: Path, folder: Path, name: str) -> Path:
    """A copy of raw.root whose branch `k` is in a file of this name, which is padded."""
    path = folder / "raw.root"
    long = name.replace("*", "x" * (len(PLACEHOLDER) - len(name) + 1))
    path.write_bytes((written / "raw.root").read_bytes().replace(PLACEHOLDER.encode(), long.encode()))
    return path


@pytest.mark.parametrize("name", ["main.root", "counter.root", "open.root"])
def test_values_are_those_of_root(
    written: Path, name: str, monkeypatch: pytest.MonkeyPatch, summary: list[str]
) -> None:
    """From the folder of the files and from elsewhere, and by other processes."""
    expected, others = read_by_root(written / name)
    assert len(expected) == 2500
    assert others > {""}
    tree = tupelo.open(written / name)["t"]
    assert entries(tree) == expected
    assert entries(pickle.loads(pickle.dumps(tree))) == expected
    assert tree["x"].array(entry_start=2000, library="np").tolist()[0].tolist() == expected[2000][1]
    monkeypatch.chdir(written.parent)
    assert entries(tupelo.open(f"{written.name}/{name}")["t"]) == expected
    monkeypatch.chdir(written)
    assert entries(tupelo.open(name)["t"]) == expected
    assert [json.loads(line)["k"] for line in done("dump", name).splitlines()] == [row[-1] for row in expected]
    assert "damage" not in done("verify", name)
    summary.append(f"{len(others) - 1} files with baskets of {name} found as by ROOT")


def test_other_files_are_opened_when_they_are_needed(written: Path, tmp_path: Path) -> None:
    """A tree without its other files can be read as far as it has its baskets. Errors say what is missing."""
    alone = Path(shutil.copy(written / "main.root", tmp_path))
    tree = tupelo.open(alone)["t"]
    assert tree["flat"].array(library="np").tolist() == [entry / 7 for entry in range(2500)]
    for branch, other in [("x", "other.root"), ("p", "third.root")]:
        with pytest.raises(FileNotFoundError) as missing:
            tree[branch].array()
        text = str(missing.value)
        for part in (str(alone), "tree 't'", f"branch '{branch}", f"another file, '{other}'", f"{tmp_path}/{other}"):
            assert part in text, (part, text)
    verified = run("verify", alone)
    assert verified.returncode == 1, verified.stdout
    assert verified.stdout.count("in another file, 'other.root'") == 2, verified.stdout
    for command in (["copy", alone, "-o"], ["import", alone], ["merge"]):
        ends = [alone, alone] if command == ["merge"] else []
        refused = run(*command, tmp_path / "out.root", *ends)
        assert refused.returncode == 1, refused.stderr
        assert "other.root" in refused.stderr, refused.stderr
        assert not (tmp_path / "out.root").exists()
    shutil.copy(written / "other.root", tmp_path)
    assert len(tree["x"].array()) == 2500


def test_foreign_files_are_errors(written: Path, tmp_path: Path) -> None:
    """A file that is another one is neither taken for the right one nor does it end the program."""
    main = Path(shutil.copy(written / "main.root", tmp_path))
    other = tmp_path / "other.root"
    shutil.copy(written / "third.root", tmp_path)
    for foreign in ("third.root", "more.root", "main.root"):
        shutil.copy(written / foreign, other)
        for branch in ("x", "v"):
            with pytest.raises(tupelo.Error) as refused:
                tupelo.open(main)["t"][branch].array()
            text = str(refused.value)
            assert all(part in text for part in (str(main), "tree 't'", f"branch '{branch}'", "other.root")), text
        for command in (["copy", main, "-o"], ["copy", main, "--auto-flush", "100", "-o"]):
            moved = run(*command, tmp_path / "out.root")
            assert moved.returncode == 1, moved.stderr
            assert "other.root" in moved.stderr, moved.stderr
            assert not (tmp_path / "out.root").exists()
    other.write_bytes(b"not a ROOT file" * 1000)
    with pytest.raises(tupelo.Error, match=r"branch 'x': its baskets are in another file, 'other.root'"):
        tupelo.open(main)["t"]["x"].array()


@pytest.mark.parametrize("name", ["main.root", "counter.root", "open.root"])
def test_copies_are_one_file(written: Path, name: str, tmp_path: Path) -> None:
    """ROOT, uproot and Tupelo read a copy without the other files."""
    expected, _ = read_by_root(written / name)
    out = tmp_path / "out.root"
    for options in (
        [],
        ["--compression", "lz4:4"],
        ["--auto-flush", "100", "--basket-bytes", "1kB"],
        ["--cut", "n >= 0"],
    ):
        done("copy", "-q", written / name, "-o", out, "--force", *options)
        found, others = read_by_root(out)
        assert (found, others) == (expected, {""}), options
        assert entries(tupelo.open(out)["t"]) == expected, options
        with uproot.open(out) as file:
            assert file["t"]["x"].array().tolist() == [row[1] for row in expected], options
            assert file["t"]["k"].array().tolist() == [row[-1] for row in expected], options
    done("copy", "-q", written / name, "-o", out, "--force", "--fields", "x,k")
    tree = tupelo.open(out)["t"]
    assert tree["x"].array().tolist() == [row[1] for row in expected]
    assert "v" not in tree
    repacked = tmp_path / name
    done("repack", written / name, "-o", repacked)
    assert read_by_root(repacked) == (expected, {""})
    done("import", "-q", written / name, tmp_path / "ntuple.root", "--validate", "full")
    assert tupelo.open(tmp_path / "ntuple.root")["t"]["k"].array(library="np").tolist() == [row[-1] for row in expected]


def test_merged_trees_are_one_file(written: Path, tmp_path: Path) -> None:
    """Trees with branches in other files, in the same one or in none follow each other."""
    paths = [written / "main.root", written / "more.root", written / "counter.root"]
    expected = [row for path in paths for row in read_by_root(path)[0]]
    for order in (slice(None), slice(None, None, -1)):
        out = tmp_path / "out.root"
        done("merge", "-q", "--force", out, *paths[order])
        rows = expected if order.step is None else expected[5000:] + expected[2500:5000] + expected[:2500]
        assert read_by_root(out) == (rows, {""})
        with uproot.open(out) as file:
            assert file["t"]["k"].array().tolist() == [row[-1] for row in rows]
    chain = tupelo.open([f"{path}:t" for path in paths])
    assert entries(chain) == expected


def test_a_file_of_others_is_not_repacked(written: Path, tmp_path: Path) -> None:
    """Nothing in it says that its baskets are used."""
    refused = run("repack", written / "other.root", "-o", tmp_path / "out.root")
    assert refused.returncode == 1, refused.stderr
    assert "baskets of trees in other files" in refused.stderr, refused.stderr
    assert not (tmp_path / "out.root").exists()


def test_files_on_servers_are_found_beside(server: Server, written: Path) -> None:
    """Those of a file on a server are on the same server, and requested once, when they are needed."""
    expected, _ = read_by_root(written / "main.root")
    tree = tupelo.open(f"{server.url}/main.root", metrics=True)["t"]
    assert tree["flat"].array(library="np").tolist() == [row[4] for row in expected]
    assert {request.path for request in server.requests} == {"/main.root"}
    before = tree.metrics.requests
    assert entries(tree) == expected
    assert {request.path for request in server.requests} == {"/main.root", "/other.root", "/third.root"}
    assert tree.metrics.requests == len(server.requests) > before


@pytest.mark.parametrize("name", ["/etc/*passwd", "file:///etc/*passwd", "../*.root", "https://127.0.0.1:1/*.root"])
def test_files_on_servers_name_no_others(name: str, server: Server, written: Path, tmp_path: Path) -> None:
    """Neither local ones nor those of other servers."""
    server.close()
    renamed(written, tmp_path, name)
    server = Server(tmp_path)
    tree = tupelo.open(f"{server.url}/raw.root")["t"]
    with pytest.raises(tupelo.Error, match=r"branch 'k'.*a file on a server may only name files in its folder"):
        tree["k"].array()
    assert {request.path for request in server.requests} == {"/raw.root"}
    assert len(tree["flat"].array()) == 2500
    server.close()


def test_local_files_may_name_any(server: Server, written: Path, tmp_path: Path) -> None:
    """As for ROOT, by an absolute path or a URL. Servers that a file names get no credentials."""
    padding = "x" * (len(PLACEHOLDER) - len(f"{tmp_path}/.root"))
    shutil.copy(written / PLACEHOLDER, tmp_path / f"{padding}.root")
    path = renamed(written, tmp_path, f"{tmp_path}/*.root")
    path = path.rename(tmp_path / "absolute.root")
    assert tupelo.open(path)["t"]["k"].array(library="np").tolist() == [3 * entry for entry in range(2500)]
    assert read_by_root(path)[0][7][-1] == 21
    padding = "x" * (len(PLACEHOLDER) - len(f"{server.url}/.root"))
    shutil.copy(written / PLACEHOLDER, written / f"{padding}.root")
    path = renamed(written, tmp_path, f"{server.url}/*.root")
    tree = tupelo.open(path, storage_options={"bearer_token": "secret"})["t"]
    assert tree["k"].array(library="np").tolist() == [3 * entry for entry in range(2500)]
    assert server.requests
    assert not any(request.authorization for request in server.requests)


def test_bytes_in_memory_have_no_other_files(written: Path) -> None:
    """They have no folder."""
    tree = tupelo.open(io.BytesIO((written / "main.root").read_bytes()))["t"]
    assert len(tree["flat"].array()) == 2500
    with pytest.raises(tupelo.Error, match=r"branch 'x'.*'other.root'.*was not opened by path or URL"):
        tree["x"].array()
