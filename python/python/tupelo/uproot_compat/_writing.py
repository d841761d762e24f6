"""Writable files with the methods of uproot."""

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from .. import _arrow, _conversion, _core, _histogram_writing, writing
from .._checks import check_name, check_path
from .._messages import short_repr
from .._schema import schema_and_data
from ..errors import CorruptError, InvalidArgumentError, MissingFileError, TupeloWarning, UnsupportedError
from ..filling import NtupleWriter
from ..trees import TreeWriter
from ._directory import Directory
from ._options import Compression
from ._types import form_of, is_types, schema_of, unreadable_in_root

_NTUPLE = "ROOT::RNTuple"
_IGNORED = "initial_directory_bytes", "initial_streamers_bytes", "uuid_function"


def create(file_path: Any, **options: Any) -> "WritableDirectory":
    """Like `recreate`, for a file that does not exist.

    Raises `FileExistsError` (an `OSError`) if it exists, and the errors of `open` if a server does not tell.
    """
    path = check_path(file_path)
    if _exists(path):
        raise FileExistsError(f"{_core.display_name(path)} already exists; recreate() replaces it")
    return recreate(file_path, **options)


def _exists(path: str) -> bool:
    if not _core.is_remote(path):
        return os.path.exists(path)
    try:
        _core.File(path, _core.DEFAULT_PAGE_CHECKSUMS, None, False)
    except MissingFileError:
        return False
    except CorruptError:
        # It has another format.
        pass
    return True


def recreate(file_path: Any, **options: Any) -> "WritableDirectory":
    """Creates a file, replacing an existing one.

    The file exists immediately, and each write can be read as soon as it is written, also by other processes, because
    it ends with a checkpoint (`tupelo.NtupleWriter.checkpoint`). Unlike with `tupelo.recreate`, the previous file is
    lost even if an exception leaves the ``with`` block. A file that this process is writing is finished first, also by
    `update`; the next call of its earlier writer raises an error.

    A remote file (a URL, see `tupelo.recreate`) has no checkpoints: it appears when it is closed, with all its ntuples.
    After an exception in the ``with`` block, or if it is not closed, it is discarded, and an existing file does not
    change.
    """
    chosen = _options("recreate", options)
    if _core.is_remote(check_path(file_path)):
        return _directory(writing.recreate(file_path, **chosen))
    writing.recreate(file_path, **chosen).close()
    return _directory(writing.update(file_path, **chosen))


def update(file_path: Any, **options: Any) -> "WritableDirectory":
    """Opens a file to add to it. Each write can be read as soon as it is written.

    Raises `UnsupportedError` for a remote file.
    """
    return _directory(writing.update(file_path, **_options("update", options)))


def _options(method: str, given: dict[str, Any]) -> dict[str, Any]:
    chosen = {}
    for name, value in given.items():
        if name == "compression":
            chosen[name] = _codec(value)
        elif name not in _IGNORED:
            raise TypeError(f"{method}() got an unexpected keyword argument {short_repr(name)}")
    return chosen


def _codec(value: Any) -> Any:
    if value is None:
        return "none"
    if not isinstance(value, Compression) and hasattr(value, "code_pair"):
        # A codec of uproot.
        value = Compression.from_code_pair(*value.code_pair) or "none"
    return str(value) if isinstance(value, Compression) else value


def _directory(core: writing.WritableFile) -> "WritableDirectory":
    return WritableFile(core).root_directory


class WritableFile:
    """A file open for writing. A local file can be read after each write."""

    def __init__(self, core: writing.WritableFile) -> None:
        self.core = core
        self._has_checkpoints = not _core.is_remote(core.file_path)
        # Each write ends with a checkpoint, so nothing is lost if a program does not close the file. A remote file is
        # complete only if the program says so.
        if core._opened is not None:
            core._opened.finish_on_release = self._has_checkpoints
        self.file_path = core.file_path
        self.closed = False
        self.made: set[str] = set()
        """Directories created by `mkdir`, which may be empty."""
        self.ntuples: dict[str, WritableNTuple] = {}
        self.trees: dict[str, WritableTree] = {}
        self.root_directory = WritableDirectory(self, "")

    @property
    def compression(self) -> Any:
        """The codec of new ntuples."""
        return Compression.of(self.core._options.compression)

    @compression.setter
    def compression(self, value: Any) -> None:
        options = replace(self.core._options, compression=_codec(value))
        options.options()
        self.core._options = options

    def end_write(self, ntuple: NtupleWriter) -> None:
        """Ends the cluster, and makes it readable in a local file."""
        if self._has_checkpoints:
            ntuple.checkpoint()
        else:
            ntuple.flush_cluster()

    def close(self) -> None:
        """Finishes the file."""
        self.closed = True
        self.core.close()

    def __enter__(self) -> "WritableFile":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.closed = True
        self.core.__exit__(*exception)

    def __repr__(self) -> str:
        return f"<WritableFile {self.file_path!r}>"


