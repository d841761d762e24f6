"""The programs and libraries that cargo built of these sources: in `TUPELO_BUILD`, or where `make test` builds them."""

import os
from pathlib import Path

FOLDER = Path(os.environ.get("TUPELO_BUILD") or Path(__file__).resolve().parents[2] / "target" / "debug")


def built(name: str) -> Path:
    path = FOLDER / name
    assert path.exists(), f"{path} is missing: run make test, or set TUPELO_BUILD"
    return path
