"""Queries in SQL whose tables are ntuples and trees."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from .. import _core
from .._base import optional
from .._base.checks import check_name, check_text
from .._base.messages import short_repr
from ..errors import InvalidArgumentError, UnsupportedError
from ..fields._select import escape_glob
from ..ntuple._entries import Entries
from ..reading._file import File
from ..reading._opening import open


def sql(query: str, /, **tables: Any) -> Any:
    """Runs a query of DuckDB over ntuples and trees, and returns its relation.

    A table in quotes is opened as by `open` if it names a ROOT file: ``'f.root:Events'``, ``'https://…/f.root:Events'``,
    ``'run*.root:Events'``, and ``'f.root'`` if it has only one ntuple or tree. ``tables`` are others by name: ntuples,
    trees and chains, which were opened with options of `open`, a `Dataset` of selected fields, or anything else that
    DuckDB reads, such as data frames. Only the columns of the query are read, as with `Ntuple.dataset`.

    The relation is not run before it is used: its methods ``fetchall``, ``df``, ``arrow``, ``pl`` and ``show`` return
    or print the rows, and ``write_parquet`` writes them. The query also sees tables of DuckDB's default connection,
    and files that DuckDB reads (``'weights.parquet'``), but no variables of the program.

    Raises `ImportError` if DuckDB is not installed, the errors of `open`, `UnsupportedError` for a statement in which
    DuckDB does not find the tables, and the errors of DuckDB.

    >>> import tupelo
    >>> with tupelo.recreate("sql.root") as file:
    ...     file["Events"] = {"run": [1, 1, 2], "met": [31.5, 7.25, 12.0]}
    >>> tupelo.sql("select run, max(met) from 'sql.root:Events' group by run order by run").fetchall()
    [(1, 31.5), (2, 12.0)]
    >>> events = tupelo.open("sql.root:Events")
    >>> tupelo.sql("select count(*) from events where run = 1", events=events).fetchall()
    [(2,)]
    """
    check_text(query, "a query")
    duckdb = optional.load("duckdb", "tupelo.sql()", "duckdb")
    # Its own connection to the same database: names of files are not registered for other queries.
    connection = duckdb.default_connection().cursor()
    # DuckDB would find the variables of this function.
    connection.execute("set session python_enable_replacements = false")
    entries = {name: table for name, table in tables.items() if isinstance(table, Entries)}
    for name, table in tables.items():
        check_name(name, "a table")
        if name not in entries:
            connection.register(name, table)
    given = {name.casefold() for name in tables}
    tree = _syntax_tree(connection, query)
    files: dict[str, str] = {}
    for name in _table_names(duckdb, connection, query, tree):
        if name.casefold() in given or not _is_root_file(name):
            continue
        if (other := files.setdefault(name.casefold(), name)) != name:
            raise UnsupportedError(
                f"{short_repr(other)} and {short_repr(name)} are one name in SQL; give one of the tables another name: "
                "sql(query, other=ntuple)"
            )
    entries |= {name: _open_table(name) for name in files.values()}
    if (words := None if tree is None else _words(tree)) is not None:
        for name, table in entries.items():
            connection.register(name, _dataset(table, words))
        # For a name that does not exist, DuckDB suggests similar columns: it must see all of them.
        with contextlib.suppress(duckdb.BinderException):
            return connection.sql(query)
    for name, table in entries.items():
        connection.register(name, table.dataset())
    return connection.sql(query)


def _syntax_tree(connection: Any, query: str) -> Any:
    """The query in the form of DuckDB's JSON; None for statements that are not SELECT."""
    ((text,),) = connection.execute("select json_serialize_sql(?)", [query]).fetchall()
    tree = json.loads(text)
    return None if tree["error"] else tree


def _table_names(duckdb: Any, connection: Any, query: str, tree: Any) -> Iterator[str]:
    """The names of tables in a query.

    Raises `UnsupportedError` if DuckDB does not find them.
    """
    if tree is not None:
        yield from (node["table_name"] for node in _nodes(tree) if _is_table(node) and not node["schema_name"])
        return
    for statement in connection.extract_statements(query):
        try:
            yield from connection.get_table_names(statement.query)
        except (duckdb.BinderException, duckdb.InvalidInputException) as error:
            raise UnsupportedError(
                f"DuckDB does not find the tables of {short_repr(statement.query)} ({error}); give them by name: "
                "sql(query, events=ntuple)"
            ) from None


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """All objects in DuckDB's JSON."""
    below = [tree]
    while below:
        node = below.pop()
        if isinstance(node, list):
            below += node
        elif isinstance(node, dict):
            below += node.values()
            yield node


def _is_table(node: dict[str, Any]) -> bool:
    return node.get("type") == "BASE_TABLE"


def _words(tree: Any) -> set[str] | None:
    """Names in a query, in lower case: its columns are among them. None if it also uses columns without naming them,
    as in ``select *``.
    """
    words: set[str] = set()
    tables: set[str] = set()
    last_names: set[str] = set()
    for node in _nodes(tree):
        if (
            node.get("class") in ("STAR", "POSITIONAL_REFERENCE")
            or node.get("type") in ("PIVOT", "SHOW_REF")
            or node.get("ref_type") == "NATURAL"
            or node.get("column_name_alias")
        ):
            return None
        if _is_table(node):
            tables |= {node["table_name"].casefold(), node["alias"].casefold()}
        names = [name.casefold() for name in node.get("column_names") or ()]
        words |= {*names, *(name.casefold() for name in node.get("using_columns") or ())}
        last_names |= set(names[-1:])
    # The name of a table stands for all of its columns.
    return None if not words or last_names & tables else words


def _dataset(table: Entries, words: set[str]) -> Any:
    """The columns of a table that are among these names, or all if none is.

    Making a dataset of all columns, and DuckDB, take a time that grows with their number.
    """
    names = [path for path in table._by_path if path.casefold() in words]
    return table.dataset([escape_glob(name) for name in names] or None)


def _is_root_file(name: str) -> bool:
    """Whether the name of a table is that of a ROOT file or of an ntuple in an object store."""
    place = _core.parse_location(name)
    return place.object is not None or place.file.endswith(".root") or _core.is_object_uri(place.file)


def _open_table(name: str) -> Entries:
    opened = open(name)
    if isinstance(opened, File):
        opened = opened.only()
    if not isinstance(opened, Entries):
        raise InvalidArgumentError(f"{_core.display_name(name)}: {short_repr(opened)} is not an ntuple or a tree")
    return opened
