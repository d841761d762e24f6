"""Writing files."""

import contextlib
import os
import warnings
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import pyarrow as pa

from . import _arrow, _core, _cpp, _intake
from ._sizes import optional_bytes
from .attributes import AttributeSetWriter
from .errors import InvalidArgumentError, NotFoundError, TupeloWarning

_NTUPLE_CLASS = "ROOT::RNTuple"
_CARDINALITY = "ROOT::RNTupleCardinality<std::uint64_t>"

Projections = Mapping[str, str | tuple[str, str]]
"""New name → dotted path of the source, ``"#path"`` for the sizes of a collection, or ``(path, type)``."""


@dataclass(frozen=True)
class _Storage:
    """How pages, clusters and checkpoints are made; None leaves it to the file, and there to the engine."""

    compression: str | int | None = None
    page_bytes: int | str | None = None
    cluster_bytes: int | str | None = None
    checkpoint_bytes: int | str | None = None
    checkpoint_clusters: int | None = None
    checkpoint_seconds: float | None = None

    def over(self, defaults: "_Storage") -> "_Storage":
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(defaults, **{name: value for name, value in given.items() if value is not None})

    def options(
        self,
        description: str = "",
        encodings: Mapping[str, str] | None = None,
        compressions: Mapping[str, str | int] | None = None,
        projections: Projections | None = None,
    ) -> dict[str, Any]:
        """The dict that the engine takes."""
        clusters = optional_bytes("checkpoint_clusters", self.checkpoint_clusters)
        return {
            "description": description,
            "compression": None if self.compression is None else str(self.compression),
            "page_bytes": optional_bytes("page_bytes", self.page_bytes),
            "cluster_bytes": optional_bytes("cluster_bytes", self.cluster_bytes),
            "checkpoint_bytes": optional_bytes("checkpoint_bytes", self.checkpoint_bytes) or 0,
            "checkpoint_clusters": clusters or 0,
            "checkpoint_seconds": _seconds(self.checkpoint_seconds),
            "encodings": {path: str(encoding) for path, encoding in (encodings or {}).items()},
            "compressions": {path: str(setting) for path, setting in (compressions or {}).items()},
            "projections": [_projection(name, source) for name, source in (projections or {}).items()],
        }


def recreate(
    path: str | os.PathLike[str],
    *,
    compression: str | int | None = None,
    page_bytes: int | str | None = None,
    cluster_bytes: int | str | None = None,
    checkpoint_bytes: int | str | None = _core.DEFAULT_CHECKPOINT_BYTES,
    checkpoint_clusters: int | None = None,
    checkpoint_seconds: float | None = _core.DEFAULT_CHECKPOINT_SECONDS,
) -> "WritableFile":
    """Begins a new ROOT file, in place of one that exists.

    ``compression`` is ``"zstd:5"`` (the default), ``"lz4"``, ``"zlib:1"``, ``"lzma"``, ``"none"`` or ROOT's number
    (505); levels go from 1 to 9. ``page_bytes`` is the largest page in uncompressed bytes (default 1 MiB),
    ``cluster_bytes`` the compressed size at which a cluster is complete (default 128 MiB); both may be texts such as
    ``"64 KiB"``. They hold for all ntuples of the file for which nothing else is said.

    A checkpoint (`NtupleWriter.checkpoint`) is made after ``checkpoint_bytes`` stored bytes (default 1 GiB),
    ``checkpoint_clusters`` clusters (not by default) or ``checkpoint_seconds`` seconds (default 300), whatever comes
    first; 0 or None turns each off.

    Nothing is visible under the path before the file is closed. Where the ``with`` block is left by an exception, the
    file is given up, and what was there before stays. The last checkpoint, if there is one, stays beside it; a
    `TupeloWarning` says where.

    Raises `StorageError` (an `OSError`) where the file cannot be made.

    >>> import tupelo
    >>> with tupelo.recreate("recreate.root", compression="lz4") as file:
    ...     file["dir/Events"] = {"x": [1.5, 2.5], "names": ["a", "b"]}
    >>> tupelo.open("recreate.root:dir/Events").arrays().tolist()
    [{'x': 1.5, 'names': 'a'}, {'x': 2.5, 'names': 'b'}]
    """
    storage = _Storage(
        compression, page_bytes, cluster_bytes, checkpoint_bytes, checkpoint_clusters, checkpoint_seconds
    )
    return WritableFile(path, False, storage)


