"""Writing files."""

import contextlib
import os
import warnings
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from . import _arrow, _conversion, _core
from ._checks import check_name, check_path, file_and_ntuple
from ._messages import short
from ._opened import Begun, Hold, Opened, begin
from ._opened import abort as give_up
from ._schema import declares, schema_and_data
from ._storage import Projections, Storage
from .errors import Error, InvalidArgumentError, NotFoundError, TupeloWarning
from .filling import NtupleWriter, sources

if TYPE_CHECKING:
    from typing_extensions import Self

_NTUPLE_CLASS = "ROOT::RNTuple"


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
    """Creates a ROOT file; an existing one is replaced.

    ``compression`` is ``"zstd:5"`` (the default), ``"lz4"``, ``"zlib:1"``, ``"lzma"``, ``"none"`` or ROOT's number
    (505); levels go from 1 to 9. ``page_bytes`` is the largest page in uncompressed bytes (default 1 MiB),
    ``cluster_bytes`` the compressed size at which a cluster is complete (default 128 MiB); both may be texts such as
    ``"64 KiB"``. They apply to all ntuples of the file unless `WritableFile.mkrntuple` says otherwise.

    A checkpoint (`NtupleWriter.checkpoint`) is made after ``checkpoint_bytes`` stored bytes (default 1 GiB),
    ``checkpoint_clusters`` clusters (not by default) or ``checkpoint_seconds`` seconds (default 300), whatever comes
    first; 0 or None turns each off.

    Nothing is visible under the path before the file is closed. A file that nobody closes is discarded, with a message
    on the standard error stream: use a ``with`` block or `WritableFile.close`. After an exception in the ``with`` block
    the new file is discarded, and an existing file stays as it was. The last checkpoint, if there is one, stays beside
    it; a `TupeloWarning` says where. ``sys.exit()`` and the end of a generator in the block discard it with a message.

    A process writes a file by one writer at a time. Where an earlier one was not closed, `recreate` gives it up, and a
    message on the standard error stream says what is discarded; the next call of that writer raises an error. `update`
    gives up only one that has written nothing or whose last call failed, and raises an error for all others, which
    `abort` gives up. Both raise an error where another thread, which is still running, began the earlier one.

    Raises `InvalidArgumentError` for options that fit no ntuple, for ``"f.root:Events"``, which names more than a file,
    and for a file that is being written; `StorageError` (an `OSError`) where the file cannot be made; nothing is made
    then.

    >>> import tupelo
    >>> with tupelo.recreate("recreate.root", compression="lz4") as file:
    ...     file["dir/Events"] = {"x": [1.5, 2.5], "names": ["a", "b"]}
    >>> tupelo.open("recreate.root:dir/Events").arrays().tolist()
    [{'x': 1.5, 'names': 'a'}, {'x': 2.5, 'names': 'b'}]
    """
    storage = Storage(compression, page_bytes, cluster_bytes, checkpoint_bytes, checkpoint_clusters, checkpoint_seconds)
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

    What is in the file stays as it is, and an ntuple that is assigned to a name that exists becomes the newest cycle of
    that name. ``file["Events"]`` continues an ntuple, whichever program wrote it. Nothing is visible before a
    checkpoint is made or the file is closed; where the ``with`` block is left by an exception, the file is again what
    it was at the last of these. `recreate` says what becomes of an earlier writer of the file.

    Raises `MissingFileError` (a `FileNotFoundError`) where there is no file, `CorruptError` where it is no whole ROOT
    file, `InvalidArgumentError` for options that fit no ntuple, and for a file that is being written.

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
    storage = Storage(compression, page_bytes, cluster_bytes, checkpoint_bytes, checkpoint_clusters, checkpoint_seconds)
    return WritableFile(path, True, storage)


def abort(path: str | os.PathLike[str]) -> str | None:
    """Gives up what this process is writing to the file ``path``, as `WritableFile.abort` does.

    This is for a writer that is out of reach: in a notebook, the last exception keeps the variables of the function
    that it left, and so the writer in one of them. Returns the name of the file that keeps the last checkpoint of a new
    file, if there is one.

    Raises `NotFoundError` (a `KeyError`) where this process is not writing the file.

    >>> import tupelo
    >>> file = tupelo.recreate("abort.root")
    >>> file["Events"] = {"x": [1.5]}
    >>> tupelo.abort("abort.root")
    """
    return give_up(check_path(path))


