"""Ntuples that are read, and their fields."""

import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, SupportsIndex, TextIO

import pyarrow as pa

from . import _arrow, _core, _cpp, _objects, _select
from ._libraries import Library, hand_out
from ._select import Filter
from ._sizes import parse_bytes
from .attributes import AttributeSet
from .errors import InvalidArgumentError, NotFoundError, TupeloWarning
from .rules import ReadRule

DEFAULT_STEP = "100 MB"
"""Size in memory of what `Ntuple.iterate` gives at once."""


@dataclass(frozen=True)
class Report:
    """Where a piece of `Ntuple.iterate` comes from: entries ``start`` to ``stop`` (not included)."""

    start: int
    stop: int
    file_path: str
    object_path: str


@dataclass(frozen=True)
class Origin:
    """How an ntuple is found again: what is pickled of it."""

    file_path: str
    names: tuple[str, ...]
    """Its path in the file, then, for an attribute set, the set's name."""
    page_checksums: bool
    memory_budget: int | None

    def open(self) -> "_core.Ntuple":
        """Opens it, in whatever process this is."""
        core = _core.File(self.file_path, self.page_checksums, self.memory_budget).ntuple(self.names[0])
        for name in self.names[1:]:
            core = core.attribute_set(name)
        return core


class Field:
    """One field of an ntuple: what it is, and a way to read it."""

    def __init__(self, ntuple: "Ntuple", index: int) -> None:
        self._ntuple = ntuple
        self._index = index
        self.path, self._parent, self.name, self.typename, self.description, self.kind = ntuple._fields[index]

    @property
    def num_entries(self) -> int:
        """Number of entries of the ntuple."""
        return self._ntuple.num_entries

    @property
    def parent(self) -> "Field | None":
        """The field of which this is a subfield."""
        return None if self._parent is None else Field(self._ntuple, self._parent)

    def keys(self) -> list[str]:
        """Names of the subfields, relative to this field: ``["pt", "eta"]``."""
        fields = self._ntuple._fields
        return [name for _, parent, name, *_ in fields if parent == self._index]

    def __getitem__(self, name: str) -> "Field":
        return self._ntuple[f"{self.path}.{name}"]

    def __len__(self) -> int:
        return len(self.keys())

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __repr__(self) -> str:
        return f"<tupelo.Field {self.path!r}: {self.typename or self.kind}>"

    def array(
        self,
        entry_start: SupportsIndex | None = None,
        entry_stop: SupportsIndex | None = None,
        library: Library = "ak",
        **unknown: object,
    ) -> Any:
        """The values of the field in a range of entries, by default all.

        The first axis are the entries. A subfield of a collection comes as a collection of its values:
        ``ntuple["jets.pt"].array()`` has the type ``n * var * float32``. `Ntuple.arrays` says what the libraries mean;
        the column alone is given here: an `ak.Array`, NumPy array, `pyarrow.Array` or `pandas.Series`.
        """
        _select.refuse("array", unknown)
        _select.check_library(library)
        start, stop = _select.entry_range(entry_start, entry_stop, self.num_entries)
        batch = self._ntuple._read([_select.literal(self.path)], start, stop, False)
        names = self._names()
        field, column = _arrow.drill(batch.schema.field(0), batch.column(0), names[1:])
        if library == "arrow":
            return column
        alone = pa.record_batch([column], schema=pa.schema([field.with_name(self.path)]))
        arrays = hand_out(alone, library, start)
        return arrays[self.path]

    def objects(
        self, entry_start: SupportsIndex | None = None, entry_stop: SupportsIndex | None = None, **unknown: object
    ) -> list[Any]:
        """The C++ objects of a streamer field in a range of entries, by default all: one for each entry, or a list of
        them for fields below collections.

        ``TString``, ``TObjString`` and ``std::string`` come as `str`, ``TObjArray``, ``TList`` and sequences as lists
        (NumPy arrays, if of numbers), maps as dicts, ``TArrayD`` and its like as NumPy arrays, ``std::pair`` as tuples,
        one- and two-dimensional histograms and ``TProfile`` as `Histogram`, other objects as `Instance`. They are
        decoded by the streamer info in the file. What it does not describe, and what has a format of its own, comes as
        an `OpaqueObject` that has the bytes and says why; a null pointer as None.

        Raises `InvalidArgumentError` for fields that are no streamer fields: `array` reads these.
        """
        _select.refuse("objects", unknown)
        start, stop = _select.entry_range(entry_start, entry_stop, self.num_entries)
        core = self._ntuple._core.objects(self.path)

        def decoded(stored: Any) -> Any:
            match stored:
                case bytes():
                    return _objects.present(core.decode(stored, _objects.Instance, _objects.OpaqueObject))
                case list():
                    return [decoded(item) for item in stored]
                case _:
                    return stored

        stored: list[Any] = self.array(start, stop, library="arrow").to_pylist()
        return [decoded(entry) for entry in stored]

    def _above(self) -> Iterator["Field"]:
        if (parent := self.parent) is not None:
            yield from parent._above()
            yield parent

    def _names(self) -> list[str]:
        return [*(field.name for field in self._above()), self.name]


