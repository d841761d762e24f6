"""The base class of ntuples, trees, fields and branches."""

import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, SupportsIndex, TextIO

from .. import _field_sets, _select, _virtual
from .._awkward import AddDoc, AwkwardOptions
from .._libraries import How, check_how, group, to_library
from .._messages import printable, short_repr
from .._select import Filter
from .._sizes import parse_bytes
from ..errors import InvalidArgumentError, NotFoundError
from ..ntuple import DEFAULT_STEP
from ._column_bytes import column_bytes
from ._flat import flatten, signed_sizes
from ._options import check_options, library_name, matcher

if TYPE_CHECKING:
    from ._ntuple import RField

FieldFilter = Callable[["RField"], object] | None


def _fitted(batch: Any, schema: Any) -> Any:
    """A batch with all columns of a schema, if given."""
    return batch if schema is None else _field_sets.add_missing_columns(batch, schema, batch.num_rows)


def awkward_options(ak_add_doc: AddDoc) -> AwkwardOptions:
    """Awkward options that match uproot, whose attribute "title" is a description."""
    if isinstance(ak_add_doc, Mapping):
        ak_add_doc = {key: "description" if name == "title" else name for key, name in ak_add_doc.items()}
    return AwkwardOptions(ak_add_doc, fixed_types=True, signed_sizes=True)


class Report:
    """The origin of a batch of ``iterate``."""

    def __init__(
        self, source: "HasColumns", tree_entry_start: int, tree_entry_stop: int, global_offset: int = 0
    ) -> None:
        self.source = source
        self.tree_entry_start = tree_entry_start
        self.tree_entry_stop = tree_entry_stop
        self.global_offset = global_offset
        self.global_entry_start = self.start = tree_entry_start + global_offset
        self.global_entry_stop = self.stop = tree_entry_stop + global_offset

    @property
    def tree(self) -> Any:
        """The ntuple or tree."""
        return self.source.ntuple

    @property
    def file(self) -> Any:
        """The file."""
        return self.source.file

    @property
    def file_path(self) -> str:
        """Its path."""
        path: str = self.source.ntuple.file_path
        return path

    def to_global(self, global_offset: int) -> "Report":
        """A copy with another number of entries in earlier files."""
        return Report(self.source, self.tree_entry_start, self.tree_entry_stop, global_offset)

    def __repr__(self) -> str:
        return f"<Report start={self.start} stop={self.stop} source={self.file_path + ':' + self.source.ntuple.name!r}>"


