"""Attribute sets: data attached to ranges of entries."""

from .ntuple._ntuple import AttributeSet
from .writing._attributes import AttributeSetWriter

__all__ = ["AttributeSet", "AttributeSetWriter"]
