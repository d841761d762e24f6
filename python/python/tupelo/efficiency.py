"""ROOT efficiencies."""

from .histogram._efficiency import Efficiency

__all__ = ["Efficiency"]
