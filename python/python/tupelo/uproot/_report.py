"""What was decoded by Tupelo and what by uproot."""

import threading
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

_KEPT = 100
"""Number of calls that a report lists."""


class Call(NamedTuple):
    """One read: an ``array`` or ``arrays``, or one step of ``iterate``."""

    where: str
    """The file and the path of the tree or ntuple in it."""
    entry_start: int
    entry_stop: int
    served: int
    """Number of branches or fields that Tupelo decoded."""
    passed: Mapping[str, tuple[str, ...]]
    """Names of those that uproot decoded, by the reason."""

    def __str__(self) -> str:
        lines = [f"{self.where}, entries {self.entry_start} to {self.entry_stop}: {self.served} by Tupelo"]
        for reason, names in self.passed.items():
            shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
            lines.append(f"  {len(names)} by uproot: {reason} ({shown})")
        return "\n".join(lines)


@dataclass(frozen=True)
class Report:
    """What was read since `install`, or since the last ``report(clear=True)``."""

    served: int
    """Number of times that Tupelo decoded a branch or a field."""
    passed: Mapping[str, int]
    """Number of times that uproot decoded one, by the reason."""
    calls: tuple[Call, ...]
    """The last 100 reads."""

    def __repr__(self) -> str:
        lines = [f"arrays decoded by Tupelo: {self.served}, by uproot: {sum(self.passed.values())}"]
        lines += [f"  {count}: {reason}" for reason, count in sorted(self.passed.items(), key=lambda item: -item[1])]
        return "\n".join([*lines, *(f"{call}" for call in self.calls[-5:])])


class _Log:
    """The counts of this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        self.served = 0
        self.passed: Counter[str] = Counter()
        self.calls: deque[Call] = deque(maxlen=_KEPT)

    def add(self, call: Call) -> None:
        with self.lock:
            self.served += call.served
            for reason, names in call.passed.items():
                self.passed[reason] += len(names)
            self.calls.append(call)


log = _Log()


def report(*, clear: bool = False) -> Report:
    """Prints and returns which arrays Tupelo decoded, and why uproot decoded the others.

    ``clear`` begins a new report. Other processes have their own.

    >>> import tupelo.uproot as uproot
    >>> with uproot.recreate("report.root") as file:
    ...     file.mktree("Events", {"pt": "float64"}).extend({"pt": [31.5, 12.0]})
    >>> _ = uproot.report(clear=True)  # doctest: +ELLIPSIS
    arrays decoded by Tupelo: ...
    >>> _ = uproot.open("report.root:Events").arrays()
    >>> _ = uproot.report()
    arrays decoded by Tupelo: 1, by uproot: 0
    report.root:/Events;1, entries 0 to 2: 1 by Tupelo
    """
    with log.lock:
        found = Report(log.served, dict(log.passed), tuple(log.calls))
        if clear:
            log.clear()
    print(found)
    return found
