"""Selection of fields and entries."""

import fnmatch
import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, SupportsIndex

import numpy as np

from .. import _core
from .._base.checks import check_text
from .._base.messages import short_repr
from .._base.sizes import as_integer, parse_bytes
from ..errors import InvalidArgumentError, NotFoundError, UnsupportedError

Filter = str | Callable[[str], bool] | Iterable[str | Callable[[str], bool]] | None
"""A glob (``*`` also matches dots), a regular expression ``"/pattern/i"``, a function of a string, a list of these of
which at least one must match, or None for everything."""

LIBRARIES = {"ak": "Awkward Array", "np": "NumPy", "arrow": "PyArrow", "pd": "pandas", "pl": "polars"}
"""The values of ``library``."""

_OPERATORS = re.compile(r"[\s()+/<>=&|]|\[[^\]]*(:|$)")
"""Characters of expressions that are rare in globs: text with them that matches no field is an expression."""
_WILDCARDS = re.compile(r"[*?\[\]{}]")

_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}

# Keywords of the uproot methods of the same names (some for trees only), and what to use instead.
_UNSUPPORTED_KEYWORDS = {
    "array_cache": "Tupelo does not cache arrays",
    "backend": "arrays are created in main memory; use ak.to_backend",
    "decompression_executor": "the engine decompresses in its own threads",
    "filter_branch": "an ntuple has fields, not branches; use `filter_field`",
    "interpretation_executor": "the engine decodes in its own threads",
    "interpreter": "the engine decodes in its own threads",
    "language": "see `Ntuple.arrays` for the syntax of expressions",
}


def reject_unknown(method: str, unknown: Mapping[str, object]) -> None:
    """Raises an error for unknown keywords.

    Raises `UnsupportedError` (a `NotImplementedError`) for keywords of other readers and `TypeError` for the rest.
    """
    for name in unknown:
        if name in _UNSUPPORTED_KEYWORDS:
            raise UnsupportedError(f"{method}() does not support {short_repr(name)}: {_UNSUPPORTED_KEYWORDS[name]}")
        raise TypeError(f"{method}() got an unexpected keyword argument {short_repr(name)}")


def entry_numbers_of(entries: Iterable[SupportsIndex], count: int) -> Any:
    """Entry numbers as a NumPy array of 64-bit integers; negative ones count from the end.

    Raises `InvalidArgumentError` for values that are not integers or out of range.
    """
    if isinstance(entries, str | bytes) or not isinstance(entries, Iterable):
        raise InvalidArgumentError(f"expected entries as a list of integers, not {short_repr(entries)}")
    array = _integers(entries)
    is_wrong = (array < -count) | (array >= count)
    if is_wrong.any():
        raise InvalidArgumentError(
            f"entry {short_repr(int(array[is_wrong][0]))} is out of range: the ntuple has {count} entries"
        )
    array = array.astype(np.int64)
    return np.where(array < 0, array + count, array)


def _integers(entries: Iterable[SupportsIndex]) -> Any:
    """Integers as an array; an object array if one does not fit into 64 bits."""
    if isinstance(entries, range):
        return _array(entries)
    if hasattr(entries, "__array__"):
        array = np.asarray(entries)
        if array.ndim == 1 and array.dtype.kind in "iu":
            return array
        if array.dtype.kind != "O" and array.size:
            raise _not_an_entry(array.flat[0] if array.ndim == 1 else entries)
        entries = array.tolist()
    listed = list(entries)
    # Check each type once, not each value.
    if not all(kind is int or issubclass(kind, np.integer) for kind in set(map(type, listed))):
        for entry in listed:
            if as_integer(entry) is None:
                raise _not_an_entry(entry)
        listed = [operator.index(entry) for entry in listed]
    return _array(listed)


def _array(numbers: range | list[Any]) -> Any:
    try:
        return np.array(numbers, dtype=np.int64)
    except OverflowError:
        return np.array(numbers, dtype=object)


def _not_an_entry(entry: object) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"expected entries as integers, not {short_repr(entry)}; numpy.flatnonzero converts a mask"
    )


def check_library(library: object) -> None:
    """Raises `UnsupportedError` for an unknown library."""
    if not isinstance(library, str) or library not in LIBRARIES:
        known = ", ".join(f"{short_repr(name)} ({what})" for name, what in LIBRARIES.items())
        raise UnsupportedError(
            f"unknown library={short_repr(library)}: expected {known}; for other libraries convert the result of "
            "'arrow'"
        )


