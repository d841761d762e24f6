"""Reading ntuples."""

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
import pyarrow as pa

from . import _arrow, _core, _hist, _html, _polars, _progress, _schema, _select, _virtual
from ._awkward import AwkwardOptions
from ._checks import check_name
from ._libraries import to_library
from ._locations import NtupleLocation, Report
from ._messages import printable, short_repr
from ._progress import Progress
from ._read_options import ArrayOptions, ReadOptions, SelectOptions, complete, takes
from ._select import Filter
from ._sizes import as_count, parse_bytes, parse_optional_bytes
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
"""Size in memory of a batch of `Ntuple.iterate`."""
_MIRROR = "ntpl+mirror:"


class Ntuple(Fields):
    """An open ntuple: a mapping from dotted paths to fields, with methods that read entries.

    It can be shared between threads and pickled; a pickle contains its location, not its data. It has Arrow's
    ``__arrow_c_stream__``, so ``pyarrow.table(ntuple)``, ``polars.DataFrame(ntuple)``, ``pandas.DataFrame.from_arrow``
    and DuckDB read it directly.

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
    """Additional columns, for `NtupleWithColumns`."""

    def __init__(
        self, core: "_core.Table", origin: NtupleLocation, rules: tuple[ReadRule, ...] = (), *, is_quiet: bool = False
    ) -> None:
        super().__init__(core, origin.file_path)
        self._location = origin
        self._rules = rules
        self._known_warnings = len(core.warnings) if rules or is_quiet else 0
        self._warn(stacklevel=4)

    # Properties.

    @property
    def writer(self) -> str:
        """The program that wrote it, if known."""
        return self._core.writer

    @property
    def format_version(self) -> str:
        """Format version declared by the writer, for instance ``"1.0.2.0"``."""
        return self._core.format_version

    @property
    def num_clusters(self) -> int:
        """Number of clusters: groups of entries that are stored together."""
        return self._core.num_clusters

    @property
    def cluster_boundaries(self) -> Any:
        """The first entry of each non-empty cluster, followed by the number of entries: a NumPy array.

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
        """Metadata of the ntuple: strings by key; see `NtupleWriter.metadata`.

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
        """The attribute set with the name ``name``, which attaches data to ranges of entries.

        Raises `NotFoundError` (a `KeyError`) with similar names if it does not exist.
        """
        check_name(name, "an attribute set")
        core, origin = self._core, self._location

        def open_ntuple() -> Ntuple:
            set_location = replace(origin, names=(*origin.names, name))
            return Ntuple(core.attribute_set(name), set_location)

        return AttributeSet(core.attributes(name), name, open_ntuple)

    @property
    def arrow_schema(self) -> Any:
        """The `pyarrow.Schema` of all fields. The field metadata ``rntuple.type`` contain the C++ types."""
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
        """Reads fields, and computes expressions over them. The default is all fields of all entries.

        ``expressions`` are dotted paths, globs (``"Muon_pt"``, ``"Muon_*"``, ``"jets.pt"``; in a glob ``*`` matches
        within one name and ``**`` across dots) and computed expressions (``"Muon_pt * cos(Muon_phi)"``). A path selects
        everything below it; its parents are kept around it. Instead of expressions, ``filter_name``,
        ``filter_typename`` and ``filter_field`` select fields as in `keys`. Columns are returned in the order of the
        expressions; with globs or filters, fields come first in the order of the file, followed by computed columns. A
        computed column is named by its expression.

        ``entry_start`` and ``entry_stop`` select a range of entries like a slice: ``entry_start=-10`` reads the last
        ten. ``cut`` is an expression that selects the entries for which it is true. Its fields are read first; pages of
        other fields are read only if they contain selected entries. ``aliases`` is a mapping of names to expressions,
        for use in other expressions.

        Expressions use Python syntax: dotted paths of fields (in backticks if they contain other characters than
        letters, digits and ``_``), arithmetic ``+ - * / // % **``, comparisons (also ``80 < mass < 100``),
        ``run in [1, 2]`` and ``(run, event) in [(1, 15), (1, 27)]``, ``and or not`` or ``& | ~``, items ``Jet_pt[0]``,
        slices ``Jet_pt[:, :2]``, masks ``Jet_pt[Jet_eta < 2]``, and functions with the names of NumPy and Awkward
        Array, with or without ``np.`` and ``ak.``: ``sqrt(x)``, ``np.where(c, a, b)``, ``ak.sum(Jet_pt, axis=1)``.
        ``sum prod mean min max any all count argmin argmax`` reduce the innermost lists; ``len`` is the length of the
        outermost. Operations on collections work item by item and broadcast values of the entry. Integers have 64 bits;
        overflow is an error. ``min`` of an empty list, ``x[0]`` of an empty list, integer ``//`` and ``%`` by zero, and
        operations on missing values give missing values; ``is_missing(x)`` tests for them. See the page *Expressions*
        of the guide for the full list.

        ``library`` selects the type of the result:

        - ``"ak"``: one `ak.Array` of records
        - ``"np"``: a dict of NumPy arrays whose first axis is the entry: numbers of shape (n,), fixed-size arrays of
          shape (n, N), records as structured arrays, optional numbers as masked arrays, and object arrays otherwise:
          `str` for strings, one NumPy array per collection, None for missing values
        - ``"arrow"``: a `pyarrow.Table`
        - ``"pd"``: a `pandas.DataFrame` with the entry numbers as index, NumPy columns for numbers, and
          `pandas.ArrowDtype` for nested and optional columns
        - ``"pl"``: a `polars.DataFrame`; variants are not supported

        NumPy arrays and pandas columns are writable and do not share memory.

        ``how`` changes the container of the columns: the class ``dict``, ``list`` or ``tuple``, or for Awkward
        ``"zip"``, which combines lists of equal lengths into one list of records: ``Muon_pt`` and ``Muon_eta`` become
        ``Muon.pt`` and ``Muon.eta``.

        ``ak_add_doc`` adds parameters to Awkward arrays. With True, ``__doc__`` is the description of the field or the
        ntuple, if it has one. With ``{parameter: attribute}``, each field gets these parameters; an attribute is
        ``"description"``, ``"typename"`` or ``"name"``. ``{"__record__": "typename"}`` names records by their C++
        classes, which selects Awkward behaviors.

        With ``virtual`` the Awkward array is read lazily: each field is read on first use and then kept. Members of
        records are read separately. Because the type cannot depend on values, variants get an additional alternative
        for missing values. ``access_log``, a list, receives an item for each buffer that is read (field, buffer,
        entries).

        ``progress`` is that of `iterate`. The entries are then read in batches and concatenated, which temporarily
        takes twice the memory.

        ``schema`` reads fields as other types than those on disk, following ROOT's schema evolution: a mapping of names
        of top-level fields to C++ types, or a `pyarrow.Schema`. It replaces expressions and filters; a cut still uses
        the types on disk. Integers and enums become other integers, a ``double`` a ``float``, ``T`` an optional, a
        set, an array or an optional a vector, and so on. Members of records are matched by name; members that are not
        on disk are zero, empty or None, and members that are not in the schema are not read.

        Raises `NotFoundError` (a `KeyError`) with similar names for a name or glob that matches no field;
        `InvalidArgumentError` for invalid expressions (with the position), incompatible types or list lengths,
        unsupported type conversions and values that do not fit their new type (with the entry); `CorruptError` with
        field, cluster, page and offset for damaged data; `UnsupportedError` for features that are not supported.

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
        tupelo.errors.InvalidArgumentError: expression 'x +': expected a value at the end
        """
        chosen = complete("arrays", options, ReadOptions)
        library, how = chosen["library"], chosen["how"]
        other = None if library == "ak" else library
        which = {"how": how, "library": other, "cut": cut, "aliases": chosen["aliases"], "schema": schema}
        _virtual.check(access_log, virtual, **which, progress=progress or None)
        style = AwkwardOptions(chosen["ak_add_doc"])
        request = self._request(expressions, cut, chosen, schema)
        if virtual:
            arrays = _virtual.virtual_arrays(self._core, request, style, access_log)
            return arrays[request.order] if request.order else arrays
        batch, entries = self._whole(request, progress)
        return to_library(request.ordered(batch), library, entries, style, how, is_shared=self._shares_memory)

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
        """Reads the same as `arrays`, in batches.

        ``step_size`` is a number of entries, or a size in memory such as ``"100 MiB"`` (the default). With a ``cut``, a
        batch has the selected ones of so many entries, which may be none. A loop holds at most two batches of 64 MiB or
        more in memory: the current and the next one. For smaller batches one more is decoded ahead. With ``report``
        each batch is paired with a `Report` of its origin. ``binary_strings`` returns strings as bytes, which is needed
        if some are not UTF-8, because all batches have the same type. The other keywords are those of `arrays`.

        ``progress=True`` shows a progress bar (of rich or tqdm, if installed) on the standard error stream if that is a
        terminal. A function is called with the number of entries done and the total: with 0 before the first batch,
        with the total after the last one. Existing bars of rich and tqdm are accepted too.

        >>> import tupelo
        >>> with tupelo.recreate("iterate.root") as file:
        ...     file["Events"] = {"x": [1, 2, 3, 4, 5]}
        >>> for batch in tupelo.open("iterate.root:Events").iterate(step_size=2, library="np"):
        ...     print(batch["x"])
        [1 2]
        [3 4]
        [5]
        """
        # Not a generator itself, so that errors are raised immediately.
        chosen = complete("iterate", options, ReadOptions)
        library, how, style = chosen["library"], chosen["how"], AwkwardOptions(chosen["ak_add_doc"])
        request = self._request(expressions, cut, chosen, schema)
        request.binary_strings = binary_strings
        batches = self._batches(request, step_size, progress)

        def read_batches() -> Iterator[Any]:
            for start, stop, batch, entries in batches:
                result = to_library(request.ordered(batch), library, entries, style, how, is_shared=self._shares_memory)
                yield (result, Report(start, stop, self.file_path, self.object_path)) if report else result

        return read_batches()

    @takes(ArrayOptions)
    def take(
        self,
        entries: Iterable[SupportsIndex],
        expressions: str | Iterable[str] | None = None,
        **options: "Unpack[ArrayOptions]",
    ) -> Any:
        """Reads single entries in the given order, with repetitions; -1 is the last entry.

        Only the pages that contain them are read. ``expressions`` and the keywords are those of `arrays`.

        Raises `InvalidArgumentError` for entries out of range, and the errors of `arrays`.

        >>> import tupelo
        >>> with tupelo.recreate("take.root") as file:
        ...     file["Events"] = {"x": [1, 2, 3, 4, 5]}
        >>> tupelo.open("take.root:Events").take([3, 0, -1], library="np")["x"]
        array([4, 1, 5])
        """
        chosen = complete("take", options, ArrayOptions)
        request = self._request(expressions, None, chosen)
        numbers = _select.entry_numbers_of(entries, self.num_entries)
        batch = request.ordered(self._warned(self._core.take(request, pa.array(numbers, pa.uint64()))))
        style = AwkwardOptions(chosen["ak_add_doc"])
        return to_library(batch, chosen["library"], numbers, style, chosen["how"], is_shared=self._shares_memory)

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
        """Reads the same as `arrays`, as a stream of Arrow batches.

        An ntuple is itself a stream of all its fields: DuckDB, for instance, reads all of them whatever the query
        needs, and fails for types that it does not support. This stream has only the selected fields, and the ``cut``
        skips pages. Arguments are those of `arrays`; ``binary_strings`` is that of `iterate`.

        Raises the errors of `arrays`. Errors while reading are raised by the consumer of the stream.

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
        """A `polars.LazyFrame` of the entries; collecting a query reads only what it needs.

        Only the columns of the query are read. Columns of its predicates are read first; of the others, only pages with
        matching entries. Arguments are those of `iterate`; without ``names``, all fields are available.

        Raises `ImportError` if polars is not installed and `UnsupportedError` for types that polars does not support.
        Collecting a query raises the errors of `arrays`.

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
        """Fills a histogram with one axis for each expression, reading the data in batches like `iterate`.

        Returns a `hist.Hist` if hist is installed, else a `boost_histogram.Histogram`. Both have a text representation
        and implement UHI, so mplhep and other libraries can plot them. With a ``weight``, bins have values and
        variances.

        ``bins`` is a number of bins, their edges, or an axis of boost-histogram or hist; for several axes, one number
        for all or a list with one of these for each. ``range`` is a pair of lower and upper edge, or for several axes a
        list of pairs. Without a range, the data are read twice, first to find the smallest and the largest finite
        value. As in boost-histogram, bins exclude their upper edge, values outside count as underflow or overflow
        (``flow=True``), and NaN as overflow. Several threads fill in parallel: counts do not depend on their number,
        sums of weights only by rounding.

        Each item of a collection is one value. Collections must have equal lengths in each entry; a value per entry,
        such as a weight, applies to every item. Values that are missing on one axis, or have no weight, are skipped.
        ``cut``, ``aliases`` and the range of entries are those of `arrays`, ``step_size`` and ``progress`` those of
        `iterate`.

        Raises `ImportError` if neither hist nor boost-histogram is installed, `InvalidArgumentError` for invalid bins
        and ranges, collections of different lengths and values that are not numbers, and the errors of `iterate`.

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
        return _hist.fill_histogram(reading, expressions, bins, range, weight, progress)

    def with_columns(self, columns: Mapping[str, Any] | None = None, **unknown: object) -> NtupleWithColumns:
        """Returns the ntuple with additional columns: ``columns`` maps names to expressions, or to values for all
        entries.

        Expressions are those of `arrays` and may use the names of other columns. Values are anything that
        `NtupleWriter.extend` accepts as a column: NumPy and Awkward arrays (also jagged ones and records), lists, Arrow
        arrays, pandas series. Nothing is computed or written yet; `NtupleWithColumns.write` writes a file with all
        fields and columns in batches.

        Raises `InvalidArgumentError` for duplicate names, for a wrong number of values and for invalid expressions.

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
        """Writes selected fields and entries to a new file (a skim) and returns the number of entries in it.

        ``cut``, ``aliases``, ``entry_start`` and ``entry_stop`` select entries as in `arrays`; ``fields`` are dotted
        paths and globs. Entries are copied in batches of a few MiB, whatever the size of the file. C++ types,
        descriptions, encodings, projected fields, metadata and attribute sets are copied too; ranges of attribute sets
        are adjusted to the selected entries. The ntuple keeps its path or gets the path ``name``. ``options`` are those
        of `recreate`, and ``description``, ``encodings`` and ``compressions`` those of `WritableFile.mkrntuple`. An
        existing file is replaced when the new one is complete. ``progress`` is that of `iterate`.

        Raises `InvalidArgumentError` if ``path`` is the input file, for unknown options and for expressions as fields
        (name them with `with_columns`), and the errors of `arrays` and `recreate`; an existing file is then unchanged.

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
        return copy(self._core, request, path, self._location, name, options, progress)

    def _check_is_cut(self, cut: object, aliases: Mapping[str, str] | None) -> None:
        """Raises `InvalidArgumentError` for a cut that names fields, as the first argument of `arrays` does."""
        hint = f"the second argument of copy() is the cut; select fields with fields={short_repr(cut)}"
        if isinstance(cut, list | tuple):
            raise InvalidArgumentError(f"{short_repr(cut)} is a list, not an expression: {hint}")
        computed = {name for name, _ in _select.aliases(aliases)}
        if self._columns is not None:
            computed.update(self._columns.names)
        if not isinstance(cut, str) or cut in computed:
            return
        if cut in self._by_path:
            type_name = self._fields[self._by_path[cut]][3]
            if "bool" in type_name:
                return
            raise InvalidArgumentError(f"{short_repr(cut)} is a field of type {type_name}, not a condition: {hint}")
        try:
            is_expression = _select.Request.is_expression(cut, computed, self._by_path)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{error}; {hint}") from None
        if not is_expression and _select.is_glob(cut):
            raise InvalidArgumentError(f"{short_repr(cut)} is a glob, not an expression: {hint}")

    def _repr_html_(self) -> str:
        return _html.of_ntuple(self)

    def _warn(self, stacklevel: int) -> None:
        """Issues the warnings that are new."""
        texts = self._core.warnings
        for text in texts[self._known_warnings :]:
            about = printable(f"{self._location.file_path}: {self._class.lower()} '{self._core.path}': {text}")
            warnings.warn(about, TupeloWarning, stacklevel=stacklevel)
        self._known_warnings = len(texts)

    def _warned(self, batch: Any) -> Any:
        """What was read, after warnings of stores of a mirror that were passed over."""
        if self._location.file_path.startswith(_MIRROR):
            self._warn(stacklevel=5)
        return batch

    def _whole(self, request: _select.Request, progress: Progress = None) -> tuple[Any, Any]:
        """The result of a request as one `pyarrow.RecordBatch`, and its entry numbers."""
        if parts := [] if _progress.is_silent(progress) else list(self._batches(request, DEFAULT_STEP, progress)):
            _, _, batches, entries = zip(*parts, strict=True)
            return _arrow.combine_batches(list(batches)), np.concatenate(entries)
        if request.cut is None:
            return self._warned(self._core.read(request)), range(request.entry_start, request.entry_stop)
        return _split_entry_numbers(self._warned(self._core.read(_with_entry_numbers(request))))

    def _stream_batch(self, request: _select.Request) -> tuple[Any, Any]:
        """The result as a `pyarrow.RecordBatch` whose schema does not depend on the values, and its entry numbers."""
        if request.cut is None:
            batch = self._warned(request.read_as_stream(self._core))
            return request.ordered(batch), range(request.entry_start, request.entry_stop)
        batch = self._warned(_with_entry_numbers(request).read_as_stream(self._core))
        batch, numbers = _split_entry_numbers(batch)
        return request.ordered(batch), numbers

    def _batches(
        self, request: _select.Request, step_size: SupportsIndex | str, progress: Progress = None
    ) -> Iterator[tuple[int, int, Any, Any]]:
        """The result in batches: range of entries, `pyarrow.RecordBatch` and entry numbers."""
        size = _select.check_step_size(step_size)
        step_bytes = parse_bytes(size) if isinstance(size, str) else None
        step_entries = size if isinstance(size, int) else 1
        is_cut = request.cut is not None
        batches = self._core.batches(_with_entry_numbers(request) if is_cut else request, step_entries, step_bytes)
        steps = _progress.steps(batches, progress, request.entry_start, request.entry_stop)
        steps = ((start, stop, self._warned(batch)) for start, stop, batch in steps)
        return (
            (start, stop, *(_split_entry_numbers(batch) if is_cut else (batch, range(start, stop))))
            for start, stop, batch in steps
        )

    def __arrow_c_schema__(self) -> object:
        return self.arrow_schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """All entries as a stream of Arrow batches, decoded on demand."""
        return self.stream().__arrow_c_stream__(requested_schema)

    def with_rules(self, rules: ReadRule | Iterable[ReadRule]) -> "Ntuple":
        """Returns the ntuple with the members that ``rules`` compute; see `ReadRule`.

        Computed members behave like other fields: reading one reads only the sources of its rule. Existing rules of the
        ntuple stay in effect; a rule for other versions of its class than those on disk has no effect. If the function
        of a rule raises an exception, `InvalidArgumentError` names ntuple, field and rule, with the exception as its
        ``__cause__``.

        Raises `NotFoundError` with similar names for a class that the ntuple does not contain and for unknown sources,
        and `InvalidArgumentError` for incomplete rules and for members that two rules compute.
        """
        if isinstance(rules, str) or not isinstance(rules, Iterable | ReadRule):
            raise InvalidArgumentError(f"expected rules of the class ReadRule, not {short_repr(rules)}")
        rules = (rules,) if isinstance(rules, ReadRule) else tuple(rules)
        for rule in rules:
            if not isinstance(rule, ReadRule):
                raise InvalidArgumentError(f"expected rules of the class ReadRule, not {short_repr(rule)}")
        core = self._core.with_rules([rule._to_core() for rule in rules])
        return as_table(core, self._location, self._rules + rules)

    def __reduce__(self) -> tuple[Any, ...]:
        origin = self._location
        if origin.absolute_path is None:
            raise InvalidArgumentError(
                f"{origin.file_path}: ntuple '{self._path}' is read from a file object and cannot be pickled; "
                "open the file by its path"
            )
        place = replace(origin, file_path=_core.display_name(origin.absolute_path))
        return _reopen, (place, self._rules)

    # Internals.

    @property
    def _shares_memory(self) -> bool:
        # Functions of rules may keep references to their arguments and results.
        return bool(self._rules)

    def _request(
        self,
        expressions: str | Iterable[str] | None,
        cut: str | None,
        options: Mapping[str, Any],
        schema: Mapping[str, Any] | pa.Schema | None = None,
    ) -> _select.Request:
        """The request for the keywords of `ReadOptions`; the default range is all entries."""
        request = _select.Request(aliases=_select.aliases(options.get("aliases")), cut=_select.cut(cut))
        if self._columns is not None:
            self._columns.offer(request, with_all=expressions is None)
        filters: dict[str, Any] = {
            name: options.get(name) for name in ("filter_name", "filter_typename", "filter_field")
        }
        is_filtered = any(one is not None for one in filters.values())
        if schema is not None:
            if expressions is not None or is_filtered:
                raise InvalidArgumentError("a schema selects the fields; remove the expressions or filters")
            request.schema = _schema.target_schema(schema)
        elif is_filtered:
            if expressions is not None:
                raise InvalidArgumentError("give expressions or filters, not both")
            wanted = self.keys(**filters)
            if not wanted:
                raise NotFoundError(
                    f"{self.file_path}: ntuple '{self._path}': none of {len(self)} fields matches the filters"
                )
            request.patterns = [_select.escape_glob(name) for name in wanted]
        elif expressions is not None:
            request.patterns = None
            asked = [self._path_of(text) for text in _select.string_list("expressions", expressions)]
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
        """Names of the columns in the requested order; empty if a glob leaves the order open."""
        computed = {name for name, _ in request.computed}
        if not all(text in computed or text in self._by_path for text in asked):
            return []
        return list(dict.fromkeys(text if text in computed else self._top_level_name(text) for text in asked))

    def _top_level_name(self, path: str) -> str:
        """The name of the top-level field that contains a field."""
        index = self._by_path[path]
        while (parent := self._fields[index][1]) is not None:
            index = parent
        return self._fields[index][2]


