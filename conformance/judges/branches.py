"""Branches as uproot reads them, and whether two readers agree on the values."""

from __future__ import annotations

import math
from typing import Any

import awkward as ak
import numpy as np
import uproot
from misread_lengths import misread_lengths_fail

import tupelo

NOT_FOR_UPROOT_TYPES = {"IOVMetaDataContainer_p1": "takes more than 20 GB of memory for one entry"}
"""Types of branches that uproot does not read, with the reason."""
PLAIN = {int, float, bool, str}


def plain(value: Any) -> Any:
    """Lists, numbers, texts and dictionaries, with the members of base classes beside those of the class."""
    if isinstance(value, dict):
        members: dict[str, Any] = {}
        for name, member in value.items():
            if name.startswith(":_"):
                base = plain(member)
                members |= base if isinstance(base, dict) else {name: base}
            elif not name.startswith("@"):
                members[name] = plain(member)
        return members
    if isinstance(value, uproot.containers.STLMap):
        return [[plain(key), plain(item)] for key, item in zip(value.keys(), value.values(), strict=True)]
    if isinstance(value, tupelo.Instance):
        return {name: plain(value[name]) for name in value}
    if isinstance(value, tupelo.Histogram):
        return [plain(value.values(flow=True)), plain(value.variances(flow=True))]
    if isinstance(value, uproot.behaviors.TH1.Histogram):
        return [plain(value.values(flow=True)), plain(value.variances(flow=True))]
    if isinstance(value, uproot.Model):
        members = {name: plain(member) for name, member in value.members.items() if not name.startswith("@")}
        for base in value.bases:
            inherited = plain(base)
            members |= inherited if isinstance(inherited, dict) else {}
        return members
    if isinstance(value, bytes):
        return value.decode("utf8", "surrogateescape")
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return value.tolist()
    if isinstance(value, list | tuple | np.ndarray | uproot.containers.STLVector | uproot.containers.STLSet):
        items = list(value)
        # Most lists are of numbers, and some have millions: only what must change is visited.
        return items if set(map(type, items)) <= PLAIN else [plain(item) for item in items]
    return value


def same(ours: Any, theirs: Any) -> bool:
    """Equality of plain values. Pairs of maps are dictionaries in one of them and lists in the other."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return set(theirs) <= set(ours) and all(same(ours[name], theirs[name]) for name in theirs)
    if isinstance(ours, dict) and isinstance(theirs, list):
        return same(list(ours.values()), theirs)
    if isinstance(ours, list) and isinstance(theirs, list):
        # What is equal is the same. It is found sooner, except where something is not a number.
        return ours == theirs or (len(ours) == len(theirs) and all(map(same, ours, theirs)))
    if isinstance(ours, float) and isinstance(theirs, float) and math.isnan(ours):
        return math.isnan(theirs)
    return bool(ours == theirs)


def equal(ours: Any, theirs: Any) -> bool:
    """Whether arrays have the same values."""
    if isinstance(ours, ak.Array) and isinstance(theirs, ak.Array):
        try:
            if ak.array_equal(ours, theirs, equal_nan=True, dtype_exact=False, check_parameters=False):
                return True
        except (TypeError, ValueError):
            pass
    return same(plain(ours.tolist()), plain(theirs.tolist()))


def read_by_uproot(branch: Any) -> Any:
    """The values, or None where uproot cannot read the branch."""
    if branch.typename in NOT_FOR_UPROOT_TYPES:
        return None
    for library in ("ak", "np"):
        try:
            with misread_lengths_fail():
                return branch.array(library=library)
        except Exception as error:
            failed = error
    assert failed is not None
    return None