def update(
    path: str | os.PathLike[str],
    *,
    compression: str | int | None = None,
    page_bytes: int | str | None = None,
    cluster_bytes: int | str | None = None,
    checkpoint_bytes: int | str | None = _core.DEFAULT_CHECKPOINT_BYTES,
    checkpoint_clusters: int | None = None,
    checkpoint_seconds: float | None = _core.DEFAULT_CHECKPOINT_SECONDS,
) -> "WritableFile":
    """Opens a ROOT file to add ntuples, or entries to those it has; options as for `recreate`.

    What is in the file stays as it is, and an ntuple that is assigned to a name that exists becomes the newest cycle
    of that name. ``file["Events"]`` goes on with an ntuple, whoever wrote it. Nothing is visible before a checkpoint is
    made or the file is closed; where the ``with`` block is left by an exception, the file is again what it was at the
    last of these.

    Raises `MissingFileError` (a `FileNotFoundError`) where there is no file, `CorruptError` where it is no whole ROOT
    file.

    >>> import tupelo
    >>> with tupelo.recreate("update.root") as file:
    ...     file["a"] = {"x": [1]}
    >>> with tupelo.update("update.root") as file:
    ...     file["b"] = {"x": [2]}
    ...     file["a"].extend({"x": [3, 4]})
    >>> sorted(tupelo.open("update.root").keys())
    ['a', 'b']
    >>> tupelo.open("update.root:a").arrays()["x"].tolist()
    [1, 3, 4]
    """
    storage = _Storage(
        compression, page_bytes, cluster_bytes, checkpoint_bytes, checkpoint_clusters, checkpoint_seconds
    )
    return WritableFile(path, True, storage)


