"""The base class of directories."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

from .._select import Filter
from ..errors import NotFoundError
from ._options import matcher

MAX_NAMES = 20
"""Maximum number of names in a message."""


class Directory(Mapping[str, Any]):
    """A directory of a file: a mapping from ``"name"`` or ``"name;cycle"`` to objects."""

    classname = "TDirectory"
    """Its class."""

    def __init__(self, file: Any, inside: str) -> None:
        self.file = file
        self._inside = inside

    @property
    def path(self) -> tuple[str, ...]:
        """The names of its parent directories and its own."""
        return tuple(name for name in self._inside.split("/") if name)

    @property
    def object_path(self) -> str:
        """The path as a string: ``"/dir"``."""
        return "/" + self._inside

    @property
    def file_path(self) -> str:
        """Path of the file."""
        path: str = self.file.file_path
        return path

    @abstractmethod
    def _objects(self) -> Iterator[tuple[str, int, str]]:
        """Path in the file, cycle and class of all objects of the file."""

    def _whole(self, where: str) -> str:
        """The path in the file of a path relative to this directory."""
        names = [self._inside, *where.split("/")]
        return "/".join(name for name in names if name)

    def iterclassnames(
        self,
        *,
        recursive: bool = True,
        cycle: bool = True,
        filter_name: Filter = None,
        filter_classname: Filter = None,
    ) -> Iterator[tuple[str, str]]:
        """Pairs of name and class. With ``cycle``, names end in ``;cycle``; else only the newest cycle is listed."""
        fits_name, fits_class = matcher(filter_name), matcher(filter_classname)
        lead = self._inside + "/" if self._inside else ""
        found: dict[str, tuple[int, str]] = {}
        for whole, number, class_name in self._objects():
            path = whole.removeprefix(lead)
            if not whole.startswith(lead) or ("/" in path and not recursive):
                continue
            if (fits_name(path) or fits_name(path.rpartition("/")[2])) and fits_class(class_name):
                key = f"{path};{number}" if cycle else path
                if key not in found or found[key][0] < number:
                    found[key] = number, class_name
        return ((key, class_name) for key, (_, class_name) in found.items())

    def iterkeys(self, **which: Any) -> Iterator[str]:
        """The names of `iterclassnames`."""
        return (key for key, _ in self.iterclassnames(**which))

    def keys(self, **which: Any) -> list[str]:  # type: ignore[override]
        """`iterkeys` as a list."""
        return list(self.iterkeys(**which))

    def classnames(self, **which: Any) -> dict[str, str]:
        """Classes by name."""
        return dict(self.iterclassnames(**which))

    def _no_object(self, where: str) -> NotFoundError:
        names = ", ".join(map(repr, self.keys(cycle=False)[:MAX_NAMES])) or "none"
        return NotFoundError(f"{self.file_path}: no object is named {where!r} (existing objects: {names})")

    def __iter__(self) -> Iterator[str]:
        return self.iterkeys()

    def __len__(self) -> int:
        return len(self.keys())

    def __bool__(self) -> bool:
        return True

    @property
    def closed(self) -> bool:
        """Whether the file was closed."""
        closed: bool = self.file.closed
        return closed

    def close(self) -> None:
        """Closes the file; a written file becomes visible."""
        self.file.close()

    def __exit__(self, *exception: object) -> None:
        self.file.__exit__(*exception)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.object_path!r}>"