class HasColumns(Mapping[str, Any]):
    """The base class of ntuples and trees, fields and branches: a mapping from paths to fields or branches, with
    methods that read them.
    """

    ntuple: Any
    """The ntuple or tree to which it belongs."""
    separator: str
    """What separates the names in a path."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name."""

    @property
    @abstractmethod
    def description(self) -> str:
        """Free text."""

    @property
    @abstractmethod
    def typename(self) -> str:
        """The C++ type."""

    @property
    @abstractmethod
    def fields(self) -> list[Any]:
        """The fields directly below."""

    @property
    @abstractmethod
    def path(self) -> str:
        """The dotted path; that of an ntuple is a dot."""

    @property
    def file(self) -> Any:
        """The file."""
        return self.ntuple.file

    @property
    def num_entries(self) -> int:
        """Number of entries of the ntuple or tree."""
        count: int = self.ntuple.core.num_entries
        return count

    # The mapping.

    def iteritems(
        self,
        *,
        filter_name: Filter = None,
        filter_typename: Filter = None,
        filter_field: FieldFilter = None,
        recursive: bool = True,
        full_paths: bool = True,
        ignore_duplicates: bool = False,
        filter_branch: FieldFilter = None,
    ) -> Iterator[tuple[str, Any]]:
        """Pairs of key and field. A name filter may match the name of the field or its relative path."""
        fits_name, fits_type = matcher(filter_name), matcher(filter_typename)
        fits_field = filter_field if filter_field is not None else filter_branch
        if fits_field is not None and not callable(fits_field):
            raise TypeError(f"filter_field must be None or a function: RField -> bool, not {short_repr(fits_field)}")
        seen = set()
        for path, field in self._below(recursive):
            key = path if full_paths else field.name
            names = dict.fromkeys([field.name, path, f"{self.separator}{path}"])
            if (
                (filter_name is None or any(fits_name(name) for name in names))
                and (filter_typename is None or fits_type(field.typename))
                and (fits_field is None or fits_field(field))
                and not (ignore_duplicates and key in seen)
            ):
                seen.add(key)
                yield key, field

    def _below(self, recursive: bool) -> Iterator[tuple[str, Any]]:
        for field in self.fields:
            yield field.name, field
            if recursive:
                for path, lower in field._below(True):
                    yield f"{field.name}{self.separator}{path}", lower

    def iterkeys(self, **which: Any) -> Iterator[str]:
        """The keys of `iteritems`."""
        return (key for key, _ in self.iteritems(**which))

    def itervalues(self, **which: Any) -> Iterator[Any]:
        """The fields of `iteritems`."""
        return (field for _, field in self.iteritems(**which))

    def itertypenames(self, **which: Any) -> Iterator[tuple[str, str]]:
        """Pairs of key and C++ type."""
        return ((key, field.typename) for key, field in self.iteritems(**which))

    def keys(self, **which: Any) -> list[str]:  # type: ignore[override]
        """The keys of `iteritems` as a list."""
        return list(self.iterkeys(**which))

    def values(self, **which: Any) -> list[Any]:  # type: ignore[override]
        """The fields of `iteritems` as a list."""
        return list(self.itervalues(**which))

    def items(self, **which: Any) -> list[tuple[str, Any]]:  # type: ignore[override]
        """`iteritems` as a list."""
        return list(self.iteritems(**which))

    def typenames(self, **which: Any) -> dict[str, str]:
        """C++ types by key."""
        return dict(self.itertypenames(**which))

    def __getitem__(self, where: str | int) -> Any:
        if isinstance(where, int):
            return self.fields[where]
        if not isinstance(where, str):
            raise TypeError(f"where must be an integer or a string, not {short_repr(where)}")
        path = where.replace("/", self.separator).replace("\\", self.separator)
        is_recursive = not path.startswith(self.separator)
        names = [name for name in path.split(self.separator) if name]
        # A name may contain separators.
        here = self._named(path.removeprefix(self.separator), is_recursive)
        if here is None and names:
            here = self._named(names[0], is_recursive)
            for name in names[1:]:
                here = None if here is None else here._named(name, is_recursive)
        if here is None:
            raise self._no_such_field(where)
        return here

    def _no_such_field(self, where: str) -> NotFoundError:
        return NotFoundError(f"'{self.path}' has no field {short_repr(where)}: {short_repr(self.keys())}")

    def _named(self, name: str, recursive: bool) -> Any:
        """The direct subfield with a name, or else the first one at a deeper level."""
        for field in self.fields:
            if field.name == name:
                return field
        for field in self.fields if recursive else ():
            if (found := field._named(name, True)) is not None:
                return found
        return None

    def __iter__(self) -> Iterator[Any]:
        """The direct subfields, not their names, as in uproot."""
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and self[name] is not None
        except NotFoundError:
            return False

    def __bool__(self) -> bool:
        return True

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def _ipython_key_completions_(self) -> Iterator[str]:
        return self.iterkeys()

    def show(
        self,
        *,
        filter_name: Filter = None,
        filter_typename: Filter = None,
        filter_field: FieldFilter = None,
        recursive: bool = True,
        max_width: int = 80,
        stream: TextIO | None = None,
        **unused: object,
    ) -> None:
        """Prints the tree of fields."""
        out = sys.stdout if stream is None else stream
        which: dict[str, Any] = {
            "filter_name": filter_name,
            "filter_typename": filter_typename,
            "filter_field": filter_field,
        }

        def branch(one: HasColumns, lead: str, margin: str, goes_on: bool) -> None:
            print(printable(f"{lead}{one.name} ({one.typename})")[:max_width], file=out)
            if one.description:
                print(printable(f"{margin}Description: {one.description}")[:max_width], file=out)
            below = one.values(recursive=False, **which) if goes_on else []
            for field in below:
                is_last = field is below[-1]
                mark, blank = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
                branch(field, margin + mark, margin + blank, recursive)

        branch(self, "", "", True)

    # Its entries.

    def arrays(
        self,
        expressions: str | Iterable[str] | None = None,
        cut: str | None = None,
        *,
        filter_name: Filter = None,
        filter_typename: Filter = None,
        filter_field: FieldFilter = None,
        aliases: Mapping[str, str] | None = None,
        entry_start: SupportsIndex | None = None,
        entry_stop: SupportsIndex | None = None,
        library: Any = "ak",
        ak_add_doc: AddDoc = False,
        how: How = None,
        virtual: bool = False,
        access_log: Any = None,
        filter_branch: FieldFilter = None,
        schema: Any = None,
        **others: Any,
    ) -> Any:
        """Reads fields, and computes expressions, like `tupelo.Ntuple.arrays`; expressions may also be filters of
        names.

        For a field, the result is a record with that field only, or lists of these. ``schema``, a `pyarrow.Schema`,
        lists the columns of the result, with missing values for those that the ntuple lacks.
        """
        check_options("arrays", others)
        library = library_name(library)
        check_how(how, library)
        other = None if library == "ak" else library
        _virtual.check(access_log, virtual, how=how, library=other, expressions=expressions, cut=cut, aliases=aliases)
        filters = filter_name, filter_typename, filter_field, filter_branch
        request = self._request(expressions, cut, aliases, filters, (entry_start, entry_stop))
        style = self._style(ak_add_doc)
        core = self.ntuple.core
        if virtual:
            return self._from_virtual(_virtual.virtual_arrays(core._core, request, style, access_log), request)
        batch, entries = core._whole(request)
        return self._to_library(_fitted(self._shaped(batch, request), schema), entries, library, style, how)

    def iterate(
        self,
        expressions: str | Iterable[str] | None = None,
        cut: str | None = None,
        *,
        filter_name: Filter = None,
        filter_typename: Filter = None,
        filter_field: FieldFilter = None,
        aliases: Mapping[str, str] | None = None,
        entry_start: SupportsIndex | None = None,
        entry_stop: SupportsIndex | None = None,
        step_size: SupportsIndex | str = DEFAULT_STEP,
        library: Any = "ak",
        ak_add_doc: AddDoc = False,
        how: How = None,
        report: bool = False,
        filter_branch: FieldFilter = None,
        schema: Any = None,
        **others: Any,
    ) -> Iterator[Any]:
        """Reads the same as `arrays`, in batches.

        A ``step_size`` in bytes is converted to entries with the mean uncompressed size of the columns.
        """
        check_options("iterate", others)
        library = library_name(library)
        check_how(how, library)
        filters = filter_name, filter_typename, filter_field, filter_branch
        request = self._request(expressions, cut, aliases, filters, (entry_start, entry_stop))
        style = self._style(ak_add_doc)
        for start, stop, batch, entries in self.ntuple.core._batches(request, self._step(request, step_size)):
            shaped = _fitted(self._shaped(batch, request), schema)
            arrays = self._to_library(shaped, entries, library, style, how)
            yield (arrays, Report(self, start, stop)) if report else arrays

    def num_entries_for(
        self,
        memory_size: str,
        expressions: Any = None,
        *,
        filter_name: Filter = None,
        filter_typename: Filter = None,
        filter_field: FieldFilter = None,
        entry_start: SupportsIndex | None = None,
        entry_stop: SupportsIndex | None = None,
        filter_branch: FieldFilter = None,
        **others: Any,
    ) -> int:
        """Number of entries in batches of `iterate` with a given size in memory; nothing is decoded."""
        check_options("num_entries_for", others)
        filters = filter_name, filter_typename, filter_field, filter_branch
        request = self._request(expressions, None, None, filters, (entry_start, entry_stop))
        return int(self._step(request, memory_size))

    def _step(self, request: _select.Request, step_size: SupportsIndex | str) -> SupportsIndex | str:
        """Converts a step size to entries like uproot, from the uncompressed bytes of all columns."""
        if not isinstance(step_size, str):
            return step_size
        step_bytes, total = parse_bytes(step_size), self._column_bytes(request)
        return max(1, round(step_bytes * self.num_entries / total)) if total else max(1, self.num_entries)

    def to_akform(
        self,
        *,
        filter_name: Filter = None,
        filter_typename: Filter = None,
        filter_field: FieldFilter = None,
        ak_add_doc: AddDoc = False,
        filter_branch: FieldFilter = None,
    ) -> tuple[Any, list[str] | None]:
        """The Awkward form of the result of `arrays`, and the path in it to this field, if it is one."""
        filters = filter_name, filter_typename, filter_field, filter_branch
        request = self._request(None, None, None, filters, (0, 0))
        batch = self._shaped(self.ntuple.core._core.read(request), request)
        whole = self._flattened(to_library(batch, "ak", range(0), self._style(ak_add_doc)))
        return whole.layout.form, None if self is self.ntuple else self.path.split(self.separator)

    @abstractmethod
    def _request(
        self,
        expressions: Any,
        cut: Any,
        aliases: Any,
        filters: tuple[Filter, Filter, FieldFilter, FieldFilter],
        entries: tuple[SupportsIndex | None, SupportsIndex | None],
    ) -> _select.Request:
        """The request for a range of entries."""

    @abstractmethod
    def _column_bytes(self, request: _select.Request) -> int:
        """Uncompressed bytes of the columns of a request."""

    def _style(self, ak_add_doc: AddDoc) -> AwkwardOptions:
        """How Awkward arrays are made."""
        return awkward_options(ak_add_doc)

    @abstractmethod
    def _patterns(self) -> list[str]:
        """Patterns that select it."""

    def _to_library(self, batch: Any, entries: Any, library: str, style: AwkwardOptions, how: How) -> Any:
        """Converts a `pyarrow.RecordBatch` to the result of `arrays`."""
        if library != "ak":
            return self._columns(signed_sizes(batch), library, entries, how)
        arrays = self._from_top(to_library(batch, library, entries, style))
        return group(arrays, arrays.fields, how)

    def _shaped(self, batch: Any, request: _select.Request) -> Any:
        """The columns of the result in a `pyarrow.RecordBatch` that the engine read."""
        return batch

    def _from_virtual(self, arrays: Any, request: _select.Request) -> Any:
        """The result of `arrays` in virtual arrays."""
        return self._from_top(arrays)

    def _from_top(self, arrays: Any) -> Any:
        """The result of `arrays` within an Awkward record of top-level columns."""
        return self._flattened(arrays)

    @abstractmethod
    def _flattened(self, arrays: Any) -> Any:
        """Records as in uproot."""

    def _columns(self, batch: Any, library: str, entries: Any, how: How) -> Any:
        """The result of `arrays` for libraries other than Awkward."""
        return to_library(batch, library, entries, None, how)


