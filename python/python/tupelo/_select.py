"""Which fields and entries a caller means."""

import fnmatch
import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, SupportsIndex

import numpy as np

from . import _core
from ._checks import check_text
from ._messages import short
from ._sizes import parse_bytes, whole
from .errors import InvalidArgumentError, NotFoundError, UnsupportedError

Filter = str | Callable[[str], bool] | Iterable[str | Callable[[str], bool]] | None
"""A glob (`*` also stands for dots), a regular expression as ``"/pattern/i"``, a function of a text, several of these
of which one must fit, or None for everything."""

LIBRARIES = {"ak": "Awkward Array", "np": "NumPy", "arrow": "PyArrow", "pd": "pandas", "pl": "polars"}
"""What ``library`` may be."""

_SIGNS = re.compile(r"[\s()+/<>=&|]|\[[^\]]*(:|$)")
"""What expressions have, and globs seldom: where no field fits, it was meant to be an expression."""

_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}

# What uproot's methods of the same names take (some of it for trees only), and what to do instead.
_NOT_YET = {
    "array_cache": "nothing is cached",
    "backend": "arrays are made in main memory; ak.to_backend moves them",
    "decompression_executor": "the engine decompresses by itself",
    "filter_branch": "an ntuple has fields; give a function of the field as `filter_field`",
    "interpretation_executor": "the engine decodes by itself",
    "interpreter": "the engine decodes by itself",
    "language": "expressions are written as `Ntuple.arrays` says",
}


def refuse(method: str, unknown: Mapping[str, object]) -> None:
    """Raises for keywords that a method does not have.

    Raises `UnsupportedError` (a `NotImplementedError`) for what other readers know, and `TypeError` for the rest.
    """
    for name in unknown:
        if name in _NOT_YET:
            raise UnsupportedError(f"{method}() does not have {short(name)}: {_NOT_YET[name]}")
        raise TypeError(f"{method}() got an unexpected keyword argument {short(name)}")


def single_entries(entries: Iterable[SupportsIndex], count: int) -> Any:
    """Entry numbers as a NumPy array of 64-bit integers, those below zero counted from the end.

    Raises `InvalidArgumentError` for what is no number or no entry.
    """
    if isinstance(entries, str | bytes) or not isinstance(entries, Iterable):
        raise InvalidArgumentError(f"entries are a list of numbers, not {short(entries)}")
    array = _integers(entries)
    is_wrong = (array < -count) | (array >= count)
    if is_wrong.any():
        raise InvalidArgumentError(f"entry {short(int(array[is_wrong][0]))} of an ntuple with {count} entries")
    array = array.astype(np.int64)
    return np.where(array < 0, array + count, array)


def _integers(entries: Iterable[SupportsIndex]) -> Any:
    """Whole numbers as an array; one of Python's own integers where 64 bits do not hold them."""
    if isinstance(entries, range):
        return _array(entries)
    if hasattr(entries, "__array__"):
        array = np.asarray(entries)
        if array.ndim == 1 and array.dtype.kind in "iu":
            return array
        if array.dtype.kind != "O" and array.size:
            raise _no_entries(array.flat[0] if array.ndim == 1 else entries)
        entries = array.tolist()
    listed = list(entries)
    # One look at each kind of number, not at each number.
    if not all(kind is int or issubclass(kind, np.integer) for kind in set(map(type, listed))):
        for entry in listed:
            if whole(entry) is None:
                raise _no_entries(entry)
        listed = [operator.index(entry) for entry in listed]
    return _array(listed)


def _array(numbers: range | list[Any]) -> Any:
    try:
        return np.array(numbers, dtype=np.int64)
    except OverflowError:
        return np.array(numbers, dtype=object)


def _no_entries(entry: object) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"entries are whole numbers, not {short(entry)}; numpy.flatnonzero gives those of a mask"
    )


def check_library(library: object) -> None:
    """Raises `UnsupportedError` for a library that arrays cannot be handed to."""
    if not isinstance(library, str) or library not in LIBRARIES:
        known = ", ".join(f"{short(name)} ({what})" for name, what in LIBRARIES.items())
        raise UnsupportedError(f"library={short(library)} is none of {known}; others take what 'arrow' gives")