class WritableFile:
    """A ROOT file that is being written; made by `recreate` or `update`.

    ``file["name"] = data`` begins an ntuple with its first entries, `mkrntuple` one of declared fields, and
    ``file["name"]`` goes on with either, or with one that the file had before. Several may be written at the same time.
    """

    def __init__(self, path: str | os.PathLike[str], update: bool, storage: _Storage) -> None:
        # First, so that a file that could not be opened is one that is closed.
        self._core: _core.FileWriter | None = None
        self._path = os.fspath(path)
        self._storage = storage
        self._ntuples: dict[str, NtupleWriter] = {}
        storage.options()  # What is wrong in them is said before a file is made.
        self._core = _core.FileWriter(self._path, update)

    @property
    def file_path(self) -> str:
        """The file."""
        return self._path

    def keys(self) -> list[str]:
        """Paths of the ntuples in the file: those that were there, and those that were begun."""
        before = [path for path, class_name in self._writer().objects() if class_name == _NTUPLE_CLASS]
        return list(dict.fromkeys([*before, *self._ntuples]))

    def __contains__(self, name: object) -> bool:
        return name in self.keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, name: str) -> "NtupleWriter":
        """The ntuple of a name, to go on with; as `append` for one that was there before.

        Raises `NotFoundError` (a `KeyError`) where there is none.
        """
        begun = self._ntuples.get(name)
        return self.append(name) if begun is None or begun.is_closed else begun

    def __setitem__(self, name: str, data: Any) -> None:
        if isinstance(data, pa.Schema) or _declares(data):
            raise InvalidArgumentError(f"ntuple '{name}': these are types, not data; begin it by mkrntuple()")
        if (begun := self._ntuples.get(name)) is not None:
            begun.close()
        self.mkrntuple(name, data).flush_cluster()

    def append(
        self,
        name: str,
        *,
        compression: str | int | None = None,
        page_bytes: int | str | None = None,
        cluster_bytes: int | str | None = None,
        checkpoint_bytes: int | str | None = None,
        checkpoint_clusters: int | None = None,
        checkpoint_seconds: float | None = None,
    ) -> "NtupleWriter":
        """Goes on with an ntuple that the updated file has, and gives what extends it.

        Options as for `mkrntuple`, for what is added; columns keep their encodings. Readers see the ntuple as it was,
        or with all that was added up to a checkpoint or the end, never something between.

        Raises `NotFoundError` (a `KeyError`) with near names where there is none, `UnsupportedError` for one that is
        not understood as a whole, `InvalidArgumentError` for an older cycle (``"Events;1"``) and one that was closed.

        >>> import tupelo
        >>> with tupelo.recreate("append.root") as file:
        ...     file["Events"] = {"x": [0.5]}
        >>> with tupelo.update("append.root") as file:
        ...     with file.append("Events", compression="lzma") as events:
        ...         events.add_fields({"n": "int"})
        ...         events.extend({"x": [1.5], "n": [7]})
        >>> tupelo.open("append.root:Events").arrays().tolist()
        [{'x': 0.5, 'n': 0}, {'x': 1.5, 'n': 7}]
        """
        core = self._writer()
        _check_name(name)
        if name in self._ntuples:
            state = (
                "closed, and can be continued in an update() of the file" if self._ntuples[name].is_closed else "open"
            )
            raise InvalidArgumentError(f"{self._path}: ntuple '{name}' is {state}")
        if not core.objects():
            known = ", ".join(map(repr, self._ntuples)) or "none"
            raise NotFoundError(f"{self._path}: no ntuple is called '{name}' (there are: {known})")
        own = _Storage(
            compression, page_bytes, cluster_bytes, checkpoint_bytes, checkpoint_clusters, checkpoint_seconds
        )
        inner = core.append(name, own.over(self._storage).options())
        return self._begun(name, inner)

    def mkrntuple(
        self,
        name: str,
        what: Any,
        *,
        description: str | None = None,
        compression: str | int | None = None,
        page_bytes: int | str | None = None,
        cluster_bytes: int | str | None = None,
        checkpoint_bytes: int | str | None = None,
        checkpoint_clusters: int | None = None,
        checkpoint_seconds: float | None = None,
        encodings: Mapping[str, str] | None = None,
        compressions: Mapping[str, str | int] | None = None,
        projections: Projections | None = None,
    ) -> "NtupleWriter":
        """Begins an ntuple under ``"dir/name"`` and gives what extends it.

        ``what`` are the fields or the first entries:

        - a mapping of names to types: C++ names (``"float"``, ``"std::vector<std::pair<int, double>>"``; in texts C++
          comes first, so ``"float"`` has 32 bits), NumPy dtypes (``np.float32``, ``"i8"``, ``("f4", 3)``),
          `pyarrow.DataType` or a class by its members (`record`)
        - a NumPy dtype with names, or a `pyarrow.Schema`, whose nullable fields become ``std::optional``
        - data as for `NtupleWriter.extend`; a field becomes ``std::optional`` only where something is missing. Arrow
          streams (an `Ntuple`, a `pyarrow.RecordBatchReader`, …) are read batch by batch if each of their fields says
          its C++ type, and whole if not

        ``encodings`` and ``compressions`` say by dotted path how single fields are stored: ``"Real16"``, ``"Real32"``
        (doubles in 32 bits), ``"Real32Trunc(BITS)"``, ``"Real32Quant(BITS,MIN,MAX)"``, ``"Index32"``; ``"lzma:9"``.
        Codecs, sizes and checkpoints are those of the file where nothing is said (`recreate`); 0 turns a kind of
        checkpoints off.

        ``projections`` are fields that show what others store, by new name: ``"jets.pt"`` shows the ``pt`` of all jets
        as a ``std::vector<float>``, ``"#jets"`` the number of jets, and ``("jets.pt", "ROOT::VecOps::RVec<float>")`` the
        same as another type of the same structure. They are not given when the ntuple is extended.

        Raises `InvalidArgumentError` for names, types, options and data that cannot be written, for projections that the
        format forbids, and for names of other objects in the file; `UnsupportedError` for Arrow types without a C++
        counterpart.

        >>> import numpy as np, tupelo
        >>> with tupelo.recreate("mkrntuple.root") as file:
        ...     events = file.mkrntuple(
        ...         "Events",
        ...         {"x": "float", "hits": "std::vector<int>"},
        ...         encodings={"x": "Real16"},
        ...         projections={"n_hits": "#hits"},
        ...     )
        ...     events.extend({"x": np.array([0.5, 1.5]), "hits": [[1], [2, 3]]})
        ...     events.extend({"x": [2.5], "hits": [[]]})
        >>> tupelo.open("mkrntuple.root:Events").arrays().tolist()
        [{'x': 0.5, 'hits': [1], 'n_hits': 1}, {'x': 1.5, 'hits': [2, 3], 'n_hits': 2}, {'x': 2.5, 'hits': [], 'n_hits': 0}]
        """  # noqa: E501
        _check_name(name)
        core = self._writer()
        schema, tables = _schema_and_data(what)
        schema = _intake.plain_schema(schema)
        if description is None:
            description = (schema.metadata or {}).get(_arrow.DESCRIPTION.encode(), b"").decode()
        own = _Storage(
            compression, page_bytes, cluster_bytes, checkpoint_bytes, checkpoint_clusters, checkpoint_seconds
        )
        options = own.over(self._storage).options(description, encodings, compressions, projections)
        writer = self._begun(name, core.ntuple(name, schema, options), schema)
        for table in tables:
            writer._write(table)
        return writer

    def close(self) -> None:
        """Finishes all ntuples and makes the file visible. Closing twice does no harm.

        Raises the error of the first ntuple that could not be finished; the file is then given up.
        """
        if self._core is None:
            return
        try:
            for writer in self._ntuples.values():
                writer.close()
            self._core.finish()
        except BaseException:
            self._give_up()
            raise
        self._core = None

    def abort(self) -> str | None:
        """Gives the file up: what was there before, or at the last checkpoint, stays.

        Gives the name of the file that keeps the last checkpoint of a new file, if there is one.
        """
        core, self._core = self._core, None
        return None if core is None else core.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if kind is None:
            self.close()
            return
        self._give_up()

    def __del__(self) -> None:
        if getattr(self, "_core", None) is not None:
            warnings.warn(
                f"{self._path} was not closed, so nothing is written", ResourceWarning, stacklevel=1, source=self
            )
            self._give_up()

    def __repr__(self) -> str:
        state = "closed" if self._core is None else "being written"
        return f"<tupelo.WritableFile {self._path!r} ({state})>"

    def _writer(self) -> "_core.FileWriter":
        if self._core is None:
            raise InvalidArgumentError(f"{self._path} is closed")
        return self._core

    def _begun(self, name: str, core: "_core.NtupleWriter", schema: Any = None) -> "NtupleWriter":
        writer = NtupleWriter(core, name, core.arrow_schema() if schema is None else schema)
        self._ntuples[name] = writer
        return writer

    def _give_up(self) -> None:
        """Gives the file up, and says where the last checkpoint is."""
        # The exception that is under way is the one to see.
        with contextlib.suppress(Exception):
            if kept := self.abort():
                text = f"{self._path} is given up; its last checkpoint is kept: `tupelo verify --repair {kept}`"
                warnings.warn(text, TupeloWarning, stacklevel=3)


