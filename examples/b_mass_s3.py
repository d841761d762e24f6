"""The mass of B mesons that decay to three kaons, from all files in a folder of an S3 bucket.

    tupelo copy b2hhh.root s3://BUCKET/runs/run1.root
    python examples/b_mass_s3.py 's3://BUCKET/runs/*.root:DecayTree' --cache /tmp/cache

Credentials and endpoint come from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION,
AWS_ENDPOINT_URL) or the profile in ~/.aws. The second run reads from the cache. See b_mass.py for the selection.
"""

import argparse
import time

import hist
import numpy as np
from plotting import fitted

import tupelo

KAON_MASS = 493.677
"""In MeV, by the Particle Data Group."""
MOMENTA = [f"H{h}_P{axis}" for axis in "XYZ" for h in (1, 2, 3)]
KAONS = " and ".join(f"H{h}_isMuon == 0 and H{h}_ProbK > 0.5 and H{h}_ProbPi < 0.5" for h in (1, 2, 3))

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("files", help="URL:NTUPLE, with wildcards")
parser.add_argument("--anonymous", action="store_true", help="for public buckets: send no credentials")
parser.add_argument("--cache", help="a directory that keeps what was read")
arguments = parser.parse_args()
options = {"anonymous": True} if arguments.anonymous else None

begin = time.perf_counter()
events = tupelo.concatenate(
    arguments.files, MOMENTA, cut=KAONS, library="np", storage_options=options, cache=arguments.cache
)
momenta = np.array([events[name] for name in MOMENTA]).reshape(3, 3, -1)
energy = np.sqrt((momenta**2).sum(axis=0) + KAON_MASS**2).sum(axis=0)
mass = np.sqrt(np.maximum(energy**2 - (momenta.sum(axis=1) ** 2).sum(axis=0), 0))
histogram = hist.Hist(hist.axis.Regular(60, 5000, 5600, label="mass of KKK (MeV)")).fill(mass)
print(f"{histogram.axes[0].label}\n{fitted(histogram)}")
print(f"{len(mass)} events with three kaons, {time.perf_counter() - begin:.1f} s")
