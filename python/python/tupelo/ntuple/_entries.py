"""Reading the entries of an open ntuple or tree."""

import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, SupportsIndex

import pyarrow as pa

from .._base.messages import short_repr
from .._base.progress import Progress
from .._from_arrow.awkward import AwkwardOptions
from .._from_arrow.libraries import to_library
from .._queries import polars
from .._queries.columns import ColumnReader
from ..errors import InvalidArgumentError, TupeloWarning
from ..fields import _select, _virtual
from ..fields._select import Filter
from ..histogram import _filling
from ..writing._copying import copy
from ._explanation import Explanation
from ._options import ArrayOptions, ReadOptions, SelectOptions, complete, takes
from ._requests import DEFAULT_STEP, Requests
from ._stream import Stream

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._queries.dataset import Dataset


_MANY_COLUMNS = 16
"""DuckDB does not pass the columns of a query to a variable that is an ntuple. With this many, a warning says so."""


class Entries(Requests):
    """The entries of an open ntuple or tree: methods that read and copy them."""

    # Properties.

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
        any characters, dots included) and computed expressions (``"Muon_pt * cos(Muon_phi)"``). A path selects
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
        batches = self._batches(self._pieces_of_files(request), step_size, progress)

        def read_batches() -> Iterator[Any]:
            for start, stop, batch, entries in batches:
                result = to_library(request.ordered(batch), library, entries, style, how, is_shared=self._shares_memory)
                yield (result, self._report(start, stop)) if report else result

        return read_batches()

    def _joined_batches(
        self, expressions: list[str], cut: str | None, options: Mapping[str, Any], how: Mapping[str, Any]
    ) -> Iterator[Any]:
        """Batches as Awkward arrays, which may span files: of small files, each costs more than its values."""
        request = self._request(expressions, cut, options)
        for one in self._batches(self._pieces(request), **how):
            yield to_library(request.ordered(one.batch), "ak", one.entries, is_shared=self._shares_memory)

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

        An ntuple is itself a stream of all its fields. This stream has only the selected fields, and the ``cut`` skips
        pages. Libraries read all of a stream; for queries that choose the columns themselves see `dataset`.
        Arguments are those of `arrays`; ``binary_strings`` is that of `iterate`.

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

    def __arrow_c_schema__(self) -> object:
        return self.stream().__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """All entries as a stream of Arrow batches, decoded on demand."""
        stream = self.stream()
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if caller.startswith("duckdb.") and len(stream.schema) >= _MANY_COLUMNS:
            text = (
                f"DuckDB reads all {len(stream.schema)} columns of a variable that is an ntuple or a tree, not only "
                "those of the query; query its dataset(), or use tupelo.sql(query, events=events)"
            )
            warnings.warn(self._about(text), TupeloWarning, stacklevel=2)
        return stream.__arrow_c_stream__(requested_schema)

    @takes(SelectOptions)
    def explain(
        self,
        expressions: str | Iterable[str] | None = None,
        cut: str | None = None,
        *,
        entry_start: SupportsIndex | None = None,
        entry_stop: SupportsIndex | None = None,
        **options: "Unpack[SelectOptions]",
    ) -> Explanation:
        """What `arrays` would read with the same arguments: pages, bytes and requests of each column.

        It is computed from metadata: no page is read, except zone maps of the fields of a cut. The entries that these
        rule out are counted. Numbers of a column are upper bounds if the pages depend on the cut or on the lengths of
        collections. Of several files, they are sums. ``tupelo explain`` prints the same.

        Raises the errors of `arrays`.

        >>> import tupelo
        >>> with tupelo.recreate("explain.root", compression=0) as file:
        ...     file["Events"] = {"run": range(1000), "x": range(1000), "y": range(1000)}
        >>> explanation = tupelo.open("explain.root:Events").explain("x", cut="run < 10")
        >>> [(column.field, column.pages, column.unpacked_bytes) for column in explanation.columns]
        [('run', 1, 8000), ('x', 1, 8000)]
        >>> print(explanation)  # doctest: +NORMALIZE_WHITESPACE
        1000 entries in 1 cluster
        FIELD  TYPE   STEP  PAGES  STORED KiB  UNPACKED KiB  REQUESTS
        run    Int64  cut       1         7.8           7.8         1
        x      Int64  read     ≤1        ≤7.8          ≤7.8        ≤1
        total               ≤2       ≤15.6         ≤15.6        ≤1
        """
        chosen = complete("explain", options, SelectOptions)
        request = self._request(expressions, cut, {**chosen, "entry_start": entry_start, "entry_stop": entry_stop})
        return Explanation.of(self._core.explain(request))

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
        polars.check_fields(request)
        request.binary_strings = binary_strings
        return polars.scan(ColumnReader(self, request, self._pieces(request)))

    @takes(SelectOptions)
    def dataset(
        self,
        expressions: str | Iterable[str] | None = None,
        cut: str | None = None,
        *,
        entry_start: SupportsIndex | None = None,
        entry_stop: SupportsIndex | None = None,
        binary_strings: bool = False,
        **options: "Unpack[SelectOptions]",
    ) -> "Dataset":
        """The same as `arrays`, as a `Dataset` of PyArrow: DuckDB, polars, DataFusion and Ibis query it with SQL or
        with their own expressions.

        A query reads only its columns. Columns of the filter that the library passes are read first; of the others,
        only pages with matching entries. Nothing is read before. Arguments are those of `stream`; computed expressions
        are columns too, named by their text or by ``aliases``.

        Raises the errors of `arrays`.

        >>> import duckdb, tupelo
        >>> with tupelo.recreate("dataset.root") as file:
        ...     file["Events"] = {"pt": [31.5, 7.25, 12.0], "run": [1, 1, 2], "charge": [1, -1, 1]}
        >>> events = tupelo.open("dataset.root:Events").dataset()
        >>> duckdb.sql("select run, sum(pt) from events where charge = 1 group by run order by run").fetchall()
        [(1, 31.5), (2, 12.0)]
        """
        # PyArrow's datasets take longer to import than most reads.
        from .._queries.dataset import Dataset

        chosen = complete("dataset", options, SelectOptions)
        request = self._request(expressions, cut, {**chosen, "entry_start": entry_start, "entry_stop": entry_stop})
        request.binary_strings = binary_strings
        return Dataset(ColumnReader(self, request, self._pieces(request), self._pieces_of_files(request)))

    def hist(
        self,
        *expressions: str | Mapping[str, Any],
        bins: Any = _filling.DEFAULT_BINS,
        range: Any = None,
        cut: str | None = None,
        weight: str | None = None,
        sample: str | None = None,
        aliases: Mapping[str, str] | None = None,
        entry_start: SupportsIndex | None = None,
        entry_stop: SupportsIndex | None = None,
        step_size: SupportsIndex | str = _filling.DEFAULT_STEP,
        progress: Progress = None,
    ) -> Any:
        """Fills a histogram with one axis for each expression, or several histograms in one pass, reading the data in
        batches like `iterate`.

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
        `iterate`. With ``sample``, bins have the mean of its values and their variance: a profile.

        Many histograms are a mapping of names to expressions, to lists of them, or to mappings with ``expressions``
        and own ``bins``, ``range``, ``cut``, ``weight`` and ``sample``; the result is a mapping of the names to
        histograms. Each expression is read and computed once. The cut of a histogram applies in addition to ``cut``.

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
        >>> both = ntuple.hist({"all": "pt", "two": {"expressions": "pt", "cut": "len(pt) > 1"}}, bins=2, range=(0, 40))
        >>> {name: histogram.values().tolist() for name, histogram in both.items()}
        {'all': [2.0, 1.0], 'two': [1.0, 1.0]}
        """
        start, stop = _select.entry_range(entry_start, entry_stop, self.num_entries)
        reading = _filling.Reading(self, cut, aliases, start, stop, step_size)
        return _filling.Booking.of(expressions, bins, range, weight, sample).fill(reading, progress)

    def copy(
        self,
        path: str | os.PathLike[str],
        cut: str | None = None,
        *,
        fields: str | Iterable[str] | None = None,
        name: str | None = None,
        rename: Mapping[str, str] | None = None,
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
        are adjusted to the selected entries. The ntuple keeps its path or gets the path ``name``. ``rename`` is a
        mapping of the names of top-level fields to names in the new ntuple. ``options`` are those of `recreate`, and
        ``description``, ``encodings`` and ``compressions`` those of `WritableFile.mkrntuple`. If none of them says how
        to store pages, the codec of the input stays, and pages of whole clusters are copied without decompressing them.
        An existing file is replaced when the new one is complete. ``progress`` is that of `iterate`.

        Raises `InvalidArgumentError` if ``path`` is the input file, for unknown options, for expressions as fields
        (name them with `Ntuple.with_columns`) and for names that two fields would have, and the errors of `arrays` and
        `recreate`; an existing file is then unchanged.

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
        return copy(self._core, request, path, self._location, self._inputs, name, rename, options, progress)

    @property
    def _inputs(self) -> list[str | None]:
        """The files that are read, by their absolute paths."""
        return [self._location.absolute_path]

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
            type_name = self._fields[self._by_path[cut]].type_name
            if "bool" in type_name:
                return
            raise InvalidArgumentError(f"{short_repr(cut)} is a field of type {type_name}, not a condition: {hint}")
        try:
            is_expression = _select.Request.is_expression(cut, computed, self._by_path)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{error}; {hint}") from None
        if not is_expression and _select.is_glob(cut):
            raise InvalidArgumentError(f"{short_repr(cut)} is a glob, not an expression: {hint}")
