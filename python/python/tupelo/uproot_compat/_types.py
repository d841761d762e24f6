"""The types of ntuples as in uproot: NumPy and Awkward types, and the forms of data."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from .. import _arrow, _core
from .._checks import check_name
from .._messages import short_repr
from ..errors import InvalidArgumentError


def is_types(what: Any) -> bool:
    """Whether a mapping declares types, at any depth, instead of giving data.

    Strings and tuples do if NumPy or Awkward accept them as a type.
    """
    if isinstance(what, Mapping):
        return len(what) > 0 and all(isinstance(name, str) for name in what) and all(map(_is_type, what.values()))
    return False


def _is_type(what: Any) -> bool:
    import awkward as ak

    if isinstance(what, str):
        return _dtype(what) is not None or _form_of_text(what) is not None
    if isinstance(what, tuple):
        return _dtype(what) is not None
    return is_types(what) or isinstance(what, np.dtype | type | ak.types.Type | ak.types.ArrayType)


def form_of(what: Any, path: str = "") -> Any:
    """The Awkward form of a declared type: a NumPy or Awkward type, or a mapping of these.

    Raises `TypeError` for other values.
    """
    import awkward as ak

    if isinstance(what, Mapping):
        return ak.forms.RecordForm([form_of(one, name) for name, one in what.items()], list(what))
    if isinstance(what, ak.forms.Form):
        return what
    if isinstance(what, ak.types.Type | ak.types.ArrayType):
        return ak.forms.from_type(what.content if isinstance(what, ak.types.ArrayType) else what)
    if (dtype := _dtype(what)) is not None:
        form = _form_of_dtype(dtype)
    else:
        form = _form_of_text(what) if isinstance(what, str) else None
    if form is None:
        raise TypeError(f"field '{path}': {short_repr(what)} is not a NumPy or Awkward type that RNTuple can store")
    return form


def _dtype(what: Any) -> np.dtype[Any] | None:
    try:
        found: np.dtype[Any] = np.dtype(what)
    except (TypeError, ValueError, SyntaxError):
        return None
    return found


def _form_of_dtype(dtype: np.dtype[Any]) -> Any:
    import awkward as ak

    base, shape = dtype.subdtype or (dtype, ())
    if base.kind not in "biuf" or base.itemsize > 8:
        return None
    form = ak.forms.NumpyForm(base.name)
    for size in reversed(shape):
        form = ak.forms.RegularForm(form, size)
    return form


def _form_of_text(text: str) -> Any:
    import awkward as ak

    try:
        return ak.forms.from_type(ak.types.from_datashape(text, highlevel=False))
    except Exception:
        return None


def schema_of(form: Any) -> Any:
    """The `pyarrow.Schema` of the fields of an Awkward form, with its documentation as descriptions.

    Raises `TypeError` for a form without named fields.
    """
    while form.is_indexed and not form.is_option and not form.is_union:
        form = form.content
    if not form.is_record or form.is_tuple:
        raise TypeError(f"expected a record with named fields, not {form.type}")
    fields = []
    for name, inner in zip(form.fields, form.contents, strict=True):
        check_name(name, "a field")
        fields.append(_field(name, name, inner))
    text = form.parameters.get("__doc__")
    return pa.schema(fields, metadata={_arrow.DESCRIPTION: text} if text else None)


def _field(name: str, path: str, form: Any) -> Any:
    """The Arrow field of a form. Descriptions do not apply to its items and members."""
    import awkward as ak

    text, nullable = form.parameters.get("__doc__"), False
    while form.is_option or (form.is_indexed and not form.is_union):
        nullable = nullable or (form.is_option and not isinstance(form, ak.forms.UnmaskedForm))
        form = form.content
        text = text or form.parameters.get("__doc__")
    kind, metadata = _kind(path, form)
    if text:
        metadata[_arrow.DESCRIPTION] = text
    return pa.field(name, kind, nullable or form.is_union, metadata=metadata or None)


def _kind(path: str, form: Any) -> tuple[Any, dict[str, str]]:
    """The Arrow type of a form without options, and the metadata of its field."""
    special = form.parameters.get("__array__")
    if special in ("string", "bytestring"):
        return (pa.large_string() if special == "string" else pa.large_binary()), {}
    if form.is_unknown:
        raise InvalidArgumentError(f"field '{path}' has no values and so an unknown type; declare it")
    if form.is_numpy:
        return _of_numbers(path, form), {}
    if form.is_regular:
        item = _field("item", path, form.content)
        return pa.list_(item, form.size), _untyped([item])
    if form.is_list:
        return pa.large_list(_field("item", path, form.content)), {}
    if form.is_union:
        below = [_field(f"_{i}", path, inner) for i, inner in enumerate(form.contents)]
        return pa.dense_union([pa.field("valueless", pa.null()), *below]), _untyped(below)
    if not form.is_tuple:
        named = zip(form.fields, form.contents, strict=True)
        return pa.struct([_field(name, f"{path}.{name}", inner) for name, inner in named]), {}
    members = [_field(f"_{i}", f"{path}.{i}", inner) for i, inner in enumerate(form.contents)]
    types = _core.type_names(pa.schema(members))
    return pa.struct(members), {_arrow.TYPE: f"std::tuple<{','.join(types)}>"} if all(types) else {}


def _of_numbers(path: str, form: Any) -> Any:
    try:
        kind = pa.from_numpy_dtype(np.dtype(form.primitive))
    except (TypeError, pa.ArrowNotImplementedError):
        kind = None
    if kind is None or not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise TypeError(f"field '{path}': RNTuple cannot store values of type {form.primitive}")
    for size in reversed(form.inner_shape):
        kind = pa.list_(pa.field("item", kind, nullable=False), size)
    return kind


def _untyped(below: list[Any]) -> dict[str, str]:
    """The metadata of an array or variant: an empty type name if one of its contents has none."""
    return {} if all(_core.type_names(pa.schema(below))) else {_arrow.TYPE: ""}


def unreadable_in_root(schema: Any) -> list[str]:
    """Paths of the arrays and variants without a type name, which ROOT cannot read."""
    found: list[str] = []

    def visit(field: Any, path: str) -> None:
        kind = field.type
        is_sized = pa.types.is_fixed_size_list(kind) or pa.types.is_union(kind)
        if is_sized and (field.metadata or {}).get(_arrow.TYPE.encode()) == b"":
            found.append(path)
        if pa.types.is_struct(kind) or pa.types.is_union(kind):
            for member in kind:
                visit(member, f"{path}.{member.name}")
        elif pa.types.is_nested(kind):
            visit(kind.value_field, path)

    for field in schema:
        visit(field, field.name)
    return list(dict.fromkeys(found))
