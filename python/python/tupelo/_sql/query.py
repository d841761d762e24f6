"""Queries in SQL whose tables are ntuples and trees."""

import contextlib
import json
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from .. import _core
from .._base import optional
from .._base.checks import check_name, check_text
from .._base.messages import quoted_names, short_repr
from ..errors import InvalidArgumentError, TupeloWarning, UnsupportedError
from ..fields._select import escape_glob
from ..ntuple._entries import Entries
from ..ntuple._options import FileOptions, complete
from ..reading._chain import open_chain, warn_of_missing_fields
from ..reading._file import File, package_frames
from ..reading._opening import is_pattern, open
from .variants import not_read, variants_of, without_variants

_MISSING_TABLE = re.compile(r"""Table with name (.+?) does not exist!|reading the file "(.+?)"$""", re.MULTILINE)
"""How DuckDB reports a table that it does not know, or a file."""
_AFTER_PYTHON = re.compile(r"; [^;]*\bsql\(query, [^;]*")
"""An advice that only Python can follow."""
_QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""")
_FILE = re.compile(r"""[^\s'"(),;]*\.root\b[^\s'"(),;]*""")
"""The name of a ROOT file without quotes."""
_CHANGES = r"\b(delete\s+from|insert\s+into|update|(drop|alter)\s+table)\s+['\"]"
"""What changes the table that follows."""


