// ATLAS's auxiliary stores as ROOT reads them: entry by entry, a view for each variable of an ntuple, a branch of a tree.
#include <ROOT/RNTupleReader.hxx>
#include <TBranch.h>
#include <TFile.h>
#include <TTree.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

/// What the loads of one store took, in nanoseconds, and what they loaded.
struct Loads {
   std::vector<std::uint64_t> times;
   std::uint64_t values = 0;
   /// Sum of the bits of all values.
   std::uint64_t bits = 0;
};

template <typename T>
std::uint64_t bits_of(const std::vector<T> &values)
{
   std::uint64_t sum = 0;
   for (const T value : values) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, &value, sizeof(value));
      sum += bits;
   }
   return sum;
}

/// A variable of a store, whatever its type.
struct Variable {
   virtual ~Variable() = default;
   virtual void load(std::uint64_t entry) = 0;
   virtual std::uint64_t count() const = 0;
   virtual std::uint64_t bits() const = 0;
};

template <typename T>
struct View : Variable {
   ROOT::RNTupleView<std::vector<T>> view;
   const std::vector<T> *values = nullptr;
   View(ROOT::RNTupleReader &reader, const std::string &name) : view(reader.GetView<std::vector<T>>(name)) {}
   void load(std::uint64_t entry) override { values = &view(entry); }
   std::uint64_t count() const override { return values->size(); }
   std::uint64_t bits() const override { return bits_of(*values); }
};

template <typename T>
struct Branch : Variable {
   std::vector<T> *values = nullptr;
   TBranch *branch = nullptr;
   Branch(TTree &tree, const std::string &name) { tree.SetBranchAddress(name.c_str(), &values, &branch); }
   ~Branch() override { delete values; }
   void load(std::uint64_t entry) override { branch->GetEntry(entry); }
   std::uint64_t count() const override { return values->size(); }
   std::uint64_t bits() const override { return bits_of(*values); }
};

template <template <typename> class Kind, typename Source>
std::unique_ptr<Variable> variable(Source &source, const std::string &name, const std::string &type)
{
   if (type == "float")
      return std::make_unique<Kind<float>>(source, name);
   if (type == "std::int32_t")
      return std::make_unique<Kind<int>>(source, name);
   if (type == "std::uint32_t")
      return std::make_unique<Kind<unsigned int>>(source, name);
   if (type == "std::uint8_t")
      return std::make_unique<Kind<unsigned char>>(source, name);
   throw std::runtime_error("no variable of type " + type);
}

using Names = std::vector<std::string>;

template <template <typename> class Kind, typename Source>
Loads load_all(Source &source, const Names &names, const Names &types, const std::vector<std::uint64_t> &warmup,
               const std::vector<std::uint64_t> &entries, bool is_compared)
{
   std::vector<std::unique_ptr<Variable>> variables;
   for (std::size_t i = 0; i < names.size(); ++i)
      variables.push_back(variable<Kind>(source, names[i], types[i]));
   for (const auto entry : warmup)
      for (auto &variable : variables)
         variable->load(entry);
   Loads loads;
   for (const auto entry : entries) {
      const auto begin = std::chrono::steady_clock::now();
      for (auto &variable : variables)
         variable->load(entry);
      const auto end = std::chrono::steady_clock::now();
      loads.times.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count());
      for (const auto &variable : variables) {
         loads.values += variable->count();
         if (is_compared)
            loads.bits += variable->bits();
      }
   }
   return loads;
}

Loads views(const std::string &path, const std::string &name, const Names &names, const Names &types,
            const std::vector<std::uint64_t> &warmup, const std::vector<std::uint64_t> &entries, bool is_compared)
{
   auto reader = ROOT::RNTupleReader::Open(name, path);
   return load_all<View>(*reader, names, types, warmup, entries, is_compared);
}

Loads branches(const std::string &path, const std::string &name, const Names &names, const Names &types,
               const std::vector<std::uint64_t> &warmup, const std::vector<std::uint64_t> &entries, bool is_compared)
{
   std::unique_ptr<TFile> file{TFile::Open(path.c_str())};
   return load_all<Branch>(*file->Get<TTree>(name.c_str()), names, types, warmup, entries, is_compared);
}

} // namespace bench
