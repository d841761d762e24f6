"""The commands of the engine."""

import os
import signal
import sys

from .. import _core


def main() -> None:
    """Runs the command with the arguments of this program and exits with its status."""
    # Python's handler would wait until Python code runs again. It is absent if the program starts with SIGINT ignored.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # For `tupelo -q sql`, which runs Python.
    os.environ.setdefault("TUPELO_PYTHON", sys.executable)
    # Otherwise libdaos writes its log to stdout, between the data.
    os.environ.setdefault("D_LOG_FILE", os.devnull)
    sys.exit(_core.run_command(["tupelo", *sys.argv[1:]]))