def sql(query: str, /, **tables: Any) -> Any:
    """Runs a query of DuckDB over ntuples and trees, and returns its relation.

    A table in quotes is opened as by `open` if it names a ROOT file: ``'f.root:Events'``, ``'https://…/f.root:Events'``,
    ``'run*.root:Events'``, and ``'f.root'`` if it has only one ntuple or tree. ``tables`` are others by name: ntuples,
    trees and chains, which were opened with options of `open`, a `File` with only one of them, a `Dataset` of selected
    fields, or anything else that DuckDB reads, such as data frames. Only the columns of the query are read, as with
    `Ntuple.dataset`.

    The relation is not run before it is used: its methods ``fetchall``, ``df``, ``arrow``, ``pl`` and ``show`` return
    or print the rows, and ``write_parquet`` writes them. The query also sees tables of DuckDB's default connection,
    and files that DuckDB reads (``'weights.parquet'``), but no variables of the program.

    Raises `ImportError` if DuckDB is not installed, `InvalidArgumentError` for an empty query and for other tables,
    `UnsupportedError` for columns that SQL does not distinguish or does not read, for a statement in which DuckDB does
    not find the tables, and for rows that would be lost, the errors of `open`, and those of DuckDB.

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
    query = _without_end(duckdb, query)
    try:
        statements = connection.extract_statements(query)
    except duckdb.ParserException:
        if (file := _FILE.search(_QUOTED.sub("", query))) is None:
            raise
        raise _not_in_quotes(file[0]) from None
    _check_statements(duckdb, statements)
    entries: dict[str, Entries] = {}
    for name, table in tables.items():
        check_name(name, "a table")
        opened = table.only() if isinstance(table, File) else table
        if isinstance(opened, Entries):
            entries[name] = opened
        else:
            _register_other(duckdb, connection, name, opened)
    tree = _syntax_tree(connection, query)
    if tree is None:
        _register_all(connection, entries, tree)
        names = _names_in_statements(duckdb, connection, statements)
    else:
        names = (node["table_name"] for node in _nodes(tree) if _is_table(node) and not node["schema_name"])
    files = {name: _open_table(name) for name in _root_files(names, tables)}
    left = files if tree is None else entries | files
    if (words := None if tree is None else _words(tree)) is not None:
        for name, entry in left.items():
            connection.register(name, _dataset(entry, words))
        # For a name that does not exist, DuckDB suggests similar columns: it must see all of them.
        with contextlib.suppress(duckdb.BinderException, duckdb.CatalogException):
            return connection.sql(query)
    _register_all(connection, left, tree)
    try:
        return connection.sql(query)
    except (duckdb.CatalogException, duckdb.BinderException) as error:
        missing = _MISSING_TABLE.search(str(error))
        name = "" if missing is None else missing[1] or missing[2]
        if not _is_root_file(name):
            if missing is None or missing[1] is None:
                raise
            advice = (
                f"A table is a file in quotes, such as 'FILE:{name}'; or give it by name: sql(query, {name}=ntuple)"
            )
            raise type(error)(f"{str(error).splitlines()[0]} {advice}") from None
        if f"'{name}'" not in query and f'"{name}"' not in query:
            raise _not_in_quotes(name) from None
        if re.search(_CHANGES + re.escape(name), query, re.IGNORECASE):
            raise UnsupportedError(f"{short_repr(name)} is only read in SQL; change it with tupelo.update") from None
        raise UnsupportedError(
            f"{short_repr(name)} is not opened: DuckDB does not list the tables of {short_repr(query)}; use WITH "
            "instead of a view, PIVOT … ON column IN (…), and JOIN … ON instead of USING; or give the table by name: "
            "sql(query, events=ntuple)"
        ) from None


def _not_in_quotes(name: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{short_repr(name)} is not in quotes: SELECT … FROM '{name}'")


def without_python(message: str) -> str:
    """A message without an advice that only Python can follow.

    >>> without_python("'a' and 'A' are one name in SQL; give one by another name: sql(query, other=ntuple)")
    "'a' and 'A' are one name in SQL"
    """
    return _AFTER_PYTHON.sub("", message)


def _without_end(duckdb: Any, query: str) -> str:
    """A query without the comments after its last semicolon, which DuckDB does not accept."""
    tokens = duckdb.tokenize(query)
    while tokens and tokens[-1][1] == duckdb.token_type.comment:
        tokens.pop()
    return query[: tokens[-1][0] + 1] if tokens and query[tokens[-1][0]] == ";" else query


def _check_statements(duckdb: Any, statements: list[Any]) -> None:
    """Raises errors for an empty query, and for rows that would be lost."""
    if not statements:
        raise InvalidArgumentError("the query is empty")
    if any(statement.type == duckdb.StatementType.SELECT for statement in statements[:-1]):
        raise UnsupportedError(
            "only the last statement of a query may return rows: those of the others would be lost; run them one by one"
        )


def _register_other(duckdb: Any, connection: Any, name: str, table: object) -> None:
    """Registers a table that DuckDB reads.

    Raises `InvalidArgumentError` for an object that it does not read.
    """
    try:
        connection.register(name, table)
    except (RuntimeError, TypeError, duckdb.Error) as error:
        # The `repr` of a relation is its rows.
        what = "None" if table is None else f"an object of the class {type(table).__name__}"
        raise InvalidArgumentError(
            f"table {short_repr(name)}: expected an ntuple, a tree, a chain, a file with one of them, a dataset, a "
            f"data frame, or an Arrow table or stream, not {what}"
        ) from error


def _syntax_tree(connection: Any, query: str) -> Any:
    """The query in the form of DuckDB's JSON; None for statements that are not SELECT."""
    ((text,),) = connection.execute("select json_serialize_sql(?)", [query]).fetchall()
    tree = json.loads(text)
    return None if tree["error"] else tree


def _names_in_statements(duckdb: Any, connection: Any, statements: list[Any]) -> Iterator[str]:
    """The names of tables in statements that are not SELECT, as far as DuckDB tells them.

    It does not tell them for a view, a PIVOT whose columns depend on the values, and a JOIN that uses columns of tables
    that are not registered.
    """
    for statement in statements:
        with contextlib.suppress(duckdb.Error):
            yield from connection.get_table_names(statement.query)