class HasFields(HasColumns):
    """The base class of ntuples and fields."""

    separator = "."

    def _request(
        self,
        expressions: Any,
        cut: Any,
        aliases: Any,
        filters: tuple[Filter, Filter, FieldFilter, FieldFilter],
        entries: tuple[SupportsIndex | None, SupportsIndex | None],
    ) -> _select.Request:
        """The request for a range of entries."""
        request = _select.Request(aliases=_select.aliases(aliases), cut=_select.cut(cut))
        request.entry_start, request.entry_stop = _select.entry_range(*entries, self.num_entries)
        is_filtered = any(one is not None for one in filters)
        if expressions is None and not is_filtered:
            request.patterns = self._patterns()
            return request
        if expressions is not None and is_filtered:
            raise InvalidArgumentError("give expressions or filters, not both")
        wanted: list[str] = []
        if expressions is None:
            names, types, one, two = filters
            which = {"filter_name": names, "filter_typename": types, "filter_field": one, "filter_branch": two}
            wanted = [path for field in self.values(**which) for path in field._patterns()]
        for text in _select.string_list("expressions", expressions):
            found = [] if text in dict(request.aliases) else self.values(filter_name=text)
            wanted += [path for field in found for path in field._patterns()]
            if not found:
                request.patterns = None
                request.add(text, self.ntuple.core._by_path)
                if request.patterns:
                    raise self.ntuple.core._no_such_field(text)
        if not wanted and not request.computed:
            text = f"{self.ntuple.file_path}: '{self.path}': none of {len(self.keys())} fields matches the filters"
            raise NotFoundError(text)
        request.patterns = wanted or None
        return request

    def _column_bytes(self, request: _select.Request) -> int:
        return column_bytes(self.ntuple, request)

    def _flattened(self, arrays: Any) -> Any:
        return flatten(arrays, self.ntuple)
