"""Writers that fail, that are not closed, and that a forked child inherits."""

import pathlib
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tupelo


def run(script: str, **options: str) -> subprocess.CompletedProcess[str]:
    """Runs a script in this directory."""
    text = "import os, sys, numpy as np, tupelo\n" + textwrap.dedent(script)
    return subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=120, check=False, **options
    )


def columns(name: str = "A") -> list[float]:
    return tupelo.open(f"f.root:{name}")["x"].array().tolist()  # type: ignore[no-any-return,union-attr]


# Files that are not closed.


@pytest.mark.parametrize("end", ["", "sys.exit(3)", "1 / 0", "del f"])
def test_unclosed_files_are_reported_once_at_exit(end: str) -> None:
    done = run(f"""
        f = tupelo.recreate("f.root")
        f["A"] = {{"x": [1.5, 2.5]}}
        f["dir/B"] = {{"x": [1.5]}}
        {end}
    """)
    assert done.stderr.count("f.root was not closed") == 1
    for part in ("'A' (2 entries)", "'dir/B' (1 entries)", "file.close()"):
        assert part in done.stderr
    assert list(pathlib.Path().iterdir()) == []


def test_closed_files_are_not_reported() -> None:
    done = run("""
        f = tupelo.recreate("f.root")
        f["A"] = {"x": [1.5, 2.5]}
        f.close()
        g = tupelo.update("f.root")
    """)
    assert (done.stderr, done.returncode) == ("", 0)
    assert columns() == [1.5, 2.5]


def test_the_checkpoint_of_an_unclosed_file_is_reported() -> None:
    done = run("""
        f = tupelo.recreate("f.root")
        f["A"] = {"x": [1.5, 2.5]}
        f["A"].checkpoint()
    """)
    (kept,) = pathlib.Path().iterdir()
    assert f"tupelo verify --repair {kept}" in done.stderr.replace("./", "").replace(f"{pathlib.Path.cwd()}/", "")


# Writes that fail.


def test_a_failed_assignment_leaves_no_ntuple(capsys: pytest.CaptureFixture[str]) -> None:
    bad = {"x": [1.5], "y": [object()]}
    with tupelo.recreate("f.root") as file:
        file["A"] = {"x": [0.5]}
        for data in (bad, {"x": [1, 2], "y": [1]}, "nothing"):
            with pytest.raises((tupelo.Error, TypeError, ValueError)):
                file["B"] = data

        def batches() -> object:
            import pyarrow as pa

            schema = pa.schema([pa.field("x", pa.float64(), False)])

            def each() -> object:
                yield pa.record_batch([pa.array([1.5])], schema=schema)
                raise OSError("the source is gone")

            return pa.RecordBatchReader.from_batches(schema, each())

        with pytest.raises(Exception, match="the source is gone"):
            file["B"] = batches()
        assert file.keys() == ["A"]
        file["B"] = {"x": [2.5]}
        with pytest.raises(Exception, match="the source is gone"):
            file["C/D"] = batches()
        # The earlier cycle is kept.
        with pytest.raises(Exception, match="the source is gone"):
            file["A"] = batches()
    with tupelo.open("f.root") as written:
        assert written.keys() == ["A", "B"]
    assert (columns(), columns("B")) == ([0.5], [2.5])
    assert capsys.readouterr().err == ""


def test_the_checkpoint_of_a_failed_ntuple_is_removed() -> None:
    import pyarrow as pa

    schema = pa.schema([pa.field("x", pa.float64(), False)])

    def each() -> object:
        for _ in range(3):
            yield pa.record_batch([pa.array([1.5] * 1000)], schema=schema)
        raise OSError("the source is gone")

    with tupelo.recreate("f.root", checkpoint_clusters=1, cluster_bytes=1000) as file:
        with pytest.raises(Exception, match="the source is gone"):
            file["A"] = pa.RecordBatchReader.from_batches(schema, each())
        file["B"] = {"x": [2.5]}
    with tupelo.open("f.root") as written:
        assert written.keys() == ["B"]


def test_a_failed_writer_is_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(3):
        file = tupelo.recreate("f.root")
        file["A"] = {"x": [0.5]}
        with pytest.raises(tupelo.InvalidArgumentError):
            file["B"] = {"x": [1, 2], "y": [1]}
    kept = file
    file = tupelo.recreate("f.root")
    with pytest.raises(tupelo.InvalidArgumentError, match=r"discarded when recreate\(\) opened it again"):
        kept["A"].extend({"x": [1.5]})
    file["A"] = {"x": [1.5]}
    file.close()
    assert columns() == [1.5]
    assert "its earlier writer failed and is discarded" in capsys.readouterr().err
    update = tupelo.update("f.root")
    with pytest.raises(tupelo.InvalidArgumentError):
        update["A"].extend({"y": [1.5]})
    with tupelo.update("f.root") as again:
        again["A"].extend({"x": [2.5]})
    del update
    assert columns() == [1.5, 2.5]


