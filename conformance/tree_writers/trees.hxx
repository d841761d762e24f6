// The classes of the trees that ROOT writes for the tests; write_trees.py builds their dictionary.
#ifndef TUPELO_CONFORMANCE_TREES
#define TUPELO_CONFORMANCE_TREES

#include <TClonesArray.h>
#include <TList.h>
#include <TMatrixDSym.h>
#include <TNamed.h>
#include <TObjArray.h>
#include <TObjString.h>
#include <TRef.h>
#include <TRefArray.h>
#include <TString.h>
#include <TTime.h>
#include <TLorentzVector.h>
#include <TVector3.h>

#include <array>
#include <bitset>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

enum Colour { cRed, cGreen = 5, cBlue = 7 };
enum class Small : std::int8_t { kLow = -3, kHigh = 4 };

struct Point {
   float fX = 0;
   std::int32_t fN = 0;
   ClassDefNV(Point, 2)
};
// A class without a version.
struct Plain {
   std::int16_t fA = 0;
   double fB = 0;
};
struct Line {
   Point fFrom;
   Point fTo;
   std::string fName;
   std::vector<float> fWidths;
};
struct LeftBase {
   std::int32_t fLeft = 0;
   virtual ~LeftBase() = default;
   virtual int f() const { return 1; }
   ClassDef(LeftBase, 1)
};
struct RightBase {
   double fRight = 0;
   std::vector<std::int32_t> fRights;
};
struct Derived : public LeftBase, public RightBase {
   std::uint8_t fOwn = 0;
   int f() const override { return 2; }
   ClassDefOverride(Derived, 3)
};
struct Hit : public TObject {
   float fE = 0;
   std::int32_t fId = 0;
   Point fP;
   std::vector<std::int16_t> fAdc;
   ClassDefOverride(Hit, 1)
};
struct Arrays {
   std::int32_t fGrid[2][3] = {};
   Point fPoints[2];
   std::string fNames[2];
   std::int32_t fN = 0;
   double *fValues = nullptr;    //[fN]
   float *fNone = nullptr;       //[fN]
   Double32_t *fShort = nullptr; //[fN]
   Arrays() = default;
   Arrays(const Arrays &) = delete;
   ~Arrays() { delete[] fValues; delete[] fNone; delete[] fShort; }
   ClassDefNV(Arrays, 1)
};
struct Packed {
   Double32_t fPlain = 0;
   Double32_t fRange = 0;  //[0,1,10]
   Double32_t fBits = 0;   //[0,0,12]
   Float16_t fHalf = 0;
   Float16_t fHalfRange = 0; //[-1,1,8]
   Double32_t fMany[3] = {}; //[0,10,16]
   std::vector<Double32_t> fVector;
   ClassDefNV(Packed, 1)
};
struct Members {
   Colour fColour = cRed;
   Small fSmall = Small::kLow;
   bool fFlag = false;
   char fC = 0;
   TString fText;
   std::bitset<11> fSome;
   std::array<std::int32_t, 3> fArray{};
   std::vector<Colour> fColours;
   std::map<std::string, std::vector<float>> fMap;
   std::pair<std::int32_t, double> fPair;
   std::vector<bool> fBools;
   std::set<std::string> fSet;
   std::vector<std::vector<Point>> fNested;
   std::vector<std::string> fTexts;
   TNamed fNamed;
   std::int32_t fNot = 9; //!
};
struct Pointers {
   Point *fPoint = nullptr;
   Hit *fHit = nullptr;
   TObject *fAny = nullptr;
   std::unique_ptr<Point> fUnique;
   std::vector<Point *> fVector;
   std::int32_t fAfter = 0;
   Pointers() = default;
   Pointers(const Pointers &) = delete;
   ClassDefNV(Pointers, 1)
};
struct Owner {
   TClonesArray fHits{"Hit"};
   TObjArray fObjects;
   TList fList;
   TRef fRef;
   TRefArray fRefs;
   std::int32_t fAfter = 0;
   Owner() = default;
   Owner(const Owner &) = delete;
   ClassDefNV(Owner, 1)
};
struct Counter {
   std::int32_t fN = 0;
};
// Arrays with a counter: of a base class, of objects.
struct Loops : public Counter {
   float *fInBase = nullptr; //[fN]
   std::int32_t fM = 0;
   Point *fPoints = nullptr; //[fM]
   std::int32_t fAfter = 0;
   Loops() = default;
   Loops(const Loops &) = delete;
   ~Loops() { delete[] fInBase; delete[] fPoints; }
   ClassDefNV(Loops, 1)
};
struct Scalars {
   std::int8_t fB = 0;
   std::uint8_t fUB = 0;
   std::uint16_t fUS = 0;
   std::uint32_t fU = 0;
   long fL = 0;
   unsigned long fUL = 0;
   Long64_t fLL = 0;
   ULong64_t fULL = 0;
   char fText[8] = {};
   bool fFlags[3] = {};
   std::string fString;
   ClassDefNV(Scalars, 1)
};
struct Holder {
   std::vector<Point> fPoints;
   std::vector<Line> fLines;
   std::map<std::int32_t, Point> fMap;
   std::list<Derived> fList;
   std::vector<std::int32_t> fTwo[2];
   std::vector<Plain> fPlains;
   ClassDefNV(Holder, 1)
};
// Objects that others refer to, and members that ROOT streams by custom code.
struct Linked : public TObject {
   TRef fNext;
   TRefArray fAll;
   TTime fTime;
   TMatrixDSym fMatrix{2};
   std::int32_t fN = 0;
   std::uint8_t *fBytes = nullptr; //[fN]
   Linked() = default;
   Linked(const Linked &) = delete;
   ~Linked() override { delete[] fBytes; }
   ClassDefOverride(Linked, 1)
};
// Fixed arrays of containers.
struct Boxes {
   std::vector<float> fVectors[2];
   std::map<std::int32_t, float> fMaps[2];
   std::array<std::vector<float>, 2> fArray;
   std::array<std::map<std::int32_t, float>, 2> fMapArray;
   std::array<std::string, 2> fTexts;
   std::vector<TMatrixDSym> fMatrices;
   ClassDefNV(Boxes, 1)
};
struct OldObject : public TObject {
   std::int32_t fA = 0;
   float fB[2] = {};
   TString fT;
   ClassDefOverride(OldObject, 2)
};
#endif
