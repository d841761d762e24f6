"""Importing trees as ntuples."""

from ._many.importing import SAMPLE_ENTRIES, ImportedField, ImportReport, import_trees

__all__ = ["SAMPLE_ENTRIES", "ImportReport", "ImportedField", "import_trees"]
