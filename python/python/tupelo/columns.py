"""Ntuples with additional columns, and copies of ntuples."""

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from . import _cast, _conversion, _core, _progress, _select
from ._checks import absolute_path, check_name, check_path, file_and_ntuple, storage
from ._locations import NtupleLocation
from ._messages import short_repr
from ._progress import Progress
from ._write_options import WriteOptions
from .errors import InvalidArgumentError, TupeloWarning

if TYPE_CHECKING:
    from .ntuple import Ntuple


@dataclass(frozen=True)
class Columns:
    """Additional columns of an ntuple."""

    names: tuple[str, ...] = ()
    expressions: dict[str, str] = field(default_factory=dict)
    values: Any = None
    """A `pyarrow.RecordBatch` with one value for each entry, or None."""

    def more(self, columns: object, ntuple: "Ntuple", keywords: Mapping[str, object]) -> "Columns":
        """These columns and more; keywords raise an error.

        Raises `InvalidArgumentError` as `Ntuple.with_columns`.
        """
        if keywords or not isinstance(columns, Mapping):
            given = f"the keyword {next(iter(keywords))!r}" if keywords else f"a {type(columns).__name__}"
            raise InvalidArgumentError(
                "expected columns as a mapping of names to expressions or values, with_columns({'score': values}), "
                f"not {given}"
            )
        fields = {path.partition(".")[0] for path in ntuple.keys()}  # noqa: SIM118
        for name in columns:
            check_name(name, "a column")
            if name in fields or name in self.names:
                what = "field" if name in fields else "column"
                raise InvalidArgumentError(
                    f"{ntuple.file_path}: ntuple '{ntuple.object_path}': the {what} '{name}' already exists; "
                    "give the new column another name"
                )
        texts = {name: text for name, text in columns.items() if isinstance(text, str)}
        expressions = self.expressions | dict(_select.aliases(texts))
        arrays = {name: values for name, values in columns.items() if name not in texts}
        values = self.values
        if arrays:
            values = _concatenated(values, _batch(arrays, ntuple))
        made = Columns((*self.names, *columns), expressions, values)
        # Report invalid expressions now.
        request = _select.Request(None)
        made.offer(request, with_all=True)
        ntuple._core.arrow_schema(request)
        return made

    def offer(self, request: _select.Request, with_all: bool) -> None:
        """Makes the columns available to the expressions of a request; ``with_all`` also selects all of them."""
        request.aliases = [*self.expressions.items(), *request.aliases]
        request.given = self.values
        if with_all:
            request.computed += [(name, f"`{name}`") for name in self.names]


def _batch(arrays: Mapping[str, Any], ntuple: "Ntuple") -> Any:
    """Columns of values as one `pyarrow.RecordBatch`.

    Raises `InvalidArgumentError` if the number of values differs from the number of entries, or if they have no C++
    type.
    """
    tables = {}
    for name, values in arrays.items():
        table = tables[name] = _conversion.to_table({name: values})
        if len(table) != ntuple.num_entries:
            raise InvalidArgumentError(
                f"{ntuple.file_path}: ntuple '{ntuple.object_path}' has {ntuple.num_entries} entries, but column "
                f"'{name}' has {len(table)} values; give one value for each entry"
            )
    columns, fields = [], []
    for table in tables.values():
        schema = _conversion.normalize_schema(_conversion.inferred_nullability(table))
        fitting = _cast.cast_table(table, schema).combine_chunks()
        (chunked,) = fitting.columns
        columns.append(chunked.chunk(0) if chunked.num_chunks else pa.array([], chunked.type))
        fields.append(schema.field(0))
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _concatenated(one: Any, other: Any) -> Any:
    if one is None:
        return other
    return pa.RecordBatch.from_arrays([*one.columns, *other.columns], schema=pa.schema([*one.schema, *other.schema]))


def copy(
    core: "_core.Table",
    request: _select.Request,
    path: str | os.PathLike[str],
    source: NtupleLocation,
    name: str | None,
    options: Mapping[str, Any],
    progress: Progress,
) -> int:
    """Writes a request as the only ntuple of a new file and returns the number of entries."""
    for column, text in request.computed:
        if text != f"`{column}`":
            raise InvalidArgumentError(
                f"{short_repr(column)} is an expression, not a field; give it a name: "
                f"with_columns({{'name': {column!r}}})"
            )
    target = check_output(path, [source.absolute_path])
    if name is not None:
        check_name(name)
    own = dict(options)
    remote = storage(own.pop("storage_options", None), None) or source.storage
    writing = write_options("copy", own)
    total = request.entry_stop - request.entry_start
    place = f"{source.file_path}: tree '{core.path}'"
    if is_tree := core.tree() is not None:
        text = f"{place} is copied as an ntuple; import_trees() also compares both, WritableFile.mktree() writes trees"
        warnings.warn(text, TupeloWarning, stacklevel=3)
    with _progress.report_progress(progress) as tell, new_file(target, remote) as file:
        tell(0, total)
        callback = None if _progress.is_silent(progress) else lambda done: tell(done, total)
        inside = core.path.partition(";")[0] if name is None else name
        entries, left_out = core.copy(request, file, inside, writing, callback)
    for text in left_out:
        warnings.warn(f"{place}: {text}" if is_tree else text, TupeloWarning, stacklevel=3)
    return entries


