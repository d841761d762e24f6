"""Files that are written."""

import contextlib
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from .. import _core
from .._base import arrow
from .._base.checks import check_name, check_path, file_and_ntuple
from .._base.messages import quoted_names, short_repr
from .._to_arrow.cast import cast_table
from .._to_arrow.declarations import is_declaration, schema_and_data
from .._to_arrow.tables import normalize_schema
from ..errors import Error, InvalidArgumentError, NotFoundError, TupeloWarning
from ..histogram import _writing as _histograms
from ._filling import NtupleWriter, sources
from ._open_files import OpenFile, OpenNtuple, WriterHandle, open_for_writing
from ._options import Projections, WriteOptions
from ._trees import TREE_CLASSES, TreeWriter, tree_options

if TYPE_CHECKING:
    from typing_extensions import Self

_NTUPLE_CLASS = "ROOT::RNTuple"


def refuse_attribute(file: object, name: str) -> None:
    """Raises `InvalidArgumentError` for setting an attribute of a file, which would write nothing."""
    raise InvalidArgumentError(f"{file!r} has no attribute {name!r}; file[{name!r}] = … writes an ntuple of that name")


class WritableFile:
    """A ROOT file open for writing; `recreate` and `update` return it.

    ``file["name"] = data`` creates an ntuple with its first entries, or writes a histogram; `mkrntuple` creates an
    ntuple with declared fields, and ``file["name"]`` continues either of them, or an existing one. `mktree` creates a
    ``TTree``. Several ntuples and trees may be written at the same time. The file stays open as long as it or one of
    its writers is referenced.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        options: WriteOptions,
        *,
        update: bool,
        storage: "_core.Storage | None" = None,
        mapping: str | None = None,
    ) -> None:
        # First, so that a file that could not be opened counts as closed.
        self._hold: WriterHandle | None = None
        self._writers: dict[str, NtupleWriter] = {}
        self._renamed: list[str] = []
        self._trees: dict[str, TreeWriter] = {}
        file_path = check_path(path)
        if (pair := file_and_ntuple(path)) is not None:
            file_path, name = pair
            function = "update" if update else "recreate"
            raise InvalidArgumentError(
                f"{short_repr(path)} names a file and an ntuple; use {function}({_core.display_name(file_path)!r}) and "
                f"file[{name!r}] = …"
            )
        self._path = _core.display_name(file_path)
        self._options = options
        # Report invalid options before creating a file.
        options.options()
        options.check_supported(file_path)
        self._hold = open_for_writing(file_path, update=update, storage=storage, mapping=mapping)

    if not TYPE_CHECKING:  # Type checkers reject other attributes anyway.

        def __setattr__(self, name: str, value: object) -> None:
            if not name.startswith("_") and not hasattr(type(self), name):
                refuse_attribute(self, name)
            super().__setattr__(name, value)

    @property
    def file_path(self) -> str:
        """The file name as given, or the URL without credentials."""
        return self._path

    def keys(self) -> list[str]:
        """Paths of the ntuples in the file, new ones and new trees included."""
        before = [found.path for found in self._writer().objects() if found.class_name == _NTUPLE_CLASS]
        return list(dict.fromkeys([*before, *self._renamed, *self._state().ntuples]))

    def __contains__(self, name: object) -> bool:
        return name in self.keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, name: str) -> "NtupleWriter":
        """The writer of an ntuple; for one that existed before, as with `append`. That of a tree after `mktree`.

        Raises `NotFoundError` (a `KeyError`) if it does not exist.
        """
        self._state()
        if (tree := self._trees.get(name)) is not None:
            # Programs for uproot extend trees this way.
            return cast("NtupleWriter", tree)
        begun = self._writers.get(name)
        return self.append(name) if begun is None or begun.is_closed else begun

    def __setitem__(self, name: str, data: Any) -> None:
        """Creates an ntuple with its first entries, or writes a histogram.

        Histograms are all objects that follow UHI (of the packages hist, boost-histogram and uproot, and those that
        Tupelo read) and the results of ``numpy.histogram``, ``numpy.histogram2d`` and ``numpy.histogramdd``, with one
        to three axes. ROOT's class follows from the storage:

        - integers: ``TH1I`` or, if they do not fit into 32 bits, ``TH1D``; NumPy arrays of other types ``TH1C``,
          ``TH1S`` and ``TH1F``
        - doubles: ``TH1D``; with variances, such as ``Weight`` of hist, with ``fSumw2``
        - means: ``TProfile``, ``TProfile2D`` or ``TProfile3D``

        and ``TH2`` and ``TH3`` for more axes. Histograms that were read keep their class and attributes. A histogram of
        the name of another one of the same class becomes the newest cycle.

        Issues a `TupeloWarning` if it hides an ntuple of the same name, which becomes an older cycle. Raises
        `InvalidArgumentError` for names of objects of other classes, and `UnsupportedError` for histograms that no
        class of ROOT holds.

        >>> import hist, tupelo
        >>> with tupelo.recreate("histograms.root") as file:
        ...     file["dir/mass"] = hist.new.Reg(3, 0, 3, label="m").Weight().fill([0.5, 1.5, 1.7], weight=[1, 2, 3])
        >>> mass = tupelo.open("histograms.root:dir/mass")
        >>> mass, mass.values().tolist(), mass.variances().tolist()
        (<tupelo.Histogram 'mass': TH1D, 3 bins, 2.57143 entries>, [1.0, 5.0, 0.0], [1.0, 13.0, 0.0])
        """
        state = self._state()
        with state.call():
            check_name(name)
            if _histograms.is_histogram(data):
                _histograms.write(self._writer(), name, data, self._options.options()["compression"])
                state.histograms.append(name)
                return
            if isinstance(data, pa.Schema) or is_declaration(data):
                raise InvalidArgumentError(
                    f"ntuple '{name}': expected data, not types; use mkrntuple() to declare fields"
                )
            warning = self._hidden_ntuple_warning(name)
            if (before := self._writers.get(name)) is not None:
                before.close()
            self.mkrntuple(name, data).flush_cluster()
        if warning is not None:
            warnings.warn(warning, TupeloWarning, stacklevel=2)

    def __delitem__(self, name: str) -> None:
        """Removes an object of a file that is updated, with all its cycles, or one cycle (``"name;1"``).

        Directories must be empty. Pages and baskets that only the object uses become free space in the file.

        Raises `NotFoundError` (a `KeyError`) with similar names if it does not exist, and `InvalidArgumentError` for a
        directory that is not empty, for what this writer wrote, and for a file that is not updated.

        >>> import tupelo
        >>> with tupelo.recreate("delete.root") as file:
        ...     file["a"], file["b"] = {"x": [0.5]}, {"x": [1.5]}
        >>> with tupelo.update("delete.root") as file:
        ...     del file["a"]
        >>> tupelo.open("delete.root").keys()
        ['b']
        """
        state, core = self._state(), self._writer()
        check_name(name)
        with state.call():
            core.remove(name)
        self._note_change()

    def rename(self, old: str, new: str) -> None:
        """Moves the object at the path ``old`` of a file that is updated: all its cycles, or one (``"name;1"``).

        ``new`` may be a directory, or end with a slash: the object then keeps its name. Pages of ntuples and baskets of
        trees stay where they are. Histograms and other objects with a name of their own get the new one.

        Raises `NotFoundError` (a `KeyError`) with similar names if it does not exist, `InvalidArgumentError` for a path
        that exists and for what this writer wrote, and `UnsupportedError` for directories. After an error in the middle
        the file should be aborted.

        >>> import tupelo
        >>> with tupelo.recreate("rename.root") as file:
        ...     file["a"] = {"x": [0.5]}
        >>> with tupelo.update("rename.root") as file:
        ...     file.rename("a", "dir/b")
        >>> tupelo.open("rename.root:dir/b").arrays().tolist()
        [{'x': 0.5}]
        """
        state, core = self._state(), self._writer()
        check_name(old)
        is_ntuple = old.split(";")[0] in self.keys()
        with state.call():
            path = core.rename(old, new)
        self._note_change()
        if is_ntuple:
            self._renamed.append(path)

    def mkdir(self, name: str) -> None:
        """Makes the directory ``"a/b"`` in the file, and those above it.

        Names are paths: ``file["a/b/Events"] = data`` writes into the directory, which objects also make themselves.
        Nothing is returned, unlike in uproot. A directory that exists stays as it is.

        Raises `InvalidArgumentError` for the name of an object, and after the file was closed.

        >>> import tupelo, uproot
        >>> with tupelo.recreate("mkdir.root") as file:
        ...     file.mkdir("a/b")
        ...     file["a/Events"] = {"x": [1.5]}
        >>> uproot.open("mkdir.root").classnames(cycle=False)
        {'a': 'TDirectory', 'a/b': 'TDirectory', 'a/Events': 'ROOT::RNTuple'}
        """
        state, core = self._state(), self._writer()
        check_name(name, "a directory")
        with state.call():
            core.make_directory(name)

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

        Options are those of `mkrntuple` and apply to added data; columns keep their encodings. Readers see the ntuple
        as it was, or with all data up to a checkpoint or the end.

        Raises `NotFoundError` (a `KeyError`) with similar names if it does not exist, `UnsupportedError` if parts of it
        are not supported, and `InvalidArgumentError` for an older cycle (``"Events;1"``) and after it was closed.

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
            how = "closed; append to it in an update() of the file" if begun.is_closed else "open"
            raise InvalidArgumentError(f"{self._path}: ntuple '{name}' is {how}")
        if name in self._renamed:
            raise InvalidArgumentError(f"{self._path}: '{name}' was renamed; append to it in an update() of the file")
        if not state.is_update:
            known = ", ".join(map(repr, state.ntuples)) or "none"
            raise NotFoundError(f"{self._path}: no ntuple named '{name}' (existing ntuples: {known})")
        own = WriteOptions(
            compression=compression,
            page_bytes=page_bytes,
            cluster_bytes=cluster_bytes,
            checkpoint_bytes=checkpoint_bytes,
            checkpoint_clusters=checkpoint_clusters,
            checkpoint_seconds=checkpoint_seconds,
        )
        inner = core.append(name, own.over(self._options).options())
        schema = inner.arrow_schema()
        zone_maps = self._options.zone_patterns_of(schema, None)
        return self._register_writer(name, inner, schema, None, zone_maps=zone_maps)

    def append_fields(
        self,
        name: str,
        data: Any,
        *,
        compression: str | int | None = None,
        page_bytes: int | str | None = None,
    ) -> None:
        """Adds fields to an existing ntuple of an updated file, with values for all of its entries.

        ``data`` is that of `mkrntuple`, with a value for each entry of the ntuple: arrays, or an Arrow stream, such as
        a `Join` or what `Ntuple.stream` returns, which is read batch by batch. Options are those of `mkrntuple`. The
        values that the ntuple has stay where they are. Readers see it as it was, or, once the file is closed, with the
        new fields. `NtupleWriter.add_fields` adds fields for later entries only.

        Raises `InvalidArgumentError` for names that exist, for data that cannot be written or have another number of
        entries, and while the ntuple is being written; `NotFoundError` (a `KeyError`) if it does not exist;
        `UnsupportedError` if fields were added after its first entries. The ntuple is then as it was.

        >>> import tupelo
        >>> with tupelo.recreate("append_fields.root") as file:
        ...     file["Events"] = {"x": [0.5, 1.5]}
        >>> with tupelo.update("append_fields.root") as file:
        ...     file.append_fields("Events", {"score": [0.25, 0.75], "hits": [[1], []]})
        >>> tupelo.open("append_fields.root:Events").arrays().tolist()
        [{'x': 0.5, 'score': 0.25, 'hits': [1]}, {'x': 1.5, 'score': 0.75, 'hits': []}]
        """
        state, core = self._state(), self._writer()
        check_name(name)
        if name in self._writers:
            raise InvalidArgumentError(
                f"{self._path}: ntuple '{name}' was begun in this file; add fields to it in an update() of the file"
            )
        if isinstance(data, pa.Schema) or is_declaration(data):
            raise InvalidArgumentError(
                f"ntuple '{name}': expected data, not types; NtupleWriter.add_fields takes types"
            )
        own = WriteOptions(compression=compression, page_bytes=page_bytes)
        schema, tables = schema_and_data(data)
        schema = normalize_schema(schema)
        with state.call():
            fields = core.append_fields(name, schema, own.over(self._options).options())
            try:
                for table in tables:
                    fields.write(cast_table(table, schema))
                fields.finish()
            except BaseException:
                fields.abandon()
                raise

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
        zone_maps: bool | Sequence[str] | None = None,
        encodings: Mapping[str, str] | None = None,
        compressions: Mapping[str, str | int] | None = None,
        projections: Projections | None = None,
    ) -> "NtupleWriter":
        """Creates an ntuple under ``"dir/name"`` and returns its writer.

        ``description`` is free text. ``what`` is the fields or the first entries:

        - a mapping of names to types: C++ names (``"float"``, ``"std::vector<std::pair<int, double>>"``; C++ names take
          precedence, so ``"float"`` has 32 bits), NumPy dtypes (``np.float32``, ``"i8"``, ``("f4", 3)``),
          `pyarrow.DataType`, or a class with its members (`record`)
        - a NumPy dtype with names, or a `pyarrow.Schema`, whose nullable fields become ``std::optional``
        - data as for `NtupleWriter.extend`; a field becomes ``std::optional`` only if values are missing. Arrow streams
          (an `Ntuple`, a `pyarrow.RecordBatchReader`, …) are read batch by batch if all their fields have a C++ type,
          and otherwise at once

        ``encodings`` and ``compressions`` set the storage of single fields by dotted path: ``"Real16"``, ``"Real32"``
        (doubles in 32 bits), ``"Real32Trunc(BITS)"``, ``"Real32Quant(BITS,MIN,MAX)"``, ``"Index32"``; ``"lzma:9"``.
        The other options default to those of the file (`recreate`); 0 turns a kind of checkpoint off, and False zone
        maps.

        ``projections`` maps new names to the fields that they project: ``"jets.pt"`` is the ``pt`` of all jets as a
        ``std::vector<float>``, ``"#jets"`` the number of jets, and ``("jets.pt", "ROOT::VecOps::RVec<float>")`` the
        same as another type of the same structure. Projected fields cannot be filled.

        Raises `InvalidArgumentError` for names, types, options and data that cannot be written, for invalid
        projections, for fields of ``zone_maps`` without numbers, and for names of other objects in the file;
        `NotFoundError` for fields of ``zone_maps`` that the ntuple lacks; `UnsupportedError` for Arrow types without a
        C++ equivalent.

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
        own = WriteOptions(
            compression=compression,
            page_bytes=page_bytes,
            cluster_bytes=cluster_bytes,
            checkpoint_bytes=checkpoint_bytes,
            checkpoint_clusters=checkpoint_clusters,
            checkpoint_seconds=checkpoint_seconds,
            zone_maps=zone_maps,
        )
        own.check_supported(state.absolute_path)
        combined = own.over(self._options)
        # Before the data are accessed: a stream can be read only once.
        text = "" if description is None else description
        options = combined.options(
            description=text, encodings=encodings, compressions=compressions, projections=projections
        )
        schema, tables = schema_and_data(what)
        schema = normalize_schema(schema)
        if description is None:
            options["description"] = (schema.metadata or {}).get(arrow.DESCRIPTION.encode(), b"").decode()
        zone_maps = combined.zone_patterns_of(schema, own)
        before, begun_before = self._writers.get(name), state.ntuples.get(name)
        with state.call():
            inner = core.ntuple(path=name, schema=schema, options=options)
            writer = self._register_writer(name, inner, schema, sources(options), zone_maps=zone_maps)
            try:
                for table in tables:
                    writer._write(table)
            except BaseException:
                # The caller does not get the writer, so remove the ntuple and free its name.
                state.ntuples.pop(name).abandon()
                del self._writers[name]
                if before is not None and begun_before is not None:
                    self._writers[name], state.ntuples[name] = before, begun_before
                raise
        return writer

    def mktree(
        self,
        name: str,
        what: Any,
        title: str = "",
        *,
        compression: str | int | None = None,
        auto_flush: int | None = None,
        basket_bytes: int | str | None = None,
        optimise_baskets: bool = True,
        split_level: int | None = None,
        jagged: str = "counter",
    ) -> TreeWriter:
        """Creates a tree (``TTree``) under ``"dir/name"``, which ROOT and uproot read, and returns its writer.

        ``what`` is the fields or the first entries, as for `mkrntuple`; an `Ntuple` is copied batch by batch. Numbers,
        strings and fixed arrays of numbers become leaves. Lists of numbers become arrays with a counter (``nx/I`` and
        ``x[nx]/F``), lists of records a counter ``nMuon`` and an array ``Muon_pt[nMuon]`` for each member; with
        ``jagged="vector"`` they become ``std::vector``, and with ``"same"`` only those without a counter in what is
        copied. Other lists are vectors always.

        ``title`` is free text. ``compression`` defaults to that of the file. ``auto_flush`` says when a cluster ends:
        after this number of entries, if negative of compressed bytes (the following clusters then have as many entries
        as the first), or 0 for never; default -30 000 000. ``basket_bytes`` is the size of a basket before compression,
        by default 32 000; at the end of the first cluster, it becomes the size of a cluster of each branch, unless
        ``optimise_baskets`` is false. ``split_level``, 0 to 99 (the default), is the number of levels to which members
        of records get branches of their own; with 0, a record is one branch of objects.

        Issues a `TupeloWarning` if it hides a tree of the same name, which becomes an older cycle. Raises
        `InvalidArgumentError` for names, options and data that cannot be written, and for names of other objects in the
        file; `UnsupportedError` for fields that have no branch: maps, optional values, variants and pairs.

        >>> import numpy as np, tupelo
        >>> with tupelo.recreate("mktree.root") as file:
        ...     events = file.mktree("Events", {"x": "float", "hits": "std::vector<int>"}, title="my events")
        ...     events.extend({"x": np.array([0.5, 1.5]), "hits": [[1], [2, 3]]})
        >>> tupelo.open("mktree.root:Events").arrays().tolist()
        [{'x': 0.5, 'nhits': 1, 'hits': [1]}, {'x': 1.5, 'nhits': 2, 'hits': [2, 3]}]
        """
        state, core = self._state(), self._writer()
        check_name(name)
        if name in self._trees or name in self._existing_trees:
            text = f"{self._path}: the new tree '{name}' hides the existing one, which becomes an older cycle"
            warnings.warn(text, TupeloWarning, stacklevel=2)
        options = tree_options(
            title=title,
            compression=self._options.compression if compression is None else compression,
            auto_flush=auto_flush,
            basket_bytes=basket_bytes,
            optimise_baskets=optimise_baskets,
            split_level=split_level,
            jagged=jagged,
        )
        schema, tables = schema_and_data(what)
        schema = normalize_schema(schema)
        assert self._hold is not None
        with state.call():
            begun = OpenNtuple(_core.TreeWriter(file=core, path=name, schema=schema, options=options))
            writer = TreeWriter(begun, name, schema, self._hold)
            state.ntuples[name], self._trees[name] = begun, writer
            try:
                for table in tables:
                    writer._write(table)
            except BaseException:
                # The caller does not get the writer, so remove the tree and free its name.
                state.ntuples.pop(name).abandon()
                del self._trees[name]
                raise
        return writer

    def close(self) -> None:
        """Finishes all ntuples and makes the file visible. Closing twice has no effect.

        Raises the error of the first ntuple that could not be finished; the file is then discarded. Raises
        `InvalidArgumentError` if it was discarded because `recreate` or `update` opened it again.
        """
        if self._opened is None:
            return
        if self._opened.is_replaced:
            raise self._opened.closed_error
        used = {pattern for begun in self._opened.ntuples.values() for pattern in begun.zone_maps or ()}
        unused = [pattern for pattern in self._options.zone_patterns or () if pattern not in used]
        has_ntuples = bool(self._opened.ntuples)
        try:
            self._opened.finish()
        except BaseException:
            self._discard()
            raise
        if unused and has_ntuples:
            text = f"{self._path}: no zone maps for {quoted_names(unused)}: no ntuple has such fields with numbers"
            warnings.warn(text, TupeloWarning, stacklevel=2)

    def abort(self) -> str | None:
        """Discards all changes since the file was opened or since the last checkpoint.

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
        elif self._opened is not None and _is_silent_exit(error):
            hint = " (to keep the data: call `file.close()` first)"
            self._opened.release(f"was not closed because of {kind.__name__}", hint)
        else:
            self._discard()

    def __repr__(self) -> str:
        state = "closed" if self._opened is None or self._opened.core is None else "being written"
        return f"<tupelo.WritableFile {self._path!r} ({state})>"

    @property
    def _opened(self) -> OpenFile | None:
        return None if self._hold is None else self._hold.opened

    def _state(self) -> OpenFile:
        if self._opened is None:
            raise InvalidArgumentError(f"{self._path} is closed")
        if self._opened.core is None:
            raise self._opened.closed_error
        return self._opened

    def _writer(self) -> "_core.FileWriter":
        core = self._state().core
        assert core is not None
        return core

    def _register_writer(
        self,
        name: str,
        core: "_core.NtupleWriter",
        schema: Any,
        projections: Mapping[str, str] | None,
        *,
        zone_maps: list[str] | None,
    ) -> "NtupleWriter":
        """Creates and registers a writer; ``projections`` is None for a continued ntuple."""
        assert self._hold is not None
        begun = self._hold.opened.ntuples[name] = OpenNtuple(core, zone_maps)
        made = self._writers[name] = NtupleWriter(begun, name, schema, projections, self._hold)
        return made

    def _note_change(self) -> None:
        """Forgets what was known of the objects of the file: some were removed."""
        self._state().has_changes = True
        self.__dict__.pop("_existing_names", None)
        self.__dict__.pop("_existing_trees", None)

    @cached_property
    def _existing_names(self) -> frozenset[str]:
        """Paths of the ntuples that an updated file had when it was opened, and still has."""
        return frozenset(found.path for found in self._writer().objects() if found.class_name == _NTUPLE_CLASS)

    @cached_property
    def _existing_trees(self) -> frozenset[str]:
        """Paths of the trees that an updated file had when it was opened, and still has."""
        return frozenset(found.path for found in self._writer().objects() if found.class_name in TREE_CLASSES)

    def _hidden_ntuple_warning(self, name: str) -> str | None:
        """The warning for an ntuple that a new one of the same name will hide, or None."""
        if (begun := self._writers.get(name)) is not None:
            entries: int | None = begun.num_entries
        elif name in self._existing_names:
            entries = self._num_existing_entries(name)
        else:
            return None
        size = "" if entries is None else f", with {entries} entries,"
        return (
            f"{self._path}: the new ntuple '{name}' hides the existing one{size} which becomes an older cycle; "
            f"use file[{name!r}].extend(data) to add entries"
        )

    def _num_existing_entries(self, name: str) -> int | None:
        """The number of entries of an ntuple of the file, or None if it cannot be read now."""
        try:
            path = self._state().absolute_path
            return _core.File(path).table(name).num_entries
        except Error:
            return None

    def _discard(self) -> None:
        """Discards the file and warns where its last checkpoint is."""
        # The original exception is the one to report.
        with contextlib.suppress(Exception):
            if kept := self.abort():
                text = f"{self._path} was discarded; its last checkpoint is kept: `tupelo verify --repair {kept}`"
                warnings.warn(text, TupeloWarning, stacklevel=3)


def _is_silent_exit(error: object) -> bool:
    """Whether an exception leaves a block without a traceback."""
    return isinstance(error, GeneratorExit) or (isinstance(error, SystemExit) and error.code in (None, 0))
