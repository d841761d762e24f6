"""Variants in SQL. DuckDB does not know the dense unions of Arrow."""

from typing import Any

import pyarrow as pa

from .._base.messages import quoted_names
from .._queries.dataset import Dataset
from ..errors import UnsupportedError


def variants_of(dataset: Dataset) -> list[str]:
    """Names of the columns with variants."""
    return [field.name for field in dataset.schema if _has_variant(field.type)]


def _has_variant(kind: Any) -> bool:
    return pa.types.is_union(kind) or any(_has_variant(kind.field(index).type) for index in range(kind.num_fields))


def without_variants(dataset: Dataset, file_path: str) -> Dataset:
    """The dataset with placeholders for its variants. Reading one is an error."""
    return _WithoutVariants(dataset, file_path) if variants_of(dataset) else dataset


class _WithoutVariants(Dataset):
    """A dataset whose variants have the type null.

    They come last: ``count(*)`` reads the first column.
    """

    def __init__(self, dataset: Dataset, file_path: str) -> None:
        super().__init__(dataset._reader)
        self._file_path = file_path
        self._variants = variants_of(dataset)

    @property
    def schema(self) -> Any:
        others = [field for field in super().schema if field.name not in self._variants]
        return pa.schema([*others, *(pa.field(name, pa.null()) for name in self._variants)])

    def scanner(self, columns: Any = None, *how: Any, **options: Any) -> Any:
        if read := [name for name in self._variants if columns is None or name in columns]:
            raise not_read(self._file_path, read)
        return super().scanner(columns, *how, **options)


def not_read(file_path: str, names: list[str]) -> UnsupportedError:
    """The error of a query that uses variants."""
    return UnsupportedError(
        f"{file_path}: {quoted_names(names)}: DuckDB does not read variants; leave them out: "
        f"* exclude ({', '.join(names)})"
    )
