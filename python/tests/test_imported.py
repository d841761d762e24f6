"""Collections of ROOT's importer of trees: `_collection0` and so on, which projected fields show."""

import subprocess

import awkward as ak
import numpy as np
import pytest
from builds import built

import tupelo


@pytest.fixture
def imported() -> tupelo.Ntuple:
    """An ntuple like those of the importer, with stored values and projected fields over them."""
    rng = np.random.default_rng(5)
    counts = rng.integers(0, 5, 1000)
    muons = ak.zip(
        {name: ak.unflatten(rng.random(counts.sum()).astype("f4"), counts) for name in ["Muon_pt", "Muon_eta"]}
    )
    with tupelo.recreate("imported.root") as file:
        events = file.mkrntuple(
            "Events",
            {"run": np.arange(1000), "_collection15": muons},
            projections={
                "nMuon": "#_collection15",
                "Muon_pt": "_collection15.Muon_pt",
                "Muon_eta": "_collection15.Muon_eta",
            },
        )
        events.flush_cluster()
    opened = tupelo.open("imported.root:Events")
    assert isinstance(opened, tupelo.Ntuple)
    return opened


def test_imported_collections_are_listed_once(imported: tupelo.Ntuple) -> None:
    names = ["run", "nMuon", "Muon_pt", "Muon_eta"]
    assert imported.keys() == names == list(imported) == imported.arrays().fields == imported.arrow_schema.names
    assert len(imported) == 4
    assert [field.path for field in imported.values()] == names
    assert repr(imported) == "<tupelo.Ntuple 'Events' (4 fields, 1000 entries)>"
    assert "_collection" not in imported._repr_html_()
    assert imported.arrays("*").fields == names
    # It can be accessed by name.
    assert imported["_collection15"].array().Muon_pt.tolist() == imported.arrays().Muon_pt.tolist()
    assert "_collection15.Muon_eta" in imported
    assert imported.arrays("sum(_collection15.Muon_pt)").fields == ["sum(_collection15.Muon_pt)"]


def test_their_sizes_are_those_of_their_projections(imported: tupelo.Ntuple) -> None:
    sizes = imported._core.sizes()
    stored = {name: sizes.fields[name].stored_bytes for name in imported}
    assert min(stored.values()) > 0
    assert sum(stored.values()) == sizes.pages.stored_bytes


def test_copies_keep_the_projections(imported: tupelo.Ntuple) -> None:
    imported.copy("copied.root", cut="nMuon > 1")
    copied = tupelo.open("copied.root:Events")
    assert copied.keys() == imported.keys()
    assert copied.arrow_schema.field("Muon_pt").metadata == imported.arrow_schema.field("Muon_pt").metadata
    assert copied.arrays().tolist() == imported.arrays(cut="nMuon > 1").tolist()
    assert copied["_collection15"].array().Muon_eta.tolist() == copied["Muon_eta"].array().tolist()
    # Without some of the fields, the others are stored.
    imported.copy("some.root", fields=["run", "Muon_pt"])
    some = tupelo.open("some.root:Events")
    # With the counter of the list.
    assert some.arrays().tolist() == imported.arrays(["run", "nMuon", "Muon_pt"]).tolist()
    assert "_collection15" not in some


def test_the_command_lists_them_once(imported: tupelo.Ntuple) -> None:
    def said(*arguments: str) -> str:
        return subprocess.run([built("tupelo"), *arguments], check=True, capture_output=True, text=True).stdout

    for arguments in [("ls", "imported.root:Events"), ("head", "imported.root"), ("dump", "imported.root")]:
        assert "_collection" not in said(*arguments), arguments
    assert "Muon_pt" in said("schema", "imported.root", "--columns")
