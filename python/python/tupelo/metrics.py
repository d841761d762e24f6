"""Read statistics."""

from .ntuple._metrics import Metrics, Time

__all__ = ["Metrics", "Time"]
