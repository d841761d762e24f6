"""Other threads go on while the engine works or waits."""

import subprocess
import sys

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


def test_asking_for_entries_stops_no_other_thread() -> None:
    """It used to wait for the writer without letting the interpreter go: with a writer that needed it, for ever."""
    done = subprocess.run([sys.executable, "-c", WAITING], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