class WritableDirectory(Directory, MutableMapping[str, Any]):
    """A directory of a file open for writing: ``directory["name"] = data`` writes an ntuple or a
    histogram.
    """

    if not TYPE_CHECKING:  # Type checkers reject other attributes anyway.

        def __setattr__(self, name: str, value: object) -> None:
            if name != "file" and not name.startswith("_") and not hasattr(type(self), name):
                writing.refuse_attribute(self, name)
            super().__setattr__(name, value)

    @property
    def compression(self) -> Any:
        """The codec of the file."""
        return self.file.compression

    @compression.setter
    def compression(self, value: Any) -> None:
        self.file.compression = value

    def _objects(self) -> Iterator[tuple[str, int, str]]:
        """Existing and new objects."""
        before: dict[str, str] = {}
        for path, class_name in self.file.core._writer().objects():
            before[path] = class_name
        before |= dict.fromkeys(self.file.ntuples, _NTUPLE) | dict.fromkeys(self.file.trees, "TTree")
        found: dict[str, str] = {}
        for path, class_name in [*before.items(), *((path, self.classname) for path in self.file.made)]:
            names = path.split("/")
            for depth in range(1, len(names)):
                found.setdefault("/".join(names[:depth]), self.classname)
            found[path] = class_name
        return ((path, 1, class_name) for path, class_name in found.items())

    def __contains__(self, where: object) -> bool:
        return isinstance(where, str) and where.partition(";")[0].strip("/") in self.classnames(cycle=False)

    def __getitem__(self, where: str) -> Any:
        """An ntuple to continue, or a directory."""
        path = where.partition(";")[0].strip("/")
        class_name = self._class_of(where)
        if class_name.startswith("TDirectory"):
            return WritableDirectory(self.file, self._whole(path))
        if (whole := self._whole(path)) in self.file.trees:
            return self.file.trees[whole]
        if class_name != _NTUPLE:
            raise UnsupportedError(f"{self.file_path}: '{path}' is a {class_name}, but only RNTuples can be changed")
        if whole not in self.file.ntuples:
            self.file.ntuples[whole] = WritableNTuple(self.file, whole, self.file.core[whole])
        return self.file.ntuples[whole]

    def _class_of(self, where: str) -> str:
        class_name = self.classnames(cycle=False).get(where.partition(";")[0].strip("/"))
        if class_name is None:
            raise self._no_object(where)
        return class_name

    def __setitem__(self, where: str, what: Any) -> None:
        if is_types(what):
            raise ValueError(f"{short_repr(where)}: expected data, not types; use mkrntuple() to declare fields")
        whole = self._whole(where)
        if _histogram_writing.is_histogram(what):
            self.file.core[whole] = what
            return
        if (begun := self.file.ntuples.pop(whole, None)) is not None:
            begun.close()
        self.mkrntuple(where, what)

    def __delitem__(self, where: str) -> None:
        class_name = self._class_of(where)
        raise UnsupportedError(
            f"{self.file_path}: {short_repr(where)}, a {class_name}, cannot be deleted; copy the other objects to a "
            "new file"
        )

    def mkdir(self, name: str, **options: Any) -> "WritableDirectory":
        """Creates a directory. It is written with its first object."""
        _options("mkdir", options)
        self.file.made.add(self._whole(name))
        return WritableDirectory(self.file, self._whole(name))

    def mkrntuple(self, name: str, type_spec_or_data: Any, description: str = "") -> "WritableNTuple":
        """Creates an ntuple from types, an Awkward form, or its first entries."""
        schema, data = _schema_and_data(type_spec_or_data)
        text = description or _arrow.description(schema)
        whole = self._whole(name)
        if unnamed := unreadable_in_root(schema):
            _warn_about(f"{self.file_path}: ntuple '{whole}'", unnamed)
        writer = self.file.core.mkrntuple(whole, schema, description=text)
        if data is not None:
            writer.extend(data)
        self.file.end_write(writer)
        self.file.ntuples[whole] = made = WritableNTuple(self.file, whole, writer)
        return made

    def mktree(
        self,
        name: str,
        branch_types_or_data: Any,
        title: str = "",
        *,
        counter_name: Any = None,
        field_name: Any = None,
        initial_basket_capacity: int = 10,
        resize_factor: float = 10.0,
    ) -> "WritableTree":
        """Creates a tree from types, an Awkward form, or its first entries; it can be read when the file is closed.

        Lists have counters (``nx`` for ``x``); members of records are branches (``Muon_pt``). ``counter_name`` and
        ``field_name``, functions that give other names, raise `UnsupportedError`; the last two keywords have no effect.
        """
        if counter_name is not None or field_name is not None:
            raise UnsupportedError(f"mktree({short_repr(name)}): counter_name and field_name are not supported")
        schema, data = _schema_and_data(_without_records(branch_types_or_data))
        whole = self._whole(name)
        made = WritableTree(self.file, whole, self.file.core.mktree(whole, schema, title))
        self.file.trees[whole] = made
        if data is not None:
            made.extend(data)
        return made

    def copy_from(self, source: Any, **options: Any) -> None:
        """Not supported: use the command ``tupelo copy``."""
        raise UnsupportedError("copy_from() is not supported; use the command `tupelo copy`")

    def __enter__(self) -> "WritableDirectory":
        return self


