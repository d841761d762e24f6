"""Which fields and entries a caller means."""

import fnmatch
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, SupportsIndex

from ._texts import check_text
from .errors import InvalidArgumentError, NotFoundError, UnsupportedError

Filter = str | Callable[[str], bool] | Iterable[str | Callable[[str], bool]] | None
"""A glob (`*` also stands for dots), a regular expression as ``"/pattern/i"``, a function of a text, several of these
of which one must fit, or None for everything."""

LIBRARIES = {"ak": "Awkward Array", "np": "NumPy", "arrow": "PyArrow", "pd": "pandas", "pl": "polars"}
"""What ``library`` may be."""

_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}

# What uproot's methods of the same names take (some of it for trees only), and what to do instead.
_NOT_YET = {
    "access_log": "reading is not lazy",
    "ak_add_doc": "the descriptions are in the metadata of `arrow_schema` and in `Field.description`",
    "aliases": "select fields and give the columns new names afterwards",
    "array_cache": "nothing is cached",
    "backend": "arrays are made in main memory; ak.to_backend moves them",
    "cut": "select entries of the arrays afterwards, as in a[a.x > 1]",
    "decompression_executor": "the engine decompresses by itself",
    "expressions": "give names or globs of fields as `names` and compute afterwards",
    "filter_branch": "give a function of the name as `filter_name`",
    "filter_field": "give a function of the name as `filter_name`",
    "how": "take the fields of the result apart afterwards",
    "interpretation_executor": "the engine decodes by itself",
    "interpreter": "the engine decodes by itself",
    "language": "expressions are not computed",
    "virtual": "reading is not lazy; name the fields that you need",
}


def refuse(method: str, unknown: Mapping[str, object]) -> None:
    """Raises for keywords that a method does not have.

    Raises `UnsupportedError` (a `NotImplementedError`) for what other readers know, and `TypeError` for the rest.
    """
    for name in unknown:
        if name in _NOT_YET:
            raise UnsupportedError(f"{method}() does not have {name!r}: {_NOT_YET[name]}")
        raise TypeError(f"{method}() got an unexpected keyword argument {name!r}")


def single_entries(entries: Iterable[SupportsIndex], count: int) -> list[int]:
    """Entry numbers, those below zero counted from the end.

    Raises `InvalidArgumentError` for what is no number or no entry.
    """
    if isinstance(entries, str | bytes) or not isinstance(entries, Iterable):
        raise InvalidArgumentError(f"entries are a list of numbers, not {entries!r}")
    chosen = []
    for entry in entries:
        if isinstance(entry, bool) or type(entry).__name__ in {"bool", "bool_"} or not isinstance(entry, SupportsIndex):
            raise InvalidArgumentError(
                f"entries are whole numbers, not {entry!r}; numpy.flatnonzero gives those of a mask"
            )
        index = operator.index(entry)
        if not -count <= index < count:
            raise InvalidArgumentError(f"entry {index} of an ntuple with {count} entries")
        chosen.append(index + count if index < 0 else index)
    return chosen


def check_library(library: object) -> None:
    """Raises `UnsupportedError` for a library that arrays cannot be handed to."""
    if not isinstance(library, str) or library not in LIBRARIES:
        known = ", ".join(f"{name!r} ({what})" for name, what in LIBRARIES.items())
        raise UnsupportedError(f"library={library!r} is none of {known}; others take what 'arrow' gives")


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
    raise InvalidArgumentError(f"a filter is a glob, '/regex/', a function or several of these, not {wanted!r}")


def _compiled(text: str) -> Callable[[str], object]:
    body, slash, flags = text[1:].rpartition("/")
    if text.startswith("/") and slash and set(flags) <= set(_FLAGS):
        try:
            return re.compile(body, sum(_FLAGS[flag] for flag in set(flags))).search
        except re.error as error:
            raise InvalidArgumentError(f"{text!r} is no valid regular expression: {error}") from None
    return re.compile(fnmatch.translate(text)).match


def patterns(names: str | Iterable[str] | None) -> list[str]:
    """Names or globs as a list, of which none means all.

    Raises `InvalidArgumentError` where they are not texts, or where there are none although some were announced.
    """
    if names is None:
        return []
    if not isinstance(names, Iterable):
        raise InvalidArgumentError(f"fields are chosen by names or globs, not by {names!r}")
    several = [names] if isinstance(names, str) else list(names)
    for name in several:
        if not isinstance(name, str):
            raise InvalidArgumentError(f"fields are chosen by names or globs, not by {name!r}")
        check_text(name, "the name of a field")
    if not several:
        raise InvalidArgumentError("no field is chosen: the list of names is empty")
    return several


def is_glob(name: str) -> bool:
    """Whether a name has wildcards."""
    return any(letter in name for letter in "*?[{")


def literal(name: str) -> str:
    """A pattern that only this name fits, for names that have wildcards in them: ROOT allows that.

    >>> literal("jets.pt"), literal("a[0]")
    ('jets.pt', 'a[[]0[]]')
    """
    return re.sub(r"[*?\[\]{}]", r"[\g<0>]", name)


_IS_COMPUTED = re.compile(r"[-+/%&|<>=()!\s]|\*")


def expression_hint(name: str) -> str:
    """What to add to "no such field" where the name looks like something to compute."""
    if len(name) > 1 and name.startswith("/") and name.endswith("/"):
        return "; regular expressions are given as `filter_name`"
    return "; expressions are not computed, only names and globs are known" if _IS_COMPUTED.search(name) else ""


@contextmanager
def hinting(wanted: list[str]) -> Iterator[None]:
    """Adds to "no such field" that expressions are not computed, where it looks as if they should be."""
    try:
        yield
    except NotFoundError as error:
        hints = [expression_hint(name) for name in wanted if f"'{name}'" in str(error)]
        if not any(hints):
            raise
        raise NotFoundError(f"{error}{max(hints)}") from None


def entry_range(start: SupportsIndex | None, stop: SupportsIndex | None, count: int) -> tuple[int, int]:
    """Entries as a Python slice means them: negative numbers count from the end, and what is behind it is cut.

    >>> entry_range(-3, None, 10), entry_range(2, 100, 10), entry_range(5, 1, 10)
    ((7, 10), (2, 10), (5, 5))
    """
    try:
        first, last, _ = slice(start, stop).indices(count)
    except TypeError:
        raise InvalidArgumentError(f"entries are counted by integers, not by {start!r} and {stop!r}") from None
    return first, max(first, last)


def step(size: SupportsIndex | str) -> int | str:
    """A number of entries, or the text that stands for a number of bytes."""
    if isinstance(size, str):
        return size
    try:
        entries: Any = operator.index(size)
    except TypeError:
        raise InvalidArgumentError(f"a step is a number of entries or a text such as '100 MB', not {size!r}") from None
    if not 1 <= entries < 2**63:
        raise InvalidArgumentError(f"a step must have at least one entry and at most 2⁶³−1, not {entries}")
    return int(entries)
