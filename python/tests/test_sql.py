"""SQL over files by their names: `tupelo.sql`, and the command `tupelo sql`."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from http_server import Server

import tupelo

EVENTS = {"run": [1, 1, 2, 2], "met": [31.5, 7.25, 12.0, float("nan")], "pt": [[1.0], [], [2.0, 3.0], []]}


@pytest.fixture(autouse=True)
def _files() -> None:
    with tupelo.recreate("f.root") as file:
        file["dir/Events"] = EVENTS
        file["Scores"] = {"run": [1, 2], "score": [0.5, 0.25]}
    for number in 1, 2:
        with tupelo.recreate(f"run{number}.root") as file:
            file["Events"] = {"run": [number, number], "x": [1, 2]}


def rows(query: str, /, **tables: Any) -> Any:
    return tupelo.sql(query, **tables).fetchall()


def test_tables_are_files() -> None:
    assert rows("select count(*), max(run) from 'f.root:dir/Events'") == [(4, 2)]
    assert rows('select sum(len(pt)) from "f.root:dir/Events" where run = 2') == [(2,)]
    assert rows("select run, sum(x) from 'run*.root:Events' group by run order by run") == [(1, 3), (2, 3)]
    assert rows("select count(*) from 'run1.root'") == [(2,)]
    assert rows("select count(*) from 'run*.root'") == [(4,)]
    assert rows(f"select count(*) from '{Path.cwd()}/run1.root:Events'") == [(2,)]
    query = "select score, met from 'f.root:dir/Events' join 'f.root:Scores' using (run) where met < 13 order by met"
    assert rows(query) == [(0.5, 7.25), (0.25, 12.0)]
    query = "with t as (from 'run1.root') select (select max(run) from 'run2.root:Events'), count(*) from t, t as u"
    assert rows(query) == [(2, 4)]
    assert rows("describe 'run1.root'")[0][:2] == ("run", "BIGINT")


def columns_of_tables(query: str, monkeypatch: pytest.MonkeyPatch, **tables: Any) -> list[list[str]]:
    """The columns of the datasets that a query makes of its files and tables, in order."""
    made: list[list[str]] = []
    make = tupelo.Ntuple.dataset

    def noted(ntuple: tupelo.Ntuple, *how: Any, **options: Any) -> Any:
        dataset = make(ntuple, *how, **options)
        made.append(dataset.schema.names)
        return dataset

    with monkeypatch.context() as patched:
        patched.setattr(tupelo.Ntuple, "dataset", noted)
        rows(query, **tables)
    return made


def test_only_columns_of_the_query_are_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    for query, columns in {
        "select avg(MET) from 'f.root:dir/Events'": [["met"]],
        "select e.run from 'f.root:dir/Events' e where e.met > 1": [["run", "met"]],
        "select max(list_sum(pt)) from 'f.root:dir/Events' group by run": [["run", "pt"]],
        "select score from 'f.root:Scores' join 'run1.root:Events' using (run)": [["run"], ["run", "score"]],
        "select run from 'f.root:Scores' where exists (select 1 from 'run1.root' where x = run)": [
            ["run", "x"],
            ["run"],
        ],
    }.items():
        assert sorted(columns_of_tables(query, monkeypatch)) == sorted(columns), query
    events = tupelo.open("f.root:dir/Events")
    assert columns_of_tables("select max(run) from events", monkeypatch, events=events) == [["run"]]
    every = [list(EVENTS)]
    for query in (
        "select count(*) from 'f.root:dir/Events'",
        "select * from 'f.root:dir/Events'",
        "select * exclude (met) from 'f.root:dir/Events'",
        "select e from 'f.root:dir/Events' e",
        "select columns('r.*') from 'f.root:dir/Events'",
        "select #2 from 'f.root:dir/Events'",
        "select b from 'f.root:dir/Events' as e(a, b, c)",
        "summarize 'f.root:dir/Events'",
        "select run from 'f.root:dir/Events' natural join (select 1 as run)",
    ):
        assert columns_of_tables(query, monkeypatch) == every, query
    with pytest.raises(duckdb.BinderException, match=r'(?s)"rum" not found.*"run"'):
        rows("select met, rum from 'f.root:dir/Events'")


def test_given_tables() -> None:
    events = tupelo.open("f.root:dir/Events")
    assert rows("select count(*) from events where run = 1", events=events) == [(2,)]
    assert rows("select count(*) from Events", events=events.dataset(cut="run == 2")) == [(2,)]
    weights = pd.DataFrame({"run": [1, 2], "weight": [2.0, 4.0]})
    query = "select sum(weight) from events join weights using (run) join 'f.root:Scores' using (run)"
    assert rows(query, events=events, weights=weights) == [(12.0,)]
    # A given name is not opened.
    assert rows("select count(*) from 'g.root:Events'", **{"g.root:Events": events}) == [(4,)]
    tree = tupelo.open(["run1.root:Events", "run2.root:Events"])
    assert rows("select count(*) from query, connection", query=tree, connection=tree) == [(16,)]


def test_variables_are_not_tables() -> None:
    for name in "query", "tables", "connection", "events":
        with pytest.raises(duckdb.CatalogException, match=f"{name} does not exist"):
            tupelo.sql(f"select * from {name}")


def test_tables_of_duckdb() -> None:
    duckdb.sql("create or replace table good_runs as select 2 as run")
    try:
        assert rows("select count(*) from 'f.root:dir/Events' semi join good_runs using (run)") == [(2,)]
    finally:
        duckdb.sql("drop table good_runs")
    pq.write_table(pa.table({"run": [1]}), "runs.parquet")
    assert rows("select count(*) from 'f.root:dir/Events' semi join 'runs.parquet' using (run)") == [(2,)]
    # Names of files stay in their query.
    with pytest.raises(duckdb.Error):
        duckdb.sql("select * from 'f.root:Scores'")


def test_relations() -> None:
    relation = tupelo.sql("select run, met from 'f.root:dir/Events' where run = 1")
    assert relation.filter("met > 10").fetchall() == [(1, 31.5)]
    assert relation.df().to_dict("list") == {"run": [1, 1], "met": [31.5, 7.25]}
    assert relation.pl().rows() == [(1, 31.5), (1, 7.25)]
    assert relation.arrow().read_all().num_rows == 2
    # A statement that is not a query runs immediately.
    tupelo.sql("copy (select met from 'f.root:dir/Events') to 'met.parquet'")
    assert pq.read_table("met.parquet").num_rows == 4


def test_only_the_columns_of_the_query_are_read() -> None:
    with tupelo.recreate("wide.root", compression="none") as file:
        file["Events"] = {f"c{k}": np.arange(10_000) for k in range(10)}
    events = tupelo.open("wide.root:Events", metrics=True)
    assert isinstance(events, tupelo.Ntuple)
    tupelo.sql("select avg(c3) from events where c4 < 0", events=events).fetchall()
    assert events.metrics is not None
    assert events.metrics.unpacked_bytes == 80_000


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return tmp_path


def test_remote_files(server: Server) -> None:
    assert rows(f"select sum(x) from '{server.url}/run1.root:Events'") == [(3,)]
    assert rows(f"select sum(x) from '{server.url}/run1.root'") == [(3,)]


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        ("select * from 'nope.root:Events'", tupelo.MissingFileError, r"nope\.root"),
        ("select * from 'nope*.root:Events'", tupelo.MissingFileError, r"nope\*\.root"),
        ("select * from 'f.root:Event'", tupelo.NotFoundError, "no ntuple named 'Event'"),
        ("select * from 'f.root'", tupelo.InvalidArgumentError, "Scores"),
        ("select * from run1.root", tupelo.InvalidArgumentError, r"'run1\.root' is not in quotes"),
        ("select * from 'run1.root:Events/x'", tupelo.InvalidArgumentError, "is not an ntuple or a tree"),
        ("select * from 'f.root:Scores' a, 'F.root:Scores' b", tupelo.UnsupportedError, "are one name in SQL"),
        ("select 1; select 2", tupelo.UnsupportedError, "only the last statement of a query may return rows"),
        ("", tupelo.InvalidArgumentError, "the query is empty"),
        (" ; -- nothing", tupelo.InvalidArgumentError, "the query is empty"),
        ("selec", duckdb.ParserException, "syntax error"),
        ("select zz from 'run1.root'", duckdb.BinderException, "zz"),
        ("insert into nowhere from 'run1.root'", duckdb.CatalogException, "nowhere"),
        (7, tupelo.InvalidArgumentError, "expected a query to be a string, not 7"),
    ],
)
def test_errors(query: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        tupelo.sql(query)


@pytest.mark.parametrize(
    "statement",
    [
        "create or replace temp view v as from {}",
        "pivot {} on run using sum(x)",
        "copy (from {} join (select 1 as x) using (x)) to 'x.csv'",
    ],
)
@pytest.mark.parametrize("exists", [True, False])
def test_tables_that_duckdb_does_not_list_are_given_by_name(statement: str, exists: bool) -> None:
    name = "run1.root" if exists else "run1.root:Events"
    advice = r"is not opened: .*WITH instead of a view, PIVOT … ON column IN .* by name: sql\(query, events=ntuple\)"
    with pytest.raises(tupelo.UnsupportedError, match=f"'{name}' {advice}"):
        tupelo.sql(statement.format(f"'{name}'"))
    tupelo.sql(statement.format("events"), events=tupelo.open(name))
    done = command(statement.format(f"'{name}'"))
    assert done.returncode == 1
    assert "WITH instead of a view" in done.stderr
    assert "sql(" not in done.stderr


def test_what_replaces_these_statements() -> None:
    assert rows("with v as (from 'run1.root') select sum(x) from v") == [(3,)]
    assert rows("pivot 'run1.root' on x in (1, 2) using count(*)") == [(1, 1, 1)]
    tupelo.sql("copy (select a.x from 'run1.root' a join 'run2.root' b on a.x = b.x) to 'x.parquet'")
    assert pq.read_table("x.parquet").num_rows == 2


@pytest.fixture
def _columns_that_differ_in_case() -> None:
    with tupelo.recreate("case.root") as file:
        file["Events"] = {"x": [1, 2], "X": [10, 20], "y": [5, 6], "é": [1, 1], "É": [3, 3]}


@pytest.mark.usefixtures("_columns_that_differ_in_case")
@pytest.mark.filterwarnings("error")
def test_columns_that_differ_in_case_are_chosen_by_their_spelling() -> None:
    """Regression: DuckDB gave the first one."""
    assert rows("""select max("X") from 'case.root'""") == [(20,)]
    assert rows("select max(x), max(Y) from 'case.root'") == [(2, 6)]
    assert rows("select max(e.X) from 'case.root' e where e.y = 5") == [(10,)]
    # DuckDB ignores the case of ASCII letters only.
    assert rows("select max(é), max(É) from 'case.root'") == [(1, 3)]
    assert rows("select count(*) from 'case.root'") == [(2,)]
    for query in (
        """select max(x), max("X") from 'case.root'""",
        "select 1 from 'case.root' join 'run1.root' using (x, X)",
    ):
        message = (
            r"case\.root: columns 'x' and 'X' are one name .*; or select one: sql\(query, events=ntuple\.dataset\("
        )
        with pytest.raises(tupelo.UnsupportedError, match=message):
            tupelo.sql(query)
    events = tupelo.open("case.root:Events")
    assert isinstance(events, tupelo.Ntuple)
    assert rows("select max(x) from events", events=events.dataset(["X"])) == [(20,)]
    both = events.dataset(["x", "other"], aliases={"other": "X"})
    assert rows("select max(x), max(other) from events", events=both) == [(2, 20)]


@pytest.mark.usefixtures("_columns_that_differ_in_case")
def test_a_spelling_that_no_column_has_is_an_error() -> None:
    with tupelo.recreate("cases.root") as file:
        file["Events"] = {"aB": [1], "Ab": [2]}
    with pytest.raises(tupelo.UnsupportedError, match="columns 'aB' and 'Ab' are one name in SQL"):
        tupelo.sql("select ab from 'cases.root'")


@pytest.mark.usefixtures("_columns_that_differ_in_case")
def test_all_columns_that_differ_in_case_are_renamed_with_a_warning() -> None:
    message = "columns 'x' and 'X' are one name in SQL, and DuckDB calls the second 'X_1'; .*; or rename one: sql"
    with pytest.warns(tupelo.TupeloWarning, match=message) as caught:
        relation = tupelo.sql("select * from 'case.root'")
    assert relation.columns == ["x", "X_1", "y", "é", "É"]
    assert [warning.filename for warning in caught] == [__file__]
    done = command("select * exclude (é, É) from 'case.root'", "--format", "csv")
    assert done.stdout == "x,X_1,y\n1,10,5\n2,20,6\n"
    assert done.stderr.endswith("calls the second 'X_1'; name the columns in the query instead of '*'\n")


def test_files_are_given_as_their_names() -> None:
    assert rows("select count(*) from events", events=tupelo.open("run1.root")) == [(2,)]
    with pytest.raises(tupelo.InvalidArgumentError, match="Scores"):
        tupelo.sql("select 1", events=tupelo.open("f.root"))


@pytest.mark.parametrize("table", [None, [1], "run1.root", object()])
def test_other_objects_are_refused(table: object) -> None:
    with pytest.raises(
        tupelo.InvalidArgumentError, match=r"table 'events': expected an ntuple, .* not (None|an object of)"
    ):
        tupelo.sql("select * from events", events=table)


def test_relations_of_other_calls_are_refused() -> None:
    relation = tupelo.sql("select x from 'run1.root'")
    with pytest.raises(tupelo.InvalidArgumentError, match="not an object of the class DuckDBPyRelation"):
        tupelo.sql("select * from events", events=relation)
    assert rows("select * from events", events=relation.arrow()) == [(1,), (2,)]


def test_rows_are_returned_by_the_last_statement() -> None:
    try:
        query = "create table first_runs as from 'run1.root'; select sum(a.x), count(*) from first_runs a, 'run2.root'"
        assert rows(query) == [(6, 4)]
    finally:
        duckdb.sql("drop table first_runs")


def test_variants_are_refused() -> None:
    with tupelo.recreate("v.root") as file:
        kinds = {"v": "std::variant<std::int32_t,std::string>", "x": "int"}
        kinds["w"] = f"std::vector<{kinds['v']}>"
        with file.mkrntuple("Events", kinds) as writer:
            writer.extend({"v": [1, "a"], "x": [1, 2], "w": [[], [2, "b"]]})
    for query, names in {
        "select * from 'v.root'": "'v' and 'w'",
        "select * exclude (v) from 'v.root'": "'v' and 'w'",
        "select v from 'v.root'": "'v'",
        "select x from 'v.root' where len(w) = 1": "'w'",
    }.items():
        message = rf"v\.root: {names}: DuckDB does not read variants; leave them out: \* exclude \("
        with pytest.raises(tupelo.UnsupportedError, match=message):
            tupelo.sql(query)
    assert rows("select * exclude (v, W) from 'v.root'") == [(1,), (2,)]
    assert rows("select * exclude (e.v, w) from 'v.root' e") == [(1,), (2,)]
    assert rows("select count(*), max(x) from 'v.root'") == [(2, 2)]
    assert rows("select count(*) from 'v.root'") == [(2,)]
    tupelo.sql("copy (select x from 'v.root') to 'x.parquet'")
    assert pq.read_table("x.parquet").column_names == ["x"]
    with pytest.raises(duckdb.Error, match="DuckDB does not read variants"):
        tupelo.sql("copy (select v from 'v.root') to 'x.parquet'")


def test_fields_that_some_files_lack() -> None:
    with tupelo.recreate("run3.root") as file:
        file["Events"] = {"run": [3], "x": [1], "y": [1.5]}
    query = "select sum(x) from 'run*.root'"
    message = r"some files lack: y.*: sql\(query, events=tupelo\.open\(…, fields='union'\)\)"
    with pytest.warns(tupelo.TupeloWarning, match=message) as caught:
        assert rows(query) == [(7,)]
    assert [warning.filename for warning in caught] == [__file__]
    done = command(query, "--format", "csv")
    assert "some files lack: y" in done.stderr
    assert "union" not in done.stderr
    assert rows("select max(y) from events", events=tupelo.open("run*.root", fields="union")) == [(1.5,)]


def test_duckdb_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ImportError, match=r"tupelo\.sql\(\) needs duckdb.*pip install duckdb"):
        tupelo.sql("select 1")


def command(*arguments: str, **how: Any) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "tupelo", "sql", *arguments]
    return subprocess.run(program, capture_output="stdout" not in how, text=True, check=False, **how)


def test_the_command_prints() -> None:
    query = "select run, x from 'run1.root' order by x"
    done = command(query)
    assert (done.returncode, done.stderr) == (0, "")
    assert "│     1 │     2 │" in done.stdout
    assert command(query, "--format", "csv").stdout == "run,x\n1,1\n1,2\n"
    for name in "jsonl", "json":
        assert command(query, "--format", name).stdout == '{"run":1,"x":1}\n{"run":1,"x":2}\n'
    assert command("select pt from 'f.root:dir/Events' limit 1", "-o", "-", "--format", "csv").stdout == "pt\n[1.0]\n"
    assert command("create table t as from 'run1.root'").returncode == 0


def test_options_of_all_commands_are_known() -> None:
    for options in ["-q"], ["--threads", "1"]:
        program = [sys.executable, "-m", "tupelo", *options, "sql", "select 1 as one", "--format", "csv"]
        done = subprocess.run(program, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "one\n1\n", "")


def test_the_command_goes_on_where_stdout_is() -> None:
    for name in "csv", "arrow", "parquet":
        with open("out", "w+b") as out:
            out.write(b"before")
            out.flush()
            assert command("from 'run1.root'", "--format", name, stdout=out).returncode == 0
        content = Path("out").read_bytes()
        assert content.startswith(b"before")
        if name == "arrow":
            assert pa.ipc.open_stream(content[6:]).read_all().num_rows == 2
        if name == "parquet":
            assert pq.read_table(pa.BufferReader(content[6:])).num_rows == 2


@pytest.mark.parametrize("extension", ["csv", "jsonl", "json", "parquet", "arrow", "feather"])
def test_the_command_writes_files(extension: str) -> None:
    path = f"it's.{extension}"
    for _ in range(2):
        done = command("from 'run1.root'", "-o", path)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    if extension in ("arrow", "feather"):
        assert pa.ipc.open_file(path).read_all().to_pydict() == {"run": [1, 1], "x": [1, 2]}
    else:
        connection = duckdb.connect()
        assert connection.sql(f"""select run, x from "{path}" order by x""").fetchall() == [(1, 1), (1, 2)]
    assert sorted(one.name for one in Path().iterdir() if "it" in one.name) == [path]


def test_mistakes_with_names_of_tables_are_explained() -> None:
    def refused(query: str) -> str:
        done = command(query)
        assert done.returncode == 1
        return done.stderr

    for name in "run1.root:Events", "./run1.root":
        assert f"'{name}' is not in quotes: SELECT … FROM '{name}'" in refused(f"select x from {name}")
    assert "A table is a file in quotes, such as 'FILE:Events'\n" in refused("select x from Events")
    with pytest.raises(duckdb.CatalogException, match=r"or give it by name: sql\(query, events=ntuple\)"):
        tupelo.sql("select x from events")
    for change in "delete from", "insert into", "update":
        rest = {"delete from": "", "insert into": "select 1", "update": "set x = 1"}[change]
        assert "'run1.root' is only read in SQL" in refused(f"{change} 'run1.root' {rest}")
    assert "is only read" not in refused("select x from 'run1.root' where y = 1")


def test_columns_of_the_same_name_keep_their_values() -> None:
    """Defect: in JSON lines, the second column had the values of the first."""
    done = command("select 1 as a, 2 as a, 3 as a_1, 4 as A", "--format", "jsonl")
    assert json.loads(done.stdout) == {"a": 1, "a_2": 2, "a_1": 3, "A_3": 4}


def test_large_integers_are_not_rounded() -> None:
    """Defect: DuckDB writes integers of 128 bits to Parquet as doubles."""
    large = 5000050000000000000001
    values = f"{large}::hugeint as n, [{large}::hugeint] as l, {{'x': {large}::hugeint, 'HUGEINT': 'a'}} as s"
    assert command(f"select {values}, sum(run) as run from 'f.root:Scores'", "-o", "large.parquet").returncode == 0
    [row] = pq.read_table("large.parquet").to_pylist()
    assert row == {"n": large, "l": [large], "s": {"x": large, "HUGEINT": "a"}, "run": 3}


def test_tables_and_plans_are_printed_as_text() -> None:
    done = command("explain select 1")
    assert "\\n" not in done.stdout
    assert len(done.stdout.splitlines()) > 3
    assert "a\\u202eb" in command("select 'a' || chr(8238) || 'b'").stdout
    assert "1" in command("select 1 as a; -- the end").stdout


def test_numbers_in_json_lines_that_are_not_finite_are_texts() -> None:
    values = [1.5, float("nan"), float("inf"), -float("inf"), None]
    records = [{"a": value, 'b"c': [value, 2]} for value in values]
    table = pa.table(
        {
            "real": pa.array(values, pa.float64()),
            "lists": pa.array([[[value], []] for value in values], pa.list_(pa.list_(pa.float32()))),
            "arrays": pa.array([[value, 0] for value in values], pa.list_(pa.float64(), 2)),
            "records": pa.array([*records[:4], None], pa.struct({"a": pa.float64(), 'b"c': pa.list_(pa.float64())})),
            "number": pa.array([1, 2, 3, 4, None]),
        }
    )
    pq.write_table(table, "reals.parquet")
    done = command("from 'reals.parquet'", "--format", "jsonl")
    assert (done.returncode, done.stderr) == (0, "")

    def refuse(text: str) -> NoReturn:
        raise AssertionError(text)

    read = [json.loads(line, parse_constant=refuse) for line in done.stdout.splitlines()]
    for value, entry in zip([1.5, "NaN", "Infinity", "-Infinity", None], read, strict=True):
        assert entry["real"] == value
        assert entry["lists"] == [[value], []]
        assert entry["arrays"] == [value, 0]
        assert entry["records"] == (None if value is None else {"a": value, 'b"c': [value, 2]})
    assert [entry["number"] for entry in read] == [1, 2, 3, 4, None]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([], 2, "<QUERY>"),
        (["from 'run1.root'", "-o", "x.foo"], 2, "the format of x.foo is unknown; choose one with --format"),
        (["from 'run1.root'", "-o", "run1.root", "--format", "csv"], 2, "run1.root would not be a ROOT file"),
        (["from 'run1.root'", "--format", "xml"], 2, "invalid value 'xml'"),
        (["selec"], 1, "tupelo: error: Parser Error"),
        (["", "-o", "x.csv"], 1, "tupelo: error: the query is empty"),
        (["select 1; select 2"], 1, "tupelo: error: only the last statement"),
        (["from 'nope.root'"], 1, "tupelo: error: cannot open nope.root"),
        (["from 'run1.root'", "-o", "nowhere/x.csv"], 1, "nowhere/x.csv"),
        (["from 'run1.root'", "-o", "nowhere/x.arrow"], 1, "nowhere/x.arrow"),
        (["select 1 // 0 + 'a'"], 1, "tupelo: error: "),
    ],
)
def test_the_command_fails(arguments: list[str], status: int, message: str) -> None:
    done = command(*arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_the_command_reports_damage() -> None:
    with tupelo.recreate("damaged.root", compression="none") as file:
        file["Events"] = {"x": range(10_000)}
    content = bytearray(Path("damaged.root").read_bytes())
    content[5000] ^= 1
    Path("damaged.root").write_bytes(content)
    for how in "table", "csv", "arrow":
        done = command("select sum(x) from 'damaged.root'", "--format", how)
        assert done.returncode == 1
        assert "damaged.root: ntuple 'Events': field 'x'" in done.stderr
        assert "Traceback" not in done.stderr


def test_the_command_ends_when_its_reader_does() -> None:
    for how in "csv", "arrow":
        program = [sys.executable, "-m", "tupelo", "sql", "from range(10_000_000)", "--format", how]
        with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout
            assert process.stderr
            process.stdout.read(10)
            process.stdout.close()
            assert (process.stderr.read(), process.wait()) == (b"", 0)


def test_the_command_does_not_write_to_a_closed_stdout() -> None:
    """A file that is opened later would have its number."""
    before = Path("run1.root").read_bytes()
    program = f'"{sys.executable}" -m tupelo sql "from \'run1.root\'" --format csv >&-'
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "stdout is closed" in done.stderr
    assert Path("run1.root").read_bytes() == before
