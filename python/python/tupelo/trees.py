"""Filling trees (``TTree``)."""

from .writing._trees import FORMS, TREE_CLASSES, TreeWriter

__all__ = ["FORMS", "TREE_CLASSES", "TreeWriter"]