class Ntuple:
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

    def __init__(self, core: "_core.Ntuple", origin: Origin, rules: tuple[ReadRule, ...] = ()) -> None:
        self._open_core: _core.Ntuple | None = core
        self._origin = origin
        self._rules = rules
        self._path = core.path
        if rules:
            return
        for text in core.warnings:
            warnings.warn(f"{origin.file_path}: ntuple '{core.path}': {text}", TupeloWarning, stacklevel=3)

    # Who it is.

    @property
    def name(self) -> str:
        """Its name, without directories."""
        return self._core.name

    @property
    def object_path(self) -> str:
        """Its path in the file: ``"dir/name"``."""
        return self._path

    @property
    def file_path(self) -> str:
        """The file."""
        return self._origin.file_path

    @property
    def description(self) -> str:
        """Free text."""
        return self._core.description

    @property
    def writer(self) -> str:
        """The program that wrote it, as far as it says so."""
        return self._core.writer

    @property
    def format_version(self) -> str:
        """Version of the format that its writer claims, ``"1.0.2.0"`` for instance."""
        return self._core.format_version

    @property
    def num_entries(self) -> int:
        """Number of entries."""
        return self._core.num_entries

    @property
    def num_clusters(self) -> int:
        """Number of clusters: groups of entries that are stored together."""
        return self._core.num_clusters

    @property
    def metadata(self) -> dict[str, str]:
        """What the program that wrote it says of the whole of it; see `NtupleWriter.metadata`.

        They are the attribute set ``metadata``. Raises `UnsupportedError` where another program means something else
        by that name; `attributes` reads it then.
        """
        return self._core.metadata()

    @property
    def attribute_sets(self) -> dict[str, AttributeSet]:
        """The linked attribute sets by name."""
        return {name: self.attributes(name) for name in self._core.attribute_sets()}

    def attributes(self, name: str) -> AttributeSet:
        """An attribute set: rows that speak of ranges of entries.

        Raises `NotFoundError` (a `KeyError`) with near names where there is none of that name.
        """
        core, origin = self._core, self._origin

        def open_ntuple() -> Ntuple:
            set_origin = replace(origin, names=(*origin.names, name))
            return Ntuple(core.attribute_set(name), set_origin)

        return AttributeSet(core.attributes(name), name, open_ntuple)

    @property
    def arrow_schema(self) -> Any:
        """The `pyarrow.Schema` of all fields. C++ types stand in the field metadata under ``rntuple.type``."""
        return self._core.arrow_schema([], False)

    # Its fields.

    # It is no `collections.abc.Mapping`: libraries would take it for a dict of columns before they see the stream.

    def keys(
        self, *, recursive: bool = True, filter_name: Filter = None, filter_typename: Filter = None, **unknown: object
    ) -> list[str]:
        """Dotted paths of the fields, parents first; only those at the top where ``recursive`` is false.

        The items of collections, arrays and optionals have no name: ``jets.pt`` is the ``pt`` of the items of
        ``jets``. Filters are globs, ``"/regular expressions/"``, functions of the text, or several of these.
        """
        return list(
            self.typenames(recursive=recursive, filter_name=filter_name, filter_typename=filter_typename, **unknown)
        )

    def typenames(
        self, *, recursive: bool = True, filter_name: Filter = None, filter_typename: Filter = None, **unknown: object
    ) -> dict[str, str]:
        """C++ types by dotted path, as in `keys`; ``struct`` and ``collection`` where there is no C++ type."""
        _select.refuse("keys", unknown)
        fits_name, fits_type = _select.matcher(filter_name), _select.matcher(filter_typename)
        return {
            path: self._fields[index][3]
            for path, index in self._by_path.items()
            if (recursive or self._fields[index][1] is None) and fits_name(path) and fits_type(self._fields[index][3])
        }

    def show(self, *, recursive: bool = True, file: TextIO | None = None, max_width: int = 120) -> None:
        """Prints the tree of fields with their types and descriptions, by default to standard output.

        >>> import tupelo
        >>> with tupelo.recreate("show.root") as out:
        ...     out.mkrntuple("Events", {"pt": "std::vector<float>", "run": "int"}, description="A few.").close()
        >>> tupelo.open("show.root:Events").show()
        Events (RNTuple, 0 entries)
        Description: A few.
        ├─ pt (std::vector<float>)
        └─ run (std::int32_t)
        """
        out = sys.stdout if file is None else file
        below: dict[int | None, list[int]] = {}
        for index in self._by_path.values():
            below.setdefault(self._fields[index][1], []).append(index)

        def line(text: str) -> None:
            print(text if len(text) <= max_width else text[: max_width - 1] + "…", file=out)

        def branch(parent: int | None, margin: str) -> None:
            children = below.get(parent, [])
            for index in children:
                _, _, name, type_name, description, _ = self._fields[index]
                is_last = index == children[-1]
                inner = margin + ("   " if is_last else "│  ")
                line(f"{margin}{'└─ ' if is_last else '├─ '}{name} ({type_name})")
                for text in description.splitlines():
                    line(f"{inner}Description: {text}")
                if recursive:
                    branch(index, inner)

        line(f"{self.name} (RNTuple, {self.num_entries} entries)")
        for text in self.description.splitlines():
            line(f"Description: {text}")
        branch(None, "")

    def __getitem__(self, name: str) -> Field:
        index = self._by_path.get(name)
        if index is None:
            raise self._no_such_field(name)
        return Field(self, index)

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_path)

    def __len__(self) -> int:
        """Number of fields that `keys` lists; the number of entries is `num_entries`."""
        return len(self._by_path)

    def __bool__(self) -> bool:
        return True

    def __contains__(self, name: object) -> bool:
        return name in self._by_path

    def values(self) -> list[Field]:
        """The fields that `keys` lists."""
        return [Field(self, index) for index in self._by_path.values()]

    def items(self) -> list[tuple[str, Field]]:
        """Pairs of dotted paths and fields."""
        return [(path, Field(self, index)) for path, index in self._by_path.items()]

    def get(self, name: str, default: Field | None = None) -> Field | None:
        """The field of a dotted path, or the default where there is none."""
        index = self._by_path.get(name)
        return default if index is None else Field(self, index)

    def _ipython_key_completions_(self) -> list[str]:
        return self.keys()

    def __repr__(self) -> str:
        if self._open_core is None:
            return f"<tupelo.Ntuple {self._path!r} (closed)>"
        top = sum(parent is None for _, parent, *_ in self._fields)
        return f"<tupelo.Ntuple {self._path!r} ({top} fields, {self.num_entries} entries)>"

    # Its entries.

    def arrays(
        self,
        names: str | Iterable[str] | None = None,
        *,
        entry_start: SupportsIndex | None = None,
        entry_stop: SupportsIndex | None = None,
        library: Library = "ak",
        filter_name: Filter = None,
        filter_typename: Filter = None,
        schema: Mapping[str, Any] | pa.Schema | None = None,
        **unknown: object,
    ) -> Any:
        """Reads fields in a range of entries, by default everything.

        ``names`` are dotted paths or globs (``"Muon_pt"``, ``"Muon_*"``, ``"jets.pt"``; in a glob ``*`` stays within
        one name and ``**`` does not). A path stands for everything below it, and what is above it stays around it as a
        frame. Instead of names, filters choose as in `keys`. Columns come in the order of the file. Entries are counted
        as in Python's slices, so ``entry_start=-10`` means the last ten. Only the pages that hold them are read.

        ``library`` says what the columns become:

        - ``"ak"``: one `ak.Array` of records
        - ``"np"``: a dict of NumPy arrays whose first axis are the entries: numbers of shape (n,), fixed-size arrays
          (n, N), records as structured arrays, optional numbers as masked arrays, and objects for the rest: `str` for
          strings, one NumPy array per collection, None for what is missing
        - ``"arrow"``: a `pyarrow.Table`
        - ``"pd"``: a `pandas.DataFrame` with the entry numbers as index, NumPy columns for numbers, and
          `pandas.ArrowDtype` for what is nested or may be missing

        ``schema`` reads the data as other types than those on disk, by the rules of ROOT's schema evolution: a mapping
        of the names of top-level fields to C++ types, or a `pyarrow.Schema`. It takes the place of names and filters.
        Integers and enums become other integers, a ``double`` a ``float``, ``T`` an optional, a set, an array or an
        optional a vector, and so on; the members of records are matched by name, those that are not on disk are zero,
        empty or None, and those that are not wanted are not read.

        Raises `NotFoundError` (a `KeyError`) with near names for a name or glob that no field has,
        `InvalidArgumentError` for a type that a field cannot be read as and for a value that does not fit its new type,
        with the entry, `CorruptError` with field, cluster, page and offset where data are damaged, `UnsupportedError`
        for what is not done yet, such as ``cut`` or expressions.

        >>> import tupelo
        >>> with tupelo.recreate("arrays.root") as file:
        ...     file["Events"] = {"x": [1.5, 2.5], "y": [[1], [2, 3]]}
        >>> ntuple = tupelo.open("arrays.root:Events")
        >>> ntuple.arrays(library="np")["x"]
        array([1.5, 2.5])
        >>> ntuple.arrays("y", library="arrow")["y"].to_pylist()
        [[1], [2, 3]]
        >>> print(ntuple.arrays(schema={"y": "ROOT::RVec<short>", "x": "std::optional<float>"}).type)
        2 * {y: var * int16, x: ?float32}
        >>> ntuple.arrays("x*2")
        Traceback (most recent call last):
        tupelo.errors.NotFoundError: ... expressions are not computed, only names and globs are known
        """
        _select.refuse("arrays", unknown)
        _select.check_library(library)
        wanted = self._wanted(names, filter_name, filter_typename, schema)
        start, stop = _select.entry_range(entry_start, entry_stop, self.num_entries)
        return hand_out(self._read(wanted, start, stop, False, schema), library, start)

    def iterate(
        self,
        names: str | Iterable[str] | None = None,
        *,
        step_size: SupportsIndex | str = DEFAULT_STEP,
        entry_start: SupportsIndex | None = None,
        entry_stop: SupportsIndex | None = None,
        library: Library = "ak",
        filter_name: Filter = None,
        filter_typename: Filter = None,
        report: bool = False,
        binary_strings: bool = False,
        schema: Mapping[str, Any] | pa.Schema | None = None,
        **unknown: object,
    ) -> Iterator[Any]:
        """Reads the same as `arrays`, piece by piece.

        ``step_size`` is a number of entries, or a size in memory such as ``"100 MB"`` (the default) or ``"64 MiB"``.
        With ``report`` each piece comes with a `Report` of where it is from. With ``binary_strings`` strings come as
        bytes, which is needed where some are not UTF-8: all pieces have the same type. ``schema`` is that of `arrays`.

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
        _select.refuse("iterate", unknown)
        _select.check_library(library)
        wanted = self._wanted(names, filter_name, filter_typename, schema)
        start, stop = _select.entry_range(entry_start, entry_stop, self.num_entries)
        size = _select.step(step_size)
        step_bytes = parse_bytes(size) if isinstance(size, str) else None
        step_entries = size if isinstance(size, int) else 1
        with _hinting(wanted):
            other = _other_schema(schema)
            batches = self._core.batches(wanted, start, stop, step_entries, step_bytes, binary_strings, other)
        return self._pieces(batches, library, report)

    def _pieces(self, batches: "_core.Batches", library: str, report: bool) -> Iterator[Any]:
        for position, batch in batches:
            piece = hand_out(batch, library, position)
            stop = position + batch.num_rows
            yield (piece, Report(position, stop, self.file_path, self.object_path)) if report else piece

    def __arrow_c_schema__(self) -> object:
        return self.arrow_schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """All entries as a stream of Arrow batches, decoded while they are asked for."""
        return self._core.stream([], _core.DEFAULT_BATCH_ENTRIES, requested_schema)

    def with_rules(self, rules: Iterable[ReadRule]) -> "Ntuple":
        """The same ntuple with the members that rules compute, see `ReadRule`.

        They are fields as all others: read alone, a computed member reads the sources of its rule and nothing else.
        What the function raises comes through, with a note that names the rule. Rules that the ntuple has already stay;
        a rule whose class is nowhere in the ntuple does nothing.

        Raises `NotFoundError` with near names for a source that a record of the class does not have,
        `InvalidArgumentError` for rules that are not complete or compute the same member twice.
        """
        rules = tuple(rules)
        for rule in rules:
            if not isinstance(rule, ReadRule):
                raise InvalidArgumentError(f"rules are of the class ReadRule, not {rule!r}")
        core = self._core.with_rules([rule._row() for rule in rules])
        return Ntuple(core, self._origin, self._rules + rules)

    # Its life.

    def close(self) -> None:
        """Lets go of the file. Arrays that were read stay."""
        self._open_core = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        origin = self._origin
        place = replace(origin, file_path=os.path.abspath(origin.file_path))
        return _reopen, (place, self._rules)

    # Under the hood.

    @property
    def _core(self) -> "_core.Ntuple":
        if self._open_core is None:
            raise InvalidArgumentError(f"{self.file_path}: ntuple '{self._path}' is closed")
        return self._open_core

    @cached_property
    def _fields(self) -> list[tuple[str, int | None, str, str, str, str]]:
        """Path, index of the parent, name, type, description and kind of every field, parents first."""
        return self._core.fields()

    @cached_property
    def _by_path(self) -> dict[str, int]:
        """Index of every field."""
        return {path: index for index, (path, *_) in enumerate(self._fields)}

    def _wanted(
        self,
        names: str | Iterable[str] | None,
        filter_name: Filter,
        filter_typename: Filter,
        schema: Mapping[str, Any] | pa.Schema | None,
    ) -> list[str]:
        if schema is not None:
            if names is not None or filter_name is not None or filter_typename is not None:
                raise InvalidArgumentError(
                    "a schema says itself which fields are read; give no names or filters with it"
                )
            return []
        if filter_name is None and filter_typename is None:
            wanted = _select.patterns(names)
            for name in wanted:
                if name not in self._by_path and not _select.is_glob(name):
                    raise self._no_such_field(name)
            return [_select.literal(name) if name in self._by_path else name for name in wanted]
        if names is not None:
            raise InvalidArgumentError("fields are chosen by names or by filters, not by both")
        wanted = self.keys(filter_name=filter_name, filter_typename=filter_typename)
        if not wanted:
            raise NotFoundError(
                f"{self.file_path}: ntuple '{self._path}': none of {len(self)} fields passes the filters"
            )
        return [_select.literal(name) for name in wanted]

    def _read(
        self,
        wanted: list[str],
        start: int,
        stop: int,
        binary_strings: bool,
        schema: Mapping[str, Any] | pa.Schema | None = None,
    ) -> Any:
        with _hinting(wanted):
            return self._core.read(wanted, start, stop, binary_strings, _other_schema(schema))

    def _no_such_field(self, name: object) -> Exception:
        if not isinstance(name, str):
            return InvalidArgumentError(f"fields are called by names, not by {name!r}; read entries by arrays()")
        try:
            self._core.arrow_schema([name], False)
        except NotFoundError as error:
            return NotFoundError(f"{error}{_select.expression_hint(name)}")
        except InvalidArgumentError as error:
            return error
        text = (
            f"'{name}' is a pattern; read it by arrays()" if _select.is_glob(name) else f"'{name}' cannot be read alone"
        )
        return NotFoundError(f"{self.file_path}: ntuple '{self._path}': {text}")


@contextmanager
def _hinting(wanted: list[str]) -> Iterator[None]:
    """Adds to "no such field" that expressions are not computed, where it looks as if they should be."""
    try:
        yield
    except NotFoundError as error:
        hints = [_select.expression_hint(name) for name in wanted if f"'{name}'" in str(error)]
        if not any(hints):
            raise
        raise NotFoundError(f"{error}{max(hints)}") from None


def _other_schema(schema: Mapping[str, Any] | pa.Schema | None) -> Any:
    """The `pyarrow.Schema` of what is wanted, None where it is what is on disk."""
    if schema is None or isinstance(schema, pa.Schema):
        return schema
    if not isinstance(schema, Mapping):
        raise InvalidArgumentError(f"a schema is a mapping of names to types or a pyarrow.Schema, not {schema!r}")
    return pa.schema([_cpp.field_of(name, declared) for name, declared in schema.items()])


def _reopen(origin: Origin, rules: tuple[ReadRule, ...] = ()) -> Ntuple:
    """What unpickling calls."""
    ntuple = Ntuple(origin.open(), origin)
    return ntuple.with_rules(rules) if rules else ntuple
