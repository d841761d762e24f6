"""Writing Dask collections."""

import os
from importlib import import_module
from typing import Any

from .. import _optional
from .._checks import check_local_path
from ..errors import InvalidArgumentError


def dask_write(
    array: Any,
    destination: Any,
    compute: bool = True,
    storage_options: Any = None,
    prefix: str | None = None,
    tree_name: str = "tree",
    title: str = "",
    compression: str = "zstd",
    compression_level: int = 5,
    **unused: Any,
) -> Any:
    """Writes a `dask_awkward.Array` as ntuples: one file ``partN.root`` for each partition, in a directory.

    The ntuples are named ``tree_name`` with the description ``title``. File names start with ``prefix``. With
    ``compute=False`` it returns a collection that writes the files and gives their names when computed. Columns must
    have the same type in all partitions. Options that uproot has for trees are ignored.

    Raises `UnsupportedError` for a URL, `InvalidArgumentError` for options of remote files, and `ImportError` if
    dask-awkward is not installed.

    >>> import awkward as ak, dask_awkward as dak, tupelo.uproot_compat as uproot
    >>> events = dak.from_awkward(ak.Array([{"x": [1, 2]}, {"x": [3]}]), npartitions=2)
    >>> uproot.dask_write(events, "written", tree_name="Events")
    >>> uproot.concatenate("written/part*.root:Events").x.tolist()
    [[1, 2], [3]]
    """
    if storage_options:
        raise InvalidArgumentError("storage_options are for remote files; only local files can be written")
    if unknown := unused.keys() - {"field_name", "initial_basket_capacity", "counter_name", "resize_factor"}:
        raise TypeError(f"dask_write() got an unexpected keyword argument {min(unknown)!r}")
    _optional.load("dask_awkward", "uproot_compat.dask_write", "dask")
    dask: Any = import_module("dask")
    directory = check_local_path(destination)
    digits = len(str(max(0, array.npartitions - 1)))
    names = [f"{prefix + '-' if prefix else ''}part{number:0{digits}}.root" for number in range(array.npartitions)]
    codec = f"{compression.lower()}:{compression_level}"
    write = dask.delayed(_write)
    written = [
        write(part, os.path.join(directory, name), tree_name, title, codec)
        for part, name in zip(array.to_delayed(), names, strict=True)
    ]
    files = dask.delayed(list)(written)
    if not compute:
        return files
    files.compute()
    return None


def _write(array: Any, path: str, name: str, title: str, compression: str) -> str:
    """Writes one file and returns its name."""
    import awkward as ak

    from ._writing import recreate

    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with recreate(path, compression=compression) as file:
        file.mkrntuple(name, ak.materialize(array), title)
    return path
