"""Draws the mass spectrum of events with two muons of opposite charges, in the terminal and as a picture.

    python examples/spectrum.py ../shared/data/cms_run2012_dimuon_ntuple.root:Events

Nothing but the histogram is held: the file may be as large as it likes. It holds jagged muons, as CMS's open data do:
Muon_pt (GeV), Muon_eta, Muon_phi, Muon_charge. `show` draws any histogram, for the other examples too.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hist

import tupelo

TWO_MUONS = "len(Muon_pt) == 2 and Muon_charge[0] != Muon_charge[1]"
MASS = "sqrt(2 * Muon_pt[0] * Muon_pt[1] * (cosh(Muon_eta[0] - Muon_eta[1]) - cos(Muon_phi[0] - Muon_phi[1])))"
"""In GeV, of two muons that weigh nothing."""
RESONANCES = {"η": 0.548, "ρ,ω": 0.775, "φ": 1.019, "J/ψ": 3.097, "ψ'": 3.686, "Υ": 9.46, "Z": 91.19}
"""What may be seen in such a spectrum, in GeV."""


def mass_axis(label: str) -> Any:
    """Masses in GeV, on a logarithmic scale."""
    return hist.axis.Regular(60, 0.25, 300, transform=hist.axis.transform.log, label=label)


def show(histogram: Any, path: Path, title: str, marks: Mapping[str, float], scale: str = "linear") -> None:
    """Prints a histogram, and saves a picture with what is known to be there."""
    import mplhep
    from matplotlib.figure import Figure

    print(histogram)
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    mplhep.histplot(histogram, ax=axes, histtype="fill")
    axes.set(title=title, ylabel="entries", xscale=scale)
    for name, value in marks.items():
        axes.axvline(value, color="grey", linewidth=0.5)
        axes.text(value, 0.98, name, transform=axes.get_xaxis_transform(), ha="right", va="top", rotation=90)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    print(f"\nsaved {path}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", help="FILE:NTUPLE with CMS-like muons")
    parser.add_argument("--output", type=Path, default=Path("demo/spectrum.png"), help="where the picture goes")
    arguments = parser.parse_args()
    with tupelo.open(arguments.file) as ntuple:
        spectrum = ntuple.hist(MASS, bins=mass_axis("mass of μ⁺μ⁻ (GeV)"), cut=TWO_MUONS, progress=True)
    show(spectrum, arguments.output, "Events with two muons", RESONANCES, "log")
