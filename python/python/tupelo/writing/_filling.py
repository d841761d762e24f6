"""Filling ntuples."""

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic

import pyarrow as pa

from .. import _core
from .._base import arrow
from .._base.checks import check_name, check_text
from .._base.messages import short_repr
from .._to_arrow import cast, tables
from .._to_arrow.declarations import declared_schema
from ..errors import Error, InvalidArgumentError, NotFoundError
from ..fields import _select
from ._attributes import AttributeSetWriter
from ._open_files import Core
from ._options import Projections, WriteOptions

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._open_files import OpenNtuple, WriterHandle

LISTED = 5
"""Maximum number of projected fields in a message."""


class TableWriter(Generic[Core]):
    """What the writers of ntuples and of trees have in common."""

    _kind: str

    def __init__(self, begun: "OpenNtuple[Core]", name: str, schema: Any, hold: "WriterHandle") -> None:
        self._open_ntuple = begun
        self._name = name
        self._known_schema = schema
        # Keeps the file alive as long as one of its writers.
        self._hold = hold
        self._file = hold.opened

    @property
    def name(self) -> str:
        """Its path in the file."""
        return self._name

    @property
    def num_entries(self) -> int:
        """Number of entries so far, including those of a continued ntuple."""
        return self._open_ntuple.num_entries

    @property
    def arrow_schema(self) -> Any:
        """The `pyarrow.Schema` of the fields that `extend` expects."""
        return self._schema

    @property
    def is_closed(self) -> bool:
        """Whether it is closed."""
        return self._open_ntuple.core is None

    def extend(self, data: Any) -> None:
        """Appends entries: columns of the declared names, as for `NtupleWriter.extend`.

        Raises `InvalidArgumentError` for data that do not fit; then nothing is written. Streams are read batch by
        batch: batches before an error stay written.
        """
        self._extend(data, self._write)

    def flush_cluster(self) -> None:
        """Ends the open cluster before it is full: all entries so far are encoded and written."""
        with self._file.call():
            self._core.flush_cluster()

    def close(self) -> None:
        """Writes pending data. The entries become visible when the file is closed."""
        if not self.is_closed:
            with self._file.call():
                self._open_ntuple.close()

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if kind is None:
            self.close()

    def __repr__(self) -> str:
        return f"<tupelo.{type(self).__name__} {self._name!r} ({self.num_entries} entries)>"

    @property
    def _schema(self) -> Any:
        return self._known_schema

    @property
    def _core(self) -> Core:
        if self._file.is_replaced:
            raise self._file.closed_error
        if self._open_ntuple.core is None:
            raise InvalidArgumentError(f"{self._kind} '{self._name}' is closed")
        return self._open_ntuple.core

    def _extend(self, data: Any, write: Callable[[Any], None]) -> None:
        with self._file.call():
            if tables.is_stream(data):
                for batch in tables.batches(data):
                    write(pa.Table.from_batches([batch]))
            else:
                write(tables.to_table(data, self._schema))

    def _write(self, table: Any) -> None:
        self._core.write(cast.cast_table(table, self._schema))


