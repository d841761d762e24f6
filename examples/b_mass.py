"""The mass of B mesons that decay to three kaons: LHCb's analysis of its open data, or of made-up events.

    target/release/tupelo-generate b2hhh --events 2000000 b2hhh.root
    python examples/b_mass.py b2hhh.root

The tracks H1, H2, H3 are kaons if they are no muons (isMuon) and look like kaons (ProbK) rather than pions (ProbPi).
Their invariant mass shows the B± at 5279 MeV. Momenta are in MeV.
"""

import argparse
import time

import hist
import numpy as np
from matplotlib.figure import Figure
from plotting import draw, fitted

import tupelo

KAON_MASS = 493.677
"""In MeV, by the Particle Data Group."""
COLUMNS = [f"H{h}_{name}" for h in (1, 2, 3) for name in ("PX", "PY", "PZ", "ProbK", "ProbPi", "isMuon")]

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("file", help="FILE or FILE:NTUPLE")
parser.add_argument("--output", default="b_mass.png", help="where the picture goes")
parser.add_argument("--label", default="", help="what the data are, for the picture: Simulation")
arguments = parser.parse_args()
opened = tupelo.open(arguments.file)
ntuple = next(iter(opened.values())) if isinstance(opened, tupelo.File) else opened

histogram = hist.Hist(hist.axis.Regular(60, 5000, 5600, label="mass of KKK (MeV)"))
begin, column_bytes = time.perf_counter(), 0
for events in ntuple.iterate(COLUMNS, step_size="64 MiB", library="np", progress=True):
    column_bytes += sum(column.nbytes for column in events.values())
    kaons = np.all([events[f"H{h}_isMuon"] == 0 for h in (1, 2, 3)], axis=0)
    for h in (1, 2, 3):
        kaons &= (events[f"H{h}_ProbK"] > 0.5) & (events[f"H{h}_ProbPi"] < 0.5)
    momenta = np.array([[events[f"H{h}_P{axis}"][kaons] for axis in "XYZ"] for h in (1, 2, 3)])
    energy = np.sqrt((momenta**2).sum(axis=1) + KAON_MASS**2).sum(axis=0)
    histogram.fill(np.sqrt(np.maximum(energy**2 - (momenta.sum(axis=0) ** 2).sum(axis=0), 0)))
seconds = time.perf_counter() - begin

print(f"{histogram.axes[0].label}\n{fitted(histogram)}")
print(f"{ntuple.num_entries} events, {histogram.sum(flow=True):.0f} with three kaons")
print(f"{len(COLUMNS)} of {len(ntuple.keys(recursive=False))} columns read: ", end="")
print(f"{column_bytes / 2**20:.1f} MiB, {column_bytes / 2**20 / seconds:.0f} MiB/s with the analysis")

axes = Figure(figsize=(8, 5), layout="constrained").add_subplot(title="B± → K± K± K∓")
draw(axes, histogram, "events", "MeV", arguments.label)
axes.figure.savefig(arguments.output, dpi=150)
