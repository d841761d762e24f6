"""Packages that are loaded when they are needed, and need not be installed."""

from importlib import import_module
from typing import Any


def load(module: str, what: str, package: str, otherwise: str = "") -> Any:
    """A module; ``what`` needs it, and ``pip install package`` brings it.

    Raises `ImportError` where it cannot be loaded, which says why: it is not installed, or does not work.
    """
    try:
        return import_module(module)
    except ImportError as cause:
        raise ImportError(
            f"{what} needs {module}, which cannot be loaded ({cause}): pip install {package}{otherwise}"
        ) from cause
