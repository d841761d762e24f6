"""Memory use of reading in batches."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tupelo

STEP = 100_000_000

MEASURE = """
import sys
import tupelo

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

ntuple = tupelo.open(sys.argv[1])["Events"]
next(ntuple.iterate(step_size=10, library=sys.argv[2]))
before, most = resident(), 0
for piece in ntuple.iterate(step_size=int(sys.argv[3]) // 32, library=sys.argv[2]):
    most = max(most, resident() - before)
for piece in ntuple.iterate(step_size=f"{sys.argv[3]} B", library=sys.argv[2]):
    most = max(most, resident() - before)
print(most)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is measured on Linux only")
@pytest.mark.parametrize("library", ["np", "ak"])
def test_at_most_two_batches_are_in_memory(tmp_path: Path, library: str) -> None:
    # Regression: three batches were in memory, and buffers that could not be reused.
    path = tmp_path / "large.root"
    with tupelo.recreate(path) as file:
        events = file.mkrntuple("Events", dict.fromkeys("abcd", "double"))
        for _ in range(13):
            events.extend({name: np.arange(1e6) for name in "abcd"})
    command = [sys.executable, "-c", MEASURE, str(path), library, str(STEP)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=100)
    # Batches end at page boundaries, and the allocator keeps some memory.
    assert int(done.stdout) < 2.6 * STEP, f"{int(done.stdout) / STEP:.2f} steps"