def _warn_about(ntuple: str, paths: list[str]) -> None:
    """Warns about fields that ROOT cannot read."""
    text = (
        f"{ntuple}: {', '.join(map(repr, paths))} are fixed-size arrays or variants of records without a C++ "
        "class. ROOT's RNTupleReader cannot open an ntuple with such fields (RDataFrame reads the others); uproot and "
        "Tupelo can. Variable-length lists (ak.from_regular) are readable everywhere"
    )
    warnings.warn(text, TupeloWarning, stacklevel=3)


class _WritableTable:
    """What ntuples and trees that are open for writing have in common; `core` is the writer."""

    def __init__(self, file: WritableFile, path: str, core: Any) -> None:
        self.file = file
        self.object_path = path
        self.core = core

    @property
    def path(self) -> tuple[str, ...]:
        """The names of its parent directories and its own."""
        return tuple(self.object_path.split("/"))

    @property
    def name(self) -> str:
        """Its name, without directories."""
        return self.path[-1]

    @property
    def file_path(self) -> str:
        """Path of the file."""
        return self.file.file_path

    @property
    def num_entries(self) -> int:
        """Entries so far."""
        count: int = self.core.num_entries
        return count

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        closed: bool = self.core.is_closed
        return closed

    def close(self) -> None:
        """Writes pending data."""
        self.core.close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.core.__exit__(*exception)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'/' + self.object_path!r}>"


class WritableTree(_WritableTable):
    """A tree open for writing; `core` is its `tupelo.TreeWriter`."""

    core: TreeWriter

    def extend(self, data: Any) -> None:
        """Appends entries: columns with the declared names and equal lengths. They end a cluster, as in uproot."""
        data = _without_records(data)
        if isinstance(data, Mapping):
            data = {name: _column(values, name) for name, values in data.items()}
        self.core.extend(data)
        self.core.flush_cluster()