def save(value: float, *, fails: bool) -> None:
    """A notebook cell that is run again after a mistake."""
    file = tupelo.recreate("f.root")
    file["A"] = {"x": [value]}
    if fails:
        raise ZeroDivisionError
    file.close()


def test_a_file_is_begun_anew_after_an_exception_that_keeps_its_writer(capsys: pytest.CaptureFixture[str]) -> None:
    """Regression: the error demanded to close a writer that was not accessible."""
    with pytest.raises(ZeroDivisionError) as kept:
        save(0.5, fails=True)
    save(1.5, fails=False)
    assert columns() == [1.5]
    said = capsys.readouterr().err
    for part in (
        "f.root is opened again by recreate()",
        "was not closed and is discarded",
        "'A' (1 entries)",
        "to keep the data",
    ):
        assert part in said
    assert said.count("\n") == 1
    del kept


def test_the_calls_of_a_writer_that_was_given_up_say_so() -> None:
    file = tupelo.recreate("f.root")
    file["A"] = {"x": [0.5]}
    events = file["A"]
    with tupelo.recreate("./f.root") as again:
        again["B"] = {"x": [1.5]}
    calls: list[Callable[[], object]] = [
        file.keys,
        file.close,
        lambda: events.extend({"x": [1.5]}),
        lambda: file.mkrntuple("C", {"x": "int"}),
        lambda: file.__exit__(None),
    ]
    for call in calls:
        with pytest.raises(
            tupelo.InvalidArgumentError, match=r"f\.root was discarded when recreate\(\) opened it again"
        ):
            call()
    assert columns("B") == [1.5]


def test_a_writer_without_data_is_not_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with tupelo.recreate("f.root") as file:
        file["A"] = {"x": [0.5]}
    empty = [tupelo.recreate("f.root"), tupelo.update("f.root"), tupelo.update("f.root")]
    with tupelo.update("f.root") as again:
        again["A"].extend({"x": [1.5]})
    assert (columns(), len(empty), capsys.readouterr().err) == ([0.5, 1.5], 3, "")


def test_an_update_does_not_discard_what_another_writer_has() -> None:
    file = tupelo.recreate("f.root")
    file["A"] = {"x": [0.5]}
    text = r"by this process \('A' \(1 entries\)\): close\(\) or abort\(\).*variable.*tupelo\.abort\('\./f\.root'\)"
    with pytest.raises(tupelo.InvalidArgumentError, match=text):
        tupelo.update("./f.root")
    file.close()
    with tupelo.update("f.root") as again:
        again["A"].extend({"x": [1.5]})
    assert columns() == [0.5, 1.5]


def test_abort_discards_an_unreferenced_writer() -> None:
    with tupelo.recreate("f.root") as file:
        file["A"] = {"x": [0.5]}

    def fill() -> None:
        file = tupelo.update("f.root")
        file["A"].extend({"x": [1.5]})
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as kept:
        fill()
    with pytest.raises(tupelo.InvalidArgumentError, match=r"tupelo\.abort"):
        tupelo.update("f.root")
    assert tupelo.abort("f.root") is None
    with tupelo.update("f.root") as again:
        again["A"].extend({"x": [2.5]})
    assert columns() == [0.5, 2.5]
    with pytest.raises(tupelo.NotFoundError, match=r"f\.root is not being written"):
        tupelo.abort("f.root")
    del kept


def test_a_writer_of_another_thread_is_not_discarded() -> None:
    with ThreadPoolExecutor(1) as threads:
        file = threads.submit(tupelo.recreate, "f.root").result()
        with pytest.raises(tupelo.InvalidArgumentError, match="already being written by this process"):
            tupelo.recreate("f.root")
        file["A"] = {"x": [0.5]}
        file.close()
        assert columns() == [0.5]
        file = threads.submit(tupelo.recreate, "f.root").result()
    # The thread has ended.
    tupelo.recreate("f.root").abort()


# Exceptions without a traceback.


@pytest.mark.parametrize(
    ("end", "said"),
    [("sys.exit()", True), ("sys.exit(0)", True), ("sys.exit(3)", False), ("1 / 0", False)],
)
@pytest.mark.parametrize("function", ["recreate", "update"])
def test_data_discarded_by_exit_are_reported(function: str, end: str, said: bool) -> None:
    """Regression: ``sys.exit()`` in the block discarded the file silently."""
    with tupelo.recreate("f.root") as file:
        file["A"] = {"x": [7.5]}
    done = run(f"""
        with tupelo.{function}("f.root") as f:
            f["B"] = {{"x": [1.5, 2.5]}}
            {end}
    """)
    assert ("f.root was not closed because of SystemExit" in done.stderr) == said
    assert ("'B' (2 entries)" in done.stderr) == said
    assert ("file.close()" in done.stderr) == said
    assert tupelo.open("f.root").keys() == ["A"]


