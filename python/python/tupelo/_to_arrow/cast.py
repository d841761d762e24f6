"""Casts of Arrow data to declared fields."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .._base.arrow import fixed_values, full_type_name, is_optional_list
from ..errors import InvalidArgumentError

LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_list_view, pa.types.is_large_list_view)
"""Predicates of the variable-length list types."""


def cast_table(table: Any, schema: Any) -> Any:
    """Casts a table to a schema, with its columns in the order of the schema.

    Numbers are converted if only digits of a float are lost: 3.0 becomes an integer; 3.5, and 300 as a byte, are
    errors. Raises `InvalidArgumentError` for values that do not fit and for missing or unknown columns.
    """
    if table.schema.names != schema.names:
        _check_names("columns", table.schema.names, schema.names)
        table = table.select(schema.names)
    columns = []
    for field, column in zip(schema, table.columns, strict=True):
        chunks = [trim(chunk) for chunk in column.chunks]
        if column.type != field.type or (column.null_count and not field.nullable):
            chunks = [cast_array(chunk, field, field.name) for chunk in chunks]
        columns.append(pa.chunked_array(chunks, None if chunks else field.type))
    return pa.Table.from_arrays(columns, schema.names)


def _check_names(what: str, given: list[str], wanted: list[str]) -> None:
    duplicate = sorted({name for name in given if given.count(name) > 1})
    missing = [name for name in wanted if name not in given]
    unknown = [name for name in given if name not in wanted]
    wrong = [("duplicate", duplicate), ("missing", missing), ("unknown", unknown)]
    texts = [f"{how}: {', '.join(map(repr, names))}" for how, names in wrong if names]
    if texts:
        raise InvalidArgumentError(f"the {what} do not match the declared ones ({'; '.join(texts)})")


def trim(array: Any) -> Any:
    """Removes values outside of the slice of an array: the engine's Arrow cannot slice nested records, and nulls
    outside of the slice would count.
    """
    if not _needs_trimming(array):
        return array
    kind, mask = array.type, array.is_null() if array.null_count else None
    if pa.types.is_struct(kind):
        members = [trim(array.field(index)) for index in range(kind.num_fields)]
        return pa.StructArray.from_arrays(members, fields=list(kind), mask=mask)
    if pa.types.is_fixed_size_list(kind):
        return pa.FixedSizeListArray.from_arrays(trim(fixed_values(array)), type=kind, mask=mask)
    offsets = array.offsets.to_numpy()
    values = trim(array.values.slice(offsets[0], offsets[-1] - offsets[0]))
    return type(array).from_arrays(pa.array(offsets - offsets[0]), values, type=kind, mask=mask)


def _needs_trimming(array: Any) -> bool:
    """Whether an array of records or lists has values outside of its slice."""
    kind = array.type
    if pa.types.is_struct(kind):
        return array.offset > 0 or any(_needs_trimming(array.field(index)) for index in range(kind.num_fields))
    if pa.types.is_fixed_size_list(kind):
        return len(array.values) != len(array) * kind.list_size or _needs_trimming(array.values)
    if (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and len(array):
        offsets = array.offsets
        is_whole = offsets[0].as_py() == 0 and offsets[-1].as_py() == len(array.values)
        return array.offset > 0 or not is_whole or _needs_trimming(array.values)
    return False


def list_view_to_list(views: Any) -> Any:
    """Converts a list view to a list. Arrow's own cast gives wrong offsets (pyarrow 26: the last one is 0)."""
    sizes = np.where(views.is_valid().to_numpy(zero_copy_only=False), views.sizes.to_numpy(), 0)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    mask = views.is_null() if views.null_count else None
    return pa.LargeListArray.from_arrays(pa.array(offsets), views.flatten(), mask=mask)


def cast_array(array: Any, field: Any, path: str) -> Any:
    """Casts an array to the physical type of a field; the engine converts strings and bytes."""
    have, want = array.type, field.type
    if pa.types.is_dictionary(have):
        return cast_array(_decoded(array), field, path)
    if (is_optional_list(field) and not _is_list(have)) or _is_optional_record(array, field):
        there = np.asarray(array.is_valid())
        offsets = np.concatenate([[0], np.cumsum(there)])
        items = cast_array(array.filter(pa.array(there)), want.value_field, path)
        return pa.LargeListArray.from_arrays(pa.array(offsets), items)
    if pa.types.is_union(want):
        return array if have == want else _cast_union(array, want, path)
    check_missing(array.null_count, field, path)
    if have == want or _are_strings(have, want):
        return array
    if pa.types.is_null(have):
        return pa.nulls(len(array), want)
    if pa.types.is_struct(want) and pa.types.is_struct(have):
        return _cast_struct(array, want, path)
    if pa.types.is_large_list(want) or pa.types.is_fixed_size_list(want):
        lists = _cast_lists(array, want, path)
        if lists is not None:
            return lists
    elif _is_number(have) and _is_number(want):
        try:
            fitting = array.cast(want)
        except pa.ArrowInvalid as error:
            raise InvalidArgumentError(f"field '{path}': {text_of(error)}") from error
        if _is_lossy(array, fitting):
            raise InvalidArgumentError(f"field '{path}': some values do not fit the declared type {want}")
        return fitting
    raise InvalidArgumentError(f"field '{path}': values of the Arrow type {have} do not fit the declared type {want}")


