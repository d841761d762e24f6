"""Events of ATLAS: containers, objects and their variables."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, SupportsIndex

from .. import _core
from .._base.checks import check_text, storage
from .._base.messages import short_repr
from .._base.progress import Progress
from .._base.sizes import as_integer
from .._from_arrow.libraries import to_library
from ..errors import InvalidArgumentError, NotFoundError
from ..fields._select import check_library, entry_range
from ..ntuple._ntuple import Ntuple
from ..reading._chain import Chain
from ..reading._file import File
from ..reading._files import resolve_whole_files
from ..reading._opening import open as _open
from . import _deriving

_MOMENTUM = ({"pt", "eta", "phi", "m"}, {"pt", "eta", "phi", "e"}, {"px", "py", "pz", "e"}, {"px", "py", "pz", "m"})
_COORDINATES = {*"xyztEeMm", "rho", "phi", "eta", "theta", "tau", "px", "py", "pz", "pt", "energy", "mass"}
"""What the package vector takes for a coordinate. It refuses records with more than it needs."""
_STEP = 10_000


@dataclass(frozen=True)
class Variable:
    """A variable of a container or object."""

    name: str
    """Its name, such as ``pt``."""
    path: str
    """Dotted path of its field."""
    typename: str
    """C++ type of the value of one element."""
    is_static: bool
    """Whether it is a member of the class of the store."""
    id: int
    """Number of this name and type among those of the event: the same for ntuples and trees with the same variables."""


def open(files: Any, *, tree: str | None = None, **options: Any) -> "Event":
    """Opens the events of a file, or of several.

    ``files`` is a path or URL, a list or a pattern of them, as for `tupelo.open`; ``tree`` is the name of the ntuple
    or tree, which is by default ``EventData``, or ``CollectionTree``. ``options`` are those of `tupelo.open`. Links are
    resolved by the metadata of the file, and of several files by those of all of them.

    Raises `tupelo.NotFoundError` if the file has no such ntuple or tree, and the errors of `tupelo.open`.

    >>> import tupelo, tupelo.xaod
    >>> with tupelo.recreate("daod.root") as file:
    ...     file["EventData"] = {"JetsAuxDyn:pt": [[1.5, 2.5], []], "JetsAuxDyn:m": [[0.5, 0.25], []]}
    >>> event = tupelo.xaod.open("daod.root")
    >>> event["Jets"].keys(), event["Jets"].pt.tolist()
    (['pt', 'm'], [[1.5, 2.5], []])
    """

    def again() -> Event:
        return open(files, tree=tree, **options)

    places = []
    if not hasattr(files, "read"):
        places = resolve_whole_files(files, storage(options.get("storage_options"), options.get("cache")))
        if not places:
            raise InvalidArgumentError(f"expected files with events, not {short_repr(files)}")
    name = next((place.name for place in places[:1] if place.name), tree)
    # Of several files, the first one is opened here only to find the name.
    is_needed = len(places) <= 1 or name is None
    first = _open({places[0].path: None} if places else files, **options) if is_needed else None
    # An ntuple in an object store has no file.
    file = first if isinstance(first, File) else None
    if file is not None and name is None:
        name = _name_of_events(file)
    if len(places) > 1:
        return Event(_open([{place.path: place.name or name} for place in places], **options), None, again)
    return Event(first if file is None or name is None else file[name], file, again)


def _name_of_events(file: File) -> str:
    """The ntuple or tree of a file that has the usual name."""
    known = file.keys()
    found = next((name for name in _core.ATLAS_EVENTS if name in known), None)
    if found is None:
        usual = " or ".join(map(repr, _core.ATLAS_EVENTS))
        raise NotFoundError(f"expected an ntuple or tree named {usual}, found {known}")
    return found


def _stores(events: Ntuple | Chain, file: File | None) -> "_core.AuxStores":
    """The containers of ``events``, with the file or the files that have their metadata."""
    if isinstance(events, Chain):
        inputs, location = events._inputs, events._chain_location
        return _core.AuxStores(
            events._core,
            [path for number in events._numbers if (path := inputs[number]) is not None],
            page_checksums=location.page_checksums,
            memory_budget=location.memory_budget,
            storage=location.storage,
        )
    files: list[_core.File | str] = [] if file is None else [file._core]
    return _core.AuxStores(
        events._core, files, page_checksums=_core.DEFAULT_PAGE_CHECKSUMS, memory_budget=None, storage=None
    )


class Event(Mapping[str, "Container"]):
    """The containers and objects of all entries: a mapping from their names.

    ``event["AnalysisJets"]`` is a `Container`; ``event["AnalysisJetsAuxDyn:pt"]``, in the spelling of ntuples or of
    trees, the values of a variable.
    """

    def __init__(self, events: Any, file: File | None, reopen: "Callable[[], Event] | None" = None) -> None:
        if not isinstance(events, Ntuple | Chain):
            raise InvalidArgumentError(f"expected an ntuple, a tree or a chain of them, not {short_repr(events)}")
        self._events = events
        self._reopen = reopen
        self._core = _stores(events, file)
        self._one_by_one: dict[str, _OneByOne] = {}
        self._names = dict.fromkeys(self._core.names())

    @property
    def num_entries(self) -> int:
        """Number of entries."""
        return self._events.num_entries

    @property
    def events(self) -> Ntuple | Chain:
        """The ntuple, tree or chain."""
        return self._events

    def __getitem__(self, name: str) -> Any:
        if check_text(name, "name") in self._names or not any(dot in name for dot in ".:"):
            return Container(self, self._core.container(name))
        container, variable = self._core.find(name)
        return self[container][variable]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __repr__(self) -> str:
        return f"<tupelo.xaod.Event ({len(self)} containers and objects, {self.num_entries} entries)>"

    def arrays(
        self,
        wanted: Mapping[str, Iterable[str] | None] | Iterable[str],
        *,
        entry_start: SupportsIndex | None = None,
        entry_stop: SupportsIndex | None = None,
        library: Literal["ak", "arrow"] = "ak",
    ) -> Any:
        """Reads variables of several containers in one request: a mapping from containers to the names of variables,
        or None for all of them. The result has a record for each entry, with a list of records for each container, and
        a record for each object.

        Raises `tupelo.NotFoundError` with near names, and `tupelo.UnsupportedError` with container, variable and
        entry, where a variable has another number of values than its container has elements.
        """
        check_library(library)
        if library not in ("ak", "arrow"):
            raise InvalidArgumentError(f"expected library 'ak' or 'arrow', not {library!r}: records have no other form")
        chosen = self._chosen(wanted)
        start, stop = entry_range(entry_start, entry_stop, self.num_entries)
        batch = self._core.read(chosen, start, stop)
        arrays = to_library(batch, library, range(start, stop))
        return _with_vectors(arrays) if library == "ak" else arrays

    @staticmethod
    def _chosen(wanted: Mapping[str, Iterable[str] | None] | Iterable[str]) -> list[tuple[str, list[str]]]:
        """Containers with the names of variables; none of them means all."""
        pairs = wanted.items() if isinstance(wanted, Mapping) else [(name, None) for name in wanted]
        return [(check_text(name, "container"), _names(variables)) for name, variables in pairs]

    def iterate(
        self, wanted: Mapping[str, Iterable[str] | None] | Iterable[str], *, step_size: int = _STEP
    ) -> Iterator[Any]:
        """The same for ``step_size`` entries at a time."""
        if step_size < 1:
            raise InvalidArgumentError(f"expected step_size as a positive number of entries, not {step_size}")
        chosen = dict(wanted) if isinstance(wanted, Mapping) else dict.fromkeys(wanted)
        chosen = {name: _names(variables) or None for name, variables in chosen.items()}
        for start in range(0, self.num_entries, step_size):
            yield self.arrays(chosen, entry_start=start, entry_stop=min(start + step_size, self.num_entries))

    def resolve(
        self,
        links: str,
        variables: Iterable[str] | None = None,
        *,
        entry_start: SupportsIndex | None = None,
        entry_stop: SupportsIndex | None = None,
        dangling: Literal["error", "null"] = "error",
    ) -> Any:
        """The elements that the links of a variable refer to: an Awkward array in the form of the links, with records
        of ``variables`` of the elements, by default all. Null links are None.

        ``links`` is a variable such as ``"AnalysisElectronsAuxDyn:trackParticleLinks"``, with a colon or a dot, or
        ``"AnalysisElectrons.trackParticleLinks"``. Links may refer to several containers if their ``variables`` have
        the same types.

        Raises `tupelo.InvalidArgumentError` for other variables, and with entry and link for an unknown key, a
        container that is not in the file and an index that is too large, unless ``dangling="null"``; and
        `tupelo.LimitError` if the elements take more than the memory budget.
        """
        if dangling not in ("error", "null"):
            raise InvalidArgumentError(f"expected dangling to be 'error' or 'null', not {short_repr(dangling)}")
        start, stop = entry_range(entry_start, entry_stop, self.num_entries)
        found = self._core.resolve(check_text(links, "links"), _names(variables), start, stop, dangling == "null")
        return _with_vectors(to_library(found, "ak", range(start, stop))[links])

    def get(self, entry: SupportsIndex, variable: str) -> Any:  # type: ignore[override]
        """The value of a variable in one entry, such as ``event.get(7, "AnalysisJets.pt")``.

        Entries in ascending order are decoded in batches of about 1 MiB. The last batch of each variable stays in
        memory.
        `arrays` is faster for many entries.
        """
        number = as_integer(entry)
        if number is None or not -self.num_entries <= number < self.num_entries:
            raise InvalidArgumentError(f"entry {short_repr(entry)} does not exist: there are {self.num_entries}")
        values = self._one_by_one.get(check_text(variable, "variable"))
        if values is None:
            values = self._one_by_one[variable] = _OneByOne(self._core, *self._core.find(variable))
        return values.get(number % self.num_entries)

    def derive(
        self,
        path: str | os.PathLike[str],
        containers: Mapping[str, Iterable[str] | None] | Iterable[str] | None = None,
        *,
        fields: Iterable[str] = (),
        cut: str | None = None,
        thin: Mapping[str, Any] | None = None,
        decorate: Mapping[str, Mapping[str, Any]] | None = None,
        entry_start: SupportsIndex | None = None,
        entry_stop: SupportsIndex | None = None,
        format: Literal["ntuple", "tree"] | None = None,
        compression: str | int | None = None,
        progress: Progress = None,
    ) -> int:
        """Writes a derived file and returns the number of its entries: with some of the events, containers, variables
        and elements, and with new variables. The metadata, and objects such as histograms, are copied.

        - ``containers`` (slimming) are the containers and objects that are kept, and their variables or None for all,
          as in `arrays`; by default all. Static variables of a store stay together. ``fields`` are other fields to keep
        - ``cut``, ``entry_start`` and ``entry_stop`` (skimming) select entries as in `tupelo.Ntuple.arrays`
        - ``thin`` maps containers to the elements that are kept: an expression over their variables, or a list of
          booleans for each entry. Links to others become null links
        - ``decorate`` maps containers and objects to new variables: an expression, or a list with a value for each
          element of each entry, and a value for each entry of an object. Later expressions may use them

        Expressions name variables of other containers as ``AnalysisJets.pt``. ``format`` is by default that of the
        events, and ``compression`` their codec; pages whose values stay are then copied as they are. ``progress`` is
        that of `tupelo.Ntuple.iterate`. An existing file is replaced when the new one is complete. A warning names what
        is not in the new file.

        Raises `tupelo.NotFoundError` with near names; `tupelo.InvalidArgumentError` for new variables whose names are
        taken or that have another number of values than the container has elements, for masks that are not booleans,
        and for links to elements that do not exist, with the entry; the errors of reading and writing.

        >>> import tupelo, tupelo.xaod
        >>> with tupelo.recreate("daod.root") as file:
        ...     file["EventData"] = {"JetsAuxDyn:pt": [[1.5, 2.5], []], "JetsAuxDyn:m": [[0.5, 0.25], []]}
        >>> event = tupelo.xaod.open("daod.root")
        >>> new = {"Jets": {"half": "pt / 2"}}
        >>> event.derive("derived.root", {"Jets": ["pt"]}, thin={"Jets": "pt > 2"}, decorate=new)
        2
        >>> tupelo.xaod.open("derived.root")["Jets"].arrays().tolist()
        [[{'pt': 2.5, 'half': 1.25}], []]
        """
        start, stop = entry_range(entry_start, entry_stop, self.num_entries)
        request = _deriving.Derivation(
            containers=None if containers is None else self._chosen(containers),
            fields=_names(fields),
            cut=cut,
            thinned=_deriving.masks(thin or {}, self.num_entries),
            added=_deriving.variables(decorate or {}, self.num_entries),
            start=start,
            stop=stop,
            is_tree=None if format is None else _deriving.is_tree(format),
            compression=_deriving.codec(compression),
        )
        return _deriving.derive(self._core, self._events, request, path, progress)

    def decorate(self, variables: Mapping[str, Mapping[str, Any]], *, compression: str | int | None = None) -> "Event":
        """Adds variables to the ntuple in its own file and returns the event with them. ``variables`` are those of
        `derive`, for all entries; the values that the file has stay where they are.

        Raises `tupelo.UnsupportedError` for trees and for several files, which `derive` writes again, and the errors of
        `derive` and of `tupelo.WritableFile.append_fields`; the file is then as it was.

        >>> import tupelo, tupelo.xaod
        >>> with tupelo.recreate("daod.root") as file:
        ...     file["EventData"] = {"JetsAuxDyn:pt": [[1.5, 2.5], []]}
        >>> tupelo.xaod.open("daod.root").decorate({"Jets": {"isHard": "pt > 2"}})["Jets"].isHard.tolist()
        [[False, True], []]
        """
        request = _deriving.Derivation(
            added=_deriving.variables(variables, self.num_entries),
            stop=self.num_entries,
            compression=_deriving.codec(compression),
        )
        _deriving.append(self._core, self._events, request)
        if self._reopen is None:
            raise InvalidArgumentError("the event was not opened from a file")
        return self._reopen()

    def link_keys(self) -> dict[int, str]:
        """The keys of links, and the containers that they stand for."""
        return dict(self._core.keys())


class _OneByOne:
    """The values of a variable, entry by entry."""

    def __init__(self, stores: "_core.AuxStores", container: str, variable: str) -> None:
        self._core = stores.entry_wise([(container, [variable])])
        self._name = container, variable
        self._piece: tuple[int, int, Any] = (0, 0, None)

    def get(self, entry: int) -> Any:
        # One assignment, so that threads see a whole piece.
        start, stop, values = self._piece
        if not start <= entry < stop:
            read = self._core.piece(entry)
            start, stop = read.entry_start, read.entry_stop
            values = to_library(read.data, "ak", range(start, stop))[self._name]
            self._piece = start, stop, values
        return values[entry - start]


class Container:
    """A container, or a stand-alone object, of all entries. Nothing is read before it is needed.

    ``jets["pt"]`` and ``jets.pt`` are the values of a variable.
    """

    def __init__(self, event: Event, core: "_core.AuxContainer") -> None:
        self._event = event
        self._core = core

    @property
    def name(self) -> str:
        """Its name."""
        return self._core.name

    @property
    def class_name(self) -> str:
        """C++ class, such as ``DataVector<xAOD::Jet_v1>``; empty if the file has only the store."""
        return self._core.class_name

    @property
    def store_class(self) -> str:
        """C++ class of the auxiliary store; empty if the file has only dynamic variables."""
        return self._core.store_class

    @property
    def is_object(self) -> bool:
        """Whether it is one object in each entry."""
        return self._core.is_object

    @property
    def variables(self) -> dict[str, Variable]:
        """The variables by their names: static ones first."""
        return {
            one.name: Variable(one.name, one.path, one.type_name, one.is_static, one.id) for one in self._core.variables
        }

    def keys(self) -> list[str]:
        """The names of the variables."""
        return [one.name for one in self._core.variables]

    def arrays(
        self,
        variables: Iterable[str] | None = None,
        *,
        entry_start: SupportsIndex | None = None,
        entry_stop: SupportsIndex | None = None,
    ) -> Any:
        """The elements as an Awkward array of records with these variables, by default all. With the package vector,
        records with a momentum (``pt``, ``eta``, ``phi`` and ``m`` or ``e``, or Cartesian) have its methods. Records
        with other coordinates beside these, such as both ``m`` and ``e``, are plain records: choose four of the
        variables, as in ``arrays(["px", "py", "pz", "e"])``.

        Raises the errors of `Event.arrays`.
        """
        wanted = {self.name: None if variables is None else list(variables)}
        return self._event.arrays(wanted, entry_start=entry_start, entry_stop=entry_stop)[self.name]

    def __getitem__(self, name: str) -> Any:
        return self.arrays([check_text(name, "name")])[name]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self.keys():
            raise AttributeError(f"'{self.name}' has no variable '{name}'")
        return self[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.keys()]

    def __repr__(self) -> str:
        kind = "object" if self.is_object else "container"
        return f"<tupelo.xaod.Container {self.name!r} ({kind} with {len(self.keys())} variables)>"


def _names(variables: Iterable[str] | None) -> list[str]:
    """Names of variables; none of them means all."""
    if isinstance(variables, str):
        raise InvalidArgumentError(f"expected names of variables in a list, not {short_repr(variables)}")
    return [check_text(name, "variables") for name in variables or ()]


def _with_vectors(arrays: Any) -> Any:
    """Names records with a momentum for the behaviors of the package vector, if it is installed."""
    import awkward as ak

    try:
        import vector
    except ImportError:
        return arrays

    def named(layout: Any, **_: Any) -> Any:
        if layout.is_record and set(layout.fields) & _COORDINATES in _MOMENTUM:
            layout = layout.copy(parameters={**layout.parameters, "__record__": "Momentum4D"})
            return layout
        return None

    vector.register_awkward()
    return ak.transform(named, arrays)
