"""Trees and branches with the methods of uproot."""

import difflib
import re
import sys
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, SupportsIndex, TextIO

import numpy as np
import pyarrow as pa

from .. import _arrow, _core, _select, _virtual
from .._awkward import AddDoc, AwkwardOptions
from .._libraries import to_library
from .._messages import printable, short_repr
from ..errors import InvalidArgumentError, NotFoundError, UnsupportedError
from ..ntuple import Tree
from ._fields import HasColumns, awkward_options
from ._options import Compression, check_options, library_name
from ._table import Table

_BASE = re.compile(":_[0-9]+")
_INTEGER = re.compile(r"\bstd::(u?int\d+_t)\b")
_LIST = "ROOT::VecOps::RVec<"
_ARRAY = "std::array<"
_LISTED = 10
"""Maximum number of branches in a message."""


@dataclass
class _Request(_select.Request):
    """What to read from a tree, and the columns of the result."""

    patterns: list[str] | None = None
    columns: dict[str, "TBranch | None"] = field(default_factory=dict)
    """The branch of each column; None if it is computed."""

    def add_branch(self, name: str, branch: "TBranch") -> None:
        """Adds the values of a branch as a column, unless one has the name."""
        paths = [leaf.core_path for leaf in branch._leaves()]
        if not paths:
            raise branch._cannot_be_read()
        if name not in self.columns:
            self.columns[name] = branch
            for path in paths:
                self._add_pattern(_select.escape_glob(path))


