"""Joins of several tables, by entry and by keys."""

import pickle

import numpy as np
import pytest

import tupelo


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Events, and scores of most of them in another order."""
    folder = tmp_path_factory.mktemp("join")
    run = np.repeat([1, 2, 3], 1000)
    event = np.tile(np.arange(1000, dtype=np.uint64), 3)
    with tupelo.recreate(folder / "events.root") as file:
        file["Events"] = {"run": run, "event": event, "x": np.arange(3000.0)}
    for number in 1, 2, 3:
        with tupelo.recreate(folder / f"run{number}.root") as file:
            is_own = run == number
            file["Events"] = {"run": run[is_own], "event": event[is_own], "y": np.arange(3000.0)[is_own] ** 2}
    order = np.random.default_rng(1).permutation(3000)[:2900]
    with tupelo.recreate(folder / "scores.root") as file:
        scores = {"run": run[order].astype(np.int8), "event": event[order], "score": order / 2, "x": order}
        file["Scores"] = scores
        file["runs"] = {"run": [3, 2, 1], "beam": [3.5, 2.5, 1.5]}
    return folder, np.sort(order)


def test_entries_of_the_same_number(files):
    folder, _ = files
    joined = tupelo.join({"": folder / "events.root", "o_": f"{folder}/run*.root:Events"})
    assert joined.keys() == ["run", "event", "x", "o_run", "o_event", "o_y"]
    assert joined.num_entries == 3000
    assert len(joined.tables) == 2
    arrays = joined.arrays(["x", "o_y", "o_run - run"], library="np")
    assert (arrays["x"] ** 2 == arrays["o_y"]).all()
    assert not arrays["o_run - run"].any()
    again = pickle.loads(pickle.dumps(joined))
    assert again.arrays("o_y", cut="x == 7").tolist() == [{"o_y": 49.0}]
    with pytest.raises(tupelo.InvalidArgumentError, match=r"field .run. is also in .* prefix"):
        tupelo.join([folder / "events.root"] * 2)
    with pytest.raises(tupelo.InvalidArgumentError, match="has 1000 entries, expected 3000"):
        tupelo.join({"": folder / "events.root", "o_": folder / "run1.root"})


def test_entries_of_the_same_keys(files):
    folder, kept = files
    tables = {"": folder / "events.root", "s_": f"{folder}/scores.root:Scores"}
    with pytest.raises(tupelo.InvalidArgumentError, match=r"no entry with run = \d, event = \d+, which is entry \d+"):
        tupelo.join(tables, on=["run", "event"])
    dropped = tupelo.join(tables, on=("run", "event"), unmatched="drop")
    assert dropped.keys() == ["run", "event", "x", "s_score", "s_x"]
    arrays = dropped.arrays(library="np")
    assert (arrays["x"] == kept).all()
    assert (arrays["s_x"] == kept).all()
    assert (arrays["s_score"] == kept / 2).all()
    nulls = tupelo.join(tables, on=["run", "event"], unmatched="null")
    score = nulls.arrays("s_score", library="arrow")["s_score"].combine_chunks()
    assert len(score) == 3000
    assert score.null_count == 100
    assert score.drop_null().to_numpy().tolist() == (kept / 2).tolist()
    assert nulls.arrays("x", cut="is_missing(s_score)", library="np")["x"].tolist() == sorted(
        set(range(3000)) - set(kept.tolist())
    )
    beams = tupelo.join([folder / "events.root", f"{folder}/scores.root:runs"], on="run")
    arrays = beams.arrays(["run", "beam"], library="np")
    assert (arrays["beam"] == arrays["run"] + 0.5).all()


def test_a_join_becomes_one_ntuple(files, tmp_path):
    folder, kept = files
    tables = {"": folder / "events.root", "s_": f"{folder}/scores.root:Scores"}
    joined = tupelo.join(tables, on=["run", "event"], unmatched="drop")
    joined.copy(tmp_path / "joined.root", cut="s_score > 10")
    copied = tupelo.open(f"{tmp_path}/joined.root:Events")
    assert copied.arrays("s_x", library="np")["s_x"].tolist() == kept[kept > 20].tolist()
    assert copied.keys() == joined.keys()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"on": []}, "at least one field"),
        ({"on": "x"}, "key 'x' has type double, expected an integer"),
        ({"on": "event"}, r"entries \d+ and \d+ have the same event = \d+"),
        ({"on": "run", "unmatched": "keep"}, "unmatched as one of 'error', 'null', 'drop'"),
    ],
)
def test_what_cannot_be_joined(files, arguments, message):
    folder, _ = files
    with pytest.raises(tupelo.InvalidArgumentError, match=message):
        tupelo.join([folder / "events.root", f"{folder}/scores.root:Scores"], **arguments)
    with pytest.raises(tupelo.NotFoundError, match=r"no field named .evnt..*.event."):
        tupelo.join([folder / "events.root", f"{folder}/scores.root:Scores"], on="evnt")
    with pytest.raises(tupelo.InvalidArgumentError, match="a list of tables"):
        tupelo.join("events.root")
