"""Ntuples that are read."""

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
import pyarrow as pa

from . import _arrow, _core, _hist, _html, _polars, _progress, _schema, _select, _virtual
from ._awkward import Style
from ._checks import check_name
from ._libraries import hand_out
from ._messages import printable, short
from ._options import ArrayOptions, ReadOptions, SelectOptions, complete, takes
from ._progress import Progress
from ._select import Filter
from ._sizes import parse_bytes
from ._source import Origin, Report
from ._stream import Stream
from .attributes import AttributeSet
from .columns import Columns, NtupleWithColumns, copy
from .errors import InvalidArgumentError, NotFoundError, TupeloWarning
from .fields import Fields
from .metrics import Metrics
from .rules import ReadRule

if TYPE_CHECKING:
    from typing_extensions import Unpack

DEFAULT_STEP = "100 MiB"
"""Size in memory of what `Ntuple.iterate` gives at once."""


class Ntuple(Fields):
    """An open ntuple: like a mapping from dotted paths to fields, and what reads its entries.

    It can be used from many threads, and pickled: what is pickled is where it lies. It has Arrow's
    ``__arrow_c_stream__``, so ``pyarrow.table(ntuple)``, ``polars.DataFrame(ntuple)``, ``pandas.DataFrame.from_arrow``
    and DuckDB read it as it is.

    >>> import tupelo
    >>> with tupelo.recreate("events.root") as file:
    ...     file["Events"] = {"pt": [[31.5, 7.25], [], [12.0]], "run": [1, 1, 2]}
    >>> ntuple = tupelo.open("events.root:Events")
    >>> ntuple
    <tupelo.Ntuple 'Events' (2 fields, 3 entries)>
    >>> ntuple.arrays(["pt"], entry_start=-1).tolist()
    [{'pt': [12.0]}]
    """

    _columns: Columns | None = None
    """Columns beside the fields, for `NtupleWithColumns`."""

    def __init__(
        self, core: "_core.Ntuple", origin: Origin, rules: tuple[ReadRule, ...] = (), *, is_quiet: bool = False
    ) -> None:
        super().__init__(core, origin.file_path)
        self._origin = origin
        self._rules = rules
        if rules or is_quiet:
            return
        for text in core.warnings:
            about = printable(f"{origin.file_path}: ntuple '{core.path}': {text}")
            warnings.warn(about, TupeloWarning, stacklevel=3)

    # What it is, besides its fields.

    @property
    def writer(self) -> str:
        """The program that wrote it, as far as it says so."""
        return self._core.writer

    @property
    def format_version(self) -> str:
        """Version of the format that its writer claims, ``"1.0.2.0"`` for instance."""
        return self._core.format_version

    @property
    def num_clusters(self) -> int:
        """Number of clusters: groups of entries that are stored together."""
        return self._core.num_clusters

    @property
    def cluster_boundaries(self) -> Any:
        """The first entry of each cluster that has entries, and the number of all behind them: a NumPy array.

        >>> import tupelo
        >>> with tupelo.recreate("boundaries.root") as file:
        ...     events = file.mkrntuple("Events", {"x": "int"})
        ...     for _ in range(3):
        ...         events.extend({"x": [1, 2]})
        ...         events.flush_cluster()
        >>> tupelo.open("boundaries.root:Events").cluster_boundaries
        array([0, 2, 4, 6])
        """
        return np.array([*(first for first, _, _ in self._core.clusters()), self.num_entries], dtype=np.int64)

    @property
    def metadata(self) -> dict[str, str]:
        """What the program that wrote it says of the whole of it; see `NtupleWriter.metadata`.

        They are the attribute set ``metadata``. Raises `UnsupportedError` where another program means something else
        by that name; `attributes` reads it then.
        """
        return self._core.metadata()

    @property
    def metrics(self) -> Metrics | None:
        """What reading from the file cost so far, if it was opened with ``metrics=True``; else None."""
        counted = self._core.metrics()
        return None if counted is None else Metrics.of(*counted)

    @property
    def attribute_sets(self) -> dict[str, AttributeSet]:
        """The linked attribute sets by name."""
        return {name: self.attributes(name) for name in self._core.attribute_sets()}

    def attributes(self, name: str) -> AttributeSet:
        """An attribute set: rows that speak of ranges of entries.

        Raises `NotFoundError` (a `KeyError`) with near names where there is none of that name.
        """
        check_name(name, "an attribute set")
        core, origin = self._core, self._origin

        def open_ntuple() -> Ntuple:
            set_origin = replace(origin, names=(*origin.names, name))
            return Ntuple(core.attribute_set(name), set_origin)

        return AttributeSet(core.attributes(name), name, open_ntuple)

    @property
    def arrow_schema(self) -> Any:
        """The `pyarrow.Schema` of all fields. C++ types stand in the field metadata under ``rntuple.type``."""
        return self._core.arrow_schema(_select.Request())

    # Its entries.

    @takes(ReadOptions)
    def arrays(
        self,
        expressions: str | Iterable[str] | None = None,
        cut: str | None = None,
        *,
        schema: Mapping[str, Any] | pa.Schema | None = None,
        virtual: bool = False,
        access_log: Any = None,
        progress: Progress = None,
        **options: "Unpack[ReadOptions]",
    ) -> Any:
        """Reads fields, and computes expressions over them, in a range of entries, by default everything.

        ``expressions`` are dotted paths, globs (``"Muon_pt"``, ``"Muon_*"``, ``"jets.pt"``; in a glob ``*`` stays
        within one name and ``**`` does not) and what is computed (``"Muon_pt * cos(Muon_phi)"``). A path stands for
        everything below it, and what is above it stays around it as a frame. Instead of expressions, filters choose
        as in `keys`. Columns come in the order of the expressions; with globs or filters fields come first, in that of
        the file, and what is computed behind them. The name of what is computed is its text. ``entry_start`` and
        ``entry_stop`` are those of a slice, so ``entry_start=-10`` means the last ten.
        Only the pages that hold them are read.

        ``cut`` is an expression too: only the entries for which it is true are given. What it needs is read first; of
        the rest, pages without such an entry are not read. ``aliases`` name expressions, for use in the others.

        Expressions are written as in Python: names of fields by their dotted paths (in backticks where they are not
        made of letters, digits and ``_``), arithmetic ``+ - * / // % **``, comparisons (also ``80 < mass < 100``),
        ``run in [1, 2]`` and ``(run, event) in [(1, 15), (1, 27)]``, ``and or not`` or ``& | ~``, items ``Jet_pt[0]``,
        slices ``Jet_pt[:, :2]`` and masks ``Jet_pt[Jet_eta < 2]``, and functions by the names of NumPy and Awkward
        Array, with ``np.`` and ``ak.`` in front or without: ``sqrt(x)``, ``np.where(c, a, b)``,
        ``ak.sum(Jet_pt, axis=1)``. ``sum prod mean min max any all count argmin argmax`` go over the innermost lists;
        ``len`` is the number of items of the outermost. Numbers in collections are computed item by item, and what an
        entry has one of stands beside each. Integers have 64 bits, and it is an error where they do not hold a result.
        ``min`` of nothing, ``x[0]`` where there is none, integers ``//`` and ``%`` zero, and what is computed of what
        is missing, are missing; ``is_missing(x)`` asks. The page *Expressions* of the guide lists all of it.

        ``library`` says what the columns become:

        - ``"ak"``: one `ak.Array` of records
        - ``"np"``: a dict of NumPy arrays whose first axis are the entries: numbers of shape (n,), fixed-size arrays
          (n, N), records as structured arrays, optional numbers as masked arrays, and objects for the rest: `str` for
          strings, one NumPy array per collection, None for what is missing
        - ``"arrow"``: a `pyarrow.Table`
        - ``"pd"``: a `pandas.DataFrame` with the entry numbers as index, NumPy columns for numbers, and
          `pandas.ArrowDtype` for what is nested or may be missing
        - ``"pl"``: a `polars.DataFrame`; lists, structs and fixed-size arrays as polars has them, no variants

        NumPy arrays and columns of pandas can be written to: no two of them share memory, and nothing else sees it.

        ``how`` puts the columns together otherwise: a ``dict``, ``list`` or ``tuple`` (the classes themselves) of them,
        or for Awkward ``"zip"``, which makes one list of records of all lists that have the same lengths: ``Muon_pt``
        and ``Muon_eta`` become ``Muon.pt`` and ``Muon.eta``.

        ``ak_add_doc`` gives Awkward arrays parameters: with True, ``__doc__`` is the description of the field or the
        ntuple, where there is one; as ``{parameter: attribute}``, each field has them, and the attribute is
        ``"description"``, ``"typename"`` or ``"name"``. ``{"__record__": "typename"}`` names records by their C++
        classes, by which behaviors go.

        With ``virtual`` nothing is read now: the Awkward array reads what is touched of it, field by field, when it is
        touched first, and keeps it. Members of records are read by themselves. As its type cannot depend on values,
        variants have one more alternative for what has none. To ``access_log``, a list, comes an entry for each buffer
        that is made (field, buffer, entries).

        ``progress`` is that of `iterate`: the entries are then read piece by piece and put together at the end, which
        takes twice the memory for a moment.

        ``schema`` reads the data as other types than those on disk, by the rules of ROOT's schema evolution: a mapping
        of the names of top-level fields to C++ types, or a `pyarrow.Schema`. It takes the place of expressions and
        filters; a cut sees the fields as they are on disk. Integers and enums become other integers, a ``double`` a
        ``float``, ``T`` an optional, a set, an array or an optional a vector, and so on; the members of records are
        matched by name, those that are not on disk are zero, empty or None, and those that are not wanted are not read.

        Raises `NotFoundError` (a `KeyError`) with near names for a name or glob that no field has,
        `InvalidArgumentError` for what is no expression, with the place in it, for types and lists that do not go
        together, for a type that a field cannot be read as and for a value that does not fit its new type, with the
        entry, `CorruptError` with field, cluster, page and offset where data are damaged, `UnsupportedError` for what
        is not done yet.

        >>> import tupelo
        >>> with tupelo.recreate("arrays.root") as file:
        ...     file["Events"] = {"x": [1.5, 2.5], "y": [[1], [2, 3]]}
        >>> ntuple = tupelo.open("arrays.root:Events")
        >>> ntuple.arrays(library="np")["x"]
        array([1.5, 2.5])
        >>> ntuple.arrays(["x", "sum(y) * k"], cut="x > 2", aliases={"k": "x + 0.5"}).tolist()
        [{'x': 2.5, 'sum(y) * k': 15.0}]
        >>> ntuple.arrays("y", library="arrow")["y"].to_pylist()
        [[1], [2, 3]]
        >>> print(ntuple.arrays(schema={"y": "ROOT::RVec<short>", "x": "std::optional<float>"}).type)
        2 * {y: var * int16, x: ?float32}
        >>> ntuple.arrays("x +")
        Traceback (most recent call last):
        tupelo.errors.InvalidArgumentError: expression 'x +': a value is missing at its end
        """
        chosen = complete("arrays", options, ReadOptions)
        library, how = chosen["library"], chosen["how"]
        other = None if library == "ak" else library
        which = {"how": how, "library": other, "cut": cut, "aliases": chosen["aliases"], "schema": schema}
        _virtual.check(access_log, virtual, **which, progress=progress or None)
        style = Style(chosen["ak_add_doc"])
        request = self._request(expressions, cut, chosen, schema)
        if virtual:
            arrays = _virtual.virtual_arrays(self._core, request, style, access_log)
            return arrays[request.order] if request.order else arrays
        batch, entries = self._whole(request, progress)
        return hand_out(request.ordered(batch), library, entries, style, how, is_kept=self._is_kept)

    @takes(ReadOptions)
    def iterate(
        self,
        expressions: str | Iterable[str] | None = None,
        cut: str | None = None,
        *,
        step_size: SupportsIndex | str = DEFAULT_STEP,
        report: bool = False,
        binary_strings: bool = False,
        schema: Mapping[str, Any] | pa.Schema | None = None,
        progress: Progress = None,
        **options: "Unpack[ReadOptions]",
    ) -> Iterator[Any]:
        """Reads the same as `arrays`, piece by piece.

        ``step_size`` is a number of entries, or a size in memory such as ``"100 MiB"`` (the default); with a ``cut``, a
        piece has what is left of so many, which may be nothing. In a loop, no more than two pieces of 64 MiB or more
        are in memory at once: the last one, and the next. Of smaller pieces one more is decoded ahead. With ``report``
        each piece comes with a `Report` of where it is from. With ``binary_strings`` strings come as bytes, which is
        needed where some are not UTF-8: all pieces have the same type. All else is as in `arrays`.

        ``progress=True`` shows a bar (rich's or tqdm's, where one is installed) while the pieces are asked for, on the
        standard error stream, if that is a terminal. A function is told how many entries are done, and of how many: 0
        with the first piece, all of them behind the last one. Bars of rich and tqdm that are there already will do too.

        >>> import tupelo
        >>> with tupelo.recreate("iterate.root") as file:
        ...     file["Events"] = {"x": [1, 2, 3, 4, 5]}
        >>> for piece in tupelo.open("iterate.root:Events").iterate(step_size=2, library="np"):
        ...     print(piece["x"])
        [1 2]
        [3 4]
        [5]
        """
        # Not a generator itself, so that what is wrong is said at once.
        chosen = complete("iterate", options, ReadOptions)
        library, how, style = chosen["library"], chosen["how"], Style(chosen["ak_add_doc"])
        request = self._request(expressions, cut, chosen, schema)
        request.binary_strings = binary_strings
        batches = self._batches(request, step_size, progress)

        def pieces() -> Iterator[Any]:
            for start, stop, batch, entries in batches:
                piece = hand_out(request.ordered(batch), library, entries, style, how, is_kept=self._is_kept)
                yield (piece, Report(start, stop, self.file_path, self.object_path)) if report else piece

        return pieces()

    @takes(ArrayOptions)
    def take(
        self,
        entries: Iterable[SupportsIndex],
        expressions: str | Iterable[str] | None = None,
        **options: "Unpack[ArrayOptions]",
    ) -> Any:
        """Reads single entries, in the order given, which may repeat them; -1 is the last one.

        Only the pages that hold them are read. ``expressions``, ``aliases``, filters and ``library`` are those of
        `arrays`.

        Raises `InvalidArgumentError` for an entry that is not there, and what `arrays` raises.

        >>> import tupelo
        >>> with tupelo.recreate("take.root") as file:
        ...     file["Events"] = {"x": [1, 2, 3, 4, 5]}
        >>> tupelo.open("take.root:Events").take([3, 0, -1], library="np")["x"]
        array([4, 1, 5])
        """
        chosen = complete("take", options, ArrayOptions)
        request = self._request(expressions, None, chosen)
        numbers = _select.single_entries(entries, self.num_entries)
        batch = request.ordered(self._core.take(request, pa.array(numbers, pa.uint64())))
        style = Style(chosen["ak_add_doc"])
        return hand_out(batch, chosen["library"], numbers, style, chosen["how"], is_kept=self._is_kept)

    @takes(SelectOptions)
    def stream(
        self,
        expressions: str | Iterable[str] | None = None,
        cut: str | None = None,
        *,
        entry_start: SupportsIndex | None = None,
        entry_stop: SupportsIndex | None = None,
        binary_strings: bool = False,
        **options: "Unpack[SelectOptions]",
    ) -> Stream:
        """What `arrays` reads as a stream of Arrow batches, for whatever takes one.

        An ntuple is such a stream itself, of all its fields: DuckDB, for instance, reads all of them whatever its query
        needs, and refuses those that it cannot hold. Of this one it reads what was chosen here, and the ``cut`` leaves
        out pages. Arguments are those of `arrays`, and ``binary_strings`` is that of `iterate`.

        Raises what `arrays` does; what is found while reading comes, as it is, from who reads.

        >>> import duckdb, tupelo
        >>> with tupelo.recreate("stream.root") as file:
        ...     file["Events"] = {"pt": [31.5, 7.25, 12.0], "run": [1, 1, 2], "charge": [1, -1, 1]}
        >>> events = tupelo.open("stream.root:Events").stream(["run", "pt"], "charge > 0")
        >>> duckdb.sql("select run, sum(pt) from events group by run order by run").fetchall()
        [(1, 31.5), (2, 12.0)]
        """
        chosen = complete("stream", options, SelectOptions)
        request = self._request(expressions, cut, {**chosen, "entry_start": entry_start, "entry_stop": entry_stop})
        request.binary_strings = binary_strings
        return Stream(self._core, request)

    def scan(
        self,
        names: str | Iterable[str] | None = None,
        *,
        entry_start: SupportsIndex | None = None,
        entry_stop: SupportsIndex | None = None,
        filter_name: Filter = None,
        filter_typename: Filter = None,
        binary_strings: bool = False,
    ) -> Any:
        """A `polars.LazyFrame` of the entries, which reads what a query needs, and when it is collected.

        Only the columns of the query are read, and those of its predicates first: of the others, only pages with
        entries that survive. Arguments are those of `iterate`; without names, all fields are there to be asked for.

        Raises `ImportError` where polars is not installed, `UnsupportedError` for fields that polars cannot hold; what
        `arrays` raises comes, as it is, where the query is collected.

        >>> import polars, tupelo
        >>> with tupelo.recreate("scan.root") as file:
        ...     file["Events"] = {"x": [1, 2, 3, 4], "y": [[1.5], [], [2.5, 3.5], []]}
        >>> frame = tupelo.open("scan.root:Events").scan()
        >>> frame.filter(polars.col("x") > 2).select("y").collect().rows()
        [([2.5, 3.5],), ([],)]
        """
        chosen = {"filter_name": filter_name, "filter_typename": filter_typename}
        request = self._request(names, None, {**chosen, "entry_start": entry_start, "entry_stop": entry_stop})
        _polars.check_fields(request)
        request.binary_strings = binary_strings
        return _polars.scan(self, request)

    def hist(
        self,
        *expressions: str,
        bins: Any = _hist.DEFAULT_BINS,
        range: Any = None,
        cut: str | None = None,
        weight: str | None = None,
        aliases: Mapping[str, str] | None = None,
        entry_start: SupportsIndex | None = None,
        entry_stop: SupportsIndex | None = None,
        step_size: SupportsIndex | str = _hist.DEFAULT_STEP,
        progress: Progress = None,
    ) -> Any:
        """Fills a histogram with one axis for each expression, without holding the data: they are read as by `iterate`.

        What comes is a `hist.Hist` where hist is installed, else a `boost_histogram.Histogram`: both print themselves,
        and speak UHI, so that mplhep and others draw them. With a weight, bins have values and variances.

        ``bins`` is for each axis a number of bins, their edges, or an axis of boost-histogram or hist; several axes
        take one number for all, or a list with one of these for each. ``range`` is a pair of the lower and the upper
        edge, or for several axes a list of pairs. Without it the data are read once more before, for the smallest and
        the largest of their finite values. As always in boost-histogram, bins do not contain their upper edge, what
        lies outside is counted in the bins beside (``flow=True``), and NaN counts as too large. Several threads fill at
        the same time: counts are the same with any number of them, sums of weights but for rounding.

        Each item of a collection is one value. Collections beside each other must be of equal lengths in each entry;
        what has one value for each entry, such as a weight, counts for every item. What is missing on one axis, or has
        no weight, is left out. ``cut`` keeps entries, ``aliases`` are names of expressions to be used in expressions,
        and ``progress`` is that of `iterate`, of both readings together.

        Raises `ImportError` where neither hist nor boost-histogram is installed, `InvalidArgumentError` for bins and
        ranges that are none, for collections of different lengths, and for what is no number, and what `iterate`
        raises.

        >>> import tupelo
        >>> with tupelo.recreate("hist.root") as file:
        ...     file["Events"] = {"pt": [[31.5, 7.25], [], [12.0]], "weight": [1.0, 1.0, 0.5]}
        >>> ntuple = tupelo.open("hist.root:Events")
        >>> ntuple.hist("pt", bins=4, range=(0, 40)).values().tolist()
        [1.0, 1.0, 0.0, 1.0]
        >>> ntuple.hist("pt", bins=[0, 10, 50], weight="weight").values().tolist()
        [1.0, 1.5]
        """
        start, stop = _select.entry_range(entry_start, entry_stop, self.num_entries)
        reading = _hist.Reading(self, cut, aliases, start, stop, step_size)
        return _hist.fill(reading, expressions, bins, range, weight, progress)

    def with_columns(self, columns: Mapping[str, Any] | None = None, **unknown: object) -> NtupleWithColumns:
        """The same ntuple with more columns: ``columns`` maps names to expressions, or to values for all entries.

        Expressions are written as for `arrays`, and may use the names of other columns. Values are all that
        `NtupleWriter.extend` takes as a column: NumPy and Awkward arrays, jagged ones and records too, lists, Arrow
        arrays, pandas series. Nothing is computed or written now; `NtupleWithColumns.write` writes a file of the fields
        and the columns, entries in batches.

        Raises `InvalidArgumentError` for names that the ntuple or its other columns have already, for values of which
        there are not as many as entries, and for expressions with errors.

        >>> import numpy as np, tupelo
        >>> with tupelo.recreate("with_columns.root") as file:
        ...     file["Events"] = {"pt": [[31.5, 7.25], [], [12.0]], "run": [1, 1, 2]}
        >>> ntuple = tupelo.open("with_columns.root:Events")
        >>> scored = ntuple.with_columns({"score": np.array([0.1, 0.9, 0.7]), "ht": "sum(pt)"})
        >>> scored.arrays(["run", "score"], cut="score > 0.5").tolist()
        [{'run': 1, 'score': 0.9}, {'run': 2, 'score': 0.7}]
        >>> scored.write("scored.root")
        3
        >>> tupelo.open("scored.root:Events").keys()
        ['pt', 'run', 'score', 'ht']
        """
        return NtupleWithColumns(self, Columns().more(columns, self, unknown))

    def copy(
        self,
        path: str | os.PathLike[str],
        cut: str | None = None,
        *,
        fields: str | Iterable[str] | None = None,
        name: str | None = None,
        aliases: Mapping[str, str] | None = None,
        entry_start: SupportsIndex | None = None,
        entry_stop: SupportsIndex | None = None,
        progress: Progress = None,
        **options: Any,
    ) -> int:
        """Writes fields and entries of the ntuple as a new file, and gives the number of entries in it: a skim.

        ``cut``, ``aliases`` and the range of entries choose entries as in `arrays`; ``fields`` are dotted paths and
        globs. Entries are read and written in batches of a few MiB, whatever the size of the file. C++ types,
        descriptions, encodings, projected fields, metadata and attribute sets go along; what attributes say is cut to
        the entries that are kept. The ntuple has the same path in the new file, or is called ``name``. ``options`` are
        those of `recreate`, and ``description``, ``encodings`` and ``compressions`` as for `WritableFile.mkrntuple`. A
        file that exists is replaced when the new one is complete. ``progress`` is that of `iterate`.

        Raises `InvalidArgumentError` for the file that is read, for options that are none and for expressions as fields
        (`with_columns` names them), and what `arrays` and `recreate` raise; a file that exists then stays as it is.

        >>> import tupelo
        >>> with tupelo.recreate("copy.root") as file:
        ...     file["Events"] = {"pt": [[31.5, 7.25], [], [12.0]], "run": [1, 1, 2], "other": [1, 2, 3]}
        >>> events = tupelo.open("copy.root:Events")
        >>> events.copy("skim.root", cut="any(pt > 10)", fields=["pt", "run"], compression="lz4")
        2
        >>> tupelo.open("skim.root:Events").arrays().tolist()
        [{'pt': [31.5, 7.25], 'run': 1}, {'pt': [12.0], 'run': 2}]
        """
        self._check_is_cut(cut, aliases)
        chosen = {"aliases": aliases, "entry_start": entry_start, "entry_stop": entry_stop}
        request = self._request(fields, cut, chosen)
        return copy(self._core, request, path, self._origin.absolute_path, name, options, progress)

    def _check_is_cut(self, cut: object, aliases: Mapping[str, str] | None) -> None:
        """Raises `InvalidArgumentError` for a cut that names fields: `arrays` has these as its first argument."""
        hint = f"the second argument of copy() is the cut; fields are chosen by fields={short(cut)}"
        if isinstance(cut, list | tuple):
            raise InvalidArgumentError(f"{short(cut)} is a list, not an expression: {hint}")
        computed = {name for name, _ in _select.aliases(aliases)}
        if self._columns is not None:
            computed.update(self._columns.names)
        if not isinstance(cut, str) or cut in computed:
            return
        if cut in self._by_path:
            type_name = self._fields[self._by_path[cut]][3]
            if "bool" in type_name:
                return
            raise InvalidArgumentError(f"{short(cut)} is a field of type {type_name}, not a condition: {hint}")
        try:
            is_expression = _select.Request.is_expression(cut, computed, self._by_path)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{error}; {hint}") from None
        if not is_expression and _select.is_glob(cut):
            raise InvalidArgumentError(f"{short(cut)} is a glob, not an expression: {hint}")

    def _repr_html_(self) -> str:
        return _html.of_ntuple(self)

    def _whole(self, request: _select.Request, progress: Progress = None) -> tuple[Any, Any]:
        """What is asked for as one `pyarrow.RecordBatch`, and the numbers of its entries."""
        if pieces := [] if _progress.is_silent(progress) else list(self._batches(request, DEFAULT_STEP, progress)):
            _, _, batches, entries = zip(*pieces, strict=True)
            return _arrow.one_batch(list(batches)), np.concatenate(entries)
        if request.cut is None:
            return self._core.read(request), range(request.entry_start, request.entry_stop)
        return _numbered(self._core.read(_with_numbers(request)))

    def _stream_batch(self, request: _select.Request) -> tuple[Any, Any]:
        """The request as a `pyarrow.RecordBatch` whose type does not depend on the entries, and their numbers."""
        if request.cut is None:
            batch = request.read_as_stream(self._core)
            return request.ordered(batch), range(request.entry_start, request.entry_stop)
        batch, numbers = _numbered(_with_numbers(request).read_as_stream(self._core))
        return request.ordered(batch), numbers

    def _batches(
        self, request: _select.Request, step_size: SupportsIndex | str, progress: Progress = None
    ) -> Iterator[tuple[int, int, Any, Any]]:
        """What is asked for, piece by piece: its range, the `pyarrow.RecordBatch`, and the numbers of its entries."""
        size = _select.step(step_size)
        step_bytes = parse_bytes(size) if isinstance(size, str) else None
        step_entries = size if isinstance(size, int) else 1
        is_cut = request.cut is not None
        batches = self._core.batches(_with_numbers(request) if is_cut else request, step_entries, step_bytes)
        return (
            (start, stop, *(_numbered(batch) if is_cut else (batch, range(start, stop))))
            for start, stop, batch in _progress.steps(batches, progress, request.entry_start, request.entry_stop)
        )

    def __arrow_c_schema__(self) -> object:
        return self.arrow_schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """All entries as a stream of Arrow batches, decoded while they are asked for."""
        return self.stream().__arrow_c_stream__(requested_schema)

    def with_rules(self, rules: ReadRule | Iterable[ReadRule]) -> "Ntuple":
        """The same ntuple with the members that rules compute, see `ReadRule`.

        They are fields as all others: read alone, a computed member reads the sources of its rule and nothing else.
        Rules that the ntuple has already stay; a rule for other versions of its class than those on disk does nothing.
        Where the function of a rule raises, `InvalidArgumentError` says in which ntuple, field and rule, and has what
        was raised as its ``__cause__``.

        Raises `NotFoundError` with near names for a class that is nowhere in the ntuple, and for a source that a record
        of the class does not have; `InvalidArgumentError` for rules that are not complete or compute the same member
        twice.
        """
        if isinstance(rules, str) or not isinstance(rules, Iterable | ReadRule):
            raise InvalidArgumentError(f"rules are of the class ReadRule, not {short(rules)}")
        rules = (rules,) if isinstance(rules, ReadRule) else tuple(rules)
        for rule in rules:
            if not isinstance(rule, ReadRule):
                raise InvalidArgumentError(f"rules are of the class ReadRule, not {short(rule)}")
        core = self._core.with_rules([rule._row() for rule in rules])
        return Ntuple(core, self._origin, self._rules + rules)

    # Its life.

    def __reduce__(self) -> tuple[Any, ...]:
        origin = self._origin
        if origin.absolute_path is None:
            raise InvalidArgumentError(
                f"{origin.file_path}: ntuple '{self._path}' is read from a file object and cannot be pickled: no other "
                "process finds it; open the file by its path"
            )
        place = replace(origin, file_path=origin.absolute_path)
        return _reopen, (place, self._rules)

    # Under the hood.

    @property
    def _is_kept(self) -> bool:
        # Functions of rules may keep what they are given, and give what they keep.
        return bool(self._rules)

    def _request(
        self,
        expressions: str | Iterable[str] | None,
        cut: str | None,
        options: Mapping[str, Any],
        schema: Mapping[str, Any] | pa.Schema | None = None,
    ) -> _select.Request:
        """What the keywords of `ReadOptions` select; without ``entry_start`` and ``entry_stop``, all entries."""
        request = _select.Request(aliases=_select.aliases(options.get("aliases")), cut=_select.cut(cut))
        if self._columns is not None:
            self._columns.offer(request, with_all=expressions is None)
        filters: dict[str, Any] = {
            name: options.get(name) for name in ("filter_name", "filter_typename", "filter_field")
        }
        is_filtered = any(one is not None for one in filters.values())
        if schema is not None:
            if expressions is not None or is_filtered:
                raise InvalidArgumentError(
                    "a schema says itself which fields are read; give no expressions or filters with it"
                )
            request.schema = _schema.read_as(schema)
        elif is_filtered:
            if expressions is not None:
                raise InvalidArgumentError("fields are chosen by expressions or by filters, not by both")
            wanted = self.keys(**filters)
            if not wanted:
                raise NotFoundError(
                    f"{self.file_path}: ntuple '{self._path}': none of {len(self)} fields passes the filters"
                )
            request.patterns = [_select.literal(name) for name in wanted]
        elif expressions is not None:
            request.patterns = None
            asked = _select.texts("expressions", expressions)
            for text in asked:
                request.add(text, self._by_path)
            patterns: list[str] | None = request.patterns
            for pattern in patterns or []:
                if not _select.is_glob(pattern) and pattern not in self._by_path:
                    raise self._no_such_field(pattern)
            request.order = self._order(asked, request)
        start, stop = options.get("entry_start"), options.get("entry_stop")
        request.entry_start, request.entry_stop = _select.entry_range(start, stop, self.num_entries)
        return request

    def _order(self, asked: list[str], request: _select.Request) -> list[str]:
        """Names of the columns in the order in which they are asked for first; none where a glob says no order."""
        computed = {name for name, _ in request.computed}
        if not all(text in computed or text in self._by_path for text in asked):
            return []
        return list(dict.fromkeys(text if text in computed else self._top_name(text) for text in asked))

    def _top_name(self, path: str) -> str:
        """The name of the top-level field that a field is, or is below of."""
        index = self._by_path[path]
        while (parent := self._fields[index][1]) is not None:
            index = parent
        return self._fields[index][2]


_ENTRY = "entry"


def _with_numbers(request: _select.Request) -> _select.Request:
    """The same with a last column for `_numbered`."""
    return replace(request, entry_numbers=_ENTRY)


def _numbered(batch: Any) -> tuple[Any, Any]:
    """Takes the numbers of the entries off a batch."""
    last = batch.num_columns - 1
    # Not by its name, which a field may have too; and the number of entries must stay where no other column is left.
    columns, fields = batch.columns[:last], list(batch.schema)[:last]
    rest = pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, metadata=batch.schema.metadata))
    # Signed, as all that counts in NumPy and pandas.
    return rest, _arrow.numbers(batch.column(last)).view(np.int64)


def _reopen(origin: Origin, rules: tuple[ReadRule, ...] = ()) -> Ntuple:
    """What unpickling calls."""
    ntuple = Ntuple(origin.open(), origin)
    return ntuple.with_rules(rules) if rules else ntuple
