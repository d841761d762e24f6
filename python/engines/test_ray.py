"""Ray Data reads ntuples and trees: a real cluster on this machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import tupelo
import tupelo.ray

# Ray uses its own deprecated names.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def test_blocks_are_partitions(tmp_path: Path) -> None:
    for run in 1, 2:
        with tupelo.recreate(tmp_path / f"run{run}.root") as file:
            file["Events"] = {
                "run": [run] * 1000,
                "x": range(1000),
                "pt": [[one * 0.5] * (one % 3) for one in range(1000)],
            }
    events = tupelo.ray.read(f"{tmp_path}/run*.root:Events", step_size=250)
    assert events.count() == 2000
    expected = tupelo.concatenate(f"{tmp_path}/run*.root:Events").tolist()
    found = sorted(events.take_all(), key=lambda one: (one["run"], one["x"]))
    assert [one | {"pt": list(one["pt"])} for one in found] == expected
    sums = tupelo.ray.read(f"{tmp_path}/run*.root:Events", names=["run", "x"], cut="x < 10").groupby("run").sum("x")
    assert sorted((row["run"], row["sum(x)"]) for row in sums.take_all()) == [(1, 45), (2, 45)]
    with pytest.raises(tupelo.NotFoundError, match="'z'"):
        tupelo.ray.read(f"{tmp_path}/run1.root:Events", names=["z"])
