"""Queries: SQL beside reading the column, many histograms in one pass beside ROOT's RDataFrame, and `inspect`.

`make bench ROWS=query` calls this; `ROWS=query-hists` does some rows. The answers are compared. Exit status 1 if they
differ or a contestant fails, not if a target is missed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import numpy as np
import pyarrow as pa

import tupelo

from .machine import DATA, cores, finish, machine
from .rivals.root_rival import load_root
from .turns import Rows, run_program

WIDE_COLUMNS, WIDE_ENTRIES = 1500, {"query-sql": 5_000_000, "query-sql-small": 1_000_000}
"""As in a file of NanoAOD. Reading one column takes some 40 ms and 10 ms."""
SORTED_ENTRIES = 50
"""Entries of the file with a sorted column, in multiples of the events."""
INSPECTED_COLUMNS = 10_000
COLUMNS = [f"H{number}_{name}" for number in (1, 2, 3) for name in ("PX", "PY", "PZ", "ProbK", "ProbPi", "IPChi2")]
"""Columns of doubles of the simulated decays."""
WEIGHTED = COLUMNS[:14]
"""They have another histogram with weights: 32 histograms in all."""
WEIGHT = "H1_ProbK"
BINS, LOWEST, HIGHEST = 100, -5000.0, 5000.0
SQL_FACTOR, READING_FACTOR, DATAFRAME_FACTOR, ZONES_FACTOR = 1 / 1.3, 1 / 1.5, 5.0, 20.0
INSPECT_SECONDS, INSPECT_BYTES = 2.0, 3_000_000

DATAFRAME = """
#include <ROOT/RDataFrame.hxx>
namespace bench {
std::vector<std::vector<double>> histograms(const std::string &file, const std::vector<std::string> &columns,
                                            const std::vector<std::string> &weighted, const std::string &weight,
                                            int bins, double lowest, double highest)
{
   ROOT::RDataFrame frame("DecayTree", file);
   std::vector<ROOT::RDF::RResultPtr<TH1D>> booked;
   for (const auto &name : columns)
      booked.push_back(frame.Histo1D<double>({name.c_str(), "", bins, lowest, highest}, name));
   for (const auto &name : weighted)
      booked.push_back(frame.Histo1D<double, double>({name.c_str(), "", bins, lowest, highest}, name, weight));
   std::vector<std::vector<double>> found;
   for (auto &histogram : booked) {
      found.emplace_back();
      for (int bin = 0; bin <= bins + 1; ++bin)
         found.back().push_back(histogram->GetBinContent(bin));
   }
   return found;
}
} // namespace bench
"""


class Queries(Rows):
    """The rows."""

    def compare(self, row: str, contestants: dict[str, Callable[[], Any]]) -> tuple[dict[str, float], dict[str, Any]]:
        """Adds a line for each contestant; returns their times and answers."""
        found, answers = self.turns(row, contestants)
        self.lines += [f"| {row} | {name} | {seconds:.4f} | |" for name, seconds in found.items()]
        return found, answers


def sql(rows: Queries, row: str) -> None:
    """The mean of one of many columns, files opened in each call. Most of the others are zero, for a small file."""
    import duckdb

    entries = WIDE_ENTRIES[row]
    path = DATA / f"query-wide-{WIDE_COLUMNS}-{entries}-zeros.root"
    if not path.exists() or rows.options.fresh:
        random, step = np.random.default_rng(1), 100_000
        names = [f"x{number}" for number in range(WIDE_COLUMNS)]
        with tupelo.recreate(path) as file, file.mkrntuple("wide", dict.fromkeys(names, "double")) as wide:
            for _ in range(0, entries, step):
                wide.extend(dict.fromkeys(names, np.zeros(step)) | {"x7": random.normal(size=step)})

    def by_duckdb() -> float:
        events = tupelo.open(f"{path}:wide").dataset()
        assert events is not None
        return float(duckdb.sql("select avg(x7) from events").fetchall()[0][0])

    def of_arrow_columns(count: int) -> Callable[[], float]:
        """DuckDB's own work beside `arrays`, with many columns that are all the one."""

        def average() -> float:
            events = tupelo.open(f"{path}:wide").arrays(["x7"], library="arrow")
            if count > 1:
                events = pa.table({f"x{number}": events["x7"] for number in range(count)})
            return float(duckdb.sql("select avg(x7) from events").fetchall()[0][0])

        return average

    of_many = f"DuckDB of {WIDE_COLUMNS} Arrow columns"
    times, answers = rows.compare(
        row,
        {
            "arrays": lambda: float(tupelo.open(f"{path}:wide").arrays(["x7"], library="np")["x7"].mean()),
            "tupelo.sql": lambda: float(tupelo.sql(f"select avg(x7) from '{path}:wide'").fetchall()[0][0]),
            "DuckDB of dataset()": by_duckdb,
            "DuckDB of arrays()": of_arrow_columns(1),
            of_many: of_arrow_columns(WIDE_COLUMNS),
        },
    )
    rows.target(row, times, "tupelo.sql", "arrays", SQL_FACTOR)
    # DuckDB plans a query of as many columns longer than the column is read.
    rows.target(row, times, "DuckDB of dataset()", of_many, SQL_FACTOR)
    if not np.allclose(list(answers.values()), answers["arrays"], rtol=1e-12, atol=1e-15):
        rows.failed.append(f"{row}: different answers: {answers}")


