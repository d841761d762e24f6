// ROOT writes one small file per case; compiled by cling from write_all.py. The expected values stand in cases.py.
// Every function is called as case(path, compression); its name is the name of the case with "/" as "_".
#pragma once
#include <ROOT/RField.hxx>
#include <ROOT/RNTupleModel.hxx>
#include <ROOT/RNTupleWriteOptions.hxx>
#include <ROOT/RNTupleWriter.hxx>
#include <ROOT/RVec.hxx>
#include <TDirectory.h>

#include <array>
#include <atomic>
#include <bitset>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

namespace cases {

using ROOT::RFieldBase;
using ROOT::RNTupleModel;
using ROOT::RNTupleWriter;
using Type = ROOT::ENTupleColumnType;
using Columns = RFieldBase::RColumnRepresentations::Selection_t;
using Text = const std::string &;

/// A field made by type name, which spares cling the instantiation of RField<T>.
template <typename T>
std::unique_ptr<RFieldBase> MakeField(Text name, const Columns &columns = {})
{
   auto field = RFieldBase::Create(name, ROOT::Internal::GetRenormalizedTypeName(typeid(T))).Unwrap();
   if (!columns.empty())
      field->SetColumnRepresentatives(columns);
   return field;
}

/// One ntuple "ntpl" in a file of its own.
struct Ntuple {
   ROOT::RNTupleWriteOptions fOptions;
   std::unique_ptr<RNTupleModel> fModel = RNTupleModel::Create();
   std::unique_ptr<RNTupleWriter> fWriter;

   explicit Ntuple(int compression) { fOptions.SetCompression(compression); }

