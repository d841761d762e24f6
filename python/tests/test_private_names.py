"""The package uses only what other packages make public."""

import ast
from pathlib import Path

import pytest

import tupelo

SOURCES = sorted(Path(tupelo.__file__).parent.rglob("*.py"))
IN_HOUSE = {"__future__", "tupelo"}
INTERNAL = ("dask_awkward.layers", "dask_awkward.lib")
"""Modules without an underscore that are private too: `dask_awkward` gives the names that are public."""


def imported_names(tree: ast.AST) -> list[str]:
    """Dotted names of everything that a module imports from other packages."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("import_module", "optional.load"):
            names += [str(argument.value) for argument in node.args[:1] if isinstance(argument, ast.Constant)]
    return [name for name in names if name.partition(".")[0] not in IN_HOUSE]


def private_attributes(tree: ast.AST) -> list[str]:
    """Attributes as ``ak._util``, read from the short names under which libraries are imported."""
    return [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in ("ak", "dak", "dd", "np", "pa", "pd", "pl")
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
    ]


def is_private(name: str) -> bool:
    return any(part.startswith("_") for part in name.split(".")) or name.startswith(INTERNAL)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(SOURCES[0].parent)))
def test_no_private_modules_of_other_packages(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert [name for name in imported_names(tree) if is_private(name)] == []
    assert private_attributes(tree) == []


def test_private_modules_are_recognized() -> None:
    for line in ("from awkward._nplikes.numpy import Numpy", "import dask_awkward.lib.utils as utils"):
        assert any(map(is_private, imported_names(ast.parse(line))))
    assert private_attributes(ast.parse("ak._util")) == ["ak._util"]
