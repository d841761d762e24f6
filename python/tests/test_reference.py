"""Docstrings are the reference: every public object has one, which names arguments, errors and existing objects."""

import builtins
import dataclasses
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

import tupelo

OTHERS = {"ak": "awkward", "pandas": "pandas", "polars": "polars", "pyarrow": "pyarrow", "hist": "hist"}
OTHERS |= {"boost_histogram": "boost_histogram", "pathlib": "pathlib", "dask_awkward": "dask_awkward"}
OTHERS |= {"dask": "dask.dataframe", "rich": "rich.progress", "np": "numpy", "io": "io"}
"""Modules of other packages by their names in docstrings."""


def members(owner: type) -> Iterator[tuple[str, Any]]:
    """Public attributes of a class, including base classes in the package."""
    for base in owner.__mro__:
        if base.__module__.startswith("tupelo"):
            yield from ((name, getattr(owner, name)) for name in vars(base) if not name.startswith("_"))


def public() -> Iterator[tuple[str, Any, Any]]:
    """Name, object and class of all public objects."""
    for name in tupelo.__all__:
        thing = getattr(tupelo, name)
        if name == "__version__":
            continue
        yield name, thing, None
        if isinstance(thing, type):
            yield from ((f"{name}.{inner}", value, thing) for inner, value in members(thing))


PUBLIC = [(name, thing, owner) for name, thing, owner in public() if inspect.getdoc(thing) or callable(thing)]
CALLS = [(name, thing, owner) for name, thing, owner in PUBLIC if inspect.isroutine(thing)]


def text_of(thing: Any) -> str:
    return inspect.getdoc(thing) or ""


def referred(name: str, owner: Any) -> Any:
    """Resolves a name in single backticks: in the class, the package, Python or a library."""
    for space in (owner, tupelo):
        found: Any = space
        for part in name.split("."):
            found = getattr(found, part, None)
            if found is None:
                break
        if found is not None:
            return found
    first, _, rest = name.partition(".")
    if not rest:
        return getattr(builtins, name, None)
    found = import_module(OTHERS[first]) if first in OTHERS else None
    for part in rest.split("."):
        found = getattr(found, part, None) or found if first in ("dask", "rich") else getattr(found, part, None)
    return found


def references(text: str) -> list[str]:
    return re.findall(r"(?<!`)`([\w.]+)`(?!`)", text)


@pytest.mark.parametrize(("thing", "owner"), [case[1:] for case in PUBLIC], ids=[case[0] for case in PUBLIC])
def test_docstrings_refer_to_existing_names(thing: Any, owner: Any) -> None:
    text = text_of(thing)
    assert text
    around = thing if isinstance(thing, type) else owner
    missing = [name for name in references(text) if referred(name, around) is None]
    assert missing == []


def mentions(thing: Any, owner: Any, argument: inspect.Parameter, depth: int = 2) -> bool:
    """Whether a docstring, or one that it refers to, names an argument; as a word of the text if it must be given."""
    text, word = text_of(thing), rf"\b{argument.name}\b"
    if re.search(word if argument.default is inspect.Parameter.empty else rf"``[^`]*{word}[^`]*``", text):
        return True
    found = (referred(name, owner) for name in references(text))
    return depth > 0 and any(mentions(other, owner, argument, depth - 1) for other in found if callable(other))


@pytest.mark.parametrize(("thing", "owner"), [case[1:] for case in CALLS], ids=[case[0] for case in CALLS])
def test_docstrings_name_arguments_and_errors(thing: Any, owner: Any) -> None:
    parameters = [
        one
        for one in inspect.signature(thing).parameters.values()
        if one.name != "self" and one.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    assert [one.name for one in parameters if not mentions(thing, owner, one)] == []
    # Booleans cannot be invalid.
    if any(not isinstance(one.default, bool) for one in parameters):
        texts = [text_of(thing), *map(text_of, (referred(one, owner) for one in references(text_of(thing))))]
        assert any("Raises" in text for text in texts)


CLASSES = [getattr(tupelo, name) for name in tupelo.__all__ if isinstance(getattr(tupelo, name), type)]


@pytest.mark.parametrize("owner", CLASSES, ids=lambda owner: owner.__name__)
def test_attributes_are_documented(owner: type) -> None:
    """Plain attributes are documented by a string after them or in the docstring of the class."""
    source = inspect.getsource(owner)
    names = [one.name for one in dataclasses.fields(owner)] if dataclasses.is_dataclass(owner) else []
    names += re.findall(r"^        self\.([a-z]\w*)(?:: [^=]+)? = ", source, re.MULTILINE)
    for name in names:
        behind = rf'^ +(?:self\.)?{name}\b[^\n]*\n +"""'
        assert re.search(behind, source, re.MULTILINE) or re.search(rf"``[^`]*\b{name}\b", text_of(owner)), name