class WritableNTuple(_WritableTable):
    """An ntuple open for writing; `core` is its `tupelo.NtupleWriter`."""

    core: NtupleWriter

    def extend(self, data: Any, accept_new_fields: bool = False) -> None:
        """Appends entries (columns with the declared names and equal lengths) as one cluster."""
        if isinstance(data, Mapping):
            # First, because the error for projected fields is more helpful than that for missing ones.
            new = self.core._unknown(data)
            if missing := [name for name in self.core.arrow_schema.names if name not in data]:
                raise InvalidArgumentError(f"'{self.object_path}': the fields {missing} are missing")
            if new and not accept_new_fields:
                text = f"'{self.object_path}': {new} are not in this RNTuple; accept_new_fields=True adds them"
                raise InvalidArgumentError(text)
            data = {name: _column(values, name) for name, values in data.items()}
        self.core.extend(data, accept_new_fields=accept_new_fields)
        self.file.end_write(self.core)

    def add_fields(self, new_fields: Any) -> None:
        """Adds fields with declared types, zero or empty in earlier entries. Dotted names are members of records."""
        schema, _ = _schema_and_data(new_fields)
        schema = pa.schema([field.with_name(self._whole(field.name)) for field in schema])
        for field in schema:
            self._check_new(field.name)
        tops = [field for field in schema if "." not in field.name]
        if tops:
            self.core.add_fields(pa.schema(tops))
        for field in schema:
            parent, _, name = field.name.rpartition(".")
            if parent:
                self.core.add_members(parent, pa.schema([field.with_name(name)]))
        self.file.end_write(self.core)

    def _whole(self, path: str) -> str:
        """The full path of a new member ``"record.name"``; the record may be at any depth, as in uproot."""
        record, _, name = path.partition(".")
        if not name or "." in name:
            return path
        found = [one for one in _records(self.core.arrow_schema) if one.rpartition(".")[2] == record]
        if len(found) > 1:
            text = f"'{self.object_path}': the record of '{path}' is ambiguous; write one of {found} before '.{name}'"
            raise InvalidArgumentError(text)
        return f"{found[0]}.{name}" if found else path

    def _check_new(self, path: str) -> None:
        """Raises `InvalidArgumentError` for existing fields and for members of fields that are not records."""
        members, above = self.core.arrow_schema, []
        *parents, last = path.split(".")
        for name in parents:
            above.append(name)
            here = ".".join(above)
            if name not in members.names:
                raise InvalidArgumentError(f"'{self.object_path}': '{path}': a field '{here}' is not found")
            members = members.field(name).type
            if pa.types.is_union(members):
                raise UnsupportedError(f"'{self.object_path}': '{path}': '{here}' is a variant and cannot get members")
            if not pa.types.is_struct(members):
                text = f"'{self.object_path}': '{path}': '{here}' has the type {members} and is not a record"
                raise InvalidArgumentError(text)
        if last in (members.names if parents == [] else [member.name for member in members]):
            raise InvalidArgumentError(f"'{self.object_path}': a field '{path}' already exists")


def _records(fields: Any, above: str = "") -> Iterator[str]:
    """Dotted paths of all records."""
    for field in fields:
        kind, path = field.type, f"{above}{field.name}"
        while pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
            kind = kind.value_type
        if pa.types.is_struct(kind):
            yield path
            yield from _records(kind, f"{path}.")


def _schema_and_data(what: Any) -> tuple[Any, Any]:
    """The `pyarrow.Schema` that uproot would create, and the first entries, if any."""
    import awkward as ak

    if is_types(what) or isinstance(what, ak.forms.Form):
        return schema_of(form_of(what)), None
    if isinstance(what, ak.contents.Content):
        what = ak.Array(what)
    if isinstance(what, ak.Array):
        return schema_of(what.layout.form), what
    if isinstance(what, Mapping):
        for name in what:
            check_name(name, "a field")
        # In uproot's order.
        columns = {name: _column(what[name], name) for name in sorted(what)}
        forms = [ak.Array(column).layout.form for column in columns.values()]
        return schema_of(ak.forms.RecordForm(forms, list(columns))), columns
    schema, tables = schema_and_data(what)
    whole = list(tables)
    return _conversion.normalize_schema(schema), pa.concat_tables(whole) if whole else None


def _without_records(what: Any) -> Any:
    """Data or types of a tree, whose records become a column for each member, ``b_x``; other values unchanged."""
    import awkward as ak

    if isinstance(what, ak.contents.Content):
        what = ak.Array(what)
    columns: Iterable[tuple[str, Any]]
    if isinstance(what, ak.forms.RecordForm | ak.types.RecordType) and not what.is_tuple:
        columns = zip(what.fields, what.contents, strict=True)
    elif isinstance(what, Mapping):
        columns = what.items()
    elif isinstance(what, np.ndarray) and what.dtype.names:
        columns = ((name, what[name]) for name in what.dtype.names)
    elif isinstance(what, ak.Array) and what.layout.is_record and not what.layout.is_tuple:
        columns = ((name, what[name]) for name in what.fields)
    else:
        return what
    found: dict[str, Any] = {}
    for name, values in columns:
        inner = _without_records(_column(values, name) if isinstance(values, list) else values)
        if isinstance(inner, Mapping):
            found |= {f"{name}_{member}": column for member, column in inner.items()}
        else:
            found[name] = inner
    return found


def _column(values: Any, name: str) -> Any:
    """Converts lists to Awkward arrays, as in uproot: items may have several types."""
    import awkward as ak

    if isinstance(values, str):
        raise InvalidArgumentError(
            f"field '{name}': {short_repr(values)} is neither a NumPy or Awkward type nor a column"
        )
    return ak.Array(values) if isinstance(values, list | tuple) else values
