"""`tupelo import` of files that other libraries write."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from panel import TUPELO


@pytest.mark.parametrize(("version", "dictionary"), [("1.0", False), ("2.0", False), ("1.0", True)])
def test_checksums_of_parquet_pages(tmp_path: Path, version: str, dictionary: bool) -> None:
    """Regression: wrong values were imported where the checksum of a page does not match."""
    source, out = tmp_path / "x.parquet", tmp_path / "x.root"
    table = pa.table({"x": np.arange(10_000) % 1000})
    options = {"data_page_version": version, "use_dictionary": dictionary, "compression": "none"}
    pq.write_table(table, source, write_page_checksum=True, **options)
    command = [str(TUPELO), "import", str(source), "-o", str(out), "--force"]
    subprocess.run(command, check=True, capture_output=True)
    content = bytearray(source.read_bytes())
    content[5000] ^= 0x10
    source.write_bytes(content)
    out.unlink()
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 1
    assert "x.parquet: the Parquet file is damaged: a page does not match its checksum" in run.stderr
    assert not out.exists()
