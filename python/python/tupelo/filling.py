"""Ntuples that are being written."""

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from . import _arrow, _cast, _conversion, _core, _select
from ._checks import check_name, check_text
from ._messages import short
from ._schema import declared
from ._storage import Projections, Storage
from .attributes import AttributeSetWriter
from .errors import Error, InvalidArgumentError, NotFoundError

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._opened import Begun, Hold

LISTED = 5
"""Projected fields that a message lists."""


class NtupleWriter:
    """An ntuple that is being written; made by `WritableFile.mkrntuple` or `WritableFile.append`.

    It grows by entries (`extend`), fields (`add_fields`, `add_members`), data attached to ranges of entries
    (`attribute_set`) and data about the whole ntuple (`metadata`).
    """

    def __init__(
        self, begun: "Begun", name: str, schema: Any, projections: Mapping[str, str] | None, hold: "Hold"
    ) -> None:
        self._begun = begun
        self._name = name
        self._known_schema = schema
        self._added: list[pa.Field] = []
        """Fields that the known schema lacks: many may be added one by one."""
        self._is_continued = projections is None
        self._projections = dict(projections or {})
        """Dotted paths of what projected fields show, by their names; not of those that a continued ntuple had."""
        # A writer without its file is of no use: the file lives as long as one of them.
        self._hold = hold
        self._file = hold.opened

    @property
    def name(self) -> str:
        """Its path in the file."""
        return self._name

    @property
    def num_entries(self) -> int:
        """Number of entries so far, including those of a continued ntuple."""
        return self._begun.num_entries

    @property
    def arrow_schema(self) -> Any:
        """The `pyarrow.Schema` of the fields that `extend` expects: all but projected ones."""
        return self._schema

    @property
    def _schema(self) -> Any:
        if self._added:
            known = self._known_schema
            self._known_schema = pa.schema([*known, *self._added], metadata=known.metadata)
            self._added = []
        return self._known_schema

    @property
    def is_closed(self) -> bool:
        """Whether it is closed."""
        return self._begun.core is None

    @property
    def metadata(self) -> "Metadata":
        """Strings about the whole ntuple, by name. Assignments are written at the next checkpoint or the end.

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

        Accepted are dicts of NumPy arrays (with more dimensions for fixed-size arrays), Awkward arrays, lists and so
        on, Awkward arrays of records, NumPy structured arrays, pandas data frames, Arrow tables, batches and streams.
        Numbers are converted to the declared types where that loses nothing but digits of a float. With
        ``accept_new_fields`` columns of other names become fields as by `add_fields`.

        Raises `InvalidArgumentError` where data do not fit; then nothing is written and no field is added. A stream is
        read batch by batch: the batches before the one that does not fit stay.
        """
        with self._file.call():
            if _conversion.is_stream(data):
                for batch in _conversion.batches(data):
                    self._take(pa.Table.from_batches([batch]), accept_new_fields)
            else:
                self._take(_conversion.to_table(data, self._schema), accept_new_fields)

    def add_fields(self, what: Any = None, *, projections: Projections | None = None) -> None:
        """Adds fields: declared as for `WritableFile.mkrntuple`, or projected from existing ones.

        In earlier entries they are zero, empty, without a value or missing. `extend` expects them from now on.

        Raises `InvalidArgumentError` for names that exist, fields that cannot be written, and while fill contexts are
        open; the ntuple then goes on as it was.

        >>> import tupelo
        >>> with tupelo.recreate("add_fields.root") as file:
        ...     events = file.mkrntuple("Events", {"x": [0.5]})
        ...     events.add_fields({"hits": "std::vector<int>"}, projections={"n_hits": "#hits"})
        ...     events.extend({"x": [1.5], "hits": [[1, 2]]})
        >>> tupelo.open("add_fields.root:Events").arrays().tolist()
        [{'x': 0.5, 'hits': [], 'n_hits': 0}, {'x': 1.5, 'hits': [1, 2], 'n_hits': 2}]
        """
        try:
            schema = pa.schema([]) if what is None else declared(what)
        except InvalidArgumentError as error:
            if "these are data" not in str(error):
                raise
            raise InvalidArgumentError(
                f"{error}; a column with values for the entries that are there is made when the file is read: "
                "Ntuple.with_columns({'score': values}).write('out.root')"
            ) from None
        options = Storage().options(projections=projections)
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
            raise InvalidArgumentError(f"a record is named by its dotted path, not by {path!r}")
        check_text(path, "the path of a record")
        self._core.add_members(path, declared(what))
        self._known_schema, self._added = self._core.arrow_schema(), []

    def attribute_set(self, name: str, what: Any) -> AttributeSetWriter:
        """An attribute set, whose rows attach data to ranges of entries; `Ntuple.attributes` reads it.

        ``what`` declares the fields of a row, as for `WritableFile.mkrntuple`. A set that a continued ntuple has goes
        on; its fields must then be the same.

        Raises `InvalidArgumentError` for names and fields that the format forbids, and for a set that is being written.
        """
        check_name(name, "an attribute set")
        schema = declared(what)
        return AttributeSetWriter(self._core.attribute_set(name, schema), name, schema, self)

    def fill_context(self) -> "FillContext":
        """A context in which another thread extends the ntuple, in parallel with others.

        Each context fills its own clusters. Its entries stay in order; those of several contexts are interleaved
        cluster by cluster. The interpreter lock is released while data are encoded and written. A checkpoint contains
        the complete clusters of contexts, not their open ones.

        Where a context is left by an exception with entries in its open cluster, the ntuple cannot be finished: what
        was extended at once may lie half in a cluster that is written already, and no part of it may be missing in
        silence. Behind a `FillContext.flush_cluster` nothing would be missing, and what was written stays.

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

    def flush_cluster(self) -> None:
        """Ends the open cluster before it is full: all entries so far are encoded and written."""
        with self._file.call():
            self._core.flush_cluster()

    def checkpoint(self) -> None:
        """Ends the open cluster and makes everything written so far readable and durable.

        An updated file is changed in place. For a new file this is the temporary file beside it, which stays if the
        file is discarded or the program ends. A later exception returns to this state.
        """
        with self._file.call():
            self._core.checkpoint()

    def close(self) -> None:
        """Writes what is pending. It becomes visible when the file is closed."""
        if not self.is_closed:
            with self._file.call():
                self._begun.close()

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if kind is None:
            self.close()

    def __repr__(self) -> str:
        return f"<tupelo.NtupleWriter {self._name!r} ({self.num_entries} entries)>"

    @property
    def _core(self) -> "_core.NtupleWriter":
        if self._file.is_replaced:
            raise self._file.closed_error
        if self._begun.core is None:
            raise InvalidArgumentError(f"ntuple '{self._name}' is closed")
        return self._begun.core

    def _take(self, table: Any, accept_new_fields: bool) -> None:
        new = self._unknown(table.schema.names)
        if not accept_new_fields or not new:
            return self._write(table)
        # Fields cannot be taken back, so what does not fit must be known before they are there.
        added = declared(_conversion.tight_schema(table.select(new)))
        fitting = _cast.fit(table, pa.schema([*self._schema, *added]))
        self.add_fields(added)
        self._core.write(fitting)

    def _write(self, table: Any) -> None:
        self._core.write(_cast.fit(table, self._schema))

    def _unknown(self, names: Iterable[str]) -> list[str]:
        """Names that none of the fields has which `extend` expects.

        Raises `InvalidArgumentError` for those of projected fields.
        """
        known = set(self._schema.names)
        unknown = [name for name in names if name not in known]
        if not unknown:
            return []
        shown = self._file_projections | self._projections
        if projected := [name for name in unknown if name in shown]:
            listed = ", ".join(f"'{name}' shows '{shown[name]}'" for name in projected[:LISTED])
            more = f" and {len(projected) - LISTED} more" if len(projected) > LISTED else ""
            stored = dict.fromkeys(shown[name].partition(".")[0] for name in projected)
            raise InvalidArgumentError(
                f"ntuple '{self._name}': projected fields are not given, they show what others store: {listed}{more}; "
                f"give {', '.join(map(repr, stored))} instead"
            )
        return unknown

    @cached_property
    def _file_projections(self) -> dict[str, str]:
        """The projections that a continued ntuple had, as far as its file can be read now."""
        if not self._is_continued:
            return {}
        try:
            core = _core.File(self._file.absolute_path, _core.DEFAULT_PAGE_CHECKSUMS, None, False).ntuple(self._name)
            schema = core.arrow_schema(_select.Request())
        except Error:
            return {}
        found = {field.name: _arrow.projected_from(field) for field in schema}
        return {name: path for name, path in found.items() if path}


def sources(options: Mapping[str, Any]) -> dict[str, str]:
    """Dotted paths of what projected fields show, by their names, from the options of an ntuple."""
    return {name: path for name, path, _ in options["projections"]}


class FillContext:
    """Extends an ntuple from a thread of its own; made by `NtupleWriter.fill_context`.

    It must be closed before its ntuple; a ``with`` block does that. After an exception in the block, entries in the
    open cluster are lost and the ntuple cannot be finished. If that cluster is empty, nothing is lost.
    """

    def __init__(self, core: "_core.FillContext", ntuple: NtupleWriter, schema: Any) -> None:
        self._core = core
        # Also so that the file lives as long.
        self._ntuple = ntuple
        self._schema = schema

    def extend(self, data: Any) -> None:
        """Appends entries, as `NtupleWriter.extend`."""
        if _conversion.is_stream(data):
            for batch in _conversion.batches(data):
                self._core.write(_cast.fit(pa.Table.from_batches([batch]), self._schema))
        else:
            self._core.write(_cast.fit(_conversion.to_table(data, self._schema), self._schema))

    def flush_cluster(self) -> None:
        """Ends the open cluster before it is full."""
        self._core.flush_cluster()

    def close(self) -> None:
        """Writes what is pending, and ends the context.

        Raises `InvalidArgumentError` where it was closed before.
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
    """The metadata of an ntuple that is being written; see `NtupleWriter.metadata`."""

    def __init__(self, writer: NtupleWriter) -> None:
        self._writer = writer

    def __getitem__(self, key: str) -> str:
        if (value := self._pairs().get(key)) is None:
            raise self._no_such(key)
        return value

    def __setitem__(self, key: str, value: str) -> None:
        pair: tuple[object, object] = (key, value)
        if not all(isinstance(text, str) for text in pair):
            raise InvalidArgumentError(f"metadata are texts by text, not {short(value)} by {short(key)}")
        check_text(key, f"ntuple '{self._writer.name}': a key of the metadata")
        check_text(value, f"ntuple '{self._writer.name}': the metadata of the key '{key}'")
        self._writer._core.set_metadata(key, value)

    def __delitem__(self, key: str) -> None:
        if key not in self._pairs():
            raise self._no_such(key)
        self._writer._core.set_metadata(key, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._pairs())

    def __len__(self) -> int:
        return len(self._pairs())

    def __repr__(self) -> str:
        return f"<tupelo.Metadata {self._pairs()!r}>"

    def _no_such(self, key: str) -> NotFoundError:
        known = ", ".join(map(repr, self._pairs())) or "none"
        return NotFoundError(f"ntuple '{self._writer.name}': no metadata are called {short(key)} (there are: {known})")

    def _pairs(self) -> dict[str, str]:
        return self._writer._core.metadata()
