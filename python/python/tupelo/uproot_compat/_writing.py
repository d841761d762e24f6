"""Files that are written, with the methods that they have in uproot."""

import os
import warnings
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .. import _arrow, _conversion, writing
from .._checks import check_name, check_path
from .._messages import short
from .._schema import schema_and_data
from ..errors import InvalidArgumentError, TupeloWarning, UnsupportedError
from ..filling import NtupleWriter
from ._directory import Directory
from ._options import Compression
from ._types import form_of, is_types, schema_of, unreadable_in_root

_NTUPLE = "ROOT::RNTuple"
_IGNORED = "initial_directory_bytes", "initial_streamers_bytes", "uuid_function"


def create(file_path: Any, **options: Any) -> "WritableDirectory":
    """As `recreate`, for a file that does not exist.

    Raises `OSError` where it does.
    """
    if os.path.exists(check_path(file_path)):
        raise FileExistsError(f"{os.fspath(file_path)} exists already; recreate() replaces it")
    return recreate(file_path, **options)


def recreate(file_path: Any, **options: Any) -> "WritableDirectory":
    """Begins a new file, in place of one that exists.

    The file is there at once, and what is written can be read as soon as it is written, by this process and by others:
    each write ends with a checkpoint (`tupelo.NtupleWriter.checkpoint`). So what was there before is gone, unlike with
    `tupelo.recreate`, even if the ``with`` block is left by an exception. A file that this process is writing is
    finished first, by `update` too; the next call of its earlier writer raises an error.
    """
    chosen = _options("recreate", options)
    writing.recreate(file_path, **chosen).close()
    return _directory(writing.update(file_path, **chosen))


def update(file_path: Any, **options: Any) -> "WritableDirectory":
    """Opens a file to add to it. Each write can be read as soon as it is written."""
    return _directory(writing.update(file_path, **_options("update", options)))


def _options(method: str, given: dict[str, Any]) -> dict[str, Any]:
    chosen = {}
    for name, value in given.items():
        if name == "compression":
            chosen[name] = _codec(value)
        elif name not in _IGNORED:
            raise TypeError(f"{method}() got an unexpected keyword argument {short(name)}")
    return chosen


def _codec(value: Any) -> Any:
    if value is None:
        return "none"
    if not isinstance(value, Compression) and hasattr(value, "code_pair"):
        # uproot's own codecs.
        value = Compression.from_code_pair(*value.code_pair) or "none"
    return str(value) if isinstance(value, Compression) else value


def _directory(core: writing.WritableFile) -> "WritableDirectory":
    return WritableFile(core).root_directory


class WritableFile:
    """A file that is being written. It can be read after each write."""

    def __init__(self, core: writing.WritableFile) -> None:
        self.core = core
        # Each write ends with a checkpoint, so that nothing is lost where a program does not close the file.
        if core._opened is not None:
            core._opened.finish_when_forgotten = True
        self.file_path = core.file_path
        self.closed = False
        self.made: set[str] = set()
        """Directories that were made, and may be empty."""
        self.ntuples: dict[str, WritableNTuple] = {}
        self.root_directory = WritableDirectory(self, "")

    @property
    def compression(self) -> Any:
        """The codec of ntuples that are begun from now on."""
        return Compression.of(self.core._storage.compression)

    @compression.setter
    def compression(self, value: Any) -> None:
        storage = replace(self.core._storage, compression=_codec(value))
        storage.options()
        self.core._storage = storage

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
    """A directory of a file that is being written: ``directory["name"] = data`` writes an ntuple."""

    if not TYPE_CHECKING:  # For a type checker no other attribute can be set anyway.

        def __setattr__(self, name: str, value: object) -> None:
            if name != "file" and not name.startswith("_") and not hasattr(type(self), name):
                writing.refuse_attribute(self, name)
            super().__setattr__(name, value)

    @property
    def compression(self) -> Any:
        """That of the file."""
        return self.file.compression

    @compression.setter
    def compression(self, value: Any) -> None:
        self.file.compression = value

    def _rows(self) -> Iterator[tuple[str, int, str]]:
        """What was there, and what was begun."""
        before: dict[str, str] = {}
        for path, class_name in self.file.core._writer().objects():
            before[path] = class_name
        for path in self.file.ntuples:
            before[path] = _NTUPLE
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
        """An ntuple to go on with, or a directory."""
        path = where.partition(";")[0].strip("/")
        class_name = self._class_of(where)
        if class_name.startswith("TDirectory"):
            return WritableDirectory(self.file, self._whole(path))
        if class_name != _NTUPLE:
            raise UnsupportedError(f"{self.file_path}: '{path}' is a {class_name}, and only RNTuples can be changed")
        whole = self._whole(path)
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
            raise ValueError(f"{short(where)}: these are types, not data; begin it by mkrntuple()")
        whole = self._whole(where)
        if (begun := self.file.ntuples.pop(whole, None)) is not None:
            begun.close()
        self.mkrntuple(where, what)

    def __delitem__(self, where: str) -> None:
        class_name = self._class_of(where)
        raise UnsupportedError(
            f"{self.file_path}: {short(where)}, a {class_name}, cannot be deleted; copy what shall stay"
        )

    def mkdir(self, name: str, **options: Any) -> "WritableDirectory":
        """A directory in this one. It is there as soon as something is in it."""
        _options("mkdir", options)
        self.file.made.add(self._whole(name))
        return WritableDirectory(self.file, self._whole(name))

    def mkrntuple(self, name: str, type_spec_or_data: Any, description: str = "") -> "WritableNTuple":
        """Begins an ntuple of types, an Awkward form, or first entries."""
        schema, data = _schema_and_data(type_spec_or_data)
        text = description or _arrow.description(schema)
        whole = self._whole(name)
        if unnamed := unreadable_in_root(schema):
            _warn_of(f"{self.file_path}: ntuple '{whole}'", unnamed)
        writer = self.file.core.mkrntuple(whole, schema, description=text)
        if data is not None:
            writer.extend(data)
        writer.checkpoint()
        self.file.ntuples[whole] = made = WritableNTuple(self.file, whole, writer)
        return made

    def mktree(self, name: str, *args: Any, **options: Any) -> Any:
        """Tupelo writes no trees."""
        raise UnsupportedError(f"{self.file_path}: '{name}' cannot be a TTree; only RNTuples are written: mkrntuple()")

    def copy_from(self, source: Any, **options: Any) -> None:
        """Tupelo copies with its command."""
        raise UnsupportedError("objects are copied by the command `tupelo copy`")

    def __enter__(self) -> "WritableDirectory":
        return self


