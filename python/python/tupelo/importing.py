"""Importing trees and HDF5 files as ntuples."""

from ._many.hdf5 import import_hdf5
from ._many.importing import SAMPLE_ENTRIES, ImportedField, ImportReport, import_trees

__all__ = ["SAMPLE_ENTRIES", "ImportReport", "ImportedField", "import_hdf5", "import_trees"]
