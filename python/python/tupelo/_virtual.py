"""Awkward arrays whose buffers are read when they are touched first."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from . import _arrow, _core, _select
from ._awkward import Style, content, to_awkward
from ._messages import short
from .errors import InvalidArgumentError

Read = Callable[[str], Any]
"""From a dotted path to a `pyarrow.RecordBatch` of one column, in which nothing lies beside the path."""
Steps = tuple[int | None, ...]
"""The way down in an Awkward layout: into which of several contents, or None for the only one."""


class Accessed(NamedTuple):
    """What ``access_log`` is told of each buffer when it is made."""

    field_name: str
    """Dotted path of the field that was read for it."""
    buffer: str
    """``"data"``, ``"offsets"``, ``"index"``, ``"tags"`` or ``"mask"``."""
    entry_start: int
    entry_stop: int


def check(access_log: Any, virtual: bool, **others: object) -> None:
    """Raises `InvalidArgumentError` for keywords that do not go together."""
    if not virtual:
        if access_log is not None:
            raise InvalidArgumentError("'access_log' cannot be used with 'virtual=False'")
        return
    for name, value in others.items():
        if value is not None:
            raise InvalidArgumentError(f"'{name}' cannot be used with 'virtual=True'")
    if access_log is not None and not hasattr(access_log, "__iadd__"):
        raise InvalidArgumentError(f"access_log is a list or what else has '+=', not {short(access_log)}")


def virtual_arrays(core: "_core.Ntuple", request: _select.Request, style: Style, access_log: Any) -> Any:
    """An `ak.Array` of what a request asks for, of which nothing is read yet.

    Its type depends on the fields alone. Values are read field by field: the members of records, and of the items of
    collections, each by themselves; pairs, tuples and variants whole. What several of them have in common, as the ends
    of the lists around them, comes with one that was read already, or with the first.
    """
    import awkward as ak

    if request.computed:
        raise InvalidArgumentError(f"'{request.computed[0][0]}' is computed, which cannot be with 'virtual=True'")
    schema = core.arrow_schema(request)
    patterns = _patterns_below(schema) if request.patterns else lambda path: [_select.literal(path)]

    def read(path: str) -> Any:
        return replace(request, patterns=patterns(path)).read_as_stream(core)

    style = replace(style, fixed_types=True)
    reader = _Reader(read, style, access_log, request.entry_start, request.entry_stop)
    length = _Length(request.entry_stop - request.entry_start)
    columns = [
        reader.twin(template, name, (), length, [], True)
        for name, template in zip(schema.names, _templates(core, request, schema, style), strict=True)
    ]
    record = ak.contents.RecordArray(columns, schema.names, length=length.known, parameters=style.whole(schema))
    return ak.Array(record)


def _templates(core: "_core.Ntuple", request: _select.Request, schema: Any, style: Style) -> list[Any]:
    """What becomes of each field, without entries."""
    # Thousands of fields have few types. Those of nested ones say more than Arrow's.
    keys = [
        (
            (_arrow.whole_type_name(field) or index) if pa.types.is_nested(field.type) else _arrow.is_size(field),
            field.type,
            field.nullable,
        )
        for index, field in enumerate(schema)
    ]
    if style.add_doc is False and not request.patterns:
        firsts = list({key: schema.field(index).name for index, key in reversed(list(enumerate(keys)))}.values())
        request = replace(request, patterns=[_select.literal(name) for name in firsts])
    empty = core.read(replace(request, entry_stop=request.entry_start))
    made = [content(field, column, style) for field, column in zip(empty.schema, empty.columns, strict=True)]
    if len(made) == len(keys):
        return made
    by_key = dict(zip((keys[schema.get_field_index(name)] for name in empty.schema.names), made, strict=True))
    return [by_key[key] for key in keys]


def _patterns_below(schema: Any) -> Callable[[str], list[str]]:
    """Of what was chosen, all that is below a path."""
    rows = _core.schema_fields(schema)
    parents = {parent for _, parent, *_ in rows}
    leaves = [path for index, (path, *_) in enumerate(rows) if index not in parents]
    return lambda path: [_select.literal(leaf) for leaf in leaves if leaf == path or leaf.startswith(f"{path}.")]


@lru_cache
def _unknown_length() -> Any:
    from awkward._nplikes.shape import unknown_length

    return unknown_length


class _Length:
    """How many there are: known, or what a function says, or else as many as are read."""

    def __init__(self, known: int | None = None, find: Callable[[], int] | None = None) -> None:
        self.known = known
        self._find = find

    def plus(self, more: int) -> "_Length":
        return self._map(lambda length: length + more)

    def times(self, factor: int) -> "_Length":
        return self._map(lambda length: length * factor)

    def _map(self, change: Callable[[int], int]) -> "_Length":
        if self.known is not None:
            return _Length(change(self.known))
        find = self._find
        return _Length(None, None if find is None else lambda: change(find()))

    @property
    def shape(self) -> Any:
        """For Awkward, which has a word for what is not known."""
        return _unknown_length() if self.known is None else self.known

    def now(self) -> int | None:
        """The number, if it can be known without the values."""
        return self._find() if self.known is None and self._find is not None else self.known

    @property
    def finder(self) -> Callable[[], int] | None:
        return self._find


class _Reader:
    """Makes buffers when they are touched, from fields that are read once."""

    def __init__(self, read: Read, style: Style, access_log: Any, start: int, stop: int) -> None:
        import awkward as ak

        self._awkward = ak
        try:
            from awkward._nplikes.numpy import Numpy
            from awkward._nplikes.virtual import VirtualNDArray
        except ImportError as missing:
            raise ImportError("virtual=True needs Awkward 2.8.11 or newer: pip install -U awkward") from missing
        self._virtual, self._nplike = VirtualNDArray, Numpy.instance()
        self._read = read
        self._style = style
        self._log = access_log
        self._range = start, stop
        self._layouts: dict[str, Any] = {}
        self._lock = RLock()

    def twin(self, template: Any, path: str, steps: Steps, length: _Length, leaves: list[str], may_split: bool) -> Any:
        """A virtual layout like the template, of what lies under a path, some steps below the top.

        What can be read for it is appended to ``leaves``.
        """
        ak, kinds = self._awkward, self._awkward.contents
        parameters = template.parameters
        if template.is_numpy:
            # These and lists first, and without more ado: there may be thousands.
            leaves.append(path)
            data = self._buffer((path,), steps, "data", template.dtype, length)
            return kinds.NumpyArray(data, parameters=parameters)
        below: list[str] = []
        if template.is_list and not template.is_regular:
            offsets = self._buffer(below, steps, "offsets", np.int64, length.plus(1))
            items = _Length(None, lambda: int(offsets[-1]))
            content = self.twin(template.content, path, (*steps, None), items, below, may_split)
            leaves += below
            return kinds.ListOffsetArray(ak.index.Index64(offsets), content, parameters=parameters)

        def buffer(name: str, dtype: Any, length: _Length = length) -> Any:
            return self._buffer(below, steps, name, dtype, length)

        def inner(length: _Length = length, step: int | None = None, split: bool = may_split) -> Any:
            child = template.content if step is None else template.contents[step]
            return self.twin(child, path, (*steps, step), length, below, split)

        match template:
            case kinds.EmptyArray():
                below.append(path)
                made = template
            case kinds.RegularArray():
                items = inner(length.times(template.size))
                made = kinds.RegularArray(items, template.size, length.shape, length.finder, parameters=parameters)
            case kinds.IndexedOptionArray() if template.content.is_unknown and template.length:
                # What stands in variants for no value is the same everywhere.
                made = template
            case kinds.IndexedOptionArray():
                index = ak.index.Index64(buffer("index", np.int64))
                made = kinds.IndexedOptionArray(index, inner(_Length()), parameters=parameters)
            case kinds.ByteMaskedArray():
                mask = ak.index.Index8(buffer("mask", np.int8))
                made = kinds.ByteMaskedArray(mask, inner(), template.valid_when, parameters=parameters)
            case kinds.UnmaskedArray():
                made = kinds.UnmaskedArray(inner(), parameters=parameters)
            case kinds.RecordArray():
                if may_split and not template.is_tuple and template.fields:
                    members = [
                        self.twin(child, f"{path}.{name}", (*steps, 0), length, below, True)
                        for name, child in zip(template.fields, template.contents, strict=True)
                    ]
                else:
                    below.append(path)
                    members = [inner(length, step, False) for step in range(len(template.contents))]
                names = None if template.is_tuple else template.fields
                made = kinds.RecordArray(members, names, length.shape, length.finder, parameters=parameters)
            case _:
                # A variant: each of its alternatives has as many values as its tags say.
                below.append(path)
                tags = ak.index.Index8(buffer("tags", np.int8))
                index = ak.index.Index64(buffer("index", np.int64))
                values = [inner(_Length(), step, False) for step in range(len(template.contents))]
                made = kinds.UnionArray(tags, index, values, parameters=parameters)
        leaves += below
        return made

    def _buffer(self, paths: Sequence[str], steps: Steps, name: str, dtype: Any, length: _Length) -> Any:
        """One buffer of what is some steps below the top in each of these fields."""

        def generate() -> Any:
            with self._lock:
                path = next((path for path in paths if path in self._layouts), paths[0])
                layout = self._layout(path)
                for step in steps:
                    layout = layout.content if step is None else layout.contents[step]
                values = getattr(layout, name)
                values = values if name == "data" else values.data
                if self._log is not None:
                    # What else it may be, it has `+=`.
                    self._log += [Accessed(path, name, *self._range)]
            values = np.asarray(values, dtype=dtype)
            known = length.now()
            return values if known is None else values[:known]

        find = length.finder
        shape = None if find is None else lambda: (find(),)
        return self._virtual(self._nplike, (length.shape,), dtype, generate, shape)

    def _layout(self, path: str) -> Any:
        """The column in which a path lies, read once."""
        if path not in self._layouts:
            self._layouts[path] = to_awkward(self._read(path), self._style).layout.contents[0]
        return self._layouts[path]