def matcher(wanted: Filter) -> Callable[[str], bool]:
    """A predicate on strings for a filter.

    Raises `InvalidArgumentError` for invalid regular expressions and filters.
    """
    if wanted is None:
        return lambda text: True
    if callable(wanted):
        return wanted
    if isinstance(wanted, str):
        pattern = _compiled(wanted)
        return lambda text: pattern(text) is not None
    if isinstance(wanted, Iterable):
        several = [matcher(one) for one in wanted]
        return lambda text: any(fits(text) for fits in several)
    raise InvalidArgumentError(
        f"expected a filter as a glob, '/regex/', a function or a list of these, not {short_repr(wanted)}"
    )


def _compiled(text: str) -> Callable[[str], object]:
    body, slash, flags = text[1:].rpartition("/")
    if text.startswith("/") and slash and set(flags) <= set(_FLAGS):
        try:
            return re.compile(body, sum(_FLAGS[flag] for flag in set(flags))).search
        except re.error as error:
            raise InvalidArgumentError(f"{short_repr(text)} is not a valid regular expression: {error}") from None
    return re.compile(fnmatch.translate(text)).match


@dataclass
class Request:
    """What to read from an ntuple, and how: the argument of the engine."""

    patterns: list[str] | None = field(default_factory=list)
    """Dotted paths or globs. An empty list selects all fields, None selects no field."""
    computed: list[tuple[str, str]] = field(default_factory=list)
    """Computed columns: pairs of name and expression."""
    aliases: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of alias and expression."""
    given: Any = None
    """A `pyarrow.RecordBatch` with values for all entries, which expressions may use by name."""
    cut: str | None = None
    entry_start: int = 0
    entry_stop: int = 0
    entry_numbers: str | None = None
    """Name of a column of entry numbers to append."""
    binary_strings: bool = False
    schema: Any = None
    order: list[str] = field(default_factory=list)
    """Names of columns in the requested order; empty if fields come in the order of the file."""

    def ordered(self, batch: Any) -> Any:
        """Reorders the columns of a `pyarrow.RecordBatch` as requested."""
        return batch.select(self.order) if self.order and batch.schema.names != self.order else batch

    def read_as_stream(self, core: "_core.Table") -> Any:
        """Reads everything into one `pyarrow.RecordBatch` with the schema of a stream, which does not depend on the
        values.
        """
        if (entries := self.entry_stop - self.entry_start) == 0:
            return core.read(self)
        return next(core.batches(self, batch_entries=entries)).data

    def add(self, name: str, known: Mapping[str, object]) -> None:
        """Adds an alias, the path of a field, an expression or a glob.

        Raises `InvalidArgumentError` for anything else and `NotFoundError` for regular expressions.
        """
        aliases = {alias for alias, _ in self.aliases}
        if self.given is not None:
            aliases.update(self.given.schema.names)
        if len(name) > 1 and name.startswith("/") and name.endswith("/") and name not in known:
            raise NotFoundError(f"no field is named {short_repr(name)}; pass regular expressions as `filter_name`")
        if name in dict(self.computed):
            return
        _check_single_name(name, known)
        if name in aliases:
            self.computed.append((name, f"`{name}`"))
        elif name in known:
            self._add_pattern(escape_glob(name))
        elif self.is_expression(name, aliases, known):
            self.computed.append((name, name))
        else:
            self._add_pattern(name)

    def _add_pattern(self, pattern: str) -> None:
        if self.patterns is None:
            self.patterns = []
        self.patterns.append(pattern)

    @staticmethod
    def is_expression(text: str, aliases: Collection[str], known: Mapping[str, object]) -> bool:
        """Whether a text is an expression over known names; ``x*y`` may also be a glob, ``x_*`` is always one.

        Raises `InvalidArgumentError` for text that is neither.
        """
        try:
            names = _core.expression_names(text)
        except InvalidArgumentError:
            if is_glob(text) and (fnmatch.filter(known, text) or not _OPERATORS.search(text)):
                return False
            raise
        if all(any(path in aliases or path in known for path in _parents(name)) for name in names):
            return True
        # A single name is an unknown field, not an expression.
        return names != [text] and not (is_glob(text) and fnmatch.filter([*aliases, *known], text))


def _check_single_name(text: str, known: Mapping[str, object]) -> None:
    """Raises `InvalidArgumentError` for several field names in one string."""
    several = [part.strip() for part in text.split(",")]
    if text in known or len(several) == 1:
        return
    # A glob may have commas in braces; its parts match nothing.
    if all(part in known or (is_glob(part) and fnmatch.filter(known, part)) for part in several):
        raise InvalidArgumentError(
            f"{short_repr(text)} names several fields; pass them as a list: {short_repr(several)}"
        )


def _parents(path: str) -> Iterator[str]:
    """A dotted path and its parents.

    >>> list(_parents("a.b.c"))
    ['a.b.c', 'a.b', 'a']
    """
    while path:
        yield path
        path = path.rpartition(".")[0]


def string_list(what: str, given: str | Iterable[str] | None) -> list[str]:
    """A string or several strings as a list.

    Raises `InvalidArgumentError` for values that are not strings and for an empty list.
    """
    if given is None:
        return []
    if not isinstance(given, Iterable):
        raise InvalidArgumentError(f"expected {what} as strings, not {short_repr(given)}")
    several = [given] if isinstance(given, str) else list(given)
    for text in several:
        if not isinstance(text, str):
            raise InvalidArgumentError(f"expected {what} as strings, not {short_repr(text)}")
        check_text(text, what)
    if not several:
        raise InvalidArgumentError(f"no fields selected: the list of {what} is empty")
    return several


def aliases(given: object) -> list[tuple[str, str]]:
    """Aliases as pairs of name and expression.

    Raises `InvalidArgumentError` for other values and for names that expressions cannot contain.
    """
    if given is None:
        return []
    if not isinstance(given, Mapping):
        raise InvalidArgumentError(f"expected aliases as a mapping of names to expressions, not {short_repr(given)}")
    for name, text in given.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise InvalidArgumentError(
                f"expected aliases as a mapping of names to expressions, not of {short_repr(name)} to "
                f"{short_repr(text)}"
            )
        if not name or "`" in name:
            raise InvalidArgumentError(f"{short_repr(name)} is not a valid name for an alias")
        check_text(name, "the name of an alias")
        check_text(text, "an expression")
    return list(given.items())


def renames(given: object) -> list[tuple[str, str]]:
    """New names of fields as pairs of old and new name.

    Raises `InvalidArgumentError` for other values.
    """
    if given is None:
        return []
    if not isinstance(given, Mapping):
        raise InvalidArgumentError(f"expected rename as a mapping of old to new names, not {short_repr(given)}")
    return [(check_text(old, "a name in rename"), check_text(new, "a name in rename")) for old, new in given.items()]


def cut(given: object) -> str | None:
    """The expression of a cut.

    Raises `InvalidArgumentError` for values that are not strings.
    """
    if given is not None and not isinstance(given, str):
        raise InvalidArgumentError(
            f"expected cut as an expression such as 'pt > 20', not {short_repr(given)}; apply masks to the arrays"
        )
    return None if given is None else check_text(given, "a cut")


def describe_difference(first: Mapping[str, str], other: Mapping[str, str]) -> str:
    """The first difference between the fields of two files, given as names and types."""
    for name, kind in other.items():
        if name not in first:
            return f"field '{name}' exists only there"
        if first[name] != kind:
            return f"field '{name}' has type {kind}, expected {first[name]}"
    missing = [name for name in first if name not in other]
    return f"field '{missing[0]}' is missing" if missing else "its fields are in a different order"


def is_glob(name: str) -> bool:
    """Whether a name contains wildcards."""
    return any(letter in name for letter in "*?[{")


def escape_glob(name: str) -> str:
    """A pattern that matches only this name: ROOT allows wildcards in names.

    >>> escape_glob("jets.pt"), escape_glob("a[0]")
    ('jets.pt', 'a[[]0[]]')
    """
    return _WILDCARDS.sub(lambda found: f"[{found[0]}]", name)


def entry_range(start: SupportsIndex | None, stop: SupportsIndex | None, count: int) -> tuple[int, int]:
    """A range of entries, interpreted like a Python slice: negative numbers count from the end, large ones are clipped.

    >>> entry_range(-3, None, 10), entry_range(2, 100, 10), entry_range(5, 1, 10)
    ((7, 10), (2, 10), (5, 5))
    """
    for number in start, stop:
        if number is not None and as_integer(number) is None:
            raise InvalidArgumentError(
                f"expected entry_start and entry_stop as integers, not {short_repr(start)} and {short_repr(stop)}"
            )
    first, last, _ = slice(start, stop).indices(count)
    return first, max(first, last)


def check_step_size(size: SupportsIndex | str) -> int | str:
    """Checks a step size: a number of entries or a string with a size in bytes."""
    if isinstance(size, str):
        parse_bytes(size)
        return size
    entries = as_integer(size)
    if entries is None:
        raise InvalidArgumentError(
            f"expected step_size as a number of entries or a string such as '100 MiB', not {short_repr(size)}"
        )
    if not 1 <= entries < 2**63:
        raise InvalidArgumentError(f"expected step_size from 1 to 2⁶³−1 entries, not {short_repr(entries)}")
    return entries
