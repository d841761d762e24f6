"""ATLAS's event data model over ntuples and trees, without Athena.

A file in the format of ATLAS (DAOD_PHYSLITE, DAOD_PHYS, …) has *containers* such as ``AnalysisJets`` and stand-alone
*objects* such as ``EventInfo``. Their variables are in auxiliary stores: static ones are members of the store's class,
dynamic ones fields of their own (``AnalysisJetsAuxDyn:pt``, with a dot in trees). `open` finds them by the names and
types of fields, and reads no values before they are needed:

>>> import tupelo.xaod  # doctest: +SKIP
>>> event = tupelo.xaod.open("DAOD_PHYSLITE.root")  # doctest: +SKIP
>>> event["AnalysisJets"].arrays(["pt", "eta"])  # doctest: +SKIP
<Array [[{pt: 1.2e+05, ...}, ..., {...}], ...] type='100 * var * {pt: float32, eta: float32}'>
>>> event.arrays({"AnalysisMuons": ["pt"], "EventInfo": ["eventNumber"]})  # doctest: +SKIP
>>> event.resolve("AnalysisElectronsAuxDyn:trackParticleLinks", ["d0", "z0"])  # doctest: +SKIP
"""

from ._event import Container, Event, Variable, open

__all__ = ["Container", "Event", "Variable", "open"]
