"""Other threads run while the engine works or waits."""

import subprocess
import sys
from pathlib import Path

WAITING = """
import threading
import pyarrow as pa
import tupelo

asked = threading.Event()

def batches():
    # The writer holds its lock now, and needs the interpreter for the next batch.
    asked.wait(1.0)
    yield pa.record_batch({"x": [1, 2]})

with tupelo.recreate("f.root") as file:
    events = file.mkrntuple("Events", {"x": "std::int64_t"})
    schema = pa.schema([pa.field("x", pa.int64())])
    reader = pa.RecordBatchReader.from_batches(schema, batches())
    thread = threading.Thread(target=events._core.write, args=(reader,))
    thread.start()
    while thread.is_alive():
        assert events.num_entries in (0, 2)
    asked.set()
    thread.join()
    print(events.num_entries)
"""


def test_reading_entries_does_not_block_other_threads() -> None:
    """Regression: it waited for the writer with the interpreter lock held, and deadlocked."""
    done = subprocess.run([sys.executable, "-c", WAITING], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr


FORKED = """
import os
import numpy as np
import tupelo

with tupelo.recreate("f.root", compression="none") as file:
    file["Events"] = {"x": np.arange(12_000_000)}
tupelo.set_threads(2)
batches = tupelo.open("f.root:Events").iterate(step_size=1_000_000, library="np")
# The batches behind these are being decoded by a thread that the child does not have.
begun = next(batches)["x"].sum()
child = os.fork()
total = begun + sum(batch["x"].sum() for batch in batches)
assert total == 12_000_000 * 11_999_999 // 2, total
if child:
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
else:
    os._exit(0)
"""


def test_a_forked_child_continues_the_batches_of_its_parent(tmp_path: Path) -> None:
    run = [sys.executable, "-c", FORKED]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
