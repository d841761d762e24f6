"""The mass spectrum of all pairs of muons with opposite charges, in CMS's open data.

    python examples/dimuon.py ../shared/data/cms_run2012_dimuon_ntuple.root:Events

Muons are jagged: Muon_pt (GeV), Muon_eta, Muon_phi, Muon_mass (GeV), Muon_charge, as many as an event has.
Awkward makes the pairs, piece by piece, so that the file may be as large as it likes.
"""

import argparse
from typing import Any

import awkward as ak
import hist
import numpy as np
from matplotlib.figure import Figure
from plotting import draw, fitted

import tupelo

MEMBERS = ("pt", "eta", "phi", "mass", "charge")
KNOWN = {"η": 0.548, "ρ,ω": 0.775, "φ": 1.019, "J/ψ": 3.097, "Υ": 9.46, "Z": 91.19}
"""What may be seen in such a spectrum, in GeV."""


def masses(muons: Any) -> Any:
    """Masses in GeV of the pairs with opposite charges, as one flat array."""
    pairs = ak.combinations(muons, 2, axis=1)
    one, two = ak.unzip(pairs[pairs["0"].charge != pairs["1"].charge])
    energies = [np.sqrt((muon.pt * np.cosh(muon.eta)) ** 2 + muon.mass**2) for muon in (one, two)]
    along = one.pt * np.sinh(one.eta) + two.pt * np.sinh(two.eta)
    across = one.pt**2 + two.pt**2 + 2 * one.pt * two.pt * np.cos(one.phi - two.phi)
    return ak.flatten(np.sqrt(np.maximum(sum(energies) ** 2 - along**2 - across, 0)))


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("file", help="FILE:NTUPLE")
parser.add_argument("--output", default="dimuon.png", help="where the picture goes")
arguments = parser.parse_args()

axis = hist.axis.Regular(60, 0.25, 300, transform=hist.axis.transform.log, label="mass of μ⁺μ⁻ (GeV)")
spectrum = hist.Hist(axis)
with tupelo.open(arguments.file) as events:
    for piece in events.iterate([f"Muon_{name}" for name in MEMBERS], progress=True):
        spectrum.fill(masses(ak.zip({name: piece[f"Muon_{name}"] for name in MEMBERS})))
    print(f"{axis.label}\n{fitted(spectrum)}")
    print(f"{events.num_entries} events, {spectrum.sum(flow=True):.0f} pairs of muons with opposite charges")

axes = Figure(figsize=(8, 5), layout="constrained").add_subplot(title="Pairs of muons in CMS open data", xscale="log")
draw(axes, spectrum, "pairs")
for name, mass in KNOWN.items():
    axes.text(mass, 0.98, name, transform=axes.get_xaxis_transform(), ha="center", va="top")
axes.figure.savefig(arguments.output, dpi=150)
