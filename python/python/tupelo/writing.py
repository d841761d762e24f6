"""Writing files."""

import contextlib
import os
import warnings
from collections.abc import Mapping
from typing import Any, Self

import pyarrow as pa

from . import _arrow, _core, _cpp, _intake
from ._sizes import optional_bytes
from .errors import InvalidArgumentError


def recreate(
    path: str | os.PathLike[str],
    *,
    compression: str | int | None = None,
    page_bytes: int | str | None = None,
    cluster_bytes: int | str | None = None,
) -> "WritableFile":
    """Begins a new ROOT file, in place of one that exists.

    ``compression`` is ``"zstd:5"`` (the default), ``"lz4"``, ``"zlib:1"``, ``"lzma"``, ``"none"`` or ROOT's number
    (505); levels go from 1 to 9. ``page_bytes`` is the largest page in uncompressed bytes (default 1 MiB),
    ``cluster_bytes`` the compressed size at which a cluster is complete (default 128 MiB); both may be texts such as
    ``"64 KiB"``. They hold for all ntuples of the file for which nothing else is said.

    Nothing is visible under the path before the file is closed. Where the ``with`` block is left by an exception, the
    file is given up, and what was there before stays.

    Raises `StorageError` (an `OSError`) where the file cannot be made.

    >>> import tupelo
    >>> with tupelo.recreate("recreate.root", compression="lz4") as file:
    ...     file["dir/Events"] = {"x": [1.5, 2.5], "names": ["a", "b"]}
    >>> tupelo.open("recreate.root:dir/Events").arrays().tolist()
    [{'x': 1.5, 'names': 'a'}, {'x': 2.5, 'names': 'b'}]
    """
    return WritableFile(path, False, compression, page_bytes, cluster_bytes)


def update(
    path: str | os.PathLike[str],
    *,
    compression: str | int | None = None,
    page_bytes: int | str | None = None,
    cluster_bytes: int | str | None = None,
) -> "WritableFile":
    """Opens a ROOT file to add ntuples; options as for `recreate`.

    What is in the file stays as it is, and an ntuple of a name that exists becomes the newest cycle of that name.
    Nothing is visible before the file is closed.

    Raises `MissingFileError` (a `FileNotFoundError`) where there is no file, `CorruptError` where it is no whole ROOT
    file.

    >>> import tupelo
    >>> with tupelo.recreate("update.root") as file:
    ...     file["a"] = {"x": [1]}
    >>> with tupelo.update("update.root") as file:
    ...     file["b"] = {"x": [2]}
    >>> tupelo.open("update.root").keys()
    ['a', 'b']
    """
    return WritableFile(path, True, compression, page_bytes, cluster_bytes)


