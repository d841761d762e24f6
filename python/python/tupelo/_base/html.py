"""HTML for notebooks."""

from html import escape

from .. import _core
from .messages import printable, truncate
from .sizes import bytes_text

MAX_DESCRIPTION_CHARACTERS = 200
"""Maximum number of characters shown of a name, a type or a description."""

STYLE = """<style>
.tupelo { font-family: monospace; line-height: 1.5; }
.tupelo details > *:not(summary) { margin-left: 1.5em; }
.tupelo div.field { margin-left: 1.1em; }
.tupelo summary { cursor: pointer; }
.tupelo .type { opacity: 0.75; }
.tupelo .sizes, .tupelo .says { opacity: 0.6; font-size: 90%; }
.tupelo .says { font-family: sans-serif; }
</style>"""


def code(text: str) -> str:
    """A string as code."""
    return f"<code>{escape(text)}</code>"


def sizes_text(sizes: "_core.Sizes") -> str:
    """Stored bytes, bytes before compression, and the codec; empty for no data."""
    if not sizes.codec:
        return ""
    stored, unpacked = bytes_text(sizes.stored_bytes), bytes_text(sizes.unpacked_bytes)
    return f"{stored} stored, {unpacked} unpacked, {shown(sizes.codec)}"


def and_more(count: int) -> str:
    """The number of what is not shown."""
    return f"<div class='field'>and {count} more</div>" if count else ""


def shown(text: str) -> str:
    """A string, truncated and escaped for HTML."""
    return escape(truncate(printable(text), MAX_DESCRIPTION_CHARACTERS))