def _is_optional_record(array: Any, field: Any) -> bool:
    """Whether optional records, or lists of them, are stored as untyped collections of at most one record."""
    have, want = array.type, field.type
    if not pa.types.is_large_list(want) or full_type_name(field) or _record_depth(want) != _record_depth(have) + 1:
        return False
    # If several levels qualify, it is the outermost one unless the items are nullable.
    return bool(pa.types.is_struct(have) or array.null_count or not have.value_field.nullable)


def _record_depth(kind: Any) -> int:
    """The number of lists around records; negative without records."""
    depth = 0
    while _is_list(kind):
        kind, depth = kind.value_type, depth + 1
    return depth if pa.types.is_struct(kind) else -2


def check_missing(count: int, field: Any, path: str) -> None:
    """Raises `InvalidArgumentError` for missing values of a field that is not nullable."""
    if count and not field.nullable:
        raise InvalidArgumentError(
            f"field '{path}': {count} values are missing, but the field is not declared as std::optional"
        )


def _decoded(array: Any) -> Any:
    """The values of a dictionary array. Arrow cannot `take` from string views, which polars uses for categories."""
    values = array.dictionary
    if pa.types.is_string_view(values.type):
        values = values.cast(pa.large_string())
    elif pa.types.is_binary_view(values.type):
        values = values.cast(pa.large_binary())
    return values.take(array.indices)


def _is_lossy(array: Any, fitting: Any) -> bool:
    """Whether a cast lost more than digits of a float: Arrow may convert numbers to infinity or booleans."""
    if pa.types.is_boolean(fitting.type):
        return not fitting.cast(array.type).equals(array)
    if pa.types.is_floating(array.type) and pa.types.is_floating(fitting.type):
        return bool(pc.any(pc.and_(pc.is_inf(fitting), pc.is_finite(array))).as_py())
    return False


def _cast_struct(array: Any, want: Any, path: str) -> Any:
    members = array.flatten() if array.null_count else [array.field(i) for i in range(array.type.num_fields)]
    given = dict(zip(array.type.names, members, strict=True))
    # Members of tuples are numbered differently in Awkward and RNTuple.
    numbered = all(name.removeprefix("_").isdigit() for name in given)
    if numbered and len(members) == want.num_fields:
        given = dict(zip(want.names, members, strict=True))
    _check_names(f"members of '{path}'", list(given), want.names)
    fields = [member.with_nullable(member.nullable or bool(array.null_count)) for member in want]
    fitted = [cast_array(given[member.name], member, f"{path}.{member.name}") for member in fields]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(fitted, names=want.names, mask=mask)


def _cast_lists(array: Any, want: Any, path: str) -> Any:
    """Casts lists and their items to a list type; None for other arrays."""
    have, item = array.type, want.value_field
    if pa.types.is_list_view(have) or pa.types.is_large_list_view(have):
        array = list_view_to_list(array)
        have = array.type
    mask = array.is_null() if array.null_count else None
    is_fixed = pa.types.is_fixed_size_list(have)
    if pa.types.is_fixed_size_list(want):
        if is_fixed and have.list_size == want.list_size:
            starts = np.arange(array.offset, array.offset + len(array)) * want.list_size
        elif pa.types.is_list(have) or pa.types.is_large_list(have):
            starts = array.offsets.to_numpy()[:-1]
            lengths = np.diff(array.offsets.to_numpy())
            if (lengths[np.asarray(array.is_valid())] != want.list_size).any():
                raise InvalidArgumentError(f"field '{path}': expected every list to have {want.list_size} items")
        else:
            return None
        return _fixed_arrays(array, starts, want, path)
    if is_fixed:
        offsets = np.arange(len(array) + 1, dtype=np.int64) * have.list_size
        values = array.values.slice(array.offset * have.list_size, len(array) * have.list_size)
    elif pa.types.is_map(have):
        offsets = array.offsets.to_numpy().astype(np.int64)
        values = pa.StructArray.from_arrays([array.keys, array.items], names=item.type.names)
    elif pa.types.is_list(have) or pa.types.is_large_list(have):
        offsets = array.offsets.to_numpy().astype(np.int64)
        values = array.values
    elif _is_binary(have) and item.type == pa.uint8():
        return array
    else:
        return None
    values = cast_array(values, item, path)
    return pa.LargeListArray.from_arrays(pa.array(offsets), values, mask=mask)


