"""ROOT histograms, graphs and efficiencies, and histograms of columns."""

from ._histogram import AXES, DIMENSIONS, Axis, Histogram, StoredObject, Traits

__all__ = ["AXES", "DIMENSIONS", "Axis", "Histogram", "StoredObject", "Traits"]
