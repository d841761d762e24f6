"""HTML representations of ntuples and files for notebooks, from metadata only."""

from html import escape
from typing import TYPE_CHECKING

from . import _core
from ._messages import printable, truncate
from ._sizes import bytes_text
from .errors import Error

if TYPE_CHECKING:
    from .ntuple import Ntuple
    from .reading import File

MAX_FIELDS = 500
"""Maximum number of fields shown of an ntuple; top-level fields come first."""
MAX_OBJECTS = 100
"""Maximum number of objects shown of a file."""
MAX_DESCRIPTION_CHARACTERS = 200
"""Maximum number of characters shown of a name, a type or a description."""

_STYLE = """<style>
.tupelo { font-family: monospace; line-height: 1.5; }
.tupelo details > *:not(summary) { margin-left: 1.5em; }
.tupelo div.field { margin-left: 1.1em; }
.tupelo summary { cursor: pointer; }
.tupelo .type { opacity: 0.75; }
.tupelo .sizes, .tupelo .says { opacity: 0.6; font-size: 90%; }
.tupelo .says { font-family: sans-serif; }
</style>"""


def of_ntuple(ntuple: "Ntuple") -> str:
    """The tree of an ntuple's fields with their types, sizes, codecs and descriptions."""
    if ntuple._open_core is None:
        return f"<code>{escape(repr(ntuple))}</code>"
    core = ntuple._core
    try:
        metadata_bytes, whole, sizes = core.sizes()
        says = f"{_sizes(whole)}; metadata {bytes_text(metadata_bytes)}"
    except Error as error:
        # Reading reports the damage; the names are still valid.
        sizes, says = {}, _text(f"sizes are unknown: {error}")
    title = (
        f"<summary><b>{_text(core.path)}</b> <span class='type'>RNTuple {_text(core.format_version)}, "
        f"{core.num_entries} entries, {core.num_clusters} clusters</span> <span class='sizes'>{says}</span></summary>"
    )
    about = (core.description, f"{ntuple.file_path}, written by {core.writer}")
    notes = "".join(f"<div class='says'>{_text(text)}</div>" for text in about if text)
    shown = _Fields(ntuple, sizes).below(None)
    return f"{_STYLE}<div class='tupelo'><details open>{title}{notes}{shown}</details></div>"


class _Fields:
    """The tree of the fields."""

    def __init__(self, ntuple: "Ntuple", sizes: dict[str, tuple[int, int, str]]) -> None:
        self.fields = ntuple._fields[: len(ntuple)]
        self.sizes = sizes
        depths: list[int] = []
        self.children: dict[int | None, list[int]] = {}
        for index, (_, parent, *_) in enumerate(self.fields):
            depths.append(0 if parent is None else depths[parent] + 1)
            self.children.setdefault(parent, []).append(index)
        self.shown = set(sorted(range(len(depths)), key=depths.__getitem__)[:MAX_FIELDS])

    def below(self, parent: int | None) -> str:
        """The fields below a field, or the top-level fields."""
        children = self.children.get(parent, [])
        shown = [self.field(index) for index in children if index in self.shown]
        return "".join(shown) + _more(len(children) - len(shown))

    def field(self, index: int) -> str:
        """One field."""
        path, _, name, type_name, description, kind = self.fields[index]
        sizes = self.sizes.get(path)
        line = (
            f"<b>{_text(name)}</b> <span class='type'>{_text(type_name or kind)}</span> "
            f"<span class='sizes'>{'' if sizes is None else _sizes(sizes)}</span>"
        )
        if description:
            line += f" <span class='says'>{_text(description)}</span>"
        if index not in self.children:
            return f"<div class='field'>{line}</div>"
        return f"<details><summary>{line}</summary>{self.below(index)}</details>"


def of_file(file: "File") -> str:
    """The objects of a file, with the sizes of ntuples."""
    if file._open_core is None:
        return f"<code>{escape(repr(file))}</code>"
    core = file._core
    try:
        newest = file._newest()
    except Error as error:
        return f"<code>{escape(repr(file))}</code>: {_text(str(error))}"
    names = set(file.keys())
    lines = [_object(core, item, item[0] in names) for item in list(newest.values())[:MAX_OBJECTS]]
    title = (
        f"<summary><b>{_text(file.file_path)}</b> <span class='type'>ROOT file, {len(newest)} objects, "
        f"{len(names)} ntuples</span> <span class='sizes'>{bytes_text(core.size_bytes)}</span></summary>"
    )
    lines.append(_more(len(newest) - len(lines)))
    return f"{_STYLE}<div class='tupelo'><details open>{title}{''.join(lines)}</details></div>"


def _object(file: "_core.File", item: tuple[str, str, str, int, int], is_ntuple: bool) -> str:
    path, class_name, title, _, size = item
    says = f"{bytes_text(size)}"
    if is_ntuple:
        try:
            ntuple = file.table(path)
            top = sum(parent is None for _, parent, *_ in ntuple.fields()[: ntuple.num_listed_fields()])
            says = f"{top} fields, {ntuple.num_entries} entries, {_sizes(ntuple.sizes()[1])}"
        except Error as error:
            says = _text(f"unreadable: {error}")
    line = f"<b>{_text(path)}</b> <span class='type'>{_text(class_name)}</span> <span class='sizes'>{says}</span>"
    return f"<div class='field'>{line} <span class='says'>{_text(title)}</span></div>"


def _sizes(sizes: tuple[int, int, str]) -> str:
    stored, unpacked, codec = sizes
    if not codec:
        return ""
    return f"{bytes_text(stored)} stored, {bytes_text(unpacked)} unpacked, {_text(codec)}"


def _more(count: int) -> str:
    return f"<div class='field'>and {count} more</div>" if count else ""


def _text(text: str) -> str:
    """A string, truncated and escaped for HTML."""
    return escape(truncate(printable(text), MAX_DESCRIPTION_CHARACTERS))
