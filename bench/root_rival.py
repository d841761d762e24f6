"""ROOT as a contestant: C++ that cling compiles with -O2, called through PyROOT."""

from __future__ import annotations

import ctypes
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

CODE = r"""
#include <ROOT/RNTupleDescriptor.hxx>
#include <ROOT/RNTupleModel.hxx>
#include <ROOT/RNTupleReader.hxx>
#include <ROOT/RNTupleView.hxx>
#include <ROOT/RNTupleWriteOptions.hxx>
#include <ROOT/RNTupleWriter.hxx>
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {
using Index = std::uint64_t;
/// Reads entries a to b of the cluster whose first entry is `first`.
using Part = std::function<void(ROOT::DescriptorId_t cluster, Index first, Index a, Index b)>;

/// Values that were read; for a jagged column all items and the ends of the entries, after a leading zero.
struct Column {
   std::unique_ptr<std::byte[]> values;
   std::unique_ptr<Index[]> ends;
   Index size = 0, entries = 0;
   std::string type;
   std::uintptr_t values_address() const { return reinterpret_cast<std::uintptr_t>(values.get()); }
   std::uintptr_t ends_address() const { return reinterpret_cast<std::uintptr_t>(ends.get()); }
};

/// Calls f<T> for the type of that name.
template <class F> auto with_type(const std::string &type, F &&f) {
   if (type == "double") return f(double{});
   if (type == "float") return f(float{});
   if (type == "std::int32_t") return f(std::int32_t{});
   if (type == "bool") return f(bool{});
   throw std::runtime_error("no such type: " + type);
}

template <class T> Part flat(ROOT::RNTupleReader &reader, const std::string &name, T *out, Index start, bool bulk) {
   if (bulk) {
      auto view = std::make_shared<ROOT::RNTupleView<T>>(reader.GetView<T>(name));
      return [=](ROOT::DescriptorId_t cluster, Index first, Index a, Index b) {
         auto values = view->CreateBulk();
         values.AdoptBuffer(out + (a - start), b - a);
         values.ReadBulk(ROOT::RNTupleLocalIndex(cluster, a - first), nullptr, b - a);
      };
   }
   auto view = std::make_shared<ROOT::RNTupleDirectAccessView<T>>(reader.GetDirectAccessView<T>(name));
   return [=](ROOT::DescriptorId_t, Index, Index a, Index b) {
      auto &get = *view;
      for (Index i = a; i < b; ++i) out[i - start] = get(i);
   };
}

/// All entries.
template <class T> Part jagged(ROOT::RNTupleReader &reader, const std::string &name, T *out, Index *ends, bool bulk) {
   auto filled = std::make_shared<Index>(0);
   if (bulk) {
      using Size = ROOT::RNTupleCardinality<Index>;
      auto sizes = std::make_shared<ROOT::RNTupleView<Size>>(reader.GetView<Size>(name));
      auto view = std::make_shared<ROOT::RNTupleView<T>>(reader.GetView<T>(name + "._0"));
      return [=](ROOT::DescriptorId_t cluster, Index, Index a, Index b) {
         auto bulk_sizes = sizes->CreateBulk();
         auto counts = static_cast<Size *>(bulk_sizes.ReadBulk(ROOT::RNTupleLocalIndex(cluster, 0), nullptr, b - a));
         Index end = *filled;
         for (Index i = a; i < b; ++i) ends[i + 1] = end += counts[i - a];
         const Index n = end - *filled;
         auto values = view->CreateBulk();
         values.AdoptBuffer(out + *filled, n);
         if (n) values.ReadBulk(ROOT::RNTupleLocalIndex(cluster, 0), nullptr, n);
         *filled = end;
      };
   }
   auto view = std::make_shared<ROOT::RNTupleView<std::vector<T>>>(reader.GetView<std::vector<T>>(name));
   return [=](ROOT::DescriptorId_t, Index, Index a, Index b) {
      auto &get = *view;
      Index end = *filled;
      for (Index i = a; i < b; ++i) {
         const auto &list = get(i);
         std::copy(list.begin(), list.end(), out + end);
         ends[i + 1] = end += list.size();
      }
      *filled = end;
   };
}

/// Reads entries start to stop (0: all) of the columns, cluster by cluster, by views or into place by bulks.
std::vector<Column> read(const std::string &ntuple, const std::string &file, const std::vector<std::string> &names,
                         Index start, Index stop, bool bulk) {
   auto reader = ROOT::RNTupleReader::Open(ntuple, file);
   const auto &desc = reader->GetDescriptor();
   if (stop == 0) stop = reader->GetNEntries();
   const std::string list = "std::vector<";
   std::vector<Column> columns(names.size());
   std::vector<Part> parts;
   for (std::size_t c = 0; c < names.size(); ++c) {
      auto &column = columns[c];
      const auto field = desc.FindFieldId(names[c]);
      const auto &type = desc.GetFieldDescriptor(field).GetTypeName();
      column.entries = stop - start;
      const bool is_list = type.compare(0, list.size(), list) == 0;
      column.type = is_list ? type.substr(list.size(), type.size() - list.size() - 1) : type;
      parts.push_back(with_type(column.type, [&](auto value) {
         using T = decltype(value);
         if (!is_list) {
            column.size = column.entries;
            column.values.reset(new std::byte[column.size * sizeof(T)]);
            return flat(*reader, names[c], reinterpret_cast<T *>(column.values.get()), start, bulk);
         }
         if (start != 0 || stop != reader->GetNEntries()) throw std::runtime_error("ranges are for flat columns");
         const auto items = desc.FindPhysicalColumnId(desc.FindFieldId("_0", field), 0, 0);
         column.size = desc.GetNElements(items);
         column.values.reset(new std::byte[column.size * sizeof(T)]);
         column.ends.reset(new Index[stop + 1]);
         column.ends[0] = 0;
         return jagged(*reader, names[c], reinterpret_cast<T *>(column.values.get()), column.ends.get(), bulk);
      }));
   }
   for (const auto &cluster : desc.GetClusterIterable()) {
      const Index first = cluster.GetFirstEntryIndex();
      const Index a = std::max(start, first), b = std::min(stop, first + cluster.GetNEntries());
      if (a < b)
         for (auto &part : parts) part(cluster.GetId(), first, a, b);
   }
   return columns;
}

/// Writes flat columns of n entries, given by name, type (double or std::int32_t) and address.
void write(const std::string &ntuple, const std::string &file, const std::vector<std::string> &names,
           const std::vector<std::string> &types, const std::vector<std::uintptr_t> &addresses, Index n,
           int compression) {
   auto model = ROOT::RNTupleModel::Create();
   std::vector<std::pair<double *, const double *>> doubles;
   std::vector<std::pair<std::int32_t *, const std::int32_t *>> ints;
   for (std::size_t c = 0; c < names.size(); ++c) {
      if (types[c] == "double")
         doubles.emplace_back(model->MakeField<double>(names[c]).get(), reinterpret_cast<double *>(addresses[c]));
      else if (types[c] == "std::int32_t")
         ints.emplace_back(model->MakeField<std::int32_t>(names[c]).get(),
                           reinterpret_cast<std::int32_t *>(addresses[c]));
      else
         throw std::runtime_error("no such type: " + types[c]);
   }
   ROOT::RNTupleWriteOptions options;
   options.SetCompression(compression);
   auto writer = ROOT::RNTupleWriter::Recreate(std::move(model), ntuple, file, options);
   for (Index i = 0; i < n; ++i) {
      for (auto &[value, from] : doubles) *value = from[i];
      for (auto &[value, from] : ints) *value = from[i];
      writer->Fill();
   }
}

std::vector<std::string> names(const std::string &ntuple, const std::string &file) {
   auto reader = ROOT::RNTupleReader::Open(ntuple, file);
   std::vector<std::string> all;
   for (const auto &field : reader->GetDescriptor().GetTopLevelFields()) all.push_back(field.GetFieldName());
   return all;
}
} // namespace bench
"""

