"""HTML for notebooks."""

from html import escape

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


def sizes_text(sizes: tuple[int, int, str]) -> str:
    """Stored bytes, bytes before compression, and the codec; empty for no data."""
    stored, unpacked, codec = sizes
    if not codec:
        return ""
    return f"{bytes_text(stored)} stored, {bytes_text(unpacked)} unpacked, {shown(codec)}"


def and_more(count: int) -> str:
    """The number of what is not shown."""
    return f"<div class='field'>and {count} more</div>" if count else ""


def shown(text: str) -> str:
    """A string, truncated and escaped for HTML."""
    return escape(truncate(printable(text), MAX_DESCRIPTION_CHARACTERS))
