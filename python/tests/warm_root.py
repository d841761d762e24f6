"""ROOT for programs in forks of one process: see `fork_server.py`."""


def warm_up() -> None:
    """Loads and compiles what most programs need."""
    import ROOT

    ROOT.gROOT.SetBatch(True)
    ROOT.RDataFrame(1).Define("x", "1.0").AsNumpy(["x"])
