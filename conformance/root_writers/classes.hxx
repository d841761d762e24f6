// The classes of the cases that need a dictionary; write_all.py builds it with rootcling and g++.
#ifndef TUPELO_CONFORMANCE_CLASSES
#define TUPELO_CONFORMANCE_CLASSES

#include <ROOT/RVec.hxx>
#include <Rtypes.h>
#include <TArrayI.h>
#include <TBuffer.h>
#include <TDatime.h>
#include <TNamed.h>
#include <TObjArray.h>
#include <TString.h>

#include <bitset>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

// types/user/class and types/user/enum of the public suite
struct Base {
   std::int32_t fInt = 0;
};
struct Nested {
   std::int32_t fInt = 0;
};
struct User : Base {
   std::string fString;
   std::variant<std::int32_t, std::string> fVariant;
   std::vector<std::int32_t> fVector;
   Nested fNested;
};
enum class EnumInt8 : std::int8_t { Zero = 0, Simple = 1, Low = -128 };
enum class EnumUInt8 : std::uint8_t { Zero = 0, Simple = 2, High = 255 };
enum class EnumInt16 : std::int16_t { Zero = 0, Simple = 3, Low = -32768 };
enum class EnumUInt16 : std::uint16_t { Zero = 0, Simple = 4, High = 65535 };
enum class EnumInt32 : std::int32_t { Zero = 0, Simple = 5, Low = -2147483647 - 1 };
enum class EnumUInt32 : std::uint32_t { Zero = 0, Simple = 6, High = 4294967295u };
enum class EnumInt64 : std::int64_t { Zero = 0, Simple = 7, Low = -9223372036854775807ll - 1 };
enum class EnumUInt64 : std::uint64_t { Zero = 0, Simple = 8, High = 18446744073709551615ull };
enum EnumUnscoped { kFirst, kSixth = 5, kSeventh };

// Several bases, a chain of bases, C arrays, transient members, Double32_t, a template, a map as a member
struct Left {
   std::int32_t fShared = 0;
};
struct Right {
   std::int32_t fShared = 0;
   float fRight = 0;
};
struct Both : Left, Right {
   std::int16_t fBoth = 0;
};
struct Leaf : Both {
   std::uint8_t fLeaf = 0;
};
template <typename T>
struct Box {
   T fValue{};
};
struct Members {
   std::int32_t fMatrix[2][3] = {};
   std::string fTexts[2];
   std::int32_t fTransient = 0; //!
   Double32_t fReal = 0;
   EnumInt8 fEnum = EnumInt8::Zero;
   EnumUnscoped fUnscoped = kFirst;
   std::map<std::string, std::vector<float>> fMap;
   std::unordered_set<std::int32_t> fSet;
   std::unique_ptr<Nested> fPointer;
   Box<Box<double>> fBox;
   std::vector<Both> fBoths;
   Long64_t fLong = 0;
   ULong64_t fUnsigned = 0;
};
struct Empty {};
struct HoldsEmpty : Empty {
   Empty fEmpty;
   std::vector<Empty> fEmpties;
};

// Written by TClass::Streamer as bytes (rntupleStreamerMode)
struct Streamed {
   std::int32_t fNumber = 0;
   std::string fText;
   std::list<std::int32_t> fList;
   std::vector<Left> fLefts;
};
struct HoldsStreamed {
   std::int32_t fBefore = 0;
   Streamed fStreamed;
   std::int32_t fAfter = 0;
};