class HasBranches(HasColumns):
    """A tree or a branch: a mapping from names to branches, with methods that read them.

    Keys are names of branches joined by slashes. Arrays of several branches have one column for each branch with values
    of its own, named like the branch.
    """

    separator = "/"
    ntuple: "TTree"

    @property
    @abstractmethod
    def branches(self) -> list["TBranch"]:
        """The branches directly below."""

    @property
    def fields(self) -> list["TBranch"]:
        """The branches directly below."""
        return self.branches

    @property
    def title(self) -> str:
        """Its title."""
        return self.description

    @property
    def tree(self) -> "TTree":
        """The tree."""
        return self.ntuple

    @property
    def aliases(self) -> dict[str, str]:
        """Aliases that are stored with the tree. Expressions can use them."""
        return self.ntuple.core.aliases

    @property
    def compressed_bytes(self) -> int:
        """Bytes of the baskets in the file."""
        return sum(branch.compressed_bytes for branch in self.branches)

    @property
    def uncompressed_bytes(self) -> int:
        """Bytes of the baskets before compression."""
        return sum(branch.uncompressed_bytes for branch in self.branches)

    @property
    def compression_ratio(self) -> float:
        """Uncompressed bytes divided by compressed bytes."""
        return self.uncompressed_bytes / self.compressed_bytes if self.compressed_bytes else float("nan")

    def _leaves(self) -> Iterator["TBranch"]:
        """The branches with values of their own, this one included."""
        for branch in self.branches:
            yield from branch._leaves()

    def common_entry_offsets(self, **which: Any) -> list[int]:
        """The entries at which all selected branches begin a basket, and the end; keywords are those of `iteritems`."""
        branches = self.values(**which) if self.branches else self._leaves()
        offsets = [set(branch.entry_offsets) for branch in branches if branch.core_path]
        return sorted(set.intersection(*offsets)) if offsets else [0]

    def _no_such_field(self, where: str) -> NotFoundError:
        names = list(dict.fromkeys(branch.name for branch in self.itervalues()))
        near = difflib.get_close_matches(where, names)
        what, listed = ("similar", near) if near else ("existing", names[:_LISTED])
        text = ", ".join(map(short_repr, listed)) or "none"
        place = f"{self.ntuple.file_path}: tree '{self.ntuple.core.object_path}'"
        return NotFoundError(f"{place}: no branch is named {short_repr(where)} ({what} branches: {text})")

    def show(  # type: ignore[override]
        self,
        *,
        filter_name: _select.Filter = None,
        filter_typename: _select.Filter = None,
        filter_field: Any = None,
        filter_branch: Any = None,
        recursive: bool = True,
        full_paths: bool = True,
        name_width: int = 20,
        typename_width: int = 24,
        stream: TextIO | None = None,
        **unused: object,
    ) -> None:
        """Prints a table of the branches and their C++ types."""
        which: dict[str, Any] = {"filter_name": filter_name, "filter_typename": filter_typename}
        which |= {"filter_field": filter_field, "filter_branch": filter_branch}
        rows = [(key, one.typename) for key, one in self.iteritems(recursive=recursive, full_paths=full_paths, **which)]
        widths = name_width, typename_width
        lines = [("name", "typename"), None, *rows]
        for line in lines:
            if line is None:
                text = "-+-".join("-" * width for width in widths)
            else:
                cells = (printable(cell) for cell in line)
                text = " | ".join(
                    (cell if len(cell) <= width else cell[: width - 3] + "...").ljust(width)
                    for cell, width in zip(cells, widths, strict=True)
                )
            print(text.rstrip(), file=sys.stdout if stream is None else stream)

    # Reading.

    def _request(
        self,
        expressions: Any,
        cut: Any,
        aliases: Any,
        filters: tuple[Any, Any, Any, Any],
        entries: tuple[SupportsIndex | None, SupportsIndex | None],
    ) -> _Request:
        request = _Request(cut=_select.cut(cut))
        request.entry_start, request.entry_stop = _select.entry_range(*entries, self.num_entries)
        known = {**self.aliases, **dict(_select.aliases(aliases))}
        is_filtered = any(one is not None for one in filters)
        if expressions is None:
            names = "filter_name", "filter_typename", "filter_field", "filter_branch"
            which = dict(zip(names, filters, strict=True)) if is_filtered else None
            self._add_branches(request, which)
        elif is_filtered:
            raise InvalidArgumentError("give expressions or filters, not both")
        for text in _select.string_list("expressions", expressions):
            self._add_expression(request, text, known)
        if request.cut is not None:
            request.cut = self._resolved(request, request.cut, known)
        return request

    def _add_branches(self, request: _Request, which: Mapping[str, Any] | None) -> None:
        """Adds the selected branches, by default all with values of their own. A branch of branches becomes a record,
        unless all branches below it are selected too.
        """
        found = dict.fromkeys(self._leaves() if which is None else self.values(**which))
        groups = [one for one in found if one.branches and not all(leaf in found for leaf in one._leaves())]
        below = {branch for group in groups for branch in group.values()}
        for branch in found:
            if branch not in below and (branch.core_path or branch in groups) and any(branch._leaves()):
                request.add_branch(branch.name, branch)
        if not request.columns and which is not None:
            text = f"{self.ntuple.file_path}: '{self.path}': none of {len(self.keys())} branches matches the filters"
            raise NotFoundError(text)

    def _add_expression(self, request: _Request, text: str, known: Mapping[str, str]) -> None:
        """Adds the name or path of a branch, a filter of names, or an expression."""
        if (branch := self.get(text)) is not None:
            request.add_branch(text, branch)
            return
        if text not in known and _select.is_glob(text) and (found := self.values(filter_name=text)):
            for branch in found:
                if any(branch._leaves()):
                    request.add_branch(branch.name, branch)
            return
        if text not in known and _core.expression_names(text) == [text]:
            raise self._no_such_field(text)
        if text not in request.columns:
            request.computed.append((text, self._resolved(request, text, known)))
            request.columns[text] = None

    def _resolved(self, request: _Request, text: str, known: Mapping[str, str]) -> str:
        """An expression, or that of an alias, whose names the request then has as aliases."""
        text = known.get(text, text) if text not in self else text
        for name in _core.expression_names(text):
            if name in dict(request.aliases):
                continue
            if (branch := self.get(name)) is not None:
                if not branch.core_path:
                    raise branch._cannot_be_read()
                if branch.core_path != name:
                    request.aliases.append((name, f"`{branch.core_path}`"))
            elif name in known:
                # First, so that an alias of itself ends.
                request.aliases.append((name, known[name]))
                self._resolved(request, known[name], known)
        return text

    def _style(self, ak_add_doc: AddDoc) -> AwkwardOptions:
        return replace(awkward_options(ak_add_doc), type_name=_uproot_type)

    def _column_bytes(self, request: _select.Request) -> int:
        wanted = {branch for branch in (getattr(request, "columns", {})).values() if branch is not None}
        leaves = {leaf for branch in wanted for leaf in branch._leaves()}
        used = [text for _, text in (*request.computed, *request.aliases)] + [request.cut or "0"]
        names = {name for text in used for name in _core.expression_names(text)}
        leaves |= {leaf for leaf in self.ntuple._leaves() if leaf.core_path in names}
        return sum(leaf.uncompressed_bytes for leaf in leaves)

    def _shaped(self, batch: Any, request: _select.Request) -> Any:
        assert isinstance(request, _Request)
        fields, columns = [], []
        for name, branch in request.columns.items():
            if branch is None:
                item, column = batch.schema.field(name), batch.column(name)
            else:
                item, column = branch.column(batch)
                item = item.with_metadata({**(item.metadata or {}), _arrow.DESCRIPTION: branch.title})
            fields.append(item.with_name(name))
            columns.append(column)
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, metadata=batch.schema.metadata))

    def _from_virtual(self, arrays: Any, request: _select.Request) -> Any:
        import awkward as ak

        assert isinstance(request, _Request)
        contents = [branch.content(arrays).layout for branch in request.columns.values() if branch is not None]
        layout = ak.contents.RecordArray(contents, list(request.columns), length=len(arrays))
        return self._flattened(ak.Array(layout))

    def _flattened(self, arrays: Any) -> Any:
        import awkward as ak

        return ak.Array(_without_bases(arrays.layout), behavior=arrays.behavior)