def test_data_discarded_by_a_generator_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    def batches() -> Iterator[int]:
        with tupelo.recreate("f.root") as file:
            events = file.mkrntuple("A", {"x": "int"})
            for number in range(10):
                events.extend({"x": [number]})
                yield number

    for number in batches():
        if number == 2:
            break
    assert "f.root was not closed because of GeneratorExit" in (said := capsys.readouterr().err)
    assert "'A' (3 entries)" in said
    assert not pathlib.Path("f.root").exists()


# What keeps a file open.


def test_a_writer_of_an_ntuple_keeps_its_file(capsys: pytest.CaptureFixture[str]) -> None:
    """Regression: the file was discarded immediately, because only its ntuple was referenced."""
    events = tupelo.recreate("f.root").mkrntuple("A", {"x": "int"})
    events.extend({"x": [1]})
    runs = events.attribute_set("runs", {"run": "int"})
    context = events.fill_context()
    del events
    runs.add(0, 1, run=7)
    context.extend({"x": [2]})
    context.close()
    assert capsys.readouterr().err == ""
    del runs, context
    assert "f.root was not closed: no file was created; discarded 'A' (2 entries)" in capsys.readouterr().err


def test_a_file_is_released_with_its_last_user(capsys: pytest.CaptureFixture[str]) -> None:
    file = tupelo.recreate("f.root")
    file["A"] = {"x": [1]}
    events = file["A"]
    assert file["A"] is events
    del events
    assert capsys.readouterr().err == ""
    # Immediately, not at garbage collection.
    del file
    assert "f.root was not closed" in capsys.readouterr().err


# Children.

FORKS = {
    "fork": """
        if (child := os.fork()) == 0:
            work()
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
    """,
    "multiprocessing": """
        import multiprocessing
        child = multiprocessing.get_context("fork").Process(target=work)
        child.start()
        child.join()
        assert child.exitcode == 0
    """,
}


@pytest.mark.parametrize("fork", FORKS)
@pytest.mark.parametrize("update", [False, True])
def test_a_forked_child_leaves_a_writer_to_its_parent(fork: str, update: bool) -> None:
    with tupelo.recreate("f.root") as file:
        file["before"] = {"x": [7.5]}
    script = f"""
        f = tupelo.{"update" if update else "recreate"}("f.root")
        f["A"] = {{"x": np.arange(1000.0)}}
        a = f["A"]

        def work():
            def refused(call):
                try:
                    call()
                except tupelo.InvalidArgumentError as error:
                    assert f"by process {{os.getppid()}}" in str(error), error
                else:
                    raise SystemExit("was not refused")

            refused(lambda: a.extend({{"x": [1.5]}}))
            refused(a.flush_cluster)
            refused(a.checkpoint)
            refused(lambda: f.mkrntuple("B", {{"x": "int"}}))
            refused(lambda: f.__setitem__("B", {{"x": [1]}}))
            refused(f.abort)
            refused(f.close)
            refused(a.close)
            with tupelo.recreate("child.root") as own:
                own["A"] = {{"x": [1.5]}}
    """
    after = """
        a.extend({"x": np.arange(1000.0)})
        f.close()
    """
    done = run(textwrap.dedent(script) + textwrap.dedent(FORKS[fork]) + textwrap.dedent(after))
    assert (done.stderr, done.returncode) == ("", 0)
    assert columns() == [*np.arange(1000.0)] * 2
    assert {path.name for path in pathlib.Path().iterdir()} == {"f.root", "child.root"}
    assert ("before" in tupelo.open("f.root").keys()) == update  # noqa: SIM118


def test_a_running_child_does_not_keep_the_file_locked() -> None:
    done = run("""
        import signal
        f = tupelo.recreate("f.root")
        f["A"] = {"x": [0.5]}
        if (child := os.fork()) == 0:
            signal.pause()
        f.close()
        with tupelo.update("f.root") as g:
            g["A"].extend({"x": [1.5]})
        os.kill(child, signal.SIGKILL)
    """)
    assert (done.stderr, done.returncode) == ("", 0)
    assert columns() == [0.5, 1.5]


# Limits.


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits")
def test_a_file_size_limit_leaves_nothing_behind() -> None:
    done = run("""
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            with tupelo.recreate("f.root", compression="none") as file:
                file["A"] = {"x": np.arange(1_000_000.0)}
        except tupelo.StorageError as error:
            assert "File too large" in str(error), error
        else:
            raise SystemExit("no error")
    """)
    assert (done.stderr, done.returncode) == ("", 0)
    assert list(pathlib.Path().iterdir()) == []