class NtupleWriter:
    """An ntuple that is being written; made by `WritableFile.mkrntuple` or `WritableFile.append`.

    It grows by entries (`extend`), by fields (`add_fields`, `add_members`), and by what is said of entries
    (`attribute_set`) and of the whole of it (`metadata`).
    """

    def __init__(self, core: "_core.NtupleWriter", name: str, schema: Any) -> None:
        self._open_core: _core.NtupleWriter | None = core
        self._name = name
        self._schema = schema
        self._entries = 0

    @property
    def name(self) -> str:
        """Its path in the file."""
        return self._name

    @property
    def num_entries(self) -> int:
        """Entries so far, those of an ntuple that is continued included."""
        return self._entries if self._open_core is None else self._open_core.num_entries

    @property
    def arrow_schema(self) -> Any:
        """The `pyarrow.Schema` of the fields that `extend` wants: all but those that are projected."""
        return self._schema

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._open_core is None

    @property
    def metadata(self) -> "Metadata":
        """Texts that speak of the whole ntuple, by name; what is assigned is written at the next checkpoint or the end.

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

        Taken are dicts of NumPy arrays (those of more dimensions for fixed-size arrays), Awkward arrays, lists and so
        on, Awkward arrays of records, NumPy structured arrays, pandas data frames, Arrow tables, batches and streams.
        Numbers are converted to the declared types where nothing is lost but digits of a float. With
        ``accept_new_fields`` columns of other names become fields as by `add_fields`.

        Raises `InvalidArgumentError` where data do not fit; nothing of them is then written.
        """
        if _intake.is_stream(data):
            for batch in pa.RecordBatchReader.from_stream(data):
                self._take(pa.Table.from_batches([batch]), accept_new_fields)
        else:
            self._take(_intake.to_table(data, self._schema), accept_new_fields)

    def add_fields(self, what: Any = None, *, projections: Projections | None = None) -> None:
        """Adds fields: declared as for `WritableFile.mkrntuple`, or projected from those there are.

        In the entries before, they are zero, empty, without a value or missing. `extend` wants them from now on.

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
        schema = pa.schema([]) if what is None else _declared(what)
        self._core.add_fields(schema, _Storage().options(projections=projections), None)
        self._schema = self._core.arrow_schema()

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
        self._core.add_fields(_declared(what), _Storage().options(), path)
        self._schema = self._core.arrow_schema()

    def attribute_set(self, name: str, what: Any) -> AttributeSetWriter:
        """A set of attributes, whose rows say something of ranges of entries; `Ntuple.attributes` reads it.

        ``what`` declares the fields of a row, as for `WritableFile.mkrntuple`. A set that a continued ntuple has goes
        on; its fields must then be the same.

        Raises `InvalidArgumentError` for names and fields that the format forbids, and for a set that is being written.
        """
        _check_name(name, "an attribute set")
        schema = _declared(what)
        return AttributeSetWriter(self._core.attribute_set(name, schema), name, schema)

    def fill_context(self) -> "FillContext":
        """What another thread extends the ntuple by, while others do.

        Each context fills clusters of its own. Its entries stay in order; those of several contexts follow each other
        cluster by cluster. The interpreter is let go while data are encoded and written.

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
        return FillContext(self._core.fill_context(), self._name, self._schema)

    def flush_cluster(self) -> None:
        """Ends the open cluster before it is full: what was extended so far is encoded and written."""
        self._core.flush_cluster()

    def checkpoint(self) -> None:
        """Ends the open cluster and makes all that was written readable and durable.

        In a file that is updated this is so in place; in a new file, in the temporary file beside it, which stays if
        the file is given up or the program ends. An exception later goes back to here.
        """
        self._core.checkpoint()

    def close(self) -> None:
        """Writes what is pending. It becomes visible when the file is closed."""
        if self._open_core is not None:
            self._entries, *_ = self._open_core.finish()
            self._open_core = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if kind is None:
            self.close()

    def __repr__(self) -> str:
        return f"<tupelo.NtupleWriter {self._name!r} ({self.num_entries} entries)>"

    @property
    def _core(self) -> "_core.NtupleWriter":
        if self._open_core is None:
            raise InvalidArgumentError(f"ntuple '{self._name}' is closed")
        return self._open_core

    def _take(self, table: Any, accept_new_fields: bool) -> None:
        known = set(self._schema.names)
        new = [name for name in table.schema.names if name not in known]
        if accept_new_fields and new:
            self.add_fields(_intake.tight_schema(table.select(new)))
        self._write(table)

    def _write(self, table: Any) -> None:
        core = self._core
        core.write(_intake.fit(table, self._schema))


