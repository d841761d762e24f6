"""uproot's module of this name, as far as programs use it: executors."""

from . import futures

__all__ = ["futures"]
