"""What ROOT or uproot finds in files that a killed writer can leave.

    crash_states.py root|uproot STATES.json FOLDER

For each state a report goes to standard output: "found" gives for every ntuple {"entries", "sums"}, the sums of its
top-level fields of type std::int64_t and double; "messages" are lines of standard error, "error" is an exception.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import uproot
from root_dump import captured_stderr, load_root, ntuple_names

# The exit status where ROOT cannot be imported.
NO_JUDGE = 3
SUMS = r"""
#include <ROOT/RNTupleReader.hxx>
#include <map>
#include <string>
namespace crash {
/// Opens an ntuple and sums the top-level fields that hold one number; the number of entries stands under "".
std::map<std::string, double> Sums(const std::string &file, const std::string &ntuple) {
   auto reader = ROOT::RNTupleReader::Open(ntuple, file);
   const auto n = reader->GetNEntries();
   std::map<std::string, double> sums{{"", double(n)}};
   auto add = [&](auto view, const std::string &name) {
      double sum = 0;
      for (auto i : reader->GetEntryRange()) sum += view(i);
      sums[name] = sum;
   };
   for (const auto &field : reader->GetDescriptor().GetTopLevelFields()) {
      const auto name = field.GetFieldName();
      if (field.GetTypeName() == "std::int64_t") add(reader->GetView<std::int64_t>(name), name);
      if (field.GetTypeName() == "double") add(reader->GetView<double>(name), name);
   }
   return sums;
}
}
"""


def by_root(root: Any, path: str) -> dict[str, Any]:
    """All ntuples of a file, read by ROOT."""
    found = {}
    for name in ntuple_names(root, path):
        sums = {str(pair.first): float(pair.second) for pair in root.crash.Sums(path, name)}
        found[name] = {"entries": int(sums.pop("")), "sums": sums}
    return found


def by_uproot(path: str) -> dict[str, Any]:
    """All ntuples of a file, read by uproot; every field is decoded."""
    found = {}
    with uproot.open(path) as file:
        for name, kind in file.classnames(cycle=False).items():
            if kind != "ROOT::RNTuple":
                continue
            ntuple = file[name]
            arrays = ntuple.arrays()
            types = {r.field_name: r.type_name for i, r in enumerate(ntuple.field_records) if r.parent_field_id == i}
            numbers = [field for field, type_name in types.items() if type_name in ("std::int64_t", "double")]
            sums = {field: float(sum(arrays[field].tolist())) for field in numbers}
            found[name] = {"entries": int(ntuple.num_entries), "sums": sums}
    return found


def main() -> int:
    """Run the command."""
    tool, listing, folder = sys.argv[1:]
    root: Any = None
    if tool == "root":
        try:
            root = load_root([])
        except ImportError as error:
            print(error, file=sys.stderr)
            return NO_JUDGE
        if not root.gInterpreter.Declare(SUMS):
            sys.exit("ROOT cannot compile the sums")
    reports = []
    for state in json.loads(Path(listing).read_text()):
        path = str(Path(folder) / state["file"])
        report: dict[str, Any] = {"found": {}, "error": None}
        with captured_stderr() as messages:
            try:
                report["found"] = by_root(root, path) if root else by_uproot(path)
            except Exception as error:  # cppyy has its own types for C++ exceptions
                report["error"] = str(error).replace("\n", " ")
        report["messages"] = messages
        reports.append(report)
    json.dump(reports, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
