"""ROOT graphs."""

from .histogram._graph import Graph

__all__ = ["Graph"]
