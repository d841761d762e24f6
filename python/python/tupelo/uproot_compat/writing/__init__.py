"""uproot's module of this name: files that are written."""

from .._writing import create, recreate, update
from . import writable

__all__ = ["create", "recreate", "update", "writable"]