def matcher(wanted: Filter) -> Callable[[str], bool]:
    """A function that says whether a text fits a filter.

    Raises `InvalidArgumentError` for a regular expression that is none, and for what is no filter.
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
    raise InvalidArgumentError(f"a filter is a glob, '/regex/', a function or several of these, not {short(wanted)}")


def _compiled(text: str) -> Callable[[str], object]:
    body, slash, flags = text[1:].rpartition("/")
    if text.startswith("/") and slash and set(flags) <= set(_FLAGS):
        try:
            return re.compile(body, sum(_FLAGS[flag] for flag in set(flags))).search
        except re.error as error:
            raise InvalidArgumentError(f"{short(text)} is no valid regular expression: {error}") from None
    return re.compile(fnmatch.translate(text)).match


@dataclass
class Request:
    """What to read of an ntuple, and how: what the engine takes."""

    patterns: list[str] | None = field(default_factory=list)
    """Dotted paths or globs, of which none means all fields; None means that no field is handed out."""
    computed: list[tuple[str, str]] = field(default_factory=list)
    """Columns by name and expression."""
    aliases: list[tuple[str, str]] = field(default_factory=list)
    """Names that expressions may use, and their expressions."""
    given: Any = None
    """A `pyarrow.RecordBatch` of values for all entries, by names that expressions may use."""
    cut: str | None = None
    entry_start: int = 0
    entry_stop: int = 0
    entry_numbers: str | None = None
    """The name of a last column with the numbers of the entries."""
    binary_strings: bool = False
    schema: Any = None
    order: list[str] = field(default_factory=list)
    """Names of columns as they were asked for; none where fields come in the order of the file."""

    def ordered(self, batch: Any) -> Any:
        """A `pyarrow.RecordBatch` of what was read, with its columns in the order asked for."""
        return batch.select(self.order) if self.order and batch.schema.names != self.order else batch

    def read_as_stream(self, core: "_core.Ntuple") -> Any:
        """All of it as one `pyarrow.RecordBatch` of the type that streams have: it does not depend on the entries."""
        if (entries := self.entry_stop - self.entry_start) == 0:
            return core.read(self)
        _, _, batch = next(core.batches(self, entries, None))
        return batch

    def add(self, name: str, known: Mapping[str, object]) -> None:
        """Adds what a caller calls by an alias, a field's path, an expression or a glob.

        Raises `InvalidArgumentError` for what is neither, and `NotFoundError` for an expression over no field.
        """
        aliases = {alias for alias, _ in self.aliases}
        if self.given is not None:
            aliases.update(self.given.schema.names)
        if len(name) > 1 and name.startswith("/") and name.endswith("/") and name not in known:
            raise NotFoundError(f"no field is called {short(name)}; regular expressions are given as `filter_name`")
        if name in dict(self.computed):
            return
        _check_one(name, known)
        if name in aliases:
            self.computed.append((name, f"`{name}`"))
        elif name in known:
            self._add_pattern(literal(name))
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
        """Whether a text is an expression over what is known; ``x*y`` may be a glob too, ``x_*`` cannot be else.

        Raises `InvalidArgumentError` for what is neither.
        """
        try:
            names = _core.expression_names(text)
        except InvalidArgumentError:
            if is_glob(text) and (fnmatch.filter(known, text) or not _SIGNS.search(text)):
                return False
            raise
        if all(any(path in aliases or path in known for path in _above(name)) for name in names):
            return True
        # One name alone is no expression: it is a field that is not there.
        return names != [text] and not (is_glob(text) and fnmatch.filter([*aliases, *known], text))


def _check_one(text: str, known: Mapping[str, object]) -> None:
    """Raises `InvalidArgumentError` for the names of several fields in one text."""
    several = [part.strip() for part in text.split(",")]
    if text in known or len(several) == 1:
        return
    # A glob may have commas in braces; the parts of such a one fit nothing.
    if all(part in known or (is_glob(part) and fnmatch.filter(known, part)) for part in several):
        raise InvalidArgumentError(f"{short(text)} names several fields; give them as a list: {short(several)}")


def _above(path: str) -> Iterator[str]:
    """A dotted path, and those above it.

    >>> list(_above("a.b.c"))
    ['a.b.c', 'a.b', 'a']
    """
    while path:
        yield path
        path = path.rpartition(".")[0]


def texts(what: str, given: str | Iterable[str] | None) -> list[str]:
    """One text or several as a list.

    Raises `InvalidArgumentError` where they are not texts, or where there are none although some were announced.
    """
    if given is None:
        return []
    if not isinstance(given, Iterable):
        raise InvalidArgumentError(f"{what} are texts, not {short(given)}")
    several = [given] if isinstance(given, str) else list(given)
    for text in several:
        if not isinstance(text, str):
            raise InvalidArgumentError(f"{what} are texts, not {short(text)}")
        check_text(text, what)
    if not several:
        raise InvalidArgumentError(f"no field is chosen: the list of {what} is empty")
    return several


def aliases(given: object) -> list[tuple[str, str]]:
    """Names and expressions.

    Raises `InvalidArgumentError` for what is none, and for a name that expressions cannot spell.
    """
    if given is None:
        return []
    if not isinstance(given, Mapping):
        raise InvalidArgumentError(f"aliases are a mapping of names to expressions, not {short(given)}")
    for name, text in given.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise InvalidArgumentError(
                f"aliases are a mapping of names to expressions, not of {short(name)} to {short(text)}"
            )
        if not name or "`" in name:
            raise InvalidArgumentError(f"{short(name)} cannot be the name of an alias")
        check_text(name, "the name of an alias")
        check_text(text, "an expression")
    return list(given.items())


def cut(given: object) -> str | None:
    """The text of a cut.

    Raises `InvalidArgumentError` for all else.
    """
    if given is not None and not isinstance(given, str):
        raise InvalidArgumentError(f"a cut is an expression as 'pt > 20', not {short(given)}; masks go to the arrays")
    return None if given is None else check_text(given, "a cut")


def difference(first: Mapping[str, str], other: Mapping[str, str]) -> str:
    """In what the fields of another file differ from those of the first: names and types, of which some differ."""
    for name, kind in other.items():
        if name not in first:
            return f"only it has the field '{name}'"
        if first[name] != kind:
            return f"its field '{name}' is a {kind}, not a {first[name]}"
    missing = [name for name in first if name not in other]
    return f"it lacks the field '{missing[0]}'" if missing else "its fields have another order"


def is_glob(name: str) -> bool:
    """Whether a name has wildcards."""
    return any(letter in name for letter in "*?[{")


def literal(name: str) -> str:
    """A pattern that only this name fits, for names that have wildcards in them: ROOT allows that.

    >>> literal("jets.pt"), literal("a[0]")
    ('jets.pt', 'a[[]0[]]')
    """
    return re.sub(r"[*?\[\]{}]", r"[\g<0>]", name)


def entry_range(start: SupportsIndex | None, stop: SupportsIndex | None, count: int) -> tuple[int, int]:
    """Entries as a Python slice means them: negative numbers count from the end, and what is behind it is cut.

    >>> entry_range(-3, None, 10), entry_range(2, 100, 10), entry_range(5, 1, 10)
    ((7, 10), (2, 10), (5, 5))
    """
    for number in start, stop:
        if number is not None and whole(number) is None:
            raise InvalidArgumentError(f"entries are counted by integers, not by {short(start)} and {short(stop)}")
    first, last, _ = slice(start, stop).indices(count)
    return first, max(first, last)


def step(size: SupportsIndex | str) -> int | str:
    """A number of entries, or the text that stands for a number of bytes."""
    if isinstance(size, str):
        parse_bytes(size)
        return size
    entries = whole(size)
    if entries is None:
        raise InvalidArgumentError(f"a step is a number of entries or a text such as '100 MiB', not {short(size)}")
    if not 1 <= entries < 2**63:
        raise InvalidArgumentError(f"a step must have at least one entry and at most 2⁶³−1, not {short(entries)}")
    return entries
