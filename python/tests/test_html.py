"""HTML for notebooks: from metadata only, valid and of limited size."""

import os
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tupelo
from tupelo.ntuple import _html as ntuple_html
from tupelo.reading import _html as file_html

DATA = Path(os.environ.get("TUPELO_DATA") or Path(__file__).parents[3] / "shared" / "data")


class Checker(HTMLParser):
    """Collects elements and checks that they are closed properly."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data if "style" not in self.open else ""


def parsed(what: Any) -> Checker:
    checker = Checker()
    checker.feed(what._repr_html_())
    checker.close()
    assert checker.open == []
    return checker


def test_no_page_is_read() -> None:
    values = np.arange(20_000, dtype="i8")
    data = {"x": values, "jets": [{"pt": [1.5, 2.5]}] * 20_000}
    with tupelo.recreate("f.root", compression="none", page_bytes=4096, cluster_bytes=50_000) as file:
        file.mkrntuple("Events", data, encodings={"x": "Int64"}).close()
    ntuple = tupelo.open("f.root:Events", metrics=True)
    assert isinstance(ntuple, tupelo.Ntuple)
    whole = parsed(ntuple).text
    assert ntuple.metrics is not None
    assert (ntuple.metrics.pages, ntuple.metrics.requests, ntuple.metrics.read_bytes) == (0, 0, 0)

    # The same for a file in which all pages are damaged.
    damaged = bytearray(Path("f.root").read_bytes())
    hits = 0
    for entry in range(0, 20_000, 16):
        at = damaged.find(values[entry : entry + 4].tobytes())
        if at >= 0:
            damaged[at] ^= 0xFF
            hits += 1
    assert hits > 1000
    Path("damaged.root").write_bytes(damaged)
    other = tupelo.open("damaged.root:Events")
    assert isinstance(other, tupelo.Ntuple)
    assert parsed(other).text.replace("damaged.root", "f.root") == whole
    with pytest.raises(tupelo.CorruptError):
        other.arrays("x")


def test_fields_types_sizes_and_codecs() -> None:
    fields = {"x": "float", "jets": "std::vector<std::pair<int, double>>"}
    with tupelo.recreate("f.root", compression="none") as file, file.mkrntuple("dir/Events", fields) as ntuple:
        ntuple.extend({"x": np.zeros(1000, "f4"), "jets": [[(1, 0.5)]] * 1000})
    with tupelo.open("f.root:dir/Events") as opened:
        sizes = opened._core.sizes()
        of_x = sizes.fields["x"]
        assert (of_x.unpacked_bytes, of_x.codec) == (4000, "none")
        assert of_x.stored_bytes >= of_x.unpacked_bytes
        # Offsets, and what is below.
        below = [sizes.fields[path].unpacked_bytes for path in ("jets", "jets._0", "jets._1")]
        assert below == [(8 + 4 + 8) * 1000, 4000, 8000]
        assert sum(sizes.fields[path].unpacked_bytes for path in ("x", "jets")) == sizes.pages.unpacked_bytes
        checker = parsed(opened)
    assert "dir/Events RNTuple 1.0.2.0, 1000 entries, 1 clusters" in checker.text
    assert "x float 3.91 KiB stored, 3.91 KiB unpacked, none" in checker.text
    assert "jets std::vector<std::pair<std::int32_t,double>> 19.6 KiB stored, 19.5 KiB unpacked, none" in checker.text
    assert "_1 double 7.8" in checker.text
    assert checker.seen.count("details") == 2
    assert opened._repr_html_() == "<code>&lt;tupelo.Ntuple &#x27;dir/Events&#x27; (closed)&gt;</code>"


def test_projected_and_computed_fields_have_no_size() -> None:
    with tupelo.recreate("f.root") as file:
        hits = {"hits": [[1], [2, 3]]}
        file.mkrntuple("Events", hits, projections={"n_hits": "#hits"}).close()
    sizes = tupelo.open("f.root:Events")._core.sizes().fields
    assert (sizes["n_hits"].stored_bytes, sizes["n_hits"].unpacked_bytes, sizes["n_hits"].codec) == (0, 0, "")
    assert sizes["hits"].unpacked_bytes == 16 + 24

    metadata = {"rntuple.type": "Point", "rntuple.version": "1"}
    point = pa.field("point", pa.struct([pa.field("x", pa.int32(), False)]), False, metadata=metadata)
    with tupelo.recreate("g.root") as file:
        file.mkrntuple("Events", pa.schema([point])).extend({"point": [{"x": 1}, {"x": 2}]})
    plain = tupelo.open("g.root:Events")
    assert isinstance(plain, tupelo.Ntuple)
    ruled = plain.with_rules(tupelo.ReadRule("Point", ["x"], {"twice": "int"}, lambda x: pc.multiply(x, 2)))
    assert "twice std::int32_t" in parsed(ruled).text
    sizes = ruled._core.sizes().fields
    twice = sizes["point.twice"]
    assert (twice.stored_bytes, twice.unpacked_bytes, twice.codec) == (0, 0, "")
    assert sizes["point.x"].unpacked_bytes == 8
    # It behaves like other fields in polars and histograms.
    twice = pl.col("point").struct.field("twice")
    assert ruled.scan().filter(twice > 2).collect().rows() == [({"x": 2, "twice": 4},)]
    assert ruled.hist("point.twice", bins=2).values().tolist() == [1, 1]


def test_strings_are_escaped() -> None:
    with tupelo.recreate("<i>.root") as file:
        file.mkrntuple("Ev", {"x": "int"}, description="<script>alert(1)</script> & so").close()
    with tupelo.open("<i>.root") as opened:
        for what in (opened["Ev"], opened):
            html = what._repr_html_()
            assert "<script>" not in html
            assert "<i>" not in html
            assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; so" in html
            assert "script" not in parsed(what).seen


def test_field_names_are_escaped_in_histograms() -> None:
    """The library hist does not escape the labels of axes."""
    name = "<blink>"
    with tupelo.recreate("label.root") as file:
        file["Events"] = {name: [0.5, 1.5]}
    ntuple = tupelo.open("label.root:Events")
    for expression in name, f"`{name}`":
        filled = ntuple.hist(expression, bins=2, range=(0, 2))
        assert filled.values().tolist() == [1, 1]
        assert "<blink" not in filled._repr_html_()
        assert filled.axes[0].label.replace("< ", "<") == expression


def test_many_fields_give_a_small_page() -> None:
    fields = {f"field_{i}": "int" for i in range(5000)} | {"last": "std::vector<std::pair<int, int>>"}
    with tupelo.recreate("many.root") as file:
        file.mkrntuple("Events", fields, description="long " * 1000).close()
    ntuple = tupelo.open("many.root:Events")
    html = ntuple._repr_html_()
    assert len(html) < 200_000
    assert f"and {5001 - ntuple_html.MAX_FIELDS} more" in html
    assert f"field_{ntuple_html.MAX_FIELDS - 1}<" in html
    assert f"field_{ntuple_html.MAX_FIELDS}<" not in html
    assert "…" in html
    parsed(ntuple)


def test_top_level_fields_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    with tupelo.recreate("f.root") as file:
        file.mkrntuple("Events", {"a": "std::tuple<int, int, int>", "b": "int", "c": "std::pair<int, int>"}).close()
    monkeypatch.setattr(ntuple_html, "MAX_FIELDS", 5)
    text = parsed(tupelo.open("f.root:Events")).text
    assert text.index("_1 ") < text.index("and 1 more") < text.index("b ") < text.index("c ") < text.index("and 2 more")


def test_files(monkeypatch: pytest.MonkeyPatch) -> None:
    with tupelo.recreate("f.root") as file:
        for index in range(4):
            file[f"dir/n{index}"] = {"x": [1, 2, 3], "y": [0.5, 1, 1.5]}
    with tupelo.open("f.root") as opened:
        text = parsed(opened).text
        assert "f.root ROOT file, 5 objects, 4 ntuples" in text
        assert "dir/n3 ROOT::RNTuple 2 fields, 3 entries" in text
        assert "dir TDirectory" in text
        monkeypatch.setattr(file_html, "MAX_OBJECTS", 2)
        assert "and 3 more" in parsed(opened).text
    assert opened._repr_html_() == "<code>&lt;tupelo.File &#x27;f.root&#x27; (closed)&gt;</code>"


def test_damaged_files_are_shown_partially() -> None:
    with tupelo.recreate("f.root") as file:
        file["Events"] = {"x": [1, 2, 3]}
    whole = Path("f.root").read_bytes()
    unknown = unreadable = 0
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 0x55
        Path("g.root").write_bytes(damaged)
        with suppress(tupelo.Error), tupelo.open("g.root") as opened:
            unreadable += "unreadable: " in parsed(opened).text
            ntuple = opened["Events"]
            text = parsed(ntuple).text
            unknown += "sizes are unknown: g.root: ntuple 'Events': " in text
            assert "x std::int64_t" in text
    assert unknown > 20
    assert unreadable > 100


def test_real_files() -> None:
    for path in sorted(DATA.glob("*ntuple*.root")):
        with tupelo.open(path) as file:
            assert str(len(file)) in parsed(file).text
            for name, ntuple in file.items():
                text = parsed(ntuple).text
                assert f"{name} RNTuple" in text
                first = ntuple.keys()[0] if len(ntuple) else ""
                assert first in text
                assert len(ntuple._repr_html_()) < 200_000
