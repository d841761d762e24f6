"""What other packages that use uproot need to take Tupelo's objects for uproot's: coffea, for instance."""

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any

from .. import _core
from ..errors import Error


def join_uproot() -> None:
    """Makes `isinstance` true of Tupelo's files, ntuples and trees for uproot's classes, where uproot is loaded."""
    from ._fields import HasFields
    from ._reading import ReadOnlyDirectory
    from ._trees import HasBranches, TBranch, TTree

    for module, name, mine in (
        ("uproot.behaviors.RNTuple", "HasFields", HasFields),
        ("uproot.behaviors.TBranch", "HasBranches", HasBranches),
        ("uproot.behaviors.TBranch", "TBranch", TBranch),
        ("uproot.behaviors.TTree", "TTree", TTree),
        ("uproot.reading", "ReadOnlyDirectory", ReadOnlyDirectory),
    ):
        if (theirs := sys.modules.get(module)) is not None:
            getattr(theirs, name).register(mine)


class install:
    """Makes ``uproot.open`` and ``uproot.dask`` read ntuples and trees with Tupelo, for packages that
    call uproot.

    uproot still reads files without either. As a context manager, it is undone at the end of
    the ``with`` block; otherwise it lasts as long as the process. Other processes, such as Dask workers, need their own
    call.

    >>> import uproot, tupelo.uproot_compat
    >>> with uproot.recreate("install.root") as file:
    ...     file.mkrntuple("Events", {"x": [1, 2, 3]})
    <WritableNTuple '/Events' at ...>
    >>> with tupelo.uproot_compat.install():
    ...     print(type(uproot.open("install.root:Events")).__module__)
    tupelo.uproot_compat._ntuple
    """

    def __init__(self) -> None:
        import uproot

        from ._dask import dask
        from ._reading import open

        join_uproot()
        self._uproot: Any = uproot
        self._before = {"open": uproot.open, "dask": uproot.dask}
        uproot.open = _replacement(open, uproot.open)
        uproot.dask = _replacement(dask, uproot.dask)

    def uninstall(self) -> None:
        """Restores uproot's functions."""
        for name, function in self._before.items():
            setattr(self._uproot, name, function)

    def __enter__(self) -> "install":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.uninstall()


def _replacement(ours: Callable[..., Any], theirs: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is ``ours`` for files with ntuples or trees, and ``theirs`` for all others."""

    def function(files: Any, *args: Any, **options: Any) -> Any:
        return (ours if _has_tables(files) else theirs)(files, *args, **options)

    function.__doc__ = theirs.__doc__
    # uproot's functions have attributes.
    function.__dict__.update(vars(theirs))
    return function


def _has_tables(files: Any) -> bool:
    """Whether the first of the files is an ntuple or a tree, or a file with one."""
    from .. import reading
    from .._files import resolve
    from ._fields import HasColumns

    if isinstance(files, HasColumns):
        return True
    if (
        isinstance(files, Iterable)
        and not isinstance(files, str | Mapping | os.PathLike)
        and not hasattr(files, "read")
    ):
        first = next(iter(files), None)
        return first is not None and _has_tables(first)
    if not isinstance(files, str | Mapping | os.PathLike):
        return False
    try:
        path, _, name, _ = next(iter(resolve(files)))
        with reading.reopen(path, _core.DEFAULT_PAGE_CHECKSUMS, None, False) as file:
            tables = file.keys()
            return bool(tables) if name is None else name.strip("/").partition(";")[0] in tables
    except (Error, OSError, StopIteration):
        return False
