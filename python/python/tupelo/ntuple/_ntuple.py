"""Open ntuples and trees, and the attribute sets of ntuples."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, SupportsIndex

import numpy as np

from .. import _core
from .._base.checks import check_name, entry_number
from .._base.locations import NtupleLocation, TreeCache
from .._base.messages import short_repr
from .._base.sizes import as_count, parse_optional_bytes
from .._from_arrow.libraries import Library, to_library
from ..errors import InvalidArgumentError
from ..fields import _select
from . import _html
from ._columns import Columns
from ._entries import Entries
from ._metrics import Metrics
from ._rules import ReadRule
from ._with_columns import NtupleWithColumns


class Ntuple(Entries):
    """An open ntuple: a mapping from dotted paths to fields, with methods that read entries.

    It can be shared between threads and pickled; a pickle contains its location, not its data. It has Arrow's
    ``__arrow_c_stream__``, so ``pyarrow.table(ntuple)``, ``polars.DataFrame(ntuple)``, ``pandas.DataFrame.from_arrow``
    and DuckDB read all of it directly. `dataset` and `scan` are for queries, which read only what they need.

    >>> import tupelo
    >>> with tupelo.recreate("events.root") as file:
    ...     file["Events"] = {"pt": [[31.5, 7.25], [], [12.0]], "run": [1, 1, 2]}
    >>> ntuple = tupelo.open("events.root:Events")
    >>> ntuple
    <tupelo.Ntuple 'Events' (2 fields, 3 entries)>
    >>> ntuple.arrays(["pt"], entry_start=-1).tolist()
    [{'pt': [12.0]}]
    """

    # The reference has what a class lists itself.
    arrow_schema = Entries.arrow_schema
    arrays = Entries.arrays
    iterate = Entries.iterate
    take = Entries.take
    stream = Entries.stream
    scan = Entries.scan
    dataset = Entries.dataset
    hist = Entries.hist
    explain = Entries.explain
    copy = Entries.copy

    @property
    def writer(self) -> str:
        """The program that wrote it, if known."""
        return self._core.writer

    @property
    def format_version(self) -> str:
        """Format version declared by the writer, for instance ``"1.0.2.0"``."""
        return self._core.format_version

    @property
    def num_clusters(self) -> int:
        """Number of clusters: groups of entries that are stored together."""
        return self._core.num_clusters

    @property
    def cluster_boundaries(self) -> Any:
        """The first entry of each non-empty cluster, followed by the number of entries: a NumPy array.

        >>> import tupelo
        >>> with tupelo.recreate("boundaries.root") as file:
        ...     events = file.mkrntuple("Events", {"x": "int"})
        ...     for _ in range(3):
        ...         events.extend({"x": [1, 2]})
        ...         events.flush_cluster()
        >>> tupelo.open("boundaries.root:Events").cluster_boundaries
        array([0, 2, 4, 6])
        """
        return np.array([*(cluster.first_entry for cluster in self._core.clusters()), self.num_entries], dtype=np.int64)

    @property
    def metadata(self) -> dict[str, str]:
        """Metadata of the ntuple: strings by key; see `NtupleWriter.metadata`.

        They are the attribute set ``metadata``. Raises `UnsupportedError` where another program means something else
        by that name; `attributes` reads it then.
        """
        return self._core.metadata()

    @property
    def metrics(self) -> Metrics | None:
        """What reading from the file cost so far, if it was opened with ``metrics=True``; else None."""
        counted = self._core.metrics()
        return None if counted is None else Metrics.of(counted, counted.pop("text"))

    @property
    def attribute_sets(self) -> dict[str, "AttributeSet"]:
        """The linked attribute sets by name."""
        return {name: self.attributes(name) for name in self._core.attribute_sets()}

    def attributes(self, name: str) -> "AttributeSet":
        """The attribute set with the name ``name``, which attaches data to ranges of entries.

        Raises `NotFoundError` (a `KeyError`) with similar names if it does not exist.
        """
        check_name(name, "an attribute set")
        core, origin = self._core, self._location

        def open_ntuple() -> Ntuple:
            set_location = replace(origin, names=(*origin.names, name))
            return Ntuple(core.attribute_set(name), set_location)

        return AttributeSet(core.attributes(name), name, open_ntuple)

    def with_columns(self, columns: Mapping[str, Any] | None = None, **unknown: object) -> NtupleWithColumns:
        """Returns the ntuple with additional columns: ``columns`` maps names to expressions, or to values for all
        entries.

        Expressions are those of `arrays` and may use the names of other columns. Values are anything that
        `NtupleWriter.extend` accepts as a column: NumPy and Awkward arrays (also jagged ones and records), lists, Arrow
        arrays, pandas series. Nothing is computed or written yet; `NtupleWithColumns.write` writes a file with all
        fields and columns in batches.

        Raises `InvalidArgumentError` for duplicate names, for a wrong number of values and for invalid expressions.

        >>> import numpy as np, tupelo
        >>> with tupelo.recreate("with_columns.root") as file:
        ...     file["Events"] = {"pt": [[31.5, 7.25], [], [12.0]], "run": [1, 1, 2]}
        >>> ntuple = tupelo.open("with_columns.root:Events")
        >>> scored = ntuple.with_columns({"score": np.array([0.1, 0.9, 0.7]), "ht": "sum(pt)"})
        >>> scored.arrays(["run", "score"], cut="score > 0.5").tolist()
        [{'run': 1, 'score': 0.9}, {'run': 2, 'score': 0.7}]
        >>> scored.write("scored.root")
        3
        >>> tupelo.open("scored.root:Events").keys()
        ['pt', 'run', 'score', 'ht']
        """
        return NtupleWithColumns(self, Columns().more(columns, self, unknown))

    def _repr_html_(self) -> str:
        return _html.of_ntuple(self)

    def with_rules(self, rules: ReadRule | Iterable[ReadRule]) -> "Ntuple":
        """Returns the ntuple with the members that ``rules`` compute; see `ReadRule`.

        Computed members behave like other fields: reading one reads only the sources of its rule. Existing rules of the
        ntuple stay in effect; a rule for other versions of its class than those on disk has no effect. If the function
        of a rule raises an exception, `InvalidArgumentError` names ntuple, field and rule, with the exception as its
        ``__cause__``.

        Raises `NotFoundError` with similar names for a class that the ntuple does not contain and for unknown sources,
        and `InvalidArgumentError` for incomplete rules and for members that two rules compute.
        """
        if isinstance(rules, str) or not isinstance(rules, Iterable | ReadRule):
            raise InvalidArgumentError(f"expected rules of the class ReadRule, not {short_repr(rules)}")
        rules = (rules,) if isinstance(rules, ReadRule) else tuple(rules)
        for rule in rules:
            if not isinstance(rule, ReadRule):
                raise InvalidArgumentError(f"expected rules of the class ReadRule, not {short_repr(rule)}")
        core = self._core.with_rules([rule._checked() for rule in rules])
        return as_table(core, self._location, self._rules + rules)

    def __reduce__(self) -> tuple[Any, ...]:
        origin = self._location
        if origin.absolute_path is None:
            raise InvalidArgumentError(
                f"{origin.file_path}: ntuple '{self._path}' is read from a file object and cannot be pickled; "
                "open the file by its path"
            )
        place = replace(origin, file_path=_core.display_name(origin.absolute_path))
        return _reopen, (place, self._rules)


class AttributeSet:
    """Attribute entries, each attached to a range of entries. `Ntuple.attributes` returns it; its methods select
    entries.

    >>> import tupelo
    >>> with tupelo.recreate("attributes.root") as file:
    ...     events = file.mkrntuple("Events", {"x": [0.5, 1.5, 2.5, 3.5]})
    ...     runs = events.attribute_set("runs", {"number": "int", "is_good": "bool"})
    ...     runs.extend([(0, 3), (3, 4)], {"number": [7, 8], "is_good": [True, False]})
    >>> runs = tupelo.open("attributes.root:Events").attributes("runs")
    >>> runs
    <tupelo.AttributeSet 'runs' (2 entries)>
    >>> runs.ranges.tolist(), runs.arrays(library="np")["number"].tolist()
    ([[0, 3], [3, 4]], [7, 8])
    >>> runs.of_entry(3).arrays().tolist()
    [{'number': 8, 'is_good': False}]
    >>> runs.overlapping(2, 4).ranges.tolist(), runs.within(2, 4).ranges.tolist()
    ([[0, 3], [3, 4]], [[3, 4]])
    """

    def __init__(self, core: "_core.Attributes", name: str, open_ntuple: Callable[[], Ntuple]) -> None:
        self._core = core
        self._name = name
        self._open_ntuple = open_ntuple
        starts, stops = core.ranges()
        self._ranges: np.ndarray[Any, np.dtype[np.uint64]] = np.array([starts, stops], np.uint64).reshape(2, -1).T

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def ntuple(self) -> Ntuple:
        """The ntuple that stores the set, with the fields ``_rangeStart``, ``_rangeLen`` and ``_userData``."""
        return self._open_ntuple()

    @property
    def ranges(self) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """The range of each attribute entry, start and end (exclusive): an array of shape (n, 2)."""
        return self._ranges

    def arrays(self, library: Library = "ak") -> Any:
        """The data of the attribute entries, in order. ``library`` is that of `Ntuple.arrays`."""
        _select.check_library(library)
        values = self._core.values()
        return to_library(values, library, range(values.num_rows), is_shared=True)

    def of_entry(self, entry: SupportsIndex) -> "AttributeSet":
        """The attribute entries whose range contains ``entry``, which counts from 0. None match an entry that does not
        exist.

        Raises `InvalidArgumentError` if ``entry`` is negative or not an integer.
        """
        return self._with(self._core.of_entry(entry_number(entry)))

    def containing(self, entry_start: SupportsIndex, entry_stop: SupportsIndex) -> "AttributeSet":
        """The attribute entries whose range contains all entries from ``entry_start`` to ``entry_stop`` (exclusive).

        Raises the errors of `of_entry`.
        """
        return self._with(self._core.containing(entry_number(entry_start), entry_number(entry_stop)))

    def overlapping(self, entry_start: SupportsIndex, entry_stop: SupportsIndex) -> "AttributeSet":
        """The attribute entries whose range contains any entry from ``entry_start`` to ``entry_stop`` (exclusive).

        Raises the errors of `of_entry`.
        """
        return self._with(self._core.overlapping(entry_number(entry_start), entry_number(entry_stop)))

    def within(self, entry_start: SupportsIndex, entry_stop: SupportsIndex) -> "AttributeSet":
        """The attribute entries whose range lies within ``entry_start`` to ``entry_stop`` (exclusive).

        Raises the errors of `of_entry`.
        """
        return self._with(self._core.within(entry_number(entry_start), entry_number(entry_stop)))

    def __len__(self) -> int:
        """Number of attribute entries."""
        return len(self._ranges)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<tupelo.AttributeSet {self._name!r} ({len(self)} entries)>"

    def _with(self, core: "_core.Attributes") -> "AttributeSet":
        return AttributeSet(core, self._name, self._open_ntuple)


class Tree(Ntuple):
    """An open ``TTree``: it is read by the same methods as an ntuple.

    Branches are fields. An object or a collection that is split over branches is one field with subfields again, so
    that ``tree["hits.pos.x"]`` is the branch of that name. Arrays with a counter (``x[n]/F``) and ``std::vector`` are
    lists; `unreadable` has the branches that cannot be read.

    >>> import tupelo, uproot
    >>> with uproot.recreate("tree.root") as file:
    ...     tree = file.mktree("Events", {"pt": "float64", "run": "int64"})
    ...     tree.extend({"pt": [31.5, 12.0], "run": [1, 2]})
    >>> tree = tupelo.open("tree.root:Events")
    >>> tree
    <tupelo.Tree 'Events' (2 fields, 2 entries)>
    >>> tree.arrays(["pt"], cut="run == 2").tolist()
    [{'pt': 12.0}]
    """

    _class = "Tree"

    @property
    def _kind(self) -> str:
        return self.class_name

    @property
    def class_name(self) -> str:
        """C++ class: ``"TTree"``, ``"TNtuple"`` or ``"TNtupleD"``."""
        return self._core.class_name

    @property
    def friends(self) -> list[tuple[str, str, str]]:
        """Friend trees: alias, file (empty for the same file) and name of each. `with_friends` joins them."""
        return self._info.friends

    def with_friends(self) -> "TreeWithFriends":
        """The tree together with its friends: the names of their fields begin with the alias and ``_``.

        The entries of a friend with an index are those with the same values of its major and minor branch, and missing
        where it has none; those of other friends are those of the same number. Relative paths of files are those in the
        folder of the tree's file, or else from the working directory, as in ROOT.

        Raises the errors of `open` and `join`, and `UnsupportedError` for an index of other expressions than branches.
        """
        return TreeWithFriends(self._location)

    @property
    def index(self) -> tuple[str, str] | None:
        """The expressions of the major and minor number of the index, or None if the tree has no index."""
        return self._info.index

    @property
    def aliases(self) -> dict[str, str]:
        """Aliases that are stored with the tree: expressions by name. Pass them as ``aliases`` to use them."""
        return dict(self._info.aliases)

    @property
    def unreadable(self) -> dict[str, str]:
        """Branches that cannot be read: the reason by path, whose names are joined by slashes."""
        return dict(self._info.unreadable)

    @property
    def branches(self) -> dict[str, str]:
        """Branches with values: the path of the field by that of the branch, whose names are joined by slashes."""
        found: dict[str, str] = {}
        for branch, field in self._info.branches:
            # As in ROOT, the first of two branches with the same name.
            found.setdefault(branch, field)
        return found

    def with_cache(self, size: SupportsIndex | str | None = None, *, learn_entries: SupportsIndex = 0) -> "Tree":
        """Returns the tree with another way of fetching baskets, in the words of ROOT's ``TTreeCache``.

        ``size`` limits the bytes of the baskets that one vector read fetches, as a number or a string such as
        ``"30 MB"``; with 0 each basket is a read of its own. By default, baskets of a remote file are fetched up to
        16 MiB at once, and those of a local file by the threads that decode them. The baskets of the first
        ``learn_entries`` entries are fetched one by one, as ROOT does with 100 entries while it learns which branches
        are used. The default is 0, because a request names its fields.

        Raises `InvalidArgumentError` for other sizes and negative numbers.

        >>> import tupelo, uproot
        >>> with uproot.recreate("cached.root") as file:
        ...     file.mktree("Events", {"x": "float64", "y": "float64"}).extend({"x": [1.5], "y": [2.5]})
        >>> tree = tupelo.open("cached.root:Events", metrics=True)
        >>> requests = []
        >>> for size in 0, "30 MB":
        ...     before = tree.metrics.requests
        ...     _ = tree.with_cache(size).arrays()
        ...     requests.append(tree.metrics.requests - before)
        >>> requests
        [2, 1]
        """
        cache = TreeCache(parse_optional_bytes("size", size), as_count("learn_entries", "entries", learn_entries))
        place = replace(self._location, tree_cache=cache)
        return Tree(cache.applied(self._core), place, self._rules, is_quiet=True)

    @property
    def _info(self) -> "_core.TreeInfo":
        info = self._core.tree()
        assert info is not None
        return info


def as_table(
    core: "_core.Table", origin: NtupleLocation, rules: tuple[ReadRule, ...] = (), *, is_quiet: bool = False
) -> Ntuple:
    """An `Ntuple` or a `Tree`."""
    return (Ntuple if core.tree() is None else Tree)(core, origin, rules, is_quiet=is_quiet)


class TreeWithFriends(Entries):
    """A tree and its friends, with the methods of an `Ntuple` that read entries; `Tree.with_friends` returns it."""

    _class = "Tree"

    def __init__(self, origin: NtupleLocation) -> None:
        core = _core.with_friends(
            origin.open(),
            page_checksums=origin.page_checksums,
            memory_budget=origin.memory_budget,
            storage=origin.storage,
        )
        super().__init__(core, origin, is_quiet=True)

    def __reduce__(self) -> tuple[Any, ...]:
        return TreeWithFriends, (self._location,)


def _reopen(origin: NtupleLocation, rules: tuple[ReadRule, ...] = ()) -> Ntuple:
    """Reopens an unpickled ntuple."""
    ntuple = as_table(origin.open(), origin)
    return ntuple.with_rules(rules) if rules else ntuple
