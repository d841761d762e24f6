// Values by entry, as objects and as the JSON that readers are compared with, and the trees that have them.
#include "trees.hxx"

#include <Compression.h>
#include <ROOT/TIOFeatures.hxx>
#include <TBranch.h>
#include <TBranchElement.h>
#include <TFile.h>
#include <TFriendElement.h>
#include <TNtuple.h>
#include <TNtupleD.h>
#include <TProcessID.h>
#include <TTree.h>
#include <TVirtualStreamerInfo.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <unistd.h>

namespace fill {
const int kEntries = 7;

inline std::string json(bool v) { return v ? "true" : "false"; }
template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0> std::string json(T v) { return std::to_string(v); }
template <class T, std::enable_if_t<std::is_enum_v<T>, int> = 0> std::string json(T v) { return std::to_string(int(v)); }
inline std::string json(double v) { char b[40]; snprintf(b, 40, "%.17g", v); return b; }
inline std::string json(float v) { return json(double(v)); }
inline std::string json(const std::string &v) {
   std::string out = "\"";
   for (char c : v) { if (c == '"' || c == '\\') out += '\\'; out += c; }
   return out + "\"";
}
inline std::string json(const char *v) { return json(std::string(v)); }
inline std::string json(const TString &v) { return json(std::string(v.Data())); }
std::string json(const Point &);
std::string json(const Plain &);
std::string json(const Line &);
std::string json(const Derived &);
std::string json(const Hit &);
std::string json(const Packed &);
std::string json(const Members &);
std::string json(const Scalars &);
std::string json(const Holder &);
std::string json(const Boxes &);
inline std::string json(const TVector3 &v);
inline std::string json(const TLorentzVector &v);
inline std::string json(const TMatrixDSym &v);
template <class A, class B> std::string json(const std::pair<A, B> &v);
template <std::size_t N> std::string json(const std::bitset<N> &v) {
   std::string out;
   for (std::size_t i = 0; i < N; ++i) out += (i ? "," : "") + json(bool(v[i]));
   return "[" + out + "]";
}
template <class C> auto json(const C &c) -> decltype(c.begin(), std::string());
template <class I> std::string list(I begin, I end) {
   std::string out;
   for (I i = begin; i != end; ++i) out += (i == begin ? "" : ",") + json(*i);
   return "[" + out + "]";
}
inline std::string bools(const std::vector<bool> &c) {
   std::string out;
   for (bool b : c) out += (out.empty() ? "" : ",") + json(b);
   return "[" + out + "]";
}
inline std::string json(const std::vector<bool> &c) { return bools(c); }
template <class C> auto json(const C &c) -> decltype(c.begin(), std::string()) { return list(c.begin(), c.end()); }
template <class A, class B> std::string json(const std::pair<A, B> &v) { return "[" + json(v.first) + "," + json(v.second) + "]"; }
inline std::string record() { return "{}"; }
template <class T, class... R> std::string record(const char *name, const T &v, const R &...rest) {
   std::string more = record(rest...);
   return "{" + json(name) + ":" + json(v) + (more == "{}" ? "}" : "," + more.substr(1));
}
inline std::string joined(const std::string &a, const std::string &b) { return a.substr(0, a.size() - 1) + "," + b.substr(1); }
inline std::string json(const Point &v) { return record("fX", v.fX, "fN", v.fN); }
inline std::string json(const Plain &v) { return record("fA", v.fA, "fB", v.fB); }
inline std::string json(const Line &v) { return record("fFrom", v.fFrom, "fTo", v.fTo, "fName", v.fName, "fWidths", v.fWidths); }
inline std::string json(const Derived &v) { return record("fLeft", v.fLeft, "fRight", v.fRight, "fRights", v.fRights, "fOwn", int(v.fOwn)); }
inline std::string json(const Hit &v) { return record("fE", v.fE, "fId", v.fId, "fP", v.fP, "fAdc", v.fAdc, "fUniqueID", v.GetUniqueID()); }
inline std::string json(const Packed &) { return "{}"; }
inline std::string json(const Members &v) {
   std::string a = record("fColour", v.fColour, "fSmall", v.fSmall, "fFlag", v.fFlag, "fC", int(v.fC), "fText", v.fText, "fSome", v.fSome, "fArray", v.fArray);
   std::string b = record("fColours", v.fColours, "fMap", v.fMap, "fPair", v.fPair, "fBools", v.fBools, "fSet", v.fSet, "fNested", v.fNested, "fTexts", v.fTexts);
   return joined(joined(a, b), "{\"fNamed\":" + joined(record("fName", v.fNamed.GetName()), record("fTitle", v.fNamed.GetTitle())) + "}");
}
inline std::string json(const Scalars &v) {
   std::string a = record("fB", int(v.fB), "fUB", int(v.fUB), "fUS", v.fUS, "fU", v.fU, "fL", v.fL, "fUL", v.fUL);
   return joined(joined(a, record("fLL", v.fLL, "fULL", v.fULL, "fString", v.fString)),
                 "{\"fText\":" + list(v.fText, v.fText + 8) + ",\"fFlags\":" + list(v.fFlags, v.fFlags + 3) + "}");
}
inline std::string json(const Holder &v) {
   std::vector<std::vector<std::int32_t>> two(v.fTwo, v.fTwo + 2);
   return record("fPoints", v.fPoints, "fLines", v.fLines, "fMap", v.fMap, "fList", v.fList, "fTwo", two, "fPlains", v.fPlains);
}
inline std::string json(const TMatrixDSym &v) {
   std::vector<double> elements;
   for (int row = 0; row < v.GetNrows(); ++row) for (int column = row; column < v.GetNcols(); ++column) elements.push_back(v(row, column));
   return record("fNrows", v.GetNrows(), "fElements", elements);
}
inline std::string json(const Boxes &v) {
   std::vector<std::vector<float>> vectors(v.fVectors, v.fVectors + 2);
   std::vector<std::map<std::int32_t, float>> maps(v.fMaps, v.fMaps + 2);
   return record("fVectors", vectors, "fMaps", maps, "fArray", v.fArray, "fMapArray", v.fMapArray, "fTexts", v.fTexts, "fMatrices", v.fMatrices);
}
inline std::string json(const Linked &v) {
   std::vector<UInt_t> all;
   for (int n = 0; n < v.fAll.GetEntriesFast(); ++n) all.push_back(v.fAll.GetUID(n));
   std::vector<int> bytes(v.fBytes, v.fBytes + v.fN);
   std::string links = joined("{\"fNext\":" + record("fUniqueID", v.fNext.GetUniqueID()) + "}", "{\"fAll\":" + record("fUIDs", all) + "}");
   std::string members = record("fUniqueID", v.GetUniqueID(), "fBits", v.TestBits(0xffffff), "fMatrix", v.fMatrix, "fN", v.fN, "fBytes", bytes);
   return joined(joined(members, links), "{\"fTime\":" + record("fMilliSec", Long64_t(v.fTime)) + "}");
}
inline std::string json(const TVector3 &v) { return record("fX", v.X(), "fY", v.Y(), "fZ", v.Z()); }
inline std::string json(const TLorentzVector &v) { return record("fP", v.Vect(), "fE", v.E()); }
inline std::string json(const Loops &v) {
   return record("fN", v.fN, "fInBase", std::vector<float>(v.fInBase, v.fInBase + v.fN), "fM", v.fM, "fPoints", std::vector<Point>(v.fPoints, v.fPoints + v.fM), "fAfter", v.fAfter);
}
inline std::string arrays(const Arrays &v) {
   std::vector<std::vector<int>> grid{{v.fGrid[0], v.fGrid[0] + 3}, {v.fGrid[1], v.fGrid[1] + 3}};
   std::vector<Point> points(v.fPoints, v.fPoints + 2);
   std::vector<std::string> names(v.fNames, v.fNames + 2);
   std::vector<double> values(v.fValues, v.fValues + v.fN), shorter(v.fShort, v.fShort + v.fN);
   return record("fGrid", grid, "fPoints", points, "fNames", names, "fN", v.fN, "fValues", values, "fNone", std::vector<float>(), "fShort", shorter);
}

// Values of an entry.
inline void set(int i, bool &v) { v = i % 3 == 1; }
template <class T, std::enable_if_t<std::is_arithmetic_v<T> && !std::is_same_v<T, bool>, int> = 0> void set(int i, T &v) { v = T(i * 5) - T(7) + T(i) / T(4); }
inline void set(int i, std::string &v) { v = std::string(i % 4, 'a' + i % 26) + (i % 5 == 4 ? std::string(300, 'z') : ""); }
inline void set(int i, TString &v) { v = std::to_string(i).c_str(); }
inline void set(int i, Point &v) { v.fX = i + 0.5f; v.fN = -i; }
inline void set(int i, Plain &v) { v.fA = i; v.fB = i / 3.0; }
template <class T> void set(int i, std::vector<T> &v);
template <class T> void set(int i, std::list<T> &v);
template <class T> void set(int i, std::deque<T> &v);
template <class T> void set(int i, std::set<T> &v);
template <class T> void set(int i, std::multiset<T> &v);
template <class T> void set(int i, std::unordered_set<T> &v);
template <class T> void set(int i, std::unordered_multiset<T> &v);
template <class K, class T> void set(int i, std::map<K, T> &v);
template <class K, class T> void set(int i, std::multimap<K, T> &v);
template <class K, class T> void set(int i, std::unordered_map<K, T> &v);
template <class K, class T> void set(int i, std::unordered_multimap<K, T> &v);
inline void set(int i, Scalars &v);
inline void set(int i, Holder &v);
inline void set(int i, Boxes &v);
inline void set(int i, TMatrixDSym &v);
template <class T, std::size_t N> void set(int i, std::array<T, N> &v);
inline void set(int i, TVector3 &v);
inline void set(int i, TLorentzVector &v);
void set(int i, std::vector<bool> &v);
void set(int i, Members &v);
inline void set(int i, Derived &v);
inline void set(int i, Line &v);
inline void set(int i, Line &v) { set(i, v.fFrom); set(i + 1, v.fTo); set(i, v.fName); set(i, v.fWidths); }
inline void set(int i, Derived &v) { v.fLeft = i; v.fRight = i / 7.0; set(i, v.fRights); v.fOwn = i; }
inline void set(int i, Hit &v) { v.fE = i; v.fId = 3 * i; set(i, v.fP); set(i, v.fAdc); v.SetUniqueID(i); }
inline void set(int i, Colour &v) { v = i % 2 ? cGreen : cBlue; }
template <class A, class B> void set(int i, std::pair<A, B> &v) { set(i, const_cast<std::remove_const_t<A> &>(v.first)); set(i + 1, v.second); }
template <std::size_t N> void set(int i, std::bitset<N> &v) { v = std::bitset<N>(i * 37); }
template <class T> void set(int i, std::vector<T> &v) {
   v.clear();
   for (int n = 0; n < i % 4; ++n) { T item{}; set(i + n, item); v.push_back(std::move(item)); }
}
template <class C> void sequence(int i, C &v) {
   v.clear();
   for (int n = 0; n < i % 4; ++n) { typename C::value_type item{}; set(i + n, item); v.insert(v.end(), item); }
}
template <class T> void set(int i, std::unordered_multiset<T> &v) { sequence(i, v); }
template <class T, std::size_t N> void set(int i, std::array<T, N> &v) { for (std::size_t n = 0; n < N; ++n) set(i + n, v[n]); }
template <class T> void set(int i, std::list<T> &v) { sequence(i, v); }
template <class T> void set(int i, std::deque<T> &v) { sequence(i, v); }
template <class T> void set(int i, std::set<T> &v) { sequence(i, v); }
template <class T> void set(int i, std::multiset<T> &v) { sequence(i, v); }
template <class T> void set(int i, std::unordered_set<T> &v) { sequence(i, v); }
template <class M> void mapping(int i, M &v) {
   v.clear();
   for (int n = 0; n < i % 4; ++n) { typename M::key_type key{}; typename M::mapped_type item{}; set(i + n, key); set(i + n, item); v.insert({key, item}); }
}
template <class K, class T> void set(int i, std::map<K, T> &v) { mapping(i, v); }
template <class K, class T> void set(int i, std::unordered_multimap<K, T> &v) { mapping(i, v); }
template <class K, class T> void set(int i, std::multimap<K, T> &v) { mapping(i, v); }
template <class K, class T> void set(int i, std::unordered_map<K, T> &v) { mapping(i, v); }
inline void set(int i, Members &v) {
   set(i, v.fColour); v.fSmall = i % 2 ? Small::kHigh : Small::kLow; v.fFlag = i % 2; v.fC = i; v.fText = "t" + TString(std::to_string(i).c_str());
   set(i, v.fSome); v.fArray = {i, i + 1, i + 2}; set(i, v.fColours); set(i, v.fMap); set(i, v.fPair);
   v.fBools.clear(); for (int n = 0; n < i; ++n) v.fBools.push_back(n % 2);
   set(i, v.fSet); set(i, v.fNested); set(i, v.fTexts); v.fNamed.SetNameTitle("name", std::to_string(i).c_str());
}
inline void set(int i, std::vector<bool> &v) { v.clear(); for (int n = 0; n < i; ++n) v.push_back(n % 2); }
inline void set(int i, Scalars &v) {
   set(i, v.fB); set(200 + i, v.fUB); v.fUS = 65000 + i; v.fU = 4000000000u + i; v.fL = -i; v.fUL = i; v.fLL = -5000000000 * i; v.fULL = 18000000000000000000ull + i;
   snprintf(v.fText, 8, "t%d", i);
   for (int n = 0; n < 3; ++n) v.fFlags[n] = (i >> n) & 1;
   set(i, v.fString);
}
inline void set(int i, Holder &v) {
   set(i, v.fPoints); set(i + 1, v.fLines); set(i, v.fMap); set(i, v.fList); set(i, v.fTwo[0]); set(i + 1, v.fTwo[1]); set(i, v.fPlains);
}
inline void set(int i, TMatrixDSym &v) {
   v.ResizeTo(i % 3 + 1, i % 3 + 1);
   for (int row = 0; row <= i % 3; ++row) for (int column = 0; column <= i % 3; ++column) v(row, column) = i + row + column;
}
inline void set(int i, Boxes &v) {
   for (int n = 0; n < 2; ++n) { set(i + n, v.fVectors[n]); set(i + n, v.fMaps[n]); }
   set(i + 2, v.fArray); set(i, v.fMapArray); set(i, v.fTexts);
   v.fMatrices.clear();
   for (int n = 0; n < i % 3; ++n) { v.fMatrices.emplace_back(1); set(i + n, v.fMatrices.back()); }
}
// Refers to another object, or to nothing.
inline void set(int i, Linked &v, TObject *other) {
   v.fNext = i % 3 ? other : nullptr;
   v.fAll.Clear();
   for (int n = 0; n < i % 3; ++n) v.fAll.Add(other);
   v.fTime = TTime(Long64_t(1000 * i));
   set(i, v.fMatrix);
   delete[] v.fBytes;
   v.fN = i % 4; v.fBytes = v.fN ? new std::uint8_t[v.fN] : nullptr;
   for (int n = 0; n < v.fN; ++n) v.fBytes[n] = n + i;
}
inline void set(int i, TVector3 &v) { v.SetXYZ(i, i / 2.0, -i); }
inline void set(int i, TLorentzVector &v) { v.SetXYZT(i, i / 2.0, -i, 2 * i); }
inline void set(int i, Loops &v) {
   delete[] v.fInBase; delete[] v.fPoints;
   v.fN = i % 3; v.fM = i % 4; v.fAfter = i;
   v.fInBase = new float[v.fN]; v.fPoints = new Point[v.fM];
   for (int n = 0; n < v.fN; ++n) v.fInBase[n] = n / 2.f;
   for (int n = 0; n < v.fM; ++n) set(i + n, v.fPoints[n]);
}
inline void set(int i, Arrays &v) {
   for (int n = 0; n < 6; ++n) v.fGrid[n / 3][n % 3] = i * 10 + n;
   for (int n = 0; n < 2; ++n) { set(i + n, v.fPoints[n]); set(i + n, v.fNames[n]); }
   v.fN = i % 4;
   delete[] v.fValues; delete[] v.fShort;
   v.fValues = new double[v.fN]; v.fShort = new double[v.fN];
   for (int n = 0; n < v.fN; ++n) { v.fValues[n] = n / 3.0; v.fShort[n] = n / 4.0; }
}

// One file, its trees and what they have.
struct Book {
   std::string fPath, fExpected;
   std::unique_ptr<TFile> fFile;
   explicit Book(const std::string &path, int compression = 101) : fPath(path), fFile(TFile::Open(path.c_str(), "RECREATE", "", compression)) {}
   void expect(const std::string &tree, const std::string &field, const std::vector<std::string> &values) {
      std::string line;
      for (auto &value : values) line += (line.empty() ? "" : ",") + value;
      fExpected += record("tree", tree, "field", field);
      fExpected.back() = ',';
      fExpected += "\"values\":[" + line + "]}\n";
   }
   void close() {
      if (fFile) fFile->Close();
      std::ofstream(fPath + ".json") << fExpected;
   }
};

// A tree `name` with one branch `x`.
template <class T> void branch(Book &book, const std::string &name, int split) {
   book.fFile->cd();
   TTree tree(name.c_str(), "");
   T value{};
   tree.Branch("x", &value, 32000, split);
   std::vector<std::string> values;
   for (int i = 0; i < kEntries; ++i) {
      set(i, value);
      if (i == 4) tree.FlushBaskets();
      tree.Fill();
      if constexpr (std::is_same_v<T, Arrays>) values.push_back(arrays(value)); else values.push_back(json(value));
   }
   tree.Write();
   book.expect(name, "x", values);
}

template <class T> void splits(Book &book, const std::string &name) {
   for (int split : {0, 1, 2, 99}) branch<T>(book, name + "_" + std::to_string(split), split);
}
} // namespace fill