class NtupleWriter(TableWriter[_core.NtupleWriter]):
    """Writes an ntuple; `WritableFile.mkrntuple` and `WritableFile.append` return it.

    It adds entries (`extend`), fields (`add_fields`, `add_members`), data attached to ranges of entries
    (`attribute_set`) and metadata of the whole ntuple (`metadata`).
    """

    _kind = "ntuple"

    def __init__(
        self,
        begun: "OpenNtuple[_core.NtupleWriter]",
        name: str,
        schema: Any,
        projections: Mapping[str, str] | None,
        hold: "WriterHandle",
    ) -> None:
        super().__init__(begun, name, schema, hold)
        self._added: list[pa.Field] = []
        """Fields to append to the known schema, since many may be added one by one."""
        self._is_continued = projections is None
        self._projections = dict(projections or {})
        """Dotted paths of the sources of projected fields by name, except projections of a continued ntuple."""

    @property
    def arrow_schema(self) -> Any:
        """The `pyarrow.Schema` of the fields that `extend` expects: all except projected ones."""
        return self._schema

    @property
    def _schema(self) -> Any:
        if self._added:
            known = self._known_schema
            self._known_schema = pa.schema([*known, *self._added], metadata=known.metadata)
            self._added = []
        return self._known_schema

    @property
    def metadata(self) -> "Metadata":
        """Metadata of the ntuple: strings by key. Assignments are written at the next checkpoint or at the end.

        >>> import tupelo
        >>> with tupelo.recreate("metadata.root") as file:
        ...     events = file.mkrntuple("Events", {"x": "float"})
        ...     events.metadata["generator"] = "pythia 8.3"
        >>> tupelo.open("metadata.root:Events").metadata
        {'generator': 'pythia 8.3'}
        """
        return Metadata(self)

    def extend(self, data: Any, *, accept_new_fields: bool = False) -> None:
        """Appends entries: columns of the declared names, all of the same length, in any order.

        ``data`` may be a dict of NumPy arrays (with more dimensions for fixed-size arrays), Awkward arrays, lists and
        so on, an Awkward array of records, a NumPy structured array, a pandas data frame, or an Arrow table, batch or
        stream. Numbers are converted to the declared types if only digits of a float are lost. With
        ``accept_new_fields``, columns with other names become new fields, as with `add_fields`.

        The index of a data frame is a column too. Without a name, it is ``"index"``, and its levels are ``"level_0"``
        and so on, as in ``reset_index``; the default index 0, 1, 2, … is left out. Here any range of step 1 is left
        out, unless ``"index"`` is declared, and other indexes without a name must be declared.

        Raises `InvalidArgumentError` for data that do not fit; then nothing is written and no field is added. Streams
        are read batch by batch: batches before an error stay written.
        """
        self._extend(data, lambda table: self._take(table, accept_new_fields))

    def add_fields(self, what: Any = None, *, projections: Projections | None = None) -> None:
        """Adds fields: declared as for `WritableFile.mkrntuple`, or projected from existing ones.

        In earlier entries they are zero, empty or missing. `extend` expects them from now on.

        Raises `InvalidArgumentError` for existing names, for fields that cannot be written, and while fill contexts are
        open; the ntuple is then unchanged.

        >>> import tupelo
        >>> with tupelo.recreate("add_fields.root") as file:
        ...     events = file.mkrntuple("Events", {"x": [0.5]})
        ...     events.add_fields({"hits": "std::vector<int>"}, projections={"n_hits": "#hits"})
        ...     events.extend({"x": [1.5], "hits": [[1, 2]]})
        >>> tupelo.open("add_fields.root:Events").arrays().tolist()
        [{'x': 0.5, 'hits': [], 'n_hits': 0}, {'x': 1.5, 'hits': [1, 2], 'n_hits': 2}]
        """
        try:
            schema = pa.schema([]) if what is None else declared_schema(what)
        except InvalidArgumentError as error:
            if "not data" not in str(error):
                raise
            raise InvalidArgumentError(
                f"{error}; to add a column with values for the existing entries, copy the ntuple: "
                "Ntuple.with_columns({'score': values}).write('out.root')"
            ) from None
        options = WriteOptions().options(projections=projections)
        self._added.extend(self._core.add_fields(schema, options))
        self._projections |= sources(options)

    def add_members(self, path: str, what: Any) -> None:
        """Adds members to a record that has no C++ type, named by its dotted path, as `add_fields` adds fields.

        >>> import numpy as np, tupelo
        >>> with tupelo.recreate("add_members.root") as file:
        ...     events = file.mkrntuple("Events", {"point": np.dtype([("x", "f4")])})
        ...     events.extend({"point": [{"x": 0.5}]})
        ...     events.add_members("point", {"y": "float"})
        ...     events.extend({"point": [{"x": 1.5, "y": 2.5}]})
        >>> tupelo.open("add_members.root:Events")["point"].array().tolist()
        [{'x': 0.5, 'y': 0.0}, {'x': 1.5, 'y': 2.5}]
        """
        if not isinstance(path, str):
            raise InvalidArgumentError(f"expected the dotted path of a record as a string, not {path!r}")
        check_text(path, "the path of a record")
        self._core.add_members(path, declared_schema(what))
        self._known_schema, self._added = self._core.arrow_schema(), []

    def attribute_set(self, name: str, what: Any) -> AttributeSetWriter:
        """An attribute set, which attaches data to ranges of entries; `Ntuple.attributes` reads it.

        ``what`` declares its fields, as for `WritableFile.mkrntuple`. An existing set of a continued ntuple is
        continued; its fields must be the same.

        Raises `InvalidArgumentError` for names and fields that the format forbids, and for a set that is already being
        written.
        """
        check_name(name, "an attribute set")
        schema = declared_schema(what)
        return AttributeSetWriter(self._core.attribute_set(name, schema), name, schema, self)

    def fill_context(self) -> "FillContext":
        """A context in which another thread extends the ntuple, in parallel with others.

        Each context fills its own clusters. Its entries stay in order; those of several contexts are interleaved
        cluster by cluster. The interpreter lock is released while data are encoded and written. A checkpoint contains
        the complete clusters of contexts, not their open ones.

        If an exception ends a context that has entries in its open cluster, the ntuple cannot be finished: the entries
        of one `extend` may span a cluster that is already written, and must not be lost silently. After
        `FillContext.flush_cluster` the open cluster is empty and nothing is lost.

        >>> from concurrent.futures import ThreadPoolExecutor
        >>> import tupelo
        >>> with tupelo.recreate("threads.root") as file:
        ...     events = file.mkrntuple("Events", {"x": "int"})
        ...     def fill(first):
        ...         with events.fill_context() as context:
        ...             context.extend({"x": range(first, first + 100)})
        ...     with ThreadPoolExecutor(4) as threads:
        ...         done = list(threads.map(fill, range(0, 400, 100)))
        >>> sorted(tupelo.open("threads.root:Events")["x"].array()) == list(range(400))
        True
        """
        return FillContext(self._core.fill_context(), self, self._schema)

    def checkpoint(self) -> None:
        """Ends the open cluster and makes everything written so far readable and durable.

        An updated file is changed in place. A new file is still a temporary file at this point, which is kept if the
        file is discarded or the program ends. A later exception returns to this state.

        Raises `UnsupportedError` for a remote file.
        """
        with self._file.call():
            self._core.checkpoint()

    def _take(self, table: Any, accept_new_fields: bool) -> None:
        new = self._unknown(table.schema.names)
        if not accept_new_fields or not new:
            return self._write(table)
        # Added fields cannot be removed again, so check the data first.
        added = declared_schema(tables.inferred_nullability(table.select(new)))
        fitting = cast.cast_table(table, pa.schema([*self._schema, *added]))
        self.add_fields(added)
        self._core.write(fitting)

    def _unknown(self, names: Iterable[str]) -> list[str]:
        """Names of columns that `extend` does not expect.

        Raises `InvalidArgumentError` for names of projected fields.
        """
        known = set(self._schema.names)
        unknown = [name for name in names if name not in known]
        if not unknown:
            return []
        shown = self._file_projections | self._projections
        if projected := [name for name in unknown if name in shown]:
            listed = ", ".join(f"'{name}' projects '{shown[name]}'" for name in projected[:LISTED])
            more = f" and {len(projected) - LISTED} more" if len(projected) > LISTED else ""
            stored = dict.fromkeys(shown[name].partition(".")[0] for name in projected)
            raise InvalidArgumentError(
                f"ntuple '{self._name}': projected fields cannot be filled: {listed}{more}; "
                f"give {', '.join(map(repr, stored))} instead"
            )
        return unknown

    @cached_property
    def _file_projections(self) -> dict[str, str]:
        """The projections of a continued ntuple, if its file can be read now."""
        if not self._is_continued:
            return {}
        try:
            core = _core.File(self._file.absolute_path).table(self._name)
            schema = core.arrow_schema(_select.Request())
        except Error:
            return {}
        found = {field.name: arrow.projected_from(field) for field in schema}
        return {name: path for name, path in found.items() if path}