   template <typename T>
   std::shared_ptr<T> Add(std::unique_ptr<RFieldBase> field)
   {
      const std::string name = field->GetFieldName();
      fModel->AddField(std::move(field));
      return fModel->GetDefaultEntry().GetPtr<T>(name);
   }
   template <typename T>
   std::shared_ptr<T> Add(Text name, const Columns &columns = {})
   {
      return Add<T>(MakeField<T>(name, columns));
   }
   void Project(std::unique_ptr<RFieldBase> field, std::map<std::string, std::string> sources)
   {
      fModel->AddProjectedField(std::move(field), [=](const std::string &name) { return sources.at(name); }).ThrowOnError();
   }
   void Open(Text path) { fWriter = RNTupleWriter::Recreate(std::move(fModel), "ntpl", path, fOptions); }
   void Append(TDirectory &directory, Text name = "ntpl")
   {
      fWriter = RNTupleWriter::Append(std::move(fModel), name, directory, fOptions);
   }
   void Fill() { fWriter->Fill(); }
};

const std::array<std::pair<const char *, Type>, 4> kIndexTypes = {{{"Index32", Type::kIndex32},
                                                                   {"Index64", Type::kIndex64},
                                                                   {"SplitIndex32", Type::kSplitIndex32},
                                                                   {"SplitIndex64", Type::kSplitIndex64}}};

/// Four fields of one type, one for each type of index column; `inner` finds a second field to set.
template <typename T>
void WriteIndexed(Text path, int compression, const std::vector<std::array<T, 4>> &entries,
                  RFieldBase *(*inner)(RFieldBase &) = nullptr)
{
   Ntuple ntuple(compression);
   std::vector<std::shared_ptr<T>> values;
   for (const auto &[name, type] : kIndexTypes) {
      Columns columns{{type}};
      if constexpr (std::is_same_v<T, std::string>)
         columns[0].push_back(Type::kChar);
      auto field = MakeField<T>(name, columns);
      if (inner)
         inner(*field)->SetColumnRepresentatives(columns);
      values.push_back(ntuple.Add<T>(std::move(field)));
   }
   ntuple.Open(path);
   for (const auto &entry : entries) {
      for (std::size_t i = 0; i < 4; ++i)
         *values[i] = entry[i];
      ntuple.Fill();
   }
}

inline RFieldBase *Item(RFieldBase &field)
{
   return field.GetMutableSubfields()[0];
}
inline RFieldBase *MappedValue(RFieldBase &field)
{
   return field.GetMutableSubfields()[0]->GetMutableSubfields()[1];
}

// ---- types -------------------------------------------------------------------------------------------------------

template <typename T>
void PutAll(const std::vector<std::shared_ptr<T>> &fields, T value)
{
   for (const auto &field : fields)
      *field = value;
}

inline void types_fundamental_integer(Text path, int compression)
{
   Ntuple n(compression);
   using I8 = std::int8_t;
   using U8 = std::uint8_t;
   using I16 = std::int16_t;
   using U16 = std::uint16_t;
   using I32 = std::int32_t;
   using U32 = std::uint32_t;
   using I64 = std::int64_t;
   using U64 = std::uint64_t;
   std::vector<std::shared_ptr<I8>> i8;
   std::vector<std::shared_ptr<U8>> u8;
   std::vector<std::shared_ptr<I16>> i16;
   std::vector<std::shared_ptr<U16>> u16;
   std::vector<std::shared_ptr<I32>> i32;
   std::vector<std::shared_ptr<U32>> u32;
   std::vector<std::shared_ptr<I64>> i64;
   std::vector<std::shared_ptr<U64>> u64;
   i8.push_back(n.Add<I8>("Int8", {{Type::kInt8}}));
   u8.push_back(n.Add<U8>("UInt8", {{Type::kUInt8}}));
   i16.push_back(n.Add<I16>("Int16", {{Type::kInt16}}));
   u16.push_back(n.Add<U16>("UInt16", {{Type::kUInt16}}));
   i32.push_back(n.Add<I32>("Int32", {{Type::kInt32}}));
   u32.push_back(n.Add<U32>("UInt32", {{Type::kUInt32}}));
   i64.push_back(n.Add<I64>("Int64", {{Type::kInt64}}));
   u64.push_back(n.Add<U64>("UInt64", {{Type::kUInt64}}));
   i16.push_back(n.Add<I16>("SplitInt16", {{Type::kSplitInt16}}));
   u16.push_back(n.Add<U16>("SplitUInt16", {{Type::kSplitUInt16}}));
   i32.push_back(n.Add<I32>("SplitInt32", {{Type::kSplitInt32}}));
   u32.push_back(n.Add<U32>("SplitUInt32", {{Type::kSplitUInt32}}));
   i64.push_back(n.Add<I64>("SplitInt64", {{Type::kSplitInt64}}));
   u64.push_back(n.Add<U64>("SplitUInt64", {{Type::kSplitUInt64}}));
   n.Open(path);
   *i8[0] = 1, *u8[0] = 2, *i16[0] = 3, *u16[0] = 4, *i32[0] = 5, *u32[0] = 6, *i64[0] = 7, *u64[0] = 8;
   *i16[1] = 9, *u16[1] = 10, *i32[1] = 11, *u32[1] = 12, *i64[1] = 13, *u64[1] = 14;
   n.Fill();
   PutAll<U8>(u8, 0x12), PutAll<U16>(u16, 0x1234), PutAll<U32>(u32, 0x12345678), PutAll<U64>(u64, 0x123456780112358c);
   PutAll<I8>(i8, 0x12), PutAll<I16>(i16, 0x1234), PutAll<I32>(i32, 0x12345678), PutAll<I64>(i64, 0x123456780112358c);
   n.Fill();
   PutAll<I8>(i8, -110), PutAll<I16>(i16, -28108), PutAll<I32>(i32, -1842063752), PutAll<I64>(i64, -7911603571969084020);
   n.Fill();
   PutAll<U8>(u8, 0), PutAll<U16>(u16, 0), PutAll<U32>(u32, 0), PutAll<U64>(u64, 0);
   PutAll(i8, std::numeric_limits<I8>::min()), PutAll(i16, std::numeric_limits<I16>::min());
   PutAll(i32, std::numeric_limits<I32>::min()), PutAll(i64, std::numeric_limits<I64>::min());
   n.Fill();
   PutAll(u8, std::numeric_limits<U8>::max()), PutAll(u16, std::numeric_limits<U16>::max());
   PutAll(u32, std::numeric_limits<U32>::max()), PutAll(u64, std::numeric_limits<U64>::max());
   PutAll(i8, std::numeric_limits<I8>::max()), PutAll(i16, std::numeric_limits<I16>::max());
   PutAll(i32, std::numeric_limits<I32>::max()), PutAll(i64, std::numeric_limits<I64>::max());
   n.Fill();
}

inline void types_fundamental_misc(Text path, int compression)
{
   Ntuple n(compression);
   auto bit = n.Add<bool>("Bit", {{Type::kBit}});
   auto byte = n.Add<std::byte>("Byte", {{Type::kByte}});
   auto ch = n.Add<char>("Char", {{Type::kChar}});
   n.Open(path);
   for (auto [a, b, c] : {std::array<int, 3>{1, 2, 3}, {0, 0, 0}, {1, 255, 127}, {0, 128, -128}, {1, 1, -1}}) {
      *bit = a, *byte = std::byte(b), *ch = static_cast<char>(c);
      n.Fill();
   }
}

inline void types_fundamental_real(Text path, int compression)
{
   Ntuple n(compression);
   std::vector<std::shared_ptr<float>> floats = {n.Add<float>("FloatReal16", {{Type::kReal16}}),
                                                 n.Add<float>("FloatReal32", {{Type::kReal32}})};
   std::vector<std::shared_ptr<double>> doubles = {n.Add<double>("DoubleReal16", {{Type::kReal16}}),
                                                   n.Add<double>("DoubleReal32", {{Type::kReal32}}),
                                                   n.Add<double>("DoubleReal64", {{Type::kReal64}})};
   floats.push_back(n.Add<float>("FloatSplitReal32", {{Type::kSplitReal32}}));
   doubles.push_back(n.Add<double>("DoubleSplitReal32", {{Type::kSplitReal32}}));
   doubles.push_back(n.Add<double>("DoubleSplitReal64", {{Type::kSplitReal64}}));
   n.Open(path);
   *floats[0] = 1, *floats[1] = 2, *doubles[0] = 3, *doubles[1] = 4, *doubles[2] = 5;
   *floats[2] = 6, *doubles[3] = 7, *doubles[4] = 8;
   n.Fill();
   auto put = [&](float half, float single, double full) {
      *floats[0] = half, *floats[1] = *floats[2] = single;
      *doubles[0] = half, *doubles[1] = *doubles[3] = single, *doubles[2] = *doubles[4] = full;
      n.Fill();
   };
   using F = std::numeric_limits<float>;
   using D = std::numeric_limits<double>;
   put(0x1.234p1f, 0x1.23456p1f, 0x1.2345678901123p1);
   put(-65504.f, F::lowest(), D::lowest());
   put(0x1p-14f, F::min(), D::min());
   put(0x1p-24f, F::denorm_min(), D::denorm_min());
   put(65504.f, F::max(), D::max());
   // beyond the public suite: zeros, infinities, not a number
   put(0.f, 0.f, 0.);
   put(-0.f, -0.f, -0.);
   put(F::infinity(), F::infinity(), D::infinity());
   put(-F::infinity(), -F::infinity(), -D::infinity());
   put(F::quiet_NaN(), F::quiet_NaN(), D::quiet_NaN());
}

template <typename T>
std::shared_ptr<T> AddTruncated(Ntuple &n, Text name, int bits)
{
   auto field = std::make_unique<ROOT::RField<T>>(name);
   field->SetTruncated(bits);
   return n.Add<T>(std::move(field));
}

template <typename T>
std::shared_ptr<T> AddQuantized(Ntuple &n, Text name, int bits, double min, double max)
{
   auto field = std::make_unique<ROOT::RField<T>>(name);
   field->SetQuantized(bits, {static_cast<T>(min), static_cast<T>(max)});
   return n.Add<T>(std::move(field));
}

inline void types_fundamental_real32trunc(Text path, int compression)
{
   Ntuple n(compression);
   const int widths[] = {10, 16, 31};
   std::vector<std::shared_ptr<float>> floats;
   std::vector<std::shared_ptr<double>> doubles;
   for (int bits : widths)
      floats.push_back(AddTruncated<float>(n, "FloatReal32Trunc" + std::to_string(bits), bits));
   for (int bits : widths)
      doubles.push_back(AddTruncated<double>(n, "DoubleReal32Trunc" + std::to_string(bits), bits));
   n.Open(path);
   for (int i = 0; i < 3; ++i)
      *floats[i] = 1.f + i, *doubles[i] = 4. + i;
   n.Fill();
   auto put = [&](float a, float b, float c) {
      *floats[0] = a, *floats[1] = b, *floats[2] = c;
      *doubles[0] = a, *doubles[1] = b, *doubles[2] = c;
      n.Fill();
   };
   const float min = std::numeric_limits<float>::min();
   const float max = std::numeric_limits<float>::max();
   put(3.9999997f, 3.9999997f, 3.9999997f);
   put(-0x1.8p127f, -0x1.FEp127f, -max);
   put(min, min, min);
   put(0x1p-127f, 0x1p-133f, 0x1p-148f);
   put(0x1.8p127f, 0x1.FEp127f, max);
}

inline void types_fundamental_real32quant(Text path, int compression)
{
   Ntuple n(compression);
   const double pi = 3.14159265358979323846;
   const float fpi = static_cast<float>(pi);
   auto f1 = AddQuantized<float>(n, "FloatReal32Quant1", 1, -1, 1);
   auto f8 = AddQuantized<float>(n, "FloatReal32Quant8", 8, -1, 1);
   auto f32 = AddQuantized<float>(n, "FloatReal32Quant32", 32, -fpi, fpi);
   auto d1 = AddQuantized<double>(n, "DoubleReal32Quant1", 1, -1, 1);
   auto d20 = AddQuantized<double>(n, "DoubleReal32Quant20", 20, -1, 1);
   auto d32 = AddQuantized<double>(n, "DoubleReal32Quant32", 32, -100, 25);
   n.Open(path);
   auto put = [&](float a, float b, float c, double d, double e, double f) {
      *f1 = a, *f8 = b, *f32 = c, *d1 = d, *d20 = e, *d32 = f;
      n.Fill();
   };
   const float ones = 2.3509885e-38f;
   put(-1.f, -0.5f, 0.25f, 0.5, 1., 2.);
   put(ones, ones, ones, ones, ones, ones);
   put(0, 0, 0, 0, 0, -37.5);
   put(-1, -1, -fpi, -1, -1, -100);
   put(1, 1, fpi, 1, 1, 25);
}

/// Every width of Real32Trunc and Real32Quant, 20 elements each, so that the packing crosses bytes and words.
inline void columns_low_precision(Text path, int compression)
{
   Ntuple n(compression);
   std::vector<std::shared_ptr<float>> truncated, quantized;
   for (int bits = 10; bits <= 31; ++bits)
      truncated.push_back(AddTruncated<float>(n, "Trunc" + std::to_string(bits), bits));
   for (int bits = 1; bits <= 32; ++bits)
      quantized.push_back(AddQuantized<float>(n, "Quant" + std::to_string(bits), bits, -2, 3));
   n.Open(path);
   for (int i = 0; i < 20; ++i) {
      PutAll<float>(truncated, (i - 10) * 1.2345678f);
      PutAll<float>(quantized, -2 + 0.25f * i);
      n.Fill();
   }
}

/// The three short ways to spell low precision, and the double that is stored as 32 bits.
inline void columns_reals(Text path, int compression)
{
   Ntuple n(compression);
   auto half = std::make_unique<ROOT::RField<double>>("HalfDouble");
   half->SetHalfPrecision();
   auto pHalf = n.Add<double>(std::move(half));
   auto half32 = std::make_unique<ROOT::RField<float>>("HalfFloat");
   half32->SetHalfPrecision();
   auto pHalf32 = n.Add<float>(std::move(half32));
   auto short64 = std::make_unique<ROOT::RField<double>>("Double32");
   short64->SetDouble32();
   auto pShort = n.Add<double>(std::move(short64));
   auto pAlias = n.Add<double>(RFieldBase::Create("Double32_t", "Double32_t").Unwrap());
   auto pVector = n.Add<std::vector<double>>(RFieldBase::Create("VectorDouble32", "std::vector<Double32_t>").Unwrap());
   n.Open(path);
   for (double value : {0.1, -1.5, 1e-3, 65504., 0.}) {
      *pHalf = value, *pHalf32 = static_cast<float>(value), *pShort = value, *pAlias = value;
      pVector->assign({value, 2 * value});
      n.Fill();
   }
}

inline void types_string(Text path, int compression)
{
   WriteIndexed<std::string>(path, compression,
                             {{"a", "b", "c", "d"},
                              {"", "", "", ""},
                              {"\xF0\x9F\x90\xA3", "\xF0\x9F\x90\xA3", "\xF0\x9F\x90\xA3", "\xF0\x9F\x90\xA3"},
                              {"a", "bc", "def", "ghij"}});
}

/// Empty first and last entries, control characters, quotes, an embedded zero, many scripts, 100 000 characters.
inline void types_string_edges(Text path, int compression)
{
   Ntuple n(compression);
   auto text = n.Add<std::string>("s");
   auto texts = n.Add<std::vector<std::string>>("v");
   n.Open(path);
   std::string longText;
   for (int i = 0; i < 100000; ++i)
      longText += static_cast<char>('a' + i % 26);
   const std::vector<std::string> all = {"",
                                         "line\nbreak\ttab\\\"quote\"/",
                                         std::string("zero\0inside", 11),
                                         "\x01\x1f\x7f",
                                         "Gr\xC3\xBC\xC3\x9F\x65 \xCE\xB1\xCE\xB2 \xE4\xB8\xAD\xE6\x96\x87 \xF0\x9F\x90\xA3",
                                         longText,
                                         ""};
   for (const auto &item : all) {
      *text = item;
      *texts = {item, "", item};
      n.Fill();
   }
   texts->clear();
   n.Fill();
}

using Ints = std::vector<std::int32_t>;
inline void types_vector_fundamental(Text path, int compression)
{
   WriteIndexed<Ints>(path, compression,
                      {{Ints{1}, Ints{2}, Ints{3}, Ints{4}}, {}, {Ints{1}, Ints{2, 3}, Ints{4, 5, 6}, Ints{7, 8, 9, 10}}});
}

using Nested2 = std::vector<Ints>;
inline void types_vector_nested(Text path, int compression)
{
   WriteIndexed<Nested2>(path, compression,
                         {{Nested2{{1}}, Nested2{{2}}, Nested2{{3}}, Nested2{{4}}},
                          {},
                          {Nested2{{1}}, Nested2{{}, {2, 3}}, Nested2{{4}, {}, {5, 6}}, Nested2{{}, {7, 8, 9}, {}, {10}}}},
                         Item);
}

/// bool in every container that has its own code for it; 19 elements, so that no byte ends with an entry.
inline void types_vector_bool(Text path, int compression)
{
   Ntuple n(compression);
   auto vector = n.Add<std::vector<bool>>("v");
   auto rvec = n.Add<ROOT::RVec<bool>>("r");
   auto array = n.Add<std::array<bool, 5>>("a");
   auto nested = n.Add<std::vector<std::vector<bool>>>("vv");
   n.Open(path);
   for (int i = 0; i < 4; ++i) {
      vector->clear();
      for (int j = 0; j < i * 19 / 3; ++j)
         vector->push_back(j % 3 == 0);
      rvec->assign(vector->begin(), vector->end());
      for (int j = 0; j < 5; ++j)
         (*array)[j] = (j + i) % 2;
      nested->assign(i, *vector);
      n.Fill();
   }
}

using RInts = ROOT::RVec<std::int32_t>;
inline void types_RVec_fundamental(Text path, int compression)
{
   WriteIndexed<RInts>(
      path, compression,
      {{RInts{1}, RInts{2}, RInts{3}, RInts{4}}, {}, {RInts{1}, RInts{2, 3}, RInts{4, 5, 6}, RInts{7, 8, 9, 10}}});
}

using RNested = ROOT::RVec<RInts>;
inline void types_RVec_nested(Text path, int compression)
{
   WriteIndexed<RNested>(path, compression,
                         {{RNested{{1}}, RNested{{2}}, RNested{{3}}, RNested{{4}}},
                          {},
                          {RNested{{1}}, RNested{{}, {2, 3}}, RNested{{4}, {}, {5, 6}}, RNested{{}, {7, 8, 9}, {}, {10}}}},
                         Item);
}

using Choice = std::variant<std::int32_t, std::string>;
inline void types_array(Text path, int compression)
{
   Ntuple n(compression);
   using Pair = std::array<std::int32_t, 2>;
   auto ints = n.Add<Pair>("Array_Int32");
   auto arrays = n.Add<std::array<Pair, 3>>("Array_Array");
   auto strings = n.Add<std::array<std::string, 2>>("Array_String");
   auto variants = n.Add<std::array<Choice, 2>>("Array_Variant");
   auto vectors = n.Add<std::array<Ints, 2>>("Array_Vector");
   n.Open(path);
   *ints = {1, 2}, *arrays = {Pair{3, 4}, Pair{5, 6}, Pair{7, 8}}, *strings = {"ijk", "lmn"};
   *variants = {Choice(19), Choice("uvw")}, *vectors = {Ints{15, 16, 17}, Ints{17, 18}};
   n.Fill();
   *ints = {}, *arrays = {}, *strings = {}, *variants = {Choice(0), Choice("")}, *vectors = {};
   n.Fill();
}

template <typename T>
std::shared_ptr<std::atomic<T>> AddAtomic(Ntuple &n, Text name)
{
   return n.Add<std::atomic<T>>(std::make_unique<ROOT::RField<std::atomic<T>>>(name));
}

inline void types_atomic(Text path, int compression)
{
   Ntuple n(compression);
   auto bit = AddAtomic<bool>(n, "Bit");
   auto byte = AddAtomic<std::byte>(n, "Byte");
   auto ch = AddAtomic<char>(n, "Char");
   auto i8 = AddAtomic<std::int8_t>(n, "Int8");
   auto u8 = AddAtomic<std::uint8_t>(n, "UInt8");
   auto i16 = AddAtomic<std::int16_t>(n, "Int16");
   auto u16 = AddAtomic<std::uint16_t>(n, "UInt16");
   auto i32 = AddAtomic<std::int32_t>(n, "Int32");
   auto u32 = AddAtomic<std::uint32_t>(n, "UInt32");
   auto i64 = AddAtomic<std::int64_t>(n, "Int64");
   auto u64 = AddAtomic<std::uint64_t>(n, "UInt64");
   auto r32 = AddAtomic<float>(n, "Real32");
   auto r64 = AddAtomic<double>(n, "Real64");
   n.Open(path);
   for (int scale : {1, 0}) {
      *bit = scale, *byte = std::byte(2 * scale), *ch = static_cast<char>(3 * scale);
      *i8 = 4 * scale, *u8 = 5 * scale, *i16 = 6 * scale, *u16 = 7 * scale, *i32 = 8 * scale, *u32 = 9 * scale;
      *i64 = 10 * scale, *u64 = 11 * scale, *r32 = 12.f * scale, *r64 = 13. * scale;
      n.Fill();
   }
}

inline void types_bitset(Text path, int compression)
{
   Ntuple n(compression);
   auto b1 = n.Add<std::bitset<1>>("Bitset1");
   auto b64 = n.Add<std::bitset<64>>("Bitset64");
   auto b65 = n.Add<std::bitset<65>>("Bitset65");
   n.Open(path);
   b1->set(0), b64->set(1), b65->set(2);
   n.Fill();
   b1->set(), b64->set(), b65->set();
   n.Fill();
   b1->reset(), b64->reset(), b65->reset();
   n.Fill();
}

inline void types_optional(Text path, int compression)
{
   Ntuple n(compression);
   using OptInt = std::optional<std::int32_t>;
   std::vector<std::shared_ptr<OptInt>> ints;
   for (const auto &[name, type] : kIndexTypes)
      ints.push_back(n.Add<OptInt>(name, {{type}}));
   auto text = n.Add<std::optional<std::string>>("String");
   auto choice = n.Add<std::optional<Choice>>("Variant");
   auto vector = n.Add<std::optional<Ints>>("VectorInt32");
   auto options = n.Add<std::vector<OptInt>>("VectorOpt");
   n.Open(path);
   for (int i = 0; i < 4; ++i)
      *ints[i] = i + 1;
   *text = "abc", *choice = "def", *vector = Ints{1, 2, 3}, *options = {4, 5, 6};
   n.Fill();
   PutAll<OptInt>(ints, std::nullopt);
   text->reset(), choice->reset(), vector->reset(), options->assign(1, std::nullopt);
   n.Fill();
   PutAll<OptInt>(ints, 0);
   *text = "", *choice = 0, *vector = Ints{}, options->clear();
   n.Fill();
}

inline void types_unique_ptr(Text path, int compression)
{
   Ntuple n(compression);
   using Pointer = std::unique_ptr<std::int32_t>;
   std::vector<std::shared_ptr<Pointer>> ints;
   for (const auto &[name, type] : kIndexTypes)
      ints.push_back(n.Add<Pointer>(name, {{type}}));
   auto text = n.Add<std::unique_ptr<std::string>>("String");
   auto choice = n.Add<std::unique_ptr<Choice>>("Variant");
   auto vector = n.Add<std::unique_ptr<Ints>>("VectorInt32");
   auto pointers = n.Add<std::vector<Pointer>>("VectorPtr");
   n.Open(path);
   for (int i = 0; i < 4; ++i)
      *ints[i] = std::make_unique<std::int32_t>(i + 1);
   *text = std::make_unique<std::string>("abc"), *choice = std::make_unique<Choice>("def");
   *vector = std::make_unique<Ints>(Ints{1, 2, 3});
   for (int value : {4, 5, 6})
      pointers->push_back(std::make_unique<std::int32_t>(value));
   n.Fill();
   for (auto &pointer : ints)
      pointer->reset();
   text->reset(), choice->reset(), vector->reset(), pointers->clear(), pointers->emplace_back();
   n.Fill();
   for (auto &pointer : ints)
      *pointer = std::make_unique<std::int32_t>(0);
   *text = std::make_unique<std::string>(), *choice = std::make_unique<Choice>(0);
   *vector = std::make_unique<Ints>(), pointers->clear();
   n.Fill();
}

inline void types_pair(Text path, int compression)
{
   Ntuple n(compression);
   using Pair = std::pair<std::int32_t, std::string>;
   auto pair = n.Add<Pair>("Int32_String");
   auto mixed = n.Add<std::pair<Choice, Ints>>("Variant_Vector");
   auto nested = n.Add<std::pair<Pair, std::int32_t>>("Pair");
   auto vector = n.Add<std::vector<Pair>>("VectorPair");
   n.Open(path);
   *pair = {1, "abc"}, *mixed = {"def", {2, 3, 4}}, *nested = {{5, "ghi"}, 6}, *vector = {{7, "jkl"}, {8, "mno"}};
   n.Fill();
   *pair = {0, ""}, *mixed = {0, {}}, *nested = {{0, ""}, 0}, vector->clear();
   n.Fill();
}

inline void types_tuple(Text path, int compression)
{
   Ntuple n(compression);
   using Tuple = std::tuple<std::int32_t, std::string>;
   auto tuple = n.Add<std::tuple<std::int32_t, std::string, Ints>>("Int32_String_Vector");
   auto choice = n.Add<std::tuple<Choice>>("Variant");
   auto nested = n.Add<std::tuple<Tuple>>("Tuple");
   auto vector = n.Add<std::vector<Tuple>>("VectorTuple");
   n.Open(path);
   *tuple = {1, "abc", {2, 3, 4}}, std::get<0>(*choice) = "def", std::get<0>(*nested) = Tuple{5, "ghi"};
   *vector = {{6, "jkl"}, {7, "mno"}};
   n.Fill();
   *tuple = {0, "", {}}, std::get<0>(*choice) = 0, std::get<0>(*nested) = Tuple{0, ""}, vector->clear();
   n.Fill();
}

inline void types_variant(Text path, int compression)
{
   Ntuple n(compression);
   auto value = n.Add<std::variant<std::int32_t, std::string, Ints>>("f");
   auto vector = n.Add<std::vector<Choice>>("Vector");
   n.Open(path);
   *value = 1, *vector = {Choice(1)};
   n.Fill();
   *value = "abc", *vector = {Choice("abc")};
   n.Fill();
   *value = Ints{1, 2, 3}, *vector = {Choice(1), Choice("2"), Choice(3)};
   n.Fill();
   *value = "", *vector = {Choice("")};
   n.Fill();
   *value = Ints{}, vector->clear();
   n.Fill();
}

/// Alternatives of one width but different kind, so that a reader cannot guess the alternative from the values.
inline void types_variant_kinds(Text path, int compression)
{
   Ntuple n(compression);
   using V = std::variant<float, std::int32_t, bool, std::vector<Choice>>;
   auto value = n.Add<V>("v");
   auto vector = n.Add<std::vector<V>>("vv");
   n.Open(path);
   for (const V &next : {V(1.5f), V(7), V(true), V(std::vector<Choice>{"x", 2}), V(-0.f), V(-1), V(false)}) {
      *value = next;
      vector->push_back(next);
      n.Fill();
   }
}

using Set = std::set<std::int32_t>;
inline void types_set_fundamental(Text path, int compression)
{
   WriteIndexed<Set>(path, compression,
                     {{Set{1}, Set{2}, Set{3}, Set{4}}, {}, {Set{1}, Set{2, 3}, Set{4, 5, 6}, Set{7, 8, 9, 10}}});
}
using Multiset = std::multiset<std::int32_t>;
inline void types_multiset_fundamental(Text path, int compression)
{
   using S = Multiset;
   WriteIndexed<S>(path, compression,
                   {{S{1}, S{2}, S{3}, S{4}}, {}, {S{1}, S{2, 2}, S{6, 4, 4}, S{7, 9, 8, 7}}});
}
using UnorderedSet = std::unordered_set<std::int32_t>;
inline void types_unordered_set_fundamental(Text path, int compression)
{
   using S = UnorderedSet;
   WriteIndexed<S>(path, compression,
                   {{S{1}, S{2}, S{3}, S{4}}, {}, {S{1}, S{2, 3}, S{4, 5, 6}, S{7, 8, 9, 10}}});
}
using UnorderedMultiset = std::unordered_multiset<std::int32_t>;
inline void types_unordered_multiset_fundamental(Text path, int compression)
{
   using S = UnorderedMultiset;
   WriteIndexed<S>(path, compression,
                   {{S{1}, S{2}, S{3}, S{4}}, {}, {S{1}, S{2, 2}, S{6, 4, 4}, S{7, 9, 8, 7}}});
}

/// Four levels of containers, with empty ones at every level.
inline void types_depth4(Text path, int compression)
{
   Ntuple n(compression);
   using Deep = std::vector<std::vector<std::vector<std::vector<std::int16_t>>>>;
   using Mixed = std::vector<std::optional<std::pair<std::string, std::vector<std::array<std::vector<float>, 2>>>>>;
   auto deep = n.Add<Deep>("deep");
   auto mixed = n.Add<Mixed>("mixed");
   n.Open(path);
   n.Fill();
   *deep = {{{{1, 2}, {}}, {{3}}}, {}, {{}}, {{{}, {4, 5, 6}}}};
   *mixed = {std::nullopt, std::make_pair("a", std::vector<std::array<std::vector<float>, 2>>{}),
             std::make_pair("bc", std::vector<std::array<std::vector<float>, 2>>{{{{1.5f}, {}}}, {{{}, {2.5f, -3.f}}}})};
   n.Fill();
   deep->clear();
   *mixed = {std::nullopt};
   n.Fill();
   *deep = {{{{7}}}};
   mixed->clear();
   n.Fill();
   deep->clear();
   n.Fill();
}

/// Records and collections without a C++ type. Their values live in raw memory, as ROOT hands them out.
inline void types_untyped(Text path, int compression)
{
   ROOT::RNTupleWriteOptions options;
   options.SetCompression(compression);
   auto model = RNTupleModel::CreateBare();
   auto point = [](Text name) {
      std::vector<std::unique_ptr<RFieldBase>> items;
      items.push_back(MakeField<float>("x"));
      items.push_back(MakeField<Ints>("v"));
      items.push_back(MakeField<std::string>("s"));
      return std::make_unique<ROOT::RRecordField>(name, std::move(items));
   };
   model->AddField(point("rec"));
   model->AddField(ROOT::RVectorField::CreateUntyped("col", point("_0")));
   std::vector<std::unique_ptr<RFieldBase>> outer;
   outer.push_back(point("inner"));
   outer.push_back(ROOT::RVectorField::CreateUntyped("ints", MakeField<std::int32_t>("_0")));
   model->AddField(std::make_unique<ROOT::RRecordField>("outer", std::move(outer)));
   model->AddField(std::make_unique<ROOT::RRecordField>("empty", std::vector<std::unique_ptr<RFieldBase>>{}));
   auto writer = RNTupleWriter::Recreate(std::move(model), "ntpl", path, options);
   struct Point {
      float fX = 0;
      Ints fV;
      std::string fS;
   };
   struct Outer {
      Point fInner;
      Ints fInts;
   };
   Point rec;
   std::vector<Point> col;
   Outer whole;
   char none = 0;
   auto entry = writer->CreateEntry();
   entry->BindRawPtr<void>("rec", &rec);
   entry->BindRawPtr<void>("col", &col);
   entry->BindRawPtr<void>("outer", &whole);
   entry->BindRawPtr<void>("empty", &none);
   writer->Fill(*entry);
   rec = {1.5f, {1, 2}, "one"}, col = {{2.5f, {3}, "two"}, {0, {}, ""}}, whole = {{3.5f, {4, 5, 6}, "three"}, {7, 8}};
   writer->Fill(*entry);
   col.clear(), whole.fInner.fV.clear();
   writer->Fill(*entry);
}

} // namespace cases
