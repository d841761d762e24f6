"""HTML representations of ntuples, from metadata only."""

from .._base.html import STYLE, and_more, code, shown, sizes_text
from .._base.sizes import bytes_text
from ..errors import Error
from ..fields._fields import Fields

MAX_FIELDS = 500
"""Maximum number of fields shown of an ntuple; top-level fields come first."""


def of_ntuple(ntuple: Fields) -> str:
    """The tree of an ntuple's fields with their types, sizes, codecs and descriptions."""
    if ntuple._open_core is None:
        return code(repr(ntuple))
    core = ntuple._core
    try:
        metadata_bytes, whole, sizes = core.sizes()
        says = f"{sizes_text(whole)}; metadata {bytes_text(metadata_bytes)}"
    except Error as error:
        # Reading reports the damage; the names are still valid.
        sizes, says = {}, shown(f"sizes are unknown: {error}")
    title = (
        f"<summary><b>{shown(core.path)}</b> <span class='type'>RNTuple {shown(core.format_version)}, "
        f"{core.num_entries} entries, {core.num_clusters} clusters</span> <span class='sizes'>{says}</span></summary>"
    )
    about = (core.description, f"{ntuple.file_path}, written by {core.writer}")
    notes = "".join(f"<div class='says'>{shown(text)}</div>" for text in about if text)
    fields = _Fields(ntuple, sizes).below(None)
    return f"{STYLE}<div class='tupelo'><details open>{title}{notes}{fields}</details></div>"


class _Fields:
    """The tree of the fields."""

    def __init__(self, ntuple: Fields, sizes: dict[str, tuple[int, int, str]]) -> None:
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
        lines = [self.field(index) for index in children if index in self.shown]
        return "".join(lines) + and_more(len(children) - len(lines))

    def field(self, index: int) -> str:
        """One field."""
        path, _, name, type_name, description, kind = self.fields[index]
        sizes = self.sizes.get(path)
        line = (
            f"<b>{shown(name)}</b> <span class='type'>{shown(type_name or kind)}</span> "
            f"<span class='sizes'>{'' if sizes is None else sizes_text(sizes)}</span>"
        )
        if description:
            line += f" <span class='says'>{shown(description)}</span>"
        if index not in self.children:
            return f"<div class='field'>{line}</div>"
        return f"<details><summary>{line}</summary>{self.below(index)}</details>"
