"""Fields of ntuples."""

import itertools
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, SupportsIndex, TextIO

import numpy as np
import pyarrow as pa

from .. import _core
from .._base import arrow
from .._base.checks import check_text
from .._base.messages import printable, short_repr, truncate
from .._core import FieldInfo
from .._from_arrow.awkward import AddDoc, AwkwardOptions
from .._from_arrow.libraries import Library, to_library
from ..errors import InvalidArgumentError, NotFoundError
from . import _objects, _select, _virtual
from ._select import Filter

if TYPE_CHECKING:
    from typing_extensions import Self


class Field:
    """One field of an ntuple: its description, and its values. An ntuple is a mapping from paths to fields.

    ``path`` is its dotted path and ``name`` the last part of it, ``typename`` its C++ type (empty if there is none),
    ``description`` a free text, and ``kind`` how it is built: ``"record"``, ``"collection"`` and so on. Subfields are
    its items.
    """

    def __init__(self, ntuple: "Fields", index: int) -> None:
        self._ntuple = ntuple
        self._index = index
        info = ntuple._fields[index]
        self.path, self.name, self.typename = info.path, info.name, info.type_name
        self.description, self.kind = info.description, info.kind
        self._parent = info.parent

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
        return [field.name for field in self._ntuple._fields if field.parent == self._index]

    def __getitem__(self, name: str) -> "Field":
        if not isinstance(name, str):
            raise InvalidArgumentError(
                f"expected the name of a subfield, not {short_repr(name)}; read entries with array()"
            )
        return self._ntuple[f"{self.path}.{name}"]

    def values(self) -> list["Field"]:
        """The subfields that `keys` lists."""
        return [self[name] for name in self.keys()]

    def items(self) -> list[tuple[str, "Field"]]:
        """Pairs of names and subfields."""
        return [(name, self[name]) for name in self.keys()]

    def get(self, name: str, default: "Field | None" = None) -> "Field | None":
        """The subfield of a name or a dotted path below this one, or ``default``. Raises nothing."""
        return self._ntuple.get(f"{self.path}.{name}", default)

    def _ipython_key_completions_(self) -> list[str]:
        return self.keys()

    def __len__(self) -> int:
        return len(self._mapped())

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self._mapped())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and f"{self.path}.{name}" in self._ntuple

    def _mapped(self) -> list[str]:
        """Names of the subfields. A field without any is an error: it would look like an empty mapping."""
        if names := self.keys():
            return names
        raise InvalidArgumentError(
            f"field '{self.path}' has no subfields and is not a sequence of values; read it with .array()"
        )

    def __repr__(self) -> str:
        return f"<tupelo.Field {self.path!r}: {printable(self.typename or self.kind)}>"

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *exception: object) -> None:
        self._ntuple.close()

    def array(
        self,
        entry_start: SupportsIndex | None = None,
        entry_stop: SupportsIndex | None = None,
        library: Library = "ak",
        *,
        ak_add_doc: AddDoc = False,
        virtual: bool = False,
        access_log: Any = None,
        **unknown: object,
    ) -> Any:
        """The values of the field in the entries from ``entry_start`` to ``entry_stop``, by default all.

        Entries are counted as in a Python slice. The first axis counts entries. A subfield of a collection is a
        collection of its values: ``ntuple["jets.pt"].array()`` has the type ``n * var * float32``. The keywords are
        those of `Ntuple.arrays`. The result is a single column: an `ak.Array`, NumPy array, `pyarrow.Array`,
        `pandas.Series` or `polars.Series`.

        Raises `CorruptError` with field, cluster, page and offset for damaged data, `UnsupportedError` for types that
        the library does not support, and `InvalidArgumentError` for invalid arguments.
        """
        _select.reject_unknown("array", unknown)
        _select.check_library(library)
        _virtual.check(access_log, virtual, library=None if library == "ak" else library)
        start, stop = _select.entry_range(entry_start, entry_stop, self.num_entries)
        request = _select.Request([_select.escape_glob(self.path)], entry_start=start, entry_stop=stop)
        names, style = self._names(), AwkwardOptions(ak_add_doc)
        if virtual:
            values = _virtual.virtual_arrays(self._ntuple._core, request, style, access_log)
            for name in names:
                values = values[name]
            return values
        batch = self._ntuple._warned(self._ntuple._core.read(request))
        field, column = arrow.extract_subfield(batch.schema.field(0), batch.column(0), names[1:])
        if library == "arrow":
            return column
        alone = pa.record_batch([column], schema=pa.schema([field.with_name(self.path)]))
        arrays = to_library(alone, library, range(start, stop), style, is_shared=self._ntuple._shares_memory)
        return arrays[self.path]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """``array(library="np")``, for NumPy and libraries built on it, as in ``plt.hist(ntuple["x"])``."""
        return np.asarray(self.array(library="np"), dtype)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Always main memory. Raises no error."""
        return _DLPACK_CPU

    def __dlpack__(self, **options: Any) -> Any:
        """``array(library="np")``, for ``ak.Array(field)``, ``torch.from_dlpack(field)`` and other DLPack consumers.

        Raises `InvalidArgumentError` for values that are not numbers.
        """
        # Without this method Awkward would use the names of the subfields as values.
        values = self.array(library="np")
        if values.dtype.kind not in "iufb" or isinstance(values, np.ma.MaskedArray):
            raise InvalidArgumentError(
                f"'{self.path}' is not a plain array of numbers; read it with array(), which returns an ak.Array"
            )
        return np.ascontiguousarray(values).__dlpack__(**options)

    def __arrow_array__(self, type: Any = None) -> Any:
        """``array(library="arrow")``, for ``pyarrow.array(field)``."""
        column = self.array(library="arrow")
        return column if type is None else column.cast(type)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """All values as a stream, for ``pyarrow.chunked_array(field)`` and ``polars.Series(field)``."""
        return pa.chunked_array([self.array(library="arrow")]).__arrow_c_stream__(requested_schema)

    def objects(
        self, entry_start: SupportsIndex | None = None, entry_stop: SupportsIndex | None = None, **unknown: object
    ) -> list[Any]:
        """The C++ objects of a streamer field in the entries from ``entry_start`` to ``entry_stop``, by default all.

        Entries are counted as in a Python slice. The result has one object per entry, or a list for fields below
        collections.

        ``TString``, ``TObjString`` and ``std::string`` become `str`; ``TObjArray``, ``TClonesArray``, ``TList`` and
        sequences become lists (NumPy arrays for numbers); maps become dicts, ``TArrayD`` and similar classes NumPy
        arrays, ``std::pair`` tuples, histograms and profiles `Histogram`, graphs `Graph`, and other
        objects `Instance`. Objects are decoded with the streamer info of the file. Classes without streamer info or
        with a custom format become an `OpaqueObject` with the bytes and the reason; a null pointer becomes None.

        In a `Tree`, every branch of a whole object or of a member can be read as objects.

        Raises `InvalidArgumentError` for fields that are not streamer fields; use `array` for these.
        """
        _select.reject_unknown("objects", unknown)
        start, stop = _select.entry_range(entry_start, entry_stop, self.num_entries)
        if self._ntuple._core.tree() is not None:
            values = self._ntuple._core.tree_objects(self.path, entry_start=start, entry_stop=stop, **_objects.MAKERS)
            return [_objects.to_python(value) for value in values]
        core = self._ntuple._core.objects(self.path)

        def decoded(stored: Any) -> Any:
            match stored:
                case bytes():
                    return _objects.to_python(core.decode(stored, **_objects.MAKERS))
                case list():
                    return [decoded(item) for item in stored]
                case _:
                    return stored

        stored: list[Any] = self.array(start, stop, library="arrow").to_pylist()
        return [decoded(entry) for entry in stored]

    def _parents(self) -> Iterator["Field"]:
        if (parent := self.parent) is not None:
            yield from parent._parents()
            yield parent

    def _names(self) -> list[str]:
        return [*(field.name for field in self._parents()), self.name]


_DLPACK_CPU = 1, 0


class Fields:
    """Metadata of an open ntuple, and a mapping from dotted paths to fields."""

    # Not a `collections.abc.Mapping`: libraries would treat it as a dict of columns and ignore the Arrow stream.

    _class = "Ntuple"
    """Name of the class in texts."""

    def __init__(self, core: "_core.Table", file_path: str) -> None:
        self._open_core: _core.Table | None = core
        self._file_path = file_path
        self._path = core.path

    @property
    def _kind(self) -> str:
        """What it is, for texts."""
        return "RNTuple"

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
        """Path of the file."""
        return self._file_path

    @property
    def description(self) -> str:
        """Its description."""
        return self._core.description

    @property
    def num_entries(self) -> int:
        """Number of entries."""
        return self._core.num_entries

    def keys(
        self,
        *,
        recursive: bool = True,
        filter_name: Filter = None,
        filter_typename: Filter = None,
        filter_field: Callable[[Field], object] | None = None,
        **unknown: object,
    ) -> list[str]:
        """Dotted paths of the fields, parents first; top-level fields only if ``recursive`` is false.

        The items of collections, arrays and optionals have no name: ``jets.pt`` is the ``pt`` of the items of
        ``jets``. Collections named ``_collection0`` and so on by ROOT's importer are not listed if projected fields
        show all of their members; they can still be accessed by name. ``filter_name`` matches the path and
        ``filter_typename`` the C++ type. A filter is a glob, a ``"/regular expression/"``, a function of the string, or
        a list of these of which at least one must match. ``filter_field`` is a function of the `Field`.

        Raises `InvalidArgumentError` for invalid filters.
        """
        return list(
            self.typenames(
                recursive=recursive,
                filter_name=filter_name,
                filter_typename=filter_typename,
                filter_field=filter_field,
                **unknown,
            )
        )

    def typenames(
        self,
        *,
        recursive: bool = True,
        filter_name: Filter = None,
        filter_typename: Filter = None,
        filter_field: Callable[[Field], object] | None = None,
        **unknown: object,
    ) -> dict[str, str]:
        """C++ types by dotted path, as in `keys`; ``struct`` and ``collection`` for fields without a C++ type."""
        _select.reject_unknown("keys", unknown)
        fits_name, fits_type = _select.matcher(filter_name), _select.matcher(filter_typename)
        if filter_field is not None and not callable(filter_field):
            raise InvalidArgumentError(
                f"expected filter_field as a function of a field, not {short_repr(filter_field)}"
            )
        listed = ((path, index, self._fields[index]) for path, index in self._listed.items())
        return {
            path: field.type_name
            for path, index, field in listed
            if (recursive or field.parent is None)
            and fits_name(path)
            and fits_type(field.type_name)
            and (filter_field is None or filter_field(Field(self, index)))
        }

    def show(
        self,
        *,
        recursive: bool = True,
        filter_name: Filter = None,
        filter_typename: Filter = None,
        filter_field: Callable[[Field], object] | None = None,
        stream: TextIO | None = None,
        max_width: int = 120,
    ) -> None:
        """Prints the tree of fields with their types and descriptions.

        If ``recursive`` is false, prints top-level fields only. Filters select as in `keys`; the parents of a selected
        field are printed too. The output goes to ``stream``, by default the standard output; lines are truncated to
        ``max_width`` characters.

        Raises the errors of `keys` and of the stream.

        >>> import tupelo
        >>> with tupelo.recreate("show.root") as out:
        ...     out.mkrntuple("Events", {"pt": "std::vector<float>", "run": "int"}, description="A few.").close()
        >>> tupelo.open("show.root:Events").show()
        Events (RNTuple, 0 entries)
        Description: A few.
        ├─ pt (std::vector<float>)
        └─ run (std::int32_t)
        """
        which: dict[str, Any] = {
            "filter_name": filter_name,
            "filter_typename": filter_typename,
            "filter_field": filter_field,
        }
        shown: set[int] = set()
        for path in self.keys(**which):
            above: int | None = self._by_path[path]
            while above is not None and above not in shown:
                shown.add(above)
                above = self._fields[above].parent
        below: dict[int | None, list[int]] = {}
        for index in sorted(shown):
            below.setdefault(self._fields[index].parent, []).append(index)

        def line(text: str) -> None:
            print(truncate(printable(text), max_width), file=sys.stdout if stream is None else stream)

        def branch(parent: int | None, margin: str) -> None:
            children = below.get(parent, [])
            for index in children:
                field = self._fields[index]
                is_last = index == children[-1]
                inner = margin + ("   " if is_last else "│  ")
                line(f"{margin}{'└─ ' if is_last else '├─ '}{field.name} ({field.type_name})")
                for text in field.description.splitlines():
                    line(f"{inner}Description: {text}")
                if recursive:
                    branch(index, inner)

        line(f"{self.name} ({self._kind}, {self.num_entries} entries)")
        for text in self.description.splitlines():
            line(f"Description: {text}")
        branch(None, "")

    def __getitem__(self, name: str) -> Field:
        if name not in self:
            raise self._no_such_field(name)
        return Field(self, self._by_path[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def __len__(self) -> int:
        """Number of fields that `keys` lists; the number of entries is `num_entries`."""
        return len(self._listed)

    def __bool__(self) -> bool:
        return True

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._by_path

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        # Without this method NumPy and pandas would use the names of the fields as values.
        raise InvalidArgumentError(
            f"{self._file_path}: ntuple '{self._path}' is not an array; read one field with ntuple['name'].array(), "
            "all fields with arrays(library='np') or arrays(library='pd')"
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        return _DLPACK_CPU

    def __dlpack__(self, **options: Any) -> Any:
        # The same for Awkward.
        return self.__array__()

    def values(self) -> list[Field]:
        """The fields that `keys` lists."""
        return [Field(self, index) for index in self._listed.values()]

    def items(self) -> list[tuple[str, Field]]:
        """Pairs of dotted paths and fields."""
        return [(path, Field(self, index)) for path, index in self._listed.items()]

    def get(self, name: str, default: Field | None = None) -> Field | None:
        """The field with the dotted path ``name``, or ``default`` if it does not exist. Raises no error."""
        return Field(self, self._by_path[name]) if name in self else default

    def _ipython_key_completions_(self) -> list[str]:
        return self.keys()

    def __repr__(self) -> str:
        if self._open_core is None:
            return f"<tupelo.{self._class} {self._path!r} (closed)>"
        top = sum(self._fields[index].parent is None for index in self._listed.values())
        return f"<tupelo.{self._class} {self._path!r} ({top} fields, {self.num_entries} entries)>"

    def close(self) -> None:
        """Closes the file. Arrays that were read stay valid."""
        self._open_core = None

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # Internals.

    @property
    def _shares_memory(self) -> bool:
        """Whether other code may hold references to the memory of arrays that are read."""
        return False

    def _warned(self, batch: Any) -> Any:
        """What was read, after the warnings that reading it gave."""
        return batch

    @property
    def _core(self) -> "_core.Table":
        if self._open_core is None:
            raise InvalidArgumentError(f"{self.file_path}: ntuple '{self._path}' is closed")
        return self._open_core

    @cached_property
    def _fields(self) -> list[FieldInfo]:
        """Every field, parents first."""
        return self._core.fields()

    @cached_property
    def _field_paths(self) -> list[str]:
        """The path of every field, which takes less time than `_fields`."""
        return self._core.paths()

    @cached_property
    def _by_path(self) -> dict[str, int]:
        """Index of every field, hidden ones included; then by the names of branches that are not those of fields."""
        paths = {path: index for index, path in enumerate(self._field_paths)}
        own = {name: paths[path] for name, path in self._core.own_names().items() if path in paths}
        return paths | {name: index for name, index in own.items() if name not in paths}

    def _path_of(self, name: str) -> str:
        """The dotted path of a field, where the name is another one that it has."""
        return self._field_paths[self._by_path[name]] if name in self._by_path else name

    @cached_property
    def _listed(self) -> dict[str, int]:
        """Index of every field except imported collections, which projected fields show."""
        return dict(itertools.islice(self._by_path.items(), self._core.num_listed_fields()))

    def _no_such_field(self, name: object) -> Exception:
        if not isinstance(name, str):
            return InvalidArgumentError(
                f"expected the name of a field, not {short_repr(name)}; read entries with arrays()"
            )
        check_text(name, "the name of a field")
        try:
            self._core.arrow_schema(_select.Request([name]))
        except (InvalidArgumentError, NotFoundError) as error:
            return error
        text = (
            f"'{name}' is a pattern; read it with arrays()"
            if _select.is_glob(name)
            else f"'{name}' cannot be read on its own"
        )
        return NotFoundError(f"{self.file_path}: ntuple '{self._path}': {text}")
