// ROOT's side of the benchmark. root_rival.py gives it to cling, which compiles it with -O2.
#pragma once
#include <ROOT/RNTupleDescriptor.hxx>
#include <ROOT/RNTupleModel.hxx>
#include <ROOT/RNTupleReadOptions.hxx>
#include <ROOT/RNTupleReader.hxx>
#include <ROOT/RNTupleView.hxx>
#include <ROOT/RNTupleWriteOptions.hxx>
#include <ROOT/RNTupleWriter.hxx>
#include <algorithm>
#include <cmath>
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

/// Opens the file for one number.
float first(const std::string &ntuple, const std::string &file, const std::string &column) {
   auto reader = ROOT::RNTupleReader::Open(ntuple, file);
   return reader->GetDirectAccessView<float>(column)(0);
}

/// Single numbers in the order of the entries.
std::vector<float> random(ROOT::RNTupleReader &reader, const std::string &column, const std::vector<Index> &entries) {
   auto view = reader.GetDirectAccessView<float>(column);
   std::vector<float> values;
   values.reserve(entries.size());
   for (Index entry : entries) values.push_back(view(entry));
   return values;
}
inline ROOT::RNTupleReadOptions options_for(bool cluster_cache) {
   ROOT::RNTupleReadOptions options;
   if (!cluster_cache) options.SetClusterCache(ROOT::RNTupleReadOptions::EClusterCache::kOff);
   return options;
}
std::vector<float> random(const std::string &ntuple, const std::string &file, const std::string &column,
                          const std::vector<Index> &entries, bool cluster_cache) {
   return random(*ROOT::RNTupleReader::Open(ntuple, file, options_for(cluster_cache)), column, entries);
}

/// The bytes that were read for them.
Index random_bytes(const std::string &ntuple, const std::string &file, const std::string &column,
                   const std::vector<Index> &entries, bool cluster_cache) {
   auto options = options_for(cluster_cache);
   options.SetEnableMetrics(true);
   auto reader = ROOT::RNTupleReader::Open(ntuple, file, options);
   random(*reader, column, entries);
   Index bytes = 0;
   for (const char *name : {"szReadPayload", "szReadOverhead"}) {
      auto counter = reader->GetMetrics().GetCounter(std::string("RNTupleReader.RPageSourceFile.") + name);
      if (!counter) throw std::runtime_error(std::string("no metric is called ") + name);
      bytes += counter->GetValueAsInt();
   }
   return bytes;
}

/// The columns of the entries where another column has a value, which is looked at first.
std::vector<Column> cut(const std::string &ntuple, const std::string &file, const std::vector<std::string> &names,
                        const std::string &by, std::int32_t value) {
   auto reader = ROOT::RNTupleReader::Open(ntuple, file);
   const auto &desc = reader->GetDescriptor();
   auto decide = reader->GetDirectAccessView<std::int32_t>(by);
   std::vector<Column> columns(names.size());
   std::vector<std::function<void(Index)>> keep;
   std::vector<std::function<void()>> finish;
   for (std::size_t c = 0; c < names.size(); ++c) {
      auto *column = &columns[c];
      column->type = desc.GetFieldDescriptor(desc.FindFieldId(names[c])).GetTypeName();
      with_type(column->type, [&](auto zero) {
         using T = decltype(zero);
         auto view = std::make_shared<ROOT::RNTupleDirectAccessView<T>>(reader->GetDirectAccessView<T>(names[c]));
         auto kept = std::make_shared<std::vector<T>>();
         keep.push_back([=](Index i) { kept->push_back((*view)(i)); });
         finish.push_back([=] {
            column->size = column->entries = kept->size();
            column->values.reset(new std::byte[kept->size() * sizeof(T)]);
            auto *out = reinterpret_cast<T *>(column->values.get());
            std::copy(kept->begin(), kept->end(), out);
         });
      });
   }
   for (auto i : reader->GetEntryRange())
      if (decide(i) == value)
         for (auto &part : keep) part(i);
   for (auto &part : finish) part();
   return columns;
}

/// How many values of all columns are positive, entry by entry; the reader keeps what it likes in memory.
Index stream(const std::string &ntuple, const std::string &file, const std::vector<std::string> &names) {
   auto reader = ROOT::RNTupleReader::Open(ntuple, file);
   const auto &desc = reader->GetDescriptor();
   std::vector<ROOT::RNTupleDirectAccessView<double>> doubles;
   std::vector<ROOT::RNTupleDirectAccessView<std::int32_t>> ints;
   for (const auto &name : names)
      if (desc.GetFieldDescriptor(desc.FindFieldId(name)).GetTypeName() == "double")
         doubles.push_back(reader->GetDirectAccessView<double>(name));
      else
         ints.push_back(reader->GetDirectAccessView<std::int32_t>(name));
   Index positive = 0;
   for (auto i : reader->GetEntryRange()) {
      for (auto &view : doubles) positive += view(i) > 0;
      for (auto &view : ints) positive += view(i) > 0;
   }
   return positive;
}

