"""Awkward arrays whose buffers are read on first use."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from .. import _core
from .._base import arrow
from .._base.messages import short_repr
from .._from_arrow import forms
from .._from_arrow.awkward import AwkwardOptions, content, to_awkward
from ..errors import InvalidArgumentError
from . import _select

OLDEST_AWKWARD = (2, 8, 11)
"""The first version of Awkward with virtual arrays of all types."""

Read = Callable[[str], Any]
"""Reads a dotted path as a `pyarrow.RecordBatch` of one column that contains nothing else."""
Steps = tuple[int | None, ...]
"""A path in an Awkward layout: the index of a content, or None for the only one."""


class Accessed(NamedTuple):
    """The item of an ``access_log`` for each buffer that is read."""

    field_name: str
    """Dotted path of the field that was read for it."""
    buffer: str
    """``"data"``, ``"offsets"``, ``"index"``, ``"tags"`` or ``"mask"``."""
    entry_start: int
    entry_stop: int


def check(access_log: Any, virtual: bool, **others: object) -> None:
    """Raises `InvalidArgumentError` for incompatible keywords."""
    if not virtual:
        if access_log is not None:
            raise InvalidArgumentError("'access_log' cannot be used with 'virtual=False'")
        return
    for name, value in others.items():
        if value is not None:
            raise InvalidArgumentError(f"'{name}' cannot be used with 'virtual=True'")
    if access_log is not None and not hasattr(access_log, "__iadd__"):
        raise InvalidArgumentError(
            f"expected access_log as a list or an object with '+=', not {short_repr(access_log)}"
        )


def virtual_arrays(core: "_core.Table", request: _select.Request, style: AwkwardOptions, access_log: Any) -> Any:
    """An `ak.Array` for a request of which nothing is read yet.

    Its type depends on the fields only. Values are read field by field: members of records, also in collections,
    separately; pairs, tuples and variants as a whole. Buffers that several fields share, such as the offsets of lists
    around them, come with a field that was already read, or with the first one.
    """
    import awkward as ak

    if tuple(map(int, re.findall(r"\d+", ak.__version__)[:3])) < OLDEST_AWKWARD:
        oldest = ".".join(map(str, OLDEST_AWKWARD))
        raise ImportError(f"virtual=True needs Awkward {oldest} or newer, not {ak.__version__}: pip install -U awkward")
    if request.computed:
        raise InvalidArgumentError(
            f"'{request.computed[0][0]}' is an expression, which 'virtual=True' does not support"
        )
    schema = core.arrow_schema(request)
    patterns = _patterns_below(schema) if request.patterns else lambda path: [_select.escape_glob(path)]

    def read(path: str) -> Any:
        return replace(request, patterns=patterns(path)).read_as_stream(core)

    style = replace(style, fixed_types=True)
    reader = _Reader(read, style, access_log, request.entry_start, request.entry_stop)
    templates = [template.form for template in _templates(core, request, schema, style)]
    for name, template in zip(schema.names, templates, strict=True):
        reader.add_buffers(template, name, (), [], True)
    form = ak.forms.RecordForm(templates, schema.names, parameters=style.ntuple_parameters(schema), form_key="entries")
    return ak.from_buffers(form, request.entry_stop - request.entry_start, reader.buffers)


def _templates(core: "_core.Table", request: _select.Request, schema: Any, style: AwkwardOptions) -> list[Any]:
    """The layout of each field without entries."""
    # Thousands of fields have few types. For nested fields, C++ types determine more than Arrow types.
    keys = [
        (
            (arrow.full_type_name(field) or index) if pa.types.is_nested(field.type) else arrow.is_size(field),
            field.type,
            field.nullable,
        )
        for index, field in enumerate(schema)
    ]
    if style.add_doc is False and not request.patterns:
        firsts = list({key: schema.field(index).name for index, key in reversed(list(enumerate(keys)))}.values())
        request = replace(request, patterns=[_select.escape_glob(name) for name in firsts])
    empty = core.read(replace(request, entry_stop=request.entry_start))
    made = [content(field, column, style) for field, column in zip(empty.schema, empty.columns, strict=True)]
    if len(made) == len(keys):
        return made
    by_key = dict(zip((keys[schema.get_field_index(name)] for name in empty.schema.names), made, strict=True))
    return [by_key[key] for key in keys]


def _patterns_below(schema: Any) -> Callable[[str], list[str]]:
    """A function that gives the selected leaves below a path."""
    fields = _core.schema_fields(schema)
    parents = {field.parent for field in fields}
    leaves = [field.path for index, field in enumerate(fields) if index not in parents]
    return lambda path: [_select.escape_glob(leaf) for leaf in leaves if leaf == path or leaf.startswith(f"{path}.")]


def _missing_index() -> Any:
    """The index of a layout with a single missing value."""
    return np.array([-1], dtype=np.int64)


class _Reader:
    """Creates buffers on first use, from fields that are read once."""

    def __init__(self, read: Read, style: AwkwardOptions, access_log: Any, start: int, stop: int) -> None:
        self.buffers: dict[str, Callable[[], Any]] = {}
        """For `awkward.from_buffers`."""
        self._num_forms = 0
        self._read = read
        self._style = style
        self._log = access_log
        self._range = start, stop
        self._layouts: dict[str, Any] = {}
        self._lock = RLock()

    def add_buffers(self, form: Any, path: str, steps: Steps, leaves: list[str], may_split: bool) -> None:
        """Adds the buffers of a form and of all below it, and sets their form keys.

        ``path`` is the field in which the form lies, ``steps`` the way to it in the layout of that field. The fields
        that can be read for it are appended to ``leaves``. With ``may_split`` the members of records are read one by
        one.
        """
        form.form_key = str(self._num_forms)
        self._num_forms += 1
        below: list[str] = []
        # The alternative of a variant for missing values is constant; nothing is read for it.
        is_missing = not may_split and form.is_option and form.content.is_unknown
        for key, dtype in form.expected_from_buffers(recursive=False).items():
            read = partial(self._buffer, below, steps, forms.parse_buffer_key(key)[1], dtype)
            self.buffers[key] = _missing_index if is_missing else read
        if may_split and form.is_record and not form.is_tuple and form.fields:
            for name, content in zip(form.fields, form.contents, strict=True):
                self.add_buffers(content, f"{path}.{name}", (*steps, 0), below, True)
        elif form.is_record or form.is_union:
            below.append(path)
            for step, content in enumerate(form.contents):
                self.add_buffers(content, path, (*steps, step), below, False)
        elif form.is_numpy or form.is_unknown:
            below.append(path)
        else:
            self.add_buffers(form.content, path, (*steps, None), below, may_split)
        leaves += below

    def _buffer(self, paths: Sequence[str], steps: Steps, name: str, dtype: Any) -> Any:
        """The buffer ``name`` of the layout some steps below the top of any of these fields."""
        with self._lock:
            path = next((path for path in paths if path in self._layouts), paths[0])
            layout = self._layout(path)
            for step in steps:
                layout = layout.content if step is None else layout.contents[step]
            values = getattr(layout, name)
            values = values if name == "data" else values.data
            if self._log is not None:
                # It need not be a list.
                self._log += [Accessed(path, name, *self._range)]
        return np.asarray(values, dtype=dtype)

    def _layout(self, path: str) -> Any:
        """The column in which a path lies, read once."""
        if path not in self._layouts:
            self._layouts[path] = to_awkward(self._read(path), self._style).layout.contents[0]
        return self._layouts[path]
