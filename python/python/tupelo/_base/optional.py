"""Optional packages, which are imported on first use."""

from importlib import import_module
from typing import Any


def load(module: str, what: str, package: str, otherwise: str = "") -> Any:
    """Imports a module that ``what`` needs and ``pip install package`` installs.

    Raises `ImportError` with the reason if it cannot be loaded.
    """
    try:
        return import_module(module)
    except ImportError as cause:
        raise ImportError(
            f"{what} needs {module}, which cannot be loaded ({cause}): pip install {package}{otherwise}"
        ) from cause
