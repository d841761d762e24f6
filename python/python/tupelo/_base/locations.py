"""Locations of ntuples and origins of batches."""

from dataclasses import dataclass, field

from .. import _core


@dataclass(frozen=True)
class Report:
    """The origin of a batch of `Ntuple.iterate` or `iterate`: entries ``start`` to ``stop`` (exclusive).

    These count through all files; ``tree_entry_start`` and ``tree_entry_stop`` count from the start of the ntuple,
    which has the path ``object_path`` in the file ``file_path``.
    """

    start: int
    stop: int
    file_path: str
    object_path: str
    global_offset: int = 0
    """Number of entries in earlier files."""

    @property
    def tree_entry_start(self) -> int:
        """First entry, relative to its ntuple."""
        return self.start - self.global_offset

    @property
    def tree_entry_stop(self) -> int:
        """End of the range (exclusive), relative to its ntuple."""
        return self.stop - self.global_offset

    @property
    def global_entry_start(self) -> int:
        """The same as ``start``."""
        return self.start

    @property
    def global_entry_stop(self) -> int:
        """The same as ``stop``."""
        return self.stop


@dataclass(frozen=True)
class TreeCache:
    """How baskets are fetched; see `Tree.with_cache`."""

    bytes: int | None
    """Limit of a vector read."""
    learn_entries: int
    """Entries of the learning phase."""

    def applied(self, core: "_core.Table") -> "_core.Table":
        """The tree with this cache."""
        return core.with_tree_cache(bytes=self.bytes, learn_entries=self.learn_entries)


@dataclass(frozen=True)
class NtupleLocation:
    """The location of an ntuple, from which it can be reopened; this is what gets pickled."""

    file_path: str
    """The file for messages, without credentials."""
    names: tuple[str, ...]
    """Its path in the file, then, for an attribute set, the set's name."""
    absolute_path: str | None = field(repr=False)
    """The absolute path or the URL of the file when it was opened; None for a file object, which cannot be reopened."""
    page_checksums: bool = _core.DEFAULT_PAGE_CHECKSUMS
    memory_budget: int | None = None
    metrics: bool = False
    storage: "_core.Storage | None" = None
    """Options and cache of a remote file."""
    tree_cache: TreeCache | None = None
    recover: bool = False
    """Whether to rebuild the directories of a file that was not saved."""

    def open(self) -> "_core.Table":
        """Opens the ntuple, in any process."""
        path = self.file_path if self.absolute_path is None else self.absolute_path
        file = _core.File(
            path,
            page_checksums=self.page_checksums,
            memory_budget=self.memory_budget,
            metrics=self.metrics,
            storage=self.storage,
            recover=self.recover,
        )
        core = file.table(self.names[0])
        for name in self.names[1:]:
            core = core.attribute_set(name)
        return core if self.tree_cache is None else self.tree_cache.applied(core)