def _cast_union(array: Any, want: Any, path: str) -> Any:
    """Casts values of one or several types to a variant, each to the alternative with the closest type."""
    if pa.types.is_union(array.type):
        codes = np.asarray(array.type_codes.to_numpy())
        is_dense = array.type.mode == "dense"
        places = array.offsets.to_numpy() if is_dense else np.arange(len(array)) + array.offset
        children = [(codes == code, array.field(i)) for i, code in enumerate(array.type.type_codes)]
        _check_union(codes, places, children, path)
    else:
        places, children = np.arange(len(array)), [(np.ones(len(array), dtype=bool), array)]
    indices: list[list[Any]] = [[] for _ in want]
    parts: list[list[Any]] = [[] for _ in want]
    nothing = next((index for index, alternative in enumerate(want) if pa.types.is_null(alternative.type)), None)
    for is_mine, child in children:
        mine = np.flatnonzero(is_mine)
        values = child.take(pa.array(places[mine]))
        if nothing is not None and values.null_count:
            missing = values.is_null().to_numpy(zero_copy_only=False)
            indices[nothing].append(mine[missing])
            parts[nothing].append(pa.nulls(int(missing.sum())))
            mine, values = mine[~missing], values.drop_null()
        if len(values):
            index, fitted = _cast_to_alternative(values, want, path)
            indices[index].append(mine)
            parts[index].append(fitted)
    return dense_union(want, len(array), indices, parts)


def _check_union(codes: Any, places: Any, children: list[tuple[Any, Any]], path: str) -> None:
    """Raises `InvalidArgumentError` for invalid type ids and offsets, which Arrow does not check."""
    known = np.zeros(len(codes), dtype=bool)
    for is_mine, child in children:
        outside = is_mine & ((places < 0) | (places >= len(child)))
        if outside.any():
            at = int(np.flatnonzero(outside)[0])
            raise InvalidArgumentError(
                f"'{path}': value {at} of the union is item {places[at]} of an alternative with {len(child)} items"
            )
        known |= is_mine
    if not known.all():
        at = int(np.flatnonzero(~known)[0])
        raise InvalidArgumentError(f"'{path}': value {at} of the union has type id {codes[at]}, which does not exist")


def dense_union(kind: Any, count: int, indices: list[list[Any]], parts: list[list[Any]]) -> Any:
    """Builds a variant of ``count`` values from the arrays of each alternative and the indices of their values."""
    tags, offsets = np.zeros(count, dtype=np.int8), np.zeros(count, dtype=np.int32)
    alternatives = []
    for code, alternative, numbers, values in zip(kind.type_codes, kind, indices, parts, strict=True):
        at = np.concatenate([np.zeros(0, dtype=np.int64), *numbers])
        tags[at], offsets[at] = code, np.arange(len(at))
        alternatives.append(pa.concat_arrays(values) if values else pa.nulls(0, alternative.type))
    names = [alternative.name for alternative in kind]
    return pa.UnionArray.from_dense(pa.array(tags), pa.array(offsets), alternatives, names, list(kind.type_codes))


def _cast_to_alternative(values: Any, want: Any, path: str) -> tuple[int, Any]:
    """The alternative of a variant for values of one type, and the values cast to it."""
    near = sorted((distance, index) for index, one in enumerate(want) if (distance := _distance(values.type, one.type)))
    refused: InvalidArgumentError | None = None
    for _, index in near:
        try:
            return index, cast_array(values, want.field(index), f"{path}.{want.field(index).name}")
        except InvalidArgumentError as error:
            refused = refused or error
    kinds = ", ".join(str(one.type) for one in want if not pa.types.is_null(one.type))
    raise refused or InvalidArgumentError(
        f"field '{path}': expected values of {kinds}, not of the Arrow type {values.type}"
    )


def _distance(have: Any, want: Any) -> int:
    """Distance between types: 1 if they are equal, 0 if one cannot be cast to the other."""
    if have == want or _are_strings(have, want):
        return 1
    families = pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_struct, _is_list
    if any(test(have) and test(want) for test in families):
        return 2
    return 3 if pa.types.is_integer(have) and pa.types.is_floating(want) else 0


def _fixed_arrays(array: Any, starts: Any, want: Any, path: str) -> Any:
    """Fixed-size arrays of lists with the right length, whose items begin at ``starts``."""
    size, is_there = want.list_size, np.asarray(array.is_valid())
    if is_there.all():
        start = int(starts[0]) if len(starts) else 0
        values = array.values.slice(start, len(array) * size)
        return pa.FixedSizeListArray.from_arrays(cast_array(values, want.value_field, path), size)
    if not is_there.any():
        return pa.nulls(len(array), want)
    # Missing arrays need values too: those of the first one that is not missing.
    starts = np.where(is_there, starts, starts[np.flatnonzero(is_there)[0]])
    values = array.values.take(pa.array((starts[:, None] + np.arange(size)).ravel()))
    values = cast_array(values, want.value_field, path)
    return pa.FixedSizeListArray.from_arrays(values, size, mask=pa.array(~is_there))


def _are_strings(*types: Any) -> bool:
    tests = (
        pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view,
        pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view,
    )  # fmt: skip
    return all(any(test(kind) for test in tests) for kind in types)


def _is_binary(kind: Any) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _is_list(kind: Any) -> bool:
    return bool(pa.types.is_fixed_size_list(kind) or any(test(kind) for test in LISTS))


def text_of(error: Exception) -> str:
    """The first line of an Arrow error message."""
    return (str(error).splitlines() or [type(error).__name__])[0]
