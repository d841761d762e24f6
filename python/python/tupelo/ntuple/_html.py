"""HTML representations of ntuples, from metadata only."""

from .. import _core
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
        found = core.sizes()
        sizes = found.fields
        says = f"{sizes_text(found.pages)}; metadata {bytes_text(found.metadata_bytes)}"
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

    def __init__(self, ntuple: Fields, sizes: "dict[str, _core.Sizes]") -> None:
        self.fields = ntuple._fields[: len(ntuple)]
        self.sizes = sizes
        depths: list[int] = []
        self.children: dict[int | None, list[int]] = {}
        for index, field in enumerate(self.fields):
            depths.append(0 if field.parent is None else depths[field.parent] + 1)
            self.children.setdefault(field.parent, []).append(index)
        self.shown = set(sorted(range(len(depths)), key=depths.__getitem__)[:MAX_FIELDS])

    def below(self, parent: int | None) -> str:
        """The fields below a field, or the top-level fields."""
        children = self.children.get(parent, [])
        lines = [self.field(index) for index in children if index in self.shown]
        return "".join(lines) + and_more(len(children) - len(lines))

    def field(self, index: int) -> str:
        """One field."""
        field = self.fields[index]
        sizes = self.sizes.get(field.path)
        line = (
            f"<b>{shown(field.name)}</b> <span class='type'>{shown(field.type_name or field.kind)}</span> "
            f"<span class='sizes'>{'' if sizes is None else sizes_text(sizes)}</span>"
        )
        if field.description:
            line += f" <span class='says'>{shown(field.description)}</span>"
        if index not in self.children:
            return f"<div class='field'>{line}</div>"
        return f"<details><summary>{line}</summary>{self.below(index)}</details>"