class FillContext:
    """Extends an ntuple from a thread of its own; made by `NtupleWriter.fill_context`.

    It must be closed before its ntuple is; a ``with`` block does that. Where the block is left by an exception, entries
    that are not written yet are lost, and the ntuple cannot be finished.
    """

    def __init__(self, core: "_core.FillContext", name: str, schema: Any) -> None:
        self._core = core
        self._name = name
        self._schema = schema

    def extend(self, data: Any) -> None:
        """Appends entries, as `NtupleWriter.extend`."""
        if _intake.is_stream(data):
            for batch in pa.RecordBatchReader.from_stream(data):
                self._core.write(_intake.fit(pa.Table.from_batches([batch]), self._schema))
        else:
            self._core.write(_intake.fit(_intake.to_table(data, self._schema), self._schema))

    def flush_cluster(self) -> None:
        """Ends the open cluster before it is full."""
        self._core.flush_cluster()

    def close(self) -> None:
        """Writes what is pending, and ends the context.

        Raises `InvalidArgumentError` where it was closed before.
        """
        self._core.finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if kind is None:
            self.close()
        else:
            self._core.abort()

    def __repr__(self) -> str:
        return f"<tupelo.FillContext of {self._name!r}>"


class Metadata(MutableMapping[str, str]):
    """The metadata of an ntuple that is being written; see `NtupleWriter.metadata`."""

    def __init__(self, writer: NtupleWriter) -> None:
        self._writer = writer

    def __getitem__(self, key: str) -> str:
        return self._pairs()[key]

    def __setitem__(self, key: str, value: str) -> None:
        pair: tuple[object, object] = (key, value)
        if not all(isinstance(text, str) for text in pair):
            raise InvalidArgumentError(f"metadata are texts by text, not {value!r} by {key!r}")
        self._writer._core.set_metadata(key, value)

    def __delitem__(self, key: str) -> None:
        if key not in self._pairs():
            raise NotFoundError(f"ntuple '{self._writer.name}': no metadata are called {key!r}")
        self._writer._core.set_metadata(key, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._pairs())

    def __len__(self) -> int:
        return len(self._pairs())

    def __repr__(self) -> str:
        return f"<tupelo.Metadata {self._pairs()!r}>"

    def _pairs(self) -> dict[str, str]:
        return self._writer._core.metadata()