def _root_files(names: Iterable[str], given: Collection[str]) -> list[str]:
    """The names of tables that are ROOT files, without those of the given tables."""
    known = {name.casefold() for name in given}
    files: dict[str, str] = {}
    for name in names:
        if name.casefold() in known or not _is_root_file(name):
            continue
        if (other := files.setdefault(name.casefold(), name)) != name:
            raise UnsupportedError(
                f"{short_repr(other)} and {short_repr(name)} are one name in SQL; give one of the tables another name: "
                "sql(query, other=ntuple)"
            )
    return list(files.values())


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
    """Names in a query: its columns are among them. None if it also uses columns without naming them, as in
    ``select *``.
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
        names = node.get("column_names") or ()
        words |= {*names, *(node.get("using_columns") or ())}
        last_names |= {name.casefold() for name in names[-1:]}
    # The name of a table stands for all of its columns.
    return None if last_names & tables else words


def _excluded(tree: Any) -> set[str] | None:
    """The columns that a query excludes from ``*``, in lower case; None if it has no ``*``."""
    stars = [node for node in _nodes(tree) if node.get("class") == "STAR" and not node["columns"]]
    names = {name.casefold() for star in stars for name in star["exclude_list"]}
    names |= {name["column"].casefold() for star in stars for name in star["qualified_exclude_list"]}
    return names if stars else None


def _dataset(table: Entries, words: set[str]) -> Any:
    """The columns of a table that are among these names, or all if none is.

    Making a dataset of all columns, and DuckDB, take a time that grows with their number.
    """
    folded = {word.casefold() for word in words}
    names = [path for path in table._by_path if path.casefold() in folded]
    for same in _one_in_sql(names):
        exact = [name for name in same if name in words]
        if len(exact) != 1:
            raise UnsupportedError(
                f"{table.file_path}: columns {quoted_names(same)} are one name in SQL; use only one of them, "
                f"spelled in this way; or select one: sql(query, events=ntuple.dataset([{same[-1]!r}]))"
            )
        names = [name for name in names if name not in same or name in exact]
    dataset = table.dataset([escape_glob(name) for name in names] or None)
    if names and (variants := variants_of(dataset)):
        raise not_read(table.file_path, variants)
    return without_variants(dataset, table.file_path)


def _register_all(connection: Any, entries: Mapping[str, Entries], tree: Any) -> None:
    """Registers tables with all of their columns."""
    excluded = _excluded(tree)
    for name, table in entries.items():
        dataset = table.dataset()
        for same in _one_in_sql(dataset.schema.names):
            warnings.warn(
                f"{table.file_path}: columns {quoted_names(same)} are one name in SQL, and DuckDB calls the second "
                f"{short_repr(f'{same[1]}_1')}; name the columns in the query instead of '*'; or rename one: "
                f"sql(query, events=ntuple.dataset(…, aliases={{'other': {same[1]!r}}}))",
                TupeloWarning,
                stacklevel=package_frames(),
            )
        variants = variants_of(dataset)
        if excluded is not None and not {variant.casefold() for variant in variants} <= excluded:
            raise not_read(table.file_path, variants)
        connection.register(name, without_variants(dataset, table.file_path))


def _one_in_sql(names: Iterable[str]) -> list[list[str]]:
    """Groups of names that are one name in SQL: DuckDB ignores the case of ASCII letters."""
    groups: dict[bytes, list[str]] = {}
    for name in names:
        groups.setdefault(name.encode().lower(), []).append(name)
    return [same for same in groups.values() if len(same) > 1]


def _is_root_file(name: str) -> bool:
    """Whether the name of a table is that of a ROOT file or of an ntuple in an object store."""
    place = _core.parse_location(name)
    return place.object is not None or place.file.endswith(".root") or _core.is_object_uri(place.file)


def _open_table(name: str) -> Entries:
    if is_pattern(name, None):
        chain = open_chain(name, complete("sql", {}, FileOptions))
        advice = "to read them with missing values: sql(query, events=tupelo.open(…, fields='union'))"
        warn_of_missing_fields(chain._core.missing_fields(), package_frames() + 1, advice)
        return chain
    opened = open(name)
    if isinstance(opened, File):
        opened = opened.only()
    if not isinstance(opened, Entries):
        raise InvalidArgumentError(f"{_core.display_name(name)}: {short_repr(opened)} is not an ntuple or a tree")
    return opened
