"""The command ``tupelo``, which the wheel installs; ``python -m tupelo`` is the same."""

import sys

from ._base import command


def main() -> None:
    """Runs the command with the arguments of this program and exits with its status."""
    if sys.argv[1:2] == ["sql"]:
        # DuckDB is a package of Python; all else is in the engine.
        from ._sql.command import run

        sys.exit(run(sys.argv[2:]))
    command.main()


if __name__ == "__main__":
    main()