def _check_name(name: object, what: str = "an ntuple") -> None:
    if not isinstance(name, str):
        raise InvalidArgumentError(f"{what} is called by a name, not by {name!r}")


def _seconds(seconds: float | None) -> float:
    try:
        return 0.0 if seconds is None else float(seconds)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"checkpoint_seconds is a number of seconds, not {seconds!r}") from None


def _projection(name: Any, source: Any) -> tuple[str, str, str | None]:
    """New name, dotted path and type of a projection."""
    path, type_name = source if isinstance(source, tuple) and len(source) == 2 else (source, None)
    if isinstance(path, str) and path.startswith("#"):
        path, type_name = path[1:], _CARDINALITY if type_name is None else type_name
    texts: tuple[object, ...] = (name, path, type_name or "")
    if not all(isinstance(text, str) for text in texts):
        raise InvalidArgumentError(
            f"projection {name!r}: its source is a dotted path, '#path' for sizes, or (path, type), not {source!r}"
        )
    return name, path, type_name


def _declared(what: Any) -> Any:
    """The `pyarrow.Schema` of a declaration.

    Raises `InvalidArgumentError` for data.
    """
    schema, tables = _schema_and_data(what)
    if tables != ():
        raise InvalidArgumentError("fields are declared by types, as {'x': 'float'}; these are data")
    return _intake.plain_schema(schema)


def _schema_and_data(what: Any) -> tuple[Any, Any]:
    """The `pyarrow.Schema` to write and the tables that are there already."""
    if isinstance(what, pa.Schema):
        return what, ()
    if _declares(what):
        return pa.schema([_cpp.field_of(name, declared) for name, declared in what.items()]), ()
    dtype_names = getattr(what, "names", None) if type(what).__name__.endswith("DType") else None
    if dtype_names:
        return pa.schema([_cpp.field_of(name, what[name]) for name in dtype_names]), ()
    if _intake.is_stream(what):
        reader = pa.RecordBatchReader.from_stream(what)
        if _intake.says_all(reader.schema):
            return reader.schema, (pa.Table.from_batches([batch]) for batch in reader)
        what = reader.read_all()
    table = _intake.to_table(what)
    return _intake.tight_schema(table), (table,)


def _declares(what: Any) -> bool:
    """Whether a mapping declares fields rather than giving columns."""
    return isinstance(what, Mapping) and len(what) > 0 and all(map(_is_type, what.values()))


def _is_type(value: Any) -> bool:
    """Whether a value of a mapping declares a type rather than giving data."""
    import numpy as np

    if isinstance(value, tuple):
        return len(value) == 2 and _is_type(value[0]) and isinstance(value[1], int | tuple)
    return isinstance(value, str | type | np.dtype | pa.DataType | pa.Field)
