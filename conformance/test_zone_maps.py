"""Files with zone maps: ROOT and uproot read the same values, and cuts keep the same entries."""

from __future__ import annotations

import json
import operator
import random
import shutil
import subprocess
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from panel import BUILD, TUPELO, agree, judge, root_error, run, tupelo_dump

import tupelo

EVENTS = 30_000


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A file, and the same with zone maps."""
    folder = tmp_path_factory.mktemp("zones")
    plain, zones = folder / "plain.root", folder / "zones.root"
    what = [
        "nanoaod",
        "--events",
        str(EVENTS),
        "--cluster-bytes",
        "300KiB",
        "--page-bytes",
        "8KiB",
        "--quiet",
        str(plain),
    ]
    subprocess.run([str(BUILD / "tupelo-generate"), *what], check=True)
    shutil.copy(plain, zones)
    run(
        "index",
        "--zone-maps",
        f"{zones}:Events",
        "--fields",
        "run,event,luminosityBlock,MET_*,Muon_pt",
        "--bloom",
        "event",
        "--zone-entries",
        "500",
    )
    return plain, zones


@pytest.mark.parametrize("tool", ["root", "uproot"])
def test_others_read_the_same(files: tuple[Path, Path], tool: str) -> None:
    if tool == "root" and (error := root_error()):
        pytest.skip(f"ROOT cannot be imported: {error}")
    plain, zones = files
    run("verify", zones)
    run("diff", f"{plain}:Events", f"{zones}:Events")
    [dump] = judge(tool, [{"file": str(zones), "ntuple": "Events"}], "zone-maps")
    assert agree(tupelo_dump(f"{plain}:Events", "zone-maps"), dump) == []


def test_cuts_keep_the_same_and_read_less(files: tuple[Path, Path]) -> None:
    plain, zones = (tupelo.open(f"{path}:Events") for path in files)
    events = plain.arrays(["event"], library="np")["event"]
    some, last = int(events[1000]), int(events[-1])
    for cut in [f"event == {some}", f"event > {last - 700} and MET_pt > 20", "any(Muon_pt > 300)", "MET_pt < 0"]:
        a, b = (one.arrays(["event", "MET_phi"], cut=cut, library="pd") for one in (plain, zones))
        assert a.equals(b), cut
    cut = f"event == {some}"
    documents = [
        json.loads(run("explain", f"{path}:Events", "--fields", "MET_*", "--cut", cut, "--json")) for path in files
    ]
    bytes_read = [document["stored_bytes"] for document in documents]
    assert documents[0]["ruled_out"] == 0
    assert documents[1]["ruled_out"] >= EVENTS - 1000
    assert bytes_read[1] < 0.1 * bytes_read[0]
    assert "zone maps rule out" in run("explain", f"{files[1]}:Events", "--fields", "MET_pt", "--cut", cut)


def test_filters_of_arrow_polars_and_duckdb_read_less(files: tuple[Path, Path]) -> None:
    plain, zones = (tupelo.open(f"{path}:Events", metrics=True) for path in files)
    events = plain.arrays(["event"], library="np")["event"]
    some, last = int(events[1000]), int(events[-1])

    def by_arrow(ntuple: tupelo.Ntuple) -> list[dict[str, object]]:
        chosen = (pc.field("event") > last - 700) & (pc.field("MET_pt") > 20.1)
        return ntuple.dataset().to_table(columns=["event", "MET_phi"], filter=chosen).to_pylist()

    def by_polars(ntuple: tupelo.Ntuple) -> list[dict[str, object]]:
        chosen = pl.col("event").is_between(some - 5, some + 5) | (
            (pl.col("event") > last - 9) & (pl.col("MET_pt") > 20.1)
        )
        return ntuple.scan().filter(chosen).select("event", "MET_phi").collect().to_dicts()

    def by_duckdb(ntuple: tupelo.Ntuple) -> list[dict[str, object]]:
        events = ntuple.dataset()  # noqa: F841 – DuckDB finds it by its name.
        where = f"event between {some} and {some + 30}"
        return duckdb.sql(f"select event, MET_phi from events where {where}").to_arrow_table().to_pylist()

    for ask in (by_arrow, by_polars, by_duckdb):
        answers, pages = [], []
        for ntuple in (plain, zones):
            assert ntuple.metrics is not None
            # The zone maps themselves are read once.
            ntuple.dataset().count_rows(filter=pc.field("event") < 0)
            before = ntuple.metrics.unpacked_bytes
            answers.append(ask(ntuple))
            pages.append(ntuple.metrics.unpacked_bytes - before)
        assert answers[0]
        assert answers[0] == answers[1], ask
        assert pages[1] < 0.2 * pages[0], ask


def test_comparisons_with_nan_keep_the_same(files: tuple[Path, Path]) -> None:
    """Defect: with zone maps, Arrow took ``~(x < nan)`` for false."""
    plain, zones = (tupelo.open(f"{path}:Events").dataset(["event", "MET_pt"]) for path in files)
    nan = pa.scalar(float("nan"))
    for name in "event", "MET_pt":
        for compare in operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne:
            for condition in compare(pc.field(name), nan), ~compare(pc.field(name), nan):
                counts = [one.count_rows(filter=condition) for one in (plain, zones)]
                assert counts[0] == counts[1], str(condition)


def test_filters_with_casts_keep_the_same(tmp_path: Path) -> None:
    """Defect: Arrow took the bounds of a column for those of its values in another type."""
    values = np.repeat([0.1, 1e-60, 16777217.0, 1e300], 10_000)
    columns = {"y": values, "x": np.repeat(np.array([0, 100, 200, 255], "u1"), 10_000)}
    with tupelo.recreate(tmp_path / "casts.root", zone_maps=True) as file:
        file.mkrntuple("events", columns)
    dataset, table = tupelo.open(f"{tmp_path}/casts.root:events").dataset(), pa.table(columns)
    single = pc.field("y").cast("float32")
    conditions = [single == pa.scalar(number, pa.float32()) for number in (0.1, 0, 16777216.0, np.inf)]
    for condition in [*conditions, pc.field("x").cast("int8", safe=False) < 0]:
        assert dataset.count_rows(filter=condition) == table.filter(condition).num_rows >= 10_000, str(condition)


def test_forged_bounds_are_no_errors(tmp_path: Path) -> None:
    """Defect: bounds beyond the numbers of a type were an error of Python."""
    path, values = tmp_path / "forged.root", {"m": np.arange(20_000)}
    with tupelo.recreate(path, zone_maps=True) as file:
        file.mkrntuple("events", values)
    known = tupelo.open(f"{path}:events").attributes("zone_maps")
    table, ranges = known.arrays(library="arrow"), known.ranges
    for low, high in (2.0**63, 2.0**63), (np.inf, np.inf), (-np.inf, -(2.0**64)), (1e300, -1e300):
        with tupelo.recreate(path) as file:
            file.mkrntuple("events", values)
            forged = table.set_column(1, table.field(1), pa.array([low] * len(table)))
            forged = forged.set_column(2, table.field(2), pa.array([high] * len(table)))
            file["events"].attribute_set("zone_maps", table.schema).extend(ranges, forged)
        assert tupelo.open(f"{path}:events").dataset().count_rows(filter=pc.field("m") == 5) in (0, 1)


def test_forged_numbers_of_nulls_do_not_wrap(tmp_path: Path) -> None:
    """Defect: the sum of two large numbers was zero, and entries with nulls were left out."""
    path, values = tmp_path / "forged.root", {"m": pa.array(range(20_000), mask=np.arange(20_000) % 60 == 0)}
    with tupelo.recreate(path, zone_maps=True) as file:
        file.mkrntuple("events", values)
    known = tupelo.open(f"{path}:events").attributes("zone_maps")
    table, ranges = known.arrays(library="arrow"), known.ranges
    place = table.schema.get_field_index("nulls")
    forged = table.set_column(place, table.field(place), pa.array([2**63] * len(table), pa.uint64()))
    with tupelo.recreate(path) as file:
        file.mkrntuple("events", values)
    with tupelo.update(path) as file:
        file["events"].attribute_set("zone_maps", table.schema).extend(ranges, forged)
    assert tupelo.open(f"{path}:events").dataset().count_rows(filter=pc.field("m").is_null()) == 334
    done = subprocess.run([str(TUPELO), "verify", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "nulls, but only" in done.stdout + done.stderr


def test_verify_reads_the_zone_maps_of_many_fields(tmp_path: Path) -> None:
    """Defect: it opened them again for each field, and gave up when it had read many times the size of the file."""
    path = tmp_path / "wide.root"
    with tupelo.recreate(path) as file:
        file["events"] = {f"x{number}": np.arange(2000) + number for number in range(3000)}
    run("index", "--zone-maps", f"{path}:events", "--zone-entries", "10")
    run("verify", path)


def _sets(folder: Path, name: str, file: str = "zones.root") -> list[str]:
    return list(tupelo.open(f"{folder}/{file}:{name}").attribute_sets)


def test_zone_maps_made_when_writing_keep_the_same(tmp_path: Path) -> None:
    """Random filters of Arrow and polars, at the edges of zones too, keep what they keep without zone maps."""
    count, seed = 40_000, random.Random(7)
    entries = np.arange(count)
    noise = np.random.default_rng(7)
    columns = {
        "run": (entries // 700).astype("i4"),
        "large": (entries // 3 + (1 << 60)).astype("u8"),
        "small": (entries // 400 - 50).astype("i1"),
        "single": (entries // 90 * 0.1).astype("f4"),
        "double": np.where(entries % 9001 == 5, np.nan, entries / 7 - 100),
        "any": noise.normal(size=count),
        "maybe": pa.array(entries // 9, mask=(entries % 7 == 0) | (entries // 8192 == 2)),
        "maybe_real": pa.array(entries / 50, mask=entries % 5 == 1),
    }
    with tupelo.recreate(tmp_path / "zones.root", zone_maps=True) as file:
        file.mkrntuple("events", columns)
        file.mkrntuple("text", {"name": ["a"]})
        file.mkrntuple("none", columns, zone_maps=False)
        file.mkrntuple("some", columns, zone_maps=["run", "s*"])
    names = [_sets(tmp_path, name) for name in ("events", "text", "none", "some")]
    assert names == [["zone_maps"], [], [], ["zone_maps"]]
    zones = tupelo.open(f"{tmp_path}/zones.root:events")
    table = tupelo.open(f"{tmp_path}/zones.root:none").arrays(library="arrow")
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    values = {name: table[name].drop_null().to_pylist() for name in columns}
    operators = ["__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"]

    def random_filter(field: object, depth: int) -> object:
        if depth and seed.random() < 0.5:
            first, second = random_filter(field, depth - 1), random_filter(field, depth - 1)
            return first & second if seed.random() < 0.5 else first | second  # type: ignore[operator]
        name = seed.choice(list(columns))
        if name.startswith("maybe") and seed.random() < 0.2:
            return field(name).is_null()  # type: ignore[operator]
        value = seed.choice(values[name])
        if isinstance(value, float) and seed.random() < 0.3:
            value = round(value, 1)
        made = getattr(field(name), seed.choice(operators))(value)  # type: ignore[operator]
        return ~made if seed.random() < 0.2 else made

    for _ in range(150):
        chosen = random_filter(pc.field, 2)
        found, expected = zones.dataset().to_table(filter=chosen), table.filter(chosen)
        # Arrow never finds NaN equal.
        for name in columns:
            one, other = found[name], expected[name]
            assert np.array_equal(one.to_numpy(), other.to_numpy(), equal_nan=True), (chosen, name)
            assert one.is_null() == other.is_null(), (chosen, name)
        chosen = random_filter(pl.col, 2)
        assert zones.scan().filter(chosen).collect().equals(frame.filter(chosen), null_equal=True), chosen
    with tupelo.update(tmp_path / "zones.root", zone_maps=True) as file:
        file["none"].extend(columns)
    assert _sets(tmp_path, "none") == ["zone_maps"]


def test_zones_without_nulls_are_not_read_for_them(tmp_path: Path) -> None:
    entries = np.arange(40_000)
    sparse = pa.array(entries, mask=(entries > 20_000) & (entries < 20_100))
    with tupelo.recreate(tmp_path / "nulls.root") as file:
        for name, zone_maps in ("plain", False), ("zones", True):
            columns = {"sparse": sparse, "none": pa.nulls(40_000, pa.int32()), "other": entries / 3}
            file.mkrntuple(name, columns, zone_maps=zone_maps, page_bytes=4096)
    run("verify", tmp_path / "nulls.root")
    for in_arrow, in_polars, count in [
        (pc.field("sparse").is_null(), pl.col("sparse").is_null(), 99),
        (pc.field("none").is_valid(), pl.col("none").is_not_null(), 0),
        (~pc.field("none").is_null(), ~pl.col("none").is_null(), 0),
    ]:
        unpacked = []
        for name in "plain", "zones":
            ntuple = tupelo.open(f"{tmp_path}/nulls.root:{name}", metrics=True)
            assert ntuple.metrics is not None
            # The zone maps themselves are read once.
            ntuple.dataset().count_rows(filter=(pc.field("sparse") < 0) & (pc.field("none") < 0))
            before = ntuple.metrics.unpacked_bytes
            assert ntuple.dataset().to_table(columns=["other"], filter=in_arrow).num_rows == count
            assert ntuple.scan().filter(in_polars).select("other").collect().height == count
            unpacked.append(ntuple.metrics.unpacked_bytes - before)
        assert unpacked[1] < 0.3 * unpacked[0], (in_arrow, unpacked)


def test_fields_of_zone_maps_are_checked_before_anything_is_written(tmp_path: Path) -> None:
    """Defect: an unknown one was reported when the file was complete, and had replaced another."""
    path = tmp_path / "kept.root"
    with tupelo.recreate(path) as file:
        file["T"] = {"a": [1]}
    for wrong, error, message in [
        (["run", "nope"], tupelo.NotFoundError, "zone_maps: no field named 'nope'"),
        (["name"], tupelo.InvalidArgumentError, "zone_maps: 'name' selects neither numbers nor lists of numbers"),
    ]:
        with pytest.raises(error, match=message), tupelo.recreate(path) as file:
            file.mkrntuple("T", {"run": "int32", "name": "string"}, zone_maps=wrong)
        assert tupelo.open(f"{path}:T").keys() == ["a"]
    # Those of a file are for the ntuples that have them.
    file = tupelo.recreate(path, zone_maps=["run", "x*", "nope"])
    file["T"] = {"run": [1, 2], "name": ["a", "b"]}
    file["U"] = {"x": [0.5], "run": ["a text"]}
    file["V"] = {"other": [1]}
    with pytest.warns(tupelo.TupeloWarning, match="no zone maps for 'nope': no ntuple has such fields with numbers"):
        file.close()
    assert [_sets(tmp_path, name, "kept.root") for name in "TUV"] == [["zone_maps"], ["zone_maps"], []]


def test_zone_maps_are_refused_where_there_are_none(tmp_path: Path) -> None:
    with pytest.raises(tupelo.UnsupportedError, match="zone maps are supported only in local files"):
        tupelo.recreate(f"ntpl+file://{tmp_path}/events", zone_maps=True)
    with pytest.raises(tupelo.InvalidArgumentError, match="expected zone_maps as True, False or a list of fields"):
        tupelo.recreate(tmp_path / "x.root", zone_maps=7)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_only_numbers_of_ntuples_in_local_files_have_zones(files: tuple[Path, Path], tmp_path: Path) -> None:
    def refused(*arguments: object) -> str:
        command = [str(TUPELO), "index", "--zone-maps", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode in (1, 2), done.stderr
        return done.stderr

    with tupelo.recreate(tmp_path / "text.root") as file:
        file["t"] = {"name": ["a", "b"]}
        file.mktree("tree", {"x": "int32"}).extend({"x": [1, 2]})
    assert "none of the fields has numbers" in refused(f"{tmp_path}/text.root:t")
    assert "'name' is not a number" in refused(f"{tmp_path}/text.root:t", "--fields", "name")
    assert "'MET_pt'" in refused(f"{files[0]}:Events", "--fields", "MET_pT")
    assert "ntuple" in refused(f"{tmp_path}/text.root:tree")
    assert "--zone-maps" in refused(f"{files[0]}:Events", "-o", "x.json")
