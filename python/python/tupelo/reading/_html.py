"""HTML representations of files, from metadata only."""

from collections.abc import Collection, Mapping

from .. import _core
from .._base.html import STYLE, and_more, shown, sizes_text
from .._base.sizes import bytes_text
from ..errors import Error

MAX_OBJECTS = 100
"""Maximum number of objects shown of a file."""


def of_file(
    core: "_core.File", file_path: str, newest: "Mapping[str, _core.ObjectInfo]", names: Collection[str]
) -> str:
    """The newest objects of a file, with the sizes of the ntuples of these names."""
    lines = [_object(core, item, item.path in names) for item in list(newest.values())[:MAX_OBJECTS]]
    size = "" if core.size_bytes is None else bytes_text(core.size_bytes)
    title = (
        f"<summary><b>{shown(file_path)}</b> <span class='type'>ROOT file, {len(newest)} objects, "
        f"{len(names)} ntuples</span> <span class='sizes'>{size}</span></summary>"
    )
    lines.append(and_more(len(newest) - len(lines)))
    return f"{STYLE}<div class='tupelo'><details open>{title}{''.join(lines)}</details></div>"


def _object(file: "_core.File", item: "_core.ObjectInfo", is_ntuple: bool) -> str:
    says = bytes_text(item.size_bytes)
    if is_ntuple:
        try:
            ntuple = file.table(item.path)
            top = sum(field.parent is None for field in ntuple.fields()[: ntuple.num_listed_fields()])
            says = f"{top} fields, {ntuple.num_entries} entries, {sizes_text(ntuple.sizes().pages)}"
        except Error as error:
            says = shown(f"unreadable: {error}")
    name, class_name = shown(item.path), shown(item.class_name)
    line = f"<b>{name}</b> <span class='type'>{class_name}</span> <span class='sizes'>{says}</span>"
    return f"<div class='field'>{line} <span class='says'>{shown(item.title)}</span></div>"
