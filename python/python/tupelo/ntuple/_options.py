"""The keywords that the reading functions share: their types, their defaults, and their place in signatures."""

import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any, SupportsIndex, TypedDict, TypeVar

from .. import _core
from .._from_arrow.awkward import AddDoc
from .._from_arrow.libraries import How, Library, check_how
from ..fields import _select
from ..fields._fields import Field
from ..fields._select import Filter

F = TypeVar("F", bound=Callable[..., Any])


class SelectOptions(TypedDict, total=False):
    """Keywords that select fields and name expressions; see `Ntuple.arrays`."""

    aliases: Mapping[str, str] | None
    filter_name: Filter
    filter_typename: Filter
    filter_field: Callable[[Field], object] | None


class ArrayOptions(SelectOptions, total=False):
    """`SelectOptions`, and keywords that say what the columns become; see `Ntuple.arrays`."""

    library: Library
    how: How
    ak_add_doc: AddDoc


class ReadOptions(ArrayOptions, total=False):
    """`ArrayOptions`, and a range of entries; see `Ntuple.arrays`."""

    entry_start: SupportsIndex | None
    entry_stop: SupportsIndex | None


class FileOptions(TypedDict, total=False):
    """Keywords of functions that open many files; see `tupelo.iterate`."""

    allow_missing: bool
    page_checksums: bool
    memory_budget: int | str | None
    storage_options: Mapping[str, object] | None
    cache: str | os.PathLike[str] | None


class ManyArrayOptions(ArrayOptions, FileOptions, total=False):
    """`ArrayOptions` of many files."""


class ManyReadOptions(ReadOptions, FileOptions, total=False):
    """`ReadOptions` of many files."""


DEFAULTS: Mapping[str, Any] = {
    "library": "ak",
    "ak_add_doc": False,
    "allow_missing": False,
    "page_checksums": _core.DEFAULT_PAGE_CHECKSUMS,
}
"""Defaults of the keywords above; the others are None."""


def complete(function: str, options: Mapping[str, Any], known: Any) -> dict[str, Any]:
    """The keywords of a function with their defaults; ``known`` is the `TypedDict` of the keywords that it takes.

    Raises `TypeError` or `UnsupportedError` for unknown keywords, `UnsupportedError` for unknown libraries, and
    `InvalidArgumentError` for values of ``how`` that do not fit the library.
    """
    names = known.__annotations__
    _select.reject_unknown(function, {name: value for name, value in options.items() if name not in names})
    made = {name: options.get(name, DEFAULTS.get(name)) for name in names}
    if "library" in names:
        _select.check_library(made["library"])
        check_how(made["how"], made["library"])
    return made


def takes(known: Any) -> Callable[[F], F]:
    """Shows the keywords of a `TypedDict` in the signature of a function, for `help` and for completion."""

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        own = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        shared = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=DEFAULTS.get(name), annotation=kind)
            for name, kind in known.__annotations__.items()
        ]
        function.__signature__ = signature.replace(parameters=[*own, *shared])  # type: ignore[attr-defined]
        return function

    return decorate
