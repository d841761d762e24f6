// The cases that need the dictionary of classes.hxx; see cases.hxx.
#pragma once
#include "cases.hxx"
#include "classes.hxx"

#include <ROOT/RField/RFieldSoA.hxx>
#include <TObject.h>

namespace cases {

inline void types_set_nested(Text path, int compression)
{
   using S = NestedSet;
   WriteIndexed<S>(path, compression,
                   {{S{{1}}, S{{2}}, S{{3}}, S{{4}}},
                    {},
                    {S{{1}}, S{{}, {2, 3}}, S{{}, {4}, {5, 6}}, S{{}, {7, 8, 9}, {10}, {11, 12}}}},
                   Item);
}

inline void types_multiset_nested(Text path, int compression)
{
   using S = NestedMultiset;
   WriteIndexed<S>(path, compression,
                   {{S{{1}}, S{{2}}, S{{3}}, S{{4}}},
                    {},
                    {S{{1}}, S{{}, {2, 3}}, S{{}, {4}, {5, 6}}, S{{}, {7, 8, 9}, {10}, {11, 12}}},
                    {S{{1}, {1}}, S{{2, 2}, {2, 2}}, S{{}, {}, {3}}, S{{4}, {4}, {4}, {}}},
                    {S{{2, 1}}, S{{3}, {1, 2}}, S{{9, 8}, {}, {7}}, S{{12, 10}, {11}}}},
                   Item);
}

inline void types_unordered_set_nested(Text path, int compression)
{
   using S = NestedUnorderedSet;
   WriteIndexed<S>(path, compression,
                   {{S{{1}}, S{{2}}, S{{3}}, S{{4}}},
                    {},
                    {S{{1}}, S{{}, {2, 3}}, S{{}, {4}, {5, 6}}, S{{}, {7, 8, 9}, {10}, {11, 12}}}},
                   Item);
}

inline void types_unordered_multiset_nested(Text path, int compression)
{
   using S = NestedUnorderedMultiset;
   WriteIndexed<S>(path, compression,
                   {{S{{1}}, S{{2}}, S{{3}}, S{{4}}},
                    {},
                    {S{{1}}, S{{}, {2, 3}}, S{{}, {4}, {5, 6}}, S{{}, {7, 8, 9}, {10}, {11, 12}}}},
                   Item);
}

template <typename Map>
void WriteMaps(Text path, int compression)
{
   WriteIndexed<Map>(path, compression,
                     {{Map{{"a", 1}}, Map{{"b", 2}}, Map{{"c", 3}}, Map{{"d", 4}}},
                      {},
                      {Map{{"a", 1}}, Map{{"b", 2}, {"c", 3}}, Map{{"d", 4}, {"e", 5}, {"f", 6}},
                       Map{{"g", 7}, {"h", 8}, {"i", 9}, {"j", 10}}}});
}

template <typename Map>
void WriteNestedMaps(Text path, int compression)
{
   WriteIndexed<Map>(
      path, compression,
      {{Map{{"a", {{"aa", 1}}}}, Map{{"b", {{"bb", 2}}}}, Map{{"c", {{"cc", 3}}}}, Map{{"d", {{"dd", 4}}}}},
       {},
       {Map{{"a", {{"aa", 1}}}}, Map{{"b", {{"ba", 2}}}, {"c", {{"ca", 3}}}},
        Map{{"d", {{"da", 4}}}, {"e", {{"ea", 5}, {"eb", 6}}}, {"f", {}}},
        Map{{"g", {{"ga", 7}, {"gb", 8}}}, {"h", {}}, {"i", {{"ia", 9}}}, {"j", {{"ja", 10}, {"jb", 11}, {"jc", 12}}}}}},
      MappedValue);
}

inline void types_map_fundamental(Text path, int compression)
{
   WriteMaps<std::map<std::string, std::int32_t>>(path, compression);
}
inline void types_multimap_fundamental(Text path, int compression)
{
   WriteMaps<std::multimap<std::string, std::int32_t>>(path, compression);
}
inline void types_unordered_map_fundamental(Text path, int compression)
{
   WriteMaps<std::unordered_map<std::string, std::int32_t>>(path, compression);
}
inline void types_unordered_multimap_fundamental(Text path, int compression)
{
   WriteMaps<std::unordered_multimap<std::string, std::int32_t>>(path, compression);
}
inline void types_map_nested(Text path, int compression) { WriteNestedMaps<NestedMap>(path, compression); }
inline void types_multimap_nested(Text path, int compression) { WriteNestedMaps<NestedMultimap>(path, compression); }
inline void types_unordered_map_nested(Text path, int compression)
{
   WriteNestedMaps<NestedUnorderedMap>(path, compression);
}
inline void types_unordered_multimap_nested(Text path, int compression)
{
   WriteNestedMaps<NestedUnorderedMultimap>(path, compression);
}

inline void types_user_class(Text path, int compression)
{
   Ntuple n(compression);
   auto user = n.Add<User>("f");
   auto users = n.Add<std::vector<User>>("VectorUser");
   n.Open(path);
   auto make = [](int base, Text text, Choice choice, Ints ints, int nested) {
      User result;
      result.fInt = base, result.fString = text, result.fVariant = choice, result.fVector = ints;
      result.fNested.fInt = nested;
      return result;
   };
   *user = make(1, "b", 3, {4}, 5);
   *users = {make(6, "g", "h", {9, 10}, 11), make(12, "m", 14, {15}, 16)};
   n.Fill();
   *user = User();
   users->clear();
   n.Fill();
}

inline void types_user_enum(Text path, int compression)
{
   Ntuple n(compression);
   auto i8 = n.Add<EnumInt8>("EnumInt8");
   auto u8 = n.Add<EnumUInt8>("EnumUInt8");
   auto i16 = n.Add<EnumInt16>("EnumInt16");
   auto u16 = n.Add<EnumUInt16>("EnumUInt16");
   auto i32 = n.Add<EnumInt32>("EnumInt32");
   auto u32 = n.Add<EnumUInt32>("EnumUInt32");
   auto i64 = n.Add<EnumInt64>("EnumInt64");
   auto u64 = n.Add<EnumUInt64>("EnumUInt64");
   auto unscoped = n.Add<EnumUnscoped>("EnumUnscoped");
   auto vector = n.Add<std::vector<EnumInt16>>("VectorEnum");
   n.Open(path);
   *i8 = EnumInt8::Simple, *u8 = EnumUInt8::Simple, *i16 = EnumInt16::Simple, *u16 = EnumUInt16::Simple;
   *i32 = EnumInt32::Simple, *u32 = EnumUInt32::Simple, *i64 = EnumInt64::Simple, *u64 = EnumUInt64::Simple;
   *unscoped = kSixth, *vector = {EnumInt16::Simple, EnumInt16::Low};
   n.Fill();
   *i8 = EnumInt8::Zero, *u8 = EnumUInt8::Zero, *i16 = EnumInt16::Zero, *u16 = EnumUInt16::Zero;
   *i32 = EnumInt32::Zero, *u32 = EnumUInt32::Zero, *i64 = EnumInt64::Zero, *u64 = EnumUInt64::Zero;
   *unscoped = kFirst, vector->clear();
   n.Fill();
   *i8 = EnumInt8::Low, *u8 = EnumUInt8::High, *i16 = EnumInt16::Low, *u16 = EnumUInt16::High;
   *i32 = EnumInt32::Low, *u32 = EnumUInt32::High, *i64 = EnumInt64::Low, *u64 = EnumUInt64::High;
   *unscoped = kSeventh;
   n.Fill();
}

/// Two bases with a member of the same name, a chain of bases, empty classes.
inline void types_user_bases(Text path, int compression)
{
   Ntuple n(compression);
   auto leaf = n.Add<Leaf>("leaf");
   auto leaves = n.Add<std::vector<Leaf>>("leaves");
   auto empty = n.Add<HoldsEmpty>("empty");
   n.Open(path);
   static_cast<Left &>(*leaf).fShared = 1, static_cast<Right &>(*leaf).fShared = 2;
   leaf->fRight = 3.5f, leaf->fBoth = 4, leaf->fLeaf = 5;
   leaves->assign(2, *leaf);
   (*leaves)[1].fLeaf = 6;
   empty->fEmpties.resize(3);
   n.Fill();
   *leaf = Leaf();
   leaves->clear();
   empty->fEmpties.clear();
   n.Fill();
}

inline void types_user_members(Text path, int compression)
{
   Ntuple n(compression);
   auto m = n.Add<Members>("m");
   n.Open(path);
   for (int i = 0; i < 6; ++i)
      m->fMatrix[i / 3][i % 3] = i + 1;
   m->fTexts[0] = "one", m->fTransient = 99, m->fReal = 0.1, m->fEnum = EnumInt8::Low, m->fUnscoped = kSeventh;
   m->fMap = {{"b", {1.5f, 2.5f}}, {"a", {}}}, m->fSet = {42};
   m->fPointer = std::make_unique<Nested>(Nested{4}), m->fBox.fValue.fValue = 0.1;
   m->fBoths.resize(1), m->fBoths[0].fBoth = 7, m->fBoths[0].fRight = 8.5f;
   m->fLong = -9223372036854775807ll - 1, m->fUnsigned = 18446744073709551615ull;
   n.Fill();
   *m = Members();
   n.Fill();
}

inline void types_variant_valueless(Text path, int compression)
{
   Ntuple n(compression);
   using V = std::variant<std::int32_t, Thrower>;
   auto value = n.Add<V>("v");
   auto vector = n.Add<std::vector<V>>("vv");
   n.Open(path);
   auto throwAway = [](V &target) {
      try {
         target.emplace<Thrower>(1);
      } catch (const std::runtime_error &) {
      }
   };
   *value = 1, *vector = {V(2), V(Thrower())};
   n.Fill();
   throwAway(*value), throwAway((*vector)[0]);
   n.Fill();
   *value = Thrower(), vector->clear();
   n.Fill();
}

inline void types_streamer(Text path, int compression)
{
   Ntuple n(compression);
   auto streamed = n.Add<Streamed>("streamed");
   auto vector = n.Add<std::vector<Streamed>>("vector");
   auto holder = n.Add<HoldsStreamed>("holder");
   n.Open(path);
   for (int i = 0; i < 3; ++i) {
      streamed->fNumber = i, streamed->fText = std::string(i, 'x'), streamed->fList.assign(i, 7);
      streamed->fLefts.resize(i);
      vector->assign(i, *streamed);
      holder->fBefore = 10 + i, holder->fStreamed = *streamed, holder->fAfter = 20 + i;
      n.Fill();
   }
}

/// TObject has a field of its own: two integers.
inline void types_tobject(Text path, int compression)
{
   Ntuple n(compression);
   auto object = n.Add<TObject>("object");
   n.Open(path);
   object->SetUniqueID(12);
   n.Fill();
   object->SetUniqueID(0);
   object->SetBit(BIT(15));
   n.Fill();
}

/// In memory one RVec per member, on disk a collection of records with the SoA flag.
inline void types_soa(Text path, int compression)
{
   Ntuple n(compression);
   auto points = n.Add<PointSoA>(std::make_unique<ROOT::Experimental::RSoAField>("points", "PointSoA"));
   n.Open(path);
   points->fX = {1.5f, 2.5f}, points->fN = {3, 4};
   n.Fill();
   points->fX.clear(), points->fN.clear();
   n.Fill();
   points->fX = {-1.f}, points->fN = {-2};
   n.Fill();
}

/// Members that come late in records with a C++ type stay with the type; late class fields are deferred as a whole.
inline void structure_deferred_class(Text path, int compression)
{
   Ntuple n(compression);
   auto first = n.Add<std::int32_t>("first");
   n.Open(path);
   *first = 1;
   n.Fill();
   auto updater = n.fWriter->CreateModelUpdater();
   updater->BeginUpdate();
   auto user = updater->MakeField<User>("user");
   auto users = updater->MakeField<std::vector<User>>("users");
   auto value = updater->MakeField<EnumInt8>("enum");
   auto map = updater->MakeField<std::map<std::string, std::int32_t>>("map");
   updater->CommitUpdate();
   user->fInt = 2, user->fString = "s", user->fVariant = "v", user->fVector = {3}, user->fNested.fInt = 4;
   users->assign(2, *user);
   *value = EnumInt8::Simple, *map = {{"k", 5}};
   n.Fill();
}

} // namespace cases