def _warn_of(ntuple: str, paths: list[str]) -> None:
    """Says of which fields ROOT will not read the ntuple."""
    text = (
        f"{ntuple}: {', '.join(map(repr, paths))} are arrays of fixed size or variants, with records that have no C++ "
        "class. ROOT's RNTupleReader opens no ntuple with such fields (RDataFrame reads the others); uproot and Tupelo "
        "do. Lists of any length instead (ak.from_regular) can be read by all"
    )
    warnings.warn(text, TupeloWarning, stacklevel=3)


class WritableNTuple:
    """An ntuple that is being written; `core` is the `tupelo.NtupleWriter` that does the work."""

    def __init__(self, file: WritableFile, path: str, core: NtupleWriter) -> None:
        self.file = file
        self.object_path = path
        self.core = core

    @property
    def path(self) -> tuple[str, ...]:
        """The names of the directories around it, and its own."""
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
        return self.core.num_entries

    def extend(self, data: Any, accept_new_fields: bool = False) -> None:
        """Appends entries, columns of the declared names and of the same length, as one cluster that can be read."""
        if isinstance(data, Mapping):
            # First, since it refuses projected fields, instead of which others are missing.
            new = self.core._unknown(data)
            if missing := [name for name in self.core.arrow_schema.names if name not in data]:
                raise InvalidArgumentError(f"'{self.object_path}' wants the fields {missing} too")
            if new and not accept_new_fields:
                text = f"'{self.object_path}': {new} are not in this RNTuple; accept_new_fields=True adds them"
                raise InvalidArgumentError(text)
            data = {name: _column(values, name) for name, values in data.items()}
        self.core.extend(data, accept_new_fields=accept_new_fields)
        self.core.checkpoint()

    def add_fields(self, new_fields: Any) -> None:
        """Adds fields of types; they are zero or empty in the entries before. Dotted names are members of records."""
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
        self.core.checkpoint()

    def _whole(self, path: str) -> str:
        """The path from the top of a new member ``"record.name"``, whose record uproot looks for at any depth."""
        record, _, name = path.partition(".")
        if not name or "." in name:
            return path
        found = [one for one in _records(self.core.arrow_schema) if one.rpartition(".")[2] == record]
        if len(found) > 1:
            text = f"'{self.object_path}': the record of '{path}' is ambiguous; write one of {found} before '.{name}'"
            raise InvalidArgumentError(text)
        return f"{found[0]}.{name}" if found else path

    def _check_new(self, path: str) -> None:
        """Raises `InvalidArgumentError` for a field that exists, and for a member of what is no record."""
        members, above = self.core.arrow_schema, []
        *parents, last = path.split(".")
        for name in parents:
            above.append(name)
            here = ".".join(above)
            if name not in members.names:
                raise InvalidArgumentError(f"'{self.object_path}': '{path}': a field '{here}' is not found")
            members = members.field(name).type
            if pa.types.is_union(members):
                raise UnsupportedError(f"'{self.object_path}': '{path}': '{here}' is a variant and gets no members")
            if not pa.types.is_struct(members):
                text = f"'{self.object_path}': '{path}': '{here}' is not a record, but of the type {members}"
                raise InvalidArgumentError(text)
        if last in (members.names if parents == [] else [member.name for member in members]):
            raise InvalidArgumentError(f"'{self.object_path}': a field '{path}' already exists")

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self.core.is_closed

    def close(self) -> None:
        """Writes what is pending."""
        self.core.close()

    def __enter__(self) -> "WritableNTuple":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.core.__exit__(*exception)

    def __repr__(self) -> str:
        return f"<WritableNTuple {'/' + self.object_path!r}>"


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
    """The `pyarrow.Schema` of what uproot would make fields of, and the first entries, if there are some."""
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
    return _conversion.plain_schema(schema), pa.concat_tables(whole) if whole else None


def _column(values: Any, name: str) -> Any:
    """Lists as uproot sees them, in which items may be of several types."""
    import awkward as ak

    if isinstance(values, str):
        raise InvalidArgumentError(f"field '{name}': {short(values)} is no type of NumPy or Awkward, and no column")
    return ak.Array(values) if isinstance(values, list | tuple) else values
