"""The demonstration: a B meson's mass peak from an RNTuple that Tupelo wrote and read back.

    python examples/b_mass.py                          # 2 million made-up events
    python examples/b_mass.py --file yours.root:Tree   # your own file with the columns of LHCb's B→hhh open data

Three tracks H1, H2, H3 are kaons if they are no muons (isMuon) and look like kaons (ProbK > 0.5) rather than pions
(ProbPi < 0.5). Their invariant mass shows the B± at 5279 MeV. Momenta are in MeV.
"""

import argparse
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import hist
import numpy as np
from spectrum import show

import tupelo

ROOT = Path(__file__).resolve().parents[1]
COMMAND = Path("target/release/tupelo")
"""The command, from the project's root."""
EVENTS = 2_000_000
SEED = 1
KAON_MASS = 493.677
"""In MeV; Particle Data Group."""
B_MASS = 5279.3
"""In MeV."""
LOWEST, HIGHEST, BINS = 5000.0, 5600.0, 60
"""What is drawn, in MeV."""
STEP = "64 MB"
"""What is read at once."""
COLUMNS = [f"H{h}_{name}" for h in (1, 2, 3) for name in ("PX", "PY", "PZ", "ProbK", "ProbPi", "isMuon")]


def invariant_mass(momenta: Any) -> Any:
    """Invariant masses in MeV of kaons with momenta of shape (3 tracks, 3 components, n events)."""
    energies = np.sqrt((momenta**2).sum(axis=1) + KAON_MASS**2).sum(axis=0)
    total = momenta.sum(axis=0)
    return np.sqrt(np.maximum(energies**2 - (total**2).sum(axis=0), 0.0))


def selected_masses(events: dict[str, Any]) -> Any:
    """Masses of the events in which all three tracks are kaons."""
    are_kaons = np.ones(len(events["H1_PX"]), dtype=bool)
    for h in (1, 2, 3):
        are_kaons &= (events[f"H{h}_isMuon"] == 0) & (events[f"H{h}_ProbK"] > 0.5) & (events[f"H{h}_ProbPi"] < 0.5)
    return invariant_mass(np.array([[events[f"H{h}_{p}"][are_kaons] for p in ("PX", "PY", "PZ")] for h in (1, 2, 3)]))


def run(commands: list[str], *command: object) -> None:
    """Runs the `tupelo` command, says so, and remembers it."""
    words = [str(COMMAND), *map(str, command)]
    commands.append(shlex.join(words))
    print(f"\n$ {commands[-1]}", flush=True)
    status = subprocess.run([str(ROOT / COMMAND), *words[1:]], check=False).returncode
    if status:
        sys.exit(status)  # the command has said why


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--events", type=int, default=EVENTS, help="how many events to make up (default %(default)s)")
    parser.add_argument("--seed", type=int, default=SEED, help="where the random numbers start (default %(default)s)")
    parser.add_argument("--file", help="read this FILE or FILE:NTUPLE instead of making up events")
    parser.add_argument(
        "--output", type=Path, default=Path("demo"), help="folder of what is made (default %(default)s)"
    )
    arguments = parser.parse_args()
    folder: Path = arguments.output
    folder.mkdir(parents=True, exist_ok=True)

    commands: list[str] = []
    location = arguments.file
    if (ROOT / COMMAND).exists():
        if location is None:
            location = str(folder / "b2hhh.root")
            sizes = ["--events", arguments.events, "--seed", arguments.seed]
            run(commands, "generate", "b2hhh", "--force", *sizes, location)
        run(commands, "ls", location)
        run(commands, "schema", location)
    elif location is None:
        print(f"{COMMAND} is not there to make up events: run `make build` first, or give --file", file=sys.stderr)
        return 1
    else:
        print(f"{COMMAND} is not there, so the file is not listed here (make build)")

    opened = tupelo.open(location)
    ntuple = only(opened) if isinstance(opened, tupelo.File) else opened
    histogram = hist.Hist(hist.axis.Regular(BINS, LOWEST, HIGHEST, label="mass of KKK (MeV)"))
    kept = read_bytes = 0
    reading = 0.0
    begin = time.perf_counter()
    pieces = ntuple.iterate(COLUMNS, step_size=STEP, library="np")
    while True:
        before = time.perf_counter()
        events = next(pieces, None)
        reading += time.perf_counter() - before
        if events is None:
            break
        read_bytes += sum(column.nbytes for column in events.values())
        masses = selected_masses(events)
        kept += len(masses)
        histogram.fill(masses)
    whole = time.perf_counter() - begin

    print(f"\nmass of three kaons, {LOWEST:.0f} to {HIGHEST:.0f} MeV\n")
    show(histogram, folder / "b_mass.png", "B± → K± K± K∓", {"B±": B_MASS})
    megabytes = read_bytes / 1e6
    top = len(ntuple.keys(recursive=False))
    report = (
        f"{ntuple.num_entries} events, {kept} with three kaons, {histogram.sum():.0f} of them in the picture\n"
        f"read {len(COLUMNS)} of {top} columns, {megabytes:.1f} MB uncompressed: "
        f"{megabytes / reading:.0f} MB/s read, decompressed and decoded; {megabytes / whole:.0f} MB/s with the analysis"
    )
    print(f"\n{report}")
    script = shlex.join(["python", "examples/b_mass.py", *sys.argv[1:]])
    text = ["From the project's root, after `make build`:", "", f"    {script}", "", "which runs", ""]
    text += [f"    {command}" for command in commands] or ["    no other command"]
    text += ["", "and reads and draws by itself. It said:", "", *(f"    {line}" for line in report.splitlines()), ""]
    (folder / "README.txt").write_text("\n".join(text))
    print(f"saved {folder / 'README.txt'}")
    return 0


def only(file: tupelo.File) -> tupelo.Ntuple:
    """The only ntuple of a file."""
    names = file.keys()
    if len(names) != 1:
        sys.exit(f"{file.file_path} holds {len(names)} ntuples ({', '.join(names)}); name one as FILE:NAME")
    return file[names[0]]


if __name__ == "__main__":
    try:
        sys.exit(main())
    except tupelo.Error as error:
        sys.exit(f"error: {error}")
