"""Jets in ATLAS's PHYSLITE: how many there are in an event, and the transverse momentum of the hardest.

    python examples/physlite_jets.py ../shared/data/atlas_daod_physlite_ntuple.root

PHYSLITE has a field for each property of each container, 854 in all, with momenta in MeV. Two of them are read.
"""

import argparse
from pathlib import Path

import hist
from matplotlib.figure import Figure
from plotting import draw, fitted

import tupelo

JETS = {"pt": "`AnalysisJetsAuxDyn:pt` / 1000", "eta": "`AnalysisJetsAuxDyn:eta`"}
"""Backticks are around names with signs in them. From here on, pt is in GeV."""
LEAST_PT = 20
"""In GeV: softer ones are not counted as jets."""

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("file", help="a PHYSLITE file")
parser.add_argument("--output", default="physlite_jets.png", help="where the picture goes")
arguments = parser.parse_args()

central = f"pt > {LEAST_PT} and abs(eta) < 4.5"
with tupelo.open({arguments.file: "EventData"}, metrics=True) as events:
    multiplicity = events.hist(f"sum({central})", bins=hist.axis.Integer(0, 16, label="jets"), aliases=JETS)
    leading = events.hist(
        "max(pt)", bins=hist.axis.Regular(40, 0, 400, label="pt of the hardest jet (GeV)"), aliases=JETS
    )
    for histogram in (multiplicity, leading):
        print(f"{histogram.axes[0].label}\n{fitted(histogram)}")
    print(f"{events.num_entries} events, {leading.sum(flow=True):.0f} with jets")
    read_bytes, file_bytes = events.metrics.page_bytes, Path(arguments.file).stat().st_size
    print(f"{read_bytes / 2**10:.0f} KiB read of {file_bytes / 2**10:.0f} KiB")

figure = Figure(figsize=(11, 4.5), layout="constrained")
left, right = figure.subplots(1, 2)
draw(left, multiplicity, "events")
draw(right, leading, "events", "GeV")
figure.suptitle("Jets in ATLAS PHYSLITE")
figure.savefig(arguments.output, dpi=150)