/// Writes float columns entry by entry; values of a column stand together.
void write_floats(const std::string &ntuple, const std::string &file, Index columns, Index entries,
                  std::uintptr_t address, int compression, Index cluster_bytes) {
   const auto *data = reinterpret_cast<const float *>(address);
   auto model = ROOT::RNTupleModel::Create();
   std::vector<float *> values;
   for (Index c = 0; c < columns; ++c) values.push_back(model->MakeField<float>("f" + std::to_string(c)).get());
   ROOT::RNTupleWriteOptions options;
   options.SetCompression(compression);
   options.SetApproxZippedClusterSize(cluster_bytes);
   auto writer = ROOT::RNTupleWriter::Recreate(std::move(model), ntuple, file, options);
   for (Index i = 0; i < entries; ++i) {
      for (Index c = 0; c < columns; ++c) *values[c] = data[c * entries + i];
      writer->Fill();
   }
}

/// The mass of three kaons, as in src/analysis.rs.
constexpr double kaon_mass = 493.677, lowest = 5000, highest = 5600;
constexpr int bins = 60;
inline double mass(double x1, double y1, double z1, double x2, double y2, double z2, double x3, double y3, double z3) {
   auto energy = [](double x, double y, double z) { return std::sqrt(x * x + y * y + z * z + kaon_mass * kaon_mass); };
   const double e = energy(x1, y1, z1) + energy(x2, y2, z2) + energy(x3, y3, z3);
   const double x = x1 + x2 + x3, y = y1 + y2 + y3, z = z1 + z2 + z3;
   return std::sqrt(std::max(e * e - (x * x + y * y + z * z), 0.0));
}
struct Counts {
   std::vector<Index> values = std::vector<Index>(bins);
   void fill(double mass) {
      if (mass >= lowest && mass < highest) ++values[static_cast<int>((mass - lowest) / (highest - lowest) * bins)];
   }
};

std::vector<Index> analysis_views(const std::string &ntuple, const std::string &file) {
   auto reader = ROOT::RNTupleReader::Open(ntuple, file);
   using Doubles = ROOT::RNTupleDirectAccessView<double>;
   struct Track {
      Doubles x, y, z, k, pi;
      ROOT::RNTupleDirectAccessView<std::int32_t> muon;
      bool is_kaon(Index i) { return muon(i) == 0 && k(i) > 0.5 && pi(i) < 0.5; }
   };
   auto track = [&](const std::string &h) {
      auto get = [&](const char *member) { return reader->GetDirectAccessView<double>(h + member); };
      return Track{get("PX"),   get("PY"),    get("PZ"),
                   get("ProbK"), get("ProbPi"), reader->GetDirectAccessView<std::int32_t>(h + "isMuon")};
   };
   Track a = track("H1_"), b = track("H2_"), c = track("H3_");
   Counts counts;
   for (auto i : reader->GetEntryRange())
      if (a.is_kaon(i) && b.is_kaon(i) && c.is_kaon(i))
         counts.fill(mass(a.x(i), a.y(i), a.z(i), b.x(i), b.y(i), b.z(i), c.x(i), c.y(i), c.z(i)));
   return counts.values;
}

/// Whole clusters of each column at a time, into the same buffers.
std::vector<Index> analysis_bulk(const std::string &ntuple, const std::string &file) {
   auto reader = ROOT::RNTupleReader::Open(ntuple, file);
   std::vector<ROOT::RNTupleView<double>> doubles;
   std::vector<ROOT::RNTupleView<std::int32_t>> ints;
   for (const char *h : {"H1_", "H2_", "H3_"}) {
      for (const char *member : {"PX", "PY", "PZ", "ProbK", "ProbPi"})
         doubles.push_back(reader->GetView<double>(std::string(h) + member));
      ints.push_back(reader->GetView<std::int32_t>(std::string(h) + "isMuon"));
   }
   std::vector<decltype(doubles[0].CreateBulk())> bulks;
   for (auto &view : doubles) bulks.push_back(view.CreateBulk());
   for (auto &view : ints) bulks.push_back(view.CreateBulk());
   Counts counts;
   for (const auto &cluster : reader->GetDescriptor().GetClusterIterable()) {
      const Index n = cluster.GetNEntries();
      std::vector<const void *> at;
      for (auto &bulk : bulks) at.push_back(bulk.ReadBulk(ROOT::RNTupleLocalIndex(cluster.GetId(), 0), nullptr, n));
      auto d = [&](int track, int member) { return static_cast<const double *>(at[5 * track + member]); };
      const double *x[3], *y[3], *z[3], *k[3], *pi[3];
      const std::int32_t *muon[3];
      for (int t = 0; t < 3; ++t) {
         x[t] = d(t, 0), y[t] = d(t, 1), z[t] = d(t, 2), k[t] = d(t, 3), pi[t] = d(t, 4);
         muon[t] = static_cast<const std::int32_t *>(at[15 + t]);
      }
      for (Index i = 0; i < n; ++i) {
         auto is_kaon = [&](int t) { return muon[t][i] == 0 && k[t][i] > 0.5 && pi[t][i] < 0.5; };
         if (is_kaon(0) && is_kaon(1) && is_kaon(2))
            counts.fill(mass(x[0][i], y[0][i], z[0][i], x[1][i], y[1][i], z[1][i], x[2][i], y[2][i], z[2][i]));
      }
   }
   return counts.values;
}
} // namespace bench