// Streamed too: every way in which a member can be stored
struct Item {
   std::int32_t fNumber = 0;
   std::string fText;
   std::vector<float> fValues;
};
struct Derived : Item {
   double fMore = 0;
};
enum Hue { kWarm, kCold = 7 };
struct Variety : TNamed {
   bool fFlag = false;
   char fLetters[4] = {};
   Long64_t fLong = 0;
   ULong64_t fUnsigned = 0;
   Hue fHue = kWarm;
   Double32_t fReal = 0;
   Double32_t fRange = 0;    //[0,100,10]
   Double32_t fShort = 0;    //[0,0,10]
   Double32_t fReals[2] = {};
   Float16_t fHalf = 0;
   std::int32_t fMatrix[2][3] = {};
   std::int32_t fCount = 0;
   float *fCounted = nullptr;  //[fCount]
   Double32_t *fRanges = nullptr; //[fCount][0,100,10]
   const char *fCharacters = nullptr;
   TString fString;
   TString fStrings[2];
   std::string fText;
   std::string fTexts[2];
   std::vector<std::int16_t> fShorts;
   std::vector<bool> fFlags;
   std::vector<std::string> fWords;
   std::vector<TString> fRootWords;
   std::vector<Double32_t> fVectorReals;
   std::vector<Hue> fHues;
   std::vector<std::vector<float>> fNested;
   std::vector<Item> fItems;
   std::vector<Derived> fDerived;
   std::list<Item> fItemList;
   std::vector<Empty> fEmpties;
   std::map<std::int32_t, float> fMap;
   std::map<std::string, std::vector<std::int32_t>> fVectorMap;
   std::map<std::string, Item> fItemMap;
   std::set<std::string> fSet;
   std::vector<std::pair<std::int32_t, std::string>> fPairs;
   std::pair<std::int32_t, float> fPair;
   std::bitset<10> fBitset;
   std::vector<TObject *> fPointers;
   Item fItem;
   Item fItemArray[2];
   Item *fItemPointer = nullptr;
   TObject *fNull = nullptr;
   TObject *fShared = nullptr;
   TObject *fSelf = nullptr;
   TObjArray fObjects;
   TDatime fDate;
   TArrayI fArray;
   ClassDefOverride(Variety, 3)
};
class Secret : public TObject {
public:
   std::int32_t fValue = 0;
   ClassDefOverride(Secret, 1)
};
#ifndef __CLING__ // the interpreter defines one of its own
inline void Secret::Streamer(TBuffer &buffer)
{
   if (buffer.IsReading()) {
      std::uint32_t start, count;
      buffer.ReadVersion(&start, &count);
      buffer >> fValue;
      buffer.CheckByteCount(start, count, Secret::IsA());
   } else {
      auto count = buffer.WriteVersion(Secret::IsA(), kTRUE);
      buffer << fValue;
      buffer.SetByteCount(count, kTRUE);
   }
}
#endif

// SoA: PointSoA in memory, a collection of PointRecord on disk (rntupleSoARecord)
struct PointRecord {
   float fX = 0;
   std::int32_t fN = 0;
   ClassDefNV(PointRecord, 2)
};
struct PointSoA {
   ROOT::RVec<float> fX;
   ROOT::RVec<std::int32_t> fN;
   ClassDefNV(PointSoA, 2)
};

// Leaves a std::variant valueless by exception
struct Thrower {
   std::int32_t fInt = 0;
   std::string fText; // not trivially copyable: libstdc++ would keep the old value of the variant
   Thrower() = default;
   explicit Thrower(std::int32_t) { throw std::runtime_error("no value"); }
};

using NestedSet = std::set<std::set<std::int32_t>>;
using NestedMultiset = std::multiset<std::multiset<std::int32_t>>;
// std::hash of a set does not exist; the public suite specialises it, and so do we.
namespace std {
template <>
struct hash<std::unordered_set<std::int32_t>> {
   std::size_t operator()(const std::unordered_set<std::int32_t> &items) const { return items.size(); }
};
template <>
struct hash<std::unordered_multiset<std::int32_t>> {
   std::size_t operator()(const std::unordered_multiset<std::int32_t> &items) const { return items.size(); }
};
} // namespace std
using NestedUnorderedSet = std::unordered_set<std::unordered_set<std::int32_t>>;
using NestedUnorderedMultiset = std::unordered_multiset<std::unordered_multiset<std::int32_t>>;
using NestedMap = std::map<std::string, std::map<std::string, std::int32_t>>;
using NestedMultimap = std::multimap<std::string, std::multimap<std::string, std::int32_t>>;
using NestedUnorderedMap = std::unordered_map<std::string, std::unordered_map<std::string, std::int32_t>>;
using NestedUnorderedMultimap =
   std::unordered_multimap<std::string, std::unordered_multimap<std::string, std::int32_t>>;

#endif