def refuse_attribute(file: object, name: str) -> None:
    """Raises `InvalidArgumentError` for an attribute that is set on a file: nothing would be written."""
    raise InvalidArgumentError(
        f"{file!r} has no attribute {name!r} to be set; file[{name!r}] = … writes an ntuple of that name"
    )


class WritableFile:
    """A ROOT file open for writing; `recreate` and `update` return it.

    ``file["name"] = data`` begins an ntuple with its first entries, `mkrntuple` one of declared fields, and
    ``file["name"]`` goes on with either, or with one that the file had before. Several may be written at the same time.
    The file stays open as long as it or one of its `NtupleWriter`s is in use.
    """

    def __init__(self, path: str | os.PathLike[str], update: bool, storage: Storage) -> None:
        # First, so that a file that could not be opened is one that is closed.
        self._hold: Hold | None = None
        self._writers: dict[str, NtupleWriter] = {}
        if (pair := file_and_ntuple(path)) is not None:
            file_path, name = pair
            function = "update" if update else "recreate"
            raise InvalidArgumentError(
                f"{short(path)} names a file and an ntuple in it; use {function}({file_path!r}), and file[{name!r}] = …"
            )
        self._path = check_path(path)
        self._storage = storage
        storage.options()  # What is wrong in them is said before a file is made.
        self._hold = begin(self._path, update)

    if not TYPE_CHECKING:  # For a type checker no other attribute can be set anyway.

        def __setattr__(self, name: str, value: object) -> None:
            if not name.startswith("_") and not hasattr(type(self), name):
                refuse_attribute(self, name)
            super().__setattr__(name, value)

    @property
    def file_path(self) -> str:
        """The file, as it was named."""
        return self._path

    def keys(self) -> list[str]:
        """Paths of the ntuples in the file, new ones included."""
        before = [path for path, class_name in self._writer().objects() if class_name == _NTUPLE_CLASS]
        return list(dict.fromkeys([*before, *self._state().ntuples]))

    def __contains__(self, name: object) -> bool:
        return name in self.keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, name: str) -> "NtupleWriter":
        """The ntuple of a name, to be extended; as `append` for one that existed before.

        Raises `NotFoundError` (a `KeyError`) where there is none.
        """
        self._state()
        begun = self._writers.get(name)
        return self.append(name) if begun is None or begun.is_closed else begun

    def __setitem__(self, name: str, data: Any) -> None:
        """Begins an ntuple with its first entries.

        A `TupeloWarning` says where that hides an ntuple of the same name, which becomes an older cycle.
        """
        state = self._state()
        with state.call():
            check_name(name)
            if isinstance(data, pa.Schema) or declares(data):
                raise InvalidArgumentError(f"ntuple '{name}': these are types, not data; begin it by mkrntuple()")
            warning = self._warning_of_hidden(name)
            if (before := self._writers.get(name)) is not None:
                before.close()
            self.mkrntuple(name, data).flush_cluster()
        if warning is not None:
            warnings.warn(warning, TupeloWarning, stacklevel=2)

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
        """Continues an existing ntuple of an updated file, and returns its writer.

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
        state, core = self._state(), self._writer()
        check_name(name)
        if (begun := self._writers.get(name)) is not None:
            how = "closed, and can be continued in an update() of the file" if begun.is_closed else "open"
            raise InvalidArgumentError(f"{self._path}: ntuple '{name}' is {how}")
        if not state.is_update:
            known = ", ".join(map(repr, state.ntuples)) or "none"
            raise NotFoundError(f"{self._path}: no ntuple is called '{name}' (there are: {known})")
        own = Storage(compression, page_bytes, cluster_bytes, checkpoint_bytes, checkpoint_clusters, checkpoint_seconds)
        inner = core.append(name, own.over(self._storage).options())
        return self._begun(name, inner, inner.arrow_schema(), None)

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
        """Creates an ntuple under ``"dir/name"`` and returns its writer.

        ``description`` is free text. ``what`` are the fields or the first entries:

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
        as a ``std::vector<float>``, ``"#jets"`` the number of jets, and ``("jets.pt", "ROOT::VecOps::RVec<float>")``
        the same as another type of the same structure. They are not given when the ntuple is extended.

        Raises `InvalidArgumentError` for names, types, options and data that cannot be written, for projections that
        the format forbids, and for names of other objects in the file; `UnsupportedError` for Arrow types without a C++
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
        state, core = self._state(), self._writer()
        check_name(name)
        own = Storage(compression, page_bytes, cluster_bytes, checkpoint_bytes, checkpoint_clusters, checkpoint_seconds)
        # Before the data are looked at: a stream can be read once.
        text = "" if description is None else description
        options = own.over(self._storage).options(text, encodings, compressions, projections)
        schema, tables = schema_and_data(what)
        schema = _conversion.plain_schema(schema)
        if description is None:
            options["description"] = (schema.metadata or {}).get(_arrow.DESCRIPTION.encode(), b"").decode()
        before, begun_before = self._writers.get(name), state.ntuples.get(name)
        with state.call():
            writer = self._begun(name, core.ntuple(name, schema, options), schema, sources(options))
            try:
                for table in tables:
                    writer._write(table)
            except BaseException:
                # Nobody has it: it must not be there when the file is closed, and the name must be free.
                state.ntuples.pop(name).abandon()
                del self._writers[name]
                if before is not None and begun_before is not None:
                    self._writers[name], state.ntuples[name] = before, begun_before
                raise
        return writer

    def close(self) -> None:
        """Finishes all ntuples and makes the file visible. Closing twice has no effect.

        Raises the error of the first ntuple that could not be finished; the file is then discarded. Raises
        `InvalidArgumentError` where it was given up because `recreate` or `update` opened it again.
        """
        if self._opened is None:
            return
        if self._opened.is_replaced:
            raise self._opened.closed_error
        try:
            self._opened.finish()
        except BaseException:
            self._give_up()
            raise

    def abort(self) -> str | None:
        """Discards the changes: the state before, or at the last checkpoint, stays.

        Returns the name of the file that keeps the last checkpoint of a new file, if there is one.
        """
        return None if self._opened is None else self._opened.abort()

    def __enter__(self) -> "Self":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None = None, trace: object = None
    ) -> None:
        if kind is None:
            self.close()
        elif self._opened is not None and _is_silent(error):
            hint = " (to keep it: `file.close()` before that)"
            self._opened.forget(f"was left by {kind.__name__} before it was closed", hint)
        else:
            self._give_up()

    def __repr__(self) -> str:
        state = "closed" if self._opened is None or self._opened.core is None else "being written"
        return f"<tupelo.WritableFile {self._path!r} ({state})>"

    @property
    def _opened(self) -> Opened | None:
        return None if self._hold is None else self._hold.opened

    def _state(self) -> Opened:
        if self._opened is None:
            raise InvalidArgumentError(f"{self._path} is closed")
        if self._opened.core is None:
            raise self._opened.closed_error
        return self._opened

    def _writer(self) -> "_core.FileWriter":
        core = self._state().core
        assert core is not None
        return core

    def _begun(
        self, name: str, core: "_core.NtupleWriter", schema: Any, projections: Mapping[str, str] | None
    ) -> "NtupleWriter":
        """Notes a writer, of the projections that it begins with; None for an ntuple that is continued."""
        assert self._hold is not None
        begun = self._hold.opened.ntuples[name] = Begun(core)
        made = self._writers[name] = NtupleWriter(begun, name, schema, projections, self._hold)
        return made

    @cached_property
    def _before(self) -> frozenset[str]:
        """Paths of the ntuples that an updated file had."""
        return frozenset(path for path, class_name in self._writer().objects() if class_name == _NTUPLE_CLASS)

    def _warning_of_hidden(self, name: str) -> str | None:
        """What to say of an ntuple that another one of its name will hide; None where there is none."""
        if (begun := self._writers.get(name)) is not None:
            entries: int | None = begun.num_entries
        elif name in self._before:
            entries = self._entries_before(name)
        else:
            return None
        size = "" if entries is None else f", with {entries} entries,"
        return (
            f"{self._path}: the new ntuple '{name}' hides the one of that name{size} which is now an older cycle; "
            f"use file[{name!r}].extend(data) to add entries"
        )

    def _entries_before(self, name: str) -> int | None:
        """The number of entries of an ntuple of the file, as far as it can be read now."""
        try:
            path = self._state().absolute_path
            return _core.File(path, _core.DEFAULT_PAGE_CHECKSUMS, None, False).ntuple(name).num_entries
        except Error:
            return None

    def _give_up(self) -> None:
        """Gives the file up, and says where the last checkpoint is."""
        # The exception that is under way is the one to see.
        with contextlib.suppress(Exception):
            if kept := self.abort():
                text = f"{self._path} is given up; its last checkpoint is kept: `tupelo verify --repair {kept}`"
                warnings.warn(text, TupeloWarning, stacklevel=3)


def _is_silent(error: object) -> bool:
    """Whether nobody would see that an exception left a block: there is no traceback."""
    return isinstance(error, GeneratorExit) or (isinstance(error, SystemExit) and error.code in (None, 0))
