"""uproot's module of this name: files that are written."""

from .._dask_write import dask_write
from .._writing import create, recreate, update
from . import writable

__all__ = ["create", "dask_write", "recreate", "update", "writable"]