DTYPES = {"double": np.float64, "float": np.float32, "std::int32_t": np.int32, "bool": np.bool_}
COMPRESSION = {"none": 0, "zstd": 505, "lz4": 404}


class Root:
    """RNTupleReader and RNTupleWriter. ``bulk`` reads whole clusters into place instead of going through views."""

    suffix = "root"
    package = "ROOT"

    def __init__(self, threads: int, bulk: bool = False) -> None:
        os.environ["EXTRA_CLING_ARGS"] = "-O2"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import ROOT
        self.bulk = bulk
        ROOT.gROOT.SetBatch(True)
        ROOT.gErrorIgnoreLevel = ROOT.kError
        if not ROOT.gInterpreter.Declare(CODE):
            raise RuntimeError("ROOT cannot compile the C++ of the benchmark")
        if threads > 1:
            ROOT.EnableImplicitMT(threads)
        self.version = ROOT.gROOT.GetVersion()
        self.root = ROOT.bench
        self.strings = ROOT.std.vector["std::string"]
        self.addresses = ROOT.std.vector["std::uintptr_t"]

    def read(self, path: Path, ntuple: str, columns: list[str], start: int | None, stop: int | None) -> Any:
        names = self.strings(columns)
        return names, self.root.read(ntuple, str(path), names, start or 0, stop or 0, self.bulk)

    def answer(self, result: Any) -> dict[str, tuple[np.ndarray, ...]]:
        answer: dict[str, tuple[np.ndarray, ...]] = {}
        for name, column in zip(*result, strict=True):
            values = _view(column.values_address(), DTYPES[str(column.type)], column.size)
            if ends := column.ends_address():
                answer[str(name)] = _view(ends, np.uint64, column.entries + 1), values
            else:
                answer[str(name)] = (values,)
        return answer

    def write(self, path: Path, columns: dict[str, tuple[np.ndarray, ...]], codec: str) -> None:
        cpp_names = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
        arrays = [values for (values,) in columns.values()]
        self.root.write(
            "DecayTree",
            str(path),
            self.strings(list(columns)),
            self.strings([cpp_names[array.dtype] for array in arrays]),
            self.addresses([array.ctypes.data for array in arrays]),
            len(arrays[0]),
            COMPRESSION[codec],
        )

    def names(self, path: Path, ntuple: str) -> list[str]:
        return [str(name) for name in self.root.names(ntuple, str(path))]


def _view(address: int, dtype: type[np.generic], size: int) -> np.ndarray:
    """An array over memory of C++."""
    if size == 0:
        return np.empty(0, dtype)
    contents = (ctypes.c_byte * (size * np.dtype(dtype).itemsize)).from_address(address)
    return np.ctypeslib.as_array(contents).view(dtype)