def _without_bases(layout: Any) -> Any:
    """A layout whose records have the members of their base classes, after their own."""
    if layout.is_record and not layout.is_tuple:
        own: dict[str, Any] = {}
        inherited: dict[str, Any] = {}
        for name, content in zip(layout.fields, layout.contents, strict=True):
            content = _without_bases(content)
            if _BASE.fullmatch(name) and content.is_record:
                inherited |= dict(zip(content.fields, content.contents, strict=True))
            else:
                own[name] = content
        if len(own) == len(layout.fields):
            return layout.copy(contents=list(own.values()))
        members = {**own, **{name: content for name, content in inherited.items() if name not in own}}
        return layout.copy(contents=list(members.values()), fields=list(members))
    if layout.is_union or layout.is_record or not hasattr(layout, "content"):
        return layout
    return layout.copy(content=_without_bases(layout.content))


class TTree(HasBranches, Table):
    """A tree; `core` is its `tupelo.Tree`."""

    core: Tree

    @property
    def classname(self) -> str:
        """Its class."""
        return self.core.class_name

    @property
    def typename(self) -> str:
        """Its class."""
        return self.classname

    @cached_property
    def all_branches(self) -> list["TBranch"]:
        """Every branch, parents first."""
        rows, paths = self.core._core.tree_branches()
        made: list[TBranch] = []
        for number, row in enumerate(rows):
            above: HasBranches = self if row[0] is None else made[row[0]]
            made.append(TBranch(self, above, row, paths.get(number, "")))
        return made

    @cached_property
    def branches(self) -> list["TBranch"]:
        """The branches that are not below another one."""
        return [branch for branch in self.all_branches if branch.parent is self]

    @cached_property
    def without_entries(self) -> Any:
        """A `pyarrow.RecordBatch` of all fields and no entries."""
        return self.core._core.read(_select.Request())

    def __repr__(self) -> str:
        return f"<{self.classname} {self.name!r} ({len(self)} branches) at 0x{id(self):012x}>"