class WritableFile:
    """A ROOT file that is being written; made by `recreate` or `update`.

    ``file["name"] = data`` writes an ntuple whole, `mkrntuple` begins one that is written piece by piece. Several may
    be written at the same time.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        update: bool,
        compression: str | int | None,
        page_bytes: int | str | None,
        cluster_bytes: int | str | None,
    ) -> None:
        # First, so that a file that could not be opened is one that is closed.
        self._core: _core.FileWriter | None = None
        self._path = os.fspath(path)
        self._defaults = (compression, page_bytes, cluster_bytes)
        self._ntuples: dict[str, NtupleWriter] = {}
        self._core = _core.FileWriter(self._path, update)

    @property
    def file_path(self) -> str:
        """The file."""
        return self._path

    def keys(self) -> list[str]:
        """Paths of the ntuples that were begun here."""
        return list(self._ntuples)

    def __setitem__(self, name: str, data: Any) -> None:
        if isinstance(data, pa.Schema) or _declares(data):
            raise InvalidArgumentError(f"ntuple '{name}': these are types, not data; begin it by mkrntuple()")
        self.mkrntuple(name, data).close()

    def mkrntuple(
        self,
        name: str,
        what: Any,
        *,
        description: str | None = None,
        compression: str | int | None = None,
        page_bytes: int | str | None = None,
        cluster_bytes: int | str | None = None,
        encodings: Mapping[str, str] | None = None,
        compressions: Mapping[str, str | int] | None = None,
    ) -> "NtupleWriter":
        """Begins an ntuple under ``"dir/name"`` and gives what extends it.

        ``what`` are the fields or the first entries:

        - a mapping of names to types: C++ names (``"float"``, ``"std::vector<std::pair<int, double>>"``; in texts C++
          comes first, so ``"float"`` has 32 bits), NumPy dtypes (``np.float32``, ``"i8"``, ``("f4", 3)``) or
          `pyarrow.DataType`
        - a NumPy dtype with names, or a `pyarrow.Schema`, whose nullable fields become ``std::optional``
        - data as for `NtupleWriter.extend`; a field becomes ``std::optional`` only where something is missing. Arrow
          streams (an `Ntuple`, a `pyarrow.RecordBatchReader`, …) are read batch by batch if each of their fields says
          its C++ type, and whole if not

        ``encodings`` and ``compressions`` say by dotted path how single fields are stored: ``"Real16"``, ``"Real32"``
        (doubles in 32 bits), ``"Real32Trunc(BITS)"``, ``"Real32Quant(BITS,MIN,MAX)"``, ``"Index32"``; ``"lzma:9"``.

        Raises `InvalidArgumentError` for names, types, options and data that cannot be written, `UnsupportedError` for
        Arrow types without a C++ counterpart.

        >>> import numpy as np, tupelo
        >>> with tupelo.recreate("mkrntuple.root") as file:
        ...     events = file.mkrntuple("Events", {"x": "float", "hits": "std::vector<int>"}, encodings={"x": "Real16"})
        ...     events.extend({"x": np.array([0.5, 1.5]), "hits": [[1], [2, 3]]})
        ...     events.extend({"x": [2.5], "hits": [[]]})
        >>> tupelo.open("mkrntuple.root:Events").arrays().tolist()
        [{'x': 0.5, 'hits': [1]}, {'x': 1.5, 'hits': [2, 3]}, {'x': 2.5, 'hits': []}]
        """
        if not isinstance(name, str):
            raise InvalidArgumentError(f"an ntuple is called by a name, not by {name!r}")
        core = self._writer()
        schema, tables = _schema_and_data(what)
        schema = _intake.plain_schema(schema)
        if description is None:
            description = (schema.metadata or {}).get(_arrow.DESCRIPTION.encode(), b"").decode()
        defaults = self._defaults
        options = (compression, page_bytes, cluster_bytes)
        compression, page_bytes, cluster_bytes = (
            default if option is None else option for option, default in zip(options, defaults, strict=True)
        )
        inner = core.ntuple(
            name,
            schema,
            description,
            None if compression is None else str(compression),
            optional_bytes(page_bytes),
            optional_bytes(cluster_bytes),
            dict(encodings or {}),
            {path: str(setting) for path, setting in (compressions or {}).items()},
        )
        writer = NtupleWriter(inner, name, schema)
        self._ntuples[name] = writer
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
            self.abort()
            raise
        self._core = None

    def abort(self) -> None:
        """Gives the file up: what was there before stays."""
        core, self._core = self._core, None
        if core is not None:
            core.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if kind is None:
            self.close()
            return
        # The exception that is under way is the one to see.
        with contextlib.suppress(Exception):
            self.abort()

    def __del__(self) -> None:
        if getattr(self, "_core", None) is not None:
            warnings.warn(
                f"{self._path} was not closed, so nothing is written", ResourceWarning, stacklevel=1, source=self
            )
            self.abort()

    def __repr__(self) -> str:
        state = "closed" if self._core is None else "being written"
        return f"<tupelo.WritableFile {self._path!r} ({state})>"

    def _writer(self) -> "_core.FileWriter":
        if self._core is None:
            raise InvalidArgumentError(f"{self._path} is closed")
        return self._core


class NtupleWriter:
    """An ntuple that is being written; made by `WritableFile.mkrntuple`."""

    def __init__(self, core: "_core.NtupleWriter", name: str, schema: Any) -> None:
        self._core: _core.NtupleWriter | None = core
        self._name = name
        self._schema = schema
        self._entries = 0

    @property
    def name(self) -> str:
        """Its path in the file."""
        return self._name

    @property
    def num_entries(self) -> int:
        """Entries written so far."""
        return self._entries if self._core is None else self._core.num_entries

    @property
    def arrow_schema(self) -> Any:
        """The `pyarrow.Schema` of the fields."""
        return self._schema

    def extend(self, data: Any) -> None:
        """Appends entries: columns of the declared names, all of the same length, in any order.

        Taken are dicts of NumPy arrays (those of more dimensions for fixed-size arrays), Awkward arrays, lists and so
        on, Awkward arrays of records, NumPy structured arrays, pandas data frames, Arrow tables, batches and streams.
        Numbers are converted to the declared types where nothing is lost but digits of a float.

        Raises `InvalidArgumentError` where data do not fit; nothing of them is then written.
        """
        if _intake.is_stream(data):
            for batch in pa.RecordBatchReader.from_stream(data):
                self._write(pa.Table.from_batches([batch]))
        else:
            self._write(_intake.to_table(data, self._schema))

    def close(self) -> None:
        """Writes what is pending. It becomes visible when the file is closed."""
        if self._core is not None:
            self._entries, *_ = self._core.finish()
            self._core = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if kind is None:
            self.close()

    def __repr__(self) -> str:
        return f"<tupelo.NtupleWriter {self._name!r} ({self.num_entries} entries)>"

    def _write(self, table: Any) -> None:
        if self._core is None:
            raise InvalidArgumentError(f"ntuple '{self._name}' is closed")
        self._core.write(_intake.fit(table, self._schema))


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
