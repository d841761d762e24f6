"""What ntuples and trees have in common."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import NotFoundError
from ..ntuple import Ntuple
from ._fields import HasColumns


class Table(HasColumns):
    """The base class of ntuples and trees; `core` is its `tupelo.Ntuple` or `tupelo.Tree`."""

    path = "."

    def __init__(self, core: Ntuple, directory: Any, key: str) -> None:
        self.core = core
        self.parent = directory
        self.key = key
        """Path in the file and cycle."""
        self.ntuple = self

    @property
    def name(self) -> str:
        """Its name, without directories."""
        return self.core.name

    @property
    def description(self) -> str:
        """Its description."""
        return self.core.description

    @property
    def object_path(self) -> str:
        """Its path in the file."""
        return self.core.object_path

    @property
    def file(self) -> Any:
        """The file."""
        return self.parent.file

    @property
    def file_path(self) -> str:
        """Path of the file."""
        return self.core.file_path

    @property
    def source(self) -> Any:
        """The source of the bytes of the file."""
        return self.file.source

    @property
    def cache_key(self) -> str:
        """A key that is unique among all objects of all files."""
        return f"{self.file.hex_uuid}:{self.key}"

    def _patterns(self) -> list[str]:
        return []

    def _no_such_field(self, where: str) -> NotFoundError:
        return NotFoundError(str(self.core._no_such_field(where)))

    def chosen_schema(self, filters: Mapping[str, Any]) -> Any:
        """The `pyarrow.Schema` of `arrays` with filters."""
        names = [filters.get(name) for name in ("filter_name", "filter_typename", "filter_field", "filter_branch")]
        request = self._request(None, None, None, (names[0], names[1], names[2], names[3]), (0, 0))
        return self._shaped(self.core._core.read(request), request).schema

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.arrays(library="np"), dtype)

    def __enter__(self) -> "Table":
        return self

    def __exit__(self, *exception: object) -> None:
        self.core.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self.core._open_core is None

    def close(self) -> None:
        """Closes the file."""
        self.core.close()

    def __reduce__(self) -> tuple[object, ...]:
        return _reopen, (self.parent, self.key)


def _reopen(directory: Any, key: str) -> Table:
    """Reopens an unpickled ntuple or tree."""
    table: Table = directory.file.table(key, directory)
    return table
