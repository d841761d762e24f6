"""The documentation site: `make docs-site` builds it of the pages in docs/, which stay as they are."""

import html
import os
import re
import subprocess
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

import tupelo

DOCS = Path(__file__).resolve().parents[1]
COMMAND = os.environ["TUPELO_BUILD"] + "/tupelo"

project = "Tupelo"
copyright = "the Tupelo authors"
release = version = tupelo.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
root_doc = "README"
exclude_patterns = ["site"]
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["tables.css"]
html_title = "Tupelo"
html_show_sourcelink = False
# Nothing is fetched when a page is read.
html_theme_options = {"navigation_with_keys": True}

myst_heading_anchors = 4
suppress_warnings = ["myst.header"]
# Single backticks are names of the package in docstrings.
default_role = "py:obj"
nitpicky = True
# Names of other packages have no pages here, nor have the types of annotations.
OTHERS = "ak|boost_histogram|dask|dask_awkward|hist|io|np|numpy|pandas|pathlib|polars|pyarrow|ray|repr|rich"
nitpick_ignore_regex = [("py:class", ".*"), ("py:obj", rf"({OTHERS})(\..*)?")]
autodoc_default_options = {
    "members": True,
    # Members of these bases are not repeated: they are Python's, Arrow's or on the page of errors.
    "inherited-members": "Mapping,MutableMapping,tuple,object,OSError,BaseException,Error,UnionDataset,Dataset",
}
# The site does not need them: they are large.
autodoc_mock_imports = ["pyspark", "ray"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_maximum_signature_line_length = 88
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def add_contents(app: Sphinx, name: str, source: list[str]) -> None:
    """A README lists its pages: they become the contents, in its order."""
    folder = (DOCS / name).parent

    def without_link(link: re.Match[str]) -> str:
        # What is not in docs/ has no page: it is named.
        inside = (folder / link[2]).resolve().is_relative_to(DOCS)
        return link[0] if inside else f"`{link[1]}`"

    source[0] = re.sub(r"\[([^\]]*)\]\((\.\./[^)#]*)[^)]*\)", without_link, source[0])
    if Path(name).name != "README":
        return
    # Items of a list, or first cells of a table.
    links = re.findall(r"^(?:- |\| )\[[^\]]*\]\(([^)#:]+\.md)\)", source[0], re.MULTILINE)
    pages = [link for link in dict.fromkeys(links) if (folder / link).is_file() and not link.startswith("..")]
    source[0] += "\n\n```{toctree}\n:hidden:\n\n" + "\n".join(pages) + "\n```\n"


def hide_constructor(app: Sphinx, what: str, name: str, obj: Any, *_: object) -> tuple[str, None] | None:
    """Programs get objects from functions and make only records, whose fields the signature lists."""
    is_record = isinstance(obj, type) and (is_dataclass(obj) or issubclass(obj, tuple))
    return ("", None) if what == "class" and not is_record else None


class CommandHelp(Directive):
    """The help of the command and of each subcommand, as the program prints it."""

    def run(self) -> list[nodes.Node]:
        """A section for each."""
        found = [self._section("tupelo", ["--help"])]
        overview = self._help(["--help"])
        names = re.findall(r"^  ([a-z]+) ", overview.partition("\nOptions:")[0], re.MULTILINE)
        found += [self._section(f"tupelo {name}", [name, "--help"]) for name in names if name != "help"]
        return found

    def _section(self, title: str, arguments: list[str]) -> nodes.section:
        section = nodes.section(ids=[nodes.make_id(title)], names=[title])
        section += nodes.title(text=title)
        block = nodes.literal_block(text=self._help(arguments))
        block["language"] = "text"
        section += block
        self.state.document.note_implicit_target(section)
        return section

    @staticmethod
    def _help(arguments: list[str]) -> str:
        # The width of the text on a page.
        wide = {**os.environ, "COLUMNS": "84"}
        done = subprocess.run([COMMAND, *arguments], check=True, capture_output=True, text=True, env=wide)
        return done.stdout


def redirect(app: Sphinx, error: Exception | None) -> None:
    """The folder opens with the first page."""
    if error is None:
        target = html.escape(f"{root_doc}.html")
        text = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={target}">'
        Path(app.outdir, "index.html").write_text(f'{text}<a href="{target}">Tupelo</a>\n', encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("source-read", add_contents)
    app.connect("autodoc-process-signature", hide_constructor)
    app.connect("build-finished", redirect)
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True}
