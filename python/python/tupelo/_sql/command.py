"""The command ``tupelo sql``."""

import argparse
import os
import shutil
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

import pyarrow as pa

from ..errors import Error, TupeloWarning
from .query import sql

_COPY = {"csv": "format csv, header true", "jsonl": "format json", "parquet": "format parquet"}
"""How DuckDB writes a format."""
_FORMATS = {
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".csv": "csv",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".json": "jsonl",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}
"""Formats by the extension of a file, as for ``tupelo dump``."""
_FAILED, _INTERRUPTED = 1, 130
_DESCRIPTION = """Run a statement of DuckDB over ntuples and trees; only the columns that it uses are read.

A table is 'FILE:NAME' in quotes. FILE may be a URL or have wildcards; NAME is optional if the file has only one
ntuple or tree. DuckDB reads other files itself: 'weights.parquet'."""

_EXAMPLES = """Examples:
  tupelo sql "select avg(MET_pt) from 'events.root:Events'"
  tupelo sql "select run, count(*) as n from 'run*.root:Events' group by run" -o runs.csv
  tupelo sql "select * from 'a.root' join 'b.root' using (run, event)" --format parquet | cat > joined.parquet"""


def run(arguments: Sequence[str]) -> int:
    """Runs the command and returns its exit status, with errors on stderr."""
    given = _parsed(arguments)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if given.quiet else "always", TupeloWarning)
            warnings.showwarning = _show_warning
            _write(sql(given.query), given.format, given.output)
            sys.stdout.flush()
    except KeyboardInterrupt:
        return _fail("interrupted", _INTERRUPTED)
    except BrokenPipeError:
        # As in `tupelo sql … | head`. Python would report it again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (Error, ImportError, OSError, pa.ArrowException) as error:
        return _fail(str(error), _FAILED)
    except Exception as error:
        if str(error) == "Query interrupted":
            return _fail("interrupted", _INTERRUPTED)
        if not type(error).__module__.endswith("duckdb"):
            raise
        # Arrow adds the traceback of an error in a stream.
        return _fail(str(error).partition(". Detail: Python exception:")[0], _FAILED)
    return 0


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "tupelo sql",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("query", metavar="QUERY", help="the statement, in the SQL of DuckDB")
    parser.add_argument(
        "--format",
        choices=("table", "csv", "jsonl", "json", "arrow", "parquet"),
        help="output format: a table of the first and last rows, or all rows in another format; json is jsonl "
        "[default: by the extension of OUT (.csv, .jsonl .ndjson .json, .arrow .arrows .feather .ipc, .parquet), "
        "otherwise table]",
    )
    parser.add_argument(
        "-o", "--output", metavar="OUT", help="output file, replaced if it exists, or - for stdout [default: -]"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print only errors to stderr: no warnings")
    given = parser.parse_args(arguments)
    given.output = None if given.output == "-" else given.output
    extension = os.path.splitext(given.output or "")[1].lower()
    given.format = {"json": "jsonl"}.get(given.format, given.format) or _FORMATS.get(extension, "table")
    if extension == ".root":
        # It may be the file that is read.
        parser.error(f"{given.output} would not be a ROOT file; write a .parquet file, which tupelo import reads")
    if given.output is not None and given.format == "table":
        parser.error(f"the format of {given.output} is unknown; choose one with --format")
    if sys.stdout is None:
        # The next file that is opened would have its number.
        parser.error("stdout is closed; write to a file with -o OUT and open stdout, for instance as /dev/null")
    if given.output is None and given.format in ("arrow", "parquet") and sys.stdout.isatty():
        parser.error("refusing to write binary data to the terminal; write to a file with -o OUT, or to a pipe")
    return given


def _write(relation: Any, format: str, output: str | None) -> None:
    """Writes the rows of a relation; a statement that has none is done already."""
    if relation is None:
        return
    if format == "table":
        relation.show()
    elif format == "arrow":
        _write_arrow(relation.to_arrow_reader(), output)
    elif output is not None:
        _copy(relation, output, format)
    else:
        with _pipe_to_stdout() as place:
            _copy(relation, place, format)


def _write_arrow(reader: Any, output: str | None) -> None:
    if output is None:
        with _stdout() as out, pa.ipc.new_stream(out, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
        return
    # As DuckDB does for the other formats: a file is replaced when the new one is complete.
    part = f"{output}.part"
    try:
        with open(part, "wb") as out, pa.ipc.new_file(out, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
        os.replace(part, output)
    except BaseException:
        with suppress(OSError):
            os.remove(part)
        raise


def _copy(relation: Any, path: str, format: str) -> None:
    quoted = path.replace("'", "''")
    relation.query("result", f"copy result to '{quoted}' ({_COPY[format]})")


@contextmanager
def _pipe_to_stdout() -> Iterator[str]:
    """The name of a pipe whose bytes go to stdout.

    DuckDB writes to a file by its name only, and would begin a file again that stdout continues.
    """
    source, target = os.pipe()
    errors: list[OSError] = []

    def forward() -> None:
        try:
            # Without a reader DuckDB gets an error.
            with open(source, "rb") as pipe, _stdout() as out:
                shutil.copyfileobj(pipe, out)
        except OSError as error:
            errors.append(error)

    thread = threading.Thread(target=forward)
    thread.start()
    try:
        yield f"/dev/fd/{target}"
    finally:
        os.close(target)
        thread.join()
        if errors:
            raise errors[0]


def _stdout() -> BinaryIO:
    return open(os.dup(sys.stdout.fileno()), "wb")


def _show_warning(message: object, *_: object, **__: object) -> None:
    print(f"tupelo: warning: {message}", file=sys.stderr)


def _fail(text: str, status: int) -> int:
    print(f"tupelo: error: {text}", file=sys.stderr)
    return status
