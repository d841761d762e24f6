"""uproot's module of this name: executors."""

from . import futures

__all__ = ["futures"]
