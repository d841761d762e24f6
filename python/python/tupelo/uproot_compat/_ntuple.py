"""Ntuples and fields with the methods of uproot."""

import re
from functools import cached_property
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
import pyarrow as pa

from .. import _arrow, _select
from .._awkward import AddDoc
from .._libraries import How, to_library
from ._fields import HasFields
from ._flat import flatten, members, uproot_name
from ._options import check_options, library_name
from ._table import Table

_BASE = re.compile(":_[0-9]+")
_MEMBER = re.compile("_[0-9]+")


class ClusterSummary(NamedTuple):
    """First entry and number of entries of a cluster."""

    num_first_entry: int
    num_entries: int


class RNTuple(Table, HasFields):
    """An ntuple; `core` is its `tupelo.Ntuple`."""

    classname = "ROOT::RNTuple"
    """Its class."""

    @property
    def typename(self) -> str:
        """Its class."""
        return self.classname

    @property
    def cluster_summaries(self) -> list[ClusterSummary]:
        """The clusters that have entries."""
        return [ClusterSummary(first, entries) for first, entries, _ in self.core._core.clusters()]

    @cached_property
    def fields(self) -> list["RField"]:
        """The top-level fields."""
        return [field for field in self.all_fields if field.parent is self and not field.is_base]

    @cached_property
    def all_fields(self) -> list["RField"]:
        """Every field, parents first."""
        made: list[RField] = []
        for path, parent, name, _, description, kind in self.core._fields[: len(self.core._listed)]:
            made.append(RField(self, self if parent is None else made[parent], path, name, description, kind))
        return made

    @cached_property
    def uneven(self) -> dict[str, "RField"]:
        """The top-level fields that `flatten` changes, by name."""
        found: dict[str, RField] = {}
        for field in self.all_fields:
            is_numbered = field.core_name.removeprefix("_").isdecimal() and "." in field.core_path
            if field.is_base or is_numbered or (field.core_kind == "record" and not field.core_fields):
                top = field.core_path.partition(".")[0]
                found[top] = self.all_fields[self.core._by_path[top]]
        return found

    @cached_property
    def schema(self) -> Any:
        """The `pyarrow.Schema`."""
        return self.core.arrow_schema

    def __repr__(self) -> str:
        return f"<{self.classname} {self.name!r} ({len(self)} fields)>"


class RField(HasFields):
    """A field. Fields of base classes are hidden: their members are members of the class."""

    def __init__(self, ntuple: RNTuple, parent: HasFields, path: str, name: str, description: str, kind: str) -> None:
        self.ntuple = ntuple
        self._above = parent
        self.core_path = path
        """Its path in Tupelo."""
        self.core_name = name
        """Its name in Tupelo."""
        self.core_kind = kind
        """Its kind in Tupelo."""
        self._description = description
        self.core_fields: list[RField] = []
        """Its subfields in Tupelo."""
        self.unique_name: str | None = None
        """A name that is unique among members of several base classes."""
        if isinstance(parent, RField):
            parent.core_fields.append(self)

    @property
    def is_base(self) -> bool:
        """Whether it is a base class."""
        return _BASE.fullmatch(self.core_name) is not None and self._above is not self.ntuple

    @property
    def name(self) -> str:
        """Its name; members of pairs and tuples have numbers."""
        if isinstance(self._above, RField):
            if _MEMBER.fullmatch(self.core_name):
                return self.core_name[1:]
            if self._above.is_base:
                # Sets the unique names of the members.
                _ = self.parent.fields
                return self.unique_name or self.core_name
        return self.core_name

    @property
    def parent(self) -> HasFields:
        """The field of which this is a subfield, or the ntuple."""
        above = self._above
        return above.parent if isinstance(above, RField) and above.is_base else above

    @property
    def description(self) -> str:
        """Its description."""
        return self._description

    @property
    def path(self) -> str:
        """Its dotted path."""
        return f"{self.parent.path}.{self.name}" if isinstance(self.parent, RField) else self.name

    @cached_property
    def typename(self) -> str:
        """Its normalized C++ type; empty for untyped records and collections."""
        return _arrow.full_type_name(self._arrow_field)

    @cached_property
    def fields(self) -> list["RField"]:
        """Its subfields; members of base classes come first."""
        return [field for field, _ in members(self)]

    @property
    def top_level(self) -> bool:
        """Whether it is a top-level field."""
        return self.parent is self.ntuple

    @property
    def index(self) -> int:
        """Its index among the fields of its parent."""
        return self.parent.fields.index(self)

    @cached_property
    def _arrow_field(self) -> Any:
        if not isinstance(self._above, RField):
            return self.ntuple.schema.field(self.core_name)
        kind = self._above._arrow_field.type
        while not pa.types.is_struct(kind):
            kind = kind.value_type
        # By index: members of maps have other names in Arrow than in the file.
        return kind.field(self._above.core_fields.index(self))

    def array(
        self,
        entry_start: SupportsIndex | None = None,
        entry_stop: SupportsIndex | None = None,
        *,
        library: Any = "ak",
        ak_add_doc: AddDoc = False,
        virtual: bool = False,
        access_log: Any = None,
        **others: Any,
    ) -> Any:
        """The values of the field in a range of entries."""
        check_options("array", others)
        if (library := library_name(library)) != "ak" and not virtual:
            if _arrow.is_size(self._arrow_field):
                return self.arrays(entry_start=entry_start, entry_stop=entry_stop, library=library)[self.name]
            column = self.ntuple.core[self.core_path]
            return column.array(entry_start, entry_stop, library)
        which: dict[str, Any] = {"entry_start": entry_start, "entry_stop": entry_stop, "library": library}
        arrays = self.arrays(**which, ak_add_doc=ak_add_doc, virtual=virtual, access_log=access_log)
        return arrays[uproot_name(arrays, self.name)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.array(library="np"), dtype)

    def _patterns(self) -> list[str]:
        return [_select.escape_glob(self.core_path)]

    def _from_top(self, arrays: Any) -> Any:
        arrays = flatten(arrays, self.ntuple)
        for name in self.path.split(".")[:-1]:
            arrays = arrays[uproot_name(arrays, name)]
        return arrays

    def _columns(self, batch: Any, library: str, entries: Any, how: How) -> Any:
        names = self.core_path.removeprefix(batch.schema.names[0]).split(".")[1:]
        field, column = _arrow.extract_subfield(batch.schema.field(0), batch.column(0), names)
        alone = pa.record_batch([column], schema=pa.schema([field.with_name(self.name)]))
        return to_library(alone, library, entries, None, how)

    def __reduce__(self) -> tuple[object, ...]:
        return HasFields.__getitem__, (self.ntuple, f".{self.path}")

    def __repr__(self) -> str:
        below = f" ({len(self)} subfields)" if len(self) else ""
        return f"<RField {self.name!r}{below} in RNTuple {self.ntuple.name!r}>"