class TBranch(HasBranches):
    """A branch: of values, or of other branches."""

    def __init__(self, tree: TTree, parent: HasBranches, row: Any, core_path: str) -> None:
        self.ntuple = tree
        self.parent = parent
        """The branch above, or the tree."""
        self.core_path = core_path
        """Path of its values in Tupelo; empty if it has none of its own, or cannot be read."""
        _, self._name, self._title, self._class_name, self._setting, self._counter, self._bytes, self._baskets = row
        self._children: list[TBranch] = []
        if isinstance(parent, TBranch):
            parent._children.append(self)

    @property
    def name(self) -> str:
        """Its name."""
        name: str = self._name
        return name

    @property
    def description(self) -> str:
        """Its title."""
        title: str = self._title
        return title

    @property
    def path(self) -> str:
        """Names of the branches above and its own, joined by slashes."""
        return f"{self.parent.path}/{self.name}" if isinstance(self.parent, TBranch) else self.name

    @property
    def object_path(self) -> str:
        """Path of the tree and its own."""
        return f"{self.ntuple.object_path}:{self.path}"

    @property
    def cache_key(self) -> str:
        """A key that is unique among all objects of all files."""
        return f"{self.ntuple.cache_key}:{self.path}"

    @property
    def branches(self) -> list["TBranch"]:
        """The branches directly below."""
        return self._children

    @property
    def classname(self) -> str:
        """ROOT's class: ``"TBranchElement"`` for objects, ``"TBranch"`` for leaves."""
        return "TBranchElement" if self._class_name else "TBranch"

    @property
    def top_level(self) -> bool:
        """Whether it is not below another branch."""
        return self.parent is self.ntuple

    @property
    def index(self) -> int:
        """Its index among the branches of its parent."""
        return self.parent.branches.index(self)

    @property
    def file_path(self) -> str:
        """Path of the file."""
        return self.ntuple.file_path

    @cached_property
    def typename(self) -> str:
        """Its C++ type; ``"unknown"`` if it cannot be read."""
        if self.core_path:
            return _uproot_type(self.column(self.ntuple.without_entries)[0])
        return self._class_name if self.branches else "unknown"

    @property
    def interpretation(self) -> "Interpretation":
        """What its values are."""
        return Interpretation(self)

    @property
    def count_branch(self) -> "TBranch | None":
        """The branch with the number of items of each entry, if there is one."""
        return None if self._counter is None else self.ntuple.all_branches[self._counter]

    @property
    def compression(self) -> Compression | None:
        """Its codec."""
        return Compression.from_code(self._setting)

    @property
    def uncompressed_bytes(self) -> int:
        """Bytes of its baskets, and of those below, before compression."""
        return int(self._bytes[0]) + super().uncompressed_bytes

    @property
    def compressed_bytes(self) -> int:
        """Bytes of its baskets, and of those below, in the file."""
        return int(self._bytes[1]) + super().compressed_bytes

    @property
    def num_baskets(self) -> int:
        """Number of its baskets."""
        return len(self._baskets)

    @property
    def entry_offsets(self) -> list[int]:
        """The first entry of each basket, and the end."""
        return [0, *(stop for _, stop, _ in self._baskets)]

    def basket_entry_start_stop(self, basket_num: int) -> tuple[int, int]:
        """The first entry of a basket and its end."""
        start, stop, _ = self._baskets[basket_num]
        return start, stop

    def basket_compressed_bytes(self, basket_num: int) -> int:
        """Bytes of a basket in the file, with its key."""
        return int(self._baskets[basket_num][2])

    def array(
        self,
        interpretation: Any = None,
        entry_start: SupportsIndex | None = None,
        entry_stop: SupportsIndex | None = None,
        *,
        library: Any = "ak",
        ak_add_doc: AddDoc = False,
        virtual: bool = False,
        access_log: Any = None,
        **others: Any,
    ) -> Any:
        """The values of the branch in a range of entries. A branch of branches is a record of their values.

        Objects that have no columns are bytes; with ``library="np"`` they are `tupelo.Instance`. An ``interpretation``
        other than that of the branch raises `UnsupportedError`.
        """
        own = None if isinstance(interpretation, Interpretation) and interpretation.branch is self else interpretation
        check_options("array", {"interpretation": own, **others})
        library = library_name(library)
        request = _Request()
        request.add_branch(self.name, self)
        request.entry_start, request.entry_stop = _select.entry_range(entry_start, entry_stop, self.num_entries)
        core, style = self.ntuple.core, self._style(ak_add_doc)
        if library == "np" and self.has_objects:
            values = core[self.core_path].objects(request.entry_start, request.entry_stop)
            found = np.empty(len(values), dtype=object)
            found[:] = values
            return found
        if virtual:
            arrays = _virtual.virtual_arrays(core._core, request, style, access_log)
            return self._from_virtual(arrays, request)[self.name]
        batch, entries = core._whole(request)
        arrays = to_library(self._shaped(batch, request), library, entries, style)
        return (self._flattened(arrays) if library == "ak" else arrays)[self.name]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.array(library="np"), dtype)

    def __enter__(self) -> "TBranch":
        return self

    def __exit__(self, *exception: object) -> None:
        self.ntuple.close()

    def _leaves(self) -> Iterator["TBranch"]:
        if self.core_path:
            yield self
        yield from super()._leaves()

    def _patterns(self) -> list[str]:
        return [_select.escape_glob(leaf.core_path) for leaf in self._leaves()]

    @property
    def has_objects(self) -> bool:
        """Whether its values are objects without columns, which are bytes or `tupelo.Instance`."""
        return bool(self.core_path) and self.ntuple.core[self.core_path].kind == "streamer"

    def _cannot_be_read(self) -> UnsupportedError:
        missing = "its objects have no columns; use library='np'" if self.has_objects else "it has no values of its own"
        reason = self.ntuple.core.unreadable.get(self.path, missing)
        return UnsupportedError(f"{self.file_path}: branch '{self.path}' cannot be read: {reason}")

    @cached_property
    def _names(self) -> list[str]:
        """The name of the top-level field and those of the subfields to its values."""
        top = self.ntuple.core._top_level_name(self.core_path)
        below = self.core_path[len(top) + 1 :]
        return [top, *(below.split(".") if below else ())]

    def column(self, batch: Any) -> tuple[Any, Any]:
        """Its values in a batch that the engine read, as a `pyarrow.Field` and an array."""
        if self.core_path:
            index = batch.schema.get_field_index(self._names[0])
            return _arrow.extract_subfield(batch.schema.field(index), batch.column(index), self._names[1:])
        members = [(branch.name, *branch.column(batch)) for branch in self.branches if any(branch._leaves())]
        fields = [item.with_name(name) for name, item, _ in members]
        record = pa.StructArray.from_arrays([column for *_, column in members], fields=fields)
        return pa.field(self.name, record.type), record

    def content(self, arrays: Any) -> Any:
        """Its values in Awkward records of the engine."""
        import awkward as ak

        if self.core_path:
            for name in self._names:
                arrays = arrays[name]
            return arrays
        members = {branch.name: branch.content(arrays) for branch in self.branches if any(branch._leaves())}
        contents = [member.layout for member in members.values()]
        return ak.Array(ak.contents.RecordArray(contents, list(members), length=len(arrays)))

    def __reduce__(self) -> tuple[object, ...]:
        return _reopen_branch, (self.ntuple, self.ntuple.all_branches.index(self))

    def __repr__(self) -> str:
        below = f" ({len(self)} subbranches)" if len(self) else ""
        return f"<{self.classname} {self.name!r}{below} at 0x{id(self):012x}>"