def sources(options: Mapping[str, Any]) -> dict[str, str]:
    """Dotted paths of the sources of projected fields by name, from the options of an ntuple."""
    return {name: path for name, path, _ in options["projections"]}


class FillContext:
    """Extends an ntuple from its own thread; `NtupleWriter.fill_context` returns it.

    It must be closed before its ntuple; a ``with`` block does that. After an exception in the block, entries in the
    open cluster are lost and the ntuple cannot be finished. If that cluster is empty, nothing is lost.
    """

    def __init__(self, core: "_core.FillContext", ntuple: NtupleWriter, schema: Any) -> None:
        self._core = core
        # Keeps the file alive.
        self._ntuple = ntuple
        self._schema = schema

    def extend(self, data: Any) -> None:
        """Appends entries, as `NtupleWriter.extend`."""
        if tables.is_stream(data):
            for batch in tables.batches(data):
                self._core.write(cast.cast_table(pa.Table.from_batches([batch]), self._schema))
        else:
            self._core.write(cast.cast_table(tables.to_table(data, self._schema), self._schema))

    def flush_cluster(self) -> None:
        """Ends the open cluster before it is full."""
        self._core.flush_cluster()

    def close(self) -> None:
        """Writes pending data and ends the context.

        Raises `InvalidArgumentError` if it is already closed.
        """
        self._core.finish()

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if kind is None:
            self.close()
        else:
            self._core.abort()

    def __repr__(self) -> str:
        return f"<tupelo.FillContext of {self._ntuple.name!r}>"


class Metadata(MutableMapping[str, str]):
    """The metadata of an ntuple being written; see `NtupleWriter.metadata`."""

    def __init__(self, writer: NtupleWriter) -> None:
        self._writer = writer

    def __getitem__(self, key: str) -> str:
        if (value := self._values().get(key)) is None:
            raise self._no_such_key(key)
        return value

    def __setitem__(self, key: str, value: str) -> None:
        pair: tuple[object, object] = (key, value)
        if not all(isinstance(text, str) for text in pair):
            raise InvalidArgumentError(
                f"expected metadata keys and values as strings, not {short_repr(key)}: {short_repr(value)}"
            )
        check_text(key, f"ntuple '{self._writer.name}': a key of the metadata")
        check_text(value, f"ntuple '{self._writer.name}': the metadata of the key '{key}'")
        self._writer._core.set_metadata(key, value)

    def __delitem__(self, key: str) -> None:
        if key not in self._values():
            raise self._no_such_key(key)
        self._writer._core.set_metadata(key, value=None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values())

    def __len__(self) -> int:
        return len(self._values())

    def __repr__(self) -> str:
        return f"<tupelo.Metadata {self._values()!r}>"

    def _no_such_key(self, key: str) -> NotFoundError:
        known = ", ".join(map(repr, self._values())) or "none"
        return NotFoundError(
            f"ntuple '{self._writer.name}': no metadata key {short_repr(key)} (existing keys: {known})"
        )

    def _values(self) -> dict[str, str]:
        return self._writer._core.metadata()
