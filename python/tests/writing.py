"""Waiting until another process writes."""

import os
import subprocess
from pathlib import Path
from typing import Any


def has_begun(process: "subprocess.Popen[Any]", folder: Path, name: str = "") -> bool:
    """Whether a process writes a file in a folder; on Linux, one may have no name until it is complete."""
    if any(name in path.name for path in folder.iterdir()):
        return True
    open_files = Path(f"/proc/{process.pid}/fd")
    for link in open_files.iterdir() if open_files.exists() else ():
        try:
            if os.readlink(link).startswith(f"{folder}/#"):
                return True
        except FileNotFoundError:
            continue
    return False