def hists(rows: Queries) -> None:
    """Histograms of all columns, some with weights, in one pass."""
    path = DATA / f"query-{rows.options.events}-decays.root"
    rows.generated(path, "b2hhh", 4 * rows.options.events)
    wanted: dict[str, Any] = {name: name for name in COLUMNS}
    wanted |= {f"{name} weighted": {"expressions": name, "weight": WEIGHT} for name in WEIGHTED}
    events = tupelo.open(f"{path}:DecayTree")

    def filled() -> list[np.ndarray]:
        found = events.hist(wanted, bins=BINS, range=(LOWEST, HIGHEST))
        return [np.asarray(histogram.values(flow=True)) for histogram in found.values()]

    contestants: dict[str, Callable[[], Any]] = {
        "reading the columns": lambda: events.arrays([*COLUMNS], library="np"),
        "Tupelo": filled,
    }
    try:
        contestants["ROOT RDataFrame"] = dataframe(path)
    except (ImportError, RuntimeError) as error:
        rows.lines.append(f"| query-hists | ROOT RDataFrame | | {error} |")
    times, answers = rows.compare("query-hists", contestants)
    rows.target("query-hists", times, "Tupelo", "reading the columns", READING_FACTOR)
    rows.target("query-hists", times, "Tupelo", "ROOT RDataFrame", DATAFRAME_FACTOR)
    if "ROOT RDataFrame" in times:
        theirs = [np.array(list(histogram)) for histogram in answers["ROOT RDataFrame"]]
        equal = all(np.allclose(a, b, rtol=1e-9) for a, b in zip(answers["Tupelo"], theirs, strict=True))
        if not equal:
            rows.failed.append("query-hists: ROOT fills other bins")


def dataframe(path: Path) -> Callable[[], Any]:
    root = load_root(cores(), DATAFRAME)
    strings = root.std.vector["std::string"]
    columns, weighted = strings(COLUMNS), strings(WEIGHTED)
    return lambda: root.bench.histograms(str(path), columns, weighted, WEIGHT, BINS, LOWEST, HIGHEST)


def zones(rows: Queries) -> None:
    """A cut on a sorted column that keeps a thousand entries, with zone maps and without."""
    paths = {name: DATA / f"query-sorted-{rows.options.events}-{name}.root" for name in ("plain", "zones")}
    if not paths["zones"].exists() or rows.options.fresh:
        entries = SORTED_ENTRIES * rows.options.events
        number = np.random.default_rng(2).normal(size=entries)
        for path in paths.values():
            with tupelo.recreate(path) as file:
                file["Events"] = {"run": np.arange(entries) // 1000, "x": number}
        command = [str(rows.options.binaries / "tupelo"), "--quiet", "index", "--zone-maps", f"{paths['zones']}:Events"]
        run_program([*command, "--fields", "run"])
    wanted = rows.options.events // 500

    def kept(path: Path) -> Callable[[], Any]:
        events = tupelo.open(f"{path}:Events")
        return lambda: len(events.arrays(["run", "x"], cut=f"run == {wanted}", library="np")["run"])

    times, answers = rows.compare("query-zones", {name: kept(path) for name, path in paths.items()})
    rows.target("query-zones", times, "zones", "plain", ZONES_FACTOR)
    if set(answers.values()) != {1000}:
        rows.failed.append(f"query-zones: different entries: {answers}")


def inspect(rows: Queries) -> None:
    """The page about a file of many columns."""
    path, page = DATA / f"query-inspect-{INSPECTED_COLUMNS}.root", DATA / "query-inspect.html"
    if not path.exists() or rows.options.fresh:
        with tupelo.recreate(path) as file:
            file["wide"] = {f"x{number}": np.arange(100.0) for number in range(INSPECTED_COLUMNS)}
    command = [str(rows.options.binaries / "tupelo"), "--quiet", "inspect", f"{path}:wide", "--html", str(page)]

    def made() -> None:
        page.unlink(missing_ok=True)
        run_program(command, stdout=DEVNULL)

    times, _ = rows.compare("query-inspect", {"tupelo inspect --html": made})
    seconds, size = times["tupelo inspect --html"], page.stat().st_size
    met = "met" if seconds <= INSPECT_SECONDS and size <= INSPECT_BYTES else "missed"
    wanted = f"{INSPECT_SECONDS} s, {INSPECT_BYTES} bytes"
    rows.lines.append(f"| query-inspect | the page | {size} bytes (wanted {wanted}) | {met} |")


def run(options: argparse.Namespace) -> int:
    """Runs the rows."""
    rows = Queries("query", options)
    wide = {name: partial(sql, row=name) for name in WIDE_ENTRIES}
    all_rows = wide | {"query-hists": hists, "query-zones": zones, "query-inspect": inspect}
    for name, row in all_rows.items():
        if rows.wanted(name):
            row(rows)
    head = [
        f"# Queries, {datetime.now(UTC):%Y-%m-%d}\n",
        f"{machine()['cpu']}, {cores()} cores, all used; median of {options.repeat} after a warm-up, warm page cache; "
        f"{4 * options.events} decays, {WIDE_COLUMNS} columns.\n",
        "| row | contestant | seconds | |\n|---|---|---|---|",
    ]
    return finish("query.md", [*head, *rows.lines], rows.failed)
