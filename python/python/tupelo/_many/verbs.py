"""Reading many files as one sequence of entries."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, SupportsIndex

from .._base.progress import Progress
from .._base.progress import check as check_progress
from .._from_arrow.awkward import AwkwardOptions
from .._from_arrow.libraries import to_library
from ..fields import _select
from ..fields._select import Filter
from ..histogram import _filling
from ..ntuple._ntuple import Ntuple
from ..ntuple._options import (
    ArrayOptions,
    FileOptions,
    ManyArrayOptions,
    ManyReadOptions,
    SelectOptions,
    complete,
    takes,
)
from ..ntuple._requests import DEFAULT_STEP
from ..reading._chain import Chain, ChainPart, FieldPolicy, open_chain
from ..reading._files import Files

if TYPE_CHECKING:
    from typing_extensions import Unpack


@takes(ManyArrayOptions)
def iterate(
    files: Files | Ntuple | Iterable[Ntuple],
    expressions: str | Iterable[str] | None = None,
    cut: str | None = None,
    *,
    step_size: SupportsIndex | str = DEFAULT_STEP,
    fields: FieldPolicy = "common",
    report: bool = False,
    binary_strings: bool = False,
    progress: Progress = None,
    **options: "Unpack[ManyArrayOptions]",
) -> Iterator[Any]:
    """Reads the entries of many files in batches, like `Ntuple.iterate` for one file.

    ``files`` are those of `partitions`, or open ntuples. A batch never spans two files. The `Report` of a batch and the
    index of data frames count entries through all files. ``allow_missing`` skips files without an ntuple of that name;
    the file itself must exist. ``page_checksums`` and ``memory_budget`` are those of `open`; up to 8 files are open at
    a time. The other keywords are those of `Ntuple.iterate`.

    Files may have different fields. Without ``expressions``, ``fields="common"`` reads the fields that all files have
    and a warning lists the others; ``fields="union"`` reads the fields that any file has, with missing values for files
    that lack them. Filters select among these. All files are opened before the first batch to compare their fields.
    Names and globs in ``expressions`` must match fields of every file, or with ``fields="union"`` of one file, and give
    missing values for the others. The fields of computed expressions and of a ``cut`` must exist in every file;
    otherwise an error names the file and the field.

    ``progress`` is that of `Ntuple.iterate`, over the entries of all files.

    Raises `InvalidArgumentError` for an empty list of files and for fields of different types, and the errors of `open`
    and `Ntuple.iterate`.

    >>> import tupelo
    >>> for run in 1, 2:
    ...     with tupelo.recreate(f"iterate{run}.root") as file:
    ...         file["Events"] = {"x": [run, 10 * run]}
    >>> for batch, report in tupelo.iterate("iterate?.root:Events", "x", report=True, library="np"):
    ...     print(report.file_path, report.start, report.stop, batch["x"])
    iterate1.root 0 2 [ 1 10]
    iterate2.root 2 4 [ 2 20]
    >>> for batch in tupelo.iterate({"iterate1.root": {"object_path": "Events", "steps": [[1, 2]]}}):
    ...     print(batch.x)
    [10]
    """
    chosen = complete("iterate", options, ManyArrayOptions)
    _select.check_step_size(step_size)
    check_progress(progress)
    chain = _opened(files, chosen, fields, expressions, chosen)
    reading: dict[str, Any] = {
        name: chosen[name] for name in {**SelectOptions.__annotations__, **ArrayOptions.__annotations__}
    }
    how: dict[str, Any] = {"step_size": step_size, "report": report, "binary_strings": binary_strings}
    batches: Iterator[Any] = chain.iterate(expressions, cut, progress=progress, **how, **reading)
    return batches


@takes(ManyReadOptions)
def concatenate(
    files: Files | Ntuple | Iterable[Ntuple],
    expressions: str | Iterable[str] | None = None,
    cut: str | None = None,
    *,
    fields: FieldPolicy = "common",
    binary_strings: bool = False,
    **options: "Unpack[ManyReadOptions]",
) -> Any:
    """Reads the entries of many files into one array, like `Ntuple.arrays` for one file.

    ``files``, ``fields`` and ``allow_missing`` are those of `iterate`; ``entry_start`` and ``entry_stop`` count through
    all files. The other keywords are those of `Ntuple.arrays`. Fields of the same name must have the same type in all
    files.

    Raises `InvalidArgumentError` with the difference if they do not, and for an empty list of files.

    >>> import tupelo
    >>> for run in 1, 2:
    ...     with tupelo.recreate(f"concatenate{run}.root") as file:
    ...         file["Events"] = {"x": [run, 10 * run], f"only{run}": [0.5, 1.5]}
    >>> tupelo.concatenate("concatenate?.root", "x", entry_start=1, library="np")
    {'x': array([10,  2, 20])}
    >>> print(tupelo.concatenate("concatenate?.root", fields="union").only2)
    [None, None, 0.5, 1.5]
    >>> tupelo.concatenate("concatenate?.root", ["only2", "x * 2"], cut="x > 1", fields="union").tolist()
    [{'only2': None, 'x * 2': 20}, {'only2': 0.5, 'x * 2': 4}, {'only2': 1.5, 'x * 2': 40}]
    """
    chosen = complete("concatenate", options, ManyReadOptions)
    chain = _opened(files, chosen, fields, expressions, chosen)
    request = chain._request(expressions, cut, chosen)
    request.binary_strings = binary_strings
    batch, entries = chain._whole(request)
    style = AwkwardOptions(chosen["ak_add_doc"])
    return to_library(
        request.ordered(batch), chosen["library"], entries, style, chosen["how"], is_shared=chain._shares_memory
    )


@takes(FileOptions)
def hist(
    files: Files | Ntuple | Iterable[Ntuple],
    *expressions: str | Mapping[str, Any],
    bins: Any = _filling.DEFAULT_BINS,
    range: Any = None,
    cut: str | None = None,
    weight: str | None = None,
    sample: str | None = None,
    aliases: Mapping[str, str] | None = None,
    step_size: SupportsIndex | str = _filling.DEFAULT_STEP,
    progress: Progress = None,
    **options: "Unpack[FileOptions]",
) -> Any:
    """Fills one histogram, or several in one pass, from the entries of many files, like `Ntuple.hist` for one file.

    ``files`` and ``allow_missing`` are those of `iterate`; the other arguments are those of `Ntuple.hist`.

    Raises the errors of `Ntuple.hist` and `iterate`, and `InvalidArgumentError` for an empty list of files.

    >>> import tupelo
    >>> for run in 1, 2:
    ...     with tupelo.recreate(f"hist{run}.root") as file:
    ...         file["Events"] = {"x": [run, 10 * run]}
    >>> tupelo.hist("hist?.root:Events", "x", bins=2, range=(0, 20), cut="x < 20").values().tolist()
    [2.0, 1.0]
    """
    chain = open_chain(files, complete("hist", options, FileOptions))
    reading = _filling.Reading(chain, cut, aliases, 0, chain.num_entries, step_size)
    return _filling.Booking.of(expressions, bins, range, weight, sample).fill(reading, progress)


@takes(FileOptions)
def scan(
    files: Files | Ntuple | Iterable[Ntuple],
    names: str | Iterable[str] | None = None,
    *,
    filter_name: Filter = None,
    filter_typename: Filter = None,
    fields: FieldPolicy = "common",
    binary_strings: bool = False,
    **options: "Unpack[FileOptions]",
) -> Any:
    """A `polars.LazyFrame` of the entries of many files, like `Ntuple.scan` for one file.

    ``files``, ``fields`` and ``allow_missing`` are those of `iterate`; the other arguments are those of `Ntuple.scan`.
    All files are opened immediately.

    Raises the errors of `Ntuple.scan` and `iterate`, and `InvalidArgumentError` for an empty list of files.

    >>> import polars, tupelo
    >>> for run in 1, 2:
    ...     with tupelo.recreate(f"scan{run}.root") as file:
    ...         file["Events"] = {"x": [run, 10 * run]}
    >>> tupelo.scan("scan?.root:Events").filter(polars.col("x") > 1).collect()["x"].to_list()
    [10, 2, 20]
    """
    filters: dict[str, Any] = {"filter_name": filter_name, "filter_typename": filter_typename}
    chain = _opened(files, complete("scan", options, FileOptions), fields, names, filters)
    return chain.scan(names, binary_strings=binary_strings, **filters)


def _opened(
    files: Any, options: Mapping[str, Any], fields: FieldPolicy, names: object, filters: Mapping[str, Any]
) -> Chain:
    """Opens files, and warns of fields that are not read because some files lack them."""
    chain = open_chain(files, options, fields)
    if names is None and all(filters.get(name) is None for name in ("filter_name", "filter_typename", "filter_field")):
        chain._warn_of_missing_fields(stacklevel=4)
    return chain


def num_entries(
    files: Files | Ntuple | Iterable[Ntuple], *, allow_missing: bool = False
) -> Iterator[tuple[str, str, int]]:
    """The number of entries of the ntuple in each file, as (file, ntuple, number); no entries are read.

    ``files`` and ``allow_missing`` are those of `iterate`. Raises the errors of `open`.

    >>> import tupelo
    >>> with tupelo.recreate("num_entries.root") as file:
    ...     file["Events"] = {"x": [1, 2, 3]}
    >>> list(tupelo.num_entries("num_*.root"))
    [('num_entries.root', 'Events', 3)]
    """
    chain = open_chain(files, complete("num_entries", {"allow_missing": allow_missing}, FileOptions))

    def count(part: ChainPart) -> int:
        own = ((max(start, part.entry_start), min(stop, part.entry_stop)) for start, stop in chain.ranges)
        return sum(stop - start for start, stop in own if start < stop)

    # A relative path is shown only while it is right.
    parts = map(chain._part, range(chain.num_files))
    return ((part.file_path, part.object_path, count(part)) for part in parts)
