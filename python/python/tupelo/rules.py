"""Read rules: members of classes that functions compute."""

from .ntuple._rules import ReadRule

__all__ = ["ReadRule"]
