"""What the command ``tupelo sql`` runs."""

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

from .._base.messages import printable
from ..errors import Error, TupeloWarning
from .columns import as_it_is, for_json, for_parquet
from .query import sql, without_python

_COPY = {"csv": "format csv, header true", "jsonl": "format json", "parquet": "format parquet"}
"""How DuckDB writes a format."""
_COLUMNS = {"csv": as_it_is, "jsonl": for_json, "parquet": for_parquet}
"""What it writes for columns."""
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
_FAILED, _USAGE, _INTERRUPTED = 1, 2, 130


class _UsageError(Exception):
    """An invalid command line."""


def run(arguments: Sequence[str]) -> int:
    """Runs the command and returns its exit status, with errors on stderr."""
    try:
        given = _parsed(arguments)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if given.quiet else "always", TupeloWarning)
            warnings.showwarning = _show_warning
            _write(sql(given.query), given.format, given.output)
            sys.stdout.flush()
    except _UsageError as error:
        return _fail(str(error), _USAGE)
    except KeyboardInterrupt:
        return _fail("interrupted", _INTERRUPTED)
    except BrokenPipeError:
        # As in `tupelo sql … | head`. Python would report it again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (Error, ImportError, OSError, pa.ArrowException) as error:
        return _fail(without_python(str(error)), _FAILED)
    except Exception as error:
        if str(error) == "Query interrupted":
            return _fail("interrupted", _INTERRUPTED)
        if not type(error).__module__.endswith("duckdb"):
            raise
        # Arrow adds the traceback of an error in a stream.
        return _fail(without_python(str(error).partition(". Detail: Python exception:")[0]), _FAILED)
    return 0


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The arguments, which the command has checked as far as it can."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("query")
    parser.add_argument("--format")
    parser.add_argument("--output")
    parser.add_argument("--quiet", action="store_true")
    given = parser.parse_args(arguments)
    given.output = None if given.output == "-" else given.output
    extension = os.path.splitext(given.output or "")[1].lower()
    given.format = {"json": "jsonl"}.get(given.format, given.format) or _FORMATS.get(extension, "table")
    if extension == ".root":
        # It may be the file that is read.
        raise _UsageError(f"{given.output} would not be a ROOT file; write a .parquet file, which tupelo import reads")
    if given.output is not None and given.format == "table":
        raise _UsageError(f"the format of {given.output} is unknown; choose one with --format")
    if sys.stdout is None:
        # The next file that is opened would have its number.
        raise _UsageError("stdout is closed; write to a file with -o OUT and open stdout, for instance as /dev/null")
    if given.output is None and given.format in ("arrow", "parquet") and sys.stdout.isatty():
        raise _UsageError("refusing to write binary data to the terminal; write to a file with -o OUT, or to a pipe")
    return given


def _write(relation: Any, format: str, output: str | None) -> None:
    """Writes the rows of a relation; a statement that has none is done already."""
    if relation is None:
        return
    if format == "table":
        _print(relation)
    elif format == "arrow":
        _write_arrow(relation.to_arrow_reader(), output)
    elif output is not None:
        _copy(relation, output, format)
    else:
        with _pipe_to_stdout() as place:
            _copy(relation, place, format)


def _print(relation: Any) -> None:
    """Prints the first and last rows as a table, and plans as text."""
    if relation.columns == ["explain_key", "explain_value"]:
        text = "\n".join(plan for _, plan in relation.fetchall())
    else:
        text = str(relation)
    sys.stdout.write("\n".join(printable(line) for line in text.split("\n")))


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
    # By their places: two may have the same name.
    places = [f"c{place}" for place in range(len(relation.columns))]
    columns = ", ".join(_COLUMNS[format](relation, places))
    result = f"result as result({', '.join(places)})"
    relation.query("result", f"copy (select {columns} from {result}) to '{quoted}' ({_COPY[format]})")


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
    print(f"tupelo: warning: {without_python(str(message))}", file=sys.stderr)


def _fail(text: str, status: int) -> int:
    print(f"tupelo: error: {text}", file=sys.stderr)
    return status