def check_output(path: str | os.PathLike[str], inputs: Iterable[str | None]) -> str:
    """The name of a file to write, which is none of the input files."""
    target = check_path(path)
    if (pair := file_and_ntuple(path)) is not None:
        file_path, inside = pair
        raise InvalidArgumentError(
            f"{short_repr(path)} names a file and an ntuple; use the path {_core.display_name(file_path)!r} and "
            f"name={inside!r}"
        )
    if any(_is_same_file(target, source) for source in inputs):
        raise InvalidArgumentError(f"{_core.display_name(target)} is the input file; write to another file")
    return target


def write_options(function: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `recreate` and `WritableFile.mkrntuple` as a dict for the engine."""
    own = dict(given)
    described = {key: own.pop(key) for key in ("description", "encodings", "compressions") if key in own}
    known = WriteOptions.__dataclass_fields__
    for option in own:
        if option not in known:
            raise TypeError(f"{function}() got an unexpected keyword argument {short_repr(option)}")
    checkpoints = {
        "checkpoint_bytes": _core.DEFAULT_CHECKPOINT_BYTES,
        "checkpoint_seconds": _core.DEFAULT_CHECKPOINT_SECONDS,
    }
    return WriteOptions(**(checkpoints | own)).options(**described)


@contextmanager
def new_file(path: str, remote: "_core.Storage | None") -> "Iterator[_core.FileWriter]":
    """A file that replaces an existing one at the end of the block, unless an error is raised."""
    file = _core.FileWriter(absolute_path(path), False, remote)
    try:
        yield file
        file.finish()
    except BaseException:
        file.abort()
        raise


def _is_same_file(target: str, source: str | None) -> bool:
    # A file object has no path that could be overwritten.
    if source is None or target == source:
        return source is not None
    return os.path.exists(target) and os.path.exists(source) and os.path.samefile(target, source)


class NtupleWithColumns:
    """An ntuple with additional columns; `Ntuple.with_columns` returns it.

    It is read like the ntuple and written as a file with all fields and columns. Expressions and cuts may use the new
    columns.
    """

    def __init__(self, ntuple: "Ntuple", columns: Columns) -> None:
        self._plain = ntuple
        self._columns = columns
        # The same ntuple with the columns in its requests.
        self._ntuple = object.__new__(type(ntuple))
        self._ntuple.__dict__.update(ntuple.__dict__)
        self._ntuple._columns = columns

    @property
    def column_names(self) -> list[str]:
        """Names of the new columns."""
        return list(self._columns.names)

    @property
    def num_entries(self) -> int:
        """Number of entries of the ntuple."""
        return self._plain.num_entries

    def with_columns(self, columns: Mapping[str, Any] | None = None, **unknown: object) -> "NtupleWithColumns":
        """Returns this ntuple with more columns; see `Ntuple.with_columns`."""
        return NtupleWithColumns(self._plain, self._columns.more(columns, self._plain, unknown))

    def arrays(self, expressions: str | Iterable[str] | None = None, cut: str | None = None, **options: Any) -> Any:
        """Reads fields and columns; see `Ntuple.arrays`. The default is all fields, followed by all columns."""
        return self._ntuple.arrays(expressions, cut, **options)

    def iterate(
        self, expressions: str | Iterable[str] | None = None, cut: str | None = None, **options: Any
    ) -> Iterator[Any]:
        """Reads ``expressions``, by default all fields and columns, in batches; see `Ntuple.iterate`.

        The columns can be used in ``expressions`` and ``cut``; ``options`` are those of `Ntuple.iterate`.

        Raises `NotFoundError` for unknown fields and `InvalidArgumentError` for invalid expressions.
        """
        return self._ntuple.iterate(expressions, cut, **options)

    def write(self, path: str | os.PathLike[str], **options: Any) -> int:
        """Writes all fields, columns and entries to a new file and returns the number of entries.

        ``name``, ``progress`` and the write options are those of `Ntuple.copy`.

        >>> import tupelo
        >>> with tupelo.recreate("plain.root") as file:
        ...     file["Events"] = {"x": [1.5, 2.5]}
        >>> tupelo.open("plain.root:Events").with_columns({"tags": [["a"], []]}).write("tagged.root", name="Tagged")
        2
        >>> tupelo.open("tagged.root:Tagged").arrays().tolist()
        [{'x': 1.5, 'tags': ['a']}, {'x': 2.5, 'tags': []}]
        """
        return self.copy(path, **options)

    def copy(self, path: str | os.PathLike[str], cut: str | None = None, *, fields: Any = None, **options: Any) -> int:
        """Writes selected fields and entries, and all columns, to a new file; see `Ntuple.copy`."""
        chosen = [] if fields is None else _select.string_list("fields", fields)
        if chosen:
            options["fields"] = [*chosen, *self._columns.names]
        return self._ntuple.copy(path, cut, **options)

    def __len__(self) -> int:
        return self.num_entries

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        names = ", ".join(map(repr, self._columns.names))
        return f"<tupelo.NtupleWithColumns {self._plain.object_path!r} with {names}>"