class Interpretation:
    """What the values of a branch are. It has none of uproot's parameters."""

    def __init__(self, branch: TBranch) -> None:
        self.branch = branch

    @property
    def typename(self) -> str:
        """The C++ type."""
        return self.branch.typename

    def awkward_form(self, file: Any = None, context: Any = None, **unused: Any) -> Any:
        """The Awkward form of the values.

        Raises uproot's ``CannotBeAwkward``, or `UnsupportedError` where uproot is not loaded, if the branch cannot be
        read, or has objects without columns.
        """
        if not any(self.branch._leaves()) or self.branch.has_objects:
            error = self.branch._cannot_be_read()
            theirs = getattr(sys.modules.get("uproot.interpretation.objects"), "CannotBeAwkward", None)
            raise error if theirs is None else theirs(str(error)) from error
        columns: dict[str, TBranch | None] = {self.branch.name: self.branch}
        batch = self.branch._shaped(self.branch.ntuple.without_entries, _Request(columns=columns))
        arrays = self.branch._flattened(to_library(batch, "ak", range(0), self.branch._style(False)))
        return arrays.layout.form.content(0)

    def __repr__(self) -> str:
        return f"<Interpretation of {self.branch.path!r} as {self.typename}>"


def _reopen_branch(tree: TTree, index: int) -> TBranch:
    """The branch of an unpickled tree."""
    return tree.all_branches[index]


def _uproot_type(item: Any) -> str:
    """The C++ type of a `pyarrow.Field` as uproot spells it: ``float[][3]``."""
    name, kind, dimensions = _arrow.full_type_name(item), item.type, ""
    if not name and pa.types.is_large_list(kind):
        return f"{_uproot_type(kind.value_field)}[]"
    while name.endswith(">"):
        if name.startswith(_LIST):
            name, dimensions = name[len(_LIST) : -1], f"{dimensions}[]"
        elif name.startswith(_ARRAY):
            name, _, size = name[len(_ARRAY) : -1].rpartition(",")
            dimensions += f"[{size}]"
        else:
            break
    return _INTEGER.sub(r"\1", name) + dimensions
