"""Awkward forms: keys, the buffers that a computation needs, and placeholders for buffers that are not read."""

from collections.abc import Callable, Iterator
from typing import Any

BUFFER_KEY = "{form_key}-{attribute}"
"""Pattern of the key of a buffer: Awkward's default."""

_LENGTH_ATTRIBUTES = frozenset(["offsets", "starts", "stops", "index", "tags"])
"""Buffers that determine the lengths of the contents below them."""


def parse_buffer_key(key: str) -> tuple[str, str]:
    """The form key and the attribute of a key of the pattern `BUFFER_KEY`."""
    form_key, _, attribute = key.rpartition("-")
    return form_key, attribute


def contents_of(form: Any) -> list[Any]:
    """The forms directly below a form."""
    if form.is_record or form.is_union:
        return list(form.contents)
    return [] if form.is_numpy or form.is_unknown else [form.content]


def with_form_keys(form: Any) -> Any:
    """A copy of a form with a unique key for every form in it."""
    import awkward as ak

    copied = ak.forms.from_dict(form.to_dict())
    for number, below in enumerate(walk(copied)):
        below.form_key = str(number)
    return copied


def walk(form: Any) -> Iterator[Any]:
    """A form and all forms in it."""
    yield form
    for content in contents_of(form):
        yield from walk(content)


def required_buffers(
    form: Any, report: Any, buffer_key: Any = BUFFER_KEY, parse: Callable[[str], tuple[str, str]] = parse_buffer_key
) -> set[str]:
    """Keys of the buffers that a computation needs: those that it touched, and those that determine their lengths.

    ``report`` is that of `awkward.typetracer.typetracer_with_report`.
    """
    with_shape = {parse(key)[0] for key in report.shape_touched}
    required = set(report.data_touched)

    def visit(form: Any, above: tuple[str, ...]) -> None:
        if form.form_key in with_shape:
            required.update(above)
        own = form.expected_from_buffers(buffer_key=buffer_key, recursive=False)
        lengths = (*above, *(key for key in own if parse(key)[1] in _LENGTH_ATTRIBUTES))
        for content in contents_of(form):
            visit(content, lengths)

    visit(form, ())
    return required


def placeholder(dtype: Any) -> Any:
    """A buffer without data: Awkward passes it on, and raises where a computation uses it."""
    import awkward as ak

    nplike = ak.contents.EmptyArray().backend.nplike
    return ak.typetracer.PlaceholderArray(nplike, (ak.typetracer.unknown_length,), dtype)


def placeholder_record(form: Any, length: int) -> Any:
    """A layout of a record form whose buffers are all placeholders."""
    import awkward as ak

    keyed = with_form_keys(form)
    buffers = {key: placeholder(dtype) for key, dtype in keyed.expected_from_buffers().items()}
    return ak.from_buffers(keyed, length, buffers, highlevel=False)
