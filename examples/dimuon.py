"""Draws the mass spectrum of all pairs of muons with opposite charges, in the terminal and as a picture.

    python examples/dimuon.py ../shared/data/cms_run2012_dimuon_ntuple.root

The file holds jagged muons, as CMS's open data do: Muon_pt (GeV), Muon_eta, Muon_phi, Muon_mass (GeV), Muon_charge.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import awkward as ak
import hist
import numpy as np
from spectrum import RESONANCES, mass_axis, show

import tupelo


def masses(events: ak.Array) -> Any:
    """Invariant masses in GeV of all pairs of muons with opposite charges, as one flat array."""
    names = ("pt", "eta", "phi", "mass", "charge")
    muons = ak.zip({name: events[f"Muon_{name}"] for name in names})
    first, second = ak.unzip(ak.combinations(muons, 2))
    are_opposite = first.charge != second.charge
    first, second = first[are_opposite], second[are_opposite]

    def energy(muon: ak.Array) -> Any:
        return np.sqrt((muon.pt * np.cosh(muon.eta)) ** 2 + muon.mass**2)

    def square(component: Any) -> Any:
        return (component(first) + component(second)) ** 2

    mass2 = (
        square(energy)
        - square(lambda muon: muon.pt * np.cos(muon.phi))
        - square(lambda muon: muon.pt * np.sin(muon.phi))
        - square(lambda muon: muon.pt * np.sinh(muon.eta))
    )
    return ak.to_numpy(ak.flatten(np.sqrt(np.maximum(mass2, 0.0))))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", help="FILE or FILE:NTUPLE with CMS-like muons")
    parser.add_argument("--output", type=Path, default=Path("demo/dimuon.png"), help="where the picture goes")
    arguments = parser.parse_args()

    opened = tupelo.open(arguments.file)
    ntuple = opened["Events"] if isinstance(opened, tupelo.File) else opened
    events = ntuple.arrays("Muon_*")
    pairs = masses(events)
    histogram = hist.Hist(mass_axis("mass of μ⁺μ⁻ (GeV)"))
    histogram.fill(pairs)

    print(f"{ntuple.num_entries} events, {len(pairs)} pairs of muons with opposite charges\n")
    show(histogram, arguments.output, "Pairs of muons in CMS open data", RESONANCES, "log")
    return 0


if __name__ == "__main__":
    sys.exit(main())