_ENTRY = "entry"


def _with_entry_numbers(request: _select.Request) -> _select.Request:
    """Adds a column of entry numbers, for `_split_entry_numbers`."""
    return replace(request, entry_numbers=_ENTRY)


def _split_entry_numbers(batch: Any) -> tuple[Any, Any]:
    """Splits the entry numbers off a batch."""
    last = batch.num_columns - 1
    # Not by name, which a field may share. The number of entries must survive even without other columns.
    columns, fields = batch.columns[:last], list(batch.schema)[:last]
    rest = pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, metadata=batch.schema.metadata))
    # Signed, like indices in NumPy and pandas.
    return rest, _arrow.to_numbers(batch.column(last)).view(np.int64)


class Tree(Ntuple):
    """An open ``TTree``: it is read by the same methods as an ntuple.

    Branches are fields. An object or a collection that is split over branches is one field with subfields again, so
    that ``tree["hits.pos.x"]`` is the branch of that name. Arrays with a counter (``x[n]/F``) and ``std::vector`` are
    lists; `unreadable` has the branches that cannot be read.

    >>> import tupelo, uproot
    >>> with uproot.recreate("tree.root") as file:
    ...     tree = file.mktree("Events", {"pt": "float64", "run": "int64"})
    ...     tree.extend({"pt": [31.5, 12.0], "run": [1, 2]})
    >>> tree = tupelo.open("tree.root:Events")
    >>> tree
    <tupelo.Tree 'Events' (2 fields, 2 entries)>
    >>> tree.arrays(["pt"], cut="run == 2").tolist()
    [{'pt': 12.0}]
    """

    _class = "Tree"

    @property
    def _kind(self) -> str:
        return self.class_name

    @property
    def class_name(self) -> str:
        """C++ class: ``"TTree"``, ``"TNtuple"`` or ``"TNtupleD"``."""
        return self._core.class_name

    @property
    def friends(self) -> list[tuple[str, str, str]]:
        """Friend trees: alias, file (empty for the same file) and name of each. They are not joined."""
        return [(alias, file, name) for alias, file, name in self._about[0]]

    @property
    def index(self) -> tuple[str, str] | None:
        """The expressions of the major and minor number of the index, or None if the tree has no index."""
        found = self._about[1]
        return None if found is None else (found[0], found[1])

    @property
    def aliases(self) -> dict[str, str]:
        """Aliases that are stored with the tree: expressions by name. Pass them as ``aliases`` to use them."""
        return dict(self._about[2])

    @property
    def unreadable(self) -> dict[str, str]:
        """Branches that cannot be read: the reason by path, whose names are joined by slashes."""
        return dict(self._about[3])

    @property
    def branches(self) -> dict[str, str]:
        """Branches with values: the path of the field by that of the branch, whose names are joined by slashes."""
        found: dict[str, str] = {}
        for branch, field in self._about[4]:
            # As in ROOT, the first of two branches with the same name.
            found.setdefault(branch, field)
        return found

    def with_cache(self, size: SupportsIndex | str | None = None, *, learn_entries: SupportsIndex = 0) -> "Tree":
        """Returns the tree with another way of fetching baskets, in the words of ROOT's ``TTreeCache``.

        ``size`` limits the bytes of the baskets that one vector read fetches, as a number or a string such as
        ``"30 MB"``; with 0 each basket is a read of its own. By default, baskets of a remote file are fetched up to
        16 MiB at once, and those of a local file by the threads that decode them. The baskets of the first
        ``learn_entries`` entries are fetched one by one, as ROOT does with 100 entries while it learns which branches
        are used. The default is 0, because a request names its fields.

        Raises `InvalidArgumentError` for other sizes and negative numbers.

        >>> import tupelo, uproot
        >>> with uproot.recreate("cached.root") as file:
        ...     file.mktree("Events", {"x": "float64", "y": "float64"}).extend({"x": [1.5], "y": [2.5]})
        >>> tree = tupelo.open("cached.root:Events", metrics=True)
        >>> requests = []
        >>> for size in 0, "30 MB":
        ...     before = tree.metrics.requests
        ...     _ = tree.with_cache(size).arrays()
        ...     requests.append(tree.metrics.requests - before)
        >>> requests
        [2, 1]
        """
        cache = parse_optional_bytes("size", size), as_count("learn_entries", "entries", learn_entries)
        place = replace(self._location, tree_cache=cache)
        return Tree(self._core.with_tree_cache(*cache), place, self._rules, is_quiet=True)

    @property
    def _about(self) -> Any:
        return self._core.tree()


def as_table(
    core: "_core.Table", origin: NtupleLocation, rules: tuple[ReadRule, ...] = (), *, is_quiet: bool = False
) -> Ntuple:
    """An `Ntuple` or a `Tree`."""
    return (Ntuple if core.tree() is None else Tree)(core, origin, rules, is_quiet=is_quiet)


def _reopen(origin: NtupleLocation, rules: tuple[ReadRule, ...] = ()) -> Ntuple:
    """Reopens an unpickled ntuple."""
    ntuple = as_table(origin.open(), origin)
    return ntuple.with_rules(rules) if rules else ntuple
