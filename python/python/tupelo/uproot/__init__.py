"""The installed uproot, with Tupelo's engine under it.

``import tupelo.uproot as uproot`` is a program's only change. Every name is that of uproot (5.6 or later), and results
have the same types and values; what Tupelo can decode identically is decoded by Tupelo, and the rest by uproot itself:

>>> import tupelo.uproot as uproot
>>> with uproot.recreate("carried.root") as file:
...     file.mktree("Events", {"pt": "float64"}).extend({"pt": [31.5, 12.0]})
>>> uproot.open("carried.root:Events")["pt"].array()
<Array [31.5, 12] type='2 * float64'>

Importing it calls `install`, which also serves packages that import uproot themselves, such as coffea, in this
process. `report` says what was decoded where, and why. The environment variable ``TUPELO_UPROOT`` is for tests and
doubt: ``off`` leaves uproot as it is, and with ``strict`` an error of Tupelo is raised instead of leaving the branch to
uproot.
"""

from typing import Any

from .._base import optional

_uproot = optional.load("uproot", "tupelo.uproot", "'uproot>=5.6'")

from ._engine import EngineWarning, install, uninstall  # noqa: E402
from ._report import Call, Report, report  # noqa: E402

__all__ = ["Call", "EngineWarning", "Report", "install", "report", "uninstall"]


def __getattr__(name: str) -> Any:
    try:
        return getattr(_uproot, name)
    except AttributeError:
        raise AttributeError(f"neither module {__name__!r} nor uproot has an attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted({*__all__, *dir(_uproot)})


install()
